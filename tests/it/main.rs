//! End-to-end tests: real processes, real peers, one binary with a module for each topic.
//!
//! The server under test is Towline. `E2E_SERVER=redis70` (or `redis82`, `valkey91`) runs the same tests against a real
//! one, which is how the tests themselves are checked.

#[cfg(test)]
mod blocking;
#[cfg(test)]
mod client_axum;
#[cfg(test)]
mod client_blocking;
#[cfg(test)]
mod client_cache;
#[cfg(test)]
mod client_commands;
#[cfg(test)]
mod client_examples;
#[cfg(test)]
mod client_faults;
#[cfg(test)]
mod client_handoff;
#[cfg(test)]
mod client_lanes;
#[cfg(test)]
mod client_lease;
#[cfg(test)]
mod client_ledger;
#[cfg(test)]
mod client_limits;
#[cfg(test)]
mod client_modules;
#[cfg(test)]
mod client_pools;
#[cfg(test)]
mod client_pubsub;
#[cfg(test)]
mod client_recovery;
#[cfg(test)]
mod client_redis_cluster;
#[cfg(test)]
mod client_redis_paths;
#[cfg(test)]
mod client_redis_rs;
#[cfg(test)]
mod client_script;
#[cfg(test)]
mod client_servers;
#[cfg(test)]
mod client_session;
#[cfg(test)]
mod cluster_cli;
#[cfg(test)]
mod cluster_client;
#[cfg(test)]
mod cluster_client_moves;
#[cfg(test)]
mod cluster_failpoints;
#[cfg(test)]
mod cluster_linearizable;
#[cfg(test)]
mod cluster_reads;
#[cfg(test)]
mod cluster_slots;
#[cfg(test)]
mod cluster_tools;
#[cfg(test)]
mod cluster_up;
#[cfg(test)]
mod config;
#[cfg(test)]
mod config_values;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod differential;
#[cfg(test)]
mod drill;
#[cfg(test)]
mod dump;
#[cfg(test)]
mod ember;
#[cfg(test)]
mod fault_injector;
#[cfg(test)]
mod faults_model;
#[cfg(test)]
mod faults_proxy;
#[cfg(test)]
mod handoff_leases;
#[cfg(test)]
mod handoff_pubsub;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod leaks;
#[cfg(test)]
mod maintenance_server;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod migrate;
#[cfg(test)]
mod ordering;
#[cfg(test)]
mod persist_files;
#[cfg(test)]
mod pubsub;
#[cfg(test)]
mod redis_cli;
#[cfg(test)]
mod redis_py;
#[cfg(test)]
mod sentinel_client;
#[cfg(test)]
mod sentinel_client_moves;
#[cfg(test)]
mod snapshots;
mod soak;
#[cfg(test)]
mod sync;
#[cfg(test)]
mod transfer;

//! Towline's client beside redis-rs, fred and rustis: one server, one interleaved run, one process for each measurement.
//!
//! Owns: the workloads (`closed`, `large`, `open`, `queued`; `cluster` for Towline alone), the thin adapter of each client, the order of a run
//! and the tables made of its results. It does not judge: the report prints ratios beside the goals.
//!
//! Two binaries share this library: `clients` runs on the system's allocator and takes the times, `clients-counting`
//! counts allocations and takes none, because counting costs time. A third, `recovery`, is about something else: what each
//! client makes of an event in a cluster.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

pub mod allocations;
mod case;
mod clients;
mod closed;
mod cluster;
mod large;
mod open;
mod pacer;
mod queued;
pub mod recovery;
mod report;
mod run;
mod server;
mod statistics;
mod usage;

pub use run::main;

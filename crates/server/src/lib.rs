//! The server: listeners, workers, and the commands.
//!
//! Owns: everything between a socket and the store. Does **not** own the store's structures, the protocol's bytes or the
//! command table.
#![warn(missing_docs)]

mod admin;
mod batch;
mod blocking;
mod client;
mod cluster;
mod command;
mod commands;
mod config;
mod connection;
mod cron;
mod endpoints;
mod execute;
mod failpoint;
mod farewell;
mod followups;
mod latency;
mod leaving;
mod limits;
mod maintenance;
mod memory;
mod monitor;
mod moving;
mod output;
mod parking;
mod pause;
mod persistence;
mod process;
mod pubsub;
mod replay;
mod replicas;
mod server;
mod session;
mod shared;
mod slowlog;
mod stats;
mod stream;
#[cfg(feature = "tls")]
mod tls;
mod tracking;
mod worker;

#[cfg(test)]
mod replay_tests;
#[cfg(test)]
mod testing;

pub use config::{
    Access, AppendFsync, ClientMemory, ClusterConfig, Config, ConfigError, LoadUnsupported, LogLevel,
    OutputLimits, Persistence, PreferredEndpoint, SavePoint, Secret, TlsAuthClients,
};
pub use limits::OutputLimit;
pub use maintenance::{
    DRAIN_WINDOW_DEFAULT, DRAIN_WINDOW_MAX, DRAIN_WINDOW_MIN, DrainError, DrainState, DrainStatus,
    EndpointType, Maintenance, Notice, NotifiedConnection, Scope, SlotMove, Successor,
};
pub use persistence::disk::{Disk, DiskEntry, DiskFile, DiskLock, RealDisk};
pub use persistence::loading::{LoadError, Unsupported};
pub use server::{ConfigWatch, Reloader, Server, StartError, Stopper};
pub use shared::Stop;
#[cfg(feature = "tls")]
pub use tls::TlsError;

//! The server's side of a cluster as state machines: who owns which slot, and what follows from it for a command.
//!
//! Owns: the metadata that consensus decides ([`Metadata`], [`Change`], [`Outcome`]), names of nodes and clusters
//! ([`NodeId`]), whether a node runs a command ([`gate`]), and may
//! run any ([`lease`]), what a node says about its cluster ([`views`]), how slots move as a
//! whole ([`migration`]), and plans of who should own what ([`plan`]). Does **not** own the log that puts changes in order, sockets,
//! keys, or how clients see a cluster (that is `towline-cluster`).
//!
//! ```text
//! command or timer --Change--> log (Raft) --same order on each node--> Metadata::apply --> Outcome
//!                                                                         |
//!                                                                         +--> owners, open slots, migrations, health
//! ```
//!
//! Everything here is a function of the log: no clock, no randomness, no order of arrival. So all nodes hold the same
//! metadata after the same entry, whatever else happens to them.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod change;
#[cfg(test)]
mod cutover;
pub mod gate;
mod id;
pub mod lease;
mod metadata;
pub mod migration;
mod node;
pub mod plan;
pub mod views;

pub use change::{Change, MigrationEnd, Outcome, Ranges, Refused, ranges};
pub use id::{IdError, NodeId};
pub use metadata::{
    EPOCH_MAX, Inconsistent, MESSAGE_BYTES_MAX, MIGRATIONS_KEPT, Marker, Metadata, Migration, MigrationState,
};
pub use node::{Announced, Health, NAME_BYTES_MAX, Node, Role};

//! The log of metadata that all nodes share, by Raft.
//!
//! Owns: storage, and the group of nodes that agree. Does **not** own what changes mean (`towline-cluster-proto`) nor sockets
//! (`links`).

mod duties;
mod format;
mod freshness;
mod group;
mod machine;
mod meet;
mod network;
mod node;
mod propose;
mod standing;
mod store;
pub(in crate::cluster) mod types;
pub(in crate::cluster) mod writer;

#[cfg(test)]
mod tests;

pub(crate) use node::{RaftConfig, RaftLog};

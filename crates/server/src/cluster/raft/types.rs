//! The types that Raft is built over: seats, members, entries.
//!
//! Owns: what is stored and sent as a member of a Raft group. Does **not** own what entries mean (`towline-cluster-proto` does).

use serde::{Deserialize, Serialize};
use towline_cluster_proto::{Change, Metadata, NodeId, Outcome};

/// A node's place in one Raft group: drawn at random each time it joins one. A node that has lost its log, or has left and comes
/// back, gets another seat, so what it has promised under the old one binds nobody.
pub(crate) type Seat = u64;

/// Who has a seat, and where that node was when it got it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Member {
    /// The node.
    pub(crate) node: NodeId,
    /// Its address for other nodes; empty if nobody knew it.
    pub(crate) ip: String,
    /// Its port for other nodes.
    pub(crate) bus_port: u16,
}

impl Default for Member {
    fn default() -> Self {
        Self { node: NodeId::from_bytes([0; NodeId::BYTES]), ip: String::new(), bus_port: 0 }
    }
}

openraft::declare_raft_types!(
    /// What the log orders, who takes part, and what a snapshot is.
    pub(crate) Types:
        D = Change,
        R = Outcome,
        NodeId = u64,
        Node = Member,
        SnapshotData = Metadata,
);

/// An entry of the log.
pub(crate) type Entry = openraft::Entry<Types>;
/// The place of an entry.
pub(crate) type LogId = openraft::LogId<Seat>;
/// Whom a node follows, and in which term.
pub(crate) type Vote = openraft::Vote<Seat>;
/// Members, and the entry that made them so.
pub(crate) type Membership = openraft::StoredMembership<Seat, Member>;
/// What a snapshot stands for.
pub(crate) type SnapshotMeta = openraft::SnapshotMeta<Seat, Member>;
/// A failure of storage.
pub(crate) type StorageError = openraft::StorageError<Seat>;
/// The machine that orders entries.
pub(crate) type Raft = openraft::Raft<Types>;

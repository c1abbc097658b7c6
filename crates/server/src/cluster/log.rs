//! What the server asks of the log that orders changes of the cluster.
//!
//! Owns: the trait, and its errors. Does **not** own a log: `raft` has one that all nodes share.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use towline_cluster_proto::{Announced, Change, Metadata, NodeId, Outcome};

/// An answer that takes a while. Dropping it does not undo what was asked.
pub(crate) type Answer<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A log of changes that all nodes of the cluster apply in the same order. May be asked from any thread.
pub(crate) trait MetadataLog: Send + Sync + fmt::Debug {
    /// Puts a change into the log, wherever its leader is, and waits until it is applied *here*: what follows on this node
    /// sees it.
    fn propose(&self, change: Change) -> Answer<Result<Outcome, ProposeError>>;

    /// The metadata as of the last entry that was applied here, and all that follow.
    fn metadata(&self) -> watch::Receiver<Arc<Metadata>>;

    /// How this node stands in the cluster.
    fn standing(&self) -> watch::Receiver<Standing>;

    /// Joins the cluster of the node at this address, with the slots that this node owns; if this node is not alone, asks that one
    /// to join this cluster instead. Returns once the other was asked; what comes of it is seen in the metadata.
    fn meet(&self, peer: Peer) -> Answer<Result<(), MeetError>>;

    /// Leaves the cluster, if possible with its knowledge, and founds one of its own that knows no slot. `node`: the name from now on.
    fn reset(&self, node: NodeId) -> Answer<Result<(), ProposeError>>;

    /// This node is reached elsewhere from now on (`CONFIG SET cluster-announce-*`).
    fn announce(&self, at: Announced);

    /// The links to other nodes, both directions.
    fn links(&self) -> Vec<Link>;
}

/// How a node stands in its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    /// This node's name.
    pub(crate) node: NodeId,
    /// Whether a quorum was heard of within the lease (`cluster-node-timeout`): only then may the node serve.
    pub(crate) is_fresh: bool,
    /// Who leads, if somebody is known to.
    pub(crate) leader: Option<NodeId>,
    /// The leader's term.
    pub(crate) term: u64,
}

/// A node that is to be met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Peer {
    /// Address, no name.
    pub(crate) ip: std::net::IpAddr,
    /// Its port for clients.
    pub(crate) port: u16,
    /// Its port for nodes.
    pub(crate) bus_port: u16,
}

/// A link between this node and another, for `CLUSTER LINKS`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    /// The other node.
    pub(crate) node: NodeId,
    /// Whether this node dialled.
    pub(crate) is_outgoing: bool,
    /// Since when, in unix milliseconds.
    pub(crate) since_ms: u64,
    /// Bytes that are allocated for sending.
    pub(crate) send_buffer_allocated: usize,
    /// Of these, bytes that wait.
    pub(crate) send_buffer_used: usize,
}

/// Why a change has no outcome. The environment's fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ProposeError {
    /// No leader was found, or none that has a quorum, within the time. The change was not made and will not be. Retryable.
    #[error(
        "CLUSTERDOWN No quorum of the cluster's nodes can be reached (waited {0:?}); nothing was changed"
    )]
    NoQuorum(Duration),
    /// It was handed to a leader, and whether it is or will be applied is not known.
    #[error(
        "CLUSTERDOWN The change was sent to the cluster's leader and no answer came; it may still be made"
    )]
    Unknown,
    /// The node is stopping, or being reset.
    #[error("CLUSTERDOWN This node is leaving its cluster")]
    Closed,
}

/// Why a node was not met. The environment's fault, or the operator's; retryable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum MeetError {
    /// The other node could not be reached, or is no node.
    #[error("ERR Cannot reach a node at {address}: {reason}")]
    Unreachable {
        /// Where.
        address: std::net::SocketAddr,
        /// What went wrong.
        reason: String,
    },
    /// Both belong to clusters of more than one node.
    #[error(
        "ERR Both nodes belong to clusters of several nodes, and clusters cannot be merged: 'CLUSTER RESET' the one that is to join"
    )]
    TwoClusters,
    /// It does not know the secret of this cluster, or this one does not know its.
    #[error("ERR The other node has another 'cluster-secret'")]
    Secret,
}

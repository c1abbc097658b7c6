//! What can be wrong with a call of an engine.
//!
//! Owns one error for each operation.

use std::io;

use towline_transfer_proto as proto;
use towline_transfer_proto::{ConnectConfigError, NodeId, OutboxFull, TransferConfigError};

/// Why an engine did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A number of the configuration cannot be. The caller's mistake.
    #[error("the engine's configuration: {problem}")]
    Config {
        /// What is wrong.
        problem: &'static str,
    },
    /// How peers are connected. The caller's mistake.
    #[error(transparent)]
    Connect(#[from] ConnectConfigError),
    /// How work is bounded. The caller's mistake.
    #[error(transparent)]
    Transfer(#[from] TransferConfigError),
    /// Without a name and without one address to listen at, nobody could call it. The caller's mistake.
    #[error("an engine that listens on every address or on none needs a name")]
    Nameless,
    /// It cannot listen, or the system refused a thread or a descriptor.
    #[error("the engine cannot start: {0}")]
    Io(#[from] io::Error),
}

/// Why a segment was not opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The name does not say where the node is, and no address was given for it. The caller's mistake.
    #[error("{name} is no address, and none is known for it")]
    Unknown {
        /// The name.
        name: String,
    },
    /// The engine's own name. The caller's mistake.
    #[error("an engine does not open its own segment")]
    Own,
    /// No link came up in time: the peer is away, has another key, or is called otherwise. Retryable; the link is tried on.
    #[error("no answer from node {node} in time")]
    TimedOut {
        /// Whom.
        node: NodeId,
    },
    /// As many wait for this peer as may.
    #[error("too many wait for this peer's description")]
    Full,
    /// As many peers are known as are allowed. Retryable when some are gone.
    #[error("{peers} peers are known, which is the limit")]
    TooManyPeers {
        /// How many.
        peers: usize,
    },
    /// The engine is shut down.
    #[error("the engine is shut down")]
    ShutDown,
}

/// Why a batch was not taken. Nothing of it was begun.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// The request's region is another segment's. The caller's mistake.
    #[error("request {index} is for a region of another segment")]
    ForeignRegion {
        /// Which.
        index: usize,
    },
    /// A range is not within its region, or has no bytes. The caller's mistake.
    #[error("request {index} is not within its regions")]
    Range {
        /// Which.
        index: usize,
    },
    /// The peer's region is not for writing. The caller's mistake.
    #[error("request {index} writes to a region that is for reading")]
    ReadOnly {
        /// Which.
        index: usize,
    },
    /// A batch without requests, or with too many. The caller's mistake.
    #[error("a batch of {tasks} requests; it must have 1 to batch_tasks_max")]
    Size {
        /// How many.
        tasks: usize,
    },
    /// As much work waits for this peer as may. Retryable when some has ended.
    #[error("{tasks} requests to this peer are open, which is the limit")]
    Full {
        /// How many.
        tasks: u32,
    },
    /// The peer has not acknowledged as many notifications as may be open. Retryable.
    #[error(transparent)]
    OutboxFull(#[from] OutboxFull),
    /// A notification is longer than [`crate::NOTIFICATION_BYTES_MAX`]. The caller's mistake.
    #[error("a notification of {bytes} bytes; at most {max} are allowed", max = crate::NOTIFICATION_BYTES_MAX)]
    NotificationTooLong {
        /// How many.
        bytes: usize,
    },
    /// The peer has a new life since the segment was opened. Open it again.
    #[error("the peer has restarted since the segment was opened")]
    PeerRestarted,
    /// The engine is shut down.
    #[error("the engine is shut down")]
    ShutDown,
}

impl From<proto::SubmitError> for SubmitError {
    fn from(error: proto::SubmitError) -> Self {
        match error {
            proto::SubmitError::Size { tasks } => Self::Size { tasks },
            proto::SubmitError::Range { index } => Self::Range { index },
            proto::SubmitError::Full { tasks } => Self::Full { tasks },
            // Of the future: nothing was begun, which is what a full engine says, too.
            _ => Self::Full { tasks: 0 },
        }
    }
}

/// Why a notification was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotifyError {
    /// The peer has not acknowledged as many as may be open. Retryable.
    #[error(transparent)]
    OutboxFull(#[from] OutboxFull),
    /// It is longer than [`crate::NOTIFICATION_BYTES_MAX`]. The caller's mistake.
    #[error("a notification of {bytes} bytes; at most {max} are allowed", max = crate::NOTIFICATION_BYTES_MAX)]
    TooLong {
        /// How many.
        bytes: usize,
    },
    /// The engine is shut down.
    #[error("the engine is shut down")]
    ShutDown,
}

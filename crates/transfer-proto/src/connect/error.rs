//! What can be wrong with a call of [`super::Connections`].

use towline_admission::HeadersFull;

use crate::wire::QUEUE_PAIRS_MAX;

/// Why a lane cannot be wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WantError {
    /// The process is leaving. Not retryable.
    #[error("this process is leaving")]
    Leaving,
    /// As many nodes have links as are allowed. Retryable when some are gone.
    #[error("{peers} nodes are linked already, which is the limit")]
    TooManyPeers {
        /// How many.
        peers: u32,
    },
    /// A lane beyond the configured number, no queue pairs, more of them than a HELLO carries, or a lane to this very node.
    /// The caller's mistake.
    #[error(
        "no such lane: it must be within lanes_max, have 1 to {QUEUE_PAIRS_MAX} queue pairs and lead elsewhere"
    )]
    Invalid,
}

/// Why a connection was not accepted. Close it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// As many are open as are allowed.
    #[error("{open} handshake connections are open, which is the limit")]
    TooMany {
        /// How many.
        open: u32,
    },
    /// Too many say nothing.
    #[error(transparent)]
    Silent(#[from] HeadersFull),
}

/// The driver could not make or activate queue pairs. A local fault: it says nothing of the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no queue pairs could be made")]
pub struct NoQueuePairs;

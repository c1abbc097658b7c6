//! Numbers, errors, events and counts of [`super::Transfers`].

use std::time::Duration;

use crate::identity::NodeId;

use super::batch::{BatchId, Buffers, Class, Outcome, TaskId};
use super::rate::ClassConfig;

/// The bounds of [`super::Transfers`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransferConfig {
    /// Bytes of a slice. More than zero. 64 KiB: long enough that its cost is the copy, short enough that classes take
    /// turns within microseconds.
    pub slice: u64,
    /// How often a slice may go unanswered on the wire. More than zero. 8: each costs half a second of the card's own
    /// repetitions.
    pub wire_attempts: u32,
    /// Slices on the wire to one peer at most. More than zero. 256, the depth of a usual send queue.
    pub window: u32,
    /// Batches at a time. More than zero. 65,536.
    pub batches_max: u32,
    /// Tasks of one batch. More than zero. 65,536.
    pub batch_tasks_max: u32,
    /// Tasks in all. More than zero. 1,048,576, some 200 bytes each.
    pub tasks_max: u32,
    /// How long memory may stay quarantined before the link is given up for it. 1 s: twice what a card takes to give up
    /// by itself.
    pub quarantine_max: Duration,
    /// The shares of the classes, the most urgent first. 16, 4 and 1, without caps.
    pub classes: [ClassConfig; 3],
}

impl TransferConfig {
    /// The defaults of an engine; each field says why.
    pub const ENGINE: Self = Self {
        slice: 64 * 1024,
        wire_attempts: 8,
        window: 256,
        batches_max: 65_536,
        batch_tasks_max: 65_536,
        tasks_max: 1_048_576,
        quarantine_max: Duration::from_secs(1),
        classes: [
            ClassConfig { weight: 16, rate: None },
            ClassConfig { weight: 4, rate: None },
            ClassConfig { weight: 1, rate: None },
        ],
    };
}

impl Default for TransferConfig {
    fn default() -> Self {
        Self::ENGINE
    }
}

/// Why a [`TransferConfig`] was refused: with this number zero nothing would ever move. Its author's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the transfer setting {field} is zero; it must be positive")]
pub struct TransferConfigError {
    /// The field's name.
    pub field: &'static str,
}

/// Why a batch was not taken. Nothing of it was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// A batch without requests, or with too many. The caller's mistake.
    #[error("a batch of {tasks} requests; it must have 1 to batch_tasks_max")]
    Size {
        /// How many.
        tasks: usize,
    },
    /// A request of no bytes, or whose range ends beyond the last address. The caller's mistake.
    #[error("request {index} has no bytes or leaves the address space")]
    Range {
        /// Which.
        index: usize,
    },
    /// As many batches or tasks as are allowed. Retryable when some have ended.
    #[error("the engine is full: {tasks} tasks are open")]
    Full {
        /// How many.
        tasks: u32,
    },
}

/// Why a batch was not freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FreeError {
    /// The name was never given out, or was freed. The caller's mistake.
    #[error("no such batch")]
    Unknown,
    /// Tasks of it have no outcome yet, or their memory is not drained. Retryable after [`Event::BatchDone`].
    #[error("{open} tasks are open and {lent} hold memory")]
    Busy {
        /// Tasks without an outcome.
        open: u32,
        /// Tasks whose memory may still be touched.
        lent: u32,
    },
}

/// What the owner and the driver need to know, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Work waits for a link to this peer.
    Want {
        /// The peer.
        peer: NodeId,
        /// The most urgent class that waits.
        class: Class,
    },
    /// No work waits for it any more.
    Unwant {
        /// The peer.
        peer: NodeId,
    },
    /// A task has its outcome.
    Ended {
        /// Which.
        task: TaskId,
        /// How.
        outcome: Outcome,
        /// Whether its memory is free. If not, [`Event::Drained`] follows.
        buffers: Buffers,
    },
    /// The memory of a task that had ended is free.
    Drained {
        /// Which.
        task: TaskId,
    },
    /// Every task of the batch has ended and is drained: it can be freed.
    BatchDone {
        /// Which.
        batch: BatchId,
        /// Every task completed.
        is_complete: bool,
    },
    /// Every task of the batch is applied at its destination: send this to the peer.
    Notify {
        /// The peer.
        peer: NodeId,
        /// What.
        payload: Vec<u8>,
    },
    /// Memory is quarantined for too long: give up the link to this peer, so that its card gives everything back.
    Flush {
        /// The peer.
        peer: NodeId,
    },
}

/// Counts since the start, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransferCounters {
    /// Slices put on the wire.
    pub posted: u64,
    /// Slices that went unanswered.
    pub unanswered: u64,
    /// Slices that came back with a failed link, untried.
    pub flushed: u64,
    /// Tasks that ran out of attempts.
    pub exhausted: u64,
    /// Completions of slices that are not known. A mistake of the driver.
    pub unknown: u64,
}

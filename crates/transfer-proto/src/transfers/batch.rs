//! Batches, tasks and slices: what they are and how they end.
//!
//! Owns the words. `mod.rs` owns the steps between the states.

use std::collections::VecDeque;
use std::fmt;

use towline_sansio::Instant;

use crate::identity::{LinkId, NodeId};

/// Names a batch until it is freed. An old name of a place that is used again is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchId {
    pub(super) index: u32,
    pub(super) generation: u32,
}

/// Names a task: its batch and its position in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId {
    /// The batch.
    pub batch: BatchId,
    /// The position, from 0.
    pub index: u32,
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {} of batch {}.{}", self.index, self.batch.index, self.batch.generation)
    }
}

/// Names a slice while it is on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SliceId {
    pub(super) index: u32,
    pub(super) generation: u32,
}

impl SliceId {
    /// As one number, for the identifier of a work request.
    pub fn to_bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// Back from the number.
    pub fn from_bits(bits: u64) -> Self {
        Self { index: bits as u32, generation: (bits >> 32) as u32 }
    }
}

/// Which way the bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Opcode {
    /// From the peer's memory to ours.
    Read,
    /// From our memory to the peer's.
    Write,
}

/// How urgent. Each class has a weight, none starves another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Somebody waits for it.
    High,
    /// Somebody will need it soon: warm-up, prefetch.
    Normal,
    /// In the background: migration, checkpoints.
    Low,
}

impl Class {
    /// Every class, the most urgent first.
    pub const ALL: [Self; 3] = [Self::High, Self::Normal, Self::Low];

    pub(super) fn index(self) -> usize {
        match self {
            Self::High => 0,
            Self::Normal => 1,
            Self::Low => 2,
        }
    }
}

/// What to do with a slice of which nobody knows whether it was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Repeat {
    /// Do it again: a read, or a write of the same bytes to the same place. The default of engines.
    Allowed,
    /// Tell the caller ([`Failure::Unknown`]): somebody may have read or changed the place meanwhile.
    Never,
}

/// One transfer between a range of our memory and a range of a peer's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Which way.
    pub opcode: Opcode,
    /// The peer.
    pub peer: NodeId,
    /// Our address.
    pub local: u64,
    /// The peer's address.
    pub remote: u64,
    /// Bytes, more than zero.
    pub length: u64,
    /// How urgent.
    pub class: Class,
    /// After this it is of no use. [`Instant::FAR`] for never.
    pub deadline: Instant,
    /// Whether slices may be repeated.
    pub repeat: Repeat,
}

/// Why a task failed. What was written before stays written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Failure {
    /// The peer refused the range: not registered, not that long, or not for this. The caller's mistake, or the peer has
    /// taken its memory back. Not retryable.
    RemoteAccess,
    /// Our own memory was refused by our card. The caller's mistake.
    LocalAccess,
    /// A slice failed on the wire as often as it may ([`super::TransferConfig::wire_attempts`]). Retryable.
    WireAttempts,
    /// Whether a slice was done is not known, and it must not be repeated ([`Repeat::Never`]).
    Unknown,
}

/// How a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Every byte is where it should be: applied at the destination.
    Completed,
    /// See the reason.
    Failed(Failure),
    /// Its deadline passed.
    TimedOut,
    /// Its owner gave it up.
    Canceled,
}

/// Whether anything can still touch a task's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Buffers {
    /// Slices are on the wire: the card may read or write the range. Do not free or use it again.
    Quarantined,
    /// Nothing is under way any more.
    Drained,
}

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskState {
    /// Nothing of it has been on the wire yet: it waits for a link or for its turn. That costs it nothing but time.
    Waiting,
    /// Parts of it are or were on the wire.
    Active,
    /// It has its outcome.
    Ended {
        /// How.
        outcome: Outcome,
        /// And whether its memory is free.
        buffers: Buffers,
    },
}

/// A slice that was cut and is not on the wire: it comes back after a failure.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub(super) offset: u64,
    pub(super) length: u64,
    /// Attempts on the wire that failed.
    pub(super) failures: u32,
}

#[derive(Debug)]
pub(super) struct Task {
    pub(super) request: Request,
    /// Bytes that have been cut into slices.
    pub(super) cut: u64,
    pub(super) done: u64,
    pub(super) in_flight: u32,
    pub(super) again: VecDeque<Piece>,
    pub(super) outcome: Option<Outcome>,
    pub(super) was_posted: bool,
    /// It has ended, and a slice of it is on the wire: when that becomes too long.
    pub(super) quarantined_until: Option<Instant>,
    /// It stands in its peer's queue.
    pub(super) is_queued: bool,
}

impl Task {
    pub(super) fn new(request: Request) -> Self {
        Self {
            request,
            cut: 0,
            done: 0,
            in_flight: 0,
            again: VecDeque::new(),
            outcome: None,
            was_posted: false,
            quarantined_until: None,
            is_queued: false,
        }
    }

    /// Whether there is something to put on the wire.
    pub(super) fn has_work(&self) -> bool {
        self.outcome.is_none() && (self.cut < self.request.length || !self.again.is_empty())
    }

    /// The next piece to put on the wire, which it counts as there; or that its turn is over: all of it is on the wire, or
    /// it ended while it waited.
    pub(super) fn take_turn(&mut self, slice: u64) -> Result<(Request, Piece), TurnOver> {
        let piece = if self.outcome.is_none() { self.next_piece(slice) } else { None };
        let Some(piece) = piece else {
            return Err(TurnOver { was_queued: std::mem::take(&mut self.is_queued) });
        };
        self.in_flight += 1;
        self.was_posted = true;
        Ok((self.request, piece))
    }

    pub(super) fn buffers(&self) -> Buffers {
        if self.in_flight == 0 { Buffers::Drained } else { Buffers::Quarantined }
    }

    pub(super) fn state(&self) -> TaskState {
        match self.outcome {
            Some(outcome) => TaskState::Ended { outcome, buffers: self.buffers() },
            None if self.was_posted => TaskState::Active,
            None => TaskState::Waiting,
        }
    }

    /// The next piece: one that failed before, or a new one. A last piece that would be below a quarter of a slice is
    /// joined to the one before it, since short work requests cost as much as long ones.
    pub(super) fn next_piece(&mut self, slice: u64) -> Option<Piece> {
        if let Some(piece) = self.again.pop_front() {
            return Some(piece);
        }
        let left = self.request.length - self.cut;
        if left == 0 {
            return None;
        }
        let length = if left <= slice + slice / 4 { left } else { slice };
        let piece = Piece { offset: self.cut, length, failures: 0 };
        self.cut += length;
        Some(piece)
    }
}

/// A task has nothing for the wire now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TurnOver {
    /// It stood in its queue until now.
    pub(super) was_queued: bool,
}

#[derive(Debug)]
pub(super) struct Batch {
    pub(super) tasks: Vec<Task>,
    /// Tasks without an outcome.
    pub(super) open: u32,
    /// Tasks whose memory is not drained.
    pub(super) lent: u32,
    /// To be sent when all are completed.
    pub(super) notify: Option<(NodeId, Vec<u8>)>,
}

/// A slice on the wire.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flight {
    pub(super) task: TaskId,
    pub(super) peer: NodeId,
    pub(super) piece: Piece,
}

/// A slice to put on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Post {
    /// Comes back in [`super::Transfers::completed`].
    pub slice: SliceId,
    /// The peer.
    pub peer: NodeId,
    /// On this link.
    pub link: LinkId,
    /// Which way.
    pub opcode: Opcode,
    /// Our address.
    pub local: u64,
    /// The peer's address.
    pub remote: u64,
    /// Bytes.
    pub length: u64,
}

/// How a slice ended on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WireEnd {
    /// Applied at its destination.
    Done,
    /// It was tried, and nobody answered. Costs an attempt.
    Unanswered,
    /// The link failed before its turn was over: it was not tried to the end. Costs nothing.
    Flushed,
    /// The peer refused it.
    RemoteAccess,
    /// Our card refused it.
    LocalAccess,
}

//! Slots that move from one node to another as a whole, as two state machines.
//!
//! Owns: the frames between the two nodes ([`wire`]), what the node does that gives the slots away ([`Source`]) and what the one does
//! that gets them ([`Target`]). Does **not** own the log that decides (`CommitMigration`, `EndMigration`), sockets, the slot stream
//! and its contents (here they are bytes with positions), nor the slots: a driver does what [`SourceAction`] and [`TargetAction`] say,
//! in their order, and reports.
//!
//! ```text
//! source                                                       target
//!   | dial, Hello{attempt} ------------------------------------> | hide the slots, empty
//!   | open the stream <--------------------------- Welcome ----- |
//!   | Batch, Chunk... -----------------------------------------> | apply
//!   | <--------------------------------- Ack{position, bytes} -- |
//!   | snapshot done, tail short: PARK the slots                  |
//!   | rest of the tail, Final{position} -----------------------> | apply, make durable
//!   | <------------------------------------ Ready{position} ---- |
//!   | propose CommitMigration     (log)     committed            | committed
//!   | clients are redirected, keys are freed                     | the slots are shown and served
//! ```
//!
//! # Why nobody is served by both, or by neither for good
//!
//! * Who owns the slots is what the log says, and nothing else. A node that is behind in the log is either the source, whose slots are
//!   parked from before the commit is proposed until it is known what came of it, or the target, which does not serve yet.
//! * Only the source's process proposes the commit, once the target has everything. Until then it may let the slots go on at any time:
//!   no commit can come. From then on it waits for the log, and if that takes too long it proposes the end: of the two the first in the log
//!   decides, on both nodes.
//! * A process that was restarted does not know what it proposed before. So the source parks the slots before it serves anything
//!   ([`Source::after_restart`]), and the target keeps what it has unseen ([`Target::after_restart`]); both propose the end and go by
//!   what the log says. Until a process that was started has caught up with the log it serves nothing, and drops nothing.
//! * A target that said `Ready` drops what it has only if the log ended the migration, or if the source begins anew with a higher attempt: that
//!   one has not proposed the commit. An attempt that comes late is refused by its number.
//!
//! # Bounds
//!
//! The source fetches from its stream only while less than a window is unacknowledged, so it holds a window and one batch beside the
//! stream itself, which has its own bound; the target holds as much, and refuses more. Links that are silent are given up
//! ([`Config::silence_max`]), parked slots go on after [`Config::handover_max`] as soon as it is known that they may.

mod source;
mod target;
#[cfg(test)]
mod tests;
pub mod wire;

pub use source::{Source, SourceAction, SourceEvent};
pub use target::{Target, TargetAction, TargetEvent};

use crate::change::{Change, MigrationEnd};
use crate::id::NodeId;
use bytes::Bytes;
use std::num::NonZeroU64;
use std::time::Duration;
use towline_sansio::Instant;

/// The version of the frames that is spoken here.
pub const VERSION: u16 = 1;

/// How migrations behave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Bytes of batches that may be under way without an acknowledgement. Default 8 MiB: what a link of 1 Gbit/s carries in 60 ms, longer than a
    /// batch takes to be applied.
    pub window_bytes: u64,
    /// Bytes of a batch in one frame, at most [`wire::CHUNK_BYTES_MAX`]. Default 256 KiB: a batch of the stream fits, and other frames do not wait long
    /// behind one.
    pub chunk_bytes: usize,
    /// Largest batch that the target takes. Default 1 GiB: the largest string of 512 MiB is one effect, and there may be images beside it.
    pub batch_bytes_max: u64,
    /// Bytes a second while the snapshot is sent. Default none. The tail is never slowed: it would only grow.
    pub bytes_per_second: Option<NonZeroU64>,
    /// The slots are parked as soon as the tail is at most so many bytes. Default 64 KiB: less than one millisecond at 1 Gbit/s.
    pub park_bytes_max: u64,
    /// Or as soon as it is sent and applied in this time, at the rate of late. Default 5 ms: half of what a client may notice.
    pub park_tail_max: Duration,
    /// Or after this time, whatever the tail: with more writes than the link carries, it never gets short. Default 10 s.
    pub follow_max: Duration,
    /// How long slots are parked before the migration is to end. Default 5 s, Redis's `cluster-manual-failover-timeout`.
    pub handover_max: Duration,
    /// How long dialling and greeting may take. Default 10 s.
    pub connect_max: Duration,
    /// How long the other side may be silent. Default 10 s: with a keepalive each second, no chance loss of a packet takes so long.
    pub silence_max: Duration,
    /// How often something is sent if there is nothing to send. Default 1 s.
    pub keepalive_every: Duration,
    /// How long after a proposal that failed the next one is made. Default 500 ms: an election takes about as long.
    pub retry_after: Duration,
    /// How many times the source begins, the first included. Default 3: a link that breaks three times within one migration breaks again.
    pub attempts_max: u32,
    /// How long a target keeps an undecided migration without a link. Default 30 s: longer than the source takes to dial again.
    pub orphan_after: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            window_bytes: 8 << 20,
            chunk_bytes: 256 << 10,
            batch_bytes_max: 1 << 30,
            bytes_per_second: None,
            park_bytes_max: 64 << 10,
            park_tail_max: Duration::from_millis(5),
            follow_max: Duration::from_secs(10),
            handover_max: Duration::from_secs(5),
            connect_max: Duration::from_secs(10),
            silence_max: Duration::from_secs(10),
            keepalive_every: Duration::from_secs(1),
            retry_after: Duration::from_millis(500),
            attempts_max: 3,
            orphan_after: Duration::from_secs(30),
        }
    }
}

/// A batch of the slot stream: images, then effects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StreamBatch {
    /// The position before its first effect.
    pub position_before: u64,
    /// The position of its last effect; that before if it has none.
    pub position: u64,
    /// Whether this batch and those before it hold the whole snapshot.
    pub is_snapshot_done: bool,
    /// Images, as the stream writes them.
    pub images: Bytes,
    /// Effects, as the stream writes them.
    pub units: Bytes,
}

impl StreamBatch {
    /// Bytes of both lanes.
    pub fn len_bytes(&self) -> u64 {
        self.images.len() as u64 + self.units.len() as u64
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.images.is_empty() && self.units.is_empty()
    }
}

/// What the log says about a migration that was active.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The target owns the slots.
    Committed,
    /// The source does. Also if the migration is not known any more.
    Ended,
}

/// A change that is to be put into the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proposal {
    /// The target owns the slots from now on.
    Commit,
    /// The source keeps them, for this reason.
    End(String),
}

impl Proposal {
    /// As an entry of the log. `now_ms`: unix milliseconds.
    pub fn into_change(self, id: NodeId, now_ms: u64) -> Change {
        match self {
            Self::Commit => Change::CommitMigration { id, now_ms },
            Self::End(message) => Change::EndMigration { id, end: MigrationEnd::Failed, message, now_ms },
        }
    }
}

/// How far a machine has come, for `CLUSTER GETSLOTMIGRATIONS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status<'a> {
    /// In Valkey's words.
    pub state: &'static str,
    /// What went wrong last; empty if nothing did.
    pub message: &'a str,
    /// When the other side was last heard of.
    pub heard: Option<Instant>,
    /// Bytes of the stream that were acknowledged, or applied, in this attempt.
    pub bytes_done: u64,
    /// Bytes that are known to be still to come, or to be applied.
    pub bytes_remaining: u64,
}

/// Keeps a link from being silent, and notices when the other side is.
#[derive(Debug, Clone, Copy)]
struct Liveness {
    heard: Instant,
    sent: Instant,
}

impl Liveness {
    fn new(now: Instant) -> Self {
        Self { heard: now, sent: now }
    }

    fn keepalive_at(&self, config: &Config) -> Instant {
        self.sent + config.keepalive_every
    }

    fn silent_at(&self, config: &Config) -> Instant {
        self.heard + config.silence_max
    }
}

//! The seven announcements.
//!
//! Owns their shapes, those that servers send and those that older servers, proxies and test tools send. Does not own
//! what follows from one.
//!
//! The shapes of the specification, with `seq` and `seconds` as integers:
//!
//! ```text
//! MOVING seq seconds host:port|null        SMIGRATING seq "123,456,5000-7000"
//! MIGRATING seq seconds shards             SMIGRATED seq [[source, destination, slots], ...]
//! MIGRATED seq shards
//! FAILING_OVER seq seconds shards          FAILED_OVER seq shards
//! ```
//!
//! Accepted besides: simple, bulk and verbatim strings for each other, integers as text, values beyond the expected
//! ones, missing values at the end, a missing or unreadable seq or time, values in a nested array where they should be
//! flat, and triplets that are flat where they should be nested.

mod moves;
mod slots;
mod value;

#[cfg(test)]
mod tests;

use std::time::Duration;

use towline_cluster::{Address, SlotRange};
use towline_resp::frame::Frame;

use value::{Fields, text};

pub use moves::SlotMove;

/// Longest list of shards that is kept, in bytes; it serves diagnosis only.
const SHARDS_BYTES_MAX: usize = 1024;

/// What goes on, from its first announcement to its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The endpoint moves (`MOVING`; nothing on the wire ends it).
    Moving,
    /// A shard moves to another node (`MIGRATING`, `MIGRATED`).
    Migration,
    /// A shard's replica takes over (`FAILING_OVER`, `FAILED_OVER`).
    Failover,
    /// Slots move to another node (`SMIGRATING`, `SMIGRATED`).
    SlotMigration,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Moving, Self::Migration, Self::Failover, Self::SlotMigration];
}

/// What happens to the shards of a [`Starting`] or [`Finished`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ShardEvent {
    /// They move to another node.
    Migration,
    /// Their replicas take over.
    Failover,
}

impl From<ShardEvent> for Kind {
    fn from(event: ShardEvent) -> Self {
        match event {
            ShardEvent::Migration => Self::Migration,
            ShardEvent::Failover => Self::Failover,
        }
    }
}

/// An announcement, as far as it could be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notification {
    /// `MOVING`.
    Moving(Moving),
    /// `MIGRATING` or `FAILING_OVER`.
    Starting(Starting),
    /// `MIGRATED` or `FAILED_OVER`.
    Finished(Finished),
    /// `SMIGRATING`.
    SlotsMoving(SlotsMoving),
    /// `SMIGRATED`.
    SlotsMoved(SlotsMoved),
}

/// The endpoint of this connection moves; the connection is closed at the end of the window.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Moving {
    /// The number of the announcement, if it has one.
    pub seq: Option<u64>,
    /// How long the connection stays open, from its arrival; `None` if it is missing or unreadable. Zero means less than a
    /// second.
    pub window: Option<Duration>,
    /// Where to go; `None` stands for the configured address.
    pub successor: Option<Address>,
}

/// Something is about to happen to shards: answers may be slow.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Starting {
    /// What.
    pub event: ShardEvent,
    /// The number of the announcement, if it has one.
    pub seq: Option<u64>,
    /// When it starts, from the arrival; `None` if it is missing or unreadable: now.
    pub starts_in: Option<Duration>,
    /// The shards as the server lists them, cut at 1024 bytes; empty if it does not. For diagnosis.
    pub shards: Box<str>,
}

/// It has happened to the shards.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Finished {
    /// What.
    pub event: ShardEvent,
    /// The number of the announcement, if it has one; not the number of the one that announced the start.
    pub seq: Option<u64>,
    /// The shards as the server lists them, cut at 1024 bytes; empty if it does not. For diagnosis.
    pub shards: Box<str>,
}

/// Slots are about to move: answers about them may be slow or be redirects.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SlotsMoving {
    /// The number of the announcement, if it has one.
    pub seq: Option<u64>,
    /// The slots, in the order announced; at most [`SlotRange::RANGES_MAX`].
    pub slots: Vec<SlotRange>,
}

/// Slots have moved.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SlotsMoved {
    /// The number of the announcement, if it has one.
    pub seq: Option<u64>,
    /// From where to where; at most [`SlotMove::MOVES_MAX`], with at most [`SlotRange::RANGES_MAX`] ranges in all.
    pub moves: Vec<SlotMove>,
    /// Whether everything could be read. If not, the slot map has to be asked for.
    pub is_complete: bool,
}

impl Notification {
    /// Reads the values of a push; `None` if it is not one of the seven. A known kind is always something: what is
    /// unreadable in it is left out.
    pub fn read(push: &[Frame]) -> Option<Self> {
        let (name, rest) = push.split_first()?;
        let word = Word::read(text(name)?)?;
        let mut fields = Fields::new(rest);
        Some(match word {
            Word::Moving => Self::Moving(moving(fields)),
            Word::Starting(event) => {
                let seq = fields.seq();
                let starts_in = fields.seconds();
                Self::Starting(Starting { event, seq, starts_in, shards: fields.shards(SHARDS_BYTES_MAX) })
            }
            Word::Finished(event) => {
                let seq = fields.seq();
                fields.skip_time();
                Self::Finished(Finished { event, seq, shards: fields.shards(SHARDS_BYTES_MAX) })
            }
            Word::SlotsMoving => {
                let seq = fields.seq();
                fields.skip_time();
                Self::SlotsMoving(SlotsMoving { seq, slots: slots::read(fields.rest()) })
            }
            Word::SlotsMoved => {
                let seq = fields.seq();
                fields.skip_time();
                let (moves, is_complete) = moves::read(fields.rest());
                Self::SlotsMoved(SlotsMoved { seq, moves, is_complete })
            }
        })
    }

    /// The number of the announcement, if it has one.
    pub const fn seq(&self) -> Option<u64> {
        match self {
            Self::Moving(Moving { seq, .. })
            | Self::Starting(Starting { seq, .. })
            | Self::Finished(Finished { seq, .. })
            | Self::SlotsMoving(SlotsMoving { seq, .. })
            | Self::SlotsMoved(SlotsMoved { seq, .. }) => *seq,
        }
    }

    /// What it is about.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Moving(_) => Kind::Moving,
            Self::Starting(starting) => starting.event.into(),
            Self::Finished(finished) => finished.event.into(),
            Self::SlotsMoving(_) | Self::SlotsMoved(_) => Kind::SlotMigration,
        }
    }

    /// The word on the wire.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Moving(_) => "MOVING",
            Self::Starting(Starting { event: ShardEvent::Migration, .. }) => "MIGRATING",
            Self::Starting(Starting { event: ShardEvent::Failover, .. }) => "FAILING_OVER",
            Self::Finished(Finished { event: ShardEvent::Migration, .. }) => "MIGRATED",
            Self::Finished(Finished { event: ShardEvent::Failover, .. }) => "FAILED_OVER",
            Self::SlotsMoving(_) => "SMIGRATING",
            Self::SlotsMoved(_) => "SMIGRATED",
        }
    }
}

fn moving(mut fields: Fields<'_>) -> Moving {
    let seq = fields.seq();
    let window = fields.seconds();
    Moving { seq, window, successor: fields.address() }
}

#[derive(Debug, Clone, Copy)]
enum Word {
    Moving,
    Starting(ShardEvent),
    Finished(ShardEvent),
    SlotsMoving,
    SlotsMoved,
}

impl Word {
    /// In any case, as command names are.
    fn read(text: &[u8]) -> Option<Self> {
        const WORDS: [(&[u8], Word); 7] = [
            (b"MOVING", Word::Moving),
            (b"MIGRATING", Word::Starting(ShardEvent::Migration)),
            (b"MIGRATED", Word::Finished(ShardEvent::Migration)),
            (b"FAILING_OVER", Word::Starting(ShardEvent::Failover)),
            (b"FAILED_OVER", Word::Finished(ShardEvent::Failover)),
            (b"SMIGRATING", Word::SlotsMoving),
            (b"SMIGRATED", Word::SlotsMoved),
        ];
        WORDS.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)).map(|(_, found)| *found)
    }
}

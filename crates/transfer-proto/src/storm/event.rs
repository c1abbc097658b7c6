//! What happens to a [`super::fleet::Fleet`], and what its processes are told.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use towline_sansio::Instant;

use crate::connect::{DownCause, Role};
use crate::identity::{LinkId, LinkKey};

/// A process of the fleet, by its number.
pub(crate) type Index = usize;

/// What a test or a drill lets happen at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Happening {
    /// A process needs a lane.
    Want { at: Index, key: LinkKey, queue_pairs: u16 },
    /// It does not any more.
    Unwant { at: Index, key: LinkKey },
    /// A process dies without a word.
    Crash(Index),
    /// It is back, in a new life.
    Start(Index),
    /// It leaves in order.
    Leave(Index),
    /// Its work takes so many times as long.
    Slow { at: Index, factor: u32 },
    /// The queue pairs of a lane fail at one end.
    LinkFails { at: Index, key: LinkKey },
    /// Somebody connects to it and says nothing.
    SilentClient { to: Index },
    /// Nothing passes in this direction, or it does again.
    Cut { from: Index, to: Index, is_cut: bool },
}

/// What a process was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    Ready {
        at: Index,
        key: LinkKey,
        role: Role,
    },
    Down {
        at: Index,
        key: LinkKey,
        cause: DownCause,
    },
    /// A write on a link that was ready failed.
    Broken {
        at: Index,
        key: LinkKey,
    },
}

#[derive(Debug)]
pub(super) enum Event {
    Happen(Happening),
    Wake { at: Index, life: u32 },
    Arrive { pipe: usize },
    Opened { pipe: usize },
    Bytes { pipe: usize, end: usize, bytes: Vec<u8> },
    Closed { pipe: usize, end: usize },
    Made { at: Index, life: u32, link: LinkId },
    Activated { at: Index, life: u32, link: LinkId, is_ok: bool },
}

/// What is to happen, by time and then by the order of scheduling.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    /// Time, number, place: small, because a heap moves its entries about.
    heap: BinaryHeap<Reverse<(Instant, u64, u32)>>,
    places: Vec<Option<Event>>,
    free: Vec<u32>,
    numbers: u64,
}

impl EventQueue {
    pub(super) fn push(&mut self, at: Instant, event: Event) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            u32::try_from(self.places.len() - 1).expect("invariant: fewer events than 2^32 fit memory")
        });
        self.places[place as usize] = Some(event);
        self.numbers += 1;
        self.heap.push(Reverse((at, self.numbers, place)));
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    pub(super) fn pop(&mut self) -> Option<(Instant, Event)> {
        let Reverse((at, _, place)) = self.heap.pop()?;
        self.free.push(place);
        Some((at, self.places[place as usize].take()?))
    }
}

/// What a trace keeps of an event.
pub(super) fn words(at: Instant, event: &Event) -> [u64; 4] {
    let (kind, a, b) = match event {
        Event::Happen(_) => (1, 0, 0),
        Event::Wake { at, life } => (2, *at as u64, u64::from(*life)),
        Event::Arrive { pipe } => (3, *pipe as u64, 0),
        Event::Opened { pipe } => (4, *pipe as u64, 0),
        Event::Bytes { pipe, end, bytes } => (5, *pipe as u64, (bytes.len() as u64) << 1 | *end as u64),
        Event::Closed { pipe, end } => (6, *pipe as u64, *end as u64),
        Event::Made { at, link, .. } => (7, *at as u64, link.0),
        Event::Activated { at, link, .. } => (8, *at as u64, link.0),
    };
    [at.nanos(), kind, a, b]
}

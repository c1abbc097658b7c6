//! What a stream's reader and all writers share.
//!
//! Owns: the two queues, their bound and the stream's state. Does **not** own slots.

use super::Config;
use super::batch::write_unit;
use super::image::Piece;
use crate::effects::{Effects, Scope};
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const PENDING: u8 = 0;
const ACTIVE: u8 = 1;
const CLOSED: u8 = 2;
const OVERRUN: u8 = 3;

/// Called under slots' locks: it must neither block nor take locks that are held while a slot is waited for.
pub type Wake = Arc<dyn Fn(Waiting) + Send + Sync>;

/// Why a stream's consumer is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// So many bytes of effects wait: the first came into an empty queue, or the sum passed a multiple of
    /// [`super::Config::wake_bytes`].
    Effects {
        /// All that wait.
        bytes: usize,
    },
    /// The stream has ended by [`super::Overrun`].
    Overrun,
}

/// What writers have left for the reader.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) images: Vec<u8>,
    pub(super) effects: Vec<u8>,
    /// Position of the last unit.
    pub(super) units: u64,
    /// The consumer is called when so many bytes of effects wait.
    wake_at: usize,
}

/// Keeps what all writers change away from what they all read: processors fetch memory in pairs of lines of 64 bytes.
#[repr(align(128))]
struct Apart<T>(T);

/// What a stream's reader and all writers share.
pub(crate) struct Shared {
    state: AtomicU8,
    pub(super) follows: bool,
    pub(super) reports_position: bool,
    pub(super) piece: Piece,
    bytes_max: usize,
    opened_ms: AtomicU64,
    /// Bytes held in slots because of writes.
    held: AtomicUsize,
    queue: Apart<Mutex<Queue>>,
    wake: Option<Wake>,
    wake_bytes: usize,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("state", &self.state).field("held", &self.held).finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            state: AtomicU8::new(PENDING),
            follows: config.follows,
            reports_position: config.reports_position,
            piece: config.piece,
            bytes_max: config.bytes_max,
            opened_ms: AtomicU64::new(0),
            held: AtomicUsize::new(0),
            queue: Apart(Mutex::new(Queue { units: config.position_start, ..Queue::default() })),
            wake: config.wake.clone(),
            wake_bytes: config.wake_bytes.max(1),
        }
    }

    /// The opening instant; called with all of the stream's slots held.
    pub(super) fn activate(&self, now_ms: u64) {
        self.opened_ms.store(now_ms, Ordering::Relaxed);
        self.state.store(ACTIVE, Ordering::Release);
    }

    pub(super) fn is_active(&self) -> bool {
        self.state.load(Ordering::Acquire) == ACTIVE
    }

    /// Whether slots may forget the stream.
    pub(crate) fn has_ended(&self) -> bool {
        match self.state.load(Ordering::Acquire) {
            OVERRUN => !self.reports_position,
            state => state >= CLOSED,
        }
    }

    /// Whether effects are recorded for the stream. One that reports positions goes on counting units after an overrun: it
    /// hands none of them out, but who executes commands must learn that it waits for something.
    #[inline]
    pub(crate) fn takes_effects(&self) -> bool {
        self.follows
            && match self.state.load(Ordering::Acquire) {
                ACTIVE => true,
                OVERRUN => self.reports_position,
                _ => false,
            }
    }

    pub(super) fn is_overrun(&self) -> bool {
        self.state.load(Ordering::Acquire) == OVERRUN
    }

    pub(super) fn close(&self) {
        self.state.store(CLOSED, Ordering::Release);
        *self.queue() = Queue::default();
    }

    pub(super) fn opened_ms(&self) -> u64 {
        self.opened_ms.load(Ordering::Relaxed)
    }

    /// The queue. Its lock is taken under slots' locks, never the other way round.
    pub(super) fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts bytes that are held in slots, or with a wrapped number, that no longer are.
    pub(super) fn hold(&self, bytes: usize) {
        self.held.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// The queue, for something to be added. Ends the stream instead when it holds more than it may: so a single unit or key
    /// may be larger than the bound.
    pub(super) fn admit(&self) -> Option<MutexGuard<'_, Queue>> {
        let mut queue = self.queue();
        if !self.is_active() {
            return None;
        }
        let bytes = queue.images.len() + queue.effects.len() + self.held_bytes();
        if bytes > self.bytes_max {
            self.state.store(OVERRUN, Ordering::Release);
            *queue = Queue { units: queue.units, ..Queue::default() };
            drop(queue);
            self.call_wake(Waiting::Overrun);
            return None;
        }
        Some(queue)
    }

    fn call_wake(&self, waiting: Waiting) {
        if let Some(wake) = &self.wake {
            wake(waiting);
        }
    }

    /// Queues the units, of each the effects that concern the stream; returns the position of the last that has any.
    pub(crate) fn append(&self, effects: &Effects, wants: impl Fn(Scope) -> bool) -> Option<u64> {
        let Some(mut queue) = self.admit() else { return self.count_lost(effects, wants) };
        if queue.effects.is_empty() {
            queue.wake_at = 0;
        }
        let before = queue.units;
        for unit in effects.units() {
            let Queue { effects: out, units, .. } = &mut *queue;
            *units += u64::from(write_unit(out, effects, unit, &wants));
        }
        if queue.units == before {
            return None;
        }
        let (position, bytes) = (queue.units, queue.effects.len());
        let wakes = bytes >= queue.wake_at;
        if wakes {
            queue.wake_at = (bytes / self.wake_bytes + 1).saturating_mul(self.wake_bytes);
        }
        drop(queue);
        if wakes {
            self.call_wake(Waiting::Effects { bytes });
        }
        Some(position)
    }

    /// The position of the last of units that came too late to be handed out.
    #[cold]
    fn count_lost(&self, effects: &Effects, wants: impl Fn(Scope) -> bool) -> Option<u64> {
        let mut queue = self.queue();
        if !self.takes_effects() {
            return None;
        }
        let is_wanted = |unit: &Range<usize>| unit.clone().any(|op| wants(effects.scope(op).0));
        let count = effects.units().filter(is_wanted).count() as u64;
        queue.units += count;
        (count > 0).then_some(queue.units)
    }

    /// Whether positions are wanted by whoever executes commands.
    pub(crate) fn reports_position(&self) -> bool {
        self.reports_position
    }
}

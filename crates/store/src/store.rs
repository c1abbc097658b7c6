//! The slots with their locks, and what is known of all of them together.
//!
//! Owns: the locks, key counts, which slots hold keys, and when each slot's next key expires. Does **not** own what
//! happens under a lock: see [`crate::keyspace`].
//!
//! Lock order: slots are locked in ascending order, always, by everybody; whoever needs one slot more lets go of all
//! and starts again. There is no other lock that is held while a slot's lock is waited for.

use crate::slot::SlotData;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use towline_cluster::{SLOT_COUNT, Slot};

/// Databases outside of cluster mode, as in Redis's default configuration.
pub const DB_COUNT: u8 = 16;
const WORDS: usize = SLOT_COUNT / 64;
/// `due` of a slot where nothing expires.
const NEVER: u64 = u64::MAX;

/// The guard of a slot.
pub(crate) type Guard<'s> = MutexGuard<'s, SlotData>;

/// A slot with its lock. What commands look at is the first of its two cache lines, which is one miss for a random key.
#[derive(Default)]
#[repr(align(64))]
struct SlotCell(Mutex<SlotData>);

const _: () = assert!(
    size_of::<SlotCell>() == 128
        && size_of::<Mutex<SlotData>>() - size_of::<SlotData>() + SlotData::HOT_BYTES <= 64
);

/// What deadlines are counted from when they are added up (November 2023), and how far they may be away from it to count
/// (34 years): so sixteen million of the farthest fit.
const DEADLINE_BASE_MS: u64 = 1_700_000_000_000;
const DEADLINE_SPAN_MS: u64 = 1 << 40;

fn deadline_part(at_ms: Option<u64>) -> u64 {
    at_ms.map_or(0, |at_ms| at_ms.saturating_sub(DEADLINE_BASE_MS).min(DEADLINE_SPAN_MS))
}

/// One bit for each slot.
struct SlotBits(Box<[AtomicU64]>);

impl Default for SlotBits {
    fn default() -> Self {
        Self((0..WORDS).map(|_| AtomicU64::new(0)).collect())
    }
}

impl SlotBits {
    fn set(&self, slot: Slot, on: bool) {
        let (word, bit) = (&self.0[usize::from(slot) / 64], 1u64 << (slot % 64));
        if on {
            word.fetch_or(bit, Ordering::Relaxed);
        } else {
            word.fetch_and(!bit, Ordering::Relaxed);
        }
    }

    #[inline]
    fn has(&self, slot: Slot) -> bool {
        self.0[usize::from(slot) / 64].load(Ordering::Relaxed) & (1 << (slot % 64)) != 0
    }

    /// The first slot from `from` on whose bit is set.
    fn next(&self, from: usize) -> Option<Slot> {
        let mut word = from / 64;
        let mut mask = u64::MAX << (from % 64);
        while word < WORDS {
            let bits = self.0[word].load(Ordering::Relaxed) & mask;
            if bits != 0 {
                return Some((word * 64) as Slot + bits.trailing_zeros() as Slot);
            }
            (word, mask) = (word + 1, u64::MAX);
        }
        None
    }
}

/// Keys that clients track.
#[derive(Default)]
struct TrackedCounters {
    keys: AtomicUsize,
    /// Pairs of a key and a client.
    items: AtomicUsize,
    slots: SlotBits,
}

#[derive(Default)]
struct DbCounters {
    keys: AtomicUsize,
    expires: AtomicUsize,
    /// Sum of [`deadline_part`] over the keys that expire.
    deadlines: AtomicU64,
    /// Hashes with a field that expires.
    expiring_hashes: AtomicUsize,
    /// One bit per slot that holds keys.
    occupied: SlotBits,
}

/// All keys of a node.
pub struct Store {
    slots: Box<[SlotCell]>,
    dbs: Box<[DbCounters]>,
    /// When the first key of each slot expires, in unix milliseconds; may be early, never late.
    due: Box<[AtomicU64]>,
    tracked: TrackedCounters,
    /// Slots whose keys count for nothing, see [`crate::keyspace::Keyspace::hide_slot`].
    hidden: SlotBits,
    /// Slot streams that are open.
    streams: Arc<AtomicUsize>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("keys", &self.len(0)).finish_non_exhaustive()
    }
}

impl Default for Store {
    fn default() -> Self {
        Self::new()
    }
}

impl Store {
    /// An empty store of [`DB_COUNT`] databases.
    pub fn new() -> Self {
        Self {
            slots: (0..SLOT_COUNT).map(|_| SlotCell::default()).collect(),
            dbs: (0..DB_COUNT).map(|_| DbCounters::default()).collect(),
            due: (0..SLOT_COUNT).map(|_| AtomicU64::new(NEVER)).collect(),
            tracked: TrackedCounters::default(),
            hidden: SlotBits::default(),
            streams: Arc::default(),
        }
    }

    #[inline]
    pub(crate) fn lock(&self, slot: Slot) -> Guard<'_> {
        // A panic under the lock leaves a whole slot behind: structures change by whole steps.
        self.slots[usize::from(slot)].0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many slot streams are open.
    pub(crate) fn streams(&self) -> &Arc<AtomicUsize> {
        &self.streams
    }

    /// Asks the processor to fetch the slot's head.
    #[inline]
    pub fn prefetch_slot(&self, slot: Slot) {
        crate::table::prefetch(std::ptr::from_ref(&self.slots[usize::from(slot)]).cast());
    }

    /// Keys in a database, expired ones that nobody met yet included.
    pub fn len(&self, db: u8) -> usize {
        self.dbs[usize::from(db)].keys.load(Ordering::Relaxed)
    }

    /// Whether a database holds no key.
    pub fn is_empty(&self, db: u8) -> bool {
        self.len(db) == 0
    }

    /// Keys of a database that expire.
    pub fn expires(&self, db: u8) -> usize {
        self.dbs[usize::from(db)].expires.load(Ordering::Relaxed)
    }

    /// Whether the slot's keys count for nothing at present; good under the slot's lock.
    #[inline]
    pub fn is_hidden(&self, slot: Slot) -> bool {
        self.hidden.has(slot)
    }

    /// Called under the slot's lock, with what was counted of it taken back or still to be counted.
    pub(crate) fn set_hidden(&self, slot: Slot, on: bool) {
        self.hidden.set(slot, on);
    }

    pub(crate) fn count_keys(&self, db: u8, slot: Slot, before: usize, after: usize) {
        if self.is_hidden(slot) {
            return;
        }
        let counters = &self.dbs[usize::from(db)];
        counters.keys.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
        if (before == 0) != (after == 0) {
            counters.occupied.set(slot, after > 0);
        }
    }

    /// The deadline of a key of this slot changed from `before` to `after`.
    pub(crate) fn count_expiry(&self, db: u8, slot: Slot, before: Option<u64>, after: Option<u64>) {
        if self.is_hidden(slot) {
            return;
        }
        let counters = &self.dbs[usize::from(db)];
        let added = isize::from(after.is_some()) - isize::from(before.is_some());
        counters.expires.fetch_add(added as usize, Ordering::Relaxed);
        let moved = deadline_part(after).wrapping_sub(deadline_part(before));
        counters.deadlines.fetch_add(moved, Ordering::Relaxed);
    }

    /// The first deadline of a hash's fields changed from `before` to `after`; the hash is in this slot.
    pub(crate) fn count_field_expiry(&self, db: u8, slot: Slot, before: Option<u64>, after: Option<u64>) {
        if self.is_hidden(slot) {
            return;
        }
        let added = isize::from(after.is_some()) - isize::from(before.is_some());
        self.dbs[usize::from(db)].expiring_hashes.fetch_add(added as usize, Ordering::Relaxed);
    }

    /// Nothing of the database expires any more.
    pub(crate) fn reset_expiry(&self, db: u8) {
        let counters = &self.dbs[usize::from(db)];
        counters.expires.store(0, Ordering::Relaxed);
        counters.deadlines.store(0, Ordering::Relaxed);
        counters.expiring_hashes.store(0, Ordering::Relaxed);
    }

    /// Milliseconds that the database's keys that expire have left on average; 0 if there are none.
    pub fn average_ttl_ms(&self, db: u8, now_ms: u64) -> u64 {
        let counters = &self.dbs[usize::from(db)];
        let count = counters.expires.load(Ordering::Relaxed) as u64;
        let average = counters.deadlines.load(Ordering::Relaxed).checked_div(count);
        average.map_or(0, |average| (DEADLINE_BASE_MS + average).saturating_sub(now_ms))
    }

    /// Hashes of the database with a field that expires.
    pub fn expiring_hashes(&self, db: u8) -> usize {
        self.dbs[usize::from(db)].expiring_hashes.load(Ordering::Relaxed)
    }

    /// Keys that some client tracks, and pairs of such a key and a client.
    pub fn tracked(&self) -> (usize, usize) {
        (self.tracked.keys.load(Ordering::Relaxed), self.tracked.items.load(Ordering::Relaxed))
    }

    /// Keys and pairs were added to, or taken from, the slot's tracked ones; `is_any` says whether it has any now.
    pub(crate) fn count_tracked(&self, slot: Slot, keys: isize, items: isize, is_any: bool) {
        self.tracked.keys.fetch_add(keys as usize, Ordering::Relaxed);
        self.tracked.items.fetch_add(items as usize, Ordering::Relaxed);
        self.tracked.slots.set(slot, is_any);
    }

    /// The first slot from `from` on with keys that a client tracks.
    pub fn next_tracked(&self, from: usize) -> Option<Slot> {
        self.tracked.slots.next(from)
    }

    /// The first slot from `from` on that holds keys of the database.
    pub fn next_occupied(&self, db: u8, from: usize) -> Option<Slot> {
        self.dbs[usize::from(db)].occupied.next(from)
    }

    pub(crate) fn swap_counters(&self, a: u8, b: u8) {
        let (a, b) = (&self.dbs[usize::from(a)], &self.dbs[usize::from(b)]);
        let swap = |x: &AtomicUsize, y: &AtomicUsize| {
            y.store(x.swap(y.load(Ordering::Relaxed), Ordering::Relaxed), Ordering::Relaxed);
        };
        let swap_words = |x: &AtomicU64, y: &AtomicU64| {
            y.store(x.swap(y.load(Ordering::Relaxed), Ordering::Relaxed), Ordering::Relaxed);
        };
        swap(&a.keys, &b.keys);
        swap(&a.expires, &b.expires);
        swap(&a.expiring_hashes, &b.expiring_hashes);
        swap_words(&a.deadlines, &b.deadlines);
        for (x, y) in a.occupied.0.iter().zip(&b.occupied.0) {
            swap_words(x, y);
        }
    }

    /// Notes that something in the slot expires at `at_ms`.
    pub(crate) fn note_due(&self, slot: Slot, at_ms: u64) {
        if self.is_hidden(slot) {
            return;
        }
        self.due[usize::from(slot)].fetch_min(at_ms, Ordering::Relaxed);
    }

    /// Sets the slot's next expiry exactly; called under its lock.
    pub(crate) fn reset_due(&self, slot: Slot, at_ms: Option<u64>) {
        let at_ms = at_ms.filter(|_| !self.is_hidden(slot));
        self.due[usize::from(slot)].store(at_ms.unwrap_or(NEVER), Ordering::Relaxed);
    }

    /// The first slot from `from` on with something that expires at or before `now_ms`. Costs one pass over 128 KiB at
    /// most, however many keys there are.
    pub fn next_due(&self, from: usize, now_ms: u64) -> Option<Slot> {
        let found = self.due[from..].iter().position(|due| due.load(Ordering::Relaxed) <= now_ms)?;
        Some((from + found) as Slot)
    }

    /// When the next key of all expires, in unix milliseconds; perhaps earlier, never later.
    pub fn next_due_ms(&self) -> Option<u64> {
        self.due.iter().map(|due| due.load(Ordering::Relaxed)).min().filter(|&at| at != NEVER)
    }
}

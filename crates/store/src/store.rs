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
use std::sync::{Mutex, MutexGuard, PoisonError};
use towline_cluster::{SLOT_COUNT, Slot};

/// Databases outside of cluster mode, as in Redis's default configuration.
pub const DB_COUNT: u8 = 16;
const WORDS: usize = SLOT_COUNT / 64;
/// `due` of a slot where nothing expires.
const NEVER: u64 = u64::MAX;

/// The guard of a slot.
pub(crate) type Guard<'s> = MutexGuard<'s, SlotData>;

struct DbCounters {
    keys: AtomicUsize,
    expires: AtomicUsize,
    /// One bit per slot that holds keys.
    occupied: Box<[AtomicU64]>,
}

impl Default for DbCounters {
    fn default() -> Self {
        let occupied = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        Self { keys: AtomicUsize::new(0), expires: AtomicUsize::new(0), occupied }
    }
}

/// All keys of a node.
pub struct Store {
    slots: Box<[Mutex<SlotData>]>,
    dbs: Box<[DbCounters]>,
    /// When the first key of each slot expires, in unix milliseconds; may be early, never late.
    due: Box<[AtomicU64]>,
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
            slots: (0..SLOT_COUNT).map(|_| Mutex::default()).collect(),
            dbs: (0..DB_COUNT).map(|_| DbCounters::default()).collect(),
            due: (0..SLOT_COUNT).map(|_| AtomicU64::new(NEVER)).collect(),
        }
    }

    #[inline]
    pub(crate) fn lock(&self, slot: Slot) -> Guard<'_> {
        // A panic under the lock leaves a whole slot behind: structures change by whole steps.
        self.slots[usize::from(slot)].lock().unwrap_or_else(PoisonError::into_inner)
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

    pub(crate) fn count_keys(&self, db: u8, slot: Slot, before: usize, after: usize) {
        let counters = &self.dbs[usize::from(db)];
        counters.keys.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
        let (word, bit) = (&counters.occupied[usize::from(slot) / 64], 1u64 << (slot % 64));
        if before == 0 && after > 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        } else if before > 0 && after == 0 {
            word.fetch_and(!bit, Ordering::Relaxed);
        }
    }

    pub(crate) fn count_expires(&self, db: u8, added: isize) {
        self.dbs[usize::from(db)].expires.fetch_add(added as usize, Ordering::Relaxed);
    }

    /// The first slot from `from` on that holds keys of the database.
    pub fn next_occupied(&self, db: u8, from: usize) -> Option<Slot> {
        let occupied = &self.dbs[usize::from(db)].occupied;
        let mut word = from / 64;
        let mut mask = u64::MAX << (from % 64);
        while word < WORDS {
            let bits = occupied[word].load(Ordering::Relaxed) & mask;
            if bits != 0 {
                return Some((word * 64) as Slot + bits.trailing_zeros() as Slot);
            }
            (word, mask) = (word + 1, u64::MAX);
        }
        None
    }

    pub(crate) fn swap_counters(&self, a: u8, b: u8) {
        let (a, b) = (&self.dbs[usize::from(a)], &self.dbs[usize::from(b)]);
        let swap = |x: &AtomicUsize, y: &AtomicUsize| {
            y.store(x.swap(y.load(Ordering::Relaxed), Ordering::Relaxed), Ordering::Relaxed);
        };
        swap(&a.keys, &b.keys);
        swap(&a.expires, &b.expires);
        for (x, y) in a.occupied.iter().zip(&b.occupied) {
            y.store(x.swap(y.load(Ordering::Relaxed), Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Notes that something in the slot expires at `at_ms`.
    pub(crate) fn note_due(&self, slot: Slot, at_ms: u64) {
        self.due[usize::from(slot)].fetch_min(at_ms, Ordering::Relaxed);
    }

    /// Sets the slot's next expiry exactly; called under its lock.
    pub(crate) fn reset_due(&self, slot: Slot, at_ms: Option<u64>) {
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

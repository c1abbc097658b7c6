//! The slot stream: a snapshot of some slots as they were at one instant, then everything that happens to them, in order.
//!
//! Owns: walking the slots while writers go on, saving what they are about to change, queueing effects, and the bounds of
//! all that. Does **not** own files, sockets or threads: a consumer calls [`SlotStream::next`] from wherever it likes.
//! Saving to disk, rewriting the log, feeding a replica and moving slots are four consumers.
//!
//! # What a consumer gets
//!
//! [`Batch`]es with two lanes. The *images* of all batches together are the state of the slots at the opening instant, each key
//! once. The *units* are the effects of each command or transaction since then, numbered from [`Config::position_start`] on, in an order that is that of
//! execution for every slot. So images, and then the units up to any cut, are the state at that cut; it is for the
//! consumer to apply them in that order (a log rewrite puts the lanes into two files, a replica applies the images as
//! they come and keeps the units until [`Progress::is_snapshot_done`]). Keys that had expired at the opening instant have no
//! image. Whoever applies images and units must not expire keys by its own clock: expiry and eviction are effects.
//!
//! ```
//! use towline_store::store::Store;
//! use towline_store::stream::{Batch, Config, Image, SlotStream};
//!
//! let store = Store::new();
//! let mut stream = SlotStream::open(&store, 0..16384, 1_700_000_000_000, &Config::default());
//! let mut batch = Batch::default();
//! loop {
//!     let progress = stream.next(&store, &mut batch)?;
//!     for image in batch.images() {
//!         match image {
//!             Image::Key { head, object } => println!("{:?} is {object:?}", head.key),
//!             Image::Begin { head, object } => println!("{:?} begins with {object:?}", head.key),
//!             Image::Part { elements } => println!("and goes on with {elements:?}"),
//!             Image::End => println!("and is complete"),
//!         }
//!     }
//!     for unit in batch.units() {
//!         unit.effects().for_each(|effect| println!("{} in db {}: {:?}", unit.position, effect.db, effect.command));
//!     }
//!     if progress.is_snapshot_done && batch.is_empty() {
//!         break;
//!     }
//! }
//! stream.close(&store);
//! # Ok::<(), towline_store::stream::Overrun>(())
//! ```
//!
//! # How the instant is kept
//!
//! No fork, no copy of the data set, no version in entries. A slot is walked in an order of its hashes that splits of its
//! table do not disturb; whether the walk has passed a key is a question of its hash alone. A writer that is about to
//! change, create or remove a key in front of the walk writes the key's image first (its *pre-image*) and marks its hash, so that
//! the walk passes over it. Values of more than a [`Piece`] are sent in parts, and the same is done
//! with their elements: what a writer pays is of the order of its own change, never of the value. Values that are
//! removed and tables that are flushed are handed to the stream instead of being freed; when databases are swapped, the walks
//! follow their tables.
//!
//! # Bounds
//!
//! * Under one hold of a slot's lock, one [`Piece`] is written, or one element that is larger.
//!   The first pre-image of a value that is about to be renamed or moved is written as a whole.
//! * The opening instant holds all of the stream's slots for as long as locking them takes (about 1 ms for all 16384).
//! * A stream holds at most [`Config::bytes_max`], and one unit or key more: its queues, marks, elements saved in slots.
//!   Beyond that it ends with [`Overrun`], and writers are not held up. What was removed or flushed after the opening instant stays until it is sent
//!   and is not counted: it was counted before.
//!
//! Without a stream, a write pays one test of a pointer in its slot.

mod batch;
mod image;
mod link;
mod partial;
mod picture;
mod shared;
mod spans;
mod tap;

#[cfg(test)]
mod tests;

pub use batch::{Batch, Effect, Image, KeyHead, Malformed, Unit, restore_payload};
pub use image::Piece;
pub(crate) use image::payload;
pub(crate) use link::PartialLink;
pub use picture::Picture;
pub(crate) use shared::Shared;
pub use shared::{Waiting, Wake};
pub(crate) use tap::{SlotTap, Taps};

use crate::slot::SlotData;
use crate::store::Store;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use towline_cluster::{SLOT_COUNT, Slot};

/// Default of [`Config::bytes_max`]: what a replica of Redis may be behind, and less than a percent of a node of 8 GiB.
pub const BYTES_MAX_DEFAULT: usize = 64 << 20;
/// Default of [`Config::batch_bytes`]: large enough that a consumer's system call or message does not matter.
pub const BATCH_BYTES_DEFAULT: usize = 256 << 10;

/// Room for effects that a batch keeps for the next ones.
const BATCH_KEPT_BYTES: usize = 1 << 20;

/// How a stream behaves.
#[derive(Clone)]
pub struct Config {
    /// Whether there is a tail. Without one no effects are recorded: for a snapshot alone.
    pub follows: bool,
    /// Whether there is a snapshot. Without one the stream consists of effects from the opening instant on.
    pub has_snapshot: bool,
    /// Bytes that the stream may hold at most, see [the module](self). Default [`BYTES_MAX_DEFAULT`].
    pub bytes_max: usize,
    /// Bytes of a batch's images from which on it is not filled further. Default [`BATCH_BYTES_DEFAULT`].
    pub batch_bytes: usize,
    /// How much is written under one hold of a slot's lock.
    pub piece: Piece,
    /// Whether the position of the last unit is left in [`crate::changes::Changes::position`]: for a log whose
    /// replies wait for the disk.
    pub reports_position: bool,
    /// The position before the first unit's. Default 0. A log that was interrupted goes on from where it was, so that a position
    /// means the same all along.
    pub position_start: u64,
    /// Called when effects wait to be fetched, or the stream has ended.
    pub wake: Option<Wake>,
    /// How many bytes of effects come between two calls of `wake` while nothing is fetched. Default [`BYTES_MAX_DEFAULT`]:
    /// there is a call for the first only.
    pub wake_bytes: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            follows: true,
            has_snapshot: true,
            bytes_max: BYTES_MAX_DEFAULT,
            batch_bytes: BATCH_BYTES_DEFAULT,
            piece: Piece::default(),
            reports_position: false,
            position_start: 0,
            wake: None,
            wake_bytes: BYTES_MAX_DEFAULT,
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("follows", &self.follows)
            .field("has_snapshot", &self.has_snapshot)
            .field("bytes_max", &self.bytes_max)
            .field("batch_bytes", &self.batch_bytes)
            .field("piece", &self.piece)
            .field("reports_position", &self.reports_position)
            .field("position_start", &self.position_start)
            .field("wake_bytes", &self.wake_bytes)
            .finish_non_exhaustive()
    }
}

/// The stream held more than it may, because its consumer did not keep up with the writers. It has ended; a new one may be
/// opened. The consumer's fault, and retryable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the stream's consumer was too slow, and its backlog too large")]
pub struct Overrun;

/// Sees whether a stream has ended with [`Overrun`].
#[derive(Debug, Clone)]
pub struct Watch(Arc<Shared>);

impl Watch {
    /// Whether it holds more than it may and has ended.
    ///
    /// # Errors
    /// [`Overrun`] if so.
    pub fn check(&self) -> Result<(), Overrun> {
        if self.0.is_overrun() { Err(Overrun) } else { Ok(()) }
    }
}

/// How far a stream has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Whether this batch and those before it hold the whole snapshot.
    pub is_snapshot_done: bool,
    /// Slots whose snapshot is complete, of [`SlotStream::slot_count`].
    pub slots_done: usize,
    /// Position of the last unit in this batch or one before it; [`Config::position_start`] before the first.
    pub position: u64,
}

/// A stream of some slots; see the module's description. [`SlotStream::close`] ends it; one that is dropped lets
/// writers go on as well, but its memory in the slots is freed by the writers' next visits.
#[derive(Debug)]
pub struct SlotStream {
    shared: Arc<Shared>,
    slots: Vec<Slot>,
    batch_bytes: usize,
    /// Index of the slot that is walked.
    at: usize,
    /// Whether a value in parts was begun and not ended.
    is_open: bool,
    position: u64,
    /// Streams that are open at the store.
    open: Arc<AtomicUsize>,
}

impl SlotStream {
    /// Opens a stream over `slots`, which need not be sorted or distinct, at the instant `now_ms` (unix milliseconds). The
    /// caller holds no slot.
    pub fn open(store: &Store, slots: impl IntoIterator<Item = Slot>, now_ms: u64, config: &Config) -> Self {
        Self::open_at(store, slots, now_ms, config, |_| ()).0
    }

    /// Opens another stream over the same slots, and tells the position of the last unit of this one at the opening instant of
    /// the other: what that has in its snapshot are this stream's units up to there. For the base of a log that goes on.
    pub fn open_beside(&self, store: &Store, now_ms: u64, config: &Config) -> (Self, u64) {
        Self::open_at(store, self.slots.iter().copied(), now_ms, config, |_| self.shared.queue().units)
    }

    /// Opens a stream over the same slots in the place of this one, typically because that has ended with [`Overrun`]. Its
    /// positions go on where this one's ended, [`Config::position_start`] notwithstanding: with
    /// [`Config::reports_position`], units that came after the overrun were counted, though they are lost.
    pub fn reopen(self, store: &Store, now_ms: u64, config: &Config) -> Self {
        let slots = self.slots.iter().copied();
        let (mut stream, position) = Self::open_at(store, slots, now_ms, config, |opened| {
            let units = self.shared.queue().units;
            opened.queue().units = units;
            self.shared.close();
            units
        });
        stream.position = position;
        self.close(store);
        stream
    }

    fn open_at<T>(
        store: &Store,
        slots: impl IntoIterator<Item = Slot>,
        now_ms: u64,
        config: &Config,
        at_instant: impl FnOnce(&Shared) -> T,
    ) -> (Self, T) {
        let mut slots: Vec<Slot> = slots.into_iter().filter(|&slot| usize::from(slot) < SLOT_COUNT).collect();
        slots.sort_unstable();
        slots.dedup();
        let shared = Arc::new(Shared::new(config));
        // What takes memory is done slot by slot, so that all slots together are held for a moment only.
        for &slot in &slots {
            let tap = SlotTap::new(Arc::clone(&shared), config.has_snapshot);
            store.lock(slot).listen(tap);
        }
        let guards: Vec<_> = slots.iter().map(|&slot| store.lock(slot)).collect();
        shared.activate(now_ms);
        let seen = at_instant(&shared);
        let open = Arc::clone(store.streams());
        open.fetch_add(1, Ordering::Relaxed);
        drop(guards);
        let at = if config.has_snapshot { 0 } else { slots.len() };
        let (batch_bytes, position) = (config.batch_bytes, config.position_start);
        (Self { shared, slots, batch_bytes, at, is_open: false, position, open }, seen)
    }

    /// Number of slots.
    pub fn slot_count(&self) -> usize {
        self.slots.len()
    }

    /// Whether effects wait to be fetched, or the stream has ended by [`Overrun`].
    pub fn has_effects(&self) -> bool {
        !self.shared.queue().effects.is_empty() || self.shared.is_overrun()
    }

    /// Bytes that the stream holds at present, as [`Config::bytes_max`] counts them.
    pub fn held_bytes(&self) -> usize {
        let queue = self.shared.queue();
        queue.images.len() + queue.effects.len() + self.shared.held_bytes()
    }

    /// Bytes that wait to be fetched: effects, and images that writers have saved.
    pub fn waiting_bytes(&self) -> usize {
        let queue = self.shared.queue();
        queue.images.len() + queue.effects.len()
    }

    /// To see with, from elsewhere, whether the stream has ended: for a consumer that waits for something else.
    pub fn watch(&self) -> Watch {
        Watch(Arc::clone(&self.shared))
    }

    /// Fills `batch` with what is there: the units that were queued, and while the snapshot lasts, images until the batch is
    /// full. An empty batch means that there is nothing at present. Holds one slot at a time; the caller must hold none.
    ///
    /// # Errors
    /// [`Overrun`]: the stream has ended, and what it yielded is incomplete.
    pub fn next(&mut self, store: &Store, batch: &mut Batch) -> Result<Progress, Overrun> {
        batch.images.clear();
        batch.effects.clear();
        batch.effects.shrink_to(BATCH_KEPT_BYTES);
        batch.position = self.position;
        {
            let mut queue = self.shared.queue();
            if !self.is_open {
                // Between `Begin` and `End` there is no other key: what writers saved waits.
                std::mem::swap(&mut queue.images, &mut batch.images);
            }
            std::mem::swap(&mut queue.effects, &mut batch.effects);
            self.position = queue.units;
        }
        let was_done = self.at == self.slots.len();
        while self.at < self.slots.len() && batch.images.len() < self.batch_bytes {
            let slot = self.slots[self.at];
            let mut guard = store.lock(slot);
            let SlotData { tables, taps, .. } = &mut *guard;
            let tap = taps.as_mut().and_then(|taps| taps.of(&self.shared));
            let is_done =
                tap.is_none_or(|tap| tap.advance(slot, tables, &mut batch.images, &mut self.is_open));
            if is_done {
                self.at += 1;
                if !self.shared.follows
                    && let Some(taps) = taps
                {
                    taps.remove(&self.shared);
                    guard.drop_empty_taps();
                }
            }
        }
        if self.shared.is_overrun() {
            return Err(Overrun);
        }
        // What writers saved while the last slots were walked comes with the next batch.
        let is_snapshot_done = was_done;
        Ok(Progress { is_snapshot_done, slots_done: self.at, position: self.position })
    }

    /// Ends the stream and frees what it holds in the slots. The caller holds no slot.
    pub fn close(self, store: &Store) {
        self.shared.close();
        for &slot in &self.slots {
            store.lock(slot).unlisten(&self.shared);
        }
    }
}

impl Drop for SlotStream {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
        self.shared.close();
    }
}

//! A stream's side of a slot: what of the slot it has seen, under the slot's lock.
//!
//! Owns: the walk over the slot's keys, saving keys that change before the walk reaches them, following tables that are
//! flushed or swapped. Does **not** own the stream as a whole (see [`super::shared`]) nor effects.

use super::batch::write_key;
use super::image::{Piece, is_piecewise};
use super::partial::Partial;
use super::shared::Shared;
use crate::entry::Entry;
use crate::slot::Tables;
use crate::table::{Position, Table};
use crate::value::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use towline_cluster::Slot;

/// Heap bytes of a mark: eight bytes in a B-tree node that is two thirds full.
const MARK_BYTES: usize = 14;

/// Where the keys of a database are now.
#[derive(Debug)]
enum Source {
    Live(u8),
    Flushed(Arc<Table<Entry>>),
}

/// The walk over what one database held at the opening instant.
#[derive(Debug)]
struct Walk {
    /// The database at the opening instant.
    db: u8,
    source: Source,
    position: Position,
    /// Hashes in front of the walk whose keys of the opening instant were saved: what is there now came later.
    marks: BTreeSet<u64>,
}

#[derive(Debug, Default)]
struct Walking {
    walks: Vec<Walk>,
    partials: Vec<Partial>,
    held_bytes: usize,
}

#[derive(Debug)]
enum Images {
    /// Nothing was written since the opening instant, and nothing sent.
    Untouched,
    Walking(Box<Walking>),
    Done,
}

/// A stream's side of a slot.
#[derive(Debug)]
pub(crate) struct SlotTap {
    pub(super) shared: Arc<Shared>,
    images: Images,
    /// Database and hash of keys that were left out because they had expired at the opening instant. Whoever still finds one
    /// alive, because its clock is a little behind, sends it as an effect.
    left_out: BTreeSet<(u8, u64)>,
}

impl SlotTap {
    pub(crate) fn new(shared: Arc<Shared>, has_snapshot: bool) -> Self {
        let images = if has_snapshot { Images::Untouched } else { Images::Done };
        Self { shared, images, left_out: BTreeSet::new() }
    }

    /// The stream.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Whether the stream follows, in which case effects go to it.
    pub(crate) fn follows(&self) -> bool {
        self.shared.takes_effects()
    }

    /// The stream, if it follows and there is nothing that it has to be told before a key changes.
    pub(crate) fn into_follower(self) -> Result<Arc<Shared>, Self> {
        if self.is_settled() { Ok(self.shared) } else { Err(self) }
    }

    fn is_settled(&self) -> bool {
        matches!(self.images, Images::Done) && self.left_out.is_empty() && self.shared.follows
    }

    /// What is still to be walked, fixed at the first touch after the opening instant.
    fn walking(&mut self, tables: &Tables) -> Option<&mut Walking> {
        if let Images::Untouched = self.images {
            let walk = |db| Walk {
                db,
                source: Source::Live(db),
                position: Position::default(),
                marks: BTreeSet::new(),
            };
            let has_keys = |db: &u8| tables.db(*db).is_some_and(|part| !part.table.is_empty());
            let walks = tables.dbs().filter(has_keys).map(walk).collect();
            self.images = Images::Walking(Box::new(Walking { walks, ..Walking::default() }));
        }
        match &mut self.images {
            Images::Walking(walking) => Some(walking),
            Images::Untouched | Images::Done => None,
        }
    }

    /// A key of this database and hash is about to be changed, removed or created. Says whether the stream left it out.
    fn save(&mut self, slot: Slot, tables: &Tables, db: u8, hash: u64, now_ms: u64) -> bool {
        let is_left_out = self.left_out.remove(&(db, hash));
        let shared = Arc::clone(&self.shared);
        let Some(walking) = self.walking(tables) else { return is_left_out };
        let Walking { walks, partials, held_bytes } = walking;
        let is_live = |walk: &&mut Walk| matches!(walk.source, Source::Live(live) if live == db);
        let Some(walk) = walks.iter_mut().find(is_live) else { return is_left_out };
        if walk.position.has_passed(hash) || !walk.marks.insert(hash) {
            return is_left_out;
        }
        *held_bytes = held_bytes.wrapping_add(MARK_BYTES);
        shared.hold(MARK_BYTES);
        let Some(part) = tables.db(db) else { return is_left_out };
        let Some(mut queue) = shared.admit() else { return is_left_out };
        let mut skips = false;
        part.table.for_each_of_hash(hash, &mut |entry| {
            if entry.expires_at_ms().is_some_and(|at| at <= now_ms.min(shared.opened_ms())) {
                skips = true;
            } else if is_piecewise(entry.value_ref(), shared.piece) {
                partials.push(Partial::new(walk.db, db, hash, entry));
            } else {
                write_key(&mut queue.images, slot, walk.db, entry);
            }
        });
        drop(queue);
        if skips {
            self.left_out.insert((db, hash));
        }
        is_left_out
    }

    /// Lets `change` at each large value on its way whose key of today this is.
    pub(super) fn for_each_partial(
        &mut self,
        db: u8,
        hash: u64,
        key: &[u8],
        mut change: impl FnMut(&mut Partial),
    ) {
        let Images::Walking(walking) = &mut self.images else { return };
        for partial in walking.partials.iter_mut().filter(|partial| partial.is_at(db, hash, key)) {
            let before = partial.held_bytes();
            change(partial);
            let added = partial.held_bytes().wrapping_sub(before);
            walking.held_bytes = walking.held_bytes.wrapping_add(added);
            self.shared.hold(added);
        }
    }

    fn has_partial(&self, db: u8, hash: u64, key: &[u8]) -> bool {
        match &self.images {
            Images::Walking(walking) => walking.partials.iter().any(|partial| partial.is_at(db, hash, key)),
            Images::Untouched | Images::Done => false,
        }
    }

    fn needs_table(&mut self, tables: &Tables, db: u8) -> bool {
        let Some(walking) = self.walking(tables) else { return false };
        let is_live = |walk: &Walk| matches!(walk.source, Source::Live(live) if live == db);
        !walking.partials.is_empty() || walking.walks.iter().any(is_live)
    }

    fn flushed(&mut self, db: u8, table: &Arc<Table<Entry>>) {
        let Images::Walking(walking) = &mut self.images else { return };
        for walk in &mut walking.walks {
            if matches!(walk.source, Source::Live(live) if live == db) {
                walk.source = Source::Flushed(Arc::clone(table));
            }
        }
        walking.partials.iter_mut().for_each(|partial| partial.flushed(db, table));
    }

    fn swapped(&mut self, tables: &Tables, a: u8, b: u8) {
        let other = |db: u8| match db {
            db if db == a => b,
            db if db == b => a,
            db => db,
        };
        self.left_out =
            std::mem::take(&mut self.left_out).into_iter().map(|(db, hash)| (other(db), hash)).collect();
        let Some(walking) = self.walking(tables) else { return };
        for walk in &mut walking.walks {
            if let Source::Live(live) = &mut walk.source {
                *live = other(*live);
            }
        }
        walking.partials.iter_mut().for_each(|partial| partial.swapped(a, b));
    }

    /// Writes what one hold of the lock allows; `true` when all of the slot is written. `is_open` says whether a value in
    /// parts was begun and not ended.
    pub(super) fn advance(
        &mut self,
        slot: Slot,
        tables: &Tables,
        out: &mut Vec<u8>,
        is_open: &mut bool,
    ) -> bool {
        let shared = Arc::clone(&self.shared);
        let mut left_out = std::mem::take(&mut self.left_out);
        let Some(walking) = self.walking(tables) else {
            self.left_out = left_out;
            return true;
        };
        let is_done = loop {
            if let Some(partial) = walking.partials.first_mut() {
                let before = partial.held_bytes();
                *is_open = !partial.write_piece(slot, tables, out, shared.piece);
                let after = if *is_open { partial.held_bytes() } else { 0 };
                walking.held_bytes = walking.held_bytes.wrapping_add(after.wrapping_sub(before));
                shared.hold(after.wrapping_sub(before));
                if !*is_open {
                    walking.partials.remove(0);
                }
                break walking.partials.is_empty() && walking.walks.is_empty();
            }
            let Some(walk) = walking.walks.first_mut() else { break true };
            let is_full = walk.advance(slot, tables, &shared, out, &mut walking.partials, &mut left_out);
            if walk.position.is_done() {
                walking.walks.remove(0);
            }
            if is_full {
                break walking.partials.is_empty() && walking.walks.is_empty();
            }
        };
        let held = walking.held_bytes;
        self.left_out = left_out;
        if is_done {
            self.images = Images::Done;
            shared.hold(0usize.wrapping_sub(held));
        }
        is_done
    }
}

impl Walk {
    /// Writes the images of the next keys; `true` when that was all that one hold of the lock allows.
    fn advance(
        &mut self,
        slot: Slot,
        tables: &Tables,
        shared: &Shared,
        out: &mut Vec<u8>,
        partials: &mut Vec<Partial>,
        left_out: &mut BTreeSet<(u8, u64)>,
    ) -> bool {
        let Self { db, source, position, marks } = self;
        let (table, live, flushed) = match source {
            Source::Live(live) => match tables.db(*live) {
                Some(part) => (&part.table, *live, None),
                None => {
                    *position = Position::done();
                    return false;
                }
            },
            Source::Flushed(table) => (&**table, *db, Some(&*table)),
        };
        let Piece { elements: elements_max, bytes } = shared.piece;
        let (mut elements, end, opened_ms) = (0, out.len().saturating_add(bytes), shared.opened_ms());
        let mut is_full = false;
        table.walk(position, &mut |hash, entry| {
            let value = entry.value_ref();
            if marks.contains(&hash) {
                elements += 1;
            } else if entry.expires_at_ms().is_some_and(|at| at <= opened_ms) {
                elements += 1;
                if flushed.is_none() {
                    left_out.insert((live, hash));
                }
            } else if is_piecewise(value, shared.piece) {
                partials.push(match flushed {
                    None => Partial::new(*db, live, hash, entry),
                    Some(table) => Partial::in_flushed(*db, hash, entry, table),
                });
                elements = elements_max;
            } else {
                write_key(out, slot, *db, entry);
                elements += value.elements();
            }
            is_full = elements >= elements_max || out.len() >= end;
            !is_full
        });
        is_full
    }
}

/// All streams that listen at a slot.
#[derive(Debug, Default)]
pub(crate) struct Taps {
    taps: Vec<SlotTap>,
}

impl Taps {
    /// Adds a stream's side.
    pub(crate) fn add(&mut self, tap: SlotTap) {
        self.taps.push(tap);
    }

    /// Takes a stream's side out.
    pub(crate) fn remove(&mut self, shared: &Arc<Shared>) {
        self.taps.retain(|tap| !Arc::ptr_eq(&tap.shared, shared));
    }

    /// This stream's side.
    pub(super) fn of(&mut self, shared: &Arc<Shared>) -> Option<&mut SlotTap> {
        self.taps.iter_mut().find(|tap| Arc::ptr_eq(&tap.shared, shared))
    }

    /// Whether this stream listens.
    pub(crate) fn has(&self, shared: &Arc<Shared>) -> bool {
        self.taps.iter().any(|tap| Arc::ptr_eq(&tap.shared, shared))
    }

    /// Takes out a stream that only follows.
    pub(crate) fn take_follower(&mut self) -> Option<Arc<Shared>> {
        let at = self.taps.iter().position(SlotTap::is_settled)?;
        Some(self.taps.remove(at).shared)
    }

    /// Whether nobody listens.
    pub(crate) fn is_empty(&self) -> bool {
        self.taps.is_empty()
    }

    /// All sides.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &SlotTap> {
        self.taps.iter()
    }

    /// Forgets streams that have ended.
    pub(crate) fn forget_ended(&mut self) {
        self.taps.retain(|tap| !tap.shared.has_ended());
    }

    fn active(&mut self) -> impl Iterator<Item = &mut SlotTap> {
        self.taps.iter_mut().filter(|tap| tap.shared.is_active())
    }

    /// A key is about to be changed, removed or created: what the streams still need of it is saved. Says whether one that
    /// follows has left it out, so that it has to hear of it now.
    pub(crate) fn save(&mut self, slot: Slot, tables: &Tables, db: u8, hash: u64, now_ms: u64) -> bool {
        let mut is_left_out = false;
        for tap in self.active() {
            is_left_out |= tap.save(slot, tables, db, hash, now_ms) && tap.follows();
        }
        is_left_out
    }

    /// Whether the value of this key is on its way in pieces.
    pub(crate) fn has_partial(&self, db: u8, hash: u64, key: &[u8]) -> bool {
        self.taps.iter().any(|tap| tap.has_partial(db, hash, key))
    }

    /// Lets `change` at each large value on its way whose key this is.
    pub(super) fn for_each_partial(
        &mut self,
        db: u8,
        hash: u64,
        key: &[u8],
        mut change: impl FnMut(&mut Partial),
    ) {
        for tap in &mut self.taps {
            tap.for_each_partial(db, hash, key, &mut change);
        }
    }

    /// The key's value was removed and goes to the streams that still need it.
    pub(crate) fn keep(&mut self, db: u8, hash: u64, key: &[u8], value: Value) {
        let value = Arc::new(value);
        self.for_each_partial(db, hash, key, |partial| partial.keep(&value));
    }

    /// The key's value is about to belong to another key.
    pub(crate) fn save_all(&mut self, tables: &Tables, db: u8, hash: u64, key: &[u8]) {
        self.for_each_partial(db, hash, key, |partial| partial.save_all(tables));
    }

    /// Whether the table of this database, which is about to be flushed, is to be handed to [`Taps::flushed`].
    pub(crate) fn needs_table(&mut self, tables: &Tables, db: u8) -> bool {
        let mut needs = false;
        for tap in self.active() {
            needs |= tap.needs_table(tables, db);
        }
        needs
    }

    /// A table was taken out of the keyspace.
    pub(crate) fn flushed(&mut self, db: u8, table: &Arc<Table<Entry>>) {
        self.active().for_each(|tap| tap.flushed(db, table));
    }

    /// Two databases are about to be exchanged.
    pub(crate) fn swap(&mut self, tables: &Tables, a: u8, b: u8) {
        self.active().for_each(|tap| tap.swapped(tables, a, b));
    }
}

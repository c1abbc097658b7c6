//! The database as a whole: flushing, swapping, scanning, drawing.
//!
//! Owns: walks over many slots. Does **not** own single keys.

use super::Keyspace;
use crate::entry::Entry;
use crate::hasher::hash64;
use crate::table::Ref;
use std::sync::Arc;
use towline_cluster::{SLOT_COUNT, Slot};

impl Keyspace<'_> {
    /// Empties the database; all slots must be held. The old tables go to [`crate::changes::Changes::tables`], to be freed elsewhere.
    pub fn flush(&mut self) {
        assert!(self.holds_all(), "invariant: a flush holds all slots");
        self.changes.flushed = true;
        let db = self.db;
        let (mut from, mut is_empty) = (0, true);
        while let Some(slot) = self.store.next_occupied(db, from) {
            is_empty = false;
            let index = usize::from(slot);
            from = index + 1;
            let guard = &mut **self.guard_mut(index);
            let needs_table = guard.taps.as_mut().is_some_and(|taps| taps.needs_table(&guard.tables, db));
            let part = guard.take(db);
            let mut untracked = (0, 0);
            if let Some(hooks) = &mut guard.hooks {
                hooks.touch_db(db, |key| part.table.get(hash64(key), key).is_some());
                untracked = hooks.clear_trackers();
            }
            let next = guard.next_expiry();
            self.store.reset_due(slot, next);
            if untracked.0 > 0 {
                self.store.count_tracked(slot, -(untracked.0 as isize), -(untracked.1 as isize), false);
            }
            self.store.count_keys(db, slot, part.table.len(), 0);
            if needs_table && let Some(taps) = &mut self.guard_mut(index).taps {
                taps.flushed(db, &Arc::new(part.table));
            } else {
                self.changes.tables.push(part.table);
            }
        }
        self.store.reset_expiry(db);
        if !is_empty {
            self.record_for_all(db, "FLUSHDB", b"");
        }
    }

    /// Exchanges two databases; all slots must be held.
    pub fn swap(&mut self, a: u8, b: u8) {
        assert!(self.holds_all(), "invariant: a swap holds all slots");
        if a == b {
            return;
        }
        for index in 0..SLOT_COUNT {
            let guard = &mut **self.guard_mut(index);
            if let Some(taps) = &mut guard.taps {
                taps.swap(&guard.tables, a, b);
            }
            let (part_a, part_b) = (guard.take(a), guard.take(b));
            if let Some(hooks) = &guard.hooks {
                let exists = |key: &[u8]| {
                    [&part_a, &part_b].iter().any(|part| part.table.get(hash64(key), key).is_some())
                };
                hooks.touch_db(a, exists);
                hooks.touch_db(b, exists);
            }
            guard.put(a, part_b);
            guard.put(b, part_a);
            for db in [a, b] {
                let ready: Vec<Box<[u8]>> = self
                    .guard(index)
                    .hooks
                    .iter()
                    .flat_map(|hooks| hooks.waited_keys(db))
                    .map(Into::into)
                    .collect();
                for key in ready {
                    self.changes.ready.push((db, key));
                    self.guard_mut(index).hooks_mut().add_serve();
                }
            }
        }
        self.store.swap_counters(a, b);
        self.record_for_all(a, "SWAPDB", format!("{a} {b}").as_bytes());
    }

    /// `SCAN`: visits about `count` entries from `cursor` on, expired ones left out, and returns the next cursor; 0 starts
    /// and ends. A cursor is a slot above 46 bits of place in it, so that slots that come or go in between do no harm.
    pub fn scan(&mut self, cursor: u64, count: usize, visit: &mut dyn FnMut(&Entry)) -> u64 {
        const PLACE_BITS: u32 = 46;
        let (mut slot, mut place) = ((cursor >> PLACE_BITS) as usize, cursor & ((1 << PLACE_BITS) - 1));
        let mut left = count.max(1);
        // Look at the slot itself first even when it is empty now: its place may lie behind the cursor.
        while slot < SLOT_COUNT {
            let Some(next) = self.store.next_occupied(self.db, slot) else { return 0 };
            if usize::from(next) != slot {
                (slot, place) = (usize::from(next), 0);
            }
            self.hold_only(next);
            let (mut visited, now_ms) = (0, self.now_ms);
            let guard = self.guard(self.index_of(next));
            if let Some(db) = guard.db(self.db) {
                place = db.table.scan(place, left, &mut |entry| {
                    visited += 1;
                    if entry.expires_at_ms().is_none_or(|at| at > now_ms) {
                        visit(entry);
                    }
                });
            }
            if place != 0 {
                return ((slot as u64) << PLACE_BITS) | place;
            }
            slot += 1;
            left = left.saturating_sub(visited);
            if left == 0 {
                return if slot < SLOT_COUNT { (slot as u64) << PLACE_BITS } else { 0 };
            }
        }
        0
    }

    /// A key drawn at random, or `None` in an empty database. Expired keys are removed on the way.
    pub fn random_key(&mut self) -> Option<Vec<u8>> {
        /// Draws that may meet expired keys before the next live key in slot order is taken.
        const TRIES: usize = 64;
        for _ in 0..TRIES {
            let start = self.changes.rng.below(SLOT_COUNT as u64) as usize;
            let slot =
                self.store.next_occupied(self.db, start).or_else(|| self.store.next_occupied(self.db, 0))?;
            self.hold_only(slot);
            let r = self.changes.rng.next_u64();
            let key = self
                .guard(self.index_of(slot))
                .db(self.db)?
                .table
                .random(r)
                .map(|entry| entry.key().to_vec());
            if let Some(key) = key
                && self.exists(&key)
            {
                return Some(key);
            }
        }
        let mut found = None;
        let mut cursor = 0;
        loop {
            cursor = self.scan(cursor, 1, &mut |entry| found = Some(entry.key().to_vec()));
            if cursor == 0 || found.is_some() {
                return found;
            }
        }
    }

    /// Keys of the database in the held slot, expired ones included.
    pub fn slot_len(&self, slot: Slot) -> usize {
        self.guard(self.index_of(slot)).db(self.db).map_or(0, |db| db.table.len())
    }

    /// Bytes of the held slot's table itself, entries not included.
    pub fn table_bytes(&self, slot: Slot) -> usize {
        self.guard(self.index_of(slot)).db(self.db).map_or(0, |db| db.table.mem_bytes())
    }

    /// Visits every entry of the held slot's database.
    pub fn for_each_in_slot(&self, slot: Slot, mut visit: impl FnMut(&Entry)) {
        if let Some(db) = self.guard(self.index_of(slot)).db(self.db) {
            db.table.iter().for_each(|entry| visit(&entry));
        }
    }

    /// An entry of the held slot drawn by `r`.
    pub(crate) fn sample(&self, slot: Slot, r: u64) -> Option<Ref<'_, Entry>> {
        self.guard(self.index_of(slot)).db(self.db)?.table.random(r)
    }

    /// The entries of the held slot that expire first.
    pub(crate) fn expiring(&self, slot: Slot) -> Option<Vec<u8>> {
        let db = self.guard(self.index_of(slot)).db(self.db)?;
        let (at, hash) = *db.expiry.as_ref()?.first()?;
        let entry = db.table.find_hash(hash, |entry| entry.expires_at_ms() == Some(at))?;
        Some(entry.key().to_vec())
    }
}

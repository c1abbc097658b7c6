//! Slots whose keys are here and are nobody's yet, or no longer.
//!
//! Owns: leaving a slot's keys out of what is counted, walked, expired and evicted, and removing all keys of a slot at once. Does
//! **not** own why: slots that are being imported are hidden until they are owned, slots that were given away until they are empty.
//!
//! A hidden slot's keys are not part of any database: `DBSIZE`, `KEYS`, `SCAN`, `RANDOMKEY`, `FLUSHALL` and eviction pass them over.
//! Nor does their time run: what expires when is decided by the node that owns the slot, and comes as an effect. Whoever names
//! a key of the slot finds it all the same; which commands may is the slot gate's matter. Streams see hidden slots like others.

use super::Keyspace;
use crate::effects::Scope;
use crate::hasher::hash64;
use crate::slot::DbSlot;
use crate::value::ValueRef;
use smallvec::SmallVec;
use std::sync::Arc;
use towline_cluster::Slot;

impl Keyspace<'_> {
    /// Hides the held slot; nothing happens if it is hidden. Costs one look-up for each of its keys that expires.
    pub fn hide_slot(&mut self, slot: Slot) {
        if !self.store.is_hidden(slot) {
            self.count_slot(slot, Counted::Back);
            self.store.reset_due(slot, None);
            self.store.set_hidden(slot, true);
        }
    }

    /// Ends [`Keyspace::hide_slot`]: its keys count, and their time runs.
    pub fn show_slot(&mut self, slot: Slot) {
        if self.store.is_hidden(slot) {
            self.store.set_hidden(slot, false);
            self.count_slot(slot, Counted::In);
            let next = self.guard(self.index_of(slot)).next_expiry();
            self.store.reset_due(slot, next);
        }
    }

    /// Removes all keys of the held slot, of all databases, in constant time. The tables go to
    /// [`crate::changes::Changes::tables`], to be freed elsewhere; those who watch or track one of the keys are told. Returns how many
    /// keys there were. The effect is `CLUSTER FLUSHSLOT`, as in Valkey.
    pub fn flush_slot(&mut self, slot: Slot) -> usize {
        let index = self.index_of(slot);
        let dbs: SmallVec<[u8; 4]> = self.guard(index).dbs().collect();
        let mut removed = 0;
        for db in dbs {
            let guard = &mut **self.guard_mut(index);
            let needs_table = guard.taps.as_mut().is_some_and(|taps| taps.needs_table(&guard.tables, db));
            if !self.store.is_hidden(slot) {
                self.count_db_slot(db, slot, Counted::Back);
            }
            let guard = &mut **self.guard_mut(index);
            let part = guard.take(db);
            if let Some(hooks) = &guard.hooks {
                hooks.touch_db(db, |key| part.table.get(hash64(key), key).is_some());
            }
            if part.table.is_empty() {
                continue;
            }
            removed += part.table.len();
            if needs_table && let Some(taps) = &mut guard.taps {
                taps.flushed(db, &Arc::new(part.table));
            } else {
                self.changes.tables.push(part.table);
            }
        }
        while self.forget_tracked(slot, 0) {}
        self.store.reset_due(slot, None);
        if removed > 0 {
            if self.guard(index).is_listened_to() {
                let mut number = itoa::Buffer::new();
                let args = [b"FLUSHSLOT".as_slice(), number.format(slot).as_bytes()];
                self.changes.effects.record_whole(Scope::Slot(slot), 0, "CLUSTER", args);
            }
            self.changes.dirty += removed as u64;
            self.commit();
        }
        removed
    }

    fn count_slot(&mut self, slot: Slot, counted: Counted) {
        let dbs: SmallVec<[u8; 4]> = self.guard(self.index_of(slot)).dbs().collect();
        dbs.into_iter().for_each(|db| self.count_db_slot(db, slot, counted));
    }

    /// Counts what a database has in the slot, or takes back that it was counted.
    fn count_db_slot(&self, db: u8, slot: Slot, counted: Counted) {
        let Some(part) = self.guard(self.index_of(slot)).db(db) else { return };
        let (before, after) = counted.of(part.table.len());
        self.store.count_keys(db, slot, before, after);
        for_each_expiring(part, |own, fields| {
            if own.is_some() {
                let (before, after) = counted.of_deadline(own);
                self.store.count_expiry(db, slot, before, after);
            }
            if fields.is_some() {
                let (before, after) = counted.of_deadline(fields);
                self.store.count_field_expiry(db, slot, before, after);
            }
        });
    }
}

/// Whether something is counted from now on, or no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counted {
    In,
    Back,
}

impl Counted {
    fn of(self, keys: usize) -> (usize, usize) {
        if self == Self::In { (0, keys) } else { (keys, 0) }
    }

    fn of_deadline(self, at_ms: Option<u64>) -> (Option<u64>, Option<u64>) {
        if self == Self::In { (None, at_ms) } else { (at_ms, None) }
    }
}

/// Calls `visit` with each deadline of a key and each first deadline of a hash's fields.
fn for_each_expiring(part: &DbSlot, mut visit: impl FnMut(Option<u64>, Option<u64>)) {
    for &(at, hash) in part.expiry.iter().flat_map(|expiry| expiry.iter()) {
        let (mut own, mut fields) = (None, None);
        // Keys may share a hash, and a key and its fields an instant: then they share a place in the index.
        part.table.find_hash(hash, |entry| {
            let first_field = match entry.value_ref() {
                ValueRef::Hash(hash) => hash.next_expiry_ms(),
                _ => None,
            };
            if entry.expires_at_ms() == Some(at) {
                own = Some(at);
            }
            if first_field == Some(at) {
                fields = Some(at);
            }
            false
        });
        visit(own, fields);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Expiry, Keyspace};
    use crate::changes::{Changes, Settings};
    use crate::store::Store;
    use crate::stream::{Batch, Config, SlotStream};
    use towline_cluster::{Slot, key_slot};

    const NOW_MS: u64 = 1_700_000_000_000;

    struct World {
        store: Store,
        settings: Settings,
        changes: Changes,
    }

    impl World {
        fn new() -> Self {
            Self { store: Store::new(), settings: Settings::default(), changes: Changes::new(1) }
        }

        fn hold(&mut self, slot: Slot) -> Keyspace<'_> {
            Keyspace::hold(&self.store, [slot], &self.settings, &mut self.changes, 0, NOW_MS)
        }

        fn set(&mut self, key: &str, expiry: Expiry) {
            self.hold(key_slot(key.as_bytes())).set_string(key.as_bytes(), b"v", expiry);
        }

        fn counts(&self) -> (usize, usize, u64, bool) {
            let store = &self.store;
            (
                store.len(0),
                store.expires(0),
                store.average_ttl_ms(0, NOW_MS),
                store.next_due(0, NOW_MS + 10_000).is_some(),
            )
        }
    }

    #[test]
    fn a_hidden_slot_counts_for_nothing_and_nothing_in_it_expires() {
        let mut world = World::new();
        world.set("{a}1", Expiry::At(NOW_MS + 5000));
        world.set("{a}2", Expiry::Clear);
        let (slot, counted) = (key_slot(b"a"), world.counts());
        assert_eq!(counted, (2, 1, 5000, true));
        world.hold(slot).hide_slot(slot);
        assert_eq!(world.counts(), (0, 0, 0, false));
        // What changes meanwhile is not counted either.
        world.set("{a}3", Expiry::At(NOW_MS + 7000));
        assert!(world.hold(slot).delete(b"{a}2"));
        assert!(world.hold(slot).set_expiry(b"{a}1", Some(NOW_MS + 3000)));
        assert_eq!(world.counts(), (0, 0, 0, false));
        assert_eq!(world.store.next_occupied(0, 0), None);
        assert!(world.hold(slot).exists(b"{a}3"), "who names a key finds it");
        world.hold(slot).show_slot(slot);
        assert_eq!(world.counts(), (2, 2, 5000, true));
        assert_eq!(world.store.next_occupied(0, 0), Some(slot));
        world.hold(slot).show_slot(slot);
        assert_eq!(world.counts(), (2, 2, 5000, true), "twice is once");
    }

    #[test]
    fn a_flush_leaves_hidden_slots_alone() {
        let mut world = World::new();
        world.set("{a}1", Expiry::Clear);
        world.set("{b}1", Expiry::Clear);
        let slot = key_slot(b"a");
        world.hold(slot).hide_slot(slot);
        Keyspace::hold_all(&world.store, &world.settings, &mut world.changes, 0, NOW_MS).flush();
        assert_eq!(world.store.len(0), 0);
        world.hold(slot).show_slot(slot);
        assert_eq!(world.store.len(0), 1);
    }

    #[test]
    fn flushing_a_slot_removes_its_keys_alone_and_tells_streams() {
        let mut world = World::new();
        world.set("{a}1", Expiry::At(NOW_MS + 5000));
        world.set("{a}2", Expiry::Clear);
        world.set("{b}1", Expiry::Clear);
        let slot = key_slot(b"a");
        let config = Config { has_snapshot: false, ..Config::default() };
        let mut stream = SlotStream::open(&world.store, 0..16384, NOW_MS, &config);
        assert_eq!(world.hold(slot).flush_slot(slot), 2);
        assert_eq!(world.hold(slot).flush_slot(slot), 0);
        assert_eq!(world.counts(), (1, 0, 0, false));
        let mut batch = Batch::default();
        stream.next(&world.store, &mut batch).unwrap();
        let effects: Vec<Vec<u8>> = batch
            .units()
            .flat_map(|unit| unit.effects().map(|effect| effect.command.to_vec()).collect::<Vec<_>>())
            .collect();
        let expected =
            format!("*3\r\n$7\r\nCLUSTER\r\n$9\r\nFLUSHSLOT\r\n${}\r\n{slot}\r\n", slot.to_string().len());
        assert_eq!(effects, [expected.into_bytes()]);
        stream.close(&world.store);
    }

    #[test]
    fn a_snapshot_keeps_what_a_flushed_slot_held() {
        let mut world = World::new();
        world.set("{a}1", Expiry::Clear);
        world.set("{a}2", Expiry::Clear);
        let slot = key_slot(b"a");
        let mut stream = SlotStream::open(&world.store, [slot], NOW_MS, &Config::default());
        world.hold(slot).flush_slot(slot);
        let (mut batch, mut images, mut units) = (Batch::default(), 0, 0);
        loop {
            let progress = stream.next(&world.store, &mut batch).unwrap();
            images += batch.images().count();
            units += batch.units().count();
            if progress.is_snapshot_done && batch.is_empty() {
                break;
            }
        }
        assert_eq!((images, units), (2, 1));
        stream.close(&world.store);
    }
}

//! Whole slots, as a cluster looks at them.
//!
//! Owns: which slots are held, a slot's keys, looks at keys that leave no trace, and a slot's lock for those who change what is
//! said about the slot. Does **not** own whose a slot is.

use super::Keyspace;
use super::held::Held;
use crate::slot::SlotData;
use crate::store::Store;
use std::fmt;
use towline_cluster::Slot;

/// Which slots a keyspace holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldSlots {
    /// None.
    None,
    /// This one.
    One(Slot),
    /// More than one.
    Several,
}

impl Keyspace<'_> {
    /// Which slots are held.
    #[inline]
    pub fn held_slots(&self) -> HeldSlots {
        match &self.held {
            Held::Few(few) => match few.as_slice() {
                [] => HeldSlots::None,
                [(slot, _)] => HeldSlots::One(*slot),
                _ => HeldSlots::Several,
            },
            Held::All(_) => HeldSlots::Several,
        }
    }

    /// Whether the key, whose slot is held, is there and has not expired. Neither a hit nor an access, and an expired key stays for
    /// others to find.
    pub fn is_live(&self, key: &[u8]) -> bool {
        let (index, hash) = self.locate(key);
        let entry = self.found(index, hash, key);
        entry.is_some_and(|entry| entry.expires_at_ms().is_none_or(|at| at > self.now_ms))
    }

    /// Some keys of the database in the held slot, `count` or all there are, expired ones included. Costs what it returns.
    pub fn keys_in_slot(&self, slot: Slot, count: usize) -> Vec<Box<[u8]>> {
        let db = self.guard(self.index_of(slot)).db(self.db);
        db.into_iter().flat_map(|db| db.table.iter()).take(count).map(|entry| entry.key().into()).collect()
    }
}

/// A slot whose lock is held by somebody who runs no command.
pub struct LockedSlot<'a>(&'a mut SlotData);

impl fmt::Debug for LockedSlot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockedSlot").finish_non_exhaustive()
    }
}

impl LockedSlot<'_> {
    /// Keys of a database in the slot, expired ones included.
    pub fn len(&self, db: u8) -> usize {
        self.0.db(db).map_or(0, |db| db.table.len())
    }

    /// Whether a database has no key in the slot.
    pub fn is_empty(&self, db: u8) -> bool {
        self.len(db) == 0
    }

    /// All keys of the slot count as changed for those who watch one of them.
    pub fn touch_watchers(&self) {
        if let Some(hooks) = &self.0.hooks {
            self.0.tables.dbs().for_each(|db| hooks.touch_db(db, |_| true));
        }
    }
}

impl Store {
    /// Runs `f` while no command holds the slot. Whoever changes what commands look at under the slot's lock does it in here: then
    /// every command sees all of the change or nothing. The caller holds no slot.
    pub fn with_locked<R>(&self, slot: Slot, f: impl FnOnce(LockedSlot<'_>) -> R) -> R {
        f(LockedSlot(&mut self.lock(slot)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::{Changes, Settings};
    use crate::keyspace::Expiry;
    use crate::slot::WatchFlag;
    use std::sync::Arc;
    use towline_cluster::key_slot;

    #[test]
    fn looks_leave_no_trace_and_a_slot_tells_its_keys() {
        let (store, settings, mut changes) = (Store::new(), Settings::default(), Changes::new(1));
        let slot = key_slot(b"{t}");
        let mut ks = Keyspace::hold(&store, [slot], &settings, &mut changes, 0, 1000);
        assert_eq!(ks.held_slots(), HeldSlots::One(slot));
        ks.set_string(b"{t}1", b"v", Expiry::Clear);
        ks.set_string(b"{t}2", b"v", Expiry::At(1001));
        ks.set_string(b"{t}3", b"v", Expiry::At(1000));
        assert_eq!(
            [&b"{t}1"[..], b"{t}2", b"{t}3", b"{t}4"].map(|key| ks.is_live(key)),
            [true, true, false, false]
        );
        assert_eq!(ks.slot_len(slot), 3, "the expired key is still there");
        let mut keys = ks.keys_in_slot(slot, usize::MAX);
        keys.sort();
        assert_eq!(keys.concat(), b"{t}1{t}2{t}3");
        assert_eq!((ks.keys_in_slot(slot, 0).len(), ks.keys_in_slot(slot, 2).len()), (0, 2));
        let flag = Arc::new(WatchFlag::default());
        ks.watch(b"{t}none", &flag);
        drop(ks);
        assert_eq!((changes.hits, changes.misses), (0, 0));
        assert!(!flag.is_set());
        assert_eq!(
            store.with_locked(slot, |locked| {
                locked.touch_watchers();
                (locked.len(0), locked.len(1), locked.is_empty(1))
            }),
            (3, 0, true)
        );
        assert!(flag.is_set());
        let several = Keyspace::hold(&store, [1, 2], &settings, &mut changes, 0, 1000);
        assert_eq!(several.held_slots(), HeldSlots::Several);
        drop(several);
        assert_eq!(Keyspace::hold(&store, [], &settings, &mut changes, 0, 0).held_slots(), HeldSlots::None);
    }
}

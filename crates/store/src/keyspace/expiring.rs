//! Removing what has expired.
//!
//! Owns: lazy and active expiry of keys and hash fields, and the indices they follow. Does **not** own when active expiry runs.

use super::Keyspace;
use super::editing::{HashMut, Log};
use super::listening::Listening;
use crate::notify::Class;
use crate::slot::SlotData;
use crate::table::RefMut;
use crate::value::ValueRef;
use smallvec::SmallVec;
use towline_cluster::Slot;

impl Keyspace<'_> {
    /// Removes a key whose time has come.
    #[cold]
    pub(super) fn expire(&mut self, key: &[u8]) {
        let (index, hash) = self.locate(key);
        self.delete_at(index, hash, key);
        self.changes.expired += 1;
        self.changed(key, Class::Expired, "expired");
    }

    /// Removes the fields whose time has come from the hash at `key`.
    #[cold]
    pub(super) fn expire_fields(&mut self, key: &[u8]) {
        let (index, hash) = self.locate(key);
        let (db, now_ms) = (self.db, self.now_ms);
        let listening = self.before_change(index, hash, key);
        let Self { held, changes, .. } = self;
        let SlotData { tables, taps, .. } = &mut **held.guard_mut(index);
        let entry = tables.db_mut(db).table.get_mut(hash, key);
        let Some(value) = entry.and_then(RefMut::into_hash) else { return };
        let before = value.next_expiry_ms();
        let log = (listening != Listening::Nobody).then(|| Log {
            effects: (listening == Listening::Follows).then_some(&mut changes.effects),
            partials: Self::link(taps.as_deref_mut(), db, hash, key),
        });
        let removed = HashMut { value, log }.expire_due(now_ms);
        self.fields_before = Some(before);
        self.changes.expired_fields += removed as u64;
        self.changed_empty_aware(key);
    }

    fn changed_empty_aware(&mut self, key: &[u8]) {
        self.changed(key, Class::Hash, "hexpired");
        let (index, hash) = self.locate(key);
        if self.found(index, hash, key).is_some_and(|entry| entry.value().elements() == 0) {
            self.delete_at(index, hash, key);
            self.notify(Class::Generic, "del", key);
        }
    }

    /// Removes what has expired from the held slot `slot`, in all databases, up to `count` keys or hashes; says how many.
    /// The caller repeats while the answer is `count`.
    pub fn expire_due(&mut self, slot: Slot, count: usize) -> usize {
        let index = self.index_of(slot);
        let (db_before, now_ms) = (self.db, self.now_ms);
        let dbs: SmallVec<[u8; 4]> = self.guard(index).dbs().collect();
        let mut done = 0;
        for db in dbs {
            self.db = db;
            while done < count {
                let due = self.guard(index).db(db).and_then(|part| part.expiry.as_ref()?.first().copied());
                let Some((at, hash)) = due.filter(|&(at, _)| at <= now_ms) else { break };
                done += 1;
                self.expire_indexed(index, at, hash);
            }
        }
        self.db = db_before;
        let next = self.guard(index).next_expiry();
        self.store.reset_due(slot, next);
        done
    }

    /// Works off one place of the expiry index.
    fn expire_indexed(&mut self, index: usize, at: u64, hash: u64) {
        let db = self.db;
        let part = self.guard_mut(index).db_mut(db);
        part.unindex(at, hash);
        let mut whole = false;
        let found = part.table.get_hash_if_mut(hash, |entry| {
            whole = entry.expires_at_ms() == Some(at);
            let fields = match entry.value_ref() {
                ValueRef::Hash(fields) => fields.next_expiry_ms() == Some(at),
                _ => false,
            };
            whole || fields
        });
        let Some(key) = found.map(|entry| entry.key().to_vec()) else { return };
        if whole {
            self.guard_mut(index).db_mut(db).index(at, hash);
            self.expire(&key);
        } else {
            self.expire_fields(&key);
        }
    }
}

//! What follows from a change, for all commands alike.
//!
//! Owns: telling watchers, trackers, waiters and subscribers, and keeping the index of hash fields. Does **not** own
//! delivery: that is left in [`crate::changes::Changes`].

use super::Keyspace;
use crate::changes::Note;
use crate::notify::Class;
use crate::table::Ref;
use crate::value::ValueRef;

impl Keyspace<'_> {
    /// The key's value was changed, created or removed: watchers, trackers, waiters and subscribers are told.
    #[inline]
    pub fn changed(&mut self, key: &[u8], class: Class, event: &'static str) {
        self.modified(key);
        self.notify(class, event, key);
    }

    /// As [`Keyspace::changed`], and removes the key when its collection has become empty. Says whether it did.
    pub fn changed_or_emptied(&mut self, key: &[u8], class: Class, event: &'static str) -> bool {
        self.changed(key, class, event);
        let Some((index, hash)) = self.live(key) else { return false };
        if self.found(index, hash, key).is_some_and(|entry| entry.value().elements() > 0) {
            return false;
        }
        self.delete_at(index, hash, key);
        self.notify(Class::Generic, "del", key);
        true
    }

    /// As [`Keyspace::changed`] without a notification.
    #[inline]
    pub fn modified(&mut self, key: &[u8]) {
        self.changes.dirty += 1;
        if self.fields_before.is_some() {
            self.reindex_fields(key);
        }
        let (index, _) = self.locate(key);
        if self.guard(index).hooks.is_some() {
            self.touch_hooks(index, key);
        }
        if self.changes.tracks_prefixes {
            self.changes.modified.push(key.into());
        }
    }

    /// Counts as a change for replicas and the log only: nobody watches or waits for it.
    pub fn dirty(&mut self) {
        self.changes.dirty += 1;
    }

    #[cold]
    pub(super) fn touch_hooks(&mut self, index: usize, key: &[u8]) {
        let db = self.db;
        let Some(hooks) = &mut self.guard_mut(index).hooks else { return };
        hooks.touch(db, key);
        if hooks.has_trackers() {
            let trackers = hooks.take_trackers(key);
            let has_more = hooks.has_trackers();
            self.untracked(index, key.into(), trackers, has_more);
        }
        self.wake(index, key);
    }

    /// The key is no longer tracked; its trackers are to be told. `has_more` says whether the slot has other tracked keys.
    pub(super) fn untracked(&mut self, index: usize, key: Box<[u8]>, trackers: Vec<u64>, has_more: bool) {
        if !trackers.is_empty() {
            self.store.count_tracked(self.slot_at(index), -1, -(trackers.len() as isize), has_more);
            self.changes.invalidated.push((key, trackers));
        }
    }

    /// Puts the key on the list of those whose waiters may have something to get.
    pub(super) fn wake(&mut self, index: usize, key: &[u8]) {
        let db = self.db;
        let waits = self.guard(index).hooks.as_ref().is_some_and(|hooks| hooks.waiters(db, key).is_some());
        if waits && !self.changes.ready.iter().any(|(d, k)| *d == db && **k == *key) {
            self.changes.ready.push((db, key.into()));
            self.guard_mut(index).hooks_mut().add_serve();
        }
    }

    /// Publishes a keyspace notification, if that class is asked for.
    #[inline]
    pub fn notify(&mut self, class: Class, event: &'static str, key: &[u8]) {
        if self.settings.notify & class.bit() != 0 {
            self.note(class, event, key);
        }
    }

    #[cold]
    pub(super) fn note(&mut self, class: Class, event: &'static str, key: &[u8]) {
        self.changes.notes.push(Note { class, event, db: self.db, key: key.into() });
    }

    /// When the first field of the hash at `key` expires, if it is a hash and one does.
    pub(super) fn next_field_expiry(&self, index: usize, hash: u64, key: &[u8]) -> Option<u64> {
        match self.found(index, hash, key).map(Ref::value) {
            Some(ValueRef::Hash(fields)) => fields.next_expiry_ms(),
            _ => None,
        }
    }

    #[cold]
    pub(super) fn reindex_fields(&mut self, key: &[u8]) {
        let Some(before) = self.fields_before.take() else { return };
        let (index, hash) = self.locate(key);
        let after = self.next_field_expiry(index, hash, key);
        if before == after {
            return;
        }
        // The key itself may expire at the same instant: then the place in the index is its own as well.
        let own = self.found(index, hash, key).and_then(|entry| entry.expires_at_ms());
        let (db, slot) = (self.db, self.slot_at(index));
        self.store.count_field_expiry(db, slot, before, after);
        let db_slot = self.guard_mut(index).db_mut(db);
        if let Some(at) = before
            && own != before
        {
            db_slot.unindex(at, hash);
        }
        if let Some(at) = after {
            db_slot.index(at, hash);
            self.store.note_due(slot, at);
        }
    }
}

//! Watching, waiting and tracking.
//!
//! Owns: the way to a slot's hooks. Does **not** own setting them off: that follows from a change.

use super::Keyspace;
use crate::slot::WatchFlag;
use std::sync::Arc;
use towline_cluster::Slot;

impl Keyspace<'_> {
    /// `flag` is set when the key changes.
    pub fn watch(&mut self, key: &[u8], flag: &Arc<WatchFlag>) {
        let (index, db) = (self.locate(key).0, self.db);
        self.guard_mut(index).hooks_mut().watch(db, key, flag);
    }

    /// Ends a [`Keyspace::watch`].
    pub fn unwatch(&mut self, key: &[u8], flag: &Arc<WatchFlag>) {
        let (index, db) = (self.locate(key).0, self.db);
        let guard = self.guard_mut(index);
        guard.hooks_mut().unwatch(db, key, flag);
        guard.drop_empty_hooks();
    }

    /// Queues `waiter` behind those who already wait for the key.
    pub fn wait(&mut self, key: &[u8], waiter: u64) {
        let (index, db) = (self.locate(key).0, self.db);
        self.guard_mut(index).hooks_mut().wait(db, key, waiter);
    }

    /// Ends a [`Keyspace::wait`].
    pub fn unwait(&mut self, key: &[u8], waiter: u64) {
        let (index, db) = (self.locate(key).0, self.db);
        let guard = self.guard_mut(index);
        guard.hooks_mut().unwait(db, key, waiter);
        guard.drop_empty_hooks();
    }

    /// The first waiter for the key behind `after`, or the first of all. Later ones have larger numbers, so `after` itself may
    /// be gone by now.
    pub fn waiter(&self, key: &[u8], after: Option<u64>) -> Option<u64> {
        let queue = self.guard(self.locate(key).0).hooks.as_ref()?.waiters(self.db, key)?;
        queue.iter().copied().find(|&waiter| after.is_none_or(|after| waiter > after))
    }

    /// Whether a key in the slot of `key` changed while clients waited for it, and they are still to be served: whoever comes
    /// now and would wait, too, must not take what belongs to them.
    pub fn is_serve_due(&self, key: &[u8]) -> bool {
        self.guard(self.locate(key).0).hooks.as_ref().is_some_and(|hooks| hooks.has_serves())
    }

    /// The waiters for a key of [`crate::changes::Changes::ready`] were served, as far as it went. Called once for each entry.
    pub fn serve_done(&mut self, key: &[u8]) {
        let index = self.locate(key).0;
        let guard = self.guard_mut(index);
        guard.hooks_mut().end_serve();
        guard.drop_empty_hooks();
    }

    /// Client `client` is to be told when the key changes next.
    pub fn track(&mut self, key: &[u8], client: u64) {
        let index = self.locate(key).0;
        let (keys, items) = self.guard_mut(index).hooks_mut().track(key, client);
        if items > 0 {
            self.store.count_tracked(self.slot_at(index), keys, items, true);
        }
    }

    /// Forgets one of the slot's tracked keys, drawn by `r`, as if it had changed: its trackers are to be told. `false` if the
    /// slot, which is held, has none.
    pub fn forget_tracked(&mut self, slot: Slot, r: u64) -> bool {
        let index = self.index_of(slot);
        let guard = self.guard_mut(index);
        let Some(hooks) = &mut guard.hooks else { return false };
        let Some((key, trackers)) = hooks.take_any_trackers(r) else { return false };
        let has_more = hooks.has_trackers();
        guard.drop_empty_hooks();
        self.untracked(index, key, trackers, has_more);
        true
    }
}

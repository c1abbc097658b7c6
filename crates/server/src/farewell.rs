//! What is undone when a connection ends or starts anew.
//!
//! Owns: the list of it. Does **not** own the parts.

use crate::client::flag;
use crate::execute::Local;
use crate::session::{Session, Watch};
use crate::shared::Shared;
use crate::{monitor, pubsub, replicas, tracking};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use towline_cluster::key_slot;
use towline_store::keyspace::Keyspace;

/// Undoes everything that the session left with others, and forgets the client. The caller holds no slot.
pub(crate) fn session_end(local: &mut Local, session: &mut Session, now_ms: u64) {
    leave_transaction(local, session, now_ms);
    let shared = Arc::clone(&local.shared);
    clear(&shared, session);
    shared.clients.remove(session.client.id);
}

/// Undoes what the session left outside of the slots: transaction, subscriptions, tracking, `MONITOR`, `SYNC`, notices.
pub(crate) fn clear(shared: &Shared, session: &mut Session) {
    discard(session);
    pubsub::unsubscribe_all(shared, session);
    tracking::off(shared, session);
    monitor::remove(shared, session);
    replicas::stop(shared, session);
    shared.maintenance.forget(&session.client);
}

/// Drops the queued commands. The watched keys are another matter.
pub(crate) fn discard(session: &mut Session) {
    session.multi = None;
    session.client.multi.store(u32::MAX, Ordering::Relaxed);
    session.client.set_flag(flag::MULTI, false);
}

/// Drops the queued commands and forgets the watched keys. The caller holds no slot.
pub(crate) fn leave_transaction(local: &mut Local, session: &mut Session, now_ms: u64) {
    discard(session);
    let Some(watch) = take_watch(session) else { return };
    let shared = Arc::clone(&local.shared);
    let settings = Arc::clone(&local.settings);
    let mut ks =
        Keyspace::hold(&shared.store, slots_of(&watch), &settings, &mut local.changes, session.db, now_ms);
    forget_keys(&mut ks, &watch);
}

/// The watched keys, which the caller makes their slots forget.
pub(crate) fn take_watch(session: &mut Session) -> Option<Box<Watch>> {
    session.client.watched.store(0, Ordering::Relaxed);
    session.watch.take()
}

/// The slots of the watched keys.
pub(crate) fn slots_of(watch: &Watch) -> impl Iterator<Item = towline_cluster::Slot> {
    watch.keys.iter().map(|(_, key)| key_slot(key))
}

/// Forgets the watched keys. Lets go of all slots that are held, and holds those of the keys.
pub(crate) fn unwatch(ks: &mut Keyspace<'_>, watch: &Watch) {
    ks.hold_slots(slots_of(watch));
    forget_keys(ks, watch);
}

/// Forgets the watched keys, whose slots are held.
pub(crate) fn forget_keys(ks: &mut Keyspace<'_>, watch: &Watch) {
    let db = ks.db();
    for (watched_db, key) in &watch.keys {
        ks.select(*watched_db);
        ks.unwatch(key, &watch.flag);
    }
    ks.select(db);
}

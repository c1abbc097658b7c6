//! What commands set off, worked off once their slots are free again.
//!
//! Owns: the order of the follow-ups. Does **not** own any one of them.

use crate::client::Client;
use crate::execute::Local;
use crate::leaving::Leaving;
use crate::{blocking, pubsub, tracking};
use std::sync::Arc;

/// Rounds of serving waiters whose commands set off others; each round serves at least one, so this is far above any
/// chain that clients build.
const ROUNDS_MAX: usize = 100_000;

/// Publishes notifications, tells trackers, serves waiters and frees what is large. `origin` is the client whose command
/// set it off, if it was one. The caller holds no slot.
#[inline]
pub(crate) fn work_off(local: &mut Local, origin: Option<&Arc<Client>>, now_ms: u64) {
    let changes = &local.changes;
    let is_quiet = changes.notes.is_empty()
        && changes.ready.is_empty()
        && changes.invalidated.is_empty()
        && changes.modified.is_empty()
        && !changes.flushed
        && changes.garbage.is_empty()
        && changes.tables.is_empty();
    if !is_quiet {
        work_off_all(local, origin, now_ms);
    }
}

#[cold]
fn work_off_all(local: &mut Local, origin: Option<&Arc<Client>>, now_ms: u64) {
    let shared = Arc::clone(&local.shared);
    for _ in 0..ROUNDS_MAX {
        for note in std::mem::take(&mut local.changes.notes) {
            pubsub::publish_note(&shared, local.settings.notify, &note);
        }
        for (key, clients) in std::mem::take(&mut local.changes.invalidated) {
            tracking::invalidate(&shared, &key, &clients, origin);
        }
        let modified = std::mem::take(&mut local.changes.modified);
        if !modified.is_empty() {
            tracking::invalidate_prefixes(&shared, &modified, origin);
        }
        if std::mem::take(&mut local.changes.flushed) {
            tracking::invalidate_all(&shared);
        }
        let ready = std::mem::take(&mut local.changes.ready);
        if ready.is_empty() {
            break;
        }
        for (db, key) in ready {
            blocking::serve(local, db, &key, now_ms);
        }
    }
    let (values, tables) =
        (std::mem::take(&mut local.changes.garbage), std::mem::take(&mut local.changes.tables));
    if !values.is_empty() || !tables.is_empty() {
        Leaving::free(&shared.memory.leaving, values, tables);
    }
}

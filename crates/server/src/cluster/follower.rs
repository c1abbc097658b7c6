//! From what the log says to what workers see.
//!
//! Owns: noticing what changed, changing each slot's word under the slot's lock, and what a slot's loss means for those who wait,
//! watch or listen on it. Does **not** own the log.
//!
//! # Order
//! What is known is published first, then each changed slot's lock is passed. A command that found its slot's word 0 runs before that;
//! one that looks closer sees the new state. So once [`Cluster::catch_up`] has returned, no command runs by the old state any more,
//! and whoever began to wait or to listen under it is registered, and is told here.

use super::table::LOOK;
use super::{Cluster, Known, gate};
use crate::pubsub;
use crate::shared::Shared;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use towline_cluster::{SLOT_COUNT, Slot, key_slot};
use towline_cluster_proto::gate::{Keys, Owner, Present, Request, SlotState, decide};
use towline_cluster_proto::{Health, Metadata, NodeId};

/// What was followed so far.
#[derive(Debug, Default)]
pub(crate) struct Follower {
    /// The configuration's number at the time.
    config_epoch: u64,
    /// Whether anything was followed.
    has_begun: bool,
}

/// What became of one slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    slot: Slot,
    is_plain: bool,
    /// It was this node's, and is no longer.
    is_lost: bool,
}

impl Cluster {
    /// Makes workers see what the log has applied here. May be called by anybody who holds no slot; changes of several callers follow
    /// one another.
    pub(crate) fn catch_up(&self, shared: &Shared) {
        let Some(log) = self.log() else { return };
        let mut follower = self.follower.lock().unwrap_or_else(PoisonError::into_inner);
        let (metadata, standing) = (log.metadata().borrow().clone(), *log.standing().borrow());
        let epoch = shared.config_epoch();
        let old = self.known.load_full();
        let is_same = Arc::ptr_eq(&old.metadata, &metadata) && old.standing == standing;
        if is_same && follower.has_begun && follower.config_epoch == epoch {
            return;
        }
        let is_first = !std::mem::replace(&mut follower.has_begun, true);
        follower.config_epoch = epoch;
        let is_ok = standing.is_fresh && is_covered(&metadata, shared.config().cluster.require_full_coverage);
        let new = Arc::new(Known { metadata, me: standing.node, standing, is_ok });
        self.known.store(Arc::clone(&new));
        self.park_interrupted(shared, &new);
        let steps = steps(&old, &new, is_first);
        self.walk(shared, &new, &steps, is_first);
        if old.is_ok != is_ok && !is_first || is_first && is_ok {
            tracing::info!(
                is_fresh = standing.is_fresh,
                "cluster state: {}",
                if is_ok { "ok" } else { "fail" }
            );
        }
        if !steps.is_empty() {
            self.send_waiters_away(shared, &new);
            let is_gone = |name: &[u8]| {
                let state = new.slot(key_slot(name), false);
                state.owner != Owner::Me && state.importing_from.is_none()
            };
            if steps.iter().any(|step| step.is_lost) {
                pubsub::drop_shard_channels(shared, is_gone);
            }
        }
    }

    /// Slots that an earlier process of this node was giving away are served by nobody until it is known whose they are: it may have
    /// proposed the hand-over. Whoever works on the migration lets them go on.
    fn park_interrupted(&self, shared: &Shared, known: &Known) {
        for (&id, migration) in known.metadata.migrations() {
            if known.is_interrupted(&self.migrations, id, migration) {
                self.park(&shared.store, &migration.slots);
            }
        }
    }

    /// Passes the lock of each slot that changed.
    fn walk(&self, shared: &Shared, known: &Known, steps: &[Step], is_first: bool) {
        let mut left_behind = Vec::new();
        for &Step { slot, is_plain, is_lost } in steps {
            let keys = shared.store.with_locked(slot, |locked| {
                self.table.set(slot, LOOK, !(is_plain && known.is_ok));
                if is_lost {
                    locked.touch_watchers();
                }
                locked.len(0)
            });
            let state = known.slot(slot, false);
            if keys > 0 && (is_lost || is_first) && state.owner != Owner::Me && state.importing_from.is_none()
            {
                left_behind.push((slot, keys));
            }
        }
        warn_of_left_behind(&left_behind);
    }

    /// Those who wait for a key that this node does not serve any more go where it is served. Of several keys the first decides, as in
    /// Redis; so does it that who waits for a key that is being imported goes on waiting.
    fn send_waiters_away(&self, shared: &Shared, known: &Known) {
        let config = shared.config();
        let node = known.node_state(&config.cluster);
        for waiter in shared.blocked.all() {
            let Some(slot) = waiter.keys().next().map(key_slot) else { continue };
            let request = Request {
                keys: Keys::Slot { slot, are_several: false },
                is_asking: true,
                is_migrate: false,
                is_readonly_client: false,
                writes: waiter.writes(),
                is_shard_channel: false,
            };
            let state = SlotState { migrating_to: None, ..known.slot(slot, false) };
            let verdict = decide(&request, &state, &node, Present::default);
            let reader = gate::reader(&config, waiter.client().is_tls(shared));
            if let Some(text) = reader.refusal(&known.metadata, verdict) {
                // Served at this moment: its reply is on the way.
                if waiter.end_with(Bytes::from(format!("-{text}\r\n"))) {
                    shared.stats.error_reply(&text);
                }
            }
        }
    }
}

/// Slots with keys that nobody reaches here. They stay: nobody knows whether another copy exists.
fn warn_of_left_behind(left_behind: &[(Slot, usize)]) {
    /// Slots that are named; a node that lost everything would fill its log.
    const NAMED_MAX: usize = 16;
    if left_behind.is_empty() {
        return;
    }
    let keys: usize = left_behind.iter().map(|(_, keys)| keys).sum();
    let named: Vec<_> =
        left_behind.iter().take(NAMED_MAX).map(|(slot, keys)| format!("{slot} ({keys})")).collect();
    tracing::warn!(
        slots = left_behind.len(),
        keys,
        "keys are left in slots that are not this node's, as slot (keys): {}; they are kept, and no client reaches them here. Move \
         them with 'redis-cli --cluster fix', or drop them with 'CLUSTER FLUSHSLOT'",
        named.join(", ")
    );
}

/// Whether all slots that must be served are.
fn is_covered(metadata: &Metadata, needs_all: bool) -> bool {
    if !needs_all {
        return true;
    }
    let failed: BTreeSet<NodeId> = metadata
        .nodes()
        .iter()
        .filter(|(_, node)| node.health != Health::Online)
        .map(|(&id, _)| id)
        .collect();
    let mut covered = 0;
    for (first, last, owner) in metadata.runs() {
        if failed.contains(&owner) {
            return false;
        }
        covered += usize::from(last - first) + 1;
    }
    covered == SLOT_COUNT
}

/// What became of which slots.
fn steps(old: &Known, new: &Known, is_first: bool) -> Vec<Step> {
    let step = |slot: Slot, was_mine: bool| {
        let state = new.slot(slot, false);
        Step { slot, is_plain: state.is_plain(), is_lost: was_mine && state.owner != Owner::Me }
    };
    let was_mine = |slot| !is_first && old.metadata.owner(slot) == Some(old.me);
    if is_first || old.is_ok != new.is_ok || old.me != new.me {
        return (0..SLOT_COUNT as Slot).map(|slot| step(slot, was_mine(slot))).collect();
    }
    if Arc::ptr_eq(&old.metadata, &new.metadata) {
        return Vec::new();
    }
    changed_slots(&old.metadata, &new.metadata, new.me)
        .into_iter()
        .map(|slot| step(slot, was_mine(slot)))
        .collect()
}

/// Slots whose owner differs, or this node's marker.
fn changed_slots(old: &Metadata, new: &Metadata, me: NodeId) -> BTreeSet<Slot> {
    let mut changed = BTreeSet::new();
    note_differences(old.owners(), new.owners(), &mut changed);
    note_differences(old.markers_of(me), new.markers_of(me), &mut changed);
    changed
}

/// The slots that one of two ascending lists has and the other has not, or has with another value.
fn note_differences<V: PartialEq>(
    old: impl Iterator<Item = (Slot, V)>,
    new: impl Iterator<Item = (Slot, V)>,
    changed: &mut BTreeSet<Slot>,
) {
    let (mut old, mut new) = (old.peekable(), new.peekable());
    while let Some(slot) = [old.peek(), new.peek()].into_iter().flatten().map(|(slot, _)| *slot).min() {
        let (old, new) = (old.next_if(|(other, _)| *other == slot), new.next_if(|(other, _)| *other == slot));
        if old != new {
            changed.insert(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_cluster_proto::{Announced, Change};

    fn id(byte: u8) -> NodeId {
        NodeId::from_bytes([byte; NodeId::BYTES])
    }

    fn metadata(changes: &[Change]) -> Metadata {
        let mut metadata = Metadata::default();
        let at = Announced::default();
        metadata.apply(&Change::Found { cluster: id(9), node: id(1), shard: id(11), at: at.clone() });
        let slots = Vec::new();
        metadata.apply(&Change::Join { node: id(2), shard: id(12), at, slots, config_epoch: 0 });
        changes.iter().for_each(|change| _ = metadata.apply(change));
        metadata
    }

    #[test]
    fn only_what_differs_is_looked_at() {
        let all = Change::AddSlots { node: id(1), slots: vec![(0, 16_383)] };
        let changed = |changes: &[Change]| {
            let before = metadata(std::slice::from_ref(&all));
            let after = metadata(&[std::slice::from_ref(&all), changes].concat());
            changed_slots(&before, &after, id(1)).into_iter().collect::<Vec<_>>()
        };
        assert!(changed(&[]).is_empty());
        assert_eq!(changed(&[Change::DelSlots { slots: vec![(5, 7)] }]), [5, 6, 7]);
        let owner = |slot| Change::SetOwner { node: id(1), slot, owner: id(2), holds_keys: false };
        assert_eq!(changed(&[owner(16_383), owner(0)]), [0, 16_383]);
        let marked = Change::SetMigrating { node: id(1), slot: 3, to: id(2) };
        assert_eq!(changed(&[marked]), [3]);
        let theirs = Change::SetImporting { node: id(2), slot: 3, from: id(1) };
        assert!(changed(&[theirs]).is_empty(), "it is the other's");
    }

    #[test]
    fn a_cluster_is_covered_when_every_slot_has_an_owner_that_answers() {
        let part = metadata(&[Change::AddSlots { node: id(1), slots: vec![(0, 16_382)] }]);
        assert!(!is_covered(&part, true) && is_covered(&part, false));
        let mut whole = part.clone();
        whole.apply(&Change::AddSlots { node: id(2), slots: vec![(16_383, 16_383)] });
        assert!(is_covered(&whole, true));
        whole.apply(&Change::Answers { node: id(2), answers: false, now_ms: 1 });
        assert!(!is_covered(&whole, true));
    }
}

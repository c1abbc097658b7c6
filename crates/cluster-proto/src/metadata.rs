//! What consensus decides: nodes, owners of slots, epochs, open slots, migrations, health.
//!
//! Owns: the state and [`Metadata::apply`], which is total: every change in every state has an outcome, on every node the same, and
//! one that is refused changes nothing. Does **not** own keys: whether a node holds some is part of a change when it matters.
//!
//! # Invariants
//! * A slot has at most one owner, and that is a primary of the cluster.
//! * Only a slot's owner has it marked as migrating; the owner never has it marked as importing. Who has a marker and whom it names are
//!   primaries of the cluster.
//! * A slot is part of at most one migration that is under way; its source owns all of its slots and both of its nodes are
//!   primaries of the cluster.
//! * No two nodes have the same epoch above 0, and none has a higher one than [`Metadata::current_epoch`].
//! * A replica follows a primary of the cluster and shares its shard; no two primaries share one.
//!
//! [`Metadata::check`] checks them, for metadata that were read from elsewhere.
//!
//! Readers get a copy of each new version, so copies share what has not changed.

mod migration;
mod nodes;
mod owners;
mod slots;
#[cfg(test)]
mod tests;

pub use migration::{MESSAGE_BYTES_MAX, MIGRATIONS_KEPT, Migration, MigrationState};

use crate::change::{Change, Outcome, Ranges, Refused};
use crate::id::NodeId;
use crate::node::{Node, Role};
use owners::Owners;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use towline_cluster::{NODES_MAX, SLOT_COUNT, Slot};

/// How long a node that was forgotten may be forgotten again without an error, in milliseconds, as in Redis: tools tell every node.
const FORGOTTEN_MS: u64 = 60_000;
/// Highest epoch that a node may bring along. What Redis can read; above it there is room for all bumps that will ever be.
pub const EPOCH_MAX: u64 = i64::MAX as u64;

/// A slot that a tool is moving key by key, as one node has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Marker {
    /// The owner gives its keys to that node.
    MigratingTo(NodeId),
    /// Keys of that node come in.
    ImportingFrom(NodeId),
}

/// The cluster, as of one entry of the log. A copy is cheap.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Metadata {
    cluster: Option<NodeId>,
    current_epoch: u64,
    nodes: Arc<BTreeMap<NodeId, Node>>,
    owners: Arc<Owners>,
    markers: BTreeMap<(NodeId, Slot), Marker>,
    migrations: Arc<BTreeMap<NodeId, Migration>>,
    migration_count: u64,
    forgotten: BTreeMap<NodeId, u64>,
}

impl Metadata {
    /// The cluster's name; `None` before it is founded.
    pub fn cluster(&self) -> Option<NodeId> {
        self.cluster
    }

    /// The highest epoch that was ever given.
    pub fn current_epoch(&self) -> u64 {
        self.current_epoch
    }

    /// All nodes, by name.
    pub fn nodes(&self) -> &BTreeMap<NodeId, Node> {
        &self.nodes
    }

    /// The node of this name.
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(&id)
    }

    /// Whether it is a node of this cluster, and a primary.
    pub fn is_primary(&self, id: NodeId) -> bool {
        self.nodes.get(&id).is_some_and(|node| node.role == Role::Primary)
    }

    /// The replicas of this node, by name.
    pub fn replicas_of(&self, primary: NodeId) -> impl Iterator<Item = NodeId> {
        let is_its = move |node: &Node| node.role == Role::Replica { of: primary };
        self.nodes.iter().filter(move |(_, node)| is_its(node)).map(|(&id, _)| id)
    }

    /// Who owns the slot.
    pub fn owner(&self, slot: Slot) -> Option<NodeId> {
        self.owners.owner(slot)
    }

    /// All slots that have an owner, ascending.
    pub fn owners(&self) -> impl Iterator<Item = (Slot, NodeId)> {
        self.runs().flat_map(|(first, last, owner)| (first..=last).map(move |slot| (slot, owner)))
    }

    /// The same as `(first, last, owner)`: neighbours with one owner are one run.
    pub fn runs(&self) -> impl Iterator<Item = (Slot, Slot, NodeId)> {
        self.owners.runs()
    }

    /// The slots of a node, as ranges that do not touch each other: the one form in which all nodes write them.
    pub fn slots_of(&self, node: NodeId) -> Ranges {
        self.runs().filter(|&(.., owner)| owner == node).map(|(first, last, _)| (first, last)).collect()
    }

    /// Whether the node owns at least one slot.
    pub fn owns_slots(&self, node: NodeId) -> bool {
        self.runs().any(|(.., owner)| owner == node)
    }

    /// The node's marker of the slot, if a tool has opened it.
    pub fn marker(&self, node: NodeId, slot: Slot) -> Option<Marker> {
        self.markers.get(&(node, slot)).copied()
    }

    /// A node's open slots, ascending.
    pub fn markers_of(&self, node: NodeId) -> impl Iterator<Item = (Slot, Marker)> {
        self.markers.range((node, 0)..=(node, Slot::MAX)).map(|(&(_, slot), &marker)| (slot, marker))
    }

    /// Migrations by name, those that are over included.
    pub fn migrations(&self) -> &BTreeMap<NodeId, Migration> {
        &self.migrations
    }

    /// The migration that is under way for this slot.
    pub fn migration_of(&self, slot: Slot) -> Option<(NodeId, &Migration)> {
        let mut active = self.migrations.iter().filter(|(_, migration)| migration.is_active());
        active.find(|(_, migration)| migration.has(slot)).map(|(&id, migration)| (id, migration))
    }

    /// Whether a migration that was begun after `id` has brought the slot to this node, or may be bringing it. What `id` itself has left there is
    /// not to be dropped then: it is not its own any more.
    pub fn came_later(&self, node: NodeId, slot: Slot, id: NodeId) -> bool {
        let number = self.migrations.get(&id).map_or(0, |migration| migration.number);
        let is_owner = self.owner(slot) == Some(node);
        let mut later = self.migrations.values().filter(|other| other.number > number);
        later.any(|other| {
            let has_come = is_owner && other.state == MigrationState::Done;
            other.target == node && other.has(slot) && (other.is_active() || has_come)
        })
    }

    /// Makes the change, or refuses it. Called with each entry of the log, in its order, once.
    pub fn apply(&mut self, change: &Change) -> Outcome {
        match change {
            Change::Many(changes) => {
                Outcome::Many(changes.iter().map(|part| self.apply_part(part)).collect())
            }
            one => self.apply_part(one),
        }
    }

    fn apply_part(&mut self, change: &Change) -> Outcome {
        let result = match change {
            // Nobody proposes one; without a limit it would be as deep as whoever made it liked.
            Change::Many(_) => Err(Refused::Other("ERR A transaction cannot contain another one".into())),
            Change::BumpEpoch { node } => return self.bump_epoch(*node),
            Change::Found { cluster, node, shard, at } => self.found(*cluster, *node, *shard, at),
            Change::Join { node, shard, at, slots, config_epoch } => {
                self.join(*node, *shard, at, slots, *config_epoch)
            }
            Change::Announce { node, at } => self.announce(*node, at),
            Change::AddSlots { node, slots } => self.add_slots(*node, slots),
            Change::DelSlots { slots } => self.del_slots(slots),
            Change::FlushSlots { node } => self.flush_slots(*node),
            Change::SetMigrating { node, slot, to } => self.set_migrating(*node, *slot, *to),
            Change::SetImporting { node, slot, from } => self.set_importing(*node, *slot, *from),
            Change::SetStable { node, slot } => self.set_stable(*node, *slot),
            Change::SetOwner { node, slot, owner, holds_keys } => {
                self.set_owner(*node, *slot, *owner, *holds_keys)
            }
            Change::SetConfigEpoch { node, epoch } => self.set_config_epoch(*node, *epoch),
            Change::Forget { by, node, now_ms } => self.forget(*by, *node, *now_ms),
            Change::Replicate { node, primary } => self.replicate(*node, *primary),
            Change::Answers { node, answers, now_ms } => self.answers(*node, *answers, *now_ms),
            Change::BeginMigration { id, source, target, slots, now_ms } => {
                self.begin_migration(*id, *source, *target, slots, *now_ms)
            }
            Change::CommitMigration { id, now_ms } => self.commit_migration(*id, *now_ms),
            Change::EndMigration { id, end, message, now_ms } => self.end_migration(
                *id,
                MigrationState::Ended { end: *end, message: message.clone() },
                *now_ms,
            ),
            Change::Leave { node, now_ms } => {
                self.leave(*node, *now_ms);
                Ok(())
            }
        };
        match result {
            Ok(()) => Outcome::Done,
            Err(refused) => Outcome::Refused(refused),
        }
    }

    /// Whether the invariants hold. They do after every change; what was read from a disk or a peer may be anything.
    ///
    /// # Errors
    /// [`Inconsistent`]: whoever wrote it is broken, or has been tampered with. Not retryable.
    pub fn check(&self) -> Result<(), Inconsistent> {
        let holds = |does: bool, what| if does { Ok(()) } else { Err(Inconsistent(what)) };
        let is_primary = |id: NodeId| self.is_primary(id);
        holds(self.owners.is_canonical(), "runs of slots overlap")?;
        holds(self.runs().all(|(.., owner)| is_primary(owner)), "a slot's owner is no primary")?;
        for (&(node, slot), &marker) in &self.markers {
            let (other, is_right) = match marker {
                Marker::MigratingTo(to) => (to, self.owner(slot) == Some(node)),
                Marker::ImportingFrom(from) => (from, self.owner(slot) != Some(node)),
            };
            holds(is_right && usize::from(slot) < SLOT_COUNT, "a marker contradicts the slot's owner")?;
            holds(is_primary(node) && is_primary(other), "a marker of or about a node that is no primary")?;
        }
        let mut moving = BTreeSet::new();
        for migration in self.migrations.values() {
            holds(check_ranges(&migration.slots).is_ok(), "a migration of slots that are none")?;
            if !migration.is_active() {
                continue;
            }
            let is_owned = slots_in(&migration.slots).all(|slot| self.owner(slot) == Some(migration.source));
            holds(is_owned && is_primary(migration.target), "a migration between nodes that cannot")?;
            holds(slots_in(&migration.slots).all(|slot| moving.insert(slot)), "a slot moves twice")?;
        }
        let mut epochs = BTreeSet::new();
        let mut shards = BTreeSet::new();
        for node in self.nodes.values() {
            let epoch = node.config_epoch;
            holds(epoch <= self.current_epoch && (epoch == 0 || epochs.insert(epoch)), "an epoch is wrong")?;
            holds(node.at.is_valid(), "a node's address is malformed")?;
            match node.role {
                Role::Primary => holds(shards.insert(node.shard), "two primaries in one shard")?,
                Role::Replica { of } => {
                    let is_right = is_primary(of) && self.nodes[&of].shard == node.shard;
                    holds(is_right, "a replica follows no primary of its shard")?;
                }
            }
        }
        holds(self.nodes.len() <= NODES_MAX, "too many nodes")
    }
}

/// The metadata break one of their invariants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the cluster's metadata are inconsistent: {0}")]
pub struct Inconsistent(&'static str);

/// Whether they are slots, ascending and apart: an entry may come from a log that somebody has tampered with, and checking first
/// bounds the work.
fn check_ranges(ranges: &Ranges) -> Result<(), Refused> {
    let mut free = 0;
    let is_right = ranges.iter().all(|&(first, last)| {
        let is_right = free <= first && first <= last && usize::from(last) < SLOT_COUNT;
        free = last.saturating_add(1);
        is_right
    });
    if is_right { Ok(()) } else { Err(Refused::Other("ERR Invalid or out of range slot".into())) }
}

fn slots_in(ranges: &Ranges) -> impl Iterator<Item = Slot> {
    ranges.iter().flat_map(|&(first, to)| first..=to)
}

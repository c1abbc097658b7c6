//! Slots that servers move as a whole (`CLUSTER MIGRATESLOTS`), as far as that is decided for good.
//!
//! Owns: the records of migrations and their end. Does **not** own how the data moves: the two nodes do .

use super::{Metadata, check_ranges, slots_in};
use crate::change::{MigrationEnd, Ranges, Refused};
use crate::id::NodeId;
use crate::node::Role;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use towline_cluster::Slot;

/// Migrations that are over and still shown; the oldest goes first. As many as Valkey shows by default.
pub const MIGRATIONS_KEPT: usize = 1000;
/// Longest message of a migration that is kept, in bytes: they are for a line on a screen, and there may be a thousand of them.
pub const MESSAGE_BYTES_MAX: usize = 256;

/// How far a migration that servers drive has come, as far as it is decided for good. What is finer than that only the two nodes know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum MigrationState {
    /// Under way: the source owns the slots.
    Active,
    /// The target owns them.
    Done,
    /// The source owns them, and what the target has of them is to be dropped.
    Ended {
        /// Why.
        end: MigrationEnd,
        /// What is shown to the operator.
        message: String,
    },
}

/// Slots that move by `CLUSTER MIGRATESLOTS`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Migration {
    /// Its place among all migrations; later ones have larger numbers.
    pub number: u64,
    /// Who owns the slots until it is done.
    pub source: NodeId,
    /// Who owns them then.
    pub target: NodeId,
    /// The slots.
    pub slots: Ranges,
    /// How far it has come.
    pub state: MigrationState,
    /// When it was asked for, in unix milliseconds.
    pub created_ms: u64,
    /// When its state changed last, in unix milliseconds.
    pub updated_ms: u64,
}

impl Migration {
    /// Whether `slot` is part of it.
    pub fn has(&self, slot: Slot) -> bool {
        self.slots.iter().any(|&(first, last)| (first..=last).contains(&slot))
    }

    /// Whether nothing is decided yet.
    pub fn is_active(&self) -> bool {
        self.state == MigrationState::Active
    }

    fn is_of(&self, node: NodeId) -> bool {
        self.source == node || self.target == node
    }
}

impl Metadata {
    pub(super) fn begin_migration(
        &mut self,
        id: NodeId,
        source: NodeId,
        target: NodeId,
        slots: &Ranges,
        now_ms: u64,
    ) -> Result<(), Refused> {
        if self.migrations.contains_key(&id) {
            return Ok(());
        }
        match self.nodes.get(&target) {
            None => return Err(Refused::Other(format!("ERR Unknown node name: {target}"))),
            Some(node) if node.role != Role::Primary => return Err(Refused::NotPrimary),
            Some(_) => {}
        }
        if source == target {
            return Err(Refused::Other("ERR Target node can not be this node.".into()));
        }
        check_ranges(slots)?;
        if slots.is_empty() {
            return Err(Refused::Other("ERR No slots to migrate".into()));
        }
        // The history may be long, and the slots many.
        let active: Vec<&Migration> =
            self.migrations.values().filter(|migration| migration.is_active()).collect();
        for slot in slots_in(slots) {
            self.check_may_move(source, target, slot, &active)?;
        }
        self.migration_count += 1;
        let migration = Migration {
            number: self.migration_count,
            source,
            target,
            slots: slots.clone(),
            state: MigrationState::Active,
            created_ms: now_ms,
            updated_ms: now_ms,
        };
        Arc::make_mut(&mut self.migrations).insert(id, migration);
        Ok(())
    }

    fn check_may_move(
        &self,
        source: NodeId,
        target: NodeId,
        slot: Slot,
        active: &[&Migration],
    ) -> Result<(), Refused> {
        match self.owner(slot) {
            None => return Err(Refused::Other(format!("ERR Slot {slot} has no node served."))),
            Some(owner) if owner != source => {
                return Err(Refused::Other("ERR Slots are not served by this node.".into()));
            }
            Some(_) => {}
        }
        if active.iter().any(|migration| migration.has(slot)) {
            return Err(Refused::Other(format!("ERR I am already migrating slot {slot}.")));
        }
        if self.marker(source, slot).is_some() || self.marker(target, slot).is_some() {
            let text = format!("ERR Slot {slot} is open: finish its migration with CLUSTER SETSLOT first.");
            return Err(Refused::Other(text));
        }
        Ok(())
    }

    pub(super) fn commit_migration(&mut self, id: NodeId, now_ms: u64) -> Result<(), Refused> {
        let migration = self.migrations.get(&id);
        let migration = migration.ok_or_else(|| Refused::Other("ERR There is no such migration".into()))?;
        if migration.is_active() {
            let (target, slots) = (migration.target, migration.slots.clone());
            self.give(&slots, Some(target));
            self.bump_epoch(target);
        }
        self.end_migration(id, MigrationState::Done, now_ms)
    }

    /// Idempotent; a migration that is over in another way stays as it is.
    pub(super) fn end_migration(
        &mut self,
        id: NodeId,
        mut state: MigrationState,
        now_ms: u64,
    ) -> Result<(), Refused> {
        let Some(migration) = self.migrations.get(&id) else {
            return Err(Refused::Other("ERR There is no such migration".into()));
        };
        if migration.is_active() {
            if let MigrationState::Ended { message, .. } = &mut state {
                message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX));
            }
            if let Some(migration) = Arc::make_mut(&mut self.migrations).get_mut(&id) {
                (migration.state, migration.updated_ms) = (state, now_ms);
            }
            self.drop_old_migrations();
            return Ok(());
        }
        let is_done = migration.state == MigrationState::Done;
        if is_done == (state == MigrationState::Done) {
            Ok(())
        } else {
            Err(Refused::Other("ERR The migration is over".into()))
        }
    }

    /// The node is gone, and no migration is under way with it.
    pub(super) fn end_migrations_of(&mut self, node: NodeId, now_ms: u64) {
        let of_node = |migration: &Migration| migration.is_active() && migration.is_of(node);
        let ids: Vec<NodeId> =
            self.migrations.iter().filter(|(_, migration)| of_node(migration)).map(|(&id, _)| id).collect();
        for id in ids {
            let message = "One of its nodes left the cluster".into();
            let state = MigrationState::Ended { end: MigrationEnd::Failed, message };
            // It is active, so there is nothing to refuse.
            let _ = self.end_migration(id, state, now_ms);
        }
    }

    fn drop_old_migrations(&mut self) {
        let over = self.migrations.iter().filter(|(_, migration)| !migration.is_active());
        let mut over: Vec<(u64, NodeId)> = over.map(|(&id, migration)| (migration.number, id)).collect();
        let Some(excess) = over.len().checked_sub(MIGRATIONS_KEPT).filter(|&excess| excess > 0) else {
            return;
        };
        over.sort_unstable();
        let migrations = Arc::make_mut(&mut self.migrations);
        for (_, id) in over.iter().take(excess) {
            migrations.remove(id);
        }
    }
}

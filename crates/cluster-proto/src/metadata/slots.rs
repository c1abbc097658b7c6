//! Changes of slots: who owns them, which of them are open, and epochs.
//!
//! Owns: what `ADDSLOTS`, `DELSLOTS`, `FLUSHSLOTS`, `SETSLOT`, `BUMPEPOCH` and `SET-CONFIG-EPOCH` do to the metadata, with Redis's
//! refusals in Redis's order. Does **not** own the words of these commands.

use super::{EPOCH_MAX, Marker, Metadata, check_ranges, slots_in};
use crate::change::{Outcome, Ranges, Refused};
use crate::id::NodeId;
use std::sync::Arc;
use towline_cluster::Slot;

impl Metadata {
    // ---- epochs ---------------------------------------------------------------------------------------------------

    pub(super) fn bump_epoch(&mut self, node: NodeId) -> Outcome {
        let highest = self.nodes.values().map(|node| node.config_epoch).max().unwrap_or(0);
        let is_shared =
            |epoch| self.nodes.values().filter(|node| node.config_epoch == epoch).nth(1).is_some();
        match self.nodes.get(&node).map(|node| node.config_epoch) {
            None => Outcome::Refused(Refused::UnknownNode(node)),
            Some(epoch) if epoch != 0 && epoch == highest && !is_shared(epoch) => {
                Outcome::Epoch { epoch, is_new: false }
            }
            Some(_) => {
                self.current_epoch = self.current_epoch.max(highest).saturating_add(1);
                let epoch = self.current_epoch;
                let _ = self.with_node(node, |node| node.config_epoch = epoch);
                Outcome::Epoch { epoch, is_new: true }
            }
        }
    }

    pub(super) fn set_config_epoch(&mut self, node: NodeId, epoch: u64) -> Result<(), Refused> {
        if epoch > EPOCH_MAX {
            return Err(Refused::Other(format!("ERR Invalid config epoch specified: {epoch}")));
        }
        if self.nodes.len() > 1 {
            let text =
                "ERR The user can assign a config epoch only when the node does not know any other node.";
            return Err(Refused::Other(text.into()));
        }
        if self.nodes.get(&node).is_some_and(|node| node.config_epoch != 0) {
            return Err(Refused::Other("ERR Node config epoch is already non-zero".into()));
        }
        self.with_node(node, |node| node.config_epoch = epoch)?;
        self.current_epoch = self.current_epoch.max(epoch);
        Ok(())
    }

    // ---- owners ---------------------------------------------------------------------------------------------------

    /// Ownership changes, and markers that contradict it go. The ranges are checked.
    pub(super) fn give(&mut self, slots: &Ranges, owner: Option<NodeId>) {
        if let [(slot, last)] = slots[..]
            && slot == last
        {
            return self.give_one(slot, owner);
        }
        let owners = Arc::make_mut(&mut self.owners);
        slots.iter().for_each(|&(first, last)| owners.set(first, last, owner));
        let owners = &*self.owners;
        self.markers.retain(|&(node, slot), marker| match marker {
            Marker::MigratingTo(_) => owners.owner(slot) == Some(node),
            Marker::ImportingFrom(_) => owners.owner(slot) != Some(node),
        });
    }

    /// The same without a walk over all markers: tools give thousands of slots away one by one, with as many of them open.
    fn give_one(&mut self, slot: Slot, owner: Option<NodeId>) {
        let before = self.owner(slot);
        if before == owner {
            return;
        }
        Arc::make_mut(&mut self.owners).set(slot, slot, owner);
        // Only the old owner may have had it marked as migrating, and an owner has it marked as nothing else.
        for node in before.into_iter().chain(owner) {
            self.markers.remove(&(node, slot));
        }
    }

    pub(super) fn add_slots(&mut self, node: NodeId, slots: &Ranges) -> Result<(), Refused> {
        if !self.nodes.contains_key(&node) {
            return Err(Refused::UnknownNode(node));
        }
        if !self.is_primary(node) {
            return Err(Refused::NotPrimary);
        }
        check_ranges(slots)?;
        if let Some(busy) = slots_in(slots).find(|&slot| self.owner(slot).is_some()) {
            return Err(Refused::SlotBusy(busy));
        }
        self.give(slots, Some(node));
        Ok(())
    }

    pub(super) fn del_slots(&mut self, slots: &Ranges) -> Result<(), Refused> {
        check_ranges(slots)?;
        if let Some(free) = slots_in(slots).find(|&slot| self.owner(slot).is_none()) {
            return Err(Refused::SlotUnassigned(free));
        }
        let mut moving = self.migrations.values().filter(|migration| migration.is_active());
        if moving.any(|migration| slots_in(&migration.slots).any(|slot| has(slots, slot))) {
            return Err(Refused::Exporting);
        }
        self.give(slots, None);
        Ok(())
    }

    pub(super) fn flush_slots(&mut self, node: NodeId) -> Result<(), Refused> {
        let slots = self.slots_of(node);
        if slots.is_empty() {
            return Ok(());
        }
        self.del_slots(&slots)
    }

    // ---- SETSLOT --------------------------------------------------------------------------------------------------

    /// What every form of `SETSLOT` checks.
    fn check_setslot(&self, node: NodeId, slot: Slot) -> Result<(), Refused> {
        check_ranges(&vec![(slot, slot)])?;
        if !self.nodes.contains_key(&node) {
            return Err(Refused::UnknownNode(node));
        }
        if !self.is_primary(node) {
            return Err(Refused::SaidToReplica);
        }
        match self.migration_of(slot) {
            Some((_, migration)) if migration.target == node => Err(Refused::Importing),
            Some(_) => Err(Refused::Exporting),
            None => Ok(()),
        }
    }

    pub(super) fn set_migrating(&mut self, node: NodeId, slot: Slot, to: NodeId) -> Result<(), Refused> {
        self.check_setslot(node, slot)?;
        if self.owner(slot) != Some(node) {
            return Err(Refused::NotOwner(slot));
        }
        self.check_other(to)?;
        if to == node {
            return Err(Refused::Other("ERR Target node is myself".into()));
        }
        self.markers.insert((node, slot), Marker::MigratingTo(to));
        Ok(())
    }

    pub(super) fn set_importing(&mut self, node: NodeId, slot: Slot, from: NodeId) -> Result<(), Refused> {
        self.check_setslot(node, slot)?;
        if self.owner(slot) == Some(node) {
            return Err(Refused::AlreadyOwner(slot));
        }
        self.check_other(from)?;
        self.markers.insert((node, slot), Marker::ImportingFrom(from));
        Ok(())
    }

    fn check_other(&self, node: NodeId) -> Result<(), Refused> {
        if !self.nodes.contains_key(&node) {
            return Err(Refused::DoNotKnow(node));
        }
        if self.is_primary(node) { Ok(()) } else { Err(Refused::NotPrimary) }
    }

    pub(super) fn set_stable(&mut self, node: NodeId, slot: Slot) -> Result<(), Refused> {
        self.check_setslot(node, slot)?;
        self.markers.remove(&(node, slot));
        Ok(())
    }

    /// Said to the new owner, it takes the slot; said to the old one, it gives it away; said to anybody else it decides nothing unless
    /// nobody owns the slot. In Redis a third node would believe it, and be told otherwise a second later.
    pub(super) fn set_owner(
        &mut self,
        node: NodeId,
        slot: Slot,
        owner: NodeId,
        holds_keys: bool,
    ) -> Result<(), Refused> {
        self.check_setslot(node, slot)?;
        if !self.nodes.contains_key(&owner) {
            return Err(Refused::UnknownNode(owner));
        }
        if !self.is_primary(owner) {
            return Err(Refused::NotPrimary);
        }
        let before = self.owner(slot);
        if before == Some(node) && owner != node && holds_keys {
            return Err(Refused::HoldsKeys(slot));
        }
        if before.is_none() || before == Some(node) || owner == node {
            let was_importing = matches!(self.marker(owner, slot), Some(Marker::ImportingFrom(_)));
            self.give_one(slot, Some(owner));
            if was_importing || before.is_some_and(|before| before != owner) {
                // Clients that compare views of several nodes take the one with the higher epoch for newer.
                self.bump_epoch(owner);
            }
        }
        if owner != node && self.owner(slot) == Some(owner) {
            self.markers.remove(&(node, slot));
        }
        Ok(())
    }
}

fn has(slots: &Ranges, slot: Slot) -> bool {
    let at = slots.partition_point(|&(first, _)| first <= slot);
    at.checked_sub(1).and_then(|at| slots.get(at)).is_some_and(|&(_, last)| slot <= last)
}

//! Changes of nodes: founding, joining, leaving, being forgotten, following another.
//!
//! Owns: which node belongs to the cluster and as what. Does **not** own who takes part in the log's consensus.

use super::{EPOCH_MAX, FORGOTTEN_MS, Marker, Metadata, NODES_MAX, check_ranges, slots_in};
use crate::change::{Ranges, Refused};
use crate::id::NodeId;
use crate::node::{Announced, Health, Node, Role};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Metadata {
    pub(super) fn found(
        &mut self,
        cluster: NodeId,
        node: NodeId,
        shard: NodeId,
        at: &Announced,
    ) -> Result<(), Refused> {
        match self.cluster {
            // The founder says it again, because it did not see the outcome.
            Some(known) if known == cluster && self.nodes.contains_key(&node) => return Ok(()),
            Some(_) => return Err(Refused::Other("ERR The cluster is founded already".into())),
            None => {}
        }
        check_announced(at)?;
        self.cluster = Some(cluster);
        Arc::make_mut(&mut self.nodes).insert(node, primary(shard, at, 0));
        Ok(())
    }

    pub(super) fn join(
        &mut self,
        node: NodeId,
        shard: NodeId,
        at: &Announced,
        slots: &Ranges,
        config_epoch: u64,
    ) -> Result<(), Refused> {
        if self.cluster.is_none() {
            return Err(Refused::Other("ERR There is no cluster yet".into()));
        }
        check_announced(at)?;
        if self.nodes.contains_key(&node) {
            // It asks again, because it did not hear the answer. What it owns now is what this cluster says.
            return self.with_node(node, |known| known.at = at.clone());
        }
        check_ranges(slots)?;
        if config_epoch > EPOCH_MAX {
            return Err(Refused::Other(format!("ERR Invalid config epoch specified: {config_epoch}")));
        }
        if self.nodes.len() >= NODES_MAX {
            return Err(Refused::Other(format!("ERR The cluster has {NODES_MAX} nodes, which is the most")));
        }
        self.forgotten.remove(&node);
        // A shard belongs to its primary, and this one knows nothing of another.
        let shard = free_shard(&self.nodes, shard);
        Arc::make_mut(&mut self.nodes).insert(node, primary(shard, at, config_epoch));
        self.current_epoch = self.current_epoch.max(config_epoch);
        let wins = |slot: &_| match self.owner(*slot).and_then(|owner| self.nodes.get(&owner)) {
            None => true,
            Some(owner) => owner.config_epoch < config_epoch && self.migration_of(*slot).is_none(),
        };
        let won: Ranges = crate::change::ranges(slots_in(slots).filter(wins));
        self.give(&won, Some(node));
        self.settle_epochs(node);
        Ok(())
    }

    /// Two nodes with the same epoch: the joining one gets a new one, as in Redis the one with the smaller name does.
    fn settle_epochs(&mut self, node: NodeId) {
        let Some(epoch) = self.nodes.get(&node).map(|node| node.config_epoch).filter(|&epoch| epoch > 0)
        else {
            return;
        };
        if self.nodes.iter().any(|(&id, other)| id != node && other.config_epoch == epoch) {
            self.bump_epoch(node);
        }
    }

    pub(super) fn announce(&mut self, node: NodeId, at: &Announced) -> Result<(), Refused> {
        check_announced(at)?;
        self.with_node(node, |node| node.at = at.clone())
    }

    pub(super) fn answers(&mut self, node: NodeId, answers: bool, now_ms: u64) -> Result<(), Refused> {
        self.with_node(node, |node| {
            node.health = match (answers, node.health) {
                (true, _) => Health::Online,
                (false, Health::Online) => Health::Failed { since_ms: now_ms },
                (false, failed @ Health::Failed { .. }) => failed,
            }
        })
    }

    pub(super) fn forget(&mut self, by: NodeId, node: NodeId, now_ms: u64) -> Result<(), Refused> {
        if !self.nodes.contains_key(&node) {
            let is_forgotten = self.forgotten.get(&node).is_some_and(|&until_ms| until_ms > now_ms);
            return if is_forgotten { Ok(()) } else { Err(Refused::UnknownNode(node)) };
        }
        if by == node {
            return Err(Refused::Other("ERR I tried hard but I can't forget myself...".into()));
        }
        if self.nodes.get(&by).is_some_and(|by| by.role == Role::Replica { of: node }) {
            return Err(Refused::Other("ERR Can't forget my master!".into()));
        }
        if self.owns_slots(node) {
            let text = "ERR This node owns slots: move them away first, or 'CLUSTER DELSLOTS' them";
            return Err(Refused::Other(text.into()));
        }
        self.remove(node, now_ms);
        Ok(())
    }

    /// `CLUSTER RESET`: its slots have no owner any more.
    pub(super) fn leave(&mut self, node: NodeId, now_ms: u64) {
        if self.nodes.contains_key(&node) {
            self.end_migrations_of(node, now_ms);
            self.give(&self.slots_of(node), None);
            self.remove(node, now_ms);
        }
    }

    /// The node owns nothing. All that names it goes.
    fn remove(&mut self, node: NodeId, now_ms: u64) {
        self.end_migrations_of(node, now_ms);
        self.drop_markers_about(node);
        let nodes = Arc::make_mut(&mut self.nodes);
        nodes.remove(&node);
        let is_its = |replica: &Node| replica.role == (Role::Replica { of: node });
        let replicas: Vec<NodeId> =
            nodes.iter().filter(|(_, node)| is_its(node)).map(|(&id, _)| id).collect();
        for id in replicas {
            // Each by itself: a shard has one primary.
            let shard = free_shard(nodes, id);
            if let Some(replica) = nodes.get_mut(&id) {
                (replica.role, replica.shard) = (Role::Primary, shard);
            }
        }
        self.forgotten.retain(|_, until_ms| *until_ms > now_ms);
        if self.forgotten.len() < NODES_MAX {
            self.forgotten.insert(node, now_ms.saturating_add(FORGOTTEN_MS));
        }
    }

    fn drop_markers_about(&mut self, node: NodeId) {
        self.markers.retain(|&(at, _), marker| {
            let (Marker::MigratingTo(other) | Marker::ImportingFrom(other)) = *marker;
            at != node && other != node
        });
    }

    pub(super) fn replicate(&mut self, node: NodeId, primary: NodeId) -> Result<(), Refused> {
        let Some(shard) = self.nodes.get(&primary).map(|primary| primary.shard) else {
            return Err(Refused::UnknownNode(primary));
        };
        if node == primary {
            return Err(Refused::Other("ERR Can't replicate myself".into()));
        }
        if !self.is_primary(primary) {
            return Err(Refused::Other("ERR I can only replicate a master, not a replica.".into()));
        }
        let is_moving = self.migrations.values().any(|it| it.is_active() && it.target == node);
        if is_moving || self.owns_slots(node) || self.replicas_of(node).next().is_some() {
            let text = "ERR To set a master the node must be empty and without assigned slots.";
            return Err(Refused::Other(text.into()));
        }
        self.with_node(node, |node| (node.role, node.shard) = (Role::Replica { of: primary }, shard))?;
        // It is empty, so no key is where a marker says that it might be.
        self.drop_markers_about(node);
        Ok(())
    }

    pub(super) fn with_node(&mut self, node: NodeId, change: impl FnOnce(&mut Node)) -> Result<(), Refused> {
        if !self.nodes.contains_key(&node) {
            return Err(Refused::UnknownNode(node));
        }
        Arc::make_mut(&mut self.nodes).get_mut(&node).map(change);
        Ok(())
    }
}

/// A name that no shard has: this one, or the next in order. All nodes must find the same, so none can be drawn.
fn free_shard(nodes: &BTreeMap<NodeId, Node>, mut shard: NodeId) -> NodeId {
    while nodes.values().any(|node| node.shard == shard) {
        shard = shard.next();
    }
    shard
}

fn check_announced(at: &Announced) -> Result<(), Refused> {
    if at.is_valid() {
        return Ok(());
    }
    Err(Refused::Other("ERR An address, host name or node name has characters that it may not have".into()))
}

fn primary(shard: NodeId, at: &Announced, config_epoch: u64) -> Node {
    Node { shard, at: at.clone(), role: Role::Primary, config_epoch, health: Health::Online }
}

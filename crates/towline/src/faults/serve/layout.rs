//! Which shards of a database are on which nodes, who is master, and where its endpoint is bound.
//!
//! Owns the labels that the injector's texts and notices speak of, and how actions change them. Does **not** own data: every
//! database is one store, whatever its layout says, and each of its addresses serves all of it.

use std::collections::BTreeSet;
use std::fmt;

/// A node of the pretended cluster, from 1: the address of the same place in `--addresses`.
pub(super) type Node = usize;

/// Slots of a database.
const SLOTS: u32 = 16_384;

/// What a shard is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Master,
    Replica,
}

impl Role {
    /// As `rladmin status` calls it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Master => "master",
            Self::Replica => "slave",
        }
    }
}

/// Ranges of slots, both ends included, in ascending order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Slots(Vec<(u32, u32)>);

impl Slots {
    /// The upper half of them, taken out.
    fn split(&mut self) -> Self {
        let count: u32 = self.0.iter().map(|(first, last)| last - first + 1).sum();
        let (mut kept, mut taken, mut left) = (Vec::new(), Vec::new(), count.div_ceil(2));
        for &(first, last) in &self.0 {
            let here = (last - first + 1).min(left);
            if here > 0 {
                kept.push((first, first + here - 1));
            }
            if first + here <= last {
                taken.push((first + here, last));
            }
            left -= here;
        }
        self.0 = kept;
        Self(taken)
    }

    fn add(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
        self.0.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::new();
        for &(first, last) in &self.0 {
            match merged.last_mut() {
                Some((_, end)) if *end + 1 == first => *end = last,
                _ => merged.push((first, last)),
            }
        }
        self.0 = merged;
    }
}

impl fmt::Display for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (first, last)) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            match first == last {
                true => write!(f, "{comma}{first}")?,
                false => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

/// One shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shard {
    /// Unique in the cluster.
    pub(super) id: u32,
    pub(super) node: Node,
    pub(super) role: Role,
    /// The replica of a master, the master of a replica.
    twin: Option<u32>,
    pub(super) slots: Slots,
}

/// Where connections enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Policy {
    /// By one node at a time.
    Single,
    /// By every node that has a master.
    MasterNodes,
    /// By every node.
    AllNodes,
}

impl Policy {
    pub(super) const ALL: [Self; 3] = [Self::Single, Self::MasterNodes, Self::AllNodes];

    /// As configurations and `rladmin` call it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::MasterNodes => "all-master-shards",
            Self::AllNodes => "all-nodes",
        }
    }
}

/// What moves slots between nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotEffect {
    /// All that a node has, to a node that has none.
    RemoveAdd,
    /// All that a node has, to a node that has some.
    Remove,
    /// One shard, to a node that has none.
    Add,
    /// Half of a shard's slots, to a node that has some.
    Shuffle,
}

impl SlotEffect {
    pub(super) const ALL: [Self; 4] = [Self::RemoveAdd, Self::Remove, Self::Add, Self::Shuffle];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::RemoveAdd => "remove-add",
            Self::Remove => "remove",
            Self::Add => "add",
            Self::Shuffle => "slot-shuffle",
        }
    }
}

/// A move of slots that is decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SlotPlan {
    pub(super) effect: SlotEffect,
    pub(super) from: Node,
    pub(super) to: Node,
    /// The masters whose slots move; of a shuffle, the one that gives half of its own.
    shards: Vec<u32>,
    pub(super) slots: Slots,
}

/// The layout of one database.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    node_count: usize,
    pub(super) policy: Policy,
    pub(super) shards: Vec<Shard>,
    /// Where a single endpoint is bound.
    single: Node,
}

impl Layout {
    /// So many masters, with or without a replica each; identifiers count up from `first_id`.
    ///
    /// Behind a single endpoint all masters are on the first node and their replicas on the second. Otherwise they are spread
    /// over all nodes but the last. Either way one node is left empty, for something to move to.
    pub(super) fn new(
        node_count: usize,
        policy: Policy,
        masters: u32,
        has_replicas: bool,
        first_id: u32,
    ) -> Self {
        let spread = match policy {
            Policy::Single => 1,
            Policy::MasterNodes | Policy::AllNodes => node_count.saturating_sub(1).max(1),
        };
        let mut shards = Vec::new();
        for (place, index) in (0..masters).enumerate() {
            let slots = Slots(vec![(index * SLOTS / masters, (index + 1) * SLOTS / masters - 1)]);
            let id = first_id + index * if has_replicas { 2 } else { 1 };
            let node = place % spread + 1;
            let twin = has_replicas.then_some(id + 1);
            shards.push(Shard { id, node, role: Role::Master, twin, slots: slots.clone() });
            if let Some(replica) = twin {
                let node = node % node_count.min(spread.max(2)) + 1;
                shards.push(Shard { id: replica, node, role: Role::Replica, twin: Some(id), slots });
            }
        }
        Self { node_count, policy, shards, single: 1 }
    }

    /// The nodes by which connections enter.
    pub(super) fn bound(&self) -> BTreeSet<Node> {
        match self.policy {
            Policy::Single => BTreeSet::from([self.single]),
            Policy::MasterNodes => self.masters().map(|shard| shard.node).collect(),
            Policy::AllNodes => self.nodes().collect(),
        }
    }

    fn nodes(&self) -> std::ops::RangeInclusive<Node> {
        1..=self.node_count
    }

    fn masters(&self) -> impl Iterator<Item = &Shard> {
        self.shards.iter().filter(|shard| shard.role == Role::Master)
    }

    fn masters_on(&self, node: Node) -> Vec<u32> {
        self.masters().filter(|shard| shard.node == node).map(|shard| shard.id).collect()
    }

    pub(super) fn has_replicas(&self) -> bool {
        self.shards.iter().any(|shard| shard.role == Role::Replica)
    }

    /// The shards on a node.
    pub(super) fn on(&self, node: Node) -> Vec<u32> {
        self.shards.iter().filter(|shard| shard.node == node).map(|shard| shard.id).collect()
    }

    /// The first of these that is no shard of the database.
    pub(super) fn first_unknown(&self, shards: &[u32]) -> Option<u32> {
        shards.iter().copied().find(|&id| self.shards.iter().all(|shard| shard.id != id))
    }

    /// Whether the node exists.
    ///
    /// # Errors
    /// One line for whoever named it.
    pub(super) fn check(&self, node: Node) -> Result<Node, String> {
        match (1..=self.node_count).contains(&node) {
            true => Ok(node),
            false => Err(format!("there is no node:{node}; there are node:1 to node:{}", self.node_count)),
        }
    }

    /// From where to where all shards of a node migrate. By default they leave the node with most masters for one that has no
    /// shard, or few.
    ///
    /// # Errors
    /// One line: a node does not exist, has nothing, or is the same.
    pub(super) fn migration(
        &self,
        source: Option<Node>,
        target: Option<Node>,
    ) -> Result<(Node, Node), String> {
        let busiest = || self.nodes().rev().max_by_key(|&node| self.masters_on(node).len());
        let from = match source {
            Some(node) => self.check(node)?,
            None => busiest().ok_or("there are no nodes")?,
        };
        let idlest = || self.nodes().filter(|&node| node != from).min_by_key(|&node| self.on(node).len());
        let to = match target {
            Some(node) => self.check(node)?,
            None => idlest().ok_or("there is one node only")?,
        };
        if from == to {
            return Err(format!("node:{from} is source and target"));
        }
        if self.on(from).is_empty() {
            return Err(format!("nothing to do: node:{from} has no shards"));
        }
        Ok((from, to))
    }

    /// Moves shards to a node. A twin that is there changes places with its own.
    pub(super) fn relocate(&mut self, shards: &[u32], to: Node) {
        for &id in shards {
            let Some(shard) = self.shards.iter_mut().find(|shard| shard.id == id) else { continue };
            let (from, twin) = (std::mem::replace(&mut shard.node, to), shard.twin);
            let twin = self.shards.iter_mut().find(|shard| Some(shard.id) == twin && shard.node == to);
            if let Some(twin) = twin
                && !shards.contains(&twin.id)
            {
                twin.node = from;
            }
        }
    }

    /// The masters that fail over: these, or all.
    ///
    /// # Errors
    /// One line: a shard does not exist, is no master, or has no replica.
    pub(super) fn failover(&self, wanted: &[u32]) -> Result<Vec<u32>, String> {
        if !self.has_replicas() {
            return Err("the database has no replicas; create it with \"replication\": true".to_owned());
        }
        if wanted.is_empty() {
            return Ok(self.masters().map(|shard| shard.id).collect());
        }
        for &id in wanted {
            match self.shards.iter().find(|shard| shard.id == id) {
                None => return Err(format!("there is no redis:{id}")),
                Some(Shard { role: Role::Replica, .. }) => return Err(format!("redis:{id} is no master")),
                Some(Shard { role: Role::Master, .. }) => {}
            }
        }
        Ok(wanted.to_vec())
    }

    /// Masters and their replicas change roles.
    pub(super) fn promote_replicas_of(&mut self, masters: &[u32]) {
        let twins: Vec<u32> = self
            .shards
            .iter()
            .filter(|shard| masters.contains(&shard.id))
            .filter_map(|shard| shard.twin)
            .collect();
        for shard in &mut self.shards {
            if masters.contains(&shard.id) {
                shard.role = Role::Replica;
            } else if twins.contains(&shard.id) {
                shard.role = Role::Master;
            }
        }
    }

    /// Which nodes' connections have to move, and to which node. A single endpoint leaves every node but the target, since its
    /// old addresses go on as aliases; with several only the source's do.
    ///
    /// The default target is where masters are, or else the next node, but neither its own nor the first: clients know the
    /// first node's address from their configuration, and come back to it.
    ///
    /// # Errors
    /// One line: a node does not exist, is not bound, or is the same.
    pub(super) fn binding(
        &self,
        source: Option<Node>,
        target: Option<Node>,
    ) -> Result<(Vec<Node>, Node), String> {
        let bound = self.bound();
        let from = match source {
            Some(node) => self.check(node)?,
            None => bound.iter().next().copied().ok_or("the endpoint is bound to no node")?,
        };
        let others = || (1..=self.node_count).map(|step| (from + step - 1) % self.node_count + 1);
        let default = || {
            let away = || others().filter(|&node| node != from);
            let home = away().filter(|&node| node != 1).max_by_key(|&node| self.masters_on(node).len());
            let home = home.filter(|&node| !self.masters_on(node).is_empty());
            home.or_else(|| away().find(|&node| node != 1)).or_else(|| away().next())
        };
        let to = match target {
            Some(node) => self.check(node)?,
            None => default().ok_or("there is one node only")?,
        };
        if from == to {
            return Err(format!("the endpoint is bound to node:{to} already"));
        }
        let leaving = match (self.policy, source) {
            (Policy::Single, None) => self.nodes().filter(|&node| node != to).collect(),
            _ => vec![from],
        };
        Ok((leaving, to))
    }

    /// A single endpoint is bound to a node.
    pub(super) fn bind(&mut self, to: Node) {
        self.single = to;
    }

    /// Which slots an effect moves.
    ///
    /// # Errors
    /// One line: the nodes do not fit the effect.
    pub(super) fn slot_plan(
        &self,
        effect: SlotEffect,
        source: Option<Node>,
        target: Option<Node>,
    ) -> Result<SlotPlan, String> {
        let needs_two = effect == SlotEffect::Add;
        let has_enough = |node: Node| self.masters_on(node).len() >= if needs_two { 2 } else { 1 };
        let from = match source {
            Some(node) => self.check(node).map(|node| has_enough(node).then_some(node))?,
            None => self.nodes().find(|&node| has_enough(node)),
        };
        let from = from.ok_or_else(|| match needs_two {
            true => "no source: the effect leaves a master behind, and needs a node with two".to_owned(),
            false => "no source: the node has no master".to_owned(),
        })?;
        let is_new = matches!(effect, SlotEffect::RemoveAdd | SlotEffect::Add);
        let fits = |node: Node| node != from && self.masters_on(node).is_empty() == is_new;
        let to = match target {
            Some(node) => self.check(node).map(|node| fits(node).then_some(node))?,
            None => self.nodes().find(|&node| fits(node)),
        };
        let to = to.ok_or_else(|| match is_new {
            true => "no target: it has to be a node without masters".to_owned(),
            false => "no target: it has to be another node with masters".to_owned(),
        })?;
        let masters = self.masters_on(from);
        let shards = match effect {
            SlotEffect::RemoveAdd | SlotEffect::Remove => masters,
            SlotEffect::Add | SlotEffect::Shuffle => masters.into_iter().next_back().into_iter().collect(),
        };
        let mut slots = Slots::default();
        for shard in self.shards.iter().filter(|shard| shards.contains(&shard.id)) {
            match effect {
                SlotEffect::Shuffle => slots.add(&shard.slots.clone().split()),
                _ => slots.add(&shard.slots),
            }
        }
        match slots.0.is_empty() {
            true => Err("the shard has one slot only; there is no half of it".to_owned()),
            false => Ok(SlotPlan { effect, from, to, shards, slots }),
        }
    }

    /// The slots have moved.
    pub(super) fn apply(&mut self, plan: &SlotPlan) {
        if plan.effect != SlotEffect::Shuffle {
            self.relocate(&plan.shards, plan.to);
            return;
        }
        let Some(taker) = self.masters_on(plan.to).into_iter().next() else { return };
        let twin_of = |layout: &Self, id| {
            layout.shards.iter().find(|shard| shard.id == id).and_then(|shard| shard.twin)
        };
        let giver = plan.shards.first().copied();
        let givers = [giver, giver.and_then(|id| twin_of(self, id))];
        let takers = [Some(taker), twin_of(self, taker)];
        for shard in &mut self.shards {
            if givers.contains(&Some(shard.id)) {
                shard.slots.split();
            } else if takers.contains(&Some(shard.id)) {
                shard.slots.add(&plan.slots);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn single() -> Layout {
        Layout::new(3, Policy::Single, 2, true, 1)
    }

    fn spread() -> Layout {
        Layout::new(3, Policy::MasterNodes, 3, true, 1)
    }

    fn places(layout: &Layout) -> Vec<String> {
        let text = |shard: &Shard| {
            format!("redis:{} node:{} {} {}", shard.id, shard.node, shard.role.name(), shard.slots)
        };
        layout.shards.iter().map(text).collect()
    }

    /// Every slot has one master, and no master shares a node with its replica.
    fn check(layout: &Layout) {
        let mut all = Slots::default();
        layout.masters().for_each(|shard| all.add(&shard.slots));
        assert_eq!(all, Slots(vec![(0, SLOTS - 1)]), "{:?}", places(layout));
        for shard in &layout.shards {
            let twin = layout.shards.iter().find(|other| Some(other.id) == shard.twin);
            assert!(twin.is_none_or(|twin| twin.node != shard.node && twin.slots == shard.slots));
        }
    }

    #[test]
    fn one_node_is_left_empty() {
        assert_eq!(
            places(&single()),
            [
                "redis:1 node:1 master 0-8191",
                "redis:2 node:2 slave 0-8191",
                "redis:3 node:1 master 8192-16383",
                "redis:4 node:2 slave 8192-16383",
            ]
        );
        assert_eq!(spread().bound(), BTreeSet::from([1, 2]));
        for layout in [single(), spread(), Layout::new(2, Policy::AllNodes, 5, false, 7)] {
            check(&layout);
        }
        assert!(single().on(3).is_empty() && spread().on(3).is_empty());
    }

    #[test]
    fn shards_migrate_to_an_empty_node_by_default() {
        let mut layout = single();
        let (from, to) = layout.migration(None, None).unwrap();
        assert_eq!((from, to), (1, 3));
        layout.relocate(&layout.on(from), to);
        check(&layout);
        assert_eq!(layout.migration(None, None).unwrap(), (3, 1));
        // Onto the replicas' node: they change places.
        layout.relocate(&[1], 2);
        check(&layout);
        assert!(layout.migration(Some(1), None).unwrap_err().contains("nothing to do"));
        assert!(layout.migration(Some(9), None).unwrap_err().contains("node:9"));
        assert!(layout.migration(Some(3), Some(3)).unwrap_err().contains("source and target"));
    }

    #[test]
    fn a_failover_swaps_roles() {
        let mut layout = single();
        let masters = layout.failover(&[]).unwrap();
        assert_eq!(masters, [1, 3]);
        layout.promote_replicas_of(&masters);
        check(&layout);
        assert_eq!(layout.failover(&[]).unwrap(), [2, 4]);
        assert!(layout.failover(&[1]).unwrap_err().contains("no master"));
        assert!(layout.failover(&[9]).unwrap_err().contains("redis:9"));
        assert!(Layout::new(3, Policy::Single, 1, false, 1).failover(&[]).is_err());
    }

    #[test]
    fn a_single_endpoint_never_moves_to_the_configured_address_by_itself() {
        let mut layout = single();
        for expected in [2, 3, 2, 3] {
            let (leaving, to) = layout.binding(None, None).unwrap();
            assert_eq!(to, expected);
            assert_eq!(leaving.len(), 2, "{leaving:?}");
            assert!(leaving.contains(&1) && !leaving.contains(&to));
            layout.bind(to);
        }
        let mut migrated = single();
        migrated.relocate(&[1, 3], 3);
        assert_eq!(migrated.binding(None, None).unwrap(), (vec![1, 2], 3), "after its masters");
        assert_eq!(layout.binding(Some(3), Some(1)).unwrap(), (vec![3], 1));
        assert!(layout.binding(None, Some(3)).unwrap_err().contains("already"));
        assert_eq!(spread().binding(None, None).unwrap(), (vec![1], 2));
        assert_eq!(Layout::new(2, Policy::Single, 1, false, 1).binding(None, None).unwrap().1, 2);
    }

    #[test]
    fn slots_move_as_the_effect_says() {
        let mut layout = spread();
        let plan = layout.slot_plan(SlotEffect::Shuffle, None, None).unwrap();
        assert_eq!((plan.from, plan.to, plan.slots.to_string()), (1, 2, "13653-16383".to_owned()));
        layout.apply(&plan);
        check(&layout);
        assert_eq!(layout.bound(), BTreeSet::from([1, 2]));
        let plan = layout.slot_plan(SlotEffect::Add, None, None).unwrap();
        assert_eq!((plan.from, plan.to, plan.slots.to_string()), (1, 3, "10922-13652".to_owned()));
        layout.apply(&plan);
        check(&layout);
        assert_eq!(layout.bound(), BTreeSet::from([1, 2, 3]));
        let plan = layout.slot_plan(SlotEffect::Remove, Some(2), Some(1)).unwrap();
        layout.apply(&plan);
        check(&layout);
        assert_eq!(layout.bound(), BTreeSet::from([1, 3]));
        let plan = layout.slot_plan(SlotEffect::RemoveAdd, None, None).unwrap();
        assert_eq!((plan.from, plan.to), (1, 2));
        layout.apply(&plan);
        check(&layout);
        for (effect, source, target, what) in [
            (SlotEffect::Remove, None, Some(1), "another node with masters"),
            (SlotEffect::Add, Some(3), None, "a node with two"),
            (SlotEffect::RemoveAdd, Some(1), None, "no master"),
            (SlotEffect::RemoveAdd, Some(4), None, "node:4"),
        ] {
            let error = layout.slot_plan(effect, source, target).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
    }
}

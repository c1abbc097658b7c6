//! What is known about a cluster: its nodes, and who has which slot.
//!
//! Owns the description of nodes, of one node's view, and of what several views agree on. Does not own their reading
//! ([`crate::shards`], [`crate::slots`], [`crate::nodes`]) nor the agreement ([`crate::agree`]).

use std::collections::BTreeMap;

use crate::address::Address;
use crate::slot::{Slot, SlotRange};
use crate::slot_map::SlotMap;

/// Most nodes of one view. Redis Cluster is designed for a thousand; a view with more is an error, not a cluster.
pub const NODES_MAX: usize = 8192;

/// What a node does for its slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Role {
    /// It owns them, or would if it had any.
    #[default]
    Primary,
    /// It follows a primary.
    Replica,
}

/// Whether a node can be used, as its peers see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Health {
    /// It can, as far as anybody knows.
    #[default]
    Online,
    /// It reads its data set.
    Loading,
    /// Its peers have given it up.
    Failed,
}

/// One node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeInfo {
    /// Its name in the cluster, 40 hexadecimal digits; `None` on servers that do not say.
    pub id: Option<Box<str>>,
    /// Where clients reach it, in the form that its cluster prefers; `None` if nobody knows.
    pub address: Option<Address>,
    /// What else leads to it: its IP address, its host name. `MOVED` may name any of these.
    pub aliases: Vec<Address>,
    /// What it does.
    pub role: Role,
    /// The node that it follows, in the same list.
    pub primary: Option<usize>,
    /// Whether it can be used.
    pub health: Health,
    /// Its availability zone, where servers tell (Valkey 8.1 and later).
    pub zone: Option<Box<str>>,
    /// The epoch of its configuration, where servers tell (`CLUSTER NODES`): of two nodes that claim a slot, the one with the
    /// higher epoch is right.
    pub epoch: Option<u64>,
}

impl NodeInfo {
    /// Whether the address is one of this node's.
    pub fn is_at(&self, address: &Address) -> bool {
        self.address.as_ref() == Some(address) || self.aliases.contains(address)
    }

    /// Whether both describe the same node: by their names if both have one, otherwise by an address that both have.
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.id, &other.id) {
            (Some(id), Some(other)) => id == other,
            _ => {
                let shares = |address: &Address| other.is_at(address);
                self.address.iter().chain(&self.aliases).any(shares)
            }
        }
    }
}

/// A slot between two nodes, as one of them sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSlot {
    /// The slot.
    pub slot: Slot,
    /// Which way its keys go.
    pub state: OpenState,
    /// The name of the other node.
    pub other: Box<str>,
}

/// Which way the keys of an open slot go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OpenState {
    /// From the node that was asked to the other.
    Migrating,
    /// From the other to the node that was asked.
    Importing,
}

/// The nodes of a cluster and the owner of each slot.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Topology {
    /// The nodes; their order means nothing.
    pub nodes: Vec<NodeInfo>,
    /// Who has which slot, by number in `nodes`.
    pub slots: SlotMap,
}

impl Topology {
    /// The node that an address leads to.
    pub fn node_at(&self, address: &Address) -> Option<usize> {
        // What a node is called in the first place goes before what it is called besides: aliases may be shared.
        let named = self.nodes.iter().position(|node| node.address.as_ref() == Some(address));
        named.or_else(|| self.nodes.iter().position(|node| node.aliases.contains(address)))
    }

    /// The nodes that own slots, each once.
    pub fn primaries(&self) -> Vec<usize> {
        let mut owners: Vec<usize> = self.slots.ranges().map(|(_, node)| node).collect();
        owners.sort_unstable();
        owners.dedup();
        owners
    }

    /// The usable replicas of node `primary`.
    pub fn replicas_of(&self, primary: usize) -> impl Iterator<Item = usize> {
        self.nodes.iter().enumerate().filter_map(move |(at, node)| {
            (node.primary == Some(primary) && node.role == Role::Replica && node.health == Health::Online)
                .then_some(at)
        })
    }
}

/// Who was asked, and how: what a view leaves out follows from that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The address that was dialled.
    pub address: Address,
    /// Whether TLS is spoken, for which nodes have ports of their own.
    pub is_tls: bool,
}

/// What one node says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct View {
    /// The cluster as it sees it.
    pub topology: Topology,
    /// Itself in the list of nodes, where that is known.
    pub myself: Option<usize>,
    /// The slots that it exports or imports (`CLUSTER NODES` only).
    pub open: Vec<OpenSlot>,
}

/// Why a reply is no view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum ViewError {
    /// It has another shape.
    #[error("the reply does not have the shape of a cluster's topology")]
    Shape,
    /// It has more than [`NODES_MAX`] nodes.
    #[error("the reply has more than {NODES_MAX} nodes")]
    TooManyNodes,
    /// No slot has an owner whose address is known.
    #[error("the reply names no node that has slots")]
    Empty,
}

/// Puts a view together.
#[derive(Debug, Default)]
pub(crate) struct ViewBuilder {
    view: View,
    index: NodeIndex,
}

/// Finds a node again that was described before: by its name, or else by an address.
#[derive(Debug, Default)]
pub(crate) struct NodeIndex(BTreeMap<Box<str>, usize>);

impl NodeIndex {
    /// The number under which `node` is known. Nodes without a name are compared by `is_known_at`, one by one.
    pub(crate) fn find(&self, node: &NodeInfo, is_known_at: impl FnOnce() -> Option<usize>) -> Option<usize> {
        match &node.id {
            Some(id) => self.0.get(id).copied(),
            None => is_known_at(),
        }
    }

    pub(crate) fn insert(&mut self, node: &NodeInfo, at: usize) {
        if let Some(id) = &node.id {
            self.0.insert(id.clone(), at);
        }
    }
}

impl ViewBuilder {
    /// Adds a node, or finds it again. More than [`NODES_MAX`] are an error.
    pub(crate) fn node(&mut self, node: NodeInfo) -> Result<usize, ViewError> {
        let nodes = &mut self.view.topology.nodes;
        let known = self.index.find(&node, || nodes.iter().position(|known| known.is_same(&node)));
        if let Some(at) = known {
            return Ok(at);
        }
        if nodes.len() >= NODES_MAX {
            return Err(ViewError::TooManyNodes);
        }
        self.index.insert(&node, nodes.len());
        nodes.push(node);
        Ok(nodes.len() - 1)
    }

    pub(crate) fn follows(&mut self, replica: usize, primary: usize) {
        if let Some(node) = self.view.topology.nodes.get_mut(replica).filter(|_| replica != primary) {
            node.primary = Some(primary);
        }
    }

    pub(crate) fn owns(&mut self, range: SlotRange, node: usize) {
        self.view.topology.slots.set_range(range, node);
    }

    pub(crate) fn is_myself(&mut self, node: usize) {
        self.view.myself = Some(node);
    }

    pub(crate) fn open(&mut self, open: OpenSlot) {
        if self.view.open.len() < SlotRange::RANGES_MAX {
            self.view.open.push(open);
        }
    }

    /// The view, if it is good for anything.
    pub(crate) fn finish(mut self, asked: &Asked) -> Result<View, ViewError> {
        let topology = &self.view.topology;
        let has_address = |node: usize| topology.nodes.get(node).is_some_and(|node| node.address.is_some());
        if !topology.slots.ranges().any(|(_, node)| has_address(node)) {
            return Err(ViewError::Empty);
        }
        self.view.myself = self.view.myself.or_else(|| topology.node_at(&asked.address));
        Ok(self.view)
    }
}

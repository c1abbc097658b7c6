//! `Quick`: a deque of packed nodes, the "quicklist" encoding.
//!
//! Owns: the nodes, how elements spread over them, and the two running sums (elements, bytes). Does **not** own the
//! decision to be a quicklist: [`super::List`] does. No node is empty; neighbours that fit into one node are joined after
//! insertions into and removals from the middle.

use std::collections::VecDeque;

use super::iter::Iter;
use super::{End, NodeLimit, Side, remove_from_node};
use crate::packed::{Elem, Encoded, Packed};

/// What an element may add to its bytes when packed, as Redis estimates it (`SIZE_ESTIMATE_OVERHEAD`).
const ELEM_OVERHEAD_BYTES: usize = 8;
/// A node that replacements made larger than this many limits is split.
const OVERGROWN_LIMITS: usize = 2;
/// Removals all over the list join neighbours only beyond this many nodes: short lists keep their nodes apart, as in Redis,
/// where a list becomes a listpack again only with its last node.
const JOIN_NODES_MIN: usize = 32;
/// Places for nodes that are kept although unused.
const SPARE_NODES: usize = 8;

/// See the module's description.
#[derive(Debug, Clone)]
pub(super) struct Quick {
    nodes: VecDeque<Packed>,
    len: usize,
    /// Heap bytes of all nodes.
    node_bytes: usize,
}

impl Quick {
    /// A quicklist of one node, or of none when `node` is empty.
    pub(super) fn new(node: Packed) -> Self {
        let (len, node_bytes) = (node.len(), node.mem_bytes());
        let nodes = if node.is_empty() { VecDeque::new() } else { VecDeque::from([node]) };
        Self { nodes, len, node_bytes }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn nodes(&self) -> &VecDeque<Packed> {
        &self.nodes
    }

    pub(super) fn mem_bytes(&self) -> usize {
        size_of::<Self>() + self.nodes.capacity() * size_of::<Packed>() + self.node_bytes
    }

    /// The only node, taken out if it is small enough for the list to become a listpack; an empty one if no node is left.
    pub(super) fn take_small(&mut self, limit: NodeLimit) -> Option<Packed> {
        match self.nodes.len() {
            0 => Some(Packed::new()),
            1 if limit.is_under_half(&self.nodes[0]) && !is_large_node(&self.nodes[0], limit) => {
                self.nodes.pop_front()
            }
            _ => None,
        }
    }

    /// Changes one node and keeps the sums right.
    fn change<R>(&mut self, at: usize, change: impl FnOnce(&mut Packed) -> R) -> R {
        let node = &mut self.nodes[at];
        let (len, bytes) = (node.len(), node.mem_bytes());
        let result = change(node);
        self.len = self.len + node.len() - len;
        self.node_bytes = self.node_bytes + node.mem_bytes() - bytes;
        result
    }

    /// Puts a node in front of the one at `at`, unless it is empty; returns how many nodes there are more.
    fn put(&mut self, at: usize, node: Packed) -> usize {
        if node.is_empty() {
            return 0;
        }
        self.len += node.len();
        self.node_bytes += node.mem_bytes();
        self.nodes.insert(at, node);
        1
    }

    /// Takes the node at `at` out.
    fn take(&mut self, at: usize) -> Packed {
        let node = self.nodes.remove(at).unwrap_or_default();
        self.len -= node.len();
        self.node_bytes -= node.mem_bytes();
        if self.nodes.capacity() > 4 * (self.nodes.len() + SPARE_NODES) {
            self.nodes.shrink_to(2 * (self.nodes.len() + SPARE_NODES));
        }
        node
    }

    /// The node and the index within it of the element `index`, which exists.
    fn locate(&self, index: usize) -> (usize, usize) {
        if index <= self.len / 2 {
            let mut left = index;
            for (at, node) in self.nodes.iter().enumerate() {
                if left < node.len() {
                    return (at, left);
                }
                left -= node.len();
            }
        }
        let mut left = self.len - index;
        for (at, node) in self.nodes.iter().enumerate().rev() {
            if left <= node.len() {
                return (at, node.len() - left);
            }
            left -= node.len();
        }
        (0, 0)
    }

    pub(super) fn get(&self, index: usize) -> Option<Elem<'_>> {
        if index >= self.len {
            return None;
        }
        let (at, inner) = self.locate(index);
        self.nodes.get(at)?.get(inner)
    }

    pub(super) fn iter_from(&self, index: usize) -> Iter<'_> {
        if index >= self.len {
            return Iter::new(Default::default(), None);
        }
        let (at, inner) = self.locate(index);
        Iter::new(self.nodes[at].iter_from(inner), Some(self.nodes.range(at + 1..)))
    }

    /// `index` exists.
    pub(super) fn iter_back_from(&self, index: usize) -> Iter<'_> {
        let (at, inner) = self.locate(index);
        Iter::backwards(self.nodes[at].iter_to(inner + 1), Some(self.nodes.range(..at)))
    }

    pub(super) fn push(&mut self, end: End, value: &[u8], limit: NodeLimit) {
        let (at, fresh) = match end {
            End::Front => (0, 0),
            End::Back => (self.nodes.len().wrapping_sub(1), self.nodes.len()),
        };
        if self.nodes.get(at).is_some_and(|node| has_room(node, value, limit)) {
            self.change(at, |node| match end {
                End::Front => node.push_front(value),
                End::Back => node.push_back(value),
            });
        } else {
            self.put(fresh, Packed::from_iter([value]));
        }
    }

    pub(super) fn drop_from(&mut self, end: End, count: usize) {
        let mut left = count.min(self.len);
        while left > 0 {
            let at = if end == End::Front { 0 } else { self.nodes.len() - 1 };
            let len = self.nodes[at].len();
            if len <= left {
                self.take(at);
                left -= len;
                continue;
            }
            self.change(at, |node| match (end, node.first()) {
                (End::Front, Some(first)) => node.remove(first, left),
                _ => node.truncate(len - left),
            });
            left = 0;
        }
    }

    /// `index` exists.
    pub(super) fn set(&mut self, index: usize, value: &[u8], limit: NodeLimit) {
        let (at, inner) = self.locate(index);
        if limit.is_large(value.len()) && self.nodes[at].len() > 1 {
            self.change(at, |node| node.seek(inner).map(|pos| node.remove(pos, 1)));
            self.insert_split(at, inner, Side::Before, value, limit);
            return;
        }
        if is_large_node(&self.nodes[at], limit)
            && self.nodes.get(at + 1).is_some_and(|next| has_room(next, value, limit))
        {
            self.take(at);
            self.change(at, |next| next.push_front(value));
            return;
        }
        let bytes_after = self.change(at, |node| {
            if let Some(pos) = node.seek(inner) {
                node.replace(pos, &Encoded::new(value));
            }
            node.listpack_bytes()
        });
        if self.nodes[at].len() > 1 && limit.is_exceeded(bytes_after / OVERGROWN_LIMITS, 0) {
            let tail = self.change(at, |node| node.split_off(node.index_at_half()));
            self.put(at + 1, tail);
        }
    }

    /// Inserts beside the element `index`, which exists: into its node, at the near end of the neighbour, or as a split.
    pub(super) fn insert_beside(&mut self, index: usize, side: Side, value: &[u8], limit: NodeLimit) {
        let (at, pivot) = self.locate(index);
        let (inner, edge, neighbour) = match side {
            Side::Before => (pivot, pivot == 0, at.wrapping_sub(1)),
            Side::After => (pivot + 1, pivot + 1 == self.nodes[at].len(), at + 1),
        };
        if has_room(&self.nodes[at], value, limit) {
            self.change(at, |node| {
                let pos = node.seek(inner).unwrap_or_else(|| node.end());
                node.insert(pos, &Encoded::new(value));
            });
        } else if edge && self.nodes.get(neighbour).is_some_and(|node| has_room(node, value, limit)) {
            self.change(neighbour, |node| match side {
                Side::Before => node.push_back(value),
                Side::After => node.push_front(value),
            });
        } else if edge {
            self.put(at + usize::from(side == Side::After), Packed::from_iter([value]));
        } else {
            self.insert_split(at, inner, side, value, limit);
        }
    }

    /// Splits the node at `at` in front of its element `inner`. The value goes to the half across from the pivot, or, if
    /// that has no room, between the halves.
    fn insert_split(&mut self, at: usize, inner: usize, side: Side, value: &[u8], limit: NodeLimit) {
        let mut head = self.take(at);
        let mut tail = head.split_off(inner);
        let mut middle = Packed::new();
        match side {
            Side::Before if has_room(&head, value, limit) => head.push_back(value),
            Side::After if has_room(&tail, value, limit) => tail.push_front(value),
            Side::Before | Side::After => middle.push_back(value),
        }
        let mut next = at;
        for node in [head, middle, tail] {
            next += self.put(next, node);
        }
        // The nodes beside a large element stay as they are.
        if !limit.is_large(value.len()) {
            self.join(next.saturating_sub(1), limit);
            self.join(at, limit);
            self.join(at.saturating_sub(1), limit);
        }
    }

    /// Joins the node at `at` with the next one if one node can hold both; answers whether it did.
    fn join(&mut self, at: usize, limit: NodeLimit) -> bool {
        let (Some(node), Some(next)) = (self.nodes.get(at), self.nodes.get(at + 1)) else { return false };
        if limit.is_exceeded(node.listpack_bytes() + next.byte_len(), node.len() + next.len()) {
            return false;
        }
        let next = self.take(at + 1);
        self.change(at, |node| node.append(&next));
        true
    }

    pub(super) fn remove_equal(
        &mut self,
        end: End,
        max: usize,
        wanted: &Encoded<'_>,
        limit: NodeLimit,
    ) -> usize {
        let mut removed = 0;
        for step in 0..self.nodes.len() {
            if removed == max {
                break;
            }
            let at = if end == End::Front { step } else { self.nodes.len() - 1 - step };
            removed += self.change(at, |node| remove_from_node(node, end, max - removed, wanted));
        }
        if removed > 0 {
            self.close_up(limit);
        }
        removed
    }

    /// Drops empty nodes and, in a long list, joins neighbours that fit into one. One pass.
    fn close_up(&mut self, limit: NodeLimit) {
        let nodes = std::mem::take(&mut self.nodes);
        let joins = nodes.len() > JOIN_NODES_MIN;
        (self.len, self.node_bytes) = (0, 0);
        for node in nodes {
            let at = self.nodes.len();
            if self.put(at, node) == 1 && joins && at > 0 {
                self.join(at - 1, limit);
            }
        }
    }
}

/// Whether the node holds a single element that is too large for company.
fn is_large_node(node: &Packed, limit: NodeLimit) -> bool {
    node.len() == 1 && node.get(0).is_some_and(|elem| limit.is_large(elem.len()))
}

/// Whether the node may take one more element. A node with a large element may not: it is beyond the limit already.
fn has_room(node: &Packed, value: &[u8], limit: NodeLimit) -> bool {
    let bytes = node.listpack_bytes().saturating_add(value.len() + ELEM_OVERHEAD_BYTES);
    !limit.is_large(value.len()) && !limit.is_exceeded(bytes, node.len() + 1)
}

//! The order of a large set: a counted B+ tree of (score, member number).
//!
//! Owns order and ranks. Does not own members: a leaf holds their numbers, and only where scores are equal is the member
//! itself looked up, through [`Members`]. Leaves hold the scores side by side, so a search among different scores touches
//! no member at all.
//!
//! An inner node knows the first entry and the number of entries below each child; that makes rank, selection by rank
//! and counting a descent. Nodes are owned by their parent and there are no links between leaves: a walk finds its next
//! leaf by rank, which costs one descent per some sixty entries and needs no unsafe code.

use std::cmp::Ordering;

use super::members::Members;

/// Entries of a leaf: the largest number that makes it 1 KiB, a size class of the allocator.
const LEAF_ENTRIES: usize = 85;
/// Children of an inner node: 1 KiB as well.
const INNER_CHILDREN: usize = 32;
/// Below a quarter a node looks for a neighbour to merge with.
const LEAF_ENTRIES_LOW: usize = LEAF_ENTRIES / 4;
const INNER_CHILDREN_LOW: usize = INNER_CHILDREN / 4;

/// A position in the order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key<'a> {
    pub(super) score: f64,
    pub(super) member: &'a [u8],
}

impl Key<'_> {
    /// How the entry (`score`, `id`) lies to this key.
    fn entry_order(&self, score: f64, id: u32, members: &Members) -> Ordering {
        match score.partial_cmp(&self.score) {
            Some(Ordering::Less) => Ordering::Less,
            Some(Ordering::Greater) => Ordering::Greater,
            Some(Ordering::Equal) | None => members.member(id).cmp(self.member),
        }
    }
}

/// Up to [`LEAF_ENTRIES`] entries in order.
#[derive(Debug, Clone)]
pub(super) struct Leaf {
    scores: [f64; LEAF_ENTRIES],
    ids: [u32; LEAF_ENTRIES],
    len: u16,
}

const _: () = assert!(size_of::<Leaf>() == 1024, "a leaf fills its size class");

/// A child of an inner node.
#[derive(Debug, Clone)]
struct Child {
    /// The first entry below the child.
    score: f64,
    id: u32,
    /// Entries below the child.
    count: u32,
    node: Node,
}

#[derive(Debug, Clone)]
enum Node {
    Leaf(Box<Leaf>),
    Inner(Box<Inner>),
}

/// One to [`INNER_CHILDREN`] children in order, all of the same height.
#[derive(Debug, Clone)]
struct Inner {
    children: Vec<Child>,
}

/// The ordered entries of a set.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    root: Node,
    len: usize,
    leaf_count: usize,
    inner_count: usize,
}

impl Leaf {
    fn new() -> Box<Self> {
        Box::new(Self { scores: [0.0; LEAF_ENTRIES], ids: [0; LEAF_ENTRIES], len: 0 })
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.len)
    }

    fn scores(&self) -> &[f64] {
        &self.scores[..self.len()]
    }

    /// The entry at `at`: its member's number and score.
    pub(super) fn entry(&self, at: usize) -> (u32, f64) {
        (self.ids[at], self.scores[at])
    }

    /// The number of entries before `key`.
    fn position(&self, key: Key<'_>, members: &Members) -> usize {
        let start = self.scores().partition_point(|score| *score < key.score);
        let ties = self.scores()[start..].partition_point(|score| *score == key.score);
        start + self.ids[start..start + ties].partition_point(|id| members.member(*id) < key.member)
    }

    fn insert(&mut self, at: usize, score: f64, id: u32) {
        let len = self.len();
        self.scores.copy_within(at..len, at + 1);
        self.ids.copy_within(at..len, at + 1);
        self.scores[at] = score;
        self.ids[at] = id;
        self.len += 1;
    }

    fn remove(&mut self, at: usize) {
        let len = self.len();
        self.scores.copy_within(at + 1..len, at);
        self.ids.copy_within(at + 1..len, at);
        self.len -= 1;
    }

    /// Moves the entries from `at` on to a new leaf.
    fn split_off(&mut self, at: usize) -> Box<Self> {
        let mut right = Self::new();
        let (len, moved) = (self.len(), self.len() - at);
        right.scores[..moved].copy_from_slice(&self.scores[at..len]);
        right.ids[..moved].copy_from_slice(&self.ids[at..len]);
        right.len = moved as u16;
        self.len = at as u16;
        right
    }

    fn append(&mut self, right: &Self) {
        let (len, total) = (self.len(), self.len() + right.len());
        self.scores[len..total].copy_from_slice(right.scores());
        self.ids[len..total].copy_from_slice(&right.ids[..right.len()]);
        self.len = total as u16;
    }
}

impl Node {
    /// The first entry, zeros for an empty root.
    fn first(&self) -> (f64, u32) {
        match self {
            Self::Leaf(leaf) => (leaf.scores[0], leaf.ids[0]),
            Self::Inner(inner) => (inner.children[0].score, inner.children[0].id),
        }
    }

    /// Entries of a leaf or children of an inner node.
    fn width(&self) -> usize {
        match self {
            Self::Leaf(leaf) => leaf.len(),
            Self::Inner(inner) => inner.children.len(),
        }
    }

    fn count(&self) -> usize {
        match self {
            Self::Leaf(leaf) => leaf.len(),
            Self::Inner(inner) => inner.children.iter().map(|child| child.count as usize).sum(),
        }
    }

    fn is_low(&self) -> bool {
        match self {
            Self::Leaf(leaf) => leaf.len() < LEAF_ENTRIES_LOW,
            Self::Inner(inner) => inner.children.len() < INNER_CHILDREN_LOW,
        }
    }

    fn width_max(&self) -> usize {
        match self {
            Self::Leaf(_) => LEAF_ENTRIES,
            Self::Inner(_) => INNER_CHILDREN,
        }
    }

    /// Takes all of `right`, which fits.
    fn append(&mut self, right: &mut Self) {
        match (self, right) {
            (Self::Leaf(left), Self::Leaf(right)) => left.append(right),
            (Self::Inner(left), Self::Inner(right)) => left.children.append(&mut right.children),
            _ => unreachable!("invariant: siblings have one height"),
        }
    }

    /// Evens out the widths of two neighbours.
    fn balance(&mut self, right: &mut Self) {
        let (left_width, right_width) = (self.width(), right.width());
        let middle = usize::midpoint(left_width, right_width);
        match (self, right) {
            (Self::Leaf(left), Self::Leaf(right)) => {
                if left_width > middle {
                    let mut moved = left.split_off(middle);
                    moved.append(right);
                    *right = moved;
                } else {
                    let rest = right.split_off(right_width - middle);
                    left.append(right);
                    *right = rest;
                }
            }
            (Self::Inner(left), Self::Inner(right)) => {
                if left_width > middle {
                    right.children.splice(0..0, left.children.drain(middle..));
                } else {
                    left.children.extend(right.children.drain(..right_width - middle));
                }
            }
            _ => unreachable!("invariant: siblings have one height"),
        }
    }

    fn into_child(self) -> Child {
        let (score, id) = self.first();
        Child { score, id, count: self.count() as u32, node: self }
    }
}

impl Child {
    /// Takes over the first entry of the node after a change.
    fn refresh_first(&mut self) {
        (self.score, self.id) = self.node.first();
    }

    /// Takes over the first entry and the count of the node after a change.
    fn refresh(&mut self) {
        self.refresh_first();
        self.count = self.node.count() as u32;
    }
}

impl Inner {
    fn new() -> Box<Self> {
        Box::new(Self { children: Vec::with_capacity(INNER_CHILDREN) })
    }

    /// The child whose entries `key` lies among.
    fn child_of(&self, key: Key<'_>, members: &Members) -> usize {
        let is_at_or_before =
            |child: &Child| key.entry_order(child.score, child.id, members) != Ordering::Greater;
        self.children.partition_point(is_at_or_before).saturating_sub(1)
    }

    /// Brings a child with few entries back to size: merges it with a neighbour, or else takes some of a neighbour's.
    /// Returns the node that a merge left empty.
    fn repair_low_child(&mut self, at: usize) -> Option<Node> {
        let is_fit = |pair: &[Child]| match pair {
            [left, right] => left.node.width() + right.node.width() <= left.node.width_max(),
            _ => false,
        };
        let neighbours = [at.checked_sub(1), Some(at)].into_iter().flatten();
        let mut pairs = neighbours.filter(|left_at| left_at + 1 < self.children.len());
        let first = pairs.next()?;
        let best =
            std::iter::once(first).chain(pairs).find(|left_at| is_fit(&self.children[*left_at..left_at + 2]));
        let left_at = best.unwrap_or(first);
        let (left, right) = self.children[left_at..].split_first_mut()?;
        if best.is_some() {
            left.node.append(&mut right[0].node);
        } else {
            left.node.balance(&mut right[0].node);
            right[0].refresh();
        }
        left.refresh();
        best.is_some().then(|| self.children.remove(left_at + 1).node)
    }
}

/// Where to split a full leaf when an entry goes to `at`. At either end nothing moves, so that filling a set in order
/// leaves full leaves behind.
fn leaf_split(at: usize) -> usize {
    if at == LEAF_ENTRIES || at == 0 { at } else { LEAF_ENTRIES / 2 }
}

/// Where to split a full inner node when a child goes to `at`: as for leaves, but both parts get two children at least.
/// A node that falls to one child is repaired by its parent, so every node but a leaf at the root has a neighbour.
fn inner_split(at: usize) -> usize {
    if at == INNER_CHILDREN { INNER_CHILDREN - 1 } else { INNER_CHILDREN / 2 }
}

impl Tree {
    pub(super) fn new() -> Self {
        Self { root: Node::Leaf(Leaf::new()), len: 0, leaf_count: 1, inner_count: 0 }
    }

    pub(super) fn mem_bytes(&self) -> usize {
        self.leaf_count * size_of::<Leaf>()
            + self.inner_count * (size_of::<Inner>() + INNER_CHILDREN * size_of::<Child>())
    }

    /// Inserts an entry that is not in the tree. `key` is its score and member.
    pub(super) fn insert(&mut self, key: Key<'_>, id: u32, members: &Members) {
        self.len += 1;
        let Some(right) = self.grow(key, id, members) else {
            return;
        };
        let left = std::mem::replace(&mut self.root, Node::Inner(Inner::new()));
        self.inner_count += 1;
        if let Node::Inner(root) = &mut self.root {
            root.children.extend([left.into_child(), right]);
        }
    }

    fn grow(&mut self, key: Key<'_>, id: u32, members: &Members) -> Option<Child> {
        let (mut leaves, mut inners) = (0, 0);
        let right = insert_below(&mut self.root, key, id, members, &mut |node| match node {
            Node::Leaf(_) => leaves += 1,
            Node::Inner(_) => inners += 1,
        });
        self.leaf_count += leaves;
        self.inner_count += inners;
        right
    }

    /// Removes the entry at exactly `key`; `false` when there is none.
    pub(super) fn remove(&mut self, key: Key<'_>, members: &Members) -> bool {
        let (mut leaves, mut inners) = (0, 0);
        let is_removed = remove_below(&mut self.root, key, members, &mut |node| match node {
            Node::Leaf(_) => leaves += 1,
            Node::Inner(_) => inners += 1,
        });
        self.leaf_count -= leaves;
        self.inner_count -= inners;
        self.len -= usize::from(is_removed);
        while let Node::Inner(root) = &mut self.root
            && root.children.len() == 1
            && let Some(only) = root.children.pop()
        {
            self.root = only.node;
            self.inner_count -= 1;
        }
        is_removed
    }

    /// Changes the score of the entry at `key` in place if it keeps its neighbours; `false` when it must move.
    pub(super) fn rescore(&mut self, key: Key<'_>, score: f64, members: &Members) -> bool {
        let mut node = &mut self.root;
        loop {
            match node {
                Node::Inner(inner) => {
                    let at = inner.child_of(key, members);
                    node = &mut inner.children[at].node;
                }
                Node::Leaf(leaf) => {
                    let at = leaf.position(key, members);
                    // An entry at the edge of a leaf has neighbours elsewhere, and the first is known to the parents.
                    if at == 0 || at + 1 >= leaf.len() {
                        return false;
                    }
                    let moved = Key { score, ..key };
                    let is_kept = moved.entry_order(leaf.scores[at - 1], leaf.ids[at - 1], members)
                        == Ordering::Less
                        && moved.entry_order(leaf.scores[at + 1], leaf.ids[at + 1], members)
                            == Ordering::Greater;
                    if is_kept {
                        leaf.scores[at] = score;
                    }
                    return is_kept;
                }
            }
        }
    }

    /// Gives the entry at `key` another member number.
    pub(super) fn renumber(&mut self, key: Key<'_>, to: u32, members: &Members) {
        let mut node = &mut self.root;
        loop {
            match node {
                Node::Inner(inner) => {
                    let at = inner.child_of(key, members);
                    let child = &mut inner.children[at];
                    if key.entry_order(child.score, child.id, members) == Ordering::Equal {
                        child.id = to;
                    }
                    node = &mut child.node;
                }
                Node::Leaf(leaf) => {
                    let at = leaf.position(key, members);
                    if let Some(id) = leaf.ids.get_mut(at) {
                        *id = to;
                    }
                    return;
                }
            }
        }
    }

    /// The number of entries for which `is_before` holds; it must hold for a prefix of the order.
    pub(super) fn partition(&self, is_before: impl Fn(f64, u32) -> bool) -> usize {
        let (mut node, mut rank) = (&self.root, 0);
        loop {
            match node {
                Node::Inner(inner) => {
                    let at = inner
                        .children
                        .partition_point(|child| is_before(child.score, child.id))
                        .saturating_sub(1);
                    rank += inner.children[..at].iter().map(|child| child.count as usize).sum::<usize>();
                    node = &inner.children[at].node;
                }
                Node::Leaf(leaf) => {
                    let (mut low, mut high) = (0, leaf.len());
                    while low < high {
                        let middle = usize::midpoint(low, high);
                        if is_before(leaf.scores[middle], leaf.ids[middle]) {
                            low = middle + 1;
                        } else {
                            high = middle;
                        }
                    }
                    return rank + low;
                }
            }
        }
    }

    /// The number of entries before `key`.
    pub(super) fn rank(&self, key: Key<'_>, members: &Members) -> usize {
        self.partition(|score, id| key.entry_order(score, id, members) == Ordering::Less)
    }

    /// The leaf that holds the entry of a rank, and the entry's place in it. `None` behind the end.
    pub(super) fn select(&self, mut rank: usize) -> Option<(&Leaf, usize)> {
        let mut node = &self.root;
        loop {
            match node {
                Node::Inner(inner) => {
                    node = &inner
                        .children
                        .iter()
                        .find(|child| match rank.checked_sub(child.count as usize) {
                            Some(left) => {
                                rank = left;
                                false
                            }
                            None => true,
                        })?
                        .node;
                }
                Node::Leaf(leaf) => return (rank < leaf.len()).then_some((leaf, rank)),
            }
        }
    }
}

/// Inserts below `node`; the new right neighbour when it split. `on_new` sees each node that was made.
fn insert_below(
    node: &mut Node,
    key: Key<'_>,
    id: u32,
    members: &Members,
    on_new: &mut impl FnMut(&Node),
) -> Option<Child> {
    match node {
        Node::Leaf(leaf) => {
            let at = leaf.position(key, members);
            if leaf.len() < LEAF_ENTRIES {
                leaf.insert(at, key.score, id);
                return None;
            }
            let split_at = leaf_split(at);
            let mut right = leaf.split_off(split_at);
            if at > split_at || split_at == LEAF_ENTRIES {
                right.insert(at - split_at, key.score, id);
            } else {
                leaf.insert(at, key.score, id);
            }
            let right = Node::Leaf(right);
            on_new(&right);
            Some(right.into_child())
        }
        Node::Inner(inner) => {
            let at = inner.child_of(key, members);
            let child = &mut inner.children[at];
            let new = insert_below(&mut child.node, key, id, members, on_new);
            child.refresh_first();
            let Some(new) = new else {
                child.count += 1;
                return None;
            };
            child.count = child.node.count() as u32;
            let at = at + 1;
            if inner.children.len() < INNER_CHILDREN {
                inner.children.insert(at, new);
                return None;
            }
            let split_at = inner_split(at);
            let mut right = Inner::new();
            right.children.extend(inner.children.drain(split_at..));
            if at > split_at {
                right.children.insert(at - split_at, new);
            } else {
                inner.children.insert(at, new);
            }
            let right = Node::Inner(right);
            on_new(&right);
            Some(right.into_child())
        }
    }
}

/// Removes the entry at `key` below `node`. `on_gone` sees each node that was merged away.
fn remove_below(node: &mut Node, key: Key<'_>, members: &Members, on_gone: &mut impl FnMut(&Node)) -> bool {
    match node {
        Node::Leaf(leaf) => {
            let at = leaf.position(key, members);
            let is_found =
                at < leaf.len() && key.entry_order(leaf.scores[at], leaf.ids[at], members) == Ordering::Equal;
            if is_found {
                leaf.remove(at);
            }
            is_found
        }
        Node::Inner(inner) => {
            let at = inner.child_of(key, members);
            let child = &mut inner.children[at];
            if !remove_below(&mut child.node, key, members, on_gone) {
                return false;
            }
            child.count -= 1;
            child.refresh_first();
            if child.node.is_low()
                && let Some(gone) = inner.repair_low_child(at)
            {
                on_gone(&gone);
            }
            true
        }
    }
}

#[cfg(test)]
mod tests;

//! The large encoding: members numbered densely, an index from member to number, a tree that orders the numbers.
//!
//! Owns the agreement of the three. Does not own the choice of encoding.

use std::ops::Range;

use super::index::Index;
use super::members::Members;
use super::tree::{Key, Leaf, Tree};
use crate::hasher::hash64;

/// A large sorted set.
#[derive(Clone)]
pub(super) struct Large {
    members: Members,
    index: Index,
    tree: Tree,
}

/// Hashes a member by its number.
fn hash_of(members: &Members) -> impl Fn(u32) -> u64 {
    |id| hash64(members.member(id))
}

impl Large {
    pub(super) fn new() -> Self {
        Self { members: Members::default(), index: Index::default(), tree: Tree::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    pub(super) fn mem_bytes(&self) -> usize {
        size_of::<Self>() + self.members.mem_bytes() + self.index.mem_bytes() + self.tree.mem_bytes()
    }

    fn find(&self, hash: u64, member: &[u8]) -> Option<u32> {
        self.index.find(hash, |id| self.members.member(id) == member)
    }

    fn entry(&self, id: u32) -> (&[u8], f64) {
        (self.members.member(id), self.members.score(id))
    }

    pub(super) fn score(&self, member: &[u8]) -> Option<f64> {
        self.find(hash64(member), member).map(|id| self.members.score(id))
    }

    /// Inserts a member or changes its score; the old score.
    pub(super) fn insert(&mut self, member: &[u8], score: f64) -> Option<f64> {
        let hash = hash64(member);
        let Some(id) = self.find(hash, member) else {
            self.insert_new(hash, member, score);
            return None;
        };
        let old = self.members.score(id);
        let key = Key { score: old, member };
        if old != score && !self.tree.rescore(key, score, &self.members) {
            self.tree.remove(key, &self.members);
            self.tree.insert(Key { score, member }, id, &self.members);
        }
        if old != score {
            self.members.set_score(id, score);
        }
        Some(old)
    }

    fn insert_new(&mut self, hash: u64, member: &[u8], score: f64) {
        let id = self.members.push(member, score);
        self.index.insert(hash, id, hash_of(&self.members));
        self.tree.insert(Key { score, member }, id, &self.members);
    }

    /// Removes a member and returns its score.
    pub(super) fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let hash = hash64(member);
        let id = self.find(hash, member)?;
        let score = self.members.score(id);
        self.tree.remove(Key { score, member }, &self.members);
        self.index.remove(hash, id);
        self.index.shrink(hash, hash_of(&self.members));
        // The last member takes the number that became free.
        if let Some(last) = self.members.last_id().filter(|last| *last != id) {
            let moved = Key { score: self.members.score(last), member: self.members.member(last) };
            self.tree.renumber(moved, id, &self.members);
            self.index.renumber(hash64(moved.member), last, id);
        }
        self.members.swap_remove(id);
        Some(score)
    }

    pub(super) fn rank(&self, member: &[u8]) -> Option<(usize, f64)> {
        let score = self.score(member)?;
        Some((self.tree.rank(Key { score, member }, &self.members), score))
    }

    /// The number of entries whose score satisfies `is_before`, which must hold for a prefix of the order.
    pub(super) fn partition_by_score(&self, is_before: impl Fn(f64) -> bool) -> usize {
        self.tree.partition(|score, _| is_before(score))
    }

    /// The number of entries whose member satisfies `is_before`; some number when it does not hold for a prefix.
    pub(super) fn partition_by_member(&self, is_before: impl Fn(&[u8]) -> bool) -> usize {
        self.tree.partition(|_, id| is_before(self.members.member(id)))
    }

    pub(super) fn range(&self, ranks: Range<usize>) -> LargeIter<'_> {
        LargeIter { set: self, ranks, front: None, back: None }
    }

    /// The entry of a rank.
    pub(super) fn select(&self, rank: usize) -> Option<(&[u8], f64)> {
        self.tree.select(rank).map(|(leaf, at)| self.entry(leaf.entry(at).0))
    }

    /// The number of a member.
    pub(super) fn number(&self, member: &[u8]) -> Option<usize> {
        self.find(hash64(member), member).map(|id| id as usize)
    }

    /// The member of a number below [`Self::len`].
    pub(super) fn numbered(&self, number: usize) -> Option<(&[u8], f64)> {
        (number < self.len()).then(|| self.entry(number as u32))
    }
}

/// Walks a range of ranks from both ends.
#[derive(Clone)]
pub(super) struct LargeIter<'a> {
    set: &'a Large,
    ranks: Range<usize>,
    /// The leaf and place of the first rank, when known.
    front: Option<(&'a Leaf, usize)>,
    /// The leaf and place behind the last rank, when known.
    back: Option<(&'a Leaf, usize)>,
}

impl<'a> LargeIter<'a> {
    pub(super) fn len(&self) -> usize {
        self.ranks.len()
    }

    pub(super) fn next(&mut self) -> Option<(&'a [u8], f64)> {
        let rank = self.ranks.next()?;
        let (leaf, at) = match self.front {
            Some((leaf, at)) if at < leaf.len() => (leaf, at),
            _ => self.set.tree.select(rank)?,
        };
        self.front = Some((leaf, at + 1));
        let (id, score) = leaf.entry(at);
        Some((self.set.members.member(id), score))
    }

    pub(super) fn next_back(&mut self) -> Option<(&'a [u8], f64)> {
        let rank = self.ranks.next_back()?;
        let (leaf, at) = match self.back {
            Some((leaf, behind)) if behind > 0 => (leaf, behind - 1),
            _ => self.set.tree.select(rank)?,
        };
        self.back = Some((leaf, at));
        let (id, score) = leaf.entry(at);
        Some((self.set.members.member(id), score))
    }
}

#[cfg(test)]
impl Large {
    /// Checks that the three parts agree; the tree's height and number of leaves.
    pub(super) fn assert_valid(&self) -> (usize, usize) {
        let height = self.tree.assert_valid(&self.members);
        for number in 0..self.len() {
            let id = number as u32;
            let member = self.members.member(id);
            assert_eq!(self.find(hash64(member), member), Some(id));
        }
        let walked = self.range(0..self.len());
        assert_eq!(walked.len(), self.len());
        (height, self.tree.leaf_count())
    }
}

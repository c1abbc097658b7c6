//! From a value that is being changed to the streams that send it in pieces.
//!
//! Owns: nothing; it carries what [`super::partial::Partial`] must be told. Does **not** decide anything.

use super::Taps;
use crate::hash::Hash;
use crate::list::List;
use crate::set::Set;
use crate::zset::Zset;
use std::fmt;
use std::ops::Range;

/// The streams that send the value of one key in pieces at present.
pub(crate) struct PartialLink<'a> {
    pub(crate) taps: &'a mut Taps,
    pub(crate) db: u8,
    pub(crate) hash: u64,
    pub(crate) key: Box<[u8]>,
}

impl fmt::Debug for PartialLink<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartialLink").field("key", &self.key).finish_non_exhaustive()
    }
}

impl PartialLink<'_> {
    /// A field is about to be set, removed or given another expiry.
    pub(crate) fn before_field(&mut self, hash: &Hash, name: &[u8]) {
        self.taps.for_each_partial(self.db, self.hash, &self.key, |partial| partial.before_field(hash, name));
    }

    /// A member is about to be added or removed.
    pub(crate) fn before_member(&mut self, set: &Set, member: &[u8]) {
        self.taps
            .for_each_partial(self.db, self.hash, &self.key, |partial| partial.before_member(set, member));
    }

    /// A member is about to be added or given another score.
    pub(crate) fn before_score(&mut self, zset: &Zset, member: &[u8]) {
        self.taps
            .for_each_partial(self.db, self.hash, &self.key, |partial| partial.before_score(zset, member));
    }

    /// A member is about to be removed.
    pub(crate) fn before_removal(&mut self, zset: &Zset, member: &[u8]) {
        self.taps
            .for_each_partial(self.db, self.hash, &self.key, |partial| partial.before_removal(zset, member));
    }

    /// Elements are about to be inserted in front of the one with this index.
    pub(crate) fn before_insert(&mut self, at: usize, count: usize) {
        self.taps.for_each_partial(self.db, self.hash, &self.key, |partial| partial.before_insert(at, count));
    }

    /// Elements are about to be removed from the list.
    pub(crate) fn before_cut(&mut self, list: &List, gone: Range<usize>) {
        self.taps.for_each_partial(self.db, self.hash, &self.key, |partial| {
            partial.before_cut(list, gone.clone());
        });
    }

    /// An element of the list is about to be replaced.
    pub(crate) fn before_set(&mut self, list: &List, at: usize) {
        self.taps.for_each_partial(self.db, self.hash, &self.key, |partial| partial.before_set(list, at));
    }
}

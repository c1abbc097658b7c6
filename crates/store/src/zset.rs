//! `Zset`: members with scores, ordered by (score, member).
//!
//! Owns the order, ranks, ranges and the choice between two encodings, which answer `OBJECT ENCODING` with Redis's names:
//! *listpack*, one block of bytes for small sets, and *skiplist*, here a counted B+ tree with a hash index. Does not own
//! parsing of commands nor reply order; a range is a range of ranks, forwards or backwards.
//!
//! A score is any `f64` but not-a-number. `-0.0` equals `0.0`; its sign survives only in the large encoding, as in Redis.
//! Like Redis's, a set that became large stays large.

mod bound;
mod compact;
mod index;
mod large;
mod members;
mod tree;

use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;

pub use bound::{LexBound, LexRange, ScoreBound, ScoreRange};
use compact::{Compact, CompactIter};
use large::{Large, LargeIter};

use crate::limits::EncodingLimits;

/// The order of two entries. Scores are never not-a-number.
fn order(left_score: f64, left_member: &[u8], right_score: f64, right_member: &[u8]) -> Ordering {
    left_score
        .partial_cmp(&right_score)
        .unwrap_or(Ordering::Equal)
        .then_with(|| left_member.cmp(right_member))
}

/// A sorted set.
#[derive(Clone)]
pub struct Zset(Encoded);

#[derive(Clone)]
enum Encoded {
    Compact(Compact),
    Large(Box<Large>),
}

const _: () = assert!(size_of::<Zset>() == 16, "a value is two words in its entry");

/// What [`Zset::insert`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inserted {
    /// The member is new.
    Added,
    /// The member got another score.
    Updated,
    /// The member had this score.
    Unchanged,
    /// The score is not a number; nothing changed.
    NotANumber,
}

/// How a set is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZsetEncoding {
    /// One block of bytes.
    Listpack,
    /// A tree and an index.
    Skiplist,
}

impl ZsetEncoding {
    /// The name that `OBJECT ENCODING` answers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Listpack => "listpack",
            Self::Skiplist => "skiplist",
        }
    }
}

impl Default for Zset {
    fn default() -> Self {
        Self::new()
    }
}

impl Zset {
    /// An empty set; owns no memory yet.
    #[must_use]
    pub fn new() -> Self {
        Self(Encoded::Compact(Compact::default()))
    }

    /// An empty set for `len` members of at most `member_len_max` bytes, in the encoding that these need. Without it, those
    /// added before the set becomes large pass through the compact encoding, which knows no negative zero.
    #[must_use]
    pub fn for_members(len: usize, member_len_max: usize, limits: &EncodingLimits) -> Self {
        let may_be_compact =
            len <= limits.zset_max_listpack_entries && member_len_max <= limits.zset_max_listpack_value;
        if may_be_compact { Self::new() } else { Self(Encoded::Large(Box::new(Large::new()))) }
    }

    /// The number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Encoded::Compact(set) => set.len(),
            Encoded::Large(set) => set.len(),
        }
    }

    /// Whether there is no member.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How the set is stored.
    #[must_use]
    pub fn encoding(&self) -> ZsetEncoding {
        match &self.0 {
            Encoded::Compact(_) => ZsetEncoding::Listpack,
            Encoded::Large(_) => ZsetEncoding::Skiplist,
        }
    }

    /// Bytes on the heap, as asked from the allocator; constant time.
    #[must_use]
    pub fn mem_bytes(&self) -> usize {
        match &self.0 {
            Encoded::Compact(set) => set.mem_bytes(),
            Encoded::Large(set) => set.mem_bytes(),
        }
    }

    /// Sets the score of a member, adding it when it is new. `limits` decide when the set becomes large: with more
    /// members, or with a longer new member, than a listpack may have.
    pub fn insert(&mut self, member: &[u8], score: f64, limits: &EncodingLimits) -> Inserted {
        if score.is_nan() {
            return Inserted::NotANumber;
        }
        let old = match &mut self.0 {
            Encoded::Compact(set) => match set.score(member) {
                Some(old) if old == score => Some(old),
                Some(old) => {
                    set.remove(member);
                    set.insert_new(member, score);
                    Some(old)
                }
                None if may_stay_compact(set, member.len(), limits) => {
                    set.insert_new(member, score);
                    None
                }
                None => self.make_large().insert(member, score),
            },
            Encoded::Large(set) => set.insert(member, score),
        };
        match old {
            None => Inserted::Added,
            Some(old) if old == score => Inserted::Unchanged,
            Some(_) => Inserted::Updated,
        }
    }

    /// Turns the set into the large encoding.
    fn make_large(&mut self) -> &mut Large {
        if let Encoded::Compact(set) = &self.0 {
            let mut large = Box::new(Large::new());
            let mut entries = set.range(0..set.len());
            while let Some((member, score)) = entries.next() {
                large.insert(member, score);
            }
            self.0 = Encoded::Large(large);
        }
        match &mut self.0 {
            Encoded::Large(set) => set,
            Encoded::Compact(_) => unreachable!("invariant: replaced above"),
        }
    }

    /// Removes a member and returns its score.
    pub fn remove(&mut self, member: &[u8]) -> Option<f64> {
        match &mut self.0 {
            Encoded::Compact(set) => set.remove(member),
            Encoded::Large(set) => set.remove(member),
        }
    }

    /// The score of a member.
    #[must_use]
    pub fn score(&self, member: &[u8]) -> Option<f64> {
        match &self.0 {
            Encoded::Compact(set) => set.score(member),
            Encoded::Large(set) => set.score(member),
        }
    }

    /// The rank of a member, counted from the lowest, and its score. The reverse rank is `len - 1 - rank`.
    #[must_use]
    pub fn rank(&self, member: &[u8]) -> Option<(usize, f64)> {
        match &self.0 {
            Encoded::Compact(set) => set.rank(member),
            Encoded::Large(set) => set.rank(member),
        }
    }

    /// The entry of a rank.
    #[must_use]
    pub fn entry(&self, rank: usize) -> Option<(&[u8], f64)> {
        match &self.0 {
            Encoded::Compact(set) if rank < set.len() => set.range(rank..rank + 1).next(),
            Encoded::Compact(_) => None,
            Encoded::Large(set) => set.select(rank),
        }
    }

    /// The ranks whose scores lie in a range; its length is the count.
    #[must_use]
    pub fn ranks_by_score(&self, range: &ScoreRange) -> Range<usize> {
        let ScoreRange { min, max } = *range;
        let partition = |is_before: &dyn Fn(f64) -> bool| match &self.0 {
            Encoded::Compact(set) => set.partition(|score, _| is_before(score)),
            Encoded::Large(set) => set.partition_by_score(is_before),
        };
        let start = partition(&|score| !min.admits_as_min(score));
        let end = partition(&|score| max.admits_as_max(score));
        start..end.max(start)
    }

    /// The ranks whose members lie in a range, for a set whose scores are all equal. With different scores the answer is
    /// some range, as in Redis.
    #[must_use]
    pub fn ranks_by_lex(&self, range: &LexRange<'_>) -> Range<usize> {
        let LexRange { min, max } = *range;
        match &self.0 {
            Encoded::Compact(set) => {
                let start = set.partition(|_, member| !min.admits_as_min(member));
                let mut rank = 0;
                let end = set.partition(|_, member| {
                    rank += 1;
                    rank <= start || max.admits_as_max(member)
                });
                start..end.max(start)
            }
            Encoded::Large(set) => {
                let start = set.partition_by_member(|member| !min.admits_as_min(member));
                let end = set.partition_by_member(|member| max.admits_as_max(member));
                start..end.max(start)
            }
        }
    }

    /// All entries in order.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        self.range(0..self.len())
    }

    /// The entries of a range of ranks, in order; ranks behind the end are ignored. Reverse it for descending order.
    #[must_use]
    pub fn range(&self, ranks: Range<usize>) -> Iter<'_> {
        let end = ranks.end.min(self.len());
        let ranks = ranks.start.min(end)..end;
        Iter(match &self.0 {
            Encoded::Compact(set) => Walk::Compact(set.range(ranks)),
            Encoded::Large(set) => Walk::Large(set.range(ranks)),
        })
    }

    /// The number of a member of a large set: numbers are dense, and a member moves only when one with a lower number is
    /// removed while it has the highest.
    pub(crate) fn number(&self, member: &[u8]) -> Option<usize> {
        match &self.0 {
            Encoded::Compact(_) => None,
            Encoded::Large(set) => set.number(member),
        }
    }

    /// The member of a large set with this number, and its score.
    pub(crate) fn numbered(&self, number: usize) -> Option<(&[u8], f64)> {
        match &self.0 {
            Encoded::Compact(_) => None,
            Encoded::Large(set) => set.numbered(number),
        }
    }

    /// Removes the entries of a range of ranks and returns how many there were; ranks behind the end are ignored.
    pub fn remove_range(&mut self, ranks: Range<usize>) -> usize {
        let end = ranks.end.min(self.len());
        let ranks = ranks.start.min(end)..end;
        let count = ranks.len();
        match &mut self.0 {
            Encoded::Compact(set) => set.remove_range(ranks),
            Encoded::Large(set) => {
                for _ in 0..count {
                    let Some(member) = set.select(ranks.start).map(|(member, _)| member.to_vec()) else {
                        break;
                    };
                    set.remove(&member);
                }
            }
        }
        count
    }

    /// Removes and returns the lowest entry.
    pub fn pop_min(&mut self) -> Option<(Vec<u8>, f64)> {
        self.pop(0)
    }

    /// Removes and returns the highest entry.
    pub fn pop_max(&mut self) -> Option<(Vec<u8>, f64)> {
        self.pop(self.len().checked_sub(1)?)
    }

    fn pop(&mut self, rank: usize) -> Option<(Vec<u8>, f64)> {
        let member = self.entry(rank)?.0.to_vec();
        let score = self.remove(&member)?;
        Some((member, score))
    }

    /// The entry that the random number `random` picks, uniformly but for the rounding of a remainder.
    #[must_use]
    pub fn random(&self, random: u64) -> Option<(&[u8], f64)> {
        let number = random.checked_rem(self.len() as u64)? as usize;
        match &self.0 {
            Encoded::Compact(_) => self.entry(number),
            Encoded::Large(set) => set.numbered(number),
        }
    }

    /// One step of `ZSCAN`: visits about `count` entries (all of a small set) and returns the next cursor, 0 at the end.
    ///
    /// Start with cursor 0. Whatever stays in the set from the first step to the last is visited at least once; any
    /// cursor is accepted.
    pub fn scan(&self, cursor: u64, count: usize, visit: &mut dyn FnMut(&[u8], f64)) -> u64 {
        let Encoded::Large(set) = &self.0 else {
            self.iter().for_each(|(member, score)| visit(member, score));
            return 0;
        };
        // The cursor is how many numbers are left to visit, highest first: members only ever move to lower numbers.
        let len = set.len();
        let left = match usize::try_from(cursor) {
            Ok(left) if (1..len).contains(&left) => left,
            _ => len,
        };
        let stop = left.saturating_sub(count.max(1));
        for (member, score) in (stop..left).rev().filter_map(|number| set.numbered(number)) {
            visit(member, score);
        }
        stop as u64
    }
}

/// Whether one more member of `member_len` bytes may be added without becoming large.
fn may_stay_compact(set: &Compact, member_len: usize, limits: &EncodingLimits) -> bool {
    set.len() < limits.zset_max_listpack_entries
        && member_len <= limits.zset_max_listpack_value
        && set.has_room_for(member_len)
}

impl fmt::Debug for Zset {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Zset({}, {} members)", self.encoding().name(), self.len())
    }
}

impl<'a> IntoIterator for &'a Zset {
    type Item = (&'a [u8], f64);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// Entries of a range of ranks, from either end.
#[derive(Clone)]
pub struct Iter<'a>(Walk<'a>);

#[derive(Clone)]
enum Walk<'a> {
    Compact(CompactIter<'a>),
    Large(LargeIter<'a>),
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a [u8], f64);

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Walk::Compact(walk) => walk.next(),
            Walk::Large(walk) => walk.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = match &self.0 {
            Walk::Compact(walk) => walk.len(),
            Walk::Large(walk) => walk.len(),
        };
        (len, Some(len))
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Walk::Compact(walk) => walk.next_back(),
            Walk::Large(walk) => walk.next_back(),
        }
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl fmt::Debug for Iter<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Iter({} left)", self.len())
    }
}

#[cfg(test)]
mod tests;

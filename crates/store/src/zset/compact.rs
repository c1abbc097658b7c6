//! The small encoding: one block of bytes with the entries in order of (score, member).
//!
//! Owns the layout. Does not own the limits up to which it is used. Every operation walks, which a small set can afford.
//!
//! ```text
//! entry:  tag | score, 0 to 8 bytes LE | member length, LEB128 | member
//! tag:    0..=0xef the score itself | i16 | i32 | i48 | f32 | f64
//! ```
//! A score keeps its value but not the sign of zero: Redis's listpack stores integral scores as integers, too.

use std::cmp::Ordering;
use std::ops::Range;

use smallvec::SmallVec;

use super::order;
use crate::block::{self, Block};

/// Most bytes of all entries, as for Redis's listpacks; a set that would exceed it takes the large encoding.
const CONTENT_BYTES_MAX: usize = 1 << 30;
/// Largest score that the tag holds.
const TAG_SCORE_MAX: u8 = 0xef;
const TAG_I16: u8 = 0xf0;
const TAG_I32: u8 = 0xf1;
const TAG_I48: u8 = 0xf2;
const TAG_F32: u8 = 0xf3;
const TAG_F64: u8 = 0xf4;
/// Magnitude below which an integral score is stored as an integer of at most 48 bits.
const INTEGER_MAX: f64 = (1_i64 << 47) as f64;
/// Bytes in front of a member: the tag, the longest score, a length of up to 32 bits.
const HEAD_BYTES_MAX: usize = 1 + 8 + 5;

/// A small sorted set.
#[derive(Clone, Default)]
pub(super) struct Compact {
    block: Block,
}

/// A decoded entry and where it lies.
#[derive(Debug, Clone, Copy)]
struct Entry<'a> {
    score: f64,
    member: &'a [u8],
    start: usize,
    end: usize,
}

/// Decodes the entry that starts at `start`; `None` at the end.
fn entry_at(content: &[u8], start: usize) -> Option<Entry<'_>> {
    let (&tag, rest) = content.get(start..)?.split_first()?;
    let (score, rest) = match tag {
        TAG_I16 => take(rest, |bytes| f64::from(i16::from_le_bytes(bytes))),
        TAG_I32 => take(rest, |bytes| f64::from(i32::from_le_bytes(bytes))),
        TAG_I48 => take(rest, |bytes: [u8; 6]| i48(bytes) as f64),
        TAG_F32 => take(rest, |bytes| f64::from(f32::from_le_bytes(bytes))),
        TAG_F64 => take(rest, f64::from_le_bytes),
        score => (f64::from(score), rest),
    };
    let (mut len, mut shift, mut member_at) = (0, 0, 0);
    loop {
        let byte = rest[member_at];
        len |= usize::from(byte & 0x7f) << shift;
        shift += 7;
        member_at += 1;
        if byte < 0x80 {
            break;
        }
    }
    let end = content.len() - rest.len() + member_at + len;
    Some(Entry { score, member: &rest[member_at..member_at + len], start, end })
}

fn take<const N: usize>(bytes: &[u8], decode: impl Fn([u8; N]) -> f64) -> (f64, &[u8]) {
    let (head, rest) = bytes.split_first_chunk().expect("invariant: a tag is followed by its score");
    (decode(*head), rest)
}

fn i48(bytes: [u8; 6]) -> i64 {
    let mut wide = [0; 8];
    wide[2..].copy_from_slice(&bytes);
    i64::from_le_bytes(wide) >> 16
}

/// The bytes in front of the member.
fn encode_head(score: f64, member_len: usize) -> SmallVec<[u8; HEAD_BYTES_MAX]> {
    let mut head = SmallVec::new();
    if score.fract() == 0.0 && score.abs() < INTEGER_MAX {
        let integer = score as i64;
        if let Some(tag) = u8::try_from(integer).ok().filter(|tag| *tag <= TAG_SCORE_MAX) {
            head.push(tag);
        } else if let Ok(short) = i16::try_from(integer) {
            head.push(TAG_I16);
            head.extend_from_slice(&short.to_le_bytes());
        } else if let Ok(int) = i32::try_from(integer) {
            head.push(TAG_I32);
            head.extend_from_slice(&int.to_le_bytes());
        } else {
            head.push(TAG_I48);
            head.extend_from_slice(&integer.to_le_bytes()[..6]);
        }
    } else if f64::from(score as f32) == score {
        head.push(TAG_F32);
        head.extend_from_slice(&(score as f32).to_le_bytes());
    } else {
        head.push(TAG_F64);
        head.extend_from_slice(&score.to_le_bytes());
    }
    let mut len = member_len;
    while len >= 0x80 {
        head.push(len as u8 | 0x80);
        len >>= 7;
    }
    head.push(len as u8);
    head
}

impl Compact {
    pub(super) fn len(&self) -> usize {
        self.block.count()
    }

    pub(super) fn mem_bytes(&self) -> usize {
        self.block.mem_bytes()
    }

    /// Whether the layout can hold one more member of `member_len` bytes, whatever the configured limits say.
    pub(super) fn has_room_for(&self, member_len: usize) -> bool {
        self.len() < block::COUNT_MAX && self.block.used() + member_len + HEAD_BYTES_MAX <= CONTENT_BYTES_MAX
    }

    fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let content = self.block.content();
        let mut at = 0;
        std::iter::from_fn(move || {
            let entry = entry_at(content, at)?;
            at = entry.end;
            Some(entry)
        })
    }

    fn find(&self, member: &[u8]) -> Option<(usize, Entry<'_>)> {
        self.entries().enumerate().find(|(_, entry)| entry.member == member)
    }

    pub(super) fn score(&self, member: &[u8]) -> Option<f64> {
        self.find(member).map(|(_, entry)| entry.score)
    }

    pub(super) fn rank(&self, member: &[u8]) -> Option<(usize, f64)> {
        self.find(member).map(|(rank, entry)| (rank, entry.score))
    }

    /// Inserts a member that is not in the set.
    pub(super) fn insert_new(&mut self, member: &[u8], score: f64) {
        let at = self
            .entries()
            .find(|entry| order(entry.score, entry.member, score, member) == Ordering::Greater)
            .map_or_else(|| self.block.used(), |entry| entry.start);
        self.block.splice(at..at, &[&encode_head(score, member.len()), member], self.len() + 1);
    }

    /// Removes a member and returns its score.
    pub(super) fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let (_, entry) = self.find(member)?;
        let (score, bytes) = (entry.score, entry.start..entry.end);
        self.block.splice(bytes, &[], self.len() - 1);
        Some(score)
    }

    /// Removes the entries of a range of ranks.
    pub(super) fn remove_range(&mut self, ranks: Range<usize>) {
        let (start, end) = (self.offset(ranks.start), self.offset(ranks.end));
        self.block.splice(start..end, &[], self.len() - ranks.len());
    }

    /// Where the entry of a rank starts.
    fn offset(&self, rank: usize) -> usize {
        self.entries().nth(rank).map_or_else(|| self.block.used(), |entry| entry.start)
    }

    /// The number of leading entries that satisfy `is_before`, tested one by one.
    pub(super) fn partition(&self, mut is_before: impl FnMut(f64, &[u8]) -> bool) -> usize {
        self.entries().take_while(|entry| is_before(entry.score, entry.member)).count()
    }

    /// The entries of a range of ranks.
    pub(super) fn range(&self, ranks: Range<usize>) -> CompactIter<'_> {
        CompactIter {
            content: self.block.content(),
            at: self.offset(ranks.start),
            left: ranks.len(),
            starts: None,
        }
    }
}

/// Walks a range of a [`Compact`] from both ends.
#[derive(Debug, Clone)]
pub(super) struct CompactIter<'a> {
    content: &'a [u8],
    at: usize,
    left: usize,
    /// Where the entries that are left start; made by the first step from the back, since entries point only forwards.
    starts: Option<Vec<usize>>,
}

impl<'a> CompactIter<'a> {
    pub(super) fn len(&self) -> usize {
        self.left
    }

    pub(super) fn next(&mut self) -> Option<(&'a [u8], f64)> {
        self.left = self.left.checked_sub(1)?;
        let entry = entry_at(self.content, self.at)?;
        self.at = entry.end;
        Some((entry.member, entry.score))
    }

    pub(super) fn next_back(&mut self) -> Option<(&'a [u8], f64)> {
        self.left = self.left.checked_sub(1)?;
        let (content, at, left) = (self.content, self.at, self.left);
        let starts = self.starts.get_or_insert_with(|| {
            let mut starts = Vec::with_capacity(left + 1);
            let mut next = at;
            while let Some(entry) = entry_at(content, next).filter(|_| starts.len() <= left) {
                starts.push(entry.start);
                next = entry.end;
            }
            starts
        });
        let entry = entry_at(content, starts.pop()?)?;
        Some((entry.member, entry.score))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_take_the_fewest_bytes_and_keep_their_value() {
        for (score, head_bytes) in [
            (0.0, 2),
            (239.0, 2),
            (240.0, 4),
            (-1.0, 4),
            (-32_768.0, 4),
            (32_768.0, 6),
            (-2_147_483_649.0, 8),
            (140_737_488_355_327.0, 8),
            (-140_737_488_355_327.0, 8),
            (140_737_488_355_328.0, 6),
            (1.5, 6),
            (f64::INFINITY, 6),
            (f64::NEG_INFINITY, 6),
            (0.1, 10),
            (f64::MAX, 10),
            (5e-324, 10),
        ] {
            let mut set = Compact::default();
            set.insert_new(b"", score);
            assert_eq!(set.block.used(), head_bytes, "{score}");
            assert_eq!(set.score(b""), Some(score));
        }
    }

    #[test]
    fn long_members_have_long_lengths() {
        for len in [0, 127, 128, 16_383, 16_384, 70_000] {
            let mut set = Compact::default();
            let member = vec![7; len];
            set.insert_new(&member, 1.0);
            set.insert_new(b"x", 2.0);
            assert_eq!(set.rank(&member), Some((0, 1.0)));
            assert_eq!(set.rank(b"x"), Some((1, 2.0)));
        }
    }
}

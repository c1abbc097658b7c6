//! What the commands on sorted sets have in common.
//!
//! Owns: the arguments that name a range, the arithmetic of ranks, replies of members with scores. Does **not** own any
//! command.

use crate::command::{Args, CommandError};
use std::ops::Range;
use towline_resp::writer::Writer;
use towline_store::zset::{LexBound, LexRange, ScoreBound, ScoreRange};

const NO_SCORES: CommandError = CommandError::Text("ERR min or max is not a float");
const NO_MEMBERS: CommandError = CommandError::Text("ERR min or max not valid string range item");
/// The error for a sum of infinities of either sign.
pub(super) const NOT_A_NUMBER: CommandError = CommandError::Text("ERR resulting score is not a number (NaN)");

/// Whether a reply shows scores beside the members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scores {
    /// Members only.
    Hidden,
    /// Members and scores: a flat array, in RESP3 an array of pairs.
    Shown,
}

impl Scores {
    /// The head of a reply of `count` members.
    pub(super) fn head(self, out: &mut Writer, count: usize) {
        let is_flat = self == Self::Shown && !out.is_resp3();
        out.array(if is_flat { count.saturating_mul(2) } else { count });
    }

    /// One member of the reply.
    #[inline]
    pub(super) fn entry(self, out: &mut Writer, member: &[u8], score: f64) {
        match self {
            Self::Hidden => out.bulk(member),
            Self::Shown if out.is_resp3() => pair(out, member, score),
            Self::Shown => {
                out.bulk(member);
                out.double(score);
            }
        }
    }

    /// A whole reply.
    pub(super) fn reply<'e>(self, out: &mut Writer, entries: impl ExactSizeIterator<Item = (&'e [u8], f64)>) {
        self.head(out, entries.len());
        entries.for_each(|(member, score)| self.entry(out, member, score));
    }
}

/// A member and its score as an array of two.
pub(super) fn pair(out: &mut Writer, member: &[u8], score: f64) {
    out.array(2);
    out.bulk(member);
    out.double(score);
}

/// Arguments `min` and `max` as the ends of a range of scores.
pub(super) fn score_range(args: Args<'_>, min: usize, max: usize) -> Result<ScoreRange, CommandError> {
    let bound = |index| ScoreBound::parse(args.get(index)).ok_or(NO_SCORES);
    Ok(ScoreRange { min: bound(min)?, max: bound(max)? })
}

/// Arguments `min` and `max` as the ends of a range of members.
pub(super) fn lex_range(args: Args<'_>, min: usize, max: usize) -> Result<LexRange<'_>, CommandError> {
    let bound = |index| LexBound::parse(args.get(index)).ok_or(NO_MEMBERS);
    Ok(LexRange { min: bound(min)?, max: bound(max)? })
}

/// The positions from `start` to `stop`, both included, of a sequence of `len`; negative ones count from the end.
pub(super) fn positions(start: i64, stop: i64, len: usize) -> Range<usize> {
    let from_end = |position: i64| if position < 0 { position.saturating_add(len as i64) } else { position };
    let (start, stop) = (from_end(start).max(0), from_end(stop).min(len as i64 - 1));
    if start > stop { 0..0 } else { start as usize..stop as usize + 1 }
}

#[cfg(test)]
mod tests {
    use super::positions;

    #[test]
    fn positions_count_from_either_end() {
        for (start, stop, expected) in [
            (0, -1, 0..5),
            (1, 2, 1..3),
            (-2, -1, 3..5),
            (-9, 0, 0..1),
            (4, 99, 4..5),
            (5, 9, 0..0),
            (3, 2, 0..0),
            (0, -6, 0..0),
            (i64::MIN, i64::MAX, 0..5),
            (i64::MAX, i64::MIN, 0..0),
        ] {
            assert_eq!(positions(start, stop, 5), expected, "{start} {stop}");
        }
        assert_eq!(positions(0, -1, 0), 0..0);
    }
}

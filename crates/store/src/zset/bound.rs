//! Ends of score and lexicographic ranges, in the form that `ZRANGEBYSCORE` and `ZRANGEBYLEX` take.
//!
//! Owns parsing and the test of one score or member. Does not own the search through a set.

use crate::number::parse_f64_lax;

/// One end of a range of scores; infinities are ordinary scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ScoreBound {
    /// The score itself belongs to the range.
    Included(f64),
    /// The score itself does not belong to the range.
    Excluded(f64),
}

impl ScoreBound {
    /// Parses `1.5`, `(1.5`, `-inf`, `(inf`. `None` when it is no number or not a number.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        match text {
            [b'(', number @ ..] => parse_f64_lax(number).map(Self::Excluded),
            number => parse_f64_lax(number).map(Self::Included),
        }
    }

    /// Whether `score` is inside when this is the lower end.
    #[must_use]
    pub fn admits_as_min(self, score: f64) -> bool {
        match self {
            Self::Included(bound) => score >= bound,
            Self::Excluded(bound) => score > bound,
        }
    }

    /// Whether `score` is inside when this is the upper end.
    #[must_use]
    pub fn admits_as_max(self, score: f64) -> bool {
        match self {
            Self::Included(bound) => score <= bound,
            Self::Excluded(bound) => score < bound,
        }
    }
}

/// A range of scores; empty when the ends cross.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoreRange {
    /// The lower end.
    pub min: ScoreBound,
    /// The upper end.
    pub max: ScoreBound,
}

/// One end of a range of members, ordered as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LexBound<'a> {
    /// `-`: before all members.
    Lowest,
    /// `+`: behind all members.
    Highest,
    /// `[member`: the member itself belongs to the range.
    Included(&'a [u8]),
    /// `(member`: the member itself does not belong to the range.
    Excluded(&'a [u8]),
}

impl<'a> LexBound<'a> {
    /// Parses `-`, `+`, `[member` or `(member`.
    #[must_use]
    pub fn parse(text: &'a [u8]) -> Option<Self> {
        match text {
            b"-" => Some(Self::Lowest),
            b"+" => Some(Self::Highest),
            [b'[', member @ ..] => Some(Self::Included(member)),
            [b'(', member @ ..] => Some(Self::Excluded(member)),
            _ => None,
        }
    }

    /// Whether `member` is inside when this is the lower end.
    #[must_use]
    pub fn admits_as_min(self, member: &[u8]) -> bool {
        match self {
            Self::Lowest => true,
            Self::Highest => false,
            Self::Included(bound) => member >= bound,
            Self::Excluded(bound) => member > bound,
        }
    }

    /// Whether `member` is inside when this is the upper end.
    #[must_use]
    pub fn admits_as_max(self, member: &[u8]) -> bool {
        match self {
            Self::Lowest => false,
            Self::Highest => true,
            Self::Included(bound) => member <= bound,
            Self::Excluded(bound) => member < bound,
        }
    }
}

/// A range of members; meaningful only in a set whose scores are all equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LexRange<'a> {
    /// The lower end.
    pub min: LexBound<'a>,
    /// The upper end.
    pub max: LexBound<'a>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_read_as_redis_reads_them() {
        assert_eq!(ScoreBound::parse(b"1.5"), Some(ScoreBound::Included(1.5)));
        assert_eq!(ScoreBound::parse(b"(1.5"), Some(ScoreBound::Excluded(1.5)));
        assert_eq!(ScoreBound::parse(b"(-inf"), Some(ScoreBound::Excluded(f64::NEG_INFINITY)));
        assert_eq!(ScoreBound::parse(b"("), Some(ScoreBound::Excluded(0.0)));
        assert_eq!(ScoreBound::parse(b"nan"), None);
        assert_eq!(ScoreBound::parse(b"[1"), None);
        assert_eq!(LexBound::parse(b"-"), Some(LexBound::Lowest));
        assert_eq!(LexBound::parse(b"+"), Some(LexBound::Highest));
        assert_eq!(LexBound::parse(b"["), Some(LexBound::Included(b"")));
        assert_eq!(LexBound::parse(b"(a\0"), Some(LexBound::Excluded(b"a\0")));
        for refused in [b"".as_slice(), b"a", b"-a", b"+1"] {
            assert_eq!(LexBound::parse(refused), None);
        }
    }
}

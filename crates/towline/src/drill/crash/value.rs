//! What a key can hold and when it expires, as the model has it and as a server shows it.
//!
//! Owns equality between the two, time included, and the short form for people. Does not own what commands do to a value.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

/// How many elements of a value are shown.
const SHOWN_MAX: usize = 8;

/// How many bytes of a text are shown.
const SHOWN_BYTES: usize = 20;

/// A key in a database.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    pub(super) db: u8,
    pub(super) key: Arc<str>,
}

impl Place {
    pub(super) fn new(db: u8, key: &str) -> Self {
        Self { db, key: key.into() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in database {}", self.key, self.db)
    }
}

/// The value of a field of a hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) text: Bytes,
    /// When the field expires, if it does; milliseconds since 1970.
    pub(super) until: Option<u64>,
}

impl Field {
    /// A field that stays.
    pub(super) fn lasting(text: Bytes) -> Self {
        Self { text, until: None }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", shown(&self.text))?;
        self.until.map_or(Ok(()), |until| write!(f, "@{until}"))
    }
}

/// The content of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Text(Bytes),
    List(VecDeque<Bytes>),
    Hash(BTreeMap<Bytes, Field>),
    Set(BTreeSet<Bytes>),
    /// Members with their scores, which are whole numbers here.
    Zset(BTreeMap<Bytes, i64>),
    /// What an SPOP without an answer has left of a set: any `left` of these.
    Remainder {
        of: BTreeSet<Bytes>,
        left: usize,
    },
}

impl Value {
    /// Whether a server that shows `found` may hold this.
    pub(super) fn allows(&self, found: &Self) -> bool {
        match (self, found) {
            (Self::Remainder { of, left }, Self::Set(found)) => found.len() == *left && found.is_subset(of),
            (expected, found) => expected == found,
        }
    }

    /// Where a hash, a set or a sorted set differs from another: what only one of them has, or has otherwise.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        let pairs = |value: &Self| -> Option<BTreeSet<String>> {
            Some(match value {
                Self::Hash(fields) => fields.iter().map(|(k, v)| format!("{}={v}", shown(k))).collect(),
                Self::Set(members) => members.iter().map(shown).collect(),
                Self::Zset(members) => {
                    members.iter().map(|(m, score)| format!("{}={score}", shown(m))).collect()
                }
                _ => return None,
            })
        };
        let (own, other) = (pairs(self)?, pairs(other)?);
        let some = |a: &BTreeSet<String>, b: &BTreeSet<String>| {
            let all: Vec<&str> = a.difference(b).map(String::as_str).collect();
            format!("{} ({})", all.len(), all[..all.len().min(SHOWN_MAX)].join(" "))
        };
        Some(format!("missing {}, too many {}", some(&own, &other), some(&other, &own)))
    }

    fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::List(items) => items.len(),
            Self::Hash(fields) => fields.len(),
            Self::Set(members) => members.len(),
            Self::Zset(members) => members.len(),
            Self::Remainder { left, .. } => *left,
        }
    }

    /// Whether the key would not exist.
    pub(super) fn is_gone(&self) -> bool {
        !matches!(self, Self::Text(_)) && self.len() == 0
    }
}

fn shown(bytes: &Bytes) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_BYTES)]).into_owned()
}

fn listed(
    f: &mut fmt::Formatter<'_>,
    what: &str,
    len: usize,
    items: impl Iterator<Item = String>,
) -> fmt::Result {
    let items: Vec<String> = items.take(SHOWN_MAX).collect();
    let rest = if len > items.len() { " ..." } else { "" };
    write!(f, "{what} of {len} ({}{rest})", items.join(" "))
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.len();
        match self {
            Self::Text(text) if len > SHOWN_BYTES => write!(f, "text of {len} bytes ({}...)", shown(text)),
            Self::Text(text) => write!(f, "text {}", shown(text)),
            Self::List(items) => {
                // Both ends matter: that is where elements go.
                let ends = items.front().zip(items.back());
                let ends = ends.map(|(first, last)| format!("{} .. {}", shown(first), shown(last)));
                write!(f, "list of {len} ({})", ends.unwrap_or_default())
            }
            Self::Hash(fields) => {
                listed(f, "hash", len, fields.iter().map(|(k, v)| format!("{}={v}", shown(k))))
            }
            Self::Set(members) => listed(f, "set", len, members.iter().map(shown)),
            Self::Zset(members) => {
                listed(f, "zset", len, members.iter().map(|(m, score)| format!("{}={score}", shown(m))))
            }
            Self::Remainder { of, .. } => write!(f, "any {len} of a set of {}", of.len()),
        }
    }
}

/// When a key expires; milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deadline {
    Never,
    At(u64),
    /// A relative time was given and the server has not said what it made of it: no earlier and no later than these.
    Within(u64, u64),
}

impl Deadline {
    fn allows(self, found: Option<u64>) -> bool {
        match (self, found) {
            (Self::Never, None) => true,
            (Self::At(at), Some(found)) => at == found,
            (Self::Within(from, to), Some(found)) => (from..=to).contains(&found),
            _ => false,
        }
    }

    /// The earliest and the latest moment, if there is one.
    fn range(self) -> Option<(u64, u64)> {
        match self {
            Self::Never => None,
            Self::At(at) => Some((at, at)),
            Self::Within(from, to) => Some((from, to)),
        }
    }
}

impl fmt::Display for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => write!(f, "for ever"),
            Self::At(at) => write!(f, "until {at}"),
            Self::Within(from, to) => write!(f, "until {from}..{to}"),
        }
    }
}

/// A key's content as it should be. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) value: Arc<Value>,
    pub(super) deadline: Deadline,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.value)?;
        if self.deadline == Deadline::Never { Ok(()) } else { write!(f, " {}", self.deadline) }
    }
}

/// What a server shows, read between two moments of its clock (milliseconds since 1970).
#[derive(Debug, Clone, Default)]
pub(super) struct Found {
    pub(super) keys: BTreeMap<Place, Entry>,
    pub(super) from_ms: u64,
    pub(super) until_ms: u64,
}

/// How a key compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Match {
    Same,
    /// The value is right and the time to live is not.
    OtherDeadline,
    Different,
}

impl Found {
    /// Compares a key with what is expected of it. A deadline between the two moments allows the key to be there or not.
    pub(super) fn compare(&self, place: &Place, expected: Option<&Entry>) -> Match {
        let found = self.keys.get(place);
        let Some(expected) = expected else {
            return if found.is_none() { Match::Same } else { Match::Different };
        };
        let (may_live, may_be_gone) = expected
            .deadline
            .range()
            .map_or((true, false), |(from, to)| (to > self.from_ms, from <= self.until_ms));
        let Some(found) = found else {
            return if may_be_gone { Match::Same } else { Match::Different };
        };
        let shown = match found.deadline {
            Deadline::At(at) => Some(at),
            Deadline::Never | Deadline::Within(..) => None,
        };
        if !may_live || !expected.value.allows(&found.value) {
            Match::Different
        } else if expected.deadline.allows(shown) {
            Match::Same
        } else {
            Match::OtherDeadline
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &'static str, deadline: Deadline) -> Entry {
        Entry { value: Arc::new(Value::Text(Bytes::from_static(text.as_bytes()))), deadline }
    }

    fn set(members: &[&'static str]) -> BTreeSet<Bytes> {
        members.iter().map(|member| Bytes::from_static(member.as_bytes())).collect()
    }

    fn found(entry: Option<Entry>) -> (Found, Place) {
        let place = Place::new(0, "k");
        let keys = entry.map(|entry| (place.clone(), entry)).into_iter().collect();
        (Found { keys, from_ms: 100, until_ms: 110 }, place)
    }

    #[test]
    fn a_deadline_is_compared_to_the_millisecond() {
        let (found, place) = found(Some(text("v", Deadline::At(500))));
        for (expected, outcome) in [
            (text("v", Deadline::At(500)), Match::Same),
            (text("v", Deadline::At(501)), Match::OtherDeadline),
            (text("v", Deadline::Never), Match::OtherDeadline),
            (text("v", Deadline::Within(490, 500)), Match::Same),
            (text("v", Deadline::Within(490, 499)), Match::OtherDeadline),
            (text("w", Deadline::At(500)), Match::Different),
        ] {
            assert_eq!(found.compare(&place, Some(&expected)), outcome, "{expected}");
        }
        assert_eq!(found.compare(&place, None), Match::Different);
    }

    #[test]
    fn what_has_expired_is_gone_and_what_expires_while_it_is_read_may_be() {
        let (gone, place) = found(None);
        for (deadline, outcome) in [
            (Deadline::At(100), Match::Same),
            (Deadline::At(105), Match::Same),
            (Deadline::At(111), Match::Different),
            (Deadline::Within(90, 200), Match::Same),
            (Deadline::Within(111, 200), Match::Different),
            (Deadline::Never, Match::Different),
        ] {
            assert_eq!(gone.compare(&place, Some(&text("v", deadline))), outcome, "{deadline}");
        }
        let (late, place) = found(Some(text("v", Deadline::At(99))));
        assert_eq!(late.compare(&place, Some(&text("v", Deadline::At(99)))), Match::Different);
        let (late, place) = found(Some(text("v", Deadline::At(105))));
        assert_eq!(late.compare(&place, Some(&text("v", Deadline::At(105)))), Match::Same);
    }

    #[test]
    fn a_pop_without_an_answer_leaves_any_subset_of_that_size() {
        let expected = Value::Remainder { of: set(&["a", "b", "c"]), left: 2 };
        assert!(expected.allows(&Value::Set(set(&["a", "c"]))));
        assert!(!expected.allows(&Value::Set(set(&["a", "b", "c"]))));
        assert!(!expected.allows(&Value::Set(set(&["a", "d"]))));
    }

    #[test]
    fn values_are_shown_short() {
        let long = Value::Text(Bytes::from(vec![b'x'; 5000]));
        assert!(long.to_string().len() < 60, "{long}");
        let hash = Value::Hash(
            (0..99).map(|n: u8| (Bytes::from(n.to_string()), Field::lasting(Bytes::new()))).collect(),
        );
        assert!(hash.to_string().starts_with("hash of 99 (0= 1= "), "{hash}");
        let members = |texts: &[&'static str]| Value::Set(set(texts));
        let difference = members(&["a", "b", "c"]).difference(&members(&["b", "d"]));
        assert_eq!(difference.as_deref(), Some("missing 2 (a c), too many 1 (d)"));
        assert_eq!(long.difference(&long), None);
        let list = Value::List((4..9).map(|n: u8| Bytes::from(n.to_string())).collect());
        assert_eq!(list.to_string(), "list of 5 (4 .. 8)");
    }
}

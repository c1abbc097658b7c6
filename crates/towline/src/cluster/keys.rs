//! Keys that go from one node to another by `MIGRATE`.
//!
//! Owns what follows from each answer: what is tried again, when a value at the target may be overwritten, and which key is to blame.
//! Does not own the state of the slot, which must allow all of it before.

use std::time::Duration;

use bytes::Bytes;
use towline_cluster::Slot;
use towline_cluster_proto::NodeId;
use towline_resp::frame::Frame;

use super::error::ClusterError;
use super::moving::Stuck;
use super::peer::{Words, text_of, words};
use super::survey::Survey;
use crate::cli::one_line;

/// Tries of a MIGRATE that failed for a reason that passes. After IOERR it may have brought some keys, all, or none.
const TRIES_MAX: u32 = 6;

/// Pause before the second try; it doubles.
const PAUSE: Duration = Duration::from_millis(250);

/// MIGRATE's own timeout, of each of its steps: redis-cli's.
const MIGRATE_TIMEOUT_MS: u32 = 60_000;

/// What refusals begin with that pass, at the source or, within its text, at the target.
const PASSING: [&[u8]; 5] = [b"IOERR", b"CLUSTERDOWN", b"LOADING", b"TRYAGAIN", b"MASTERDOWN"];

/// Whether a key that the target has already is overwritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Replace {
    /// Only by an equal value.
    IfEqual,
    /// Yes: the operator wants it, or the target can have it only from a try before.
    Always,
}

/// From where to where, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyMove {
    /// Has the keys.
    pub(super) from: NodeId,
    /// Gets them.
    pub(super) to: NodeId,
    /// Their slot.
    pub(super) slot: Slot,
    /// What about keys that are there already.
    pub(super) replace: Replace,
}

/// What a MIGRATE came to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Answer {
    /// All keys that there were have moved.
    Done,
    /// The target has one of them already; others may have moved.
    Busy,
    /// What passes: the connection between the nodes failed, or the target does not serve at present. Some may have moved.
    Passing(String),
    /// Anything else.
    Refused(String),
}

impl Answer {
    fn of(frame: &Frame) -> Self {
        match frame.as_error() {
            None => Self::Done,
            Some(text) if memchr::memmem::find(text, b"BUSYKEY").is_some() => Self::Busy,
            Some(text) if PASSING.iter().any(|code| memchr::memmem::find(text, code).is_some()) => {
                Self::Passing(one_line(text))
            }
            Some(text) => Self::Refused(one_line(text)),
        }
    }
}

impl KeyMove {
    /// Moves keys. What could not move is the outcome, with its reason; the rest has moved, or was not there any more.
    ///
    /// # Errors
    /// A node does not answer.
    pub(super) fn run(&self, survey: &mut Survey, keys: &[Bytes]) -> Result<Vec<Stuck>, ClusterError> {
        match self.insist(survey, keys, self.replace)? {
            Answer::Done => return Ok(Vec::new()),
            Answer::Refused(reason) | Answer::Passing(reason) if keys.len() < 2 => {
                return Ok(vec![self.stuck(keys.first().cloned(), reason)]);
            }
            _ => {}
        }
        // One of them is to blame, and the answer does not say which.
        let mut stuck = Vec::new();
        for key in keys {
            let one = std::slice::from_ref(key);
            let mut answer = self.insist(survey, one, self.replace)?;
            if answer == Answer::Busy && is_equal(survey, self, key)? {
                answer = self.insist(survey, one, Replace::Always)?;
            }
            match answer {
                Answer::Done => {}
                Answer::Busy => {
                    let reason = "the target has it already, with another value".to_owned();
                    stuck.push(self.stuck(Some(key.clone()), reason));
                }
                Answer::Passing(reason) | Answer::Refused(reason) => {
                    stuck.push(self.stuck(Some(key.clone()), reason));
                }
            }
        }
        Ok(stuck)
    }

    fn stuck(&self, key: Option<Bytes>, reason: String) -> Stuck {
        Stuck { slots: vec![(self.slot, self.slot)], key, reason }
    }

    /// MIGRATE, again as long as only the way between the nodes fails.
    fn insist(&self, survey: &mut Survey, keys: &[Bytes], replace: Replace) -> Result<Answer, ClusterError> {
        let command = self.command(survey, keys, replace)?;
        let mut pause = PAUSE;
        for left in (0..TRIES_MAX).rev() {
            let frame = survey.node(self.from)?.peer.ask(&command)?;
            match Answer::of(&frame) {
                Answer::Passing(_) if left > 0 => {
                    std::thread::sleep(pause);
                    pause *= 2;
                }
                answer => return Ok(answer),
            }
        }
        Ok(Answer::Passing("IOERR".to_owned()))
    }

    fn command(&self, survey: &mut Survey, keys: &[Bytes], replace: Replace) -> Result<Words, ClusterError> {
        let target = survey.node(self.to)?.peer.address.clone();
        let mut command = words(&format!("MIGRATE {} {}", target.host, target.port));
        command.push(Bytes::new());
        command.extend(words(&format!("0 {MIGRATE_TIMEOUT_MS}")));
        if replace == Replace::Always {
            command.push(Bytes::from_static(b"REPLACE"));
        }
        if let Some(credentials) = survey.credentials() {
            match &credentials.user {
                Some(user) => {
                    command.push(Bytes::from_static(b"AUTH2"));
                    command.push(Bytes::copy_from_slice(user));
                }
                None => command.push(Bytes::from_static(b"AUTH")),
            }
            command.push(Bytes::copy_from_slice(&credentials.password));
        }
        command.push(Bytes::from_static(b"KEYS"));
        command.extend(keys.iter().cloned());
        Ok(command)
    }
}

/// Whether both nodes have the same value under a key. In doubt they have not.
fn is_equal(survey: &mut Survey, between: &KeyMove, key: &Bytes) -> Result<bool, ClusterError> {
    let mut both = |command: Words| -> Result<[Frame; 2], ClusterError> {
        let mut one = |node: NodeId| -> Result<Frame, ClusterError> {
            // Whoever does not own the slot serves it only after ASKING; the others do not mind.
            let replies = survey.node(node)?.peer.ask_all(&[words("ASKING"), command.clone()])?;
            Ok(replies.into_iter().nth(1).unwrap_or(Frame::Null))
        };
        Ok([one(between.from)?, one(between.to)?])
    };
    let with_key = |text: &str| {
        let mut command = words(text);
        command.push(key.clone());
        command
    };
    let is_value = |frame: &Frame| frame.as_error().is_none() && !frame.is_null();
    let digests = both(with_key("DEBUG DIGEST-VALUE"))?;
    if digests.iter().all(is_value) {
        return Ok(digests[0] == digests[1]);
    }
    let dumps = both(with_key("DUMP"))?;
    if dumps.iter().all(is_value) && dumps[0] == dumps[1] {
        return Ok(true);
    }
    // The same members may be encoded in another order.
    let types = both(with_key("TYPE"))?;
    if types[0] != types[1] {
        return Ok(false);
    }
    let contents = match text_of(&types[0]).map(|name| name.as_ref()) {
        Some(b"hash") => both(with_key("HGETALL"))?,
        Some(b"set") => both(with_key("SMEMBERS"))?,
        Some(b"zset") => both([with_key("ZRANGE"), words("0 -1 WITHSCORES")].concat())?,
        Some(b"list") => both([with_key("LRANGE"), words("0 -1")].concat())?,
        _ => return Ok(false),
    };
    Ok(contents.iter().all(is_value) && sorted(&contents[0], &types[0]) == sorted(&contents[1], &types[0]))
}

/// Members in an order of their own, where the type has none.
fn sorted(contents: &Frame, kind: &Frame) -> Option<Vec<Vec<Bytes>>> {
    let Frame::Array(parts) = contents else { return None };
    let size = match text_of(kind)?.as_ref() {
        b"hash" | b"zset" => 2,
        _ => 1,
    };
    let texts: Option<Vec<Bytes>> = parts.iter().map(|part| text_of(part).cloned()).collect();
    let mut members: Vec<Vec<Bytes>> = texts?.chunks(size).map(<[Bytes]>::to_vec).collect();
    if text_of(kind)?.as_ref() != b"list" {
        members.sort_unstable();
    }
    Some(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_apart() {
        let error = |text: &'static str| Frame::Error(Bytes::from_static(text.as_bytes()));
        let ok = Frame::Simple(Bytes::from_static(b"NOKEY"));
        assert_eq!(Answer::of(&ok), Answer::Done);
        let busy = error("ERR Target instance replied with error: BUSYKEY Target key name already exists.");
        assert_eq!(Answer::of(&busy), Answer::Busy);
        let io = error("IOERR error or timeout reading to target instance");
        assert!(matches!(Answer::of(&io), Answer::Passing(_)));
        let down = error("ERR Target instance replied with error: CLUSTERDOWN The cluster is down");
        assert!(matches!(Answer::of(&down), Answer::Passing(_)));
        let moved = error("ERR Target instance replied with error: MOVED 0 127.0.0.1:1");
        assert!(matches!(Answer::of(&moved), Answer::Refused(_)));
    }

    #[test]
    fn members_are_compared_whatever_their_order() {
        let bulk = |text: &'static str| Frame::Bulk(Bytes::from_static(text.as_bytes()));
        let array = |texts: &[&'static str]| Frame::Array(texts.iter().map(|text| bulk(text)).collect());
        let (hash, list) = (bulk("hash"), bulk("list"));
        assert_eq!(
            sorted(&array(&["a", "1", "b", "2"]), &hash),
            sorted(&array(&["b", "2", "a", "1"]), &hash)
        );
        assert_ne!(
            sorted(&array(&["a", "1", "b", "2"]), &hash),
            sorted(&array(&["a", "2", "b", "1"]), &hash)
        );
        assert_ne!(sorted(&array(&["a", "b"]), &list), sorted(&array(&["b", "a"]), &list));
    }
}

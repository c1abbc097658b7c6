//! The commands of the load: their words on the wire and the keys that they touch.
//!
//! Owns the form of each command. Does not own what it does to the data, see [`state`](super::state), nor which are chosen.

use std::fmt;

use bytes::Bytes;

use super::value::Place;

/// Fewest milliseconds for which a time to live is written in seconds.
const SECOND_MS: u64 = 1000;

/// Seconds for which BLPOP waits: long enough to meet another client's push, short enough that the load goes on.
const POP_WAIT: &str = "0.01";

/// How many words of a command are shown.
const WORDS_SHOWN: usize = 6;

/// One command, or one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Op {
    /// SET, with PXAT perhaps.
    Set { at: Place, text: Bytes, until: Option<u64> },
    /// SETEX or PSETEX: relative, so the server decides on the moment.
    SetFor { at: Place, text: Bytes, ttl_ms: u64 },
    /// PEXPIREAT.
    ExpireAt { at: Place, until: u64 },
    /// EXPIRE or PEXPIRE: relative.
    ExpireFor { at: Place, ttl_ms: u64 },
    /// PERSIST.
    Persist { at: Place },
    /// PEXPIRETIME: asks which moment the server has made of a relative time.
    Learn { at: Place },
    /// INCRBY.
    IncrBy { at: Place, by: i64 },
    /// APPEND.
    Append { at: Place, text: Bytes },
    /// RPUSH of consecutive numbers.
    RPush { at: Place, items: Vec<Bytes> },
    /// LPOP with a count.
    LPop { at: Place, count: usize },
    /// LMOVE LEFT RIGHT.
    Move { from: Place, to: Place },
    /// HSET.
    HSet { at: Place, fields: Vec<(Bytes, Bytes)> },
    /// HDEL.
    HDel { at: Place, fields: Vec<Bytes> },
    /// HINCRBY.
    HIncrBy { at: Place, field: Bytes, by: i64 },
    /// HPEXPIREAT.
    HExpireAt { at: Place, fields: Vec<Bytes>, until: u64 },
    /// HPERSIST.
    HPersist { at: Place, fields: Vec<Bytes> },
    /// SADD.
    SAdd { at: Place, members: Vec<Bytes> },
    /// SREM.
    SRem { at: Place, members: Vec<Bytes> },
    /// SPOP with a count: the server chooses.
    SPop { at: Place, count: usize },
    /// ZADD.
    ZAdd { at: Place, members: Vec<(Bytes, i64)> },
    /// ZREM.
    ZRem { at: Place, members: Vec<Bytes> },
    /// ZINCRBY.
    ZIncrBy { at: Place, member: Bytes, by: i64 },
    /// ZPOPMIN with a count.
    ZPopMin { at: Place, count: usize },
    /// DEL of keys of one database.
    Del { at: Vec<Place> },
    /// RENAME within a database.
    Rename { from: Place, to: Place },
    /// COPY DB REPLACE.
    Copy { from: Place, to: Place },
    /// FLUSHDB.
    FlushDb { db: u8 },
    /// MULTI to EXEC.
    Multi(Vec<Self>),
    /// RPUSH of the next number to this client's queue, from which another pops.
    Push { queue: Place, number: u64 },
    /// BLPOP from another client's queue.
    Pop { queue: Place },
    /// INCR of a counter that all clients share.
    Shared { counter: Place },
}

impl Op {
    /// The database that the command runs in.
    pub(super) fn db(&self) -> u8 {
        match self {
            Self::FlushDb { db } => *db,
            Self::Multi(ops) => ops.first().map_or(0, Self::db),
            other => other.first_place().map_or(0, |place| place.db),
        }
    }

    fn first_place(&self) -> Option<&Place> {
        match self {
            Self::Set { at, .. }
            | Self::SetFor { at, .. }
            | Self::ExpireAt { at, .. }
            | Self::ExpireFor { at, .. }
            | Self::Persist { at }
            | Self::Learn { at }
            | Self::IncrBy { at, .. }
            | Self::Append { at, .. }
            | Self::RPush { at, .. }
            | Self::LPop { at, .. }
            | Self::HSet { at, .. }
            | Self::HDel { at, .. }
            | Self::HIncrBy { at, .. }
            | Self::HExpireAt { at, .. }
            | Self::HPersist { at, .. }
            | Self::SAdd { at, .. }
            | Self::SRem { at, .. }
            | Self::SPop { at, .. }
            | Self::ZAdd { at, .. }
            | Self::ZRem { at, .. }
            | Self::ZIncrBy { at, .. }
            | Self::ZPopMin { at, .. } => Some(at),
            Self::Move { from, .. } | Self::Rename { from, .. } | Self::Copy { from, .. } => Some(from),
            Self::Del { at } => at.first(),
            Self::Push { queue, .. } | Self::Pop { queue } => Some(queue),
            Self::Shared { counter } => Some(counter),
            Self::FlushDb { .. } | Self::Multi(_) => None,
        }
    }

    /// Calls `visit` with each key of the client's own that the command names; FLUSHDB names none.
    pub(super) fn places(&self, visit: &mut impl FnMut(&Place)) {
        match self {
            Self::Push { .. } | Self::Pop { .. } | Self::Shared { .. } | Self::FlushDb { .. } => {}
            Self::Multi(ops) => ops.iter().for_each(|op| op.places(visit)),
            Self::Del { at } => at.iter().for_each(visit),
            Self::Move { from, to } | Self::Rename { from, to } | Self::Copy { from, to } => {
                visit(from);
                visit(to);
            }
            other => other.first_place().into_iter().for_each(visit),
        }
    }

    /// The command's words; of a transaction, the words of each command in it with MULTI and EXEC around them.
    pub(super) fn commands(&self) -> Vec<Vec<Bytes>> {
        match self {
            Self::Multi(ops) => {
                let mut commands = vec![self.command()];
                commands.extend(ops.iter().flat_map(Self::commands));
                commands.push(words("EXEC"));
                commands
            }
            single => vec![single.command()],
        }
    }

    fn command(&self) -> Vec<Bytes> {
        match self {
            Self::Set { at, text, until: None } => key("SET", at, [text.clone()]),
            Self::Set { at, text, until: Some(until) } => {
                key("SET", at, [text.clone(), "PXAT".into(), number(*until)])
            }
            Self::SetFor { at, text, ttl_ms } => {
                let (name, ttl) = relative(*ttl_ms, ["SETEX", "PSETEX"]);
                key(name, at, [ttl, text.clone()])
            }
            Self::ExpireAt { at, until } => key("PEXPIREAT", at, [number(*until)]),
            Self::ExpireFor { at, ttl_ms } => {
                let (name, ttl) = relative(*ttl_ms, ["EXPIRE", "PEXPIRE"]);
                key(name, at, [ttl])
            }
            Self::Persist { at } => key("PERSIST", at, []),
            Self::Learn { at } => key("PEXPIRETIME", at, []),
            Self::IncrBy { at, by } => key("INCRBY", at, [number(*by)]),
            Self::Append { at, text } => key("APPEND", at, [text.clone()]),
            Self::RPush { at, items } => key("RPUSH", at, items.iter().cloned()),
            Self::LPop { at, count } => key("LPOP", at, [number(*count)]),
            Self::Move { from, to } => key("LMOVE", from, [name(to), "LEFT".into(), "RIGHT".into()]),
            Self::HSet { at, fields } => {
                key("HSET", at, fields.iter().flat_map(|(field, value)| [field.clone(), value.clone()]))
            }
            Self::HDel { at, fields } => key("HDEL", at, fields.iter().cloned()),
            Self::HIncrBy { at, field, by } => key("HINCRBY", at, [field.clone(), number(*by)]),
            Self::HExpireAt { at, fields, until } => {
                let when = [number(*until), "FIELDS".into(), number(fields.len())];
                key("HPEXPIREAT", at, when.into_iter().chain(fields.iter().cloned()))
            }
            Self::HPersist { at, fields } => {
                let which = ["FIELDS".into(), number(fields.len())];
                key("HPERSIST", at, which.into_iter().chain(fields.iter().cloned()))
            }
            Self::SAdd { at, members } => key("SADD", at, members.iter().cloned()),
            Self::SRem { at, members } => key("SREM", at, members.iter().cloned()),
            Self::SPop { at, count } => key("SPOP", at, [number(*count)]),
            Self::ZAdd { at, members } => {
                key("ZADD", at, members.iter().flat_map(|(member, score)| [number(*score), member.clone()]))
            }
            Self::ZRem { at, members } => key("ZREM", at, members.iter().cloned()),
            Self::ZIncrBy { at, member, by } => key("ZINCRBY", at, [number(*by), member.clone()]),
            Self::ZPopMin { at, count } => key("ZPOPMIN", at, [number(*count)]),
            Self::Del { at } => {
                let mut command = words("DEL");
                command.extend(at.iter().map(name));
                command
            }
            Self::Rename { from, to } => key("RENAME", from, [name(to)]),
            Self::Copy { from, to } => {
                key("COPY", from, [name(to), "DB".into(), number(to.db), "REPLACE".into()])
            }
            Self::FlushDb { .. } => words("FLUSHDB"),
            Self::Push { queue, number: pushed } => key("RPUSH", queue, [number(*pushed)]),
            Self::Pop { queue } => key("BLPOP", queue, [POP_WAIT.into()]),
            Self::Shared { counter } => key("INCR", counter, []),
            // Its beginning; `commands` has the rest.
            Self::Multi(_) => words("MULTI"),
        }
    }
}

fn words(name: &'static str) -> Vec<Bytes> {
    vec![name.into()]
}

fn name(place: &Place) -> Bytes {
    Bytes::copy_from_slice(place.key.as_bytes())
}

fn key(command: &'static str, at: &Place, rest: impl IntoIterator<Item = Bytes>) -> Vec<Bytes> {
    let mut command = words(command);
    command.push(name(at));
    command.extend(rest);
    command
}

/// A number as a word.
pub(super) fn number(number: impl ToString) -> Bytes {
    number.to_string().into()
}

/// A relative time with the command for it: in seconds if it is whole, in milliseconds otherwise.
fn relative(ttl_ms: u64, names: [&'static str; 2]) -> (&'static str, Bytes) {
    let is_whole = ttl_ms.is_multiple_of(SECOND_MS);
    let [seconds, millis] = names;
    if is_whole { (seconds, number(ttl_ms / SECOND_MS)) } else { (millis, number(ttl_ms)) }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Multi(ops) = self {
            let inner: Vec<String> = ops.iter().map(ToString::to_string).collect();
            return write!(f, "MULTI {} EXEC", inner.join("; "));
        }
        let command = self.command();
        for (index, word) in command.iter().take(WORDS_SHOWN).enumerate() {
            let space = if index > 0 { " " } else { "" };
            let end = word.len().min(WORDS_SHOWN * 4);
            write!(f, "{space}{}", String::from_utf8_lossy(&word[..end]))?;
        }
        if command.len() > WORDS_SHOWN { write!(f, " ... {} words", command.len()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(op: &Op) -> String {
        let commands = op.commands();
        let words = commands.iter().map(|command| {
            command
                .iter()
                .map(|word| String::from_utf8_lossy(word).into_owned())
                .collect::<Vec<_>>()
                .join(" ")
        });
        words.collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn commands_have_their_words() {
        let at = Place::new(1, "k");
        let to = Place::new(2, "l");
        for (op, words) in [
            (Op::Set { at: at.clone(), text: "v".into(), until: Some(9) }, "SET k v PXAT 9"),
            (Op::SetFor { at: at.clone(), text: "v".into(), ttl_ms: 3000 }, "SETEX k 3 v"),
            (Op::SetFor { at: at.clone(), text: "v".into(), ttl_ms: 3001 }, "PSETEX k 3001 v"),
            (Op::ZAdd { at: at.clone(), members: vec![("m".into(), -2)] }, "ZADD k -2 m"),
            (Op::Copy { from: at.clone(), to: to.clone() }, "COPY k l DB 2 REPLACE"),
            (Op::Pop { queue: at.clone() }, "BLPOP k 0.01"),
            (
                Op::HExpireAt { at: at.clone(), fields: vec!["f".into(), "g".into()], until: 7 },
                "HPEXPIREAT k 7 FIELDS 2 f g",
            ),
            (Op::HPersist { at: at.clone(), fields: vec!["f".into()] }, "HPERSIST k FIELDS 1 f"),
            (
                Op::Multi(vec![
                    Op::IncrBy { at: at.clone(), by: 2 },
                    Op::Del { at: vec![at.clone(), at.clone()] },
                ]),
                "MULTI; INCRBY k 2; DEL k k; EXEC",
            ),
        ] {
            assert_eq!(line(&op), words);
            let mut touched = Vec::new();
            op.places(&mut |place| touched.push(place.clone()));
            assert_eq!(touched.is_empty(), matches!(op, Op::Pop { .. }), "{op}");
            assert_eq!(op.db(), 1, "{op}");
        }
    }
}

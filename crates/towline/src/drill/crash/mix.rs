//! Which commands a client sends.
//!
//! Owns the choice, which follows from a seed and from what the client's keys hold. Does not own the keys' content, nor
//! what becomes of the commands.
//!
//! Keys are named `c<client>:<type><number>`, so each key has one owner and one type. Those with a time to live that may end
//! during the drill (`x`) are only written as a whole, for nobody can tell whether a command met them alive.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use towline_sansio::Prng;

use super::ledger::is_lasting;
use super::op::{Op, number};
use super::state::{Outcome, State, Window};
use super::value::{Place, Value};

/// Databases that clients share for their keys.
const DBS: u8 = 3;

/// The first of those that clients have for themselves, to flush.
const FLUSHED_FROM: u8 = 4;

/// Databases of a server, as Redis has them unless it is told otherwise.
pub(super) const DBS_ALL: u8 = 16;

/// Bytes of a big text.
const BIG_TEXT: usize = 1 << 20;

/// Fields of a big hash.
const BIG_HASH: u64 = 10_000;

/// Longest list; what is longer is popped from.
const LIST_MAX: usize = 200;

/// Shortest lasting time to live, one hour: no drill takes longer between two commands.
const LASTING_MS: u64 = 3_600_000;

/// How far ahead a deadline must be for further commands on its key.
const MARGIN: Duration = Duration::from_secs(600);

/// One client's choices.
#[derive(Debug)]
pub(super) struct Mix {
    client: usize,
    rng: Prng,
    /// The database of the last command: changing it costs a SELECT.
    db: u8,
    /// Distinguishes values; never falls, over all runs.
    serial: u64,
    queues: Queues,
    fields: Fields,
}

/// Whether the server knows of fields that expire: Redis does from 7.4 on, Valkey from 9.0 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fields {
    Expire,
    Stay,
}

/// The keys that clients have in common.
#[derive(Debug, Clone)]
pub(super) struct Queues {
    /// To which this client pushes.
    pub(super) own: Place,
    /// The next number to push.
    pub(super) next: u64,
    /// From which this client pops.
    pub(super) other: Place,
    /// The counter of all.
    pub(super) counter: Place,
}

/// What is being planned.
struct Draft {
    state: State,
    now_ms: u64,
    ops: Vec<Op>,
    /// Keys of which something is unknown until the answers are there.
    locked: BTreeSet<Place>,
}

impl Draft {
    fn push(&mut self, op: Op) {
        let window = Window { from_ms: self.now_ms, until_ms: self.now_ms };
        self.state.apply(&op, &Outcome::Unknown, window);
        self.ops.push(op);
    }

    fn is_free(&self, place: &Place) -> bool {
        !self.locked.contains(place)
            && self.state.keys.get(place).is_none_or(|entry| is_lasting(entry.deadline, self.now_ms, MARGIN))
    }

    fn len(&self, place: &Place) -> usize {
        self.state.keys.get(place).map_or(0, |entry| match &*entry.value {
            Value::List(items) => items.len(),
            Value::Set(members) => members.len(),
            Value::Text(text) => text.len(),
            Value::Hash(fields) => fields.len(),
            Value::Zset(members) => members.len(),
            Value::Remainder { left, .. } => *left,
        })
    }

    fn has(&self, place: &Place) -> bool {
        self.state.keys.contains_key(place)
    }
}

impl Mix {
    /// The choices of a client in a run.
    pub(super) fn new(client: usize, rng: Prng, serial: u64, queues: Queues, fields: Fields) -> Self {
        Self { client, rng, db: 0, serial, queues, fields }
    }

    /// Commands for a pipeline of up to `depth`, given what the client's keys hold.
    pub(super) fn batch(&mut self, known: &State, now_ms: u64, depth: u64) -> Vec<Op> {
        let mut draft = Draft { state: known.clone(), now_ms, ops: Vec::new(), locked: BTreeSet::new() };
        let count = 1 + self.rng.below(depth);
        for _ in 0..count {
            if self.one_in(4) {
                self.db = self.rng.below(u64::from(DBS)) as u8;
            }
            match self.rng.below(40) {
                0..=2 => self.transaction(&mut draft),
                3 => self.flushed(&mut draft),
                4 => draft.push(Op::Shared { counter: self.queues.counter.clone() }),
                5 => self.expiring(&mut draft),
                _ => self.command(&mut draft),
            }
        }
        if self.one_in(3) {
            draft.push(Op::Push { queue: self.queues.own.clone(), number: self.queues.next });
            self.queues.next += 1;
        }
        // At the end, for it waits. More often than pushes, so that queues stay short and pops do wait.
        if self.one_in(2) {
            draft.push(Op::Pop { queue: self.queues.other.clone() });
        }
        draft.ops
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.rng.below(n) == 0
    }

    fn serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    fn place(&mut self, kind: char, count: u64) -> Place {
        let number = self.rng.below(count);
        Place::new(self.db, &format!("c{}:{kind}{number}", self.client))
    }

    fn text(&mut self) -> Bytes {
        let serial = self.serial();
        let filler = "-".repeat(self.rng.below(80) as usize);
        format!("{serial}{filler}").into()
    }

    fn members(&mut self) -> Vec<Bytes> {
        let count = 1 + self.rng.below(4);
        (0..count).map(|_| number(self.rng.below(60))).collect()
    }

    /// Fields of a hash, each once.
    fn names(&mut self) -> Vec<Bytes> {
        let mut names = self.members();
        names.push(number(format_args!("n{}", self.rng.below(5))));
        names.sort_unstable();
        names.dedup();
        names
    }

    /// A moment that the drill does not see.
    fn lasting(&mut self, now_ms: u64) -> u64 {
        now_ms + 24 * LASTING_MS + self.rng.below(1000 * LASTING_MS)
    }

    /// One command on one key, or two keys of one type.
    fn command(&mut self, draft: &mut Draft) {
        match self.rng.below(20) {
            0..=4 => self.string(draft),
            5..=8 => self.list(draft),
            9..=11 => self.hash(draft),
            12..=14 => self.set(draft),
            15..=16 => self.zset(draft),
            _ => self.generic(draft),
        }
    }

    fn string(&mut self, draft: &mut Draft) {
        let (text, counter) = (self.place('s', 4), self.place('n', 3));
        let choice = self.rng.below(100);
        let at = if (40..80).contains(&choice) { counter } else { text };
        if !draft.is_free(&at) {
            return;
        }
        match choice {
            0..40 => {
                let until = self.one_in(3).then(|| self.lasting(draft.now_ms));
                draft.push(Op::Set { at, text: self.text(), until });
            }
            40..80 => draft.push(Op::IncrBy { at, by: self.rng.below(9) as i64 - 2 }),
            80..98 if draft.len(&at) < 500 => draft.push(Op::Append { at, text: self.text() }),
            98..100 => {
                let at = Place::new(self.db, &format!("c{}:s9", self.client));
                let mut text = format!("{}:", self.serial()).into_bytes();
                text.resize(BIG_TEXT, b'a' + (self.serial % 26) as u8);
                // Rare, for a megabyte takes long on a slow disk.
                if self.one_in(4) {
                    draft.push(Op::Set { at, text: text.into(), until: None });
                } else if draft.has(&at) {
                    draft.push(Op::Del { at: vec![at] });
                }
            }
            _ => draft.push(Op::Set { at, text: self.text(), until: None }),
        }
    }

    fn list(&mut self, draft: &mut Draft) {
        let (at, other) = (self.place('l', 3), self.place('l', 3));
        if !draft.is_free(&at) || !draft.is_free(&other) {
            return;
        }
        let len = draft.len(&at);
        match self.rng.below(10) {
            0..=5 if len < LIST_MAX => {
                let count = 1 + self.rng.below(5);
                let items = (0..count).map(|_| number(self.serial())).collect();
                draft.push(Op::RPush { at, items });
            }
            6..=7 if len > 0 => draft.push(Op::Move { from: at, to: other }),
            _ if len > 0 => draft.push(Op::LPop { at, count: 1 + self.rng.below(8) as usize }),
            _ => {}
        }
    }

    fn hash(&mut self, draft: &mut Draft) {
        let at = self.place('h', 3);
        if !draft.is_free(&at) {
            return;
        }
        match self.rng.below(120) {
            0..15 if self.fields == Fields::Expire && draft.has(&at) => {
                let fields = self.names();
                draft.push(Op::HExpireAt { at, fields, until: self.lasting(draft.now_ms) });
            }
            15..20 if self.fields == Fields::Expire && draft.has(&at) => {
                draft.push(Op::HPersist { at, fields: self.names() });
            }
            0..60 => {
                let fields = self.members().into_iter().map(|field| (field, self.text())).collect();
                draft.push(Op::HSet { at, fields });
            }
            60..80 if draft.has(&at) => draft.push(Op::HDel { at, fields: self.members() }),
            80..117 => {
                let field = number(format_args!("n{}", self.rng.below(5)));
                draft.push(Op::HIncrBy { at, field, by: 1 + self.rng.below(5) as i64 });
            }
            117 => {
                let at = Place::new(self.db, &format!("c{}:h9", self.client));
                let serial = self.serial();
                let field = |index| (number(index), number(serial + index));
                draft.push(Op::HSet { at, fields: (0..BIG_HASH).map(field).collect() });
            }
            _ => {
                let at = Place::new(self.db, &format!("c{}:h9", self.client));
                draft.push(Op::Del { at: vec![at] });
            }
        }
    }

    fn set(&mut self, draft: &mut Draft) {
        let at = self.place('t', 3);
        if !draft.is_free(&at) {
            return;
        }
        match self.rng.below(10) {
            0..=5 => draft.push(Op::SAdd { at, members: self.members() }),
            6..=7 => draft.push(Op::SRem { at, members: self.members() }),
            _ if draft.has(&at) => {
                draft.locked.insert(at.clone());
                draft.push(Op::SPop { at, count: 1 + self.rng.below(4) as usize });
            }
            _ => {}
        }
    }

    fn zset(&mut self, draft: &mut Draft) {
        let at = self.place('z', 3);
        if !draft.is_free(&at) {
            return;
        }
        match self.rng.below(10) {
            0..=4 => {
                let score = |rng: &mut Prng| rng.below(100) as i64 - 50;
                let members =
                    self.members().into_iter().map(|member| (member, score(&mut self.rng))).collect();
                draft.push(Op::ZAdd { at, members });
            }
            5 => draft.push(Op::ZRem { at, members: self.members() }),
            6..=7 => {
                let member = number(self.rng.below(60));
                draft.push(Op::ZIncrBy { at, member, by: self.rng.below(20) as i64 - 10 });
            }
            _ if draft.has(&at) => {
                draft.push(Op::ZPopMin { at, count: 1 + self.rng.below(3) as usize });
            }
            _ => {}
        }
    }

    /// Commands on keys of any type.
    fn generic(&mut self, draft: &mut Draft) {
        let kind = ['s', 'n', 'l', 'h', 't', 'z'][self.rng.below(6) as usize];
        let (at, other) = (self.place(kind, 3), self.place(kind, 3));
        if !draft.is_free(&at) || !draft.is_free(&other) || !draft.has(&at) {
            return;
        }
        match self.rng.below(12) {
            0..=1 => draft.push(Op::Del { at: vec![at, other] }),
            2..=3 if at != other => draft.push(Op::Rename { from: at, to: other }),
            4..=5 => {
                let to = Place::new(self.rng.below(u64::from(DBS)) as u8, &other.key);
                if to != at && draft.is_free(&to) {
                    draft.push(Op::Copy { from: at, to });
                }
            }
            6..=7 => draft.push(Op::ExpireAt { at, until: self.lasting(draft.now_ms) }),
            8..=9 => {
                let ttl_ms = self.lasting(0);
                let ttl_ms = if self.one_in(2) { ttl_ms / 1000 * 1000 } else { ttl_ms };
                draft.push(Op::ExpireFor { at: at.clone(), ttl_ms });
                self.learn(draft, at);
            }
            _ => draft.push(Op::Persist { at }),
        }
    }

    /// Asks for the moment that the server has made of a relative time; until it has said so, the key is left alone.
    fn learn(&self, draft: &mut Draft, at: Place) {
        draft.locked.insert(at.clone());
        draft.push(Op::Learn { at });
    }

    /// Keys that expire while the drill looks on.
    fn expiring(&mut self, draft: &mut Draft) {
        let at = self.place('x', 6);
        if draft.locked.contains(&at) {
            return;
        }
        let text = self.text();
        match self.rng.below(8) {
            0..=4 => {
                let until = draft.now_ms + 1 + self.rng.below(3000);
                draft.push(Op::Set { at, text, until: Some(until) });
            }
            5..=6 => {
                let ttl_ms = [1000, 2000, 1 + self.rng.below(2000)][self.rng.below(3) as usize];
                draft.push(Op::SetFor { at: at.clone(), text, ttl_ms });
                self.learn(draft, at);
            }
            _ => draft.push(Op::Del { at: vec![at] }),
        }
    }

    /// The database of this client's own, and now and then its end.
    fn flushed(&mut self, draft: &mut Draft) {
        let Some(db) = u8::try_from(self.client).ok().and_then(|client| client.checked_add(FLUSHED_FROM))
        else {
            return;
        };
        if db >= DBS_ALL {
            return;
        }
        if self.one_in(5) {
            draft.push(Op::FlushDb { db });
        } else {
            let at = Place::new(db, &format!("c{}:s{}", self.client, self.rng.below(5)));
            draft.push(Op::Set { at, text: self.text(), until: None });
        }
    }

    /// Several keys, of different slots, at once.
    fn transaction(&mut self, draft: &mut Draft) {
        let mut ops = Vec::new();
        for _ in 0..2 + self.rng.below(4) {
            let kind = ['n', 's', 'l', 'h', 't', 'z'][self.rng.below(6) as usize];
            let at = self.place(kind, 3);
            if !draft.is_free(&at) {
                continue;
            }
            ops.push(match kind {
                'n' => Op::IncrBy { at, by: 1 + self.rng.below(3) as i64 },
                's' => Op::Set { at, text: self.text(), until: None },
                'l' => Op::RPush { at, items: vec![number(self.serial())] },
                'h' => Op::HSet { at, fields: vec![(number(self.rng.below(20)), self.text())] },
                't' => Op::SAdd { at, members: self.members() },
                _ => Op::ZAdd { at, members: vec![(number(self.rng.below(60)), self.rng.below(9) as i64)] },
            });
        }
        if !ops.is_empty() {
            draft.push(Op::Multi(ops));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mix(seed: u64) -> Mix {
        let queues = Queues {
            own: Place::new(0, "q1"),
            next: 0,
            other: Place::new(0, "q0"),
            counter: Place::new(0, "shared"),
        };
        Mix::new(1, Prng::new(seed), 0, queues, Fields::Expire)
    }

    /// Runs many batches, each answered at once.
    fn played(seed: u64, batches: usize) -> (Vec<Op>, State) {
        let (mut mix, mut state, mut all) = (mix(seed), State::default(), Vec::new());
        for batch in 0..batches {
            let now_ms = 1_000_000 + batch as u64;
            for op in mix.batch(&state, now_ms, 16) {
                let outcome = match &op {
                    Op::Learn { .. } => Outcome::Deadline(Some(now_ms + 100 * LASTING_MS)),
                    Op::SPop { at, count } => match &*state.keys[at].value {
                        Value::Set(set) => Outcome::Chosen(set.iter().take(*count).cloned().collect()),
                        other => panic!("{other}"),
                    },
                    Op::Pop { .. } => Outcome::Popped(None),
                    _ => Outcome::Done,
                };
                state.apply(&op, &outcome, Window { from_ms: now_ms, until_ms: now_ms });
                all.push(op);
            }
        }
        (all, state)
    }

    #[test]
    fn a_seed_repeats_its_commands_and_all_kinds_come() {
        let (ops, state) = played(7, 2000);
        assert_eq!((&ops, &state), (&played(7, 2000).0, &played(7, 2000).1));
        assert_ne!(ops, played(8, 2000).0);
        let kinds: BTreeSet<String> = ops
            .iter()
            .flat_map(Op::commands)
            .map(|command| String::from_utf8_lossy(&command[0]).into_owned())
            .collect();
        for name in [
            "SET",
            "SETEX",
            "PSETEX",
            "PEXPIREAT",
            "EXPIRE",
            "PEXPIRE",
            "PERSIST",
            "PEXPIRETIME",
            "INCRBY",
            "APPEND",
            "RPUSH",
            "LPOP",
            "LMOVE",
            "HSET",
            "HDEL",
            "HINCRBY",
            "HPEXPIREAT",
            "HPERSIST",
            "SADD",
            "SREM",
            "SPOP",
            "ZADD",
            "ZREM",
            "ZINCRBY",
            "ZPOPMIN",
            "DEL",
            "RENAME",
            "COPY",
            "FLUSHDB",
            "MULTI",
            "EXEC",
            "BLPOP",
            "INCR",
        ] {
            assert!(kinds.contains(name), "{name} in {kinds:?}");
        }
    }

    #[test]
    fn keys_have_one_type_and_stay_few() {
        let (_, state) = played(3, 3000);
        assert!(state.keys.len() < 120, "{}", state.keys.len());
        for (place, entry) in &state.keys {
            let kind = place.key.split(':').nth(1).and_then(|name| name.chars().next());
            let expected = match &*entry.value {
                Value::Text(_) => "snx",
                Value::List(_) => "l",
                Value::Hash(_) => "h",
                Value::Set(_) | Value::Remainder { .. } => "t",
                Value::Zset(_) => "z",
            };
            assert!(kind.is_some_and(|kind| expected.contains(kind)), "{place}: {entry}");
        }
    }
}

//! What one client's keys hold after its commands: the model.
//!
//! Owns what each command does and what its answer must be. Pure and total: a command that a server would refuse changes
//! nothing. Does not own which commands ran, see [`ledger`](super::ledger).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;

use super::op::Op;
use super::value::{Deadline, Entry, Field, Place, Value};

/// How far a server's clock, which may be read once for several commands, can be behind the client's.
const CLOCK_LAG_MS: u64 = 100;

/// What came of a command, where that is more than its effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// There is no answer: it may have run.
    Unknown,
    /// It ran.
    Done,
    /// The server refused it: it did not run.
    Refused,
    /// The members that SPOP chose.
    Chosen(Vec<Bytes>),
    /// What PEXPIRETIME said.
    Deadline(Option<u64>),
    /// What BLPOP got: a number, or nothing in time.
    Popped(Option<u64>),
}

/// When a command can have run, by the client's clock: milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) from_ms: u64,
    pub(super) until_ms: u64,
}

/// The answer that a command must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expect {
    /// Any that is no error.
    Any,
    Ok,
    Integer(i64),
    Integers(Vec<i64>),
    Text(Option<Bytes>),
    Texts(Vec<Bytes>),
    /// So many members out of a set.
    Members(usize, BTreeSet<Bytes>),
    /// The answers in a transaction.
    All(Vec<Self>),
}

/// The keys of one client, and its shares of what clients have in common since the run began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) keys: BTreeMap<Place, Entry>,
    /// Elements pushed to the own queue.
    pub(super) pushed: u64,
    /// Elements popped from another's queue, at least and at most.
    pub(super) popped: (u64, u64),
    /// Increments of the shared counter.
    pub(super) shared: u64,
}

impl State {
    /// Runs a command.
    pub(super) fn apply(&mut self, op: &Op, outcome: &Outcome, window: Window) -> Expect {
        if *outcome == Outcome::Refused {
            return Expect::Any;
        }
        match op {
            Op::Multi(ops) => {
                Expect::All(ops.iter().map(|op| self.apply(op, &Outcome::Done, window)).collect())
            }
            Op::Set { .. } | Op::SetFor { .. } | Op::IncrBy { .. } | Op::Append { .. } => {
                self.text(op, window)
            }
            Op::ExpireAt { .. } | Op::ExpireFor { .. } | Op::Persist { .. } | Op::Learn { .. } => {
                self.deadline(op, outcome, window)
            }
            Op::RPush { .. } | Op::LPop { .. } | Op::Move { .. } => self.list(op),
            Op::HSet { .. }
            | Op::HDel { .. }
            | Op::HIncrBy { .. }
            | Op::HExpireAt { .. }
            | Op::HPersist { .. } => self.hash(op),
            Op::SAdd { .. } | Op::SRem { .. } | Op::SPop { .. } => self.set(op, outcome),
            Op::ZAdd { .. } | Op::ZRem { .. } | Op::ZIncrBy { .. } | Op::ZPopMin { .. } => self.zset(op),
            Op::Del { .. } | Op::Rename { .. } | Op::Copy { .. } | Op::FlushDb { .. } => self.key(op),
            Op::Push { .. } | Op::Pop { .. } | Op::Shared { .. } => self.common(op, outcome),
        }
    }

    /// The value of a key for change: a new one if there is none, none if it is of another type.
    fn change<T>(
        &mut self,
        at: &Place,
        new: impl FnOnce() -> Value,
        of: impl FnOnce(&mut Value) -> Option<T>,
    ) -> Option<T> {
        let is_new = !self.keys.contains_key(at);
        let entry = self
            .keys
            .entry(at.clone())
            .or_insert_with(|| Entry { value: Arc::new(new()), deadline: Deadline::Never });
        let result = of(Arc::make_mut(&mut entry.value));
        if entry.value.is_gone() || (is_new && result.is_none()) {
            self.keys.remove(at);
        }
        result
    }

    fn put(&mut self, at: &Place, value: Value, deadline: Deadline) {
        self.keys.insert(at.clone(), Entry { value: Arc::new(value), deadline });
    }

    fn text(&mut self, op: &Op, window: Window) -> Expect {
        match op {
            Op::Set { at, text, until } => {
                let deadline = until.map_or(Deadline::Never, Deadline::At);
                self.put(at, Value::Text(text.clone()), deadline);
                Expect::Ok
            }
            Op::SetFor { at, text, ttl_ms } => {
                self.put(at, Value::Text(text.clone()), relative(*ttl_ms, window));
                Expect::Ok
            }
            Op::IncrBy { at, by } => {
                let sum = self.change(
                    at,
                    || Value::Text("0".into()),
                    |value| {
                        let Value::Text(text) = value else { return None };
                        let sum = std::str::from_utf8(text).ok()?.parse::<i64>().ok()?.checked_add(*by)?;
                        *text = sum.to_string().into();
                        Some(sum)
                    },
                );
                sum.map_or(Expect::Any, Expect::Integer)
            }
            Op::Append { at, text: more } => {
                let len = self.change(
                    at,
                    || Value::Text(Bytes::new()),
                    |value| {
                        let Value::Text(text) = value else { return None };
                        *text = [text.as_ref(), more.as_ref()].concat().into();
                        Some(text.len())
                    },
                );
                len.map_or(Expect::Any, count)
            }
            _ => Expect::Any,
        }
    }

    fn deadline(&mut self, op: &Op, outcome: &Outcome, window: Window) -> Expect {
        let (at, deadline) = match op {
            Op::ExpireAt { at, until } => (at, Deadline::At(*until)),
            Op::ExpireFor { at, ttl_ms } => (at, relative(*ttl_ms, window)),
            Op::Persist { at } => (at, Deadline::Never),
            Op::Learn { at } => match outcome {
                Outcome::Deadline(Some(until)) => (at, Deadline::At(*until)),
                _ => return Expect::Any,
            },
            _ => return Expect::Any,
        };
        let Some(entry) = self.keys.get_mut(at) else { return Expect::Integer(0) };
        let had_one = entry.deadline != Deadline::Never;
        entry.deadline = deadline;
        match op {
            Op::Persist { .. } => Expect::Integer(i64::from(had_one)),
            Op::Learn { .. } => Expect::Any,
            _ => Expect::Integer(1),
        }
    }

    fn list(&mut self, op: &Op) -> Expect {
        let new = || Value::List(VecDeque::new());
        let items = |value: &mut Value, then: &mut dyn FnMut(&mut VecDeque<Bytes>) -> Expect| match value {
            Value::List(items) => Some(then(items)),
            _ => None,
        };
        let expect = match op {
            Op::RPush { at, items: more } => self.change(at, new, |value| {
                items(value, &mut |list| {
                    list.extend(more.iter().cloned());
                    count(list.len())
                })
            }),
            Op::LPop { at, count } => self.change(at, new, |value| {
                items(value, &mut |list| {
                    let count = (*count).min(list.len());
                    Expect::Texts(list.drain(..count).collect())
                })
            }),
            // Turned in place: the key is never empty, so it keeps its time to live.
            Op::Move { from, to } if from == to => self.change(from, new, |value| {
                let Value::List(items) = value else { return None };
                items.rotate_left(usize::from(!items.is_empty()));
                Some(Expect::Text(items.back().cloned()))
            }),
            Op::Move { from, to } => {
                let first = self.change(from, new, |value| match value {
                    Value::List(items) => items.pop_front(),
                    _ => None,
                });
                first.and_then(|first| {
                    self.change(to, new, |value| {
                        items(value, &mut |list| {
                            list.push_back(first.clone());
                            Expect::Text(Some(first.clone()))
                        })
                    })
                })
            }
            _ => None,
        };
        expect.unwrap_or(Expect::Any)
    }

    fn hash(&mut self, op: &Op) -> Expect {
        let new = || Value::Hash(BTreeMap::new());
        let fields =
            |value: &mut Value, then: &mut dyn FnMut(&mut BTreeMap<Bytes, Field>) -> Expect| match value {
                Value::Hash(fields) => Some(then(fields)),
                _ => None,
            };
        let expect = match op {
            Op::HSet { at, fields: more } => self.change(at, new, |value| {
                fields(value, &mut |hash| {
                    let before = hash.len();
                    // A new value has no time to live.
                    hash.extend(
                        more.iter().map(|(field, text)| (field.clone(), Field::lasting(text.clone()))),
                    );
                    count(hash.len() - before)
                })
            }),
            Op::HDel { at, fields: less } => self.change(at, new, |value| {
                fields(value, &mut |hash| {
                    count(less.iter().filter(|field| hash.remove(*field).is_some()).count())
                })
            }),
            Op::HIncrBy { at, field, by } => self.change(at, new, |value| {
                fields(value, &mut |hash| {
                    let place = hash.entry(field.clone()).or_insert_with(|| Field::lasting("0".into()));
                    let old = std::str::from_utf8(&place.text).ok().and_then(|text| text.parse::<i64>().ok());
                    let sum = old.unwrap_or(0) + by;
                    place.text = sum.to_string().into();
                    Expect::Integer(sum)
                })
            }),
            Op::HExpireAt { at, fields: some, until } => self.change(at, new, |value| {
                fields(value, &mut |hash| {
                    Expect::Integers(changed(hash, some, |field| {
                        field.until = Some(*until);
                        1
                    }))
                })
            }),
            Op::HPersist { at, fields: some } => {
                self.change(at, new, |value| {
                    fields(value, &mut |hash| {
                        Expect::Integers(changed(hash, some, |field| {
                            if field.until.take().is_some() { 1 } else { -1 }
                        }))
                    })
                })
            }
            _ => None,
        };
        expect.unwrap_or(Expect::Any)
    }

    fn set(&mut self, op: &Op, outcome: &Outcome) -> Expect {
        let new = || Value::Set(BTreeSet::new());
        let members = |value: &mut Value, then: &mut dyn FnMut(&mut BTreeSet<Bytes>) -> Expect| match value {
            Value::Set(members) => Some(then(members)),
            _ => None,
        };
        let expect = match op {
            Op::SAdd { at, members: more } => self.change(at, new, |value| {
                members(value, &mut |set| {
                    count(more.iter().filter(|member| set.insert((*member).clone())).count())
                })
            }),
            Op::SRem { at, members: less } => self.change(at, new, |value| {
                members(value, &mut |set| count(less.iter().filter(|member| set.remove(*member)).count()))
            }),
            Op::SPop { at, count } => self.change(at, new, |value| {
                let Value::Set(set) = value else { return None };
                let of = set.clone();
                let chosen = (*count).min(of.len());
                if let Outcome::Chosen(chosen) = outcome {
                    chosen.iter().for_each(|member| {
                        set.remove(member);
                    });
                } else {
                    *value = Value::Remainder { left: of.len() - chosen, of: of.clone() };
                }
                Some(Expect::Members(chosen, of))
            }),
            _ => None,
        };
        expect.unwrap_or(Expect::Any)
    }

    fn zset(&mut self, op: &Op) -> Expect {
        let new = || Value::Zset(BTreeMap::new());
        let members =
            |value: &mut Value, then: &mut dyn FnMut(&mut BTreeMap<Bytes, i64>) -> Expect| match value {
                Value::Zset(members) => Some(then(members)),
                _ => None,
            };
        let expect = match op {
            Op::ZAdd { at, members: more } => self.change(at, new, |value| {
                members(value, &mut |zset| {
                    let before = zset.len();
                    zset.extend(more.iter().cloned());
                    count(zset.len() - before)
                })
            }),
            Op::ZRem { at, members: less } => self.change(at, new, |value| {
                members(value, &mut |zset| count(less.iter().filter(|m| zset.remove(*m).is_some()).count()))
            }),
            Op::ZIncrBy { at, member, by } => self.change(at, new, |value| {
                members(value, &mut |zset| {
                    let score = zset.entry(member.clone()).or_insert(0);
                    *score += by;
                    // RESP2 has scores as text; whole numbers have no point.
                    Expect::Text(Some(score.to_string().into()))
                })
            }),
            Op::ZPopMin { at, count } => self.change(at, new, |value| {
                members(value, &mut |zset| {
                    let mut order: Vec<_> =
                        zset.iter().map(|(member, score)| (*score, member.clone())).collect();
                    order.sort_unstable();
                    order.truncate(*count);
                    let mut answer = Vec::new();
                    for (score, member) in order {
                        zset.remove(&member);
                        answer.extend([member, score.to_string().into()]);
                    }
                    Expect::Texts(answer)
                })
            }),
            _ => None,
        };
        expect.unwrap_or(Expect::Any)
    }

    fn key(&mut self, op: &Op) -> Expect {
        match op {
            // Keys that expire may be gone already, so the number is not certain.
            Op::Del { at } => {
                at.iter().for_each(|at| {
                    self.keys.remove(at);
                });
                Expect::Any
            }
            Op::Rename { from, to } => match self.keys.remove(from) {
                Some(entry) => {
                    self.keys.insert(to.clone(), entry);
                    Expect::Ok
                }
                None => Expect::Any,
            },
            Op::Copy { from, to } => match self.keys.get(from).cloned() {
                Some(entry) => {
                    self.keys.insert(to.clone(), entry);
                    Expect::Integer(1)
                }
                None => Expect::Integer(0),
            },
            Op::FlushDb { db } => {
                self.keys.retain(|place, _| place.db != *db);
                Expect::Ok
            }
            _ => Expect::Any,
        }
    }

    fn common(&mut self, op: &Op, outcome: &Outcome) -> Expect {
        match op {
            Op::Push { .. } => self.pushed += 1,
            Op::Shared { .. } => self.shared += 1,
            _ => match outcome {
                Outcome::Popped(Some(_)) => {
                    self.popped.0 += 1;
                    self.popped.1 += 1;
                }
                Outcome::Unknown => self.popped.1 += 1,
                _ => {}
            },
        }
        Expect::Any
    }
}

/// Changes some fields of a hash; the answer for each, which is -2 for one that is not there.
fn changed(
    hash: &mut BTreeMap<Bytes, Field>,
    some: &[Bytes],
    change: impl Fn(&mut Field) -> i64,
) -> Vec<i64> {
    some.iter().map(|name| hash.get_mut(name).map_or(-2, &change)).collect()
}

fn count(count: usize) -> Expect {
    Expect::Integer(i64::try_from(count).unwrap_or(i64::MAX))
}

fn relative(ttl_ms: u64, window: Window) -> Deadline {
    Deadline::Within((window.from_ms + ttl_ms).saturating_sub(CLOCK_LAG_MS), window.until_ms + ttl_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window { from_ms: 1000, until_ms: 2000 };

    fn at(key: &str) -> Place {
        Place::new(0, key)
    }

    fn run(state: &mut State, op: Op) -> Expect {
        state.apply(&op, &Outcome::Done, WINDOW)
    }

    fn texts(texts: &[&'static str]) -> Vec<Bytes> {
        texts.iter().map(|text| Bytes::from_static(text.as_bytes())).collect()
    }

    #[test]
    fn answers_are_those_of_a_server() {
        let mut state = State::default();
        let push = Op::RPush { at: at("l"), items: texts(&["1", "2", "3"]) };
        assert_eq!(run(&mut state, push), Expect::Integer(3));
        assert_eq!(run(&mut state, Op::Move { from: at("l"), to: at("m") }), Expect::Text(Some("1".into())));
        let pop = Op::LPop { at: at("l"), count: 5 };
        assert_eq!(run(&mut state, pop), Expect::Texts(texts(&["2", "3"])));
        assert!(!state.keys.contains_key(&at("l")), "an empty list is no key");
        let add = Op::SAdd { at: at("s"), members: texts(&["a", "b", "a"]) };
        assert_eq!(run(&mut state, add), Expect::Integer(2));
        let zadd = Op::ZAdd { at: at("z"), members: vec![("b".into(), 1), ("a".into(), 1), ("c".into(), 0)] };
        assert_eq!(run(&mut state, zadd), Expect::Integer(3));
        let zpop = Op::ZPopMin { at: at("z"), count: 2 };
        assert_eq!(run(&mut state, zpop), Expect::Texts(texts(&["c", "0", "a", "1"])));
        assert_eq!(run(&mut state, Op::IncrBy { at: at("n"), by: -3 }), Expect::Integer(-3));
        assert_eq!(run(&mut state, Op::Append { at: at("n"), text: "x".into() }), Expect::Integer(3));
        assert_eq!(
            run(&mut state, Op::IncrBy { at: at("n"), by: 1 }),
            Expect::Any,
            "refused, and changes nothing"
        );
        assert_eq!(state.keys[&at("n")].value, Arc::new(Value::Text("-3x".into())));
    }

    #[test]
    fn what_a_server_refuses_changes_nothing() {
        let mut state = State::default();
        run(&mut state, Op::Set { at: at("k"), text: "v".into(), until: None });
        let before = state.clone();
        run(&mut state, Op::RPush { at: at("k"), items: texts(&["1"]) });
        run(&mut state, Op::IncrBy { at: at("k"), by: 1 });
        run(&mut state, Op::Rename { from: at("none"), to: at("k") });
        state.apply(&Op::Del { at: vec![at("k")] }, &Outcome::Refused, WINDOW);
        assert_eq!(state, before);
    }

    #[test]
    fn relative_times_are_ranges_until_the_server_has_said_what_they_are() {
        let mut state = State::default();
        run(&mut state, Op::SetFor { at: at("k"), text: "v".into(), ttl_ms: 5000 });
        assert_eq!(state.keys[&at("k")].deadline, Deadline::Within(5900, 7000));
        state.apply(&Op::Learn { at: at("k") }, &Outcome::Unknown, WINDOW);
        assert_eq!(state.keys[&at("k")].deadline, Deadline::Within(5900, 7000));
        state.apply(&Op::Learn { at: at("k") }, &Outcome::Deadline(Some(6001)), WINDOW);
        assert_eq!(state.keys[&at("k")].deadline, Deadline::At(6001));
        run(&mut state, Op::Copy { from: at("k"), to: at("c") });
        assert_eq!(run(&mut state, Op::Persist { at: at("k") }), Expect::Integer(1));
        run(&mut state, Op::Rename { from: at("c"), to: at("k") });
        assert_eq!(
            state.keys[&at("k")].deadline,
            Deadline::At(6001),
            "RENAME and COPY take the deadline along"
        );
        run(&mut state, Op::Set { at: at("k"), text: "w".into(), until: None });
        assert_eq!(state.keys[&at("k")].deadline, Deadline::Never);
    }

    #[test]
    fn a_list_that_is_turned_in_place_keeps_its_time_to_live() {
        let mut state = State::default();
        run(&mut state, Op::RPush { at: at("l"), items: texts(&["1"]) });
        run(&mut state, Op::ExpireAt { at: at("l"), until: 9000 });
        let turn = Op::Move { from: at("l"), to: at("l") };
        assert_eq!(run(&mut state, turn.clone()), Expect::Text(Some("1".into())));
        assert_eq!(state.keys[&at("l")].deadline, Deadline::At(9000));
        run(&mut state, Op::RPush { at: at("l"), items: texts(&["2"]) });
        assert_eq!(run(&mut state, turn), Expect::Text(Some("1".into())));
        run(&mut state, Op::Del { at: vec![at("l")] });
        assert_eq!(run(&mut state, Op::Move { from: at("l"), to: at("l") }), Expect::Text(None));
        assert!(state.keys.is_empty());
    }

    #[test]
    fn fields_keep_their_time_to_live_until_they_are_written_anew() {
        let mut state = State::default();
        let field = |name: &'static str, value: &'static str| (Bytes::from(name), Bytes::from(value));
        run(
            &mut state,
            Op::HSet { at: at("h"), fields: vec![field("a", "1"), field("b", "2"), field("c", "3")] },
        );
        let expire = Op::HExpireAt { at: at("h"), fields: texts(&["a", "b", "c", "d"]), until: 9 };
        assert_eq!(run(&mut state, expire), Expect::Integers(vec![1, 1, 1, -2]));
        run(&mut state, Op::HIncrBy { at: at("h"), field: "a".into(), by: 4 });
        run(&mut state, Op::HSet { at: at("h"), fields: vec![field("b", "7")] });
        assert_eq!(state.keys[&at("h")].value.to_string(), "hash of 3 (a=5@9 b=7 c=3@9)");
        let persist = Op::HPersist { at: at("h"), fields: texts(&["b", "c"]) };
        assert_eq!(run(&mut state, persist), Expect::Integers(vec![-1, 1]));
        assert_eq!(state.keys[&at("h")].value.to_string(), "hash of 3 (a=5@9 b=7 c=3)");
    }

    #[test]
    fn spop_takes_what_was_chosen_or_any() {
        let mut state = State::default();
        run(&mut state, Op::SAdd { at: at("s"), members: texts(&["a", "b", "c"]) });
        let pop = Op::SPop { at: at("s"), count: 1 };
        state.apply(&pop, &Outcome::Chosen(texts(&["b"])), WINDOW);
        assert_eq!(state.keys[&at("s")].value.to_string(), "set of 2 (a c)");
        state.apply(&pop, &Outcome::Unknown, WINDOW);
        assert_eq!(state.keys[&at("s")].value.to_string(), "any 1 of a set of 2");
    }

    #[test]
    fn transactions_flushes_and_common_things_are_counted() {
        let mut state = State::default();
        let far = Place::new(7, "f");
        run(&mut state, Op::Set { at: far.clone(), text: "v".into(), until: None });
        let multi = Op::Multi(vec![
            Op::IncrBy { at: at("n"), by: 1 },
            Op::RPush { at: at("l"), items: texts(&["1"]) },
        ]);
        assert_eq!(run(&mut state, multi), Expect::All(vec![Expect::Integer(1), Expect::Integer(1)]));
        run(&mut state, Op::FlushDb { db: 7 });
        assert_eq!(state.keys.len(), 2);
        let pop = Op::Pop { queue: at("q") };
        state.apply(&pop, &Outcome::Popped(Some(0)), WINDOW);
        state.apply(&pop, &Outcome::Popped(None), WINDOW);
        state.apply(&pop, &Outcome::Unknown, WINDOW);
        assert_eq!(state.popped, (1, 2));
    }
}

//! What each worker knows of its commands, and the comparison of that with what the server holds.
//!
//! Owns: which command comes next, the record of every outcome in the order of submission, and the audit. Does not own
//! sending, nor the reading of what the server holds. Nothing here knows which client was used, so that figures of
//! different clients are counts of the same things.
//!
//! ```text
//! key of a worker   command      what a violation looks like
//! number            INCR         an answer that does not rise; more executions than commands
//! left, right       INCR, INCR   right ahead of left, seen by an observer: the order between keys
//! log               APPEND       a token twice, missing, or behind a later one; an answer that is another's
//! register          SET, GET     a GET that does not see the SET before it, or sees one behind it
//! shared (one for each connection) INCR   as number, and one answer given to two commands
//! ```

use std::collections::BTreeMap;

use towline_sansio::Prng;

/// Bytes of one token in a log: the command's number in hexadecimal digits.
pub(super) const TOKEN_BYTES: usize = 8;

/// Problems that are kept as text; all are counted.
const PROBLEMS_MAX: usize = 12;

/// Of so many `INCR`, one goes to the connection's key, and one becomes a pair.
const INCR_CYCLE: u64 = 8;

/// A kind of command, with the key it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Op {
    /// `INCR` of the worker's number.
    Incr,
    /// `INCR` of the connection's number.
    Shared,
    /// `INCR` of the pair's first key.
    Left,
    /// `INCR` of the pair's second key; always right behind [`Op::Left`].
    Right,
    /// `APPEND` of a token to the worker's log.
    Append,
    /// `SET` of the worker's register.
    Set,
    /// `GET` of the worker's register.
    Get,
}

/// The shares of the commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mix {
    pub(super) incr: u32,
    pub(super) append: u32,
    pub(super) set: u32,
    pub(super) get: u32,
}

impl Default for Mix {
    /// Mostly what must not run twice, and enough reads to see an order.
    fn default() -> Self {
        Self { incr: 40, append: 20, set: 20, get: 20 }
    }
}

impl std::str::FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut mix = Self { incr: 0, append: 0, set: 0, get: 0 };
        for part in text.split(',') {
            let (name, share) =
                part.split_once('=').ok_or("it looks like incr=40,append=20,set=20,get=20")?;
            let share: u32 = share.trim().parse().map_err(|_| format!("the share of {name} is no number"))?;
            match name.trim().to_ascii_lowercase().as_str() {
                "incr" => mix.incr = share,
                "append" => mix.append = share,
                "set" => mix.set = share,
                "get" => mix.get = share,
                other => {
                    return Err(format!("no command {other}; there are incr, append, set and get"));
                }
            }
        }
        // The bound keeps the sum in its type.
        let shares = [mix.incr, mix.append, mix.set, mix.get];
        match shares.iter().any(|share| *share > 1000) || shares.iter().all(|share| *share == 0) {
            true => Err("shares are from 0 to 1000, and one of them is above 0".to_owned()),
            false => Ok(mix),
        }
    }
}

impl std::fmt::Display for Mix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "incr={},append={},set={},get={}", self.incr, self.append, self.set, self.get)
    }
}

/// Draws the commands of one worker.
#[derive(Debug)]
pub(super) struct Chooser {
    prng: Prng,
    mix: Mix,
    incrs: u64,
    owed: Option<Op>,
}

impl Chooser {
    /// The commands of worker `worker` in a run with this seed.
    pub(super) fn new(seed: u64, worker: usize, mix: Mix) -> Self {
        let seed = seed ^ (worker as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self { prng: Prng::new(seed), mix, incrs: 0, owed: None }
    }

    /// The next command.
    pub(super) fn next(&mut self) -> Op {
        if let Some(owed) = self.owed.take() {
            return owed;
        }
        let Mix { incr, append, set, get } = self.mix;
        let mut at = self.prng.below(u64::from(incr + append + set + get));
        for (op, share) in [(Op::Incr, incr), (Op::Append, append), (Op::Set, set)] {
            let share = u64::from(share);
            if at < share {
                return if op == Op::Incr { self.incr() } else { op };
            }
            at -= share;
        }
        Op::Get
    }

    fn incr(&mut self) -> Op {
        self.incrs += 1;
        match self.incrs % INCR_CYCLE {
            1 => Op::Shared,
            3 => {
                self.owed = Some(Op::Right);
                Op::Left
            }
            _ => Op::Incr,
        }
    }
}

/// A command that was submitted: its kind, and its number among those of the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) op: Op,
    /// What `SET` writes and `APPEND` appends.
    pub(super) number: u32,
    /// Its place in the record.
    place: u32,
}

/// What became of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Answered with a number, or with OK (any number).
    Number(i64),
    /// Answered with nothing.
    Nothing,
    /// The server refused it, so it did not run.
    Refused,
    /// It was certainly not sent.
    Unsent,
    /// It may have run.
    Unknown,
}

impl Outcome {
    fn is_failure(self) -> bool {
        matches!(self, Self::Refused | Self::Unsent | Self::Unknown)
    }
}

/// What is found in the end, in a form that can be added up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Findings {
    /// Commands that were answered.
    pub(super) completed: u64,
    /// Commands that were not.
    pub(super) failed: u64,
    /// Executions above one for each command, and executions of commands that were reported as not sent.
    pub(super) duplicated: u64,
    /// Answers and effects out of the order of submission, and answers that are another command's.
    pub(super) reordered: u64,
    /// Effects that were acknowledged and are not there.
    pub(super) lost: u64,
    /// The first violations in words.
    pub(super) problems: Vec<String>,
}

impl Findings {
    /// Whether nothing is wrong.
    #[cfg(test)]
    pub(super) fn is_clean(&self) -> bool {
        self.failed == 0 && self.duplicated == 0 && self.reordered == 0 && self.lost == 0
    }

    /// Adds all of `other`.
    pub(super) fn merge(&mut self, other: Self) {
        self.completed += other.completed;
        self.failed += other.failed;
        self.duplicated += other.duplicated;
        self.reordered += other.reordered;
        self.lost += other.lost;
        for problem in other.problems {
            self.problem(|| problem);
        }
    }

    /// Keeps the text of a violation that has been counted, unless there are enough.
    pub(super) fn problem(&mut self, text: impl FnOnce() -> String) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(text());
        }
    }

    fn count(&mut self, outcome: Outcome) {
        if outcome.is_failure() {
            self.failed += 1;
        } else {
            self.completed += 1;
        }
    }
}

/// One worker's record: for each key what became of its commands, in the order of submission.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    records: BTreeMap<Op, Vec<Outcome>>,
    /// The order between the SETs and GETs of the register, with the number of the SET.
    register: Vec<(Op, u32, Outcome)>,
    sets: u32,
}

/// What the server holds of one worker's keys in the end.
#[derive(Debug, Clone, Default)]
pub(super) struct Held {
    pub(super) number: i64,
    pub(super) left: i64,
    pub(super) right: i64,
    pub(super) log: Vec<u8>,
}

impl Ledger {
    /// Notes that a command is about to be submitted, and gives its number. Until it is settled it counts as unknown.
    pub(super) fn submit(&mut self, op: Op) -> Request {
        if matches!(op, Op::Set | Op::Get) {
            self.sets += u32::from(op == Op::Set);
            let place = self.register.len() as u32;
            self.register.push((op, self.sets, Outcome::Unknown));
            return Request { op, number: self.sets, place };
        }
        let record = self.records.entry(op).or_default();
        let number = record.len() as u32;
        record.push(Outcome::Unknown);
        Request { op, number, place: number }
    }

    /// Notes what became of a command.
    pub(super) fn settle(&mut self, request: Request, outcome: Outcome) {
        let place = request.place as usize;
        if matches!(request.op, Op::Set | Op::Get) {
            self.register[place].2 = outcome;
        } else if let Some(record) = self.records.get_mut(&request.op) {
            record[place] = outcome;
        }
    }

    /// Commands that were submitted.
    pub(super) fn submitted(&self) -> u64 {
        (self.records.values().map(Vec::len).sum::<usize>() + self.register.len()) as u64
    }

    fn record(&self, op: Op) -> &[Outcome] {
        self.records.get(&op).map_or(&[], Vec::as_slice)
    }

    /// Compares the record with what the server holds. The connection's key is not looked at: see [`audit_shared`].
    pub(super) fn audit(&self, worker: usize, held: &Held) -> Findings {
        let mut findings = Findings::default();
        for (op, name, value) in [
            (Op::Incr, "number", held.number),
            (Op::Left, "left", held.left),
            (Op::Right, "right", held.right),
        ] {
            count(self.record(op), value, &format!("{name} of worker {worker}"), &mut findings);
        }
        self.audit_log(worker, &held.log, &mut findings);
        self.audit_register(worker, &mut findings);
        findings
    }

    /// Every token once, in order, and every answer the length that the log had behind it.
    fn audit_log(&self, worker: usize, log: &[u8], findings: &mut Findings) {
        let record = self.record(Op::Append);
        record.iter().for_each(|outcome| findings.count(*outcome));
        let mut places: Vec<Option<usize>> = vec![None; record.len()];
        let mut last = None;
        for (place, token) in log.chunks(TOKEN_BYTES).enumerate() {
            let number =
                std::str::from_utf8(token).ok().and_then(|text| usize::from_str_radix(text, 16).ok());
            let Some((number, seen)) = number.and_then(|number| Some((number, places.get_mut(number)?)))
            else {
                findings.duplicated += 1;
                findings.problem(|| format!("log of worker {worker}: a token that nobody appended"));
                continue;
            };
            if seen.is_some() {
                findings.duplicated += 1;
                findings.problem(|| format!("log of worker {worker}: token {number} is there twice"));
                continue;
            }
            *seen = Some(place);
            if last.is_some_and(|last| number < last) {
                findings.reordered += 1;
                findings.problem(|| format!("log of worker {worker}: {number} stands behind {last:?}"));
            }
            last = last.max(Some(number));
        }
        for (number, (outcome, place)) in record.iter().zip(&places).enumerate() {
            match (outcome, place) {
                (Outcome::Number(_) | Outcome::Nothing, None) => {
                    findings.lost += 1;
                    findings.problem(|| format!("log of worker {worker}: token {number} is gone"));
                }
                (Outcome::Unsent | Outcome::Refused, Some(_)) => {
                    findings.duplicated += 1;
                    findings.problem(|| {
                        format!("log of worker {worker}: token {number} ran, reported as not run")
                    });
                }
                (Outcome::Number(length), Some(place)) if *length != ((place + 1) * TOKEN_BYTES) as i64 => {
                    findings.reordered += 1;
                    findings.problem(|| {
                        format!(
                            "log of worker {worker}: token {number} at {place} was answered with {length}"
                        )
                    });
                }
                _ => {}
            }
        }
    }

    /// A GET sees the last SET before it. One whose fate is unknown may be seen, or not.
    fn audit_register(&self, worker: usize, findings: &mut Findings) {
        let mut possible: Vec<Option<i64>> = vec![None];
        for &(op, number, outcome) in &self.register {
            findings.count(outcome);
            match (op, outcome) {
                (Op::Set, Outcome::Number(_) | Outcome::Nothing) => possible = vec![Some(i64::from(number))],
                (Op::Set, Outcome::Unknown) => possible.push(Some(i64::from(number))),
                (Op::Get, Outcome::Number(_) | Outcome::Nothing) => {
                    let seen = match outcome {
                        Outcome::Number(value) => Some(value),
                        _ => None,
                    };
                    if !possible.contains(&seen) {
                        findings.reordered += 1;
                        findings.problem(|| {
                            format!("register of worker {worker}: {seen:?} where {possible:?} was set before")
                        });
                    }
                }
                _ => {}
            }
        }
    }
}

/// A number that only one worker increments: answers rise by one for each command, but for those of unknown fate.
fn count(record: &[Outcome], held: i64, name: &str, findings: &mut Findings) {
    let (mut last, mut unknown, mut excess) = (0, 0, 0);
    let (mut acked, mut unknown_all) = (0, 0);
    for outcome in record {
        findings.count(*outcome);
        match *outcome {
            Outcome::Number(value) => {
                acked += 1;
                if value <= last {
                    findings.reordered += 1;
                    findings.problem(|| format!("{name}: the answer {value} came behind {last}"));
                } else {
                    excess += (value - last - 1 - unknown).max(0);
                    last = value;
                }
                unknown = 0;
            }
            Outcome::Unknown => {
                unknown += 1;
                unknown_all += 1;
            }
            Outcome::Nothing | Outcome::Refused | Outcome::Unsent => {}
        }
    }
    excess += (held - last - unknown).max(0);
    total(held, acked, unknown_all, excess, name, findings);
}

/// The sum of executions against what was reported. `excess` are steps that no command in between explains: those that are no
/// duplicates are commands that ran elsewhere than they were submitted.
fn total(held: i64, acked: i64, unknown: i64, excess: i64, name: &str, findings: &mut Findings) {
    let duplicated = (held - acked - unknown).max(0);
    let lost = (acked - held).max(0);
    let moved = (excess - duplicated).max(0);
    findings.duplicated += duplicated.unsigned_abs();
    findings.lost += lost.unsigned_abs();
    findings.reordered += moved.unsigned_abs();
    if duplicated > 0 || lost > 0 || moved > 0 {
        findings.problem(|| {
            format!("{name}: {held}, with {acked} acknowledged, {unknown} unknown, {moved} out of place")
        });
    }
}

/// The number that all workers of one connection increment: each answer once, rising for each worker.
pub(super) fn audit_shared<'a>(
    connection: usize,
    ledgers: impl Iterator<Item = &'a Ledger>,
    held: i64,
) -> Findings {
    let mut findings = Findings::default();
    let name = format!("shared number of connection {connection}");
    let mut values = Vec::new();
    let (mut acked, mut unknown) = (0, 0);
    for ledger in ledgers {
        let mut last = 0;
        for outcome in ledger.record(Op::Shared) {
            findings.count(*outcome);
            match *outcome {
                Outcome::Number(value) => {
                    acked += 1;
                    if value <= last {
                        findings.reordered += 1;
                        findings.problem(|| format!("{name}: the answer {value} came behind {last}"));
                    }
                    last = value;
                    values.push(value);
                }
                Outcome::Unknown => unknown += 1,
                Outcome::Nothing | Outcome::Refused | Outcome::Unsent => {}
            }
        }
    }
    values.sort_unstable();
    for pair in values.windows(2).filter(|pair| pair[0] == pair[1]) {
        findings.reordered += 1;
        findings.problem(|| format!("{name}: two commands were answered with {}", pair[0]));
    }
    total(held, acked, unknown, 0, &name, &mut findings);
    findings
}

#[cfg(test)]
mod tests;

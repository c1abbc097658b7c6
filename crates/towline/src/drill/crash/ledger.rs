//! What one client was promised, and whether a server that was killed has kept it.
//!
//! ```text
//! base (what the run began with) ── step, step, ... step ── | ── step, step
//!                                   answered                  sent, without an answer
//! ```
//!
//! A server executes the commands of a connection in order, so what it holds afterwards must be what it held after some number of
//! them: all that were answered and perhaps some of the rest, or, where the promise is weaker, all but the last ones. The
//! ledger looks for that number. Nothing else can hide: a hole, a half transaction or a wrong time to live fits no number.
//!
//! Owns the steps, their answers and the verdict. Pure: moments come from outside. Does not own what commands do, see
//! [`state`](super::state).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::op::Op;
use super::state::{Expect, Outcome, State, Window};
use super::value::{Deadline, Entry, Found, Match, Place};

/// How many keys of one client are described; all are counted.
const DESCRIBED_MAX: usize = 3;

/// What a server promises to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Promise {
    /// Every command that was answered.
    All,
    /// Every command that was answered longer than this before the end.
    Older(Duration),
    /// Some first commands.
    Some,
}

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// An acknowledged command has left no trace.
    Lost,
    /// A state that no number of commands leads to: half of something, a hole, another order.
    Partial,
    /// The value is right and the time to live is not.
    WrongTtl,
    /// An answer that cannot be.
    WrongAnswer,
    /// A key that nobody wrote.
    Foreign,
}

/// One violation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) kind: Kind,
    /// One line: the key, what was expected, what was found.
    pub(super) text: String,
}

/// A command that was sent.
#[derive(Debug, Clone)]
struct Step {
    op: Op,
    outcome: Outcome,
    sent_ms: u64,
    /// By the wall clock, and since the run began.
    answered: Option<(u64, Duration)>,
}

/// The commands of one client in one run, and the state before them.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger {
    base: State,
    /// After all answered steps.
    known: State,
    steps: Vec<Step>,
    answered: usize,
}

/// The verdict on one client.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    /// Answered commands that are not there.
    pub(super) missing: usize,
    /// How long before the end the first of these was answered.
    pub(super) oldest_missing: Option<Duration>,
    /// Commands without an answer that are there.
    pub(super) unknown_applied: usize,
    pub(super) problems: Vec<Problem>,
    /// How many keys are wrong, described or not.
    pub(super) wrong: BTreeMap<Kind, u64>,
    /// Elements pushed, elements popped and shared increments: the fewest and the most that go with what was found.
    pub(super) pushed: (u64, u64),
    pub(super) popped: (u64, u64),
    pub(super) shared: (u64, u64),
}

/// The end of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    /// When nothing ran any more, by the wall clock.
    pub(super) ms: u64,
    /// When the server was about to be killed, since the run began.
    pub(super) at: Duration,
}

impl Ledger {
    /// The keys after all answered steps.
    pub(super) fn known(&self) -> &State {
        &self.known
    }

    /// Commands answered in this run.
    pub(super) fn answered(&self) -> usize {
        self.answered
    }

    /// Commands sent in this run that were not answered.
    pub(super) fn unknown(&self) -> usize {
        self.steps.len() - self.answered
    }

    /// Pushes to the own queue that were sent in this run.
    pub(super) fn pushes_sent(&self) -> u64 {
        self.steps.iter().filter(|step| matches!(step.op, Op::Push { .. })).count() as u64
    }

    /// Notes a command that is about to be sent.
    pub(super) fn send(&mut self, op: Op, sent_ms: u64) {
        self.steps.push(Step { op, outcome: Outcome::Unknown, sent_ms, answered: None });
    }

    /// The first command that was not answered yet.
    pub(super) fn next(&self) -> Option<&Op> {
        self.steps.get(self.answered).map(|step| &step.op)
    }

    /// Notes the answer of the first command that has none yet. Returns what the answer should have been.
    pub(super) fn answer(&mut self, outcome: Outcome, at_ms: u64, at: Duration) -> Expect {
        let Some(step) = self.steps.get_mut(self.answered) else { return Expect::Any };
        step.outcome = outcome;
        step.answered = Some((at_ms, at));
        self.answered += 1;
        let window = Window { from_ms: step.sent_ms, until_ms: at_ms };
        self.known.apply(&step.op, &step.outcome, window)
    }

    fn apply(&self, state: &mut State, step: &Step, end: End) {
        let until_ms = step.answered.map_or(end.ms, |(ms, _)| ms);
        state.apply(&step.op, &step.outcome, Window { from_ms: step.sent_ms, until_ms });
    }

    /// Compares what a server shows of this client's keys with what it promised.
    pub(super) fn judge(&self, found: &Found, promise: Promise, end: End) -> Verdict {
        let walk = self.walk(found, end);
        let mut verdict = Verdict::default();
        let Some(&highest) = walk.fits.last() else {
            self.explain(found, &walk, promise, end, &mut verdict);
            return verdict;
        };
        let floor = self.floor(promise, end);
        // Some numbers of commands may lead to the same keys. The highest one loses nothing more than must be.
        let lowest = walk.fits.iter().copied().find(|fit| *fit >= floor).unwrap_or(highest);
        verdict.missing = self.answered.saturating_sub(highest);
        verdict.unknown_applied = highest.saturating_sub(self.answered);
        if verdict.missing > 0 {
            verdict.oldest_missing = self.age(highest, end);
        }
        if highest < floor {
            verdict.wrong.insert(Kind::Lost, (floor - highest) as u64);
            verdict.problems.push(self.lost(found, highest, floor, end));
        }
        let (low, high) = (self.after(lowest, end), self.after(highest, end));
        verdict.pushed = (low.pushed, high.pushed);
        verdict.popped = (low.popped.0, high.popped.1);
        verdict.shared = (low.shared, high.shared);
        verdict
    }

    /// The fewest commands that must be there.
    fn floor(&self, promise: Promise, end: End) -> usize {
        match promise {
            Promise::All => self.answered,
            Promise::Some => 0,
            Promise::Older(limit) => {
                let is_safe =
                    |step: &&Step| step.answered.is_some_and(|(_, at)| end.at.saturating_sub(at) > limit);
                self.steps.iter().take_while(is_safe).count()
            }
        }
    }

    /// How long before the end the command after `position` was answered.
    fn age(&self, position: usize, end: End) -> Option<Duration> {
        let (_, at) = self.steps.get(position)?.answered?;
        Some(end.at.saturating_sub(at))
    }

    fn after(&self, position: usize, end: End) -> State {
        let mut state = self.base.clone();
        self.steps[..position].iter().for_each(|step| self.apply(&mut state, step, end));
        state
    }

    /// Goes through all numbers of commands and notes after which of them all keys are as found, and each key alone.
    fn walk(&self, found: &Found, end: End) -> Walk {
        let mut state = self.base.clone();
        let mut walk = Walk::default();
        let mut all: BTreeSet<Place> = state.keys.keys().chain(found.keys.keys()).cloned().collect();
        for step in &self.steps {
            step.op.places(&mut |place| {
                all.insert(place.clone());
            });
        }
        walk.note(0, all, &state, found);
        for (index, step) in self.steps.iter().enumerate() {
            let mut touched = BTreeSet::new();
            if let Op::FlushDb { db } = &step.op {
                touched.extend(state.keys.keys().filter(|place| place.db == *db).cloned());
            }
            step.op.places(&mut |place| {
                touched.insert(place.clone());
            });
            self.apply(&mut state, step, end);
            walk.note(index + 1, touched, &state, found);
        }
        walk
    }

    /// A line for each of the first keys that are wrong, when no number of commands fits.
    fn explain(&self, found: &Found, walk: &Walk, promise: Promise, end: End, verdict: &mut Verdict) {
        let floor = self.floor(promise, end);
        // Where the fewest keys are wrong, the rest is most likely what happened.
        let (reference, _) = walk
            .wrong
            .iter()
            .enumerate()
            .skip(floor)
            .min_by_key(|(position, wrong)| (**wrong, usize::MAX - position))
            .unwrap_or((self.steps.len(), &0));
        let state = self.after(reference, end);
        verdict.missing = self.answered.saturating_sub(reference);
        let places: BTreeSet<&Place> = state.keys.keys().chain(found.keys.keys()).collect();
        for place in places {
            let expected = state.keys.get(place);
            let outcome = found.compare(place, expected);
            if outcome == Match::Same {
                continue;
            }
            let alone = walk.last_fit(place, self.steps.len());
            let kind = match (outcome, alone) {
                (Match::OtherDeadline, _) => Kind::WrongTtl,
                (_, Some(position)) if position < floor && !self.is_transaction(position) => Kind::Lost,
                _ => Kind::Partial,
            };
            *verdict.wrong.entry(kind).or_insert(0) += 1;
            if verdict.problems.len() < DESCRIBED_MAX {
                let alone = alone.map_or_else(
                    || "as it never was".to_owned(),
                    |position| format!("as it was after {}", self.position(position)),
                );
                let text = format!(
                    "{place}: expected {} after {}, found {}, {alone}; last touched by {}",
                    shown(expected),
                    self.position(reference),
                    found_instead(expected, found.keys.get(place)),
                    self.toucher(place, reference),
                );
                verdict.problems.push(Problem { kind, text });
            }
        }
    }

    /// Whether the command after this many is a transaction: what it left undone is half of it.
    fn is_transaction(&self, position: usize) -> bool {
        matches!(self.steps.get(position).map(|step| &step.op), Some(Op::Multi(_)))
    }

    /// The line for a state that is right, but too old.
    fn lost(&self, found: &Found, position: usize, floor: usize, end: End) -> Problem {
        let state = self.after(floor, end);
        let place = state
            .keys
            .keys()
            .chain(found.keys.keys())
            .find(|place| found.compare(place, state.keys.get(*place)) != Match::Same);
        let key = place.map_or_else(
            || "no key shows it".to_owned(),
            |place| {
                let (expected, found) = (state.keys.get(place), found.keys.get(place));
                format!("{place}: expected {}, found {}", shown(expected), found_instead(expected, found))
            },
        );
        let age = self.age(position, end).unwrap_or_default().as_secs_f64() * 1000.0;
        let text = format!(
            "{} acknowledged commands are lost, those after {}, the first {age:.1} ms before the kill; {key}",
            self.answered - position,
            self.position(position),
        );
        Problem { kind: Kind::Lost, text }
    }

    fn position(&self, position: usize) -> String {
        match position.checked_sub(1).and_then(|index| self.steps.get(index)) {
            None => "no command of this run".to_owned(),
            Some(step) => {
                let known = if step.answered.is_some() { "" } else { ", unanswered" };
                format!("command {position} ({}{known}) of {}", step.op, self.steps.len())
            }
        }
    }

    /// The last command up to `position` that names the key.
    fn toucher(&self, place: &Place, position: usize) -> String {
        let touches = |step: &&(usize, &Step)| {
            let mut is_named = matches!(step.1.op, Op::FlushDb { db } if db == place.db);
            step.1.op.places(&mut |named| is_named |= named == place);
            is_named
        };
        let steps: Vec<(usize, &Step)> = self.steps[..position].iter().enumerate().collect();
        steps.iter().rev().find(touches).map_or_else(
            || "an earlier run".to_owned(),
            |(index, step)| {
                let known = if step.answered.is_some() { "acknowledged" } else { "unanswered" };
                format!("command {} ({}), {known}", index + 1, step.op)
            },
        )
    }

    /// Begins the next run with what was found, right or wrong: each mistake counts once. Keys whose time has passed by
    /// then are forgotten.
    pub(super) fn adopt(&mut self, found: &Found) {
        let keys = found.keys.clone();
        let base = State { keys, ..State::default() };
        *self = Self { known: base.clone(), base, steps: Vec::new(), answered: 0 };
    }
}

/// Which numbers of commands lead to what was found.
#[derive(Debug, Default)]
struct Walk {
    /// Numbers after which all keys are as found, rising.
    fits: Vec<usize>,
    /// How many keys are wrong after each number.
    wrong: Vec<usize>,
    /// The keys that are wrong at this point.
    bad: BTreeSet<Place>,
    /// For each key that was ever looked at, the numbers from which it was right or wrong.
    changes: BTreeMap<Place, Vec<(usize, bool)>>,
}

impl Walk {
    fn note(&mut self, position: usize, touched: BTreeSet<Place>, state: &State, found: &Found) {
        for place in touched {
            let is_right = found.compare(&place, state.keys.get(&place)) == Match::Same;
            self.changes.entry(place.clone()).or_default().push((position, is_right));
            if is_right {
                self.bad.remove(&place);
            } else {
                self.bad.insert(place);
            }
        }
        self.wrong.push(self.bad.len());
        if self.bad.is_empty() {
            self.fits.push(position);
        }
    }

    /// The highest number after which this key alone is as found.
    fn last_fit(&self, place: &Place, steps: usize) -> Option<usize> {
        let changes = self.changes.get(place)?;
        let last = changes.iter().rposition(|(_, is_right)| *is_right)?;
        // Until somebody touched it again.
        Some(changes.get(last + 1).map_or(steps, |(position, _)| position - 1))
    }
}

fn shown(entry: Option<&Entry>) -> String {
    entry.map_or_else(|| "nothing".to_owned(), ToString::to_string)
}

/// What was found, and where it differs.
fn found_instead(expected: Option<&Entry>, found: Option<&Entry>) -> String {
    let difference =
        expected.zip(found).and_then(|(expected, found)| expected.value.difference(&found.value));
    difference.map_or_else(|| shown(found), |difference| format!("{} ({difference})", shown(found)))
}

/// Whether keys with this deadline may be built upon: it is far enough away.
pub(super) fn is_lasting(deadline: Deadline, now_ms: u64, margin: Duration) -> bool {
    let margin_ms = u64::try_from(margin.as_millis()).unwrap_or(u64::MAX);
    match deadline {
        Deadline::Never => true,
        Deadline::At(at) | Deadline::Within(at, _) => at > now_ms.saturating_add(margin_ms),
    }
}

#[cfg(test)]
mod tests;

//! Whether what clients saw of a register can be explained by commands that ran one at a time, each between its sending and its answer.
//!
//! Owns: the search (Wing and Gong's, with Lowe's memory of what was tried). Does **not** own the run that is judged
//! ([`crate::registers`]).
//!
//! Keys are judged one by one, as linearizability is local: if each is linearizable, all together are.

use std::collections::HashSet;
use std::fmt;

/// States that are looked at before the search is given up. Histories of a few thousand commands, of which ten run at a time, need about as
/// many as they have commands; a million takes a second.
pub const STATES_MAX: usize = 1_000_000;

/// What was asked of a register, and what was answered. The value is `None` if there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// The answer was this value.
    Read(Option<u64>),
    /// It was acknowledged, or may have run.
    Write(Option<u64>),
}

/// A command on one register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op {
    /// When it was sent, in nanoseconds since any instant.
    pub begun: u64,
    /// When its answer was there; `None` if there is none, and it may have run at any time since, or may still.
    pub ended: Option<u64>,
    /// What it was.
    pub asked: Asked,
}

impl Op {
    fn end(&self) -> u64 {
        self.ended.unwrap_or(u64::MAX)
    }

    /// The value after it; `None` if it cannot run on this one.
    fn run(&self, value: Option<u64>) -> Option<Option<u64>> {
        match self.asked {
            Asked::Read(found) => (found == value).then_some(value),
            Asked::Write(new) => Some(new),
        }
    }
}

/// What was seen has no explanation, or none was found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unexplained {
    /// There is none.
    Impossible {
        /// As many commands as could be put into an order.
        ordered: usize,
        /// The value after them.
        value: Option<u64>,
        /// Those of which one should have run next, and none can.
        stuck: Vec<Op>,
    },
    /// More than [`STATES_MAX`] states were looked at.
    TooHard,
}

impl fmt::Display for Unexplained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Impossible { ordered, value, stuck } => {
                write!(
                    f,
                    "after {ordered} commands the register holds {value:?}, and none of these can be next: {stuck:?}"
                )
            }
            Self::TooHard => write!(f, "more than {STATES_MAX} states"),
        }
    }
}

impl std::error::Error for Unexplained {}

/// Finds an order of the commands on a register, which has no value at first.
///
/// # Errors
/// [`Unexplained`].
pub fn explain(mut ops: Vec<Op>) -> Result<(), Unexplained> {
    // A read without an answer says nothing.
    ops.retain(|op| op.ended.is_some() || matches!(op.asked, Asked::Write(_)));
    ops.sort_unstable_by_key(|op| op.begun);
    Search::new(ops).run()
}

/// A set of commands, by their places.
type Set = Vec<u64>;

struct Search {
    ops: Vec<Op>,
    is_done: Set,
    /// Commands with an answer that are not done.
    left: usize,
    value: Option<u64>,
    /// What was done, and the value before each.
    path: Vec<(usize, Option<u64>)>,
    seen: HashSet<(Set, Option<u64>)>,
    /// The longest path so far.
    best: Unexplained,
}

impl Search {
    fn new(ops: Vec<Op>) -> Self {
        let left = ops.iter().filter(|op| op.ended.is_some()).count();
        let is_done = vec![0; ops.len().div_ceil(64)];
        let best = Unexplained::Impossible { ordered: 0, value: None, stuck: Vec::new() };
        Self { ops, is_done, left, value: None, path: Vec::new(), seen: HashSet::new(), best }
    }

    fn is_done(&self, at: usize) -> bool {
        self.is_done[at / 64] >> (at % 64) & 1 == 1
    }

    fn turn(&mut self, at: usize) {
        self.is_done[at / 64] ^= 1 << (at % 64);
    }

    fn run(mut self) -> Result<(), Unexplained> {
        let mut from = 0;
        while self.left > 0 {
            if self.seen.len() > STATES_MAX {
                return Err(Unexplained::TooHard);
            }
            let next = self.nexts();
            match next.iter().copied().find(|&at| at >= from && self.step(at)) {
                Some(_) => from = 0,
                None => {
                    self.note(&next);
                    let Some((at, value)) = self.path.pop() else { return Err(self.best) };
                    self.turn(at);
                    self.left += usize::from(self.ops[at].ended.is_some());
                    self.value = value;
                    from = at + 1;
                }
            }
        }
        Ok(())
    }

    /// The commands that may be next: those that were sent before any other one of those left was answered.
    fn nexts(&self) -> Vec<usize> {
        let (mut next, mut first_end) = (Vec::new(), u64::MAX);
        let first = self.is_done.iter().position(|word| *word != u64::MAX).unwrap_or(0) * 64;
        for at in first..self.ops.len() {
            if self.ops[at].begun > first_end {
                break;
            }
            if !self.is_done(at) {
                first_end = first_end.min(self.ops[at].end());
                next.push(at);
            }
        }
        next.retain(|&at| self.ops[at].begun <= first_end);
        next
    }

    /// Puts the command next, if it can be and what follows was not tried yet.
    fn step(&mut self, at: usize) -> bool {
        let Some(value) = self.ops[at].run(self.value) else { return false };
        self.turn(at);
        if !self.seen.insert((self.is_done.clone(), value)) {
            self.turn(at);
            return false;
        }
        self.left -= usize::from(self.ops[at].ended.is_some());
        self.path.push((at, self.value));
        self.value = value;
        true
    }

    fn note(&mut self, next: &[usize]) {
        let Unexplained::Impossible { ordered, stuck, .. } = &self.best else { return };
        if self.path.len() > *ordered || stuck.is_empty() {
            let stuck = next.iter().map(|&at| self.ops[at]).collect();
            self.best = Unexplained::Impossible { ordered: self.path.len(), value: self.value, stuck };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_sansio::Prng;

    const fn op(begun: u64, ended: u64, asked: Asked) -> Op {
        Op { begun, ended: Some(ended), asked }
    }

    const fn lost(begun: u64, asked: Asked) -> Op {
        Op { begun, ended: None, asked }
    }

    use Asked::{Read, Write};

    #[test]
    fn what_overlaps_may_run_in_either_order_and_what_does_not_may_not() {
        let (one, two) = (Some(1), Some(2));
        let good = [
            vec![],
            vec![op(0, 1, Read(None)), op(2, 3, Write(one)), op(4, 5, Read(one))],
            vec![op(0, 9, Write(one)), op(1, 2, Read(None)), op(3, 4, Read(one))],
            vec![op(0, 9, Write(one)), op(0, 9, Write(two)), op(10, 11, Read(one))],
            vec![op(0, 1, Write(one)), op(2, 3, Write(None)), op(4, 5, Read(None))],
            // A write without an answer may run late, or never.
            vec![lost(0, Write(one)), op(5, 6, Read(None)), op(7, 8, Read(one))],
            vec![lost(0, Write(one)), op(5, 6, Write(two)), op(7, 8, Read(two))],
        ];
        for history in good {
            assert_eq!(explain(history.clone()), Ok(()), "{history:?}");
        }
        let bad = [
            // A stale read, a lost write, one that runs twice, one that runs before it is sent, two reads that turn time round.
            vec![op(0, 1, Write(one)), op(2, 3, Write(two)), op(4, 5, Read(one))],
            vec![op(0, 1, Write(one)), op(2, 3, Read(None))],
            vec![op(0, 1, Write(one)), op(2, 3, Write(two)), op(4, 5, Read(two)), op(6, 7, Read(one))],
            vec![op(0, 1, Read(one)), op(2, 3, Write(one))],
            vec![op(0, 9, Write(one)), op(1, 2, Read(one)), op(3, 4, Read(None))],
            vec![lost(3, Write(one)), op(0, 1, Read(one))],
        ];
        for history in bad {
            let unexplained = explain(history.clone());
            assert!(
                matches!(unexplained, Err(Unexplained::Impossible { .. })),
                "{history:?}: {unexplained:?}"
            );
        }
    }

    /// A run of a real register: each command takes effect at some instant between its ends.
    fn run(seed: u64, commands: usize) -> Vec<Op> {
        let mut rng = Prng::new(seed);
        let mut instants: Vec<(u64, u64, u64, bool)> = (0..commands)
            .map(|_| {
                let at = rng.below(10 * commands as u64);
                (at, at.saturating_sub(rng.below(30)), at + rng.below(30), rng.below(2) == 0)
            })
            .collect();
        instants.sort_unstable();
        let mut value = None;
        let history = instants.into_iter().enumerate().map(|(number, (_, begun, ended, reads))| {
            let ended = (rng.below(25) > 0).then_some(ended);
            let asked = if reads {
                Read(value)
            } else {
                let new = (rng.below(5) > 0).then_some(number as u64);
                // One without an answer need not have run.
                value = if ended.is_none() && rng.below(2) == 0 { value } else { new };
                Write(new)
            };
            Op { begun, ended, asked }
        });
        history.collect()
    }

    #[test]
    fn real_runs_are_explained_and_a_stale_answer_in_one_is_found() {
        let mut found = 0;
        for seed in 0..50 {
            let history = run(seed, 120);
            assert_eq!(explain(history.clone()), Ok(()), "seed {seed}");
            // One read far behind gives what the register held long before.
            let mut stale = history.clone();
            let old = stale[..40].iter().find_map(|op| match op.asked {
                Write(Some(value)) => op.ended.map(|_| value),
                _ => None,
            });
            let read = stale[80..].iter_mut().find(|op| op.ended.is_some() && matches!(op.asked, Read(_)));
            read.unwrap().asked = Read(old);
            found += usize::from(matches!(explain(stale), Err(Unexplained::Impossible { .. })));
        }
        assert_eq!(found, 50);
    }
}

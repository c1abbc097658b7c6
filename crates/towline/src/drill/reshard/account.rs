//! What was seen of every command: how long it took, and what became of it.
//!
//! Owns counters, the timeline and the stalls. Does not own which outcomes are allowed for a key; that is each task's account.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use towline_client::{Error, ErrorKind, Sent};

use crate::bench::ErrorTally;

/// Width of a step of the timeline.
const BUCKET: Duration = Duration::from_millis(250);

/// One step of the timeline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Bucket {
    /// Commands that ended in it.
    pub(super) completed: u64,
    /// The longest of them, microseconds.
    pub(super) max_us: u64,
}

/// What became of a command that did not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failed {
    /// It may have run.
    Unknown,
    /// It has not.
    Not,
}

/// What all tasks write into.
#[derive(Debug)]
pub(super) struct Account {
    start: Instant,
    /// Kills make some commands unknown, which is no error then.
    is_chaos: bool,
    completed: AtomicU64,
    unknown: AtomicU64,
    errors: Mutex<ErrorTally>,
    buckets: Mutex<Vec<Bucket>>,
}

impl Account {
    pub(super) fn new(is_chaos: bool) -> Self {
        Self {
            start: Instant::now(),
            is_chaos,
            completed: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
            errors: Mutex::default(),
            buckets: Mutex::default(),
        }
    }

    /// Since the beginning.
    pub(super) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Counts a command that took so long without being held by choice.
    pub(super) fn took(&self, elapsed: Duration) {
        self.completed.fetch_add(1, Ordering::Relaxed);
        let at = (self.start.elapsed().as_millis() / BUCKET.as_millis()) as usize;
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() <= at {
            buckets.resize(at + 1, Bucket::default());
        }
        buckets[at].completed += 1;
        buckets[at].max_us = buckets[at].max_us.max(elapsed.as_micros() as u64);
    }

    /// Counts a command that failed.
    pub(super) fn failed(&self, error: &Error) -> Failed {
        let fate = match (error.kind(), error.sent()) {
            (ErrorKind::Server(_), _) | (_, Sent::Answered) => Failed::Not,
            (_, Sent::No) => Failed::Not,
            (_, Sent::Maybe) => Failed::Unknown,
        };
        if fate == Failed::Unknown {
            self.unknown.fetch_add(1, Ordering::Relaxed);
        }
        if fate == Failed::Not || !self.is_chaos {
            let sent = if fate == Failed::Unknown { "may have run" } else { "did not run" };
            self.wrong(&format!("{} ({sent})", error.kind()));
        }
        fate
    }

    /// Counts something that must not be.
    pub(super) fn wrong(&self, text: &str) {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).add(text, 1);
    }

    /// Commands that succeeded, and those whose fate is unknown.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.completed.load(Ordering::Relaxed), self.unknown.load(Ordering::Relaxed))
    }

    /// What must not be.
    pub(super) fn errors(&self) -> ErrorTally {
        let mut all = ErrorTally::default();
        all.merge(&self.errors.lock().unwrap_or_else(PoisonError::into_inner));
        all
    }

    /// The longest command between two moments, milliseconds.
    pub(super) fn stall_ms(&self, from: Duration, to: Duration) -> f64 {
        let at = |time: Duration| (time.as_millis() / BUCKET.as_millis()) as usize;
        let buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let within = buckets.iter().skip(at(from)).take(at(to).saturating_sub(at(from)) + 1);
        within.map(|bucket| bucket.max_us).max().unwrap_or_default() as f64 / 1000.0
    }

    /// The timeline so far, with the width of its steps.
    pub(super) fn timeline(&self) -> (Duration, Vec<Bucket>) {
        (BUCKET, self.buckets.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

/// What an audit finds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Acknowledged and not there, or an older value than acknowledged.
    pub(super) lost: u64,
    /// There more often than sent.
    pub(super) duplicated: u64,
}

impl Found {
    /// Adds what another part found.
    pub(super) fn add(&mut self, other: Self) {
        self.lost += other.lost;
        self.duplicated += other.duplicated;
    }
}

/// Judges a counter by what is known of its increments.
pub(super) fn judge_counter(value: u64, acknowledged: u64, unknown: u64) -> Found {
    Found {
        lost: acknowledged.saturating_sub(value),
        duplicated: value.saturating_sub(acknowledged + unknown),
    }
}

/// Judges numbers that were appended one by one: `fates` says of each whether it was acknowledged (`Some(true)`), may be there
/// (`Some(false)`), or was not taken.
pub(super) fn judge_list(held: &[usize], fates: &[Option<bool>]) -> Found {
    let mut times = vec![0u64; fates.len()];
    let mut found = Found::default();
    for number in held {
        match times.get_mut(*number) {
            Some(times) => *times += 1,
            None => found.duplicated += 1,
        }
    }
    for (times, fate) in times.iter().zip(fates) {
        let allowed = u64::from(fate.is_some());
        found.duplicated += times.saturating_sub(allowed);
        found.lost += u64::from(*fate == Some(true) && *times == 0);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_judged() {
        assert_eq!(judge_counter(10, 10, 0), Found::default());
        assert_eq!(judge_counter(11, 10, 1), Found::default());
        assert_eq!(judge_counter(9, 10, 1), Found { lost: 1, duplicated: 0 });
        assert_eq!(judge_counter(12, 10, 1), Found { lost: 0, duplicated: 1 });
    }

    #[test]
    fn lists_are_judged() {
        let fates = [Some(true), Some(false), None, Some(true)];
        assert_eq!(judge_list(&[0, 3], &fates), Found::default());
        assert_eq!(judge_list(&[0, 1, 3], &fates), Found::default());
        assert_eq!(judge_list(&[0], &fates), Found { lost: 1, duplicated: 0 });
        assert_eq!(judge_list(&[0, 0, 3], &fates), Found { lost: 0, duplicated: 1 });
        assert_eq!(judge_list(&[0, 2, 3], &fates), Found { lost: 0, duplicated: 1 }, "it was refused");
        assert_eq!(judge_list(&[0, 3, 9], &fates), Found { lost: 0, duplicated: 1 }, "nobody sent it");
    }

    #[test]
    fn stalls_belong_to_their_time() {
        let account = Account::new(false);
        account.took(Duration::from_millis(7));
        assert!((account.stall_ms(Duration::ZERO, Duration::from_secs(1)) - 7.0).abs() < 0.001);
        assert!(account.stall_ms(Duration::from_secs(5), Duration::from_secs(6)) < 0.001);
        assert_eq!(account.counts(), (1, 0));
    }
}

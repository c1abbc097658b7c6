//! What one thread, or a whole phase, has counted.
//!
//! Owns latencies, replies and error texts. Does not own how they are shown (`report`).

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

/// Longest latency that is told apart: one hour. Longer ones count as this.
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;

/// Significant decimal digits of a recorded latency.
const LATENCY_DIGITS: u8 = 3;

/// Different error texts that are kept; the rest is counted under one name.
const ERROR_TEXTS_MAX: usize = 16;

/// An empty latency histogram in nanoseconds.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, LATENCY_DIGITS)
        .expect("invariant: the constant bounds are valid")
}

/// Errors by text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ErrorTally {
    counts: BTreeMap<String, u64>,
}

impl ErrorTally {
    /// Counts `count` errors under `text`. Redirects are counted by kind, since each names another slot.
    pub(crate) fn add(&mut self, text: &str, count: u64) {
        if count == 0 {
            return;
        }
        let text = match text.split_once(' ') {
            Some((kind @ ("MOVED" | "ASK"), _)) => kind,
            _ => text,
        };
        if let Some(known) = self.counts.get_mut(text) {
            *known += count;
        } else if self.counts.len() < ERROR_TEXTS_MAX {
            self.counts.insert(text.to_owned(), count);
        } else {
            *self.counts.entry("(other errors)".to_owned()).or_default() += count;
        }
    }

    /// Adds all of `other`.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (text, count) in &other.counts {
            self.add(text, *count);
        }
    }

    /// Errors in all.
    pub(crate) fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Texts with their counts, the most frequent first.
    pub(crate) fn by_count(&self) -> Vec<(&str, u64)> {
        let mut texts: Vec<_> = self.counts.iter().map(|(text, count)| (text.as_str(), *count)).collect();
        texts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        texts
    }
}

/// The counts of one phase.
#[derive(Debug)]
pub(crate) struct Tally {
    /// Latency of every reply, in nanoseconds.
    pub(crate) latency: Histogram<u64>,
    /// Replies received, errors included.
    pub(crate) replies: u64,
    /// Error replies, and commands whose connection was lost.
    pub(crate) errors: ErrorTally,
    /// From the phase's start to the last reply.
    pub(crate) elapsed: Duration,
}

impl Tally {
    /// Nothing counted yet.
    pub(crate) fn new() -> Self {
        Self { latency: histogram(), replies: 0, errors: ErrorTally::default(), elapsed: Duration::ZERO }
    }

    /// Adds the counts of another thread.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.latency.add(&other.latency).expect("invariant: all histograms have the same bounds");
        self.replies += other.replies;
        self.errors.merge(&other.errors);
        self.elapsed = self.elapsed.max(other.elapsed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_texts_are_bounded_and_redirects_grouped() {
        let mut tally = ErrorTally::default();
        for slot in 0..100 {
            tally.add(&format!("MOVED {slot} 127.0.0.1:1"), 2);
            tally.add(&format!("ERR number {slot}"), 1);
        }
        assert_eq!(tally.total(), 300);
        assert!(tally.by_count().len() <= ERROR_TEXTS_MAX + 1);
        assert_eq!(tally.by_count()[0], ("MOVED", 200));
    }

    #[test]
    fn a_latency_beyond_the_bound_is_kept_at_the_bound() {
        let mut tally = Tally::new();
        tally.latency.saturating_record(u64::MAX);
        assert!(tally.latency.max() >= LATENCY_NS_MAX);
    }
}

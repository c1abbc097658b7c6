//! When commands were answered, and how long each took.
//!
//! Owns the samples of a run and the figures of its phases: latencies, throughput by 10 ms, the longest pause. Figures are exact,
//! for every command is kept. Does not own what the phases mean.

use std::ops::Range;
use std::time::Duration;

use serde::Serialize;

/// Width of a bucket of throughput.
pub(super) const BUCKET: Duration = Duration::from_millis(10);

/// One answered command: eight bytes, so that a long run fits into memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    /// Microseconds from the run's start to the answer.
    done_us: u32,
    /// Microseconds from the intended send to the answer.
    latency_us: u32,
}

/// Which commands belong to a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Belonging {
    /// Those that were answered in it.
    Answered,
    /// Those that were answered in it or later, and were meant to leave before its end.
    InFlight,
    /// Those that were meant to leave in it.
    Sent,
}

impl Sample {
    fn belongs(self, belonging: Belonging, time: &Range<Duration>) -> bool {
        let (from, to) = (time.start.as_micros() as u64, time.end.as_micros() as u64);
        let done = u64::from(self.done_us);
        let intended = done.saturating_sub(u64::from(self.latency_us));
        match belonging {
            Belonging::Answered => (from..to).contains(&done),
            Belonging::InFlight => done >= from && intended < to,
            Belonging::Sent => intended >= from,
        }
    }

    /// An answer at `done` to a command that was meant to leave at `intended`, both from the run's start. Times above an hour
    /// count as one.
    pub(super) fn new(intended: Duration, done: Duration) -> Self {
        let micros = |time: Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        Self { done_us: micros(done), latency_us: micros(done.saturating_sub(intended)) }
    }
}

/// Latency of one phase in milliseconds, and its throughput. A command belongs to the first phase in which it was in flight
/// that is not "before": one that was held up by a move counts there, however late its answer was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Phase {
    /// Answered commands that belong to it.
    pub(super) completed: u64,
    /// Its length.
    pub(super) seconds: f64,
    /// Answers within its time.
    pub(super) ops_per_s: f64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    #[serde(rename = "p99.9_ms")]
    pub(super) p99_9_ms: f64,
    pub(super) max_ms: f64,
    /// The emptiest whole bucket of 10 ms, in per cent of the mean before the move; none if the phase is shorter.
    pub(super) lowest_bucket_percent: Option<f64>,
    /// The longest time without any answer of which a part lies in it.
    pub(super) pause_ms: f64,
    /// How late the machine was at most to run a thread that only sleeps; see [`super::lateness`].
    pub(super) late_ms: f64,
}

/// All samples of a run.
#[derive(Debug)]
pub(super) struct Timeline {
    /// By time of the answer.
    samples: Vec<Sample>,
}

impl Timeline {
    /// Puts the samples of all workers in order.
    pub(super) fn new(mut samples: Vec<Sample>) -> Self {
        samples.sort_unstable_by_key(|sample| sample.done_us);
        Self { samples }
    }

    fn between(&self, from: Duration, to: Duration) -> &[Sample] {
        let place = |time: Duration| {
            self.samples.partition_point(|sample| u128::from(sample.done_us) < time.as_micros())
        };
        &self.samples[place(from)..place(to).max(place(from))]
    }

    /// Answers from `from` to `to`, in each bucket.
    pub(super) fn buckets(&self, from: Duration, to: Duration) -> Vec<u64> {
        let width = BUCKET.as_micros() as u64;
        let length = to.saturating_sub(from).as_micros() as u64;
        let mut buckets = vec![0; (length / width) as usize];
        for sample in self.between(from, to) {
            let at = u64::from(sample.done_us) - from.as_micros() as u64;
            // What is behind the last whole bucket belongs to none.
            if let Some(bucket) = buckets.get_mut((at / width) as usize) {
                *bucket += 1;
            }
        }
        buckets
    }

    /// The figures of a phase; `mean_per_bucket` is what its emptiest bucket is measured by.
    pub(super) fn phase(&self, time: Range<Duration>, belonging: Belonging, mean_per_bucket: f64) -> Phase {
        let seconds = time.end.saturating_sub(time.start).as_secs_f64();
        let of_phase = self.samples.iter().filter(|sample| sample.belongs(belonging, &time));
        let mut latencies: Vec<u32> = of_phase.map(|sample| sample.latency_us).collect();
        latencies.sort_unstable();
        let answered = self.between(time.start, time.end).len();
        let lowest = self.buckets(time.start, time.end).into_iter().min();
        Phase {
            completed: latencies.len() as u64,
            seconds: round(seconds),
            ops_per_s: if seconds > 0.0 { (answered as f64 / seconds).round() } else { 0.0 },
            p50_ms: quantile_ms(&latencies, 0.5),
            p99_ms: quantile_ms(&latencies, 0.99),
            p99_9_ms: quantile_ms(&latencies, 0.999),
            max_ms: latencies.last().map_or(0.0, |us| f64::from(*us) / 1000.0),
            lowest_bucket_percent: lowest
                .filter(|_| mean_per_bucket > 0.0)
                .map(|lowest| (lowest as f64 / mean_per_bucket * 1000.0).round() / 10.0),
            pause_ms: self.pause_ms(&time),
            late_ms: 0.0,
        }
    }

    /// The longest time without an answer that has a part in `time`; the run's ends count as answers.
    fn pause_ms(&self, time: &Range<Duration>) -> f64 {
        let (from, to) = (time.start.as_micros() as u64, time.end.as_micros() as u64);
        let first = self.samples.partition_point(|sample| u64::from(sample.done_us) < from);
        let before = first.checked_sub(1).map_or(0, |place| u64::from(self.samples[place].done_us));
        let (mut last, mut longest) = (before, 0);
        for at in self.samples[first..].iter().map(|sample| u64::from(sample.done_us)) {
            longest = longest.max(at - last);
            last = at;
            if at >= to {
                break;
            }
        }
        longest.max(to.saturating_sub(last)) as f64 / 1000.0
    }

    /// Answers in a bucket on average.
    pub(super) fn mean_per_bucket(&self, time: Range<Duration>) -> f64 {
        let buckets = self.buckets(time.start, time.end);
        buckets.iter().sum::<u64>() as f64 / buckets.len().max(1) as f64
    }
}

/// The value below which a share of the sorted latencies lies; 0 without any.
fn quantile_ms(sorted_us: &[u32], quantile: f64) -> f64 {
    let rank = (quantile * sorted_us.len() as f64).ceil() as usize;
    sorted_us.get(rank.saturating_sub(1)).map_or(0.0, |us| f64::from(*us) / 1000.0)
}

/// To a millisecond.
fn round(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// An answer each millisecond from 1 to `to` but for a gap, each after 2 ms.
    fn timeline(to: u64, gap: Range<u64>) -> Timeline {
        let at = (1..=to).filter(|at| !gap.contains(at));
        Timeline::new(at.map(|at| Sample::new(ms(at.saturating_sub(2)), ms(at))).rev().collect())
    }

    #[test]
    fn buckets_and_pauses_show_a_gap() {
        let timeline = timeline(1000, 503..528);
        let mean = timeline.mean_per_bucket(ms(0)..ms(500));
        assert!((mean - 9.98).abs() < 1e-9, "{mean}");
        let during = timeline.phase(ms(500)..ms(600), Belonging::Answered, mean);
        assert_eq!((during.completed, during.lowest_bucket_percent), (75, Some(0.0)));
        assert!((during.pause_ms - 26.0).abs() < 1e-9, "{during:?}");
        let after = timeline.phase(ms(600)..ms(1000), Belonging::Sent, mean);
        assert!((after.pause_ms - 1.0).abs() < 1e-9 && after.lowest_bucket_percent > Some(99.0), "{after:?}");
    }

    #[test]
    fn a_pause_counts_whole_wherever_it_begins_and_ends() {
        let timeline = timeline(100, 20..60);
        for time in [ms(0)..ms(30), ms(30)..ms(40), ms(50)..ms(100)] {
            assert!((timeline.phase(time, Belonging::Answered, 1.0).pause_ms - 41.0).abs() < 1e-9);
        }
        let silent = Timeline::new(Vec::new());
        assert!((silent.phase(ms(0)..ms(50), Belonging::Answered, 1.0).pause_ms - 50.0).abs() < 1e-9);
        assert_eq!(silent.phase(ms(0)..ms(5), Belonging::Answered, 1.0).lowest_bucket_percent, None);
    }

    #[test]
    fn a_command_that_is_held_up_belongs_to_the_move_that_held_it_up() {
        let timeline = Timeline::new(vec![
            Sample::new(ms(1), ms(2)),
            Sample::new(ms(9), ms(500)),
            Sample::new(ms(15), ms(400)),
            Sample::new(ms(30), ms(31)),
        ]);
        let max_ms = |time, belonging| {
            let phase = timeline.phase(time, belonging, 1.0);
            (phase.completed, phase.max_ms)
        };
        assert_eq!(max_ms(ms(0)..ms(10), Belonging::Answered), (1, 1.0));
        assert_eq!(max_ms(ms(10)..ms(20), Belonging::InFlight), (2, 491.0));
        assert_eq!(max_ms(ms(20)..ms(600), Belonging::Sent), (1, 1.0));
    }

    #[test]
    fn quantiles_are_exact() {
        let samples = (1..=1000_u64).map(|us| Sample::new(ms(0), Duration::from_micros(us))).collect();
        let phase = Timeline::new(samples).phase(ms(0)..ms(10), Belonging::Answered, 1.0);
        assert_eq!((phase.p50_ms, phase.p99_ms, phase.p99_9_ms, phase.max_ms), (0.5, 0.99, 0.999, 1.0));
        assert!(quantile_ms(&[], 0.5).abs() < f64::EPSILON);
    }

    #[test]
    fn latency_counts_from_the_intended_time() {
        let sample = Sample::new(ms(3), ms(10));
        assert_eq!(sample, Sample { done_us: 10_000, latency_us: 7000 });
        assert_eq!(Sample::new(ms(12), ms(10)).latency_us, 0);
    }
}

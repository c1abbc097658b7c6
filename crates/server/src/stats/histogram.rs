//! How long commands took.
//!
//! Owns: a histogram with a relative error of 1/32 from nanoseconds to a second. Does **not** own measuring.

use super::Counter;

/// Buckets per power of two, as a power of two.
const SUB_BITS: u32 = 5;
const SUB_COUNT: usize = 1 << SUB_BITS;
/// Times from 2^30 ns (1.07 s) on are counted in the last bucket: whoever waits that long reads the slow log.
const NANOS_BITS: u32 = 30;
const BUCKETS: usize = (NANOS_BITS - SUB_BITS + 1) as usize * SUB_COUNT;

fn bucket(nanos: u64) -> usize {
    let nanos = nanos.min((1 << NANOS_BITS) - 1);
    if nanos < SUB_COUNT as u64 {
        return nanos as usize;
    }
    let shift = 63 - nanos.leading_zeros() - SUB_BITS;
    (shift as usize + 1) * SUB_COUNT + (nanos >> shift) as usize % SUB_COUNT
}

/// The longest time that a bucket counts, in nanoseconds.
fn upper_nanos(bucket: usize) -> u64 {
    if bucket < SUB_COUNT {
        return bucket as u64;
    }
    let shift = bucket / SUB_COUNT - 1;
    let lower = ((SUB_COUNT + bucket % SUB_COUNT) as u64) << shift;
    lower + (1 << shift) - 1
}

/// Counts of one thread.
#[derive(Debug)]
pub(crate) struct Histogram {
    buckets: [Counter; BUCKETS],
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: std::array::from_fn(|_| Counter::default()) }
    }
}

impl Histogram {
    /// Counts one call that took `nanos`. Only the owning thread may do so.
    #[inline]
    pub(crate) fn record(&self, nanos: u64) {
        self.buckets[bucket(nanos)].add(1);
    }

    pub(super) fn clear(&self) {
        self.buckets.iter().for_each(Counter::clear);
    }
}

/// Histograms added up.
#[derive(Debug, Clone)]
pub(crate) struct HistogramSum {
    buckets: Vec<u64>,
}

impl Default for HistogramSum {
    fn default() -> Self {
        Self { buckets: vec![0; BUCKETS] }
    }
}

impl HistogramSum {
    /// Adds one thread's counts.
    pub(crate) fn add(&mut self, histogram: &Histogram) {
        for (sum, counter) in self.buckets.iter_mut().zip(&histogram.buckets) {
            *sum += counter.get();
        }
    }

    /// Calls that were counted.
    pub(crate) fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The time within which `percent` of the calls were done, in nanoseconds.
    pub(crate) fn percentile_nanos(&self, percent: f64) -> u64 {
        let wanted = ((percent / 100.0 * self.count() as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let mut with_counts = self.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        let found = with_counts.find(|(_, count)| {
            seen += **count;
            seen >= wanted
        });
        found.map_or(0, |(bucket, _)| upper_nanos(bucket))
    }

    /// `(microseconds, calls that took no longer)` at each power of two of 1024 ns where the number of calls grows. The
    /// microseconds are rounded up as Redis's histograms, with a resolution of 1/128, round them.
    pub(crate) fn cumulative_micros(&self) -> Vec<(u64, u64)> {
        let total = self.count();
        let (mut steps, mut seen, mut from) = (Vec::new(), 0, 0);
        for bits in 10..=NANOS_BITS {
            let to = if bits == NANOS_BITS { BUCKETS } else { bucket(1 << bits) };
            let before = seen;
            seen += self.buckets[from..to].iter().sum::<u64>();
            from = to;
            if seen > before {
                steps.push((((1u64 << bits) + (1 << (bits - 7)) - 1) / 1000, seen));
            }
            if seen == total {
                break;
            }
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_cover_every_time_in_order_and_narrowly() {
        let mut last = 0;
        for nanos in
            (0..5000).chain((13..30).flat_map(|bits| [(1u64 << bits) - 1, 1 << bits, (1 << bits) + 7]))
        {
            let found = bucket(nanos);
            assert!(found >= last, "{nanos}");
            last = found;
            let upper = upper_nanos(found);
            assert!(upper >= nanos && upper - nanos <= nanos / 32, "{nanos} counted up to {upper}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_and_steps() {
        let (histogram, mut sum) = (Histogram::default(), HistogramSum::default());
        for micros in 1..=100 {
            histogram.record(micros * 1000);
        }
        sum.add(&histogram);
        let p50 = sum.percentile_nanos(50.0);
        assert!((50_000..52_000).contains(&p50), "{p50}");
        assert!(sum.percentile_nanos(0.0) >= 1000 && sum.percentile_nanos(100.0) >= 100_000);
        assert_eq!(
            sum.cumulative_micros(),
            [(1, 1), (2, 2), (4, 4), (8, 8), (16, 16), (33, 32), (66, 65), (132, 100)]
        );
    }
}

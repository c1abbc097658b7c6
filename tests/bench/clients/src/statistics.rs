//! Quantiles and the keys that workloads draw. No clock, no I/O.

use std::time::Duration;

/// Keys in the server: few enough that its own cache misses do not drown the client's cost.
pub(crate) const KEYS: usize = 10_000;
/// Bytes in each small value.
pub(crate) const VALUE_BYTES: usize = 100;

/// The keys, made once so that no workload formats one.
pub(crate) fn keys() -> Vec<String> {
    (0..KEYS).map(|number| format!("key:{number:012}")).collect()
}

/// A small value: printable, so that clients that prefer text take it as text.
pub(crate) fn value() -> String {
    "v".repeat(VALUE_BYTES)
}

/// An index below `KEYS` from a small generator of its own (xorshift): a few cycles, the same sequence in each run.
#[derive(Clone, Debug)]
pub(crate) struct Draw(u64);

impl Draw {
    /// A sequence for the task with this number.
    pub(crate) fn new(task: usize) -> Self {
        Self((task as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// The next index.
    pub(crate) fn index(&mut self) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % KEYS as u64) as usize
    }
}

/// A latency in units of 16 ns, which fit 32 bits up to 68 s: half the memory, half the cache lines.
pub(crate) fn tick(latency: Duration) -> u32 {
    u32::try_from(latency.as_nanos() / 16).unwrap_or(u32::MAX)
}

/// The quantile of sorted ticks, in microseconds; 0 when there are none.
pub(crate) fn quantile_us(sorted: &[u32], quantile: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let at = (last as f64 * quantile).round() as usize;
    f64::from(sorted[at]) * 0.016
}

/// The median, or the lower of the two middle figures; 0 of nothing.
pub(crate) fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::{Draw, KEYS, median, quantile_us, tick};
    use std::time::Duration;

    #[test]
    fn quantiles_and_medians_of_small_sets() {
        assert_eq!(quantile_us(&[], 0.99), 0.0);
        let ticks: Vec<u32> = (1..=100).map(|us| tick(Duration::from_micros(us))).collect();
        assert!((quantile_us(&ticks, 0.99) - 99.0).abs() < 0.1);
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[]), 0.0);
    }

    #[test]
    fn draws_stay_below_the_number_of_keys() {
        let mut draw = Draw::new(7);
        assert!((0..1000).all(|_| draw.index() < KEYS));
    }
}

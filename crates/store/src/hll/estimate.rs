//! The cardinality estimator: "New cardinality estimation algorithms for HyperLogLog sketches", Otmar Ertl,
//! arXiv:1702.01284. The order of the floating point operations is Redis's, so that estimates agree to the last unit.

use super::{REGISTER_COUNT, RUN_BITS};

/// The bias correction for infinitely many registers, `1 / (2 ln 2)`.
const ALPHA_INFINITY: f64 = 0.721_347_520_444_481_7;

/// How many registers have each of the 64 values that six bits can hold.
#[derive(Debug)]
pub(super) struct Histogram([u32; 64]);

impl Default for Histogram {
    fn default() -> Self {
        Self([0; 64])
    }
}

impl Histogram {
    /// Counts `count` registers of `value`.
    pub(super) fn add(&mut self, value: u8, count: u32) {
        self.0[usize::from(value & 63)] += count;
    }
}

/// The estimated number of distinct elements.
pub(super) fn estimate(histogram: &Histogram) -> u64 {
    let counts = &histogram.0;
    let registers = REGISTER_COUNT as f64;
    let run_max = RUN_BITS as usize;
    let mut sum = registers * tau((registers - f64::from(counts[run_max + 1])) / registers);
    for count in counts[1..=run_max].iter().rev() {
        sum += f64::from(*count);
        sum *= 0.5;
    }
    sum += registers * sigma(f64::from(counts[0]) / registers);
    // `as` saturates: damaged registers may make the quotient huge.
    (ALPHA_INFINITY * registers * registers / sum).round() as u64
}

/// Contribution of registers that are zero. Infinite when all are, which makes the estimate zero.
fn sigma(mut share: f64) -> f64 {
    if share == 1.0 {
        return f64::INFINITY;
    }
    let (mut weight, mut sum) = (1.0, share);
    loop {
        share *= share;
        let before = sum;
        sum += share * weight;
        weight += weight;
        if sum == before {
            return sum;
        }
    }
}

/// Contribution of registers at the maximum.
fn tau(mut share: f64) -> f64 {
    if share == 0.0 || share == 1.0 {
        return 0.0;
    }
    let (mut weight, mut sum) = (1.0, 1.0 - share);
    loop {
        share = share.sqrt();
        let before = sum;
        weight *= 0.5;
        sum -= (1.0 - share).powi(2) * weight;
        if sum == before {
            return sum / 3.0;
        }
    }
}

//! Numbers per second.
//!
//! Owns: the last samples of counters. Does **not** own the counters nor the clock.

/// Milliseconds between samples.
pub(super) const SAMPLE_MS: u64 = 100;
/// Samples that a rate is averaged over, as in Redis: 1.6 s follow a change quickly without jumping.
const SAMPLES: usize = 16;
const NUMBERS: usize = 3;

/// Rates of three counters.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    last_ms: Option<u64>,
    last: [u64; NUMBERS],
    /// Per second.
    samples: [[u64; NUMBERS]; SAMPLES],
    next: usize,
}

impl Rates {
    /// Whether it is time for a sample.
    pub(crate) fn is_due(&self, now_ms: u64) -> bool {
        self.last_ms.is_none_or(|last| now_ms >= last + SAMPLE_MS)
    }

    /// Takes a sample of the counters; one that was reset in between counts from zero.
    pub(crate) fn sample(&mut self, now_ms: u64, numbers: [u64; NUMBERS]) {
        if let Some(last_ms) = self.last_ms {
            let elapsed_ms = now_ms.saturating_sub(last_ms).max(1);
            let sample = &mut self.samples[self.next];
            for ((rate, number), last) in sample.iter_mut().zip(numbers).zip(self.last) {
                *rate = number.checked_sub(last).unwrap_or(number).saturating_mul(1000) / elapsed_ms;
            }
            self.next = (self.next + 1) % SAMPLES;
        }
        (self.last_ms, self.last) = (Some(now_ms), numbers);
    }

    /// The averages of the last samples.
    pub(crate) fn per_second(&self) -> [u64; NUMBERS] {
        std::array::from_fn(|i| self.samples.iter().map(|sample| sample[i]).sum::<u64>() / SAMPLES as u64)
    }
}

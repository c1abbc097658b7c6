//! Draws from a seed, in the forms that histories need.

use std::time::Duration;

use towline_sansio::Prng;

/// One stream of draws. Each part of a history has its own, so that a change of one does not shift the others.
#[derive(Debug)]
pub(crate) struct Draw(Prng);

impl Draw {
    /// The stream number `stream` of `seed`.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut mix = Prng::new(seed ^ stream.wrapping_mul(0xa076_1d64_78bd_642f));
        Self(Prng::new(mix.next_u64()))
    }

    /// 64 bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// From `low` to `high`, both included.
    pub(crate) fn range(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.below(high.saturating_sub(low).saturating_add(1))
    }

    /// The same of sizes.
    pub(crate) fn size(&mut self, low: usize, high: usize) -> usize {
        usize::try_from(self.range(low as u64, high as u64)).unwrap_or(high)
    }

    /// True in `percent` of a hundred cases.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.0.below(100) < percent
    }

    /// One of `choices`, which are not empty.
    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.size(0, choices.len() - 1)]
    }

    /// Microseconds from `low` to `high`.
    pub(crate) fn micros(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_micros(self.range(low, high))
    }

    /// Milliseconds from `low` to `high`, with a fraction.
    pub(crate) fn millis(&mut self, low: u64, high: u64) -> Duration {
        self.micros(low * 1000, high * 1000)
    }
}

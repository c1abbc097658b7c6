//! Time as protocols see it.
//!
//! Owns the type and its arithmetic, which never overflows. Does not own a clock: a driver reads one and passes the
//! result in, a test makes it up.

use std::ops::Add;
use std::time::Duration;

/// A point in time: nanoseconds since the driver's start, monotonic. 2^64 ns are 584 years.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The driver's start.
    pub const ZERO: Self = Self(0);
    /// Later than everything else; what `Duration::MAX` from anywhere saturates to.
    pub const FAR: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the start.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero if it is not.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    /// Saturates at [`Instant::FAR`]: a deadline of `Duration::MAX` is no deadline.
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        let second = Duration::from_secs(1);
        assert_eq!(Instant::ZERO + Duration::MAX, Instant::FAR);
        assert_eq!(Instant::FAR + second, Instant::FAR);
        assert_eq!(Instant::ZERO.since(Instant::from_nanos(5)), Duration::ZERO);
        assert_eq!((Instant::from_nanos(5) + second).since(Instant::from_nanos(5)), second);
    }
}

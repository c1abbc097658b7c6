//! How long to wait before the next dial of one target.
//!
//! Owns: the failure level of one target and the draw of each delay. Does **not** own a timer (the caller sleeps until
//! the returned instant), the number of dials in flight ([`crate::DialLimiter`]), or anybody's retry budget: a wait
//! that this module asks for is not an attempt.
//!
//! The delay is drawn once per attempt, uniformly between zero and a ceiling that grows with each failure ("full
//! jitter"). A constant part, or a draw that is repeated until it suits, keeps a fleet in step; a single full draw
//! does not. Source: Brooker, "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015).
//!
//! ```text
//!            connected, lived >= stable_after per halving
//!          +----------------------------------------------+
//!          v                                              |
//!   level 0 --failed, or lived < stable_after--> level n --failed--> level n + 1 ... level_max (ceiling = cap)
//!   lost: at once (private) or in [0, first_jitter] (shared)    lost or failed: in [0, base * multiplier^(n-1)]
//! ```

use std::time::Duration;
use towline_sansio::{Instant, Prng};

/// Whether other clients lost their connection for the same reason at the same moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LossCause {
    /// Only this connection is known to be affected (reset, idle kill, a local decision): the first redial goes at
    /// once, since waiting helps nobody.
    Private,
    /// The server closed it on everybody's behalf (restart, shutdown, `MOVING`, failover): the first redial is
    /// spread over [`BackoffConfig::first_jitter`]. When in doubt this is the right choice.
    Shared,
}

/// The numbers of a [`Backoff`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BackoffConfig {
    /// The ceiling of the delay after the first failure. More than zero.
    pub base: Duration,
    /// The ceiling of any delay. At least `base`.
    pub cap: Duration,
    /// By how much each failure raises the ceiling. From [`BackoffConfig::MULTIPLIER_MIN`] to
    /// [`BackoffConfig::MULTIPLIER_MAX`]; for a constant ceiling set `cap` to `base`.
    pub multiplier: f64,
    /// The first redial after a [`LossCause::Shared`] is drawn from zero to this. At most `cap`; zero turns it off.
    pub first_jitter: Duration,
    /// A connection that lived shorter counts as one more failure; each time it lived this long halves the level.
    /// More than zero.
    pub stable_after: Duration,
}

impl BackoffConfig {
    /// A slower growth would not relieve a target that is down.
    pub const MULTIPLIER_MIN: f64 = 1.1;
    /// A faster growth jumps from the first failure to the cap, and is more likely a slip of the pen.
    pub const MULTIPLIER_MAX: f64 = 16.0;

    /// The defaults of clients.
    ///
    /// * `cap` 1 s, so that a fleet is back soon after its server: at the cap, the time to a client's next dial is
    ///   below `x * cap` with probability `1 - (1 - x)^2`, hence 95 % of the clients dial within 0.78 caps. With 1 s
    ///   this leaves 0.22 s of the first second for the limiter and the handshakes; with 2 s only seven of ten
    ///   are back after a second (the fleet test prints the figures). The price is two refused dials a second for each
    ///   client while the target is down.
    /// * `base` 50 ms and `multiplier` 2: the cap is reached after 6 failures, about 0.8 s.
    /// * `first_jitter` 20 ms: not felt by a person, and 500 clients are spread to 25 per millisecond.
    /// * `stable_after` 1 s, as the cap: a server that accepts and closes is not dialled faster than one that is down.
    pub const CLIENT: Self = Self {
        base: Duration::from_millis(50),
        cap: Duration::from_secs(1),
        multiplier: 2.0,
        first_jitter: Duration::from_millis(20),
        stable_after: Duration::from_secs(1),
    };

    /// Checks the numbers.
    ///
    /// # Errors
    /// The first rule that is broken; always the configuration's author's fault, never retryable.
    pub fn validate(&self) -> Result<(), BackoffError> {
        if self.base.is_zero() {
            return Err(BackoffError::BaseZero);
        }
        if self.cap < self.base {
            return Err(BackoffError::CapBelowBase { base: self.base, cap: self.cap });
        }
        // Written so that NaN, which compares with nothing, is outside.
        if !(Self::MULTIPLIER_MIN..=Self::MULTIPLIER_MAX).contains(&self.multiplier) {
            return Err(BackoffError::MultiplierOutOfRange { multiplier: self.multiplier });
        }
        if self.first_jitter > self.cap {
            return Err(BackoffError::FirstJitterAboveCap { first_jitter: self.first_jitter, cap: self.cap });
        }
        if self.stable_after.is_zero() {
            return Err(BackoffError::StableAfterZero);
        }
        Ok(())
    }

    /// The highest delay after `failures` failures in a row. Zero failures give zero; any number is allowed.
    pub fn ceiling(&self, failures: u32) -> Duration {
        if failures == 0 {
            return Duration::ZERO;
        }
        // Repeated multiplication instead of `powi`, whose last digit differs between platforms: a seed must give the
        // same history everywhere. It ends at the cap, after at most 466 steps (2^64 ns at the smallest multiplier).
        let cap = nanos_f64(self.cap);
        let mut ceiling = nanos_f64(self.base);
        for _ in 1..failures {
            if ceiling >= cap {
                break;
            }
            ceiling *= self.multiplier;
        }
        if ceiling >= cap { self.cap } else { Duration::from_nanos(ceiling as u64) }
    }

    /// The smallest number of failures whose ceiling is the cap. The level stays there, so that an outage of a day
    /// decays as fast as one of a minute.
    fn level_max(&self) -> u32 {
        let cap = nanos_f64(self.cap);
        let mut ceiling = nanos_f64(self.base);
        let mut level = 1;
        while ceiling < cap {
            ceiling *= self.multiplier;
            level += 1;
        }
        level
    }
}

impl Default for BackoffConfig {
    fn default() -> Self {
        Self::CLIENT
    }
}

/// Why a [`BackoffConfig`] was refused.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BackoffError {
    /// Without a base every delay is zero: the dials would spin.
    #[error("backoff base is zero; it must be positive")]
    BaseZero,
    /// The cap would be reached before the first failure.
    #[error("backoff cap {cap:?} is below its base {base:?}")]
    CapBelowBase {
        /// As configured.
        base: Duration,
        /// As configured.
        cap: Duration,
    },
    /// Not a number, negative, or a growth that no backoff has.
    #[error("backoff multiplier {multiplier} is not between 1.1 and 16")]
    MultiplierOutOfRange {
        /// As configured.
        multiplier: f64,
    },
    /// The first redial would be slower than the last.
    #[error("first jitter {first_jitter:?} is above the backoff cap {cap:?}")]
    FirstJitterAboveCap {
        /// As configured.
        first_jitter: Duration,
        /// As configured.
        cap: Duration,
    },
    /// Any connection would count as stable, also one that is closed at once.
    #[error("stable_after is zero; it must be positive")]
    StableAfterZero,
}

/// The backoff of one target, for one owner. No allocation.
///
/// ```
/// use std::time::Duration;
/// use towline_admission::{Backoff, BackoffConfig, LossCause};
/// use towline_sansio::{Instant, Prng};
///
/// let mut prng = Prng::new(1);
/// let mut backoff = Backoff::new(BackoffConfig::CLIENT)?;
/// let now = Instant::ZERO;
/// backoff.connected(now);
/// let lost_at = now + Duration::from_secs(60);
/// assert_eq!(backoff.lost(lost_at, LossCause::Private, &mut prng), lost_at); // The first redial goes at once.
/// let next = backoff.failed(lost_at, &mut prng);
/// assert!(next <= lost_at + Duration::from_millis(50)); // It failed: one draw from [0, base].
/// # Ok::<(), towline_admission::BackoffError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Backoff {
    config: BackoffConfig,
    level_max: u32,
    level: u32,
    connected_at: Option<Instant>,
}

impl Backoff {
    /// A backoff that has seen nothing yet: the first dial needs no delay, see [`Backoff::first`].
    ///
    /// # Errors
    /// As [`BackoffConfig::validate`].
    pub fn new(config: BackoffConfig) -> Result<Self, BackoffError> {
        config.validate()?;
        Ok(Self { config, level_max: config.level_max(), level: 0, connected_at: None })
    }

    /// When to dial for the first time: drawn from `[now, now + first_jitter]`, because processes are started together.
    pub fn first(&self, now: Instant, prng: &mut Prng) -> Instant {
        now + draw(self.config.first_jitter, prng)
    }

    /// The dial succeeded *and* the handshake was answered. A socket that merely opened is not a success.
    pub fn connected(&mut self, now: Instant) {
        self.connected_at = Some(now);
    }

    /// The dial or its handshake failed. When to dial again.
    ///
    /// A target that answers *busy, come back at t* did not fail: wait until `t` and do not call this.
    pub fn failed(&mut self, now: Instant, prng: &mut Prng) -> Instant {
        self.connected_at = None;
        self.level = self.level.saturating_add(1).min(self.level_max);
        now + draw(self.config.ceiling(self.level), prng)
    }

    /// The connection is gone. When to dial again.
    ///
    /// Without a [`Backoff::connected`] before it this is a [`Backoff::failed`].
    pub fn lost(&mut self, now: Instant, cause: LossCause, prng: &mut Prng) -> Instant {
        let Some(connected_at) = self.connected_at.take() else {
            return self.failed(now, prng);
        };
        let lived = now.since(connected_at);
        if lived < self.config.stable_after {
            return self.failed(now, prng);
        }
        let halvings = lived.as_nanos() / self.config.stable_after.as_nanos();
        self.level = self.level.checked_shr(u32::try_from(halvings).unwrap_or(u32::MAX)).unwrap_or(0);
        let ceiling = match (self.level, cause) {
            (0, LossCause::Shared) => self.config.first_jitter,
            // At level 0 this is zero: at once.
            (level, _) => self.config.ceiling(level),
        };
        now + draw(ceiling, prng)
    }

    /// Failures that still count, 0 to the number at which the ceiling is the cap. For snapshots.
    pub fn level(&self) -> u32 {
        self.level
    }

    /// The numbers it was made with.
    pub fn config(&self) -> &BackoffConfig {
        &self.config
    }
}

/// Uniform in `[0, ceiling]`; exactly one number is taken from the generator, so that histories repeat.
fn draw(ceiling: Duration, prng: &mut Prng) -> Duration {
    let nanos = u64::try_from(ceiling.as_nanos()).unwrap_or(u64::MAX);
    Duration::from_nanos(prng.below(nanos.saturating_add(1)))
}

fn nanos_f64(duration: Duration) -> f64 {
    duration.as_nanos() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);
    const CLIENT: BackoffConfig = BackoffConfig::CLIENT;

    fn client() -> Backoff {
        Backoff::new(CLIENT).unwrap()
    }

    #[test]
    fn configurations_that_would_spin_or_never_wait_are_refused() {
        let refusal = |config: BackoffConfig| Backoff::new(config).err();
        assert_eq!(refusal(CLIENT), None);
        assert_eq!(refusal(BackoffConfig { base: Duration::ZERO, ..CLIENT }), Some(BackoffError::BaseZero));
        let config = BackoffConfig { cap: 49 * MS, first_jitter: MS, ..CLIENT };
        let error = BackoffError::CapBelowBase { base: 50 * MS, cap: 49 * MS };
        assert_eq!(refusal(config), Some(error));
        for multiplier in [f64::NAN, -2.0, 0.0, 1.0, f64::INFINITY, f64::NEG_INFINITY] {
            let error = refusal(BackoffConfig { multiplier, ..CLIENT });
            assert!(
                matches!(error, Some(BackoffError::MultiplierOutOfRange { .. })),
                "{multiplier}: {error:?}"
            );
        }
        let error = refusal(BackoffConfig { first_jitter: 2 * CLIENT.cap, ..CLIENT });
        assert!(matches!(error, Some(BackoffError::FirstJitterAboveCap { .. })));
        let error = refusal(BackoffConfig { stable_after: Duration::ZERO, ..CLIENT });
        assert_eq!(error, Some(BackoffError::StableAfterZero));
    }

    #[test]
    fn the_ceiling_doubles_to_the_cap_and_stays_for_any_number() {
        let ceilings: Vec<u128> = (0..8).map(|n| CLIENT.ceiling(n).as_millis()).collect();
        assert_eq!(ceilings, [0, 50, 100, 200, 400, 800, 1000, 1000]);
        assert_eq!(CLIENT.ceiling(u32::MAX), CLIENT.cap);
        let slowest = BackoffConfig {
            base: Duration::from_nanos(1),
            cap: Duration::MAX,
            multiplier: BackoffConfig::MULTIPLIER_MIN,
            ..CLIENT
        };
        assert_eq!(slowest.ceiling(u32::MAX), Duration::MAX);
    }

    #[test]
    fn first_redial_is_at_once_after_a_private_cause_and_spread_after_a_shared_one() {
        let mut prng = Prng::new(1);
        let (mut delays_sum, lost_at) = (Duration::ZERO, Instant::ZERO + 60_000 * MS);
        for _ in 0..1000 {
            let mut backoff = client();
            backoff.connected(Instant::ZERO);
            assert_eq!(backoff.clone().lost(lost_at, LossCause::Private, &mut prng), lost_at);
            let delay = backoff.lost(lost_at, LossCause::Shared, &mut prng).since(lost_at);
            assert!(delay <= CLIENT.first_jitter);
            delays_sum += delay;
        }
        let mean = delays_sum / 1000;
        assert!((9 * MS..=11 * MS).contains(&mean), "uniform over 20 ms has a mean of 10 ms, not {mean:?}");
    }

    #[test]
    fn a_connection_that_dies_young_does_not_reset_the_level() {
        let mut prng = Prng::new(1);
        let mut backoff = client();
        let mut now = Instant::ZERO;
        // Accept and close: each round connects and is cut after 1 ms.
        for round in 1..=20 {
            backoff.connected(now);
            now = backoff.lost(now + MS, LossCause::Private, &mut prng);
            assert_eq!(backoff.level(), round.min(6));
        }
    }

    #[test]
    fn the_level_halves_for_each_stable_period() {
        let mut prng = Prng::new(1);
        let mut at_cap = client();
        for _ in 0..1000 {
            at_cap.failed(Instant::ZERO, &mut prng);
        }
        assert_eq!(at_cap.level(), 6);
        for (lived, level) in
            [(999 * MS, 6), (1000 * MS, 3), (2000 * MS, 1), (3000 * MS, 0), (Duration::MAX, 0)]
        {
            let mut backoff = at_cap.clone();
            backoff.connected(Instant::ZERO);
            backoff.lost(Instant::ZERO + lived, LossCause::Private, &mut prng);
            assert_eq!(backoff.level(), level, "after {lived:?}");
        }
    }

    #[test]
    fn losing_what_never_connected_is_a_failure() {
        let mut prng = Prng::new(1);
        let mut backoff = client();
        backoff.connected(Instant::ZERO);
        backoff.failed(Instant::ZERO, &mut prng);
        backoff.lost(Instant::ZERO + 60_000 * MS, LossCause::Private, &mut prng);
        assert_eq!(backoff.level(), 2);
    }

    proptest! {
        #[test]
        fn every_attempt_takes_one_draw_and_stays_below_its_ceiling(seed: u64, steps in prop::collection::vec(0u8..3, 1..200)) {
            let mut prng = Prng::new(seed);
            let mut backoff = client();
            let mut now = Instant::ZERO;
            for step in steps {
                let mut expected = prng.clone();
                expected.next_u64();
                let next = match step {
                    0 => backoff.failed(now, &mut prng),
                    1 => backoff.first(now, &mut prng),
                    _ => {
                        backoff.connected(now);
                        backoff.lost(now + 100 * MS, LossCause::Shared, &mut prng)
                    }
                };
                prop_assert_eq!(&prng, &expected);
                prop_assert!(next >= now);
                prop_assert!(next <= now + 100 * MS + CLIENT.ceiling(backoff.level()).max(CLIENT.first_jitter));
                now = next;
            }
        }
    }
}

//! How the classes share the wire.
//!
//! Owns: a weight for each class, and a cap for those that have one. Does **not** own queues.

use std::num::NonZeroU64;
use std::time::Duration;

use towline_sansio::Instant;

use super::batch::Class;

/// The share of one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassConfig {
    /// While several classes have work, each sends in proportion to its weight. More than zero.
    pub weight: u32,
    /// Bytes per second at most; `None` is as fast as it goes.
    pub rate: Option<NonZeroU64>,
}

/// Debts are counted in bytes times this, so that weights up to it divide without loss that matters.
const SCALE: u64 = 1 << 16;

#[derive(Debug)]
struct Share {
    config: ClassConfig,
    /// Bytes sent by weight: whoever has least is next.
    sent: u64,
    /// When the cap allows the next byte.
    free_at: Instant,
}

/// The shares of all classes.
#[derive(Debug)]
pub(super) struct Shares {
    shares: [Share; 3],
    /// What the last class that was chosen had sent: a class that was idle begins there instead of at its old account.
    now_at: u64,
}

impl Shares {
    pub(super) fn new(configs: [ClassConfig; 3]) -> Self {
        let share = |config| Share { config, sent: 0, free_at: Instant::ZERO };
        Self { shares: configs.map(share), now_at: 0 }
    }

    /// Of the classes with work, the one whose turn it is, if its cap allows any.
    pub(super) fn choose(&self, now: Instant, has_work: [bool; 3]) -> Option<Class> {
        let allowed = Class::ALL
            .into_iter()
            .filter(|class| has_work[class.index()] && self.shares[class.index()].free_at <= now);
        // With equal accounts the more urgent class comes first.
        allowed.min_by_key(|class| self.shares[class.index()].sent)
    }

    /// A class has work again after it had none: it does not bring the time of its idleness with it.
    pub(super) fn awake(&mut self, class: Class) {
        let share = &mut self.shares[class.index()];
        share.sent = share.sent.max(self.now_at);
    }

    /// A class sends so many bytes. A cap may be overdrawn by one slice, which the next one waits for.
    pub(super) fn sends(&mut self, now: Instant, class: Class, bytes: u64) {
        let share = &mut self.shares[class.index()];
        self.now_at = share.sent;
        share.sent += bytes.saturating_mul(SCALE) / u64::from(share.config.weight);
        if let Some(rate) = share.config.rate {
            let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(rate.get());
            let took = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
            share.free_at = share.free_at.max(now) + took;
        }
    }

    /// When a cap lets a class with work go on.
    pub(super) fn next_timeout(&self, now: Instant, has_work: [bool; 3]) -> Option<Instant> {
        let held = Class::ALL.into_iter().filter(|class| has_work[class.index()]);
        held.map(|class| self.shares[class.index()].free_at).filter(|at| *at > now).min()
    }
}

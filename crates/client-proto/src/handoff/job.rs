//! The plan of one handoff.
//!
//! Owns when and where to dial, and whether what was reached will do. Does not own the phases.

use std::time::Duration;

use towline_sansio::{Instant, Prng};

use super::config::HandoffConfig;
use super::event::{Ended, Facts, Outcome, Source, Target, Times};
use crate::generation::Generation;
use crate::maintenance::{Address, Identity, Moving};

/// Tenths of the window after which no more dials begin; one more may go to a configured address, whatever it leads to.
const LAST_TRY_TENTHS: u32 = 9;

/// Dials of the named successor before the configured address gets its turns.
const NAMED_TRIES: u32 = 2;

#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) identity: Identity,
    pub(super) source: Source,
    pub(super) times: Times,
    pub(super) window_end: Instant,
    /// The end of the longest window that was announced for the connection: until then the server may be busy.
    pub(super) announced_end: Instant,
    /// The next dial.
    pub(super) dial_at: Instant,
    /// From now on what the configured address leads to is accepted, if nobody named another.
    last_try_at: Instant,
    /// From now on there will be no successor.
    pub(super) recycle_at: Instant,
    /// Where the dial that goes on, or the last one, went.
    pub(super) target: Target,
    pub(super) retargets: u32,
    pub(super) dials: u32,
    failures: u32,
    /// Dials that reached the node that is left.
    same_node: u32,
    /// Until then the configured address is known to lead to the node that is left.
    configured_after: Instant,
    /// What is known of the successor that was accepted.
    pub(super) candidate: Facts,
    /// Whether the successor is the node that is left, as far as anybody can tell: it was the last try.
    is_in_doubt: bool,
    pub(super) is_source_lost: bool,
    pub(super) to: Option<Generation>,
}

impl Job {
    pub(super) fn new(
        now: Instant,
        moving: &Moving,
        source: Source,
        config: &HandoffConfig,
        prng: &mut Prng,
    ) -> Self {
        let window =
            moving.window.unwrap_or(config.window_default).max(config.window_min).min(config.window_max);
        // Without a successor the configured address has to lead elsewhere first; every client gives it half the time.
        let wait = if moving.successor.is_some() { Duration::ZERO } else { window / 2 };
        let spread = if source.is_idle { draw(window / config.idle_spread, prng) } else { Duration::ZERO };
        let last_try_at = now + window * LAST_TRY_TENTHS / 10;
        let window_end = now + window;
        // The last try gets half of what is left.
        let last_try =
            if moving.successor.is_some() { Duration::ZERO } else { window_end.since(last_try_at) / 2 };
        Self {
            identity: Identity::of(moving, source.peer),
            source,
            times: Times {
                received_at: now,
                dialled_at: None,
                ready_at: None,
                cut_over_at: None,
                ended_at: None,
            },
            window_end,
            announced_end: window_end,
            dial_at: now + wait + spread,
            last_try_at,
            recycle_at: last_try_at + last_try,
            target: moving.successor.clone().map_or(Target::Configured, Target::Named),
            retargets: 0,
            dials: 0,
            failures: 0,
            same_node: 0,
            configured_after: now,
            candidate: Facts::default(),
            is_in_doubt: false,
            is_source_lost: false,
            to: None,
        }
    }

    /// The connection was to be closed already at the end of `old`'s window.
    pub(super) fn ends_with(&mut self, old: &Self) {
        self.window_end = self.window_end.min(old.window_end);
        self.announced_end = self.announced_end.max(old.announced_end);
        self.last_try_at = self.last_try_at.min(old.last_try_at);
        self.recycle_at = self.recycle_at.min(old.recycle_at);
        self.dial_at = self.dial_at.min(self.last_try_at);
    }

    pub(super) const fn successor(&self) -> Option<&Address> {
        self.identity.successor.as_ref()
    }

    /// A dial begins. Where it goes.
    pub(super) fn dial(&mut self, now: Instant) -> Target {
        self.target = self.next_target(now);
        self.times.dialled_at = Some(now);
        self.dials = self.dials.saturating_add(1);
        self.target.clone()
    }

    /// The named successor, and after some failures the configured address in turn with it.
    fn next_target(&self, now: Instant) -> Target {
        match self.successor() {
            None => Target::Configured,
            Some(address) => {
                let may_go_back = self.failures >= NAMED_TRIES && now >= self.configured_after;
                if may_go_back && self.target != Target::Configured {
                    Target::Configured
                } else {
                    Target::Named(address.clone())
                }
            }
        }
    }

    /// The dial failed. Plans the next one, or that there will be none.
    pub(super) fn failed(&mut self, now: Instant, config: &HandoffConfig, prng: &mut Prng) {
        self.failures = self.failures.saturating_add(1);
        let doublings = self.failures.saturating_sub(1).min(16);
        let ceiling = config.retry_min.saturating_mul(1 << doublings).min(config.retry_max);
        self.retry(now, half_drawn(ceiling, prng));
    }

    /// The dial reached the node that is left. Plans the next one.
    pub(super) fn same_node(&mut self, now: Instant, config: &HandoffConfig, prng: &mut Prng) {
        self.same_node = self.same_node.saturating_add(1);
        if self.successor().is_some() {
            // The turn of the named successor; the configured address has another one later.
            self.configured_after = now + config.same_node_retry;
            self.retry(now, half_drawn(config.retry_max, prng));
            return;
        }
        let wait = if self.same_node == 1 {
            config.same_node_retry
        } else {
            config.same_node_retry / 2 + draw(config.same_node_retry, prng)
        };
        self.retry(now, wait);
    }

    fn retry(&mut self, now: Instant, wait: Duration) {
        self.dial_at = now + wait;
        if self.successor().is_some() {
            return;
        }
        if now < self.last_try_at {
            self.dial_at = self.dial_at.min(self.last_try_at);
        } else {
            self.recycle_at = self.recycle_at.min(now);
        }
    }

    /// Whether a connection that is ready will do as the successor.
    pub(super) fn accepts(&mut self, now: Instant, facts: Facts) -> bool {
        let is_same = self.is_same_node(&facts);
        let is_last_try = self.successor().is_none() && now >= self.last_try_at;
        if is_same && !is_last_try {
            return false;
        }
        self.candidate = facts;
        self.is_in_doubt = is_same;
        self.times.ready_at = Some(now);
        true
    }

    /// Whether the connection leads to the node that is left, as far as anybody can tell.
    fn is_same_node(&self, facts: &Facts) -> bool {
        if self.target != Target::Configured {
            // The server said so, even if the address is the one that it has now.
            return false;
        }
        if self.successor().is_none() && !self.source.configured_is_name {
            // The only place there is.
            return false;
        }
        // Numbers of clients only grow while a server process lives.
        let grew = self.source.client_id.zip(facts.client_id).map(|(old, new)| new > old);
        match (self.source.peer, facts.peer) {
            (Some(old), Some(new)) => old == new && grew != Some(false),
            _ => facts.replayed && grew == Some(true),
        }
    }

    /// Whether the server may still close the connection that the bridge has after this outcome.
    pub(super) fn may_be_closed(&self, outcome: Outcome) -> bool {
        outcome != Outcome::Moved || self.is_in_doubt
    }

    pub(super) fn ended(&self, now: Instant, outcome: Outcome) -> Ended {
        Ended {
            outcome,
            seq: self.identity.seq,
            successor: self.identity.successor.clone(),
            from: self.source.generation,
            to: self.to,
            retargets: self.retargets,
            dials: self.dials,
            times: Times { ended_at: Some(now), ..self.times },
        }
    }
}

/// Uniform in `[0, ceiling]`.
fn draw(ceiling: Duration, prng: &mut Prng) -> Duration {
    let nanos = u64::try_from(ceiling.as_nanos()).unwrap_or(u64::MAX);
    Duration::from_nanos(prng.below(nanos.saturating_add(1)))
}

/// Uniform in `[ceiling / 2, ceiling]`: never at once, since a refusal comes within microseconds.
fn half_drawn(ceiling: Duration, prng: &mut Prng) -> Duration {
    ceiling / 2 + draw(ceiling / 2, prng)
}

//! A connection that does not move: what its server has said about its end.
//!
//! Owns the moment at which its owner should leave it, and that its callers hear of it. Does not own what they do then:
//! what such a connection holds (a blocked command, watched keys) is known to its owner alone.

use std::net::SocketAddr;
use std::time::Duration;

use towline_sansio::{Instant, Prng};

use super::{Bridge, Event, MaintenanceEvent, State};
use crate::handoff::{HandoffConfig, Target};
use crate::maintenance::{Address, Moving};

/// So long before the end everything should be over: time for the last word and for its answer.
const MARGIN: Duration = Duration::from_secs(1);

/// The end of a connection that does not move, as announced; see [`Bridge::leaving`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaving {
    /// When to leave it: a drawn moment, so that many connections do not leave at once. It lies in the window's first
    /// fifth if there is a successor already, in the fifth behind the window's half if the configured address has to
    /// lead somewhere else first, and never in the window's last second.
    pub leave_at: Instant,
    /// When the server closes it.
    pub until: Instant,
    /// Where the next connection should lead.
    pub target: Target,
}

impl Leaving {
    fn new(now: Instant, moving: &Moving, config: &HandoffConfig, prng: &mut Prng) -> Self {
        let window = moving.window.unwrap_or(config.window_default).min(HandoffConfig::TIME_MAX);
        let spread = window / config.idle_spread.max(1);
        let drawn = Duration::from_nanos(
            prng.below(u64::try_from(spread.as_nanos()).unwrap_or(u64::MAX).saturating_add(1)),
        );
        let (target, start) = match &moving.successor {
            Some(address) => (Target::Named(address.clone()), Duration::ZERO),
            None => (Target::Configured, window / 2),
        };
        let latest = window.saturating_sub(MARGIN);
        Self { leave_at: now + (start + drawn).min(latest), until: now + window, target }
    }
}

impl<W> Bridge<W> {
    /// The announced end of the present connection, if it does not move by itself ([`crate::Config::hands_off`]).
    pub fn leaving(&self) -> Option<&Leaving> {
        self.moves.leaving.as_deref()
    }

    /// Until when the present connection stands, if the server has said that it will end and it does not move by itself.
    pub fn moving_until(&self) -> Option<Instant> {
        self.leaving().map(|leaving| leaving.until)
    }

    /// Where the serving connection leads, if its owner could tell; `None` while there is none.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.serving().peer.filter(|_| self.serving().is_up())
    }

    /// The endpoint is none that commands go to any more: callers on this connection are told as if its server had announced its
    /// end after `window`, and look for the next one wherever the configured address is by then.
    pub fn leave(&mut self, now: Instant, window: Duration) {
        self.note_leaving(now, &Moving { seq: None, window: Some(window), successor: None });
    }

    /// Notes the announced end. Whoever waits for a reply is woken, to see it.
    pub(super) fn note_leaving(&mut self, now: Instant, moving: &Moving) {
        let is_here =
            |named: &Address, here: SocketAddr| named.ip() == Some(here.ip()) && named.port == here.port();
        if moving.successor.as_ref().zip(self.conn.peer).is_some_and(|(named, here)| is_here(named, here)) {
            // What is under way is said again to those who have come already.
            return;
        }
        let mut leaving = Leaving::new(now, moving, &self.config.handoff, &mut self.prng);
        if let Some(known) = &self.moves.leaving {
            // Said again, or moved to another time: no reason to stay longer.
            leaving.leave_at = leaving.leave_at.min(known.leave_at);
        }
        let event = MaintenanceEvent::Leaving { until: leaving.until };
        self.moves.leaving = Some(Box::new(leaving));
        self.report.event(Event::Maintenance(event));
        for slot in self.slots.values_mut() {
            if let State::Pending(pending) = &mut slot.state {
                self.wakes.extend(pending.waiter.take());
            }
        }
    }
}

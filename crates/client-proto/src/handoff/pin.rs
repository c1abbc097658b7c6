//! Where ordinary dials go during a window.
//!
//! Owns the choice between the named successor and the configured address. Does not own dials.

use std::net::SocketAddr;

use towline_sansio::Instant;

use super::event::Target;
use crate::maintenance::Identity;

#[derive(Debug, Clone)]
pub(super) struct Pin {
    /// The announcement that it follows from.
    pub(super) identity: Identity,
    pub(super) until: Instant,
    /// Whether a handoff for it has ended in a recycle.
    pub(super) is_recycled: bool,
    /// Whether the configured address is next, because the successor was the last to fail.
    is_configured_next: bool,
}

impl Pin {
    pub(super) const fn new(identity: Identity, until: Instant) -> Self {
        Self { identity, until, is_recycled: false, is_configured_next: false }
    }

    pub(super) fn is_active(&self, now: Instant) -> bool {
        now < self.until
    }

    pub(super) fn target(&self, now: Instant) -> Target {
        match &self.identity.successor {
            Some(address) if self.is_active(now) && !self.is_configured_next => {
                Target::Named(address.clone())
            }
            _ => Target::Configured,
        }
    }

    pub(super) fn failed(&mut self, target: &Target) {
        self.is_configured_next = matches!(target, Target::Named(_));
    }

    pub(super) fn worked(&mut self, target: &Target) {
        self.is_configured_next = *target == Target::Configured;
    }

    /// Whether a connection that an ordinary dial has just led to `peer` is where the announcement leads.
    pub(super) fn leads_to(&self, now: Instant, peer: Option<SocketAddr>) -> bool {
        match self.target(now) {
            Target::Named(_) => true,
            Target::Configured => self.identity.source.zip(peer).is_some_and(|(old, new)| old != new),
        }
    }
}

//! Connections to other servers that are kept for the next order.
//!
//! Owns: which are kept and for how long. Does **not** own what is said on them (see [`super::peer`]).

use super::peer::{Peer, Place};
use tokio::time::{Duration, Instant};

/// Connections that are kept at most: as many as Redis keeps.
pub(super) const IDLE_MAX: usize = 64;
/// How long one is kept: as long as Redis does, which is longer than any pause between the calls of a tool that moves slots.
pub(super) const IDLE_TIME: Duration = Duration::from_secs(10);

/// The connections, the one that was used last at the end.
#[derive(Debug, Default)]
pub(super) struct Pool(Vec<(Peer, Instant)>);

impl Pool {
    /// A connection to this place, if there is one.
    pub(super) fn take(&mut self, place: &Place) -> Option<Peer> {
        let at = self.0.iter().rposition(|(peer, _)| peer.place() == place)?;
        Some(self.0.remove(at).0)
    }

    /// Keeps a connection on which nothing is under way. The one that was used longest ago goes if there are too many.
    pub(super) fn put(&mut self, peer: Peer, now: Instant) {
        if self.0.len() == IDLE_MAX {
            self.0.remove(0);
        }
        self.0.push((peer, now));
    }

    /// Closes what was kept long enough.
    pub(super) fn expire(&mut self, now: Instant) {
        self.0.retain(|(_, since)| now.saturating_duration_since(*since) < IDLE_TIME);
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

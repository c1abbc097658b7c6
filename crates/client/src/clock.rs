//! The clock of this process, as the engines see it.
//!
//! Owns the one epoch. Engines share the limiter of dials and the breakers, so their times must be comparable.

use std::sync::OnceLock;
use std::time::{Duration, Instant as WallInstant};

use towline_sansio::Instant;

/// The farthest that a time is put off when the wall cannot express it: nobody waits that long.
const FAR: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

fn epoch() -> WallInstant {
    static EPOCH: OnceLock<WallInstant> = OnceLock::new();
    *EPOCH.get_or_init(WallInstant::now)
}

/// Now.
#[inline]
pub(crate) fn now() -> Instant {
    let epoch = epoch();
    let nanos = WallInstant::now().saturating_duration_since(epoch).as_nanos();
    Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// The standard library's instant for one of ours; years away for one that never comes.
pub(crate) fn wall(at: Instant) -> WallInstant {
    let epoch = epoch();
    epoch.checked_add(Duration::from_nanos(at.nanos())).unwrap_or(epoch + FAR)
}

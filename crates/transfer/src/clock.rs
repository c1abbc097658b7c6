//! The time of an engine.
//!
//! Owns the clock that the pure machines are driven by, and what an engine draws from the system: its randomness and the name
//! of its life.

use std::time::{Duration, Instant as Monotonic, SystemTime};

use towline_sansio::{Instant, Prng};
use towline_transfer_proto::Incarnation;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    start: Monotonic,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { start: Monotonic::now() }
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::from_nanos(nanos(self.start.elapsed()))
    }
}

/// Unix time in nanoseconds: a later life of a node has a larger one, as long as its clock is not set back.
pub(crate) fn incarnation() -> Incarnation {
    let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Incarnation(nanos(unix))
}

/// Randomness from the system.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        match rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(more) => filled += more,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("invariant: the system has randomness: {error}"),
        }
    }
    bytes
}

pub(crate) fn prng() -> Prng {
    Prng::new(u64::from_ne_bytes(random()))
}

/// 584 years and more are 584 years.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

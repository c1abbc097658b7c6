//! Words that every pure core needs and no core should define twice.
//!
//! Owns: the seeded generator and the [`Instant`] of protocols. Does **not** own a clock: time is always an argument,
//! in unix milliseconds for stored data, as an [`Instant`] for protocols.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod instant;
mod prng;

pub use instant::Instant;
pub use prng::Prng;

//! Words that every pure core needs and no core should define twice.
//!
//! Owns: the seeded generator. Does **not** own a clock: time is always an argument, in unix milliseconds for stored
//! data.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod prng;

pub use prng::Prng;

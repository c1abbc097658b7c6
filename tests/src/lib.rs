//! Real processes and real peers: what no crate can test alone.
//!
//! Owns: starting servers ([`process`]), finding the real ones ([`peers`]), a small client that trusts nothing
//! ([`conn`]) the differential tester ([`diff`]) and a soak ([`soak`]). It deliberately shares no code with the server's codec, so that a
//! mistake there is not repeated here. The tests themselves are in `tests/it`.

#![warn(missing_docs)]

pub mod conn;
pub mod diff;
pub mod known_differences;
pub mod peers;
pub mod process;
pub mod soak;
pub mod value;
pub mod wait;

//! Faults on a byte stream, and a server that remembers what it executed.
//!
//! Owns: the model server with its ledger of executions ([`model`]).
//!
//! Does **not** own sockets, a clock, or randomness: bytes, [`Instant`](towline_sansio::Instant)s and seeds are
//! arguments. Does not judge histories: the model gives queries over its ledger, invariants belong to the simulator.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

pub mod model;

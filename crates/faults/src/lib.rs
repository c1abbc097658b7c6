//! Faults on a byte stream, and a server that remembers what it executed.
//!
//! Owns: the rules of faults and their text form ([`rule`]), the machine that applies them to one connection
//! ([`link`]), a set of rules with its seed and its connection numbers ([`plan`]), and the model server with its
//! ledger of executions ([`model`]). The simulator drives them in virtual time, `towline faults proxy` over real
//! sockets.
//!
//! Does **not** own sockets, a clock, or randomness: bytes, [`Instant`](towline_sansio::Instant)s and seeds are
//! arguments. Does not judge histories: the model gives queries over its ledger, invariants belong to the simulator.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

pub mod link;
pub mod model;
pub mod plan;
pub mod rule;

//! Real processes and real peers: what no crate can test alone.
//!
//! Owns: starting servers ([`process`]), finding the real ones ([`peers`]), a small client that trusts nothing
//! ([`conn`]), the differential tester ([`diff`]), a soak ([`soak`]), and what the client's tests need: a proxy with faults
//! ([`fault_proxy`]), hand-made servers ([`odd_peer`]) and a workload whose every command has a known fate
//! ([`ledger`]), real clusters ([`clusters`]) and our own ([`towline_cluster`]), real sentinels ([`sentinels`]) and the same for
//! their keys ([`ledger_of_keys`]), counters
//! ([`counters`]), and a judge of what clients saw of single keys ([`linearizable`]) with its load ([`registers`]). What examines the server shares no code with the server's codec, so that a mistake there is not
//! repeated here. The tests themselves are in `tests/it`.

#![warn(missing_docs)]

pub mod clients;
pub mod clusters;
pub mod conn;
pub mod counters;
pub mod diff;
pub mod fault_proxy;
pub mod known_differences;
pub mod ledger;
pub mod ledger_of_keys;
pub mod linearizable;
pub mod odd_peer;
pub mod peers;
pub mod process;
pub mod registers;
pub mod sentinels;
pub mod soak;
pub mod towline_cluster;
pub mod value;
pub mod wait;

//! What an engine has counted.
//!
//! Owns the form. Everybody counts for himself; here it is put together when somebody asks.

use towline_transfer_proto::{ConnectCounters, ConnectSnapshot, TransferCounters};

/// What the control thread knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Links {
    pub(crate) counters: ConnectCounters,
    pub(crate) now: ConnectSnapshot,
    pub(crate) foreign: u64,
}

/// A snapshot of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Metrics {
    /// Handshakes since the start.
    pub handshakes: ConnectCounters,
    /// Links and handshakes at the moment.
    pub links: ConnectSnapshot,
    /// Connections that spoke something else, or could not prove the key, since the start.
    pub foreign: u64,
    /// Slices since the start, of all peers that are known.
    pub slices: TransferCounters,
    /// Slices on the wire now.
    pub slices_in_flight: usize,
    /// Requests that are open now.
    pub requests_open: u64,
    /// Bytes that came in over TCP and were applied, since the start: what peers wrote, and what we read.
    pub bytes_in: u64,
    /// Bytes that went out over TCP, since the start: what we wrote and was applied, and what peers read.
    pub bytes_out: u64,
    /// Requests of peers for memory that they may not use, since the start.
    pub refusals: u64,
    /// Slices whose check sum was wrong, since the start.
    pub corrupt: u64,
}

/// Adds one peer's counts.
pub(crate) fn add(sum: &mut TransferCounters, one: TransferCounters) {
    sum.posted += one.posted;
    sum.unanswered += one.unanswered;
    sum.flushed += one.flushed;
    sum.exhausted += one.exhausted;
    sum.unknown += one.unknown;
}

//! Fleets that connect all at once, in virtual time: what today's software makes of it, and what this crate does.
//!
//! Owns the scenarios, models of other software ([`Policy::Legacy`] and the limiter that was proposed for it), and a fleet of
//! this crate's own machines on the simulated [fabric](crate::fabric). Does **not** own the machines, and adds nothing to
//! them. No engine uses this module; `towline drill storm` does, and the tests.
//!
//! Everything follows from the seed. [`Report::trace_hash`] is equal for equal histories.

mod event;
mod fleet;
mod further;
mod legacy;
mod ours;
mod report;
mod scenario;
#[cfg(test)]
mod tests;

pub use further::{Check, further};
pub use report::{GOODPUT_STEP, Report, Times};
pub use scenario::{Outage, Policy, Rails, Scenario, Service, Slowness};

use std::time::Duration;

/// After a crash, initiators notice within this, uniformly.
const NOTICE_SPREAD: Duration = Duration::from_millis(50);

/// Of the work for one handshake with one queue pair, so much is for the handshake ...
const FIXED_PARTS: u32 = 9;
/// ... and so much for the queue pair: 2.7 ms and 1.5 ms of 4.2 ms.
const QUEUE_PAIR_PARTS: u32 = 5;

/// What the figures rest on, to be printed with them.
pub const ASSUMPTIONS: &[&str] = &[
    "an initiator listens for 470 ms, the retry window of its queue pairs, and then begins anew with new ones; with 60 s of \
     patience nothing collapses at 240 endpoints. A3 and A4 have endless patience",
    "one handshake of one endpoint costs the target 4.2 ms (measured by others: 256 in 1.1 s); the curve of A3 is fitted to \
     the 96 s that were reported, A1 and A2 are not fitted to anything",
    "legacy and pr2793 are models: one thread, first come first served, no look at who still waits, twice the work where queue \
     pairs of a given-up attempt must be retired. One failed attempt costs them one request here; in the field it is up to three",
    "pr2793 burns the retries of whatever waits in its backoff, so an endpoint's first failure is its last; pr2793-repaired \
     does not",
    "ours runs the production state machines with one handshake for each endpoint (ours, ours-1-worker) or one for all endpoints \
     of a node (ours-hello), which costs the target 2.7 ms and 1.5 ms for each queue pair",
    "the network takes 25 us one way; a target that is away says nothing, so that dials to it time out",
];

/// Runs one scenario with one policy. The same seed gives the same report.
pub fn run(scenario: &Scenario, policy: Policy, seed: u64) -> Report {
    match policy {
        Policy::Ours { workers, rails } => ours::run(scenario, workers, rails, seed),
        Policy::Legacy | Policy::Limited { .. } | Policy::LimitedRepaired { .. } => {
            legacy::run(scenario, policy, seed)
        }
    }
}

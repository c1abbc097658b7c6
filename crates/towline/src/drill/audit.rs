//! What the drill asks the server itself, on a connection that nobody moves: what it holds in the end, and while the load
//! runs whether one caller's commands on different keys are ever seen out of order.
//!
//! Owns the reading. Does not own the comparison ([`super::ledger`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use towline_client::{Client, cmd};

use super::ledger::{Findings, Held, Ledger, audit_shared};
use super::load::{Keys, Plan};

/// Workers whose pairs are watched: more would make the watch a load of its own.
const WATCHED_MAX: usize = 32;

/// Crossings that are kept; with so many, more say nothing new.
const CROSSINGS_MAX: usize = 1000;

/// The time between two looks at the pairs.
const LOOK_EVERY: Duration = Duration::from_millis(3);

/// Reads what the server holds and compares all ledgers with it.
///
/// # Errors
/// The server does not answer.
pub(super) async fn audit(admin: &Client, ledgers: &[Ledger], connections: usize) -> Result<Findings> {
    let mut findings = Findings::default();
    for (worker, ledger) in ledgers.iter().enumerate() {
        let keys = Keys::new(worker, worker % connections);
        let read = [&keys.number, &keys.left, &keys.right].map(String::as_str);
        let numbers: [Option<i64>; 3] =
            cmd("MGET").arg(read).query(admin).await.context("cannot read the counters")?;
        let log: Option<Vec<u8>> = admin.get(&keys.log).await.context("cannot read a log")?;
        let [number, left, right] = numbers.map(Option::unwrap_or_default);
        let held = Held { number, left, right, log: log.unwrap_or_default() };
        findings.merge(ledger.audit(worker, &held));
    }
    for connection in 0..connections.min(ledgers.len()) {
        let key = Keys::new(0, connection).shared;
        let held: Option<i64> = admin.get(&key).await.context("cannot read a shared counter")?;
        let of_connection = ledgers.iter().skip(connection).step_by(connections);
        findings.merge(audit_shared(connection, of_connection, held.unwrap_or_default()));
    }
    Ok(findings)
}

/// A look at which the keys of a pair were seen out of order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Crossing {
    at: Duration,
    worker: usize,
    left: i64,
    right: i64,
}

/// Looks at the pairs of keys of some workers until told to stop, and notes when a second key was ahead of its first, or
/// behind by more than the one command that may be under way. One look is one atomic `MGET`.
///
/// # Errors
/// The server does not answer.
pub(super) async fn observe(
    admin: Client,
    workers: usize,
    plan: Arc<Plan>,
    is_over: Arc<AtomicBool>,
) -> Result<Vec<Crossing>> {
    let workers = workers.min(WATCHED_MAX);
    let keys: Vec<String> = (0..workers)
        .flat_map(|worker| {
            let keys = Keys::new(worker, 0);
            [keys.left, keys.right]
        })
        .collect();
    let mut crossings = Vec::new();
    while !is_over.load(Ordering::Relaxed) && crossings.len() < CROSSINGS_MAX {
        let at = plan.start.elapsed();
        let seen: Vec<Option<i64>> =
            cmd("MGET").arg(&keys[..]).query(&admin).await.context("cannot read the pairs")?;
        for (worker, pair) in seen.chunks(2).enumerate() {
            let (left, right) = (pair[0].unwrap_or_default(), pair[1].unwrap_or_default());
            if !(0..=1).contains(&(left - right)) {
                crossings.push(Crossing { at, worker, left, right });
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(crossings)
}

/// Counts what was seen out of order before the first command that failed was sent: one that is missing leaves its pair
/// uneven for good.
pub(super) fn count_crossings(
    crossings: &[Crossing],
    first_failure: Option<Duration>,
    findings: &mut Findings,
) {
    for crossing in crossings.iter().filter(|crossing| first_failure.is_none_or(|at| crossing.at < at)) {
        let Crossing { worker, left, right, .. } = crossing;
        findings.reordered += 1;
        findings.problem(|| format!("pair of worker {worker}: seen as {left} and {right}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crossings_count_until_the_first_failure() {
        let crossing = |ms| Crossing { at: Duration::from_millis(ms), worker: 3, left: 1, right: 2 };
        let count = |first_failure| {
            let mut findings = Findings::default();
            count_crossings(&[crossing(10), crossing(30)], first_failure, &mut findings);
            findings.reordered
        };
        assert_eq!((count(None), count(Some(Duration::from_millis(20)))), (2, 1));
    }
}

//! The load, and what became of it.
//!
//! Owns the tasks, their instants, and the comparison with what the cluster holds.

use super::Place;
use super::clients::Counting;
use crate::pacer::{Pacer, pause};
use anyhow::ensure;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How often a task counts when it is answered at once.
const COUNTS_PER_SECOND: u32 = 200;

/// The load runs for so long before anything happens.
const BEFORE: Duration = Duration::from_millis(500);

/// A client that has not got each key back so long after the cluster is whole has not recovered.
const RECOVERY_MAX: Duration = Duration::from_secs(20);

/// What an event cost.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// Until the cluster was whole again, from the event on.
    pub(crate) cluster: Duration,
    /// The longest that a key of the node went without an acknowledged count; `None`: one was never counted again within
    /// [`RECOVERY_MAX`].
    pub(crate) longest: Option<Duration>,
    /// The same for keys of the other nodes, to which nothing happened.
    pub(crate) longest_other: Duration,
    /// Counts that failed.
    pub(crate) failed: u64,
    /// What the first of them said.
    pub(crate) first_error: Option<String>,
    /// Counts that the cluster has and nobody sent: at least so many ran twice.
    pub(crate) duplicates: u64,
    /// Counts that were acknowledged and are not there.
    pub(crate) lost: u64,
    /// Counts that were acknowledged.
    pub(crate) acknowledged: u64,
}

/// What one task saw.
struct Seen {
    key: String,
    is_struck: bool,
    acknowledged: Vec<Instant>,
    failed: u64,
    first_error: Option<String>,
    /// It had to be given up within a command.
    is_stuck: bool,
}

/// The tasks.
pub(crate) struct Load {
    tasks: JoinSet<anyhow::Result<Seen>>,
    is_over: Arc<AtomicBool>,
}

impl Load {
    /// Connects and begins to count.
    pub(crate) async fn start<C: Counting>(
        place: &Place,
        struck: Vec<String>,
        others: Vec<String>,
    ) -> anyhow::Result<Self> {
        let client = C::connect(place).await?;
        let is_over = Arc::new(AtomicBool::new(false));
        let mut tasks = JoinSet::new();
        let marked =
            struck.into_iter().map(|key| (key, true)).chain(others.into_iter().map(|key| (key, false)));
        for (key, is_struck) in marked {
            tasks.spawn(count(client.clone(), key, is_struck, Arc::clone(&is_over)));
        }
        pause(BEFORE).await?;
        Ok(Self { tasks, is_over })
    }

    /// Waits until the client has recovered, ends the load and takes stock.
    pub(crate) async fn finish(
        mut self,
        begun: Instant,
        over: Instant,
        counter: impl Fn(&str) -> anyhow::Result<u64>,
    ) -> anyhow::Result<Outcome> {
        // A client that waits between attempts has the time for it.
        pause(BEFORE * 4).await?;
        self.is_over.store(true, Ordering::Relaxed);
        let mut seen = Vec::new();
        while let Some(task) = self.tasks.join_next().await {
            seen.push(task??);
        }
        let mut outcome = Outcome {
            cluster: over - begun,
            longest: Some(Duration::ZERO),
            longest_other: Duration::ZERO,
            failed: 0,
            first_error: seen.iter().find_map(|task| task.first_error.clone()),
            duplicates: 0,
            lost: 0,
            acknowledged: 0,
        };
        for task in &seen {
            ensure!(!task.acknowledged.is_empty(), "{} was never counted", task.key);
            let held = counter(&task.key)?;
            let acknowledged = task.acknowledged.len() as u64;
            outcome.acknowledged += acknowledged;
            outcome.failed += task.failed;
            outcome.duplicates += held.saturating_sub(acknowledged + task.failed + u64::from(task.is_stuck));
            outcome.lost += acknowledged.saturating_sub(held);
            let longest = longest_gap(&task.acknowledged, begun);
            if task.is_struck {
                outcome.longest = outcome.longest.filter(|_| !task.is_stuck).map(|known| known.max(longest));
            } else {
                outcome.longest_other = outcome.longest_other.max(longest);
            }
        }
        Ok(outcome)
    }
}

/// The longest time between two acknowledgements of which the later one came after `since`.
fn longest_gap(acknowledged: &[Instant], since: Instant) -> Duration {
    let gaps = acknowledged.windows(2).filter(|pair| pair[1] > since);
    gaps.map(|pair| pair[1] - pair[0]).max().unwrap_or_default()
}

async fn count<C: Counting>(
    mut client: C,
    key: String,
    is_struck: bool,
    is_over: Arc<AtomicBool>,
) -> anyhow::Result<Seen> {
    let mut seen =
        Seen { key, is_struck, acknowledged: Vec::new(), failed: 0, first_error: None, is_stuck: false };
    let mut pacer = Pacer::start(COUNTS_PER_SECOND)?;
    loop {
        drop(pacer.due().await?);
        let is_last = is_over.load(Ordering::Relaxed);
        match timeout(RECOVERY_MAX, client.count(&seen.key)).await {
            Ok(Ok(())) => seen.acknowledged.push(Instant::now()),
            Ok(Err(error)) => {
                seen.failed += 1;
                seen.first_error.get_or_insert_with(|| format!("{error:#}"));
            }
            Err(_) => {
                seen.is_stuck = true;
                return Ok(seen);
            }
        }
        if is_last {
            return Ok(seen);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::longest_gap;
    use std::time::{Duration, Instant};

    #[test]
    fn the_longest_gap_is_one_that_ends_after_the_event() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let acknowledged = [at(0), at(900), at(910), at(1000), at(1300), at(1310)];
        assert_eq!(longest_gap(&acknowledged, at(950)), Duration::from_millis(300));
        // A gap in which the event happened counts as a whole.
        assert_eq!(longest_gap(&acknowledged, at(500)), Duration::from_millis(900));
        assert_eq!(longest_gap(&acknowledged[..1], at(500)), Duration::ZERO);
    }
}

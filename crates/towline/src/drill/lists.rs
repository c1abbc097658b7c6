//! Elements that are pushed to lists and popped by callers that wait for them.
//!
//! Owns the producers and the consumers of the script `blocked`. Does not own the account ([`super::delivery`]).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use towline_client::{Client, cmd};

use super::delivery::Stream;
use super::ledger::Outcome;
use super::load::{Plan, failure};
use crate::bench::ErrorTally;

/// Lists, each with one producer.
const LISTS: usize = 4;

/// The block times of the consumers of each list, seconds: for ever, and short enough to run out within a window.
const BLOCK_SECONDS: [f64; 2] = [0.0, 0.25];

/// A pause between two elements: callers wait most of the time.
const PUSH_EVERY: Duration = Duration::from_millis(2);

/// A consumer that fails at once rests so long.
const REST: Duration = Duration::from_millis(2);

/// How long consumers may take to find the end.
const END_MAX: Duration = Duration::from_secs(6);

/// What tells a consumer to stop.
const END: &str = "end";

/// The lists and what became of calls that delivered nothing.
#[derive(Debug, Default)]
pub(super) struct Listed {
    pub(super) streams: Vec<Stream>,
    /// Consumers' calls that failed, and calls without a limit that came back empty.
    pub(super) failed: u64,
    pub(super) errors: ErrorTally,
}

/// The key of a list.
pub(super) fn key(list: usize) -> String {
    format!("drill:list:{list}")
}

/// What a consumer has so far; it survives the consumer.
#[derive(Debug, Default)]
struct Consumed {
    numbers: Vec<u32>,
    failed: u64,
    errors: ErrorTally,
}

type Shared = Arc<Mutex<Consumed>>;

/// Pushes and pops until the plan's end; `admin` is a client whose connection is not moved.
///
/// # Errors
/// A task panicked, or the server does not answer the drill itself.
pub(super) async fn run(clients: &[Client], admin: &Client, plan: &Arc<Plan>) -> Result<Listed> {
    let mut producers = JoinSet::new();
    let mut consumers = JoinSet::new();
    let mut consumed: Vec<Vec<Shared>> = Vec::new();
    for list in 0..LISTS {
        let client = &clients[list % clients.len()];
        let mut of_list = Vec::new();
        for seconds in BLOCK_SECONDS {
            let shared = Shared::default();
            of_list.push(Arc::clone(&shared));
            consumers.spawn(consume(client.clone(), key(list), seconds, shared));
        }
        consumed.push(of_list);
        producers.spawn(produce(list, client.clone(), Arc::clone(plan)));
    }
    let mut listed = Listed { streams: (0..LISTS).map(|_| Stream::default()).collect(), ..Listed::default() };
    while let Some(producer) = producers.join_next().await {
        let (list, produced, errors) = producer.context("a producer's task failed")?;
        listed.streams[list].produced = produced;
        listed.errors.merge(&errors);
    }
    for list in 0..LISTS {
        let ends = vec![END; BLOCK_SECONDS.len()];
        cmd("RPUSH").arg(key(list)).arg(ends).query::<i64>(admin).await.context("cannot end the lists")?;
    }
    let ending = async { while consumers.join_next().await.is_some() {} };
    if timeout(END_MAX, ending).await.is_err() {
        listed.failed += consumers.len() as u64;
        listed.errors.add("a consumer waits for ever", consumers.len() as u64);
        consumers.shutdown().await;
    }
    for (list, of_list) in consumed.into_iter().enumerate() {
        for shared in of_list {
            let consumed = std::mem::take(&mut *shared.lock().unwrap_or_else(PoisonError::into_inner));
            listed.streams[list].consumed.push(consumed.numbers);
            listed.failed += consumed.failed;
            listed.errors.merge(&consumed.errors);
        }
        let left: Vec<Bytes> =
            cmd("LRANGE").arg((key(list), 0, -1)).query(admin).await.context("cannot read the lists")?;
        listed.streams[list].left = left.iter().filter_map(|element| number(element)).collect();
    }
    Ok(listed)
}

async fn produce(list: usize, client: Client, plan: Arc<Plan>) -> (usize, Vec<Outcome>, ErrorTally) {
    let (mut produced, mut errors) = (Vec::new(), ErrorTally::default());
    let end = Instant::from_std(plan.start) + plan.end;
    let mut due = Instant::now();
    while due < end {
        let push = cmd("RPUSH").arg(key(list)).arg(produced.len()).no_retry();
        produced.push(match push.query::<i64>(&client).await {
            Ok(length) => Outcome::Number(length),
            Err(error) => failure(&error, &mut errors),
        });
        due += PUSH_EVERY;
        sleep_until(due).await;
    }
    (list, produced, errors)
}

async fn consume(client: Client, key: String, seconds: f64, shared: Shared) {
    loop {
        let pop = cmd("BLPOP").arg(key.as_str()).arg(seconds).no_retry();
        let popped = pop.query::<Option<(Bytes, Bytes)>>(&client).await;
        let mut rest = false;
        {
            let mut consumed = shared.lock().unwrap_or_else(PoisonError::into_inner);
            match popped {
                Ok(Some((_, element))) if element == END => return,
                Ok(Some((_, element))) => consumed.numbers.extend(number(&element)),
                Ok(None) if seconds > 0.0 => {}
                Ok(None) => {
                    consumed.failed += 1;
                    consumed.errors.add("BLPOP without a limit came back empty", 1);
                }
                Err(error) => {
                    consumed.failed += 1;
                    failure(&error, &mut consumed.errors);
                    rest = true;
                }
            }
        }
        if rest {
            tokio::time::sleep(REST).await;
        }
    }
}

fn number(element: &[u8]) -> Option<u32> {
    std::str::from_utf8(element).ok()?.parse().ok()
}

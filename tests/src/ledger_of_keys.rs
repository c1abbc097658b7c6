//! A load on the keys of a cluster, of which the fate of every command is known.
//!
//! Owns the tasks, what each command came to, and the audit. Each task appends numbers to lists of its own, several at a time
//! without waiting for one before it sends the next. Promised is: what was acknowledged is there once, what is unknown is there
//! once or not at all, nothing failed that was certainly not sent, and the numbers of each list ascend.

use anyhow::{bail, ensure};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use towline_client::{Client, Error, Sent, cmd, pipe};

/// Commands that a task has on the way at a time.
const WINDOW: usize = 6;

/// A command on its way.
type Sending<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>>;

/// What became of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Acknowledged,
    Unknown,
}

/// One list and what was appended to it.
#[derive(Debug)]
struct List {
    key: String,
    fates: Vec<Fate>,
}

/// The load, until it is told to end.
#[derive(Debug)]
pub struct KeyLedger {
    tasks: JoinSet<anyhow::Result<(List, Duration)>>,
    is_over: Arc<AtomicBool>,
}

/// What the load came to.
#[derive(Debug, Clone, Copy)]
pub struct Account {
    /// Commands acknowledged.
    pub acknowledged: usize,
    /// Commands that may have run.
    pub unknown: usize,
    /// Commands that were acknowledged by a server which lost its place before its heir had them.
    pub lost: usize,
    /// The longest that a task had to wait for its commands.
    pub longest: Duration,
}

impl KeyLedger {
    /// Begins a load on `keys`, one task for each.
    pub fn start(client: &Client, keys: Vec<String>) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let mut tasks = JoinSet::new();
        for key in keys {
            tasks.spawn(append(client.clone(), key, Arc::clone(&is_over)));
        }
        Self { tasks, is_over }
    }

    /// Ends the load and compares what became of every command with what the cluster holds.
    ///
    /// # Errors
    /// A promise was broken.
    pub async fn finish(self, client: &Client) -> anyhow::Result<Account> {
        let account = self.finish_with_loss(client).await?;
        ensure!(account.lost == 0, "{} commands were acknowledged and are missing", account.lost);
        Ok(account)
    }

    /// As [`KeyLedger::finish`], where servers may lose what they have acknowledged, because they do not wait for their replicas.
    /// That is counted; all other promises hold.
    ///
    /// # Errors
    /// A promise was broken.
    pub async fn finish_with_loss(mut self, client: &Client) -> anyhow::Result<Account> {
        self.is_over.store(true, Ordering::Relaxed);
        let mut account = Account { acknowledged: 0, unknown: 0, lost: 0, longest: Duration::ZERO };
        while let Some(ended) = self.tasks.join_next().await {
            let (list, longest) = ended??;
            account.lost += audit(client, &list).await?;
            let unknown = list.fates.iter().filter(|fate| **fate == Fate::Unknown).count();
            account.acknowledged += list.fates.len() - unknown;
            account.unknown += unknown;
            account.longest = account.longest.max(longest);
        }
        Ok(account)
    }
}

async fn append(client: Client, key: String, is_over: Arc<AtomicBool>) -> anyhow::Result<(List, Duration)> {
    let mut list = List { key, fates: Vec::new() };
    let mut longest = Duration::ZERO;
    while !is_over.load(Ordering::Relaxed) {
        let begun = Instant::now();
        let first = list.fates.len();
        let number = |at: usize| cmd("RPUSH").arg(&list.key).arg(first + at);
        let single = |at: usize| number(at).query::<()>(&client);
        let pair = pipe().add_command(number(2)).add_command(number(3));
        let mut pair = std::pin::pin!(pair.results(&client));
        let mut pair_results = None;
        let mut singles: Vec<Sending<'_>> = Vec::new();
        for at in [0, 1, 4, 5] {
            singles.push(Box::pin(single(at)));
        }
        let mut results: [Option<Result<(), Error>>; WINDOW] = [const { None }; WINDOW];
        // All are submitted in their order before the first is awaited.
        poll_fn(|cx| {
            let mut is_done = true;
            for (place, at) in [0, 1].into_iter().enumerate() {
                is_done &= poll_one(&mut singles[place], &mut results[at], cx);
            }
            if pair_results.is_none()
                && let Poll::Ready(ready) = pair.as_mut().poll(cx)
            {
                pair_results = Some(ready);
            }
            is_done &= pair_results.is_some();
            for (place, at) in [4, 5].into_iter().enumerate() {
                is_done &= poll_one(&mut singles[place + 2], &mut results[at], cx);
            }
            if is_done { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        let pair_results = pair_results.expect("it was awaited")?;
        for (place, result) in pair_results.into_iter().enumerate() {
            results[2 + place] = Some(result.map(drop));
        }
        longest = longest.max(begun.elapsed());
        for result in results.into_iter().flatten() {
            list.fates.push(match result {
                Ok(()) => Fate::Acknowledged,
                Err(error) if error.sent() == Sent::Maybe => Fate::Unknown,
                Err(error) => bail!("{}: failed although it was not sent, or refused: {error}", list.key),
            });
        }
    }
    Ok((list, longest))
}

fn poll_one(
    future: &mut Sending<'_>,
    result: &mut Option<Result<(), Error>>,
    cx: &mut std::task::Context<'_>,
) -> bool {
    if result.is_none()
        && let Poll::Ready(ready) = future.as_mut().poll(cx)
    {
        *result = Some(ready);
    }
    result.is_some()
}

/// Compares a list with what the servers hold; how many acknowledged numbers are missing.
async fn audit(client: &Client, list: &List) -> anyhow::Result<usize> {
    let held: Vec<usize> = cmd("LRANGE").arg(&list.key).arg(0).arg(-1).query(client).await?;
    let key = &list.key;
    let mut last = None;
    for number in &held {
        ensure!(*number < list.fates.len(), "{key}: {number} was never sent");
        ensure!(last != Some(*number), "{key}: {number} is there twice");
        ensure!(last.is_none_or(|last| last < *number), "{key}: {number} came after {last:?}");
        last = Some(*number);
    }
    let is_lost =
        |(number, fate): &(usize, &Fate)| **fate == Fate::Acknowledged && held.binary_search(number).is_err();
    Ok(list.fates.iter().enumerate().filter(is_lost).count())
}

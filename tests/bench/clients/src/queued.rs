//! Commands given while the server is away: what they cost in memory, and what new commands feel while they are flushed.
//!
//! The server belongs to this measurement: it is killed and started again on the same port.

use crate::allocations::Counters;
use crate::case::{Measured, Queued, QueuedMemory};
use crate::clients::{BenchClient, Patience};
use crate::pacer::{Pacer, pause};
use crate::server::{Server, free_port, ready};
use crate::statistics::{KEYS, VALUE_BYTES, keys, quantile_us, tick, value};
use anyhow::Context;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// New commands a second: few enough to be no load, enough for a p99.
const PROBES_PER_SECOND: u32 = 1_000;
/// How long new commands are measured without a queue.
const STEADY: Duration = Duration::from_secs(1);
/// Every client has noticed by then that the server is gone.
const NOTICE: Duration = Duration::from_millis(300);
/// A client that has not flushed by then never will.
const FLUSH_MAX: Duration = Duration::from_secs(30);
/// The driver gets its turn after so many commands, as it would if they came from tasks.
const TURN: usize = 256;

type Pending = Pin<Box<dyn Future<Output = anyhow::Result<()>> + Send>>;

/// Queues `commands` SETs of the usual size; with counters it measures memory and flushes nothing.
pub(crate) async fn run<C: BenchClient>(
    program: &Path,
    commands: usize,
    counters: Option<Counters>,
) -> anyhow::Result<Measured> {
    let port = free_port()?;
    let server = Server::start(program, port)?;
    ready(port).await?;
    let client = C::connect(port, Patience::Long).await?;
    let steady = probe(&client, Instant::now() + STEADY, None).await?;
    drop(server);
    pause(NOTICE).await?;

    let mut queue = Vec::with_capacity(commands);
    let before = counters.map(|counters| (counters.snapshot)());
    let (failed, future_bytes) = fill(&client, commands, &mut queue).await;
    pause(NOTICE).await?;
    if let (Some(counters), Some(before)) = (counters, before) {
        let live = (counters.snapshot)().live().saturating_sub(before.live());
        let each = live as f64 / commands as f64;
        return Ok(Measured::QueuedMemory(QueuedMemory {
            commands,
            failed,
            command_bytes: encoded_bytes() as f64,
            future_bytes: future_bytes as f64,
            engine_bytes: each - future_bytes as f64,
        }));
    }
    let _server = Server::start(program, port)?;
    let measured = tokio::time::timeout(FLUSH_MAX, flush(&client, port, queue, steady, commands, failed));
    measured.await.context("the queue was not flushed in time")?
}

/// Bytes of `SET key value` in RESP.
fn encoded_bytes() -> usize {
    let key = keys()[0].len();
    format!("*3\r\n$3\r\nSET\r\n${key}\r\n${VALUE_BYTES}\r\n").len() + key + 2 + VALUE_BYTES + 2
}

/// Polls each command once, so that the client has it; gives how many failed at once, and the size of one future.
async fn fill<C: BenchClient>(client: &C, commands: usize, queue: &mut Vec<Pending>) -> (u64, usize) {
    let keys: Arc<[String]> = keys().into();
    let value: Arc<str> = value().into();
    let mut failed = 0;
    let mut future_bytes = 0;
    for number in 0..commands {
        let (mut client, keys, value) = (client.clone(), Arc::clone(&keys), Arc::clone(&value));
        // Unconstrained: tokio's budget for one task would let only the first 128 commands through.
        let work = tokio::task::unconstrained(async move { client.set(&keys[number % KEYS], &value).await });
        future_bytes = size_of_val(&work);
        let mut work: Pending = Box::pin(work);
        let first = work.as_mut().poll(&mut std::task::Context::from_waker(Waker::noop()));
        match first {
            std::task::Poll::Pending => queue.push(work),
            std::task::Poll::Ready(_) => failed += 1,
        }
        if number % TURN == TURN - 1 {
            tokio::task::yield_now().await;
        }
    }
    (failed, future_bytes)
}

/// Waits for the server, then for every queued command, while new ones come.
async fn flush<C: BenchClient>(
    client: &C,
    port: u16,
    queue: Vec<Pending>,
    steady: Vec<u32>,
    commands: usize,
    mut failed: u64,
) -> anyhow::Result<Measured> {
    let mut tasks = JoinSet::new();
    for work in queue {
        tasks.spawn(work);
    }
    ready(port).await?;
    let server_returned = Instant::now();
    let mut first = None;
    let (flushed_sender, flushed) = watch::channel(false);
    let mut during = None;
    while let Some(outcome) = tasks.join_next().await {
        failed += u64::from(outcome?.is_err());
        if first.is_none() {
            first = Some(Instant::now());
            let (client, flushed) = (client.clone(), flushed.clone());
            let until = server_returned + FLUSH_MAX;
            during = Some(tokio::spawn(async move { probe(&client, until, Some(flushed)).await }));
        }
    }
    let done = Instant::now();
    flushed_sender.send_replace(true);
    let during = match during {
        Some(task) => task.await??,
        None => Vec::new(),
    };
    let after = probe(client, Instant::now() + STEADY, None).await?;
    let first = first.unwrap_or(done);
    Ok(Measured::Queued(Queued {
        commands,
        failed,
        returned_ms: (first - server_returned).as_secs_f64() * 1e3,
        flushed_ms: (done - first).as_secs_f64() * 1e3,
        steady_p99_us: quantile_us(&steady, 0.99),
        during_p99_us: quantile_us(&during, 0.99),
        during_max_us: quantile_us(&during, 1.0),
        during_count: during.len(),
        after_p99_us: quantile_us(&after, 0.99),
    }))
}

/// One SET each millisecond, each measured from when it was due, until the instant or until the queue is flushed.
async fn probe<C: BenchClient>(
    client: &C,
    until: Instant,
    flushed: Option<watch::Receiver<bool>>,
) -> anyhow::Result<Vec<u32>> {
    let mut pacer = Pacer::start(PROBES_PER_SECOND)?;
    let mut tasks = JoinSet::new();
    let value: Arc<str> = value().into();
    while Instant::now() < until && !flushed.as_ref().is_some_and(|flushed| *flushed.borrow()) {
        for due in pacer.due().await? {
            let (mut client, value) = (client.clone(), Arc::clone(&value));
            tasks.spawn(async move {
                let outcome = client.set("probe", &value).await;
                outcome.is_ok().then(|| tick(due.elapsed()))
            });
        }
    }
    let mut ticks = Vec::with_capacity(tasks.len());
    while let Some(outcome) = tasks.join_next().await {
        ticks.extend(outcome?);
    }
    ticks.sort_unstable();
    Ok(ticks)
}

//! Closed-loop tasks on one shared connection: each sends its next command when the last is answered.

use crate::allocations::Counters;
use crate::case::{Allocations, Closed, Measured, Operation};
use crate::clients::{BenchClient, Patience};
use crate::statistics::{Draw, keys, quantile_us, tick, value};
use crate::usage::{Usage, of_process};
use anyhow::bail;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Long enough that buffers have their final sizes and the allocator its blocks.
const WARM_UP: Duration = Duration::from_millis(150);
/// More commands in a second than any client reaches here; room for latencies is made for so many.
const PER_SECOND_MAX: f64 = 1_500_000.0;

/// What one measurement asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workload {
    pub(crate) operation: Operation,
    pub(crate) tasks: usize,
    pub(crate) seconds: f64,
    pub(crate) port: u16,
    pub(crate) server_pid: Option<u32>,
}

/// What one task did.
struct Lane {
    commands: u64,
    failed: u64,
    failure: Option<String>,
    ticks: Vec<u32>,
}

/// Warms up, then measures; with counters it counts allocations instead.
pub(crate) async fn run<C: BenchClient>(
    workload: Workload,
    counters: Option<Counters>,
) -> anyhow::Result<Measured> {
    let client = C::connect(workload.port, Patience::Default).await?;
    let keys: Arc<[String]> = keys().into();
    let value: Arc<str> = value().into();
    let warming = make_lanes(workload.tasks, WARM_UP);
    drop(phase(&client, &keys, &value, workload.operation, warming, WARM_UP).await?);

    let length = Duration::from_secs_f64(workload.seconds);
    let lanes = make_lanes(workload.tasks, length);
    let allocated = counters.map(|counters| (counters.snapshot)());
    let server = workload.server_pid.and_then(of_process);
    let usage = Usage::now()?;
    let started = Instant::now();
    let lanes = phase(&client, &keys, &value, workload.operation, lanes, length).await?;
    let elapsed = started.elapsed();
    let usage = Usage::now()?.since(usage);
    let server = workload.server_pid.and_then(of_process).zip(server).map(|(after, before)| after - before);

    let commands: u64 = lanes.iter().map(|lane| lane.commands).sum();
    let failed: u64 = lanes.iter().map(|lane| lane.failed).sum();
    if commands == 0 {
        let failure = lanes.into_iter().find_map(|lane| lane.failure).unwrap_or_default();
        bail!("no command was answered: {failure}");
    }
    let each = |total: f64| total / commands as f64;
    if let (Some(counters), Some(before)) = (counters, allocated) {
        let after = (counters.snapshot)();
        return Ok(Measured::Allocations(Allocations {
            operation: workload.operation,
            tasks: workload.tasks,
            allocations: each((after.allocations - before.allocations) as f64),
            reallocations: each((after.reallocations - before.reallocations) as f64),
            bytes: each((after.bytes - before.bytes) as f64),
        }));
    }
    let mut ticks: Vec<u32> = lanes.into_iter().flat_map(|lane| lane.ticks).collect();
    ticks.sort_unstable();
    let us = |duration: Duration| each(duration.as_secs_f64() * 1e6);
    Ok(Measured::Closed(Closed {
        operation: workload.operation,
        tasks: workload.tasks,
        commands,
        failed,
        cpu_us: us(usage.cpu()),
        user_us: us(usage.user),
        server_cpu_us: server.map(us),
        per_second: commands as f64 / elapsed.as_secs_f64(),
        p50_us: quantile_us(&ticks, 0.50),
        p99_us: quantile_us(&ticks, 0.99),
        switches: each(usage.switches as f64),
    }))
}

/// Lanes whose room for latencies is touched beforehand: page faults are not the client's.
fn make_lanes(tasks: usize, length: Duration) -> Vec<Lane> {
    let room = (PER_SECOND_MAX * length.as_secs_f64()) as usize / tasks + 1024;
    let lane = || {
        let mut ticks = vec![u32::MAX; room];
        ticks.clear();
        Lane { commands: 0, failed: 0, failure: None, ticks }
    };
    std::iter::repeat_with(lane).take(tasks).collect()
}

/// Runs every lane in a task of its own until the time is over.
async fn phase<C: BenchClient>(
    client: &C,
    keys: &Arc<[String]>,
    value: &Arc<str>,
    operation: Operation,
    lanes: Vec<Lane>,
    length: Duration,
) -> anyhow::Result<Vec<Lane>> {
    let until = Instant::now() + length;
    let mut tasks = JoinSet::new();
    for (number, lane) in lanes.into_iter().enumerate() {
        let work = drive(client.clone(), Arc::clone(keys), Arc::clone(value), operation, lane, number, until);
        tasks.spawn(work);
    }
    let mut done = Vec::with_capacity(tasks.len());
    while let Some(lane) = tasks.join_next().await {
        done.push(lane?);
    }
    Ok(done)
}

/// One closed loop.
async fn drive<C: BenchClient>(
    mut client: C,
    keys: Arc<[String]>,
    value: Arc<str>,
    operation: Operation,
    mut lane: Lane,
    number: usize,
    until: Instant,
) -> Lane {
    let mut draw = Draw::new(number);
    let mut last = Instant::now();
    while last < until {
        let key = &keys[draw.index()];
        let outcome = match operation {
            Operation::Get => client.get(key).await.map(|_| ()),
            Operation::Set => client.set(key, &value).await,
        };
        let now = Instant::now();
        match outcome {
            Ok(()) => lane.commands += 1,
            Err(error) => {
                lane.failed += 1;
                lane.failure.get_or_insert_with(|| format!("{error:#}"));
            }
        }
        if lane.ticks.len() < lane.ticks.capacity() {
            lane.ticks.push(tick(now - last));
        }
        last = now;
    }
    lane
}

//! Commands at a fixed rate, whatever the client does: each latency counts from the instant at which the command was due,
//! so a client that stalls pays for the commands that it kept from being sent (no coordinated omission).

use crate::case::{Measured, Open};
use crate::clients::{BenchClient, Patience};
use crate::pacer::Pacer;
use crate::statistics::{Draw, keys, quantile_us, tick};
use crate::usage::Usage;
use anyhow::ensure;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const WARM_UP: Duration = Duration::from_millis(200);

/// GETs at the given rate.
pub(crate) async fn run<C: BenchClient>(
    port: u16,
    commands_per_second: u32,
    seconds: f64,
) -> anyhow::Result<Measured> {
    let client = C::connect(port, Patience::Long).await?;
    let keys: Arc<[String]> = keys().into();
    paced(&client, &keys, commands_per_second, WARM_UP).await?;
    let usage = Usage::now()?;
    let outcomes = paced(&client, &keys, commands_per_second, Duration::from_secs_f64(seconds)).await?;
    let usage = Usage::now()?.since(usage);
    let mut ticks: Vec<u32> = outcomes.iter().flatten().copied().collect();
    ensure!(!ticks.is_empty(), "no command was answered");
    ticks.sort_unstable();
    Ok(Measured::Open(Open {
        commands_per_second,
        answered: ticks.len() as u64,
        failed: (outcomes.len() - ticks.len()) as u64,
        cpu_us: usage.cpu().as_secs_f64() * 1e6 / ticks.len() as f64,
        p50_us: quantile_us(&ticks, 0.50),
        p99_us: quantile_us(&ticks, 0.99),
        p999_us: quantile_us(&ticks, 0.999),
    }))
}

/// Sends at the rate for the given time, then waits for the answers: a latency each, or none for a failure.
async fn paced<C: BenchClient>(
    client: &C,
    keys: &Arc<[String]>,
    commands_per_second: u32,
    length: Duration,
) -> anyhow::Result<Vec<Option<u32>>> {
    let room = (f64::from(commands_per_second) * length.as_secs_f64()) as usize + 1024;
    let mut outcomes = Vec::with_capacity(room);
    let mut tasks = JoinSet::new();
    let mut draw = Draw::new(0);
    let mut pacer = Pacer::start(commands_per_second)?;
    let until = Instant::now() + length;
    while Instant::now() < until {
        for due in pacer.due().await? {
            let (mut client, keys, index) = (client.clone(), Arc::clone(keys), draw.index());
            tasks.spawn(async move {
                let outcome = client.get(&keys[index]).await;
                outcome.is_ok().then(|| tick(due.elapsed()))
            });
        }
        while let Some(outcome) = tasks.try_join_next() {
            outcomes.push(outcome?);
        }
    }
    while let Some(outcome) = tasks.join_next().await {
        outcomes.push(outcome?);
    }
    Ok(outcomes)
}

//! One large reply after another, and what one does to the small replies that follow.

use crate::allocations::Counters;
use crate::case::{Large, LargeAllocations, Measured};
use crate::clients::{BenchClient, Patience};
use crate::statistics::{Draw, keys, quantile_us, tick};
use crate::usage::Usage;
use anyhow::ensure;
use std::time::Instant;

/// The key that the parent filled with a value of so many bytes.
pub(crate) fn large_key(value_bytes: usize) -> String {
    format!("large:{value_bytes}")
}

/// Small replies before and after the large one.
const SMALL: usize = 2_000;

/// Reads the large value `replies` times; with counters it counts bytes instead of time.
pub(crate) async fn run<C: BenchClient>(
    port: u16,
    value_bytes: usize,
    replies: usize,
    counters: Option<Counters>,
) -> anyhow::Result<Measured> {
    let mut client = C::connect(port, Patience::Long).await?;
    let keys = keys();
    let large = large_key(value_bytes);
    small_p99_us(&mut client, &keys).await?;
    if let Some(counters) = counters {
        return count(&mut client, &keys, &large, value_bytes, replies, counters).await;
    }
    let small_p99_before_us = small_p99_us(&mut client, &keys).await?;
    read(&mut client, &large, value_bytes).await?;
    let small_p99_after_us = small_p99_us(&mut client, &keys).await?;

    let usage = Usage::now()?;
    let started = Instant::now();
    for _ in 0..replies {
        read(&mut client, &large, value_bytes).await?;
    }
    let elapsed = started.elapsed();
    let usage = Usage::now()?.since(usage);
    let payload = (value_bytes * replies) as f64;
    Ok(Measured::Large(Large {
        value_bytes,
        mb_per_second: payload / 1e6 / elapsed.as_secs_f64(),
        cpu_ms: usage.cpu().as_secs_f64() * 1e3 / replies as f64,
        small_p99_before_us,
        small_p99_after_us,
    }))
}

async fn count<C: BenchClient>(
    client: &mut C,
    keys: &[String],
    large: &str,
    value_bytes: usize,
    replies: usize,
    counters: Counters,
) -> anyhow::Result<Measured> {
    (counters.peak_reset)();
    let before = (counters.snapshot)();
    for _ in 0..replies {
        read(client, large, value_bytes).await?;
    }
    let after = (counters.snapshot)();
    let peak = (counters.peak)();
    small_p99_us(client, keys).await?;
    let kept = (counters.snapshot)();
    Ok(Measured::LargeAllocations(LargeAllocations {
        value_bytes,
        asked: (after.bytes - before.bytes) as f64 / (value_bytes * replies) as f64,
        peak: peak as f64 / value_bytes as f64,
        kept_bytes: kept.live() as i64 - before.live() as i64,
    }))
}

async fn read<C: BenchClient>(client: &mut C, key: &str, value_bytes: usize) -> anyhow::Result<()> {
    let length = client.get(key).await?;
    ensure!(length == value_bytes, "a value of {length} bytes instead of {value_bytes}");
    Ok(())
}

/// p99 of sequential small replies.
async fn small_p99_us<C: BenchClient>(client: &mut C, keys: &[String]) -> anyhow::Result<f64> {
    let mut draw = Draw::new(0);
    let mut ticks = Vec::with_capacity(SMALL);
    for _ in 0..SMALL {
        let started = Instant::now();
        client.get(&keys[draw.index()]).await?;
        ticks.push(tick(started.elapsed()));
    }
    ticks.sort_unstable();
    Ok(quantile_us(&ticks, 0.99))
}

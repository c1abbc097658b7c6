//! What a hit costs, and what one hot key costs when many tasks ask for it at once.
//!
//! `cargo run --release -p towline-client --example cache_cost`; another server: `REDIS_URL=redis://db.example`. Times are of the
//! processor, as Linux counts them for the thread.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use bytes::Bytes;
use towline_client::{Cache, CacheOptions, Client, ConnectOptions, cmd};

const KEYS: usize = 10_000;
const ROUNDS: usize = 100;
const TASKS: usize = 64;
const CHANGES: u64 = 2_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".into());
    let options: ConnectOptions = url.parse()?;
    let client = Client::open(options.client_cache(CacheOptions::new())).await?;
    let cache = client.cache()?;
    let keys: Vec<String> = (0..KEYS).map(|number| format!("cache-cost:{number:06}")).collect();
    for key in &keys {
        client.set(key, "a value of thirty-two bytes, so.").await?;
    }
    // The second time they are kept: a read that its own write's announcement crosses is not.
    for key in keys.iter().chain(&keys) {
        cache.get::<Bytes>(key).await?;
    }
    let begun = processor_nanos()?;
    for _ in 0..ROUNDS {
        for key in &keys {
            cache.get::<Bytes>(key).await?;
        }
    }
    let get = (processor_nanos()? - begun) / (ROUNDS * KEYS) as u64;
    let begun = processor_nanos()?;
    for _ in 0..ROUNDS {
        for key in &keys {
            cache.query::<Bytes>(cmd("GETRANGE").arg((key, 0, -1))).await?;
        }
    }
    let query = (processor_nanos()? - begun) / (ROUNDS * KEYS) as u64;
    let report = cache.report();
    println!("a hit by get: {get} ns; by query (GETRANGE, its misses included): {query} ns");
    println!("{} entries, {} bytes each", report.entries, report.bytes / report.entries.max(1));

    let begun = processor_nanos()?;
    for key in keys.iter().cycle().take(KEYS * 10) {
        client.get::<Bytes>(key).await?;
    }
    let plain = (processor_nanos()? - begun) / (KEYS * 10) as u64;
    println!("without the cache, one at a time: {plain} ns of this process for each");
    hot_key(&client, &cache, &keys[0]).await?;
    for part in keys.chunks(1000) {
        cmd("DEL").arg(part).query::<()>(&client).await?;
    }
    Ok(())
}

/// Many tasks read one key, which changes all the time.
async fn hot_key(client: &Client, cache: &Cache, key: &str) -> Result<(), Box<dyn std::error::Error>> {
    let before = cache.report().counters;
    let readers: Vec<_> = (0..TASKS)
        .map(|_| {
            let (cache, key) = (cache.clone(), key.to_owned());
            tokio::spawn(async move {
                loop {
                    if cache.get::<Bytes>(&key).await.is_err() {
                        return;
                    }
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for number in 0..CHANGES {
        client.set(key, number.to_string()).await?;
        tokio::time::sleep(Duration::from_micros(500)).await;
    }
    readers.iter().for_each(tokio::task::JoinHandle::abort);
    let after = cache.report().counters;
    println!(
        "{TASKS} tasks on one key that changed {CHANGES} times: {} reads from the server, {} shared them, {} hits",
        after.misses - before.misses,
        after.coalesced - before.coalesced,
        after.hits - before.hits
    );
    Ok(())
}

/// What this thread has used of the processor.
fn processor_nanos() -> std::io::Result<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos = text.split(' ').next().and_then(|word| word.parse().ok());
    nanos.ok_or_else(|| std::io::Error::other("schedstat has no number"))
}

//! A cache in this process that the server keeps true.
//!
//! `cargo run -p towline-client --example caching`; another server: `REDIS_URL=redis://db.example`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::HashMap;
use std::time::Duration;

use towline_client::commands::Commands;
use towline_client::{CacheOptions, Client, ConnectOptions, cmd};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".into());
    let options: ConnectOptions = url.parse()?;
    let caching = CacheOptions::new().bytes_max(16 * 1024 * 1024).max_age(Duration::from_secs(60));
    let client = Client::open(options.clone().client_cache(caching)).await?;
    let cache = client.cache()?;
    client.set("user:1", "ada").await?;

    println!("first: {}", cache.get::<String>("user:1").await?);
    let again: String = cache.get("user:1").await?;
    println!("again: {again}, hits: {}", cache.report().counters.hits);

    // Another client changes it. The server says so, and the next read asks again.
    let other = Client::open(options).await?;
    other.set("user:1", "grace").await?;
    while cache.report().counters.invalidated == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    println!("changed by another client: {}", cache.get::<String>("user:1").await?);

    // Who asks for the same at the same time shares one read.
    let before = cache.report().counters.misses;
    cache.forget("user:1");
    let readers: Vec<_> = (0..20)
        .map(|_| {
            let cache = cache.clone();
            tokio::spawn(async move { cache.get::<String>("user:1").await })
        })
        .collect();
    for reader in readers {
        reader.await??;
    }
    println!("twenty readers, one read: {}", cache.report().counters.misses == before + 1);

    // Any command that reads one key; with the trait `Commands` as methods.
    cmd("HSET").arg(("user:1:fields", "name", "ada", "born", 1815)).query::<()>(&client).await?;
    let fields: HashMap<String, String> = cache.hgetall("user:1:fields").await?;
    println!("fields: {}", fields.len());

    // What writes, or depends on more than its key, is refused before anything is sent.
    if let Err(error) = cache.query::<i64>(cmd("INCR").arg("visits")).await
        && error.sent() == towline_client::Sent::No
    {
        println!("not kept: INCR");
    }
    cmd("DEL").arg(["user:1", "user:1:fields"]).query::<()>(&client).await?;
    Ok(())
}

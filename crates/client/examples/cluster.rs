//! A cluster: commands, keys of several nodes, a scan, and what the client knows of it.
//!
//! `cargo run -p towline-client --example cluster -- "redis://127.0.0.1:7000/?cluster=true"`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use towline_client::{Client, cmd, pipe};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:7000/?cluster=true".into());
    let client = Client::connect(&url).await?;

    for name in ["ada", "grace", "edsger", "barbara"] {
        client.set(format!("user:{name}"), name).await?;
    }
    let names: Vec<String> =
        cmd("MGET").arg(["user:ada", "user:grace", "user:edsger"]).query(&client).await?;
    println!("of several nodes: {names:?}");

    let (visits, name): (i64, String) =
        pipe().cmd("INCR").arg("visits").cmd("GET").arg("user:barbara").query(&client).await?;
    println!("in one pipeline: {visits} and {name}");

    let mut count = 0;
    let mut scan = client.scan_all().pattern("user:*").start();
    while let Some(keys) = scan.next().await? {
        count += keys.len();
    }
    println!("by a scan of all nodes: {count} keys");

    for node in client.cluster_report().into_iter().flat_map(|report| report.nodes) {
        let role = if node.is_replica { "replica" } else { "primary" };
        println!("{} is a {role} with {} slots", node.address, node.slots);
    }
    Ok(())
}

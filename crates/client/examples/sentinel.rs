//! A primary that sentinels watch: it is used as one server, and a failover is a pause.
//!
//! `cargo run -p towline-client --example sentinel -- redis-sentinel://127.0.0.1:26379/mymaster`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;
use towline_client::{Client, ConnectOptions, pipe};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis-sentinel://127.0.0.1:26379/mymaster".into());
    // Sentinels take their time to agree that a primary has died: commands wait for its heir.
    let options: ConnectOptions = url.parse()?;
    let client = Client::open(options.command_timeout(Duration::from_secs(45))).await?;

    client.set("greeting", "hello").await?;
    let (visits, greeting): (i64, String) =
        pipe().cmd("INCR").arg("visits").cmd("GET").arg("greeting").atomic().query(&client).await?;
    println!("{greeting}, visitor {visits}");

    for node in client.cluster_report().into_iter().flat_map(|report| report.nodes) {
        println!("{} is the {}", node.address, if node.is_replica { "replica" } else { "primary" });
    }
    Ok(())
}

//! What becomes of commands while no server is there, by policy.
//!
//! `REDIS_URL=redis://127.0.0.1:6379 cargo run -p towline-client --example backlog_policy`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;
use towline_client::{Client, ConnectOptions, Policy, cmd};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".to_owned());
    let policies = [
        // The default. Most interruptions are shorter than a deadline.
        ("Queue", Policy::Queue),
        // For callers who would rather do without than wait.
        ("FailFast", Policy::FailFast),
        // Waits, but never for long, and never with more than a megabyte.
        ("Bounded", Policy::Bounded { bytes: 1 << 20, age: Duration::from_millis(50) }),
    ];
    for (name, policy) in policies {
        // Nobody listens on port 1.
        let nowhere: ConnectOptions = "redis://127.0.0.1:1".parse()?;
        let client = Client::lazy(nowhere.backlog(policy))?;
        let get = cmd("GET").arg("key").deadline(Duration::from_millis(300));
        if let Err(error) = get.query::<Option<String>>(&client).await {
            println!("{name}, no server: {}; sent: {:?}", error.kind(), error.sent());
        }

        // A command may be there before its connection is.
        let client = Client::lazy(url.parse::<ConnectOptions>()?.backlog(policy))?;
        if policy == Policy::FailFast {
            client.ready().await?;
        }
        println!("{name}, a server: {}", cmd("PING").query::<String>(&client).await?);
    }
    Ok(())
}

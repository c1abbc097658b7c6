//! Writes and reads a key, and shows what a missing key and an error look like.
//!
//! `REDIS_URL=redis://127.0.0.1:6379 cargo run -p towline-client --example get_set`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;
use towline_client::{Client, Error, cmd};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".to_owned());
    let client = Client::connect(&url).await?;

    client.set("greeting", "hello").await?;
    let greeting: String = client.get("greeting").await?;
    println!("greeting: {greeting}");

    let missing: Option<String> = client.get("no-such-key").await?;
    println!("missing: {missing:?}");

    // Any command, here with a deadline of its own. The type says what its reply has to be.
    let second = Duration::from_secs(1);
    let length: i64 = cmd("APPEND").arg("greeting").arg(" world").deadline(second).query(&client).await?;
    println!("length: {length}");

    // An error says what happened, and whether the server may have run the command.
    match cmd("LPUSH").arg("greeting").arg("x").query::<i64>(&client).await {
        Ok(length) => println!("a list of {length}"),
        Err(error) => println!("error: {:?}, sent: {:?}", error.code(), error.sent()),
    }
    Ok(())
}

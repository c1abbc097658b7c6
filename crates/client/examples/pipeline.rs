//! Sends several commands in one round trip.
//!
//! `REDIS_URL=redis://127.0.0.1:6379 cargo run -p towline-client --example pipeline`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use towline_client::{Client, Error, pipe};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".to_owned());
    let client = Client::connect(&url).await?;

    // One place for each reply that is wanted.
    let setup = pipe().cmd("SET").arg("visits").arg(41).ignore().cmd("SET").arg("name").arg("ada").ignore();
    let (visits, name): (i64, String) =
        setup.cmd("INCR").arg("visits").cmd("GET").arg("name").query(&client).await?;
    println!("visits: {visits}, name: {name}");

    // The commands are independent: one that fails does not stop the others, and each has its own result.
    let mixed = pipe().cmd("INCR").arg("name").cmd("INCR").arg("visits");
    for (number, result) in mixed.results(&client).await?.into_iter().enumerate() {
        match result {
            Ok(reply) => println!("{number}: {reply:?}"),
            Err(error) => println!("{number}: {error}"),
        }
    }

    // Commands of concurrent tasks share system calls by themselves: no pipeline is needed for speed.
    let (visits, name) = tokio::join!(client.get::<i64>("visits"), client.get::<String>("name"));
    println!("visits: {}, name: {}", visits?, name?);
    Ok(())
}

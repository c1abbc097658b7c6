//! Moves money between two accounts, all or nothing, and knows how it ended.
//!
//! `REDIS_URL=redis://127.0.0.1:6379 cargo run -p towline-client --example transaction`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use towline_client::{Client, Error, Pipeline, Transacted, pipe};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".to_owned());
    let client = Client::connect(&url).await?;
    client.set("account:a", "100").await?;
    client.set("account:b", "0").await?;

    let transfer = pipe().atomic().cmd("DECRBY").arg("account:a").arg(30);
    run(&client, transfer.cmd("INCRBY").arg("account:b").arg(30)).await?;

    // A command that the server does not know: nothing of the transaction runs.
    let broken = pipe().atomic().cmd("DECRBY").arg("account:a").arg(30);
    run(&client, broken.cmd("NOSUCHCOMMAND").arg("account:b")).await?;

    let balance: i64 = client.get("account:a").await?;
    println!("balance: {balance}");
    Ok(())
}

/// How a transaction can end, an error before it was sent apart.
async fn run(client: &Client, transaction: Pipeline) -> Result<(), Error> {
    match transaction.transact::<(i64, i64)>(client).await? {
        Transacted::Committed((from, to)) => println!("committed: {from} and {to}"),
        Transacted::Refused(answer) => println!("refused, nothing ran: {}", answer.code()),
        // Only on a lease, which is where keys are watched.
        Transacted::Conflict => println!("a watched key has changed, nothing ran"),
        // The connection broke in between. Look at the data before trying again; the client does not.
        Transacted::Unknown(error) => println!("it ran as a whole or not at all: {error}"),
    }
    Ok(())
}

//! Subscribes to a channel and to a pattern, and publishes to both.
//!
//! `REDIS_URL=redis://127.0.0.1:6379 cargo run -p towline-client --example pubsub`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use towline_client::{Client, Error, PubSubEvent, Subscription};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".to_owned());
    let client = Client::connect(&url).await?;

    // Confirmed by the server when this returns: everything published from now on arrives.
    let mut orders = client.subscribe(["orders", "refunds"]).await?;
    let mut audit = client.psubscribe(["order*"]).await?;

    // Another task, process or machine would do this.
    for number in 1..=3 {
        let receivers = client.publish("orders", format!("order {number}")).await?;
        println!("published order {number} to {receivers} subscriptions");
    }

    for _ in 0..3 {
        show("channel", &mut orders).await;
        show("pattern", &mut audit).await;
    }

    // Channels come and go while the subscription lives; dropping it unsubscribes from all.
    orders.add(["returns"]).await?;
    orders.remove(["refunds"]);
    client.publish("returns", "order 2").await?;
    show("channel", &mut orders).await;
    Ok(())
}

/// Takes one event, and says what each kind of them means.
async fn show(what: &str, subscription: &mut Subscription) {
    match subscription.next().await {
        Some(PubSubEvent::Message { channel, payload, .. }) => {
            let (channel, payload) = (String::from_utf8_lossy(&channel), String::from_utf8_lossy(&payload));
            println!("{what}: {channel}: {payload}");
        }
        // The connection was lost and is back. Read the current state from where it is kept, then go on.
        Some(PubSubEvent::Gap { name, .. }) => println!("{what}: messages of {name:?} may be missing here"),
        // This program was too slow.
        Some(PubSubEvent::Dropped { messages, .. }) => {
            println!("{what}: {messages} messages were dropped here")
        }
        Some(PubSubEvent::Refused { name, error }) => {
            println!("{what}: {name:?} is no longer allowed: {error}")
        }
        Some(other) => println!("{what}: {other:?}"),
        None => println!("{what}: the client has ended"),
    }
}

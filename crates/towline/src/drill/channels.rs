//! Numbered messages from publishers to subscribers.
//!
//! Owns the publishers and the subscribers of the script `pubsub`. Does not own the account ([`super::delivery`]).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};
use towline_client::{Client, PubSubEvent, Subscription, cmd};

use super::delivery::Stream;
use super::ledger::Outcome;
use super::load::{Plan, failure};
use crate::bench::ErrorTally;

/// Channels, each with one publisher and one subscriber.
const CHANNELS: usize = 4;

/// The time between two messages of a channel.
const PUBLISH_EVERY: Duration = Duration::from_millis(1);

/// How long a subscriber may take to hear of the end.
const END_MAX: Duration = Duration::from_secs(2);

/// How often the end is said, for a subscriber that has only just come back.
const END_EVERY: Duration = Duration::from_millis(50);

/// What tells a subscriber to stop.
const END: &[u8] = b"end";

/// The channels and what is known besides their messages.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) streams: Vec<Stream>,
    /// Gaps that the client has told of.
    pub(super) gaps: u64,
    /// Subscriptions that ended or never heard the end.
    pub(super) failed: u64,
    pub(super) errors: ErrorTally,
}

#[derive(Debug, Default)]
struct Received {
    numbers: Vec<u32>,
    gaps: u64,
    is_deaf: bool,
}

type Shared = Arc<Mutex<Received>>;

fn name(channel: usize) -> String {
    format!("drill:channel:{channel}")
}

/// Publishes and listens until the plan's end; `admin` is a client whose connection is not moved.
///
/// # Errors
/// Nothing can be subscribed at the start, or a task panicked.
pub(super) async fn run(clients: &[Client], admin: &Client, plan: &Arc<Plan>) -> Result<Heard> {
    let mut subscribers = JoinSet::new();
    let mut publishers = JoinSet::new();
    let mut received = Vec::new();
    for channel in 0..CHANNELS {
        let client = &clients[channel % clients.len()];
        let subscription = client.subscribe([name(channel)]).await.context("cannot subscribe")?;
        let shared = Shared::default();
        received.push(Arc::clone(&shared));
        subscribers.spawn(listen(subscription, shared));
    }
    for channel in 0..CHANNELS {
        publishers.spawn(publish(channel, clients[channel % clients.len()].clone(), Arc::clone(plan)));
    }
    let mut heard = Heard { streams: (0..CHANNELS).map(|_| Stream::default()).collect(), ..Heard::default() };
    while let Some(publisher) = publishers.join_next().await {
        let (channel, produced, errors) = publisher.context("a publisher's task failed")?;
        heard.streams[channel].produced = produced;
        heard.errors.merge(&errors);
    }
    if timeout(END_MAX, end(admin, &mut subscribers)).await.is_err() {
        heard.failed += subscribers.len() as u64;
        heard.errors.add("a subscriber hears nothing any more", subscribers.len() as u64);
        subscribers.shutdown().await;
    }
    for (stream, shared) in heard.streams.iter_mut().zip(received) {
        let received = std::mem::take(&mut *shared.lock().unwrap_or_else(PoisonError::into_inner));
        stream.consumed.push(received.numbers);
        heard.gaps += received.gaps;
        if received.is_deaf {
            heard.failed += 1;
            heard.errors.add("a subscription ended", 1);
        }
    }
    Ok(heard)
}

/// Says the end until every subscriber has heard it.
async fn end(admin: &Client, subscribers: &mut JoinSet<()>) {
    let mut ticks = interval(END_EVERY);
    while !subscribers.is_empty() {
        tokio::select! {
            _ = subscribers.join_next() => {}
            _ = ticks.tick() => {
                for channel in 0..CHANNELS {
                    // A server that does not answer the drill leaves the subscribers deaf, which is counted.
                    let _ = admin.publish(name(channel), END).await;
                }
            }
        }
    }
}

async fn publish(channel: usize, client: Client, plan: Arc<Plan>) -> (usize, Vec<Outcome>, ErrorTally) {
    let (mut produced, mut errors) = (Vec::new(), ErrorTally::default());
    let end = Instant::from_std(plan.start) + plan.end;
    let mut ticks = interval(PUBLISH_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while Instant::now() < end {
        let publish = cmd("PUBLISH").arg(name(channel)).arg(produced.len()).no_retry();
        produced.push(match publish.query::<i64>(&client).await {
            Ok(receivers) => Outcome::Number(receivers),
            Err(error) => failure(&error, &mut errors),
        });
        ticks.tick().await;
    }
    // What is under way to the subscriber is not lost.
    sleep_until(Instant::now() + END_EVERY).await;
    (channel, produced, errors)
}

async fn listen(mut subscription: Subscription, shared: Shared) {
    while let Some(event) = subscription.next().await {
        let mut received = shared.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            PubSubEvent::Message { payload, .. } if payload == END => return,
            PubSubEvent::Message { payload, .. } => {
                let number = std::str::from_utf8(&payload).ok().and_then(|text| text.parse().ok());
                received.numbers.extend(number.or(Some(u32::MAX)));
            }
            PubSubEvent::Gap { .. } | PubSubEvent::Dropped { .. } => received.gaps += 1,
            _ => received.gaps += 1,
        }
    }
    shared.lock().unwrap_or_else(PoisonError::into_inner).is_deaf = true;
}

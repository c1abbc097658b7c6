//! What can be seen of a client.
//!
//! Owns the stream of events and the ways to the snapshot and the counters. Does not own what is counted (the bridge),
//! nor when events come about ([`crate::driver`]). Nothing here costs a command anything.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use towline_client_proto::{Counters, Event, Snapshot};

use crate::client::{Client, Way};

/// What happens to a client's connection, in order, from the call of [`Client::events`] on. Ends after
/// [`Event::Closed`].
///
/// A listener that is more than 1024 events behind loses the oldest, and [`Event::Missed`] stands in their place.
///
/// ```no_run
/// # async fn example() -> Result<(), towline_client::Error> {
/// let client = towline_client::Client::connect("redis://localhost").await?;
/// let mut events = client.events();
/// tokio::spawn(async move {
///     while let Some(event) = events.next().await {
///         eprintln!("redis: {event}");
///     }
/// });
/// # Ok(())
/// # }
/// ```
#[must_use = "events that nobody reads are lost"]
pub struct Events {
    receive: Receive,
    is_over: bool,
}

/// One receive under way; it gives the receiver back, so that a dropped `next` loses nothing.
type Receive = Pin<Box<dyn Future<Output = (Result<Event, RecvError>, Receiver<Event>)> + Send>>;

fn receive(mut from: Receiver<Event>) -> Receive {
    Box::pin(async move {
        let event = from.recv().await;
        (event, from)
    })
}

impl Events {
    /// The next event; `None` after the last.
    ///
    /// # Cancel safety
    /// Dropping the future loses no event.
    pub async fn next(&mut self) -> Option<Event> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }
}

impl Stream for Events {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let (event, from) = ready!(self.receive.as_mut().poll(cx));
        self.receive = receive(from);
        let event = match event {
            Ok(event) => event,
            Err(RecvError::Lagged(count)) => Event::Missed { count },
            // Nobody is left who could say anything.
            Err(RecvError::Closed) => Event::Closed,
        };
        self.is_over = event == Event::Closed;
        Poll::Ready(Some(event))
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").field("is_over", &self.is_over).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let engine = match &self.inner.way {
            Way::Endpoint(engine) => engine,
            Way::Cluster(cluster) => return f.debug_tuple("Client").field(cluster).finish(),
        };
        let state = engine.lock();
        let (link, generation) = (state.bridge.link_state(), state.bridge.generation());
        f.debug_struct("Client").field("link", &link).field("generation", &generation).finish_non_exhaustive()
    }
}

impl Client {
    /// What happens to the connection from now on: connected, lost and why, dials and handshakes that failed,
    /// fire-and-forget commands that failed. Any number of listeners may follow; none of them holds anything up.
    pub fn events(&self) -> Events {
        let from = self.inner.events.subscribe();
        let is_ended = match &self.inner.way {
            Way::Endpoint(_) => self.inner.is_ended(),
            Way::Cluster(cluster) => cluster.is_closed(),
        };
        if is_ended {
            // Its last word may have been said already: a channel without a sender says it again.
            let (_, over) = tokio::sync::broadcast::channel(1);
            return Events { receive: receive(over), is_over: false };
        }
        Events { receive: receive(from), is_over: false }
    }

    /// The state of the client at this moment, for a person or a bug report: [`Snapshot::to_json`] is one line of it.
    /// No key, no value and no credentials are in it. Holds the engine's lock for about a microsecond. Of a cluster's client: the
    /// sums over its nodes, with the state of the least connected one; [`Client::cluster_report`] has them one by one.
    pub fn snapshot(&self) -> Snapshot {
        let mut snapshot = match &self.inner.way {
            Way::Endpoint(_) => self.inner.snapshot(),
            Way::Cluster(cluster) => cluster.snapshot(),
        };
        self.inner.cache.iter().for_each(|cache| cache.count(&mut snapshot.counters));
        snapshot
    }

    /// Totals since the client began, for a metrics exporter ([`Counters::iter`] has their names). Cheap: one lock
    /// and one copy, no allocation.
    pub fn metrics(&self) -> Counters {
        let mut counters = match &self.inner.way {
            Way::Endpoint(_) => self.inner.counters(),
            Way::Cluster(cluster) => cluster.counters(),
        };
        self.inner.cache.iter().for_each(|cache| cache.count(&mut counters));
        counters
    }
}

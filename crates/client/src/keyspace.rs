//! What happens to keys, as a stream.
//!
//! Owns the names of the channels and what their messages mean. Does **not** own the subscription ([`Subscription`]),
//! nor the server's switch: without `notify-keyspace-events` nothing comes.
//!
//! Source: <https://redis.io/docs/latest/develop/pubsub/keyspace-notifications/>.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use towline_client_proto::Error;

use crate::client::Client;
use crate::pubsub::{PubSubEvent, Subscription};

/// What happens to keys; see [`Client::keyspace_events`].
pub struct KeyspaceEvents {
    subscription: Subscription,
    /// What every channel begins with.
    prefix: Vec<u8>,
}

/// What [`KeyspaceEvents`] yields, in the order in which the server tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyspaceEvent {
    /// Something was done to a key.
    Happened {
        /// The key.
        key: Bytes,
        /// What was done: `set`, `del`, `expired`, `hset`, ... as the server names it.
        event: Bytes,
    },
    /// Events may be missing or doubled here, for the reason in it; look at the keys themselves.
    Unsure(PubSubEvent),
}

impl Client {
    /// What happens to the keys of a database whose names match the pattern (`*` is all). The server must have been told
    /// to say it: `CONFIG SET notify-keyspace-events KA`, or fewer classes. In a cluster each node speaks of its own keys
    /// only.
    ///
    /// ```no_run
    /// # async fn run(client: towline_client::Client) -> Result<(), towline_client::Error> {
    /// use towline_client::KeyspaceEvent;
    ///
    /// let mut sessions = client.keyspace_events(0, "session:*").await?;
    /// while let Some(event) = sessions.next().await {
    ///     match event {
    ///         KeyspaceEvent::Happened { key, event } => println!("{key:?}: {event:?}"),
    ///         other => println!("look at the keys: {other:?}"),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Client::subscribe`].
    ///
    /// # Cancel safety
    /// As [`Client::subscribe`].
    pub async fn keyspace_events(
        &self,
        database: u32,
        pattern: impl AsRef<[u8]>,
    ) -> Result<KeyspaceEvents, Error> {
        let prefix = format!("__keyspace@{database}__:").into_bytes();
        let name = [&prefix, pattern.as_ref()].concat();
        let subscription = self.psubscribe([name]).await?;
        Ok(KeyspaceEvents { subscription, prefix })
    }
}

impl KeyspaceEvents {
    /// The next event; `None` if the server refuses the connection for good.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn next(&mut self) -> Option<KeyspaceEvent> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }
}

impl Stream for KeyspaceEvents {
    type Item = KeyspaceEvent;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<KeyspaceEvent>> {
        let events = self.get_mut();
        Pin::new(&mut events.subscription).poll_next(cx).map(|event| {
            event.map(|event| match event {
                PubSubEvent::Message { channel, payload, .. } if channel.starts_with(&events.prefix) => {
                    KeyspaceEvent::Happened { key: channel.slice(events.prefix.len()..), event: payload }
                }
                other => KeyspaceEvent::Unsure(other),
            })
        })
    }
}

impl fmt::Debug for KeyspaceEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyspaceEvents").field(&self.subscription).finish()
    }
}

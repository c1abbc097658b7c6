//! Publish and subscribe: streams of what is published, with nothing lost in silence.
//!
//! Owns [`Subscription`], what it yields, and the life of the connection that subscriptions share. Does **not** own
//! what is subscribed on it and how that comes back after a loss (the bridge), nor anything about keyspace
//! notifications: those are messages like others.
//!
//! Subscriptions never use the connection of commands: both protocols are served alike, a flood of messages delays no
//! reply, and no confirmation can be taken for one. All subscriptions of a client share one connection, made for the
//! first of them and closed some seconds after the last has gone.
//!
//! ```no_run
//! use towline_client::{Client, PubSubEvent};
//!
//! # async fn run() -> Result<(), towline_client::Error> {
//! let client = Client::connect("redis://localhost").await?;
//!
//! // Keyspace notifications, once the server has `notify-keyspace-events KEA`: what happens to keys of database 0.
//! let mut keys = client.psubscribe(["__keyspace@0__:session:*"]).await?;
//! while let Some(event) = keys.next().await {
//!     match event {
//!         PubSubEvent::Message { channel, payload, .. } => println!("{channel:?}: {payload:?}"),
//!         // Some may be missing here: look at the keys themselves.
//!         other => println!("{other:?}"),
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod pending;

use pending::{Pending, renewed};
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use towline_client_proto::subscriptions::{Item, Kind, SubscriberId};
use towline_client_proto::{
    Error, ErrorKind, Generation, LinkState, PubSubConfig, Sent, ServerError, Snapshot,
};

pub use towline_client_proto::subscriptions::Overflow;
use towline_cluster::Slot;

use crate::client::{Client, Way};
use crate::clock;
use crate::cluster::{Follow, one_slot, several_slots};
use crate::cmd::cmd;
use crate::driver::Life;
use crate::engine::{Engine, wake_owner};
use crate::lanes::start_engine;
use crate::options::ConnectOptions;
use crate::transport::Connector;

/// Most bytes that wait for the reader of a [`Subscription`], unless it says otherwise: 8 MiB. That is how far a
/// server with its default `client-output-buffer-limit pubsub 32mb 8mb 60` lets a subscriber fall behind for long, so
/// that a reader who is slower than that would not have lasted without a buffer on this side either.
pub const BUFFER_BYTES_DEFAULT: usize = 8 * 1024 * 1024;

/// What a [`Subscription`] yields, in the order in which it happened.
///
/// A consumer that reads nothing but messages is right until the first loss. Everything else says where something may
/// be missing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PubSubEvent {
    /// A message.
    Message {
        /// The channel that it was published to.
        channel: Bytes,
        /// The pattern that it came by, if it did.
        pattern: Option<Bytes>,
        /// What was published.
        payload: Bytes,
    },
    /// Messages may be missing here, because the connection was lost and the server keeps nothing for who is not
    /// there. From here on none are, until the next such event. One for each name that was subscribed.
    Gap {
        /// The channel or the pattern.
        name: Bytes,
        /// The connection that the messages before it came by.
        from: Generation,
        /// The one that those after it come by; the same if the server ended the subscription for a while, as it does
        /// when a shard channel's slot moves.
        to: Generation,
    },
    /// The server moved, and the subscription goes on by another connection here: nothing is missing, but messages that
    /// follow may be ones that came shortly before it already. Only said where a move could not be made without it: see
    /// [`Subscription`].
    Overlap {
        /// The connection that the messages before it came by.
        from: Generation,
        /// The one that those after it come by.
        to: Generation,
    },
    /// Events are missing here, because the reader was too slow and its buffer full.
    Dropped {
        /// How many messages.
        messages: u64,
        /// How many [`Gap`](Self::Gap), [`Overlap`](Self::Overlap) and [`Refused`](Self::Refused) events.
        others: u64,
        /// The bytes of all of them, as the buffer counts.
        bytes: u64,
    },
    /// The server no longer allows a subscription that it had confirmed: a permission was taken away. It is asked
    /// again on the next connection, and a [`Gap`](Self::Gap) follows if it agrees then.
    Refused {
        /// The channel or the pattern.
        name: Bytes,
        /// Why.
        error: ServerError,
    },
}

impl From<Item> for PubSubEvent {
    fn from(item: Item) -> Self {
        match item {
            Item::Message(message) => {
                Self::Message { channel: message.channel, pattern: message.pattern, payload: message.payload }
            }
            Item::Gap(gap) => Self::Gap { name: gap.name, from: gap.from, to: gap.to },
            Item::Overlap(overlap) => Self::Overlap { from: overlap.from, to: overlap.to },
            Item::Refused(refused) => Self::Refused { name: refused.name, error: refused.error },
            Item::Lagged(lagged) => {
                Self::Dropped { messages: lagged.messages, others: lagged.others, bytes: lagged.bytes }
            }
        }
    }
}

/// What was dropped from a [`Subscription`]'s buffer since its beginning; see [`PubSubEvent::Dropped`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DroppedTotals {
    /// Messages.
    pub messages: u64,
    /// Other events.
    pub others: u64,
    /// The bytes of all of them, as the buffer counts.
    pub bytes: u64,
}

/// The connection that a client's subscriptions share.
pub(crate) struct Hub {
    options: ConnectOptions,
    connector: Connector,
    /// Where it leads in a cluster.
    follow: Option<Follow>,
    connection: Mutex<HubConnection>,
}

enum HubConnection {
    /// Nobody has subscribed yet.
    None,
    /// It ends by itself when it is not needed, and is made anew when it is.
    Made(Arc<Engine>),
    /// The client has ended: it is made no more. What was left of it ends with its last subscription.
    Closed(Option<Arc<Engine>>),
}

impl HubConnection {
    const fn engine(&self) -> Option<&Arc<Engine>> {
        match self {
            Self::Made(engine) | Self::Closed(Some(engine)) => Some(engine),
            Self::None | Self::Closed(None) => None,
        }
    }
}

impl Hub {
    pub(crate) const fn new(options: ConnectOptions, connector: Connector) -> Self {
        Self { options, connector, follow: None, connection: Mutex::new(HubConnection::None) }
    }

    /// One whose connections lead where `follow` says.
    pub(crate) const fn following(options: ConnectOptions, connector: Connector, follow: Follow) -> Self {
        Self { options, connector, follow: Some(follow), connection: Mutex::new(HubConnection::None) }
    }

    /// Its connection, if there is one, and the way of it.
    pub(crate) fn engine_and_way(&self) -> Option<(Arc<Engine>, Follow)> {
        let engine = self.lock().engine().cloned()?;
        Some((engine, self.follow.clone()?))
    }

    /// A new subscriber, and a connection for it if there is none.
    fn open(&self, bytes_max: usize, overflow: Overflow) -> Result<(Arc<Engine>, SubscriberId), Error> {
        if self.options.is_proxy() {
            return Err(Error::misuse("a proxy that shares its connections carries no subscriptions"));
        }
        let mut slot = self.lock();
        if let HubConnection::Closed(_) = *slot {
            return Err(Error::new(ErrorKind::Closed, Sent::No));
        }
        if let Some(engine) = slot.engine() {
            let mut state = engine.lock();
            if !state.bridge.is_closed() {
                let id = state.bridge.open_subscriber(bytes_max, overflow)?;
                drop(state);
                return Ok((Arc::clone(engine), id));
            }
        }
        let life = self.follow.clone().map_or(Life::Reconnects, Life::Follows);
        let attachment = self.follow.as_ref().map(|follow| follow.attachment.clone());
        let (engine, _) = start_engine(
            &self.options,
            self.connector.clone(),
            Some(PubSubConfig::default()),
            life,
            attachment,
        )
        .map_err(|error| Error::misuse(error.to_string()))?;
        let id = engine.lock().bridge.open_subscriber(bytes_max, overflow)?;
        *slot = HubConnection::Made(Arc::clone(&engine));
        Ok((engine, id))
    }
}

impl Hub {
    fn snapshot(&self) -> Option<Snapshot> {
        let slot = self.lock();
        let state = slot.engine()?.lock();
        (!state.bridge.is_closed()).then(|| state.bridge.snapshot(clock::now()))
    }

    fn lock(&self) -> MutexGuard<'_, HubConnection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client has ended: nobody subscribes any more.
    pub(crate) fn close(&self) {
        let mut slot = self.lock();
        let engine = slot.engine().cloned();
        *slot = HubConnection::Closed(engine.clone());
        drop(slot);
        if let Some(engine) = engine {
            let now = clock::now();
            let mut state = engine.lock();
            state.bridge.close_when_unused(now);
            wake_owner(state);
        }
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.close();
    }
}

/// How a subscription is to be made; see [`Client::subscription`].
#[derive(Debug, Clone)]
#[must_use = "nothing is subscribed until `subscribe`, `psubscribe` or `ssubscribe`"]
pub struct SubscriptionBuilder<'a> {
    client: &'a Client,
    bytes_max: usize,
    overflow: Overflow,
}

impl SubscriptionBuilder<'_> {
    /// Most bytes that wait for the reader: payloads and names, and 160 for each event. Default
    /// [`BUFFER_BYTES_DEFAULT`].
    pub const fn buffer_bytes_max(mut self, bytes: usize) -> Self {
        self.bytes_max = bytes;
        self
    }

    /// What is dropped when the buffer is full. Default: the oldest.
    pub const fn overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = overflow;
        self
    }

    /// As [`Client::subscribe`].
    ///
    /// # Errors
    /// As [`Client::subscribe`].
    ///
    /// # Cancel safety
    /// As [`Client::subscribe`].
    pub async fn subscribe<N: AsRef<[u8]>>(
        self,
        channels: impl IntoIterator<Item = N>,
    ) -> Result<Subscription, Error> {
        self.open(Kind::Channel, channels).await
    }

    /// As [`Client::psubscribe`].
    ///
    /// # Errors
    /// As [`Client::subscribe`].
    ///
    /// # Cancel safety
    /// As [`Client::subscribe`].
    pub async fn psubscribe<N: AsRef<[u8]>>(
        self,
        patterns: impl IntoIterator<Item = N>,
    ) -> Result<Subscription, Error> {
        self.open(Kind::Pattern, patterns).await
    }

    /// As [`Client::ssubscribe`].
    ///
    /// # Errors
    /// As [`Client::ssubscribe`].
    ///
    /// # Cancel safety
    /// As [`Client::subscribe`].
    pub async fn ssubscribe<N: AsRef<[u8]>>(
        self,
        channels: impl IntoIterator<Item = N>,
    ) -> Result<Subscription, Error> {
        self.open(Kind::Shard, channels).await
    }

    async fn open<N: AsRef<[u8]>>(
        self,
        kind: Kind,
        names: impl IntoIterator<Item = N>,
    ) -> Result<Subscription, Error> {
        let inner = &self.client.inner;
        let names: Vec<N> = names.into_iter().collect();
        let mut slot = None;
        match &inner.way {
            // Where no command may wait for a connection, no subscription may.
            Way::Endpoint(engine) if !engine.lock().bridge.may_wait(clock::now()) => {
                return Err(Error::new(ErrorKind::Unavailable, Sent::No));
            }
            Way::Cluster(cluster) if cluster.has_one_primary() => {
                cluster.ready_to_follow(inner.command_timeout).await?;
            }
            Way::Cluster(_) if kind == Kind::Shard => slot = one_slot(&names)?,
            Way::Endpoint(_) | Way::Cluster(_) => {}
        }
        let Some(hub) = inner.hub(slot) else { return Err(Error::new(ErrorKind::Closed, Sent::No)) };
        let (engine, id) = hub.open(self.bytes_max, self.overflow)?;
        let mut subscription = Subscription { engine, id, kind, slot, timeout: inner.command_timeout };
        subscription.add(names).await?;
        Ok(subscription)
    }
}

impl Client {
    /// Subscribes to channels. Returns once the server has confirmed every one of them: what is published after that
    /// is seen.
    ///
    /// ```no_run
    /// # async fn run(client: towline_client::Client) -> Result<(), towline_client::Error> {
    /// use towline_client::PubSubEvent;
    ///
    /// let mut news = client.subscribe(["news", "weather"]).await?;
    /// while let Some(event) = news.next().await {
    ///     if let PubSubEvent::Message { channel, payload, .. } = event {
    ///         println!("{channel:?}: {payload:?}");
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Nothing is subscribed in any of these cases. [`ErrorKind::Server`]: the server refuses a channel (`NOPERM`);
    /// [`ErrorKind::Handshake`]: it refuses the connection for good; [`ErrorKind::Connect`]: no connection within the
    /// command timeout, retryable; [`ErrorKind::Deadline`]: no confirmation within it; [`ErrorKind::Unavailable`]:
    /// nothing is connected, and the backlog policy does not wait, retryable; [`ErrorKind::Misuse`]: more names than
    /// [`NAMES_MAX`](towline_client_proto::subscriptions::NAMES_MAX).
    ///
    /// # Cancel safety
    /// Dropping it takes everything back.
    pub async fn subscribe<N: AsRef<[u8]>>(
        &self,
        channels: impl IntoIterator<Item = N>,
    ) -> Result<Subscription, Error> {
        self.subscription().subscribe(channels).await
    }

    /// Subscribes to patterns of channels: `news.*`, `h?llo`, `h[ae]llo`. A message that fits several patterns of one
    /// subscription comes once for each, as the server sends it.
    ///
    /// # Errors
    /// As [`Client::subscribe`].
    ///
    /// # Cancel safety
    /// As [`Client::subscribe`].
    pub async fn psubscribe<N: AsRef<[u8]>>(
        &self,
        patterns: impl IntoIterator<Item = N>,
    ) -> Result<Subscription, Error> {
        self.subscription().psubscribe(patterns).await
    }

    /// Subscribes to shard channels, whose messages stay within one shard of a cluster (`SPUBLISH`).
    ///
    /// # Errors
    /// As [`Client::subscribe`]; `MOVED` as well, if the channel's slot belongs to another node and this is not a cluster's client,
    /// which finds it and follows it. In a cluster all channels of one subscription must be in one slot
    /// ([`ErrorKind::Misuse`]).
    ///
    /// # Cancel safety
    /// As [`Client::subscribe`].
    pub async fn ssubscribe<N: AsRef<[u8]>>(
        &self,
        channels: impl IntoIterator<Item = N>,
    ) -> Result<Subscription, Error> {
        self.subscription().ssubscribe(channels).await
    }

    /// The state of the connection that the subscriptions share, as [`Client::snapshot`] is that of the commands'; `None`
    /// if there is none.
    pub fn pubsub_snapshot(&self) -> Option<Snapshot> {
        self.inner.hub(None)?.snapshot()
    }

    /// A subscription with other bounds than the usual.
    pub const fn subscription(&self) -> SubscriptionBuilder<'_> {
        SubscriptionBuilder { client: self, bytes_max: BUFFER_BYTES_DEFAULT, overflow: Overflow::DropOldest }
    }

    /// `PUBLISH`: to how many subscribers of this server the message went. Never repeated when it may have been sent.
    ///
    /// # Errors
    /// As [`Cmd::query`](crate::Cmd::query).
    ///
    /// # Cancel safety
    /// As [`Cmd::query`](crate::Cmd::query).
    pub async fn publish(&self, channel: impl AsRef<[u8]>, payload: impl AsRef<[u8]>) -> Result<u64, Error> {
        cmd("PUBLISH").arg(channel.as_ref()).arg(payload.as_ref()).query(self).await
    }

    /// `SPUBLISH`, for shard channels; otherwise as [`Client::publish`].
    ///
    /// # Errors
    /// As [`Cmd::query`](crate::Cmd::query).
    ///
    /// # Cancel safety
    /// As [`Cmd::query`](crate::Cmd::query).
    pub async fn spublish(&self, channel: impl AsRef<[u8]>, payload: impl AsRef<[u8]>) -> Result<u64, Error> {
        cmd("SPUBLISH").arg(channel.as_ref()).arg(payload.as_ref()).query(self).await
    }
}

/// Channels, patterns or shard channels, and what is published to them: a [`Stream`] of [`PubSubEvent`]s that ends only
/// with its client's engine.
///
/// It survives lost connections and restarted servers: everything is subscribed again, and a [`PubSubEvent::Gap`]
/// stands where messages may be missing. It lives on when the client is dropped; dropping it unsubscribes. Several
/// subscriptions of one client may want the same channel: the server is asked once, and each gets every message.
///
/// When the server announces that it moves, the subscription moves before it does, and each message comes once. For that the
/// client publishes one message to a channel of its own, whose name begins with `__towline:handoff:`; no subscription of this
/// client shows such messages. Where it may not, or where the server is a node of a cluster, a
/// [`PubSubEvent::Overlap`] stands where messages may come twice.
///
/// A reader that is too slow loses the oldest messages, counted; memory stays within the buffer's bound.
pub struct Subscription {
    engine: Arc<Engine>,
    id: SubscriberId,
    kind: Kind,
    /// The one slot of its shard channels, in a cluster.
    slot: Option<Slot>,
    /// How long the server may take to confirm.
    timeout: Duration,
}

impl Subscription {
    /// The next event; `None` when the engine has ended.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing.
    pub async fn next(&mut self) -> Option<PubSubEvent> {
        poll_fn(|cx| self.poll_event(cx)).await
    }

    /// The next event if it is there already.
    pub fn try_next(&mut self) -> Option<PubSubEvent> {
        match self.poll_event(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(event) => event,
            Poll::Pending => None,
        }
    }

    pub(crate) fn poll_event(&self, cx: &mut Context<'_>) -> Poll<Option<PubSubEvent>> {
        let item = self.engine.lock().bridge.poll_item(self.id, |left| renewed(left, cx));
        item.map(|item| item.map(PubSubEvent::from))
    }

    /// Subscribes to further names of the same kind. Returns once the server has confirmed every one of them. If it
    /// does not, the subscription stays as it was.
    ///
    /// # Errors
    /// As [`Client::subscribe`].
    ///
    /// # Cancel safety
    /// Dropping it takes the names back.
    pub async fn add<N: AsRef<[u8]>>(&mut self, names: impl IntoIterator<Item = N>) -> Result<(), Error> {
        let names: Vec<N> = names.into_iter().collect();
        self.add_names(&names).await
    }

    /// As [`add`](Self::add), for a holder who sees to it that there is one request at a time.
    pub(crate) async fn add_names<N: AsRef<[u8]>>(&self, names: &[N]) -> Result<(), Error> {
        if self.slot.is_some() && one_slot(names)?.is_some_and(|slot| Some(slot) != self.slot) {
            return Err(several_slots());
        }
        let pending = self.request(names)?;
        let confirmed = poll_fn(|cx| pending.poll(cx));
        match tokio::time::timeout(self.timeout, confirmed).await {
            Ok(settled) => settled,
            Err(_) => Err(self.late()),
        }
    }

    /// Asks for names. They are taken back when the result is dropped before it is settled.
    fn request<N: AsRef<[u8]>>(&self, names: &[N]) -> Result<Pending<'_>, Error> {
        let now = clock::now();
        let mut state = self.engine.lock();
        state.bridge.subscribe(now, self.id, self.kind, names)?;
        wake_owner(state);
        Ok(Pending(self))
    }

    /// Why a confirmation did not come in time.
    fn late(&self) -> Error {
        let state = self.engine.lock();
        match &state.last_dial_error {
            _ if state.bridge.link_state() == LinkState::Up => Error::new(ErrorKind::Deadline, Sent::Maybe),
            Some(error) => Error::new(ErrorKind::Connect(error.to_string().into()), Sent::No),
            None => {
                let reason = format!("no connection within {:?}", self.timeout);
                Error::new(ErrorKind::Connect(reason.into()), Sent::No)
            }
        }
    }

    /// Ends the subscription to some of its names, without waiting for the server. Messages of theirs that are in the
    /// buffer already still come.
    pub fn remove<N: AsRef<[u8]>>(&mut self, names: impl IntoIterator<Item = N>) {
        self.remove_names(names);
    }

    pub(crate) fn remove_names<N: AsRef<[u8]>>(&self, names: impl IntoIterator<Item = N>) {
        let names: Vec<N> = names.into_iter().collect();
        let mut state = self.engine.lock();
        state.bridge.unsubscribe(self.id, self.kind, names);
        wake_owner(state);
    }

    /// Bytes that wait for the reader, 160 for each event included.
    pub fn buffered_bytes(&self) -> usize {
        self.engine.lock().bridge.subscriber_load(self.id).0
    }

    /// What was dropped so far because the reader was too slow.
    pub fn dropped(&self) -> DroppedTotals {
        let (_, dropped) = self.engine.lock().bridge.subscriber_load(self.id);
        DroppedTotals { messages: dropped.messages, others: dropped.others, bytes: dropped.bytes }
    }
}

impl Stream for Subscription {
    type Item = PubSubEvent;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<PubSubEvent>> {
        self.poll_event(cx)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let now = clock::now();
        let mut state = self.engine.lock();
        state.bridge.close_subscriber(now, self.id);
        wake_owner(state);
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("kind", &self.kind)
            .field("buffered_bytes", &self.buffered_bytes())
            .field("dropped", &self.dropped())
            .finish_non_exhaustive()
    }
}

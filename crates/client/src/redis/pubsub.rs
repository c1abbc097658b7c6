//! redis-rs's subscriptions: streams of messages, and pushes to a sender.
//!
//! Owns how what this client says of losses reaches a program that does not know of them. redis-rs says by the end of
//! the stream, or by a push of kind `Disconnection`, that messages may be missing, and so does this: a program that
//! subscribes again then, as it must with redis-rs, misses nothing in silence. A planned move ends nothing; where it
//! could not be made without it, messages may come twice for a moment.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ::redis::aio::AsyncPushSender;
use ::redis::{
    ErrorKind as RedisKind, FromRedisValue, Msg, PushInfo, PushKind, RedisResult, ToRedisArgs, Value,
    from_redis_value,
};
use bytes::Bytes;
use futures_core::Stream;
use tokio::sync::Mutex;
use tokio::task::AbortHandle;

use super::error::redis_error;
use crate::client::Client;
use crate::pubsub::{PubSubEvent, Subscription};

/// No names: a subscription to add to.
const NOTHING: [&[u8]; 0] = [];

/// In the place of `redis::aio::PubSub`.
#[derive(Debug)]
pub struct PubSub {
    sink: PubSubSink,
    stream: PubSubStream,
}

/// In the place of `redis::aio::PubSubSink`: subscribes while the stream is read elsewhere. Clones are the same sink.
#[derive(Debug, Clone)]
pub struct PubSubSink(Arc<Sides>);

/// In the place of `redis::aio::PubSubStream`: the messages. It ends where some may be missing; see [`PubSub`].
#[derive(Debug)]
pub struct PubSubStream {
    sides: Arc<Sides>,
    is_patterns_turn: bool,
    is_ended: bool,
}

struct Sides {
    client: Client,
    channels: Subscription,
    patterns: Subscription,
    /// One request at a time.
    turn: Mutex<()>,
}

impl fmt::Debug for Sides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sides")
            .field("channels", &self.channels)
            .field("patterns", &self.patterns)
            .finish_non_exhaustive()
    }
}

impl PubSub {
    pub(super) async fn new(client: &Client) -> RedisResult<Self> {
        let sides = Arc::new(Sides {
            client: client.clone(),
            channels: client.subscribe(NOTHING).await.map_err(redis_error)?,
            patterns: client.psubscribe(NOTHING).await.map_err(redis_error)?,
            turn: Mutex::new(()),
        });
        let stream = PubSubStream { sides: Arc::clone(&sides), is_patterns_turn: false, is_ended: false };
        Ok(Self { sink: PubSubSink(sides), stream })
    }

    /// Subscribes to channels; returns once the server has confirmed them.
    ///
    /// # Errors
    /// As [`Client::subscribe`].
    ///
    /// # Cancel safety
    /// As [`Client::subscribe`].
    pub async fn subscribe(&mut self, channels: impl ToRedisArgs) -> RedisResult<()> {
        self.sink.subscribe(channels).await
    }

    /// Ends subscriptions to channels.
    ///
    /// # Errors
    /// None.
    ///
    /// # Cancel safety
    /// It is done when it is first polled.
    pub async fn unsubscribe(&mut self, channels: impl ToRedisArgs) -> RedisResult<()> {
        self.sink.unsubscribe(channels).await
    }

    /// Subscribes to patterns; otherwise as [`subscribe`](Self::subscribe).
    ///
    /// # Errors
    /// As [`Client::subscribe`].
    ///
    /// # Cancel safety
    /// As [`Client::subscribe`].
    pub async fn psubscribe(&mut self, patterns: impl ToRedisArgs) -> RedisResult<()> {
        self.sink.psubscribe(patterns).await
    }

    /// Ends subscriptions to patterns.
    ///
    /// # Errors
    /// None.
    ///
    /// # Cancel safety
    /// It is done when it is first polled.
    pub async fn punsubscribe(&mut self, patterns: impl ToRedisArgs) -> RedisResult<()> {
        self.sink.punsubscribe(patterns).await
    }

    /// Whether the server answers, on the connection of the commands.
    ///
    /// # Errors
    /// As [`crate::Cmd::query`].
    ///
    /// # Cancel safety
    /// As [`crate::Cmd::query`].
    pub async fn ping<T: FromRedisValue>(&mut self) -> RedisResult<T> {
        self.sink.ping().await
    }

    /// The messages, for as long as this is borrowed.
    pub fn on_message(&mut self) -> impl Stream<Item = Msg> + '_ {
        &mut self.stream
    }

    /// The messages.
    pub fn into_on_message(self) -> PubSubStream {
        self.stream
    }

    /// Both sides, for two tasks.
    pub fn split(self) -> (PubSubSink, PubSubStream) {
        (self.sink, self.stream)
    }
}

impl PubSubSink {
    /// As [`PubSub::subscribe`].
    ///
    /// # Errors
    /// As [`Client::subscribe`].
    ///
    /// # Cancel safety
    /// As [`Client::subscribe`].
    pub async fn subscribe(&mut self, channels: impl ToRedisArgs) -> RedisResult<()> {
        self.0.add(&self.0.channels, &channels.to_redis_args()).await
    }

    /// As [`PubSub::unsubscribe`].
    ///
    /// # Errors
    /// None.
    ///
    /// # Cancel safety
    /// It is done when it is first polled.
    pub async fn unsubscribe(&mut self, channels: impl ToRedisArgs) -> RedisResult<()> {
        self.0.channels.remove_names(channels.to_redis_args());
        Ok(())
    }

    /// As [`PubSub::psubscribe`].
    ///
    /// # Errors
    /// As [`Client::subscribe`].
    ///
    /// # Cancel safety
    /// As [`Client::subscribe`].
    pub async fn psubscribe(&mut self, patterns: impl ToRedisArgs) -> RedisResult<()> {
        self.0.add(&self.0.patterns, &patterns.to_redis_args()).await
    }

    /// As [`PubSub::punsubscribe`].
    ///
    /// # Errors
    /// None.
    ///
    /// # Cancel safety
    /// It is done when it is first polled.
    pub async fn punsubscribe(&mut self, patterns: impl ToRedisArgs) -> RedisResult<()> {
        self.0.patterns.remove_names(patterns.to_redis_args());
        Ok(())
    }

    /// As [`PubSub::ping`].
    ///
    /// # Errors
    /// As [`crate::Cmd::query`].
    ///
    /// # Cancel safety
    /// As [`crate::Cmd::query`].
    pub async fn ping<T: FromRedisValue>(&mut self) -> RedisResult<T> {
        let pong = crate::cmd("PING").query(&self.0.client).await.map_err(redis_error)?;
        Ok(from_redis_value(super::value::value(pong))?)
    }
}

impl Sides {
    async fn add(&self, side: &Subscription, names: &[Vec<u8>]) -> RedisResult<()> {
        let _turn = self.turn.lock().await;
        side.add_names(names).await.map_err(redis_error)
    }

    fn poll(&self, cx: &mut Context<'_>, is_patterns_turn: bool) -> Poll<Option<PubSubEvent>> {
        let (first, second) = if is_patterns_turn {
            (&self.patterns, &self.channels)
        } else {
            (&self.channels, &self.patterns)
        };
        match first.poll_event(cx) {
            Poll::Pending => second.poll_event(cx),
            ready => ready,
        }
    }
}

impl PubSubStream {
    pub(super) async fn next_message(&mut self) -> Option<Msg> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }
}

impl Stream for PubSubStream {
    type Item = Msg;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Msg>> {
        let stream = self.get_mut();
        while !stream.is_ended {
            // In turn, so that many messages of one kind keep none of the other away.
            stream.is_patterns_turn = !stream.is_patterns_turn;
            match stream.sides.poll(cx, stream.is_patterns_turn) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(PubSubEvent::Message { channel, pattern, payload })) => {
                    if let Some(message) = Msg::from_push_info(push(channel, pattern, payload)) {
                        return Poll::Ready(Some(message));
                    }
                }
                Poll::Ready(Some(PubSubEvent::Overlap { .. })) => {}
                Poll::Ready(_) => stream.is_ended = true,
            }
        }
        Poll::Ready(None)
    }
}

fn push(channel: Bytes, pattern: Option<Bytes>, payload: Bytes) -> PushInfo {
    let kind = if pattern.is_some() { PushKind::PMessage } else { PushKind::Message };
    let parts = pattern.into_iter().chain([channel, payload]);
    PushInfo { kind, data: parts.map(|part| Value::BulkString(part.into())).collect() }
}

/// The subscriptions of a connection whose messages go to a sender.
pub(super) struct Pushes {
    client: Client,
    sender: Arc<dyn AsyncPushSender>,
    feed: Mutex<Option<Feed>>,
}

struct Feed {
    sides: Arc<Sides>,
    task: AbortHandle,
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Pushes {
    pub(super) fn new(client: Client, sender: Arc<dyn AsyncPushSender>) -> Self {
        Self { client, sender, feed: Mutex::new(None) }
    }

    /// Those of a connection.
    pub(super) fn of(pushes: Option<&Arc<Self>>) -> RedisResult<&Self> {
        let pushes = pushes.ok_or((
            RedisKind::Client,
            "without a push sender nobody would get the messages: set one, or use `Client::get_async_pubsub`",
        ))?;
        Ok(pushes)
    }

    pub(super) async fn subscribe(&self, channels: &[Vec<u8>]) -> RedisResult<()> {
        let sides = self.sides().await?;
        sides.add(&sides.channels, channels).await?;
        self.confirm(PushKind::Subscribe, channels);
        Ok(())
    }

    pub(super) async fn psubscribe(&self, patterns: &[Vec<u8>]) -> RedisResult<()> {
        let sides = self.sides().await?;
        sides.add(&sides.patterns, patterns).await?;
        self.confirm(PushKind::PSubscribe, patterns);
        Ok(())
    }

    pub(super) async fn unsubscribe(&self, channels: &[Vec<u8>]) {
        if let Some(feed) = &*self.feed.lock().await {
            feed.sides.channels.remove_names(channels);
            self.confirm(PushKind::Unsubscribe, channels);
        }
    }

    pub(super) async fn punsubscribe(&self, patterns: &[Vec<u8>]) {
        if let Some(feed) = &*self.feed.lock().await {
            feed.sides.patterns.remove_names(patterns);
            self.confirm(PushKind::PUnsubscribe, patterns);
        }
    }

    /// A push for each name, as the server sends them. It tells no count: here it would be of all handles together.
    fn confirm(&self, kind: PushKind, names: &[Vec<u8>]) {
        for name in names {
            let data = vec![Value::BulkString(name.clone()), Value::Int(1)];
            // A sender that nobody reads is its owner's affair.
            let _ = self.sender.send(PushInfo { kind: kind.clone(), data });
        }
    }

    /// The subscriptions and the task that reads them, made with the first use.
    async fn sides(&self) -> RedisResult<Arc<Sides>> {
        let mut feed = self.feed.lock().await;
        if let Some(feed) = &*feed {
            return Ok(Arc::clone(&feed.sides));
        }
        let PubSub { sink: PubSubSink(sides), .. } = PubSub::new(&self.client).await?;
        let task = tokio::spawn(deliver(Arc::clone(&sides), Arc::clone(&self.sender))).abort_handle();
        *feed = Some(Feed { sides: Arc::clone(&sides), task });
        Ok(sides)
    }
}

impl fmt::Debug for Pushes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pushes").field("client", &self.client).finish_non_exhaustive()
    }
}

/// Hands every message to the sender, until nobody receives any more.
async fn deliver(sides: Arc<Sides>, sender: Arc<dyn AsyncPushSender>) {
    let mut is_patterns_turn = false;
    loop {
        is_patterns_turn = !is_patterns_turn;
        let info = match poll_fn(|cx| sides.poll(cx, is_patterns_turn)).await {
            None => return,
            Some(PubSubEvent::Message { channel, pattern, payload }) => push(channel, pattern, payload),
            Some(PubSubEvent::Overlap { .. }) => continue,
            Some(_) => PushInfo { kind: PushKind::Disconnection, data: Vec::new() },
        };
        if sender.send(info).is_err() {
            return;
        }
    }
}

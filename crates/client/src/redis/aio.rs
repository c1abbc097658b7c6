//! redis-rs's module `aio`, with this client's connections in it.

pub use ::redis::aio::*;

pub use super::config::ConnectionManagerConfig;
pub use super::monitor::Monitor;
pub use super::pubsub::{PubSub, PubSubSink, PubSubStream};

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ::redis::{Cmd, Pipeline, RedisFuture, RedisResult, ToRedisArgs, Value};

use super::carry::{command, commands};
use super::client::{Client, connect};
use super::error::redis_error;
use super::pubsub::Pushes;
use super::session::Session;

/// In the place of `redis::aio::MultiplexedConnection`: tasks share it by cloning it. It comes back by itself when it
/// breaks.
///
/// From `WATCH` to `EXEC` a handle has a connection of its own, which only clones share that are made in between.
/// `SELECT` changes the database of this handle, not of its clones.
#[derive(Clone)]
pub struct MultiplexedConnection {
    session: Session,
    pushes: Option<Arc<Pushes>>,
}

impl MultiplexedConnection {
    pub(super) fn new(client: crate::Client, push_sender: Option<Arc<dyn AsyncPushSender>>) -> Self {
        let pushes = push_sender.map(|sender| Arc::new(Pushes::new(client.clone(), sender)));
        Self { session: Session::new(client), pushes }
    }

    /// This client's own handle behind it.
    pub const fn as_client(&self) -> &crate::Client {
        self.session.client()
    }

    pub(super) const fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// The time of each command of this handle from now on, waiting for a connection included.
    pub const fn set_response_timeout(&mut self, timeout: Duration) {
        self.session.timeout = Some(timeout);
    }

    /// Sends one command.
    ///
    /// # Errors
    /// As [`crate::Cmd::query`]; an error of the server is a value.
    ///
    /// # Cancel safety
    /// As [`crate::Cmd::query`].
    pub async fn send_packed_command(&mut self, cmd: &Cmd) -> RedisResult<Value> {
        self.session.send(command(cmd)?).await
    }

    /// Sends several commands; the replies from `offset` on, `count` of them.
    ///
    /// # Errors
    /// As [`crate::Pipeline::query`]; errors of the server are values.
    ///
    /// # Cancel safety
    /// As [`crate::Pipeline::query`].
    pub async fn send_packed_commands(
        &mut self,
        pipeline: &Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisResult<Vec<Value>> {
        self.session.send_all(commands(pipeline)?, pipeline.is_transaction(), offset, count).await
    }

    /// Subscribes to channels. What is published to them goes to the push sender of the connection's configuration.
    ///
    /// # Errors
    /// As [`crate::Client::subscribe`]; `Client` without a push sender.
    ///
    /// # Cancel safety
    /// As [`crate::Client::subscribe`].
    pub async fn subscribe(&mut self, channels: impl ToRedisArgs) -> RedisResult<()> {
        Pushes::of(self.pushes.as_ref())?.subscribe(&channels.to_redis_args()).await
    }

    /// Subscribes to patterns, as [`subscribe`](Self::subscribe).
    ///
    /// # Errors
    /// As [`subscribe`](Self::subscribe).
    ///
    /// # Cancel safety
    /// As [`subscribe`](Self::subscribe).
    pub async fn psubscribe(&mut self, patterns: impl ToRedisArgs) -> RedisResult<()> {
        Pushes::of(self.pushes.as_ref())?.psubscribe(&patterns.to_redis_args()).await
    }

    /// Ends subscriptions to channels.
    ///
    /// # Errors
    /// `Client` without a push sender.
    ///
    /// # Cancel safety
    /// It is done when it is first polled.
    pub async fn unsubscribe(&mut self, channels: impl ToRedisArgs) -> RedisResult<()> {
        Pushes::of(self.pushes.as_ref())?.unsubscribe(&channels.to_redis_args()).await;
        Ok(())
    }

    /// Ends subscriptions to patterns.
    ///
    /// # Errors
    /// `Client` without a push sender.
    ///
    /// # Cancel safety
    /// It is done when it is first polled.
    pub async fn punsubscribe(&mut self, patterns: impl ToRedisArgs) -> RedisResult<()> {
        Pushes::of(self.pushes.as_ref())?.punsubscribe(&patterns.to_redis_args()).await;
        Ok(())
    }
}

/// A handle of this client as redis-rs has them.
impl From<crate::Client> for MultiplexedConnection {
    fn from(client: crate::Client) -> Self {
        Self::new(client, None)
    }
}

impl ConnectionLike for MultiplexedConnection {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(self.send_packed_command(cmd))
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(self.send_packed_commands(pipeline, offset, count))
    }

    fn get_db(&self) -> i64 {
        self.session.database()
    }
}

impl fmt::Debug for MultiplexedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MultiplexedConnection").field(&self.session).finish()
    }
}

/// In the place of `redis::aio::ConnectionManager`. The same as [`MultiplexedConnection`], which manages itself.
#[derive(Debug, Clone)]
pub struct ConnectionManager(MultiplexedConnection);

impl ConnectionManager {
    /// Connects.
    ///
    /// # Errors
    /// As [`crate::Client::open`].
    ///
    /// # Cancel safety
    /// As [`crate::Client::open`].
    pub async fn new(client: Client) -> RedisResult<Self> {
        Self::new_with_config(client, ConnectionManagerConfig::new()).await
    }

    /// Connects.
    ///
    /// # Errors
    /// As [`crate::Client::open`].
    ///
    /// # Cancel safety
    /// As [`crate::Client::open`].
    pub async fn new_with_config(client: Client, config: ConnectionManagerConfig) -> RedisResult<Self> {
        let ours = connect(config.apply(client.options().clone())).await?;
        Ok(Self(MultiplexedConnection::new(ours, config.push_sender())))
    }

    /// Connects in the background; commands wait for it.
    ///
    /// # Errors
    /// As [`crate::Client::lazy`].
    pub fn new_lazy_with_config(client: Client, config: ConnectionManagerConfig) -> RedisResult<Self> {
        let ours = crate::Client::lazy(config.apply(client.options().clone())).map_err(redis_error)?;
        Ok(Self(MultiplexedConnection::new(ours, config.push_sender())))
    }

    /// This client's own handle behind it.
    pub const fn as_client(&self) -> &crate::Client {
        self.0.as_client()
    }

    /// As [`MultiplexedConnection::send_packed_command`].
    ///
    /// # Errors
    /// As there.
    ///
    /// # Cancel safety
    /// As there.
    pub async fn send_packed_command(&mut self, cmd: &Cmd) -> RedisResult<Value> {
        self.0.send_packed_command(cmd).await
    }

    /// As [`MultiplexedConnection::send_packed_commands`].
    ///
    /// # Errors
    /// As there.
    ///
    /// # Cancel safety
    /// As there.
    pub async fn send_packed_commands(
        &mut self,
        pipeline: &Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisResult<Vec<Value>> {
        self.0.send_packed_commands(pipeline, offset, count).await
    }

    /// As [`MultiplexedConnection::subscribe`].
    ///
    /// # Errors
    /// As there.
    ///
    /// # Cancel safety
    /// As there.
    pub async fn subscribe(&mut self, channels: impl ToRedisArgs) -> RedisResult<()> {
        self.0.subscribe(channels).await
    }

    /// As [`MultiplexedConnection::psubscribe`].
    ///
    /// # Errors
    /// As there.
    ///
    /// # Cancel safety
    /// As there.
    pub async fn psubscribe(&mut self, patterns: impl ToRedisArgs) -> RedisResult<()> {
        self.0.psubscribe(patterns).await
    }

    /// As [`MultiplexedConnection::unsubscribe`].
    ///
    /// # Errors
    /// As there.
    ///
    /// # Cancel safety
    /// As there.
    pub async fn unsubscribe(&mut self, channels: impl ToRedisArgs) -> RedisResult<()> {
        self.0.unsubscribe(channels).await
    }

    /// As [`MultiplexedConnection::punsubscribe`].
    ///
    /// # Errors
    /// As there.
    ///
    /// # Cancel safety
    /// As there.
    pub async fn punsubscribe(&mut self, patterns: impl ToRedisArgs) -> RedisResult<()> {
        self.0.punsubscribe(patterns).await
    }
}

impl ConnectionLike for ConnectionManager {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        self.0.req_packed_command(cmd)
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        self.0.req_packed_commands(pipeline, offset, count)
    }

    fn get_db(&self) -> i64 {
        self.0.get_db()
    }
}

//! redis-rs's connections for programs without an async runtime.

use std::time::Duration;

use ::redis::{ConnectionLike, Msg, RedisResult, ToRedisArgs, Value};

use super::aio::{MultiplexedConnection, PubSubSink, PubSubStream};
use super::carry::{encoded_command, encoded_commands};
use super::client::connect;
use super::error::redis_error;
use crate::blocking::wait;
use crate::options::ConnectOptions;
use crate::pipeline::Pipeline;

/// In the place of `redis::Connection`: for one thread at a time. It comes back by itself when it breaks.
///
/// Its calls park their thread, so they are refused inside an async runtime; see [`crate::blocking`].
#[derive(Debug)]
pub struct Connection(MultiplexedConnection);

/// In the place of `redis::PubSub`.
#[derive(Debug)]
pub struct PubSub<'a> {
    /// redis-rs does not let it be used for anything else meanwhile.
    connection: &'a mut Connection,
    /// Opened with the first subscription.
    sides: Option<(PubSubSink, PubSubStream)>,
    timeout: Option<Duration>,
}

/// Runs a call of the async side on this thread.
fn run<T>(future: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
    wait(future, false).map_err(redis_error)?
}

impl Connection {
    pub(super) fn open(options: ConnectOptions) -> RedisResult<Self> {
        let client = run(connect(options))?;
        Ok(Self(client.into()))
    }

    /// The time of each command from now on; `None` is the client's own. Reading and writing have one time together.
    ///
    /// # Errors
    /// None.
    pub fn set_read_timeout(&mut self, timeout: Option<Duration>) -> RedisResult<()> {
        self.0.session().timeout = timeout;
        Ok(())
    }

    /// As [`set_read_timeout`](Self::set_read_timeout), which it replaces.
    ///
    /// # Errors
    /// None.
    pub fn set_write_timeout(&mut self, timeout: Option<Duration>) -> RedisResult<()> {
        self.set_read_timeout(timeout)
    }

    /// Subscriptions.
    pub const fn as_pubsub(&mut self) -> PubSub<'_> {
        PubSub { connection: self, sides: None, timeout: None }
    }
}

impl ConnectionLike for Connection {
    fn req_packed_command(&mut self, cmd: &[u8]) -> RedisResult<Value> {
        let cmd = encoded_command(cmd)?;
        run(self.0.session().send(cmd))
    }

    fn req_packed_commands(&mut self, cmd: &[u8], offset: usize, count: usize) -> RedisResult<Vec<Value>> {
        let mut commands = encoded_commands(cmd)?;
        // Of the bytes of a transaction redis-rs wants the reply to EXEC only.
        let is_transaction = offset > 0
            && count == 1
            && commands.first().is_some_and(|cmd| cmd.name() == b"MULTI")
            && commands.last().is_some_and(|cmd| cmd.name() == b"EXEC");
        if is_transaction {
            commands.pop();
            drop(commands.remove(0));
        }
        let pipeline: Pipeline = commands.into_iter().collect();
        run(self.0.session().send_all(pipeline, is_transaction, offset, count))
    }

    fn get_db(&self) -> i64 {
        ::redis::aio::ConnectionLike::get_db(&self.0)
    }

    fn check_connection(&mut self) -> bool {
        run(self.0.session().send(crate::cmd("PING"))).is_ok()
    }

    /// It always is: what breaks is made anew.
    fn is_open(&self) -> bool {
        true
    }
}

impl PubSub<'_> {
    fn sides(&mut self) -> RedisResult<&mut (PubSubSink, PubSubStream)> {
        if self.sides.is_none() {
            self.sides = Some(run(super::aio::PubSub::new(self.connection.0.as_client()))?.split());
        }
        Ok(self.sides.as_mut().expect("invariant: it was filled above"))
    }

    /// Subscribes to channels; returns once the server has confirmed them.
    ///
    /// # Errors
    /// As [`crate::Client::subscribe`].
    pub fn subscribe(&mut self, channels: impl ToRedisArgs) -> RedisResult<()> {
        run(self.sides()?.0.subscribe(channels))
    }

    /// Subscribes to patterns; returns once the server has confirmed them.
    ///
    /// # Errors
    /// As [`crate::Client::subscribe`].
    pub fn psubscribe(&mut self, patterns: impl ToRedisArgs) -> RedisResult<()> {
        run(self.sides()?.0.psubscribe(patterns))
    }

    /// Ends subscriptions to channels.
    ///
    /// # Errors
    /// Inside an async runtime.
    pub fn unsubscribe(&mut self, channels: impl ToRedisArgs) -> RedisResult<()> {
        run(self.sides()?.0.unsubscribe(channels))
    }

    /// Ends subscriptions to patterns.
    ///
    /// # Errors
    /// Inside an async runtime.
    pub fn punsubscribe(&mut self, patterns: impl ToRedisArgs) -> RedisResult<()> {
        run(self.sides()?.0.punsubscribe(patterns))
    }

    /// How long [`get_message`](Self::get_message) waits; `None` for no limit.
    ///
    /// # Errors
    /// None.
    pub fn set_read_timeout(&mut self, timeout: Option<Duration>) -> RedisResult<()> {
        self.timeout = timeout;
        Ok(())
    }

    /// The next message.
    ///
    /// # Errors
    /// I/O, `TimedOut`: none came in time; `ConnectionAborted`: messages may be missing here, subscribe anew.
    pub fn get_message(&mut self) -> RedisResult<Msg> {
        use std::io::{Error, ErrorKind};

        let timeout = self.timeout.unwrap_or(Duration::MAX);
        let stream = &mut self.sides()?.1;
        run(async {
            match tokio::time::timeout(timeout, stream.next_message()).await {
                Ok(Some(message)) => Ok(message),
                Ok(None) => {
                    Err(Error::new(ErrorKind::ConnectionAborted, "messages may be missing: subscribe anew")
                        .into())
                }
                Err(_) => Err(Error::from(ErrorKind::TimedOut).into()),
            }
        })
    }
}

impl ConnectionLike for crate::blocking::Client {
    fn req_packed_command(&mut self, cmd: &[u8]) -> RedisResult<Value> {
        let cmd = encoded_command(cmd)?;
        self.query(cmd).map(super::value::value).map_err(redis_error)
    }

    fn req_packed_commands(&mut self, cmd: &[u8], offset: usize, count: usize) -> RedisResult<Vec<Value>> {
        let mut connection = Connection(self.as_async().clone().into());
        connection.req_packed_commands(cmd, offset, count)
    }

    fn get_db(&self) -> i64 {
        self.as_async().options().selected_database().into()
    }

    fn check_connection(&mut self) -> bool {
        self.query::<()>(crate::cmd("PING")).is_ok()
    }

    fn is_open(&self) -> bool {
        true
    }
}

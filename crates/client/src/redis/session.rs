//! Connections in the manner of redis-rs, where `WATCH` and `SELECT` are just commands.
//!
//! Owns the connection of its own that a handle has from `WATCH` or `MULTI` to `EXEC`, `DISCARD` or `UNWATCH`. Clones
//! that are made in between share it, because `redis::aio::transaction_async` hands a clone to its caller; all others
//! are apart, so that no two tasks can get into each other's transactions.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::redis::{ErrorKind as RedisKind, RedisError, RedisResult, Value};
use towline_client_proto::{Error, ErrorKind};
use towline_resp::frame::Frame;

use super::carry::{Carrier, limited, send_all};
use super::client::connect;
use super::error::redis_error;
use super::value::{server_error, value};
use crate::client::Client;
use crate::cmd::Cmd;
use crate::lease::Lease;
use crate::pipeline::Pipeline;

/// A handle with what belongs to it alone.
pub(super) struct Session {
    client: Client,
    /// The time of a command where it is not the client's.
    pub(super) timeout: Option<Duration>,
    held: Arc<Mutex<Option<Arc<Lease>>>>,
}

/// What a command does to the connection.
enum Step {
    Begin,
    End,
    Select,
    None,
}

impl Session {
    pub(super) fn new(client: Client) -> Self {
        Self { client, timeout: None, held: Arc::default() }
    }

    pub(super) const fn client(&self) -> &Client {
        &self.client
    }

    /// Sends one command.
    pub(super) async fn send(&mut self, mut cmd: Cmd) -> RedisResult<Value> {
        if let Some(timeout) = self.timeout {
            cmd = limited(cmd, timeout);
        }
        let outcome = match step(cmd.name()) {
            Step::None => match self.held() {
                Some(lease) => Carrier::command(&*lease, cmd).await,
                None => Carrier::command(&self.client, cmd).await,
            },
            Step::Begin => self.begin(cmd).await,
            Step::End => match self.take() {
                Some(lease) => Carrier::command(&*lease, cmd).await,
                None => return unheld(cmd.name()),
            },
            Step::Select => return self.select(&cmd).await,
        };
        outcome.map(value).map_err(redis_error)
    }

    /// Sends several; see [`send_all`].
    pub(super) async fn send_all(
        &mut self,
        mut pipeline: Pipeline,
        is_transaction: bool,
        offset: usize,
        count: usize,
    ) -> RedisResult<Vec<Value>> {
        if let Some(timeout) = self.timeout {
            pipeline = pipeline.deadline(timeout);
        }
        // Its EXEC ends the watch, whatever comes of it.
        let held = if is_transaction { self.take() } else { self.held() };
        match held {
            Some(lease) => send_all(&*lease, pipeline, is_transaction, offset, count).await,
            None => send_all(&self.client, pipeline, is_transaction, offset, count).await,
        }
    }

    pub(super) fn database(&self) -> i64 {
        Carrier::database(&self.client)
    }

    /// `WATCH` or `MULTI`: on the connection that is held, or on a new one.
    async fn begin(&self, cmd: Cmd) -> Result<Frame, Error> {
        if let Some(lease) = self.held() {
            match Carrier::command(&*lease, cmd.clone()).await {
                // It has ended, and with it what was watched there.
                Err(error) if error.is_connection_lost() || *error.kind() == ErrorKind::Closed => {
                    self.take();
                }
                outcome => return outcome,
            }
        }
        // In a cluster, to the node that has what is to be watched.
        let lease = match cmd.first_key() {
            Some(key) => self.client.lease_for(key).await?,
            None => self.client.lease().await?,
        };
        let lease = Arc::new(lease);
        *self.lock() = Some(Arc::clone(&lease));
        let outcome = Carrier::command(&*lease, cmd).await;
        if outcome.is_err() {
            self.take();
        }
        outcome
    }

    /// `SELECT`: a connection to another database, in the place of this one. Clones keep theirs.
    async fn select(&mut self, cmd: &Cmd) -> RedisResult<Value> {
        if self.held().is_some() {
            return Err((RedisKind::Client, "SELECT between WATCH and EXEC").into());
        }
        let number = cmd.args().nth(1).and_then(|number| std::str::from_utf8(number).ok()?.parse().ok());
        let Some(database) = number else {
            return Ok(Value::ServerError(server_error(b"ERR invalid DB index")));
        };
        if i64::from(database) != self.database() {
            self.client = connect(self.client.options().clone().database(database)).await.map_err(refused)?;
        }
        Ok(Value::Okay)
    }

    fn held(&self) -> Option<Arc<Lease>> {
        self.lock().clone()
    }

    fn take(&self) -> Option<Arc<Lease>> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Lease>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn step(name: &[u8]) -> Step {
    let is = |word: &[u8]| name.eq_ignore_ascii_case(word);
    match name.len() {
        5 if is(b"WATCH") || is(b"MULTI") => Step::Begin,
        4 if is(b"EXEC") => Step::End,
        7 if is(b"DISCARD") || is(b"UNWATCH") => Step::End,
        6 if is(b"SELECT") => Step::Select,
        _ => Step::None,
    }
}

/// What a server says to the end of what was not begun.
fn unheld(name: &[u8]) -> RedisResult<Value> {
    if name.eq_ignore_ascii_case(b"UNWATCH") {
        return Ok(Value::Okay);
    }
    let name = String::from_utf8_lossy(name).to_ascii_uppercase();
    Ok(Value::ServerError(server_error(format!("ERR {name} without MULTI").as_bytes())))
}

/// A database that the server does not have is its answer, not a matter of the configuration.
fn refused(error: RedisError) -> RedisError {
    match error.kind() {
        RedisKind::InvalidClientConfig => server_error(b"ERR DB index is out of range").into(),
        _ => error,
    }
}

impl Clone for Session {
    fn clone(&self) -> Self {
        let held = if self.held().is_some() { Arc::clone(&self.held) } else { Arc::default() };
        Self { client: self.client.clone(), timeout: self.timeout, held }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("client", &self.client)
            .field("timeout", &self.timeout)
            .field("is_held", &self.held().is_some())
            .finish()
    }
}

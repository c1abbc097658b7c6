//! A server in memory, for tests of programs that use the client.
//!
//! Owns [`StandIn`], which drives the model server of `towline-faults` behind a [`Transport`]: no process and no port. Does **not** own what the model executes: keys, strings, lists, pub/sub, scripts,
//! transactions, blocking; for any other command it takes prepared replies. Nor is it fast, or a store.
//!
//! ```
//! use towline_client::testing::{StandIn, Trouble, Wrong};
//! use towline_client::{ErrorKind, Frame, Sent, cmd};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), towline_client::Error> {
//! let server = StandIn::new();
//! let client = server.client().await?;
//!
//! // It is a server ...
//! client.set("visits", "41").await?;
//! let visits: i64 = cmd("INCR").arg("visits").query(&client).await?;
//! assert_eq!(visits, 42);
//! // ... that says what it was told for what it does not have,
//! server.answer("JSON.GET user:1", Frame::Bulk("{}".into()));
//! let user: String = cmd("JSON.GET").arg("user:1").query(&client).await?;
//! assert_eq!(user, "{}");
//! // ... that loses a connection after it ran a command,
//! server.trouble(Trouble::new(Wrong::CloseAfter));
//! let lost = cmd("INCR").arg("visits").query::<i64>(&client).await.unwrap_err();
//! assert_eq!((lost.is_retryable(), lost.sent()), (false, Sent::Maybe));
//! // ... and that knows what it ran.
//! assert_eq!(server.executed().iter().filter(|args| args[0] == "INCR").count(), 2);
//! # Ok(())
//! # }
//! ```

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant as TokioInstant;
use towline_client_proto::Error;
use towline_faults::model::{ConnectionId, Model, ModelConfig, OutputEvent};
use towline_resp::frame::Frame;
use towline_sansio::Instant;

pub use towline_faults::model::{AuthFailure, Keep, Refusal, Trouble, Wrong};

use crate::client::Client;
use crate::options::ConnectOptions;
use crate::transport::{Dialing, Target, Transport};

/// Bytes between client and server that neither has taken, for each direction of a connection: as much as a socket holds.
const PIPE_BYTES: usize = 64 * 1024;

/// Bytes that are read at once.
const READ_BYTES: usize = 16 * 1024;

/// A server in memory. Clones are the same server; it lives as long as one of them, or one of its clients.
///
/// It belongs to the runtime that connects to it.
#[derive(Debug, Clone)]
pub struct StandIn {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Times may have changed: whoever sleeps looks again.
    changed: Notify,
}

#[derive(Debug)]
struct State {
    model: Model,
    /// What the model's times count from: the first connection.
    epoch: Option<TokioInstant>,
    connections: BTreeMap<ConnectionId, mpsc::UnboundedSender<Bytes>>,
    count: u64,
}

impl Default for StandIn {
    fn default() -> Self {
        Self::new()
    }
}

impl StandIn {
    /// An empty server that wants no password.
    pub fn new() -> Self {
        Self::with(ModelConfig::default())
    }

    /// A server whose user `default` has this password.
    pub fn with_password(password: &str) -> Self {
        Self::with(ModelConfig { password: Some(password.to_owned()), ..ModelConfig::default() })
    }

    fn with(config: ModelConfig) -> Self {
        let state = State { model: Model::new(config), epoch: None, connections: BTreeMap::new(), count: 0 };
        Self { shared: Arc::new(Shared { state: Mutex::new(state), changed: Notify::new() }) }
    }

    /// Options that lead to it, to be changed at will.
    pub fn options(&self) -> ConnectOptions {
        ConnectOptions::new(Target::tcp("stand-in.invalid", 6379)).transport(self.clone())
    }

    /// A connected client with the default options.
    ///
    /// # Errors
    /// As [`Client::open`], if the server was told to refuse.
    ///
    /// # Cancel safety
    /// As there.
    pub async fn client(&self) -> Result<Client, Error> {
        Client::open(self.options()).await
    }

    /// Answers commands that begin with these words with a prepared reply, see [`Model::answer`].
    pub fn answer(&self, words: &str, reply: Frame) {
        self.state().model.answer(words, reply);
    }

    /// Does something wrong to commands to come.
    pub fn trouble(&self, trouble: Trouble) {
        self.state().model.trouble(trouble);
    }

    /// Forgets the troubles that have not happened yet.
    pub fn calm(&self) {
        self.state().model.calm();
    }

    /// Refuses new connections, or accepts them again. Open ones stay.
    pub fn refuse_connections(&self, is_refusing: bool) {
        self.state().model.refuse_connections(is_refusing);
    }

    /// Lets replies leave so long after their commands ran. Zero is the default.
    pub fn set_latency(&self, latency: Duration) {
        self.state().model.set_latency(latency);
    }

    /// Stops and starts at once: every connection is closed, and what `keep` says is kept.
    pub fn restart(&self, keep: Keep) {
        let mut state = self.state();
        let now = state.now();
        state.model.restart(now, keep);
        state.deliver();
        drop(state);
        self.shared.changed.notify_waiters();
    }

    /// The commands that it executed, the name first, in order; a transaction's before its `EXEC`. The client's own
    /// (`HELLO`, `CLIENT SETINFO`, ...) are among them.
    pub fn executed(&self) -> Vec<Vec<Bytes>> {
        self.state().model.ledger().entries().iter().map(|entry| entry.args.to_vec()).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves one connection until either side closes it.
    async fn serve(
        self,
        connection: ConnectionId,
        stream: DuplexStream,
        mut outputs: mpsc::UnboundedReceiver<Bytes>,
    ) {
        let (mut read, mut write) = tokio::io::split(stream);
        let mut input = BytesMut::with_capacity(READ_BYTES);
        loop {
            let changed = self.shared.changed.notified();
            let due = {
                let state = self.state();
                state.model.poll_timeout().and_then(|at| state.epoch.map(|epoch| wall(epoch, at)))
            };
            let timer = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                count = read.read_buf(&mut input) => match count {
                    Ok(count) if count > 0 => {
                        let mut state = self.state();
                        let now = state.now();
                        state.model.bytes(now, connection, &input);
                        state.deliver();
                        input.clear();
                    }
                    _ => break,
                },
                output = outputs.recv() => match output {
                    Some(bytes) if write.write_all(&bytes).await.is_ok() => continue,
                    _ => break,
                },
                () = timer => {
                    let mut state = self.state();
                    let now = state.now();
                    state.model.handle_timeout(now);
                    state.deliver();
                }
                () = changed => continue,
            }
            self.shared.changed.notify_waiters();
        }
        let mut state = self.state();
        let now = state.now();
        state.connections.remove(&connection);
        state.model.disconnect(now, connection);
        state.deliver();
    }
}

impl State {
    fn now(&mut self) -> Instant {
        let epoch = *self.epoch.get_or_insert_with(TokioInstant::now);
        let nanos = TokioInstant::now().saturating_duration_since(epoch).as_nanos();
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Hands what leaves by now to the connections; one that the server closes ends behind it.
    fn deliver(&mut self) {
        let now = self.now();
        while let Some(output) = self.model.poll_output(now) {
            match output.event {
                OutputEvent::Bytes(bytes) => {
                    // A connection that has ended takes nothing; the model bounds what one may be owed.
                    if let Some(sender) = self.connections.get(&output.connection) {
                        let _ = sender.send(bytes);
                    }
                }
                OutputEvent::Close => _ = self.connections.remove(&output.connection),
            }
        }
    }
}

fn wall(epoch: TokioInstant, at: Instant) -> TokioInstant {
    epoch + Duration::from_nanos(at.nanos())
}

impl Transport for StandIn {
    fn connect<'a>(&'a self, _target: &'a Target) -> Dialing<'a> {
        Box::pin(async move {
            let (near, far) = tokio::io::duplex(PIPE_BYTES);
            let (sender, outputs) = mpsc::unbounded_channel();
            let connection = {
                let mut state = self.state();
                let now = state.now();
                state.count += 1;
                let connection = ConnectionId(state.count);
                let accepted = state.model.connect(now, connection);
                accepted.map_err(|error| io::Error::new(io::ErrorKind::ConnectionRefused, error))?;
                state.connections.insert(connection, sender);
                connection
            };
            tokio::spawn(self.clone().serve(connection, far, outputs));
            Ok(Box::new(near) as _)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Credentials, ErrorKind, Policy, PubSubEvent, Transacted, cmd, pipe};

    #[tokio::test]
    async fn it_is_a_server_for_everything_that_a_client_does() {
        let server = StandIn::new();
        let client = server.client().await.unwrap();
        client.set("key", "1").await.unwrap();
        let both: (i64, String) =
            pipe().cmd("INCR").arg("key").cmd("GET").arg("key").query(&client).await.unwrap();
        assert_eq!(both, (2, "2".to_owned()));
        let moved = pipe().atomic().cmd("INCR").arg("key").transact::<(i64,)>(&client).await.unwrap();
        assert_eq!(moved, Transacted::Committed((3,)));
        let mut messages = client.subscribe(["news"]).await.unwrap();
        client.publish("news", "hello").await.unwrap();
        loop {
            if let PubSubEvent::Message { payload, .. } = messages.next().await.unwrap() {
                assert_eq!(payload, "hello");
                break;
            }
        }
        let waiting = cmd("BLPOP").arg(("queue", 0)).query::<(String, String)>(&client);
        let (popped, pushed) =
            tokio::join!(waiting, cmd("RPUSH").arg(("queue", "job")).query::<u64>(&client));
        assert_eq!((popped.unwrap().1, pushed.unwrap()), ("job".to_owned(), 1));
        let nothing: Option<(String, String)> =
            cmd("BLPOP").arg(("queue", 0.01)).query(&client).await.unwrap();
        assert_eq!(nothing, None);
    }

    #[tokio::test]
    async fn prepared_replies_stand_in_for_what_it_does_not_have() {
        let server = StandIn::with_password("secret");
        assert!(server.client().await.is_err());
        let client =
            Client::open(server.options().credentials(Credentials::password("secret"))).await.unwrap();
        let unknown = cmd("JSON.GET").arg("a").query::<String>(&client).await.unwrap_err();
        assert!(unknown.to_string().contains("unknown command"), "{unknown}");
        server.answer("json.get", Frame::Null);
        server.answer("JSON.GET a", Frame::Bulk("{}".into()));
        let found: Option<String> = cmd("JSON.GET").arg("a").arg("$").query(&client).await.unwrap();
        assert_eq!(found.as_deref(), Some("{}"));
        assert_eq!(cmd("JSON.GET").arg("b").query::<Option<String>>(&client).await.unwrap(), None);
    }

    #[tokio::test]
    async fn faults_happen_when_they_are_asked_for() {
        let server = StandIn::new();
        let client = Client::open(server.options().backlog(Policy::FailFast)).await.unwrap();
        server.trouble(Trouble::new(Wrong::CloseAfter));
        let lost = cmd("INCR").arg("n").query::<i64>(&client).await.unwrap_err();
        assert!(matches!(lost.kind(), ErrorKind::Lost(_)), "{lost}");
        client.ready().await.unwrap();
        assert_eq!(client.get::<i64>("n").await.unwrap(), 1);
        server.refuse_connections(true);
        server.restart(Keep::Nothing);
        assert!(client.get::<Option<i64>>("n").await.is_err());
        server.refuse_connections(false);
        client.ready().await.unwrap();
        assert_eq!(client.get::<Option<i64>>("n").await.unwrap(), None);
        server.set_latency(Duration::from_secs(60));
        let late = cmd("GET").arg("n").deadline(Duration::from_millis(20));
        let late = late.query::<Option<i64>>(&client).await.unwrap_err();
        assert_eq!(*late.kind(), ErrorKind::Deadline);
        server.trouble(Trouble::new(Wrong::Swallow));
        server.calm();
        assert!(server.executed().iter().any(|args| args[..] == ["INCR", "n"]));
    }
}

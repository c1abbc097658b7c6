//! The model server: a small Redis in virtual time that remembers every execution.
//!
//! ```text
//! connect, bytes, disconnect ──> session: bytes -> commands ──> execute ──> keyspace, pub/sub, waiters
//!                                     │ troubles (refuse, swallow, close, ...)    │
//!                                     │                                           ├──> ledger
//! poll_output, poll_timeout  <────────┴──────── outputs, each with its time  <────┘
//! ```
//!
//! Owns: connections, data, scripts, subscriptions, transactions, waiting commands, the wrong things it is told to do
//! ([`Trouble`]), announced maintenance ([`Model::announce_moving`]), and the [`Ledger`]. It follows Redis 7.2 in replies and error texts for the commands that it has.
//!
//! Does **not** own sockets or a clock. It is no store: keys are in one ordered map, and only what clients of the
//! engine need is there (strings, lists, no persistence, no cluster).
//!
//! # How to drive it
//!
//! Every input takes the time. After each input, and when [`Model::poll_timeout`] has come (call
//! [`Model::handle_timeout`] then), take outputs until [`Model::poll_output`] gives none.
//!
//! ```
//! use towline_faults::model::{ConnectionId, Model, ModelConfig, OutputEvent};
//! use towline_sansio::Instant;
//!
//! let (mut model, now, one) = (Model::new(ModelConfig::default()), Instant::ZERO, ConnectionId(1));
//! model.connect(now, one).expect("there is room");
//! model.bytes(now, one, b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\nid:7\r\n");
//! let output = model.poll_output(now).expect("it answers at once");
//! assert_eq!(output.event, OutputEvent::Bytes("+OK\r\n".into()));
//! assert_eq!(model.ledger().execution_count(7), 1);
//! ```

mod commands;
mod config;
mod failure;
mod glob;
mod keyspace;
mod ledger;
mod maintenance;
mod reader;
mod request;
mod script;
mod session;
mod sha1;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use towline_resp::Proto;
use towline_resp::frame::Frame;
use towline_resp::writer::Writer;
use towline_sansio::Instant;
use towline_spec::{Command, Flags, KeyFlags, for_each_key};

pub use config::{AuthFailure, Keep, ModelConfig, ModelLimits, Refusal, Trouble, Wrong};
pub use ledger::{Entry, Ledger, id_of};
pub use maintenance::{Access, EndpointForm, EndpointId, Notice, SlotMove};
pub use sha1::sha1_hex;

use commands::Waiter;
use keyspace::{DbKey, Keyspace};
use maintenance::Maintenance;
use script::Script;
use session::Session;

/// Names one connection for the driver. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// Why a connection was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The server was told to refuse. Retryable.
    #[error("the server refuses connections")]
    Refused,
    /// [`ModelLimits::connections_max`] is reached. Retryable.
    #[error("max number of clients reached")]
    Full,
    /// A connection of this name is open; the driver's mistake.
    #[error("connection {0:?} is open already")]
    InUse(ConnectionId),
}

/// Something that leaves the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Whom it goes to.
    pub connection: ConnectionId,
    /// What it is.
    pub event: OutputEvent,
}

/// What leaves the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputEvent {
    /// Replies and pushes. One output is what one command or one push wrote.
    Bytes(Bytes),
    /// The server has closed the connection. Nothing follows, and what the client still sends is dropped.
    Close,
}

/// What the ledger needs to know of an execution.
struct Executed<'a> {
    now: Instant,
    connection: ConnectionId,
    command: &'static Command,
    args: &'a [Bytes],
    transaction: Option<u64>,
    failed: bool,
}

/// The server.
#[derive(Debug)]
pub struct Model {
    config: ModelConfig,
    generation: u64,
    last_client_id: u64,
    is_refusing: bool,
    sessions: BTreeMap<ConnectionId, Session>,
    keyspace: Keyspace,
    /// By digest.
    scripts: BTreeMap<String, Script>,
    /// In the order of their arrival.
    waiters: Vec<Waiter>,
    /// Who has read a key since it last changed, and wants to know of its change.
    tracked: BTreeMap<Bytes, BTreeSet<ConnectionId>>,
    /// Keys that the current command has changed, for those who wait.
    changed: VecDeque<DbKey>,
    troubles: Vec<Trouble>,
    /// How commands begin, in words, and what they are answered; the last that fits counts.
    answers: Vec<(Vec<Bytes>, Frame)>,
    ledger: Ledger,
    /// By the time at which they leave, then in the order in which they came up.
    outputs: BTreeMap<(Instant, u64), Output>,
    output_count: u64,
    busy_until: Option<Instant>,
    /// Whose command is being executed.
    executing: Option<ConnectionId>,
    /// What it is told meanwhile besides its reply.
    deferred: Vec<Vec<u8>>,
    /// Connections with bytes that came while the server was busy, in order.
    parked: VecDeque<ConnectionId>,
    /// Connections whose wait has ended and whose next commands are to be executed.
    runnable: VecDeque<ConnectionId>,
    maintenance: Maintenance,
}

impl Model {
    /// A server without connections and data, in generation 0.
    pub fn new(config: ModelConfig) -> Self {
        Self {
            config,
            generation: 0,
            last_client_id: 0,
            is_refusing: false,
            sessions: BTreeMap::new(),
            keyspace: Keyspace::default(),
            scripts: BTreeMap::new(),
            waiters: Vec::new(),
            tracked: BTreeMap::new(),
            changed: VecDeque::new(),
            troubles: Vec::new(),
            answers: Vec::new(),
            ledger: Ledger::default(),
            outputs: BTreeMap::new(),
            output_count: 0,
            busy_until: None,
            executing: None,
            deferred: Vec::new(),
            parked: VecDeque::new(),
            runnable: VecDeque::new(),
            maintenance: Maintenance::default(),
        }
    }

    /// What was executed.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The server's life: 0, and one more with every restart.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The open connections, in the order of their names.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> {
        self.sessions.keys().copied()
    }

    /// The string that a key of database 0 holds; `None` also if it holds a list.
    pub fn string(&mut self, now: Instant, key: &[u8]) -> Option<Bytes> {
        let key = (0, Bytes::copy_from_slice(key));
        let text = self.keyspace.string(now, &key).ok()??;
        Some(Bytes::copy_from_slice(text))
    }

    /// Changes what happens from now on; see [`ModelConfig::latency`]. Replies keep their order.
    pub fn set_latency(&mut self, latency: Duration) {
        self.config.latency = latency;
    }

    /// Opens a connection to [`EndpointId::DEFAULT`].
    ///
    /// # Errors
    /// [`ConnectError`]; nothing is sent on the connection then.
    pub fn connect(&mut self, now: Instant, connection: ConnectionId) -> Result<(), ConnectError> {
        self.connect_to(now, connection, EndpointId::DEFAULT)
    }

    /// Opens a connection to one of the addresses that the server has. All of them have the same data.
    ///
    /// # Errors
    /// [`ConnectError`]; nothing is sent on the connection then.
    pub fn connect_to(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        endpoint: EndpointId,
    ) -> Result<(), ConnectError> {
        self.handle_timeout(now);
        let access = self.maintenance.access(endpoint);
        if self.is_refusing || access == Access::Refusing {
            return Err(ConnectError::Refused);
        }
        if self.sessions.contains_key(&connection) {
            return Err(ConnectError::InUse(connection));
        }
        if self.sessions.len() >= self.config.limits.connections_max {
            return Err(ConnectError::Full);
        }
        self.last_client_id += 1;
        let mut session = Session::new(self.last_client_id, self.config.password.is_none());
        session.endpoint = endpoint;
        session.is_silent = access == Access::Silent;
        self.sessions.insert(connection, session);
        Ok(())
    }

    /// Takes what a client has sent, in one piece as it arrived. Bytes of a connection that is not open are dropped.
    pub fn bytes(&mut self, now: Instant, connection: ConnectionId, bytes: &[u8]) {
        self.handle_timeout(now);
        let Some(session) = self.sessions.get_mut(&connection).filter(|session| !session.is_silent) else {
            return;
        };
        session.reader.feed(bytes);
        session.batch_count = 0;
        if session.reader.len_bytes() > self.config.limits.input_bytes_max {
            return self.close(now, connection);
        }
        self.execute_arrived(now, connection);
        self.settle(now);
    }

    /// The client has closed or lost the connection: its state, its wait and its outputs are gone.
    pub fn disconnect(&mut self, now: Instant, connection: ConnectionId) {
        self.handle_timeout(now);
        self.forget(connection);
        self.outputs.retain(|_, output| output.connection != connection);
    }

    /// Does what the time asks for: ends waits, and executes what came while the server was busy.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.busy_until.is_some_and(|until| until > now) {
            return;
        }
        self.busy_until = None;
        while let Some(connection) = self.parked.pop_front() {
            self.execute_arrived(now, connection);
            if self.busy_until.is_some() {
                self.settle(now);
                return;
            }
        }
        self.time_out_waiters(now);
        self.settle(now);
        self.end_moves(now);
    }

    /// The next output that leaves by `now`.
    pub fn poll_output(&mut self, now: Instant) -> Option<Output> {
        let first = self.outputs.first_entry().filter(|entry| entry.key().0 <= now)?;
        let output = first.remove();
        if let (OutputEvent::Bytes(bytes), Some(session)) =
            (&output.event, self.sessions.get_mut(&output.connection))
        {
            session.output_bytes -= bytes.len();
        }
        Some(output)
    }

    /// When to call [`Self::handle_timeout`] and [`Self::poll_output`] next, if no input comes before.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let output = self.outputs.keys().next().map(|(due, _)| *due);
        let busy = self.busy_until;
        let wait =
            self.waiters.iter().filter_map(|waiter| waiter.deadline).chain(self.maintenance.ends()).min();
        // What ends while the server is busy is ended when it no longer is.
        let wait = wait.map(|at| busy.map_or(at, |until| until.max(at)));
        [output, busy, wait].into_iter().flatten().min()
    }

    /// Does something wrong to commands to come. Several troubles count independently; of those that hit the same
    /// command, the first given acts.
    pub fn trouble(&mut self, trouble: Trouble) {
        if trouble.left > 0 {
            self.troubles.push(trouble);
        }
    }

    /// Answers commands that begin with these words, in any case, with a reply that is given here instead of executing
    /// them: for commands that the model does not have. `JSON.GET doc:1` is for one key, `JSON.GET` for all others; what was
    /// given last counts. Such commands are not in the ledger, and within transactions they are what they were.
    pub fn answer(&mut self, words: &str, reply: Frame) {
        let words = words.split_ascii_whitespace().map(|word| Bytes::copy_from_slice(word.as_bytes()));
        self.answers.push((words.collect(), reply));
    }

    /// Forgets all troubles that have not happened yet. What was announced stands.
    pub fn calm(&mut self) {
        self.troubles.clear();
    }

    /// Executes nothing for this long, as a server in a slow command or without CPU. What arrives meanwhile waits.
    pub fn busy(&mut self, now: Instant, duration: Duration) {
        self.handle_timeout(now);
        self.busy_until = self.busy_until.max(Some(now + duration));
    }

    /// Refuses new connections, or accepts them again.
    pub fn refuse_connections(&mut self, is_refusing: bool) {
        self.is_refusing = is_refusing;
    }

    /// Sends a frame that nobody asked for, in the connection's protocol, behind what is under way. Whether there is such a
    /// connection.
    pub fn push(&mut self, now: Instant, connection: ConnectionId, frame: &Frame) -> bool {
        let is_open = self.sessions.contains_key(&connection);
        if is_open {
            let bytes = frame.encode(self.proto_of(connection));
            self.emit(now, connection, bytes);
        }
        is_open
    }

    /// Closes a connection behind what was written to it.
    pub fn close(&mut self, now: Instant, connection: ConnectionId) {
        let Some(session) = self.forget(connection) else { return };
        let due = session.last_due.max(now);
        self.put_output(due, Output { connection, event: OutputEvent::Close });
    }

    /// Stops and starts at once: every connection is closed, replies that have not left are lost, as is what was not
    /// executed yet. The ledger goes on, in the next generation.
    pub fn restart(&mut self, now: Instant, keep: Keep) {
        self.outputs.retain(|_, output| output.event == OutputEvent::Close);
        for connection in self.sessions.keys().copied().collect::<Vec<_>>() {
            self.forget(connection);
            self.put_output(now, Output { connection, event: OutputEvent::Close });
        }
        self.generation += 1;
        self.busy_until = None;
        self.parked.clear();
        self.maintenance.forget();
        if keep != Keep::Everything {
            self.scripts.clear();
        }
        if keep == Keep::Nothing {
            self.keyspace.clear();
        }
    }

    /// Ends a connection on the server's side, without an output.
    fn forget(&mut self, connection: ConnectionId) -> Option<Session> {
        let session = self.sessions.remove(&connection)?;
        self.waiters.retain(|waiter| waiter.connection != connection);
        if session.tracking.is_some() {
            self.forget_tracked(connection);
        }
        Some(session)
    }

    /// The protocol that a connection speaks.
    fn proto_of(&self, connection: ConnectionId) -> Proto {
        self.sessions.get(&connection).map_or(Proto::Resp2, |session| session.proto)
    }

    /// Serves those who wait for what has changed, and executes what stood behind their waits.
    fn settle(&mut self, now: Instant) {
        self.serve_waiters(now);
        while let Some(connection) = self.runnable.pop_front() {
            self.execute_arrived(now, connection);
            self.serve_waiters(now);
        }
    }

    /// Executes a connection's commands until it waits, ends, or the server is busy.
    fn execute_arrived(&mut self, now: Instant, connection: ConnectionId) {
        loop {
            let Some(session) = self.sessions.get_mut(&connection) else { return };
            if session.is_blocked {
                return;
            }
            if self.busy_until.is_some() {
                if !self.parked.contains(&connection) {
                    self.parked.push_back(connection);
                }
                return;
            }
            match session.reader.next(&self.config.limits.request) {
                Ok(Some(args)) => self.request(now, connection, &args),
                Ok(None) => return,
                Err(error) => {
                    let mut out = Writer::new(session.proto);
                    out.error(format_args!("ERR {error}"));
                    self.emit(now, connection, out.take().0);
                    return self.close(now, connection);
                }
            }
            self.serve_waiters(now);
        }
    }

    /// Writes an execution down, and remembers what was read for those who track it.
    fn record(&mut self, executed: Executed<'_>) {
        let mut keys = Vec::new();
        // Arguments that are wrong for the command have no keys, and an error reply.
        let _ = for_each_key(executed.command, executed.args, |index, flags| {
            if !flags.contains(KeyFlags::NOT_KEY) {
                keys.push(executed.args[index].clone());
            }
        });
        if executed.command.flags.contains(Flags::READONLY) {
            self.track_read(executed.connection, &keys);
        }
        let entry = Entry {
            sequence: 0,
            connection: executed.connection,
            generation: self.generation,
            at: executed.now,
            args: executed.args.into(),
            id: id_of(executed.args),
            transaction: executed.transaction,
            failed: executed.failed,
        };
        self.ledger.record(entry, &keys);
    }

    /// A command of `connection` has changed a key.
    fn key_changed(&mut self, now: Instant, connection: ConnectionId, key: DbKey) {
        self.tell_of_change(now, Some(connection), &key);
        self.changed.push_back(key);
    }

    /// Tells those who watch or track a key.
    fn tell_of_change(&mut self, now: Instant, by: Option<ConnectionId>, key: &DbKey) {
        let readers = self.tracked.remove(&key.1).unwrap_or_default();
        let mut told = Vec::new();
        for (connection, session) in &mut self.sessions {
            session.is_dirty |= session.watched.contains(key);
            let Some(tracking) = &session.tracking else { continue };
            let is_own = by == Some(*connection);
            let is_tracked = if tracking.is_broadcast {
                let prefixes = &tracking.prefixes;
                prefixes.is_empty() || prefixes.iter().any(|prefix| key.1.starts_with(prefix))
            } else {
                readers.contains(connection)
            };
            if is_tracked && !(is_own && tracking.is_without_own) {
                told.push(*connection);
            }
        }
        let key = Frame::Bulk(key.1.clone());
        let invalidate = Frame::Bulk(Bytes::from_static(b"invalidate"));
        let push = Frame::Push(vec![invalidate, Frame::Array(vec![key])]);
        for connection in told {
            let bytes = push.encode(self.proto_of(connection));
            self.tell(now, connection, bytes);
        }
    }

    /// Sends a push that a command has caused. To the connection of the command itself it comes behind the reply, as from
    /// Redis 8.2; Redis 7.0 sends it in front.
    fn tell(&mut self, now: Instant, connection: ConnectionId, bytes: Vec<u8>) {
        if self.executing == Some(connection) {
            self.deferred.push(bytes);
        } else {
            self.emit(now, connection, bytes);
        }
    }

    /// Sends bytes, behind what the connection was sent before.
    fn emit(&mut self, now: Instant, connection: ConnectionId, bytes: Vec<u8>) {
        let Some(session) = self.sessions.get_mut(&connection) else { return };
        if bytes.is_empty() {
            return;
        }
        let due = session.last_due.max(now + self.config.latency);
        session.last_due = due;
        session.output_bytes += bytes.len();
        if session.output_bytes > self.config.limits.output_bytes_max {
            return self.close(now, connection);
        }
        self.put_output(due, Output { connection, event: OutputEvent::Bytes(bytes.into()) });
    }

    fn put_output(&mut self, due: Instant, output: Output) {
        self.outputs.insert((due, self.output_count), output);
        self.output_count += 1;
    }
}

//! The client of one server, or of a cluster: a cheap handle that every task may use at once.
//!
//! Owns the sending of commands, pipelines and transactions, and the life of the engine behind them. Does not own what
//! a command looks like ([`Cmd`]), what becomes of it when connections break (the bridge), nor the connection, nor the ways of a cluster (`cluster`).

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::broadcast;
use towline_client_proto::routing::{BridgeId, EndpointId, Plan, ReadFrom};
use towline_client_proto::{
    Encoder, Error, ErrorKind, Event, Flags, LinkState, Order, Reply, Sent, encoded_len,
};
use towline_cluster::{Slot, key_slot};
use towline_resp::frame::Frame;
use towline_sansio::Instant;
use towline_spec::SideEffect;

use crate::args::Part;
use crate::cache;
use crate::clock;
use crate::cluster::{Attachment, Cluster};
use crate::cmd::{Cmd, CmdOptions, RetryChoice};
use crate::driver::Life;
use crate::engine::Engine;
use crate::lanes::{Further, start_engine, start_lanes};
use crate::lease::{Conduct, Pool};
use crate::options::{ConnectOptions, OptionsError};
use crate::pubsub::Hub;
use crate::trace;
use crate::transport::Connector;
use crate::url::UrlError;
use crate::value::{FromReply, ReplyError};

/// A handle to one server, or to a cluster. Cloning is cheap, and needless where a reference will do: every method takes `&self`.
///
/// Commands of all handles and tasks share one connection (or several: [`ConnectOptions::lanes`]) and are pipelined by
/// themselves. While the connection is down they wait (see the backlog policy), each until its own deadline. The engine ends when the last handle is
/// dropped.
#[derive(Clone)]
pub struct Client {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) way: Way,
    pub(crate) command_timeout: Duration,
    pub(crate) is_idempotent_retried: bool,
    pub(crate) has_script_cache: bool,
    /// What [`Client::cache`] gives. Of a cluster's client, not of its nodes'.
    pub(crate) cache: Option<Arc<cache::Shared>>,
    /// Which nodes of a cluster answer reads that do not say it themselves.
    pub(crate) read_from: ReadFrom,
    pub(crate) events: broadcast::Sender<Event>,
    /// The client's; its leases share it. A cluster has several.
    pub(crate) pubsub: Option<Arc<Hub>>,
    pub(crate) role: Role,
    /// The connections beside the engine's.
    pub(crate) further: Further,
    /// Ends the engine with the last handle. A lease borrows its engine from the pool, and nodes of a cluster have theirs.
    pub(crate) _running: Option<Running>,
}

/// Where commands go.
pub(crate) enum Way {
    /// To one server: its first lane.
    Endpoint(Arc<Engine>),
    /// To the nodes of a cluster.
    Cluster(Arc<Cluster>),
}

/// Whose connection it is.
pub(crate) enum Role {
    /// Everybody's: nothing may hold it up or change it.
    Shared(Arc<Pool>),
    /// One holder's.
    Leased(Conduct),
    /// There are those of the nodes.
    Clustered,
}

/// A dial that hangs ends with the connect timeout too, and knows what it waited for: it gets this long to say so.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// An engine, and the right to end it: dropped, it ends once what is in flight is answered.
pub(crate) struct Running {
    pub(crate) engine: Arc<Engine>,
    pub(crate) events: broadcast::Sender<Event>,
}

impl Running {
    /// Starts an engine on the current runtime.
    pub(crate) fn start(
        options: &ConnectOptions,
        connector: Connector,
        life: Life,
    ) -> Result<Self, OptionsError> {
        let (engine, events) = start_engine(options, connector, None, life, None)?;
        Ok(Self { engine, events })
    }

    /// Waits until it is connected; see [`Client::ready`].
    pub(crate) async fn ready(engine: &Engine, events: &broadcast::Sender<Event>) -> Result<(), Error> {
        Self::connected(engine, events, |_| true).await.map(drop)
    }

    /// As [`Running::ready`]. `goes_on` is told of every attempt that failed; if it says no, the wait ends with false.
    pub(crate) async fn connected(
        engine: &Engine,
        events: &broadcast::Sender<Event>,
        mut goes_on: impl FnMut(String) -> bool,
    ) -> Result<bool, Error> {
        let mut events = events.subscribe();
        loop {
            {
                let state = engine.lock();
                if state.is_ended {
                    return Err(Error::new(ErrorKind::Closed, Sent::No));
                }
                if state.bridge.link_state() == LinkState::Up {
                    return Ok(true);
                }
            }
            let failure = match events.recv().await {
                Ok(Event::HandshakeFailed { error, .. }) if !error.is_retryable() => {
                    return Err(Error::new(ErrorKind::Handshake(error), Sent::No));
                }
                Ok(Event::HandshakeFailed { error, .. }) => error.to_string(),
                Ok(Event::DialFailed { error, .. }) => {
                    let last = engine.lock().last_dial_error.clone();
                    last.map_or_else(|| error.to_string(), |last| last.to_string())
                }
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => continue,
                Err(broadcast::error::RecvError::Closed) => {
                    return Err(Error::new(ErrorKind::Closed, Sent::No));
                }
            };
            if !goes_on(failure) {
                return Ok(false);
            }
        }
    }

    /// Why no connection came within the time that there was: the last attempt's reason.
    pub(crate) fn connect_error(reason: Option<String>) -> Error {
        let reason = reason.unwrap_or_else(|| "no connection within the time".to_owned());
        Error::new(ErrorKind::Connect(reason.into()), Sent::No)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let now = clock::now();
        let mut state = self.engine.lock();
        state.bridge.close(now);
        crate::engine::wake_owner(state);
    }
}

/// Starts a client on the current runtime.
pub(crate) fn start(mut options: ConnectOptions) -> Result<Arc<Inner>, OptionsError> {
    let cache = options.take_client_cache()?.map(cache::Shared::new);
    if let Some(topology) = options.take_topology() {
        let (command_timeout, is_idempotent_retried) =
            (options.default_command_timeout(), options.is_idempotent_retried());
        let has_script_cache = options.is_script_cached();
        let cluster = Cluster::start(options, topology, cache.clone())?;
        return Ok(Arc::new(Inner {
            command_timeout,
            is_idempotent_retried,
            has_script_cache,
            cache,
            read_from: cluster.read_from(),
            events: cluster.events().clone(),
            pubsub: None,
            role: Role::Clustered,
            way: Way::Cluster(cluster),
            further: Further::none(),
            _running: None,
        }));
    }
    let connector = options.connector()?;
    let lanes = start_lanes(&options, &connector, |_| None, cache.as_ref())?;
    Ok(assemble(options, connector, lanes, cache))
}

/// Starts the client of one node of a cluster on the current runtime.
pub(crate) fn start_node(
    options: ConnectOptions,
    connector: Connector,
    cluster: &Weak<Cluster>,
    endpoint: EndpointId,
    cache: Option<&Arc<cache::Shared>>,
) -> Arc<Inner> {
    let attach = |lane| Some(Attachment::of_bridge(cluster, BridgeId { endpoint, lane }));
    let lanes = start_lanes(&options, &connector, attach, cache)
        .expect("invariant: the cluster's client has checked the options");
    assemble(options, connector, lanes, None)
}

fn assemble(
    options: ConnectOptions,
    connector: Connector,
    (running, further): (Running, Further),
    cache: Option<Arc<cache::Shared>>,
) -> Arc<Inner> {
    let pubsub = Arc::new(Hub::new(options.clone(), connector.clone()));
    let (command_timeout, is_idempotent_retried) =
        (options.default_command_timeout(), options.is_idempotent_retried());
    let has_script_cache = options.is_script_cached();
    let pool = Pool::new(options, connector, Arc::clone(&running.engine), Arc::clone(&pubsub));
    Arc::new(Inner {
        way: Way::Endpoint(Arc::clone(&running.engine)),
        command_timeout,
        is_idempotent_retried,
        has_script_cache,
        cache,
        read_from: ReadFrom::Primary,
        events: running.events.clone(),
        pubsub: Some(pubsub),
        role: Role::Shared(pool),
        further,
        _running: Some(running),
    })
}

impl Inner {
    /// The engine of a client of one server.
    pub(crate) fn endpoint(&self) -> &Arc<Engine> {
        match &self.way {
            Way::Endpoint(engine) => engine,
            Way::Cluster(_) => unreachable!("invariant: nodes and leases are clients of one server"),
        }
    }

    pub(crate) const fn cluster(&self) -> Option<&Arc<Cluster>> {
        match &self.way {
            Way::Endpoint(_) => None,
            Way::Cluster(cluster) => Some(cluster),
        }
    }

    /// The connection of subscriptions to a name: in a cluster, to the channels of its slot.
    pub(crate) fn hub(&self, slot: Option<Slot>) -> Option<Arc<Hub>> {
        match &self.way {
            Way::Endpoint(_) => self.pubsub.clone(),
            Way::Cluster(cluster) => Some(cluster.hub(slot)),
        }
    }

    /// A handle to a leased connection, which outlives it.
    pub(crate) fn leased(pool: &Arc<Pool>, running: &Running) -> Self {
        Self {
            way: Way::Endpoint(Arc::clone(&running.engine)),
            command_timeout: pool.options().default_command_timeout(),
            is_idempotent_retried: false,
            has_script_cache: pool.options().is_script_cached(),
            cache: None,
            read_from: ReadFrom::Primary,
            events: running.events.clone(),
            pubsub: Some(Arc::clone(pool.pubsub())),
            role: Role::Leased(Conduct::new(Arc::clone(pool))),
            further: Further::none(),
            _running: None,
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Role::Shared(pool) = &self.role {
            pool.close();
        }
    }
}

impl Client {
    /// Connects to the server of a URL such as `redis://localhost:6379`; see [`ConnectOptions`] for all of its forms.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] if the URL makes no sense, otherwise as [`Client::open`].
    ///
    /// # Cancel safety
    /// As [`Client::open`].
    pub async fn connect(url: &str) -> Result<Self, Error> {
        let options: ConnectOptions =
            url.parse().map_err(|error: UrlError| Error::misuse(error.to_string()))?;
        Self::open(options).await
    }

    /// Connects, and waits until the connection serves: for the connect timeout at most.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`]: the options do not go together; [`ErrorKind::Handshake`]: the server refuses them for
    /// good; [`ErrorKind::Connect`]: no connection within the time, with the last dial's reason.
    ///
    /// # Cancel safety
    /// Dropping it ends what it has begun.
    pub async fn open(options: ConnectOptions) -> Result<Self, Error> {
        let timeout = options.dial_timeout();
        let client = Self::lazy(options)?;
        client.connected_within(timeout).await.map(|()| client)
    }

    /// Waits for the connection, for the time of a dial.
    pub(crate) async fn connected_within(&self, timeout: Duration) -> Result<(), Error> {
        if let Way::Cluster(cluster) = &self.inner.way {
            return Box::pin(cluster.connected_within(timeout)).await;
        }
        let end = tokio::time::Instant::now().checked_add(timeout);
        let mut reason = None;
        let waiting = async {
            for engine in self.inner.engines() {
                let is_up = Running::connected(engine, &self.inner.events, |failure| {
                    reason = Some(failure);
                    end.is_none_or(|end| tokio::time::Instant::now() < end)
                });
                if !is_up.await? {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        match tokio::time::timeout(timeout.saturating_add(LAST_WORDS), waiting).await {
            Ok(Ok(true)) => Ok(()),
            Ok(Err(error)) => Err(error),
            Ok(Ok(false)) | Err(_) => Err(Running::connect_error(reason)),
        }
    }

    /// A client that connects in the background; commands wait for it as the backlog policy says. The server need
    /// not be there yet. Must be called within a tokio runtime, on which the client lives.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`]: the options do not go together.
    pub fn lazy(options: ConnectOptions) -> Result<Self, Error> {
        start(options).map(|inner| Self { inner }).map_err(|error| Error::misuse(error.to_string()))
    }

    /// Waits until the client is connected, with all of its lanes: without end if no server comes, whatever the policy and the timeouts say. Put
    /// `tokio::time::timeout` around it where that matters.
    ///
    /// # Errors
    /// [`ErrorKind::Handshake`] if the server refuses the configuration for good; [`ErrorKind::Closed`].
    ///
    /// # Cancel safety
    /// Dropping it changes nothing.
    pub async fn ready(&self) -> Result<(), Error> {
        match &self.inner.way {
            Way::Endpoint(_) => {
                for engine in self.inner.engines() {
                    Running::ready(engine, &self.inner.events).await?;
                }
                Ok(())
            }
            Way::Cluster(cluster) => Box::pin(cluster.served()).await,
        }
    }

    /// Ends the client for all its handles. Commands that were accepted are finished first if the connection is up,
    /// each within its deadline; new ones, blocking ones, leases and subscriptions are refused with
    /// [`ErrorKind::Closed`]. Leases and subscriptions that are held end with their own drop.
    ///
    /// Dropping the last handle does the same without waiting for it.
    ///
    /// # Cancel safety
    /// Dropping it leaves the client closing.
    pub async fn close(&self) {
        if let Way::Cluster(cluster) = &self.inner.way {
            return Box::pin(cluster.close()).await;
        }
        let mut events = self.inner.events.subscribe();
        // Those of a lease are its client's.
        if let Role::Shared(pool) = &self.inner.role {
            pool.close();
            self.inner.pubsub.iter().for_each(|hub| hub.close());
        }
        for engine in self.inner.engines() {
            let mut state = engine.lock();
            state.bridge.close(clock::now());
            crate::engine::wake_owner(state);
        }
        if self.inner.is_ended() {
            return;
        }
        while !matches!(events.recv().await, Ok(Event::Closed) | Err(broadcast::error::RecvError::Closed)) {}
    }

    /// `GET key`. Copies nothing and, for `Bytes` and types without heap memory, allocates nothing.
    ///
    /// # Errors
    /// As [`Cmd::query`].
    ///
    /// # Cancel safety
    /// As [`Cmd::query`].
    pub async fn get<T: FromReply>(&self, key: impl AsRef<[u8]>) -> Result<T, Error> {
        let args: [&[u8]; 2] = [b"GET", key.as_ref()];
        trace::command(b"GET", self.query_slices(&args, SideEffect::ReadOnly)).await
    }

    /// `SET key value`.
    ///
    /// # Errors
    /// As [`Cmd::query`].
    ///
    /// # Cancel safety
    /// As [`Cmd::query`].
    pub async fn set(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<(), Error> {
        let args: [&[u8]; 3] = [b"SET", key.as_ref(), value.as_ref()];
        trace::command(b"SET", self.query_slices(&args, SideEffect::Idempotent)).await
    }

    /// One command from slices that are copied once, into the connection's buffer. The second is its key.
    async fn query_slices<T: FromReply>(&self, args: &[&[u8]], effect: SideEffect) -> Result<T, Error> {
        let order = Order {
            effect,
            replies: 1,
            deadline: clock::now() + self.inner.command_timeout,
            flags: self.default_flags(),
            bytes: encoded_len(args),
            room: None,
        };
        convert(match &self.inner.way {
            Way::Endpoint(engine) => {
                let slot = || args.get(1).map(|key| key_slot(key));
                self.inner.further.engine_for(engine, slot).exchange(order, |out| out.command(args)).await
            }
            Way::Cluster(cluster) => {
                let slot = args.get(1).map(|key| cluster.slot_of_key(key));
                let is_read = effect == SideEffect::ReadOnly;
                let read = if is_read { self.inner.read_from } else { ReadFrom::Primary };
                cluster.exchange_read(slot, read, order, |out| out.command(args)).await
            }
        })
    }

    /// Sends one command.
    pub(crate) async fn send(&self, cmd: &Cmd) -> Result<Frame, Error> {
        let profile = cmd.profile();
        self.admit(cmd, &profile)?;
        if let Some(block) = profile.block_time {
            // Boxed: the future of every other command stays small.
            return Box::pin(self.send_blocking(cmd, profile.effect, block)).await;
        }
        self.send_as(cmd, self.order(cmd, profile.effect)).await
    }

    /// Sends one command that does not block and was admitted.
    pub(crate) async fn send_as(&self, cmd: &Cmd, order: Order) -> Result<Frame, Error> {
        let reply = match &self.inner.way {
            Way::Endpoint(engine) => {
                let engine = self.inner.further.engine_for(engine, || cmd.slot());
                engine.exchange(order, |out| cmd.encode(out)).await?
            }
            Way::Cluster(cluster) => match cluster.plan(cmd) {
                Plan::Slot(slot) => {
                    let read = self.read_policy(cmd);
                    cluster.exchange_read(Some(slot), read, order, |out| cmd.encode(out)).await?
                }
                Plan::Anywhere => cluster.exchange(None, order, |out| cmd.encode(out)).await?,
                // Boxed: the future of every other command stays small.
                plan => return Box::pin(cluster.carry_out(self, cmd, order.effect, plan)).await,
            },
        };
        match reply {
            Reply::One(frame) => Ok(frame),
            Reply::Many(frames) => Ok(Frame::Array(frames)),
        }
    }

    /// What the bridge must know of `cmd`.
    pub(crate) fn order(&self, cmd: &Cmd, effect: SideEffect) -> Order {
        let (deadline, flags) = self.terms(cmd.options());
        Order { effect, replies: 1, deadline, flags, bytes: cmd.wire_len(), room: None }
    }

    fn default_flags(&self) -> Flags {
        match &self.inner.role {
            // There is no next connection to repeat anything on.
            Role::Leased(_) => Flags::NO_RETRY,
            Role::Shared(_) | Role::Clustered if self.inner.is_idempotent_retried => Flags::ALLOW_RETRY,
            Role::Shared(_) | Role::Clustered => Flags::NONE,
        }
    }

    /// The deadline and the flags that a command's options amount to.
    pub(crate) fn terms(&self, options: &CmdOptions) -> (Instant, Flags) {
        let mut flags = match options.retry {
            RetryChoice::ByEffect => self.default_flags(),
            RetryChoice::Never => Flags::NO_RETRY,
            RetryChoice::Allowed if matches!(self.inner.role, Role::Leased(_)) => Flags::NO_RETRY,
            RetryChoice::Allowed => Flags::ALLOW_RETRY,
        };
        if options.is_fire_and_forget {
            flags = flags | Flags::FIRE_AND_FORGET;
        }
        if options.deadline.is_some() {
            flags = flags | Flags::HARD_DEADLINE;
        }
        let after = options.deadline.unwrap_or(self.inner.command_timeout);
        (clock::now() + after, flags)
    }
}

impl Cmd {
    /// Writes the command's bytes.
    pub(crate) fn encode(&self, out: &mut Encoder<'_>) {
        self.write_to(|part| match part {
            Part::Encoded(bytes) => out.raw(bytes),
            Part::Shared(bytes) => out.share(Bytes::clone(bytes)),
        });
    }

    /// Sends the command and converts its reply.
    ///
    /// # Errors
    /// [`Error::kind`] says what happened, [`Error::sent`] whether the server may have run the command.
    /// [`ErrorKind::Misuse`]: it would change the connection that all handles share; take a lease
    /// ([`Client::lease`]).
    ///
    /// A command that may block (`BLPOP`) leaves for a connection of its own by itself; see [`crate::Lease`] for its
    /// time and what dropping it means.
    ///
    /// # Cancel safety
    /// A command whose future is dropped before the connection took it is withdrawn and never sent; later its reply
    /// is read and dropped, and nobody else ever gets it.
    pub async fn query<T: FromReply>(self, client: &Client) -> Result<T, Error> {
        if self.options().is_fire_and_forget {
            // Known before anything is sent: nobody must learn from a missing reply that a command failed which did not.
            let nothing = T::from_reply(Frame::Null);
            let nothing =
                nothing.map_err(|_| Error::misuse("a fire-and-forget command has no reply: ask for `()`"))?;
            trace::command(self.name(), client.send(&self)).await?;
            return Ok(nothing);
        }
        let outcome = trace::command(self.name(), client.send(&self)).await;
        convert(outcome.map(Reply::One))
    }
}

/// The outcome as the caller's type. A type that has a place for the server's error gets it as a value.
#[inline]
pub(crate) fn convert<T: FromReply>(outcome: Result<Reply, Error>) -> Result<T, Error> {
    let frame = match outcome {
        Ok(Reply::One(frame)) => frame,
        Ok(Reply::Many(frames)) => Frame::Array(frames),
        Err(error) => match error.kind() {
            ErrorKind::Server(answer) => Frame::Error(answer.to_bytes()),
            _ => return Err(error),
        },
    };
    T::from_reply(frame).map_err(reply_error)
}

#[cold]
pub(crate) fn reply_error(error: ReplyError) -> Error {
    match error {
        ReplyError::Server(answer) => Error::server(answer),
        shape => Error::new(ErrorKind::Shape(shape.to_string().into()), Sent::Answered),
    }
}

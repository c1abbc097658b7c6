//! The connections that can be leased.
//!
//! Owns how many there are, who gets one next, and which of them go. Does not own what is sent on them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};
use towline_client_proto::{
    BacklogPolicy, Error, ErrorKind, Flags, LinkState, LostCause, Order, Outage, Reply, Sent, Situation,
    Verdict, encoded_len,
};
use towline_spec::SideEffect;

use super::guide::Guide;
use super::node::{Aside, Node};
use crate::client::Running;
use crate::clock;
use crate::driver::Life;
use crate::engine::{Engine, wake_owner};
use crate::options::ConnectOptions;
use crate::pubsub::Hub;
use crate::transport::Connector;

/// The leased connections of one client.
pub(crate) struct Pool {
    /// Those of the client, with a policy for connections that end.
    options: ConnectOptions,
    connector: Connector,
    runtime: Handle,
    /// The shared connection's engine.
    shared: Arc<Engine>,
    /// Where new connections lead.
    guide: Arc<Guide>,
    pubsub: Arc<Hub>,
    /// One for each connection that is taken. Waiters get them in the order in which they came.
    permits: Arc<Semaphore>,
    state: Mutex<State>,
}

struct State {
    /// Unused connections, the last used one last.
    idle: Vec<Idle>,
    /// The client's own policy: whether to wait while nothing is connected.
    policy: Box<dyn BacklogPolicy>,
    /// Connections to addresses that the shared one has left, as long as somebody uses them.
    asides: BTreeMap<SocketAddr, Weak<Aside>>,
    has_reaper: bool,
    is_closed: bool,
    /// Connections that were made, as long as somebody has them.
    made: Vec<Weak<Engine>>,
    /// Commands go to another server.
    is_left: bool,
    totals: Totals,
}

struct Idle {
    running: Running,
    since: Instant,
}

#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    opened: u64,
    unblocked: u64,
    replies_lost: u64,
    released: u64,
}

/// What the leased connections of a client are doing; see [`Client::lease_report`](crate::Client::lease_report).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LeaseReport {
    /// Most connections.
    pub leased_max: usize,
    /// Connections in use, those included that wait for the reply to a command that was given up.
    pub taken: usize,
    /// Connections that wait for their next use.
    pub idle: usize,
    /// Connections opened so far.
    pub opened: u64,
    /// Blocked commands that were given up and ended by `CLIENT UNBLOCK` so far.
    pub unblocked: u64,
    /// Replies with data that nobody got so far, because their commands had been given up: popped elements are gone
    /// with them.
    pub replies_lost: u64,
    /// Blocked commands that had to leave their connection, because its server said that it moves, and were issued again
    /// on another one so far. Their callers do not notice.
    pub released: u64,
}

impl LeaseReport {
    /// Adds those of another node's client.
    pub(crate) const fn add(&mut self, other: &Self) {
        self.leased_max += other.leased_max;
        self.taken += other.taken;
        self.idle += other.idle;
        self.opened += other.opened;
        self.unblocked += other.unblocked;
        self.replies_lost += other.replies_lost;
        self.released += other.released;
    }
}

/// How long commands have to leave a server that is none of the client's any more: they are ended after half of it.
/// Sentinels demote an old primary, and close its connections, about eight seconds after they have named another one.
const LEAVING_WINDOW: Duration = Duration::from_secs(2);

/// Work waits for the first connection and for no other.
#[derive(Debug)]
struct UntilLost;

impl BacklogPolicy for UntilLost {
    fn admit(&self, situation: &Situation) -> Verdict {
        match situation.outage {
            Outage::NeverConnected => Verdict::Queue,
            _ => Verdict::Fail,
        }
    }

    fn keep_on_loss(&self, outage: Outage) -> bool {
        outage == Outage::NeverConnected
    }
}

impl Pool {
    /// A pool without connections. Must be called within a tokio runtime.
    pub(crate) fn new(
        options: ConnectOptions,
        connector: Connector,
        shared: Arc<Engine>,
        pubsub: Arc<Hub>,
    ) -> Arc<Self> {
        let state = State {
            idle: Vec::new(),
            asides: BTreeMap::new(),
            policy: options.policy(),
            has_reaper: false,
            is_closed: false,
            made: Vec::new(),
            is_left: false,
            totals: Totals::default(),
        };
        Arc::new(Self {
            connector,
            runtime: Handle::current(),
            guide: Arc::new(Guide::new(Arc::clone(&shared))),
            shared,
            pubsub,
            permits: Arc::new(Semaphore::new(options.leased_bound())),
            options: options.backlog_with(|| Box::new(UntilLost)),
            state: Mutex::new(state),
        })
    }

    pub(crate) const fn options(&self) -> &ConnectOptions {
        &self.options
    }

    /// The client's subscriptions, which its leases share.
    pub(crate) const fn pubsub(&self) -> &Arc<Hub> {
        &self.pubsub
    }

    pub(super) fn guide(&self) -> &Guide {
        &self.guide
    }

    pub(crate) const fn connector(&self) -> &Connector {
        &self.connector
    }

    pub(super) const fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// A panic elsewhere leaves the state whole: no foreign code runs under the lock but a policy, which reads.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a connection that is ready, until a time if there is one. First come, first served.
    pub(super) async fn take(self: &Arc<Self>, until: Option<Instant>) -> Result<Taken, Error> {
        match within(until, Arc::clone(&self.permits).acquire_owned()).await {
            Some(Ok(permit)) => self.connect(permit, until).await,
            Some(Err(_)) => Err(Error::new(ErrorKind::Closed, Sent::No)),
            None => {
                let leased_max = self.options.leased_bound();
                Err(Error::new(ErrorKind::LeasesTaken { leased_max }, Sent::No))
            }
        }
    }

    /// As [`Pool::take`], for who has a place already.
    pub(super) async fn connect(
        self: &Arc<Self>,
        permit: OwnedSemaphorePermit,
        until: Option<Instant>,
    ) -> Result<Taken, Error> {
        let running = self.reuse_or_open()?;
        let taken = Taken { pool: Arc::clone(self), running: Some(running), permit: Some(permit) };
        let running = taken.running();
        let mut reason = None;
        let connected = Running::connected(&running.engine, &running.events, |failure| {
            reason = Some(failure);
            true
        });
        match within(until, connected).await {
            Some(Ok(_)) => Ok(taken),
            // It was there and is gone again: the caller may try another.
            Some(Err(error)) if *error.kind() == ErrorKind::Closed => {
                Err(Error::new(ErrorKind::Lost(LostCause::Closed), Sent::No))
            }
            Some(Err(error)) => Err(error),
            None => Err(Running::connect_error(reason)),
        }
    }

    fn reuse_or_open(&self) -> Result<Running, Error> {
        // Dropped after the lock.
        let mut ended = Vec::new();
        let mut state = self.lock();
        if state.is_closed {
            return Err(Error::new(ErrorKind::Closed, Sent::No));
        }
        let mut opening = None;
        while let Some(Idle { running, .. }) = state.idle.pop() {
            match self.condition(&running) {
                Condition::Ready => {
                    state.idle.extend(opening);
                    return Ok(running);
                }
                Condition::Opening if opening.is_none() => {
                    opening = Some(Idle { running, since: Instant::now() });
                }
                Condition::Opening | Condition::Leaving | Condition::Ended => ended.push(running),
            }
        }
        if let Some(Idle { running, .. }) = opening {
            return Ok(running);
        }
        self.check_policy(&state)?;
        state.totals.opened += 1;
        drop(state);
        let _context = self.runtime.enter();
        let life = Life::OneConnection(Arc::clone(&self.guide));
        let running = Running::start(&self.options, self.connector.clone(), life)
            .map_err(|error| Error::misuse(error.to_string()))?;
        let mut state = self.lock();
        state.made.retain(|engine| engine.strong_count() > 0);
        state.made.push(Arc::downgrade(&running.engine));
        Ok(running)
    }

    /// Commands go to another server from now on: those that block here are ended and sent there, and whoever holds a lease is
    /// told that it will not last. `wakes` are to be called without any lock.
    pub(crate) fn leave(&self, wakes: &mut Vec<Waker>) {
        let mut state = self.lock();
        state.is_left = true;
        let made: Vec<Arc<Engine>> = state.made.iter().filter_map(Weak::upgrade).collect();
        drop(state);
        for engine in made {
            let mut state = engine.lock();
            state.bridge.leave(clock::now(), LEAVING_WINDOW);
            state.bridge.take_wakes(wakes);
            wakes.extend(state.owner.take());
        }
    }

    /// Whether commands go to another server.
    pub(super) fn is_left(&self) -> bool {
        self.lock().is_left
    }

    /// A client whose policy does not wait for its shared connection does not wait for a leased one either.
    fn check_policy(&self, state: &State) -> Result<(), Error> {
        let now = clock::now();
        let shared = self.shared.lock();
        let Some(outage) = shared.bridge.outage() else { return Ok(()) };
        let situation = Situation {
            outage,
            since: shared.bridge.down_for(now),
            backlog_bytes: 0,
            backlog_commands: 0,
            command_bytes: 0,
            is_movable: false,
        };
        drop(shared);
        match state.policy.admit(&situation) {
            Verdict::Fail => Err(Error::new(ErrorKind::Unavailable, Sent::No)),
            _ => Ok(()),
        }
    }

    fn give_back(self: &Arc<Self>, running: Running) {
        let has_time = matches!(self.condition(&running), Condition::Ready | Condition::Opening);
        if !has_time || !running.engine.lock().bridge.is_idle() {
            return end(running);
        }
        running.engine.lock().bridge.set_liveness(*self.options.liveness_config());
        let mut state = self.lock();
        if state.is_closed {
            drop(state);
            return end(running);
        }
        state.idle.push(Idle { running, since: Instant::now() });
        if !std::mem::replace(&mut state.has_reaper, true) {
            self.runtime.spawn(reap(Arc::downgrade(self)));
        }
    }

    /// Ends what has been unused for too long. Returns when to look again.
    fn reap(&self) -> Option<Instant> {
        let idle_max = self.options.leased_idle_time();
        let now = Instant::now();
        let mut state = self.lock();
        let (old, idle): (Vec<_>, Vec<_>) = std::mem::take(&mut state.idle).into_iter().partition(|idle| {
            now.duration_since(idle.since) >= idle_max
                || matches!(self.condition(&idle.running), Condition::Leaving | Condition::Ended)
        });
        state.idle = idle;
        let next = state.idle.iter().filter_map(|idle| idle.since.checked_add(idle_max)).min();
        state.has_reaper = next.is_some();
        drop(state);
        old.into_iter().for_each(|idle| end(idle.running));
        next
    }

    /// The client has gone: nothing is taken any more, and what comes back is closed.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let idle = std::mem::take(&mut state.idle);
        drop(state);
        self.permits.close();
        idle.into_iter().for_each(|idle| end(idle.running));
    }

    pub(super) fn report(&self) -> LeaseReport {
        let state = self.lock();
        let leased_max = self.options.leased_bound();
        let Totals { opened, unblocked, replies_lost, released } = state.totals;
        LeaseReport {
            leased_max,
            taken: leased_max - self.permits.available_permits().min(leased_max),
            idle: state.idle.len(),
            opened,
            unblocked,
            replies_lost,
            released,
        }
    }

    /// A blocked command leaves its connection for another one.
    pub(super) fn note_released(&self) {
        self.lock().totals.released += 1;
    }

    /// The connection to an address that the shared one has left: the one that others use, or one that is to be made.
    pub(super) fn aside(&self, address: SocketAddr) -> Arc<Aside> {
        let mut state = self.lock();
        state.asides.retain(|_, aside| aside.strong_count() > 0);
        if let Some(aside) = state.asides.get(&address).and_then(Weak::upgrade) {
            return aside;
        }
        let aside = Arc::new(Aside::new(address));
        state.asides.insert(address, Arc::downgrade(&aside));
        aside
    }

    /// It does not work: the next that is asked for is another one.
    pub(super) fn forget_aside(&self, aside: &Arc<Aside>) {
        self.lock().asides.retain(|_, known| !std::ptr::eq(known.as_ptr(), Arc::as_ptr(aside)));
    }

    /// Whether the shared connection leads to the same process as the one at `node`.
    pub(super) fn shares(&self, node: &Node) -> bool {
        let state = self.shared.lock();
        // One that ends takes nothing any more.
        let is_open = !state.is_ended && !state.bridge.is_closed();
        is_open && state.bridge.peer() == node.peer() && state.bridge.moves_announced() == node.moves()
    }

    /// A command that was given up has its reply.
    pub(super) fn note_unblocked(&self, has_data: bool) {
        let mut state = self.lock();
        state.totals.unblocked += 1;
        state.totals.replies_lost += u64::from(has_data);
    }

    /// Sends one command over the shared connection, for the pool's own needs.
    pub(super) async fn say(&self, args: &[&[u8]], timeout: Duration) -> Result<Reply, Error> {
        say(&self.shared, args, timeout).await
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Pool").field(&self.report()).finish()
    }
}

/// Ends unused connections as long as there are any. Holds no pool while it sleeps.
async fn reap(pool: Weak<Pool>) {
    loop {
        let Some(next) = pool.upgrade().and_then(|pool| pool.reap()) else { return };
        tokio::time::sleep_until(next).await;
    }
}

pub(crate) async fn say(engine: &Engine, args: &[&[u8]], timeout: Duration) -> Result<Reply, Error> {
    let order = Order {
        effect: SideEffect::Admin,
        replies: 1,
        deadline: clock::now() + timeout,
        // What it says is meant for this server: another one's answer would be a wrong one.
        flags: Flags::NO_RETRY | Flags::PINNED,
        bytes: encoded_len(args),
        room: None,
    };
    engine.exchange(order, |out| out.command(args)).await
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition {
    Ready,
    /// Its first connection is not there yet.
    Opening,
    /// Its server has said that it will end.
    Leaving,
    Ended,
}

impl Pool {
    fn condition(&self, running: &Running) -> Condition {
        let state = running.engine.lock();
        match state.bridge.link_state() {
            _ if state.is_ended => Condition::Ended,
            LinkState::Up => match state.leaving() {
                None => Condition::Ready,
                Some(leaving) => {
                    self.guide.note(leaving);
                    Condition::Leaving
                }
            },
            _ if state.bridge.counters().connections == 0 => Condition::Opening,
            _ => Condition::Ended,
        }
    }
}

/// Closes a connection, whatever is on it.
fn end(running: Running) {
    kill(&running.engine);
    drop(running);
}

/// Ends what an engine has; what was sent on it fails.
pub(super) fn kill(engine: &Engine) {
    let now = clock::now();
    let mut state = engine.lock();
    let generation = state.bridge.generation();
    state.bridge.close(now);
    state.bridge.lost(now, generation, LostCause::Killed);
    wake_owner(state);
}

/// A future's output, unless the time comes first.
pub(super) async fn within<F: Future>(until: Option<Instant>, future: F) -> Option<F::Output> {
    match until {
        Some(until) => timeout_at(until, future).await.ok(),
        None => Some(future.await),
    }
}

/// A connection that is taken. Dropped, it goes back to its pool, or is closed if it cannot serve another.
pub(super) struct Taken {
    pool: Arc<Pool>,
    /// Present until it is dropped.
    running: Option<Running>,
    /// Present until it is dropped.
    permit: Option<OwnedSemaphorePermit>,
}

impl Taken {
    pub(super) const fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    pub(super) const fn running(&self) -> &Running {
        self.running.as_ref().expect("invariant: it is there until the drop")
    }

    /// Whether nothing is owed on it.
    pub(super) fn is_at_rest(&self) -> bool {
        self.running().engine.lock().bridge.is_idle()
    }

    /// Gives it back, and keeps the place of one that is taken.
    pub(super) fn vacate(mut self) -> OwnedSemaphorePermit {
        self.running.take().into_iter().for_each(|running| self.pool.give_back(running));
        self.permit.take().expect("invariant: it is there until the drop")
    }

    /// Closes it.
    pub(super) fn end(mut self) {
        self.running.take().into_iter().for_each(end);
    }

    /// Sends commands, and gives the connection back when all replies that it owes have come. Their text does not
    /// matter (`DISCARD` fails where no transaction is open). It is closed if they do not come within the command
    /// timeout.
    pub(super) fn clean_up(self, commands: &'static [&'static [&'static str]]) {
        let runtime = self.pool.runtime.clone();
        runtime.spawn(async move {
            let timeout = self.pool.options.default_command_timeout();
            let engine = Arc::clone(&self.running().engine);
            for command in commands {
                let args: Vec<&[u8]> = command.iter().map(|arg| arg.as_bytes()).collect();
                if let Err(error) = say(&engine, &args, timeout).await
                    && error.code().is_none()
                {
                    return self.end();
                }
            }
        });
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            self.pool.give_back(running);
        }
    }
}

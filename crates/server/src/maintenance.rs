//! Planned moves: connections are told before something happens to them, and are closed when nothing of theirs is lost by it.
//!
//! Owns: the handle that programs use, announcing and draining, what the end of a drain's window does to connections. Does
//! **not** own the commands (`CLIENT MAINT_NOTIFICATIONS`, `TOWLINE DRAIN`), nor the moves of data that a notice may be
//! about.
//!
//! A drain closes exactly the connections that had been accepted when it was announced: whoever connects during the window
//! has followed the notice, or will stay, and new connections are accepted all along.

mod drains;
mod notice;
mod registry;

pub use notice::{EndpointType, Notice, Scope, SlotMove, Successor};
pub(crate) use registry::Registry;

use crate::client::Ending;
use crate::shared::Shared;
use drains::Step;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The shortest window of a drain. Clients count in whole seconds, so windows below one second are for tests.
pub const DRAIN_WINDOW_MIN: Duration = Duration::from_millis(100);
/// The longest window of a drain.
pub const DRAIN_WINDOW_MAX: Duration = Duration::from_secs(3600);
/// The window of a drain that says none: what clients expect of a planned move, and what Redis Enterprise gives them.
pub const DRAIN_WINDOW_DEFAULT: Duration = Duration::from_secs(15);

/// Why a drain does not begin; the caller's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DrainError {
    /// The window is shorter than [`DRAIN_WINDOW_MIN`] or longer than [`DRAIN_WINDOW_MAX`].
    #[error("the window must be 0.1 to 3600 seconds")]
    Window,
    /// So many drains run that no other may begin; possible again when one is over.
    #[error("{drains_max} drains are running; wait for one to end, or cancel it")]
    TooMany {
        /// How many may run at once.
        drains_max: usize,
    },
}

/// Where a drain is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainState {
    /// Its window is open: connections may leave by themselves.
    Announced,
    /// The window is over, and the connections that were left are being closed.
    Closing,
    /// All its connections are gone.
    Over,
    /// It was cancelled, or replaced, before its window was over.
    Cancelled,
}

impl DrainState {
    /// The state in one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Announced => "announced",
            Self::Closing => "closing",
            Self::Over => "over",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What is known of a drain.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DrainStatus {
    /// The number of its notice.
    pub seq: u64,
    /// Its connections' local address.
    pub scope: Scope,
    /// Where it is.
    pub state: DrainState,
    /// The time that it gave its connections.
    pub window: Duration,
    /// What is left of that.
    pub remaining: Duration,
    /// Where they were told to go.
    pub successor: Option<Successor>,
    /// Connections of the scope that existed when it was announced.
    pub connections: usize,
    /// Those of them that were told.
    pub told: usize,
    /// Those that ended before the window did.
    pub left: usize,
    /// Those that the server closed, or is closing, because they had not left.
    pub closed: usize,
}

/// A connection, as notices see it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotifiedConnection {
    /// Its id, as in `CLIENT ID`.
    pub id: u64,
    /// Where it comes from; none for a Unix socket.
    pub peer: Option<SocketAddr>,
    /// Where it was accepted; none for a Unix socket.
    pub local: Option<SocketAddr>,
    /// Whether it has opted in.
    pub is_notified: bool,
    /// The form in which it wants to be told endpoints; none when it has not opted in, or left that to the server.
    pub endpoint_type: Option<EndpointType>,
}

/// Announces planned work to a server's connections, and drains them. A handle: clones are the same, and every method may
/// be called from any thread.
#[derive(Debug, Clone)]
pub struct Maintenance {
    shared: Arc<Shared>,
}

impl Maintenance {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Tells the connections of the scope that opted in, and returns the number of the notice; numbers rise. An opening
    /// notice is replayed to connections that opt in later, unless they came to the successor that it names, with the time
    /// that is left, until a closing notice of the same
    /// scope, or of [`Scope::All`], has named all that it was about, or until its window is over. A time of more than a day
    /// counts as a day. At most 64 opening notices are kept for replay; beyond that the oldest is forgotten, with a warning
    /// in the log.
    pub fn announce(&self, scope: Scope, notice: Notice) -> u64 {
        let is_enabled = self.shared.config().maint_notifications;
        self.shared.maintenance.announce(scope, notice, is_enabled, Instant::now())
    }

    /// Announces [`Notice::Moving`] and returns its number. At the window's end clients of the scope that are blocked get
    /// the reply of a timeout; then exactly the connections that existed at the announcement are closed, opted in or not,
    /// each as soon as all that it has sent is answered. One that never pauses is read from for half a second more, and has
    /// another half to take its replies. New connections are accepted all along, and stay.
    ///
    /// A drain of a scope that has one already, whose window is open, takes its place: the connections that are left get a
    /// new notice with the new window and successor. Drains of different scopes are independent.
    ///
    /// # Errors
    /// [`DrainError`]
    pub fn drain(
        &self,
        scope: Scope,
        window: Duration,
        successor: Option<Successor>,
    ) -> Result<u64, DrainError> {
        drain(&self.shared, scope, window, successor, Instant::now())
    }

    /// Ends the drain with this number without closing anything; `false` if there is none whose window is open. Clients
    /// that were told to move may do so all the same: there is no notice that takes one back.
    pub fn cancel(&self, seq: u64) -> bool {
        self.shared.maintenance.cancel(Some(seq), &self.shared.clients, Instant::now()) > 0
    }

    /// The drains that run and the last sixteen that are over, by rising number.
    pub fn drains(&self) -> Vec<DrainStatus> {
        self.shared.maintenance.statuses(&self.shared.clients, Instant::now())
    }

    /// Closes the connections of the scope at once, without warning and without sending what is unsent: a fault. Returns
    /// how many.
    pub fn close(&self, scope: Scope) -> usize {
        let mut clients = self.shared.clients.all();
        clients.retain(|client| scope.includes(client.addresses.local_address()));
        clients.iter().for_each(|client| client.kill());
        clients.len()
    }

    /// Turns notices on or off, as `CONFIG SET maint-notifications` does. While they are off, `CLIENT MAINT_NOTIFICATIONS`
    /// gets an error and nobody is told anything.
    pub fn set_enabled(&self, on: bool) {
        let Ok(()) = self.shared.change_config::<std::convert::Infallible>(|config| {
            config.maint_notifications = on;
            Ok(())
        });
    }

    /// The connections of the scope, oldest first, whether they opted in or not.
    pub fn connections(&self, scope: Scope) -> Vec<NotifiedConnection> {
        let opted_in = self.shared.maintenance.opted_in();
        let clients = self.shared.clients.all().into_iter();
        let clients = clients.filter(|client| scope.includes(client.addresses.local_address()));
        let describe = |client: Arc<crate::client::Client>| {
            let (peer, local) = client.addresses.tcp.unzip();
            let wanted = opted_in.get(&client.id);
            NotifiedConnection {
                id: client.id,
                peer,
                local,
                is_notified: wanted.is_some(),
                endpoint_type: wanted.copied().flatten(),
            }
        };
        clients.map(describe).collect()
    }
}

/// See [`Maintenance::drain`].
pub(crate) fn drain(
    shared: &Shared,
    scope: Scope,
    window: Duration,
    successor: Option<Successor>,
    now: Instant,
) -> Result<u64, DrainError> {
    if !(DRAIN_WINDOW_MIN..=DRAIN_WINDOW_MAX).contains(&window) {
        return Err(DrainError::Window);
    }
    let is_enabled = shared.config().maint_notifications;
    let seq = shared.maintenance.drain(&shared.clients, scope, window, successor, is_enabled, now)?;
    tracing::info!(seq, %scope, window_s = window.as_secs_f64(), "a drain was announced");
    Ok(seq)
}

/// Whether connections of the scope may exist: its address is listened on, or was and has connections that stayed.
pub(crate) fn is_reachable(shared: &Shared, scope: Scope) -> bool {
    let listened = || shared.endpoints.addresses().into_iter().any(|address| scope.overlaps(address));
    let is_there = |client: Arc<crate::client::Client>| scope.includes(client.addresses.local_address());
    scope == Scope::All || listened() || shared.clients.all().into_iter().any(is_there)
}

/// Does what drains ask for, when its time has come, until it is dropped. One worker has it.
pub(crate) async fn run(shared: Arc<Shared>) {
    loop {
        let next = step(&shared, Instant::now());
        let changed = shared.maintenance.changed();
        match next {
            Some(at) => _ = tokio::time::timeout_at(at.into(), changed).await,
            None => changed.await,
        }
    }
}

/// Does what drains ask for at `now`, and says when to look again.
fn step(shared: &Shared, now: Instant) -> Option<Instant> {
    let (steps, next) = shared.maintenance.advance(&shared.clients, now);
    for step in steps {
        let (ids, ending) = match step {
            Step::Finish(ids) => (ids, Ending::Finishing),
            Step::Flush(ids) => (ids, Ending::Flushing),
            Step::Kill(ids) => (ids, Ending::Killed),
        };
        let clients: Vec<_> = ids.iter().filter_map(|&id| shared.clients.get(id)).collect();
        // First this, then the release: a client that begins to wait in between sees that it must not.
        clients.iter().for_each(|client| client.end(ending));
        if ending == Ending::Finishing {
            shared.blocked.release(&ids);
            tracing::info!(connections = clients.len(), "a drain closes the connections that have not left");
        }
        clients.iter().for_each(|client| client.wake());
    }
    next
}

#[cfg(test)]
mod tests;

//! The connections between processes of one host, and the thread that listens to them.
//!
//! Owns: the listener, links on their way, and the thread. Does **not** own links that are up ([`super::rail`]).
//!
//! ```text
//!  initiator: activate: connect, Prove ----------> target: activate: accept, check, Proved        then both: Ask, Grant, Recall
//!                 CONFIRM (over TCP, afterwards) ------^
//! ```
//!
//! The initiator connects before it confirms, so when the target activates the link, the connection and its proof are there, or they
//! never will be and the link does without: nobody waits.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant as Monotonic;

use towline_transfer_proto::{LinkId, NoQueuePairs, Psn, QueuePair};

use crate::clock::random;
use crate::config::Trust;
use crate::poller::{Poller, Watch};
use crate::regions::Regions;
use crate::transport::{LinkEvents, Rail, Transport};

use super::page::Page;
use super::rail::{Expected, ShmRail};
use super::socket::{self, Message, Name, Received, Side, Token};

/// The rail number of shared memory.
pub(super) const SHM_RAIL: u16 = 1;

const LISTENER: u64 = 1;

/// Connections that have not said yet which link they are for. The oldest makes room.
const STRANGERS_MAX: usize = 64;

/// Names that proved to be somebody else's, remembered at most.
const DISTRUSTED_MAX: usize = 64;

/// A link on its way.
#[derive(Debug)]
struct Making {
    side: Side,
    ours: Token,
    /// Of an initiator: unknown yet.
    theirs: Token,
    /// Of a target: the connection that proved itself, and the initiator's page.
    arrived: Option<(OwnedFd, Page)>,
}

#[derive(Debug, Default)]
struct State {
    making: HashMap<LinkId, Making>,
    strangers: VecDeque<(u64, OwnedFd)>,
    rails: HashMap<u64, (LinkId, Arc<ShmRail>)>,
    /// Where initiators of ours connected to.
    names: HashMap<LinkId, Name>,
    distrusted: VecDeque<Name>,
    next_token: u64,
}

/// What the transport, its thread and its rails have in common.
#[derive(Debug)]
pub(super) struct Inner {
    trust: Trust,
    listener: OwnedFd,
    name: Name,
    poller: Poller,
    regions: OnceLock<Arc<Regions>>,
    state: Mutex<State>,
    is_stopping: AtomicBool,
}

/// Moves bytes between engines of one host by copying them, once, from one's memory to the other's.
///
/// It serves regions made by [`crate::MemoryRegion::shared`]; others go over TCP. Both engines need this transport, the same
/// [`Trust`] that they were started with, and one network namespace; otherwise their links do without it.
pub struct ShmTransport {
    inner: Arc<Inner>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl fmt::Debug for ShmTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShmTransport").field("name", &self.inner.name).finish_non_exhaustive()
    }
}

impl ShmTransport {
    /// A transport for one engine, with that engine's trust.
    ///
    /// # Errors
    /// The system has no socket or no thread for it.
    pub fn new(trust: Trust) -> io::Result<Arc<Self>> {
        let (listener, name) = socket::listen()?;
        let poller = Poller::new()?;
        // Once for each change: when there are no descriptors left to accept with, nobody turns in circles.
        poller.add(&listener, LISTENER, Watch::Edges)?;
        let inner = Arc::new(Inner {
            trust,
            listener,
            name,
            poller,
            regions: OnceLock::new(),
            state: Mutex::new(State { next_token: LISTENER, ..State::default() }),
            is_stopping: AtomicBool::new(false),
        });
        let own = inner.clone();
        let thread = std::thread::Builder::new().name("transfer-shm".to_owned()).spawn(move || own.run())?;
        Ok(Arc::new(Self { inner, thread: Mutex::new(Some(thread)) }))
    }
}

impl Drop for ShmTransport {
    fn drop(&mut self) {
        self.shut_down();
    }
}

impl Inner {
    pub(super) fn trust(&self) -> &Trust {
        &self.trust
    }

    pub(super) fn regions(&self) -> &Arc<Regions> {
        self.regions.get().expect("invariant: an engine attaches its transports before it makes links")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread.
    fn run(&self) {
        let mut ready = Vec::new();
        while !self.is_stopping.load(Ordering::Acquire) {
            let timeout = self.next_deadline().map(|at| at.saturating_duration_since(Monotonic::now()));
            if let Err(error) = self.poller.wait(timeout, &mut ready) {
                tracing::error!(%error, "the thread of shared memory cannot wait for its sockets");
                return;
            }
            for event in &ready {
                let rail = self.state().rails.get(&event.token).map(|(_, rail)| rail.clone());
                match rail {
                    Some(rail) => rail.hear(),
                    None => self.meet(&mut self.state()),
                }
            }
            self.end_late();
        }
    }

    /// When the first of the rails that wait for their peers has waited enough.
    fn next_deadline(&self) -> Option<Monotonic> {
        self.state().rails.values().filter_map(|(_, rail)| rail.deadline()).min()
    }

    fn end_late(&self) {
        let now = Monotonic::now();
        let is_late = |rail: &Arc<ShmRail>| rail.deadline().is_some_and(|at| at <= now);
        let late: Vec<_> =
            self.state().rails.values().map(|(_, rail)| rail.clone()).filter(is_late).collect();
        late.iter().for_each(|rail| rail.fail());
    }

    /// Has the thread look at its deadlines.
    pub(super) fn wake(&self) {
        self.poller.wake();
    }

    /// A rail has failed: what its socket says does not matter.
    pub(super) fn ignore(&self, rail: &ShmRail) {
        self.poller.remove(rail.socket());
    }

    /// Takes whoever has come, and hears whoever has not said yet what for.
    fn meet(&self, state: &mut State) {
        while let Some(stranger) = socket::accept(self.listener.as_fd()) {
            if !socket::is_admitted(stranger.as_fd(), &self.trust) {
                continue;
            }
            state.next_token += 1;
            // One that cannot be watched is heard when its link is activated, or makes room.
            let _ = self.poller.add(&stranger, state.next_token, Watch::Read);
            state.strangers.push_back((state.next_token, stranger));
            if state.strangers.len() > STRANGERS_MAX {
                state.strangers.pop_front();
            }
        }
        for (token, stranger) in std::mem::take(&mut state.strangers) {
            match socket::receive(stranger.as_fd()) {
                Received::Nothing => state.strangers.push_back((token, stranger)),
                // Dropped, unless it proves something.
                Received::Over => {}
                Received::Message(message, file) => {
                    if let (Message::Prove { token, tag }, Some(file)) = (message, file)
                        && let Some(making) = state.making.values_mut().find(|making| making.is_for(&token))
                        && socket::is_proof(&self.trust, Side::Initiator, &making.theirs, &making.ours, &tag)
                        && let Ok(page) = Page::of(file.as_fd())
                    {
                        self.poller.remove(&stranger);
                        making.arrived = Some((stranger, page));
                    }
                }
            }
        }
    }

    /// Serves a rail from now on.
    fn add(
        &self,
        state: &mut State,
        link: LinkId,
        rail: Arc<ShmRail>,
    ) -> Result<Arc<dyn Rail>, NoQueuePairs> {
        self.poller.add(rail.socket(), rail.token(), Watch::Read).map_err(|_| NoQueuePairs)?;
        state.rails.insert(rail.token(), (link, rail.clone()));
        Ok(rail)
    }

    /// A rail is over.
    pub(super) fn forget(&self, rail: &ShmRail) {
        self.poller.remove(rail.socket());
        let mut state = self.state();
        if let Some((link, _)) = state.rails.remove(&rail.token()) {
            state.names.remove(&link);
        }
    }

    /// Whoever this link found at its name, it was not the peer: its next links do without.
    pub(super) fn distrust(&self, link: LinkId) {
        let mut state = self.state();
        if let Some(name) = state.names.get(&link).copied() {
            state.distrusted.push_back(name);
            if state.distrusted.len() > DISTRUSTED_MAX {
                state.distrusted.pop_front();
            }
        }
    }

    fn connect(
        self: &Arc<Self>,
        state: &mut State,
        link: LinkId,
        ours: Token,
        remote: &QueuePair,
        events: LinkEvents,
    ) -> Result<Option<Arc<dyn Rail>>, NoQueuePairs> {
        let name = Name::of(remote);
        if state.distrusted.contains(&name) {
            return Ok(None);
        }
        // Another host, another namespace, or too many at once.
        let Ok(socket) = socket::connect(name) else { return Ok(None) };
        if !socket::is_admitted(socket.as_fd(), &self.trust) {
            return Ok(None);
        }
        let (page, file) = Page::create().map_err(|_| NoQueuePairs)?;
        let tag = socket::proof(&self.trust, Side::Initiator, &ours, &remote.gid).unwrap_or_default();
        let prove = Message::Prove { token: remote.gid, tag };
        if socket::send(socket.as_fd(), prove, Some(file.as_fd())).is_err() {
            return Ok(None);
        }
        state.next_token += 1;
        let rail = ShmRail::new(link, state.next_token, socket, events, self, page, None);
        rail.expect(Expected { initiator: ours, target: remote.gid });
        let rail = self.add(state, link, Arc::new(rail))?;
        state.names.insert(link, name);
        // Its deadline.
        self.wake();
        Ok(Some(rail))
    }

    fn take(
        self: &Arc<Self>,
        state: &mut State,
        link: LinkId,
        making: Making,
        events: LinkEvents,
    ) -> Result<Option<Arc<dyn Rail>>, NoQueuePairs> {
        let Some((socket, theirs)) = making.arrived else { return Ok(None) };
        let (page, file) = Page::create().map_err(|_| NoQueuePairs)?;
        let tag = socket::proof(&self.trust, Side::Target, &making.theirs, &making.ours).unwrap_or_default();
        if socket::send(socket.as_fd(), Message::Proved { tag }, Some(file.as_fd())).is_err() {
            return Ok(None);
        }
        state.next_token += 1;
        let rail = ShmRail::new(link, state.next_token, socket, events, self, page, Some(theirs));
        self.add(state, link, Arc::new(rail)).map(Some)
    }
}

impl Making {
    fn is_for(&self, token: &Token) -> bool {
        self.side == Side::Target && self.ours == *token && self.arrived.is_none()
    }
}

impl Transport for ShmTransport {
    fn rail(&self) -> u16 {
        SHM_RAIL
    }

    fn name(&self) -> &'static str {
        "shm"
    }

    fn attach(&self, regions: &Arc<Regions>) {
        let is_first = self.inner.regions.set(regions.clone()).is_ok();
        assert!(is_first, "invariant: a transport belongs to one engine");
    }

    fn offer(&self, link: LinkId, psn: Psn) -> Result<QueuePair, NoQueuePairs> {
        let ours = random();
        let making = Making { side: Side::Initiator, ours, theirs: Token::default(), arrived: None };
        self.inner.state().making.insert(link, making);
        Ok(self.inner.name.queue_pair(SHM_RAIL, psn, ours))
    }

    fn serve(&self, link: LinkId, remote: &QueuePair, psn: Psn) -> Result<Option<QueuePair>, NoQueuePairs> {
        let ours = random();
        let making = Making { side: Side::Target, ours, theirs: remote.gid, arrived: None };
        self.inner.state().making.insert(link, making);
        Ok(Some(self.inner.name.queue_pair(SHM_RAIL, psn, ours)))
    }

    fn activate(
        &self,
        link: LinkId,
        remote: Option<&QueuePair>,
        events: LinkEvents,
    ) -> Result<Option<Arc<dyn Rail>>, NoQueuePairs> {
        let mut state = self.inner.state();
        self.inner.meet(&mut state);
        let making = state.making.remove(&link).ok_or(NoQueuePairs)?;
        match remote {
            Some(remote) => self.inner.connect(&mut state, link, making.ours, remote, events),
            None => self.inner.take(&mut state, link, making, events),
        }
    }

    fn abandon(&self, link: LinkId) {
        self.inner.state().making.remove(&link);
    }

    fn deregistered(&self, base: u64) {
        let rails: Vec<_> = self.inner.state().rails.values().map(|(_, rail)| rail.clone()).collect();
        rails.iter().for_each(|rail| rail.recall(base));
    }

    fn shut_down(&self) {
        self.inner.is_stopping.store(true, Ordering::Release);
        self.inner.poller.wake();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

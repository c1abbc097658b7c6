//! The engine: what an application has.
//!
//! Owns: the parts and their order of starting and ending. Does **not** own what they do.
//!
//! Threads: one for links ([`crate::control`]), and those of TCP ([`crate::tcp`]). All of them sleep when there is nothing to do.

use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::{Duration, Instant as Monotonic};

use towline_transfer_proto::{Connections, NodeId, Process, Transfers};

use crate::clock;
use crate::config::EngineConfig;
use crate::control::Control;
use crate::error::{OpenError, StartError};
use crate::memory::MemoryRegion;
use crate::metrics::{self, Metrics};
use crate::peer::Peer;
use crate::peers::{Peers, node_id};
use crate::poller::Poller;
use crate::promise::{Promised, promise};
use crate::regions::{Access, Regions, RegisterError, Registered};
use crate::segment::{Description, Segment};
use crate::shared::{Command, Mailbox, Shared};
use crate::tcp::IoThreads;
use crate::transport::Transport;

/// How long [`Engine::metrics`] waits for the control thread, which answers within microseconds unless it is over.
const MEASURE_MAX: Duration = Duration::from_secs(1);

/// A notification that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// Who sent it, in which life.
    pub from: Process,
    /// What it says.
    pub payload: Vec<u8>,
}

/// A transfer engine. Dropping it shuts it down.
#[derive(Debug)]
pub struct Engine {
    name: String,
    address: Option<SocketAddr>,
    shared: Arc<Shared>,
    peers: Arc<Peers>,
    io: Arc<IoThreads>,
    transports: Vec<Arc<dyn Transport>>,
    control: Mutex<Option<JoinHandle<()>>>,
    shutdown_grace: Duration,
}

impl Engine {
    /// Starts an engine.
    ///
    /// # Errors
    /// See [`StartError`]; nothing is left running.
    pub fn start(config: EngineConfig) -> Result<Self, StartError> {
        if let Some(problem) = config.problem() {
            return Err(StartError::Config { problem });
        }
        // Each peer gets one of its own; this one says whether that will work.
        Transfers::new(config.transfer)?;
        let listener = config.listen.map(TcpListener::bind).transpose()?;
        let address = listener.as_ref().map(TcpListener::local_addr).transpose()?;
        let own_name = || address.filter(|at| !at.ip().is_unspecified()).map(|at| at.to_string());
        let name = config.name.clone().or_else(own_name).ok_or(StartError::Nameless)?;
        let me = Process { node: node_id(&name), incarnation: clock::incarnation() };
        let connections = Connections::new(me, config.connect, clock::prng())?;
        let regions = Arc::new(Regions::new(u64::from_ne_bytes(clock::random()), config.regions_max));
        config.transports.iter().for_each(|transport| transport.attach(&regions));
        let mailbox = Mailbox::new(Poller::new()?);
        let shared = Arc::new(Shared::new(me, regions, mailbox, config.inbox, config.checksums));
        let peers = Peers::new(shared.clone(), config.transfer, config.outbox, config.connect.peers_max);
        let peers = Arc::new(peers);
        let io = Arc::new(IoThreads::start(config.io_threads)?);
        let control =
            Control::new(&config, shared.clone(), peers.clone(), io.clone(), connections, listener)?;
        let thread =
            std::thread::Builder::new().name("transfer-control".to_owned()).spawn(move || control.run())?;
        Ok(Self {
            name,
            address,
            shared,
            peers,
            io,
            transports: config.transports,
            control: Mutex::new(Some(thread)),
            shutdown_grace: config.shutdown_grace,
        })
    }

    /// Its name: what others open its segment by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it listens.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Its node and its life.
    pub fn me(&self) -> Process {
        self.shared.me
    }

    /// Registers memory under a name, for transfers of ours and, if `access` says so, for peers.
    ///
    /// # Errors
    /// See [`RegisterError`].
    pub fn register(
        &self,
        name: &str,
        memory: &MemoryRegion,
        access: Access,
    ) -> Result<Registered, RegisterError> {
        let registered = self.shared.regions.register(name, memory.clone(), access)?;
        self.transports.iter().for_each(|transport| transport.registered(&registered));
        let keys = self.transports.iter();
        let keys = keys.filter_map(|transport| Some((transport.rail(), transport.key(registered.base())?)));
        registered.set_keys(keys.collect());
        Ok(registered)
    }

    /// Takes a region back. Requests of peers and of ours that need it are refused from now on; a slice that is on its way
    /// into it or out of it in this moment is finished. False if it was not registered.
    pub fn deregister(&self, region: &Registered) -> bool {
        let was_there = self.shared.regions.deregister(region.base());
        self.transports.iter().for_each(|transport| transport.deregistered(region.base()));
        was_there
    }

    /// Says where the node of this name listens. Names that are addresses need not be told.
    ///
    /// # Errors
    /// It is this engine's name, or too many peers are known.
    pub fn add_peer(&self, name: &str, address: SocketAddr) -> Result<NodeId, OpenError> {
        let node = node_id(name);
        if node == self.shared.me.node {
            return Err(OpenError::Own);
        }
        self.peers.meet(node)?.set_address(address);
        Ok(node)
    }

    /// Asks a peer, by its name, what it has. The link is made if there is none yet. What comes back can be waited for by a
    /// thread ([`Opening::wait_for`]) and by a task.
    pub fn open(&self, name: &str) -> Opening {
        let (promise, promised) = promise();
        let node = node_id(name);
        let peer = match self.peer_named(name, node) {
            Ok(peer) => {
                peer.open(promise);
                Some(peer)
            }
            Err(error) => {
                promise.keep(Err(error));
                None
            }
        };
        Opening { peer, node, promised }
    }

    fn peer_named(&self, name: &str, node: NodeId) -> Result<Arc<Peer>, OpenError> {
        if node == self.shared.me.node {
            return Err(OpenError::Own);
        }
        if let Some(peer) = self.peers.find(node) {
            return Ok(peer);
        }
        let address = name.parse().map_err(|_| OpenError::Unknown { name: name.to_owned() })?;
        let peer = self.peers.meet(node)?;
        peer.set_address(address);
        Ok(peer)
    }

    /// The oldest notification that nobody has taken.
    pub fn take_notification(&self) -> Option<Notification> {
        self.shared.take_notification(None).map(Notification::new)
    }

    /// Waits for a notification, so long at most. Several threads may wait; each notification goes to one.
    pub fn wait_notification(&self, timeout: Duration) -> Option<Notification> {
        self.shared.wait_notification(timeout).map(Notification::new)
    }

    /// The next notification; `None` when the engine shuts down. One task at a time: another takes its place.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped.
    pub async fn notification(&self) -> Option<Notification> {
        std::future::poll_fn(|context| match self.shared.take_notification(Some(context.waker())) {
            Some(taken) => Poll::Ready(Some(Notification::new(taken))),
            None if self.shared.is_closing() => Poll::Ready(None),
            None => Poll::Pending,
        })
        .await
    }

    /// What it has counted.
    pub fn metrics(&self) -> Metrics {
        let (promise, promised) = promise();
        self.shared.mailbox.send(Command::Measure(promise));
        let links = promised.wait_for(MEASURE_MAX).unwrap_or_default();
        let shared = &self.shared;
        let mut all = Metrics {
            handshakes: links.counters,
            links: links.now,
            foreign: links.foreign,
            bytes_in: shared.bytes_in.load(Ordering::Relaxed),
            bytes_out: shared.bytes_out.load(Ordering::Relaxed),
            refusals: shared.refusals.load(Ordering::Relaxed),
            corrupt: shared.corrupt.load(Ordering::Relaxed),
            ..Metrics::default()
        };
        for peer in self.peers.all() {
            let (counters, slices, tasks) = peer.counters();
            metrics::add(&mut all.slices, counters);
            all.slices_in_flight += slices;
            all.requests_open += u64::from(tasks);
        }
        all
    }

    /// Ends the engine, within a second: nothing more is taken, what is under way gets
    /// [`EngineConfig::shutdown_grace`], then the links end and what is left is canceled. Once; later calls wait for nothing.
    pub fn shutdown(&self) {
        let Some(control) = self.control.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return;
        };
        self.shared.close();
        let until = Monotonic::now() + self.shutdown_grace;
        self.peers.all().iter().for_each(|peer| peer.wait_idle(until));
        self.shared.mailbox.send(Command::Leave);
        // A thread that panicked has said so.
        let _ = control.join();
        self.io.stop();
        self.transports.iter().for_each(|transport| transport.shut_down());
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shutdown();
    }
}

impl Notification {
    fn new((from, payload): (Process, Vec<u8>)) -> Self {
        Self { from, payload }
    }
}

/// A segment that is being opened. A [`Future`] as well: it waits as long as the peer is away.
#[derive(Debug)]
#[must_use]
pub struct Opening {
    peer: Option<Arc<Peer>>,
    node: NodeId,
    promised: Promised<Result<Description, OpenError>>,
}

impl Opening {
    /// The segment, if the peer answers in time.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn wait_for(self, timeout: Duration) -> Result<Segment, OpenError> {
        let answer = self.promised.wait_for(timeout).ok_or(OpenError::TimedOut { node: self.node })?;
        self.finish(answer)
    }

    fn finish(&self, answer: Result<Description, OpenError>) -> Result<Segment, OpenError> {
        let description = answer?;
        let peer = self.peer.as_ref().ok_or(OpenError::ShutDown)?;
        Ok(Segment::new(peer.clone(), description))
    }
}

/// # Cancel safety
/// Dropping it only forgets the answer.
impl Future for Opening {
    type Output = Result<Segment, OpenError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.promised).poll(context).map(|answer| self.finish(answer))
    }
}

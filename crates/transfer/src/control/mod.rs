//! The control thread: how an engine gets its links.
//!
//! Owns: the listener, the connections of handshakes, timers, and the machine that decides
//! ([`Connections`]), which nobody else touches. Does **not** own what a link carries once it is up ([`crate::peer`],
//! [`crate::tcp`]).
//!
//! The thread sleeps until a socket, a timer or a [`Command`] needs it. It decides nothing: what comes in is told to the
//! machine, and what the machine says is done (`links.rs`).

mod fleet;
mod handshake;
mod links;
mod net;
mod seal;

pub use fleet::{Fleet, FleetReport};

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use towline_sansio::Instant;
use towline_transfer_proto::{ConnId, Connections, LinkId, LinkKey, NodeId, QueuePair};

use crate::config::EngineConfig;
use crate::metrics::Links;
use crate::peers::Peers;
use crate::poller::{Readiness, Watch};
use crate::shared::{Command, Shared};
use crate::tcp::{Connected, IoThreads};
use crate::transport::Transport;

use handshake::{Handshake, Said};
use links::Making;
use seal::Seal;

/// The token of the listener; those of connections follow.
const LISTENER: u64 = 1;

/// Connections that are accepted before others have their turn.
const ACCEPTS_MAX: usize = 64;

/// When the system has no descriptor left for a connection, the listener rests so long.
const ACCEPT_REST: Duration = Duration::from_millis(50);

/// What the thread waits for besides sockets.
#[derive(Debug)]
enum Timer {
    /// A peer's deadlines.
    Peer(Arc<crate::peer::Peer>),
    /// A handshake that was served, for drills.
    Served(LinkId, Vec<QueuePair>),
    /// The listener has rested.
    Listen,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Control {
    shared: Arc<Shared>,
    peers: Arc<Peers>,
    io: Arc<IoThreads>,
    transports: Vec<Arc<dyn Transport>>,
    connections: Connections,
    seal: Seal,
    listener: Option<TcpListener>,
    lanes: u16,
    stall_max: Duration,
    service_time: Duration,
    handshakes: HashMap<u64, Handshake>,
    tokens: HashMap<ConnId, u64>,
    /// The connection that carries a lane's present handshake.
    carriers: HashMap<LinkKey, u64>,
    next_token: u64,
    making: HashMap<LinkId, Making>,
    links: HashMap<LinkId, links::Up>,
    /// Which link a further lane belongs to.
    joins: HashMap<[u8; 16], LinkId>,
    /// Due time, and a number that keeps the order.
    due: BinaryHeap<Reverse<(Instant, u64)>>,
    timers: HashMap<u64, Timer>,
    next_timer: u64,
    foreign: u64,
    is_leaving: bool,
}

impl Control {
    pub(crate) fn new(
        config: &EngineConfig,
        shared: Arc<Shared>,
        peers: Arc<Peers>,
        io: Arc<IoThreads>,
        connections: Connections,
        listener: Option<TcpListener>,
    ) -> io::Result<Self> {
        if let Some(listener) = &listener {
            listener.set_nonblocking(true)?;
            shared.mailbox.poller.add(listener, LISTENER, Watch::Read)?;
        }
        Ok(Self {
            shared,
            peers,
            io,
            transports: config.transports.clone(),
            connections,
            seal: Seal::new(config.trust.clone()),
            listener,
            lanes: config.lanes,
            stall_max: config.stall_max,
            service_time: config.service_time,
            handshakes: HashMap::new(),
            tokens: HashMap::new(),
            carriers: HashMap::new(),
            next_token: LISTENER,
            making: HashMap::new(),
            links: HashMap::new(),
            joins: HashMap::new(),
            due: BinaryHeap::new(),
            timers: HashMap::new(),
            next_timer: 0,
            foreign: 0,
            is_leaving: false,
        })
    }

    /// Until the engine leaves.
    pub(crate) fn run(mut self) {
        let mut ready = Vec::new();
        while !self.is_leaving {
            if let Err(error) = self.shared.mailbox.poller.wait(self.until_due(), &mut ready) {
                tracing::error!(%error, "the control thread cannot wait for its sockets");
                break;
            }
            for command in self.shared.mailbox.take() {
                self.obey(command);
            }
            for event in ready.drain(..) {
                self.on_ready(event);
            }
            self.on_time();
            self.perform_all();
        }
        self.connections.leave(self.now());
        self.perform_all();
        self.end_peers();
    }

    fn now(&self) -> Instant {
        self.shared.now()
    }

    fn until_due(&self) -> Option<Duration> {
        let timer = self.due.peek().map(|Reverse((at, _))| *at);
        let next = [timer, self.connections.next_timeout()].into_iter().flatten().min()?;
        Some(next.since(self.now()))
    }

    fn on_time(&mut self) {
        let now = self.now();
        while let Some(Reverse((at, number))) = self.due.peek().copied()
            && at <= now
        {
            self.due.pop();
            match self.timers.remove(&number) {
                Some(Timer::Peer(peer)) => peer.handle_timeout(),
                Some(Timer::Served(link, queue_pairs)) => self.connections.made(now, link, Ok(queue_pairs)),
                Some(Timer::Listen) => self.listen_again(),
                None => {}
            }
        }
        if self.connections.next_timeout().is_some_and(|at| at <= now) {
            self.connections.handle_timeout(now);
        }
    }

    fn set_timer(&mut self, at: Instant, timer: Timer) {
        self.next_timer += 1;
        self.timers.insert(self.next_timer, timer);
        self.due.push(Reverse((at, self.next_timer)));
    }

    fn obey(&mut self, command: Command) {
        let now = self.now();
        match command {
            Command::Want(peer) => self.want(&peer),
            Command::Unwant(node) => self.obey_unwant(node),
            Command::Close(node) => self.close_link(node),
            Command::Failed(link) => self.connections.failed(now, link),
            Command::Flush(node) => {
                if let Some(link) = self.connections.link(first_lane(node)) {
                    self.connections.failed(now, link);
                }
            }
            Command::Arm(peer, at) => self.set_timer(at, Timer::Peer(peer)),
            Command::Measure(promise) => promise.keep(self.measure()),
            Command::Leave => self.is_leaving = true,
        }
        self.perform_all();
    }

    fn measure(&self) -> Links {
        let (counters, now) = (self.connections.counters(), self.connections.snapshot());
        Links { counters, now, foreign: self.foreign }
    }

    fn on_ready(&mut self, event: Readiness) {
        if event.token == LISTENER {
            return self.accept();
        }
        let Some(handshake) = self.handshakes.get_mut(&event.token) else { return };
        if handshake.is_connecting {
            return self.on_connected(event.token);
        }
        if event.is_writable && !handshake.flush() {
            return self.on_closed(event.token);
        }
        if event.is_readable {
            let is_open = handshake.read();
            self.hear(event.token);
            if !is_open {
                self.on_closed(event.token);
            }
        }
        self.watch(event.token);
        self.perform_all();
    }

    /// What a connection has said since.
    fn hear(&mut self, token: u64) {
        // A connection leaves the map when it becomes a lane, and what follows is for the lane.
        while let Some(handshake) = self.handshakes.get_mut(&token) {
            let conn = handshake.conn;
            match handshake.next(&self.seal) {
                Said::Nothing => return,
                Said::Message(message) => {
                    self.note(token, &message);
                    self.connections.received(self.shared.now(), conn, message);
                    self.perform_all();
                }
                Said::Joined { token: join, lane } => return self.join(token, &join, lane),
                Said::Foreign => {
                    self.foreign += 1;
                    return self.on_closed(token);
                }
            }
        }
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTS_MAX {
            let Some(listener) = &self.listener else { return };
            match listener.accept() {
                Ok((socket, _)) => self.on_accepted(socket),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections for a moment");
                    self.shared.mailbox.poller.remove(listener);
                    self.set_timer(self.now() + ACCEPT_REST, Timer::Listen);
                    break;
                }
            }
        }
        self.perform_all();
    }

    fn listen_again(&mut self) {
        if let Some(listener) = &self.listener
            && let Err(error) = self.shared.mailbox.poller.add(listener, LISTENER, Watch::Read)
        {
            tracing::warn!(%error, "cannot listen again; trying on");
            self.set_timer(self.now() + ACCEPT_REST, Timer::Listen);
        }
    }

    fn on_accepted(&mut self, socket: TcpStream) {
        let now = self.now();
        // What is refused here is closed by being dropped.
        if socket.set_nonblocking(true).is_ok()
            && net::tune(&socket, self.stall_max).is_ok()
            && let Ok(conn) = self.connections.accepted(now)
        {
            self.add(conn, socket, false);
        }
    }

    /// Serves a connection from now on.
    fn add(&mut self, conn: ConnId, socket: TcpStream, is_connecting: bool) {
        self.next_token += 1;
        let token = self.next_token;
        let watch = if is_connecting { Watch::ReadWrite } else { Watch::Read };
        let is_added = self.shared.mailbox.poller.add(&socket, token, watch).is_ok();
        self.tokens.insert(conn, token);
        self.handshakes.insert(token, Handshake::new(conn, socket, is_connecting));
        if !is_added {
            self.on_closed(token);
        }
    }

    fn dial(&mut self, conn: ConnId, node: NodeId) {
        let address = self.peers.find(node).and_then(|peer| peer.address());
        match address.map(|address| net::connect(address, self.stall_max)) {
            Some(Ok(socket)) => self.add(conn, socket, true),
            // Nobody knows where it is, or the system has no socket: the same as nobody there.
            Some(Err(_)) | None => self.connections.closed(self.now(), conn),
        }
    }

    fn on_connected(&mut self, token: u64) {
        let Some(handshake) = self.handshakes.get_mut(&token) else { return };
        match handshake.socket.take_error() {
            Ok(None) if handshake.socket.peer_addr().is_ok() => {
                handshake.is_connecting = false;
                let conn = handshake.conn;
                self.watch(token);
                self.connections.dialed(self.now(), conn);
                self.perform_all();
            }
            // Woken for nothing: it is still on its way.
            Ok(None) => {}
            Ok(Some(_)) | Err(_) => self.on_closed(token),
        }
    }

    fn on_closed(&mut self, token: u64) {
        if let Some(handshake) = self.forget(token) {
            self.connections.closed(self.now(), handshake.conn);
            self.perform_all();
        }
    }

    /// Takes a connection out of this thread's hands.
    fn forget(&mut self, token: u64) -> Option<Handshake> {
        let handshake = self.handshakes.remove(&token)?;
        self.tokens.remove(&handshake.conn);
        if let Some(key) = handshake.key.filter(|key| self.carriers.get(key) == Some(&token)) {
            self.carriers.remove(&key);
        }
        self.shared.mailbox.poller.remove(&handshake.socket);
        Some(handshake)
    }

    /// A connection that turned out to be a lane.
    fn join(&mut self, token: u64, join: &[u8; 16], lane: u16) {
        let Some(handshake) = self.forget(token) else { return };
        self.connections.closed(self.now(), handshake.conn);
        let connected = handshake.into_connected();
        if let Some(link) = self.joins.get(join).copied() {
            self.on_joined(link, lane, connected);
        }
    }

    fn on_joined(&mut self, link: LinkId, lane: u16, connected: Connected) {
        if let Some(up) = self.links.get(&link) {
            up.tcp().add(lane, connected, &self.io);
        } else if let Some(making) = self.making.get_mut(&link) {
            making.add_lane(lane, connected);
        }
    }

    /// Listens for room as long as something has to go out.
    fn watch(&self, token: u64) {
        let Some(handshake) = self.handshakes.get(&token) else { return };
        let watch = if handshake.is_behind() { Watch::ReadWrite } else { Watch::Read };
        // If it cannot be watched its timer ends it.
        let _ = self.shared.mailbox.poller.change(fd(handshake), token, watch);
    }
}

fn fd(handshake: &Handshake) -> BorrowedFd<'_> {
    handshake.socket.as_fd()
}

/// Whether an error of accept concerns the connection, not the listener.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}

/// What work waits for: the machine's first lane. TCP's lanes are within its link.
fn first_lane(node: NodeId) -> LinkKey {
    LinkKey { node, lane: towline_transfer_proto::Lane(0) }
}

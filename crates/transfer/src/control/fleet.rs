//! Many initiators in one thread, for drills.
//!
//! Owns: the nodes of a fleet, their handshakes over real sockets with one real engine, and when each link came up. The
//! machines are those of an engine; what an engine does with a link is left out: the links stay open until the fleet goes.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use towline_sansio::Instant;
use towline_transfer_proto::{
    ConnId, ConnectConfig, ConnectConfigError, ConnectCounters, Connections, Lane, LinkKey, NoQueuePairs,
    NodeId, Output, Process,
};

use crate::clock::{self, Clock};
use crate::config::Trust;
use crate::peers::node_id;
use crate::poller::{Poller, Readiness, Watch};

use super::handshake::{Handshake, Said};
use super::links::tcp_end;
use super::net;
use super::seal::Seal;

/// As long as an engine's.
const STALL_MAX: Duration = Duration::from_secs(5);

/// How one fleet connects.
#[derive(Debug, Clone)]
pub struct Fleet {
    /// Processes that connect.
    pub nodes: u32,
    /// Links of each; at most [`ConnectConfig::lanes_max`].
    pub links: u16,
    /// The engine's node.
    pub target: NodeId,
    /// Where it listens.
    pub address: SocketAddr,
    /// As the engine's.
    pub trust: Trust,
    /// Limits, backoff and breaker of each node.
    pub connect: ConnectConfig,
    /// When to stop waiting.
    pub patience: Duration,
}

/// What became of a fleet.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct FleetReport {
    /// From the beginning until each link was up, in the order in which they came up.
    pub setups: Vec<Duration>,
    /// Links that were lost again.
    pub lost: u64,
    /// Handshake messages that asked.
    pub hellos: u64,
    /// Answers *come back later*.
    pub busy: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// The longest time from a HELLO to its answer.
    pub answer_max: Duration,
}

impl Fleet {
    /// Lets the fleet connect. The links are open until the report is returned.
    ///
    /// # Errors
    /// The configuration cannot be, or the system refused a poller.
    pub fn run(&self) -> io::Result<FleetReport> {
        let invalid = |error: ConnectConfigError| io::Error::new(io::ErrorKind::InvalidInput, error);
        let mut run = Run::new(self).map_err(invalid)?;
        run.all()
    }
}

struct Node {
    connections: Connections,
    timer: Option<Instant>,
}

struct Run<'a> {
    fleet: &'a Fleet,
    clock: Clock,
    seal: Seal,
    nodes: Vec<Node>,
    due: BinaryHeap<Reverse<(Instant, usize)>>,
    sockets: HashMap<u64, (usize, Handshake)>,
    tokens: HashMap<(usize, ConnId), u64>,
    asked: HashMap<(usize, ConnId), Instant>,
    next_token: u64,
    report: FleetReport,
}

impl<'a> Run<'a> {
    fn new(fleet: &'a Fleet) -> Result<Self, ConnectConfigError> {
        let node = |index: u32| {
            let me = Process { node: node_id(&format!("fleet-{index}")), incarnation: clock::incarnation() };
            let connections = Connections::new(me, fleet.connect, clock::prng())?;
            Ok(Node { connections, timer: None })
        };
        Ok(Self {
            fleet,
            clock: Clock::new(),
            seal: Seal::new(fleet.trust.clone()),
            nodes: (0..fleet.nodes).map(node).collect::<Result<_, ConnectConfigError>>()?,
            due: BinaryHeap::new(),
            sockets: HashMap::new(),
            tokens: HashMap::new(),
            asked: HashMap::new(),
            next_token: crate::poller::WAKE,
            report: FleetReport::default(),
        })
    }

    fn all(&mut self) -> io::Result<FleetReport> {
        let poller = Poller::new()?;
        self.clock = Clock::new();
        for node in 0..self.nodes.len() {
            for lane in 0..self.fleet.links {
                let key = LinkKey { node: self.fleet.target, lane: Lane(lane) };
                let wanted = self.nodes[node].connections.want(self.clock.now(), key, 1);
                wanted.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
            }
            self.settle(node, &poller);
        }
        let total = self.nodes.len() * usize::from(self.fleet.links);
        let mut ready = Vec::new();
        while self.report.setups.len() < total && self.clock.now().since(Instant::ZERO) < self.fleet.patience
        {
            let left = self.fleet.patience.saturating_sub(self.clock.now().since(Instant::ZERO));
            let due = self.due.peek().map(|Reverse((at, _))| at.since(self.clock.now()));
            poller.wait(Some(due.map_or(left, |due| due.min(left))), &mut ready)?;
            for event in ready.drain(..) {
                self.on_ready(event, &poller);
            }
            self.on_time(&poller);
        }
        for node in &self.nodes {
            let ConnectCounters { hellos, busy, failed, .. } = node.connections.counters();
            self.report.hellos += hellos;
            self.report.busy += busy;
            self.report.failed += failed;
        }
        Ok(std::mem::take(&mut self.report))
    }

    fn on_time(&mut self, poller: &Poller) {
        let now = self.clock.now();
        while let Some(Reverse((at, node))) = self.due.peek().copied()
            && at <= now
        {
            self.due.pop();
            // An entry that was replaced by an earlier one says nothing.
            if self.nodes[node].timer == Some(at) {
                let Node { connections, timer } = &mut self.nodes[node];
                *timer = None;
                if connections.next_timeout().is_some_and(|at| at <= now) {
                    connections.handle_timeout(now);
                }
                self.settle(node, poller);
            }
        }
    }

    fn on_ready(&mut self, event: Readiness, poller: &Poller) {
        let Some((node, handshake)) = self.sockets.get_mut(&event.token) else { return };
        let (node, conn) = (*node, handshake.conn);
        if handshake.is_connecting {
            match handshake.socket.take_error() {
                Ok(None) => {
                    handshake.is_connecting = false;
                    let is_watched = poller.change(&handshake.socket, event.token, Watch::Read);
                    debug_assert!(is_watched.is_ok());
                    self.nodes[node].connections.dialed(self.clock.now(), conn);
                }
                Ok(Some(_)) | Err(_) => self.closed(event.token, poller),
            }
        } else if event.is_readable {
            let is_open = handshake.read();
            self.hear(event.token, poller);
            if !is_open {
                self.closed(event.token, poller);
            }
        }
        self.settle(node, poller);
    }

    fn hear(&mut self, token: u64, poller: &Poller) {
        while let Some((node, handshake)) = self.sockets.get_mut(&token) {
            let (node, conn) = (*node, handshake.conn);
            match handshake.next(&self.seal) {
                Said::Nothing => return,
                Said::Message(message) => {
                    let now = self.clock.now();
                    if let Some(asked) = self.asked.remove(&(node, conn)) {
                        self.report.answer_max = self.report.answer_max.max(now.since(asked));
                    }
                    self.nodes[node].connections.received(now, conn, message);
                    self.settle(node, poller);
                }
                Said::Joined { .. } | Said::Foreign => return self.closed(token, poller),
            }
        }
    }

    fn closed(&mut self, token: u64, poller: &Poller) {
        if let Some((node, handshake)) = self.forget(token, poller) {
            self.nodes[node].connections.closed(self.clock.now(), handshake.conn);
        }
    }

    fn forget(&mut self, token: u64, poller: &Poller) -> Option<(usize, Handshake)> {
        let (node, handshake) = self.sockets.remove(&token)?;
        self.tokens.remove(&(node, handshake.conn));
        self.asked.remove(&(node, handshake.conn));
        poller.remove(&handshake.socket);
        Some((node, handshake))
    }

    /// Does what a node's machine says, and remembers when to look at it again.
    fn settle(&mut self, node: usize, poller: &Poller) {
        while let Some(output) = self.nodes[node].connections.poll() {
            self.perform(node, output, poller);
        }
        if let Some(at) = self.nodes[node].connections.next_timeout()
            && self.nodes[node].timer.is_none_or(|timer| at < timer)
        {
            self.nodes[node].timer = Some(at);
            self.due.push(Reverse((at, node)));
        }
    }

    fn perform(&mut self, node: usize, output: Output, poller: &Poller) {
        let now = self.clock.now();
        let token_of = |conn| self.tokens.get(&(node, conn)).copied();
        match output {
            Output::Dial { conn, .. } => self.dial(node, conn, poller),
            Output::Send { conn, message } => {
                let Some(token) = token_of(conn) else { return };
                self.asked.insert((node, conn), now);
                let sent =
                    self.sockets.get_mut(&token).map(|(_, handshake)| handshake.send(&message, &self.seal));
                if sent == Some(false) {
                    self.closed(token, poller);
                }
            }
            Output::Close { conn } => {
                token_of(conn).and_then(|token| self.forget(token, poller));
            }
            Output::Offer { link, psns, .. } => {
                let ends = psns.iter().map(|psn| tcp_end(0, *psn, [0; 16])).collect();
                self.nodes[node].connections.made(now, link, Ok(ends));
            }
            // Nobody dials a fleet.
            Output::Serve { link, .. } => self.nodes[node].connections.made(now, link, Err(NoQueuePairs)),
            Output::Activate { link, .. } => self.nodes[node].connections.activated(now, link, Ok(())),
            Output::Ready { .. } => self.report.setups.push(now.since(Instant::ZERO)),
            Output::Down { .. } => self.report.lost += 1,
            Output::Retire { .. } => {}
        }
    }

    fn dial(&mut self, node: usize, conn: ConnId, poller: &Poller) {
        self.next_token += 1;
        let token = self.next_token;
        let socket = net::connect(self.fleet.address, STALL_MAX);
        let is_watched = |socket: &TcpStream| poller.add(socket, token, Watch::ReadWrite).is_ok();
        match socket.ok().filter(is_watched) {
            Some(socket) => {
                self.tokens.insert((node, conn), token);
                self.sockets.insert(token, (node, Handshake::new(conn, socket, true)));
            }
            None => self.nodes[node].connections.closed(self.clock.now(), conn),
        }
    }
}

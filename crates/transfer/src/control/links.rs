//! What the machine says, done.
//!
//! Owns: the ends of links while they are made, and their change into rails. Does **not** own any decision about when.

use std::collections::VecDeque;
use std::sync::Arc;

use towline_transfer_proto::wire::Message;
use towline_transfer_proto::{
    ConnId, Lane, LinkId, LinkKey, NoQueuePairs, NodeId, Output, Process, Psn, Qpn, QueuePair, Role,
};

use crate::clock::random;
use crate::config::LANES_MAX;
use crate::peer::{ActiveLink, Peer, PeerListener};
use crate::shared::Command;
use crate::tcp::{Connected, TCP_RAIL, TcpRail};
use crate::transport::{LinkEvents, Listener as _, Rail, Transport};

use super::{Control, Timer, net};

/// A queue pair that is not there: its transport does not reach the peer.
const ABSENT: u16 = u16::MAX;

/// Lanes of TCP that came before their link was up; at most as many as it has.
type EarlyLanes = VecDeque<(u16, Connected)>;

/// A link on its way.
#[derive(Debug)]
pub(super) struct Making {
    key: LinkKey,
    /// TCP connections that it will have.
    lanes: u16,
    early: EarlyLanes,
    /// What further lanes name it by; of a target.
    join: Option<[u8; 16]>,
    /// Ends that this side served and has not activated.
    served: Vec<Arc<dyn Transport>>,
    rails: Vec<(u16, Arc<dyn Rail>)>,
}

impl Making {
    fn new(key: LinkKey, lanes: u16) -> Self {
        Self { key, lanes, early: VecDeque::new(), join: None, served: Vec::new(), rails: Vec::new() }
    }

    pub(super) fn add_lane(&mut self, index: u16, connected: Connected) {
        if index < self.lanes && self.early.iter().all(|(known, _)| *known != index) {
            self.early.push_back((index, connected));
        }
    }
}

/// A link that is up.
#[derive(Debug)]
pub(super) struct Up {
    peer: Arc<Peer>,
    tcp: Arc<TcpRail>,
    rails: Vec<(u16, Arc<dyn Rail>)>,
    join: Option<[u8; 16]>,
}

impl Up {
    pub(super) fn tcp(&self) -> &Arc<TcpRail> {
        &self.tcp
    }
}

impl Control {
    /// Does all that the machine says, until it says nothing more.
    pub(super) fn perform_all(&mut self) {
        while let Some(output) = self.connections.poll() {
            self.perform(output);
        }
    }

    fn perform(&mut self, output: Output) {
        let now = self.now();
        match output {
            Output::Dial { conn, node } => self.dial(conn, node),
            Output::Send { conn, message } => self.send(conn, &message),
            Output::Close { conn } => {
                let token = self.tokens.get(&conn).copied();
                token.and_then(|token| self.forget(token));
            }
            Output::Offer { link, key, psns } => {
                let made = self.offer(link, key, &psns);
                self.connections.made(now, link, made);
            }
            Output::Serve { link, key, remote, psns, .. } => match self.serve(link, key, &remote, &psns) {
                Ok(made) if !self.service_time.is_zero() => {
                    self.set_timer(now + self.service_time, Timer::Served(link, made));
                }
                made => self.connections.made(now, link, made),
            },
            Output::Activate { link, remote } => {
                let activated = self.activate(link, &remote);
                self.connections.activated(now, link, activated);
            }
            Output::Retire { link } => self.retire(link),
            Output::Ready { link, key, process, role } => self.ready(link, key, process, role),
            Output::Down { link, key, cause } => {
                tracing::debug!(%link, node = %key.node, ?cause, "a link is down");
                self.peers.forget_unused(key.node);
            }
        }
    }

    /// A lane of the machine's is needed.
    pub(super) fn want(&mut self, peer: &Arc<Peer>) {
        let queue_pairs = usize::from(self.lanes) + self.transports.len();
        let queue_pairs = u16::try_from(queue_pairs).expect("invariant: lanes and transports are few");
        let wanted = self.connections.want(self.now(), super::first_lane(peer.node()), queue_pairs);
        if let Err(error) = wanted {
            tracing::warn!(node = %peer.node(), %error, "a link cannot be made");
            peer.not_wanted();
        }
    }

    /// Work or segments end; unless others have begun meanwhile the link ends, too.
    pub(super) fn close_link(&mut self, node: NodeId) {
        if !self.peers.find(node).is_some_and(|peer| peer.gives_up_link()) {
            return;
        }
        let key = super::first_lane(node);
        self.connections.unwant(self.now(), key);
        if let Some(link) = self.connections.link(key) {
            self.connections.failed(self.now(), link);
        }
    }

    /// Remembers whose handshake a connection carries.
    pub(super) fn note(&mut self, token: u64, message: &Message) {
        if let (Message::Hello(hello), Some(handshake)) = (message, self.handshakes.get_mut(&token)) {
            handshake.key = Some(LinkKey { node: hello.from.node, lane: hello.lane });
        }
    }

    fn send(&mut self, conn: ConnId, message: &Message) {
        let Some(token) = self.tokens.get(&conn).copied() else { return };
        let Some(handshake) = self.handshakes.get_mut(&token) else { return };
        if let Message::Hello(hello) = message {
            handshake.key = Some(LinkKey { node: hello.to, lane: hello.lane });
        }
        // The last of a lane's HELLOs and WELCOMEs that goes out is the one that can be confirmed.
        if let (Message::Hello(_) | Message::Welcome(_), Some(key)) = (message, handshake.key) {
            self.carriers.insert(key, token);
        }
        if !handshake.send(message, &self.seal) {
            return self.on_closed(token);
        }
        if handshake.is_behind() {
            self.watch(token);
        }
    }

    fn offer(&mut self, link: LinkId, key: LinkKey, psns: &[Psn]) -> Result<Vec<QueuePair>, NoQueuePairs> {
        self.making.insert(link, Making::new(key, self.lanes));
        let (tcp, others) = psns.split_at(psns.len().min(usize::from(self.lanes)));
        let mut made: Vec<_> = (0..).zip(tcp).map(|(lane, psn)| tcp_end(lane, *psn, [0; 16])).collect();
        for (transport, psn) in self.transports.iter().zip(others) {
            made.push(transport.offer(link, *psn)?);
        }
        Ok(made)
    }

    fn serve(
        &mut self,
        link: LinkId,
        key: LinkKey,
        remote: &[QueuePair],
        psns: &[Psn],
    ) -> Result<Vec<QueuePair>, NoQueuePairs> {
        let join = random();
        let mut making = Making::new(key, 1);
        making.join = Some(join);
        let mut made = Vec::with_capacity(remote.len());
        for (theirs, psn) in remote.iter().zip(psns) {
            let transport = self.transports.iter().find(|transport| transport.rail() == theirs.rail);
            let ours = match transport {
                None if theirs.rail == TCP_RAIL && theirs.lid < LANES_MAX => {
                    making.lanes = making.lanes.max(theirs.lid + 1);
                    Some(tcp_end(theirs.lid, *psn, join))
                }
                None => None,
                Some(transport) => transport.serve(link, theirs, *psn)?.inspect(|_| {
                    making.served.push(transport.clone());
                }),
            };
            made.push(ours.unwrap_or_else(|| absent(theirs.rail, *psn)));
        }
        if making.lanes > 1 {
            self.joins.insert(join, link);
        }
        self.making.insert(link, making);
        Ok(made)
    }

    fn activate(&mut self, link: LinkId, remote: &[QueuePair]) -> Result<(), NoQueuePairs> {
        let Some(mut making) = self.making.remove(&link) else { return Err(NoQueuePairs) };
        let activated = self.activate_rails(link, &mut making, remote);
        self.making.insert(link, making);
        activated
    }

    fn activate_rails(
        &mut self,
        link: LinkId,
        making: &mut Making,
        remote: &[QueuePair],
    ) -> Result<(), NoQueuePairs> {
        let peer = self.peers.meet(making.key.node).map_err(|_| NoQueuePairs)?;
        let events = LinkEvents { link, to: Arc::new(PeerListener(peer.clone())) };
        for transport in std::mem::take(&mut making.served) {
            let rail = transport.activate(link, None, events.clone())?;
            making.rails.extend(rail.map(|rail| (transport.rail(), rail)));
        }
        for theirs in remote.iter().filter(|theirs| theirs.lid != ABSENT) {
            if theirs.rail == TCP_RAIL {
                self.dial_lane(making, &peer, theirs);
                continue;
            }
            let transport = self.transports.iter().find(|transport| transport.rail() == theirs.rail);
            let Some(transport) = transport else { continue };
            let rail = transport.activate(link, Some(theirs), events.clone())?;
            making.rails.extend(rail.map(|rail| (transport.rail(), rail)));
        }
        Ok(())
    }

    /// The first lane is there already. One that cannot be dialled is done without.
    fn dial_lane(&self, making: &mut Making, peer: &Peer, theirs: &QueuePair) {
        if theirs.lid > 0
            && let Some(address) = peer.address()
            && let Ok(socket) = net::connect(address, self.stall_max)
        {
            let first = self.seal.join(&theirs.gid, theirs.lid);
            making.add_lane(theirs.lid, Connected { socket, first, early: Vec::new() });
        }
    }

    fn ready(&mut self, link: LinkId, key: LinkKey, process: Process, role: Role) {
        let handshake = self.carriers.remove(&key).and_then(|token| self.forget(token));
        let peer = self.peers.find(key.node);
        let (Some(handshake), Some(peer), Some(making)) = (handshake, peer, self.making.remove(&link)) else {
            // Its connection is gone in this moment.
            return self.connections.failed(self.now(), link);
        };
        tracing::debug!(%link, node = %key.node, ?role, "a link is up");
        self.connections.closed(self.now(), handshake.conn);
        let first = handshake.into_connected();
        let tcp = TcpRail::new(peer.clone(), link, process, making.lanes, first, &self.io);
        let best = making.rails.iter().max_by_key(|(number, _)| *number);
        let rail = best.map_or_else(|| tcp.clone() as Arc<dyn Rail>, |(_, rail)| rail.clone());
        let up = Up { peer: peer.clone(), tcp: tcp.clone(), rails: making.rails, join: making.join };
        self.links.insert(link, up);
        if key.lane == Lane(0) {
            peer.link_up(ActiveLink { id: link, process, rail, tcp: tcp.clone() });
        }
        tcp.serve();
        for (index, connected) in making.early {
            tcp.add(index, connected, &self.io);
        }
    }

    /// Ends a link or what was to become one. Its slices come back after the peer knows that it is down.
    pub(super) fn retire(&mut self, link: LinkId) {
        if let Some(making) = self.making.remove(&link) {
            self.forget_join(making.join);
            let mut none_posted = Vec::new();
            making.rails.iter().for_each(|(_, rail)| rail.retire(&mut none_posted));
            self.transports.iter().for_each(|transport| transport.abandon(link));
        }
        let Some(up) = self.links.remove(&link) else { return };
        self.forget_join(up.join);
        up.peer.link_down(link);
        let mut ended = Vec::new();
        up.rails.iter().for_each(|(_, rail)| rail.retire(&mut ended));
        up.tcp.retire(&mut ended);
        PeerListener(up.peer).completed(&ended);
    }

    fn forget_join(&mut self, join: Option<[u8; 16]>) {
        if let Some(join) = join {
            self.joins.remove(&join);
        }
    }

    pub(super) fn obey_unwant(&mut self, node: NodeId) {
        if self.peers.find(node).is_some_and(|peer| peer.gives_up_link()) {
            self.connections.unwant(self.now(), super::first_lane(node));
        }
    }

    /// What is left to do for peers when all links are gone.
    pub(super) fn end_peers(&mut self) {
        for command in self.shared.mailbox.take() {
            if let Command::Measure(promise) = command {
                promise.keep(self.measure());
            }
        }
        self.peers.all().iter().for_each(|peer| peer.end());
    }
}

pub(super) fn tcp_end(lane: u16, psn: Psn, join: [u8; 16]) -> QueuePair {
    QueuePair { rail: TCP_RAIL, qpn: Qpn(0), psn, lid: lane, gid: join }
}

fn absent(rail: u16, psn: Psn) -> QueuePair {
    QueuePair { rail, qpn: Qpn(0), psn, lid: ABSENT, gid: [0; 16] }
}

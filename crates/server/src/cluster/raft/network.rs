//! Raft's requests, over links.
//!
//! Owns: the links of one group, who is where, and openraft's network. Does **not** own connections (`links`).

use super::freshness::Freshness;
use super::machine::Applied;
use super::types::{Member, Seat, SnapshotMeta, Types, Vote};
use crate::cluster::links::Registry;
use crate::cluster::links::dialing::{Address, Dialer};
use crate::cluster::links::handshake::Introduction;
use crate::cluster::links::messages::{Kind, Request, Response, put_frame};
use crate::cluster::links::outgoing::{CallError, Outgoing, Route};
use openraft::error::{
    Fatal, NetworkError, PayloadTooLarge, RPCError, RaftError, ReplicationClosed, StreamingError, Unreachable,
};
use openraft::network::{Backoff, RPCOption, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse,
};
use openraft::{OptionalSend, Snapshot};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use towline_cluster_proto::{Announced, NodeId};

/// Nodes seen elsewhere than the metadata says, of which that is remembered.
const SEEN_MAX: usize = 2048;
/// How long Raft waits before it tries again to reach a node; the link's own backoff is longer if the node stays away.
const RETRY_AFTER: Duration = Duration::from_millis(100);
/// Entries of one request in bytes, beyond which it is split: a heartbeat's time is enough to bring it over.
const APPEND_BYTES_MAX: usize = 8 << 20;

/// What all groups of this node have in common.
#[derive(Debug)]
pub(crate) struct Common {
    /// Dials.
    pub(crate) dialer: Arc<Dialer>,
    /// Lists links.
    pub(crate) registry: Arc<Registry>,
    /// Where this node wants to be reached; an empty address is for others to find out.
    pub(crate) wanted: watch::Sender<Announced>,
    /// Where nodes were seen, with what the metadata said then.
    seen: Mutex<BTreeMap<NodeId, (Address, Address)>>,
}

impl Common {
    /// Nobody was seen yet.
    pub(crate) fn new(dialer: Arc<Dialer>, registry: Arc<Registry>, wanted: Announced) -> Self {
        Self { dialer, registry, wanted: watch::Sender::new(wanted), seen: Mutex::default() }
    }

    fn seen(&self) -> MutexGuard<'_, BTreeMap<NodeId, (Address, Address)>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `node` was seen at `at`, while the metadata says `said`.
    pub(crate) fn see(&self, node: NodeId, at: Address, said: Address) {
        let mut seen = self.seen();
        if at == said {
            seen.remove(&node);
        } else if seen.len() < SEEN_MAX || seen.contains_key(&node) {
            seen.insert(node, (at, said));
        }
    }

    /// Where to dial `node` of which the metadata says `said`: where it was seen, unless what is said is newer.
    pub(super) fn find(&self, node: NodeId, said: &Address) -> Option<Address> {
        let mut seen = self.seen();
        match seen.get(&node) {
            Some((at, before)) if before == said => return Some(at.clone()),
            Some(_) => _ = seen.remove(&node),
            None => {}
        }
        (!said.ip.is_empty()).then(|| said.clone())
    }

    fn lose(&self, node: NodeId) {
        self.seen().remove(&node);
    }
}

/// What the metadata says of where a node is; a member's address when it joined, if it says nothing.
pub(super) fn said(applied: &Applied, member: &Member) -> Address {
    match applied.metadata.node(member.node) {
        Some(node) if !node.at.ip.is_empty() => {
            Address { ip: node.at.ip.clone(), bus_port: node.at.bus_port }
        }
        _ => Address { ip: member.ip.clone(), bus_port: member.bus_port },
    }
}

#[derive(Debug)]
struct PeerRoute {
    common: Arc<Common>,
    applied: watch::Receiver<Applied>,
    me: NodeId,
    cluster: NodeId,
    member: Member,
}

impl Route for PeerRoute {
    fn address(&self) -> Option<Address> {
        self.common.find(self.member.node, &said(&self.applied.borrow(), &self.member))
    }

    fn introduction(&self) -> Introduction {
        let wanted = self.common.wanted.borrow();
        let (ip, bus_port) = (wanted.ip.clone(), wanted.bus_port);
        Introduction { node: self.me, cluster: self.cluster, ip, bus_port, is_alone: false }
    }

    fn node(&self) -> NodeId {
        self.member.node
    }

    fn failed(&self) {
        self.common.lose(self.member.node);
    }
}

/// The links to the members of a group. Dropping it ends them.
#[derive(Debug)]
pub(crate) struct Peers {
    common: Arc<Common>,
    applied: watch::Receiver<Applied>,
    me: NodeId,
    cluster: NodeId,
    links: Mutex<BTreeMap<Seat, Arc<Outgoing>>>,
}

impl Peers {
    /// No links yet.
    pub(super) fn new(
        common: Arc<Common>,
        applied: watch::Receiver<Applied>,
        me: NodeId,
        cluster: NodeId,
    ) -> Self {
        Self { common, applied, me, cluster, links: Mutex::default() }
    }

    fn links(&self) -> MutexGuard<'_, BTreeMap<Seat, Arc<Outgoing>>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The link to a member. Must be called on the cluster's runtime.
    pub(super) fn link(&self, seat: Seat, member: &Member) -> Arc<Outgoing> {
        let start = || {
            let route = PeerRoute {
                common: Arc::clone(&self.common),
                applied: self.applied.clone(),
                me: self.me,
                cluster: self.cluster,
                member: member.clone(),
            };
            let (dialer, registry) = (&self.common.dialer, &self.common.registry);
            Arc::new(Outgoing::start(Arc::new(route), Arc::clone(dialer), Arc::clone(registry), seat))
        };
        Arc::clone(self.links().entry(seat).or_insert_with(start))
    }

    /// Ends links to seats that are no members any more.
    pub(super) fn retain(&self, is_member: impl Fn(Seat) -> bool) {
        self.links().retain(|&seat, _| is_member(seat));
    }

    /// Ends all links.
    pub(super) fn clear(&self) {
        self.links().clear();
    }
}

/// A request as a frame whose number is set by the link.
pub(super) fn to_frame(request: &Request) -> std::io::Result<Vec<u8>> {
    let mut frame = Vec::new();
    put_frame(0, Kind::Request, request, &mut frame)?;
    Ok(frame)
}

/// Makes the network's ends.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) peers: Arc<Peers>,
    pub(super) freshness: Arc<Freshness>,
}

impl RaftNetworkFactory<Types> for Network {
    type Network = Peer;

    async fn new_client(&mut self, target: Seat, node: &Member) -> Peer {
        Peer { seat: target, link: self.peers.link(target, node), freshness: Arc::clone(&self.freshness) }
    }
}

/// One end of the network.
#[derive(Debug)]
pub(super) struct Peer {
    seat: Seat,
    link: Arc<Outgoing>,
    freshness: Arc<Freshness>,
}

#[derive(Debug, thiserror::Error)]
enum PeerError {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("the node does not have that seat any more, or has not taken it yet")]
    NotHere,
    #[error("it takes too long")]
    Late,
}

type Failed = RPCError<Seat, Member, RaftError<Seat>>;

impl Peer {
    async fn ask(&self, frame: Vec<u8>, within: Duration) -> Result<Response, PeerError> {
        match tokio::time::timeout(within, self.link.call(frame)).await {
            Err(_) => Err(PeerError::Late),
            Ok(Ok(Response::NotHere)) => Err(PeerError::NotHere),
            Ok(response) => Ok(response?),
        }
    }

    fn unreachable(error: &PeerError) -> Failed {
        RPCError::Unreachable(Unreachable::new(error))
    }
}

impl RaftNetwork<Types> for Peer {
    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<Types>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<Seat>, Failed> {
        let sent = Instant::now();
        let (vote, entries) = (rpc.vote, rpc.entries.len());
        let age_ms = self.freshness.quorum(vote, sent).map(|as_of| (sent - as_of).as_millis() as u64);
        let frame = to_frame(&Request::Append { to: self.seat, age_ms, rpc });
        if entries > 1 && frame.as_ref().map_or(true, |frame| frame.len() > APPEND_BYTES_MAX) {
            return Err(PayloadTooLarge::new_entries_hint(entries as u64 / 2).into());
        }
        let frame = frame.map_err(|error| NetworkError::new(&error))?;
        let response = self.ask(frame, option.hard_ttl()).await.map_err(|error| Self::unreachable(&error))?;
        let Response::Append(response) = response else { return Err(Self::unreachable(&PeerError::NotHere)) };
        let follows = !matches!(response, AppendEntriesResponse::HigherVote(_));
        self.freshness.answered(self.seat, sent, follows.then_some(vote));
        Ok(response)
    }

    async fn vote(
        &mut self,
        rpc: VoteRequest<Seat>,
        option: RPCOption,
    ) -> Result<VoteResponse<Seat>, Failed> {
        let sent = Instant::now();
        let frame =
            to_frame(&Request::Vote { to: self.seat, rpc }).map_err(|error| NetworkError::new(&error))?;
        let response = self.ask(frame, option.hard_ttl()).await.map_err(|error| Self::unreachable(&error))?;
        let Response::Vote(response) = response else { return Err(Self::unreachable(&PeerError::NotHere)) };
        self.freshness.answered(self.seat, sent, None);
        Ok(response)
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot<Types>,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        option: RPCOption,
    ) -> Result<SnapshotResponse<Seat>, StreamingError<Types, Fatal<Seat>>> {
        let sent = Instant::now();
        let meta: SnapshotMeta = snapshot.meta;
        let request = Request::Snapshot { to: self.seat, vote, meta, metadata: snapshot.snapshot };
        let frame = to_frame(&request).map_err(|error| NetworkError::new(&error))?;
        let response = tokio::select! {
            response = self.ask(frame, option.hard_ttl()) => response,
            closed = cancel => return Err(closed.into()),
        };
        match response {
            Ok(Response::Snapshot(theirs)) => {
                self.freshness.answered(self.seat, sent, (theirs <= vote).then_some(vote));
                Ok(SnapshotResponse::new(theirs))
            }
            Ok(_) => Err(Unreachable::new(&PeerError::NotHere).into()),
            Err(error) => Err(Unreachable::new(&error).into()),
        }
    }

    fn backoff(&self) -> Backoff {
        Backoff::new(std::iter::repeat(RETRY_AFTER))
    }
}

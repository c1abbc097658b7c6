//! One Raft group, as this node takes part in it.
//!
//! Owns: openraft's machine with its storage and network, who leads, how fresh this node is, and serving other members' requests. Does
//! **not** own the group's founding, joining and leaving (`node.rs`) nor the leader's duties (`duties.rs`).

use super::freshness::Freshness;
use super::machine::{Applied, Machine};
use super::network::{Common, Network, Peers, said, to_frame};
use super::store::{OpenError, Store};
use super::types::{Member, Raft, Seat, Types, Vote};
use crate::cluster::identity::{GroupId, Identity};
use crate::cluster::links::messages::{Request, Response};
use crate::cluster::links::outgoing::CallError;
use crate::persistence::disk::Disk;
use openraft::error::{ClientWriteError, RaftError};
use openraft::{RaftMetrics, ServerState, SnapshotPolicy, StoredMembership};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout_at;
use towline_cluster_proto::{Change, NodeId, Outcome};

/// Entries between two snapshots: some 100 KiB of log.
const SNAPSHOT_EVERY: u64 = 1000;
/// Entries that are kept although a snapshot has them, for members that are a little behind.
const KEEP_ENTRIES: u64 = 200;
/// Entries of one request, at most; requests are bounded in bytes as well.
const REQUEST_ENTRIES_MAX: u64 = 128;
/// A snapshot may take this long on its way.
const SNAPSHOT_TIME_MAX: Duration = Duration::from_secs(5);
/// A leader that knew its quorum so many heartbeats ago, or less, takes changes.
const QUORUM_HEARTBEATS: u32 = 5;

/// The times of a group, from `cluster-node-timeout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timing {
    /// Between heartbeats of the leader.
    pub(crate) heartbeat: Duration,
    /// A follower that has not heard of a leader for about twice this starts an election.
    pub(crate) election: Duration,
    /// A node that has not heard of a quorum for so long serves nothing.
    pub(crate) lease: Duration,
}

impl Timing {
    /// A leader is replaced after two seconds or less, whatever the timeout: it says when nodes stop serving, and waiting longer for a
    /// leader than for that is of no use. With timeouts below 4 s elections are faster.
    pub(crate) fn new(node_timeout: Duration) -> Self {
        let heartbeat = (node_timeout / 20).clamp(Duration::from_millis(50), Duration::from_millis(200));
        Self { heartbeat, election: heartbeat * 3, lease: node_timeout.max(heartbeat * 4) }
    }
}

/// Why a group could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum GroupError {
    /// Its files.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Raft does not start.
    #[error("the cluster's log does not start: {0}")]
    Raft(String),
}

/// Who leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Leader {
    /// This node.
    Me(Vote),
    /// Another one.
    Other(Seat, Member),
    /// Nobody who is known.
    Nobody,
}

/// What came of writing into the log.
#[derive(Debug)]
pub(super) enum Written {
    /// It is applied on the leader, by the entry of this number.
    Made(u64, Outcome),
    /// Nothing was written.
    NotLeader,
    /// Nothing was written, as no quorum is known.
    NoQuorum,
    /// It may or may not be made.
    Unknown,
    /// The group has ended.
    Closed,
}

/// See the module's description.
#[derive(Debug)]
pub(crate) struct Group {
    pub(super) id: GroupId,
    pub(super) node: NodeId,
    pub(super) timing: Timing,
    pub(super) raft: RaftHandle,
    pub(super) store: Store,
    pub(super) applied: watch::Receiver<Applied>,
    pub(super) freshness: Arc<Freshness>,
    pub(super) peers: Arc<Peers>,
    /// Held while the members change, so that one change is decided at a time.
    pub(super) members: tokio::sync::Mutex<()>,
    pub(super) tasks: Mutex<JoinSet<()>>,
}

/// Raft's handle, which has no `Debug` of its own.
#[derive(Clone)]
pub(super) struct RaftHandle(pub(super) Raft);

impl std::fmt::Debug for RaftHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Raft")
    }
}

impl Group {
    /// Opens the group that `identity` names. Its files are there.
    ///
    /// # Errors
    /// [`GroupError`].
    pub(crate) async fn open(
        disk: Arc<dyn Disk>,
        dir: PathBuf,
        identity: &Identity,
        timing: Timing,
        common: Arc<Common>,
    ) -> Result<Arc<Self>, GroupError> {
        let id = identity.group;
        let opening = tokio::task::spawn_blocking(move || open_store(&disk, &dir, id));
        let store = opening.await.map_err(|error| GroupError::Raft(error.to_string()))??;
        let (machine, applied) = Machine::new(store.clone());
        let freshness = Arc::new(Freshness::new(id.seat));
        let peers = Arc::new(Peers::new(Arc::clone(&common), applied.clone(), identity.node, id.cluster));
        let network = Network { peers: Arc::clone(&peers), freshness: Arc::clone(&freshness) };
        let millis = |time: Duration| time.as_millis() as u64;
        let config = openraft::Config {
            cluster_name: id.cluster.to_string(),
            heartbeat_interval: millis(timing.heartbeat),
            election_timeout_min: millis(timing.election),
            election_timeout_max: millis(timing.election * 3 / 2),
            install_snapshot_timeout: millis(SNAPSHOT_TIME_MAX),
            snapshot_policy: SnapshotPolicy::LogsSinceLast(SNAPSHOT_EVERY),
            max_in_snapshot_log_to_keep: KEEP_ENTRIES,
            max_payload_entries: REQUEST_ENTRIES_MAX,
            replication_lag_threshold: 2 * SNAPSHOT_EVERY,
            enable_elect: false,
            ..openraft::Config::default()
        };
        let failed = |error: &dyn std::fmt::Display| GroupError::Raft(error.to_string());
        let config = config.validate().map_err(|error| failed(&error))?;
        let raft = Raft::new(id.seat, Arc::new(config), network, store.clone(), machine).await;
        let raft = raft.map_err(|error| failed(&error))?;
        if identity.is_founder && !raft.is_initialized().await.map_err(|error| failed(&error))? {
            let at = common.wanted.borrow().clone();
            let me = Member { node: identity.node, ip: at.ip, bus_port: at.bus_port };
            raft.initialize(BTreeMap::from([(id.seat, me)])).await.map_err(|error| failed(&error))?;
        }
        let group = Arc::new(Self {
            id,
            node: identity.node,
            timing,
            raft: RaftHandle(raft),
            store,
            applied,
            freshness,
            peers,
            members: tokio::sync::Mutex::default(),
            tasks: Mutex::default(),
        });
        group.elect_soon();
        Ok(group)
    }

    /// A node that comes back waits for the leader's heartbeat before it tries to lead itself: an election that it starts at once would
    /// depose a leader who has done nothing wrong.
    fn elect_soon(&self) {
        let raft = self.raft.0.clone();
        let voters = self.voters();
        let others = voters.len() > 1 || !voters.contains(&self.id.seat);
        let wait = self.timing.election * 2;
        self.spawn(async move {
            if others {
                tokio::time::sleep(wait).await;
            }
            raft.runtime_config().elect(true);
            if !others {
                // It fails only if the group has ended.
                let _ = raft.trigger().elect().await;
            }
        });
    }

    /// Runs until the group is closed.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).spawn(task);
    }

    /// Ends everything; returns when the log is written and its thread has ended.
    pub(super) async fn close(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        tasks.shutdown().await;
        self.peers.clear();
        // It fails only if a task of Raft has panicked, and then it has ended as well.
        let _ = self.raft.0.shutdown().await;
        self.store.close().await;
    }

    /// What Raft says of itself.
    pub(super) fn metrics(&self) -> RaftMetrics<Seat, Member> {
        self.raft.0.metrics().borrow().clone()
    }

    /// The members, as of the last entry in the log that says so.
    pub(super) fn membership(&self) -> Arc<StoredMembership<Seat, Member>> {
        Arc::clone(&self.raft.0.metrics().borrow().membership_config)
    }

    fn voters(&self) -> BTreeSet<Seat> {
        self.membership().voter_ids().collect()
    }

    /// Whether this node is the only one of its cluster, by all that it has applied.
    pub(super) fn is_alone(&self) -> bool {
        let applied = self.applied.borrow();
        let nodes = applied.metadata.nodes();
        nodes.len() == 1 && nodes.contains_key(&self.node)
    }

    /// Who leads.
    pub(super) fn leader(&self) -> Leader {
        let metrics = self.raft.0.metrics();
        let metrics = metrics.borrow();
        if metrics.state == ServerState::Leader {
            return Leader::Me(metrics.vote);
        }
        let other = metrics.current_leader.filter(|&seat| seat != self.id.seat);
        let member = |seat| metrics.membership_config.membership().get_node(&seat).cloned();
        other.and_then(|seat| Some(Leader::Other(seat, member(seat)?))).unwrap_or(Leader::Nobody)
    }

    /// This node's claim, if it leads.
    pub(super) fn leads_by(&self) -> Option<Vote> {
        match self.leader() {
            Leader::Me(vote) => Some(vote),
            Leader::Other(..) | Leader::Nobody => None,
        }
    }

    /// The leader's name, if it is known.
    pub(super) fn leader_node(&self) -> Option<NodeId> {
        match self.leader() {
            Leader::Me(_) => Some(self.node),
            Leader::Other(_, member) => Some(member.node),
            Leader::Nobody => None,
        }
    }

    /// As of when this node knows of a quorum.
    pub(super) fn fresh_as_of(&self, now: Instant) -> Option<Instant> {
        match self.leader() {
            Leader::Me(vote) => self.freshness.quorum(vote, now),
            Leader::Other(..) | Leader::Nobody => self.freshness.heard(),
        }
    }

    /// Whether this node leads and a quorum has followed a moment ago: then a change is most likely made.
    pub(super) fn leads_a_quorum(&self) -> Option<bool> {
        let Leader::Me(vote) = self.leader() else { return None };
        let now = Instant::now();
        let is_recent =
            |as_of| now.saturating_duration_since(as_of) <= self.timing.heartbeat * QUORUM_HEARTBEATS;
        Some(self.freshness.quorum(vote, now).is_some_and(is_recent))
    }

    /// Writes a change, if this node leads.
    ///
    /// # Cancel safety
    /// It may be made nevertheless.
    pub(super) async fn write(&self, change: Change, until: tokio::time::Instant) -> Written {
        match self.leads_a_quorum() {
            None => return Written::NotLeader,
            Some(false) => return Written::NoQuorum,
            Some(true) => {}
        }
        match timeout_at(until, self.raft.0.client_write(change)).await {
            Err(_) => Written::Unknown,
            Ok(Ok(written)) => Written::Made(written.log_id.index, written.data),
            Ok(Err(RaftError::APIError(ClientWriteError::ForwardToLeader(_)))) => Written::NotLeader,
            Ok(Err(RaftError::APIError(ClientWriteError::ChangeMembershipError(_)))) => Written::Unknown,
            Ok(Err(RaftError::Fatal(_))) => Written::Closed,
        }
    }

    /// Asks a member.
    ///
    /// # Errors
    /// [`CallError`]; `Lost` as well if it takes longer than until then.
    pub(super) async fn ask(
        &self,
        seat: Seat,
        member: &Member,
        request: &Request,
        until: tokio::time::Instant,
    ) -> Result<Response, CallError> {
        let frame = to_frame(request).map_err(|error| CallError::NotSent(error.to_string()))?;
        let link = self.peers.link(seat, member);
        timeout_at(until, link.call(frame)).await.unwrap_or(Err(CallError::Lost))
    }

    /// Where a member is, by what everybody knows.
    pub(super) fn said(&self, member: &Member) -> crate::cluster::links::dialing::Address {
        said(&self.applied.borrow(), member)
    }

    /// Serves what Raft on another node asks.
    pub(super) async fn serve_raft(&self, request: Request) -> Response {
        let received = Instant::now();
        let raft = &self.raft.0;
        match request {
            Request::Append { to, age_ms, rpc } if to == self.id.seat => {
                let decided = rpc.leader_commit.map_or(0, |entry| entry.index);
                match raft.append_entries(rpc).await {
                    Ok(response) => {
                        let is_followed =
                            !matches!(response, openraft::raft::AppendEntriesResponse::HigherVote(_));
                        if let Some(age) = age_ms.filter(|_| is_followed) {
                            self.freshness.hear(received, Duration::from_millis(age), decided);
                        }
                        Response::Append(response)
                    }
                    Err(_) => Response::NotHere,
                }
            }
            Request::Vote { to, rpc } if to == self.id.seat && self.may_vote_for(&rpc.vote) => {
                raft.vote(rpc).await.map_or(Response::NotHere, Response::Vote)
            }
            Request::Snapshot { to, vote, meta, metadata } if to == self.id.seat => {
                if let Err(error) = metadata.check() {
                    let from = vote.leader_id().voted_for();
                    tracing::error!(?from, "a snapshot from another node was refused: {error}");
                    return Response::NotHere;
                }
                let snapshot = openraft::Snapshot::<Types> { meta, snapshot: metadata };
                let result = raft.install_full_snapshot(vote, snapshot).await;
                result.map_or(Response::NotHere, |response| Response::Snapshot(response.vote))
            }
            _ => Response::NotHere,
        }
    }

    /// A node that was taken out of the group does not know it, and goes on asking for votes. It gets none, so it deposes nobody. One
    /// that was put in a moment ago may be unknown here, and gets the votes of the majority that has put it in.
    fn may_vote_for(&self, vote: &Vote) -> bool {
        let membership = self.membership();
        let candidate = vote.leader_id().voted_for();
        candidate.is_some_and(|seat| {
            membership.nodes().next().is_none() || membership.membership().get_node(&seat).is_some()
        })
    }
}

fn open_store(disk: &Arc<dyn Disk>, dir: &Path, id: GroupId) -> Result<Store, OpenError> {
    Store::open(disk, dir, &id.file_name())
}

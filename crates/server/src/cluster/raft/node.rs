//! This node's log: one group at a time.
//!
//! Owns: which group this node belongs to, starting and stopping it, what the rest of the server sees of it, and serving requests of
//! other nodes. Does **not** own joining and leaving (`meet.rs`) nor how a proposal finds the leader (`propose.rs`).

use super::duties;
use super::group::{Group, GroupError, Timing, Written};
use super::machine::Applied;
use super::network::Common;
use super::standing;
use super::store;
use crate::cluster::identity::{Identity, IdentityError};
use crate::cluster::links::dialing::{Address, Dialer};
use crate::cluster::links::handshake::{Greeted, HandshakeError, Introduction, Refusal};
use crate::cluster::links::incoming::{self, Service, Serving};
use crate::cluster::links::messages::{Request, Response};
use crate::cluster::links::{MigrationStream, Purpose, Registry};
use crate::cluster::log::{Answer, Link, MeetError, MetadataLog, Peer, ProposeError, Standing};
use crate::persistence::disk::{Disk, DiskLock};
use arc_swap::ArcSwap;
use socket2::{Domain, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{RwLock, mpsc, watch};
use tokio::task::JoinSet;
use towline_cluster_proto::{Announced, Change, Metadata, NodeId, Outcome};

/// How long a start waits until a node that is alone leads its own group. It takes some milliseconds and two syncs.
const FOUNDING_TIME_MAX: Duration = Duration::from_secs(10);
/// A request of another node is worked on for so long; links wait longer for an answer.
pub(super) const SERVING_TIME_MAX: Duration = Duration::from_secs(4);
/// Between tries to tell the cluster that this node is elsewhere.
const ANNOUNCE_AGAIN: Duration = Duration::from_secs(1);

/// In the log's directory.
const LOCK_FILE: &str = "lock";
/// Nodes that may knock at the same moment: all of a large cluster.
const BACKLOG: i32 = 1024;

/// What a node's log is started with.
#[derive(Debug)]
pub(crate) struct RaftConfig {
    /// The server's directory.
    pub(crate) dir: PathBuf,
    /// `cluster-config-file`: who this node is. The log is in a directory beside it, with `-raft` after the name.
    pub(crate) file: String,
    /// Where files are.
    pub(crate) disk: Arc<dyn Disk>,
    /// Where links are accepted. Port 0 takes a free one.
    pub(crate) bind: Vec<SocketAddr>,
    /// Where this node is reached. An empty address is found out by others; a bus port of 0 is the first that is bound.
    pub(crate) announced: Announced,
    /// `cluster-secret`; empty for none.
    pub(crate) secret: Vec<u8>,
    /// `cluster-node-timeout`.
    pub(crate) node_timeout: Duration,
    /// Takes connections that bring slots. When it is full, they are closed.
    pub(crate) migrations: mpsc::Sender<MigrationStream>,
}

/// Why a node's log was not started. The environment's fault.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum StartError {
    /// Links cannot be accepted.
    #[error("cannot accept links of other nodes at {at}: {error}")]
    Bind {
        /// Where.
        at: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// Who this node is.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The log.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// The log's directory, or randomness.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Another process is this node.
    #[error("another process uses {}: two cannot be the same node", path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// A node that is alone did not come to lead itself.
    #[error("the cluster's log did not start within {FOUNDING_TIME_MAX:?}")]
    Late,
}

/// The log of metadata by Raft. Dropping it ends it, without waiting.
#[derive(Debug)]
pub(crate) struct RaftLog {
    inner: Arc<Inner>,
    tasks: Mutex<JoinSet<()>>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) me: Weak<Self>,
    pub(super) runtime: tokio::runtime::Handle,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) path: PathBuf,
    pub(super) raft_dir: PathBuf,
    pub(super) timing: Timing,
    pub(super) common: Arc<Common>,
    pub(super) identity: Mutex<Identity>,
    pub(super) group: ArcSwap<Group>,
    /// Held to read by proposals, and to write by whoever leaves the group.
    pub(super) transition: RwLock<()>,
    pub(super) is_closed: AtomicBool,
    metadata: watch::Sender<Arc<Metadata>>,
    /// The number of the last entry that `metadata` has, with its group.
    pub(super) published: watch::Sender<(u64, u64)>,
    pub(super) standing: watch::Sender<Standing>,
    migrations: mpsc::Sender<MigrationStream>,
    /// Keeps the directory to this process, until the log is ended.
    lock: Mutex<Option<Box<dyn DiskLock>>>,
    /// Whether it was looked at once where this node's links come from.
    has_looked: AtomicBool,
}

#[cfg(test)]
impl RaftLog {
    /// What Raft says of itself.
    pub(super) fn metrics(
        &self,
    ) -> watch::Receiver<openraft::RaftMetrics<super::types::Seat, super::types::Member>> {
        self.inner.group().raft.0.metrics()
    }

    /// What this node answers to a snapshot that another one sends.
    pub(super) async fn take_snapshot(&self, metadata: Metadata) -> Response {
        let group = self.inner.group();
        let meta = super::types::SnapshotMeta {
            last_log_id: group
                .applied
                .borrow()
                .last
                .map(|last| super::types::LogId::new(last.leader_id, last.index + 1)),
            last_membership: (*group.membership()).clone(),
            snapshot_id: "foreign".into(),
        };
        let vote = group.metrics().vote;
        let metadata = Box::new(metadata);
        group.serve_raft(Request::Snapshot { to: group.id.seat, vote, meta, metadata }).await
    }
}

impl Drop for RaftLog {
    fn drop(&mut self) {
        if !self.inner.is_closed.swap(true, Ordering::AcqRel) {
            let group = self.inner.group();
            // If the runtime is gone, so are the group's tasks.
            drop(self.inner.runtime.spawn(async move { group.close().await }));
        }
    }
}

impl RaftLog {
    /// Starts the log: founds a cluster of one node, or takes part in the one that this node belongs to. To be called on the runtime that
    /// everything is to live on. With a cluster of one, it returns once changes can be made; else at once.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left running.
    ///
    /// # Cancel safety
    /// What was started ends.
    pub(crate) async fn start(config: RaftConfig) -> Result<Arc<Self>, StartError> {
        let mut announced = config.announced;
        let mut listeners = Vec::new();
        for at in config.bind {
            let listener = listen(at).map_err(|error| StartError::Bind { at, error })?;
            if announced.bus_port == 0 {
                announced.bus_port = listener.local_addr()?.port();
            }
            listeners.push(listener);
        }
        let path = config.dir.join(&config.file);
        let raft_dir = config.dir.join(format!("{}-raft", config.file));
        let (disk, at, dir) = (Arc::clone(&config.disk), path.clone(), raft_dir.clone());
        let opening = tokio::task::spawn_blocking(move || identity(&*disk, &at, &dir));
        let (identity, lock) = opening.await.map_err(io::Error::other)??;
        let timing = Timing::new(config.node_timeout);
        let secret: Arc<[u8]> = config.secret.clone().into();
        let registry = Arc::new(Registry::default());
        let dialer = Arc::new(Dialer::new(config.secret));
        let common = Arc::new(Common::new(dialer, Arc::clone(&registry), announced));
        let opened =
            Group::open(Arc::clone(&config.disk), raft_dir.clone(), &identity, timing, Arc::clone(&common));
        let group = opened.await?;
        let standing = Standing { node: identity.node, is_fresh: false, leader: None, term: 0 };
        let inner = Arc::new_cyclic(|me| Inner {
            me: Weak::clone(me),
            runtime: tokio::runtime::Handle::current(),
            disk: config.disk,
            path,
            raft_dir,
            timing,
            common,
            identity: Mutex::new(identity),
            group: ArcSwap::new(Arc::clone(&group)),
            transition: RwLock::default(),
            is_closed: AtomicBool::new(false),
            metadata: watch::Sender::default(),
            published: watch::Sender::new((0, 0)),
            standing: watch::Sender::new(standing),
            migrations: config.migrations,
            lock: Mutex::new(Some(lock)),
            has_looked: AtomicBool::new(false),
        });
        let log = Arc::new(Self { inner: Arc::clone(&inner), tasks: Mutex::default() });
        inner.run_group(&group);
        for listener in listeners {
            let service: Arc<dyn Service> = Arc::clone(&inner) as _;
            log.spawn(incoming::accept(listener, Arc::clone(&secret), service, Arc::clone(&registry)));
        }
        log.spawn(announcing(Arc::clone(&inner)));
        log.spawn(super::meet::resume(Arc::clone(&inner)));
        let voters = group.membership().voter_ids().count();
        if inner.identity().is_founder && voters <= 1 && group.applied.borrow().metadata.nodes().len() <= 1 {
            let mut standing = inner.standing.subscribe();
            let leads = standing.wait_for(|standing| standing.is_fresh);
            tokio::time::timeout(FOUNDING_TIME_MAX, leads)
                .await
                .map_err(|_| StartError::Late)?
                .map_err(|_| StartError::Late)?;
        }
        Ok(log)
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).spawn(task);
    }

    /// Ends the log; returns when all is written. Proposals end with [`ProposeError::Closed`].
    pub(crate) async fn shutdown(&self) {
        self.inner.is_closed.store(true, Ordering::Release);
        let mut tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        tasks.shutdown().await;
        // A node that changes its group right now comes to the end of it.
        let _turn = self.inner.transition.write().await;
        self.inner.group().close().await;
        drop(self.inner.lock.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Where this node accepts links, as it tells others.
    #[cfg(test)]
    pub(crate) fn announced(&self) -> Announced {
        self.inner.common.wanted.borrow().clone()
    }

    /// Dials a node of this cluster to bring it slots. Nothing but the handshake was said on the connection.
    ///
    /// # Errors
    /// [`HandshakeError`]: the environment's fault, retryable. That the node is not known is one of its `Io`.
    ///
    /// # Cancel safety
    /// The connection is closed.
    pub(crate) async fn connect(&self, node: NodeId) -> Result<TcpStream, HandshakeError> {
        let group = self.inner.group();
        let membership = group.membership();
        let known = membership.nodes().find(|(_, member)| member.node == node).map(|(_, member)| member);
        let unknown = || io::Error::new(io::ErrorKind::NotFound, format!("node {node} is not known"));
        let at = group.said(known.ok_or_else(unknown)?);
        let at = self.inner.common.find(node, &at).ok_or_else(unknown)?;
        let from = self.inner.introduction();
        let cluster = from.cluster;
        let (stream, greeted) = self.inner.common.dialer.dial(&at, Purpose::Migration, from).await?;
        if greeted.peer.cluster != cluster || greeted.peer.node != node {
            return Err(Refusal::Cluster(greeted.peer.cluster).into());
        }
        Ok(stream)
    }
}

fn listen(at: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(at), Type::STREAM, None)?;
    if at.is_ipv6() {
        // Else `::` takes the port of `0.0.0.0`, too.
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&at.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Who this node is, a new one if nobody was there before; and its directory for itself.
fn identity(
    disk: &dyn Disk,
    path: &Path,
    raft_dir: &Path,
) -> Result<(Identity, Box<dyn DiskLock>), StartError> {
    disk.make_dir(raft_dir)?;
    let locked = || StartError::Locked { path: raft_dir.to_owned() };
    let lock = disk.lock(raft_dir, LOCK_FILE)?.ok_or_else(locked)?;
    let identity = match Identity::load(disk, path)? {
        Some(identity) => identity,
        None => {
            let identity = Identity::draw()?;
            store::create(disk, raft_dir, &identity.group.file_name())?;
            identity.store(disk, path)?;
            identity
        }
    };
    store::remove_others(disk, raft_dir, &identity.group.file_name());
    Ok((identity, lock))
}

impl Inner {
    pub(super) fn identity(&self) -> MutexGuard<'_, Identity> {
        self.identity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn group(&self) -> Arc<Group> {
        self.group.load_full()
    }

    /// How this node introduces itself.
    pub(super) fn introduction(&self) -> Introduction {
        let group = self.group();
        let wanted = self.common.wanted.borrow();
        Introduction {
            node: group.node,
            cluster: group.id.cluster,
            ip: wanted.ip.clone(),
            bus_port: wanted.bus_port,
            is_alone: group.is_alone(),
        }
    }

    /// Starts what watches over a group that is the current one.
    pub(super) fn run_group(self: &Arc<Self>, group: &Arc<Group>) {
        let found = {
            let identity = self.identity();
            identity.is_founder.then(|| Change::Found {
                cluster: identity.group.cluster,
                node: identity.node,
                shard: identity.shard,
                at: self.common.wanted.borrow().clone(),
            })
        };
        // What the disk knows is seen before anything else is done here.
        self.publish(group, &group.applied.borrow().clone());
        group.spawn(publish(Weak::clone(&self.me), Arc::downgrade(group), group.applied.clone()));
        group.spawn(standing::stand(Weak::clone(&self.me), Arc::clone(group)));
        group.spawn(duties::run(Arc::clone(group), found));
        group.spawn(duties::keep_links(Arc::clone(group)));
    }

    /// Everybody on this node sees what is applied. A node that has just joined sees its old cluster until it is a node of the new one.
    fn publish(&self, group: &Group, last: &Applied) {
        if last.metadata.node(group.node).is_none() {
            return;
        }
        self.metadata.send_if_modified(|metadata| {
            let is_new = !Arc::ptr_eq(metadata, &last.metadata);
            *metadata = Arc::clone(&last.metadata);
            is_new
        });
        self.published.send_replace((group.id.seat, last.index()));
    }

    /// Waits until everybody on this node sees the entry.
    pub(super) async fn see(&self, group: &Group, index: u64, until: tokio::time::Instant) -> bool {
        let mut published = self.published.subscribe();
        let seen = published.wait_for(|&(seat, last)| seat == group.id.seat && last >= index);
        tokio::time::timeout_at(until, seen).await.is_ok_and(|seen| seen.is_ok())
    }

    /// How this node stands.
    pub(super) fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }

    /// This node knows nothing of a quorum, until it hears of one.
    pub(super) fn stand_aside(&self) {
        self.standing.send_modify(|standing| (standing.is_fresh, standing.leader) = (false, None));
    }

    /// This node is reached at `ip`, if it was not known before where.
    fn learn_own(&self, ip: IpAddr) {
        if ip.is_unspecified() {
            return;
        }
        self.common.wanted.send_if_modified(|wanted| {
            let is_new = wanted.ip.is_empty();
            if is_new {
                wanted.ip = ip.to_string();
            }
            is_new
        });
    }

    /// Others see this node at `ip`; believed once for each start, as a node with several addresses is seen at all of them.
    pub(super) fn seen_at(&self, ip: IpAddr) {
        if !self.has_looked.swap(true, Ordering::Relaxed) {
            self.learn_own(ip);
        }
    }

    async fn serve_request(self: Arc<Self>, peer: Greeted, request: Request) -> Response {
        let until = tokio::time::Instant::now() + SERVING_TIME_MAX;
        let group = self.group();
        if peer.purpose != Purpose::Meet && peer.peer.cluster != group.id.cluster {
            // This node has left while the link was open.
            return Response::NotHere;
        }
        match request {
            Request::Append { .. } | Request::Vote { .. } | Request::Snapshot { .. } => {
                if peer.purpose == Purpose::Meet {
                    Response::NotHere
                } else {
                    group.serve_raft(request).await
                }
            }
            Request::Propose(change) if peer.purpose == Purpose::Raft => {
                match group.write(change, until).await {
                    Written::Made(index, outcome) => Response::Made { index, outcome },
                    Written::NotLeader | Written::Closed => {
                        Response::NotLeader { leader: group.leader_node() }
                    }
                    Written::NoQuorum => Response::NoQuorum,
                    Written::Unknown => Response::Unknown,
                }
            }
            Request::Propose(_) => Response::NotHere,
            Request::Ping => Response::Pong,
            Request::Join(joining) => self.take_in(*joining, peer.seen, until).await,
            Request::Invite { ip, bus_port } => {
                let ip = if ip.is_empty() { peer.seen.to_string() } else { ip };
                self.come(Address { ip, bus_port });
                Response::Invited
            }
        }
    }
}

impl Service for Inner {
    fn admit(&self, from: &Introduction, purpose: Purpose) -> Result<Introduction, Refusal> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Refusal::Stopping);
        }
        let me = self.introduction();
        if purpose != Purpose::Meet && from.cluster != me.cluster {
            return Err(Refusal::Cluster(me.cluster));
        }
        Ok(me)
    }

    fn greeted(&self, peer: &Introduction, from: IpAddr, to: IpAddr) {
        self.learn_own(to);
        let group = self.group();
        if peer.cluster != group.id.cluster || peer.node == group.node {
            return;
        }
        let membership = group.membership();
        if let Some((_, member)) = membership.nodes().find(|(_, member)| member.node == peer.node) {
            let ip = if peer.ip.is_empty() { from.to_string() } else { peer.ip.clone() };
            self.common.see(peer.node, Address { ip, bus_port: peer.bus_port }, group.said(member));
        }
    }

    fn serve(&self, peer: &Greeted, request: Request) -> Serving {
        let (me, peer) = (Weak::clone(&self.me), peer.clone());
        Box::pin(async move {
            match me.upgrade() {
                Some(me) => me.serve_request(peer, request).await,
                None => Response::NotHere,
            }
        })
    }

    fn migration(&self, stream: MigrationStream) {
        let node = stream.node;
        if self.migrations.try_send(stream).is_err() {
            tracing::warn!("node {node} wants to bring slots, and nobody takes them now");
        }
    }
}

/// Publishes what is applied, for as long as there are node and group.
async fn publish(node: Weak<Inner>, group: Weak<Group>, mut applied: watch::Receiver<Applied>) {
    loop {
        let last = applied.borrow_and_update().clone();
        let (Some(node), Some(group)) = (node.upgrade(), group.upgrade()) else { return };
        node.publish(&group, &last);
        drop((node, group));
        if applied.changed().await.is_err() {
            return;
        }
    }
}

/// Tells the cluster where this node is, whenever that is not what the metadata says.
async fn announcing(node: Arc<Inner>) {
    let (mut wanted, mut metadata) = (node.common.wanted.subscribe(), node.metadata.subscribe());
    loop {
        let group = node.group();
        let mut at = wanted.borrow_and_update().clone();
        let known = metadata.borrow_and_update().node(group.node).map(|known| known.at.clone());
        if let Some(known) = known {
            if at.ip.is_empty() {
                at.ip = known.ip.clone();
            }
            if at != known {
                let change = Change::Announce { node: group.node, at };
                // If it was made, the metadata changes; if not, it is tried again.
                let _ = super::propose::propose(Arc::clone(&node), change).await;
                let _ = tokio::time::timeout(ANNOUNCE_AGAIN, metadata.changed()).await;
                continue;
            }
        }
        tokio::select! {
            result = wanted.changed() => if result.is_err() { return },
            result = metadata.changed() => if result.is_err() { return },
        }
    }
}

impl MetadataLog for RaftLog {
    fn propose(&self, change: Change) -> Answer<Result<Outcome, ProposeError>> {
        let task = self.inner.runtime.spawn(super::propose::propose(Arc::clone(&self.inner), change));
        Box::pin(async move { task.await.unwrap_or(Err(ProposeError::Closed)) })
    }

    fn metadata(&self) -> watch::Receiver<Arc<Metadata>> {
        self.inner.metadata.subscribe()
    }

    fn standing(&self) -> watch::Receiver<Standing> {
        self.inner.standing.subscribe()
    }

    fn meet(&self, peer: Peer) -> Answer<Result<(), MeetError>> {
        let stopped = MeetError::Unreachable {
            address: SocketAddr::new(peer.ip, peer.bus_port),
            reason: "this node is stopping".into(),
        };
        let task = self.inner.runtime.spawn(super::meet::meet(Arc::clone(&self.inner), peer));
        Box::pin(async move { task.await.unwrap_or(Err(stopped)) })
    }

    fn reset(&self, node: NodeId) -> Answer<Result<(), ProposeError>> {
        let task = self.inner.runtime.spawn(super::meet::reset(Arc::clone(&self.inner), node));
        Box::pin(async move { task.await.unwrap_or(Err(ProposeError::Closed)) })
    }

    fn announce(&self, at: Announced) {
        self.inner.common.wanted.send_if_modified(|wanted| {
            let mut at = at;
            if at.bus_port == 0 {
                at.bus_port = wanted.bus_port;
            }
            let is_new = *wanted != at;
            *wanted = at;
            is_new
        });
    }

    fn links(&self) -> Vec<Link> {
        self.inner.common.registry.list()
    }
}

//! A client of a cluster, or of one primary with replicas: one single-endpoint client for each node, and the map between them.
//!
//! Owns the nodes' clients, the published map, and the ways of a command that are more than one endpoint's. Makes no
//! decision about redirects, order or refreshes: those are `towline_client_proto::routing`'s, whose calls are serialised here
//! under one lock. Nothing of it is on the way of a usual command, which looks at the published map, takes its node's lock, and
//! finds there whether its slot is still the node's.
//!
//! Locks are taken in this order: the map's ([`Cluster::change`]), then one node's engine. Wakers are called without any.

mod exchange;
mod follow;
mod heir;
mod join;
mod lag;
mod node;
mod options;
mod pipeline;
mod read;
mod refresh;
mod report;
mod scan;
mod send;
mod sentinel;
mod source;

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;

use arc_swap::ArcSwap;
use tokio::runtime::Handle;
use tokio::sync::{Notify, broadcast};
use towline_client_proto::routing::{
    BridgeId, EndpointId, Lanes, ReadFrom, RefreshCause, Router, RouterConfig, on_news, on_views,
};
use towline_client_proto::{Counters, Error, ErrorKind, Event, MapTrouble, News, Sent};
use towline_cluster::{Address, Slot, View};
use towline_sansio::Instant;

use crate::cache;
use crate::clock;
use crate::options::{ConnectOptions, OptionsError};
use crate::transport::{Connector, Target};

use follow::Hubs;
pub(crate) use follow::{Follow, one_slot, several_slots};
use lag::Measure;
use node::{Hands, Node, Routes};
pub use options::ClusterOptions;
pub use report::{ClusterReport, NodeReport};
pub use scan::{ScanAll, ScanAllBuilder};
use source::Source;
pub(crate) use source::Topology;

/// Events kept for a listener that is behind.
const EVENTS_MAX: usize = 1024;

/// Everything that the handles of one cluster's client share.
pub(crate) struct Cluster {
    /// Those of a single node, whose target is the first seed.
    options: ConnectOptions,
    cluster_options: ClusterOptions,
    source: Source,
    connector: Connector,
    runtime: Handle,
    me: Weak<Self>,
    routes: ArcSwap<Routes>,
    state: Mutex<State>,
    /// Calls the task that asks for the map.
    refresh: Arc<Notify>,
    /// The map has changed, or the client was closed.
    changed: Notify,
    /// Which node is next to get a command without keys.
    next: AtomicUsize,
    /// Which node of a shard is next to get a read.
    turn: AtomicUsize,
    /// Somebody reads from replicas.
    is_reading: AtomicBool,
    lag: Arc<Measure>,
    events: broadcast::Sender<Event>,
    hubs: Hubs,
    cache: Option<Arc<cache::Shared>>,
}

struct State {
    router: Router,
    nodes: BTreeMap<EndpointId, Arc<Node>>,
    /// Nodes that are none of the cluster's any more, until what they have is answered.
    leaving: BTreeMap<EndpointId, Arc<Node>>,
    /// Nodes that are lost, whose heirs are looked for.
    without_heir: BTreeSet<EndpointId>,
    /// Counters of nodes that have ended.
    past: Counters,
    /// Why the map could not be had, the last time.
    last_error: Option<Box<str>>,
    is_closed: bool,
}

/// The way from a node's connection to its cluster.
#[derive(Clone)]
pub(crate) struct Attachment {
    pub(crate) cluster: Weak<Cluster>,
    /// The node and the lane; `None` for a connection of subscriptions.
    pub(crate) bridge: Option<BridgeId>,
}

impl Attachment {
    /// Whether it is a connection for reads from a replica.
    pub(crate) fn is_reader(&self) -> bool {
        self.bridge.is_some_and(|bridge| bridge.endpoint.is_reader())
    }

    /// That of a lane of a node.
    pub(crate) fn of_bridge(cluster: &Weak<Cluster>, bridge: BridgeId) -> Self {
        Self { cluster: Weak::clone(cluster), bridge: Some(bridge) }
    }

    /// Tells the cluster what a bridge has to say. Not to be called with any lock.
    pub(crate) fn tell(&self, news: News) {
        let Some(cluster) = self.cluster.upgrade() else { return };
        match self.bridge {
            Some(bridge) => {
                // The loss of a connection for reads makes nobody an heir.
                let is_down = news.trouble == Some(MapTrouble::Down) && !bridge.endpoint.is_reader();
                cluster.change(|router, hands, now| on_news(router, now, bridge, news, hands));
                // Sentinels vote for an heir and tell at once.
                if is_down && !cluster.has_one_primary() {
                    cluster.look_for_heir(bridge.endpoint);
                }
            }
            None if news.trouble.is_some() => cluster.request_refresh(RefreshCause::Urgent),
            None => {}
        }
    }
}

impl Cluster {
    /// Begins to look for the servers. Must be called within a tokio runtime.
    pub(crate) fn start(
        options: ConnectOptions,
        topology: Topology,
        cache: Option<Arc<cache::Shared>>,
    ) -> Result<Arc<Self>, OptionsError> {
        let connector = options.connector()?;
        let source::Parts { source, options, cluster_options, refresh_interval } =
            topology.into_parts(options)?;
        let now = clock::now();
        let mut config = RouterConfig::default();
        config.refresh.interval = refresh_interval;
        config.is_role_identity = source.has_one_primary();
        // All keys of a single primary are one slot, which has one lane.
        let options = if source.has_one_primary() { options.lanes(1) } else { options };
        config.lanes = options.lane_count();
        let state = State {
            router: Router::new(now, config, RandomState::new().hash_one(now)),
            nodes: BTreeMap::new(),
            leaving: BTreeMap::new(),
            without_heir: BTreeSet::new(),
            past: Counters::default(),
            last_error: None,
            is_closed: false,
        };
        let is_reading = cluster_options.reads() != ReadFrom::Primary;
        let cluster = Arc::new_cyclic(|me| Self {
            options,
            cluster_options,
            source,
            connector,
            runtime: Handle::current(),
            me: Weak::clone(me),
            routes: ArcSwap::from_pointee(Routes::default()),
            state: Mutex::new(state),
            refresh: Arc::new(Notify::new()),
            changed: Notify::new(),
            next: AtomicUsize::new(0),
            turn: AtomicUsize::new(0),
            is_reading: AtomicBool::new(is_reading),
            lag: Arc::default(),
            events: broadcast::channel(EVENTS_MAX).0,
            hubs: Hubs::default(),
            cache,
        });
        tokio::spawn(refresh::keep(Arc::downgrade(&cluster), Arc::clone(&cluster.refresh)));
        if let Source::Sentinel(sentinels) = &cluster.source {
            sentinels.listen(&cluster.me);
        }
        if cluster.cluster_options.lag_max().is_some() {
            tokio::spawn(lag::keep(Arc::downgrade(&cluster), Arc::clone(&cluster.lag)));
        }
        Ok(cluster)
    }

    /// A panic elsewhere leaves the state whole: no foreign code runs under the lock.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything that may change the map, or carries commands because it has changed, one after the other.
    fn change(&self, act: impl FnOnce(&mut Router, &mut Hands<'_>, Instant)) {
        let mut state = self.lock();
        let State { router, nodes, leaving, past, .. } = &mut *state;
        let before = router.poll_timeout();
        let mut hands = Hands::new(self, nodes, leaving, past);
        act(router, &mut hands, clock::now());
        let (wakes, has_changed) = hands.into_parts();
        let has_due = router.poll_timeout() != before;
        drop(state);
        wakes.into_iter().for_each(Waker::wake);
        if has_changed {
            self.changed.notify_waiters();
            self.follow_map();
        }
        if has_due {
            self.refresh.notify_one();
        }
    }

    /// The map should be asked for.
    fn request_refresh(&self, cause: RefreshCause) {
        self.change(|router, _, now| router.request_refresh(now, cause));
    }

    /// What nodes said of the map; nothing if nobody could be asked.
    fn take_views(&self, views: &[View], error: Option<Box<str>>) {
        if error.is_some() {
            self.lock().last_error = error;
        }
        self.change(|router, hands, now| {
            on_views(router, now, views, hands);
            if self.is_reading.load(Ordering::Relaxed) {
                router.look_after_replicas(now);
            }
        });
    }

    /// A node said to somebody who does not go through its bridge that a slot is elsewhere.
    fn note_moved(&self, by: EndpointId, slot: Slot, to: Option<&Address>) {
        self.change(|router, hands, now| {
            let news = router.moved(now, by, slot, to).1;
            towline_client_proto::routing::apply(router, now, &news, hands);
        });
    }

    /// Waits until there is a map.
    ///
    /// # Errors
    /// The client was closed.
    pub(crate) async fn ready(&self) -> Result<(), Error> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Enabled before the look, so that a change in between is not missed.
            changed.as_mut().enable();
            if self.routes.load().has_map() {
                return Ok(());
            }
            if self.lock().is_closed {
                return Err(Error::new(ErrorKind::Closed, Sent::No));
            }
            changed.await;
        }
    }

    /// Why there is no map.
    pub(crate) fn no_map(&self) -> Error {
        let reason = self.lock().last_error.clone();
        let reason = reason.unwrap_or_else(|| self.nobody_answered().into());
        Error::new(ErrorKind::Connect(reason), Sent::No)
    }

    /// Ends all nodes' clients, each when what it has is answered.
    pub(crate) async fn close(&self) {
        let nodes: Vec<Arc<Node>> = {
            let mut state = self.lock();
            state.is_closed = true;
            state.nodes.values().chain(state.leaving.values()).cloned().collect()
        };
        self.changed.notify_waiters();
        self.refresh.notify_one();
        self.hubs.close();
        if let Source::Sentinel(sentinels) = &self.source {
            sentinels.close();
        }
        for node in nodes {
            for client in node.clients() {
                Box::pin(client.close()).await;
            }
        }
        // Nobody listens: nothing is lost that anybody wanted.
        let _ = self.events.send(Event::Closed);
    }

    pub(crate) fn events(&self) -> &broadcast::Sender<Event> {
        &self.events
    }

    /// Who answers reads that say nothing else.
    pub(crate) const fn read_from(&self) -> ReadFrom {
        self.cluster_options.reads()
    }

    /// Those of a single node.
    #[cfg(feature = "redis-compat")]
    pub(crate) const fn options(&self) -> &ConnectOptions {
        &self.options
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// The node that has a slot, or any node if it is about none.
    fn node(&self, slot: Option<Slot>) -> Option<Arc<Node>> {
        let routes = self.routes.load();
        let owner = slot.and_then(|slot| routes.owner(slot));
        owner.or_else(|| self.any(&routes)).cloned()
    }

    /// The next primary in turn that is connected; if none is, the next one.
    fn any<'r>(&self, routes: &'r Routes) -> Option<&'r Arc<Node>> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let count = routes.primary_count();
        let in_turn = (0..count).filter_map(|step| routes.any(turn.wrapping_add(step)));
        let mut connected = in_turn.filter(|node| node.is_connected());
        connected.next().or_else(|| routes.any(turn))
    }

    /// How many connections each node has.
    const fn lanes(&self) -> Lanes {
        self.options.lane_count()
    }

    /// The addresses that were configured, in their order.
    fn seeds(&self) -> impl Iterator<Item = &Target> {
        std::iter::once(self.options.target()).chain(self.cluster_options.further_seeds())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // The task that asks for the map finds nobody to ask for.
        self.refresh.notify_one();
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let routes = self.routes.load();
        f.debug_struct("Cluster").field("primaries", &routes.primaries().len()).finish_non_exhaustive()
    }
}

//! A client of a cluster: one single-endpoint client for each node, and the map between them.
//!
//! Owns the nodes' clients, the published map, and the ways of a command that are more than one endpoint's. Makes no
//! decision about redirects, order or refreshes: those are `towline_client_proto::routing`'s, whose calls are serialised here
//! under one lock. Nothing of it is on the way of a usual command, which looks at the published map, takes its node's lock, and
//! finds there whether its slot is still the node's.
//!
//! Locks are taken in this order: the map's ([`Cluster::change`]), then one node's engine. Wakers are called without any.

mod exchange;
mod follow;
mod join;
mod node;
mod options;
mod pipeline;
mod refresh;
mod report;
mod scan;
mod send;

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;

use arc_swap::ArcSwap;
use tokio::runtime::Handle;
use tokio::sync::{Notify, broadcast};
use towline_client_proto::routing::{EndpointId, RefreshCause, Router, RouterConfig, on_news, on_views};
use towline_client_proto::{Counters, Error, ErrorKind, Event, News, Sent};
use towline_cluster::{Address, Slot, View};
use towline_sansio::Instant;

use crate::clock;
use crate::options::{ConnectOptions, OptionsError};
use crate::transport::{Connector, Target};

use follow::Hubs;
pub(crate) use follow::{Follow, one_slot, several_slots};
use node::{Hands, Node, Routes};
pub use options::ClusterOptions;
pub use report::{ClusterReport, NodeReport};
pub use scan::{ScanAll, ScanAllBuilder};

/// Events kept for a listener that is behind.
const EVENTS_MAX: usize = 1024;

/// Everything that the handles of one cluster's client share.
pub(crate) struct Cluster {
    /// Those of a single node, whose target is the first seed.
    options: ConnectOptions,
    cluster_options: ClusterOptions,
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
    events: broadcast::Sender<Event>,
    hubs: Hubs,
}

struct State {
    router: Router,
    nodes: BTreeMap<EndpointId, Arc<Node>>,
    /// Nodes that are none of the cluster's any more, until what they have is answered.
    leaving: BTreeMap<EndpointId, Arc<Node>>,
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
    /// The node; `None` for a connection of subscriptions.
    pub(crate) node: Option<EndpointId>,
}

impl Attachment {
    /// Tells the cluster what a bridge has to say. Not to be called with any lock.
    pub(crate) fn tell(&self, news: News) {
        let Some(cluster) = self.cluster.upgrade() else { return };
        match self.node {
            Some(node) => cluster.change(|router, hands, now| on_news(router, now, node, news, hands)),
            None if news.trouble.is_some() => cluster.request_refresh(RefreshCause::Urgent),
            None => {}
        }
    }
}

impl Cluster {
    /// Begins to look for the cluster. Must be called within a tokio runtime.
    pub(crate) fn start(
        options: ConnectOptions,
        cluster_options: ClusterOptions,
    ) -> Result<Arc<Self>, OptionsError> {
        let connector = options.connector()?;
        let now = clock::now();
        let mut config = RouterConfig::default();
        config.refresh.interval = cluster_options.refresh_time();
        let state = State {
            router: Router::new(now, config, RandomState::new().hash_one(now)),
            nodes: BTreeMap::new(),
            leaving: BTreeMap::new(),
            past: Counters::default(),
            last_error: None,
            is_closed: false,
        };
        let cluster = Arc::new_cyclic(|me| Self {
            options,
            cluster_options,
            connector,
            runtime: Handle::current(),
            me: Weak::clone(me),
            routes: ArcSwap::from_pointee(Routes::default()),
            state: Mutex::new(state),
            refresh: Arc::new(Notify::new()),
            changed: Notify::new(),
            next: AtomicUsize::new(0),
            events: broadcast::channel(EVENTS_MAX).0,
            hubs: Hubs::default(),
        });
        tokio::spawn(refresh::keep(Arc::downgrade(&cluster), Arc::clone(&cluster.refresh)));
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
        self.change(|router, hands, now| on_views(router, now, views, hands));
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
        let reason = reason.unwrap_or_else(|| "no node of the cluster answered within the time".into());
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
        for node in nodes {
            if let Some(client) = node.client() {
                Box::pin(client.close()).await;
            }
        }
        // Nobody listens: nothing is lost that anybody wanted.
        let _ = self.events.send(Event::Closed);
    }

    pub(crate) fn events(&self) -> &broadcast::Sender<Event> {
        &self.events
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

//! The nodes of a cluster, and the map as commands see it.
//!
//! Owns the making of a node's client, the lending of its bridge to the router, and [`Routes`]. Does not own what the router
//! does with them.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use tokio::sync::broadcast::error::RecvError;
use towline_client_proto::routing::{BridgeId, Bridges, Endpoint, EndpointId, Lag, Router};
use towline_client_proto::{Bridge, Counters, Event, LinkState, Stray, Ticket};
use towline_cluster::sentinel::ONLY_SLOT;
use towline_cluster::{Address, Health, NodeInfo, Role, Slot, SlotMap};
use towline_sansio::Instant;

use super::Cluster;
use super::lag::LastLag;
use crate::client::{Client, start_node};
use crate::engine::Engine;
use crate::options::ConnectOptions;

/// One node, with a client of its own once somebody has used it.
pub(crate) struct Node {
    pub(super) id: EndpointId,
    pub(super) address: Address,
    /// As it was when the node came in.
    role: Role,
    client: OnceLock<Client>,
    /// For reads while it is a replica.
    reader: OnceLock<Client>,
    lag: LastLag,
}

impl Node {
    fn new(endpoint: &Endpoint) -> Self {
        Self {
            id: endpoint.id,
            address: endpoint.address.clone(),
            role: endpoint.info.role,
            client: OnceLock::new(),
            reader: OnceLock::new(),
            lag: LastLag::default(),
        }
    }

    /// The client for reads from it as a replica, if there is one yet.
    pub(super) fn reader(&self) -> Option<&Client> {
        self.reader.get()
    }

    /// The clients that there are.
    pub(super) fn clients(&self) -> impl Iterator<Item = &Client> {
        self.client.get().into_iter().chain(self.reader.get())
    }

    /// How far it is behind its primary, as a replica.
    pub(super) fn lag(&self) -> Lag {
        self.lag.get()
    }

    pub(super) fn set_lag(&self, lag: Lag) {
        self.lag.set(lag);
    }

    /// Its client, if there is one yet.
    pub(super) fn client(&self) -> Option<&Client> {
        self.client.get()
    }

    /// Whether its first lane serves, which commands without keys take.
    pub(super) fn is_connected(&self) -> bool {
        self.client()
            .is_some_and(|client| client.inner.endpoint().lock().bridge.link_state() == LinkState::Up)
    }

    /// Its client; made now if nobody has used the node before.
    pub(super) fn client_in(&self, cluster: &Cluster) -> &Client {
        self.client.get_or_init(|| {
            let options = cluster.node_options(&self.address, self.role == Role::Primary);
            self.start(cluster, self.id, options, cluster.cache.as_ref())
        })
    }

    /// The client for reads from it as a replica; made now if nobody has read from it before. It stays when the node becomes
    /// a primary: it may be a replica again.
    pub(super) fn reader_in(&self, cluster: &Cluster) -> &Client {
        self.reader.get_or_init(|| {
            // Only replicas of a cluster want to be told (`READONLY`).
            let options =
                cluster.node_options(&self.address, false).read_only(!cluster.has_one_primary()).lanes(1);
            // What is cached is read from primaries.
            self.start(cluster, self.id.reader(), options, None)
        })
    }

    fn start(
        &self,
        cluster: &Cluster,
        id: EndpointId,
        options: ConnectOptions,
        cache: Option<&Arc<crate::cache::Shared>>,
    ) -> Client {
        let _context = cluster.runtime.enter();
        let inner = start_node(options, cluster.connector.clone(), &cluster.me, id, cache);
        let client = Client { inner };
        let (mut events, all) = (client.inner.events.subscribe(), cluster.events.clone());
        cluster.runtime.spawn(async move {
            loop {
                let event = match events.recv().await {
                    // The end of one node is not the client's.
                    Ok(Event::Closed) | Err(RecvError::Closed) => return,
                    Ok(event) => event,
                    Err(RecvError::Lagged(count)) => Event::Missed { count },
                };
                // Nobody listens: nothing is lost that anybody wanted.
                let _ = all.send(event);
            }
        });
        client
    }

    /// The engine of commands on a slot, or without one; made now if nobody has used the node before.
    #[inline]
    pub(super) fn engine_of(&self, cluster: &Cluster, slot: Option<Slot>) -> &Arc<Engine> {
        self.client_in(cluster).inner.engine_of(slot)
    }

    /// The engine of its first lane; made now if nobody has used the node before.
    pub(super) fn engine_in(&self, cluster: &Cluster) -> &Arc<Engine> {
        self.client_in(cluster).inner.endpoint()
    }
}

/// The map, as it is published.
#[derive(Default)]
pub(crate) struct Routes {
    slots: SlotMap,
    /// By seat, with what is known of each.
    seats: Vec<Option<(Arc<Node>, NodeInfo)>>,
    /// Seats of those that have slots.
    primaries: Vec<usize>,
    /// By seat of a primary: its replicas.
    replicas: Vec<Vec<Facts>>,
    /// By seat: whether the node is in the client's zone.
    near: Vec<bool>,
    has_map: bool,
}

/// What the map has of a replica.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    seat: usize,
    pub(super) health: Health,
    pub(super) is_near: bool,
}

/// The nodes of one slot.
#[derive(Clone, Copy)]
pub(super) struct Shard<'r> {
    routes: &'r Routes,
    owner: &'r Arc<Node>,
    seat: usize,
}

impl<'r> Shard<'r> {
    pub(super) const fn owner(&self) -> &'r Arc<Node> {
        self.owner
    }

    pub(super) fn is_owner_near(&self) -> bool {
        self.routes.near.get(self.seat).is_some_and(|is_near| *is_near)
    }

    fn replicas(&self) -> &'r [Facts] {
        self.routes.replicas.get(self.seat).map_or(&[], Vec::as_slice)
    }

    /// How many replicas there are, fit or not.
    pub(super) fn count(&self) -> usize {
        self.replicas().len()
    }

    pub(super) fn replica(&self, at: usize) -> Option<(&'r Arc<Node>, Facts)> {
        let facts = *self.replicas().get(at)?;
        Some((self.routes.seat(facts.seat)?, facts))
    }
}

impl Routes {
    fn new(router: &Router, nodes: &BTreeMap<EndpointId, Arc<Node>>, zone: Option<&str>) -> Self {
        let seat = |endpoint: &Option<Endpoint>| {
            let endpoint = endpoint.as_ref()?;
            Some((Arc::clone(nodes.get(&endpoint.id)?), endpoint.info.clone()))
        };
        let mut primaries: Vec<usize> = router.slots().ranges().map(|(_, seat)| seat).collect();
        primaries.sort_unstable();
        primaries.dedup();
        let seats: Vec<Option<(Arc<Node>, NodeInfo)>> = router.seats().iter().map(seat).collect();
        let near: Vec<bool> = seats
            .iter()
            .map(|seat| seat.as_ref().is_some_and(|(_, info)| zone.is_some() && info.zone.as_deref() == zone))
            .collect();
        let mut replicas = vec![Vec::new(); seats.len()];
        for (at, seat) in seats.iter().enumerate() {
            let Some((node, info)) = seat else { continue };
            if info.role != Role::Replica || primaries.contains(&at) {
                // As a replica it would be another one.
                node.set_lag(Lag::Unmeasured);
            } else if let Some(list) = info.primary.and_then(|primary| replicas.get_mut(primary)) {
                list.push(Facts { seat: at, health: info.health, is_near: near[at] });
            }
        }
        Self { slots: router.slots().clone(), seats, primaries, replicas, near, has_map: router.has_map() }
    }

    pub(super) const fn has_map(&self) -> bool {
        self.has_map
    }

    fn seat(&self, seat: usize) -> Option<&Arc<Node>> {
        self.seats.get(seat)?.as_ref().map(|(node, _)| node)
    }

    /// Who has a slot.
    #[inline]
    pub(super) fn owner(&self, slot: Slot) -> Option<&Arc<Node>> {
        self.seat(self.slots.owner(slot)?)
    }

    /// Whether a slot has the node that it had.
    fn has_same_owner(&self, before: &Self, slot: Slot) -> bool {
        self.owner(slot).map(|node| node.id) == before.owner(slot).map(|node| node.id)
    }

    /// The nodes of a slot.
    pub(super) fn shard(&self, slot: Slot) -> Option<Shard<'_>> {
        let seat = self.slots.owner(slot)?;
        Some(Shard { routes: self, owner: self.seat(seat)?, seat })
    }

    /// The primaries that have replicas, with these.
    pub(super) fn read_shards(&self) -> Vec<(Arc<Node>, Vec<Arc<Node>>)> {
        let shard = |seat: &usize| {
            let shard = Shard { routes: self, owner: self.seat(*seat)?, seat: *seat };
            let replicas: Vec<_> = (0..shard.count())
                .filter_map(|at| shard.replica(at))
                .map(|(node, _)| Arc::clone(node))
                .collect();
            (!replicas.is_empty()).then(|| (Arc::clone(shard.owner), replicas))
        };
        self.primaries.iter().filter_map(shard).collect()
    }

    /// Some primary: another one each time `turn` grows.
    pub(super) fn any(&self, turn: usize) -> Option<&Arc<Node>> {
        let count = self.primaries.len();
        self.primaries.get(turn.checked_rem(count)?).and_then(|seat| self.seat(*seat))
    }

    /// How many nodes have slots.
    pub(super) const fn primary_count(&self) -> usize {
        self.primaries.len()
    }

    /// Nodes that have slots.
    pub(super) fn primaries(&self) -> Vec<Arc<Node>> {
        self.primaries.iter().filter_map(|seat| self.seat(*seat)).cloned().collect()
    }

    /// Nodes that have slots, and the usable replicas.
    pub(super) fn all(&self) -> Vec<Arc<Node>> {
        let is_usable = |info: &NodeInfo| info.role == Role::Replica && info.health == Health::Online;
        let replicas = self.seats.iter().flatten().filter(|(_, info)| is_usable(info));
        let mut nodes = self.primaries();
        nodes.extend(replicas.map(|(node, _)| Arc::clone(node)));
        nodes
    }

    /// All nodes with what is known of them, and how many slots each has.
    pub(super) fn described(&self) -> impl Iterator<Item = (&Arc<Node>, &NodeInfo, usize)> {
        let mut counts = vec![0; self.seats.len()];
        for (range, seat) in self.slots.ranges() {
            if let Some(count) = counts.get_mut(seat) {
                *count += range.slots().count();
            }
        }
        let seats = self.seats.iter().zip(counts);
        seats.filter_map(|(seat, count)| seat.as_ref().map(|(node, info)| (node, info, count)))
    }

    /// The slots of one node.
    pub(super) fn slots_of(&self, id: EndpointId) -> impl Iterator<Item = Slot> {
        let seat = self.seats.iter().position(|seat| seat.as_ref().is_some_and(|(node, _)| node.id == id));
        let ranges = self.slots.ranges().filter(move |(_, owner)| Some(*owner) == seat);
        ranges.flat_map(|(range, _)| range.slots())
    }
}

/// Lends bridges to the router, under the map's lock.
pub(super) struct Hands<'a> {
    cluster: &'a Cluster,
    nodes: &'a mut BTreeMap<EndpointId, Arc<Node>>,
    leaving: &'a mut BTreeMap<EndpointId, Arc<Node>>,
    past: &'a mut Counters,
    /// To be called once the lock is gone.
    wakes: Vec<Waker>,
    has_changed: bool,
}

impl<'a> Hands<'a> {
    pub(super) const fn new(
        cluster: &'a Cluster,
        nodes: &'a mut BTreeMap<EndpointId, Arc<Node>>,
        leaving: &'a mut BTreeMap<EndpointId, Arc<Node>>,
        past: &'a mut Counters,
    ) -> Self {
        Self { cluster, nodes, leaving, past, wakes: Vec::new(), has_changed: false }
    }

    pub(super) fn into_parts(self) -> (Vec<Waker>, bool) {
        (self.wakes, self.has_changed)
    }

    fn engine(&self, id: BridgeId) -> Option<Arc<Engine>> {
        let endpoint = id.endpoint.node();
        let node = self.nodes.get(&endpoint).or_else(|| self.leaving.get(&endpoint))?;
        if id.endpoint.is_reader() {
            return Some(self.cluster.reader_of(node));
        }
        Some(Arc::clone(node.client_in(self.cluster).inner.lane(id.lane)))
    }

    fn lent<T>(&mut self, engine: &Engine, act: impl FnOnce(&mut crate::engine::State) -> T) -> T {
        let mut state = engine.lock();
        let done = act(&mut state);
        // Whatever was done may have left something to write.
        self.wakes.extend(state.owner.take());
        state.bridge.take_wakes(&mut self.wakes);
        done
    }
}

impl Bridges<Waker> for Hands<'_> {
    fn open(&mut self, endpoint: &Endpoint) {
        let node = Arc::new(Node::new(endpoint));
        if endpoint.info.role == Role::Primary {
            node.client_in(self.cluster);
        }
        self.nodes.insert(endpoint.id, node);
    }

    fn is_open(&self, id: EndpointId) -> bool {
        let node = self.nodes.get(&id.node());
        node.is_some_and(|node| if id.is_reader() { node.reader() } else { node.client() }.is_some())
    }

    fn with<T>(&mut self, id: BridgeId, act: impl FnOnce(&mut Bridge<Waker>) -> T) -> Option<T> {
        let engine = self.engine(id)?;
        Some(self.lent(&engine, |state| act(&mut state.bridge)))
    }

    fn forward(&mut self, now: Instant, from: (BridgeId, Ticket), to: (BridgeId, Ticket)) {
        let (Some(source), Some(target)) = (self.engine(from.0), self.engine(to.0)) else { return };
        let is_wanted = self.lent(&source, |state| {
            state.forwards.insert(from.1, (Arc::clone(&target), to.1));
            let is_wanted = state.bridge.forwarded(now, from.1);
            if !state.bridge.is_forwarded(from.1) {
                state.forwards.remove(&from.1);
            }
            is_wanted
        });
        if !is_wanted {
            self.lent(&target, |state| state.bridge.abandon(to.1));
        }
    }

    fn retired(&mut self, id: EndpointId) {
        let past = &mut *self.past;
        self.leaving.retain(|_, node| {
            let is_over = node.clients().all(|client| client.inner.is_ended());
            if is_over {
                node.clients().for_each(|it| past.add(&it.inner.counters()));
            }
            !is_over
        });
        if let Some(node) = self.nodes.remove(&id) {
            if let Some(pool) = node.client().and_then(Client::pool) {
                pool.leave(&mut self.wakes);
            }
            self.leaving.insert(id, node);
        }
    }

    fn read_again(&mut self, _router: &Router, from: EndpointId, stray: &Stray) -> Option<EndpointId> {
        self.cluster.way_of_stray(&self.cluster.routes.load(), from, stray)
    }

    fn publish(&mut self, router: &Router) {
        self.has_changed = true;
        let zone = self.cluster.cluster_options.own_zone();
        let before = self.cluster.routes.swap(Arc::new(Routes::new(router, self.nodes, zone)));
        if let Some(cache) = &self.cluster.cache {
            let after = self.cluster.routes.load();
            let is_one_slot = self.cluster.has_one_primary();
            // Changes are announced by the node that was read from, if at all.
            cache.slots_moved(|slot| {
                let slot = if is_one_slot { ONLY_SLOT } else { slot };
                !after.has_same_owner(&before, slot)
            });
        }
    }
}

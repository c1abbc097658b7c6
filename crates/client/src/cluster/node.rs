//! The nodes of a cluster, and the map as commands see it.
//!
//! Owns the making of a node's client, the lending of its bridge to the router, and [`Routes`]. Does not own what the router
//! does with them.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use tokio::sync::broadcast::error::RecvError;
use towline_client_proto::routing::{Bridges, Endpoint, EndpointId, Router};
use towline_client_proto::{Bridge, Counters, Event, LinkState, Ticket};
use towline_cluster::{Address, NodeInfo, Role, Slot, SlotMap};
use towline_sansio::Instant;

use super::{Attachment, Cluster};
use crate::client::{Client, start_node};
use crate::engine::Engine;
use crate::transport::Target;

/// One node, with a client of its own once somebody has used it.
pub(crate) struct Node {
    pub(super) id: EndpointId,
    pub(super) address: Address,
    client: OnceLock<Client>,
}

impl Node {
    fn new(endpoint: &Endpoint) -> Self {
        Self { id: endpoint.id, address: endpoint.address.clone(), client: OnceLock::new() }
    }

    /// Its client, if there is one yet.
    pub(super) fn client(&self) -> Option<&Client> {
        self.client.get()
    }

    /// Whether its connection serves.
    pub(super) fn is_connected(&self) -> bool {
        self.client()
            .is_some_and(|client| client.inner.endpoint().lock().bridge.link_state() == LinkState::Up)
    }

    /// Its client; made now if nobody has used the node before.
    pub(super) fn client_in(&self, cluster: &Cluster) -> &Client {
        self.client.get_or_init(|| {
            let _context = cluster.runtime.enter();
            let target = Target::tcp(&*self.address.host, self.address.port);
            let attachment = Attachment { cluster: cluster.me.clone(), node: Some(self.id) };
            let options = cluster.options.clone().with_target(target);
            let client = Client { inner: start_node(options, cluster.connector.clone(), attachment) };
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
        })
    }

    /// Its engine; made now if nobody has used the node before.
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
    has_map: bool,
}

impl Routes {
    fn new(router: &Router, nodes: &BTreeMap<EndpointId, Arc<Node>>) -> Self {
        let seat = |endpoint: &Option<Endpoint>| {
            let endpoint = endpoint.as_ref()?;
            Some((Arc::clone(nodes.get(&endpoint.id)?), endpoint.info.clone()))
        };
        let mut primaries: Vec<usize> = router.slots().ranges().map(|(_, seat)| seat).collect();
        primaries.sort_unstable();
        primaries.dedup();
        Self {
            slots: router.slots().clone(),
            seats: router.seats().iter().map(seat).collect(),
            primaries,
            has_map: router.has_map(),
        }
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
        let is_usable =
            |info: &NodeInfo| info.role == Role::Replica && info.health == towline_cluster::Health::Online;
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

    fn engine(&self, id: EndpointId) -> Option<Arc<Engine>> {
        let node = self.nodes.get(&id).or_else(|| self.leaving.get(&id))?;
        Some(Arc::clone(node.engine_in(self.cluster)))
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
        self.nodes.get(&id).is_some_and(|node| node.client().is_some())
    }

    fn with<T>(&mut self, id: EndpointId, act: impl FnOnce(&mut Bridge<Waker>) -> T) -> Option<T> {
        let engine = self.engine(id)?;
        Some(self.lent(&engine, |state| act(&mut state.bridge)))
    }

    fn forward(&mut self, now: Instant, from: (EndpointId, Ticket), to: (EndpointId, Ticket)) {
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
            let Some(client) = node.client() else { return false };
            let state = client.inner.endpoint().lock();
            if state.is_ended {
                past.add(&state.bridge.counters());
            }
            !state.is_ended
        });
        if let Some(node) = self.nodes.remove(&id) {
            self.leaving.insert(id, node);
        }
    }

    fn publish(&mut self, router: &Router) {
        self.has_changed = true;
        self.cluster.routes.store(Arc::new(Routes::new(router, self.nodes)));
    }
}

//! Where the connections of subscriptions lead.
//!
//! Owns the choice of a node for classic subscriptions, which any node serves, and for each slot with shard channels; and the
//! moves of these connections when the map changes. Does not own the subscriptions ([`crate::pubsub`]).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use towline_client_proto::handoff::Target as Whither;
use towline_client_proto::{Error, LostCause};
use towline_cluster::{Address, Slot, key_slot};

use super::{Attachment, Cluster};
use crate::clock;
use crate::engine::wake_owner;
use crate::pubsub::Hub;

/// The connections of a client's subscriptions.
#[derive(Default)]
pub(super) struct Hubs(Mutex<Map>);

#[derive(Default)]
struct Map {
    /// By slot; `None` for classic channels and patterns.
    hubs: BTreeMap<Option<Slot>, Arc<Hub>>,
    is_closed: bool,
}

impl Hubs {
    fn lock(&self) -> MutexGuard<'_, Map> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn close(&self) {
        let mut map = self.lock();
        map.is_closed = true;
        let hubs: Vec<_> = map.hubs.values().cloned().collect();
        drop(map);
        hubs.iter().for_each(|hub| hub.close());
    }
}

/// The way of one such connection.
#[derive(Clone)]
pub(crate) struct Follow {
    pub(crate) attachment: Attachment,
    slot: Option<Slot>,
    way: Arc<Mutex<Way>>,
}

#[derive(Default)]
struct Way {
    /// Where the last dial led.
    at: Option<Address>,
    /// It came to nothing.
    has_failed: bool,
    turn: usize,
}

impl Follow {
    fn lock(&self) -> MutexGuard<'_, Way> {
        self.way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where to dial now.
    pub(crate) fn course(&self) -> Whither {
        let Some(cluster) = self.attachment.cluster.upgrade() else { return Whither::Configured };
        let routes = cluster.routes.load();
        let mut way = self.lock();
        let node = match self.slot {
            Some(slot) => routes.owner(slot),
            None => {
                let stays = routes.primaries().into_iter().any(|node| Some(&node.address) == way.at.as_ref());
                if way.at.is_none() {
                    way.turn = clock::now().nanos() as usize;
                }
                if way.has_failed || !stays {
                    way.turn = way.turn.wrapping_add(1);
                }
                routes.any(way.turn)
            }
        };
        way.has_failed = false;
        way.at = node.map(|node| node.address.clone());
        way.at.as_ref().map_or(Whither::Configured, |at| Whither::Named(cluster.options.reached(at)))
    }

    /// A dial came to nothing.
    pub(crate) fn failed(&self) {
        self.lock().has_failed = true;
    }

    /// Whether the connection leads to where it should not, as the map is now.
    fn is_astray(&self, cluster: &Cluster) -> bool {
        let routes = cluster.routes.load();
        let way = self.lock();
        let Some(at) = &way.at else { return routes.has_map() };
        match self.slot {
            Some(slot) => routes.owner(slot).is_some_and(|node| node.address != *at),
            None => !routes.primaries().iter().any(|node| node.address == *at),
        }
    }
}

impl Cluster {
    /// The connection of subscriptions to the channels of a slot, or to classic ones.
    pub(crate) fn hub(&self, slot: Option<Slot>) -> Arc<Hub> {
        let mut map = self.hubs.lock();
        let is_closed = map.is_closed;
        let hub = map.hubs.entry(slot).or_insert_with(|| {
            let attachment = Attachment { cluster: Weak::clone(&self.me), bridge: None };
            let follow = Follow { attachment, slot, way: Arc::default() };
            Arc::new(Hub::following(self.options.clone(), self.connector.clone(), follow))
        });
        let hub = Arc::clone(hub);
        drop(map);
        if is_closed {
            hub.close();
        }
        hub
    }

    /// Ends connections of subscriptions that lead to where they should not: their next ones lead to the right node.
    pub(super) fn follow_map(&self) {
        let hubs: Vec<_> = self.hubs.lock().hubs.values().cloned().collect();
        for hub in hubs {
            let Some((engine, follow)) = hub.engine_and_way() else { continue };
            if follow.is_astray(self) {
                let mut state = engine.lock();
                let generation = state.bridge.generation();
                state.bridge.lost(clock::now(), generation, LostCause::Planned);
                wake_owner(state);
            }
        }
    }
}

/// The slot of shard channels.
pub(crate) fn one_slot<N: AsRef<[u8]>>(names: &[N]) -> Result<Option<Slot>, Error> {
    let mut slots = names.iter().map(|name| key_slot(name.as_ref()));
    let first = slots.next();
    if slots.all(|slot| Some(slot) == first) { Ok(first) } else { Err(several_slots()) }
}

pub(crate) fn several_slots() -> Error {
    Error::misuse(
        "the shard channels of one subscription must be in one slot of the cluster: make several subscriptions",
    )
}

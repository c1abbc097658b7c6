//! The map of a cluster and how it changes.
//!
//! Owns the endpoints of a client, which of them has which slot, and what has to happen at the bridges when that changes.
//! Does not own the bridges, nor whom to ask for a map.
//!
//! # What is believed
//!
//! * A redirect of a slot's owner, as the map has it, changes the map for that slot. One of any other node is only followed:
//!   it may be older than the map.
//! * What a redirect has changed is not changed back for [`PATCH_TRUST`] by views, because nodes learn of a move one
//!   after the other.
//! * A slot that nobody has keeps its last owner: somebody has to be asked until there is a new one.

use std::collections::BTreeMap;
use std::time::Duration;

use towline_cluster::{Address, Health, NodeInfo, Role, Slot, SlotMap, SlotRange, Topology, View, agree};
use towline_sansio::{Instant, Prng};

use super::lanes::Lanes;
use super::refresh::{Refresh, RefreshConfig};
use crate::maintenance::SlotsMoved;

/// So long a redirect is believed more than a view. Gossip needs a second or two to reach everybody.
pub const PATCH_TRUST: Duration = Duration::from_secs(3);

/// The map is asked for again after this time while it has replicas that load or were given up, and somebody reads from
/// replicas: one that comes back serves again within seconds, and one that never does costs little.
pub const UNFIT_TIME: Duration = Duration::from_secs(5);

/// After a change the map is asked for again after each of these times in turn: nodes learn of it one after the other, and that
/// a node has changed sides is known last.
const SETTLE_TIMES: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(5)];

/// Most endpoints that redirects may bring in beside those of views. A cluster whose nodes all change addresses at once is
/// found again by its views.
const UNSEEN_MAX: usize = 1024;

/// An endpoint's number, which no other endpoint of the client ever has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointId(u64);

/// Set in the number of the connection that a node has for reads as a replica.
const READER: u64 = 1 << 63;

impl EndpointId {
    /// The connection for reads of this node while it is a replica, which has a bridge of its own
    /// ([`crate::Bridge::with_reads`]): what is said on it (`READONLY`) must not hold for commands to a primary.
    #[must_use]
    pub const fn reader(self) -> Self {
        Self(self.0 | READER)
    }

    /// Whether it is a connection for reads.
    pub const fn is_reader(self) -> bool {
        self.0 & READER != 0
    }

    /// The node itself.
    #[must_use]
    pub const fn node(self) -> Self {
        Self(self.0 & !READER)
    }
}

/// One node that the client may talk to.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Its number.
    pub id: EndpointId,
    /// Where it is dialled.
    pub address: Address,
    /// What is known of it. Little, if only a redirect has named it so far.
    pub info: NodeInfo,
    /// When it came in.
    since: Instant,
    /// A view has named it.
    is_seen: bool,
}

/// What a [`Router`] can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RouterConfig {
    /// When the map is asked for.
    pub refresh: RefreshConfig,
    /// Whether a node whose role changes is another endpoint. Default: no, a cluster's nodes keep their connections and say
    /// themselves what they serve. Yes where nothing but the role says so: the connections to a primary that has become a
    /// replica end, as far as the client is concerned.
    pub is_role_identity: bool,
    /// How many connections each endpoint has.
    pub lanes: Lanes,
}

/// What a change of the map means for the bridges. To be done in the order of the fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// Endpoints that are new.
    pub added: Vec<EndpointId>,
    /// Slots that go from one endpoint to another; `None`: nobody had them.
    pub moved: Vec<(Option<EndpointId>, EndpointId, Vec<Slot>)>,
    /// Endpoints that are none any more.
    pub removed: Vec<EndpointId>,
    /// Something is known of an endpoint that was not known before.
    pub has_news: bool,
}

impl Change {
    /// Whether nothing has changed.
    pub const fn is_empty(&self) -> bool {
        self.added.is_empty() && self.moved.is_empty() && self.removed.is_empty() && !self.has_news
    }
}

/// The map.
#[derive(Debug)]
pub struct Router {
    /// By seat; the slot map knows seats.
    seats: Vec<Option<Endpoint>>,
    slots: SlotMap,
    next_id: u64,
    /// Slots that redirects have moved, and when.
    patched: BTreeMap<Slot, Instant>,
    refresh: Refresh,
    is_role_identity: bool,
    lanes: Lanes,
    prng: Prng,
    has_map: bool,
    /// How often it was asked for again since the last change.
    looks: usize,
}

impl Router {
    /// A router without a map. The first refresh is due at once.
    pub fn new(now: Instant, config: RouterConfig, seed: u64) -> Self {
        let mut router = Self {
            seats: Vec::new(),
            slots: SlotMap::new(),
            next_id: 0,
            patched: BTreeMap::new(),
            refresh: Refresh::new(now, config.refresh),
            is_role_identity: config.is_role_identity,
            lanes: config.lanes,
            prng: Prng::new(seed),
            has_map: false,
            looks: 0,
        };
        router.request_refresh(now, super::RefreshCause::Urgent);
        router
    }

    /// Whether a view was ever taken.
    pub const fn has_map(&self) -> bool {
        self.has_map
    }

    /// How many connections each endpoint has.
    pub const fn lanes(&self) -> Lanes {
        self.lanes
    }

    /// The owner of each slot, by seat.
    pub const fn slots(&self) -> &SlotMap {
        &self.slots
    }

    /// The endpoints by seat.
    pub fn seats(&self) -> &[Option<Endpoint>] {
        &self.seats
    }

    /// The endpoints.
    pub fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.seats.iter().flatten()
    }

    /// One endpoint, if it still is one.
    pub fn endpoint(&self, id: EndpointId) -> Option<&Endpoint> {
        self.endpoints().find(|endpoint| endpoint.id == id)
    }

    /// Who has a slot.
    pub fn owner(&self, slot: Slot) -> Option<&Endpoint> {
        self.seats.get(self.slots.owner(slot)?)?.as_ref()
    }

    /// Something may have changed: the map should be asked for.
    pub fn request_refresh(&mut self, now: Instant, cause: super::RefreshCause) {
        self.refresh.request(now, cause, &mut self.prng);
    }

    /// Asks for the map again after [`UNFIT_TIME`] if it has replicas that are not fit for reads: for a client that reads from
    /// replicas. To be called after [`Router::refreshed`].
    pub fn look_after_replicas(&mut self, now: Instant) {
        let is_unfit = |endpoint: &Endpoint| {
            endpoint.info.role == Role::Replica && endpoint.info.health != Health::Online
        };
        if self.endpoints().any(is_unfit) {
            self.refresh.no_later_than(now + UNFIT_TIME);
        }
    }

    /// When the next refresh is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.refresh.poll_timeout()
    }

    /// Whether to ask for the map now. Followed by [`Router::refreshed`].
    pub fn poll_refresh(&mut self, now: Instant) -> bool {
        self.refresh.poll_begin(now)
    }

    /// How many refreshes were begun.
    pub const fn refreshes(&self) -> u64 {
        self.refresh.begun()
    }

    /// A refresh has ended with these views; none if nobody had one.
    pub fn refreshed(&mut self, now: Instant, views: &[View]) -> Change {
        self.refresh.finished(now, !views.is_empty(), &mut self.prng);
        let change = agree(views).map_or_else(Change::default, |topology| self.told(now, &topology));
        if !change.is_empty() {
            self.looks = 0;
        }
        if let Some(after) = SETTLE_TIMES.get(self.looks) {
            self.looks += 1;
            self.refresh.no_later_than(now + *after);
        }
        change
    }

    /// Somebody who knows has said this without being asked.
    pub fn told(&mut self, now: Instant, topology: &Topology) -> Change {
        self.has_map = true;
        self.take(now, topology)
    }

    fn take(&mut self, now: Instant, topology: &Topology) -> Change {
        let mut change = Change::default();
        let seats: Vec<Option<usize>> =
            topology.nodes.iter().map(|node| self.seat_of(now, node, &mut change)).collect();
        self.patched.retain(|_, at| now.since(*at) < PATCH_TRUST);
        let mut moves = Vec::new();
        for (range, node) in topology.slots.ranges() {
            let Some(seat) = seats.get(node).copied().flatten() else { continue };
            moves.extend(
                range.slots().filter(|slot| !self.patched.contains_key(slot)).map(|slot| (slot, seat)),
            );
        }
        self.move_slots(moves.into_iter(), &mut change);
        let known: Vec<usize> = seats.iter().copied().flatten().collect();
        for (at, node) in topology.nodes.iter().enumerate() {
            let Some(seat) = seats[at] else { continue };
            let mut info = node.clone();
            info.primary = node.primary.and_then(|primary| seats.get(primary).copied().flatten());
            if let Some(endpoint) = &mut self.seats[seat] {
                change.has_news |= endpoint.info != info;
                endpoint.info = info;
                endpoint.is_seen = true;
            }
        }
        self.forget(now, &known, &mut change);
        change
    }

    /// The seat of a node that a view names; `None` if nobody knows where it is.
    fn seat_of(&mut self, now: Instant, node: &NodeInfo, change: &mut Change) -> Option<usize> {
        let address = node.address.as_ref()?;
        let fits = |endpoint: &Endpoint| !self.is_role_identity || endpoint.info.role == node.role;
        let named = |endpoint: &Endpoint| endpoint.address == *address && fits(endpoint);
        // Whoever is dialled at another name of the same node stays: its connection is as good.
        let same = |endpoint: &Endpoint| {
            let is_it = endpoint.info.id.is_none() || endpoint.info.id == node.id;
            node.is_at(&endpoint.address) && is_it && fits(endpoint)
        };
        let find = |is_it: &dyn Fn(&Endpoint) -> bool| {
            self.seats.iter().position(|seat| seat.as_ref().is_some_and(is_it))
        };
        if let Some(seat) = find(&named).or_else(|| find(&same)) {
            return Some(seat);
        }
        Some(self.seat(now, address.clone(), node.clone(), change))
    }

    fn seat(&mut self, now: Instant, address: Address, info: NodeInfo, change: &mut Change) -> usize {
        let id = EndpointId(self.next_id);
        self.next_id += 1;
        change.added.push(id);
        let endpoint = Endpoint { id, address, info, since: now, is_seen: false };
        // A seat that was left keeps its number for as long as slots of it could be meant: until the next one needs it.
        match self.seats.iter().position(Option::is_none) {
            Some(free) => {
                self.seats[free] = Some(endpoint);
                free
            }
            None => {
                self.seats.push(Some(endpoint));
                self.seats.len() - 1
            }
        }
    }

    fn move_slots(&mut self, moves: impl Iterator<Item = (Slot, usize)>, change: &mut Change) {
        let mut moved: BTreeMap<(Option<usize>, usize), Vec<Slot>> = BTreeMap::new();
        for (slot, seat) in moves {
            let from = self.slots.owner(slot);
            if from != Some(seat) {
                self.slots.set(slot, Some(seat));
                moved.entry((from, seat)).or_default().push(slot);
            }
        }
        let id = |seat: usize| self.seats.get(seat).and_then(Option::as_ref).map(|endpoint| endpoint.id);
        for ((from, to), slots) in moved {
            if let Some(to) = id(to) {
                change.moved.push((from.and_then(id), to, slots));
            }
        }
    }

    /// Drops endpoints that no view names, unless they have slots or are too new for that.
    fn forget(&mut self, now: Instant, known: &[usize], change: &mut Change) {
        let mut has_slots = vec![false; self.seats.len()];
        self.slots.ranges().for_each(|(_, seat)| {
            if let Some(has) = has_slots.get_mut(seat) {
                *has = true;
            }
        });
        for (seat, place) in self.seats.iter_mut().enumerate() {
            let Some(endpoint) = place else { continue };
            let is_new = !endpoint.is_seen && now.since(endpoint.since) < PATCH_TRUST;
            if !known.contains(&seat) && !has_slots[seat] && !is_new {
                change.removed.push(endpoint.id);
                *place = None;
            }
        }
    }

    /// The endpoint at an address that a redirect names. `None`: there are too many such already.
    pub fn endpoint_at(
        &mut self,
        now: Instant,
        address: &Address,
        change: &mut Change,
    ) -> Option<EndpointId> {
        let seat = self.seat_at(now, address, change)?;
        self.seats[seat].as_ref().map(|endpoint| endpoint.id)
    }

    fn seat_at(&mut self, now: Instant, address: &Address, change: &mut Change) -> Option<usize> {
        let find = |is_it: &dyn Fn(&Endpoint) -> bool| {
            self.seats.iter().position(|seat| seat.as_ref().is_some_and(is_it))
        };
        let known = find(&|endpoint| endpoint.address == *address)
            .or_else(|| find(&|endpoint| endpoint.info.aliases.contains(address)));
        if known.is_some() {
            return known;
        }
        let unseen = self.endpoints().filter(|endpoint| !endpoint.is_seen).count();
        if unseen >= UNSEEN_MAX {
            return None;
        }
        let info = NodeInfo { address: Some(address.clone()), ..NodeInfo::default() };
        Some(self.seat(now, address.clone(), info, change))
    }

    /// `MOVED`, said by endpoint `by` about `slot`: where the command that was refused goes now.
    pub fn moved(
        &mut self,
        now: Instant,
        by: EndpointId,
        slot: Slot,
        to: Option<&Address>,
    ) -> (Option<EndpointId>, Change) {
        let mut change = Change::default();
        self.request_refresh(now, super::RefreshCause::Redirected);
        let is_owner = self.owner(slot).is_none_or(|owner| owner.id == by);
        if let Some(to) = to.filter(|_| is_owner)
            && let Some(seat) = self.seat_at(now, to, &mut change)
        {
            self.patched.insert(slot, now);
            self.move_slots(std::iter::once((slot, seat)), &mut change);
        }
        (self.owner(slot).map(|owner| owner.id), change)
    }

    /// Replica `heir` has taken the place of `lost`, as it says itself: it has all slots now that the map gives to `lost`. What
    /// the next views say is behind that, as it is behind a redirect.
    pub fn succeeded(&mut self, now: Instant, lost: EndpointId, heir: EndpointId) -> Change {
        let mut change = Change::default();
        let seat =
            |id: EndpointId| self.seats.iter().position(|seat| seat.as_ref().is_some_and(|it| it.id == id));
        let (Some(from), Some(to)) = (seat(lost), seat(heir)) else { return change };
        if let Some(endpoint) = &mut self.seats[to] {
            endpoint.info.role = Role::Primary;
            endpoint.info.primary = None;
        }
        let ranges = self.slots.ranges().filter(|(_, owner)| *owner == from);
        let slots: Vec<Slot> = ranges.flat_map(|(range, _)| range.slots()).collect();
        self.patched.extend(slots.iter().map(|slot| (*slot, now)));
        self.move_slots(slots.into_iter().map(|slot| (slot, to)), &mut change);
        change.has_news = true;
        self.request_refresh(now, super::RefreshCause::Redirected);
        change
    }

    /// The usable replicas of an endpoint that has slots; nothing if it has none.
    pub fn heirs_of(&self, id: EndpointId) -> Vec<EndpointId> {
        let Some(seat) = self.seats.iter().position(|seat| seat.as_ref().is_some_and(|it| it.id == id))
        else {
            return Vec::new();
        };
        if !self.slots.ranges().any(|(_, owner)| owner == seat) {
            return Vec::new();
        }
        let follows = |endpoint: &&Endpoint| {
            endpoint.info.role == Role::Replica
                && endpoint.info.health != Health::Failed
                && endpoint.info.primary == Some(seat)
        };
        self.endpoints().filter(follows).map(|endpoint| endpoint.id).collect()
    }

    /// An announcement that slots have moved.
    pub fn slots_moved(&mut self, now: Instant, moved: &SlotsMoved) -> Change {
        let mut change = Change::default();
        self.request_refresh(now, super::RefreshCause::Redirected);
        for step in &moved.moves {
            let Some(seat) = self.seat_at(now, &step.destination, &mut change) else { continue };
            let slots: Vec<Slot> = step.slots.iter().copied().flat_map(SlotRange::slots).collect();
            for slot in &slots {
                self.patched.insert(*slot, now);
            }
            self.move_slots(slots.into_iter().map(|slot| (slot, seat)), &mut change);
        }
        change
    }

    /// Endpoints that have slots, each once.
    pub fn primaries(&self) -> Vec<EndpointId> {
        let mut seats: Vec<usize> = self.slots.ranges().map(|(_, seat)| seat).collect();
        seats.sort_unstable();
        seats.dedup();
        seats.into_iter().filter_map(|seat| self.seats.get(seat)?.as_ref().map(|it| it.id)).collect()
    }

    /// Replicas that can be used.
    pub fn replicas(&self) -> Vec<EndpointId> {
        let is_usable = |endpoint: &&Endpoint| {
            endpoint.info.role == Role::Replica && endpoint.info.health == Health::Online
        };
        self.endpoints().filter(is_usable).map(|endpoint| endpoint.id).collect()
    }
}

#[cfg(test)]
mod tests;

//! Commands are carried from bridge to bridge.
//!
//! Owns the order of the steps when the map changes and when a bridge has news. Does not own the bridges: whoever does
//! lends them, one at a time ([`Bridges`]), so that no two of their locks are ever held at once.
//!
//! All calls for one client must be made one after the other (under one lock): what two of them did at once would have no
//! order. A map is published after the bridges have changed: whoever looks at the old one finds its slot closed there, and
//! looks again.
//!
//! A slot is at the same lane of every endpoint ([`super::lanes`]), so commands go from a lane to the lane of the same number,
//! and what two lanes of an endpoint do has no order that anybody could disturb.

use towline_cluster::{RedirectKind, Slot, Topology, View};
use towline_sansio::Instant;

use super::lanes::{BridgeId, Lane, Lanes};
use super::router::{Change, EndpointId, Router};
use super::{Endpoint, RefreshCause};
use crate::bridge::{Adopt, Bridge, MapTrouble, News, Stray, StrayReason};
use crate::error::{Error, ErrorKind};
use crate::slab::Ticket;

/// The bridges of a client.
pub trait Bridges<W> {
    /// Makes the bridges of a new endpoint, one for each lane.
    fn open(&mut self, endpoint: &Endpoint);

    /// Whether an endpoint has bridges already: one that nobody has used may have none.
    fn is_open(&self, id: EndpointId) -> bool;

    /// Lends a bridge, also one that was retired and has not ended. `None` if there is none.
    fn with<T>(&mut self, id: BridgeId, act: impl FnOnce(&mut Bridge<W>) -> T) -> Option<T>;

    /// What was `origin` at bridge `from` is `ticket` at bridge `to` from now on: to be noted for the caller, and said by
    /// [`Bridge::forwarded`]. If that says that nobody wants it any more, `ticket` is to be abandoned.
    fn forward(&mut self, now: Instant, from: (BridgeId, Ticket), to: (BridgeId, Ticket));

    /// The bridges of an endpoint were retired: they end by themselves.
    fn retired(&mut self, id: EndpointId);

    /// Where a read goes that reader `from` did not answer ([`super::choose_again`]): to a reader, or an endpoint. `None`:
    /// nobody may answer it.
    fn read_again(&mut self, router: &Router, from: EndpointId, stray: &Stray) -> Option<EndpointId>;

    /// The map has changed.
    fn publish(&mut self, router: &Router);
}

/// Takes what the nodes say about their cluster.
pub fn on_views<W>(router: &mut Router, now: Instant, views: &[View], bridges: &mut impl Bridges<W>) {
    let change = router.refreshed(now, views);
    apply(router, now, &change, bridges);
}

/// Takes what somebody who knows has said without being asked.
pub fn on_told<W>(router: &mut Router, now: Instant, topology: &Topology, bridges: &mut impl Bridges<W>) {
    let change = router.told(now, topology);
    apply(router, now, &change, bridges);
}

/// Takes what bridge `from` has to say.
pub fn on_news<W>(
    router: &mut Router,
    now: Instant,
    from: BridgeId,
    news: News,
    bridges: &mut impl Bridges<W>,
) {
    match news.trouble {
        Some(MapTrouble::Refused | MapTrouble::Down) => router.request_refresh(now, RefreshCause::Urgent),
        Some(MapTrouble::Redirected) => router.request_refresh(now, RefreshCause::Redirected),
        None => {}
    }
    for moved in &news.moves {
        let change = router.slots_moved(now, moved);
        apply(router, now, &change, bridges);
    }
    for stray in news.strays {
        carry(router, now, from, &stray, bridges);
    }
    pass(router, now, &news.passed, bridges);
}

fn pass<W>(router: &Router, now: Instant, slots: &[Slot], bridges: &mut impl Bridges<W>) {
    for slot in slots {
        if let Some(owner) = router.owner(*slot) {
            let id = BridgeId { endpoint: owner.id, lane: router.lanes().of(Some(*slot)) };
            bridges.with(id, |bridge| bridge.unfence(now, *slot));
        }
    }
}

/// Does what a change of the map means.
pub fn apply<W>(router: &mut Router, now: Instant, change: &Change, bridges: &mut impl Bridges<W>) {
    if change.is_empty() {
        return;
    }
    for id in &change.added {
        if let Some(endpoint) = router.endpoint(*id) {
            bridges.open(endpoint);
        }
    }
    let mut given_up: Vec<(BridgeId, News)> = Vec::new();
    for (from, to, slots) in &change.moved {
        for (lane, slots) in by_lane(router.lanes(), slots) {
            let from = from.map(|endpoint| BridgeId { endpoint, lane });
            let mut awaits: Vec<(Slot, u32)> = slots.iter().map(|slot| (*slot, 0)).collect();
            let mut last_number = 0;
            if let Some(from) = from {
                let mut at = awaits.iter_mut();
                let closed = bridges.with(from, |bridge| {
                    last_number = bridge.last_number();
                    bridge.close_slots(now, &slots, |_, fences| {
                        if let Some((_, awaits)) = at.next() {
                            *awaits = fences;
                        }
                    })
                });
                given_up.extend(closed.map(|news| (from, news)));
            }
            let to = BridgeId { endpoint: *to, lane };
            bridges.with(to, |bridge| {
                awaits.iter().for_each(|(slot, fences)| bridge.open_slot(*slot, *fences, last_number));
            });
        }
    }
    let gone = change.removed.iter().flat_map(|id| [*id, id.reader()]);
    let open: Vec<EndpointId> = gone.filter(|id| bridges.is_open(*id)).collect();
    for endpoint in open {
        for lane in lanes_of(router, endpoint).all() {
            let id = BridgeId { endpoint, lane };
            given_up.extend(bridges.with(id, |bridge| bridge.retire(now)).map(|news| (id, news)));
        }
    }
    // Nothing of it changes the map again: it was not sent.
    for (from, news) in given_up {
        news.strays.iter().for_each(|stray| hand_over(router, now, from, stray, None, bridges));
        pass(router, now, &news.passed, bridges);
    }
    change.removed.iter().for_each(|id| bridges.retired(*id));
    bridges.publish(router);
}

/// How many connections an endpoint has: one, if it is for reads from a replica.
const fn lanes_of(router: &Router, endpoint: EndpointId) -> Lanes {
    if endpoint.is_reader() { Lanes::ONE } else { router.lanes() }
}

/// The slots of each lane, in their order; lanes without any are left out.
fn by_lane(lanes: Lanes, slots: &[Slot]) -> Vec<(Lane, Vec<Slot>)> {
    let of = |lane| slots.iter().copied().filter(|slot| lanes.of(Some(*slot)) == lane).collect();
    let all = lanes.all().map(|lane| (lane, of(lane)));
    all.filter(|(_, slots): &(Lane, Vec<Slot>)| !slots.is_empty()).collect()
}

/// Brings a stray to whom it belongs.
fn carry<W>(router: &mut Router, now: Instant, from: BridgeId, stray: &Stray, bridges: &mut impl Bridges<W>) {
    let StrayReason::Redirected(redirect, _) = &stray.reason else {
        return hand_over(router, now, from, stray, None, bridges);
    };
    let asked = router.endpoint(from.endpoint).map(|endpoint| endpoint.address.clone());
    let address = asked.and_then(|asked| redirect.address(&asked));
    match redirect.kind {
        RedirectKind::Moved => {
            let slot = stray.slot.unwrap_or(redirect.slot);
            let (_, change) = router.moved(now, from.endpoint, slot, address.as_ref());
            apply(router, now, &change, bridges);
            hand_over(router, now, from, stray, None, bridges);
        }
        RedirectKind::Ask => {
            let mut change = Change::default();
            let target = address.and_then(|address| router.endpoint_at(now, &address, &mut change));
            apply(router, now, &change, bridges);
            hand_over(router, now, from, stray, target, bridges);
        }
    }
}

/// Gives a stray to the bridge that was asked for, or to that of its slot's owner; if neither takes it, it fails.
fn hand_over<W>(
    router: &Router,
    now: Instant,
    from: BridgeId,
    stray: &Stray,
    asking: Option<EndpointId>,
    bridges: &mut impl Bridges<W>,
) {
    if from.endpoint.is_reader() {
        return hand_read_over(router, now, from, stray, bridges);
    }
    let usual = match stray.reason {
        StrayReason::Shed => Adopt::Unsent,
        StrayReason::Redirected(..) | StrayReason::Returned => Adopt::First,
    };
    let owner = match stray.slot {
        Some(slot) => router.owner(slot).map(|owner| owner.id),
        // The one behind it in the list, so that not everybody's work goes to the first.
        None => {
            let primaries = router.primaries();
            let behind = primaries.iter().position(|id| *id == from.endpoint).map_or(0, |at| at + 1);
            primaries.get(behind).or_else(|| primaries.first()).copied()
        }
    };
    let choices = [asking.map(|id| (id, Adopt::Asking)), owner.map(|id| (id, usual))];
    let lane = router.lanes().of(stray.slot);
    for (endpoint, how) in choices.into_iter().flatten() {
        let to = BridgeId { endpoint, lane };
        if let Some(ticket) = bridges.with(to, |bridge| bridge.adopt(now, stray, how)).flatten() {
            return bridges.forward(now, (from, stray.origin), (to, ticket));
        }
    }
    let error = Error::new(ErrorKind::Unavailable, stray.sent());
    bridges.with(from, |bridge| bridge.fail_stray(now, stray.origin, error));
}

/// Gives a read that a replica did not answer to whoever may answer it.
fn hand_read_over<W>(
    router: &Router,
    now: Instant,
    from: BridgeId,
    stray: &Stray,
    bridges: &mut impl Bridges<W>,
) {
    let to = bridges.read_again(router, from.endpoint, stray);
    let to = to.map(|endpoint| BridgeId { endpoint, lane: lanes_of(router, endpoint).of(stray.slot) });
    if let Some(to) = to
        && let Some(ticket) = bridges.with(to, |bridge| bridge.adopt(now, stray, Adopt::First)).flatten()
    {
        return bridges.forward(now, (from, stray.origin), (to, ticket));
    }
    let kind =
        if to.is_some() { ErrorKind::Unavailable } else { ErrorKind::NoReplica { policy: stray.read } };
    let error = Error::new(kind, stray.sent());
    bridges.with(from, |bridge| bridge.fail_stray(now, stray.origin, error));
}

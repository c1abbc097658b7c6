//! Replicas, and the connections for reads that clients have to them.

use towline_cluster::{Role, Slot, key_slot};
use towline_sansio::Instant;
use towline_spec::SideEffect;

use super::{Claim, Net, Place, Server, World, parts};
use crate::bridge::{Bridge, LinkState, Stray};
use crate::command::{Flags, Order, encoded_len};
use crate::routing::{
    BridgeId, Bridges, Candidate, Choice, Endpoint, EndpointId, Lag, Lane, Reach, ReadFrom, Router,
    choose_again,
};

impl Net {
    /// What [`Bridges::read_again`] says.
    pub(super) fn place_of_stray(
        &self,
        router: &Router,
        from: EndpointId,
        stray: &Stray,
    ) -> Option<EndpointId> {
        let slot = stray.slot?;
        let replicas = replicas(router, slot);
        let was = replicas.iter().position(|id| *id == from.node());
        let past = (was, stray.is_refused());
        let owner = router.owner(slot).unwrap().id;
        let choice = choose_again(
            stray.read,
            || self.candidate(router, owner, owner),
            replicas.len(),
            |at| self.candidate(router, replicas[at], replicas[at].reader()),
            None,
            past,
        );
        match choice {
            Choice::Primary => Some(owner),
            Choice::Replica(at) => Some(replicas[at].reader()),
            Choice::Later | Choice::Nobody => None,
        }
    }

    /// How node `id` looks, by its connection `conn`.
    fn candidate(&self, router: &Router, id: EndpointId, conn: EndpointId) -> Candidate {
        let place = self.places.iter().find(|place| place.id.endpoint == conn);
        let reach = match place.map(|place| place.bridge.link_state()) {
            None => Reach::Unused,
            Some(LinkState::Up) => Reach::Up,
            Some(_) => Reach::Down,
        };
        let health = router.endpoint(id).unwrap().info.health;
        Candidate { reach, health, is_near: false, lag: Lag::Unmeasured }
    }
}

/// The bridge for reads from a node.
const fn reader(node: EndpointId) -> BridgeId {
    BridgeId { endpoint: node.reader(), lane: Lane::FIRST }
}

/// The replicas of a slot's owner.
fn replicas(router: &Router, slot: Slot) -> Vec<EndpointId> {
    let seat = router.slots().owner(slot);
    let follows = |endpoint: &&Endpoint| endpoint.info.role == Role::Replica && endpoint.info.primary == seat;
    router.endpoints().filter(follows).map(|endpoint| endpoint.id).collect()
}

impl World {
    /// A server that follows `of`, which everybody knows; with a connection for reads.
    pub(in super::super) fn add_replica(&mut self, port: u16, of: u16) {
        let mut elsewhere = self.servers[&of].elsewhere.clone();
        elsewhere.extend(self.servers[&of].slots.iter().map(|slot| (*slot, of)));
        self.servers.insert(port, Server { elsewhere, follows: Some(of), ..Server::default() });
        self.refresh();
        let id = reader(self.net.places[self.at(port)].id.endpoint);
        let bridge = Bridge::new(parts(u64::from(port) + 1000), Instant::ZERO).unwrap().with_reads();
        self.net.places.push(Place {
            id,
            port,
            bridge,
            link: None,
            forwards: std::collections::BTreeMap::new(),
        });
        self.connect();
    }

    /// The bridge for reads of `port`.
    pub(in super::super) fn reader_at(&self, port: u16) -> usize {
        self.net.places.iter().position(|place| place.port == port && place.id.endpoint.is_reader()).unwrap()
    }

    /// A read of `key` at replica `port`.
    pub(in super::super) fn read_at(
        &mut self,
        port: u16,
        key: &str,
        policy: ReadFrom,
        flags: Flags,
    ) -> Claim {
        let (now, args) = (self.now, ["GET", key]);
        let deadline = now + self.patience;
        let effect = SideEffect::ReadOnly;
        let order = Order { effect, replies: 1, deadline, flags, bytes: encoded_len(&args), room: None };
        let id = reader(self.net.places[self.at(port)].id.endpoint);
        let read = (key_slot(key.as_bytes()), policy);
        let taken = self.net.with(id, |it| it.submit_read(now, read, &order, None, |out| out.command(&args)));
        Claim(id, taken.unwrap().unwrap().ticket)
    }

    /// Where a command is.
    pub(in super::super) fn place_of(&mut self, claim: &mut Claim) -> (u16, bool) {
        let _ = self.outcome_of(claim, false);
        let place = self.net.places.iter().find(|place| place.id == claim.0).unwrap();
        (place.port, place.id.endpoint.is_reader())
    }
}

mod replicas;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use towline_cluster::{Address, NodeInfo, Role, Slot, View, key_slot};
use towline_resp::Proto;
use towline_resp::frame::{Decoder, Frame};
use towline_sansio::Instant;
use towline_spec::SideEffect;

use crate::bridge::{Bridge, Parts, Stray, SubmitError};
use crate::command::{Encoder, Flags, Order, Reply, encoded_len};
use crate::config::Config;
use crate::error::{Error, LostCause, Sent};
use crate::handshake::{HandshakeConfig, Peer, ProtocolChoice};
use crate::liveness::LivenessConfig;
use crate::policy::Policy;
use crate::retry::{RetryBudget, RetryBudgetConfig};
use crate::routing::{
    BridgeId, Bridges, Endpoint, EndpointId, Lanes, RefreshCause, Router, RouterConfig, on_news, on_views,
};
use crate::slab::Ticket;

/// A server of a cluster, as far as clients see it. What is appended to keys is kept by the world.
#[derive(Default)]
pub(super) struct Server {
    pub(super) slots: BTreeSet<Slot>,
    /// Where the server believes slots to be that it does not have.
    pub(super) elsewhere: BTreeMap<Slot, u16>,
    /// Slots whose keys go to another node one by one.
    pub(super) migrating: BTreeMap<Slot, u16>,
    pub(super) importing: BTreeSet<Slot>,
    /// Refuses everything with this.
    pub(super) refusal: Option<&'static str>,
    pub(super) is_dead: bool,
    /// Whose replica it is: it answers reads on connections for reads.
    pub(super) follows: Option<u16>,
}

/// What reached a server of one connection, and what it has answered.
#[derive(Default)]
struct Link {
    input: BytesMut,
    /// Knows what it has read of a command that has not come whole.
    decoder: Decoder,
    output: Vec<u8>,
    is_asking: bool,
    /// A connection for reads.
    is_reader: bool,
    /// Commands in `MULTI`, and whether one of them was refused.
    queued: Option<(Vec<Words>, bool)>,
}

type Words = Vec<Vec<u8>>;

struct Place {
    id: BridgeId,
    port: u16,
    bridge: Bridge<u32>,
    link: Option<Link>,
    forwards: BTreeMap<Ticket, (BridgeId, Ticket)>,
}

pub(super) struct World {
    pub(super) now: Instant,
    pub(super) router: Router,
    net: Net,
    pub(super) servers: BTreeMap<u16, Server>,
    /// What was appended to each key, in order, wherever the key is.
    pub(super) data: BTreeMap<Vec<u8>, Vec<String>>,
    /// Keys that have gone to the importing node already.
    pub(super) gone: BTreeSet<Vec<u8>>,
    /// How long commands may take.
    pub(super) patience: Duration,
}

#[derive(Default)]
struct Net {
    lanes: Lanes,
    places: Vec<Place>,
    retired: usize,
}

impl Bridges<u32> for Net {
    fn open(&mut self, endpoint: &Endpoint) {
        let port = endpoint.address.port;
        for lane in self.lanes.all() {
            let seed = u64::from(port) + ((lane.index() as u64) << 32);
            let bridge = Bridge::new(parts(seed), Instant::ZERO).unwrap().with_routing();
            let id = BridgeId { endpoint: endpoint.id, lane };
            self.places.push(Place { id, port, bridge, link: None, forwards: BTreeMap::new() });
        }
    }

    fn read_again(&mut self, router: &Router, from: EndpointId, stray: &Stray) -> Option<EndpointId> {
        self.place_of_stray(router, from, stray)
    }

    fn is_open(&self, id: EndpointId) -> bool {
        self.places.iter().any(|place| place.id.endpoint == id)
    }

    fn with<T>(&mut self, id: BridgeId, act: impl FnOnce(&mut Bridge<u32>) -> T) -> Option<T> {
        self.places.iter_mut().find(|place| place.id == id).map(|place| act(&mut place.bridge))
    }

    fn forward(&mut self, now: Instant, from: (BridgeId, Ticket), to: (BridgeId, Ticket)) {
        let place = self.places.iter_mut().find(|place| place.id == from.0).unwrap();
        place.forwards.insert(from.1, to);
        if !place.bridge.forwarded(now, from.1) {
            place.forwards.remove(&from.1);
            self.with(to.0, |bridge| bridge.abandon(to.1));
        }
    }

    fn retired(&mut self, _id: EndpointId) {
        self.retired += 1;
    }

    fn publish(&mut self, _router: &Router) {}
}

fn parts(seed: u64) -> Parts {
    let handshake =
        HandshakeConfig { protocol: ProtocolChoice::Resp2, peer: Peer::Proxy, ..HandshakeConfig::default() };
    Parts {
        config: Config::default(),
        policy: Box::new(Policy::Queue),
        handshake,
        liveness: LivenessConfig::default(),
        budget: RetryBudget::new(Instant::ZERO, RetryBudgetConfig::default()),
        seed,
    }
}

pub(super) fn address(port: u16) -> Address {
    Address::new("10.0.0.1", port).unwrap()
}

/// A command of a test, wherever it is. Without a ticket nobody waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Claim(BridgeId, Option<Ticket>);

impl World {
    /// Servers on these ports, which share the slots in turn, connected.
    pub(super) fn new(ports: &[u16]) -> Self {
        Self::with_lanes(ports, 1)
    }

    /// The same for a client with so many connections to each.
    pub(super) fn with_lanes(ports: &[u16], lanes: u8) -> Self {
        let lanes = Lanes::new(lanes).unwrap();
        let config = RouterConfig { lanes, ..RouterConfig::default() };
        let mut world = Self {
            now: Instant::ZERO + Duration::from_secs(1),
            router: Router::new(Instant::ZERO, config, 1),
            net: Net { lanes, ..Net::default() },
            servers: BTreeMap::new(),
            data: BTreeMap::new(),
            gone: BTreeSet::new(),
            patience: Duration::from_secs(5),
        };
        for port in ports {
            world.servers.insert(*port, Server::default());
        }
        for slot in 0..16_384 {
            let owner = ports[usize::from(slot) * ports.len() / 16_384];
            for port in ports {
                let server = world.servers.get_mut(port).unwrap();
                if *port == owner {
                    server.slots.insert(slot);
                } else {
                    server.elsewhere.insert(slot, owner);
                }
            }
        }
        world.refresh();
        world.connect();
        world
    }

    /// The cluster as it is.
    fn view(&self) -> View {
        let mut view = View::default();
        for (at, (port, server)) in self.servers.iter().enumerate() {
            let id = Some(port.to_string().into());
            let primary = server.follows.and_then(|it| self.servers.keys().position(|port| *port == it));
            let role = if primary.is_some() { Role::Replica } else { Role::Primary };
            let address = Some(address(*port));
            view.topology.nodes.push(NodeInfo { id, address, role, primary, ..NodeInfo::default() });
            for slot in &server.slots {
                view.topology.slots.set(*slot, Some(at));
            }
        }
        view
    }

    /// The client asks for the map, as soon as it may.
    pub(super) fn refresh(&mut self) {
        self.router.request_refresh(self.now, RefreshCause::Urgent);
        self.now = self.now.max(self.router.poll_timeout().unwrap());
        assert!(self.router.poll_refresh(self.now));
        let views = [self.view()];
        on_views(&mut self.router, self.now, &views, &mut self.net);
    }

    /// Dials whatever wants to be dialled.
    pub(super) fn connect(&mut self) {
        for at in 0..self.net.places.len() {
            let place = &mut self.net.places[at];
            let Some(generation) = place.bridge.poll_dial(self.now) else { continue };
            if self.servers.get(&place.port).is_none_or(|server| server.is_dead) {
                place.bridge.dial_failed(self.now, generation, std::io::ErrorKind::ConnectionRefused);
                continue;
            }
            place.bridge.opened(self.now, generation, None);
            place.link = Some(Link { is_reader: place.id.endpoint.is_reader(), ..Link::default() });
            self.write(at, usize::MAX);
            self.serve(at, 1);
            self.read(at);
        }
    }

    /// Lets everything happen that can: writing, serving, reading, carrying.
    pub(super) fn turn(&mut self) {
        for _ in 0..100 {
            for at in 0..self.net.places.len() {
                self.write(at, usize::MAX);
                self.serve(at, usize::MAX);
                self.read(at);
            }
            if !self.carry() {
                break;
            }
        }
    }

    pub(super) fn places(&self) -> usize {
        self.net.places.len()
    }

    /// Bridge `at` writes up to `room` bytes.
    pub(super) fn write(&mut self, at: usize, room: usize) {
        let place = &mut self.net.places[at];
        let Some(link) = &mut place.link else { return };
        let Some(batch) = place.bridge.take_write(self.now, place.bridge.generation()) else { return };
        let bytes: Vec<u8> = batch.slices().flatten().copied().collect();
        let count = bytes.len().min(room);
        link.input.extend_from_slice(&bytes[..count]);
        place.bridge.wrote(self.now, batch, count);
    }

    /// The server of bridge `at` executes up to `count` commands.
    pub(super) fn serve(&mut self, at: usize, count: usize) {
        let port = self.net.places[at].port;
        for _ in 0..count {
            let Some(mut link) = self.net.places[at].link.take() else { return };
            if let Ok(Some(Frame::Array(words))) = link.decoder.decode(&mut link.input) {
                let words = words.into_iter().map(|word| match word {
                    Frame::Bulk(bytes) => bytes.to_vec(),
                    other => panic!("no word of a command: {other:?}"),
                });
                let reply = self.execute(port, &mut link, words.collect());
                link.output.extend(reply.encode(Proto::Resp2));
            } else {
                self.net.places[at].link = Some(link);
                return;
            }
            self.net.places[at].link = Some(link);
        }
    }

    fn execute(&mut self, port: u16, link: &mut Link, words: Words) -> Frame {
        let simple = |text: &'static str| Frame::Simple(Bytes::from_static(text.as_bytes()));
        match words[0].as_slice() {
            b"PING" => return simple("PONG"),
            b"ASKING" => {
                link.is_asking = true;
                return simple("OK");
            }
            b"MULTI" => {
                link.queued = Some((Vec::new(), false));
                return simple("OK");
            }
            b"EXEC" => {
                let (queued, is_broken) = link.queued.take().unwrap();
                link.is_asking = false;
                if is_broken {
                    return Frame::Error(Bytes::from_static(b"EXECABORT Transaction discarded"));
                }
                return Frame::Array(queued.iter().map(|words| self.run(words)).collect());
            }
            _ => {}
        }
        let is_asking =
            if link.queued.is_some() { link.is_asking } else { std::mem::take(&mut link.is_asking) };
        match (&mut link.queued, self.refusal(port, &words, is_asking, link.is_reader)) {
            (queued, Some(error)) => {
                if let Some((_, is_broken)) = queued {
                    *is_broken = true;
                }
                Frame::Error(error.into())
            }
            (Some((queued, _)), None) => {
                queued.push(words);
                simple("QUEUED")
            }
            (None, None) => self.run(&words),
        }
    }

    fn refusal(&self, port: u16, words: &Words, is_asking: bool, is_reader: bool) -> Option<String> {
        let server = &self.servers[&port];
        if let Some(refusal) = server.refusal {
            return Some(refusal.to_owned());
        }
        let key = &words[1];
        let slot = key_slot(key);
        let follows = server.follows.and_then(|port| self.servers.get(&port));
        if is_reader && words[0] == b"GET" && follows.is_some_and(|primary| primary.slots.contains(&slot)) {
            return None;
        }
        if server.slots.contains(&slot) {
            let target = server.migrating.get(&slot)?;
            return self.gone.contains(key).then(|| format!("ASK {slot} 10.0.0.1:{target}"));
        }
        if is_asking && server.importing.contains(&slot) {
            return None;
        }
        match server.elsewhere.get(&slot) {
            Some(other) => Some(format!("MOVED {slot} 10.0.0.1:{other}")),
            None => Some("CLUSTERDOWN Hash slot not served".to_owned()),
        }
    }

    fn run(&mut self, words: &Words) -> Frame {
        let values = self.data.entry(words[1].clone()).or_default();
        if words[0] == b"APPEND" {
            values.push(String::from_utf8(words[2].clone()).unwrap());
        }
        Frame::Integer(values.len() as i64)
    }

    /// Bridge `at` reads what its server has answered.
    pub(super) fn read(&mut self, at: usize) {
        let place = &mut self.net.places[at];
        let Some(link) = &mut place.link else { return };
        let mut buffer = BytesMut::from(&std::mem::take(&mut link.output)[..]);
        let (mut decoder, mut frames) = (Decoder::default(), Vec::new());
        while let Some(frame) = decoder.decode(&mut buffer).unwrap() {
            frames.push(frame);
        }
        if !frames.is_empty() {
            place.bridge.deliver(self.now, place.bridge.generation(), &mut frames);
        }
    }

    /// Carries what has strayed. Whether there is anything to go on with.
    pub(super) fn carry(&mut self) -> bool {
        let mut was_busy = false;
        for at in 0..self.net.places.len() {
            was_busy |= self.carry_from(at);
        }
        let wants =
            |place: &Place| place.link.is_some() && place.bridge.wants_write(place.bridge.generation());
        was_busy || self.net.places.iter().any(wants)
    }

    pub(super) fn carry_from(&mut self, at: usize) -> bool {
        let place = &mut self.net.places[at];
        if !place.bridge.has_news() {
            return false;
        }
        let (id, news) = (place.id, place.bridge.take_news());
        on_news(&mut self.router, self.now, id, news, &mut self.net);
        true
    }

    /// Time passes.
    pub(super) fn wait(&mut self, millis: u64) {
        self.now = self.now + Duration::from_millis(millis);
        for place in &mut self.net.places {
            if place.bridge.poll_timeout().is_some_and(|at| at <= self.now) {
                place.bridge.handle_timeout(self.now);
            }
        }
    }

    /// Time passes until every bridge has what it can have.
    pub(super) fn settle(&mut self) {
        for _ in 0..1200 {
            self.connect();
            self.turn();
            if self.is_at_rest() {
                return;
            }
            self.wait(10);
        }
    }

    /// All connections to `port` break. What the server has not read is lost, and so are its answers.
    pub(super) fn cut(&mut self, port: u16) {
        let all = (0..self.net.places.len()).filter(|at| self.net.places[*at].port == port);
        all.collect::<Vec<_>>().into_iter().for_each(|at| self.cut_at(at));
    }

    /// One connection breaks.
    pub(super) fn cut_at(&mut self, at: usize) {
        let place = &mut self.net.places[at];
        if place.link.take().is_some() {
            place.bridge.lost(self.now, place.bridge.generation(), LostCause::Reset);
        }
    }

    /// The slot goes to another server, and everybody knows.
    pub(super) fn move_slot(&mut self, slot: Slot, to: u16) {
        for (port, server) in &mut self.servers {
            server.migrating.remove(&slot);
            server.importing.remove(&slot);
            if *port == to {
                server.slots.insert(slot);
                server.elsewhere.remove(&slot);
            } else {
                server.slots.remove(&slot);
                server.elsewhere.insert(slot, to);
            }
        }
    }

    /// The slot begins to move key by key.
    pub(super) fn open_slot(&mut self, slot: Slot, to: u16) {
        let from = *self.servers.iter().find(|(_, server)| server.slots.contains(&slot)).unwrap().0;
        self.servers.get_mut(&from).unwrap().migrating.insert(slot, to);
        self.servers.get_mut(&to).unwrap().importing.insert(slot);
    }

    pub(super) fn owner_of(&self, slot: Slot) -> u16 {
        self.router.owner(slot).unwrap().address.port
    }

    pub(super) fn submit(&mut self, args: &[&str], flags: Flags, effect: SideEffect) -> Claim {
        let deadline = self.now + self.patience;
        let order = Order { effect, replies: 1, deadline, flags, bytes: encoded_len(args), room: None };
        self.submit_order(key_slot(args[1].as_bytes()), &order, |out| out.command(args))
    }

    pub(super) fn submit_order(
        &mut self,
        slot: Slot,
        order: &Order,
        encode: impl FnOnce(&mut Encoder<'_>),
    ) -> Claim {
        let lane = self.net.lanes.of(Some(slot));
        let (owner, now) = (BridgeId { endpoint: self.router.owner(slot).unwrap().id, lane }, self.now);
        let taken = self.net.with(owner, |it| it.submit_routed(now, Some(slot), order, None, encode));
        match taken.unwrap() {
            Ok(submitted) => Claim(owner, submitted.ticket),
            Err(SubmitError::Elsewhere) => panic!("the map was published"),
            Err(SubmitError::Failed(error)) => panic!("{error}"),
        }
    }

    /// A `PING` that is meant for the node of `port` and no other.
    pub(super) fn ask(&mut self, port: u16) -> Claim {
        let (id, now) = (self.net.places[self.at(port)].id, self.now);
        let (flags, deadline) = (Flags::NO_RETRY | Flags::PINNED, now + self.patience);
        let effect = SideEffect::Admin;
        let order = Order { effect, replies: 1, deadline, flags, bytes: encoded_len(&["PING"]), room: None };
        let taken = self.net.with(id, |it| it.submit(now, &order, |out| out.command(&["PING"])));
        Claim(id, taken.unwrap().unwrap().ticket)
    }

    /// A `PING` to the node of `port`.
    pub(super) fn submit_keyless(&mut self, port: u16, flags: Flags) -> Claim {
        let at = self.at(port);
        let (id, now) = (self.net.places[at].id, self.now);
        let (effect, deadline) = (SideEffect::ReadOnly, now + self.patience);
        let order = Order { effect, replies: 1, deadline, flags, bytes: encoded_len(&["PING"]), room: None };
        let taken =
            self.net.with(id, |it| it.submit_routed(now, None, &order, None, |out| out.command(&["PING"])));
        Claim(id, taken.unwrap().unwrap().ticket)
    }

    pub(super) fn append(&mut self, key: &str, value: &str) -> Claim {
        self.submit(&["APPEND", key, value], Flags::NONE, SideEffect::NonIdempotent)
    }

    /// The outcome, if it is there, wherever the command has gone.
    pub(super) fn outcome(&mut self, claim: &mut Claim) -> Option<Result<Reply, Error>> {
        self.outcome_of(claim, true)
    }

    /// Follows a command, and takes its outcome if that is wanted.
    fn outcome_of(&mut self, claim: &mut Claim, is_wanted: bool) -> Option<Result<Reply, Error>> {
        loop {
            let ticket = claim.1.expect("somebody waits for it");
            let place = self.net.places.iter_mut().find(|place| place.id == claim.0).unwrap();
            if place.bridge.take_forwarded(ticket) {
                let (id, ticket) = place.forwards.remove(&ticket).unwrap();
                *claim = Claim(id, Some(ticket));
                continue;
            }
            return if is_wanted { place.bridge.poll_outcome(ticket, |_| 0) } else { None };
        }
    }

    pub(super) fn abandon(&mut self, claim: Claim) {
        let Claim(mut id, Some(mut ticket)) = claim else { return };
        while let Some((next, at)) =
            self.net.places.iter_mut().find(|place| place.id == id).and_then(|it| it.forwards.remove(&ticket))
        {
            self.net.with(id, |bridge| bridge.take_forwarded(ticket));
            (id, ticket) = (next, at);
        }
        self.net.with(id, |bridge| bridge.abandon(ticket));
    }

    #[track_caller]
    pub(super) fn succeeded(&mut self, claim: &mut Claim) {
        let outcome = self.outcome(claim).expect("it has ended");
        assert!(outcome.is_ok(), "{outcome:?}");
    }

    #[track_caller]
    pub(super) fn failed(&mut self, claim: &mut Claim) -> (String, Sent) {
        let error = self.outcome(claim).expect("it has ended").unwrap_err();
        (error.kind().to_string(), error.sent())
    }

    pub(super) fn values(&self, key: &str) -> String {
        self.data.get(key.as_bytes()).map_or_else(String::new, |values| values.join(" "))
    }

    /// Bytes that the server of `port` has to read.
    pub(super) fn input(&self, port: u16) -> String {
        let place = self.net.places.iter().find(|place| place.port == port).unwrap();
        String::from_utf8_lossy(&place.link.as_ref().unwrap().input).replace("\r\n", " ")
    }

    /// The first lane to the server of `port`.
    pub(super) fn at(&self, port: u16) -> usize {
        self.net.places.iter().position(|place| place.port == port && !place.id.endpoint.is_reader()).unwrap()
    }

    /// The lane of a key to the server of `port`.
    pub(super) fn at_lane_of(&self, key: &str, port: u16) -> usize {
        let lane = self.net.lanes.of(Some(key_slot(key.as_bytes())));
        self.net.places.iter().position(|place| place.port == port && place.id.lane == lane).unwrap()
    }

    /// Whether nothing is under way to the server of `port` on the lane of `slot`, not even the rest of what is being written,
    /// and its client has dealt with every answer.
    pub(super) fn is_drained(&self, port: u16, slot: Slot) -> bool {
        let lane = self.net.lanes.of(Some(slot));
        let place = self.net.places.iter().find(|place| place.port == port && place.id.lane == lane);
        place.is_none_or(|place| {
            let is_silent = |link: &Link| link.input.is_empty() && link.output.is_empty();
            place.link.as_ref().is_none_or(is_silent)
                && place.bridge.snapshot(self.now).in_flight_commands == 0
                && !place.bridge.has_news()
        })
    }

    /// Whether no bridge has anything left.
    pub(super) fn is_at_rest(&self) -> bool {
        self.net.places.iter().all(|place| place.bridge.is_idle() && !place.bridge.has_news())
    }

    pub(super) fn retired(&self) -> usize {
        self.net.retired
    }

    /// What bridges hold of commands that have ended.
    pub(super) fn leftovers(&self) -> usize {
        self.net.places.iter().map(|place| place.bridge.snapshot(self.now).slots).sum()
    }

    pub(super) fn unsent_bytes(&self) -> usize {
        self.net.places.iter().map(|place| place.bridge.snapshot(self.now).backlog_bytes).sum()
    }
}

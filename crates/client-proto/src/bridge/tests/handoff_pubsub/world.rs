//! A bridge with subscribers, and a model of a server that has one order for everything.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;

use super::super::*;
use crate::bridge::{Continuity, HandoffEvent};
use crate::handshake::MaintenanceRequest;
use crate::subscriptions::{Item, Kind, MARKER_PREFIX, Overflow, SubscriberId};

/// What the model does with markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Markers {
    Allowed,
    /// Nobody may publish.
    NoPublish,
    /// Nobody may subscribe to their channels.
    NoSubscribe,
    /// They do not reach the old connection: another server was published to.
    Swallowed,
}

/// What becomes of a connection in the middle of a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    /// The old one ends, and what was not read of it is gone.
    OldLost,
    /// It ends behind what it has said.
    OldClosed,
    NewLost,
}

#[derive(Debug, Default)]
pub(super) struct ModelConn {
    pub(super) names: BTreeSet<(Kind, String)>,
    pub(super) input: VecDeque<Vec<String>>,
    pub(super) output: VecDeque<Frame>,
}

/// A server: one order for everything.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) conns: BTreeMap<Generation, ModelConn>,
    pub(super) published: BTreeMap<(Kind, String), u64>,
    pub(super) markers: Markers,
    pub(super) mode: &'static str,
    /// A channel that nobody may subscribe to any more, and what is said then.
    pub(super) refused: Option<(&'static str, &'static str)>,
    /// The connection that markers do not reach.
    pub(super) old: Generation,
}

pub(super) fn bulk(text: &str) -> Frame {
    Frame::Bulk(Bytes::copy_from_slice(text.as_bytes()))
}

pub(super) fn simple(text: &str) -> Frame {
    Frame::Simple(Bytes::copy_from_slice(text.as_bytes()))
}

pub(super) fn error(text: &str) -> Frame {
    Frame::Error(Bytes::copy_from_slice(text.as_bytes()))
}

pub(super) fn push(words: &[&str]) -> Frame {
    Frame::Push(words.iter().map(|word| bulk(word)).collect())
}

impl Model {
    pub(super) fn publish(&mut self, kind: Kind, channel: &str, payload: &str) {
        for (generation, conn) in &mut self.conns {
            let is_marker = channel.starts_with(MARKER_PREFIX);
            if is_marker && self.markers == Markers::Swallowed && *generation == self.old {
                continue;
            }
            if conn.names.contains(&(kind, channel.to_owned())) {
                let word = if kind == Kind::Shard { "smessage" } else { "message" };
                conn.output.push_back(push(&[word, channel, payload]));
            }
            if kind == Kind::Channel && conn.names.contains(&(Kind::Pattern, "*".to_owned())) {
                conn.output.push_back(push(&["pmessage", "*", channel, payload]));
            }
        }
    }

    pub(super) fn publish_next(&mut self, kind: Kind, channel: &str) {
        let number = self.published.entry((kind, channel.to_owned())).or_default();
        let payload = number.to_string();
        *number += 1;
        self.publish(kind, channel, &payload);
    }

    /// Executes one command of a connection.
    pub(super) fn execute(&mut self, generation: Generation) {
        let conn = self.conns.get_mut(&generation).unwrap();
        let Some(command) = conn.input.pop_front() else { return };
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let is_of_marker = words.get(1).is_some_and(|name| name.starts_with(MARKER_PREFIX));
        let reply = match words[0] {
            "HELLO" => Frame::Map(vec![
                (bulk("proto"), Frame::Integer(3)),
                (bulk("id"), Frame::Integer(i64::try_from(generation.0).unwrap())),
                (bulk("mode"), bulk(self.mode)),
            ]),
            "PING" => words.get(1).map_or_else(|| simple("PONG"), |token| bulk(token)),
            "CLIENT" if words[1] == "ID" => Frame::Integer(i64::try_from(generation.0).unwrap()),
            "PUBLISH" if self.markers == Markers::NoPublish => error("NOPERM no publishing"),
            "PUBLISH" => {
                self.publish(Kind::Channel, words[1], words[2]);
                Frame::Integer(2)
            }
            verb if verb.ends_with("SUBSCRIBE") => {
                if is_of_marker && self.markers == Markers::NoSubscribe && verb == "SUBSCRIBE" {
                    conn.output.push_back(error("NOPERM no such channel"));
                    return;
                }
                let refused =
                    self.refused.filter(|(name, _)| verb == "SUBSCRIBE" && words[1..].contains(name));
                if let Some((_, text)) = refused {
                    conn.output.push_back(error(text));
                    return;
                }
                let kind = match verb.trim_end_matches("SUBSCRIBE").trim_end_matches("UN") {
                    "P" => Kind::Pattern,
                    "S" => Kind::Shard,
                    _ => Kind::Channel,
                };
                let verb = verb.to_ascii_lowercase();
                for name in &words[1..] {
                    let key = (kind, (*name).to_owned());
                    let _ =
                        if verb.contains("un") { conn.names.remove(&key) } else { conn.names.insert(key) };
                    conn.output.push_back(Frame::Push(vec![bulk(&verb), bulk(name), Frame::Integer(1)]));
                }
                return;
            }
            _ => simple("OK"),
        };
        self.conns.get_mut(&generation).unwrap().output.push_back(reply);
    }
}

/// What one subscriber has seen of one channel.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) next: Option<u64>,
    pub(super) may_miss: bool,
    pub(super) may_repeat: bool,
}

/// A subscriber and what it is to see.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) id: SubscriberId,
    pub(super) kind: Kind,
    pub(super) name: &'static str,
    pub(super) seen: BTreeMap<String, Seen>,
    pub(super) gaps: u32,
    pub(super) overlaps: u32,
    pub(super) refused: u32,
    /// Whether the request is settled.
    pub(super) is_granted: bool,
}

pub(super) struct World {
    pub(super) rig: Rig,
    pub(super) model: Model,
    pub(super) prng: Prng,
    pub(super) readers: Vec<Reader>,
    /// A reader that comes and goes.
    pub(super) guest: Option<Reader>,
    pub(super) seq: i64,
    pub(super) continuities: Vec<Continuity>,
    pub(super) seed: u64,
}

pub(super) const CHANNELS: [(Kind, &str); 4] =
    [(Kind::Channel, "a"), (Kind::Channel, "b"), (Kind::Shard, "s"), (Kind::Channel, "guest")];

pub(super) fn moving_resp3() -> Parts {
    let mut parts = parts();
    parts.handshake.protocol = ProtocolChoice::Resp3;
    parts.handshake.peer = Peer::Server;
    parts.handshake.maintenance = Some(MaintenanceRequest { moving_endpoint_type: None, is_required: false });
    parts
}

impl World {
    pub(super) fn new(seed: u64, markers: Markers) -> Self {
        let mut rig = Rig::new(Parts { seed, ..moving_resp3() });
        rig.bridge = rig.bridge.with_pubsub(PubSubConfig::default(), rig.now);
        let model = Model {
            conns: BTreeMap::new(),
            published: BTreeMap::new(),
            markers,
            mode: "standalone",
            refused: None,
            old: Generation::default(),
        };
        let mut world = Self {
            rig,
            model,
            prng: Prng::new(seed),
            readers: Vec::new(),
            guest: None,
            seq: 10,
            continuities: Vec::new(),
            seed,
        };
        for (kind, name) in
            [(Kind::Channel, "a"), (Kind::Channel, "b"), (Kind::Pattern, "*"), (Kind::Shard, "s")]
        {
            let reader = world.open(kind, name);
            world.readers.push(reader);
        }
        world.settle();
        world.readers.iter().for_each(|reader| assert!(reader.is_granted, "seed {seed}"));
        world
    }

    pub(super) fn open(&mut self, kind: Kind, name: &'static str) -> Reader {
        let id = self.rig.bridge.open_subscriber(1 << 20, Overflow::DropOldest).unwrap();
        self.rig.bridge.subscribe(self.rig.now, id, kind, [name]).unwrap();
        Reader { id, kind, name, seen: BTreeMap::new(), gaps: 0, overlaps: 0, refused: 0, is_granted: false }
    }

    /// Dials that are due, sockets that are not wanted.
    pub(super) fn tend(&mut self) {
        let now = self.rig.now;
        let dial = self.rig.bridge.poll_dial(now);
        let dial = dial.or_else(|| self.rig.bridge.poll_handoff_dial(now).map(|dial| dial.generation));
        if let Some(generation) = dial {
            self.model.conns.insert(generation, ModelConn::default());
            self.rig.bridge.opened(now, generation, None);
        }
        let bridge = &self.rig.bridge;
        self.model.conns.retain(|generation, _| bridge.is_wanted(*generation));
        while let Some(event) = self.rig.bridge.poll_event() {
            if let Event::Handoff(HandoffEvent::Subscriptions { continuity, .. }) = event {
                self.continuities.push(continuity);
            }
        }
        self.read();
    }

    pub(super) fn generations(&self) -> Vec<Generation> {
        self.model.conns.keys().copied().collect()
    }

    /// The kernel takes what a connection has to say.
    pub(super) fn flush(&mut self, generation: Generation) -> bool {
        let Some(batch) = self.rig.bridge.take_write(self.rig.now, generation) else { return false };
        let bytes: Vec<u8> = batch.slices().flatten().copied().collect();
        let count = bytes.len();
        self.rig.bridge.wrote(self.rig.now, batch, count);
        let mut buffer = BytesMut::from(&bytes[..]);
        let mut decoder = Decoder::default();
        let conn = self.model.conns.get_mut(&generation).unwrap();
        while let Some(Frame::Array(words)) = decoder.decode(&mut buffer).unwrap() {
            let words = words.iter().map(|word| match word {
                Frame::Bulk(text) => String::from_utf8(text.to_vec()).unwrap(),
                other => panic!("{other:?}"),
            });
            conn.input.push_back(words.collect());
        }
        true
    }

    pub(super) fn deliver(&mut self, generation: Generation, count: usize) {
        let conn = self.model.conns.get_mut(&generation).unwrap();
        let mut frames: Vec<Frame> = conn.output.drain(..count.min(conn.output.len())).collect();
        self.rig.bridge.deliver(self.rig.now, generation, &mut frames);
    }

    /// One thing that can happen; false if nothing can.
    pub(super) fn step(&mut self) -> bool {
        self.tend();
        let mut enabled: Vec<(u8, Generation)> = Vec::new();
        for (generation, conn) in &self.model.conns {
            if self.rig.bridge.wants_write(*generation) {
                enabled.push((0, *generation));
            }
            if !conn.input.is_empty() {
                enabled.push((1, *generation));
            }
            if !conn.output.is_empty() {
                enabled.push((2, *generation));
            }
        }
        if enabled.is_empty() {
            return false;
        }
        let at = usize::try_from(self.prng.below(enabled.len() as u64)).unwrap();
        match enabled[at] {
            (0, generation) => {
                self.flush(generation);
            }
            (1, generation) => self.model.execute(generation),
            (_, generation) => {
                let count = 1 + usize::try_from(self.prng.below(3)).unwrap();
                self.deliver(generation, count);
            }
        }
        self.tend();
        true
    }

    /// Goes on until nothing happens by itself any more.
    pub(super) fn settle(&mut self) {
        for _ in 0..20 {
            while self.step() {}
            // A marker that does not come is not waited for; a move ends.
            let Some(due) = self.rig.bridge.poll_timeout() else { return };
            if due > self.rig.now + Duration::from_secs(2) {
                return;
            }
            self.rig.now = due.max(self.rig.now);
            self.rig.bridge.handle_timeout(self.rig.now);
        }
    }

    pub(super) fn announce(&mut self) {
        let old = self.rig.bridge.generation();
        let Some(conn) = self.model.conns.get_mut(&old) else { return };
        self.model.old = old;
        self.seq += 1;
        let moving = [bulk("MOVING"), Frame::Integer(self.seq), Frame::Integer(15), bulk("203.0.113.7:6379")];
        conn.output.push_back(Frame::Push(moving.to_vec()));
    }

    pub(super) fn publish(&mut self) {
        let at = usize::try_from(self.prng.below(CHANNELS.len() as u64)).unwrap();
        let (kind, channel) = CHANNELS[at];
        self.model.publish_next(kind, channel);
    }

    pub(super) fn end(&mut self, generation: Generation) {
        if self.model.conns.remove(&generation).is_some() {
            self.rig.bridge.lost(self.rig.now, generation, LostCause::Reset);
        }
    }

    pub(super) fn fail(&mut self, fault: Fault, old: Generation) {
        match fault {
            Fault::None => {}
            Fault::OldLost => self.end(old),
            Fault::OldClosed => {
                if self.model.conns.contains_key(&old) {
                    self.deliver(old, usize::MAX);
                    self.end(old);
                }
            }
            Fault::NewLost => {
                let newest = self.generations().into_iter().max().filter(|newest| *newest > old);
                newest.into_iter().for_each(|newest| self.end(newest));
            }
        }
    }

    /// A guest comes, or goes.
    pub(super) fn change_guest(&mut self) {
        if let Some(guest) = self.guest.take() {
            self.rig.bridge.close_subscriber(self.rig.now, guest.id);
        } else {
            self.guest = Some(self.open(Kind::Channel, "guest"));
        }
    }

    /// Reads all that there is for all.
    pub(super) fn read(&mut self) {
        let seed = self.seed;
        for reader in self.readers.iter_mut().chain(&mut self.guest) {
            if !reader.is_granted {
                match self.rig.bridge.poll_subscribed(reader.id, |_| 0) {
                    std::task::Poll::Ready(outcome) => outcome.unwrap(),
                    std::task::Poll::Pending => continue,
                }
                reader.is_granted = true;
                // What was published before may come, what is published from now on has to.
                let key = (reader.kind, reader.name.to_owned());
                let next = self.model.published.get(&key).copied().unwrap_or(0);
                let seen = Seen { next: Some(next), may_miss: false, may_repeat: true };
                reader.seen.insert(reader.name.to_owned(), seen);
            }
            while let std::task::Poll::Ready(item) = self.rig.bridge.poll_item(reader.id, |_| 0) {
                reader.take(item.expect("the bridge lives"), seed);
            }
        }
    }

    /// Every reader has seen everything up to the last message.
    pub(super) fn check(&mut self) {
        self.settle();
        for (kind, channel) in CHANNELS {
            self.model.publish_next(kind, channel);
        }
        self.settle();
        let seed = self.seed;
        for reader in self.readers.iter().chain(&self.guest) {
            assert!(reader.is_granted, "seed {seed}: {reader:?}");
            for (kind, channel) in CHANNELS {
                let is_of_reader = match reader.kind {
                    Kind::Pattern => kind == Kind::Channel,
                    own => own == kind && reader.name == channel,
                };
                if is_of_reader {
                    let next = reader.seen.get(channel).and_then(|seen| seen.next);
                    let published = self.model.published[&(kind, channel.to_owned())];
                    assert_eq!(next, Some(published), "seed {seed}: {reader:?} of {channel}");
                }
            }
        }
        assert!(!self.rig.bridge.has_overlap(), "seed {seed}");
        // The server has what is wanted, and no marker.
        let serving = &self.model.conns[&self.rig.bridge.generation()];
        let mut wanted: BTreeSet<(Kind, String)> =
            self.readers.iter().map(|reader| (reader.kind, reader.name.to_owned())).collect();
        wanted.extend(self.guest.as_ref().map(|guest| (guest.kind, guest.name.to_owned())));
        assert_eq!(serving.names, wanted, "seed {seed}");
        assert_eq!(self.model.conns.len(), 1, "seed {seed}");
    }

    pub(super) fn totals(&self) -> (u32, u32) {
        let readers = || self.readers.iter().chain(&self.guest);
        (readers().map(|it| it.gaps).sum(), readers().map(|it| it.overlaps).sum())
    }
}

impl Reader {
    pub(super) fn take(&mut self, item: Item, seed: u64) {
        match item {
            Item::Message(message) => {
                let channel = String::from_utf8(message.channel.to_vec()).unwrap();
                assert!(!channel.starts_with(MARKER_PREFIX), "seed {seed}: a marker was shown");
                let number: u64 = std::str::from_utf8(&message.payload).unwrap().parse().unwrap();
                let seen = self.seen.entry(channel).or_default();
                let next = seen.next.unwrap_or(0);
                let is_right =
                    number == next || (number > next && seen.may_miss) || (number < next && seen.may_repeat);
                assert!(is_right, "seed {seed}: {number} instead of {next}: {self:?}");
                *seen = Seen { next: Some(number + 1), may_miss: false, may_repeat: false };
            }
            Item::Gap(_) => {
                self.gaps += 1;
                self.allow(true, false);
            }
            Item::Overlap(_) => {
                self.overlaps += 1;
                self.allow(false, true);
            }
            Item::Refused(_) => self.refused += 1,
            other @ Item::Lagged(_) => panic!("seed {seed}: {other:?}"),
        }
    }

    pub(super) fn allow(&mut self, miss: bool, repeat: bool) {
        for (_, channel) in CHANNELS {
            let seen = self.seen.entry(channel.to_owned()).or_default();
            seen.may_miss |= miss;
            seen.may_repeat |= repeat;
        }
    }
}

impl World {
    /// A world of one move that has come to the stage at which both sides have everything but the marker's message, and the
    /// server has executed its publication.
    pub(super) fn marked() -> (Self, Generation, Generation) {
        let mut world = Self::new(1, Markers::Allowed);
        let old = world.rig.bridge.generation();
        world.announce();
        for _ in 0..1000 {
            world.tend();
            let generations = world.generations();
            for generation in generations {
                world.flush(generation);
                let next = world.model.conns[&generation].input.front().cloned();
                if next.as_ref().is_some_and(|words| words[0] == "PUBLISH") {
                    world.model.execute(generation);
                    return (world, old, generation);
                }
                if next.is_some() {
                    world.model.execute(generation);
                }
                world.deliver(generation, 1);
            }
        }
        panic!("no marker was published");
    }

    pub(super) fn deliver_all(&mut self, generation: Generation) {
        self.deliver(generation, usize::MAX);
        self.tend();
    }
}

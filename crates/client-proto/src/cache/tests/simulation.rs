//! Random histories of readers, writers, lost connections, handoffs, flushes, expiry and moving slots, over model servers.
//!
//! The promise under test: no hit, and no reply that a caller joins, is older than what was last heard about its key; nothing is
//! served after its time; and when it is quiet, the cache says what the servers say. With any one guard off, some history breaks it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use towline_cluster::key_slot;
use towline_sansio::{Instant, Prng};

use super::super::{Cache, CacheConfig, CacheGuards, Fresh, Look, Name, ReadId, SourceId};
use super::Fnv;

const KEYS: usize = 6;
const NODES: usize = 2;
const STEPS: usize = 600;

/// What is on the way to the client.
enum Item {
    Value {
        read: ReadId,
        version: u64,
        ttl: Option<Duration>,
    },
    /// The node has not got the slot.
    Moved {
        read: ReadId,
    },
    Changed {
        key: usize,
        version: u64,
    },
    All {
        versions: [u64; KEYS],
    },
}

/// What the cache has to be told, with the versions that are the oldest to be seen from then on.
enum Word {
    Began,
    Ended([u64; KEYS]),
    Changed(usize, u64),
    All([u64; KEYS]),
}

#[derive(Default)]
struct Conn {
    to_server: VecDeque<(ReadId, usize)>,
    to_client: VecDeque<Item>,
    tracked: BTreeSet<usize>,
}

#[derive(Default)]
struct Node {
    conn: Conn,
    /// Left, and still answering.
    old: Option<Conn>,
    news: VecDeque<Word>,
}

struct World {
    prng: Prng,
    now: Instant,
    cache: Cache<(usize, u64), u64>,
    nodes: [Node; NODES],
    versions: [u64; KEYS],
    /// When each version ends, if it does.
    ends: BTreeMap<(usize, u64), Instant>,
    owner: [usize; KEYS],
    /// As the client knows it.
    known_owner: [usize; KEYS],
    /// Versions at the last silent change of owner.
    taken_over: [u64; KEYS],
    /// The oldest version that may be seen.
    floor: [u64; KEYS],
    done: Vec<(ReadId, Option<Fresh<u64>>)>,
    failure: Option<String>,
}

fn key(number: usize) -> Vec<u8> {
    format!("key:{number}").into_bytes()
}

impl World {
    fn new(seed: u64, guards: CacheGuards) -> Self {
        let mut cache = Cache::new(CacheConfig { guards, ..CacheConfig::default() });
        (0..NODES).for_each(|node| cache.began(SourceId(node as u64)));
        Self {
            prng: Prng::new(seed),
            now: Instant::from_nanos(1),
            cache,
            nodes: Default::default(),
            versions: [1; KEYS],
            ends: BTreeMap::new(),
            owner: std::array::from_fn(|key| key % NODES),
            known_owner: std::array::from_fn(|key| key % NODES),
            taken_over: [0; KEYS],
            floor: [0; KEYS],
            done: Vec::new(),
            failure: None,
        }
    }

    fn draw(&mut self, below: usize) -> usize {
        self.prng.below(below as u64) as usize
    }

    fn check(&mut self, what: &str, key: usize, version: u64, floor: u64) {
        if version < floor {
            self.failure
                .get_or_insert_with(|| format!("{what} of key {key}: version {version}, known is {floor}"));
        }
    }

    fn read(&mut self, number: usize) {
        let (name, floor) = (key(number), self.floor[number]);
        let name = Name::new(&Fnv::default(), &name, &name);
        match self.cache.look_up(self.now, &name, Duration::MAX, || (number, floor)) {
            Look::Hit(version) => {
                self.check("a hit", number, version, floor);
                if self.ends.get(&(number, version)).is_some_and(|end| *end <= self.now) {
                    self.failure.get_or_insert_with(|| format!("a hit of key {number}, whose time is over"));
                }
            }
            Look::Read(read) => self.nodes[self.known_owner[number]].conn.to_server.push_back((read, number)),
            Look::Joined | Look::Bypass => {}
        }
    }

    /// The key has another value from now on; whoever tracks it is told.
    fn change(&mut self, number: usize, life: Option<Duration>) {
        self.versions[number] += 1;
        let version = self.versions[number];
        if let Some(life) = life {
            self.ends.insert((number, version), self.now + life);
        }
        let node = &mut self.nodes[self.owner[number]];
        for conn in [&mut node.conn].into_iter().chain(&mut node.old) {
            if conn.tracked.remove(&number) {
                conn.to_client.push_back(Item::Changed { key: number, version });
            }
        }
    }

    /// A server notices that a key's time is over.
    fn expire(&mut self, number: usize) {
        let version = self.versions[number];
        if self.ends.get(&(number, version)).is_some_and(|end| *end <= self.now) {
            self.change(number, None);
        }
    }

    /// A server executes one read.
    fn execute(&mut self, node: usize, is_old: bool) {
        let place = &mut self.nodes[node];
        let conn = if is_old { place.old.as_mut() } else { Some(&mut place.conn) };
        let Some((read, number)) = conn.and_then(|conn| conn.to_server.pop_front()) else { return };
        let is_here = self.owner[number] == node;
        if is_here {
            self.expire(number);
        }
        let version = self.versions[number];
        let ttl = self.ends.get(&(number, version)).map(|end| end.since(self.now));
        let place = &mut self.nodes[node];
        let Some(conn) = (if is_old { place.old.as_mut() } else { Some(&mut place.conn) }) else { return };
        if is_here {
            conn.tracked.insert(number);
            conn.to_client.push_back(Item::Value { read, version, ttl });
        } else {
            conn.to_client.push_back(Item::Moved { read });
        }
    }

    /// The client reads one item; what it means for the cache waits.
    fn receive(&mut self, node: usize, is_old: bool) {
        let place = &mut self.nodes[node];
        let conn = if is_old { place.old.as_mut() } else { Some(&mut place.conn) };
        let Some(item) = conn.and_then(|conn| conn.to_client.pop_front()) else { return };
        let source = SourceId(node as u64);
        match item {
            Item::Value { read, version, ttl } => {
                let fresh = Fresh { value: version, bytes: 8, source, ttl };
                self.done.push((read, Some(fresh)));
            }
            Item::Moved { read } => self.done.push((read, None)),
            Item::Changed { key, version } => place.news.push_back(Word::Changed(key, version)),
            Item::All { versions } => place.news.push_back(Word::All(versions)),
        }
    }

    /// One of the readers goes on: any of them, for they are tasks of their own.
    fn complete(&mut self) {
        if self.done.is_empty() {
            return;
        }
        let at = self.draw(self.done.len());
        let (read, fresh) = self.done.swap_remove(at);
        let version = fresh.map(|fresh| fresh.value);
        for (number, floor) in self.cache.complete(read, fresh) {
            if let Some(version) = version {
                self.check("a shared reply", number, version, floor);
            }
        }
    }

    /// The owner of a node's connection tells the cache all that has happened.
    fn tell(&mut self, node: usize) {
        let source = SourceId(node as u64);
        while let Some(word) = self.nodes[node].news.pop_front() {
            match word {
                Word::Began => self.cache.began(source),
                Word::Ended(versions) => {
                    self.cache.ended(source);
                    self.raise(node, &versions);
                }
                Word::All(versions) => {
                    self.cache.invalidate_all(source);
                    self.raise(node, &versions);
                }
                Word::Changed(number, version) => {
                    let name = key(number);
                    self.cache.invalidate(Name::new(&Fnv::default(), &name, b"").key_hash(), &name);
                    self.floor[number] = self.floor[number].max(version);
                }
            }
        }
    }

    /// Nothing older is to be seen of the keys that were this node's.
    fn raise(&mut self, node: usize, versions: &[u64; KEYS]) {
        for number in (0..KEYS).filter(|number| self.known_owner[*number] == node) {
            self.floor[number] = self.floor[number].max(versions[number]);
        }
    }

    /// What this node knows of its keys: of others' keys it says nothing.
    fn versions_at(&self, node: usize) -> [u64; KEYS] {
        std::array::from_fn(|number| if self.owner[number] == node { self.versions[number] } else { 0 })
    }

    fn cut(&mut self, node: usize) {
        let versions = self.versions_at(node);
        let place = &mut self.nodes[node];
        let lost = std::mem::take(&mut place.conn);
        place.news.push_back(Word::Ended(versions));
        place.news.push_back(Word::Began);
        // What had no answer is asked again on the next connection; an answer that was lost is a failure to its reader.
        place.conn.to_server = lost.to_server;
        for item in lost.to_client {
            if let Item::Value { read, .. } | Item::Moved { read } = item {
                self.done.push((read, None));
            }
        }
    }

    fn hand_off(&mut self, node: usize) {
        let versions = self.versions_at(node);
        let place = &mut self.nodes[node];
        if place.old.is_some() {
            return;
        }
        place.old = Some(std::mem::take(&mut place.conn));
        place.news.push_back(Word::Ended(versions));
        place.news.push_back(Word::Began);
    }

    /// The connection that was left has answered; what it would announce later is not heard.
    fn close_old(&mut self, node: usize) {
        while self.nodes[node].old.as_ref().is_some_and(|old| !old.to_server.is_empty()) {
            self.execute(node, true);
        }
        let has_reply = |old: &Conn| {
            old.to_client.iter().any(|item| matches!(item, Item::Value { .. } | Item::Moved { .. }))
        };
        while self.nodes[node].old.as_ref().is_some_and(has_reply) {
            self.receive(node, true);
        }
        self.nodes[node].old = None;
    }

    fn flush(&mut self, node: usize) {
        for number in 0..KEYS {
            if self.owner[number] == node {
                self.versions[number] += 1;
            }
        }
        let versions = self.versions_at(node);
        let place = &mut self.nodes[node];
        for conn in [&mut place.conn].into_iter().chain(&mut place.old) {
            conn.tracked.clear();
            conn.to_client.push_back(Item::All { versions });
        }
    }

    /// Another node takes a slot over, and nobody says so: its old owner is cut off from the others.
    fn take_over(&mut self, number: usize) {
        self.owner[number] = (self.owner[number] + 1) % NODES;
        self.versions[number] += 1;
        self.taken_over[number] = self.versions[number];
        for node in &mut self.nodes {
            node.conn.tracked.remove(&number);
            node.old.iter_mut().for_each(|old| {
                old.tracked.remove(&number);
            });
        }
    }

    /// The client learns the map.
    fn learn(&mut self) {
        let moved: BTreeSet<u16> = (0..KEYS)
            .filter(|number| self.owner[*number] != self.known_owner[*number])
            .map(|number| key_slot(&key(number)))
            .collect();
        for number in 0..KEYS {
            if self.owner[number] != self.known_owner[number] {
                self.floor[number] = self.floor[number].max(self.taken_over[number]);
            }
        }
        self.known_owner = self.owner;
        self.cache.slots_moved(|slot| moved.contains(&slot));
    }

    fn step(&mut self) {
        let (node, number) = (self.draw(NODES), self.draw(KEYS));
        match self.draw(112) {
            0..40 => self.read(number),
            40..44 => self.change(number, None),
            44..46 => {
                let life = Duration::from_millis(1 + self.prng.below(50));
                self.change(number, Some(life));
            }
            46..62 => self.execute(node, number % 2 == 0),
            62..78 => self.receive(node, number % 2 == 0),
            78..90 => self.complete(),
            90..98 => self.tell(node),
            98 => self.cut(node),
            99 => self.hand_off(node),
            100 | 101 => self.close_old(node),
            102 => self.flush(node),
            103 => self.take_over(number),
            104..107 => self.learn(),
            107 => self.expire(number),
            _ => self.now = self.now + Duration::from_millis(self.prng.below(20)),
        }
    }

    /// Everything arrives, is answered and is told.
    fn settle(&mut self) {
        self.learn();
        for _ in 0..4 {
            for node in 0..NODES {
                self.close_old(node);
                while !self.nodes[node].conn.to_server.is_empty() {
                    self.execute(node, false);
                }
                while !self.nodes[node].conn.to_client.is_empty() {
                    self.receive(node, false);
                }
            }
            while !self.done.is_empty() {
                self.complete();
            }
            (0..NODES).for_each(|node| self.tell(node));
        }
    }

    /// The failure of a history, if it has one, and how many hits there were.
    fn run(mut self) -> (Option<String>, u64) {
        for _ in 0..STEPS {
            self.step();
        }
        self.settle();
        for number in 0..KEYS {
            self.expire(number);
        }
        self.settle();
        self.floor = self.versions;
        for _ in 0..2 {
            (0..KEYS).for_each(|number| self.read(number));
            self.settle();
        }
        (self.failure, self.cache.counters().hits)
    }
}

#[test]
fn no_history_shows_what_is_known_to_be_over() {
    let mut hits = 0;
    for seed in 0..2000 {
        let (failure, seen) = World::new(seed, CacheGuards::default()).run();
        assert_eq!(failure, None, "seed {seed}");
        hits += seen;
    }
    // Two rounds of quiet reads make six hits at least; the histories themselves have to have some, too.
    assert!(hits > 2000 * 10, "{hits} hits show nothing");
}

#[test]
fn every_guard_is_needed() {
    let all = CacheGuards::default();
    let without = [
        ("detach", CacheGuards { detach: false, ..all }),
        ("drop_on_end", CacheGuards { drop_on_end: false, ..all }),
        ("detach_on_end", CacheGuards { detach_on_end: false, ..all }),
        ("drop_on_move", CacheGuards { drop_on_move: false, ..all }),
        ("flush", CacheGuards { flush: false, ..all }),
        ("expiry", CacheGuards { expiry: false, ..all }),
    ];
    for (name, guards) in without {
        let is_noticed = (0..2000).any(|seed| World::new(seed, guards).run().0.is_some());
        assert!(is_noticed, "without {name} no history fails");
    }
}

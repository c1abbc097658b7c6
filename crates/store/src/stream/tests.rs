//! The snapshot against a copy of the data set that was made at the opening instant, under thousands of interleavings.
//!
//! That effects replay to the same data set is tested where the commands are, in the server.

use super::*;
use crate::changes::{Changes, Settings};
use crate::evict::{Evictor, Policy};
use crate::hash::OldExpiry;
use crate::keyspace::{Expiry, Keyspace};
use crate::limits::EncodingLimits;
use crate::list::{End, Side};
use crate::notify::Class;
use crate::packed::ElemBuf;
use crate::store::DB_COUNT;
use crate::value::{Value, ValueRef};
use std::collections::BTreeMap;
use towline_cluster::key_slot;
use towline_rdb::{Limits, Object, decode_dump};
use towline_sansio::Prng;

/// Database and key to expiry and value.
type Contents = BTreeMap<(u8, Vec<u8>), (Option<u64>, Object)>;

fn object_of(value: ValueRef<'_>) -> Object {
    let text = |elem: crate::packed::Elem<'_>| elem.render(&mut ElemBuf::new()).to_vec();
    let object = match value {
        ValueRef::String(string) => Object::String(string.to_vec()),
        ValueRef::List(list) => Object::List(list.iter().map(text).collect()),
        ValueRef::Set(set) => Object::Set(set.iter().map(text).collect()),
        ValueRef::Zset(zset) => {
            Object::Zset(zset.iter().map(|(member, score)| (member.to_vec(), score)).collect())
        }
        ValueRef::Hash(hash) => {
            let field = |field: crate::hash::Field<'_>| towline_rdb::HashField {
                name: text(field.name),
                value: text(field.value),
                expires_at_ms: field.expires_at_ms,
            };
            Object::Hash(hash.iter().map(field).collect())
        }
    };
    sorted(object)
}

/// The object in an order that does not depend on encodings.
fn sorted(mut object: Object) -> Object {
    match &mut object {
        Object::String(_) | Object::List(_) => {}
        Object::Set(members) => members.sort(),
        Object::Zset(members) => members.sort_by(|a, b| a.0.cmp(&b.0)),
        Object::Hash(fields) => fields.sort_by(|a, b| a.name.cmp(&b.name)),
    }
    object
}

struct World {
    store: Store,
    settings: Settings,
    changes: Changes,
    rng: Prng,
    now_ms: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let limits = EncodingLimits {
            hash_max_listpack_entries: 2,
            set_max_intset_entries: 2,
            set_max_listpack_entries: 2,
            zset_max_listpack_entries: 2,
            list_max_listpack_size: 2,
            ..EncodingLimits::default()
        };
        let settings = Settings { limits, policy: Policy::AllKeysRandom, ..Settings::default() };
        let (changes, rng) = (Changes::new(seed), Prng::new(seed));
        Self { store: Store::new(), settings, changes, rng, now_ms: 1_000_000 }
    }

    fn contents(&mut self) -> Contents {
        let mut all = Contents::new();
        for db in 0..DB_COUNT {
            let mut from = 0;
            while let Some(slot) = self.store.next_occupied(db, from) {
                from = usize::from(slot) + 1;
                let ks = Keyspace::hold(&self.store, [slot], &self.settings, &mut self.changes, db, 0);
                ks.for_each_in_slot(slot, |entry| {
                    if entry.expires_at_ms().is_none_or(|at| at > self.now_ms) {
                        let value = (entry.expires_at_ms(), object_of(entry.value_ref()));
                        all.insert((db, entry.key().to_vec()), value);
                    }
                });
                if from >= SLOT_COUNT {
                    break;
                }
            }
        }
        all
    }

    fn key(&mut self) -> Vec<u8> {
        let tag = ["a", "b", "c"][self.rng.below(3) as usize];
        format!("{{{tag}}}{}", self.rng.below(12)).into_bytes()
    }

    fn element(&mut self) -> Vec<u8> {
        match self.rng.below(3) {
            0 => self.rng.below(40).to_string().into_bytes(),
            _ => format!("element:{}", self.rng.below(60)).into_bytes(),
        }
    }

    /// Changes something.
    fn step(&mut self) {
        let (key, other, element) = (self.key(), self.key(), self.element());
        let (r, r2, number) = (self.rng.below(100), self.rng.next_u64(), self.rng.below(200));
        let db = (self.rng.below(8) / 6) as u8;
        let mut rng = Prng::new(r2);
        let limits = self.settings.limits;
        if r == 99 {
            let mut evictor = Evictor::default();
            evictor.evict_one(&self.store, &self.settings, &mut self.changes, self.now_ms, 3);
            return;
        }
        if r >= 96 {
            let mut ks = Keyspace::hold_all(&self.store, &self.settings, &mut self.changes, db, self.now_ms);
            if r == 96 {
                ks.flush()
            } else {
                ks.swap(0, 1)
            }
            return;
        }
        let slots = [key_slot(&key), key_slot(&other)];
        let mut ks = Keyspace::hold(&self.store, slots, &self.settings, &mut self.changes, db, self.now_ms);
        let at = self.now_ms + number;
        match r {
            0..8 => ks.set_string(&key, &element, if r < 3 { Expiry::At(at) } else { Expiry::Keep }),
            8..10 => ks.set_string(&key, &vec![b'x'; 20_000], Expiry::Clear),
            10..12 => {
                if let Ok(Some(mut text)) = ks.string_mut(&key) {
                    text.append(&element);
                }
            }
            12..30 => hash_step(&mut ks, &key, &element, number, at, limits),
            30..44 => set_step(&mut ks, &key, &element, number, &mut rng, limits),
            44..60 => zset_step(&mut ks, &key, &element, number, limits),
            60..80 => list_step(&mut ks, &key, &element, number, r2, limits),
            80..83 => drop(ks.delete(&key)),
            83..86 => {
                if let Some((value, expiry)) = ks.take(&key) {
                    ks.set_value(&other, value, expiry.map_or(Expiry::Clear, Expiry::At));
                }
            }
            86..90 => drop(ks.set_expiry(&key, (r > 86).then_some(at))),
            90..93 => drop(ks.expire_due(slots[0], 5)),
            _ => drop(ks.exists(&key)),
        }
        ks.changed_or_emptied(&key, Class::Generic, "test");
        drop(ks);
        self.changes.garbage.clear();
        self.changes.tables.clear();
        self.changes.ready.clear();
        if r2.is_multiple_of(8) {
            self.now_ms += number / 8;
        }
    }
}

fn hash_step(
    ks: &mut Keyspace<'_>,
    key: &[u8],
    element: &[u8],
    number: u64,
    at: u64,
    limits: EncodingLimits,
) {
    let Ok(mut hash) = ks.hash_or_new(key) else { return };
    hash.set(element, number.to_string().as_bytes(), OldExpiry::Keep, &limits);
    match number {
        0..50 => drop(hash.remove(element)),
        50..70 => drop(hash.set_expires_at_ms(element, at)),
        70..80 => drop(hash.persist(element)),
        _ => {}
    }
}

fn set_step(
    ks: &mut Keyspace<'_>,
    key: &[u8],
    element: &[u8],
    number: u64,
    rng: &mut Prng,
    limits: EncodingLimits,
) {
    let Ok(mut set) = ks.set_or_new(key) else { return };
    match number {
        0..120 => drop(set.add_all([element].into_iter(), &limits)),
        120..170 => drop(set.remove(element)),
        170..190 => drop(set.pop_random(rng)),
        _ => drop(set.pop_sample((number % 4) as usize * 3, rng)),
    }
}

fn zset_step(ks: &mut Keyspace<'_>, key: &[u8], element: &[u8], number: u64, limits: EncodingLimits) {
    let Ok(mut zset) = ks.zset_or_new(key) else { return };
    match number {
        0..120 => drop(zset.insert(element, number as f64, &limits)),
        120..185 => drop(zset.remove(element)),
        _ => drop(zset.remove_range(0..(number % 5) as usize)),
    }
}

fn list_step(ks: &mut Keyspace<'_>, key: &[u8], element: &[u8], number: u64, r: u64, limits: EncodingLimits) {
    let Ok(mut list) = ks.list_or_new(key) else { return };
    let end = if r.is_multiple_of(2) { End::Front } else { End::Back };
    let len = list.len().max(1) as u64;
    match number {
        0..80 => list.push_all(end, [element, b"pushed"], &limits),
        80..110 => list.drop_from(end, (number % 3) as usize, &limits),
        110..130 => drop(list.set((r % len) as usize, element, &limits)),
        130..150 => {
            let side = if end == End::Front { Side::Before } else { Side::After };
            list.insert_beside(side, b"pushed", element, &limits);
        }
        150..170 => drop(list.remove_equal(end, (number % 3) as usize + 1, b"pushed", &limits)),
        170..190 => {
            let to = if number.is_multiple_of(2) { End::Front } else { End::Back };
            list.rotate(end, to, &limits);
        }
        _ => list.keep(1..len as usize, &limits),
    }
}

/// A key in parts: database and key, expiry, object so far.
type Begun = ((u8, Vec<u8>), Option<u64>, Vec<u8>);

/// Puts a snapshot together.
#[derive(Default)]
struct Snapshot {
    contents: Contents,
    begun: Option<Begun>,
}

impl Snapshot {
    fn put(&mut self, key: (u8, Vec<u8>), expires_at_ms: Option<u64>, object: Vec<u8>) {
        let object = decode_dump(&restore_payload(object), Limits::default()).expect("the object is whole");
        let old = self.contents.insert(key, (expires_at_ms, sorted(object)));
        assert!(old.is_none(), "a key came twice");
    }

    fn add(&mut self, batch: &Batch) {
        for image in batch.images() {
            match image {
                Image::Key { head, object } => {
                    assert!(self.begun.is_none(), "another key in between");
                    self.put((head.db, head.key.to_vec()), head.expires_at_ms, object.to_vec());
                }
                Image::Begin { head, object } => {
                    assert!(self.begun.is_none(), "another key in between");
                    self.begun = Some(((head.db, head.key.to_vec()), head.expires_at_ms, object.to_vec()));
                }
                Image::Part { elements } => self.begun.as_mut().unwrap().2.extend_from_slice(elements),
                Image::End => {
                    let (key, at, object) = self.begun.take().unwrap();
                    self.put(key, at, object);
                }
            }
        }
    }
}

fn assert_same(seed: u64, wanted: &Contents, got: &Contents) {
    for (key, value) in wanted {
        assert_eq!(Some(value), got.get(key), "seed {seed}, {:?}", key.1.escape_ascii().to_string());
    }
    for key in got.keys() {
        assert!(wanted.contains_key(key), "seed {seed}, {:?} is too much", key.1.escape_ascii().to_string());
    }
}

#[test]
fn a_snapshot_is_the_data_set_of_the_opening_instant_whatever_happens_meanwhile() {
    for seed in 0..400 {
        let mut world = World::new(seed);
        for _ in 0..world.rng.below(400) {
            world.step();
        }
        let elements = [1, 2, 5, 256][world.rng.below(4) as usize];
        let bytes = if world.rng.below(2) == 0 { 3000 } else { 64 << 10 };
        let follows = world.rng.below(2) == 0;
        let config =
            Config { follows, batch_bytes: 1, piece: Piece { elements, bytes }, ..Config::default() };
        let mut streams = Vec::new();
        for _ in 0..=world.rng.below(3) {
            let wanted = world.contents();
            let slots = [b"{a}", b"{b}", b"{c}"].map(|tag| key_slot(tag));
            let stream = SlotStream::open(&world.store, slots, world.now_ms, &config);
            streams.push((stream, wanted, Snapshot::default(), false));
            for _ in 0..world.rng.below(20) {
                world.step();
            }
        }
        let busy = world.rng.below(12);
        while streams.iter().any(|stream| !stream.3) {
            for _ in 0..world.rng.below(busy + 1) {
                world.step();
            }
            let at = world.rng.below(streams.len() as u64) as usize;
            let (stream, _, snapshot, is_done) = &mut streams[at];
            let mut batch = Batch::default();
            let progress = stream.next(&world.store, &mut batch).expect("the stream keeps up");
            snapshot.add(&batch);
            *is_done = progress.is_snapshot_done;
        }
        for (stream, wanted, snapshot, _) in streams {
            assert_same(seed, &wanted, &snapshot.contents);
            assert_eq!(stream.shared.held_bytes(), 0, "seed {seed}: marks are given back");
            stream.close(&world.store);
        }
    }
}

/// One large value of each kind, changed in front of and behind the walk over its elements.
#[test]
fn elements_that_change_between_the_pieces_of_their_value_come_as_they_were() {
    for seed in 0..600 {
        let mut world = World::new(seed);
        let change = |world: &mut World, count: u64| {
            let (slot, now_ms, limits) = (key_slot(b"{a}"), world.now_ms, world.settings.limits);
            let World { store, settings, changes, rng, .. } = world;
            for _ in 0..count {
                let mut ks = Keyspace::hold(store, [slot], settings, changes, 0, now_ms);
                let element = format!("element:{}", rng.below(60)).into_bytes();
                let (number, r, kind) = (rng.below(200), rng.next_u64(), rng.below(4));
                let key = [b"{a}h", b"{a}s", b"{a}z", b"{a}l"][kind as usize];
                match kind {
                    0 => hash_step(&mut ks, key, &element, number, now_ms + 1000, limits),
                    1 => set_step(&mut ks, key, &element, number, rng, limits),
                    2 => zset_step(&mut ks, key, &element, number, limits),
                    _ => list_step(&mut ks, key, &element, number, r, limits),
                }
                ks.changed_or_emptied(key, Class::Generic, "test");
            }
        };
        let count = 600 + world.rng.below(600);
        change(&mut world, count);
        let wanted = world.contents();
        let piece = Piece { elements: 1 + world.rng.below(4) as usize, bytes: 64 << 10 };
        let config = Config { batch_bytes: 1, piece, ..Config::default() };
        let mut stream = SlotStream::open(&world.store, [key_slot(b"{a}")], world.now_ms, &config);
        let (mut snapshot, mut batch) = (Snapshot::default(), Batch::default());
        let busy = 1 + world.rng.below(12);
        while !stream.next(&world.store, &mut batch).unwrap().is_snapshot_done {
            snapshot.add(&batch);
            let count = world.rng.below(busy);
            change(&mut world, count);
        }
        snapshot.add(&batch);
        assert_same(seed, &wanted, &snapshot.contents);
        assert_eq!(stream.shared.held_bytes(), 0, "seed {seed}: what was saved is given back");
        stream.close(&world.store);
    }
}

/// Keys of one slot, so many that its table splits while the walk stands in it.
#[test]
fn a_table_that_splits_under_the_walk_is_sent_once() {
    for seed in 0..20 {
        let mut world = World::new(seed);
        let mut next = 0;
        let mut add = |world: &mut World, count: u64| {
            let slot = key_slot(b"{a}");
            let now_ms = world.now_ms;
            let mut ks = Keyspace::hold(&world.store, [slot], &world.settings, &mut world.changes, 0, now_ms);
            for _ in 0..count {
                ks.set_string(format!("{{a}}{next}").as_bytes(), b"value", Expiry::Clear);
                next += 1;
            }
        };
        let count = world.rng.below(1500);
        add(&mut world, count);
        let wanted = world.contents();
        let config = Config { batch_bytes: 1, ..Config::default() };
        let mut stream = SlotStream::open(&world.store, [key_slot(b"{a}")], world.now_ms, &config);
        let (mut snapshot, mut batch) = (Snapshot::default(), Batch::default());
        loop {
            let progress = stream.next(&world.store, &mut batch).unwrap();
            snapshot.add(&batch);
            if progress.is_snapshot_done {
                break;
            }
            let count = world.rng.below(800);
            add(&mut world, count);
        }
        assert_same(seed, &wanted, &snapshot.contents);
        stream.close(&world.store);
    }
}

fn set(world: &mut World, key: &[u8], value: &[u8]) {
    let now_ms = world.now_ms;
    let slots = [key_slot(key)];
    let mut ks = Keyspace::hold(&world.store, slots, &world.settings, &mut world.changes, 0, now_ms);
    ks.set_string(key, value, Expiry::Clear);
}

#[test]
fn a_consumer_that_is_too_slow_ends_the_stream_and_nothing_else() {
    let mut world = World::new(1);
    (0..1000).for_each(|n| set(&mut world, format!("k{n}").as_bytes(), b"old"));
    let config = Config { bytes_max: 10_000, ..Config::default() };
    let mut stream = SlotStream::open(&world.store, 0..SLOT_COUNT as Slot, 0, &config);
    let patient = Config::default();
    let mut other = SlotStream::open(&world.store, 0..SLOT_COUNT as Slot, 0, &patient);
    let watch = stream.watch();
    assert_eq!(watch.check(), Ok(()));
    for n in 0..1000 {
        set(&mut world, format!("k{n}").as_bytes(), b"new");
        assert!(stream.held_bytes() < 10_000 + 1_000);
    }
    assert_eq!(watch.check(), Err(Overrun));
    let mut batch = Batch::default();
    assert_eq!(stream.next(&world.store, &mut batch), Err(Overrun));
    assert_eq!(stream.next(&world.store, &mut batch), Err(Overrun));
    let mut snapshot = Snapshot::default();
    while !other.next(&world.store, &mut batch).unwrap().is_snapshot_done {
        snapshot.add(&batch);
    }
    snapshot.add(&batch);
    assert_eq!(snapshot.contents.len(), 1000);
    assert!(snapshot.contents.values().all(|(_, value)| *value == Object::String(b"old".to_vec())));
    drop(stream);
    other.close(&world.store);
    // Only the stream that was not closed may still be seen, and a visit forgets it.
    (0..1000).for_each(|n| set(&mut world, format!("k{n}").as_bytes(), b"new"));
    assert!((0..1000).all(|n| world.store.lock(key_slot(format!("k{n}").as_bytes())).taps.is_none()));
}

#[test]
fn a_snapshot_beside_a_tail_knows_which_units_it_has() {
    let mut world = World::new(1);
    let tail = Config { has_snapshot: false, position_start: 100, ..Config::default() };
    let snapshot = Config { follows: false, ..Config::default() };
    let mut log = SlotStream::open(&world.store, 0..SLOT_COUNT as Slot, 0, &tail);
    (0..3).for_each(|n| set(&mut world, format!("k{n}").as_bytes(), b"v"));
    let (mut base, position) = log.open_beside(&world.store, 0, &snapshot);
    assert_eq!(position, 103);
    (3..5).for_each(|n| set(&mut world, format!("k{n}").as_bytes(), b"v"));
    let mut batch = Batch::default();
    assert_eq!(log.next(&world.store, &mut batch).unwrap().position, 105);
    assert_eq!(batch.units().map(|unit| unit.position.get()).collect::<Vec<_>>(), [101, 102, 103, 104, 105]);
    let mut images = 0;
    while !base.next(&world.store, &mut batch).unwrap().is_snapshot_done {
        images += batch.images().count();
    }
    assert_eq!((images, batch.images().count()), (3, 0));
    base.close(&world.store);
    log.close(&world.store);
}

#[test]
fn a_key_that_had_expired_has_no_image_but_whoever_finds_it_alive_sends_it() {
    let mut world = World::new(1);
    let slot = key_slot(b"k");
    {
        let mut ks = Keyspace::hold(&world.store, [slot], &world.settings, &mut world.changes, 0, 100);
        ks.set_string(b"k", b"v", Expiry::At(200));
    }
    let mut stream = SlotStream::open(&world.store, [slot], 201, &Config::default());
    let mut batch = Batch::default();
    let mut images = 0;
    while !stream.next(&world.store, &mut batch).unwrap().is_snapshot_done {
        images += batch.images().count();
    }
    assert_eq!(images, 0);
    // A clock that is behind.
    let mut ks = Keyspace::hold(&world.store, [slot], &world.settings, &mut world.changes, 0, 199);
    ks.set_expiry(b"k", None);
    drop(ks);
    stream.next(&world.store, &mut batch).unwrap();
    let effects: Vec<String> = batch
        .units()
        .flat_map(|unit| {
            unit.effects().map(|effect| String::from_utf8_lossy(effect.command).replace("\r\n", " "))
        })
        .collect();
    assert_eq!(effects, ["*5 $3 SET $1 k $1 v $4 PXAT $3 200 ", "*2 $7 PERSIST $1 k "]);
    stream.close(&world.store);
}

#[test]
fn writers_and_readers_on_threads_agree() {
    const KEYS: u64 = 20_000;
    let mut world = World::new(1);
    (0..KEYS).for_each(|n| set(&mut world, format!("k{n}").as_bytes(), b"0"));
    let store = &world.store;
    std::thread::scope(|scope| {
        for writer in 0..2 {
            scope.spawn(move || {
                let (settings, mut changes) = (Settings::default(), Changes::new(writer));
                let mut rng = Prng::new(writer);
                for round in 1..60_000u64 {
                    let key = format!("k{}", rng.below(KEYS));
                    let slots = [key_slot(key.as_bytes())];
                    let mut ks = Keyspace::hold(store, slots, &settings, &mut changes, 0, 0);
                    ks.set_string(key.as_bytes(), round.to_string().as_bytes(), Expiry::Clear);
                }
            });
        }
        let mut stream = SlotStream::open(store, 0..SLOT_COUNT as Slot, 0, &Config::default());
        let (mut snapshot, mut batch, mut last) = (Snapshot::default(), Batch::default(), 0);
        loop {
            let progress = stream.next(store, &mut batch).unwrap();
            snapshot.add(&batch);
            for unit in batch.units() {
                last += 1;
                assert_eq!(unit.position.get(), last);
            }
            if progress.is_snapshot_done {
                break;
            }
        }
        assert_eq!(snapshot.contents.len() as u64, KEYS);
        stream.close(store);
    });
}

#[test]
fn values_at_the_limits_of_pieces_come_whole() {
    let mut world = World::new(1);
    let config = Config { batch_bytes: 1, ..Config::default() };
    let big = vec![b'x'; 200_000];
    set(&mut world, b"text", &big);
    {
        let slots = [b"list".as_slice(), b"hash", b"zset"].map(key_slot);
        let (settings, now_ms) = (&world.settings, world.now_ms);
        let mut ks = Keyspace::hold(&world.store, slots, settings, &mut world.changes, 0, now_ms);
        for n in 0..1000u64 {
            let element = n.to_string().into_bytes();
            ks.list_or_new(b"list").unwrap().push(End::Back, &element, &settings.limits);
            ks.zset_or_new(b"zset").unwrap().insert(&element, n as f64, &settings.limits);
            let mut hash = ks.hash_or_new(b"hash").unwrap();
            hash.set(&element, b"v", OldExpiry::Clear, &settings.limits);
            if n == 5 {
                hash.set_expires_at_ms(&element, u64::from(u32::MAX) * 1000);
            }
            ks.modified(b"hash");
        }
        ks.set_value(b"list", Value::Bytes(b"replaced".to_vec()), Expiry::Clear);
        ks.delete(b"list");
        for n in 0..1000u64 {
            ks.list_or_new(b"list").unwrap().push(End::Back, n.to_string().as_bytes(), &settings.limits);
        }
    }
    let wanted = world.contents();
    let mut stream = SlotStream::open(&world.store, 0..SLOT_COUNT as Slot, world.now_ms, &config);
    let (mut snapshot, mut batch, mut parts) = (Snapshot::default(), Batch::default(), 0);
    while !stream.next(&world.store, &mut batch).unwrap().is_snapshot_done {
        parts += batch.images().filter(|image| matches!(image, Image::Part { .. })).count();
        assert!(batch.bytes() < 200_000, "a batch is a piece");
        snapshot.add(&batch);
    }
    assert!(parts >= 4 + 3 * 4, "{parts} parts");
    assert_same(0, &wanted, &snapshot.contents);
    stream.close(&world.store);
}

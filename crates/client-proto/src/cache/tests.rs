//! One rule at a time; [`simulation`] has all of them together.

mod simulation;

use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

use towline_cluster::key_slot;
use towline_sansio::Instant;

use super::{Cache, CacheConfig, Fresh, Look, Name, ReadId, SourceId};

/// FNV-1a: the same in every run.
#[derive(Clone, Copy, Default)]
pub(super) struct Fnv(u64);

impl BuildHasher for Fnv {
    type Hasher = Self;

    fn build_hasher(&self) -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

const NODE: SourceId = SourceId(1);
const OTHER: SourceId = SourceId(2);
const EVER: Duration = Duration::MAX;

fn name<'a>(key: &'a str, command: &'a str) -> Name<'a> {
    Name::new(&Fnv::default(), key.as_bytes(), command.as_bytes())
}

fn at(seconds: u64) -> Instant {
    Instant::from_nanos(seconds * 1_000_000_000)
}

fn fresh(value: u32, source: SourceId) -> Option<Fresh<u32>> {
    Some(Fresh { value, bytes: 4, source, ttl: None })
}

fn cache(config: CacheConfig) -> Cache<&'static str, u32> {
    let mut cache = Cache::new(config);
    cache.began(NODE);
    cache.began(OTHER);
    cache
}

fn begin(cache: &mut Cache<&'static str, u32>, name: &Name<'_>) -> ReadId {
    match cache.look_up(at(0), name, EVER, || "leader") {
        Look::Read(read) => read,
        other => panic!("{other:?}"),
    }
}

fn store(cache: &mut Cache<&'static str, u32>, key: &str, value: u32) {
    let command = format!("GET {key}");
    let read = begin(cache, &name(key, &command));
    cache.complete(read, fresh(value, NODE));
}

fn look(cache: &mut Cache<&'static str, u32>, now: Instant, key: &str) -> Look<u32> {
    cache.look_up(now, &name(key, &format!("GET {key}")), EVER, || "late")
}

fn forget(cache: &mut Cache<&'static str, u32>, key: &str) -> bool {
    cache.invalidate(name(key, "").key_hash(), key.as_bytes())
}

#[test]
fn callers_of_one_read_share_it() {
    let mut cache = cache(CacheConfig { waiters_max: 3, ..CacheConfig::default() });
    let get = name("k", "GET k");
    let read = begin(&mut cache, &get);
    assert_eq!(cache.look_up(at(0), &get, EVER, || "second"), Look::Joined);
    assert_eq!(cache.look_up(at(0), &get, EVER, || "third"), Look::Joined);
    assert_eq!(cache.look_up(at(0), &get, EVER, || "fourth"), Look::Bypass, "the line is full");
    assert_eq!(cache.complete(read, fresh(7, NODE)), ["leader", "second", "third"]);
    assert_eq!(cache.look_up(at(0), &get, EVER, || "fifth"), Look::Hit(7));
    assert!(cache.complete(read, fresh(8, NODE)).is_empty(), "a read ends once");
    let counters = cache.counters();
    assert_eq!((counters.misses, counters.coalesced, counters.bypassed, counters.hits), (1, 2, 1, 1));
}

#[test]
fn what_is_invalidated_while_it_is_read_is_not_kept() {
    let mut cache = cache(CacheConfig::default());
    let read = begin(&mut cache, &name("k", "GET k"));
    assert!(forget(&mut cache, "k"));
    // Who comes now must not get what was read before.
    let again = begin(&mut cache, &name("k", "GET k"));
    assert_eq!(cache.complete(read, fresh(1, NODE)), ["leader"]);
    assert_eq!(look(&mut cache, at(0), "k"), Look::Joined);
    assert_eq!(cache.complete(again, fresh(2, NODE)), ["leader", "late"]);
    assert_eq!(look(&mut cache, at(0), "k"), Look::Hit(2));
}

#[test]
fn a_key_takes_all_of_its_commands_along() {
    let mut cache = cache(CacheConfig::default());
    for command in ["HGET h a", "HGET h b", "HLEN h"] {
        let read = begin(&mut cache, &name("h", command));
        cache.complete(read, fresh(1, NODE));
    }
    store(&mut cache, "other", 2);
    assert_eq!(cache.len(), 4);
    assert!(forget(&mut cache, "h") && !forget(&mut cache, "h"));
    assert_eq!((cache.len(), look(&mut cache, at(0), "other")), (1, Look::Hit(2)));
    forget(&mut cache, "other");
    assert_eq!((cache.bytes(), cache.is_empty()), (0, true));
}

#[test]
fn the_end_of_a_source_drops_its_entries_and_detaches_every_read() {
    let mut cache = cache(CacheConfig::default());
    store(&mut cache, "a", 1);
    let read = begin(&mut cache, &name("b", "GET b"));
    cache.complete(read, fresh(2, OTHER));
    let pending = begin(&mut cache, &name("c", "GET c"));
    cache.ended(NODE);
    cache.began(NODE);
    cache.complete(pending, fresh(3, NODE));
    assert!(matches!(look(&mut cache, at(0), "a"), Look::Read(_)));
    assert_eq!(look(&mut cache, at(0), "b"), Look::Hit(2));
    assert!(matches!(look(&mut cache, at(0), "c"), Look::Read(_)));
}

#[test]
fn without_a_source_nothing_is_kept() {
    let mut cache = cache(CacheConfig::default());
    store(&mut cache, "a", 1);
    cache.ended(NODE);
    let read = begin(&mut cache, &name("b", "GET b"));
    cache.complete(read, fresh(1, NODE));
    assert!(matches!(look(&mut cache, at(0), "b"), Look::Read(_)), "nobody would announce its changes");
    cache.ended(OTHER);
    assert_eq!((cache.is_on(), look(&mut cache, at(0), "c")), (false, Look::Bypass));
}

#[test]
fn all_keys_of_one_source_are_not_those_of_the_others() {
    let mut cache = cache(CacheConfig::default());
    store(&mut cache, "a", 1);
    let read = begin(&mut cache, &name("b", "GET b"));
    cache.complete(read, fresh(2, OTHER));
    cache.invalidate_all(NODE);
    assert!(matches!(look(&mut cache, at(0), "a"), Look::Read(_)));
    assert_eq!(look(&mut cache, at(0), "b"), Look::Hit(2));
}

#[test]
fn a_slot_that_moves_takes_its_entries_along() {
    let mut cache = cache(CacheConfig::default());
    store(&mut cache, "a", 1);
    store(&mut cache, "b", 2);
    let pending = begin(&mut cache, &name("{a}c", "GET {a}c"));
    cache.slots_moved(|slot| slot == key_slot(b"a"));
    cache.complete(pending, fresh(3, NODE));
    assert!(matches!(look(&mut cache, at(0), "a"), Look::Read(_)));
    assert!(matches!(look(&mut cache, at(0), "{a}c"), Look::Read(_)));
    assert_eq!(look(&mut cache, at(0), "b"), Look::Hit(2));
}

#[test]
fn nothing_outlives_its_key_or_what_the_caller_allows() {
    let mut cache = cache(CacheConfig::default());
    let read = begin(&mut cache, &name("k", "GET k"));
    let ttl = Some(Duration::from_secs(10));
    cache.complete(read, Some(Fresh { value: 1, bytes: 4, source: NODE, ttl }));
    assert_eq!(look(&mut cache, at(9), "k"), Look::Hit(1));
    assert!(
        matches!(look(&mut cache, at(10), "k"), Look::Read(_)),
        "the time counts from the beginning of the read"
    );
    store(&mut cache, "aged", 1);
    let young = |cache: &mut Cache<_, _>, now| {
        cache.look_up(now, &name("aged", "GET aged"), Duration::from_secs(5), || "young")
    };
    assert_eq!(young(&mut cache, at(4)), Look::Hit(1));
    assert!(matches!(young(&mut cache, at(5)), Look::Read(_)));
    assert_eq!(cache.counters().expired, 2);
}

#[test]
fn bytes_are_bounded_and_what_is_used_stays() {
    let entry = super::Entry::<u32>::bytes_of(&name("key:00", "GET key:00")) + 4;
    let mut cache = cache(CacheConfig { bytes_max: 10 * entry, ..CacheConfig::default() });
    for number in 0..100 {
        store(&mut cache, &format!("key:{number:02}"), number);
        assert!(cache.bytes() <= 10 * entry);
        if number > 0 {
            assert_eq!(look(&mut cache, at(0), "key:00"), Look::Hit(0), "after {number} others");
        }
    }
    assert_eq!((cache.len(), cache.counters().evicted), (10, 90));
    // Reads under way cannot be evicted: one more than there is room for goes by the cache.
    let mut begun = 0;
    while let Look::Read(_) = look(&mut cache, at(0), &format!("new:{begun:02}")) {
        begun += 1;
    }
    assert_eq!(begun, 10);
    assert!(cache.bytes() <= 10 * entry);
}

#[test]
fn a_reply_that_is_too_large_is_not_kept() {
    let mut cache = cache(CacheConfig { entry_bytes_max: 1000, ..CacheConfig::default() });
    let read = begin(&mut cache, &name("k", "GET k"));
    cache.complete(read, Some(Fresh { value: 1, bytes: 1000, source: NODE, ttl: None }));
    assert_eq!(cache.bytes(), 0);
}

#[test]
fn clearing_leaves_nothing() {
    let mut cache = cache(CacheConfig::default());
    store(&mut cache, "a", 1);
    let pending = begin(&mut cache, &name("b", "GET b"));
    cache.clear();
    assert_eq!(cache.complete(pending, fresh(2, NODE)), ["leader"]);
    assert_eq!((cache.len(), cache.bytes(), cache.counters().dropped), (0, 0, 2));
}

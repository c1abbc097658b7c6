//! Eviction: which key goes when memory is short.
//!
//! Owns: the policies, the meaning of an entry's access bits, and the choice of a victim. Does **not** own measuring
//! memory or deciding when to evict. No list of all keys exists: victims are the best of a few samples, gathered in a pool.
//! Source: Redis documentation, "Key eviction".

use crate::changes::{Changes, Settings};
use crate::keyspace::Keyspace;
use crate::notify::Class;
use crate::store::{DB_COUNT, Store};
use towline_cluster::{SLOT_COUNT, Slot, key_slot};

/// `maxmemory-policy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// Refuse commands that need memory. The default, as in Redis.
    #[default]
    NoEviction,
    /// The least recently used of all keys.
    AllKeysLru,
    /// The least frequently used of all keys.
    AllKeysLfu,
    /// Any key.
    AllKeysRandom,
    /// The least recently used of the keys that expire.
    VolatileLru,
    /// The least frequently used of the keys that expire.
    VolatileLfu,
    /// Any key that expires.
    VolatileRandom,
    /// The key that expires first.
    VolatileTtl,
}

impl Policy {
    /// All policies.
    pub const ALL: [Self; 8] = [
        Self::NoEviction,
        Self::AllKeysLru,
        Self::AllKeysLfu,
        Self::AllKeysRandom,
        Self::VolatileLru,
        Self::VolatileLfu,
        Self::VolatileRandom,
        Self::VolatileTtl,
    ];

    /// The name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoEviction => "noeviction",
            Self::AllKeysLru => "allkeys-lru",
            Self::AllKeysLfu => "allkeys-lfu",
            Self::AllKeysRandom => "allkeys-random",
            Self::VolatileLru => "volatile-lru",
            Self::VolatileLfu => "volatile-lfu",
            Self::VolatileRandom => "volatile-random",
            Self::VolatileTtl => "volatile-ttl",
        }
    }

    fn is_volatile(self) -> bool {
        matches!(self, Self::VolatileLru | Self::VolatileLfu | Self::VolatileRandom | Self::VolatileTtl)
    }
}

const CLOCK_MASK: u32 = (1 << crate::entry::ACCESS_BITS) - 1;
/// A new key's LFU counter, so that it is not the first to go.
const LFU_INIT: u32 = 5;

fn minutes(now_ms: u64) -> u32 {
    (now_ms / 60_000) as u32 & 0xffff
}

impl Settings {
    /// Whether access bits are LFU counters.
    #[inline]
    pub fn is_lfu(&self) -> bool {
        matches!(self.policy, Policy::AllKeysLfu | Policy::VolatileLfu)
    }

    /// The access bits of a value written at `now_ms`.
    #[inline]
    pub fn first_access(&self, now_ms: u64) -> u32 {
        let now_ms = now_ms.max(self.access_from_ms);
        if self.is_lfu() { (minutes(now_ms) << 8) | LFU_INIT } else { (now_ms / 1000) as u32 & CLOCK_MASK }
    }

    /// The access bits after one more access, with a random number for the logarithmic counter.
    #[inline]
    pub fn accessed(&self, access: u32, now_ms: u64, r: u64) -> u32 {
        let now_ms = now_ms.max(self.access_from_ms);
        if !self.is_lfu() {
            return (now_ms / 1000) as u32 & CLOCK_MASK;
        }
        let mut counter = self.lfu_counter(access, now_ms);
        let grows = f64::from(counter.saturating_sub(LFU_INIT)) * f64::from(self.lfu_log_factor) + 1.0;
        if counter < 255 && (r >> 11) as f64 / (1u64 << 53) as f64 * grows < 1.0 {
            counter += 1;
        }
        (minutes(now_ms) << 8) | counter
    }

    /// The LFU counter with what it has lost since its last access: `OBJECT FREQ`.
    pub fn lfu_counter(&self, access: u32, now_ms: u64) -> u32 {
        let (then, counter) = (access >> 8, access & 0xff);
        let idle = minutes(now_ms).wrapping_sub(then) & 0xffff;
        idle.checked_div(self.lfu_decay_minutes).map_or(counter, |lost| counter.saturating_sub(lost))
    }

    /// Access bits that say "last used `idle_s` seconds ago": `RESTORE IDLETIME`.
    pub fn access_idle_for(&self, idle_s: u64, now_ms: u64) -> u32 {
        (now_ms.max(self.access_from_ms) / 1000).wrapping_sub(idle_s) as u32 & CLOCK_MASK
    }

    /// Access bits with this LFU counter: `RESTORE FREQ`.
    pub fn access_with_counter(&self, counter: u8, now_ms: u64) -> u32 {
        (minutes(now_ms.max(self.access_from_ms)) << 8) | u32::from(counter)
    }

    /// Seconds since the last access, from LRU access bits: `OBJECT IDLETIME`.
    pub fn idle_s(&self, access: u32, now_ms: u64) -> u64 {
        u64::from(((now_ms / 1000) as u32).wrapping_sub(access) & CLOCK_MASK)
    }
}

/// Victims kept from one choice to the next.
const POOL_MAX: usize = 16;
/// Slots that are looked at for one sample before the database counts as having no candidate.
const TRIES_PER_SAMPLE: usize = 8;

#[derive(Debug)]
struct Candidate {
    /// The higher, the sooner it goes.
    score: u64,
    db: u8,
    key: Vec<u8>,
}

/// Chooses and removes victims; one per worker.
#[derive(Debug, Default)]
pub struct Evictor {
    pool: Vec<Candidate>,
}

impl Evictor {
    /// Removes the best victim among the pool and `samples` new samples; `false` when there is none, because of the
    /// policy or because no key expires. Holds one slot at a time; the caller must hold none.
    pub fn evict_one(
        &mut self,
        store: &Store,
        settings: &Settings,
        changes: &mut Changes,
        now_ms: u64,
        samples: usize,
    ) -> bool {
        if settings.policy == Policy::NoEviction {
            return false;
        }
        for _ in 0..samples.max(1) {
            if let Some(candidate) = sample(store, settings, changes, now_ms)
                && !self.pool.iter().any(|other| other.db == candidate.db && other.key == candidate.key)
            {
                self.pool.push(candidate);
            }
        }
        self.pool.sort_by_key(|candidate| candidate.score);
        self.pool.drain(..self.pool.len().saturating_sub(POOL_MAX));
        while let Some(Candidate { db, key, .. }) = self.pool.pop() {
            let mut keyspace = Keyspace::hold(store, [key_slot(&key)], settings, changes, db, now_ms);
            let expires = keyspace.expiry(&key);
            if expires.is_some_and(|at| at.is_some() || !settings.policy.is_volatile()) {
                keyspace.delete(&key);
                keyspace.changed(&key, Class::Evicted, "evicted");
                return true;
            }
        }
        false
    }
}

fn sample(store: &Store, settings: &Settings, changes: &mut Changes, now_ms: u64) -> Option<Candidate> {
    let volatile = settings.policy.is_volatile();
    let first = changes.rng.below(u64::from(DB_COUNT)) as u8;
    let mut dbs = (0..DB_COUNT).map(|i| (first + i) % DB_COUNT);
    let db = dbs.find(|&db| if volatile { store.expires(db) > 0 } else { !store.is_empty(db) })?;
    for _ in 0..TRIES_PER_SAMPLE {
        let slot = random_slot(store, db, volatile, changes.rng.below(SLOT_COUNT as u64) as usize)?;
        let r = changes.rng.next_u64();
        let keyspace = Keyspace::hold(store, [slot], settings, changes, db, now_ms);
        let key = if settings.policy == Policy::VolatileTtl {
            keyspace.expiring(slot)
        } else {
            let drawn = keyspace.sample(slot, r).filter(|entry| !volatile || entry.expires_at_ms().is_some());
            drawn.map(|entry| entry.key().to_vec()).or_else(|| keyspace.expiring(slot).filter(|_| volatile))
        };
        let mut keyspace = keyspace;
        if let Some(key) = key
            && let Some(entry) = keyspace.entry(&key)
        {
            let score = score(settings, &entry, now_ms);
            return Some(Candidate { score, db, key });
        }
    }
    None
}

fn random_slot(store: &Store, db: u8, volatile: bool, from: usize) -> Option<Slot> {
    let next =
        |from| if volatile { store.next_due(from, u64::MAX - 1) } else { store.next_occupied(db, from) };
    next(from).or_else(|| next(0))
}

fn score(settings: &Settings, entry: &crate::entry::Entry, now_ms: u64) -> u64 {
    match settings.policy {
        Policy::AllKeysLru | Policy::VolatileLru => settings.idle_s(entry.access(), now_ms),
        Policy::AllKeysLfu | Policy::VolatileLfu => {
            u64::from(255 - settings.lfu_counter(entry.access(), now_ms).min(255))
        }
        Policy::VolatileTtl => u64::MAX - entry.expires_at_ms().unwrap_or(u64::MAX),
        Policy::NoEviction | Policy::AllKeysRandom | Policy::VolatileRandom => 0,
    }
}

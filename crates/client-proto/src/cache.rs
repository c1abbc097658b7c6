//! Replies that are kept on this side until the server says that they are no longer true.
//!
//! Owns what is kept, for how long, which reads are under way, and who waits for them. Does **not** own the bytes on the wire,
//! how a reply is asked for, nor the connections: it is told of them by [`TrackingNews`](crate::TrackingNews).
//!
//! # Why nothing is stale that need not be
//!
//! The server remembers which keys a *connection* has read, and pushes an invalidation on that connection when one of them
//! changes. So an entry is as good as the connection that it was read on:
//!
//! ```text
//!   Absent --look_up--> Pending(read) --complete--> Present --look_up--> hit
//!      ^                   |                           |
//!      +---- detached -----+----- dropped -------------+      invalidated, its source ended, its slot moved, forgotten
//! ```
//!
//! * **A read is noted before it is sent.** Whatever is heard about its key from then on *detaches* it: those who wait get its
//!   reply, nobody else does, and it is not stored. So it does not matter in which order the reply and the invalidation reach
//!   this cache, only that no invalidation is skipped.
//! * **The end of a source** (its connection was lost or left) drops all that was read from it, and detaches every read: on
//!   which connection one of them is answered is not known yet.
//! * **A slot that moves** takes its entries along to nowhere, for the same reason.
//! * **A key that expires** is kept no longer than at the server: its time counts from before the read was sent.
//!
//! # Bounds
//!
//! [`CacheConfig::bytes_max`] counts keys, commands, values and bookkeeping. What does not fit evicts what was not used for
//! long, by SIEVE ([Zhang et al., NSDI 2024](https://www.usenix.org/conference/nsdi24/presentation/zhang-yazhuo)): a hit sets
//! one bit, so that it costs no list work, and what is read once leaves soon. Reads under way count, too; one more than there
//! is room for goes by the cache ([`Look::Bypass`]).

mod table;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::BuildHasher;
use std::time::Duration;

use towline_cluster::Slot;
use towline_sansio::Instant;

use table::{Entry, State, Table};

/// The choices of one cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheConfig {
    /// Bytes of all entries: keys, commands, values, bookkeeping.
    pub bytes_max: usize,
    /// Bytes of one entry at most; a larger reply is not kept.
    pub entry_bytes_max: usize,
    /// Callers that may wait for one read; more go by the cache.
    pub waiters_max: usize,
    /// Rules that a test turns off, one at a time, to see that it notices.
    #[doc(hidden)]
    pub guards: CacheGuards,
}

/// Each guard is one rule that the promise rests on. All are on; a simulation with one off must fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub struct CacheGuards {
    /// An invalidation detaches the reads of its key that are under way.
    pub detach: bool,
    /// What was read from a source goes when the source ends.
    pub drop_on_end: bool,
    /// Reads under way are detached when a source ends.
    pub detach_on_end: bool,
    /// What was read goes when its slot moves.
    pub drop_on_move: bool,
    /// A word about all keys is heeded.
    pub flush: bool,
    /// An entry ends with its key's time at the server.
    pub expiry: bool,
}

impl Default for CacheGuards {
    fn default() -> Self {
        Self {
            detach: true,
            drop_on_end: true,
            detach_on_end: true,
            drop_on_move: true,
            flush: true,
            expiry: true,
        }
    }
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self {
            bytes_max: 64 * 1024 * 1024,
            entry_bytes_max: 1024 * 1024,
            waiters_max: 4096,
            guards: CacheGuards::default(),
        }
    }
}

/// Who answers reads and announces changes: one connection after the other of one endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(pub u64);

/// A read under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadId(u64);

/// What an entry is known by: a command, and the one key that it reads.
#[derive(Debug, Clone, Copy)]
pub struct Name<'a> {
    key: &'a [u8],
    command: &'a [u8],
    key_hash: u64,
    command_hash: u64,
}

impl<'a> Name<'a> {
    /// The name of `command` on `key`. The hasher must be the same for all names of a cache, and its seed unknown to whoever
    /// chooses the keys.
    pub fn new(hasher: &impl BuildHasher, key: &'a [u8], command: &'a [u8]) -> Self {
        Self { key, command, key_hash: hasher.hash_one(key), command_hash: hasher.hash_one(command) }
    }

    /// The hash of the key alone: all that is known of one key may be kept in one place by it.
    pub const fn key_hash(&self) -> u64 {
        self.key_hash
    }
}

/// What [`Cache::look_up`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a read that was begun has to be completed"]
pub enum Look<V> {
    /// The value is here.
    Hit(V),
    /// It is being read already; the waiter was taken.
    Joined,
    /// It has to be read; the waiter was taken. [`Cache::complete`] must follow, whatever happens.
    Read(ReadId),
    /// It has to be read without the cache: there is no room for the read or for the waiter, or no source announces changes.
    Bypass,
}

/// A reply that may be kept.
#[derive(Debug, Clone, Copy)]
pub struct Fresh<V> {
    /// The value.
    pub value: V,
    /// How many bytes it takes, on the heap.
    pub bytes: usize,
    /// Who gave it. It must have been asked to announce changes of the key, before the read and on the same connection.
    pub source: SourceId,
    /// How long the key lives on at the server; `None`: without end.
    pub ttl: Option<Duration>,
}

/// Totals of a cache. They only grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheCounters {
    /// Answered without the server.
    pub hits: u64,
    /// Reads that were begun.
    pub misses: u64,
    /// Callers that waited for a read which was under way already.
    pub coalesced: u64,
    /// Sent by the cache although it was asked: no room, or no source.
    pub bypassed: u64,
    /// Entries and reads that an invalidation ended.
    pub invalidated: u64,
    /// Entries that made room.
    pub evicted: u64,
    /// Entries that ended with their connection, their slot's owner, or all keys.
    pub dropped: u64,
    /// Entries whose time was over when they were looked at.
    pub expired: u64,
}

impl CacheCounters {
    /// Adds those of another part.
    pub const fn add(&mut self, other: &Self) {
        self.hits += other.hits;
        self.misses += other.misses;
        self.coalesced += other.coalesced;
        self.bypassed += other.bypassed;
        self.invalidated += other.invalidated;
        self.evicted += other.evicted;
        self.dropped += other.dropped;
        self.expired += other.expired;
    }
}

/// One read under way.
#[derive(Debug)]
struct Read<W> {
    waiters: Vec<W>,
    /// Where its entry is; `None` once it is detached.
    at: Option<u32>,
}

/// The entries, and the reads under way. `V` is a reply, cheap to clone; `W` whoever waits for one.
#[derive(Debug)]
pub struct Cache<W, V> {
    config: CacheConfig,
    table: Table<V>,
    reads: BTreeMap<ReadId, Read<W>>,
    next_read: u64,
    /// Sources that announce changes at present.
    on: BTreeSet<SourceId>,
    counters: CacheCounters,
}

impl<W, V: Clone> Cache<W, V> {
    /// An empty cache without sources.
    pub fn new(config: CacheConfig) -> Self {
        Self {
            config,
            table: Table::default(),
            reads: BTreeMap::new(),
            next_read: 0,
            on: BTreeSet::new(),
            counters: CacheCounters::default(),
        }
    }

    /// Looks for the reply to a command that is at most `max_age` old. The age counts from the beginning of the read. `waiter`
    /// is asked for unless it is a hit or a bypass.
    pub fn look_up(
        &mut self,
        now: Instant,
        name: &Name<'_>,
        max_age: Duration,
        waiter: impl FnOnce() -> W,
    ) -> Look<V> {
        if self.on.is_empty() {
            self.counters.bypassed += 1;
            return Look::Bypass;
        }
        if let Some(at) = self.table.find(name) {
            match self.look_at(now, at, max_age) {
                Found::Value(value) => return Look::Hit(value),
                Found::Read(read) => return self.join(read, waiter),
                Found::Old => {
                    self.counters.expired += 1;
                    self.table.remove(at);
                }
            }
        }
        self.begin(now, name, waiter)
    }

    fn look_at(&mut self, now: Instant, at: u32, max_age: Duration) -> Found<V> {
        let is_timed = self.config.guards.expiry;
        let Some(entry) = self.table.get_mut(at) else { return Found::Old };
        match &entry.state {
            State::Pending(read) => Found::Read(*read),
            State::Present(_) if is_timed && entry.expires <= now => Found::Old,
            State::Present(_) if now.since(entry.begun) >= max_age => Found::Old,
            State::Present(value) => {
                entry.is_visited = true;
                self.counters.hits += 1;
                Found::Value(value.clone())
            }
        }
    }

    fn join(&mut self, read: ReadId, waiter: impl FnOnce() -> W) -> Look<V> {
        match self.reads.get_mut(&read) {
            Some(read) if read.waiters.len() < self.config.waiters_max => {
                read.waiters.push(waiter());
                self.counters.coalesced += 1;
                Look::Joined
            }
            _ => {
                self.counters.bypassed += 1;
                Look::Bypass
            }
        }
    }

    fn begin(&mut self, now: Instant, name: &Name<'_>, waiter: impl FnOnce() -> W) -> Look<V> {
        let read = ReadId(self.next_read);
        let bytes = Entry::<V>::bytes_of(name);
        let has_room = bytes <= self.config.entry_bytes_max && self.make_room(bytes);
        let at = has_room.then(|| self.table.insert(now, name, read, bytes)).flatten();
        let Some(at) = at else {
            self.counters.bypassed += 1;
            return Look::Bypass;
        };
        self.next_read += 1;
        self.reads.insert(read, Read { waiters: vec![waiter()], at: Some(at) });
        self.counters.misses += 1;
        Look::Read(read)
    }

    /// Evicts until so many bytes more fit; false if they cannot.
    fn make_room(&mut self, bytes: usize) -> bool {
        while self.table.bytes() + bytes > self.config.bytes_max {
            if !self.table.evict() {
                return false;
            }
            self.counters.evicted += 1;
        }
        true
    }

    /// A read is over. `fresh` is kept unless something was heard about it meanwhile; `None` if there is nothing to keep: an
    /// error, or a reply whose changes nobody announces. Those who wait for it get it whatever this decides.
    pub fn complete(&mut self, read: ReadId, fresh: Option<Fresh<V>>) -> Vec<W> {
        let Some(Read { waiters, at }) = self.reads.remove(&read) else { return Vec::new() };
        let Some(at) = at else { return waiters };
        let fresh = fresh.filter(|fresh| {
            let bytes =
                self.table.get(at).map_or(usize::MAX, |entry| entry.bytes.saturating_add(fresh.bytes));
            // Without a source that is on, what it says about the key would not be heard.
            self.on.contains(&fresh.source)
                && bytes <= self.config.entry_bytes_max
                && self.make_room(fresh.bytes)
        });
        match fresh {
            Some(fresh) => self.table.fill(at, fresh),
            None => self.table.remove(at),
        }
        waiters
    }

    /// A source announces changes from now on.
    pub fn began(&mut self, source: SourceId) {
        self.on.insert(source);
    }

    /// The connection of a source has ended, or was left: what was read on it will not be announced any more.
    pub fn ended(&mut self, source: SourceId) {
        self.on.remove(&source);
        let guards = self.config.guards;
        self.drop_where(guards.detach_on_end, |entry| guards.drop_on_end && entry.source == source);
    }

    /// A source says that all of its keys may have changed.
    pub fn invalidate_all(&mut self, source: SourceId) {
        let is_heeded = self.config.guards.flush;
        self.drop_where(is_heeded, |entry| is_heeded && entry.source == source);
    }

    /// Slots have another owner from now on.
    pub fn slots_moved(&mut self, has_moved: impl Fn(Slot) -> bool) {
        if !self.config.guards.drop_on_move {
            return;
        }
        for at in self.table.places() {
            if self.table.get(at).is_some_and(|entry| has_moved(entry.slot)) {
                self.drop_at(at);
            }
        }
    }

    /// Everything goes; reads under way are not kept.
    pub fn clear(&mut self) {
        self.drop_where(true, |_| true);
    }

    /// A key has changed, by the word of a source or of the application. Whether anything was known of it.
    pub fn invalidate(&mut self, key_hash: u64, key: &[u8]) -> bool {
        let mut is_known = false;
        let mut next = self.table.first_of(key_hash, key);
        while let Some(at) = next {
            next = self.table.next_of(at);
            let read = self.table.get(at).and_then(Entry::read);
            if read.is_some() && !self.config.guards.detach {
                continue;
            }
            self.detach(read);
            self.table.remove(at);
            self.counters.invalidated += 1;
            is_known = true;
        }
        is_known
    }

    /// Drops present entries that are wanted by `is_dropped`, and all pending ones if `is_detaching`.
    fn drop_where(&mut self, is_detaching: bool, is_dropped: impl Fn(&Entry<V>) -> bool) {
        for at in self.table.places() {
            let Some(entry) = self.table.get(at) else { continue };
            let is_gone = if entry.read().is_some() { is_detaching } else { is_dropped(entry) };
            if is_gone {
                self.drop_at(at);
            }
        }
    }

    fn drop_at(&mut self, at: u32) {
        let read = self.table.get(at).and_then(Entry::read);
        self.detach(read);
        self.table.remove(at);
        self.counters.dropped += 1;
    }

    fn detach(&mut self, read: Option<ReadId>) {
        if let Some(read) = read.and_then(|read| self.reads.get_mut(&read)) {
            read.at = None;
        }
    }

    /// Whether some source announces changes.
    pub fn is_on(&self) -> bool {
        !self.on.is_empty()
    }

    /// Entries, reads under way included.
    pub const fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there is no entry.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of all entries.
    pub const fn bytes(&self) -> usize {
        self.table.bytes()
    }

    /// Totals since the beginning.
    pub const fn counters(&self) -> CacheCounters {
        self.counters
    }
}

/// What is at the place of an entry.
enum Found<V> {
    Value(V),
    Read(ReadId),
    Old,
}

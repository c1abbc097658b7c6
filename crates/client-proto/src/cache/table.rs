//! The entries of a cache, and the orders in which they are found and evicted.
//!
//! Owns the places of entries, the way from a command and from a key to them, and the eviction queue. Does not own what an
//! entry is worth.

use hashbrown::HashTable;
use towline_cluster::{Slot, key_slot};
use towline_sansio::Instant;

use super::{Fresh, Name, ReadId, SourceId};

/// No place.
const NONE: u32 = u32::MAX;

/// What the two indices take for an entry, at the usual load: twice a number and a control byte.
const INDEX_BYTES: usize = 16;

/// Entries at most, whatever their size. A place is a number of 32 bits.
const ENTRIES_MAX: usize = NONE as usize;

#[derive(Debug)]
pub(super) enum State<V> {
    /// It is being read.
    Pending(ReadId),
    Present(V),
}

/// One reply that is known, or will be.
#[derive(Debug)]
pub(super) struct Entry<V> {
    /// The key, then the command.
    name: Box<[u8]>,
    key_len: usize,
    key_hash: u64,
    command_hash: u64,
    pub(super) slot: Slot,
    /// When its read began.
    pub(super) begun: Instant,
    pub(super) expires: Instant,
    /// Means nothing while it is being read.
    pub(super) source: SourceId,
    pub(super) bytes: usize,
    pub(super) state: State<V>,
    /// It was of use since the hand passed.
    pub(super) is_visited: bool,
    older: u32,
    newer: u32,
    /// Others of the same key.
    next: u32,
    before: u32,
}

impl<V> Entry<V> {
    /// The bytes of an entry without its value.
    pub(super) const fn bytes_of(name: &Name<'_>) -> usize {
        size_of::<Option<Self>>() + INDEX_BYTES + name.key.len() + name.command.len()
    }

    fn key(&self) -> &[u8] {
        self.name.split_at_checked(self.key_len).map_or(&[], |(key, _)| key)
    }

    fn command(&self) -> &[u8] {
        self.name.split_at_checked(self.key_len).map_or(&[], |(_, command)| command)
    }

    /// The read that it waits for.
    pub(super) const fn read(&self) -> Option<ReadId> {
        match &self.state {
            State::Pending(read) => Some(*read),
            State::Present(_) => None,
        }
    }
}

#[derive(Debug)]
pub(super) struct Table<V> {
    entries: Vec<Option<Entry<V>>>,
    free: Vec<u32>,
    by_command: HashTable<u32>,
    /// The first entry of each key.
    by_key: HashTable<u32>,
    /// The queue of present entries, in the order in which they came.
    oldest: u32,
    newest: u32,
    /// Where the search for the next victim goes on.
    hand: u32,
    bytes: usize,
    len: usize,
}

impl<V> Default for Table<V> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            by_command: HashTable::new(),
            by_key: HashTable::new(),
            oldest: NONE,
            newest: NONE,
            hand: NONE,
            bytes: 0,
            len: 0,
        }
    }
}

fn entry_in<V>(entries: &[Option<Entry<V>>], at: u32) -> Option<&Entry<V>> {
    entries.get(at as usize)?.as_ref()
}

impl<V> Table<V> {
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, at: u32) -> Option<&Entry<V>> {
        entry_in(&self.entries, at)
    }

    pub(super) fn get_mut(&mut self, at: u32) -> Option<&mut Entry<V>> {
        self.entries.get_mut(at as usize)?.as_mut()
    }

    /// The places that are in use, at this moment.
    pub(super) fn places(&self) -> Vec<u32> {
        (0..).zip(&self.entries).filter_map(|(at, entry)| entry.is_some().then_some(at)).collect()
    }

    #[inline]
    pub(super) fn find(&self, name: &Name<'_>) -> Option<u32> {
        let entries = &self.entries;
        let is_it = |at: &u32| entry_in(entries, *at).is_some_and(|entry| entry.command() == name.command);
        self.by_command.find(name.command_hash, is_it).copied()
    }

    /// The first entry of a key.
    pub(super) fn first_of(&self, key_hash: u64, key: &[u8]) -> Option<u32> {
        let entries = &self.entries;
        let is_it = |at: &u32| entry_in(entries, *at).is_some_and(|entry| entry.key() == key);
        self.by_key.find(key_hash, is_it).copied()
    }

    /// The next entry of the same key.
    pub(super) fn next_of(&self, at: u32) -> Option<u32> {
        self.get(at).map(|entry| entry.next).filter(|next| *next != NONE)
    }

    /// A new entry that is being read; its name must not be there. `None` if no more can be numbered.
    pub(super) fn insert(
        &mut self,
        now: Instant,
        name: &Name<'_>,
        read: ReadId,
        bytes: usize,
    ) -> Option<u32> {
        if self.entries.len() >= ENTRIES_MAX && self.free.is_empty() {
            return None;
        }
        let first = self.first_of(name.key_hash, name.key);
        let entry = Entry {
            name: [name.key, name.command].concat().into(),
            key_len: name.key.len(),
            key_hash: name.key_hash,
            command_hash: name.command_hash,
            slot: key_slot(name.key),
            begun: now,
            expires: Instant::FAR,
            source: SourceId(0),
            bytes,
            state: State::Pending(read),
            is_visited: false,
            older: NONE,
            newer: NONE,
            next: first.unwrap_or(NONE),
            before: NONE,
        };
        let at = match self.free.pop() {
            Some(at) => at,
            None => {
                self.entries.push(None);
                u32::try_from(self.entries.len() - 1).ok()?
            }
        };
        if let Some(place) = self.entries.get_mut(at as usize) {
            *place = Some(entry);
        }
        let entries = &self.entries;
        let hash = |at: &u32| entry_in(entries, *at).map_or(0, |entry| entry.command_hash);
        self.by_command.insert_unique(name.command_hash, at, hash);
        self.lead_key(name.key_hash, first, Some(at));
        if let Some(first) = first.and_then(|first| self.get_mut(first)) {
            first.before = at;
        }
        self.bytes += bytes;
        self.len += 1;
        Some(at)
    }

    /// Makes another entry the first of its key.
    fn lead_key(&mut self, key_hash: u64, from: Option<u32>, to: Option<u32>) {
        let entries = &self.entries;
        let hash = |at: &u32| entry_in(entries, *at).map_or(0, |entry| entry.key_hash);
        match (from, to) {
            (Some(from), Some(to)) => {
                if let Some(first) = self.by_key.find_mut(key_hash, |at| *at == from) {
                    *first = to;
                }
            }
            (Some(from), None) => {
                if let Ok(first) = self.by_key.find_entry(key_hash, |at| *at == from) {
                    first.remove();
                }
            }
            (None, Some(to)) => {
                self.by_key.insert_unique(key_hash, to, hash);
            }
            (None, None) => {}
        }
    }

    /// The value of an entry that was being read.
    pub(super) fn fill(&mut self, at: u32, fresh: Fresh<V>) {
        let newest = self.newest;
        let Some(entry) = self.get_mut(at) else { return };
        entry.state = State::Present(fresh.value);
        entry.bytes += fresh.bytes;
        entry.source = fresh.source;
        entry.expires = fresh.ttl.map_or(Instant::FAR, |ttl| entry.begun + ttl);
        entry.older = newest;
        self.bytes += fresh.bytes;
        match self.get_mut(newest) {
            Some(second) => second.newer = at,
            None => self.oldest = at,
        }
        self.newest = at;
    }

    /// Removes an entry; whoever waits for its read is the caller's concern.
    pub(super) fn remove(&mut self, at: u32) {
        let Some(entry) = self.entries.get_mut(at as usize).and_then(Option::take) else { return };
        self.free.push(at);
        self.bytes -= entry.bytes;
        self.len -= 1;
        if let Ok(place) = self.by_command.find_entry(entry.command_hash, |other| *other == at) {
            place.remove();
        }
        let next = Some(entry.next).filter(|next| *next != NONE);
        match self.get_mut(entry.before) {
            Some(before) => before.next = entry.next,
            None => self.lead_key(entry.key_hash, Some(at), next),
        }
        if let Some(next) = self.get_mut(entry.next) {
            next.before = entry.before;
        }
        if matches!(entry.state, State::Present(_)) {
            self.unlink(at, &entry);
        }
    }

    /// Takes a present entry out of the queue.
    fn unlink(&mut self, at: u32, entry: &Entry<V>) {
        match self.get_mut(entry.older) {
            Some(older) => older.newer = entry.newer,
            None => self.oldest = entry.newer,
        }
        match self.get_mut(entry.newer) {
            Some(newer) => newer.older = entry.older,
            None => self.newest = entry.older,
        }
        if self.hand == at {
            self.hand = entry.newer;
        }
    }

    /// Removes the present entry that is worth least; false if there is none.
    pub(super) fn evict(&mut self) -> bool {
        let mut at = if self.hand == NONE { self.oldest } else { self.hand };
        // Twice around at most: the first time it takes the marks away.
        for _ in 0..2 * self.len + 2 {
            let Some(entry) = self.get_mut(at) else {
                if self.oldest == NONE {
                    return false;
                }
                at = self.oldest;
                continue;
            };
            if entry.is_visited {
                entry.is_visited = false;
                at = entry.newer;
                continue;
            }
            self.hand = at;
            self.remove(at);
            return true;
        }
        false
    }
}

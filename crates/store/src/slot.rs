//! One hash slot: the unit of storage, locking and ordering.
//!
//! Owns: the slot's tables (one per database), their expiry indices, and who watches, waits for, tracks or taps its keys.
//! Does **not** own the lock around it (see [`crate::store`]) nor what a command does.

use crate::entry::Entry;
use crate::stream::{Shared, SlotTap, Taps};
use crate::table::Table;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A database's part of a slot.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct DbSlot {
    pub(crate) table: Table<Entry>,
    /// `(unix ms, hash of the key)` of every key, or hash with a field, that expires.
    #[expect(
        clippy::box_collection,
        reason = "one word in each of the 16384 slots, and nearly always empty"
    )]
    pub(crate) expiry: Option<Box<BTreeSet<(u64, u64)>>>,
}

impl DbSlot {
    pub(crate) fn index(&mut self, at_ms: u64, hash: u64) {
        self.expiry.get_or_insert_default().insert((at_ms, hash));
    }

    pub(crate) fn unindex(&mut self, at_ms: u64, hash: u64) {
        if let Some(expiry) = &mut self.expiry {
            expiry.remove(&(at_ms, hash));
            if expiry.is_empty() {
                self.expiry = None;
            }
        }
    }

    pub(crate) fn next_expiry(&self) -> Option<u64> {
        self.expiry.as_ref().and_then(|expiry| expiry.first()).map(|&(at, _)| at)
    }
}

/// The databases' parts of a slot. Database 0 is inline: outside of tests, hardly anyone uses another.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Tables {
    first: DbSlot,
    #[expect(clippy::box_collection, reason = "as above")]
    others: Option<Box<BTreeMap<u8, DbSlot>>>,
}

impl Tables {
    #[inline]
    pub(crate) fn db(&self, db: u8) -> Option<&DbSlot> {
        if db == 0 { Some(&self.first) } else { self.others.as_ref()?.get(&db) }
    }

    #[inline]
    pub(crate) fn db_mut(&mut self, db: u8) -> &mut DbSlot {
        if db == 0 { &mut self.first } else { self.others.get_or_insert_default().entry(db).or_default() }
    }

    /// A database's part, if there is one.
    #[inline]
    pub(crate) fn existing_mut(&mut self, db: u8) -> Option<&mut DbSlot> {
        if db == 0 { Some(&mut self.first) } else { self.others.as_mut()?.get_mut(&db) }
    }

    /// Takes a database's part out.
    pub(crate) fn take(&mut self, db: u8) -> DbSlot {
        if db == 0 {
            return std::mem::take(&mut self.first);
        }
        let taken = self.others.as_mut().and_then(|others| others.remove(&db)).unwrap_or_default();
        if self.others.as_ref().is_some_and(|others| others.is_empty()) {
            self.others = None;
        }
        taken
    }

    /// Puts a part in the place of an empty one.
    pub(crate) fn put(&mut self, db: u8, part: DbSlot) {
        if db == 0 {
            self.first = part;
        } else if !part.table.is_empty() {
            self.others.get_or_insert_default().insert(db, part);
        }
    }

    pub(crate) fn next_expiry(&self) -> Option<u64> {
        let others = self.others.iter().flat_map(|others| others.values());
        std::iter::once(&self.first).chain(others).filter_map(DbSlot::next_expiry).min()
    }

    pub(crate) fn dbs(&self) -> impl Iterator<Item = u8> + '_ {
        std::iter::once(0).chain(self.others.iter().flat_map(|others| others.keys().copied()))
    }
}

/// What a slot holds. The fields that commands look at come first, see [`crate::store`].
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct SlotData {
    pub(crate) hooks: Option<Box<Hooks>>,
    pub(crate) taps: Option<Box<Taps>>,
    /// A stream that only follows, as a log does. It is found without another look at memory, since it is there with every
    /// write; a second one is among the taps.
    pub(crate) follower: Option<Arc<Shared>>,
    /// Position of the last unit with an effect on the slot, in a stream that reports positions: whoever reads here tells of
    /// everything up to it.
    pub(crate) written: u64,
    pub(crate) tables: Tables,
}

impl SlotData {
    /// From the beginning to the end of database 0's table.
    pub(crate) const HOT_BYTES: usize = std::mem::offset_of!(Self, tables) + size_of::<Table<Entry>>();
}

impl Deref for SlotData {
    type Target = Tables;
    #[inline]
    fn deref(&self) -> &Tables {
        &self.tables
    }
}

impl DerefMut for SlotData {
    #[inline]
    fn deref_mut(&mut self) -> &mut Tables {
        &mut self.tables
    }
}

impl SlotData {
    /// A stream listens from now on.
    pub(crate) fn listen(&mut self, tap: SlotTap) {
        if self.follower.as_ref().is_some_and(|stream| stream.has_ended()) {
            self.follower = None;
        }
        match tap.into_follower() {
            Ok(stream) if self.follower.is_none() => self.follower = Some(stream),
            Ok(stream) => self.taps.get_or_insert_default().add(SlotTap::new(stream, false)),
            Err(tap) => self.taps.get_or_insert_default().add(tap),
        }
    }

    /// A stream no longer listens.
    pub(crate) fn unlisten(&mut self, stream: &Arc<Shared>) {
        if let Some(taps) = &mut self.taps {
            taps.remove(stream);
        }
        if self.follower.as_ref().is_some_and(|follower| Arc::ptr_eq(follower, stream)) {
            self.follower = self.taps.as_mut().and_then(|taps| taps.take_follower());
        }
        self.drop_empty_taps();
    }

    /// Whether anybody listens.
    #[inline]
    pub(crate) fn is_listened_to(&self) -> bool {
        self.taps.is_some() || self.follower.is_some()
    }

    /// The stream that all effects go to, if there is only one that follows, and it needs no other care.
    #[inline]
    pub(crate) fn only_follower(&self) -> Option<&Arc<Shared>> {
        let follower = self.follower.as_ref().filter(|stream| stream.takes_effects())?;
        match &self.taps {
            None => Some(follower),
            Some(taps) => (!taps.iter().any(SlotTap::follows)).then_some(follower),
        }
    }

    pub(crate) fn drop_empty_taps(&mut self) {
        if self.taps.as_ref().is_some_and(|taps| taps.is_empty()) {
            self.taps = None;
        }
    }

    pub(crate) fn hooks_mut(&mut self) -> &mut Hooks {
        self.hooks.get_or_insert_default()
    }

    pub(crate) fn drop_empty_hooks(&mut self) {
        if self.hooks.as_ref().is_some_and(|hooks| hooks.is_empty()) {
            self.hooks = None;
        }
    }
}

/// Set as soon as one of the keys that a client watches changes.
#[derive(Debug, Default)]
pub struct WatchFlag(AtomicBool);

impl WatchFlag {
    /// Whether a watched key changed.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Notes that a watched key changed.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A database and a key in it, as one byte string.
type DbKey = SmallVec<[u8; 64]>;

fn db_key(db: u8, key: &[u8]) -> DbKey {
    let mut whole = DbKey::with_capacity(key.len() + 1);
    whole.push(db);
    whole.extend_from_slice(key);
    whole
}

/// Who wants to hear of a slot's keys.
#[derive(Debug, Default)]
pub(crate) struct Hooks {
    watchers: BTreeMap<Box<[u8]>, Vec<Arc<WatchFlag>>>,
    waiters: BTreeMap<Box<[u8]>, VecDeque<u64>>,
    trackers: BTreeMap<Box<[u8]>, Vec<u64>>,
    /// Keys that changed and whose waiters are still to be served: what is there belongs to them first.
    serves_due: u32,
}

impl Hooks {
    fn is_empty(&self) -> bool {
        self.watchers.is_empty()
            && self.waiters.is_empty()
            && self.trackers.is_empty()
            && self.serves_due == 0
    }

    /// The waiters of one more key are to be served.
    pub(crate) fn add_serve(&mut self) {
        self.serves_due += 1;
    }

    /// The waiters of one of these keys were served.
    pub(crate) fn end_serve(&mut self) {
        self.serves_due = self.serves_due.saturating_sub(1);
    }

    /// Whether waiters of some key are still to be served.
    pub(crate) fn has_serves(&self) -> bool {
        self.serves_due > 0
    }

    pub(crate) fn watch(&mut self, db: u8, key: &[u8], flag: &Arc<WatchFlag>) {
        self.watchers.entry(db_key(db, key).as_slice().into()).or_default().push(Arc::clone(flag));
    }

    pub(crate) fn unwatch(&mut self, db: u8, key: &[u8], flag: &Arc<WatchFlag>) {
        let whole = db_key(db, key);
        if let Some(flags) = self.watchers.get_mut(whole.as_slice()) {
            flags.retain(|other| !Arc::ptr_eq(other, flag));
            if flags.is_empty() {
                self.watchers.remove(whole.as_slice());
            }
        }
    }

    /// Sets the flags of all who watch the key.
    pub(crate) fn touch(&self, db: u8, key: &[u8]) {
        if !self.watchers.is_empty() {
            self.watchers.get(db_key(db, key).as_slice()).into_iter().flatten().for_each(|flag| flag.set());
        }
    }

    /// Sets the flags of all who watch a key of the database for which `exists` holds.
    pub(crate) fn touch_db(&self, db: u8, mut exists: impl FnMut(&[u8]) -> bool) {
        for (whole, flags) in &self.watchers {
            if whole[0] == db && exists(&whole[1..]) {
                flags.iter().for_each(|flag| flag.set());
            }
        }
    }

    pub(crate) fn wait(&mut self, db: u8, key: &[u8], waiter: u64) {
        self.waiters.entry(db_key(db, key).as_slice().into()).or_default().push_back(waiter);
    }

    pub(crate) fn unwait(&mut self, db: u8, key: &[u8], waiter: u64) {
        let whole = db_key(db, key);
        if let Some(queue) = self.waiters.get_mut(whole.as_slice()) {
            queue.retain(|&other| other != waiter);
            if queue.is_empty() {
                self.waiters.remove(whole.as_slice());
            }
        }
    }

    /// Those who wait for the key, the longest waiting first.
    pub(crate) fn waiters(&self, db: u8, key: &[u8]) -> Option<&VecDeque<u64>> {
        if self.waiters.is_empty() { None } else { self.waiters.get(db_key(db, key).as_slice()) }
    }

    /// All keys of the database that somebody waits for.
    pub(crate) fn waited_keys(&self, db: u8) -> impl Iterator<Item = &[u8]> {
        self.waiters.keys().filter(move |whole| whole[0] == db).map(|whole| &whole[1..])
    }

    /// How many keys and pairs of key and client that added.
    pub(crate) fn track(&mut self, key: &[u8], client: u64) -> (isize, isize) {
        if let Some(clients) = self.trackers.get_mut(key) {
            if clients.contains(&client) {
                return (0, 0);
            }
            clients.push(client);
            return (0, 1);
        }
        self.trackers.insert(key.into(), vec![client]);
        (1, 1)
    }

    /// Who tracked the key; they are told once.
    pub(crate) fn take_trackers(&mut self, key: &[u8]) -> Vec<u64> {
        self.trackers.remove(key).unwrap_or_default()
    }

    /// As [`Hooks::take_trackers`], of a key drawn by `r`.
    pub(crate) fn take_any_trackers(&mut self, r: u64) -> Option<(Box<[u8]>, Vec<u64>)> {
        let nth = (r % (self.trackers.len().max(1) as u64)) as usize;
        let key = self.trackers.keys().nth(nth)?.clone();
        self.trackers.remove_entry(&key)
    }

    pub(crate) fn has_trackers(&self) -> bool {
        !self.trackers.is_empty()
    }

    /// How many keys and pairs of key and client are forgotten.
    pub(crate) fn clear_trackers(&mut self) -> (usize, usize) {
        let trackers = std::mem::take(&mut self.trackers);
        (trackers.len(), trackers.values().map(Vec::len).sum())
    }
}

//! What a command sees of the store: the slots that it holds, one database, one instant.
//!
//! Owns: look-ups with lazy expiry, typed access, and what every change must set off (watchers, waiters, trackers,
//! notifications, indices, counts). Does **not** own arguments, replies or which slots a command needs: the caller locks.
//!
//! A handler reads and writes values, then says so once per changed key with [`Keyspace::changed`] or
//! [`Keyspace::changed_or_emptied`]; what follows from a change is decided here, for all commands alike. The outcome is
//! collected in [`Changes`], which the caller works off after it has let go of the slots.

use crate::changes::{Changes, Settings};
use crate::entry::Entry;
use crate::hasher::hash64;
use crate::notify::{self, Class};
use crate::store::{Guard, Store};
use crate::table::{Ref, RefMut};
use crate::value::{Kind, Str, Value, ValueRef};
use std::fmt;
use towline_cluster::{Slot, key_slot};

mod collections;
mod expiring;
mod following;
mod held;
mod hidden;
mod hooks;
mod listening;
mod loading;
mod picturing;
mod whole;

pub mod editing;
pub mod slots;

use editing::{StringMut, record_set};
use held::{Held, lock_all, lock_sorted};
use listening::{Listening, expiry_after};

/// Slots that a command or a batch holds without a heap allocation.
pub const HELD_INLINE: usize = 16;
/// Values with more elements than this are freed by whoever works off [`Changes::garbage`], not under the lock.
const FREE_INLINE_ELEMENTS_MAX: usize = 64;

/// The key holds a value of another kind than the command works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("WRONGTYPE Operation against a key holding the wrong kind of value")]
pub struct WrongType;

/// What becomes of a key's expiry when its value is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// It stays.
    Keep,
    /// It goes, as after a plain `SET`.
    Clear,
    /// It becomes this, in unix milliseconds.
    At(u64),
}

/// A database of the store through the slots that are held; see the module's description.
pub struct Keyspace<'s> {
    store: &'s Store,
    held: Held<'s>,
    settings: &'s Settings,
    changes: &'s mut Changes,
    db: u8,
    now_ms: u64,
    /// Whether reads count as accesses (`CLIENT NO-TOUCH`).
    touch: bool,
    /// Address and length of the current command's first key, where it was found to belong, its hash.
    preset: (usize, usize, usize, u64),
    /// First field expiry of the hash that was handed out last, before it was changed.
    fields_before: Option<Option<u64>>,
    /// Whether the effects of several commands are one unit.
    is_in_unit: bool,
}

impl fmt::Debug for Keyspace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyspace").field("db", &self.db).field("now_ms", &self.now_ms).finish_non_exhaustive()
    }
}

impl<'s> Keyspace<'s> {
    /// Holds the given slots, which need not be sorted or distinct.
    pub fn hold(
        store: &'s Store,
        slots: impl IntoIterator<Item = Slot>,
        settings: &'s Settings,
        changes: &'s mut Changes,
        db: u8,
        now_ms: u64,
    ) -> Self {
        Self::with(store, Held::Few(lock_sorted(store, slots)), settings, changes, db, now_ms)
    }

    /// Holds every slot: for what must see the whole keyspace at one instant.
    pub fn hold_all(
        store: &'s Store,
        settings: &'s Settings,
        changes: &'s mut Changes,
        db: u8,
        now_ms: u64,
    ) -> Self {
        Self::with(store, lock_all(store), settings, changes, db, now_ms)
    }

    fn with(
        store: &'s Store,
        held: Held<'s>,
        settings: &'s Settings,
        changes: &'s mut Changes,
        db: u8,
        now_ms: u64,
    ) -> Self {
        let (touch, preset, fields_before) = (true, (0, 0, 0, 0), None);
        let is_in_unit = false;
        let mut keyspace =
            Self { store, held, settings, changes, db, now_ms, touch, preset, fields_before, is_in_unit };
        keyspace.note_seen();
        keyspace
    }

    /// The database that the following calls work on.
    pub fn db(&self) -> u8 {
        self.db
    }

    /// Changes the database that the following calls work on.
    pub fn select(&mut self, db: u8) {
        self.db = db;
    }

    /// The instant of the command, in unix milliseconds.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Begins the next command of a batch: its instant, whether its reads count as accesses.
    #[inline]
    pub fn begin(&mut self, now_ms: u64, touch: bool) {
        self.commit();
        self.now_ms = now_ms;
        self.touch = touch;
        self.preset = (0, 0, 0, 0);
        // A command that changed nothing leaves this behind.
        self.fields_before = None;
    }

    /// The settings in force.
    pub fn settings(&self) -> &'s Settings {
        self.settings
    }

    /// What the commands so far have set off.
    pub fn changes(&mut self) -> &mut Changes {
        self.changes
    }

    /// The store behind.
    pub fn store(&self) -> &'s Store {
        self.store
    }

    /// Whether all slots are held.
    pub fn holds_all(&self) -> bool {
        matches!(self.held, Held::All(_))
    }

    /// Lets go of the slots and holds `slot` alone; nothing changes when all are held. For commands that walk over the
    /// keyspace slot by slot.
    pub fn hold_only(&mut self, slot: Slot) {
        self.commit_held();
        if let Held::Few(few) = &mut self.held {
            few.clear();
            few.push((slot, self.store.lock(slot)));
            self.note_seen();
        }
    }

    /// Lets go of the slots and holds these, which need not be sorted or distinct; nothing changes when all are held.
    pub fn hold_slots(&mut self, slots: impl IntoIterator<Item = Slot>) {
        self.commit_held();
        if let Held::Few(few) = &mut self.held {
            few.clear();
            *few = lock_sorted(self.store, slots);
            self.note_seen();
        }
    }

    /// Lets go of the slots and holds all of them.
    pub fn hold_every(&mut self) {
        self.commit_held();
        if let Held::Few(few) = &mut self.held {
            few.clear();
            self.held = lock_all(self.store);
            self.note_seen();
        }
    }

    /// Says that the current command's key at `key`'s address has this slot and hash, so that they are not computed again.
    /// Valid until [`Keyspace::begin`]; the bytes must not change or move before that.
    #[inline]
    pub fn preset(&mut self, key: &[u8], slot: Slot, hash: u64) {
        self.preset = (key.as_ptr() as usize, key.len(), self.index_of(slot), hash);
    }

    /// Commits before slots are let go. A unit goes on only over slots that stay held.
    fn commit_held(&mut self) {
        if !self.holds_all() && !self.changes.effects.is_empty() {
            self.commit_effects();
        }
    }

    #[inline]
    fn index_of(&self, slot: Slot) -> usize {
        self.held.index_of(slot)
    }

    #[inline]
    fn locate(&self, key: &[u8]) -> (usize, u64) {
        let (address, len, index, hash) = self.preset;
        if address == key.as_ptr() as usize && len == key.len() && address != 0 {
            return (index, hash);
        }
        (self.index_of(key_slot(key)), hash64(key))
    }

    #[inline]
    fn guard(&self, index: usize) -> &Guard<'s> {
        self.held.guard(index)
    }

    #[inline]
    fn guard_mut(&mut self, index: usize) -> &mut Guard<'s> {
        self.held.guard_mut(index)
    }

    #[inline]
    fn slot_at(&self, index: usize) -> Slot {
        match &self.held {
            Held::Few(few) => few[index].0,
            Held::All(_) => index as Slot,
        }
    }

    /// Fetches the places where the hash would be found; part of working off a batch.
    #[inline]
    pub fn prefetch_places(&self, slot: Slot, hash: u64) {
        if let Some(db) = self.guard(self.index_of(slot)).db(self.db) {
            db.table.prefetch_places(hash);
        }
    }

    /// Fetches the entry that the hash most likely finds; part of working off a batch.
    #[inline]
    pub fn prefetch_entry(&self, slot: Slot, hash: u64) {
        if let Some(db) = self.guard(self.index_of(slot)).db(self.db) {
            db.table.prefetch_item(hash);
        }
    }

    // ---- finding ------------------------------------------------------------------------------------------------

    /// Where the key is, if it is there and alive. An expired key, or hash field, is removed on the way.
    #[inline]
    fn live(&mut self, key: &[u8]) -> Option<(usize, u64)> {
        let (index, hash) = self.locate(key);
        let entry = self.guard(index).db(self.db)?.table.get(hash, key)?;
        let now_ms = self.now_ms;
        if entry.expires_at_ms().is_some_and(|at| at <= now_ms) {
            self.expire(key);
            return None;
        }
        if let ValueRef::Hash(fields) = entry.value()
            && fields.next_expiry_ms().is_some_and(|at| at <= now_ms)
        {
            self.expire_fields(key);
            self.guard(index).db(self.db)?.table.get(hash, key)?;
        }
        Some((index, hash))
    }

    fn found(&self, index: usize, hash: u64, key: &[u8]) -> Option<Ref<'_, Entry>> {
        self.guard(index).db(self.db)?.table.get(hash, key)
    }

    /// Whether the key exists. Counts neither as a hit nor as an access.
    #[inline]
    pub fn exists(&mut self, key: &[u8]) -> bool {
        self.live(key).is_some()
    }

    /// The entry, for what concerns the entry itself (`OBJECT`, `MEMORY USAGE`, `TTL`). Not an access.
    pub fn entry(&mut self, key: &[u8]) -> Option<Ref<'_, Entry>> {
        let (index, hash) = self.live(key)?;
        self.found(index, hash, key)
    }

    /// The value, for reading: counts as hit or miss, and as an access.
    #[inline]
    pub fn read(&mut self, key: &[u8]) -> Option<ValueRef<'_>> {
        let (index, hash) = self.locate(key);
        if !self.touch_plain(index, hash, key) {
            let Some((index, hash)) = self.live(key) else {
                self.changes.misses += 1;
                if self.settings.notify & notify::MISS != 0 {
                    self.note(Class::Miss, "keymiss", key);
                }
                return None;
            };
            if self.touch {
                self.access(index, hash, key);
            }
        }
        self.changes.hits += 1;
        self.found(index, hash, key).map(Ref::value)
    }

    /// The value as it is: for commands that need several at once, after each was read. Not an access, and expiry is not
    /// looked at.
    pub fn peek(&self, key: &[u8]) -> Option<ValueRef<'_>> {
        let (index, hash) = self.locate(key);
        self.found(index, hash, key).map(Ref::value)
    }

    /// Counts the access to an entry that needs no look at the clock: one that does not expire, in part or whole. `false` if
    /// there is none, or more is to be done.
    #[inline]
    fn touch_plain(&mut self, index: usize, hash: u64, key: &[u8]) -> bool {
        let (now_ms, settings, db, touch) = (self.now_ms, self.settings, self.db, self.touch);
        if settings.is_lfu() {
            return false;
        }
        let Some(part) = self.guard_mut(index).existing_mut(db) else { return false };
        let Some(mut entry) = part.table.get_mut(hash, key) else { return false };
        if entry.expires_at_ms().is_some() || entry.kind() == Kind::Hash {
            return false;
        }
        let new = settings.accessed(entry.access(), now_ms, 0);
        if touch && entry.access() != new {
            entry.set_access(new);
        }
        true
    }

    #[inline]
    fn access(&mut self, index: usize, hash: u64, key: &[u8]) {
        let (now_ms, settings, db) = (self.now_ms, self.settings, self.db);
        let r = if settings.is_lfu() { self.changes.rng.next_u64() } else { 0 };
        if let Some(mut entry) = self.guard_mut(index).db_mut(db).table.get_mut(hash, key) {
            let (old, new) = (entry.access(), settings.accessed(entry.access(), now_ms, r));
            if old != new {
                entry.set_access(new);
            }
        }
    }

    /// Sets the access bits (see [`Entry::access`]) of a key that is there: `RESTORE` with an idle time or a frequency.
    pub fn set_access(&mut self, key: &[u8], access: u32) {
        let db = self.db;
        if let Some((index, hash)) = self.live(key)
            && let Some(mut entry) = self.guard_mut(index).db_mut(db).table.get_mut(hash, key)
        {
            entry.set_access(access);
        }
    }

    /// Counts a read of the key as an access, without a value: `TOUCH`.
    pub fn touch(&mut self, key: &[u8]) -> bool {
        self.read(key).is_some()
    }

    /// Where the entry to be written is. Streams were told.
    #[inline]
    fn write(&mut self, key: &[u8]) -> Option<(usize, u64, Listening)> {
        let (index, hash) = self.live(key)?;
        if self.touch {
            self.access(index, hash, key);
        }
        Some((index, hash, self.before_change(index, hash, key)))
    }

    /// The kind of the key's value, which counts neither as a hit nor as an access.
    pub fn kind(&mut self, key: &[u8]) -> Option<Kind> {
        self.entry(key).map(|entry| entry.kind())
    }

    /// The string at `key`, for reading.
    #[inline]
    pub fn string(&mut self, key: &[u8]) -> Result<Option<Str<'_>>, WrongType> {
        match self.read(key) {
            None => Ok(None),
            Some(ValueRef::String(text)) => Ok(Some(text)),
            Some(_) => Err(WrongType),
        }
    }

    // ---- writing ------------------------------------------------------------------------------------------------

    /// The string, for writing. Tell [`Keyspace::changed`].
    pub fn string_mut(&mut self, key: &[u8]) -> Result<Option<StringMut<'_>>, WrongType> {
        let Some((index, hash, listening)) = self.write(key) else { return Ok(None) };
        let Self { held, changes, db, .. } = self;
        let entry: Option<RefMut<'_, Entry>> = held.guard_mut(index).db_mut(*db).table.get_mut(hash, key);
        let Some(entry) = entry else { return Ok(None) };
        if entry.kind() != Kind::String {
            return Err(WrongType);
        }
        let effects = (listening == Listening::Follows).then_some(&mut changes.effects);
        Ok(Some(StringMut { entry, effects }))
    }

    /// Makes the key hold this string, whatever it held. Tell [`Keyspace::changed`].
    #[inline]
    pub fn set_string(&mut self, key: &[u8], value: &[u8], expiry: Expiry) {
        if let Some((index, hash)) = self.live(key) {
            let listening = self.before_change(index, hash, key);
            let (db, slot) = (self.db, self.slot_at(index));
            let access = self.first_access();
            let db_slot = self.guard_mut(index).db_mut(db);
            let mut entry = db_slot.table.get_mut(hash, key).expect("invariant: the key was just found");
            let before = entry.expires_at_ms();
            if entry.kind() == Kind::String && value.len() <= crate::entry::EMBEDDED_BYTES_MAX {
                let after = expiry_after(expiry, before);
                if before != after {
                    entry.set_expires_at_ms(after);
                }
                entry.set_string(value);
                entry.set_access(access);
                drop(entry);
                if before != after {
                    self.reindex(index, slot, hash, before, after);
                }
                if listening == Listening::Follows {
                    record_set(&mut self.changes.effects, Str::Bytes(value), after);
                }
                return;
            }
        }
        self.set_value(key, Value::Bytes(value.to_vec()), expiry);
    }

    /// Makes the key hold this value, whatever it held. Tell [`Keyspace::changed`].
    pub fn set_value(&mut self, key: &[u8], value: Value, expiry: Expiry) {
        let before = self.live(key).and_then(|(index, hash)| self.found(index, hash, key)?.expires_at_ms());
        let (index, hash) = self.locate(key);
        let (db, slot) = (self.db, self.slot_at(index));
        let after = expiry_after(expiry, before);
        let listening = self.before_change(index, hash, key);
        self.record_value(listening, &value, after);
        let fields = match &value {
            Value::Hash(hash) => hash.next_expiry_ms(),
            _ => None,
        };
        let mut entry = Entry::value(key, value, after);
        entry.set_access(self.first_access());
        let db_slot = self.guard_mut(index).db_mut(db);
        let len = db_slot.table.len();
        let old = db_slot.table.replace(hash, entry);
        if let Some(old) = old {
            self.discard(index, hash, old);
        } else {
            self.store.count_keys(db, slot, len, len + 1);
            if self.settings.notify & notify::NEW != 0 {
                self.note(Class::New, "new", key);
            }
        }
        self.reindex(index, slot, hash, None, after);
        if let Some(at) = fields {
            self.guard_mut(index).db_mut(db).index(at, hash);
            self.store.note_due(slot, at);
            self.store.count_field_expiry(db, slot, None, fields);
        }
        self.wake(index, key);
    }

    /// The access bits of a value written now.
    fn first_access(&self) -> u32 {
        self.settings.first_access(self.now_ms)
    }

    /// Forgets what is indexed of an entry that is no longer in the table, and frees it, later if that takes long.
    fn discard(&mut self, index: usize, hash: u64, old: Entry) {
        let (db, slot) = (self.db, self.slot_at(index));
        self.reindex(index, slot, hash, old.expires_at_ms(), None);
        if let ValueRef::Hash(fields) = old.value_ref()
            && let Some(at) = fields.next_expiry_ms()
        {
            self.guard_mut(index).db_mut(db).unindex(at, hash);
            self.store.count_field_expiry(db, slot, Some(at), None);
        }
        self.let_go(index, hash, old);
    }

    fn reindex(&mut self, index: usize, slot: Slot, hash: u64, before: Option<u64>, after: Option<u64>) {
        if before == after {
            return;
        }
        let db = self.db;
        let db_slot = self.guard_mut(index).db_mut(db);
        if let Some(at) = before {
            db_slot.unindex(at, hash);
        }
        if let Some(at) = after {
            db_slot.index(at, hash);
            self.store.note_due(slot, at);
        }
        self.store.count_expiry(db, slot, before, after);
    }

    /// Takes the key out, with its expiry. Tell [`Keyspace::changed`].
    pub fn take(&mut self, key: &[u8]) -> Option<(Value, Option<u64>)> {
        let (index, hash) = self.live(key)?;
        let listening = self.before_change(index, hash, key);
        self.before_move(index, hash, key);
        let entry = self.cut(index, hash, key)?;
        self.record_removal(listening, &entry);
        let at = entry.expires_at_ms();
        Some((entry.into_value(), at))
    }

    /// Takes an entry out of the table and of the indices.
    fn cut(&mut self, index: usize, hash: u64, key: &[u8]) -> Option<Entry> {
        let (db, slot) = (self.db, self.slot_at(index));
        let db_slot = self.guard_mut(index).db_mut(db);
        let len = db_slot.table.len();
        let entry = db_slot.table.remove(hash, key)?;
        self.store.count_keys(db, slot, len, len - 1);
        self.reindex(index, slot, hash, entry.expires_at_ms(), None);
        if let ValueRef::Hash(fields) = entry.value_ref()
            && let Some(at) = fields.next_expiry_ms()
        {
            self.guard_mut(index).db_mut(db).unindex(at, hash);
            self.store.count_field_expiry(db, slot, Some(at), None);
        }
        Some(entry)
    }

    /// Removes the key, whatever it holds; `false` when it is not there. Tell [`Keyspace::changed`].
    pub fn delete(&mut self, key: &[u8]) -> bool {
        let Some((index, hash)) = self.live(key) else { return false };
        self.delete_at(index, hash, key);
        true
    }

    fn delete_at(&mut self, index: usize, hash: u64, key: &[u8]) {
        let listening = self.before_change(index, hash, key);
        if let Some(old) = self.cut(index, hash, key) {
            self.record_removal(listening, &old);
            self.let_go(index, hash, old);
        }
    }

    /// When the key expires: `None` without a key, `Some(None)` when it does not expire.
    pub fn expiry(&mut self, key: &[u8]) -> Option<Option<u64>> {
        self.entry(key).map(|entry| entry.expires_at_ms())
    }

    /// Sets or removes the key's expiry (unix milliseconds); `false` without a key. A time that has passed is stored as
    /// it is: commands that delete at once do so themselves. Tell [`Keyspace::changed`].
    pub fn set_expiry(&mut self, key: &[u8], at_ms: Option<u64>) -> bool {
        let Some((index, hash)) = self.live(key) else { return false };
        let (db, slot) = (self.db, self.slot_at(index));
        let listening = self.before_change(index, hash, key);
        self.record_expiry(listening, at_ms);
        let mut entry = self
            .guard_mut(index)
            .db_mut(db)
            .table
            .get_mut(hash, key)
            .expect("invariant: the key was just found");
        let before = entry.expires_at_ms();
        entry.set_expires_at_ms(at_ms);
        drop(entry);
        self.reindex(index, slot, hash, before, at_ms);
        // A field may expire at the instant that the key no longer does: the place in the index was its own as well.
        if before != at_ms
            && let Some(at) = self.next_field_expiry(index, hash, key)
            && before == Some(at)
        {
            self.guard_mut(index).db_mut(db).index(at, hash);
        }
        true
    }
}

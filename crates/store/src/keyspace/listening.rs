//! Those who listen at slots.
//!
//! Owns: telling streams before a key changes, recording effects on whole keys, and committing a command's effects. Does
//! **not** own changes inside of values (see [`super::editing`]) nor what streams do (see [`crate::stream`]).

use super::editing::record_set;
use super::held::Held;
use super::{Expiry, Keyspace};
use crate::effects::{Effects, Scope};
use crate::entry::Entry;
use crate::stream::{PartialLink, Shared, payload};
use crate::value::{Value, ValueRef};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use towline_cluster::SLOT_COUNT;

/// Values with more elements than this are removed with `UNLINK`, so that whoever applies the effect frees them elsewhere.
const DEL_ELEMENTS_MAX: usize = 64;

/// Whether the effects of a change are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listening {
    /// Nobody listens at the slot.
    Nobody,
    /// Streams do that send a snapshot without a tail, or are not open yet.
    Quietly,
    /// Effects are wanted, and the key is in focus.
    Follows,
}

impl Keyspace<'_> {
    /// A key is about to be changed, removed or created.
    #[inline]
    pub(super) fn before_change(&mut self, index: usize, hash: u64, key: &[u8]) -> Listening {
        let guard = self.guard(index);
        if !guard.is_listened_to() {
            return Listening::Nobody;
        }
        if guard.taps.is_none() && guard.only_follower().is_some() {
            let (db, slot) = (self.db, self.slot_at(index));
            self.changes.effects.focus(slot, db, key);
            return Listening::Follows;
        }
        self.tell_taps(index, hash, key)
    }

    #[cold]
    fn tell_taps(&mut self, index: usize, hash: u64, key: &[u8]) -> Listening {
        let (db, slot, now_ms) = (self.db, self.slot_at(index), self.now_ms);
        let guard = &mut **self.guard_mut(index);
        if guard.follower.as_ref().is_some_and(|stream| stream.has_ended()) {
            guard.follower = None;
        }
        let mut follows = guard.follower.as_ref().is_some_and(|stream| stream.takes_effects());
        let mut is_left_out = false;
        if let Some(taps) = &mut guard.taps {
            taps.forget_ended();
            is_left_out = taps.save(slot, &guard.tables, db, hash, now_ms);
            follows |= taps.iter().any(|tap| tap.follows());
        }
        guard.drop_empty_taps();
        if !guard.is_listened_to() {
            return Listening::Nobody;
        }
        if !follows {
            return Listening::Quietly;
        }
        self.changes.effects.focus(slot, db, key);
        if is_left_out {
            self.record_state(index, hash, key);
        }
        Listening::Follows
    }

    /// Records the whole state of a key, as an effect.
    pub(super) fn record_state(&mut self, index: usize, hash: u64, key: &[u8]) {
        let Self { held, changes, db, .. } = self;
        let entry = held.guard(index).db(*db).and_then(|part| part.table.get(hash, key));
        if let Some(entry) = entry {
            record_value(&mut changes.effects, entry.value_ref(), entry.expires_at_ms());
        }
    }

    /// Records that the key in focus holds a value now.
    pub(super) fn record_value(&mut self, listening: Listening, value: &Value, expires_at_ms: Option<u64>) {
        if listening == Listening::Follows {
            record_value(&mut self.changes.effects, value.as_ref(), expires_at_ms);
        }
    }

    /// Records that the key in focus is gone. A collection that was emptied before needs no effect of its own.
    pub(super) fn record_removal(&mut self, listening: Listening, entry: &Entry) {
        if listening == Listening::Follows {
            match entry.value_ref().elements() {
                0 => {}
                elements if elements > DEL_ELEMENTS_MAX => self.changes.effects.record("UNLINK", []),
                _ => self.changes.effects.record("DEL", []),
            }
        }
    }

    /// Records the expiry that the key in focus has now.
    pub(super) fn record_expiry(&mut self, listening: Listening, at_ms: Option<u64>) {
        if listening == Listening::Follows {
            match at_ms {
                None => self.changes.effects.record("PERSIST", []),
                Some(at_ms) => {
                    let mut buffer = itoa::Buffer::new();
                    self.changes.effects.record("PEXPIREAT", [buffer.format(at_ms).as_bytes()]);
                }
            }
        }
    }

    /// The streams that send the value of this key in pieces at present.
    pub(super) fn has_partial(&self, index: usize, hash: u64, key: &[u8]) -> bool {
        self.guard(index).taps.as_ref().is_some_and(|taps| taps.has_partial(self.db, hash, key))
    }

    /// Frees the value of an entry that was taken out of the table, or gives it to the streams that still need it.
    pub(super) fn let_go(&mut self, index: usize, hash: u64, entry: Entry) {
        if self.guard(index).taps.is_some() && self.has_partial(index, hash, entry.key()) {
            let (db, key) = (self.db, Box::<[u8]>::from(entry.key()));
            if let Some(taps) = &mut self.guard_mut(index).taps {
                taps.keep(db, hash, &key, entry.into_value());
            }
        } else if entry.value_ref().elements() > super::FREE_INLINE_ELEMENTS_MAX {
            self.changes.garbage.push(entry.into_value());
        }
    }

    /// The value of a key is about to belong to another key.
    pub(super) fn before_move(&mut self, index: usize, hash: u64, key: &[u8]) {
        if self.guard(index).taps.is_none() || !self.has_partial(index, hash, key) {
            return;
        }
        let db = self.db;
        let guard = &mut **self.guard_mut(index);
        if let Some(taps) = &mut guard.taps {
            taps.save_all(&guard.tables, db, hash, key);
        }
    }

    /// Notes what the slots that were just taken tell of, see [`crate::changes::Changes::seen`].
    #[inline]
    pub(super) fn note_seen(&mut self) {
        match &self.held {
            Held::Few(few) => {
                let seen = few.iter().fold(self.changes.seen, |seen, (_, guard)| seen.max(guard.written));
                self.changes.seen = seen;
            }
            // Without a stream there is nothing to be seen in 16384 slots.
            Held::All(all) if self.store.streams().load(Ordering::Relaxed) > 0 => {
                let seen = all.iter().fold(self.changes.seen, |seen, guard| seen.max(guard.written));
                self.changes.seen = seen;
            }
            Held::All(_) => {}
        }
    }

    /// From now on until [`Keyspace::end_unit`], the effects of all commands are one unit: they are replayed all or none.
    pub fn begin_unit(&mut self) {
        self.commit();
        self.is_in_unit = true;
    }

    /// Ends a [`Keyspace::begin_unit`].
    pub fn end_unit(&mut self) {
        self.is_in_unit = false;
        self.commit();
    }

    /// Ends the command's unit of effects. Those who listen are given all units together, before the slots are let go.
    #[inline]
    pub(super) fn commit(&mut self) {
        if !self.changes.effects.is_empty() && !self.is_in_unit {
            self.changes.effects.end_unit();
        }
    }

    /// Gives the effects to those who listen.
    pub(super) fn commit_effects(&mut self) {
        self.changes.effects.end_unit();
        let Self { held, changes, .. } = &mut *self;
        // Mostly there is one listener, the log.
        let position = match only_follower(held, &changes.effects) {
            Some(log) => log.append(&changes.effects, |_| true).filter(|_| log.reports_position()),
            None => self.give_to_all(),
        };
        if let Some(position) = position {
            self.note_written(position);
        }
        self.changes.effects.clear();
    }

    /// The slots' last unit, in a stream that reports positions, is this one, or one of the same hold before it.
    fn note_written(&mut self, position: u64) {
        let Self { held, changes, .. } = self;
        changes.position = position;
        for op in 0..changes.effects.len() {
            match changes.effects.scope(op).0 {
                Scope::Slot(slot) => held.guard_mut(held.index_of(slot)).written = position,
                Scope::Store => {
                    (0..SLOT_COUNT).for_each(|index| held.guard_mut(index).written = position);
                }
            }
        }
    }

    /// Gives the effects to each listener as far as they concern it; the last position in one that reports positions.
    #[cold]
    fn give_to_all(&mut self) -> Option<u64> {
        let Self { held, changes, .. } = self;
        let effects = &changes.effects;
        let mut last = None;
        let mut streams = SmallVec::<[Arc<Shared>; 2]>::new();
        let mut add = |index: usize| {
            let guard = held.guard(index);
            let taps = guard.taps.iter().flat_map(|taps| taps.iter()).map(|tap| tap.shared());
            for stream in taps.chain(&guard.follower).filter(|stream| stream.takes_effects()) {
                if !streams.iter().any(|known| Arc::ptr_eq(known, stream)) {
                    streams.push(Arc::clone(stream));
                }
            }
        };
        for op in 0..effects.len() {
            match effects.scope(op).0 {
                Scope::Slot(slot) => add(held.index_of(slot)),
                Scope::Store => (0..SLOT_COUNT).for_each(&mut add),
            }
        }
        let is_single = effects.len() == 1;
        let listens = |slot, stream: &Arc<Shared>| {
            let guard = held.guard(held.index_of(slot));
            guard.taps.as_ref().is_some_and(|taps| taps.has(stream))
                || guard.follower.as_ref().is_some_and(|follower| Arc::ptr_eq(follower, stream))
        };
        for stream in &streams {
            let wants = |scope| match scope {
                Scope::Slot(slot) => is_single || listens(slot, stream),
                Scope::Store => true,
            };
            let position = stream.append(effects, wants);
            if stream.reports_position() {
                last = last.max(position);
            }
        }
        last
    }

    /// Records an effect on whole databases, if somebody listens anywhere; all slots are held.
    pub(super) fn record_for_all(&mut self, db: u8, verb: &'static str, args: &[u8]) {
        if self.store.streams().load(Ordering::Relaxed) > 0 {
            let args = args.split(|&byte| byte == b' ').filter(|arg| !arg.is_empty());
            self.changes.effects.record_whole(Scope::Store, db, verb, args);
        }
    }

    /// The way from the value of this key, which is held, to the streams that send it in pieces.
    pub(super) fn link<'a>(
        taps: Option<&'a mut crate::stream::Taps>,
        db: u8,
        hash: u64,
        key: &[u8],
    ) -> Option<PartialLink<'a>> {
        let taps = taps.filter(|taps| taps.has_partial(db, hash, key))?;
        Some(PartialLink { taps, db, hash, key: key.into() })
    }
}

impl Drop for Keyspace<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.changes.effects.is_empty() {
            self.commit_effects();
        }
    }
}

/// The stream that all effects concern, if there is only one at their slots, and it needs no other care.
fn only_follower<'a>(held: &'a Held<'_>, effects: &Effects) -> Option<&'a Arc<Shared>> {
    let of = |op| match effects.scope(op).0 {
        Scope::Slot(slot) => held.guard(held.index_of(slot)).only_follower(),
        Scope::Store => None,
    };
    let first = of(0)?;
    (1..effects.len()).all(|op| of(op).is_some_and(|other| Arc::ptr_eq(first, other))).then_some(first)
}

fn record_value(effects: &mut Effects, value: ValueRef<'_>, expires_at_ms: Option<u64>) {
    if let ValueRef::String(text) = value {
        record_set(effects, text, expires_at_ms);
    } else if value.elements() > 0 {
        let (payload, mut buffer) = (payload(value), itoa::Buffer::new());
        let at_ms = buffer.format(expires_at_ms.unwrap_or(0)).as_bytes();
        effects.record("RESTORE", [at_ms, &payload, b"REPLACE", b"ABSTTL"]);
    }
}

/// What a key's expiry becomes.
pub(super) fn expiry_after(expiry: Expiry, before: Option<u64>) -> Option<u64> {
    match expiry {
        Expiry::Keep => before,
        Expiry::Clear => None,
        Expiry::At(at) => Some(at),
    }
}

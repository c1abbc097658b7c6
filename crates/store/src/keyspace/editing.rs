//! Values that are being changed.
//!
//! Owns: the only ways to change a value in place. Each does two things beside the change itself, if somebody listens at the
//! slot: before it, streams save what they still need of the elements concerned; after it, the effect is recorded. A command
//! changes values through these types and so can forget neither. Does **not** own the values' operations, nor what happens
//! to a key as a whole (see [`super`]).

use crate::effects::{Effects, format_score};
use crate::entry::Entry;
use crate::hash::{Hash, OldExpiry};
use crate::limits::EncodingLimits;
use crate::list::{End, List, Side};
use crate::set::Set;
use crate::stream::PartialLink;
use crate::table::RefMut;
use crate::value::Str;
use crate::zset::{Inserted, Zset};
use std::fmt;
use std::ops::{Deref, Range};
use towline_sansio::Prng;

/// Where changes of a value are told.
pub(super) struct Log<'a> {
    /// Where effects go, if a stream follows.
    pub(super) effects: Option<&'a mut Effects>,
    /// The streams that send the value in pieces at present, if any.
    pub(super) partials: Option<PartialLink<'a>>,
}

impl Log<'_> {
    fn extend<'b>(&mut self, verb: &'static str, args: impl IntoIterator<Item = &'b [u8]>) {
        if let Some(effects) = &mut self.effects {
            effects.extend(verb, args);
        }
    }

    fn record<'b>(&mut self, verb: &'static str, args: impl IntoIterator<Item = &'b [u8]>) {
        if let Some(effects) = &mut self.effects {
            effects.record(verb, args);
        }
    }
}

/// A list, hash, set or sorted set that may be changed. Reads go to the value itself.
pub struct Editing<'a, T> {
    pub(super) value: &'a mut T,
    pub(super) log: Option<Log<'a>>,
}

/// A list that may be changed.
pub type ListMut<'a> = Editing<'a, List>;
/// A hash that may be changed.
pub type HashMut<'a> = Editing<'a, Hash>;
/// A set that may be changed.
pub type SetMut<'a> = Editing<'a, Set>;
/// A sorted set that may be changed.
pub type ZsetMut<'a> = Editing<'a, Zset>;

impl<T: fmt::Debug> fmt::Debug for Editing<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Editing").field(&self.value).finish()
    }
}

impl<T> Deref for Editing<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        self.value
    }
}

impl<'a, T> Editing<'a, T> {
    /// The value, to be read for as long as it was handed out.
    pub fn into_ref(self) -> &'a T {
        self.value
    }
}

const fn push_verb(end: End) -> &'static str {
    match end {
        End::Front => "LPUSH",
        End::Back => "RPUSH",
    }
}

const fn pop_verb(end: End) -> &'static str {
    match end {
        End::Front => "LPOP",
        End::Back => "RPOP",
    }
}

const fn end_name(end: End) -> &'static [u8] {
    match end {
        End::Front => b"LEFT",
        End::Back => b"RIGHT",
    }
}

fn number(buffer: &mut itoa::Buffer, number: impl itoa::Integer) -> &[u8] {
    buffer.format(number).as_bytes()
}

impl ListMut<'_> {
    /// See [`List::push`].
    pub fn push(&mut self, end: End, value: &[u8], limits: &EncodingLimits) {
        self.push_all(end, std::iter::once(value), limits);
    }

    /// See [`List::push_all`].
    pub fn push_all<'v, I>(&mut self, end: End, values: I, limits: &EncodingLimits)
    where
        I: IntoIterator<Item = &'v [u8]>,
        I::IntoIter: Clone,
    {
        let values = values.into_iter();
        if let Some(log) = &mut self.log {
            if end == End::Front
                && let Some(partials) = &mut log.partials
            {
                partials.before_insert(0, values.clone().count());
            }
            log.extend(push_verb(end), values.clone());
        }
        self.value.push_all(end, values, limits);
    }

    /// See [`List::pop`].
    pub fn pop(&mut self, end: End, limits: &EncodingLimits) -> Option<Vec<u8>> {
        let value = self.value.peek(end)?.to_vec();
        self.drop_from(end, 1, limits);
        Some(value)
    }

    /// See [`List::drop_from`].
    pub fn drop_from(&mut self, end: End, count: usize, limits: &EncodingLimits) {
        if let Some(log) = &mut self.log {
            let len = self.value.len();
            let count = count.min(len);
            let gone = match end {
                End::Front => 0..count,
                End::Back => len - count..len,
            };
            if let Some(partials) = &mut log.partials {
                partials.before_cut(self.value, gone);
            }
            match count {
                0 => {}
                1 => log.record(pop_verb(end), []),
                count => log.record(pop_verb(end), [number(&mut itoa::Buffer::new(), count)]),
            }
        }
        self.value.drop_from(end, count, limits);
    }

    /// See [`List::rotate`].
    pub fn rotate(&mut self, from: End, to: End, limits: &EncodingLimits) -> Option<Vec<u8>> {
        if let Some(log) = &mut self.log
            && let Some(effects) = &mut log.effects
            && !self.value.is_empty()
        {
            let key = effects.key().to_vec();
            effects.record("LMOVE", [&key[..], end_name(from), end_name(to)]);
        }
        if let Some(partials) = self.log.as_mut().and_then(|log| log.partials.as_mut())
            && let Some(last) = self.value.len().checked_sub(1)
        {
            let at = if from == End::Front { 0 } else { last };
            partials.before_cut(self.value, at..at + 1);
            partials.before_insert(if to == End::Front { 0 } else { last }, 1);
        }
        self.value.rotate(from, to, limits)
    }

    /// See [`List::keep`].
    pub fn keep(&mut self, range: Range<usize>, limits: &EncodingLimits) {
        let len = self.value.len();
        if range.is_empty() {
            self.drop_from(End::Front, len, limits);
        } else {
            self.drop_from(End::Back, len.saturating_sub(range.end), limits);
            self.drop_from(End::Front, range.start, limits);
        }
    }

    /// See [`List::set`].
    pub fn set(&mut self, index: usize, value: &[u8], limits: &EncodingLimits) -> bool {
        if let Some(log) = &mut self.log
            && index < self.value.len()
        {
            if let Some(partials) = &mut log.partials {
                partials.before_set(self.value, index);
            }
            log.record("LSET", [number(&mut itoa::Buffer::new(), index), value]);
        }
        self.value.set(index, value, limits)
    }

    /// See [`List::insert_beside`].
    pub fn insert_beside(&mut self, side: Side, pivot: &[u8], value: &[u8], limits: &EncodingLimits) -> bool {
        if let Some(partials) = self.log.as_mut().and_then(|log| log.partials.as_mut())
            && let Some(&at) = self.value.positions(pivot, 1, 1, 0).first()
        {
            partials.before_insert(if side == Side::Before { at } else { at + 1 }, 1);
        }
        let is_done = self.value.insert_beside(side, pivot, value, limits);
        if is_done && let Some(log) = &mut self.log {
            let side: &[u8] = if side == Side::Before { b"BEFORE" } else { b"AFTER" };
            log.record("LINSERT", [side, pivot, value]);
        }
        is_done
    }

    /// See [`List::remove_equal`].
    pub fn remove_equal(&mut self, end: End, max: usize, value: &[u8], limits: &EncodingLimits) -> usize {
        if let Some(partials) = self.log.as_mut().and_then(|log| log.partials.as_mut())
            && max > 0
        {
            let rank = if end == End::Front { 1 } else { -1 };
            let mut gone = self.value.positions(value, rank, if max == usize::MAX { 0 } else { max }, 0);
            gone.sort_unstable();
            // From the tail on, so that the indices in front stay what they are.
            gone.iter().rev().for_each(|&at| partials.before_cut(self.value, at..at + 1));
        }
        let removed = self.value.remove_equal(end, max, value, limits);
        if removed > 0
            && let Some(log) = &mut self.log
        {
            let mut buffer = itoa::Buffer::new();
            let count = removed as i64;
            log.record("LREM", [number(&mut buffer, if end == End::Back { -count } else { count }), value]);
        }
        removed
    }
}

impl HashMut<'_> {
    fn before(&mut self, name: &[u8]) {
        if let Some(partials) = self.log.as_mut().and_then(|log| log.partials.as_mut()) {
            partials.before_field(self.value, name);
        }
    }

    /// See [`Hash::set`].
    pub fn set(&mut self, name: &[u8], value: &[u8], old_expiry: OldExpiry, limits: &EncodingLimits) -> bool {
        self.before(name);
        if let Some(log) = &mut self.log {
            log.extend("HSET", [name, value]);
            if old_expiry == OldExpiry::Keep
                && let Some(at_ms) = self.value.expires_at_ms(name).flatten()
            {
                record_field_expiry(log, name, at_ms);
            }
        }
        self.value.set(name, value, old_expiry, limits)
    }

    /// See [`Hash::set_all`].
    pub fn set_all<'v>(
        &mut self,
        pairs: impl ExactSizeIterator<Item = (&'v [u8], &'v [u8])> + Clone,
        limits: &EncodingLimits,
    ) -> usize {
        if self.log.is_some() {
            for (name, value) in pairs.clone() {
                self.before(name);
                if let Some(log) = &mut self.log {
                    log.extend("HSET", [name, value]);
                }
            }
        }
        self.value.set_all(pairs, limits)
    }

    /// See [`Hash::remove`].
    pub fn remove(&mut self, name: &[u8]) -> bool {
        self.before(name);
        let is_removed = self.value.remove(name);
        if is_removed && let Some(log) = &mut self.log {
            log.extend("HDEL", [name]);
        }
        is_removed
    }

    /// See [`Hash::set_expires_at_ms`].
    pub fn set_expires_at_ms(&mut self, name: &[u8], at_ms: u64) -> bool {
        self.before(name);
        let is_set = self.value.set_expires_at_ms(name, at_ms);
        if is_set && let Some(log) = &mut self.log {
            record_field_expiry(log, name, at_ms);
        }
        is_set
    }

    /// See [`Hash::persist`].
    pub fn persist(&mut self, name: &[u8]) -> bool {
        self.before(name);
        let is_changed = self.value.persist(name);
        if is_changed && let Some(log) = &mut self.log {
            log.record("HPERSIST", [b"FIELDS".as_slice(), b"1", name]);
        }
        is_changed
    }

    /// See [`Hash::expire_due`]; removes all that are due.
    pub(super) fn expire_due(&mut self, now_ms: u64) -> usize {
        if let Some(log) = &mut self.log {
            let value = &*self.value;
            value.for_each_due(now_ms, &mut |name| {
                if let Some(partials) = &mut log.partials {
                    partials.before_field(value, name);
                }
            });
            return self.value.expire_due(now_ms, usize::MAX, &mut |name| log.extend("HDEL", [name]));
        }
        self.value.expire_due(now_ms, usize::MAX, &mut |_| {})
    }
}

fn record_field_expiry(log: &mut Log<'_>, name: &[u8], at_ms: u64) {
    let mut buffer = itoa::Buffer::new();
    log.record("HPEXPIREAT", [number(&mut buffer, at_ms), b"FIELDS", b"1", name]);
}

impl SetMut<'_> {
    fn before(&mut self, member: &[u8]) {
        if let Some(partials) = self.log.as_mut().and_then(|log| log.partials.as_mut()) {
            partials.before_member(self.value, member);
        }
    }

    /// See [`Set::add_all`].
    pub fn add_all<'m>(
        &mut self,
        members: impl ExactSizeIterator<Item = &'m [u8]> + Clone,
        limits: &EncodingLimits,
    ) -> usize {
        if self.log.is_some() {
            for member in members.clone() {
                self.before(member);
                if let Some(log) = &mut self.log
                    && !self.value.contains(member)
                {
                    log.extend("SADD", [member]);
                }
            }
        }
        self.value.add_all(members, limits)
    }

    /// See [`Set::remove`].
    pub fn remove(&mut self, member: &[u8]) -> bool {
        self.before(member);
        let is_removed = self.value.remove(member);
        if is_removed && let Some(log) = &mut self.log {
            log.extend("SREM", [member]);
        }
        is_removed
    }

    /// See [`Set::pop_random`].
    pub fn pop_random(&mut self, rng: &mut Prng) -> Option<Vec<u8>> {
        let member = self.value.random(rng)?.to_vec();
        self.remove(&member);
        Some(member)
    }

    /// See [`Set::pop_sample`].
    pub fn pop_sample(&mut self, count: usize, rng: &mut Prng) -> Vec<Vec<u8>> {
        if self.log.is_none() {
            return self.value.pop_sample(count, rng);
        }
        let members: Vec<_> =
            self.value.sample(count, rng).into_iter().map(|member| member.to_vec()).collect();
        for member in &members {
            self.remove(member);
        }
        members
    }
}

impl ZsetMut<'_> {
    /// See [`Zset::insert`].
    pub fn insert(&mut self, member: &[u8], score: f64, limits: &EncodingLimits) -> Inserted {
        if let Some(partials) = self.log.as_mut().and_then(|log| log.partials.as_mut()) {
            partials.before_score(self.value, member);
        }
        let inserted = self.value.insert(member, score, limits);
        if matches!(inserted, Inserted::Added | Inserted::Updated)
            && let Some(log) = &mut self.log
        {
            log.extend("ZADD", [format_score(score).as_bytes(), member]);
        }
        inserted
    }

    /// See [`Zset::remove`].
    pub fn remove(&mut self, member: &[u8]) -> Option<f64> {
        if let Some(partials) = self.log.as_mut().and_then(|log| log.partials.as_mut()) {
            partials.before_removal(self.value, member);
        }
        let score = self.value.remove(member)?;
        if let Some(log) = &mut self.log {
            log.extend("ZREM", [member]);
        }
        Some(score)
    }

    /// See [`Zset::remove_range`].
    pub fn remove_range(&mut self, ranks: Range<usize>) -> usize {
        if self.log.is_none() {
            return self.value.remove_range(ranks);
        }
        let members: Vec<_> = self.value.range(ranks).map(|(member, _)| member.to_vec()).collect();
        members.iter().filter(|member| self.remove(member).is_some()).count()
    }
}

/// What became of a string that was put through [`StringMut::change_string`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StringChange {
    /// It is what it was.
    Unchanged,
    /// All that was to be done was done.
    Complete,
    /// An error came in between: the same command would fail again wherever it is replayed.
    Partial,
}

/// A string that may be changed, with what is known of its entry.
pub struct StringMut<'a> {
    pub(super) entry: RefMut<'a, Entry>,
    pub(super) effects: Option<&'a mut Effects>,
}

impl fmt::Debug for StringMut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StringMut").field(&self.entry).finish()
    }
}

impl Deref for StringMut<'_> {
    type Target = Entry;
    #[inline]
    fn deref(&self) -> &Entry {
        &self.entry
    }
}

impl StringMut<'_> {
    /// See [`Entry::set_int`].
    #[inline]
    pub fn set_int(&mut self, number: i64) -> bool {
        let is_set = self.entry.set_int(number);
        self.record_whole();
        is_set
    }

    /// Lets `change` at the bytes in `range` of the string, which is padded with zeros to at least `len` first. Bytes
    /// outside of `range` must stay as they are. `None`, and nothing happens, for other kinds.
    ///
    /// # Panics
    /// If `range` does not lie within `len`.
    pub fn change_bytes<R>(
        &mut self,
        len: usize,
        range: Range<usize>,
        change: impl FnOnce(&mut [u8]) -> R,
    ) -> Option<R> {
        let old_len = self.entry.as_str()?.len();
        let old = self.effects.as_ref().and_then(|_| {
            let mut scratch = [0; 20];
            let text = self.entry.as_str()?.bytes(&mut scratch);
            (old_len >= len).then(|| text.get(range.clone()).map(<[u8]>::to_vec))?
        });
        let result = if old_len >= len {
            change(self.entry.string_bytes_mut()?)
        } else {
            self.entry.change_string(|text| {
                text.resize(len, 0);
                change(text)
            })?
        };
        if let Some(effects) = &mut self.effects {
            let text = self.entry.as_str()?;
            let mut scratch = [0; 20];
            let text = text.bytes(&mut scratch);
            let mut buffer = itoa::Buffer::new();
            if !range.is_empty() && old.is_none_or(|old| old != text[range.clone()]) {
                effects.record("SETRANGE", [number(&mut buffer, range.start), &text[range.clone()]]);
            }
            if old_len < len && range.end < len {
                effects.record("SETRANGE", [number(&mut buffer, len - 1), &text[len - 1..len]]);
            }
        }
        Some(result)
    }

    /// Appends to the string. `None`, and nothing happens, for other kinds.
    pub fn append(&mut self, tail: &[u8]) -> Option<()> {
        self.entry.change_string(|text| text.extend_from_slice(tail))?;
        if let Some(effects) = &mut self.effects {
            effects.record("APPEND", [tail]);
        }
        Some(())
    }

    /// Puts the string through `change` (see [`Entry::change_string`]), of whose result `judge` says what became of it. The
    /// effect is the command `verb key args…` where `change` does what that command does, and the whole string where there is
    /// no such command.
    pub fn change_string<R>(
        &mut self,
        effect: Option<(&'static str, &mut dyn Iterator<Item = &[u8]>)>,
        judge: impl FnOnce(&R) -> StringChange,
        change: impl FnOnce(&mut Vec<u8>) -> R,
    ) -> Option<R> {
        let result = self.entry.change_string(change)?;
        if let Some(effects) = &mut self.effects {
            match (judge(&result), effect) {
                (StringChange::Unchanged, _) => {}
                (StringChange::Complete, Some((verb, args))) => effects.record(verb, args),
                (StringChange::Complete, None) | (StringChange::Partial, _) => self.record_whole(),
            }
        }
        Some(result)
    }

    #[inline]
    fn record_whole(&mut self) {
        if self.effects.is_some() {
            self.record_set();
        }
    }

    #[cold]
    fn record_set(&mut self) {
        if let (Some(effects), Some(text)) = (&mut self.effects, self.entry.as_str()) {
            record_set(effects, text, self.entry.expires_at_ms());
        }
    }
}

/// Records that the key at hand holds this string with this expiry.
pub(super) fn record_set(effects: &mut Effects, text: Str<'_>, expires_at_ms: Option<u64>) {
    let (mut scratch, mut buffer) = ([0; 20], itoa::Buffer::new());
    let text = text.bytes(&mut scratch);
    match expires_at_ms {
        None => effects.record("SET", [text]),
        Some(at_ms) => effects.record("SET", [text, b"PXAT", number(&mut buffer, at_ms)]),
    }
}

//! The model server's data: strings and lists with expiry, in numbered databases.
//!
//! Owns values, their types and their expiry. Does not own commands, waiting clients, or who watches a key.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use towline_resp::number::parse_i64;
use towline_sansio::Instant;

use super::failure::Failure;

/// How many databases `SELECT` knows, as in Redis.
pub(super) const DATABASES: u32 = 16;

/// A key and the database that it is in.
pub(super) type DbKey = (u32, Bytes);

/// What a key holds.
#[derive(Clone, Debug)]
pub(super) enum Value {
    String(Vec<u8>),
    /// Never empty: a list that becomes empty takes its key with it.
    List(VecDeque<Bytes>),
}

#[derive(Clone, Debug)]
struct Slot {
    value: Value,
    expires: Option<Instant>,
}

/// Which end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Left,
    Right,
}

/// All keys of all databases.
#[derive(Debug, Default)]
pub(super) struct Keyspace {
    slots: BTreeMap<DbKey, Slot>,
}

impl Keyspace {
    /// The value, unless it has expired by `now`.
    pub(super) fn value(&mut self, now: Instant, key: &DbKey) -> Option<&mut Value> {
        self.live(now, key).map(|slot| &mut slot.value)
    }

    fn live(&mut self, now: Instant, key: &DbKey) -> Option<&mut Slot> {
        if self.slots.get(key)?.expires.is_some_and(|at| at <= now) {
            self.slots.remove(key);
            return None;
        }
        self.slots.get_mut(key)
    }

    /// The string, or nothing if there is no such key.
    pub(super) fn string(&mut self, now: Instant, key: &DbKey) -> Result<Option<&mut Vec<u8>>, Failure> {
        match self.value(now, key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(Value::List(_)) => Err(Failure::WrongType),
        }
    }

    /// The list, or nothing if there is no such key.
    pub(super) fn list(
        &mut self,
        now: Instant,
        key: &DbKey,
    ) -> Result<Option<&mut VecDeque<Bytes>>, Failure> {
        match self.value(now, key) {
            None => Ok(None),
            Some(Value::List(list)) => Ok(Some(list)),
            Some(Value::String(_)) => Err(Failure::WrongType),
        }
    }

    /// Sets a string, whatever was there before.
    pub(super) fn set(&mut self, key: DbKey, value: &[u8], expires: Option<Instant>) {
        self.slots.insert(key, Slot { value: Value::String(value.to_vec()), expires });
    }

    /// Removes a key; whether it was there.
    pub(super) fn remove(&mut self, now: Instant, key: &DbKey) -> bool {
        self.live(now, key).is_some() && self.slots.remove(key).is_some()
    }

    /// Adds to an integer; the new value. A missing key counts as 0.
    pub(super) fn add(&mut self, now: Instant, key: &DbKey, by: i64) -> Result<i64, Failure> {
        let text = self.string(now, key)?;
        let old = match &text {
            None => 0,
            Some(text) => parse_i64(text).ok_or(Failure::NotInteger)?,
        };
        let new = old.checked_add(by).ok_or(Failure::Overflow)?;
        match text {
            Some(text) => *text = new.to_string().into_bytes(),
            None => self.set(key.clone(), new.to_string().as_bytes(), None),
        }
        Ok(new)
    }

    /// Appends to a string; its new length.
    pub(super) fn append(&mut self, now: Instant, key: &DbKey, more: &[u8]) -> Result<usize, Failure> {
        if let Some(text) = self.string(now, key)? {
            text.extend_from_slice(more);
            return Ok(text.len());
        }
        self.set(key.clone(), more, None);
        Ok(more.len())
    }

    /// Pushes onto a list, one after the other; its new length.
    pub(super) fn push(
        &mut self,
        now: Instant,
        key: &DbKey,
        end: End,
        elements: &[Bytes],
    ) -> Result<usize, Failure> {
        if self.list(now, key)?.is_none() {
            let empty = Slot { value: Value::List(VecDeque::new()), expires: None };
            self.slots.insert(key.clone(), empty);
        }
        let Some(list) = self.list(now, key)? else { return Ok(0) };
        for element in elements {
            match end {
                End::Left => list.push_front(element.clone()),
                End::Right => list.push_back(element.clone()),
            }
        }
        Ok(list.len())
    }

    /// Pops from a list; nothing if there is no such key.
    pub(super) fn pop(&mut self, now: Instant, key: &DbKey, end: End) -> Result<Option<Bytes>, Failure> {
        let Some(list) = self.list(now, key)? else { return Ok(None) };
        let element = match end {
            End::Left => list.pop_front(),
            End::Right => list.pop_back(),
        };
        if list.is_empty() {
            self.slots.remove(key);
        }
        Ok(element)
    }

    /// Sets or takes away the time of expiry; whether the key is there.
    pub(super) fn expire(&mut self, now: Instant, key: &DbKey, expires: Option<Instant>) -> bool {
        match self.live(now, key) {
            None => false,
            Some(slot) => {
                slot.expires = expires;
                true
            }
        }
    }

    /// Outer `None`: no such key. Inner `None`: it does not expire.
    #[expect(clippy::option_option, reason = "the two absences have two replies")]
    pub(super) fn ttl(&mut self, now: Instant, key: &DbKey) -> Option<Option<Duration>> {
        self.live(now, key).map(|slot| slot.expires.map(|at| at.since(now)))
    }

    /// The keys of one database, in byte order.
    pub(super) fn keys(&self, now: Instant, db: u32) -> Vec<DbKey> {
        let is_live = |slot: &Slot| slot.expires.is_none_or(|at| at > now);
        let in_db = self.slots.range((db, Bytes::new())..).take_while(|((of, _), _)| *of == db);
        in_db.filter(|(_, slot)| is_live(slot)).map(|(key, _)| key.clone()).collect()
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.slots.clear();
    }
}

//! What a thread that loads does with a job.
//!
//! Owns: the jobs, and putting keys into the store. Does **not** own reading files, nor the commands of a log (see `apply`).

use super::LoadError;
use crate::commands::ValueBuilder;
use crate::shared::Shared;
use smallvec::SmallVec;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use towline_cluster::{Slot, key_slot};
use towline_persist::rdb_file::{Part, RdbFileError, RdbFileErrorKind, ValuePart};
use towline_rdb::length::read_string;
use towline_rdb::{Limits, ObjectError, RdbType, Reader};
use towline_resp::writer::Writer;
use towline_store::changes::{Changes, Settings};
use towline_store::hasher::hash64;
use towline_store::keyspace::Keyspace;
use towline_store::value::Value;

use super::apply::CommandBatch;

/// Keys whose slots are held together: as many misses as a core waits for at a time, and no more than are held without an
/// allocation.
const GROUP_KEYS: usize = 8;

/// Keys that were decoded, with their slots.
type Group<'a> = SmallVec<[(&'a KeyHead, &'a [u8], Slot, Decoded<'a>); GROUP_KEYS]>;

/// Work for one thread.
#[derive(Debug)]
pub(super) enum Job {
    /// Keys with their whole values.
    Keys(KeyBatch),
    /// A part of a large value.
    Part(ValueJob),
    /// Commands of a log.
    Commands(CommandBatch),
}

/// A key, without its bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyHead {
    /// Where it is in the file.
    pub(super) offset: u64,
    pub(super) db: u8,
    pub(super) expires_at_ms: Option<u64>,
    /// Its access bits.
    pub(super) access: u32,
    pub(super) rdb_type: RdbType,
}

#[derive(Debug)]
struct KeyItem {
    head: KeyHead,
    key_bytes: usize,
    body_bytes: usize,
}

/// Keys with their values as they are in the file.
#[derive(Debug, Default)]
pub(super) struct KeyBatch {
    bytes: Vec<u8>,
    items: Vec<KeyItem>,
}

impl KeyBatch {
    /// Adds a key.
    pub(super) fn push(&mut self, head: KeyHead, key: &[u8], body: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(body);
        self.items.push(KeyItem { head, key_bytes: key.len(), body_bytes: body.len() });
    }

    /// Bytes of keys and values, and what is noted of each.
    pub(super) fn mem_bytes(&self) -> usize {
        self.bytes.len() + self.items.len() * size_of::<KeyItem>()
    }

    /// Whether there is no key.
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

/// A value that comes in parts.
#[derive(Debug)]
pub(super) struct LargeValue {
    head: KeyHead,
    key: Vec<u8>,
    /// What was put together of it, and how many elements its first part announced.
    value: Mutex<(Value, usize)>,
}

impl LargeValue {
    /// Nothing of the value yet.
    pub(super) fn new(head: KeyHead, key: &[u8]) -> Arc<Self> {
        Arc::new(Self { head, key: key.to_vec(), value: Mutex::new((Value::Bytes(Vec::new()), 0)) })
    }
}

/// A part of a large value.
#[derive(Debug)]
pub(super) struct ValueJob {
    pub(super) large: Arc<LargeValue>,
    pub(super) part: Part,
    pub(super) body: Vec<u8>,
}

/// What one thread has to itself.
pub(super) struct Hands<'a> {
    pub(super) shared: &'a Shared,
    pub(super) settings: &'a Settings,
    pub(super) path: &'a Path,
    pub(super) limits: Limits,
    pub(super) changes: Changes,
    pub(super) out: Writer,
    /// Commands on keys that were left out may find none.
    pub(super) is_incomplete: bool,
    pub(super) purpose: Purpose,
}

/// What becomes of what is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Nothing: it is only to be seen whether it can be loaded.
    Check,
    /// As `Check`, into a store that has none of the keys.
    CheckNew,
    /// It is put into a store that has none of it: a key that is there is damage.
    Load,
    /// It takes the place of what is there.
    Merge,
}

impl<'a> Hands<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        settings: &'a Settings,
        path: &'a Path,
        limits: Limits,
        purpose: Purpose,
    ) -> Self {
        Self {
            shared,
            settings,
            path,
            limits,
            // Nothing that is loaded depends on chance; evictions and samples come later.
            changes: Changes::new(0),
            out: Writer::default(),
            is_incomplete: false,
            purpose,
        }
    }

    /// Does a job.
    pub(super) fn run(&mut self, job: Job) -> Result<(), LoadError> {
        let result = match job {
            Job::Keys(batch) => self.keys(&batch),
            Job::Part(part) => self.part(&part),
            Job::Commands(batch) => self.commands(&batch),
        };
        // What was replaced is freed here: nobody waits for this thread.
        self.changes.garbage.clear();
        self.changes.tables.clear();
        result
    }

    fn keys(&mut self, batch: &KeyBatch) -> Result<(), LoadError> {
        let (mut loaded, mut empty, mut bytes) = (0, 0, batch.bytes.as_slice());
        let mut group = Group::new();
        for items in batch.items.chunks(GROUP_KEYS) {
            group.clear();
            for item in items {
                let (key, rest) = bytes.split_at(item.key_bytes);
                let (body, rest) = rest.split_at(item.body_bytes);
                bytes = rest;
                let slot = key_slot(key);
                self.shared.store.prefetch_slot(slot);
                match decode(&item.head, key, body, self.limits, self.settings) {
                    Ok(value) => group.push((&item.head, key, slot, value)),
                    Err(ObjectError::Empty) => empty += 1,
                    Err(error) => return Err(damaged(self.path, &item.head, key, error)),
                }
            }
            loaded += group.len() as u64;
            if self.purpose != Purpose::Check {
                self.insert(&mut group)?;
            }
        }
        let status = &self.shared.persistence.loading;
        status.keys.fetch_add(loaded, Ordering::Relaxed);
        status.keys_empty.fetch_add(empty, Ordering::Relaxed);
        Ok(())
    }

    /// Puts a group of keys into the store. Their slots are held together, so that the misses of the cache that each key costs
    /// are waited for at the same time.
    fn insert(&mut self, group: &mut Group<'_>) -> Result<(), LoadError> {
        let (path, purpose) = (self.path, self.purpose);
        let slots = group.iter().map(|&(_, _, slot, _)| slot);
        let mut ks = Keyspace::hold(&self.shared.store, slots, self.settings, &mut self.changes, 0, 0);
        for (head, key, slot, _) in group.iter() {
            ks.select(head.db);
            ks.prefetch_places(*slot, hash64(key));
        }
        for (head, key, _, value) in group.drain(..) {
            ks.select(head.db);
            match purpose {
                Purpose::CheckNew if ks.exists(key) => return Err(twice(path, head, key)),
                Purpose::Check | Purpose::CheckNew => continue,
                Purpose::Merge => _ = ks.delete(key),
                Purpose::Load => {}
            }
            let is_new = match value {
                Decoded::Text(text) => ks.load_string(key, &text, head.expires_at_ms, head.access),
                Decoded::Value(value) => ks.load_value(key, value, head.expires_at_ms, head.access),
            };
            if !is_new {
                return Err(twice(path, head, key));
            }
        }
        Ok(())
    }

    fn part(&mut self, job: &ValueJob) -> Result<(), LoadError> {
        let LargeValue { head, key, value } = &*job.large;
        let mut held = value.lock().unwrap_or_else(PoisonError::into_inner);
        let (value, count_hint) = std::mem::replace(&mut *held, (Value::Bytes(Vec::new()), 0));
        let mut builder = ValueBuilder::with(value, count_hint, &self.settings.limits);
        let part = ValuePart { part: job.part, ..whole(head, key, &job.body) };
        part.visit(self.limits, &mut builder).map_err(|error| damaged(self.path, head, key, error))?;
        *held = builder.into_parts();
        if job.part != Part::Last {
            return Ok(());
        }
        let (value, _) = std::mem::replace(&mut *held, (Value::Bytes(Vec::new()), 0));
        let status = &self.shared.persistence.loading;
        if value.as_ref().elements() == 0 {
            status.keys_empty.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        let slot = key_slot(key);
        let mut ks = Keyspace::hold(&self.shared.store, [slot], self.settings, &mut self.changes, head.db, 0);
        if !ks.load_value(key, value, head.expires_at_ms, head.access) {
            return Err(twice(self.path, head, key));
        }
        status.keys.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// A value that was read.
enum Decoded<'a> {
    Text(std::borrow::Cow<'a, [u8]>),
    Value(Value),
}

fn decode<'a>(
    head: &KeyHead,
    key: &[u8],
    body: &'a [u8],
    limits: Limits,
    settings: &Settings,
) -> Result<Decoded<'a>, ObjectError> {
    if head.rdb_type == RdbType::String {
        let mut reader = Reader::new(body, limits);
        let text = read_string(&mut reader)?;
        return match reader.rest().len() {
            0 => Ok(Decoded::Text(text)),
            left => Err(ObjectError::TrailingBytes(left)),
        };
    }
    let mut builder = ValueBuilder::new(&settings.limits);
    whole(head, key, body).visit(limits, &mut builder)?;
    Ok(Decoded::Value(builder.into_parts().0))
}

fn whole<'a>(head: &KeyHead, key: &'a [u8], body: &'a [u8]) -> ValuePart<'a> {
    ValuePart {
        offset: head.offset,
        database: head.db.into(),
        key,
        expires_at_ms: head.expires_at_ms,
        idle_s: None,
        frequency: None,
        rdb_type: head.rdb_type,
        part: Part::Only,
        body,
    }
}

fn damaged(path: &Path, head: &KeyHead, key: &[u8], error: ObjectError) -> LoadError {
    let kind = RdbFileErrorKind::Value { database: head.db.into(), key: key.to_vec(), error };
    LoadError::Snapshot { path: path.to_owned(), error: RdbFileError { offset: head.offset, kind } }
}

fn twice(path: &Path, head: &KeyHead, key: &[u8]) -> LoadError {
    LoadError::Twice { path: path.to_owned(), offset: head.offset, database: head.db, key: key.to_vec() }
}

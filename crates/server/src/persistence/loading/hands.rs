//! What a thread that loads does with a job.
//!
//! Owns: the jobs, and putting keys into the store. Does **not** own reading files, nor the commands of a log (see `apply`).

use super::LoadError;
use crate::commands::ValueBuilder;
use crate::shared::Shared;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use towline_cluster::key_slot;
use towline_persist::rdb_file::{Part, RdbFileError, RdbFileErrorKind, ValuePart};
use towline_rdb::length::read_string;
use towline_rdb::{Limits, ObjectError, RdbType, Reader};
use towline_resp::writer::Writer;
use towline_store::changes::{Changes, Settings};
use towline_store::keyspace::Keyspace;
use towline_store::value::Value;

use super::apply::CommandBatch;

/// How far ahead a slot's head is asked for: about the time that a cache miss takes.
const PREFETCH_KEYS: usize = 4;

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
}

impl<'a> Hands<'a> {
    pub(super) fn new(shared: &'a Shared, settings: &'a Settings, path: &'a Path, limits: Limits) -> Self {
        Self {
            shared,
            settings,
            path,
            limits,
            // Nothing that is loaded depends on chance; evictions and samples come later.
            changes: Changes::new(0),
            out: Writer::default(),
            is_incomplete: false,
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
        let store = &self.shared.store;
        let key_of = |item: &KeyItem, at: usize| at..at + item.key_bytes;
        let mut slots = Vec::with_capacity(batch.items.len());
        let mut at = 0;
        for item in &batch.items {
            slots.push(key_slot(&batch.bytes[key_of(item, at)]));
            at += item.key_bytes + item.body_bytes;
        }
        let (settings, limits, path) = (self.settings, self.limits, self.path);
        let (mut loaded, mut empty, mut at) = (0, 0, 0);
        let mut ks = Keyspace::hold(store, [], settings, &mut self.changes, 0, 0);
        for (index, item) in batch.items.iter().enumerate() {
            let head = &item.head;
            let key = &batch.bytes[key_of(item, at)];
            let body = &batch.bytes[at + item.key_bytes..at + item.key_bytes + item.body_bytes];
            at += item.key_bytes + item.body_bytes;
            if let Some(&ahead) = slots.get(index + PREFETCH_KEYS) {
                store.prefetch_slot(ahead);
            }
            let value = match decode(head, key, body, limits, settings) {
                Ok(value) => value,
                Err(ObjectError::Empty) => {
                    empty += 1;
                    continue;
                }
                Err(error) => return Err(damaged(path, head, key, error)),
            };
            ks.hold_only(slots[index]);
            ks.select(head.db);
            let is_new = match value {
                Decoded::Text(text) => ks.load_string(key, &text, head.expires_at_ms, head.access),
                Decoded::Value(value) => ks.load_value(key, value, head.expires_at_ms, head.access),
            };
            if !is_new {
                return Err(twice(path, head, key));
            }
            loaded += 1;
        }
        let status = &self.shared.persistence.loading;
        status.keys.fetch_add(loaded, Ordering::Relaxed);
        status.keys_empty.fetch_add(empty, Ordering::Relaxed);
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

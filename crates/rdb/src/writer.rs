//! Encoding of DUMP payloads, as a stream of elements.
//!
//! Owns the frame: the version (9 for the plain types, which every Redis since 5 and every Valkey reads; that
//! of one of [`HashTtlForm`] for a hash with field expiry) and the checksum. Does not own the bodies
//! ([`BodyWriter`] does).

use crate::body::{BodyWriter, Compression, HashTtlForm};
use crate::crc64::Crc64;
use crate::object::{HashField, HashFieldRef, Object};
use crate::rdb_type::{VERSION_REDIS_MAX, VERSION_VALKEY};

/// The version in the footer of plain payloads: that of Redis 5 and 6.
const VERSION_PLAIN: u16 = 9;

/// Writes one payload: a constructor announces kind and count, then each element is appended, then
/// [`finish`](Self::finish) adds the footer. Large values can leave in pieces through
/// [`take_chunk`](Self::take_chunk).
///
/// # Panics
/// All methods treat misuse as a bug of the caller: an element of another kind, more elements than
/// announced, or [`finish`](Self::finish) before the last.
#[derive(Debug)]
pub struct DumpWriter {
    out: Vec<u8>,
    crc: Crc64,
    version: u16,
    body: BodyWriter,
}

impl DumpWriter {
    /// Starts a list of `count` elements.
    #[must_use]
    pub fn list(count: u64) -> Self {
        Self::start(BodyWriter::list(count), VERSION_PLAIN)
    }

    /// Starts a set of `count` members.
    #[must_use]
    pub fn set(count: u64) -> Self {
        Self::start(BodyWriter::set(count), VERSION_PLAIN)
    }

    /// Starts a sorted set of `count` members.
    #[must_use]
    pub fn zset(count: u64) -> Self {
        Self::start(BodyWriter::zset(count), VERSION_PLAIN)
    }

    /// Starts a hash of `count` fields, none of which expires.
    #[must_use]
    pub fn hash(count: u64) -> Self {
        Self::start(BodyWriter::hash(count), VERSION_PLAIN)
    }

    /// Starts a hash of `count` fields, some of which expire, the first of them at `earliest_ms`
    /// (milliseconds since the Unix epoch). Redis's form has 48 bits for these times; a later one, beyond
    /// the year 10000, is written as the last that fits.
    #[must_use]
    pub fn hash_expiring(count: u64, form: HashTtlForm, earliest_ms: u64) -> Self {
        let version = match form {
            HashTtlForm::Redis => VERSION_REDIS_MAX,
            HashTtlForm::Valkey => VERSION_VALKEY,
        };
        Self::start(BodyWriter::hash_expiring(count, form, earliest_ms), version)
    }

    /// Sets whether strings appended from now on are compressed.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.body = self.body.compression(compression);
        self
    }

    /// Appends an element of a list or a member of a set.
    pub fn element(&mut self, element: &[u8]) {
        self.body.element(&mut self.out, element);
    }

    /// Appends a member of a sorted set. `score` must not be NaN: no reader accepts it.
    pub fn scored(&mut self, member: &[u8], score: f64) {
        self.body.scored(&mut self.out, member, score);
    }

    /// Appends a field of a hash. In a hash that was started without expiry no field has one; otherwise
    /// none is earlier than announced.
    pub fn field(&mut self, field: HashFieldRef<'_>) {
        self.body.field(&mut self.out, field);
    }

    /// Bytes that wait to be taken.
    #[must_use]
    pub fn buffered_bytes(&self) -> usize {
        self.out.len()
    }

    /// Takes what was written so far, so that a large value never lies in memory twice; the pieces in
    /// order, with what [`finish`](Self::finish) returns at the end, are the payload.
    #[must_use]
    pub fn take_chunk(&mut self) -> Vec<u8> {
        self.crc.update(&self.out);
        std::mem::take(&mut self.out)
    }

    /// Adds the footer; returns the payload, or the rest of it after [`take_chunk`](Self::take_chunk).
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.body.finish();
        self.out.extend(self.version.to_le_bytes());
        self.crc.update(&self.out);
        self.out.extend(self.crc.value().to_le_bytes());
        self.out
    }

    fn start(body: BodyWriter, version: u16) -> Self {
        let mut out = vec![body.rdb_type().byte()];
        body.head(&mut out);
        Self { out, crc: Crc64::new(), version, body }
    }
}

/// The payload of a string.
#[must_use]
pub fn encode_string(value: &[u8]) -> Vec<u8> {
    encode_string_as(value, Compression::Off)
}

fn encode_string_as(value: &[u8], compression: Compression) -> Vec<u8> {
    let body = BodyWriter::string().compression(compression);
    let mut writer = DumpWriter::start(body, VERSION_PLAIN);
    writer.element(value);
    writer.finish()
}

/// The payload of an owned value; `form` matters only to hashes with field expiry.
#[must_use]
pub fn encode_dump(object: &Object, form: HashTtlForm, compression: Compression) -> Vec<u8> {
    let mut writer = match object {
        Object::String(value) => return encode_string_as(value, compression),
        Object::List(elements) => DumpWriter::list(elements.len() as u64),
        Object::Set(members) => DumpWriter::set(members.len() as u64),
        Object::Zset(members) => DumpWriter::zset(members.len() as u64),
        Object::Hash(fields) => start_hash(fields, form),
    }
    .compression(compression);
    match object {
        Object::String(_) => {}
        Object::List(elements) | Object::Set(elements) => {
            elements.iter().for_each(|element| writer.element(element))
        }
        Object::Zset(members) => members.iter().for_each(|(member, score)| writer.scored(member, *score)),
        Object::Hash(fields) => fields.iter().for_each(|field| {
            writer.field(HashFieldRef {
                name: &field.name,
                value: &field.value,
                expires_at_ms: field.expires_at_ms,
            });
        }),
    }
    writer.finish()
}

fn start_hash(fields: &[HashField], form: HashTtlForm) -> DumpWriter {
    let count = fields.len() as u64;
    match fields.iter().filter_map(|field| field.expires_at_ms).min() {
        None => DumpWriter::hash(count),
        Some(earliest_ms) => DumpWriter::hash_expiring(count, form, earliest_ms),
    }
}

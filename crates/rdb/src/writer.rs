//! Encoding of DUMP payloads, as a stream of elements.
//!
//! Owns the choice of type and version: the plain types with RDB version 9, which every Redis since 5 and
//! every Valkey reads; a hash with field expiry has no such form and takes one of [`HashTtlForm`]. Does
//! not own packed encodings: receivers pack on their own.

use crate::crc64::Crc64;
use crate::length::{write_length, write_string, write_string_compressed};
use crate::object::{FIELD_EXPIRY_MS_MAX, HashField, HashFieldRef, Object};
use crate::rdb_type::{RdbType, VERSION_REDIS_MAX, VERSION_VALKEY};

/// The version in the footer of plain payloads: that of Redis 5 and 6.
const VERSION_PLAIN: u16 = 9;

/// Who shall read a hash with field expiry: there is no form that both families accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HashTtlForm {
    /// Redis 7.4 and later: type 24, version 12. The default, since the first to have the feature.
    #[default]
    Redis,
    /// Valkey 9 and later: type 22, version 80.
    Valkey,
}

/// Whether long strings are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// Never. The default: it costs no time, and readers accept both.
    #[default]
    Off,
    /// LZF for strings of more than 20 bytes that get shorter by it, as Redis does by default.
    Lzf,
}

/// What the next call must append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Elements,
    Scored,
    Fields,
    ExpiringRedis { earliest_ms: u64 },
    ExpiringValkey,
}

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
    shape: Shape,
    elements_left: u64,
    compression: Compression,
}

impl DumpWriter {
    /// Starts a list of `count` elements.
    #[must_use]
    pub fn list(count: u64) -> Self {
        Self::counted(RdbType::List, count, Shape::Elements)
    }

    /// Starts a set of `count` members.
    #[must_use]
    pub fn set(count: u64) -> Self {
        Self::counted(RdbType::Set, count, Shape::Elements)
    }

    /// Starts a sorted set of `count` members.
    #[must_use]
    pub fn zset(count: u64) -> Self {
        Self::counted(RdbType::Zset2, count, Shape::Scored)
    }

    /// Starts a hash of `count` fields, none of which expires.
    #[must_use]
    pub fn hash(count: u64) -> Self {
        Self::counted(RdbType::Hash, count, Shape::Fields)
    }

    /// Starts a hash of `count` fields, some of which expire, the first of them at `earliest_ms`
    /// (milliseconds since the Unix epoch). Redis's form has 48 bits for these times; a later one, beyond
    /// the year 10000, is written as the last that fits.
    #[must_use]
    pub fn hash_expiring(count: u64, form: HashTtlForm, earliest_ms: u64) -> Self {
        match form {
            HashTtlForm::Redis => {
                let mut writer = Self::start(RdbType::HashMetadata, VERSION_REDIS_MAX);
                let earliest_ms = earliest_ms.min(FIELD_EXPIRY_MS_MAX);
                writer.out.extend(earliest_ms.to_le_bytes());
                writer.announce(count, Shape::ExpiringRedis { earliest_ms })
            }
            HashTtlForm::Valkey => {
                Self::start(RdbType::HashValkey, VERSION_VALKEY).announce(count, Shape::ExpiringValkey)
            }
        }
    }

    /// Sets whether strings appended from now on are compressed.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Appends an element of a list or a member of a set.
    pub fn element(&mut self, element: &[u8]) {
        self.take_one(Shape::Elements);
        self.string(element);
    }

    /// Appends a member of a sorted set. `score` must not be NaN: no reader accepts it.
    pub fn scored(&mut self, member: &[u8], score: f64) {
        assert!(!score.is_nan(), "a score is never NaN");
        self.take_one(Shape::Scored);
        self.string(member);
        self.out.extend(score.to_le_bytes());
    }

    /// Appends a field of a hash. In a hash that was started without expiry no field has one; otherwise
    /// none is earlier than announced.
    pub fn field(&mut self, field: HashFieldRef<'_>) {
        self.take_one(self.shape);
        match self.shape {
            Shape::Fields => {
                assert!(field.expires_at_ms.is_none(), "the hash was announced without expiry");
                self.name_and_value(field);
            }
            Shape::ExpiringRedis { earliest_ms } => {
                let after = field.expires_at_ms.map_or(0, |at| {
                    let later_ms = at.min(FIELD_EXPIRY_MS_MAX).checked_sub(earliest_ms);
                    later_ms.expect("invariant: no field expires before the announced time") + 1
                });
                write_length(&mut self.out, after);
                self.name_and_value(field);
            }
            Shape::ExpiringValkey => {
                self.name_and_value(field);
                let at = field.expires_at_ms.map_or(-1, |at| i64::try_from(at).unwrap_or(i64::MAX));
                self.out.extend(at.to_le_bytes());
            }
            Shape::Elements | Shape::Scored => panic!("a field was appended to a value that is no hash"),
        }
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
        assert_eq!(self.elements_left, 0, "elements were announced and not written");
        self.out.extend(self.version.to_le_bytes());
        self.crc.update(&self.out);
        self.out.extend(self.crc.value().to_le_bytes());
        self.out
    }

    fn start(rdb_type: RdbType, version: u16) -> Self {
        Self {
            out: vec![rdb_type.byte()],
            crc: Crc64::new(),
            version,
            shape: Shape::Elements,
            elements_left: 0,
            compression: Compression::Off,
        }
    }

    fn counted(rdb_type: RdbType, count: u64, shape: Shape) -> Self {
        Self::start(rdb_type, VERSION_PLAIN).announce(count, shape)
    }

    fn announce(mut self, count: u64, shape: Shape) -> Self {
        write_length(&mut self.out, count);
        self.shape = shape;
        self.elements_left = count;
        self
    }

    fn take_one(&mut self, shape: Shape) {
        assert_eq!(self.shape, shape, "an element of another kind was appended");
        self.elements_left =
            self.elements_left.checked_sub(1).expect("invariant: no more elements than announced");
    }

    fn name_and_value(&mut self, field: HashFieldRef<'_>) {
        self.string(field.name);
        self.string(field.value);
    }

    fn string(&mut self, string: &[u8]) {
        match self.compression {
            Compression::Off => write_string(&mut self.out, string),
            Compression::Lzf => write_string_compressed(&mut self.out, string),
        }
    }
}

/// The payload of a string.
#[must_use]
pub fn encode_string(value: &[u8]) -> Vec<u8> {
    encode_string_as(value, Compression::Off)
}

fn encode_string_as(value: &[u8], compression: Compression) -> Vec<u8> {
    let mut writer = DumpWriter::start(RdbType::String, VERSION_PLAIN).compression(compression);
    writer.string(value);
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

//! Encoding of value bodies, as a stream of elements.
//!
//! Owns the choice of type: the plain types, which every Redis since 5 and every Valkey reads; a hash with
//! field expiry has no such form and takes one of [`HashTtlForm`]. Does not own packed encodings (receivers
//! pack on their own), nor what stands around a body: `DumpWriter` frames it as a payload, an RDB file puts a
//! key between the type byte and the body.

use crate::length::{write_length, write_string, write_string_compressed};
use crate::object::{FIELD_EXPIRY_MS_MAX, HashFieldRef};
use crate::rdb_type::RdbType;

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
    /// A string: one element, and no count before it.
    One,
    Elements,
    Scored,
    Fields,
    ExpiringRedis {
        earliest_ms: u64,
    },
    ExpiringValkey,
}

/// Writes one body into a buffer of the caller's: a constructor announces kind and count, the caller writes
/// the [type byte](Self::rdb_type) and what belongs behind it, then [`head`](Self::head), then each element,
/// then [`finish`](Self::finish).
///
/// # Panics
/// All methods treat misuse as a bug of the caller: an element of another kind, more elements than
/// announced, or [`finish`](Self::finish) before the last.
#[derive(Debug)]
pub struct BodyWriter {
    rdb_type: RdbType,
    shape: Shape,
    elements_left: u64,
    compression: Compression,
}

impl BodyWriter {
    /// Starts a string; it is the one [`element`](Self::element).
    #[must_use]
    pub const fn string() -> Self {
        Self::counted(RdbType::String, 1, Shape::One)
    }

    /// Starts a list of `count` elements.
    #[must_use]
    pub const fn list(count: u64) -> Self {
        Self::counted(RdbType::List, count, Shape::Elements)
    }

    /// Starts a set of `count` members.
    #[must_use]
    pub const fn set(count: u64) -> Self {
        Self::counted(RdbType::Set, count, Shape::Elements)
    }

    /// Starts a sorted set of `count` members.
    #[must_use]
    pub const fn zset(count: u64) -> Self {
        Self::counted(RdbType::Zset2, count, Shape::Scored)
    }

    /// Starts a hash of `count` fields, none of which expires.
    #[must_use]
    pub const fn hash(count: u64) -> Self {
        Self::counted(RdbType::Hash, count, Shape::Fields)
    }

    /// Starts a hash of `count` fields, some of which expire, the first of them at `earliest_ms`
    /// (milliseconds since the Unix epoch). Redis's form has 48 bits for these times; a later one, beyond
    /// the year 10000, is written as the last that fits.
    #[must_use]
    pub fn hash_expiring(count: u64, form: HashTtlForm, earliest_ms: u64) -> Self {
        match form {
            HashTtlForm::Redis => {
                let earliest_ms = earliest_ms.min(FIELD_EXPIRY_MS_MAX);
                Self::counted(RdbType::HashMetadata, count, Shape::ExpiringRedis { earliest_ms })
            }
            HashTtlForm::Valkey => Self::counted(RdbType::HashValkey, count, Shape::ExpiringValkey),
        }
    }

    /// Sets whether strings appended from now on are compressed.
    #[must_use]
    pub const fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// The type that the body has.
    #[must_use]
    pub const fn rdb_type(&self) -> RdbType {
        self.rdb_type
    }

    /// Appends what comes before the first element; called once.
    pub fn head(&self, out: &mut Vec<u8>) {
        if let Shape::ExpiringRedis { earliest_ms } = self.shape {
            out.extend(earliest_ms.to_le_bytes());
        }
        if self.shape != Shape::One {
            write_length(out, self.elements_left);
        }
    }

    /// Appends an element of a list or a member of a set.
    pub fn element(&mut self, out: &mut Vec<u8>, element: &[u8]) {
        let shape = if self.shape == Shape::One { Shape::One } else { Shape::Elements };
        self.take_one(shape);
        self.write(out, element);
    }

    /// Appends a member of a sorted set. `score` must not be NaN: no reader accepts it.
    pub fn scored(&mut self, out: &mut Vec<u8>, member: &[u8], score: f64) {
        assert!(!score.is_nan(), "a score is never NaN");
        self.take_one(Shape::Scored);
        self.write(out, member);
        out.extend(score.to_le_bytes());
    }

    /// Appends a field of a hash. In a hash that was started without expiry no field has one; otherwise
    /// none is earlier than announced.
    pub fn field(&mut self, out: &mut Vec<u8>, field: HashFieldRef<'_>) {
        self.take_one(self.shape);
        match self.shape {
            Shape::Fields => {
                assert!(field.expires_at_ms.is_none(), "the hash was announced without expiry");
                self.name_and_value(out, field);
            }
            Shape::ExpiringRedis { earliest_ms } => {
                let after = field.expires_at_ms.map_or(0, |at| {
                    let later_ms = at.min(FIELD_EXPIRY_MS_MAX).checked_sub(earliest_ms);
                    later_ms.expect("invariant: no field expires before the announced time") + 1
                });
                write_length(out, after);
                self.name_and_value(out, field);
            }
            Shape::ExpiringValkey => {
                self.name_and_value(out, field);
                let at = field.expires_at_ms.map_or(-1, |at| i64::try_from(at).unwrap_or(i64::MAX));
                out.extend(at.to_le_bytes());
            }
            Shape::One | Shape::Elements | Shape::Scored => {
                panic!("a field was appended to a value that is no hash")
            }
        }
    }

    /// Checks that every announced element was written.
    pub fn finish(&self) {
        assert_eq!(self.elements_left, 0, "elements were announced and not written");
    }

    const fn counted(rdb_type: RdbType, count: u64, shape: Shape) -> Self {
        Self { rdb_type, shape, elements_left: count, compression: Compression::Off }
    }

    fn take_one(&mut self, shape: Shape) {
        assert_eq!(self.shape, shape, "an element of another kind was appended");
        self.elements_left =
            self.elements_left.checked_sub(1).expect("invariant: no more elements than announced");
    }

    fn name_and_value(&self, out: &mut Vec<u8>, field: HashFieldRef<'_>) {
        self.write(out, field.name);
        self.write(out, field.value);
    }

    fn write(&self, out: &mut Vec<u8>, string: &[u8]) {
        match self.compression {
            Compression::Off => write_string(out, string),
            Compression::Lzf => write_string_compressed(out, string),
        }
    }
}

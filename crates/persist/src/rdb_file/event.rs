//! What the reader hands out, and how a caller asks for it.
//!
//! Owns the options of a reader, its events, and the decoding of one part of a value.

use towline_rdb::{HashFieldRef, Insert, Kind, Limits, ObjectError, RdbType, Reader, Visitor, decode_object};

use super::error::Obstacle;

/// What to do with what Towline does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnObstacle {
    /// The reading ends there. The default: nobody loses data without having asked for it.
    #[default]
    Refuse,
    /// It is reported as [`RdbEvent::Obstacle`] and passed over.
    Report,
}

/// How a file is read.
#[derive(Debug, Clone, Copy, Default)]
pub struct RdbReaderOptions {
    /// What to do with what Towline does not have.
    pub on_obstacle: OnObstacle,
    /// Bounds on each value.
    pub limits: Limits,
    /// Whether something else follows in the same file: the commands behind a preamble. If not (the default),
    /// bytes after the end are an error, and [`RdbEvent::End`] waits for
    /// [`RdbReader::end`](super::RdbReader::end).
    pub is_preamble: bool,
}

/// Whose file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// `REDIS....`, also written by Valkey 7 and 8.
    Redis,
    /// `VALKEY...`, written by Valkey 9.
    Valkey,
}

/// Whether the bytes of the file were verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// The checksum is right.
    Right,
    /// The file has none: it was written with `rdbchecksum no`, or by a Redis before 2.6.
    Absent,
}

/// What comes next in the file.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum RdbEvent<'a> {
    /// Everything that was fed has been used: feed more, or call
    /// [`RdbReader::end`](super::RdbReader::end).
    NeedMore,
    /// The file's first bytes.
    Header {
        /// Whose file it is.
        family: Family,
        /// Its RDB version.
        version: u16,
    },
    /// A fact about the file, for example `redis-ver`, `ctime`, `aof-base`. Readers ignore unknown names.
    Aux {
        /// Its name.
        name: Vec<u8>,
        /// Its value.
        value: Vec<u8>,
    },
    /// What follows belongs to this database.
    Database(u32),
    /// How many keys the database had, and how many of them with a time to live. A hint: untrusted.
    Sizes {
        /// Keys.
        keys: u64,
        /// Keys that expire.
        expiring: u64,
    },
    /// A value or a part of one.
    Value(ValuePart<'a>),
    /// Something was passed over ([`OnObstacle::Report`]).
    Obstacle(Obstacle),
    /// The end of the file; the checksum was right, or there is none. Comes again when asked again.
    End(Checksum),
}

/// Which part of its value a [`ValuePart`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Only,
    /// The first of several.
    First,
    /// Neither the first nor the last.
    Middle,
    /// The last of several.
    Last,
}

/// A value, or some elements of one: each part is a body in itself, which [`visit`](Self::visit) decodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValuePart<'a> {
    /// Where the value's type byte stands in the file.
    pub offset: u64,
    /// The database it belongs to.
    pub database: u32,
    /// Its key.
    pub key: &'a [u8],
    /// When it expires, in milliseconds since the Unix epoch; it may lie in the past.
    pub expires_at_ms: Option<u64>,
    /// Seconds since its last use, if the server that wrote the file evicts by LRU.
    pub idle_s: Option<u64>,
    /// How often it was used, in the logarithmic form of `OBJECT FREQ`, if that server evicts by LFU.
    pub frequency: Option<u8>,
    /// Its type.
    pub rdb_type: RdbType,
    /// Which part this is.
    pub part: Part,
    /// The bytes, as `towline_rdb::decode_object` takes them.
    pub body: &'a [u8],
}

impl ValuePart<'_> {
    /// Decodes this part into `visitor`. `begin` is called for the first part only, with the number of its
    /// elements; duplicates across parts are found by the visitor, which keeps the elements.
    ///
    /// # Errors
    /// See [`ObjectError`]; the visitor then holds part of a value. [`ObjectError::Empty`] means a collection
    /// without elements, as bugs of old servers left them: Redis drops the key and goes on.
    pub fn visit(&self, limits: Limits, visitor: &mut impl Visitor) -> Result<(), ObjectError> {
        let mut reader = Reader::new(self.body, limits);
        let mut tail = Tail { visitor, begins: matches!(self.part, Part::Only | Part::First) };
        match decode_object(self.rdb_type, &mut reader, &mut tail) {
            // Some nodes of a list may be empty, and then a part may hold nothing else.
            Err(ObjectError::Empty) if self.part != Part::Only => Ok(()),
            Ok(()) if !reader.rest().is_empty() => Err(ObjectError::TrailingBytes(reader.rest().len())),
            result => result,
        }
    }
}

/// Passes elements on, and the announcement only before the first of them.
struct Tail<'a, V> {
    visitor: &'a mut V,
    begins: bool,
}

impl<V: Visitor> Visitor for Tail<'_, V> {
    fn begin(&mut self, kind: Kind, count_hint: usize) {
        if self.begins {
            self.visitor.begin(kind, count_hint);
        }
    }
    fn string(&mut self, value: &[u8]) {
        self.visitor.string(value);
    }
    fn list_element(&mut self, element: &[u8]) {
        self.visitor.list_element(element);
    }
    fn set_member(&mut self, member: &[u8]) -> Insert {
        self.visitor.set_member(member)
    }
    fn zset_member(&mut self, member: &[u8], score: f64) -> Insert {
        self.visitor.zset_member(member, score)
    }
    fn hash_field(&mut self, field: HashFieldRef<'_>) -> Insert {
        self.visitor.hash_field(field)
    }
}

//! The writer.
//!
//! Owns the order of things in a file, the bound on what waits to be taken, and the checksum. Does not own the
//! bodies of values: they come element by element through `towline_rdb::BodyWriter`.

use towline_rdb::crc64::Crc64;
use towline_rdb::length::{write_length, write_string};
use towline_rdb::{BodyWriter, Compression, HashFieldRef, HashTtlForm, Object, RdbType};

use super::opcode;

/// How a file is written.
#[derive(Debug, Clone, Copy)]
pub struct RdbWriterOptions {
    /// Who shall read hashes of which fields expire. Default Redis: see the module's text.
    pub form: HashTtlForm,
    /// Whether long strings are compressed (`rdbcompression`). Default off, as in `towline_rdb`.
    pub compression: Compression,
    /// Whether the file ends with a checksum (`rdbchecksum`). Default true.
    pub has_checksum: bool,
    /// A chunk is ready from this many bytes on. Default 64 KiB: a write of that size costs little more than
    /// its bytes.
    pub chunk_bytes: usize,
}

impl Default for RdbWriterOptions {
    fn default() -> Self {
        Self {
            form: HashTtlForm::Redis,
            compression: Compression::Off,
            has_checksum: true,
            chunk_bytes: 64 * 1024,
        }
    }
}

/// A key and its time to live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueKey<'a> {
    /// The key.
    pub key: &'a [u8],
    /// When it expires, in milliseconds since the Unix epoch.
    pub expires_at_ms: Option<u64>,
}

/// Writes one RDB file. The caller takes a chunk whenever one is [ready](Self::is_chunk_ready), so that at most
/// `chunk_bytes` and one element wait.
///
/// ```
/// use towline_persist::rdb_file::{RdbChecker, RdbWriter, RdbWriterOptions, ValueKey};
/// use towline_rdb::{BodyWriter, Limits};
///
/// let mut writer = RdbWriter::new(RdbWriterOptions::default());
/// writer.aux("redis-ver", b"7.0.15");
/// writer.database(0, None);
/// writer.begin(ValueKey { key: b"greetings", expires_at_ms: None }, BodyWriter::list(2));
/// writer.element(b"hello");
/// writer.element(b"goodbye");
/// writer.end_value();
/// let file = writer.finish();
///
/// let mut checker = RdbChecker::new(Limits::default(), false);
/// checker.feed(&file)?;
/// assert_eq!(checker.finish()?.keys, 1);
/// # Ok::<(), towline_persist::rdb_file::RdbFileError>(())
/// ```
///
/// # Panics
/// As `BodyWriter`: elements that were not announced, a value that was not ended, and a key before any database
/// are bugs of the caller.
#[derive(Debug)]
pub struct RdbWriter {
    options: RdbWriterOptions,
    out: Vec<u8>,
    crc: Crc64,
    bytes: u64,
    body: Option<BodyWriter>,
    has_database: bool,
}

impl RdbWriter {
    /// Starts a file.
    #[must_use]
    pub fn new(options: RdbWriterOptions) -> Self {
        let magic: &[u8; 9] = match options.form {
            HashTtlForm::Redis => b"REDIS0010",
            HashTtlForm::Valkey => b"VALKEY080",
        };
        Self { options, out: magic.to_vec(), crc: Crc64::new(), bytes: 0, body: None, has_database: false }
    }

    /// Appends a fact about the file; before the first database.
    pub fn aux(&mut self, name: &str, value: &[u8]) {
        assert!(self.body.is_none(), "a value is under way");
        self.out.push(opcode::AUX);
        write_string(&mut self.out, name.as_bytes());
        write_string(&mut self.out, value);
    }

    /// What follows belongs to database `database`. `sizes` are its keys and how many of them expire: a hint for
    /// readers, which need not be exact.
    pub fn database(&mut self, database: u32, sizes: Option<(u64, u64)>) {
        assert!(self.body.is_none(), "a value is under way");
        self.out.push(opcode::DATABASE);
        write_length(&mut self.out, database.into());
        if let Some((keys, expiring)) = sizes {
            self.out.push(opcode::SIZES);
            write_length(&mut self.out, keys);
            write_length(&mut self.out, expiring);
        }
        self.has_database = true;
    }

    /// Starts a value; its elements follow, then [`end_value`](Self::end_value).
    pub fn begin(&mut self, key: ValueKey<'_>, body: BodyWriter) {
        let body = body.compression(self.options.compression);
        self.key(key, body.rdb_type());
        body.head(&mut self.out);
        self.body = Some(body);
    }

    /// Appends the string, an element of a list or a member of a set.
    pub fn element(&mut self, element: &[u8]) {
        let (body, out) = self.open();
        body.element(out, element);
    }

    /// Appends a member of a sorted set; `score` is not NaN.
    pub fn scored(&mut self, member: &[u8], score: f64) {
        let (body, out) = self.open();
        body.scored(out, member, score);
    }

    /// Appends a field of a hash.
    pub fn field(&mut self, field: HashFieldRef<'_>) {
        let (body, out) = self.open();
        body.field(out, field);
    }

    /// Ends the value.
    pub fn end_value(&mut self) {
        self.open().0.finish();
        self.body = None;
    }

    /// Appends a string value.
    pub fn string(&mut self, key: ValueKey<'_>, value: &[u8]) {
        self.begin(key, BodyWriter::string());
        self.element(value);
        self.end_value();
    }

    /// Appends an owned value.
    pub fn object(&mut self, key: ValueKey<'_>, object: &Object) {
        match object {
            Object::String(value) => return self.string(key, value),
            Object::List(elements) => self.begin(key, BodyWriter::list(elements.len() as u64)),
            Object::Set(members) => self.begin(key, BodyWriter::set(members.len() as u64)),
            Object::Zset(members) => self.begin(key, BodyWriter::zset(members.len() as u64)),
            Object::Hash(fields) => {
                let count = fields.len() as u64;
                let body = match fields.iter().filter_map(|field| field.expires_at_ms).min() {
                    None => BodyWriter::hash(count),
                    Some(earliest_ms) => BodyWriter::hash_expiring(count, self.options.form, earliest_ms),
                };
                self.begin(key, body);
            }
        }
        match object {
            Object::String(_) => {}
            Object::List(elements) | Object::Set(elements) => {
                elements.iter().for_each(|element| self.element(element))
            }
            Object::Zset(members) => members.iter().for_each(|(member, score)| self.scored(member, *score)),
            Object::Hash(fields) => fields.iter().for_each(|field| {
                self.field(HashFieldRef {
                    name: &field.name,
                    value: &field.value,
                    expires_at_ms: field.expires_at_ms,
                });
            }),
        }
        self.end_value();
    }

    /// Appends a value whose body is encoded already, for example one that a file or a payload held. Types that
    /// Redis and Valkey number differently must be of this file's form.
    pub fn encoded(&mut self, key: ValueKey<'_>, rdb_type: RdbType, body: &[u8]) {
        self.key(key, rdb_type);
        self.out.extend_from_slice(body);
    }

    /// Appends more of the body of the last [`encoded`](Self::encoded) value, which came in parts.
    pub fn encoded_more(&mut self, body: &[u8]) {
        assert!(self.body.is_none(), "a value is under way");
        self.out.extend_from_slice(body);
    }

    /// Whether enough bytes wait for a write.
    #[must_use]
    pub fn is_chunk_ready(&self) -> bool {
        self.out.len() >= self.options.chunk_bytes
    }

    /// Bytes of the file so far, those that wait included.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.bytes + self.out.len() as u64
    }

    /// Takes the bytes that wait. All chunks in order, with what [`finish`](Self::finish) returns, are the file.
    #[must_use]
    pub fn take_chunk(&mut self) -> Vec<u8> {
        if self.options.has_checksum {
            self.crc.update(&self.out);
        }
        self.bytes += self.out.len() as u64;
        let chunk_bytes = self.out.len();
        std::mem::replace(&mut self.out, Vec::with_capacity(chunk_bytes.min(self.options.chunk_bytes)))
    }

    /// Ends the file; returns its last chunk.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        assert!(self.body.is_none(), "a value is under way");
        self.out.push(opcode::END);
        let mut chunk = self.take_chunk();
        let checksum = if self.options.has_checksum { self.crc.value() } else { 0 };
        chunk.extend(checksum.to_le_bytes());
        chunk
    }

    fn key(&mut self, key: ValueKey<'_>, rdb_type: RdbType) {
        assert!(self.body.is_none(), "a value is under way");
        assert!(self.has_database, "a key stands in a database");
        if let Some(at_ms) = key.expires_at_ms {
            self.out.push(opcode::EXPIRES_MS);
            self.out.extend(i64::try_from(at_ms).unwrap_or(i64::MAX).to_le_bytes());
        }
        self.out.push(rdb_type.byte());
        write_string(&mut self.out, key.key);
    }

    fn open(&mut self) -> (&mut BodyWriter, &mut Vec<u8>) {
        let body = self.body.as_mut().expect("invariant: an element belongs to a value that was begun");
        (body, &mut self.out)
    }
}

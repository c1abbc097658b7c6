//! Object bodies: what follows a type byte in DUMP payloads and RDB files.
//!
//! Owns the mapping from each [`RdbType`] to a sequence of elements, and the rules between elements (no
//! duplicates, no empty collections, scores are numbers). Does not own the packed encodings inside, nor
//! the representation of values: elements go to a [`Visitor`]; [`Object`] is the simplest one.

use crate::error::ObjectError;
use crate::intset::Intset;
use crate::item::{IntText, Item};
use crate::length::{read_length, read_string};
use crate::listpack::Listpack;
use crate::rdb_type::RdbType;
use crate::reader::Reader;
use crate::ziplist::Ziplist;
use crate::zipmap::Zipmap;

/// The latest expiry of a hash field that Redis can represent: 48 bits of milliseconds.
pub(crate) const FIELD_EXPIRY_MS_MAX: u64 = (1 << 48) - 1;

/// The five kinds of value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A string.
    String,
    /// A list.
    List,
    /// A set.
    Set,
    /// A sorted set.
    Zset,
    /// A hash.
    Hash,
}

/// A decoded value with everything owned.
#[derive(Debug, Clone, PartialEq)]
pub enum Object {
    /// A string.
    String(Vec<u8>),
    /// The elements of a list, head first.
    List(Vec<Vec<u8>>),
    /// The members of a set, in the order of the payload.
    Set(Vec<Vec<u8>>),
    /// Members and scores, in the order of the payload, which need not be that of the scores.
    Zset(Vec<(Vec<u8>, f64)>),
    /// The fields of a hash, in the order of the payload.
    Hash(Vec<HashField>),
}

/// A field of a hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HashField {
    /// The name.
    pub name: Vec<u8>,
    /// The value.
    pub value: Vec<u8>,
    /// When it expires, in milliseconds since the Unix epoch; it may lie in the past.
    pub expires_at_ms: Option<u64>,
}

/// A borrowed [`HashField`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashFieldRef<'a> {
    /// The name.
    pub name: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// When it expires, in milliseconds since the Unix epoch; it may lie in the past.
    pub expires_at_ms: Option<u64>,
}

/// What a visitor did with an element that must be unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Insert {
    /// It was not there before.
    New,
    /// It was there already: decoding ends with [`ObjectError::Duplicate`].
    Duplicate,
}

/// Receives a value piece by piece, so that no second copy of a large value is built.
///
/// `begin` comes first and once; then only the method of that kind, once for a string and at least once
/// otherwise. After an error the visitor holds part of a value, which the caller discards.
pub trait Visitor {
    /// A value of `kind` starts. `count_hint` is the number of elements when the payload says so and
    /// never more than its bytes could hold; 0 when unknown. It is a hint: untrusted, and a lower bound
    /// for lists.
    fn begin(&mut self, kind: Kind, count_hint: usize);
    /// The string.
    fn string(&mut self, value: &[u8]);
    /// The next element of a list.
    fn list_element(&mut self, element: &[u8]);
    /// A member of a set.
    fn set_member(&mut self, member: &[u8]) -> Insert;
    /// A member of a sorted set; `score` is never NaN.
    fn zset_member(&mut self, member: &[u8], score: f64) -> Insert;
    /// A field of a hash.
    fn hash_field(&mut self, field: HashFieldRef<'_>) -> Insert;
}

/// Decodes the body of one value of type `rdb_type` and leaves `reader` behind it.
///
/// # Errors
/// See [`ObjectError`]; the visitor then holds part of the value.
pub fn decode_object(
    rdb_type: RdbType,
    reader: &mut Reader<'_>,
    visitor: &mut impl Visitor,
) -> Result<(), ObjectError> {
    use RdbType as T;
    match rdb_type {
        T::String => {
            visitor.begin(Kind::String, 1);
            visitor.string(&read_string(reader)?);
            Ok(())
        }
        T::List => {
            for _ in 0..begin_counted(reader, visitor, Kind::List, 1)? {
                visitor.list_element(&read_string(reader)?);
            }
            Ok(())
        }
        T::Set => {
            for _ in 0..begin_counted(reader, visitor, Kind::Set, 1)? {
                unique(visitor.set_member(&read_string(reader)?))?;
            }
            Ok(())
        }
        T::Zset | T::Zset2 => plain_zset(rdb_type, reader, visitor),
        T::Hash | T::HashMetadata | T::HashMetadataPreGa | T::HashValkey => {
            plain_hash(rdb_type, reader, visitor)
        }
        T::ListZiplist => {
            visitor.begin(Kind::List, 0);
            let bytes = read_string(reader)?;
            at_least_one(list_elements(Ziplist::new(&bytes)?.iter(), visitor)?)
        }
        T::ListQuicklist | T::ListQuicklist2 => quicklist(rdb_type, reader, visitor),
        T::SetIntset => intset(reader, visitor),
        T::SetListpack => {
            let bytes = read_string(reader)?;
            let listpack = Listpack::new(&bytes)?;
            begin_packed(visitor, Kind::Set, listpack.claimed_count(), &bytes)?;
            at_least_one(set_members(listpack.iter(), visitor)?)
        }
        T::ZsetZiplist => packed_ziplist(Kind::Zset, reader, visitor),
        T::HashZiplist => packed_ziplist(Kind::Hash, reader, visitor),
        T::ZsetListpack => {
            let bytes = read_string(reader)?;
            let listpack = Listpack::new(&bytes)?;
            begin_packed(visitor, Kind::Zset, listpack.claimed_count().map(|count| count / 2), &bytes)?;
            zset_pairs(listpack.iter(), visitor)
        }
        T::HashListpack | T::HashListpackEx | T::HashListpackExPreGa => {
            hash_listpack(rdb_type, reader, visitor)
        }
        T::HashZipmap => zipmap(reader, visitor),
        T::ModulePreGa | T::Module2 | T::StreamListpacks | T::StreamListpacks2 | T::StreamListpacks3 => {
            Err(ObjectError::UnsupportedType(rdb_type))
        }
    }
}

/// Reads an element count, refuses zero and what `element_bytes_min` each could not fill, and begins.
fn begin_counted(
    reader: &mut Reader<'_>,
    visitor: &mut impl Visitor,
    kind: Kind,
    element_bytes_min: usize,
) -> Result<usize, ObjectError> {
    let count = usize::try_from(read_length(reader)?).map_err(|_| ObjectError::Truncated)?;
    if count == 0 {
        return Err(ObjectError::Empty);
    }
    if count > reader.rest().len() / element_bytes_min {
        return Err(ObjectError::Truncated);
    }
    visitor.begin(kind, count);
    Ok(count)
}

fn plain_zset(
    rdb_type: RdbType,
    reader: &mut Reader<'_>,
    visitor: &mut impl Visitor,
) -> Result<(), ObjectError> {
    for _ in 0..begin_counted(reader, visitor, Kind::Zset, 2)? {
        let member = read_string(reader)?;
        let score = if rdb_type == RdbType::Zset2 {
            f64::from_le_bytes(reader.array()?)
        } else {
            text_score(reader)?
        };
        if score.is_nan() {
            return Err(ObjectError::InvalidScore);
        }
        unique(visitor.zset_member(&member, score))?;
    }
    Ok(())
}

/// A score of the old form: one length byte and text, or one byte for what is no finite number.
fn text_score(reader: &mut Reader<'_>) -> Result<f64, ObjectError> {
    match reader.byte()? {
        253 => Err(ObjectError::InvalidScore),
        254 => Ok(f64::INFINITY),
        255 => Ok(f64::NEG_INFINITY),
        length => parse_score(reader.take(length.into())?),
    }
}

fn parse_score(text: &[u8]) -> Result<f64, ObjectError> {
    let score: Option<f64> = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    score.filter(|score| !score.is_nan()).ok_or(ObjectError::InvalidScore)
}

fn plain_hash(
    rdb_type: RdbType,
    reader: &mut Reader<'_>,
    visitor: &mut impl Visitor,
) -> Result<(), ObjectError> {
    let earliest_ms = if rdb_type == RdbType::HashMetadata { u64::from_le_bytes(reader.array()?) } else { 0 };
    for _ in 0..begin_counted(reader, visitor, Kind::Hash, 2)? {
        let mut expires_at_ms = match rdb_type {
            RdbType::HashMetadata => match read_length(reader)? {
                0 => None,
                // Stored plus one, since zero means "none".
                after => Some(earliest_ms.checked_add(after - 1).ok_or(INVALID_EXPIRY)?),
            },
            RdbType::HashMetadataPreGa => Some(read_length(reader)?).filter(|&at| at > 0),
            _ => None,
        };
        let (name, value) = (read_string(reader)?, read_string(reader)?);
        if rdb_type == RdbType::HashValkey {
            expires_at_ms = match i64::from_le_bytes(reader.array()?) {
                -1 => None,
                at => Some(u64::try_from(at).map_err(|_| INVALID_EXPIRY)?),
            };
        } else if expires_at_ms.is_some_and(|at| at > FIELD_EXPIRY_MS_MAX) {
            return Err(INVALID_EXPIRY);
        }
        unique(visitor.hash_field(HashFieldRef { name: &name, value: &value, expires_at_ms }))?;
    }
    Ok(())
}

const INVALID_EXPIRY: ObjectError = ObjectError::malformed("hash", "invalid field expiry");

fn quicklist(
    rdb_type: RdbType,
    reader: &mut Reader<'_>,
    visitor: &mut impl Visitor,
) -> Result<(), ObjectError> {
    const PLAIN: u64 = 1;
    const PACKED: u64 = 2;
    let mut element_count = 0;
    for _ in 0..begin_counted(reader, visitor, Kind::List, 1)? {
        let container = if rdb_type == RdbType::ListQuicklist2 { Some(read_length(reader)?) } else { None };
        let node = read_string(reader)?;
        element_count += match container {
            None => list_elements(Ziplist::new(&node)?.iter(), visitor)?,
            Some(PACKED) => list_elements(Listpack::new(&node)?.iter(), visitor)?,
            Some(PLAIN) if !node.is_empty() => {
                visitor.list_element(&node);
                1
            }
            Some(PLAIN) => return Err(ObjectError::malformed("quicklist", "an empty plain node")),
            Some(_) => return Err(ObjectError::malformed("quicklist", "unknown node container")),
        };
    }
    // Single nodes may be empty: old versions wrote such lists.
    at_least_one(element_count)
}

fn intset(reader: &mut Reader<'_>, visitor: &mut impl Visitor) -> Result<(), ObjectError> {
    let bytes = read_string(reader)?;
    let intset = Intset::new(&bytes)?;
    visitor.begin(Kind::Set, intset.len());
    set_members(intset.iter().map(|value| value.map(Item::Int)), visitor).and_then(at_least_one)
}

fn packed_ziplist(
    kind: Kind,
    reader: &mut Reader<'_>,
    visitor: &mut impl Visitor,
) -> Result<(), ObjectError> {
    let bytes = read_string(reader)?;
    let ziplist = Ziplist::new(&bytes)?;
    begin_packed(visitor, kind, ziplist.claimed_count().map(|count| count / 2), &bytes)?;
    if kind == Kind::Zset { zset_pairs(ziplist.iter(), visitor) } else { hash_pairs(ziplist.iter(), visitor) }
}

fn hash_listpack(
    rdb_type: RdbType,
    reader: &mut Reader<'_>,
    visitor: &mut impl Visitor,
) -> Result<(), ObjectError> {
    if rdb_type == RdbType::HashListpackEx {
        // The earliest expiry; the entries say it again.
        reader.array::<8>()?;
    }
    let bytes = read_string(reader)?;
    let listpack = Listpack::new(&bytes)?;
    let entries_per_field = if rdb_type == RdbType::HashListpack { 2 } else { 3 };
    begin_packed(
        visitor,
        Kind::Hash,
        listpack.claimed_count().map(|count| count / entries_per_field),
        &bytes,
    )?;
    if rdb_type == RdbType::HashListpack {
        hash_pairs(listpack.iter(), visitor)
    } else {
        hash_triples(listpack.iter(), visitor)
    }
}

fn zipmap(reader: &mut Reader<'_>, visitor: &mut impl Visitor) -> Result<(), ObjectError> {
    let bytes = read_string(reader)?;
    let zipmap = Zipmap::new(&bytes)?;
    begin_packed(visitor, Kind::Hash, zipmap.claimed_count(), &bytes)?;
    let mut count = 0;
    for pair in &zipmap {
        let (name, value) = pair?;
        unique(visitor.hash_field(HashFieldRef { name, value, expires_at_ms: None }))?;
        count += 1;
    }
    at_least_one(count)
}

/// Begins a packed value: a claimed count that the bytes cannot hold is refused here already.
fn begin_packed(
    visitor: &mut impl Visitor,
    kind: Kind,
    claimed_count: Option<usize>,
    bytes: &[u8],
) -> Result<(), ObjectError> {
    let count_hint = claimed_count.unwrap_or(0);
    if count_hint > bytes.len() {
        return Err(ObjectError::Truncated);
    }
    visitor.begin(kind, count_hint);
    Ok(())
}

type Entry<'a> = Result<Item<'a>, ObjectError>;

fn list_elements<'a>(
    entries: impl Iterator<Item = Entry<'a>>,
    visitor: &mut impl Visitor,
) -> Result<usize, ObjectError> {
    let (mut count, mut text) = (0, IntText::default());
    for entry in entries {
        visitor.list_element(entry?.as_bytes(&mut text));
        count += 1;
    }
    Ok(count)
}

fn set_members<'a>(
    entries: impl Iterator<Item = Entry<'a>>,
    visitor: &mut impl Visitor,
) -> Result<usize, ObjectError> {
    let (mut count, mut text) = (0, IntText::default());
    for entry in entries {
        unique(visitor.set_member(entry?.as_bytes(&mut text)))?;
        count += 1;
    }
    Ok(count)
}

fn zset_pairs<'a>(
    mut entries: impl Iterator<Item = Entry<'a>>,
    visitor: &mut impl Visitor,
) -> Result<(), ObjectError> {
    let (mut count, mut text) = (0, IntText::default());
    while let Some(member) = entries.next() {
        let member = member?;
        let score = match partner(&mut entries)? {
            // The nearest double, as Redis converts it.
            Item::Int(value) => value as f64,
            Item::Bytes(text) => parse_score(text)?,
        };
        unique(visitor.zset_member(member.as_bytes(&mut text), score))?;
        count += 1;
    }
    at_least_one(count)
}

fn hash_pairs<'a>(
    mut entries: impl Iterator<Item = Entry<'a>>,
    visitor: &mut impl Visitor,
) -> Result<(), ObjectError> {
    let (mut count, mut texts) = (0, [IntText::default(); 2]);
    let [name_text, value_text] = &mut texts;
    while let Some(name) = entries.next() {
        let (name, value) = (name?, partner(&mut entries)?);
        let (name, value) = (name.as_bytes(name_text), value.as_bytes(value_text));
        unique(visitor.hash_field(HashFieldRef { name, value, expires_at_ms: None }))?;
        count += 1;
    }
    at_least_one(count)
}

fn hash_triples<'a>(
    mut entries: impl Iterator<Item = Entry<'a>>,
    visitor: &mut impl Visitor,
) -> Result<(), ObjectError> {
    let (mut count, mut texts) = (0, [IntText::default(); 2]);
    let [name_text, value_text] = &mut texts;
    while let Some(name) = entries.next() {
        let (name, value) = (name?, partner(&mut entries)?);
        let expires_at_ms = match partner(&mut entries)? {
            Item::Int(0) => None,
            Item::Int(at) => {
                Some(u64::try_from(at).ok().filter(|&at| at <= FIELD_EXPIRY_MS_MAX).ok_or(INVALID_EXPIRY)?)
            }
            Item::Bytes(_) => return Err(INVALID_EXPIRY),
        };
        let (name, value) = (name.as_bytes(name_text), value.as_bytes(value_text));
        unique(visitor.hash_field(HashFieldRef { name, value, expires_at_ms }))?;
        count += 1;
    }
    at_least_one(count)
}

/// The entry that must follow: a score, a value, an expiry.
fn partner<'a>(entries: &mut impl Iterator<Item = Entry<'a>>) -> Entry<'a> {
    entries.next().unwrap_or(Err(ObjectError::malformed("packed value", "entries do not pair up")))
}

fn unique(insert: Insert) -> Result<(), ObjectError> {
    match insert {
        Insert::New => Ok(()),
        Insert::Duplicate => Err(ObjectError::Duplicate),
    }
}

fn at_least_one(count: usize) -> Result<(), ObjectError> {
    if count == 0 { Err(ObjectError::Empty) } else { Ok(()) }
}

/// Collects an [`Object`]; duplicates are found at the end, by sorting.
#[derive(Debug)]
pub(crate) struct ObjectBuilder(Object);

impl ObjectBuilder {
    pub(crate) const fn new() -> Self {
        Self(Object::String(Vec::new()))
    }

    pub(crate) fn finish(self) -> Result<Object, ObjectError> {
        let mut names: Vec<&[u8]> = match &self.0 {
            Object::String(_) | Object::List(_) => Vec::new(),
            Object::Set(members) => members.iter().map(Vec::as_slice).collect(),
            Object::Zset(members) => members.iter().map(|(member, _)| member.as_slice()).collect(),
            Object::Hash(fields) => fields.iter().map(|field| field.name.as_slice()).collect(),
        };
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(ObjectError::Duplicate);
        }
        Ok(self.0)
    }
}

impl Visitor for ObjectBuilder {
    fn begin(&mut self, kind: Kind, _count_hint: usize) {
        // The vectors grow by what arrives: a hint from untrusted bytes reserves nothing.
        self.0 = match kind {
            Kind::String => Object::String(Vec::new()),
            Kind::List => Object::List(Vec::new()),
            Kind::Set => Object::Set(Vec::new()),
            Kind::Zset => Object::Zset(Vec::new()),
            Kind::Hash => Object::Hash(Vec::new()),
        };
    }

    fn string(&mut self, value: &[u8]) {
        self.0 = Object::String(value.to_vec());
    }

    fn list_element(&mut self, element: &[u8]) {
        if let Object::List(elements) = &mut self.0 {
            elements.push(element.to_vec());
        }
    }

    fn set_member(&mut self, member: &[u8]) -> Insert {
        if let Object::Set(members) = &mut self.0 {
            members.push(member.to_vec());
        }
        Insert::New
    }

    fn zset_member(&mut self, member: &[u8], score: f64) -> Insert {
        if let Object::Zset(members) = &mut self.0 {
            members.push((member.to_vec(), score));
        }
        Insert::New
    }

    fn hash_field(&mut self, field: HashFieldRef<'_>) -> Insert {
        if let Object::Hash(fields) = &mut self.0 {
            fields.push(HashField {
                name: field.name.to_vec(),
                value: field.value.to_vec(),
                expires_at_ms: field.expires_at_ms,
            });
        }
        Insert::New
    }
}

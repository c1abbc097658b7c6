//! The elements of a value that the store has encoded.
//!
//! Owns: where one element ends and the next begins, in a whole value and in a part of one. Does **not** own what is made
//! of them. In a snapshot the bytes are the store's own, so an error is a defect of ours, which ends the snapshot and nothing else; in
//! an import they come from another node.

use std::borrow::Cow;
use towline_rdb::length::{read_length, read_string};
use towline_rdb::{Limits, ObjectError, RdbType, Reader, VERSION_REDIS_MAX};

/// The store's own strings need no limit.
const NO_LIMITS: Limits = Limits { string_bytes_max: u64::MAX, inflated_bytes_max: u64::MAX };

/// One element.
#[derive(Debug, PartialEq)]
pub(crate) enum Element<'a> {
    /// A string, an element of a list or a member of a set.
    Plain(Cow<'a, [u8]>),
    /// A member of a sorted set, with its score's eight bytes.
    Scored(Cow<'a, [u8]>, f64),
    /// A field of a hash and its value.
    Field(Cow<'a, [u8]>, Cow<'a, [u8]>),
    /// A field of a hash of which some fields expire: the encoded time of this one (0: it stays), name and value.
    Expiring(u64, Cow<'a, [u8]>, Cow<'a, [u8]>),
}

/// What the elements of a value look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) rdb_type: RdbType,
    /// When the first field expires, in unix milliseconds.
    pub(crate) earliest_ms: u64,
}

impl Shape {
    /// Reads the type byte and what stands before the first element; the rest is elements. Of a string, nothing but the type
    /// byte is read.
    pub(crate) fn read(object: &[u8]) -> Result<(Self, u64, &[u8]), ObjectError> {
        let mut reader = Reader::new(object, NO_LIMITS);
        let rdb_type = RdbType::from_byte(reader.byte()?, VERSION_REDIS_MAX)?;
        let mut earliest_ms = 0;
        if rdb_type == RdbType::HashMetadata {
            earliest_ms = u64::from_le_bytes(reader.array()?);
        }
        let count = if rdb_type == RdbType::String { 1 } else { read_length(&mut reader)? };
        Ok((Self { rdb_type, earliest_ms }, count, reader.rest()))
    }

    /// When a field expires whose encoded time this is, in unix milliseconds.
    pub(crate) fn field_expiry_ms(self, encoded: u64) -> Option<u64> {
        (encoded > 0).then(|| self.earliest_ms.saturating_add(encoded - 1))
    }

    /// Calls `take` with each element in order; of the store's own bytes.
    pub(crate) fn for_each<'a>(
        self,
        elements: &'a [u8],
        take: impl FnMut(Element<'a>),
    ) -> Result<(), ObjectError> {
        self.for_each_within(NO_LIMITS, elements, take)
    }

    /// Calls `take` with each element in order; of bytes from elsewhere.
    pub(crate) fn for_each_within<'a>(
        self,
        limits: Limits,
        elements: &'a [u8],
        mut take: impl FnMut(Element<'a>),
    ) -> Result<(), ObjectError> {
        let mut reader = Reader::new(elements, limits);
        while !reader.rest().is_empty() {
            take(match self.rdb_type {
                RdbType::Zset2 => {
                    let member = read_string(&mut reader)?;
                    Element::Scored(member, f64::from_le_bytes(reader.array()?))
                }
                RdbType::Hash => {
                    let name = read_string(&mut reader)?;
                    Element::Field(name, read_string(&mut reader)?)
                }
                RdbType::HashMetadata => {
                    let at = read_length(&mut reader)?;
                    let name = read_string(&mut reader)?;
                    Element::Expiring(at, name, read_string(&mut reader)?)
                }
                RdbType::String | RdbType::List | RdbType::Set => Element::Plain(read_string(&mut reader)?),
                _ => return Err(ObjectError::UnknownType(self.rdb_type.byte())),
            });
        }
        Ok(())
    }
}

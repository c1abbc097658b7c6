//! Keys as RDB objects, whole or element by element.
//!
//! Owns: which RDB type a value is written as, and the bytes of its elements. Does **not** own when they are written, nor
//! the frames around them (see [`super::batch`]).
//!
//! The types are the plain ones that every Redis since 5 and every Valkey reads; a hash with fields that expire is
//! written in Redis 7.4's form, as nothing older has one.

use crate::elem::ElemBuf;
use crate::hash::{Field, Hash};
use crate::value::{Str, ValueRef};
use crate::zset::ZsetEncoding;
use towline_rdb::RdbType;
use towline_rdb::crc64;
use towline_rdb::length::{write_length, write_string};

/// How much is written under one hold of a slot's lock, and how large a value may be to be written in one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Elements at most, at least 1.
    pub elements: usize,
    /// Bytes from which on nothing more is written. A single element may be larger.
    pub bytes: usize,
}

impl Default for Piece {
    /// 256 elements or 64 KiB: some 20 us, less than it takes to wake a thread that waited for the lock.
    fn default() -> Self {
        Self { elements: 256, bytes: 64 << 10 }
    }
}

/// RDB version of payloads of plain types, and of those with fields that expire.
const VERSION_PLAIN: u16 = 9;
const VERSION_FIELD_EXPIRY: u16 = 12;
/// The latest field expiry that the RDB form has room for, in unix milliseconds.
const FIELD_EXPIRY_MS_MAX: u64 = (1 << 48) - 1;

/// How the fields of one hash are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldForm {
    /// Name and value.
    Plain,
    /// With the time after `earliest_ms`, plus one, in front; 0 for a field that stays.
    Expiring { earliest_ms: u64 },
}

impl FieldForm {
    pub(super) fn of(hash: &Hash) -> Self {
        match hash.next_expiry_ms() {
            None => Self::Plain,
            Some(at) => Self::Expiring { earliest_ms: at.min(FIELD_EXPIRY_MS_MAX) },
        }
    }
}

/// Whether a value is too large to be written under one hold of its slot's lock. Values in one compact block never are:
/// their limits keep them small.
pub(super) fn is_piecewise(value: ValueRef<'_>, piece: Piece) -> bool {
    let is_compact = match value {
        ValueRef::String(Str::Shared(text)) => return text.len() > piece.bytes,
        ValueRef::String(_) => true,
        ValueRef::List(list) => list.nodes().len() == 1,
        ValueRef::Hash(hash) => hash.packed().is_some(),
        ValueRef::Set(set) => !set.is_table(),
        ValueRef::Zset(zset) => zset.encoding() == ZsetEncoding::Listpack,
    };
    !is_compact && (value.elements() > piece.elements || mem_bytes(value) > piece.bytes)
}

fn mem_bytes(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::String(text) => text.len(),
        ValueRef::List(list) => list.mem_bytes(),
        ValueRef::Hash(hash) => hash.mem_bytes(),
        ValueRef::Set(set) => set.mem_bytes(),
        ValueRef::Zset(zset) => zset.mem_bytes(),
    }
}

/// Writes the type byte and what stands before the first element.
pub(super) fn write_head(out: &mut Vec<u8>, value: ValueRef<'_>) {
    let (rdb_type, count) = match value {
        ValueRef::String(text) => {
            out.push(RdbType::String.byte());
            if let Str::Shared(text) = text {
                write_length(out, text.len() as u64);
            }
            return;
        }
        ValueRef::List(list) => (RdbType::List, list.len()),
        ValueRef::Set(set) => (RdbType::Set, set.len()),
        ValueRef::Zset(zset) => (RdbType::Zset2, zset.len()),
        ValueRef::Hash(hash) => match FieldForm::of(hash) {
            FieldForm::Plain => (RdbType::Hash, hash.len()),
            FieldForm::Expiring { earliest_ms } => {
                out.push(RdbType::HashMetadata.byte());
                out.extend(earliest_ms.to_le_bytes());
                write_length(out, hash.len() as u64);
                return;
            }
        },
    };
    out.push(rdb_type.byte());
    write_length(out, count as u64);
}

/// Writes an element of a list or a member of a set.
pub(super) fn write_element(out: &mut Vec<u8>, element: &[u8]) {
    write_string(out, element);
}

/// Writes a member of a sorted set.
pub(super) fn write_scored(out: &mut Vec<u8>, member: &[u8], score: f64) {
    write_string(out, member);
    out.extend(score.to_le_bytes());
}

/// Writes a field of a hash.
pub(super) fn write_field(out: &mut Vec<u8>, form: FieldForm, field: &Field<'_>) {
    if let FieldForm::Expiring { earliest_ms } = form {
        let after = |at: u64| at.min(FIELD_EXPIRY_MS_MAX).saturating_sub(earliest_ms) + 1;
        write_length(out, field.expires_at_ms.map_or(0, after));
    }
    write_string(out, field.name.render(&mut ElemBuf::new()));
    write_string(out, field.value.render(&mut ElemBuf::new()));
}

/// Writes a whole value: its type byte and its body.
pub(super) fn write_object(out: &mut Vec<u8>, value: ValueRef<'_>) {
    write_head(out, value);
    let mut buf = ElemBuf::new();
    match value {
        ValueRef::String(Str::Shared(text)) => out.extend_from_slice(text),
        ValueRef::String(text) => write_string(out, text.bytes(&mut [0; 20])),
        ValueRef::List(list) => list.iter().for_each(|element| write_element(out, element.render(&mut buf))),
        ValueRef::Set(set) => set.iter().for_each(|member| write_element(out, member.render(&mut buf))),
        ValueRef::Zset(zset) => zset.iter().for_each(|(member, score)| write_scored(out, member, score)),
        ValueRef::Hash(hash) => {
            let form = FieldForm::of(hash);
            hash.iter().for_each(|field| write_field(out, form, &field));
        }
    }
}

/// The payload that `RESTORE` takes: the object, the RDB version, a checksum.
pub(crate) fn payload(value: ValueRef<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    write_object(&mut out, value);
    seal(&mut out);
    out
}

/// Makes an object a payload of `RESTORE`.
pub(super) fn seal(object: &mut Vec<u8>) {
    let has_field_expiry = object.first() == Some(&RdbType::HashMetadata.byte());
    let version = if has_field_expiry { VERSION_FIELD_EXPIRY } else { VERSION_PLAIN };
    object.extend(version.to_le_bytes());
    object.extend(crc64::checksum(object).to_le_bytes());
}

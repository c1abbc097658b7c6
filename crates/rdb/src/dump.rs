//! DUMP payloads: type byte, body, RDB version (u16), CRC-64 of all before it (u64), little endian.
//!
//! Owns the frame of a payload. Does not own bodies (`object`) or encoding (`writer`).

use crate::crc64;
use crate::error::ObjectError;
use crate::object::{Object, ObjectBuilder, Visitor, decode_object};
use crate::rdb_type::{RdbType, is_known_version};
use crate::reader::{Limits, Reader};

/// Bytes of version and checksum at the end of each payload.
pub const FOOTER_BYTES: usize = VERSION_BYTES + CRC_BYTES;
const VERSION_BYTES: usize = 2;
const CRC_BYTES: usize = 8;

/// Why a payload was refused. Always the sender's fault; never retryable with the same bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DumpError {
    /// Shorter than a type byte and a footer. Redis answers as for a wrong version or checksum.
    #[error("the payload is shorter than its footer")]
    TooShort,
    /// Written by a version of Redis or Valkey that this crate does not know.
    #[error("RDB version {0} is not supported")]
    Version(u16),
    /// The bytes were damaged on their way.
    #[error("the checksum is wrong")]
    Checksum,
    /// The frame is right and the value in it is not; Redis answers "Bad data format".
    #[error(transparent)]
    Object(#[from] ObjectError),
}

/// Decodes a payload of DUMP into an owned value.
///
/// Accepts RDB versions 1 to 12 and 80. For large values [`visit_dump`] saves a copy.
///
/// # Errors
/// See [`DumpError`].
///
/// ```
/// use towline_rdb::{Limits, Object, decode_dump, encode_string};
/// let payload = encode_string(b"12345");
/// assert_eq!(decode_dump(&payload, Limits::default()), Ok(Object::String(b"12345".to_vec())));
/// ```
pub fn decode_dump(payload: &[u8], limits: Limits) -> Result<Object, DumpError> {
    let mut builder = ObjectBuilder::new();
    visit_dump(payload, limits, &mut builder)?;
    Ok(builder.finish()?)
}

/// Decodes a payload of DUMP piece by piece into `visitor`. Version and checksum are checked before the
/// first call.
///
/// # Errors
/// See [`DumpError`]; after [`DumpError::Object`] the visitor may hold part of a value.
pub fn visit_dump(payload: &[u8], limits: Limits, visitor: &mut impl Visitor) -> Result<(), DumpError> {
    let (covered, &crc) = payload.split_last_chunk::<CRC_BYTES>().ok_or(DumpError::TooShort)?;
    let (value, &version) = covered.split_last_chunk::<VERSION_BYTES>().ok_or(DumpError::TooShort)?;
    let (&type_byte, body) = value.split_first().ok_or(DumpError::TooShort)?;
    let version = u16::from_le_bytes(version);
    if !is_known_version(version) {
        return Err(DumpError::Version(version));
    }
    if crc64::checksum(covered) != u64::from_le_bytes(crc) {
        return Err(DumpError::Checksum);
    }
    let rdb_type = RdbType::from_byte(type_byte, version)?;
    let mut reader = Reader::new(body, limits);
    decode_object(rdb_type, &mut reader, visitor)?;
    match reader.rest().len() {
        0 => Ok(()),
        left => Err(ObjectError::TrailingBytes(left).into()),
    }
}

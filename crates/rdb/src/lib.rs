//! Redis value encodings: typed values to and from the bytes that Redis and Valkey exchange.
//!
//! Owns: the payloads of `DUMP` and `RESTORE` ([`decode_dump`], [`DumpWriter`]), the object bodies that
//! those payloads share with RDB files ([`decode_object`], [`BodyWriter`]), every packed encoding inside them
//! ([`listpack`], [`ziplist`], [`intset`], [`zipmap`]), [`lzf`] and [`crc64`].
//!
//! Does not own: the store's own value types (a caller converts through [`Visitor`] and [`DumpWriter`]),
//! key names, key expiry, eviction fields, the framing of RDB files, streams and module values (they
//! are refused by name).
//!
//! Pure: no clock, no I/O, no randomness. Input is untrusted: nothing is allocated by a claimed length
//! that the remaining bytes cannot fill, nothing recurses, nothing panics.
#![warn(missing_docs)]

pub mod crc64;
pub mod intset;
pub mod length;
pub mod listpack;
pub mod lzf;
pub mod ziplist;
pub mod zipmap;

mod body;
mod dump;
mod error;
mod item;
mod object;
mod rdb_type;
mod reader;
mod writer;

pub use body::{BodyWriter, Compression, HashTtlForm};
pub use dump::{DumpError, FOOTER_BYTES, decode_dump, visit_dump};
pub use error::ObjectError;
pub use item::{IntText, Item};
pub use object::{HashField, HashFieldRef, Insert, Kind, Object, Visitor, decode_object};
pub use rdb_type::{RdbType, VERSION_REDIS_MAX, VERSION_VALKEY};
pub use reader::{Limits, Reader};
pub use writer::{DumpWriter, encode_dump, encode_string};

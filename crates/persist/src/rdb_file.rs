//! RDB files: a writer that yields bounded chunks, a streaming reader, and a check that changes nothing.
//!
//! Owns the frame around values: magic and version, AUX fields, database selection, sizes, expiry, the end
//! and its checksum. Does not own the encodings of values (`towline_rdb` does) nor what a store makes of them.
//!
//! ```text
//! REDIS0010 | (AUX name value)* | (SELECTDB n [RESIZEDB keys expiring] ([EXPIRETIME_MS ms] type key value)*)* | EOF crc64
//! ```
//!
//! # What is written
//!
//! [`RdbWriter`] announces version 10, that of Redis 7.0, and plain types, which every Redis since 5 and every
//! Valkey reads. Only a hash of which fields expire has no form that all of them read: in a file of
//! [`HashTtlForm::Redis`](towline_rdb::HashTtlForm) it takes type 24, so that such a file loads from Redis 7.4
//! on and a file without such a hash from 7.0 on; [`HashTtlForm::Valkey`](towline_rdb::HashTtlForm) announces
//! `VALKEY080`, for Valkey 9 and later.
//!
//! # What is read
//!
//! [`RdbReader`] takes `REDIS0001` to `REDIS0012` (Redis 8.2) and `VALKEY080` (Valkey 9). It passes over what
//! the servers pass over: unknown AUX fields, sizes, LRU and LFU hints (handed out), slot hints. What holds
//! data that would be missing afterwards is an [`Obstacle`]: streams, module values, function libraries, module
//! AUX fields (Redis, too, refuses to start on those of a module that is not there) and the half-done slot
//! imports of Valkey. Obstacles end the reading, or are passed over and reported, as the caller chooses;
//! [`RdbChecker`] lists them before anything is loaded.
//!
//! The checksum stands at the end of the file: whoever must not load part of a damaged file runs the
//! [`RdbChecker`] over it first.

mod check;
mod error;
mod event;
mod reader;
mod skim;
mod skip;
mod writer;

pub use check::{CheckReport, OBSTACLES_MAX, RdbChecker};
pub use error::{Obstacle, RdbFileError, RdbFileErrorKind};
pub use event::{Checksum, Family, OnObstacle, Part, RdbEvent, RdbReaderOptions, ValuePart};
pub use reader::{PIECE_BYTES, RdbReader};
pub use writer::{RdbWriter, RdbWriterOptions, ValueKey};

/// Numbers in the place of a type byte that are no types.
mod opcode {
    pub(super) const SLOT_IMPORT: u8 = 243;
    pub(super) const SLOT_INFO: u8 = 244;
    pub(super) const FUNCTION: u8 = 245;
    pub(super) const FUNCTION_PRE_GA: u8 = 246;
    pub(super) const MODULE_AUX: u8 = 247;
    pub(super) const IDLE: u8 = 248;
    pub(super) const FREQUENCY: u8 = 249;
    pub(super) const AUX: u8 = 250;
    pub(super) const SIZES: u8 = 251;
    pub(super) const EXPIRES_MS: u8 = 252;
    pub(super) const EXPIRES_S: u8 = 253;
    pub(super) const DATABASE: u8 = 254;
    pub(super) const END: u8 = 255;
}

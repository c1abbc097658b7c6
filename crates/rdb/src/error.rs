//! What can be wrong with an object body. Owns the error type that all readers of this crate share;
//! the footer's errors are `dump`'s.

use crate::rdb_type::RdbType;

/// Why a value could not be decoded. All variants are the sender's fault and none is retryable with the
/// same bytes, except [`ObjectError::TooLarge`], which depends on the caller's [`Limits`](crate::Limits).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// The type byte is not assigned in this RDB version.
    #[error("unknown RDB type {0}")]
    UnknownType(u8),
    /// The type is known, and this crate does not decode it: streams and module values.
    #[error("RDB type {0} is not supported")]
    UnsupportedType(RdbType),
    /// The body ends before the value does.
    #[error("the value is truncated")]
    Truncated,
    /// Bytes remain after the value.
    #[error("{0} bytes follow the value")]
    TrailingBytes(usize),
    /// A structure breaks its own rules.
    #[error("malformed {encoding}: {reason}")]
    Malformed {
        /// The encoding that was being read, for example `listpack`.
        encoding: &'static str,
        /// The broken rule.
        reason: &'static str,
    },
    /// A set member, sorted-set member or hash field occurs twice.
    #[error("duplicate member or field")]
    Duplicate,
    /// A list, set, sorted set or hash without elements: Redis has no such values.
    #[error("empty collection")]
    Empty,
    /// A sorted-set score that is not a number, or no number at all.
    #[error("invalid sorted-set score")]
    InvalidScore,
    /// A string or the sum of decompressed bytes exceeds a limit that the caller set.
    #[error("{bytes} bytes exceed the limit of {bytes_max}")]
    TooLarge {
        /// The size that was claimed or reached.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
}

impl ObjectError {
    pub(crate) const fn malformed(encoding: &'static str, reason: &'static str) -> Self {
        Self::Malformed { encoding, reason }
    }
}

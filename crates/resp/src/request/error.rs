//! What a client can do wrong, with Redis's texts.

use std::fmt;

#[cfg(doc)]
use super::{RequestLimits, UnauthenticatedLimits};

/// Why a client's bytes are no command. Each is the client's fault and final: answer `-ERR ` and the text,
/// then close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The count after `*` is no integer or above [`RequestLimits::args_max`].
    #[error("Protocol error: invalid multibulk length")]
    InvalidMultibulkLength,
    /// The count after `*` is above [`UnauthenticatedLimits::args_max`].
    #[error("Protocol error: unauthenticated multibulk length")]
    UnauthenticatedMultibulkLength,
    /// The line after `*` does not end within [`RequestLimits::inline_bytes_max`].
    #[error("Protocol error: too big mbulk count string")]
    TooBigMultibulkCount,
    /// An argument does not begin with `$`.
    #[error("Protocol error: expected '$', got '{}'", Printed(*.got))]
    ExpectedBulk {
        /// The byte in its place.
        got: u8,
    },
    /// The length after `$` is no integer, negative, or above [`RequestLimits::bulk_bytes_max`].
    #[error("Protocol error: invalid bulk length")]
    InvalidBulkLength,
    /// The length after `$` is above [`UnauthenticatedLimits::bulk_bytes_max`].
    #[error("Protocol error: unauthenticated bulk length")]
    UnauthenticatedBulkLength,
    /// The line after `$` does not end within [`RequestLimits::inline_bytes_max`].
    #[error("Protocol error: too big bulk count string")]
    TooBigBulkCount,
    /// An inline command is longer than [`RequestLimits::inline_bytes_max`].
    #[error("Protocol error: too big inline request")]
    TooBigInline,
    /// An inline command has a quote that is not closed, or is closed within a word.
    #[error("Protocol error: unbalanced quotes in request")]
    UnbalancedQuotes,
    /// A header or a bulk does not end with `\r\n`.
    #[error("Protocol error: invalid CRLF in request")]
    InvalidLineEnd,
    /// One command (big arguments not counted) is longer than 4 GiB, which argument offsets cannot express.
    #[error("Protocol error: too big request")]
    TooBigRequest,
}

impl RequestError {
    /// The error's text as Redis sends it, without `ERR `: like `Display`, but a byte outside ASCII stays
    /// that byte.
    pub fn to_bytes(&self) -> Vec<u8> {
        match *self {
            Self::ExpectedBulk { got } if !got.is_ascii() => {
                let mut text = b"Protocol error: expected '$', got '".to_vec();
                text.extend_from_slice(&[got, b'\'']);
                text
            }
            _ => self.to_string().into_bytes(),
        }
    }
}

/// A byte within an error text: line ends become spaces, as in every Redis error.
struct Printed(u8);

impl fmt::Display for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = match self.0 {
            b'\r' | b'\n' => ' ',
            byte if byte.is_ascii() => char::from(byte),
            _ => char::REPLACEMENT_CHARACTER,
        };
        fmt::Write::write_char(f, shown)
    }
}

//! A cursor over untrusted bytes with the caller's limits.
//!
//! Owns bounds checks and the budget of decompressed bytes. Does not own the meaning of the bytes;
//! lengths and strings are read by `length`.

use crate::error::ObjectError;

/// Bounds on the bytes that one value may decode to.
///
/// They do not bound what the receiver spends on each element besides its bytes; a packed element takes
/// two bytes at least, and a [`Visitor`](crate::Visitor) that accounts for memory sees each one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest single string after decompression, in bytes. Default 512 MiB, the default of
    /// `proto-max-bulk-len`, since no client could have sent a longer one.
    pub string_bytes_max: u64,
    /// Largest sum of decompressed bytes of one value. LZF expands at most 88 times
    /// ([`lzf::EXPANSION_MAX`](crate::lzf::EXPANSION_MAX)), so without this bound a payload of 512 MiB
    /// could ask for 44 GiB. Default 4 GiB: eight of the largest strings.
    pub inflated_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { string_bytes_max: 512 << 20, inflated_bytes_max: 4 << 30 }
    }
}

/// A position in a byte string; every read is checked.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
    limits: Limits,
    inflated_bytes: u64,
}

impl<'a> Reader<'a> {
    /// Reads from the start of `input`.
    #[must_use]
    pub fn new(input: &'a [u8], limits: Limits) -> Self {
        Self { rest: input, limits, inflated_bytes: 0 }
    }

    /// The bytes not yet read.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// [`ObjectError::Truncated`] when fewer remain.
    pub fn take(&mut self, count: u64) -> Result<&'a [u8], ObjectError> {
        let count = usize::try_from(count).map_err(|_| ObjectError::Truncated)?;
        let (head, rest) = self.rest.split_at_checked(count).ok_or(ObjectError::Truncated)?;
        self.rest = rest;
        Ok(head)
    }

    /// The next `N` bytes as an array.
    ///
    /// # Errors
    /// [`ObjectError::Truncated`] when fewer remain.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], ObjectError> {
        let (head, rest) = self.rest.split_first_chunk().ok_or(ObjectError::Truncated)?;
        self.rest = rest;
        Ok(*head)
    }

    /// The next byte.
    ///
    /// # Errors
    /// [`ObjectError::Truncated`] at the end.
    pub fn byte(&mut self) -> Result<u8, ObjectError> {
        self.array().map(|[byte]| byte)
    }

    /// Checks a string's size against the limit for one string.
    pub(crate) fn admit_string(&self, bytes: u64) -> Result<(), ObjectError> {
        admit(bytes, self.limits.string_bytes_max)
    }

    /// Takes `bytes` from the budget of decompressed bytes.
    pub(crate) fn admit_inflated(&mut self, bytes: u64) -> Result<(), ObjectError> {
        self.admit_string(bytes)?;
        self.inflated_bytes = self.inflated_bytes.saturating_add(bytes);
        admit(self.inflated_bytes, self.limits.inflated_bytes_max)
    }
}

fn admit(bytes: u64, bytes_max: u64) -> Result<(), ObjectError> {
    if bytes > bytes_max { Err(ObjectError::TooLarge { bytes, bytes_max }) } else { Ok(()) }
}

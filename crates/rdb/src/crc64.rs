//! CRC-64/REDIS, the checksum at the end of DUMP payloads and RDB files.
//!
//! Owns the choice of polynomial only; the arithmetic is `crc-fast`'s. Does not own where the checksum
//! is stored or what it covers.

use std::fmt;

use crc_fast::{CrcAlgorithm, Digest};

/// The checksum of `bytes`.
///
/// ```
/// assert_eq!(towline_rdb::crc64::checksum(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
/// ```
#[must_use]
pub fn checksum(bytes: &[u8]) -> u64 {
    crc_fast::checksum(CrcAlgorithm::Crc64Redis, bytes)
}

/// The checksum of bytes that arrive in pieces.
pub struct Crc64(Digest);

impl Crc64 {
    /// The state before the first byte.
    #[must_use]
    pub fn new() -> Self {
        Self(Digest::new(CrcAlgorithm::Crc64Redis))
    }

    /// Appends `bytes` to what the checksum covers.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of everything appended so far.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.0.finalize()
    }
}

impl Default for Crc64 {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Crc64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Crc64").field(&format_args!("{:#x}", self.value())).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_value_is_the_published_one() {
        assert_eq!(checksum(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
        assert_eq!(checksum(b""), 0);
    }

    #[test]
    fn pieces_give_the_checksum_of_the_whole_at_every_split() {
        let bytes: Vec<u8> = (0..700_u32).map(|i| (i * 7) as u8).collect();
        for split in 0..bytes.len() {
            let mut crc = Crc64::new();
            crc.update(&bytes[..split]);
            crc.update(&bytes[split..]);
            assert_eq!(crc.value(), checksum(&bytes), "split at {split}");
        }
    }
}

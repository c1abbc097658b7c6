//! Key to slot: CRC-16/XMODEM of the key, or of its hash tag, modulo 16384.
//!
//! Owns slots, ranges of them, and hash tags. Does not own who serves a slot ([`crate::SlotMap`]).
//!
//! Source: Redis Cluster specification, "Key distribution model" and "Hash tags".

use std::fmt;

/// Slots in every Redis-compatible cluster.
pub const SLOT_COUNT: usize = 16384;

/// A hash slot, `0..16384`.
pub type Slot = u16;

/// Slots from `first` to `last`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotRange {
    /// 0 to 16383.
    pub first: Slot,
    /// At least `first`, at most 16383.
    pub last: Slot,
}

impl SlotRange {
    /// Most ranges that are kept of one announcement or one view: every slot on its own. More would repeat some.
    pub const RANGES_MAX: usize = SLOT_COUNT;

    /// A range, if both ends are slots in this order.
    pub const fn new(first: Slot, last: Slot) -> Option<Self> {
        if first <= last && (last as usize) < SLOT_COUNT { Some(Self { first, last }) } else { None }
    }

    /// Whether the slot is in the range.
    pub const fn contains(self, slot: Slot) -> bool {
        self.first <= slot && slot <= self.last
    }

    /// The slots, ascending.
    pub fn slots(self) -> impl Iterator<Item = Slot> {
        self.first..=self.last
    }
}

impl fmt::Display for SlotRange {
    /// `123` or `5000-7000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

/// Eight tables, so that eight bytes cost eight independent look-ups instead of a chain of eight.
const TABLES: [[u16; 256]; 8] = tables();

const fn tables() -> [[u16; 256]; 8] {
    let mut tables = [[0u16; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 != 0 { (crc << 1) ^ 0x1021 } else { crc << 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[table - 1][byte];
            tables[table][byte] = (before << 8) ^ tables[0][(before >> 8) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
}

/// CRC-16/XMODEM (polynomial 0x1021, no reflection, initial value 0).
#[inline]
pub fn crc16(bytes: &[u8]) -> u16 {
    let mut crc = 0u16;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        crc = TABLES[7][(chunk[0] ^ (crc >> 8) as u8) as usize]
            ^ TABLES[6][(chunk[1] ^ crc as u8) as usize]
            ^ TABLES[5][chunk[2] as usize]
            ^ TABLES[4][chunk[3] as usize]
            ^ TABLES[3][chunk[4] as usize]
            ^ TABLES[2][chunk[5] as usize]
            ^ TABLES[1][chunk[6] as usize]
            ^ TABLES[0][chunk[7] as usize];
    }
    for &byte in chunks.remainder() {
        crc = (crc << 8) ^ TABLES[0][((crc >> 8) as u8 ^ byte) as usize];
    }
    crc
}

/// The part of `key` that decides its slot: between the first `{` and the next `}` when that is not empty, else all.
#[inline]
pub fn hash_tag(key: &[u8]) -> &[u8] {
    let Some(open) = find(key, b'{') else { return key };
    match key[open + 1..].iter().position(|&b| b == b'}') {
        None | Some(0) => key,
        Some(len) => &key[open + 1..open + 1 + len],
    }
}

/// Where `wanted` is first. Eight bytes at a time, as every key is searched and few have a tag.
#[inline]
fn find(bytes: &[u8], wanted: u8) -> Option<usize> {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    let pattern = ONES * u64::from(wanted);
    // The lowest mark is right; above it a borrow may have made others, which nobody looks at.
    let mark = |word: [u8; 8]| {
        let differs = u64::from_le_bytes(word) ^ pattern;
        let marks = differs.wrapping_sub(ONES) & !differs & (ONES << 7);
        (marks != 0).then(|| marks.trailing_zeros() as usize / 8)
    };
    let Some(last) = bytes.last_chunk::<8>() else { return bytes.iter().position(|byte| *byte == wanted) };
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        if let Some(found) = mark(*word) {
            return Some(at * 8 + found);
        }
    }
    // What is left, with bytes before it that are known by now.
    if rest.is_empty() { None } else { mark(*last).map(|found| bytes.len() - 8 + found) }
}

/// The slot of `key`.
#[inline]
pub fn key_slot(key: &[u8]) -> Slot {
    crc16(hash_tag(key)) & (SLOT_COUNT as u16 - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_slots() {
        // The check value of CRC-16/XMODEM, and slots that CLUSTER KEYSLOT answers.
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(key_slot(b"foo"), 12182);
        assert_eq!(key_slot(b"somekey"), 11058);
        assert_eq!(key_slot(b"foo{hash_tag}"), 2515);
        assert_eq!(key_slot(b""), 0);
    }

    #[test]
    fn hash_tags() {
        for (key, tag) in [
            (&b"{user1000}.following"[..], &b"user1000"[..]),
            (b"foo{}{bar}", b"foo{}{bar}"),
            (b"foo{{bar}}zap", b"{bar"),
            (b"foo{bar}{zap}", b"bar"),
            (b"foo{bar", b"foo{bar"),
            (b"}{", b"}{"),
        ] {
            assert_eq!(hash_tag(key), tag);
        }
    }

    proptest! {
        #[test]
        fn a_byte_is_found_where_it_is_first(bytes in prop::collection::vec(0x7a_u8..0x7d, 0..40), high: bool) {
            let bytes: Vec<u8> = bytes.iter().map(|byte| if high && byte % 2 == 0 { byte | 0x80 } else { *byte }).collect();
            prop_assert_eq!(find(&bytes, b'{'), bytes.iter().position(|byte| *byte == b'{'));
        }

        #[test]
        fn agrees_with_the_reference_implementation(bytes: Vec<u8>) {
            prop_assert_eq!(crc16(&bytes), crc::Crc::<u16>::new(&crc::CRC_16_XMODEM).checksum(&bytes));
        }
    }
}

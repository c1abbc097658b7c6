//! Counting and finding bits within a range.

/// What the ends of a range count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unit {
    /// Whole bytes.
    #[default]
    Byte,
    /// Single bits.
    Bit,
}

/// An inclusive range as the client wrote it: negative ends count from the back, -1 being the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BitRange {
    /// First byte or bit.
    pub start: i64,
    /// Last byte or bit.
    pub end: i64,
    /// What the ends count.
    pub unit: Unit,
}

impl Default for BitRange {
    /// All of the value.
    fn default() -> Self {
        Self { start: 0, end: -1, unit: Unit::Byte }
    }
}

impl BitRange {
    /// The half-open range of bits within a value of `len` bytes; `None` when it is empty.
    fn resolve(self, len: usize) -> Option<(usize, usize)> {
        let total = match self.unit {
            Unit::Byte => i64::try_from(len).ok()?,
            Unit::Bit => i64::try_from(len).ok()?.checked_mul(8)?,
        };
        let absolute = |index: i64| if index < 0 { total.saturating_add(index).max(0) } else { index };
        let start = absolute(self.start);
        let end = absolute(self.end).min(total - 1);
        if start > end {
            return None;
        }
        let (start, end) = (usize::try_from(start).ok()?, usize::try_from(end).ok()? + 1);
        Some(match self.unit {
            Unit::Byte => (start * 8, end * 8),
            Unit::Bit => (start, end),
        })
    }
}

/// The number of set bits within `range`. Ends that both count from the back and are in the wrong order make the range
/// empty, even where clamping them to the value would not; [`position`] clamps, as Redis does in both cases.
#[must_use]
pub fn count(bytes: &[u8], range: BitRange) -> u64 {
    if range.start < 0 && range.end < 0 && range.start > range.end {
        return 0;
    }
    let Some((start, end)) = range.resolve(bytes.len()) else {
        return 0;
    };
    let (first, last) = (start / 8, (end - 1) / 8);
    let (head, tail) = (head_mask(start), tail_mask(end));
    if first == last {
        return u64::from((bytes[first] & head & tail).count_ones());
    }
    let edges = (bytes[first] & head).count_ones() + (bytes[last] & tail).count_ones();
    u64::from(edges) + count_all(&bytes[first + 1..last])
}

/// The number of set bits of all bytes, a word at a time.
fn count_all(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let in_words: u64 = words.iter().map(|word| u64::from(u64::from_ne_bytes(*word).count_ones())).sum();
    in_words + rest.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>()
}

/// The reply of `BITPOS`: the position of the first bit equal to `wanted` within `range`, or -1.
///
/// Without an explicit end (`has_end` false) the value counts as padded with zeros on the right, so a search for a zero
/// in a value of ones answers the first bit behind it.
#[must_use]
pub fn position(bytes: &[u8], wanted: bool, range: BitRange, has_end: bool) -> i64 {
    let Some((start, end)) = range.resolve(bytes.len()) else {
        return -1;
    };
    match first(bytes, wanted, start, end) {
        Some(found) => i64::try_from(found).unwrap_or(i64::MAX),
        None if wanted || has_end => -1,
        None => i64::try_from(bytes.len()).map_or(i64::MAX, |len| len.saturating_mul(8)),
    }
}

/// The first bit equal to `wanted` in the non-empty bit range `start..end`.
fn first(bytes: &[u8], wanted: bool, start: usize, end: usize) -> Option<usize> {
    // Flipping makes both searches a search for a set bit.
    let flip = if wanted { 0 } else { 0xff };
    let in_byte = |byte: u8| byte.leading_zeros() as usize;
    let (first, last) = (start / 8, (end - 1) / 8);
    let head = (bytes[first] ^ flip) & head_mask(start) & if first == last { tail_mask(end) } else { 0xff };
    if head != 0 {
        return Some(first * 8 + in_byte(head));
    }
    if first == last {
        return None;
    }
    let middle = &bytes[first + 1..last];
    let (words, _) = middle.as_chunks::<8>();
    let skip = [flip; 8];
    let words_skipped = words.iter().take_while(|word| **word == skip).count();
    for (index, byte) in middle.iter().enumerate().skip(words_skipped * 8) {
        if byte ^ flip != 0 {
            return Some((first + 1 + index) * 8 + in_byte(byte ^ flip));
        }
    }
    let tail = (bytes[last] ^ flip) & tail_mask(end);
    (tail != 0).then(|| last * 8 + in_byte(tail))
}

/// The bits of the first byte that lie at or behind bit `start`.
fn head_mask(start: usize) -> u8 {
    0xff >> (start % 8)
}

/// The bits of the last byte that lie before bit `end`.
fn tail_mask(end: usize) -> u8 {
    0xff << ((8 - end % 8) % 8)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::bits::bit;

    fn reference(len: usize, range: BitRange) -> Vec<u64> {
        let scale = if range.unit == Unit::Byte { 8 } else { 1 };
        let total = len as i128 * 8 / scale;
        let absolute =
            |index: i64| if index < 0 { (total + i128::from(index)).max(0) } else { i128::from(index) };
        let (start, end) = (absolute(range.start), absolute(range.end).min(total - 1));
        if start > end {
            Vec::new()
        } else {
            (start as u64 * scale as u64..(end as u64 + 1) * scale as u64).collect()
        }
    }

    /// Rows from the command's documentation and Redis 7.0.15.
    #[test]
    fn answers_equal_those_seen_on_the_real_server() {
        let all = BitRange::default();
        let range = |start, end, unit| BitRange { start, end, unit };
        assert_eq!(count(b"foobar", all), 26);
        assert_eq!(count(b"foobar", range(1, 1, Unit::Byte)), 6);
        assert_eq!(count(b"foobar", range(5, 30, Unit::Bit)), 17);
        assert_eq!(count(b"foobar", range(-1, -2, Unit::Byte)), 0);
        assert_eq!(count(b"", all), 0);
        assert_eq!(position(b"\xff\xf0\x00", false, all, false), 12);
        assert_eq!(position(b"\xff\xff\xff", false, all, false), 24);
        assert_eq!(position(b"\xff\xff\xff", false, all, true), -1);
        assert_eq!(position(b"\x00\x00\x00", true, all, false), -1);
        assert_eq!(position(b"", false, all, false), -1);
        assert_eq!(position(b"abc", false, range(-8, -100, Unit::Byte), true), 0);
        assert_eq!(position(b"abc", true, range(-1, -3, Unit::Byte), true), -1);
        assert_eq!(position(b"\x00\xff\xf0", true, range(7, 15, Unit::Bit), true), 8);
        assert_eq!(position(b"\x00\xff\xf0", true, range(2, -1, Unit::Byte), true), 16);
        assert_eq!(position(b"\xff", false, range(i64::MIN, i64::MAX, Unit::Bit), true), -1);
    }

    proptest! {
        #[test]
        fn equals_a_bit_by_bit_reference(
            bytes in proptest::collection::vec(prop_oneof![Just(0_u8), Just(0xff), any::<u8>()], 0..40),
            start in -330_i64..330,
            end in -330_i64..330,
            is_bits: bool,
            wanted: bool,
            has_end: bool,
        ) {
            let unit = if is_bits { Unit::Bit } else { Unit::Byte };
            let range = BitRange { start, end, unit };
            let bits = reference(bytes.len(), range);
            let is_reversed = start < 0 && end < 0 && start > end;
            let set_bits = bits.iter().filter(|at| bit(&bytes, **at) && !is_reversed).count();
            prop_assert_eq!(count(&bytes, range), set_bits as u64);
            let expected = match bits.iter().find(|at| bit(&bytes, **at) == wanted) {
                Some(at) => *at as i64,
                None if !bits.is_empty() && !wanted && !has_end => bytes.len() as i64 * 8,
                None => -1,
            };
            prop_assert_eq!(position(&bytes, wanted, range, has_end), expected);
        }

        #[test]
        fn long_runs_are_skipped_by_words(zeros in 0_usize..200, tail in 0_u8..8) {
            let mut bytes = vec![0_u8; zeros];
            bytes.push(0x80 >> tail);
            let expected = zeros as i64 * 8 + i64::from(tail);
            prop_assert_eq!(position(&bytes, true, BitRange::default(), false), expected);
            let flipped: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
            prop_assert_eq!(position(&flipped, false, BitRange::default(), false), expected);
        }
    }
}

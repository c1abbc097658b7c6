//! Listpack: the packed sequence of Redis 5 and later.
//!
//! Owns reading of one listpack with all its checks. Does not own what its entries mean, and writes
//! none. Layout: total bytes (u32), entries (u16, 65535 = unknown), entries, `0xff`. Each entry is
//! followed by its own length in base 128, most significant part first, so that it can be walked
//! backwards; Redis and Valkey differ in its width for a few lengths, and both are accepted. Format: <https://github.com/antirez/listpack/blob/master/listpack.md>.

use crate::error::ObjectError;
use crate::item::Item;

const NAME: &str = "listpack";
const HEADER_BYTES: usize = 6;
const END: u8 = 0xff;
const COUNT_UNKNOWN: u16 = u16::MAX;

/// A listpack whose header was checked; iterating checks the rest.
#[derive(Debug, Clone, Copy)]
pub struct Listpack<'a> {
    entries: &'a [u8],
    count: u16,
}

impl<'a> Listpack<'a> {
    /// Checks the header of `bytes`, which must be exactly one listpack.
    ///
    /// # Errors
    /// [`ObjectError::Malformed`] when the total differs from the length of `bytes` or the end mark lacks.
    pub fn new(bytes: &'a [u8]) -> Result<Self, ObjectError> {
        let malformed = |reason| Err(ObjectError::malformed(NAME, reason));
        let Some(([t0, t1, t2, t3, c0, c1], entries)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return malformed("the header is truncated");
        };
        if u32::from_le_bytes([*t0, *t1, *t2, *t3]) as usize != bytes.len() {
            return malformed("the total length is wrong");
        }
        let Some((&END, entries)) = entries.split_last() else {
            return malformed("the end mark is missing");
        };
        Ok(Self { entries, count: u16::from_le_bytes([*c0, *c1]) })
    }

    /// The number of entries that the header claims; `None` when it does not say.
    #[must_use]
    pub fn claimed_count(&self) -> Option<usize> {
        (self.count != COUNT_UNKNOWN).then_some(self.count.into())
    }

    /// The entries in order. The first error ends the iteration; a wrong count is an error at the end.
    #[must_use]
    pub fn iter(&self) -> Entries<'a> {
        Entries { rest: self.entries, claimed: self.claimed_count(), seen: 0, done: false }
    }
}

impl<'a> IntoIterator for &Listpack<'a> {
    type Item = Result<Item<'a>, ObjectError>;
    type IntoIter = Entries<'a>;

    fn into_iter(self) -> Entries<'a> {
        self.iter()
    }
}

/// Iterator over the entries of a [`Listpack`].
#[derive(Debug, Clone)]
pub struct Entries<'a> {
    rest: &'a [u8],
    claimed: Option<usize>,
    seen: usize,
    done: bool,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Item<'a>, ObjectError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let step = if self.rest.is_empty() {
            self.done = true;
            let is_right = self.claimed.is_none_or(|claimed| claimed == self.seen);
            return (!is_right).then_some(Err(ObjectError::malformed(NAME, "the entry count is wrong")));
        } else {
            entry(self.rest)
        };
        match step {
            Ok((item, rest)) => {
                self.rest = rest;
                self.seen += 1;
                Some(Ok(item))
            }
            Err(reason) => {
                self.done = true;
                Some(Err(ObjectError::malformed(NAME, reason)))
            }
        }
    }
}

/// The first entry of `bytes` and what follows its back length.
fn entry(bytes: &[u8]) -> Result<(Item<'_>, &[u8]), &'static str> {
    let (item, entry_bytes) = decode(bytes)?;
    let rest = &bytes[entry_bytes..];
    let width = back_width(entry_bytes);
    // At the capacity of two to four bytes, Redis writes one byte more than needed and Valkey does not.
    let is_at_capacity = width > 1 && entry_bytes == (1 << (7 * width)) - 1;
    let strip = |width: usize| rest.strip_prefix(&back_length(entry_bytes, width)[BACK_BYTES_MAX - width..]);
    match strip(width).or_else(|| if is_at_capacity { strip(width + 1) } else { None }) {
        Some(rest) => Ok((item, rest)),
        None => Err("a back length is wrong"),
    }
}

/// The item at the start of `bytes` and the length of its encoding.
fn decode(bytes: &[u8]) -> Result<(Item<'_>, usize), &'static str> {
    const CUT: &str = "an entry is truncated";
    let string = |header: usize, length: usize| {
        let end = header.checked_add(length).ok_or(CUT)?;
        Ok((Item::Bytes(bytes.get(header..end).ok_or(CUT)?), end))
    };
    let at = |index: usize| bytes.get(index).copied().ok_or(CUT);
    let first = at(0)?;
    match first {
        0x00..=0x7f => Ok((Item::Int(first.into()), 1)),
        0x80..=0xbf => string(1, (first & 0x3f).into()),
        0xc0..=0xdf => {
            // Thirteen bits, two's complement: moved to the top of an i16 and back for the sign.
            let raw = i16::from_be_bytes([first << 3 | at(1)? >> 5, at(1)? << 3]);
            Ok((Item::Int((raw >> 3).into()), 2))
        }
        0xe0..=0xef => string(2, usize::from(first & 0x0f) << 8 | usize::from(at(1)?)),
        0xf0 => string(5, u32::from_le_bytes([at(1)?, at(2)?, at(3)?, at(4)?]) as usize),
        0xf1..=0xf4 => {
            let width = [2, 3, 4, 8][usize::from(first - 0xf1)];
            Ok((Item::Int(little_endian(bytes.get(1..=width).ok_or(CUT)?)), 1 + width))
        }
        0xf5..=0xff => Err("unknown entry encoding"),
    }
}

/// A two's complement integer of 1 to 8 bytes.
pub(crate) fn little_endian(bytes: &[u8]) -> i64 {
    let mut wide = [0; 8];
    wide[8 - bytes.len()..].copy_from_slice(bytes);
    i64::from_le_bytes(wide) >> (64 - 8 * bytes.len())
}

/// The most bytes of a back length, enough for the 32 bits of the total.
const BACK_BYTES_MAX: usize = 5;

/// How many bytes the length of an entry needs in base 128.
fn back_width(entry_bytes: usize) -> usize {
    (1..BACK_BYTES_MAX).find(|width| entry_bytes >> (7 * width) == 0).unwrap_or(BACK_BYTES_MAX)
}

/// The length of an entry as written behind it in `width` bytes, right-aligned: all of them but the
/// first have their top bit set.
fn back_length(entry_bytes: usize, width: usize) -> [u8; BACK_BYTES_MAX] {
    let mut back = [0; BACK_BYTES_MAX];
    for (index, byte) in back.iter_mut().rev().take(width).enumerate() {
        let is_first = index + 1 == width;
        *byte = (entry_bytes >> (7 * index)) as u8 & 0x7f | if is_first { 0 } else { 0x80 };
    }
    back
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pack(count: u16, entries: &[&[u8]]) -> Vec<u8> {
        let body: Vec<u8> = entries
            .iter()
            .flat_map(|encoded| {
                let width = back_width(encoded.len());
                [encoded, &back_length(encoded.len(), width)[BACK_BYTES_MAX - width..]].concat()
            })
            .collect();
        let mut out = (body.len() as u32 + 7).to_le_bytes().to_vec();
        out.extend(count.to_le_bytes());
        out.extend(body);
        out.push(END);
        out
    }

    fn items(bytes: &[u8]) -> Result<Vec<Item<'_>>, ObjectError> {
        Listpack::new(bytes)?.iter().collect()
    }

    #[test]
    fn every_encoding_is_read() {
        let long = [&[0xf0, 0x40, 0x42, 0x0f, 0x00], [b'x'; 1_000_000].as_slice()].concat();
        let middle = [&[0xef, 0xff], [b'y'; 4_095].as_slice()].concat();
        let bytes = pack(
            11,
            &[
                &[0x7f],
                &[0x82, b'a', b'b'],
                &[0xdf, 0xff],
                &[0xd0, 0x00],
                &[0xcf, 0xff],
                &middle,
                &long,
                &[0xf1, 0x00, 0x80],
                &[0xf2, 0xff, 0xff, 0x7f],
                &[0xf3, 0, 0, 0, 0x80],
                &[0xf4, 0, 0, 0, 0, 0, 0, 0, 0x80],
            ],
        );
        let expected = [
            Item::Int(127),
            Item::Bytes(b"ab"),
            Item::Int(-1),
            Item::Int(-4_096),
            Item::Int(4_095),
            Item::Bytes(&[b'y'; 4_095]),
            Item::Bytes(&[b'x'; 1_000_000]),
            Item::Int(-32_768),
            Item::Int(8_388_607),
            Item::Int(i32::MIN.into()),
            Item::Int(i64::MIN),
        ];
        assert_eq!(items(&bytes).unwrap(), expected);
        for cut in 0..bytes.len() {
            if cut < 4_000 || cut + 100 > bytes.len() {
                assert!(items(&bytes[..cut]).is_err(), "cut at {cut}");
            }
        }
    }

    #[test]
    fn back_lengths_at_capacity_have_two_widths() {
        let widths = [
            (127, 1),
            (128, 2),
            (16_383, 2),
            (16_384, 3),
            (2_097_151, 3),
            (268_435_456, 5),
            (u32::MAX as usize, 5),
        ];
        for (entry_bytes, width) in widths {
            assert_eq!(back_width(entry_bytes), width);
        }
        // The header of a long string takes five bytes.
        for (entry_bytes, backs) in [
            (16_382, vec![(&b"\x7f\xfe"[..], true), (b"\x00\xff\xfe", false)]),
            (16_383, vec![(b"\x7f\xff", true), (b"\x00\xff\xff", true), (b"\x00\x80\xff\xff", false)]),
            (16_384, vec![(b"\x01\x80\x80", true), (b"\x00\x81\x80\x80", false)]),
        ] {
            for (back, is_right) in backs {
                let string = vec![b'a'; entry_bytes - 5];
                let mut bytes = [&[0xf0], &(string.len() as u32).to_le_bytes()[..], &string, back].concat();
                bytes.push(0);
                assert_eq!(
                    entry(&bytes),
                    if is_right {
                        Ok((Item::Bytes(&string), &b"\0"[..]))
                    } else {
                        Err("a back length is wrong")
                    }
                );
            }
        }
    }

    #[test]
    fn unknown_count_is_accepted_and_wrong_count_is_not() {
        assert_eq!(items(&pack(COUNT_UNKNOWN, &[&[1], &[2]])).unwrap().len(), 2);
        assert!(items(&pack(1, &[&[1], &[2]])).is_err());
        assert!(items(&pack(3, &[&[1], &[2]])).is_err());
    }

    #[test]
    fn broken_structure_is_refused() {
        let good = pack(1, &[&[0x81, b'a']]);
        for (index, value, what) in [
            (0, 99, "total"),
            (6, 0xf5, "encoding"),
            (6, END, "early end"),
            (8, 3, "back length"),
            (9, 0, "end"),
        ] {
            let mut bad = good.clone();
            bad[index] = value;
            assert!(items(&bad).is_err(), "{what}");
        }
        let mut longer = good;
        longer.push(0);
        assert!(items(&longer).is_err());
    }
}

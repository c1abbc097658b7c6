//! Ziplist: the packed sequence of Redis before 7.
//!
//! Owns reading of one ziplist with all its checks. Does not own what its entries mean, and writes none.
//! Layout: total bytes (u32), offset of the last entry (u32), entries (u16, 65535 = unknown), entries,
//! `0xff`. Each entry starts with the length of the one before it.
//! Format: <https://rdb.fnordig.de/file_format.html#ziplist-encoding>.

use crate::error::ObjectError;
use crate::item::Item;
use crate::listpack::little_endian;

const NAME: &str = "ziplist";
const HEADER_BYTES: usize = 10;
const END: u8 = 0xff;
const COUNT_UNKNOWN: u16 = u16::MAX;
/// First byte of a previous length that takes four more bytes.
const PREVIOUS_LONG: u8 = 0xfe;

/// A ziplist whose header was checked; iterating checks the rest.
#[derive(Debug, Clone, Copy)]
pub struct Ziplist<'a> {
    bytes: &'a [u8],
    tail: usize,
    count: u16,
}

impl<'a> Ziplist<'a> {
    /// Checks the header of `bytes`, which must be exactly one ziplist.
    ///
    /// # Errors
    /// [`ObjectError::Malformed`] when the total differs from the length of `bytes` or the end mark lacks.
    pub fn new(bytes: &'a [u8]) -> Result<Self, ObjectError> {
        let malformed = |reason| Err(ObjectError::malformed(NAME, reason));
        let Some(([b0, b1, b2, b3, t0, t1, t2, t3, c0, c1], entries)) =
            bytes.split_first_chunk::<HEADER_BYTES>()
        else {
            return malformed("the header is truncated");
        };
        if u32::from_le_bytes([*b0, *b1, *b2, *b3]) as usize != bytes.len() {
            return malformed("the total length is wrong");
        }
        let Some((&END, _)) = entries.split_last() else {
            return malformed("the end mark is missing");
        };
        Ok(Self {
            bytes: &bytes[..bytes.len() - 1],
            tail: u32::from_le_bytes([*t0, *t1, *t2, *t3]) as usize,
            count: u16::from_le_bytes([*c0, *c1]),
        })
    }

    /// The number of entries that the header claims; `None` when it does not say.
    #[must_use]
    pub fn claimed_count(&self) -> Option<usize> {
        (self.count != COUNT_UNKNOWN).then_some(self.count.into())
    }

    /// The entries in order. The first error ends the iteration; a wrong count or tail offset is an
    /// error at the end.
    #[must_use]
    pub fn iter(&self) -> Entries<'a> {
        Entries { list: *self, at: HEADER_BYTES, last: HEADER_BYTES, seen: 0, done: false }
    }
}

impl<'a> IntoIterator for &Ziplist<'a> {
    type Item = Result<Item<'a>, ObjectError>;
    type IntoIter = Entries<'a>;

    fn into_iter(self) -> Entries<'a> {
        self.iter()
    }
}

/// Iterator over the entries of a [`Ziplist`].
#[derive(Debug, Clone)]
pub struct Entries<'a> {
    list: Ziplist<'a>,
    at: usize,
    /// Where the entry before `at` starts.
    last: usize,
    seen: usize,
    done: bool,
}

impl<'a> Entries<'a> {
    fn step(&mut self) -> Result<Option<Item<'a>>, &'static str> {
        if self.at == self.list.bytes.len() {
            self.done = true;
            return if self.list.claimed_count().is_some_and(|claimed| claimed != self.seen) {
                Err("the entry count is wrong")
            } else if self.list.tail != self.last {
                Err("the tail offset is wrong")
            } else {
                Ok(None)
            };
        }
        let bytes = &self.list.bytes[self.at..];
        let (previous, header) = previous_length(bytes)?;
        if previous != self.at - self.last {
            return Err("a previous length is wrong");
        }
        let (item, length) = decode(&bytes[header..])?;
        self.last = self.at;
        self.at += header + length;
        self.seen += 1;
        Ok(Some(item))
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Item<'a>, ObjectError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        self.step()
            .map_err(|reason| {
                self.done = true;
                ObjectError::malformed(NAME, reason)
            })
            .transpose()
    }
}

const CUT: &str = "an entry is truncated";

/// The length of the previous entry, and the bytes that it takes.
fn previous_length(bytes: &[u8]) -> Result<(usize, usize), &'static str> {
    match bytes {
        [END, ..] => Err("an end mark before the end"),
        [PREVIOUS_LONG, a, b, c, d, ..] => Ok((u32::from_le_bytes([*a, *b, *c, *d]) as usize, 5)),
        [PREVIOUS_LONG, ..] | [] => Err(CUT),
        [short, ..] => Ok(((*short).into(), 1)),
    }
}

/// The item at the start of `bytes` and the length of its encoding.
fn decode(bytes: &[u8]) -> Result<(Item<'_>, usize), &'static str> {
    let string = |header: usize, length: usize| {
        let end = header.checked_add(length).ok_or(CUT)?;
        Ok((Item::Bytes(bytes.get(header..end).ok_or(CUT)?), end))
    };
    let int = |width: usize| Ok((Item::Int(little_endian(bytes.get(1..=width).ok_or(CUT)?)), 1 + width));
    let at = |index: usize| bytes.get(index).copied().ok_or(CUT);
    let first = at(0)?;
    match first {
        0x00..=0x3f => string(1, first.into()),
        0x40..=0x7f => string(2, usize::from(first & 0x3f) << 8 | usize::from(at(1)?)),
        0x80 => string(5, u32::from_be_bytes([at(1)?, at(2)?, at(3)?, at(4)?]) as usize),
        0xc0 => int(2),
        0xd0 => int(4),
        0xe0 => int(8),
        0xf0 => int(3),
        0xfe => int(1),
        0xf1..=0xfd => Ok((Item::Int((first - 0xf1).into()), 1)),
        _ => Err("unknown entry encoding"),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Packs already encoded entries.
    pub(crate) fn pack(count: u16, entries: &[&[u8]]) -> Vec<u8> {
        let (mut body, mut previous) = (Vec::new(), 0);
        for encoded in entries {
            let start = body.len();
            if previous < usize::from(PREVIOUS_LONG) {
                body.push(previous as u8);
            } else {
                body.push(PREVIOUS_LONG);
                body.extend((previous as u32).to_le_bytes());
            }
            body.extend_from_slice(encoded);
            previous = body.len() - start;
        }
        let total = HEADER_BYTES + body.len() + 1;
        let mut out = (total as u32).to_le_bytes().to_vec();
        out.extend(((total - 1 - previous) as u32).to_le_bytes());
        out.extend(count.to_le_bytes());
        out.extend(body);
        out.push(END);
        out
    }

    fn items(bytes: &[u8]) -> Result<Vec<Item<'_>>, ObjectError> {
        Ziplist::new(bytes)?.iter().collect()
    }

    #[test]
    fn every_encoding_is_read() {
        let middle = [&[0x41, 0x00], [b'y'; 256].as_slice()].concat();
        let long = [&[0x80, 0, 0, 0x40, 0], [b'x'; 0x4000].as_slice()].concat();
        let bytes = pack(
            10,
            &[
                &[0x02, b'a', b'b'],
                &middle,
                &long,
                &[0xc0, 0x00, 0x80],
                &[0xd0, 0, 0, 0, 0x80],
                &[0xe0, 0, 0, 0, 0, 0, 0, 0, 0x80],
                &[0xf0, 0, 0, 0x80],
                &[0xfe, 0x80],
                &[0xf1],
                &[0xfd],
            ],
        );
        let expected = [
            Item::Bytes(b"ab"),
            Item::Bytes(&[b'y'; 256]),
            Item::Bytes(&[b'x'; 0x4000]),
            Item::Int(-32_768),
            Item::Int(i32::MIN.into()),
            Item::Int(i64::MIN),
            Item::Int(-8_388_608),
            Item::Int(-128),
            Item::Int(0),
            Item::Int(12),
        ];
        assert_eq!(items(&bytes).unwrap(), expected);
        for cut in 0..bytes.len() {
            assert!(items(&bytes[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn empty_and_uncounted_lists_are_read() {
        assert_eq!(items(&pack(0, &[])).unwrap(), []);
        assert_eq!(items(&pack(COUNT_UNKNOWN, &[&[0xf2], &[0xf3]])).unwrap().len(), 2);
    }

    #[test]
    fn broken_structure_is_refused() {
        let good = pack(2, &[&[0x01, b'a'], &[0x01, b'b']]);
        assert_eq!(items(&good).unwrap().len(), 2);
        for (index, value, what) in [
            (0, 99, "total"),
            (4, 10, "tail"),
            (8, 1, "count"),
            (10, 1, "first previous length"),
            (13, 4, "previous length"),
            (13, END, "early end"),
            (14, 0x90, "encoding"),
            (14, 0x3f, "length"),
            (16, 0, "end"),
        ] {
            let mut bad = good.clone();
            bad[index] = value;
            assert!(items(&bad).is_err(), "{what}");
        }
    }
}

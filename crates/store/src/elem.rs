//! `Elem` and the entry format: one element of a [`crate::packed::Packed`] and its stored form.
//!
//! Owns: encoding, decoding, and the lengths that walks in either direction need. Does **not** own sequences of entries.
//!
//! The format is that of a listpack's entries (<https://github.com/antirez/listpack/blob/master/listpack.md>): a tag with the
//! length or a small integer, the bytes, and the length of both backwards.

use std::fmt;

/// Most digits of a canonical integer, sign included.
const INT_TEXT_MAX: usize = 20;

/// One element: bytes, or an integer whose canonical decimal text is the element.
///
/// As an argument either form may be given; `Bytes(b"12")` and `Int(12)` are the same element.
#[derive(Debug, Clone, Copy)]
pub enum Elem<'a> {
    /// A byte string.
    Bytes(&'a [u8]),
    /// The canonical decimal text of an integer.
    Int(i64),
}

/// Room for the text of one integer, see [`Elem::render`].
#[derive(Default)]
pub struct ElemBuf(itoa::Buffer);

impl fmt::Debug for ElemBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ElemBuf")
    }
}

impl ElemBuf {
    /// Room for one integer, on the stack.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<'a> Elem<'a> {
    /// `bytes` in the form in which a [`crate::packed::Packed`] gives it back, which makes repeated comparisons cheap.
    pub fn parse(bytes: &'a [u8]) -> Self {
        canonical_int(bytes).map_or(Self::Bytes(bytes), Self::Int)
    }

    /// The element's bytes; an integer is written into `buf`.
    pub fn render<'b>(self, buf: &'b mut ElemBuf) -> &'b [u8]
    where
        'a: 'b,
    {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Int(int) => buf.0.format(int).as_bytes(),
        }
    }

    /// The element's bytes, owned.
    pub fn to_vec(self) -> Vec<u8> {
        self.render(&mut ElemBuf::new()).to_vec()
    }

    /// Length of the element's bytes.
    pub fn len(self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Int(int) => {
                usize::from(int < 0) + int.unsigned_abs().checked_ilog10().map_or(1, |log| log as usize + 1)
            }
        }
    }

    /// Whether the element is the empty string.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The integer that the element is the canonical text of, if it is one.
    pub fn as_int(self) -> Option<i64> {
        match self {
            Self::Bytes(bytes) => canonical_int(bytes),
            Self::Int(int) => Some(int),
        }
    }
}

impl<'a> From<&'a [u8]> for Elem<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<i64> for Elem<'_> {
    fn from(int: i64) -> Self {
        Self::Int(int)
    }
}

impl PartialEq for Elem<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Bytes(bytes), Self::Int(int)) | (Self::Int(int), Self::Bytes(bytes)) => {
                canonical_int(bytes) == Some(*int)
            }
        }
    }
}

impl Eq for Elem<'_> {}

impl PartialEq<[u8]> for Elem<'_> {
    fn eq(&self, other: &[u8]) -> bool {
        *self == Elem::Bytes(other)
    }
}

/// The integer whose canonical decimal text `bytes` is: no sign but a leading `-`, no leading zeros, no `-0`, within `i64`.
pub(crate) fn canonical_int(bytes: &[u8]) -> Option<i64> {
    let (negative, digits) = match bytes.split_first()? {
        (b'-', rest) => (true, rest),
        _ => (false, bytes),
    };
    match digits.first()? {
        b'0' if bytes.len() == 1 => return Some(0),
        b'1'..=b'9' if bytes.len() <= INT_TEXT_MAX => {}
        _ => return None,
    }
    let mut value: i64 = 0;
    for &digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        // Downwards, because the lowest integer has no positive counterpart.
        value = value.checked_mul(10)?.checked_sub(i64::from(digit - b'0'))?;
    }
    if negative { Some(value) } else { value.checked_neg() }
}

/// An element in its stored form, so that it is encoded once and compared or copied many times.
#[derive(Debug, Clone, Copy)]
pub struct Encoded<'a> {
    head: [u8; 9],
    head_len: u8,
    pub(crate) payload: &'a [u8],
}

impl<'a> Encoded<'a> {
    /// Encodes one element.
    pub fn new(elem: impl Into<Elem<'a>>) -> Self {
        match elem.into() {
            Elem::Int(int) => Self::of_int(int),
            Elem::Bytes(bytes) => match canonical_int(bytes) {
                Some(int) => Self::of_int(int),
                None => Self::of_bytes(bytes),
            },
        }
    }

    fn of_int(int: i64) -> Self {
        let bytes = int.to_le_bytes();
        match int {
            0..=127 => Self::from_head(&[bytes[0]], &[]),
            -4096..=4095 => Self::from_head(&[0xc0 | (bytes[1] & 0x1f), bytes[0]], &[]),
            -0x8000..=0x7fff => Self::with_tag(0xf1, &bytes[..2], &[]),
            -0x80_0000..=0x7f_ffff => Self::with_tag(0xf2, &bytes[..3], &[]),
            -0x8000_0000..=0x7fff_ffff => Self::with_tag(0xf3, &bytes[..4], &[]),
            _ => Self::with_tag(0xf4, &bytes, &[]),
        }
    }

    fn of_bytes(bytes: &'a [u8]) -> Self {
        let len = (bytes.len() as u64).to_le_bytes();
        match bytes.len() {
            0..=63 => Self::from_head(&[0x80 | len[0]], bytes),
            64..=4095 => Self::from_head(&[0xe0 | len[1], len[0]], bytes),
            4096..=0xffff_ffff => Self::with_tag(0xf0, &len[..4], bytes),
            // An extension: a listpack cannot hold such a string at all.
            _ => Self::with_tag(0xf5, &len, bytes),
        }
    }

    fn from_head(bytes: &[u8], payload: &'a [u8]) -> Self {
        let mut head = [0; 9];
        head[..bytes.len()].copy_from_slice(bytes);
        Self { head, head_len: bytes.len() as u8, payload }
    }

    fn with_tag(tag: u8, rest: &[u8], payload: &'a [u8]) -> Self {
        let mut head = [0; 9];
        head[0] = tag;
        head[1..=rest.len()].copy_from_slice(rest);
        Self { head, head_len: rest.len() as u8 + 1, payload }
    }

    pub(crate) fn head(&self) -> &[u8] {
        &self.head[..usize::from(self.head_len)]
    }

    /// Bytes of tag and payload.
    pub(crate) fn data_len(&self) -> usize {
        usize::from(self.head_len) + self.payload.len()
    }

    /// Bytes that the element takes in a [`crate::packed::Packed`].
    pub fn entry_len(&self) -> usize {
        self.data_len() + back_len_size(self.data_len())
    }

    /// Whether the entry at the start of `entries` is this element. Each element has one encoding, so bytes decide.
    pub(crate) fn is_at(&self, entries: &[u8]) -> bool {
        entries
            .strip_prefix(self.head())
            .is_some_and(|rest| self.payload.is_empty() || rest.starts_with(self.payload))
    }
}

/// Bytes of the backward length that follows `data_len` bytes. The bounds, odd as they look, are the listpack's.
pub(crate) fn back_len_size(data_len: usize) -> usize {
    match data_len {
        0..=127 => 1,
        128..=16_382 => 2,
        16_383..=2_097_150 => 3,
        2_097_151..=268_435_454 => 4,
        268_435_455..=0x7_ffff_ffff => 5,
        _ => 6,
    }
}

/// The backward length: groups of seven bits, the lowest last, each but the first marked with the high bit.
pub(crate) fn back_len(data_len: usize) -> ([u8; 6], usize) {
    let size = back_len_size(data_len);
    let mut bytes = [0; 6];
    for (i, byte) in bytes[..size].iter_mut().enumerate() {
        let group = (data_len >> (7 * (size - 1 - i))) as u8 & 0x7f;
        *byte = if i == 0 { group } else { group | 0x80 };
    }
    (bytes, size)
}

/// The little-endian unsigned number in `N` bytes at `at`.
fn number<const N: usize>(entries: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes[..N].copy_from_slice(&entries[at..at + N]);
    u64::from_le_bytes(bytes)
}

/// Sign-extends the lowest `bits` bits.
fn signed(value: u64, bits: u32) -> i64 {
    ((value << (64 - bits)) as i64) >> (64 - bits)
}

/// The element that begins at `at`, and the bytes of its tag and payload.
pub(crate) fn decode(entries: &[u8], at: usize) -> (Elem<'_>, usize) {
    let int = |value, len| (Elem::Int(value), len);
    let bytes = |head: usize, len: usize| (Elem::Bytes(&entries[at + head..at + head + len]), head + len);
    let tag = entries[at];
    match tag {
        0..=0x7f => int(i64::from(tag), 1),
        0x80..=0xbf => bytes(1, usize::from(tag & 0x3f)),
        0xc0..=0xdf => int(signed(u64::from(tag & 0x1f) << 8 | u64::from(entries[at + 1]), 13), 2),
        0xe0..=0xef => bytes(2, usize::from(tag & 0x0f) << 8 | usize::from(entries[at + 1])),
        0xf0 => bytes(5, number::<4>(entries, at + 1) as usize),
        0xf1 => int(signed(number::<2>(entries, at + 1), 16), 3),
        0xf2 => int(signed(number::<3>(entries, at + 1), 24), 4),
        0xf3 => int(signed(number::<4>(entries, at + 1), 32), 5),
        0xf4 => int(signed(number::<8>(entries, at + 1), 64), 9),
        _ => bytes(9, number::<8>(entries, at + 1) as usize),
    }
}

/// Bytes of tag and payload of the entry that begins at `at`; cheaper than [`decode`].
pub(crate) fn data_len(entries: &[u8], at: usize) -> usize {
    let tag = entries[at];
    match tag {
        0..=0x7f => 1,
        0x80..=0xbf => 1 + usize::from(tag & 0x3f),
        0xc0..=0xdf => 2,
        0xe0..=0xef => 2 + (usize::from(tag & 0x0f) << 8 | usize::from(entries[at + 1])),
        0xf0 => 5 + number::<4>(entries, at + 1) as usize,
        0xf1 => 3,
        0xf2 => 4,
        0xf3 => 5,
        0xf4 => 9,
        _ => 9 + number::<8>(entries, at + 1) as usize,
    }
}

/// Where the entry after the one at `at` begins.
pub(crate) fn after(entries: &[u8], at: usize) -> usize {
    let len = data_len(entries, at);
    at + len + back_len_size(len)
}

/// Where the entry that ends at `end` begins.
pub(crate) fn before(entries: &[u8], end: usize) -> usize {
    let (mut len, mut size) = (0, 0);
    loop {
        let byte = entries[end - 1 - size];
        len |= usize::from(byte & 0x7f) << (7 * size);
        size += 1;
        if byte & 0x80 == 0 {
            return end - size - len;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_integers_are_integers() {
        for int in [0, 7, -1, 127, 128, -4096, i64::MAX, i64::MIN] {
            assert_eq!(canonical_int(int.to_string().as_bytes()), Some(int));
        }
        let others = [
            "",
            "-",
            "-0",
            "00",
            "01",
            "+1",
            " 1",
            "1 ",
            "1.0",
            "9223372036854775808",
            "-9223372036854775809",
            "123456789012345678901234",
        ];
        for text in others {
            assert_eq!(canonical_int(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn equality_is_by_bytes() {
        assert_eq!(Elem::Bytes(b"12"), Elem::Int(12));
        assert_ne!(Elem::Bytes(b"012"), Elem::Int(12));
        assert_eq!(Elem::parse(b"-7").to_vec(), b"-7");
        assert_eq!(Elem::Int(-7).len(), 2);
    }

    #[test]
    fn strings_beyond_a_listpacks_reach_keep_their_length() {
        // The tag and the length are what is checked; 4 GiB of payload are not needed for that.
        let mut entry = vec![0xf5];
        entry.extend_from_slice(&5u64.to_le_bytes());
        entry.extend_from_slice(b"hello");
        assert_eq!(decode(&entry, 0), (Elem::Bytes(b"hello"), 14));
        assert_eq!(data_len(&entry, 0), 14);
        assert_eq!(back_len(0x8_0000_0000), ([1, 0x80, 0x80, 0x80, 0x80, 0x80], 6));
    }
}

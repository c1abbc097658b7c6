//! Zipmap: the packed hash of Redis before 2.6.
//!
//! Owns reading of one zipmap with all its checks; writes none. Layout: pairs (u8, 254 and more =
//! unknown), then per pair: length, name, length, unused bytes (u8), value, unused bytes; `0xff`.
//! Format: <https://rdb.fnordig.de/file_format.html#zipmap-encoding>.

use crate::error::ObjectError;

const NAME: &str = "zipmap";
const END: u8 = 0xff;
/// First byte of a length that takes four more bytes; also the first count that means "unknown".
const LONG: u8 = 0xfe;

/// A zipmap; iterating checks it.
#[derive(Debug, Clone, Copy)]
pub struct Zipmap<'a> {
    count: u8,
    pairs: &'a [u8],
}

impl<'a> Zipmap<'a> {
    /// Takes `bytes`, which must be exactly one zipmap.
    ///
    /// # Errors
    /// [`ObjectError::Malformed`] when count or end mark lack.
    pub fn new(bytes: &'a [u8]) -> Result<Self, ObjectError> {
        match bytes {
            [count, pairs @ .., END] => Ok(Self { count: *count, pairs }),
            _ => Err(ObjectError::malformed(NAME, "count or end mark is missing")),
        }
    }

    /// The number of pairs that the header claims; `None` when it does not say.
    #[must_use]
    pub fn claimed_count(&self) -> Option<usize> {
        (self.count < LONG).then_some(self.count.into())
    }

    /// The names and values in order. The first error ends the iteration; a wrong count is an error at
    /// the end.
    #[must_use]
    pub fn iter(&self) -> Pairs<'a> {
        Pairs { map: *self, seen: 0, done: false }
    }
}

impl<'a> IntoIterator for &Zipmap<'a> {
    type Item = Result<(&'a [u8], &'a [u8]), ObjectError>;
    type IntoIter = Pairs<'a>;

    fn into_iter(self) -> Pairs<'a> {
        self.iter()
    }
}

/// Iterator over the pairs of a [`Zipmap`].
#[derive(Debug, Clone)]
pub struct Pairs<'a> {
    map: Zipmap<'a>,
    seen: usize,
    done: bool,
}

impl<'a> Iterator for Pairs<'a> {
    type Item = Result<(&'a [u8], &'a [u8]), ObjectError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        if self.map.pairs.is_empty() {
            self.done = true;
            let is_right = self.map.claimed_count().is_none_or(|claimed| claimed == self.seen);
            return (!is_right).then_some(Err(ObjectError::malformed(NAME, "the pair count is wrong")));
        }
        match pair(self.map.pairs) {
            Some((name, value, rest)) => {
                self.map.pairs = rest;
                self.seen += 1;
                Some(Ok((name, value)))
            }
            None => {
                self.done = true;
                Some(Err(ObjectError::malformed(NAME, "a pair is truncated")))
            }
        }
    }
}

/// Name, value and what follows the first pair.
fn pair(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (length, rest) = length(bytes)?;
    let (name, rest) = rest.split_at_checked(length)?;
    let (length, rest) = self::length(rest)?;
    let (&unused, rest) = rest.split_first()?;
    let (value, rest) = rest.split_at_checked(length)?;
    Some((name, value, rest.get(unused.into()..)?))
}

fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    match bytes {
        [LONG, a, b, c, d, rest @ ..] => Some((u32::from_le_bytes([*a, *b, *c, *d]) as usize, rest)),
        [LONG | END, ..] | [] => None,
        [short, rest @ ..] => Some(((*short).into(), rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_with_unused_bytes_and_long_lengths_are_read() {
        let value = [b'v'; 300];
        let bytes = [&b"\x02\x01a\x02\x03xyzzz\x01b\xfe\x2c\x01\0\0\0"[..], &value, b"\xff"].concat();
        let pairs: Vec<_> = Zipmap::new(&bytes).unwrap().iter().collect::<Result<_, _>>().unwrap();
        assert_eq!(pairs, [(&b"a"[..], &b"xy"[..]), (b"b", &value)]);
        for cut in 0..bytes.len() {
            let read = Zipmap::new(&bytes[..cut]).and_then(|map| map.iter().collect::<Result<Vec<_>, _>>());
            assert!(read.is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn wrong_count_is_refused_and_unknown_count_is_not() {
        let read = |bytes: &[u8]| {
            Zipmap::new(bytes).unwrap().iter().collect::<Result<Vec<_>, _>>().map(|pairs| pairs.len())
        };
        assert_eq!(read(b"\x01\x01a\x01\0b\xff"), Ok(1));
        assert_eq!(read(b"\xfe\x01a\x01\0b\xff"), Ok(1));
        assert!(read(b"\x02\x01a\x01\0b\xff").is_err());
    }
}

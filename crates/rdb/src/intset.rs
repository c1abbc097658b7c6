//! Intset: sorted integers of one width.
//!
//! Owns reading of one intset with all its checks; writes none. Layout: width in bytes (u32: 2, 4 or 8),
//! count (u32), integers, all little endian, strictly ascending.

use crate::error::ObjectError;
use crate::listpack::little_endian;

const NAME: &str = "intset";
const HEADER_BYTES: usize = 8;

/// An intset whose header was checked; iterating checks the order.
#[derive(Debug, Clone, Copy)]
pub struct Intset<'a> {
    body: &'a [u8],
    width: usize,
}

impl<'a> Intset<'a> {
    /// Checks the header of `bytes`, which must be exactly one intset.
    ///
    /// # Errors
    /// [`ObjectError::Malformed`] for another width, or a count that does not fit the length of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Result<Self, ObjectError> {
        let malformed = |reason| Err(ObjectError::malformed(NAME, reason));
        let Some(([w0, w1, w2, w3, c0, c1, c2, c3], body)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return malformed("the header is truncated");
        };
        let width = match u32::from_le_bytes([*w0, *w1, *w2, *w3]) {
            2 => 2,
            4 => 4,
            8 => 8,
            _ => return malformed("unknown width"),
        };
        let count = u64::from(u32::from_le_bytes([*c0, *c1, *c2, *c3]));
        if count * width as u64 != body.len() as u64 {
            return malformed("the count is wrong");
        }
        Ok(Self { body, width })
    }

    /// How many integers the set has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.body.len() / self.width
    }

    /// Whether the set has no integers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.body.is_empty()
    }

    /// The integers in ascending order; one that is not above its predecessor is an error.
    pub fn iter(&self) -> impl Iterator<Item = Result<i64, ObjectError>> + use<'a> {
        let mut previous = None;
        self.body.chunks_exact(self.width).map(little_endian).map(move |value| {
            if previous.is_some_and(|previous| previous >= value) {
                return Err(ObjectError::malformed(NAME, "the integers are not ascending"));
            }
            previous = Some(value);
            Ok(value)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pack(width: u32, values: &[i64]) -> Vec<u8> {
        let mut out = width.to_le_bytes().to_vec();
        out.extend((values.len() as u32).to_le_bytes());
        for value in values {
            out.extend(&value.to_le_bytes()[..width as usize]);
        }
        out
    }

    fn ints(bytes: &[u8]) -> Result<Vec<i64>, ObjectError> {
        Intset::new(bytes)?.iter().collect()
    }

    #[test]
    fn every_width_is_read() {
        for (width, values) in [
            (2, [-32_768, 0, 32_767]),
            (4, [i32::MIN.into(), -1, i32::MAX.into()]),
            (8, [i64::MIN, 5, i64::MAX]),
        ] {
            assert_eq!(ints(&pack(width, &values)).unwrap(), values);
        }
        assert!(Intset::new(&pack(2, &[])).unwrap().is_empty());
    }

    #[test]
    fn broken_sets_are_refused() {
        assert!(ints(&pack(2, &[1, 1])).is_err());
        assert!(ints(&pack(4, &[2, 1])).is_err());
        assert!(ints(&pack(3, &[1])).is_err());
        let good = pack(8, &[1, 2, 3]);
        for cut in 0..good.len() {
            assert!(ints(&good[..cut]).is_err());
        }
        assert!(ints(&[good, vec![0]].concat()).is_err());
    }
}

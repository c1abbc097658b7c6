//! One entry of a packed encoding: bytes or an integer that stands for its decimal text.
//!
//! Owns the text form of integers. Does not own how entries are laid out.

/// An entry of a listpack, ziplist or intset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item<'a> {
    /// The bytes as stored.
    Bytes(&'a [u8]),
    /// An integer; its value as a Redis string is the decimal text.
    Int(i64),
}

impl Item<'_> {
    /// The entry as a Redis string; integers are written into `text` first.
    #[must_use]
    pub fn as_bytes<'b>(&'b self, text: &'b mut IntText) -> &'b [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Int(value) => text.write(*value),
        }
    }
}

/// Room for the decimal text of any `i64` (at most 20 bytes).
#[derive(Debug, Clone, Copy, Default)]
pub struct IntText([u8; Self::BYTES_MAX]);

impl IntText {
    /// Length of the text of `i64::MIN`.
    const BYTES_MAX: usize = 20;

    /// The decimal text of `value`, as Redis prints it.
    pub fn write(&mut self, value: i64) -> &[u8] {
        let mut at = self.0.len();
        let mut rest = value.unsigned_abs();
        loop {
            at -= 1;
            self.0[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if value < 0 {
            at -= 1;
            self.0[at] = b'-';
        }
        &self.0[at..]
    }
}

/// The value of `text` when it is exactly the decimal text of an `i32`: no sign but a needed `-`, no
/// leading zero. These are the strings that RDB stores as integers.
pub(crate) fn canonical_i32(text: &[u8]) -> Option<i32> {
    /// Length of the text of `i32::MIN`.
    const BYTES_MAX: usize = 11;
    if text.len() > BYTES_MAX {
        return None;
    }
    let value: i32 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (IntText::default().write(value.into()) == text).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_the_decimal_form() {
        for value in [0, 1, -1, 9, 10, -10, 12_345, i64::from(i32::MIN), i64::MAX, i64::MIN] {
            assert_eq!(IntText::default().write(value), value.to_string().as_bytes());
        }
    }

    #[test]
    fn only_canonical_texts_are_integers() {
        for (text, value) in [("0", 0), ("-1", -1), ("2147483647", i32::MAX), ("-2147483648", i32::MIN)] {
            assert_eq!(canonical_i32(text.as_bytes()), Some(value));
        }
        for text in
            ["", "-", "+1", "-0", "00", "01", " 1", "1 ", "2147483648", "-2147483649", "1.0", "\u{661}"]
        {
            assert_eq!(canonical_i32(text.as_bytes()), None, "{text:?}");
        }
    }
}

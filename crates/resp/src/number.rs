//! Strict decimal integers as Redis reads them.
//!
//! Owns the one rule set that lengths on the wire and integer arguments share. Does not own error texts.

/// Reads a signed 64-bit decimal integer with Redis's rules: an optional `-`, no `+`, no leading zero, no
/// `-0`, no spaces, nothing out of range. `None` otherwise.
#[inline]
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    if let [digit @ b'0'..=b'9'] = text {
        return Some(i64::from(digit - b'0'));
    }
    let (is_negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    // 19 digits hold i64::MAX and fit u64; a longer text without leading zeros is out of range.
    if digits.is_empty() || digits.len() > 19 || !matches!(digits[0], b'1'..=b'9') {
        return None;
    }
    let mut magnitude = 0_u64;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        magnitude = magnitude * 10 + u64::from(digit);
    }
    if is_negative { 0_i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_read_and_what_lies_beyond_is_refused() {
        for value in [0, 1, -1, 9, 10, -10, i64::MAX, i64::MIN, i64::MAX - 1, i64::MIN + 1] {
            assert_eq!(parse_i64(value.to_string().as_bytes()), Some(value));
        }
        for text in
            ["9223372036854775808", "-9223372036854775809", "99999999999999999999", "18446744073709551616"]
        {
            assert_eq!(parse_i64(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn only_the_canonical_form_is_accepted() {
        for text in ["", "-", "+1", "01", "-0", "-01", "00", " 1", "1 ", "1a", "a", "1.0", "--1", "\u{661}"] {
            assert_eq!(parse_i64(text.as_bytes()), None, "{text}");
        }
    }
}

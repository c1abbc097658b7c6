//! Numbers in the text form that clients send: strict integers, floats and the bounds built from them.
//!
//! Owns parsing, and the rendering of integers. Does not own the rendering of floats (the `resp` crate does), nor the
//! error texts: a parser answers `None` and the command says what was expected.

/// Longest text of an `i64`: a sign and 19 digits. Longer input is no integer.
pub const I64_TEXT_BYTES_MAX: usize = 20;

/// Parses an integer in its one canonical form: no spaces, no plus, no leading zeros, no `-0`, within `i64`.
///
/// Because only the canonical form is accepted, `Some` also means that the text can be stored as an integer and rendered
/// back to the same bytes (the `int` encoding).
#[must_use]
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [] => return None,
        [b'0', ..] => return (text.len() == 1).then_some(0),
        _ if text.len() > I64_TEXT_BYTES_MAX => return None,
        _ => {}
    }
    // Twenty digits may exceed u64 and then i64 as well, hence the checked steps.
    let magnitude = digits.iter().try_fold(0_u64, |value, &byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })?;
    if is_negative { 0_i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// Whether `text` is what [`IntText`] renders for some `i64`, so that the `int` encoding loses nothing.
#[must_use]
pub fn is_canonical_i64(text: &[u8]) -> bool {
    parse_i64(text).is_some()
}

/// An integer rendered on the stack.
#[derive(Default)]
pub struct IntText {
    buffer: itoa::Buffer,
}

impl std::fmt::Debug for IntText {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("IntText").finish_non_exhaustive()
    }
}

impl IntText {
    /// An empty buffer; costs nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The decimal text of `value`, at most [`I64_TEXT_BYTES_MAX`] bytes.
    pub fn render(&mut self, value: i64) -> &[u8] {
        self.buffer.format(value).as_bytes()
    }
}

/// Parses a float argument (a score, an increment): all of the text, no spaces, no `nan`, no overflow to infinity and
/// no underflow to zero. `inf`, `infinity` (any case, signed) and C's hexadecimal floats are accepted.
#[must_use]
pub fn parse_f64(text: &[u8]) -> Option<f64> {
    let parsed = parse_any(text)?;
    let is_out_of_range = match parsed.kind {
        Kind::Named => false,
        Kind::Digits { is_zero } => parsed.value.is_infinite() || (parsed.value == 0.0 && !is_zero),
    };
    (!is_out_of_range).then_some(parsed.value)
}

/// Parses the number of a score bound. It is laxer than [`parse_f64`], as in Redis: leading white space is skipped, the
/// empty text is zero, and an overflow is an infinity.
#[must_use]
pub fn parse_f64_lax(text: &[u8]) -> Option<f64> {
    if text.is_empty() {
        return Some(0.0);
    }
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let start = text.iter().position(|byte| !is_space(byte))?;
    parse_any(&text[start..]).map(|parsed| parsed.value)
}

struct Parsed {
    value: f64,
    kind: Kind,
}

enum Kind {
    /// `inf` or `infinity`.
    Named,
    Digits {
        /// Whether every digit of the significand is zero.
        is_zero: bool,
    },
}

/// All that C's `strtod` takes, except `nan`.
fn parse_any(text: &[u8]) -> Option<Parsed> {
    let (sign, magnitude) = match text {
        [b'-', rest @ ..] => (-1.0, rest),
        [b'+', rest @ ..] => (1.0, rest),
        rest => (1.0, rest),
    };
    match magnitude {
        [b'0', b'x' | b'X', digits @ ..] => {
            let (value, is_zero) = parse_hexadecimal(digits)?;
            Some(Parsed { value: sign * value, kind: Kind::Digits { is_zero } })
        }
        [b'0'..=b'9' | b'.', ..] => {
            let value: f64 = std::str::from_utf8(magnitude).ok()?.parse().ok()?;
            let is_zero = magnitude
                .iter()
                .take_while(|byte| !matches!(byte, b'e' | b'E'))
                .all(|byte| !matches!(byte, b'1'..=b'9'));
            Some(Parsed { value: sign * value, kind: Kind::Digits { is_zero } })
        }
        name => (name.eq_ignore_ascii_case(b"inf") || name.eq_ignore_ascii_case(b"infinity"))
            .then_some(Parsed { value: sign * f64::INFINITY, kind: Kind::Named }),
    }
}

/// The part of a hexadecimal float behind `0x`: digits with an optional point, then an optional `p` and exponent.
/// Returns the value and whether it is exactly zero. Subnormal results are rounded twice, once to 53 bits.
fn parse_hexadecimal(text: &[u8]) -> Option<(f64, bool)> {
    let digits_end = text.iter().position(|byte| matches!(byte, b'p' | b'P')).unwrap_or(text.len());
    let (digits, exponent) = text.split_at(digits_end);
    let mut exponent = match exponent {
        [] => 0,
        [_p, exponent @ ..] => parse_exponent(exponent)?,
    };
    let mut significand = 0_u64;
    let (mut digit_count, mut is_fraction) = (0_usize, false);
    for &byte in digits {
        if byte == b'.' && !is_fraction {
            is_fraction = true;
            continue;
        }
        let digit = u64::from(char::from(byte).to_digit(16)?);
        digit_count += 1;
        if significand >> 60 == 0 {
            significand = significand << 4 | digit;
            exponent -= if is_fraction { 4 } else { 0 };
        } else {
            // The lowest bit stands for all that follows, so that one rounding to 53 bits is right.
            significand |= u64::from(digit != 0);
            exponent += if is_fraction { 0 } else { 4 };
        }
    }
    if digit_count == 0 {
        return None;
    }
    let mut value = significand as f64;
    let mut left = exponent.clamp(-4_000, 4_000);
    while left != 0 && value != 0.0 && value.is_finite() {
        let step = left.clamp(-512, 512);
        value *= 2_f64.powi(i32::try_from(step).ok()?);
        left -= step;
    }
    Some((value, significand == 0))
}

/// A decimal exponent with an optional sign, held within what can matter.
fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] => (1, digits),
        digits => (1, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let magnitude = digits.iter().fold(0_i64, |value, &byte| {
        value.saturating_mul(10).saturating_add(i64::from(byte - b'0')).min(1 << 48)
    });
    Some(sign * magnitude)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn integers_have_one_form() {
        for (text, expected) in [
            ("0", Some(0)),
            ("1", Some(1)),
            ("-1", Some(-1)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("-9223372036854775809", None),
            ("99999999999999999999", None),
            ("18446744073709551617", None),
            ("", None),
            ("-", None),
            ("-0", None),
            ("00", None),
            ("01", None),
            ("+1", None),
            (" 1", None),
            ("1 ", None),
            ("1.0", None),
            ("1e3", None),
            ("1\0", None),
        ] {
            assert_eq!(parse_i64(text.as_bytes()), expected, "{text:?}");
        }
    }

    /// Rows seen on Redis 7.0.15 through `ZADD` (strict) and `ZCOUNT` (lax).
    #[test]
    fn floats_equal_those_seen_on_the_real_server() {
        let inf = f64::INFINITY;
        for (text, strict, lax) in [
            ("", None, Some(0.0)),
            (" 1", None, Some(1.0)),
            ("1 ", None, None),
            ("0x10", Some(16.0), Some(16.0)),
            ("0x1p3", Some(8.0), Some(8.0)),
            ("0X1.8", Some(1.5), Some(1.5)),
            ("0x", None, None),
            ("0xp1", None, None),
            ("nan", None, None),
            ("NaN", None, None),
            ("nan(1)", None, None),
            ("-nan", None, None),
            ("inf", Some(inf), Some(inf)),
            ("-inf", Some(-inf), Some(-inf)),
            ("+inf", Some(inf), Some(inf)),
            ("INFINITY", Some(inf), Some(inf)),
            ("infinit", None, None),
            ("1e400", None, Some(inf)),
            ("1e-400", None, Some(0.0)),
            ("0e-400", Some(0.0), Some(0.0)),
            ("1e-310", Some(1e-310), Some(1e-310)),
            ("1.", Some(1.0), Some(1.0)),
            (".5", Some(0.5), Some(0.5)),
            (".", None, None),
            ("1e", None, None),
            ("+1", Some(1.0), Some(1.0)),
            ("--1", None, None),
            ("+-1", None, None),
            ("1E+5", Some(1e5), Some(1e5)),
            ("1e 5", None, None),
            ("-", None, None),
            ("1_0", None, None),
            ("00012", Some(12.0), Some(12.0)),
            ("1d", None, None),
            ("1e309", None, Some(inf)),
            ("123456789012345678901234567890", Some(1.2345678901234568e29), Some(1.2345678901234568e29)),
        ] {
            assert_eq!(parse_f64(text.as_bytes()), strict, "{text:?}");
            assert_eq!(parse_f64_lax(text.as_bytes()), lax, "{text:?}");
        }
        assert!(parse_f64(b"-0").is_some_and(|zero| zero == 0.0 && zero.is_sign_negative()));
        assert_eq!(parse_f64(b"1\xff"), None);
    }

    #[test]
    fn hexadecimal_floats_round_once() {
        assert_eq!(parse_f64(b"0x1.00000000000008p0"), Some(1.0));
        assert_eq!(parse_f64(b"0x1.000000000000080000000001p0"), Some(1.0 + f64::EPSILON));
        assert_eq!(parse_f64(b"0x1p1024"), None);
        assert_eq!(parse_f64(b"0x1p99999999999999999999"), None);
        assert_eq!(parse_f64(b"-0x1p-1074"), Some(-5e-324));
        assert_eq!(parse_f64(b"0x1p-1080"), None);
    }

    proptest! {
        #[test]
        fn integers_round_trip(value: i64) {
            let mut text = IntText::new();
            prop_assert_eq!(parse_i64(text.render(value)), Some(value));
        }

        #[test]
        fn a_parsed_integer_renders_to_its_text(text in "[-+ 0]{0,2}[0-9]{0,20}") {
            if let Some(value) = parse_i64(text.as_bytes()) {
                prop_assert_eq!(value.to_string(), text);
            }
        }

        #[test]
        fn floats_round_trip(bits: u64) {
            let value = f64::from_bits(bits);
            let expected = (!value.is_nan()).then_some(value);
            prop_assert_eq!(parse_f64(format!("{value:e}").as_bytes()), expected);
        }

        #[test]
        fn no_input_panics(text in proptest::collection::vec(proptest::sample::select(&b"+-0129.eExXpPabinf \t\xff"[..]), 0..24)) {
            let _ = (parse_i64(&text), parse_f64(&text), parse_f64_lax(&text));
        }
    }
}

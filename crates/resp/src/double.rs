//! Decimal forms of floating point numbers, as Redis puts them on the wire.
//!
//! Owns two forms: [`format_double`], the short digits that read back as the same number (scores, RESP3
//! doubles), and [`format_long_double`], plain decimals without an exponent. Does not own the parsing of
//! arguments, nor the arithmetic of `INCRBYFLOAT`, which is [`crate::long_double`]'s.

use crate::grisu;

/// Longest text that [`format_double`] yields, in bytes.
const DOUBLE_TEXT_BYTES_MAX: usize = 32;

/// A formatted number, held inline.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DoubleText {
    bytes: [u8; DOUBLE_TEXT_BYTES_MAX],
    len: u8,
}

impl DoubleText {
    const EMPTY: Self = Self { bytes: [0; DOUBLE_TEXT_BYTES_MAX], len: 0 };

    fn of(text: &[u8]) -> Self {
        let mut out = Self::EMPTY;
        out.extend(text);
        out
    }

    fn extend(&mut self, text: &[u8]) {
        let start = self.len as usize;
        self.bytes[start..start + text.len()].copy_from_slice(text);
        self.len += text.len() as u8;
    }

    /// The text's bytes; always ASCII.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len as usize]
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).expect("invariant: only ASCII is written")
    }
}

impl AsRef<[u8]> for DoubleText {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl std::fmt::Debug for DoubleText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whole numbers up to this magnitude, 2^62, are written as integers, as Redis's `double2ll` decides.
const INTEGER_MAX: f64 = (1_u64 << 62) as f64;

/// Formats as Redis 7.2 and later do: `inf`, `-inf`, `nan`; whole numbers up to 2^62 as integers; otherwise
/// the shortest digits, with an exponent (`1e-7`, `1.5e+300`) where plain notation would need many zeros.
pub fn format_double(value: f64) -> DoubleText {
    if value.is_nan() {
        return DoubleText::of(b"nan");
    }
    if value.is_infinite() {
        return DoubleText::of(if value > 0.0 { b"inf" } else { b"-inf" });
    }
    if value == 0.0 {
        return DoubleText::of(if value.is_sign_negative() { b"-0" } else { b"0" });
    }
    if value.fract() == 0.0 && value.abs() <= INTEGER_MAX {
        return DoubleText::of(itoa::Buffer::new().format(value as i64).as_bytes());
    }
    let (digits, exponent) = grisu::shortest_digits(value.abs());
    place_digits(value.is_sign_negative(), digits.as_bytes(), exponent)
}

/// Writes digits times ten to `exponent` in Redis's choice of notation.
fn place_digits(is_negative: bool, digits: &[u8], exponent: i32) -> DoubleText {
    let count = digits.len() as i32;
    let scientific = exponent + count - 1;
    let mut out = DoubleText::EMPTY;
    if is_negative {
        out.extend(b"-");
    }
    if exponent >= 0 && scientific < count + 7 {
        out.extend(digits);
        out.extend(&b"0000000"[..exponent as usize]);
    } else if exponent < 0 && (exponent > -7 || scientific.abs() < 4) {
        let whole = count + exponent;
        if whole <= 0 {
            out.extend(b"0.");
            out.extend(&b"0000000"[..(-whole) as usize]);
            out.extend(digits);
        } else {
            out.extend(&digits[..whole as usize]);
            out.extend(b".");
            out.extend(&digits[whole as usize..]);
        }
    } else {
        out.extend(&digits[..1]);
        if count > 1 {
            out.extend(b".");
            out.extend(&digits[1..]);
        }
        out.extend(if scientific < 0 { b"e-" } else { b"e+" });
        out.extend(itoa::Buffer::new().format(scientific.unsigned_abs()).as_bytes());
    }
    out
}

/// Decimals that Redis's `%.17Lf` keeps.
const LONG_DOUBLE_DECIMALS: usize = 17;

/// Formats a double in plain decimals: never an exponent, at most 17 decimals, no trailing zeros. Infinities
/// and NaN give `inf`, `-inf`, `nan`. For `INCRBYFLOAT` and `HINCRBYFLOAT`, which reckon with 80 bits, use
/// [`crate::long_double::LongDouble`]: its digits are Redis's, these are the shortest of the nearest double.
pub fn format_long_double(value: f64) -> String {
    if !value.is_finite() {
        return format_double(value).as_str().to_owned();
    }
    // Display of f64 is the shortest digits in plain notation.
    let mut text = value.to_string();
    if let Some(dot) = text.find('.') {
        text.truncate((dot + 1 + LONG_DOUBLE_DECIMALS).min(text.len()));
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    if text == "-0" { "0".to_owned() } else { text }
}

//! The arithmetic of `INCRBYFLOAT` and `HINCRBYFLOAT`: the 80-bit floating point of x86-64.
//!
//! Redis reads, adds and prints `long double`, which on x86-64 has a 64-bit mantissa and a 15-bit exponent,
//! so `12345678.9` incremented by 0 gives `12345678.8999999999996362`. Doubles cannot reproduce that; this
//! module computes the same bits with integers. Owns reading, addition and the plain decimal form. Does not
//! own error texts.

use std::cmp::Ordering;
use std::fmt;

/// Longest text that is read, in bytes: Redis's `MAX_LONG_DOUBLE_CHARS` less the terminator.
const TEXT_BYTES_MAX: usize = 5 * 1024 - 1;
/// Exponent of the last mantissa bit of the largest number.
const EXPONENT_MAX: i32 = 16383 - 63;
/// Exponent of the last mantissa bit of the smallest number, normal or not.
const EXPONENT_MIN: i32 = -16382 - 63;
/// Decimal exponents beyond this give infinity or zero whatever the digits are: 4932 and the longest text's
/// digits.
const DECIMAL_EXPONENT_MAX: i64 = 4932 + TEXT_BYTES_MAX as i64 + 40;
/// Decimals printed, as in `%.17Lf`.
const DECIMALS: usize = 17;

/// An 80-bit floating point number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongDouble {
    is_negative: bool,
    class: Class,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// `mantissa * 2^exponent`. The mantissa's top bit is set, unless the number is zero or below the normal
    /// range.
    Finite {
        mantissa: u64,
        exponent: i32,
    },
    Infinite,
    Nan,
}

const ZERO: Class = Class::Finite { mantissa: 0, exponent: EXPONENT_MIN };

impl LongDouble {
    /// Reads what Redis's `string2ld` accepts: a decimal number with an optional sign, fraction and exponent,
    /// or an infinity. `None` for anything else: white space, NaN, an empty or too long text (5119 bytes), a
    /// number too large, or one so small that it becomes zero.
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let (is_negative, rest) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        if rest.eq_ignore_ascii_case(b"inf") || rest.eq_ignore_ascii_case(b"infinity") {
            return Some(Self { is_negative, class: Class::Infinite });
        }
        let (digits, exponent) = split_decimal(rest)?;
        let significant = &digits[digits.iter().position(|&digit| digit != b'0').unwrap_or(digits.len())..];
        if significant.is_empty() {
            return Some(Self { is_negative, class: ZERO });
        }
        let class = from_decimal(significant, exponent);
        // Out of range is an error in Redis (ERANGE), both ways.
        if class == Class::Infinite || class == ZERO { None } else { Some(Self { is_negative, class }) }
    }

    /// Mantissa and exponent of a finite number.
    #[cfg(test)]
    pub(crate) fn parts(self) -> Option<(u64, i32)> {
        match self.class {
            Class::Finite { mantissa, exponent } => Some((mantissa, exponent)),
            _ => None,
        }
    }

    /// Whether the sign is minus, that of zero included.
    pub const fn is_negative(self) -> bool {
        self.is_negative
    }

    /// Whether this is neither an infinity nor NaN: whether Redis would store it.
    pub const fn is_finite(self) -> bool {
        matches!(self.class, Class::Finite { .. })
    }
}

impl std::ops::Add for LongDouble {
    type Output = Self;

    /// The sum, rounded to nearest, ties to even.
    fn add(self, other: Self) -> Self {
        use Class::{Finite, Infinite, Nan};
        match (self.class, other.class) {
            (Nan, _) | (_, Nan) => Self { is_negative: false, class: Nan },
            (Infinite, Infinite) if self.is_negative != other.is_negative => {
                Self { is_negative: false, class: Nan }
            }
            (Infinite, _) => self,
            (_, Infinite) => other,
            (Finite { mantissa: a, exponent: ea }, Finite { mantissa: b, exponent: eb }) => {
                // The larger exponent goes first, and with equal exponents the larger mantissa.
                if (ea, a) >= (eb, b) {
                    add_finite(self.is_negative, (a, ea), (b, eb), self.is_negative == other.is_negative)
                } else {
                    add_finite(other.is_negative, (b, eb), (a, ea), self.is_negative == other.is_negative)
                }
            }
        }
    }
}

/// Adds (or subtracts) the smaller number's magnitude to the larger one's, whose sign the result has.
fn add_finite(is_negative: bool, large: (u64, i32), small: (u64, i32), is_sum: bool) -> LongDouble {
    // 62 bits below the mantissa leave room for a carry above it; what falls out below them only matters as
    // "not zero", which the lowest bit keeps.
    const GUARD_BITS: i32 = 62;
    let wide = u128::from(large.0) << GUARD_BITS;
    let shift = large.1.saturating_sub(small.1);
    let low = u128::from(small.0) << GUARD_BITS;
    let aligned = match shift {
        0..=127 => low >> shift | u128::from(low & ((1 << shift) - 1) != 0),
        _ => u128::from(low != 0),
    };
    let sum = if is_sum { wide + aligned } else { wide - aligned };
    if sum == 0 {
        // x - x is +0, and -0 + -0 is -0.
        return LongDouble { is_negative: is_negative && is_sum, class: ZERO };
    }
    LongDouble { is_negative, class: rounded(sum, large.1 - GUARD_BITS, false) }
}

/// The finite class nearest to `value * 2^exponent`, a little more if `is_inexact`; `value` is not zero.
fn rounded(value: u128, exponent: i32, is_inexact: bool) -> Class {
    let bits = 128 - value.leading_zeros() as i32;
    // Bits to drop so that 64 stay, or fewer below the normal range.
    let drop = (bits - 64).max(EXPONENT_MIN - exponent);
    let (mut mantissa, mut result_exponent) = (value, exponent + drop);
    if drop <= 0 {
        mantissa <<= -drop;
    } else {
        let half = match drop {
            1..=127 => {
                let rest = value & ((1 << drop) - 1);
                mantissa = value >> drop;
                rest.cmp(&(1 << (drop - 1)))
            }
            _ => {
                mantissa = 0;
                Ordering::Less
            }
        };
        let is_up = match half {
            Ordering::Greater => true,
            Ordering::Equal => is_inexact || mantissa & 1 == 1,
            Ordering::Less => false,
        };
        mantissa += u128::from(is_up);
        if mantissa == 1 << 64 {
            mantissa >>= 1;
            result_exponent += 1;
        }
    }
    if mantissa == 0 {
        ZERO
    } else if result_exponent > EXPONENT_MAX {
        Class::Infinite
    } else {
        Class::Finite { mantissa: mantissa as u64, exponent: result_exponent }
    }
}

/// Splits `12.5e3` into its digits and the decimal exponent of the last one. `None` if it is no decimal
/// number.
fn split_decimal(text: &[u8]) -> Option<(Vec<u8>, i64)> {
    let mantissa_len = text.iter().position(|byte| matches!(byte, b'e' | b'E')).unwrap_or(text.len());
    let (mantissa, exponent) = text.split_at(mantissa_len);
    let dot = mantissa.iter().position(|&byte| byte == b'.');
    let decimals = dot.map_or(0, |at| mantissa.len() - at - 1);
    let digits: Vec<u8> =
        mantissa.iter().enumerate().filter(|(at, _)| Some(*at) != dot).map(|(_, &byte)| byte).collect();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let exponent = match exponent {
        [] => 0,
        [_, b'-', digits @ ..] => -decimal_exponent(digits)?,
        [_, b'+', digits @ ..] | [_, digits @ ..] => decimal_exponent(digits)?,
    };
    Some((digits, exponent - decimals as i64))
}

/// An exponent's magnitude; one beyond all reason is cut to [`DECIMAL_EXPONENT_MAX`] and something.
fn decimal_exponent(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(
        digits
            .iter()
            .fold(0, |sum, digit| (sum * 10 + i64::from(digit - b'0')).min(4 * DECIMAL_EXPONENT_MAX)),
    )
}

/// The number nearest to the digits (the first is not zero) times ten to `exponent`.
fn from_decimal(digits: &[u8], exponent: i64) -> Class {
    // 10^27 = 5^27 * 2^27, and 5^27 is the largest power of five below 2^63.
    const FAST_EXPONENT_MAX: i64 = 27;
    let magnitude = exponent + digits.len() as i64;
    if magnitude > DECIMAL_EXPONENT_MAX {
        return Class::Infinite;
    }
    if magnitude < -DECIMAL_EXPONENT_MAX {
        return ZERO;
    }
    if digits.len() <= 19 && exponent.abs() <= FAST_EXPONENT_MAX {
        let value = digits.iter().fold(0_u64, |sum, digit| sum * 10 + u64::from(digit - b'0'));
        let five = 5_u64.pow(exponent.unsigned_abs() as u32);
        if exponent >= 0 {
            return rounded(u128::from(value) * u128::from(five), exponent as i32, false);
        }
        // A quotient of at least 65 bits, and whether something is left over.
        let shift = value.leading_zeros() as i32 + 64;
        let wide = u128::from(value) << shift;
        let (quotient, rest) = (wide / u128::from(five), wide % u128::from(five));
        return rounded(quotient, exponent as i32 - shift, rest != 0);
    }
    let mut numerator = Natural::from_digits(digits);
    let mut denominator = Natural::from(1);
    let five = if exponent >= 0 { &mut numerator } else { &mut denominator };
    five.multiply_by_five_to(exponent.unsigned_abs());
    quotient(numerator, denominator, exponent as i32)
}

/// The number nearest to `numerator / denominator * 2^exponent`, by long division in base two.
fn quotient(mut numerator: Natural, mut denominator: Natural, exponent: i32) -> Class {
    let excess = numerator.bits() as i32 - denominator.bits() as i32;
    if excess < 0 {
        numerator.shift_left(excess.unsigned_abs());
    } else {
        denominator.shift_left(excess.unsigned_abs());
    }
    // Now the quotient is above 1/2 and below 2: 66 bits hold 64 significant ones and one to round by.
    const QUOTIENT_BITS: i32 = 66;
    let mut bits = 0_u128;
    for _ in 0..QUOTIENT_BITS {
        bits <<= 1;
        if numerator.compare(&denominator) != Ordering::Less {
            numerator.subtract(&denominator);
            bits |= 1;
        }
        numerator.shift_left(1);
    }
    rounded(bits, exponent + excess - (QUOTIENT_BITS - 1), !numerator.is_zero())
}

impl fmt::Display for LongDouble {
    /// Redis's human form: no exponent, up to 17 decimals, no trailing zeros, never `-0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_negative { "-" } else { "" };
        let (mantissa, exponent) = match self.class {
            Class::Nan => return f.write_str("nan"),
            Class::Infinite => return write!(f, "{sign}inf"),
            Class::Finite { mantissa, exponent } => (mantissa, exponent),
        };
        if exponent >= 0 {
            let mut whole = Natural::from(mantissa);
            whole.shift_left(exponent.unsigned_abs());
            return write!(f, "{sign}{}", whole.to_decimal());
        }
        let (whole, decimals) = split_fraction(mantissa, exponent.unsigned_abs());
        if decimals > 0 {
            let text = format!("{decimals:0DECIMALS$}");
            write!(f, "{sign}{whole}.{}", text.trim_end_matches('0'))
        } else if whole > 0 {
            write!(f, "{sign}{whole}")
        } else {
            f.write_str("0")
        }
    }
}

/// The whole part of `mantissa / 2^bits` and its decimals as an integer, rounded to nearest, ties to even.
fn split_fraction(mantissa: u64, bits: u32) -> (u64, u64) {
    const SCALE: u128 = 10_u128.pow(DECIMALS as u32);
    let whole = mantissa.checked_shr(bits).unwrap_or(0);
    let fraction = if bits < 64 { mantissa & ((1 << bits) - 1) } else { mantissa };
    // Below 2^121, so with 122 bits or more to drop it rounds to nothing.
    let scaled = u128::from(fraction) * SCALE;
    if bits >= 122 {
        return (whole, 0);
    }
    let (mut decimals, rest) = (scaled >> bits, scaled & ((1 << bits) - 1));
    let half = 1_u128 << (bits - 1);
    if rest > half || rest == half && decimals & 1 == 1 {
        decimals += 1;
    }
    if decimals == SCALE { (whole + 1, 0) } else { (whole, decimals as u64) }
}

/// A natural number of any size: base 2^32, least significant first, no leading zeros.
#[derive(Clone, Debug)]
struct Natural(Vec<u32>);

impl From<u64> for Natural {
    fn from(value: u64) -> Self {
        let mut natural = Self(vec![value as u32, (value >> 32) as u32]);
        natural.trim();
        natural
    }
}

impl Natural {
    fn from_digits(digits: &[u8]) -> Self {
        let mut natural = Self(Vec::new());
        for chunk in digits.chunks(9) {
            let value = chunk.iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'));
            natural.multiply_add(10_u32.pow(chunk.len() as u32), value);
        }
        natural
    }

    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    fn bits(&self) -> u32 {
        self.0.last().map_or(0, |top| self.0.len() as u32 * 32 - top.leading_zeros())
    }

    fn multiply_add(&mut self, factor: u32, mut carry: u32) {
        for limb in &mut self.0 {
            let product = u64::from(*limb) * u64::from(factor) + u64::from(carry);
            (*limb, carry) = (product as u32, (product >> 32) as u32);
        }
        if carry > 0 {
            self.0.push(carry);
        }
    }

    fn multiply_by_five_to(&mut self, exponent: u64) {
        // 5^13 is the largest power of five below 2^32.
        for _ in 0..exponent / 13 {
            self.multiply_add(5_u32.pow(13), 0);
        }
        self.multiply_add(5_u32.pow((exponent % 13) as u32), 0);
    }

    fn shift_left(&mut self, bits: u32) {
        if self.is_zero() {
            return;
        }
        self.multiply_add(1 << (bits % 32), 0);
        if bits >= 32 {
            self.0.splice(0..0, std::iter::repeat_n(0, bits as usize / 32));
        }
    }

    fn compare(&self, other: &Self) -> Ordering {
        self.0.len().cmp(&other.0.len()).then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }

    /// Subtracts a number that is not larger.
    fn subtract(&mut self, other: &Self) {
        let mut borrows = false;
        for (index, limb) in self.0.iter_mut().enumerate() {
            let (difference, first) = limb.overflowing_sub(other.0.get(index).copied().unwrap_or(0));
            let (difference, second) = difference.overflowing_sub(u32::from(borrows));
            (*limb, borrows) = (difference, first || second);
        }
        self.trim();
    }

    fn to_decimal(&self) -> String {
        const CHUNK: u64 = 1_000_000_000;
        let mut rest = self.clone();
        let mut chunks = Vec::new();
        while !rest.is_zero() {
            let mut remainder = 0;
            for limb in rest.0.iter_mut().rev() {
                let value = remainder << 32 | u64::from(*limb);
                (*limb, remainder) = ((value / CHUNK) as u32, value % CHUNK);
            }
            rest.trim();
            chunks.push(remainder);
        }
        let mut text = chunks.last().unwrap_or(&0).to_string();
        for chunk in chunks.iter().rev().skip(1) {
            text.push_str(&format!("{chunk:09}"));
        }
        text
    }
}

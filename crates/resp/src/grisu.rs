//! Short decimal digits of a double: the Grisu2 algorithm.
//!
//! Redis 7.2 and later, and Valkey, print doubles with Grisu2, whose digits always read back as the same
//! number but are not the shortest in about one case of a thousand, and never use the limits of the rounding
//! interval. The standard library prints the shortest digits, so its texts would differ from Redis's; hence
//! this module.
//!
//! Owns the digits only, not their notation. The algorithm: F. Loitsch, "Printing Floating-Point Numbers
//! Quickly and Accurately with Integers", PLDI 2010, section 5.

/// Most digits that Grisu2 yields for a double.
const DIGITS_MAX: usize = 17;

/// Decimal digits, most significant first.
#[derive(Debug)]
pub(crate) struct Digits {
    bytes: [u8; DIGITS_MAX],
    count: usize,
}

impl Digits {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.count]
    }

    /// Appends a digit; leading zeros are dropped.
    fn push(&mut self, digit: u8) {
        if digit != 0 || self.count > 0 {
            self.bytes[self.count] = b'0' + digit;
            self.count += 1;
        }
    }
}

/// `mantissa * 2^exponent`, unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Binary {
    mantissa: u64,
    exponent: i32,
}

impl Binary {
    const fn normalized(self) -> Self {
        let shift = self.mantissa.leading_zeros();
        Self { mantissa: self.mantissa << shift, exponent: self.exponent - shift as i32 }
    }

    /// The product's upper 64 bits, rounded half up.
    const fn times(self, other: Self) -> Self {
        let product = self.mantissa as u128 * other.mantissa as u128 + (1 << 63);
        Self { mantissa: (product >> 64) as u64, exponent: self.exponent + other.exponent + 64 }
    }
}

/// First decimal exponent in [`POWERS`]: scales the largest double into the window.
const POWER_FIRST: i32 = -348;
/// Distance of decimal exponents in [`POWERS`]: eight decades are less than the window's 28 bits.
const POWER_STEP: i32 = 8;
/// Powers needed to reach from the largest to the smallest double.
const POWER_COUNT: usize = 87;
/// The scaled number's binary exponent lies between this and -32, so that its whole part fits 32 bits.
const SCALED_EXPONENT_MIN: i32 = -60;

/// `10^(POWER_FIRST + POWER_STEP * index)`, to 64 bits, correctly rounded.
static POWERS: [Binary; POWER_COUNT] = powers();

/// Builds [`POWERS`] outwards from `10^-4` and `10^4` with 128-bit mantissas: after 43 steps fewer than 2^6
/// units of the last bit are lost, so the upper 64 bits round correctly unless a power lies within 2^-57 of a
/// tie; a test verifies that none does.
const fn powers() -> [Binary; POWER_COUNT] {
    const STEP_FACTOR: u128 = 10_u128.pow(POWER_STEP as u32);
    const MIDDLE: usize = ((4 - POWER_FIRST) / POWER_STEP) as usize;
    let mut table = [Binary { mantissa: 0, exponent: 0 }; POWER_COUNT];

    let (mut mantissa, mut exponent) = (10_000_u128 << (128 - 14), 14 - 128);
    let mut index = MIDDLE;
    while index < POWER_COUNT {
        table[index] = rounded(mantissa, exponent);
        let low = (mantissa as u64) as u128 * STEP_FACTOR;
        let high = (mantissa >> 64) * STEP_FACTOR + (low >> 64);
        let shift = 64 - high.leading_zeros();
        mantissa = high << (64 - shift) | (low as u64 >> shift) as u128;
        exponent += shift as i32;
        index += 1;
    }

    // 2^127 / 10^4, brought back to 128 bits.
    (mantissa, exponent) = divided(1 << 127, -127, 10_000);
    index = MIDDLE;
    while index > 0 {
        index -= 1;
        table[index] = rounded(mantissa, exponent);
        (mantissa, exponent) = divided(mantissa, exponent, STEP_FACTOR);
    }
    table
}

/// A normalised mantissa divided by a small number, normalised again, rounded down.
const fn divided(mantissa: u128, exponent: i32, divisor: u128) -> (u128, i32) {
    let (quotient, remainder) = (mantissa / divisor, mantissa % divisor);
    let shift = quotient.leading_zeros();
    ((quotient << shift) | ((remainder << shift) / divisor), exponent - shift as i32)
}

/// The upper 64 bits of a normalised 128-bit mantissa, rounded to nearest.
const fn rounded(mantissa: u128, exponent: i32) -> Binary {
    let (upper, carries) = ((mantissa >> 64) as u64).overflowing_add((mantissa >> 63 & 1) as u64);
    // A carry out of all ones leaves zero: the next power of two.
    if carries {
        Binary { mantissa: 1 << 63, exponent: exponent + 65 }
    } else {
        Binary { mantissa: upper, exponent: exponent + 64 }
    }
}

/// The power that scales a number of this binary exponent into the window, and its decimal exponent.
fn scaling_power(exponent: i32) -> (Binary, i32) {
    let fits = |power: &Binary| exponent + power.exponent + 64 >= SCALED_EXPONENT_MIN;
    let index = POWERS.partition_point(|power| !fits(power)).min(POWER_COUNT - 1);
    (POWERS[index], POWER_FIRST + index as i32 * POWER_STEP)
}

/// Digits and a decimal exponent such that the digits, read as an integer, times ten to the exponent are
/// `value` after rounding. `value` must be positive and finite.
pub(crate) fn shortest_digits(value: f64) -> (Digits, i32) {
    debug_assert!(value.is_finite() && value > 0.0, "digits of a positive finite number only");
    const HIDDEN_BIT: u64 = 1 << (f64::MANTISSA_DIGITS - 1);
    let fraction = value.to_bits() & (HIDDEN_BIT - 1);
    let exact = match (value.to_bits() >> (f64::MANTISSA_DIGITS - 1)) as i32 {
        0 => Binary { mantissa: fraction, exponent: -1074 },
        biased => Binary { mantissa: fraction | HIDDEN_BIT, exponent: biased - 1075 },
    };
    // The interval of all numbers that read back as `value`: half way to either neighbour. Below a power of
    // two the lower neighbour is nearer.
    let upper = Binary { mantissa: exact.mantissa * 2 + 1, exponent: exact.exponent - 1 }.normalized();
    let lower_bits = if exact.mantissa == HIDDEN_BIT { 2 } else { 1 };
    let lower = Binary {
        mantissa: ((exact.mantissa << lower_bits) - 1) << (exact.exponent - lower_bits - upper.exponent),
        exponent: upper.exponent,
    };
    let (power, power_exponent) = scaling_power(upper.exponent);
    let exact = exact.normalized().times(power);
    // The products are off by up to one unit: narrow the interval by as much.
    let upper = Binary { mantissa: upper.times(power).mantissa - 1, exponent: upper.times(power).exponent };
    let lower = lower.times(power).mantissa + 1;
    let (digits, cut) = generate(exact.mantissa, upper, lower);
    (digits, cut - power_exponent)
}

/// Generates digits of `upper` until what is left lies within the interval, then moves the last digit towards
/// `exact`. Also yields the decimal exponent of the last digit.
fn generate(exact: u64, upper: Binary, lower: u64) -> (Digits, i32) {
    let mut digits = Digits { bytes: [0; DIGITS_MAX], count: 0 };
    let fraction_bits = -upper.exponent;
    let one = 1_u64 << fraction_bits;
    let (mut whole, mut fraction) = (upper.mantissa >> fraction_bits, upper.mantissa & (one - 1));
    let mut width = upper.mantissa - lower;
    let mut distance = upper.mantissa - exact;

    let mut unit = 1_000_000_000_u64;
    for exponent in (0..10).rev() {
        digits.push((whole / unit) as u8);
        whole %= unit;
        let rest = (whole << fraction_bits) + fraction;
        if rest <= width {
            approach(&mut digits, width, rest, unit << fraction_bits, distance);
            return (digits, exponent);
        }
        unit /= 10;
    }
    let mut exponent = 0;
    loop {
        exponent -= 1;
        fraction *= 10;
        width *= 10;
        distance = distance.wrapping_mul(10);
        digits.push((fraction >> fraction_bits) as u8);
        fraction &= one - 1;
        if fraction < width {
            approach(&mut digits, width, fraction, one, distance);
            return (digits, exponent);
        }
    }
}

/// Lowers the last digit while that brings the number nearer to the exact one, which lies `distance` below
/// the upper limit, without leaving the interval. `rest` is how far the digits lie below the upper limit,
/// `unit` the last digit's weight.
fn approach(digits: &mut Digits, width: u64, mut rest: u64, unit: u64, distance: u64) {
    while rest < distance
        && width - rest >= unit
        && (rest + unit < distance || distance - rest > rest + unit - distance)
    {
        digits.bytes[digits.count - 1] -= 1;
        rest += unit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::long_double::LongDouble;

    #[test]
    fn every_power_is_the_nearest() {
        for (index, power) in POWERS.iter().enumerate() {
            let text = format!("1e{}", POWER_FIRST + index as i32 * POWER_STEP);
            let nearest = LongDouble::parse(text.as_bytes()).and_then(LongDouble::parts);
            assert_eq!(nearest, Some((power.mantissa, power.exponent)), "{text}");
        }
    }

    #[test]
    fn scaled_numbers_lie_in_the_window() {
        for exponent in -1137..=960 {
            let scaled = exponent + scaling_power(exponent).0.exponent + 64;
            assert!((SCALED_EXPONENT_MIN..=-32).contains(&scaled), "{exponent} -> {scaled}");
        }
    }
}

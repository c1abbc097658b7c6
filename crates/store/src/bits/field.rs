//! Integer fields of any width at any bit offset (`BITFIELD`).

use crate::number::parse_i64;

/// Width and sign of a field: `u1` to `u63`, `i1` to `i64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldType {
    is_signed: bool,
    bits: u32,
}

impl FieldType {
    /// Parses `i<bits>` or `u<bits>`.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (is_signed, width) = match text {
            [b'i', width @ ..] => (true, width),
            [b'u', width @ ..] => (false, width),
            _ => return None,
        };
        let bits = u32::try_from(parse_i64(width)?).ok()?;
        let bits_max = if is_signed { 64 } else { 63 };
        (1..=bits_max).contains(&bits).then_some(Self { is_signed, bits })
    }

    /// The width in bits, 1 to 64.
    #[must_use]
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// The smallest and the largest value.
    fn limits(self) -> (i128, i128) {
        if self.is_signed {
            (-(1_i128 << (self.bits - 1)), (1_i128 << (self.bits - 1)) - 1)
        } else {
            (0, (1_i128 << self.bits) - 1)
        }
    }

    /// Fits `value` into the field by the rule; `None` when the rule refuses it.
    fn fit(self, value: i128, overflow: Overflow) -> Option<i64> {
        let (min, max) = self.limits();
        let fitted = if (min..=max).contains(&value) {
            value
        } else {
            match overflow {
                Overflow::Wrap => {
                    let unused = 128 - self.bits;
                    if self.is_signed {
                        value << unused >> unused
                    } else {
                        (value.cast_unsigned() << unused >> unused).cast_signed()
                    }
                }
                Overflow::Saturate => value.clamp(min, max),
                Overflow::Fail => return None,
            }
        };
        i64::try_from(fitted).ok()
    }
}

/// What happens to a value that its field cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overflow {
    /// Keep the low bits.
    #[default]
    Wrap,
    /// Store the nearest value that fits.
    Saturate,
    /// Store nothing.
    Fail,
}

impl Overflow {
    /// Parses `WRAP`, `SAT` or `FAIL`, in any case.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        const NAMES: [(&[u8], Overflow); 3] =
            [(b"wrap", Overflow::Wrap), (b"sat", Overflow::Saturate), (b"fail", Overflow::Fail)];
        NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(text)).map(|(_, overflow)| *overflow)
    }
}

/// Parses the offset argument of a field or bit: bits, or with a leading `#` a multiple of the width of `field`.
///
/// `None` for anything but a non-negative integer whose first bit lies within `bytes_max` bytes. `SETBIT` and `GETBIT`
/// pass no field and so accept no `#`.
#[must_use]
pub fn parse_field_offset(text: &[u8], field: Option<FieldType>, bytes_max: u64) -> Option<u64> {
    let (factor, number) = match (text, field) {
        ([b'#', number @ ..], Some(field)) => (u64::from(field.bits), number),
        (number, _) => (1, number),
    };
    let offset = u64::try_from(parse_i64(number)?).ok()?.checked_mul(factor)?;
    (offset / 8 < bytes_max).then_some(offset)
}

/// The field's value; bits behind the end are zero.
#[must_use]
pub fn field(bytes: &[u8], offset: u64, field: FieldType) -> i64 {
    let raw = read(bytes, offset, field.bits);
    let unused = 64 - field.bits;
    if field.is_signed { (raw << unused).cast_signed() >> unused } else { raw.cast_signed() }
}

/// Stores `value`, fitted by `overflow`, and returns the old value; `None` when the rule refuses it and nothing changed.
/// An unsigned field takes `value` as unsigned, as Redis does, so a negative one lies above the field's maximum.
/// Bits behind the end are not written.
pub fn set_field(
    bytes: &mut [u8],
    offset: u64,
    kind: FieldType,
    value: i64,
    overflow: Overflow,
) -> Option<i64> {
    let wide = if kind.is_signed { i128::from(value) } else { i128::from(value.cast_unsigned()) };
    let fitted = kind.fit(wide, overflow)?;
    let old = field(bytes, offset, kind);
    write(bytes, offset, kind.bits, fitted.cast_unsigned());
    Some(old)
}

/// Adds `increment` and returns the new value; `None` when the rule refuses it and nothing changed. Bits behind the end
/// are not written.
pub fn add_to_field(
    bytes: &mut [u8],
    offset: u64,
    kind: FieldType,
    increment: i64,
    overflow: Overflow,
) -> Option<i64> {
    let sum = i128::from(field(bytes, offset, kind)) + i128::from(increment);
    let fitted = kind.fit(sum, overflow)?;
    write(bytes, offset, kind.bits, fitted.cast_unsigned());
    Some(fitted)
}

/// Bytes that a field of 64 bits can touch: eight, and one more when it does not start on a byte.
const WINDOW_BYTES: usize = 9;

/// The index of the field's first byte and how many bits of a 72 bit window lie behind the field.
fn window(offset: u64, bits: u32) -> Option<(usize, u32)> {
    let index = usize::try_from(offset / 8).ok()?;
    let head = u32::from((offset % 8) as u8);
    Some((index, WINDOW_BYTES as u32 * 8 - head - bits))
}

fn load(bytes: &[u8], index: usize) -> u128 {
    (0..WINDOW_BYTES).fold(0, |window, behind| {
        let byte = index.checked_add(behind).and_then(|at| bytes.get(at)).copied().unwrap_or(0);
        window << 8 | u128::from(byte)
    })
}

fn read(bytes: &[u8], offset: u64, bits: u32) -> u64 {
    let Some((index, behind)) = window(offset, bits) else {
        return 0;
    };
    let value = load(bytes, index) >> behind & ((1_u128 << bits) - 1);
    u64::try_from(value).expect("invariant: masked to at most 64 bits")
}

fn write(bytes: &mut [u8], offset: u64, bits: u32, value: u64) {
    let Some((index, behind)) = window(offset, bits) else {
        return;
    };
    let mask = ((1_u128 << bits) - 1) << behind;
    let window = load(bytes, index) & !mask | u128::from(value) << behind & mask;
    let image = window.to_be_bytes();
    let image = &image[image.len() - WINDOW_BYTES..];
    for (byte, new) in bytes.iter_mut().skip(index).zip(image) {
        *byte = *new;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::bits::{bit, set_bit};

    fn kind(text: &str) -> FieldType {
        FieldType::parse(text.as_bytes()).expect("a valid type")
    }

    #[test]
    fn types_and_offsets_are_bounded() {
        for refused in ["", "u", "u0", "u64", "i65", "i0", "x8", "u08", "U8", "u-1"] {
            assert_eq!(FieldType::parse(refused.as_bytes()), None, "{refused}");
        }
        assert_eq!(parse_field_offset(b"#3", Some(kind("u8")), 1 << 20), Some(24));
        assert_eq!(parse_field_offset(b"#3", None, 1 << 20), None);
        assert_eq!(parse_field_offset(b"7", None, 1), Some(7));
        assert_eq!(parse_field_offset(b"8", None, 1), None);
        assert_eq!(parse_field_offset(b"-1", None, 1), None);
        assert_eq!(parse_field_offset(b"#9223372036854775807", Some(kind("i64")), u64::MAX), None);
    }

    /// Rows seen on Redis 7.0.15.
    #[test]
    fn overflow_answers_equal_those_seen_on_the_real_server() {
        let mut value = vec![0_u8; 8];
        assert_eq!(set_field(&mut value, 0, kind("u8"), -1, Overflow::Saturate), Some(0));
        assert_eq!(field(&value, 0, kind("u8")), 255);
        assert_eq!(set_field(&mut value, 0, kind("u8"), -1, Overflow::Fail), None);
        assert_eq!(set_field(&mut value, 0, kind("u8"), 257, Overflow::Wrap), Some(255));
        assert_eq!(add_to_field(&mut value, 0, kind("u8"), -2, Overflow::Wrap), Some(255));
        assert_eq!(add_to_field(&mut value, 0, kind("u8"), -300, Overflow::Saturate), Some(0));
        assert_eq!(add_to_field(&mut value, 0, kind("u8"), -1, Overflow::Fail), None);
        assert_eq!(set_field(&mut value, 0, kind("i8"), 127, Overflow::Wrap), Some(0));
        assert_eq!(add_to_field(&mut value, 0, kind("i8"), 1, Overflow::Wrap), Some(-128));
        assert_eq!(set_field(&mut value, 0, kind("i64"), i64::MAX, Overflow::Wrap), Some(i64::MIN));
        assert_eq!(add_to_field(&mut value, 0, kind("i64"), i64::MAX, Overflow::Wrap), Some(-2));
        assert_eq!(add_to_field(&mut value, 0, kind("i64"), i64::MIN, Overflow::Saturate), Some(i64::MIN));
    }

    proptest! {
        #[test]
        fn a_field_equals_its_bits(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..20),
            offset in 0_u64..160,
            bits in 1_u32..=64,
            value: i64,
        ) {
            let kind = FieldType { is_signed: bits == 64, bits };
            let before = bytes.clone();
            let expected = (0..u64::from(bits)).fold(0_u64, |sum, at| sum << 1 | u64::from(bit(&before, offset + at)));
            prop_assert_eq!(field(&bytes, offset, kind), expected.cast_signed());
            set_field(&mut bytes, offset, kind, value, Overflow::Wrap);
            let mut by_bits = before;
            for at in 0..u64::from(bits) {
                let is_set = value >> (u64::from(bits) - 1 - at) & 1 == 1;
                set_bit(&mut by_bits, offset + at, is_set);
            }
            prop_assert_eq!(bytes, by_bits);
        }

        #[test]
        fn sums_fit_their_field(start: i64, increment: i64, bits in 1_u32..=64, is_signed: bool) {
            let kind = FieldType { is_signed, bits: if is_signed { bits } else { bits.min(63) } };
            let mut bytes = vec![0_u8; 8];
            set_field(&mut bytes, 0, kind, start, Overflow::Wrap);
            let old = i128::from(field(&bytes, 0, kind));
            let (min, max) = kind.limits();
            prop_assert!((min..=max).contains(&old));
            let sum = old + i128::from(increment);
            let mut copy = bytes.clone();
            prop_assert_eq!(
                add_to_field(&mut copy, 0, kind, increment, Overflow::Saturate).map(i128::from),
                Some(sum.clamp(min, max))
            );
            let mut copy = bytes.clone();
            let failed = add_to_field(&mut copy, 0, kind, increment, Overflow::Fail).map(i128::from);
            prop_assert_eq!(failed, (min..=max).contains(&sum).then_some(sum));
            let wrapped = add_to_field(&mut bytes, 0, kind, increment, Overflow::Wrap).map(i128::from);
            prop_assert_eq!(wrapped.map(|value| (value - sum).rem_euclid(1_i128 << kind.bits)), Some(0));
        }
    }
}

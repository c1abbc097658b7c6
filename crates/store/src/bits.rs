//! Bit operations over string values: the bit, range and field primitives of `SETBIT`, `BITCOUNT`, `BITPOS`, `BITOP` and
//! `BITFIELD`.
//!
//! Owns arithmetic over byte slices. Does not own the value's storage: the caller grows the value to
//! [`bytes_needed`] first and enforces the size limit of strings. Bit 0 is the most significant bit of byte 0.

mod field;
mod op;
mod range;

pub use field::{FieldType, Overflow, add_to_field, field, parse_field_offset, set_field};
pub use op::{BitOp, combine};
pub use range::{BitRange, Unit, count, position};

/// Size in bytes that a value must have for `width` bits at `offset` to lie within it.
#[must_use]
pub fn bytes_needed(offset: u64, width: u32) -> u64 {
    offset.saturating_add(u64::from(width)).div_ceil(8)
}

/// The bit at `offset`; bits behind the end are zero.
#[must_use]
pub fn bit(bytes: &[u8], offset: u64) -> bool {
    usize::try_from(offset / 8)
        .ok()
        .and_then(|index| bytes.get(index))
        .is_some_and(|byte| byte & mask(offset) != 0)
}

/// Writes the bit at `offset` and returns the old one. A bit behind the end is not written.
pub fn set_bit(bytes: &mut [u8], offset: u64, value: bool) -> bool {
    let Some(byte) = usize::try_from(offset / 8).ok().and_then(|index| bytes.get_mut(index)) else {
        return false;
    };
    let old = *byte & mask(offset) != 0;
    if value {
        *byte |= mask(offset);
    } else {
        *byte &= !mask(offset);
    }
    old
}

/// The bit of a byte that `offset` names.
fn mask(offset: u64) -> u8 {
    0x80 >> (offset % 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_count_from_the_most_significant() {
        let mut value = vec![0_u8; 2];
        assert!(!set_bit(&mut value, 7, true));
        assert!(!set_bit(&mut value, 8, true));
        assert_eq!(value, [0x01, 0x80]);
        assert!(set_bit(&mut value, 7, false));
        assert!(!bit(&value, 7) && bit(&value, 8) && !bit(&value, 16) && !bit(&value, u64::MAX));
        assert!(!set_bit(&mut value, u64::MAX, true));
        assert_eq!((bytes_needed(7, 1), bytes_needed(8, 1), bytes_needed(5, 4)), (1, 2, 2));
    }
}

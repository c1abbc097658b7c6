//! RDB lengths and strings.
//!
//! Owns the variable-length integers (6, 14, 32 and 64 bits, big endian) and the string forms built on
//! them: verbatim, integers of 8, 16 and 32 bits (little endian), LZF. Does not own what the strings
//! hold. Format: <https://rdb.fnordig.de/file_format.html#length-encoding>.

use std::borrow::Cow;

use crate::error::ObjectError;
use crate::item::{IntText, canonical_i32};
use crate::lzf;
use crate::reader::Reader;

const TAG_MASK: u8 = 0xc0;
const TAG_6_BIT: u8 = 0x00;
const TAG_14_BIT: u8 = 0x40;
const TAG_SPECIAL: u8 = 0xc0;
const LENGTH_32_BIT: u8 = 0x80;
const LENGTH_64_BIT: u8 = 0x81;

const INT_8: u8 = 0xc0;
const INT_16: u8 = 0xc1;
const INT_32: u8 = 0xc2;
const LZF: u8 = 0xc3;

/// Strings up to this length are not worth compressing; Redis's own threshold.
const VERBATIM_BYTES_MAX: usize = 20;
/// What compression must save to pay for its two lengths; Redis's own threshold.
const SAVING_BYTES_MIN: usize = 4;

/// Reads a length.
///
/// # Errors
/// [`ObjectError::Truncated`], or [`ObjectError::Malformed`] for a string form where a length must stand.
pub fn read_length(reader: &mut Reader<'_>) -> Result<u64, ObjectError> {
    let first = reader.byte()?;
    read_length_after(first, reader)
}

fn read_length_after(first: u8, reader: &mut Reader<'_>) -> Result<u64, ObjectError> {
    match (first & TAG_MASK, first) {
        (TAG_6_BIT, _) => Ok(u64::from(first)),
        (TAG_14_BIT, _) => Ok(u64::from(first & !TAG_MASK) << 8 | u64::from(reader.byte()?)),
        (_, LENGTH_32_BIT) => Ok(u32::from_be_bytes(reader.array()?).into()),
        (_, LENGTH_64_BIT) => Ok(u64::from_be_bytes(reader.array()?)),
        _ => Err(ObjectError::malformed("length", "unknown form")),
    }
}

/// Reads a string in any of its forms; borrowed where the input holds it verbatim.
///
/// # Errors
/// [`ObjectError::Truncated`], [`ObjectError::Malformed`] for an unknown form or a broken LZF block,
/// [`ObjectError::TooLarge`] against the reader's limits.
pub fn read_string<'a>(reader: &mut Reader<'a>) -> Result<Cow<'a, [u8]>, ObjectError> {
    let first = reader.byte()?;
    if first & TAG_MASK != TAG_SPECIAL {
        let length = read_length_after(first, reader)?;
        reader.admit_string(length)?;
        return reader.take(length).map(Cow::Borrowed);
    }
    let value = match first {
        INT_8 => i8::from_le_bytes(reader.array()?).into(),
        INT_16 => i16::from_le_bytes(reader.array()?).into(),
        INT_32 => i32::from_le_bytes(reader.array()?).into(),
        LZF => return read_compressed(reader).map(Cow::Owned),
        _ => return Err(ObjectError::malformed("string", "unknown form")),
    };
    Ok(Cow::Owned(IntText::default().write(value).to_vec()))
}

fn read_compressed(reader: &mut Reader<'_>) -> Result<Vec<u8>, ObjectError> {
    let block_bytes = read_length(reader)?;
    let length = read_length(reader)?;
    let block = reader.take(block_bytes)?;
    reader.admit_inflated(length)?;
    let too_long = ObjectError::malformed("LZF string", "the length is wrong");
    let length = usize::try_from(length).map_err(|_| too_long)?;
    lzf::decompress(block, length).map_err(|error| {
        ObjectError::malformed(
            "LZF string",
            match error {
                lzf::LzfError::Truncated => "the block is truncated",
                lzf::LzfError::Distance => "a copy reaches before the start",
                lzf::LzfError::Length => "the length is wrong",
            },
        )
    })
}

/// Appends a length in its shortest form.
pub fn write_length(out: &mut Vec<u8>, length: u64) {
    if length < 1 << 6 {
        out.push(length as u8);
    } else if length < 1 << 14 {
        out.extend([TAG_14_BIT | (length >> 8) as u8, length as u8]);
    } else if let Ok(length) = u32::try_from(length) {
        out.push(LENGTH_32_BIT);
        out.extend(length.to_be_bytes());
    } else {
        out.push(LENGTH_64_BIT);
        out.extend(length.to_be_bytes());
    }
}

/// Appends a string: as an integer when it is the text of an `i32`, verbatim otherwise.
pub fn write_string(out: &mut Vec<u8>, string: &[u8]) {
    if let Some(value) = canonical_i32(string) {
        write_int(out, value);
    } else {
        write_length(out, string.len() as u64);
        out.extend_from_slice(string);
    }
}

/// Like [`write_string`], and long strings are compressed when that makes them shorter.
pub fn write_string_compressed(out: &mut Vec<u8>, string: &[u8]) {
    if string.len() > VERBATIM_BYTES_MAX
        && let Some(block) = lzf::compress(string, SAVING_BYTES_MIN)
    {
        out.push(LZF);
        write_length(out, block.len() as u64);
        write_length(out, string.len() as u64);
        out.extend_from_slice(&block);
    } else {
        write_string(out, string);
    }
}

fn write_int(out: &mut Vec<u8>, value: i32) {
    if let Ok(value) = i8::try_from(value) {
        out.push(INT_8);
        out.extend(value.to_le_bytes());
    } else if let Ok(value) = i16::try_from(value) {
        out.push(INT_16);
        out.extend(value.to_le_bytes());
    } else {
        out.push(INT_32);
        out.extend(value.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::Limits;

    fn reader(bytes: &[u8]) -> Reader<'_> {
        Reader::new(bytes, Limits::default())
    }

    #[test]
    fn lengths_round_trip_at_every_boundary() {
        for length in [0, 1, 63, 64, 16_383, 16_384, u64::from(u32::MAX), 1 << 32, u64::MAX] {
            let mut out = Vec::new();
            write_length(&mut out, length);
            let mut reader = reader(&out);
            assert_eq!(read_length(&mut reader), Ok(length));
            assert!(reader.rest().is_empty());
        }
    }

    #[test]
    fn strings_round_trip_in_every_form() {
        let long = b"towline ".repeat(500);
        let strings: [&[u8]; 13] = [
            b"",
            b"a",
            b"0",
            b"-1",
            b"127",
            b"128",
            b"-32768",
            b"32768",
            b"-2147483648",
            b"2147483648",
            b"007",
            b"\xff\x00",
            &long,
        ];
        for string in strings {
            for write in [write_string, write_string_compressed] {
                let mut out = Vec::new();
                write(&mut out, string);
                assert_eq!(read_string(&mut reader(&out)).unwrap(), string);
                for cut in 0..out.len() {
                    assert_eq!(read_string(&mut reader(&out[..cut])), Err(ObjectError::Truncated));
                }
            }
        }
    }

    #[test]
    fn unknown_forms_are_refused() {
        for first in 0x82..=0xbf_u8 {
            assert!(matches!(read_length(&mut reader(&[first; 12])), Err(ObjectError::Malformed { .. })));
        }
        for first in 0xc4..=0xff_u8 {
            assert!(matches!(read_string(&mut reader(&[first; 12])), Err(ObjectError::Malformed { .. })));
        }
        assert!(matches!(read_length(&mut reader(&[0xc0, 1])), Err(ObjectError::Malformed { .. })));
    }

    #[test]
    fn claimed_sizes_meet_the_limits_before_memory_does() {
        let limits = Limits { string_bytes_max: 10, inflated_bytes_max: 15 };
        let mut verbatim = Reader::new(&[11, 0, 0], limits);
        assert_eq!(read_string(&mut verbatim), Err(ObjectError::TooLarge { bytes: 11, bytes_max: 10 }));
        let block = [0xc3, 4, 9, 0, b'a', 6 << 5, 0];
        let two = [block, block].concat();
        let mut reader = Reader::new(&two, limits);
        assert_eq!(read_string(&mut reader).unwrap().len(), 9);
        assert_eq!(read_string(&mut reader), Err(ObjectError::TooLarge { bytes: 18, bytes_max: 15 }));
    }
}

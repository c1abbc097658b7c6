//! LZF, the compression of long strings in RDB.
//!
//! Owns the block format: a control byte below 32 starts a run of `control + 1` literal bytes; otherwise
//! its upper three bits are a length (7 means that one more byte is added to it) and the lower five bits
//! with the next byte a distance, and `length + 2` bytes are copied from `distance + 1` bytes back. Does
//! not own the two lengths in front of a block (`length` does).

/// The most bytes one byte of a block can produce: 3 bytes encode a copy of up to 264.
pub const EXPANSION_MAX: usize = COPY_BYTES_MAX / 3;

const LITERAL_BYTES_MAX: usize = 32;
const COPY_BYTES_MIN: usize = 3;
const COPY_BYTES_MAX: usize = 7 + 255 + 2;
const DISTANCE_MAX: usize = 1 << 13;

/// Why a block could not be decompressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LzfError {
    /// The block ends within an instruction.
    #[error("the block is truncated")]
    Truncated,
    /// A copy reaches back before the first byte.
    #[error("a copy reaches before the start")]
    Distance,
    /// The block produces another number of bytes than was claimed, or cannot produce that many.
    #[error("the length is wrong")]
    Length,
}

/// Decompresses `block`, which must produce exactly `length` bytes.
///
/// # Errors
/// See [`LzfError`]. A `length` above [`EXPANSION_MAX`] times the block is refused before any
/// allocation, so memory is bounded by the input.
pub fn decompress(block: &[u8], length: usize) -> Result<Vec<u8>, LzfError> {
    if length > block.len().saturating_mul(EXPANSION_MAX) {
        return Err(LzfError::Length);
    }
    let mut out = Vec::with_capacity(length);
    let mut rest = block;
    while let Some((&control, tail)) = rest.split_first() {
        let control = usize::from(control);
        rest = if control < LITERAL_BYTES_MAX {
            let (literal, tail) = tail.split_at_checked(control + 1).ok_or(LzfError::Truncated)?;
            if literal.len() > length - out.len() {
                return Err(LzfError::Length);
            }
            out.extend_from_slice(literal);
            tail
        } else {
            let (copy, distance, tail) = copy_instruction(control, tail).ok_or(LzfError::Truncated)?;
            if copy > length - out.len() {
                return Err(LzfError::Length);
            }
            append_copy(&mut out, distance, copy)?;
            tail
        };
    }
    if out.len() == length { Ok(out) } else { Err(LzfError::Length) }
}

/// Length, distance and the bytes after a copy instruction; `None` when it is cut off.
fn copy_instruction(control: usize, tail: &[u8]) -> Option<(usize, usize, &[u8])> {
    let (mut length, mut tail) = (control >> 5, tail);
    if length == 7 {
        let (&more, after) = tail.split_first()?;
        length += usize::from(more);
        tail = after;
    }
    let (&low, tail) = tail.split_first()?;
    Some((length + 2, ((control & 0x1f) << 8 | usize::from(low)) + 1, tail))
}

/// Appends `length` bytes from `distance` back; source and destination may overlap, which repeats.
fn append_copy(out: &mut Vec<u8>, distance: usize, length: usize) -> Result<(), LzfError> {
    let start = out.len().checked_sub(distance).ok_or(LzfError::Distance)?;
    let mut left = length;
    while left > 0 {
        // The region from `start` to the end is periodic, so each round may copy all of it.
        let round = left.min(out.len() - start);
        out.extend_from_within(start..start + round);
        left -= round;
    }
    Ok(())
}

/// Compresses `input` when that saves at least `saving_min` bytes.
///
/// Greedy, with one remembered position per hash of three bytes: fast rather than tight. Time is linear;
/// memory is one fixed table besides the output.
#[must_use]
pub fn compress(input: &[u8], saving_min: usize) -> Option<Vec<u8>> {
    const HASH_BITS: u32 = 13;
    let out_max = input.len().checked_sub(saving_min)?;
    // Positions are stored plus one: zero means that the hash was not seen.
    let mut seen = vec![0_u32; 1 << HASH_BITS];
    u32::try_from(input.len()).ok()?;
    let mut out = Vec::with_capacity(out_max.min(input.len() / 2));
    let (mut at, mut literal_start) = (0, 0);
    while at + COPY_BYTES_MIN <= input.len() {
        let three = u32::from_be_bytes([0, input[at], input[at + 1], input[at + 2]]);
        let hash = (three.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize;
        let earlier = std::mem::replace(&mut seen[hash], at as u32 + 1) as usize;
        let copy = if earlier > 0 && at - (earlier - 1) <= DISTANCE_MAX {
            common_prefix(&input[earlier - 1..], &input[at..])
        } else {
            0
        };
        if copy < COPY_BYTES_MIN {
            at += 1;
            continue;
        }
        push_literals(&mut out, &input[literal_start..at]);
        push_copy(&mut out, copy, at - (earlier - 1));
        if out.len() > out_max {
            return None;
        }
        at += copy;
        literal_start = at;
    }
    push_literals(&mut out, &input[literal_start..]);
    (out.len() <= out_max).then_some(out)
}

/// How many leading bytes agree, up to the longest copy.
fn common_prefix(earlier: &[u8], here: &[u8]) -> usize {
    earlier.iter().zip(here).take(COPY_BYTES_MAX).take_while(|(a, b)| a == b).count()
}

fn push_literals(out: &mut Vec<u8>, literals: &[u8]) {
    for run in literals.chunks(LITERAL_BYTES_MAX) {
        out.push((run.len() - 1) as u8);
        out.extend_from_slice(run);
    }
}

fn push_copy(out: &mut Vec<u8>, copy: usize, distance: usize) {
    let (length, distance) = (copy - 2, distance - 1);
    let high = (distance >> 8) as u8;
    if length < 7 {
        out.push((length as u8) << 5 | high);
    } else {
        out.extend([7 << 5 | high, (length - 7) as u8]);
    }
    out.push(distance as u8);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn overlapping_copy_repeats() {
        // One literal 'a', then 100 bytes from distance 1.
        assert_eq!(decompress(&[0, b'a', 7 << 5, 91, 0], 101).unwrap(), vec![b'a'; 101]);
    }

    #[test]
    fn broken_blocks_are_refused() {
        assert_eq!(decompress(&[0], 1), Err(LzfError::Truncated));
        assert_eq!(decompress(&[5, b'a'], 6), Err(LzfError::Truncated));
        assert_eq!(decompress(&[7 << 5, 0], 9), Err(LzfError::Truncated));
        assert_eq!(decompress(&[0, b'a', 1 << 5, 1], 4), Err(LzfError::Distance));
        assert_eq!(decompress(&[0, b'a'], 2), Err(LzfError::Length));
        assert_eq!(decompress(&[1, b'a', b'b'], 1), Err(LzfError::Length));
        assert_eq!(decompress(&[0, b'a'], usize::MAX), Err(LzfError::Length));
        assert_eq!(decompress(&[], 0), Ok(Vec::new()));
    }

    #[test]
    fn incompressible_input_is_left_alone() {
        assert_eq!(compress(b"", 4), None);
        assert_eq!(compress(b"abcdefghijklmnopqrstuvwxyz", 4), None);
    }

    #[test]
    fn repetition_at_every_distance_survives() {
        for distance in [1, 2, 3, 255, 256, 257, 8_190, 8_191, 8_192, 8_193] {
            let mut input: Vec<u8> = (0..distance).map(|i: u32| ((i * i) >> 3) as u8).collect();
            input.extend_from_within(..);
            input.extend_from_within(..);
            if let Some(block) = compress(&input, 0) {
                assert_eq!(decompress(&block, input.len()).unwrap(), input, "distance {distance}");
            }
        }
    }

    proptest! {
        #[test]
        fn compress_then_decompress_is_identity(
            words in prop::collection::vec(prop::collection::vec(0_u8..4, 1..9), 0..200),
            picks in prop::collection::vec(any::<prop::sample::Index>(), 0..200),
        ) {
            prop_assume!(!words.is_empty());
            let input: Vec<u8> = picks.iter().flat_map(|pick| pick.get(&words).clone()).collect();
            if let Some(block) = compress(&input, 0) {
                prop_assert!(block.len() <= input.len());
                prop_assert_eq!(decompress(&block, input.len()).unwrap(), input);
            }
        }

        #[test]
        fn any_block_is_handled(block in prop::collection::vec(any::<u8>(), 0..200), length in 0_usize..2_000) {
            if let Ok(out) = decompress(&block, length) {
                prop_assert_eq!(out.len(), length);
            }
        }
    }
}

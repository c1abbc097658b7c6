//! MurmurHash64A (Austin Appleby, public domain), the hash whose bits the registers keep: it is part of the data format.

/// Redis's seed.
const SEED: u64 = 0xadc8_3b19;
const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
const SHIFT: u32 = 47;

/// The hash of one element. Words are little endian on every machine.
pub(super) fn hash64(bytes: &[u8]) -> u64 {
    let (words, tail) = bytes.as_chunks::<8>();
    let start = SEED ^ (bytes.len() as u64).wrapping_mul(MULTIPLIER);
    let mut hash = words.iter().fold(start, |hash, word| {
        let mut mixed = u64::from_le_bytes(*word).wrapping_mul(MULTIPLIER);
        mixed ^= mixed >> SHIFT;
        (hash ^ mixed.wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER)
    });
    if !tail.is_empty() {
        hash ^= tail.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        hash = hash.wrapping_mul(MULTIPLIER);
    }
    hash ^= hash >> SHIFT;
    hash = hash.wrapping_mul(MULTIPLIER);
    hash ^ hash >> SHIFT
}

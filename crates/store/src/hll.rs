//! HyperLogLog values: strings in Redis's own layout, so that `GET`, `SET`, `DUMP` and replicas see the same bytes.
//!
//! Owns the layout, the registers and the estimator. Does not own the key: a caller passes the string's bytes and stores
//! them back. Bytes come from `SET` as well as from `PFADD` and are not trusted: any of them gives a typed error or a
//! number, never a panic.
//!
//! ```text
//! "HYLL" | encoding: 0 dense, 1 sparse | 3 unused | cached count, 8 bytes LE, top bit: stale | registers
//! ```
//! 16384 registers of 6 bits. The estimator is the one of Otmar Ertl (arXiv:1702.01284) that Redis uses since 4.0;
//! the rules of the sparse form are described in Redis's `hyperloglog.c`.

mod dense;
mod estimate;
mod inspect;
mod murmur;
mod sparse;

pub use inspect::{encoding_name, registers, runs_text, to_dense};
use sparse::SetOutcome;

/// Bits of a hash that choose the register.
const INDEX_BITS: u32 = 14;
/// Number of registers.
const REGISTER_COUNT: usize = 1 << INDEX_BITS;
/// Bits of a hash that are left for the run of zeros, hence the largest register value is one more.
const RUN_BITS: u32 = 64 - INDEX_BITS;
/// Size in bytes of the header.
const HEADER_BYTES: usize = 16;
/// Size in bytes of a dense value.
pub const DENSE_BYTES: usize = HEADER_BYTES + dense::REGISTER_BYTES;
/// Default of `hll-sparse-max-bytes`: Redis's, where a sparse value still saves three quarters of a dense one.
pub const SPARSE_BYTES_MAX_DEFAULT: usize = 3000;

const MAGIC: &[u8; 4] = b"HYLL";
const ENCODING_AT: usize = 4;
const CACHE_AT: usize = 8;
/// The bytes that [`cache_count`] changes.
pub const CACHE_BYTES: std::ops::Range<usize> = CACHE_AT..HEADER_BYTES;
/// The byte of the header that holds the stale flag, and the flag.
const STALE_AT: usize = 15;
const STALE: u8 = 0x80;

/// One byte per register: the working form of a merge.
type Registers = [u8; REGISTER_COUNT];

/// Why bytes are not a HyperLogLog. The texts are Redis's, error code included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HllError {
    /// The string's header is not that of a HyperLogLog. The caller's mistake.
    #[error("WRONGTYPE Key is not a valid HyperLogLog string value.")]
    NotHll,
    /// The header is right but the registers are damaged. The mistake of whoever wrote the bytes.
    #[error("INVALIDOBJ Corrupted HLL object detected")]
    Corrupted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Dense,
    Sparse,
}

/// A new value with all registers zero.
#[must_use]
pub fn empty() -> Vec<u8> {
    let mut value = vec![0; HEADER_BYTES];
    value[..MAGIC.len()].copy_from_slice(MAGIC);
    value[ENCODING_AT] = 1;
    value[STALE_AT] = STALE;
    sparse::push_zeros(&mut value, REGISTER_COUNT);
    value
}

/// Checks the header, as each `PF*` command does before anything else.
///
/// # Errors
/// [`HllError::NotHll`].
pub fn check(value: &[u8]) -> Result<(), HllError> {
    encoding(value).map(drop)
}

fn encoding(value: &[u8]) -> Result<Encoding, HllError> {
    if value.len() < HEADER_BYTES || !value.starts_with(MAGIC) {
        return Err(HllError::NotHll);
    }
    match value[ENCODING_AT] {
        0 if value.len() == DENSE_BYTES => Ok(Encoding::Dense),
        1 => Ok(Encoding::Sparse),
        _ => Err(HllError::NotHll),
    }
}

/// Adds elements; `true` when a register changed. A sparse value becomes dense when it would exceed `sparse_bytes_max`
/// bytes.
///
/// # Errors
/// [`HllError`]; when the registers turn out to be damaged, elements before that point have been added.
pub fn add<'a>(
    value: &mut Vec<u8>,
    elements: impl IntoIterator<Item = &'a [u8]>,
    sparse_bytes_max: usize,
) -> Result<bool, HllError> {
    check(value)?;
    let mut is_changed = false;
    for element in elements {
        let (index, run) = register_of(element);
        is_changed |= raise(value, index, run, sparse_bytes_max)?;
    }
    if is_changed {
        value[STALE_AT] |= STALE;
    }
    Ok(is_changed)
}

/// The register that an element belongs to, and its candidate value (1 to 51).
fn register_of(element: &[u8]) -> (usize, u8) {
    let hash = murmur::hash64(element);
    let index = hash as usize & (REGISTER_COUNT - 1);
    let run = (hash >> INDEX_BITS | 1 << RUN_BITS).trailing_zeros() + 1;
    (index, run as u8)
}

/// Raises one register to at least `run`; `true` when it was lower.
fn raise(value: &mut Vec<u8>, index: usize, run: u8, sparse_bytes_max: usize) -> Result<bool, HllError> {
    if encoding(value)? == Encoding::Sparse {
        match sparse::raise(value, index, run, sparse_bytes_max)? {
            SetOutcome::Unchanged => return Ok(false),
            SetOutcome::Raised => return Ok(true),
            SetOutcome::NeedsDense => make_dense(value)?,
        }
    }
    Ok(dense::raise(&mut value[HEADER_BYTES..], index, run))
}

fn make_dense(value: &mut Vec<u8>) -> Result<(), HllError> {
    let mut registers = Box::new([0; REGISTER_COUNT]);
    sparse::merge_into(&value[HEADER_BYTES..], &mut registers)?;
    value[ENCODING_AT] = 0;
    value.truncate(HEADER_BYTES);
    value.reserve_exact(dense::REGISTER_BYTES);
    value.resize(DENSE_BYTES, 0);
    dense::pack(&registers, &mut value[HEADER_BYTES..]);
    Ok(())
}

/// The cached estimate, unless a change made it stale.
///
/// # Errors
/// [`HllError::NotHll`].
pub fn cached_count(value: &[u8]) -> Result<Option<u64>, HllError> {
    check(value)?;
    let mut cache = [0; 8];
    cache.copy_from_slice(&value[CACHE_AT..HEADER_BYTES]);
    Ok((value[STALE_AT] & STALE == 0).then(|| u64::from_le_bytes(cache)))
}

/// Writes the estimate that [`count`] gave into the header, as `PFCOUNT` of one key does.
///
/// # Errors
/// [`HllError::NotHll`].
pub fn cache_count(value: &mut [u8], count: u64) -> Result<(), HllError> {
    check(value)?;
    value[CACHE_AT..HEADER_BYTES].copy_from_slice(&count.to_le_bytes());
    Ok(())
}

/// The estimated number of distinct elements, from the registers (the cache is ignored).
///
/// # Errors
/// [`HllError`].
pub fn count(value: &[u8]) -> Result<u64, HllError> {
    let registers = &value[HEADER_BYTES.min(value.len())..];
    let histogram = match encoding(value)? {
        Encoding::Dense => dense::histogram(registers),
        Encoding::Sparse => sparse::histogram(registers)?,
    };
    Ok(estimate::estimate(&histogram))
}

/// The estimated number of distinct elements of the union of `values`.
///
/// # Errors
/// [`HllError`] of the first bad value.
pub fn count_union<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Result<u64, HllError> {
    let mut registers = Box::new([0; REGISTER_COUNT]);
    for value in values {
        merge_registers(value, &mut registers)?;
    }
    let mut histogram = estimate::Histogram::default();
    registers.iter().for_each(|register| histogram.add(*register, 1));
    Ok(estimate::estimate(&histogram))
}

/// Merges `sources` into `target`, which stays sparse only when all of them are and `sparse_bytes_max` allows it.
///
/// # Errors
/// [`HllError`] of the first bad value; the target is then unchanged.
pub fn merge<'a>(
    target: &mut Vec<u8>,
    sources: impl IntoIterator<Item = &'a [u8]>,
    sparse_bytes_max: usize,
) -> Result<(), HllError> {
    let mut registers = Box::new([0; REGISTER_COUNT]);
    let mut is_dense = merge_registers(target, &mut registers)? == Encoding::Dense;
    for source in sources {
        is_dense |= merge_registers(source, &mut registers)? == Encoding::Dense;
    }
    if is_dense && encoding(target)? == Encoding::Sparse {
        make_dense(target)?;
    }
    for (index, run) in registers.iter().enumerate().filter(|(_, run)| **run != 0) {
        raise(target, index, *run, sparse_bytes_max)?;
    }
    target[STALE_AT] |= STALE;
    Ok(())
}

/// Raises each register to at least the value's.
fn merge_registers(value: &[u8], registers: &mut Registers) -> Result<Encoding, HllError> {
    let encoding = encoding(value)?;
    let packed = &value[HEADER_BYTES..];
    match encoding {
        Encoding::Dense => dense::merge_into(packed, registers),
        Encoding::Sparse => sparse::merge_into(packed, registers)?,
    }
    Ok(encoding)
}

#[cfg(test)]
mod tests;

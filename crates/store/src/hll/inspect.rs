//! What `PFDEBUG` shows of a value.

use super::{
    Encoding, HEADER_BYTES, HllError, REGISTER_COUNT, encoding, make_dense, merge_registers, sparse,
};

/// The names that `PFDEBUG ENCODING` answers.
///
/// # Errors
/// [`HllError::NotHll`].
pub fn encoding_name(value: &[u8]) -> Result<&'static str, HllError> {
    Ok(match encoding(value)? {
        Encoding::Dense => "dense",
        Encoding::Sparse => "sparse",
    })
}

/// All 16384 registers.
///
/// # Errors
/// [`HllError`].
pub fn registers(value: &[u8]) -> Result<Vec<u8>, HllError> {
    let mut registers = Box::new([0; REGISTER_COUNT]);
    merge_registers(value, &mut registers)?;
    Ok(registers.to_vec())
}

/// Turns a sparse value into a dense one; `false` when it was dense.
///
/// # Errors
/// [`HllError`]; the value is then unchanged.
pub fn to_dense(value: &mut Vec<u8>) -> Result<bool, HllError> {
    let is_sparse = encoding(value)? == Encoding::Sparse;
    if is_sparse {
        make_dense(value)?;
    }
    Ok(is_sparse)
}

/// The runs of a sparse value as `PFDEBUG DECODE` writes them; `None` for a dense one.
///
/// # Errors
/// [`HllError`].
pub fn runs_text(value: &[u8]) -> Result<Option<String>, HllError> {
    match encoding(value)? {
        Encoding::Dense => Ok(None),
        Encoding::Sparse => sparse::text(&value[HEADER_BYTES..]).map(Some),
    }
}

//! The sparse form: runs of equal registers.
//!
//! ```text
//! 00llllll            l + 1 registers are zero            (1 to 64)
//! 01llllll llllllll   l + 1 registers are zero            (1 to 16384)
//! 1vvvvvll            l + 1 registers are v + 1           (1 to 4 of 1 to 32)
//! ```
//! Which runs are merged after a change is visible through `GET`, so [`raise`] follows Redis's rule exactly.

use super::estimate::Histogram;
use super::{HEADER_BYTES, HllError, REGISTER_COUNT, Registers};

const SHORT_ZEROS_MAX: usize = 64;
const VALUE_MAX: u8 = 32;
const VALUE_RUN_MAX: usize = 4;
/// Runs looked at for merging after a change: the one before, up to three that the change made, and the next.
const MERGE_RUNS: usize = 5;
/// Most bytes that replace one run: long zeros, a value, long zeros.
const SPLIT_BYTES_MAX: usize = 5;

/// A run of equal registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    /// Value of the registers; 0 for both kinds of zeros.
    value: u8,
    /// Number of registers, at least 1.
    len: usize,
    /// Size in bytes of the encoded run.
    bytes: usize,
}

/// What [`raise`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SetOutcome {
    /// The register was high enough.
    Unchanged,
    /// The register was raised.
    Raised,
    /// The sparse form cannot hold the change; nothing was changed.
    NeedsDense,
}

/// Decodes the run at `at`; `None` at the end or when the run is cut off.
fn run_at(bytes: &[u8], at: usize) -> Option<Run> {
    let first = *bytes.get(at)?;
    Some(match first >> 6 {
        0 => Run { value: 0, len: usize::from(first) + 1, bytes: 1 },
        1 => {
            let second = *bytes.get(at + 1)?;
            Run { value: 0, len: (usize::from(first & 0x3f) << 8 | usize::from(second)) + 1, bytes: 2 }
        }
        _ => Run { value: (first >> 2 & 0x1f) + 1, len: usize::from(first & 3) + 1, bytes: 1 },
    })
}

/// Appends a run of zero registers, 0 to 16384; none appends nothing.
pub(super) fn push_zeros(out: &mut impl Extend<u8>, len: usize) {
    match len {
        0 => {}
        1..=SHORT_ZEROS_MAX => out.extend([(len - 1) as u8]),
        _ => out.extend([0x40 | ((len - 1) >> 8) as u8, (len - 1) as u8]),
    }
}

/// A run of equal non-zero registers; `value` is 1 to 32 and `len` 1 to 4.
fn value_byte(value: u8, len: usize) -> u8 {
    0x80 | (value - 1) << 2 | (len - 1) as u8
}

fn push_run(out: &mut impl Extend<u8>, value: u8, len: usize) {
    match (value, len) {
        (0, len) => push_zeros(out, len),
        (_, 0) => {}
        (value, len) => out.extend([value_byte(value, len)]),
    }
}

/// Raises one register of the whole value `value` (header included) to at least `run`.
///
/// # Errors
/// [`HllError::Corrupted`] when the runs end before the register.
pub(super) fn raise(
    value: &mut Vec<u8>,
    index: usize,
    run: u8,
    bytes_max: usize,
) -> Result<SetOutcome, HllError> {
    if run > VALUE_MAX {
        return Ok(SetOutcome::NeedsDense);
    }
    let (mut at, mut before, mut first) = (HEADER_BYTES, HEADER_BYTES, 0);
    let hit = loop {
        let candidate = run_at(value, at).ok_or(HllError::Corrupted)?;
        if index < first + candidate.len {
            break candidate;
        }
        before = at;
        at += candidate.bytes;
        first += candidate.len;
    };
    if hit.value >= run {
        return Ok(SetOutcome::Unchanged);
    }
    let mut split = smallvec::SmallVec::<[u8; SPLIT_BYTES_MAX]>::new();
    push_run(&mut split, hit.value, index - first);
    push_run(&mut split, run, 1);
    push_run(&mut split, hit.value, first + hit.len - 1 - index);
    if split.len() > hit.bytes && value.len() + split.len() - hit.bytes > bytes_max {
        return Ok(SetOutcome::NeedsDense);
    }
    value.splice(at..at + hit.bytes, split);
    merge_neighbours(value, before);
    Ok(SetOutcome::Raised)
}

/// Joins neighbouring runs of one value where the joined run can be encoded, looking at a few runs from `at` on.
fn merge_neighbours(value: &mut Vec<u8>, mut at: usize) {
    for _ in 0..MERGE_RUNS {
        let Some(run) = run_at(value, at) else {
            return;
        };
        match run_at(value, at + run.bytes) {
            Some(next)
                if run.value != 0 && next.value == run.value && run.len + next.len <= VALUE_RUN_MAX =>
            {
                value[at] = value_byte(run.value, run.len + next.len);
                value.remove(at + 1);
            }
            _ => at += run.bytes,
        }
    }
}

/// Calls `visit` with the first register of each run and the run.
///
/// # Errors
/// [`HllError::Corrupted`] unless the runs are whole and cover exactly all registers.
fn walk(runs: &[u8], mut visit: impl FnMut(usize, Run)) -> Result<(), HllError> {
    let (mut at, mut first) = (0, 0);
    while at < runs.len() {
        let run = run_at(runs, at).ok_or(HllError::Corrupted)?;
        if first + run.len > REGISTER_COUNT {
            return Err(HllError::Corrupted);
        }
        visit(first, run);
        first += run.len;
        at += run.bytes;
    }
    if first == REGISTER_COUNT { Ok(()) } else { Err(HllError::Corrupted) }
}

/// Raises each of `registers` to at least the run's value.
///
/// # Errors
/// [`HllError::Corrupted`]; some registers may have been raised.
pub(super) fn merge_into(runs: &[u8], registers: &mut Registers) -> Result<(), HllError> {
    walk(runs, |first, run| {
        if run.value != 0 {
            let covered = &mut registers[first..first + run.len];
            covered.iter_mut().for_each(|register| *register = run.value.max(*register));
        }
    })
}

/// How many registers have each value.
///
/// # Errors
/// [`HllError::Corrupted`].
pub(super) fn histogram(runs: &[u8]) -> Result<Histogram, HllError> {
    let mut histogram = Histogram::default();
    walk(runs, |_, run| histogram.add(run.value, run.len as u32))?;
    Ok(histogram)
}

/// The runs in words: `z:` and `Z:` for short and long zeros with their length, `v:` for a value and its length.
///
/// # Errors
/// [`HllError::Corrupted`].
pub(super) fn text(runs: &[u8]) -> Result<String, HllError> {
    let mut words = Vec::new();
    walk(runs, |_, run| {
        words.push(match (run.value, run.bytes) {
            (0, 1) => format!("z:{}", run.len),
            (0, _) => format!("Z:{}", run.len),
            (value, _) => format!("v:{value},{}", run.len),
        });
    })?;
    Ok(words.join(" "))
}

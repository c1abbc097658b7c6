//! Combining whole values (`BITOP`).

/// How source values are combined, bit by bit. Shorter values count as padded with zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BitOp {
    /// Set in all sources.
    And,
    /// Set in any source.
    Or,
    /// Set in an odd number of sources.
    Xor,
    /// Not set in the one source.
    Not,
    /// Set in the first source and in no other.
    Diff,
    /// Set in any but the first source, and not in the first.
    Diff1,
    /// Set in the first source and in any other.
    AndOr,
    /// Set in exactly one source.
    One,
}

impl BitOp {
    /// Parses the operation's name, in any case.
    #[must_use]
    pub fn parse(name: &[u8]) -> Option<Self> {
        const NAMES: [(&[u8], BitOp); 8] = [
            (b"and", BitOp::And),
            (b"or", BitOp::Or),
            (b"xor", BitOp::Xor),
            (b"not", BitOp::Not),
            (b"diff", BitOp::Diff),
            (b"diff1", BitOp::Diff1),
            (b"andor", BitOp::AndOr),
            (b"one", BitOp::One),
        ];
        NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, op)| *op)
    }

    /// The fewest and the most sources that the operation takes.
    #[must_use]
    pub fn source_count(self) -> (usize, usize) {
        match self {
            Self::Not => (1, 1),
            Self::Diff | Self::Diff1 | Self::AndOr => (2, usize::MAX),
            Self::And | Self::Or | Self::Xor | Self::One => (1, usize::MAX),
        }
    }
}

/// Combines `sources` into a value as long as the longest of them. No sources give the empty value.
#[must_use]
pub fn combine(op: BitOp, sources: &[&[u8]]) -> Vec<u8> {
    let Some((first, others)) = sources.split_first() else {
        return Vec::new();
    };
    let len = sources.iter().map(|source| source.len()).max().unwrap_or(0);
    match op {
        BitOp::And => {
            let mut out = padded(first, len);
            others.iter().for_each(|source| intersect(&mut out, source));
            out
        }
        BitOp::Or => union(sources, len),
        BitOp::Xor => {
            let mut out = padded(first, len);
            others.iter().for_each(|source| apply(&mut out, source, |out, byte| *out ^= byte));
            out
        }
        BitOp::Not => first.iter().map(|byte| !byte).collect(),
        BitOp::Diff => {
            let mut out = padded(first, len);
            others.iter().for_each(|source| apply(&mut out, source, |out, byte| *out &= !byte));
            out
        }
        BitOp::Diff1 => {
            let mut out = union(others, len);
            apply(&mut out, first, |out, byte| *out &= !byte);
            out
        }
        BitOp::AndOr => {
            let mut out = union(others, len);
            intersect(&mut out, first);
            out
        }
        BitOp::One => {
            let mut out = padded(first, len);
            let mut seen_twice = vec![0_u8; len];
            for source in others {
                for ((out, twice), byte) in out.iter_mut().zip(&mut seen_twice).zip(*source) {
                    *twice |= *out & byte;
                    *out = (*out | byte) & !*twice;
                }
            }
            out
        }
    }
}

fn padded(source: &[u8], len: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(len);
    out.extend_from_slice(source);
    out.resize(len, 0);
    out
}

fn union(sources: &[&[u8]], len: usize) -> Vec<u8> {
    let mut out = vec![0; len];
    sources.iter().for_each(|source| apply(&mut out, source, |out, byte| *out |= byte));
    out
}

fn intersect(out: &mut [u8], source: &[u8]) {
    apply(out, source, |out, byte| *out &= byte);
    if let Some(behind) = out.get_mut(source.len()..) {
        behind.fill(0);
    }
}

/// Runs `merge` over the bytes that both have; a plain zip, which compiles to vector instructions.
fn apply(out: &mut [u8], source: &[u8], merge: impl Fn(&mut u8, u8)) {
    out.iter_mut().zip(source).for_each(|(out, byte)| merge(out, *byte));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_parsed_in_any_case() {
        assert_eq!(BitOp::parse(b"AndOr"), Some(BitOp::AndOr));
        assert_eq!(BitOp::parse(b"nand"), None);
    }

    proptest! {
        #[test]
        fn equals_a_count_of_set_bits(
            sources in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), 1..5),
            op in proptest::sample::select(vec![
                BitOp::And, BitOp::Or, BitOp::Xor, BitOp::Not, BitOp::Diff, BitOp::Diff1, BitOp::AndOr, BitOp::One,
            ]),
        ) {
            let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
            let sources = if op == BitOp::Not { &sources[..1] } else { &sources[..] };
            let out = combine(op, sources);
            prop_assert_eq!(out.len(), sources.iter().map(|source| source.len()).max().unwrap_or(0));
            for at in 0..out.len() as u64 * 8 {
                let in_first = crate::bits::bit(sources[0], at);
                let total = sources.iter().filter(|source| crate::bits::bit(source, at)).count();
                let in_others = total - usize::from(in_first);
                let expected = match op {
                    BitOp::And => total == sources.len(),
                    BitOp::Or => total > 0,
                    BitOp::Xor => total % 2 == 1,
                    BitOp::Not => !in_first,
                    BitOp::Diff => in_first && in_others == 0,
                    BitOp::Diff1 => !in_first && in_others > 0,
                    BitOp::AndOr => in_first && in_others > 0,
                    BitOp::One => total == 1,
                };
                prop_assert_eq!(crate::bits::bit(&out, at), expected, "bit {} of {:?}", at, op);
            }
        }
    }
}

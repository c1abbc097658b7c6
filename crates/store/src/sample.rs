//! Random choices among the members of a collection.
//!
//! Owns: uniform samples without repetition. Does **not** own randomness: the generator is an argument.

use std::collections::BTreeSet;

use towline_sansio::Prng;

/// A sample from a table looks for members by chance while it wants at most one in this many of them.
const SPARSE_SHARE: usize = 3;
/// Tries by chance per wanted member; so many misses do not happen to a table that is not nearly empty.
const TRIES_PER_MEMBER: usize = 64;

/// `count` of the `len` items of an iterator, each subset as likely as any other, in the iterator's order (Knuth's
/// algorithm S).
pub(crate) fn select<T>(items: impl Iterator<Item = T>, len: usize, count: usize, rng: &mut Prng) -> Vec<T> {
    let mut wanted = count.min(len);
    let mut chosen = Vec::with_capacity(wanted);
    for (seen, item) in items.enumerate() {
        if wanted == 0 {
            break;
        }
        if rng.below((len - seen) as u64) < wanted as u64 {
            chosen.push(item);
            wanted -= 1;
        }
    }
    chosen
}

/// `count` different items that `draw` gives with their identity, or `None` where drawing does not pay: then
/// [`select`] does.
pub(crate) fn draw_distinct<T>(
    len: usize,
    count: usize,
    mut draw: impl FnMut() -> Option<(usize, T)>,
) -> Option<Vec<T>> {
    if count > len / SPARSE_SHARE {
        return None;
    }
    let (mut seen, mut chosen) = (BTreeSet::new(), Vec::with_capacity(count));
    for _ in 0..count.saturating_mul(TRIES_PER_MEMBER) {
        if chosen.len() == count {
            break;
        }
        let (identity, item) = draw()?;
        if seen.insert(identity) {
            chosen.push(item);
        }
    }
    (chosen.len() == count).then_some(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subset_is_as_likely() {
        let mut rng = Prng::new(3);
        let mut counts = [0u32; 6];
        for _ in 0..6000 {
            match select(0..4, 4, 2, &mut rng)[..] {
                [0, 1] => counts[0] += 1,
                [0, 2] => counts[1] += 1,
                [0, 3] => counts[2] += 1,
                [1, 2] => counts[3] += 1,
                [1, 3] => counts[4] += 1,
                [2, 3] => counts[5] += 1,
                ref other => panic!("{other:?}"),
            }
        }
        assert!(counts.iter().all(|&count| (850..1150).contains(&count)), "{counts:?}");
    }

    #[test]
    fn drawing_ends_even_when_it_always_hits_the_same() {
        assert_eq!(draw_distinct(100, 2, || Some((1, 'a'))), None);
        assert_eq!(draw_distinct(100, 50, || Some((1, 'a'))), None);
        let mut next = 0;
        let drawn = draw_distinct(100, 3, || {
            next += 1;
            Some((next / 2, next / 2))
        });
        assert_eq!(drawn, Some(vec![0, 1, 2]));
    }
}

//! Sorted sets of integers in a [`Block`]: the "intset" encoding.
//!
//! Owns: width (16, 32 or 64 bits, the narrowest that held all members so far), search, insertion and removal. Does **not**
//! own the limit of members: [`crate::set::Set`] does.

use crate::block::{Block, Kind};

/// Bytes per member.
fn width(block: &Block) -> usize {
    match block.kind() {
        Kind::Int16 => 2,
        Kind::Int32 => 4,
        _ => 8,
    }
}

/// The narrowest kind that holds `value`.
fn kind_for(value: i64) -> Kind {
    if i16::try_from(value).is_ok() {
        Kind::Int16
    } else if i32::try_from(value).is_ok() {
        Kind::Int32
    } else {
        Kind::Int64
    }
}

fn read(bytes: &[u8]) -> i64 {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let unused_bits = 8 * (8 - bytes.len() as u32);
    (i64::from_le_bytes(wide) << unused_bits) >> unused_bits
}

/// The member with this index in ascending order.
pub(crate) fn get(block: &Block, index: usize) -> Option<i64> {
    let width = width(block);
    block.content().get(index * width..(index + 1) * width).map(read)
}

/// The members in ascending order.
pub(crate) fn iter(block: &Block) -> Iter<'_> {
    Iter { members: block.content().chunks_exact(width(block)) }
}

/// The members of an intset in ascending order.
#[derive(Debug, Clone)]
pub(crate) struct Iter<'a> {
    members: std::slice::ChunksExact<'a, u8>,
}

impl Iterator for Iter<'_> {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        self.members.next().map(read)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.members.size_hint()
    }
}

/// The index of `value`, or the one where it belongs.
fn search(block: &Block, value: i64) -> Result<usize, usize> {
    let (mut low, mut high) = (0, block.count());
    while low < high {
        let middle = usize::midpoint(low, high);
        match get(block, middle).map(|member| member.cmp(&value)) {
            Some(std::cmp::Ordering::Less) => low = middle + 1,
            Some(std::cmp::Ordering::Equal) => return Ok(middle),
            Some(std::cmp::Ordering::Greater) | None => high = middle,
        }
    }
    Err(low)
}

/// Whether `value` is a member.
pub(crate) fn contains(block: &Block, value: i64) -> bool {
    kind_for(value) as u8 <= block.kind() as u8 && search(block, value).is_ok()
}

/// Adds a member; answers whether it is new.
pub(crate) fn add(block: &mut Block, value: i64) -> bool {
    if kind_for(value) as u8 > block.kind() as u8 {
        widen(block, kind_for(value));
    }
    let Err(index) = search(block, value) else { return false };
    let (width, count) = (width(block), block.count());
    block.splice(index * width..index * width, &[&value.to_le_bytes()[..width]], count + 1);
    true
}

/// Removes a member; answers whether it was there.
pub(crate) fn remove(block: &mut Block, value: i64) -> bool {
    if !contains(block, value) {
        return false;
    }
    if let Ok(index) = search(block, value) {
        remove_at(block, index);
    }
    true
}

/// Removes the member with this index, which exists.
pub(crate) fn remove_at(block: &mut Block, index: usize) {
    let (width, count) = (width(block), block.count());
    block.splice(index * width..(index + 1) * width, &[], count - 1);
}

/// Rewrites all members in a wider form.
fn widen(block: &mut Block, kind: Kind) {
    let mut wide = Block::new(kind);
    let width = width(&wide);
    let mut content = Vec::with_capacity(block.count() * width);
    for member in iter(block) {
        content.extend_from_slice(&member.to_le_bytes()[..width]);
    }
    wide.splice(0..0, &[&content], block.count());
    *block = wide;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn width_grows_with_the_members_and_memory_stays_small() {
        let mut set = Block::new(Kind::Int16);
        for (value, bytes) in [(1, 2), (-5, 4), (70_000, 12), (i64::MIN, 32)] {
            assert!(add(&mut set, value));
            assert_eq!(set.used(), bytes);
        }
        assert_eq!(iter(&set).collect::<Vec<_>>(), [i64::MIN, -5, 1, 70_000]);
        assert_eq!(set.mem_bytes(), 48);
    }

    proptest! {
        #[test]
        fn behaves_like_a_sorted_set(
            ops in prop::collection::vec((any::<bool>(), prop_oneof![-40i64..40, any::<i32>().prop_map(i64::from), any::<i64>()]), 0..200)
        ) {
            let (mut set, mut model) = (Block::new(Kind::Int16), BTreeSet::new());
            for (is_add, value) in ops {
                if is_add {
                    prop_assert_eq!(add(&mut set, value), model.insert(value));
                } else {
                    prop_assert_eq!(remove(&mut set, value), model.remove(&value));
                }
                prop_assert_eq!(contains(&set, value), model.contains(&value));
                prop_assert!(iter(&set).eq(model.iter().copied()));
            }
        }
    }
}

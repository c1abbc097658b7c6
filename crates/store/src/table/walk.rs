//! A walk over a table that visits every item once, however often segments split in between.
//!
//! Owns: the position and the question whether the walk has passed a hash. Does **not** own what the visitor does, nor
//! what becomes of items that are added or changed meanwhile.
//!
//! A cursor of [`Table::scan`] may visit an item twice: when the segment it stands in splits, one half is visited again
//! from its start. A [`Position`] remembers what was visited of the segment as it was then. It is a stack of regions of
//! the hash space, each inside the one before it. A region says: of my hashes, those with a tag below mine were visited,
//! and so were those before the region that follows on the stack. So [`Position::has_passed`] depends on the hash alone
//! and not on the table's present shape, which makes it right after any split, shrink or emptying.

use super::{DEPTH_MAX, Item, Ref, Table, tag_at, tag_of};
use crate::hasher::hash64;
use smallvec::SmallVec;

/// A part of the hash space: the hashes whose reversed low bits begin with the upper `depth` bits of `start`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Region {
    start: u32,
    depth: u8,
    /// Tags below this were visited.
    tag: u32,
}

impl Region {
    const WHOLE: Self = Self { start: 0, depth: 0, tag: 0 };

    fn end(self) -> u32 {
        self.start + (1 << (DEPTH_MAX - self.depth))
    }

    fn contains(self, place: u32) -> bool {
        (self.start..self.end()).contains(&place)
    }
}

/// Where a hash stands in the order of the walk, its tag aside.
fn place_of(hash: u64) -> u32 {
    (hash as u32).reverse_bits() >> (32 - u32::from(DEPTH_MAX))
}

/// How far a walk has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Position {
    /// Empty once the walk is over.
    regions: SmallVec<[Region; 2]>,
}

impl Default for Position {
    fn default() -> Self {
        Self { regions: SmallVec::from_slice(&[Region::WHOLE]) }
    }
}

impl Position {
    /// The position of a walk that is over.
    pub(crate) fn done() -> Self {
        Self { regions: SmallVec::new() }
    }

    /// Whether everything was visited.
    pub(crate) fn is_done(&self) -> bool {
        self.regions.is_empty()
    }

    /// Whether items of this hash were visited.
    pub(crate) fn has_passed(&self, hash: u64) -> bool {
        let (place, tag) = (place_of(hash), u32::from(tag_of(hash)));
        for (at, region) in self.regions.iter().enumerate() {
            if tag < region.tag {
                return true;
            }
            match self.regions.get(at + 1) {
                Some(inner) if inner.contains(place) => {}
                Some(inner) => return place < inner.start,
                None => return false,
            }
        }
        true
    }

    /// Leaves the innermost region, which is finished, for what follows it. `depth_at` is the depth of the segment at a
    /// place.
    fn leave_region(&mut self, depth_at: impl Fn(u32) -> u8) {
        while let Some(finished) = self.regions.pop() {
            let Some(outer) = self.regions.last() else { return };
            let next = finished.end();
            if next < outer.end() {
                // As large as its alignment and the segment there allow.
                let aligned = DEPTH_MAX - next.trailing_zeros() as u8;
                let depth = aligned.max(depth_at(next));
                self.regions.push(Region { start: next, depth, tag: outer.tag });
                return;
            }
        }
    }
}

impl<T: Item> Table<T> {
    /// Visits items that the walk has not passed, with their hashes, until `visit` answers `false` or all are visited;
    /// items that share their place with the last one are visited as well.
    pub(crate) fn walk(&self, position: &mut Position, visit: &mut dyn FnMut(u64, &T) -> bool) {
        let depth_at = |place: u32| self.segment_at(u64::from(place)).depth;
        while let Some(region) = position.regions.last_mut() {
            let segment = self.segment_at(u64::from(region.start));
            if segment.depth > region.depth {
                let inner = Region { depth: segment.depth, ..*region };
                position.regions.push(inner);
                continue;
            }
            let region_now = *region;
            let (mut goes_on, mut last) = (true, None);
            for &place in segment.places.iter().skip(segment.home(region.tag.min(0xffff) as u16)) {
                let tag = u32::from(tag_at(place));
                if place == 0 || tag < region_now.tag {
                    continue;
                }
                if !goes_on && last != Some(tag) {
                    region.tag = tag;
                    return;
                }
                let item = Ref::<T>::new(place);
                let hash = hash64(item.key());
                // A segment that is larger than the region has items of other regions, too.
                if region_now.contains(place_of(hash)) {
                    goes_on &= visit(hash, &item);
                    last = Some(tag);
                }
            }
            position.leave_region(depth_at);
            if !goes_on {
                return;
            }
        }
    }

    /// Visits all items of this hash.
    pub(crate) fn for_each_of_hash(&self, hash: u64, visit: &mut dyn FnMut(&T)) {
        let tag = tag_of(hash);
        let segment = self.segment(hash);
        for &place in segment.places.iter().skip(segment.home(tag)) {
            if place == 0 || tag_at(place) > tag {
                return;
            }
            let item = Ref::<T>::new(place);
            if tag_at(place) == tag && hash64(item.key()) == hash {
                visit(&item);
            }
        }
    }
}

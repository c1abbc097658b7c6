//! A segment: a run of places sorted by tag, with gaps.
//!
//! Owns: where an item stands in its segment, and the segment's size. Does **not** own items, nor splitting.

use super::{Item, Ref, tag_at, tag_of};

/// Places behind the last home, so that the largest tags have room.
const OVERFLOW_PLACES: usize = 8;
/// Segment sizes in places: multiples of a cache line that are also size classes of the allocator. Few, and far apart while
/// small: tables of one keyspace grow at about the same time, and each size that most of them have left behind leaves
/// half-empty slabs in the allocator. A finer ladder fills places better and takes more memory (measured with 1 M keys).
pub(super) const CAPACITIES: [u16; 8] = [8, 16, 32, 80, 96, 160, 320, 512];

/// A run of places sorted by tag.
#[derive(Default)]
pub(super) struct Segment {
    pub(super) places: Box<[u64]>,
    pub(super) len: u16,
    /// Directory bits that all items of this segment share.
    pub(super) depth: u8,
}

/// Why an item could not be placed.
pub(super) struct Full;

impl Segment {
    pub(super) fn with_capacity(capacity: u16, depth: u8) -> Self {
        Self { places: vec![0; usize::from(capacity)].into_boxed_slice(), len: 0, depth }
    }

    #[inline]
    pub(super) fn home(&self, tag: u16) -> usize {
        (usize::from(tag) * (self.places.len().saturating_sub(OVERFLOW_PLACES))) >> 16
    }

    #[inline]
    pub(super) fn find<T: Item>(&self, hash: u64, key: &[u8]) -> Option<usize> {
        let tag = tag_of(hash);
        let mut at = self.home(tag);
        while let Some(&place) = self.places.get(at) {
            if place == 0 || tag_at(place) > tag {
                return None;
            }
            if tag_at(place) == tag && Ref::<T>::new(place).key() == key {
                return Some(at);
            }
            at += 1;
        }
        None
    }

    /// Puts `place` where its tag belongs.
    fn put(&mut self, place: u64) -> Result<(), Full> {
        let tag = tag_at(place);
        let mut at = self.home(tag);
        while self.places.get(at).is_some_and(|&there| there != 0 && tag_at(there) <= tag) {
            at += 1;
        }
        let gap = at
            + self.places.get(at..).and_then(|rest| rest.iter().position(|&there| there == 0)).ok_or(Full)?;
        self.places.copy_within(at..gap, at + 1);
        self.places[at] = place;
        self.len += 1;
        Ok(())
    }

    /// Empties the place at `at` and moves back what stood behind it for want of room.
    pub(super) fn cut(&mut self, at: usize) -> u64 {
        let cut = self.places[at];
        let mut hole = at;
        for next in at + 1..self.places.len() {
            let place = self.places[next];
            if place == 0 || self.home(tag_at(place)) == next {
                break;
            }
            self.places[hole] = place;
            hole = next;
        }
        self.places[hole] = 0;
        self.len -= 1;
        cut
    }

    pub(super) fn filled(&self) -> impl Iterator<Item = u64> + '_ {
        self.places.iter().copied().filter(|&place| place != 0)
    }

    /// A segment of the smallest capacity of at least `want` places that takes all items of this one.
    fn resized(&self, want: usize) -> Result<Self, Full> {
        for capacity in CAPACITIES.into_iter().filter(|&capacity| usize::from(capacity) >= want) {
            let mut larger = Self::with_capacity(capacity, self.depth);
            if self.filled().try_for_each(|place| larger.put(place)).is_ok() {
                return Ok(larger);
            }
        }
        Err(Full)
    }

    /// Makes room for one more, within the largest segment.
    fn grow(&mut self) -> Result<(), Full> {
        let want = (usize::from(self.len) + 1).max(self.places.len() + 1);
        *self = self.resized(want)?;
        Ok(())
    }

    pub(super) fn shrink(&mut self) {
        let want = usize::from(self.len) + usize::from(self.len) / 4;
        if self.len == 0 {
            self.places = Box::default();
        } else if want * 3 < self.places.len()
            && let Ok(smaller) = self.resized(want)
        {
            *self = smaller;
        }
    }

    pub(super) fn insert(&mut self, place: u64) -> Result<(), Full> {
        if usize::from(self.len) < self.places.len() && self.put(place).is_ok() {
            return Ok(());
        }
        while self.grow().is_ok() {
            if self.put(place).is_ok() {
                return Ok(());
            }
        }
        Err(Full)
    }
}

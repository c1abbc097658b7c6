//! From a member to its number: an extendible hash table.
//!
//! Owns the numbers only; hashes and equality come from the caller, who has the members. It grows by splitting one
//! segment of bounded size, so no insertion stalls; the directory is a few bytes per segment. Iteration order does not
//! matter here, since scans walk the members themselves.

use hashbrown::HashTable;

/// Entries of a segment before it splits: what hashbrown holds in 512 buckets.
const SEGMENT_ENTRIES_MAX: usize = 448;
/// Two neighbours with fewer entries than this together become one segment again.
const MERGE_ENTRIES_MAX: usize = SEGMENT_ENTRIES_MAX / 4;
/// Directory bits at most: enough for 2^32 entries.
const DEPTH_MAX: u32 = 24;
/// Directory places per segment at most; spread hashes stay below 8. Where it would be exceeded, a segment grows instead
/// of splitting, so that equal hashes cannot blow up the directory.
const PLACES_PER_SEGMENT_MAX: usize = 64;
/// Hash bits from here on choose the segment; hashbrown uses the lowest bits and the highest seven.
const DIRECTORY_SHIFT: u32 = 20;

#[derive(Debug, Clone, Default)]
struct Segment {
    entries: HashTable<u32>,
    /// Directory bits that all entries of the segment share.
    depth: u32,
    /// The value of those bits.
    prefix: usize,
}

/// A hash table of numbers.
#[derive(Debug, Clone)]
pub(super) struct Index {
    /// `2^depth` segment positions, indexed by the directory bits of a hash.
    directory: Vec<u32>,
    depth: u32,
    segments: Vec<Segment>,
    /// Bytes that the segments' tables have allocated.
    table_bytes: usize,
}

impl Default for Index {
    fn default() -> Self {
        Self { directory: vec![0], depth: 0, segments: vec![Segment::default()], table_bytes: 0 }
    }
}

fn bits_of(hash: u64, depth: u32) -> usize {
    (hash >> DIRECTORY_SHIFT) as usize & ((1 << depth) - 1)
}

impl Index {
    fn position(&self, hash: u64) -> usize {
        self.directory[bits_of(hash, self.depth)] as usize
    }

    /// The number with this hash for which `is_it` holds.
    pub(super) fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        self.segments[self.position(hash)].entries.find(hash, |id| is_it(*id)).copied()
    }

    /// Inserts a number that is not in the table. `hash_of` is asked for the hashes of others when a segment grows.
    pub(super) fn insert(&mut self, hash: u64, id: u32, hash_of: impl Fn(u32) -> u64) {
        loop {
            let position = self.position(hash);
            if self.segments[position].entries.len() < SEGMENT_ENTRIES_MAX || !self.can_split(position) {
                break;
            }
            self.split(position, &hash_of);
        }
        let position = self.position(hash);
        let entries = &mut self.segments[position].entries;
        self.table_bytes -= entries.allocation_size();
        entries.insert_unique(hash, id, |id| hash_of(*id));
        self.table_bytes += entries.allocation_size();
    }

    /// Removes a number.
    pub(super) fn remove(&mut self, hash: u64, id: u32) {
        let position = self.position(hash);
        if let Ok(found) = self.segments[position].entries.find_entry(hash, |other| *other == id) {
            found.remove();
        }
    }

    /// Gives an entry another number.
    pub(super) fn renumber(&mut self, hash: u64, from: u32, to: u32) {
        let position = self.position(hash);
        if let Some(id) = self.segments[position].entries.find_mut(hash, |id| *id == from) {
            *id = to;
        }
    }

    fn can_split(&self, position: usize) -> bool {
        let needs_growth = self.segments[position].depth == self.depth;
        let is_sparse = self.directory.len() >= self.segments.len() * PLACES_PER_SEGMENT_MAX;
        !needs_growth || (self.depth < DEPTH_MAX && !is_sparse)
    }

    /// Moves the entries of a segment whose next directory bit is set to a new segment.
    fn split(&mut self, position: usize, hash_of: &impl Fn(u32) -> u64) {
        let Segment { entries, depth, prefix } = std::mem::take(&mut self.segments[position]);
        self.table_bytes -= entries.allocation_size();
        if depth == self.depth {
            self.directory.extend_from_within(..);
            self.depth += 1;
        }
        let halves = [0, 1].map(|bit| Segment {
            entries: HashTable::with_capacity(entries.len() / 2),
            depth: depth + 1,
            prefix: prefix | bit << depth,
        });
        let [mut low, mut high] = halves;
        for id in entries {
            let hash = hash_of(id);
            let half = if bits_of(hash, depth + 1) >> depth == 0 { &mut low } else { &mut high };
            half.entries.insert_unique(hash, id, |id| hash_of(*id));
        }
        self.table_bytes += low.entries.allocation_size() + high.entries.allocation_size();
        self.segments[position] = low;
        self.segments.push(high);
        self.point_to(self.segments.len() - 1);
    }

    /// Merges the segment of `hash` with its neighbour when both have become small. Called after removals; at most
    /// `MERGE_ENTRIES_MAX` entries move.
    pub(super) fn shrink(&mut self, hash: u64, hash_of: impl Fn(u32) -> u64) {
        let position = self.position(hash);
        let Segment { depth, prefix, ref entries } = self.segments[position];
        if depth == 0 || entries.len() >= MERGE_ENTRIES_MAX {
            return;
        }
        let neighbour = self.directory[prefix ^ 1 << (depth - 1)] as usize;
        let other = &self.segments[neighbour];
        if other.depth != depth || entries.len() + other.entries.len() >= MERGE_ENTRIES_MAX {
            return;
        }
        let moved = std::mem::take(&mut self.segments[neighbour].entries);
        let kept = &mut self.segments[position];
        self.table_bytes -= kept.entries.allocation_size() + moved.allocation_size();
        for id in moved {
            kept.entries.insert_unique(hash_of(id), id, |id| hash_of(*id));
        }
        kept.entries.shrink_to(MERGE_ENTRIES_MAX, |id| hash_of(*id));
        self.table_bytes += kept.entries.allocation_size();
        kept.depth = depth - 1;
        kept.prefix = prefix & ((1 << (depth - 1)) - 1);
        self.point_to(position);
        self.segments.swap_remove(neighbour);
        if neighbour < self.segments.len() {
            self.point_to(neighbour);
        }
        if self.segments.len() == 1 {
            self.directory = vec![0];
            self.depth = 0;
        }
    }

    /// Lets all directory places of a segment point to its position.
    fn point_to(&mut self, position: usize) {
        let Segment { depth, prefix, .. } = self.segments[position];
        let places = self.directory.iter_mut().skip(prefix).step_by(1 << depth);
        places.for_each(|place| *place = position as u32);
    }

    pub(super) fn mem_bytes(&self) -> usize {
        self.table_bytes
            + self.segments.capacity() * size_of::<Segment>()
            + self.directory.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bijection of 64-bit words that spreads them.
    fn mix(id: u32) -> u64 {
        let mut hash = u64::from(id).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^= hash >> 29;
        hash.wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }

    #[test]
    fn entries_survive_splits_and_merges() {
        let mut index = Index::default();
        for id in 0..20_000 {
            index.insert(mix(id), id, mix);
        }
        assert!(index.segments.len() > 40);
        assert!((0..20_000).all(|id| index.find(mix(id), |other| other == id) == Some(id)));
        for id in 0..19_900 {
            index.remove(mix(id), id);
            index.shrink(mix(id), mix);
        }
        assert!((0..20_000).all(|id| index.find(mix(id), |other| other == id).is_some() == (id >= 19_900)));
        for id in 19_900..20_000 {
            index.remove(mix(id), id);
            index.shrink(mix(id), mix);
        }
        assert_eq!((index.segments.len(), index.depth), (1, 0));
        let real: usize = index.segments.iter().map(|segment| segment.entries.allocation_size()).sum();
        assert_eq!(index.table_bytes, real);
    }

    #[test]
    fn equal_hashes_grow_a_segment_and_not_the_directory_without_end() {
        let mut index = Index::default();
        for id in 0..1_000 {
            index.insert(42, id, |_| 42);
        }
        assert!(index.directory.len() <= index.segments.len() * PLACES_PER_SEGMENT_MAX * 2);
        assert!((0..1_000).all(|id| index.find(42, |other| other == id) == Some(id)));
    }
}

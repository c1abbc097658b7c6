//! The segmented hash table under the keyspace and under every large set, hash and sorted set.
//!
//! Owns: placement, growth and the order that `SCAN` relies on. Does **not** own what an item is (see [`Item`]) or when
//! it expires. One of the files that may be unsafe: a place is 8 bytes, the item's pointer with 16 bits of its hash on top.
//!
//! * A table is one segment until that is full at [`SEGMENT_PLACES_MAX`], then a directory of segments that split one
//!   at a time (extendible hashing). No operation ever moves more than one segment's items, so growth never stalls.
//! * Inside a segment, places are sorted by the 16 hash bits (the *tag*), with gaps: an item stands at or after its
//!   tag's home. A search ends at the first gap or larger tag; growing a segment reads no item.
//! * The cursor of [`Table::scan`] is a position in hash order (reversed directory bits, then tag), which neither growth
//!   nor shrinking changes: an item that stays in the table from the first to the last call is always visited.

use self::segment::{CAPACITIES, Full, Segment};
use crate::hasher::hash64;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use towline_sansio::Prng;

mod segment;
mod walk;

pub(crate) use walk::Position;

/// Something as wide as a pointer that owns one heap block with a key in it.
///
/// # Safety
/// `from_raw(into_raw(x))` is `x`; the pointer is unique to the item, and its upper 16 bits are zero (user space on
/// x86-64 and aarch64 with 48-bit addresses).
pub unsafe trait Item: Sized + Send {
    /// Gives up ownership.
    fn into_raw(self) -> NonNull<u8>;
    /// Takes ownership back.
    ///
    /// # Safety
    /// `ptr` came from `into_raw` and is owned by nobody else.
    unsafe fn from_raw(ptr: NonNull<u8>) -> Self;
    /// The bytes that identify the item.
    fn key(&self) -> &[u8];
}

/// Places in the largest segment: a split moves at most this many items, about 50 us of cache misses.
pub const SEGMENT_PLACES_MAX: usize = 512;
/// Directory bits at most: 2^30 segments.
const DEPTH_MAX: u8 = 30;
const POINTER_BITS: u32 = 48;
const POINTER_MASK: u64 = (1 << POINTER_BITS) - 1;
#[inline]
const fn tag_of(hash: u64) -> u16 {
    (hash >> POINTER_BITS) as u16
}

#[inline]
const fn tag_at(place: u64) -> u16 {
    (place >> POINTER_BITS) as u16
}

/// The pointer in a place that is not empty.
#[inline]
fn pointer(place: u64) -> NonNull<u8> {
    NonNull::new((place & POINTER_MASK) as *mut u8)
        .expect("invariant: only filled places are read as pointers")
}

/// A borrowed item of a table.
#[derive(Debug)]
pub struct Ref<'a, T: Item> {
    item: ManuallyDrop<T>,
    life: PhantomData<&'a T>,
}

impl<'a, T: Item> Ref<'a, T> {
    #[inline]
    fn new(place: u64) -> Self {
        // SAFETY: the table owns the item; `ManuallyDrop` keeps this copy of the pointer from freeing it, and the
        // lifetime keeps the table borrowed.
        Self { item: ManuallyDrop::new(unsafe { T::from_raw(pointer(place)) }), life: PhantomData }
    }

    /// The item's key for as long as the table is borrowed.
    #[inline]
    pub fn key_bytes(&self) -> &'a [u8] {
        let key = self.item.key();
        // SAFETY: the key lies in the item's heap block (see `Item`), which nothing changes or frees while the table is
        // borrowed for `'a`.
        unsafe { std::slice::from_raw_parts(key.as_ptr(), key.len()) }
    }
}

impl<T: Item> Deref for Ref<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.item
    }
}

/// A mutably borrowed item of a table. Its pointer is written back when the borrow ends, since an update may move the
/// block. The key must not change.
#[derive(Debug)]
pub struct RefMut<'a, T: Item> {
    place: &'a mut u64,
    item: ManuallyDrop<T>,
}

impl<'a, T: Item> RefMut<'a, T> {
    #[inline]
    fn new(place: &'a mut u64) -> Self {
        // SAFETY: as in `Ref::new`; the place is borrowed mutably, so this is the only access.
        let item = ManuallyDrop::new(unsafe { T::from_raw(pointer(*place)) });
        Self { place, item }
    }
}

impl<T: Item> Deref for RefMut<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.item
    }
}

impl<T: Item> DerefMut for RefMut<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.item
    }
}

impl<T: Item> Drop for RefMut<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the item goes back to the place that owns it and is not used here again.
        let raw = unsafe { ManuallyDrop::take(&mut self.item) }.into_raw();
        *self.place = (*self.place & !POINTER_MASK) | raw.as_ptr() as u64;
    }
}

struct Directory {
    segments: Vec<Segment>,
    /// `2^depth` indices into `segments`, by the low bits of the hash.
    index: Vec<u32>,
    depth: u8,
    len: usize,
    place_bytes: usize,
}

enum Shape {
    One(Segment),
    Many(Box<Directory>),
}

/// A hash table of thin items; see the module's description.
pub struct Table<T: Item> {
    shape: Shape,
    items: PhantomData<T>,
}

impl<T: Item> Default for Table<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Item> fmt::Debug for Table<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("len", &self.len()).field("segments", &self.segments().len()).finish()
    }
}

impl<T: Item> Table<T> {
    /// An empty table; allocates nothing.
    pub fn new() -> Self {
        Self { shape: Shape::One(Segment::default()), items: PhantomData }
    }

    /// Number of items.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.shape {
            Shape::One(segment) => usize::from(segment.len),
            Shape::Many(directory) => directory.len,
        }
    }

    /// Whether there is no item.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn segments(&self) -> &[Segment] {
        match &self.shape {
            Shape::One(segment) => std::slice::from_ref(segment),
            Shape::Many(directory) => &directory.segments,
        }
    }

    #[inline]
    fn segment(&self, hash: u64) -> &Segment {
        match &self.shape {
            Shape::One(segment) => segment,
            Shape::Many(directory) => &directory.segments[directory.slot(hash)],
        }
    }

    #[inline]
    fn segment_mut(&mut self, hash: u64) -> &mut Segment {
        match &mut self.shape {
            Shape::One(segment) => segment,
            Shape::Many(directory) => {
                let slot = directory.slot(hash);
                &mut directory.segments[slot]
            }
        }
    }

    /// The item with `key`, whose hash is `hash`.
    #[inline]
    pub fn get(&self, hash: u64, key: &[u8]) -> Option<Ref<'_, T>> {
        let segment = self.segment(hash);
        segment.find::<T>(hash, key).map(|at| Ref::new(segment.places[at]))
    }

    /// The item with `key`, to be changed.
    #[inline]
    pub fn get_mut(&mut self, hash: u64, key: &[u8]) -> Option<RefMut<'_, T>> {
        let segment = self.segment_mut(hash);
        segment.find::<T>(hash, key).map(|at| RefMut::new(&mut segment.places[at]))
    }

    /// Adds `item`; the caller has made sure that its key is absent.
    pub fn insert(&mut self, hash: u64, item: T) {
        debug_assert!(self.get(hash, item.key()).is_none(), "invariant: the key is absent");
        let place = item.into_raw().as_ptr() as u64 | (u64::from(tag_of(hash)) << POINTER_BITS);
        if let Shape::One(segment) = &mut self.shape {
            if segment.insert(place).is_ok() {
                return;
            }
            self.shape = Shape::Many(Box::new(Directory::new(std::mem::take(segment))));
        }
        if let Shape::Many(directory) = &mut self.shape {
            directory.insert::<T>(hash, place);
        }
    }

    /// Adds `item` or puts it in the place of the one with its key, which is returned.
    pub fn replace(&mut self, hash: u64, item: T) -> Option<T> {
        let Some(mut there) = self.get_mut(hash, item.key()) else {
            self.insert(hash, item);
            return None;
        };
        Some(std::mem::replace(&mut *there, item))
    }

    /// Takes the item with `key` out.
    pub fn remove(&mut self, hash: u64, key: &[u8]) -> Option<T> {
        let segment = self.segment_mut(hash);
        let at = segment.find::<T>(hash, key)?;
        Some(self.take_at(hash, at))
    }

    /// Takes out the first item of this hash for which `is_it` holds: for callers that kept only the hash.
    pub fn remove_hash_if(&mut self, hash: u64, mut is_it: impl FnMut(&T) -> bool) -> Option<T> {
        let at = self.position_if(hash, &mut is_it)?;
        Some(self.take_at(hash, at))
    }

    /// The first item of this hash for which `is_it` holds.
    pub fn find_hash(&self, hash: u64, mut is_it: impl FnMut(&T) -> bool) -> Option<Ref<'_, T>> {
        let at = self.position_if(hash, &mut is_it)?;
        Some(Ref::new(self.segment(hash).places[at]))
    }

    /// As [`Table::find_hash`], to be changed.
    pub fn get_hash_if_mut(&mut self, hash: u64, mut is_it: impl FnMut(&T) -> bool) -> Option<RefMut<'_, T>> {
        let at = self.position_if(hash, &mut is_it)?;
        Some(RefMut::new(&mut self.segment_mut(hash).places[at]))
    }

    fn position_if(&self, hash: u64, is_it: &mut dyn FnMut(&T) -> bool) -> Option<usize> {
        let segment = self.segment(hash);
        let tag = tag_of(hash);
        (segment.home(tag)..segment.places.len())
            .take_while(|&at| segment.places[at] != 0 && tag_at(segment.places[at]) <= tag)
            .find(|&at| tag_at(segment.places[at]) == tag && is_it(&Ref::new(segment.places[at])))
    }

    fn take_at(&mut self, hash: u64, at: usize) -> T {
        let segment = self.segment_mut(hash);
        let bytes_before = segment.places.len() * 8;
        let place = segment.cut(at);
        segment.shrink();
        let bytes_after = segment.places.len() * 8;
        if let Shape::Many(directory) = &mut self.shape {
            directory.len -= 1;
            directory.place_bytes = directory.place_bytes + bytes_after - bytes_before;
            if directory.len == 0 {
                self.shape = Shape::One(Segment::default());
            }
        }
        // SAFETY: the place is no longer in the table, so the ownership passes to the caller.
        unsafe { T::from_raw(pointer(place)) }
    }

    /// All items, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = Ref<'_, T>> + '_ {
        self.segments().iter().flat_map(Segment::filled).map(Ref::new)
    }

    /// Visits at least `count` items from `cursor` on, if there are as many, and returns the cursor for the next call;
    /// 0 starts and ends a scan. Cursors are below 2^46, and any number is a valid cursor. Items that are in the table
    /// during the whole scan are visited at least once.
    pub fn scan(&self, cursor: u64, count: usize, visit: &mut dyn FnMut(&T)) -> u64 {
        let mut reversed = (cursor >> 16) & ((1 << DEPTH_MAX) - 1);
        let mut tag = cursor as u16;
        let mut left = count.max(1);
        loop {
            let segment = self.segment_at(reversed);
            let mut last = None;
            for at in segment.home(tag)..segment.places.len() {
                let place = segment.places[at];
                if place == 0 || tag_at(place) < tag {
                    continue;
                }
                if left == 0 && last != Some(tag_at(place)) {
                    return (reversed << 16) | u64::from(tag_at(place));
                }
                visit(&Ref::new(place));
                left = left.saturating_sub(1);
                last = Some(tag_at(place));
            }
            let step = 1u64 << (DEPTH_MAX - segment.depth);
            reversed = (reversed & !(step - 1)) + step;
            tag = 0;
            if reversed >> DEPTH_MAX != 0 {
                return 0;
            }
            if left == 0 {
                return reversed << 16;
            }
        }
    }

    fn segment_at(&self, reversed: u64) -> &Segment {
        match &self.shape {
            Shape::One(segment) => segment,
            Shape::Many(directory) => {
                let low = (reversed as u32).reverse_bits() >> (32 - u32::from(DEPTH_MAX));
                &directory.segments[directory.slot(u64::from(low))]
            }
        }
    }

    /// An item chosen uniformly by the random number `r`.
    pub fn random(&self, r: u64) -> Option<Ref<'_, T>> {
        if self.is_empty() {
            return None;
        }
        let segments = self.segments();
        let width = segments.iter().map(|segment| segment.places.len()).max().filter(|_| segments.len() == 1);
        let width = width.unwrap_or(SEGMENT_PLACES_MAX) as u64;
        let mut rng = Prng::new(r);
        // A segment that is not the only one is rarely less than a sixth full; this many misses mean a sparse table.
        for _ in 0..256 {
            let segment = &segments[rng.below(segments.len() as u64) as usize];
            match segment.places.get(rng.below(width) as usize) {
                None | Some(0) => {}
                Some(&place) => return Some(Ref::new(place)),
            }
        }
        let nth = rng.below(self.len() as u64) as usize;
        self.iter().nth(nth)
    }

    /// Heap bytes of the table itself, without its items.
    pub fn mem_bytes(&self) -> usize {
        match &self.shape {
            Shape::One(segment) => segment.places.len() * 8,
            Shape::Many(directory) => {
                directory.place_bytes
                    + directory.segments.capacity() * size_of::<Segment>()
                    + directory.index.capacity() * 4
                    + size_of::<Directory>()
            }
        }
    }

    /// Asks the processor to fetch the places where `hash` would be.
    #[inline]
    pub fn prefetch_places(&self, hash: u64) {
        let segment = self.segment(hash);
        if let Some(place) = segment.places.get(segment.home(tag_of(hash))) {
            prefetch(std::ptr::from_ref(place).cast());
        }
    }

    /// Asks the processor to fetch the item that `hash` most likely finds.
    #[inline]
    pub fn prefetch_item(&self, hash: u64) {
        let segment = self.segment(hash);
        let tag = tag_of(hash);
        for &place in segment.places.iter().skip(segment.home(tag)) {
            if place == 0 || tag_at(place) > tag {
                return;
            }
            if tag_at(place) == tag {
                let item = pointer(place).as_ptr().cast_const();
                prefetch(item);
                prefetch(item.wrapping_add(64));
                return;
            }
        }
    }
}

#[inline]
pub(crate) fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

impl<T: Item> Drop for Table<T> {
    fn drop(&mut self) {
        for place in self.segments().iter().flat_map(Segment::filled) {
            // SAFETY: the table owns its items and is not used again.
            drop(unsafe { T::from_raw(pointer(place)) });
        }
    }
}

impl Directory {
    fn new(segment: Segment) -> Self {
        Self {
            len: usize::from(segment.len),
            place_bytes: segment.places.len() * 8,
            segments: vec![segment],
            index: vec![0],
            depth: 0,
        }
    }

    #[inline]
    fn slot(&self, hash: u64) -> usize {
        self.index[(hash & ((1 << self.depth) - 1)) as usize] as usize
    }

    fn insert<T: Item>(&mut self, hash: u64, place: u64) {
        loop {
            let slot = self.slot(hash);
            let before = self.segments[slot].places.len();
            let done = self.segments[slot].insert(place);
            self.place_bytes = self.place_bytes + self.segments[slot].places.len() * 8 - before * 8;
            match done {
                Ok(()) => break,
                Err(Full) => self.split::<T>(hash),
            }
        }
        self.len += 1;
    }

    /// Moves about half of the segment that `hash` belongs to into a new one.
    fn split<T: Item>(&mut self, hash: u64) {
        let slot = self.slot(hash);
        let depth = self.segments[slot].depth;
        assert!(depth < DEPTH_MAX, "invariant: hashes do not collide in all their bits by the hundred");
        if depth == self.depth {
            self.index.extend_from_within(..);
            self.depth += 1;
        }
        let old = std::mem::take(&mut self.segments[slot]);
        self.place_bytes -= old.places.len() * 8;
        // Each half gets room for more than half of the items; one that gets more grows as it fills.
        let half = CAPACITIES[CAPACITIES.len() - 2];
        let mut halves = [Segment::with_capacity(half, depth + 1), Segment::with_capacity(half, depth + 1)];
        for place in old.filled() {
            let bit = (hash64(Ref::<T>::new(place).key()) >> depth) & 1;
            assert!(
                halves[bit as usize].insert(place).is_ok(),
                "invariant: a half takes what the whole held"
            );
        }
        self.place_bytes += halves.iter().map(|half| half.places.len() * 8).sum::<usize>();
        let [low, high] = halves;
        self.segments[slot] = low;
        let new = u32::try_from(self.segments.len()).expect("invariant: at most 2^30 segments");
        self.segments.push(high);
        let first = (hash & ((1 << depth) - 1)) as usize | (1 << depth);
        for entry in self.index.iter_mut().skip(first).step_by(1 << (depth + 1)) {
            *entry = new;
        }
    }
}

#[cfg(test)]
mod tests;

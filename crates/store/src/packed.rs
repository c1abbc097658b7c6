//! `Packed`: a sequence of byte strings in one allocation, for small collections.
//!
//! Owns: the entry format and every walk over it. Does **not** own the decision when a collection is too large for it.
//!
//! The entries are those of a listpack (<https://github.com/antirez/listpack/blob/master/listpack.md>): a tag with the length or a
//! small integer, the bytes, and the length of both backwards, so that the sequence can be walked from either end and a DUMP
//! payload takes [`Packed::entry_bytes`] as it is. Only the listpack's 6-byte head and its end mark are absent. Strings
//! that are canonical decimal integers are stored as integers; reading gives them back as [`Elem::Int`], which renders to the
//! same bytes.

use std::fmt;

use crate::block::{self, Block, Kind};
pub use crate::elem::{Elem, ElemBuf, Encoded};
use crate::elem::{after, back_len, back_len_size, before, decode};

/// Bytes that a listpack has in addition to the entries: its head and its end mark.
const LISTPACK_FRAME_BYTES: usize = 7;

/// Most elements that one [`Packed`] holds; collections convert before, whatever their configured limits.
pub const PACKED_COUNT_MAX: usize = block::COUNT_MAX;
/// Most bytes that collections put into one [`Packed`]: Redis's safety limit of a listpack (1 GiB).
pub const PACKED_BYTES_MAX: usize = 1 << 30;

/// Where an entry begins. Any change of the sequence before or at it makes it meaningless; using such a position may panic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pos(usize);

/// A sequence of elements in one allocation. Walking is linear; the count is known.
///
/// Inline it is two words; on the heap 8 bytes and the entries, rounded up to the allocator's size class.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Packed {
    block: Block,
}

impl Packed {
    /// An empty sequence; allocates nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty sequence of a kind that it keeps while elements come and go.
    pub(crate) fn with_kind(kind: Kind) -> Self {
        Self { block: Block::new(kind) }
    }

    /// The kind given at creation.
    pub(crate) fn kind(&self) -> Kind {
        self.block.kind()
    }

    /// The block underneath.
    pub(crate) fn block(&self) -> &Block {
        &self.block
    }

    /// The block underneath, for the contents that are not entries: those of an intset.
    pub(crate) fn block_mut(&mut self) -> &mut Block {
        &mut self.block
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.block.count()
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entries as they are stored: a listpack without its 6-byte head and its end mark.
    pub fn entry_bytes(&self) -> &[u8] {
        self.block.content()
    }

    /// Bytes of the entries.
    pub fn byte_len(&self) -> usize {
        self.block.used()
    }

    /// Bytes that the same elements take in a Redis listpack: what Redis compares with its limits in bytes.
    pub fn listpack_bytes(&self) -> usize {
        self.byte_len() + LISTPACK_FRAME_BYTES
    }

    /// Bytes on the heap, as asked from the allocator.
    pub fn mem_bytes(&self) -> usize {
        self.block.mem_bytes()
    }

    /// The first entry.
    pub fn first(&self) -> Option<Pos> {
        (!self.is_empty()).then_some(Pos(0))
    }

    /// The last entry.
    pub fn last(&self) -> Option<Pos> {
        self.prev(self.end())
    }

    /// The position after the last entry; only for inserting there and for [`Packed::prev`].
    pub fn end(&self) -> Pos {
        Pos(self.byte_len())
    }

    /// The entry after `pos`.
    pub fn next(&self, pos: Pos) -> Option<Pos> {
        let at = after(self.entry_bytes(), pos.0);
        (at < self.byte_len()).then_some(Pos(at))
    }

    /// The entry before `pos`.
    pub fn prev(&self, pos: Pos) -> Option<Pos> {
        (pos.0 > 0).then(|| Pos(before(self.entry_bytes(), pos.0)))
    }

    /// The element at `pos`, which is not the end.
    pub fn at(&self, pos: Pos) -> Elem<'_> {
        decode(self.entry_bytes(), pos.0).0
    }

    /// The entry with this index, walked to from the nearer end.
    pub fn seek(&self, index: usize) -> Option<Pos> {
        let (len, entries) = (self.len(), self.entry_bytes());
        if index >= len {
            return None;
        }
        if index <= len / 2 {
            return Some(Pos((0..index).fold(0, |at, _| after(entries, at))));
        }
        Some(Pos((index..len).fold(entries.len(), |end, _| before(entries, end))))
    }

    /// The element with this index.
    pub fn get(&self, index: usize) -> Option<Elem<'_>> {
        self.seek(index).map(|pos| self.at(pos))
    }

    /// The first entry equal to `wanted` at `from` or after it, looking at every `step`-th entry (2: the keys of pairs).
    pub fn find(&self, wanted: &Encoded<'_>, from: Pos, step: usize) -> Option<Pos> {
        let entries = self.entry_bytes();
        let mut at = from.0;
        while at < entries.len() {
            if wanted.is_at(&entries[at..]) {
                return Some(Pos(at));
            }
            for _ in 0..step.max(1) {
                if at < entries.len() {
                    at = after(entries, at);
                }
            }
        }
        None
    }

    /// Puts an element in front of the entry at `pos`, or at the end.
    pub fn insert(&mut self, pos: Pos, elem: &Encoded<'_>) {
        self.put(pos.0, 0, elem, self.len() + 1);
    }

    /// Appends an element.
    pub fn push_back<'e>(&mut self, elem: impl Into<Elem<'e>>) {
        self.insert(self.end(), &Encoded::new(elem));
    }

    /// Prepends an element.
    pub fn push_front<'e>(&mut self, elem: impl Into<Elem<'e>>) {
        self.insert(Pos(0), &Encoded::new(elem));
    }

    /// Replaces the element at `pos`; the position stays good.
    pub fn replace(&mut self, pos: Pos, elem: &Encoded<'_>) {
        let removed = after(self.entry_bytes(), pos.0) - pos.0;
        self.put(pos.0, removed, elem, self.len());
    }

    fn put(&mut self, at: usize, removed: usize, elem: &Encoded<'_>, count: usize) {
        let (back, size) = back_len(elem.data_len());
        self.block.splice(at..at + removed, &[elem.head(), elem.payload, &back[..size]], count);
    }

    /// Removes up to `count` elements from `pos` on; `pos` is then where the next entry, or the end, is.
    pub fn remove(&mut self, pos: Pos, count: usize) {
        let (mut end, mut removed) = (pos.0, 0);
        while removed < count && end < self.byte_len() {
            end = after(self.entry_bytes(), end);
            removed += 1;
        }
        self.block.splice(pos.0..end, &[], self.len() - removed);
    }

    /// Keeps the first `count` elements.
    pub fn truncate(&mut self, count: usize) {
        if let Some(Pos(at)) = self.seek(count) {
            self.block.truncate(at, count);
        }
    }

    /// The index of the element that begins closest behind the middle of the bytes, but 1 at least: where to split.
    pub fn index_at_half(&self) -> usize {
        let entries = self.entry_bytes();
        let (mut at, mut index) = (0, 0);
        while at < entries.len() / 2 {
            at = after(entries, at);
            index += 1;
        }
        index.min(self.len().saturating_sub(1)).max(1)
    }

    /// Moves the elements from index `count` on into a new sequence.
    pub fn split_off(&mut self, count: usize) -> Self {
        let mut tail = Self::default();
        if let Some(Pos(at)) = self.seek(count) {
            tail.block.splice(0..0, &[&self.entry_bytes()[at..]], self.len() - count);
            self.block.truncate(at, count);
        }
        tail
    }

    /// Appends the elements of another sequence.
    pub fn append(&mut self, other: &Self) {
        let end = self.byte_len();
        self.block.splice(end..end, &[other.entry_bytes()], self.len() + other.len());
    }

    /// Removes the elements equal to `wanted`: leaves the first `skip` of them, removes at most `max`. Returns how many went.
    /// One pass, whatever the number.
    pub fn remove_equal(&mut self, wanted: &Encoded<'_>, skip: usize, max: usize) -> usize {
        let (end, entry_len) = (self.byte_len(), wanted.entry_len());
        let (mut read, mut kept_from, mut write) = (0, 0, 0);
        let (mut seen, mut removed) = (0, 0);
        while read < end && removed < max {
            let is_equal = wanted.is_at(&self.entry_bytes()[read..]);
            let next = if is_equal { read + entry_len } else { after(self.entry_bytes(), read) };
            seen += usize::from(is_equal);
            if is_equal && seen > skip {
                // The entries since the last removed one close up behind those kept before.
                self.block.content_mut().copy_within(kept_from..read, write);
                write += read - kept_from;
                kept_from = next;
                removed += 1;
            }
            read = next;
        }
        self.block.splice(write..kept_from, &[], self.len() - removed);
        removed
    }

    /// How many elements equal `wanted`.
    pub fn count_equal(&self, wanted: &Encoded<'_>) -> usize {
        let (mut count, mut from) = (0, self.first());
        while let Some(pos) = from.and_then(|pos| self.find(wanted, pos, 1)) {
            count += 1;
            from = self.next(pos);
        }
        count
    }

    /// All elements, from either end.
    pub fn iter(&self) -> Iter<'_> {
        Iter { entries: self.entry_bytes(), front: 0, back: self.byte_len(), left: self.len() }
    }

    /// The elements from index `index` on.
    pub fn iter_from(&self, index: usize) -> Iter<'_> {
        match self.seek(index) {
            Some(Pos(front)) => Iter { front, left: self.len() - index, ..self.iter() },
            None => Iter { front: self.byte_len(), left: 0, ..self.iter() },
        }
    }

    /// The first `count` elements; with `.rev()` the walk backwards from index `count - 1`.
    pub fn iter_to(&self, count: usize) -> Iter<'_> {
        match self.seek(count) {
            Some(Pos(back)) => Iter { back, left: count, ..self.iter() },
            None => self.iter(),
        }
    }
}

impl<'e, E: Into<Elem<'e>>> FromIterator<E> for Packed {
    fn from_iter<I: IntoIterator<Item = E>>(elems: I) -> Self {
        let mut packed = Self::default();
        for elem in elems {
            packed.push_back(elem);
        }
        packed
    }
}

impl<'a> IntoIterator for &'a Packed {
    type Item = Elem<'a>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The elements of a [`Packed`], from either end.
#[derive(Debug, Clone, Default)]
pub struct Iter<'a> {
    entries: &'a [u8],
    front: usize,
    back: usize,
    left: usize,
}

impl<'a> Iterator for Iter<'a> {
    type Item = Elem<'a>;

    fn next(&mut self) -> Option<Elem<'a>> {
        self.left = self.left.checked_sub(1)?;
        let (elem, len) = decode(self.entries, self.front);
        self.front += len + back_len_size(len);
        Some(elem)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        self.back = before(self.entries, self.back);
        Some(decode(self.entries, self.back).0)
    }
}

impl ExactSizeIterator for Iter<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Elements of all encodings: short and long strings, and integers around each width's bounds.
    fn elem() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            4 => prop::collection::vec(any::<u8>(), 0..8),
            1 => (0usize..5000).prop_map(|len| vec![b'x'; len]),
            2 => any::<i64>().prop_map(|int| int.to_string().into_bytes()),
            2 => (0u32..63, -1i64..2).prop_map(|(bits, near)| ((1i64 << bits) + near).to_string().into_bytes()),
            2 => (0u32..63, -1i64..2).prop_map(|(bits, near)| (near - (1i64 << bits)).to_string().into_bytes()),
            3 => (0i64..4).prop_map(|int| int.to_string().into_bytes()),
        ]
    }

    fn owned<'a>(elems: impl Iterator<Item = Elem<'a>>) -> Vec<Vec<u8>> {
        elems.map(Elem::to_vec).collect()
    }

    #[test]
    fn entries_are_those_of_a_listpack() {
        let packed: Packed = [&b"5"[..], b"-1", b"abc", b"70000"].into_iter().collect();
        let expected =
            [&[5, 1][..], &[0xdf, 0xff, 2], &[0x83, b'a', b'b', b'c', 4], &[0xf2, 0x70, 0x11, 0x01, 4]];
        assert_eq!(packed.entry_bytes(), expected.concat());
        assert_eq!(packed.listpack_bytes(), packed.byte_len() + 7);
        let mut long = Packed::new();
        long.push_back(&[b'x'; 16_381][..]);
        assert_eq!(long.entry_bytes().len(), 5 + 16_381 + 3, "16386 needs three groups in a listpack");
    }

    #[test]
    fn a_needle_matches_whole_entries_only() {
        let packed: Packed = [&b"ab"[..], b"a", b"1", b"11", b""].into_iter().collect();
        for (index, text) in ["ab", "a", "1", "11", ""].iter().enumerate() {
            let found = packed.find(&Encoded::new(text.as_bytes()), Pos(0), 1);
            assert_eq!(found, packed.seek(index), "{text}");
        }
        assert_eq!(packed.find(&Encoded::new(&b"a"[..]), Pos(0), 2), None, "only even entries are looked at");
    }

    #[test]
    fn small_collections_stay_small() {
        let packed: Packed = (0..10).map(Elem::Int).collect();
        assert_eq!(packed.mem_bytes(), 32);
        assert_eq!(size_of::<Packed>(), 16);
    }

    #[derive(Debug, Clone)]
    enum Op {
        PushBack(Vec<u8>),
        PushFront(Vec<u8>),
        Insert(usize, Vec<u8>),
        Replace(usize, Vec<u8>),
        Remove(usize, usize),
        RemoveEqual(usize, usize, usize),
        Split(usize),
        Truncate(usize),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            4 => elem().prop_map(Op::PushBack),
            2 => elem().prop_map(Op::PushFront),
            2 => (any::<usize>(), elem()).prop_map(|(at, elem)| Op::Insert(at, elem)),
            2 => (any::<usize>(), elem()).prop_map(|(at, elem)| Op::Replace(at, elem)),
            1 => (any::<usize>(), 0usize..4).prop_map(|(at, count)| Op::Remove(at, count)),
            1 => (any::<usize>(), 0usize..3, 0usize..4).prop_map(|(at, skip, max)| Op::RemoveEqual(at, skip, max)),
            1 => any::<usize>().prop_map(Op::Split),
            1 => any::<usize>().prop_map(Op::Truncate),
        ]
    }

    fn apply(packed: &mut Packed, model: &mut Vec<Vec<u8>>, op: Op) {
        let len = model.len();
        match op {
            Op::PushBack(elem) => {
                packed.push_back(&elem[..]);
                model.push(elem);
            }
            Op::PushFront(elem) => {
                packed.push_front(&elem[..]);
                model.insert(0, elem);
            }
            Op::Insert(at, elem) => {
                let at = at % (len + 1);
                packed.insert(packed.seek(at).unwrap_or_else(|| packed.end()), &Encoded::new(&elem[..]));
                model.insert(at, elem);
            }
            Op::Replace(at, elem) if len > 0 => {
                packed.replace(packed.seek(at % len).unwrap(), &Encoded::new(&elem[..]));
                model[at % len] = elem;
            }
            Op::Remove(at, count) if len > 0 => {
                packed.remove(packed.seek(at % len).unwrap(), count);
                model.drain(at % len..(at % len + count).min(len));
            }
            Op::RemoveEqual(at, skip, max) if len > 0 => {
                let wanted = model[at % len].clone();
                assert_eq!(
                    packed.count_equal(&Encoded::new(&wanted[..])),
                    model.iter().filter(|elem| **elem == wanted).count()
                );
                let removed = packed.remove_equal(&Encoded::new(&wanted[..]), skip, max);
                let (mut seen, mut gone) = (0, 0);
                model.retain(|elem| {
                    seen += usize::from(*elem == wanted);
                    let goes = *elem == wanted && seen > skip && gone < max;
                    gone += usize::from(goes);
                    !goes
                });
                assert_eq!(removed, gone);
            }
            Op::Split(at) => {
                let tail = packed.split_off(at % (len + 1));
                assert_eq!(owned(tail.iter()), model[at % (len + 1)..]);
                packed.append(&tail);
            }
            Op::Truncate(at) => {
                packed.truncate(at % (len + 4));
                model.truncate(at % (len + 4));
            }
            Op::Replace(..) | Op::Remove(..) | Op::RemoveEqual(..) => {}
        }
    }

    proptest! {
        #[test]
        fn behaves_like_a_vector(ops in prop::collection::vec(op(), 0..60)) {
            let (mut packed, mut model) = (Packed::new(), Vec::new());
            for op in ops {
                apply(&mut packed, &mut model, op);
                prop_assert_eq!(packed.len(), model.len());
                prop_assert_eq!(owned(packed.iter()), model.clone());
                let backwards: Vec<_> = model.iter().rev().cloned().collect();
                prop_assert_eq!(owned(packed.iter().rev()), backwards);
                let bytes: usize = packed.iter().map(|elem| Encoded::new(elem).entry_len()).sum();
                prop_assert_eq!(packed.byte_len(), bytes);
                prop_assert!(packed.mem_bytes() >= packed.byte_len());
                prop_assert!(packed.mem_bytes() <= 2 * (packed.byte_len() + 16));
            }
            for (index, elem) in model.iter().enumerate() {
                prop_assert_eq!(packed.get(index).map(Elem::to_vec), Some(elem.clone()));
                prop_assert_eq!(packed.get(index).map(Elem::len), Some(elem.len()));
                prop_assert_eq!(owned(packed.iter_from(index)), &model[index..]);
                let mut to = model[..index].to_vec();
                to.reverse();
                prop_assert_eq!(owned(packed.iter_to(index).rev()), to);
                let first = model.iter().position(|other| other == elem);
                let found = packed.find(&Encoded::new(&elem[..]), Pos(0), 1);
                prop_assert_eq!(found, first.and_then(|first| packed.seek(first)));
            }
        }
    }
}

//! `List`: the list type, as one packed sequence while small and as a deque of them afterwards.
//!
//! Owns: the two encodings ("listpack", "quicklist"), the moments of conversion, and every operation on elements. Does
//! **not** own the key: an empty list is the keyspace's to delete. Conversions happen where Redis 7.2 has them
//! (`t_list.c`): growth is judged before a batch is pushed, shrinking below half of the limit after elements went.

mod iter;
mod quick;

#[cfg(test)]
mod tests;

use std::ops::Range;

pub use self::iter::Iter;
use self::quick::Quick;
use crate::limits::EncodingLimits;
use crate::packed::{Elem, Encoded, Packed};

/// Most elements of a listpack after one batch, whatever the size limit: Redis estimates a batch by the bytes of its
/// strings alone, so that a batch of empty strings passes any limit.
const PACKED_ELEMS_MAX: usize = 8192;
/// Bytes that a node with a limit on elements may take all the same (`SIZE_SAFETY_LIMIT` of `quicklist.c`).
const NODE_BYTES_SAFE: usize = 8192;

/// An end of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The head, index 0.
    Front,
    /// The tail.
    Back,
}

/// On which side of the pivot an insertion goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// In front of it.
    Before,
    /// Behind it.
    After,
}

/// How large one node may be; `list-max-listpack-size` in words.
#[derive(Debug, Clone, Copy)]
enum NodeLimit {
    Bytes(usize),
    Elems(usize),
}

impl NodeLimit {
    fn new(limits: &EncodingLimits) -> Self {
        match limits.list_max_listpack_size {
            size @ 0.. => Self::Elems(size.max(1) as usize),
            -1 => Self::Bytes(4 << 10),
            -2 => Self::Bytes(8 << 10),
            -3 => Self::Bytes(16 << 10),
            -4 => Self::Bytes(32 << 10),
            _ => Self::Bytes(64 << 10),
        }
    }

    /// Whether a listpack of this many bytes and elements is too large.
    fn is_exceeded(self, bytes: usize, elems: usize) -> bool {
        match self {
            Self::Bytes(max) => bytes > max,
            Self::Elems(max) => bytes > NODE_BYTES_SAFE || elems > max,
        }
    }

    /// Whether an element of this length stands alone in its node.
    fn is_large(self, len: usize) -> bool {
        match self {
            Self::Bytes(max) => len > max,
            Self::Elems(_) => len > NODE_BYTES_SAFE,
        }
    }

    /// Whether a node of a shrinking list is small enough to be a listpack again.
    fn is_under_half(self, node: &Packed) -> bool {
        match self {
            Self::Bytes(max) => node.listpack_bytes() <= max / 2,
            Self::Elems(max) => node.len() <= max / 2,
        }
    }
}

#[derive(Debug, Clone)]
enum Repr {
    Packed(Packed),
    Quick(Box<Quick>),
}

/// A list of byte strings. Ends are O(1) (O(node) bytes moved), an index is O(nodes), everything else is linear.
#[derive(Debug, Clone)]
pub struct List {
    repr: Repr,
}

const _: () = assert!(size_of::<List>() == 16, "lists lie inline in the keyspace's entries");

impl Default for List {
    fn default() -> Self {
        Self::new()
    }
}

impl List {
    /// An empty list; allocates nothing.
    pub fn new() -> Self {
        Self { repr: Repr::Packed(Packed::new()) }
    }

    /// The answer of `OBJECT ENCODING`: "listpack" or "quicklist".
    pub fn encoding(&self) -> &'static str {
        match &self.repr {
            Repr::Packed(_) => "listpack",
            Repr::Quick(_) => "quicklist",
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        match &self.repr {
            Repr::Packed(packed) => packed.len(),
            Repr::Quick(quick) => quick.len(),
        }
    }

    /// Whether there is no element: then the key has to go.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes on the heap. O(1).
    pub fn mem_bytes(&self) -> usize {
        match &self.repr {
            Repr::Packed(packed) => packed.mem_bytes(),
            Repr::Quick(quick) => quick.mem_bytes(),
        }
    }

    /// Work that freeing the list costs, in allocations: large ones are better freed off the path.
    pub fn free_effort(&self) -> usize {
        self.nodes().len()
    }

    /// The packed sequences that make up the list, in order: for DUMP, which copies their entries.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = &Packed> + '_ {
        let (one, many) = match &self.repr {
            Repr::Packed(packed) => (Some(packed), None),
            Repr::Quick(quick) => (None, Some(quick)),
        };
        let count = many.map_or(1, |quick| quick.nodes().len());
        (0..count).map(move |at| match (one, many) {
            (None, Some(quick)) => &quick.nodes()[at],
            (packed, _) => packed.expect("invariant: a list is either one node or a deque of them"),
        })
    }

    /// The index that a command's number means: negative ones count from the tail (-1 is the last).
    pub fn index(&self, number: i64) -> Option<usize> {
        let len = self.len();
        let index = if number < 0 {
            len.checked_sub(usize::try_from(number.unsigned_abs()).ok()?)?
        } else {
            usize::try_from(number).ok()?
        };
        (index < len).then_some(index)
    }

    /// The elements that a command's inclusive range means (`LRANGE`, `LTRIM`); empty when there are none.
    pub fn range(&self, start: i64, stop: i64) -> Range<usize> {
        let len = self.len() as i64;
        let from = if start < 0 { start.saturating_add(len).max(0) } else { start };
        let to = if stop < 0 { stop.saturating_add(len) } else { stop.min(len - 1) };
        if from > to || from >= len { 0..0 } else { from as usize..to as usize + 1 }
    }

    /// The element with this index.
    pub fn get(&self, index: usize) -> Option<Elem<'_>> {
        match &self.repr {
            Repr::Packed(packed) => packed.get(index),
            Repr::Quick(quick) => quick.get(index),
        }
    }

    /// The element at one end.
    pub fn peek(&self, end: End) -> Option<Elem<'_>> {
        match end {
            End::Front => self.get(0),
            End::Back => self.get(self.len().checked_sub(1)?),
        }
    }

    /// All elements in order.
    pub fn iter(&self) -> Iter<'_> {
        self.iter_from(0)
    }

    /// The elements from `index` on, towards the tail.
    pub fn iter_from(&self, index: usize) -> Iter<'_> {
        match &self.repr {
            Repr::Packed(packed) => Iter::new(packed.iter_from(index), None),
            Repr::Quick(quick) => quick.iter_from(index),
        }
    }

    /// The elements from `index` on, towards the head; nothing when there is no such element.
    pub fn iter_back_from(&self, index: usize) -> Iter<'_> {
        if index >= self.len() {
            return self.iter_from(index);
        }
        match &self.repr {
            Repr::Packed(packed) => Iter::backwards(packed.iter_to(index + 1), None),
            Repr::Quick(quick) => quick.iter_back_from(index),
        }
    }

    /// Pushes one element.
    pub fn push(&mut self, end: End, value: &[u8], limits: &EncodingLimits) {
        self.push_all(end, std::iter::once(value), limits);
    }

    /// Pushes the elements one after the other, as `LPUSH` and `RPUSH` do. The batch is judged as a whole first, which is
    /// why pushing its elements one by one may lead to another encoding.
    pub fn push_all<'v, I>(&mut self, end: End, values: I, limits: &EncodingLimits)
    where
        I: IntoIterator<Item = &'v [u8]>,
        I::IntoIter: Clone,
    {
        let values = values.into_iter();
        let (bytes, count) =
            values.clone().fold((0, 0), |(bytes, count), value| (bytes + value.len(), count + 1));
        self.before_growth(bytes, count, limits);
        for value in values {
            match &mut self.repr {
                Repr::Packed(packed) => match end {
                    End::Front => packed.push_front(value),
                    End::Back => packed.push_back(value),
                },
                Repr::Quick(quick) => quick.push(end, value, NodeLimit::new(limits)),
            }
        }
    }

    /// Takes an element from one end.
    pub fn pop(&mut self, end: End, limits: &EncodingLimits) -> Option<Vec<u8>> {
        let value = self.peek(end)?.to_vec();
        self.drop_from(end, 1, limits);
        Some(value)
    }

    /// Removes up to `count` elements from one end. Together with [`List::peek`] or [`List::iter`] it pops without copies.
    pub fn drop_from(&mut self, end: End, count: usize, limits: &EncodingLimits) {
        self.cut(end, count);
        self.after_removal(limits);
    }

    /// Moves an element from one end to the other and returns it; the encoding is that of the whole list, not of what is
    /// left in between.
    pub fn rotate(&mut self, from: End, to: End, limits: &EncodingLimits) -> Option<Vec<u8>> {
        let value = self.peek(from)?.to_vec();
        self.cut(from, 1);
        self.push(to, &value, limits);
        self.after_removal(limits);
        Some(value)
    }

    fn cut(&mut self, end: End, count: usize) {
        match &mut self.repr {
            Repr::Packed(packed) => match end {
                End::Front => drop(packed.first().map(|first| packed.remove(first, count))),
                End::Back => packed.truncate(packed.len().saturating_sub(count)),
            },
            Repr::Quick(quick) => quick.drop_from(end, count),
        }
    }

    /// Keeps the elements in `range` and removes all others (`LTRIM`; see [`List::range`]).
    pub fn keep(&mut self, range: Range<usize>, limits: &EncodingLimits) {
        let len = self.len();
        if range.is_empty() {
            self.drop_from(End::Front, len, limits);
        } else {
            self.drop_from(End::Back, len.saturating_sub(range.end), limits);
            self.drop_from(End::Front, range.start, limits);
        }
    }

    /// Replaces the element with this index; answers whether there is one. `LSET` calls it with any index that is out of
    /// range, too (see [`List::index`]): `usize::MAX` will do.
    pub fn set(&mut self, index: usize, value: &[u8], limits: &EncodingLimits) -> bool {
        // As in Redis, the encoding is adapted before the index is looked at, and so even when there is no such element.
        self.before_growth(value.len(), 1, limits);
        if index >= self.len() {
            return false;
        }
        match &mut self.repr {
            Repr::Packed(packed) => {
                if let Some(pos) = packed.seek(index) {
                    packed.replace(pos, &Encoded::new(value));
                }
            }
            Repr::Quick(quick) => quick.set(index, value, NodeLimit::new(limits)),
        }
        self.after_removal(limits);
        true
    }

    /// Inserts beside the first element equal to `pivot`; answers whether there is one (`LINSERT`).
    pub fn insert_beside(&mut self, side: Side, pivot: &[u8], value: &[u8], limits: &EncodingLimits) -> bool {
        // As in Redis, the encoding is adapted before the pivot is searched, and so even when there is none.
        self.before_growth(value.len(), 1, limits);
        let wanted = Elem::parse(pivot);
        let Some(at) = self.iter().position(|elem| elem == wanted) else { return false };
        match &mut self.repr {
            Repr::Packed(packed) => {
                let index = if side == Side::Before { at } else { at + 1 };
                let pos = packed.seek(index).unwrap_or_else(|| packed.end());
                packed.insert(pos, &Encoded::new(value));
            }
            Repr::Quick(quick) => quick.insert_beside(at, side, value, NodeLimit::new(limits)),
        }
        true
    }

    /// Removes elements equal to `value`, at most `max` of them counted from `end`; returns how many went. `LREM`'s count
    /// of 0 is `usize::MAX`, a negative one means [`End::Back`].
    pub fn remove_equal(&mut self, end: End, max: usize, value: &[u8], limits: &EncodingLimits) -> usize {
        let wanted = Encoded::new(value);
        let removed = match &mut self.repr {
            Repr::Packed(packed) => remove_from_node(packed, end, max, &wanted),
            Repr::Quick(quick) => quick.remove_equal(end, max, &wanted, NodeLimit::new(limits)),
        };
        if removed > 0 {
            self.after_removal(limits);
        }
        removed
    }

    /// The indices of elements equal to `value` (`LPOS`): from the `rank`-th match on (1 is the first; negative ones search
    /// from the tail), at most `count` (0: all), looking at no more than `elems_max` elements (0: all).
    pub fn positions(&self, value: &[u8], rank: i64, count: usize, elems_max: usize) -> Vec<usize> {
        let wanted = Elem::parse(value);
        let all_if_zero = |number: usize| if number == 0 { usize::MAX } else { number };
        let skip = usize::try_from(rank.unsigned_abs().saturating_sub(1)).unwrap_or(usize::MAX);
        let last = self.len().saturating_sub(1);
        let elems = if rank < 0 { self.iter_back_from(last) } else { self.iter() };
        elems
            .take(all_if_zero(elems_max))
            .enumerate()
            .filter(|(_, elem)| *elem == wanted)
            .skip(skip)
            .take(all_if_zero(count))
            .map(|(at, _)| if rank < 0 { last - at } else { at })
            .collect()
    }

    /// Becomes a deque of nodes when `count` more elements of `bytes` bytes together would be too many for one.
    fn before_growth(&mut self, bytes: usize, count: usize, limits: &EncodingLimits) {
        if let Repr::Packed(packed) = &mut self.repr {
            let (bytes, elems) = (packed.listpack_bytes().saturating_add(bytes), packed.len() + count);
            if NodeLimit::new(limits).is_exceeded(bytes, elems) || elems > PACKED_ELEMS_MAX {
                self.repr = Repr::Quick(Box::new(Quick::new(std::mem::take(packed))));
            }
        }
    }

    /// Becomes a listpack again when only one node is left and it is below half of the limit.
    fn after_removal(&mut self, limits: &EncodingLimits) {
        if let Repr::Quick(quick) = &mut self.repr
            && let Some(node) = quick.take_small(NodeLimit::new(limits))
        {
            self.repr = Repr::Packed(node);
        }
    }
}

/// Removes at most `max` elements equal to `wanted` from one node, counted from `end`.
fn remove_from_node(node: &mut Packed, end: End, max: usize, wanted: &Encoded<'_>) -> usize {
    let skip = match end {
        End::Front => 0,
        End::Back => node.count_equal(wanted).saturating_sub(max),
    };
    node.remove_equal(wanted, skip, max)
}

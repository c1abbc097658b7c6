//! `Block`: one allocation that holds a small collection, with its sizes in an 8-byte head.
//!
//! Owns: the allocation, its growth, and the head word (content length, element count, kind). Does **not** own the
//! meaning of the content: [`crate::packed`] and [`crate::intset`] do.
//!
//! Why not a `Vec`: three words inline and growth by doubling cost more than the elements of a small collection. A block is
//! two words inline; its allocation grows to the next size class of the common allocators (four classes per doubling), so
//! what it asks for is what the allocator would hand out anyway, and growth stays geometric.

use std::fmt;
use std::ops::Range;

use crate::thin::class_size;

/// Bytes of the head word in front of the content.
const HEAD_BYTES: usize = 8;
/// Bits of the head word that hold the content length.
const USED_BITS: u32 = 40;
/// Bits of the head word that hold the kind.
const KIND_BITS: u32 = 3;
/// Above this size a block that grows takes a sixteenth more than asked instead of a size class, and a fresh one takes
/// exactly what it needs: such blocks hold one large element, which hardly ever changes.
const CLASS_BYTES_MAX: usize = 64 * 1024;

/// Most content bytes of one block (1 TiB - 1).
pub(crate) const CONTENT_BYTES_MAX: usize = (1 << USED_BITS) - 1;
/// Most elements of one block. Collections that would pass it take their large encoding whatever the configuration says.
pub(crate) const COUNT_MAX: usize = (1 << (64 - USED_BITS - KIND_BITS)) - 1;

/// What the content of a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Packed elements.
    Plain = 0,
    /// Packed triples of field, value and expiry.
    Expiring = 1,
    /// Sorted 16-bit integers.
    Int16 = 2,
    /// Sorted 32-bit integers.
    Int32 = 3,
    /// Sorted 64-bit integers.
    Int64 = 4,
}

/// One allocation: head word, content, and room up to the size class. The empty plain block owns nothing.
#[derive(Clone, Default)]
pub(crate) struct Block {
    buf: Box<[u8]>,
}

impl Block {
    /// An empty block of one kind; allocates only when the kind is not [`Kind::Plain`].
    pub(crate) fn new(kind: Kind) -> Self {
        let mut block = Self::default();
        if kind != Kind::Plain {
            block.resize_to(HEAD_BYTES);
            block.set_head(0, 0, kind);
        }
        block
    }

    fn head(&self) -> u64 {
        self.buf.first_chunk::<HEAD_BYTES>().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    fn set_head(&mut self, used: usize, count: usize, kind: Kind) {
        assert!(
            used <= CONTENT_BYTES_MAX && count <= COUNT_MAX,
            "invariant: callers convert before a block is full"
        );
        let word = used as u64 | (kind as u64) << USED_BITS | (count as u64) << (USED_BITS + KIND_BITS);
        if let Some(head) = self.buf.first_chunk_mut::<HEAD_BYTES>() {
            *head = word.to_le_bytes();
        }
    }

    /// Bytes of content.
    pub(crate) fn used(&self) -> usize {
        (self.head() & CONTENT_BYTES_MAX as u64) as usize
    }

    /// Elements in the content, as the owner counted them.
    pub(crate) fn count(&self) -> usize {
        (self.head() >> (USED_BITS + KIND_BITS)) as usize
    }

    /// What the content is.
    pub(crate) fn kind(&self) -> Kind {
        match (self.head() >> USED_BITS) & ((1 << KIND_BITS) - 1) {
            0 => Kind::Plain,
            1 => Kind::Expiring,
            2 => Kind::Int16,
            3 => Kind::Int32,
            _ => Kind::Int64,
        }
    }

    /// The content.
    pub(crate) fn content(&self) -> &[u8] {
        match self.buf.split_first_chunk::<HEAD_BYTES>() {
            Some((_, rest)) => &rest[..self.used()],
            None => &[],
        }
    }

    /// The content, to be changed in place.
    pub(crate) fn content_mut(&mut self) -> &mut [u8] {
        let used = self.used();
        match self.buf.split_first_chunk_mut::<HEAD_BYTES>() {
            Some((_, rest)) => &mut rest[..used],
            None => &mut [],
        }
    }

    /// Bytes on the heap, as asked from the allocator.
    pub(crate) fn mem_bytes(&self) -> usize {
        self.buf.len()
    }

    /// Replaces `range` of the content by `pieces`, one after the other, and sets the element count.
    pub(crate) fn splice(&mut self, range: Range<usize>, pieces: &[&[u8]], count: usize) {
        let added: usize = pieces.iter().map(|piece| piece.len()).sum();
        let (used, kind) = (self.used(), self.kind());
        let used_after = used - range.len() + added;
        self.grow(HEAD_BYTES + used_after);
        if let Some((_, content)) = self.buf.split_first_chunk_mut::<HEAD_BYTES>() {
            content.copy_within(range.end..used, range.start + added);
            let mut at = range.start;
            for piece in pieces {
                content[at..at + piece.len()].copy_from_slice(piece);
                at += piece.len();
            }
        }
        self.set_head(used_after, count, kind);
        self.shrink();
    }

    /// Keeps the first `used` bytes, which hold `count` elements.
    pub(crate) fn truncate(&mut self, used: usize, count: usize) {
        self.set_head(used.min(self.used()), count, self.kind());
        self.shrink();
    }

    fn grow(&mut self, bytes: usize) {
        if bytes > self.buf.len() {
            let fresh = self.buf.is_empty();
            self.resize_to(if bytes <= CLASS_BYTES_MAX {
                class_size(bytes)
            } else if fresh {
                bytes
            } else {
                bytes + bytes / 16
            });
        }
    }

    /// Gives memory back once half of the allocation is unused.
    fn shrink(&mut self) {
        let (used, kind) = (self.used(), self.kind());
        let wanted = if used == 0 && kind == Kind::Plain { 0 } else { class_size(HEAD_BYTES + used) };
        if wanted <= self.buf.len() / 2 {
            self.resize_to(wanted);
        }
    }

    fn resize_to(&mut self, bytes: usize) {
        let mut buf = std::mem::take(&mut self.buf).into_vec();
        if bytes > buf.len() {
            buf.reserve_exact(bytes - buf.len());
        }
        buf.resize(bytes, 0);
        self.buf = buf.into_boxed_slice();
    }
}

impl PartialEq for Block {
    fn eq(&self, other: &Self) -> bool {
        self.kind() == other.kind() && self.content() == other.content()
    }
}

impl Eq for Block {}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Block({:?}, {} elements, {} bytes)", self.kind(), self.count(), self.used())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splice_moves_the_tail_and_keeps_the_kind() {
        let mut block = Block::new(Kind::Expiring);
        block.splice(0..0, &[b"abc", b"def"], 2);
        block.splice(1..4, &[b"-"], 3);
        assert_eq!((block.content(), block.count(), block.kind()), (&b"a-ef"[..], 3, Kind::Expiring));
        block.truncate(1, 1);
        assert_eq!((block.content(), block.count()), (&b"a"[..], 1));
    }

    #[test]
    fn memory_is_given_back() {
        let mut block = Block::default();
        assert_eq!(block.mem_bytes(), 0);
        block.splice(0..0, &[&[7; 1000]], 1);
        assert_eq!(block.mem_bytes(), 1024);
        block.splice(10..1000, &[], 1);
        assert_eq!(block.mem_bytes(), 32);
        block.truncate(0, 0);
        assert_eq!(block.mem_bytes(), 0);
    }

    #[test]
    fn one_large_element_takes_what_it_needs() {
        let mut block = Block::default();
        block.splice(0..0, &[&vec![1; 100_000]], 1);
        assert_eq!(block.mem_bytes(), 100_008);
    }
}

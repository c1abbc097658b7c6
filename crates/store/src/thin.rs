//! Items that own one heap block each and are as wide as a pointer.
//!
//! Owns: the raw blocks of set members, hash fields and scored members, and the size classes that in-place updates
//! rely on. Does **not** own tables or the keyspace's entries. One of the three files of the workspace's stores that
//! may be unsafe: a boxed slice is two words wide and a pair of them costs two blocks, which is what makes small
//! values expensive elsewhere.

use crate::table::{Item, Ref};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::fmt;
use std::ptr::{self, NonNull};

/// Blocks are aligned for the `u64` and `f64` in their headers.
const ALIGN: usize = 8;

/// The bytes that the allocator hands out for a request of `size`: jemalloc's size classes. Blocks are always
/// allocated by class, so that the slack is known without asking and a value of a similar size can be written in place.
#[inline]
pub(crate) const fn class_size(size: usize) -> usize {
    if size <= 8 {
        8
    } else if size <= 128 {
        (size + 15) & !15
    } else {
        let shift = usize::BITS - 1 - (size - 1).leading_zeros() - 2;
        let step = 1usize << shift;
        (size + step - 1) & !(step - 1)
    }
}

/// Allocates an uninitialised block of `class_size(size)` bytes.
#[inline]
pub(crate) fn allocate(size: usize) -> NonNull<u8> {
    let layout =
        Layout::from_size_align(class_size(size), ALIGN).expect("invariant: sizes stay far below isize::MAX");
    // SAFETY: the size is at least 8, so the layout is not empty.
    let block = unsafe { alloc(layout) };
    NonNull::new(block).unwrap_or_else(|| handle_alloc_error(layout))
}

/// Frees a block of `allocate(size)`.
///
/// # Safety
/// `block` came from [`allocate`] with a size of the same class, and is not used again.
#[inline]
pub(crate) unsafe fn free(block: NonNull<u8>, size: usize) {
    let layout =
        Layout::from_size_align(class_size(size), ALIGN).expect("invariant: sizes stay far below isize::MAX");
    // SAFETY: promised by the caller.
    unsafe { dealloc(block.as_ptr(), layout) }
}

/// Reads a `T` at `offset` of a block.
///
/// # Safety
/// The block has an initialised `T` there; alignment does not matter.
#[inline]
pub(crate) unsafe fn read<T: Copy>(block: NonNull<u8>, offset: usize) -> T {
    // SAFETY: promised by the caller.
    unsafe { block.as_ptr().add(offset).cast::<T>().read_unaligned() }
}

/// Writes a `T` at `offset` of a block.
///
/// # Safety
/// The block is that long; alignment does not matter.
#[inline]
pub(crate) unsafe fn write<T: Copy>(block: NonNull<u8>, offset: usize, value: T) {
    // SAFETY: promised by the caller.
    unsafe { block.as_ptr().add(offset).cast::<T>().write_unaligned(value) }
}

/// Copies `bytes` to `offset` of a block.
///
/// # Safety
/// The block is that long, and `bytes` does not lie in it.
#[inline]
pub(crate) unsafe fn put(block: NonNull<u8>, offset: usize, bytes: &[u8]) {
    // SAFETY: promised by the caller.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), block.as_ptr().add(offset), bytes.len()) }
}

/// The bytes at `offset..offset + len` of a block.
///
/// # Safety
/// They are initialised, and neither moved nor freed while `'a` lasts.
#[inline]
pub(crate) unsafe fn bytes<'a>(block: NonNull<u8>, offset: usize, len: usize) -> &'a [u8] {
    // SAFETY: promised by the caller.
    unsafe { std::slice::from_raw_parts(block.as_ptr().add(offset), len) }
}

/// The largest member, field or value that an item holds: its length is kept in 31 bits.
pub const ITEM_BYTES_MAX: usize = i32::MAX as usize;

fn len_u32(bytes: &[u8]) -> u32 {
    assert!(bytes.len() <= ITEM_BYTES_MAX, "invariant: arguments are bounded by proto-max-bulk-len");
    bytes.len() as u32
}

/// Implements what all thin items share: ownership of `ptr`, freeing, sending between threads.
macro_rules! thin {
    ($name:ident) => {
        // SAFETY: the item owns its block alone and has no interior mutability.
        unsafe impl Send for $name {}
        // SAFETY: as above: a shared reference only reads.
        unsafe impl Sync for $name {}

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: the block was allocated for exactly this size, and this is its only owner.
                unsafe { free(self.ptr, self.block_bytes()) }
            }
        }

        impl $name {
            /// Heap bytes that this item owns.
            #[inline]
            pub fn mem_bytes(&self) -> usize {
                class_size(self.block_bytes())
            }
        }

        // SAFETY: `into_raw` and `from_raw` hand the one owning pointer over and back; the key lies in the block.
        unsafe impl Item for $name {
            #[inline]
            fn into_raw(self) -> NonNull<u8> {
                std::mem::ManuallyDrop::new(self).ptr
            }
            #[inline]
            unsafe fn from_raw(ptr: NonNull<u8>) -> Self {
                Self { ptr }
            }
            #[inline]
            fn key(&self) -> &[u8] {
                $name::key(self)
            }
        }
    };
}

/// A byte string: a set's member. Block: `len: u32`, bytes.
#[repr(transparent)]
pub struct ThinKey {
    ptr: NonNull<u8>,
}

thin!(ThinKey);

impl ThinKey {
    const HEADER: usize = 4;

    /// Copies `key` into a block of its own.
    pub fn new(key: &[u8]) -> Self {
        let len = len_u32(key);
        let ptr = allocate(Self::HEADER + key.len());
        // SAFETY: the block is as long as header and key.
        unsafe {
            write(ptr, 0, len);
            put(ptr, Self::HEADER, key);
        }
        Self { ptr }
    }

    fn block_bytes(&self) -> usize {
        Self::HEADER + self.key().len()
    }

    /// The bytes.
    #[inline]
    pub fn key(&self) -> &[u8] {
        // SAFETY: written by `new`, and the block lives as long as `self`.
        unsafe { bytes(self.ptr, Self::HEADER, read::<u32>(self.ptr, 0) as usize) }
    }
}

impl Clone for ThinKey {
    fn clone(&self) -> Self {
        Self::new(self.key())
    }
}

impl fmt::Debug for ThinKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ThinKey").field(&self.key()).finish()
    }
}

/// A hash's field, its value and perhaps its expiry. Block: `key_len: u32`, `value_len: u32` with the expiry flag on
/// top, expiry in unix milliseconds (only with the flag), key, value.
#[repr(transparent)]
pub struct ThinPair {
    ptr: NonNull<u8>,
}

thin!(ThinPair);

impl ThinPair {
    const HEADER: usize = 8;
    const EXPIRES: u32 = 1 << 31;

    /// Copies field and value into one block.
    pub fn new(key: &[u8], value: &[u8], expires_at_ms: Option<u64>) -> Self {
        let (key_len, value_len) = (len_u32(key), len_u32(value));
        let header = Self::HEADER + if expires_at_ms.is_some() { 8 } else { 0 };
        let ptr = allocate(header + key.len() + value.len());
        // SAFETY: the block is as long as header, key and value.
        unsafe {
            write(ptr, 0, key_len);
            write(ptr, 4, value_len | if expires_at_ms.is_some() { Self::EXPIRES } else { 0 });
            if let Some(at) = expires_at_ms {
                write(ptr, Self::HEADER, at);
            }
            put(ptr, header, key);
            put(ptr, header + key.len(), value);
        }
        Self { ptr }
    }

    /// Offset of the key, length of the key, length of the value.
    #[inline]
    fn parts(&self) -> (usize, usize, usize) {
        // SAFETY: the header was written by `new`.
        let (key_len, value_len) = unsafe { (read::<u32>(self.ptr, 0), read::<u32>(self.ptr, 4)) };
        let header = Self::HEADER + if value_len & Self::EXPIRES != 0 { 8 } else { 0 };
        (header, key_len as usize, (value_len & !Self::EXPIRES) as usize)
    }

    fn block_bytes(&self) -> usize {
        let (header, key_len, value_len) = self.parts();
        header + key_len + value_len
    }

    /// The field's name.
    #[inline]
    pub fn key(&self) -> &[u8] {
        let (header, key_len, _) = self.parts();
        // SAFETY: written by `new`, and the block lives as long as `self`.
        unsafe { bytes(self.ptr, header, key_len) }
    }

    /// The field's value.
    #[inline]
    pub fn value(&self) -> &[u8] {
        let (header, key_len, value_len) = self.parts();
        // SAFETY: written by `new` or `set_value`, and the block lives as long as `self`.
        unsafe { bytes(self.ptr, header + key_len, value_len) }
    }

    /// When the field expires, in unix milliseconds.
    #[inline]
    pub fn expires_at_ms(&self) -> Option<u64> {
        // SAFETY: the flag says that `new` wrote the expiry.
        unsafe { (read::<u32>(self.ptr, 4) & Self::EXPIRES != 0).then(|| read(self.ptr, Self::HEADER)) }
    }

    /// Replaces the value and keeps the expiry; in place when the block's class is the same.
    pub fn set_value(&mut self, value: &[u8]) {
        let (header, key_len, value_len) = self.parts();
        let (old, new) = (header + key_len + value_len, header + key_len + value.len());
        if class_size(old) != class_size(new) {
            *self = Self::new(self.key(), value, self.expires_at_ms());
            return;
        }
        // SAFETY: the block has room for `new` bytes, and `value` cannot borrow from it while `self` is borrowed mutably.
        unsafe {
            write(self.ptr, 4, len_u32(value) | (read::<u32>(self.ptr, 4) & Self::EXPIRES));
            put(self.ptr, header + key_len, value);
        }
    }

    /// Sets or removes the expiry.
    pub fn set_expires_at_ms(&mut self, at_ms: Option<u64>) {
        match (self.expires_at_ms(), at_ms) {
            // SAFETY: the flag is set, so the header has the place.
            (Some(_), Some(at)) => unsafe { write(self.ptr, Self::HEADER, at) },
            (None, None) => {}
            _ => *self = Self::new(self.key(), self.value(), at_ms),
        }
    }
}

impl<'a> Ref<'a, ThinPair> {
    /// The field's value for as long as the table is borrowed.
    #[inline]
    pub fn value_bytes(&self) -> &'a [u8] {
        let value = self.value();
        // SAFETY: the value lies in the item's heap block, which nothing changes or frees while the table is borrowed
        // for `'a`.
        unsafe { std::slice::from_raw_parts(value.as_ptr(), value.len()) }
    }
}

impl Clone for ThinPair {
    fn clone(&self) -> Self {
        Self::new(self.key(), self.value(), self.expires_at_ms())
    }
}

impl fmt::Debug for ThinPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThinPair").field("key", &self.key()).field("value", &self.value()).finish()
    }
}

/// A sorted set's member and score. Block: `score: f64`, `len: u32`, bytes.
#[repr(transparent)]
pub struct ThinScored {
    ptr: NonNull<u8>,
}

thin!(ThinScored);

impl ThinScored {
    const HEADER: usize = 12;

    /// Copies `member` into a block of its own.
    pub fn new(member: &[u8], score: f64) -> Self {
        let len = len_u32(member);
        let ptr = allocate(Self::HEADER + member.len());
        // SAFETY: the block is as long as header and member.
        unsafe {
            write(ptr, 0, score);
            write(ptr, 8, len);
            put(ptr, Self::HEADER, member);
        }
        Self { ptr }
    }

    fn block_bytes(&self) -> usize {
        Self::HEADER + self.key().len()
    }

    /// The member.
    #[inline]
    pub fn key(&self) -> &[u8] {
        // SAFETY: written by `new`, and the block lives as long as `self`.
        unsafe { bytes(self.ptr, Self::HEADER, read::<u32>(self.ptr, 8) as usize) }
    }

    /// The score.
    #[inline]
    pub fn score(&self) -> f64 {
        // SAFETY: written by `new` or `set_score`.
        unsafe { read(self.ptr, 0) }
    }

    /// Changes the score in place.
    #[inline]
    pub fn set_score(&mut self, score: f64) {
        // SAFETY: the header has the place.
        unsafe { write(self.ptr, 0, score) }
    }
}

impl Clone for ThinScored {
    fn clone(&self) -> Self {
        Self::new(self.key(), self.score())
    }
}

impl fmt::Debug for ThinScored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThinScored").field("member", &self.key()).field("score", &self.score()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_jemallocs() {
        for (size, class) in [
            (1, 8),
            (8, 8),
            (9, 16),
            (17, 32),
            (113, 128),
            (128, 128),
            (129, 160),
            (160, 160),
            (161, 192),
            (256, 256),
            (257, 320),
            (321, 384),
            (512, 512),
            (513, 640),
            (4096, 4096),
            (4097, 5120),
            (16385, 20480),
        ] {
            assert_eq!(class_size(size), class, "size {size}");
        }
    }

    #[test]
    fn a_pair_keeps_its_key_through_every_update() {
        let mut pair = ThinPair::new(b"field", b"v", None);
        for value in [&b""[..], b"v2", &[7; 300], b"x"] {
            pair.set_value(value);
            assert_eq!((pair.key(), pair.value(), pair.expires_at_ms()), (&b"field"[..], value, None));
            pair.set_expires_at_ms(Some(5));
            pair.set_expires_at_ms(Some(9));
            assert_eq!((pair.key(), pair.value(), pair.expires_at_ms()), (&b"field"[..], value, Some(9)));
            pair.set_expires_at_ms(None);
            assert_eq!(
                (pair.clone().key(), pair.value(), pair.expires_at_ms()),
                (&b"field"[..], value, None)
            );
        }
    }

    #[test]
    fn scored_and_keys() {
        let mut scored = ThinScored::new(b"m", 1.5);
        scored.set_score(-0.0);
        assert_eq!((scored.key(), scored.score().to_bits()), (&b"m"[..], (-0.0f64).to_bits()));
        assert_eq!(ThinKey::new(b"").key(), b"");
        assert_eq!(ThinKey::new(&[1; 1000]).clone().key(), &[1; 1000]);
    }
}

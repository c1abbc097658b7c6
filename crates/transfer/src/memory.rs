//! Memory that an engine may move bytes from and to.
//!
//! Owns: a [`MemoryRegion`], its mapping, and every access to it. Does **not** own names, addresses or permissions of
//! registered regions: [`crate::Registered`] has those.
//!
//! Other threads, other processes and network cards change a region at any time, so no reference into one is ever handed out.
//! Applications copy in and out, the kernel gets raw pointers, and both are checked against the region's length here. A
//! region is freed when the last handle is gone; transfers under way hold one.

use std::any::Any;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags};

/// A piece of memory with a stable place. Cheap to clone; the memory lives as long as any clone.
#[derive(Clone)]
pub struct MemoryRegion {
    mapping: Arc<Mapping>,
}

struct Mapping {
    start: NonNull<u8>,
    len: usize,
    /// What another process would map: shared memory only.
    file: Option<OwnedFd>,
    backing: Backing,
}

enum Backing {
    /// Mapped here, unmapped on drop.
    Mapped,
    /// Somebody else's, kept alive by this.
    Kept { _owner: Box<dyn Any + Send + Sync> },
}

// SAFETY: the mapping is plain bytes that stay where they are until it is dropped. Every access goes through atomics or the
// kernel, so that threads may share it.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        if let Backing::Mapped = self.backing {
            // SAFETY: `start` and `len` are what mmap gave, nobody else unmaps them, and nobody has a handle any more.
            let unmapped = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
            debug_assert!(unmapped.is_ok(), "invariant: a whole mapping can be unmapped");
        }
    }
}

impl MemoryRegion {
    /// Zeroed private memory of so many bytes. Pages come as they are touched.
    ///
    /// # Errors
    /// `len` is zero, or the system has no room for it.
    pub fn allocate(len: usize) -> io::Result<Self> {
        if len == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a memory region has at least one byte"));
        }
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new anonymous mapping overlaps nothing.
        let start =
            unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), len, protection, MapFlags::PRIVATE) }?;
        Self::of(start.cast(), len, None, Backing::Mapped)
    }

    /// The bytes of a vector, without copying them. Its spare capacity is not part of the region.
    ///
    /// # Errors
    /// The vector is empty.
    pub fn from_vec(bytes: Vec<u8>) -> io::Result<Self> {
        if bytes.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a memory region has at least one byte"));
        }
        // Leaked and rebuilt when the region goes: in between, the only way to the bytes is the pointer.
        let leaked = Box::leak(bytes.into_boxed_slice());
        let (start, len) = (leaked.as_mut_ptr(), leaked.len());
        Self::of(
            start,
            len,
            None,
            Backing::Kept { _owner: Box::new(Leaked { start: start.expose_provenance(), len }) },
        )
    }

    /// A mapping that was made elsewhere: shared memory, with the descriptor that another process would map.
    /// `owner` keeps it alive and is dropped with the last handle.
    ///
    /// # Errors
    /// `len` is zero or `start` is null.
    ///
    /// # Safety
    /// `start..start + len` is mapped, readable and writable until `owner` is dropped, and no Rust reference into it exists
    /// meanwhile.
    pub unsafe fn from_mapping(
        start: *mut u8,
        len: usize,
        file: Option<OwnedFd>,
        owner: Box<dyn Any + Send + Sync>,
    ) -> io::Result<Self> {
        Self::of(start, len, file, Backing::Kept { _owner: owner })
    }

    fn of(start: *mut u8, len: usize, file: Option<OwnedFd>, backing: Backing) -> io::Result<Self> {
        match NonNull::new(start) {
            Some(start) if len > 0 => Ok(Self { mapping: Arc::new(Mapping { start, len, file, backing }) }),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "a memory region has at least one byte")),
        }
    }

    /// Bytes. At least one.
    #[expect(clippy::len_without_is_empty, reason = "a region is never empty")]
    pub fn len(&self) -> usize {
        self.mapping.len
    }

    /// The descriptor of shared memory that backs the region, if any.
    pub fn file(&self) -> Option<BorrowedFd<'_>> {
        self.mapping.file.as_ref().map(AsFd::as_fd)
    }

    /// Where the region begins in this process. For transports: what they do with it is theirs to answer for, and it is
    /// valid while a handle lives.
    pub fn as_ptr(&self) -> *mut u8 {
        self.mapping.start.as_ptr()
    }

    /// Whether the range lies within.
    pub fn has(&self, offset: usize, len: usize) -> bool {
        offset.checked_add(len).is_some_and(|end| end <= self.mapping.len)
    }

    /// Copies bytes in. Others may see them arrive in pieces.
    ///
    /// # Errors
    /// They do not fit; nothing was written.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), OutOfRegion> {
        let place = self.place(offset, bytes.len())?;
        let (head, words) = split(place, bytes.len());
        let (first, rest) = bytes.split_at(head);
        for (at, byte) in first.iter().enumerate() {
            self.byte(offset + at).store(*byte, Ordering::Relaxed);
        }
        let (middle, last) = rest.split_at(words * WORD);
        for (at, word) in middle.as_chunks::<WORD>().0.iter().enumerate() {
            self.word(offset + head + at * WORD).store(u64::from_ne_bytes(*word), Ordering::Relaxed);
        }
        for (at, byte) in last.iter().enumerate() {
            self.byte(offset + head + words * WORD + at).store(*byte, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Copies bytes out. What others write meanwhile may be there in part.
    ///
    /// # Errors
    /// The range is not within; nothing was read.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) -> Result<(), OutOfRegion> {
        let place = self.place(offset, bytes.len())?;
        let (head, words) = split(place, bytes.len());
        let (first, rest) = bytes.split_at_mut(head);
        for (at, byte) in first.iter_mut().enumerate() {
            *byte = self.byte(offset + at).load(Ordering::Relaxed);
        }
        let (middle, last) = rest.split_at_mut(words * WORD);
        for (at, word) in middle.as_chunks_mut::<WORD>().0.iter_mut().enumerate() {
            *word = self.word(offset + head + at * WORD).load(Ordering::Relaxed).to_ne_bytes();
        }
        for (at, byte) in last.iter_mut().enumerate() {
            *byte = self.byte(offset + head + words * WORD + at).load(Ordering::Relaxed);
        }
        Ok(())
    }

    /// A copy of a range.
    ///
    /// # Errors
    /// The range is not within.
    pub fn to_vec(&self, offset: usize, len: usize) -> Result<Vec<u8>, OutOfRegion> {
        self.place(offset, len)?;
        let mut bytes = vec![0; len];
        self.read(offset, &mut bytes)?;
        Ok(bytes)
    }

    /// CRC-32C (Castagnoli) of a range, read once in blocks.
    ///
    /// # Errors
    /// The range is not within.
    pub fn crc32c(&self, offset: usize, len: usize) -> Result<u32, OutOfRegion> {
        self.place(offset, len)?;
        let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi);
        let mut block = [0; 4096];
        let (mut at, end) = (offset, offset + len);
        while at < end {
            let part = (end - at).min(block.len());
            self.read(at, &mut block[..part])?;
            digest.update(&block[..part]);
            at += part;
        }
        Ok(digest.finalize() as u32)
    }

    /// For the kernel: a range as one entry of `readv` or `writev`.
    pub(crate) fn entry(&self, offset: usize, len: usize) -> Result<libc::iovec, OutOfRegion> {
        let place = self.place(offset, len)?;
        Ok(libc::iovec { iov_base: place.cast(), iov_len: len })
    }

    /// The range's place, if it lies within.
    fn place(&self, offset: usize, len: usize) -> Result<*mut u8, OutOfRegion> {
        if self.has(offset, len) {
            Ok(self.as_ptr().wrapping_add(offset))
        } else {
            Err(OutOfRegion { offset, len, region: self.mapping.len })
        }
    }

    fn byte(&self, offset: usize) -> &AtomicU8 {
        debug_assert!(offset < self.mapping.len);
        // SAFETY: the callers checked the range; the mapping is valid while `self` is, and is only accessed by atomics
        // and by the kernel.
        unsafe { AtomicU8::from_ptr(self.as_ptr().add(offset)) }
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(self.has(offset, WORD));
        // SAFETY: as for `byte`, and `split` chose places that are multiples of a word.
        unsafe { AtomicU64::from_ptr(self.as_ptr().add(offset).cast()) }
    }
}

impl fmt::Debug for MemoryRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_shared = self.mapping.file.is_some();
        f.debug_struct("MemoryRegion").field("len", &self.mapping.len).field("is_shared", &is_shared).finish()
    }
}

const WORD: usize = size_of::<u64>();

/// Bytes before the first whole word, and whole words after them.
fn split(place: *mut u8, len: usize) -> (usize, usize) {
    let head = place.align_offset(WORD).min(len);
    (head, (len - head) / WORD)
}

/// A boxed slice that a region uses.
struct Leaked {
    start: usize,
    len: usize,
}

impl Drop for Leaked {
    fn drop(&mut self) {
        let start = std::ptr::with_exposed_provenance_mut::<u8>(self.start);
        // SAFETY: `start` and `len` are those of a leaked boxed slice, and nobody has a handle any more.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(start, self.len)) });
    }
}

/// A range that is not within its region. The caller's mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{len} bytes at {offset} are not within a region of {region} bytes")]
pub struct OutOfRegion {
    /// Where the range begins.
    pub offset: usize,
    /// Its bytes.
    pub len: usize,
    /// The region's bytes.
    pub region: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_at_every_alignment() {
        let region = MemoryRegion::allocate(64).unwrap();
        for offset in 0..17 {
            for len in 0..40 {
                let bytes: Vec<u8> = (0..len).map(|at| (at * 7 + offset) as u8).collect();
                region.write(offset, &bytes).unwrap();
                assert_eq!(region.to_vec(offset, len).unwrap(), bytes);
            }
        }
    }

    #[test]
    fn a_range_beyond_the_end_is_refused_and_changes_nothing() {
        let region = MemoryRegion::from_vec(vec![7; 16]).unwrap();
        assert!(region.write(10, &[0; 7]).is_err() && region.read(17, &mut []).is_err());
        assert!(region.write(usize::MAX, &[0; 2]).is_err() && region.to_vec(0, usize::MAX).is_err());
        assert!(region.entry(16, 1).is_err());
        assert_eq!(region.to_vec(0, 16).unwrap(), [7; 16]);
        assert!(MemoryRegion::allocate(0).is_err() && MemoryRegion::from_vec(Vec::new()).is_err());
    }

    #[test]
    fn the_check_sum_is_castagnolis() {
        let region = MemoryRegion::from_vec(b"x123456789".to_vec()).unwrap();
        assert_eq!(region.crc32c(1, 9).unwrap(), 0xe306_9283);
    }
}

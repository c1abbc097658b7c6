//! Memory that processes share: how it is made, given away and mapped.
//!
//! Owns: memory files and their seals, mappings of peers' files, and every access to what is mapped. Does **not** own who may
//! have what ([`super::rail`]).
//!
//! A peer's descriptor is believed nothing. It must be a memory file that can never shrink, so that no access to the mapping can
//! fault, and at least as long as the peer said. What may only be read is mapped for reading only, so that the processor refuses
//! what the code did not.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

use crate::memory::MemoryRegion;
use crate::regions::Range;

use super::copy::{self, Stores};

/// `f_type` of memory files that are not made of huge pages. Those can run out of pages, which faults.
const TMPFS_MAGIC: u64 = 0x0102_1994;

impl MemoryRegion {
    /// Zeroed memory of so many bytes that other processes of this host can be given, in full or for reading only. Pages come as
    /// they are touched.
    ///
    /// # Errors
    /// `len` is zero, or the system has no descriptor or no room for it.
    pub fn shared(len: usize) -> io::Result<Self> {
        let file = memory_file("towline-region", len)?;
        let mapped = Mapped::new(file.as_fd(), len, Use::ReadWrite)?;
        let start = mapped.start.as_ptr();
        // SAFETY: the mapping is as long as it says, lives as long as its owner, and is touched by atomics, the kernel
        // and copies only.
        unsafe { Self::from_mapping(start, len, Some(file), Box::new(mapped)) }
    }

    /// Copies bytes to another region, or within one. Where the two ranges overlap, the bytes that arrive are a mixture of old ones
    /// and new ones.
    ///
    /// # Errors
    /// One of the ranges is not within its region; nothing was copied.
    pub fn copy_to(
        &self,
        offset: usize,
        to: &Self,
        to_offset: usize,
        len: usize,
    ) -> Result<(), crate::memory::OutOfRegion> {
        let from = self.entry(offset, len)?;
        let to = to.entry(to_offset, len)?;
        // SAFETY: `entry` checked both ranges, the regions are borrowed, and nobody has references into them.
        unsafe { copy::copy(from.iov_base.cast(), to.iov_base.cast(), len, Stores::of(len)) };
        Ok(())
    }
}

/// A sealed memory file: it can neither shrink nor grow.
pub(super) fn memory_file(name: &str, len: usize) -> io::Result<OwnedFd> {
    if len == 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a memory region has at least one byte"));
    }
    let file = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    rustix::fs::ftruncate(&file, len as u64)?;
    rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW)?;
    Ok(file)
}

/// What a mapping is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// Reads only.
    Read,
    /// Reads and writes.
    ReadWrite,
}

/// The descriptor to give a peer for this use. A file that is given for reading is sealed against every later writable mapping
/// and against `write`, since a peer of the same user could open it anew; mappings that exist stay as they are. So a file that
/// was once given for reading cannot be given for writing any more.
///
/// # Errors
/// The file cannot be sealed or opened anew, or was sealed before: it is given by other means.
pub(super) fn descriptor_for(file: BorrowedFd<'_>, usage: Use) -> io::Result<OwnedFd> {
    match usage {
        Use::Read => {
            rustix::fs::fcntl_add_seals(file, SealFlags::FUTURE_WRITE)?;
            let own = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
            Ok(rustix::fs::open(own, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
        }
        Use::ReadWrite => {
            let seals = rustix::fs::fcntl_get_seals(file)?;
            if seals.intersects(SealFlags::FUTURE_WRITE | SealFlags::WRITE) {
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file may only be read"));
            }
            Ok(rustix::io::fcntl_dupfd_cloexec(file, 0)?)
        }
    }
}

/// Where a range of ours is.
fn start_of(range: &Range) -> *mut u8 {
    range.memory().as_ptr().wrapping_add(range.offset())
}

/// A mapped memory file. Unmapped on drop.
#[derive(Debug)]
pub(super) struct Mapped {
    start: NonNull<u8>,
    len: usize,
    usage: Use,
}

// SAFETY: the mapping is plain bytes that stay where they are until it is dropped; they are only accessed by atomics, by the
// kernel and by `copy`, all of which threads may do at the same time.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// Maps the first `len` bytes of a file that anybody may have made.
    ///
    /// # Errors
    /// It is no memory file, may shrink, is shorter, or may not be used like this: the peer's fault. Or the system has no room.
    pub(super) fn new(file: BorrowedFd<'_>, len: usize, usage: Use) -> io::Result<Self> {
        let refuse = |why| Err(io::Error::new(io::ErrorKind::InvalidData, why));
        if rustix::fs::fstatfs(file)?.f_type as u64 != TMPFS_MAGIC {
            return refuse("not a memory file");
        }
        if !rustix::fs::fcntl_get_seals(file)?.contains(SealFlags::SHRINK) {
            return refuse("the file may shrink");
        }
        let size = u64::try_from(rustix::fs::fstat(file)?.st_size).unwrap_or(0);
        if len == 0 || size < len as u64 {
            return refuse("the file is shorter than it was said to be");
        }
        let protection = match usage {
            Use::Read => ProtFlags::READ,
            Use::ReadWrite => ProtFlags::READ | ProtFlags::WRITE,
        };
        // SAFETY: a new mapping at a place of the kernel's choice overlaps nothing.
        let start =
            unsafe { rustix::mm::mmap(std::ptr::null_mut(), len, protection, MapFlags::SHARED, file, 0) }?;
        let start = NonNull::new(start.cast()).expect("invariant: the kernel maps nothing at zero");
        Ok(Self { start, len, usage })
    }

    fn has(&self, offset: usize, len: usize) -> bool {
        offset.checked_add(len).is_some_and(|end| end <= self.len)
    }

    /// Copies a range of ours to `offset`. False if that is not within or may only be read; nothing was copied then.
    pub(super) fn write(&self, offset: usize, from: &Range, stores: Stores) -> bool {
        if !self.has(offset, from.len()) || self.usage != Use::ReadWrite {
            return false;
        }
        let source = start_of(from);
        // SAFETY: both ranges were checked, both mappings are borrowed, and nobody has references into them.
        unsafe { copy::copy(source, self.start.as_ptr().add(offset), from.len(), stores) };
        true
    }

    /// Copies what is at `offset` to a range of ours. False if it is not within; nothing was copied then.
    pub(super) fn read(&self, offset: usize, to: &Range, stores: Stores) -> bool {
        if !self.has(offset, to.len()) {
            return false;
        }
        // SAFETY: as for `write`.
        unsafe { copy::copy(self.start.as_ptr().add(offset), start_of(to), to.len(), stores) };
        true
    }

    /// The word at this index of a mapping of words, if it has so many.
    pub(super) fn word(&self, index: usize) -> Option<&AtomicU32> {
        let offset = index.checked_mul(size_of::<u32>())?;
        if !self.has(offset, size_of::<u32>()) || self.usage != Use::ReadWrite {
            return None;
        }
        // SAFETY: the word is within, aligned since mappings begin at pages, and only accessed as an atomic.
        Some(unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(offset).cast()) })
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: `start` and `len` are what mmap gave, nobody else unmaps them, and nobody borrows the mapping any more.
        let unmapped = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
        debug_assert!(unmapped.is_ok(), "invariant: a whole mapping can be unmapped");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::regions::{Access, Regions};

    fn range(memory: &MemoryRegion) -> Range {
        let regions = Arc::new(Regions::new(1, 1));
        let registered = regions.register("all", memory.clone(), Access::Local).unwrap();
        regions.local(registered.base(), memory.len() as u64).unwrap()
    }

    #[test]
    fn what_is_given_for_reading_cannot_be_written_by_any_means() {
        let memory = MemoryRegion::shared(8192).unwrap();
        let given = descriptor_for(memory.file().unwrap(), Use::Read).unwrap();
        let mapped = Mapped::new(given.as_fd(), 8192, Use::Read).unwrap();
        memory.write(100, b"seen").unwrap();
        let copy = MemoryRegion::allocate(8192).unwrap();
        assert!(mapped.read(0, &range(&copy), Stores::Cached) && copy.to_vec(100, 4).unwrap() == b"seen");
        assert!(!mapped.write(0, &range(&copy), Stores::Cached));
        assert!(mapped.word(0).is_none());
        // Not by the descriptor, nor by opening the file anew, nor by the one that its owner has.
        assert!(Mapped::new(given.as_fd(), 8192, Use::ReadWrite).is_err());
        let own = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&given));
        let anew = rustix::fs::open(own, OFlags::RDWR, Mode::empty());
        assert!(anew.is_err() || Mapped::new(anew.unwrap().as_fd(), 8192, Use::ReadWrite).is_err());
        assert!(rustix::io::pwrite(&given, b"x", 0).is_err());
        assert!(Mapped::new(memory.file().unwrap(), 8192, Use::ReadWrite).is_err());
        // Its owner still writes, and cannot give it for writing any more.
        memory.write(0, b"mine").unwrap();
        assert!(descriptor_for(memory.file().unwrap(), Use::ReadWrite).is_err());
    }

    #[test]
    fn a_file_that_could_fault_is_not_mapped() {
        let could = |file: &OwnedFd, len| Mapped::new(file.as_fd(), len, Use::Read).unwrap_err().kind();
        let loose = rustix::fs::memfd_create("loose", MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::ftruncate(&loose, 4096).unwrap();
        assert_eq!(could(&loose, 4096), io::ErrorKind::InvalidData);
        let short = memory_file("short", 4096).unwrap();
        assert_eq!(could(&short, 4097), io::ErrorKind::InvalidData);
        assert_eq!(could(&short, 0), io::ErrorKind::InvalidData);
        assert_eq!(could(&short, usize::MAX), io::ErrorKind::InvalidData);
        assert!(rustix::fs::ftruncate(&short, 0).is_err());
        let event = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap();
        assert_eq!(could(&event, 1), io::ErrorKind::InvalidData);
        assert!(MemoryRegion::shared(0).is_err());
    }

    #[test]
    fn a_range_beyond_the_mapping_is_refused() {
        let file = memory_file("words", 64).unwrap();
        let mapped = Mapped::new(file.as_fd(), 64, Use::ReadWrite).unwrap();
        let bytes = MemoryRegion::allocate(65).unwrap();
        let all = range(&bytes);
        assert!(!mapped.write(0, &all, Stores::Cached) && !mapped.read(0, &all, Stores::Cached));
        assert!(!mapped.write(usize::MAX, &all, Stores::Cached));
        assert!(mapped.word(15).is_some() && mapped.word(16).is_none() && mapped.word(usize::MAX).is_none());
    }

    /// Two regions, the second beginning anywhere relative to the first, and what a plain copy makes of them.
    fn check(len: usize, from: usize, to: usize, stores: Stores) {
        let content: Vec<u8> = (0..from + len + 64).map(|at| (at * 31 + at / 251) as u8).collect();
        let mut expected = vec![0xee; to + len + 64];
        expected[to..to + len].copy_from_slice(&content[from..from + len]);
        let source = MemoryRegion::from_vec(content).unwrap();
        let sink = MemoryRegion::from_vec(vec![0xee; to + len + 64]).unwrap();
        let (source_at, sink_at) = (source.as_ptr().wrapping_add(from), sink.as_ptr().wrapping_add(to));
        // SAFETY: both regions are 64 bytes longer than what is touched.
        unsafe { copy::copy(source_at, sink_at, len, stores) };
        assert!(sink.to_vec(0, to + len + 64).unwrap() == expected, "{len} bytes from {from} to {to}");
    }

    #[test]
    fn every_short_length_is_copied_at_every_alignment() {
        for len in (0..300).chain([511, 512, 513, 4095, 4096, 4097]) {
            for (from, to) in [(0, 0), (1, 0), (0, 1), (31, 33), (7, 4090)] {
                check(len, from, to, Stores::Cached);
                check(len, from, to, Stores::Streaming);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn any_copy_is_a_plain_copy(
            len in 0_usize..40_000, from in 0_usize..5_000, to in 0_usize..5_000, streams in any::<bool>()
        ) {
            check(len, from, to, if streams { Stores::Streaming } else { Stores::Cached });
        }
    }
}

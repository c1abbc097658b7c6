//! Gathered reads and writes of sockets, straight from and to registered memory.
//!
//! Owns the two system calls that take raw pointers, since no Rust reference to memory may exist that others change. Does
//! **not** own any decision.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::memory::OutOfRegion;
use crate::regions::Range;

/// Pieces of one system call at most; the kernel allows 1,024.
pub(crate) const PIECES_MAX: usize = 64;

/// Pieces of memory for one system call. They live as long as what they were made of.
#[derive(Default)]
pub(crate) struct Pieces<'a> {
    entries: Vec<libc::iovec>,
    bytes: usize,
    of: PhantomData<&'a mut [u8]>,
}

impl<'a> Pieces<'a> {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.entries.len() >= PIECES_MAX
    }

    /// Bytes of all pieces.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The rest of a range of registered memory from `at` on.
    pub(crate) fn range(&mut self, range: &'a Range, at: usize) -> Result<(), OutOfRegion> {
        let left = range.len().saturating_sub(at);
        self.push(range.memory().entry(range.offset() + at, left)?);
        Ok(())
    }

    /// Bytes to write.
    pub(crate) fn source(&mut self, bytes: &'a [u8]) {
        self.push(libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() });
    }

    /// Bytes to read into.
    pub(crate) fn sink(&mut self, bytes: &'a mut [u8]) {
        self.push(libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() });
    }

    fn push(&mut self, entry: libc::iovec) {
        if entry.iov_len > 0 {
            self.bytes += entry.iov_len;
            self.entries.push(entry);
        }
    }

    fn count(&self) -> libc::c_int {
        self.entries.len().min(PIECES_MAX) as libc::c_int
    }
}

/// Writes what the socket takes of pieces made by [`Pieces::range`] and [`Pieces::source`].
///
/// # Errors
/// Those of the system, [`io::ErrorKind::WouldBlock`] among them.
pub(crate) fn write(socket: BorrowedFd<'_>, pieces: &Pieces<'_>) -> io::Result<usize> {
    // SAFETY: a zeroed msghdr is one without address and control data.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = pieces.entries.as_ptr().cast_mut();
    message.msg_iovlen = pieces.count() as _;
    // SAFETY: every entry is memory that lives as long as `pieces`' lifetime; the kernel only reads it.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) };
    size(sent)
}

/// Reads what the socket has into pieces made by [`Pieces::range`] and [`Pieces::sink`].
///
/// # Errors
/// Those of the system, [`io::ErrorKind::WouldBlock`] among them.
pub(crate) fn read(socket: BorrowedFd<'_>, pieces: &Pieces<'_>) -> io::Result<usize> {
    // SAFETY: every entry is writable memory that lives as long as `pieces`' lifetime: registered memory, to which no Rust
    // reference exists, or a slice that `sink` borrowed for writing.
    let read = unsafe { libc::readv(socket.as_raw_fd(), pieces.entries.as_ptr(), pieces.count()) };
    size(read)
}

fn size(result: libc::ssize_t) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

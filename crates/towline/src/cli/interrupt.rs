//! Ctrl-C as something that can be waited for, next to a socket.
//!
//! Owns the signal's pipe. Installed in the REPL and in long scans only: elsewhere Ctrl-C ends the process, as usual.

use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// Becomes readable when Ctrl-C was pressed.
#[derive(Debug)]
pub(crate) struct Interrupt {
    pipe: UnixStream,
}

impl Interrupt {
    /// Takes over SIGINT for the rest of the process's life.
    ///
    /// # Errors
    /// The system has no descriptors left.
    pub(crate) fn install() -> io::Result<Self> {
        let (pipe, end) = UnixStream::pair()?;
        pipe.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(signal_hook::consts::SIGINT, end)?;
        Ok(Self { pipe })
    }

    /// Whether Ctrl-C was pressed since the last call.
    pub(crate) fn take(&self) -> bool {
        let mut bytes = [0; 64];
        let mut is_set = false;
        // Nothing to read is an error here (would block), which ends the loop as well as any other does.
        while matches!((&self.pipe).read(&mut bytes), Ok(count) if count > 0) {
            is_set = true;
        }
        is_set
    }
}

impl AsFd for Interrupt {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

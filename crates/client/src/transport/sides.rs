//! The two sides of a socket, which are used independently.
//!
//! Owns: writing without a task, by others than the owner of the connection. Does **not** own the order of writers: who
//! may write when is the engine's to decide.

use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::net::{TcpStream, UnixStream, tcp, unix};

/// Reading belongs to the owner of the stream.
pub(super) enum ReadSide {
    Tcp(tcp::OwnedReadHalf),
    Unix(unix::OwnedReadHalf),
}

/// The writing side of a socket without TLS. The socket is closed when this and its [`Stream`](super::Stream) are gone;
/// the peer sees the end of the stream when this is, or with the owner's `poll_shutdown`.
#[derive(Debug)]
pub struct WriteSide {
    pub(super) half: WriteHalf,
}

#[derive(Debug)]
pub(super) enum WriteHalf {
    Tcp(tcp::OwnedWriteHalf),
    Unix(unix::OwnedWriteHalf),
}

impl WriteSide {
    /// Writes what the kernel takes at once.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`]: nothing was taken; any other is the socket's end.
    #[inline]
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match &self.half {
            WriteHalf::Tcp(half) => half.try_write(bytes),
            WriteHalf::Unix(half) => half.try_write(bytes),
        }
    }

    /// As [`try_write`](Self::try_write), from several pieces.
    ///
    /// # Errors
    /// As [`try_write`](Self::try_write).
    #[inline]
    pub fn try_write_vectored(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match &self.half {
            WriteHalf::Tcp(half) => half.try_write_vectored(pieces),
            WriteHalf::Unix(half) => half.try_write_vectored(pieces),
        }
    }

    /// Waits until the kernel may take bytes. One task at a time: the last one that polled is woken.
    ///
    /// # Errors
    /// The runtime shuts down.
    #[inline]
    pub fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &self.half {
            WriteHalf::Tcp(half) => AsRef::<TcpStream>::as_ref(half).poll_write_ready(cx),
            WriteHalf::Unix(half) => AsRef::<UnixStream>::as_ref(half).poll_write_ready(cx),
        }
    }

    /// Writes with `write` as soon as the kernel takes something.
    #[inline]
    pub(super) fn poll(
        &self,
        cx: &mut Context<'_>,
        write: impl Fn(&Self) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.poll_ready(cx))?;
            match write(self) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }

    /// Makes closing the socket discard what the peer has not got yet: nothing that was given up arrives later.
    pub(crate) fn discard_on_close(&self) {
        if let WriteHalf::Tcp(half) = &self.half {
            // A socket that is gone already has nothing to discard.
            let _ = socket2::SockRef::from(AsRef::<TcpStream>::as_ref(half)).set_linger(Some(Duration::ZERO));
        }
    }

    pub(super) fn shut_down(&self) -> io::Result<()> {
        match &self.half {
            WriteHalf::Tcp(half) => {
                socket2::SockRef::from(AsRef::<TcpStream>::as_ref(half)).shutdown(Shutdown::Write)
            }
            WriteHalf::Unix(half) => {
                socket2::SockRef::from(AsRef::<UnixStream>::as_ref(half)).shutdown(Shutdown::Write)
            }
        }
    }
}

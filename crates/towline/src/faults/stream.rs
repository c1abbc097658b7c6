//! One socket of a connection: reads, writes that wait, and the ways to close it.
//!
//! Owns the socket. Does not own what is read and written, nor when it is closed.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest};
use tokio::net::TcpStream;
use tokio::time::timeout;
use towline_faults::link::Close;

/// How long a closing socket tries to deliver what was written, and then waits for its peer to close too. A second is long
/// for any test, and short against a leak.
const LINGER: Duration = Duration::from_secs(1);

/// A socket and the writes that wait for it.
#[derive(Debug)]
pub(super) struct Side {
    /// `None` when it is closed.
    stream: Option<TcpStream>,
    /// In order; each is one write.
    pending: VecDeque<Bytes>,
    /// Nothing is to be written behind what waits.
    is_finished: bool,
    /// The peer has ended, or is gone.
    pub(super) has_ended: bool,
}

impl Side {
    /// An open socket. Small writes leave at once, as pieces of a split have to.
    pub(super) fn new(stream: TcpStream) -> Self {
        // A socket without this option still works, only less exactly.
        let _ = stream.set_nodelay(true);
        Self { stream: Some(stream), pending: VecDeque::new(), is_finished: false, has_ended: false }
    }

    /// Whether writes wait for the peer to read.
    pub(super) fn is_full(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Waits until there is something to read. For ever if the socket is closed. Cancel safe.
    pub(super) async fn readable(&self) {
        match &self.stream {
            // An error shows in the read that follows.
            Some(stream) => drop(stream.readable().await),
            None => std::future::pending().await,
        }
    }

    /// Waits until writing is possible, if a write waits, else for ever. Cancel safe.
    pub(super) async fn writable(&self) {
        match &self.stream {
            Some(stream) if self.is_full() => drop(stream.writable().await),
            _ => std::future::pending().await,
        }
    }

    /// Waits until the peer has ended, without reading what it sent before. For ever if the socket is closed. Cancel safe.
    pub(super) async fn peer_ended(&self) {
        let Some(stream) = &self.stream else { return std::future::pending().await };
        loop {
            match stream.ready(Interest::READABLE).await {
                Ok(ready) if !ready.is_read_closed() => {
                    // Bytes that stay unread would be reported again at once: say that there are none, and wait for news.
                    let _ = stream.try_io(Interest::READABLE, || -> io::Result<()> {
                        Err(io::ErrorKind::WouldBlock.into())
                    });
                }
                _ => return,
            }
        }
    }

    /// Looks at the socket anew: what came while only [`Self::peer_ended`] looked is readable again.
    ///
    /// # Errors
    /// The system has no room for one more registration; the socket is closed then.
    pub(super) fn look_anew(&mut self) -> io::Result<()> {
        // Readiness is told once. Whoever registers again is told of all that is there.
        self.stream = match self.stream.take() {
            Some(stream) => Some(TcpStream::from_std(stream.into_std()?)?),
            None => None,
        };
        Ok(())
    }

    /// Reads what is there: `Ok(0)` is the end.
    ///
    /// # Errors
    /// `WouldBlock` when there is nothing yet; anything else is the end of the connection.
    pub(super) fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        match &self.stream {
            Some(stream) => stream.try_read(into),
            None => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Writes behind what waits. Dropped if the socket is closed.
    pub(super) fn write(&mut self, bytes: Bytes) {
        if self.stream.is_some() && !self.is_finished {
            self.pending.push_back(bytes);
        }
    }

    /// Ends the writing half behind what waits.
    pub(super) fn finish(&mut self) {
        self.is_finished = true;
    }

    /// Gives the kernel as much as it takes; how many bytes.
    ///
    /// # Errors
    /// The peer is gone; the socket is closed then.
    pub(super) fn flush(&mut self) -> io::Result<usize> {
        let Some(stream) = &self.stream else { return Ok(0) };
        let mut written = 0;
        while let Some(front) = self.pending.front_mut() {
            match stream.try_write(front) {
                Ok(count) => {
                    written += count;
                    bytes::Buf::advance(front, count);
                    if front.is_empty() {
                        self.pending.pop_front();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(written),
                Err(error) => {
                    self.stream = None;
                    self.pending.clear();
                    return Err(error);
                }
            }
        }
        if self.is_finished {
            // A peer that is gone needs no end.
            let _ = rustix::net::shutdown(stream, rustix::net::Shutdown::Write);
            self.is_finished = false;
        }
        Ok(written)
    }

    /// Closes the socket, after trying to deliver what waits. A reset comes at once; a FIN comes behind what was written, and
    /// the future ends when the peer has closed as well, or after [`LINGER`].
    pub(super) fn close(&mut self, how: Close) -> impl Future<Output = ()> + Send + 'static {
        // What does not leave now is lost with a reset, as it would be in a network.
        let _ = self.flush();
        let pending = std::mem::take(&mut self.pending);
        let stream = self.stream.take();
        let lingering = match how {
            Close::Reset => {
                if let Some(stream) = stream {
                    reset(stream);
                }
                None
            }
            Close::Fin => stream,
        };
        async move {
            if let Some(stream) = lingering {
                linger(stream, pending).await;
            }
        }
    }
}

/// Closes with a RST.
pub(super) fn reset(stream: TcpStream) {
    // Without the option it is a FIN: the socket was broken before.
    let _ = stream.set_zero_linger();
}

/// Closes with a FIN. A close with unread bytes would send a RST, so they are read until the peer closes.
pub(super) async fn linger(mut stream: TcpStream, pending: VecDeque<Bytes>) {
    let deliver = async {
        for bytes in &pending {
            stream.write_all(bytes).await?;
        }
        stream.shutdown().await
    };
    if !matches!(timeout(LINGER, deliver).await, Ok(Ok(()))) {
        return;
    }
    let drain = async {
        let mut dropped = [0; 4096];
        while matches!(stream.read(&mut dropped).await, Ok(1..)) {}
    };
    // Whether it closed or not, the socket goes.
    let _ = timeout(LINGER, drain).await;
}

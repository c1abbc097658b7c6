//! One connection: bytes out, frames in.
//!
//! Owns the socket, its buffers, and waiting for it together with Ctrl-C and a deadline. Does not own the handshake,
//! nor which frame answers which command (`session`).

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use rustix::event::{PollFd, PollFlags, Timespec};
use towline_resp::frame::{Decoder, Frame, encode_command};

use super::error::{CliError, reason};
use super::interrupt::Interrupt;
#[cfg(feature = "tls")]
use super::secure::Secure;
use super::target::Target;
use crate::tls::Connector;

/// Bytes read at a time: as much as a socket usually has ready.
const READ_BYTES: usize = 64 * 1024;

/// Idle time after which the system probes a TCP peer; 15 s finds a dead server soon, at next to no cost.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);

/// Frames taken at once from a connection that nobody asked; the rest waits for the next time.
const UNASKED_FRAMES_MAX: usize = 1024;

/// A byte stream to a server.
#[derive(Debug)]
pub(crate) enum Transport {
    /// TCP, without Nagle's delay.
    Tcp(TcpStream),
    /// A Unix stream socket.
    Unix(UnixStream),
    /// TLS over TCP; never blocks.
    #[cfg(feature = "tls")]
    Tls(Box<Secure>),
}

impl Transport {
    /// Within `patience`, if there is a bound: for each address of the host, and each step of TLS.
    fn open(target: &Target, tls: Option<&Connector>, patience: Option<Duration>) -> io::Result<Self> {
        match target {
            Target::Tcp { host, port } => {
                let stream = match patience {
                    None => TcpStream::connect((host.as_str(), *port))?,
                    Some(patience) => connect_within(host, *port, patience)?,
                };
                stream.set_nodelay(true)?;
                stream.set_read_timeout(patience)?;
                stream.set_write_timeout(patience)?;
                rustix::net::sockopt::set_socket_keepalive(&stream, true)?;
                rustix::net::sockopt::set_tcp_keepidle(&stream, KEEPALIVE_IDLE)?;
                match tls {
                    None => Ok(Self::Tcp(stream)),
                    #[cfg(feature = "tls")]
                    Some(tls) => Ok(Self::Tls(Box::new(Secure::shake(stream, tls, host)?))),
                    #[cfg(not(feature = "tls"))]
                    Some(never) => match *never {},
                }
            }
            Target::Unix(path) => UnixStream::connect(path).map(Self::Unix),
        }
    }

    fn set_nonblocking(&self, is_nonblocking: bool) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_nonblocking(is_nonblocking),
            Self::Unix(stream) => stream.set_nonblocking(is_nonblocking),
            #[cfg(feature = "tls")]
            Self::Tls(_) => Ok(()),
        }
    }

    /// Whether reads return at once, with an error when nothing is there, whatever was set.
    fn never_blocks(&self) -> bool {
        match self {
            Self::Tcp(_) | Self::Unix(_) => false,
            #[cfg(feature = "tls")]
            Self::Tls(_) => true,
        }
    }

    /// Whether bytes that were written wait for the system to take them.
    fn is_unsent(&self) -> bool {
        match self {
            Self::Tcp(_) | Self::Unix(_) => false,
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.is_unsent(),
        }
    }
}

impl Read for Transport {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(into),
            Self::Unix(stream) => stream.read(into),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.read(into),
        }
    }
}

impl Write for Transport {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.flush(),
            Self::Unix(stream) => stream.flush(),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.flush(),
        }
    }
}

impl AsFd for Transport {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.as_fd(),
        }
    }
}

/// What a socket can do at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Readiness {
    /// Bytes, or the end, can be read.
    pub(crate) can_read: bool,
    /// Bytes can be written.
    pub(crate) can_write: bool,
}

/// A connected socket and the reply under way.
#[derive(Debug)]
pub(crate) struct Connection {
    transport: Transport,
    decoder: Decoder,
    input: BytesMut,
    scratch: Box<[u8]>,
}

impl Connection {
    /// Connects, through TLS if it is given.
    ///
    /// # Errors
    /// [`CliError::Connect`].
    pub(crate) fn open(target: &Target, tls: Option<&Connector>) -> Result<Self, CliError> {
        Self::opened(target, tls, None)
    }

    /// As [`Self::open`], and gives up after `patience`: for who has many servers to visit. Reads and writes that block have the
    /// same bound.
    ///
    /// # Errors
    /// [`CliError::Connect`].
    pub(crate) fn open_within(
        target: &Target,
        tls: Option<&Connector>,
        patience: Duration,
    ) -> Result<Self, CliError> {
        Self::opened(target, tls, Some(patience))
    }

    fn opened(
        target: &Target,
        tls: Option<&Connector>,
        patience: Option<Duration>,
    ) -> Result<Self, CliError> {
        let transport = Transport::open(target, tls, patience)
            .map_err(|error| CliError::Connect { address: target.to_string(), reason: reason(&error) })?;
        Ok(Self {
            transport,
            decoder: Decoder::default(),
            input: BytesMut::new(),
            scratch: vec![0; READ_BYTES].into_boxed_slice(),
        })
    }

    /// Writes one command; blocks until the system has taken it.
    ///
    /// # Errors
    /// [`CliError::Closed`], [`CliError::Socket`].
    pub(crate) fn send<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Result<(), CliError> {
        let mut bytes = Vec::new();
        encode_command(args, &mut bytes);
        self.send_encoded(&bytes)
    }

    /// Writes bytes that are already encoded; blocks until the system has taken them.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub(crate) fn send_encoded(&mut self, mut bytes: &[u8]) -> Result<(), CliError> {
        while !bytes.is_empty() || self.transport.is_unsent() {
            let written = match bytes {
                [] => self.transport.flush().map(|()| 0),
                bytes => self.transport.write(bytes),
            };
            match written {
                Ok(0) if !bytes.is_empty() => return Err(CliError::Closed),
                Ok(count) => bytes = &bytes[count..],
                Err(error) if is_retryable(&error) => _ = self.poll(PollFlags::OUT, None, None)?,
                Err(error) => return Err(socket_error(error)),
            }
        }
        Ok(())
    }

    /// The next frame, pushes included. Without `interrupt` and `deadline` it waits as long as it takes.
    ///
    /// # Errors
    /// [`CliError::Closed`], [`CliError::Socket`], [`CliError::Protocol`], [`CliError::Interrupted`]; after any of
    /// them the connection is of no more use, except that the last one keeps what was read.
    pub(crate) fn receive(&mut self, interrupt: Option<&Interrupt>) -> Result<Frame, CliError> {
        loop {
            if let Some(frame) = self.decoder.decode(&mut self.input)? {
                return Ok(frame);
            }
            if interrupt.is_some() || self.transport.never_blocks() {
                self.poll(PollFlags::IN, interrupt, None)?;
            }
            self.fill()?;
        }
    }

    /// Frames that are there without having been asked for.
    ///
    /// # Errors
    /// As [`Self::receive`]; [`CliError::Closed`] is how an idle connection that the server has closed shows.
    pub(crate) fn unasked(&mut self) -> Result<Vec<Frame>, CliError> {
        let mut frames = Vec::new();
        while frames.len() < UNASKED_FRAMES_MAX {
            if let Some(frame) = self.decoder.decode(&mut self.input)? {
                frames.push(frame);
            } else if self.poll(PollFlags::IN, None, Some(Duration::ZERO))?.can_read {
                self.fill()?;
            } else {
                break;
            }
        }
        Ok(frames)
    }

    /// Makes reads and writes return at once; for [`Self::write_some`] and [`Self::receive_ready`].
    ///
    /// # Errors
    /// [`CliError::Socket`].
    pub(crate) fn set_nonblocking(&self) -> Result<(), CliError> {
        self.transport.set_nonblocking(true).map_err(CliError::Socket)
    }

    /// Waits until bytes can be read, or written if `wants_write`, or `deadline` has passed.
    ///
    /// # Errors
    /// [`CliError::Socket`].
    pub(crate) fn wait(
        &mut self,
        wants_write: bool,
        deadline: Option<Instant>,
    ) -> Result<Readiness, CliError> {
        loop {
            let is_unsent = self.transport.is_unsent();
            let events =
                if wants_write || is_unsent { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            let timeout = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            let ready = self.poll(events, None, timeout)?;
            if !is_unsent || !ready.can_write {
                return Ok(ready);
            }
            match self.transport.flush() {
                Err(error) if !is_retryable(&error) => return Err(socket_error(error)),
                _ if wants_write || ready.can_read => return Ok(ready),
                _ => {}
            }
        }
    }

    /// Writes what the system takes at once, and says how much that was.
    ///
    /// # Errors
    /// [`CliError::Closed`], [`CliError::Socket`].
    pub(crate) fn write_some(&mut self, bytes: &[u8]) -> Result<usize, CliError> {
        match self.transport.write(bytes) {
            Ok(count) => Ok(count),
            Err(error) if is_retryable(&error) => Ok(0),
            Err(error) => Err(socket_error(error)),
        }
    }

    /// The next frame among the bytes that are there.
    ///
    /// # Errors
    /// As [`Self::receive`].
    pub(crate) fn receive_ready(&mut self) -> Result<Option<Frame>, CliError> {
        if let Some(frame) = self.decoder.decode(&mut self.input)? {
            return Ok(Some(frame));
        }
        self.fill()?;
        Ok(self.decoder.decode(&mut self.input)?)
    }

    /// Reads once; nothing to read is no error.
    fn fill(&mut self) -> Result<(), CliError> {
        match self.transport.read(&mut self.scratch) {
            Ok(0) => Err(CliError::Closed),
            Ok(count) => {
                self.input.reserve(count.max(self.decoder.bytes_missing(self.input.len()).min(READ_BYTES)));
                self.input.extend_from_slice(&self.scratch[..count]);
                Ok(())
            }
            Err(error) if is_retryable(&error) => Ok(()),
            Err(error) => Err(socket_error(error)),
        }
    }

    fn poll(
        &self,
        events: PollFlags,
        interrupt: Option<&Interrupt>,
        timeout: Option<Duration>,
    ) -> Result<Readiness, CliError> {
        let timeout = timeout.map(timespec);
        let mut fds = vec![PollFd::new(&self.transport, events)];
        fds.extend(interrupt.map(|interrupt| PollFd::new(interrupt, PollFlags::IN)));
        loop {
            match rustix::event::poll(&mut fds, timeout.as_ref()) {
                Ok(_) => break,
                // A signal, such as a changed window size; an interrupt also makes its pipe readable.
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(CliError::Socket(error.into())),
            }
        }
        if interrupt.is_some_and(Interrupt::take) {
            return Err(CliError::Interrupted);
        }
        let ready = fds[0].revents();
        // Errors and hang-ups show when the socket is read.
        Ok(Readiness {
            can_read: ready.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR),
            can_write: ready.contains(PollFlags::OUT),
        })
    }
}

/// Connects to the first address of the host that accepts.
fn connect_within(host: &str, port: u16, patience: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, patience) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

fn is_retryable(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// A peer that hung up is one case, whatever the system calls it.
fn socket_error(error: io::Error) -> CliError {
    match error.kind() {
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::WriteZero => CliError::Closed,
        _ => CliError::Socket(error),
    }
}

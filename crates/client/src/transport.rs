//! From a target to a stream of bytes.
//!
//! Owns: [`Target`], the one [`Stream`] type that the driver reads and writes, and [`Connector`], which dials once
//! within a timeout and says what failed. Does **not** own when to dial (admission), how often, nor what is said on
//! the stream.

mod sides;
mod tcp;
mod tls;
mod unix;

use bytes::BufMut;
use std::fmt;
use std::future::Future;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::Instant;

use sides::{ReadSide, WriteHalf};

pub use sides::WriteSide;
pub use tcp::{Keepalive, TcpOptions};
pub use tls::{TlsConfigError, TlsFailure, TlsLibrary, TlsOptions};

/// Where a server is. `Display` gives `host:port`, `[v6]:port` or the path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Target {
    /// A name or an address, and a port.
    Tcp {
        /// A name, or an address without brackets. A name is resolved anew for each dial.
        host: String,
        /// The port.
        port: u16,
    },
    /// A Unix stream socket.
    Unix(PathBuf),
}

impl Target {
    /// A host and a port; brackets around an IPv6 address are taken off.
    pub fn tcp(host: impl Into<String>, port: u16) -> Self {
        let host = host.into();
        let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).map(str::to_owned);
        Self::Tcp { host: inner.unwrap_or(host), port }
    }

    /// A Unix stream socket.
    pub fn unix(path: impl Into<PathBuf>) -> Self {
        Self::Unix(path.into())
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// What a [`Transport`] gives: bytes in both directions.
pub trait AsyncStream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> AsyncStream for T {}

/// A future of a [`Transport`].
pub type Dialing<'a> = Pin<Box<dyn Future<Output = io::Result<Box<dyn AsyncStream>>> + Send + 'a>>;

/// Another way to a server than a socket of this host: a tunnel, a proxy, a test.
///
/// ```
/// use towline_client::transport::{Dialing, Target, Transport};
///
/// /// One end of a pipe in memory.
/// struct Piped;
///
/// impl Transport for Piped {
///     fn connect<'a>(&'a self, _target: &'a Target) -> Dialing<'a> {
///         Box::pin(async {
///             let (near, _far) = tokio::io::duplex(4096);
///             Ok(Box::new(near) as _)
///         })
///     }
/// }
/// ```
pub trait Transport: Send + Sync + 'static {
    /// Opens a stream to `target`. TLS, when it is asked for, is spoken on top of it.
    ///
    /// # Errors
    /// Any; it is reported as [`ConnectError::Transport`] and the dial may be repeated.
    ///
    /// # Cancel safety
    /// The future is dropped when its time is over, and must then leave nothing behind.
    fn connect<'a>(&'a self, target: &'a Target) -> Dialing<'a>;
}

/// A step of a dial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DialStage {
    /// The host's name is being resolved.
    Resolve,
    /// The socket is being connected.
    Connect,
    /// TLS is being negotiated.
    Tls,
}

impl fmt::Display for DialStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resolve => "resolving the name",
            Self::Connect => "connecting",
            // A server without TLS often waits for the end of what it takes for a line.
            Self::Tls => "the TLS handshake, as on a port without TLS,",
        })
    }
}

/// Why a dial failed. Nothing was sent to a server as a command yet, whatever the variant.
///
/// All but [`ConnectError::ServerName`] and [`ConnectError::NoAddressToBind`], which only another configuration
/// mends, may pass with time.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The name cannot be resolved, or has no address. The network, or the caller's spelling.
    #[error("cannot resolve '{host}': {source}")]
    Resolve {
        /// The name.
        host: String,
        /// What the resolver says.
        source: io::Error,
    },
    /// No address of the target could be connected to.
    #[error("cannot connect to {target}: {}", Failures(failures))]
    Connect {
        /// Where to.
        target: Target,
        /// Each address that was tried, in the order of the failures.
        failures: Vec<(SocketAddr, io::Error)>,
    },
    /// The Unix socket cannot be connected to.
    #[error("cannot connect to {}: {source}", path.display())]
    Unix {
        /// The socket.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The target has no address of the family that the connection is to be bound to. The caller's configuration.
    #[error("{target} has no address that can be reached from {bind}, which is of another family")]
    NoAddressToBind {
        /// Where to.
        target: Target,
        /// Where from.
        bind: std::net::IpAddr,
    },
    /// The [`Transport`] failed.
    #[error("the transport cannot reach {target}: {source}")]
    Transport {
        /// Where to.
        target: Target,
        /// What it says.
        source: io::Error,
    },
    /// The TLS handshake failed.
    #[error("TLS with {target}: {failure}")]
    Tls {
        /// Where to.
        target: Target,
        /// Why.
        failure: TlsFailure,
    },
    /// The host is no name that a certificate can have, and none is configured. The caller's configuration.
    #[error("'{0}' is no name that a certificate can have; set the TLS option `server_name`")]
    ServerName(String),
    /// The connect timeout is over.
    #[error("no connection to {target} within {timeout:?}: {stage} did not end")]
    Timeout {
        /// Where to.
        target: Target,
        /// What was going on.
        stage: DialStage,
        /// The whole time that the dial had.
        timeout: Duration,
    },
}

impl ConnectError {
    /// The nearest kind that the standard library has.
    pub fn io_kind(&self) -> io::ErrorKind {
        match self {
            Self::Connect { failures, .. } => {
                failures.first().map_or(io::ErrorKind::NotConnected, |(_, error)| error.kind())
            }
            Self::Resolve { .. } => io::ErrorKind::HostUnreachable,
            Self::Unix { source, .. } | Self::Transport { source, .. } => source.kind(),
            Self::Timeout { .. } => io::ErrorKind::TimedOut,
            Self::Tls { .. } => io::ErrorKind::ConnectionAborted,
            Self::NoAddressToBind { .. } | Self::ServerName(_) => io::ErrorKind::InvalidInput,
        }
    }
}

/// Addresses with what went wrong with each.
struct Failures<'a>(&'a [(SocketAddr, io::Error)]);

impl fmt::Display for Failures<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// A headless service may have hundreds of addresses; these tell enough.
        const SHOWN_MAX: usize = 4;
        for (index, (address, error)) in self.0.iter().take(SHOWN_MAX).enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{address}: {error}")?;
        }
        match self.0.len().saturating_sub(SHOWN_MAX) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

/// A stream to a server, of whatever kind. Sockets and TLS are called without dynamic dispatch.
pub struct Stream {
    kind: Kind,
}

enum Kind {
    Socket {
        read: ReadSide,
        write: Arc<WriteSide>,
    },
    #[cfg(feature = "tls")]
    Tls(Box<tokio_rustls::client::TlsStream<Stream>>),
    #[cfg(feature = "native-tls")]
    System(Box<tokio_native_tls::TlsStream<Stream>>),
    Custom(Box<dyn AsyncStream>),
}

impl Stream {
    /// Any stream, such as one end of a pipe in memory.
    pub fn custom(stream: impl AsyncStream) -> Self {
        Self { kind: Kind::Custom(Box::new(stream)) }
    }

    /// The writing side, for others than the owner of the stream. `None` with TLS and custom transports, where only
    /// the owner can write.
    pub const fn write_side(&self) -> Option<&Arc<WriteSide>> {
        match &self.kind {
            Kind::Socket { write, .. } => Some(write),
            _ => None,
        }
    }

    /// Whether written bytes may be held back until `poll_flush`.
    pub const fn needs_flush(&self) -> bool {
        self.write_side().is_none()
    }

    /// Reads what is there at once, into the free room of `buffer`; 0 is the peer's end of the stream, unless there
    /// was no room.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`]: nothing is there, or only `poll_read` can tell (TLS, custom); any other is the
    /// socket's end.
    #[inline]
    pub fn try_read_buf(&self, buffer: &mut impl BufMut) -> io::Result<usize> {
        match &self.kind {
            Kind::Socket { read: ReadSide::Tcp(half), .. } => half.try_read_buf(buffer),
            Kind::Socket { read: ReadSide::Unix(half), .. } => half.try_read_buf(buffer),
            _ => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// The socket's own address; `None` when it is no TCP socket.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.tcp()?.local_addr().ok()
    }

    /// The server's address; `None` when it is no TCP socket.
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.tcp()?.peer_addr().ok()
    }

    fn tcp(&self) -> Option<&TcpStream> {
        match &self.kind {
            Kind::Socket { read: ReadSide::Tcp(half), .. } => Some(half.as_ref()),
            #[cfg(feature = "tls")]
            Kind::Tls(stream) => stream.get_ref().0.tcp(),
            #[cfg(feature = "native-tls")]
            Kind::System(stream) => stream.get_ref().get_ref().get_ref().tcp(),
            Kind::Socket { .. } | Kind::Custom(_) => None,
        }
    }
}

impl From<TcpStream> for Stream {
    fn from(stream: TcpStream) -> Self {
        let (read, write) = stream.into_split();
        let write = Arc::new(WriteSide { half: WriteHalf::Tcp(write) });
        Self { kind: Kind::Socket { read: ReadSide::Tcp(read), write } }
    }
}

impl From<UnixStream> for Stream {
    fn from(stream: UnixStream) -> Self {
        let (read, write) = stream.into_split();
        let write = Arc::new(WriteSide { half: WriteHalf::Unix(write) });
        Self { kind: Kind::Socket { read: ReadSide::Unix(read), write } }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.kind {
            Kind::Socket { read: ReadSide::Tcp(_), .. } => "tcp",
            Kind::Socket { read: ReadSide::Unix(_), .. } => "unix",
            #[cfg(feature = "tls")]
            Kind::Tls(_) => "tls",
            #[cfg(feature = "native-tls")]
            Kind::System(_) => "system tls",
            Kind::Custom(_) => "custom",
        };
        let mut out = f.debug_struct("Stream");
        out.field("kind", &kind).field("local", &self.local_addr()).field("peer", &self.peer_addr()).finish()
    }
}

impl AsyncRead for Stream {
    #[inline]
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().kind {
            Kind::Socket { read: ReadSide::Tcp(half), .. } => Pin::new(half).poll_read(cx, buf),
            Kind::Socket { read: ReadSide::Unix(half), .. } => Pin::new(half).poll_read(cx, buf),
            #[cfg(feature = "tls")]
            Kind::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
            #[cfg(feature = "native-tls")]
            Kind::System(stream) => Pin::new(stream).poll_read(cx, buf),
            Kind::Custom(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    #[inline]
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().kind {
            Kind::Socket { write, .. } => write.poll(cx, |side| side.try_write(buf)),
            #[cfg(feature = "tls")]
            Kind::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
            #[cfg(feature = "native-tls")]
            Kind::System(stream) => Pin::new(stream).poll_write(cx, buf),
            Kind::Custom(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    #[inline]
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().kind {
            Kind::Socket { write, .. } => write.poll(cx, |side| side.try_write_vectored(pieces)),
            #[cfg(feature = "tls")]
            Kind::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
            #[cfg(feature = "native-tls")]
            Kind::System(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
            Kind::Custom(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.kind {
            Kind::Socket { .. } => true,
            #[cfg(feature = "tls")]
            Kind::Tls(stream) => stream.is_write_vectored(),
            #[cfg(feature = "native-tls")]
            Kind::System(stream) => stream.is_write_vectored(),
            Kind::Custom(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().kind {
            Kind::Socket { .. } => Poll::Ready(Ok(())),
            #[cfg(feature = "tls")]
            Kind::Tls(stream) => Pin::new(stream).poll_flush(cx),
            #[cfg(feature = "native-tls")]
            Kind::System(stream) => Pin::new(stream).poll_flush(cx),
            Kind::Custom(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    /// Says to the peer that nothing more comes; reading goes on.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().kind {
            Kind::Socket { write, .. } => Poll::Ready(write.shut_down()),
            #[cfg(feature = "tls")]
            Kind::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
            #[cfg(feature = "native-tls")]
            Kind::System(stream) => Pin::new(stream).poll_shutdown(cx),
            Kind::Custom(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

/// Dials: all that is the same for each dial of a client.
#[derive(Clone)]
pub struct Connector {
    tcp: TcpOptions,
    tls: Option<tls::Tls>,
    transport: Option<Arc<dyn Transport>>,
}

impl Connector {
    /// Prepares dials: reads the certificates, so that what is wrong with them is known now. They are read again for
    /// a later dial when their files have changed, and stay as they were if that fails.
    ///
    /// # Errors
    /// [`TlsConfigError`]: the caller's configuration; it blocks for as long as the files take to read.
    pub fn new(
        tcp: TcpOptions,
        tls: Option<TlsOptions>,
        transport: Option<Arc<dyn Transport>>,
    ) -> Result<Self, TlsConfigError> {
        let tls = tls.map(tls::Tls::new).transpose()?;
        Ok(Self { tcp, tls, transport })
    }

    /// Dials once. `timeout` is for all of it: the resolver, all addresses, TLS. `Duration::MAX` is no limit.
    ///
    /// # Errors
    /// [`ConnectError`].
    ///
    /// # Cancel safety
    /// A dropped future closes what it had opened; a look-up that the system's resolver has begun ends by itself.
    pub async fn connect(&self, target: &Target, timeout: Duration) -> Result<Stream, ConnectError> {
        self.connect_as(target, target, timeout).await
    }

    /// [`Connector::connect`] to a server that takes the place of another: with TLS, its certificate must be one for
    /// `identity`'s host, unless the options name a server.
    ///
    /// # Errors
    /// [`ConnectError`].
    ///
    /// # Cancel safety
    /// As [`Connector::connect`].
    pub async fn connect_as(
        &self,
        target: &Target,
        identity: &Target,
        timeout: Duration,
    ) -> Result<Stream, ConnectError> {
        let limit = Limit { target, timeout, deadline: Instant::now().checked_add(timeout) };
        let stream = match (&self.transport, target) {
            (Some(transport), _) => {
                let dialed = limit.hold(DialStage::Connect, transport.connect(target)).await?;
                let failed = |source| ConnectError::Transport { target: target.clone(), source };
                Stream { kind: Kind::Custom(dialed.map_err(failed)?) }
            }
            (None, Target::Tcp { host, port }) => tcp::dial(host, *port, &self.tcp, &limit).await?.into(),
            (None, Target::Unix(path)) => unix::dial(path, &limit).await?.into(),
        };
        match &self.tls {
            None => Ok(stream),
            Some(tls) => tls::handshake(tls, stream, identity, &limit).await,
        }
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector")
            .field("tcp", &self.tcp)
            .field("tls", &self.tls)
            .field("has_transport", &self.transport.is_some())
            .finish()
    }
}

/// The time that a dial has.
struct Limit<'a> {
    target: &'a Target,
    timeout: Duration,
    /// `None`: further away than the clock reaches.
    deadline: Option<Instant>,
}

impl Limit<'_> {
    /// Runs a step of the dial for as long as there is time.
    async fn hold<F: Future>(&self, stage: DialStage, step: F) -> Result<F::Output, ConnectError> {
        let Some(deadline) = self.deadline else { return Ok(step.await) };
        tokio::time::timeout_at(deadline, step).await.map_err(|_| ConnectError::Timeout {
            target: self.target.clone(),
            stage,
            timeout: self.timeout,
        })
    }
}

// The stream of a dial is moved about: it has to stay small.
const _: () = assert!(size_of::<Stream>() <= 64);

#[cfg(test)]
mod tests;

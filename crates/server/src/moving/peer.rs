//! A connection to another server.
//!
//! Owns: its handshake, writing requests and reading answers, each within the order's timeout. Does **not** own what the
//! answers mean for keys (see [`super::courier`]).

use super::Login;
use bytes::BytesMut;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use towline_resp::frame::{Decoder, Frame, encode_command};

/// Bytes of one write, for which the timeout holds: as in Redis.
const WRITE_BYTES: usize = 64 << 10;
const READ_BYTES: usize = 16 << 10;

/// Where a connection leads, and as whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) login: Option<Login>,
}

/// What kind of server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Make {
    /// Ours: its clock is ours, or as near as a cluster's clocks are.
    Towline,
    /// Valkey, which has its own form of hashes with fields that expire.
    Valkey,
    /// Any other.
    Redis,
}

/// Why a connection is of no use any more, or could not be had. The environment's fault or the target's; retryable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum PeerError {
    /// The name has no address.
    #[error("ERR Can't connect to target node: {0}")]
    Unresolved(String),
    /// Nobody answers there within the timeout.
    #[error("IOERR error or timeout connecting to the client")]
    Unreachable,
    /// The connection is refused, or broke while the request was written.
    #[error("IOERR error or timeout writing to target instance")]
    Write {
        /// Whether the peer took nothing for as long as the timeout.
        is_timeout: bool,
    },
    /// No answer within the timeout, or the connection broke.
    #[error("IOERR error or timeout reading to target instance")]
    Read {
        /// Whether it was the time.
        is_timeout: bool,
    },
    /// The answer is none that a server gives. The target's fault.
    #[error("IOERR the target instance does not answer in its protocol: {0}")]
    Protocol(String),
    /// An error that the target answered with.
    #[error("ERR Target instance replied with error: {0}")]
    Refused(String),
    /// This node cannot note which keys it sends, so that a crash would leave them on both sides. The environment's fault.
    #[error("IOERR cannot note which keys are sent: {0}")]
    Unnoted(String),
}

impl PeerError {
    /// Whether the connection broke, rather than being silent.
    pub(super) fn is_loss(&self) -> bool {
        matches!(self, Self::Write { is_timeout: false } | Self::Read { is_timeout: false })
    }
}

/// See the module's description.
#[derive(Debug)]
pub(super) struct Peer {
    stream: TcpStream,
    place: Place,
    decoder: Decoder,
    buffer: BytesMut,
    db: i64,
    make: Make,
    timeout: Duration,
    /// Whether it has answered in this order: one that was kept may have been closed by the target meanwhile.
    pub(super) is_proven: bool,
}

/// Waits for something that a socket does, as long as the order allows.
async fn within<T>(
    limit: Duration,
    work: impl Future<Output = io::Result<T>>,
    failed: impl Fn(bool) -> PeerError,
) -> Result<T, PeerError> {
    match timeout(limit, work).await {
        Ok(result) => result.map_err(|_| failed(false)),
        Err(_) => Err(failed(true)),
    }
}

impl Peer {
    /// Connects, logs in, and finds out who answers.
    ///
    /// # Errors
    /// All of [`PeerError`].
    pub(super) async fn connect(place: Place, limit: Duration) -> Result<Self, PeerError> {
        let address = resolve(&place, limit).await?;
        let failed = |is_timeout| {
            if is_timeout { PeerError::Unreachable } else { PeerError::Write { is_timeout } }
        };
        let stream = within(limit, TcpStream::connect(address), failed).await?;
        // A socket that refuses this works without it.
        let _ = stream.set_nodelay(true);
        let mut peer = Self {
            stream,
            place,
            decoder: Decoder::default(),
            buffer: BytesMut::new(),
            db: 0,
            make: Make::Redis,
            timeout: limit,
            is_proven: true,
        };
        if let Some(login) = peer.place.login.clone() {
            let user = login.user.as_deref().into_iter();
            let request: Vec<&[u8]> =
                [b"AUTH".as_slice()].into_iter().chain(user).chain([&login.password[..]]).collect();
            peer.ask(&request).await?;
        }
        // Who may not ask this gets the plain forms, which everybody reads.
        if let Ok(Frame::Bulk(text) | Frame::Verbatim { text, .. }) =
            peer.try_ask(&[b"INFO", b"server"]).await?
        {
            peer.make = make_of(&text);
        }
        Ok(peer)
    }

    /// Where it leads.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Who answers.
    pub(super) fn make(&self) -> Make {
        self.make
    }

    /// The next order has limits of its own.
    pub(super) fn set_timeout(&mut self, limit: Duration) {
        self.timeout = limit;
    }

    /// What follows is about this database.
    ///
    /// # Errors
    /// As [`Peer::ask`].
    pub(super) async fn select(&mut self, db: i64) -> Result<(), PeerError> {
        if self.db != db {
            self.ask(&[b"SELECT", db.to_string().as_bytes()]).await?;
            self.db = db;
        }
        Ok(())
    }

    /// Sends a short request and waits for its answer.
    ///
    /// # Errors
    /// [`PeerError`] of writing and reading, and [`PeerError::Refused`] for an error.
    pub(super) async fn ask(&mut self, request: &[&[u8]]) -> Result<Frame, PeerError> {
        self.try_ask(request).await?.map_err(PeerError::Refused)
    }

    /// As [`Peer::ask`], with the target's error apart.
    pub(super) async fn try_ask(&mut self, request: &[&[u8]]) -> Result<Result<Frame, String>, PeerError> {
        let mut bytes = Vec::new();
        encode_command(request, &mut bytes);
        self.write(&bytes).await?;
        self.answer().await
    }

    /// Writes all of it. The limit holds for each 64 KiB: what goes on is not given up.
    ///
    /// # Errors
    /// [`PeerError::Write`].
    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), PeerError> {
        let failed = |is_timeout| PeerError::Write { is_timeout };
        for chunk in bytes.chunks(WRITE_BYTES) {
            within(self.timeout, self.stream.write_all(chunk), failed).await?;
        }
        Ok(())
    }

    /// The next answer; the target's error apart.
    ///
    /// # Errors
    /// [`PeerError::Read`], [`PeerError::Protocol`].
    pub(super) async fn answer(&mut self) -> Result<Result<Frame, String>, PeerError> {
        let failed = |is_timeout| PeerError::Read { is_timeout };
        loop {
            let frame = self.decoder.decode(&mut self.buffer);
            match frame.map_err(|error| PeerError::Protocol(error.to_string()))? {
                Some(Frame::Error(text)) => return Ok(Err(String::from_utf8_lossy(&text).into_owned())),
                Some(frame) => return Ok(Ok(frame)),
                None => {}
            }
            self.buffer.reserve(READ_BYTES);
            if within(self.timeout, self.stream.read_buf(&mut self.buffer), failed).await? == 0 {
                return Err(failed(false));
            }
        }
    }

    /// Whether an answer is there already: [`Peer::answer`] would most likely not wait.
    pub(super) fn has_answer(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// Whether the other side has closed, or said something that nobody asked for, since it was used last.
    pub(super) fn is_stale(&self) -> bool {
        let mut byte = [0];
        !matches!(self.stream.try_read(&mut byte), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }
}

/// The first address of the place.
async fn resolve(place: &Place, limit: Duration) -> Result<SocketAddr, PeerError> {
    let addresses = timeout(limit, tokio::net::lookup_host((place.host.as_str(), place.port))).await;
    let addresses = addresses.map_err(|_| PeerError::Unreachable)?;
    let mut addresses = addresses.map_err(|error| PeerError::Unresolved(error.to_string()))?;
    addresses.next().ok_or_else(|| PeerError::Unresolved("the name has no address".into()))
}

fn make_of(info: &[u8]) -> Make {
    let has = |line: &[u8]| info.split(|&byte| byte == b'\n').any(|found| found.starts_with(line));
    if has(b"towline_version:") {
        Make::Towline
    } else if has(b"valkey_version:") {
        Make::Valkey
    } else {
        Make::Redis
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_told_apart() {
        assert_eq!(make_of(b"# Server\r\nredis_version:7.2.4\r\ntowline_version:0.1.0\r\n"), Make::Towline);
        assert_eq!(make_of(b"# Server\r\nredis_version:7.2.4\r\nvalkey_version:9.1.2\r\n"), Make::Valkey);
        assert_eq!(make_of(b"# Server\r\nredis_version:8.2.3\r\n"), Make::Redis);
    }
}

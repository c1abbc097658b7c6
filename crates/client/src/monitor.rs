//! Every command that a server runs, as a stream (`MONITOR`).
//!
//! Owns the connection of its own on which the server tells it, and what its lines mean. Does **not** come back when that
//! connection breaks: what would be missing cannot be known, so the stream ends, and its user begins a new one.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::future::poll_fn;
use std::hash::BuildHasher;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
use towline_client_proto::maintenance::MaintenanceMode;
use towline_client_proto::{
    Error, ErrorKind, Handshake, HandshakeConfig, LostCause, Progress, ProtocolError, Sent, ServerError,
};
use towline_resp::frame::{Decoder, Frame, FrameLimits};

use crate::client::Client;
use crate::clock;
use crate::driver::dialed;
use crate::transport::Stream as Socket;

/// Longest line: a command with its arguments, each byte of which may be four. A longer one ends the stream.
pub const MONITOR_LINE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Read at a time.
const READ_BYTES: usize = 8192;

/// A stream of commands; see [`Client::monitor`].
pub struct Monitor {
    socket: Socket,
    decoder: Decoder,
    buffer: BytesMut,
    is_ended: bool,
}

/// A command that the server was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonitorEvent {
    /// When, since 1970, by the server's clock.
    pub unix_time: Duration,
    /// The number of the database.
    pub database: u32,
    /// Who gave it: an address, `unix:` and a path, or `lua`.
    pub client: Box<str>,
    /// The command: its name first. Servers show no password here.
    pub args: Vec<Bytes>,
    /// All of it, as the server wrote it.
    pub line: Bytes,
}

impl Client {
    /// Every command that the server is given from now on, by whomever: for a look at it, because it costs the server a
    /// good part of its speed. Needs a connection of its own, which it makes.
    ///
    /// ```no_run
    /// # async fn run(client: towline_client::Client) -> Result<(), towline_client::Error> {
    /// let mut monitor = client.monitor().await?;
    /// while let Some(event) = monitor.next().await {
    ///     println!("{:?}", event?.args);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Connect`], [`ErrorKind::Handshake`]: no connection; [`ErrorKind::Server`]: the server refuses it
    /// (`NOPERM`); [`ErrorKind::Deadline`]: no answer within the command timeout; [`ErrorKind::Misuse`]: this is the client of a
    /// cluster.
    ///
    /// # Cancel safety
    /// Dropping it closes what it has opened.
    pub async fn monitor(&self) -> Result<Monitor, Error> {
        match tokio::time::timeout(self.inner.command_timeout, Monitor::open(self)).await {
            Ok(opened) => opened,
            Err(_) => Err(Error::new(ErrorKind::Deadline, Sent::Maybe)),
        }
    }
}

impl Monitor {
    async fn open(client: &Client) -> Result<Self, Error> {
        let primary = match client.inner.cluster().filter(|cluster| cluster.has_one_primary()) {
            Some(cluster) => cluster.primary(client.inner.command_timeout).await?,
            None => client.clone(),
        };
        let client = &primary;
        let Some(pool) = client.pool() else {
            return Err(Error::misuse("MONITOR watches one server: make a client of that node alone"));
        };
        // What this connection is about cannot move.
        let options = pool.options().clone().maintenance(MaintenanceMode::Disabled);
        let connected = dialed(pool.connector().clone(), options).await;
        let (socket, right, handshake) =
            connected.map_err(|error| Error::new(ErrorKind::Connect(error.to_string().into()), Sent::No))?;
        let limits = FrameLimits { line_bytes_max: MONITOR_LINE_BYTES_MAX, ..FrameLimits::default() };
        let mut monitor =
            Self { socket, decoder: Decoder::new(limits), buffer: BytesMut::new(), is_ended: false };
        let greeted = monitor.greet(&handshake).await;
        // The target lives if it said anything.
        match &greeted {
            Err(error) if error.is_connection_lost() && !matches!(error.kind(), ErrorKind::Handshake(_)) => {
                right.failed();
            }
            _ => right.worked(),
        }
        greeted?;
        monitor.say(b"*1\r\n$7\r\nMONITOR\r\n").await?;
        match monitor.frame().await? {
            Frame::Simple(_) => Ok(monitor),
            frame => Err(ServerError::from_frame(&frame).map_or_else(misaligned, Error::server)),
        }
    }

    async fn greet(&mut self, config: &HandshakeConfig) -> Result<(), Error> {
        let now = clock::now();
        let mut batch = BytesMut::new();
        let mut handshake = Handshake::start(config, now, RandomState::new().hash_one(now), &mut batch);
        self.say(&batch).await?;
        loop {
            match handshake.on_frame(self.frame().await?) {
                Progress::NeedMore => {}
                Progress::Ready(_) => return Ok(()),
                Progress::Failed(error) => return Err(Error::new(ErrorKind::Handshake(error), Sent::No)),
            }
        }
    }

    async fn say(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.socket.write_all(bytes).await.map_err(lost)?;
        self.socket.flush().await.map_err(lost)
    }

    async fn frame(&mut self) -> Result<Frame, Error> {
        loop {
            if let Some(frame) = self.decoder.decode(&mut self.buffer).map_err(broken)? {
                return Ok(frame);
            }
            if self.socket.read_buf(&mut self.buffer).await.map_err(lost)? == 0 {
                return Err(Error::new(ErrorKind::Lost(LostCause::Closed), Sent::Answered));
            }
        }
    }

    /// The next command, or why there are no more; `None` behind that.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`]: the connection ended, perhaps because this reader was too slow for the server;
    /// [`ErrorKind::Protocol`]: what came is no line of `MONITOR`.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn next(&mut self) -> Option<Result<MonitorEvent, Error>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Result<MonitorEvent, Error>> {
        loop {
            match self.decoder.decode(&mut self.buffer).map_err(broken)? {
                Some(Frame::Simple(line)) => {
                    return Poll::Ready(MonitorEvent::parse(line).ok_or_else(misaligned));
                }
                Some(_) => return Poll::Ready(Err(misaligned())),
                None => {}
            }
            let mut chunk = [0; READ_BYTES];
            let mut read = ReadBuf::new(&mut chunk);
            ready!(Pin::new(&mut self.socket).poll_read(cx, &mut read)).map_err(lost)?;
            if read.filled().is_empty() {
                return Poll::Ready(Err(Error::new(ErrorKind::Lost(LostCause::Closed), Sent::Answered)));
            }
            self.buffer.extend_from_slice(read.filled());
        }
    }
}

impl Stream for Monitor {
    type Item = Result<MonitorEvent, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let monitor = self.get_mut();
        if monitor.is_ended {
            return Poll::Ready(None);
        }
        let event = ready!(monitor.poll_event(cx));
        monitor.is_ended = event.is_err();
        Poll::Ready(Some(event))
    }
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor").field("socket", &self.socket).field("is_ended", &self.is_ended).finish()
    }
}

fn lost(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Lost(LostCause::from(error.kind())), Sent::Answered)
}

fn broken(error: towline_resp::frame::FrameError) -> Error {
    Error::new(ErrorKind::Protocol(error.into()), Sent::Answered)
}

fn misaligned() -> Error {
    Error::new(ErrorKind::Protocol(ProtocolError::Misaligned), Sent::Answered)
}

impl MonitorEvent {
    /// Reads `1339518083.107412 [0 127.0.0.1:60866] "set" "key" "value"`.
    fn parse(line: Bytes) -> Option<Self> {
        let at = |mark: u8| move |byte: &u8| *byte == mark;
        let head_len = line.iter().position(at(b']'))?;
        let head = std::str::from_utf8(&line[..head_len]).ok()?;
        let (time, source) = head.split_once(" [")?;
        let (seconds, micros) = time.split_once('.')?;
        let (database, client) = source.split_once(' ')?;
        let micros = Duration::from_micros(micros.parse().ok()?);
        Some(Self {
            unix_time: Duration::from_secs(seconds.parse().ok()?).checked_add(micros)?,
            database: database.parse().ok()?,
            client: client.into(),
            args: arguments(&line[head_len + 1..])?,
            line,
        })
    }
}

/// Reads ` "a" "b\n"`.
fn arguments(text: &[u8]) -> Option<Vec<Bytes>> {
    let mut args = Vec::new();
    let mut rest = text.iter().copied();
    loop {
        match rest.next() {
            None => return Some(args),
            Some(b' ') => {}
            Some(_) => return None,
        }
        if rest.next()? != b'"' {
            return None;
        }
        let mut arg = Vec::new();
        loop {
            match rest.next()? {
                b'"' => break,
                b'\\' => arg.push(match rest.next()? {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'a' => 0x07,
                    b'b' => 0x08,
                    b'x' => hex(rest.next()?)? << 4 | hex(rest.next()?)?,
                    other => other,
                }),
                byte => arg.push(byte),
            }
        }
        args.push(arg.into());
    }
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_is_read() {
        let parse = |line: &[u8]| MonitorEvent::parse(Bytes::copy_from_slice(line));
        let line = br#"1339518083.107412 [3 127.0.0.1:60866] "set" "k y" "\"\\\n\x00\xff""#;
        let event = parse(line).unwrap();
        assert_eq!(event.unix_time, Duration::from_micros(1_339_518_083_107_412));
        assert_eq!((event.database, &*event.client), (3, "127.0.0.1:60866"));
        assert_eq!(event.args, [&b"set"[..], b"k y", b"\"\\\n\x00\xff"]);
        let lua = parse(br#"1.000001 [0 lua] "get" """#).unwrap();
        assert_eq!((&*lua.client, lua.args.len()), ("lua", 2));
        for odd in ["", "OK", "1.0 [0 x", r#"1.0 [0 x] set"#, r#"1.0 [0 x] "a"#, r#"1.0 [x y] "a""#] {
            assert_eq!(parse(odd.as_bytes()), None, "{odd:?}");
        }
    }

    proptest! {
        #[test]
        fn no_line_is_too_odd(line in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = MonitorEvent::parse([b"1.1 [0 x] ", &line[..]].concat().into());
            let _ = MonitorEvent::parse(line.into());
        }
    }
}

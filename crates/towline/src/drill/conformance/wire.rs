//! One connection to a peer, with replies and pushes kept apart.
//!
//! Owns the socket and the order in which things came. Does not own what they should have been.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use towline_resp::frame::{Decoder, Frame, encode_command};

/// How long a peer may take to answer a simple command.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// Shortest time that a socket waits, for zero would be for ever.
const WAIT_MIN: Duration = Duration::from_millis(1);

/// What came next.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Came {
    Reply(Frame),
    Push(Vec<Frame>),
    /// The peer ended the connection, or broke it.
    End,
    /// Nothing until then.
    Silence,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Wire {
    stream: TcpStream,
    buffer: BytesMut,
    decoder: Decoder,
    /// Every push, with the moment at which it was read.
    pub(super) pushes: Vec<(Instant, Vec<Frame>)>,
}

impl Wire {
    /// Connects, without a word.
    ///
    /// # Errors
    /// Nothing listens there.
    pub(super) fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: BytesMut::new(), decoder: Decoder::default(), pushes: Vec::new() })
    }

    /// Connects and says `HELLO 3`.
    ///
    /// # Errors
    /// Nothing listens there, or the peer has no RESP3.
    pub(super) fn resp3(address: SocketAddr) -> io::Result<Self> {
        let mut wire = Self::open(address)?;
        match wire.call(&["HELLO", "3"])? {
            Frame::Map(_) => Ok(wire),
            other => Err(io::Error::other(format!("HELLO 3 was answered with {}", shown(&other)))),
        }
    }

    /// Sends a command.
    ///
    /// # Errors
    /// The connection has ended.
    pub(super) fn send(&mut self, words: &[&str]) -> io::Result<()> {
        let mut bytes = Vec::new();
        encode_command(words, &mut bytes);
        self.stream.write_all(&bytes)
    }

    /// Sends a command and waits for its reply; pushes on the way are kept.
    ///
    /// # Errors
    /// The connection ended or the peer stayed silent.
    pub(super) fn call(&mut self, words: &[&str]) -> io::Result<Frame> {
        self.send(words)?;
        self.reply()
    }

    /// Waits for the next reply; pushes on the way are kept.
    ///
    /// # Errors
    /// The connection ended or the peer stayed silent.
    pub(super) fn reply(&mut self) -> io::Result<Frame> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.next(until) {
                Came::Reply(frame) => return Ok(frame),
                Came::Push(_) => {}
                Came::End => {
                    return Err(io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        "the peer closed the connection",
                    ));
                }
                Came::Silence => {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "the peer did not answer"));
                }
            }
        }
    }

    /// The next push until then, from those that are not read yet; a reply on the way is dropped.
    pub(super) fn push(&mut self, until: Instant) -> Option<Vec<Frame>> {
        loop {
            match self.next(until) {
                Came::Push(frames) => return Some(frames),
                Came::Reply(_) => {}
                Came::End | Came::Silence => return None,
            }
        }
    }

    /// What comes next, until then. Bytes that are no RESP count as the end.
    pub(super) fn next(&mut self, until: Instant) -> Came {
        loop {
            match self.decoder.decode(&mut self.buffer) {
                Ok(Some(Frame::Push(frames))) => {
                    self.pushes.push((Instant::now(), frames.clone()));
                    return Came::Push(frames);
                }
                Ok(Some(frame)) => return Came::Reply(frame),
                Ok(None) => {}
                Err(_) => return Came::End,
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Came::Silence;
            }
            let mut bytes = [0; 4096];
            let read = self
                .stream
                .set_read_timeout(Some(left.max(WAIT_MIN)))
                .and_then(|()| self.stream.read(&mut bytes));
            match read {
                Ok(0) => return Came::End,
                Ok(count) => self.buffer.extend_from_slice(&bytes[..count]),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return Came::Silence;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Came::End,
            }
        }
    }

    /// Reads on until the connection ends, at most until then. Returns the replies, and when it ended if it did.
    pub(super) fn until_end(&mut self, until: Instant) -> (Vec<Frame>, Option<Instant>) {
        let mut replies = Vec::new();
        loop {
            match self.next(until) {
                Came::Reply(frame) => replies.push(frame),
                Came::Push(_) => {}
                Came::End => return (replies, Some(Instant::now())),
                Came::Silence => return (replies, None),
            }
        }
    }

    /// The pushes of this name.
    pub(super) fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a (Instant, Vec<Frame>)> {
        self.pushes.iter().filter(move |(_, frames)| frames.first().and_then(text).as_deref() == Some(name))
    }
}

/// The text of a string of any kind.
pub(super) fn text(frame: &Frame) -> Option<String> {
    match frame {
        Frame::Simple(text) | Frame::Bulk(text) | Frame::Verbatim { text, .. } => {
            Some(String::from_utf8_lossy(text).into_owned())
        }
        _ => None,
    }
}

/// A frame in a few words.
pub(super) fn shown(frame: &Frame) -> String {
    match frame {
        Frame::Simple(text) => format!("+{}", String::from_utf8_lossy(text)),
        Frame::Error(text) | Frame::BlobError(text) => format!("-{}", String::from_utf8_lossy(text)),
        Frame::Integer(value) => format!(":{value}"),
        Frame::Bulk(text) => format!("{:?}", String::from_utf8_lossy(text)),
        Frame::Null | Frame::NullArray => "null".to_owned(),
        Frame::Array(frames) => format!("[{}]", all(frames)),
        Frame::Push(frames) => format!(">[{}]", all(frames)),
        other => format!("{other:?}"),
    }
}

/// Several frames in a few words.
pub(super) fn all(frames: &[Frame]) -> String {
    frames.iter().map(shown).collect::<Vec<_>>().join(", ")
}

//! The incremental decoder.
//!
//! Owns the reading of frames, with bounds. Does not own the read buffer's growth.

use bytes::{Buf, BytesMut};
use memchr::memchr;

use crate::frame::Frame;
use crate::number::parse_i64;

/// Bounds of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLimits {
    /// Longest bulk, in bytes. Default 512 MiB, Redis's own bound for strings.
    pub bulk_bytes_max: usize,
    /// Longest line (status, error, number), in bytes. Default 64 KiB, the longest line Redis sends or
    /// accepts.
    pub line_bytes_max: usize,
    /// Most values in one frame at all depths together, the announced ones included. Default 2^26: more than
    /// the pairs of any sensible reply, and a bound on what a hostile peer can make a client hold.
    pub elements_max: usize,
    /// Deepest nesting of aggregates. Default [`DEPTH_MAX`].
    pub depth_max: usize,
}

/// Default nesting bound. Redis nests replies 5 deep or so, scripts at most 64 or so.
pub const DEPTH_MAX: usize = 128;

impl Default for FrameLimits {
    fn default() -> Self {
        Self {
            bulk_bytes_max: 512 * 1024 * 1024,
            line_bytes_max: 64 * 1024,
            elements_max: 1 << 26,
            depth_max: DEPTH_MAX,
        }
    }
}

/// Why bytes are no frame. The peer's fault and final: the stream cannot be resynchronised, close the
/// connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The first byte names no type.
    #[error("unknown frame type byte {byte:#04x}")]
    UnknownType {
        /// That byte.
        byte: u8,
    },
    /// A streamed string or aggregate (`$?`, `*?`), which no server sends.
    #[error("streamed frames are not supported")]
    Streamed,
    /// A length is no integer or negative.
    #[error("invalid length in a frame header")]
    InvalidLength,
    /// An integer, a double, a big number or a boolean is malformed.
    #[error("malformed {0}")]
    Malformed(Scalar),
    /// A verbatim string has no format.
    #[error("verbatim string without a format")]
    VerbatimFormat,
    /// A line or a bulk does not end with `\r\n`.
    #[error("frame does not end with CRLF")]
    InvalidLineEnd,
    /// A line is longer than [`FrameLimits::line_bytes_max`].
    #[error("line is longer than {max} bytes")]
    LineTooLong {
        /// The bound.
        max: usize,
    },
    /// A bulk is longer than [`FrameLimits::bulk_bytes_max`].
    #[error("bulk is longer than {max} bytes")]
    BulkTooLong {
        /// The bound.
        max: usize,
    },
    /// A frame has more values than [`FrameLimits::elements_max`].
    #[error("frame has more than {max} elements")]
    TooManyElements {
        /// The bound.
        max: usize,
    },
    /// Aggregates are nested deeper than [`FrameLimits::depth_max`].
    #[error("frame is nested deeper than {max} levels")]
    TooDeep {
        /// The bound.
        max: usize,
    },
    /// A push within another frame: pushes come between frames only.
    #[error("push inside another frame")]
    NestedPush,
}

/// The scalar types that are read from a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// `:`
    Integer,
    /// `,`
    Double,
    /// `(`
    BigNumber,
    /// `#`
    Boolean,
    /// `_`
    Null,
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Integer => "integer",
            Self::Double => "double",
            Self::BigNumber => "big number",
            Self::Boolean => "boolean",
            Self::Null => "null",
        })
    }
}

/// What a bulk's body becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BulkKind {
    Bulk,
    Verbatim,
    BlobError,
}

/// What a level's values become.
#[derive(Debug)]
enum AggregateKind {
    Array,
    Set,
    Push,
    Map,
    /// The pairs of an attribute.
    Attribute,
    /// The value that follows an attribute's pairs.
    Attributed(Vec<(Frame, Frame)>),
}

/// An aggregate whose values have not all arrived.
#[derive(Debug)]
struct Level {
    kind: AggregateKind,
    /// Values still to come.
    missing: usize,
    values: Vec<Frame>,
}

/// Room made at once for an aggregate's values; more comes with the values, never with the claim.
const VALUES_INITIAL_MAX: usize = 64;

/// The incremental decoder of one connection's replies. Takes bytes out of the buffer as values complete, so
/// a large aggregate is parsed once, in whatever pieces it comes. Not recursive.
#[derive(Debug, Default)]
pub struct Decoder {
    limits: FrameLimits,
    levels: Vec<Level>,
    /// The bulk whose header was taken and whose body is awaited.
    bulk: Option<(BulkKind, usize)>,
    /// Bytes at the buffer's start that were searched for a line end.
    searched: usize,
    /// Values announced so far in this frame.
    elements: usize,
}

/// One step of decoding.
enum Token {
    Value(Frame),
    Open(AggregateKind, usize),
}

impl Decoder {
    /// A decoder with these bounds.
    pub const fn new(limits: FrameLimits) -> Self {
        Self { limits, levels: Vec::new(), bulk: None, searched: 0, elements: 0 }
    }

    /// Whether no part of a frame has been taken. Bytes of a frame may still be in the buffer.
    pub fn is_idle(&self) -> bool {
        self.levels.is_empty() && self.bulk.is_none()
    }

    /// How many more bytes the body under way needs at least, given a buffer of `buffered` bytes; for
    /// reserving room. Never more than the bulk bound; 0 when no body is awaited.
    pub fn bytes_missing(&self, buffered: usize) -> usize {
        self.bulk.map_or(0, |(_, len)| (len + 2).saturating_sub(buffered))
    }

    /// Takes the next frame from the start of `buf`; `None` if more bytes are needed (those of values that
    /// are complete are taken all the same).
    ///
    /// # Errors
    /// [`FrameError`]: the stream is broken; further calls make no sense.
    pub fn decode(&mut self, buf: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
        while let Some(token) = self.token(buf)? {
            let value = match token {
                Token::Value(frame) => Some(frame),
                Token::Open(kind, count) => self.open(kind, count)?,
            };
            if let Some(frame) = value.and_then(|frame| self.close(frame)) {
                self.elements = 0;
                return Ok(Some(frame));
            }
        }
        Ok(None)
    }

    /// Begins an aggregate; an empty one is a value at once.
    fn open(&mut self, kind: AggregateKind, count: usize) -> Result<Option<Frame>, FrameError> {
        if self.levels.len() >= self.limits.depth_max {
            return Err(FrameError::TooDeep { max: self.limits.depth_max });
        }
        if matches!(kind, AggregateKind::Push) && !self.levels.is_empty() {
            return Err(FrameError::NestedPush);
        }
        let missing = match kind {
            AggregateKind::Map | AggregateKind::Attribute => count.saturating_mul(2),
            _ => count,
        };
        self.elements = self.elements.saturating_add(missing);
        if self.elements > self.limits.elements_max {
            return Err(FrameError::TooManyElements { max: self.limits.elements_max });
        }
        let mut level = Level { kind, missing, values: Vec::with_capacity(missing.min(VALUES_INITIAL_MAX)) };
        if missing > 0 {
            self.levels.push(level);
            return Ok(None);
        }
        let finished = level.finish();
        if finished.is_none() {
            self.levels.push(level);
        }
        Ok(finished)
    }

    /// Adds a value to the innermost aggregate, and closes those that it completes; a frame without one is
    /// returned.
    fn close(&mut self, mut value: Frame) -> Option<Frame> {
        loop {
            let Some(level) = self.levels.last_mut() else { return Some(value) };
            level.values.push(value);
            level.missing -= 1;
            if level.missing > 0 {
                return None;
            }
            value = level.finish()?;
            self.levels.pop();
        }
    }

    /// Takes one value or one aggregate's header.
    fn token(&mut self, buf: &mut BytesMut) -> Result<Option<Token>, FrameError> {
        if let Some((kind, len)) = self.bulk {
            return self.bulk_body(buf, kind, len);
        }
        let Some(&mark) = buf.first() else { return Ok(None) };
        if !is_type(mark) {
            return Err(FrameError::UnknownType { byte: mark });
        }
        let Some(end) = self.line_end(buf)? else { return Ok(None) };
        let kind = match mark {
            b'$' => BulkKind::Bulk,
            b'=' => BulkKind::Verbatim,
            b'!' => BulkKind::BlobError,
            b'*' | b'~' | b'>' | b'%' | b'|' => {
                let token = aggregate(mark, &buf[1..end])?;
                buf.advance(end + 2);
                return Ok(Some(token));
            }
            _ => return scalar(mark, buf, end).map(|frame| Some(Token::Value(frame))),
        };
        let len = match length(&buf[1..end])? {
            None if kind == BulkKind::Bulk => {
                buf.advance(end + 2);
                return Ok(Some(Token::Value(Frame::Null)));
            }
            None => return Err(FrameError::InvalidLength),
            Some(len) if len > self.limits.bulk_bytes_max => {
                return Err(FrameError::BulkTooLong { max: self.limits.bulk_bytes_max });
            }
            Some(len) => len,
        };
        buf.advance(end + 2);
        self.bulk = Some((kind, len));
        self.bulk_body(buf, kind, len)
    }

    fn bulk_body(
        &mut self,
        buf: &mut BytesMut,
        kind: BulkKind,
        len: usize,
    ) -> Result<Option<Token>, FrameError> {
        if buf.len() < len.saturating_add(2) {
            return Ok(None);
        }
        if buf[len..len + 2] != *b"\r\n" {
            return Err(FrameError::InvalidLineEnd);
        }
        self.bulk = None;
        let mut bytes = buf.split_to(len).freeze();
        buf.advance(2);
        let frame = match kind {
            BulkKind::Bulk => Frame::Bulk(bytes),
            BulkKind::BlobError => Frame::BlobError(bytes),
            BulkKind::Verbatim => match *bytes {
                [a, b, c, b':', ..] => {
                    bytes.advance(4);
                    Frame::Verbatim { format: [a, b, c], text: bytes }
                }
                _ => return Err(FrameError::VerbatimFormat),
            },
        };
        Ok(Some(Token::Value(frame)))
    }

    /// Where the line at the buffer's start ends (the offset of its `\r`), going on where the last search
    /// stopped.
    fn line_end(&mut self, buf: &[u8]) -> Result<Option<usize>, FrameError> {
        let from = self.searched.min(buf.len());
        let end = memchr(b'\r', &buf[from..]).map(|at| from + at);
        if end.unwrap_or(buf.len()) > self.limits.line_bytes_max {
            return Err(FrameError::LineTooLong { max: self.limits.line_bytes_max });
        }
        let Some(end) = end else {
            self.searched = buf.len();
            return Ok(None);
        };
        match buf.get(end + 1) {
            None => {
                self.searched = end;
                Ok(None)
            }
            Some(b'\n') => {
                self.searched = 0;
                Ok(Some(end))
            }
            Some(_) => Err(FrameError::InvalidLineEnd),
        }
    }
}

impl Level {
    /// The aggregate's frame, now that all its values are there. `None` for an attribute, which goes on with
    /// the value it belongs to.
    fn finish(&mut self) -> Option<Frame> {
        let values = std::mem::take(&mut self.values);
        Some(match &mut self.kind {
            AggregateKind::Array => Frame::Array(values),
            AggregateKind::Set => Frame::Set(values),
            AggregateKind::Push => Frame::Push(values),
            AggregateKind::Map => Frame::Map(pairs(values)),
            AggregateKind::Attribute => {
                self.kind = AggregateKind::Attributed(pairs(values));
                self.missing = 1;
                return None;
            }
            AggregateKind::Attributed(attributes) => {
                let frame = values.into_iter().next().expect("invariant: one value was awaited and has come");
                Frame::Attributed { attributes: std::mem::take(attributes), frame: Box::new(frame) }
            }
        })
    }
}

fn pairs(values: Vec<Frame>) -> Vec<(Frame, Frame)> {
    let mut pairs = Vec::with_capacity(values.len() / 2);
    let mut values = values.into_iter();
    while let (Some(key), Some(value)) = (values.next(), values.next()) {
        pairs.push((key, value));
    }
    pairs
}

const fn is_type(byte: u8) -> bool {
    matches!(
        byte,
        b'+' | b'-'
            | b':'
            | b'$'
            | b'*'
            | b'_'
            | b','
            | b'#'
            | b'('
            | b'='
            | b'!'
            | b'%'
            | b'~'
            | b'>'
            | b'|'
    )
}

/// A header's length; `None` for `-1`.
fn length(text: &[u8]) -> Result<Option<usize>, FrameError> {
    match (text, parse_i64(text)) {
        (_, Some(-1)) => Ok(None),
        (_, Some(value)) => usize::try_from(value).map(Some).map_err(|_| FrameError::InvalidLength),
        (b"?", None) => Err(FrameError::Streamed),
        _ => Err(FrameError::InvalidLength),
    }
}

fn aggregate(mark: u8, text: &[u8]) -> Result<Token, FrameError> {
    let kind = match mark {
        b'*' => AggregateKind::Array,
        b'~' => AggregateKind::Set,
        b'>' => AggregateKind::Push,
        b'%' => AggregateKind::Map,
        _ => AggregateKind::Attribute,
    };
    match length(text)? {
        Some(count) => Ok(Token::Open(kind, count)),
        None if mark == b'*' => Ok(Token::Value(Frame::NullArray)),
        None => Err(FrameError::InvalidLength),
    }
}

/// Takes a one-line value that ends at `end`.
fn scalar(mark: u8, buf: &mut BytesMut, end: usize) -> Result<Frame, FrameError> {
    let line = &buf[1..end];
    let frame = match mark {
        b':' => Frame::Integer(integer(line).ok_or(FrameError::Malformed(Scalar::Integer))?),
        b',' => Frame::Double(double(line).ok_or(FrameError::Malformed(Scalar::Double))?),
        b'#' => match line {
            b"t" => Frame::Boolean(true),
            b"f" => Frame::Boolean(false),
            _ => return Err(FrameError::Malformed(Scalar::Boolean)),
        },
        b'_' if line.is_empty() => Frame::Null,
        b'_' => return Err(FrameError::Malformed(Scalar::Null)),
        _ => {
            if mark == b'(' && !is_big_number(line) {
                return Err(FrameError::Malformed(Scalar::BigNumber));
            }
            buf.advance(1);
            let text = buf.split_to(end - 1).freeze();
            buf.advance(2);
            return Ok(match mark {
                b'+' => Frame::Simple(text),
                b'-' => Frame::Error(text),
                _ => Frame::BigNumber(text),
            });
        }
    };
    buf.advance(end + 2);
    Ok(frame)
}

/// An integer; unlike lengths it may have a `+`.
fn integer(text: &[u8]) -> Option<i64> {
    parse_i64(match text {
        [b'+', rest @ ..] if rest.first().is_some_and(u8::is_ascii_digit) => rest,
        _ => text,
    })
}

fn double(text: &[u8]) -> Option<f64> {
    match text {
        b"inf" | b"+inf" => return Some(f64::INFINITY),
        b"-inf" => return Some(f64::NEG_INFINITY),
        b"nan" | b"-nan" => return Some(f64::NAN),
        _ => {}
    }
    // Rust would also take words such as "infinity"; the wire has none but the above.
    if !text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn is_big_number(text: &[u8]) -> bool {
    let digits = match text {
        [b'+' | b'-', rest @ ..] => rest,
        _ => text,
    };
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

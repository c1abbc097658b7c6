//! The client's side: replies from bytes, commands to bytes.
//!
//! Owns [`Frame`], its incremental [`Decoder`] and encoders. Does not own which reply belongs to which
//! command, nor the read buffer's growth.
//!
//! Payloads are slices of the read buffer ([`Bytes`]): a frame that is kept keeps the buffer's memory alive,
//! so a caller that keeps small values for long copies them.
//!
//! ```
//! use bytes::{Bytes, BytesMut};
//! use towline_resp::frame::{Decoder, Frame, FrameError, encode_command};
//!
//! # fn main() -> Result<(), FrameError> {
//! let mut request = Vec::new();
//! encode_command(&["GET", "key"], &mut request);
//! assert_eq!(request, b"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n");
//!
//! let (mut decoder, mut buf) = (Decoder::default(), BytesMut::from(&b"$5\r\nval"[..]));
//! assert_eq!(decoder.decode(&mut buf)?, None);
//! buf.extend_from_slice(b"ue\r\n");
//! assert_eq!(decoder.decode(&mut buf)?, Some(Frame::Bulk(Bytes::from_static(b"value"))));
//! # Ok(())
//! # }
//! ```

mod decoder;

use bytes::{BufMut, Bytes};

use crate::Proto;
use crate::writer::Writer;

pub use decoder::{DEPTH_MAX, Decoder, FrameError, FrameLimits, Scalar};

/// One RESP2 or RESP3 value.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// `+text`.
    Simple(Bytes),
    /// `-CODE text`.
    Error(Bytes),
    /// `:n`.
    Integer(i64),
    /// `$n`: a string.
    Bulk(Bytes),
    /// `$-1` or `_`: nothing.
    Null,
    /// `*-1`: nothing where an array was expected. Kept apart from [`Frame::Null`] because RESP2 tells the
    /// two apart; [`Frame::is_null`] covers both.
    NullArray,
    /// `*n`.
    Array(Vec<Self>),
    /// `,n`.
    Double(f64),
    /// `#t`, `#f`.
    Boolean(bool),
    /// `(n`: decimal digits, with a sign perhaps.
    BigNumber(Bytes),
    /// `=n`: a text and its format.
    Verbatim {
        /// Three letters: `txt`, `mkd`.
        format: [u8; 3],
        /// The text without the format.
        text: Bytes,
    },
    /// `!n`: an error that may contain line ends.
    BlobError(Bytes),
    /// `%n`, in the order sent.
    Map(Vec<(Self, Self)>),
    /// `~n`, in the order sent.
    Set(Vec<Self>),
    /// `>n`: out of band, answers no command.
    Push(Vec<Self>),
    /// `|n` and the value it belongs to.
    Attributed {
        /// The attribute's pairs.
        attributes: Vec<(Self, Self)>,
        /// The value proper.
        frame: Box<Self>,
    },
}

impl Frame {
    /// Whether this is either null.
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null | Self::NullArray)
    }

    /// The text of an error, of either kind.
    pub const fn as_error(&self) -> Option<&Bytes> {
        match self {
            Self::Error(text) | Self::BlobError(text) => Some(text),
            _ => None,
        }
    }

    /// The value without its outermost attributes.
    pub fn without_attributes(mut self) -> Self {
        while let Self::Attributed { frame, .. } = self {
            self = *frame;
        }
        self
    }

    /// Appends the frame to `writer`, in the writer's protocol: RESP2 drops attributes and turns typed values
    /// into what RESP2 has for them. Recurses as deep as the frame is nested.
    pub fn write(&self, writer: &mut Writer) {
        match self {
            Self::Simple(text) => writer.simple_bytes(text),
            Self::Error(text) => writer.error_bytes(text),
            Self::Integer(value) => writer.int(*value),
            Self::Bulk(bytes) => writer.bulk(bytes),
            Self::Null => writer.null(),
            Self::NullArray => writer.null_array(),
            Self::Double(value) => writer.double(*value),
            Self::Boolean(value) => writer.bool(*value),
            Self::BigNumber(digits) => writer.big_number_bytes(digits),
            Self::Verbatim { format, text } => writer.verbatim_bytes(format, text),
            Self::BlobError(text) => writer.blob_error(text),
            Self::Array(frames) => {
                writer.array(frames.len());
                write_all(frames, writer);
            }
            Self::Set(frames) => {
                writer.set(frames.len());
                write_all(frames, writer);
            }
            Self::Push(frames) => {
                writer.push(frames.len());
                write_all(frames, writer);
            }
            Self::Map(pairs) => {
                writer.map(pairs.len());
                write_pairs(pairs, writer);
            }
            Self::Attributed { attributes, frame } => {
                if writer.attribute(attributes.len()) {
                    write_pairs(attributes, writer);
                }
                frame.write(writer);
            }
        }
    }

    /// The frame's bytes in `proto`.
    pub fn encode(&self, proto: Proto) -> Vec<u8> {
        let mut writer = Writer::new(proto);
        self.write(&mut writer);
        writer.take().0
    }
}

fn write_all(frames: &[Frame], writer: &mut Writer) {
    for frame in frames {
        frame.write(writer);
    }
}

fn write_pairs(pairs: &[(Frame, Frame)], writer: &mut Writer) {
    for (key, value) in pairs {
        key.write(writer);
        value.write(writer);
    }
}

/// Appends a command, an array of bulk strings, to `out` (a `Vec<u8>` or a `BytesMut`).
pub fn encode_command<A: AsRef<[u8]>>(args: &[A], out: &mut impl BufMut) {
    put_header(b'*', args.len(), out);
    for arg in args {
        let bytes = arg.as_ref();
        put_header(b'$', bytes.len(), out);
        out.put_slice(bytes);
        out.put_slice(b"\r\n");
    }
}

fn put_header(mark: u8, count: usize, out: &mut impl BufMut) {
    out.put_u8(mark);
    out.put_slice(itoa::Buffer::new().format(count).as_bytes());
    out.put_slice(b"\r\n");
}

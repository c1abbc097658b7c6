//! Numbers, booleans and strings.

use super::error::Found;
use super::{FromReply, ReplyError, each};
use bytes::Bytes;
use towline_resp::double::format_double;
use towline_resp::frame::Frame;

/// The widest that an integer can be: everything else is cut to its range.
fn integer(frame: Frame, expected: &'static str) -> Result<i128, ReplyError> {
    match frame {
        Frame::Integer(value) => Ok(value.into()),
        Frame::Bulk(text) | Frame::Simple(text) | Frame::BigNumber(text) | Frame::Verbatim { text, .. } => {
            let number = std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
            number.ok_or_else(|| ReplyError::shape(expected, Found::Text(text.len())))
        }
        // `as` saturates, and nothing that saturates here fits a type below.
        Frame::Double(value) if value.fract() == 0.0 => Ok(value as i128),
        Frame::Double(_) => Err(ReplyError::shape(expected, Found::Kind("a double with a fraction"))),
        Frame::Boolean(value) => Ok(value.into()),
        Frame::Attributed { .. } => integer(frame.without_attributes(), expected),
        frame => Err(ReplyError::unexpected(expected, &frame)),
    }
}

macro_rules! integers {
    ($($int:ident $expected:literal),*) => {$(
        impl FromReply for $int {
            fn from_reply(frame: Frame) -> Result<Self, ReplyError> {
                integers!(@from frame, $int, $expected)
            }
        }
    )*};
    (@from $frame:ident, $int:ident, $expected:literal) => {{
        let value = integer($frame, $expected)?;
        $int::try_from(value).map_err(|_| ReplyError::shape($expected, Found::Number))
    }};
}

integers!(
    i8 "an integer of 8 bits",
    i16 "an integer of 16 bits",
    u16 "an integer from 0 to 65535",
    i32 "an integer of 32 bits",
    u32 "an integer from 0 to 4294967295",
    u64 "an integer from 0 to 18446744073709551615",
    isize "an integer",
    usize "an integer that is not negative"
);

impl FromReply for i64 {
    #[inline]
    fn from_reply(frame: Frame) -> Result<Self, ReplyError> {
        match frame {
            Frame::Integer(value) => Ok(value),
            frame => integers!(@from frame, i64, "an integer"),
        }
    }
}

impl FromReply for i128 {
    fn from_reply(frame: Frame) -> Result<Self, ReplyError> {
        integer(frame, "an integer of 128 bits")
    }
}

impl FromReply for u8 {
    fn from_reply(frame: Frame) -> Result<Self, ReplyError> {
        integers!(@from frame, u8, "an integer from 0 to 255")
    }

    fn vec_from_reply(frame: Frame) -> Result<Vec<Self>, ReplyError> {
        match frame {
            Frame::Array(frames) | Frame::Set(frames) | Frame::Push(frames) => each(frames),
            Frame::Attributed { .. } => Self::vec_from_reply(frame.without_attributes()),
            // Takes the memory over where nobody else holds it.
            frame => bytes(frame, "a string").map(Vec::from),
        }
    }
}

macro_rules! floats {
    ($($float:ident),*) => {$(
        impl FromReply for $float {
            fn from_reply(frame: Frame) -> Result<Self, ReplyError> {
                const EXPECTED: &str = "a number";
                match frame {
                    Frame::Double(value) => Ok(value as Self),
                    Frame::Integer(value) => Ok(value as Self),
                    Frame::Bulk(text) | Frame::Simple(text) | Frame::BigNumber(text) | Frame::Verbatim { text, .. } => {
                        let number = std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
                        number.ok_or_else(|| ReplyError::shape(EXPECTED, Found::Text(text.len())))
                    }
                    Frame::Attributed { .. } => Self::from_reply(frame.without_attributes()),
                    frame => Err(ReplyError::unexpected(EXPECTED, &frame)),
                }
            }
        }
    )*};
}

floats!(f32, f64);

impl FromReply for bool {
    fn from_reply(frame: Frame) -> Result<Self, ReplyError> {
        const EXPECTED: &str = "a boolean, 0, 1 or OK";
        match frame {
            Frame::Boolean(value) => Ok(value),
            Frame::Integer(0) | Frame::Null | Frame::NullArray => Ok(false),
            Frame::Integer(1) => Ok(true),
            Frame::Integer(_) => Err(ReplyError::shape(EXPECTED, Found::Number)),
            Frame::Simple(text) | Frame::Bulk(text) => match &text[..] {
                b"OK" | b"1" => Ok(true),
                b"0" => Ok(false),
                _ => Err(ReplyError::shape(EXPECTED, Found::Text(text.len()))),
            },
            Frame::Attributed { .. } => Self::from_reply(frame.without_attributes()),
            frame => Err(ReplyError::unexpected(EXPECTED, &frame)),
        }
    }
}

/// The bytes of a string, or the text that RESP2 would have sent.
#[inline]
fn bytes(frame: Frame, expected: &'static str) -> Result<Bytes, ReplyError> {
    match frame {
        Frame::Bulk(text) | Frame::Simple(text) | Frame::BigNumber(text) | Frame::Verbatim { text, .. } => {
            Ok(text)
        }
        Frame::Integer(value) => Ok(Bytes::copy_from_slice(itoa::Buffer::new().format(value).as_bytes())),
        Frame::Double(value) => Ok(Bytes::copy_from_slice(format_double(value).as_bytes())),
        Frame::Boolean(value) => Ok(Bytes::from_static(if value { b"1" } else { b"0" })),
        Frame::Attributed { .. } => bytes(frame.without_attributes(), expected),
        frame => Err(ReplyError::unexpected(expected, &frame)),
    }
}

impl FromReply for Bytes {
    #[inline]
    fn from_reply(frame: Frame) -> Result<Self, ReplyError> {
        bytes(frame, "a string")
    }
}

impl FromReply for String {
    fn from_reply(frame: Frame) -> Result<Self, ReplyError> {
        const EXPECTED: &str = "a string of UTF-8";
        let bytes = bytes(frame, EXPECTED)?;
        // Takes the memory over where nobody else holds it.
        Self::from_utf8(bytes.into())
            .map_err(|error| ReplyError::shape(EXPECTED, Found::Text(error.as_bytes().len())))
    }
}

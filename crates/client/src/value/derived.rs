//! What the code of `#[derive(FromReply, ToArgs)]` calls.
//!
//! Owns the reading of fields, elements and words, so that little code is written for each type. Public for that code
//! only; it is no part of the interface and may change with any version.

use super::error::Found;
use super::{FromReply, ReplyError, aggregates};
use crate::args::{Args, ToArg};
use bytes::Bytes;
use towline_resp::frame::Frame;

/// The names and values of a map, or of a flat array.
pub fn pairs(frame: Frame) -> Result<Vec<(Bytes, Frame)>, ReplyError> {
    <(Bytes, Frame)>::vec_from_reply(frame)
}

/// Whether the reply is null or has no elements.
pub fn is_empty(frame: &Frame) -> bool {
    match frame {
        Frame::Array(frames) | Frame::Set(frames) => frames.is_empty(),
        Frame::Map(pairs) => pairs.is_empty(),
        frame => frame.is_null(),
    }
}

/// The value of a field; an absent one counts as null.
pub fn field<T: FromReply>(value: Option<Frame>, name: &'static str) -> Result<T, ReplyError> {
    let is_absent = value.is_none();
    T::from_reply(value.unwrap_or(Frame::Null)).map_err(|error| match error {
        // Its own "null" is what stands here for "not there".
        ReplyError::Shape { expected, found: Found::Kind("null"), path } if is_absent && path.is_empty() => {
            ReplyError::shape(expected, Found::Absent).within(name)
        }
        error => error.within(name),
    })
}

/// The value of a field; an absent one, or null, is what `default` gives.
pub fn field_or<T: FromReply>(
    value: Option<Frame>,
    name: &'static str,
    default: impl FnOnce() -> T,
) -> Result<T, ReplyError> {
    match value {
        Some(frame) if !frame.is_null() => field(Some(frame), name),
        _ => Ok(default()),
    }
}

/// The elements of an array that has exactly `count`.
pub fn elements(frame: Frame, count: usize) -> Result<std::vec::IntoIter<Frame>, ReplyError> {
    const EXPECTED: &str = "an array with an element for each field";
    if frame.is_null() {
        return Err(ReplyError::unexpected(EXPECTED, &frame));
    }
    let frames = aggregates::elements(frame, EXPECTED)?;
    if frames.len() == count {
        Ok(frames.into_iter())
    } else {
        Err(ReplyError::shape(EXPECTED, Found::Elements(frames.len())))
    }
}

/// The element at `index`, which is the next one.
pub fn element<T: FromReply>(
    elements: &mut std::vec::IntoIter<Frame>,
    index: usize,
) -> Result<T, ReplyError> {
    T::from_reply(elements.next().unwrap_or(Frame::Null)).map_err(|error| error.at(index))
}

/// The text that one of an enum's words is to be.
pub fn word(frame: Frame, expected: &'static str) -> Result<Bytes, ReplyError> {
    if frame.is_null() {
        return Err(ReplyError::unexpected(expected, &frame));
    }
    Bytes::from_reply(frame)
}

/// The error for a text that is none of an enum's words.
pub const fn unknown_word(text: &[u8], expected: &'static str) -> ReplyError {
    ReplyError::shape(expected, Found::Text(text.len()))
}

/// Appends a field's name and value; neither if the value gives no argument.
pub fn write_pair<T: ToArg + ?Sized>(args: &mut Args, name: &[u8], value: &T) {
    args.push_pair(name, value);
}

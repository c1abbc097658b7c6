//! Replies: what a frame is as a Rust value.
//!
//! Owns [`FromReply`] and [`ReplyError`]. Does **not** own decoding (`towline-resp`) nor which reply answers which
//! command. Both protocols' shapes of a reply are understood by the same type, so that a program does not change when
//! its server does: a map may come as a flat array, a double as a string, a boolean as 0 or 1.

mod aggregates;
#[cfg(feature = "derive")]
pub mod derived;
mod error;
mod scalars;

#[cfg(test)]
mod tests;

pub use error::{Found, ReplyError};

use towline_client_proto::ServerError;
use towline_resp::frame::Frame;

/// A value that a reply can become.
///
/// | type | replies |
/// |---|---|
/// | `()` | any without an error in it |
/// | `bool` | booleans, 0 and 1, `OK`; null is `false` (`SET key value NX`) |
/// | integers | integers, texts that are one, doubles without a fraction; all checked for their range |
/// | `f32`, `f64` | doubles, integers, texts (`inf`, `-inf`, `nan` as well) |
/// | `String`, `Vec<u8>`, [`Bytes`](bytes::Bytes) | strings of all kinds, numbers as text; `Bytes` copies nothing |
/// | [`Frame`] | any, as it is, errors and attributes as well |
/// | `Option<T>` | null is `None` |
/// | `Result<T, ServerError>` | an error is `Err`: one result of several |
/// | `Vec<T>`, sets | arrays, sets, pushes; a map as keys and values in turn; null is empty |
/// | `[T; N]`, tuples | arrays of exactly so many elements |
/// | `Vec<(A, B)>`, maps | maps; arrays of pairs; flat arrays; null is empty |
/// | own structs | maps, by `#[derive(FromReply)]`; see [the macro](derive@crate::FromReply) |
/// | own enums | words, by the same |
///
/// Attributes are taken off, but for [`Frame`]. An error anywhere in a reply is [`ReplyError::Server`], unless the type
/// has a place for it.
///
/// ```
/// use std::collections::HashMap;
/// use towline_client::{Frame, FromReply, ReplyError};
///
/// let flat = Frame::Array(["a", "1"].map(|text| Frame::Bulk(text.into())).to_vec());
/// let map = HashMap::<String, i64>::from_reply(flat)?;
/// assert_eq!(map["a"], 1);
///
/// let error = i64::from_reply(Frame::Null).unwrap_err();
/// assert_eq!(error.to_string(), "the reply is null, expected an integer; an `Option` takes null");
/// # Ok::<(), ReplyError>(())
/// ```
pub trait FromReply: Sized {
    /// The value.
    ///
    /// # Errors
    /// [`ReplyError::Server`]: the server's error; [`ReplyError::Shape`]: the reply is something else, which is the
    /// caller's mistake about the command, or a key that holds another type of data.
    fn from_reply(frame: Frame) -> Result<Self, ReplyError>;

    /// Whether `Option` takes the reply for `None`: null. A derived struct with fields takes an empty reply for it too, which
    /// is what `HGETALL` answers where there is no key.
    fn is_absent(frame: &Frame) -> bool {
        frame.is_null()
    }

    /// Several values out of one reply. Only types that are not one element of an array do otherwise than to convert
    /// each element: `u8`, of which several are a string, and tuples, which also lie flat.
    ///
    /// # Errors
    /// As [`from_reply`](Self::from_reply), with the place of the element.
    fn vec_from_reply(frame: Frame) -> Result<Vec<Self>, ReplyError> {
        each(aggregates::elements(frame, "an array")?)
    }
}

/// Converts each element.
fn each<T: FromReply>(frames: Vec<Frame>) -> Result<Vec<T>, ReplyError> {
    let convert = |(index, frame)| T::from_reply(frame).map_err(|error: ReplyError| error.at(index));
    frames.into_iter().enumerate().map(convert).collect()
}

impl FromReply for Frame {
    #[inline]
    fn from_reply(frame: Frame) -> Result<Self, ReplyError> {
        Ok(frame)
    }
}

impl FromReply for () {
    fn from_reply(frame: Frame) -> Result<Self, ReplyError> {
        match first_error(&frame) {
            None => Ok(()),
            Some(error) => Err(ReplyError::Server(error)),
        }
    }
}

/// An error, however deep: a transaction's failed command must not pass for success. As deep as the decoder nests.
fn first_error(frame: &Frame) -> Option<ServerError> {
    match frame {
        Frame::Array(frames) | Frame::Set(frames) | Frame::Push(frames) => {
            frames.iter().find_map(first_error)
        }
        Frame::Map(pairs) => {
            pairs.iter().find_map(|(key, value)| first_error(key).or_else(|| first_error(value)))
        }
        Frame::Attributed { frame, .. } => first_error(frame),
        frame => ServerError::from_frame(frame),
    }
}

impl<T: FromReply> FromReply for Option<T> {
    #[inline]
    fn from_reply(frame: Frame) -> Result<Self, ReplyError> {
        let is_absent = match &frame {
            Frame::Attributed { .. } => return Self::from_reply(frame.without_attributes()),
            frame => T::is_absent(frame),
        };
        if is_absent { Ok(None) } else { T::from_reply(frame).map(Some) }
    }
}

impl<T: FromReply> FromReply for Result<T, ServerError> {
    fn from_reply(frame: Frame) -> Result<Self, ReplyError> {
        match ServerError::from_frame(&frame) {
            Some(error) => Ok(Err(error)),
            None => T::from_reply(frame).map(Ok),
        }
    }
}

impl<T: FromReply> FromReply for Box<T> {
    fn from_reply(frame: Frame) -> Result<Self, ReplyError> {
        T::from_reply(frame).map(Self::new)
    }

    fn is_absent(frame: &Frame) -> bool {
        T::is_absent(frame)
    }
}

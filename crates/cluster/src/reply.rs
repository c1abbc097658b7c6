//! Values of a topology's replies, in RESP2 and in RESP3.
//!
//! Owns what counts as a text, a number, a list and a set of fields. Does not own their meaning.

use towline_resp::frame::Frame;
use towline_resp::number::parse_i64;

use crate::address::Address;
use crate::topology::Asked;

/// Attributes within attributes are followed so deep.
const ATTRIBUTES_MAX: usize = 8;

/// The value without attributes around it.
fn plain(frame: &Frame) -> &Frame {
    let mut frame = frame;
    for _ in 0..ATTRIBUTES_MAX {
        let Frame::Attributed { frame: inner, .. } = frame else { break };
        frame = inner;
    }
    frame
}

/// The bytes of a text of any kind; an error is no text.
pub(crate) fn bytes(frame: &Frame) -> Option<&[u8]> {
    match plain(frame) {
        Frame::Bulk(bytes) | Frame::Simple(bytes) => Some(bytes),
        Frame::Verbatim { text, .. } => Some(text),
        _ => None,
    }
}

/// A text in UTF-8.
pub(crate) fn text(frame: &Frame) -> Option<&str> {
    std::str::from_utf8(bytes(frame)?).ok()
}

pub(crate) fn number(frame: &Frame) -> Option<i64> {
    match plain(frame) {
        Frame::Integer(value) => Some(*value),
        other => parse_i64(bytes(other)?),
    }
}

/// A port, or a slot.
pub(crate) fn small(frame: &Frame) -> Option<u16> {
    u16::try_from(number(frame)?).ok()
}

pub(crate) fn list(frame: &Frame) -> Option<&[Frame]> {
    match plain(frame) {
        Frame::Array(frames) | Frame::Set(frames) | Frame::Push(frames) => Some(frames),
        _ => None,
    }
}

/// The value of a field, in a map or in a list of names and values.
pub(crate) fn field<'a>(frame: &'a Frame, name: &str) -> Option<&'a Frame> {
    let is_it = |key: &Frame| bytes(key).is_some_and(|key| key.eq_ignore_ascii_case(name.as_bytes()));
    match plain(frame) {
        Frame::Map(pairs) => pairs.iter().find(|(key, _)| is_it(key)).map(|(_, value)| value),
        other => {
            let mut pairs = list(other)?.chunks_exact(2);
            pairs.find(|pair| is_it(&pair[0])).map(|pair| &pair[1])
        }
    }
}

/// Whether this is a map, or a list that could be one.
pub(crate) fn is_fields(frame: &Frame) -> bool {
    matches!(plain(frame), Frame::Map(_)) || list(frame).is_some_and(|list| list.len() >= 2)
}

/// What a node wrote in the place of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Host<'a> {
    Named(&'a str),
    /// Null or empty: the host that was asked, with the node's own port.
    Asked,
    /// `?`, or what is no text.
    Unknown,
}

impl<'a> Host<'a> {
    pub(crate) fn read(frame: Option<&'a Frame>) -> Self {
        match frame.map(plain) {
            None => Self::Unknown,
            Some(Frame::Null | Frame::NullArray) => Self::Asked,
            Some(other) => text(other).map_or(Self::Unknown, Self::of),
        }
    }

    pub(crate) fn of(text: &'a str) -> Self {
        match text.trim_ascii() {
            "" => Self::Asked,
            "?" => Self::Unknown,
            host => Self::Named(host),
        }
    }

    pub(crate) fn address(self, port: u16, asked: &Asked) -> Option<Address> {
        match self {
            Self::Named(host) => Address::new(host, port),
            Self::Asked => Address::new(&asked.address.host, port),
            Self::Unknown => None,
        }
    }

    /// An address only if the host is named: as an alias, the host that was asked says nothing.
    pub(crate) fn alias(self, port: u16) -> Option<Address> {
        match self {
            Self::Named(host) => Address::new(host, port),
            Self::Asked | Self::Unknown => None,
        }
    }
}

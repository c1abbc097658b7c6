//! Single values of an announcement, in whatever type they were sent.
//!
//! Owns what counts as text, as a number and as a list. Does not own the order of values in each announcement.

use std::time::Duration;

use bytes::Bytes;
use towline_cluster::Address;
use towline_resp::frame::Frame;
use towline_resp::number::parse_i64;

use super::slots::append;

/// A number that may be outside of `i64`: text and big numbers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    Exact(i64),
    /// More than any `i64`.
    Huge,
    /// Less than any `i64`.
    HugeNegative,
}

/// The value without attributes around it.
pub(super) fn plain(frame: &Frame) -> &Frame {
    let mut frame = frame;
    while let Frame::Attributed { frame: inner, .. } = frame {
        frame = inner;
    }
    frame
}

pub(super) fn text(frame: &Frame) -> Option<&Bytes> {
    match plain(frame) {
        Frame::Simple(text) | Frame::Bulk(text) | Frame::Verbatim { text, .. } => Some(text),
        _ => None,
    }
}

pub(super) fn list(frame: &Frame) -> Option<&[Frame]> {
    match plain(frame) {
        Frame::Array(values) | Frame::Set(values) | Frame::Push(values) => Some(values),
        _ => None,
    }
}

/// The values, those in nested lists in place of the lists.
pub(super) fn flat(values: &[Frame]) -> impl Iterator<Item = &Frame> {
    values.iter().flat_map(|value| list(value).unwrap_or_else(|| std::slice::from_ref(value)))
}

pub(super) fn number(frame: &Frame) -> Option<Number> {
    match plain(frame) {
        Frame::Integer(value) => Some(Number::Exact(*value)),
        Frame::Simple(text) | Frame::Bulk(text) | Frame::BigNumber(text) | Frame::Verbatim { text, .. } => {
            number_in(text)
        }
        // `as` saturates. Infinity and what is not a number have no fraction of zero.
        Frame::Double(value) if value.fract() == 0.0 => Some(Number::Exact(*value as i64)),
        _ => None,
    }
}

fn number_in(text: &[u8]) -> Option<Number> {
    let text = text.trim_ascii();
    if let Some(value) = parse_i64(text) {
        return Some(Number::Exact(value));
    }
    // What the strict form refuses: a plus, leading zeros, too many digits.
    let (is_negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value =
        digits.iter().try_fold(0i64, |sum, digit| sum.checked_mul(10)?.checked_add(i64::from(digit - b'0')));
    Some(match (value, is_negative) {
        (Some(value), false) => Number::Exact(value),
        (Some(value), true) => Number::Exact(-value),
        (None, false) => Number::Huge,
        (None, true) => Number::HugeNegative,
    })
}

/// The values after the name, read from the front.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a> {
    rest: &'a [Frame],
}

impl<'a> Fields<'a> {
    /// The values, also if they came as one nested array that starts with a number.
    pub(super) fn new(values: &'a [Frame]) -> Self {
        if let [only] = values
            && let Some(inner) = list(only)
            && inner.first().is_some_and(|first| number(first).is_some())
        {
            return Self { rest: inner };
        }
        Self { rest: values }
    }

    pub(super) const fn rest(self) -> &'a [Frame] {
        self.rest
    }

    fn skip(&mut self) {
        self.rest = &self.rest[1..];
    }

    /// The seq. A value in its place that cannot be one is passed over, unless it is one that should come later: then
    /// there is no seq.
    pub(super) fn seq(&mut self) -> Option<u64> {
        let first = self.rest.first()?;
        let number = number(first);
        if number.is_some() || self.is_junk() {
            self.skip();
        }
        match number? {
            Number::Exact(value) => u64::try_from(value).ok(),
            Number::Huge | Number::HugeNegative => None,
        }
    }

    /// Whether the first value is nothing that any announcement has, and a number follows.
    fn is_junk(&self) -> bool {
        let [first, second, ..] = self.rest else { return false };
        if list(first).is_some() || number(second).is_none() {
            return false;
        }
        text(first).is_none_or(|text| Address::parse(text).is_none() && !append(first, &mut Vec::new()))
    }

    /// A time in seconds, if the next value is one; zero if it is not positive. Anything else before another value
    /// stands for an unknown time, unless it is an address.
    pub(super) fn seconds(&mut self) -> Option<Duration> {
        let first = self.rest.first()?;
        let Some(number) = number(first) else {
            let is_address = text(first).is_some_and(|text| Address::parse(text).is_some());
            if !is_address && list(first).is_none() && self.rest.len() > 1 {
                self.skip();
            }
            return None;
        };
        self.skip();
        match number {
            // Whole seconds are announced, so a server with half a second left says zero.
            Number::Exact(seconds) => Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0))),
            Number::Huge => Some(Duration::MAX),
            Number::HugeNegative => Some(Duration::ZERO),
        }
    }

    /// Passes over a time where none belongs: a number that is sent as one, before another value.
    pub(super) fn skip_time(&mut self) {
        if let [first, second, ..] = self.rest
            && matches!(plain(first), Frame::Integer(_))
            && number(second).is_none()
        {
            self.skip();
        }
    }

    /// The address in the next value; values after it do not count.
    pub(super) fn address(self) -> Option<Address> {
        let first = self.rest.first()?;
        if let Some(text) = text(first) {
            return Address::parse(text);
        }
        match list(first)? {
            [only] => Address::parse(text(only)?),
            [host, port, ..] => {
                let host = text(host)?;
                match plain(port) {
                    Frame::Integer(port) => {
                        Address::new(std::str::from_utf8(host).ok()?, u16::try_from(*port).ok()?)
                    }
                    other => Address::from_parts(host, text(other)?),
                }
            }
            [] => None,
        }
    }

    /// What is left as one text, values separated by a comma; at most `bytes_max` bytes.
    pub(super) fn shards(self, bytes_max: usize) -> Box<str> {
        let mut joined = String::new();
        for value in flat(self.rest) {
            let mut digits = itoa::Buffer::new();
            let part = match plain(value) {
                Frame::Integer(value) => digits.format(*value).as_bytes(),
                other => match text(other) {
                    Some(text) => &text[..],
                    None => continue,
                },
            };
            if joined.len() >= bytes_max {
                break;
            }
            if !joined.is_empty() {
                joined.push(',');
            }
            joined.push_str(&String::from_utf8_lossy(&part[..part.len().min(bytes_max)]));
        }
        // The lossy reading turns one byte into up to three.
        let mut end = joined.len().min(bytes_max);
        while !joined.is_char_boundary(end) {
            end -= 1;
        }
        joined.truncate(end);
        joined.into()
    }
}

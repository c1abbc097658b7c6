//! The server's reply builder.
//!
//! Owns the bytes of replies in both protocols, including big values that are shared instead of copied. Does
//! not own sockets, output limits, or which reply a command gives.

use std::fmt::{self, Write as _};
use std::io::IoSlice;

use bytes::Bytes;

use crate::Proto;
use crate::double::format_double;

/// Bulks given as [`Bytes`] are shared from this length on, in bytes. 16 KiB: below it a copy is cheaper than
/// one more segment in a vectored write.
pub const SHARED_BULK_BYTES_MIN: usize = 16 * 1024;

/// Replies under construction, in the order in which they leave.
#[derive(Debug, Default)]
pub struct Writer {
    /// The protocol of the replies that follow.
    pub proto: Proto,
    buf: Vec<u8>,
    /// Shared segments: each is sent right before the byte of `buf` at its offset. Offsets never decrease.
    shared: Vec<(usize, Bytes)>,
    /// Sum of the shared segments' lengths.
    shared_bytes: usize,
}

/// A place in a [`Writer`] to roll back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    buf: usize,
    shared: usize,
    shared_bytes: usize,
}

/// What [`Writer::take`] moves out: the bytes, and the shared segments with the offsets in front of which
/// they go.
pub type Segments = (Vec<u8>, Vec<(usize, Bytes)>);

impl Writer {
    /// An empty writer; allocates nothing.
    pub const fn new(proto: Proto) -> Self {
        Self { proto, buf: Vec::new(), shared: Vec::new(), shared_bytes: 0 }
    }

    /// A writer that reuses `buf`'s memory.
    pub fn with_buf(proto: Proto, mut buf: Vec<u8>) -> Self {
        buf.clear();
        Self { proto, buf, shared: Vec::new(), shared_bytes: 0 }
    }

    /// Whether replies are RESP3.
    #[inline]
    pub fn is_resp3(&self) -> bool {
        self.proto == Proto::Resp3
    }

    /// The bytes that are not shared segments. They are the whole output if [`Self::has_shared`] is false.
    #[inline]
    pub fn buf(&self) -> &[u8] {
        &self.buf
    }

    /// The buffer, to append to; what is in it must stay.
    #[inline]
    pub fn buf_mut(&mut self) -> &mut Vec<u8> {
        &mut self.buf
    }

    /// Whether some of the output lies outside [`Self::buf`].
    #[inline]
    pub fn has_shared(&self) -> bool {
        !self.shared.is_empty()
    }

    /// Bytes of output, shared segments included.
    #[inline]
    pub fn len_bytes(&self) -> usize {
        self.buf.len() + self.shared_bytes
    }

    /// Whether there is no output.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.buf.is_empty() && self.shared.is_empty()
    }

    /// Drops all output, keeps the buffer's memory.
    #[inline]
    pub fn clear(&mut self) {
        self.buf.clear();
        self.shared.clear();
        self.shared_bytes = 0;
    }

    /// Moves all output out and leaves the writer empty, without memory.
    pub fn take(&mut self) -> Segments {
        self.shared_bytes = 0;
        (std::mem::take(&mut self.buf), std::mem::take(&mut self.shared))
    }

    /// The current end of the output.
    #[inline]
    pub fn mark(&self) -> Mark {
        Mark { buf: self.buf.len(), shared: self.shared.len(), shared_bytes: self.shared_bytes }
    }

    /// Drops all output after `mark`. A mark behind the end (something earlier was dropped meanwhile) changes
    /// nothing.
    #[inline]
    pub fn truncate(&mut self, mark: Mark) {
        if mark.buf <= self.buf.len() && mark.shared <= self.shared.len() {
            self.buf.truncate(mark.buf);
            self.shared.truncate(mark.shared);
            self.shared_bytes = mark.shared_bytes;
        }
    }

    /// The output's segments in order; none is empty.
    pub fn segments(&self) -> impl Iterator<Item = &[u8]> {
        let mut from = 0;
        self.shared
            .iter()
            .map(Some)
            .chain([None])
            .flat_map(move |shared| {
                let until = shared.map_or(self.buf.len(), |(at, _)| *at);
                let own = &self.buf[from..until];
                from = until;
                [own, shared.map_or(&[][..], |(_, bytes)| bytes)]
            })
            .filter(|segment| !segment.is_empty())
    }

    /// Fills `slices` with what follows the first `skip` bytes of output (those already written), and says
    /// how many slices it filled: 0 when everything is written.
    pub fn fill_slices<'a>(&'a self, mut skip: usize, slices: &mut [IoSlice<'a>]) -> usize {
        let mut filled = 0;
        for segment in self.segments() {
            if filled == slices.len() {
                break;
            }
            if skip >= segment.len() {
                skip -= segment.len();
                continue;
            }
            slices[filled] = IoSlice::new(&segment[skip..]);
            skip = 0;
            filled += 1;
        }
        filled
    }

    /// `+OK`.
    #[inline]
    pub fn ok(&mut self) {
        self.buf.extend_from_slice(b"+OK\r\n");
    }

    /// A status line. Line ends in `text` become spaces.
    #[inline]
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// As [`Self::simple`], for a text that is not UTF-8 throughout.
    #[inline]
    pub fn simple_bytes(&mut self, text: &[u8]) {
        self.line(b'+', text);
    }

    /// An error line, its code included (`ERR ...`). Line ends within become spaces, those at its end are
    /// dropped.
    pub fn error(&mut self, text: impl fmt::Display) {
        let start = self.buf.len();
        self.buf.push(b'-');
        // Writing into memory fails only if a Display implementation says so; what it wrote until then is
        // sent.
        let _ = write!(Appender(&mut self.buf), "{text}");
        self.finish_line(start);
    }

    /// As [`Self::error`], for a text that is not UTF-8 throughout.
    pub fn error_bytes(&mut self, text: &[u8]) {
        self.line(b'-', text);
    }

    /// An integer.
    #[inline]
    pub fn int(&mut self, value: i64) {
        self.header(b':', value);
    }

    /// A bulk string, copied.
    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.buf.reserve(bytes.len() + BULK_OVERHEAD_BYTES);
        self.count(b'$', bytes.len());
        self.buf.extend_from_slice(bytes);
        self.buf.extend_from_slice(b"\r\n");
    }

    /// A bulk string, shared from [`SHARED_BULK_BYTES_MIN`] on, else copied.
    #[inline]
    pub fn bulk_shared(&mut self, bytes: Bytes) {
        if bytes.len() < SHARED_BULK_BYTES_MIN {
            return self.bulk(&bytes);
        }
        self.count(b'$', bytes.len());
        self.shared_bytes += bytes.len();
        self.shared.push((self.buf.len(), bytes));
        self.buf.extend_from_slice(b"\r\n");
    }

    /// An integer as a bulk string.
    #[inline]
    pub fn bulk_int(&mut self, value: i64) {
        self.bulk(itoa::Buffer::new().format(value).as_bytes());
    }

    /// A bulk string written by `Display`.
    pub fn bulk_display(&mut self, value: impl fmt::Display) {
        self.bulk(value.to_string().as_bytes());
    }

    /// The null that stands for a missing string: `$-1`, in RESP3 `_`.
    #[inline]
    pub fn null(&mut self) {
        self.buf.extend_from_slice(if self.is_resp3() { b"_\r\n" } else { b"$-1\r\n" });
    }

    /// The null that stands for a missing array: `*-1`, in RESP3 `_`.
    #[inline]
    pub fn null_array(&mut self) {
        self.buf.extend_from_slice(if self.is_resp3() { b"_\r\n" } else { b"*-1\r\n" });
    }

    /// The head of an array; `count` replies follow.
    #[inline]
    pub fn array(&mut self, count: usize) {
        self.count(b'*', count);
    }

    /// The head of a map; `count` pairs of replies follow. An array of twice the length in RESP2.
    #[inline]
    pub fn map(&mut self, count: usize) {
        if self.is_resp3() { self.count(b'%', count) } else { self.count(b'*', count.saturating_mul(2)) }
    }

    /// The head of a set; `count` replies follow. An array in RESP2.
    #[inline]
    pub fn set(&mut self, count: usize) {
        self.count(if self.is_resp3() { b'~' } else { b'*' }, count);
    }

    /// The head of a push; `count` replies follow. An array in RESP2.
    #[inline]
    pub fn push(&mut self, count: usize) {
        self.count(if self.is_resp3() { b'>' } else { b'*' }, count);
    }

    /// The head of an attribute, of which `count` pairs of replies follow, and then the reply it belongs to.
    /// RESP2 has none: then this writes nothing and is false, and the caller writes no pairs.
    #[must_use = "the pairs are written only if this is true"]
    pub fn attribute(&mut self, count: usize) -> bool {
        if self.is_resp3() {
            self.count(b'|', count);
        }
        self.is_resp3()
    }

    /// A double, as [`format_double`] writes it: `,` in RESP3, a bulk string in RESP2.
    #[inline]
    pub fn double(&mut self, value: f64) {
        if !self.is_resp3() {
            return self.bulk_double(value);
        }
        self.buf.push(b',');
        self.buf.extend_from_slice(format_double(value).as_bytes());
        self.buf.extend_from_slice(b"\r\n");
    }

    /// A double as a bulk string in both protocols, as [`format_double`] writes it.
    #[inline]
    pub fn bulk_double(&mut self, value: f64) {
        self.bulk(format_double(value).as_bytes());
    }

    /// A truth value: `#t`, `#f`; in RESP2 `:1`, `:0`.
    #[inline]
    pub fn bool(&mut self, value: bool) {
        self.buf.extend_from_slice(match (self.proto, value) {
            (Proto::Resp3, true) => b"#t\r\n",
            (Proto::Resp3, false) => b"#f\r\n",
            (Proto::Resp2, true) => b":1\r\n",
            (Proto::Resp2, false) => b":0\r\n",
        });
    }

    /// A number of any length, given as decimal digits: `(` in RESP3, a bulk string in RESP2.
    pub fn big_number(&mut self, digits: &str) {
        self.big_number_bytes(digits.as_bytes());
    }

    pub(crate) fn big_number_bytes(&mut self, digits: &[u8]) {
        if self.is_resp3() { self.line(b'(', digits) } else { self.bulk(digits) }
    }

    /// A text with a three-letter format (`txt`, `mkd`): `=` in RESP3, a bulk string of the text alone in
    /// RESP2.
    pub fn verbatim(&mut self, format: &[u8; 3], text: &str) {
        self.verbatim_bytes(format, text.as_bytes());
    }

    pub(crate) fn verbatim_bytes(&mut self, format: &[u8; 3], text: &[u8]) {
        if !self.is_resp3() {
            return self.bulk(text);
        }
        self.count(b'=', text.len() + 4);
        self.buf.extend_from_slice(format);
        self.buf.push(b':');
        self.buf.extend_from_slice(text);
        self.buf.extend_from_slice(b"\r\n");
    }

    /// An error with a length, which RESP2 does not have: an error line there.
    pub(crate) fn blob_error(&mut self, text: &[u8]) {
        if !self.is_resp3() {
            return self.error_bytes(text);
        }
        self.count(b'!', text.len());
        self.buf.extend_from_slice(text);
        self.buf.extend_from_slice(b"\r\n");
    }

    /// Bytes as they are: replies that were formatted before.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.buf.extend_from_slice(bytes);
    }

    /// A mark byte, a count and a line end.
    #[inline]
    fn count(&mut self, mark: u8, count: usize) {
        if count < 10 {
            self.buf.extend_from_slice(&[mark, b'0' + count as u8, b'\r', b'\n']);
        } else {
            self.number(mark, itoa::Buffer::new().format(count).as_bytes());
        }
    }

    /// A mark byte, a number and a line end.
    #[inline]
    fn header(&mut self, mark: u8, value: i64) {
        match u8::try_from(value) {
            Ok(digit @ 0..=9) => self.buf.extend_from_slice(&[mark, b'0' + digit, b'\r', b'\n']),
            _ => self.number(mark, itoa::Buffer::new().format(value).as_bytes()),
        }
    }

    #[inline]
    fn number(&mut self, mark: u8, digits: &[u8]) {
        // Put together first, so that the vector grows once: i64's 20 bytes, the mark and the line end.
        let mut line = [0_u8; 24];
        let len = digits.len();
        line[0] = mark;
        line[1..=len].copy_from_slice(digits);
        line[len + 1..len + 3].copy_from_slice(b"\r\n");
        self.buf.extend_from_slice(&line[..len + 3]);
    }

    #[inline]
    fn line(&mut self, mark: u8, text: &[u8]) {
        let start = self.buf.len();
        self.buf.reserve(text.len() + 3);
        self.buf.push(mark);
        self.buf.extend_from_slice(text);
        self.finish_line(start);
    }

    /// Ends the line whose mark is at `start`: it must not contain a line end.
    #[inline]
    fn finish_line(&mut self, start: usize) {
        while self.buf.len() > start + 1 && matches!(self.buf.last(), Some(b'\r' | b'\n')) {
            self.buf.pop();
        }
        if memchr::memchr2(b'\r', b'\n', &self.buf[start..]).is_some() {
            for byte in &mut self.buf[start..] {
                if matches!(byte, b'\r' | b'\n') {
                    *byte = b' ';
                }
            }
        }
        self.buf.extend_from_slice(b"\r\n");
    }
}

/// Bytes around a bulk's body: mark, up to 20 digits, two line ends.
const BULK_OVERHEAD_BYTES: usize = 25;

/// `fmt::Write` into a byte vector.
struct Appender<'a>(&'a mut Vec<u8>);

impl fmt::Write for Appender<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(proto: Proto, write: impl FnOnce(&mut Writer)) -> String {
        let mut writer = Writer::new(proto);
        write(&mut writer);
        String::from_utf8(writer.segments().collect::<Vec<_>>().concat()).unwrap()
    }

    #[test]
    fn both_protocols_have_their_forms() {
        let write = |writer: &mut Writer| {
            writer.ok();
            writer.null();
            writer.null_array();
            writer.map(2);
            writer.set(12);
            writer.push(3);
            writer.double(0.5);
            writer.bulk_double(0.5);
            writer.bool(true);
            writer.bool(false);
            writer.big_number("123");
            writer.verbatim(b"txt", "hi");
            writer.bulk_int(-42);
            writer.bulk_display(format_args!("{}-{}", 1, 2));
            if writer.attribute(1) {
                writer.int(1);
                writer.int(2);
            }
        };
        assert_eq!(
            written(Proto::Resp2, write),
            "+OK\r\n$-1\r\n*-1\r\n*4\r\n*12\r\n*3\r\n$3\r\n0.5\r\n$3\r\n0.5\r\n:1\r\n:0\r\n$3\r\n123\r\n$2\r\nhi\r\n\
             $3\r\n-42\r\n$3\r\n1-2\r\n"
        );
        assert_eq!(
            written(Proto::Resp3, write),
            "+OK\r\n_\r\n_\r\n%2\r\n~12\r\n>3\r\n,0.5\r\n$3\r\n0.5\r\n#t\r\n#f\r\n(123\r\n=6\r\ntxt:hi\r\n\
             $3\r\n-42\r\n$3\r\n1-2\r\n|1\r\n:1\r\n:2\r\n"
        );
    }

    #[test]
    fn integers_of_every_length_are_written() {
        for value in [0, 9, 10, -1, 99, i64::MAX, i64::MIN] {
            assert_eq!(written(Proto::Resp2, |writer| writer.int(value)), format!(":{value}\r\n"));
        }
    }

    #[test]
    fn an_error_is_always_one_line() {
        let text = written(Proto::Resp2, |writer| {
            writer.error("ERR a\r\nb\r\n\r\n");
            writer.error(format_args!("ERR {}", "x\ny"));
            writer.simple("a\rb");
            writer.error_bytes(b"\r\n");
        });
        assert_eq!(text, "-ERR a  b\r\n-ERR x y\r\n+a b\r\n-\r\n");
    }

    fn with_big(writer: &mut Writer) -> Vec<u8> {
        let big = Bytes::from(vec![b'v'; SHARED_BULK_BYTES_MIN]);
        let mut expected = Vec::new();
        for count in 0..4 {
            writer.int(count);
            writer.bulk_shared(big.clone());
            expected.extend_from_slice(format!(":{count}\r\n${}\r\n", big.len()).as_bytes());
            expected.extend_from_slice(&big);
            expected.extend_from_slice(b"\r\n");
        }
        expected
    }

    #[test]
    fn slices_are_in_order_from_any_offset() {
        let mut writer = Writer::new(Proto::Resp2);
        let expected = with_big(&mut writer);
        assert!(writer.has_shared());
        assert_eq!(writer.len_bytes(), expected.len());
        for skip in (0..expected.len()).step_by(97).chain([expected.len() - 1, expected.len()]) {
            let mut written = skip;
            loop {
                let mut slices = [IoSlice::new(&[]); 3];
                let filled = writer.fill_slices(written, &mut slices);
                if filled == 0 {
                    break;
                }
                for slice in &slices[..filled] {
                    assert_eq!(slice[..], expected[written..written + slice.len()]);
                    written += slice.len();
                }
            }
            assert_eq!(written, expected.len());
        }
    }

    #[test]
    fn truncate_rolls_back_to_the_mark() {
        let mut writer = Writer::new(Proto::Resp2);
        with_big(&mut writer);
        let (mark, len) = (writer.mark(), writer.len_bytes());
        with_big(&mut writer);
        writer.truncate(mark);
        assert_eq!((writer.mark(), writer.len_bytes()), (mark, len));
        writer.clear();
        assert!(writer.is_empty());
        writer.truncate(mark);
        assert!(writer.is_empty());
    }

    #[test]
    fn small_shared_bulks_are_copied() {
        let mut writer = Writer::new(Proto::Resp2);
        writer.bulk_shared(Bytes::from_static(b"abc"));
        assert!(!writer.has_shared());
        assert_eq!(writer.take(), (b"$3\r\nabc\r\n".to_vec(), Vec::new()));
        assert!(writer.is_empty());
    }
}

//! Counts replies in a byte stream without building them.
//!
//! Owns the RESP2 and RESP3 framing that a load generator needs: where one reply ends, and whether it is an error. Does
//! not own values: nothing is decoded, no nesting is remembered. The number of elements still owed to the current
//! reply is enough to find its end, so state is constant whatever the depth.

use std::mem;

use thiserror::Error;

/// Bytes kept of an error text.
const ERROR_TEXT_BYTES_MAX: usize = 128;

/// Bytes that a header line (a length or a count) may have; the longest 64-bit number has 20.
const HEADER_DIGITS_MAX: u32 = 20;

/// Why the bytes cannot be replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum ReplyError {
    /// A reply starts with a byte that is no RESP type.
    #[error("the server sent {0:#04x} where a reply must start; does it speak RESP?")]
    UnknownType(u8),
    /// A length or count is not a number, or is out of range.
    #[error("the server sent a length that is not a number")]
    BadLength,
}

/// What the bytes fed so far are in the middle of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The next byte is a type byte.
    Type,
    /// In a line whose content does not matter.
    Line,
    /// In an error line; its text is being kept.
    ErrorLine,
    /// In the digits of a length or count.
    Header { kind: u8, value: u64, is_negative: bool, digits: u32 },
    /// In a body; so many bytes are left, the final CR LF included.
    Body { left: u64, is_error: bool },
}

/// An incremental counter of complete replies.
#[derive(Debug)]
pub(crate) struct ReplyCounter {
    state: State,
    /// Elements still to come before the current top-level reply is complete.
    owed: u64,
    is_push: bool,
    is_error: bool,
    error_text: Vec<u8>,
}

impl Default for ReplyCounter {
    fn default() -> Self {
        Self { state: State::Type, owed: 0, is_push: false, is_error: false, error_text: Vec::new() }
    }
}

impl ReplyCounter {
    /// Consumes `bytes` and returns how many replies they completed; pushes are not replies. `on_error` is called once
    /// for each reply that is, or contains, an error, with the first such text.
    ///
    /// # Errors
    /// [`ReplyError`] when the bytes are no RESP; the stream is then lost and the counter must not be used again.
    #[inline]
    pub(crate) fn feed(&mut self, bytes: &[u8], mut on_error: impl FnMut(&[u8])) -> Result<u64, ReplyError> {
        let mut replies = 0;
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            match self.state {
                State::Type => {
                    at += 1;
                    self.begin(rest[0])?;
                }
                State::Line => match memchr::memchr(b'\n', rest) {
                    Some(end) => {
                        at += end + 1;
                        replies += self.end_element(&mut on_error);
                    }
                    None => break,
                },
                State::ErrorLine => {
                    let end = memchr::memchr(b'\n', rest);
                    self.keep_error_text(&rest[..end.unwrap_or(rest.len())]);
                    match end {
                        Some(end) => {
                            at += end + 1;
                            replies += self.end_element(&mut on_error);
                        }
                        None => break,
                    }
                }
                State::Header { kind, value, is_negative, digits } => {
                    let (used, is_done) = self.header(rest, kind, value, is_negative, digits)?;
                    at += used;
                    if is_done {
                        replies += self.end_element(&mut on_error);
                    }
                }
                State::Body { left, is_error } => {
                    let used = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
                    at += used;
                    let left_after = left - used as u64;
                    if is_error {
                        // The last two of `left` are CR LF, not text.
                        let text = left.saturating_sub(2).min(used as u64) as usize;
                        self.keep_error_text(&rest[..text]);
                    }
                    self.state = State::Body { left: left_after, is_error };
                    if left_after == 0 {
                        replies += self.end_element(&mut on_error);
                    }
                }
            }
        }
        Ok(replies)
    }

    /// Takes a type byte.
    #[inline]
    fn begin(&mut self, kind: u8) -> Result<(), ReplyError> {
        let is_top = self.owed == 0;
        if is_top {
            self.owed = 1;
            self.is_push = kind == b'>';
        }
        self.state = match kind {
            b'+' | b':' | b'_' | b'#' | b',' | b'(' => State::Line,
            b'$' | b'*' | b'%' | b'~' | b'=' | b'!' | b'|' | b'>' => {
                State::Header { kind, value: 0, is_negative: false, digits: 0 }
            }
            b'-' => {
                self.start_error();
                State::ErrorLine
            }
            other => return Err(ReplyError::UnknownType(other)),
        };
        Ok(())
    }

    /// Takes digits up to the line's end. Returns the bytes used and whether an element ended with the line.
    #[inline]
    fn header(
        &mut self,
        bytes: &[u8],
        kind: u8,
        mut value: u64,
        mut is_negative: bool,
        mut digits: u32,
    ) -> Result<(usize, bool), ReplyError> {
        for (index, &byte) in bytes.iter().enumerate() {
            match byte {
                b'0'..=b'9' if digits < HEADER_DIGITS_MAX => {
                    digits += 1;
                    let next =
                        value.checked_mul(10).and_then(|tens| tens.checked_add(u64::from(byte - b'0')));
                    value = next.ok_or(ReplyError::BadLength)?;
                }
                b'-' if digits == 0 && !is_negative => is_negative = true,
                b'\r' => {}
                b'\n' if digits > 0 => {
                    let length = (!is_negative).then_some(value);
                    return Ok((index + 1, self.open(kind, length)?));
                }
                _ => return Err(ReplyError::BadLength),
            }
        }
        self.state = State::Header { kind, value, is_negative, digits };
        Ok((bytes.len(), false))
    }

    /// Acts on a complete length (`None` is a null); says whether that already ends the element.
    #[inline]
    fn open(&mut self, kind: u8, length: Option<u64>) -> Result<bool, ReplyError> {
        let Some(length) = length else { return Ok(true) };
        let children = match kind {
            b'$' | b'=' | b'!' => {
                let is_error = kind == b'!';
                if is_error {
                    self.start_error();
                }
                self.state =
                    State::Body { left: length.checked_add(2).ok_or(ReplyError::BadLength)?, is_error };
                return Ok(false);
            }
            b'%' | b'|' => length.checked_mul(2).ok_or(ReplyError::BadLength)?,
            _ => length,
        };
        self.owed = self.owed.checked_add(children).ok_or(ReplyError::BadLength)?;
        self.state = State::Type;
        // An attribute precedes the element that it describes and is none itself.
        Ok(kind != b'|')
    }

    fn start_error(&mut self) {
        if !self.is_error {
            self.error_text.clear();
        }
    }

    fn keep_error_text(&mut self, text: &[u8]) {
        if self.is_error {
            return;
        }
        let room = ERROR_TEXT_BYTES_MAX - self.error_text.len();
        self.error_text.extend_from_slice(&text[..text.len().min(room)]);
    }

    /// One element is complete; returns 1 when that completes a reply.
    #[inline]
    fn end_element(&mut self, on_error: &mut impl FnMut(&[u8])) -> u64 {
        let was_error = matches!(self.state, State::ErrorLine | State::Body { is_error: true, .. });
        self.is_error |= was_error;
        self.state = State::Type;
        self.owed -= 1;
        if self.owed > 0 {
            return 0;
        }
        let is_error = mem::take(&mut self.is_error);
        if self.is_push {
            return 0;
        }
        if is_error {
            on_error(self.error_text.trim_ascii_end());
        }
        1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn count(bytes: &[u8]) -> (u64, Vec<String>) {
        let mut counter = ReplyCounter::default();
        let mut errors = Vec::new();
        let replies =
            counter.feed(bytes, |text| errors.push(String::from_utf8_lossy(text).into_owned())).unwrap();
        (replies, errors)
    }

    #[test]
    fn counts_every_type_once() {
        for reply in [
            "+OK\r\n",
            ":12\r\n",
            "$-1\r\n",
            "*-1\r\n",
            "$0\r\n\r\n",
            "$3\r\na\nb\r\n",
            "*0\r\n",
            "*2\r\n$1\r\na\r\n*1\r\n:1\r\n",
            "%1\r\n+k\r\n~2\r\n:1\r\n:2\r\n",
            "_\r\n",
            "#t\r\n",
            ",1.5\r\n",
            "(123456789012345678901234567890\r\n",
            "=7\r\ntxt:abc\r\n",
            "|1\r\n+ttl\r\n:3\r\n$1\r\na\r\n",
            "*2\r\n|1\r\n+ttl\r\n:3\r\n$1\r\na\r\n+b\r\n",
        ] {
            assert_eq!(count(reply.as_bytes()), (1, vec![]), "{reply:?}");
        }
    }

    #[test]
    fn pushes_are_not_replies() {
        assert_eq!(count(b">2\r\n+invalidate\r\n*1\r\n+k\r\n+OK\r\n>0\r\n").0, 1);
    }

    #[test]
    fn a_reply_with_errors_counts_once_with_its_first_text() {
        let (replies, errors) =
            count(b"-ERR one\r\n!7\r\nERR two\r\n*3\r\n+a\r\n-ERR in\r\n-ERR later\r\n+OK\r\n");
        assert_eq!(replies, 4);
        assert_eq!(errors, ["ERR one", "ERR two", "ERR in"]);
    }

    #[test]
    fn an_error_text_is_bounded() {
        let long = format!("-{}\r\n", "e".repeat(10_000));
        assert_eq!(count(long.as_bytes()).1[0].len(), ERROR_TEXT_BYTES_MAX);
    }

    #[test]
    fn garbage_is_refused() {
        for garbage in [
            "HTTP/1.1 400\r\n",
            "$x\r\n",
            "$99999999999999999999999\r\n",
            "*\r\n",
            "$18446744073709551615\r\n",
        ] {
            assert!(ReplyCounter::default().feed(garbage.as_bytes(), |_| ()).is_err(), "{garbage}");
        }
    }

    fn reply() -> impl Strategy<Value = (Vec<u8>, bool)> {
        let leaf = prop_oneof![
            Just((b"+OK\r\n".to_vec(), false)),
            Just((b":-7\r\n".to_vec(), false)),
            Just((b"$-1\r\n".to_vec(), false)),
            Just((b"-ERR no\r\n".to_vec(), true)),
            Just((b"!6\r\nERR no\r\n".to_vec(), true)),
            proptest::collection::vec(any::<u8>(), 0..40).prop_map(|body| {
                let mut bytes = format!("${}\r\n", body.len()).into_bytes();
                bytes.extend(body);
                bytes.extend(b"\r\n");
                (bytes, false)
            }),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            (prop_oneof![Just('*'), Just('~'), Just('%'), Just('|')], proptest::collection::vec(inner, 0..4))
                .prop_map(|(kind, mut items)| {
                    if matches!(kind, '%' | '|') && items.len() % 2 == 1 {
                        items.pop();
                    }
                    let count = if matches!(kind, '%' | '|') { items.len() / 2 } else { items.len() };
                    let mut bytes = format!("{kind}{count}\r\n").into_bytes();
                    let is_error = items.iter().any(|item| item.1);
                    bytes.extend(items.into_iter().flat_map(|item| item.0));
                    if kind == '|' {
                        bytes.extend(b"+OK\r\n");
                    }
                    (bytes, is_error)
                })
        })
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_count(
            replies in proptest::collection::vec(reply(), 0..12),
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..16),
        ) {
            let expected = replies.len() as u64;
            let errors_expected = replies.iter().filter(|reply| reply.1).count();
            let bytes: Vec<u8> = replies.into_iter().flat_map(|reply| reply.0).collect();
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            places.extend([0, bytes.len()]);
            places.sort_unstable();
            let mut counter = ReplyCounter::default();
            let (mut seen, mut errors) = (0, 0);
            for pair in places.windows(2) {
                seen += counter.feed(&bytes[pair[0]..pair[1]], |text| {
                    assert_eq!(text, b"ERR no");
                    errors += 1;
                }).unwrap();
            }
            prop_assert_eq!(seen, expected);
            prop_assert_eq!(errors, errors_expected);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _ = ReplyCounter::default().feed(&bytes, |_| ());
        }
    }
}

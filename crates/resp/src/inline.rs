//! Words of an inline command, with the quoting of Redis's `sdssplitargs`.
//!
//! Owns quoting only: words are separated by white space; `"..."` knows `\n \r \t \b \a \xHH` and takes any
//! other escaped byte as itself; `'...'` knows `\'` only; a closing quote must end the word. Does not own the
//! line's bounds.

use crate::request::RequestError;

/// The words of a line, without their quotes.
///
/// # Errors
/// [`RequestError::UnbalancedQuotes`], and nothing else.
pub fn split_line(line: &[u8]) -> Result<Vec<Vec<u8>>, RequestError> {
    let (mut words, mut found) = (Words::new(line), Vec::new());
    while let Some(word) = words.next_word()? {
        found.push(match word {
            Word::Plain { start, len } => line[start..start + len].to_vec(),
            Word::Unescaped(bytes) => bytes,
        });
    }
    Ok(found)
}

/// One word of the line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// Lies in the line as it is.
    Plain { start: usize, len: usize },
    /// Had to be put together.
    Unescaped(Vec<u8>),
}

/// Cuts a line into words.
#[derive(Debug)]
pub(crate) struct Words<'a> {
    line: &'a [u8],
    pos: usize,
}

impl<'a> Words<'a> {
    pub(crate) const fn new(line: &'a [u8]) -> Self {
        Self { line, pos: 0 }
    }

    /// The next word, or `None` at the end of the line.
    ///
    /// # Errors
    /// [`RequestError::UnbalancedQuotes`].
    pub(crate) fn next_word(&mut self) -> Result<Option<Word>, RequestError> {
        while self.peek().is_some_and(is_space) {
            self.pos += 1;
        }
        if self.pos == self.line.len() {
            return Ok(None);
        }
        let start = self.pos;
        loop {
            match self.peek() {
                Some(b'"' | b'\'') => break,
                Some(byte) if !ends_word(byte) => self.pos += 1,
                _ => return Ok(Some(Word::Plain { start, len: self.pos - start })),
            }
        }
        self.quoted_word(start).map(|bytes| Some(Word::Unescaped(bytes)))
    }

    /// Finishes a word that began at `start` and has its first quote at `pos`.
    fn quoted_word(&mut self, start: usize) -> Result<Vec<u8>, RequestError> {
        let mut word = self.line[start..self.pos].to_vec();
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => {
                    self.pos += 1;
                    self.double_quoted(&mut word)?;
                    return self.closed(word);
                }
                b'\'' => {
                    self.pos += 1;
                    self.single_quoted(&mut word)?;
                    return self.closed(word);
                }
                _ if ends_word(byte) => break,
                _ => {
                    word.push(byte);
                    self.pos += 1;
                }
            }
        }
        Ok(word)
    }

    /// After a closing quote nothing but white space may follow.
    fn closed(&self, word: Vec<u8>) -> Result<Vec<u8>, RequestError> {
        if self.peek().is_none_or(is_space) { Ok(word) } else { Err(RequestError::UnbalancedQuotes) }
    }

    fn double_quoted(&mut self, word: &mut Vec<u8>) -> Result<(), RequestError> {
        loop {
            let rest = &self.line[self.pos..];
            let (byte, taken) = match *rest {
                [] => return Err(RequestError::UnbalancedQuotes),
                [b'"', ..] => {
                    self.pos += 1;
                    return Ok(());
                }
                [b'\\', b'x', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                    (hex(high) << 4 | hex(low), 4)
                }
                [b'\\', escaped, ..] => (unescape(escaped), 2),
                [byte, ..] => (byte, 1),
            };
            word.push(byte);
            self.pos += taken;
        }
    }

    fn single_quoted(&mut self, word: &mut Vec<u8>) -> Result<(), RequestError> {
        loop {
            let rest = &self.line[self.pos..];
            let (byte, taken) = match *rest {
                [] => return Err(RequestError::UnbalancedQuotes),
                [b'\'', ..] => {
                    self.pos += 1;
                    return Ok(());
                }
                [b'\\', b'\'', ..] => (b'\'', 2),
                [byte, ..] => (byte, 1),
            };
            word.push(byte);
            self.pos += taken;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.line.get(self.pos).copied()
    }
}

/// C's `isspace`: what separates words.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// What ends a word: fewer bytes than separate words, so a vertical tab within a word belongs to it.
fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn unescape(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    }
}

/// The value of an ASCII hexadecimal digit.
fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_follows_sdssplitargs() {
        let cases: [(&[u8], &[&[u8]]); 12] = [
            (b"", &[]),
            (b" \t ", &[]),
            (b"PING", &[b"PING"]),
            (b"  a  b\tc\rd ", &[b"a", b"b", b"c", b"d"]),
            (b"\x0ba\x0bb", &[b"a\x0bb"]),
            (b"a\"b c\" d", &[b"ab c", b"d"]),
            (br#""\x41\n\r\t\b\a\\\"\q""#, &[b"A\n\r\t\x08\x07\\\"q"]),
            (br#""\x4" "\xzz" "\xfF""#, &[b"x4", b"xzz", b"\xff"]),
            (br"'a\'b\n' '\\ '", &[b"a'b\\n", br"\\ "]),
            (b"'' \"\"", &[b"", b""]),
            (br"\x41", &[br"\x41"]),
            (b"\xff\x00", &[b"\xff\x00"]),
        ];
        for (line, expected) in cases {
            assert_eq!(split_line(line).unwrap(), expected, "{:?}", line.escape_ascii().to_string());
        }
    }

    #[test]
    fn quotes_must_close_at_the_end_of_a_word() {
        let cases: [&[u8]; 8] = [b"'", b"\"", b"'a", b"\"a\\\"", b"'a'b", b"\"a\"b", b"a'b'c", b"\"\\"];
        for line in cases {
            assert_eq!(
                split_line(line),
                Err(RequestError::UnbalancedQuotes),
                "{:?}",
                line.escape_ascii().to_string()
            );
        }
    }
}

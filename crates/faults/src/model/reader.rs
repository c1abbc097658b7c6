//! One connection's bytes, cut into commands.
//!
//! Owns the buffer and its bound. Does not own the wire format (`towline_resp::request`).

use bytes::Bytes;
use towline_resp::request::{ArgRange, Progress, RequestError, RequestLimits, RequestParser, strip_bulk_end};

/// Commands that arrive in pieces.
#[derive(Debug, Default)]
pub(super) struct RequestReader {
    parser: RequestParser,
    /// Begins at the first byte of the current command.
    buf: Vec<u8>,
    /// The big argument that is being read, and its length without the line end.
    big: Option<(Vec<u8>, usize)>,
    /// Big arguments of the current command.
    owned: Vec<Vec<u8>>,
}

impl RequestReader {
    /// Appends what arrived.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        match &mut self.big {
            Some((body, _)) => body.extend_from_slice(bytes),
            None => self.buf.extend_from_slice(bytes),
        }
    }

    /// Bytes that are held.
    pub(super) fn len_bytes(&self) -> usize {
        let big = self.big.as_ref().map_or(0, |(body, _)| body.len());
        self.buf.len() + big + self.owned.iter().map(Vec::len).sum::<usize>()
    }

    /// The next complete command, its name first.
    ///
    /// # Errors
    /// The bytes are no command; the client's fault, and final.
    pub(super) fn next(&mut self, limits: &RequestLimits) -> Result<Option<Vec<Bytes>>, RequestError> {
        loop {
            if !self.take_big()? {
                return Ok(None);
            }
            let mut ranges = Vec::new();
            let consumed = match self.parser.parse(&self.buf, limits, &mut ranges)? {
                Progress::Incomplete => return Ok(None),
                Progress::Empty { consumed } => {
                    self.buf.drain(..consumed);
                    continue;
                }
                Progress::Big { start, len } => {
                    self.big = Some((self.buf.split_off(start), len));
                    continue;
                }
                Progress::Inline { consumed, owned } => {
                    self.owned = owned;
                    consumed
                }
                Progress::Complete { consumed } => consumed,
            };
            return Ok(Some(self.take_command(&ranges, consumed)));
        }
    }

    /// Gives the big argument under way to the parser; false while it is incomplete.
    fn take_big(&mut self) -> Result<bool, RequestError> {
        let Some((mut body, len)) = self.big.take() else { return Ok(true) };
        let Some(rest_at) = len.checked_add(2).filter(|&whole| whole <= body.len()) else {
            self.big = Some((body, len));
            return Ok(false);
        };
        self.buf.extend_from_slice(&body[rest_at..]);
        body.truncate(rest_at);
        strip_bulk_end(&mut body, len)?;
        self.owned.push(body);
        self.parser.big_taken();
        Ok(true)
    }

    fn take_command(&mut self, ranges: &[ArgRange], consumed: usize) -> Vec<Bytes> {
        let args = ranges.iter().map(|range| Bytes::copy_from_slice(range.bytes(&self.buf, &self.owned)));
        let args = args.collect();
        self.owned.clear();
        self.buf.drain(..consumed);
        args
    }
}

#[cfg(test)]
mod tests {
    use towline_resp::frame::encode_command;

    use super::*;

    fn commands(stream: &[u8], piece: usize) -> Vec<Vec<Bytes>> {
        let (mut reader, limits, mut found) =
            (RequestReader::default(), RequestLimits::default(), Vec::new());
        for chunk in stream.chunks(piece) {
            reader.feed(chunk);
            while let Some(command) = reader.next(&limits).unwrap() {
                found.push(command);
            }
        }
        assert_eq!(reader.len_bytes(), 0);
        found
    }

    #[test]
    fn every_split_gives_the_same_commands() {
        let mut stream = Vec::new();
        let big = vec![b'x'; 70_000];
        encode_command(&[b"SET".as_slice(), b"k", &big, b"EX", &big], &mut stream);
        stream.extend_from_slice(b"\r\nPING \"a b\"\r\n*0\r\n");
        encode_command(&["GET", "k"], &mut stream);
        let whole = commands(&stream, stream.len());
        assert_eq!(whole.len(), 3);
        assert_eq!(whole[0][2].len(), big.len());
        assert_eq!(whole[1], ["PING", "a b"]);
        for piece in [1, 7, 4096, 70_001] {
            assert_eq!(commands(&stream, piece), whole, "pieces of {piece}");
        }
    }

    #[test]
    fn a_broken_stream_is_an_error() {
        let mut reader = RequestReader::default();
        reader.feed(b"*1\r\n!3\r\n");
        assert!(reader.next(&RequestLimits::default()).is_err());
    }
}

//! A minimal driver of the request parser, as a server would drive it: buffers, takes big bulks out, keeps
//! commands.

use towline_resp::request::{ArgRange, Progress, RequestError, RequestLimits, RequestParser, strip_bulk_end};

/// Feeds chunks to a parser and collects what comes out.
#[derive(Debug)]
pub(crate) struct Driver {
    parser: RequestParser,
    limits: RequestLimits,
    buf: Vec<u8>,
    args: Vec<ArgRange>,
    /// Big arguments of the current command.
    owned: Vec<Vec<u8>>,
    /// The big bulk that is being read, and its length.
    big: Option<(Vec<u8>, usize)>,
    /// Complete commands in order.
    pub(crate) commands: Vec<Vec<Vec<u8>>>,
    /// What broke the stream.
    pub(crate) error: Option<RequestError>,
}

impl Driver {
    /// A driver at the start of a stream.
    pub(crate) fn new(limits: RequestLimits) -> Self {
        Self {
            parser: RequestParser::new(),
            limits,
            buf: Vec::new(),
            args: Vec::new(),
            owned: Vec::new(),
            big: None,
            commands: Vec::new(),
            error: None,
        }
    }

    /// The whole stream in one piece.
    pub(crate) fn run(stream: &[u8], limits: RequestLimits) -> Self {
        let mut driver = Self::new(limits);
        driver.feed(stream);
        driver
    }

    /// The stream in pieces of the given lengths, the last repeated until the stream ends.
    pub(crate) fn run_split(mut stream: &[u8], lens: &[usize], limits: RequestLimits) -> Self {
        let mut driver = Self::new(limits);
        let mut lens = lens.iter().copied().chain(std::iter::repeat(lens.last().copied().unwrap_or(1)));
        while !stream.is_empty() {
            let len = lens.next().unwrap_or(1).clamp(1, stream.len());
            driver.feed(&stream[..len]);
            stream = &stream[len..];
        }
        driver
    }

    /// One read of a socket.
    pub(crate) fn feed(&mut self, mut chunk: &[u8]) {
        while self.error.is_none() {
            if let Some((body, len)) = &mut self.big {
                let wanted = (*len + 2 - body.len()).min(chunk.len());
                body.extend_from_slice(&chunk[..wanted]);
                chunk = &chunk[wanted..];
                if body.len() < *len + 2 {
                    return;
                }
                if let Err(error) = strip_bulk_end(body, *len) {
                    self.error = Some(error);
                    return;
                }
                self.owned.extend(self.big.take().map(|(body, _)| body));
                self.parser.big_taken();
            }
            self.buf.extend_from_slice(chunk);
            chunk = &[];
            self.parse_all();
            if self.big.is_none() {
                return;
            }
        }
    }

    /// Parses what is in the buffer, until it is used up or a big bulk begins.
    fn parse_all(&mut self) {
        loop {
            let first = self.args.len();
            let progress = self.parser.parse(&self.buf, &self.limits, &mut self.args);
            let consumed = match progress {
                Ok(Progress::Incomplete) => {
                    assert_eq!(self.args.len(), first, "arguments of a partial command stay in the parser");
                    return;
                }
                Ok(Progress::Big { start, len }) => {
                    assert_eq!(self.args.len(), first, "arguments of a partial command stay in the parser");
                    self.big = Some((self.buf.split_off(start), len));
                    return;
                }
                Err(error) => {
                    assert_eq!(self.args.len(), first, "a broken command leaves no arguments");
                    self.error = Some(error);
                    return;
                }
                Ok(Progress::Empty { consumed }) => {
                    assert_eq!(self.args.len(), first, "an empty command has no arguments");
                    consumed
                }
                Ok(Progress::Inline { consumed, owned }) => {
                    assert!(self.owned.is_empty(), "an inline command has no big arguments");
                    self.owned = owned;
                    consumed
                }
                Ok(Progress::Complete { consumed }) => consumed,
            };
            if self.args.len() > first {
                let args = &self.args[first..];
                self.commands
                    .push(args.iter().map(|arg| arg.bytes(&self.buf, &self.owned).to_vec()).collect());
            }
            self.args.truncate(first);
            self.owned.clear();
            self.buf.drain(..consumed);
            assert!(self.parser.is_idle(), "a complete command leaves nothing behind");
        }
    }
}

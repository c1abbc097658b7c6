//! The server's incremental parser of commands.
//!
//! Owns the cutting of a byte stream into commands: multibulk (`*2\r\n$3\r\nGET\r\n...`) and inline
//! (`GET key\r\n`), with Redis's bounds and error texts. Does not own the read buffer, big arguments' memory,
//! or the closing of the connection after an error.
//!
//! # How a driver uses it
//!
//! `buf` always begins at the first byte of the current command. The driver calls [`RequestParser::parse`]
//! until it answers [`Progress::Incomplete`], dropping (or skipping) `consumed` bytes after each complete
//! command, then reads more and calls again with the longer buffer. Nothing is parsed twice.
//!
//! An argument of [`BIG_BULK_BYTES`] or more that is not wholly in the buffer is announced with
//! [`Progress::Big`]: the driver moves `buf[start..]` into a buffer of its own, reads until that one holds
//! `len + 2` bytes, verifies its end with [`strip_bulk_end`], calls [`RequestParser::big_taken`] and goes on
//! with a `buf` that now ends at `start`. In the command's arguments a marker ([`ArgRange::owned_index`])
//! stands for it.
//!
//! ```
//! use towline_resp::request::{Progress, RequestError, RequestLimits, RequestParser};
//!
//! # fn main() -> Result<(), RequestError> {
//! let mut buf: &[u8] = b"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\nPING\r\n*1\r\n$4\r\nPI";
//! let (mut parser, limits, mut args) = (RequestParser::new(), RequestLimits::default(), Vec::new());
//! let mut names = Vec::new();
//! while let Progress::Complete { consumed } = parser.parse(buf, &limits, &mut args)? {
//!     let owned: &[Vec<u8>] = &[];
//!     names.push(args[0].bytes(buf, owned));
//!     buf = &buf[consumed..];
//!     args.clear();
//! }
//! assert_eq!(names, [b"GET".as_slice(), b"PING"]);
//! assert_eq!(buf.len(), 10); // an incomplete command: read more behind it
//! # Ok(())
//! # }
//! ```
//!
//! # Where it is stricter than Redis 7
//!
//! Redis 7 and 8 do not look at the two bytes that end a bulk, nor at the byte after a header's `\r`; Valkey
//! 9 does, and so does this parser, since a wrong byte there means that both sides disagree about where a
//! command ends.
//!
//! Rules from `processMultibulkBuffer`, `processInlineBuffer` and `sdssplitargs`, observed on Redis 7.0,
//! Redis 8.2 and Valkey 9.1.

mod error;

use memchr::memchr;

use crate::inline::{Word, Words};
use crate::number::parse_i64;

pub use error::RequestError;

/// Bulks of this length and more are handed to the driver while they arrive ([`Progress::Big`]), in bytes. 64
/// KiB: below it one copy costs less than a buffer of its own.
pub const BIG_BULK_BYTES: usize = 64 * 1024;

/// Partial commands keep room for this many arguments at first; the claimed count is never trusted.
const PARTIAL_ARGS_INITIAL: usize = 16;

/// Bounds of one command. The defaults are Redis's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// Longest argument, in bytes (`proto-max-bulk-len`). Default 512 MiB, Redis's default and the longest
    /// string that all clients accept.
    pub bulk_bytes_max: u64,
    /// Most arguments of one command. Default `i32::MAX`, as in Redis since 7.0; memory is bounded by the
    /// query buffer, never by this claim.
    pub args_max: u32,
    /// Longest inline command and longest header line, in bytes without its line end. Default 64 KiB, as in
    /// Redis.
    pub inline_bytes_max: usize,
    /// Tighter bounds while the client has not authenticated; `None` once it has, or if no password is set.
    pub unauthenticated: Option<UnauthenticatedLimits>,
}

/// What a client that has not authenticated yet may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnauthenticatedLimits {
    /// Most arguments of one command. Default 10: `HELLO 3 AUTH user password SETNAME name` has 7.
    pub args_max: u32,
    /// Longest argument, in bytes. Default 16 KiB: longer than any password.
    pub bulk_bytes_max: u64,
}

impl Default for UnauthenticatedLimits {
    fn default() -> Self {
        Self { args_max: 10, bulk_bytes_max: 16 * 1024 }
    }
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            bulk_bytes_max: 512 * 1024 * 1024,
            args_max: i32::MAX as u32,
            inline_bytes_max: 64 * 1024,
            unauthenticated: None,
        }
    }
}

impl RequestLimits {
    /// The default bounds for a client that has yet to authenticate.
    pub fn unauthenticated() -> Self {
        Self { unauthenticated: Some(UnauthenticatedLimits::default()), ..Self::default() }
    }
}

/// One argument: where it lies, in bytes from the start of its command, or which owned argument it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgRange {
    /// Offset of the first byte from the first byte of the command; [`ArgRange::OWNED`] if the bytes are not
    /// in `buf`.
    pub start: u32,
    /// Length in bytes; the index among the command's owned arguments if `start` is [`ArgRange::OWNED`].
    pub len: u32,
}

impl ArgRange {
    /// `start` of an argument that does not lie in the buffer: a big one that the driver took, or an
    /// unescaped inline one.
    pub const OWNED: u32 = u32::MAX;

    /// The marker of the command's `index`-th owned argument.
    #[inline]
    pub const fn owned(index: u32) -> Self {
        Self { start: Self::OWNED, len: index }
    }

    /// The index among the command's owned arguments, or `None` for an argument that lies in the buffer.
    #[inline]
    pub const fn owned_index(self) -> Option<usize> {
        if self.start == Self::OWNED { Some(self.len as usize) } else { None }
    }

    /// The argument's bytes, given the command's buffer and its owned arguments.
    ///
    /// # Panics
    /// If `command` or `owned` are not those of this argument's command.
    #[inline]
    pub fn bytes<'a, O: AsRef<[u8]>>(self, command: &'a [u8], owned: &'a [O]) -> &'a [u8] {
        match self.owned_index() {
            None => &command[self.start as usize..self.start as usize + self.len as usize],
            Some(index) => owned[index].as_ref(),
        }
    }
}

/// What [`RequestParser::parse`] found.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// A command; its arguments (one at least) were appended to `args`.
    Complete {
        /// Bytes of `buf` that the command took.
        consumed: usize,
    },
    /// An inline command of which some arguments had to be unescaped; all its arguments were appended to
    /// `args`, those unescaped as markers.
    Inline {
        /// Bytes of `buf` that the command took.
        consumed: usize,
        /// The unescaped arguments, by the markers' indices. Never empty.
        owned: Vec<Vec<u8>>,
    },
    /// An empty line, `*0` or `*-1`: nothing to execute and nothing to answer.
    Empty {
        /// Bytes of `buf` to drop.
        consumed: usize,
    },
    /// The command needs bytes that are not there yet; `args` is as it was.
    Incomplete,
    /// A bulk of [`BIG_BULK_BYTES`] or more begins and has not wholly arrived; `args` is as it was. All of
    /// `buf[start..]` belongs to it. Repeated until [`RequestParser::big_taken`].
    Big {
        /// Offset of the bulk's first byte; at most `buf.len()`.
        start: usize,
        /// Length of the bulk in bytes, without the `\r\n` that follows it.
        len: usize,
    },
}

/// Verifies that `bulk`, of `len + 2` bytes, ends with `\r\n`, and cuts that off. For the driver, before
/// [`RequestParser::big_taken`].
///
/// # Errors
/// [`RequestError::InvalidLineEnd`] if it has another length or another end.
pub fn strip_bulk_end(bulk: &mut Vec<u8>, len: usize) -> Result<(), RequestError> {
    if bulk.len() == len.saturating_add(2) && bulk.ends_with(b"\r\n") {
        bulk.truncate(len);
        Ok(())
    } else {
        Err(RequestError::InvalidLineEnd)
    }
}

/// Where the parser stands in the current command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Before the command's line has ended; `aux` bytes of it were searched for its end.
    Start,
    /// At an argument's header; `aux` is the offset up to which its end was searched.
    Header,
    /// In an argument's body of `aux` bytes, which begins at `pos`.
    Body,
    /// As `Body`, and the driver was told to take the body.
    Big,
    /// After the last argument, which the driver took.
    Finished,
}

/// The arguments found so far of a command that did not arrive in one read.
#[derive(Clone, Debug)]
struct Partial {
    args: Vec<ArgRange>,
    /// How many of them are owned.
    owned_count: u32,
}

/// The incremental parser of one connection's commands. 32 bytes; owns memory only within a command.
#[derive(Clone, Debug)]
pub struct RequestParser {
    /// Meaning by phase: how far a line's end was searched, or a body's length.
    aux: u64,
    partial: Option<Box<Partial>>,
    /// Offset of the next byte to parse. A command's offsets fit `u32`, or it is refused.
    pos: u32,
    /// Arguments still to come, the current one included.
    missing: u32,
    phase: Phase,
}

impl Default for RequestParser {
    fn default() -> Self {
        Self::new()
    }
}

/// One header line (`*3\r\n`, `$5\r\n`).
enum Header {
    Complete { value: i64, next: usize },
    Partial { searched: usize },
    NoNumber,
}

/// Which header is read: decides the error texts.
#[derive(Clone, Copy)]
enum HeaderKind {
    Multibulk,
    Bulk,
}

impl RequestParser {
    /// A parser at the start of a connection.
    pub const fn new() -> Self {
        Self { aux: 0, partial: None, pos: 0, missing: 0, phase: Phase::Start }
    }

    /// Whether no part of a command has been seen: the connection may be closed without cutting one.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.phase == Phase::Start && self.aux == 0
    }

    /// How many more bytes than the `buffered` ones the argument under way needs, for reserving room in one
    /// step; 0 if no argument is under way. At most [`BIG_BULK_BYTES`] and two, whatever the client
    /// announced: bigger bulks do not belong in the command's buffer.
    pub fn bytes_missing(&self, buffered: usize) -> usize {
        match self.phase {
            // The length was accepted, and below the threshold it fits.
            Phase::Body => (self.pos as usize + self.aux as usize + 2).saturating_sub(buffered),
            _ => 0,
        }
    }

    /// Parses the command that begins at `buf[0]`, going on where the last call stopped, and appends its
    /// arguments to `args` when it is complete. After anything else `args` has its old length: the arguments
    /// found so far stay in the parser.
    ///
    /// # Errors
    /// [`RequestError`]: the stream is broken from here on, and further calls make no sense.
    #[inline]
    pub fn parse(
        &mut self,
        buf: &[u8],
        limits: &RequestLimits,
        args: &mut Vec<ArgRange>,
    ) -> Result<Progress, RequestError> {
        let first = args.len();
        if self.phase == Phase::Start {
            match buf.first() {
                None => return Ok(Progress::Incomplete),
                Some(b'*') => {}
                Some(_) => return self.parse_inline(buf, limits, args),
            }
            match read_header(buf, 0, self.aux as usize, HeaderKind::Multibulk, limits)? {
                Header::Complete { value, next } => {
                    if value <= 0 {
                        self.reset();
                        return Ok(Progress::Empty { consumed: next });
                    }
                    self.missing = accept_count(value, limits)?;
                    (self.phase, self.aux, self.pos) = (Phase::Header, 0, offset(next)?);
                }
                Header::Partial { searched } => {
                    self.aux = searched as u64;
                    return Ok(Progress::Incomplete);
                }
                Header::NoNumber => return Err(RequestError::InvalidMultibulkLength),
            }
        }
        match self.parse_args(buf, limits, args) {
            Ok(None) => {
                let consumed = self.pos as usize;
                if let Some(partial) = self.partial.take() {
                    args.splice(first..first, partial.args);
                }
                self.reset();
                Ok(Progress::Complete { consumed })
            }
            Ok(Some(progress)) => {
                self.keep(args, first);
                Ok(progress)
            }
            Err(error) => {
                args.truncate(first);
                Err(error)
            }
        }
    }

    /// Tells that the driver has the whole body of the bulk of the last [`Progress::Big`], and that `buf` now
    /// goes on at `start` with what follows that bulk's `\r\n`.
    ///
    /// # Panics
    /// If the last answer was not [`Progress::Big`]: the driver would have lost its place in the stream.
    pub fn big_taken(&mut self) {
        assert!(self.phase == Phase::Big, "big_taken without Progress::Big");
        let partial = self.partial_mut();
        partial.args.push(ArgRange::owned(partial.owned_count));
        partial.owned_count += 1;
        self.missing -= 1;
        self.aux = 0;
        self.phase = if self.missing == 0 { Phase::Finished } else { Phase::Header };
    }

    /// Parses arguments until the last (`None`) or until something stops it.
    #[inline]
    fn parse_args(
        &mut self,
        buf: &[u8],
        limits: &RequestLimits,
        args: &mut Vec<ArgRange>,
    ) -> Result<Option<Progress>, RequestError> {
        let mut pos = self.pos as usize;
        while self.missing > 0 {
            if self.phase == Phase::Header {
                match read_header(buf, pos, self.aux as usize, HeaderKind::Bulk, limits)? {
                    Header::Complete { value, next } => {
                        self.aux = accept_length(value, limits)?;
                        self.phase = Phase::Body;
                        pos = next;
                    }
                    Header::Partial { searched } => {
                        (self.aux, self.pos) = (searched as u64, offset(pos)?);
                        return Ok(Some(Progress::Incomplete));
                    }
                    Header::NoNumber => return Err(RequestError::InvalidBulkLength),
                }
            }
            let len = usize::try_from(self.aux).map_err(|_| RequestError::InvalidBulkLength)?;
            let rest = buf.get(pos..).unwrap_or_default();
            if rest.len() < len + 2 {
                self.pos = offset(pos)?;
                if len < BIG_BULK_BYTES {
                    return Ok(Some(Progress::Incomplete));
                }
                self.phase = Phase::Big;
                return Ok(Some(Progress::Big { start: pos, len }));
            }
            if rest[len..len + 2] != *b"\r\n" {
                return Err(RequestError::InvalidLineEnd);
            }
            let next = pos + len + 2;
            // Both casts are exact: the offset of the bulk's end fits.
            offset(next)?;
            args.push(ArgRange { start: pos as u32, len: len as u32 });
            pos = next;
            self.missing -= 1;
            (self.phase, self.aux) = (Phase::Header, 0);
        }
        self.pos = offset(pos)?;
        Ok(None)
    }

    /// Parses one inline command: a line of words with `sdssplitargs`'s quoting.
    #[cold]
    fn parse_inline(
        &mut self,
        buf: &[u8],
        limits: &RequestLimits,
        args: &mut Vec<ArgRange>,
    ) -> Result<Progress, RequestError> {
        let searched = (self.aux as usize).min(buf.len());
        let end = memchr(b'\n', &buf[searched..]).map(|at| searched + at);
        if end.unwrap_or(buf.len()) > limits.inline_bytes_max {
            return Err(RequestError::TooBigInline);
        }
        let Some(end) = end else {
            self.aux = buf.len() as u64;
            return Ok(Progress::Incomplete);
        };
        self.reset();
        let line = buf[..end].strip_suffix(b"\r").unwrap_or(&buf[..end]);
        let consumed = offset(end + 1)? as usize;
        let first = args.len();
        let mut owned = Vec::new();
        let mut words = Words::new(line);
        while let Some(word) = words.next_word().inspect_err(|_| args.truncate(first))? {
            args.push(match word {
                Word::Plain { start, len } => ArgRange { start: start as u32, len: len as u32 },
                Word::Unescaped(bytes) => {
                    owned.push(bytes);
                    ArgRange::owned(owned.len() as u32 - 1)
                }
            });
        }
        Ok(match (args.len() == first, owned.is_empty()) {
            (true, _) => Progress::Empty { consumed },
            (false, true) => Progress::Complete { consumed },
            (false, false) => Progress::Inline { consumed, owned },
        })
    }

    /// Moves the ranges that this call found into the parser.
    #[cold]
    fn keep(&mut self, args: &mut Vec<ArgRange>, first: usize) {
        if args.len() > first {
            self.partial_mut().args.extend(args.drain(first..));
        }
    }

    fn partial_mut(&mut self) -> &mut Partial {
        self.partial.get_or_insert_with(|| {
            Box::new(Partial { args: Vec::with_capacity(PARTIAL_ARGS_INITIAL), owned_count: 0 })
        })
    }

    #[inline]
    fn reset(&mut self) {
        (self.phase, self.aux, self.pos, self.missing) = (Phase::Start, 0, 0, 0);
    }
}

/// An offset within a command, which must fit [`ArgRange`].
#[inline]
fn offset(pos: usize) -> Result<u32, RequestError> {
    match u32::try_from(pos) {
        Ok(fitting) if fitting != ArgRange::OWNED => Ok(fitting),
        _ => Err(RequestError::TooBigRequest),
    }
}

#[inline]
fn accept_count(value: i64, limits: &RequestLimits) -> Result<u32, RequestError> {
    let count = match u32::try_from(value) {
        Ok(count) if count <= limits.args_max => count,
        _ => return Err(RequestError::InvalidMultibulkLength),
    };
    match limits.unauthenticated {
        Some(tight) if count > tight.args_max => Err(RequestError::UnauthenticatedMultibulkLength),
        _ => Ok(count),
    }
}

#[inline]
fn accept_length(value: i64, limits: &RequestLimits) -> Result<u64, RequestError> {
    let len = match u64::try_from(value) {
        Ok(len) if len <= limits.bulk_bytes_max => len,
        _ => return Err(RequestError::InvalidBulkLength),
    };
    match limits.unauthenticated {
        Some(tight) if len > tight.bulk_bytes_max => Err(RequestError::UnauthenticatedBulkLength),
        _ => Ok(len),
    }
}

/// Reads the header at `pos`. The common case, a wholly present line of up to nine digits, stays here; all
/// else, errors included, is [`read_header_slowly`]'s.
#[inline]
fn read_header(
    buf: &[u8],
    pos: usize,
    searched: usize,
    kind: HeaderKind,
    limits: &RequestLimits,
) -> Result<Header, RequestError> {
    let mark = match kind {
        HeaderKind::Multibulk => b'*',
        HeaderKind::Bulk => b'$',
    };
    if let Some([first, second, rest @ ..]) = buf.get(pos..)
        && *first == mark
        && matches!(second, b'1'..=b'9')
    {
        let mut value = i64::from(second - b'0');
        for (index, &byte) in rest.iter().take(9).enumerate() {
            let digit = byte.wrapping_sub(b'0');
            if digit <= 9 {
                value = value * 10 + i64::from(digit);
            } else if byte == b'\r' && rest.get(index + 1) == Some(&b'\n') {
                return Ok(Header::Complete { value, next: pos + 2 + index + 2 });
            } else {
                break;
            }
        }
    }
    read_header_slowly(buf, pos, searched, kind, limits)
}

/// Reads any header by Redis's rules: the line ends at the first `\r`.
#[cold]
fn read_header_slowly(
    buf: &[u8],
    pos: usize,
    searched: usize,
    kind: HeaderKind,
    limits: &RequestLimits,
) -> Result<Header, RequestError> {
    let from = searched.max(pos).min(buf.len());
    let end = memchr(b'\r', &buf[from..]).map(|at| from + at);
    if end.unwrap_or(buf.len()).saturating_sub(pos) > limits.inline_bytes_max {
        return Err(match kind {
            HeaderKind::Multibulk => RequestError::TooBigMultibulkCount,
            HeaderKind::Bulk => RequestError::TooBigBulkCount,
        });
    }
    let Some(end) = end else { return Ok(Header::Partial { searched: buf.len() }) };
    let Some(&after) = buf.get(end + 1) else { return Ok(Header::Partial { searched: end }) };
    let got = buf[pos];
    if matches!(kind, HeaderKind::Bulk) && got != b'$' {
        return Err(RequestError::ExpectedBulk { got });
    }
    if after != b'\n' {
        return Err(RequestError::InvalidLineEnd);
    }
    Ok(match parse_i64(&buf[pos + 1..end]) {
        Some(value) => Header::Complete { value, next: end + 2 },
        None => Header::NoNumber,
    })
}

#[cfg(test)]
mod tests;

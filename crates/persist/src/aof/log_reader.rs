//! The streaming reader of commands.
//!
//! Owns where commands and transactions begin and end, and the difference between a torn tail and damage. Holds
//! one unit (a command or a whole transaction) and what was fed behind it.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;

use memchr::memchr;

/// Headers and annotations are short; a longer one is damage.
const LINE_BYTES_MAX: usize = 1024;

/// Bounds on what is held while reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLimits {
    /// Longest argument, in bytes. Default 512 MiB, that of `proto-max-bulk-len`.
    pub arg_bytes_max: u64,
    /// Most arguments of a command. Default `i32::MAX`, as in Redis; memory follows what arrives, not the claim.
    pub args_max: u64,
    /// Longest unit, in bytes: a command, or a transaction, which is held until its `EXEC`. Default 4 GiB, eight
    /// of the longest arguments.
    pub unit_bytes_max: u64,
}

impl Default for LogLimits {
    fn default() -> Self {
        Self { arg_bytes_max: 512 << 20, args_max: i32::MAX as u64, unit_bytes_max: 4 << 30 }
    }
}

/// Why reading ended before the end. Never retryable with the same bytes, except
/// [`LogErrorKind::TooLarge`], with other limits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{kind}, at byte {offset}; what lies before byte {sound_bytes} is sound: bring the file back from a copy, or cut it \
     to that length (redis-check-aof --fix) and lose what follows"
)]
pub struct LogError {
    /// The byte that is wrong.
    pub offset: u64,
    /// Everything before this byte was read: the end of the last whole unit.
    pub sound_bytes: u64,
    /// What is wrong.
    pub kind: LogErrorKind,
}

/// What is wrong with a log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LogErrorKind {
    /// A byte that cannot stand there.
    #[error("the log is damaged: expected {expected}, found 0x{found:02x}")]
    Damaged {
        /// What could.
        expected: &'static str,
        /// The byte.
        found: u8,
    },
    /// A transaction inside a transaction, or the end of one that was not begun.
    #[error("the log is damaged: {0}")]
    Transaction(&'static str),
    /// A length beyond the caller's limits.
    #[error("{what} of {size} exceeds the limit of {size_max}")]
    TooLarge {
        /// Of what.
        what: &'static str,
        /// The size that was claimed or reached.
        size: u64,
        /// The limit.
        size_max: u64,
    },
}

/// How a file ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogEnd {
    /// After a whole unit.
    Whole,
    /// Within one.
    Torn {
        /// The length to cut the file to.
        cut_at: u64,
        /// The bytes that this removes.
        lost_bytes: u64,
        /// What was begun there.
        reason: TornReason,
    },
}

/// What a torn tail is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TornReason {
    /// The beginning of a command or an annotation.
    Command,
    /// A transaction without its `EXEC`.
    Transaction,
    /// Zero bytes up to the end, perhaps after the beginning of a unit: the file grew and was not written.
    Zeros,
}

impl fmt::Display for TornReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Command => "an incomplete command",
            Self::Transaction => "a transaction without EXEC",
            Self::Zeros => "zero bytes",
        })
    }
}

/// What comes next in a log.
#[derive(Debug)]
pub enum LogEvent<'a> {
    /// Everything that was fed has been used: feed more, or call [`LogReader::end`].
    NeedMore,
    /// A `#TS:` annotation: what follows was written at this time, in seconds since the Unix epoch. Other
    /// annotations are passed over, as Redis does.
    Timestamp(u64),
    /// A command. Between `MULTI` and `EXEC`, which are handed out as well, the transaction is known to be whole.
    Command(LogCommand<'a>),
    /// The end of the file. Comes again when asked again.
    End(LogEnd),
}

/// A command in a log.
#[derive(Debug, Clone, Copy)]
pub struct LogCommand<'a> {
    /// Where it begins.
    pub offset: u64,
    /// Its name and arguments; never empty.
    pub args: Args<'a>,
}

/// The arguments of a command.
#[derive(Debug, Clone, Copy)]
pub struct Args<'a> {
    buf: &'a [u8],
    base: u64,
    ranges: &'a [Range<u64>],
}

impl<'a> Args<'a> {
    /// How many there are, the command's name included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether there is none, which no command of a log is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The argument at `index`; the name is at 0.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        self.ranges.get(index).map(|range| slice(self.buf, self.base, range))
    }

    /// All of them in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let (buf, base) = (self.buf, self.base);
        self.ranges.iter().map(move |range| slice(buf, base, range))
    }
}

/// The bytes at offsets of the file, all of which are in the buffer.
fn slice<'a>(buf: &'a [u8], base: u64, range: &Range<u64>) -> &'a [u8] {
    &buf[(range.start - base) as usize..(range.end - base) as usize]
}

/// Reads the commands of one file.
///
/// ```text
/// feed* -> next_event* until NeedMore -> ... -> end -> next_event* until End
/// ```
///
/// An error stays: every later call gives it again.
#[derive(Debug)]
pub struct LogReader {
    limits: LogLimits,
    buf: Vec<u8>,
    /// Offset of `buf[0]` in the file; all other offsets here are in the file, too.
    base: u64,
    /// The end of the last whole unit.
    unit_end: u64,
    /// The end of what was parsed.
    at: u64,
    command: Partial,
    /// Whole units to hand out.
    ready: VecDeque<Item>,
    /// What was just handed out.
    current: Option<Item>,
    /// The transaction under way, from its `MULTI` on.
    transaction: Vec<Item>,
    spare: Vec<Vec<Range<u64>>>,
    /// Zero bytes began here, where no zero byte can stand.
    zeros_from: Option<LogError>,
    is_ended: bool,
    failed: Option<LogError>,
}

/// A command of which not all arguments have arrived.
#[derive(Debug, Default)]
struct Partial {
    start: u64,
    /// `None` between commands.
    args_left: Option<u64>,
    /// The length of the argument under way, after its header.
    arg_bytes: Option<u64>,
    args: Vec<Range<u64>>,
}

#[derive(Debug)]
enum Item {
    Timestamp(u64),
    Command { start: u64, args: Vec<Range<u64>> },
}

enum Stop {
    More,
    Bad(u64, LogErrorKind),
}

impl LogReader {
    /// At the start of a file of commands.
    #[must_use]
    pub fn new(limits: LogLimits) -> Self {
        Self::at(limits, 0)
    }

    /// Behind a preamble that ends at `offset`.
    #[must_use]
    pub fn at(limits: LogLimits, offset: u64) -> Self {
        Self {
            limits,
            buf: Vec::new(),
            base: offset,
            unit_end: offset,
            at: offset,
            command: Partial::default(),
            ready: VecDeque::new(),
            current: None,
            transaction: Vec::new(),
            spare: Vec::new(),
            zeros_from: None,
            is_ended: false,
            failed: None,
        }
    }

    /// Appends the next bytes of the file.
    pub fn feed(&mut self, bytes: &[u8]) {
        if let Some(error) = &self.zeros_from {
            if bytes.iter().any(|byte| *byte != 0) {
                self.failed = Some(error.clone());
            }
            self.at += bytes.len() as u64;
            return;
        }
        self.retire_current();
        let kept_from = self.ready.iter().find_map(Item::start).unwrap_or(self.unit_end);
        self.buf.drain(..(kept_from - self.base) as usize);
        self.base = kept_from;
        self.buf.extend_from_slice(bytes);
    }

    /// Tells that the file has no more bytes.
    pub fn end(&mut self) {
        self.is_ended = true;
    }

    /// Bytes of the file that were used: the progress of loading.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.unit_end
    }

    /// What comes next.
    ///
    /// # Errors
    /// See [`LogErrorKind`]; the error stays.
    pub fn next_event(&mut self) -> Result<LogEvent<'_>, LogError> {
        self.retire_current();
        while self.ready.is_empty() {
            if let Some(error) = &self.failed {
                return Err(error.clone());
            }
            match self.parse() {
                Ok(item) => self.accept(item),
                Err(Stop::More) if self.is_ended => return Ok(LogEvent::End(self.file_end())),
                Err(Stop::More) => return Ok(LogEvent::NeedMore),
                Err(Stop::Bad(offset, kind)) => {
                    let error = LogError { offset, sound_bytes: self.unit_end, kind };
                    self.fail(error);
                }
            }
        }
        self.current = self.ready.pop_front();
        Ok(match &self.current {
            Some(Item::Timestamp(unix_s)) => LogEvent::Timestamp(*unix_s),
            Some(Item::Command { start, args }) => LogEvent::Command(LogCommand {
                offset: *start,
                args: Args { buf: &self.buf, base: self.base, ranges: args },
            }),
            None => LogEvent::NeedMore,
        })
    }

    fn retire_current(&mut self) {
        /// Transactions bring many at once; more than these are not worth keeping.
        const SPARES_MAX: usize = 8;
        if let Some(Item::Command { mut args, .. }) = self.current.take()
            && self.spare.len() < SPARES_MAX
        {
            args.clear();
            self.spare.push(args);
        }
    }

    /// Tells zero bytes up to the end from damage; more bytes may be needed for that.
    fn fail(&mut self, error: LogError) {
        let from = &self.buf[(error.offset - self.base) as usize..];
        if from.iter().all(|byte| *byte == 0) && !from.is_empty() {
            self.at = self.base + self.buf.len() as u64;
            self.zeros_from = Some(error);
        } else {
            self.failed = Some(error);
        }
    }

    fn file_end(&self) -> LogEnd {
        let end = if self.zeros_from.is_some() { self.at } else { self.base + self.buf.len() as u64 };
        if end == self.unit_end {
            return LogEnd::Whole;
        }
        let reason = match (&self.zeros_from, self.transaction.is_empty()) {
            (Some(_), _) => TornReason::Zeros,
            (None, false) => TornReason::Transaction,
            (None, true) => TornReason::Command,
        };
        LogEnd::Torn { cut_at: self.unit_end, lost_bytes: end - self.unit_end, reason }
    }

    /// Takes a whole item: it is ready, or belongs to a transaction under way.
    fn accept(&mut self, item: Option<Item>) {
        let is_open = !self.transaction.is_empty();
        let name = match &item {
            Some(Item::Command { args, .. }) => {
                args.first().map_or(&[][..], |range| slice(&self.buf, self.base, range))
            }
            _ => &[],
        };
        let (is_multi, is_exec) = (name.eq_ignore_ascii_case(b"MULTI"), name.eq_ignore_ascii_case(b"EXEC"));
        if (is_open && is_multi) || (!is_open && is_exec) {
            let what = if is_multi { "MULTI inside MULTI" } else { "EXEC without MULTI" };
            self.failed = Some(LogError {
                offset: self.command.start,
                sound_bytes: self.unit_end,
                kind: LogErrorKind::Transaction(what),
            });
            return;
        }
        if is_open || is_multi {
            self.transaction.extend(item);
            if is_exec {
                self.ready.extend(self.transaction.drain(..));
                self.unit_end = self.at;
            }
        } else {
            self.ready.extend(item);
            self.unit_end = self.at;
        }
    }

    /// Parses up to the end of a command or an annotation; `None` for one that says nothing.
    fn parse(&mut self) -> Result<Option<Item>, Stop> {
        if self.zeros_from.is_some() {
            return Err(Stop::More);
        }
        let args_left = match self.command.args_left {
            Some(args_left) => args_left,
            None => {
                let rest = &self.buf[(self.at - self.base) as usize..];
                if rest.first() == Some(&b'#') {
                    return self.annotation();
                }
                self.command.start = self.at;
                let count = self.header(b'*', "the start of a command")?;
                let args_max = self.limits.args_max;
                if count > args_max || count == 0 {
                    let kind = match count {
                        0 => LogErrorKind::Damaged { expected: "a command with a name", found: b'0' },
                        size => LogErrorKind::TooLarge { what: "a command", size, size_max: args_max },
                    };
                    return Err(Stop::Bad(self.command.start, kind));
                }
                self.command.args = self.spare.pop().unwrap_or_default();
                count
            }
        };
        self.command.args_left = Some(args_left);
        for left in (0..args_left).rev() {
            let range = self.argument()?;
            self.command.args.push(range);
            self.command.args_left = Some(left);
        }
        self.command.args_left = None;
        let args = std::mem::take(&mut self.command.args);
        Ok(Some(Item::Command { start: self.command.start, args }))
    }

    /// Parses one argument: its header, its bytes, the line end.
    fn argument(&mut self) -> Result<Range<u64>, Stop> {
        let bytes = match self.command.arg_bytes {
            Some(bytes) => bytes,
            None => {
                let header_at = self.at;
                let bytes = self.header(b'$', "the length of an argument")?;
                let (arg_max, unit_max) = (self.limits.arg_bytes_max, self.limits.unit_bytes_max);
                let unit_bytes = (self.at - self.unit_end).saturating_add(bytes);
                if bytes > arg_max || unit_bytes > unit_max {
                    let (what, size, size_max) = match bytes > arg_max {
                        true => ("an argument", bytes, arg_max),
                        false => ("a unit", unit_bytes, unit_max),
                    };
                    return Err(Stop::Bad(header_at, LogErrorKind::TooLarge { what, size, size_max }));
                }
                self.command.arg_bytes = Some(bytes);
                bytes
            }
        };
        let end = self.at + bytes;
        // The line end may be checked as soon as its first byte is there.
        let line_end = self.buf.get((end - self.base) as usize..).unwrap_or_default();
        expect_prefix(line_end, b"\r\n", end)?;
        let range = self.at..end;
        self.at = end + 2;
        self.command.arg_bytes = None;
        Ok(range)
    }

    /// Parses a mark, a number and a line end.
    fn header(&mut self, mark: u8, expected: &'static str) -> Result<u64, Stop> {
        /// More digits than any length that fits.
        const DIGITS_MAX: usize = 18;
        let rest = &self.buf[(self.at - self.base) as usize..];
        let (&first, rest) = rest.split_first().ok_or(Stop::More)?;
        if first != mark {
            return Err(Stop::Bad(self.at, LogErrorKind::Damaged { expected, found: first }));
        }
        let mut value = 0_u64;
        for (index, &byte) in rest.iter().enumerate() {
            let at = self.at + 1 + index as u64;
            match byte {
                b'0'..=b'9' if index < DIGITS_MAX => value = value * 10 + u64::from(byte - b'0'),
                b'\r' if index > 0 => {
                    expect_prefix(&rest[index..], b"\r\n", at)?;
                    self.at = at + 2;
                    return Ok(value);
                }
                found => {
                    return Err(Stop::Bad(at, LogErrorKind::Damaged { expected: "a number", found }));
                }
            }
        }
        Err(Stop::More)
    }

    fn annotation(&mut self) -> Result<Option<Item>, Stop> {
        let rest = &self.buf[(self.at - self.base) as usize..];
        let Some(end) = memchr(b'\n', &rest[..rest.len().min(LINE_BYTES_MAX)]) else {
            if rest.len() < LINE_BYTES_MAX {
                return Err(Stop::More);
            }
            let kind = LogErrorKind::Damaged {
                expected: "the end of an annotation",
                found: rest[LINE_BYTES_MAX - 1],
            };
            return Err(Stop::Bad(self.at + LINE_BYTES_MAX as u64 - 1, kind));
        };
        let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
        let item = match line.strip_prefix(b"#TS:") {
            None => None,
            Some(text) => match std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()) {
                Some(unix_s) => Some(Item::Timestamp(unix_s)),
                None => {
                    let found = text.first().copied().unwrap_or(b'\n');
                    let kind = LogErrorKind::Damaged { expected: "a time in seconds", found };
                    return Err(Stop::Bad(self.at + 4, kind));
                }
            },
        };
        self.at += end as u64 + 1;
        Ok(item)
    }
}

impl Item {
    /// Where the bytes are that it needs.
    fn start(&self) -> Option<u64> {
        match self {
            Self::Timestamp(_) => None,
            Self::Command { start, .. } => Some(*start),
        }
    }
}

/// Checks that `bytes`, which lie at offset `at`, begin with `prefix`, as far as they have arrived.
fn expect_prefix(bytes: &[u8], prefix: &'static [u8], at: u64) -> Result<(), Stop> {
    for (index, wanted) in prefix.iter().enumerate() {
        match bytes.get(index) {
            None => return Err(Stop::More),
            Some(found) if found == wanted => {}
            Some(&found) => {
                let kind = LogErrorKind::Damaged { expected: "a line end", found };
                return Err(Stop::Bad(at + index as u64, kind));
            }
        }
    }
    Ok(())
}

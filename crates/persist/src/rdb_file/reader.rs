//! The streaming reader.
//!
//! Owns the order of things in the file and the pieces that large collections are handed out in. Holds at most
//! what was fed and not yet handed out: one string, one packed value or one piece, whichever is largest, and
//! what the caller feeds at once.

use std::ops::Range;

use towline_rdb::crc64::Crc64;
use towline_rdb::length::write_length;
use towline_rdb::{ObjectError, RdbType, VERSION_REDIS_MAX, VERSION_VALKEY};

use super::error::{Obstacle, RdbFileError, RdbFileErrorKind};
use super::event::{Checksum, Family, OnObstacle, Part, RdbEvent, RdbReaderOptions, ValuePart};
use super::opcode;
use super::skim::{Cursor, Layout, Stop, Unit, layout};
use super::skip::Skip;

/// A counted collection is handed out in pieces of about this many bytes: enough to make the cost of a piece
/// vanish, and little beside any memory budget.
pub const PIECE_BYTES: usize = 256 * 1024;

/// The buffer keeps this much room after a large value has passed.
const KEPT_BYTES: usize = 1024 * 1024;

/// Since this version files end with a checksum.
const VERSION_CHECKSUM: u16 = 5;

/// Reads one RDB file.
///
/// ```text
/// feed* -> next_event* until NeedMore -> ... -> end -> next_event* until End
/// ```
///
/// An error stays: every later call gives it again.
#[derive(Debug)]
pub struct RdbReader {
    options: RdbReaderOptions,
    buf: Vec<u8>,
    /// Offset of `buf[0]` in the file.
    base: u64,
    /// Everything before this index was handed out or passed.
    pos: usize,
    /// The checksum covers the file up to this index.
    crc_at: usize,
    crc: Crc64,
    /// Asking again is vain before `buf` has this length.
    wanted: usize,
    is_ended: bool,
    version: u16,
    database: u32,
    key: KeyState,
    state: State,
    /// A part that is not contiguous in `buf`.
    piece: Vec<u8>,
}

/// The key whose value is under way, and the facts that stand before the next one.
#[derive(Debug, Default)]
struct KeyState {
    key: Vec<u8>,
    facts: Facts,
    next: Facts,
}

/// What may stand before a key.
#[derive(Debug, Default, Clone, Copy)]
struct Facts {
    expires_at_ms: Option<u64>,
    idle_s: Option<u64>,
    frequency: Option<u8>,
}

#[derive(Debug)]
enum State {
    Magic,
    Top,
    Value(OpenValue),
    Skip(Skip),
    Checksum,
    Done(Checksum),
    Failed(RdbFileError),
}

/// A value of which not everything was handed out. Indices are into `buf`.
#[derive(Debug)]
struct OpenValue {
    offset: u64,
    rdb_type: RdbType,
    layout: Layout,
    is_first: bool,
    /// `None` until the count was read.
    counted: Option<CountedValue>,
}

#[derive(Debug, Clone, Copy)]
struct CountedValue {
    unit: Unit,
    head: [u8; 8],
    head_bytes: usize,
    units_left: u64,
    /// Units passed and not handed out, and where they lie.
    units: u64,
    units_at: usize,
    scan: usize,
}

/// What a step found.
enum Found {
    Event(RdbEvent<'static>),
    Part { part: Part, body: Option<Range<usize>>, offset: u64, rdb_type: RdbType },
    Nothing,
}

enum Halt {
    Stop(Stop),
    Error(u64, RdbFileErrorKind),
}

impl From<Stop> for Halt {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

impl RdbReader {
    /// At the start of a file.
    #[must_use]
    pub fn new(options: RdbReaderOptions) -> Self {
        Self {
            options,
            buf: Vec::new(),
            base: 0,
            pos: 0,
            crc_at: 0,
            crc: Crc64::new(),
            wanted: 0,
            is_ended: false,
            version: 0,
            database: 0,
            key: KeyState::default(),
            state: State::Magic,
            piece: Vec::new(),
        }
    }

    /// Appends the next bytes of the file.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.pos > 0 {
            self.crc.update(&self.buf[self.crc_at.min(self.pos)..self.pos]);
            self.crc_at = self.crc_at.saturating_sub(self.pos);
            self.buf.drain(..self.pos);
            self.base += self.pos as u64;
            if let State::Value(OpenValue { counted: Some(counted), .. }) = &mut self.state {
                counted.units_at -= self.pos;
                counted.scan -= self.pos;
            }
            self.wanted = self.wanted.saturating_sub(self.pos);
            self.pos = 0;
            if self.buf.capacity() > KEPT_BYTES && self.buf.len() + bytes.len() < KEPT_BYTES / 2 {
                self.buf.shrink_to(KEPT_BYTES);
            }
        }
        self.buf.extend_from_slice(bytes);
    }

    /// Tells that the file has no more bytes: what is incomplete now is [`RdbFileErrorKind::Truncated`].
    pub fn end(&mut self) {
        self.is_ended = true;
    }

    /// Bytes of the file that were handed out or passed: the progress of loading.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.base + self.pos as u64
    }

    /// Whether the end was reached and the checksum verified: of a preamble, since what follows may be next.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done(_))
    }

    /// What follows a preamble: its offset in the file, and those of its bytes that were fed already.
    #[must_use]
    pub fn into_rest(mut self) -> (u64, Vec<u8>) {
        let offset = self.offset();
        self.buf.drain(..self.pos);
        (offset, self.buf)
    }

    /// What comes next.
    ///
    /// # Errors
    /// See [`RdbFileErrorKind`]; the error stays.
    pub fn next_event(&mut self) -> Result<RdbEvent<'_>, RdbFileError> {
        let found = loop {
            match self.step() {
                Ok(Found::Nothing) => {}
                Ok(found) => break found,
                Err(error) => {
                    self.state = State::Failed(error.clone());
                    return Err(error);
                }
            }
        };
        Ok(match found {
            Found::Event(event) => event,
            Found::Part { part, body, offset, rdb_type } => RdbEvent::Value(ValuePart {
                offset,
                database: self.database,
                key: &self.key.key,
                expires_at_ms: self.key.facts.expires_at_ms,
                idle_s: self.key.facts.idle_s,
                frequency: self.key.facts.frequency,
                rdb_type,
                part,
                body: body.map_or(self.piece.as_slice(), |range| &self.buf[range]),
            }),
            Found::Nothing => RdbEvent::NeedMore,
        })
    }

    fn step(&mut self) -> Result<Found, RdbFileError> {
        const NEED_MORE: Found = Found::Event(RdbEvent::NeedMore);
        if let State::Failed(error) = &self.state {
            return Err(error.clone());
        }
        if let State::Done(checksum) = self.state {
            let has_rest = self.pos < self.buf.len() && !self.options.is_preamble;
            return match (has_rest, self.is_ended || self.options.is_preamble) {
                (true, _) => Err(self.error(self.pos, RdbFileErrorKind::TrailingBytes)),
                (false, true) => Ok(Found::Event(RdbEvent::End(checksum))),
                (false, false) => Ok(NEED_MORE),
            };
        }
        if self.buf.len() < self.wanted && !self.is_ended {
            return Ok(NEED_MORE);
        }
        let result = match &self.state {
            State::Magic => self.magic(),
            State::Top => self.top(),
            State::Value(_) => self.value(),
            State::Skip(_) => self.skip(),
            State::Checksum => self.checksum(),
            State::Done(_) | State::Failed(_) => Ok(Found::Nothing),
        };
        match result {
            Ok(found) => Ok(found),
            Err(Halt::Stop(Stop::More(_))) if self.is_ended => {
                Err(self.error(self.buf.len(), RdbFileErrorKind::Truncated))
            }
            Err(Halt::Stop(Stop::More(bytes))) => {
                self.wanted = usize::try_from(bytes).unwrap_or(usize::MAX);
                Ok(NEED_MORE)
            }
            Err(Halt::Stop(Stop::Bad { at, error })) => {
                let kind = match &self.state {
                    State::Value(_) => {
                        RdbFileErrorKind::Value { database: self.database, key: self.key.key.clone(), error }
                    }
                    _ => RdbFileErrorKind::Frame(error),
                };
                Err(self.error(at, kind))
            }
            Err(Halt::Error(offset, kind)) => Err(RdbFileError { offset, kind }),
        }
    }

    fn error(&self, at: usize, kind: RdbFileErrorKind) -> RdbFileError {
        RdbFileError { offset: self.base + at as u64, kind }
    }

    fn cursor(&self) -> Cursor<'_> {
        Cursor::new(&self.buf, self.pos, self.options.limits)
    }

    fn magic(&mut self) -> Result<Found, Halt> {
        const MAGIC_BYTES: usize = 9;
        let here = &self.buf[..self.buf.len().min(MAGIC_BYTES)];
        // What cannot become a magic any more is refused by its first bytes, however short the file is.
        let is_start = |prefix: &[u8]| here.iter().zip(prefix).all(|(a, b)| a == b);
        let family = match (is_start(b"REDIS"), is_start(b"VALKEY")) {
            (false, false) => return Err(Halt::Error(0, RdbFileErrorKind::NotRdb)),
            (is_redis, _) => {
                if is_redis {
                    Family::Redis
                } else {
                    Family::Valkey
                }
            }
        };
        let magic = self.cursor().take(MAGIC_BYTES as u64)?;
        let digits = match family {
            Family::Redis => &magic[5..],
            Family::Valkey => &magic[6..],
        };
        let mut version = 0_u16;
        for digit in digits {
            if !digit.is_ascii_digit() {
                return Err(Halt::Error(0, RdbFileErrorKind::NotRdb));
            }
            version = version * 10 + u16::from(digit - b'0');
        }
        let is_known = match family {
            Family::Redis => (1..=VERSION_REDIS_MAX).contains(&version),
            Family::Valkey => version == VERSION_VALKEY,
        };
        if !is_known {
            return Err(Halt::Error(0, RdbFileErrorKind::Version(version)));
        }
        self.version = version;
        self.pos = MAGIC_BYTES;
        self.state = State::Top;
        Ok(Found::Event(RdbEvent::Header { family, version }))
    }

    /// Reads what stands between values, up to a value's key.
    fn top(&mut self) -> Result<Found, Halt> {
        let start = self.pos;
        let offset = self.offset();
        let mut cursor = self.cursor();
        let mut next = State::Top;
        let mut found = Found::Nothing;
        match cursor.byte()? {
            opcode::AUX => {
                let (name, value) = (cursor.string()?.into_owned(), cursor.string()?.into_owned());
                found = Found::Event(RdbEvent::Aux { name, value });
            }
            opcode::SIZES => {
                let (keys, expiring) = (cursor.length()?, cursor.length()?);
                found = Found::Event(RdbEvent::Sizes { keys, expiring });
            }
            opcode::SLOT_INFO => {
                for _ in 0..3 {
                    cursor.length()?;
                }
            }
            opcode::DATABASE => {
                let Ok(database) = u32::try_from(cursor.length()?) else {
                    return Err(bad(start, "database", "the number is too large"));
                };
                let end = cursor.at;
                self.database = database;
                self.pos = end;
                return Ok(Found::Event(RdbEvent::Database(database)));
            }
            opcode::EXPIRES_MS | opcode::EXPIRES_S | opcode::IDLE | opcode::FREQUENCY => {
                return self.key_fact();
            }
            opcode::END => next = State::Checksum,
            opcode::FUNCTION => {
                return self.meet(Obstacle::Function { offset }, start + 1, Skip::string());
            }
            opcode::SLOT_IMPORT => {
                return self.meet(Obstacle::SlotImport { offset }, start + 1, Skip::slot_import());
            }
            opcode::MODULE_AUX => {
                let module = module_name(cursor.length()?);
                let end = cursor.at;
                return self.meet(Obstacle::ModuleAux { offset, module }, end, Skip::module_aux());
            }
            opcode::FUNCTION_PRE_GA => {
                return Err(bad(start, "function", "the form of a release candidate"));
            }
            type_byte => return self.key(type_byte),
        }
        let end = cursor.at;
        self.pos = end;
        self.state = next;
        if matches!(self.state, State::Checksum) {
            self.crc.update(&self.buf[self.crc_at..end]);
            self.crc_at = end;
        }
        Ok(found)
    }

    /// Reads what stands before a key and belongs to it.
    fn key_fact(&mut self) -> Result<Found, Halt> {
        let start = self.pos;
        let mut cursor = self.cursor();
        let mut facts = self.key.next;
        match cursor.byte()? {
            opcode::IDLE => facts.idle_s = Some(cursor.length()?),
            opcode::FREQUENCY => facts.frequency = Some(cursor.byte()?),
            byte => {
                let at_ms = if byte == opcode::EXPIRES_MS {
                    i64::from_le_bytes(cursor.array()?)
                } else {
                    i64::from(i32::from_le_bytes(cursor.array()?)) * 1000
                };
                let Ok(at_ms) = u64::try_from(at_ms) else {
                    return Err(bad(start, "expiry", "a time before 1970"));
                };
                facts.expires_at_ms = Some(at_ms);
            }
        }
        let end = cursor.at;
        self.key.next = facts;
        self.pos = end;
        Ok(Found::Nothing)
    }

    /// Reads the key behind a type byte.
    fn key(&mut self, type_byte: u8) -> Result<Found, Halt> {
        let (start, offset) = (self.pos, self.offset());
        let rdb_type = RdbType::from_byte(type_byte, self.version)
            .map_err(|error| Halt::Stop(Stop::Bad { at: start, error }))?;
        let mut cursor = Cursor::new(&self.buf, start + 1, self.options.limits);
        let key = cursor.string()?;
        self.key.key.clear();
        self.key.key.extend_from_slice(&key);
        self.key.facts = std::mem::take(&mut self.key.next);
        let end = cursor.at;
        let layout = layout(rdb_type);
        if layout == Layout::Foreign {
            let database = self.database;
            let key = std::mem::take(&mut self.key.key);
            let skip = Skip::value(rdb_type).map_err(|error| Halt::Stop(Stop::Bad { at: start, error }))?;
            return self.meet(Obstacle::Value { offset, database, key, rdb_type }, end, skip);
        }
        self.pos = end;
        self.state = State::Value(OpenValue { offset, rdb_type, layout, is_first: true, counted: None });
        Ok(Found::Nothing)
    }

    fn meet(&mut self, obstacle: Obstacle, end: usize, skip: Skip) -> Result<Found, Halt> {
        match self.options.on_obstacle {
            OnObstacle::Refuse => Err(Halt::Error(obstacle.offset(), RdbFileErrorKind::Obstacle(obstacle))),
            OnObstacle::Report => {
                self.pos = end;
                self.state = State::Skip(skip);
                Ok(Found::Event(RdbEvent::Obstacle(obstacle)))
            }
        }
    }

    fn skip(&mut self) -> Result<Found, Halt> {
        let mut cursor = Cursor::new(&self.buf, self.pos, self.options.limits);
        if let State::Skip(skip) = &mut self.state {
            let result = skip.advance(&mut cursor);
            self.pos = cursor.at;
            result?;
        }
        self.state = State::Top;
        Ok(Found::Nothing)
    }

    fn value(&mut self) -> Result<Found, Halt> {
        let State::Value(open) = &mut self.state else { return Ok(Found::Nothing) };
        let (offset, rdb_type) = (open.offset, open.rdb_type);
        let mut cursor = Cursor::new(&self.buf, self.pos, self.options.limits);
        let (body_start, mut is_last) = (self.pos, true);
        match open.layout {
            Layout::Foreign => return Ok(Found::Nothing),
            Layout::Packed { head_bytes } => {
                cursor.take(head_bytes)?;
                cursor.pass_string()?;
            }
            Layout::Counted { head_bytes, unit } => {
                let counted = match &mut open.counted {
                    Some(counted) => counted,
                    None => open.counted.insert(CountedValue::start(&mut cursor, head_bytes, unit)?),
                };
                is_last = counted.advance(&mut cursor)?;
            }
        }
        self.pos = cursor.at;
        let part = match (open.is_first, is_last) {
            (true, true) => Part::Only,
            (true, false) => Part::First,
            (false, false) => Part::Middle,
            (false, true) => Part::Last,
        };
        open.is_first = false;
        let body = match &mut open.counted {
            Some(counted) if part != Part::Only => {
                counted.take_piece(&self.buf, &mut self.piece);
                None
            }
            _ => Some(body_start..self.pos),
        };
        if is_last {
            self.state = State::Top;
        }
        Ok(Found::Part { part, body, offset, rdb_type })
    }

    fn checksum(&mut self) -> Result<Found, Halt> {
        if self.version < VERSION_CHECKSUM {
            self.state = State::Done(Checksum::Absent);
            return Ok(Found::Nothing);
        }
        let start = self.pos;
        let mut cursor = self.cursor();
        let stored = u64::from_le_bytes(cursor.array()?);
        let end = cursor.at;
        let computed = self.crc.value();
        if stored != 0 && stored != computed {
            let kind = RdbFileErrorKind::Checksum { stored, computed };
            return Err(Halt::Error(self.base + start as u64, kind));
        }
        self.pos = end;
        self.state = State::Done(if stored == 0 { Checksum::Absent } else { Checksum::Right });
        Ok(Found::Nothing)
    }
}

impl CountedValue {
    fn start(cursor: &mut Cursor<'_>, head_bytes: u64, unit: Unit) -> Result<Self, Stop> {
        let taken = cursor.take(head_bytes)?;
        let mut head = [0; 8];
        head[..taken.len()].copy_from_slice(taken);
        let units_left = cursor.length()?;
        let at = cursor.at;
        Ok(Self { unit, head, head_bytes: taken.len(), units_left, units: 0, units_at: at, scan: at })
    }

    /// Passes units until the last (true) or until they make a piece (false).
    fn advance(&mut self, cursor: &mut Cursor<'_>) -> Result<bool, Stop> {
        cursor.at = self.scan;
        while self.units_left > 0 {
            if self.scan - self.units_at >= PIECE_BYTES {
                return Ok(false);
            }
            self.unit.pass(cursor)?;
            self.scan = cursor.at;
            self.units_left -= 1;
            self.units += 1;
        }
        Ok(true)
    }

    /// Makes a body of its own of the units passed since the last piece.
    fn take_piece(&mut self, buf: &[u8], piece: &mut Vec<u8>) {
        piece.clear();
        piece.extend_from_slice(&self.head[..self.head_bytes]);
        write_length(piece, self.units);
        piece.extend_from_slice(&buf[self.units_at..self.scan]);
        self.units = 0;
        self.units_at = self.scan;
    }
}

fn bad(at: usize, encoding: &'static str, reason: &'static str) -> Halt {
    Halt::Stop(Stop::Bad { at, error: ObjectError::Malformed { encoding, reason } })
}

/// The name in a module's ID: nine characters of six bits each, above ten bits of version.
fn module_name(id: u64) -> String {
    const CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    (0..9).rev().map(|index| char::from(CHARACTERS[(id >> (10 + 6 * index) & 63) as usize])).collect()
}

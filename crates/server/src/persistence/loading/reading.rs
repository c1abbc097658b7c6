//! Reading a file and giving out what is in it.
//!
//! Owns: the threads of one file, what is left out, and what is refused. Does **not** own what is done with keys and commands
//! (see `hands` and `apply`).

use super::apply::{CommandBatch, Kind, LANES, Runnable, classify, failed, ranges_of};
use super::hands::{Hands, Job, KeyBatch, KeyHead, LargeValue, Purpose, ValueJob};
use super::pool::{Closing, Pool};
use super::{LoadError, PENDING_BYTES_MAX, Status, Unsupported};
use crate::command::Args;
use crate::config::{Config, LoadUnsupported};
use crate::shared::{Shared, Stop};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use towline_persist::aof::{LogCommand, LogEnd, LogLimits, PartError, PartEvent, PartReader, TornReason};
use towline_persist::rdb_file::{
    OBSTACLES_MAX, OnObstacle, Part, RdbEvent, RdbFileError, RdbFileErrorKind, RdbReader, RdbReaderOptions,
    ValuePart,
};
use towline_rdb::Limits;
use towline_resp::request::ArgRange;
use towline_store::changes::Settings;

/// Bytes of one read.
const READ_BYTES: usize = 256 << 10;
/// A batch is given out when it has so many bytes: enough that handing it over costs nothing beside the work.
const BATCH_BYTES: usize = 64 << 10;
/// A batch of one lane of a log, of which there are many.
const LANE_BATCH_BYTES: usize = 16 << 10;
/// A file of fewer bytes is loaded before a thread has started.
const ALONE_BYTES_MAX: u64 = 256 << 10;

/// Longest string and largest unit that is loaded: what once was in a data set comes back, whatever `proto-max-bulk-len` is
/// now. Memory follows what is in the file, not what it claims.
const STRING_BYTES_MAX: u64 = u32::MAX as u64;

/// What a file is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// A snapshot.
    Snapshot,
    /// The base of a log, in RDB form; commands may follow.
    RdbBase,
    /// Commands, perhaps behind an RDB file.
    Log,
}

impl What {
    /// What a file of a log is, by its name.
    pub(super) fn of(name: &str) -> Self {
        if name.ends_with(".rdb") { Self::RdbBase } else { Self::Log }
    }
}

/// A tail that is not whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TornTail {
    pub(super) cut_at: u64,
    pub(super) lost_bytes: u64,
    pub(super) reason: TornReason,
}

impl TornTail {
    pub(super) fn error(self, path: &Path, is_last: bool) -> LoadError {
        let Self { cut_at, lost_bytes, reason } = self;
        LoadError::Torn { path: path.to_owned(), cut_at, lost_bytes, reason, is_last }
    }

    pub(super) fn warn(self, path: &Path) {
        let Self { cut_at, lost_bytes, reason } = self;
        tracing::warn!(
            "'{}' ends with {reason}: its last {lost_bytes} bytes, from byte {cut_at} on, are cut off, as the machine or the \
             server died while they were written",
            path.display()
        );
    }
}

/// Loads files one after the other.
pub(super) struct Reading<'a> {
    shared: &'a Shared,
    config: &'a Config,
    settings: Settings,
    /// Now, in unix milliseconds.
    now_ms: u64,
    /// Bytes of the files before this one.
    bytes_before: u64,
    purpose: Purpose,
    /// Keys that were loaded and that somebody waits for.
    ready: Mutex<Vec<(u8, Box<[u8]>)>>,
}

impl<'a> Reading<'a> {
    /// Nothing was loaded yet.
    pub(super) fn new(shared: &'a Shared, config: &'a Config, now_ms: u64, purpose: Purpose) -> Self {
        let settings = Settings { notify: 0, access_from_ms: now_ms, ..config.settings() };
        Self { shared, config, settings, now_ms, bytes_before: 0, purpose, ready: Mutex::default() }
    }

    /// Keys that were loaded and that somebody waits for.
    pub(super) fn into_ready(self) -> Vec<(u8, Box<[u8]>)> {
        self.ready.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_ready(&self, hands: &mut Hands<'_>) {
        if !hands.changes.ready.is_empty() {
            self.ready.lock().unwrap_or_else(PoisonError::into_inner).append(&mut hands.changes.ready);
        }
    }

    /// Loads a file. A tail that is torn is told, and not used.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub(super) fn file(&mut self, path: &Path, what: What) -> Result<Option<TornTail>, LoadError> {
        let mut file =
            self.shared.persistence.disk.open(path).map_err(|source| LoadError::io("open", path, source))?;
        let bytes = file.size().map_err(|source| LoadError::io("read", path, source))?;
        let others = if bytes <= ALONE_BYTES_MAX { 0 } else { self.config.workers.saturating_sub(1) };
        let limits = Limits { string_bytes_max: STRING_BYTES_MAX, ..Limits::default() };
        let pool = Pool::new(PENDING_BYTES_MAX, path.to_owned());
        let hands = || Hands::new(self.shared, &self.settings, path, limits, self.purpose);
        let result = std::thread::scope(|scope| {
            let _closing = Closing(&pool);
            for index in 0..others {
                let run = || {
                    let mut hands = hands();
                    pool.work(|job| hands.run(job));
                    self.note_ready(&mut hands);
                };
                // With fewer threads it takes longer, that is all.
                let thread = std::thread::Builder::new().name(format!("loader-{index}"));
                let _ = thread.spawn_scoped(scope, run);
            }
            let mut giver = Giver::new(self, path, what, &pool, hands());
            let result = giver.read(&mut *file, Parser::new(what, limits));
            self.note_ready(&mut giver.hands);
            result
        });
        self.bytes_before += bytes;
        result
    }
}

/// A reader of the file's form.
enum Parser {
    Snapshot(Box<RdbReader>),
    Part(Box<PartReader>),
}

impl Parser {
    fn new(what: What, limits: Limits) -> Self {
        let on_obstacle = OnObstacle::Report;
        if what == What::Snapshot {
            let options = RdbReaderOptions { on_obstacle, limits, is_preamble: false };
            return Self::Snapshot(Box::new(RdbReader::new(options)));
        }
        let log_limits = LogLimits {
            arg_bytes_max: STRING_BYTES_MAX,
            unit_bytes_max: STRING_BYTES_MAX,
            ..LogLimits::default()
        };
        Self::Part(Box::new(PartReader::new(on_obstacle, limits, log_limits)))
    }

    fn feed(&mut self, bytes: &[u8]) {
        match self {
            Self::Snapshot(reader) => reader.feed(bytes),
            Self::Part(reader) => reader.feed(bytes),
        }
    }

    fn end(&mut self) {
        match self {
            Self::Snapshot(reader) => reader.end(),
            Self::Part(reader) => reader.end(),
        }
    }

    fn offset(&self) -> u64 {
        match self {
            Self::Snapshot(reader) => reader.offset(),
            Self::Part(reader) => reader.offset(),
        }
    }

    fn next(&mut self) -> Result<PartEvent<'_>, PartError> {
        match self {
            Self::Snapshot(reader) => Ok(match reader.next_event()? {
                RdbEvent::NeedMore => PartEvent::NeedMore,
                RdbEvent::End(_) => PartEvent::End(LogEnd::Whole),
                event => PartEvent::Rdb(event),
            }),
            Self::Part(reader) => reader.next_event(),
        }
    }
}

/// Gives out what a file holds.
struct Giver<'a> {
    config: &'a Config,
    status: &'a Status,
    settings: &'a Settings,
    path: &'a Path,
    what: What,
    now_ms: u64,
    bytes_before: u64,
    stopping: tokio::sync::watch::Receiver<Stop>,
    pool: &'a Pool<Job>,
    hands: Hands<'a>,
    db: u8,
    /// When the commands at hand were written, as far as the log tells.
    written_ms: u64,
    keys: KeyBatch,
    large: Option<(Arc<LargeValue>, u64)>,
    large_count: u64,
    lanes: Vec<CommandBatch>,
    obstacles: Obstacles,
    has_rdb: bool,
    buffers: (Vec<u8>, Vec<ArgRange>),
}

/// What was met and cannot be loaded.
#[derive(Debug, Default)]
struct Obstacles {
    found: Vec<Unsupported>,
    count: u64,
    /// Names of commands, with where they are in `found`.
    commands: BTreeMap<Vec<u8>, usize>,
}

impl Obstacles {
    fn add(&mut self, obstacle: Unsupported) {
        self.count += 1;
        if self.found.len() < OBSTACLES_MAX {
            self.found.push(obstacle);
        }
    }

    fn add_command(&mut self, name: &[u8], offset: u64) {
        let name = name.to_ascii_uppercase();
        if let Some(Unsupported::Commands { count, .. }) =
            self.commands.get(&name).and_then(|&at| self.found.get_mut(at))
        {
            *count += 1;
            return;
        }
        let shown = name.escape_ascii().to_string();
        if self.found.len() < OBSTACLES_MAX {
            self.commands.insert(name, self.found.len());
        }
        self.add(Unsupported::Commands { name: shown, count: 1, offset });
    }
}

impl<'a> Giver<'a> {
    fn new(
        reading: &'a Reading<'_>,
        path: &'a Path,
        what: What,
        pool: &'a Pool<Job>,
        hands: Hands<'a>,
    ) -> Self {
        Self {
            config: reading.config,
            status: &reading.shared.persistence.loading,
            settings: &reading.settings,
            path,
            what,
            now_ms: reading.now_ms,
            bytes_before: reading.bytes_before,
            stopping: reading.shared.stopping(),
            pool,
            hands,
            db: 0,
            written_ms: reading.now_ms,
            keys: KeyBatch::default(),
            large: None,
            large_count: 0,
            lanes: (0..LANES).map(|_| CommandBatch::default()).collect(),
            obstacles: Obstacles::default(),
            has_rdb: false,
            buffers: (Vec::new(), Vec::new()),
        }
    }

    /// Reads the file to its end, and returns when all that is in it is in the store.
    fn read(
        &mut self,
        file: &mut dyn crate::persistence::disk::DiskFile,
        mut parser: Parser,
    ) -> Result<Option<TornTail>, LoadError> {
        let mut buffer = vec![0; READ_BYTES];
        let end = loop {
            let at = parser.offset();
            match parser.next().map_err(|error| self.unreadable(error))? {
                PartEvent::NeedMore => {
                    if *self.stopping.borrow() != Stop::No {
                        return Err(LoadError::Stopped);
                    }
                    self.status.loaded_bytes.store(self.bytes_before + at, Ordering::Relaxed);
                    match file.read(&mut buffer) {
                        Ok(0) => parser.end(),
                        Ok(count) => parser.feed(&buffer[..count]),
                        Err(source) => return Err(LoadError::io("read", self.path, source)),
                    }
                }
                PartEvent::Rdb(event) => self.rdb(event, at)?,
                PartEvent::Timestamp(unix_s) => self.written_ms = unix_s.saturating_mul(1000),
                PartEvent::Command(command) => self.command(command)?,
                PartEvent::End(end) => break end,
            }
        };
        if self.what == What::RdbBase && !self.has_rdb {
            let error = RdbFileError { offset: 0, kind: RdbFileErrorKind::NotRdb };
            return Err(LoadError::Snapshot { path: self.path.to_owned(), error });
        }
        self.flush()?;
        self.pool.settle(|job| self.hands.run(job))?;
        self.report_obstacles()?;
        Ok(match end {
            LogEnd::Whole => None,
            LogEnd::Torn { cut_at, lost_bytes, reason } => Some(TornTail { cut_at, lost_bytes, reason }),
        })
    }

    fn unreadable(&self, error: PartError) -> LoadError {
        let path = self.path.to_owned();
        match error {
            PartError::Rdb(error) => LoadError::Snapshot { path, error },
            PartError::Log(error) => LoadError::Log { path, error },
        }
    }

    fn rdb(&mut self, event: RdbEvent<'_>, at: u64) -> Result<(), LoadError> {
        match event {
            RdbEvent::Value(value) => return self.value(&value),
            RdbEvent::Database(database) => self.select(at, database.into())?,
            RdbEvent::Obstacle(obstacle) => self.obstacles.add(Unsupported::Data(obstacle)),
            RdbEvent::Aux { name, value } => {
                let number = || std::str::from_utf8(&value).ok()?.parse().ok();
                match name.as_slice() {
                    b"used-mem" => {
                        self.status.used_memory_bytes.store(number().unwrap_or(0), Ordering::Relaxed)
                    }
                    b"redis-ver" | b"valkey-ver" => {
                        tracing::info!("'{}' was written by {}", self.path.display(), value.escape_ascii())
                    }
                    _ => {}
                }
            }
            RdbEvent::Header { .. } => self.has_rdb = true,
            // Commands may follow: all keys first, and none of them if not all can be loaded.
            RdbEvent::End(_) => {
                self.flush()?;
                self.pool.settle(|job| self.hands.run(job))?;
                self.db = 0;
            }
            _ => {}
        }
        Ok(())
    }

    fn select(&mut self, offset: u64, database: u64) -> Result<(), LoadError> {
        let databases = self.config.databases;
        match u8::try_from(database) {
            Ok(db) if db < databases => {
                self.db = db;
                Ok(())
            }
            _ => Err(LoadError::Database { path: self.path.to_owned(), offset, database, databases }),
        }
    }

    fn value(&mut self, value: &ValuePart<'_>) -> Result<(), LoadError> {
        // A log tells itself when a key went.
        let is_expired =
            self.what == What::Snapshot && value.expires_at_ms.is_some_and(|at| at <= self.now_ms);
        if is_expired {
            let is_end = matches!(value.part, Part::Only | Part::Last);
            self.status.keys_expired.fetch_add(is_end.into(), Ordering::Relaxed);
            return Ok(());
        }
        if value.part == Part::Only {
            self.keys.push(self.head_of(value), value.key, value.body);
            return if self.keys.mem_bytes() >= BATCH_BYTES { self.give_keys() } else { Ok(()) };
        }
        let (large, lane) = match self.large.take() {
            Some(large) if value.part != Part::First => large,
            _ => {
                self.large_count += 1;
                (LargeValue::new(self.head_of(value), value.key), self.large_count)
            }
        };
        let body = value.body.to_vec();
        let (bytes, part) = (body.len(), value.part);
        if part != Part::Last {
            self.large = Some((Arc::clone(&large), lane));
        }
        let job = Job::Part(ValueJob { large, part, body });
        self.pool.push(Some(lane), bytes, job, |job| self.hands.run(job))
    }

    fn head_of(&self, value: &ValuePart<'_>) -> KeyHead {
        let (settings, now_ms) = (self.settings, self.now_ms);
        let access = match (value.frequency, value.idle_s) {
            (Some(frequency), _) if settings.is_lfu() => settings.access_with_counter(frequency, now_ms),
            (_, Some(idle_s)) if !settings.is_lfu() => settings.access_idle_for(idle_s, now_ms),
            _ => settings.first_access(now_ms),
        };
        let (offset, rdb_type, expires_at_ms) = (value.offset, value.rdb_type, value.expires_at_ms);
        KeyHead { offset, db: self.db, expires_at_ms, access, rdb_type }
    }

    fn give_keys(&mut self) -> Result<(), LoadError> {
        if self.keys.is_empty() {
            return Ok(());
        }
        let batch = std::mem::take(&mut self.keys);
        let bytes = batch.mem_bytes();
        self.pool.push(None, bytes, Job::Keys(batch), |job| self.hands.run(job))
    }

    fn give_lane(&mut self, lane: u64) -> Result<(), LoadError> {
        let batch = std::mem::take(&mut self.lanes[lane as usize]);
        if batch.len() == 0 {
            return Ok(());
        }
        let bytes = batch.mem_bytes();
        self.pool.push(Some(lane), bytes, Job::Commands(batch), |job| self.hands.run(job))
    }

    /// Gives out what was collected.
    fn flush(&mut self) -> Result<(), LoadError> {
        self.give_keys()?;
        (0..LANES).try_for_each(|lane| self.give_lane(lane))
    }

    fn command(&mut self, command: LogCommand<'_>) -> Result<(), LoadError> {
        let (mut bytes, mut ranges) = std::mem::take(&mut self.buffers);
        ranges_of(&command, &mut bytes, &mut ranges);
        let result = self.log_command(command.offset, Args::new(&bytes, &ranges, &[]));
        self.buffers = (bytes, ranges);
        result
    }

    fn log_command(&mut self, offset: u64, args: Args<'_>) -> Result<(), LoadError> {
        // A transaction is known to be whole here; nobody looks, so its commands need not be together.
        if args.is(0, "multi") || args.is(0, "exec") {
            return Ok(());
        }
        if args.is(0, "select") {
            let number = args.at(1).and_then(|arg| std::str::from_utf8(arg).ok()?.parse().ok());
            return match number {
                Some(database) if args.len() == 2 => self.select(offset, database),
                _ => Err(failed(self.path, offset, args, "it selects no database")),
            };
        }
        match classify(self.path, offset, self.db, args, self.written_ms)? {
            Kind::Idle => Ok(()),
            Kind::Unsupported { may_skip } => {
                if !may_skip && self.skips() {
                    let reason = "this server does not have it, and what it did to other data is not known";
                    return Err(failed(self.path, offset, args, reason));
                }
                self.obstacles.add_command(args.get(0), offset);
                Ok(())
            }
            // Once something is refused, the rest is only searched for more.
            Kind::Write(_) if self.obstacles.count > 0 && !self.skips() => Ok(()),
            Kind::Write(_) if matches!(self.hands.purpose, Purpose::Check | Purpose::CheckNew) => Ok(()),
            Kind::Write(command) => self.write(&command),
        }
    }

    fn write(&mut self, command: &Runnable<'_>) -> Result<(), LoadError> {
        let Some(lane) = command.lane() else {
            self.flush()?;
            self.pool.settle(|job| self.hands.run(job))?;
            self.hands.is_incomplete = self.is_incomplete();
            self.hands.command(command)?;
            self.hands.changes.garbage.clear();
            self.hands.changes.tables.clear();
            self.status.commands.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        };
        let batch = &mut self.lanes[lane as usize];
        command.push_to(batch);
        if batch.mem_bytes() >= LANE_BATCH_BYTES { self.give_lane(lane) } else { Ok(()) }
    }

    fn skips(&self) -> bool {
        self.config.persistence.load_unsupported == LoadUnsupported::Skip
    }

    fn is_incomplete(&self) -> bool {
        self.skips() && self.obstacles.count > 0
    }

    fn report_obstacles(&mut self) -> Result<(), LoadError> {
        let Obstacles { found, count, .. } = std::mem::take(&mut self.obstacles);
        if count == 0 {
            return Ok(());
        }
        if !self.skips() {
            return Err(LoadError::Unsupported { path: self.path.to_owned(), found, count });
        }
        let path = self.path.display();
        for obstacle in &found {
            tracing::warn!("'{path}': left out, as 'load-unsupported skip' asks for: {obstacle}");
        }
        tracing::warn!(
            "'{path}': {count} things were left out in all; they are lost with the next save or rewrite, so keep a copy of the \
             file"
        );
        Ok(())
    }
}

//! The check before a load: everything that could stop it, found without handing anything out.
//!
//! Owns the verdict on a file. Does not find duplicates within a collection: that takes the memory of the
//! collection, and the checksum covers what damage could do.

use towline_rdb::{HashFieldRef, Insert, Kind, Limits, ObjectError, Visitor};

use super::error::{Obstacle, RdbFileError, RdbFileErrorKind};
use super::event::{Checksum, OnObstacle, Part, RdbEvent, RdbReaderOptions};
use super::reader::RdbReader;

/// A report names this many obstacles and counts the rest: enough for a person to see what kind of file it is.
pub const OBSTACLES_MAX: usize = 100;

/// What a sound file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckReport {
    /// Keys that can be loaded, those without elements not among them.
    pub keys: u64,
    /// Those of them with a time to live.
    pub expiring: u64,
    /// Keys without elements, which a load drops.
    pub empty_keys: u64,
    /// The largest database number that is selected.
    pub database_max: u32,
    /// What cannot be loaded: the first [`OBSTACLES_MAX`], in the order of the file.
    pub obstacles: Vec<Obstacle>,
    /// How many things cannot be loaded.
    pub obstacle_count: u64,
    /// Whether the bytes were verified.
    pub checksum: Checksum,
    /// Size of the file, in bytes; of the preamble, if it is one.
    pub bytes: u64,
}

/// Reads a file to its end and decodes each value, keeping none.
///
/// Feed it the file in chunks, then call [`finish`](Self::finish).
#[derive(Debug)]
pub struct RdbChecker {
    reader: RdbReader,
    limits: Limits,
    report: CheckReport,
    is_finished: bool,
}

impl RdbChecker {
    /// At the start of a file; `is_preamble` as in [`RdbReaderOptions`].
    #[must_use]
    pub fn new(limits: Limits, is_preamble: bool) -> Self {
        let options = RdbReaderOptions { on_obstacle: OnObstacle::Report, limits, is_preamble };
        Self {
            reader: RdbReader::new(options),
            limits,
            report: CheckReport {
                keys: 0,
                expiring: 0,
                empty_keys: 0,
                database_max: 0,
                obstacles: Vec::new(),
                obstacle_count: 0,
                checksum: Checksum::Absent,
                bytes: 0,
            },
            is_finished: false,
        }
    }

    /// Checks the next bytes of the file. True when a preamble has ended: what follows is not looked at.
    ///
    /// # Errors
    /// See [`RdbFileErrorKind`]: the file is damaged, and nothing of it should be loaded.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<bool, RdbFileError> {
        if !self.is_finished {
            self.reader.feed(bytes);
            self.advance()?;
        }
        Ok(self.is_finished)
    }

    /// Ends the file.
    ///
    /// # Errors
    /// As [`feed`](Self::feed).
    pub fn finish(mut self) -> Result<CheckReport, RdbFileError> {
        self.reader.end();
        self.advance()?;
        self.report.bytes = self.reader.offset();
        Ok(self.report)
    }

    fn advance(&mut self) -> Result<(), RdbFileError> {
        loop {
            match self.reader.next_event()? {
                RdbEvent::NeedMore => return Ok(()),
                RdbEvent::End(checksum) => {
                    self.report.checksum = checksum;
                    self.is_finished = true;
                    return Ok(());
                }
                RdbEvent::Database(database) => {
                    self.report.database_max = self.report.database_max.max(database);
                }
                RdbEvent::Obstacle(obstacle) => {
                    self.report.obstacle_count += 1;
                    if self.report.obstacles.len() < OBSTACLES_MAX {
                        self.report.obstacles.push(obstacle);
                    }
                }
                RdbEvent::Value(value) => match value.visit(self.limits, &mut Nobody) {
                    Ok(()) if matches!(value.part, Part::Only | Part::Last) => {
                        self.report.keys += 1;
                        self.report.expiring += u64::from(value.expires_at_ms.is_some());
                    }
                    Ok(()) => {}
                    Err(ObjectError::Empty) => self.report.empty_keys += 1,
                    Err(error) => {
                        let (database, key) = (value.database, value.key.to_vec());
                        let kind = RdbFileErrorKind::Value { database, key, error };
                        return Err(RdbFileError { offset: value.offset, kind });
                    }
                },
                RdbEvent::Header { .. } | RdbEvent::Aux { .. } | RdbEvent::Sizes { .. } => {}
            }
        }
    }
}

/// Keeps nothing.
struct Nobody;

impl Visitor for Nobody {
    fn begin(&mut self, _kind: Kind, _count_hint: usize) {}
    fn string(&mut self, _value: &[u8]) {}
    fn list_element(&mut self, _element: &[u8]) {}
    fn set_member(&mut self, _member: &[u8]) -> Insert {
        Insert::New
    }
    fn zset_member(&mut self, _member: &[u8], _score: f64) -> Insert {
        Insert::New
    }
    fn hash_field(&mut self, _field: HashFieldRef<'_>) -> Insert {
        Insert::New
    }
}

//! Reads any file of the log: a base in RDB form, a base of commands, an increment, or an old log whose preamble is
//! an RDB file.
//!
//! Owns the decision which it is, by the first bytes. Does not own either format.

use towline_rdb::Limits;

use super::log_reader::{LogCommand, LogEnd, LogError, LogEvent, LogLimits, LogReader};
use crate::rdb_file::{OnObstacle, RdbEvent, RdbFileError, RdbReader, RdbReaderOptions};

/// What comes next in a file of the log.
#[derive(Debug)]
pub enum PartEvent<'a> {
    /// Feed more, or call [`PartReader::end`].
    NeedMore,
    /// From the RDB form; [`RdbEvent::NeedMore`] does not occur, [`RdbEvent::End`] comes once, and commands may
    /// follow it.
    Rdb(RdbEvent<'a>),
    /// A time annotation, in seconds since the Unix epoch.
    Timestamp(u64),
    /// A command.
    Command(LogCommand<'a>),
    /// The end of the file. A file in RDB form is whole or an error: it was complete before it got its name.
    End(LogEnd),
}

/// Why a file of the log cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PartError {
    /// The RDB form.
    #[error(transparent)]
    Rdb(#[from] RdbFileError),
    /// The commands.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Reads one file; use as [`LogReader`].
#[derive(Debug)]
pub struct PartReader {
    on_obstacle: OnObstacle,
    limits: Limits,
    log_limits: LogLimits,
    is_ended: bool,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Fewer bytes than tell the forms apart.
    Unknown(Vec<u8>),
    Rdb(Box<RdbReader>),
    Log(Box<LogReader>),
}

impl PartReader {
    /// At the start of a file.
    #[must_use]
    pub fn new(on_obstacle: OnObstacle, limits: Limits, log_limits: LogLimits) -> Self {
        let state = State::Unknown(Vec::new());
        Self { on_obstacle, limits, log_limits, is_ended: false, state }
    }

    /// Appends the next bytes of the file.
    pub fn feed(&mut self, bytes: &[u8]) {
        match &mut self.state {
            State::Unknown(start) => {
                start.extend_from_slice(bytes);
                self.decide();
            }
            State::Rdb(reader) => reader.feed(bytes),
            State::Log(reader) => reader.feed(bytes),
        }
    }

    /// Tells that the file has no more bytes.
    pub fn end(&mut self) {
        self.is_ended = true;
        self.decide();
        match &mut self.state {
            State::Unknown(_) => {}
            State::Rdb(reader) => reader.end(),
            State::Log(reader) => reader.end(),
        }
    }

    /// Bytes of the file that were used: the progress of loading.
    #[must_use]
    pub fn offset(&self) -> u64 {
        match &self.state {
            State::Unknown(_) => 0,
            State::Rdb(reader) => reader.offset(),
            State::Log(reader) => reader.offset(),
        }
    }

    /// What comes next.
    ///
    /// # Errors
    /// Those of the two formats; they stay.
    pub fn next_event(&mut self) -> Result<PartEvent<'_>, PartError> {
        self.leave_preamble();
        match &mut self.state {
            State::Unknown(_) => Ok(PartEvent::NeedMore),
            State::Rdb(reader) => Ok(match reader.next_event()? {
                RdbEvent::NeedMore => PartEvent::NeedMore,
                event => PartEvent::Rdb(event),
            }),
            State::Log(reader) => Ok(match reader.next_event()? {
                LogEvent::NeedMore => PartEvent::NeedMore,
                LogEvent::Timestamp(unix_s) => PartEvent::Timestamp(unix_s),
                LogEvent::Command(command) => PartEvent::Command(command),
                LogEvent::End(end) => PartEvent::End(end),
            }),
        }
    }

    /// Goes on with commands when the RDB form has ended.
    fn leave_preamble(&mut self) {
        let State::Rdb(reader) = &mut self.state else { return };
        if !reader.is_done() {
            return;
        }
        let reader = std::mem::replace(reader.as_mut(), RdbReader::new(RdbReaderOptions::default()));
        let (offset, rest) = reader.into_rest();
        let mut log = Box::new(LogReader::at(self.log_limits, offset));
        log.feed(&rest);
        if self.is_ended {
            log.end();
        }
        self.state = State::Log(log);
    }

    fn decide(&mut self) {
        const MAGICS: [&[u8]; 2] = [b"REDIS", b"VALKEY"];
        let State::Unknown(start) = &mut self.state else { return };
        let may_become = |magic: &&[u8]| magic.starts_with(start) && start.len() < magic.len();
        let is_rdb = MAGICS.iter().any(|magic| start.starts_with(magic));
        if !is_rdb && MAGICS.iter().any(may_become) && !self.is_ended {
            return;
        }
        let start = std::mem::take(start);
        self.state = if is_rdb {
            let options =
                RdbReaderOptions { on_obstacle: self.on_obstacle, limits: self.limits, is_preamble: true };
            let mut reader = Box::new(RdbReader::new(options));
            reader.feed(&start);
            State::Rdb(reader)
        } else {
            let mut reader = Box::new(LogReader::new(self.log_limits));
            reader.feed(&start);
            State::Log(reader)
        };
    }
}

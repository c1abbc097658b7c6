//! The server's log: one line for each event, no banner.
//!
//! Owns: where it goes, its form and its level. Does **not** own what is logged.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use towline_server::LogLevel;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// The log of this process.
#[derive(Debug)]
pub(crate) struct Log {
    level: Arc<AtomicU8>,
    sink: Sink,
}

/// The numbers that levels are kept as: the higher, the more is logged.
fn rank(level: LogLevel) -> u8 {
    match level {
        LogLevel::Nothing => 0,
        LogLevel::Warning => 2,
        LogLevel::Notice => 3,
        LogLevel::Verbose => 4,
        LogLevel::Debug => 5,
    }
}

fn rank_of(level: tracing::Level) -> u8 {
    match level {
        tracing::Level::ERROR => 1,
        tracing::Level::WARN => 2,
        tracing::Level::INFO => 3,
        tracing::Level::DEBUG => 4,
        tracing::Level::TRACE => 5,
    }
}

impl Log {
    /// Logs to `path`, which is created or appended to, or else to standard error, from now on.
    ///
    /// # Errors
    /// The file cannot be opened; the text names it.
    pub(crate) fn start(path: Option<&str>, level: LogLevel) -> anyhow::Result<Self> {
        let sink = match path {
            None => Sink::StandardError,
            Some(path) => {
                Sink::File(Arc::new(LogFile { file: Mutex::new(open(path)?), path: path.to_owned() }))
            }
        };
        let level = Arc::new(AtomicU8::new(rank(level)));
        let in_force = Arc::clone(&level);
        let by_level = tracing_subscriber::filter::dynamic_filter_fn(move |event, _| {
            // HTTP's inner workings are no news of the server.
            event.target().starts_with("towline")
                && rank_of(*event.level()) <= in_force.load(Ordering::Relaxed)
        })
        .with_max_level_hint(LevelFilter::TRACE);
        let is_coloured =
            path.is_none() && io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let lines = tracing_subscriber::fmt::layer()
            .with_target(false)
            .with_ansi(is_coloured)
            .with_writer(sink.clone());
        // Fails only when this process logs already; it goes on doing so.
        let _ = tracing_subscriber::registry().with(by_level).with(lines).try_init();
        Ok(Self { level, sink })
    }

    /// Logs this much from now on.
    pub(crate) fn set_level(&self, level: LogLevel) {
        self.level.store(rank(level), Ordering::Relaxed);
    }

    /// Whether lines go to standard error.
    pub(crate) fn is_standard_error(&self) -> bool {
        matches!(self.sink, Sink::StandardError)
    }

    /// Opens the file again by its name, after it was rotated away.
    ///
    /// # Errors
    /// It cannot be opened; the old one stays in use.
    pub(crate) fn reopen(&self) -> anyhow::Result<()> {
        if let Sink::File(log) = &self.sink {
            let file = open(&log.path)?;
            *log.file() = file;
        }
        Ok(())
    }
}

fn open(path: &str) -> anyhow::Result<File> {
    let file = File::options().create(true).append(true).open(path);
    file.map_err(|error| anyhow::anyhow!("cannot open logfile '{path}': {error}"))
}

#[derive(Debug)]
struct LogFile {
    path: String,
    file: Mutex<File>,
}

impl LogFile {
    fn file(&self) -> MutexGuard<'_, File> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where lines go.
#[derive(Debug, Clone)]
enum Sink {
    StandardError,
    File(Arc<LogFile>),
}

impl<'a> MakeWriter<'a> for Sink {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Write for Sink {
    /// Takes a whole line: the subscriber formats one before it writes.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match self {
            Self::StandardError => io::stderr().write(line),
            Self::File(log) => log.file().write(line),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_logs_what_is_at_least_as_grave() {
        let logged = |level: LogLevel| {
            let all = [
                tracing::Level::ERROR,
                tracing::Level::WARN,
                tracing::Level::INFO,
                tracing::Level::DEBUG,
                tracing::Level::TRACE,
            ];
            all.into_iter().filter(|event| rank_of(*event) <= rank(level)).count()
        };
        let levels =
            [LogLevel::Nothing, LogLevel::Warning, LogLevel::Notice, LogLevel::Verbose, LogLevel::Debug];
        assert_eq!(levels.map(logged), [0, 2, 3, 4, 5]);
    }

    #[test]
    fn a_rotated_file_is_left_for_a_new_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let text = path.to_str().unwrap();
        let log = Log {
            level: Arc::default(),
            sink: Sink::File(Arc::new(LogFile { path: text.into(), file: Mutex::new(open(text).unwrap()) })),
        };
        let mut sink = log.sink.clone();
        sink.write_all(b"one\n").unwrap();
        std::fs::rename(&path, dir.path().join("old")).unwrap();
        sink.write_all(b"two\n").unwrap();
        log.reopen().unwrap();
        sink.write_all(b"three\n").unwrap();
        assert_eq!(std::fs::read_to_string(dir.path().join("old")).unwrap(), "one\ntwo\n");
        assert_eq!(std::fs::read_to_string(path).unwrap(), "three\n");
        assert!(open("/nonexistent/log").unwrap_err().to_string().contains("logfile '/nonexistent/log'"));
    }
}

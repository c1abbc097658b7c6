//! Why the data set cannot be loaded, in words that say what to do.
//!
//! Owns: the errors and their texts. Does **not** own finding them.

use std::fmt::{self, Write as _};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use towline_persist::aof::{LogError, TornReason};
use towline_persist::directory::StartRefusal;
use towline_persist::rdb_file::{Obstacle, RdbFileError};

/// Why a data set was not loaded. What was loaded of it is never served. Nothing on disk was changed, unless the variant says
/// so. Not retryable without doing what the text says.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// Another process keeps its files in the directory.
    #[error(
        "another server{} uses the directory '{}': it holds the lock on '{}'. Stop that server, or give this one a directory \
         of its own ('--dir PATH'). The lock ends with the process that holds it; the file itself may stay",
        .pid.map(|pid| format!(" (process {pid})")).unwrap_or_default(), .lock.parent().unwrap_or(.lock).display(),
        .lock.display()
    )]
    Locked {
        /// The lock file.
        lock: PathBuf,
        /// The process, as far as the file tells.
        pid: Option<u32>,
    },
    /// The environment's fault: a file or directory cannot be used.
    #[error("cannot {action} '{}': {source}{}", .path.display(), hint(.source))]
    Io {
        /// What failed, as a verb.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system says.
        source: Arc<io::Error>,
    },
    /// The files of the log do not belong together.
    #[error("the log in '{}' cannot be used: {refusal}", .directory.display())]
    Directory {
        /// The log's directory.
        directory: PathBuf,
        /// Why.
        refusal: StartRefusal,
    },
    /// A snapshot, or the base of the log, is damaged, or of a version that is not known.
    #[error(
        "'{}' cannot be loaded: {error}. Nothing of it was used: bring the file back from a copy, or move it away to start \
         without it", .path.display()
    )]
    Snapshot {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        error: RdbFileError,
    },
    /// A key is there twice.
    #[error(
        "'{}' cannot be loaded: it has key \"{}\" in database {database} twice, at byte {offset}. Bring the file back from a \
         copy", .path.display(), .key.escape_ascii()
    )]
    Twice {
        /// The file.
        path: PathBuf,
        /// Where the second one is.
        offset: u64,
        /// The database.
        database: u8,
        /// The key.
        key: Vec<u8>,
    },
    /// Data that this server has no place for, all of it.
    #[error("{}", obstacles(.path, .found, *.count))]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The first of them.
        found: Vec<Unsupported>,
        /// How many there are.
        count: u64,
    },
    /// A database beyond those that there are.
    #[error(
        "'{}' cannot be loaded: it has keys in database {database}, at byte {offset}, and this server has the databases 0 to \
         {}. {}", .path.display(), .databases.saturating_sub(1), databases_hint(*.database)
    )]
    Database {
        /// The file.
        path: PathBuf,
        /// Where it is selected.
        offset: u64,
        /// Its number.
        database: u64,
        /// How many databases there are.
        databases: u8,
    },
    /// The log is damaged.
    #[error("'{}' cannot be loaded: {error}", .path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        error: LogError,
    },
    /// The log ends within a command where it must not.
    #[error("{}", torn(.path, *.cut_at, *.lost_bytes, *.reason, *.is_last))]
    Torn {
        /// The file.
        path: PathBuf,
        /// The end of what is whole.
        cut_at: u64,
        /// The bytes behind it.
        lost_bytes: u64,
        /// What they are.
        reason: TornReason,
        /// Whether nothing was written behind it: `aof-load-truncated` would have it cut.
        is_last: bool,
    },
    /// A command of the log fails: what it did once would be missing.
    #[error(
        "'{}' cannot be loaded: the command at byte {offset}, {command}, fails: {reason}. Bring the file back from a copy, or \
         take the command out and lose what it did", .path.display()
    )]
    Command {
        /// The file.
        path: PathBuf,
        /// Where the command begins.
        offset: u64,
        /// Its first words.
        command: String,
        /// The error reply.
        reason: String,
    },
    /// The server was asked to stop.
    #[error("the server was stopped while it loaded its data")]
    Stopped,
    /// A bug: a thread that loads has panicked.
    #[error("a thread panicked while loading '{}'; this is a bug of the server", .path.display())]
    Panicked {
        /// The file.
        path: PathBuf,
    },
}

/// Something that this server has no place for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unsupported {
    /// In an RDB file.
    Data(Obstacle),
    /// Commands in a log.
    Commands {
        /// The command's name.
        name: String,
        /// How often it is there.
        count: u64,
        /// Where it is first.
        offset: u64,
    },
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Data(obstacle) => write!(f, "{obstacle} (at byte {})", obstacle.offset()),
            Self::Commands { name, count: 1, offset } => write!(f, "command {name} (at byte {offset})"),
            Self::Commands { name, count, offset } => {
                write!(f, "command {name}, {count} times (first at byte {offset})")
            }
        }
    }
}

impl LoadError {
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io { action, path: path.into(), source: Arc::new(source) }
    }
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            " (check the owner and the rights of it and of the directories above it: they must be those of the user that the \
             server runs as)"
        }
        io::ErrorKind::ReadOnlyFilesystem => " (the file system is mounted read-only)",
        io::ErrorKind::StorageFull => " (make room on the device)",
        io::ErrorKind::NotFound => " (does the directory of 'dir' exist?)",
        _ => "",
    }
}

fn databases_hint(database: u64) -> String {
    let most = u64::from(towline_store::store::DB_COUNT);
    if database < most {
        format!("Set 'databases' to at least {}", database + 1)
    } else {
        format!("There are {most} at most: move the keys to a lower one with the server that wrote the file")
    }
}

/// An error names this many obstacles; the log has more of them.
const NAMED_MAX: usize = 20;

fn obstacles(path: &Path, found: &[Unsupported], count: u64) -> String {
    let mut text =
        format!("'{}' cannot be loaded: it holds what this server does not have: ", path.display());
    for (index, obstacle) in found.iter().take(NAMED_MAX).enumerate() {
        // Writing to a string does not fail.
        let _ = write!(text, "{}{obstacle}", if index == 0 { "" } else { "; " });
    }
    let named = found.len().min(NAMED_MAX) as u64;
    if count > named {
        let _ = write!(text, "; and {} more", count - named);
    }
    text.push_str(
        ". Nothing of the file was used. Remove them with the server that wrote it, or set 'load-unsupported skip' to load \
         everything else (what is left out is lost with the next save or rewrite)",
    );
    text
}

fn torn(path: &Path, cut_at: u64, lost_bytes: u64, reason: TornReason, is_last: bool) -> String {
    let advice = if is_last {
        "Set 'aof-load-truncated yes' to have it cut, or cut it with redis-check-aof --fix"
    } else {
        "Commands that came after it are in later files, so that cutting would lose some in the middle: bring the file back \
         from a copy"
    };
    format!(
        "'{}' cannot be loaded: it ends with {reason}, {lost_bytes} bytes from byte {cut_at} on. {advice}",
        path.display()
    )
}

//! What can be wrong with an RDB file, and what a sound file may hold that Towline does not have.

use std::fmt;

use towline_rdb::{ObjectError, RdbType};

/// Why reading a file ended. Always the file's fault, and never retryable with the same bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}, at byte {offset}")]
pub struct RdbFileError {
    /// Where in the file: the first byte of what could not be read.
    pub offset: u64,
    /// What it was.
    pub kind: RdbFileErrorKind,
}

/// What was wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RdbFileErrorKind {
    /// The file does not start as an RDB file does.
    #[error("not an RDB file")]
    NotRdb,
    /// Written by a version of Redis or Valkey that is not known.
    #[error("RDB version {0} is not supported")]
    Version(u16),
    /// The file ends before its end mark and checksum.
    #[error("the file is cut off")]
    Truncated,
    /// What stands between the values is broken, or the type of a value is not known.
    #[error("the file is damaged: {0}")]
    Frame(#[source] ObjectError),
    /// A value is broken, or too large for the reader's limits.
    #[error("the value of key \"{}\" in database {database} cannot be read: {error}", key.escape_ascii())]
    Value {
        /// The database it is in.
        database: u32,
        /// Its key.
        key: Vec<u8>,
        /// What is wrong with it.
        #[source]
        error: ObjectError,
    },
    /// The file is sound, and holds what Towline does not have.
    #[error("cannot load {0}")]
    Obstacle(Obstacle),
    /// The bytes are not those that were written.
    #[error("the checksum is wrong: {stored:016x} is stored, {computed:016x} was computed")]
    Checksum {
        /// The checksum in the file.
        stored: u64,
        /// That of the bytes before it.
        computed: u64,
    },
    /// The file goes on after its end.
    #[error("bytes follow the end of the file")]
    TrailingBytes,
}

/// Data in a sound file that would be missing after loading it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Obstacle {
    /// A value of a type that Towline does not have.
    Value {
        /// Where its type byte stands.
        offset: u64,
        /// The database it is in.
        database: u32,
        /// Its key.
        key: Vec<u8>,
        /// Its type.
        rdb_type: RdbType,
    },
    /// A library of functions.
    Function {
        /// Where it starts.
        offset: u64,
    },
    /// What a module keeps besides its values.
    ModuleAux {
        /// Where it starts.
        offset: u64,
        /// The module's type name, of nine characters.
        module: String,
    },
    /// An import of slots that was under way when the file was written; its keys are not all there.
    SlotImport {
        /// Where it starts.
        offset: u64,
    },
}

impl Obstacle {
    /// Where in the file it starts.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        match self {
            Self::Value { offset, .. }
            | Self::Function { offset }
            | Self::ModuleAux { offset, .. }
            | Self::SlotImport { offset } => *offset,
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value { database, key, rdb_type, .. } => write!(
                f,
                "key \"{}\" in database {database}: RDB type {rdb_type} is not supported",
                key.escape_ascii()
            ),
            Self::Function { .. } => write!(f, "a library of functions"),
            Self::ModuleAux { module, .. } => write!(f, "the data of module type {module}"),
            Self::SlotImport { .. } => write!(f, "an unfinished import of slots"),
        }
    }
}

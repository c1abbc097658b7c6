//! The directory of the log: what is loaded, and how a rewrite replaces it.
//!
//! Owns the names of files ([`Names`]), what a start does with the files that it finds ([`plan_start`]), and the
//! steps of a rewrite ([`Rewrite`]). Does not touch a file: all of them are lists of [`Action`]s, which the server
//! carries out one after the other.
//!
//! # What holds at every moment
//!
//! * The manifest under its final name is whole: it is written beside, synced, and renamed.
//! * Every file that it names exists, except history.
//! * A file that it names is not written any more, except the last increment and, around the moment of a switch,
//!   the one before it while the last one is empty.
//!
//! So whatever of a rewrite was done when the process died, the manifest leads to exactly the right data: the old
//! base with all increments before the new manifest was renamed, the new base with the last increment after that.

use std::fmt;

mod names;
mod rewrite;
mod start;

pub use names::Names;
pub use rewrite::{BaseForm, Failure, Rewrite, RewriteKind};
pub use start::{DirectoryFile, Found, LoadFile, StartPlan, StartRefusal, plan_start};

/// One operation on the directory. Names are those of files in it.
///
/// An action is done when everything in it has succeeded; if any part fails, nothing is known, and the failure is
/// given to the plan ([`Rewrite::failed`]) or ends the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Create the file, which must not be there or is emptied, and sync it.
    Create {
        /// The file.
        name: String,
    },
    /// Create or empty the file, write all bytes, sync it.
    Write {
        /// The file.
        name: String,
        /// Its content.
        bytes: Vec<u8>,
    },
    /// Rename a file over whatever has the other name.
    Rename {
        /// The file.
        from: String,
        /// Its new name.
        to: String,
    },
    /// Move the log of a Redis before 7 from beside the directory into it, and sync both directories.
    AdoptSingleLog {
        /// Its name in both places.
        to: String,
    },
    /// Remove a file; that it is not there is no failure.
    Remove {
        /// The file.
        name: String,
    },
    /// Sync the directory: what was created, renamed and removed stays so.
    SyncDirectory,
    /// From one instant on, effects are appended to this file, whatever the policy of syncing: before the first
    /// of them is written, everything in the file before it has been synced. The base that is written next is the
    /// data of the same instant.
    SwitchAppends {
        /// The file.
        name: String,
    },
    /// Write the base of the instant of the switch to this file, and sync it.
    WriteBase {
        /// The file.
        name: String,
    },
}

/// What it does, for a message that begins with "cannot".
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create { name } => write!(f, "create {name}"),
            Self::Write { name, .. } => write!(f, "write {name}"),
            Self::Rename { from, to } => write!(f, "rename {from} to {to}"),
            Self::AdoptSingleLog { to } => write!(f, "take over {to}"),
            Self::Remove { name } => write!(f, "remove {name}"),
            Self::SyncDirectory => f.write_str("sync the directory"),
            Self::SwitchAppends { name } => write!(f, "append to {name}"),
            Self::WriteBase { name } => write!(f, "write the base {name}"),
        }
    }
}

//! Keeping the data set in files.
//!
//! Owns: what the server's parts share about snapshots, the log and loading. Does **not** own the files' formats (see
//! `towline_persist`) nor how a snapshot is taken (see `towline_store::stream`).
//!
//! No data worker touches a file. Three threads do: the *appender* writes and syncs the log, the *keeper* loads, saves and
//! rewrites, and both are told what to do by messages. Workers look at the [`Gate`] only.

pub(crate) mod appender;
pub(crate) mod disk;
pub(crate) mod gate;
pub(crate) mod held;
#[cfg(test)]
pub(crate) mod memory_disk;

use appender::LogHandle;
use disk::Disk;
use gate::Gate;
use held::Releases;
use std::sync::Arc;

/// What the server's parts share; see the module's description.
#[derive(Debug)]
pub(crate) struct Persistence {
    pub(crate) gate: Gate,
    pub(crate) disk: Arc<dyn Disk>,
    /// To the thread that writes the log.
    pub(crate) log: LogHandle,
    /// Wakes the workers when replies need no longer wait for the log.
    pub(crate) releases: Releases,
}

impl Persistence {
    /// Nothing is loaded, and nothing is kept yet.
    pub(crate) fn new(disk: Arc<dyn Disk>, workers: usize) -> Self {
        let (gate, log) = (Gate::default(), LogHandle::default());
        Self { gate, disk, log, releases: Releases::new(workers) }
    }
}

//! Keeping the data set in files.
//!
//! Owns: what the server's parts share about snapshots, the log and loading. Does **not** own the files' formats (see
//! `towline_persist`) nor how a snapshot is taken (see `towline_store::stream`).
//!
//! No data worker touches a file. Three threads do: the *appender* writes and syncs the log, the *keeper* loads, saves and
//! rewrites, and both are told what to do by messages. Workers look at the [`Gate`] only.

pub(crate) mod appender;
pub(crate) mod directory;
pub(crate) mod disk;
#[cfg(test)]
pub(crate) mod faulty_disk;
pub(crate) mod gate;
pub(crate) mod held;
pub(crate) mod keeper;
pub(crate) mod loading;
#[cfg(test)]
pub(crate) mod memory_disk;
pub(crate) mod snapshot;

use appender::LogHandle;
use disk::{Disk, DiskLock};
use gate::Gate;
use held::Releases;
use keeper::Keeper;
use loading::{LoadError, Status};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

/// What the server's parts share; see the module's description.
#[derive(Debug)]
pub(crate) struct Persistence {
    pub(crate) gate: Gate,
    pub(crate) disk: Arc<dyn Disk>,
    /// To the thread that writes the log.
    pub(crate) log: LogHandle,
    /// Wakes the workers when replies need no longer wait for the log.
    pub(crate) releases: Releases,
    pub(crate) loading: Status,
    /// Keeps other servers away from `dir`.
    lock: Mutex<Option<(PathBuf, Box<dyn DiskLock>)>>,
    /// To the thread that saves and rewrites.
    pub(crate) keeper: Keeper,
}

impl Persistence {
    /// Nothing is loaded, and nothing is kept yet, at `now_ms` in unix milliseconds.
    pub(crate) fn new(disk: Arc<dyn Disk>, workers: usize, now_ms: u64) -> Self {
        let (gate, log, loading) = (Gate::default(), LogHandle::default(), Status::default());
        let (releases, keeper) = (Releases::new(workers), Keeper::new(now_ms));
        Self { gate, disk, log, releases, loading, lock: Mutex::default(), keeper }
    }

    /// Keeps the lock of this directory until the server ends or goes to another one.
    pub(crate) fn keep_lock(&self, dir: &Path, lock: Box<dyn DiskLock>) {
        *self.lock.lock().unwrap_or_else(PoisonError::into_inner) = Some((dir.to_owned(), lock));
    }

    /// Whether keys are being loaded: none is evicted or expires before all are there, as a log's next command may need it.
    pub(crate) fn is_loading(&self) -> bool {
        self.gate.is_loading() || self.loading.is_reloading.load(Ordering::Acquire)
    }

    /// Locks `dir` against other servers, if that was not done before: called by whoever is about to write there. The lock of
    /// another directory is let go.
    ///
    /// # Errors
    /// [`LoadError::Locked`] if another server has it, [`LoadError::Io`] if it cannot be locked.
    pub(crate) fn lock_directory(&self, dir: &Path) -> Result<(), LoadError> {
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if lock.as_ref().is_none_or(|(locked, _)| locked != dir) {
            *lock = None;
            *lock = Some((dir.to_owned(), directory::lock(&*self.disk, dir)?));
        }
        Ok(())
    }
}

//! One snapshot on its way to its file.
//!
//! Owns: the steps from an empty file beside the old one to a new file in its place. Does **not** own when it is made, nor
//! what its failure means.
//!
//! ```text
//! lock directory | create temp-PID.rdb | open stream | write, sync ... | rename | sync directory
//! ```
//!
//! Until the rename the old file is as it was; from it on the new one, which is whole, is in its place.

use crate::config::Config;
use crate::persistence::disk::{Disk, DiskFile};
use crate::persistence::loading::LoadError;
use crate::persistence::snapshot::{Options, Progress, Snapshot, SnapshotError, Written};
use crate::shared::Shared;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use towline_persist::directory::BaseForm;
use towline_rdb::Compression;
use towline_store::stream::{self, SlotStream};

/// Why a snapshot is not in its file. All are the environment's fault and worth another try.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum SaveError {
    /// The directory cannot be locked, or another server has it.
    #[error(transparent)]
    Lock(#[from] LoadError),
    /// The new file cannot be made.
    #[error("cannot create {}: {source}", path.display())]
    Create { path: PathBuf, source: io::Error },
    /// The data cannot be written into it.
    #[error("{}: {source}", path.display())]
    Snapshot { path: PathBuf, source: SnapshotError },
    /// It cannot take the old one's place.
    #[error("cannot rename {} to {}: {source}", from.display(), to.display())]
    Rename { from: PathBuf, to: PathBuf, source: io::Error },
    /// It is in its place, and perhaps not after a crash of the machine.
    #[error("cannot sync {}: {source}", path.display())]
    SyncDirectory { path: PathBuf, source: io::Error },
}

/// How snapshots of this configuration are written.
pub(crate) fn options(
    shared: &Shared,
    config: &Config,
    form: BaseForm,
    is_base: bool,
    unix_ms: u64,
) -> Options {
    let compression = if config.persistence.rdbcompression { Compression::Lzf } else { Compression::Off };
    Options {
        form,
        compression,
        has_checksum: config.persistence.rdbchecksum,
        is_base,
        unix_s: unix_ms / 1000,
        used_bytes: shared.memory.used_bytes(&shared.store, None, unix_ms),
    }
}

/// A snapshot on its way to its file.
#[derive(Debug)]
pub(super) struct SaveJob {
    snapshot: Snapshot,
    file: Box<dyn DiskFile>,
    directory: PathBuf,
    from: PathBuf,
    to: PathBuf,
    /// Changes to the data up to its instant.
    pub(super) changes: u64,
    pub(super) progress: Arc<Progress>,
}

impl SaveJob {
    /// Creates the file and opens the stream. With `follows`, [`SaveJob::has_tail`] can tell what happened since.
    pub(super) fn begin(
        shared: &Shared,
        progress: Arc<Progress>,
        unix_ms: u64,
        follows: bool,
    ) -> Result<Self, SaveError> {
        let (config, disk) = (shared.config(), &*shared.persistence.disk);
        let directory = PathBuf::from(&config.dir);
        shared.persistence.lock_directory(&directory)?;
        remove_leftovers(disk, &directory);
        let from = directory.join(temp_name(std::process::id()));
        let to = directory.join(&config.dbfilename);
        let file = disk.create(&from).map_err(|source| {
            // It may be there all the same.
            let _ = disk.remove(&from);
            SaveError::Create { path: from.clone(), source }
        })?;
        let options = options(shared, &config, BaseForm::Rdb, false, unix_ms);
        let changes = shared.stats.dirty();
        let stream_config = stream::Config { follows, ..stream::Config::default() };
        let stream = SlotStream::open(&shared.store, 0..SLOTS, unix_ms, &stream_config);
        let snapshot = Snapshot::new(stream, &options);
        Ok(Self { snapshot, file, directory, from, to, changes, progress })
    }

    /// Writes a little: `true` when the file is in its place.
    pub(super) fn step(&mut self, shared: &Shared) -> Result<bool, SaveError> {
        let is_whole = self
            .snapshot
            .step(&shared.store, &mut *self.file, &self.progress)
            .map_err(|source| SaveError::Snapshot { path: self.from.clone(), source })?;
        if !is_whole {
            return Ok(false);
        }
        let (disk, from, to) = (&shared.persistence.disk, &self.from, &self.to);
        disk.rename(from, to).map_err(|source| {
            let (from, to) = (from.clone(), to.clone());
            SaveError::Rename { from, to, source }
        })?;
        let path = &self.directory;
        disk.sync_dir(path).map_err(|source| SaveError::SyncDirectory { path: path.clone(), source })?;
        Ok(true)
    }

    /// Whether something happened to the data since the instant.
    pub(super) fn has_tail(&self) -> bool {
        self.snapshot.has_tail()
    }

    /// What came of it.
    pub(super) fn written(&self) -> Written {
        self.progress.written()
    }

    /// The file that it is to be.
    pub(super) fn path(&self) -> &Path {
        &self.to
    }

    /// Ends it, finished or not; what is half done is removed.
    pub(super) fn end(self, shared: &Shared) {
        self.snapshot.close(&shared.store);
        drop(self.file);
        // Renamed, it is not there. Not removed, it is overwritten by the next snapshot, or removed at the next start.
        let _ = shared.persistence.disk.remove(&self.from);
    }
}

const SLOTS: u16 = towline_cluster::SLOT_COUNT as u16;

/// Where a process writes a snapshot that is not whole yet; the name is that of Redis.
fn temp_name(pid: u32) -> String {
    format!("temp-{pid}.rdb")
}

/// Removes what processes left that died while they saved. The caller has the directory's lock.
pub(super) fn remove_leftovers(disk: &dyn Disk, directory: &Path) {
    let ours = std::process::id();
    let pid_of = |text: &str| text.parse::<u32>().ok().filter(|pid| pid.to_string() == text);
    let is_dead = |name: &str| {
        let Some(rest) = name.strip_prefix("temp-").and_then(|rest| rest.strip_suffix(".rdb")) else {
            return false;
        };
        // A Redis that works in the same directory may be saving at this moment, and a feed of ours may be sending.
        match rest.split_once("-sync-") {
            Some((pid, _)) => pid.parse().is_ok_and(|pid| pid != ours && !is_alive(pid)),
            None => pid_of(rest).is_some_and(|pid| pid == ours || !is_alive(pid)),
        }
    };
    let Ok(entries) = disk.list(directory) else { return };
    for entry in entries.iter().filter(|entry| is_dead(&entry.name)) {
        tracing::info!("removing {}, which a process left that died while it saved", entry.name);
        let _ = disk.remove(&directory.join(&entry.name));
    }
}

fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    // Not being allowed to ask means that it is there.
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

//! Loading the data set again while the server runs: `DEBUG RELOAD` and `DEBUG LOADAOF`.
//!
//! Owns: the check of the files, emptying the databases, and loading. Does **not** own keeping commands back meanwhile, saving
//! before it, nor the log (see the keeper).
//!
//! The files are read twice: first to see whether everything in them can be loaded, while the data is as it was.

use super::hands::Purpose;
use super::reading::{Reading, What};
use super::{LoadError, find_log};
use crate::config::Config;
use crate::execute::Local;
use crate::followups;
use crate::persistence::directory::Places;
use crate::shared::Shared;
use std::path::PathBuf;
use std::sync::Arc;
use towline_store::keyspace::Keyspace;
use towline_store::store::DB_COUNT;

/// What is loaded again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReloadFrom {
    /// The snapshot.
    Snapshot,
    /// The log.
    Log,
}

/// How.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReloadOptions {
    pub(crate) from: ReloadFrom,
    /// Whether a snapshot is made first: not with `NOSAVE`.
    pub(crate) saves: bool,
    /// Whether the databases are emptied first: not with `NOFLUSH`.
    pub(crate) flushes: bool,
    /// `MERGE`: whether a key that is there is replaced; otherwise it is an error.
    pub(crate) merges: bool,
}

/// Why a reload has failed, and what that leaves behind.
#[derive(Debug, Clone)]
pub(crate) enum ReloadError {
    /// Nothing was changed.
    Refused(LoadError),
    /// The data is gone in part: the server must not go on.
    Broken(LoadError),
}

/// Loads the files again, at `now_ms` (unix milliseconds). Commands are kept back by the caller; one that had begun before may still come in between, and what
/// it wrote gives way to what is loaded.
///
/// # Errors
/// See [`ReloadError`].
pub(crate) fn reload(shared: &Arc<Shared>, options: ReloadOptions, now_ms: u64) -> Result<(), ReloadError> {
    let config = shared.config();
    let files = files_of(shared, &config, options.from).map_err(ReloadError::Refused)?;
    let is_merge = options.flushes || options.merges;
    read(shared, &config, &files, if is_merge { Purpose::Check } else { Purpose::CheckNew }, now_ms)
        .map_err(ReloadError::Refused)?;
    let mut local = Local::new(0, Arc::clone(shared), now_ms);
    if options.flushes {
        empty(&mut local, now_ms);
    }
    let ready = read(shared, &config, &files, Purpose::Merge, now_ms).map_err(ReloadError::Broken)?;
    local.changes.ready = ready;
    followups::work_off(&mut local, None, now_ms);
    Ok(())
}

/// A file to be read.
struct Source {
    path: PathBuf,
    what: What,
    may_be_torn: bool,
}

/// The files in their order.
fn files_of(shared: &Shared, config: &Config, from: ReloadFrom) -> Result<Vec<Source>, LoadError> {
    let (places, disk) = (Places::of(config), &*shared.persistence.disk);
    match from {
        ReloadFrom::Snapshot => {
            Ok(vec![Source { path: places.snapshot, what: What::Snapshot, may_be_torn: false }])
        }
        ReloadFrom::Log => {
            let plan = find_log(&places, disk)?;
            if plan.load.is_empty() {
                let missing = places.log.join(places.names.manifest());
                return Err(LoadError::io("open", missing, std::io::ErrorKind::NotFound.into()));
            }
            let file = |file: &towline_persist::directory::LoadFile| Source {
                path: places.log.join(&file.name),
                what: What::of(&file.name),
                may_be_torn: file.may_be_torn && config.persistence.aof_load_truncated,
            };
            Ok(plan.load.iter().map(file).collect())
        }
    }
}

/// Keys that somebody waits for, with their databases.
type ReadyKeys = Vec<(u8, Box<[u8]>)>;

/// Reads all files; returns the keys that somebody waits for.
fn read(
    shared: &Shared,
    config: &Config,
    files: &[Source],
    purpose: Purpose,
    now_ms: u64,
) -> Result<ReadyKeys, LoadError> {
    let disk = &*shared.persistence.disk;
    let sizes = files.iter().map(|Source { path, .. }| {
        let bytes = disk.open(path).and_then(|file| file.size());
        bytes.map_err(|source| LoadError::io("open", path, source))
    });
    let total_bytes = sizes.sum::<Result<u64, LoadError>>()?;
    shared.persistence.loading.begin(total_bytes, now_ms);
    let mut reading = Reading::new(shared, config, now_ms, purpose);
    for Source { path, what, may_be_torn } in files {
        if let Some(torn) = reading.file(path, *what)?
            && !may_be_torn
        {
            return Err(torn.error(path, false));
        }
    }
    Ok(reading.into_ready())
}

/// Empties all databases.
fn empty(local: &mut Local, now_ms: u64) {
    let (shared, settings) = (Arc::clone(&local.shared), Arc::clone(&local.settings));
    let mut ks = Keyspace::hold_all(&shared.store, &settings, &mut local.changes, 0, now_ms);
    for db in 0..DB_COUNT {
        ks.select(db);
        ks.flush();
    }
    drop(ks);
    followups::work_off(local, None, now_ms);
}

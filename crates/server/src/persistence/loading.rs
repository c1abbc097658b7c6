//! Loading the data set from its files.
//!
//! Owns: which files are loaded, the checks before that, and reading them into the store. Does **not** own the files' formats
//! (see `towline_persist`) nor what comes after: appending, saving.
//!
//! # All or nothing
//!
//! While [`load`] runs, clients get `LOADING`. When it fails, the server ends with the reason and exit code 1: what was loaded
//! by then is never served. Until everything has been read, nothing on disk is changed.
//!
//! # What is loaded
//!
//! With `appendonly`, the log: its base and its increments, in the order of the manifest. Without, or if there is no log yet,
//! the snapshot. What the files hold and this server does not have (streams, modules, functions) is an error that lists it all,
//! or, with `load-unsupported skip`, left out with a warning for each.
//!
//! * Keys of a snapshot that have expired by now are left out, as Redis does. Those of a log's base are not: the log tells when
//!   they went.
//! * A log is applied at an instant where nothing has expired. Commands with a relative time, which neither Towline nor a Redis
//!   since 2.6 writes into a log, count from the last time annotation, or from now.
//! * Nothing is evicted while files are loaded, as in Redis: eviction begins with the first command after that.
//! * A tail that was torn when the machine died is cut with a warning (`aof-load-truncated`).
//!
//! # Threads and memory
//!
//! One thread reads and splits, as many as there are workers decode and insert (see [`pool`]). Keys of a snapshot come in any order;
//! commands of a log are in order within each slot, and those over several slots wait for all before them. What was read and is
//! not yet in the store is bounded by [`PENDING_BYTES_MAX`] and one value, or one unit of the log.

mod apply;
mod error;
mod hands;
mod pool;
mod reading;
mod reload;
mod status;

#[cfg(test)]
mod tests;

pub use error::{LoadError, Unsupported};
pub(crate) use reload::{ReloadError, ReloadFrom, ReloadOptions, reload};
pub(crate) use status::Status;

use super::directory::{Places, lock, read_all};
use super::disk::{Disk, DiskLock};
use crate::config::Config;
use crate::connection::unix_ms;
use crate::shared::{Shared, Stop};
use hands::Purpose;
use reading::{Reading, What};
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Instant;
use towline_persist::aof::Manifest;
use towline_persist::directory::{DirectoryFile, Found, RewriteKind, StartPlan, plan_start};

/// Bytes of values and commands that wait for a thread. Enough that no thread waits for another in the middle of a file, and
/// little beside any data set.
pub(crate) const PENDING_BYTES_MAX: usize = 16 << 20;
/// A manifest has a line for each file.
const MANIFEST_BYTES_MAX: u64 = 16 << 20;

/// What a start will load; nothing was changed yet, but for the lock.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// Keeps other servers away, if this one writes by itself.
    pub(crate) lock: Option<Box<dyn DiskLock>>,
    places: Places,
    /// Bytes of the snapshot, if it is what is loaded.
    snapshot: Option<u64>,
    /// What becomes of the log, if it is on.
    log: Option<StartPlan>,
}

impl Prepared {
    /// `dir`, as it was at the start.
    pub(crate) fn dir(&self) -> &Path {
        &self.places.dir
    }

    /// Whether clients have to wait.
    pub(crate) fn has_work(&self) -> bool {
        self.snapshot.is_some() || self.log.is_some()
    }
}

/// What was loaded, and how the log goes on.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    /// The increment that effects are appended to, and its bytes. `None`: the log is off or starts with `rewrite`.
    pub(crate) append_to: Option<(String, u64)>,
    /// The rewrite that the log starts with.
    pub(crate) rewrite: Option<RewriteKind>,
    /// The manifest in force.
    pub(crate) manifest: Manifest,
    /// Bytes of the base, and of all files of the log.
    pub(crate) base_bytes: u64,
    pub(crate) log_bytes: u64,
    /// Keys in the store.
    pub(crate) keys: u64,
}

/// Locks the directory and finds out what there is to load.
///
/// The directory is locked if the server writes by itself: with a log, or save points. Without a log, a directory that cannot be
/// written is no reason not to start: the lock is taken before the first save.
///
/// # Errors
/// See [`LoadError`].
pub(crate) fn prepare(config: &Config, disk: &dyn Disk) -> Result<Prepared, LoadError> {
    let places = Places::of(config);
    let settings = &config.persistence;
    // A node of a cluster keeps there who it is, and what it agreed to.
    let must_write = settings.appendonly || config.cluster.is_enabled;
    let lock = match must_write || !settings.save.is_empty() {
        false => None,
        true => match lock(disk, &places.dir) {
            Err(error @ LoadError::Io { .. }) if !must_write => {
                tracing::warn!("{error}; the server starts, and snapshots fail until it can");
                None
            }
            result => Some(result?),
        },
    };
    let log = match settings.appendonly {
        true => Some(find_log(&places, disk)?),
        false => {
            warn_of_log(&places, disk);
            None
        }
    };
    let is_log_new = log.as_ref().is_none_or(|plan| plan.load.is_empty());
    let snapshot = if is_log_new { find_snapshot(&places, disk)? } else { None };
    Ok(Prepared { lock, places, snapshot, log })
}

fn find_log(places: &Places, disk: &dyn Disk) -> Result<StartPlan, LoadError> {
    let list = |path: &Path| disk.list(path).map_err(|source| LoadError::io("list", path, source));
    let files = list(&places.log)?;
    let manifest = places.names.manifest();
    let manifest = match files.iter().any(|file| file.name == manifest) {
        false => None,
        true => {
            let path = places.log.join(manifest);
            let read = read_all(disk, &path, MANIFEST_BYTES_MAX);
            Some(read.map_err(|source| LoadError::io("read", path, source))?)
        }
    };
    let has_single_log = list(&places.dir)?.iter().any(|file| file.name == places.names.single_log());
    let files = files.into_iter().map(|file| DirectoryFile { name: file.name, bytes: file.bytes }).collect();
    plan_start(&places.names, &Found { manifest, files, has_single_log })
        .map_err(|refusal| LoadError::Directory { directory: places.log.clone(), refusal })
}

/// The size of the snapshot, if there is one.
fn find_snapshot(places: &Places, disk: &dyn Disk) -> Result<Option<u64>, LoadError> {
    match disk.open(&places.snapshot).and_then(|file| file.size()) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(LoadError::io("open", &places.snapshot, source)),
    }
}

/// Who turns the log off with a start loses what only the log has; that should not go unseen.
fn warn_of_log(places: &Places, disk: &dyn Disk) {
    let manifest = places.names.manifest();
    if disk.list(&places.log).is_ok_and(|files| files.iter().any(|file| file.name == manifest)) {
        tracing::warn!(
            "there is a log in '{}', and 'appendonly' is no: the log is not loaded, the snapshot is",
            places.log.display()
        );
    }
}

/// Loads what was found; the gate is closed meanwhile. Then carries out what the start has planned for the log's directory.
///
/// # Errors
/// See [`LoadError`]: the store holds part of the data and must not be served.
pub(crate) fn load(shared: &Shared, prepared: &Prepared) -> Result<Loaded, LoadError> {
    let started = Instant::now();
    let config = shared.config();
    let Prepared { places, snapshot, log, .. } = prepared;
    let status = &shared.persistence.loading;
    let mut loaded = Loaded::default();
    status.begin(snapshot.unwrap_or(0), unix_ms());
    if snapshot.is_some() {
        Reading::new(shared, &config, unix_ms(), Purpose::Load).file(&places.snapshot, What::Snapshot)?;
    }
    if let Some(plan) = log {
        load_log(shared, &config, places, plan, &mut loaded)?;
    }
    if config.persistence.appendonly && loaded.append_to.is_none() {
        loaded.rewrite.get_or_insert(RewriteKind::Enable);
    }
    loaded.keys = (0..config.databases).map(|db| shared.store.len(db) as u64).sum();
    if prepared.has_work() {
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        tracing::info!(
            "loaded {} keys in {:.3} s: {} bytes, {} commands of the log, {} keys left out as expired, {} as empty",
            loaded.keys,
            started.elapsed().as_secs_f64(),
            count(&status.total_bytes),
            count(&status.commands),
            count(&status.keys_expired),
            count(&status.keys_empty),
        );
    }
    Ok(loaded)
}

fn load_log(
    shared: &Shared,
    config: &Config,
    places: &Places,
    plan: &StartPlan,
    loaded: &mut Loaded,
) -> Result<(), LoadError> {
    let disk = &*shared.persistence.disk;
    let adopts = plan.append_to.is_none() && !plan.load.is_empty();
    let path_of = |name: &str| match disk.list(&places.log) {
        // A single log that is to be adopted is still where it was.
        Ok(files) if adopts && !files.iter().any(|file| file.name == name) => places.single_log(),
        _ => places.log.join(name),
    };
    let sized = |name: &str| {
        let path = path_of(name);
        let bytes = disk.open(&path).and_then(|file| file.size());
        bytes.map_err(|source| LoadError::io("open", &path, source)).map(|bytes| (path, bytes))
    };
    let files = plan.load.iter().map(|file| Ok((file, sized(&file.name)?)));
    let files: Vec<_> = files.collect::<Result<_, LoadError>>()?;
    loaded.log_bytes = files.iter().map(|(_, (_, bytes))| bytes).sum();
    if !files.is_empty() {
        shared.persistence.loading.begin(loaded.log_bytes, unix_ms());
    }
    let mut reading = Reading::new(shared, config, unix_ms(), Purpose::Load);
    let mut cuts = Vec::new();
    for (file, (path, bytes)) in &files {
        let is_base = plan.manifest.base.as_ref().is_some_and(|base| base.name == file.name);
        let torn_tail = reading.file(path, What::of(&file.name))?;
        let mut whole_bytes = *bytes;
        if let Some(torn) = torn_tail {
            if !file.may_be_torn || !config.persistence.aof_load_truncated {
                return Err(torn.error(path, file.may_be_torn));
            }
            torn.warn(path);
            whole_bytes = torn.cut_at;
            loaded.log_bytes -= torn.lost_bytes;
            cuts.push((file.name.as_str(), torn.cut_at));
        }
        if is_base {
            loaded.base_bytes = whole_bytes;
        }
        if plan.append_to.as_ref() == Some(&file.name) {
            loaded.append_to = Some((file.name.clone(), whole_bytes));
        }
    }
    for (from, to) in &plan.set_aside {
        tracing::warn!(
            "'{}' is not in the manifest: it is renamed to '{to}' and not loaded. Nothing that was promised is in it, unless an \
             old manifest was put back",
            places.log.join(from).display()
        );
    }
    for action in &plan.actions {
        let failed = |source| LoadError::io("change", &places.log, source);
        places.carry_out(disk, action).map_err(failed)?;
    }
    for (name, cut_at) in cuts {
        let path = places.log.join(name);
        let cut = disk.append(&path).and_then(|mut file| {
            file.truncate(cut_at)?;
            file.sync()
        });
        cut.map_err(|source| LoadError::io("cut", path, source))?;
    }
    if adopts {
        loaded.rewrite = Some(RewriteKind::Replace);
    }
    loaded.manifest = plan.manifest.clone();
    Ok(())
}

/// What the keeper does first: loads, opens the server to clients, or ends it.
/// `then` goes on with what was loaded before that, and may fail as well.
pub(crate) fn run_at_start<T>(
    shared: &Shared,
    prepared: &Prepared,
    then: impl FnOnce(Loaded) -> Result<T, LoadError>,
) -> Option<T> {
    let result = load(shared, prepared).and_then(then);
    let (loaded, outcome) = match result {
        Ok(loaded) => (Some(loaded), Ok(())),
        Err(error) => (None, Err(error)),
    };
    if loaded.is_none() {
        shared.stop(Stop::Gracefully);
    } else {
        shared.moves.recall(shared);
        shared.persistence.gate.set_loading(false);
    }
    shared.persistence.loading.end(outcome);
    loaded
}

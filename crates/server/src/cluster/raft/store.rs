//! A Raft group's files, as Raft sees them.
//!
//! Owns: the log's entries in memory, opening both files, and the log storage of openraft. Does **not** own the state that entries
//! are applied to (`machine.rs`) nor the thread that writes (`writer.rs`).
//!
//! The whole log is in memory: it is cut at each snapshot, and an entry is some hundred bytes.

use super::format::{Damage, LOG_MAGIC, LogState, Record, encode, read_log, read_snapshot};
use super::types::{Entry, LogId, SnapshotMeta, StorageError, Types, Vote};
use super::writer::{Done, Order, Paths, Writer, put};
use crate::failpoint;
use crate::persistence::disk::{Disk, DiskFile};
use openraft::storage::{LogFlushed, LogState as RaftLogState, RaftLogStorage};
use openraft::{EntryPayload, OptionalSend, RaftLogReader, StorageIOError};
use std::fmt::Debug;
use std::io;
use std::ops::RangeBounds;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;
use towline_cluster_proto::Metadata;

/// From this size on the log is written anew when entries are purged.
const REWRITE_AT_BYTES: u64 = 1 << 20;
/// A file that is larger is not of ours: the log is cut at each snapshot, and a snapshot is a few MiB at most.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Why a group's files cannot be used. The environment's fault.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum OpenError {
    /// The disk does not work.
    #[error("cannot open {}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A file is not what this node has left there.
    #[error(
        "{} is damaged: {damage}. Other nodes rely on what it said. If the cluster has a quorum without this node, move the \
         directory away, start anew, and let it be met again; else restore the file", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// How.
        damage: Damage,
    },
    /// A file is gone.
    #[error(
        "{} is gone, and other nodes rely on what it said: restore it, or, if the cluster has a quorum without this node, move the \
         directory away, start anew, and let it be met again", path.display()
    )]
    Gone {
        /// The file.
        path: PathBuf,
    },
}

#[derive(Debug)]
struct Shared {
    state: Mutex<LogState>,
    kept: Mutex<Kept>,
    writer: Writer,
}

/// The log storage of a group. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Store(Arc<Shared>);

/// What a snapshot's file holds.
pub(crate) type Kept = Option<(SnapshotMeta, Arc<Metadata>)>;

/// The names of a group's files begin with this.
pub(crate) fn create(disk: &dyn Disk, dir: &Path, name: &str) -> io::Result<()> {
    put(disk, dir, &Paths::new(dir, name).log, LOG_MAGIC)
}

/// Removes a group's files. What cannot be removed is left: nothing refers to it.
pub(crate) fn remove_others(disk: &dyn Disk, dir: &Path, name: &str) {
    let is_kept = |file: &str| file == format!("{name}.log") || file == format!("{name}.snapshot");
    for entry in disk.list(dir).unwrap_or_default() {
        let is_ours = [".log", ".snapshot", ".tmp"].iter().any(|end| entry.name.ends_with(end));
        if is_ours
            && !is_kept(&entry.name)
            && let Err(error) = disk.remove(&dir.join(&entry.name))
        {
            tracing::warn!("cannot remove {}, which is not needed any more: {error}", entry.name);
        }
    }
}

impl Store {
    /// Opens a group's files, cuts a torn tail, and starts the thread that writes. May block.
    ///
    /// # Errors
    /// [`OpenError`]; nothing was changed but that a torn tail may be cut.
    pub(crate) fn open(disk: &Arc<dyn Disk>, dir: &Path, name: &str) -> Result<Self, OpenError> {
        let paths = Paths::new(dir, name);
        let io_of = |path: &Path| {
            let path = path.to_owned();
            move |error: io::Error| match error.kind() {
                io::ErrorKind::NotFound => OpenError::Gone { path: path.clone() },
                _ => OpenError::Io { path: path.clone(), error },
            }
        };
        let bytes = read(&**disk, &paths.log).map_err(io_of(&paths.log))?;
        let damaged = |path: &Path, damage| OpenError::Damaged { path: path.to_owned(), damage };
        let (state, good) = read_log(&bytes).map_err(|damage| damaged(&paths.log, damage))?;
        if good < LOG_MAGIC.len() {
            // It was put in place as a whole, so it cannot be shorter.
            return Err(damaged(&paths.log, Damage::Foreign));
        }
        let mut log = disk.append(&paths.log).map_err(io_of(&paths.log))?;
        if good < bytes.len() {
            tracing::warn!(
                "{}: {} bytes at the end were not written to their end, and are cut",
                paths.log.display(),
                bytes.len() - good
            );
            log.truncate(good as u64).and_then(|()| log.sync()).map_err(io_of(&paths.log))?;
        }
        let kept = match read(&**disk, &paths.snapshot) {
            Ok(bytes) => Some(read_snapshot(&bytes).map_err(|damage| damaged(&paths.snapshot, damage))?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(io_of(&paths.snapshot)(error)),
        };
        if state.purged > kept.as_ref().and_then(|(meta, _)| meta.last_log_id) {
            return Err(OpenError::Gone { path: paths.snapshot });
        }
        let log_path = paths.log.clone();
        let writer = Writer::start(Arc::clone(disk), paths, log, good as u64).map_err(io_of(&log_path))?;
        let kept = kept.map(|(meta, metadata)| (meta, Arc::new(metadata)));
        Ok(Self(Arc::new(Shared { state: Mutex::new(state), kept: Mutex::new(kept), writer })))
    }

    fn state(&self) -> MutexGuard<'_, LogState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The log's size on the disk.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.writer.bytes()
    }

    /// The last snapshot.
    pub(super) fn kept(&self) -> Kept {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// This is the last snapshot from now on, if it is later than the one before: it is on the disk.
    pub(super) fn set_kept(&self, meta: SnapshotMeta, metadata: Arc<Metadata>) {
        let mut kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.as_ref().is_none_or(|(last, _)| last.last_log_id <= meta.last_log_id) {
            *kept = Some((meta, metadata));
        }
    }

    /// Puts a snapshot in place of the last one, and returns once it is on the device.
    pub(super) async fn write_snapshot(&self, file: Vec<u8>) -> io::Result<()> {
        self.written(|done| Order::Snapshot(file, done)).await
    }

    /// Ends the thread; returns when all is written. Nothing can be written from then on.
    pub(super) async fn close(&self) {
        // That the disk has failed was said when it did.
        let _ = self.written(Order::Close).await;
    }

    async fn written(&self, order: impl FnOnce(Done) -> Order) -> io::Result<()> {
        let (done, answer) = oneshot::channel();
        self.0.writer.ask(order(Done::Waiter(done)));
        answer.await.unwrap_or_else(|_| Err(io::Error::other("the thread that writes has ended")))
    }
}

fn read(disk: &dyn Disk, path: &Path) -> io::Result<Vec<u8>> {
    let mut file: Box<dyn DiskFile> = disk.open(path)?;
    if file.size()? > FILE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than such a file can be"));
    }
    let (mut bytes, mut chunk) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(bytes),
            read => bytes.extend_from_slice(&chunk[..read]),
        }
    }
}

impl RaftLogReader<Types> for Store {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<Entry>, StorageError> {
        Ok(self.state().entries.range(range).map(|(_, entry)| entry.clone()).collect())
    }
}

impl RaftLogStorage<Types> for Store {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<RaftLogState<Types>, StorageError> {
        let state = self.state();
        Ok(RaftLogState { last_purged_log_id: state.purged, last_log_id: state.last() })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), StorageError> {
        let mut records = Vec::new();
        encode(&Record::Vote(*vote), &mut records).map_err(|error| StorageIOError::write_logs(&error))?;
        self.state().vote = Some(*vote);
        let result = self.written(|done| Order::Append(records, done)).await;
        result.map_err(|error| StorageIOError::write_vote(&error).into())
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, StorageError> {
        Ok(self.state().vote)
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), StorageError> {
        let Some(committed) = committed else { return Ok(()) };
        let mut records = Vec::new();
        encode(&Record::Committed(committed), &mut records)
            .map_err(|error| StorageIOError::write_logs(&error))?;
        self.state().committed = Some(committed);
        self.0.writer.ask(Order::Append(records, Done::Nobody));
        Ok(())
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, StorageError> {
        Ok(self.state().committed)
    }

    async fn append<I>(&mut self, entries: I, callback: LogFlushed<Types>) -> Result<(), StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut records = Vec::new();
        let entries: Vec<Entry> = entries.into_iter().collect();
        for entry in &entries {
            if let EntryPayload::Normal(change) = &entry.payload {
                failpoint::change("append", change);
            }
            encode(&Record::Entry(entry.clone()), &mut records)
                .map_err(|error| StorageIOError::write_logs(&error))?;
        }
        let mut state = self.state();
        entries.into_iter().for_each(|entry| state.take(Record::Entry(entry)));
        drop(state);
        self.0.writer.ask(Order::Append(records, Done::Flushed(callback)));
        Ok(())
    }

    async fn truncate(&mut self, log_id: LogId) -> Result<(), StorageError> {
        let mut records = Vec::new();
        encode(&Record::Truncate(log_id.index), &mut records)
            .map_err(|error| StorageIOError::write_logs(&error))?;
        self.state().take(Record::Truncate(log_id.index));
        let result = self.written(|done| Order::Append(records, done)).await;
        result.map_err(|error| StorageIOError::write_logs(&error).into())
    }

    async fn purge(&mut self, log_id: LogId) -> Result<(), StorageError> {
        let order = {
            let mut state = self.state();
            state.take(Record::Purge(log_id));
            let is_large = self.0.writer.bytes() >= REWRITE_AT_BYTES;
            if is_large {
                let file = state.to_file().map_err(|error| StorageIOError::write_logs(&error))?;
                Order::Rewrite(file, Done::Nobody)
            } else {
                let mut records = Vec::new();
                encode(&Record::Purge(log_id), &mut records)
                    .map_err(|error| StorageIOError::write_logs(&error))?;
                Order::Append(records, Done::Nobody)
            }
        };
        // Nobody needs to wait: what follows is written behind it, and what is purged is in a snapshot either way.
        self.0.writer.ask(order);
        Ok(())
    }
}

#[cfg(test)]
mod tests;

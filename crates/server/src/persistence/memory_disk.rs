//! A file system in memory, for tests: it counts operations, makes chosen ones fail, and holds syncs until it is told.
//!
//! Owns: files with what of them was synced. Does **not** know directories apart from a file's path.

use super::disk::{Disk, DiskEntry, DiskFile, DiskLock};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// A file's content.
#[derive(Debug, Default, Clone)]
pub(crate) struct Content {
    /// What a process reads.
    pub(crate) bytes: Vec<u8>,
    /// What is there for certain after the machine lost power.
    pub(crate) synced: Vec<u8>,
}

type Cell = Arc<Mutex<Content>>;

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<PathBuf, Cell>,
    /// Writes, syncs and truncations so far.
    operations: u64,
    failing: Range<u64>,
    write_bytes_max: Option<usize>,
    syncs: u64,
    /// Syncs that wait to be let go.
    waiting: u64,
    is_holding: bool,
    /// Syncs that may pass though they are held.
    passes: u64,
}

/// See the module's description.
#[derive(Debug, Default)]
pub(crate) struct MemoryDisk {
    state: Mutex<State>,
    let_go: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no test panics under a lock")
}

impl MemoryDisk {
    /// No file, no failure.
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Writes, syncs and truncations with these numbers, counted from 0 on, fail.
    pub(crate) fn fail(&self, operations: Range<u64>) {
        lock(&self.state).failing = operations;
    }

    /// All of them fail from now on, or none does.
    pub(crate) fn fail_all(&self, is_on: bool) {
        self.fail(if is_on { 0..u64::MAX } else { 0..0 });
    }

    /// One write takes no more than this.
    pub(crate) fn limit_writes(&self, bytes_max: usize) {
        lock(&self.state).write_bytes_max = Some(bytes_max);
    }

    /// Writes, syncs and truncations so far.
    pub(crate) fn operations(&self) -> u64 {
        lock(&self.state).operations
    }

    /// Syncs so far that have begun.
    pub(crate) fn syncs(&self) -> u64 {
        lock(&self.state).syncs
    }

    /// From now on syncs wait, or no longer do.
    pub(crate) fn hold_syncs(&self, is_on: bool) {
        lock(&self.state).is_holding = is_on;
        self.let_go.notify_all();
    }

    /// Lets one sync that waits go.
    pub(crate) fn pass_sync(&self) {
        lock(&self.state).passes += 1;
        self.let_go.notify_all();
    }

    /// Syncs that wait.
    pub(crate) fn waiting_syncs(&self) -> u64 {
        lock(&self.state).waiting
    }

    /// What a file holds.
    pub(crate) fn content(&self, path: &str) -> Content {
        let cell = lock(&self.state).files.get(Path::new(path)).cloned();
        cell.map(|cell| lock(&cell).clone()).unwrap_or_default()
    }

    fn cell(&self, path: &Path) -> io::Result<Cell> {
        lock(&self.state).files.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn operation(&self) -> io::Result<()> {
        let mut state = lock(&self.state);
        let number = state.operations;
        state.operations += 1;
        if state.failing.contains(&number) {
            return Err(io::Error::other(format!("operation {number} was made to fail")));
        }
        Ok(())
    }
}

#[derive(Debug)]
struct MemoryFile {
    disk: Arc<MemoryDisk>,
    cell: Cell,
    at: usize,
}

impl DiskFile for MemoryFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let content = lock(&self.cell);
        let rest = content.bytes.get(self.at..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.disk.operation()?;
        let bytes_max = lock(&self.disk.state).write_bytes_max.unwrap_or(usize::MAX);
        let bytes = &bytes[..bytes.len().min(bytes_max)];
        lock(&self.cell).bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.disk.operation()?;
        let bytes = lock(&self.cell).bytes.clone();
        let mut state = lock(&self.disk.state);
        state.syncs += 1;
        state.waiting += 1;
        while state.is_holding && state.passes == 0 {
            state = self.disk.let_go.wait(state).expect("no test panics under a lock");
        }
        state.waiting -= 1;
        if state.is_holding {
            state.passes -= 1;
        }
        drop(state);
        lock(&self.cell).synced = bytes;
        Ok(())
    }

    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        self.disk.operation()?;
        let mut content = lock(&self.cell);
        content.bytes.truncate(bytes as usize);
        content.synced.truncate(bytes as usize);
        Ok(())
    }

    fn size(&self) -> io::Result<u64> {
        Ok(lock(&self.cell).bytes.len() as u64)
    }

    fn seek(&mut self, offset: u64) -> io::Result<()> {
        self.at = offset as usize;
        Ok(())
    }

    fn duplicate(&self) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(Self { disk: Arc::clone(&self.disk), cell: Arc::clone(&self.cell), at: 0 }))
    }
}

#[derive(Debug)]
struct MemoryLock;

impl DiskLock for MemoryLock {}

/// Files need the disk itself, so it is the shared pointer that is a file system.
#[derive(Debug, Clone)]
pub(crate) struct SharedDisk(pub(crate) Arc<MemoryDisk>);

impl SharedDisk {
    fn file(&self, cell: Cell) -> Box<dyn DiskFile> {
        Box::new(MemoryFile { disk: Arc::clone(&self.0), cell, at: 0 })
    }
}

impl Disk for SharedDisk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.file(self.0.cell(path)?))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.open(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let cell = Cell::default();
        lock(&self.0.state).files.insert(path.to_owned(), Arc::clone(&cell));
        Ok(self.file(cell))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = lock(&self.0.state);
        let cell = state.files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.files.insert(to.to_owned(), cell);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        lock(&self.0.state).files.remove(path);
        Ok(())
    }

    fn make_dir(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    fn sync_dir(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DiskEntry>> {
        let state = lock(&self.0.state);
        let inside = state.files.iter().filter(|(file, _)| file.parent() == Some(path));
        Ok(inside
            .filter_map(|(file, cell)| {
                let name = file.file_name()?.to_str()?.to_owned();
                Some(DiskEntry { name, bytes: lock(cell).bytes.len() as u64 })
            })
            .collect())
    }

    fn lock(&self, _directory: &Path, _name: &str) -> io::Result<Option<Box<dyn DiskLock>>> {
        Ok(Some(Box::new(MemoryLock)))
    }
}

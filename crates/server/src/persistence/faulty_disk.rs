//! A disk in memory of which any operation fails on request, those on directories included, for tests of what becomes of the
//! files. (What syncs mean is for [`super::memory_disk`].)

use super::disk::{Disk, DiskEntry, DiskFile, DiskLock};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

/// Which operations fail, counted from 1 over all that could.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Fault {
    /// None.
    #[default]
    None,
    /// This one alone.
    At(u64),
    /// This one and all after it.
    From(u64),
    /// All syncs of files.
    Syncs,
}

#[derive(Debug, Default)]
struct Inner {
    files: BTreeMap<PathBuf, Vec<u8>>,
    directories: BTreeSet<PathBuf>,
    locked: BTreeSet<PathBuf>,
    fault: Fault,
    operations: u64,
}

/// See the module's description. Clones are the same disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct FaultyDisk(Arc<Mutex<Inner>>);

impl FaultyDisk {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().expect("no test panics while it holds this")
    }

    /// From now on these operations fail, and counting starts anew.
    pub(crate) fn set_fault(&self, fault: Fault) {
        let mut inner = self.inner();
        (inner.fault, inner.operations) = (fault, 0);
    }

    /// Operations since the last [`FaultyDisk::set_fault`].
    pub(crate) fn operations(&self) -> u64 {
        self.inner().operations
    }

    /// A file's content.
    pub(crate) fn content(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        self.inner().files.get(path.as_ref()).cloned()
    }

    /// A disk with the same files, as the next process finds them: no fault, and nobody has a lock.
    pub(crate) fn copy(&self) -> Self {
        let inner = self.inner();
        let (files, directories) = (inner.files.clone(), inner.directories.clone());
        Self(Arc::new(Mutex::new(Inner { files, directories, ..Inner::default() })))
    }

    /// Puts a file there.
    pub(crate) fn put(&self, path: impl AsRef<Path>, bytes: &[u8]) {
        self.inner().files.insert(path.as_ref().into(), bytes.into());
    }

    /// All files but those that keep processes apart.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        let inner = self.inner();
        let is_shown = |path: &&PathBuf| path.extension().is_none_or(|extension| extension != "lock");
        inner.files.keys().filter(is_shown).cloned().collect()
    }

    /// Begins an operation, which may fail.
    fn begin(&self) -> io::Result<MutexGuard<'_, Inner>> {
        let mut inner = self.inner();
        inner.operations += 1;
        let is_failing = match inner.fault {
            Fault::None | Fault::Syncs => false,
            Fault::At(at) => inner.operations == at,
            Fault::From(from) => inner.operations >= from,
        };
        if is_failing { Err(io::Error::from_raw_os_error(EIO)) } else { Ok(inner) }
    }
}

const EIO: i32 = 5;
/// A write takes no more than this at once, so that there are many.
const WRITE_BYTES: usize = 100_000;

#[derive(Debug)]
struct MemoryFile {
    disk: FaultyDisk,
    path: PathBuf,
    at: usize,
}

fn not_found() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl DiskFile for MemoryFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let inner = self.disk.begin()?;
        let rest = inner.files.get(&self.path).ok_or_else(not_found)?.get(self.at..).unwrap_or_default();
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        self.at += read;
        Ok(read)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(WRITE_BYTES)];
        let written = self.disk.begin().map(drop);
        // Of a write that fails, a part may be there.
        let kept = if written.is_ok() { bytes.len() } else { bytes.len() / 2 };
        if let Some(content) = self.disk.inner().files.get_mut(&self.path) {
            content.extend_from_slice(&bytes[..kept]);
        }
        written.map(|()| bytes.len())
    }

    fn sync(&mut self) -> io::Result<()> {
        let inner = self.disk.begin()?;
        if inner.fault == Fault::Syncs { Err(io::Error::from_raw_os_error(EIO)) } else { Ok(()) }
    }

    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        let mut inner = self.disk.begin()?;
        inner.files.get_mut(&self.path).ok_or_else(not_found)?.truncate(bytes as usize);
        Ok(())
    }

    fn size(&self) -> io::Result<u64> {
        self.disk.inner().files.get(&self.path).map(|content| content.len() as u64).ok_or_else(not_found)
    }

    fn duplicate(&self) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.disk.file(&self.path))
    }

    fn seek(&mut self, offset: u64) -> io::Result<()> {
        self.at = offset as usize;
        Ok(())
    }
}

#[derive(Debug)]
struct MemoryLock {
    disk: FaultyDisk,
    path: PathBuf,
}

impl DiskLock for MemoryLock {}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        self.disk.inner().locked.remove(&self.path);
    }
}

impl FaultyDisk {
    fn file(&self, path: &Path) -> Box<dyn DiskFile> {
        Box::new(MemoryFile { disk: self.clone(), path: path.into(), at: 0 })
    }
}

impl Disk for FaultyDisk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        if !self.begin()?.files.contains_key(path) {
            return Err(not_found());
        }
        Ok(self.file(path))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.open(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.begin()?.files.insert(path.into(), Vec::new());
        Ok(self.file(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut inner = self.begin()?;
        if inner.directories.contains(from) {
            if inner.files.keys().any(|path| path.starts_with(to)) {
                return Err(io::ErrorKind::DirectoryNotEmpty.into());
            }
            inner.directories.remove(from);
            inner.directories.insert(to.into());
            let moved: Vec<_> = inner.files.keys().filter(|path| path.starts_with(from)).cloned().collect();
            for path in moved {
                let content = inner.files.remove(&path).expect("it was just seen");
                let name = path.strip_prefix(from).expect("it was just seen");
                inner.files.insert(to.join(name), content);
            }
            return Ok(());
        }
        let content = inner.files.remove(from).ok_or_else(not_found)?;
        inner.files.insert(to.into(), content);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.begin()?.files.remove(path);
        Ok(())
    }

    fn make_dir(&self, path: &Path) -> io::Result<()> {
        self.begin()?.directories.insert(path.into());
        Ok(())
    }

    fn sync_dir(&self, _path: &Path) -> io::Result<()> {
        self.begin().map(drop)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DiskEntry>> {
        let inner = self.begin()?;
        let entry = |(file, content): (&PathBuf, &Vec<u8>)| {
            let name = file.file_name()?.to_str()?.to_owned();
            (file.parent() == Some(path)).then_some(DiskEntry { name, bytes: content.len() as u64 })
        };
        Ok(inner.files.iter().filter_map(entry).collect())
    }

    fn lock(&self, directory: &Path, name: &str) -> io::Result<Option<Box<dyn DiskLock>>> {
        let path = directory.join(name);
        let is_free = self.begin()?.locked.insert(path.clone());
        Ok(is_free.then(|| Box::new(MemoryLock { disk: self.clone(), path }) as Box<dyn DiskLock>))
    }
}

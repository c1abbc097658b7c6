//! The files of persistence, as the rest of the server uses them.
//!
//! Owns: what is asked of a file system, and the real one. Does **not** own which files there are, nor what is in them.
//!
//! Everything that touches a file goes through [`Disk`], so that tests can make each operation fail. All calls may block; no
//! data worker makes one.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// A file that is open.
pub trait DiskFile: Send + fmt::Debug {
    /// Reads from where the last read ended; 0 at the end of the file.
    ///
    /// # Errors
    /// The environment's fault.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Appends some of the bytes and says how many, at least one.
    ///
    /// # Errors
    /// The environment's fault; nothing was appended, or the caller must assume that anything was.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Returns when everything that was written is on the device. After a failure, nothing is known of what was written since
    /// the last success, whatever later calls return: the system may have dropped it.
    ///
    /// # Errors
    /// The environment's fault.
    fn sync(&mut self) -> io::Result<()>;

    /// Cuts the file; later writes go on from there.
    ///
    /// # Errors
    /// The environment's fault.
    fn truncate(&mut self, bytes: u64) -> io::Result<()>;

    /// The file's size.
    ///
    /// # Errors
    /// The environment's fault.
    fn size(&self) -> io::Result<u64>;

    /// Reads from here on.
    ///
    /// # Errors
    /// The environment's fault.
    fn seek(&mut self, offset: u64) -> io::Result<()>;

    /// Another handle of the same open file, to sync it with from another thread while this one goes on writing. A failure of
    /// the device is told to one of them only.
    ///
    /// # Errors
    /// The environment's fault, or `Unsupported`, which is what the default returns: then whoever writes has to sync as well.
    fn duplicate(&self) -> io::Result<Box<dyn DiskFile>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Keeps a directory to this process until it is dropped.
pub trait DiskLock: Send + Sync + fmt::Debug {}

/// A file in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskEntry {
    /// Its name; names that are not UTF-8 are not ours and are not listed.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u64,
}

/// A file system.
pub trait Disk: Send + Sync + fmt::Debug {
    /// Opens a file to be read.
    ///
    /// # Errors
    /// The environment's fault; `NotFound` if it is not there.
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Opens a file to be read and appended to, which must be there.
    ///
    /// # Errors
    /// The environment's fault; `NotFound` if it is not there.
    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Creates a file, or empties it if it is there.
    ///
    /// # Errors
    /// The environment's fault.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Renames a file over whatever has the other name.
    ///
    /// # Errors
    /// The environment's fault.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file; that it is not there is no failure.
    ///
    /// # Errors
    /// The environment's fault.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes a directory, unless it is there.
    ///
    /// # Errors
    /// The environment's fault.
    fn make_dir(&self, path: &Path) -> io::Result<()>;

    /// Returns when what was created, renamed and removed in the directory is so on the device.
    ///
    /// # Errors
    /// The environment's fault.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// The regular files of a directory, in any order; none if there is no such directory.
    ///
    /// # Errors
    /// The environment's fault.
    fn list(&self, path: &Path) -> io::Result<Vec<DiskEntry>>;

    /// Locks a directory against other processes by a file in it with this name. `None` if another one has it.
    ///
    /// # Errors
    /// The environment's fault.
    fn lock(&self, directory: &Path, name: &str) -> io::Result<Option<Box<dyn DiskLock>>>;
}

/// The file system of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

#[derive(Debug)]
struct RealFile(File);

impl DiskFile for RealFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        uninterrupted(|| self.0.read(buffer))
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match uninterrupted(|| self.0.write(bytes))? {
            0 if !bytes.is_empty() => Err(io::ErrorKind::WriteZero.into()),
            written => Ok(written),
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        // The size is synced as well, as it is needed to read the data back; times are not.
        self.0.sync_data()
    }

    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        // Files are opened for appending, so there is no position to be moved.
        self.0.set_len(bytes)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn seek(&mut self, offset: u64) -> io::Result<()> {
        self.0.seek(SeekFrom::Start(offset)).map(drop)
    }

    fn duplicate(&self) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(Self(self.0.try_clone()?)))
    }
}

fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// The lock goes with the open file, and so with the process, however that ends.
#[derive(Debug)]
struct RealLock(#[expect(dead_code, reason = "it is held, not used")] File);

impl DiskLock for RealLock {}

impl Disk for RealDisk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(RealFile(File::open(path)?)))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(RealFile(OpenOptions::new().read(true).append(true).open(path)?)))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        file.set_len(0)?;
        Ok(Box::new(RealFile(file)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }

    fn make_dir(&self, path: &Path) -> io::Result<()> {
        match std::fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            result => result,
        }
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DiskEntry>> {
        let entries = match std::fs::read_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let metadata = entry.metadata()?;
            if metadata.is_file() {
                found.push(DiskEntry { name, bytes: metadata.len() });
            }
        }
        Ok(found)
    }

    fn lock(&self, directory: &Path, name: &str) -> io::Result<Option<Box<dyn DiskLock>>> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(directory.join(name))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Box::new(RealLock(file)))),
            Err(std::fs::TryLockError::WouldBlock) => Ok(None),
            Err(std::fs::TryLockError::Error(error)) => Err(error),
        }
    }
}

/// Writes all of the bytes.
///
/// # Errors
/// As [`DiskFile::write`]; what part of them was written is not known.
pub(crate) fn write_all(file: &mut dyn DiskFile, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = file.write(bytes)?;
        bytes = &bytes[written.min(bytes.len())..];
    }
    Ok(())
}

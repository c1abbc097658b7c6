//! The directories that files are kept in.
//!
//! Owns: where the files of the configuration are, the lock on `dir`, and carrying out what `towline_persist::directory`
//! plans. Does **not** own the plans, nor what is in the files.

use super::disk::{Disk, DiskFile, DiskLock, write_all};
use super::loading::LoadError;
use crate::config::Config;
use std::io;
use std::path::{Path, PathBuf};
use towline_persist::directory::{Action, Names};

/// Keeps servers of one `dir` apart. It stays when the server ends; only the lock on it counts.
pub(crate) const LOCK_NAME: &str = "towline.lock";

/// Where a configuration's files are.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    /// `dir`.
    pub(crate) dir: PathBuf,
    /// The snapshot.
    pub(crate) snapshot: PathBuf,
    /// The log's directory.
    pub(crate) log: PathBuf,
    /// The names of the log's files.
    pub(crate) names: Names,
}

impl Places {
    /// The places of this configuration.
    pub(crate) fn of(config: &Config) -> Self {
        let dir = PathBuf::from(&config.dir);
        Self {
            snapshot: dir.join(&config.dbfilename),
            log: dir.join(&config.persistence.appenddirname),
            names: Names::new(config.persistence.appendfilename.clone()),
            dir,
        }
    }

    /// The log of a Redis before 7, beside the log's directory.
    pub(crate) fn single_log(&self) -> PathBuf {
        self.dir.join(self.names.single_log())
    }

    /// Carries out an action on the log's directory, which is made if it is not there.
    ///
    /// # Errors
    /// The environment's fault; what was done of the action is not known. `InvalidInput` for [`Action::SwitchAppends`] and
    /// [`Action::WriteBase`], which take more than files: the caller's.
    pub(crate) fn carry_out(&self, disk: &dyn Disk, action: &Action) -> io::Result<()> {
        let path = |name: &str| self.log.join(name);
        match action {
            Action::Create { name } => {
                self.make_log_directory(disk)?;
                disk.create(&path(name))?.sync()
            }
            Action::Write { name, bytes } => {
                self.make_log_directory(disk)?;
                let mut file = disk.create(&path(name))?;
                write_all(&mut *file, bytes)?;
                file.sync()
            }
            Action::Rename { from, to } => disk.rename(&path(from), &path(to)),
            Action::AdoptSingleLog { to } => {
                disk.rename(&self.single_log(), &path(to))?;
                disk.sync_dir(&self.log)?;
                disk.sync_dir(&self.dir)
            }
            Action::Remove { name } => disk.remove(&path(name)),
            Action::SyncDirectory => disk.sync_dir(&self.log),
            Action::SwitchAppends { .. } | Action::WriteBase { .. } => {
                Err(io::Error::new(io::ErrorKind::InvalidInput, "this action is not one of files alone"))
            }
        }
    }

    fn make_log_directory(&self, disk: &dyn Disk) -> io::Result<()> {
        disk.make_dir(&self.log)?;
        disk.sync_dir(&self.dir)
    }
}

/// Locks a directory against other servers.
///
/// # Errors
/// [`LoadError::Locked`] if another one has it, [`LoadError::Io`] if it cannot be locked.
pub(crate) fn lock(disk: &dyn Disk, dir: &Path) -> Result<Box<dyn DiskLock>, LoadError> {
    let path = dir.join(LOCK_NAME);
    match disk.lock(dir, LOCK_NAME) {
        Ok(Some(lock)) => {
            // For the message that the next one gets; without it the lock is as good.
            let _ = disk
                .create(&path)
                .and_then(|mut file| write_all(&mut *file, format!("{}\n", std::process::id()).as_bytes()));
            Ok(lock)
        }
        Ok(None) => {
            let pid = read_all(disk, &path, PID_BYTES_MAX).ok();
            let pid = pid.and_then(|text| String::from_utf8(text).ok()?.trim().parse().ok());
            Err(LoadError::Locked { lock: path, pid })
        }
        Err(source) => Err(LoadError::io("lock", path, source)),
    }
}

/// Longer files do not hold the number of a process alone.
const PID_BYTES_MAX: u64 = 32;

/// The whole of a small file.
///
/// # Errors
/// The environment's fault; `FileTooLarge` if it has more than `bytes_max` bytes.
pub(crate) fn read_all(disk: &dyn Disk, path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    const CHUNK_BYTES: usize = 16 * 1024;
    let mut file: Box<dyn DiskFile> = disk.open(path)?;
    let (mut all, mut chunk) = (Vec::new(), vec![0; CHUNK_BYTES]);
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(all),
            count => all.extend_from_slice(&chunk[..count]),
        }
        if all.len() as u64 > bytes_max {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
    }
}

//! Files are loaded, or refused with the reason; never in part.

mod damage;
mod files;
mod logs;
mod reloads;
mod snapshots;

use super::*;
use crate::persistence::disk::RealDisk;
use crate::replay_tests::contents;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// A directory of files to be loaded.
pub(super) struct Files {
    dir: TempDir,
    pub(super) config: Config,
}

/// What a store holds: database and key, then expiry and value as text.
pub(super) type Contents = BTreeMap<(u8, Vec<u8>), String>;

/// A store that was loaded.
pub(super) struct Outcome {
    pub(super) shared: Arc<Shared>,
    pub(super) loaded: Loaded,
}

impl Outcome {
    /// What it holds, whether or not its time has come.
    pub(super) fn contents(&self) -> Contents {
        contents(&self.shared.store, 0)
    }

    /// The value at a key of database 0, as text.
    pub(super) fn get(&self, key: &str) -> Option<String> {
        self.contents().remove(&(0, key.as_bytes().to_vec()))
    }
}

impl Files {
    /// An empty directory, of a server without save points, and with or without a log.
    pub(super) fn new(appendonly: bool) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let mut config =
            Config { workers: 2, dir: dir.path().to_str().expect("UTF-8").into(), ..Config::default() };
        config.persistence.appendonly = appendonly;
        Self { dir, config }
    }

    /// A directory with this snapshot.
    pub(super) fn with_snapshot(bytes: &[u8]) -> Self {
        let files = Self::new(false);
        files.write("dump.rdb", bytes);
        files
    }

    /// A directory with a log of one increment.
    pub(super) fn with_log(increment: &[u8]) -> Self {
        let files = Self::new(true);
        files.manifest("file appendonly.aof.1.incr.aof seq 1 type i\n");
        files.write("appendonlydir/appendonly.aof.1.incr.aof", increment);
        files
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(super) fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a file has a directory")).expect("it can be made");
        std::fs::write(path, bytes).expect("it can be written");
    }

    pub(super) fn manifest(&self, text: &str) {
        self.write("appendonlydir/appendonly.aof.manifest", text.as_bytes());
    }

    pub(super) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).expect("it can be read")
    }

    /// All files with their sizes, by path.
    pub(super) fn list(&self) -> Vec<(String, u64)> {
        let mut all = Vec::new();
        for dir in ["", "appendonlydir/"] {
            let entries = RealDisk.list(&self.path(dir)).expect("it can be listed");
            all.extend(entries.into_iter().map(|entry| (format!("{dir}{}", entry.name), entry.bytes)));
        }
        all.sort();
        all
    }

    /// Loads what is there, as a start does.
    pub(super) fn load(&self) -> Result<Outcome, LoadError> {
        let prepared = prepare(&self.config, &RealDisk)?;
        let shared = Arc::new(Shared::new(self.config.clone(), Arc::new(RealDisk), "0".repeat(40), 1));
        let loaded = load(&shared, &prepared)?;
        Ok(Outcome { shared, loaded })
    }

    /// The error of a load, as text.
    pub(super) fn refusal(&self) -> String {
        match self.load() {
            Ok(outcome) => panic!("it loads: {:?}", outcome.loaded),
            Err(error) => error.to_string(),
        }
    }
}

/// Commands as a log has them, one in each line.
pub(super) fn log(lines: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in lines.lines() {
        if line.starts_with('#') {
            bytes.extend_from_slice(format!("{line}\r\n").as_bytes());
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        bytes.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
        for word in words {
            bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
        }
    }
    bytes
}

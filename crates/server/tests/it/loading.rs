//! A server whose data set is being loaded, as its clients and its owner see it.

use crate::running::config;
use e2e::conn::Conn;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use towline_server::{Config, Disk, DiskEntry, DiskFile, DiskLock, LoadError, RealDisk, Server, StartError};

/// A file system where reading a snapshot waits until it is let go on.
#[derive(Debug, Clone, Default)]
struct SlowDisk(Arc<(Mutex<bool>, Condvar)>);

impl SlowDisk {
    fn let_go(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }
}

#[derive(Debug)]
struct SlowFile(Box<dyn DiskFile>, SlowDisk);

impl DiskFile for SlowFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (lock, changed) = &*self.1.0;
        let mut may_go = lock.lock().unwrap();
        while !*may_go {
            may_go = changed.wait(may_go).unwrap();
        }
        self.0.read(buffer)
    }
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }
    fn sync(&mut self) -> io::Result<()> {
        self.0.sync()
    }
    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        self.0.truncate(bytes)
    }
    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }
    fn seek(&mut self, offset: u64) -> io::Result<()> {
        self.0.seek(offset)
    }
}

impl Disk for SlowDisk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(SlowFile(RealDisk.open(path)?, self.clone())))
    }
    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        RealDisk.append(path)
    }
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        RealDisk.create(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove(path)
    }
    fn make_dir(&self, path: &Path) -> io::Result<()> {
        RealDisk.make_dir(path)
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        RealDisk.sync_dir(path)
    }
    fn list(&self, path: &Path) -> io::Result<Vec<DiskEntry>> {
        RealDisk.list(path)
    }
    fn lock(&self, directory: &Path, name: &str) -> io::Result<Option<Box<dyn DiskLock>>> {
        RealDisk.lock(directory, name)
    }
}

const SNAPSHOT: &[u8] = include_bytes!("../../../persist/tests/fixtures/redis-7.0.rdb");

/// A directory with this snapshot, and the configuration of a server of it.
fn files(snapshot: &[u8]) -> (tempfile::TempDir, Config) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("dump.rdb"), snapshot).unwrap();
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let config = config(&["--port", "{port}", "--save", "", "--dir", dir.path().to_str().unwrap()], port);
    (dir, config)
}

fn start(config: &Config, disk: &SlowDisk) -> (Server, Conn) {
    let server = Server::start_on(config.clone(), Arc::new(disk.clone())).unwrap();
    let conn = Conn::open(server.addresses()[0]).unwrap();
    (server, conn)
}

fn error(conn: &mut Conn, command: &str) -> String {
    conn.words(command).unwrap().error().unwrap_or_default()
}

#[test]
fn clients_are_told_that_the_data_is_being_loaded_until_it_is() {
    let (_dir, config) = files(SNAPSHOT);
    let disk = SlowDisk::default();
    let (server, mut conn) = start(&config, &disk);
    for command in ["GET string", "PING", "DBSIZE", "DEBUG POPULATE 1", "SET k v"] {
        let text = error(&mut conn, command);
        assert_eq!(text, "LOADING Redis is loading the dataset in memory", "{command}");
    }
    let info = String::from_utf8(conn.words("INFO persistence").unwrap().bytes().unwrap().to_vec()).unwrap();
    for line in ["loading:1", "async_loading:0", "loading_total_bytes:504", "loading_loaded_perc:0.00"] {
        assert!(info.lines().any(|found| found == line), "{line} is not in\n{info}");
    }
    disk.let_go();
    server.wait_until_loaded().unwrap();
    assert_eq!(conn.words("GET string").unwrap().bytes(), Some(&b"hello"[..]));
    let info = String::from_utf8(conn.words("INFO persistence").unwrap().bytes().unwrap().to_vec()).unwrap();
    assert!(info.contains("loading:0\r\n") && info.contains("rdb_last_load_keys_loaded:15\r\n"), "{info}");
    assert!(!info.contains("loading_total_bytes"), "{info}");
    server.stopper().stop();
    server.join().unwrap();
}

#[test]
fn a_server_that_is_stopped_while_it_loads_ends_without_an_error() {
    let (_dir, config) = files(SNAPSHOT);
    let disk = SlowDisk::default();
    let (server, _conn) = start(&config, &disk);
    server.stopper().stop();
    disk.let_go();
    assert!(matches!(server.wait_until_loaded(), Ok(()) | Err(LoadError::Stopped)));
    server.join().unwrap();
}

#[test]
fn a_load_that_fails_ends_the_server_with_the_reason() {
    let mut damaged = SNAPSHOT.to_vec();
    damaged[200] ^= 1;
    let (dir, config) = files(&damaged);
    let disk = SlowDisk::default();
    let (server, mut conn) = start(&config, &disk);
    assert!(error(&mut conn, "GET string").starts_with("LOADING"));
    disk.let_go();
    let loaded = server.wait_until_loaded();
    assert!(matches!(loaded, Err(LoadError::Snapshot { .. })), "{loaded:?}");
    let ended = server.join().unwrap_err().to_string();
    assert!(ended.contains("dump.rdb' cannot be loaded") && ended.contains("at byte"), "{ended}");
    assert_eq!(std::fs::read(dir.path().join("dump.rdb")).unwrap(), damaged);
}

#[test]
fn a_second_server_on_the_directory_does_not_start() {
    let (_dir, mut config) = files(SNAPSHOT);
    config.persistence.appendonly = true;
    config.port = 0;
    let socket = |name: &str| Some(format!("{}/{name}", config.dir));
    let with = |name| {
        let mut config = config.clone();
        config.unixsocket = socket(name);
        config
    };
    let first = Server::start(with("a")).unwrap();
    let refused = Server::start(with("b"));
    assert!(matches!(refused, Err(StartError::Load(LoadError::Locked { .. }))), "{refused:?}");
    first.wait_until_loaded().unwrap();
    first.stopper().stop();
    first.join().unwrap();
    let second = Server::start(with("b")).unwrap();
    second.stopper().stop();
    second.join().unwrap();
}

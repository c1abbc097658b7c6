//! `towline server` and its directory: whose it is, what may be done in it, and who else is there.

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const READY: &str = " ready: ";
const PATIENCE: Duration = Duration::from_secs(30);
/// A user that owns nothing, where tests run as root, for whom rights mean nothing.
const NOBODY: u32 = 65_534;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A directory that the server's user owns.
fn directory() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    if is_root() {
        chown(dir.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    dir
}

fn server(dir: &Path, port: u16, flags: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_towline"));
    command.arg("server").args(["--port", &port.to_string(), "--workers", "1", "--dir"]).arg(dir).args(flags);
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// What a server says that ends by itself, with exit code 1.
fn refused(dir: &Path, flags: &[&str]) -> String {
    let mut child = server(dir, free_port(), flags);
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{said}");
    said.lines().last().unwrap().to_owned()
}

/// A server that runs, killed when dropped.
struct Running {
    child: Child,
    port: u16,
    first: String,
}

impl Running {
    /// Starts a server and waits until it says that it is ready; `first` is the line of its log before that which has this
    /// word.
    fn start(dir: &Path, flags: &[&str], word: &str) -> Self {
        let port = free_port();
        let mut child = server(dir, port, flags);
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut find = |word: &str| {
            log.find(|line| line.as_ref().unwrap().contains(word)).expect("the line comes").unwrap()
        };
        let first = find(word);
        if !first.contains(READY) {
            find(READY);
        }
        // What comes after it must have a reader.
        std::thread::spawn(move || log.for_each(drop));
        Self { child, port, first }
    }

    fn ask(&self, line: &str) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "{line}\r\n").unwrap();
        let mut reply = String::new();
        BufReader::new(stream).read_line(&mut reply).unwrap();
        reply.trim_end().to_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_snapshot_of_another_owner_is_no_empty_data_set() {
    let dir = directory();
    let snapshot = dir.path().join("dump.rdb");
    std::fs::write(&snapshot, b"REDIS0010").unwrap();
    set_mode(&snapshot, 0o000);
    let said = refused(dir.path(), &["--save", ""]);
    for part in ["cannot open", "dump.rdb", "Permission denied", "check the owner and the rights"] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn a_log_of_another_owner_is_no_empty_log() {
    let dir = directory();
    let log = dir.path().join("appendonlydir");
    std::fs::create_dir(&log).unwrap();
    set_mode(&log, 0o000);
    let said = refused(dir.path(), &["--appendonly", "yes"]);
    set_mode(&log, 0o700);
    assert!(said.contains("cannot list") && said.contains("appendonlydir"), "{said}");
}

#[test]
fn a_directory_that_cannot_be_written_stops_a_log_and_warns_of_snapshots() {
    let dir = directory();
    set_mode(dir.path(), 0o555);
    let said = refused(dir.path(), &["--appendonly", "yes"]);
    assert!(
        said.contains("cannot lock") && said.contains("towline.lock") && said.contains("check the owner"),
        "{said}"
    );
    let running = Running::start(dir.path(), &["--save", "900 1"], "snapshots fail until it can");
    assert!(running.first.contains("towline.lock"), "{}", running.first);
    assert_eq!(running.ask("SET k v"), "+OK");
    drop(running);
    set_mode(dir.path(), 0o755);
}

#[test]
fn the_lock_goes_with_its_process_however_that_ends() {
    let dir = directory();
    let flags = ["--appendonly", "yes"];
    let mut first = Running::start(dir.path(), &flags, READY);
    let said = refused(dir.path(), &flags);
    for part in [format!("(process {})", first.child.id()), "towline.lock".into(), "--dir PATH".into()] {
        assert!(said.contains(&part), "{said}");
    }
    // Without files of its own, it may look at those of others.
    drop(Running::start(dir.path(), &["--save", ""], READY));
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    assert!(dir.path().join("towline.lock").exists());
    drop(Running::start(dir.path(), &flags, READY));
}

#[test]
fn a_data_set_that_cannot_be_loaded_ends_the_process_with_the_reason() {
    let dir = directory();
    std::fs::write(dir.path().join("dump.rdb"), b"REDIS0010\xfa\x01").unwrap();
    let said = refused(dir.path(), &["--save", ""]);
    assert!(said.starts_with("towline: ") && said.contains("the file is cut off, at byte 11"), "{said}");
    assert_eq!(std::fs::read(dir.path().join("dump.rdb")).unwrap(), b"REDIS0010\xfa\x01");
}

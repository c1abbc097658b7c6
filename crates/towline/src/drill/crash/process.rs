//! The server as a process: started on a directory, waited for, killed.
//!
//! Owns the process, its flags and its log file. Does not own what is asked of it.
//!
//! The process leads a group of its own, and the kill goes to the group: a server may have forked to save, and nothing of
//! it must write on when it is started again.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use towline_resp::frame::Frame;

use super::client::Wire;

/// How long a server may take to be ready.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// How long a server may take to stop when it is asked to.
const STOP_WITHIN: Duration = Duration::from_secs(30);

/// How often a server that starts is asked.
const ASK_EVERY: Duration = Duration::from_millis(2);

/// How often a start is tried again when the port was taken in between.
const START_TRIES: usize = 5;

/// Lines of the log that are shown when a server does not start.
const LOG_LINES: usize = 6;

/// The key that is there from the first run on, by which one sees whether a server answers before it has loaded its data.
pub(super) const SENTINEL: &str = "sentinel";

/// Its value.
pub(super) const SENTINEL_VALUE: &str = "here";

/// How a server is started.
#[derive(Debug, Clone)]
pub(super) struct Launch {
    /// The program and the arguments that stand before the flags.
    pub(super) program: Vec<String>,
    pub(super) flags: Vec<String>,
    /// Where it keeps its files.
    pub(super) data: PathBuf,
    pub(super) log: PathBuf,
    /// Set when the drill is to end.
    pub(super) is_interrupted: Arc<AtomicBool>,
}

/// A process that runs. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    port: u16,
    started: Instant,
    log: PathBuf,
    log_from: u64,
}

/// How a start went.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ready {
    /// From the start of the process to the first answer with data.
    pub(super) took: Duration,
    /// Whether it said that it was loading.
    pub(super) was_loading: bool,
    /// Whether it answered without the data.
    pub(super) was_early: bool,
}

impl Launch {
    /// Starts a process, without waiting for it.
    ///
    /// # Errors
    /// There is no such program, or no port.
    pub(super) fn spawn(&self) -> Result<Process> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let log = File::options().create(true).append(true).open(&self.log)?;
        let log_from = log.metadata()?.len();
        let (program, arguments) = self.program.split_first().context("--server is empty")?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--dir"])
            .arg(&self.data)
            .args(&self.flags)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let started = Instant::now();
        let child = command.spawn().with_context(|| format!("cannot start {program}"))?;
        Ok(Process { child, port, started, log: self.log.clone(), log_from })
    }

    /// Starts a process and waits until it serves.
    ///
    /// # Errors
    /// It ends, or is not ready in time; the message has the end of its log.
    pub(super) fn start(&self) -> Result<(Process, Ready)> {
        for _ in 1..START_TRIES {
            let mut process = self.spawn()?;
            match process.wait(&self.is_interrupted) {
                Ok(ready) => return Ok((process, ready)),
                Err(error) if process.lacks_port() => tracing::debug!("{error}; another port is tried"),
                Err(error) => return Err(error),
            }
        }
        let mut process = self.spawn()?;
        let ready = process.wait(&self.is_interrupted)?;
        Ok((process, ready))
    }
}

impl Process {
    /// Where the server listens.
    pub(super) fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }

    /// Waits until the server serves.
    fn wait(&mut self, is_interrupted: &AtomicBool) -> Result<Ready> {
        let mut was_loading = false;
        loop {
            if let Some(status) = self.child.try_wait()? {
                bail!("the server ended with {status}: {}", self.log_end());
            }
            if is_interrupted.load(Ordering::Relaxed) {
                bail!("interrupted");
            }
            // Errors are those of a server that does not listen yet.
            if let Ok(Some(has_data)) = self.ask(&mut was_loading) {
                return Ok(Ready { took: self.started.elapsed(), was_loading, was_early: !has_data });
            }
            if self.started.elapsed() > READY_WITHIN {
                bail!("the server is not ready after {} s: {}", READY_WITHIN.as_secs(), self.log_end());
            }
            std::thread::sleep(ASK_EVERY);
        }
    }

    /// Whether this very process answers, and then whether it has the sentinel.
    fn ask(&self, was_loading: &mut bool) -> io::Result<Option<bool>> {
        let mut wire = Wire::open(self.address())?;
        let is_loading =
            |frame: &Frame| frame.as_error().is_some_and(|text| text.as_ref().starts_with(b"LOADING"));
        if let Frame::Bulk(info) = wire.call(&["INFO", "server"])? {
            let own = format!("process_id:{}", self.child.id());
            let info = String::from_utf8_lossy(&info);
            if !info.lines().any(|line| line.trim_end() == own) {
                return Ok(None);
            }
        }
        loop {
            let answer = wire.call(&["GET", SENTINEL])?;
            if is_loading(&answer) {
                *was_loading = true;
                std::thread::sleep(ASK_EVERY);
                if self.started.elapsed() > READY_WITHIN {
                    return Ok(None);
                }
                continue;
            }
            return Ok(Some(answer == Frame::Bulk(SENTINEL_VALUE.into())));
        }
    }

    /// Kills the process and what it has forked, and waits until they are gone from the table of processes.
    ///
    /// # Errors
    /// It cannot be waited for; the environment's fault.
    pub(super) fn kill(mut self) -> Result<()> {
        self.end()
    }

    /// Asks the process to stop, and waits until it has.
    ///
    /// # Errors
    /// It does not stop, or not with success; the message has the end of its log.
    pub(super) fn stop(mut self) -> Result<()> {
        let pid = self.pid().context("the server has no process id")?;
        kill_process(pid, Signal::TERM).context("cannot ask the server to stop")?;
        let asked = Instant::now();
        loop {
            match self.child.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => bail!("after SIGTERM the server ended with {status}: {}", self.log_end()),
                None if asked.elapsed() > STOP_WITHIN => {
                    bail!(
                        "the server has not stopped {} s after SIGTERM: {}",
                        STOP_WITHIN.as_secs(),
                        self.log_end()
                    );
                }
                None => std::thread::sleep(ASK_EVERY),
            }
        }
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    fn end(&mut self) -> Result<()> {
        let group = self.pid();
        // Fails if all have ended by themselves.
        let _ = group.map(|group| kill_process_group(group, Signal::KILL));
        self.child.wait().context("cannot wait for the killed server")?;
        Ok(())
    }

    /// Whether the process has ended by itself; the end of its log if so.
    pub(super) fn has_ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        Some(format!("the server ended by itself with {status}: {}", self.log_end()))
    }

    fn lacks_port(&self) -> bool {
        self.log_end().to_lowercase().contains("in use")
    }

    /// The last lines that this process has logged, as one line.
    fn log_end(&self) -> String {
        let mut text = Vec::new();
        let read = File::open(&self.log).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.log_from))?;
            file.read_to_end(&mut text)
        });
        if let Err(error) = read {
            return format!("no log: {error}");
        }
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join(" | ")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // After `kill`, both fail.
        let _ = self.end();
    }
}

/// Bytes of all files below a directory. Files that vanish meanwhile count nothing.
pub(super) fn bytes_below(directory: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(directory) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(of) if of.is_dir() => bytes_below(&entry.path()),
            Ok(of) => of.len(),
            Err(_) => 0,
        })
        .sum()
}

/// Copies a directory and what is below; what stood at the destination is removed.
///
/// # Errors
/// A file cannot be read or written.
pub(super) fn copy_below(from: &Path, to: &Path) -> io::Result<()> {
    if to.exists() {
        std::fs::remove_dir_all(to)?;
    }
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_below(&entry.path(), &to)?;
        } else {
            std::fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

/// Cuts bytes off the end of the newest file of the log below `data`, if there is one.
///
/// # Errors
/// The directory cannot be read, or the file not be changed.
pub(super) fn tear(data: &Path, bytes: u64) -> io::Result<()> {
    let Some(newest) = newest_log(data)? else { return Ok(()) };
    let file = File::options().write(true).open(newest)?;
    file.set_len(file.metadata()?.len().saturating_sub(bytes))
}

/// The file with the highest number among those that are named `<name>.<number>.incr.aof`, as Redis 7 names them.
fn newest_log(directory: &Path) -> io::Result<Option<PathBuf>> {
    let mut newest: Option<(u64, PathBuf)> = None;
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            if let Some(found) = newest_log(&path)? {
                return Ok(Some(found));
            }
            continue;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let number = name.strip_suffix(".incr.aof").and_then(|name| name.rsplit('.').next()?.parse().ok());
        newest = newest.into_iter().chain(number.map(|number| (number, path))).max();
    }
    Ok(newest.map(|(_, path)| path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_file_of_the_log_is_cut() {
        let directory = tempfile::tempdir().unwrap();
        let logs = directory.path().join("appendonlydir");
        std::fs::create_dir(&logs).unwrap();
        assert_eq!(newest_log(directory.path()).unwrap(), None);
        for (name, text) in
            [("a.aof.9.incr.aof", "nine"), ("a.aof.10.incr.aof", "ten"), ("a.aof.11.base.rdb", "x")]
        {
            std::fs::write(logs.join(name), text).unwrap();
        }
        tear(directory.path(), 1).unwrap();
        tear(directory.path(), 0).unwrap();
        assert_eq!(std::fs::read(logs.join("a.aof.10.incr.aof")).unwrap(), b"te");
        tear(directory.path(), 99).unwrap();
        assert_eq!(bytes_below(directory.path()), 5);
        let copy = directory.path().join("copy");
        copy_below(&logs, &copy).unwrap();
        copy_below(&logs, &copy).unwrap();
        assert_eq!(std::fs::read(copy.join("a.aof.9.incr.aof")).unwrap(), b"nine");
    }
}

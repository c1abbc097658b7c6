//! Starts one server in a process of its own and stops it again.
//!
//! Owns: the child process, its port, its directory and its log. Which binary is Towline's is decided here too. It
//! does not speak RESP beyond the first `PING`; see [`crate::conn`].

use crate::conn::Conn;
use crate::peers::{Peer, checkout};
use crate::wait;
use anyhow::{Context, bail};
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

/// How often a start is tried again on another port when the first was taken in between.
const START_TRIES: usize = 3;

/// A server that can be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerKind {
    /// This project's own.
    Towline,
    /// Redis 7.0
    Redis70,
    /// Redis 8.2
    Redis82,
    /// Valkey 9.1
    Valkey91,
}

impl ServerKind {
    /// Every kind, Towline first.
    pub const ALL: [Self; 4] = [Self::Towline, Self::Redis70, Self::Redis82, Self::Valkey91];

    /// The name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Towline => "towline",
            Self::Redis70 => "redis70",
            Self::Redis82 => "redis82",
            Self::Valkey91 => "valkey91",
        }
    }

    /// The kind with that name.
    ///
    /// # Errors
    /// There is none; the message lists them.
    pub fn from_name(name: &str) -> anyhow::Result<Self> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.with_context(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("there is no server {name}; the servers are {names}")
        })
    }

    /// The server that the tests examine: Towline, or what `E2E_SERVER` names, so that the tests themselves can be
    /// checked against the real thing.
    ///
    /// # Errors
    /// `E2E_SERVER` names no server.
    pub fn under_test() -> anyhow::Result<Self> {
        std::env::var("E2E_SERVER").map_or(Ok(Self::Towline), |name| Self::from_name(&name))
    }

    /// The program and the arguments that stand before the flags.
    ///
    /// # Errors
    /// The program cannot be had; see [`Peer::path`].
    pub fn command(self) -> anyhow::Result<Command> {
        Ok(match self {
            Self::Towline => {
                let mut command = Command::new(towline_binary()?);
                command.arg("server");
                command
            }
            Self::Redis70 => Command::new(Peer::Redis70.path()?),
            Self::Redis82 => Command::new(Peer::Redis82.path()?),
            Self::Valkey91 => Command::new(Peer::Valkey91.path()?),
        })
    }
}

/// A running server. Dropping it kills the process.
#[derive(Debug)]
pub struct Server {
    kind: ServerKind,
    child: Child,
    port: u16,
    directory: TempDir,
}

impl Server {
    /// Starts the server under test with extra flags in the manner of `redis.conf`, for example
    /// `&["--requirepass", "secret"]`, and waits until it answers.
    ///
    /// # Errors
    /// The server cannot be started or ends at once; the message has its log.
    pub fn under_test(flags: &[&str]) -> anyhow::Result<Self> {
        Self::start(ServerKind::under_test()?, flags)
    }

    /// Starts a server of `kind`; otherwise as [`Server::under_test`].
    ///
    /// # Errors
    /// As for [`Server::under_test`].
    pub fn start(kind: ServerKind, flags: &[&str]) -> anyhow::Result<Self> {
        let mut last = None;
        for _ in 0..START_TRIES {
            match Self::start_once(kind, flags) {
                Ok(server) => return Ok(server),
                Err(error) => last = Some(error),
            }
        }
        Err(last.expect("invariant: START_TRIES is positive"))
    }

    fn start_once(kind: ServerKind, flags: &[&str]) -> anyhow::Result<Self> {
        Self::start_on(kind, free_port()?, flags)
    }

    /// As [`Server::start`], on a port on which another server was before.
    ///
    /// # Errors
    /// As for [`Server::start`]; the port is taken.
    pub fn start_on(kind: ServerKind, port: u16, flags: &[&str]) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new().prefix("towline-e2e-").tempdir()?;
        let child = spawn(kind, directory.path(), port, flags)?;
        let mut server = Self { kind, child, port, directory };
        server.wait_until_ready(flags)?;
        Ok(server)
    }

    /// Stops the server in order (`SIGTERM`), and starts another one in the same directory on a new port.
    ///
    /// # Errors
    /// It does not end, or the new one cannot be started; the message has its log.
    pub fn restart_elsewhere(&mut self, flags: &[&str]) -> anyhow::Result<()> {
        self.signal(rustix::process::Signal::TERM)?;
        self.start_elsewhere(flags)
    }

    /// As [`Server::restart_elsewhere`], of a server that was told to end, or killed.
    ///
    /// # Errors
    /// It does not end, or the new one cannot be started; the message has its log.
    pub fn start_elsewhere(&mut self, flags: &[&str]) -> anyhow::Result<()> {
        self.wait_for_exit()?;
        let mut outcome = Ok(());
        for _ in 0..START_TRIES {
            self.port = free_port()?;
            self.child = spawn(self.kind, self.directory.path(), self.port, flags)?;
            outcome = self.wait_until_ready(flags);
            if outcome.is_ok() {
                break;
            }
            // Fails only if it has ended already, which it may have.
            let _ = self.child.kill();
            self.child.wait()?;
        }
        outcome
    }

    fn wait_until_ready(&mut self, flags: &[&str]) -> anyhow::Result<()> {
        let is_ready = wait::until_some(wait::PATIENCE, || match self.child.try_wait() {
            Ok(None) => self.answers().then_some(true),
            _ => Some(false),
        });
        if is_ready != Some(true) {
            bail!("{} did not become ready (flags {flags:?}); its log:\n{}", self.kind.name(), self.log());
        }
        Ok(())
    }

    /// Whether this very process serves on the port: it has its data, or it wants a password before it says so.
    fn answers(&self) -> bool {
        let Ok(mut conn) = Conn::open(self.address()) else { return false };
        // All sections: Redis 7.0 takes one name only.
        let Ok(reply) = conn.words("INFO") else { return false };
        let text = match &reply {
            crate::value::Value::Bulk(text) => String::from_utf8_lossy(text).into_owned(),
            _ => String::new(),
        };
        let says = |line: &str| text.lines().any(|other| other.trim_end() == line);
        let own = format!("process_id:{}", self.child.id());
        (says(&own) && !says("loading:1")) || !text.contains("process_id:")
    }

    /// The next thread of the server that comes to this place waits there: see `failpoint` in the server, of which only builds for tests have
    /// places.
    ///
    /// # Errors
    /// Its directory is gone.
    pub fn hold_at(&self, place: &str) -> anyhow::Result<()> {
        Ok(std::fs::write(self.failpoint(place), "")?)
    }

    /// Whether a thread waits at this place.
    pub fn is_held_at(&self, place: &str) -> bool {
        self.failpoint(&format!("{place}.reached")).exists()
    }

    /// Whoever waits at this place goes on, and nobody will wait there.
    pub fn release(&self, place: &str) {
        for name in [place.to_owned(), format!("{place}.reached")] {
            // There is one of them, or none.
            let _ = std::fs::remove_file(self.failpoint(&name));
        }
    }

    fn failpoint(&self, name: &str) -> PathBuf {
        self.directory().join(FAILPOINTS).join(name)
    }

    /// Which server this is.
    pub fn kind(&self) -> ServerKind {
        self.kind
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The port on the loopback address.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where the server listens.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }

    /// The server's working directory, removed with it.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A new connection that speaks RESP2.
    ///
    /// # Errors
    /// The server does not accept it.
    pub fn connect(&self) -> anyhow::Result<Conn> {
        Conn::open(self.address())
    }

    /// A new connection that speaks RESP3.
    ///
    /// # Errors
    /// The server does not accept it.
    pub fn connect_resp3(&self) -> anyhow::Result<Conn> {
        Conn::open_resp3(self.address())
    }

    /// Whether the process still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// What the server has logged so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// Sends a signal to the process.
    ///
    /// A process that is stopped runs no more when this returns.
    ///
    /// # Errors
    /// The process is gone.
    pub fn signal(&self, signal: rustix::process::Signal) -> anyhow::Result<()> {
        let raw = i32::try_from(self.child.id()).context("a process id above i32::MAX")?;
        let pid = rustix::process::Pid::from_raw(raw).context("process id 0")?;
        rustix::process::kill_process(pid, signal)?;
        if signal == rustix::process::Signal::STOP && !wait::until(|| self.is_stopped()) {
            bail!("the server goes on");
        }
        Ok(())
    }

    /// Whether the system says that the process is stopped: the state stands behind the name in parentheses.
    fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    }

    /// Waits until the process has ended by itself.
    ///
    /// # Errors
    /// It does not end within [`wait::PATIENCE`].
    pub fn wait_for_exit(&mut self) -> anyhow::Result<ExitStatus> {
        wait::until_some(wait::PATIENCE, || self.child.try_wait().ok().flatten())
            .context("the server did not end")
    }

    /// How many file descriptors the process has open.
    ///
    /// # Errors
    /// The process is gone.
    pub fn open_files(&self) -> anyhow::Result<usize> {
        Ok(std::fs::read_dir(format!("/proc/{}/fd", self.child.id()))?.count())
    }

    /// Resident memory of the process in bytes.
    ///
    /// # Errors
    /// The process is gone.
    pub fn resident_bytes(&self) -> anyhow::Result<u64> {
        self.status_bytes("VmRSS:")
    }

    /// The most resident memory that the process ever had, in bytes.
    ///
    /// # Errors
    /// The process is gone.
    pub fn peak_bytes(&self) -> anyhow::Result<u64> {
        self.status_bytes("VmHWM:")
    }

    fn status_bytes(&self, field: &str) -> anyhow::Result<u64> {
        status_bytes(&self.child.id().to_string(), field)
    }
}

/// The directory of a server by which it is told where to wait.
const FAILPOINTS: &str = "failpoints";

/// Among the flags, it says that the server has a configuration file, in its directory and empty at first.
pub const CONFIG_FILE: &str = "server.conf";

/// Starts a process that logs into its directory.
fn spawn(kind: ServerKind, directory: &Path, port: u16, flags: &[&str]) -> anyhow::Result<Child> {
    let log = File::create(directory.join("log"))?;
    let failpoints = directory.join(FAILPOINTS);
    std::fs::create_dir_all(&failpoints)?;
    let mut command = kind.command()?;
    if flags.contains(&CONFIG_FILE) {
        let path = directory.join(CONFIG_FILE);
        File::options().create(true).append(true).open(&path)?;
        command.arg(path);
    }
    let flags = flags.iter().filter(|flag| **flag != CONFIG_FILE);
    command
        .env("FAILPOINT_DIR", failpoints)
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
        .args(["--enable-debug-command", "yes", "--dir"])
        .arg(directory)
        .args(flags)
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log);
    command.spawn().with_context(|| format!("cannot start {command:?}"))
}

/// Resident memory of the process `pid` (or `self`) in bytes.
///
/// # Errors
/// The process is gone.
pub fn resident_bytes(pid: &str) -> anyhow::Result<u64> {
    status_bytes(pid, "VmRSS:")
}

fn status_bytes(pid: &str, field: &str) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)).context("the field is missing")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().context("the field is no number")?;
    Ok(kib * 1024)
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only when the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that nobody listens on at this moment.
///
/// # Errors
/// The system has none left.
pub fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Towline's binary: `E2E_TOWLINE`, or the one beside this test binary, brought up to date by cargo once.
///
/// # Errors
/// Cargo cannot build it.
pub fn towline_binary() -> anyhow::Result<PathBuf> {
    static BINARY: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BINARY.get_or_init(|| build_towline().map_err(|error| format!("{error:#}")));
    built.clone().map_err(anyhow::Error::msg)
}

/// An example of the client: in `E2E_EXAMPLES`, or beside this test binary, brought up to date by cargo once.
///
/// # Errors
/// Cargo cannot build them.
pub fn example_binary(name: &str) -> anyhow::Result<PathBuf> {
    static DIRECTORY: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = DIRECTORY.get_or_init(|| build_examples().map_err(|error| format!("{error:#}")));
    built.clone().map(|directory| directory.join(name)).map_err(anyhow::Error::msg)
}

fn build_examples() -> anyhow::Result<PathBuf> {
    if let Some(path) = std::env::var_os("E2E_EXAMPLES").filter(|path| !path.is_empty()) {
        return Ok(path.into());
    }
    Ok(build(&["--package", "towline-client", "--examples"])?.join("examples"))
}

/// A program of the workspace beside this test binary, brought up to date by cargo.
///
/// # Errors
/// Cargo cannot build it.
pub fn program_binary(package: &str) -> anyhow::Result<PathBuf> {
    Ok(build(&["--package", package])?.join(package))
}

fn build_towline() -> anyhow::Result<PathBuf> {
    if let Some(path) = std::env::var_os("E2E_TOWLINE").filter(|path| !path.is_empty()) {
        return Ok(path.into());
    }
    Ok(build(&["--package", "towline"])?.join("towline"))
}

/// Builds `what` in the profile of this test binary; the directory of that profile.
fn build(what: &[&str]) -> anyhow::Result<PathBuf> {
    // <target>/<profile>/deps/it-0123, or <target>/<profile>/differential
    let own = std::env::current_exe()?;
    let mut profile_directory = own.parent().context("a binary without a directory")?;
    if profile_directory.ends_with("deps") {
        profile_directory = profile_directory.parent().context("deps/ without a parent")?;
    }
    let profile = match profile_directory.file_name().and_then(|name| name.to_str()) {
        Some("debug") => "dev",
        Some(name) => name,
        None => bail!("cannot tell the profile from {}", own.display()),
    };
    let target = profile_directory.parent().context("no target directory")?;
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--quiet", "--profile", profile])
        .args(what)
        .arg("--target-dir")
        .arg(target)
        .current_dir(checkout())
        .output()
        .context("cannot start cargo to build what is tested")?;
    if !output.status.success() {
        bail!("{} does not build:\n{}", what.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok(profile_directory.to_owned())
}

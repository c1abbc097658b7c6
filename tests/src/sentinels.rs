//! Real sentinels: three of them, a primary and two replicas.
//!
//! Owns the processes and what tests do to them: failovers, kills, returns. Does not own the load
//! ([`crate::ledger_of_keys`]).

use crate::conn::Conn;
use crate::process::{Server, ServerKind};
use crate::value::Value;
use crate::wait;
use anyhow::{Context, bail};
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// Sentinels of a deployment, and servers.
const EACH: usize = 3;

/// The name of the primary, unless a test chooses another.
pub const NAME: &str = "the-primary";

/// How often a deployment is started.
const START_TRIES: usize = 3;

/// A server that is busy with its start is not given up before this time; afterwards it is what was asked for.
const PATIENT_DOWN_AFTER: Duration = Duration::from_secs(20);

/// How often a failover is asked for, and how long each time is waited for it.
const FAILOVER_TRIES: usize = 5;

/// See [`FAILOVER_TRIES`].
const FAILOVER_TIME: Duration = Duration::from_secs(8);

/// A sentinel's process; dropping it kills it.
#[derive(Debug)]
pub struct Sentinel {
    child: Child,
    port: u16,
    directory: TempDir,
}

/// What a deployment is like.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    /// A server that is gone is given up after this time.
    pub down_after: Duration,
    /// The servers' password.
    pub password: Option<&'a str>,
    /// The sentinels' password.
    pub sentinel_password: Option<&'a str>,
    /// Whether addresses are announced as names.
    pub has_names: bool,
}

impl Default for Setup<'_> {
    fn default() -> Self {
        Self {
            down_after: Duration::from_millis(500),
            password: None,
            sentinel_password: None,
            has_names: false,
        }
    }
}

/// A deployment whose processes end with it.
#[derive(Debug)]
pub struct RealSentinels {
    kind: ServerKind,
    servers: Vec<Server>,
    sentinels: Vec<Sentinel>,
}

impl RealSentinels {
    /// Starts a primary, two replicas and three sentinels, and waits until they know each other.
    ///
    /// # Errors
    /// One does not start, or they do not find each other.
    pub fn start(kind: ServerKind, setup: &Setup<'_>) -> anyhow::Result<Self> {
        let mut last = None;
        for _ in 0..START_TRIES {
            // Another process may take one of them in between.
            match Self::start_on(kind, setup, [quiet_port()?, quiet_port()?, quiet_port()?]) {
                Ok(deployment) => return Ok(deployment),
                Err(error) => last = Some(error),
            }
        }
        Err(last.context("START_TRIES is positive")?)
    }

    /// As [`RealSentinels::start`], with the sentinels on these ports.
    ///
    /// # Errors
    /// As [`RealSentinels::start`].
    pub fn start_on(kind: ServerKind, setup: &Setup<'_>, ports: [u16; EACH]) -> anyhow::Result<Self> {
        let mut servers: Vec<Server> = Vec::new();
        for _ in 0..EACH {
            let mut flags = vec!["--repl-diskless-sync-delay", "0"];
            if let Some(password) = setup.password {
                flags.extend(["--requirepass", password, "--masterauth", password]);
            }
            let primary = servers.first().map(|primary| primary.port().to_string());
            if let Some(primary) = &primary {
                flags.extend(["--replicaof", "127.0.0.1", primary]);
            }
            servers.push(Server::start(kind, &flags)?);
        }
        let primary = servers.first().context("there are servers")?.port();
        let mut sentinels = Vec::new();
        for port in ports {
            sentinels.push(Sentinel::start(kind, setup, port, primary)?);
        }
        let deployment = Self { kind, servers, sentinels };
        let knows_all = |port: &u16| deployment.knows_all(*port, setup).unwrap_or(false);
        if !wait::until(|| ports.iter().all(knows_all)) {
            let known = ports.map(|port| deployment.details(port, setup));
            let logs: Vec<String> = deployment.sentinels.iter().map(Sentinel::log).collect();
            bail!(
                "the sentinels did not find each other and the replicas; they know {known:?}, and say {logs:#?}"
            );
        }
        for port in ports {
            let down_after = setup.down_after.as_millis();
            let mut conn = Self::authenticated(port, setup)?;
            let reply = conn.words(&format!("SENTINEL SET {NAME} down-after-milliseconds {down_after}"))?;
            if let Some(error) = reply.error() {
                bail!("SENTINEL SET: {error}");
            }
        }
        Ok(deployment)
    }

    /// What the sentinel on a port knows, for a message.
    fn details(&self, port: u16, setup: &Setup<'_>) -> anyhow::Result<Vec<Option<String>>> {
        let details = Self::authenticated(port, setup)?.words(&format!("SENTINEL MASTER {NAME}"))?;
        let names = ["ip", "port", "flags", "num-slaves", "num-other-sentinels", "config-epoch"];
        Ok(names.iter().map(|name| field(&details, name)).collect())
    }

    fn authenticated(port: u16, setup: &Setup<'_>) -> anyhow::Result<Conn> {
        let mut conn = Self::connect(port)?;
        if let Some(password) = setup.sentinel_password {
            conn.words(&format!("AUTH {password}"))?;
        }
        Ok(conn)
    }

    fn knows_all(&self, port: u16, setup: &Setup<'_>) -> anyhow::Result<bool> {
        let mut conn = Self::authenticated(port, setup)?;
        let details = conn.words(&format!("SENTINEL MASTER {NAME}"))?;
        let has = |name: &str, value: &str| field(&details, name).as_deref() == Some(value);
        Ok(has("num-slaves", "2") && has("num-other-sentinels", "2") && has("flags", "master"))
    }

    fn connect(port: u16) -> anyhow::Result<Conn> {
        Conn::open(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    }

    /// Which servers these are.
    pub fn kind(&self) -> ServerKind {
        self.kind
    }

    /// The ports of the sentinels.
    pub fn sentinel_ports(&self) -> Vec<u16> {
        self.sentinels.iter().map(|sentinel| sentinel.port).collect()
    }

    /// The servers' ports; the first primary's first.
    pub fn ports(&self) -> Vec<u16> {
        self.servers.iter().map(Server::port).collect()
    }

    /// The server on a port.
    ///
    /// # Panics
    /// There is none.
    pub fn server(&self, port: u16) -> &Server {
        self.servers.iter().find(|server| server.port() == port).expect("a port of a server")
    }

    /// Sends words to the sentinel on a port.
    ///
    /// # Errors
    /// It does not answer, or refuses them.
    pub fn tell(&self, port: u16, words: &str) -> anyhow::Result<Value> {
        let reply = Self::connect(port)?.words(words)?;
        match reply.error() {
            Some(error) => bail!("{words}: {error}"),
            None => Ok(reply),
        }
    }

    /// The primary's port, as the first sentinel says that runs.
    ///
    /// # Errors
    /// None runs, or none knows.
    pub fn primary(&self) -> anyhow::Result<u16> {
        for port in self.sentinel_ports() {
            let Ok(reply) = self.tell(port, &format!("SENTINEL GET-MASTER-ADDR-BY-NAME {NAME}")) else {
                continue;
            };
            let words = reply.items().unwrap_or_default();
            let port = words.get(1).and_then(Value::bytes).map(String::from_utf8_lossy);
            return Ok(port.context("no primary")?.parse()?);
        }
        bail!("no sentinel runs")
    }

    /// Waits until all sentinels that run name another primary than `old`, which says that it is one, and the others follow it.
    ///
    /// # Errors
    /// It does not come to that.
    pub fn wait_for_heir(&self, old: u16) -> anyhow::Result<u16> {
        let heir = || {
            let port = self.primary().ok().filter(|port| *port != old)?;
            self.role(port).is_ok_and(|role| role == "master").then_some(port)
        };
        wait::until_some(wait::PATIENCE, heir).context("no heir was named that is a primary")
    }

    /// What the server on a port says that it is.
    ///
    /// # Errors
    /// It does not answer.
    pub fn role(&self, port: u16) -> anyhow::Result<String> {
        let reply = self.server(port).connect()?.words("ROLE")?;
        let role =
            reply.items().unwrap_or_default().first().and_then(Value::bytes).map(String::from_utf8_lossy);
        Ok(role.context("no role")?.into_owned())
    }

    /// Makes a replica take the primary's place, and waits until it has.
    ///
    /// # Errors
    /// It does not come to that.
    pub fn fail_over(&self) -> anyhow::Result<u16> {
        let old = self.primary()?;
        let ports = self.sentinel_ports();
        let asks = || ports.iter().any(|port| self.tell(*port, &format!("SENTINEL FAILOVER {NAME}")).is_ok());
        // Shortly after another failover a sentinel refuses, or gives up what it has begun.
        let heir = (0..FAILOVER_TRIES).find_map(|_| {
            let has_begun = wait::until(asks);
            has_begun.then(|| {
                wait::until_some(FAILOVER_TIME, || self.primary().ok().filter(|port| *port != old))
            })?
        });
        heir.context("no failover came about")?;
        self.wait_for_heir(old)
    }

    /// Kills a server at once (`SIGKILL`).
    ///
    /// # Errors
    /// It is gone already.
    pub fn kill(&self, port: u16) -> anyhow::Result<()> {
        self.server(port).signal(rustix::process::Signal::KILL)
    }

    /// Starts a server that was killed again, on its port and with nothing.
    ///
    /// # Errors
    /// It does not start.
    pub fn revive(&mut self, port: u16) -> anyhow::Result<()> {
        let at =
            self.servers.iter().position(|server| server.port() == port).context("a port of a server")?;
        self.servers.remove(at);
        self.servers.push(Server::start_on(self.kind, port, &["--repl-diskless-sync-delay", "0"])?);
        Ok(())
    }

    /// Kills sentinels, all but the last `count`.
    pub fn leave_sentinels(&mut self, count: usize) {
        let at = self.sentinels.len().saturating_sub(count);
        self.sentinels = self.sentinels.split_off(at);
    }

    /// How many clients of a server are neither replicas, nor sentinels, nor the connection that asks.
    ///
    /// # Errors
    /// It does not answer.
    pub fn clients_of(&self, port: u16, name: &str) -> anyhow::Result<usize> {
        let reply = self.server(port).connect()?.words("CLIENT LIST")?;
        let text = String::from_utf8_lossy(reply.bytes().unwrap_or_default()).into_owned();
        let marker = format!(" name={name} ");
        Ok(text.lines().filter(|line| line.contains(&marker)).count())
    }
}

impl Sentinel {
    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    fn start(kind: ServerKind, setup: &Setup<'_>, port: u16, primary: u16) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new().prefix("towline-e2e-").tempdir()?;
        let path = directory.path().join("sentinel.conf");
        let down_after = PATIENT_DOWN_AFTER.as_millis();
        let host = if setup.has_names { "localhost" } else { "127.0.0.1" };
        let mut text = format!("port {port}\nbind 127.0.0.1\n");
        if setup.has_names {
            text += "sentinel resolve-hostnames yes\nsentinel announce-hostnames yes\n";
        }
        text += &format!(
            "sentinel monitor {NAME} {host} {primary} 2\nsentinel down-after-milliseconds {NAME} {down_after}\n\
             sentinel failover-timeout {NAME} 3000\nsentinel parallel-syncs {NAME} 2\n"
        );
        if let Some(password) = setup.password {
            text += &format!("sentinel auth-pass {NAME} {password}\n");
        }
        if let Some(password) = setup.sentinel_password {
            text += &format!("requirepass {password}\nsentinel sentinel-pass {password}\n");
        }
        std::fs::write(&path, text)?;
        let log = File::create(directory.path().join("log"))?;
        let mut command = kind.command()?;
        command.arg(&path).arg("--sentinel").current_dir(directory.path());
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        let sentinel = Self { child, port, directory };
        if !wait::until(|| RealSentinels::connect(port).is_ok()) {
            bail!("the sentinel on port {port} did not become ready");
        }
        Ok(sentinel)
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        // Both fail only when the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port on which nobody listens, and which the system gives to no outgoing connection: a client that dials in vain may
/// otherwise take the very port that it dials, before its owner comes.
///
/// # Errors
/// All are taken.
pub fn quiet_port() -> anyhow::Result<u16> {
    /// Below the ports that Linux gives to outgoing connections.
    const FIRST: u32 = 20_000;
    /// How many there are.
    const COUNT: u32 = 12_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    for _ in 0..COUNT {
        // Processes that run beside each other begin at different places.
        let at = std::process::id().wrapping_mul(101).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(FIRST + at % COUNT)?;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no port is free")
}

/// The value of a field in a list of names and values.
fn field(reply: &Value, name: &str) -> Option<String> {
    let words = reply.items()?;
    let pair = words.chunks_exact(2).find(|pair| pair[0].bytes() == Some(name.as_bytes()))?;
    pair[1].bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

//! The nodes as processes: started, killed, started again on their ports and files.
//!
//! Owns the processes and the runs of `towline cluster`. Does not own when anything is killed.

use std::fs::File;
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};

/// Where nodes listen.
pub(super) const HOST: &str = "127.0.0.1";

/// How long a node may take until it answers.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// How often a node that starts is asked.
const ASK_EVERY: Duration = Duration::from_millis(10);

/// How long a node may not answer until others give it up, milliseconds: above the time that a busy machine takes for a restart.
const NODE_TIMEOUT_MS: u32 = 5000;

/// Lines of a log that an error shows.
const LOG_LINES: usize = 5;

/// One node.
#[derive(Debug)]
struct Node {
    port: u16,
    bus_port: u16,
    dir: PathBuf,
    child: Option<Child>,
}

/// All nodes. Dropping it kills them.
#[derive(Debug)]
pub(super) struct Fleet {
    program: Vec<String>,
    flags: Vec<String>,
    nodes: Vec<Node>,
}

impl Fleet {
    /// Starts nodes and makes a cluster of them.
    ///
    /// # Errors
    /// The environment's; the message has the end of a node's log.
    pub(super) fn start(program: Vec<String>, count: u16, dir: &Path, is_durable: bool) -> Result<Self> {
        let onoff = if is_durable { "yes" } else { "no" };
        let flags = ["--appendonly", onoff, "--appendfsync", "always", "--save", ""];
        let mut fleet = Self { program, flags: flags.map(str::to_owned).to_vec(), nodes: Vec::new() };
        let free = || -> Result<(TcpListener, u16)> {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            let port = listener.local_addr()?.port();
            Ok((listener, port))
        };
        // All at once, so that nobody gets the same twice.
        let ports: Vec<_> = (0..2 * count).map(|_| free()).collect::<Result<_>>()?;
        let numbers: Vec<u16> = ports.iter().map(|(_, port)| *port).collect();
        drop(ports);
        for (at, pair) in numbers.chunks_exact(2).enumerate() {
            let dir = dir.join(format!("node-{at}"));
            std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
            fleet.nodes.push(Node { port: pair[0], bus_port: pair[1], dir, child: None });
        }
        for at in 0..fleet.nodes.len() {
            fleet.spawn(at)?;
        }
        for at in 0..fleet.nodes.len() {
            fleet.wait(at)?;
        }
        crate::cluster::bring_up(HOST, &fleet.ports())?;
        Ok(fleet)
    }

    /// The ports for clients.
    pub(super) fn ports(&self) -> Vec<u16> {
        self.nodes.iter().map(|node| node.port).collect()
    }

    fn spawn(&mut self, at: usize) -> Result<()> {
        let (program, arguments) = self.program.split_first().context("--server is empty")?;
        let node = &mut self.nodes[at];
        let log = File::options().create(true).append(true).open(node.dir.join("log"))?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .args(["--port", &node.port.to_string(), "--bind", HOST, "--dir"])
            .arg(&node.dir)
            .args(["--cluster-enabled", "yes", "--cluster-port", &node.bus_port.to_string()])
            .args(["--cluster-node-timeout", &NODE_TIMEOUT_MS.to_string()])
            .args(&self.flags)
            .current_dir(&node.dir)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        node.child = Some(command.spawn().with_context(|| format!("cannot start {program}"))?);
        Ok(())
    }

    /// Waits until a node answers and has loaded its data.
    fn wait(&mut self, at: usize) -> Result<()> {
        let begun = Instant::now();
        loop {
            let node = &mut self.nodes[at];
            if let Some(status) = node.child.as_mut().map(Child::try_wait).transpose()?.flatten() {
                bail!("node {} ended with {status}: {}", node.port, log_end(&node.dir));
            }
            if crate::cluster::answers(HOST, node.port) {
                return Ok(());
            }
            if begun.elapsed() > READY_WITHIN {
                bail!("node {} does not answer: {}", node.port, log_end(&node.dir));
            }
            std::thread::sleep(ASK_EVERY);
        }
    }

    /// Kills a node at once.
    ///
    /// # Errors
    /// The environment's.
    pub(super) fn kill(&mut self, at: usize) -> Result<()> {
        self.nodes[at].child.take().map_or(Ok(()), end)
    }

    /// Starts a node again that was killed, and waits until it answers.
    ///
    /// # Errors
    /// It does not; the message has the end of its log.
    pub(super) fn restart(&mut self, at: usize) -> Result<()> {
        self.spawn(at)?;
        self.wait(at)
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            // Fails only if it has ended already.
            let _ = node.child.take().map_or(Ok(()), end);
        }
    }
}

/// Kills a process with its group, and waits for it.
fn end(mut child: Child) -> Result<()> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).context("a process without an id")?;
    // It may have ended by itself.
    let _ = kill_process_group(pid, Signal::KILL);
    child.wait().context("cannot wait for a process")?;
    Ok(())
}

fn log_end(dir: &Path) -> String {
    let text = std::fs::read(dir.join("log")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join(" | ")
}

/// A run of `towline cluster` that was begun.
///
/// # Errors
/// This program cannot be started.
pub(super) fn tool(arguments: &[String]) -> Result<Child> {
    let own = std::env::current_exe().context("where this program is")?;
    let mut command = Command::new(own);
    command.arg("cluster").args(arguments).args(["--json", "--yes", "--timeout", "20"]);
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().context("cannot start towline cluster")
}

/// All that a process says on one of its outputs.
///
/// # Errors
/// It cannot be read.
pub(super) fn all_of(output: Option<impl Read>) -> Result<String> {
    let mut bytes = Vec::new();
    if let Some(mut output) = output {
        output.read_to_end(&mut bytes).context("cannot read what towline cluster says")?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

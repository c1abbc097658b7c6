//! An engine in a process of its own, for benchmarks and drills.
//!
//! Owns the process: it ends when this does.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// A running `towline transfer serve`.
#[derive(Debug)]
pub(crate) struct ServeChild {
    process: Child,
    pub(crate) address: SocketAddr,
    /// What it says after its first line.
    pub(crate) lines: Receiver<String>,
}

/// Lines that nobody has looked at; what comes beyond is thrown away, so that the process never waits for us to read.
const LINES_MAX: usize = 1 << 20;

impl ServeChild {
    /// Starts one that offers `kv` of so many bytes, and waits until it listens.
    ///
    /// # Errors
    /// It cannot be started, or says something else.
    pub(crate) fn start(listen: SocketAddr, bytes: u64, arguments: &[String]) -> Result<Self> {
        let own = std::env::current_exe().context("cannot find this program")?;
        let mut process = Command::new(own)
            .args(["transfer", "serve", "--json", "--while-stdin"])
            .args(["--listen", &listen.to_string(), "--region", &format!("kv={bytes}")])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start an engine in a process of its own")?;
        let out = process.stdout.take().context("the engine's process has no output")?;
        let mut lines = BufReader::new(out);
        let mut line = String::new();
        lines.read_line(&mut line)?;
        let (sender, receiver) = sync_channel(LINES_MAX);
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                let _ = sender.try_send(line);
            }
        });
        let address = serde_json::from_str::<Value>(&line).ok();
        let address = address.and_then(|value| value["address"].as_str()?.parse().ok());
        let Some(address) = address else {
            let _ = process.kill();
            bail!("the engine's process did not start: {line}");
        };
        Ok(Self { process, address, lines: receiver })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// SIGKILL, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for ServeChild {
    fn drop(&mut self) {
        self.kill();
    }
}

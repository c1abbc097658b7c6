//! The server under test: a process of its own on a free port, and the keys that the workloads read.

use crate::large::large_key;
use crate::pacer::Pacer;
use crate::statistics::{keys, value};
use anyhow::{Context, ensure};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Between two questions whether the server answers.
const QUESTIONS_PER_SECOND: u32 = 200;
/// Ten seconds.
const QUESTIONS_MAX: usize = 2_000;
/// A server that says nothing for so long is not there.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// A running server; dropping it kills it.
pub(crate) struct Server(Child);

impl Server {
    /// Starts `program`, which takes Redis's options, without persistence.
    pub(crate) fn start(program: &Path, port: u16) -> anyhow::Result<Self> {
        let child = Command::new(program)
            .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port"])
            .arg(port.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self(child))
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to kill and the wait only collects it.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A port that nobody listens on now.
pub(crate) fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Waits until the server answers a PING.
pub(crate) async fn ready(port: u16) -> anyhow::Result<()> {
    let mut pacer = Pacer::start(QUESTIONS_PER_SECOND)?;
    for _ in 0..QUESTIONS_MAX {
        if exchange(port, b"*1\r\n$4\r\nPING\r\n", "+PONG\r\n".len()).is_ok() {
            return Ok(());
        }
        drop(pacer.due().await?);
    }
    anyhow::bail!("the server on port {port} does not answer")
}

/// Writes every small key, and one large value of each size.
pub(crate) fn fill(port: u16, large: &[usize]) -> anyhow::Result<()> {
    let mut commands = Vec::new();
    let value = value();
    let keys = keys();
    for key in &keys {
        set(&mut commands, key, value.as_bytes());
    }
    exchange(port, &commands, keys.len() * "+OK\r\n".len())?;
    for &value_bytes in large {
        commands.clear();
        set(&mut commands, &large_key(value_bytes), &vec![b'v'; value_bytes]);
        exchange(port, &commands, "+OK\r\n".len())?;
    }
    Ok(())
}

fn set(commands: &mut Vec<u8>, key: &str, value: &[u8]) {
    let head = format!("*3\r\n$3\r\nSET\r\n${}\r\n{key}\r\n${}\r\n", key.len(), value.len());
    commands.extend_from_slice(head.as_bytes());
    commands.extend_from_slice(value);
    commands.extend_from_slice(b"\r\n");
}

/// Sends commands on a connection of its own and reads the replies, which have this length unless one is an error.
fn exchange(port: u16, commands: &[u8], reply_bytes: usize) -> anyhow::Result<()> {
    let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    socket.set_read_timeout(Some(ANSWER_MAX))?;
    socket.write_all(commands)?;
    let mut replies = vec![0; reply_bytes];
    socket.read_exact(&mut replies)?;
    ensure!(replies[0] == b'+', "the server refused: {}", String::from_utf8_lossy(&replies).trim_end());
    Ok(())
}

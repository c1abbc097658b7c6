//! A soak: many connections send random commands for a while, and afterwards the server must have given everything back.
//!
//! Owns: the load and the look at what is left. Does **not** own the commands (see [`crate::diff`]) and compares no replies:
//! connections disturb each other on purpose.

use crate::conn::Conn;
use crate::diff::{self, TOPICS};
use crate::process::Server;
use crate::wait;
use anyhow::{Context, ensure};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Connections at a time; each ends with its program and the next one begins anew.
const CONNECTIONS: u64 = 8;
/// Commands that are sent before the replies to them are read.
const BATCH: usize = 32;
/// How long a reply may take; some commands wait for milliseconds.
const REPLY_TIMEOUT: Duration = Duration::from_secs(20);
/// Descriptors that a server may open late and keep.
const LATE_FILES: usize = 8;
/// Bytes that a server may keep of what it used: statistics for each command on each worker, buffers that it reuses.
const KEPT_BYTES: u64 = 16 << 20;

/// What a soak did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// Commands that were answered.
    pub commands: u64,
    /// Programs, each on a connection of its own.
    pub programs: u64,
    /// Bytes in use before and after, by the server's account.
    pub used_bytes: [u64; 2],
    /// Open descriptors before and after.
    pub files: [usize; 2],
}

/// Loads `server` for `duration` with programs from `seed` on, then looks at what is left.
///
/// # Errors
/// The server is gone, stopped answering, or kept keys, clients, descriptors or memory.
pub fn run(server: &mut Server, duration: Duration, seed: u64) -> anyhow::Result<Report> {
    let mut watcher = server.connect()?;
    settle(&mut watcher)?;
    let before = (info(&mut watcher, "memory", "used_memory")?, server.open_files()?);
    let (commands, programs) = (AtomicU64::new(0), AtomicU64::new(0));
    let deadline = Instant::now() + duration;
    std::thread::scope(|scope| {
        let load = |connection: u64| {
            let mut next = seed + connection;
            while Instant::now() < deadline {
                let topic = &TOPICS[next as usize % TOPICS.len()];
                commands.fetch_add(program(server, &diff::commands(topic, next))?, Ordering::Relaxed);
                programs.fetch_add(1, Ordering::Relaxed);
                next += CONNECTIONS;
            }
            anyhow::Ok(())
        };
        let threads: Vec<_> =
            (0..CONNECTIONS).map(|connection| scope.spawn(move || load(connection))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("invariant: the load does not panic"))
    })?;
    ensure!(server.is_running(), "the server is gone:\n{}", server.log());
    settle(&mut watcher)?;
    let is_quiet = wait::until(|| {
        let all_left = info(&mut watcher, "clients", "connected_clients").is_ok_and(|clients| clients == 1);
        all_left && server.open_files().is_ok_and(|files| files <= before.1 + LATE_FILES)
    });
    let mut number = |section, name| info(&mut watcher, section, name);
    let left = [number("clients", "blocked_clients")?, number("stats", "tracking_total_prefixes")?];
    let after = (number("memory", "used_memory")?, server.open_files()?);
    ensure!(is_quiet, "clients or descriptors are left: {} before, {} after", before.1, after.1);
    ensure!(left == [0, 0], "blocked clients, tracked prefixes: {left:?}");
    ensure!(after.0 <= before.0 + KEPT_BYTES, "{} bytes in use before, {} after", before.0, after.0);
    Ok(Report {
        commands: commands.into_inner(),
        programs: programs.into_inner(),
        used_bytes: [before.0, after.0],
        files: [before.1, after.1],
    })
}

/// Sends one program on a connection of its own; how many commands were answered. Another connection may end this one.
fn program(server: &Server, commands: &[Vec<Vec<u8>>]) -> anyhow::Result<u64> {
    let mut conn = server.connect()?;
    conn.set_read_timeout(REPLY_TIMEOUT)?;
    let mut answered = 0;
    for batch in commands.chunks(BATCH) {
        match conn.pipeline(batch) {
            Ok(replies) => answered += replies.len() as u64,
            Err(error) if error.to_string().contains("closed") => break,
            Err(error) => return Err(error.context(format!("after {answered} commands"))),
        }
    }
    Ok(answered)
}

/// Empties the server and has it give back what it keeps for later.
fn settle(conn: &mut Conn) -> anyhow::Result<()> {
    for command in ["FLUSHALL SYNC", "CONFIG RESETSTAT", "SLOWLOG RESET", "LATENCY RESET", "MEMORY PURGE"] {
        let reply = conn.words(command)?;
        ensure!(reply.error().is_none(), "{command}: {reply}");
    }
    Ok(())
}

/// One number of `INFO`.
fn info(conn: &mut Conn, section: &str, name: &str) -> anyhow::Result<u64> {
    let reply = conn.call(&["INFO", section])?;
    let text = String::from_utf8_lossy(reply.bytes().unwrap_or_default()).into_owned();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.with_context(|| format!("INFO {section} has no {name}"))?.parse().context("not a number")
}

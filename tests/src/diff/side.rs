//! One of the two servers of a comparison.
//!
//! Owns: the process, its connection and its restart after a crash.

use super::program::Program;
use super::template::Arguments;
use crate::conn::{Conn, encode};
use crate::process::{Server, ServerKind};
use crate::value::Value;
use anyhow::Context;
use std::time::Duration;

/// Commands that are written before their replies are read: below any socket buffer, so neither side can stall.
const BATCH: usize = 64;

/// How long one reply may take. A longer silence is a difference: a lost reply, or a connection that hangs.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// A server and the connection that programs run on.
#[derive(Debug)]
pub(super) struct Side {
    kind: ServerKind,
    server: Server,
    conn: Conn,
}

/// What a side answered: as many replies as it gave, and why it stopped if it did.
#[derive(Debug)]
pub(super) struct Answers {
    pub(super) replies: Vec<Value>,
    pub(super) failure: Option<String>,
}

impl Side {
    pub(super) fn start(kind: ServerKind) -> anyhow::Result<Self> {
        let server = Server::start(kind, &[])?;
        let conn = connect(&server)?;
        Ok(Self { kind, server, conn })
    }

    pub(super) fn kind(&self) -> ServerKind {
        self.kind
    }

    /// Runs a program on an empty server.
    ///
    /// # Errors
    /// The server cannot be started again after it crashed.
    pub(super) fn run(&mut self, program: &Program, probes: &[Arguments]) -> anyhow::Result<Answers> {
        if let Err(error) = self.prepare(program) {
            // The previous program may have left a closed connection, or no process at all.
            if !self.server.is_running() {
                self.server = Server::start(self.kind, &[])?;
            }
            self.conn = connect(&self.server)?;
            self.prepare(program).with_context(|| format!("after {error:#}"))?;
        }
        let mut commands = program.commands();
        commands.push(vec![b"DISCARD".to_vec()]);
        commands.push(vec![b"SELECT".to_vec(), b"0".to_vec()]);
        commands.extend(probes.iter().cloned());
        let mut replies = Vec::with_capacity(commands.len());
        let mut failure = None;
        for batch in commands.chunks(BATCH) {
            if let Err(error) = run_batch(&mut self.conn, batch, &mut replies) {
                failure = Some(format!("{error:#}"));
                self.conn = match connect(&self.server) {
                    Ok(conn) => conn,
                    Err(_) => {
                        self.server = Server::start(self.kind, &[])?;
                        connect(&self.server)?
                    }
                };
                break;
            }
        }
        Ok(Answers { replies, failure })
    }

    fn prepare(&mut self, program: &Program) -> anyhow::Result<()> {
        let entries = program.compact_entries.to_string();
        let mut commands =
            vec![vec!["RESET"], vec!["HELLO", if program.is_resp3 { "3" } else { "2" }], vec!["FLUSHALL"]];
        for parameter in [
            "hash-max-listpack-entries",
            "zset-max-listpack-entries",
            "set-max-intset-entries",
            "list-max-listpack-size",
        ] {
            commands.push(vec!["CONFIG", "SET", parameter, &entries]);
        }
        self.conn.pipeline(&commands)?;
        Ok(())
    }
}

fn connect(server: &Server) -> anyhow::Result<Conn> {
    let conn = server.connect()?;
    conn.set_read_timeout(REPLY_TIMEOUT)?;
    Ok(conn)
}

fn run_batch(conn: &mut Conn, batch: &[Arguments], replies: &mut Vec<Value>) -> anyhow::Result<()> {
    let mut bytes = Vec::new();
    for command in batch {
        encode(command, &mut bytes);
    }
    conn.write(&bytes)?;
    for _ in batch {
        replies.push(conn.read()?);
    }
    Ok(())
}

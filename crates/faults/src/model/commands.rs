//! What the commands of the model server do.
//!
//! Owns the dispatch by name. Each submodule owns a group of commands; none of them sends anything by itself except
//! pushes to other connections.

mod client;
mod connection;
mod data;
mod lists;
mod pubsub;
mod scripts;
mod transactions;

use bytes::Bytes;
use towline_resp::number::parse_i64;
use towline_resp::writer::Writer;
use towline_sansio::Instant;
use towline_spec::Command;

use super::failure::Failure;
use super::{ConnectionId, Model};

pub(super) use lists::Waiter;

/// One command to execute.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub(super) now: Instant,
    pub(super) connection: ConnectionId,
    pub(super) command: &'static Command,
    pub(super) args: &'a [Bytes],
    /// Nothing stood before it in the bytes that arrived together.
    pub(super) is_first: bool,
    /// It runs inside `EXEC`, and cannot wait.
    pub(super) is_queued: bool,
}

impl Call<'_> {
    /// Whether the argument is this word, in any case.
    pub(super) fn is(&self, index: usize, word: &str) -> bool {
        self.args.get(index).is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
    }

    /// The argument as an integer.
    fn int(&self, index: usize) -> Result<i64, Failure> {
        self.args.get(index).and_then(|arg| parse_i64(arg)).ok_or(Failure::NotInteger)
    }
}

/// What is left to do after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Its reply is written.
    Done,
    /// It has no reply, now or later.
    Silent,
    /// It waits; the reply comes later, or never.
    Blocked,
    /// Its reply is written, and the connection ends behind it.
    Close,
}

impl Model {
    /// Runs one command whose arity is right, and writes its reply.
    pub(super) fn run(&mut self, call: &Call<'_>, out: &mut Writer) -> Result<Step, Failure> {
        match call.command.name {
            "hello" => self.hello(call, out),
            "auth" => self.auth(call, out),
            "ping" => self.ping(call, out),
            "echo" => {
                out.bulk(&call.args[1]);
                Ok(Step::Done)
            }
            "select" => self.select(call, out),
            "reset" => self.reset_session(call, out),
            "quit" => {
                out.ok();
                Ok(Step::Close)
            }
            "info" => self.info(out),
            "config|get" => self.config_get(call, out),
            "debug" if call.args.len() == 3 && call.is(1, "sleep") => self.debug_sleep(call, out),
            "multi" => self.multi(call, out),
            "exec" => self.exec(call, out),
            "discard" => self.discard(call, out),
            "watch" => self.watch(call, out),
            "unwatch" => self.unwatch(call, out),
            "blpop" | "brpop" => self.blocking_pop(call, out),
            "subscribe" | "psubscribe" | "ssubscribe" => self.subscribe(call, out),
            "unsubscribe" | "punsubscribe" | "sunsubscribe" => self.unsubscribe(call, out),
            "publish" | "spublish" => self.publish(call, out),
            "script|load" => self.script_load(call, out),
            "script|exists" => self.script_exists(call, out),
            "script|flush" => self.script_flush(out),
            "eval" | "evalsha" => self.eval(call, out),
            name if name.starts_with("client|") => self.client(call, out),
            _ => self.run_data(call, out),
        }
    }

    /// Runs a command on keys.
    fn run_data(&mut self, call: &Call<'_>, out: &mut Writer) -> Result<Step, Failure> {
        let db = self.sessions.get(&call.connection).map_or(0, |session| session.db);
        let changed = data::run(&mut self.keyspace, call, db, out)?;
        for key in changed {
            self.key_changed(call.now, call.connection, key);
        }
        Ok(Step::Done)
    }
}

//! Commands that wait for a list, and those who wait.

use std::time::Duration;

use bytes::Bytes;
use towline_resp::writer::Writer;
use towline_sansio::Instant;
use towline_spec::Command;

use super::connection::seconds;
use super::{Call, Step};
use crate::model::failure::Failure;
use crate::model::keyspace::{DbKey, End};
use crate::model::{ConnectionId, Executed, Model};

/// The longest timeout of a blocking command, in seconds, as in Redis: what fits 64 bits of milliseconds.
const TIMEOUT_SECONDS_MAX: f64 = (i64::MAX / 1000) as f64;

/// A connection that waits in `BLPOP` or `BRPOP`.
#[derive(Debug)]
pub(in crate::model) struct Waiter {
    pub(in crate::model) connection: ConnectionId,
    command: &'static Command,
    args: Vec<Bytes>,
    keys: Vec<DbKey>,
    end: End,
    pub(in crate::model) deadline: Option<Instant>,
    /// Its reply is dropped.
    pub(in crate::model) is_swallowed: bool,
}

impl Model {
    /// `BLPOP key [key ...] timeout`
    pub(super) fn blocking_pop(&mut self, call: &Call<'_>, out: &mut Writer) -> Result<Step, Failure> {
        let [_, keys @ .., timeout] = call.args else { return Err(Failure::Syntax) };
        let timeout = seconds(timeout).filter(|timeout| *timeout <= TIMEOUT_SECONDS_MAX);
        let timeout = timeout.ok_or_else(|| Failure::text("ERR timeout is not a float or out of range"))?;
        if timeout < 0.0 {
            return Err(Failure::text("ERR timeout is negative"));
        }
        let end = if call.command.name == "blpop" { End::Left } else { End::Right };
        let db = self.sessions.get(&call.connection).map_or(0, |session| session.db);
        let keys: Vec<DbKey> = keys.iter().map(|key| (db, key.clone())).collect();
        for key in &keys {
            if let Some(element) = self.keyspace.pop(call.now, key, end)? {
                write_popped(out, key, &element);
                self.key_changed(call.now, call.connection, key.clone());
                return Ok(Step::Done);
            }
        }
        if call.is_queued {
            out.null_array();
            return Ok(Step::Done);
        }
        // Less than a nanosecond still is a timeout, and zero is none.
        let deadline = (timeout > 0.0).then(|| {
            call.now
                + Duration::try_from_secs_f64(timeout).unwrap_or(Duration::MAX).max(Duration::from_nanos(1))
        });
        self.waiters.push(Waiter {
            connection: call.connection,
            command: call.command,
            args: call.args.to_vec(),
            keys,
            end,
            deadline,
            is_swallowed: false,
        });
        if let Some(session) = self.sessions.get_mut(&call.connection) {
            session.is_blocked = true;
        }
        Ok(Step::Blocked)
    }

    /// Gives the elements of changed lists to those who wait, the longest waiting first.
    pub(in crate::model) fn serve_waiters(&mut self, now: Instant) {
        while let Some(key) = self.changed.pop_front() {
            while let Some(index) = self.waiters.iter().position(|waiter| waiter.keys.contains(&key)) {
                let Ok(Some(element)) = self.keyspace.pop(now, &key, self.waiters[index].end) else { break };
                let waiter = self.waiters.remove(index);
                let mut out = Writer::new(self.proto_of(waiter.connection));
                write_popped(&mut out, &key, &element);
                self.end_waiter(now, waiter, out);
                // To everybody else the pop is one more change; no one can be waiting for that.
                self.tell_of_change(now, None, &key);
            }
        }
    }

    /// Ends the waits whose time is over.
    pub(in crate::model) fn time_out_waiters(&mut self, now: Instant) {
        while let Some(index) =
            self.waiters.iter().position(|waiter| waiter.deadline.is_some_and(|at| at <= now))
        {
            let waiter = self.waiters.remove(index);
            let mut out = Writer::new(self.proto_of(waiter.connection));
            out.null_array();
            self.end_waiter(now, waiter, out);
        }
    }

    /// Ends a connection's wait from outside; whether it waited.
    pub(in crate::model) fn end_wait(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        is_error: bool,
    ) -> bool {
        let Some(index) = self.waiters.iter().position(|waiter| waiter.connection == connection) else {
            return false;
        };
        let waiter = self.waiters.remove(index);
        let mut out = Writer::new(self.proto_of(connection));
        if is_error {
            out.error("UNBLOCKED client unblocked via CLIENT UNBLOCK");
        } else {
            out.null_array();
        }
        self.end_waiter(now, waiter, out);
        true
    }

    /// Records the waiter's command as executed, sends its reply, and lets its connection go on.
    fn end_waiter(&mut self, now: Instant, waiter: Waiter, mut out: Writer) {
        let failed = out.buf().starts_with(b"-");
        self.record(Executed {
            now,
            connection: waiter.connection,
            command: waiter.command,
            args: &waiter.args,
            transaction: None,
            failed,
        });
        if !waiter.is_swallowed {
            self.emit(now, waiter.connection, out.take().0);
        }
        if let Some(session) = self.sessions.get_mut(&waiter.connection) {
            session.is_blocked = false;
        }
        self.runnable.push_back(waiter.connection);
    }
}

fn write_popped(out: &mut Writer, key: &DbKey, element: &[u8]) {
    out.array(2);
    out.bulk(&key.1);
    out.bulk(element);
}

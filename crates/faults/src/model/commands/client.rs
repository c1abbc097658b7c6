//! `CLIENT`: what a connection says of itself, and power over others.

use bytes::Bytes;
use towline_resp::Proto;
use towline_resp::writer::Writer;

use super::{Call, Step};
use crate::model::failure::Failure;
use crate::model::session::{ReplyMode, Tracking};
use crate::model::{ConnectionId, Model};

impl Model {
    /// `CLIENT <subcommand>`
    pub(super) fn client(&mut self, call: &Call<'_>, out: &mut Writer) -> Result<Step, Failure> {
        match call.command.name {
            "client|kill" => return self.client_kill(call, out),
            "client|unblock" => return self.client_unblock(call, out),
            "client|tracking" => return self.client_tracking(call, out),
            "client|maint_notifications" => return self.client_maint_notifications(call, out),
            _ => {}
        }
        let Some(session) = self.sessions.get_mut(&call.connection) else { return Ok(Step::Silent) };
        match call.command.name {
            "client|id" => out.int(session.client_id.cast_signed()),
            "client|getname" if session.name.is_empty() => out.null(),
            "client|getname" => out.bulk(&session.name),
            "client|setname" => {
                check_printable(&call.args[2], "Client names")?;
                session.name = call.args[2].clone();
                out.ok();
            }
            "client|setinfo" if call.is(2, "lib-name") || call.is(2, "lib-ver") => {
                check_printable(&call.args[3], &String::from_utf8_lossy(&call.args[2]))?;
                out.ok();
            }
            "client|setinfo" => {
                let option = String::from_utf8_lossy(&call.args[2]).into_owned();
                return Err(Failure::text(format!("ERR Unrecognized option '{option}'")));
            }
            "client|no-evict" | "client|no-touch" if call.is(2, "on") || call.is(2, "off") => out.ok(),
            "client|reply" if call.is(2, "on") => {
                session.reply_mode = ReplyMode::On;
                out.ok();
            }
            "client|reply" if call.is(2, "off") => {
                session.reply_mode = ReplyMode::Off;
                return Ok(Step::Silent);
            }
            "client|reply" if call.is(2, "skip") => {
                if session.reply_mode != ReplyMode::Off {
                    session.reply_mode = ReplyMode::SkipNext;
                }
                return Ok(Step::Silent);
            }
            "client|no-evict" | "client|no-touch" | "client|reply" => return Err(Failure::Syntax),
            name => return Err(Failure::text(format!("ERR the model server does not have '{name}'"))),
        }
        Ok(Step::Done)
    }

    /// The connection with this `CLIENT ID`.
    fn by_client_id(&self, id: i64) -> Option<ConnectionId> {
        let id = u64::try_from(id).ok()?;
        self.sessions.iter().find(|(_, session)| session.client_id == id).map(|(connection, _)| *connection)
    }

    /// `CLIENT KILL ID client-id [SKIPME yes|no]`
    fn client_kill(&mut self, call: &Call<'_>, out: &mut Writer) -> Result<Step, Failure> {
        let (mut id, mut is_self_safe, mut at) = (None, true, 2);
        while at + 1 < call.args.len() {
            if call.is(at, "id") {
                id = Some(
                    call.int(at + 1).map_err(|_| Failure::text("ERR client-id should be greater than 0"))?,
                );
            } else if call.is(at, "skipme") && (call.is(at + 1, "yes") || call.is(at + 1, "no")) {
                is_self_safe = call.is(at + 1, "yes");
            } else {
                return Err(Failure::Syntax);
            }
            at += 2;
        }
        let (Some(id), true) = (id, at == call.args.len()) else { return Err(Failure::Syntax) };
        let target = self.by_client_id(id).filter(|target| !is_self_safe || *target != call.connection);
        out.int(i64::from(target.is_some()));
        match target {
            Some(target) if target == call.connection => return Ok(Step::Close),
            Some(target) => self.close(call.now, target),
            None => {}
        }
        Ok(Step::Done)
    }

    /// `CLIENT UNBLOCK client-id [TIMEOUT | ERROR]`
    fn client_unblock(&mut self, call: &Call<'_>, out: &mut Writer) -> Result<Step, Failure> {
        let is_error = match call.args.len() {
            3 => false,
            4 if call.is(3, "timeout") => false,
            4 if call.is(3, "error") => true,
            _ => return Err(Failure::text("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")),
        };
        let target = self.by_client_id(call.int(2)?);
        let is_ended = target.is_some_and(|target| self.end_wait(call.now, target, is_error));
        out.int(i64::from(is_ended));
        Ok(Step::Done)
    }

    /// `CLIENT TRACKING <ON | OFF> [PREFIX prefix ...] [BCAST] [NOLOOP]`
    fn client_tracking(&mut self, call: &Call<'_>, out: &mut Writer) -> Result<Step, Failure> {
        let (mut tracking, mut at) = (Tracking::default(), 3);
        while at < call.args.len() {
            if call.is(at, "bcast") {
                tracking.is_broadcast = true;
            } else if call.is(at, "noloop") {
                tracking.is_without_own = true;
            } else if call.is(at, "prefix") && at + 1 < call.args.len() {
                at += 1;
                tracking.prefixes.push(call.args[at].clone());
            } else {
                return Err(Failure::Syntax);
            }
            at += 1;
        }
        if !tracking.prefixes.is_empty() && !tracking.is_broadcast {
            return Err(Failure::text("ERR PREFIX option requires BCAST mode to be enabled"));
        }
        let is_on = call.is(2, "on");
        if !is_on && !call.is(2, "off") {
            return Err(Failure::Syntax);
        }
        let Some(session) = self.sessions.get_mut(&call.connection) else { return Ok(Step::Silent) };
        if is_on && session.proto == Proto::Resp2 {
            return Err(Failure::text("ERR the model server tracks for RESP3 connections only"));
        }
        session.tracking = is_on.then_some(tracking);
        if !is_on {
            self.forget_tracked(call.connection);
        }
        out.ok();
        Ok(Step::Done)
    }

    /// Remembers that a connection has read these keys, if it wants to be told of changes.
    pub(in crate::model) fn track_read(&mut self, connection: ConnectionId, keys: &[Bytes]) {
        let tracking = self.sessions.get(&connection).and_then(|session| session.tracking.as_ref());
        if tracking.is_some_and(|tracking| !tracking.is_broadcast) {
            for key in keys {
                self.tracked.entry(key.clone()).or_default().insert(connection);
            }
        }
    }

    /// Forgets what a connection has read.
    pub(in crate::model) fn forget_tracked(&mut self, connection: ConnectionId) {
        self.tracked.retain(|_, readers| {
            readers.remove(&connection);
            !readers.is_empty()
        });
    }
}

/// Names are shown on one line of fields, so they have neither spaces nor line ends.
fn check_printable(name: &[u8], what: &str) -> Result<(), Failure> {
    if name.iter().all(u8::is_ascii_graphic) {
        return Ok(());
    }
    Err(Failure::text(format!("ERR {what} cannot contain spaces, newlines or special characters.")))
}

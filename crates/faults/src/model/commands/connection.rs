//! The handshake and what a connection is told about the server.

use std::time::Duration;

use bytes::Bytes;
use towline_resp::Proto;
use towline_resp::number::parse_i64;
use towline_resp::writer::Writer;

use super::{Call, Step};
use crate::model::config::AuthFailure;
use crate::model::failure::Failure;
use crate::model::keyspace::DATABASES;
use crate::model::{ConnectionId, Model};

const WRONG_PASSWORD: &str = "WRONGPASS invalid username-password pair or user is disabled.";

/// The longest `DEBUG SLEEP`, in seconds: an hour, so that a typing error does not end a simulation.
const SLEEP_SECONDS_MAX: f64 = 3600.0;

impl Model {
    /// `HELLO [protover [AUTH username password] [SETNAME clientname]]`
    pub(super) fn hello(&mut self, call: &Call<'_>, out: &mut Writer) -> Result<Step, Failure> {
        let proto = match call.args.get(1).map(|version| parse_i64(version)) {
            None => None,
            Some(Some(2)) => Some(Proto::Resp2),
            Some(Some(3)) => Some(Proto::Resp3),
            Some(Some(_)) => return Err(Failure::text("NOPROTO unsupported protocol version")),
            Some(None) => {
                return Err(Failure::text("ERR Protocol version is not an integer or out of range"));
            }
        };
        let (mut credentials, mut name, mut at) = (None, None, 2);
        while at < call.args.len() {
            if call.is(at, "auth") && at + 2 < call.args.len() {
                credentials = Some((&call.args[at + 1], &call.args[at + 2]));
                at += 3;
            } else if call.is(at, "setname") && at + 1 < call.args.len() {
                name = Some(call.args[at + 1].clone());
                at += 2;
            } else {
                let option = String::from_utf8_lossy(&call.args[at]).into_owned();
                return Err(Failure::text(format!("ERR Syntax error in HELLO option '{option}'")));
            }
        }
        if let Some((user, password)) = credentials {
            self.authenticate(call.connection, user, password)?;
        }
        let Some(session) = self.sessions.get_mut(&call.connection) else { return Ok(Step::Silent) };
        if !session.is_authenticated {
            return Err(Failure::text(
                "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH \
                 <user> <pass> option can be used to authenticate the client and select the RESP protocol version \
                 at the same time",
            ));
        }
        if let Some(name) = name {
            session.name = name;
        }
        if let Some(proto) = proto {
            session.proto = proto;
            out.proto = proto;
        }
        let (proto, id) = (session.proto, session.client_id);
        self.hello_reply(proto, id, out);
        Ok(Step::Done)
    }

    fn hello_reply(&self, proto: Proto, client_id: u64, out: &mut Writer) {
        out.map(7);
        out.bulk(b"server");
        out.bulk(b"redis");
        out.bulk(b"version");
        out.bulk(self.config.version.as_bytes());
        out.bulk(b"proto");
        out.int(if proto == Proto::Resp3 { 3 } else { 2 });
        out.bulk(b"id");
        out.int(client_id.cast_signed());
        out.bulk(b"mode");
        out.bulk(b"standalone");
        out.bulk(b"role");
        out.bulk(b"master");
        out.bulk(b"modules");
        out.array(0);
    }

    /// `AUTH [username] password`
    pub(super) fn auth(&mut self, call: &Call<'_>, out: &mut Writer) -> Result<Step, Failure> {
        let default = Bytes::from_static(b"default");
        let (user, password) = match call.args {
            [_, password] if self.config.password.is_some() => (&default, password),
            [_, _] => {
                return Err(Failure::text(
                    "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
                     configuration is correct?",
                ));
            }
            [_, user, password] => (user, password),
            _ => return Err(Failure::Syntax),
        };
        match self.authenticate(call.connection, user, password) {
            Ok(()) => {
                out.ok();
                Ok(Step::Done)
            }
            Err(_) if !call.is_first && self.config.auth_failure == AuthFailure::SilentUnlessFirst => {
                Ok(Step::Silent)
            }
            Err(failure) => Err(failure),
        }
    }

    fn authenticate(
        &mut self,
        connection: ConnectionId,
        user: &[u8],
        password: &[u8],
    ) -> Result<(), Failure> {
        let is_right = user == b"default"
            && self.config.password.as_ref().is_none_or(|expected| expected.as_bytes() == password);
        if !is_right {
            return Err(Failure::text(WRONG_PASSWORD));
        }
        if let Some(session) = self.sessions.get_mut(&connection) {
            session.is_authenticated = true;
        }
        Ok(())
    }

    /// `PING [message]`
    pub(super) fn ping(&self, call: &Call<'_>, out: &mut Writer) -> Result<Step, Failure> {
        let is_confined = self.sessions.get(&call.connection).is_some_and(|session| session.is_confined());
        match call.args {
            [_] if is_confined => {
                out.array(2);
                out.bulk(b"pong");
                out.bulk(b"");
            }
            [_, message] if is_confined => {
                out.array(2);
                out.bulk(b"pong");
                out.bulk(message);
            }
            [_] => out.simple("PONG"),
            [_, message] => out.bulk(message),
            _ => return Err(Failure::text("ERR wrong number of arguments for 'ping' command")),
        }
        Ok(Step::Done)
    }

    /// `SELECT index`
    pub(super) fn select(&mut self, call: &Call<'_>, out: &mut Writer) -> Result<Step, Failure> {
        let db = u32::try_from(call.int(1)?).ok().filter(|&db| db < DATABASES);
        let db = db.ok_or_else(|| Failure::text("ERR DB index is out of range"))?;
        if let Some(session) = self.sessions.get_mut(&call.connection) {
            session.db = db;
        }
        out.ok();
        Ok(Step::Done)
    }

    /// `RESET`
    pub(super) fn reset_session(&mut self, call: &Call<'_>, out: &mut Writer) -> Result<Step, Failure> {
        let needs_password = self.config.password.is_some();
        if let Some(session) = self.sessions.get_mut(&call.connection) {
            session.reset(!needs_password);
        }
        self.forget_tracked(call.connection);
        out.proto = Proto::Resp2;
        out.simple("RESET");
        Ok(Step::Done)
    }

    /// `INFO [section ...]`: always everything that the model has.
    pub(super) fn info(&self, out: &mut Writer) -> Result<Step, Failure> {
        let text = format!(
            "# Server\r\nredis_version:{}\r\nredis_mode:standalone\r\nrun_id:{}\r\n\r\n# Clients\r\nconnected_clients:{}\r\n\
             blocked_clients:{}\r\n\r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n",
            self.config.version,
            self.run_id(),
            self.sessions.len(),
            self.waiters.len(),
        );
        out.verbatim(b"txt", &text);
        Ok(Step::Done)
    }

    /// 40 hexadecimal digits that differ from life to life.
    fn run_id(&self) -> String {
        format!("{:040x}", u128::from(self.generation) + 1)
    }

    /// `CONFIG GET parameter [parameter ...]`: the few that clients ask for.
    pub(super) fn config_get(&self, call: &Call<'_>, out: &mut Writer) -> Result<Step, Failure> {
        let databases = DATABASES.to_string();
        let known = [
            ("databases", databases.as_str()),
            ("replica-read-only", "yes"),
            ("timeout", "0"),
            ("maxmemory", "0"),
        ];
        let is_asked = |name: &str| {
            call.args[2..]
                .iter()
                .any(|pattern| crate::model::glob::matches(&pattern.to_ascii_lowercase(), name.as_bytes()))
        };
        let found: Vec<_> = known.into_iter().filter(|(name, _)| is_asked(name)).collect();
        out.map(found.len());
        for (name, value) in found {
            out.bulk(name.as_bytes());
            out.bulk(value.as_bytes());
        }
        Ok(Step::Done)
    }

    /// `DEBUG SLEEP seconds`: the server does nothing else until then, and its reply comes with the end of it.
    pub(super) fn debug_sleep(&mut self, call: &Call<'_>, out: &mut Writer) -> Result<Step, Failure> {
        let seconds = seconds(&call.args[2]).filter(|seconds| (0.0..=SLEEP_SECONDS_MAX).contains(seconds));
        let seconds = seconds.ok_or_else(|| Failure::text("ERR value is not a valid float"))?;
        let until = call.now + Duration::from_secs_f64(seconds);
        self.busy_until = self.busy_until.max(Some(until));
        if let Some(session) = self.sessions.get_mut(&call.connection) {
            session.last_due = session.last_due.max(until);
        }
        out.ok();
        Ok(Step::Done)
    }
}

/// A finite number of seconds.
pub(super) fn seconds(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse::<f64>().ok().filter(|seconds| seconds.is_finite())
}

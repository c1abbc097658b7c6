//! The start of a connection.
//!
//! Owns what is said before the first command of a caller, in one pipelined batch, and what the replies mean. Does
//! not own sockets, TLS, the pace of dialling, nor when credentials are renewed ([`ReAuth`] only knows how).
//!
//! ```text
//! start(config) --bytes--> AUTH, HELLO, SELECT, READONLY, ROLE, CLIENT SETNAME, CLIENT SETINFO x2, CLIENT ID,
//!                          CLIENT MAINT_NOTIFICATIONS, CLIENT TRACKING, extra commands, PING token
//!                              |
//!                          on_frame, one reply at a time
//!                              |
//!             +----------------+------------------+
//!          NeedMore          Ready             Failed: close the connection
//! ```
//!
//! * `AUTH` comes first and `HELLO` carries no credentials. Redis 8 leaves a *refused* `AUTH` (or `HELLO ... AUTH`)
//!   without a reply unless it is the first command of what the server reads at once; every later reply would then
//!   answer the wrong command. A batch that begins with `AUTH` always gets its reply; should a peer swallow it all
//!   the same, the reply in its place cannot be one to `AUTH`, and the attempt ends at once with
//!   [`HandshakeError::AuthUnanswered`] instead of a timeout.
//! * The tracer, a `PING` with a token that no other reply can contain, proves that replies line up. It is `PING`
//!   and not `ECHO` because a server that is loading, or a replica without its primary, refuses only the former.
//! * Pushes in between are skipped. Those that matter, notifications of maintenance, are read by the bridge.

mod config;
mod error;
mod reauth;

#[cfg(test)]
mod tests;

use bytes::{BufMut, Bytes};
use towline_resp::Proto;
use towline_resp::frame::{Frame, encode_command};
use towline_sansio::Instant;

use crate::server_error::{ServerClass, ServerError};

pub use config::{
    Credentials, ExtraCommand, HandshakeConfig, MaintenanceRequest, Peer, ProtocolChoice, Tracking,
};
pub use error::{HandshakeError, Step};
pub use reauth::{ReAuth, ReAuthProgress};

/// One connection's handshake, from its batch to its last reply.
#[derive(Debug)]
pub struct Handshake {
    /// The commands of the batch, in order; the first `answered` of them have their replies.
    steps: Vec<Step>,
    answered: usize,
    tracer: Tracer,
    deadline: Instant,
    protocol: ProtocolChoice,
    database: u32,
    /// Extra commands whose refusal ends the attempt, by their places.
    required: Vec<u16>,
    /// Whether notifications of maintenance are required.
    needs_maintenance: bool,
    needs_primary: bool,
    ready: Ready,
}

/// What is to be done after a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// More replies are due.
    NeedMore,
    /// The connection may be used.
    Ready(Box<Ready>),
    /// It may not; close it. Later calls say the same of every frame.
    Failed(HandshakeError),
}

/// What the handshake found out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ready {
    /// The protocol that the connection speaks now.
    pub protocol: Proto,
    /// The connection's number on the server, for `CLIENT UNBLOCK` and `CLIENT KILL`.
    pub client_id: Option<i64>,
    /// Whether the server announces its maintenance on this connection.
    pub has_maintenance: bool,
    /// Whether the server announces changes of what this connection reads.
    pub has_tracking: bool,
    /// What the server told about itself.
    pub server: ServerInfo,
    /// Commands that the server refused although the connection is usable without them.
    pub refused: Vec<(Step, ServerError)>,
}

/// What `HELLO` told; empty where the server does not know the command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerInfo {
    /// `redis`, `valkey`, or what another implementation calls itself.
    pub name: Option<Box<str>>,
    /// Its version, as sent.
    pub version: Option<Box<str>>,
    /// How it is run.
    pub mode: ServerMode,
    /// `master` or `replica`, as sent.
    pub role: Option<Box<str>>,
    /// Where it runs, if it says so.
    pub availability_zone: Option<Box<str>>,
}

/// How a server is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ServerMode {
    /// It did not say, or said something else.
    #[default]
    Unknown,
    /// On its own, replicas or not.
    Standalone,
    /// As a node of a cluster.
    Cluster,
    /// As a sentinel.
    Sentinel,
}

impl Handshake {
    /// Appends the whole batch to `out`. It must be the first that the connection sends. `token` should differ
    /// from connection to connection.
    pub fn start(config: &HandshakeConfig, now: Instant, token: u64, out: &mut impl BufMut) -> Self {
        let tracer = Tracer::new(config.peer, token);
        let mut batch = Batch { steps: Vec::new(), out };
        if let Some(credentials) = &config.credentials {
            batch.add(Step::Auth, &credentials.auth());
        }
        let is_server = config.peer == Peer::Server;
        if is_server {
            let version = if config.protocol == ProtocolChoice::Resp2 { "2" } else { "3" };
            batch.add(Step::Hello, &["HELLO", version]);
        }
        if config.database != 0 {
            let mut digits = itoa::Buffer::new();
            batch.add(Step::Select, &["SELECT", digits.format(config.database)]);
        }
        if config.is_read_only {
            batch.add(Step::ReadOnly, &["READONLY"]);
        }
        if config.is_primary_required {
            batch.add(Step::Role, &["ROLE"]);
        }
        if is_server {
            if let Some(name) = &config.client_name {
                batch.add(Step::SetName, &["CLIENT", "SETNAME", name]);
            }
            for (what, value) in [("LIB-NAME", &config.library_name), ("LIB-VER", &config.library_version)] {
                if let Some(value) = value {
                    batch.add(Step::SetInfo, &["CLIENT", "SETINFO", what, value]);
                }
            }
            batch.add(Step::ClientId, &["CLIENT", "ID"]);
        }
        let maintenance =
            config.maintenance.filter(|_| is_server && config.protocol != ProtocolChoice::Resp2);
        if let Some(request) = maintenance {
            let mut args = vec!["CLIENT", "MAINT_NOTIFICATIONS", "ON"];
            args.extend(
                request.moving_endpoint_type.map(|form| ["moving-endpoint-type", form]).iter().flatten(),
            );
            batch.add(Step::Maintenance, &args);
        }
        let can_push = is_server && config.protocol != ProtocolChoice::Resp2;
        if let Some(tracking) = config.tracking.as_ref().filter(|_| can_push) {
            batch.add(Step::Tracking, &tracking.command());
        }
        let mut required = Vec::new();
        for (index, extra) in (0_u16..).zip(&config.extra) {
            batch.add(Step::Extra(index), &extra.args);
            if extra.is_required {
                required.push(index);
            }
        }
        batch.add(Step::Tracer, &tracer.command());
        let steps = batch.steps;
        Self {
            steps,
            answered: 0,
            tracer,
            deadline: now + config.timeout,
            protocol: config.protocol,
            database: config.database,
            required,
            needs_maintenance: config.maintenance.is_some_and(|request| request.is_required),
            needs_primary: config.is_primary_required,
            ready: Ready::default(),
        }
    }

    /// The first command without a reply; the tracer once all have one.
    pub fn step(&self) -> Step {
        self.steps.get(self.answered).copied().unwrap_or(Step::Tracer)
    }

    /// When [`Handshake::handle_timeout`] is due.
    pub const fn poll_timeout(&self) -> Instant {
        self.deadline
    }

    /// The failure, if the time is over.
    pub fn handle_timeout(&self, now: Instant) -> Option<HandshakeError> {
        (now >= self.deadline).then(|| HandshakeError::Timeout { step: self.step() })
    }

    /// Takes the next frame of the connection. After [`Progress::Ready`] the handshake is over.
    pub fn on_frame(&mut self, frame: Frame) -> Progress {
        if matches!(frame, Frame::Push(_)) {
            return Progress::NeedMore;
        }
        let frame = frame.without_attributes();
        match self.on_reply(self.step(), &frame) {
            Err(error) => Progress::Failed(error),
            Ok(()) => {
                self.answered += 1;
                if self.answered < self.steps.len() {
                    Progress::NeedMore
                } else if self.needs_maintenance && !self.ready.has_maintenance {
                    Progress::Failed(HandshakeError::NoMaintenance)
                } else if let Some(role) = self.other_role() {
                    Progress::Failed(HandshakeError::NotPrimary { role })
                } else {
                    Progress::Ready(Box::new(std::mem::take(&mut self.ready)))
                }
            }
        }
    }

    /// What the server is, if it is not what it has to be. Where nothing tells, its refusals will.
    fn other_role(&self) -> Option<Box<str>> {
        let role = self.ready.server.role.as_ref().filter(|_| self.needs_primary)?;
        (!matches!(&**role, "master" | "primary")).then(|| role.clone())
    }

    fn on_reply(&mut self, step: Step, frame: &Frame) -> Result<(), HandshakeError> {
        let answer = ServerError::from_frame(frame);
        match step {
            Step::Auth => return auth_result(frame, answer),
            Step::Tracer => return self.tracer.check(frame, answer),
            _ => {}
        }
        if let Some(answer) = answer {
            return self.on_refusal(step, answer);
        }
        let has_shape = match (step, frame) {
            // The tracer's reply in another command's place: a reply is missing.
            (_, frame) if self.tracer.is_reply(frame) => false,
            (Step::Hello, Frame::Map(_) | Frame::Array(_)) => {
                self.on_hello(frame);
                true
            }
            (Step::ClientId, Frame::Integer(id)) => {
                self.ready.client_id = Some(*id);
                true
            }
            (Step::Maintenance, frame) if is_ok(frame) => {
                // Where the server speaks RESP2 it cannot push, whatever it says.
                self.ready.has_maintenance = self.ready.protocol == Proto::Resp3;
                true
            }
            (Step::Role, Frame::Array(parts)) => {
                self.ready.server.role = parts.first().and_then(owned_text);
                self.ready.server.role.is_some()
            }
            (Step::Tracking, frame) if is_ok(frame) => {
                // On RESP2 the server agrees and then has no way to say anything.
                self.ready.has_tracking = self.ready.protocol == Proto::Resp3;
                true
            }
            (Step::Extra(_), _) => true,
            (Step::Hello | Step::ClientId | Step::Role, _) => false,
            (_, frame) => is_ok(frame),
        };
        if has_shape { Ok(()) } else { Err(HandshakeError::Desync) }
    }

    fn on_refusal(&mut self, step: Step, answer: ServerError) -> Result<(), HandshakeError> {
        let is_plain = answer.class() == ServerClass::Answer && !matches!(answer.code(), "NOAUTH" | "DENIED");
        let may_go_on = match step {
            Step::Hello => self.protocol != ProtocolChoice::Resp3,
            Step::Select => false,
            Step::Maintenance => !self.needs_maintenance,
            Step::Extra(index) => !self.required.contains(&index),
            _ => true,
        };
        if is_plain && may_go_on {
            self.ready.refused.push((step, answer));
            return Ok(());
        }
        Err(match step {
            Step::Hello if is_plain => HandshakeError::ProtocolRefused(answer),
            Step::Select if is_plain && answer.code() != "NOPERM" => {
                HandshakeError::NoSuchDatabase { database: self.database, answer }
            }
            _ => HandshakeError::from_answer(step, answer),
        })
    }

    /// Reads a map (RESP3) or the same as a flat array (RESP2). What is missing or strange stays unknown.
    fn on_hello(&mut self, frame: &Frame) {
        let mut entry = |key: &Frame, value: &Frame| {
            let info = &mut self.ready.server;
            match text(key) {
                Some(b"proto") if *value == Frame::Integer(3) => self.ready.protocol = Proto::Resp3,
                Some(b"server") => info.name = owned_text(value),
                Some(b"version") => info.version = owned_text(value),
                Some(b"role") => info.role = owned_text(value),
                Some(b"availability_zone") => {
                    info.availability_zone = owned_text(value).filter(|zone| !zone.is_empty());
                }
                Some(b"mode") => {
                    info.mode = match text(value) {
                        Some(b"standalone") => ServerMode::Standalone,
                        Some(b"cluster") => ServerMode::Cluster,
                        Some(b"sentinel") => ServerMode::Sentinel,
                        _ => ServerMode::Unknown,
                    };
                }
                _ => {}
            }
        };
        match frame {
            Frame::Map(pairs) => pairs.iter().for_each(|(key, value)| entry(key, value)),
            Frame::Array(values) => {
                values.chunks_exact(2).for_each(|pair| entry(&pair[0], &pair[1]));
            }
            _ => {}
        }
    }
}

/// What a reply in `AUTH`'s place says.
fn auth_result(frame: &Frame, answer: Option<ServerError>) -> Result<(), HandshakeError> {
    match answer {
        None if is_ok(frame) => Ok(()),
        // Neither an agreement nor a refusal: this answers a later command.
        None => Err(HandshakeError::AuthUnanswered),
        // AUTH itself needs no authentication, so this too answers a later command.
        Some(answer) if answer.code() == "NOAUTH" => Err(HandshakeError::AuthUnanswered),
        Some(answer) => Err(match (answer.class(), answer.code()) {
            (ServerClass::Answer, "NOPERM" | "DENIED") => HandshakeError::from_answer(Step::Auth, answer),
            // WRONGPASS, and what older servers say: invalid password, no password set, no such form of AUTH.
            (ServerClass::Answer, _) => HandshakeError::WrongPassword(answer),
            _ => HandshakeError::from_answer(Step::Auth, answer),
        }),
    }
}

/// The command that proves that replies line up.
#[derive(Debug, Clone)]
struct Tracer {
    /// `None` where the peer takes no argument to `PING`; the number of replies is then the only proof.
    token: Option<Bytes>,
}

impl Tracer {
    fn new(peer: Peer, token: u64) -> Self {
        Self { token: (peer == Peer::Server).then(|| Bytes::from(format!("towline-{token:016x}"))) }
    }

    fn command(&self) -> Vec<&[u8]> {
        let mut command: Vec<&[u8]> = vec![b"PING"];
        command.extend(self.token.as_deref());
        command
    }

    fn is_reply(&self, frame: &Frame) -> bool {
        match &self.token {
            Some(token) => text(frame) == Some(token),
            None => text(frame) == Some(b"PONG"),
        }
    }

    fn check(&self, frame: &Frame, answer: Option<ServerError>) -> Result<(), HandshakeError> {
        match answer {
            None if self.is_reply(frame) => Ok(()),
            None => Err(HandshakeError::Desync),
            // A user without this permission; the text names the command, which is as good a proof.
            Some(answer) if answer.code() == "NOPERM" => {
                if answer.message().to_ascii_lowercase().contains("'ping'") {
                    Ok(())
                } else {
                    Err(HandshakeError::Desync)
                }
            }
            Some(answer) => Err(HandshakeError::from_answer(Step::Tracer, answer)),
        }
    }
}

/// The batch while it is built: a step for every command.
struct Batch<'a, B> {
    steps: Vec<Step>,
    out: &'a mut B,
}

impl<B: BufMut> Batch<'_, B> {
    fn add<A: AsRef<[u8]>>(&mut self, step: Step, args: &[A]) {
        self.steps.push(step);
        encode_command(args, self.out);
    }
}

fn is_ok(frame: &Frame) -> bool {
    text(frame) == Some(b"OK")
}

/// A string of either kind.
fn text(frame: &Frame) -> Option<&[u8]> {
    match frame {
        Frame::Simple(text) | Frame::Bulk(text) => Some(text),
        _ => None,
    }
}

fn owned_text(frame: &Frame) -> Option<Box<str>> {
    text(frame).map(|text| String::from_utf8_lossy(text).into())
}

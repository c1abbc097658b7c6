//! Maintenance that the model server announces: moves of an endpoint, and the notices around other work.
//!
//! ```text
//! announce_moving ──> MOVING to those who asked ──> [window] ──> waits end as by timeout ──> those connections close
//! announce        ──> MIGRATING, FAILING_OVER, SMIGRATING stay open until the notice that closes them
//! opt in          ──> every open notice again, with the time that is left
//! ```
//!
//! Owns: endpoints and who may connect to them, what was announced and is open, who is closed when. Does **not** own
//! what a successor is: it is text, and the driver decides which endpoint it names. Moves no data either, for all
//! endpoints have the same.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use towline_resp::Proto;
use towline_resp::frame::Frame;
use towline_resp::writer::Writer;
use towline_sansio::Instant;

use super::commands::{Call, Step};
use super::failure::Failure;
use super::{ConnectionId, Model};

/// One address that the server is reached at. All of them have one keyspace and one ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EndpointId(pub u32);

impl EndpointId {
    /// The endpoint of connections whose driver names none.
    pub const DEFAULT: Self = Self(0);
}

/// What becomes of new connections to an endpoint. Connections that are open keep on as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Access {
    /// They are served. The default.
    #[default]
    Serving,
    /// They are not accepted: [`ConnectError::Refused`](super::ConnectError::Refused).
    Refusing,
    /// They are accepted, and as long as they live nothing is read from them and nothing sent.
    Silent,
}

/// The form of a successor that a connection asked for by `moving-endpoint-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointForm {
    /// None was named, so the server chooses.
    ServerDefault,
    /// `internal-ip`
    InternalIp,
    /// `internal-fqdn`
    InternalFqdn,
    /// `external-ip`
    ExternalIp,
    /// `external-fqdn`
    ExternalFqdn,
    /// `none`: the successor is always null, and the client connects to where it was configured to.
    None,
}

/// The slots that have moved between two nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotMove {
    /// `host:port` that had them.
    pub source: String,
    /// `host:port` that has them now.
    pub destination: String,
    /// Numbers and ranges, as in `1,5-7`.
    pub slots: String,
}

/// A notice other than `MOVING`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A migration of shards starts after this time. Open until [`Notice::Migrated`].
    Migrating {
        /// From now on; whole seconds are told, the rest is cut off.
        starts_in: Duration,
        /// A JSON array of shards as text.
        shards: String,
    },
    /// It is over.
    Migrated {
        /// A JSON array of shards as text.
        shards: String,
    },
    /// A failover starts after this time. Open until [`Notice::FailedOver`].
    FailingOver {
        /// From now on; whole seconds are told, the rest is cut off.
        starts_in: Duration,
        /// A JSON array of shards as text.
        shards: String,
    },
    /// It is over.
    FailedOver {
        /// A JSON array of shards as text.
        shards: String,
    },
    /// Slots are about to move. Open until [`Notice::Smigrated`].
    Smigrating {
        /// Numbers and ranges, as in `1,5-7`.
        slots: String,
    },
    /// Slots have moved.
    Smigrated {
        /// From where to where.
        moves: Vec<SlotMove>,
    },
}

impl Notice {
    /// When that begins which it speaks of.
    fn starts_at(&self, now: Instant) -> Instant {
        match self {
            Self::Migrating { starts_in, .. } | Self::FailingOver { starts_in, .. } => now + *starts_in,
            Self::Migrated { .. }
            | Self::FailedOver { .. }
            | Self::Smigrating { .. }
            | Self::Smigrated { .. } => now,
        }
    }

    /// Whether it stays open, for connections that come later.
    const fn is_opening(&self) -> bool {
        matches!(self, Self::Migrating { .. } | Self::FailingOver { .. } | Self::Smigrating { .. })
    }

    /// Whether it closes an open one.
    const fn closes(&self, open: &Self) -> bool {
        matches!(
            (self, open),
            (Self::Migrated { .. }, Self::Migrating { .. })
                | (Self::FailedOver { .. }, Self::FailingOver { .. })
                | (Self::Smigrated { .. }, Self::Smigrating { .. })
        )
    }

    /// What is sent while `left` of its time is left.
    fn frame(&self, seq: u64, left: Duration) -> Frame {
        match self {
            Self::Migrating { shards, .. } => push("MIGRATING", seq, [seconds(left), bulk(shards)]),
            Self::Migrated { shards } => push("MIGRATED", seq, [bulk(shards)]),
            Self::FailingOver { shards, .. } => push("FAILING_OVER", seq, [seconds(left), bulk(shards)]),
            Self::FailedOver { shards } => push("FAILED_OVER", seq, [bulk(shards)]),
            Self::Smigrating { slots } => push("SMIGRATING", seq, [bulk(slots)]),
            Self::Smigrated { moves } => {
                let triplet = |moved: &SlotMove| {
                    Frame::Array(vec![bulk(&moved.source), bulk(&moved.destination), bulk(&moved.slots)])
                };
                push("SMIGRATED", seq, [Frame::Array(moves.iter().map(triplet).collect())])
            }
        }
    }
}

fn bulk(text: &str) -> Frame {
    Frame::Bulk(Bytes::copy_from_slice(text.as_bytes()))
}

/// Whole seconds: a client must not believe that it has more time than there is.
fn seconds(left: Duration) -> Frame {
    Frame::Integer(left.as_secs().cast_signed())
}

fn push<const N: usize>(name: &str, seq: u64, rest: [Frame; N]) -> Frame {
    let head = [bulk(name), Frame::Integer(seq.cast_signed())];
    Frame::Push(head.into_iter().chain(rest).collect())
}

/// An endpoint that is about to be left.
#[derive(Debug)]
struct Move {
    from: EndpointId,
    seq: u64,
    until: Instant,
    successor: Option<String>,
    /// Who was there when it was announced, and is closed at the end.
    connections: Vec<ConnectionId>,
}

impl Move {
    fn frame(&self, now: Instant, form: EndpointForm) -> Frame {
        let successor = self.successor.as_ref().filter(|_| form != EndpointForm::None);
        let successor = successor.map_or(Frame::Null, |text| bulk(text));
        push("MOVING", self.seq, [seconds(self.until.since(now)), successor])
    }
}

/// An open notice.
#[derive(Debug)]
struct Open {
    scope: Option<EndpointId>,
    seq: u64,
    starts_at: Instant,
    notice: Notice,
}

/// What the server knows of maintenance. As large as the driver makes it: clients cannot add to it.
#[derive(Debug, Default)]
pub(super) struct Maintenance {
    access: BTreeMap<EndpointId, Access>,
    moves: Vec<Move>,
    open: Vec<Open>,
}

impl Maintenance {
    pub(super) fn access(&self, endpoint: EndpointId) -> Access {
        self.access.get(&endpoint).copied().unwrap_or_default()
    }

    /// Forgets what was announced. Access stays as it is.
    pub(super) fn forget(&mut self) {
        self.moves.clear();
        self.open.clear();
    }

    /// When the windows end.
    pub(super) fn ends(&self) -> impl Iterator<Item = Instant> {
        self.moves.iter().map(|moving| moving.until)
    }
}

impl Model {
    /// Says what becomes of new connections to an endpoint.
    pub fn set_access(&mut self, endpoint: EndpointId, access: Access) {
        self.maintenance.access.insert(endpoint, access);
    }

    /// The open connections of an endpoint, in the order of their names.
    pub fn connections_of(&self, endpoint: EndpointId) -> impl Iterator<Item = ConnectionId> {
        self.sessions.iter().filter(move |(_, session)| session.endpoint == endpoint).map(|(id, _)| *id)
    }

    /// The form of successors that a connection asked for; `None` if it does not want to be told of maintenance.
    pub fn notified(&self, connection: ConnectionId) -> Option<EndpointForm> {
        self.sessions.get(&connection)?.notified
    }

    /// Announces that the connections of `from` end when `window` is over. Those that asked to be told get `MOVING` with
    /// the whole seconds of the window and `successor` (null if there is none, or if they wanted none), and so does whoever
    /// asks before the end. At the end waits on exactly the connections that are open now are released as by their
    /// timeout, what has arrived is executed, and they are closed. New connections are accepted all along. Returns how many
    /// were told.
    pub fn announce_moving(
        &mut self,
        now: Instant,
        from: EndpointId,
        window: Duration,
        successor: Option<&str>,
        seq: u64,
    ) -> usize {
        self.handle_timeout(now);
        let connections: Vec<ConnectionId> = self.connections_of(from).collect();
        let moving =
            Move { from, seq, until: now + window, successor: successor.map(str::to_owned), connections };
        let told = self.notify(now, Some(from), |form| moving.frame(now, form));
        self.maintenance.moves.push(moving);
        told
    }

    /// Sends a notice to the connections of one endpoint or of all that asked to be told. One that opens something is
    /// sent to those who ask later too, until one that closes it is announced in the same scope. Returns how many were told.
    pub fn announce(&mut self, now: Instant, scope: Option<EndpointId>, seq: u64, notice: Notice) -> usize {
        self.handle_timeout(now);
        let starts_at = notice.starts_at(now);
        let told = self.notify(now, scope, |_| notice.frame(seq, starts_at.since(now)));
        self.maintenance.open.retain(|open| open.scope != scope || !notice.closes(&open.notice));
        if notice.is_opening() {
            self.maintenance.open.push(Open { scope, seq, starts_at, notice });
        }
        told
    }

    /// Closes every connection of an endpoint behind what was written to it. Returns how many.
    pub fn close_endpoint(&mut self, now: Instant, endpoint: EndpointId) -> usize {
        let connections: Vec<ConnectionId> = self.connections_of(endpoint).collect();
        for connection in &connections {
            self.close(now, *connection);
        }
        connections.len()
    }

    fn notify(
        &mut self,
        now: Instant,
        scope: Option<EndpointId>,
        frame: impl Fn(EndpointForm) -> Frame,
    ) -> usize {
        let is_in = |endpoint| scope.is_none_or(|scope| scope == endpoint);
        let told: Vec<(ConnectionId, EndpointForm)> = self
            .sessions
            .iter()
            .filter(|(_, session)| is_in(session.endpoint) && session.proto == Proto::Resp3)
            .filter_map(|(connection, session)| Some((*connection, session.notified?)))
            .collect();
        for (connection, form) in &told {
            self.push(now, *connection, &frame(*form));
        }
        told.len()
    }

    /// Ends the windows whose time is over.
    pub(super) fn end_moves(&mut self, now: Instant) {
        while let Some(index) = self.maintenance.moves.iter().position(|moving| moving.until <= now) {
            let moving = self.maintenance.moves.remove(index);
            for connection in &moving.connections {
                self.end_wait(now, *connection, false);
            }
            self.settle(now);
            for connection in moving.connections {
                self.close(now, connection);
            }
        }
    }

    /// `CLIENT MAINT_NOTIFICATIONS <ON [moving-endpoint-type form] | OFF>`
    pub(super) fn client_maint_notifications(
        &mut self,
        call: &Call<'_>,
        out: &mut Writer,
    ) -> Result<Step, Failure> {
        let form = match call.args.len() {
            3 if call.is(2, "off") => None,
            3 if call.is(2, "on") => Some(EndpointForm::ServerDefault),
            5 if call.is(2, "on") && call.is(3, "moving-endpoint-type") => Some(form_of(call)?),
            _ => return Err(Failure::Syntax),
        };
        let Some(session) = self.sessions.get_mut(&call.connection) else { return Ok(Step::Silent) };
        if session.proto == Proto::Resp2 {
            return Err(Failure::text("ERR maintenance notifications need RESP3: call HELLO 3 first"));
        }
        session.notified = form;
        let endpoint = session.endpoint;
        out.ok();
        if let Some(form) = form {
            self.replay(call.now, call.connection, endpoint, form);
        }
        Ok(Step::Done)
    }

    /// Sends what is open to a connection that asks now, behind the reply to it.
    fn replay(&mut self, now: Instant, connection: ConnectionId, endpoint: EndpointId, form: EndpointForm) {
        let moves = self.maintenance.moves.iter().filter(|moving| moving.from == endpoint);
        let moves = moves.map(|moving| moving.frame(now, form));
        let open =
            self.maintenance.open.iter().filter(|open| open.scope.is_none_or(|scope| scope == endpoint));
        let open = open.map(|open| open.notice.frame(open.seq, open.starts_at.since(now)));
        let frames: Vec<Frame> = moves.chain(open).collect();
        for frame in frames {
            self.tell(now, connection, frame.encode(Proto::Resp3));
        }
    }
}

fn form_of(call: &Call<'_>) -> Result<EndpointForm, Failure> {
    const FORMS: [(&str, EndpointForm); 5] = [
        ("internal-ip", EndpointForm::InternalIp),
        ("internal-fqdn", EndpointForm::InternalFqdn),
        ("external-ip", EndpointForm::ExternalIp),
        ("external-fqdn", EndpointForm::ExternalFqdn),
        ("none", EndpointForm::None),
    ];
    let found = FORMS.iter().find(|(name, _)| call.is(4, name));
    found.map(|(_, form)| *form).ok_or(Failure::Syntax)
}

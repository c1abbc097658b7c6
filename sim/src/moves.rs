//! The script of planned moves: what the server announces, when, and where addresses lead.
//!
//! Owns the script's progress, names and addresses, and the windows that were announced. What the client makes of it is
//! judged by [`crate::invariants::handoff`].

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use towline_client_proto::handoff::Target;
use towline_faults::model::{Access, ConnectError, ConnectionId, EndpointId, Notice, SlotMove};
use towline_resp::frame::Frame;
use towline_sansio::Instant;

use crate::invariants;
use crate::plan::script::{BYTES_PATIENCE, Form, From, Kind, Step, To, When};
use crate::world::{What, World};

/// The port of every address.
const PORT: u16 = 6379;

/// A window that was announced.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    /// The connections that were there.
    pub(crate) connections: Vec<u64>,
}

/// The state of planned moves.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    /// Where the configured name leads.
    pub(crate) configured: EndpointId,
    /// Of the next connections to an address: so many are refused, then so many are silent.
    access: BTreeMap<EndpointId, (u64, u64)>,
    /// Bytes that the server got.
    bytes: u64,
    /// The step that waits, and for how many bytes in total.
    waiting: Option<(usize, u64)>,
    /// Steps that were taken.
    taken: usize,
    seq: u64,
    /// The latest `MOVING`: who announced it, and how.
    latest: Option<(EndpointId, Frame)>,
    pub(crate) windows: Vec<Window>,
    /// Until then callers are in a hurry, so that a cut finds work in every stage.
    pub(crate) rush_until: Instant,
}

impl Moves {
    /// How many of `len` further bytes come before the step that waits for bytes.
    fn before_step(&self, len: usize) -> Option<(usize, usize)> {
        let (step, at) = self.waiting?;
        let left = usize::try_from(at.saturating_sub(self.bytes)).unwrap_or(usize::MAX);
        (left <= len).then_some((step, left))
    }
}

/// An address as the server writes it.
fn text_of(endpoint: EndpointId, form: Form) -> String {
    match form {
        Form::Name => format!("node-{}.example:{PORT}", endpoint.0),
        Form::V4 | Form::V6 => peer_of(endpoint, form).to_string(),
    }
}

/// The socket address that a connection leads to.
pub(crate) fn peer_of(endpoint: EndpointId, form: Form) -> SocketAddr {
    let node = u16::try_from(endpoint.0 + 1).unwrap_or(u16::MAX);
    let ip = match form {
        Form::V6 => IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, node)),
        Form::V4 | Form::Name => IpAddr::V4(Ipv4Addr::new(10, 0, 0, node.to_le_bytes()[0])),
    };
    SocketAddr::new(ip, PORT)
}

/// The endpoint that a host and a port name.
pub(crate) fn endpoint_of(host: &str, port: u16, form: Form) -> Option<EndpointId> {
    let of_peer = |endpoint: &EndpointId| {
        peer_of(*endpoint, form).ip().to_string() == host || format!("node-{}.example", endpoint.0) == host
    };
    (0..8).map(EndpointId).find(of_peer).filter(|_| port == PORT)
}

impl World {
    /// Begins the script.
    pub(crate) fn begin_script(&mut self) {
        self.arm_script(0);
    }

    fn arm_script(&mut self, step: usize) {
        let Some((when, _)) = self.plan.script.steps.get(step) else { return };
        match *when {
            When::After(pause) => self.after_pause(pause, What::Script(step)),
            When::Bytes(bytes) => {
                self.moves.waiting = Some((step, self.moves.bytes + bytes));
                self.after_pause(BYTES_PATIENCE, What::Script(step));
            }
        }
    }

    /// Takes one step of the script, unless it was taken.
    pub(crate) fn script_goes_on(&mut self, step: usize) {
        if step != self.moves.taken {
            return;
        }
        self.moves.taken += 1;
        self.moves.waiting = None;
        if let Some((_, step)) = self.plan.script.steps.get(step).copied() {
            self.trace.line(self.now, format_args!("script {step:?}"));
            self.take_step(step);
        }
        self.arm_script(step + 1);
    }

    /// Gives bytes to the server, and takes the steps that come between them.
    pub(crate) fn feed_server(&mut self, generation: u64, bytes: &Bytes) {
        let mut rest = bytes.clone();
        while let Some((step, left)) = self.moves.before_step(rest.len()) {
            let first = rest.split_to(left);
            self.moves.bytes += first.len() as u64;
            self.model.bytes(self.now, ConnectionId(generation), &first);
            self.script_goes_on(step);
        }
        self.moves.bytes += rest.len() as u64;
        self.model.bytes(self.now, ConnectionId(generation), &rest);
    }

    fn take_step(&mut self, step: Step) {
        match step {
            Step::Moving { from, to, window, is_same_seq } => self.announce(from, to, window, is_same_seq),
            Step::Repeat => {
                let Some((from, frame)) = self.moves.latest.clone() else { return };
                let told: Vec<ConnectionId> = self.model.connections_of(from).collect();
                for connection in
                    told.into_iter().filter(|id| self.model.notified(*id).is_some()).collect::<Vec<_>>()
                {
                    self.model.push(self.now, connection, &frame);
                }
            }
            Step::Notice { kind, is_opening } => {
                let seq = self.next_seq();
                self.model.announce(self.now, None, seq, notice(kind, is_opening));
            }
            Step::Access { endpoint, refused, silent } => {
                self.moves.access.insert(endpoint, (refused, silent));
            }
            Step::Repoint(endpoint) => self.moves.configured = endpoint,
            Step::CloseEarly(endpoint) => {
                self.model.close_endpoint(self.now, endpoint);
            }
            Step::Delay(time) => {
                let until = self.now + time;
                if let Some(conn) = self.current().and_then(|generation| self.conns.get_mut(&generation)) {
                    conn.down.last_arrival = conn.down.last_arrival.max(until);
                }
            }
        }
    }

    const fn next_seq(&mut self) -> u64 {
        self.moves.seq += 1;
        self.moves.seq
    }

    fn announce(&mut self, from: From, to: To, window: Duration, is_same_seq: bool) {
        let current =
            self.current().and_then(|generation| self.conns.get(&generation)).map(|conn| conn.endpoint);
        let from = match from {
            From::Current => current.unwrap_or_default(),
            From::This(endpoint) => endpoint,
        };
        let form = self.plan.script.form;
        let successor = match to {
            To::This(endpoint) => Some(text_of(endpoint, form)),
            To::Itself => Some(text_of(from, form)),
            To::Configured => None,
        };
        let seq = if is_same_seq { self.moves.seq } else { self.next_seq() };
        let connections = self.model.connections_of(from).map(|connection| connection.0).collect();
        self.model.announce_moving(self.now, from, window, successor.as_deref(), seq);
        if self.plan.rushes {
            // About as long as a dial and a handshake take.
            self.moves.rush_until = self.now + self.plan.latency * 8;
            for caller in 0..self.callers.len() {
                self.after_pause(Duration::ZERO, What::Hurry(caller));
            }
        }
        let number = self.moves.windows.len();
        self.moves.windows.push(Window { connections });
        self.after_pause(window, What::WindowEnds(number));
        let text = |text: String| Frame::Bulk(text.into());
        let frame = vec![
            Frame::Bulk(Bytes::from_static(b"MOVING")),
            Frame::Integer(seq.cast_signed()),
            Frame::Integer(window.as_secs().cast_signed()),
            successor.map_or(Frame::Null, text),
        ];
        self.moves.latest = Some((from, Frame::Push(frame)));
    }

    /// A window is about to end: the server closes what is there.
    pub(crate) fn window_ends(&mut self, number: usize) {
        let Some(window) = self.moves.windows.get(number).cloned() else { return };
        self.trace.line(self.now, format_args!("the window of {:?} ends", window.connections));
        let result = invariants::handoff::window_ends(self, &window.connections);
        self.check(result);
    }

    /// Commands that the kernel took for a connection and that the server has not executed.
    pub(crate) fn on_wire(&self, generation: u64) -> Vec<u64> {
        let is_on_wire =
            |id: &u64| self.records[id].taken_by.contains(&generation) && self.executions(*id) == 0;
        self.records.keys().copied().filter(is_on_wire).collect()
    }

    /// Where a target leads at present; `None`: nowhere.
    pub(crate) fn resolve(&self, target: &Target) -> Option<EndpointId> {
        match target {
            Target::Configured => Some(self.moves.configured),
            Target::Named(address) => endpoint_of(&address.host, address.port, self.plan.script.form),
        }
    }

    /// A dial reaches the server.
    pub(crate) fn connect(&mut self, generation: u64, endpoint: EndpointId) -> Result<(), ConnectError> {
        let (refused, silent) = self.moves.access.get(&endpoint).copied().unwrap_or_default();
        let access = match (refused, silent) {
            (0, 0) => Access::Serving,
            (0, _) => Access::Silent,
            _ => Access::Refusing,
        };
        let left = if refused > 0 { (refused - 1, silent) } else { (0, silent.saturating_sub(1)) };
        self.moves.access.insert(endpoint, left);
        self.model.set_access(endpoint, access);
        self.model.connect_to(self.now, ConnectionId(generation), endpoint)
    }

    /// From now on every address serves.
    pub(crate) fn calm_moves(&mut self) {
        self.moves.access.clear();
        self.moves.taken = self.plan.script.steps.len();
        self.moves.waiting = None;
    }
}

/// A notice with texts that nobody reads.
fn notice(kind: Kind, is_opening: bool) -> Notice {
    let shards = || "[\"1\"]".to_owned();
    let starts_in = Duration::from_secs(2);
    match (kind, is_opening) {
        (Kind::Migration, true) => Notice::Migrating { starts_in, shards: shards() },
        (Kind::Migration, false) => Notice::Migrated { shards: shards() },
        (Kind::Failover, true) => Notice::FailingOver { starts_in, shards: shards() },
        (Kind::Failover, false) => Notice::FailedOver { shards: shards() },
        (Kind::Slots, true) => Notice::Smigrating { slots: "5-7".to_owned() },
        (Kind::Slots, false) => {
            let (source, destination) = (text_of(EndpointId(0), Form::V4), text_of(EndpointId(1), Form::V4));
            Notice::Smigrated { moves: vec![SlotMove { source, destination, slots: "5-7".to_owned() }] }
        }
    }
}

//! What is drawn before a history begins: the client's numbers, the server, and the troubles to come.
//!
//! Small numbers are drawn on purpose: bounds that are reached and windows that fill up are where mistakes live.

pub(crate) mod script;

use std::time::Duration;

use bytes::Bytes;
use towline_admission::BackoffConfig;
use towline_client_proto::handoff::HandoffOrder;
use towline_client_proto::maintenance::WindowConfig;
use towline_client_proto::{
    Config, Credentials, FlushOrder, HandshakeConfig, LivenessConfig, MaintenanceRequest, Peer, Policy,
    ProtocolChoice, RetryBudgetConfig,
};
use towline_faults::model::{Keep, ModelConfig, Refusal};

use crate::draw::Draw;
use script::{Scenario, Script};

/// How long a dial may take before the driver gives it up.
pub(crate) const DIAL_TIMEOUT: Duration = Duration::from_millis(700);

/// Something that goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The server closes the connection in an orderly way.
    Fin,
    /// Both ends learn that the connection is gone; what was under way is lost.
    Reset,
    /// From now on nothing passes, and nobody is told.
    HalfOpen,
    /// From now on nothing passes from the server to the client.
    Mute,
    /// Nothing passes for a while.
    Stall(Duration),
    /// The connection is reset once this many more bytes went to the server.
    CutUp(u64),
    /// The connection is reset once this many more bytes went to the client.
    CutDown(u64),
    /// Bytes that are no RESP, between two replies.
    GarbageDown,
    /// Bytes that are no RESP, on their way to the server.
    GarbageUp,
    /// The server stops, and takes connections again after a while.
    Restart(Keep, Duration),
    /// The server executes nothing for a while.
    Busy(Duration),
    /// The server refuses some commands without running them, after leaving some alone.
    Refuse(Refusal, u64, u64),
    /// The server closes the connection instead of executing a command.
    CloseBefore(u64),
    /// The server executes a command and closes the connection without a reply.
    CloseAfter(u64),
    /// The next dials fail.
    DialsFail(u64),
    /// The next dials hang until their timeout.
    DialsHang(u64),
    /// A push that nobody asked for.
    Push,
    /// A reply that nobody asked for, while nothing is in flight.
    ExtraReply,
    /// The next writers keep their batches for so long.
    SlowWriters(u64, Duration),
    /// The client's task gets no processor for so long.
    Starve(Duration),
    /// The server executes a command, and then nothing for a while.
    BusyAfter(u64, Duration),
    /// The credentials are renewed in place.
    Reauth,
    /// The credentials are wrong for so long.
    WrongPassword(Duration),
    /// A planned handoff holds commands back for so long, with this cap on what it adds to deadlines.
    Hold(Duration, Duration),
    /// The connection is left on purpose.
    PlannedLoss,
}

/// Everything drawn beforehand.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) config: Config,
    pub(crate) policy: Policy,
    pub(crate) handshake: HandshakeConfig,
    pub(crate) liveness: LivenessConfig,
    pub(crate) budget: RetryBudgetConfig,
    pub(crate) model: ModelConfig,
    pub(crate) bridge_seed: u64,
    pub(crate) callers: usize,
    pub(crate) commands_max: u64,
    /// The longest pause of a caller.
    pub(crate) gap: Duration,
    /// One way, longest.
    pub(crate) latency: Duration,
    /// The share of values above what fits one block, in percent.
    pub(crate) large_percent: u64,
    /// The largest of these values.
    pub(crate) large_bytes: usize,
    /// The longest deadline of a command.
    pub(crate) deadline_max: Duration,
    /// The share of commands that wait for ever, in percent.
    pub(crate) endless_percent: u64,
    /// When what goes wrong.
    pub(crate) faults: Vec<(Duration, Fault)>,
    /// When the client is closed, if the history has that.
    pub(crate) closes_at: Option<Duration>,
    /// From when on nothing goes wrong any more.
    pub(crate) calm_at: Duration,
    /// What a socket's send buffer holds.
    pub(crate) socket_bytes: usize,
    /// The share of batches of which the kernel takes only a part, in percent.
    pub(crate) partial_percent: u64,
    /// The longest piece in which bytes travel.
    pub(crate) piece_bytes: usize,
    /// Callers are in a hurry when a move is announced.
    pub(crate) rushes: bool,
    pub(crate) scenario: Scenario,
    /// The planned moves.
    pub(crate) script: Script,
}

/// The password of servers that have one.
const PASSWORD: &str = "open";

/// The credentials that such a server wants.
pub(crate) fn credentials() -> Credentials {
    Credentials::password(PASSWORD)
}

/// Credentials that it refuses.
pub(crate) fn wrong_credentials() -> Credentials {
    Credentials::password("shut")
}

impl Plan {
    /// The plan of `seed`, with `length` commands at most.
    pub(crate) fn draw(seed: u64, length: u64, scenario: Option<Scenario>) -> Self {
        let mut plan = Self::draw_ordinary(seed, length);
        // Moves have a stream of their own: all else of a seed stays what it is without them.
        let mut draw = Draw::new(seed, 5);
        let drawn = match draw.range(0, 9) {
            0..=4 => Scenario::Ordinary,
            5..=7 => Scenario::CalmMoves,
            _ => Scenario::WildMoves,
        };
        plan.scenario = scenario.unwrap_or(drawn);
        plan.add_moves(&mut draw);
        plan
    }

    /// Makes room for planned moves, and draws them.
    fn add_moves(&mut self, draw: &mut Draw) {
        if self.scenario == Scenario::Ordinary {
            return;
        }
        self.script = Script::draw(draw, self.scenario);
        let form = draw.pick(&[None, Some("internal-ip"), Some("external-fqdn")]);
        self.handshake.maintenance =
            Some(MaintenanceRequest { moving_endpoint_type: form, is_required: draw.chance(10) });
        self.config.handoff_order = draw.pick(&[
            HandoffOrder::Strict,
            HandoffOrder::Strict,
            HandoffOrder::PerKey,
            HandoffOrder::None,
        ]);
        self.config.endpoint_is_name = draw.chance(50);
        self.config.windows =
            WindowConfig::from_relaxed(if draw.chance(30) { Duration::ZERO } else { draw.millis(20, 1000) });
        self.config.handoff.grace = draw.millis(100, 1500);
        self.config.handoff.same_node_retry = draw.millis(20, 1000);
        self.faults.retain(|(_, fault)| !matches!(fault, Fault::Hold(..)));
        self.handshake.peer = Peer::Server;
        self.handshake.protocol = draw.pick(&[ProtocolChoice::Resp3, ProtocolChoice::Resp3OrResp2]);
        // When it begins to be calm, every window is over, also for a client that counts at least a second.
        self.calm_at = self.calm_at.max(self.script.takes() + Duration::from_millis(1100));
        self.rushes = draw.chance(60);
        if draw.chance(70) {
            // Callers go on for as long as the script does.
            let commands = u32::try_from(self.commands_max).unwrap_or(u32::MAX).max(1);
            let callers = u32::try_from(self.callers).unwrap_or(1);
            self.gap = (self.script.takes() * 2 * callers / commands).min(Duration::from_millis(400));
        }
        // Most servers cannot announce anything.
        self.model.has_maintenance = draw.chance(92);
        let is_required = self.handshake.maintenance.is_some_and(|request| request.is_required);
        self.model.has_maintenance |= is_required;
        if self.scenario == Scenario::CalmMoves {
            if !self.model.has_maintenance {
                self.script.steps.clear();
            }
            self.calm_down(draw);
            return;
        }
        if draw.chance(40) {
            self.faults.clear();
        }
    }

    /// Nothing goes wrong but what a move brings with it, and nothing is so tight that a command may fail of it.
    fn calm_down(&mut self, draw: &mut Draw) {
        if draw.chance(30) {
            // The policy that has most to lose.
            self.policy = Policy::FailFast;
        }
        self.faults.clear();
        self.closes_at = None;
        self.budget.tokens_max = 0;
        self.config.backlog_bytes_max = 1 << 20;
        self.large_percent = self.large_percent.min(2);
        self.large_bytes = 20_000;
        self.socket_bytes = self.socket_bytes.max(20_000);
        self.deadline_max = Duration::from_secs(60);
        // Longer than the server goes on refusing after the end of a window.
        self.config.handoff.grace = Duration::from_secs(3);
        self.handshake.timeout = self.handshake.timeout.max(Duration::from_millis(300));
        if let Policy::Bounded { bytes, age } = &mut self.policy {
            (*bytes, *age) = (1 << 20, Duration::from_secs(60));
        }
    }

    fn draw_ordinary(seed: u64, length: u64) -> Self {
        let mut draw = Draw::new(seed, 1);
        let span = draw.millis(50, 1500);
        let has_password = draw.chance(30);
        let handshake = HandshakeConfig {
            protocol: draw.pick(&[
                ProtocolChoice::Resp2,
                ProtocolChoice::Resp3,
                ProtocolChoice::Resp3OrResp2,
            ]),
            peer: if draw.chance(25) { Peer::Proxy } else { Peer::Server },
            credentials: has_password.then(credentials),
            timeout: draw.millis(100, 800),
            ..HandshakeConfig::default()
        };
        let fault_count = if draw.chance(10) { 0 } else { draw.range(1, 10) };
        let is_over_resp3 = handshake.peer == Peer::Server && handshake.protocol != ProtocolChoice::Resp2;
        let mut faults: Vec<(Duration, Fault)> = (0..fault_count)
            .map(|_| {
                let at = draw.micros(0, u64::try_from(span.as_micros()).unwrap_or(u64::MAX));
                (at, fault(&mut draw, has_password, is_over_resp3))
            })
            .collect();
        let policy = match draw.range(0, 9) {
            0..=5 => Policy::Queue,
            6..=7 => Policy::FailFast,
            _ => Policy::Bounded { bytes: draw.size(100, 5000), age: draw.millis(20, 600) },
        };
        let mut config = config(&mut draw);
        // A few histories have so much in them that the log has to move what is left together.
        let is_heavy = draw.chance(3);
        if is_heavy {
            config.backlog_bytes_max = 64 << 20;
            // Much of it ends while nothing is connected.
            faults.push((Duration::ZERO, Fault::DialsHang(2)));
        }
        Self {
            config,
            policy,
            handshake,
            liveness: liveness(&mut draw),
            budget: RetryBudgetConfig {
                tokens_max: u32::try_from(draw.range(0, 200)).unwrap_or(0),
                ..RetryBudgetConfig::default()
            },
            model: ModelConfig {
                password: has_password.then(|| PASSWORD.to_owned()),
                latency: draw.micros(0, 500),
                ..ModelConfig::default()
            },
            bridge_seed: draw.bits(),
            callers: draw.size(1, 4),
            commands_max: draw.range(3, 60).min(length),
            gap: if is_heavy { draw.micros(100, 5000) } else { draw.micros(100, 60_000) },
            latency: draw.micros(20, 20_000),
            large_percent: if is_heavy { 30 } else { draw.pick(&[0, 0, 2, 10]) },
            large_bytes: if is_heavy { 400_000 } else { 20_000 },
            deadline_max: draw.millis(5, 3000),
            endless_percent: draw.pick(&[0, 10, 50]),
            faults,
            closes_at: draw.chance(12).then(|| draw.millis(10, 1500)),
            calm_at: span,
            // A path that needs hundreds of round trips for one command is too slow to tell from one that has died.
            socket_bytes: draw.size(if is_heavy { 20_000 } else { 64 }, 100_000),
            partial_percent: draw.pick(&[0, 20, 60]),
            piece_bytes: draw.pick(&[3, 64, 100_000, 100_000]),
            rushes: false,
            scenario: Scenario::Ordinary,
            script: Script::default(),
        }
    }

    /// How long after the end of all trouble everything must have healed: what may have to be waited for, added up.
    pub(crate) fn heals_within(&self) -> Duration {
        let liveness = &self.liveness;
        let silence = liveness.silence_max.max(self.config.windows.relaxed)
            + liveness.confirm
            + liveness.starved_grace * (towline_client_proto::REARMS_MAX + 1);
        let idle = liveness.idle_ping_after.unwrap_or_default();
        let dial = DIAL_TIMEOUT + self.handshake.timeout + self.config.backoff.cap;
        // The trouble under way when the calm begins, the connection that it ends, the one that replaces it.
        silence
            + idle
            + dial * 2
            + self.latency * 20
            + self.config.refused_wait.1 * 16
            + self.config.windows.relaxed * 2
            + if self.scenario == Scenario::Ordinary { Duration::ZERO } else { self.config.handoff.grace }
            + Duration::from_secs(3)
    }
}

fn config(draw: &mut Draw) -> Config {
    let mut config = Config::default();
    config.backlog_bytes_max = draw.pick(&[200, 1000, 10_000, 1 << 20]);
    config.in_flight_bytes_max = draw.pick(&[60, 500, 10_000, 1 << 20]);
    config.in_flight_max = draw.pick(&[1, 2, 8, 64, 1 << 20]);
    config.pace_bytes_initial = draw.pick(&[40, 300, 65_536]);
    config.flush_order = draw.pick(&[FlushOrder::InOrder, FlushOrder::InOrder, FlushOrder::FreshFirst]);
    config.tick = draw.millis(1, 20);
    config.events_max = draw.size(1, 16);
    config.backoff = BackoffConfig {
        base: draw.millis(1, 40),
        cap: draw.millis(40, 300),
        multiplier: 2.0,
        first_jitter: draw.millis(0, 20),
        stable_after: draw.millis(1, 500),
    };
    config.refused_wait = (draw.millis(1, 10), draw.millis(10, 100));
    config.windows = WindowConfig::from_relaxed(Duration::ZERO);
    config
}

fn liveness(draw: &mut Draw) -> LivenessConfig {
    LivenessConfig {
        silence_max: draw.millis(80, 1000),
        confirm: draw.millis(1, 50),
        idle_ping_after: draw.chance(70).then(|| draw.millis(20, 1000)),
        late_max: draw.millis(10, 100),
        starved_grace: draw.millis(10, 100),
        second_opinion: None,
        held_max: None,
    }
}

fn fault(draw: &mut Draw, has_password: bool, is_over_resp3: bool) -> Fault {
    match draw.range(0, 29) {
        0 => Fault::Fin,
        1..=2 => Fault::Reset,
        3 => Fault::HalfOpen,
        4 => Fault::Mute,
        5 => Fault::Stall(draw.millis(1, 600)),
        6..=8 => Fault::CutUp(draw.range(0, 600)),
        9..=10 => Fault::CutDown(draw.range(0, 200)),
        11 => Fault::GarbageDown,
        12 => Fault::GarbageUp,
        13..=14 => {
            let keep = draw.pick(&[Keep::Everything, Keep::Data, Keep::Nothing]);
            Fault::Restart(keep, draw.millis(0, 300))
        }
        15 => Fault::Busy(draw.millis(1, 400)),
        16..=17 => {
            let refusal = match draw.range(0, 6) {
                0..=1 => Refusal::Loading,
                2 => Refusal::TryAgain,
                3 => Refusal::ReadOnly,
                4 => Refusal::OutOfMemory,
                5 => Refusal::Text("ERR max number of clients reached".to_owned()),
                _ => Refusal::Text("MOVED 1 other:1".to_owned()),
            };
            Fault::Refuse(refusal, draw.range(0, 8), draw.range(1, 12))
        }
        18 => Fault::CloseBefore(draw.range(0, 12)),
        19 => Fault::CloseAfter(draw.range(0, 12)),
        20 => Fault::DialsFail(draw.range(1, 4)),
        21 => Fault::DialsHang(draw.range(1, 2)),
        22 if is_over_resp3 => Fault::Push,
        23 => Fault::ExtraReply,
        24..=25 => Fault::SlowWriters(draw.range(1, 4), draw.millis(1, 200)),
        26 => Fault::Starve(draw.millis(1, 400)),
        28 => Fault::BusyAfter(draw.range(0, 12), draw.millis(1, 300)),
        29 if has_password => Fault::WrongPassword(draw.millis(1, 500)),
        27 if has_password && draw.chance(60) => Fault::Reauth,
        27 if draw.chance(50) => Fault::Hold(draw.millis(1, 300), draw.millis(1, 300)),
        _ => Fault::PlannedLoss,
    }
}

/// What no RESP parser accepts.
pub(crate) const GARBAGE: Bytes = Bytes::from_static(b"*\xff\r\n");

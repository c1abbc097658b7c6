//! What is drawn about planned moves: when the server announces what, and what awaits whoever follows it.
//!
//! A script is a few of the [`patterns`](Script::draw), each with numbers of its own, one step after the other. Steps that a
//! polite server never does (to close early, to announce too late) are in it only where nothing is promised about them.

use std::time::Duration;

use towline_faults::model::EndpointId;

use crate::draw::Draw;

/// What a history is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scenario {
    /// Connections come and go without notice.
    Ordinary,
    /// Planned moves by a polite server, and nothing else goes wrong: no command may fail.
    CalmMoves,
    /// Planned moves by a server with no manners, and perhaps everything else too.
    WildMoves,
}

impl Scenario {
    const ALL: [(&'static str, Self); 3] =
        [("ordinary", Self::Ordinary), ("calm-moves", Self::CalmMoves), ("wild-moves", Self::WildMoves)];

    /// The scenario of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, scenario)| *scenario)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, scenario)| *scenario == self).map_or("", |(name, _)| name)
    }
}

/// When a step is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// So long after the step before.
    After(Duration),
    /// Once the server has got so many more bytes: between any two of them, so also inside a command or a handshake.
    Bytes(u64),
}

/// Who announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// The address of the connection that the client uses.
    Current,
    /// This one, whoever is connected to it.
    This(EndpointId),
}

/// What it names as its successor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum To {
    This(EndpointId),
    /// Null: where the client was configured to.
    Configured,
    /// Itself.
    Itself,
}

/// Which notice goes before or after other maintenance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Migration,
    Failover,
    Slots,
}

/// One thing that the script does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// `MOVING`; the connections end after the window. `is_same_seq`: it has the number of the one before.
    Moving { from: From, to: To, window: Duration, is_same_seq: bool },
    /// The latest `MOVING` once more, as it was.
    Repeat,
    /// A notice that opens something, or closes it.
    Notice { kind: Kind, is_opening: bool },
    /// Of the next connections to an address, so many are refused, and then so many are accepted and hear nothing.
    Access { endpoint: EndpointId, refused: u64, silent: u64 },
    /// The configured name leads there from now on.
    Repoint(EndpointId),
    /// All connections to an address end now.
    CloseEarly(EndpointId),
    /// What the server sends to the present connection is under way for so long.
    Delay(Duration),
}

/// One history's moves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Script {
    pub(crate) steps: Vec<(When, Step)>,
    /// How addresses are written.
    pub(crate) form: Form,
}

/// How the server writes the addresses of successors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Form {
    #[default]
    V4,
    V6,
    Name,
}

/// The address that the client is configured with, at first.
const A: EndpointId = EndpointId(0);
const B: EndpointId = EndpointId(1);
const C: EndpointId = EndpointId(2);

/// More refusals than anybody tries within a window.
const FOR_EVER: u64 = 10_000;

/// The shortest window of a polite server: more than all that is in flight needs, in every history whose network is calm.
const WINDOW_MIN_MS: u64 = 2000;

impl Script {
    /// A script for a scenario.
    pub(crate) fn draw(draw: &mut Draw, scenario: Scenario) -> Self {
        let form = draw.pick(&[Form::V4, Form::V4, Form::V6, Form::Name]);
        let mut script = Self { steps: Vec::new(), form };
        if scenario == Scenario::Ordinary {
            return script;
        }
        let is_calm = scenario == Scenario::CalmMoves;
        for _ in 0..draw.pick(&[1, 1, 1, 2, 3]) {
            script.pattern(draw, is_calm);
        }
        script
    }

    /// Whether the server closes connections before it said so.
    pub(crate) fn is_rude(&self) -> bool {
        self.steps.iter().any(|(_, step)| matches!(step, Step::CloseEarly(_)))
    }

    /// How long it takes, steps that wait for bytes not counted, and the last windows included.
    pub(crate) fn takes(&self) -> Duration {
        let pauses: Duration = self
            .steps
            .iter()
            .map(|(when, _)| match when {
                When::After(pause) => *pause,
                When::Bytes(_) => BYTES_PATIENCE,
            })
            .sum();
        let windows = self.steps.iter().map(|(_, step)| match step {
            Step::Moving { window, .. } => *window,
            Step::Delay(time) => *time,
            _ => Duration::ZERO,
        });
        pauses + windows.max().unwrap_or_default()
    }

    fn push(&mut self, when: When, step: Step) {
        self.steps.push((when, step));
    }

    fn pattern(&mut self, draw: &mut Draw, is_calm: bool) {
        let window = if is_calm { draw.millis(WINDOW_MIN_MS, 4000) } else { draw.millis(0, 3000) };
        let begin =
            if draw.chance(70) { When::Bytes(draw.range(0, 1200)) } else { When::After(draw.millis(0, 600)) };
        let gap = When::After(gap(draw));
        let moving = |from, to| Step::Moving { from, to, window, is_same_seq: false };
        let simple = moving(From::Current, To::This(B));
        match draw.range(0, if is_calm { 11 } else { 14 }) {
            0 => self.push(begin, simple),
            1 => {
                self.push(begin, moving(From::This(A), To::This(B)));
                self.push(gap, moving(From::This(B), To::This(C)));
            }
            2 => {
                self.push(begin, moving(From::This(A), To::This(B)));
                self.push(gap, moving(From::This(A), To::This(C)));
            }
            3 => {
                self.push(begin, moving(From::This(A), To::This(B)));
                self.push(gap, moving(From::This(B), To::This(A)));
            }
            4 => {
                self.push(begin, simple);
                for _ in 0..draw.range(1, 3) {
                    self.push(gap, Step::Repeat);
                }
            }
            5 => self.null_successor(draw, begin, window),
            6 => {
                self.push(begin, Step::Access { endpoint: B, refused: draw.range(1, 4), silent: 0 });
                self.push(When::After(Duration::ZERO), moving(From::Current, To::This(B)));
            }
            7 => {
                let (refused, silent) = (draw.range(0, 1), draw.range(1, 2));
                self.push(begin, Step::Access { endpoint: B, refused, silent });
                self.push(When::After(Duration::ZERO), simple);
            }
            8 => self.push(begin, moving(From::Current, To::Itself)),
            9 => self.nothing_prepared(draw, begin, window),
            10 => self.windows(draw, begin, gap),
            11 => {
                self.push(begin, simple);
                self.push(
                    gap,
                    Step::Moving { from: From::Current, to: To::This(C), window, is_same_seq: true },
                );
            }
            12 => {
                self.push(begin, simple);
                self.push(When::After(window.mul_f64(0.9)), Step::CloseEarly(A));
            }
            13 => {
                // It is read when the window is over, with the end of the connection behind it.
                self.push(begin, Step::Delay(window + draw.millis(0, 100)));
                self.push(When::After(Duration::ZERO), simple);
            }
            _ => {
                self.push(begin, simple);
                let early = draw.millis(0, 50);
                self.push(When::After(early), Step::CloseEarly(A));
            }
        }
    }

    /// Null, and a name that leads elsewhere from some time on, or never.
    fn null_successor(&mut self, draw: &mut Draw, begin: When, window: Duration) {
        let moving = Step::Moving { from: From::Current, to: To::Configured, window, is_same_seq: false };
        match draw.range(0, 3) {
            0 => self.push(begin, moving),
            1 => {
                self.push(begin, Step::Repoint(B));
                self.push(When::After(Duration::ZERO), moving);
            }
            _ => {
                self.push(begin, moving);
                let share = draw.pick(&[0.1, 0.45, 0.6, 0.95]);
                self.push(When::After(window.mul_f64(share)), Step::Repoint(B));
            }
        }
    }

    /// Nobody can be connected to until the window is over, and a little longer.
    fn nothing_prepared(&mut self, draw: &mut Draw, begin: When, window: Duration) {
        let closed = |endpoint| Step::Access { endpoint, refused: FOR_EVER, silent: 0 };
        let open = |endpoint| Step::Access { endpoint, refused: 0, silent: 0 };
        let at_once = When::After(Duration::ZERO);
        self.push(begin, closed(A));
        self.push(at_once, closed(B));
        self.push(at_once, Step::Moving { from: From::Current, to: To::This(B), window, is_same_seq: false });
        let mut share = draw.pick(&[0.3, 0.7, 0.99, 1.0, 1.2]);
        if draw.chance(50) {
            // It does not keep its word. What was sent is lost with it; what was not waits all the same.
            self.push(When::After(window.mul_f64(share / 2.0)), Step::CloseEarly(A));
            share /= 2.0;
        }
        self.push(When::After(window.mul_f64(share)), open(B));
        self.push(When::After(draw.millis(0, 200)), open(A));
    }

    /// Other maintenance, some of whose ends are lost, around and inside a move.
    fn windows(&mut self, draw: &mut Draw, begin: When, gap: When) {
        let kind = draw.pick(&[Kind::Migration, Kind::Failover, Kind::Slots]);
        self.push(begin, Step::Notice { kind, is_opening: true });
        if draw.chance(50) {
            let window = draw.millis(WINDOW_MIN_MS, 3000);
            self.push(gap, Step::Moving { from: From::Current, to: To::This(B), window, is_same_seq: false });
        }
        if draw.chance(60) {
            self.push(gap, Step::Notice { kind, is_opening: false });
        }
        if draw.chance(30) {
            self.push(gap, Step::Notice { kind, is_opening: draw.chance(50) });
        }
    }
}

/// The pause between two announcements: none, within a round trip, within a window.
fn gap(draw: &mut Draw) -> Duration {
    match draw.range(0, 3) {
        0 => Duration::ZERO,
        1 => draw.micros(0, 500),
        2 => draw.millis(0, 60),
        _ => draw.millis(0, 1500),
    }
}

/// A step that waits for bytes waits no longer than this.
pub(crate) const BYTES_PATIENCE: Duration = Duration::from_millis(400);

//! What happens to the fleet, and which software it runs.
//!
//! Owns the settings. The names A1 to G and their numbers are those of `docs/storm.md`.

use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// How long a target works for one handshake of one endpoint.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Service {
    /// Always as long.
    Fixed(Duration),
    /// Longer the more wait: `base * (1 + (waiting / knee)^power)`. What contention of spinning workers, a firmware's
    /// command queue or a processor quota look like from outside.
    Collapse {
        /// With nobody waiting.
        base: Duration,
        /// So many waiting double it.
        knee: f64,
        /// How steeply.
        power: i32,
    },
}

impl Service {
    /// With so many in the queue, the one in service included.
    pub fn work(&self, queue: usize) -> Duration {
        match *self {
            Self::Fixed(base) => base,
            Self::Collapse { base, knee, power } => {
                let load = queue as f64 / knee;
                // Repeated multiplication: the last digit of `powi` differs between platforms.
                let factor = (0..power).fold(1.0, |factor, _| factor * load);
                base.mul_f64(1.0 + factor)
            }
        }
    }

    /// With nobody waiting.
    pub fn base(&self) -> Duration {
        match *self {
            Self::Fixed(base) | Self::Collapse { base, .. } => base,
        }
    }
}

/// The target is away, without a word, from one time to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    /// When its process dies.
    pub from: Duration,
    /// When it is back, as a new one.
    pub to: Duration,
}

/// The target is slower for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slowness {
    /// So many times.
    pub factor: u32,
    /// From the start to here.
    pub until: Duration,
}

/// Many nodes connect to one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scenario {
    /// Its short name.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// Nodes that connect.
    pub nodes: u32,
    /// Endpoints (pairs of network cards) of each.
    pub endpoints: u32,
    /// They begin within this, uniformly.
    pub spread: Duration,
    /// The target's work.
    pub service: Service,
    /// How long an initiator listens for an answer; `None` is for ever. See [`crate::storm::ASSUMPTIONS`].
    pub patience: Option<Duration>,
    /// Failures after which an endpoint of today's software is given up; `None` is never.
    pub budget: Option<u32>,
    /// Dials that vanish, in percent.
    pub loss_percent: u32,
    /// The target goes and comes back.
    pub outage: Option<Outage>,
    /// The target is slow at first.
    pub slowness: Option<Slowness>,
    /// When the observation of the other policies ends, if not everything is settled before. Ours always settles.
    pub horizon: Duration,
}

impl Scenario {
    const BASE: Self = Self {
        name: "",
        title: "",
        nodes: 3,
        endpoints: 80,
        spread: Duration::from_millis(50),
        service: Service::Fixed(Duration::from_micros(4_200)),
        patience: Some(Duration::from_millis(470)),
        budget: Some(9),
        loss_percent: 0,
        outage: None,
        slowness: None,
        horizon: Duration::from_secs(60),
    };

    /// Every one.
    pub const ALL: &'static [Self] = &[
        Self { name: "A1", title: "240 endpoints, 4.2 ms each: the livelock", ..Self::BASE },
        Self {
            name: "A2",
            title: "240 endpoints, 6.7 ms each",
            service: Service::Fixed(Duration::from_micros(6_700)),
            ..Self::BASE
        },
        Self {
            name: "A3",
            title: "work that slows under load, endless patience: 96 s",
            service: Service::Collapse { base: Duration::from_millis(4), knee: 80.5, power: 6 },
            patience: None,
            spread: MS,
            horizon: Duration::from_secs(120),
            ..Self::BASE
        },
        Self {
            name: "A4",
            title: "0.4 s of honest work each: nothing but workers helps",
            service: Service::Fixed(Duration::from_millis(400)),
            patience: None,
            horizon: Duration::from_secs(120),
            ..Self::BASE
        },
        Self { name: "B", title: "40 nodes with 64 endpoints", nodes: 40, endpoints: 64, ..Self::BASE },
        Self { name: "C", title: "1,000 nodes with 8 endpoints", nodes: 1_000, endpoints: 8, ..Self::BASE },
        Self { name: "D", title: "10,000 nodes with 8 endpoints", nodes: 10_000, endpoints: 8, ..Self::BASE },
        Self {
            name: "E",
            title: "B, spread over 20 s; the target dies at 30 s and is back at 35 s",
            nodes: 40,
            endpoints: 64,
            spread: Duration::from_secs(20),
            outage: Some(Outage { from: Duration::from_secs(30), to: Duration::from_secs(35) }),
            horizon: Duration::from_secs(120),
            ..Self::BASE
        },
        Self {
            name: "F",
            title: "A1 with a target that is ten times slower for 10 s",
            slowness: Some(Slowness { factor: 10, until: Duration::from_secs(10) }),
            ..Self::BASE
        },
        Self { name: "G5", title: "A1, 5 % of the dials vanish", loss_percent: 5, ..Self::BASE },
        Self { name: "G20", title: "A1, 20 % of the dials vanish", loss_percent: 20, ..Self::BASE },
    ];

    /// The one of this name, whatever its case.
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|scenario| scenario.name.eq_ignore_ascii_case(name))
    }

    /// A cell of the law's grid: so many nodes with 64 endpoints.
    pub const fn of_the_law(nodes: u32) -> Self {
        Self { name: "law", title: "a cell of the stability law", nodes, endpoints: 64, ..Self::BASE }
    }

    /// Endpoints in all.
    pub fn total(&self) -> usize {
        self.nodes as usize * self.endpoints as usize
    }

    /// The time that so many workers need at least, when they do nothing else.
    pub fn floor(&self, workers: u32) -> Duration {
        self.service.base() * u32::try_from(self.total()).unwrap_or(u32::MAX) / workers.max(1)
    }
}

/// The software of the fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Everybody dials at once and again at once; one thread answers whatever is in its queue.
    Legacy,
    /// So many handshakes in flight for each node, a backoff of 100 ms to 5 s; what waits in it burns its retries.
    Limited {
        /// Permits of each node.
        permits: u32,
    },
    /// The same without the burning.
    LimitedRepaired {
        /// Permits of each node.
        permits: u32,
    },
    /// This crate's [`crate::Connections`] on both ends.
    Ours {
        /// Workers of the target.
        workers: u32,
        /// Endpoints of a node that one HELLO carries: one, or all.
        rails: Rails,
    },
}

/// How many endpoints of a node share a HELLO.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rails {
    /// One each: as many handshakes as the other policies have, so that the comparison is like with like.
    Single,
    /// All: what an engine does.
    Shared,
}

impl Policy {
    /// Each with its name in tables.
    pub const ALL: &'static [(&'static str, Self)] = &[
        ("legacy", Self::Legacy),
        ("pr2793", Self::Limited { permits: 16 }),
        ("pr2793-repaired", Self::LimitedRepaired { permits: 16 }),
        ("ours-1-worker", Self::Ours { workers: 1, rails: Rails::Single }),
        ("ours", Self::Ours { workers: 4, rails: Rails::Single }),
        ("ours-hello", Self::Ours { workers: 4, rails: Rails::Shared }),
    ];

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(own, _)| *own == name).map(|(_, policy)| *policy)
    }

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Limited { .. } => "pr2793",
            Self::LimitedRepaired { .. } => "pr2793-repaired",
            Self::Ours { rails: Rails::Shared, .. } => "ours-hello",
            Self::Ours { workers: 1, .. } => "ours-1-worker",
            Self::Ours { .. } => "ours",
        }
    }
}

//! Seeded histories of the client's pure core against a server that remembers what it executed.
//!
//! One history is: a client ([`towline_client_proto::Bridge`]) with numbers drawn at random, a few callers, a network
//! and the model server of `towline-faults`, all in virtual time and in one thread. Things go wrong at drawn moments
//! and byte offsets; then they stop going wrong and the history runs on until everything must have healed. Everything
//! follows from the seed, byte for byte.
//!
//! Owns the histories and the promises, one per file in `invariants/`. Does **not** own the client, the server or the
//! real driver: where the driver may choose an order or a delay, the simulator draws one.
//!
//! Every guard of the client ([`towline_client_proto::Guards`]) can be switched off ([`Mutation`]); a simulator that
//! stays green then would show nothing. The tests see to it that each one turns some history red.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod callers;
mod command;
mod draw;
mod driver;
mod invariants;
mod moves;
mod mutation;
mod network;
mod plan;
mod server;
mod shrink;
#[cfg(test)]
mod tests;
mod trace;
mod world;

pub use invariants::Violation;
pub use mutation::Mutation;
pub use plan::script::Scenario;
pub use shrink::{Failure, hunt, reproduce_command, shrink};

use trace::{Keep, Trace};
use world::World;

/// Commands of a history at most, where nobody says otherwise.
pub const LENGTH_MAX: u64 = 60;

/// Which history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Everything follows from it.
    pub seed: u64,
    /// Commands that the callers submit at most. Default [`LENGTH_MAX`].
    pub length: u64,
    /// The guard that is switched off. Default: none.
    pub mutation: Option<Mutation>,
    /// What the history is about, whatever its seed says. Default: as the seed says.
    pub scenario: Option<Scenario>,
}

impl Settings {
    /// The usual history of a seed.
    pub const fn new(seed: u64) -> Self {
        Self { seed, length: LENGTH_MAX, mutation: None, scenario: None }
    }
}

/// How much of a trace to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Its hash.
    Hash,
    /// The last lines too.
    Tail,
    /// All lines.
    All,
}

/// What came of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The hash of the whole trace.
    pub hash: u64,
    /// The kept lines of the trace.
    pub lines: Vec<String>,
    /// The first broken promise.
    pub violation: Option<Violation>,
    /// What the history had in it.
    pub tally: Tally,
}

/// Sums over histories, so that one can see whether they try what they should.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Commands submitted.
    pub commands: u64,
    /// Commands acknowledged.
    pub acknowledged: u64,
    /// Commands that ended as not sent.
    pub not_sent: u64,
    /// Commands that ended as unknown.
    pub unknown: u64,
    /// Commands given up by their callers.
    pub abandoned: u64,
    /// Commands that were executed more than once, as their callers allowed.
    pub repeated: u64,
    /// Connections that came up.
    pub connections: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.commands += other.commands;
        self.acknowledged += other.acknowledged;
        self.not_sent += other.not_sent;
        self.unknown += other.unknown;
        self.abandoned += other.abandoned;
        self.repeated += other.repeated;
        self.connections += other.connections;
    }
}

/// Runs one history.
pub fn run(settings: &Settings, detail: Detail) -> Report {
    let keep = match detail {
        Detail::Hash => Keep::Hash,
        Detail::Tail => Keep::Tail,
        Detail::All => Keep::All,
    };
    happen(World::new(settings, Trace::new(keep)))
}

/// Lets a world's history happen.
fn happen(mut world: World) -> Report {
    // A panic of the client is one more broken promise. (Release builds end at once instead.)
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.run()));
    if result.is_err() {
        world.violation = Some(Violation { promise: "panic", what: "see above".to_owned() });
    }
    let tally = world.tally();
    let (hash, lines) = world.trace.finish();
    Report { hash, lines, violation: world.violation, tally }
}

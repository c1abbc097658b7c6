//! Hand-overs of a slot among three nodes while messages are late or lost, the network is cut and processes die, in virtual time.
//!
//! Owns: the world that [`Source`](crate::migration::Source), [`Target`](crate::migration::Target), [`Metadata`], the slot gate and the lease rule
//! are run in, unchanged, what must hold in it at every instant, and the bugs that show that it would be noticed ([`Bug`]). What a node's
//! driver does is written here again, in the order that `migration` asks for.
//!
//! # What must hold
//! * At no instant would two nodes run the same command.
//! * Who runs one has exactly what clients were told is written: nothing is lost, and nothing half imported is seen.
//! * When the faults are over, one node serves, and no other one has anything left.
//!
//! # What is assumed
//! * A message of the log is on its way for [`log::LATE_MAX`] at most, or lost; a proposal may come seconds later.
//! * Who takes slots from a node that is given up makes sure that it stays away meanwhile. (What a node serves that comes back at this moment is
//!   the old owner's for as long as the log's next message takes.)

mod chaos;
mod driver;
mod links;
mod log;
mod node;
mod tests;
mod world;

use crate::change::{Change, MigrationEnd};
use crate::gate::{self, Keys, NodeState, Present, Request, SlotState, Verdict};
use crate::id::NodeId;
use crate::metadata::{Metadata, Migration, MigrationState};
use crate::migration::wire::Frame;
use crate::migration::{
    Config, Decision, Proposal, Source, SourceAction, SourceEvent, StreamBatch, Target, TargetAction,
    TargetEvent,
};
use crate::node::{Announced, Health};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use towline_cluster::Slot;
use towline_sansio::{Instant, Prng};

const NODES: usize = 3;
const SLOT: Slot = 7;
/// Keys of the slot.
const KEYS: u64 = 6;

/// Keys with their versions.
type Contents = BTreeMap<u8, u32>;

const fn name(node: usize) -> NodeId {
    NodeId::from_bytes([node as u8 + 1; NodeId::BYTES])
}

/// A rule that is broken on purpose, to see that it is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bug {
    /// A node serves however long ago it heard of a quorum.
    NoLease,
    /// A node that comes back serves before it has applied what was decided meanwhile.
    ServesBehind,
    /// The source says that the slot is parked, and goes on.
    ParksNothing,
    /// The source lets the slot go on as soon as it proposes the end, also when the commit was proposed.
    UnparksEarly,
    /// The source lets the slot go on before its gate knows the new owner.
    UnparksBeforeGate,
    /// A source that comes back serves what it was giving away.
    ForgetsToPark,
    /// A source that comes back begins a migration anew of which it does not know what was proposed.
    BeginsAnew,
    /// The source frees the keys when it proposes the commit.
    DropsEarly,
    /// The source frees the keys some time later, whoever owns the slot by then.
    DropsBlindly,
    /// The target says that it has everything before that is durable.
    ReadyUnsynced,
    /// A target that comes back drops what it has at once.
    DropsAtRestart,
    /// The target keeps what an earlier attempt has brought.
    KeepsAttempt,
    /// What was imported stays when the migration has ended.
    KeepsHalf,
    /// What a later migration has brought goes with what an earlier one has left.
    DropsAnother,
    /// A node does not look for what migrations that ended without it have left.
    KeepsLeftovers,
    /// The source leaves out what was written after the snapshot.
    LosesTail,
}

impl Bug {
    const ALL: [Self; 16] = [
        Self::NoLease,
        Self::ServesBehind,
        Self::ParksNothing,
        Self::UnparksEarly,
        Self::UnparksBeforeGate,
        Self::ForgetsToPark,
        Self::BeginsAnew,
        Self::DropsEarly,
        Self::DropsBlindly,
        Self::ReadyUnsynced,
        Self::DropsAtRestart,
        Self::KeepsAttempt,
        Self::KeepsHalf,
        Self::DropsAnother,
        Self::KeepsLeftovers,
        Self::LosesTail,
    ];
}

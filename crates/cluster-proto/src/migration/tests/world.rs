//! Two nodes, a log, links that break, processes that die, and clients that write all the while.
//!
//! The nodes' contents are maps of small keys to versions. Whenever a node serves, it must hold exactly what clients were told is
//! written, and never may both serve.

mod drivers;
mod faults;

use super::super::wire::Frame;
use super::super::*;
use super::id;
use crate::change::{Change, MigrationEnd, Outcome};
use crate::metadata::{Metadata, MigrationState};
use crate::node::Announced;
use bytes::BytesMut;
use std::collections::{BTreeMap, VecDeque};
use towline_sansio::Prng;

pub(super) const S: NodeId = id(1);
pub(super) const T: NodeId = id(2);
const M: NodeId = id(50);

type Contents = BTreeMap<u8, u8>;

/// What may go wrong, each one time in so many steps; 0 for never.
#[derive(Debug, Clone, Copy)]
pub(super) struct Faults {
    pub(super) breaks: u64,
    pub(super) source_crashes: u64,
    pub(super) target_crashes: u64,
    pub(super) lost_proposals: u64,
    pub(super) cancels: u64,
}

pub(super) const NO_FAULTS: Faults =
    Faults { breaks: 0, source_crashes: 0, target_crashes: 0, lost_proposals: 0, cancels: 0 };

/// A connection, as bytes in both directions. An end that was told of its loss is closed.
struct Link {
    attempt: u32,
    to_target: BytesMut,
    to_source: BytesMut,
    is_broken: bool,
    /// Both still believe in it.
    has_source: bool,
    has_target: bool,
    is_greeted: bool,
    read_by_target: BytesMut,
    read_by_source: BytesMut,
}

struct Stream {
    attempt: u32,
    images: VecDeque<(u8, u8)>,
    is_done: bool,
    tail: VecDeque<(u8, u8)>,
    position: u64,
}

/// What a node knows of the log.
struct Node {
    metadata: Metadata,
    applied: usize,
    is_up: bool,
    /// It serves nothing before it knows the log up to here: it was restarted.
    must_know: usize,
    is_parked: bool,
    contents: Contents,
}

impl Node {
    fn new() -> Self {
        let metadata = Metadata::default();
        let contents = Contents::new();
        Self { metadata, applied: 0, is_up: true, must_know: 0, is_parked: false, contents }
    }

    fn is_caught_up(&self) -> bool {
        self.applied >= self.must_know
    }

    fn serves(&self, me: NodeId) -> bool {
        self.is_up && self.is_caught_up() && !self.is_parked && self.metadata.owner(0) == Some(me)
    }

    fn decision(&self) -> Option<Decision> {
        let migration = self.metadata.migrations().get(&M)?;
        match migration.state {
            MigrationState::Active => None,
            MigrationState::Done => Some(Decision::Committed),
            MigrationState::Ended { .. } => Some(Decision::Ended),
        }
    }

    fn is_active(&self) -> bool {
        self.metadata.migrations().get(&M).is_some_and(|migration| migration.is_active())
    }
}

pub(super) struct World {
    prng: Prng,
    faults: Faults,
    config: Config,
    pub(super) now: Instant,
    log: Vec<Change>,
    /// Proposals that their proposer has given up on and that may come into the log all the same.
    zombies: Vec<Change>,
    s: Node,
    t: Node,
    source: Option<Source>,
    target: Option<Target>,
    /// Whether the process that asked for the migration is the one that runs.
    is_source_first: bool,
    links: Vec<Link>,
    streams: Vec<Stream>,
    dialled: Vec<u32>,
    fetching: Vec<u32>,
    parking: Vec<u32>,
    /// Streams that have something again, and nobody has been told yet.
    ready: Vec<u32>,
    proposed: Vec<(NodeId, Proposal)>,
    /// The target's import does one after the other.
    work: VecDeque<TargetAction>,
    durable: Contents,
    /// What clients were told is written.
    expected: Contents,
    pub(super) states_seen: std::collections::BTreeSet<&'static str>,
}

impl World {
    pub(super) fn new(seed: u64, faults: Faults, config: Config) -> Self {
        let at = Announced::default();
        let log = vec![
            Change::Found { cluster: id(99), node: S, shard: S, at: at.clone() },
            Change::Join { node: T, shard: T, at, slots: vec![], config_epoch: 0 },
            Change::AddSlots { node: S, slots: vec![(0, 9)] },
            Change::BeginMigration { id: M, source: S, target: T, slots: vec![(0, 9)], now_ms: 0 },
        ];
        let contents: Contents = (0..20).map(|key| (key, 1)).collect();
        let mut world = Self {
            prng: Prng::new(seed),
            faults,
            config,
            now: Instant::ZERO,
            log,
            zombies: Vec::new(),
            s: Node { contents: contents.clone(), ..Node::new() },
            t: Node::new(),
            source: None,
            target: None,
            is_source_first: true,
            links: Vec::new(),
            streams: Vec::new(),
            dialled: Vec::new(),
            fetching: Vec::new(),
            parking: Vec::new(),
            ready: Vec::new(),
            proposed: Vec::new(),
            work: VecDeque::new(),
            durable: Contents::new(),
            expected: contents,
            states_seen: std::collections::BTreeSet::new(),
        };
        while world.s.applied < 3 {
            world.apply_at_source();
        }
        world
    }

    fn one_in(&mut self, n: u64) -> bool {
        n > 0 && self.prng.below(n) == 0
    }

    /// One thing happens, whichever.
    pub(super) fn step(&mut self) {
        match self.prng.below(12) {
            0 | 1 => self.client_writes(),
            2 | 3 => self.bytes_arrive(),
            4 => self.source_fetches(),
            5 => self.answer_source(),
            6 | 7 => self.target_works(),
            8 => self.log_decides(),
            9 if self.one_in(2) => self.apply_at_source(),
            9 => self.apply_at_target(),
            10 => self.time_passes(),
            _ => self.something_breaks(),
        }
        assert!(!(self.s.serves(S) && self.t.serves(T)), "both serve");
        self.states_seen.extend(self.source.as_ref().map(|source| source.status().state));
        self.states_seen.extend(self.target.as_ref().map(|target| target.status().state));
    }

    /// From now on nothing breaks, and all that is under way comes to its end. Returns the owner.
    pub(super) fn heal(&mut self) -> NodeId {
        self.faults = NO_FAULTS;
        for _ in 0..100_000 {
            if !self.s.is_up {
                self.restart_source();
            }
            if !self.t.is_up {
                self.restart_target();
            }
            self.step();
            if self.is_quiet() {
                break;
            }
        }
        assert!(self.is_quiet(), "{}", self.describe());
        let owner = self.s.metadata.owner(0).unwrap();
        let (mine, other) = if owner == S { (&self.s, &self.t) } else { (&self.t, &self.s) };
        assert!(mine.serves(owner), "nobody serves: {}", self.describe());
        assert_eq!(mine.contents, self.expected, "what clients were told is written");
        assert_eq!(other.contents, Contents::new(), "what is left at the other node");
        assert!(!other.is_parked);
        owner
    }

    fn is_quiet(&self) -> bool {
        let is_decided =
            [&self.s, &self.t].iter().all(|node| node.applied == self.log.len() && !node.is_active());
        is_decided && self.work.is_empty() && self.source.is_none() && self.target.is_none()
    }

    fn describe(&self) -> String {
        format!(
            "at {:?} source {:?} target {:?} log {:?} applied {} {} parked {} {} work {:?} proposed {:?}",
            self.now,
            self.source,
            self.target,
            &self.log[3..],
            self.s.applied,
            self.t.applied,
            self.s.is_parked,
            self.t.is_parked,
            self.work,
            self.proposed,
        )
    }

    // ---- clients --------------------------------------------------------------------------------------------------

    fn client_writes(&mut self) {
        let key = self.prng.below(24) as u8;
        let version = self.prng.below(4) as u8;
        let node = match (self.s.serves(S), self.t.serves(T)) {
            (true, _) => &mut self.s,
            (_, true) => &mut self.t,
            _ => return,
        };
        assert_eq!(node.contents, self.expected, "a node serves that has something else");
        let set = |contents: &mut Contents| match version {
            0 => _ = contents.remove(&key),
            version => _ = contents.insert(key, version),
        };
        set(&mut node.contents);
        set(&mut self.expected);
        if self.s.serves(S) {
            for stream in &mut self.streams {
                let was_empty = stream.is_done && stream.tail.is_empty();
                stream.tail.push_back((key, version));
                if was_empty {
                    self.ready.push(stream.attempt);
                }
            }
        } else {
            self.durable = self.t.contents.clone();
        }
    }

    // ---- the log --------------------------------------------------------------------------------------------------

    fn log_decides(&mut self) {
        if self.one_in(4) && !self.zombies.is_empty() {
            let at = self.prng.below(self.zombies.len() as u64) as usize;
            let change = self.zombies.swap_remove(at);
            self.log.push(change);
        }
        if self.proposed.is_empty() {
            return;
        }
        let at = self.prng.below(self.proposed.len() as u64) as usize;
        let (by, proposal) = self.proposed.swap_remove(at);
        let change = proposal.into_change(M, 1);
        if !self.one_in(self.faults.lost_proposals) {
            self.log.push(change);
            return;
        }
        match self.prng.below(3) {
            0 => self.log.push(change),
            1 => self.zombies.push(change),
            _ => {}
        }
        self.proposal_failed(by);
    }

    fn proposal_failed(&mut self, by: NodeId) {
        let now = self.now;
        match (by == S, &mut self.source, &mut self.target) {
            (true, Some(source), _) => source.handle(now, SourceEvent::ProposalFailed),
            (false, _, Some(target)) => target.handle(now, TargetEvent::ProposalFailed),
            _ => {}
        }
    }

    fn apply_at_source(&mut self) {
        if !self.s.is_up || self.s.applied == self.log.len() {
            return;
        }
        self.s.metadata.apply(&self.log[self.s.applied]);
        self.s.applied += 1;
        if !self.s.is_caught_up() {
            return;
        }
        let now = self.now;
        if self.s.is_active() && self.source.is_none() {
            self.source = Some(if self.is_source_first {
                Source::new(M, S, self.config.clone(), now)
            } else {
                self.s.is_parked = true;
                Source::after_restart(M, S, self.config.clone(), now)
            });
        }
        match self.s.decision() {
            Some(decision) if self.source.is_some() => {
                if let Some(source) = &mut self.source {
                    source.handle(now, SourceEvent::Decided(decision));
                }
            }
            // Dropped at the start: the slots are another's.
            Some(Decision::Committed) => self.s.contents.clear(),
            Some(Decision::Ended) | None => {}
        }
        self.run_source();
        if self.source.as_ref().is_some_and(|source| source.decision().is_some()) {
            self.source = None;
        }
    }

    fn apply_at_target(&mut self) {
        if !self.t.is_up || self.t.applied == self.log.len() {
            return;
        }
        let is_replay = self.t.applied < self.t.must_know;
        self.t.metadata.apply(&self.log[self.t.applied]);
        self.t.applied += 1;
        if !self.t.is_caught_up() {
            return;
        }
        let now = self.now;
        if self.t.is_active() && self.target.is_none() {
            self.target = Some(if is_replay {
                self.t.is_parked = true;
                Target::after_restart(self.config.clone(), now)
            } else {
                Target::new(self.config.clone(), now)
            });
        }
        match self.t.decision() {
            Some(decision) if self.target.is_some() => {
                if let Some(target) = &mut self.target {
                    target.handle(now, TargetEvent::Decided(decision));
                }
            }
            Some(Decision::Ended) => self.t.contents.clear(),
            Some(Decision::Committed) | None => {}
        }
        self.run_target();
        if self.target.as_ref().is_some_and(|target| target.decision().is_some()) {
            self.target = None;
        }
    }

    // ---- links ----------------------------------------------------------------------------------------------------

    fn bytes_arrive(&mut self) {
        if self.links.is_empty() {
            return;
        }
        let at = self.prng.below(self.links.len() as u64) as usize;
        if self.links[at].is_broken && !self.one_in(30) {
            // What is still in the network when a link breaks may come very late.
            return;
        }
        let count = 1 + self.prng.below(60) as usize;
        let is_to_target = self.one_in(2);
        let link = &mut self.links[at];
        if is_to_target {
            let count = count.min(link.to_target.len());
            let bytes = link.to_target.split_to(count);
            link.read_by_target.extend_from_slice(&bytes);
            self.target_reads(at);
        } else {
            let count = count.min(link.to_source.len());
            let bytes = link.to_source.split_to(count);
            link.read_by_source.extend_from_slice(&bytes);
            self.source_reads(at);
        }
    }

    fn target_reads(&mut self, at: usize) {
        // Before the log's entry has come the link waits.
        while self.t.is_up && self.t.is_active() && self.target.is_some() && self.links[at].has_target {
            let link = &mut self.links[at];
            let Some(frame) = Frame::decode(&mut link.read_by_target).unwrap() else { return };
            let event = match frame {
                Frame::Hello { attempt, version, .. } if !link.is_greeted => {
                    link.is_greeted = true;
                    TargetEvent::Hello { attempt, version }
                }
                frame => TargetEvent::Frame(link.attempt, frame),
            };
            if let Some(target) = &mut self.target {
                target.handle(self.now, event);
            }
            self.run_target();
        }
    }

    fn source_reads(&mut self, at: usize) {
        while self.s.is_up && self.links[at].has_source {
            let link = &mut self.links[at];
            let Some(frame) = Frame::decode(&mut link.read_by_source).unwrap() else { return };
            let event = SourceEvent::Frame(link.attempt, frame);
            if let Some(source) = &mut self.source {
                source.handle(self.now, event);
            }
            self.run_source();
        }
    }

    fn break_link(&mut self, at: usize) {
        let link = &mut self.links[at];
        link.is_broken = true;
        link.to_source.clear();
        // Each end learns of it now, or by silence.
        let (tell_source, tell_target) = (self.prng.below(3) > 0, self.prng.below(3) > 0);
        let link = &mut self.links[at];
        if tell_target {
            link.to_target.clear();
        }
        let attempt = link.attempt;
        if tell_source
            && std::mem::take(&mut link.has_source)
            && let Some(source) = &mut self.source
        {
            source.handle(self.now, SourceEvent::Lost(attempt, "it broke".into()));
        }
        if tell_target
            && std::mem::take(&mut link.has_target)
            && let Some(target) = &mut self.target
        {
            target.handle(self.now, TargetEvent::Lost(attempt));
        }
        self.run_source();
        self.run_target();
    }
}

//! A node: what its disk has, what its process knows, and the slot as its gate has it.
//!
//! Owns: what one node does by itself. Does **not** own what needs time, other nodes or the network.

use super::log::Replica;
use super::*;

/// The slot stream of one attempt.
#[derive(Debug, Clone)]
pub(super) struct Stream {
    pub(super) attempt: u32,
    pub(super) images: VecDeque<(u8, u32)>,
    pub(super) is_done: bool,
    /// Version 0: the key is gone.
    pub(super) tail: VecDeque<(u8, u32)>,
    pub(super) position: u64,
}

pub(super) struct Node {
    pub(super) me: usize,
    pub(super) is_up: bool,
    /// Counts processes: what was on its way to an earlier one does not come to this one.
    pub(super) life: u32,
    pub(super) log: Replica,
    pub(super) applied: usize,
    pub(super) metadata: Metadata,
    /// What the gate goes by.
    pub(super) known: Metadata,
    pub(super) is_parked: bool,
    pub(super) is_hidden: bool,
    pub(super) contents: Contents,
    /// What a crash leaves at least.
    pub(super) durable: Contents,
    pub(super) begun: BTreeSet<NodeId>,
    pub(super) source: Option<(NodeId, Source)>,
    pub(super) target: Option<(NodeId, Target)>,
    pub(super) stream: Option<Stream>,
    /// The import does one after the other.
    pub(super) work: VecDeque<TargetAction>,
    pub(super) has_looked: bool,
    pub(super) was_fresh: bool,
    /// Migrations to this node that were under way before this process knew what is decided.
    pub(super) found: BTreeSet<NodeId>,
    /// Migrations that were seen under way, and are still to be begun here.
    pub(super) waiting: BTreeMap<NodeId, Migration>,
}

impl Node {
    pub(super) fn new(me: usize) -> Self {
        Self {
            me,
            is_up: true,
            life: 0,
            log: Replica::new(me),
            applied: 0,
            metadata: Metadata::default(),
            known: Metadata::default(),
            is_parked: false,
            is_hidden: false,
            contents: Contents::new(),
            durable: Contents::new(),
            begun: BTreeSet::new(),
            source: None,
            target: None,
            stream: None,
            work: VecDeque::new(),
            has_looked: false,
            was_fresh: false,
            found: BTreeSet::new(),
            waiting: BTreeMap::new(),
        }
    }

    /// The process is gone.
    pub(super) fn crash(&mut self, keeps_all: bool) {
        let (contents, durable) = (std::mem::take(&mut self.contents), std::mem::take(&mut self.durable));
        let log = self.log.clone();
        let (me, life) = (self.me, self.life + 1);
        let contents = if keeps_all { contents } else { durable };
        *self = Self { is_up: false, life, log, durable: contents.clone(), contents, ..Self::new(me) };
    }

    pub(super) fn is_fresh(&mut self, now: Instant, bug: Option<Bug>) -> bool {
        self.log.is_fresh(now, self.applied, bug)
    }

    /// Applies what is known to be decided; whether there was anything.
    pub(super) fn apply(&mut self) -> bool {
        let before = self.applied;
        while self.applied < self.log.commit {
            self.metadata.apply(&self.log.entries[self.applied].1);
            self.applied += 1;
            assert_eq!(self.metadata.check(), Ok(()));
        }
        before != self.applied
    }

    pub(super) fn owns(&self, metadata: &Metadata) -> bool {
        metadata.owner(SLOT) == Some(name(self.me))
    }

    /// What becomes of a command on a key of the slot.
    pub(super) fn verdict(&mut self, now: Instant, bug: Option<Bug>) -> Verdict {
        let request = Request {
            keys: Keys::Slot { slot: SLOT, are_several: false },
            is_asking: false,
            is_migrate: false,
            is_readonly_client: false,
            writes: true,
            is_shard_channel: false,
        };
        let node = NodeState {
            is_cluster_ok: self.is_fresh(now, bug),
            allows_reads_when_down: false,
            allows_shard_pubsub_when_down: false,
            replicates: None,
        };
        let slot = SlotState::of(&self.known, name(self.me), SLOT, self.is_parked);
        gate::decide(&request, &slot, &node, Present::default)
    }

    /// What the log says of a migration.
    pub(super) fn decision(&self, id: NodeId) -> Option<Decision> {
        match self.metadata.migrations().get(&id).map(|migration| &migration.state) {
            Some(MigrationState::Active) => None,
            Some(MigrationState::Done) => Some(Decision::Committed),
            Some(MigrationState::Ended { .. }) | None => Some(Decision::Ended),
        }
    }

    /// Frees what migrations have left here that ended while this node was down.
    pub(super) fn drop_leftovers(&mut self) {
        let me = name(self.me);
        let mine = self.metadata.migrations().values().filter(|it| it.source == me || it.target == me);
        let latest = mine.max_by_key(|migration| migration.number);
        let is_left = latest.is_some_and(|migration| {
            let moved_away = migration.source == name(self.me) && migration.state == MigrationState::Done;
            let never_came =
                migration.target == name(self.me) && matches!(migration.state, MigrationState::Ended { .. });
            moved_away || never_came
        });
        if is_left && !self.owns(&self.metadata) && !self.is_hidden {
            self.contents.clear();
        }
    }

    /// The slot goes on, unless a migration of which it is not known what was proposed takes it away.
    pub(super) fn unpark(&mut self) {
        let is_taken = self.active().iter().any(|(id, it)| self.is_interrupted(*id, it));
        self.is_parked &= is_taken;
    }

    pub(super) fn is_interrupted(&self, id: NodeId, migration: &Migration) -> bool {
        migration.source == name(self.me) && !self.begun.contains(&id)
    }

    /// The active migrations that this node is part of.
    pub(super) fn active(&self) -> Vec<(NodeId, Migration)> {
        let is_mine = |migration: &Migration| {
            migration.is_active() && (migration.source == name(self.me) || migration.target == name(self.me))
        };
        let all = self.metadata.migrations().iter();
        all.filter(|(_, it)| is_mine(it)).map(|(&id, it)| (id, it.clone())).collect()
    }
}

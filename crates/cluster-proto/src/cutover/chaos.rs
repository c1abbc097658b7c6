//! Elections, operators, and what goes wrong.

use super::world::{Event, World};
use super::*;

/// How long after its lease must be over an operator takes the slot from a node that does not answer: it may have heard one heartbeat more than
/// it has answered.
const GONE_AFTER: Duration = Duration::from_millis(300);

impl World {
    /// Some of it happens now.
    pub(super) fn turn(&mut self) {
        for node in 0..NODES {
            let one = &self.nodes[node];
            let is_alone = one.is_up && self.now.since(one.log.heard_leader) > Duration::from_millis(350);
            if is_alone && one.log.leading.is_none() && self.rng.below(4) == 0 {
                self.elect(node);
            }
        }
        self.tend();
        if self.is_calm {
            return;
        }
        match self.rng.below(60) {
            0..4 => self.migrate(),
            4 => self.cancel(),
            5 => self.kill(),
            6 | 7 => self.cut_off(),
            8 | 9 if !self.links.is_empty() => {
                let at = self.links.len() - 1;
                self.break_link(at);
            }
            _ => {}
        }
    }

    fn leader(&self) -> Option<usize> {
        let leads = |node: &usize| self.nodes[*node].is_up && self.nodes[*node].log.leading.is_some();
        (0..NODES).filter(leads).max_by_key(|&node| self.nodes[node].log.term)
    }

    /// The leader says who answers. An operator gives what a node had that does not to another one, some time later.
    fn tend(&mut self) {
        let Some(leader) = self.leader() else { return };
        let (now, metadata) = (self.now, self.nodes[leader].metadata.clone());
        for node in (0..NODES).filter(|&node| node != leader) {
            let answered = self.nodes[leader].log.answered(node);
            let answers = answered.is_some_and(|at| now.since(at) <= log::LEASE);
            let known = metadata.node(name(node)).expect("a node").health;
            if answers != (known == Health::Online) && self.rng.below(3) == 0 {
                self.propose(leader, Change::Answers { node: name(node), answers, now_ms: 1 });
            }
        }
        let owner = (0..NODES).find(|&node| metadata.owner(SLOT) == Some(name(node)));
        // Made, refused, or lost with a leader.
        let is_decided = self.nodes[leader].applied == self.nodes[leader].log.entries.len();
        if self.doomed.is_some() && is_decided {
            // What was said to it before is on its way no longer.
            let released_at = *self.released_at.get_or_insert(now + 2 * log::LATE_MAX);
            if now >= released_at {
                (self.doomed, self.released_at) = (None, None);
                self.heal_network();
            }
        }
        let Some(owner) = owner.filter(|&owner| owner != leader) else { return };
        let is_failed = metadata.node(name(owner)).is_some_and(|node| node.health != Health::Online);
        let answered = self.nodes[leader].log.answered(owner);
        let is_gone = is_failed && answered.is_some_and(|at| now.since(at) > log::LEASE + GONE_AFTER);
        if is_gone && self.doomed.is_none() && !self.is_calm && self.rng.below(10) == 0 {
            self.expected = None;
            self.doomed = Some(owner);
            self.isolate(owner);
            let owner = name(leader);
            // At once or never: said to the leader, and said once.
            let change = Change::SetOwner { node: owner, slot: SLOT, owner, holds_keys: false };
            self.hear(leader, leader, log::Say::Propose(change));
        }
    }

    fn isolate(&mut self, node: usize) {
        for other in (0..NODES).filter(|&other| other != node) {
            (self.cut[node][other], self.cut[other][node]) = (true, true);
        }
    }

    pub(super) fn heal_network(&mut self) {
        self.cut = [[false; NODES]; NODES];
        if let Some(doomed) = self.doomed {
            self.isolate(doomed);
        }
    }

    /// `CLUSTER MIGRATESLOTS`, said to the owner.
    fn migrate(&mut self) {
        let owner =
            (0..NODES).find(|&node| self.nodes[node].is_up && self.nodes[node].owns(&self.nodes[node].known));
        let Some(owner) = owner.filter(|&owner| self.nodes[owner].active().is_empty()) else { return };
        let target = (owner + 1 + self.rng.below(2) as usize) % NODES;
        self.migrations += 1;
        let id = NodeId::from_bytes([100 + self.migrations; NodeId::BYTES]);
        let (source, target, slots) = (name(owner), name(target), vec![(SLOT, SLOT)]);
        self.nodes[owner].begun.insert(id);
        self.propose(owner, Change::BeginMigration { id, source, target, slots, now_ms: 1 });
    }

    fn cancel(&mut self) {
        let node = self.rng.below(NODES as u64) as usize;
        let active = self.nodes[node].metadata.migrations().iter().find(|(_, it)| it.is_active());
        if let Some(id) = active.map(|(&id, _)| id) {
            let (end, message) = (MigrationEnd::Cancelled, "cancelled".into());
            self.propose(node, Change::EndMigration { id, end, message, now_ms: 1 });
        }
    }

    fn kill(&mut self) {
        let node = self.rng.below(NODES as u64) as usize;
        if !self.nodes[node].is_up {
            return;
        }
        self.note(|_| format!("node {node} dies"));
        self.close_all_of(node);
        let keeps_all = self.rng.below(2) == 0;
        self.nodes[node].crash(keeps_all);
        self.forget_alarm(node);
        // Mostly it is back at once; sometimes others have had to do without it.
        let late = if self.rng.below(3) == 0 { 4000 } else { 300 };
        let late = Duration::from_millis(20 + self.rng.below(late));
        self.after(late, Event::Restart { node });
    }

    pub(super) fn restart(&mut self, node: usize) {
        let now = self.now;
        let one = &mut self.nodes[node];
        // How far the log is decided was perhaps not written down.
        let commit = one.log.commit.saturating_sub(self.rng.below(4) as usize).max(4);
        one.is_up = true;
        one.log.restart(commit, now);
        one.apply();
        self.follow(node);
        self.catch_up(node);
    }

    /// One node is cut off, or two of them from each other, in both directions.
    fn cut_off(&mut self) {
        let node = self.rng.below(NODES as u64) as usize;
        let alone = self.rng.below(2) == 0;
        if alone {
            self.isolate(node);
        } else {
            let other = (node + 1) % NODES;
            (self.cut[node][other], self.cut[other][node]) = (true, true);
        }
        let late = if self.rng.below(3) == 0 { 6000 } else { 900 };
        let late = Duration::from_millis(50 + self.rng.below(late));
        self.after(late, Event::Heal);
    }
}

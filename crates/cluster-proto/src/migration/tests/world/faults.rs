//! Time, losses, crashes and restarts.

use super::*;

impl World {
    pub(super) fn time_passes(&mut self) {
        let timeouts = [
            self.source.as_ref().and_then(Source::poll_timeout),
            self.target.as_ref().and_then(Target::poll_timeout),
        ];
        // Mostly a little, so that what is under way is faster than what waits.
        let next = timeouts.into_iter().flatten().min();
        self.now = match next {
            Some(next) if self.one_in(30) => self.now.max(next),
            _ => self.now + Duration::from_millis(self.prng.below(10)),
        };
        let now = self.now;
        if let Some(source) = self.source.as_mut() {
            source.handle_timeout(now);
        }
        if let Some(target) = self.target.as_mut() {
            target.handle_timeout(now);
        }
        self.run_source();
        self.run_target();
    }

    pub(super) fn something_breaks(&mut self) {
        let faults = self.faults;
        if !self.links.is_empty() && self.one_in(faults.breaks) {
            let at = self.prng.below(self.links.len() as u64) as usize;
            self.break_link(at);
        }
        if self.one_in(faults.cancels) {
            let message = "cancelled".into();
            self.log.push(Change::EndMigration { id: M, end: MigrationEnd::Cancelled, message, now_ms: 1 });
        }
        if !self.s.is_up && self.one_in(4) {
            self.restart_source();
        } else if self.s.is_up && self.one_in(faults.source_crashes) {
            self.crash_source();
        }
        if !self.t.is_up && self.one_in(4) {
            self.restart_target();
        } else if self.t.is_up && self.one_in(faults.target_crashes) {
            self.crash_target();
        }
    }

    pub(in super::super) fn lose_link(&mut self) {
        if let Some(last) = self.links.len().checked_sub(1) {
            self.break_link(last);
        }
    }

    pub(in super::super) fn lose_source(&mut self) {
        self.crash_source();
    }

    pub(in super::super) fn lose_target(&mut self) {
        self.crash_target();
    }

    /// What is proposed now may come into the log late, or never, and its proposers are told that nobody knows.
    pub(in super::super) fn lose_proposals(&mut self) {
        for (by, proposal) in std::mem::take(&mut self.proposed) {
            if self.one_in(2) {
                self.zombies.push(proposal.into_change(M, 1));
            }
            self.proposal_failed(by);
        }
    }

    /// What a process that died has proposed may still come into the log, each by itself.
    pub(super) fn bury(&mut self, node: NodeId) {
        for (by, proposal) in std::mem::take(&mut self.proposed) {
            match by == node {
                true if self.one_in(2) => self.zombies.push(proposal.into_change(M, 1)),
                true => {}
                false => self.proposed.push((by, proposal)),
            }
        }
    }

    pub(super) fn crash_source(&mut self) {
        self.bury(S);
        self.source = None;
        self.streams.clear();
        self.dialled.clear();
        self.fetching.clear();
        self.parking.clear();
        self.ready.clear();
        self.s.is_up = false;
        self.s.is_parked = false;
        self.is_source_first = self.is_source_first && !self.s.metadata.migrations().contains_key(&M);
        for link in &mut self.links {
            link.has_source = false;
        }
        for at in 0..self.links.len() {
            self.break_link(at);
        }
    }

    pub(super) fn crash_target(&mut self) {
        self.bury(T);
        self.target = None;
        self.work.clear();
        self.t.is_up = false;
        self.t.is_parked = false;
        if self.one_in(2) {
            self.t.contents = self.durable.clone();
        }
        for link in &mut self.links {
            link.has_target = false;
        }
        for at in 0..self.links.len() {
            self.break_link(at);
        }
    }

    /// What a node knew of the log's entries it may have to learn again.
    pub(super) fn restart(prng: &mut Prng, log: &[Change], node: &mut Node) {
        node.is_up = true;
        node.must_know = log.len();
        let forgotten = prng.below(3) as usize;
        node.applied = node.applied.saturating_sub(forgotten + 1);
        node.metadata = Metadata::default();
        for change in &log[..node.applied] {
            let outcome = node.metadata.apply(change);
            assert!(!matches!(outcome, Outcome::Many(_)));
        }
    }

    pub(super) fn restart_source(&mut self) {
        Self::restart(&mut self.prng, &self.log, &mut self.s);
        // Before it has caught up it serves nothing.
        while !self.s.is_caught_up() {
            self.apply_at_source();
        }
    }

    pub(super) fn restart_target(&mut self) {
        Self::restart(&mut self.prng, &self.log, &mut self.t);
        while !self.t.is_caught_up() {
            self.apply_at_target();
        }
    }
}

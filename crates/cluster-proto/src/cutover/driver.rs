//! What a node's driver does: beginning to work on what the log says, and what the machines say.
//!
//! Owns: the order of these things. Does **not** decide anything.

use super::node::Stream;
use super::world::{Event, World};
use super::*;

impl World {
    // ---- the log --------------------------------------------------------------------------------------------------

    /// The node looks at what it knows: called when it has applied something, or may have become fresh.
    pub(super) fn follow(&mut self, node: usize) {
        let (now, bug) = (self.now, self.bug);
        let one = &mut self.nodes[node];
        if !one.is_up {
            return;
        }
        let is_fresh = one.is_fresh(now, bug);
        if is_fresh && !std::mem::replace(&mut one.has_looked, true) && bug != Some(Bug::KeepsLeftovers) {
            one.drop_leftovers();
        }
        for (id, migration) in one.active() {
            if !self.nodes[node].was_fresh && migration.target == name(node) {
                self.nodes[node].found.insert(id);
            }
            self.nodes[node].waiting.insert(id, migration);
        }
        self.start_waiting(node);
        let one = &mut self.nodes[node];
        one.was_fresh |= is_fresh;
        if bug == Some(Bug::UnparksBeforeGate) {
            self.after(Duration::from_millis(3), Event::CatchUp { node, life: self.nodes[node].life });
        } else {
            self.catch_up(node);
        }
        self.hear_decisions(node);
        if !self.nodes[node].waiting.is_empty() {
            self.start_waiting(node);
            self.hear_decisions(node);
        }
    }

    /// Begins what waits for an earlier migration to end here, also if it is over by then.
    fn start_waiting(&mut self, node: usize) {
        let mut waiting: Vec<_> = std::mem::take(&mut self.nodes[node].waiting).into_iter().collect();
        waiting.sort_unstable_by_key(|(_, migration)| migration.number);
        for (id, migration) in waiting {
            let one = &self.nodes[node];
            let runs = |it: Option<NodeId>| it == Some(id);
            if runs(one.source.as_ref().map(|(id, _)| *id)) || runs(one.target.as_ref().map(|(id, _)| *id)) {
                continue;
            }
            if one.source.is_some() || one.target.is_some() || !one.work.is_empty() {
                self.nodes[node].waiting.insert(id, migration);
            } else {
                self.start(node, id, &migration);
            }
        }
    }

    /// The gate goes by what is applied.
    pub(super) fn catch_up(&mut self, node: usize) {
        let bug = self.bug;
        let one = &mut self.nodes[node];
        one.known = one.metadata.clone();
        for (id, migration) in one.active() {
            let is_interrupted = one.is_interrupted(id, &migration);
            one.is_parked |= is_interrupted && !matches!(bug, Some(Bug::ForgetsToPark | Bug::BeginsAnew));
        }
    }

    fn start(&mut self, node: usize, id: NodeId, migration: &Migration) {
        let (now, bug, config) = (self.now, self.bug, self.config.clone());
        let one = &mut self.nodes[node];
        let is_source = migration.source == name(node);
        if is_source {
            let is_known = one.begun.contains(&id) || bug == Some(Bug::BeginsAnew);
            let machine = if is_known {
                Source::new(id, name(node), config, now)
            } else {
                one.is_parked = bug != Some(Bug::ForgetsToPark);
                Source::after_restart(id, name(node), config, now)
            };
            one.source = Some((id, machine));
            self.run_source(node);
        } else {
            let machine = if !one.found.contains(&id) {
                Target::new(config, now)
            } else {
                (one.is_parked, one.is_hidden) = (true, true);
                if bug == Some(Bug::DropsAtRestart) {
                    one.contents.clear();
                }
                Target::after_restart(config, now)
            };
            one.target = Some((id, machine));
            self.run_target(node);
        }
    }

    fn hear_decisions(&mut self, node: usize) {
        let of_source = self.nodes[node].source.as_ref().map(|(id, _)| *id);
        if let Some((id, decision)) = of_source.and_then(|id| Some((id, self.nodes[node].decision(id)?))) {
            self.tell_source(node, id, SourceEvent::Decided(decision));
            self.nodes[node].source = None;
            self.nodes[node].begun.remove(&id);
        }
        let of_target = self.nodes[node].target.as_ref().map(|(id, _)| *id);
        if let Some((id, decision)) = of_target.and_then(|id| Some((id, self.nodes[node].decision(id)?))) {
            self.tell_target(node, id, TargetEvent::Decided(decision));
            self.nodes[node].target = None;
        }
    }

    pub(super) fn propose(&mut self, node: usize, change: Change) {
        let Some(leader) = self.nodes[node].log.leader else { return };
        let late =
            if self.rng.below(20) == 0 { Duration::from_millis(self.rng.below(3000)) } else { self.short() };
        self.say_after(late, node, leader, log::Say::Propose(change));
    }

    // ---- the source -----------------------------------------------------------------------------------------------

    pub(super) fn tell_source(&mut self, node: usize, id: NodeId, event: SourceEvent) {
        let now = self.now;
        if let Some((_, machine)) = self.nodes[node].source.as_mut().filter(|(own, _)| *own == id) {
            machine.handle(now, event);
            self.run_source(node);
        }
    }

    fn source_after(&mut self, late: Duration, node: usize, id: NodeId, event: SourceEvent) {
        self.after(late, Event::Source { node, life: self.nodes[node].life, id, event });
    }

    pub(super) fn run_source(&mut self, node: usize) {
        while let Some((id, machine)) = &mut self.nodes[node].source
            && let Some(action) = machine.poll_action()
        {
            let id = *id;
            self.states.insert(machine.status().state);
            self.note(|_| format!("node {node}: {action:?}"));
            self.do_for_source(node, id, action);
        }
        self.wake(node);
    }

    fn do_for_source(&mut self, node: usize, id: NodeId, action: SourceAction) {
        let (bug, late) = (self.bug, self.short());
        let one = &mut self.nodes[node];
        match action {
            SourceAction::Dial(attempt) => {
                self.after(late, Event::Connect { node, life: self.nodes[node].life, id, attempt });
            }
            SourceAction::Send(attempt, frame) => self.send(node, 0, id, attempt, frame),
            SourceAction::Close(attempt) => self.close(node, 0, id, attempt),
            SourceAction::OpenStream(attempt) => {
                let images = one.contents.iter().map(|(&key, &version)| (key, version)).collect();
                let tail = VecDeque::new();
                one.stream = Some(Stream { attempt, images, is_done: false, tail, position: 0 });
            }
            SourceAction::Fetch(attempt) => {
                self.after(late, Event::Fetch { node, life: self.nodes[node].life, id, attempt });
            }
            SourceAction::CloseStream(attempt) => _ = one.stream.take_if(|stream| stream.attempt == attempt),
            SourceAction::Park(attempt) => {
                one.is_parked = bug != Some(Bug::ParksNothing);
                self.source_after(Duration::ZERO, node, id, SourceEvent::Parked(attempt));
            }
            SourceAction::Unpark if matches!(bug, Some(Bug::ForgetsToPark | Bug::BeginsAnew)) => {
                one.is_parked = false;
            }
            SourceAction::Unpark => one.unpark(),
            SourceAction::Propose(proposal) => {
                match (&proposal, bug) {
                    (Proposal::End(_), Some(Bug::UnparksEarly)) => one.is_parked = false,
                    (Proposal::Commit, Some(Bug::DropsEarly)) => one.contents.clear(),
                    _ => {}
                }
                self.propose(node, proposal.into_change(id, 1));
                self.source_after(PROPOSAL_MAX, node, id, SourceEvent::ProposalFailed);
            }
            SourceAction::DropSlots => {
                let late =
                    Duration::from_millis(if self.rng.below(4) == 0 { self.rng.below(1500) } else { 1 });
                self.after(late, Event::Drop { node, life: self.nodes[node].life });
            }
        }
    }

    /// The stream's next batch, told at the instant at which it is taken.
    pub(super) fn fetch(&mut self, node: usize, id: NodeId, attempt: u32) {
        let event = self.next_batch(node, attempt);
        self.tell_source(node, id, event);
    }

    fn next_batch(&mut self, node: usize, attempt: u32) -> SourceEvent {
        let (images_max, units_max) = (1 + self.rng.below(5) as usize, self.rng.below(4) as usize);
        let loses = self.bug == Some(Bug::LosesTail) && self.rng.below(4) == 0;
        let Some(stream) = self.nodes[node].stream.as_mut().filter(|stream| stream.attempt == attempt) else {
            return SourceEvent::Overrun(attempt);
        };
        let position_before = stream.position;
        stream.is_done = stream.images.is_empty();
        let count = images_max.min(stream.images.len());
        let images = encode(stream.images.drain(..count));
        let count = if stream.is_done { stream.tail.len() } else { units_max.min(stream.tail.len()) };
        if loses {
            stream.tail.iter_mut().for_each(|(key, _)| *key = u8::MAX);
        }
        let units = encode(stream.tail.drain(..count));
        stream.position += count as u64;
        let batch = StreamBatch {
            position_before,
            position: stream.position,
            is_snapshot_done: stream.is_done,
            images: images.into(),
            units: units.into(),
        };
        SourceEvent::Fetched(attempt, batch, stream.tail.len() as u64 * PAIR_BYTES as u64)
    }

    /// A key of the slot was changed here.
    pub(super) fn note_write(&mut self, node: usize, key: u8, version: u32) {
        let Some(stream) = &mut self.nodes[node].stream else { return };
        let was_empty = stream.is_done && stream.tail.is_empty();
        stream.tail.push_back((key, version));
        let attempt = stream.attempt;
        if let Some(id) = self.nodes[node].source.as_ref().map(|(id, _)| *id).filter(|_| was_empty) {
            let late = self.short();
            self.source_after(late, node, id, SourceEvent::StreamReady(attempt));
        }
    }

    // ---- the target -----------------------------------------------------------------------------------------------

    pub(super) fn tell_target(&mut self, node: usize, id: NodeId, event: TargetEvent) {
        let now = self.now;
        if let Some((_, machine)) = self.nodes[node].target.as_mut().filter(|(own, _)| *own == id) {
            machine.handle(now, event);
            self.run_target(node);
        }
    }

    pub(super) fn run_target(&mut self, node: usize) {
        while let Some((id, machine)) = &mut self.nodes[node].target
            && let Some(action) = machine.poll_action()
        {
            let id = *id;
            self.states.insert(machine.status().state);
            self.note(|_| format!("node {node}: {action:?}"));
            match action {
                TargetAction::Send(attempt, frame) => self.send(node, 1, id, attempt, frame),
                TargetAction::Close(attempt) => self.close(node, 1, id, attempt),
                TargetAction::Propose(proposal) => {
                    self.propose(node, proposal.into_change(id, 1));
                    let (life, event) = (self.nodes[node].life, TargetEvent::ProposalFailed);
                    self.after(PROPOSAL_MAX, Event::Target { node, life, id, event });
                }
                work => {
                    self.nodes[node].work.push_back(work);
                    self.work_soon(node, id);
                }
            }
        }
        self.wake(node);
    }

    fn work_soon(&mut self, node: usize, id: NodeId) {
        let late = Duration::from_micros(self.rng.below(5000));
        self.after(late, Event::Work { node, life: self.nodes[node].life, id });
    }

    /// The import does what is next.
    pub(super) fn work(&mut self, node: usize, id: NodeId) {
        let bug = self.bug;
        let one = &mut self.nodes[node];
        let Some(work) = one.work.pop_front() else { return };
        let event = match work {
            TargetAction::Begin(_) => {
                (one.is_parked, one.is_hidden) = (true, true);
                if bug != Some(Bug::KeepsAttempt) {
                    one.contents.clear();
                }
                None
            }
            TargetAction::Apply(attempt, batch) => {
                // The real one keeps effects back until the snapshot is whole. Here they win over images instead, which are older.
                for (key, version) in decode(&batch.images) {
                    one.contents.entry(key).or_insert(version);
                }
                one.contents.extend(decode(&batch.units));
                Some(TargetEvent::Applied(attempt))
            }
            TargetAction::Sync(attempt) => {
                one.contents.retain(|_, version| *version != 0);
                one.contents.remove(&u8::MAX);
                if bug != Some(Bug::ReadyUnsynced) {
                    one.durable = one.contents.clone();
                }
                Some(TargetEvent::Synced(attempt))
            }
            TargetAction::Abandon => {
                let is_another = one.found.contains(&id) && one.known.came_later(name(node), SLOT, id);
                if bug == Some(Bug::DropsAnother) || !(is_another || bug == Some(Bug::KeepsHalf)) {
                    one.contents.clear();
                }
                (one.is_parked, one.is_hidden) = (false, false);
                None
            }
            TargetAction::Finish => {
                if one.found.contains(&id) && !one.owns(&one.known) {
                    // It came, and has moved on since.
                    one.contents.clear();
                }
                (one.is_parked, one.is_hidden) = (false, false);
                None
            }
            TargetAction::Send(..) | TargetAction::Close(_) | TargetAction::Propose(_) => None,
        };
        if let Some(event) = event {
            self.tell_target(node, id, event);
        }
        if self.nodes[node].work.is_empty() {
            self.follow(node);
        }
    }

    /// Keys that were given away are freed, unless the slot came back meanwhile.
    pub(super) fn drop_slot(&mut self, node: usize) {
        let is_blind = self.bug == Some(Bug::DropsBlindly);
        let one = &mut self.nodes[node];
        if is_blind || !(one.owns(&one.known) || one.is_hidden) {
            one.contents.clear();
        }
    }
}

/// How long a proposal waits for its outcome.
const PROPOSAL_MAX: Duration = Duration::from_millis(500);

/// A key and its version.
const PAIR_BYTES: usize = 5;

fn encode(pairs: impl Iterator<Item = (u8, u32)>) -> Vec<u8> {
    pairs.flat_map(|(key, version)| [&[key][..], &version.to_le_bytes()].concat()).collect()
}

fn decode(bytes: &[u8]) -> impl Iterator<Item = (u8, u32)> {
    bytes
        .chunks_exact(PAIR_BYTES)
        .map(|pair| (pair[0], u32::from_le_bytes([pair[1], pair[2], pair[3], pair[4]])))
}

//! A connection moves: the successor is ready before the old one is left.
//!
//! Owns the decisions of one bridge's planned handoffs: when to dial and where, which connection will do as the
//! successor, what to do without one, and where an ordinary dial goes during a window. Does not own connections,
//! bytes, commands and their order ([`HandoffOrder`] is carried out by the bridge), relaxed timeouts
//! ([`crate::maintenance::Windows`]), the spread of dials over a process, or a clock.
//!
//! ```text
//!    +--------- Ended <-------------------------------+-------------------------------+
//!    |                                                | closed, reconnected           | drained, lost, too long
//!    v       on_moving            recycle_at          |                               |
//! Serving ------------> Waiting ----------------> Recycling                       Draining
//!    |                  |     ^                       ^                               ^
//!    | queued,          |     | failed, lost,         | recycle_at                    | on_cut_over
//!    | now begins       |     | same node             |                               |
//!    +--> Waiting       +---> Preparing --------------+                             Ready
//!                     dial_at     |               on_ready: CutOver                   ^
//!                                 +---------------------------------------------------+
//! ```
//!
//! From Waiting, Preparing and Ready the loss of the old connection and the end of the window lead to Ended as well,
//! and a newer announcement leads back to Waiting.
//!
//! * **Named successor**: dialled at once, by connections without work at a drawn moment of the window's first part.
//!   It is accepted whatever it is, for the server said so. Refused or slow: the old connection goes on, further dials
//!   follow with a short backoff, from the second failure on in turn with the configured address.
//! * **No successor**: the configured address is dialled again at half of the window. If it is a name and leads to the
//!   same peer, names lag behind: the old connection goes on, and further dials follow. The last, at nine tenths of
//!   the window, is accepted whatever it leads to.
//! * **Nothing worked** by nine tenths of the window: [`Step::Recycle`].
//! * **Another announcement** changes the successor of a handoff that is being prepared. The first window of a
//!   connection stands: the server closes it then, whatever it said later. While the old connection is
//!   drained it waits, with its own window, and begins from the newest connection.
//!
//! The driver calls [`Handoff::poll`] until it says nothing after each event and at [`Handoff::poll_timeout`].

mod config;
mod event;
mod job;
mod pin;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use towline_sansio::{Instant, Prng};

use crate::generation::Generation;
use crate::maintenance::{Dedupe, Identity, Moving, Seen};
use job::Job;
use pin::Pin;

pub use config::{HandoffConfig, HandoffOrder};
pub use event::{Counters, Ended, Facts, Judgement, Outcome, Phase, Source, Step, Taken, Target, Times};

/// Ended handoffs that wait for a poll. A driver polls after each event, so there is one at most; should it not, the
/// oldest are dropped.
const ENDED_MAX: usize = 8;

/// The handoffs of one bridge, one at a time.
#[derive(Debug, Clone)]
pub struct Handoff {
    config: HandoffConfig,
    dedupe: Dedupe,
    state: State,
    /// The connection that serves, as far as it is known here.
    serving: Option<Source>,
    /// What begins after the drain.
    queued: Option<Box<Job>>,
    pin: Option<Pin>,
    /// What led to the connection that serves, until its window ends.
    last_move: Option<(Identity, Instant)>,
    /// When announcements were followed.
    chain: VecDeque<Instant>,
    outputs: Outputs,
    counters: Counters,
}

#[derive(Debug, Clone)]
enum State {
    Serving,
    Waiting(Box<Job>),
    Preparing(Box<Job>),
    Ready(Box<Job>),
    Draining(Box<Job>, Instant),
    Recycling(Box<Job>, Instant),
}

/// What is to be said in the next poll, in this order.
#[derive(Debug, Clone, Default)]
struct Outputs {
    abandon: bool,
    retire: bool,
    recycle: Option<Duration>,
    ended: VecDeque<Ended>,
}

impl Outputs {
    fn is_empty(&self) -> bool {
        !self.abandon && !self.retire && self.recycle.is_none() && self.ended.is_empty()
    }

    fn pop(&mut self) -> Option<Step> {
        if std::mem::take(&mut self.abandon) {
            return Some(Step::AbandonDial);
        }
        if std::mem::take(&mut self.retire) {
            return Some(Step::Retire);
        }
        if let Some(hold_max) = self.recycle.take() {
            return Some(Step::Recycle { hold_max });
        }
        self.ended.pop_front().map(Step::Ended)
    }
}

impl Handoff {
    /// No handoff yet.
    pub fn new(config: HandoffConfig) -> Self {
        Self {
            config: config.sane(),
            dedupe: Dedupe::new(),
            state: State::Serving,
            serving: None,
            queued: None,
            pin: None,
            last_move: None,
            chain: VecDeque::new(),
            outputs: Outputs::default(),
            counters: Counters::default(),
        }
    }

    /// The server announced on a connection that it moves. The window counts from `now`, so it is to be told when the
    /// frame is read, not when somebody next uses the connection.
    pub fn on_moving(&mut self, now: Instant, moving: &Moving, from: Source, prng: &mut Prng) -> Taken {
        let taken = self.take(now, moving, from, prng);
        let counters = &mut self.counters;
        counters.announced += 1;
        match taken {
            Taken::Begun => counters.begun += 1,
            Taken::Retargeted => counters.retargeted += 1,
            Taken::Queued => counters.queued += 1,
            Taken::Duplicate => counters.duplicates += 1,
            Taken::Stale => counters.stale += 1,
            Taken::TooMany => counters.too_many += 1,
        }
        taken
    }

    fn take(&mut self, now: Instant, moving: &Moving, from: Source, prng: &mut Prng) -> Taken {
        if from.generation < self.oldest_used() {
            return Taken::Stale;
        }
        let identity = Identity::of(moving, from.peer);
        if self.is_repeated(now, &identity, &from) {
            return Taken::Duplicate;
        }
        match self.dedupe.check(now, &identity) {
            Seen::New => {}
            Seen::Duplicate => return Taken::Duplicate,
            Seen::Stale => return Taken::Stale,
        }
        let job = Job::new(now, moving, from, &self.config, prng);
        if !self.may_follow(now) {
            if matches!(self.state, State::Serving) {
                // It is not followed, but when the server closes the connection, this is where to go.
                self.pin = Some(Pin::new(identity, job.window_end + self.config.grace));
            }
            return Taken::TooMany;
        }
        self.chain.push_back(now);
        self.dedupe.record(now, identity, job.window_end);
        self.enter(Box::new(job))
    }

    /// Puts a new job where the phase wants it.
    fn enter(&mut self, mut job: Box<Job>) -> Taken {
        match std::mem::replace(&mut self.state, State::Serving) {
            State::Serving => {
                self.begin(job);
                Taken::Begun
            }
            // Read on a successor that does not serve yet: for later, if it ever serves.
            state @ (State::Preparing(_) | State::Ready(_)) if self.is_candidate(job.source.generation) => {
                self.state = state;
                self.queue(job);
                Taken::Queued
            }
            State::Waiting(old) => {
                self.retarget(&old, job);
                Taken::Retargeted
            }
            State::Preparing(old) | State::Ready(old) => {
                self.abandon();
                self.retarget(&old, job);
                Taken::Retargeted
            }
            state @ State::Draining(..) => {
                self.state = state;
                self.queue(job);
                Taken::Queued
            }
            State::Recycling(old, until) => {
                // Work is held already; only where it goes changes.
                self.pin = Some(Pin::new(job.identity.clone(), job.window_end));
                job.retargets = old.retargets.saturating_add(1);
                job.dials = old.dials;
                self.state = State::Recycling(job, until);
                Taken::Retargeted
            }
        }
    }

    /// What to do now. Call again until it says nothing.
    pub fn poll(&mut self, now: Instant) -> Option<Step> {
        // Each round but the last changes the phase, and there are fewer changes in a row than this.
        for _ in 0..8 {
            if let Some(step) = self.outputs.pop() {
                return Some(step);
            }
            match std::mem::replace(&mut self.state, State::Serving) {
                State::Serving => {
                    let job = self.queued.take()?;
                    self.begin_queued(now, job);
                }
                State::Waiting(job) if now >= job.window_end => self.end(now, &job, Outcome::MissedWindow),
                State::Waiting(job) if now >= job.recycle_at => self.recycle(now, job),
                State::Waiting(mut job) if now >= job.dial_at => {
                    let target = job.dial(now);
                    self.state = State::Preparing(job);
                    self.counters.dials += 1;
                    return Some(Step::Dial { target });
                }
                State::Preparing(job) | State::Ready(job) if now >= job.window_end => {
                    self.abandon();
                    self.end(now, &job, Outcome::MissedWindow);
                }
                State::Preparing(job) if now >= job.recycle_at => {
                    self.abandon();
                    self.recycle(now, job);
                }
                State::Draining(job, until) if now >= until => {
                    self.outputs.retire = true;
                    self.counters.drains_cut += 1;
                    self.end(now, &job, Outcome::Moved);
                }
                State::Recycling(job, until) if now >= until => self.end(now, &job, Outcome::MissedWindow),
                state => {
                    self.state = state;
                    return None;
                }
            }
        }
        None
    }

    /// When to poll next; `None` when nothing is going to happen without other events.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if !self.outputs.is_empty() {
            return Some(Instant::ZERO);
        }
        match &self.state {
            State::Serving => self.queued.as_ref().map(|_| Instant::ZERO),
            State::Waiting(job) => Some(job.dial_at.min(job.recycle_at).min(job.window_end)),
            State::Preparing(job) => Some(job.recycle_at.min(job.window_end)),
            State::Ready(job) => Some(job.window_end),
            State::Draining(_, until) | State::Recycling(_, until) => Some(*until),
        }
    }

    /// A dial failed, or its handshake: that of the successor, or without one in the air an ordinary dial that went to
    /// [`Handoff::reconnect_target`].
    pub fn on_dial_failed(&mut self, now: Instant, prng: &mut Prng) {
        match std::mem::replace(&mut self.state, State::Serving) {
            State::Preparing(job) | State::Ready(job) => self.dial_failed(now, job, prng),
            state => {
                self.state = state;
                let target = self.reconnect_target(now);
                if let Some(pin) = &mut self.pin {
                    pin.failed(&target);
                }
            }
        }
    }

    /// The successor is set up: connected, authenticated, subscribed. What to do with it.
    pub fn on_ready(&mut self, now: Instant, facts: Facts, prng: &mut Prng) -> Judgement {
        let mut job = match std::mem::replace(&mut self.state, State::Serving) {
            State::Preparing(job) => job,
            state => {
                self.state = state;
                return Judgement::NotWanted;
            }
        };
        if !job.accepts(now, facts) {
            self.counters.same_node += 1;
            self.drop_queue_of_candidate();
            job.same_node(now, &self.config, prng);
            self.state = State::Waiting(job);
            return Judgement::SameNode;
        }
        self.state = State::Ready(job);
        Judgement::CutOver
    }

    /// The accepted successor serves from now on, as generation `to`. Ignored if none was accepted.
    pub fn on_cut_over(&mut self, now: Instant, to: Generation) {
        let mut job = match std::mem::replace(&mut self.state, State::Serving) {
            State::Ready(job) => job,
            state => {
                self.state = state;
                return;
            }
        };
        job.to = Some(to);
        job.times.cut_over_at = Some(now);
        let Facts { peer, client_id, .. } = job.candidate;
        self.serving = Some(Source { generation: to, peer, client_id, ..job.source });
        self.dedupe.moved(&job.identity);
        self.last_move = Some((job.identity.clone(), job.window_end));
        if let Some(pin) = &mut self.pin {
            pin.worked(&job.target);
        }
        if job.is_source_lost {
            self.end(now, &job, Outcome::Moved);
        } else {
            let until = job.window_end.max(now) + self.config.grace;
            self.state = State::Draining(job, until);
        }
    }

    /// The old connection has no command without an answer any more; it may be closed.
    pub fn on_drained(&mut self, now: Instant) {
        match std::mem::replace(&mut self.state, State::Serving) {
            State::Draining(job, _) => self.end(now, &job, Outcome::Moved),
            state => self.state = state,
        }
    }

    /// The connection that the handoff leads away from was lost, or closed at the end of a recycle. Without a handoff
    /// this means nothing here; [`Handoff::reconnect_target`] says where to go.
    pub fn on_source_lost(&mut self, now: Instant) {
        match std::mem::replace(&mut self.state, State::Serving) {
            State::Serving => {}
            State::Waiting(job) => self.end(now, &job, Outcome::SourceLost),
            State::Preparing(job) => {
                self.abandon();
                self.end(now, &job, Outcome::SourceLost);
            }
            State::Ready(mut job) => {
                job.is_source_lost = true;
                self.state = State::Ready(job);
            }
            State::Draining(job, _) => {
                self.counters.drains_cut += 1;
                self.end(now, &job, Outcome::Moved);
            }
            State::Recycling(job, _) => self.end(now, &job, Outcome::Recycled),
        }
    }

    /// The successor was lost: before it served, which is a failed dial, or while the old connection was drained. The
    /// latter leaves the bridge without a connection for new work: dial [`Handoff::reconnect_target`].
    pub fn on_successor_lost(&mut self, now: Instant, prng: &mut Prng) {
        match std::mem::replace(&mut self.state, State::Serving) {
            State::Preparing(job) | State::Ready(job) => self.dial_failed(now, job, prng),
            State::Draining(job, _) => {
                if let Some(pin) = &mut self.pin {
                    pin.failed(&job.target);
                }
                self.end(now, &job, Outcome::SuccessorLost);
                // It was about the connection that is gone; its successor is where the next dial goes.
                if let Some(queued) = self.queued.take() {
                    self.counters.superseded += 1;
                    self.pin = Some(Pin::new(queued.identity.clone(), queued.window_end));
                }
            }
            state => self.state = state,
        }
    }

    /// An ordinary dial led to a connection that serves from now on. To be told before the announcements that were
    /// read on it, of which one may be the copy of that which led there.
    pub fn on_reconnected(&mut self, now: Instant, source: Source) {
        self.serving = Some(source);
        match std::mem::replace(&mut self.state, State::Serving) {
            State::Recycling(job, _) => self.end(now, &job, Outcome::Recycled),
            state => self.state = state,
        }
        if let Some(pin) = self.pin.as_ref().filter(|pin| pin.is_active(now)) {
            if pin.leads_to(now, source.peer) {
                // As good as a handoff: the server there repeats the announcement, which has led to it already.
                self.dedupe.moved(&pin.identity);
                self.last_move = Some((pin.identity.clone(), pin.until));
            } else if !pin.is_recycled {
                // The node that is left, or another that moves as well: its copy is to be followed. Not once more
                // after a recycle, since what was tried until then did not help.
                self.dedupe.forget(&pin.identity);
                self.last_move = None;
            }
        }
    }

    /// Another server process answers (another run id), which counts its announcements anew.
    pub fn reset_seq(&mut self) {
        self.dedupe.reset();
        self.last_move = None;
    }

    /// Where an ordinary dial goes now: during a window to its named successor, after a failure in turn with the
    /// configured address; at other times to the configured address.
    pub fn reconnect_target(&self, now: Instant) -> Target {
        self.pin.as_ref().map_or(Target::Configured, |pin| pin.target(now))
    }

    /// How long the loss of the connection still counts as planned; `None` if it does not.
    pub fn planned_left(&self, now: Instant) -> Option<Duration> {
        self.pin.as_ref().filter(|pin| pin.is_active(now)).map(|pin| pin.until.since(now))
    }

    /// Where the handoff stands.
    pub const fn phase(&self) -> Phase {
        match self.state {
            State::Serving => Phase::Serving,
            State::Waiting(_) => Phase::Waiting,
            State::Preparing(_) => Phase::Preparing,
            State::Ready(_) => Phase::Ready,
            State::Draining(..) => Phase::Draining,
            State::Recycling(..) => Phase::Recycling,
        }
    }

    /// How often what happened.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The numbers that it goes by.
    pub const fn config(&self) -> &HandoffConfig {
        &self.config
    }
}

/// The parts of the transitions.
impl Handoff {
    /// The oldest connection whose announcements count.
    fn oldest_used(&self) -> Generation {
        match &self.state {
            State::Draining(job, _) => job.source.generation,
            _ => self.serving.map_or_else(Generation::default, |source| source.generation),
        }
    }

    fn is_candidate(&self, generation: Generation) -> bool {
        self.serving.is_some_and(|source| generation > source.generation)
    }

    /// Whether the announcement is the one that is being acted on, or that was acted on last, as the successor repeats
    /// it. Its number tells; without one, that it names the same successor.
    fn is_repeated(&self, now: Instant, identity: &Identity, from: &Source) -> bool {
        let is_same = |known: &Identity| match (known.seq, identity.seq) {
            (Some(known_seq), Some(seq)) if seq != known_seq => seq < known_seq,
            _ => known.successor == identity.successor,
        };
        match &self.state {
            State::Preparing(job) | State::Ready(job) if self.is_candidate(from.generation) => {
                return is_same(&job.identity);
            }
            State::Draining(job, _) if from.generation == job.source.generation => {
                // The old connection names the place where this bridge already is.
                let here = self.serving.and_then(|source| source.peer);
                let named = identity.successor.as_ref();
                return named
                    .zip(here)
                    .is_some_and(|(named, here)| named.ip() == Some(here.ip()) && named.port == here.port());
            }
            _ => {}
        }
        self.last_move.as_ref().is_some_and(|(last, until)| now < *until && is_same(last))
    }

    /// Whether one more move fits into the chain.
    fn may_follow(&mut self, now: Instant) -> bool {
        while self.chain.front().is_some_and(|at| now.since(*at) >= self.config.chain_window) {
            self.chain.pop_front();
        }
        self.chain.len() < self.config.chain_max as usize
    }

    fn begin(&mut self, job: Box<Job>) {
        self.serving = Some(job.source);
        self.pin = Some(Pin::new(job.identity.clone(), job.announced_end));
        self.state = State::Waiting(job);
    }

    fn begin_queued(&mut self, now: Instant, job: Box<Job>) {
        if now >= job.window_end {
            self.counters.superseded += 1;
            self.pin = Some(Pin::new(job.identity.clone(), job.window_end + self.config.grace));
            return;
        }
        self.counters.begun += 1;
        self.begin(job);
    }

    fn retarget(&mut self, old: &Job, mut job: Box<Job>) {
        job.retargets = old.retargets.saturating_add(1);
        job.dials = old.dials;
        if job.source.generation == old.source.generation {
            job.ends_with(old);
        }
        self.begin(job);
    }

    /// Keeps the newest announcement for later. One that was read on the connection that is drained is about the
    /// connection that serves, which nobody told yet.
    fn queue(&mut self, mut job: Box<Job>) {
        if let Some(serving) = self.serving
            && job.source.generation < serving.generation
        {
            job.source = Source { is_idle: job.source.is_idle, ..serving };
        }
        if self.queued.replace(job).is_some() {
            self.counters.superseded += 1;
        }
    }

    fn dial_failed(&mut self, now: Instant, mut job: Box<Job>, prng: &mut Prng) {
        self.counters.dials_failed += 1;
        self.drop_queue_of_candidate();
        if let Some(pin) = &mut self.pin {
            pin.failed(&job.target);
        }
        job.failed(now, &self.config, prng);
        self.state = State::Waiting(job);
    }

    fn abandon(&mut self) {
        self.counters.dials_abandoned += 1;
        self.outputs.abandon = true;
        self.drop_queue_of_candidate();
    }

    /// Forgets what was read on a successor that will not serve.
    fn drop_queue_of_candidate(&mut self) {
        if self.queued.as_ref().is_some_and(|job| self.is_candidate(job.source.generation)) {
            self.queued = None;
            self.counters.superseded += 1;
        }
    }

    fn recycle(&mut self, now: Instant, job: Box<Job>) {
        if job.times.dialled_at.is_some()
            && let Some(pin) = &mut self.pin
        {
            // What was dialled last did not answer in time: not the first choice for the way back.
            pin.failed(&job.target);
        }
        let left = job.window_end.since(now);
        let hold_max = (self.config.relaxed / 2).min(left).max(self.config.hold_min);
        self.outputs.recycle = Some(hold_max);
        let until = job.window_end.max(now + hold_max) + self.config.hold_min;
        self.state = State::Recycling(job, until);
    }

    fn end(&mut self, now: Instant, job: &Job, outcome: Outcome) {
        self.state = State::Serving;
        let counter = match outcome {
            Outcome::Moved => &mut self.counters.moved,
            Outcome::Recycled => &mut self.counters.recycled,
            Outcome::MissedWindow => &mut self.counters.missed_windows,
            Outcome::SourceLost => &mut self.counters.sources_lost,
            Outcome::SuccessorLost => &mut self.counters.successors_lost,
        };
        *counter += 1;
        if let Some(pin) = &mut self.pin {
            pin.is_recycled = outcome == Outcome::Recycled;
            if job.may_be_closed(outcome) {
                // The server is still to close the connection, some time after the window; that is no surprise then.
                pin.until = job.announced_end + self.config.grace;
            }
        }
        if self.outputs.ended.len() >= ENDED_MAX {
            self.outputs.ended.pop_front();
        }
        self.outputs.ended.push_back(job.ended(now, outcome));
    }
}

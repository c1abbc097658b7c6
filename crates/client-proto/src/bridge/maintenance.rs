//! What the server announces, put to work.
//!
//! Owns the way from a notification to its effect: relaxed deadlines, a successor dialled, the cut, the end of the old
//! connection. Does not own what an announcement means ([`crate::maintenance`]), when to do what
//! ([`crate::handoff`]), nor what happens to commands on the way ([`super::handoff`]).

use std::time::Duration;

use towline_resp::frame::Frame;
use towline_sansio::Instant;

use super::conn::{Phase as ConnPhase, Role};
use super::handoff::{HOLD_STRETCH_MAX, HandoffDial};
use super::{AttemptError, Bridge, Event, HandoffEvent, MaintenanceEvent};
use crate::error::{ErrorKind, LostCause};
use crate::generation::Generation;
use crate::handoff::{Facts, Handoff, Judgement, Phase, Source, Step, Taken, Target};
use crate::handshake::{HandshakeConfig, Ready, Step as HandshakeStep};
use crate::liveness::LivenessConfig;
use crate::maintenance::{Arrival, Moving, Notification, Windows};

/// A connection on which nothing happened for this long is idle: it may move at leisure.
const IDLE_AFTER: Duration = Duration::from_secs(1);

/// A server that does not know notifications is asked again after this long: it may be another one by then.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(3600);

/// Steps of a handoff in one go at most; it takes fewer.
const STEPS_MAX: usize = 16;

/// Where a bridge stands with the server's announcements.
#[derive(Debug)]
pub(super) struct Moves {
    pub(super) handoff: Handoff,
    windows: Windows,
    /// A dial that nobody was told of yet.
    dial: Option<HandoffDial>,
    /// The successor may take over as soon as no writer has bytes.
    is_accepted: bool,
    /// Since when the server is known not to announce anything.
    refused_at: Option<Instant>,
    /// When commands were last sent.
    pub(super) busy_at: Instant,
    /// The last connection that was left after it had answered everything.
    answered: Option<Generation>,
    /// A bridge that does not move: the end of its connection, if it was announced.
    pub(super) leaving: Option<Box<super::Leaving>>,
    was_relaxed: bool,
    /// The last connection's number on the server.
    client_id: Option<i64>,
}

impl Moves {
    pub(super) fn new(handoff: Handoff, windows: Windows, now: Instant) -> Self {
        Self {
            handoff,
            windows,
            dial: None,
            is_accepted: false,
            refused_at: None,
            busy_at: now,
            answered: None,
            leaving: None,
            was_relaxed: false,
            client_id: None,
        }
    }

    pub(super) fn is_active(&self) -> bool {
        self.handoff.phase() != Phase::Serving || self.handoff.poll_timeout().is_some()
    }

    /// The least time that a command without a hard deadline has, while the server is busy with itself.
    pub(super) fn floor(&self, now: Instant) -> Option<Duration> {
        self.windows.is_relaxed(now).then_some(self.windows.config().relaxed)
    }
}

impl<W> Bridge<W> {
    /// Whether to dial for a successor now, and where to. Followed by [`Bridge::opened`] or [`Bridge::dial_failed`]
    /// with its generation, unless [`Bridge::is_wanted`] says that it is not wanted any more.
    pub fn poll_handoff_dial(&mut self, now: Instant) -> Option<HandoffDial> {
        self.advance(now);
        self.moves.dial.take()
    }

    /// Where a dial that [`Bridge::poll_dial`] asks for is to lead.
    pub fn reconnect_target(&self, now: Instant) -> Target {
        self.moves.handoff.reconnect_target(now)
    }

    /// How often a server has announced that this endpoint moves. While the number stays the same, connections that
    /// were made at different times and lead to one address lead to one process, as far as servers say.
    pub const fn moves_announced(&self) -> u64 {
        self.moves.handoff.counters().announced
    }

    /// Until when deadlines are relaxed, if they are.
    pub fn relaxed_until(&self) -> Option<Instant> {
        self.moves.windows.relaxed_until()
    }

    /// Whether connection `generation` is in its handshake.
    pub fn is_shaking(&self, generation: Generation) -> bool {
        self.conns().any(|it| it.generation == generation && matches!(it.phase, ConnPhase::Shaking { .. }))
    }

    /// Whether connection `generation` was left after everything that was sent on it had been answered.
    pub fn has_answered(&self, generation: Generation) -> bool {
        self.moves.answered == Some(generation)
    }

    /// Whether a loss of the serving connection now would be part of a planned move.
    pub(super) fn is_planned(&self, now: Instant) -> bool {
        self.planned_until(now).is_some()
    }

    /// Until when a loss counts as part of a planned move.
    pub(super) fn planned_until(&self, now: Instant) -> Option<Instant> {
        let moves = self.moves.handoff.planned_left(now).map(|left| now + left);
        let stays = self.moving_until().filter(|until| now <= *until);
        moves.or(stays).filter(|_| self.config.guards.planned_shield)
    }

    /// What is to be said at the start of the next connection: a server that has refused to announce anything is not
    /// asked each time.
    pub(super) fn present_handshake(&self, now: Instant) -> HandshakeConfig {
        let mut config = self.handshake_config.clone();
        config.tracking = self.tracking();
        let is_known = self.moves.refused_at.is_some_and(|at| now.since(at) < ASK_AGAIN_AFTER);
        if is_known && config.maintenance.is_some_and(|request| !request.is_required) {
            config.maintenance = None;
        }
        config
    }

    /// Notes what a handshake has found out about announcements.
    pub(super) fn learn_maintenance(&mut self, now: Instant, info: &Ready) {
        if info.refused.iter().any(|(step, _)| *step == HandshakeStep::Maintenance) {
            self.moves.refused_at = Some(now);
        } else if info.has_maintenance {
            self.moves.refused_at = None;
        }
        // What is under way is said again to a new connection, which may be before it is up.
        if self.conn.role == Role::Serving && !self.conn.heard_moving {
            self.moves.leaving = None;
        }
    }

    /// Takes a push that announces maintenance; false if it is something else.
    pub(super) fn take_notification(&mut self, now: Instant, push: &[Frame]) -> bool {
        if self.handshake_config.maintenance.is_none() {
            return false;
        }
        let Some(notification) = Notification::read(push) else { return false };
        self.report.counters.notifications += 1;
        let is_up = self.conn.is_up();
        let arrival = if is_up { Arrival::Live } else { Arrival::Handshake };
        let has_changed = self.moves.windows.on_notification(now, &notification, arrival);
        match &notification {
            Notification::Moving(moving) => self.take_moving(now, moving),
            Notification::SlotsMoved(moved) if has_changed => self.note_slots_moved(moved),
            _ if !has_changed => self.report.counters.notifications_stale += 1,
            _ => {}
        }
        self.review_relaxation(now);
        true
    }

    fn take_moving(&mut self, now: Instant, moving: &Moving) {
        if self.conn.role == Role::Successor || !self.conn.is_up() {
            self.conn.heard_moving = true;
        }
        if !self.config.hands_off {
            return self.note_leaving(now, moving);
        }
        let is_idle = now.since(self.moves.busy_at) > IDLE_AFTER && self.is_idle();
        let source = self.source(is_idle);
        // Without the guard each copy looks like news.
        let fresh = || Moving { seq: Some(self.report.counters.notifications + (1 << 32)), ..moving.clone() };
        let moving = if self.config.guards.dedupe { moving } else { &fresh() };
        let taken = self.moves.handoff.on_moving(now, moving, source, &mut self.prng);
        match taken {
            Taken::Begun | Taken::Retargeted | Taken::Queued => {}
            Taken::Duplicate | Taken::Stale | Taken::TooMany => self.report.counters.notifications_stale += 1,
        }
        if taken != Taken::Duplicate {
            self.report.event(Event::Handoff(HandoffEvent::Announced {
                generation: self.conn.generation,
                successor: moving.successor.clone(),
                window: moving.window,
                taken,
            }));
        }
    }

    /// The connection in the serving place, as the machine of the handoff sees it.
    fn source(&self, is_idle: bool) -> Source {
        Source {
            generation: self.conn.generation,
            peer: self.conn.peer,
            client_id: self.conn.client_id(),
            configured_is_name: self.config.endpoint_is_name,
            is_idle,
        }
    }

    /// A connection serves that was dialled because there was none.
    pub(super) fn note_reconnected(&mut self, now: Instant) {
        let id = self.conn.client_id();
        let is_another_process = id.zip(self.moves.client_id).is_some_and(|(id, last)| id < last);
        if is_another_process {
            // A server that has started again counts its announcements anew.
            self.moves.handoff.reset_seq();
            self.moves.windows.reset();
        }
        self.moves.client_id = id.or(self.moves.client_id);
        self.moves.handoff.on_reconnected(now, self.source(true));
    }

    /// The serving connection is gone. What it means to a handoff depends on whose place it had.
    pub(super) fn note_serving_lost(&mut self, now: Instant) {
        // The old connection may still be there when its handoff has ended otherwise, and another has begun.
        if self.moves.handoff.phase() == Phase::Draining {
            self.moves.handoff.on_successor_lost(now, &mut self.prng);
        } else {
            self.moves.handoff.on_source_lost(now);
        }
    }

    /// Deadlines and the watch over silence follow the windows.
    fn review_relaxation(&mut self, now: Instant) {
        let until = self.moves.windows.relaxed_until().filter(|until| now < *until);
        if until.is_some() == self.moves.was_relaxed {
            return;
        }
        self.moves.was_relaxed = until.is_some();
        self.watch_silence();
        // What was let live longer is looked at when that is over.
        self.clock.arm(until.unwrap_or(now));
        self.report.event(Event::Maintenance(match until {
            Some(until) => MaintenanceEvent::Relaxed { until },
            None => MaintenanceEvent::Restored,
        }));
    }

    /// Sets the watch over silence of every connection to what holds at present.
    pub(super) fn watch_silence(&mut self) {
        let mut config = self.liveness_config;
        if self.moves.was_relaxed {
            let relaxed = self.moves.windows.config().relaxed;
            config = LivenessConfig { silence_max: config.silence_max.max(relaxed), ..config };
        }
        self.conn.liveness.set_config(config);
        if let Some(successor) = &mut self.others.successor {
            successor.liveness.set_config(config);
        }
        if let Some(retiring) = &mut self.others.retiring {
            retiring.conn.liveness.set_config(config);
        }
    }

    /// No socket came of the dial for a successor.
    pub(super) fn successor_dial_failed(&mut self, now: Instant, error: std::io::ErrorKind) {
        self.report.counters.dials_failed += 1;
        self.successor_failed(now, AttemptError::Dial(error));
        self.advance(now);
    }

    fn successor_failed(&mut self, now: Instant, error: AttemptError) {
        let Some(successor) = &self.others.successor else { return };
        let generation = successor.generation;
        self.drop_successor();
        self.moves.is_accepted = false;
        self.report.counters.successors_failed += 1;
        let is_same_node = error == AttemptError::SameNode;
        self.report.event(Event::Handoff(HandoffEvent::AttemptFailed { generation, error }));
        if !is_same_node {
            self.moves.handoff.on_dial_failed(now, &mut self.prng);
        }
    }

    /// When a handoff or a window needs attention.
    pub(super) fn maintenance_timeout(&self) -> Option<Instant> {
        let handoff = self.moves.handoff.poll_timeout().filter(|_| !self.is_closed);
        let windows = self.moves.windows.poll_timeout();
        let (retire, recycle) = (self.retire_at(), self.others.recycle_by);
        [handoff, windows, retire, recycle, self.planned_end()].into_iter().flatten().min()
    }

    pub(super) fn handle_windows_timeout(&mut self, now: Instant) {
        if self.moves.windows.poll_timeout().is_some_and(|at| at <= now) {
            self.moves.windows.handle_timeout(now);
            self.review_relaxation(now);
        }
    }

    /// Goes on with a handoff, as far as it goes now.
    #[inline]
    pub(super) fn advance(&mut self, now: Instant) {
        if !self.others.is_empty() || self.moves.is_active() || self.has_overlap() {
            self.advance_handoff(now);
        }
        if self.is_routing() {
            self.settle_routed(now);
        }
    }

    fn advance_handoff(&mut self, now: Instant) {
        for _ in 0..STEPS_MAX {
            let has_moved = self.queue_again()
                || self.settle_retiring(now)
                || self.settle_successor(now)
                || self.settle_overlap(now)
                || self.settle_cut(now)
                || self.settle_recycle(now)
                || self.settle_step(now);
            if !has_moved {
                return;
            }
        }
    }

    /// The old connection has nothing more to say.
    fn settle_retiring(&mut self, now: Instant) -> bool {
        if !self.is_drained(now) {
            return false;
        }
        let old = self.others.retiring.as_ref().map(|retiring| retiring.conn.generation);
        let Some(old) = old else { return false };
        let is_clean = self.others.retiring.as_ref().is_some_and(|it| it.conn.in_flight.is_empty());
        if is_clean {
            self.moves.answered = Some(old);
        } else {
            self.on_conn(old, |bridge| bridge.lose(now, LostCause::Planned));
        }
        if let Some((generation, took)) = self.end_drain(now) {
            self.report.event(Event::Handoff(HandoffEvent::Drained { generation, took }));
        }
        self.moves.handoff.on_drained(now);
        if self.is_closed && !self.conn.is_open() {
            // What it gives back will not be sent any more.
            self.fail_waiting(now, &ErrorKind::Closed);
        }
        true
    }

    /// The successor has come to nothing, or is up and looked at.
    fn settle_successor(&mut self, now: Instant) -> bool {
        let Some(successor) = &self.others.successor else { return false };
        if let Some(loss) = &successor.failure {
            let error = match &loss.handshake {
                Some(error) => AttemptError::Handshake(error.clone()),
                None => AttemptError::Lost(loss.cause),
            };
            self.report.counters.dials_failed += 1;
            self.successor_failed(now, error);
            return true;
        }
        if self.moves.is_accepted || !successor.is_up() {
            return false;
        }
        let facts = Facts {
            peer: successor.peer,
            client_id: successor.client_id(),
            replayed: successor.heard_moving,
        };
        match self.moves.handoff.on_ready(now, facts, &mut self.prng) {
            Judgement::CutOver => self.moves.is_accepted = true,
            Judgement::SameNode => self.successor_failed(now, AttemptError::SameNode),
            Judgement::NotWanted => self.drop_successor(),
        }
        true
    }

    fn settle_cut(&mut self, now: Instant) -> bool {
        if !self.moves.is_accepted {
            return false;
        }
        let left = self.moves.handoff.planned_left(now).unwrap_or_default();
        if self.holds_cut(now, left) || !self.can_cut_over() {
            return false;
        }
        self.moves.is_accepted = false;
        let until = now + left + self.config.handoff.grace;
        self.cut_over(now, self.config.handoff_order, until);
        self.cut_subscriptions(now);
        self.report.counters.connections += 1;
        self.moves.client_id = self.conn.client_id().or(self.moves.client_id);
        self.moves.handoff.on_cut_over(now, self.conn.generation);
        true
    }

    /// No new connection is made any more: what was held goes out on the present one.
    pub(super) fn stop_moving(&mut self, now: Instant) {
        self.drop_successor();
        self.moves.dial = None;
        self.moves.is_accepted = false;
        if self.others.recycle_by.take().is_some() {
            self.end_hold(now);
        }
    }

    /// Without a successor the connection is left when what was sent is answered.
    fn settle_recycle(&mut self, now: Instant) -> bool {
        let Some(by) = self.others.recycle_by else { return false };
        let is_answered = self.conn.in_flight.is_empty() && !self.conn.write.is_busy();
        if !self.conn.is_up() || !(is_answered || by <= now) {
            return false;
        }
        self.report.counters.recycled += 1;
        if is_answered {
            self.moves.answered = Some(self.conn.generation);
        }
        self.lose(now, LostCause::Planned);
        true
    }

    fn settle_step(&mut self, now: Instant) -> bool {
        if self.is_closed {
            // What is left to do is done on the connections that there are.
            return false;
        }
        match self.moves.handoff.poll(now) {
            None => return false,
            Some(Step::Dial { target }) => {
                let generation = self.start_successor(now);
                self.moves.is_accepted = false;
                self.moves.dial = Some(HandoffDial { generation, target: target.clone() });
                self.report.event(Event::Handoff(HandoffEvent::Dialing { generation, target }));
            }
            // One that serves already, because there was nobody else, is no successor any more.
            Some(Step::AbandonDial) => {
                if self.others.successor.is_some() {
                    self.drop_successor();
                    self.moves.dial = None;
                }
                self.moves.is_accepted = false;
            }
            Some(Step::Retire) => {
                if let Some(retiring) = &mut self.others.retiring {
                    retiring.until = now;
                }
            }
            Some(Step::Recycle { hold_max }) => {
                let generation = self.conn.generation;
                self.others.recycle_by = Some(now + hold_max);
                self.begin_hold(now, HOLD_STRETCH_MAX);
                self.report.event(Event::Handoff(HandoffEvent::Recycling { generation, hold_max }));
            }
            Some(Step::Ended(end)) => self.report.event(Event::Handoff(HandoffEvent::Ended(end))),
        }
        true
    }
}

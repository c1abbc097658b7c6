//! The connection: wanted, dialled, shaking hands, up, lost.
//!
//! Owns these states, what a loss does to every command, and when to dial again. Does not own the socket.
//!
//! ```text
//!             poll_dial            opened              handshake ready
//!   Waiting ------------> Dialing --------> Shaking -------------------> Up
//!      ^                     |                 |                          |
//!      +---- dial_failed ----+---- failed -----+-- lost, silent, broken --+       Closed: the bridge has ended
//! ```

use std::net::SocketAddr;
use std::time::Duration;

use towline_admission::LossCause;
use towline_resp::frame::Frame;
use towline_sansio::Instant;

use super::conn::{Conn, Phase, Role};
use super::{Bridge, Event, Flight, Place, State};
use crate::config::FlushOrder;
use crate::diagnosis::Trouble;
use crate::error::{ErrorKind, LostCause, Stage};
use crate::generation::Generation;
use crate::handshake::{Credentials, Handshake, HandshakeConfig, HandshakeError, Progress, ReAuth, Ready};
use crate::liveness::{Act, Liveness, LivenessConfig};
use crate::policy::Outage;
use crate::retry::{Decision, Failure};

/// What the connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LinkState {
    /// Waits to dial.
    Waiting,
    /// Dials.
    Dialing,
    /// Has a socket, introduces itself.
    Shaking,
    /// Serves.
    Up,
    /// Has ended for good.
    Closed,
}

/// What the endpoint's commands have to know about its connections' past.
#[derive(Debug)]
pub(super) struct Link {
    down_since: Instant,
    outage: Outage,
    /// Until when an outage that was planned counts as such.
    planned_until: Option<Instant>,
}

/// Why a connection is over.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Loss {
    pub(super) cause: LostCause,
    pub(super) handshake: Option<HandshakeError>,
}

impl Link {
    pub(super) const fn new(now: Instant) -> Self {
        Self { down_since: now, outage: Outage::NeverConnected, planned_until: None }
    }

    pub(super) const fn outage(&self) -> Outage {
        self.outage
    }

    pub(super) const fn down_since(&self) -> Instant {
        self.down_since
    }
}

impl<W> Bridge<W> {
    /// Whether to dial now: the generation of the connection to make. Followed by [`Bridge::opened`] or
    /// [`Bridge::dial_failed`] with it. The wait until then is in [`Bridge::poll_timeout`].
    pub fn poll_dial(&mut self, now: Instant) -> Option<Generation> {
        let Phase::Waiting { due } = self.conn.phase else { return None };
        if due > now || self.is_closed {
            return None;
        }
        self.last_generation = self.last_generation.next();
        self.conn.generation = self.last_generation;
        self.conn.phase = Phase::Dialing;
        self.conn.heard_moving = false;
        self.report.counters.dials += 1;
        Some(self.conn.generation)
    }

    /// What the connection is doing.
    pub const fn link_state(&self) -> LinkState {
        self.conn.state()
    }

    /// The number of the connection that commands go to, or of the last one.
    pub const fn generation(&self) -> Generation {
        self.conn.generation
    }

    /// What the handshake of the present connection learned.
    pub fn info(&self) -> Option<&Ready> {
        self.conn.info()
    }

    /// Whether connection `generation` is still wanted; if not, its owner drops the socket, or its dial.
    pub fn is_wanted(&self, generation: Generation) -> bool {
        self.conns().any(|conn| {
            let is_dialing = matches!(conn.phase, Phase::Dialing);
            conn.generation == generation && (conn.is_open() || is_dialing)
        })
    }

    /// Whether there is a socket that may be written to.
    pub(super) const fn is_open(&self) -> bool {
        self.conn.is_open()
    }

    /// Dial `generation` yielded a socket, which leads to `peer`: the handshake begins.
    pub fn opened(&mut self, now: Instant, generation: Generation, peer: Option<SocketAddr>) {
        self.on_conn(generation, |bridge| bridge.opened_here(now, peer));
    }

    fn opened_here(&mut self, now: Instant, peer: Option<SocketAddr>) {
        if !matches!(self.conn.phase, Phase::Dialing) || self.is_closed {
            return;
        }
        self.conn.peer = peer;
        let mut bytes = self.log.spare();
        let config = self.present_handshake(now);
        let handshake = Handshake::start(&config, now, self.prng.next_u64(), &mut bytes);
        self.conn.phase = Phase::Shaking { handshake: Box::new(handshake) };
        self.conn.write.push_urgent(&bytes, []);
        self.report.read_at = None;
    }

    /// Dial `generation` yielded no socket.
    pub fn dial_failed(&mut self, now: Instant, generation: Generation, error: std::io::ErrorKind) {
        let is_successor = self.others.successor.as_ref().is_some_and(|it| it.generation == generation);
        if is_successor {
            return self.successor_dial_failed(now, error);
        }
        if generation != self.conn.generation || !matches!(self.conn.phase, Phase::Dialing) {
            return;
        }
        self.moves.handoff.on_dial_failed(now, &mut self.prng);
        let due = self.backoff.failed(now, &mut self.prng);
        self.wait_until(due);
        self.report.counters.dials_failed += 1;
        self.report.trouble = Some(Trouble::Dial(error));
        self.report.event(Event::DialFailed { generation, error, retry_in: due.since(now) });
        self.note_down();
        if !self.policy.keep_on_loss(self.link.outage) {
            self.fail_waiting(now, &ErrorKind::Unavailable);
        }
    }

    /// When an outage stops to count as planned, if it does now and nothing is connected.
    pub(super) fn planned_end(&self) -> Option<Instant> {
        let is_planned = self.link.outage == Outage::Planned && !self.serving().is_up();
        self.link.planned_until.filter(|_| is_planned)
    }

    /// The window of a planned move is over and there is still no connection: an outage like others.
    pub(super) fn review_plan(&mut self, now: Instant) {
        if self.planned_end().is_some_and(|end| end <= now) {
            self.link.outage = Outage::Unplanned;
            self.link.planned_until = None;
            if !self.policy.keep_on_loss(Outage::Unplanned) {
                self.fail_waiting(now, &ErrorKind::Unavailable);
            }
        }
    }

    fn wait_until(&mut self, due: Instant) {
        self.conn.phase = if self.is_closed { Phase::Closed } else { Phase::Waiting { due } };
    }

    /// One frame of a connection that is not up yet.
    pub(super) fn handshake_frame(&mut self, now: Instant, frame: Frame) {
        if let Frame::Push(push) = &frame {
            self.take_notification(now, push);
            return;
        }
        let Phase::Shaking { handshake } = &mut self.conn.phase else { return };
        match handshake.on_frame(frame) {
            Progress::NeedMore => {}
            Progress::Ready(info) => self.come_up(now, info),
            Progress::Failed(error) => self.lose_with(now, LostCause::Handshake, Some(error)),
        }
    }

    fn come_up(&mut self, now: Instant, info: Box<Ready>) {
        self.backoff.connected(now);
        self.conn.phase = Phase::Up { info: info.clone() };
        self.conn.doubt = None;
        self.conn.liveness = Liveness::new(now, self.liveness_config);
        self.conn.flying_since = None;
        self.learn_maintenance(now, &info);
        if self.conn.role == Role::Successor {
            return;
        }
        self.serve(now, info);
    }

    /// The connection in the serving place begins to serve, after an outage.
    pub(super) fn serve(&mut self, now: Instant, info: Box<Ready>) {
        self.wants_reauth &= !self.is_resp2_subscriber();
        self.note_reconnected(now);
        let backlog = self.queue.len() - self.queue_removed;
        if backlog > 0 && self.config.guards.culling {
            self.cull(now);
        }
        match self.config.flush_order {
            FlushOrder::InOrder => {
                let is_paced = backlog > 0 && self.config.guards.pace;
                self.conn.write.pace = is_paced.then_some(self.config.pace_bytes_initial);
            }
            FlushOrder::FreshFirst => self.queue_old = self.queue.len(),
        }
        self.connect_subscriptions(now);
        self.tracking_began();
        self.report.counters.connections += 1;
        self.report.trouble = None;
        self.report.event(Event::Connected {
            generation: self.conn.generation,
            info,
            down_for: now.since(self.link.down_since),
            backlog,
        });
    }

    /// The connection ended, with this cause as its owner saw it.
    pub fn lost(&mut self, now: Instant, generation: Generation, cause: LostCause) {
        if self.on_conn(generation, |bridge| bridge.lose(now, cause)).is_none()
            && !self.config.guards.generation
        {
            self.lose(now, cause);
        }
        self.advance(now);
    }

    /// Ends the connection, whoever wants it.
    pub(super) fn lose(&mut self, now: Instant, cause: LostCause) {
        self.lose_with(now, cause, None);
    }

    fn lose_with(&mut self, now: Instant, cause: LostCause, handshake: Option<HandshakeError>) {
        let handshake = match &self.conn.phase {
            Phase::Up { .. } => handshake,
            // Whoever waits for the connection wants to know why there is none; its own end is no news to this side.
            Phase::Shaking { handshake: shaking } if cause != LostCause::Killed => {
                handshake.or_else(|| Some(HandshakeError::Lost { step: shaking.step(), cause }))
            }
            Phase::Shaking { .. } => handshake,
            Phase::Waiting { .. } | Phase::Dialing => {
                if self.is_closed {
                    self.conn.phase = Phase::Closed;
                }
                return;
            }
            Phase::Closed => return,
        };
        if self.conn.role != Role::Serving {
            return self.lose_other(now, Loss { cause, handshake });
        }
        if self.conn.doomed.is_none() {
            self.conn.doomed = Some(Loss { cause, handshake });
        }
        if !self.conn.write.is_out() || !self.config.guards.writer_settles {
            self.finish_loss(now);
        }
    }

    /// The connection is over and no writer has bytes of it: decides the fate of every command.
    pub(super) fn finish_loss(&mut self, now: Instant) {
        let Some(loss) = self.conn.doomed.take() else { return };
        self.conn.reauth = None;
        self.wants_reauth = false;
        self.end_promoted(now);
        if let Some(pubsub) = &mut self.pubsub {
            pubsub.on_lost(self.conn.generation);
        }
        for part in self.conn.write.reset() {
            self.log.give_back(part);
        }
        let was_up = matches!(self.conn.phase, Phase::Up { .. });
        if was_up {
            self.tracking_ended();
        }
        let was_planned = std::mem::take(&mut self.others.recycle_by).is_some();
        if was_planned {
            self.end_hold(now);
        }
        let (unknown, error) = self.settle_in_flight(now, &loss);
        self.review_age(now);
        self.link.down_since = if was_up { now } else { self.link.down_since };
        self.link.planned_until = self.planned_until(now).filter(|_| was_up).or(self.link.planned_until);
        self.link.outage = match (was_up, loss.cause) {
            (true, _) if loss.cause == LostCause::Planned || self.is_planned(now) => Outage::Planned,
            (true, _) => Outage::Unplanned,
            (false, _) => self.link.outage,
        };
        let due = if was_up {
            // Whether others are affected cannot be seen from one connection, except when this side did it.
            let cause = if loss.cause == LostCause::Killed { LossCause::Private } else { LossCause::Shared };
            self.backoff.lost(now, cause, &mut self.prng)
        } else {
            self.backoff.failed(now, &mut self.prng)
        };
        // A successor is better than the wait for another dial.
        let due = if was_planned { now } else { due };
        self.wait_until(due);
        if was_up || self.moves.is_active() {
            self.note_serving_lost(now);
        }
        if was_up && self.link.outage == Outage::Planned {
            // What its loss ended may leave the server more time than the window.
            self.link.planned_until = self.planned_until(now).or(self.link.planned_until);
        }
        if !was_up {
            self.moves.handoff.on_dial_failed(now, &mut self.prng);
        }
        if was_up {
            self.report.trouble = Some(Trouble::Lost(loss.cause));
            self.report.event(Event::Lost {
                generation: self.conn.generation,
                cause: loss.cause,
                unknown,
                kept: self.queue.len() - self.queue_removed,
            });
        } else {
            self.report.counters.dials_failed += 1;
            if let Some(error) = error {
                self.report.trouble = Some(Trouble::Handshake(error.clone()));
                let generation = self.conn.generation;
                self.report.event(Event::HandshakeFailed { generation, error, retry_in: due.since(now) });
            }
        }
        self.note_down();
        // Before what was sent after them.
        self.resume_postponed(now);
        self.shed_after_loss();
        if self.is_closed {
            self.fail_waiting(now, &ErrorKind::Closed);
        } else if !self.policy.keep_on_loss(self.link.outage) {
            self.fail_waiting(now, &ErrorKind::Unavailable);
        }
        self.release();
        self.grant_room();
        self.promote_successor(now);
    }

    /// Decides what becomes of each command in flight; returns how many may have run, and the handshake's error.
    fn settle_in_flight(&mut self, now: Instant, loss: &Loss) -> (usize, Option<HandshakeError>) {
        let (unknown, again) = self.settle_all(now, loss.cause);
        self.requeue(again);
        self.queue_again();
        let position = self.low_water();
        self.conn.write.restart_at(position);
        self.queue_old = 0;
        let Some(error) = loss.handshake.clone() else { return (unknown, None) };
        if !error.is_retryable() {
            self.fail_waiting(now, &ErrorKind::Handshake(error.clone()));
        }
        (unknown, Some(error))
    }

    /// Settles what is in flight on the connection: how many commands failed because they may have run, and those that
    /// are sent again.
    pub(super) fn settle_all(&mut self, now: Instant, cause: LostCause) -> (usize, Vec<u32>) {
        self.look_around(now);
        let mut unknown = 0;
        let mut again = Vec::new();
        let in_flight = std::mem::take(&mut self.conn.in_flight);
        for flight in in_flight {
            let Flight::Command(ticket) = flight else { continue };
            let index = ticket.index();
            if self.slots.ticket(index) != Some(ticket) {
                continue;
            }
            if self.settle(now, index, cause) {
                again.push(index);
            } else {
                unknown += 1;
            }
        }
        self.conn.in_flight_bytes = 0;
        (unknown, again)
    }

    /// Whether a command in flight goes back to the queue. Otherwise it has failed.
    fn settle(&mut self, now: Instant, index: u32, cause: LostCause) -> bool {
        if self.fail_refused_unit(now, index) {
            return false;
        }
        let Some(slot) = self.slots.at(index) else { return false };
        let State::Pending(pending) = &slot.state else { return false };
        let (end, len) = (pending.end, pending.len);
        let stage = self.stage_in_flight(end);
        let is_withdrawn = slot.is_orphan() && !slot.flags.contains(crate::Flags::FIRE_AND_FORGET);
        let failure = if stage == Stage::OnWire { Failure::MaybeSent } else { Failure::NotSent };
        let decision = if self.config.guards.retry_class {
            self.decide(now, index, failure)
        } else {
            Some(Decision::Replay)
        };
        let is_again = match decision {
            // Its caller has gone and it was not sent: nobody wants it.
            _ if is_withdrawn => false,
            Some(Decision::Replay) => {
                self.report.counters.replayed += 1;
                true
            }
            Some(Decision::RetryAfter(_)) => {
                self.report.counters.repeated += 1;
                self.budget.take(now, self.report.counters.answered)
            }
            Some(Decision::Fail { .. }) | None => false,
        };
        if !is_again {
            self.fail(now, index, ErrorKind::Lost(cause), stage);
            return false;
        }
        let heard = self.partial.remove(&index).filter(|_| self.config.guards.whole_replies);
        let heard = heard.map_or(0, |frames| frames.len());
        let Some(slot) = self.slots.at_mut(index) else { return false };
        slot.place = Place::Queue;
        if let State::Pending(pending) = &mut slot.state {
            // The next connection answers the unit from its first command on.
            pending.replies += u32::try_from(heard).unwrap_or(0);
        }
        if stage == Stage::OnWire && self.config.guards.sent_memory {
            slot.attempts.add_possible();
        } else if stage == Stage::OnWire {
            slot.attempts.add_refused();
        }
        self.unsent_bytes += len as usize;
        true
    }

    /// Fails everything that waits and was not sent.
    pub(super) fn fail_waiting(&mut self, now: Instant, kind: &ErrorKind) {
        self.look_around(now);
        let queue: Vec<u32> = self.queue.drain(..).collect();
        self.queue_old = 0;
        self.queue_removed = 0;
        for index in queue {
            self.fail_queued(now, index, kind.clone());
        }
        for delayed in std::mem::take(&mut self.delayed) {
            self.fail(now, delayed.index, kind.clone(), Stage::Queued);
        }
        if let Some(pubsub) = &mut self.pubsub {
            pubsub.fail_requests(kind, &mut self.wakes);
        }
        self.release();
        self.grant_room();
    }

    /// When a connection itself needs attention.
    pub(super) fn link_timeout(&self) -> Option<Instant> {
        let timeout_of = |conn: &Conn| match &conn.phase {
            // It is over; only the writer's return is awaited.
            _ if conn.is_doomed() => None,
            Phase::Waiting { due } if !self.is_closed => Some(*due),
            Phase::Shaking { handshake } => Some(handshake.poll_timeout()),
            // Its end comes with the window's.
            Phase::Up { .. } if conn.role == Role::Retiring => None,
            Phase::Up { .. } => conn.liveness.poll_timeout(),
            _ => None,
        };
        self.conns().filter_map(timeout_of).min()
    }

    pub(super) fn handle_link_timeout(&mut self, now: Instant) {
        for generation in self.generations() {
            self.on_conn(generation, |bridge| bridge.handle_conn_timeout(now));
        }
    }

    fn handle_conn_timeout(&mut self, now: Instant) {
        // Of one that is over only the writer's return is awaited.
        match &self.conn.phase {
            Phase::Shaking { handshake } => {
                if let Some(error) = handshake.handle_timeout(now) {
                    self.lose_with(now, LostCause::Handshake, Some(error));
                }
            }
            Phase::Up { .. } if self.conn.role == Role::Retiring => {}
            Phase::Up { .. } => match self.conn.liveness.poll(now) {
                // What the connection has to say for itself already is as good a question.
                Some(Act::SendPing) if self.conn.write.has_urgent() => {}
                Some(Act::SendPing) => {
                    self.report.counters.probes += 1;
                    self.conn.write.push_urgent(PING, [Flight::Probe]);
                }
                Some(Act::Dead(cause)) => self.lose(now, cause),
                Some(Act::AskElsewhere) => self.doubt(),
                None => {}
            },
            _ => {}
        }
    }

    pub(super) fn note_read(&mut self, now: Instant) {
        self.report.read_at = Some(now);
        self.conn.liveness.on_read(now);
    }

    pub(super) fn note_written(&mut self, now: Instant) {
        self.conn.liveness.on_write(now);
    }

    pub(super) fn note_in_flight(&mut self, now: Instant) {
        let flying_since =
            if self.conn.in_flight.is_empty() { None } else { self.conn.flying_since.or(Some(now)) };
        // The oldest command in flight was sent at that time or, if an older one was answered since, before that
        // answer: the watch takes the later of the two.
        if flying_since != self.conn.flying_since {
            self.conn.flying_since = flying_since;
            self.conn.liveness.in_flight(flying_since);
        }
    }

    /// When a silent peer is given up, from now on and on later connections: for a connection that is about to wait
    /// for a command whose silence is wanted, and again when it is over.
    pub fn set_liveness(&mut self, config: LivenessConfig) {
        self.liveness_config = config;
        self.watch_silence();
    }

    /// What is said at the start of the next connection.
    pub fn set_handshake(&mut self, config: HandshakeConfig) {
        self.handshake_config = config;
    }

    /// New credentials, for this connection (in place, if it is up) and for all later ones. What the server says
    /// to them comes as an event; refused ones leave the connection as it is.
    ///
    /// Commands are held until `AUTH` can go first: Redis 8.2 leaves an `AUTH` that it refuses without a reply if
    /// anything stands before it in what it reads at once.
    pub fn reauthenticate(&mut self, credentials: Credentials) {
        self.handshake_config.credentials = Some(credentials);
        // A handshake under way has said the old ones already. On RESP2 a connection that subscribes may not speak AUTH;
        // the next one will.
        self.wants_reauth = self.is_open() && !self.is_resp2_subscriber();
    }

    /// Whether new credentials may go out now.
    pub(super) fn is_reauth_due(&self) -> bool {
        self.wants_reauth
            && self.conn.role == Role::Serving
            && self.conn.is_up()
            && self.conn.reauth.is_none()
            && self.conn.in_flight.is_empty()
    }

    /// Begins the re-authentication that was asked for, once nothing is in flight.
    pub(super) fn begin_reauth(&mut self) {
        if !self.is_reauth_due() {
            return;
        }
        self.wants_reauth = false;
        let Some(credentials) = &self.handshake_config.credentials else { return };
        let mut bytes = self.log.spare();
        self.conn.reauth = Some(ReAuth::start(credentials, self.prng.next_u64(), &mut bytes));
        self.conn.write.push_urgent_first(&bytes, Flight::Reauth);
    }

    /// What the policy would be told about the present state.
    pub fn outage(&self) -> Option<Outage> {
        (!self.conn.is_up()).then(|| self.link.outage())
    }

    /// How long nothing has been connected; zero when something is.
    pub fn down_for(&self, now: Instant) -> Duration {
        if self.conn.is_up() { Duration::ZERO } else { now.since(self.link.down_since) }
    }
}

pub(super) const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";

//! One endpoint's work, across all its connections.
//!
//! # The contract
//!
//! A [`Bridge`] is driven by its owner through five kinds of calls. It never blocks, reads no clock and holds no
//! socket.
//!
//! * **Callers** [`Bridge::submit`] a command and get a [`Ticket`]. They ask [`Bridge::poll_outcome`] for the result
//!   and leave a waiter (a waker, or whatever `W` is); or they [`Bridge::abandon`] the ticket. Exactly one of the two
//!   ends each ticket.
//! * **Whoever writes** takes bytes by [`Bridge::take_write`], hands them to the kernel without holding the bridge,
//!   and gives the rest back by [`Bridge::wrote`], always, whatever happened. At most one [`Batch`] is out.
//! * **The owner of the socket** reports what happens to it: [`Bridge::opened`], [`Bridge::dial_failed`],
//!   [`Bridge::deliver`], [`Bridge::lost`]; and asks what to do: [`Bridge::poll_dial`], [`Bridge::is_serving`],
//!   [`Bridge::poll_event`].
//! * **Subscribers**, on a bridge made for them ([`Bridge::with_pubsub`]): [`Bridge::open_subscriber`],
//!   [`Bridge::subscribe`], [`Bridge::poll_item`], [`Bridge::close_subscriber`].
//! * **Time** comes by [`Bridge::handle_timeout`] at or after [`Bridge::poll_timeout`].
//!
//! After any of these calls, [`Bridge::take_wakes`] has the waiters whose commands ended; wake them without the lock.
//!
//! # What it promises
//!
//! A command is *queued*, *staged* (a writer has its bytes), *on the wire* (the kernel took its last byte) or
//! *answered*. Whatever was not on the wire when a connection ended is sent again, in order, on the next one, and is
//! no error before its deadline. Whatever was on the wire goes by [`crate::retry`]. Work of the connection itself
//! (handshake, probes) never waits behind callers' work. Every error says which of the three it was.
//!
//! # Tiers
//!
//! Tier 1 is the connection's own work; it has a buffer of its own and always leaves first. Tiers 2 (pinned to this
//! endpoint) and 3 (any endpoint may serve it) share one queue, because a caller's order is worth more than their
//! separation; the tier decides what may leave the queue for another endpoint.
//!
//! Does **not** own: which endpoint a command belongs to, DNS, sockets, TLS, the limiter of dials.

mod attempts;
mod clock;
mod conn;
mod deliver;
mod diagnose;
mod doubt;
mod event_text;
mod flush;
mod handoff;
mod json;
mod leaving;
mod link;
mod maintenance;
mod marks;
mod outcome;
mod overlap;
mod pubsub;
mod report;
mod room;
mod routed;
mod submit;
#[cfg(test)]
mod tests;
mod tracking;

use std::collections::{BTreeMap, VecDeque};

use towline_admission::{Backoff, BackoffError};
use towline_resp::frame::Frame;
use towline_sansio::{Instant, Prng};
use towline_spec::SideEffect;

use crate::buffer::Log;
use crate::command::{Flags, Reply};
use crate::config::Config;
use crate::error::{Error, ErrorKind, LostCause, Sent, Stage};
use crate::generation::Generation;
use crate::handoff::Handoff;
use crate::handshake::HandshakeConfig;
use crate::liveness::LivenessConfig;
use crate::maintenance::Windows;
use crate::policy::BacklogPolicy;
use crate::retry::RetryBudget;
use crate::server_error::ServerError;
use crate::slab::{Slab, Slotted, Ticket};
use attempts::Attempts;
use conn::Flight;

pub use doubt::Doubt;
pub use flush::{Batch, Flush};
pub use handoff::HandoffDial;
pub use leaving::Leaving;
pub use link::LinkState;
pub use outcome::Polled;
pub use overlap::Continuity;
pub use pubsub::PubSubConfig;
pub use report::{AttemptError, Counters, Event, HandoffEvent, MaintenanceEvent, Snapshot};
pub use room::RoomTicket;
pub use routed::{Adopt, MapTrouble, News, Stray, StrayReason, SubmitError};
pub use submit::Submitted;
pub use tracking::TrackingNews;

/// A time in milliseconds that wraps after 49 days; only differences mean something.
type Millis = u32;

/// A command that is not answered yet. Small on purpose: a hundred thousand of them may wait through an outage.
#[derive(Debug)]
struct Pending<W> {
    /// Where its bytes end in the log.
    end: u64,
    waiter: Option<W>,
    /// How many bytes those are.
    len: u32,
    /// Replies still to come.
    replies: u32,
}

#[derive(Debug)]
enum State<W> {
    Pending(Pending<W>),
    /// Withdrawn before it was sent; the queue still has its number.
    Removed,
    /// Another bridge has the command; its caller does not know yet.
    Forwarded,
    Done(Result<Reply, Error>),
}

/// Where a pending command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Queue,
    InFlight,
    /// Refused by the server without running; waits to be sent again.
    Delayed,
    /// Waits for its slot.
    Held,
    /// On its way to another bridge.
    Strayed,
}

/// One completion slot.
#[derive(Debug)]
struct Slot<W> {
    effect: SideEffect,
    flags: Flags,
    place: Place,
    attempts: Attempts,
    generation: u32,
    submitted: Millis,
    /// Means nothing for an endless command.
    deadline: Millis,
    state: State<W>,
}

impl<W> Slot<W> {
    fn is_endless(&self) -> bool {
        self.flags.contains(Flags::ENDLESS)
    }

    /// Its caller has gone; the reply is read and dropped.
    fn is_orphan(&self) -> bool {
        self.flags.contains(Flags::ORPHAN)
    }

    /// Its ticket has ended, although the slot is still needed.
    fn is_given_up(&self) -> bool {
        self.is_orphan() || matches!(self.state, State::Removed)
    }

    fn orphan(&mut self) {
        self.flags = self.flags | Flags::ORPHAN;
    }
}

impl<W> Slotted for Slot<W> {
    fn generation(&self) -> u32 {
        self.generation
    }

    fn set_generation(&mut self, generation: u32) {
        self.generation = generation;
    }
}

/// One endpoint: the queue, the connection, the fate of every command. Its contract stands at the top of the file.
#[derive(Debug)]
pub struct Bridge<W> {
    config: Config,
    policy: Box<dyn BacklogPolicy>,
    prng: Prng,
    /// Present on the bridge of a cluster's node.
    routed: Option<Box<routed::Routed>>,
    /// Present on a connection that subscribes.
    pubsub: Option<pubsub::PubSub<W>>,
    /// Present if the server is to announce changes of what is read.
    tracking: Option<Box<tracking::Tracker>>,
    slots: Slab<Slot<W>>,
    log: Log,
    /// Commands not handed to a writer, oldest first, at ascending positions.
    queue: VecDeque<u32>,
    /// Withdrawn commands among them.
    queue_removed: usize,
    /// So many at the front waited through an outage, and those behind them may go first.
    queue_old: usize,
    /// The connection that commands go to. Others are there only while the endpoint moves.
    conn: conn::Conn,
    others: handoff::Others,
    /// The latest connection's number.
    last_generation: Generation,
    /// Bytes of commands whose last byte the kernel has not taken.
    unsent_bytes: usize,
    delayed: Vec<clock::Delayed>,
    /// Refused commands whose bytes a writer still has: their replies overtook its word on the write.
    postponed: Vec<(Ticket, ServerError)>,
    /// Replies of units that have not all come.
    partial: BTreeMap<u32, Vec<Frame>>,
    link: link::Link,
    backoff: Backoff,
    handshake_config: HandshakeConfig,
    /// New credentials are to be sent as soon as nothing is in flight.
    wants_reauth: bool,
    liveness_config: LivenessConfig,
    budget: RetryBudget,
    room: room::Room<W>,
    clock: clock::Clock,
    moves: Box<maintenance::Moves>,
    wakes: Vec<W>,
    report: report::Report,
    is_closed: bool,
}

/// Parts that a bridge is made of; see [`Bridge::new`].
#[derive(Debug)]
pub struct Parts {
    /// Bounds and times.
    pub config: Config,
    /// What becomes of work while nothing is connected.
    pub policy: Box<dyn BacklogPolicy>,
    /// What is said at the start of each connection.
    pub handshake: HandshakeConfig,
    /// When a silent peer is given up.
    pub liveness: LivenessConfig,
    /// How much may be repeated.
    pub budget: RetryBudget,
    /// The seed of every draw.
    pub seed: u64,
}

impl<W> Bridge<W> {
    /// A bridge without a connection; [`Bridge::poll_dial`] wants one at once.
    ///
    /// # Errors
    /// The backoff's numbers make no sense.
    pub fn new(parts: Parts, now: Instant) -> Result<Self, BackoffError> {
        let Parts { config, policy, handshake, liveness, budget, seed } = parts;
        let backoff = Backoff::new(config.backoff)?;
        Ok(Self {
            policy,
            prng: Prng::new(seed),
            routed: None,
            pubsub: None,
            tracking: None,
            slots: Slab::new(config.guards.generation),
            log: Log::default(),
            queue: VecDeque::new(),
            queue_removed: 0,
            queue_old: 0,
            conn: conn::Conn::new(now, conn::Role::Serving, liveness),
            others: handoff::Others::default(),
            last_generation: Generation::default(),
            unsent_bytes: 0,
            delayed: Vec::new(),
            postponed: Vec::new(),
            partial: BTreeMap::new(),
            link: link::Link::new(now),
            backoff,
            handshake_config: handshake,
            wants_reauth: false,
            liveness_config: liveness,
            budget,
            room: room::Room::default(),
            clock: clock::Clock::new(now),
            moves: Box::new(maintenance::Moves::new(
                Handoff::new(config.handoff),
                Windows::new(config.windows),
                now,
            )),
            wakes: Vec::new(),
            report: report::Report::new(config.events_max),
            is_closed: false,
            config,
        })
    }

    /// Whether this command's reply is the next to come.
    pub fn is_next(&self, ticket: Ticket) -> bool {
        let is_first = |flight: &Flight| matches!(flight, Flight::Command(next) if *next == ticket);
        self.conns().any(|conn| conn.in_flight.front().is_some_and(is_first))
    }

    /// Gives a command up. What was not handed to a writer is withdrawn and never sent; what was is answered in its
    /// turn, and the answer is dropped.
    pub fn abandon(&mut self, ticket: Ticket) {
        let Some(slot) = self.slots.get_mut(ticket).filter(|slot| !slot.is_given_up()) else { return };
        match &mut slot.state {
            State::Done(_) | State::Forwarded | State::Removed => {
                self.slots.remove(ticket.index());
            }
            State::Pending(pending) => {
                pending.waiter = None;
                match slot.place {
                    Place::InFlight | Place::Strayed => slot.orphan(),
                    Place::Held => self.abandon_held(ticket.index()),
                    Place::Queue => self.withdraw(ticket.index()),
                    Place::Delayed => {
                        self.delayed.retain(|delayed| delayed.index != ticket.index());
                        self.partial.remove(&ticket.index());
                        self.slots.remove(ticket.index());
                    }
                }
                self.report.counters.abandoned += 1;
            }
        }
    }

    /// Takes a command out of the queue; its number stays there until the queue passes it.
    fn withdraw(&mut self, index: u32) {
        if !self.config.guards.culling {
            if let Some(slot) = self.slots.at_mut(index) {
                slot.orphan();
            }
            return;
        }
        if let Some(slot) = self.slots.at_mut(index)
            && let State::Pending(pending) = &slot.state
        {
            self.unsent_bytes -= pending.len as usize;
            slot.state = State::Removed;
            self.queue_removed += 1;
            self.tidy_queue();
            self.compact();
            self.grant_room();
        }
    }

    /// Rewrites the queue when most of it is withdrawn work, so that a long outage costs no memory for it.
    fn tidy_queue(&mut self) {
        const REMOVED_MIN: usize = 1024;
        let is_nothing_left = self.queue_removed == self.queue.len();
        let is_mostly_removed =
            self.queue_removed >= REMOVED_MIN && self.queue_removed * 2 >= self.queue.len();
        if self.queue_removed == 0 || (!is_nothing_left && !is_mostly_removed) {
            return;
        }
        let slots = &mut self.slots;
        let (mut at, old, mut old_removed) = (0, self.queue_old, 0);
        self.queue.retain(|index| {
            let is_live = !matches!(slots.at(*index).map(|slot| &slot.state), Some(State::Removed) | None);
            if !is_live {
                slots.remove(*index);
                old_removed += usize::from(at < old);
            }
            at += 1;
            is_live
        });
        self.queue_old -= old_removed;
        self.queue_removed = 0;
        if self.queue.is_empty() {
            self.release();
        }
        self.compact();
    }

    /// Moves the bytes of live commands together when the log holds mostly others. What was handed to a writer stays
    /// where it is: the kernel's progress is counted in its positions.
    fn compact(&mut self) {
        const SLACK_BYTES: usize = 1024 * 1024;
        if self.log.held() < 2 * (self.unsent_bytes + self.conn.in_flight_bytes) + SLACK_BYTES
            || !self.others.is_empty()
        {
            // A handoff is over soon.
            return;
        }
        let is_none_handed =
            self.conn.in_flight.is_empty() && !self.conn.write.is_busy() && !self.log.is_out();
        if !is_none_handed && self.queue_old > 0 {
            // What waited through an outage lies before what was handed out.
            return;
        }
        let from = if is_none_handed { 0 } else { self.conn.write.handed() };
        let mut ranges = Vec::with_capacity(self.queue.len());
        for index in &self.queue {
            if let Some(State::Pending(pending)) = self.slots.at(*index).map(|slot| &slot.state) {
                ranges.push((*index, pending.end - u64::from(pending.len)..pending.end));
            }
        }
        if is_none_handed {
            self.conn.write.marks.clear();
        }
        let slots = &mut self.slots;
        self.log.compact(from, &ranges, |index, end| {
            if let Some(State::Pending(pending)) = slots.at_mut(index).map(|slot| &mut slot.state) {
                pending.end = end;
            }
        });
    }

    /// Ends a command: its caller gets `outcome`, or nobody does.
    fn finish(&mut self, index: u32, outcome: Result<Reply, Error>) {
        self.partial.remove(&index);
        let Some(slot) = self.slots.at_mut(index) else { return };
        if let Err(error) = &outcome {
            self.report.counters.failed += 1;
            match error.sent() {
                Sent::No => self.report.counters.failed_unsent += 1,
                Sent::Maybe => self.report.counters.failed_unknown += 1,
                Sent::Answered => {}
            }
        }
        if slot.is_orphan() {
            if slot.flags.contains(Flags::FIRE_AND_FORGET) {
                self.report.unwatched(outcome.err());
            }
            self.slots.remove(index);
            return;
        }
        let state = std::mem::replace(&mut slot.state, State::Done(outcome));
        if let State::Pending(Pending { waiter: Some(waiter), .. }) = state {
            self.wakes.push(waiter);
        }
    }

    /// Drops the bytes that nobody needs any more.
    fn release(&mut self) {
        let position = self.low_water();
        self.log.release(position);
        self.conn.write.marks.forget(position);
        if self.slots.len() == 0 {
            self.slots.shrink_if_empty();
        }
    }

    /// The first position that an unanswered command needs.
    fn low_water(&self) -> u64 {
        let start = |index: u32| match self.slots.at(index).map(|slot| &slot.state) {
            Some(State::Pending(pending)) => Some(pending.end - u64::from(pending.len)),
            _ => None,
        };
        let first_of = |conn: &conn::Conn| {
            conn.in_flight.iter().find_map(|flight| match flight {
                Flight::Command(ticket) => start(ticket.index()),
                _ => None,
            })
        };
        let in_flight = || {
            if self.others.is_empty() {
                first_of(&self.conn)
            } else {
                self.conns().filter_map(first_of).min()
            }
        };
        let queued = || self.queue.iter().find_map(|index| start(*index));
        // What waited through an outage, or for its keys, lies before what overtakes it.
        let first = if self.queue_old > 0 || !self.others.is_empty() {
            [queued(), in_flight()].into_iter().flatten().min()
        } else {
            in_flight().or_else(queued)
        };
        let first = first.unwrap_or_else(|| self.log.end());
        let postponed = self.postponed.iter().filter_map(|(ticket, _)| start(ticket.index())).min();
        postponed.map_or(first, |postponed| postponed.min(first))
    }

    /// Where the first command in the queue begins.
    fn queue_start(&self) -> Option<u64> {
        self.queue.iter().find_map(|index| match self.slots.at(*index).map(|slot| &slot.state) {
            Some(State::Pending(pending)) => Some(pending.end - u64::from(pending.len)),
            _ => None,
        })
    }

    /// Whether [`Bridge::take_wakes`] has somebody.
    #[inline]
    pub const fn has_wakes(&self) -> bool {
        !self.wakes.is_empty()
    }

    /// The waiters of commands that ended since the last call, added to `out`.
    pub fn take_wakes(&mut self, out: &mut Vec<W>) {
        self.report.counters.wakes += self.wakes.len() as u64;
        out.append(&mut self.wakes);
    }

    /// Ends the bridge: nothing more is accepted. If the connection is up, what was accepted is still sent and
    /// answered, each command within its deadline; without a connection, or when it is lost now, everything that
    /// waits fails with [`ErrorKind::Closed`]. The owner stops at [`Bridge::is_finished`].
    pub fn close(&mut self, now: Instant) {
        if self.is_closed {
            return;
        }
        self.is_closed = true;
        self.stop_moving(now);
        self.look_around(now);
        for delayed in std::mem::take(&mut self.delayed) {
            self.fail(now, delayed.index, ErrorKind::Closed, Stage::Queued);
        }
        self.room.close(&mut self.wakes);
        self.close_pubsub(now);
        self.fail_all_held(now, &ErrorKind::Closed);
        if !self.conn.is_up() {
            // What is to go elsewhere goes once the writer is back.
            if !self.is_gathering() {
                self.fail_waiting(now, &ErrorKind::Closed);
            }
            self.lose(now, LostCause::Killed);
        }
        self.release();
    }

    /// Ends the bridge at once, because nobody will serve its connection any more: what was sent fails with
    /// [`ErrorKind::Lost`], what waits with [`ErrorKind::Closed`].
    pub fn kill(&mut self, now: Instant) {
        self.close(now);
        self.lose(now, LostCause::Killed);
    }

    /// Fails a command that is in the queue, or was taken from it just now and never handed out.
    fn fail_queued(&mut self, now: Instant, index: u32, kind: ErrorKind) {
        match self.slots.at(index).map(|slot| &slot.state) {
            Some(State::Pending(pending)) => {
                self.unsent_bytes -= pending.len as usize;
                self.fail(now, index, kind, Stage::Queued);
            }
            Some(State::Removed) => {
                self.slots.remove(index);
            }
            Some(State::Done(_) | State::Forwarded) | None => {}
        }
    }

    /// Whether nothing waits for anything.
    pub fn is_idle(&self) -> bool {
        self.conns().all(|conn| conn.in_flight.is_empty())
            && self.queue.len() == self.queue_removed
            && self.delayed.is_empty()
            && self.postponed.is_empty()
            && !self.has_wanderers()
    }

    /// Whether [`Bridge::close`] was called: nothing more is accepted.
    pub const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Whether [`Bridge::close`] was called and everything has ended: the owner may stop.
    pub fn is_finished(&self) -> bool {
        self.is_closed && self.is_idle() && !self.conn.write.is_busy()
    }
}

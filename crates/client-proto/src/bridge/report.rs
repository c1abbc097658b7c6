//! What can be seen of a bridge.
//!
//! Owns counters, the ordered stream of events, and snapshots. Costs a few additions per command; everything else is
//! made up when somebody asks. Does not own the circumstances in errors ([`super::diagnose`]).

use std::collections::VecDeque;
use std::time::Duration;

use towline_sansio::Instant;

use super::diagnose::Scene;
use super::{Bridge, Continuity, LinkState};
use crate::diagnosis::{Down, HeadOfLine, Trouble};
use crate::error::{Error, LostCause, ProtocolError};
use crate::generation::Generation;
use crate::handoff::{Ended, Taken, Target};
use crate::handshake::{HandshakeError, Ready};
use crate::maintenance::Address;

/// Something that happened to the connection. In order; see [`Bridge::poll_event`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A connection is ready for commands.
    Connected {
        /// Which.
        generation: Generation,
        /// What the handshake learned.
        info: Box<Ready>,
        /// How long nothing was connected.
        down_for: Duration,
        /// Commands that waited.
        backlog: usize,
    },
    /// A connection that was ready is gone.
    Lost {
        /// Which.
        generation: Generation,
        /// Why.
        cause: LostCause,
        /// Commands that failed because they may have run.
        unknown: usize,
        /// Commands that wait for the next connection.
        kept: usize,
    },
    /// No socket came of a dial.
    DialFailed {
        /// Which connection it would have been.
        generation: Generation,
        /// Why.
        error: std::io::ErrorKind,
        /// The wait before the next one.
        retry_in: Duration,
    },
    /// A socket was there but the handshake did not succeed.
    HandshakeFailed {
        /// Which connection it would have been.
        generation: Generation,
        /// Why.
        error: HandshakeError,
        /// The wait before the next one.
        retry_in: Duration,
    },
    /// New credentials were refused; the connection goes on with the old ones.
    ReauthRefused {
        /// Which connection.
        generation: Generation,
        /// Why.
        error: HandshakeError,
    },
    /// A planned handoff has come a step further. It is no loss and no failure.
    Handoff(HandoffEvent),
    /// The server announced that it is busy with itself, or that it is no longer.
    Maintenance(MaintenanceEvent),
    /// Fire-and-forget commands failed since the last such event.
    UnwatchedFailed {
        /// How many.
        count: u64,
        /// The last one's error.
        last: Error,
    },
    /// The client has ended; nothing follows.
    Closed,
    /// The reader was behind; this many events are missing here.
    Missed {
        /// How many.
        count: u64,
    },
}

/// The steps of a planned handoff, in their order.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum HandoffEvent {
    /// The server says that the endpoint of a connection moves.
    Announced {
        /// The connection that it was said on.
        generation: Generation,
        /// Where to, if it named a successor.
        successor: Option<Address>,
        /// How long the old connection stands, as announced.
        window: Option<Duration>,
        /// What follows from it.
        taken: Taken,
    },
    /// A successor is being dialled.
    Dialing {
        /// The connection that it would be.
        generation: Generation,
        /// Where to.
        target: Target,
    },
    /// An attempt at a successor came to nothing. The old connection goes on serving.
    AttemptFailed {
        /// The connection that it would have been.
        generation: Generation,
        /// Why.
        error: AttemptError,
    },
    /// The subscriptions are those of another connection from now on. Said of a client's connection for subscriptions only.
    Subscriptions {
        /// The connection that was left.
        from: Generation,
        /// The one that they are on.
        to: Generation,
        /// What is known about their messages.
        continuity: Continuity,
        /// How long it took, from the readiness of the successor on.
        took: Duration,
    },
    /// Commands go to the successor from now on.
    CutOver {
        /// The connection that was left.
        from: Generation,
        /// The one that serves.
        to: Generation,
        /// Commands that are still answered on the old one.
        in_flight: usize,
        /// Commands that were on their way to the old one and go to the new one: the kernel had not taken them.
        moved: usize,
        /// Commands that had not left the queue.
        queued: usize,
    },
    /// The old connection has answered everything, or its time is over; it is closed.
    Drained {
        /// The connection.
        generation: Generation,
        /// How long it was answering after the cut.
        took: Duration,
    },
    /// No successor could be made ready: new work is held, what was sent is answered, then the connection is left.
    Recycling {
        /// The connection.
        generation: Generation,
        /// The longest hold.
        hold_max: Duration,
    },
    /// The handoff is over.
    Ended(Ended),
}

/// Why an attempt at a successor came to nothing.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum AttemptError {
    /// There was no socket.
    Dial(std::io::ErrorKind),
    /// There was one, and its handshake did not succeed.
    Handshake(HandshakeError),
    /// It was lost before it served.
    Lost(LostCause),
    /// It leads to the server that is to be left.
    SameNode,
}

/// What the server says about itself besides its moves.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum MaintenanceEvent {
    /// Deadlines and the watch over silence are relaxed from now on.
    Relaxed {
        /// Until when at the latest.
        until: Instant,
    },
    /// They are as configured again.
    Restored,
    /// The connection will be closed by the server, and does not move by itself: somebody holds it for what cannot move.
    Leaving {
        /// When at the latest.
        until: Instant,
    },
}

/// Declares the counters once: their fields and their names.
macro_rules! counters {
    ($($(#[$doc:meta])+ $name:ident,)+) => {
        /// Totals since the bridge began. They only grow.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counters {
            $($(#[$doc])+ pub $name: u64,)+
        }

        impl Counters {
            /// Each counter with the name of its field, for an exporter. The order stays, new ones come at the end.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)+].into_iter()
            }

            /// Adds those of another bridge.
            pub const fn add(&mut self, other: &Self) {
                $(self.$name = self.$name.saturating_add(other.$name);)+
            }
        }
    };
}

counters! {
    /// Commands accepted.
    submitted,
    /// Commands answered, server errors included.
    answered,
    /// Commands that failed.
    failed,
    /// Of these: not sent.
    failed_unsent,
    /// Of these: sent, unknown whether they ran.
    failed_unknown,
    /// Commands not accepted by policy.
    refused,
    /// Commands whose deadline passed.
    expired,
    /// Commands given up by their callers.
    abandoned,
    /// Commands sent again after a connection was lost: not sent before.
    replayed,
    /// Commands sent again after a connection was lost: harmless to repeat.
    repeated,
    /// Commands sent again because the server refused them without running them.
    refused_retried,
    /// Fire-and-forget commands that failed.
    unwatched_failed,
    /// Connections that became ready.
    connections,
    /// Dials begun.
    dials,
    /// Dials and handshakes that failed.
    dials_failed,
    /// Pushes of kinds that nobody here knows; dropped.
    pushes_unknown,
    /// Connections ended because the peer broke the protocol.
    protocol_errors,
    /// Probes sent.
    probes,
    /// Bytes that the kernel took, handshakes included.
    bytes_written,
    /// Batches handed to a writer: about as many system calls.
    writes,
    /// Of these: written by a caller itself, without the connection's task.
    writes_inline,
    /// Commands in these batches: divided by `writes`, the commands per system call.
    written_commands,
    /// Bytes read.
    bytes_read,
    /// Reads that yielded bytes.
    reads,
    /// Callers woken.
    wakes,
    /// Fresh connections that were to say whether a silent server is busy or gone.
    second_opinions,
    /// Connections that were left for a successor which stood ready.
    handoffs,
    /// Connections that were left without one, in a planned handoff.
    recycled,
    /// Attempts at a successor that came to nothing.
    successors_failed,
    /// Notifications of maintenance.
    notifications,
    /// Of these: told before, or too late to matter.
    notifications_stale,
    /// Reads that the client's cache answered. The client fills in what its cache counts: a bridge has none.
    cache_hits,
    /// Reads that the client's cache sent to the server.
    cache_misses,
    /// Callers that waited for one of these reads which was under way already.
    cache_coalesced,
    /// Reads that went by the cache: no room, or nobody who announces changes.
    cache_bypassed,
    /// Entries that the server, or the application, said are over.
    cache_invalidated,
    /// Entries that made room for others.
    cache_evicted,
    /// Entries that ended with their connection, with their slot's owner, or with all keys.
    cache_dropped,
    /// Entries whose time was over.
    cache_expired,
}

/// The state of a bridge at one moment.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Snapshot {
    /// What the connection is doing.
    pub link: LinkState,
    /// The latest connection.
    pub generation: Generation,
    /// What its handshake learned, if it is ready.
    pub info: Option<Ready>,
    /// Why nothing is connected; `None` if something is.
    pub down: Option<Down>,
    /// Commands that wait to be sent.
    pub backlog_commands: usize,
    /// Their bytes.
    pub backlog_bytes: usize,
    /// Callers that wait for room in the backlog.
    pub room_waiters: usize,
    /// Commands that wait for replies.
    pub in_flight_commands: usize,
    /// Their bytes.
    pub in_flight_bytes: usize,
    /// Refused commands that wait to be sent again.
    pub delayed_commands: usize,
    /// Bytes that the log holds, answered ones in half-used blocks included.
    pub log_bytes: usize,
    /// Completion slots in use.
    pub slots: usize,
    /// How long ago bytes came.
    pub read_age: Option<Duration>,
    /// The command whose reply is due next.
    pub head_of_line: Option<HeadOfLine>,
    /// Failures that raise the wait between dials at present.
    pub backoff_level: u32,
    /// How the peer broke the protocol the last time it did.
    pub last_protocol_error: Option<ProtocolError>,
    /// Totals.
    pub counters: Counters,
}

impl Snapshot {
    /// Several bridges in one: the state of the least connected of them, its troubles, and the sums of all numbers with
    /// `past` added to the counters. Without any, a bridge that waits.
    pub fn merged(parts: impl IntoIterator<Item = Self>, past: &Counters) -> Self {
        let mut merged: Option<Self> = None;
        for part in parts {
            merged = Some(match merged {
                None => part,
                Some(known) => known.and(part),
            });
        }
        let mut merged = merged.unwrap_or_else(|| Self {
            link: LinkState::Waiting,
            generation: Generation::default(),
            info: None,
            down: None,
            backlog_commands: 0,
            backlog_bytes: 0,
            room_waiters: 0,
            in_flight_commands: 0,
            in_flight_bytes: 0,
            delayed_commands: 0,
            log_bytes: 0,
            slots: 0,
            read_age: None,
            head_of_line: None,
            backoff_level: 0,
            last_protocol_error: None,
            counters: Counters::default(),
        });
        merged.counters.add(past);
        merged
    }

    fn and(self, other: Self) -> Self {
        let (worse, better) = if self.link == LinkState::Up && other.link != LinkState::Up {
            (other, self)
        } else {
            (self, other)
        };
        let mut counters = worse.counters;
        counters.add(&better.counters);
        Self {
            backlog_commands: worse.backlog_commands + better.backlog_commands,
            backlog_bytes: worse.backlog_bytes + better.backlog_bytes,
            room_waiters: worse.room_waiters + better.room_waiters,
            in_flight_commands: worse.in_flight_commands + better.in_flight_commands,
            in_flight_bytes: worse.in_flight_bytes + better.in_flight_bytes,
            delayed_commands: worse.delayed_commands + better.delayed_commands,
            log_bytes: worse.log_bytes + better.log_bytes,
            slots: worse.slots + better.slots,
            read_age: worse.read_age.max(better.read_age),
            backoff_level: worse.backoff_level.max(better.backoff_level),
            last_protocol_error: worse.last_protocol_error.or(better.last_protocol_error),
            counters,
            ..worse
        }
    }
}

#[derive(Debug)]
pub(super) struct Report {
    pub(super) counters: Counters,
    pub(super) last_protocol_error: Option<ProtocolError>,
    pub(super) read_at: Option<Instant>,
    /// When this process was last found to be late.
    pub(super) late_at: Option<Instant>,
    /// Why the last attempt to be connected, or the last connection, came to nothing.
    pub(super) trouble: Option<Trouble>,
    /// What commands that fail at one time have in common.
    pub(super) scene: Option<Scene>,
    events: VecDeque<Event>,
    events_max: usize,
    missed: u64,
    unwatched: Option<(u64, Error)>,
}

impl Report {
    pub(super) fn new(events_max: usize) -> Self {
        Self {
            counters: Counters::default(),
            last_protocol_error: None,
            read_at: None,
            late_at: None,
            trouble: None,
            scene: None,
            events: VecDeque::new(),
            events_max: events_max.max(1),
            missed: 0,
            unwatched: None,
        }
    }

    pub(super) fn event(&mut self, event: Event) {
        if self.events.len() >= self.events_max {
            self.events.pop_front();
            self.missed += 1;
        }
        self.events.push_back(event);
    }

    /// A fire-and-forget command ended.
    pub(super) fn unwatched(&mut self, error: Option<Error>) {
        let Some(error) = error else { return };
        self.counters.unwatched_failed += 1;
        let count = self.unwatched.take().map_or(0, |(count, _)| count);
        self.unwatched = Some((count + 1, error));
    }
}

impl<W> Bridge<W> {
    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        if self.report.missed > 0 {
            return Some(Event::Missed { count: std::mem::take(&mut self.report.missed) });
        }
        if let Some(event) = self.report.events.pop_front() {
            return Some(event);
        }
        self.report.unwatched.take().map(|(count, last)| Event::UnwatchedFailed { count, last })
    }

    /// Whether [`Bridge::poll_event`] has something.
    pub fn has_events(&self) -> bool {
        self.report.missed > 0 || !self.report.events.is_empty() || self.report.unwatched.is_some()
    }

    /// For what only the owner of the socket sees: reads and their bytes, and writes by callers.
    pub const fn counters_mut(&mut self) -> &mut Counters {
        &mut self.report.counters
    }

    /// Totals since the bridge began.
    pub const fn counters(&self) -> Counters {
        self.report.counters
    }

    /// The state at `now`.
    pub fn snapshot(&self, now: Instant) -> Snapshot {
        Snapshot {
            link: self.conn.state(),
            generation: self.conn.generation,
            info: self.conn.info().cloned(),
            down: self.down(now),
            backlog_commands: self.queue.len() - self.queue_removed,
            backlog_bytes: self.unsent_bytes,
            room_waiters: self.room.len(),
            in_flight_commands: self.conns().map(|conn| conn.in_flight.len()).sum(),
            in_flight_bytes: self.conns().map(|conn| conn.in_flight_bytes).sum(),
            delayed_commands: self.delayed.len(),
            log_bytes: self.log.held(),
            slots: self.slots.len(),
            read_age: self.report.read_at.map(|at| now.since(at)),
            head_of_line: self.head_of_line(now),
            backoff_level: self.backoff.level(),
            last_protocol_error: self.report.last_protocol_error,
            counters: self.report.counters,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_is_behind_learns_how_much_it_missed() {
        let mut report = Report::new(2);
        for count in 0..5 {
            report.event(Event::Missed { count });
        }
        assert_eq!((report.events.len(), report.missed), (2, 3));
    }
}

//! What can be seen of a bridge.
//!
//! Owns counters, the ordered stream of events, snapshots, and the circumstances in errors. Costs a few additions per
//! command; everything else is made up when somebody asks.

use std::collections::VecDeque;
use std::time::Duration;

use towline_sansio::Instant;

use super::{Bridge, Flight, LinkState, Place, Slot, State};
use crate::diagnosis::{Blame, Diagnosis, HeadOfLine};
use crate::error::{Error, ErrorKind, LostCause, ProtocolError, Sent, Stage};
use crate::generation::Generation;
use crate::handshake::{HandshakeError, Ready};
use crate::slab::Ticket;

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

/// Totals since the bridge began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Commands accepted.
    pub submitted: u64,
    /// Commands answered, server errors included.
    pub answered: u64,
    /// Commands that failed.
    pub failed: u64,
    /// Of these: not sent.
    pub failed_unsent: u64,
    /// Of these: sent, unknown whether they ran.
    pub failed_unknown: u64,
    /// Commands not accepted by policy.
    pub refused: u64,
    /// Commands whose deadline passed.
    pub expired: u64,
    /// Commands given up by their callers.
    pub abandoned: u64,
    /// Commands sent again after a connection was lost: not sent before.
    pub replayed: u64,
    /// Commands sent again after a connection was lost: harmless to repeat.
    pub repeated: u64,
    /// Commands sent again because the server refused them without running them.
    pub refused_retried: u64,
    /// Fire-and-forget commands that failed.
    pub unwatched_failed: u64,
    /// Connections that became ready.
    pub connections: u64,
    /// Dials begun.
    pub dials: u64,
    /// Dials and handshakes that failed.
    pub dials_failed: u64,
    /// Pushes of kinds that nobody here knows; dropped.
    pub pushes_unknown: u64,
    /// Connections ended because the peer broke the protocol.
    pub protocol_errors: u64,
    /// Probes sent.
    pub probes: u64,
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

#[derive(Debug)]
pub(super) struct Report {
    pub(super) counters: Counters,
    pub(super) last_protocol_error: Option<ProtocolError>,
    pub(super) read_at: Option<Instant>,
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

    /// Totals since the bridge began.
    pub const fn counters(&self) -> Counters {
        self.report.counters
    }

    /// The state at `now`.
    pub fn snapshot(&self, now: Instant) -> Snapshot {
        Snapshot {
            link: self.link.state(),
            generation: self.generation,
            info: self.link.info().cloned(),
            backlog_commands: self.queue.len() - self.queue_removed,
            backlog_bytes: self.unsent_bytes,
            room_waiters: self.room.len(),
            in_flight_commands: self.in_flight.len(),
            in_flight_bytes: self.in_flight_bytes,
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

    /// What is known of the command in slot `index`, which failed at `stage`.
    pub(super) fn diagnose(&self, now: Instant, index: u32, stage: Stage) -> Option<Diagnosis> {
        let slot = self.slots.at(index)?;
        let age = Duration::from_millis(u64::from(self.clock.millis(now).wrapping_sub(slot.submitted)));
        let read_age = self.report.read_at.map(|at| now.since(at));
        let (queued, staged, on_wire) = match stage {
            Stage::Queued => (age, Duration::ZERO, Duration::ZERO),
            Stage::Staged => (Duration::ZERO, age, Duration::ZERO),
            Stage::OnWire | Stage::Answered => (Duration::ZERO, Duration::ZERO, age),
        };
        let blame = match (stage, read_age) {
            (Stage::OnWire, Some(read_age)) if read_age < age / 2 => Blame::ServerSlow,
            (Stage::OnWire, Some(_)) => Blame::NetworkSilent,
            _ => Blame::Unknown,
        };
        Some(Diagnosis {
            stage,
            queued,
            staged,
            on_wire,
            backlog_commands: self.queue.len() - self.queue_removed,
            backlog_bytes: self.unsent_bytes,
            in_flight_commands: self.in_flight.len(),
            head_of_line: self.head_of_line(now),
            read_age,
            generation: (stage >= Stage::Staged).then_some(self.generation),
            blame,
        })
    }

    /// The error of a pending command whose caller keeps its own time and gives it up now: `kind` with the stage that
    /// the command has come to and its circumstances. Changes nothing; [`Bridge::abandon`] or a later
    /// [`Bridge::poll_outcome`] ends the ticket. Of a ticket that has ended, [`Sent::Answered`].
    pub fn explain(&self, now: Instant, ticket: Ticket, kind: ErrorKind) -> Error {
        let slot =
            self.slots.at(ticket.index()).filter(|_| self.slots.ticket(ticket.index()) == Some(ticket));
        let Some(Slot { state: State::Pending(pending), place, .. }) = slot else {
            return Error::new(kind, Sent::Answered);
        };
        let stage = match place {
            Place::InFlight => self.stage_in_flight(pending.end),
            Place::Queue | Place::Delayed => Stage::Queued,
        };
        let error = Error::new(kind, stage.sent());
        match self.diagnose(now, ticket.index(), stage) {
            Some(diagnosis) => error.with_diagnosis(diagnosis),
            None => error,
        }
    }

    fn head_of_line(&self, now: Instant) -> Option<HeadOfLine> {
        let (index, ticket) = self.in_flight.iter().find_map(|flight| match flight {
            Flight::Command(ticket) => Some((ticket.index(), *ticket)),
            _ => None,
        })?;
        if self.slots.ticket(index) != Some(ticket) {
            return None;
        }
        let slot = self.slots.at(index)?;
        let State::Pending(pending) = &slot.state else { return None };
        let start = pending.end - u64::from(pending.len);
        let mut head = Vec::new();
        self.log.copy(start..pending.end.min(start + NAME_BYTES_MAX), &mut head);
        let age = Duration::from_millis(u64::from(self.clock.millis(now).wrapping_sub(slot.submitted)));
        Some(HeadOfLine { name: command_name(&head).into(), age })
    }
}

/// Enough of a command for its name.
const NAME_BYTES_MAX: u64 = 64;

/// The name in the first bytes of an encoded command; `?` if it is not there.
fn command_name(head: &[u8]) -> String {
    let mut lines = head.split(|byte| *byte == b'\n');
    let name = match (lines.next(), lines.next(), lines.next()) {
        (Some(_), Some(_), Some(name)) => name,
        _ => b"?",
    };
    String::from_utf8_lossy(name.strip_suffix(b"\r").unwrap_or(name)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_in_encoded_bytes() {
        assert_eq!(command_name(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"), "GET");
        assert_eq!(command_name(b"*2\r\n"), "?");
        assert_eq!(command_name(b""), "?");
    }

    #[test]
    fn a_reader_that_is_behind_learns_how_much_it_missed() {
        let mut report = Report::new(2);
        for count in 0..5 {
            report.event(Event::Missed { count });
        }
        assert_eq!((report.events.len(), report.missed), (2, 3));
    }
}

//! The circumstances of a failure.
//!
//! Owns what is put into a [`Diagnosis`] and where the times in it come from. Costs nothing until something fails:
//! the times are those of the batch that a command left with.

use std::time::Duration;

use towline_sansio::Instant;

use super::{Bridge, Flight, Place, Slot, State};
use crate::diagnosis::{Blame, Diagnosis, Down, HeadOfLine, Trouble};
use crate::error::{Error, ErrorKind, Sent, Stage};
use crate::slab::Ticket;

/// What all commands that fail together have in common.
#[derive(Debug, Clone)]
pub(super) struct Scene {
    at: Instant,
    backlog_commands: usize,
    backlog_bytes: usize,
    in_flight_commands: usize,
    head_of_line: Option<HeadOfLine>,
    down: Option<Down>,
}

impl<W> Bridge<W> {
    /// Fails a pending command with what is known about it.
    pub(super) fn fail(&mut self, now: Instant, index: u32, kind: ErrorKind, stage: Stage) {
        self.fail_as(now, index, kind, stage, stage.sent());
    }

    /// As [`Bridge::fail`], where the stage does not say all: what a writer still has may be sent later.
    pub(super) fn fail_as(&mut self, now: Instant, index: u32, kind: ErrorKind, stage: Stage, sent: Sent) {
        let scene = match self.report.scene.take() {
            Some(scene) if scene.at == now => scene,
            _ => self.scene(now),
        };
        let earlier = self.slots.at(index).map_or(Sent::No, |slot| slot.attempts.sent());
        let error = self.explained(now, &scene, index, Error::new(kind, sent.max(earlier)), stage);
        self.report.scene = Some(scene);
        self.finish(index, Err(error));
    }

    /// The error of a pending command whose caller keeps its own time and gives it up now: `kind` with the stage that
    /// the command has come to and its circumstances. Changes nothing; [`Bridge::abandon`] or a later
    /// [`Bridge::poll_outcome`] ends the ticket. Of a ticket that has ended, [`Sent::Answered`].
    pub fn explain(&self, now: Instant, ticket: Ticket, kind: ErrorKind) -> Error {
        let slot =
            self.slots.at(ticket.index()).filter(|_| self.slots.ticket(ticket.index()) == Some(ticket));
        let Some(Slot { state: State::Pending(pending), place, attempts, .. }) = slot else {
            return Error::new(kind, Sent::Answered);
        };
        // What a writer has is sent all the same, also if the kernel has not taken it yet.
        let (stage, sent) = match place {
            Place::InFlight => (self.stage_in_flight(pending.end), Sent::Maybe),
            Place::Queue | Place::Delayed | Place::Held | Place::Strayed => (Stage::Queued, attempts.sent()),
        };
        self.explained(now, &self.scene(now), ticket.index(), Error::new(kind, sent), stage)
    }

    /// Looks at the state that the commands which are about to fail have in common, before it changes with them.
    pub(super) fn look_around(&mut self, now: Instant) {
        self.report.scene = Some(self.scene(now));
    }

    fn scene(&self, now: Instant) -> Scene {
        Scene {
            at: now,
            backlog_commands: self.queue.len() - self.queue_removed,
            backlog_bytes: self.unsent_bytes,
            in_flight_commands: self.conns().map(|conn| conn.in_flight.len()).sum(),
            head_of_line: self.head_of_line(now),
            down: self.down(now),
        }
    }

    /// The error of a command that the policy does not let wait: with the reason why nothing is connected.
    pub(super) fn unavailable(&self, now: Instant) -> Error {
        let scene = self.scene(now);
        Error::new(ErrorKind::Unavailable, Sent::No).with_diagnosis(Diagnosis {
            command: "?".into(),
            stage: Stage::Queued,
            queued: Duration::ZERO,
            staged: Duration::ZERO,
            on_wire: Duration::ZERO,
            backlog_commands: scene.backlog_commands,
            backlog_bytes: scene.backlog_bytes,
            in_flight_commands: scene.in_flight_commands,
            head_of_line: None,
            read_age: None,
            down: scene.down,
            generation: None,
            blame: Blame::NotConnected,
        })
    }

    /// Why nothing is connected; `None` if something is.
    pub(super) fn down(&self, now: Instant) -> Option<Down> {
        (!self.serving().is_up()).then(|| Down {
            since: now.since(self.link.down_since()),
            trouble: self.report.trouble.clone().unwrap_or(Trouble::NeverConnected),
        })
    }

    /// `error` with what is known of the command in slot `index`, which fails at `stage`.
    fn explained(&self, now: Instant, scene: &Scene, index: u32, error: Error, stage: Stage) -> Error {
        let Some(slot) = self.slots.at(index) else { return error };
        let State::Pending(pending) = &slot.state else { return error };
        let age = Duration::from_millis(u64::from(self.clock.millis(now).wrapping_sub(slot.submitted)));
        let mark =
            if stage >= Stage::Staged { self.conn_at(pending.end).write.marks.of(pending.end) } else { None };
        let held = mark.map_or(Duration::ZERO, |mark| now.since(mark.handed_at));
        let on_wire = match mark {
            Some(mark) if stage >= Stage::OnWire => now.since(mark.taken_at.unwrap_or(mark.handed_at)),
            _ => Duration::ZERO,
        };
        let blame = self.blame(now, error.kind(), stage, age, on_wire);
        error.with_diagnosis(Diagnosis {
            command: self.held_name(index).unwrap_or_else(|| self.name_of(pending.end, pending.len)),
            stage,
            queued: age.saturating_sub(held),
            staged: held.saturating_sub(on_wire),
            on_wire,
            backlog_commands: scene.backlog_commands,
            backlog_bytes: scene.backlog_bytes,
            in_flight_commands: scene.in_flight_commands,
            head_of_line: scene.head_of_line.clone(),
            read_age: self.report.read_at.map(|at| now.since(at)),
            down: scene.down.clone(),
            generation: (stage >= Stage::Staged).then(|| self.conn_at(pending.end).generation),
            blame,
        })
    }

    fn blame(&self, now: Instant, kind: &ErrorKind, stage: Stage, age: Duration, on_wire: Duration) -> Blame {
        if self.report.late_at.is_some_and(|at| now.since(at) <= age) {
            return Blame::RuntimeStarved;
        }
        if stage == Stage::Queued && !self.conn.is_up() {
            return Blame::NotConnected;
        }
        if matches!(kind, ErrorKind::Lost(_)) {
            // The cause says it; only silence needs a judge.
            let blame = self.conn.liveness.blame(now);
            return if blame == Blame::NetworkSilent { blame } else { Blame::Unknown };
        }
        let has_spoken_since = self.report.read_at.is_some_and(|at| now.since(at) < on_wire);
        if stage == Stage::OnWire && has_spoken_since {
            return Blame::ServerSlow;
        }
        self.conn.liveness.blame(now)
    }

    /// Notes when this process comes late to its own timer: its times say nothing about others then.
    pub(super) fn note_lateness(&mut self, now: Instant) {
        let watch = if self.conn.is_up() { self.conn.liveness.poll_timeout() } else { None };
        let due = [self.deadline_timeout(), watch].into_iter().flatten().min();
        if due.is_some_and(|due| now.since(due) > self.liveness_config.late_max) {
            self.report.late_at = Some(now);
        }
    }

    /// The command whose reply is due next.
    pub(super) fn head_of_line(&self, now: Instant) -> Option<HeadOfLine> {
        let mut in_flight = self.conns().flat_map(|conn| &conn.in_flight);
        let ticket = in_flight.find_map(|flight| match flight {
            Flight::Command(ticket) => Some(*ticket),
            _ => None,
        })?;
        if self.slots.ticket(ticket.index()) != Some(ticket) {
            return None;
        }
        let slot = self.slots.at(ticket.index())?;
        let State::Pending(pending) = &slot.state else { return None };
        let mark = self.conn_at(pending.end).write.marks.of(pending.end)?;
        let age = now.since(mark.taken_at.unwrap_or(mark.handed_at));
        Some(HeadOfLine { name: self.name_of(pending.end, pending.len), age })
    }

    /// The name of a command that waits for its slot.
    fn held_name(&self, index: u32) -> Option<Box<str>> {
        let bytes = self.held_bytes(index)?;
        Some(command_name(&bytes[..bytes.len().min(NAME_BYTES_MAX as usize)]).into())
    }

    /// The name of the command with these bytes.
    fn name_of(&self, end: u64, len: u32) -> Box<str> {
        let start = end.saturating_sub(u64::from(len));
        let mut head = Vec::new();
        self.log.copy(start..end.min(start + NAME_BYTES_MAX), &mut head);
        command_name(&head).into()
    }
}

/// Enough of a command for its name.
const NAME_BYTES_MAX: u64 = 64;

/// The name in the first bytes of an encoded command; `?` if it is not there. Never more than the name: what follows
/// may be a secret.
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
}

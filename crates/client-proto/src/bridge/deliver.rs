//! Replies to the commands that they answer.
//!
//! Owns the order of replies, the check that they line up, and what a refusal leads to. Does not own decoding.

use std::time::Duration;

use towline_resp::frame::{Frame, FrameError};
use towline_sansio::Instant;

use super::conn::Role;
use super::{Bridge, Event, Flight, Place, Slot, State};
use crate::command::{Flags, Reply};
use crate::error::{Error, ErrorKind, LostCause, ProtocolError, Sent, Stage};
use crate::generation::Generation;
use crate::handshake::ReAuthProgress;
use crate::retry::{Decision, Failure, Question, RetryFlags, Unit, Wait, decide};
use crate::server_error::ServerError;
use crate::slab::Ticket;

/// A command is sent this often at most, its first time included. With waits that double from 10 ms to 500 ms that is
/// longer than a default deadline.
pub(super) const ATTEMPTS_MAX: u8 = 16;

impl<W> Bridge<W> {
    /// Takes the frames that connection `generation` yielded, in order, and notes that bytes came (`frames` may be
    /// empty: a large reply under way is a sign of life too).
    pub fn deliver(&mut self, now: Instant, generation: Generation, frames: &mut Vec<Frame>) {
        let generation = if self.config.guards.retiring { generation } else { self.conn.generation };
        if self.on_conn(generation, |bridge| bridge.deliver_here(now, frames)).is_none() {
            if self.config.guards.generation {
                frames.clear();
                return;
            }
            self.deliver_here(now, frames);
        }
        self.advance(now);
        if self.is_closed && self.is_idle() {
            self.lose(now, LostCause::Killed);
        }
    }

    fn deliver_here(&mut self, now: Instant, frames: &mut Vec<Frame>) {
        self.note_read(now);
        let mut answered_bytes = 0;
        for frame in frames.drain(..) {
            if !self.is_open() {
                break;
            }
            if !self.conn.is_up() {
                self.handshake_frame(now, frame);
                continue;
            }
            if let Some(reply) = self.take_push(now, frame) {
                answered_bytes += self.answer(now, reply);
            }
        }
        self.pump_subscriptions();
        if answered_bytes > 0 {
            self.conn.in_flight_bytes = self.conn.in_flight_bytes.saturating_sub(answered_bytes);
            if let Some(pace) = &mut self.conn.write.pace {
                *pace = pace.saturating_add(answered_bytes);
            }
        }
        self.release();
        self.note_in_flight(now);
    }

    /// The bytes of connection `generation` are no frames.
    pub fn broken(&mut self, now: Instant, generation: Generation, error: FrameError) {
        self.on_conn(generation, |bridge| bridge.desync(now, ProtocolError::Frame(error)));
        self.advance(now);
    }

    /// Gives one reply to whose turn it is. Returns the bytes of the command that it completes.
    fn answer(&mut self, now: Instant, frame: Frame) -> usize {
        let frame = match self.answer_plainly(frame) {
            Ok(len) => return len,
            Err(frame) => frame,
        };
        let Some(flight) = self.conn.in_flight.front_mut() else {
            // Of the connection that was left, these are replies to the first half of a unit whose second half goes
            // on its successor, with the first.
            if self.conn.role != Role::Retiring {
                self.desync(now, ProtocolError::ReplyToNothing);
            }
            return 0;
        };
        match flight {
            Flight::Command(ticket) => {
                let ticket = *ticket;
                return self.answer_command(now, ticket, frame);
            }
            Flight::Expired { replies, len, .. } => {
                *replies -= 1;
                if *replies == 0 {
                    let len = *len as usize;
                    self.conn.in_flight.pop_front();
                    return len;
                }
            }
            Flight::Probe => {
                self.conn.in_flight.pop_front();
            }
            Flight::Reauth => self.reauth_frame(now, frame),
            Flight::Subscriptions => self.subscriptions_frame(now, &frame),
            Flight::Fence { successor } => {
                let successor = *successor;
                self.conn.in_flight.pop_front();
                self.on_fence(successor);
            }
            Flight::Marker => {
                self.conn.in_flight.pop_front();
                self.on_marker_reply(&frame);
            }
        }
        0
    }

    /// The usual case in one look: one reply, no error, to a command that was sent and whose caller waits. Anything
    /// else is handed back.
    #[inline]
    fn answer_plainly(&mut self, frame: Frame) -> Result<usize, Frame> {
        let Some(Flight::Command(ticket)) = self.conn.in_flight.front() else { return Err(frame) };
        let (taken, is_out) = (self.conn.write.taken(), self.conn.write.is_out());
        let is_plain = self.partial.is_empty() && !matches!(frame, Frame::Error(_) | Frame::BlobError(_));
        let Some(slot) = self.slots.get_mut(*ticket) else { return Err(frame) };
        let State::Pending(pending) = &mut slot.state else { return Err(frame) };
        let is_sent = pending.end <= taken || is_out;
        if !is_plain || !is_sent || pending.replies != 1 || slot.flags.contains(Flags::ORPHAN) {
            return Err(frame);
        }
        let len = pending.len as usize;
        self.wakes.extend(pending.waiter.take());
        slot.state = State::Done(Ok(Reply::One(frame)));
        self.conn.in_flight.pop_front();
        self.report.counters.answered += 1;
        Ok(len)
    }

    /// One reply to new credentials.
    fn reauth_frame(&mut self, now: Instant, frame: Frame) {
        let progress = self.conn.reauth.as_mut().map(|reauth| reauth.on_frame(frame));
        match progress {
            Some(ReAuthProgress::NeedMore) => return,
            Some(ReAuthProgress::Done) | None => {}
            Some(ReAuthProgress::Refused(error)) => {
                self.report.event(Event::ReauthRefused { generation: self.conn.generation, error });
            }
            Some(ReAuthProgress::Broken(error)) => {
                self.report.event(Event::ReauthRefused { generation: self.conn.generation, error });
                self.desync(now, ProtocolError::Misaligned);
                return;
            }
        }
        self.conn.reauth = None;
        self.conn.in_flight.pop_front();
    }

    fn answer_command(&mut self, now: Instant, ticket: Ticket, frame: Frame) -> usize {
        let index = ticket.index();
        let is_ours = self.slots.ticket(index) == Some(ticket) || !self.config.guards.generation;
        let taken = self.conn.write.taken();
        let is_out = self.conn.write.is_out();
        let Some(Slot { state: State::Pending(pending), flags, .. }) = self.slots.at_mut(index) else {
            self.conn.in_flight.pop_front();
            return 0;
        };
        // Of a unit, all replies but the last may come before its last byte has left.
        let cause = if pending.replies > 1 { pending.end - u64::from(pending.len) + 1 } else { pending.end };
        if !is_ours || (cause > taken && !is_out) {
            // A reply to a command that did not leave: the replies do not belong to our commands.
            self.desync(now, ProtocolError::Misaligned);
            return 0;
        }
        let len = pending.len as usize;
        if !self.config.guards.orphans
            && flags.contains(Flags::ORPHAN)
            && !flags.contains(Flags::FIRE_AND_FORGET)
        {
            self.conn.in_flight.pop_front();
            self.slots.remove(index);
            self.answer(now, frame);
            return len;
        }
        if pending.replies > 1 || self.partial.contains_key(&index) {
            pending.replies -= 1;
            let is_last = pending.replies == 0;
            let frames = self.partial.entry(index).or_default();
            frames.push(frame);
            if !is_last {
                return 0;
            }
            let frames = std::mem::take(frames);
            self.conn.in_flight.pop_front();
            if self.routed.is_some() {
                return self.answer_unit(now, index, frames, len);
            }
            self.complete(now, index, Reply::Many(frames));
            return len;
        }
        self.conn.in_flight.pop_front();
        if let Frame::Error(text) | Frame::BlobError(text) = &frame {
            let error = ServerError::from_bytes(text);
            return self.refused(now, index, error, len);
        }
        self.complete(now, index, Reply::One(frame));
        len
    }

    #[inline]
    pub(super) fn complete(&mut self, now: Instant, index: u32, reply: Reply) {
        let _ = now;
        self.report.counters.answered += 1;
        self.finish(index, Ok(reply));
    }

    /// The server answered with an error: the answer, or a refusal after which the command is sent again.
    pub(super) fn refused(&mut self, now: Instant, index: u32, error: ServerError, len: usize) -> usize {
        if self.routed.is_some() && self.send_elsewhere(now, index, &error) {
            return len;
        }
        let failure = Failure::Answered(error.class());
        let Some(Decision::RetryAfter(wait)) = self.decide(now, index, failure) else {
            self.report.counters.answered += 1;
            self.finish_refused(index, error);
            return len;
        };
        let Some(slot) = self.slots.at_mut(index) else { return len };
        let State::Pending(pending) = &mut slot.state else { return len };
        let range = pending.end - u64::from(pending.len)..pending.end;
        let mut bytes = Vec::new();
        let is_wanted = !slot.is_orphan() || slot.flags.contains(Flags::FIRE_AND_FORGET);
        let is_copied = self.log.copy(range, &mut bytes);
        if !is_copied && is_wanted && self.log.is_out() {
            slot.place = Place::Delayed;
            self.postponed.extend(self.slots.ticket(index).map(|ticket| (ticket, error)));
            return len;
        }
        if self.is_closed || !is_wanted || !is_copied || !self.budget.take(now, self.report.counters.answered)
        {
            self.finish_refused(index, error);
            return len;
        }
        slot.attempts.add_refused();
        let attempts = slot.attempts.count();
        self.report.counters.refused_retried += 1;
        let due = now + self.refused_wait(attempts);
        self.delay(index, due, bytes);
        if wait == Wait::Reconnect && self.conn.role == Role::Serving {
            self.lose(now, LostCause::Killed);
        }
        len
    }

    /// Gives the server's error to the caller. A refusal proves that this attempt did not run; it says nothing about
    /// an earlier one that was lost.
    pub(super) fn finish_refused(&mut self, index: u32, error: ServerError) {
        let may_have_run = self.slots.at(index).is_some_and(|slot| slot.attempts.sent() == Sent::Maybe);
        let sent = if may_have_run && error.class().is_not_executed() { Sent::Maybe } else { Sent::Answered };
        self.finish(index, Err(Error::new(ErrorKind::Server(error), sent)));
    }

    /// A writer has given bytes back: what was refused meanwhile can be kept for later.
    pub(super) fn resume_postponed(&mut self, now: Instant) {
        for (ticket, error) in std::mem::take(&mut self.postponed) {
            if self.slots.ticket(ticket.index()) == Some(ticket) {
                self.refused(now, ticket.index(), error, 0);
            }
        }
    }

    /// Full jitter below a ceiling that doubles.
    pub(super) fn refused_wait(&mut self, attempts: u8) -> Duration {
        let (first, longest) = self.config.refused_wait;
        let ceiling = first.saturating_mul(1 << attempts.saturating_sub(1).min(16)).min(longest);
        let nanos = u64::try_from(ceiling.as_nanos()).unwrap_or(u64::MAX);
        // At least half: the server said that it needs time.
        Duration::from_nanos(nanos / 2 + self.prng.below(nanos / 2 + 1))
    }

    /// The retry decision for one command.
    pub(super) fn decide(&mut self, now: Instant, index: u32, failure: Failure) -> Option<Decision> {
        let answered = self.report.counters.answered;
        let has_budget = self.budget.has_token(now, answered);
        let slot = self.slots.at(index)?;
        let is_transaction = slot.flags.contains(Flags::TRANSACTION);
        let decision = decide(&Question {
            effect: slot.effect,
            unit: if is_transaction { Unit::Transaction } else { Unit::Command },
            failure,
            flags: RetryFlags {
                no_retry: slot.flags.contains(Flags::NO_RETRY),
                allow_idempotent: slot.flags.contains(Flags::ALLOW_RETRY),
                reply_not_needed: slot.flags.contains(Flags::FIRE_AND_FORGET),
            },
            attempts_left: u32::from(ATTEMPTS_MAX.saturating_sub(slot.attempts.count() + 1)),
            has_budget,
        });
        Some(decision)
    }

    /// Replies do not line up with commands: nothing that this connection says can be trusted.
    pub(super) fn desync(&mut self, now: Instant, error: ProtocolError) {
        self.report.counters.protocol_errors += 1;
        self.report.last_protocol_error = Some(error);
        self.lose(now, LostCause::Protocol);
    }

    /// What the stage of a command in flight is.
    pub(super) fn stage_in_flight(&self, end: u64) -> Stage {
        if !self.config.guards.byte_accounting {
            return Stage::Staged;
        }
        let conn = if self.others.is_empty() { &self.conn } else { self.conn_at(end) };
        if end <= conn.write.taken() { Stage::OnWire } else { Stage::Staged }
    }
}

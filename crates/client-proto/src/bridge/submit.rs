//! How commands come in.
//!
//! Owns who is let in, and what is noted down about a command. Does not own the line of those who wait for room
//! ([`super::room`]) nor the policy.

use towline_sansio::Instant;

use super::clock::TIME_MAX;
use super::{Attempts, Bridge, Flush, Pending, Place, Slot, State};
use crate::command::{Encoder, Flags, Order};
use crate::error::{Error, ErrorKind, Sent};
use crate::policy::{Situation, Verdict};
use crate::slab::Ticket;

/// The longest command that can be accounted for. Servers take half a gigabyte for one argument.
const COMMAND_BYTES_MAX: usize = u32::MAX as usize - 1024;

/// What [`Bridge::submit`] returns: the ticket, and what the caller should do about writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Submitted {
    /// The claim on the outcome. `None` for fire-and-forget commands.
    pub ticket: Option<Ticket>,
    /// Who should write.
    pub flush: Flush,
}

impl<W> Bridge<W> {
    /// Accepts a command whose bytes `encode` writes: exactly `order.bytes` of them.
    ///
    /// # Errors
    /// Nothing was sent in any of these cases. [`ErrorKind::Closed`]; [`ErrorKind::Unavailable`] by policy;
    /// [`ErrorKind::BacklogFull`]: wait for room ([`Bridge::wait_for_room`]) or give up; [`ErrorKind::Deadline`] if
    /// it has passed already.
    pub fn submit(
        &mut self,
        now: Instant,
        order: &Order,
        encode: impl FnOnce(&mut Encoder<'_>),
    ) -> Result<Submitted, Error> {
        self.admit(now, order)?;
        Ok(self.accept(now, order, None, encode))
    }

    /// [`Bridge::submit`] for a caller that is going to wait anyway and leaves its `waiter` at once.
    ///
    /// # Errors
    /// As [`Bridge::submit`].
    #[inline]
    pub fn submit_waiting(
        &mut self,
        now: Instant,
        order: &Order,
        waiter: W,
        encode: impl FnOnce(&mut Encoder<'_>),
    ) -> Result<Submitted, Error> {
        self.admit(now, order)?;
        Ok(self.accept(now, order, Some(waiter), encode))
    }

    /// Accepts the further commands of a pipeline, whose first was submitted with the bytes of them all in its
    /// `order.bytes`: what was admitted together stays together.
    pub fn submit_admitted(
        &mut self,
        now: Instant,
        order: &Order,
        encode: impl FnOnce(&mut Encoder<'_>),
    ) -> Submitted {
        self.accept(now, order, None, encode)
    }

    #[inline]
    pub(super) fn accept(
        &mut self,
        now: Instant,
        order: &Order,
        waiter: Option<W>,
        encode: impl FnOnce(&mut Encoder<'_>),
    ) -> Submitted {
        let before = self.log.end();
        encode(&mut Encoder(&mut self.log));
        let end = self.log.end();
        let len = u32::try_from(end - before).expect("invariant: longer commands are refused");
        let is_endless = order.deadline.since(now) > TIME_MAX;
        let deadline = self.clock.millis_up(order.deadline);
        if !is_endless {
            self.clock.arm(order.deadline);
        }
        self.watch_age(now);
        let mut flags = order.flags;
        if is_endless {
            flags = flags | Flags::ENDLESS;
        }
        if flags.contains(Flags::FIRE_AND_FORGET) {
            flags = flags | Flags::ORPHAN;
        }
        let ticket = self.slots.insert(Slot {
            effect: order.effect,
            flags,
            place: Place::Queue,
            attempts: Attempts::default(),
            generation: 0,
            submitted: self.clock.millis(now),
            deadline,
            state: State::Pending(Pending { end, waiter, len, replies: order.replies.max(1) }),
        });
        if let Some(routed) = &mut self.routed {
            // Its number may have been that of a command with a slot.
            routed.untag(ticket.index());
        }
        self.queue.push_back(ticket.index());
        self.unsent_bytes += len as usize;
        self.report.counters.submitted += 1;
        let is_watched = !order.flags.contains(Flags::FIRE_AND_FORGET);
        Submitted { ticket: is_watched.then_some(ticket), flush: self.flush_advice() }
    }

    /// Whether the command may come in. Room that it was promised is used up, or given on if it may not.
    #[inline]
    pub(super) fn admit(&mut self, now: Instant, order: &Order) -> Result<(), Error> {
        let is_promised = self.room.claim(order.room);
        let admitted = self.judge(now, order, is_promised);
        if is_promised && admitted.is_err() {
            self.grant_room();
        }
        admitted
    }

    #[inline]
    fn judge(&mut self, now: Instant, order: &Order, is_promised: bool) -> Result<(), Error> {
        let refuse = |kind| Err(Error::new(kind, Sent::No));
        if self.is_closed {
            return refuse(ErrorKind::Closed);
        }
        if order.deadline <= now {
            return refuse(ErrorKind::Deadline);
        }
        if order.bytes > COMMAND_BYTES_MAX {
            return Err(Error::misuse("a command is longer than 4 GiB, which no server takes"));
        }
        if !is_promised && (self.room.has_waiters() || !self.has_room(order.bytes)) {
            return refuse(ErrorKind::BacklogFull { bytes_max: self.config.backlog_bytes_max });
        }
        if self.conn.is_up() {
            return Ok(());
        }
        let situation = self.situation(now, order);
        match self.policy.admit(&situation) {
            Verdict::Queue | Verdict::Elsewhere => Ok(()),
            Verdict::Fail => {
                self.report.counters.refused += 1;
                Err(self.unavailable(now))
            }
        }
    }

    /// Whether so many bytes more may wait. A single command that is larger than the bound finds an empty backlog.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        let promised = if self.config.guards.promised_room { self.room.reserved() } else { 0 };
        let taken = self.unsent_bytes + promised;
        taken == 0 || taken + bytes <= self.config.backlog_bytes_max
    }

    pub(super) fn situation(&self, now: Instant, order: &Order) -> Situation {
        Situation {
            outage: self.link.outage(),
            since: now.since(self.link.down_since()),
            backlog_bytes: self.unsent_bytes,
            backlog_commands: self.queue.len() - self.queue_removed,
            command_bytes: order.bytes,
            is_movable: !order.flags.contains(Flags::PINNED),
        }
    }
}

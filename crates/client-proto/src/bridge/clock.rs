//! Deadlines, waits, and the hold of a planned handoff.
//!
//! Owns when something is due. There is no timer per command: a command costs no timer work unless it is still
//! pending when the earliest deadline that was ever submitted comes up. Then one scan over what is pending fails what
//! is due and finds the next earliest. Replies usually come within milliseconds and deadlines are seconds, so a scan
//! runs every few seconds; while commands do expire it runs once per tick at most.

use std::time::Duration;

use towline_sansio::Instant;

use super::{Bridge, Flight, Millis, Place, Slot, State};
use crate::command::Flags;
use crate::error::{ErrorKind, Sent, Stage};

const NANOS_PER_MILLI: u64 = 1_000_000;

/// Times further away than this count as none: wrapped times could not be told apart.
pub(super) const TIME_MAX: Duration = Duration::from_secs(24 * 24 * 3600);

/// A refused command that waits to be sent again; it has its own copy of its bytes.
#[derive(Debug)]
pub(super) struct Delayed {
    pub(super) index: u32,
    due: Instant,
    pub(super) bytes: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Clock {
    /// When the next scan for deadlines is due; `None`: nothing pending has one.
    scan_at: Option<Instant>,
    scanned_at: Instant,
    /// Since when a planned handoff holds commands back, and for how long that may stretch deadlines.
    hold: Option<(Instant, Duration)>,
}

impl Clock {
    pub(super) const fn new(now: Instant) -> Self {
        Self { scan_at: None, scanned_at: now, hold: None }
    }

    pub(super) const fn millis(&self, at: Instant) -> Millis {
        (at.nanos() / NANOS_PER_MILLI) as Millis
    }

    /// Rounded up: a deadline is never early.
    pub(super) const fn millis_up(&self, at: Instant) -> Millis {
        at.nanos().div_ceil(NANOS_PER_MILLI) as Millis
    }

    /// A pending command has this deadline.
    #[inline]
    pub(super) fn arm(&mut self, deadline: Instant) {
        if self.scan_at.is_none_or(|at| deadline < at) {
            self.scan_at = Some(deadline);
        }
    }

    fn next_scan(&self, tick: Duration) -> Option<Instant> {
        self.scan_at.map(|at| at.max(self.scanned_at + tick))
    }
}

/// Milliseconds from `now` until `then`; negative if it has passed.
const fn until(now: Millis, then: Millis) -> i32 {
    then.wrapping_sub(now).cast_signed()
}

impl<W> Bridge<W> {
    /// When [`Bridge::handle_timeout`] should be called next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let delayed =
            if self.conn.is_up() { self.delayed.iter().map(|delayed| delayed.due).min() } else { None };
        let pubsub = self.pubsub.as_ref().and_then(|pubsub| pubsub.poll_timeout());
        let maintenance = self.maintenance_timeout();
        let routed = self.routed_timeout();
        [self.deadline_timeout(), delayed, pubsub, self.link_timeout(), maintenance, routed]
            .into_iter()
            .flatten()
            .min()
    }

    /// When deadlines need to be looked at.
    pub(super) fn deadline_timeout(&self) -> Option<Instant> {
        self.clock.next_scan(self.config.tick)
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.note_lateness(now);
        // The end of a window is a reason to look at deadlines.
        self.handle_windows_timeout(now);
        self.resend_delayed(now);
        if self.deadline_timeout().is_some_and(|at| at <= now) {
            self.scan(now);
        }
        self.handle_link_timeout(now);
        self.handle_pubsub_timeout(now);
        self.review_plan(now);
        self.advance(now);
    }

    /// A planned handoff begins to hold commands back: deadlines that are not hard stretch by the time of the hold,
    /// `cap` at most.
    pub fn begin_hold(&mut self, now: Instant, cap: Duration) {
        if self.clock.hold.is_none() {
            self.clock.hold = Some((now, cap));
        }
    }

    /// The hold is over.
    pub fn end_hold(&mut self, now: Instant) {
        let Some((since, cap)) = self.clock.hold.take() else { return };
        let stretch = now.since(since).min(cap);
        let stretch_ms = u32::try_from(stretch.as_millis()).unwrap_or(u32::MAX);
        let mut indices: Vec<u32> = self.queue.iter().copied().collect();
        indices.extend(self.delayed.iter().map(|delayed| delayed.index));
        indices.extend(self.held_indices());
        let in_flight = self.conns().flat_map(|conn| &conn.in_flight);
        indices.extend(in_flight.filter_map(|flight| match flight {
            Flight::Command(ticket) => Some(ticket.index()),
            _ => None,
        }));
        for index in indices {
            if let Some(slot) = self.slots.at_mut(index)
                && !slot.flags.contains(Flags::HARD_DEADLINE)
            {
                slot.deadline = slot.deadline.wrapping_add(stretch_ms);
            }
        }
    }

    /// Since when a planned handoff has held commands back, and by how much that may stretch deadlines; `None`: none does.
    pub const fn held_since(&self) -> Option<(Instant, Duration)> {
        self.clock.hold
    }

    /// The policy's bound on the age of what waits, unless it is further away than wrapped times can tell.
    fn age_max(&self) -> Option<Duration> {
        self.policy.age_max().filter(|age| *age <= TIME_MAX)
    }

    /// Something waits unsent as of `now` at the latest: the policy's bound on its age has to be looked at in time.
    #[inline]
    pub(super) fn watch_age(&mut self, since: Instant) {
        if let Some(age_max) = self.age_max() {
            self.clock.arm(since + age_max);
        }
    }

    /// Older work waits unsent again: whether it is too old is looked at within a tick.
    pub(super) fn review_age(&mut self, now: Instant) {
        if self.age_max().is_some() {
            self.clock.arm(now + self.config.tick);
        }
    }

    /// Fails what is past its deadline, whatever was scheduled: nothing dead is sent.
    pub(super) fn cull(&mut self, now: Instant) {
        self.scan(now);
    }

    /// Fails what is past its deadline and finds the next one.
    fn scan(&mut self, now: Instant) {
        self.look_around(now);
        let now_ms = self.clock.millis(now);
        let age_max = self.age_max().map(|age| u32::try_from(age.as_millis()).unwrap_or(u32::MAX));
        let floor = self.moves.floor(now).map(|floor| u32::try_from(floor.as_millis()).unwrap_or(u32::MAX));
        let mut scan = Scan { now_ms, hold_ms: self.hold_ms(now), floor, age_max, next: i32::MAX };
        self.scan_queue(now, &mut scan);
        for generation in self.generations() {
            self.on_conn(generation, |bridge| bridge.scan_in_flight(now, &mut scan));
        }
        self.scan_delayed(now, &mut scan);
        self.scan_held(now, &mut scan);
        self.scan_postponed(now, &mut scan);
        self.clock.scanned_at = now;
        self.clock.scan_at = (scan.next < i32::MAX)
            .then(|| now + Duration::from_millis(u64::from(scan.next.max(0).cast_unsigned())));
        self.release();
        self.grant_room();
    }

    /// By how much a hold that is under way has stretched soft deadlines so far.
    fn hold_ms(&self, now: Instant) -> u32 {
        self.clock.hold.map_or(0, |(since, cap)| {
            u32::try_from(now.since(since).min(cap).as_millis()).unwrap_or(u32::MAX)
        })
    }

    fn scan_queue(&mut self, now: Instant, scan: &mut Scan) {
        let mut due = Vec::new();
        for index in &self.queue {
            if let Some(slot) = self.slots.at(*index)
                && let Some(kind) = scan.judge(slot, true)
            {
                due.push((*index, kind));
            }
        }
        if due.is_empty() || !self.config.guards.culling {
            return;
        }
        // They leave the queue afterwards: their errors tell how long it was.
        for (index, kind) in &due {
            self.report.counters.expired += 1;
            self.fail_queued(now, *index, kind.clone());
        }
        let mut ended = due.iter().map(|(index, _)| *index).peekable();
        let (mut at, old, mut old_ended) = (0, self.queue_old, 0);
        self.queue.retain(|index| {
            let is_live = ended.next_if_eq(index).is_none();
            old_ended += usize::from(!is_live && at < old);
            at += 1;
            is_live
        });
        self.queue_old -= old_ended;
        self.tidy_queue();
        self.compact();
    }

    fn scan_in_flight(&mut self, now: Instant, scan: &mut Scan) {
        for at in 0..self.conn.in_flight.len() {
            let Flight::Command(ticket) = self.conn.in_flight[at] else { continue };
            let index = ticket.index();
            let Some(slot) = self.slots.at(index) else { continue };
            let Some(kind) = scan.judge(slot, false) else { continue };
            let State::Pending(pending) = &slot.state else { continue };
            let (replies, len, stage) = (pending.replies, pending.len, self.stage_in_flight(pending.end));
            self.conn.in_flight[at] = Flight::Expired { replies, len, end: pending.end as u32 };
            self.report.counters.expired += 1;
            // A writer has its bytes, or the kernel has: they will not be called back.
            self.fail_as(now, index, kind, stage, Sent::Maybe);
        }
        if !self.config.guards.expired_place {
            self.conn.in_flight.retain(|flight| !matches!(flight, Flight::Expired { .. }));
        }
    }

    fn scan_delayed(&mut self, now: Instant, scan: &mut Scan) {
        let mut due = Vec::new();
        for delayed in &self.delayed {
            if let Some(slot) = self.slots.at(delayed.index)
                && scan.judge(slot, false).is_some()
            {
                due.push(delayed.index);
            }
        }
        if due.is_empty() {
            return;
        }
        self.delayed.retain(|delayed| !due.contains(&delayed.index));
        for index in due {
            self.report.counters.expired += 1;
            self.fail(now, index, ErrorKind::Deadline, Stage::Queued);
        }
    }

    /// The same of commands that wait for their slots.
    fn scan_held(&mut self, now: Instant, scan: &mut Scan) {
        let due = |index: u32| Some((index, scan.judge(self.slots.at(index)?, true)?));
        let ended: Vec<_> = self.held_indices().into_iter().filter_map(due).collect();
        self.report.counters.expired += ended.len() as u64;
        self.fail_held(now, &ended);
    }

    /// The same of refused commands whose bytes a writer still has.
    fn scan_postponed(&mut self, now: Instant, scan: &mut Scan) {
        let mut due = Vec::new();
        for (ticket, _) in &self.postponed {
            if let Some(slot) = self.slots.get_mut(*ticket)
                && scan.judge(slot, false).is_some()
            {
                due.push(*ticket);
            }
        }
        self.postponed.retain(|(ticket, _)| !due.contains(ticket));
        for ticket in due {
            self.report.counters.expired += 1;
            self.fail(now, ticket.index(), ErrorKind::Deadline, Stage::Queued);
        }
    }

    /// Keeps a refused command for later.
    pub(super) fn delay(&mut self, index: u32, due: Instant, bytes: Vec<u8>) {
        if let Some(slot) = self.slots.at_mut(index) {
            slot.place = Place::Delayed;
            self.delayed.push(Delayed { index, due, bytes });
        }
    }

    /// Puts refused commands whose wait is over at the end of the queue.
    fn resend_delayed(&mut self, now: Instant) {
        if !self.conn.is_up() {
            return;
        }
        let mut at = 0;
        while at < self.delayed.len() {
            if self.delayed[at].due > now {
                at += 1;
                continue;
            }
            let delayed = self.delayed.remove(at);
            let len = delayed.bytes.len();
            self.log.append(len, |out| out.extend_from_slice(&delayed.bytes));
            let end = self.log.end();
            if let Some(slot) = self.slots.at_mut(delayed.index) {
                slot.place = Place::Queue;
                if let State::Pending(pending) = &mut slot.state {
                    pending.end = end;
                }
                self.queue.push_back(delayed.index);
                self.unsent_bytes += len;
            }
            self.review_age(now);
        }
    }
}

/// One pass over pending commands.
struct Scan {
    now_ms: Millis,
    hold_ms: u32,
    /// Commands without a hard deadline have this long at least.
    floor: Option<u32>,
    age_max: Option<u32>,
    /// Milliseconds until the earliest deadline that has not passed.
    next: i32,
}

impl Scan {
    /// Why the command ends now, if it does.
    fn judge<W>(&mut self, slot: &Slot<W>, is_queued: bool) -> Option<ErrorKind> {
        if !matches!(slot.state, State::Pending(_)) {
            return None;
        }
        if !slot.is_endless() {
            let is_hard = slot.flags.contains(Flags::HARD_DEADLINE);
            let hold = if is_hard { 0 } else { self.hold_ms };
            let mut left = until(self.now_ms, slot.deadline.wrapping_add(hold));
            if let Some(floor) = self.floor.filter(|_| !is_hard) {
                left = left.max(until(self.now_ms, slot.submitted.wrapping_add(floor)));
            }
            if left <= 0 {
                return Some(ErrorKind::Deadline);
            }
            self.next = self.next.min(left);
        }
        if is_queued && let Some(age_max) = self.age_max {
            let left = until(self.now_ms, slot.submitted.wrapping_add(age_max));
            if left <= 0 {
                return Some(ErrorKind::BacklogAge);
            }
            self.next = self.next.min(left);
        }
        None
    }
}

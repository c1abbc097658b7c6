//! From the queue to the kernel.
//!
//! Owns who writes, how much at once, and how far the kernel has come. Does not own the socket.

use std::collections::VecDeque;

use towline_sansio::Instant;

use super::conn::Role;
use super::marks::Marks;
use super::{Bridge, Flight, Place, State};
use crate::buffer::Part;
use crate::generation::Generation;

/// Most bytes in one batch: what a socket buffer takes at once. A larger batch would only delay the reading.
const BATCH_BYTES_MAX: usize = 256 * 1024;

/// Fewer commands than this are not worth a system call of their own while more are coming.
const SPLIT_MIN: usize = 24;

/// With this many commands in flight at most, usually, a caller writes by himself: the owner would be woken to write the
/// same one command.
const INLINE_CONCURRENCY_MAX: usize = 4;

/// Who should write what was just submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flush {
    /// Nobody: there is no connection yet, or a writer is at work and will see it.
    Nobody,
    /// The owner of the socket, once it runs; wake it if it sleeps.
    Owner,
    /// The caller itself, at once: the connection is idle and callers are few, or so much waits that sending the
    /// first half now lets the server work while the second half is still being submitted.
    Caller,
}

/// Bytes for the socket, in order.
#[derive(Debug)]
pub struct Batch {
    generation: Generation,
    parts: VecDeque<Part>,
    bytes: usize,
}

impl Batch {
    /// The connection they are meant for.
    pub const fn generation(&self) -> Generation {
        self.generation
    }

    /// How many bytes are left in it.
    pub const fn len(&self) -> usize {
        self.bytes
    }

    /// Whether nothing is left.
    pub const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The pieces left, for a vectored write.
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> {
        self.parts.iter().map(Part::bytes)
    }
}

/// The state of writing.
#[derive(Debug, Default)]
pub(super) struct Write {
    /// Tier 1: bytes of the connection itself, and whose replies they cause.
    urgent: Vec<u8>,
    urgent_flights: Vec<Flight>,
    /// What the last writer left of its batch.
    rest: VecDeque<Part>,
    rest_bytes: usize,
    /// A writer has a batch.
    is_out: bool,
    /// Everything in the log before this position was taken by the kernel, on this connection.
    taken: u64,
    /// Everything in the log before this position was handed to a writer, on this connection.
    handed: u64,
    /// When the batches left that have unanswered commands.
    pub(super) marks: Marks,
    /// How many commands are in flight when a batch is made up, smoothed; times 8.
    concurrency: usize,
    /// Bytes in flight allowed while a backlog is flushed; `None`: no such limit.
    pub(super) pace: Option<usize>,
}

impl Write {
    pub(super) fn is_busy(&self) -> bool {
        self.is_out || !self.rest.is_empty()
    }

    pub(super) const fn is_out(&self) -> bool {
        self.is_out
    }

    pub(super) const fn taken(&self) -> u64 {
        self.taken
    }

    pub(super) const fn handed(&self) -> u64 {
        self.handed
    }

    /// A new connection begins at `position`: nothing after it was taken.
    pub(super) fn restart_at(&mut self, position: u64) {
        self.taken = position;
        self.handed = position;
        self.marks.clear();
    }

    /// Whether a writer would get bytes of the connection itself.
    fn has_something(&self) -> bool {
        !self.is_out && (!self.rest.is_empty() || !self.urgent.is_empty())
    }

    /// Whether bytes of the connection itself were handed to a writer and not taken.
    pub(super) fn has_unsent_urgent(&self) -> bool {
        self.rest.iter().any(|part| !part.has_position())
    }

    /// The successor of a connection that was written to in this way is written to likewise.
    pub(super) const fn keep_pace_of(&mut self, old: &Self) {
        self.concurrency = old.concurrency;
    }

    pub(super) fn has_urgent(&self) -> bool {
        !self.urgent.is_empty()
    }

    /// Bytes of the connection itself, to leave before everything else. `flights`: whose replies they cause.
    pub(super) fn push_urgent(&mut self, bytes: &[u8], flights: impl IntoIterator<Item = Flight>) {
        self.urgent.extend_from_slice(bytes);
        self.urgent_flights.extend(flights);
    }

    /// As [`Write::push_urgent`], before all else that is urgent.
    pub(super) fn push_urgent_first(&mut self, bytes: &[u8], flight: Flight) {
        self.urgent.splice(0..0, bytes.iter().copied());
        self.urgent_flights.insert(0, flight);
    }

    /// Forgets what was meant for a connection that is gone; returns its parts for the log.
    pub(super) fn reset(&mut self) -> VecDeque<Part> {
        self.urgent.clear();
        self.urgent_flights.clear();
        self.rest_bytes = 0;
        self.pace = None;
        std::mem::take(&mut self.rest)
    }
}

impl<W> Bridge<W> {
    /// Whether connection `generation` is one of those that there are.
    fn is_alive(&self, generation: Generation) -> bool {
        self.conns().any(|conn| conn.generation == generation)
    }

    /// Who should write now.
    #[inline]
    pub(super) fn flush_advice(&self) -> Flush {
        if self.conn.write.is_out || !self.conn.is_up() || self.is_held() {
            return Flush::Nobody;
        }
        let queued = self.queue.len();
        let concurrency = self.conn.write.concurrency / 8;
        if queued == 1 && concurrency <= INLINE_CONCURRENCY_MAX {
            return Flush::Caller;
        }
        if queued >= SPLIT_MIN && queued >= concurrency / 2 && queued * 2 <= concurrency + 2 {
            return Flush::Caller;
        }
        Flush::Owner
    }

    /// Whether a writer of connection `generation` would get something.
    pub fn wants_write(&self, generation: Generation) -> bool {
        if generation == self.conn.generation {
            return self.wants_write_here();
        }
        let successor = self.others.successor.as_deref();
        successor
            .is_some_and(|conn| conn.generation == generation && conn.is_open() && conn.write.has_something())
    }

    fn wants_write_here(&self) -> bool {
        !self.conn.write.is_out
            && self.is_open()
            && self.conn.role != Role::Retiring
            && (!self.conn.write.rest.is_empty()
                || !self.conn.write.urgent.is_empty()
                || self.is_reauth_due()
                || (self.may_send_commands() && self.has_window() && self.has_sendable()))
    }

    /// Whether a command in the queue may be sent, its window apart.
    fn has_sendable(&self) -> bool {
        let is_fresh = self.queue.len() > self.queue_old;
        self.queue.len() > self.queue_removed && (is_fresh || self.old_window() > 0)
    }

    /// How many bytes of what waited through an outage may be sent between fresh commands. At least one command's,
    /// when nothing is in flight.
    fn old_window(&self) -> usize {
        if self.parks_by_key() {
            return 0;
        }
        if self.conn.in_flight.is_empty() {
            return self.config.pace_bytes_initial.max(1);
        }
        self.config.pace_bytes_initial.saturating_sub(self.conn.in_flight_bytes)
    }

    /// Lets some of what waited through an outage in behind the fresh commands, by moving its bytes to the end of
    /// the log: positions go on ascending in the order of sending. Returns what has to go on waiting.
    fn let_old_in(&mut self) -> VecDeque<u32> {
        let fresh = self.queue.split_off(self.queue_old);
        let mut old = std::mem::replace(&mut self.queue, fresh);
        let mut room = self.old_window();
        while room > 0
            && let Some(index) = old.pop_front()
        {
            self.queue.push_back(index);
            let Some(State::Pending(pending)) = self.slots.at(index).map(|slot| &slot.state) else {
                continue;
            };
            let len = pending.len as usize;
            self.move_to_end(index);
            room = room.saturating_sub(len);
        }
        old
    }

    /// Whether waiting for one turn of the other tasks would make the next batch much larger: fewer commands wait
    /// than usually do at once. Without it a runtime that runs a woken task next would send batches of one.
    pub fn expects_more(&self) -> bool {
        let usual = self.conn.write.concurrency / 8;
        usual > INLINE_CONCURRENCY_MAX
            && self.conn.write.rest.is_empty()
            && self.conn.write.urgent.is_empty()
            && self.queue.len() < usual / 2
    }

    fn may_send_commands(&self) -> bool {
        if self.conn.role != Role::Serving || self.is_held() {
            return false;
        }
        (self.conn.is_up() && !self.wants_reauth) || !self.config.guards.tier_order
    }

    fn has_window(&self) -> bool {
        let bytes_max = self.config.in_flight_bytes_max.min(self.conn.write.pace.unwrap_or(usize::MAX));
        self.conn.in_flight.is_empty()
            || !self.config.guards.window
            || (self.conn.in_flight_bytes < bytes_max
                && self.conn.in_flight.len() < self.config.in_flight_max)
    }

    /// Takes the bytes to write next on connection `generation`; `None` if there are none or a writer has some already.
    /// The commands in it count as handed out from now on. Must be followed by [`Bridge::wrote`].
    pub fn take_write(&mut self, now: Instant, generation: Generation) -> Option<Batch> {
        self.on_conn(generation, |bridge| bridge.take_write_here(now)).flatten()
    }

    fn take_write_here(&mut self, now: Instant) -> Option<Batch> {
        self.begin_reauth();
        if !self.wants_write_here() {
            return None;
        }
        let mut parts = std::mem::take(&mut self.conn.write.rest);
        let mut bytes = std::mem::take(&mut self.conn.write.rest_bytes);
        if parts.is_empty() {
            if !self.conn.write.urgent.is_empty() {
                let urgent = std::mem::take(&mut self.conn.write.urgent);
                bytes += urgent.len();
                parts.push_back(Part::urgent(urgent));
                self.conn.in_flight.extend(self.conn.write.urgent_flights.drain(..));
            }
            if self.may_send_commands() {
                bytes += self.fill(now, &mut parts);
            }
        }
        if parts.is_empty() {
            return None;
        }
        let in_flight = self.conn.in_flight.len();
        self.conn.write.concurrency =
            self.conn.write.concurrency - self.conn.write.concurrency / 8 + in_flight;
        self.conn.write.is_out = true;
        self.report.counters.writes += 1;
        self.moves.busy_at = now;
        self.note_in_flight(now);
        Some(Batch { generation: self.conn.generation, parts, bytes })
    }

    /// Moves commands from the queue to the in-flight FIFO and their bytes to `parts`; whole commands only.
    fn fill(&mut self, now: Instant, parts: &mut VecDeque<Part>) -> usize {
        let mut bytes = 0;
        let before = self.conn.in_flight.len();
        let mut old = if self.queue_old > 0 { self.let_old_in() } else { VecDeque::new() };
        let parks = self.parks_by_key();
        let mut end_of_batch = 0;
        let mut run = self.conn.write.taken..self.conn.write.taken;
        while bytes < BATCH_BYTES_MAX
            && self.has_window()
            && let Some(&index) = self.queue.front()
        {
            let Some(slot) = self.slots.at(index) else {
                self.queue.pop_front();
                continue;
            };
            let State::Pending(pending) = &slot.state else {
                self.queue.pop_front();
                self.queue_removed = self.queue_removed.saturating_sub(1);
                self.slots.remove(index);
                continue;
            };
            let (end, len) = (pending.end, pending.len as usize);
            let start = end - len as u64;
            if parks && self.is_parked(start..end) {
                self.queue.pop_front();
                old.push_back(index);
                continue;
            }
            let Some((ticket, slot)) = self.slots.entry_at_mut(index) else { continue };
            if start != run.end {
                if !run.is_empty() {
                    self.log.take(run.clone(), parts);
                    // A second run may lie in a block that the first has taken out: leave it for the next batch.
                    run = start..start;
                    break;
                }
                run = start..start;
            }
            slot.place = Place::InFlight;
            self.queue.pop_front();
            self.conn.in_flight.push_back(Flight::Command(ticket));
            self.conn.in_flight_bytes += len;
            self.unsent_bytes -= len;
            bytes += len;
            run.end = end;
            end_of_batch = end;
        }
        if !run.is_empty() {
            self.log.take(run, parts);
        }
        let count = self.conn.in_flight.len() - before;
        if count > 0 {
            self.conn.write.handed = self.conn.write.handed.max(end_of_batch);
            self.conn.write.marks.handed(end_of_batch, now);
            self.report.counters.written_commands += count as u64;
        }
        self.tidy_queue();
        if self.queue.is_empty() {
            self.conn.write.pace = None;
        }
        self.queue_old = old.len();
        if !old.is_empty() {
            old.append(&mut self.queue);
            self.queue = old;
        }
        if self.queue_removed > 0 && self.queue_removed == self.queue.len() {
            self.tidy_queue();
        }
        if self.room.has_waiters() {
            self.grant_room();
        }
        bytes
    }

    /// The kernel takes no more bytes of connection `generation` at present.
    pub fn write_blocked(&mut self, now: Instant, generation: Generation) {
        self.on_conn(generation, |bridge| bridge.conn.liveness.on_write_blocked(now));
    }

    /// Returns a batch of which the kernel took the first `count` bytes. The rest is written first the next time,
    /// if the connection still stands; otherwise it counts as not sent.
    pub fn wrote(&mut self, now: Instant, mut batch: Batch, count: usize) {
        let generation = batch.generation;
        if !self.is_alive(generation) && self.config.guards.generation {
            // A successor that was given up: nothing of its handshake matters any more.
            self.report.counters.bytes_written += count as u64;
            for part in batch.parts.drain(..) {
                self.log.give_back(part);
            }
            return;
        }
        let batch = &mut Some(batch);
        let done = self.on_conn(generation, |bridge| {
            if let Some(batch) = batch.take() {
                bridge.wrote_here(now, batch, count);
            }
        });
        if done.is_none()
            && let Some(batch) = batch.take()
        {
            self.wrote_here(now, batch, count);
        }
        self.advance(now);
    }

    fn wrote_here(&mut self, now: Instant, mut batch: Batch, count: usize) {
        self.conn.write.is_out = false;
        let is_current = batch.generation == self.conn.generation && self.is_open();
        let mut left = count.min(batch.bytes);
        batch.bytes -= left;
        while left > 0
            && let Some(part) = batch.parts.front_mut()
        {
            let step = part.bytes().len().min(left);
            left -= step;
            if let Some(position) = part.advance(step) {
                // A command that was kept back by its key may lie before others that have left.
                self.conn.write.taken = self.conn.write.taken.max(position);
            }
            if part.bytes().is_empty()
                && let Some(part) = batch.parts.pop_front()
            {
                self.log.give_back(part);
            }
        }
        if count > 0 {
            self.report.counters.bytes_written += count as u64;
            self.conn.write.marks.taken(self.conn.write.taken, now);
            self.note_written(now);
        }
        if !is_current || self.conn.is_doomed() {
            for part in batch.parts.drain(..) {
                self.log.give_back(part);
            }
            self.finish_loss(now);
            return;
        }
        if !self.postponed.is_empty() {
            self.resume_postponed(now);
        }
        if batch.bytes > 0 {
            self.conn.liveness.on_write_blocked(now);
        }
        self.conn.write.rest = batch.parts;
        self.conn.write.rest_bytes = batch.bytes;
        if self.conn.write.urgent.capacity() == 0 {
            self.conn.write.urgent = self.log.spare();
        }
        if self.conn.in_flight.is_empty() {
            // The replies were quicker than the writer: nothing else will come and drop its blocks.
            self.release();
        }
    }
}

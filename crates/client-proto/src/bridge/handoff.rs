//! From one connection to its successor, with commands on both.
//!
//! Owns what happens to commands, bytes and replies while the endpoint moves. Does not own when that is and where to
//! ([`crate::handoff`] decides), nor what the server announces ([`crate::maintenance`]).
//!
//! ```text
//!   Serving(g)            Serving(g), Successor(g+1)            Serving(g+1), Retiring(g)            Serving(g+1)
//!       |  start_successor          |             cut_over                  |          end_drain         |
//!       +---------------------------+---------------------------------------+----------------------------+
//!         commands go to g            commands go to g, the handshake of      g: replies only
//!                                     g+1 is under way                        g+1: everything not on g's wire
//! ```
//!
//! The cut splits the commands at the first byte that the kernel has not taken on g: what lies before is answered on
//! g, all else moves to g+1 in its order, and g's socket is never written to again. So no command can be executed on
//! both, whatever happens to either connection afterwards.
//!
//! A connection other than the serving one is handled by putting it into the serving one's place for the length of one
//! call ([`Bridge::on_conn`]): what is said about one connection in this module's neighbours holds for each.

use std::collections::BTreeSet;
use std::time::Duration;

use towline_sansio::Instant;

use super::conn::{Conn, Phase, Role};
use super::link::Loss;
use super::{Bridge, Event, Flight, HandoffEvent, Place, State};
use crate::Flags;
use crate::error::{ErrorKind, LostCause, Sent, Stage};
use crate::generation::Generation;
use crate::handoff::{HandoffOrder, Target};
use crate::keys::{KeysIn, keys_in};
use crate::server_error::ServerError;

/// Most time by which one hold stretches the deadlines of the commands that it holds back. As long as a relaxed
/// timeout: whoever waits longer than that had better know.
pub(super) const HOLD_STRETCH_MAX: Duration = Duration::from_secs(10);

/// The other connections, while there are some.
#[derive(Debug, Default)]
pub(super) struct Others {
    pub(super) successor: Option<Box<Conn>>,
    pub(super) retiring: Option<Retiring>,
    /// Nothing new is sent, so that the connection can be left without a successor; at this time it is left.
    pub(super) recycle_by: Option<Instant>,
    /// Commands that waited lie before others that were sent: nothing more is sent until they are in one line again.
    pub(super) is_out_of_line: bool,
}

impl Others {
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.successor.is_none()
            && self.retiring.is_none()
            && self.recycle_by.is_none()
            && !self.is_out_of_line
    }
}

/// The connection that was left.
#[derive(Debug)]
pub(super) struct Retiring {
    pub(super) conn: Box<Conn>,
    since: Instant,
    /// When it is given up although replies are missing.
    pub(super) until: Instant,
    order: HandoffOrder,
    /// What may not overtake what is in flight on it.
    blocked: Blocked,
}

/// The keys of commands in flight on the old connection, and of those that wait for them.
#[derive(Debug, Default)]
struct Blocked {
    keys: BTreeSet<Box<[u8]>>,
    /// Commands on keys that are not known wait for everything, and everything waits for them.
    all: bool,
    /// Commands with known keys are among them.
    any: bool,
}

impl Blocked {
    fn add(&mut self, bytes: &[u8]) {
        let keys = &mut self.keys;
        match keys_in(bytes, |key| {
            keys.insert(key.into());
        }) {
            KeysIn::Keys(_) => self.any = true,
            KeysIn::Keyless => {}
            KeysIn::Unknown => self.all = true,
        }
    }

    /// Whether a command has to wait; if so, its keys are waited for from now on.
    fn holds(&mut self, bytes: &[u8]) -> bool {
        let mut is_held = self.all;
        let keys = &self.keys;
        let found = keys_in(bytes, |key| is_held |= keys.contains(key));
        if found == KeysIn::Keyless {
            return false;
        }
        is_held |= found == KeysIn::Unknown && (self.any || self.all);
        if is_held {
            self.add(bytes);
        }
        is_held
    }
}

impl<W> Bridge<W> {
    /// Runs `act` with connection `generation` in the place of the serving one; `None` if there is none of that
    /// number. `act` must not begin or end connections.
    pub(super) fn on_conn<T>(
        &mut self,
        generation: Generation,
        act: impl FnOnce(&mut Self) -> T,
    ) -> Option<T> {
        if generation == self.conn.generation {
            return Some(act(self));
        }
        if !self.swap_in(|conn| conn.generation == generation) {
            return None;
        }
        let outcome = act(self);
        self.swap_in(|conn| conn.role == Role::Serving);
        Some(outcome)
    }

    fn swap_in(&mut self, is_wanted: impl Fn(&Conn) -> bool) -> bool {
        let successor = self.others.successor.as_deref_mut();
        let retiring = self.others.retiring.as_mut().map(|retiring| &mut *retiring.conn);
        for other in [successor, retiring].into_iter().flatten() {
            if is_wanted(other) {
                std::mem::swap(other, &mut self.conn);
                return true;
            }
        }
        false
    }

    /// Every connection that there is.
    pub(super) fn conns(&self) -> impl Iterator<Item = &Conn> {
        let successor = self.others.successor.as_deref();
        let retiring = self.others.retiring.as_ref().map(|retiring| &*retiring.conn);
        // The oldest first: what is in flight on it was sent first.
        [retiring, Some(&self.conn), successor].into_iter().flatten()
    }

    /// Their numbers.
    pub(super) fn generations(&self) -> impl Iterator<Item = Generation> + use<W> {
        let mut generations = [None; 3];
        for (at, conn) in self.conns().enumerate() {
            generations[at] = Some(conn.generation);
        }
        generations.into_iter().flatten()
    }

    /// The connection that commands go to, whatever is in its place.
    pub(super) fn serving(&self) -> &Conn {
        self.conns().find(|conn| conn.role == Role::Serving).unwrap_or(&self.conn)
    }

    /// The connection on which a command in flight that ends at `end` was sent.
    pub(super) fn conn_at(&self, end: u64) -> &Conn {
        let left = self.conns().find(|conn| conn.role == Role::Retiring && end <= conn.write.taken());
        left.unwrap_or_else(|| self.serving())
    }

    /// Whether commands are held back because older ones are not answered on the old connection.
    pub(super) fn is_held(&self) -> bool {
        let is_strict = |retiring: &Retiring| retiring.order == HandoffOrder::Strict;
        self.others.recycle_by.is_some()
            || self.others.is_out_of_line
            || (self.config.guards.strict_hold && self.others.retiring.as_ref().is_some_and(is_strict))
    }

    /// Whether some keys are waited for.
    pub(super) fn parks_by_key(&self) -> bool {
        self.others.retiring.as_ref().is_some_and(|retiring| retiring.order == HandoffOrder::PerKey)
    }

    /// Whether the command at `range` has to wait for older ones on the old connection.
    pub(super) fn is_parked(&mut self, range: std::ops::Range<u64>) -> bool {
        let Some(retiring) = &mut self.others.retiring else { return false };
        if retiring.order != HandoffOrder::PerKey || !self.config.guards.parked {
            return false;
        }
        let mut bytes = self.log.spare();
        let is_parked = if self.log.copy(range, &mut bytes) {
            retiring.blocked.holds(&bytes)
        } else {
            // Its bytes are out of reach: it waits, with everything behind it.
            retiring.blocked.all = true;
            true
        };
        self.log.keep_spare(bytes);
        is_parked
    }

    /// Begins to make a successor ready. Its number; its owner dials.
    pub(super) fn start_successor(&mut self, now: Instant) -> Generation {
        self.drop_successor();
        self.last_generation = self.last_generation.next();
        let mut conn = Conn::new(now, Role::Successor, self.liveness_config);
        conn.generation = self.last_generation;
        conn.phase = Phase::Dialing;
        self.others.successor = Some(Box::new(conn));
        self.report.counters.dials += 1;
        self.last_generation
    }

    /// Gives up the attempt to make a successor ready; its owner closes the socket.
    pub(super) fn drop_successor(&mut self) {
        self.abandon_overlap();
        if let Some(mut successor) = self.others.successor.take() {
            for part in successor.write.reset() {
                self.log.give_back(part);
            }
        }
    }

    /// The successor is up, and no writer has bytes of the serving connection.
    pub(super) fn can_cut_over(&self) -> bool {
        self.others.successor.as_ref().is_some_and(|successor| successor.is_up())
            && self.others.retiring.is_none()
            && self.conn.is_up()
            && !self.conn.write.is_out()
            && !self.conn.write.has_unsent_urgent()
            && self.conn.reauth.is_none()
            && !self.is_unit_in_doubt()
    }

    /// Whether a transaction has left in part and its first reply has not come. Should the server refuse `MULTI`, it runs
    /// the commands behind it at once: whether they may go to another connection is known with that reply.
    fn is_unit_in_doubt(&self) -> bool {
        let taken = self.conn.write.taken();
        self.conn.in_flight.iter().rev().any(|flight| {
            let Flight::Command(ticket) = flight else { return false };
            let Some(slot) = self.slots.at(ticket.index()) else { return false };
            let State::Pending(pending) = &slot.state else { return false };
            let start = pending.end - u64::from(pending.len);
            slot.flags.contains(Flags::TRANSACTION)
                && self.config.guards.cut_units
                && (start..pending.end).contains(&taken)
                && start < taken
                && !self.partial.contains_key(&ticket.index())
        })
    }

    /// What the server said to the `MULTI` of a unit that has left in part, if it refused it: the commands behind it
    /// may have run, one by one.
    fn refused_unit(&self, index: u32) -> Option<ServerError> {
        let is_unit = self.slots.at(index).is_some_and(|slot| slot.flags.contains(Flags::TRANSACTION));
        let first = self.partial.get(&index).and_then(|frames| frames.first())?;
        ServerError::from_frame(first).filter(|_| is_unit && self.config.guards.cut_units)
    }

    /// The successor serves from now on. `until`: when the old connection is given up at the latest.
    pub(super) fn cut_over(&mut self, now: Instant, order: HandoffOrder, until: Instant) {
        let Some(successor) = self.others.successor.take() else { return };
        let mut old = std::mem::replace(&mut self.conn, *successor);
        self.conn.role = Role::Serving;
        old.role = Role::Retiring;
        // Changes of what was read on the old connection are announced there, as long as it stands.
        self.tracking_ended();
        self.tracking_began();
        let unsent = self.take_unsent(now, &mut old);
        for part in old.write.reset() {
            self.log.give_back(part);
        }
        let moved = unsent.len();
        self.requeue(unsent);
        self.queue_again();
        let start = self.queue_start().unwrap_or_else(|| self.log.end());
        self.conn.write.restart_at(start);
        self.conn.write.keep_pace_of(&old.write);
        self.queue_old = 0;
        let in_flight = old.in_flight.len();
        let mut blocked = Blocked::default();
        if order == HandoffOrder::PerKey {
            self.block_keys(&old, &mut blocked);
        }
        self.report.counters.handoffs += 1;
        let (from, to) = (old.generation, self.conn.generation);
        let queued = self.queue.len() - self.queue_removed;
        self.report.event(Event::Handoff(HandoffEvent::CutOver { from, to, in_flight, moved, queued }));
        self.others.retiring = Some(Retiring { conn: Box::new(old), since: now, until, order, blocked });
        if order == HandoffOrder::Strict && in_flight > 0 {
            self.begin_hold(now, HOLD_STRETCH_MAX);
        }
    }

    /// The serving connection is gone and its successor is on its way: it takes the place at once.
    pub(super) fn promote_successor(&mut self, now: Instant) {
        if self.is_closed || self.others.successor.as_ref().is_none_or(|it| it.failure.is_some()) {
            return;
        }
        let Some(successor) = self.others.successor.take() else { return };
        let start = self.conn.write.taken();
        self.conn = *successor;
        self.conn.role = Role::Serving;
        self.conn.write.restart_at(start);
        if let Phase::Up { info } = &self.conn.phase {
            let info = info.clone();
            self.backoff.connected(now);
            self.moves.handoff.on_cut_over(now, self.conn.generation);
            self.serve(now, info);
        }
    }

    fn block_keys(&self, old: &Conn, blocked: &mut Blocked) {
        let mut bytes = Vec::new();
        for flight in &old.in_flight {
            match flight {
                Flight::Command(ticket) => {
                    let Some(State::Pending(pending)) = self.slots.at(ticket.index()).map(|slot| &slot.state)
                    else {
                        continue;
                    };
                    bytes.clear();
                    if self.log.copy(pending.end - u64::from(pending.len)..pending.end, &mut bytes) {
                        blocked.add(&bytes);
                    } else {
                        blocked.all = true;
                    }
                }
                // Its bytes may be gone.
                Flight::Expired { .. } => blocked.all = true,
                Flight::Probe
                | Flight::Reauth
                | Flight::Subscriptions
                | Flight::Fence { .. }
                | Flight::Marker => {}
            }
        }
    }

    /// Takes off what the kernel has not wholly taken on `old`. It was not executed there and will not be.
    fn take_unsent(&mut self, now: Instant, old: &mut Conn) -> Vec<u32> {
        let taken = if self.config.guards.cut { old.write.taken() } else { 0 };
        let is_sent = |flight: &Flight| match flight {
            Flight::Command(ticket) => match self.slots.at(ticket.index()).map(|slot| &slot.state) {
                Some(State::Pending(pending)) if self.slots.ticket(ticket.index()) == Some(*ticket) => {
                    pending.end <= taken
                }
                _ => true,
            },
            Flight::Expired { end, .. } => end.wrapping_sub(taken as u32).cast_signed() <= 0,
            Flight::Probe
            | Flight::Reauth
            | Flight::Subscriptions
            | Flight::Fence { .. }
            | Flight::Marker => true,
        };
        let sent = old.in_flight.iter().take_while(|flight| is_sent(flight)).count();
        let mut unsent = Vec::new();
        for flight in old.in_flight.split_off(sent) {
            let Flight::Command(ticket) = flight else { continue };
            let index = ticket.index();
            let len = self.len_of(index);
            if self.fail_refused_unit(now, index) {
                old.in_flight_bytes = old.in_flight_bytes.saturating_sub(len);
                continue;
            }
            let Some(slot) = self.slots.at_mut(index) else { continue };
            let is_unwanted = slot.is_orphan() && !slot.flags.contains(Flags::FIRE_AND_FORGET);
            let State::Pending(pending) = &mut slot.state else { continue };
            // Of a unit that was half sent some replies may have come; the next connection answers all of it.
            let heard = self.partial.remove(&index).filter(|_| self.config.guards.cut_units);
            let heard = heard.map_or(0, |frames| frames.len());
            pending.replies += u32::try_from(heard).unwrap_or(0);
            old.in_flight_bytes = old.in_flight_bytes.saturating_sub(len);
            if is_unwanted {
                // Its caller has gone and it was not sent: nobody wants it.
                self.fail(now, index, ErrorKind::Lost(LostCause::Planned), Stage::Staged);
                continue;
            }
            slot.place = Place::Queue;
            self.unsent_bytes += len;
            unsent.push(index);
        }
        unsent
    }

    /// Fails a unit that left in part and whose `MULTI` was refused; false if it is none.
    pub(super) fn fail_refused_unit(&mut self, now: Instant, index: u32) -> bool {
        let Some(refusal) = self.refused_unit(index) else { return false };
        self.fail_as(now, index, ErrorKind::Server(refusal), Stage::OnWire, Sent::Maybe);
        true
    }

    fn len_of(&self, index: u32) -> usize {
        match self.slots.at(index).map(|slot| &slot.state) {
            Some(State::Pending(pending)) => pending.len as usize,
            _ => 0,
        }
    }

    /// Puts commands that were sent and have to be sent again before younger ones.
    pub(super) fn requeue(&mut self, again: Vec<u32>) {
        if self.config.guards.requeue_order {
            // What waited through an earlier outage is older than anything that was in flight.
            let younger = self.queue.split_off(self.queue_old);
            self.queue.extend(again);
            self.queue.extend(younger);
        } else {
            self.queue.extend(again);
        }
        self.sort_parked();
    }

    /// What waits for its keys may be younger than what has to be sent again. The order of positions is that of
    /// submission, and everything else about the queue relies on it.
    fn sort_parked(&mut self) {
        if !self.parks_by_key() {
            return;
        }
        let slots = &self.slots;
        self.queue.make_contiguous().sort_by_key(|index| match slots.at(*index).map(|slot| &slot.state) {
            Some(State::Pending(pending)) => pending.end,
            _ => 0,
        });
    }

    /// The connection that was left has answered everything, or is over: the hold ends.
    pub(super) fn end_drain(&mut self, now: Instant) -> Option<(Generation, Duration)> {
        let retiring = self.others.retiring.take()?;
        self.end_hold(now);
        self.others.is_out_of_line = true;
        self.queue_again();
        self.release();
        Some((retiring.conn.generation, now.since(retiring.since)))
    }

    /// Brings commands that waited for their keys and those that came after them into one line again, whose positions
    /// ascend. As long as a writer has bytes this has to wait, for theirs may be among them. Whether there was something
    /// to do.
    pub(super) fn queue_again(&mut self) -> bool {
        if !self.others.is_out_of_line {
            return false;
        }
        let is_in_order = {
            let ends =
                self.queue.iter().filter_map(|index| match self.slots.at(*index).map(|it| &it.state) {
                    Some(State::Pending(pending)) => Some(pending.end - u64::from(pending.len)),
                    _ => None,
                });
            let mut ends = ends.peekable();
            ends.peek().is_none_or(|first| *first >= self.conn.write.handed()) && ends.is_sorted()
        };
        if !is_in_order && self.conn.write.is_busy() {
            return false;
        }
        self.others.is_out_of_line = false;
        self.queue_old = 0;
        if is_in_order || !self.config.guards.one_line {
            return true;
        }
        let queue = std::mem::take(&mut self.queue);
        for index in &queue {
            self.move_to_end(*index);
        }
        self.queue = queue;
        true
    }

    /// Moves the bytes of a command that waits to the end of the log.
    pub(super) fn move_to_end(&mut self, index: u32) {
        let Some(State::Pending(pending)) = self.slots.at_mut(index).map(|slot| &mut slot.state) else {
            return;
        };
        let len = pending.len as usize;
        let mut bytes = self.log.spare();
        if self.log.copy(pending.end - u64::from(pending.len)..pending.end, &mut bytes) {
            self.log.append(len, |out| out.extend_from_slice(&bytes));
            pending.end = self.log.end();
        }
        self.log.keep_spare(bytes);
    }

    /// A connection other than the serving one is over. Decides the fate of what was in flight on it.
    pub(super) fn lose_other(&mut self, now: Instant, loss: Loss) {
        match self.conn.role {
            Role::Serving => {}
            Role::Successor => {
                self.conn.failure.get_or_insert(loss);
                self.conn.phase = Phase::Closed;
            }
            Role::Retiring => {
                if matches!(self.conn.phase, Phase::Closed) {
                    return;
                }
                self.conn.phase = Phase::Closed;
                let again = self.settle_all(now, LostCause::Planned).1;
                self.put_back(again);
            }
        }
    }

    /// Commands that were sent on the connection that was left and may be repeated go before all others. Their bytes lie
    /// before what the serving connection has sent, which is mended at the end of the drain.
    fn put_back(&mut self, again: Vec<u32>) {
        for index in again.into_iter().rev() {
            self.queue.push_front(index);
        }
        self.queue_old = 0;
    }

    /// Whether the old connection has nothing more to say.
    pub(super) fn is_drained(&self, now: Instant) -> bool {
        self.others.retiring.as_ref().is_some_and(|retiring| {
            !retiring.conn.is_up() || retiring.conn.in_flight.is_empty() || retiring.until <= now
        })
    }

    /// When the old connection is given up.
    pub(super) fn retire_at(&self) -> Option<Instant> {
        self.others.retiring.as_ref().map(|retiring| retiring.until)
    }
}

/// Where to dial for a successor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandoffDial {
    /// The connection to make.
    pub generation: Generation,
    /// Where it is to lead.
    pub target: Target,
}

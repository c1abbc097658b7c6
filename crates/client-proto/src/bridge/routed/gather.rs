//! What waits for a slot, in its order.
//!
//! Owns the fences, the taking of unsent commands out of the queue, and the moment at which what waits is sent. Does not own
//! why a slot waits.

use std::collections::BTreeMap;

use towline_cluster::Slot;
use towline_sansio::Instant;

use super::{Fence, Held, StrayReason, Tag};
use crate::bridge::{Bridge, Flight, Place, State};
use crate::command::Flags;
use crate::slab::Ticket;

impl<W> Bridge<W> {
    /// Notes what is in flight of each of these slots, as one fence each.
    pub(super) fn raise_fences(&mut self, slots: &[Slot], is_local: bool) {
        let Some(routed) = &mut self.routed else { return };
        let mut tickets: BTreeMap<Slot, Vec<Ticket>> = slots.iter().map(|slot| (*slot, Vec::new())).collect();
        let others = self.others.successor.iter().map(|conn| &**conn);
        let retiring = self.others.retiring.iter().map(|retiring| &*retiring.conn);
        for flight in
            std::iter::once(&self.conn).chain(others).chain(retiring).flat_map(|conn| &conn.in_flight)
        {
            let Flight::Command(ticket) = flight else { continue };
            if let Some(known) = tickets.get_mut(&routed.tag(ticket.index()).slot) {
                known.push(*ticket);
            }
        }
        // Refused, and on their way to the router or waiting for a writer.
        let away = self.postponed.iter().map(|(ticket, _)| *ticket).chain(routed.away.iter().copied());
        for ticket in away {
            if let Some(known) = tickets.get_mut(&routed.tag(ticket.index()).slot) {
                known.push(ticket);
            }
        }
        for (slot, tickets) in tickets {
            if is_local {
                let Some(hold) = routed.holds.get_mut(&slot).filter(|_| !tickets.is_empty()) else {
                    continue;
                };
                hold.own += 1;
            }
            routed.fences.push(Fence { slot, tickets, is_gathered: is_local, is_local });
            if !is_local {
                routed.gather.push((slot, false));
            }
        }
    }

    /// Takes what was not sent of slots that wait, or have gone, out of the queue. As long as a writer has bytes of the
    /// log this has to wait for it; nothing is sent meanwhile.
    pub(super) fn gather(&mut self, now: Instant) {
        let Some(routed) = &mut self.routed else { return };
        if !routed.has_gathering() || self.log.is_out() {
            return;
        }
        let wanted: BTreeMap<Slot, bool> = std::mem::take(&mut routed.gather).into_iter().collect();
        let is_all = std::mem::take(&mut routed.gather_all);
        let held = self.extract(|tag, flags| {
            (is_all && !flags.contains(Flags::PINNED)) || wanted.contains_key(&tag.slot)
        });
        for held in held {
            let Some(routed) = &mut self.routed else { return };
            let slot = routed.tag(held.index).slot;
            let is_here = wanted.get(&slot) == Some(&true) && !is_all && !routed.closed.contains(slot);
            match routed.holds.get_mut(&slot).filter(|_| is_here) {
                Some(hold) => {
                    if let Some(slot) = self.slots.at_mut(held.index) {
                        slot.place = Place::Held;
                    }
                    hold.keep(held);
                }
                None => self.stray(held, StrayReason::Shed),
            }
        }
        let local: Vec<Slot> =
            wanted.iter().filter(|(_, is_here)| **is_here).map(|(slot, _)| *slot).collect();
        for slot in &local {
            if let Some(hold) = self.hold_of(*slot) {
                hold.is_gathering = false;
            }
        }
        self.raise_fences(&local, true);
        if let Some(routed) = &mut self.routed {
            for fence in &mut routed.fences {
                fence.is_gathered |= is_all || wanted.contains_key(&fence.slot);
            }
        }
        self.release();
        self.check_fences(now);
        local.into_iter().for_each(|slot| self.pump_hold(now, slot));
    }

    /// Takes commands out of the queue; their bytes stay accounted as unsent.
    pub(super) fn extract(&mut self, is_wanted: impl Fn(Tag, Flags) -> bool) -> Vec<Held> {
        let Some(routed) = &self.routed else { return Vec::new() };
        let (mut at, old, mut old_gone) = (0, self.queue_old, 0);
        let mut out = Vec::new();
        let (slots, log) = (&self.slots, &self.log);
        self.queue.retain(|index| {
            at += 1;
            let Some(slot) = slots.at(*index) else { return true };
            let State::Pending(pending) = &slot.state else { return true };
            if !is_wanted(routed.tag(*index), slot.flags) {
                return true;
            }
            let mut bytes = Vec::new();
            if !log.copy(pending.end - u64::from(pending.len)..pending.end, &mut bytes) {
                return true;
            }
            let number = routed.tag(*index).number;
            out.push(Held { index: *index, number, is_returned: false, bytes });
            old_gone += usize::from(at <= old);
            false
        });
        self.queue_old -= old_gone;
        self.tidy_queue();
        out
    }

    /// What waited for these slots here goes where they go, and waits there until the fence has passed: an older command may
    /// be on its way to the router.
    pub(super) fn give_up_holds(&mut self, slots: &[Slot]) {
        for slot in slots {
            let Some(hold) = self.routed.as_mut().and_then(|routed| routed.holds.remove(slot)) else {
                continue;
            };
            for held in hold.waiting.into_values() {
                self.stray(held, StrayReason::Shed);
            }
        }
    }

    /// Sees which fences have passed.
    pub(super) fn check_fences(&mut self, now: Instant) {
        let Some(routed) = &mut self.routed else { return };
        if routed.fences.is_empty() {
            return;
        }
        let slots = &self.slots;
        let is_open = |ticket: &Ticket, is_local: bool| {
            slots.ticket(ticket.index()) == Some(*ticket)
                && slots.at(ticket.index()).is_some_and(|slot| {
                    let is_away = match slot.place {
                        Place::InFlight | Place::Strayed => true,
                        // A loss has brought it back, and it has not left. Here it goes before what waits anyway.
                        Place::Queue => !is_local,
                        Place::Delayed | Place::Held => false,
                    };
                    is_away && matches!(slot.state, State::Pending(_))
                })
        };
        let mut passed = Vec::new();
        routed.fences.retain_mut(|fence| {
            // The last was sent last, so usually nothing else has to be looked at.
            while fence.tickets.last().is_some_and(|ticket| !is_open(ticket, fence.is_local)) {
                fence.tickets.pop();
            }
            let is_over = fence.is_gathered && fence.tickets.is_empty();
            if is_over {
                passed.push((fence.slot, fence.is_local));
            }
            !is_over
        });
        for (slot, is_local) in passed {
            if is_local {
                self.unfence_own(now, slot);
            } else if let Some(routed) = &mut self.routed {
                routed.news.passed.push(slot);
            }
        }
    }

    /// Sends what need not wait any more.
    pub(super) fn pump_hold(&mut self, now: Instant, slot: Slot) {
        let Some(routed) = &mut self.routed else { return };
        let Some(hold) = routed.holds.get_mut(&slot) else { return };
        if let Some(due) = hold.due.filter(|due| *due > now) {
            routed.due = Some(routed.due.map_or(due, |known| known.min(due)));
            return;
        }
        hold.due = None;
        let ready = hold.ready();
        if hold.is_over() {
            routed.holds.remove(&slot);
        }
        ready.into_iter().for_each(|held| self.enqueue(now, held));
        self.grant_room();
    }

    /// Puts a command that has waited at the end of the queue.
    pub(super) fn enqueue(&mut self, now: Instant, held: Held) {
        let Some(slot) = self.slots.at_mut(held.index) else { return };
        let State::Pending(pending) = &mut slot.state else { return };
        self.log.append(held.bytes.len(), |out| out.extend_from_slice(&held.bytes));
        pending.end = self.log.end();
        slot.place = Place::Queue;
        self.queue.push_back(held.index);
        self.review_age(now);
    }
}

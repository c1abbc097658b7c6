//! The line for room in the backlog.
//!
//! Owns who is next, and the bytes promised to those who were called. Does not own the bound.

use std::collections::BTreeMap;

use super::Bridge;

/// A place in the line for room. Ends by submitting with it or by [`Bridge::leave_room`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoomTicket(u64);

#[derive(Debug)]
struct Waiting<W> {
    bytes: usize,
    waiter: Option<W>,
}

#[derive(Debug)]
pub(super) struct Room<W> {
    /// In the order of arrival.
    line: BTreeMap<RoomTicket, Waiting<W>>,
    /// Bytes promised to those who were called and have not submitted yet.
    granted: BTreeMap<RoomTicket, usize>,
    reserved: usize,
    next: u64,
    is_closed: bool,
}

impl<W> Default for Room<W> {
    fn default() -> Self {
        Self { line: BTreeMap::new(), granted: BTreeMap::new(), reserved: 0, next: 0, is_closed: false }
    }
}

impl<W> Room<W> {
    #[inline]
    pub(super) fn has_waiters(&self) -> bool {
        !self.line.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.line.len()
    }

    #[inline]
    pub(super) const fn reserved(&self) -> usize {
        self.reserved
    }

    /// Uses a granted ticket up.
    #[inline]
    pub(super) fn claim(&mut self, ticket: Option<RoomTicket>) -> bool {
        let Some(bytes) = ticket.and_then(|ticket| self.granted.remove(&ticket)) else { return false };
        self.reserved -= bytes;
        true
    }

    /// Lets everybody through: they will find the bridge closed.
    pub(super) fn close(&mut self, wakes: &mut Vec<W>) {
        self.is_closed = true;
        wakes.extend(std::mem::take(&mut self.line).into_values().filter_map(|waiting| waiting.waiter));
    }
}

impl<W> Bridge<W> {
    /// Most bytes that may wait to be sent.
    pub const fn backlog_bytes_max(&self) -> usize {
        self.config.backlog_bytes_max
    }

    /// Stands in line for `bytes` of room. Served in the order of arrival.
    pub fn wait_for_room(&mut self, bytes: usize, waiter: W) -> RoomTicket {
        let ticket = RoomTicket(self.room.next);
        self.room.next += 1;
        self.room.line.insert(ticket, Waiting { bytes, waiter: Some(waiter) });
        self.grant_room();
        ticket
    }

    /// Whether it is `ticket`'s turn: submit with it then. Otherwise `waiter` replaces the one left before.
    pub fn poll_room(&mut self, ticket: RoomTicket, waiter: impl FnOnce() -> W) -> bool {
        if self.room.is_closed {
            return true;
        }
        match self.room.line.get_mut(&ticket) {
            Some(waiting) => {
                waiting.waiter = Some(waiter());
                false
            }
            None => true,
        }
    }

    /// Leaves the line, or gives a granted place on.
    pub fn leave_room(&mut self, ticket: RoomTicket) {
        if !self.room.claim(Some(ticket)) {
            self.room.line.remove(&ticket);
        }
        self.grant_room();
    }

    /// Calls those at the head of the line for whom there is room now.
    pub(super) fn grant_room(&mut self) {
        while let Some((_, first)) = self.room.line.first_key_value() {
            if !self.has_room(first.bytes) {
                return;
            }
            let Some((ticket, first)) = self.room.line.pop_first() else { return };
            self.room.reserved += first.bytes;
            self.room.granted.insert(ticket, first.bytes);
            self.wakes.extend(first.waiter);
        }
    }
}

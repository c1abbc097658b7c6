//! How callers get the outcomes of their commands.
//!
//! Owns the one look at a completion slot. Does not own what the outcome is ([`super::deliver`]), nor where a command goes that
//! is another bridge's ([`super::routed`]).

use super::{Bridge, Slot, State};
use crate::command::Reply;
use crate::error::Error;
use crate::slab::Ticket;

/// What [`Bridge::poll_routed`] finds.
#[derive(Debug, Clone, PartialEq)]
pub enum Polled {
    /// There is no outcome yet.
    Pending,
    /// This is it.
    Ended(Result<Reply, Error>),
    /// The command went to another bridge.
    Elsewhere,
}

impl<W> Bridge<W> {
    /// The outcome, if it is there: the ticket ends with it. Otherwise `waiter` is asked for what to leave behind; it
    /// is given what was left before.
    ///
    /// A ticket that has ended already gets [`ErrorKind::Misuse`](crate::ErrorKind::Misuse).
    #[inline]
    pub fn poll_outcome(
        &mut self,
        ticket: Ticket,
        waiter: impl FnOnce(Option<W>) -> W,
    ) -> Option<Result<Reply, Error>> {
        match self.poll_routed(ticket, waiter) {
            Polled::Pending => None,
            Polled::Ended(outcome) => Some(outcome),
            Polled::Elsewhere => {
                self.slots.remove(ticket.index());
                Some(Err(Error::misuse("the command went to another bridge")))
            }
        }
    }

    /// As [`Bridge::poll_outcome`], for a command that may go to another bridge: [`Polled::Elsewhere`] leaves the ticket to
    /// [`Bridge::take_forwarded`].
    #[inline]
    pub fn poll_routed(&mut self, ticket: Ticket, waiter: impl FnOnce(Option<W>) -> W) -> Polled {
        let is_claimed = |slot: &&mut Slot<W>| !slot.is_given_up() || matches!(slot.state, State::Forwarded);
        let Some(slot) = self.slots.get_mut(ticket).filter(is_claimed) else {
            return Polled::Ended(Err(Error::misuse("the outcome of this command was taken already")));
        };
        match &mut slot.state {
            State::Pending(pending) => {
                let left = pending.waiter.take();
                pending.waiter = Some(waiter(left));
                return Polled::Pending;
            }
            State::Forwarded => return Polled::Elsewhere,
            State::Done(_) | State::Removed => {}
        }
        match self.slots.remove(ticket.index()).map(|slot| slot.state) {
            Some(State::Done(outcome)) => Polled::Ended(outcome),
            _ => Polled::Pending,
        }
    }
}

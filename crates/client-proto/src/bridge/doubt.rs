//! A connection in doubt, about which a fresh one is asked.
//!
//! Owns what to ask. Does not own when, nor what the answer means ([`crate::liveness`]), nor the asking.

use towline_spec::SideEffect;

use super::conn::Flight;
use super::{Bridge, State};
use crate::generation::Generation;
use crate::liveness::Opinion;

/// What a fresh connection is asked. At least one of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Doubt {
    /// Whether the peer lives: for [`Opinion::Unreachable`], [`Opinion::Busy`] and [`Opinion::Answers`].
    pub about_life: bool,
    /// Whether it holds back writes, for [`Opinion::Holds`]: the command that has waited longest is one.
    pub about_writes: bool,
}

impl<W> Bridge<W> {
    /// The connection is silent: notes what to ask, if there is anything.
    pub(super) fn doubt(&mut self) {
        let about_writes = self.liveness_config.held_max.is_some() && self.is_write_first();
        let doubt = Doubt { about_life: self.liveness_config.second_opinion.is_some(), about_writes };
        if doubt.about_life || doubt.about_writes {
            self.report.counters.second_opinions += 1;
            self.conn.doubt = Some(doubt);
        }
    }

    /// Whether the oldest command without a reply may be held back by a server that holds back writes.
    fn is_write_first(&self) -> bool {
        match self.conn.in_flight.front() {
            Some(Flight::Command(ticket)) => self.slots.at(ticket.index()).is_some_and(|slot| {
                use SideEffect::{Convergent, Idempotent, NonIdempotent};
                matches!(slot.state, State::Pending(_))
                    && matches!(slot.effect, Idempotent | Convergent | NonIdempotent)
            }),
            // What it was is forgotten with its caller; asking costs little.
            Some(Flight::Expired { .. }) => true,
            _ => false,
        }
    }

    /// What the owner should ask a fresh connection now, and then say so by [`Bridge::second_opinion`], and about which
    /// generation. Said once for each silence.
    pub fn poll_second_opinion(&mut self) -> Option<(Generation, Doubt)> {
        self.conn.doubt.take().map(|doubt| (self.conn.generation, doubt))
    }

    /// What a fresh connection found about connection `generation`. The verdict falls with the next
    /// [`Bridge::handle_timeout`]. Without a word it falls as if nobody had been asked.
    pub fn second_opinion(&mut self, generation: Generation, opinion: Opinion) {
        self.on_conn(generation, |bridge| {
            if bridge.conn.is_up() {
                bridge.conn.liveness.on_opinion(opinion);
            }
        });
    }
}

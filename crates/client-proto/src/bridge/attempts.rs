//! How often a command was sent.
//!
//! Owns the count and what it says about execution. Does not own what follows ([`crate::retry`]).

use crate::error::Sent;

/// How often a command was sent before, and whether one of these attempts may have run. One byte: slots are many.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Attempts(u8);

impl Attempts {
    const MAY_HAVE_RUN: u8 = 1 << 7;

    pub(super) const fn count(self) -> u8 {
        self.0 & !Self::MAY_HAVE_RUN
    }

    /// One more, which the server refused without running it.
    pub(super) fn add_refused(&mut self) {
        self.0 = (self.0 & Self::MAY_HAVE_RUN) | (self.count() + 1).min(Self::MAY_HAVE_RUN - 1);
    }

    /// One more, which the server may have executed.
    pub(super) fn add_possible(&mut self) {
        self.add_refused();
        self.0 |= Self::MAY_HAVE_RUN;
    }

    /// What they say about execution, whatever becomes of the next one.
    pub(super) const fn sent(self) -> Sent {
        if self.0 & Self::MAY_HAVE_RUN == 0 { Sent::No } else { Sent::Maybe }
    }
}

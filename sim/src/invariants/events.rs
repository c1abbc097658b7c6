//! **One ordered stream of events.** Connections come up and go in turn, with numbers that only grow; a reader that is
//! behind gets the latest events, no more than the bound, and is told how many it missed.

use towline_client_proto::Event;

use super::{Violation, promise};

/// What the reader of the events has seen.
#[derive(Debug)]
pub(crate) struct Events {
    max: usize,
    in_one_go: usize,
    up: Option<u64>,
    latest: u64,
    /// Events are missing, so that the present state is not known.
    is_blind: bool,
}

impl Events {
    pub(crate) const fn new(max: usize) -> Self {
        Self { max, in_one_go: 0, up: None, latest: 0, is_blind: false }
    }

    /// The reader begins to take what is there.
    pub(crate) const fn begin(&mut self) {
        self.in_one_go = 0;
    }

    /// The next event.
    pub(crate) fn next(&mut self, event: &Event) -> Result<(), Violation> {
        let generation = match event {
            Event::Missed { count } => {
                promise!(*count > 0, "events", "nothing was missed");
                self.is_blind = true;
                return Ok(());
            }
            Event::UnwatchedFailed { .. } => return Ok(()),
            Event::Connected { generation, .. } => {
                let is_in_turn = self.up.is_none() || self.is_blind;
                promise!(is_in_turn, "events", "{generation} is up before {:?} was lost", self.up);
                self.up = Some(generation.0);
                self.is_blind = false;
                generation.0
            }
            Event::Lost { generation, .. } => {
                let is_in_turn = self.up == Some(generation.0) || self.is_blind;
                promise!(is_in_turn, "events", "{generation} is lost, {:?} was up", self.up);
                self.up = None;
                self.is_blind = false;
                generation.0
            }
            Event::DialFailed { generation, .. }
            | Event::HandshakeFailed { generation, .. }
            | Event::ReauthRefused { generation, .. } => generation.0,
            _ => return Ok(()),
        };
        self.in_one_go += 1;
        promise!(self.in_one_go <= self.max, "events", "more than {} events were kept", self.max);
        promise!(generation >= self.latest, "events", "{generation} comes after {}", self.latest);
        self.latest = generation;
        Ok(())
    }
}

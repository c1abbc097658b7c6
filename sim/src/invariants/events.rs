//! **One ordered stream of events.** Connections come up and go in turn, with numbers that only grow; a planned move
//! tells each of its steps in their order, and each one that began ends; a reader that is behind gets the latest events, no
//! more than the bound, and is told how many it missed.

use std::time::Duration;

use towline_client_proto::handoff::Taken;
use towline_client_proto::{Event, HandoffEvent};

use super::{Violation, promise};

/// What the reader of the events has seen.
#[derive(Debug)]
pub(crate) struct Events {
    max: usize,
    in_one_go: usize,
    up: Option<u64>,
    /// The latest connection that came up or did not, successors apart.
    latest: u64,
    /// The latest successor.
    latest_successor: u64,
    /// The successor that is being made ready.
    dialing: Option<u64>,
    /// The connection that was left.
    retiring: Option<u64>,
    /// Moves that began and that ended.
    begun: u64,
    ended: u64,
    /// The longest time for which an old connection went on answering.
    pub(crate) longest_drain: Duration,
    /// Events are missing, so that the present state is not known.
    is_blind: bool,
    /// Events were missing at some time.
    was_blind: bool,
}

impl Events {
    pub(crate) const fn new(max: usize) -> Self {
        Self {
            max,
            in_one_go: 0,
            up: None,
            latest: 0,
            latest_successor: 0,
            dialing: None,
            retiring: None,
            begun: 0,
            ended: 0,
            longest_drain: Duration::ZERO,
            is_blind: false,
            was_blind: false,
        }
    }

    /// The reader begins to take what is there.
    pub(crate) const fn begin(&mut self) {
        self.in_one_go = 0;
    }

    /// The next event.
    pub(crate) fn next(&mut self, event: &Event) -> Result<(), Violation> {
        if !matches!(event, Event::Missed { .. } | Event::UnwatchedFailed { .. }) {
            self.in_one_go += 1;
            promise!(self.in_one_go <= self.max, "events", "more than {} events were kept", self.max);
        }
        let generation = match event {
            Event::Missed { count } => {
                promise!(*count > 0, "events", "nothing was missed");
                (self.is_blind, self.was_blind) = (true, true);
                return Ok(());
            }
            Event::Handoff(step) => return self.step(step),
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
                return Ok(());
            }
            Event::DialFailed { generation, .. } | Event::HandshakeFailed { generation, .. } => generation.0,
            _ => return Ok(()),
        };
        // A successor may take the place of what was lost, whenever it was dialled.
        let is_in_turn = generation > self.latest || self.latest_successor > 0 || self.was_blind;
        promise!(is_in_turn, "events", "{generation} comes after {}", self.latest);
        self.latest = self.latest.max(generation);
        Ok(())
    }

    fn step(&mut self, step: &HandoffEvent) -> Result<(), Violation> {
        let is_blind = self.was_blind;
        match step {
            HandoffEvent::Announced { taken, .. } => self.begun += u64::from(*taken == Taken::Begun),
            HandoffEvent::Dialing { generation, .. } => {
                let is_later = generation.0 > self.latest_successor;
                promise!(is_later, "events", "successor {generation} comes after {}", self.latest_successor);
                self.dialing = Some(generation.0);
                self.latest_successor = generation.0;
            }
            HandoffEvent::AttemptFailed { generation, .. } => {
                let is_known = self.dialing == Some(generation.0) || is_blind;
                promise!(is_known, "events", "successor {generation} failed, {:?} was dialled", self.dialing);
                self.dialing = None;
            }
            HandoffEvent::CutOver { from, to, .. } => {
                let is_in_turn = self.up == Some(from.0) && self.dialing == Some(to.0) || is_blind;
                let (up, dialing) = (self.up, self.dialing);
                promise!(
                    is_in_turn,
                    "events",
                    "from {from} to {to}, but up is {up:?} and dialled {dialing:?}"
                );
                promise!(self.retiring.is_none() || is_blind, "events", "{:?} is not drained", self.retiring);
                (self.up, self.dialing, self.retiring) = (Some(to.0), None, Some(from.0));
            }
            HandoffEvent::Drained { generation, took } => {
                let is_known = self.retiring == Some(generation.0) || is_blind;
                promise!(is_known, "events", "{generation} is drained, {:?} was left", self.retiring);
                self.retiring = None;
                self.longest_drain = self.longest_drain.max(*took);
            }
            HandoffEvent::Recycling { generation, .. } => {
                let is_known = self.up == Some(generation.0) || is_blind;
                promise!(is_known, "events", "{generation} is recycled, {:?} is up", self.up);
            }
            HandoffEvent::Ended(_) => self.ended += 1,
            _ => {}
        }
        Ok(())
    }

    /// At the end every move that began has ended.
    pub(crate) fn check_all_ended(&self) -> Result<(), Violation> {
        let is_over = self.ended >= self.begun && self.retiring.is_none() || self.was_blind;
        promise!(
            is_over,
            "events",
            "{} moves began, {} ended, {:?} is not drained",
            self.begun,
            self.ended,
            self.retiring
        );
        Ok(())
    }
}

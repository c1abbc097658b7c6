//! One drain: from its announcement to the end of its last connection.
//!
//! Owns: which connections it is about and what happens to them when. Does **not** own doing it.
//!
//! ```text
//! Announced --window over--> Finishing --READ_GRACE--> Flushing --FLUSH_GRACE--> Over
//!     |                          `------------- no connection is left ------------^
//!     `------cancelled-----> Cancelled
//! ```

use super::notice::{Scope, Successor};
use super::{DrainState, DrainStatus};
use crate::client::Clients;
use std::time::{Duration, Instant};

/// How long a connection is still read from after the window: a pipeline that is coming in is answered whole. Each
/// connection ends once it is quiet with nothing unanswered, so only one that never stops sending needs it all.
const READ_GRACE: Duration = Duration::from_millis(500);
/// How long it has after that to take its replies. Both together are the second that a client's last command may take.
const FLUSH_GRACE: Duration = Duration::from_millis(500);

/// Where a drain is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Connections may leave by themselves.
    Announced,
    /// Those that are left end as soon as they have been answered.
    Finishing,
    /// Nothing more is read from them.
    Flushing,
    /// All are gone.
    Over,
    /// Nobody is closed.
    Cancelled,
}

/// What is to be done with connections, by id in rising order.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Release those that wait, and close each as soon as it is answered.
    Finish(Vec<u64>),
    /// Close each as soon as what was answered is sent.
    Flush(Vec<u64>),
    /// Close them.
    Kill(Vec<u64>),
}

/// A drain.
#[derive(Debug)]
pub(super) struct Drain {
    pub(super) seq: u64,
    pub(super) scope: Scope,
    window: Duration,
    successor: Option<Successor>,
    announced: Instant,
    /// Connections that existed at the announcement, in rising order; after the window, those that were left then.
    pub(super) ids: Vec<u64>,
    connections: usize,
    closed: usize,
    /// How many of the connections were told.
    pub(super) told: usize,
    pub(super) phase: Phase,
}

impl Drain {
    /// A drain that begins now.
    pub(super) fn new(
        seq: u64,
        scope: Scope,
        window: Duration,
        successor: Option<Successor>,
        ids: Vec<u64>,
        now: Instant,
    ) -> Self {
        let (connections, phase) = (ids.len(), Phase::Announced);
        Self { seq, scope, window, successor, announced: now, ids, connections, closed: 0, told: 0, phase }
    }

    /// Whether the connection is one of its own.
    pub(super) fn has(&self, id: u64) -> bool {
        self.ids.binary_search(&id).is_ok()
    }

    /// Whether its window is not over.
    pub(super) fn is_announced(&self) -> bool {
        self.phase == Phase::Announced
    }

    /// The end of its window.
    pub(super) fn due(&self) -> Instant {
        self.announced + self.window
    }

    /// When there is something to do next.
    pub(super) fn next_due(&self) -> Option<Instant> {
        match self.phase {
            Phase::Announced => Some(self.due()),
            Phase::Finishing => Some(self.due() + READ_GRACE),
            Phase::Flushing => Some(self.due() + READ_GRACE + FLUSH_GRACE),
            Phase::Over | Phase::Cancelled => None,
        }
    }

    /// The next step, if its time has come.
    pub(super) fn advance(&mut self, clients: &Clients, now: Instant) -> Option<Step> {
        if self.next_due().is_none_or(|due| due > now) {
            return None;
        }
        self.ids.retain(|&id| clients.get(id).is_some());
        let ids = self.ids.clone();
        if ids.is_empty() {
            self.phase = Phase::Over;
            return None;
        }
        match self.phase {
            Phase::Announced => {
                self.closed = ids.len();
                self.phase = Phase::Finishing;
                Some(Step::Finish(ids))
            }
            Phase::Finishing => {
                self.phase = Phase::Flushing;
                Some(Step::Flush(ids))
            }
            Phase::Flushing => {
                self.phase = Phase::Over;
                Some(Step::Kill(ids))
            }
            Phase::Over | Phase::Cancelled => None,
        }
    }

    /// What is shown of it.
    pub(super) fn status(&self, clients: &Clients, now: Instant) -> DrainStatus {
        let (state, left) = match self.phase {
            Phase::Announced | Phase::Cancelled => {
                let gone = self.ids.iter().filter(|&&id| clients.get(id).is_none()).count();
                let state = if self.is_announced() { DrainState::Announced } else { DrainState::Cancelled };
                (state, gone)
            }
            Phase::Finishing | Phase::Flushing => (DrainState::Closing, self.connections - self.closed),
            Phase::Over => (DrainState::Over, self.connections - self.closed),
        };
        let remaining =
            if self.is_announced() { self.due().saturating_duration_since(now) } else { Duration::ZERO };
        DrainStatus {
            seq: self.seq,
            scope: self.scope,
            state,
            window: self.window,
            remaining,
            successor: self.successor.clone(),
            connections: self.connections,
            told: self.told,
            left,
            closed: self.closed,
        }
    }
}

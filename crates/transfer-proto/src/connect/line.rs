//! One lane to one node, and the node.
//!
//! Owns the states. Does **not** own the steps between them: `outbound.rs` has those of the initiator, `inbound.rs` those
//! of the target.

use std::collections::{BTreeMap, BTreeSet};

use towline_admission::{Attempt as Passage, Backoff, Breaker, JobId, RequestId, Ticket};
use towline_sansio::Instant;

use crate::identity::{Attempt, ConnId, Incarnation, Lane, LinkId, Process};
use crate::wire::{Hello, Welcome};

use super::output::Role;

/// A node that this process has met.
#[derive(Debug)]
pub(super) struct Peer {
    /// Its latest life, once known.
    pub(super) incarnation: Option<Incarnation>,
    pub(super) breaker: Breaker,
    /// After attempts that failed. Of the node, not of a lane: all of them are answered by the same process, and one that
    /// is answered shows that the others may ask.
    pub(super) backoff: Backoff,
    /// Lanes that the breaker sent away: asked again when it changes.
    pub(super) blocked: BTreeSet<Lane>,
    pub(super) lines: BTreeMap<Lane, Line>,
}

/// A lane to a node.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) phase: Phase,
    /// Somebody here needs it.
    pub(super) is_wanted: bool,
    /// Queue pairs to offer.
    pub(super) queue_pairs: u16,
    /// Our latest attempt.
    pub(super) attempt: Attempt,
    /// The latest attempt of the peer's present life that was taken up, or that it says is given up.
    pub(super) seen: Attempt,
    /// We gave way to a HELLO that did not come.
    pub(super) is_insisting: bool,
    pub(super) ticket: Option<Ticket>,
    /// After links that were lost: one that dies young again and again is made anew ever more slowly.
    pub(super) backoff: Backoff,
    /// When the phase ends by itself.
    pub(super) timer: Option<Instant>,
}

/// An attempt with what it holds. Whoever takes it out of its phase gives all of it back (`Connections::let_go`).
#[derive(Debug)]
pub(super) struct Dial {
    pub(super) conn: ConnId,
    pub(super) request: RequestId,
    pub(super) passage: Passage,
}

/// Where a lane stands.
#[derive(Debug, Default)]
pub(super) enum Phase {
    /// Nothing to do.
    #[default]
    Idle,
    /// Until the timer: backoff, breaker, or an appointment.
    Waiting,
    /// In the limiter's line.
    WaitPermit { request: RequestId },
    /// With a permit, until the gap to the dial before is over.
    Paced { request: RequestId, passage: Passage },
    /// The driver dials.
    Dialing { dial: Dial },
    /// The driver makes queue pairs for our HELLO.
    Offering { dial: Dial, link: LinkId },
    /// HELLO is out.
    AwaitReply { dial: Dial, link: LinkId, nonce: u64, queue_pairs: usize },
    /// WELCOME is in, the driver activates our queue pairs.
    Confirming { dial: Dial, link: LinkId, process: Process, nonce: u64 },
    /// We were told that the peer's own HELLO is on its way.
    Yielded,
    /// The peer's HELLO waits for a worker.
    Queued { job: JobId, conn: ConnId, hello: Box<Hello> },
    /// The driver makes queue pairs for the peer's HELLO.
    Serving { conn: ConnId, link: LinkId, hello: Box<Hello> },
    /// WELCOME is out. Our queue pairs receive, and do not send.
    Prepared {
        conn: ConnId,
        link: LinkId,
        process: Process,
        nonce: u64,
        welcome: Box<Welcome>,
        is_confirmed: bool,
    },
    /// Linked.
    Ready { link: LinkId, process: Process, role: Role, welcome: Option<Box<Welcome>> },
}

impl Phase {
    /// Whether something of the peer's is being answered.
    pub(super) fn is_inbound(&self) -> bool {
        matches!(self, Self::Queued { .. } | Self::Serving { .. } | Self::Prepared { .. })
    }

    /// Whether a link is there or about to be.
    pub(super) fn is_at_work(&self) -> bool {
        !matches!(self, Self::Idle)
    }

    /// The connection that the phase lives on.
    pub(super) fn conn(&self) -> Option<ConnId> {
        match self {
            Self::Dialing { dial }
            | Self::Offering { dial, .. }
            | Self::AwaitReply { dial, .. }
            | Self::Confirming { dial, .. } => Some(dial.conn),
            Self::Queued { conn, .. } | Self::Serving { conn, .. } | Self::Prepared { conn, .. } => {
                Some(*conn)
            }
            Self::Idle
            | Self::Waiting
            | Self::WaitPermit { .. }
            | Self::Paced { .. }
            | Self::Yielded
            | Self::Ready { .. } => None,
        }
    }

    /// The generation of queue pairs that the phase has.
    pub(super) fn link(&self) -> Option<LinkId> {
        match self {
            Self::Offering { link, .. }
            | Self::AwaitReply { link, .. }
            | Self::Confirming { link, .. }
            | Self::Serving { link, .. }
            | Self::Prepared { link, .. }
            | Self::Ready { link, .. } => Some(*link),
            Self::Idle
            | Self::Waiting
            | Self::WaitPermit { .. }
            | Self::Paced { .. }
            | Self::Dialing { .. }
            | Self::Yielded
            | Self::Queued { .. } => None,
        }
    }
}

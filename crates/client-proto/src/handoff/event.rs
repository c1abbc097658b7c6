//! What goes into the machine of a handoff and what comes out.

use std::net::SocketAddr;
use std::time::Duration;

use towline_sansio::Instant;

use crate::generation::Generation;
use crate::maintenance::Address;

/// Where a dial goes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Target {
    /// The address that the user gave, resolved anew.
    Configured,
    /// The address that the server named.
    Named(Address),
}

/// The connection on which an announcement was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// Which connection.
    pub generation: Generation,
    /// The other end's address, if it has one.
    pub peer: Option<SocketAddr>,
    /// The connection's number on the server, if known.
    pub client_id: Option<i64>,
    /// Whether the configured address is a name, which may come to stand for another server.
    pub configured_is_name: bool,
    /// Whether the connection has no work. Such connections wait for a drawn moment, so that a fleet does not dial at
    /// once; one with work must not wait.
    pub is_idle: bool,
}

/// What came of an announcement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Taken {
    /// A handoff has begun.
    Begun,
    /// The handoff that goes on has another successor and another window now.
    Retargeted,
    /// The handoff that goes on is finished first; then the next one begins, unless its window is over by then.
    Queued,
    /// It was known, and is being or has been acted on.
    Duplicate,
    /// It is about the past: from a connection that is no longer used, below a number already acted on, or read after
    /// its window.
    Stale,
    /// Too many moves in a short time: it is not followed.
    TooMany,
}

/// What the owner of the connections has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Set up the successor: dial, handshake, subscriptions. Report `on_ready` or `on_dial_failed`. Never said while
    /// another such dial goes on.
    Dial {
        /// Where.
        target: Target,
    },
    /// Give the dial, or the successor that came of it, up. Nothing is to be reported about it.
    AbandonDial,
    /// No successor could be set up in time: hold new work back, wait for the answers to what is written, for this
    /// long at most, then close the connection and report `on_source_lost`. Reconnect to `reconnect_target`.
    Recycle {
        /// The longest wait.
        hold_max: Duration,
    },
    /// The drain has gone on past the window and the grace after it: close the old connection. The successor
    /// serves; nothing is to be reported.
    Retire,
    /// A handoff that had begun has ended. Said once for each.
    Ended(Ended),
}

/// What is known about a connection that is ready to be the successor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts {
    /// The other end's address, if it has one.
    pub peer: Option<SocketAddr>,
    /// The connection's number on the server, if known.
    pub client_id: Option<i64>,
    /// Whether the server repeated, on this connection, the announcement that led to it. A hint that it is the server
    /// that is being left, and no proof.
    pub replayed: bool,
}

/// What to do with a connection that is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Judgement {
    /// Let it serve, and report `on_cut_over` before anything else is told to the machine.
    CutOver,
    /// It leads to the node that is being left: close it and go on with the old one. There will be another dial.
    SameNode,
    /// Nobody waits for it any more: close it.
    NotWanted,
}

/// Where a handoff stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// No handoff.
    Serving,
    /// Until the moment to dial, the first time or again. The old connection serves.
    Waiting,
    /// A dial goes on. The old connection serves.
    Preparing,
    /// The successor was accepted and does not serve yet.
    Ready,
    /// The successor serves, the old connection has answers to give.
    Draining,
    /// Without a successor: new work is held, and the old connection is about to be closed.
    Recycling,
}

/// How a handoff ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The successor serves, and the old connection is drained, closed or given up.
    Moved,
    /// There was no successor in time; the connection was held, drained and closed in good order.
    Recycled,
    /// The window ended with nothing done. The server is about to close the connection.
    MissedWindow,
    /// The old connection was lost before a successor was ready.
    SourceLost,
    /// The successor was lost while the old connection was drained.
    SuccessorLost,
}

/// A handoff that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// How.
    pub outcome: Outcome,
    /// The number of the last announcement it followed.
    pub seq: Option<u64>,
    /// The successor that the last announcement named.
    pub successor: Option<Address>,
    /// The connection that was left, or was to be.
    pub from: Generation,
    /// The successor, if it ever served.
    pub to: Option<Generation>,
    /// How often another announcement changed the successor.
    pub retargets: u32,
    /// How often a successor was dialled.
    pub dials: u32,
    /// When what happened.
    pub times: Times,
}

/// The moments of a handoff, since the last announcement that it followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// The announcement arrived.
    pub received_at: Instant,
    /// The last dial began.
    pub dialled_at: Option<Instant>,
    /// The successor was accepted.
    pub ready_at: Option<Instant>,
    /// The successor began to serve.
    pub cut_over_at: Option<Instant>,
    /// It was over.
    pub ended_at: Option<Instant>,
}

/// How often what happened, since the machine was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Announcements of a move, of any fate.
    pub announced: u64,
    /// Handoffs begun, by an announcement or from the queue. As many have ended as this says, or one less.
    pub begun: u64,
    /// Announcements that changed the successor.
    pub retargeted: u64,
    /// Announcements queued behind a drain.
    pub queued: u64,
    /// Queued announcements that never began: replaced by a newer one, out of time, or of a connection that was lost.
    pub superseded: u64,
    /// Announcements known already.
    pub duplicates: u64,
    /// Announcements about the past.
    pub stale: u64,
    /// Announcements not followed because there were too many.
    pub too_many: u64,
    /// Dials of a successor.
    pub dials: u64,
    /// Dials that failed, successors lost before they served included.
    pub dials_failed: u64,
    /// Dials given up by the machine.
    pub dials_abandoned: u64,
    /// Dials that reached the node that was being left.
    pub same_node: u64,
    /// Old connections lost, or closed for lack of time, before they were drained.
    pub drains_cut: u64,
    /// Ended as [`Outcome::Moved`].
    pub moved: u64,
    /// Ended as [`Outcome::Recycled`].
    pub recycled: u64,
    /// Ended as [`Outcome::MissedWindow`].
    pub missed_windows: u64,
    /// Ended as [`Outcome::SourceLost`].
    pub sources_lost: u64,
    /// Ended as [`Outcome::SuccessorLost`].
    pub successors_lost: u64,
}

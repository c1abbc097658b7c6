//! What [`crate::Connections`] asks of its driver, and what it tells.

use crate::identity::{ConnId, LinkId, LinkKey, NodeId, Process, Psn, QueuePair};
use crate::wire::Message;

/// Which end of a link this process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// It sent the HELLO that was answered.
    Initiator,
    /// It answered.
    Target,
}

/// Why a link that was ready is not any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DownCause {
    /// A queue pair of it failed here.
    QueuePair,
    /// The peer began a new handshake for it: its own end is gone.
    PeerRebuilds,
    /// The peer has a new life.
    PeerRestarted,
    /// The peer said that it leaves.
    PeerLeft,
    /// This process leaves.
    Leaving,
}

/// One thing for the driver to do or to know, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Dial the node; then [`crate::Connections::dialed`] or [`crate::Connections::closed`] with this connection.
    Dial {
        /// Names the connection from here on.
        conn: ConnId,
        /// Whom.
        node: NodeId,
    },
    /// Send on an open connection.
    Send {
        /// Where.
        conn: ConnId,
        /// What.
        message: Message,
    },
    /// Close the connection after what was sent before. It is forgotten here: say nothing more of it.
    Close {
        /// Which.
        conn: ConnId,
    },
    /// Make queue pairs, one for each number, that begin to send at that number; then [`crate::Connections::made`].
    Offer {
        /// What they belong to.
        link: LinkId,
        /// For whom.
        key: LinkKey,
        /// First packet numbers.
        psns: Vec<Psn>,
    },
    /// As [`Output::Offer`], and let each receive from its counterpart (ready to receive); do not post to them yet. Then
    /// [`crate::Connections::made`].
    Serve {
        /// What they belong to.
        link: LinkId,
        /// For whom.
        key: LinkKey,
        /// The initiator.
        process: Process,
        /// Its queue pairs.
        remote: Vec<QueuePair>,
        /// First packet numbers, one for each of those.
        psns: Vec<Psn>,
    },
    /// Let the queue pairs of the link send (ready to send), then [`crate::Connections::activated`].
    Activate {
        /// Which.
        link: LinkId,
        /// The counterparts, for an initiator, whose queue pairs have not met them yet; empty for a target.
        remote: Vec<QueuePair>,
    },
    /// Take the queue pairs of the link out of use (error state), and destroy them when their work is drained. The
    /// work is the driver's to report.
    Retire {
        /// Which.
        link: LinkId,
    },
    /// The link may be used.
    Ready {
        /// Which.
        link: LinkId,
        /// To whom.
        key: LinkKey,
        /// In which life.
        process: Process,
        /// As which end.
        role: Role,
    },
    /// The link must not be used any more; an [`Output::Retire`] came before this.
    Down {
        /// Which.
        link: LinkId,
        /// To whom.
        key: LinkKey,
        /// Why.
        cause: DownCause,
    },
}

/// Counts since the start, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConnectCounters {
    /// HELLOs sent.
    pub hellos: u64,
    /// Attempts that ended in a link.
    pub linked: u64,
    /// Attempts that failed: refused, timed out, closed, rejected.
    pub failed: u64,
    /// *Busy* answers received.
    pub busy: u64,
    /// HELLOs that gave way to the peer's.
    pub yielded: u64,
    /// Attempts that the breaker put off.
    pub put_off: u64,
    /// Answers that were not to the present HELLO, and were dropped.
    pub stale_replies: u64,
    /// HELLOs received.
    pub asked: u64,
    /// HELLOs that were served.
    pub served: u64,
    /// HELLOs that were told to come back.
    pub refused: u64,
    /// HELLOs of earlier attempts or lives that were dropped.
    pub stale_dropped: u64,
    /// HELLOs that were answered from memory.
    pub repeated: u64,
    /// HELLOs whose sender was gone or had begun anew before its turn came.
    pub spared: u64,
    /// Answered handshakes that nobody confirmed in time.
    pub unconfirmed: u64,
    /// Connections that were silent for too long, or one too many.
    pub silent: u64,
    /// Links that were retired after they had been ready.
    pub down: u64,
    /// Timer calls in which there was nothing to do. A driver that sleeps until
    /// [`crate::Connections::next_timeout`] has none.
    pub idle_wakeups: u64,
}

/// What is held now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConnectSnapshot {
    /// Nodes known.
    pub peers: u32,
    /// Links that are ready.
    pub ready: u32,
    /// Lanes on the way to a link.
    pub connecting: u32,
    /// Permits in use.
    pub permits: u32,
    /// Lanes in line for a permit.
    pub permit_waiters: u32,
    /// Requests of others in service.
    pub serving: u32,
    /// Requests of others that wait.
    pub queued: u32,
    /// Appointments given to others.
    pub tickets: u32,
    /// Open handshake connections.
    pub connections: u32,
}

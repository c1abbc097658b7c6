//! What a card does for the transport.
//!
//! Owns the words between them: the trait [`Verbs`], and why a card is of no use. Does **not** own any card: [`super::Card`] is a real
//! one, and tests have a simulated one.

use std::fmt::Debug;

use towline_transfer_proto::{Opcode, Psn, Qpn, QueuePair};

use crate::memory::MemoryRegion;
use crate::regions::{Access, Range};

/// Work requests of one queue pair at a time; more wait in the transport.
pub const WORK_MAX: usize = 64;

/// Why there is no card, or why it does not do what it should.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RdmaError {
    /// libibverbs is not installed. The operator's to mend.
    #[error("libibverbs cannot be loaded: {reason}")]
    NoLibrary {
        /// What the loader says.
        reason: String,
    },
    /// The library is too old. The operator's to mend.
    #[error("libibverbs has no {symbol}")]
    NoSymbol {
        /// What is missing.
        symbol: &'static str,
    },
    /// The host has no card, or not of this name, or the kernel no support for any. The operator's to mend.
    #[error("there is no RDMA device{}", name.as_deref().map(|name| format!(" named {name}")).unwrap_or_default())]
    NoDevice {
        /// The name that was asked for.
        name: Option<String>,
    },
    /// The card's port is not up. Retryable.
    #[error("port {port} of the RDMA device is not active")]
    PortDown {
        /// The port.
        port: u8,
    },
    /// A call failed: usually a limit of the card or of locked memory.
    #[error("{call}: {reason}")]
    Call {
        /// Which call.
        call: &'static str,
        /// What the system says.
        reason: String,
    },
    /// As many queue pairs as the card's completion queue has room for. Retryable.
    #[error("{pairs} queue pairs are open, which is the limit")]
    Full {
        /// How many.
        pairs: usize,
    },
}

/// Names of registered memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keys {
    /// For our own work requests.
    pub local: u32,
    /// For peers.
    pub remote: u32,
}

/// One slice for a card.
#[derive(Debug)]
pub struct WorkRequest<'a> {
    /// Comes back with its completion.
    pub id: u64,
    /// Which way.
    pub opcode: Opcode,
    /// Our memory. Whoever posts keeps it until the completion, or until the queue pair is destroyed.
    pub local: &'a Range,
    /// The engine's address of it.
    pub local_address: u64,
    /// Its [`Keys::local`].
    pub local_key: u32,
    /// The peer's address.
    pub remote: u64,
    /// Its [`Keys::remote`].
    pub remote_key: u32,
}

/// How a work request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkStatus {
    /// Done at the far end.
    Done,
    /// Our memory is not what was said. The queue pair is broken.
    LocalAccess,
    /// The far end refused it. The queue pair is broken.
    RemoteAccess,
    /// Nobody answered. The queue pair is broken.
    Unanswered,
    /// The queue pair broke before.
    Flushed,
}

/// The end of a work request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkDone {
    /// The queue pair.
    pub qpn: Qpn,
    /// [`WorkRequest::id`].
    pub id: u64,
    /// How.
    pub status: WorkStatus,
}

/// A work request was not posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the queue pair takes no work")]
pub struct NotPosted;

/// A card's port, its queue pairs, and the memory that it may touch.
pub trait Verbs: Debug + Send + Sync + 'static {
    /// A new queue pair, which neither sends nor receives yet. What to tell the peer.
    ///
    /// # Errors
    /// No more, for now or at all.
    fn create(&self, rail: u16, psn: Psn) -> Result<QueuePair, RdmaError>;

    /// Connects it: from now on it receives and sends.
    ///
    /// # Errors
    /// The card refuses; the queue pair is of no use.
    fn connect(&self, own: &QueuePair, remote: &QueuePair) -> Result<(), RdmaError>;

    /// When this returns, nothing of the queue pair touches memory. Its work has no completions any more. Unknown ones are ignored.
    fn destroy(&self, qpn: Qpn);

    /// Lets the card, and peers as `access` says, at memory, under addresses that begin with `base`. The memory is kept until
    /// it is deregistered.
    ///
    /// # Errors
    /// The card or the system refuses.
    fn register(&self, base: u64, memory: &MemoryRegion, access: Access) -> Result<Keys, RdmaError>;

    /// When this returns, peers are refused.
    fn deregister(&self, base: u64);

    /// Posts work; at most [`WORK_MAX`] for one queue pair.
    ///
    /// # Errors
    /// The queue pair is broken, full or not there.
    fn post(&self, qpn: Qpn, request: &WorkRequest<'_>) -> Result<(), NotPosted>;

    /// Waits for completions, without turning in circles. False when the card was stopped.
    fn wait(&self, done: &mut Vec<WorkDone>) -> bool;

    /// Ends the present and every later [`Verbs::wait`].
    fn stop(&self);
}

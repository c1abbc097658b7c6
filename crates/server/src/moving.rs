//! Keys that move to other servers, and payloads that become values.
//!
//! Owns: what the parts of the server share about that, and the thread that does it. Does **not** own the commands
//! (`MIGRATE`, `RESTORE`) nor slots that move as a whole.
//!
//! ```text
//! MIGRATE: worker --order--> mover: window of keys: mark, picture -> socket -> answers: delete here, unmark --reply--> worker
//! RESTORE: worker --payload--> mover: decode --over--> worker: the command again, with the value at hand
//! ```
//!
//! No worker waits for a socket or works on a large value. Small values are written by the mover's thread itself, large ones,
//! and large payloads, on up to [`HEAVY_THREADS`] threads beside it that give way to commands.

mod courier;
mod debts;
mod decoding;
mod marks;
mod peer;
mod picture;
mod pool;
mod thread;

#[cfg(test)]
mod tests;

pub(crate) use decoding::{Decoding, LARGE_PAYLOAD_BYTES};
pub(crate) use thread::run;

use crate::blocking::Waiter;
use crate::shared::Shared;
use debts::Debts;
use marks::Marks;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Threads for what takes long: two, so that one large value does not wait for another, and no more, so that commands keep
/// their cores.
const HEAVY_THREADS: usize = 2;

/// Who a connection is at the target.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Login {
    /// `AUTH2`'s user.
    pub(crate) user: Option<Vec<u8>>,
    pub(crate) password: Vec<u8>,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").finish_non_exhaustive()
    }
}

/// What `MIGRATE` asks for.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) login: Option<Login>,
    /// The database at the target.
    pub(crate) target_db: i64,
    /// The database here.
    pub(crate) db: u8,
    /// For each connect, each write and each answer, as in Redis; not for the whole.
    pub(crate) timeout: Duration,
    /// `COPY`: the keys stay.
    pub(crate) copies: bool,
    /// `REPLACE`: what the target has under these keys goes.
    pub(crate) replaces: bool,
    pub(crate) keys: Vec<Vec<u8>>,
}

/// What the mover's thread is asked to do.
#[derive(Debug)]
pub(crate) enum Errand {
    /// A client's `MIGRATE`, which waits. There is one for each waiting client at most.
    Move(Box<Order>, Arc<Waiter>),
    /// A client's payload, whose command waits. Likewise.
    Decode(Arc<Decoding>),
}

/// What the server's parts share about moving keys.
#[derive(Debug)]
pub(crate) struct Moves {
    pub(crate) marks: Marks,
    debts: Mutex<Debts>,
    is_running: AtomicBool,
    /// Connections to other servers that are kept for the next order.
    pub(crate) idle_sockets: AtomicUsize,
    errands: UnboundedSender<Errand>,
    /// Until the thread takes it.
    receiver: Mutex<Option<UnboundedReceiver<Errand>>>,
}

impl Default for Moves {
    fn default() -> Self {
        let (errands, receiver) = unbounded_channel();
        Self {
            marks: Marks::default(),
            debts: Mutex::default(),
            is_running: AtomicBool::new(false),
            idle_sockets: AtomicUsize::new(0),
            errands,
            receiver: Mutex::new(Some(receiver)),
        }
    }
}

impl Moves {
    /// Asks for something. After the thread's end nobody is there to do it, and the server ends as well.
    pub(crate) fn send(&self, errand: Errand) {
        let _ = self.errands.send(errand);
    }

    /// Whether there is a thread for errands; a server that is put together for a test may have none.
    pub(crate) fn is_running(&self) -> bool {
        self.is_running.load(Ordering::Acquire)
    }

    /// Once after the data set was loaded, before clients are served: which keys the server before this one had sent.
    pub(crate) fn recall(&self, shared: &Shared) {
        *self.debts() = Debts::recall(shared);
    }

    /// The mover's alone, once the server serves.
    fn debts(&self) -> MutexGuard<'_, Debts> {
        self.debts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_receiver(&self) -> Option<UnboundedReceiver<Errand>> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

//! Requests, batches and how they end.
//!
//! Owns: what an application submits and waits for. Does **not** own the work itself ([`crate::peer`] has it).
//!
//! A batch goes to one segment. It can be waited for by a thread ([`Batch::wait`]) and by a task (it is a [`Future`]); both may be
//! given up at any time without any effect on the work. A batch that is dropped goes on.

use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant as Clock};

use towline_transfer_proto::{BatchId, Buffers, Class, Failure, Opcode, Outcome, Repeat};

use crate::kick::Kick;
use crate::peer::Peer;
use crate::regions::Registered;
use crate::segment::RemoteRegion;

/// One transfer between registered memory here and a segment's memory there.
#[derive(Debug, Clone)]
#[must_use]
pub struct Request {
    pub(crate) opcode: Opcode,
    pub(crate) local: Registered,
    pub(crate) local_offset: u64,
    pub(crate) remote: RemoteRegion,
    pub(crate) remote_offset: u64,
    pub(crate) length: u64,
    pub(crate) class: Class,
    pub(crate) timeout: Option<Duration>,
    pub(crate) repeat: Repeat,
}

impl Request {
    /// Copies `length` bytes at `local_offset` of our region to `remote_offset` of the peer's region.
    pub fn write(
        local: &Registered,
        local_offset: u64,
        remote: &RemoteRegion,
        remote_offset: u64,
        length: u64,
    ) -> Self {
        Self::new(Opcode::Write, local, local_offset, remote, remote_offset, length)
    }

    /// Copies `length` bytes at `remote_offset` of the peer's region to `local_offset` of ours.
    pub fn read(
        local: &Registered,
        local_offset: u64,
        remote: &RemoteRegion,
        remote_offset: u64,
        length: u64,
    ) -> Self {
        Self::new(Opcode::Read, local, local_offset, remote, remote_offset, length)
    }

    fn new(
        opcode: Opcode,
        local: &Registered,
        local_offset: u64,
        remote: &RemoteRegion,
        remote_offset: u64,
        length: u64,
    ) -> Self {
        Self {
            opcode,
            local: local.clone(),
            local_offset,
            remote: remote.clone(),
            remote_offset,
            length,
            class: Class::High,
            timeout: None,
            repeat: Repeat::Allowed,
        }
    }

    /// How urgent it is. Default [`Class::High`].
    pub fn class(mut self, class: Class) -> Self {
        self.class = class;
        self
    }

    /// After this, counted from the submission, it ends as [`Status::TimedOut`]. Default: never.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// A slice of which nobody knows whether it was done is not repeated, and the request ends as
    /// [`Failure::Unknown`]. Default: it is repeated.
    pub fn at_most_once(mut self) -> Self {
        self.repeat = Repeat::Never;
        self
    }
}

/// Where one request of a batch stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Status {
    /// It waits or is under way.
    Pending,
    /// Every byte is applied at its destination.
    Completed,
    /// See the reason. What was written before stays written.
    Failed(Failure),
    /// The peer that the segment was opened at is gone, and another life of it has come. Open the segment again.
    PeerRestarted,
    /// Its time was over. What was written before stays written.
    TimedOut,
    /// It was given up, by [`Batch::cancel`] or since the engine shuts down.
    Canceled,
}

impl From<Outcome> for Status {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Completed => Self::Completed,
            Outcome::Failed(failure) => Self::Failed(failure),
            Outcome::TimedOut => Self::TimedOut,
            Outcome::Canceled => Self::Canceled,
        }
    }
}

/// How a batch ended: each request's status, in the order of submission, none of them pending, all memory drained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchResult {
    /// One for each request.
    pub statuses: Vec<Status>,
}

impl BatchResult {
    /// Every request completed. If the batch has a notification, it is on its way.
    pub fn is_complete(&self) -> bool {
        self.statuses.iter().all(|status| *status == Status::Completed)
    }
}

/// A batch that was submitted. Dropping it changes nothing.
#[derive(Debug)]
#[must_use]
pub struct Batch {
    pub(crate) id: BatchId,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) peer: Weak<Peer>,
}

impl Batch {
    /// Where a request stands, by its position. `None` for a position that the batch does not have.
    pub fn status(&self, index: usize) -> Option<Status> {
        self.ledger.lock().statuses.get(index).copied()
    }

    /// Whether a request's memory may still be touched by a transfer. It can be while a request has its status already: after
    /// a timeout, and after a cancel. The engine keeps registered memory alive meanwhile; do not reuse its bytes.
    pub fn buffers(&self, index: usize) -> Option<Buffers> {
        let state = self.ledger.lock();
        state.lent.get(index).map(|is_lent| if *is_lent { Buffers::Quarantined } else { Buffers::Drained })
    }

    /// Whether every request has its status and all memory is drained.
    pub fn is_done(&self) -> bool {
        self.ledger.lock().is_done
    }

    /// Waits until the batch is done. Meanwhile the thread reads what the peer sends, if nobody else has to.
    pub fn wait(&self) -> BatchResult {
        self.drive(None);
        let mut state = self.ledger.lock();
        while !state.is_done {
            state = self.ledger.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.result()
    }

    /// Waits until the batch is done, or until so much time is over: then `None`, and the batch goes on.
    pub fn wait_for(&self, timeout: Duration) -> Option<BatchResult> {
        let until = Clock::now() + timeout;
        self.drive(Some(until));
        let mut state = self.ledger.lock();
        while !state.is_done {
            let left = until.saturating_duration_since(Clock::now());
            if left.is_zero() {
                return None;
            }
            state = self.ledger.done.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Some(state.result())
    }

    fn drive(&self, until: Option<Clock>) {
        let Some(kick) = Kick::own() else { return };
        let lane = self.peer.upgrade().and_then(|peer| peer.lane_to_drive());
        if let Some(lane) = lane.filter(|_| self.ledger.kick_at_end(&kick)) {
            lane.drive(&kick, until, &|| self.ledger.lock().is_done);
        }
    }

    /// Gives up what has not ended. It has its status at once; the batch is done when the memory is drained, after about a second
    /// at the latest.
    pub fn cancel(&self) {
        if let Some(peer) = self.peer.upgrade() {
            peer.cancel(self.id, self.ledger.len());
        }
    }
}

/// # Cancel safety
/// Dropping the future changes nothing; the batch goes on.
impl Future for Batch {
    type Output = BatchResult;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<BatchResult> {
        let mut state = self.ledger.lock();
        if state.is_done {
            return Poll::Ready(state.result());
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

/// What is known of a batch. Written by whoever hears of it, read by its owner.
#[derive(Debug)]
pub(crate) struct Ledger {
    state: Mutex<LedgerState>,
    done: Condvar,
}

#[derive(Debug)]
pub(crate) struct LedgerState {
    statuses: Vec<Status>,
    lent: Vec<bool>,
    is_done: bool,
    waker: Option<Waker>,
    /// Threads that wait for a socket as well. Each waits for one batch, so there are as many as threads.
    kicks: Vec<Arc<Kick>>,
}

impl LedgerState {
    fn result(&self) -> BatchResult {
        BatchResult { statuses: self.statuses.clone() }
    }
}

impl Ledger {
    pub(crate) fn new(tasks: usize) -> Self {
        let state = LedgerState {
            statuses: vec![Status::Pending; tasks],
            lent: vec![true; tasks],
            is_done: false,
            waker: None,
            kicks: Vec::new(),
        };
        Self { state: Mutex::new(state), done: Condvar::new() }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, LedgerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many requests.
    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.lock().statuses.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn ended(&self, index: u32, status: Status, buffers: Buffers) {
        let mut state = self.lock();
        state.statuses[index as usize] = status;
        state.lent[index as usize] = buffers == Buffers::Quarantined;
    }

    pub(crate) fn drained(&self, index: u32) {
        self.lock().lent[index as usize] = false;
    }

    /// The thread is kicked when the batch is done. False if it is.
    fn kick_at_end(&self, kick: &Arc<Kick>) -> bool {
        let mut state = self.lock();
        if !state.is_done {
            state.kicks.retain(|known| !Arc::ptr_eq(known, kick));
            state.kicks.push(kick.clone());
        }
        !state.is_done
    }

    pub(crate) fn finish(&self) {
        let mut state = self.lock();
        state.is_done = true;
        let waker = state.waker.take();
        let kicks = std::mem::take(&mut state.kicks);
        drop(state);
        self.done.notify_all();
        kicks.iter().for_each(|kick| kick.kick());
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

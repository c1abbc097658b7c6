//! How many dials this process has in flight, in all and to each target.
//!
//! Owns: the permits, the line of those who wait for one, and the gap between dials of one target. Does **not** own
//! sockets, timers or a runtime: a waiter is a `std` future that is woken when its turn comes, and polls nothing
//! meanwhile. Make one limiter for a process and give everybody who dials a clone; two limiters bound nothing.
//!
//! A permit covers the dial *and* the handshake, and ends with either outcome. A wait for a permit is a state of the
//! dial, not a failed attempt: it costs no retry.

mod core;

pub use self::core::{
    LimiterCore, LimiterSnapshot, RequestId, Requested, TargetSnapshot, UnknownRequest, WaitersFull,
};

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use towline_sansio::Instant;

/// The limits of a [`DialLimiter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimiterConfig {
    /// Dials in flight of the whole process. More than zero.
    pub per_process: u32,
    /// Dials in flight to one target. More than zero.
    pub per_target: u32,
    /// Requests that may wait. More than zero.
    pub waiters_max: u32,
    /// The least time between the starts of two dials of one target; zero turns it off. It bounds the dials per
    /// second where the number in flight does not: a refused dial ends in microseconds.
    pub target_gap: Duration,
}

impl LimiterConfig {
    /// The defaults of clients.
    ///
    /// * `per_process` 16: even when a handshake takes 100 ms, 160 connections a second come up, while the TLS work in
    ///   flight stays small beside everything else that the process does.
    /// * `per_target` 8: what a listener with the smallest usual backlog (128) takes from 16 processes at once.
    /// * `waiters_max` 65,536: more connections than one process has file descriptors for; about 200 bytes each.
    /// * `target_gap` 0.5 ms: at most 21 dials of a target start in any 10 ms, and 500 connections still need only
    ///   a quarter of a second.
    pub const CLIENT: Self =
        Self { per_process: 16, per_target: 8, waiters_max: 65_536, target_gap: Duration::from_micros(500) };

    /// Checks the limits.
    ///
    /// # Errors
    /// The first limit that is zero: nothing would ever be dialled. The configuration's author's fault.
    pub fn validate(&self) -> Result<(), LimiterConfigError> {
        for (limit, name) in [
            (self.per_process, "per_process"),
            (self.per_target, "per_target"),
            (self.waiters_max, "waiters_max"),
        ] {
            if limit == 0 {
                return Err(LimiterConfigError::NotPositive { limit: name });
            }
        }
        Ok(())
    }
}

impl Default for LimiterConfig {
    fn default() -> Self {
        Self::CLIENT
    }
}

/// Why a [`LimiterConfig`] was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimiterConfigError {
    /// The limit is zero, which would block for ever.
    #[error("the dial limit {limit} is zero; it must be positive")]
    NotPositive {
        /// The field's name.
        limit: &'static str,
    },
}

/// Gives out the permits to dial. Cheap to clone; all clones share the limits.
///
/// The order is first come, first served among those who could go: who waits for a full target does not hold up
/// others. `K` names a target: an address, a node, whatever one listener is.
///
/// ```
/// use std::sync::Arc;
/// use towline_admission::{DialLimiter, LimiterConfig};
///
/// let limiter: DialLimiter<Arc<str>> = DialLimiter::new(LimiterConfig { per_target: 1, ..LimiterConfig::CLIENT })?;
/// let permit = limiter.try_acquire("cache:6379".into()).expect("nobody dials yet");
/// assert!(limiter.try_acquire("cache:6379".into()).is_none());
/// drop(permit); // Connected, or failed.
/// assert!(limiter.try_acquire("cache:6379".into()).is_some());
/// # Ok::<(), towline_admission::LimiterConfigError>(())
/// ```
pub struct DialLimiter<K: Ord + Clone = Arc<str>> {
    shared: Arc<Mutex<Shared<K>>>,
}

#[derive(Debug)]
struct Shared<K> {
    core: LimiterCore<K>,
    /// One for each waiter that has been polled.
    wakers: BTreeMap<RequestId, Waker>,
}

impl<K: Ord + Clone> DialLimiter<K> {
    /// A limiter with no permit in use.
    ///
    /// # Errors
    /// As [`LimiterConfig::validate`].
    pub fn new(config: LimiterConfig) -> Result<Self, LimiterConfigError> {
        let shared = Shared { core: LimiterCore::new(config)?, wakers: BTreeMap::new() };
        Ok(Self { shared: Arc::new(Mutex::new(shared)) })
    }

    /// Waits for a permit to dial `target`. The place in line is taken at the first poll.
    ///
    /// The wait has no time limit of its own; bound it by the deadline of whatever needs the connection.
    ///
    /// # Errors
    /// The future yields [`WaitersFull`] if too many wait already.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the line at once. A permit that was granted but not yet taken goes to the next.
    pub fn acquire(&self, target: K) -> Acquire<K> {
        Acquire { limiter: self.clone(), state: AcquireState::New(target) }
    }

    /// A permit if one is free now. Overtakes nobody.
    pub fn try_acquire(&self, target: K) -> Option<DialPermit<K>> {
        let id = self.lock().core.try_request(target)?;
        Some(self.permit(id))
    }

    /// What is held and what waits, now.
    pub fn snapshot(&self) -> LimiterSnapshot<K> {
        self.lock().core.snapshot()
    }

    /// The limits.
    pub fn config(&self) -> LimiterConfig {
        *self.lock().core.config()
    }

    fn permit(&self, id: RequestId) -> DialPermit<K> {
        DialPermit { limiter: self.clone(), id }
    }

    /// A panic under the lock can only come from the `Ord` of a target. Giving permits back must go on then: a
    /// limiter that is stuck would end all dialling of the process.
    fn lock(&self) -> MutexGuard<'_, Shared<K>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a request and wakes who got its place. Wakers are user code: they run and die outside the lock.
    fn end(&self, id: RequestId) {
        let mut shared = self.lock();
        let own_waker = shared.wakers.remove(&id);
        // An unknown id cannot come here: only a future or a permit calls this, each once.
        let next = shared.core.cancel(id).unwrap_or(None);
        let next_waker = next.and_then(|next| shared.wakers.remove(&next));
        drop(shared);
        drop(own_waker);
        if let Some(waker) = next_waker {
            waker.wake();
        }
    }
}

impl<K: Ord + Clone> Clone for DialLimiter<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Ord + Clone> fmt::Debug for DialLimiter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shared = self.lock();
        let snapshot = shared.core.snapshot();
        f.debug_struct("DialLimiter")
            .field("config", shared.core.config())
            .field("in_use", &snapshot.in_use)
            .field("waiting", &snapshot.waiting)
            .finish()
    }
}

/// The right to have one dial in flight; dropping it gives the right to the next in line.
///
/// Let it live in the attempt itself, so that no way out of the attempt, panic and cancellation included, keeps it.
#[must_use = "a permit that is dropped at once limits nothing"]
pub struct DialPermit<K: Ord + Clone = Arc<str>> {
    limiter: DialLimiter<K>,
    id: RequestId,
}

impl<K: Ord + Clone> DialPermit<K> {
    /// When to start the dial: `now`, or later to keep [`LimiterConfig::target_gap`] to the previous dial of this
    /// target. Call it once for each dial, and hold the permit while waiting; with the defaults the wait is at most
    /// `per_target * target_gap` = 4 ms, plus what cancelled dials had booked.
    pub fn start_at(&self, now: Instant) -> Instant {
        // The permit is the proof that the id is known.
        self.limiter.lock().core.start(self.id, now).unwrap_or(now)
    }
}

impl<K: Ord + Clone> Drop for DialPermit<K> {
    fn drop(&mut self) {
        self.limiter.end(self.id);
    }
}

impl<K: Ord + Clone> fmt::Debug for DialPermit<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DialPermit").field(&self.id).finish()
    }
}

/// The future of [`DialLimiter::acquire`].
#[must_use = "futures do nothing unless polled"]
pub struct Acquire<K: Ord + Clone = Arc<str>> {
    limiter: DialLimiter<K>,
    state: AcquireState<K>,
}

enum AcquireState<K> {
    New(K),
    Waiting(RequestId),
    Done,
}

// Nothing in it is pinned: it is plain data, whatever the target's type.
impl<K: Ord + Clone> Unpin for Acquire<K> {}

impl<K: Ord + Clone> Future for Acquire<K> {
    type Output = Result<DialPermit<K>, WaitersFull>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let mut shared = this.limiter.lock();
        let id = match std::mem::replace(&mut this.state, AcquireState::Done) {
            AcquireState::New(target) => match shared.core.request(target) {
                Err(full) => return Poll::Ready(Err(full)),
                Ok(requested) => requested.id(),
            },
            AcquireState::Waiting(id) => id,
            // Polled after it was done, against the contract of `Future`: there is nothing left to give.
            AcquireState::Done => return Poll::Pending,
        };
        if shared.core.is_granted(id) {
            drop(shared);
            return Poll::Ready(Ok(this.limiter.permit(id)));
        }
        this.state = AcquireState::Waiting(id);
        // A waker runs user code when cloned or dropped, but none that could come back here: `std` asks for cheap
        // reference counting. The old one is still dropped outside, as at the end of a request.
        let old = match shared.wakers.get(&id) {
            Some(waker) if waker.will_wake(context.waker()) => None,
            _ => shared.wakers.insert(id, context.waker().clone()),
        };
        drop(shared);
        drop(old);
        Poll::Pending
    }
}

impl<K: Ord + Clone> Drop for Acquire<K> {
    fn drop(&mut self) {
        if let AcquireState::Waiting(id) = self.state {
            self.limiter.end(id);
        }
    }
}

impl<K: Ord + Clone> fmt::Debug for Acquire<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            AcquireState::New(_) => "not polled".to_owned(),
            AcquireState::Waiting(id) => id.to_string(),
            AcquireState::Done => "done".to_owned(),
        };
        f.debug_tuple("Acquire").field(&state).finish()
    }
}

#[cfg(test)]
mod tests;

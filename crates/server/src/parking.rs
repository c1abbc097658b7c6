//! Commands that wait until something that is on its way has arrived.
//!
//! Owns: the list of those who wait at one such thing, and waking them. Does **not** own what is on its way (see
//! [`crate::moving`]) nor running the commands again (their connections do).

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// Who waits is known by a number: a client's id, or one of these, which no client reaches.
static NEXT_TASK: AtomicU64 = AtomicU64::new(1 << 63);

/// A key whose waiters were not served because the command of one of them has to wait here.
pub(crate) type Deferred = (u8, Box<[u8]>);

#[derive(Debug, Default)]
struct State {
    is_over: bool,
    wakers: BTreeMap<u64, Waker>,
    deferred: Vec<Deferred>,
}

/// A place where commands wait for one thing, without a thread and without looking again and again. What holds them back is
/// found under the slot's lock and taken away under it, before [`Parking::end`]: so whoever finds it is woken.
#[derive(Debug, Default)]
pub(crate) struct Parking(Mutex<State>);

impl Parking {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the waiting is over; if not, `waker` is woken when it is. `who` is the id of the client that waits.
    pub(crate) fn is_over(&self, who: u64, waker: &Waker) -> bool {
        let mut state = self.state();
        if !state.is_over {
            state.wakers.insert(who, waker.clone());
        }
        state.is_over
    }

    /// Nobody wakes this client any more: it has gone.
    pub(crate) fn forget(&self, who: u64) {
        self.state().wakers.remove(&who);
    }

    /// Waits until it is over.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn over(&self) {
        let who = NEXT_TASK.fetch_add(1, Ordering::Relaxed);
        poll_fn(|cx| if self.is_over(who, cx.waker()) { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    /// The waiters of this key could not be served; [`Parking::end`] tells.
    pub(crate) fn defer(&self, db: u8, key: &[u8]) {
        let mut state = self.state();
        if !state.deferred.iter().any(|(known_db, known)| (*known_db, &**known) == (db, key)) {
            state.deferred.push((db, key.into()));
        }
    }

    /// Ends the waiting of all, and says whose waiters are to be looked at again. The caller holds no slot.
    pub(crate) fn end(&self) -> Vec<Deferred> {
        let mut state = self.state();
        state.is_over = true;
        let wakers = std::mem::take(&mut state.wakers);
        let deferred = std::mem::take(&mut state.deferred);
        drop(state);
        wakers.into_values().for_each(Waker::wake);
        deferred
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn all_are_woken_once_and_who_comes_late_does_not_wait() {
        let (parking, count) = (Parking::default(), Arc::new(Count::default()));
        let waker = Waker::from(Arc::clone(&count));
        assert!(!parking.is_over(1, &waker));
        assert!(!parking.is_over(1, &waker), "asking again is no second wait");
        assert!(!parking.is_over(2, &waker));
        assert!(!parking.is_over(3, &waker));
        parking.forget(3);
        parking.defer(0, b"k");
        parking.defer(0, b"k");
        assert_eq!(parking.end(), [(0, Box::from(*b"k"))]);
        assert_eq!(count.0.load(Ordering::Relaxed), 2);
        assert!(parking.is_over(4, &waker));
        assert!(parking.end().is_empty());
    }
}

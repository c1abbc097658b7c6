//! One value that somebody will have, for threads and for tasks.
//!
//! Owns the waiting. Does **not** own what is waited for.

use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant as Clock};

#[derive(Debug)]
struct State<T> {
    value: Option<T>,
    waker: Option<Waker>,
}

/// The side that keeps the promise. A clone keeps the same one; the first value counts.
#[derive(Debug)]
pub(crate) struct Promise<T> {
    shared: Arc<(Mutex<State<T>>, Condvar)>,
}

impl<T> Clone for Promise<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

/// The side that waits. A [`Future`] as well.
#[derive(Debug)]
pub(crate) struct Promised<T> {
    shared: Arc<(Mutex<State<T>>, Condvar)>,
}

pub(crate) fn promise<T>() -> (Promise<T>, Promised<T>) {
    let shared = Arc::new((Mutex::new(State { value: None, waker: None }), Condvar::new()));
    (Promise { shared: shared.clone() }, Promised { shared })
}

fn lock<T>(shared: &(Mutex<State<T>>, Condvar)) -> MutexGuard<'_, State<T>> {
    shared.0.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> Promise<T> {
    pub(crate) fn keep(&self, value: T) {
        let mut state = lock(&self.shared);
        if state.value.is_none() {
            state.value = Some(value);
        }
        let waker = state.waker.take();
        drop(state);
        self.shared.1.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Promised<T> {
    /// The value, or `None` after so much time.
    pub(crate) fn wait_for(&self, timeout: Duration) -> Option<T> {
        let until = Clock::now() + timeout;
        let mut state = lock(&self.shared);
        loop {
            if let Some(value) = state.value.take() {
                return Some(value);
            }
            let left = until.saturating_duration_since(Clock::now());
            if left.is_zero() {
                return None;
            }
            state = self.shared.1.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl<T> Future for Promised<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut state = lock(&self.shared);
        match state.value.take() {
            Some(value) => Poll::Ready(value),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

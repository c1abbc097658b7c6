//! A request for subscriptions that waits for the server's confirmation.
//!
//! Owns: waiting, and taking the names back when nobody waits any more. Does **not** own what is requested.

use super::{Subscription, wake_owner};
use crate::Error;
use std::task::{Context, Poll, Waker};

/// A request that is not settled. Dropping it takes the names back; once it is settled there are none to take back.
pub(super) struct Pending<'a>(pub(super) &'a Subscription);

impl Pending<'_> {
    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let Subscription { engine, id, .. } = self.0;
        engine.lock().bridge.poll_subscribed(*id, |left| renewed(left, cx))
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        let mut state = self.0.engine.lock();
        state.bridge.cancel_subscribe(self.0.id);
        wake_owner(state);
    }
}

/// The waker to leave behind: the one that was there if it does.
pub(super) fn renewed(left: Option<Waker>, cx: &Context<'_>) -> Waker {
    match left {
        Some(waker) if waker.will_wake(cx.waker()) => waker,
        _ => cx.waker().clone(),
    }
}

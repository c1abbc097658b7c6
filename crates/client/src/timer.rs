//! When the owner of a connection is woken by time.
//!
//! Owns the sleeping. Does not own what is due: the bridge says when.

use std::future::Future;
use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use tokio::time::Sleep;
use towline_sansio::Instant;

use crate::clock;

/// The one timer of an engine.
pub(crate) struct Timer {
    sleep: Pin<Box<Sleep>>,
    at: Option<Instant>,
}

impl Timer {
    pub(crate) fn new() -> Self {
        Self { sleep: Box::pin(tokio::time::sleep(Duration::ZERO)), at: None }
    }

    /// When [`Timer::arm`] with `at` will wake the task.
    pub(crate) fn until(&self, at: Option<Instant>) -> Option<Instant> {
        self.at.into_iter().chain(at).min()
    }

    /// Sees to it that the task is woken at `at` or before. A timer that is set to an earlier time stays: it is cheaper
    /// to wake up once too early than to move it with every reply.
    pub(crate) fn arm(&mut self, at: Option<Instant>, cx: &mut Context<'_>) {
        let Some(at) = at else { return };
        if self.at.is_none_or(|armed| at < armed) {
            self.sleep.as_mut().reset(clock::wall(at).into());
            self.at = Some(at);
        }
        if self.at.is_some() && self.sleep.as_mut().poll(cx).is_ready() {
            self.at = None;
            cx.waker().wake_by_ref();
        }
    }
}

//! What the client itself says of its handoff, with the times at which it was heard.
//!
//! Owns the listening. Does not own the events, which are the client's.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::task::AbortHandle;
use towline_client::{Client, Event};

use super::director::Happening;

/// Steps that are kept: a client that goes on and on has said enough.
const STEPS_MAX: usize = 24;

/// The label of all of them.
pub(super) const LABEL: &str = "client";

/// Listens until it is finished or dropped.
#[derive(Debug)]
pub(super) struct Steps {
    heard: Arc<Mutex<Vec<Happening>>>,
    listening: AbortHandle,
}

impl Steps {
    /// Listens to one client; the others of a run do the same at about the same time.
    pub(super) fn listen(client: &Client, start: Instant) -> Self {
        let (heard, mut events) = (Arc::new(Mutex::new(Vec::new())), client.events());
        let steps = Arc::clone(&heard);
        let listening = tokio::spawn(async move {
            while let Some(event) = events.next().await {
                let is_step = matches!(
                    event,
                    Event::Handoff(_)
                        | Event::Lost { .. }
                        | Event::DialFailed { .. }
                        | Event::HandshakeFailed { .. }
                );
                let mut steps = steps.lock().unwrap_or_else(PoisonError::into_inner);
                if is_step && steps.len() < STEPS_MAX {
                    steps.push(Happening::new(start.elapsed(), LABEL, event.to_string()));
                }
            }
        });
        Self { heard, listening: listening.abort_handle() }
    }

    /// What was heard.
    pub(super) fn finish(self) -> Vec<Happening> {
        std::mem::take(&mut *self.heard.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

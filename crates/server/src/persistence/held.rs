//! Connections whose replies wait for the log.
//!
//! Owns: each worker's list of them, and waking them once what they wait for is durable. Does **not** own the replies (see
//! [`crate::output`]) nor what is durable (see [`super::gate`]).
//!
//! The appender tells each worker that has something on its list, once for each sync; the worker wakes its own
//! connections. Nothing here is shared by commands of several workers.

use super::gate::Gate;
use crate::connection::Desk;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::task::Waker;
use tokio::sync::Notify;

#[derive(Debug, Default)]
struct Release {
    /// Something is on the worker's list.
    is_awaited: AtomicBool,
    bell: Notify,
}

/// The way from the appender to the workers.
#[derive(Debug)]
pub(crate) struct Releases(Box<[Release]>);

impl Releases {
    /// For so many workers.
    pub(crate) fn new(workers: usize) -> Self {
        Self((0..workers).map(|_| Release::default()).collect())
    }

    /// Lets the workers look what need no longer wait. Called after the gate was told.
    pub(crate) fn ring(&self) {
        // Either the worker sees what the gate was told, or its list is seen here.
        fence(Ordering::SeqCst);
        for release in &self.0 {
            if release.is_awaited.load(Ordering::Relaxed) && release.is_awaited.swap(false, Ordering::Relaxed)
            {
                release.bell.notify_one();
            }
        }
    }

    /// Says that the worker waits to be told; what has happened before is not told.
    fn await_ring(&self, worker: usize) {
        self.0[worker].is_awaited.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }
}

/// The connections of one worker whose replies wait.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// Up to which position each waits.
    waiting: Vec<(u64, Waker)>,
}

impl Held {
    /// Wakes the connection once what is told of `position` may be sent; at once if it may be by now.
    pub(crate) fn add(
        &mut self,
        releases: &Releases,
        gate: &Gate,
        worker: usize,
        position: u64,
        waker: &Waker,
    ) {
        self.waiting.push((position, waker.clone()));
        releases.await_ring(worker);
        if !gate.holds(position) {
            self.release(releases, gate, worker);
        }
    }

    /// Wakes those that need no longer wait.
    fn release(&mut self, releases: &Releases, gate: &Gate, worker: usize) {
        loop {
            self.waiting.retain(|(position, waker)| {
                let is_held = gate.holds(*position);
                if !is_held {
                    waker.wake_by_ref();
                }
                is_held
            });
            if self.waiting.is_empty() {
                return;
            }
            releases.await_ring(worker);
            if self.waiting.iter().all(|(position, _)| gate.holds(*position)) {
                return;
            }
        }
    }
}

/// Wakes a worker's connections whenever it is told to.
pub(crate) async fn run(desk: Rc<RefCell<Desk>>) {
    let (shared, worker) = {
        let local = &desk.borrow().local;
        (Arc::clone(&local.shared), local.worker)
    };
    let persistence = &shared.persistence;
    loop {
        persistence.releases.0[worker].bell.notified().await;
        desk.borrow_mut().local.held.release(&persistence.releases, &persistence.gate, worker);
    }
}

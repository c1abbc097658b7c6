//! What all parts of an engine have in common.
//!
//! Owns: the clock, the registered regions, the inbox of notifications, and the mailbox of the control thread. None of it is
//! on the path of data but the regions, which are read without a lock.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant as Monotonic};

use towline_sansio::Instant;
use towline_transfer_proto::{
    Delivery, Inbox, InboxConfig, LinkId, NodeId, Notification as Numbered, Process,
};

use crate::clock::Clock;
use crate::metrics::Links;
use crate::peer::Peer;
use crate::poller::Poller;
use crate::promise::Promise;
use crate::regions::Regions;

/// What the control thread is asked to do. Each peer has at most a few of them in the mailbox: they follow changes of its state.
#[derive(Debug)]
pub(crate) enum Command {
    /// Work waits for a link.
    Want(Arc<Peer>),
    /// No work waits any more.
    Unwant(NodeId),
    /// Nobody here needs the link any more: end it.
    Close(NodeId),
    /// A link's rail is broken.
    Failed(LinkId),
    /// The link to this peer is given up, for its memory is quarantined too long.
    Flush(NodeId),
    /// Look at this peer's deadlines then.
    Arm(Arc<Peer>, Instant),
    /// How are the links?
    Measure(Promise<Links>),
    /// End all links, then yourself.
    Leave,
}

#[derive(Debug)]
pub(crate) struct Mailbox {
    commands: Mutex<VecDeque<Command>>,
    pub(crate) poller: Poller,
}

impl Mailbox {
    pub(crate) fn new(poller: Poller) -> Self {
        Self { commands: Mutex::default(), poller }
    }

    pub(crate) fn send(&self, command: Command) {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner).push_back(command);
        self.poller.wake();
    }

    pub(crate) fn take(&self) -> VecDeque<Command> {
        std::mem::take(&mut *self.commands.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[derive(Debug)]
struct Arrivals {
    inbox: Inbox,
    /// Whoever was refused for lack of room is told when there is some.
    refused: Vec<Arc<Peer>>,
    waker: Option<Waker>,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) me: Process,
    pub(crate) regions: Arc<Regions>,
    pub(crate) mailbox: Mailbox,
    pub(crate) is_closing: AtomicBool,
    pub(crate) checksums: bool,
    /// Bytes of slices that were applied, here and there.
    pub(crate) bytes_in: AtomicU64,
    pub(crate) bytes_out: AtomicU64,
    /// Requests of peers that were refused.
    pub(crate) refusals: AtomicU64,
    /// Slices whose sum was wrong.
    pub(crate) corrupt: AtomicU64,
    arrivals: Mutex<Arrivals>,
    arrived: Condvar,
}

impl Shared {
    pub(crate) fn new(
        me: Process,
        regions: Arc<Regions>,
        mailbox: Mailbox,
        inbox: InboxConfig,
        checksums: bool,
    ) -> Self {
        let arrivals = Arrivals { inbox: Inbox::new(inbox), refused: Vec::new(), waker: None };
        Self {
            clock: Clock::new(),
            me,
            regions,
            mailbox,
            is_closing: AtomicBool::new(false),
            checksums,
            bytes_in: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
            refusals: AtomicU64::new(0),
            corrupt: AtomicU64::new(0),
            arrivals: Mutex::new(arrivals),
            arrived: Condvar::new(),
        }
    }

    pub(crate) fn now(&self) -> Instant {
        self.clock.now()
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    fn arrivals(&self) -> MutexGuard<'_, Arrivals> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A notification came. The number to acknowledge, if any.
    pub(crate) fn deliver(&self, peer: &Arc<Peer>, from: Process, notification: Numbered) -> Option<u64> {
        let number = notification.number;
        let mut arrivals = self.arrivals();
        match arrivals.inbox.received(from, notification) {
            Delivery::Taken => {
                let waker = arrivals.waker.take();
                drop(arrivals);
                self.arrived.notify_one();
                if let Some(waker) = waker {
                    waker.wake();
                }
                Some(number)
            }
            Delivery::Repeated { last } => Some(last),
            Delivery::OutOfOrder => None,
            Delivery::Full => {
                if !arrivals.refused.iter().any(|refused| refused.node() == peer.node()) {
                    arrivals.refused.push(peer.clone());
                }
                None
            }
        }
    }

    /// The oldest notification, if there is one; otherwise the waker is woken by the next.
    pub(crate) fn take_notification(&self, waker: Option<&Waker>) -> Option<(Process, Vec<u8>)> {
        let mut arrivals = self.arrivals();
        let taken = arrivals.inbox.take();
        if taken.is_none() {
            arrivals.waker = waker.cloned();
            return None;
        }
        self.say_room(arrivals);
        taken
    }

    /// Waits for a notification, or until the engine closes.
    pub(crate) fn wait_notification(&self, timeout: Duration) -> Option<(Process, Vec<u8>)> {
        let until = Monotonic::now() + timeout;
        let mut arrivals = self.arrivals();
        loop {
            if let Some(taken) = arrivals.inbox.take() {
                self.say_room(arrivals);
                return Some(taken);
            }
            let left = until.saturating_duration_since(Monotonic::now());
            if left.is_zero() || self.is_closing() {
                return None;
            }
            arrivals = self.arrived.wait_timeout(arrivals, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// There is room again for those who were refused.
    fn say_room(&self, mut arrivals: MutexGuard<'_, Arrivals>) {
        let refused = std::mem::take(&mut arrivals.refused);
        drop(arrivals);
        refused.iter().for_each(|peer| peer.ask_again());
    }

    /// The engine closes: nobody waits any more.
    pub(crate) fn close(&self) {
        self.is_closing.store(true, Ordering::Release);
        let mut arrivals = self.arrivals();
        let waker = arrivals.waker.take();
        arrivals.refused.clear();
        drop(arrivals);
        self.arrived.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

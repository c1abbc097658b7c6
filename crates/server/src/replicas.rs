//! Clients that asked for the data set and for everything that happens to it: replicas, and `redis-cli --rdb`.
//!
//! Owns: which clients these are, and what each of them was sent and says it has. Does **not** own what is sent (see [`feed`])
//! nor the commands that ask for it.
//!
//! A feed is a consumer of two slot streams that are opened at the same instant, a snapshot and a tail. It has a thread of its own,
//! so a slow replica holds up nobody: what it does not take stays in the tail, whose bound is the replicas' output limit, and
//! beyond that the feed ends.

mod feed;

use crate::client::{Client, flag};
use crate::session::Session;
use crate::shared::Shared;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;

/// Clients that are fed at the same time; each has a thread and two streams.
pub(crate) const FEEDS_MAX: usize = 16;

/// What a client said of itself with `REPLCONF`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wishes {
    /// It can find the end of a snapshot by a mark, whose length need not be known before (`capa eof`).
    pub(crate) finds_end: bool,
    /// It wants the snapshot and nothing after it (`rdb-only 1`).
    pub(crate) snapshot_only: bool,
    /// It wants a snapshot without keys (`rdb-filter-only functions`).
    pub(crate) without_keys: bool,
    /// Where it says that it listens itself.
    pub(crate) port: u16,
    /// The address that it says it has; empty for the one that it comes from.
    pub(crate) ip: String,
}

/// How far a feed has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    /// The snapshot is being sent.
    Snapshot = 0,
    /// What happens is sent as it happens.
    Tail = 1,
}

/// One client that is fed.
#[derive(Debug)]
pub(crate) struct Feed {
    pub(crate) client: Arc<Client>,
    pub(crate) wishes: Wishes,
    phase: AtomicU8,
    /// Bytes of the tail that were sent, and that the client says it has.
    sent: AtomicU64,
    acknowledged: AtomicU64,
    acknowledged_ms: AtomicU64,
    /// Whether the client has said anything about what it has.
    has_acknowledged: AtomicBool,
    is_over: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Feed {
    /// How far it has come.
    pub(crate) fn phase(&self) -> Phase {
        if self.phase.load(Ordering::Relaxed) == Phase::Tail as u8 { Phase::Tail } else { Phase::Snapshot }
    }

    /// Bytes of the tail that were sent, and that the client says it has.
    pub(crate) fn offsets(&self) -> (u64, u64) {
        (self.sent.load(Ordering::Relaxed), self.acknowledged.load(Ordering::Relaxed))
    }

    /// When the client last said how much it has, in unix milliseconds.
    pub(crate) fn acknowledged_ms(&self) -> u64 {
        self.acknowledged_ms.load(Ordering::Relaxed)
    }

    /// The client says that it has so many bytes of the tail.
    pub(crate) fn acknowledge(&self, bytes: u64, now_ms: u64) {
        self.acknowledged.fetch_max(bytes, Ordering::Relaxed);
        self.acknowledged_ms.store(now_ms, Ordering::Relaxed);
        if !self.has_acknowledged.swap(true, Ordering::AcqRel) {
            self.wake();
        }
    }

    /// The connection has sent what it had, or is gone.
    pub(crate) fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire) || self.client.is_killed()
    }

    /// The address that the client is known by, and its port.
    pub(crate) fn address(&self) -> (String, u16) {
        let peer = self.client.addresses.tcp.map(|(peer, _)| peer.ip().to_string()).unwrap_or_default();
        let ip = if self.wishes.ip.is_empty() { peer } else { self.wishes.ip.clone() };
        (ip, self.wishes.port)
    }
}

/// All clients that are fed.
#[derive(Debug, Default)]
pub(crate) struct Replicas {
    feeds: Mutex<Vec<Arc<Feed>>>,
}

impl Replicas {
    fn feeds(&self) -> MutexGuard<'_, Vec<Arc<Feed>>> {
        self.feeds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of them, the oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Feed>> {
        self.feeds().clone()
    }

    /// Registers a client that is to be fed; `None` if there are [`FEEDS_MAX`] already.
    pub(crate) fn add(&self, client: &Arc<Client>, wishes: Wishes, now_ms: u64) -> Option<Arc<Feed>> {
        let mut feeds = self.feeds();
        if feeds.len() >= FEEDS_MAX {
            return None;
        }
        let feed = Arc::new(Feed {
            client: Arc::clone(client),
            wishes,
            phase: AtomicU8::new(Phase::Snapshot as u8),
            sent: AtomicU64::new(0),
            acknowledged: AtomicU64::new(0),
            acknowledged_ms: AtomicU64::new(now_ms),
            has_acknowledged: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            thread: OnceLock::new(),
        });
        client.set_flag(flag::REPLICA, true);
        feeds.push(Arc::clone(&feed));
        Some(feed)
    }

    fn remove(&self, feed: &Feed) {
        self.feeds().retain(|other| other.client.id != feed.client.id);
        feed.client.set_flag(flag::REPLICA, false);
    }
}

/// Starts to feed a client that was added. Called when its reply is written and no slot is held.
pub(crate) fn start(shared: &Arc<Shared>, feed: &Arc<Feed>) {
    let (shared, ours) = (Arc::clone(shared), Arc::clone(feed));
    let thread = std::thread::Builder::new().name(format!("replica-{}", feed.client.id));
    let started = thread.spawn(move || {
        let result = feed::run(&shared, &ours);
        shared.replicas.remove(&ours);
        if let Err(end) = result
            && !ours.is_over()
        {
            let (ip, port) = ours.address();
            tracing::warn!(id = ours.client.id, ip, port, "a replica's feed has ended: {end}");
            // There is no place to go on from: it connects again and asks for everything.
            ours.client.kill();
        }
    });
    match started {
        Ok(handle) => {
            // The thread is not waited for: it ends when its connection does.
            let _ = feed.thread.set(handle.thread().clone());
        }
        Err(error) => {
            tracing::warn!(%error, "no thread for a replica");
            feed.client.kill();
        }
    }
}

/// The session is fed no longer.
pub(crate) fn stop(shared: &Shared, session: &mut Session) {
    session.wishes = None;
    if let Some(feed) = session.feed.take() {
        feed.is_over.store(true, Ordering::Release);
        feed.wake();
        shared.replicas.remove(&feed);
    }
}

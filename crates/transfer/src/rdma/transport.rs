//! Links over a card, whoever makes the card.
//!
//! Owns: queue pairs on their way and in use, what is under way on them, and the keys of memory. Does **not** call a card but through
//! [`Verbs`].
//!
//! A region is registered with the card under the engine's own addresses, so a peer needs nothing of it but a key. Keys come with the
//! description of a segment; a region without one goes over TCP. The card enforces access, and refuses what was taken back.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::JoinHandle;

use arc_swap::ArcSwap;
use towline_transfer_proto::{LinkId, NoQueuePairs, Psn, Qpn, QueuePair, SliceId, WireEnd};

use crate::memory::MemoryRegion;
use crate::regions::{Regions, Registered};
use crate::transport::{Ended, LinkEvents, Rail, RegionKey, Transport, Work};

use super::verbs::{Keys, Verbs, WORK_MAX, WorkDone, WorkRequest, WorkStatus};

/// The rail number of RDMA: preferred to shared memory and TCP, since it was asked for.
const RDMA_RAIL: u16 = 2;

#[derive(Debug)]
struct Pinned {
    base: u64,
    memory: MemoryRegion,
    keys: Keys,
}

#[derive(Debug)]
struct State<V: Verbs> {
    making: HashMap<LinkId, (QueuePair, Option<QueuePair>)>,
    rails: HashMap<Qpn, Arc<RdmaRail<V>>>,
}

#[derive(Debug)]
struct Inner<V: Verbs> {
    verbs: V,
    state: Mutex<State<V>>,
    /// Read by whoever posts, without a lock.
    pinned: ArcSwap<Vec<Arc<Pinned>>>,
    pinning: Mutex<()>,
}

/// Moves bytes by a card that reaches into the peer's memory.
#[derive(Debug)]
pub struct RdmaTransport<V: Verbs> {
    inner: Arc<Inner<V>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<V: Verbs> RdmaTransport<V> {
    /// A transport for one engine, on this card.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub fn new(verbs: V) -> std::io::Result<Arc<Self>> {
        let state = State { making: HashMap::new(), rails: HashMap::new() };
        let inner = Arc::new(Inner {
            verbs,
            state: Mutex::new(state),
            pinned: ArcSwap::default(),
            pinning: Mutex::default(),
        });
        let own = inner.clone();
        let thread = std::thread::Builder::new().name("transfer-rdma".to_owned()).spawn(move || own.run())?;
        Ok(Arc::new(Self { inner, thread: Mutex::new(Some(thread)) }))
    }
}

impl<V: Verbs> Drop for RdmaTransport<V> {
    fn drop(&mut self) {
        self.shut_down();
    }
}

impl<V: Verbs> Inner<V> {
    /// The thread.
    fn run(&self) {
        let mut done = Vec::new();
        while self.verbs.wait(&mut done) {
            // Completions of one queue pair mostly come together.
            while let Some(qpn) = done.first().map(|first| first.qpn) {
                let (own, others) = done.drain(..).partition(|other| other.qpn == qpn);
                done = others;
                let rail = lock(&self.state).rails.get(&qpn).cloned();
                if let Some(rail) = rail {
                    rail.completed(own);
                }
            }
        }
    }

    fn create(&self, psn: Psn) -> Result<QueuePair, NoQueuePairs> {
        self.verbs.create(RDMA_RAIL, psn).map_err(|error| {
            tracing::warn!(%error, "no queue pair");
            NoQueuePairs
        })
    }

    fn local_key(&self, memory: &MemoryRegion) -> Option<(u64, u32)> {
        let pinned = self.pinned.load();
        let found = pinned.iter().find(|pinned| pinned.memory.as_ptr() == memory.as_ptr())?;
        Some((found.base, found.keys.local))
    }
}

impl<V: Verbs> Transport for RdmaTransport<V> {
    fn rail(&self) -> u16 {
        RDMA_RAIL
    }

    fn name(&self) -> &'static str {
        "rdma"
    }

    fn attach(&self, _regions: &Arc<Regions>) {}

    fn offer(&self, link: LinkId, psn: Psn) -> Result<QueuePair, NoQueuePairs> {
        let own = self.inner.create(psn)?;
        lock(&self.inner.state).making.insert(link, (own, None));
        Ok(own)
    }

    fn serve(&self, link: LinkId, remote: &QueuePair, psn: Psn) -> Result<Option<QueuePair>, NoQueuePairs> {
        let own = self.inner.create(psn)?;
        lock(&self.inner.state).making.insert(link, (own, Some(*remote)));
        Ok(Some(own))
    }

    fn activate(
        &self,
        link: LinkId,
        remote: Option<&QueuePair>,
        events: LinkEvents,
    ) -> Result<Option<Arc<dyn Rail>>, NoQueuePairs> {
        let mut state = lock(&self.inner.state);
        let (own, served) = state.making.remove(&link).ok_or(NoQueuePairs)?;
        let remote = remote.copied().or(served).ok_or(NoQueuePairs)?;
        if let Err(error) = self.inner.verbs.connect(&own, &remote) {
            tracing::warn!(%error, "a queue pair cannot be connected");
            self.inner.verbs.destroy(own.qpn);
            return Err(NoQueuePairs);
        }
        let rail = Arc::new(RdmaRail {
            qpn: own.qpn,
            inner: self.inner.clone(),
            events,
            keys: RwLock::default(),
            flights: Mutex::default(),
            has_failed: AtomicBool::new(false),
        });
        state.rails.insert(own.qpn, rail.clone());
        Ok(Some(rail))
    }

    fn abandon(&self, link: LinkId) {
        let making = lock(&self.inner.state).making.remove(&link);
        if let Some((own, _)) = making {
            self.inner.verbs.destroy(own.qpn);
        }
    }

    fn registered(&self, region: &Registered) {
        let _one = lock(&self.inner.pinning);
        let (base, memory) = (region.base(), region.memory().clone());
        match self.inner.verbs.register(base, &memory, region.access()) {
            Ok(keys) => {
                let pinned = Arc::new(Pinned { base, memory, keys });
                let all = self.inner.pinned.load().iter().cloned().chain([pinned]).collect();
                self.inner.pinned.store(Arc::new(all));
            }
            Err(error) => tracing::warn!(name = region.name(), %error, "a region goes over TCP"),
        }
    }

    fn deregistered(&self, base: u64) {
        let _one = lock(&self.inner.pinning);
        let left = self.inner.pinned.load().iter().filter(|pinned| pinned.base != base).cloned().collect();
        self.inner.pinned.store(Arc::new(left));
        self.inner.verbs.deregister(base);
    }

    fn key(&self, base: u64) -> Option<u32> {
        self.inner.pinned.load().iter().find(|pinned| pinned.base == base).map(|pinned| pinned.keys.remote)
    }

    fn shut_down(&self) {
        self.inner.verbs.stop();
        if let Some(thread) = lock(&self.thread).take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
        let bases: Vec<_> = self.inner.pinned.swap(Arc::default()).iter().map(|pinned| pinned.base).collect();
        bases.into_iter().for_each(|base| self.inner.verbs.deregister(base));
    }
}

#[derive(Debug, Default)]
struct Flights {
    /// On the wire, by slice.
    posted: HashMap<u64, Work>,
    /// For when there is room.
    queue: VecDeque<Work>,
    /// The queue pair broke under these; the one that nobody answered is the first.
    kept: VecDeque<SliceId>,
    is_unanswered: bool,
    is_over: bool,
}

/// One link's queue pair.
#[derive(Debug)]
struct RdmaRail<V: Verbs> {
    qpn: Qpn,
    inner: Arc<Inner<V>>,
    events: LinkEvents,
    keys: RwLock<Vec<RegionKey>>,
    flights: Mutex<Flights>,
    has_failed: AtomicBool,
}

impl<V: Verbs> RdmaRail<V> {
    fn fail(&self) {
        if !self.has_failed.swap(true, Ordering::AcqRel) {
            self.events.failed();
        }
    }

    /// The peer's key for this work.
    fn remote_key(&self, work: &Work) -> Option<u32> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let is_of = |key: &&RegionKey| {
            let offset = work.remote.wrapping_sub(key.base);
            offset < key.len && key.len - offset >= work.local.len() as u64
        };
        keys.iter().find(is_of).map(|key| key.key)
    }

    /// Posts what waits, as far as there is room. False if the queue pair is broken.
    fn pump(&self, flights: &mut Flights) -> bool {
        while flights.posted.len() < WORK_MAX
            && let Some(work) = flights.queue.pop_front()
        {
            let keys = self.remote_key(&work).zip(self.inner.local_key(work.local.memory()));
            let posted = keys.is_some_and(|(remote_key, (local_base, local_key))| {
                let request = WorkRequest {
                    id: work.slice.to_bits(),
                    opcode: work.opcode,
                    local: &work.local,
                    local_address: local_base + work.local.offset() as u64,
                    local_key,
                    remote: work.remote,
                    remote_key,
                };
                self.inner.verbs.post(self.qpn, &request).is_ok()
            });
            if !posted {
                flights.kept.push_back(work.slice);
                return false;
            }
            flights.posted.insert(work.slice.to_bits(), work);
        }
        true
    }

    fn completed(&self, done: Vec<WorkDone>) {
        let mut ended = Vec::new();
        let mut is_broken = false;
        let mut flights = lock(&self.flights);
        for WorkDone { id, status, .. } in done {
            let Some(work) = flights.posted.remove(&id) else { continue };
            is_broken |= status != WorkStatus::Done;
            match status {
                WorkStatus::Done => {
                    self.events.moved(work.opcode, work.local.len());
                    ended.push((work.slice, WireEnd::Done));
                }
                WorkStatus::LocalAccess => ended.push((work.slice, WireEnd::LocalAccess)),
                WorkStatus::RemoteAccess => ended.push((work.slice, WireEnd::RemoteAccess)),
                WorkStatus::Unanswered => {
                    flights.is_unanswered = true;
                    flights.kept.push_front(work.slice);
                }
                WorkStatus::Flushed => flights.kept.push_back(work.slice),
            }
        }
        let is_sound = is_broken || flights.is_over || self.pump(&mut flights);
        drop(flights);
        self.events.completed(&ended);
        if is_broken || !is_sound {
            self.fail();
        }
    }
}

impl<V: Verbs> Rail for RdmaRail<V> {
    fn learned(&self, keys: &[RegionKey]) {
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) =
            keys.iter().filter(|key| key.rail == RDMA_RAIL).copied().collect();
    }

    fn post(&self, works: Vec<Work>, ended: &mut Vec<Ended>) {
        let is_ours = |work: &Work| {
            self.remote_key(work).is_some() && self.inner.local_key(work.local.memory()).is_some()
        };
        let (ours, elsewhere): (Vec<_>, Vec<_>) = works.into_iter().partition(is_ours);
        let mut flights = lock(&self.flights);
        if flights.is_over {
            ended.extend(ours.into_iter().map(|work| (work.slice, WireEnd::Flushed)));
            drop(flights);
        } else {
            flights.queue.extend(ours);
            let is_sound = self.has_failed.load(Ordering::Acquire) || self.pump(&mut flights);
            drop(flights);
            if !is_sound {
                self.fail();
            }
        }
        if !elsewhere.is_empty() {
            self.events.elsewhere(elsewhere);
        }
    }

    fn retire(&self, ended: &mut Vec<Ended>) {
        let mut flights = lock(&self.flights);
        if std::mem::replace(&mut flights.is_over, true) {
            return;
        }
        // The card is done with the memory before the ranges go.
        self.inner.verbs.destroy(self.qpn);
        lock(&self.inner.state).rails.remove(&self.qpn);
        let Flights { posted, queue, kept, is_unanswered, .. } = std::mem::take(&mut *flights);
        flights.is_over = true;
        drop(flights);
        let mut end = if is_unanswered { WireEnd::Unanswered } else { WireEnd::Flushed };
        let rest = posted.into_values().chain(queue).map(|work| work.slice);
        for slice in kept.into_iter().chain(rest) {
            ended.push((slice, end));
            end = WireEnd::Flushed;
        }
    }
}

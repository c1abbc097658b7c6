//! Who is told what: the connections that opted in, the notices that are still open, the drains.
//!
//! Owns: sequence numbers, replays, and what a drain does when. Does **not** own the clock (instants are passed in), nor
//! closing (see [`super`]).
//!
//! Everything is under one lock, so that a connection which opts in while a notice is sent gets it exactly once.

use super::drains::{Drain, Phase, Step};
use super::notice::{EndpointType, Notice, Pieces, Scope, Successor};
use super::{DrainError, DrainStatus};
use crate::client::{Client, Clients, flag};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Opening notices, those of drains apart, that are kept for replay. Beyond that the oldest is no longer replayed: whoever
/// opens so many never closes them.
const OPEN_NOTICES_MAX: usize = 64;
/// Drains that may run at once; one endpoint has one, so this is many times what a server has addresses.
pub(super) const DRAINS_MAX: usize = 64;
/// Drains that are over and still shown.
const DRAINS_SHOWN_MAX: usize = 16;

/// A connection that was told notices at least once, or will be.
#[derive(Debug)]
struct Subscriber {
    client: Arc<Client>,
    is_on: bool,
    wanted: Option<EndpointType>,
    /// The last notice that it was told; later ones are replayed when it opts in.
    told: u64,
}

/// A notice that is replayed.
#[derive(Debug)]
struct Open {
    seq: u64,
    scope: Scope,
    notice: Notice,
    due: Instant,
    /// What is left to be done; `None` for a move, which is over when it is due.
    pieces: Option<Pieces>,
    is_drain: bool,
}

impl Open {
    fn is_over(&self, now: Instant) -> bool {
        self.pieces.is_none() && self.due <= now
    }
}

#[derive(Debug, Default)]
struct State {
    last_seq: u64,
    subscribers: BTreeMap<u64, Subscriber>,
    /// By rising sequence number.
    open: Vec<Open>,
    drains: Vec<Drain>,
    /// The last ones that are over, oldest first.
    over: VecDeque<DrainStatus>,
}

/// See the module's description.
#[derive(Debug)]
pub(crate) struct Registry {
    state: Mutex<State>,
    changed: Notify,
    sent: AtomicU64,
    replayed: AtomicU64,
    finished: AtomicU64,
    left: AtomicU64,
    closed: AtomicU64,
}

/// What `INFO` shows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) clients: usize,
    pub(crate) sent: u64,
    pub(crate) replayed: u64,
    pub(crate) open: usize,
    pub(crate) drains: usize,
    pub(crate) finished: u64,
    pub(crate) left: u64,
    pub(crate) closed: u64,
}

impl Registry {
    /// Nobody is told anything yet. Sequence numbers begin behind the time of the start: after a restart they still rise,
    /// and clients that remember the old ones do not take new notices for repetitions.
    pub(crate) fn new(started_ms: u64) -> Self {
        Self {
            state: Mutex::new(State { last_seq: started_ms, ..State::default() }),
            changed: Notify::new(),
            sent: AtomicU64::new(0),
            replayed: AtomicU64::new(0),
            finished: AtomicU64::new(0),
            left: AtomicU64::new(0),
            closed: AtomicU64::new(0),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ---- connections ------------------------------------------------------------------------------------------------

    /// The connection wants to be told from now on. Returns the open notices that it was not told yet, which the caller sends
    /// behind its reply.
    pub(crate) fn opt_in(
        &self,
        client: &Arc<Client>,
        wanted: Option<EndpointType>,
        now: Instant,
    ) -> Vec<Bytes> {
        let mut state = self.state();
        let state = &mut *state;
        state.open.retain(|open| !open.is_over(now));
        client.set_flag(flag::NOTIFIED, true);
        let subscriber = state.subscribers.entry(client.id).or_insert_with(|| Subscriber {
            client: Arc::clone(client),
            is_on: true,
            wanted,
            told: 0,
        });
        (subscriber.is_on, subscriber.wanted) = (true, wanted);
        let told = std::mem::replace(&mut subscriber.told, state.last_seq);
        let local = client.addresses.local_address();
        // Who came to the successor has moved: told again to go there, it might do so for ever.
        let missed =
            |open: &&Open| open.seq > told && open.scope.includes(local) && !open.notice.leads_to(local);
        let mut frames = Vec::new();
        for open in state.open.iter().filter(missed) {
            let left = open.due.saturating_duration_since(now);
            frames.push(Bytes::from(open.notice.frame(open.seq, left, wanted)));
            let drain = state.drains.iter_mut().find(|drain| drain.seq == open.seq);
            if let Some(drain) = drain.filter(|drain| drain.has(client.id)) {
                drain.told += 1;
            }
        }
        self.replayed.fetch_add(frames.len() as u64, Ordering::Relaxed);
        frames
    }

    /// The connection wants to be told no more. What it was told is remembered: it is not told again when it opts in anew.
    pub(crate) fn opt_out(&self, client: &Client) {
        if let Some(subscriber) = self.state().subscribers.get_mut(&client.id) {
            subscriber.is_on = false;
        }
    }

    /// The connection ends, or begins anew.
    pub(crate) fn forget(&self, client: &Client) {
        if client.has_flag(flag::NOTIFIED) {
            client.set_flag(flag::NOTIFIED, false);
            self.state().subscribers.remove(&client.id);
        }
    }

    /// The connections that are told, and in what form.
    pub(super) fn opted_in(&self) -> BTreeMap<u64, Option<EndpointType>> {
        let state = self.state();
        let on = state.subscribers.values().filter(|subscriber| subscriber.is_on);
        on.map(|subscriber| (subscriber.client.id, subscriber.wanted)).collect()
    }

    // ---- notices ----------------------------------------------------------------------------------------------------

    /// Tells all connections of the scope that opted in, unless `is_enabled` says otherwise, and remembers an opening
    /// notice for those that come later. Returns the sequence number.
    pub(crate) fn announce(&self, scope: Scope, notice: Notice, is_enabled: bool, now: Instant) -> u64 {
        let mut state = self.state();
        let due = notice.due(now);
        let seq = state.next_seq();
        self.tell(&mut state, scope, &notice, seq, is_enabled, now);
        if let Some(done) = notice.closes() {
            let ends = |open: &mut Open| {
                (scope == Scope::All || scope == open.scope)
                    && open.pieces.as_mut().is_some_and(|pieces| pieces.finish(&done))
            };
            state.open.retain_mut(|open| !ends(open));
            return seq;
        }
        state.open.retain(|open| !open.is_over(now));
        if state.open.iter().filter(|open| !open.is_drain).count() >= OPEN_NOTICES_MAX
            && let Some(oldest) = state.open.iter().position(|open| !open.is_drain)
        {
            let oldest = state.open.remove(oldest);
            tracing::warn!(seq = oldest.seq, "too many open notices: the oldest is no longer replayed");
        }
        let pieces = notice.opens();
        state.open.push(Open { seq, scope, notice, due, pieces, is_drain: false });
        seq
    }

    /// Sends a notice to the connections of the scope that opted in, and says to which.
    fn tell(
        &self,
        state: &mut State,
        scope: Scope,
        notice: &Notice,
        seq: u64,
        is_enabled: bool,
        now: Instant,
    ) -> Vec<u64> {
        let left = notice.due(now).saturating_duration_since(now);
        // One frame per wish: there are few, and connections are many.
        let mut frames: Vec<(Option<EndpointType>, Bytes)> = Vec::new();
        let mut told = Vec::new();
        for subscriber in state.subscribers.values_mut() {
            let is_meant = is_enabled && subscriber.is_on;
            if !is_meant || !scope.includes(subscriber.client.addresses.local_address()) {
                continue;
            }
            let wanted = subscriber.wanted;
            let known = frames.iter().position(|(of, _)| *of == wanted).unwrap_or_else(|| {
                frames.push((wanted, Bytes::from(notice.frame(seq, left, wanted))));
                frames.len() - 1
            });
            subscriber.told = seq;
            subscriber.client.push(frames[known].1.clone());
            told.push(subscriber.client.id);
        }
        self.sent.fetch_add(told.len() as u64, Ordering::Relaxed);
        told
    }

    // ---- drains -----------------------------------------------------------------------------------------------------

    /// Begins a drain of the connections of the scope that exist now; see [`super::Maintenance::drain`].
    pub(super) fn drain(
        &self,
        clients: &Clients,
        scope: Scope,
        window: Duration,
        successor: Option<Successor>,
        is_enabled: bool,
        now: Instant,
    ) -> Result<u64, DrainError> {
        let mut state = self.state();
        let state = &mut *state;
        let before = state.drains.iter().position(|drain| drain.scope == scope && drain.is_announced());
        if before.is_none() && state.drains.len() >= DRAINS_MAX {
            return Err(DrainError::TooMany { drains_max: DRAINS_MAX });
        }
        if let Some(before) = before {
            // Its connections, as far as they have not left, exist now, so the new one has them.
            let before = state.drains.remove(before);
            state.open.retain(|open| open.seq != before.seq);
        }
        let seq = state.next_seq();
        let present = clients.all().into_iter();
        let present = present.filter(|client| scope.includes(client.addresses.local_address()));
        let ids = present.map(|client| client.id).collect();
        let notice = Notice::Moving { window, successor: successor.clone() };
        let mut drain = Drain::new(seq, scope, window, successor, ids, now);
        let told = self.tell(state, scope, &notice, seq, is_enabled, now);
        drain.told = told.into_iter().filter(|&id| drain.has(id)).count();
        state.open.push(Open { seq, scope, notice, due: drain.due(), pieces: None, is_drain: true });
        state.drains.push(drain);
        self.changed.notify_one();
        Ok(seq)
    }

    /// Ends drains whose window is not over, that with this number or all of them, and says how many.
    pub(crate) fn cancel(&self, seq: Option<u64>, clients: &Clients, now: Instant) -> usize {
        let mut state = self.state();
        let is_meant = |drain: &mut Drain| drain.is_announced() && seq.is_none_or(|seq| seq == drain.seq);
        let cancelled: Vec<Drain> = state.drains.extract_if(.., is_meant).collect();
        let count = cancelled.len();
        for mut drain in cancelled {
            state.open.retain(|open| open.seq != drain.seq);
            drain.phase = Phase::Cancelled;
            state.show_later(drain.status(clients, now));
        }
        self.changed.notify_one();
        count
    }

    /// Takes the drains as far as they are at `now`. Returns what is to be done with their connections, and when to look
    /// again.
    pub(super) fn advance(&self, clients: &Clients, now: Instant) -> (Vec<Step>, Option<Instant>) {
        let mut state = self.state();
        let state = &mut *state;
        let mut steps = Vec::new();
        for drain in &mut state.drains {
            let was_announced = drain.is_announced();
            while let Some(step) = drain.advance(clients, now) {
                steps.push(step);
            }
            if was_announced && !drain.is_announced() {
                let status = drain.status(clients, now);
                self.left.fetch_add(status.left as u64, Ordering::Relaxed);
                self.closed.fetch_add(status.closed as u64, Ordering::Relaxed);
            }
        }
        state.open.retain(|open| !open.is_over(now));
        let over: Vec<Drain> = state.drains.extract_if(.., |drain| drain.phase == Phase::Over).collect();
        for drain in over {
            self.finished.fetch_add(1, Ordering::Relaxed);
            state.show_later(drain.status(clients, now));
        }
        (steps, state.drains.iter().filter_map(Drain::next_due).min())
    }

    /// Returns when drains have changed and [`Registry::advance`] is to be called.
    ///
    /// # Cancel safety
    /// No change is lost.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The drains that run, and the last ones that are over, by rising number.
    pub(crate) fn statuses(&self, clients: &Clients, now: Instant) -> Vec<DrainStatus> {
        let state = self.state();
        let running = state.drains.iter().map(|drain| drain.status(clients, now));
        let mut all: Vec<_> = state.over.iter().cloned().chain(running).collect();
        all.sort_by_key(|status| status.seq);
        all
    }

    /// What `INFO` shows.
    pub(crate) fn counts(&self, now: Instant) -> Counts {
        let state = self.state();
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            clients: state.subscribers.values().filter(|subscriber| subscriber.is_on).count(),
            sent: read(&self.sent),
            replayed: read(&self.replayed),
            open: state.open.iter().filter(|open| !open.is_over(now)).count(),
            drains: state.drains.len(),
            finished: read(&self.finished),
            left: read(&self.left),
            closed: read(&self.closed),
        }
    }
}

impl State {
    fn next_seq(&mut self) -> u64 {
        self.last_seq += 1;
        self.last_seq
    }

    fn show_later(&mut self, status: DrainStatus) {
        if self.over.len() == DRAINS_SHOWN_MAX {
            self.over.pop_front();
        }
        self.over.push_back(status);
    }
}

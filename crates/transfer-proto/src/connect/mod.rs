//! How a process gets linked to others.
//!
//! Owns: one job for each lane to a node, the handshakes of both directions, permits, breakers and the queue of those who
//! ask, and the generations of links. Does **not** own sockets, queue pairs, or the work that waits for a link
//! ([`crate::Transfers`]): that work says [`Connections::want`] and hears [`Output::Ready`]. A link that is not there yet is
//! a state of the work, which costs it no retry, and nobody polls for it.
//!
//! ```text
//!                    +------------- Waiting <--------- busy (appointment), failed (backoff), breaker -------------+
//!                    v                                                                                            |
//!  want: Idle -> WaitPermit -> Paced -> Dialing -> Offering -> AwaitReply -> Confirming -> Ready (initiator) ------+
//!                                                                  | use mine                                     |
//!                                                                  v                                              |
//!                                                               Yielded                queue pair failed, restart |
//!                                                                                                                 |
//!  HELLO in: any -> Queued -> Serving -> Prepared -- CONFIRM, or first data --> Ready (target) -------------------+
//! ```
//!
//! A lane is in one phase, so the two directions cannot both be at work on it. Where HELLOs cross, the higher node's is
//! answered; who gave way and waited in vain insists, and insisting goes before the higher name. A HELLO that its sender gave
//! up meanwhile is named in the answer that it sends ([`Welcome::abandoned`](crate::wire::Welcome::abandoned)), so it cannot replace the link that came up.
//!
//! Inputs are calls with the time; after each, take [`Connections::poll`] until `None`, and call
//! [`Connections::handle_timeout`] at [`Connections::next_timeout`].

mod config;
mod error;
mod inbound;
mod line;
mod outbound;
mod output;
mod state;
#[cfg(test)]
mod tests;

pub use config::{ConnectConfig, ConnectConfigError};
pub use error::{AcceptError, NoQueuePairs, WantError};
pub use output::{ConnectCounters, ConnectSnapshot, DownCause, Output, Role};

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use towline_admission::{
    AdmissionQueue, Attempt as Passage, AttemptOutcome, Change, HeaderId, Headers, JobId, LimiterCore,
    QueueEvent, RequestId,
};
use towline_sansio::{Instant, Prng};

use crate::guards::Guards;
use crate::identity::{Attempt, ConnId, Incarnation, LinkId, LinkKey, NodeId, Process};
use crate::wire::{Message, QUEUE_PAIRS_MAX};

use line::{Dial, Line, Peer, Phase};
use state::{count, fresh};

/// What a connection is good for.
#[derive(Debug, Clone, Copy)]
enum Conn {
    /// Accepted, and has not said anything.
    Silent(HeaderId),
    /// A lane's handshake.
    Of(LinkKey),
    /// It has nothing to do at the moment; the other end closes it.
    Spare,
}

/// The links of one process. See the module's documentation.
#[derive(Debug)]
pub struct Connections {
    config: ConnectConfig,
    guards: Guards,
    me: Process,
    prng: Prng,
    limiter: LimiterCore<NodeId>,
    queue: AdmissionQueue<NodeId>,
    headers: Headers,
    peers: BTreeMap<NodeId, Peer>,
    /// Of generations that have not been retired.
    owners: BTreeMap<LinkId, LinkKey>,
    requests: BTreeMap<RequestId, LinkKey>,
    /// Requests of others that wait.
    queued: BTreeMap<JobId, LinkKey>,
    /// Requests of others in service: also those that nobody waits for any more, until the driver is done.
    serving: BTreeMap<LinkId, JobId>,
    conns: BTreeMap<ConnId, Conn>,
    timers: BTreeSet<(Instant, LinkKey)>,
    /// Permits that were handed over and not yet used.
    granted: VecDeque<RequestId>,
    outputs: VecDeque<Output>,
    next_conn: u64,
    next_link: u64,
    ready: u32,
    is_leaving: bool,
    counters: ConnectCounters,
}

impl Connections {
    /// A process without links. `prng` decides jitter, nonces and packet numbers: seed it well.
    ///
    /// # Errors
    /// A number of the configuration would make something wait for ever.
    pub fn new(me: Process, config: ConnectConfig, prng: Prng) -> Result<Self, ConnectConfigError> {
        config.validate()?;
        Ok(Self {
            config,
            guards: Guards::ALL,
            me,
            prng,
            limiter: LimiterCore::new(config.limiter)?,
            queue: AdmissionQueue::new(config.queue)?,
            headers: Headers::new(config.headers)?,
            peers: BTreeMap::new(),
            owners: BTreeMap::new(),
            requests: BTreeMap::new(),
            queued: BTreeMap::new(),
            serving: BTreeMap::new(),
            conns: BTreeMap::new(),
            timers: BTreeSet::new(),
            granted: VecDeque::new(),
            outputs: VecDeque::new(),
            next_conn: 0,
            next_link: 0,
            ready: 0,
            is_leaving: false,
            counters: ConnectCounters::default(),
        })
    }

    /// Switches rules off. For tests that must fail without them.
    #[must_use]
    pub fn with_guards(mut self, guards: Guards) -> Self {
        self.guards = guards;
        self
    }

    /// Who this process is.
    pub fn me(&self) -> Process {
        self.me
    }

    /// Somebody here needs this lane, with so many queue pairs. It comes up, and again after each loss, until
    /// [`Connections::unwant`]. Asking twice is asking once.
    ///
    /// # Errors
    /// See [`WantError`]; nothing was begun.
    pub fn want(&mut self, now: Instant, key: LinkKey, queue_pairs: u16) -> Result<(), WantError> {
        if self.is_leaving {
            return Err(WantError::Leaving);
        }
        let is_valid = key.lane.0 < self.config.lanes_max
            && (1..=QUEUE_PAIRS_MAX).contains(&usize::from(queue_pairs))
            && key.node != self.me.node;
        if !is_valid {
            return Err(WantError::Invalid);
        }
        if !self.meet(key) {
            return Err(WantError::TooManyPeers { peers: count(self.peers.len()) });
        }
        let line = self.line(key);
        line.is_wanted = true;
        line.queue_pairs = queue_pairs;
        if matches!(line.phase, Phase::Idle) {
            self.request_permit(now, key);
        }
        self.settle(now);
        Ok(())
    }

    /// Nobody here needs this lane any more. A handshake of ours is given up; a link that is ready stays.
    pub fn unwant(&mut self, now: Instant, key: LinkKey) {
        let Some(line) = self.find(key) else { return };
        line.is_wanted = false;
        if !line.phase.is_inbound() && !matches!(line.phase, Phase::Ready { .. }) {
            self.abandon(now, key);
        }
        self.settle(now);
    }

    /// A dial of ours is open.
    pub fn dialed(&mut self, now: Instant, conn: ConnId) {
        self.on_dialed(conn);
        self.settle(now);
    }

    /// Somebody dialled this process.
    ///
    /// # Errors
    /// Too many are open or say nothing; close it. The dialling side may retry after a backoff.
    pub fn accepted(&mut self, now: Instant) -> Result<ConnId, AcceptError> {
        let open = count(self.conns.len());
        if open >= self.config.connections_max {
            self.counters.silent += 1;
            return Err(AcceptError::TooMany { open });
        }
        let header = self.headers.accepted(now).inspect_err(|_| self.counters.silent += 1)?;
        let conn = self.conn_id();
        self.conns.insert(conn, Conn::Silent(header));
        Ok(conn)
    }

    /// A dial failed, or a connection is gone.
    pub fn closed(&mut self, now: Instant, conn: ConnId) {
        match self.conns.remove(&conn) {
            Some(Conn::Silent(header)) => {
                self.headers.finished(header);
            }
            Some(Conn::Of(key)) => self.lost_conn(now, key, conn),
            Some(Conn::Spare) | None => {}
        }
        self.settle(now);
    }

    /// A message came. One that does not belong to its connection is dropped.
    pub fn received(&mut self, now: Instant, conn: ConnId, message: Message) {
        if self.conns.contains_key(&conn) {
            match message {
                Message::Hello(hello) => self.on_hello(now, conn, hello),
                Message::Welcome(welcome) => self.on_welcome(now, conn, welcome),
                Message::Busy { attempt, retry_after, ticket } => {
                    self.on_busy(now, conn, attempt, retry_after, ticket);
                }
                Message::UseMine { attempt } => self.on_use_mine(now, conn, attempt),
                Message::Reject { attempt, reason } => self.on_reject(now, conn, attempt, reason),
                Message::Confirm { attempt, nonce } => self.on_confirm(conn, attempt, nonce),
                Message::Bye { from } => self.on_bye(now, from),
            }
        }
        self.settle(now);
    }

    /// The driver is done with [`Output::Offer`] or [`Output::Serve`].
    pub fn made(
        &mut self,
        now: Instant,
        link: LinkId,
        queue_pairs: Result<Vec<crate::QueuePair>, NoQueuePairs>,
    ) {
        if let Some(job) = self.serving.remove(&link) {
            // The worker is free, whoever its work was for.
            self.queue.finished(now, job);
            self.on_served(now, link, queue_pairs);
        } else {
            self.on_offered(now, link, queue_pairs);
        }
        self.settle(now);
    }

    /// The driver is done with [`Output::Activate`].
    pub fn activated(&mut self, now: Instant, link: LinkId, result: Result<(), NoQueuePairs>) {
        if let Some(key) = self.owners.get(&link).copied() {
            self.on_activated(now, key, link, result);
        }
        self.settle(now);
    }

    /// Data came in on a link that is served and not confirmed: its initiator is there, which is what CONFIRM says.
    pub fn established(&mut self, now: Instant, link: LinkId) {
        if let Some(key) = self.owners.get(&link).copied() {
            self.confirm(key, link);
        }
        self.settle(now);
    }

    /// A queue pair of this link failed. Its generation is over; the next comes through the same job.
    pub fn failed(&mut self, now: Instant, link: LinkId) {
        if let Some(key) = self.owners.get(&link).copied() {
            self.link_failed(now, key);
        }
        self.settle(now);
    }

    /// This process leaves: every handshake and every link ends now, with as many outputs as there are of them.
    pub fn leave(&mut self, now: Instant) {
        self.is_leaving = true;
        let mut keys = Vec::new();
        for (node, peer) in &self.peers {
            keys.extend(peer.lines.keys().map(|lane| LinkKey { node: *node, lane: *lane }));
        }
        for key in keys {
            self.line(key).is_wanted = false;
            self.end_phase(now, key, DownCause::Leaving);
        }
        let conns: Vec<ConnId> = self.conns.keys().copied().collect();
        for conn in conns {
            if let Some(Conn::Silent(header)) = self.conns.get(&conn) {
                self.headers.finished(*header);
            }
            self.send(conn, Message::Bye { from: self.me });
            self.close(conn);
        }
        self.settle(now);
    }

    /// Time has come: see [`Connections::next_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.next_timeout().is_none_or(|at| at > now) {
            self.counters.idle_wakeups += 1;
        }
        self.settle(now);
    }

    /// When to call [`Connections::handle_timeout`], if nothing else happens before.
    pub fn next_timeout(&self) -> Option<Instant> {
        let timer = self.timers.first().map(|(at, _)| *at);
        [timer, self.queue.next_timeout(), self.headers.next_timeout()].into_iter().flatten().min()
    }

    /// The next thing to do or to know.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// The link of a lane, if it is ready.
    pub fn link(&self, key: LinkKey) -> Option<LinkId> {
        match self.peers.get(&key.node)?.lines.get(&key.lane)?.phase {
            Phase::Ready { link, .. } => Some(link),
            _ => None,
        }
    }

    /// Requests of others in service and waiting.
    pub fn queue_length(&self) -> u32 {
        let queue = self.queue.snapshot();
        queue.running + queue.waiting
    }

    /// Counts since the start.
    pub fn counters(&self) -> ConnectCounters {
        self.counters
    }

    /// What is held now. Looks at every lane.
    pub fn snapshot(&self) -> ConnectSnapshot {
        let at_work = |line: &&Line| line.phase.is_at_work() && !matches!(line.phase, Phase::Ready { .. });
        let connecting = self.peers.values().map(|peer| peer.lines.values().filter(at_work).count());
        let (limiter, queue) = (self.limiter.snapshot(), self.queue.snapshot());
        ConnectSnapshot {
            peers: count(self.peers.len()),
            ready: self.ready,
            connecting: count(connecting.sum()),
            permits: limiter.in_use,
            permit_waiters: limiter.waiting,
            serving: queue.running,
            queued: queue.waiting,
            tickets: queue.tickets,
            connections: count(self.conns.len()),
        }
    }

    /// Does everything that is due. Each turn of the loop takes something out of a finite set: a grant, a job, an expired
    /// connection, a timer that is due; what a turn sets again lies in the future.
    fn settle(&mut self, now: Instant) {
        loop {
            if let Some(request) = self.granted.pop_front() {
                self.on_granted(now, request);
            } else if let Some(event) = self.queue.poll(now) {
                match event {
                    QueueEvent::Start(job) => self.on_start(job),
                    QueueEvent::Expired(job) => self.on_expired(now, job),
                }
            } else if let Some(header) = self.headers.poll_expired(now) {
                self.on_silent(header);
            } else if let Some((at, key)) = self.timers.first().copied()
                && at <= now
            {
                self.set_timer(key, None);
                self.on_timer(now, key);
            } else {
                break;
            }
        }
    }

    fn on_timer(&mut self, now: Instant, key: LinkKey) {
        match self.line(key).phase {
            Phase::Waiting => {
                self.peer(key.node).blocked.remove(&key.lane);
                self.line(key).phase = Phase::Idle;
                self.request_permit(now, key);
            }
            Phase::Yielded => {
                self.line(key).phase = Phase::Idle;
                self.line(key).is_insisting = true;
                self.request_permit(now, key);
            }
            Phase::Paced { .. } => self.dial(now, key),
            Phase::Dialing { .. }
            | Phase::Offering { .. }
            | Phase::AwaitReply { .. }
            | Phase::Confirming { .. } => self.attempt_failed(now, key),
            Phase::Prepared { .. } => {
                self.counters.unconfirmed += 1;
                self.end_phase(now, key, DownCause::PeerRebuilds);
                self.resume(now, key);
            }
            // These have no timer.
            Phase::Idle
            | Phase::WaitPermit { .. }
            | Phase::Queued { .. }
            | Phase::Serving { .. }
            | Phase::Ready { .. } => {}
        }
    }

    fn on_silent(&mut self, header: HeaderId) {
        self.counters.silent += 1;
        // Few are silent at once, and this is no path that a well-behaved peer takes.
        let conn = self.conns.iter().find(|(_, conn)| matches!(conn, Conn::Silent(id) if *id == header));
        if let Some((conn, _)) = conn {
            self.close(*conn);
        }
    }

    /// The peer of a connection is gone while a lane used it.
    fn lost_conn(&mut self, now: Instant, key: LinkKey, conn: ConnId) {
        if self.find(key).and_then(|line| line.phase.conn()) != Some(conn) {
            return;
        }
        if self.line(key).phase.is_inbound() {
            if !matches!(self.line(key).phase, Phase::Prepared { .. }) {
                self.counters.spared += 1;
            }
            self.end_phase(now, key, DownCause::PeerRebuilds);
            self.resume(now, key);
        } else {
            self.attempt_failed(now, key);
        }
    }

    fn link_failed(&mut self, now: Instant, key: LinkKey) {
        match self.line(key).phase {
            Phase::Ready { .. } => {
                self.end_phase(now, key, DownCause::QueuePair);
                if self.line(key).is_wanted {
                    let at = self.after_loss(now, key);
                    self.wait_until(key, at);
                }
            }
            Phase::Queued { .. } | Phase::Serving { .. } | Phase::Prepared { .. } => {
                self.end_phase(now, key, DownCause::QueuePair);
                self.resume(now, key);
            }
            _ => self.attempt_failed(now, key),
        }
    }

    fn on_bye(&mut self, now: Instant, from: Process) {
        if self.peers.get(&from.node).is_some_and(|peer| peer.incarnation == Some(from.incarnation)) {
            self.end_links(now, from.node, DownCause::PeerLeft);
        }
    }

    /// Ends everything that belongs to the known life of a node. What is wanted is asked for again after a backoff.
    fn end_links(&mut self, now: Instant, node: NodeId, cause: DownCause) {
        let Some(peer) = self.peers.get(&node) else { return };
        let keys: Vec<LinkKey> = peer.lines.keys().map(|lane| LinkKey { node, lane: *lane }).collect();
        for key in keys {
            let is_of_that_life = self.line(key).phase.is_inbound()
                || matches!(self.line(key).phase, Phase::Ready { .. } | Phase::Confirming { .. });
            if is_of_that_life {
                self.end_phase(now, key, cause);
                if self.line(key).is_wanted {
                    let at = self.after_loss(now, key);
                    self.wait_until(key, at);
                }
            }
        }
    }

    /// The peer shows itself in this life. False if a later one is known.
    fn meet_life(&mut self, now: Instant, node: NodeId, incarnation: Incarnation) -> bool {
        let known = self.peer(node).incarnation;
        if self.guards.incarnations && known.is_some_and(|known| known > incarnation) {
            return false;
        }
        if known == Some(incarnation) {
            return true;
        }
        if known.is_some() && self.guards.incarnations {
            self.end_links(now, node, DownCause::PeerRestarted);
        }
        let peer = self.peer(node);
        peer.incarnation = Some(incarnation);
        for line in peer.lines.values_mut() {
            line.seen = Attempt::default();
        }
        if known.is_some() {
            let change = self.peer(node).breaker.reset();
            self.on_change(now, node, change);
        }
        true
    }

    /// Ends a phase, whatever it is, and gives back what it holds. The lane is idle after it.
    fn end_phase(&mut self, now: Instant, key: LinkKey, cause: DownCause) {
        let phase = std::mem::take(&mut self.line(key).phase);
        self.set_timer(key, None);
        let (conn, link) = (phase.conn(), phase.link());
        let was_ready = matches!(phase, Phase::Ready { .. });
        match phase {
            Phase::Idle | Phase::Yielded => {}
            Phase::Waiting => {
                self.peer(key.node).blocked.remove(&key.lane);
            }
            Phase::WaitPermit { request } => self.release(request),
            Phase::Paced { request, passage } => {
                self.report(now, key.node, passage, AttemptOutcome::Abandoned);
                self.release(request);
            }
            Phase::Dialing { dial }
            | Phase::Offering { dial, .. }
            | Phase::AwaitReply { dial, .. }
            | Phase::Confirming { dial, .. } => self.let_go(now, key, dial, AttemptOutcome::Abandoned),
            Phase::Queued { job, .. } => {
                self.queued.remove(&job);
                self.queue.cancel(job);
            }
            // The worker is busy until the driver says otherwise.
            Phase::Serving { .. } | Phase::Prepared { .. } => {}
            Phase::Ready { .. } => self.ready -= 1,
        }
        if let Some(conn) = conn {
            self.close(conn);
        }
        let Some(link) = link else { return };
        self.retire(link);
        if was_ready {
            self.counters.down += 1;
            self.outputs.push_back(Output::Down { link, key, cause });
        }
    }

    /// After something of the peer's came to nothing: our own turn, if we want the lane.
    fn resume(&mut self, now: Instant, key: LinkKey) {
        if self.line(key).is_wanted && !self.is_leaving {
            self.request_permit(now, key);
        }
    }

    /// Gives back what an attempt holds, and tells what came of it. Every way out of an attempt leads through here.
    fn let_go(&mut self, now: Instant, key: LinkKey, dial: Dial, outcome: AttemptOutcome) {
        self.report(now, key.node, dial.passage, outcome);
        if self.guards.permits || outcome == AttemptOutcome::Worked {
            self.release(dial.request);
        }
    }

    fn release(&mut self, request: RequestId) {
        self.requests.remove(&request);
        // An unknown request cannot come here: it is given back by the phase that holds it.
        if let Ok(Some(next)) = self.limiter.cancel(request) {
            self.granted.push_back(next);
        }
    }

    fn report(&mut self, now: Instant, node: NodeId, passage: Passage, outcome: AttemptOutcome) {
        let Some(peer) = self.peers.get_mut(&node) else { return };
        let change = peer.breaker.report(now, passage, outcome, &mut self.prng);
        if matches!(outcome, AttemptOutcome::Worked | AttemptOutcome::Busy) {
            peer.backoff = fresh(self.config.backoff);
        }
        self.on_change(now, node, change);
    }

    fn on_change(&mut self, now: Instant, node: NodeId, change: Change) {
        if matches!(change, Change::ProbeFree | Change::Closed) {
            let blocked = std::mem::take(&mut self.peer(node).blocked);
            for lane in blocked {
                self.set_timer(LinkKey { node, lane }, Some(now));
            }
        }
    }
}

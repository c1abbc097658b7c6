//! One peer: its work, its link, its notifications.
//!
//! Owns the state that the two engines have with each other, behind one lock for each peer, and the turns in which work is put
//! on the link and comes back. Does **not** own links ([`crate::control`] makes them) or sockets ([`crate::tcp`]).
//!
//! ```text
//!  submit, completed, link up, timer --> turn: [lock] machine in, posts and events out [unlock] --> rail.post, ledgers, control
//! ```
//!
//! No lock is held while a rail posts, a ledger is written to or the control thread is told, so that each of them may come
//! back here.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant as Monotonic;

use towline_sansio::Instant;
use towline_transfer_proto as proto;
use towline_transfer_proto::{
    BatchId, Event, Incarnation, LinkId, NodeId, Outbox, OutboxConfig, Outcome, Process, TaskId,
    TransferConfig, TransferConfigError, TransferCounters, Transfers, WireEnd,
};

use crate::batch::{Ledger, Status};
use crate::error::{NotifyError, OpenError, SubmitError};
use crate::promise::Promise;
use crate::segment::Description;
use crate::shared::{Command, Shared};
use crate::tcp::{Lane, TcpRail};
use crate::transport::{Ended, Listener, Rail, Work};

/// Slices that one turn puts on the wire at most, so that the lock is held for microseconds.
const TURN_MAX: usize = 64;

/// Who waits for one peer's description at most.
const OPENS_MAX: usize = 1_024;

/// An active link.
#[derive(Debug, Clone)]
pub(crate) struct ActiveLink {
    pub(crate) id: LinkId,
    pub(crate) process: Process,
    /// What moves bytes.
    pub(crate) rail: Arc<dyn Rail>,
    /// What carries everything else; it may be the same.
    pub(crate) tcp: Arc<TcpRail>,
}

/// A batch under way.
#[derive(Debug)]
struct Active {
    ledger: Arc<Ledger>,
    notify: Option<Vec<u8>>,
    /// The life of the peer that it is for.
    life: Incarnation,
    /// That life is over.
    is_orphan: bool,
}

#[derive(Debug)]
struct State {
    transfers: Transfers,
    outbox: Outbox,
    batches: HashMap<BatchId, Active>,
    link: Option<ActiveLink>,
    opens: Vec<Promise<Result<Description, OpenError>>>,
    /// The last one.
    description: Option<Description>,
    /// The control thread looks at the deadlines then.
    armed: Instant,
    /// Segments that are open.
    segments: usize,
    /// The control thread was asked for a link.
    is_wanting: bool,
    is_over: bool,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Peer {
    node: NodeId,
    shared: Arc<Shared>,
    address: Mutex<Option<SocketAddr>>,
    state: Mutex<State>,
    idle: Condvar,
}

/// What a turn leaves to be done without the lock.
#[derive(Debug, Default)]
struct Aftermath {
    works: Vec<Work>,
    rail: Option<Arc<dyn Rail>>,
    ended: Vec<Ended>,
    ledgers: Vec<(Arc<Ledger>, Entry)>,
    commands: Vec<Command>,
    is_notifying: bool,
}

#[derive(Debug)]
enum Entry {
    Ended(u32, Status, proto::Buffers),
    Drained(u32),
    Done,
}

/// A batch as the engine hands it over: addresses are resolved.
#[derive(Debug)]
pub(crate) struct Submission {
    pub(crate) requests: Vec<proto::Request>,
    pub(crate) notify: Option<Vec<u8>>,
    pub(crate) life: Incarnation,
}

impl Peer {
    pub(crate) fn new(
        node: NodeId,
        shared: Arc<Shared>,
        transfer: TransferConfig,
        outbox: OutboxConfig,
    ) -> Result<Arc<Self>, TransferConfigError> {
        let state = State {
            transfers: Transfers::new(transfer)?,
            outbox: Outbox::new(outbox),
            batches: HashMap::new(),
            link: None,
            opens: Vec::new(),
            description: None,
            armed: Instant::FAR,
            segments: 0,
            is_wanting: false,
            is_over: false,
        };
        Ok(Arc::new(Self {
            node,
            shared,
            address: Mutex::new(None),
            state: Mutex::new(state),
            idle: Condvar::new(),
        }))
    }

    pub(crate) fn node(&self) -> NodeId {
        self.node
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn address(&self) -> Option<SocketAddr> {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_address(&self, address: SocketAddr) {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner) = Some(address);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a batch; its first slices go out before this returns, if there is a link.
    pub(crate) fn submit(
        self: &Arc<Self>,
        submission: Submission,
    ) -> Result<(BatchId, Arc<Ledger>), SubmitError> {
        let Submission { requests, notify, life } = submission;
        let now = self.shared.now();
        let mut state = self.lock();
        if state.is_over || self.shared.is_closing() {
            return Err(SubmitError::ShutDown);
        }
        if state.link.as_ref().is_some_and(|link| link.process.incarnation != life) {
            return Err(SubmitError::PeerRestarted);
        }
        if let Some(payload) = &notify {
            state.outbox.reserve(payload.len())?;
        }
        let batch = state.transfers.submit(now, &requests, None).inspect_err(|_| {
            if let Some(payload) = &notify {
                state.outbox.release(payload.len());
            }
        })?;
        let ledger = Arc::new(Ledger::new(requests.len()));
        self.want(&mut state);
        state.batches.insert(batch, Active { ledger: ledger.clone(), notify, life, is_orphan: false });
        self.turn(state);
        Ok((batch, ledger))
    }

    /// Gives up the tasks of a batch that have not ended.
    pub(crate) fn cancel(self: &Arc<Self>, batch: BatchId, tasks: u32) {
        let now = self.shared.now();
        let mut state = self.lock();
        for index in 0..tasks {
            state.transfers.cancel(now, TaskId { batch, index });
        }
        self.turn(state);
    }

    /// A notification that follows no batch.
    pub(crate) fn notify(self: &Arc<Self>, payload: Vec<u8>) -> Result<(), NotifyError> {
        let mut state = self.lock();
        if state.is_over || self.shared.is_closing() {
            return Err(NotifyError::ShutDown);
        }
        state.outbox.reserve(payload.len())?;
        state.outbox.push(payload);
        self.want(&mut state);
        self.say_notifications(&mut state);
        Ok(())
    }

    /// Asks for the peer's description; it comes when there is a link.
    pub(crate) fn open(self: &Arc<Self>, promise: Promise<Result<Description, OpenError>>) {
        let mut state = self.lock();
        if state.is_over || self.shared.is_closing() {
            return promise.keep(Err(OpenError::ShutDown));
        }
        if state.opens.len() >= OPENS_MAX {
            return promise.keep(Err(OpenError::Full));
        }
        state.opens.push(promise);
        match &state.link {
            Some(link) => link.tcp.ask_description(),
            None => self.want(&mut state),
        }
    }

    /// The peer told what it has.
    pub(crate) fn described(&self, description: &Description) {
        let mut state = self.lock();
        if let Some(link) = &state.link {
            link.rail.learned(&description.keys());
        }
        state.description = Some(description.clone());
        let opens = std::mem::take(&mut state.opens);
        drop(state);
        opens.iter().for_each(|open| open.keep(Ok(description.clone())));
    }

    pub(crate) fn segment_opened(&self) {
        self.lock().segments += 1;
    }

    /// Nobody has a segment of this peer any more: its link ends, once there is no work.
    pub(crate) fn segment_closed(&self) {
        let mut state = self.lock();
        state.segments -= 1;
        let is_unused = state.segments == 0 && state.is_idle() && !state.is_over && state.opens.is_empty();
        drop(state);
        if is_unused {
            self.shared.mailbox.send(Command::Close(self.node));
        }
    }

    /// A number of the peer's acknowledgement, and for which of its lives' numbers.
    pub(crate) fn acknowledged(&self, number: u64, life: Incarnation) {
        let mut state = self.lock();
        if state.link.as_ref().is_some_and(|link| link.process.incarnation == life) {
            state.outbox.acknowledged(number);
        }
        self.say_idle(&state);
    }

    /// The peer refused notifications and has room again.
    pub(crate) fn resend(&self) {
        let mut state = self.lock();
        if let Some(life) = state.link.as_ref().map(|link| link.process.incarnation) {
            state.outbox.link_up(life);
        }
        self.say_notifications(&mut state);
    }

    /// Room for notifications again: the peer shall send what was refused.
    pub(crate) fn ask_again(&self) {
        if let Some(link) = &self.lock().link {
            link.tcp.ask_again();
        }
    }

    /// There is a link.
    pub(crate) fn link_up(self: &Arc<Self>, link: ActiveLink) {
        let now = self.shared.now();
        let mut state = self.lock();
        let life = link.process.incarnation;
        let mut orphans = Vec::new();
        for (batch, active) in &mut state.batches {
            if active.life != life {
                active.is_orphan = true;
                orphans.push((*batch, active.ledger.len()));
            }
        }
        for (batch, tasks) in orphans {
            for index in 0..tasks {
                state.transfers.cancel(now, TaskId { batch, index });
            }
        }
        if !state.opens.is_empty() {
            link.tcp.ask_description();
        }
        if let Some(description) =
            state.description.take_if(|description| description.process() == link.process)
        {
            link.rail.learned(&description.keys());
            state.description = Some(description);
        }
        state.transfers.link_up(self.node, link.id);
        state.outbox.link_up(life);
        state.link = Some(link);
        state.is_wanting = false;
        self.say_notifications(&mut state);
        self.turn(state);
    }

    /// The link is over. Its slices come back after this. Who asked for something while it was about to end, and found it still
    /// there, needs another one.
    pub(crate) fn link_down(self: &Arc<Self>, link: LinkId) {
        let mut state = self.lock();
        state.transfers.link_down(self.node, link);
        let was_own = state.link.take_if(|own| own.id == link).is_some();
        if was_own && (!state.opens.is_empty() || !state.is_idle()) {
            self.want(&mut state);
        }
    }

    /// What a thread that waits for this peer may read in the meantime.
    pub(crate) fn lane_to_drive(&self) -> Option<Arc<Lane>> {
        self.lock().link.as_ref()?.tcp.sole().cloned()
    }

    /// Deadlines, caps and quarantines.
    pub(crate) fn handle_timeout(self: &Arc<Self>) {
        let now = self.shared.now();
        let mut state = self.lock();
        state.armed = Instant::FAR;
        state.transfers.handle_timeout(now);
        self.turn(state);
    }

    /// The engine is over: every task ends, nobody waits any more.
    pub(crate) fn end(self: &Arc<Self>) {
        let now = self.shared.now();
        let mut state = self.lock();
        state.is_over = true;
        let batches: Vec<_> = state.batches.iter().map(|(id, active)| (*id, active.ledger.len())).collect();
        for (batch, tasks) in batches {
            for index in 0..tasks {
                state.transfers.cancel(now, TaskId { batch, index });
            }
        }
        let opens = std::mem::take(&mut state.opens);
        self.turn(state);
        opens.iter().for_each(|open| open.keep(Err(OpenError::ShutDown)));
    }

    /// Waits until no work and no notification is left.
    pub(crate) fn wait_idle(&self, until: Monotonic) {
        let mut state = self.lock();
        while !state.is_idle() {
            let left = until.saturating_duration_since(Monotonic::now());
            if left.is_zero() {
                return;
            }
            state = self.idle.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Whether nothing of this peer is needed here.
    pub(crate) fn is_unused(&self) -> bool {
        let state = self.lock();
        state.segments == 0 && state.is_idle() && state.link.is_none() && state.opens.is_empty()
    }

    pub(crate) fn counters(&self) -> (TransferCounters, usize, u32) {
        let state = self.lock();
        let (slices, tasks) = state.transfers.load();
        (state.transfers.counters(), slices, tasks)
    }

    /// Asks for a link, once until there is one.
    fn want(self: &Arc<Self>, state: &mut State) {
        if state.link.is_none() && !state.is_wanting && !state.is_over {
            state.is_wanting = true;
            self.shared.mailbox.send(Command::Want(self.clone()));
        }
    }

    /// A link cannot be asked for now.
    pub(crate) fn not_wanted(&self) {
        self.lock().is_wanting = false;
    }

    /// Whether no link is needed. Who needs one from now on asks again.
    pub(crate) fn gives_up_link(&self) -> bool {
        let mut state = self.lock();
        let is_unused = state.segments == 0 && state.is_idle() && state.opens.is_empty();
        if is_unused {
            state.is_wanting = false;
        }
        is_unused
    }

    fn say_idle(&self, state: &State) {
        if state.is_idle() {
            self.idle.notify_all();
        }
    }

    /// Sends what the outbox has, as far as there is a link.
    fn say_notifications(&self, state: &mut State) {
        if let Some(link) = &state.link {
            let mut is_any = false;
            while let Some(notification) = state.outbox.poll() {
                link.tcp.queue_notification(notification);
                is_any = true;
            }
            if is_any {
                link.tcp.flush_control();
            }
        }
        self.say_idle(state);
    }

    /// Lets the machine have its turns until it has nothing more to say.
    fn turn<'a>(self: &'a Arc<Self>, mut state: MutexGuard<'a, State>) {
        loop {
            let mut after = self.collect(&mut state);
            drop(state);
            after.ledgers.drain(..).for_each(|(ledger, entry)| entry.write(&ledger));
            after.commands.drain(..).for_each(|command| self.shared.mailbox.send(command));
            if let Some(rail) = after.rail.take().filter(|_| !after.works.is_empty()) {
                rail.post(std::mem::take(&mut after.works), &mut after.ended);
            } else if after.ended.is_empty() && !after.is_notifying {
                return;
            }
            state = self.lock();
            if after.is_notifying {
                self.say_notifications(&mut state);
            }
            let now = self.shared.now();
            for (slice, end) in after.ended {
                state.transfers.completed(now, slice, end);
            }
        }
    }

    /// What the machine says now.
    fn collect(self: &Arc<Self>, state: &mut State) -> Aftermath {
        let now = self.shared.now();
        let mut after =
            Aftermath { rail: state.link.as_ref().map(|link| link.rail.clone()), ..Aftermath::default() };
        let link = state.link.as_ref().map(|link| link.id);
        while after.works.len() < TURN_MAX
            && let Some(post) = state.transfers.poll_post(now)
        {
            match self.shared.regions.local(post.local, post.length) {
                _ if Some(post.link) != link => after.ended.push((post.slice, WireEnd::Flushed)),
                Some(local) => {
                    let (slice, opcode, remote) = (post.slice, post.opcode, post.remote);
                    after.works.push(Work { slice, opcode, local, remote });
                }
                None => after.ended.push((post.slice, WireEnd::LocalAccess)),
            }
        }
        while let Some(event) = state.transfers.poll_event() {
            self.hear(state, event, &mut after);
        }
        if let Some(at) = state.transfers.next_timeout(now).filter(|at| *at < state.armed) {
            state.armed = at;
            after.commands.push(Command::Arm(self.clone(), at));
        }
        self.say_idle(state);
        after
    }

    fn hear(self: &Arc<Self>, state: &mut State, event: Event, after: &mut Aftermath) {
        match event {
            Event::Want { .. } => self.want(state),
            Event::Unwant { .. } => after.commands.push(Command::Unwant(self.node)),
            Event::Flush { .. } => after.commands.push(Command::Flush(self.node)),
            Event::Ended { task, outcome, buffers } => {
                if let Some(active) = state.batches.get(&task.batch) {
                    let is_orphaned = active.is_orphan && outcome == Outcome::Canceled;
                    let status = if is_orphaned { Status::PeerRestarted } else { outcome.into() };
                    let entry = Entry::Ended(task.index, status, buffers);
                    after.ledgers.push((active.ledger.clone(), entry));
                }
            }
            Event::Drained { task } => {
                if let Some(active) = state.batches.get(&task.batch) {
                    after.ledgers.push((active.ledger.clone(), Entry::Drained(task.index)));
                }
            }
            Event::BatchDone { batch, is_complete } => {
                let freed = state.transfers.free(batch);
                debug_assert!(freed.is_ok(), "invariant: a batch that is done can be freed");
                let Some(active) = state.batches.remove(&batch) else { return };
                match active.notify {
                    Some(payload) if is_complete => {
                        state.outbox.push(payload);
                        after.is_notifying = true;
                    }
                    Some(payload) => state.outbox.release(payload.len()),
                    None => {}
                }
                after.ledgers.push((active.ledger, Entry::Done));
            }
            // Batches are given to the machine without their notifications: those wait in `batches`.
            Event::Notify { .. } => {}
        }
    }
}

impl State {
    fn is_idle(&self) -> bool {
        self.batches.is_empty() && self.outbox.count() == 0
    }
}

impl Entry {
    fn write(&self, ledger: &Ledger) {
        match self {
            Self::Ended(index, status, buffers) => ledger.ended(*index, *status, *buffers),
            Self::Drained(index) => ledger.drained(*index),
            Self::Done => ledger.finish(),
        }
    }
}

/// For rails: a peer by its `Arc`, since its turns give work to others.
#[derive(Debug)]
pub(crate) struct PeerListener(pub(crate) Arc<Peer>);

impl Listener for PeerListener {
    fn completed(&self, ended: &[Ended]) {
        let peer = &self.0;
        let now = peer.shared.now();
        let mut state = peer.lock();
        for (slice, end) in ended {
            state.transfers.completed(now, *slice, *end);
        }
        peer.turn(state);
    }

    fn elsewhere(&self, link: LinkId, works: Vec<Work>) {
        let tcp = self.0.lock().link.as_ref().filter(|up| up.id == link).map(|up| up.tcp.clone());
        let mut ended = Vec::new();
        match tcp {
            Some(tcp) => tcp.post(works, &mut ended),
            None => ended.extend(works.into_iter().map(|work| (work.slice, WireEnd::Flushed))),
        }
        self.completed(&ended);
    }

    fn moved(&self, opcode: proto::Opcode, bytes: usize) {
        let shared = &self.0.shared;
        let counter = if opcode == proto::Opcode::Write { &shared.bytes_out } else { &shared.bytes_in };
        counter.fetch_add(bytes as u64, std::sync::atomic::Ordering::Relaxed);
    }

    fn failed(&self, link: LinkId) {
        self.0.shared.mailbox.send(Command::Failed(link));
    }

    fn now(&self) -> Instant {
        self.0.shared.now()
    }
}

//! Work that moves bytes: batches of requests, cut into slices, put on links as they come.
//!
//! Owns: batches and tasks from submission to the end, what waits for a link, the window of each peer, the order between
//! peers and classes, retry budgets, deadlines, and whose memory may still be touched. Does **not** own links
//! ([`crate::Connections`] makes them; [`Event::Want`] asks for one) or memory: addresses are numbers here.
//!
//! ```text
//!            slice posted           all slices done
//!  Waiting ---------------> Active ------------------> Completed, drained
//!     |                       |  failed, deadline, cancel
//!     | deadline, cancel      v
//!     +---------------> TimedOut | Canceled | Failed, *quarantined* --last slice back from the wire--> *drained*
//! ```
//!
//! * **Waiting is a state.** A task without a link, or behind a full window or a cap, is not tried and fails nothing. Its
//!   budget counts slices that were on the wire and went unanswered. Only its deadline ends a wait.
//! * **Memory is constant in the length of the work.** A slice exists while it is on the wire; a task of a million slices is
//!   one cursor.
//! * **An outcome is not a release.** Whoever times out or cancels hears of it at once, and may use the memory again when
//!   the task is drained. If that takes too long, [`Event::Flush`] asks for the end of the link, after which the card
//!   gives everything back.

mod batch;
mod config;
mod notify;
mod places;
mod rate;
#[cfg(test)]
mod tests;

pub use batch::{
    BatchId, Buffers, Class, Failure, Opcode, Outcome, Post, Repeat, Request, SliceId, TaskId, TaskState,
    WireEnd,
};
pub use config::{Event, FreeError, SubmitError, TransferConfig, TransferConfigError, TransferCounters};
pub use notify::{Delivery, Inbox, InboxConfig, Notification, Outbox, OutboxConfig, OutboxFull};
pub use rate::ClassConfig;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use towline_sansio::Instant;

use crate::guards::Guards;
use crate::identity::{LinkId, NodeId};

use batch::{Batch, Flight, Piece, Task, TurnOver};
use places::Places;
use rate::Shares;

#[derive(Debug, Default)]
struct Peer {
    link: Option<LinkId>,
    /// Tasks with work, in order. One that ends while it waits stays here until its turn, or until most are such.
    queues: [VecDeque<TaskId>; 3],
    /// Of `queues`, those that have not ended.
    live: [usize; 3],
    in_flight: u32,
    is_wanted: bool,
    /// It stands in the round of this class.
    is_in_round: [bool; 3],
}

impl Peer {
    fn is_empty(&self) -> bool {
        self.live == [0; 3]
    }
}

/// The work of one process. See the module's documentation.
#[derive(Debug)]
pub struct Transfers {
    config: TransferConfig,
    guards: Guards,
    batches: Places<Batch>,
    flights: Places<Flight>,
    peers: BTreeMap<NodeId, Peer>,
    /// Peers with a link and work, for each class, in turn.
    rounds: [VecDeque<NodeId>; 3],
    shares: Shares,
    deadlines: BTreeSet<(Instant, TaskId)>,
    quarantine: BTreeSet<(Instant, TaskId)>,
    tasks: u32,
    events: VecDeque<Event>,
    counters: TransferCounters,
}

impl Transfers {
    /// No work yet.
    ///
    /// # Errors
    /// A bound is zero.
    pub fn new(config: TransferConfig) -> Result<Self, TransferConfigError> {
        for (is_zero, field) in [
            (config.slice == 0, "slice"),
            (config.wire_attempts == 0, "wire_attempts"),
            (config.window == 0, "window"),
            (config.batches_max == 0, "batches_max"),
            (config.batch_tasks_max == 0, "batch_tasks_max"),
            (config.tasks_max == 0, "tasks_max"),
            (config.classes.iter().any(|class| class.weight == 0), "weight"),
        ] {
            if is_zero {
                return Err(TransferConfigError { field });
            }
        }
        Ok(Self {
            config,
            guards: Guards::ALL,
            batches: Places::new(),
            flights: Places::new(),
            peers: BTreeMap::new(),
            rounds: [const { VecDeque::new() }; 3],
            shares: Shares::new(config.classes),
            deadlines: BTreeSet::new(),
            quarantine: BTreeSet::new(),
            tasks: 0,
            events: VecDeque::new(),
            counters: TransferCounters::default(),
        })
    }

    /// Switches rules off. For tests that must fail without them.
    #[must_use]
    pub fn with_guards(mut self, guards: Guards) -> Self {
        self.guards = guards;
        self
    }

    /// Takes a batch. `notify` goes to its peer after the last byte of the whole batch is applied, and not at all if
    /// anything fails; reserve its place in the [`Outbox`] first.
    ///
    /// # Errors
    /// See [`SubmitError`]; nothing was begun.
    pub fn submit(
        &mut self,
        now: Instant,
        requests: &[Request],
        notify: Option<(NodeId, Vec<u8>)>,
    ) -> Result<BatchId, SubmitError> {
        let tasks = requests.len();
        if tasks == 0 || tasks > self.config.batch_tasks_max as usize {
            return Err(SubmitError::Size { tasks });
        }
        let is_sound = |request: &Request| {
            let fits = |start: u64| start.checked_add(request.length).is_some();
            request.length > 0 && fits(request.local) && fits(request.remote)
        };
        if let Some(index) = requests.iter().position(|request| !is_sound(request)) {
            return Err(SubmitError::Range { index });
        }
        let added = u32::try_from(tasks).unwrap_or(u32::MAX);
        let is_full = self.batches.count() >= self.config.batches_max as usize
            || self.tasks.saturating_add(added) > self.config.tasks_max;
        if is_full {
            return Err(SubmitError::Full { tasks: self.tasks });
        }
        self.tasks += added;
        let batch =
            Batch { tasks: requests.iter().copied().map(Task::new).collect(), open: added, lent: 0, notify };
        let (index, generation) = self.batches.insert(batch);
        let batch = BatchId { index, generation };
        for (index, request) in (0..).zip(requests) {
            let task = TaskId { batch, index };
            if request.deadline < Instant::FAR {
                self.deadlines.insert((request.deadline, task));
            }
            self.enqueue(task);
        }
        self.handle_timeout(now);
        Ok(batch)
    }

    /// Where a task stands. `None` for a name that is not known.
    pub fn state(&self, task: TaskId) -> Option<TaskState> {
        self.task(task).map(Task::state)
    }

    /// Gives a task up. It has its outcome at once, and its memory when it is drained. False if it had ended before.
    pub fn cancel(&mut self, now: Instant, task: TaskId) -> bool {
        self.end(now, task, Outcome::Canceled)
    }

    /// Forgets a batch.
    ///
    /// # Errors
    /// It is not known, or not done.
    pub fn free(&mut self, batch: BatchId) -> Result<(), FreeError> {
        let Some(found) = self.batches.find(batch.index, batch.generation) else {
            return Err(FreeError::Unknown);
        };
        if found.open > 0 || found.lent > 0 {
            return Err(FreeError::Busy { open: found.open, lent: found.lent });
        }
        let freed = self.batches.remove(batch.index, batch.generation);
        self.tasks -= freed.map_or(0, |batch| u32::try_from(batch.tasks.len()).unwrap_or(u32::MAX));
        Ok(())
    }

    /// There is a link to a peer: its work goes on.
    pub fn link_up(&mut self, peer: NodeId, link: LinkId) {
        let entry = self.peers.entry(peer).or_default();
        entry.link = Some(link);
        entry.is_wanted = true;
        self.join_rounds(peer);
    }

    /// The link is gone. What was on it comes back through [`Transfers::completed`]; the rest waits for the next.
    pub fn link_down(&mut self, peer: NodeId, link: LinkId) {
        if let Some(entry) = self.peers.get_mut(&peer)
            && entry.link == Some(link)
        {
            entry.link = None;
            // Whoever asked for the link keeps asking by itself, so this is said again only if it was taken back.
            self.tell_wanted(peer);
        }
    }

    /// The next slice to put on the wire, if any may go now.
    pub fn poll_post(&mut self, now: Instant) -> Option<Post> {
        loop {
            let class = self.shares.choose(now, self.has_work())?;
            let peer = self.rounds[class.index()].pop_front()?;
            if let Some(post) = self.post_one(now, class, peer) {
                self.rounds[class.index()].push_back(peer);
                return Some(post);
            }
            // Its turn comes again when it has a link, room and work.
            if let Some(entry) = self.peers.get_mut(&peer) {
                entry.is_in_round[class.index()] = false;
            }
            if !self.guards.waiting_is_free {
                self.join_rounds(peer);
            }
        }
    }

    /// A slice is back from the wire. False if it is not known.
    pub fn completed(&mut self, now: Instant, slice: SliceId, end: WireEnd) -> bool {
        let Some(flight) = self.flights.remove(slice.index, slice.generation) else {
            self.counters.unknown += 1;
            return false;
        };
        let Flight { task: id, peer, mut piece } = flight;
        if let Some(entry) = self.peers.get_mut(&peer) {
            entry.in_flight -= 1;
        }
        let attempts = self.config.wire_attempts;
        let task =
            self.task_mut(id).expect("invariant: a batch is not freed while a slice of it is on the wire");
        task.in_flight -= 1;
        let is_open = task.outcome.is_none();
        let may_repeat = task.request.repeat == Repeat::Allowed;
        let mut failure = None;
        match end {
            WireEnd::Done => task.done += piece.length,
            WireEnd::RemoteAccess => failure = Some(Failure::RemoteAccess),
            WireEnd::LocalAccess => failure = Some(Failure::LocalAccess),
            WireEnd::Unanswered | WireEnd::Flushed if !may_repeat => failure = Some(Failure::Unknown),
            WireEnd::Unanswered if piece.failures + 1 >= attempts => failure = Some(Failure::WireAttempts),
            WireEnd::Unanswered | WireEnd::Flushed => {
                piece.failures += u32::from(end == WireEnd::Unanswered);
                task.again.push_back(piece);
            }
        }
        let is_complete = task.done == task.request.length;
        self.counters.unanswered += u64::from(end == WireEnd::Unanswered);
        self.counters.flushed += u64::from(end == WireEnd::Flushed);
        if is_open {
            if let Some(failure) = failure {
                self.counters.exhausted += u64::from(failure == Failure::WireAttempts);
                self.end(now, id, Outcome::Failed(failure));
            } else if is_complete {
                self.end(now, id, Outcome::Completed);
            } else {
                self.enqueue(id);
            }
        } else {
            self.maybe_drained(id);
            self.maybe_unwanted(peer);
        }
        self.join_rounds(peer);
        true
    }

    /// Time has come: see [`Transfers::next_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((at, task)) = self.deadlines.first().copied()
            && at <= now
        {
            self.deadlines.pop_first();
            self.end(now, task, Outcome::TimedOut);
        }
        while let Some((at, task)) = self.quarantine.first().copied()
            && at <= now
        {
            self.quarantine.pop_first();
            if let Some(peer) = self.task(task).map(|task| task.request.peer) {
                self.events.push_back(Event::Flush { peer });
            }
        }
    }

    /// When a deadline passes, memory is quarantined for too long, or a cap lets a waiting class go on: call
    /// [`Transfers::handle_timeout`] and [`Transfers::poll_post`] then.
    pub fn next_timeout(&self, now: Instant) -> Option<Instant> {
        let deadline = self.deadlines.first().map(|(at, _)| *at);
        let quarantine = self.quarantine.first().map(|(at, _)| *at);
        let cap = self.shares.next_timeout(now, self.has_work());
        [deadline, quarantine, cap].into_iter().flatten().min()
    }

    /// The next thing to know.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Counts since the start.
    pub fn counters(&self) -> TransferCounters {
        self.counters
    }

    /// Slices on the wire, and tasks that are not freed.
    pub fn load(&self) -> (usize, u32) {
        (self.flights.count(), self.tasks)
    }

    /// The class of a slice on the wire.
    #[cfg(test)]
    fn class_of(&self, post: &Post) -> Option<Class> {
        let flight = self.flights.find(post.slice.index, post.slice.generation)?;
        Some(self.task(flight.task)?.request.class)
    }

    fn has_work(&self) -> [bool; 3] {
        Class::ALL.map(|class| !self.rounds[class.index()].is_empty())
    }

    /// One slice of this class for this peer, if it has a link, room and work.
    fn post_one(&mut self, now: Instant, class: Class, peer: NodeId) -> Option<Post> {
        let entry = self.peers.get_mut(&peer)?;
        if entry.link.is_none() && !self.guards.waiting_is_free {
            self.burn(now, class, peer);
            return None;
        }
        let link = entry.link.filter(|_| entry.in_flight < self.config.window)?;
        loop {
            let entry = self.peers.get_mut(&peer)?;
            let id = *entry.queues[class.index()].front()?;
            let slice = self.config.slice;
            match self.task_mut(id).map(|task| task.take_turn(slice)) {
                Some(Ok((request, piece))) => {
                    return Some(self.put_on_the_wire(now, id, &request, piece, link));
                }
                over => {
                    let was_live = matches!(over, Some(Err(TurnOver { was_queued: true })));
                    let entry = self.peers.get_mut(&peer)?;
                    entry.queues[class.index()].pop_front();
                    entry.live[class.index()] -= usize::from(was_live);
                }
            }
        }
    }

    fn put_on_the_wire(
        &mut self,
        now: Instant,
        task: TaskId,
        request: &Request,
        piece: Piece,
        link: LinkId,
    ) -> Post {
        let peer = request.peer;
        if let Some(entry) = self.peers.get_mut(&peer) {
            entry.in_flight += 1;
        }
        self.counters.posted += 1;
        self.shares.sends(now, request.class, piece.length);
        let (index, generation) = self.flights.insert(Flight { task, peer, piece });
        Post {
            slice: SliceId { index, generation },
            peer,
            link,
            opcode: request.opcode,
            local: request.local + piece.offset,
            remote: request.remote + piece.offset,
            length: piece.length,
        }
    }

    /// What the absent rule would do: a pass without a link takes an attempt.
    fn burn(&mut self, now: Instant, class: Class, peer: NodeId) {
        let attempts = self.config.wire_attempts;
        let front = self.peers.get(&peer).and_then(|entry| entry.queues[class.index()].front().copied());
        let Some(id) = front else { return };
        let slice = self.config.slice;
        let Some(task) = self.task_mut(id) else { return };
        let Some(mut piece) = task.next_piece(slice) else { return };
        piece.failures += 1;
        task.again.push_front(piece);
        if piece.failures >= attempts {
            self.end(now, id, Outcome::Failed(Failure::WireAttempts));
        }
    }

    /// Puts a task with work into its peer's queue, once.
    fn enqueue(&mut self, id: TaskId) {
        let Some(task) = self.task_mut(id) else { return };
        if task.is_queued || !task.has_work() {
            return;
        }
        task.is_queued = true;
        let (peer, class) = (task.request.peer, task.request.class);
        let entry = self.peers.entry(peer).or_default();
        entry.queues[class.index()].push_back(id);
        entry.live[class.index()] += 1;
        self.tell_wanted(peer);
        self.join_rounds(peer);
    }

    /// Lets a peer take part wherever it can.
    fn join_rounds(&mut self, peer: NodeId) {
        let Some(entry) = self.peers.get_mut(&peer) else { return };
        let is_able =
            (entry.link.is_some() || !self.guards.waiting_is_free) && entry.in_flight < self.config.window;
        if !is_able {
            return;
        }
        for class in Class::ALL {
            let index = class.index();
            if !entry.queues[index].is_empty() && !entry.is_in_round[index] {
                entry.is_in_round[index] = true;
                if self.rounds[index].is_empty() {
                    self.shares.awake(class);
                }
                self.rounds[index].push_back(peer);
            }
        }
    }

    fn tell_wanted(&mut self, peer: NodeId) {
        let Some(entry) = self.peers.get_mut(&peer) else { return };
        let waiting = Class::ALL.into_iter().find(|class| entry.live[class.index()] > 0);
        if let (Some(class), false) = (waiting, entry.is_wanted) {
            entry.is_wanted = true;
            self.events.push_back(Event::Want { peer, class });
        }
    }

    /// Gives a task its outcome. False if it has one.
    fn end(&mut self, now: Instant, id: TaskId, outcome: Outcome) -> bool {
        let is_strict = self.guards.quarantine;
        let Some(task) = self.task_mut(id).filter(|task| task.outcome.is_none()) else { return false };
        task.outcome = Some(outcome);
        task.again.clear();
        let (peer, deadline) = (task.request.peer, task.request.deadline);
        let buffers = if is_strict { task.buffers() } else { Buffers::Drained };
        self.deadlines.remove(&(deadline, id));
        let batch = self.batch_mut(id.batch).expect("invariant: a task is found in its batch");
        batch.open -= 1;
        if outcome != Outcome::Completed {
            batch.notify = None;
        }
        if buffers == Buffers::Quarantined {
            batch.lent += 1;
            let until = now + self.config.quarantine_max;
            self.quarantine.insert((until, id));
            if let Some(task) = self.task_mut(id) {
                task.quarantined_until = Some(until);
            }
        }
        self.events.push_back(Event::Ended { task: id, outcome, buffers });
        self.maybe_done(id.batch);
        self.leave_queue(peer, id);
        true
    }

    /// A task that has ended needs no turn and no link any more.
    fn leave_queue(&mut self, peer: NodeId, id: TaskId) {
        let Some(task) = self.task_mut(id) else { return };
        let (was_queued, class) = (std::mem::take(&mut task.is_queued), task.request.class.index());
        let Some(entry) = self.peers.get_mut(&peer) else { return };
        if was_queued {
            entry.live[class] -= 1;
            // Swept when half of them have ended: a sweep is paid for by those that ended since the last.
            if entry.queues[class].len() > 2 * entry.live[class] {
                let mut queue = std::mem::take(&mut entry.queues[class]);
                queue.retain(|queued| self.task(*queued).is_some_and(|task| task.is_queued));
                if let Some(entry) = self.peers.get_mut(&peer) {
                    entry.queues[class] = queue;
                }
            }
        }
        self.maybe_unwanted(peer);
    }

    /// A peer without work and without a link needs none.
    fn maybe_unwanted(&mut self, peer: NodeId) {
        let Some(entry) = self.peers.get_mut(&peer) else { return };
        if entry.is_empty() && entry.in_flight == 0 && entry.link.is_none() && entry.is_wanted {
            entry.is_wanted = false;
            // One that stands in a round is forgotten there.
            if entry.is_in_round == [false; 3] {
                self.peers.remove(&peer);
            }
            self.events.push_back(Event::Unwant { peer });
        }
    }

    fn maybe_drained(&mut self, id: TaskId) {
        let Some(task) = self.task(id) else { return };
        if task.in_flight > 0 || !self.guards.quarantine {
            return;
        }
        if let Some(until) = task.quarantined_until {
            self.quarantine.remove(&(until, id));
        }
        self.events.push_back(Event::Drained { task: id });
        if let Some(batch) = self.batch_mut(id.batch) {
            batch.lent -= 1;
        }
        self.maybe_done(id.batch);
    }

    fn maybe_done(&mut self, id: BatchId) {
        let Some(batch) = self.batch_mut(id).filter(|batch| batch.open == 0 && batch.lent == 0) else {
            return;
        };
        let is_complete = batch.tasks.iter().all(|task| task.outcome == Some(Outcome::Completed));
        if let Some((peer, payload)) = batch.notify.take() {
            self.events.push_back(Event::Notify { peer, payload });
        }
        self.events.push_back(Event::BatchDone { batch: id, is_complete });
    }

    fn batch_mut(&mut self, batch: BatchId) -> Option<&mut Batch> {
        self.batches.find_mut(batch.index, batch.generation)
    }

    fn task(&self, task: TaskId) -> Option<&Task> {
        self.batches.find(task.batch.index, task.batch.generation)?.tasks.get(task.index as usize)
    }

    fn task_mut(&mut self, task: TaskId) -> Option<&mut Task> {
        self.batch_mut(task.batch)?.tasks.get_mut(task.index as usize)
    }
}

//! What a listener does with more requests than it can serve at once: serve, queue, or tell when to come back.
//!
//! Owns: which request is served next, how long the queue may be, and the times at which refused callers return. Does
//! **not** own the work, its threads or its sockets; it does not know whether a caller still listens, except by its
//! deadline and by [`AdmissionQueue::cancel`]. Silent connections are the business of [`crate::Headers`].
//!
//! The queue is bounded by *time*: a request that would wait longer than [`QueueConfig::wait_max`] is worthless when
//! served, because its caller has given up and asks again, and a server that works through such requests never gets
//! out of them. The wait is estimated as `(requests ahead + 1) * service time / workers`, with the service time
//! averaged over the last ones. Who would wait longer is told to come back at a time of its own and gets a ticket for
//! it: slots are one service interval apart, so callers return at the rate at which they can be served, and nobody
//! guesses. A ticket that comes back in its time goes before all newcomers, and newcomers are only queued if all the
//! tickets that fall due meanwhile still fit.
//!
//! ```text
//!   arrive --a worker is free, nobody waits--------------> Admit --finished-->
//!      |  \--estimated wait <= wait_max--> Queue --poll--> Start ---^
//!      |                                     \--poll--> Expired (its deadline passed: no work for the dead)
//!      \--else--> Busy { retry_at, ticket } ...the caller returns at retry_at with the ticket: arrive
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use towline_sansio::Instant;

/// The bounds of an [`AdmissionQueue`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueConfig {
    /// Requests served at once. More than zero.
    pub workers: u32,
    /// The longest estimated wait. More than zero; at most half of what callers wait for an answer.
    pub wait_max: Duration,
    /// Requests that may wait, whatever the estimate says: the bound on memory. More than zero.
    pub waiting_max: u32,
    /// The service time to assume before the first is measured. More than zero; guess high.
    pub service_guess: Duration,
    /// How much of the queue, and of the tickets, one source may hold. 1 to 100; it always may hold one.
    pub source_share_percent: u32,
    /// Tickets that may be out at once. More than zero.
    pub tickets_max: u32,
    /// How late a ticket may come and still be honoured. At most half of `wait_max`, so that all tickets that come
    /// late together still fit.
    pub ticket_grace: Duration,
}

impl QueueConfig {
    /// The defaults of listeners that answer handshakes.
    ///
    /// * `workers` 4, `service_guess` 5 ms: a handshake of a transfer endpoint costs 4 to 5 ms (measured by others).
    /// * `wait_max` 200 ms: less than half of the 470 ms after which the least patient callers, RDMA queue pairs with
    ///   the usual retry settings, have given up.
    /// * `waiting_max` 4,096: reached only by services shorter than 0.2 ms; about 300 bytes each.
    /// * `source_share_percent` 50: one source alone never fills the queue, yet hardly notices the bound.
    /// * `tickets_max` 65,536: with 5 ms and 4 workers the last of them is due after 82 s.
    /// * `ticket_grace` 50 ms: the 20 ms by which callers spread their return, and a round trip.
    pub const LISTENER: Self = Self {
        workers: 4,
        wait_max: Duration::from_millis(200),
        waiting_max: 4096,
        service_guess: Duration::from_millis(5),
        source_share_percent: 50,
        tickets_max: 65_536,
        ticket_grace: Duration::from_millis(50),
    };

    /// Checks the bounds.
    ///
    /// # Errors
    /// The first rule that is broken; the configuration's author's fault.
    pub fn validate(&self) -> Result<(), QueueConfigError> {
        for (is_zero, field) in [
            (self.workers == 0, "workers"),
            (self.wait_max.is_zero(), "wait_max"),
            (self.waiting_max == 0, "waiting_max"),
            (self.service_guess.is_zero(), "service_guess"),
            (self.tickets_max == 0, "tickets_max"),
        ] {
            if is_zero {
                return Err(QueueConfigError::NotPositive { field });
            }
        }
        if !(1..=100).contains(&self.source_share_percent) {
            return Err(QueueConfigError::ShareOutOfRange { percent: self.source_share_percent });
        }
        if self.ticket_grace > self.wait_max / 2 {
            return Err(QueueConfigError::GraceTooLong { grace: self.ticket_grace, wait_max: self.wait_max });
        }
        Ok(())
    }
}

impl Default for QueueConfig {
    fn default() -> Self {
        Self::LISTENER
    }
}

/// Why a [`QueueConfig`] was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueueConfigError {
    /// Nothing would ever be served, queued or promised.
    #[error("the admission queue's {field} is zero; it must be positive")]
    NotPositive {
        /// The field's name.
        field: &'static str,
    },
    /// Not a percentage.
    #[error("a source's share of {percent} % is not between 1 and 100")]
    ShareOutOfRange {
        /// As configured.
        percent: u32,
    },
    /// Tickets that come as late as allowed would not fit.
    #[error("a ticket grace of {grace:?} is more than half of the longest wait of {wait_max:?}")]
    GraceTooLong {
        /// As configured.
        grace: Duration,
        /// As configured.
        wait_max: Duration,
    },
}

/// Names one request that was admitted or queued. Never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(u64);

/// The right of one source to be preferred at one time. Worth nothing to any other source, so it need not be secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

impl Ticket {
    /// The number to put on the wire.
    pub fn to_wire(self) -> u64 {
        self.0
    }

    /// The ticket that a caller claims to have. An invented one makes its caller a newcomer, nothing else.
    pub fn from_wire(number: u64) -> Self {
        Self(number)
    }
}

/// A request at the door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival<S> {
    /// Who asks, for fairness: a host or a node, not a connection.
    pub source: S,
    /// When the caller stops listening; [`Instant::FAR`] if it did not say.
    pub deadline: Instant,
    /// The ticket from an earlier [`Busy`].
    pub ticket: Option<Ticket>,
}

/// The answer to an [`Arrival`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Admission {
    /// Serve it now; report [`AdmissionQueue::finished`].
    Admit(JobId),
    /// It waits; [`AdmissionQueue::poll`] says when it starts or has expired.
    Queue {
        /// Names it from here on.
        job: JobId,
        /// The estimate at this moment, at most [`QueueConfig::wait_max`].
        wait: Duration,
    },
    /// Answer *busy* with these words. Nothing is kept but the ticket.
    Busy(Busy),
}

/// When a refused caller should come back. Not a failure: it costs the caller no retry.
///
/// On the wire send the time from now to `retry_at`: an instant means something in its own process only. Callers may
/// add up to 20 ms of their own, which the ticket's grace allows for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Busy {
    /// Come back then, or within [`QueueConfig::ticket_grace`] after it. Different for each caller.
    pub retry_at: Instant,
    /// Bring this. `None` if no place could be promised: the caller will be a newcomer again.
    pub ticket: Option<Ticket>,
    /// Which bound was reached.
    pub reason: BusyReason,
}

/// Which bound of the queue was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BusyReason {
    /// The estimated wait is above [`QueueConfig::wait_max`].
    Wait,
    /// [`QueueConfig::waiting_max`] requests wait.
    Full,
    /// The source holds its share of the queue already.
    SourceShare,
    /// The caller will not listen any more when its turn comes.
    Deadline,
    /// The ticket's time has not come. The ticket stays good.
    Early,
}

/// What [`AdmissionQueue::poll`] asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueEvent {
    /// Serve it now; report [`AdmissionQueue::finished`].
    Start(JobId),
    /// Its deadline passed while it waited. It is out of the queue; close or forget its caller.
    Expired(JobId),
}

/// What the queue looks like at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueSnapshot {
    /// Requests in service, at most [`QueueConfig::workers`].
    pub running: u32,
    /// Requests that wait, at most [`QueueConfig::waiting_max`].
    pub waiting: u32,
    /// Tickets that are out, at most [`QueueConfig::tickets_max`].
    pub tickets: u32,
    /// The average service time.
    pub service: Duration,
}

/// Tickets before newcomers, each in the order of their arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Returning,
    Newcomer,
}

#[derive(Debug, Clone)]
struct Waiting<S> {
    source: S,
    class: Class,
    deadline: Instant,
}

#[derive(Debug, Clone)]
struct Reserved<S> {
    source: S,
    slot: Instant,
}

#[derive(Debug, Clone, Copy, Default)]
struct Held {
    waiting: u32,
    tickets: u32,
}

/// The admission queue of one listener.
///
/// ```
/// use towline_admission::{Admission, AdmissionQueue, Arrival, QueueConfig, QueueEvent};
/// use towline_sansio::Instant;
///
/// let mut queue = AdmissionQueue::new(QueueConfig { workers: 1, ..QueueConfig::LISTENER })?;
/// let arrival = |source| Arrival { source, deadline: Instant::FAR, ticket: None };
/// let Admission::Admit(first) = queue.arrive(Instant::ZERO, arrival("node-1")) else { panic!("it is idle") };
/// let Admission::Queue { job, wait } = queue.arrive(Instant::ZERO, arrival("node-2")) else { panic!("one waits") };
/// let now = Instant::ZERO + wait;
/// queue.finished(now, first);
/// assert_eq!(queue.poll(now), Some(QueueEvent::Start(job)));
/// # Ok::<(), towline_admission::QueueConfigError>(())
/// ```
#[derive(Debug, Clone)]
pub struct AdmissionQueue<S> {
    config: QueueConfig,
    /// Average service time in nanoseconds, at least [`SERVICE_MIN_NANOS`].
    service_nanos: u64,
    next_id: u64,
    /// Job to its start.
    running: BTreeMap<JobId, Instant>,
    waiting: BTreeMap<JobId, Waiting<S>>,
    order: BTreeSet<(Class, JobId)>,
    returning: u32,
    deadlines: BTreeSet<(Instant, JobId)>,
    reserved: BTreeMap<Ticket, Reserved<S>>,
    slots: BTreeSet<(Instant, Ticket)>,
    /// Only sources that hold something.
    held: BTreeMap<S, Held>,
    next_slot: Instant,
    /// Return times without a ticket go on behind the slots.
    next_unreserved: Instant,
}

/// Below this the clock's own steps would be measured, and slots of no width are no slots.
const SERVICE_MIN_NANOS: u64 = 1_000;
/// Each measurement moves the average by one eighth: some ten services follow a change, one outlier does not matter.
const SERVICE_WEIGHT: u64 = 8;

impl<S: Ord + Clone> AdmissionQueue<S> {
    /// An idle queue.
    ///
    /// # Errors
    /// As [`QueueConfig::validate`].
    pub fn new(config: QueueConfig) -> Result<Self, QueueConfigError> {
        config.validate()?;
        Ok(Self {
            config,
            service_nanos: nanos(config.service_guess).max(SERVICE_MIN_NANOS),
            next_id: 0,
            running: BTreeMap::new(),
            waiting: BTreeMap::new(),
            order: BTreeSet::new(),
            returning: 0,
            deadlines: BTreeSet::new(),
            reserved: BTreeMap::new(),
            slots: BTreeSet::new(),
            held: BTreeMap::new(),
            next_slot: Instant::ZERO,
            next_unreserved: Instant::ZERO,
        })
    }

    /// A request is at the door.
    pub fn arrive(&mut self, now: Instant, arrival: Arrival<S>) -> Admission {
        self.forget_late_tickets(now);
        let slot = self.slot_of(&arrival);
        let is_idle = self.has_free_worker() && self.waiting.is_empty();
        if arrival.deadline <= now {
            return self.busy_without_ticket(now, Duration::ZERO, BusyReason::Deadline);
        }
        if let (Some((ticket, slot)), false) = (slot, is_idle)
            && now < slot
        {
            return Admission::Busy(Busy { retry_at: slot, ticket: Some(ticket), reason: BusyReason::Early });
        }
        // Used up, whatever comes of it: a place further back gets a new ticket.
        let class = match slot {
            Some((ticket, _)) => {
                self.remove_ticket(ticket);
                Class::Returning
            }
            None => Class::Newcomer,
        };
        if is_idle {
            let job = self.job_id();
            self.running.insert(job, now);
            return Admission::Admit(job);
        }
        let wait = self.wait_behind(self.ahead_of(class, now));
        match self.refusal(now, wait, class, &arrival) {
            None => Admission::Queue { job: self.enqueue(arrival, class), wait },
            Some(reason @ BusyReason::Deadline) => self.busy_without_ticket(now, wait, reason),
            Some(reason) => self.reserve(now, arrival.source, reason),
        }
    }

    /// What to do next: call until `None`, after each other call and when [`AdmissionQueue::next_timeout`] is due.
    pub fn poll(&mut self, now: Instant) -> Option<QueueEvent> {
        if let Some((deadline, job)) = self.deadlines.first().copied()
            && deadline <= now
        {
            self.remove_waiting(job);
            return Some(QueueEvent::Expired(job));
        }
        if !self.has_free_worker() {
            return None;
        }
        let (_, job) = self.order.first().copied()?;
        self.remove_waiting(job);
        self.running.insert(job, now);
        Some(QueueEvent::Start(job))
    }

    /// When [`AdmissionQueue::poll`] has something to say without another call before it.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// A job was served, well or badly. Its time goes into the average. False if no such job is in service.
    pub fn finished(&mut self, now: Instant, job: JobId) -> bool {
        let Some(started) = self.running.remove(&job) else { return false };
        let took = nanos(now.since(started));
        let average = self.service_nanos - self.service_nanos / SERVICE_WEIGHT;
        self.service_nanos = average.saturating_add(took / SERVICE_WEIGHT).max(SERVICE_MIN_NANOS);
        true
    }

    /// The caller is gone, or the work was given up. Its time is not measured. False if there is no such job.
    pub fn cancel(&mut self, job: JobId) -> bool {
        self.running.remove(&job).is_some() || self.remove_waiting(job)
    }

    /// What runs and waits now. Late tickets count until the next arrival.
    pub fn snapshot(&self) -> QueueSnapshot {
        QueueSnapshot {
            running: count(self.running.len()),
            waiting: count(self.waiting.len()),
            tickets: count(self.reserved.len()),
            service: Duration::from_nanos(self.service_nanos),
        }
    }

    fn has_free_worker(&self) -> bool {
        count(self.running.len()) < self.config.workers
    }

    fn job_id(&mut self) -> JobId {
        self.next_id += 1;
        JobId(self.next_id)
    }

    /// One service interval: the mean time between two places becoming free when all workers are busy.
    fn interval(&self) -> Duration {
        Duration::from_nanos((self.service_nanos / u64::from(self.config.workers)).max(1))
    }

    fn wait_behind(&self, ahead: u32) -> Duration {
        let nanos =
            u128::from(self.service_nanos) * (u128::from(ahead) + 1) / u128::from(self.config.workers);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How many are served before a newcomer, or a ticket, that arrives now.
    fn ahead_of(&self, class: Class, now: Instant) -> u32 {
        match class {
            Class::Returning => self.returning,
            Class::Newcomer => {
                let waiting = count(self.waiting.len());
                // More than fit need not be counted.
                let room = self.config.waiting_max.saturating_sub(waiting) as usize;
                let until = (now + self.config.wait_max, Ticket(u64::MAX));
                let due = self.slots.range(..=until).take(room).count();
                waiting + count(due)
            }
        }
    }

    fn refusal(
        &self,
        now: Instant,
        wait: Duration,
        class: Class,
        arrival: &Arrival<S>,
    ) -> Option<BusyReason> {
        if count(self.waiting.len()) >= self.config.waiting_max {
            Some(BusyReason::Full)
        } else if wait > self.config.wait_max {
            Some(BusyReason::Wait)
        } else if now + wait > arrival.deadline {
            Some(BusyReason::Deadline)
        } else if class == Class::Newcomer && self.held(&arrival.source).waiting >= self.waiting_share() {
            Some(BusyReason::SourceShare)
        } else {
            None
        }
    }

    fn held(&self, source: &S) -> Held {
        self.held.get(source).copied().unwrap_or_default()
    }

    /// How many places of the queue one source may hold: its share of what can be served within the longest wait.
    fn waiting_share(&self) -> u32 {
        let capacity = self.config.wait_max.as_nanos() / self.interval().as_nanos();
        share(u32::try_from(capacity).unwrap_or(u32::MAX).min(self.config.waiting_max), &self.config)
    }

    fn enqueue(&mut self, arrival: Arrival<S>, class: Class) -> JobId {
        let job = self.job_id();
        let Arrival { source, deadline, .. } = arrival;
        self.held.entry(source.clone()).or_default().waiting += 1;
        self.order.insert((class, job));
        self.returning += u32::from(class == Class::Returning);
        if deadline < Instant::FAR {
            self.deadlines.insert((deadline, job));
        }
        self.waiting.insert(job, Waiting { source, class, deadline });
        job
    }

    fn remove_waiting(&mut self, job: JobId) -> bool {
        let Some(Waiting { source, class, deadline }) = self.waiting.remove(&job) else { return false };
        self.order.remove(&(class, job));
        self.returning -= u32::from(class == Class::Returning);
        self.deadlines.remove(&(deadline, job));
        self.let_go(&source, |held| held.waiting -= 1);
        true
    }

    fn let_go(&mut self, source: &S, change: impl FnOnce(&mut Held)) {
        let held = self.held.get_mut(source).expect("invariant: what a source holds is counted");
        change(held);
        if held.waiting == 0 && held.tickets == 0 {
            self.held.remove(source);
        }
    }

    /// Refuses with a slot of the caller's own, after everything that is in the queue or promised.
    fn reserve(&mut self, now: Instant, source: S, reason: BusyReason) -> Admission {
        let interval = self.interval();
        // Not before the longest wait is over: those in the queue were told that no other ticket falls due meanwhile.
        self.next_slot = self.next_slot.max(now + self.config.wait_max);
        let has_room = count(self.reserved.len()) < self.config.tickets_max
            && self.held(&source).tickets < share(self.config.tickets_max, &self.config);
        if !has_room {
            self.next_unreserved = self.next_unreserved.max(self.next_slot) + interval;
            return Admission::Busy(Busy { retry_at: self.next_unreserved, ticket: None, reason });
        }
        let slot = self.next_slot;
        self.next_slot = slot + interval;
        self.next_id += 1;
        let ticket = Ticket(self.next_id);
        self.held.entry(source.clone()).or_default().tickets += 1;
        self.slots.insert((slot, ticket));
        self.reserved.insert(ticket, Reserved { source, slot });
        Admission::Busy(Busy { retry_at: slot, ticket: Some(ticket), reason })
    }

    /// A slot for a caller that will not listen then is a slot lost.
    fn busy_without_ticket(&self, now: Instant, wait: Duration, reason: BusyReason) -> Admission {
        Admission::Busy(Busy { retry_at: now + wait, ticket: None, reason })
    }

    /// The arrival's ticket with its slot, if it is good.
    fn slot_of(&self, arrival: &Arrival<S>) -> Option<(Ticket, Instant)> {
        let ticket = arrival.ticket?;
        let reserved = self.reserved.get(&ticket).filter(|reserved| reserved.source == arrival.source)?;
        Some((ticket, reserved.slot))
    }

    fn forget_late_tickets(&mut self, now: Instant) {
        while let Some((slot, ticket)) = self.slots.first().copied()
            && slot + self.config.ticket_grace < now
        {
            self.remove_ticket(ticket);
        }
    }

    fn remove_ticket(&mut self, ticket: Ticket) {
        if let Some(Reserved { source, slot }) = self.reserved.remove(&ticket) {
            self.slots.remove(&(slot, ticket));
            self.let_go(&source, |held| held.tickets -= 1);
        }
    }
}

/// A source's share of `total`, at least one.
fn share(total: u32, config: &QueueConfig) -> u32 {
    let share = u64::from(total) * u64::from(config.source_share_percent) / 100;
    u32::try_from(share).unwrap_or(u32::MAX).max(1)
}

fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;

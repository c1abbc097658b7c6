use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;
use towline_sansio::Prng;

const MS: Duration = Duration::from_millis(1);
const T0: Instant = Instant::ZERO;
/// One worker at 10 ms: the queue holds 20, one source 10.
const CONFIG: QueueConfig =
    QueueConfig { workers: 1, service_guess: Duration::from_millis(10), ..QueueConfig::LISTENER };

fn queue(config: QueueConfig) -> AdmissionQueue<u32> {
    AdmissionQueue::new(config).unwrap()
}

fn newcomer(source: u32) -> Arrival<u32> {
    Arrival { source, deadline: Instant::FAR, ticket: None }
}

fn busy(admission: Admission) -> Busy {
    match admission {
        Admission::Busy(busy) => busy,
        other => panic!("not busy: {other:?}"),
    }
}

/// One request is in service, twenty wait.
fn full() -> AdmissionQueue<u32> {
    let mut queue = queue(CONFIG);
    for source in 0..21 {
        assert!(!matches!(queue.arrive(T0, newcomer(source)), Admission::Busy(_)));
    }
    queue
}

#[test]
fn configurations_that_serve_nobody_are_refused() {
    let refusal = |config: QueueConfig| AdmissionQueue::<u32>::new(config).err();
    let zero = |field| Some(QueueConfigError::NotPositive { field });
    assert_eq!(refusal(QueueConfig { workers: 0, ..CONFIG }), zero("workers"));
    assert_eq!(refusal(QueueConfig { wait_max: Duration::ZERO, ..CONFIG }), zero("wait_max"));
    assert_eq!(refusal(QueueConfig { waiting_max: 0, ..CONFIG }), zero("waiting_max"));
    assert_eq!(refusal(QueueConfig { service_guess: Duration::ZERO, ..CONFIG }), zero("service_guess"));
    assert_eq!(refusal(QueueConfig { tickets_max: 0, ..CONFIG }), zero("tickets_max"));
    for percent in [0, 101] {
        let error = refusal(QueueConfig { source_share_percent: percent, ..CONFIG });
        assert_eq!(error, Some(QueueConfigError::ShareOutOfRange { percent }));
    }
    let error = refusal(QueueConfig { ticket_grace: 101 * MS, ..CONFIG });
    assert!(matches!(error, Some(QueueConfigError::GraceTooLong { .. })));
}

#[test]
fn the_queue_is_bounded_by_the_estimated_wait() {
    let mut queue = full();
    let refused = busy(queue.arrive(T0, newcomer(99)));
    assert_eq!(refused.reason, BusyReason::Wait);
    assert_eq!(refused.retry_at, T0 + CONFIG.wait_max);
    assert_eq!(queue.snapshot(), QueueSnapshot { running: 1, waiting: 20, tickets: 1, service: 10 * MS });
}

#[test]
fn the_estimate_follows_the_measured_service_time() {
    let mut queue = queue(CONFIG);
    let mut now = T0;
    for _ in 0..100 {
        let Admission::Admit(job) = queue.arrive(now, newcomer(0)) else { panic!("idle") };
        now = now + 40 * MS;
        assert!(queue.finished(now, job));
        assert!(!queue.finished(now, job), "a second report is refused");
    }
    let service = queue.snapshot().service;
    assert!(service > 39 * MS && service <= 40 * MS, "{service:?}");
    let _running = queue.arrive(now, newcomer(0));
    let Admission::Queue { wait, .. } = queue.arrive(now, newcomer(1)) else { panic!("one may wait") };
    assert_eq!(wait, service);
}

#[test]
fn refused_callers_return_one_service_interval_apart() {
    let mut queue = full();
    let slots: Vec<Duration> =
        (100..110).map(|source| busy(queue.arrive(T0, newcomer(source))).retry_at.since(T0)).collect();
    let expected: Vec<Duration> = (0..10).map(|n| CONFIG.wait_max + 10 * MS * n).collect();
    assert_eq!(slots, expected);
}

#[test]
fn a_ticket_goes_before_newcomers_and_only_in_its_time_and_for_its_source() {
    let mut queue = full();
    let first = busy(queue.arrive(T0, newcomer(99)));
    let again = busy(queue.arrive(T0 + MS, Arrival { ticket: first.ticket, ..newcomer(99) }));
    assert_eq!(again, Busy { reason: BusyReason::Early, ..first }, "too early; the ticket stays good");
    let thief = busy(queue.arrive(T0 + MS, Arrival { ticket: first.ticket, ..newcomer(98) }));
    assert_eq!(thief.reason, BusyReason::Wait);
    assert_ne!(thief.ticket, first.ticket);

    let Admission::Queue { job, wait } =
        queue.arrive(first.retry_at, Arrival { ticket: first.ticket, ..newcomer(99) })
    else {
        panic!("the ticket is honoured although the queue is full")
    };
    assert_eq!(wait, 10 * MS);
    let running = *queue.running.keys().next().unwrap();
    queue.finished(T0 + CONFIG.wait_max, running);
    assert_eq!(queue.poll(T0 + CONFIG.wait_max), Some(QueueEvent::Start(job)));
    let reuse = busy(queue.arrive(first.retry_at, Arrival { ticket: first.ticket, ..newcomer(99) }));
    assert_ne!(reuse.ticket, first.ticket, "used up");
}

#[test]
fn a_late_ticket_is_a_newcomer() {
    let mut queue = full();
    let first = busy(queue.arrive(T0, newcomer(99)));
    let late = first.retry_at + CONFIG.ticket_grace + MS;
    let again = busy(queue.arrive(late, Arrival { ticket: first.ticket, ..newcomer(99) }));
    assert_eq!(again.reason, BusyReason::Wait);
    assert_eq!(queue.snapshot().tickets, 1, "the late one is forgotten");
}

#[test]
fn newcomers_do_not_take_the_places_of_tickets_that_fall_due() {
    let mut queue = full();
    for source in 100..120 {
        let _ticket = busy(queue.arrive(T0, newcomer(source)));
    }
    // The queue has drained, the tickets are about to return: there is no place between them.
    let jobs: Vec<JobId> = queue.waiting.keys().copied().collect();
    assert!(jobs.into_iter().all(|job| queue.cancel(job)));
    let refused = busy(queue.arrive(T0 + 199 * MS, newcomer(50)));
    assert_eq!(refused.reason, BusyReason::Wait);
    assert_eq!(refused.retry_at, T0 + 400 * MS, "after the last of them");
}

#[test]
fn one_source_cannot_fill_the_queue() {
    let mut queue = queue(CONFIG);
    let _running = queue.arrive(T0, newcomer(0));
    for _ in 0..10 {
        assert!(matches!(queue.arrive(T0, newcomer(0)), Admission::Queue { .. }));
    }
    assert_eq!(busy(queue.arrive(T0, newcomer(0))).reason, BusyReason::SourceShare);
    assert!(matches!(queue.arrive(T0, newcomer(1)), Admission::Queue { .. }));
}

#[test]
fn one_source_cannot_take_all_tickets() {
    let mut queue = AdmissionQueue::new(QueueConfig { tickets_max: 4, ..CONFIG }).unwrap();
    for source in 0..21 {
        let _admitted = queue.arrive(T0, newcomer(source));
    }
    let tickets: Vec<Busy> = (0..6).map(|_| busy(queue.arrive(T0, newcomer(99)))).collect();
    assert_eq!(tickets.iter().filter(|busy| busy.ticket.is_some()).count(), 2);
    let mut times: Vec<Instant> = tickets.iter().map(|busy| busy.retry_at).collect();
    times.dedup();
    assert_eq!(times.len(), 6, "those without a ticket are spread too");
    assert!(busy(queue.arrive(T0, newcomer(98))).ticket.is_some());
}

#[test]
fn nobody_works_for_a_caller_that_has_gone() {
    let mut queue = queue(CONFIG);
    let Admission::Admit(running) = queue.arrive(T0, newcomer(0)) else { panic!("idle") };
    let in_time = Arrival { deadline: T0 + 15 * MS, ..newcomer(1) };
    let Admission::Queue { job, .. } = queue.arrive(T0, in_time) else { panic!("10 ms are enough") };
    let too_short = Arrival { deadline: T0 + 15 * MS, ..newcomer(2) };
    assert_eq!(busy(queue.arrive(T0, too_short)).reason, BusyReason::Deadline, "20 ms are not");
    let over = Arrival { deadline: T0, ..newcomer(3) };
    assert_eq!(busy(queue.arrive(T0, over)).reason, BusyReason::Deadline);

    assert_eq!(queue.next_timeout(), Some(T0 + 15 * MS));
    assert_eq!(queue.poll(T0 + 14 * MS), None);
    // The service took longer than expected: the worker is free, the caller is not there any more.
    queue.finished(T0 + 15 * MS, running);
    assert_eq!(queue.poll(T0 + 15 * MS), Some(QueueEvent::Expired(job)));
    assert_eq!(queue.poll(T0 + 15 * MS), None);
    assert!(!queue.cancel(job));
    assert!(queue.held.is_empty() && queue.deadlines.is_empty() && queue.order.is_empty());
}

/// A listener whose services all take the same time, and callers that come back as they are told.
struct Bench {
    queue: AdmissionQueue<u32>,
    service: Duration,
    now: Instant,
    running: VecDeque<(Instant, JobId)>,
    arrived: BTreeMap<JobId, Instant>,
    tickets: BTreeSet<(Instant, u32, Option<Ticket>)>,
    wait_max: Duration,
}

impl Bench {
    fn arrive(&mut self, arrival: Arrival<u32>, jitter: Duration) -> Admission {
        let source = arrival.source;
        let admission = self.queue.arrive(self.now, arrival);
        match admission {
            Admission::Admit(job) => self.running.push_back((self.now + self.service, job)),
            Admission::Queue { job, .. } => {
                self.arrived.insert(job, self.now);
            }
            Admission::Busy(busy) => {
                assert!(busy.retry_at > self.now, "coming back at once would spin");
                self.tickets.insert((busy.retry_at + jitter, source, busy.ticket));
            }
        }
        admission
    }

    /// Lets everything happen up to `until`, except arrivals.
    fn serve(&mut self, until: Instant) {
        while let Some((end, job)) = self.running.front().copied().filter(|(end, _)| *end <= until) {
            self.now = end;
            self.running.pop_front();
            assert!(self.queue.finished(end, job));
            while let Some(event) = self.queue.poll(end) {
                let QueueEvent::Start(job) = event else { panic!("nobody has a deadline here") };
                let arrived = self.arrived.remove(&job).unwrap();
                self.wait_max = self.wait_max.max(end.since(arrived));
                self.running.push_back((end + self.service, job));
            }
        }
        self.now = until;
    }

    fn check(&self, config: &QueueConfig) {
        let snapshot = self.queue.snapshot();
        assert!(snapshot.running <= config.workers);
        assert!(snapshot.waiting <= config.waiting_max);
        assert!(snapshot.tickets <= config.tickets_max);
        assert_eq!(snapshot.running as usize, self.running.len());
        assert_eq!(snapshot.waiting as usize, self.arrived.len());
        assert!(snapshot.running == config.workers || snapshot.waiting == 0, "idle while somebody waits");
        assert!(self.queue.held.len() <= (snapshot.waiting + snapshot.tickets) as usize);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn bounds_hold_and_tickets_are_honoured_when_the_estimate_is_right(
        seed: u64,
        workers in 1u32..5,
        service_ms in 1u32..20,
        tickets_max in 1u32..400,
        burst in 1u64..200,
    ) {
        let service = service_ms * MS;
        let config = QueueConfig { workers, service_guess: service, tickets_max, ..QueueConfig::LISTENER };
        let mut bench = Bench {
            queue: queue(config),
            service,
            now: T0,
            running: VecDeque::new(),
            arrived: BTreeMap::new(),
            tickets: BTreeSet::new(),
            wait_max: Duration::ZERO,
        };
        let mut prng = Prng::new(seed);
        let mut newcomers = 600u32;
        let mut next_burst = T0;
        while newcomers > 0 || !bench.tickets.is_empty() {
            let returning = bench.tickets.first().map(|(at, ..)| *at);
            let when = if newcomers > 0 { returning.map_or(next_burst, |at| at.min(next_burst)) } else { returning.unwrap() };
            bench.serve(when);
            if returning == Some(when) {
                let (_, source, ticket) = bench.tickets.pop_first().unwrap();
                let jitter = Duration::from_micros(prng.below(20_000));
                let admission = bench.arrive(Arrival { ticket, ..newcomer(source) }, jitter);
                prop_assert!(ticket.is_none() || !matches!(admission, Admission::Busy(_)), "a broken promise: {admission:?}");
            } else {
                for _ in 0..(1 + prng.below(burst)).min(u64::from(newcomers)) {
                    newcomers -= 1;
                    let source = u32::try_from(prng.below(8)).unwrap();
                    let before = bench.queue.held(&source).waiting;
                    let admission = bench.arrive(newcomer(source), Duration::from_micros(prng.below(20_000)));
                    if matches!(admission, Admission::Queue { .. }) {
                        prop_assert!(before < bench.queue.waiting_share());
                    }
                }
                next_burst = when + Duration::from_micros(prng.below(300_000));
            }
            bench.check(&config);
        }
        bench.serve(Instant::FAR);
        prop_assert!(bench.wait_max <= config.wait_max + service, "{:?}", bench.wait_max);
        prop_assert!(bench.arrived.is_empty() && bench.queue.held.is_empty() && bench.queue.order.is_empty());
    }

    #[test]
    fn cancelling_in_any_order_leaks_nothing(
        steps in prop::collection::vec((0u8..5, any::<usize>(), 0u32..4, 0u64..30), 1..300),
    ) {
        let config = QueueConfig { tickets_max: 10, waiting_max: 12, ..CONFIG };
        let mut queue = queue(config);
        let mut now = T0;
        let (mut jobs, mut tickets): (BTreeSet<JobId>, Vec<(u32, Option<Ticket>)>) = Default::default();
        for (step, pick, source, pause_ms) in steps {
            now = now + Duration::from_millis(pause_ms);
            let job = jobs.iter().nth(pick % jobs.len().max(1)).copied();
            let arrival = match step {
                0 => Some(newcomer(source)),
                1 => Some(Arrival { deadline: now + 25 * MS, ..newcomer(source) }),
                2 if !tickets.is_empty() => {
                    let (source, ticket) = tickets.swap_remove(pick % tickets.len());
                    Some(Arrival { ticket, ..newcomer(source) })
                }
                3 => {
                    let is_known = job.is_some_and(|job| queue.cancel(job));
                    prop_assert_eq!(is_known, job.is_some_and(|job| jobs.remove(&job)));
                    None
                }
                _ => {
                    if job.is_some_and(|job| queue.finished(now, job)) {
                        jobs.retain(|known| Some(*known) != job);
                    }
                    None
                }
            };
            if let Some(arrival) = arrival {
                let source = arrival.source;
                match queue.arrive(now, arrival) {
                    Admission::Admit(job) | Admission::Queue { job, .. } => {
                        prop_assert!(jobs.insert(job));
                    }
                    Admission::Busy(busy) => tickets.push((source, busy.ticket)),
                }
            }
            while let Some(event) = queue.poll(now) {
                if let QueueEvent::Expired(job) = event {
                    prop_assert!(jobs.remove(&job));
                }
            }
            let snapshot = queue.snapshot();
            prop_assert!(snapshot.running <= 1 && snapshot.waiting <= 12 && snapshot.tickets <= 10);
            prop_assert_eq!((snapshot.running + snapshot.waiting) as usize, jobs.len());
        }
        for job in jobs {
            prop_assert!(queue.cancel(job));
        }
        queue.forget_late_tickets(Instant::FAR);
        prop_assert!(queue.held.is_empty() && queue.order.is_empty() && queue.deadlines.is_empty());
        prop_assert!(queue.slots.is_empty() && queue.reserved.is_empty());
        prop_assert_eq!(queue.returning, 0);
    }
}

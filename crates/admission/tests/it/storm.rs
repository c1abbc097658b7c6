//! Nodes that start together and all shake hands: the storm that buries a listener without admission.
//!
//! The numbers are those of a known field report: a handshake costs its listener 4.2 ms, and its caller gives up
//! after 470 ms, since a hardware timer runs out then. A served handshake whose caller has given up is wasted.

use crate::events::Events;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use towline_admission::{
    Admission, AdmissionQueue, Arrival, Backoff, BackoffConfig, JobId, LimiterConfig, LimiterCore,
    QueueConfig, QueueEvent, RequestId, Requested, Ticket,
};
use towline_sansio::{Instant, Prng};

const NODES: usize = 40;
const SERVICE: Duration = Duration::from_micros(4_200);
const PATIENCE: Duration = Duration::from_millis(470);
const MS: Duration = Duration::from_millis(1);
/// All nodes start within this time.
const START_SPREAD_NANOS: u64 = 50_000_000;
/// By how much a caller may be late for its appointment, on purpose.
const RETURN_JITTER_NANOS: u64 = 20_000_000;
const HORIZON: Instant = Instant::from_nanos(60_000_000_000);

#[derive(Clone, Copy)]
enum Event {
    Due(usize),
    Start(usize, RequestId),
    /// A worker of the node is done with this attempt of the link.
    Served(usize, Option<JobId>, Attempt),
    GaveUp(Attempt),
}

#[derive(Clone, Copy, PartialEq)]
struct Attempt {
    link: usize,
    number: u32,
}

/// One handshake to be made.
struct Link {
    from: usize,
    to: usize,
    backoff: Backoff,
    ticket: Option<Ticket>,
    /// The attempt in flight with its permit.
    attempt: Option<(u32, RequestId)>,
    attempts: u32,
    is_up: bool,
}

enum Listener {
    Admission {
        queue: Box<AdmissionQueue<usize>>,
        jobs: BTreeMap<JobId, Attempt>,
    },
    /// Takes everything, serves in order, asks nobody whether they are still there.
    Plain {
        workers: usize,
        running: usize,
        waiting: VecDeque<Attempt>,
    },
}

struct Storm {
    prng: Prng,
    links: Vec<Link>,
    limiters: Vec<LimiterCore<usize>>,
    listeners: Vec<Listener>,
    waiting: BTreeMap<(usize, RequestId), usize>,
    events: Events<Event>,
    outcome: Outcome,
}

#[derive(Debug, Default)]
struct Outcome {
    links: usize,
    up: usize,
    last_up_at: Duration,
    requests: usize,
    busy: usize,
    gave_up: usize,
    wasted: usize,
}

/// `(from, to)` for each handshake.
fn all_to_all(links_per_pair: usize) -> Vec<(usize, usize)> {
    let nodes = || 0..NODES;
    let pairs = nodes().flat_map(|from| nodes().map(move |to| (from, to))).filter(|(from, to)| from != to);
    pairs.flat_map(|pair| std::iter::repeat_n(pair, links_per_pair)).collect()
}

fn all_to_one(links_per_node: usize) -> Vec<(usize, usize)> {
    (1..NODES).flat_map(|from| std::iter::repeat_n((from, 0), links_per_node)).collect()
}

fn with_admission(workers: u32) -> Listener {
    let config = QueueConfig { workers, ..QueueConfig::LISTENER };
    Listener::Admission { queue: Box::new(AdmissionQueue::new(config).unwrap()), jobs: BTreeMap::new() }
}

fn plain(workers: usize) -> Listener {
    Listener::Plain { workers, running: 0, waiting: VecDeque::new() }
}

/// The limits of a node that shakes hands; a target gets no more than a quarter of them.
const LIMITS: LimiterConfig = LimiterConfig { per_target: 4, ..LimiterConfig::CLIENT };

impl Storm {
    fn new(
        pairs: &[(usize, usize)],
        limits: LimiterConfig,
        listener: impl Fn() -> Listener,
        seed: u64,
    ) -> Self {
        let mut prng = Prng::new(seed);
        let mut events = Events::new();
        let starts: Vec<Instant> =
            (0..NODES).map(|_| Instant::from_nanos(prng.below(START_SPREAD_NANOS))).collect();
        let link = |(index, &(from, to)): (usize, &(usize, usize))| {
            let backoff = Backoff::new(BackoffConfig::CLIENT).unwrap();
            events.at(starts[from], Event::Due(index));
            Link { from, to, backoff, ticket: None, attempt: None, attempts: 0, is_up: false }
        };
        let links: Vec<Link> = pairs.iter().enumerate().map(link).collect();
        Self {
            prng,
            links,
            limiters: vec![LimiterCore::new(limits).unwrap(); NODES],
            listeners: (0..NODES).map(|_| listener()).collect(),
            waiting: BTreeMap::new(),
            events,
            outcome: Outcome { links: pairs.len(), ..Outcome::default() },
        }
    }

    fn run(mut self) -> Outcome {
        while let Some((now, event)) = self.events.next() {
            if now > HORIZON {
                break;
            }
            match event {
                Event::Due(link) => self.due(now, link),
                Event::Start(link, id) => self.start(now, link, id),
                Event::Served(node, job, attempt) => self.served(now, node, job, attempt),
                Event::GaveUp(attempt) => {
                    if self.end_attempt(now, attempt) {
                        self.outcome.gave_up += 1;
                        let due = self.links[attempt.link].backoff.failed(now, &mut self.prng);
                        self.events.at(due, Event::Due(attempt.link));
                    }
                }
            }
        }
        self.outcome
    }

    fn due(&mut self, now: Instant, link: usize) {
        let Link { from, to, .. } = self.links[link];
        match self.limiters[from].request(to).unwrap() {
            Requested::Granted(id) => self.granted(now, link, id),
            Requested::Waiting(id) => {
                self.waiting.insert((from, id), link);
            }
        }
    }

    fn granted(&mut self, now: Instant, link: usize, id: RequestId) {
        let start = self.limiters[self.links[link].from].start(id, now).unwrap();
        self.events.at(start, Event::Start(link, id));
    }

    /// Gives the permit back. False if this attempt has ended before.
    fn end_attempt(&mut self, now: Instant, attempt: Attempt) -> bool {
        let link = &mut self.links[attempt.link];
        let Some((_, id)) = link.attempt.filter(|(number, _)| *number == attempt.number) else {
            return false;
        };
        link.attempt = None;
        let from = link.from;
        if let Some(next) = self.limiters[from].release(id).unwrap() {
            let waiter = self.waiting.remove(&(from, next)).unwrap();
            self.granted(now, waiter, next);
        }
        true
    }

    fn start(&mut self, now: Instant, index: usize, id: RequestId) {
        let link = &mut self.links[index];
        link.attempts += 1;
        let attempt = Attempt { link: index, number: link.attempts };
        link.attempt = Some((attempt.number, id));
        let (to, arrival) =
            (link.to, Arrival { source: link.from, deadline: now + PATIENCE, ticket: link.ticket.take() });
        self.outcome.requests += 1;
        match &mut self.listeners[to] {
            Listener::Plain { waiting, .. } => {
                waiting.push_back(attempt);
                self.events.at(now + PATIENCE, Event::GaveUp(attempt));
                self.work(now, to);
            }
            Listener::Admission { queue, jobs } => match queue.arrive(now, arrival) {
                Admission::Admit(job) => {
                    self.events.at(now + PATIENCE, Event::GaveUp(attempt));
                    self.events.at(now + SERVICE, Event::Served(to, Some(job), attempt));
                }
                Admission::Queue { job, .. } => {
                    jobs.insert(job, attempt);
                    self.events.at(now + PATIENCE, Event::GaveUp(attempt));
                }
                Admission::Busy(busy) => {
                    link.ticket = busy.ticket;
                    self.outcome.busy += 1;
                    let jitter = Duration::from_nanos(self.prng.below(RETURN_JITTER_NANOS));
                    self.events.at(busy.retry_at + jitter, Event::Due(index));
                    assert!(self.end_attempt(now, attempt));
                }
            },
        }
    }

    fn served(&mut self, now: Instant, node: usize, job: Option<JobId>, attempt: Attempt) {
        match (&mut self.listeners[node], job) {
            (Listener::Admission { queue, .. }, Some(job)) => assert!(queue.finished(now, job)),
            (Listener::Plain { running, .. }, _) => *running -= 1,
            (Listener::Admission { .. }, None) => panic!("a job of an admission queue has an id"),
        }
        if self.end_attempt(now, attempt) {
            let link = &mut self.links[attempt.link];
            assert!(!link.is_up, "a link comes up once");
            link.is_up = true;
            link.backoff.connected(now);
            self.outcome.up += 1;
            self.outcome.last_up_at = now.since(Instant::ZERO);
        } else {
            self.outcome.wasted += 1;
        }
        self.work(now, node);
    }

    /// Lets the workers of a node take what waits.
    fn work(&mut self, now: Instant, node: usize) {
        match &mut self.listeners[node] {
            Listener::Plain { workers, running, waiting } => {
                while *running < *workers
                    && let Some(attempt) = waiting.pop_front()
                {
                    *running += 1;
                    self.events.at(now + SERVICE, Event::Served(node, None, attempt));
                }
            }
            Listener::Admission { queue, jobs } => {
                while let Some(event) = queue.poll(now) {
                    match event {
                        QueueEvent::Start(job) => {
                            let attempt = jobs.remove(&job).unwrap();
                            self.events.at(now + SERVICE, Event::Served(node, Some(job), attempt));
                        }
                        // Its caller's own timer says the same.
                        QueueEvent::Expired(job) => drop(jobs.remove(&job)),
                    }
                }
            }
        }
    }
}

/// No faster than this can a node serve `handshakes`.
fn floor(handshakes: usize, workers: u32) -> Duration {
    SERVICE * u32::try_from(handshakes).unwrap() / workers
}

#[test]
fn forty_nodes_connect_all_to_all_in_bounded_time() {
    const LINKS_PER_PAIR: usize = 8;
    for (workers, seed) in [(1, 1), (4, 1), (1, 2), (4, 2)] {
        let outcome = Storm::new(&all_to_all(LINKS_PER_PAIR), LIMITS, || with_admission(workers), seed).run();
        println!("all to all, {workers} workers: {outcome:?}");
        let floor = floor((NODES - 1) * LINKS_PER_PAIR, workers);
        assert_eq!(outcome.up, outcome.links, "seed {seed}: {outcome:?}");
        assert!(outcome.last_up_at <= 2 * floor + 500 * MS, "seed {seed}, floor {floor:?}: {outcome:?}");
        assert_eq!((outcome.gave_up, outcome.wasted), (0, 0), "seed {seed}: {outcome:?}");
    }
}

#[test]
fn a_storm_at_one_target_ends_at_the_pace_of_its_workers() {
    const LINKS_PER_NODE: usize = 64;
    // Without a limit on the dialling side the queue alone has to cope.
    let unlimited =
        LimiterConfig { per_process: 1000, per_target: 1000, target_gap: Duration::ZERO, ..LIMITS };
    for (workers, limits) in [(1, LIMITS), (4, LIMITS), (1, unlimited), (4, unlimited)] {
        let outcome = Storm::new(&all_to_one(LINKS_PER_NODE), limits, || with_admission(workers), 1).run();
        println!("all to one, {workers} workers, {} per target: {outcome:?}", limits.per_target);
        let floor = floor((NODES - 1) * LINKS_PER_NODE, workers);
        assert_eq!(outcome.up, outcome.links, "{outcome:?}");
        assert!(outcome.last_up_at <= floor * 11 / 10 + 500 * MS, "floor {floor:?}: {outcome:?}");
        assert_eq!((outcome.gave_up, outcome.wasted), (0, 0), "{outcome:?}");
        assert!(outcome.requests <= 2 * outcome.links, "one refusal each at most: {outcome:?}");
    }
}

/// The control: the model shows the collapse when the listener takes everything.
#[test]
fn the_same_storm_without_admission_leaves_most_links_down() {
    let limits = LimiterConfig { per_target: 16, ..LIMITS };
    let outcome = Storm::new(&all_to_one(64), limits, || plain(1), 1).run();
    println!("all to one, plain listener: {outcome:?}");
    assert!(outcome.up < outcome.links / 2, "{outcome:?}");
    assert!(outcome.wasted > outcome.up, "{outcome:?}");
}

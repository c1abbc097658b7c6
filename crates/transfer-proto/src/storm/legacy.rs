//! Models of the software whose fleets storm.
//!
//! Owns: the queue of a daemon that answers everything, initiators that give up and begin anew, the limiter of the proposed
//! repair with its backoff and with what the backoff does to retries. Only their behaviour is modelled, no code of theirs is
//! here.
//!
//! What is taken from the field: one thread serves requests in their order and does not look whether anybody still waits; an
//! initiator that gave up throws its queue pairs away and asks again with new ones; a target that had configured queue pairs
//! for one that was thrown away retires them when the next request comes, which costs as much again.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use towline_sansio::{Instant, Prng};

use super::report::{Goodput, Report, Times, Trace};
use super::scenario::{Policy, Scenario};

/// One way over the network.
const DELAY: Duration = Duration::from_micros(25);
/// The backoff of the proposed repair: without jitter.
const BACKOFF_BASE: Duration = Duration::from_millis(100);
const BACKOFF_CAP: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Begin(usize),
    Request { endpoint: usize, attempt: u32 },
    Served { endpoint: usize, attempt: u32, life: u32 },
    Reply { endpoint: usize, attempt: u32 },
    GiveUp { endpoint: usize, attempt: u32 },
    Retry(usize),
    Crash,
    Return,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    WaitPermit,
    InFlight,
    Backoff,
    Connected,
    Dead,
}

#[derive(Debug, Clone)]
struct Endpoint {
    node: usize,
    state: State,
    needed_at: Instant,
    sent_at: Instant,
    connected_at: Instant,
    attempt: u32,
    failures: u32,
    /// The target has queue pairs for one of its attempts that it has thrown away.
    has_ghost: bool,
}

#[derive(Debug, Default)]
struct Node {
    permits_used: u32,
    waiting: VecDeque<usize>,
}

struct Model<'a> {
    scenario: &'a Scenario,
    permits: Option<u32>,
    burns: bool,
    backs_off: bool,
    prng: Prng,
    now: Instant,
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    next_event: u64,
    endpoints: Vec<Endpoint>,
    nodes: Vec<Node>,
    queue: VecDeque<(usize, u32)>,
    is_busy: bool,
    is_up: bool,
    life: u32,
    unsettled: usize,
    rpcs: u64,
    wasted: u64,
    round_trips: Vec<Duration>,
    goodput: Goodput,
    settled_at: Instant,
    trace: Trace,
}

/// Runs a scenario with one of the modelled policies.
pub(super) fn run(scenario: &Scenario, policy: Policy, seed: u64) -> Report {
    let (permits, burns, backs_off) = match policy {
        Policy::Limited { permits } => (Some(permits), true, true),
        Policy::LimitedRepaired { permits } => (Some(permits), false, true),
        Policy::Legacy | Policy::Ours { .. } => (None, false, false),
    };
    let mut model = Model::new(scenario, Prng::new(seed), permits, burns, backs_off);
    model.run();
    model.report()
}

impl<'a> Model<'a> {
    fn new(
        scenario: &'a Scenario,
        mut prng: Prng,
        permits: Option<u32>,
        burns: bool,
        backs_off: bool,
    ) -> Self {
        let endpoint = |index: usize| Endpoint {
            node: index % scenario.nodes as usize,
            state: State::Idle,
            needed_at: Instant::ZERO,
            sent_at: Instant::ZERO,
            connected_at: Instant::ZERO,
            attempt: 0,
            failures: 0,
            has_ghost: false,
        };
        let endpoints: Vec<Endpoint> = (0..scenario.total()).map(endpoint).collect();
        let starts: Vec<Duration> = endpoints.iter().map(|_| draw(scenario.spread, &mut prng)).collect();
        let mut model = Self {
            scenario,
            permits,
            burns,
            backs_off,
            prng,
            now: Instant::ZERO,
            events: BinaryHeap::new(),
            next_event: 0,
            unsettled: endpoints.len(),
            endpoints,
            nodes: (0..scenario.nodes).map(|_| Node::default()).collect(),
            queue: VecDeque::new(),
            is_busy: false,
            is_up: true,
            life: 0,
            rpcs: 0,
            wasted: 0,
            round_trips: Vec::new(),
            goodput: Goodput::default(),
            settled_at: Instant::ZERO,
            trace: Trace::new(),
        };
        for (index, start) in starts.into_iter().enumerate() {
            model.schedule(Instant::ZERO + start, Event::Begin(index));
        }
        if let Some(outage) = scenario.outage {
            model.schedule(Instant::ZERO + outage.from, Event::Crash);
            model.schedule(Instant::ZERO + outage.to, Event::Return);
        }
        model
    }

    fn run(&mut self) {
        let horizon = Instant::ZERO + self.scenario.horizon;
        let last_change = self.scenario.outage.map_or(Instant::ZERO, |outage| Instant::ZERO + outage.to);
        while let Some(Reverse((at, _, event))) = self.events.pop() {
            let is_settled = self.unsettled == 0 && self.now > last_change;
            if at > horizon || is_settled {
                break;
            }
            self.now = at;
            self.trace.add(words(at, event));
            self.step(event);
        }
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Begin(index) => {
                self.endpoints[index].needed_at = self.now;
                self.start(index);
            }
            Event::Request { endpoint, attempt } => {
                if self.is_up {
                    self.queue.push_back((endpoint, attempt));
                    self.serve_next();
                }
            }
            Event::Served { endpoint, attempt, life } => {
                if life == self.life {
                    self.is_busy = false;
                    self.schedule(self.now + DELAY, Event::Reply { endpoint, attempt });
                    self.serve_next();
                }
            }
            Event::Reply { endpoint, attempt } => self.on_reply(endpoint, attempt),
            Event::GiveUp { endpoint, attempt } => {
                if self.is_waiting(endpoint, attempt) {
                    self.fail(endpoint);
                }
            }
            Event::Retry(index) => self.start(index),
            Event::Crash => self.crash(),
            Event::Return => self.is_up = true,
        }
    }

    fn start(&mut self, index: usize) {
        if let Some(permits) = self.permits {
            let node = &mut self.nodes[self.endpoints[index].node];
            if node.permits_used >= permits {
                self.endpoints[index].state = State::WaitPermit;
                node.waiting.push_back(index);
                return;
            }
            node.permits_used += 1;
        }
        self.send(index);
    }

    fn send(&mut self, index: usize) {
        self.rpcs += 1;
        let now = self.now;
        let endpoint = &mut self.endpoints[index];
        endpoint.attempt += 1;
        endpoint.state = State::InFlight;
        endpoint.sent_at = now;
        let attempt = endpoint.attempt;
        let is_lost =
            self.scenario.loss_percent > 0 && self.prng.below(100) < u64::from(self.scenario.loss_percent);
        if !is_lost {
            self.schedule(now + DELAY, Event::Request { endpoint: index, attempt });
        }
        if let Some(patience) = self.scenario.patience {
            self.schedule(now + patience, Event::GiveUp { endpoint: index, attempt });
        }
    }

    fn serve_next(&mut self) {
        if self.is_busy {
            return;
        }
        let waiting = self.queue.len();
        let Some((index, attempt)) = self.queue.pop_front() else { return };
        let mut work = self.scenario.service.work(waiting);
        if let Some(slowness) = self.scenario.slowness
            && self.now < Instant::ZERO + slowness.until
        {
            work *= slowness.factor;
        }
        if self.endpoints[index].has_ghost {
            work *= 2;
        }
        self.is_busy = true;
        let served = Event::Served { endpoint: index, attempt, life: self.life };
        self.schedule(self.now + work, served);
    }

    fn on_reply(&mut self, index: usize, attempt: u32) {
        if !self.is_waiting(index, attempt) {
            self.wasted += 1;
            self.endpoints[index].has_ghost = true;
            return;
        }
        let endpoint = &mut self.endpoints[index];
        endpoint.state = State::Connected;
        endpoint.connected_at = self.now;
        endpoint.has_ghost = false;
        endpoint.failures = 0;
        self.round_trips.push(self.now.since(endpoint.sent_at));
        self.unsettled -= 1;
        self.settled_at = self.now;
        self.goodput.up(self.now);
        self.give_back(index);
    }

    fn is_waiting(&self, index: usize, attempt: u32) -> bool {
        let endpoint = &self.endpoints[index];
        endpoint.state == State::InFlight && endpoint.attempt == attempt
    }

    fn fail(&mut self, index: usize) {
        let endpoint = &mut self.endpoints[index];
        endpoint.failures += 1;
        let failures = endpoint.failures;
        let is_spent = self.scenario.budget.is_some_and(|budget| failures >= budget);
        // In the backoff every pass of the busy loop takes one retry: the budget is gone in microseconds.
        if self.burns || (is_spent && !self.backs_off) {
            endpoint.state = State::Dead;
            self.unsettled -= 1;
        } else if self.backs_off {
            endpoint.state = State::Backoff;
            let doublings = 1 << (failures - 1).min(16);
            self.schedule(self.now + (BACKOFF_BASE * doublings).min(BACKOFF_CAP), Event::Retry(index));
        }
        self.give_back(index);
        if self.endpoints[index].state == State::InFlight {
            self.start(index);
        }
    }

    fn give_back(&mut self, index: usize) {
        if self.permits.is_none() {
            return;
        }
        let node = &mut self.nodes[self.endpoints[index].node];
        match node.waiting.pop_front() {
            Some(next) => self.send(next),
            None => node.permits_used -= 1,
        }
    }

    /// The queue is lost with the process. Who was connected notices within the spread of a start.
    fn crash(&mut self) {
        self.is_up = false;
        self.is_busy = false;
        self.life += 1;
        self.queue.clear();
        for index in 0..self.endpoints.len() {
            self.endpoints[index].has_ghost = false;
            if self.endpoints[index].state == State::Connected {
                self.endpoints[index].state = State::Idle;
                self.unsettled += 1;
                self.goodput.down(self.now);
                let notice = draw(super::NOTICE_SPREAD, &mut self.prng);
                self.schedule(self.now + notice, Event::Begin(index));
            }
        }
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.next_event += 1;
        self.events.push(Reverse((at, self.next_event, event)));
    }

    fn report(self) -> Report {
        let connected = |endpoint: &&Endpoint| endpoint.state == State::Connected;
        let setup = self.endpoints.iter().filter(connected);
        let setup =
            Times::new(setup.map(|endpoint| endpoint.connected_at.since(endpoint.needed_at)).collect());
        Report {
            endpoints: self.endpoints.len(),
            connected: setup.count(),
            made: self.goodput.made(),
            dead: self.endpoints.iter().filter(|endpoint| endpoint.state == State::Dead).count(),
            setup,
            round_trip: Times::new(self.round_trips),
            rpcs: self.rpcs,
            wasted: self.wasted,
            queue_pair_errors: 0,
            ghost_acks: 0,
            idle_wakeups: 0,
            goodput: self.goodput.finish(self.now),
            settled_at: self.settled_at,
            trace_hash: self.trace.hash(),
        }
    }
}

fn draw(spread: Duration, prng: &mut Prng) -> Duration {
    Duration::from_nanos(prng.below(u64::try_from(spread.as_nanos()).unwrap_or(u64::MAX).saturating_add(1)))
}

fn words(at: Instant, event: Event) -> [u64; 4] {
    let (kind, endpoint, attempt) = match event {
        Event::Begin(index) => (1, index, 0),
        Event::Request { endpoint, attempt } => (2, endpoint, attempt),
        Event::Served { endpoint, attempt, .. } => (3, endpoint, attempt),
        Event::Reply { endpoint, attempt } => (4, endpoint, attempt),
        Event::GiveUp { endpoint, attempt } => (5, endpoint, attempt),
        Event::Retry(index) => (6, index, 0),
        Event::Crash => (7, 0, 0),
        Event::Return => (8, 0, 0),
    };
    [at.nanos(), kind, endpoint as u64, u64::from(attempt)]
}

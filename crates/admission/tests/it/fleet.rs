//! 500 clients lose their server together; it returns after five seconds.

use crate::events::Events;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use towline_admission::{
    Attempt, AttemptOutcome, Backoff, BackoffConfig, Breaker, BreakerConfig, Change, LimiterConfig,
    LimiterCore, LossCause, Passage, RequestId, Requested,
};
use towline_sansio::{Instant, Prng};

const CLIENTS: usize = 500;
const MS: Duration = Duration::from_millis(1);
const LOST_AT: Instant = Instant::from_nanos(60_000_000_000);
const OUTAGE: Duration = Duration::from_secs(5);
/// TCP and one HELLO on a local network.
const HANDSHAKE: Duration = Duration::from_millis(2);
/// A closed port answers in one round trip.
const REFUSAL: Duration = Duration::from_micros(200);
const SEEDS: u64 = 20;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Processes {
    /// All clients share one limiter.
    One,
    /// As before, with one breaker for the server: one probe asks for all.
    OneWithBreaker,
    /// Each client is a process with its own limiter.
    Many,
}

enum Event {
    Due(usize),
    /// The breaker may let a probe go: the first of those it refused asks again.
    AskAgain,
    Start(usize, RequestId),
    Done(usize, RequestId),
}

struct Fleet {
    prng: Prng,
    backoffs: Vec<Backoff>,
    limiters: Vec<LimiterCore<()>>,
    events: Events<Event>,
    waiting: BTreeMap<(usize, RequestId), usize>,
    in_flight: usize,
    breaker: Option<Breaker>,
    /// Permitted attempts that have not been reported.
    attempts: BTreeMap<usize, Attempt>,
    refused: VecDeque<usize>,
}

/// What one run showed.
#[derive(Debug, Default)]
struct Outcome {
    /// From the server's return to each client's, sorted.
    back_after: Vec<Duration>,
    /// Most dials that started within any 10 ms, during and after the outage.
    dials_per_10ms_max: usize,
    in_flight_max: usize,
    first_dial_after: Duration,
    dials: usize,
    dials_in_vain: usize,
}

impl Outcome {
    fn share_within(&self, limit: Duration) -> f64 {
        self.back_after.iter().filter(|after| **after <= limit).count() as f64 / CLIENTS as f64
    }

    fn percentile_95(&self) -> Duration {
        self.back_after[CLIENTS * 95 / 100 - 1]
    }
}

impl Fleet {
    fn new(backoff: BackoffConfig, processes: Processes, seed: u64) -> Self {
        let limiters = if processes == Processes::Many { CLIENTS } else { 1 };
        Self {
            prng: Prng::new(seed),
            backoffs: vec![Backoff::new(backoff).unwrap(); CLIENTS],
            limiters: vec![LimiterCore::new(LimiterConfig::CLIENT).unwrap(); limiters],
            events: Events::new(),
            waiting: BTreeMap::new(),
            in_flight: 0,
            breaker: (processes == Processes::OneWithBreaker)
                .then(|| Breaker::new(BreakerConfig::CLIENT).unwrap()),
            attempts: BTreeMap::new(),
            refused: VecDeque::new(),
        }
    }

    fn limiter_of(&self, client: usize) -> usize {
        client % self.limiters.len()
    }

    /// Whether the breaker, if there is one, lets the client dial. One that it refuses sleeps until it is called.
    fn may_dial(&mut self, now: Instant, client: usize) -> bool {
        let Some(breaker) = &mut self.breaker else { return true };
        match breaker.ask(now, &mut self.prng) {
            Passage::Allowed(attempt) => drop(self.attempts.insert(client, attempt)),
            Passage::Refused { .. } => self.refused.push_back(client),
        }
        self.attempts.contains_key(&client)
    }

    fn report(&mut self, now: Instant, client: usize, outcome: AttemptOutcome) {
        let Some(breaker) = &mut self.breaker else { return };
        let attempt = self.attempts.remove(&client).unwrap();
        match breaker.report(now, attempt, outcome, &mut self.prng) {
            Change::None => {}
            Change::Opened { until } => self.events.at(until, Event::AskAgain),
            Change::ProbeFree => self.events.at(now, Event::AskAgain),
            Change::Closed => {
                for client in self.refused.drain(..) {
                    self.events.at(now, Event::Due(client));
                }
            }
        }
    }

    fn granted(&mut self, now: Instant, client: usize, id: RequestId) {
        let at = self.limiter_of(client);
        let start = self.limiters[at].start(id, now).unwrap();
        self.events.at(start, Event::Start(client, id));
    }

    fn run(mut self) -> Outcome {
        let mut outcome = Outcome::default();
        let mut starts: VecDeque<Instant> = VecDeque::new();
        let back_at = LOST_AT + OUTAGE;
        for client in 0..CLIENTS {
            self.backoffs[client].connected(Instant::ZERO);
            let due = self.backoffs[client].lost(LOST_AT, LossCause::Shared, &mut self.prng);
            self.events.at(due, Event::Due(client));
        }
        while let Some((now, event)) = self.events.next() {
            match event {
                Event::AskAgain => {
                    if let Some(client) = self.refused.pop_front() {
                        self.events.at(now, Event::Due(client));
                    }
                }
                Event::Due(client) if !self.may_dial(now, client) => {}
                Event::Due(client) => {
                    let at = self.limiter_of(client);
                    match self.limiters[at].request(()).unwrap() {
                        Requested::Granted(id) => self.granted(now, client, id),
                        Requested::Waiting(id) => {
                            self.waiting.insert((at, id), client);
                        }
                    }
                }
                Event::Start(client, id) => {
                    if outcome.dials == 0 {
                        outcome.first_dial_after = now.since(LOST_AT);
                    }
                    outcome.dials += 1;
                    outcome.dials_in_vain += usize::from(now < back_at);
                    self.in_flight += 1;
                    outcome.in_flight_max = outcome.in_flight_max.max(self.in_flight);
                    starts.push_back(now);
                    while now.since(starts[0]) >= 10 * MS {
                        starts.pop_front();
                    }
                    outcome.dials_per_10ms_max = outcome.dials_per_10ms_max.max(starts.len());
                    let takes = if now < back_at { REFUSAL } else { HANDSHAKE };
                    self.events.at(now + takes, Event::Done(client, id));
                }
                Event::Done(client, id) => {
                    self.in_flight -= 1;
                    let at = self.limiter_of(client);
                    if let Some(next) = self.limiters[at].release(id).unwrap() {
                        let waiter = self.waiting.remove(&(at, next)).unwrap();
                        self.granted(now, waiter, next);
                    }
                    if now >= back_at + HANDSHAKE {
                        self.report(now, client, AttemptOutcome::Worked);
                        self.backoffs[client].connected(now);
                        outcome.back_after.push(now.since(back_at));
                    } else {
                        self.report(now, client, AttemptOutcome::Failed);
                        let due = self.backoffs[client].failed(now, &mut self.prng);
                        self.events.at(due, Event::Due(client));
                    }
                }
            }
        }
        assert_eq!(outcome.back_after.len(), CLIENTS, "everybody comes back");
        for limiter in &self.limiters {
            let snapshot = limiter.snapshot();
            assert_eq!((snapshot.in_use, snapshot.waiting), (0, 0));
        }
        outcome
    }
}

#[test]
fn dials_stay_within_the_limiter_and_the_fleet_is_back_within_a_second() {
    let limits = LimiterConfig::CLIENT;
    let gaps_in_10ms = (10 * MS).as_nanos() / limits.target_gap.as_nanos();
    for seed in 0..SEEDS {
        let outcome = Fleet::new(BackoffConfig::CLIENT, Processes::One, seed).run();
        assert!(outcome.in_flight_max <= limits.per_target as usize, "seed {seed}: {outcome:?}");
        assert!(outcome.dials_per_10ms_max <= gaps_in_10ms as usize, "seed {seed}: {outcome:?}");
        assert!(outcome.first_dial_after <= BackoffConfig::CLIENT.first_jitter, "seed {seed}: {outcome:?}");
        assert!(outcome.share_within(1000 * MS) >= 0.95, "seed {seed}: {outcome:?}");
        assert!(outcome.back_after[CLIENTS - 1] <= 1500 * MS, "seed {seed}: {outcome:?}");
    }
}

#[test]
fn a_fleet_of_processes_is_back_within_a_second_too() {
    for seed in 0..SEEDS {
        let outcome = Fleet::new(BackoffConfig::CLIENT, Processes::Many, seed).run();
        assert!(outcome.share_within(1000 * MS) >= 0.95, "seed {seed}: {outcome:?}");
        // No limiter spans them: 500 first redials within 20 ms, and the second ones of those that were refused first.
        // The jitter alone keeps their peak below the listen backlog of 511 that servers have by default.
        assert!(outcome.dials_per_10ms_max <= 400, "seed {seed}: {outcome:?}");
    }
}

#[test]
fn with_a_breaker_a_process_hardly_dials_a_dead_server_and_is_back_as_soon() {
    for seed in 0..SEEDS {
        let outcome = Fleet::new(BackoffConfig::CLIENT, Processes::OneWithBreaker, seed).run();
        let last = outcome.back_after[CLIENTS - 1];
        println!("breaker, seed {seed}: {} dials in the outage, last back {last:?}", outcome.dials_in_vain);
        // Those that were permitted before the first five failures were known, and two to four probes a second.
        assert!(outcome.dials_in_vain <= 150, "seed {seed}: {outcome:?}");
        assert!(last <= 1000 * MS, "seed {seed}: {outcome:?}");
        assert!(
            outcome.in_flight_max <= LimiterConfig::CLIENT.per_target as usize,
            "seed {seed}: {outcome:?}"
        );
    }
}

/// The figures behind [`BackoffConfig::CLIENT`]'s cap; see them with `--nocapture`.
#[test]
fn the_cap_of_the_defaults_is_the_largest_that_meets_the_goal() {
    println!("cap      back within 1 s (worst seed)   95 % back after   dials in the outage of 5 s");
    let mut shares = Vec::new();
    for cap_ms in [500, 1000, 1500, 2000, 4000] {
        let backoff = BackoffConfig { cap: cap_ms * MS, ..BackoffConfig::CLIENT };
        let runs: Vec<Outcome> =
            (0..SEEDS).map(|seed| Fleet::new(backoff, Processes::One, seed).run()).collect();
        let share = runs.iter().map(|run| run.share_within(1000 * MS)).fold(1.0, f64::min);
        let slowest = runs.iter().map(Outcome::percentile_95).max().unwrap();
        let dials = runs.iter().map(|run| run.dials_in_vain).max().unwrap();
        println!("{cap_ms:4} ms  {:26.1} %  {:15} ms  {dials:10}", share * 100.0, slowest.as_millis());
        shares.push((cap_ms, share));
    }
    let meets: Vec<u32> =
        shares.iter().filter(|(_, share)| *share >= 0.95).map(|(cap_ms, _)| *cap_ms).collect();
    assert_eq!(meets, [500, 1000]);
}

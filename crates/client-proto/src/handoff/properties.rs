//! Any order of events, also ones that no driver produces, keeps the promises that the bridge relies on.

use super::*;
use crate::maintenance::Address;
use proptest::prelude::*;
use std::net::SocketAddr;

const PEERS: [&str; 3] = ["10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379"];

#[derive(Debug, Clone)]
enum Event {
    Moving { seq: Option<u64>, seconds: u64, successor: usize, on: u8, is_idle: bool, is_name: bool },
    DialFailed,
    Ready { peer: usize, client_id: Option<i64>, replayed: bool },
    CutOver,
    Drained,
    SourceLost,
    SuccessorLost,
    Reconnected { peer: usize },
    Pass { millis: u64 },
    PassToTimeout,
}

fn event() -> impl Strategy<Value = Event> {
    let moving =
        (prop::option::weighted(0.9, 0u64..12), 0u64..20, 0usize..4, 0u8..3, any::<bool>(), any::<bool>());
    prop_oneof![
        4 => moving.prop_map(|(seq, seconds, successor, on, is_idle, is_name)| {
            Event::Moving { seq, seconds, successor, on, is_idle, is_name }
        }),
        2 => Just(Event::DialFailed),
        3 => (0usize..4, prop::option::of(0i64..10), any::<bool>())
            .prop_map(|(peer, client_id, replayed)| Event::Ready { peer, client_id, replayed }),
        3 => Just(Event::CutOver),
        2 => Just(Event::Drained),
        1 => Just(Event::SourceLost),
        1 => Just(Event::SuccessorLost),
        1 => (0usize..4).prop_map(|peer| Event::Reconnected { peer }),
        2 => (0u64..4000).prop_map(|millis| Event::Pass { millis }),
        4 => Just(Event::PassToTimeout),
    ]
}

fn peer(index: usize) -> Option<SocketAddr> {
    PEERS.get(index).and_then(|text| text.parse().ok())
}

/// A driver that believes what it is told, and checks it.
struct Driver {
    machine: Handoff,
    prng: Prng,
    now: Instant,
    serving: u64,
    newest: u64,
    is_dialling: bool,
    is_ready: bool,
    begun: u64,
    ended: u64,
}

impl Driver {
    fn source(&self, generation: u64, index: usize, is_idle: bool, is_name: bool) -> Source {
        Source {
            generation: Generation(generation),
            peer: peer(index),
            client_id: Some(5),
            configured_is_name: is_name,
            is_idle,
        }
    }

    fn apply(&mut self, event: &Event) -> Result<(), TestCaseError> {
        let now = self.now;
        match *event {
            Event::Moving { seq, seconds, successor, on, is_idle, is_name } => {
                // On the connection before the one that serves, on that one, or on the one after it.
                let generation = (self.serving + u64::from(on)).saturating_sub(1);
                let successor = PEERS.get(successor).and_then(|text| Address::parse(text.as_bytes()));
                let window = (seconds > 0).then(|| Duration::from_secs(seconds));
                let moving = Moving { seq, window, successor };
                let source = self.source(generation, usize::from(on), is_idle, is_name);
                let was = self.machine.phase();
                let taken = self.machine.on_moving(now, &moving, source, &mut self.prng);
                if taken == Taken::Begun {
                    prop_assert_eq!(was, Phase::Serving);
                }
            }
            Event::DialFailed => {
                self.machine.on_dial_failed(now, &mut self.prng);
                self.is_dialling = false;
                self.is_ready = false;
            }
            Event::Ready { peer: index, client_id, replayed } => {
                let facts = Facts { peer: peer(index), client_id, replayed };
                let judgement = self.machine.on_ready(now, facts, &mut self.prng);
                let is_wanted = self.is_dialling && !self.is_ready;
                prop_assert_eq!(judgement == Judgement::NotWanted, !is_wanted);
                if is_wanted {
                    self.is_ready = judgement == Judgement::CutOver;
                    self.is_dialling = self.is_ready;
                }
            }
            Event::CutOver => {
                self.newest += 1;
                self.machine.on_cut_over(now, Generation(self.newest));
                if self.is_ready {
                    self.serving = self.newest;
                    self.is_dialling = false;
                    self.is_ready = false;
                }
            }
            Event::Drained => self.machine.on_drained(now),
            Event::SourceLost => self.machine.on_source_lost(now),
            Event::SuccessorLost => {
                self.machine.on_successor_lost(now, &mut self.prng);
                self.is_dialling = false;
                self.is_ready = false;
            }
            Event::Reconnected { peer: index } => {
                if self.machine.phase() == Phase::Serving || self.machine.phase() == Phase::Recycling {
                    self.newest += 1;
                    self.serving = self.newest;
                    let source = self.source(self.newest, index, false, true);
                    self.machine.on_reconnected(now, source);
                }
            }
            Event::Pass { millis } => self.now = now + Duration::from_millis(millis),
            Event::PassToTimeout => {
                if let Some(at) = self.machine.poll_timeout() {
                    self.now = now.max(at);
                }
            }
        }
        self.drain()
    }

    fn drain(&mut self) -> Result<(), TestCaseError> {
        for round in 0.. {
            prop_assert!(round < 16, "the machine does not come to rest");
            let is_due = self.machine.poll_timeout().is_some_and(|at| at <= self.now);
            let Some(step) = self.machine.poll(self.now) else {
                prop_assert!(
                    self.machine.poll_timeout().is_none_or(|at| at > self.now),
                    "a timer that spins"
                );
                break;
            };
            prop_assert!(is_due, "{step:?} was not announced by the timer");
            match step {
                Step::Dial { .. } => {
                    prop_assert!(!self.is_dialling, "two dials at once");
                    self.is_dialling = true;
                }
                Step::AbandonDial => {
                    prop_assert!(self.is_dialling, "nothing to abandon");
                    self.is_dialling = false;
                    self.is_ready = false;
                }
                Step::Recycle { hold_max } => {
                    prop_assert!(!self.is_dialling);
                    prop_assert!((1..=5).contains(&hold_max.as_secs()));
                }
                Step::Retire => {}
                Step::Ended(ended) => {
                    self.ended += 1;
                    prop_assert!(ended.times.ended_at.is_some());
                    prop_assert_eq!(
                        ended.outcome == Outcome::Moved,
                        ended.to.is_some() && ended.outcome != Outcome::SuccessorLost
                    );
                }
            }
        }
        let counters = *self.machine.counters();
        self.begun = counters.begun;
        let ends = counters.moved
            + counters.recycled
            + counters.missed_windows
            + counters.sources_lost
            + counters.successors_lost;
        prop_assert_eq!(ends, self.ended, "each end is said once");
        let goes_on = u64::from(self.machine.phase() != Phase::Serving);
        prop_assert_eq!(self.begun, self.ended + goes_on, "each that began has ended or goes on");
        let taken = counters.begun + counters.retargeted + counters.queued + counters.duplicates;
        // What begins from the queue was counted when it was queued.
        prop_assert!(counters.announced <= taken + counters.stale + counters.too_many);
        let expects_dial = matches!(self.machine.phase(), Phase::Preparing | Phase::Ready);
        prop_assert_eq!(expects_dial, self.is_dialling, "both know whether a dial goes on");
        prop_assert_eq!(self.machine.phase() == Phase::Ready, self.is_ready);
        prop_assert!(self.machine.chain.len() <= HandoffConfig::default().chain_max as usize);
        prop_assert!(self.machine.outputs.is_empty());
        Ok(())
    }
}

fn driver(seed: u64) -> Driver {
    Driver {
        machine: Handoff::new(HandoffConfig::default()),
        prng: Prng::new(seed),
        now: Instant::ZERO,
        serving: 1,
        newest: 1,
        is_dialling: false,
        is_ready: false,
        begun: 0,
        ended: 0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn any_order_of_events_keeps_the_promises(seed: u64, events in prop::collection::vec(event(), 1..80)) {
        let mut driver = driver(seed);
        for event in &events {
            driver.apply(event)?;
        }
        // Left alone, every handoff ends within its window, the hold and the grace.
        let limit = driver.now + Duration::from_secs(3 * 60);
        while let Some(at) = driver.machine.poll_timeout() {
            prop_assert!(at < limit, "still busy at {:?}", at);
            driver.now = driver.now.max(at);
            driver.drain()?;
        }
        prop_assert_eq!(driver.machine.phase(), Phase::Serving);
        prop_assert_eq!(driver.begun, driver.ended);
    }

    #[test]
    fn the_same_seed_makes_the_same_history(seed: u64, events in prop::collection::vec(event(), 1..40)) {
        let run = || {
            let mut driver = driver(seed);
            for event in &events {
                driver.apply(event)?;
            }
            Ok::<_, TestCaseError>((driver.now, driver.machine.poll_timeout(), *driver.machine.counters()))
        };
        prop_assert_eq!(run()?, run()?);
    }
}

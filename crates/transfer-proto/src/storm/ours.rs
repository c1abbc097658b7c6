//! The scenarios on this crate's own machines.

use std::time::Duration;

use towline_admission::QueueConfig;
use towline_sansio::{Instant, Prng};

use crate::connect::{ConnectConfig, Role};
use crate::fabric::FabricConfig;
use crate::guards::Guards;
use crate::identity::{Lane, LinkKey};

use super::event::{Happening, Index, Seen};
use super::fleet::{Fleet, FleetConfig, node};
use super::report::{Goodput, Report, Times};
use super::scenario::{Rails, Scenario};

/// For initiators without a limit to their patience: longer than any scenario.
const ENDLESS: Duration = Duration::from_secs(3_600);
/// A target whose callers have endless patience lets them wait for this long before it tells them to come back. (It must not
/// be below the work for one handshake, which is 0.4 s in A4.)
const WAIT_OF_THE_PATIENT: Duration = Duration::from_secs(5);

/// When an observation ends in which somebody is not connected. Every scenario has settled long before.
const HORIZON: Duration = Duration::from_secs(600);

/// Runs a scenario with [`super::Policy::Ours`].
pub(super) fn run(scenario: &Scenario, workers: u32, rails: Rails, seed: u64) -> Report {
    let mut drill = Drill::new(scenario, config(scenario, workers), rails, seed);
    drill.run();
    drill.report()
}

/// The same with another number of permits.
#[cfg(test)]
pub(super) fn run_with_permits(scenario: &Scenario, workers: u32, permits: u32, seed: u64) -> Report {
    let mut config = config(scenario, workers);
    config.limiter.per_process = permits;
    let mut drill = Drill::new(scenario, config, Rails::Single, seed);
    drill.run();
    drill.report()
}

struct Drill<'a> {
    scenario: &'a Scenario,
    fleet: Fleet,
    target: Index,
    /// Endpoints of one lane.
    weight: u32,
    lanes: usize,
    /// By node, then lane: when it was needed, and when it came up if it is up.
    needed_at: Vec<Instant>,
    up_at: Vec<Option<Instant>>,
    up: usize,
    goodput: Goodput,
    settled_at: Instant,
    noticed: usize,
}

impl<'a> Drill<'a> {
    fn new(scenario: &'a Scenario, config: ConnectConfig, rails: Rails, seed: u64) -> Self {
        let mut prng = Prng::new(seed);
        let fleet_config = FleetConfig {
            seed: prng.next_u64(),
            loss_percent: scenario.loss_percent,
            delay_spread: Duration::ZERO,
            fabric: FabricConfig::USUAL,
            is_logging: true,
        };
        let mut fleet = Fleet::new(fleet_config);
        let nodes = scenario.nodes as usize;
        fleet.reserve(nodes + 1);
        for _ in 0..=nodes {
            fleet.add(config, scenario.service, Guards::ALL);
        }
        let (lanes, weight) = match rails {
            Rails::Single => (scenario.endpoints, 1),
            Rails::Shared => (1, scenario.endpoints),
        };
        let mut drill = Self {
            scenario,
            fleet,
            target: nodes,
            weight,
            lanes: lanes as usize,
            needed_at: vec![Instant::ZERO; nodes * lanes as usize],
            up_at: vec![None; nodes * lanes as usize],
            up: 0,
            goodput: Goodput::default(),
            settled_at: Instant::ZERO,
            noticed: 0,
        };
        drill.prepare(&mut prng);
        drill
    }

    fn prepare(&mut self, prng: &mut Prng) {
        let queue_pairs = u16::try_from(self.weight).unwrap_or(u16::MAX);
        for slot in 0..self.needed_at.len() {
            let start = draw(self.scenario.spread, prng);
            self.needed_at[slot] = Instant::ZERO + start;
            let (at, key) = self.lane(slot);
            self.fleet.happen_at(start, Happening::Want { at, key, queue_pairs });
        }
        if let Some(slowness) = self.scenario.slowness {
            let target = self.target;
            self.fleet.happen_at(Duration::ZERO, Happening::Slow { at: target, factor: slowness.factor });
            self.fleet.happen_at(slowness.until, Happening::Slow { at: target, factor: 1 });
        }
        let Some(outage) = self.scenario.outage else { return };
        self.fleet.happen_at(outage.from, Happening::Crash(self.target));
        self.fleet.happen_at(outage.to, Happening::Start(self.target));
        for slot in 0..self.needed_at.len() {
            let (at, key) = self.lane(slot);
            let notice = outage.from + draw(super::NOTICE_SPREAD, prng);
            self.fleet.happen_at(notice, Happening::LinkFails { at, key });
        }
    }

    fn lane(&self, slot: usize) -> (Index, LinkKey) {
        let lane = u16::try_from(slot % self.lanes).unwrap_or(u16::MAX);
        (slot / self.lanes, LinkKey { node: node(self.target), lane: Lane(lane) })
    }

    fn run(&mut self) {
        let horizon = Instant::ZERO + HORIZON;
        let last_change = self.scenario.outage.map_or(Instant::ZERO, |outage| Instant::ZERO + outage.to);
        while self.fleet.now <= horizon && (self.up < self.up_at.len() || self.fleet.now <= last_change) {
            if !self.fleet.step() {
                break;
            }
            self.notice();
        }
        // The writes that were posted last are answered, or not, within the window of the cards.
        let until = self.fleet.now + FabricConfig::USUAL.window() + Duration::from_millis(1);
        self.fleet.run_until(until);
        self.notice();
    }

    fn notice(&mut self) {
        while self.noticed < self.fleet.seen.len() {
            let (now, seen) = self.fleet.seen[self.noticed];
            self.noticed += 1;
            match seen {
                Seen::Ready { at, key, role: Role::Initiator } => {
                    self.up_at[at * self.lanes + usize::from(key.lane.0)] = Some(now);
                    self.up += 1;
                    self.settled_at = now;
                    (0..self.weight).for_each(|_| self.goodput.up(now));
                }
                Seen::Down { at, key, .. } if at != self.target => {
                    let slot = at * self.lanes + usize::from(key.lane.0);
                    self.up_at[slot] = None;
                    self.needed_at[slot] = now;
                    self.up -= 1;
                    (0..self.weight).for_each(|_| self.goodput.down(now));
                }
                Seen::Ready { .. } | Seen::Down { .. } | Seen::Broken { .. } => {}
            }
        }
        self.fleet.seen.clear();
        self.noticed = 0;
    }

    fn report(self) -> Report {
        let weight = self.weight as usize;
        let mut setup = Vec::with_capacity(self.up * weight);
        for (needed_at, up_at) in self.needed_at.iter().zip(&self.up_at) {
            if let Some(up_at) = up_at {
                setup.extend(std::iter::repeat_n(up_at.since(*needed_at), weight));
            }
        }
        let initiators = 0..self.target;
        let sum = |of: fn(crate::ConnectCounters) -> u64| -> u64 {
            initiators.clone().map(|at| of(self.fleet.connections(at).counters())).sum()
        };
        Report {
            endpoints: self.scenario.total(),
            connected: setup.len(),
            made: self.goodput.made(),
            dead: 0,
            setup: Times::new(setup),
            rpcs: sum(|counters| counters.hellos),
            wasted: self.fleet.wasted,
            queue_pair_errors: self.fleet.broken,
            ghost_acks: self.fleet.fabric.counters().ghost_acks,
            idle_wakeups: sum(|counters| counters.idle_wakeups),
            goodput: self.goodput.finish(self.settled_at),
            settled_at: self.settled_at,
            trace_hash: self.fleet.hash(),
            round_trip: Times::new(self.fleet.round_trips),
        }
    }
}

/// The defaults of an engine, but for what the scenario says of patience, so that all policies wait for the same time.
fn config(scenario: &Scenario, workers: u32) -> ConnectConfig {
    let patience = scenario.patience.unwrap_or(ENDLESS);
    let base = ConnectConfig::ENGINE;
    let wait_max = if scenario.patience.is_some() { base.queue.wait_max } else { WAIT_OF_THE_PATIENT };
    let service_guess = base.queue.service_guess.max(scenario.service.base());
    ConnectConfig {
        // As whoever configures a queue is told: guess high.
        queue: QueueConfig { workers, wait_max, service_guess, ..base.queue },
        dial_timeout: patience.min(base.dial_timeout),
        reply_timeout: patience,
        ..base
    }
}

fn draw(spread: Duration, prng: &mut Prng) -> Duration {
    Duration::from_nanos(prng.below(u64::try_from(spread.as_nanos()).unwrap_or(u64::MAX).saturating_add(1)))
}

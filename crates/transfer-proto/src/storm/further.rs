//! Fleets that are not many to one, and peers that do not behave: what ours promises of them, and what it does.
//!
//! Owns the checks and their words. Permit leaks, numbers that would wait for ever and words that lie are checked where they
//! are decided, by the tests of [`crate::Connections`].

use std::time::Duration;

use towline_sansio::{Instant, Prng};

use crate::connect::{ConnectConfig, Role};
use crate::fabric::FabricConfig;
use crate::guards::Guards;
use crate::identity::{Lane, LinkKey, NodeId};
use crate::transfers::{Class, Opcode, Repeat, Request, TransferConfig, Transfers};

use super::event::{Happening, Index, Seen};
use super::fleet::{Fleet, FleetConfig, node};
use super::report::Times;
use super::scenario::Service;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const SERVICE: Service = Service::Fixed(Duration::from_micros(4_200));
/// Processes in a history of [`chaos`].
pub(super) const CHAOS_PROCESSES: usize = 8;

/// One promise, and whether it held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Its short name.
    pub name: &'static str,
    /// What is promised.
    pub promise: &'static str,
    /// What was seen.
    pub found: String,
    /// Whether that is what was promised.
    pub holds: bool,
}

/// Runs every check. The same seed gives the same findings.
pub fn further(seed: u64) -> Vec<Check> {
    vec![
        full_mesh(seed),
        one_way(seed),
        ghosts(seed),
        silent_clients(seed),
        slow_peer(seed),
        million_slices(),
        leaving(seed),
        warm_up(seed),
    ]
}

pub(super) fn key(to: Index) -> LinkKey {
    LinkKey { node: node(to), lane: Lane(0) }
}

pub(super) fn fleet(processes: usize, config: FleetConfig, guards: Guards) -> Fleet {
    let mut fleet = Fleet::new(config);
    for _ in 0..processes {
        fleet.add(ConnectConfig::ENGINE, SERVICE, guards);
    }
    fleet
}

/// HELLOs cross where they take longer than their work.
pub(super) fn slow_network(seed: u64) -> FleetConfig {
    FleetConfig { delay_spread: 20 * MS, ..FleetConfig::usual(seed) }
}

/// Everybody wants everybody, within 50 ms.
pub(super) fn mesh(processes: usize, config: FleetConfig, guards: Guards) -> Fleet {
    let mut fleet = fleet(processes, config, guards);
    let mut prng = Prng::new(config.seed);
    for at in 0..processes {
        for to in (0..processes).filter(|to| *to != at) {
            let start = Duration::from_nanos(prng.below(50_000_000));
            fleet.happen_at(start, Happening::Want { at, key: key(to), queue_pairs: 1 });
        }
    }
    fleet
}

/// Pairs that are not linked to each other at both ends, in their present lives.
pub(super) fn apart(fleet: &Fleet, processes: usize) -> usize {
    let is_one = |a: Index, b: Index| {
        let end = |from: Index, to: Index| fleet.connections(from).linked_to(key(to));
        match (end(a, b), end(b, a)) {
            (Some((far_b, role_a)), Some((far_a, role_b))) => {
                role_a != role_b && far_b == fleet.connections(b).me() && far_a == fleet.connections(a).me()
            }
            _ => false,
        }
    };
    let pairs = (0..processes).flat_map(|a| (a + 1..processes).map(move |b| (a, b)));
    pairs.filter(|(a, b)| !is_one(*a, *b)).count()
}

pub(super) fn downs(fleet: &Fleet) -> usize {
    fleet.seen.iter().filter(|(_, seen)| matches!(seen, Seen::Down { .. })).count()
}

fn last_ready(fleet: &Fleet) -> Duration {
    let ready = fleet.seen.iter().filter(|(_, seen)| matches!(seen, Seen::Ready { .. }));
    ready.map(|(at, _)| at.since(Instant::ZERO)).max().unwrap_or_default()
}

fn full_mesh(seed: u64) -> Check {
    let mut fleet = mesh(100, slow_network(seed), Guards::ALL);
    fleet.run_until(Instant::ZERO + 30 * SECOND);
    let (apart, downs) = (apart(&fleet, 100), downs(&fleet));
    let yielded: u64 = (0..100).map(|at| fleet.connections(at).counters().yielded).sum();
    Check {
        name: "mesh",
        promise: "100 nodes connect to each other at once: one link for each of 4,950 pairs, and none is ever replaced",
        found: format!(
            "{apart} pairs apart, {downs} links replaced, {yielded} HELLOs crossed, all up at {:.2?}",
            last_ready(&fleet)
        ),
        holds: apart == 0 && downs == 0 && fleet.broken == 0,
    }
}

fn one_way(seed: u64) -> Check {
    let mut apart_after = 0;
    for (from, to) in [(1, 0), (0, 1)] {
        let mut fleet = fleet(2, FleetConfig::usual(seed), Guards::ALL);
        fleet.happen_at(Duration::ZERO, Happening::Want { at: 0, key: key(1), queue_pairs: 1 });
        fleet.happen_at(Duration::ZERO, Happening::Want { at: 1, key: key(0), queue_pairs: 1 });
        fleet.happen_at(Duration::ZERO, Happening::Cut { from, to, is_cut: true });
        fleet.happen_at(20 * SECOND, Happening::Cut { from, to, is_cut: false });
        fleet.run_until(Instant::ZERO + 23 * SECOND);
        apart_after += apart(&fleet, 2);
    }
    Check {
        name: "one-way",
        promise: "a network that passes one direction only for 20 s: a link within 3 s of its repair, whichever direction it was",
        found: format!("{apart_after} of 2 are not linked"),
        holds: apart_after == 0,
    }
}

/// Crashes, restarts, cuts and failing queue pairs at random, on a lossy network whose cards give queue pair numbers out
/// again; then calm.
pub(super) fn chaos(seed: u64, guards: Guards) -> Fleet {
    let fabric = FabricConfig { reuses_numbers: true, ..FabricConfig::USUAL };
    let config = FleetConfig { loss_percent: 10, delay_spread: 20 * MS, fabric, ..FleetConfig::usual(seed) };
    let mut fleet = mesh(CHAOS_PROCESSES, config, guards);
    let mut prng = Prng::new(seed);
    let draw = |prng: &mut Prng, max: u64| Duration::from_millis(prng.below(max));
    for _ in 0..60 {
        let at = draw(&mut prng, 20_000);
        let mut someone = || prng.below(CHAOS_PROCESSES as u64) as usize;
        let (a, b) = (someone(), someone());
        match prng.below(4) {
            0 => {
                fleet.happen_at(at, Happening::Crash(a));
                let back = at + MS + draw(&mut prng, 2_000);
                fleet.happen_at(back, Happening::Start(a));
                for to in (0..CHAOS_PROCESSES).filter(|to| *to != a) {
                    fleet.happen_at(back, Happening::Want { at: a, key: key(to), queue_pairs: 1 });
                }
            }
            1 if a != b => {
                fleet.happen_at(at, Happening::Cut { from: a, to: b, is_cut: true });
                let healed = at + draw(&mut prng, 3_000);
                fleet.happen_at(healed, Happening::Cut { from: a, to: b, is_cut: false });
            }
            _ => fleet.happen_at(at, Happening::LinkFails { at: a, key: key(b) }),
        }
    }
    fleet.run_until(Instant::ZERO + 60 * SECOND);
    // A link that lost its other end meanwhile shows when it is used.
    for a in 0..CHAOS_PROCESSES {
        for b in 0..CHAOS_PROCESSES {
            fleet.use_link(a, key(b));
        }
    }
    fleet.run_until(Instant::ZERO + 120 * SECOND);
    fleet
}

fn ghosts(seed: u64) -> Check {
    let (mut apart_after, mut ghost_acks, mut links) = (0, 0, 0);
    for history in 0..10 {
        let fleet = chaos(seed.wrapping_add(history), Guards::ALL);
        apart_after += apart(&fleet, CHAOS_PROCESSES);
        ghost_acks += fleet.fabric.counters().ghost_acks;
        links += fleet.seen.iter().filter(|(_, seen)| matches!(seen, Seen::Ready { .. })).count();
    }
    Check {
        name: "ghosts",
        promise: "10 histories of crashes, restarts, cuts, losses and queue pair numbers that come back: everybody linked after \
                  them, and no queue pair ever takes a stranger's data",
        found: format!(
            "{links} ends of links made, {apart_after} pairs apart, {ghost_acks} ghost acknowledgements"
        ),
        holds: apart_after == 0 && ghost_acks == 0,
    }
}

fn silent_clients(seed: u64) -> Check {
    let slowest = |silent: u32| {
        let mut fleet = fleet(41, FleetConfig::usual(seed), Guards::ALL);
        for number in 0..silent {
            fleet.happen_at(MS / 10 * number, Happening::SilentClient { to: 40 });
        }
        for (at, start) in (0..40).zip(0_u32..) {
            fleet.happen_at(MS * start, Happening::Want { at, key: key(40), queue_pairs: 1 });
        }
        fleet.run_until(Instant::ZERO + 5 * SECOND);
        let snapshot = fleet.connections(40).snapshot();
        (
            Times::new(fleet.round_trips.clone()).percentile(99.0),
            snapshot.ready == 40 && snapshot.connections == 40,
        )
    };
    let ((without, _), (with, is_clean)) = (slowest(0), slowest(500));
    Check {
        name: "silent",
        promise: "500 clients connect and say nothing: the others' 99th percentile moves by less than 10 ms, the silent are closed",
        found: format!("{without:.2?} without them, {with:.2?} with them"),
        holds: with <= without + 10 * MS && is_clean,
    }
}

fn slow_peer(seed: u64) -> Check {
    let slowest = |factor: u32| {
        let mut fleet = fleet(101, FleetConfig::usual(seed), Guards::ALL);
        fleet.happen_at(Duration::ZERO, Happening::Slow { at: 7, factor });
        for to in 1..=100 {
            fleet.happen_at(Duration::ZERO, Happening::Want { at: 0, key: key(to), queue_pairs: 1 });
        }
        fleet.run_until(Instant::ZERO + 20 * SECOND);
        let others = fleet.seen.iter().filter_map(|(at, seen)| match seen {
            Seen::Ready { at: 0, key: to, role: Role::Initiator } if *to != key(7) => {
                Some(at.since(Instant::ZERO))
            }
            _ => None,
        });
        (others.max().unwrap_or(Duration::MAX), fleet.connections(0).snapshot().ready)
    };
    let ((usual, _), (slow, ready)) = (slowest(1), slowest(200));
    Check {
        name: "slow-peer",
        promise: "one of 100 peers is 200 times slower: the other 99 are linked within 10 ms of the usual time",
        found: format!("{usual:.2?} usually, {slow:.2?} beside it, {ready} linked in the end"),
        holds: slow <= usual + 10 * MS && ready == 100,
    }
}

fn million_slices() -> Check {
    const SLICES: u64 = 1_000_000;
    let config = TransferConfig::ENGINE;
    let mut transfers = Transfers::new(config).expect("invariant: the defaults are sound");
    let request = Request {
        opcode: Opcode::Write,
        peer: NodeId(1),
        local: 0,
        remote: 0,
        length: SLICES * config.slice,
        class: Class::Normal,
        deadline: Instant::FAR,
        repeat: Repeat::Allowed,
    };
    let is_taken = transfers.submit(Instant::ZERO, &[request], None).is_ok();
    let is_quiet = transfers.poll_post(Instant::ZERO + 3_600 * SECOND).is_none();
    let wakeups = transfers.next_timeout(Instant::ZERO);
    let counters = transfers.counters();
    Check {
        name: "million",
        promise: "a million slices wait for a peer for an hour: none is tried or failed, nothing wakes up, memory is that of one task",
        found: format!(
            "{} slices posted, next wake-up {wakeups:?}, {:?} in memory",
            counters.posted,
            transfers.load()
        ),
        holds: is_taken
            && is_quiet
            && wakeups.is_none()
            && counters.posted == 0
            && transfers.load() == (0, 1),
    }
}

fn leaving(seed: u64) -> Check {
    let mut fleet = mesh(50, FleetConfig::usual(seed), Guards::ALL);
    fleet.happen_at(60 * MS, Happening::Leave(49));
    fleet.run_until(Instant::ZERO + 60 * MS);
    let snapshot = fleet.connections(49).snapshot();
    let held = snapshot.ready + snapshot.connecting + snapshot.permits + snapshot.connections;
    fleet.run_until(Instant::ZERO + 5 * SECOND);
    let apart = apart(&fleet, 49);
    Check {
        name: "leaving",
        promise: "a process leaves in the middle of a storm: it holds nothing from that moment on, and the others are linked",
        found: format!("{held} things held, {apart} pairs of the others apart"),
        holds: held == 0 && apart == 0,
    }
}

/// A fleet that links itself before it is needed, against one that links on demand.
fn warm_up(seed: u64) -> Check {
    let mut fleet = fleet(41, FleetConfig::usual(seed), Guards::ALL);
    for at in 0..40 {
        fleet.happen_at(Duration::ZERO, Happening::Want { at, key: key(40), queue_pairs: 64 });
    }
    fleet.run_until(Instant::ZERO + 10 * SECOND);
    let first = last_ready(&fleet);
    let ready = fleet.connections(40).snapshot().ready;
    // Work that comes later asks for what is there, and for a lane that it does not need any more.
    let before = fleet.connections(40).counters().asked;
    for at in 0..40 {
        fleet.happen_at(10 * SECOND + MS, Happening::Want { at, key: key(40), queue_pairs: 64 });
        fleet.happen_at(10 * SECOND + 2 * MS, Happening::Unwant { at, key: key(40) });
    }
    fleet.run_until(Instant::ZERO + 11 * SECOND);
    let asked = fleet.connections(40).counters().asked - before;
    Check {
        name: "warm-up",
        promise: "40 nodes with 64 rails link before work comes: the work finds its links and sends no handshake",
        found: format!("all up at {first:.2?}, then {asked} handshakes for the work"),
        holds: ready == 40 && asked == 0,
    }
}

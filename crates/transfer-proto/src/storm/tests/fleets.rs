//! Fleets that are not many to one, peers that do not behave, and what happens without the rules.

use super::*;
use crate::connect::DownCause;
use crate::guards::Guards;
use crate::storm::event::{Happening, Seen};
use crate::storm::fleet::FleetConfig;
use crate::storm::further::{CHAOS_PROCESSES, apart, chaos, downs, fleet, key, mesh, slow_network};

#[test]
fn every_further_promise_holds() {
    for check in further(SEED) {
        println!("{:10} {}", check.name, check.found);
        assert!(check.holds, "{}: {}; {}", check.name, check.promise, check.found);
    }
}

#[test]
fn a_mesh_is_quiet_once_it_is_there() {
    let mut fleet = mesh(30, slow_network(SEED), Guards::ALL);
    fleet.run_until(Instant::ZERO + 10 * SECOND);
    assert_eq!((apart(&fleet, 30), downs(&fleet)), (0, 0));
    let yields: u64 = (0..30).map(|at| fleet.connections(at).counters().yielded).sum();
    assert!(yields > 10, "HELLOs did cross: {yields}");
    let (seen, wakeups) = (fleet.seen.len(), fleet.wakeups);
    fleet.run_until(Instant::ZERO + 600 * SECOND);
    assert_eq!((fleet.seen.len(), fleet.wakeups), (seen, wakeups));
}

#[test]
fn without_the_tie_break_a_mesh_works_for_nobody() {
    let worked = |guards| {
        let mut fleet = mesh(20, slow_network(SEED), guards);
        fleet.run_until(Instant::ZERO + 5 * SECOND);
        let served: u64 = (0..20).map(|at| fleet.connections(at).counters().served).sum();
        served + fleet.wasted
    };
    let (with, without) = (worked(Guards::ALL), worked(Guards { tie_break: false, ..Guards::ALL }));
    assert_eq!(with, 190, "one answer for each pair");
    assert!(without > with, "{without}");
}

#[test]
fn after_any_history_everybody_is_linked_once() {
    for seed in 0..30 {
        let fleet = chaos(seed, Guards::ALL);
        assert_eq!(apart(&fleet, CHAOS_PROCESSES), 0, "seed {seed}");
        assert_eq!(fleet.fabric.counters().ghost_acks, 0, "seed {seed}: a queue pair took a stranger's data");
        for at in 0..CHAOS_PROCESSES {
            let snapshot = fleet.connections(at).snapshot();
            let held = (snapshot.permits, snapshot.connecting, snapshot.serving, snapshot.queued);
            assert_eq!(held, (0, 0, 0, 0), "seed {seed}, process {at}");
            assert_eq!(fleet.connections(at).counters().idle_wakeups, 0, "seed {seed}");
        }
    }
}

#[test]
fn without_random_packet_numbers_strangers_are_heard() {
    let guards = Guards { random_psn: false, ..Guards::ALL };
    let ghosts: u64 = (0..60).map(|seed| chaos(seed, guards).fabric.counters().ghost_acks).sum();
    assert!(ghosts > 0);
}

#[test]
fn those_who_speak_with_a_process_hear_that_it_leaves() {
    let mut fleet = mesh(10, FleetConfig::usual(SEED), Guards::ALL);
    fleet.happen_at(SECOND, Happening::Leave(9));
    fleet.run_until(Instant::ZERO + 5 * SECOND);
    let told =
        fleet.seen.iter().filter(|(_, seen)| matches!(seen, Seen::Down { cause: DownCause::PeerLeft, .. }));
    assert_eq!(told.count(), 9);
}

#[test]
fn a_lane_that_nobody_needs_any_more_is_not_asked_for() {
    let mut fleet = fleet(2, FleetConfig::usual(SEED), Guards::ALL);
    fleet.happen_at(Duration::ZERO, Happening::Crash(1));
    fleet.happen_at(MS, Happening::Want { at: 0, key: key(1), queue_pairs: 1 });
    fleet.happen_at(3 * SECOND, Happening::Unwant { at: 0, key: key(1) });
    fleet.run_until(Instant::ZERO + 4 * SECOND);
    assert_eq!(fleet.connections(0).next_timeout(), None);
    assert_eq!(fleet.connections(0).snapshot().connecting, 0);
}

//! Thousands of histories with losses of either side at every step.

use super::world::{Faults, NO_FAULTS, S, T, World};
use super::*;
use std::collections::BTreeSet;

/// Small, so that windows fill and batches have several chunks, and impatient.
fn config() -> Config {
    Config {
        window_bytes: 24,
        chunk_bytes: 3,
        park_bytes_max: 4,
        park_tail_max: Duration::ZERO,
        follow_max: Duration::from_millis(500),
        ..Config::default()
    }
}

fn run(seed: u64, faults: Faults, steps: usize) -> (NodeId, World) {
    let mut world = World::new(seed, faults, config());
    for _ in 0..steps {
        world.step();
    }
    let owner = world.heal();
    (owner, world)
}

#[test]
fn without_faults_the_slots_move() {
    let mut moved = 0;
    for seed in 0..100 {
        let (owner, _) = run(seed, NO_FAULTS, 0);
        moved += u64::from(owner == T);
    }
    // Random time may be slower than even a patient deadline.
    assert!(moved > 90, "{moved}");
}

#[test]
fn one_loss_at_every_single_step_harms_nothing() {
    type Loss = fn(&mut World);
    let losses: [Loss; 4] = [World::lose_link, World::lose_source, World::lose_target, World::lose_proposals];
    let mut owners = [0, 0];
    for seed in 0..3 {
        for loss in losses {
            for step in 0..700 {
                let mut world = World::new(seed * 1000 + step, NO_FAULTS, config());
                for _ in 0..step {
                    world.step();
                }
                loss(&mut world);
                owners[usize::from(world.heal() == S)] += 1;
            }
        }
    }
    assert!(owners.iter().all(|&count| count > 400), "both happen: {owners:?}");
}

#[test]
fn one_node_owns_the_slots_and_has_all_that_was_acknowledged_whatever_breaks() {
    let mut owners = [0, 0];
    let mut states = BTreeSet::new();
    for seed in 0..4000 {
        // From calm to hopeless, and each fault also by itself.
        let often = [0, 10, 30, 100];
        let pick = |place: u32| often[(seed / 4u64.pow(place) % 4) as usize];
        let faults = Faults {
            breaks: pick(0),
            source_crashes: pick(1),
            target_crashes: pick(2),
            lost_proposals: [0, 2, 4, 8][(seed / 64 % 4) as usize],
            cancels: if seed % 5 == 0 { 100 } else { 0 },
        };
        let (owner, world) = run(seed, faults, 400 + (seed % 7) as usize * 200);
        owners[usize::from(owner == S)] += 1;
        states.extend(world.states_seen);
    }
    assert!(owners.iter().all(|&count| count > 400), "both happen: {owners:?}");
    for state in ["snapshotting", "replicating", "failover-paused", "failover-granted", "waiting-for-paused"]
    {
        assert!(states.contains(state), "{state} was never reached: {states:?}");
    }
}

//! Histories without a bug, and with each.

use super::world::World;
use super::*;

/// Histories that are run without a bug: two or three seconds in a build for tests.
const HISTORIES: u64 = 1500;
/// Histories that are run for each bug at most. Most are found among the first twenty; what needs a process to be killed between a proposal and the
/// log's word of it takes more.
const HISTORIES_OF_BUG: u64 = 4000;

fn history(seed: u64, bug: Option<Bug>) -> World {
    run(World::new(seed, bug))
}

fn run(mut world: World) -> World {
    world.run(Duration::from_secs(8));
    if world.violation.is_none() {
        world.heal();
    }
    world
}

/// The end of a history, again.
fn tell(seed: u64) -> String {
    let mut world = World::new(seed, None);
    world.trace = Some(VecDeque::new());
    let trace = run(world).trace.unwrap_or_default();
    trace.into_iter().map(|line| line + "\n").collect()
}

#[test]
fn no_history_has_two_owners_or_loses_a_write_or_shows_half_an_import() {
    let mut states: BTreeSet<&str> = BTreeSet::new();
    let (mut moves, mut served, mut given_up) = (0, 0, 0);
    for seed in 0..HISTORIES {
        let world = history(seed, None);
        assert_eq!(world.violation, None, "seed {seed}: {}", tell(seed));
        states.extend(&world.states);
        served += world.served;
        given_up += u64::from(world.expected.is_none());
        let done = |it: &&Migration| it.state == MigrationState::Done;
        moves += world.nodes[0].metadata.migrations().values().filter(done).count() as u64;
    }
    assert!(moves > HISTORIES && served > 100 * HISTORIES, "{moves} moves, {served} looks");
    assert!(given_up > HISTORIES / 100, "{given_up}");
    for state in ["snapshotting", "replicating", "failover-paused", "failover-granted", "waiting-for-paused"]
    {
        assert!(states.contains(state), "{state} was never reached: {states:?}");
    }
}

#[test]
fn every_bug_is_found() {
    for bug in Bug::ALL {
        let found = (0..HISTORIES_OF_BUG).find_map(|seed| Some((seed, history(seed, Some(bug)).violation?)));
        let (seed, violation) = found.unwrap_or_else(|| panic!("{bug:?} is not found"));
        eprintln!("{bug:?} is found with seed {seed}: {violation}");
    }
}

use std::time::Duration;

use proptest::prelude::*;
use towline_cluster::key_slot;
use towline_sansio::Prng;
use towline_spec::SideEffect;

use super::world::{Claim, World};
use crate::command::Flags;
use crate::error::Sent;

const PORTS: [u16; 4] = [1, 2, 3, 4];
const KEYS: [&str; 3] = ["foo", "bar", "baz"];

/// One random history: what every command came to must agree with what the servers ran, and in which order.
fn history(seed: u64, steps: usize, may_cut: bool) {
    let mut draw = Prng::new(seed);
    let mut below = |bound: usize| draw.below(bound as u64) as usize;
    let mut world = World::new(&PORTS);
    // A refresh takes a second of the world's time.
    world.patience = Duration::from_secs(600);
    let mut claims: Vec<(usize, String, Claim)> = Vec::new();
    for step in 0..steps {
        let key = below(KEYS.len());
        let slot = key_slot(KEYS[key].as_bytes());
        let at = below(world.places());
        match below(if may_cut { 15 } else { 14 }) {
            0..4 => {
                let value = step.to_string();
                let claim = world.append(KEYS[key], &value);
                claims.push((key, value, claim));
            }
            4..6 => world.write(at, if below(3) == 0 { 30 } else { usize::MAX }),
            6..8 => world.serve(at, 1 + below(3)),
            8..10 => world.read(at),
            10 => {
                world.carry_from(at);
            }
            11 => {
                // A server that has refused a command and gets the slot back before it has looked at the next one
                // executes that: nobody can do anything about it.
                let to = PORTS[below(PORTS.len())];
                if world.is_drained(to) {
                    world.move_slot(slot, to);
                }
            }
            12 => world.refresh(),
            13 => {
                world.wait(below(40) as u64);
                world.connect();
            }
            _ => world.cut(PORTS[below(PORTS.len())]),
        }
        if below(8) == 0 {
            world.turn();
        }
    }
    world.refresh();
    world.settle();
    let mut ran: Vec<Vec<String>> = vec![Vec::new(); KEYS.len()];
    let mut maybe: Vec<Vec<String>> = ran.clone();
    for (key, value, claim) in &mut claims {
        match world.outcome(claim).unwrap_or_else(|| panic!("seed {seed}: {value} has no outcome")) {
            Ok(_) => ran[*key].push(value.clone()),
            Err(error) => {
                assert_ne!(error.sent(), Sent::No, "seed {seed}: {value} was not sent and failed: {error}");
                assert_eq!(error.sent(), Sent::Maybe, "seed {seed}: {value}: {error}");
                maybe[*key].push(value.clone());
            }
        }
    }
    for (key, name) in KEYS.iter().enumerate() {
        let held = world.data.get(name.as_bytes()).cloned().unwrap_or_default();
        let certain: Vec<&String> = held.iter().filter(|value| !maybe[key].contains(value)).collect();
        let expected: Vec<&String> = ran[key].iter().collect();
        assert_eq!(certain, expected, "seed {seed}: {name}");
        let mut once = held.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), held.len(), "seed {seed}: something ran twice on {name}");
    }
    assert_eq!((world.leftovers(), world.unsent_bytes()), (0, 0), "seed {seed}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Nothing fails, nothing runs twice, nothing is overtaken, however slots move.
    #[test]
    fn commands_on_one_key_run_once_and_in_order(seed: u64, steps in 20_usize..250) {
        history(seed, steps, false);
    }

    /// With losses, what may have run is not repeated, and everything else keeps its order.
    #[test]
    fn losses_fail_only_what_may_have_run(seed: u64, steps in 20_usize..250) {
        history(seed, steps, true);
    }
}

#[test]
fn reads_are_repeated_wherever_they_go() {
    for seed in 0..50 {
        let mut draw = Prng::new(seed);
        let mut world = World::new(&PORTS);
        world.patience = Duration::from_secs(600);
        let mut claims = Vec::new();
        for _ in 0..40 {
            let key = KEYS[draw.below(3) as usize];
            claims.push(world.submit(&["GET", key], Flags::NONE, SideEffect::ReadOnly));
            let port = PORTS[draw.below(4) as usize];
            match draw.below(5) {
                0 => world.cut(port),
                1 => world.move_slot(key_slot(key.as_bytes()), port),
                2 => world.refresh(),
                _ => {
                    let at = world.at(port);
                    world.write(at, usize::MAX);
                    world.carry();
                }
            }
        }
        world.settle();
        for claim in &mut claims {
            let outcome = world.outcome(claim).expect("it has ended");
            assert!(outcome.is_ok(), "seed {seed}: {outcome:?}");
        }
    }
}

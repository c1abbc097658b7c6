use std::time::Duration;

use proptest::prelude::*;
use towline_cluster::key_slot;
use towline_sansio::Prng;
use towline_spec::SideEffect;

use super::world::{Claim, World};
use crate::command::Flags;
use crate::error::Sent;

const PORTS: [u16; 4] = [1, 2, 3, 4];
/// With three lanes each of the keys has its own; with two, two of them share one.
const KEYS: [&str; 3] = ["foo", "bar", "baz"];

/// What happens in a history, beside slots that move.
#[derive(Debug, Clone, Copy, Default)]
struct May {
    /// Connections break.
    cut: bool,
    /// Servers refuse everything for a while.
    refuse: bool,
}

/// One random history: what every command came to must agree with what the servers ran, and in which order.
fn history(seed: u64, steps: usize, lanes: u8, may: May) {
    let ways = 14 + 2 * usize::from(may.cut) + 2 * usize::from(may.refuse);
    let mut draw = Prng::new(seed);
    let mut below = |bound: usize| draw.below(bound as u64) as usize;
    let mut world = World::with_lanes(&PORTS, lanes);
    // A refresh takes a second of the world's time.
    world.patience = Duration::from_secs(600);
    let mut claims: Vec<(usize, String, Claim)> = Vec::new();
    for step in 0..steps {
        let key = below(KEYS.len());
        let slot = key_slot(KEYS[key].as_bytes());
        let at = below(world.places());
        match below(ways) {
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
                // A server that has refused a command and gets the slot back before it has looked at the next one, or at
                // the rest of what is being written to it, executes that: nobody can call it back.
                let to = PORTS[below(PORTS.len())];
                if world.is_drained(to, slot) {
                    world.move_slot(slot, to);
                }
            }
            12 => world.refresh(),
            13 => {
                world.wait(below(40) as u64);
                world.connect();
            }
            14 if may.cut => world.cut_at(at),
            15 if may.cut => world.cut(PORTS[below(PORTS.len())]),
            other => {
                let port = PORTS[below(PORTS.len())];
                if other % 2 == 0 {
                    world.servers.get_mut(&port).unwrap().refusal = Some("TRYAGAIN Multiple keys request");
                } else if KEYS.iter().all(|key| world.is_drained(port, key_slot(key.as_bytes()))) {
                    // The same is true of one that serves again.
                    world.servers.get_mut(&port).unwrap().refusal = None;
                }
            }
        }
        if below(8) == 0 {
            world.turn();
        }
    }
    world.refresh();
    world.turn();
    world.servers.values_mut().for_each(|server| server.refusal = None);
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
    fn commands_on_one_key_run_once_and_in_order(seed: u64, steps in 20_usize..250, lanes in 1_u8..=3) {
        history(seed, steps, lanes, May::default());
    }

    /// With losses, what may have run is not repeated, and everything else keeps its order.
    #[test]
    fn losses_fail_only_what_may_have_run(seed: u64, steps in 20_usize..250, lanes in 1_u8..=3) {
        history(seed, steps, lanes, May { cut: true, ..May::default() });
    }

    /// Servers that have nothing to say for a while change no order either.
    #[test]
    fn refusals_for_now_keep_the_order(seed: u64, steps in 20_usize..250, lanes in 1_u8..=3, cut: bool) {
        history(seed, steps, lanes, May { cut, refuse: true });
    }
}

/// Histories that once went wrong: a slot moved twice, and its first owner was the last to give up what it had; a former owner
/// kept what its server refused for now; and what had waited at one overtook a redirect.
#[test]
fn histories_that_went_wrong_keep_the_order() {
    let (moves, refuse) = (May::default(), May { refuse: true, ..May::default() });
    for (seed, steps, may) in [
        (4_560_248_741_668_550_451, 215, moves),
        (463, 200, moves),
        (1257, 200, moves),
        (1171, 200, May { cut: true, ..moves }),
        (3, 200, refuse),
        (4, 200, refuse),
        (1998, 200, refuse),
        (94, 200, May { cut: true, ..refuse }),
    ] {
        history(seed, steps, 1, may);
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

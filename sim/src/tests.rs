//! What continuous integration runs: see the numbers below.

mod moves;

use crate::{Detail, Mutation, Settings, hunt, reproduce_command, run, shrink};

/// Histories that each of the four tests below runs: 2,000 together. `cargo run --release -p sim -- --histories 100000`
/// runs more.
const HISTORIES: u64 = 500;

/// A guard that is switched off must be missed within so many histories: half as many again as continuous integration
/// runs, for the rarest case needs a refusal in the middle of a unit.
const MUTANT_HISTORIES: u64 = 6 * HISTORIES;

fn expect_fine(seed: u64) {
    if let Err(failure) = hunt(&Settings::new(seed), HISTORIES) {
        panic!("{failure}");
    }
}

#[test]
fn histories_keep_every_promise_1() {
    expect_fine(1);
}

#[test]
fn histories_keep_every_promise_2() {
    expect_fine(1 + HISTORIES);
}

#[test]
fn histories_keep_every_promise_3() {
    expect_fine(1 + 2 * HISTORIES);
}

#[test]
fn histories_keep_every_promise_4() {
    expect_fine(1 + 3 * HISTORIES);
}

#[test]
fn a_seed_gives_the_same_history_byte_for_byte() {
    for seed in 0..60 {
        let settings = Settings::new(seed);
        let (first, second) = (run(&settings, Detail::All), run(&settings, Detail::All));
        assert_eq!(first, second, "seed {seed}");
        assert_eq!(run(&settings, Detail::Hash).hash, first.hash, "what is kept changes nothing");
    }
}

#[test]
fn another_seed_gives_another_history() {
    let hash = |seed| run(&Settings::new(seed), Detail::Hash).hash;
    assert_ne!(hash(1), hash(2));
}

#[test]
fn a_failure_comes_with_the_shortest_history_and_the_command_that_repeats_it() {
    let mutation = Mutation::named("byte_accounting");
    let settings = Settings { mutation, ..Settings::new(1) };
    let failure = hunt(&settings, MUTANT_HISTORIES).unwrap_err();
    assert_eq!(*failure, shrink(&failure.settings), "it is as short as it gets");
    assert!(run(&failure.settings, Detail::Hash).violation.is_some());
    let command = reproduce_command(&failure.settings);
    assert!(failure.to_string().ends_with(&command) && command.contains("--mutate byte_accounting"));
    assert!(!failure.lines.is_empty());
}

/// One test for each guard: with it off, some history breaks a promise.
macro_rules! mutants {
    ($($guard:ident),* $(,)?) => {
        mod without_guard {
            $(#[test]
            fn $guard() {
                super::expect_broken(stringify!($guard));
            })*

            #[test]
            fn every_guard_has_its_test() {
                let tested = [$(stringify!($guard)),*];
                let all: Vec<&str> = crate::Mutation::ALL.iter().map(|mutation| mutation.name()).collect();
                assert_eq!(tested.as_slice(), all.as_slice());
            }
        }
    };
}

mutants![
    generation,
    byte_accounting,
    culling,
    tier_order,
    retry_class,
    requeue_order,
    orphans,
    writer_settles,
    sent_memory,
    whole_replies,
    promised_room,
    expired_place,
    window,
    pace,
    strict_hold,
    planned_shield,
    cut,
    cut_units,
    retiring,
    dedupe,
    parked,
    one_line,
];

fn expect_broken(guard: &str) {
    let mutation = Mutation::named(guard);
    assert!(mutation.is_some(), "{guard} is a guard");
    let settings = Settings { mutation, ..Settings::new(1) };
    let seed = (1..=MUTANT_HISTORIES)
        .find(|seed| run(&Settings { seed: *seed, ..settings }, Detail::Hash).violation.is_some());
    assert!(seed.is_some(), "nothing is missed without {guard}");
}

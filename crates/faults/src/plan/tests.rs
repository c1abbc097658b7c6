//! Which connections a rule is for.

use std::time::Duration;

use super::*;
use crate::link::{Action, Fired};
use crate::rule::Direction::{ClientToServer, ServerToClient};

fn plan(seed: u64, rules: &[&str]) -> Plan {
    Plan::new(Instant::ZERO, seed, rules.iter().map(|rule| rule.parse().unwrap()).collect()).unwrap()
}

fn seconds(count: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(count)
}

/// The faults of one connection through which 100 bytes go each way.
fn faults(plan: &mut Plan, now: Instant) -> Vec<Fired> {
    let Dialed::Open(mut link) = plan.dial(now).outcome else { return Vec::new() };
    link.push(now, ClientToServer, &[0; 100]);
    link.push(now, ServerToClient, &[0; 100]);
    let fired = |action| if let Action::Fault(fired) = action { Some(fired) } else { None };
    std::iter::from_fn(|| link.poll(now)).filter_map(fired).collect()
}

fn hits(plan: &mut Plan, connections: u64) -> Vec<u64> {
    let all = (0..connections).flat_map(|_| faults(plan, Instant::ZERO)).map(|fired| fired.connection);
    all.collect()
}

#[test]
fn a_seed_repeats_its_choices_and_seeds_differ() {
    let rules = ["cut@rand:0..50", "swallow@rand:0..100,chance=50%"];
    let run = |seed| {
        let mut plan = plan(seed, &rules);
        (0..50).map(|_| faults(&mut plan, Instant::ZERO)).collect::<Vec<_>>()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
    let offsets: std::collections::BTreeSet<_> = run(3).concat().iter().map(|fired| fired.offset).collect();
    assert!(offsets.len() > 20, "places differ from connection to connection: {offsets:?}");
    let directions: Vec<_> = run(3).concat().iter().map(|fired| fired.direction).collect();
    assert!(directions.contains(&ClientToServer) && directions.contains(&ServerToClient));
}

#[test]
fn scopes_choose_connections() {
    assert_eq!(hits(&mut plan(1, &["cut@c2s:1,nth=3"]), 5), [3]);
    assert_eq!(hits(&mut plan(1, &["cut@c2s:1,nth=2..3"]), 5), [2, 3]);
    assert_eq!(hits(&mut plan(1, &["cut@c2s:1,nth=4.."]), 5), [4, 5]);
    assert_eq!(hits(&mut plan(1, &["cut@c2s:1,count=2"]), 5), [1, 2]);
    assert!(hits(&mut plan(1, &["cut@c2s:101"]), 5).is_empty());
    let share = hits(&mut plan(1, &["cut@c2s:1,chance=30%"]), 1000).len();
    assert!((250..350).contains(&share), "{share}");
    let mut plan = plan(1, &["cut@c2s:1,during=2s..4s"]);
    let per_second: Vec<_> = (0..6).map(|second| faults(&mut plan, seconds(second)).len()).collect();
    assert_eq!(per_second, [0, 0, 1, 1, 0, 0]);
}

#[test]
fn a_count_is_shared_by_open_connections() {
    let mut plan = plan(1, &["cut@c2s:1,count=1"]);
    let mut open = || match plan.dial(Instant::ZERO).outcome {
        Dialed::Open(link) => link,
        Dialed::Faulty(fault) => panic!("{fault:?}"),
    };
    let (mut first, mut second) = (open(), open());
    second.push(Instant::ZERO, ClientToServer, b"ab");
    first.push(Instant::ZERO, ClientToServer, b"ab");
    assert_eq!(std::iter::from_fn(|| second.poll(Instant::ZERO)).count(), 3);
    assert!(second.is_over());
    assert_eq!(
        std::iter::from_fn(|| first.poll(Instant::ZERO)).count(),
        2,
        "two bytes in two pieces, and no cut"
    );
    assert!(!first.is_over());
}

#[test]
fn dials_fail_as_told_and_count() {
    let mut plan =
        plan(1, &["refuse@dial,nth=1..2", "busy@dial,nth=2..3", "hang@dial,during=5s..", "cut@c2s:0"]);
    let mut outcome = |now| {
        let dial = plan.dial(now);
        let fault = if let Dialed::Faulty(fault) = dial.outcome { Some(fault) } else { None };
        (dial.connection, dial.rule, fault)
    };
    assert_eq!(outcome(seconds(0)), (1, Some(0), Some(DialFault::Refuse)));
    assert_eq!(outcome(seconds(0)), (2, Some(0), Some(DialFault::Refuse)));
    assert_eq!(outcome(seconds(0)), (3, Some(1), Some(DialFault::Busy)));
    assert_eq!(outcome(seconds(0)), (4, None, None));
    assert_eq!(outcome(seconds(5)), (5, Some(2), Some(DialFault::Hang)));
}

#[test]
fn names_move() {
    let plan = plan(1, &["dns@redis.test/1s=10.0.0.1+4s=none+5s=10.0.0.2|::1"]);
    let text = |now| {
        let addresses = plan.resolve(now, "redis.test").unwrap();
        addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!([0, 1, 3, 4, 5].map(|at| text(seconds(at))), ["", "10.0.0.1", "10.0.0.1", "", "10.0.0.2 ::1"]);
    assert_eq!(plan.resolve(seconds(0), "other.test"), None);
}

#[test]
fn rules_are_replaced_and_bounded() {
    let mut plan = plan(1, &["cut@c2s:1"]);
    assert_eq!(hits(&mut plan, 1), [1]);
    plan.set_rules(vec!["swallow@c2s:1,nth=3".parse().unwrap()]).unwrap();
    assert_eq!(hits(&mut plan, 2), [3], "numbers go on");
    let rule: Rule = "cut@1".parse().unwrap();
    let error = plan.set_rules(vec![rule; RULES_MAX + 1]).unwrap_err();
    assert_eq!(error, TooManyRules { count: RULES_MAX + 1 });
    assert_eq!((plan.rules().count(), plan.connection_count()), (1, 3));
}

#[test]
fn every_byte_is_equally_likely_to_be_the_one_that_is_lost() {
    let mut plan = plan(5, &["reset@c2s:mean:1000"]);
    let offsets: Vec<u64> = (0..2000)
        .map(|_| {
            let Dialed::Open(mut link) = plan.dial(Instant::ZERO).outcome else {
                panic!("no rule is for dials")
            };
            loop {
                link.push(Instant::ZERO, ClientToServer, &[0; 64]);
                while let Some(action) = link.poll(Instant::ZERO) {
                    if let Action::Fault(fired) = action {
                        return fired.offset;
                    }
                }
            }
        })
        .collect();
    let mean = offsets.iter().sum::<u64>() / 2000;
    assert!((930..1070).contains(&mean), "{mean}");
    let early = offsets.iter().filter(|&&offset| offset < 693).count();
    assert!((930..1070).contains(&early), "half of them are gone after ln 2 of the mean: {early}");
}

#[test]
fn rules_that_change_reach_an_open_connection_and_heal_it() {
    let mut plan = plan(1, &["halfopen@c2s:3"]);
    let Dialed::Open(mut link) = plan.dial(seconds(0)).outcome else { panic!("no rule is for dials") };
    let run = |link: &mut Link, now, bytes: &[u8]| {
        link.push(now, ClientToServer, bytes);
        let passed = link.passed(ClientToServer);
        let faults =
            std::iter::from_fn(|| link.poll(now)).filter(|action| matches!(action, Action::Fault(_)));
        (faults.count(), link.passed(ClientToServer) - passed)
    };
    assert_eq!(run(&mut link, seconds(0), b"abcdef"), (1, 3));
    assert!(link.is_silent());
    plan.set_rules(Vec::new()).unwrap();
    plan.rearm(seconds(1), &mut link);
    assert_eq!(run(&mut link, seconds(1), b"gh"), (0, 5), "what waited passes");
    // Places count from here on; a rule for connections of another time or number is not for this one.
    let rules = ["stall@c2s:2", "cut@c2s:1,during=2s..", "cut@c2s:1,nth=2", "refuse@dial"];
    plan.set_rules(rules.iter().map(|rule| rule.parse().unwrap()).collect()).unwrap();
    plan.rearm(seconds(2), &mut link);
    assert_eq!(run(&mut link, seconds(2), b"ijkl"), (1, 2));
    plan.set_rules(vec!["cut@both:after:1s".parse().unwrap()]).unwrap();
    plan.rearm(seconds(3), &mut link);
    assert_eq!(run(&mut link, seconds(3), b""), (0, 2));
    assert_eq!(link.poll_timeout(), Some(seconds(4)));
    assert_eq!(run(&mut link, seconds(4), b"").0, 1);
    assert!(link.is_over());
}

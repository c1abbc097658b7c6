//! Whole histories, each one that went wrong with some client in the field.

use super::*;

/// Where the configured name leads at a moment, and what a dial of an address comes to.
struct World {
    name_moves_at: u64,
    /// The successor refuses until then.
    refuses_until: u64,
}

/// What came of a history.
#[derive(Debug, PartialEq, Eq)]
struct History {
    outcome: Outcome,
    /// When the handoff ended, in milliseconds.
    at: u64,
    to: &'static str,
}

/// Runs one handoff from its announcement at 0 to its end; a dial takes a millisecond, a drain two, and the driver
/// carries a recycle out at once.
fn run(successor: &str, world: &World, seed: u64) -> (History, Rig) {
    let mut rig = Rig::with(HandoffConfig::default(), seed);
    assert_eq!(rig.moving(0, &moving(7, 15, successor), source(1, A)), Taken::Begun);
    let (mut now, mut to, mut client_id) = (0, A, 100);
    loop {
        assert!(now < 30_000, "the handoff does not end");
        let Some(step) = rig.machine.poll(at(now)) else {
            now = now.max(rig.timeout().unwrap()) + 1;
            continue;
        };
        match step {
            Step::Dial { target } => {
                now += 1;
                let is_refused = target != Target::Configured && now < world.refuses_until;
                if is_refused {
                    rig.failed(now);
                    continue;
                }
                let reached = if target == Target::Configured && now < world.name_moves_at { A } else { B };
                client_id += 1;
                let client_id = Some(if reached == A { client_id } else { 1 });
                if rig.ready(now, Facts { peer: peer(reached), client_id, replayed: true })
                    == Judgement::CutOver
                {
                    to = reached;
                    rig.machine.on_cut_over(at(now), Generation(2));
                    now += 2;
                    rig.machine.on_drained(at(now));
                }
            }
            Step::Recycle { .. } => {
                now += 2;
                rig.machine.on_source_lost(at(now));
            }
            Step::AbandonDial | Step::Retire => panic!("not in this world: {step:?}"),
            Step::Ended(ended) => return (History { outcome: ended.outcome, at: now, to }, rig),
        }
    }
}

#[test]
fn names_that_lag_behind_by_any_time_cost_nothing() {
    for seed in 0..20 {
        // Measured in the field: names follow 4.4 to 18.7 s after the announcement.
        for (name_moves_at, earliest, latest, to) in [
            (0, 7500, 7510, B),
            (4000, 7500, 7510, B),
            (9000, 9000, 10_600, B),
            (12_000, 12_000, 13_510, B),
            (19_000, 13_500, 13_510, A),
            (u64::MAX, 13_500, 13_510, A),
        ] {
            let (history, rig) = run("", &World { name_moves_at, refuses_until: 0 }, seed);
            assert_eq!((history.outcome, history.to), (Outcome::Moved, to), "{name_moves_at}");
            assert!((earliest..=latest).contains(&history.at), "{name_moves_at}: {history:?}");
            // The old node may close what was dialled last together with the others: no surprise.
            assert_eq!(rig.machine.planned_left(at(16_000)).is_some(), to == A, "{name_moves_at}");
        }
    }
}

#[test]
fn a_successor_that_refuses_for_a_while_is_reached_soon_after_it_accepts() {
    for seed in 0..20 {
        for refuses_until in [0, 10, 100, 1000, 5000, 13_000] {
            let world = World { name_moves_at: u64::MAX, refuses_until };
            let (history, rig) = run(B, &world, seed);
            assert_eq!((history.outcome, history.to), (Outcome::Moved, B));
            assert!(history.at <= refuses_until + 220, "{refuses_until}: {history:?}");
            let dials = rig.machine.counters().dials;
            assert!(dials <= 4 + refuses_until / 40, "{dials} dials in {refuses_until} ms");
        }
    }
}

#[test]
fn a_successor_that_never_accepts_costs_a_recycle_or_nothing_if_the_name_leads_elsewhere() {
    let never = World { name_moves_at: u64::MAX, refuses_until: u64::MAX };
    let (history, rig) = run(B, &never, 1);
    assert_eq!(history.outcome, Outcome::Recycled);
    assert!((13_500..13_510).contains(&history.at), "{history:?}");
    assert!(rig.machine.planned_left(at(20_000)).is_some());
    let (history, _) = run(B, &World { name_moves_at: 2000, refuses_until: u64::MAX }, 1);
    assert_eq!((history.outcome, history.to), (Outcome::Moved, B));
    assert!((2000..3300).contains(&history.at), "{history:?}");
}

#[test]
fn three_moves_within_half_a_second_end_at_the_last_place() {
    // A to B at 0, from B to C at 200 ms while A is drained, and C names A at 400 ms.
    let mut rig = Rig::draining();
    assert_eq!(rig.moving(200, &moving(8, 15, C), source(2, B)), Taken::Queued);
    rig.machine.on_drained(at(300));
    assert_eq!(rig.text(300), format!("ended Moved, dial {C}"));
    rig.ready(310, facts(C));
    rig.machine.on_cut_over(at(310), Generation(3));
    assert_eq!(rig.moving(400, &moving(9, 15, A), source(3, C)), Taken::Queued);
    rig.machine.on_drained(at(410));
    assert_eq!(rig.text(410), format!("ended Moved, dial {A}"));
    rig.ready(420, facts(A));
    rig.machine.on_cut_over(at(420), Generation(4));
    rig.machine.on_drained(at(430));
    assert_eq!(rig.text(430), "ended Moved");
    let counters = rig.machine.counters();
    assert_eq!((counters.begun, counters.moved, counters.superseded), (3, 3, 0));
}

#[test]
fn three_announcements_before_the_first_dial_is_done_make_one_handoff() {
    let mut rig = Rig::preparing(B);
    rig.moving(200, &moving(8, 15, C), source(1, A));
    rig.moving(400, &moving(9, 15, B), source(1, A));
    assert_eq!(rig.text(400), format!("abandon, dial {B}"));
    rig.ready(410, facts(B));
    rig.machine.on_cut_over(at(410), Generation(2));
    rig.machine.on_drained(at(420));
    assert_eq!(rig.text(420), "ended Moved");
    let counters = rig.machine.counters();
    assert_eq!((counters.begun, counters.retargeted, counters.moved), (1, 2, 1));
}

#[test]
fn fifty_connections_with_one_number_move_once_each() {
    for connection in 0..50 {
        let mut rig = Rig::with(HandoffConfig::default(), connection);
        let first = source(1 + connection, A);
        assert_eq!(rig.moving(0, &moving(7, 15, B), first), Taken::Begun);
        assert_eq!(rig.moving(0, &moving(7, 15, B), first), Taken::Duplicate);
        rig.steps(0);
        rig.ready(1, facts(B));
        let to = Generation(first.generation.0 + 50);
        rig.machine.on_cut_over(at(1), to);
        rig.machine.on_drained(at(2));
        rig.steps(2);
        let second = Source { generation: to, ..source(0, B) };
        assert_eq!(rig.moving(3, &moving(7, 14, B), second), Taken::Duplicate);
        assert_eq!(rig.machine.counters().begun, 1);
    }
}

#[test]
fn a_second_window_is_counted_from_its_own_arrival() {
    let mut rig = Rig::draining();
    rig.moving(10_000, &moving(8, 15, ""), source(2, B));
    rig.machine.on_drained(at(14_000));
    assert_eq!(rig.text(14_000), "ended Moved");
    assert_eq!(rig.timeout(), Some(17_500), "half of 15 s after 10 s");
    assert_eq!(rig.machine.reconnect_target(at(16_000)), Target::Configured, "the first pin is gone");
    assert_eq!(rig.machine.planned_left(at(16_000)), Some(Duration::from_secs(9)));
}

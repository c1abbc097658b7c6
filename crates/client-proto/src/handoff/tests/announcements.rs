//! More than one announcement: newer ones, repeated ones, late ones and too many.

use super::*;

#[test]
fn a_newer_announcement_retargets_what_is_prepared() {
    // Before the dial.
    let mut rig = Rig::new();
    rig.moving(0, &moving(7, 15, ""), source(1, A));
    assert_eq!(rig.moving(100, &moving(8, 15, C), source(1, A)), Taken::Retargeted);
    assert_eq!(rig.text(100), format!("dial {C}"));
    // During the dial.
    let mut rig = Rig::preparing(B);
    assert_eq!(rig.moving(200, &moving(8, 15, C), source(1, A)), Taken::Retargeted);
    assert_eq!(rig.text(200), format!("abandon, dial {C}"));
    assert_eq!(rig.timeout(), Some(13_500), "the first window stands");
    assert_eq!(rig.machine.reconnect_target(at(200)), named(C));
    // After it.
    let mut rig = Rig::preparing(B);
    rig.ready(100, facts(B));
    assert_eq!(rig.moving(200, &moving(8, 15, C), source(1, A)), Taken::Retargeted);
    rig.machine.on_cut_over(at(200), Generation(2));
    assert_eq!(rig.text(200), format!("abandon, dial {C}"), "what was given up does not serve");
    rig.ready(201, facts(C));
    rig.machine.on_cut_over(at(201), Generation(3));
    rig.machine.on_drained(at(202));
    let Some(Step::Ended(ended)) = rig.machine.poll(at(202)) else { panic!("ended") };
    assert_eq!(
        (ended.retargets, ended.dials, ended.from, ended.to),
        (1, 2, Generation(1), Some(Generation(3)))
    );
    assert_eq!(rig.machine.counters().begun, 1);
    // While work is held for a recycle only the way back changes.
    let mut rig = Rig::recycling();
    assert_eq!(rig.moving(13_600, &moving(8, 15, C), source(1, A)), Taken::Retargeted);
    assert_eq!((rig.text(13_600), rig.phase()), (String::new(), Phase::Recycling));
    assert_eq!(rig.machine.reconnect_target(at(13_600)), named(C));
}

#[test]
fn an_announcement_during_the_drain_begins_after_it_from_the_newest_connection() {
    // The successor says so.
    let mut rig = Rig::draining();
    assert_eq!(rig.moving(400, &moving(8, 15, C), source(2, B)), Taken::Queued);
    assert_eq!(rig.text(400), "");
    rig.machine.on_drained(at(500));
    assert_eq!(rig.text(500), format!("ended Moved, dial {C}"));
    assert_eq!(rig.timeout(), Some(400 + 13_500), "its window counts from its arrival");
    rig.ready(501, facts(C));
    rig.machine.on_cut_over(at(501), Generation(3));
    rig.machine.on_drained(at(502));
    let Some(Step::Ended(ended)) = rig.machine.poll(at(502)) else { panic!("ended") };
    assert_eq!((ended.from, ended.to), (Generation(2), Some(Generation(3))));
    assert_eq!(ended.times.received_at, at(400));
    // Or the connection that is drained.
    let mut rig = Rig::draining();
    assert_eq!(rig.moving(400, &moving(8, 15, ""), source(1, A)), Taken::Queued);
    rig.machine.on_drained(at(500));
    assert_eq!(rig.text(500), "ended Moved");
    assert_eq!(rig.text(7900), "dial configured");
    // Compared with the newest connection's peer.
    let newer = Facts { client_id: Some(201), ..facts(B) };
    assert_eq!(rig.ready(7901, newer), Judgement::SameNode);
    // Naming where this bridge already is.
    let mut rig = Rig::draining();
    assert_eq!(rig.moving(400, &moving(8, 15, B), source(1, A)), Taken::Duplicate);
}

#[test]
fn the_newest_of_several_queued_announcements_counts() {
    let mut rig = Rig::draining();
    assert_eq!(rig.moving(400, &moving(8, 15, C), source(2, B)), Taken::Queued);
    assert_eq!(rig.moving(500, &moving(9, 15, A), source(2, B)), Taken::Queued);
    rig.machine.on_drained(at(600));
    assert_eq!(rig.text(600), format!("ended Moved, dial {A}"));
    assert_eq!(rig.machine.counters().superseded, 1);
}

#[test]
fn a_queued_announcement_whose_window_is_over_does_not_begin() {
    let mut rig = Rig::draining();
    assert_eq!(rig.moving(400, &moving(8, 2, C), source(2, B)), Taken::Queued);
    rig.machine.on_drained(at(2400));
    assert_eq!(rig.text(2400), "ended Moved");
    assert_eq!((rig.phase(), rig.machine.counters().superseded), (Phase::Serving, 1));
    assert_eq!(rig.machine.reconnect_target(at(2400)), named(C), "the server is about to close");
}

#[test]
fn what_is_read_on_a_successor_before_it_serves() {
    // The same announcement once more.
    let mut rig = Rig::preparing(B);
    assert_eq!(rig.moving(5, &moving(7, 14, B), source(2, B)), Taken::Duplicate);
    assert_eq!(rig.moving(5, &moving(None, 14, B), source(2, B)), Taken::Duplicate);
    // The successor moves itself.
    assert_eq!(rig.moving(5, &moving(8, 15, C), source(2, B)), Taken::Queued);
    rig.ready(6, facts(B));
    rig.machine.on_cut_over(at(6), Generation(2));
    rig.machine.on_drained(at(7));
    assert_eq!(rig.text(7), format!("ended Moved, dial {C}"));
    // Nothing of it is left if the successor does not come to serve.
    type End = fn(&mut Rig);
    let ends: [End; 3] = [
        |rig| rig.failed(6),
        |rig| {
            rig.ready(6, facts(B));
            rig.machine.on_successor_lost(at(6), &mut rig.prng);
        },
        |rig| {
            rig.moving(6, &moving(9, 15, C), source(1, A));
        },
    ];
    for end in ends {
        let mut rig = Rig::preparing(B);
        assert_eq!(rig.moving(5, &moving(8, 15, C), source(2, B)), Taken::Queued);
        end(&mut rig);
        assert_eq!(rig.machine.counters().superseded, 1);
        assert!(rig.machine.queued.is_none());
    }
}

#[test]
fn repeated_and_late_announcements_begin_nothing() {
    let mut rig = Rig::draining();
    assert_eq!(rig.moving(20, &moving(7, 15, B), source(1, A)), Taken::Duplicate);
    assert_eq!(rig.moving(20, &moving(7, 14, B), source(2, B)), Taken::Duplicate);
    rig.machine.on_drained(at(30));
    rig.steps(30);
    // The successor repeats it: this loop once cost another client twelve reconnects.
    for millis in (100..14_000).step_by(100) {
        assert_eq!(rig.moving(millis, &moving(7, 5, B), source(2, B)), Taken::Duplicate);
        assert_eq!(rig.moving(millis, &moving(None, 5, B), source(2, B)), Taken::Duplicate);
    }
    assert_eq!(rig.moving(200, &moving(6, 15, C), source(2, B)), Taken::Duplicate, "below the last number");
    // The old connection is no longer used.
    assert_eq!(rig.moving(200, &moving(9, 15, C), source(1, A)), Taken::Stale);
    // Read from a buffer after its window.
    assert_eq!(rig.moving(15_100, &moving(7, 15, B), source(2, B)), Taken::Stale);
    assert_eq!(rig.moving(15_100, &moving(3, 15, C), source(2, B)), Taken::Stale);
    assert_eq!(rig.machine.counters().begun, 1);
    // Back again: a new number.
    assert_eq!(rig.moving(15_100, &moving(8, 15, A), source(2, B)), Taken::Begun);
}

#[test]
fn after_a_restart_low_numbers_count() {
    let mut rig = Rig::draining();
    rig.machine.on_drained(at(30));
    rig.machine.reset_seq();
    assert_eq!(rig.moving(40, &moving(1, 15, A), source(2, B)), Taken::Begun);
}

#[test]
fn back_and_forth_within_one_window() {
    let mut rig = Rig::draining();
    assert_eq!(rig.moving(200, &moving(8, 15, A), source(2, B)), Taken::Queued);
    rig.machine.on_drained(at(250));
    assert_eq!(rig.text(250), format!("ended Moved, dial {A}"));
    rig.ready(260, facts(A));
    rig.machine.on_cut_over(at(260), Generation(3));
    rig.machine.on_drained(at(270));
    assert_eq!(rig.text(270), "ended Moved");
    assert_eq!(rig.moving(300, &moving(9, 15, B), source(3, A)), Taken::Begun);
    assert_eq!(rig.text(300), format!("dial {B}"));
}

#[test]
fn too_many_moves_are_not_followed_for_a_while() {
    let mut rig = Rig::new();
    for seq in 0..8 {
        let now = seq * 100;
        let generation = seq + 1;
        assert_eq!(rig.moving(now, &moving(seq, 15, B), source(generation, A)), Taken::Begun);
        assert_eq!(rig.text(now), format!("dial {B}"));
        rig.ready(now, facts(B));
        rig.machine.on_cut_over(at(now), Generation(generation + 1));
        rig.machine.on_drained(at(now));
        assert_eq!(rig.text(now), "ended Moved");
    }
    assert_eq!(rig.moving(1000, &moving(9, 15, C), source(9, B)), Taken::TooMany);
    assert_eq!((rig.text(1000), rig.timeout()), (String::new(), None));
    assert_eq!(rig.machine.reconnect_target(at(1000)), named(C));
    assert!(rig.machine.planned_left(at(20_000)).is_some(), "its close is no surprise");
    // The first of the eight is a minute old.
    assert_eq!(rig.moving(60_000, &moving(9, 15, C), source(9, B)), Taken::Begun);
}

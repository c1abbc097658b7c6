//! How a process asks, and what it takes for an answer.

use super::*;
use crate::wire::RejectReason;

#[test]
fn an_answer_to_an_earlier_question_is_dropped() {
    let echo: fn(&mut Guards) = |guards| guards.echo = false;
    for (mut solo, is_sound) in [(Solo::new(), true), (Solo::without(echo), false)] {
        let (conn, hello) = solo.ask(HIGH);
        let good = solo.answer(&hello, HIGH, 1);
        for stale in [
            Welcome { attempt: Attempt(hello.attempt.0 - 1), ..good.clone() },
            Welcome { echo: good.echo ^ 1, ..good.clone() },
            Welcome { to: process(ME, 0), ..good.clone() },
        ] {
            solo.process.received(solo.now, conn, Message::Welcome(stale));
            let outputs = solo.outputs();
            let is_dropped = !outputs.iter().any(|output| matches!(output, Output::Activate { .. }));
            assert_eq!(is_dropped, is_sound);
            if !is_sound {
                return;
            }
        }
        solo.process.received(solo.now, conn, Message::Welcome(good));
        let outputs = solo.outputs();
        assert!(ready(&solo.activate(&outputs)).is_some());
    }
}

#[test]
fn busy_is_an_appointment_and_no_failure() {
    let free: fn(&mut Guards) = |guards| guards.busy_is_free = false;
    for (mut solo, is_sound) in [(Solo::new(), true), (Solo::without(free), false)] {
        for round in 1..=20 {
            let (conn, hello) = if round == 1 { solo.ask(HIGH) } else { solo.go_on_asking() };
            assert_eq!((hello.attempt, hello.ticket), (Attempt(round), (round > 1).then_some(round - 1)));
            let busy = Message::Busy { attempt: hello.attempt, retry_after: 700 * MS, ticket: Some(round) };
            solo.process.received(solo.now, conn, busy);
            let outputs = solo.outputs();
            assert_eq!(outputs[0], Output::Close { conn });
            assert_eq!(solo.process.snapshot().permits, 0, "nothing is held while it waits");
            let at = solo.process.next_timeout().unwrap();
            if !is_sound {
                assert!(solo.process.counters().failed > 0);
                return;
            }
            assert_eq!(at.since(solo.now), 700 * MS);
            solo.now = at;
            solo.process.handle_timeout(at);
        }
        assert_eq!(solo.process.counters().failed, 0);
    }
}

#[test]
fn a_dial_that_hangs_ends_and_the_next_has_new_queue_pairs_and_a_new_number() {
    let mut solo = Solo::new();
    let (_, first) = solo.ask(HIGH);
    let outputs = solo.wait(ConnectConfig::ENGINE.reply_timeout);
    let retired = outputs.iter().filter(|output| matches!(output, Output::Retire { .. })).count();
    assert_eq!((retired, solo.process.counters().failed), (1, 1));
    // The backoff's first ceiling is 50 ms.
    let outputs = solo.wait(51 * MS);
    let conn = dialed(&outputs).unwrap();
    solo.process.dialed(solo.now, conn);
    let outputs = solo.outputs();
    let second = hello(&solo.make(&outputs)).unwrap();
    assert_eq!(second.attempt, Attempt(first.attempt.0 + 1));
    assert_ne!((second.nonce, second.queue_pairs[0].psn), (first.nonce, first.queue_pairs[0].psn));
}

#[test]
fn packet_numbers_begin_anywhere() {
    for (mut solo, is_sound) in
        [(Solo::new(), true), (Solo::without(|guards| guards.random_psn = false), false)]
    {
        let psns: Vec<Psn> =
            (60..80).map(|node| solo.ask(NodeId(node)).1.queue_pairs[0].psn).take(16).collect();
        let is_spread = psns.iter().collect::<BTreeSet<_>>().len() == psns.len();
        assert_eq!(is_spread, is_sound);
    }
}

#[test]
fn no_more_handshakes_are_in_flight_than_permits() {
    let mut solo = Solo::new();
    let lanes = |node: u128, lane: u16| LinkKey { node: NodeId(node), lane: Lane(lane) };
    for lane in 0..100 {
        solo.process.want(solo.now, lanes(1, lane), 1).unwrap();
    }
    let dials =
        |outputs: &[Output]| outputs.iter().filter(|output| matches!(output, Output::Dial { .. })).count();
    assert_eq!(dials(&solo.outputs()), 8, "to one node");
    for node in 100..200 {
        solo.process.want(solo.now, lanes(node, 0), 1).unwrap();
    }
    assert_eq!(dials(&solo.outputs()), 8, "and 16 of one process");
}

#[test]
fn a_dead_node_is_asked_by_one_at_a_time_and_its_return_wakes_all() {
    let mut solo = Solo::new();
    for lane in 0..50 {
        solo.process.want(solo.now, LinkKey { node: HIGH, lane: Lane(lane) }, 1).unwrap();
    }
    let mut dials = 0;
    for _ in 0..10_000 {
        let outputs = solo.wait(MS);
        for output in &outputs {
            if let Output::Dial { conn, .. } = output {
                dials += 1;
                solo.process.closed(solo.now, *conn);
            }
        }
    }
    assert!((10..60).contains(&dials), "{dials} dials in 10 s");
    assert_eq!(solo.process.counters().idle_wakeups, 0);
    // It is back: one is answered, and all may ask.
    let mut outputs = Vec::new();
    while dialed(&outputs).is_none() {
        outputs = solo.wait(MS);
    }
    let conn = dialed(&outputs).unwrap();
    solo.process.dialed(solo.now, conn);
    let outputs = solo.outputs();
    let hello = hello(&solo.make(&outputs)).unwrap();
    let welcome = solo.answer(&hello, HIGH, 1);
    solo.process.received(solo.now, conn, Message::Welcome(welcome));
    let outputs = solo.outputs();
    let outputs = solo.activate(&outputs);
    assert!(ready(&outputs).is_some());
    let dials = outputs.iter().filter(|output| matches!(output, Output::Dial { .. })).count();
    assert_eq!(dials, 8, "as many as there are permits for one node, at once");
}

#[test]
fn where_hellos_cross_the_higher_node_is_answered() {
    // Theirs is higher: ours is given up and theirs is served.
    let mut solo = Solo::new();
    let (ours, _) = solo.ask(HIGH);
    solo.hear(solo.hello(HIGH, 1, 1));
    let outputs = solo.outputs();
    assert!(outputs.contains(&Output::Close { conn: ours }));
    let welcome = welcome(&solo.make(&outputs)).unwrap();
    assert_eq!(welcome.abandoned, Attempt(1), "and the answer says that ours is given up");
    // Theirs is lower: they are told to wait for ours.
    for (mut solo, is_sound) in
        [(Solo::new(), true), (Solo::without(|guards| guards.tie_break = false), false)]
    {
        let (ours, _) = solo.ask(LOW);
        solo.hear(solo.hello(LOW, 1, 1));
        let outputs = solo.outputs();
        assert_eq!(messages(&outputs).any(|message| matches!(message, Message::UseMine { .. })), is_sound);
        assert_eq!(!outputs.contains(&Output::Close { conn: ours }), is_sound);
    }
}

#[test]
fn who_gives_way_in_vain_insists_and_is_answered() {
    let mut solo = Solo::new();
    let (conn, hello) = solo.ask(HIGH);
    solo.process.received(solo.now, conn, Message::UseMine { attempt: hello.attempt });
    solo.outputs();
    assert_eq!(solo.process.snapshot().permits, 0);
    let outputs = solo.wait(ConnectConfig::ENGINE.yield_timeout);
    let conn = dialed(&outputs).unwrap();
    solo.process.dialed(solo.now, conn);
    let outputs = solo.outputs();
    assert!(super::hello(&solo.make(&outputs)).unwrap().is_insisting);
    // The other side: an insisting HELLO goes before a higher name.
    let mut solo = Solo::new();
    let (ours, _) = solo.ask(LOW);
    solo.hear(Hello { is_insisting: true, ..solo.hello(LOW, 1, 2) });
    assert!(solo.outputs().contains(&Output::Close { conn: ours }));
}

#[test]
fn a_failed_queue_pair_is_replaced_through_the_same_job() {
    let mut solo = Solo::new();
    let (conn, hello) = solo.ask(HIGH);
    let welcome = solo.answer(&hello, HIGH, 1);
    solo.process.received(solo.now, conn, Message::Welcome(welcome));
    let outputs = solo.outputs();
    let link = ready(&solo.activate(&outputs)).unwrap();
    solo.now = solo.now + Duration::from_secs(10);
    solo.process.failed(solo.now, link);
    let outputs = solo.outputs();
    assert_eq!(outputs[0], Output::Retire { link });
    assert_eq!(down(&outputs), Some(DownCause::QueuePair));
    assert_eq!(dialed(&outputs), None, "others may have lost theirs for the same reason");
    let outputs = solo.wait(21 * MS);
    assert!(dialed(&outputs).is_some());
    // A failure of a generation that is gone is nobody's.
    solo.process.failed(solo.now, link);
    assert_eq!(down(&solo.outputs()), None);
}

#[test]
fn a_target_in_another_life_is_asked_without_naming_the_old_one() {
    let mut solo = Solo::new();
    solo.link(Hello { lane: Lane(1), ..solo.hello(HIGH, 1, 1) });
    let (conn, hello) = solo.ask(HIGH);
    assert_eq!(hello.to_incarnation, Some(Incarnation(1)));
    let reject = Message::Reject { attempt: hello.attempt, reason: RejectReason::WrongIncarnation };
    solo.process.received(solo.now, conn, reject);
    assert_eq!(down(&solo.outputs()), Some(DownCause::PeerRestarted), "the link of the other lane ends, too");
    let outputs = solo.wait(51 * MS);
    let conn = dialed(&outputs).unwrap();
    solo.process.dialed(solo.now, conn);
    let outputs = solo.outputs();
    assert_eq!(super::hello(&solo.make(&outputs)).unwrap().to_incarnation, None);
}

#[test]
fn a_lane_that_cannot_be_is_refused() {
    let mut solo = Solo::new();
    for (key, queue_pairs) in
        [(key(ME), 1), (key(HIGH), 0), (key(HIGH), 257), (LinkKey { node: HIGH, lane: Lane(128) }, 1)]
    {
        assert_eq!(solo.process.want(solo.now, key, queue_pairs), Err(WantError::Invalid));
    }
    assert_eq!(solo.outputs(), []);
}

#[test]
fn an_appointment_that_is_too_late_is_not_waited_for() {
    let mut solo = Solo::new();
    let (conn, hello) = solo.ask(HIGH);
    let busy = Message::Busy { attempt: hello.attempt, retry_after: Duration::MAX, ticket: None };
    solo.process.received(solo.now, conn, busy);
    let at = solo.process.next_timeout().unwrap().since(solo.now);
    assert!(at <= ConnectConfig::ENGINE.appointment_max + 20 * MS, "{at:?}");
}

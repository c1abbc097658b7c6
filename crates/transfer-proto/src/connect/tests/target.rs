//! What a target accepts, and what it does not.

use super::*;
use crate::wire::RejectReason;

#[test]
fn the_target_posts_only_after_the_initiator_has_confirmed() {
    for (mut solo, is_sound) in [(Solo::new(), true), (Solo::without(|guards| guards.confirm = false), false)]
    {
        let conn = solo.hear(solo.hello(LOW, 1, 1));
        let outputs = solo.outputs();
        let served = solo.make(&outputs);
        let welcome = welcome(&served).unwrap();
        let is_early = served.iter().any(|output| matches!(output, Output::Activate { .. }));
        assert_eq!(!is_early, is_sound);
        if is_sound {
            let confirm = Message::Confirm { attempt: Attempt(1), nonce: welcome.nonce };
            solo.process.received(solo.now, conn, confirm);
            let outputs = solo.outputs();
            assert!(matches!(outputs[..], [Output::Activate { .. }]));
            assert!(ready(&solo.activate(&outputs)).is_some());
        }
    }
}

#[test]
fn a_recorded_handshake_played_again_confirms_nothing() {
    let mut solo = Solo::new();
    let (conn, welcome) = solo.serve(solo.hello(LOW, 1, 1));
    for (attempt, nonce) in [(1, welcome.nonce ^ 1), (2, welcome.nonce)] {
        solo.process.received(solo.now, conn, Message::Confirm { attempt: Attempt(attempt), nonce });
        assert_eq!(solo.outputs(), []);
    }
    // Nobody confirms in time: its queue pairs are taken back.
    let outputs = solo.wait(Duration::from_secs(3));
    assert!(outputs.iter().any(|output| matches!(output, Output::Retire { .. })));
    assert_eq!((down(&outputs), solo.process.counters().unconfirmed), (None, 1));
}

#[test]
fn data_that_comes_in_confirms_as_well_as_words() {
    let mut solo = Solo::new();
    let conn = solo.hear(solo.hello(LOW, 1, 1));
    let outputs = solo.outputs();
    let Some(Output::Serve { link, .. }) = outputs.first().cloned() else { panic!() };
    solo.make(&outputs);
    solo.process.established(solo.now, link);
    let outputs = solo.outputs();
    assert_eq!(ready(&solo.activate(&outputs)), Some(link));
    // The words come too late and change nothing.
    solo.process.received(solo.now, conn, Message::Confirm { attempt: Attempt(1), nonce: 0 });
    assert_eq!(solo.outputs(), []);
}

#[test]
fn an_earlier_attempt_of_a_peer_is_dropped() {
    for (mut solo, is_sound) in
        [(Solo::new(), true), (Solo::without(|guards| guards.attempts = false), false)]
    {
        solo.link(solo.hello(LOW, 1, 5));
        solo.hear(solo.hello(LOW, 1, 4));
        let outputs = solo.outputs();
        assert_eq!(rejected(&outputs) == Some(RejectReason::Superseded), is_sound);
        assert_eq!(down(&outputs).is_none(), is_sound, "without the rule a ghost ends the link");
    }
}

#[test]
fn an_earlier_life_is_refused_and_a_new_one_ends_the_links_of_the_old() {
    let incarnations: fn(&mut Guards) = |guards| guards.incarnations = false;
    for (mut solo, is_sound) in [(Solo::new(), true), (Solo::without(incarnations), false)] {
        solo.link(Hello { lane: Lane(1), ..solo.hello(LOW, 2, 1) });
        solo.link(solo.hello(LOW, 2, 1));
        solo.hear(solo.hello(LOW, 1, 9));
        let outputs = solo.outputs();
        assert_eq!(
            rejected(&outputs) == Some(RejectReason::Superseded) && down(&outputs).is_none(),
            is_sound
        );
        solo.hear(solo.hello(LOW, 3, 1));
        let downs = solo.outputs();
        let restarted =
            |output: &&Output| matches!(output, Output::Down { cause: DownCause::PeerRestarted, .. });
        assert_eq!(downs.iter().filter(restarted).count(), if is_sound { 2 } else { 0 });
    }
}

#[test]
fn the_same_hello_twice_has_one_answer_and_makes_one_link() {
    let cached: fn(&mut Guards) = |guards| guards.cached_reply = false;
    for (mut solo, is_sound) in [(Solo::new(), true), (Solo::without(cached), false)] {
        let (_, first) = solo.serve(solo.hello(LOW, 1, 1));
        let conn = solo.hear(solo.hello(LOW, 1, 1));
        let outputs = solo.outputs();
        assert_eq!(welcome(&outputs) == Some(first.clone()), is_sound);
        if is_sound {
            solo.process.received(
                solo.now,
                conn,
                Message::Confirm { attempt: Attempt(1), nonce: first.nonce },
            );
            let outputs = solo.outputs();
            assert!(ready(&solo.activate(&outputs)).is_some());
            // And once more when it is linked.
            solo.hear(solo.hello(LOW, 1, 1));
            assert_eq!(welcome(&solo.outputs()), Some(first));
            assert_eq!((solo.process.counters().served, solo.process.counters().repeated), (1, 2));
        }
    }
}

#[test]
fn a_hello_that_its_sender_gave_up_does_not_replace_the_link_that_came_up() {
    let abandoned: fn(&mut Guards) = |guards| guards.abandoned = false;
    for (mut solo, is_sound) in [(Solo::new(), true), (Solo::without(abandoned), false)] {
        // Ours is answered, and the answer names the peer's own attempt 3, which is still under way.
        let (conn, hello) = solo.ask(HIGH);
        let welcome = Welcome { abandoned: Attempt(3), ..solo.answer(&hello, HIGH, 1) };
        solo.process.received(solo.now, conn, Message::Welcome(welcome));
        let outputs = solo.outputs();
        assert!(ready(&solo.activate(&outputs)).is_some());
        solo.hear(solo.hello(HIGH, 1, 3));
        assert_eq!(down(&solo.outputs()).is_none(), is_sound);
    }
}

#[test]
fn a_peer_that_begins_anew_ends_the_link_and_gets_another() {
    let mut solo = Solo::new();
    let first = solo.link(solo.hello(LOW, 1, 1));
    solo.hear(solo.hello(LOW, 1, 2));
    let outputs = solo.outputs();
    assert_eq!(outputs[0], Output::Retire { link: first });
    assert_eq!(down(&outputs), Some(DownCause::PeerRebuilds));
    assert!(welcome(&solo.make(&outputs)).is_some());
}

#[test]
fn work_is_not_done_for_those_who_have_gone() {
    let config = ConnectConfig {
        queue: towline_admission::QueueConfig { workers: 1, ..ConnectConfig::ENGINE.queue },
        ..ConnectConfig::ENGINE
    };
    let mut solo = Solo::with(config, Guards::ALL);
    solo.hear(solo.hello(NodeId(1), 1, 1));
    let busy = solo.outputs();
    // One closes, one begins anew, one stops listening, one stays.
    let gone = solo.hear(solo.hello(NodeId(2), 1, 1));
    solo.process.closed(solo.now, gone);
    solo.hear(solo.hello(NodeId(3), 1, 1));
    solo.hear(solo.hello(NodeId(3), 1, 2));
    solo.hear(Hello { patience: 30 * MS, ..solo.hello(NodeId(4), 1, 1) });
    solo.hear(solo.hello(NodeId(5), 1, 1));
    solo.wait(50 * MS);
    let mut outputs = busy;
    let mut served = Vec::new();
    while !outputs.is_empty() {
        outputs = solo.make(&outputs);
        served.extend(outputs.iter().filter_map(|output| match output {
            Output::Serve { process, .. } => Some(process.node),
            _ => None,
        }));
    }
    assert_eq!(served, [NodeId(3), NodeId(5)]);
    assert_eq!(solo.process.counters().spared, 3);
}

#[test]
fn who_says_nothing_is_closed_and_costs_no_worker() {
    let mut solo = Solo::new();
    let silent: Vec<ConnId> = (0..100).map(|_| solo.process.accepted(solo.now).unwrap()).collect();
    solo.link(solo.hello(LOW, 1, 1));
    let closed = solo.wait(Duration::from_secs(1));
    assert!(silent.iter().all(|conn| closed.contains(&Output::Close { conn: *conn })));
    assert_eq!(solo.process.snapshot().serving, 0);
}

#[test]
fn hellos_that_cannot_be_answered_are_refused_with_a_reason() {
    let mut solo = Solo::new();
    let good = solo.hello(LOW, 1, 1);
    for (hello, reason) in [
        (Hello { to: HIGH, ..good.clone() }, RejectReason::WrongNode),
        (Hello { to_incarnation: Some(Incarnation(9)), ..good.clone() }, RejectReason::WrongIncarnation),
        (Hello { queue_pairs: Vec::new(), ..good.clone() }, RejectReason::Invalid),
        (Hello { lane: Lane(128), ..good.clone() }, RejectReason::Invalid),
        (Hello { from: process(ME, 1), ..good.clone() }, RejectReason::Invalid),
    ] {
        solo.hear(hello);
        assert_eq!(rejected(&solo.outputs()), Some(reason));
    }
    solo.hear(good);
    let outputs = solo.outputs();
    let Some(Output::Serve { link, .. }) = outputs.first() else { panic!() };
    solo.process.made(solo.now, *link, Err(NoQueuePairs));
    assert_eq!(rejected(&solo.outputs()), Some(RejectReason::NoResources));
    assert_eq!(solo.process.snapshot().serving, 0);
}

#[test]
fn a_stranger_too_many_is_told_to_come_back_and_an_idle_one_makes_room() {
    let config = ConnectConfig { peers_max: 2, ..ConnectConfig::ENGINE };
    let mut solo = Solo::with(config, Guards::ALL);
    let link = solo.link(solo.hello(NodeId(1), 1, 1));
    solo.link(solo.hello(NodeId(2), 1, 1));
    solo.hear(solo.hello(NodeId(3), 1, 1));
    assert!(messages(&solo.outputs()).any(|message| matches!(message, Message::Busy { .. })));
    assert_eq!(solo.process.want(solo.now, key(NodeId(3)), 1), Err(WantError::TooManyPeers { peers: 2 }));
    solo.process.failed(solo.now, link);
    solo.link(solo.hello(NodeId(3), 1, 2));
    assert_eq!(solo.process.snapshot().peers, 2);
}

#[test]
fn a_process_that_leaves_ends_everything_at_once() {
    let mut solo = Solo::new();
    solo.link(solo.hello(LOW, 1, 1));
    solo.ask(HIGH);
    for node in 100..200 {
        solo.process.want(solo.now, key(NodeId(node)), 1).unwrap();
    }
    solo.hear(solo.hello(NodeId(3), 1, 1));
    solo.process.accepted(solo.now).unwrap();
    solo.process.leave(solo.now);
    let outputs = solo.outputs();
    assert_eq!(down(&outputs), Some(DownCause::Leaving));
    let snapshot = solo.process.snapshot();
    let held = (
        snapshot.ready,
        snapshot.connecting,
        snapshot.permits,
        snapshot.permit_waiters,
        snapshot.connections,
    );
    assert_eq!(held, (0, 0, 0, 0, 0));
    assert_eq!(solo.process.next_timeout(), None);
    assert_eq!(solo.process.want(solo.now, key(LOW), 1), Err(WantError::Leaving));
    solo.hear(solo.hello(LOW, 1, 2));
    assert_eq!(rejected(&solo.outputs()), Some(RejectReason::Leaving));
}

#[test]
fn connections_are_bounded_and_each_bound_has_its_name() {
    let headers = towline_admission::HeadersConfig { count_max: 2, ..ConnectConfig::ENGINE.headers };
    let mut solo =
        Solo::with(ConnectConfig { headers, connections_max: 3, ..ConnectConfig::ENGINE }, Guards::ALL);
    solo.link(solo.hello(LOW, 1, 1));
    solo.process.accepted(solo.now).unwrap();
    let last = solo.process.accepted(solo.now).unwrap();
    assert_eq!(solo.process.accepted(solo.now), Err(AcceptError::TooMany { open: 3 }));
    solo.process.closed(solo.now, last);
    solo.hear(solo.hello(LOW, 1, 1));
    assert!(solo.process.accepted(solo.now).is_err());
}

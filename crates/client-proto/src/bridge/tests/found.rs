//! What the simulator found, each in as few steps as show it.

use super::*;

#[test]
fn commands_that_expire_behind_withdrawn_ones_tell_how_long_the_queue_was() {
    let mut rig = Rig::new(parts());
    let withdrawn = [rig.incr("a"), rig.incr("b")];
    let expired = rig.incr("c");
    withdrawn.into_iter().for_each(|ticket| rig.bridge.abandon(ticket));
    rig.now = rig.now + Duration::from_secs(5);
    rig.bridge.handle_timeout(rig.now);
    let error = rig.outcome(expired).unwrap().unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Deadline);
    assert_eq!(error.diagnosis().map(|diagnosis| diagnosis.backlog_commands), Some(1));
}

#[test]
fn what_waits_for_too_long_by_policy_ends_in_time_however_far_its_deadline_is() {
    let age = Duration::from_millis(100);
    let mut rig = Rig::new(Parts { policy: Box::new(Policy::Bounded { bytes: 1000, age }), ..parts() });
    let waiting = rig.incr("a");
    let due = rig.bridge.poll_timeout().unwrap();
    rig.now = rig.bridge.poll_dial(rig.now).map_or(due, |_| rig.bridge.poll_timeout().unwrap());
    assert!(rig.now <= at(1111), "{:?}", rig.now);
    rig.bridge.handle_timeout(rig.now);
    let error = rig.outcome(waiting).unwrap().unwrap_err();
    assert_eq!((error.kind(), error.sent()), (&ErrorKind::BacklogAge, Sent::No));
}

#[test]
fn a_ticket_that_was_given_up_is_no_claim_on_anything() {
    let mut rig = Rig::new(parts());
    let withdrawn = rig.incr("a");
    rig.bridge.abandon(withdrawn);
    let is_misuse = |outcome: Option<Result<Reply, Error>>| matches!(outcome, Some(Err(error)) if matches!(error.kind(), ErrorKind::Misuse(_)));
    assert!(is_misuse(rig.outcome(withdrawn)));
    rig.bridge.abandon(withdrawn);
    let kept = rig.incr("b");
    rig.connect();
    let orphan = rig.incr("c");
    assert_eq!(rig.write(usize::MAX), b"*2\r\n$4\r\nINCR\r\n$1\r\nb\r\n*2\r\n$4\r\nINCR\r\n$1\r\nc\r\n");
    rig.bridge.abandon(orphan);
    assert!(is_misuse(rig.outcome(orphan)));
    rig.reply(b":1\r\n:2\r\n");
    assert_eq!(rig.outcome(kept), integer(1));
}

#[test]
fn a_repetition_that_fails_unsent_does_not_hide_that_an_earlier_attempt_may_have_run() {
    for ends_by_policy in [false, true] {
        let policy = if ends_by_policy { Policy::FailFast } else { Policy::Queue };
        let mut rig = Rig::new(Parts { policy: Box::new(policy), ..parts() });
        rig.connect();
        let set = rig.submit_as(&["SET", "a", "1"], SideEffect::Idempotent, Flags::ALLOW_RETRY).unwrap();
        rig.write(usize::MAX);
        rig.lose();
        if !ends_by_policy {
            assert!(rig.outcome(set).is_none(), "it waits to be repeated");
            rig.now = rig.now + Duration::from_secs(5);
            rig.bridge.handle_timeout(rig.now);
        }
        assert_eq!(rig.sent_of(set), Sent::Maybe);
    }
}

#[test]
fn a_closed_bridge_fails_what_its_connection_leaves_behind() {
    let mut rig = Rig::new(parts());
    rig.connect();
    let (read, unsent) = (rig.get("a"), rig.incr("b"));
    let read_bytes = crate::command::encoded_len(&["GET", "a"]);
    rig.write(read_bytes + 1);
    rig.bridge.close(rig.now);
    assert!(!rig.bridge.is_finished());
    rig.lose();
    assert!(rig.bridge.is_finished());
    assert_eq!((rig.sent_of(read), rig.sent_of(unsent)), (Sent::Maybe, Sent::No));
}

#[test]
fn a_closed_bridge_does_not_repeat_what_the_server_refuses() {
    let mut rig = Rig::new(parts());
    rig.connect();
    let refused = rig.get("a");
    rig.write(usize::MAX);
    rig.bridge.close(rig.now);
    rig.reply(b"-LOADING Redis is loading the dataset in memory\r\n");
    assert!(rig.bridge.is_finished());
    assert_eq!(rig.sent_of(refused), Sent::Answered);
}

#[test]
fn room_that_was_promised_is_not_given_to_a_newcomer_that_finds_an_empty_backlog() {
    let mut with = parts();
    with.config.backlog_bytes_max = 60;
    let mut rig = Rig::new(with);
    let first = rig.incr("a");
    let place = rig.bridge.wait_for_room(50, 1);
    rig.bridge.abandon(first);
    assert!(rig.bridge.poll_room(place, || 1), "the backlog is empty: there is room");
    let newcomer = rig.submit_as(&["INCR", "b"], SideEffect::NonIdempotent, Flags::NONE).unwrap_err();
    assert_eq!(newcomer.kind(), &ErrorKind::BacklogFull { bytes_max: 60 });
}

#[test]
fn room_that_was_promised_and_is_not_used_goes_to_the_next_in_line() {
    let mut with = parts();
    with.config.backlog_bytes_max = 60;
    let mut rig = Rig::new(with);
    let first = rig.incr("a");
    let places = [rig.bridge.wait_for_room(50, 1), rig.bridge.wait_for_room(50, 2)];
    rig.bridge.abandon(first);
    assert!(rig.bridge.poll_room(places[0], || 1) && !rig.bridge.poll_room(places[1], || 2));
    // Called too late: its deadline has come with the call.
    let late = Order {
        effect: SideEffect::NonIdempotent,
        replies: 1,
        deadline: rig.now,
        flags: Flags::NONE,
        bytes: 50,
        room: Some(places[0]),
    };
    let refused = rig.bridge.submit(rig.now, &late, |out| out.command(&["INCR", "b"])).unwrap_err();
    assert_eq!(refused.kind(), &ErrorKind::Deadline);
    assert!(rig.bridge.poll_room(places[1], || 2), "the next one has the room");
    assert!(rig.bridge.has_wakes(), "and is told");
}

#[test]
fn a_refusal_that_overtakes_the_word_on_its_write_is_retried_too() {
    for is_lost in [false, true] {
        let mut rig = Rig::new(parts());
        rig.connect();
        let ticket = rig.incr("a");
        let batch = rig.bridge.take_write(rig.now, rig.bridge.generation()).expect("a command waits");
        // The kernel had it all, and the server was quick.
        rig.reply(b"-LOADING Redis is loading the dataset in memory\r\n");
        if is_lost {
            rig.lose();
        }
        let count = batch.slices().map(<[u8]>::len).sum();
        rig.bridge.wrote(rig.now, batch, count);
        assert_eq!(rig.outcome(ticket), None, "it is not over");
        if is_lost {
            rig.connect();
        }
        rig.now = rig.now + Duration::from_millis(20);
        rig.bridge.handle_timeout(rig.now);
        assert_eq!(rig.write(usize::MAX), b"*2\r\n$4\r\nINCR\r\n$1\r\na\r\n");
        rig.reply(b":1\r\n");
        assert_eq!(rig.outcome(ticket), integer(1));
        assert_eq!(rig.bridge.snapshot(rig.now).log_bytes, 0);
    }
}

#[test]
fn a_flush_of_the_backlog_keeps_the_bound_on_bytes_in_flight() {
    let mut with = parts();
    with.config.in_flight_bytes_max = 100;
    let mut rig = Rig::new(with);
    for _ in 0..50 {
        rig.incr("a");
    }
    rig.connect();
    let command = crate::command::encoded_len(&["INCR", "a"]);
    assert!((100..100 + command).contains(&rig.write(usize::MAX).len()));
}

#[test]
fn a_slow_upload_that_moves_on_is_no_silence() {
    let mut rig = Rig::new(parts());
    rig.connect();
    let big = "x".repeat(100_000);
    let ticket = rig.submit_as(&["SET", "k", &big], SideEffect::Idempotent, Flags::NONE).unwrap();
    for _ in 0..8 {
        assert_eq!(rig.write(10_000).len(), 10_000);
        for _ in 0..5 {
            rig.now = rig.now + Duration::from_millis(100);
            rig.bridge.handle_timeout(rig.now);
        }
    }
    assert_eq!(rig.bridge.link_state(), LinkState::Up);
    assert!(rig.outcome(ticket).is_none());
}

#[test]
fn a_lost_connection_with_a_writer_out_asks_for_no_timer_of_its_own() {
    let mut rig = Rig::new(parts());
    let generation = rig.bridge.poll_dial(rig.now).unwrap();
    rig.bridge.opened(rig.now, generation, None);
    let batch = rig.bridge.take_write(rig.now, rig.bridge.generation()).unwrap();
    rig.lose();
    assert_eq!(rig.bridge.poll_timeout(), None);
    rig.bridge.wrote(rig.now, batch, 0);
    assert!(rig.bridge.poll_timeout().is_some(), "the next dial");
}

#[test]
fn a_queue_of_withdrawn_commands_only_is_given_back_at_once() {
    let mut rig = Rig::new(parts());
    let tickets = [rig.incr("a"), rig.incr("b")];
    tickets.into_iter().for_each(|ticket| rig.bridge.abandon(ticket));
    let left = |rig: &Rig| {
        let snapshot = rig.bridge.snapshot(rig.now);
        (snapshot.slots, snapshot.log_bytes)
    };
    assert_eq!(left(&rig), (0, 0));
    let (expires, withdrawn) = (rig.incr("a"), rig.incr("b"));
    rig.bridge.abandon(withdrawn);
    rig.now = rig.now + Duration::from_secs(5);
    rig.bridge.handle_timeout(rig.now);
    assert_eq!(rig.sent_of(expires), Sent::No);
    assert_eq!(left(&rig), (0, 0));
}

#[test]
fn a_writer_that_comes_back_after_the_reply_leaves_nothing_behind() {
    let mut rig = Rig::new(parts());
    rig.connect();
    let ticket = rig.incr("a");
    let batch = rig.bridge.take_write(rig.now, rig.bridge.generation()).unwrap();
    rig.reply(b":1\r\n");
    assert_eq!(rig.outcome(ticket), integer(1));
    let count = batch.len();
    rig.bridge.wrote(rig.now, batch, count);
    assert_eq!(rig.bridge.snapshot(rig.now).log_bytes, 0);
}

#[test]
fn a_transaction_whose_first_replies_come_before_its_last_byte_has_left_is_no_desync() {
    let order = Order {
        effect: SideEffect::NonIdempotent,
        replies: 3,
        deadline: at(9000),
        flags: Flags::TRANSACTION,
        bytes: 0,
        room: None,
    };
    let mut rig = Rig::new(parts());
    let transaction = |out: &mut crate::Encoder<'_>| {
        out.command(&["MULTI"]);
        out.command(&["INCR", "a"]);
        out.command(&["EXEC"]);
    };
    rig.connect();
    let ticket = rig.bridge.submit(rig.now, &order, transaction).unwrap().ticket.unwrap();
    rig.write(40);
    rig.reply(b"+OK\r\n+QUEUED\r\n");
    assert_eq!(rig.bridge.link_state(), LinkState::Up);
    rig.lose();
    rig.connect();
    rig.write(usize::MAX);
    rig.reply(b"+OK\r\n+QUEUED\r\n");
    assert!(rig.outcome(ticket).is_none(), "replies of the lost connection do not count");
    rig.reply(b"*1\r\n:1\r\n");
    assert!(matches!(rig.outcome(ticket), Some(Ok(Reply::Many(frames))) if frames.len() == 3));
}

#[test]
fn probes_do_not_pile_up_while_nobody_writes_them() {
    let mut rig = Rig::new(parts());
    rig.connect();
    for _ in 0..3 {
        rig.now = rig.bridge.poll_timeout().expect("an idle connection is asked");
        rig.bridge.handle_timeout(rig.now);
    }
    assert_eq!(rig.write(usize::MAX), b"*1\r\n$4\r\nPING\r\n");
}

#[test]
fn a_refusal_does_not_speak_for_an_earlier_attempt() {
    let mut rig = Rig::new(parts());
    rig.connect();
    let twice = rig.submit_as(&["SET", "k", "v"], SideEffect::Idempotent, Flags::ALLOW_RETRY).unwrap();
    rig.write(usize::MAX);
    rig.lose();
    rig.connect();
    rig.write(usize::MAX);
    rig.bridge.close(rig.now);
    rig.reply(b"-LOADING Redis is loading the dataset in memory\r\n");
    let error = rig.outcome(twice).unwrap().unwrap_err();
    assert_eq!((error.code(), error.sent(), error.is_retryable()), (Some("LOADING"), Sent::Maybe, false));
}

#[test]
fn dead_work_behind_a_slow_answer_is_given_back() {
    for is_withdrawn in [true, false] {
        let mut with = parts();
        with.config.in_flight_bytes_max = 100;
        let mut rig = Rig::new(with);
        rig.connect();
        let big = "x".repeat(100_000);
        let slow = [rig.incr("a"), rig.incr(&big)];
        rig.write(usize::MAX);
        let kept: Vec<_> = (0..100)
            .map(|round: u64| {
                rig.now = at(2000 + 40 * round);
                let tickets: Vec<_> = (0..5).map(|_| rig.incr(&big)).collect();
                let kept = rig.order_by(&["INCR", "kept"], at(60_000));
                if is_withdrawn {
                    tickets.into_iter().for_each(|ticket| rig.bridge.abandon(ticket));
                }
                let generation = rig.bridge.generation();
                rig.bridge.deliver(rig.now, generation, &mut Vec::new());
                rig.bridge.handle_timeout(rig.now);
                kept
            })
            .collect();
        if !is_withdrawn {
            rig.now = at(11_000);
            let generation = rig.bridge.generation();
            rig.bridge.deliver(rig.now, generation, &mut Vec::new());
            rig.bridge.handle_timeout(rig.now);
        }
        let snapshot = rig.bridge.snapshot(rig.now);
        assert!(snapshot.log_bytes < 2 << 20, "{is_withdrawn}: {}", snapshot.log_bytes);
        rig.reply(b":1\r\n:2\r\n");
        let mut sent = String::new();
        for answered in kept {
            sent.push_str(&String::from_utf8(rig.write(usize::MAX)).unwrap());
            rig.reply(&b":1\r\n".repeat(rig.bridge.conn.in_flight.len()));
            assert_eq!(rig.outcome(answered), integer(1));
        }
        assert_eq!((sent.matches("kept").count(), sent.contains(&big)), (100, false));
        if is_withdrawn {
            assert!(slow.into_iter().all(|ticket| rig.outcome(ticket).unwrap().is_ok()));
        }
        let snapshot = rig.bridge.snapshot(rig.now);
        assert_eq!((snapshot.log_bytes, rig.bridge.is_idle()), (0, true));
    }
}

#[test]
fn an_age_beyond_all_clocks_is_no_bound() {
    let age = Duration::MAX;
    let mut rig = Rig::new(Parts { policy: Box::new(Policy::Bounded { bytes: 1000, age }), ..parts() });
    let waiting = rig.order_by(&["INCR", "waits"], at(60_000));
    let short = rig.incr("short");
    rig.now = at(7000);
    rig.bridge.handle_timeout(rig.now);
    assert_eq!(*rig.outcome(short).unwrap().unwrap_err().kind(), ErrorKind::Deadline);
    assert_eq!(rig.outcome(waiting), None);
}

#[test]
fn a_block_that_comes_back_behind_a_gap_gets_no_later_bytes() {
    let mut rig = Rig::new(parts());
    rig.connect();
    let first = rig.incr("a");
    let batch = rig.bridge.take_write(rig.now, rig.bridge.generation()).unwrap();
    let big = "x".repeat(2 << 20);
    let withdrawn = rig.incr(&big);
    rig.bridge.abandon(withdrawn);
    assert!(rig.bridge.snapshot(rig.now).log_bytes < 1 << 20);
    let count = batch.len();
    rig.bridge.wrote(rig.now, batch, count);
    let second = rig.incr("b");
    assert_eq!(rig.write(usize::MAX), b"*2\r\n$4\r\nINCR\r\n$1\r\nb\r\n");
    rig.reply(b":1\r\n:2\r\n");
    assert_eq!((rig.outcome(first), rig.outcome(second)), (integer(1), integer(2)));
    assert_eq!(rig.bridge.snapshot(rig.now).log_bytes, 0);
}

#[test]
fn credentials_that_change_during_the_handshake_follow_it() {
    let mut rig = Rig::new(parts());
    let generation = rig.bridge.poll_dial(rig.now).unwrap();
    rig.bridge.opened(rig.now, generation, None);
    rig.write(usize::MAX);
    rig.bridge.reauthenticate(crate::Credentials::password("fresh"));
    assert!(!rig.bridge.wants_write(rig.bridge.generation()), "the handshake is not through");
    rig.reply(b"+PONG\r\n");
    let sent = String::from_utf8(rig.write(usize::MAX)).unwrap();
    assert!(sent.starts_with("*2\r\n$4\r\nAUTH\r\n$5\r\nfresh\r\n"), "{sent}");
}

#[test]
fn a_refused_command_whose_writer_is_still_out_keeps_its_deadline() {
    for comes_back in [true, false] {
        let mut rig = Rig::new(parts());
        rig.connect();
        let refused = rig.order_by(&["INCR", "a"], rig.now + Duration::from_millis(100));
        let earlier = rig.order_by(&["INCR", "b"], rig.now + Duration::from_millis(50));
        let batch = rig.bridge.take_write(rig.now, rig.bridge.generation()).expect("commands wait");
        rig.reply(b"-LOADING Redis is loading the dataset in memory\r\n");
        rig.now = rig.now + Duration::from_millis(60);
        rig.bridge.handle_timeout(rig.now);
        assert!(rig.outcome(earlier).is_some_and(|outcome| outcome.is_err()));
        let due = rig.bridge.poll_timeout().expect("a command has a deadline");
        assert!(due <= at(1101), "{due:?}");
        if comes_back {
            let count = batch.slices().map(<[u8]>::len).sum();
            rig.bridge.wrote(rig.now, batch, count);
        }
        rig.now = at(1115);
        rig.bridge.handle_timeout(rig.now);
        assert_eq!(*rig.outcome(refused).expect("it has ended").unwrap_err().kind(), ErrorKind::Deadline);
    }
}

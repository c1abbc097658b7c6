//! From one connection to its successor.

mod found;

use super::*;
use crate::bridge::HandoffEvent;
use crate::handoff::{HandoffOrder, Target};
use crate::handshake::MaintenanceRequest;

/// A bridge whose server announces its moves.
fn moving_parts() -> Parts {
    let mut parts = parts();
    parts.handshake.maintenance = Some(MaintenanceRequest { moving_endpoint_type: None, is_required: false });
    parts
}

fn with_order(order: HandoffOrder) -> Rig {
    let mut parts = moving_parts();
    parts.config.handoff_order = order;
    Rig::new(parts)
}

const MOVING: &[u8] = b">4\r\n$6\r\nMOVING\r\n:17\r\n:15\r\n$16\r\n203.0.113.7:6379\r\n";

impl Rig {
    fn write_to(&mut self, generation: Generation, room: usize) -> Vec<u8> {
        let mut sent = Vec::new();
        while sent.len() < room
            && let Some(batch) = self.bridge.take_write(self.now, generation)
        {
            let bytes: Vec<u8> = batch.slices().flatten().copied().collect();
            let count = bytes.len().min(room - sent.len());
            sent.extend_from_slice(&bytes[..count]);
            self.bridge.wrote(self.now, batch, count);
        }
        sent
    }

    fn reply_from(&mut self, generation: Generation, bytes: &[u8]) {
        let mut buffer = BytesMut::from(bytes);
        let mut decoder = Decoder::default();
        let mut frames = Vec::new();
        while let Some(frame) = decoder.decode(&mut buffer).unwrap() {
            frames.push(frame);
        }
        self.bridge.deliver(self.now, generation, &mut frames);
    }

    /// Announces the move on the present connection and dials the successor.
    fn announce(&mut self) -> Generation {
        let old = self.bridge.generation();
        self.reply_from(old, MOVING);
        let dial = self.bridge.poll_handoff_dial(self.now).expect("a busy connection dials at once");
        assert!(matches!(dial.target, Target::Named(address) if address.to_string() == "203.0.113.7:6379"));
        self.bridge.opened(self.now, dial.generation, None);
        dial.generation
    }

    /// Brings the successor up.
    fn shake(&mut self, generation: Generation) {
        assert!(!self.write_to(generation, usize::MAX).is_empty(), "a handshake is sent");
        self.reply_from(generation, b"+PONG\r\n");
    }

    fn all_events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.bridge.poll_event()).collect()
    }

    fn handoff_events(&mut self) -> Vec<HandoffEvent> {
        std::iter::from_fn(|| self.bridge.poll_event())
            .filter_map(|event| match event {
                Event::Handoff(event) => Some(event),
                Event::Lost { .. } => panic!("a planned move is no loss: {event:?}"),
                _ => None,
            })
            .collect()
    }
}

fn texts(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace("\r\n", " ")
}

#[test]
fn commands_go_on_while_the_successor_is_made_ready_and_then_on_it() {
    let mut rig = Rig::new(moving_parts());
    rig.connect();
    let old = rig.bridge.generation();
    let first = rig.get("a");
    rig.write_to(old, usize::MAX);
    let new = rig.announce();
    let second = rig.get("b");
    assert!(texts(&rig.write_to(old, usize::MAX)).contains("$1 b"), "the old connection goes on serving");
    rig.shake(new);
    assert_eq!(rig.bridge.generation(), new);
    let third = rig.get("c");
    assert!(rig.write_to(new, usize::MAX).is_empty(), "older commands are not answered yet");
    assert!(rig.write_to(old, usize::MAX).is_empty(), "the old connection gets nothing more");
    rig.reply_from(old, b"$1\r\n1\r\n$1\r\n2\r\n");
    assert!(!rig.bridge.is_wanted(old), "it has answered everything");
    assert!(texts(&rig.write_to(new, usize::MAX)).contains("$1 c"));
    rig.reply_from(new, b"$1\r\n3\r\n");
    for ticket in [first, second, third] {
        assert!(matches!(rig.outcome(ticket), Some(Ok(_))));
    }
    let events = rig.handoff_events();
    assert!(matches!(events[0], HandoffEvent::Announced { .. }), "{events:?}");
    assert!(matches!(events[1], HandoffEvent::Dialing { .. }), "{events:?}");
    assert!(matches!(events[2], HandoffEvent::CutOver { in_flight: 2, moved: 0, .. }), "{events:?}");
    assert!(matches!(events[3], HandoffEvent::Drained { .. }), "{events:?}");
    assert_eq!(rig.bridge.counters().failed, 0);
    assert_eq!(rig.bridge.counters().handoffs, 1);
}

#[test]
fn the_cut_splits_a_pipeline_at_whatever_byte_the_kernel_has_come_to() {
    for order in [HandoffOrder::Strict, HandoffOrder::PerKey, HandoffOrder::None] {
        let mut offset = 0;
        loop {
            let mut rig = with_order(order);
            rig.connect();
            let old = rig.bridge.generation();
            let keys = ["a", "b", "c"];
            let tickets = keys.map(|key| {
                rig.submit_as(&["INCR", key], SideEffect::NonIdempotent, Flags::NO_RETRY).unwrap()
            });
            let first = rig.write_to(old, offset);
            let is_all = first.len() < offset;
            let new = rig.announce();
            // The kernel has blocked in the middle of a batch; nothing more of it leaves.
            rig.shake(new);
            let on_old = keys.iter().filter(|key| texts(&first).contains(&format!("$1 {key} "))).count();
            rig.reply_from(old, &b":1\r\n".repeat(on_old));
            assert!(!rig.bridge.is_wanted(old), "{order:?} {offset}");
            let second = texts(&rig.write_to(new, usize::MAX));
            for (at, key) in keys.iter().enumerate() {
                let times = second.matches(&format!("$4 INCR $1 {key} ")).count();
                assert_eq!(times, usize::from(at >= on_old), "{order:?} {offset} {key}: {second}");
            }
            rig.reply_from(new, &b":1\r\n".repeat(keys.len() - on_old));
            for ticket in tickets {
                assert!(matches!(rig.outcome(ticket), Some(Ok(_))), "{order:?} {offset}");
            }
            if is_all {
                break;
            }
            offset += 1;
        }
        assert_eq!(offset, 3 * "*2\r\n$4\r\nINCR\r\n$1\r\na\r\n".len() + 1);
    }
}

#[test]
fn by_key_only_what_must_wait_does() {
    let mut rig = with_order(HandoffOrder::PerKey);
    rig.connect();
    let old = rig.bridge.generation();
    rig.get("a");
    rig.write_to(old, usize::MAX);
    let new = rig.announce();
    rig.shake(new);
    rig.get("b");
    rig.get("a");
    rig.get("c");
    let sent = texts(&rig.write_to(new, usize::MAX));
    assert!(sent.contains("$1 b") && sent.contains("$1 c") && !sent.contains("$1 a"), "{sent}");
    // What comes after a command that waits, on the same key, waits too.
    rig.submit_as(&["MSET", "a", "1", "d", "1"], SideEffect::Idempotent, Flags::NONE).unwrap();
    rig.get("d");
    rig.get("e");
    let sent = texts(&rig.write_to(new, usize::MAX));
    assert!(sent.contains("$1 e") && !sent.contains("$1 d"), "{sent}");
    rig.reply_from(old, b"$1\r\n1\r\n");
    let sent = texts(&rig.write_to(new, usize::MAX));
    assert_eq!(
        sent, "*2 $3 GET $1 a *5 $4 MSET $1 a $1 1 $1 d $1 1 *2 $3 GET $1 d ",
        "in the order of submission"
    );
    rig.reply_from(new, &b"$1\r\n1\r\n".repeat(6));
    assert!(rig.bridge.is_idle());
}

#[test]
fn a_unit_that_has_half_left_runs_whole_on_the_successor() {
    let mut rig = Rig::new(moving_parts());
    rig.connect();
    let old = rig.bridge.generation();
    let unit = b"*1\r\n$5\r\nMULTI\r\n*2\r\n$4\r\nINCR\r\n$1\r\na\r\n*1\r\n$4\r\nEXEC\r\n";
    let order = Order {
        effect: SideEffect::NonIdempotent,
        replies: 3,
        deadline: rig.now + Duration::from_secs(5),
        flags: Flags::TRANSACTION,
        bytes: unit.len(),
        room: None,
    };
    let ticket = rig.bridge.submit(rig.now, &order, |out| out.raw(unit)).unwrap().ticket.unwrap();
    let sent = rig.write_to(old, unit.len() - 1);
    assert_eq!(sent.len(), unit.len() - 1);
    rig.reply_from(old, b"+OK\r\n");
    let new = rig.announce();
    rig.shake(new);
    // The rest of the first half's replies may still come; the connection is not needed for them.
    rig.reply_from(old, b"+QUEUED\r\n");
    assert!(!rig.bridge.is_wanted(old));
    assert_eq!(rig.write_to(new, usize::MAX), unit);
    rig.reply_from(new, b"+OK\r\n+QUEUED\r\n*1\r\n:1\r\n");
    assert!(matches!(rig.outcome(ticket), Some(Ok(Reply::Many(frames))) if frames.len() == 3));
}

#[test]
fn a_writer_that_is_at_work_is_waited_for() {
    let mut rig = Rig::new(moving_parts());
    rig.connect();
    let old = rig.bridge.generation();
    let ticket = rig.get("a");
    let batch = rig.bridge.take_write(rig.now, old).unwrap();
    let new = rig.announce();
    rig.shake(new);
    assert_eq!(rig.bridge.generation(), old, "how much the kernel took is not known");
    rig.bridge.wrote(rig.now, batch, 5);
    assert_eq!(rig.bridge.generation(), new);
    assert!(texts(&rig.write_to(new, usize::MAX)).contains("$1 a"));
    rig.reply_from(new, b"$1\r\n1\r\n");
    assert!(matches!(rig.outcome(ticket), Some(Ok(_))));
}

#[test]
fn a_successor_that_cannot_be_had_costs_nothing() {
    let mut rig = Rig::new(moving_parts());
    rig.connect();
    let old = rig.bridge.generation();
    rig.reply_from(old, MOVING);
    let dial = rig.bridge.poll_handoff_dial(rig.now).unwrap();
    rig.bridge.dial_failed(rig.now, dial.generation, std::io::ErrorKind::ConnectionRefused);
    assert!(!rig.bridge.is_wanted(dial.generation));
    let ticket = rig.get("a");
    rig.write_to(old, usize::MAX);
    rig.reply_from(old, b"$1\r\n1\r\n");
    assert!(matches!(rig.outcome(ticket), Some(Ok(_))), "the old connection goes on serving");
    let due = rig.bridge.poll_timeout().unwrap();
    assert!(due <= rig.now + Duration::from_millis(100), "and the next attempt is soon");
    rig.now = due;
    rig.bridge.handle_timeout(rig.now);
    let again = rig.bridge.poll_handoff_dial(rig.now).unwrap();
    rig.bridge.opened(rig.now, again.generation, None);
    rig.shake(again.generation);
    assert_eq!(rig.bridge.generation(), again.generation);
}

#[test]
fn an_old_connection_that_ends_early_leaves_its_place_to_the_successor() {
    for policy in [Policy::Queue, Policy::FailFast] {
        let mut parts = moving_parts();
        parts.policy = Box::new(policy);
        let mut rig = Rig::new(parts);
        rig.connect();
        let old = rig.bridge.generation();
        let new = rig.announce();
        rig.bridge.lost(rig.now, old, LostCause::Reset);
        assert_eq!(rig.bridge.generation(), new, "no other dial is needed");
        let ticket = rig.get("a");
        rig.shake(new);
        assert!(texts(&rig.write_to(new, usize::MAX)).contains("$1 a"), "{policy:?}");
        rig.reply_from(new, b"$1\r\n1\r\n");
        assert!(matches!(rig.outcome(ticket), Some(Ok(_))), "{policy:?}: a planned move is no outage");
    }
}

#[test]
fn replies_that_the_old_connection_still_owes_are_unknown_when_it_dies() {
    let mut rig = Rig::new(moving_parts());
    rig.connect();
    let old = rig.bridge.generation();
    let write = rig.submit_as(&["INCR", "a"], SideEffect::NonIdempotent, Flags::NONE).unwrap();
    let read = rig.get("a");
    rig.write_to(old, usize::MAX);
    let new = rig.announce();
    rig.shake(new);
    let later = rig.get("b");
    rig.bridge.lost(rig.now, old, LostCause::Reset);
    let error = rig.outcome(write).unwrap().unwrap_err();
    assert_eq!((error.kind(), error.sent()), (&ErrorKind::Lost(LostCause::Planned), Sent::Maybe));
    let sent = texts(&rig.write_to(new, usize::MAX));
    assert_eq!(sent, "*2 $3 GET $1 a *2 $3 GET $1 b ", "reads are repeated, in their place");
    rig.reply_from(new, b"$1\r\n1\r\n$1\r\n2\r\n");
    assert!(matches!(rig.outcome(read), Some(Ok(_))));
    assert!(matches!(rig.outcome(later), Some(Ok(_))));
}

#[test]
fn a_hold_stretches_deadlines_that_are_not_hard() {
    let mut rig = Rig::new(moving_parts());
    rig.connect();
    let old = rig.bridge.generation();
    rig.order_by(&["GET", "a"], rig.now + Duration::from_secs(60));
    rig.write_to(old, usize::MAX);
    let new = rig.announce();
    rig.shake(new);
    let soft = rig.order_by(&["GET", "b"], rig.now + Duration::from_millis(50));
    let order = Order {
        effect: SideEffect::ReadOnly,
        replies: 1,
        deadline: rig.now + Duration::from_millis(50),
        flags: Flags::HARD_DEADLINE,
        bytes: crate::command::encoded_len(&["GET", "c"]),
        room: None,
    };
    let hard = rig.bridge.submit(rig.now, &order, |out| out.command(&["GET", "c"])).unwrap().ticket.unwrap();
    rig.now = rig.now + Duration::from_millis(60);
    rig.bridge.handle_timeout(rig.now);
    assert!(matches!(rig.outcome(hard), Some(Err(error)) if error.kind() == &ErrorKind::Deadline));
    assert!(rig.outcome(soft).is_none());
    rig.now = rig.now + Duration::from_millis(740);
    rig.bridge.handle_timeout(rig.now);
    rig.reply_from(old, b"$1\r\n1\r\n");
    assert!(texts(&rig.write_to(new, usize::MAX)).contains("$1 b"));
    rig.reply_from(new, b"$1\r\n1\r\n");
    assert!(matches!(rig.outcome(soft), Some(Ok(_))));
}

#[test]
fn a_late_word_of_the_old_connection_does_not_touch_the_new_one() {
    let mut rig = Rig::new(moving_parts());
    rig.connect();
    let old = rig.bridge.generation();
    let new = rig.announce();
    rig.shake(new);
    let ticket = rig.get("a");
    rig.write_to(new, usize::MAX);
    rig.bridge.lost(rig.now, old, LostCause::Closed);
    rig.reply_from(old, b"$3\r\nbad\r\n");
    assert!(rig.outcome(ticket).is_none());
    rig.reply_from(new, b"$1\r\n1\r\n");
    assert!(matches!(rig.outcome(ticket), Some(Ok(_))));
}

#[test]
fn a_planned_outage_is_one_like_others_when_its_window_is_over() {
    let mut parts = moving_parts();
    parts.policy = Box::new(Policy::FailFast);
    let mut rig = Rig::new(parts);
    rig.connect();
    let old = rig.bridge.generation();
    rig.reply_from(old, MOVING);
    let begun = rig.now;
    let dial = rig.bridge.poll_handoff_dial(rig.now).unwrap();
    rig.bridge.dial_failed(rig.now, dial.generation, std::io::ErrorKind::ConnectionRefused);
    rig.bridge.lost(rig.now, old, LostCause::Closed);
    let ticket = rig.order_by(&["GET", "a"], rig.now + Duration::from_secs(60));
    let mut failed_at = None;
    while failed_at.is_none() {
        rig.now = rig.bridge.poll_timeout().expect("something is due").max(rig.now);
        rig.bridge.handle_timeout(rig.now);
        if let Some(dial) = rig.bridge.poll_dial(rig.now) {
            rig.bridge.dial_failed(rig.now, dial, std::io::ErrorKind::ConnectionRefused);
        }
        failed_at = rig.outcome(ticket).map(|outcome| (rig.now, outcome));
    }
    let (at, outcome) = failed_at.unwrap();
    assert_eq!(outcome.unwrap_err().kind(), &ErrorKind::Unavailable);
    let after = at.since(begun);
    assert!(after >= Duration::from_secs(15) && after <= Duration::from_secs(26), "{after:?}");
}

#[test]
fn without_a_successor_the_connection_is_left_when_it_has_answered() {
    let mut rig = Rig::new(moving_parts());
    rig.connect();
    let old = rig.bridge.generation();
    rig.reply_from(old, MOVING);
    let begun = rig.now;
    let write = rig.submit_as(&["INCR", "a"], SideEffect::NonIdempotent, Flags::NO_RETRY).unwrap();
    rig.write_to(old, usize::MAX);
    let mut reconnect = None;
    while reconnect.is_none() {
        if let Some(dial) = rig.bridge.poll_handoff_dial(rig.now) {
            rig.bridge.dial_failed(rig.now, dial.generation, std::io::ErrorKind::ConnectionRefused);
        }
        rig.now = rig.bridge.poll_timeout().expect("something is due").max(rig.now);
        rig.bridge.handle_timeout(rig.now);
        if rig.outcome(write).is_none() && rig.now.since(begun) > Duration::from_secs(1) {
            // The server is slow, not gone; it answers before the window ends.
            rig.reply_from(old, b":1\r\n");
            let probe = rig.write_to(old, usize::MAX).len();
            rig.reply_from(old, &b"+PONG\r\n".repeat(probe / 14));
        }
        let probes = rig.write_to(old, usize::MAX).len();
        rig.reply_from(old, &b"+PONG\r\n".repeat(probes / 14));
        reconnect = rig.bridge.poll_dial(rig.now);
    }
    assert!(rig.now.since(begun) >= Duration::from_millis(13_500), "at nine tenths of the window");
    assert!(rig.now.since(begun) <= Duration::from_secs(15));
    assert_eq!(rig.bridge.counters().recycled, 1);
    assert_eq!((rig.bridge.counters().failed, rig.bridge.counters().failed_unknown), (0, 0));
    assert!(!rig.bridge.is_wanted(old));
}

#[test]
fn what_waited_for_its_keys_follows_a_batch_of_which_the_kernel_took_a_part() {
    let mut rig = with_order(HandoffOrder::PerKey);
    rig.connect();
    let old = rig.bridge.generation();
    let first = rig.incr("a");
    rig.write_to(old, usize::MAX);
    let new = rig.announce();
    rig.shake(new);
    let (parked, free) = (rig.incr("a"), rig.incr("b"));
    let batch = rig.bridge.take_write(rig.now, new).expect("one may leave");
    rig.bridge.wrote(rig.now, batch, 5);
    rig.reply_from(old, b":1\r\n");
    let sent = texts(&rig.write_to(new, usize::MAX));
    assert!(sent.ends_with("$1 b *2 $4 INCR $1 a "), "{sent}");
    rig.reply_from(new, b":1\r\n:2\r\n");
    assert_eq!((rig.outcome(first), rig.outcome(free)), (integer(1), integer(1)));
    assert_eq!(rig.outcome(parked), integer(2));
    assert!(!rig.bridge.is_wanted(old));
    assert_eq!(rig.bridge.snapshot(rig.now).log_bytes, 0);
}

#[test]
fn who_left_without_a_successor_may_look_for_one_as_long_as_the_server_may_take() {
    let mut parts = moving_parts();
    parts.policy = Box::new(Policy::FailFast);
    let mut rig = Rig::new(parts);
    rig.connect();
    let old = rig.bridge.generation();
    rig.reply_from(old, MOVING);
    let begun = rig.now;
    let refuse = |rig: &mut Rig| {
        if let Some(dial) = rig.bridge.poll_handoff_dial(rig.now) {
            rig.bridge.dial_failed(rig.now, dial.generation, std::io::ErrorKind::ConnectionRefused);
        }
        if let Some(dial) = rig.bridge.poll_dial(rig.now) {
            rig.bridge.dial_failed(rig.now, dial, std::io::ErrorKind::ConnectionRefused);
        }
        rig.now = rig.bridge.poll_timeout().expect("something is due").max(rig.now);
        rig.bridge.handle_timeout(rig.now);
        let probes = rig.write_to(old, usize::MAX).len();
        rig.reply_from(old, &b"+PONG\r\n".repeat(probes / 14));
    };
    while rig.bridge.counters().recycled == 0 {
        refuse(&mut rig);
    }
    let waiting = rig.order_by(&["GET", "a"], rig.now + Duration::from_secs(60));
    let mut outcome = None;
    while outcome.is_none() {
        refuse(&mut rig);
        outcome = rig.outcome(waiting);
    }
    assert_eq!(outcome.unwrap().unwrap_err().kind(), &ErrorKind::Unavailable);
    let after = rig.now.since(begun);
    assert!(after >= Duration::from_secs(25) && after < Duration::from_secs(26), "{after:?}");
}

#[test]
fn a_closed_bridge_makes_no_successor_ready() {
    let mut rig = Rig::new(moving_parts());
    rig.connect();
    let old = rig.bridge.generation();
    let waiting = rig.incr("a");
    rig.write_to(old, usize::MAX);
    let new = rig.announce();
    rig.bridge.lost(rig.now, new, LostCause::Reset);
    rig.bridge.close(rig.now);
    assert!(!rig.bridge.is_wanted(new));
    while let Some(due) = rig.bridge.poll_timeout().filter(|due| *due < at(60_000)) {
        rig.now = due.max(rig.now);
        rig.bridge.handle_timeout(rig.now);
        assert_eq!(rig.bridge.poll_handoff_dial(rig.now), None);
        if rig.outcome(waiting).is_some() {
            break;
        }
    }
}

#[test]
fn a_move_that_a_connection_hears_which_never_comes_up_ends_with_it() {
    let mut rig = Rig::new(moving_parts());
    let first = rig.bridge.poll_dial(rig.now).expect("a dial is due");
    rig.bridge.opened(rig.now, first, None);
    rig.write_to(first, usize::MAX);
    rig.reply_from(first, MOVING);
    rig.bridge.lost(rig.now, first, LostCause::Closed);
    let events = rig.handoff_events();
    assert!(matches!(events.last(), Some(HandoffEvent::Ended(_))), "{events:?}");
    let dial =
        rig.bridge.poll_handoff_dial(rig.now).expect("what was to be its successor serves in its place");
    assert!(rig.bridge.is_wanted(dial.generation) && matches!(dial.target, Target::Named(_)));
    rig.bridge.dial_failed(rig.now, dial.generation, std::io::ErrorKind::ConnectionRefused);
    assert_eq!(
        rig.bridge.poll_handoff_dial(rig.now + Duration::from_secs(60)),
        None,
        "dials are ordinary ones now"
    );
}

#[test]
fn a_handoff_ends_with_its_source_while_an_older_connection_still_has_answers_to_give() {
    let mut rig = with_order(HandoffOrder::None);
    rig.connect();
    let first = rig.bridge.generation();
    rig.incr("a");
    rig.write_to(first, usize::MAX);
    let second = rig.announce();
    rig.shake(second);
    rig.bridge.lost(rig.now, second, LostCause::Reset);
    rig.connect();
    let third = rig.bridge.generation();
    assert!(rig.bridge.is_wanted(first), "its answer may still come");
    rig.all_events();
    rig.reply_from(third, b">4\r\n$6\r\nMOVING\r\n:18\r\n:15\r\n$16\r\n203.0.113.9:6379\r\n");
    let dial = rig.bridge.poll_handoff_dial(rig.now).expect("it moves too");
    rig.bridge.dial_failed(rig.now, dial.generation, std::io::ErrorKind::ConnectionRefused);
    rig.bridge.lost(rig.now, third, LostCause::Closed);
    let events = rig.all_events();
    let ended = events.iter().filter(|event| matches!(event, Event::Handoff(HandoffEvent::Ended(_)))).count();
    assert_eq!(ended, 1, "{events:?}");
    assert_eq!(rig.bridge.poll_handoff_dial(rig.now + Duration::from_secs(60)), None);
}

/// Answers a whole handshake, and says whether announcements were asked for.
fn shake_hands(rig: &mut Rig, answer: &str) -> bool {
    let dial = loop {
        if let Some(dial) = rig.bridge.poll_dial(rig.now) {
            break dial;
        }
        rig.now = rig.bridge.poll_timeout().expect("a dial is due").max(rig.now);
        rig.bridge.handle_timeout(rig.now);
    };
    rig.bridge.opened(rig.now, dial, None);
    let sent = rig.write_to(dial, usize::MAX);
    let mut asked = false;
    let mut replies = String::new();
    for command in String::from_utf8(sent).unwrap().split('*').skip(1) {
        let words: Vec<&str> = command.split("\r\n").skip(2).step_by(2).collect();
        replies += &match words.as_slice() {
            ["HELLO", ..] => "%2\r\n+proto\r\n:3\r\n+id\r\n:5\r\n".to_owned(),
            ["PING", token, ..] => format!("+{token}\r\n"),
            ["CLIENT", "ID", ..] => ":5\r\n".to_owned(),
            ["CLIENT", "MAINT_NOTIFICATIONS", ..] => {
                asked = true;
                format!("{answer}\r\n")
            }
            _ => "+OK\r\n".to_owned(),
        };
    }
    rig.reply_from(dial, replies.as_bytes());
    assert_eq!(rig.bridge.link_state(), LinkState::Up);
    asked
}

#[test]
fn a_server_that_knows_no_announcements_is_not_asked_each_time() {
    for (answer, is_asked_again) in
        [("-ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP.", false), ("+OK", true)]
    {
        let mut parts = moving_parts();
        (parts.handshake.peer, parts.handshake.protocol) = (Peer::Server, ProtocolChoice::Resp3);
        let mut rig = Rig::new(parts);
        assert!(shake_hands(&mut rig, answer), "{answer}");
        rig.lose();
        assert_eq!(shake_hands(&mut rig, answer), is_asked_again, "{answer}");
        rig.lose();
        rig.now = rig.now + Duration::from_secs(3601);
        assert!(shake_hands(&mut rig, answer), "by then it may be another server: {answer}");
    }
}

/// A server that refuses `MULTI` runs what follows it at once, so a unit that has left in part may have run in part.
#[test]
fn a_unit_whose_beginning_was_refused_is_not_run_again() {
    let mut rig = Rig::new(moving_parts());
    rig.connect();
    let old = rig.bridge.generation();
    let unit = b"*1\r\n$5\r\nMULTI\r\n*2\r\n$4\r\nINCR\r\n$1\r\na\r\n*1\r\n$4\r\nEXEC\r\n";
    let order = Order {
        effect: SideEffect::NonIdempotent,
        replies: 3,
        deadline: rig.now + Duration::from_secs(5),
        flags: Flags::TRANSACTION,
        bytes: unit.len(),
        room: None,
    };
    let ticket = rig.bridge.submit(rig.now, &order, |out| out.raw(unit)).unwrap().ticket.unwrap();
    rig.write_to(old, unit.len() - 1);
    let new = rig.announce();
    rig.shake(new);
    assert_eq!(rig.bridge.generation(), old, "what the server says to MULTI is not known yet");
    rig.reply_from(old, b"-NOPERM no MULTI for you\r\n");
    assert_eq!(rig.bridge.generation(), new);
    let error = rig.outcome(ticket).unwrap().unwrap_err();
    assert_eq!((error.code(), error.sent()), (Some("NOPERM"), Sent::Maybe));
    assert!(rig.write_to(new, usize::MAX).is_empty(), "it is not sent again");
}

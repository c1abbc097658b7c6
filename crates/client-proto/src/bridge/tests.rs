//! Cases that show one rule each. The simulator tries everything else.

mod diagnosis;
mod found;
mod handoff;
mod handoff_pubsub;
mod leaving;
mod pubsub;
mod tracking;

use std::time::Duration;

use bytes::BytesMut;
use towline_resp::frame::{Decoder, Frame};

use super::*;
use crate::command::Order;
use crate::handshake::{HandshakeError, Peer, ProtocolChoice, Step};
use crate::policy::Policy;
use crate::retry::RetryBudgetConfig;

type TestBridge = Bridge<u32>;

/// A handshake of one `PING`: what a proxy gets.
fn parts() -> Parts {
    let handshake =
        HandshakeConfig { protocol: ProtocolChoice::Resp2, peer: Peer::Proxy, ..HandshakeConfig::default() };
    Parts {
        config: Config::default(),
        policy: Box::new(Policy::Queue),
        handshake,
        liveness: LivenessConfig::default(),
        budget: RetryBudget::new(Instant::ZERO, RetryBudgetConfig::default()),
        seed: 1,
    }
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// A bridge and a fake peer's view of it.
struct Rig {
    bridge: TestBridge,
    now: Instant,
}

impl Rig {
    fn new(parts: Parts) -> Self {
        Self { bridge: Bridge::new(parts, Instant::ZERO).unwrap(), now: at(1000) }
    }

    /// Dials and shakes hands.
    fn connect(&mut self) {
        let due = self.bridge.poll_timeout().unwrap_or(self.now).max(self.now);
        self.now = due;
        let generation = self.bridge.poll_dial(self.now).expect("a dial is due");
        self.bridge.opened(self.now, generation, None);
        let sent = self.write(usize::MAX);
        assert!(sent.ends_with(b"\r\n"), "a handshake was sent");
        self.reply(b"+PONG\r\n");
        assert_eq!(self.bridge.link_state(), LinkState::Up);
    }

    /// Lets the kernel take at most `room` bytes; returns them.
    fn write(&mut self, room: usize) -> Vec<u8> {
        let mut sent = Vec::new();
        while sent.len() < room
            && let Some(batch) = self.bridge.take_write(self.now, self.bridge.generation())
        {
            let bytes: Vec<u8> = batch.slices().flatten().copied().collect();
            let count = bytes.len().min(room - sent.len());
            sent.extend_from_slice(&bytes[..count]);
            self.bridge.wrote(self.now, batch, count);
        }
        sent
    }

    fn reply(&mut self, bytes: &[u8]) {
        let mut buffer = BytesMut::from(bytes);
        let mut decoder = Decoder::default();
        let mut frames = Vec::new();
        while let Some(frame) = decoder.decode(&mut buffer).unwrap() {
            frames.push(frame);
        }
        let generation = self.bridge.generation();
        self.bridge.deliver(self.now, generation, &mut frames);
    }

    fn lose(&mut self) {
        let generation = self.bridge.generation();
        self.bridge.lost(self.now, generation, LostCause::Reset);
    }

    fn submit_as(&mut self, args: &[&str], effect: SideEffect, flags: Flags) -> Result<Ticket, Error> {
        let order = Order {
            effect,
            replies: 1,
            deadline: self.now + Duration::from_secs(5),
            flags,
            bytes: crate::command::encoded_len(args),
            room: None,
        };
        self.bridge
            .submit(self.now, &order, |out| out.command(args))
            .map(|submitted| submitted.ticket.expect("a watched command has a ticket"))
    }

    fn get(&mut self, key: &str) -> Ticket {
        self.submit_as(&["GET", key], SideEffect::ReadOnly, Flags::NONE).unwrap()
    }

    fn order_by(&mut self, args: &[&str], deadline: Instant) -> Ticket {
        let bytes = crate::command::encoded_len(args);
        let (effect, flags) = (SideEffect::NonIdempotent, Flags::NONE);
        let order = Order { effect, replies: 1, deadline, flags, bytes, room: None };
        self.bridge.submit(self.now, &order, |out| out.command(args)).unwrap().ticket.unwrap()
    }

    fn incr(&mut self, key: &str) -> Ticket {
        self.submit_as(&["INCR", key], SideEffect::NonIdempotent, Flags::NONE).unwrap()
    }

    fn outcome(&mut self, ticket: Ticket) -> Option<Result<Reply, Error>> {
        self.bridge.poll_outcome(ticket, |_| 0)
    }

    fn sent_of(&mut self, ticket: Ticket) -> Sent {
        self.outcome(ticket).expect("it has ended").unwrap_err().sent()
    }
}

fn integer(n: i64) -> Option<Result<Reply, Error>> {
    Some(Ok(Reply::One(Frame::Integer(n))))
}

#[test]
fn a_connection_that_ends_in_its_handshake_says_so() {
    let mut rig = Rig::new(parts());
    let generation = rig.bridge.poll_dial(rig.now).expect("a dial is due");
    rig.bridge.opened(rig.now, generation, None);
    rig.lose();
    let Some(Event::HandshakeFailed { error, .. }) = rig.bridge.poll_event() else { panic!("no event") };
    assert_eq!(error, HandshakeError::Lost { step: Step::Tracer, cause: LostCause::Reset });
    assert!(error.is_retryable());
    assert_eq!(
        error.to_string(),
        "the connection was lost before the reply to the tracer: the peer reset it"
    );
}

#[test]
fn commands_submitted_before_the_first_connection_are_sent_in_order_once_it_is_up() {
    let mut rig = Rig::new(parts());
    let (first, second) = (rig.incr("a"), rig.incr("b"));
    assert!(rig.write(usize::MAX).is_empty(), "nothing leaves without a connection");
    rig.connect();
    assert_eq!(rig.write(usize::MAX), b"*2\r\n$4\r\nINCR\r\n$1\r\na\r\n*2\r\n$4\r\nINCR\r\n$1\r\nb\r\n");
    rig.reply(b":1\r\n:2\r\n");
    assert_eq!(rig.outcome(first), integer(1));
    assert_eq!(rig.outcome(second), integer(2));
    assert_eq!(rig.bridge.snapshot(rig.now).log_bytes, 0);
    assert_eq!(rig.bridge.snapshot(rig.now).slots, 0);
}

#[test]
fn at_every_byte_the_fate_of_a_command_is_what_the_kernel_took() {
    let command = b"*2\r\n$4\r\nINCR\r\n$1\r\na\r\n";
    for room in 0..=2 * command.len() {
        let mut rig = Rig::new(parts());
        rig.connect();
        let tickets = [rig.incr("a"), rig.incr("a")];
        assert_eq!(rig.write(room).len(), room);
        rig.lose();
        rig.connect();
        let sent = room / command.len();
        let again = rig.write(usize::MAX);
        assert_eq!(again, command.repeat(2 - sent), "cut after {room} bytes");
        rig.reply(&b":7\r\n".repeat(2 - sent));
        for (index, ticket) in tickets.into_iter().enumerate() {
            if index < sent {
                assert_eq!(rig.sent_of(ticket), Sent::Maybe, "cut after {room} bytes");
            } else {
                assert_eq!(rig.outcome(ticket), integer(7), "cut after {room} bytes");
            }
        }
    }
}

#[test]
fn a_read_is_repeated_in_its_old_place_and_an_increment_is_not() {
    let mut rig = Rig::new(parts());
    rig.connect();
    let (first, lost, second) = (rig.get("a"), rig.incr("n"), rig.get("b"));
    rig.write(usize::MAX);
    let third = rig.get("c");
    rig.lose();
    assert_eq!(rig.sent_of(lost), Sent::Maybe);
    rig.connect();
    let again = String::from_utf8(rig.write(usize::MAX)).unwrap();
    let keys: Vec<&str> = again.split("\r\n").filter(|word| word.len() == 1).collect();
    assert_eq!(keys, ["a", "b", "c"]);
    rig.reply(b":1\r\n:2\r\n:3\r\n");
    for (ticket, n) in [(first, 1), (second, 2), (third, 3)] {
        assert_eq!(rig.outcome(ticket), integer(n));
    }
}

#[test]
fn a_writer_that_comes_back_after_the_loss_still_decides_what_was_sent() {
    let mut rig = Rig::new(parts());
    rig.connect();
    let (first, second) = (rig.incr("a"), rig.incr("b"));
    let batch = rig.bridge.take_write(rig.now, rig.bridge.generation()).unwrap();
    rig.lose();
    assert!(rig.outcome(first).is_none(), "nobody knows yet what the kernel took");
    let half = batch.len() / 2;
    rig.bridge.wrote(rig.now, batch, half);
    assert_eq!(rig.sent_of(first), Sent::Maybe);
    assert!(rig.outcome(second).is_none(), "it waits for the next connection");
    rig.connect();
    assert_eq!(rig.write(usize::MAX).len(), half);
}

#[test]
fn a_deadline_ends_queued_work_before_it_is_sent_and_work_in_flight_as_unknown() {
    let mut rig = Rig::new(parts());
    let queued = rig.incr("a");
    rig.now = at(6000);
    rig.bridge.handle_timeout(rig.now);
    let error = rig.outcome(queued).unwrap().unwrap_err();
    assert_eq!((error.kind(), error.sent()), (&ErrorKind::Deadline, Sent::No));
    rig.connect();
    assert!(rig.write(usize::MAX).is_empty(), "dead work is not sent");
    let sent = rig.incr("b");
    rig.write(usize::MAX);
    rig.now = rig.now + Duration::from_secs(5);
    rig.bridge.handle_timeout(rig.now);
    assert_eq!(rig.sent_of(sent), Sent::Maybe);
}

#[test]
fn the_reply_to_an_expired_command_goes_to_nobody() {
    let mut rig = Rig::new(parts());
    rig.connect();
    let late = rig
        .bridge
        .submit(
            rig.now,
            &Order {
                effect: SideEffect::ReadOnly,
                replies: 1,
                deadline: rig.now + Duration::from_millis(50),
                flags: Flags::NONE,
                bytes: 0,
                room: None,
            },
            |out| out.command(&["GET", "late"]),
        )
        .unwrap()
        .ticket
        .unwrap();
    rig.write(usize::MAX);
    rig.now = rig.now + Duration::from_millis(60);
    rig.bridge.handle_timeout(rig.now);
    assert_eq!(rig.sent_of(late), Sent::Maybe);
    let next = rig.get("next");
    rig.write(usize::MAX);
    rig.reply(b":1\r\n:2\r\n");
    assert_eq!(rig.outcome(next), integer(2));
}

#[test]
fn an_abandoned_command_is_withdrawn_or_its_reply_is_dropped() {
    let mut rig = Rig::new(parts());
    let withdrawn = rig.incr("withdrawn");
    let kept = rig.get("kept");
    rig.bridge.abandon(withdrawn);
    rig.connect();
    let orphan = rig.get("orphan");
    let sent = String::from_utf8(rig.write(usize::MAX)).unwrap();
    assert!(!sent.contains("withdrawn") && sent.contains("kept") && sent.contains("orphan"));
    rig.bridge.abandon(orphan);
    let last = rig.get("last");
    rig.write(usize::MAX);
    rig.reply(b":1\r\n:2\r\n:3\r\n");
    assert_eq!(rig.outcome(kept), integer(1));
    assert_eq!(rig.outcome(last), integer(3));
    assert_eq!(rig.bridge.snapshot(rig.now).slots, 0);
}

#[test]
fn a_reply_that_nobody_asked_for_ends_the_connection() {
    let mut rig = Rig::new(parts());
    rig.connect();
    rig.reply(b"+OK\r\n");
    assert_ne!(rig.bridge.link_state(), LinkState::Up);
    rig.connect();
    let unsent = rig.incr("a");
    rig.reply(b":1\r\n");
    assert!(rig.outcome(unsent).is_none(), "a reply cannot precede its command");
    assert_ne!(rig.bridge.link_state(), LinkState::Up);
}

#[test]
fn fail_fast_fails_new_and_waiting_work_unless_the_move_is_planned() {
    let mut rig = Rig::new(Parts { policy: Box::new(Policy::FailFast), ..parts() });
    let refused = rig.submit_as(&["GET", "a"], SideEffect::ReadOnly, Flags::NONE).unwrap_err();
    assert_eq!((refused.kind(), refused.sent()), (&ErrorKind::Unavailable, Sent::No));
    assert!(refused.to_string().contains("(down for 1.00 s: "), "{refused}");
    rig.connect();
    let waiting = rig.get("a");
    rig.lose();
    assert_eq!(rig.sent_of(waiting), Sent::No);
    rig.connect();
    let held = rig.get("b");
    let generation = rig.bridge.generation();
    rig.bridge.lost(rig.now, generation, LostCause::Planned);
    assert!(rig.outcome(held).is_none());
}

#[test]
fn a_refused_command_is_sent_again_after_a_wait_and_holds_nobody() {
    let mut rig = Rig::new(parts());
    rig.connect();
    let (refused, other) = (rig.incr("a"), rig.get("b"));
    rig.write(usize::MAX);
    rig.reply(b"-LOADING Redis is loading the dataset in memory\r\n:2\r\n");
    assert!(rig.outcome(refused).is_none());
    assert_eq!(rig.outcome(other), integer(2));
    assert!(rig.write(usize::MAX).is_empty());
    rig.now = rig.now + Duration::from_millis(20);
    rig.bridge.handle_timeout(rig.now);
    assert_eq!(rig.write(usize::MAX), b"*2\r\n$4\r\nINCR\r\n$1\r\na\r\n");
    rig.reply(b":1\r\n");
    assert_eq!(rig.outcome(refused), integer(1));
}

#[test]
fn a_full_backlog_is_refused_and_its_line_is_served_in_order() {
    let mut with = parts();
    with.config.backlog_bytes_max = 60;
    let mut rig = Rig::new(with);
    let (first, _second) = (rig.incr("a"), rig.incr("b"));
    let full = rig.submit_as(&["INCR", "c"], SideEffect::NonIdempotent, Flags::NONE).unwrap_err();
    assert_eq!(full.kind(), &ErrorKind::BacklogFull { bytes_max: 60 });
    let places = [rig.bridge.wait_for_room(25, 1), rig.bridge.wait_for_room(25, 2)];
    assert!(!rig.bridge.poll_room(places[0], || 1));
    rig.bridge.abandon(first);
    let mut wakes = Vec::new();
    rig.bridge.take_wakes(&mut wakes);
    assert_eq!(wakes, [1], "there is room for one");
    assert!(rig.bridge.poll_room(places[0], || 1) && !rig.bridge.poll_room(places[1], || 2));
    rig.bridge.leave_room(places[0]);
    rig.bridge.take_wakes(&mut wakes);
    assert_eq!(wakes, [1, 2], "a place that is given up goes to the next");
}

#[test]
fn a_hundred_thousand_queued_commands_cost_at_most_64_bytes_each() {
    let mut rig = Rig::new(parts());
    for _ in 0..100_000 {
        rig.get("k");
    }
    let queue = rig.bridge.queue.capacity() * size_of::<u32>();
    let slots = rig.bridge.slots.len().next_multiple_of(256)
        * crate::slab::bytes_per_slot::<Slot<std::task::Waker>>();
    let per_command = (queue + slots) as f64 / 100_000.0;
    assert!(per_command <= 64.0, "{per_command}");
}

#[test]
fn a_backlog_is_flushed_in_growing_windows() {
    let mut rig = Rig::new(parts());
    let big = "x".repeat(1000);
    let tickets: Vec<_> = (0..1000).map(|_| rig.get(&big)).collect();
    rig.connect();
    let first = rig.write(usize::MAX).len();
    assert!((64 * 1024..70 * 1024).contains(&first), "{first}");
    let answered = first / crate::command::encoded_len(&["GET", big.as_str()]);
    rig.reply(&b":1\r\n".repeat(answered));
    let second = rig.write(usize::MAX).len();
    assert!(second > first + first / 2, "{second}");
    let mut left = 1000 - answered;
    while left > 0 {
        let in_flight = rig.bridge.conn.in_flight.len();
        rig.reply(&b":1\r\n".repeat(in_flight));
        left -= in_flight;
        rig.write(usize::MAX);
    }
    assert!(tickets.into_iter().all(|ticket| rig.outcome(ticket) == integer(1)));
}

#[test]
fn withdrawn_work_of_a_long_outage_is_given_back() {
    let mut rig = Rig::new(parts());
    let big = "x".repeat(1000);
    for round in 0..20 {
        let tickets: Vec<_> = (0..1000).map(|_| rig.get(&big)).collect();
        let kept = rig.get("kept");
        tickets.into_iter().for_each(|ticket| rig.bridge.abandon(ticket));
        assert!(rig.outcome(kept).is_none());
        let snapshot = rig.bridge.snapshot(rig.now);
        assert!(snapshot.log_bytes < 4 << 20, "round {round}: {}", snapshot.log_bytes);
        assert!(snapshot.slots < 4096, "round {round}: {}", snapshot.slots);
    }
    rig.connect();
    let sent = String::from_utf8(rig.write(usize::MAX)).unwrap();
    assert_eq!(sent.matches("kept").count(), 20);
    assert!(!sent.contains(&big));
}

#[test]
fn a_wrong_password_fails_what_waits_with_the_reason() {
    let mut rig = Rig::new(parts());
    let waiting = rig.get("a");
    let generation = rig.bridge.poll_dial(rig.now).unwrap();
    rig.bridge.opened(rig.now, generation, None);
    rig.write(usize::MAX);
    rig.reply(b"-WRONGPASS invalid username-password pair or user is disabled.\r\n");
    let outcome = rig.outcome(waiting);
    assert!(
        matches!(
            outcome.as_ref().map(|outcome| outcome.as_ref().map_err(Error::kind)),
            Some(Err(ErrorKind::Handshake(_)))
        ),
        "{outcome:?}"
    );
}

#[test]
fn a_transaction_is_one_unit_with_all_its_replies() {
    let mut rig = Rig::new(parts());
    rig.connect();
    let order = Order {
        effect: SideEffect::NonIdempotent,
        replies: 3,
        deadline: rig.now + Duration::from_secs(5),
        flags: Flags::TRANSACTION,
        bytes: 0,
        room: None,
    };
    let submit = |rig: &mut Rig| {
        let now = rig.now;
        let submitted = rig.bridge.submit(now, &order, |out| {
            out.command(&["MULTI"]);
            out.command(&["INCR", "a"]);
            out.command(&["EXEC"]);
        });
        submitted.unwrap().ticket.unwrap()
    };
    let whole = submit(&mut rig);
    let bytes = rig.write(usize::MAX).len();
    rig.reply(b"+OK\r\n+QUEUED\r\n*1\r\n:1\r\n");
    let Some(Ok(Reply::Many(frames))) = rig.outcome(whole) else { panic!("no replies") };
    assert_eq!(frames.len(), 3);
    let cut = submit(&mut rig);
    assert_eq!(rig.write(bytes - 1).len(), bytes - 1);
    rig.reply(b"+OK\r\n");
    rig.lose();
    rig.connect();
    assert_eq!(
        rig.write(usize::MAX).len(),
        bytes,
        "without the last byte of EXEC nothing ran: it is sent again"
    );
    rig.reply(b"+OK\r\n+QUEUED\r\n*1\r\n:2\r\n");
    assert!(matches!(rig.outcome(cut), Some(Ok(Reply::Many(frames))) if frames.len() == 3));
}

#[test]
fn new_credentials_wait_for_an_empty_connection_and_go_first() {
    let mut rig = Rig::new(parts());
    rig.connect();
    let before = rig.get("before");
    rig.write(usize::MAX);
    rig.bridge.reauthenticate(crate::Credentials::password("fresh"));
    let after = rig.get("after");
    assert!(rig.write(usize::MAX).is_empty(), "something is in flight");
    rig.reply(b":1\r\n");
    let sent = String::from_utf8(rig.write(usize::MAX)).unwrap();
    assert!(sent.starts_with("*2\r\n$4\r\nAUTH\r\n$5\r\nfresh\r\n") && sent.ends_with("after\r\n"), "{sent}");
    let token = sent.split("\r\n").skip_while(|word| *word != "PING").nth(2).unwrap_or_default();
    rig.reply(format!("+OK\r\n${}\r\n{token}\r\n:2\r\n", token.len()).as_bytes());
    assert_eq!(rig.outcome(before), integer(1));
    assert_eq!(rig.outcome(after), integer(2));
    assert_eq!(rig.bridge.link_state(), LinkState::Up);
}

#[test]
fn a_wanted_silence_does_not_end_the_connection() {
    let mut rig = Rig::new(parts());
    rig.connect();
    let patient = LivenessConfig { silence_max: Duration::MAX, ..LivenessConfig::default() };
    rig.bridge.set_liveness(patient);
    let ticket = rig.submit_as(&["BLPOP", "k", "0"], SideEffect::NonIdempotent, Flags::NONE).unwrap();
    rig.write(usize::MAX);
    let kind = |error: Error| (error.kind().clone(), error.sent());
    let behind = rig.get("x");
    rig.write(usize::MAX);
    assert!(rig.bridge.is_next(ticket) && !rig.bridge.is_next(behind));
    let explained = rig.bridge.explain(rig.now, ticket, ErrorKind::Deadline);
    assert_eq!(kind(explained), (ErrorKind::Deadline, Sent::Maybe));
    for _ in 0..4 {
        rig.now = rig.now + Duration::from_secs(1);
        rig.bridge.handle_timeout(rig.now);
    }
    assert_eq!(rig.bridge.link_state(), LinkState::Up);

    // The default patience again: what is silent now is dead.
    rig.bridge.set_liveness(LivenessConfig::default());
    for _ in 0..4 {
        rig.now = rig.bridge.poll_timeout().unwrap().max(rig.now);
        rig.bridge.handle_timeout(rig.now);
    }
    assert_ne!(rig.bridge.link_state(), LinkState::Up);
    let outcome = rig.outcome(ticket).expect("it has failed").unwrap_err();
    assert_eq!(kind(outcome), (ErrorKind::Lost(LostCause::Silent), Sent::Maybe));
    let explained = rig.bridge.explain(rig.now, ticket, ErrorKind::Deadline);
    assert_eq!(explained.sent(), Sent::Answered);
}

#[test]
fn closing_a_connected_bridge_finishes_what_it_accepted() {
    let mut rig = Rig::new(parts());
    rig.connect();
    let sent = rig.incr("a");
    rig.write(usize::MAX);
    let queued = rig.incr("b");
    rig.bridge.close(rig.now);
    let refused = rig.submit_as(&["GET", "c"], SideEffect::ReadOnly, Flags::NONE).unwrap_err();
    assert_eq!(refused.kind(), &ErrorKind::Closed);
    assert!(!rig.bridge.is_finished());
    rig.reply(b":1\r\n");
    assert!(rig.write(usize::MAX).ends_with(b"b\r\n"));
    rig.reply(b":2\r\n");
    assert!(rig.bridge.is_finished());
    assert_eq!((rig.outcome(sent), rig.outcome(queued)), (integer(1), integer(2)));
}

#[test]
fn closing_a_bridge_without_a_connection_fails_what_waits() {
    let mut rig = Rig::new(parts());
    let queued = rig.incr("a");
    rig.bridge.close(rig.now);
    assert!(rig.bridge.is_finished());
    assert_eq!(rig.sent_of(queued), Sent::No);
}

#[test]
fn fresh_commands_may_overtake_a_backlog_that_flows_in_between() {
    let mut with = parts();
    with.config.flush_order = crate::FlushOrder::FreshFirst;
    with.config.pace_bytes_initial = 90;
    let mut rig = Rig::new(with);
    let old: Vec<_> = (0..9).map(|n| rig.get(&format!("old{n}"))).collect();
    rig.bridge.abandon(old[1]);
    rig.connect();
    let fresh = rig.get("fresh");
    let keys = |sent: Vec<u8>| -> Vec<String> {
        let text = String::from_utf8(sent).unwrap();
        text.split("\r\n")
            .filter(|word| word.starts_with("old") || *word == "fresh")
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(keys(rig.write(usize::MAX)), ["fresh", "old0", "old2", "old3", "old4"]);
    assert!(!rig.bridge.wants_write(rig.bridge.generation()), "the window is full and nothing is fresh");
    let second = rig.get("fresh");
    assert_eq!(keys(rig.write(usize::MAX)), ["fresh"]);
    rig.reply(b":0\r\n:1\r\n:2\r\n:3\r\n:4\r\n");
    assert_eq!(keys(rig.write(usize::MAX)), ["old5", "old6", "old7"]);
    rig.lose();
    rig.connect();
    assert_eq!(
        keys(rig.write(usize::MAX)),
        ["old8", "fresh", "old5", "old6"],
        "what was asked before is repeated"
    );
    rig.reply(b":8\r\n:9\r\n:5\r\n:6\r\n");
    assert_eq!(keys(rig.write(usize::MAX)), ["old7"]);
    rig.reply(b":7\r\n");
    assert_eq!((rig.outcome(fresh), rig.outcome(second)), (integer(0), integer(9)));
    assert_eq!((rig.outcome(old[5]), rig.outcome(old[8])), (integer(5), integer(8)));
    assert_eq!(rig.bridge.snapshot(rig.now).log_bytes, 0);
}

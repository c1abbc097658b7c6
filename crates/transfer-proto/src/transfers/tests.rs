//! Batches against a wire that the test plays.

use std::num::NonZeroU64;
use std::time::Duration;

use super::*;
use crate::identity::{Incarnation, Process};
use proptest::prelude::*;
use towline_sansio::Prng;

const PEER: NodeId = NodeId(7);
const OTHER: NodeId = NodeId(8);
const LINK: LinkId = LinkId(1);
const SECOND: Duration = Duration::from_secs(1);
const START: Instant = Instant::ZERO;
const KIB: u64 = 1024;

fn request(length: u64) -> Request {
    Request {
        opcode: Opcode::Write,
        peer: PEER,
        local: 1 << 20,
        remote: 1 << 40,
        length,
        class: Class::High,
        deadline: Instant::FAR,
        repeat: Repeat::Allowed,
    }
}

fn transfers() -> Transfers {
    Transfers::new(TransferConfig::ENGINE).unwrap()
}

fn first(batch: BatchId) -> TaskId {
    TaskId { batch, index: 0 }
}

fn events(transfers: &mut Transfers) -> Vec<Event> {
    std::iter::from_fn(|| transfers.poll_event()).collect()
}

fn posts(transfers: &mut Transfers, now: Instant) -> Vec<Post> {
    std::iter::from_fn(|| transfers.poll_post(now)).collect()
}

fn finish(transfers: &mut Transfers, posts: &[Post], end: WireEnd) {
    for post in posts {
        assert!(transfers.completed(START, post.slice, end));
    }
}

#[test]
fn a_batch_is_complete_when_its_last_slice_is_applied_and_then_its_notification_goes() {
    let mut transfers = transfers();
    let batch = transfers.submit(START, &[request(200 * KIB), request(1)], Some((PEER, vec![9]))).unwrap();
    assert_eq!(events(&mut transfers), [Event::Want { peer: PEER, class: Class::High }]);
    assert_eq!(transfers.state(first(batch)), Some(TaskState::Waiting));
    transfers.link_up(PEER, LINK);
    let posts = posts(&mut transfers, START);
    // 200 KiB are 64, 64 and 72: a last piece of 8 KiB would cost as much as a whole one.
    let mut lengths: Vec<u64> = posts.iter().map(|post| post.length).collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [1, 64 * KIB, 64 * KIB, 72 * KIB]);
    assert_eq!(transfers.state(first(batch)), Some(TaskState::Active));
    finish(&mut transfers, &posts[..3], WireEnd::Done);
    assert!(!events(&mut transfers).iter().any(|event| matches!(event, Event::Notify { .. })));
    assert!(matches!(transfers.free(batch), Err(FreeError::Busy { open: 1, lent: 0 })));
    finish(&mut transfers, &posts[3..], WireEnd::Done);
    let done = events(&mut transfers);
    assert_eq!(
        done[1..],
        [Event::Notify { peer: PEER, payload: vec![9] }, Event::BatchDone { batch, is_complete: true }]
    );
    assert_eq!(transfers.free(batch), Ok(()));
    assert_eq!(transfers.free(batch), Err(FreeError::Unknown));
    // The place is used again, and the old name means nothing.
    let next = transfers.submit(START, &[request(1)], None).unwrap();
    assert_eq!((next.index, transfers.state(first(batch))), (batch.index, None));
    assert!(!transfers.cancel(START, first(batch)));
}

#[test]
fn a_million_slices_wait_for_a_link_for_an_hour_and_none_is_tried() {
    let free: fn(&mut Guards) = |guards| guards.waiting_is_free = false;
    for is_sound in [true, false] {
        let mut guards = Guards::ALL;
        if !is_sound {
            free(&mut guards);
        }
        let mut transfers = transfers().with_guards(guards);
        let batch = transfers.submit(START, &[request(1_000_000 * 64 * KIB)], None).unwrap();
        // A driver that is woken for no reason, a thousand times.
        for second in 0..1_000 {
            assert_eq!(posts(&mut transfers, START + SECOND * second), []);
        }
        let is_waiting = transfers.state(first(batch)) == Some(TaskState::Waiting);
        assert_eq!(is_waiting, is_sound, "without the rule the budget is gone before the first link");
        if is_sound {
            assert_eq!(transfers.next_timeout(START), None, "nothing to wake up for");
            transfers.link_up(PEER, LINK);
            assert_eq!(posts(&mut transfers, START).len(), 256);
            assert_eq!(transfers.load(), (256, 1), "memory is that of one window");
        }
    }
}

#[test]
fn only_attempts_on_the_wire_count() {
    let mut transfers = transfers();
    let batch = transfers.submit(START, &[request(64 * KIB)], None).unwrap();
    for round in 0..50 {
        let link = LinkId(round);
        transfers.link_up(PEER, link);
        let posts = posts(&mut transfers, START);
        assert_eq!(posts.len(), 1);
        transfers.link_down(PEER, link);
        finish(&mut transfers, &posts, WireEnd::Flushed);
    }
    assert_eq!(transfers.state(first(batch)), Some(TaskState::Active), "fifty lost links cost nothing");
    for round in 1..=8 {
        transfers.link_up(PEER, LinkId(round));
        let posts = posts(&mut transfers, START);
        finish(&mut transfers, &posts, WireEnd::Unanswered);
    }
    let ended =
        TaskState::Ended { outcome: Outcome::Failed(Failure::WireAttempts), buffers: Buffers::Drained };
    assert_eq!(transfers.state(first(batch)), Some(ended));
}

#[test]
fn what_must_not_be_repeated_is_unknown_and_not_repeated() {
    for end in [WireEnd::Unanswered, WireEnd::Flushed] {
        let mut transfers = transfers();
        let once = Request { repeat: Repeat::Never, ..request(64 * KIB) };
        let batch = transfers.submit(START, &[once], Some((PEER, vec![1]))).unwrap();
        transfers.link_up(PEER, LINK);
        let sent = posts(&mut transfers, START);
        finish(&mut transfers, &sent, end);
        assert_eq!(posts(&mut transfers, START), []);
        let ended = events(&mut transfers);
        assert!(ended.contains(&Event::BatchDone { batch, is_complete: false }));
        assert!(
            !ended.iter().any(|event| matches!(event, Event::Notify { .. })),
            "a failed batch says nothing"
        );
    }
}

#[test]
fn memory_is_quarantined_until_the_last_slice_is_back() {
    for is_sound in [true, false] {
        let guards = Guards { quarantine: is_sound, ..Guards::ALL };
        let mut transfers = transfers().with_guards(guards);
        let timed = Request { deadline: START + SECOND, ..request(128 * KIB) };
        let batch = transfers.submit(START, &[timed, request(64 * KIB)], None).unwrap();
        transfers.link_up(PEER, LINK);
        let sent = posts(&mut transfers, START);
        assert_eq!(transfers.next_timeout(START), Some(START + SECOND));
        transfers.handle_timeout(START + SECOND);
        assert!(transfers.cancel(START + SECOND, TaskId { batch, index: 1 }));
        let buffers = if is_sound { Buffers::Quarantined } else { Buffers::Drained };
        let ended = events(&mut transfers);
        assert!(ended.contains(&Event::Ended { task: first(batch), outcome: Outcome::TimedOut, buffers }));
        assert_eq!(transfers.free(batch).is_err(), is_sound);
        if !is_sound {
            return;
        }
        // It takes too long: the link is to be given up, and its card gives back what it has.
        let at = transfers.next_timeout(START + SECOND).unwrap();
        assert_eq!(at, START + SECOND * 2);
        transfers.handle_timeout(at);
        assert!(events(&mut transfers).contains(&Event::Flush { peer: PEER }));
        transfers.link_down(PEER, LINK);
        finish(&mut transfers, &sent, WireEnd::Flushed);
        let drained = events(&mut transfers);
        assert_eq!(drained.iter().filter(|event| matches!(event, Event::Drained { .. })).count(), 2);
        assert!(drained.contains(&Event::BatchDone { batch, is_complete: false }));
        assert_eq!(drained.last(), Some(&Event::Unwant { peer: PEER }), "nobody needs the link any more");
        assert_eq!(posts(&mut transfers, at), [], "what has ended is not sent again");
        assert_eq!(transfers.free(batch), Ok(()));
    }
}

#[test]
fn a_deadline_ends_a_wait_and_takes_the_wish_for_a_link_back() {
    let mut transfers = transfers();
    let batch = transfers.submit(START, &[Request { deadline: START + SECOND, ..request(1) }], None).unwrap();
    events(&mut transfers);
    transfers.handle_timeout(START + SECOND);
    let ended = Event::Ended { task: first(batch), outcome: Outcome::TimedOut, buffers: Buffers::Drained };
    let done = Event::BatchDone { batch, is_complete: false };
    assert_eq!(events(&mut transfers), [ended, done, Event::Unwant { peer: PEER }]);
    assert_eq!(transfers.next_timeout(START), None);
}

#[test]
fn a_hundred_thousand_tasks_that_end_while_they_wait_leave_nothing_behind() {
    let mut transfers = transfers();
    let mut batches = Vec::new();
    for round in 0..100_u32 {
        let deadline = START + SECOND * (round + 1);
        let many = vec![Request { deadline, ..request(1) }; 1_000];
        batches.push(transfers.submit(START, &many, None).unwrap());
    }
    // In any order: the last first.
    for batch in batches.iter().rev().take(50) {
        (0..1_000).for_each(|index| assert!(transfers.cancel(START, TaskId { batch: *batch, index })));
    }
    transfers.handle_timeout(START + SECOND * 100);
    assert_eq!(events(&mut transfers).last(), Some(&Event::Unwant { peer: PEER }));
    batches.into_iter().for_each(|batch| transfers.free(batch).unwrap());
    assert_eq!((transfers.load(), transfers.peers.len(), transfers.next_timeout(START)), ((0, 0), 0, None));
    // And a peer with a link keeps nothing but the link.
    transfers.link_up(PEER, LINK);
    let many = vec![request(1); 1_000];
    let batch = transfers.submit(START, &many, None).unwrap();
    (0..1_000).for_each(|index| assert!(transfers.cancel(START, TaskId { batch, index })));
    assert!(transfers.peers[&PEER].queues.iter().all(VecDeque::is_empty));
    assert_eq!(posts(&mut transfers, START), []);
}

#[test]
fn a_refused_range_fails_its_task_and_no_other() {
    let mut transfers = transfers();
    let batch = transfers.submit(START, &[request(64 * KIB), request(64 * KIB)], None).unwrap();
    transfers.link_up(PEER, LINK);
    let posts = posts(&mut transfers, START);
    finish(&mut transfers, &posts[..1], WireEnd::RemoteAccess);
    finish(&mut transfers, &posts[1..], WireEnd::Done);
    let outcomes: Vec<_> = events(&mut transfers)
        .into_iter()
        .filter_map(|event| if let Event::Ended { outcome, .. } = event { Some(outcome) } else { None })
        .collect();
    assert_eq!(outcomes, [Outcome::Failed(Failure::RemoteAccess), Outcome::Completed]);
    assert_eq!(transfers.free(batch), Ok(()));
}

#[test]
fn classes_share_by_weight_and_a_cap_holds() {
    let mut transfers = transfers();
    let of = |class, peer| Request { class, peer, ..request(1 << 40) };
    for peer in [PEER, OTHER] {
        let all = Class::ALL.map(|class| of(class, peer));
        transfers.submit(START, &all, None).unwrap();
        transfers.link_up(peer, LINK);
    }
    let mut sent = [0_u64; 3];
    let mut by_peer = [0_u64; 2];
    for _ in 0..2_100 {
        let post = transfers.poll_post(START).unwrap();
        let class = (0..3)
            .find(|class| post.slice.index < 512 && transfers.class_of(&post) == Some(Class::ALL[*class]));
        sent[class.unwrap()] += 1;
        by_peer[usize::from(post.peer == OTHER)] += 1;
        transfers.completed(START, post.slice, WireEnd::Done);
    }
    assert!(
        (1_595..=1_605).contains(&sent[0]) && (395..=405).contains(&sent[1]) && (95..=105).contains(&sent[2]),
        "{sent:?}"
    );
    assert!(by_peer[0].abs_diff(by_peer[1]) <= 3, "peers take turns: {by_peer:?}");
}

#[test]
fn a_capped_class_sends_its_rate_and_sleeps_between() {
    let mut config = TransferConfig::ENGINE;
    config.classes[2].rate = NonZeroU64::new(64 * KIB * 100);
    let mut transfers = Transfers::new(config).unwrap();
    transfers.submit(START, &[Request { class: Class::Low, ..request(1 << 40) }], None).unwrap();
    transfers.link_up(PEER, LINK);
    let (mut now, mut slices, mut wakeups) = (START, 0, 0);
    while now < START + SECOND {
        for post in posts(&mut transfers, now) {
            slices += 1;
            transfers.completed(now, post.slice, WireEnd::Done);
        }
        now = transfers.next_timeout(now).expect("it says when to go on");
        transfers.handle_timeout(now);
        wakeups += 1;
    }
    assert!((99..=101).contains(&slices), "{slices} slices in a second");
    assert_eq!(wakeups, slices, "each wake-up sends something");
}

#[test]
fn bounds_are_typed_outcomes() {
    let config = TransferConfig { tasks_max: 3, batch_tasks_max: 2, ..TransferConfig::ENGINE };
    let mut transfers = Transfers::new(config).unwrap();
    assert_eq!(transfers.submit(START, &[], None), Err(SubmitError::Size { tasks: 0 }));
    assert_eq!(transfers.submit(START, &[request(1); 3], None), Err(SubmitError::Size { tasks: 3 }));
    assert_eq!(
        transfers.submit(START, &[request(1), request(0)], None),
        Err(SubmitError::Range { index: 1 })
    );
    let beyond = Request { remote: u64::MAX, ..request(2) };
    assert_eq!(transfers.submit(START, &[beyond], None), Err(SubmitError::Range { index: 0 }));
    transfers.submit(START, &[request(1); 2], None).unwrap();
    assert_eq!(transfers.submit(START, &[request(1); 2], None), Err(SubmitError::Full { tasks: 2 }));
    assert!(!transfers.completed(START, SliceId { index: 9, generation: 9 }, WireEnd::Done));
    for config in [
        TransferConfig { slice: 0, ..config },
        TransferConfig { window: 0, ..config },
        TransferConfig { wire_attempts: 0, ..config },
        TransferConfig { classes: [ClassConfig { weight: 0, rate: None }; 3], ..config },
    ] {
        assert!(Transfers::new(config).is_err());
    }
}

proptest! {
    /// Whatever the wire does: each task ends once, every byte of a complete task was applied, and everything is given back.
    #[test]
    fn every_history_ends_drained(seed: u64) {
        let mut prng = Prng::new(seed);
        let mut transfers = Transfers::new(TransferConfig { window: 8, wire_attempts: 3, ..TransferConfig::ENGINE }).unwrap();
        let mut now = START;
        let mut batches = Vec::new();
        let mut wire: Vec<Post> = Vec::new();
        let mut link = 0;
        let mut up = [false; 2];
        let mut ended = BTreeMap::new();
        let mut applied: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        for step in 0..400_u64 {
            now = now + Duration::from_millis(prng.below(50));
            match prng.below(if step < 200 { 8 } else { 5 }) {
                0 | 1 => wire.extend(posts(&mut transfers, now)),
                2 if !wire.is_empty() => {
                    let post = wire.swap_remove(prng.below(wire.len() as u64) as usize);
                    let end = [WireEnd::Done, WireEnd::Done, WireEnd::Unanswered, WireEnd::Flushed, WireEnd::RemoteAccess][prng.below(5) as usize];
                    if end == WireEnd::Done {
                        applied.insert((post.local, post.length), post.remote);
                    }
                    prop_assert!(transfers.completed(now, post.slice, end));
                }
                3 => {
                    let end = prng.below(2) as usize;
                    link += 1;
                    up[end] = true;
                    transfers.link_up([PEER, OTHER][end], LinkId(link));
                }
                4 => transfers.handle_timeout(now),
                5 => {
                    let count = prng.below(4) + 1;
                    let draw = |prng: &mut Prng| Request {
                        opcode: Opcode::Write,
                        peer: [PEER, OTHER][prng.below(2) as usize],
                        local: prng.below(1 << 40),
                        remote: prng.below(1 << 40),
                        length: prng.below(400 * KIB) + 1,
                        class: Class::ALL[prng.below(3) as usize],
                        deadline: if prng.below(3) == 0 { now + Duration::from_millis(prng.below(3_000)) } else { Instant::FAR },
                        repeat: if prng.below(4) == 0 { Repeat::Never } else { Repeat::Allowed },
                    };
                    let requests: Vec<Request> = (0..count).map(|_| draw(&mut prng)).collect();
                    batches.push((transfers.submit(now, &requests, None).unwrap(), requests));
                }
                6 if !batches.is_empty() => {
                    let batch = batches[prng.below(batches.len() as u64) as usize].0;
                    transfers.cancel(now, TaskId { batch, index: 0 });
                }
                _ => {}
            }
        }
        // Calm: links are up, the wire answers.
        for _ in 0..10_000 {
            for (end, peer) in [PEER, OTHER].into_iter().enumerate() {
                if !up[end] {
                    link += 1;
                    up[end] = true;
                    transfers.link_up(peer, LinkId(link));
                }
            }
            wire.extend(posts(&mut transfers, now));
            let Some(post) = wire.pop() else { break };
            applied.insert((post.local, post.length), post.remote);
            prop_assert!(transfers.completed(now, post.slice, WireEnd::Done));
        }
        for event in events(&mut transfers) {
            if let Event::Ended { task, outcome, .. } = event {
                prop_assert_eq!(ended.insert(task, outcome), None, "a task ends once");
            }
        }
        for (batch, requests) in batches {
            for (index, request) in (0..).zip(&requests) {
                let outcome = ended.get(&TaskId { batch, index }).copied();
                prop_assert!(outcome.is_some());
                if outcome == Some(Outcome::Completed) {
                    let (mut at, end) = (request.local, request.local + request.length);
                    while at < end {
                        let slice = applied.range((at, 0)..(at + 1, 0)).next();
                        let Some(((_, length), remote)) = slice else { panic!("a hole at {at} of {request:?}") };
                        prop_assert_eq!(*remote, request.remote + (at - request.local));
                        at += length;
                    }
                }
            }
            prop_assert_eq!(transfers.free(batch), Ok(()));
        }
        prop_assert_eq!(transfers.load(), (0, 0));
    }
}

fn sender(life: u64) -> Process {
    Process { node: PEER, incarnation: Incarnation(life) }
}

fn push(outbox: &mut Outbox, text: &str) {
    outbox.reserve(text.len()).unwrap();
    outbox.push(text.as_bytes().to_vec());
}

fn taken(inbox: &mut Inbox) -> Vec<String> {
    std::iter::from_fn(|| inbox.take()).map(|(_, payload)| String::from_utf8(payload).unwrap()).collect()
}

#[test]
fn notifications_are_delivered_once_and_in_order_over_links_that_break() {
    for is_sound in [true, false] {
        let mut outbox = Outbox::new(OutboxConfig::default());
        let mut inbox =
            Inbox::new(InboxConfig::default()).with_guards(Guards { dedupe: is_sound, ..Guards::ALL });
        ["a", "b", "c"].iter().for_each(|text| push(&mut outbox, text));
        outbox.link_up(Incarnation(1));
        let (a, b) = (outbox.poll().unwrap(), outbox.poll().unwrap());
        assert_eq!(inbox.received(sender(1), b.clone()), Delivery::OutOfOrder);
        assert_eq!(inbox.received(sender(1), a), Delivery::Taken);
        assert_eq!(inbox.received(sender(1), b), Delivery::Taken);
        outbox.acknowledged(1);
        // The acknowledgement of b is lost with the link.
        outbox.link_up(Incarnation(1));
        let again = outbox.poll().unwrap();
        assert_eq!((again.number, outbox.count()), (2, 2));
        assert_eq!(inbox.received(sender(1), again) == Delivery::Repeated { last: 2 }, is_sound);
        assert_eq!(taken(&mut inbox) == ["a", "b"], is_sound);
        if is_sound {
            assert_eq!(inbox.received(sender(1), outbox.poll().unwrap()), Delivery::Taken);
            outbox.acknowledged(99);
            assert_eq!((outbox.count(), taken(&mut inbox)), (0, vec!["c".to_owned()]));
        }
    }
}

#[test]
fn a_restart_of_either_end_begins_a_new_count() {
    let mut outbox = Outbox::new(OutboxConfig::default());
    let mut inbox = Inbox::new(InboxConfig::default());
    ["a", "b"].iter().for_each(|text| push(&mut outbox, text));
    outbox.link_up(Incarnation(1));
    assert_eq!(inbox.received(sender(1), outbox.poll().unwrap()), Delivery::Taken);
    outbox.acknowledged(1);
    // The receiver restarts and knows nothing: what it has not acknowledged comes as its first.
    let mut reborn = Inbox::new(InboxConfig::default());
    outbox.link_up(Incarnation(2));
    let b = outbox.poll().unwrap();
    assert_eq!(b.number, 1);
    assert_eq!(reborn.received(sender(1), b), Delivery::Taken);
    // The sender restarts: its new life counts from 1, and its old one is not heard any more.
    assert_eq!(inbox.received(sender(2), Notification { number: 1, payload: vec![] }), Delivery::Taken);
    assert_eq!(inbox.received(sender(1), Notification { number: 2, payload: vec![] }), Delivery::OutOfOrder);
}

#[test]
fn both_ends_of_notifications_are_bounded() {
    let mut outbox = Outbox::new(OutboxConfig { count_max: 2, bytes_max: 10 });
    assert_eq!(outbox.reserve(11), Err(OutboxFull { count: 0 }));
    outbox.reserve(5).unwrap();
    outbox.reserve(5).unwrap();
    assert_eq!(outbox.reserve(0), Err(OutboxFull { count: 2 }));
    outbox.release(5);
    outbox.reserve(5).unwrap();
    let config = InboxConfig { count_max: 1, senders_max: 1, ..InboxConfig::default() };
    let mut inbox = Inbox::new(config);
    let one = |number| Notification { number, payload: vec![1] };
    assert_eq!(inbox.received(sender(1), one(1)), Delivery::Taken);
    assert_eq!(inbox.received(sender(1), one(2)), Delivery::Full);
    taken(&mut inbox);
    assert_eq!(inbox.received(sender(1), one(2)), Delivery::Taken);
    taken(&mut inbox);
    let stranger = Process { node: OTHER, incarnation: Incarnation(1) };
    assert_eq!(inbox.received(stranger, one(1)), Delivery::Full);
}

//! Bytes and notifications between two engines.

use std::time::Duration;

use towline_transfer::{
    Access, Buffers, Engine, EngineConfig, Failure, InboxConfig, NotifyError, OutboxConfig, Request, Status,
    SubmitError, TransferConfig, Trust,
};

use crate::pair::{PATIENCE, Pair, config, loopback, pattern, register};

#[test]
fn what_is_written_is_there_when_the_batch_is_complete_and_is_read_back() {
    for (lanes, checksums) in [(1, false), (3, false), (1, true)] {
        let bytes = 3 << 20;
        let pair = Pair::new(bytes, |config| {
            config.lanes = lanes;
            config.checksums = checksums;
        });
        let content = pattern(1, bytes);
        pair.local.memory().write(0, &content).unwrap();
        let length = bytes as u64 - 5;
        let write = pair.segment.submit(&[Request::write(&pair.local, 0, &pair.kv(), 5, length)]).unwrap();
        assert!(write.wait_for(PATIENCE).unwrap().is_complete());
        assert!(pair.served.memory().to_vec(5, bytes - 5).unwrap() == content[..bytes - 5]);
        pair.local.memory().write(0, &vec![0; bytes]).unwrap();
        let requests: Vec<_> = (0..3)
            .map(|part| Request::read(&pair.local, part << 20, &pair.kv(), part << 20, 1 << 20))
            .collect();
        assert!(pair.segment.submit(&requests).unwrap().wait_for(PATIENCE).unwrap().is_complete());
        assert!(pair.local.memory().to_vec(5, bytes - 5).unwrap() == content[..bytes - 5]);
        let metrics = pair.here.metrics();
        assert_eq!((metrics.bytes_out, metrics.bytes_in), (length, bytes as u64));
        assert_eq!((metrics.slices_in_flight, metrics.requests_open), (0, 0));
    }
}

#[test]
fn a_notification_comes_after_its_bytes_once_and_in_order() {
    let pair = Pair::new(1 << 20, |_| {});
    let content = pattern(2, 1 << 20);
    pair.local.memory().write(0, &content).unwrap();
    let batches: Vec<_> = (0..64_u64)
        .map(|number| {
            let at = number * 16_384;
            let request = Request::write(&pair.local, at, &pair.kv(), at, 16_384);
            pair.segment.submit_and_notify(&[request], number.to_be_bytes()).unwrap()
        })
        .collect();
    batches.iter().for_each(|batch| assert!(batch.wait_for(PATIENCE).unwrap().is_complete()));
    pair.segment.notify("done").unwrap();
    for number in 0..64 {
        let notification = pair.there.wait_notification(PATIENCE).unwrap();
        assert_eq!(
            (notification.from, notification.payload),
            (pair.here.me(), u64::to_be_bytes(number).into())
        );
        let at = number as usize * 16_384;
        assert!(pair.served.memory().to_vec(at, 16_384).unwrap() == content[at..at + 16_384]);
    }
    assert_eq!(pair.there.wait_notification(PATIENCE).unwrap().payload, b"done");
    assert_eq!(pair.there.take_notification(), None);
}

#[test]
fn a_receiver_without_room_for_notifications_gets_all_of_them_later() {
    let pair = Pair::new(64, |config| {
        config.inbox = InboxConfig { count_max: 3, ..InboxConfig::default() };
        config.outbox = OutboxConfig { count_max: 8, ..OutboxConfig::default() };
    });
    let mut sent = 0_u64;
    let mut taken = 0;
    let mut was_full = false;
    while taken < 100 {
        match pair.segment.notify(sent.to_be_bytes()) {
            Ok(()) => sent += 1,
            Err(error) => {
                assert!(matches!(error, NotifyError::OutboxFull(_)), "{error}");
                was_full = true;
                if taken == sent {
                    // All are taken; their acknowledgements are on the way.
                    std::thread::yield_now();
                    continue;
                }
                let notification = pair.there.wait_notification(PATIENCE).unwrap();
                assert_eq!(notification.payload, u64::to_be_bytes(taken));
                taken += 1;
            }
        }
    }
    assert!(was_full);
}

#[test]
fn permissions_hold_here_and_there() {
    let pair = Pair::new(4096, |_| {});
    let model = register(&pair.there, "model", 4096, Access::Read);
    register(&pair.there, "secret", 4096, Access::Local);
    let again = pair.here.open(pair.there.name()).wait_for(PATIENCE).unwrap();
    assert!(again.region("secret").is_none());
    let region = again.region("model").unwrap();
    let refused = again.submit(&[Request::write(&pair.local, 0, &region, 0, 16)]).unwrap_err();
    assert_eq!(refused, SubmitError::ReadOnly { index: 0 });
    assert!(again.submit(&[Request::read(&pair.local, 0, &region, 0, 16)]).unwrap().wait().is_complete());
    for (local, remote, length) in [(0, 4090, 7), (4095, 0, 2), (0, u64::MAX, 2), (0, 0, 0)] {
        let refused =
            again.submit(&[Request::read(&pair.local, local, &region, remote, length)]).unwrap_err();
        assert_eq!(refused, SubmitError::Range { index: 0 });
    }
    // What we knew is old: the peer refuses.
    assert!(pair.there.deregister(&model));
    let failed = again.submit(&[Request::read(&pair.local, 0, &region, 0, 16)]).unwrap().wait();
    assert_eq!(failed.statuses, [Status::Failed(Failure::RemoteAccess)]);
    assert_eq!(pair.there.metrics().refusals, 1);
    // And so does our own engine for memory that it does not have any more.
    assert!(pair.here.deregister(&pair.local));
    let failed = again.submit(&[Request::read(&pair.local, 0, &pair.kv(), 0, 16)]).unwrap().wait();
    assert_eq!(failed.statuses, [Status::Failed(Failure::LocalAccess)]);
}

#[test]
fn both_ends_may_be_at_work_on_one_link() {
    let pair = Pair::new(1 << 20, |_| {});
    let back = pair.there.open(pair.here.name());
    let mine = register(&pair.here, "mine", 1 << 20, Access::ReadWrite);
    let back = back.wait_for(PATIENCE).unwrap();
    let back = if back.region("mine").is_some() {
        back
    } else {
        pair.there.open(pair.here.name()).wait_for(PATIENCE).unwrap()
    };
    let target = back.region("mine").unwrap();
    let (one, other) = (pattern(3, 1 << 20), pattern(4, 1 << 20));
    pair.local.memory().write(0, &one).unwrap();
    pair.served.memory().write(0, &other).unwrap();
    let scratch = register(&pair.there, "out", 1 << 20, Access::Local);
    scratch.memory().write(0, &other).unwrap();
    let forth = pair.segment.submit(&[Request::write(&pair.local, 0, &pair.kv(), 0, 1 << 20)]).unwrap();
    let reply = back.submit(&[Request::write(&scratch, 0, &target, 0, 1 << 20)]).unwrap();
    assert!(
        forth.wait_for(PATIENCE).unwrap().is_complete() && reply.wait_for(PATIENCE).unwrap().is_complete()
    );
    assert!(pair.served.memory().to_vec(0, 1 << 20).unwrap() == one);
    assert!(mine.memory().to_vec(0, 1 << 20).unwrap() == other);
}

#[test]
fn bounds_are_typed_and_work_that_waits_ends_when_its_owner_says_so() {
    let mut config = config();
    config.transfer = TransferConfig { tasks_max: 4, batch_tasks_max: 3, ..config.transfer };
    let here = Engine::start(config).unwrap();
    let there = Engine::start(crate::pair::config()).unwrap();
    register(&there, "kv", 4096, Access::ReadWrite);
    let local = register(&here, "scratch", 4096, Access::Local);
    let segment = here.open(there.name()).wait_for(PATIENCE).unwrap();
    let kv = segment.region("kv").unwrap();
    let request = || Request::write(&local, 0, &kv, 0, 4096);
    assert_eq!(segment.submit(&[]).unwrap_err(), SubmitError::Size { tasks: 0 });
    let four: Vec<_> = (0..4).map(|_| request()).collect();
    assert_eq!(segment.submit(&four).unwrap_err(), SubmitError::Size { tasks: 4 });
    // Nobody is there any more: what is submitted waits, and costs nothing but its place.
    there.shutdown();
    let waiting = segment.submit(&four[..3]).unwrap();
    assert_eq!(segment.submit(&four[..2]).unwrap_err(), SubmitError::Full { tasks: 3 });
    let timed = segment.submit(&[request().timeout(Duration::from_millis(1))]).unwrap();
    assert_eq!(timed.wait_for(PATIENCE).unwrap().statuses, [Status::TimedOut]);
    assert_eq!(waiting.wait_for(Duration::ZERO), None);
    waiting.cancel();
    assert_eq!(waiting.wait_for(PATIENCE).unwrap().statuses, [Status::Canceled; 3]);
    assert_eq!(waiting.buffers(0), Some(Buffers::Drained));
    assert_eq!((waiting.status(3), waiting.buffers(3)), (None, None));
}

#[test]
fn an_engine_that_listens_nowhere_is_served_and_serves() {
    let config = EngineConfig::new(Trust::Insecure).name("quiet");
    let here = Engine::start(config).unwrap();
    let there = Engine::start(EngineConfig::new(Trust::Insecure).listen(loopback()).name("loud")).unwrap();
    let served = register(&here, "mine", 4096, Access::Read);
    served.memory().write(0, &pattern(5, 4096)).unwrap();
    here.add_peer("loud", there.address().unwrap()).unwrap();
    let _segment = here.open("loud").wait_for(PATIENCE).unwrap();
    there.add_peer("quiet", loopback()).unwrap();
    let back = there.open("quiet").wait_for(PATIENCE).unwrap();
    let local = register(&there, "scratch", 4096, Access::Local);
    let mine = back.region("mine").unwrap();
    assert!(back.submit(&[Request::read(&local, 0, &mine, 0, 4096)]).unwrap().wait().is_complete());
    assert!(local.memory().to_vec(0, 4096).unwrap() == pattern(5, 4096));
}

//! Engines that come and go.

use std::time::{Duration, Instant};

use towline_transfer::{
    Access, Engine, EngineConfig, OpenError, Request, StartError, Status, SubmitError, Trust,
};

use crate::pair::{KEY, PATIENCE, Pair, config, loopback, register};

#[test]
fn work_waits_for_a_peer_that_comes_later_and_a_restart_is_told_apart() {
    let pair = Pair::new(1 << 20, |_| {});
    let address = pair.there.address().unwrap();
    let request = || Request::write(&pair.local, 0, &pair.kv(), 0, 1 << 20);
    assert!(pair.segment.submit(&[request()]).unwrap().wait_for(PATIENCE).unwrap().is_complete());
    pair.there.shutdown();
    let waiting = pair.segment.submit(&[request()]).unwrap();
    assert_eq!(waiting.wait_for(Duration::ZERO), None);
    let again = Engine::start(EngineConfig::new(Trust::key(KEY)).listen(address)).unwrap();
    assert_eq!(again.me().node, pair.there.me().node);
    let served = register(&again, "kv", 1 << 20, Access::ReadWrite);
    // It is the same node and another life: its memory is another one.
    assert_eq!(waiting.wait_for(PATIENCE).unwrap().statuses, [Status::PeerRestarted]);
    assert_eq!(pair.segment.submit(&[request()]).unwrap_err(), SubmitError::PeerRestarted);
    assert_eq!(served.memory().to_vec(0, 1 << 20).unwrap(), vec![0; 1 << 20]);
    let segment = pair.here.open(again.name()).wait_for(PATIENCE).unwrap();
    pair.local.memory().write(0, &[9; 64]).unwrap();
    let kv = segment.region("kv").unwrap();
    let batch = segment.submit(&[Request::write(&pair.local, 0, &kv, 0, 64)]).unwrap();
    assert!(batch.wait_for(PATIENCE).unwrap().is_complete());
    assert_eq!(served.memory().to_vec(0, 64).unwrap(), [9; 64]);
}

#[test]
fn an_engine_in_the_middle_of_work_shuts_down_within_a_second() {
    let pair = Pair::new(64 << 20, |_| {});
    let requests: Vec<_> = (0..64)
        .map(|part| Request::write(&pair.local, part << 20, &pair.kv(), part << 20, 1 << 20))
        .collect();
    let batches: Vec<_> = (0..64).map(|_| pair.segment.submit(&requests).unwrap()).collect();
    let opening = pair.here.open("127.0.0.1:1");
    let began = Instant::now();
    pair.here.shutdown();
    let took = began.elapsed();
    for batch in &batches {
        // Whatever it is, it is over, and nothing touches the memory any more.
        let result = batch.wait_for(Duration::ZERO).expect("every batch is done");
        assert!(result.statuses.iter().all(|status| matches!(status, Status::Completed | Status::Canceled)));
    }
    assert_eq!(opening.wait_for(PATIENCE).unwrap_err(), OpenError::ShutDown);
    assert_eq!(pair.segment.submit(&requests).unwrap_err(), SubmitError::ShutDown);
    // The grace is half a second; the bound is generous, for this machine may be busy.
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[test]
fn a_link_ends_with_its_last_segment_and_comes_back_when_it_is_needed() {
    let pair = Pair::new(4096, |_| {});
    let Pair { here, there, segment, .. } = pair;
    assert_eq!(here.metrics().links.ready, 1);
    drop(segment);
    let began = Instant::now();
    while here.metrics().links.ready + there.metrics().links.ready > 0 {
        assert!(began.elapsed() < PATIENCE);
        std::thread::yield_now();
    }
    let again = here.open(there.name()).wait_for(PATIENCE).unwrap();
    assert!(again.region("kv").is_some());
}

#[test]
fn configurations_that_cannot_be_are_refused() {
    let problem = |config: EngineConfig| Engine::start(config).map(drop).unwrap_err();
    let short = EngineConfig::new(Trust::key("short")).listen(loopback());
    assert!(matches!(problem(short), StartError::Config { .. }));
    let nameless = EngineConfig::new(Trust::key(KEY));
    assert!(matches!(problem(nameless), StartError::Nameless));
    let mut threads = config();
    threads.io_threads = 0;
    assert!(matches!(problem(threads), StartError::Config { .. }));
    let mut slice = config();
    slice.transfer.slice = 0;
    assert!(matches!(problem(slice), StartError::Transfer(_)));
    let mut window = config();
    window.transfer.window = 100_000;
    assert!(matches!(problem(window), StartError::Config { .. }));
    let engine = Engine::start(config()).unwrap();
    assert_eq!(engine.open(engine.name()).wait_for(PATIENCE).unwrap_err(), OpenError::Own);
    let unknown = engine.open("nobody").wait_for(PATIENCE).unwrap_err();
    assert_eq!(unknown, OpenError::Unknown { name: "nobody".to_owned() });
    let engine = Engine::start(config()).unwrap();
    let nobody = engine.open("127.0.0.1:1").wait_for(Duration::from_millis(50)).unwrap_err();
    assert!(matches!(nobody, OpenError::TimedOut { .. }));
}

/// The last segment goes while somebody opens another one: whichever comes first, there is a link for who asked.
#[test]
fn who_opens_a_segment_while_the_last_one_goes_gets_it() {
    let pair = Pair::new(4096, |_| {});
    let Pair { here, there, segment, .. } = pair;
    let mut last = segment;
    for round in 0..2000 {
        // The link is told to end, and every few rounds it has the time to begin with that.
        drop(last);
        (0..round % 64).for_each(|_| std::thread::yield_now());
        last = here.open(there.name()).wait_for(PATIENCE).unwrap();
    }
    assert!(last.region("kv").is_some());
}

//! Peers that are none.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use towline_transfer::{Engine, EngineConfig, Metrics, OpenError, Request, Trust};
use towline_transfer_proto::wire::{self, Message};

use crate::pair::{PATIENCE, Pair, config, loopback};

/// Waits until an engine has counted it.
fn until(engine: &Engine, is_so: impl Fn(&Metrics) -> bool) {
    let began = Instant::now();
    while !is_so(&engine.metrics()) {
        assert!(began.elapsed() < PATIENCE, "{:?}", engine.metrics());
        std::thread::yield_now();
    }
}

/// Sends bytes and waits until the engine has hung up.
fn say(engine: &Engine, bytes: &[u8]) {
    let mut socket = TcpStream::connect(engine.address().unwrap()).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    // It may hang up while we are talking.
    let _ = socket.write_all(bytes);
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer);
    assert!(answer.is_empty(), "an answer to a stranger");
}

#[test]
fn who_has_another_key_or_none_is_not_linked() {
    let there = Engine::start(config()).unwrap();
    for trust in [Trust::key("another secret of the same kind"), Trust::Insecure] {
        let here = Engine::start(EngineConfig::new(trust).listen(loopback())).unwrap();
        let opened = here.open(there.name()).wait_for(Duration::from_millis(300));
        assert!(matches!(opened.unwrap_err(), OpenError::TimedOut { .. }));
        until(&there, |metrics| metrics.foreign > 0);
        assert_eq!((there.metrics().links.ready, here.metrics().links.ready), (0, 0));
    }
    assert_eq!(there.metrics().handshakes.asked, 0);
}

#[test]
fn garbage_giant_lengths_and_forged_frames_get_no_answer() {
    let pair = Pair::new(4096, |_| {});
    let giant = [b"TWLX\x01\x01\0\0".as_slice(), &[0xff; 4]].concat();
    let mut unsigned = Vec::new();
    wire::encode(&Message::Bye { from: pair.here.me() }, &mut unsigned);
    let join = [b"TWLJ".as_slice(), &[0; 50]].concat();
    let cases = [b"GET / HTTP/1.1\r\n\r\n".as_slice(), &[0; 4096], &giant, &unsigned, &join];
    for bytes in cases {
        say(&pair.there, bytes);
    }
    until(&pair.there, |metrics| metrics.foreign == cases.len() as u64);
    // Nobody who behaves has noticed.
    let request = Request::write(&pair.local, 0, &pair.kv(), 0, 4096);
    assert!(pair.segment.submit(&[request]).unwrap().wait_for(PATIENCE).unwrap().is_complete());
    assert_eq!(pair.there.metrics().links.ready, 1);
}

#[test]
fn who_says_nothing_or_dawdles_is_shown_out() {
    let pair = Pair::new(4096, |config| config.connect.headers.timeout = Duration::from_millis(50));
    let silent: Vec<_> = (0..8).map(|_| TcpStream::connect(pair.there.address().unwrap()).unwrap()).collect();
    let mut slow = TcpStream::connect(pair.there.address().unwrap()).unwrap();
    slow.write_all(b"TWLX\x01").unwrap();
    for mut socket in silent.into_iter().chain([slow]) {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        assert!(matches!(socket.read(&mut [0]), Ok(0) | Err(_)));
    }
    until(&pair.there, |metrics| metrics.handshakes.silent >= 9);
    let request = Request::write(&pair.local, 0, &pair.kv(), 0, 4096);
    assert!(pair.segment.submit(&[request]).unwrap().wait_for(PATIENCE).unwrap().is_complete());
}

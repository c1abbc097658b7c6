//! The client when connections break, stall or lie: pains of other clients, each reproduced.
//!
//! `SE` and `Rust` numbers are those of docs/client-pains.md.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use e2e::clients::{Lateness, open, options};
use e2e::fault_proxy::FaultProxy;
use e2e::odd_peer::{self, OddPeer, bulk, greeting};
use e2e::process::{Server, ServerKind};
use e2e::wait;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use towline_client::transport::{Dialing, Target, Transport};
use towline_client::{
    BackoffConfig, Client, ConnectOptions, ErrorKind, LivenessConfig, LostCause, Pipeline, Sent, cmd,
};
use towline_faults::link::Close;
use towline_sansio::Prng;

/// The servers whose behaviour matters to the client.
const SERVERS: [ServerKind; 3] = [ServerKind::Redis70, ServerKind::Valkey91, ServerKind::Towline];

/// A connection that was lost right after it came up raises the wait for the next one, so that a server is not dialled all
/// the time. Here each cut stands for itself.
const FORGIVING: BackoffConfig =
    BackoffConfig { stable_after: Duration::from_nanos(1), ..BackoffConfig::CLIENT };

/// Longer than anything here takes: reaching it is a hang.
const HANG: Duration = Duration::from_secs(30);

fn echo(command: &[Vec<u8>], out: &mut Vec<u8>) {
    if !greeting(command, out) {
        bulk(&command[1], out);
    }
}

/// Sends `count` values of `len` bytes at once and wants each back.
async fn echo_at_once(client: &Client, count: usize, len: usize) {
    let mut echoes = JoinSet::new();
    for number in 0..count {
        let client = client.clone();
        echoes.spawn(async move {
            let value = Bytes::from(vec![number as u8; len]);
            let back: Bytes = cmd("ECHO").arg(&value).deadline(HANG).query(&client).await.unwrap();
            assert!(back == value, "{number} got another value");
        });
    }
    let all = async { while echoes.join_next().await.is_some_and(|ended| ended.map_err(|_| ()).is_ok()) {} };
    timeout(HANG, all).await.expect("reading and writing block each other");
    assert!(echoes.is_empty());
}

/// Rust 1, Rust 7 B: a server that reads the next command only when the reply before is written, with small buffers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_requests_with_large_replies_do_not_block_each_other() {
    let peer = OddPeer::start(Some(64 * 1024), echo).unwrap();
    let client = open(peer.address()).await;
    for (count, len) in [(8, 1_000_000), (500, 16 * 1024), (2, 8_000_000)] {
        echo_at_once(&client, count, len).await;
    }
    assert_eq!(peer.accepted(), 1);
}

/// A pipe of 64 KiB to a server that is strictly in order: only the owner of the connection writes to it.
struct Pipe;

impl Transport for Pipe {
    fn connect<'a>(&'a self, _target: &'a Target) -> Dialing<'a> {
        Box::pin(async {
            let (near, far) = tokio::io::duplex(64 * 1024);
            tokio::spawn(async move { odd_peer::serve(far, &echo).await });
            Ok(Box::new(near) as _)
        })
    }
}

/// As above, where the client has no socket of its own and callers cannot write themselves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transport_with_little_room_does_not_block_either() {
    let target = ConnectOptions::new(Target::tcp("nowhere", 1)).transport(Pipe);
    let client = Client::open(target).await.unwrap();
    for (count, len) in [(8, 1_000_000), (500, 16 * 1024)] {
        echo_at_once(&client, count, len).await;
    }
}

/// SE 5, Rust 5: futures dropped at any moment, and deadlines at any moment, leave everybody else's replies alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_and_late_commands_never_shift_replies() {
    for kind in [ServerKind::Redis70, ServerKind::Valkey91] {
        let server = Server::start(kind, &[]).unwrap();
        let rules = ["split@0/1+7+64", "split@s2c:0/3+50"];
        let proxy = FaultProxy::start(server.address(), 5, &rules).await.unwrap();
        let client = open(proxy.address()).await;
        let mut callers = JoinSet::new();
        let (answered, dropped) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        for number in 0..16_u64 {
            let (client, answered, dropped) = (client.clone(), Arc::clone(&answered), Arc::clone(&dropped));
            callers.spawn(async move {
                let mut prng = Prng::new(number);
                for round in 0..200 {
                    let id = format!("{number}-{round}");
                    let mut echo = cmd("ECHO").arg(&id);
                    if prng.below(3) == 0 {
                        echo = echo.deadline(Duration::from_micros(1 + prng.below(2000)));
                    }
                    let patience = Duration::from_micros(prng.below(4000));
                    match timeout(patience, echo.query::<String>(&client)).await {
                        Ok(Ok(back)) => {
                            assert_eq!(back, id);
                            answered.fetch_add(1, Ordering::Relaxed);
                        }
                        Ok(Err(error)) => assert!(error.is_timeout(), "{error}"),
                        Err(_) => drop(dropped.fetch_add(1, Ordering::Relaxed)),
                    }
                }
                let id = format!("last of {number}");
                assert_eq!(cmd("ECHO").arg(&id).query::<String>(&client).await.unwrap(), id);
            });
        }
        while let Some(ended) = callers.join_next().await {
            ended.unwrap();
        }
        let counts = (answered.load(Ordering::Relaxed), dropped.load(Ordering::Relaxed));
        assert!(counts.0 > 0 && counts.1 > 0, "answered and dropped: {counts:?}");
        assert_eq!(proxy.dial_count(), 1, "no connection was given up for it");
    }
}

/// SE 1, Rust 6, Rust 7 D: packets of the connection are dropped while its socket stays open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_connection_is_noticed_within_two_seconds() {
    let server = Server::start(ServerKind::Redis70, &[]).unwrap();
    let proxy = FaultProxy::start(server.address(), 1, &[]).await.unwrap();
    let client = open(proxy.address()).await;
    client.set("key", "value").await.unwrap();
    let lateness = Lateness::measure();
    proxy.hold_present();
    let start = Instant::now();
    let (incremented, read) =
        tokio::join!(cmd("INCR").arg("count").query::<i64>(&client), client.get::<String>("key"));
    let took = start.elapsed();
    let error = incremented.unwrap_err();
    assert_eq!((error.kind(), error.sent()), (&ErrorKind::Lost(LostCause::Silent), Sent::Maybe));
    // What only reads is repeated on the next connection.
    assert_eq!(read.unwrap(), "value");
    assert!(took < lateness.stretch(Duration::from_secs(2)), "{took:?}");
    // Two more asked whether the server lives and whether it holds back writes.
    assert_eq!((proxy.dial_count(), client.metrics().second_opinions), (4, 1));
}

/// SE 1, Rust 6: a connection that nobody uses is asked, so that its next user does not find out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_dead_connection_is_replaced_before_anybody_uses_it() {
    let server = Server::start(ServerKind::Redis70, &[]).unwrap();
    let proxy = FaultProxy::start(server.address(), 1, &[]).await.unwrap();
    let liveness = LivenessConfig {
        idle_ping_after: Some(Duration::from_millis(100)),
        silence_max: Duration::from_millis(300),
        ..LivenessConfig::default()
    };
    let client = Client::open(options(proxy.address()).liveness(liveness)).await.unwrap();
    proxy.hold_present();
    assert!(wait::eventually(|| proxy.dial_count() == 2).await);
    assert_eq!(cmd("INCR").arg("count").query::<i64>(&client).await.unwrap(), 1);
}

/// SE 1, Rust 6: the other side of the two seconds. A server busy for 1.5 s in one command is no dead server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_busy_for_a_second_and_a_half_is_not_given_up() {
    for kind in [ServerKind::Redis70, ServerKind::Valkey91] {
        let server = Server::start(kind, &[]).unwrap();
        let proxy = FaultProxy::start(server.address(), 1, &[]).await.unwrap();
        let client = open(proxy.address()).await;
        let start = Instant::now();
        let sleep = cmd("DEBUG").arg(("SLEEP", "1.5")).query::<()>(&client);
        let (slept, incremented) = tokio::join!(sleep, cmd("INCR").arg("count").query::<i64>(&client));
        slept.unwrap();
        assert_eq!(incremented.unwrap(), 1);
        assert!(start.elapsed() >= Duration::from_millis(1500));
        assert_eq!(proxy.dial_count(), 1);
    }
}

/// A planned failover makes writers wait for seconds. Their connection is as silent as a dead one, but the server answers others.
#[tokio::test]
async fn writes_that_the_server_holds_back_are_waited_for() {
    for kind in ServerKind::ALL {
        let server = Server::start(kind, &[]).unwrap();
        let client = open(server.address()).await;
        let id: i64 = cmd("CLIENT ID").query(&client).await.unwrap();
        server.connect().unwrap().words("CLIENT PAUSE 2600 WRITE").unwrap();
        let begun = Instant::now();
        let write = cmd("INCR").arg("count").query::<i64>(&client);
        // It waits behind the write, as everything on its connection.
        let read = cmd("ECHO").arg("behind").query::<String>(&client);
        let (written, read) = tokio::join!(write, read);
        assert_eq!((written.unwrap(), read.unwrap().as_str()), (1, "behind"), "{}", kind.name());
        assert!(begun.elapsed() > Duration::from_millis(2000), "it was held back: {:?}", begun.elapsed());
        assert_eq!(cmd("CLIENT ID").query::<i64>(&client).await.unwrap(), id, "the connection is the same");
        assert_eq!(client.metrics().second_opinions, 1);
    }
}

/// SE 3: a process that did not get to run for seconds finds its replies when it does; no server is blamed.
#[tokio::test]
async fn a_blocked_runtime_is_not_taken_for_a_dead_server() {
    let server = Server::start(ServerKind::Redis70, &[]).unwrap();
    let client = open(server.address()).await;
    let id: i64 = cmd("CLIENT ID").query(&client).await.unwrap();
    let mut other = server.connect().unwrap();
    let sending = client.clone();
    let incremented = tokio::spawn(async move { cmd("INCR").arg("count").query::<i64>(&sending).await });
    tokio::task::yield_now().await;
    // A blocking call on the only thread of the runtime, longer than a server may be silent.
    other.words("BLPOP nothing 2.5").unwrap();
    assert_eq!(incremented.await.unwrap().unwrap(), 1);
    assert_eq!(cmd("CLIENT ID").query::<i64>(&client).await.unwrap(), id, "the connection is the same");
}

/// Rust 7: the command that finds the connection dead is sent on the next one, without the caller's help.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_command_after_a_cut_works() {
    for kind in SERVERS {
        let server = Server::start(kind, &[]).unwrap();
        let proxy = FaultProxy::start(server.address(), 1, &[]).await.unwrap();
        let client = open(proxy.address()).await;
        client.set("key", "value").await.unwrap();
        proxy.cut_all(Close::Fin);
        assert_eq!(client.get::<String>("key").await.unwrap(), "value");
        let client = Client::open(options(proxy.address()).backoff(FORGIVING)).await.unwrap();
        for round in 0..20 {
            proxy.cut_all(if round % 2 == 0 { Close::Fin } else { Close::Reset });
            assert_eq!(client.get::<String>("key").await.unwrap(), "value");
        }
        let mut other = server.connect().unwrap();
        other.words("CLIENT KILL TYPE normal SKIPME yes").unwrap();
        assert_eq!(client.get::<String>("key").await.unwrap(), "value");
    }
}

/// Rust 4, Rust 7 C: the server ran the increment and the network took the reply away, once or more often.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_increment_whose_reply_is_lost_is_reported_and_not_repeated() {
    for kind in SERVERS {
        let server = Server::start(kind, &[]).unwrap();
        let proxy = FaultProxy::start(server.address(), 1, &[]).await.unwrap();
        let forgiving = options(proxy.address()).retry_idempotent(true).backoff(FORGIVING);
        let client = Client::open(forgiving).await.unwrap();
        for lost in 1..=3 {
            let key = format!("count-{lost}");
            proxy.lose_replies(1);
            let error = cmd("INCR").arg(&key).allow_retry().query::<i64>(&client).await.unwrap_err();
            assert_eq!((error.kind(), error.sent()), (&ErrorKind::Lost(LostCause::Closed), Sent::Maybe));
            assert!(!error.is_retryable() && error.to_string().contains("may have run"), "{error}");
            assert_eq!(client.get::<i64>(&key).await.unwrap(), 1);
            // What is harmless to repeat is repeated: the reply is lost in the handshake too.
            proxy.lose_replies(lost);
            client.set(&key, "5").await.unwrap();
            assert_eq!(cmd("INCR").arg(&key).query::<i64>(&client).await.unwrap(), 6);
        }
    }
}

/// SE 2, SE 20: time-outs during a black hole are the last ones; nothing of them is left when it is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_black_hole_leaves_no_debt_behind() {
    let server = Server::start(ServerKind::Valkey91, &[]).unwrap();
    let proxy = FaultProxy::start(server.address(), 1, &[]).await.unwrap();
    let short = options(proxy.address())
        .command_timeout(Duration::from_millis(500))
        .connect_timeout(Duration::from_millis(500));
    let client = Client::open(short).await.unwrap();
    proxy.hold_all();
    let mut failed = 0;
    // Until the connection is given up and dials hang, so that both kinds of waiting are in it.
    while proxy.dial_count() < 3 {
        let pipeline: Pipeline = (0..20).map(|_| cmd("INCR").arg("count")).collect();
        for outcome in pipeline.results(&client).await.unwrap() {
            failed += u64::from(outcome.is_err());
        }
    }
    assert!(failed > 0);
    proxy.release();
    let lateness = Lateness::measure();
    let start = Instant::now();
    while client.get::<Option<i64>>("count").await.is_err() {}
    let took = start.elapsed();
    assert!(took < lateness.stretch(Duration::from_millis(1500)), "{took:?} until the first answer");
    for _ in 0..500 {
        cmd("INCR").arg("count").query::<i64>(&client).await.unwrap();
    }
}

/// SE 6: a network that flaps, within handshakes too, does not leave a client that has to be restarted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_two_hundred_flaps_it_serves_within_one_backoff() {
    let server = Server::start(ServerKind::Redis70, &[]).unwrap();
    let rules =
        ["cut@rand:0..800,chance=60%", "reset@rand:0..800", "refuse@dial,chance=10%", "busy@dial,chance=5%"];
    let proxy = FaultProxy::start(server.address(), 3, &rules).await.unwrap();
    let cap = Duration::from_millis(20);
    let backoff = BackoffConfig {
        base: Duration::from_millis(1),
        cap,
        first_jitter: Duration::from_millis(1),
        ..BackoffConfig::CLIENT
    };
    let client = Client::lazy(options(proxy.address()).backoff(backoff)).unwrap();
    let mut unknown = 0;
    let mut acked = 0;
    while proxy.dial_count() < 200 {
        match cmd("INCR").arg("count").query::<i64>(&client).await {
            Ok(_) => acked += 1,
            Err(error) if error.sent() == Sent::Maybe => unknown += 1,
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
    }
    proxy.set_rules(&[]).unwrap();
    proxy.cut_all(Close::Fin);
    let lateness = Lateness::measure();
    let start = Instant::now();
    let value: i64 = client.get("count").await.unwrap();
    let took = start.elapsed();
    assert!(took < lateness.stretch(cap + Duration::from_millis(200)), "{took:?}");
    assert!((acked..=acked + unknown).contains(&value), "{value}, {acked} acknowledged, {unknown} unknown");
}

/// Rust 5: what is no RESP ends the connection, as what is in flight cannot be told apart any more; then all is well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_ends_the_connection_and_nothing_else() {
    let seen = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&seen);
    let peer = OddPeer::start(None, move |command, out| {
        if greeting(command, out) {
            return;
        }
        match counted.fetch_add(1, Ordering::Relaxed) {
            1 => out.extend_from_slice(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
            2 => out.extend_from_slice(b":5\r\n:6\r\n"),
            _ => out.extend_from_slice(b":4\r\n"),
        }
    })
    .unwrap();
    let client = open(peer.address()).await;
    let incr = || cmd("INCR").arg("count").query::<i64>(&client);
    assert_eq!(incr().await.unwrap(), 4);
    let error = incr().await.unwrap_err();
    assert_eq!((error.kind(), error.sent()), (&ErrorKind::Lost(LostCause::Protocol), Sent::Maybe));
    // One reply too many: the first is right, the second belongs to nobody.
    assert_eq!(incr().await.unwrap(), 5);
    assert!(wait::eventually(|| peer.accepted() == 3).await);
    assert_eq!(incr().await.unwrap(), 4);
}

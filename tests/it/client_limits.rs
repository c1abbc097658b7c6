//! The client's bounds and limits: memory, permits, deadlines, knobs.
//!
//! `SE` and `Rust` numbers are those of docs/client-pains.md.

use std::time::Duration;

use bytes::Bytes;
use e2e::clients::{Lateness, is_alone, open, options, resident_bytes};
use e2e::fault_proxy::FaultProxy;
use e2e::odd_peer::OddPeer;
use e2e::process::{Server, ServerKind};
use e2e::wait;
use rustix::process::Signal;
use tokio::task::JoinSet;
use tokio::time::Instant;
use towline_client::{BackoffConfig, Client, ErrorKind, LivenessConfig, Pipeline, Policy, Sent, cmd, pipe};

const MIB: u64 = 1024 * 1024;

/// A proxy that refuses everybody, and a client behind it that has never been connected.
async fn disconnected(server: &Server, timeout: Duration) -> (FaultProxy, Client) {
    let proxy = FaultProxy::start(server.address(), 1, &["refuse@dial"]).await.unwrap();
    let client = Client::lazy(options(proxy.address()).command_timeout(timeout)).unwrap();
    (proxy, client)
}

/// Rust 19: rustis needs 229 MiB for this.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_thousand_queued_commands_cost_little_more_than_their_bytes() {
    if !is_alone("client_limits::a_hundred_thousand_queued_commands_cost_little_more_than_their_bytes") {
        return;
    }
    const COUNT: u64 = 100_000;
    let server = Server::start(ServerKind::Valkey91, &[]).unwrap();
    let (proxy, client) = disconnected(&server, Duration::from_secs(60)).await;
    let value = [b'v'; 100];
    let set = |number: u64| cmd("SET").arg(format!("key:{number:06}")).arg(&value[..]).fire_and_forget();
    let bytes = COUNT * set(0).wire_len() as u64;
    let before = resident_bytes().unwrap();
    for number in 0..COUNT {
        set(number).query::<()>(&client).await.unwrap();
    }
    let grown = resident_bytes().unwrap().saturating_sub(before);
    // 64 bytes a command, and as much again for what the allocator keeps.
    assert!(grown < bytes + COUNT * 128 + 2 * MIB, "{grown} bytes for {bytes}");
    proxy.set_rules(&[]).unwrap();
    let size = || async { cmd("DBSIZE").query::<u64>(&client).await.unwrap() };
    let mut now = 0;
    while now < COUNT {
        let next = size().await;
        assert!(next >= now);
        now = next;
    }
    let after = client.snapshot();
    assert_eq!((after.backlog_bytes, after.slots, after.counters.unwatched_failed), (0, 0, 0), "{after:?}");
}

/// SE 15: fire-and-forget that nobody waits for ends in time, is counted, and gives its memory back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_million_forgotten_increments_are_bounded_counted_and_removed() {
    if !is_alone("client_limits::a_million_forgotten_increments_are_bounded_counted_and_removed") {
        return;
    }
    const COUNT: u64 = 1_000_000;
    let server = Server::start(ServerKind::Redis70, &[]).unwrap();
    let (proxy, client) = disconnected(&server, Duration::from_secs(2)).await;
    let before = resident_bytes().unwrap();
    let mut accepted = 0;
    let mut most = 0;
    for number in 0..COUNT {
        match cmd("INCR").arg("count").fire_and_forget().query::<Option<i64>>(&client).await {
            Ok(_) => accepted += 1,
            Err(error) => assert!(matches!(error.kind(), ErrorKind::BacklogFull { .. }), "{error}"),
        }
        if number % 100_000 == 0 {
            most = most.max(resident_bytes().unwrap());
        }
    }
    most = most.max(resident_bytes().unwrap()).saturating_sub(before);
    assert!(most < 192 * MIB, "{most} bytes");
    assert!(wait::eventually(|| client.snapshot().counters.unwatched_failed == accepted).await);
    let left = client.snapshot();
    assert_eq!((left.backlog_commands, left.backlog_bytes, left.slots), (0, 0, 0), "{left:?}");
    assert!((left.log_bytes as u64) < MIB, "{left:?}");
    proxy.set_rules(&[]).unwrap();
    // Expired is expired: none of them runs later.
    assert_eq!(cmd("INCR").arg("count").query::<i64>(&client).await.unwrap(), 1);
}

/// Rust 19: one deadline for all of it, the wait for room included; who waits says so to nobody else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_backlog_makes_callers_wait_until_their_deadline() {
    let server = Server::start(ServerKind::Redis70, &[]).unwrap();
    let proxy = FaultProxy::start(server.address(), 1, &["refuse@dial"]).await.unwrap();
    let bounded = options(proxy.address()).backlog_bytes_max(10_000);
    let client = Client::lazy(bounded).unwrap();
    let value = [b'v'; 1000];
    let lateness = Lateness::measure();
    let start = Instant::now();
    let mut callers = JoinSet::new();
    for number in 0..50 {
        let client = client.clone();
        callers.spawn(async move {
            let set = cmd("SET").arg(number).arg(&value[..]).deadline(Duration::from_millis(300));
            set.query::<()>(&client).await.unwrap_err()
        });
    }
    while let Some(error) = callers.join_next().await {
        let error = error.unwrap();
        assert_eq!(error.sent(), Sent::No);
        assert!(error.is_retryable(), "{error}");
        // Who is called when the first ones expire has room, and no time left.
        assert!(matches!(error.kind(), ErrorKind::BacklogFull { .. } | ErrorKind::Deadline), "{error}");
    }
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(300), "{took:?}");
    assert!(took < lateness.stretch(Duration::from_millis(500)), "{took:?}");
    assert_eq!(client.snapshot().room_waiters, 0);
    // With room, those who wait go on in turn.
    proxy.set_rules(&[]).unwrap();
    let mut callers = JoinSet::new();
    for number in 0..50 {
        let client = client.clone();
        callers.spawn(async move { client.set(format!("{number}"), value).await });
    }
    while let Some(set) = callers.join_next().await {
        set.unwrap().unwrap();
    }
    // A policy may refuse instead of waiting.
    let policy = Policy::Bounded { bytes: 2000, age: Duration::from_millis(100) };
    let refused = FaultProxy::start(server.address(), 1, &["refuse@dial"]).await.unwrap();
    let client = Client::lazy(options(refused.address()).backlog(policy)).unwrap();
    let (first, second) = tokio::join!(client.set("a", value), client.set("b", [b'v'; 1500]));
    assert_eq!(
        (first.unwrap_err().kind(), second.unwrap_err().kind()),
        (&ErrorKind::BacklogAge, &ErrorKind::Unavailable)
    );
}

/// Rust 18: commands that time out on a hung server take nothing with them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_timeouts_on_a_hung_server_leak_nothing() {
    for patience in [None, Some(Duration::from_secs(60))] {
        let server = Server::start(ServerKind::Redis70, &[]).unwrap();
        let liveness = match patience {
            None => LivenessConfig::default(),
            // As long as it hangs, and the same connection goes on.
            Some(silence_max) => LivenessConfig { silence_max, ..LivenessConfig::default() },
        };
        let client = Client::open(options(server.address()).liveness(liveness)).await.unwrap();
        client.set("key", "value").await.unwrap();
        server.signal(Signal::STOP).unwrap();
        let mut callers = JoinSet::new();
        for number in 0..1000 {
            let client = client.clone();
            callers.spawn(async move {
                let deadline = Duration::from_millis(50 + number % 200);
                cmd("GET").arg("key").deadline(deadline).query::<String>(&client).await.unwrap_err()
            });
        }
        while let Some(error) = callers.join_next().await {
            let error = error.unwrap();
            assert!(error.is_timeout(), "{error}");
        }
        server.signal(Signal::CONT).unwrap();
        for _ in 0..1000 {
            assert_eq!(client.get::<String>("key").await.unwrap(), "value");
        }
        let after = client.snapshot();
        assert_eq!((after.slots, after.in_flight_commands, after.in_flight_bytes), (0, 0, 0), "{after:?}");
        assert_eq!(after.counters.expired, 1000);
    }
}

/// SE 4: while one caller reads 50 MB, a hundred others write, and no backlog is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_go_on_beside_a_large_reply() {
    let server = Server::start(ServerKind::Redis70, &[]).unwrap();
    let client = open(server.address()).await;
    let value = Bytes::from(vec![b'x'; 50_000_000]);
    client.set("large", &value).await.unwrap();
    let mut writers = JoinSet::new();
    for number in 0..100 {
        let client = client.clone();
        writers.spawn(async move {
            for round in 0..20 {
                client.set(format!("{number}-{round}"), "small").await.unwrap();
            }
        });
    }
    assert!(client.get::<Bytes>("large").await.unwrap() == value);
    while let Some(ended) = writers.join_next().await {
        ended.unwrap();
    }
    let after = client.snapshot();
    assert_eq!((after.backlog_commands, after.backlog_bytes, after.slots), (0, 0, 0), "{after:?}");
}

/// Rust 21: after one large reply, memory and small reads are as before, also while a small one of the same read is kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_large_reply_leaves_neither_memory_nor_latency_behind() {
    if !is_alone("client_limits::one_large_reply_leaves_neither_memory_nor_latency_behind") {
        return;
    }
    let server = Server::start(ServerKind::Valkey91, &[]).unwrap();
    let client = open(server.address()).await;
    client.set("small", "value").await.unwrap();
    let mut other = server.connect().unwrap();
    other.words("SETRANGE large 104857599 x").unwrap();
    let median = || async {
        let mut times = Vec::new();
        for _ in 0..300 {
            let start = Instant::now();
            let _: Bytes = client.get("small").await.unwrap();
            times.push(start.elapsed());
        }
        times.sort_unstable();
        times[times.len() / 2]
    };
    let (before, small_before) = (resident_bytes().unwrap(), median().await);
    let reads = pipe().cmd("GET").arg("small").cmd("GET").arg("large").cmd("GET").arg("small");
    let (first, large, last): (Bytes, Bytes, Bytes) = reads.query(&client).await.unwrap();
    assert_eq!((large.len(), &first[..], &last[..]), (104_857_600, &b"value"[..], &b"value"[..]));
    drop(large);
    let grown = resident_bytes().unwrap().saturating_sub(before);
    assert!(grown < 16 * MIB, "{grown} bytes are kept");
    let small_after = median().await;
    assert!(
        small_after < 3 * small_before + Duration::from_millis(1),
        "{small_before:?}, then {small_after:?}"
    );
}

/// SE 17: a command that takes long may have more time than the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_command_may_have_more_time_than_the_others() {
    let server = Server::start(ServerKind::Redis70, &[]).unwrap();
    let impatient = options(server.address()).command_timeout(Duration::from_millis(300));
    let client = Client::open(impatient).await.unwrap();
    let slow = cmd("DEBUG").arg(("SLEEP", "0.7")).deadline(Duration::from_secs(20));
    let (slow, quick) = tokio::join!(slow.query::<()>(&client), client.get::<Option<i64>>("key"));
    slow.unwrap();
    let error = quick.unwrap_err();
    assert_eq!((error.kind(), error.sent()), (&ErrorKind::Deadline, Sent::Maybe));
    // The late reply is nobody's, and the next one right.
    assert_eq!(cmd("ECHO").arg("next").query::<String>(&client).await.unwrap(), "next");
}

/// Rust 20, SE 17: no limit is no limit, zero is refused, and each time does what its name says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn extreme_times_do_what_they_say() {
    let server = Server::start(ServerKind::Redis70, &[]).unwrap();
    let endless = LivenessConfig {
        silence_max: Duration::MAX,
        confirm: Duration::MAX,
        idle_ping_after: Some(Duration::MAX),
        late_max: Duration::MAX,
        starved_grace: Duration::MAX,
        second_opinion: None,
        held_max: None,
    };
    let backoff = BackoffConfig { cap: Duration::MAX, stable_after: Duration::MAX, ..BackoffConfig::CLIENT };
    let unlimited = options(server.address())
        .command_timeout(Duration::MAX)
        .connect_timeout(Duration::MAX)
        .liveness(endless)
        .backoff(backoff);
    let client = Client::open(unlimited).await.unwrap();
    client.set("key", "value").await.unwrap();
    for deadline in [Duration::MAX, Duration::from_secs(u64::MAX), Duration::from_secs(100_000_000)] {
        let get = cmd("GET").arg("key").deadline(deadline);
        assert_eq!(get.query::<String>(&client).await.unwrap(), "value");
        let many: Pipeline = (0..3).map(|_| cmd("GET").arg("key")).collect();
        assert_eq!(many.deadline(deadline).query::<Vec<String>>(&client).await.unwrap().len(), 3);
    }
    for deadline in [Duration::ZERO, Duration::from_nanos(1)] {
        let error = cmd("INCR").arg("count").deadline(deadline).query::<i64>(&client).await.unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Deadline);
    }
    let zero = Duration::ZERO;
    for options in
        [options(server.address()).command_timeout(zero), options(server.address()).connect_timeout(zero)]
    {
        let error = Client::open(options).await.unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Misuse(_)) && error.to_string().contains("zero"),
            "{error}"
        );
    }
}

/// Rust 20: the connect timeout covers the handshake and is no business of the command timeout, nor the other way round.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_connect_timeout_covers_the_handshake() {
    let peer = OddPeer::start(None, |_, _| {}).unwrap();
    let lateness = Lateness::measure();
    let start = Instant::now();
    let timeout = Duration::from_millis(300);
    let error = Client::open(options(peer.address()).connect_timeout(timeout)).await.unwrap_err();
    let took = start.elapsed();
    assert!((timeout..lateness.stretch(timeout * 2)).contains(&took), "{took:?}");
    assert_eq!(error.sent(), Sent::No);
    let start = Instant::now();
    let client = Client::lazy(options(peer.address()).command_timeout(timeout)).unwrap();
    let error = client.get::<String>("key").await.unwrap_err();
    let took = start.elapsed();
    assert!((timeout..lateness.stretch(timeout * 2)).contains(&took), "{took:?}");
    assert_eq!((error.kind(), error.sent()), (&ErrorKind::Deadline, Sent::No));
}

//! What a client shows of itself, against scripted servers on real sockets.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use futures_core::Stream as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use towline_client::transport::Target;
use towline_client::{
    BackoffConfig, Blame, Client, ConnectOptions, ErrorKind, Event, Frame, LinkState, LivenessConfig,
    LostCause, Peer, Policy, ProtocolChoice, SecondOpinion, Sent, ServerError, Trouble, cmd, pipe,
};
use towline_resp::frame::Decoder;

/// What a scripted server does with one command.
enum Act {
    Reply(&'static str),
    /// Says nothing, now or later.
    Silence,
    /// Replies when it is told to.
    OnNotice(Arc<Notify>, &'static str),
    Close,
}

/// Listens; `act` sees the number of the connection and the command's name.
async fn serve(act: impl Fn(usize, &str) -> Act + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let act = Arc::new(act);
    tokio::spawn(async move {
        for number in 1.. {
            let (socket, _) = listener.accept().await.unwrap();
            tokio::spawn(converse(socket, number, Arc::clone(&act)));
        }
    });
    address
}

async fn converse(mut socket: TcpStream, number: usize, act: Arc<impl Fn(usize, &str) -> Act>) {
    let mut buffer = BytesMut::new();
    let mut decoder = Decoder::default();
    loop {
        while let Some(Frame::Array(words)) = decoder.decode(&mut buffer).unwrap() {
            let Some(Frame::Bulk(name)) = words.first() else { panic!("not a command: {words:?}") };
            match act(number, std::str::from_utf8(name).unwrap()) {
                Act::Reply(text) => socket.write_all(text.as_bytes()).await.unwrap(),
                Act::Silence => {}
                Act::OnNotice(notice, text) => {
                    notice.notified().await;
                    socket.write_all(text.as_bytes()).await.unwrap();
                }
                Act::Close => return,
            }
        }
        if socket.read_buf(&mut buffer).await.unwrap_or(0) == 0 {
            return;
        }
    }
}

fn options(address: SocketAddr) -> ConnectOptions {
    ConnectOptions::new(Target::tcp(address.ip().to_string(), address.port()))
        .peer(Peer::Proxy)
        .protocol(ProtocolChoice::Resp2)
        .liveness(unhurried())
}

/// The defaults, but a test that other work holds up is not taken for a starved process.
fn unhurried() -> LivenessConfig {
    LivenessConfig { late_max: Duration::from_secs(60), ..LivenessConfig::default() }
}

fn pong(name: &str) -> Option<Act> {
    (name == "PING").then_some(Act::Reply("+PONG\r\n"))
}

/// An address where nobody listens.
async fn nowhere() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

#[tokio::test]
async fn events_tell_the_life_of_a_connection_in_order() {
    let address = serve(|number, name| match (number, name) {
        (1, "INCR") => Act::Close,
        (_, "INCR") => Act::Reply(":7\r\n"),
        (_, name) => pong(name).unwrap(),
    })
    .await;
    let client = Client::lazy(options(address)).unwrap();
    let mut events = client.events();
    let Some(Event::Connected { generation, .. }) = events.next().await else { panic!("not connected") };
    assert_eq!(generation.0, 1);

    let error = cmd("INCR").arg("n").query::<i64>(&client).await.unwrap_err();
    assert_eq!(error.sent(), Sent::Maybe);
    let lost = events.next().await.unwrap();
    let Event::Lost { cause: LostCause::Closed, unknown: 1, kept: 0, .. } = lost else { panic!("{lost:?}") };
    let restored = std::future::poll_fn(|cx| std::pin::Pin::new(&mut events).poll_next(cx)).await.unwrap();
    let Event::Connected { generation, .. } = restored else { panic!("{restored:?}") };
    assert_eq!(generation.0, 2);
    assert_eq!(cmd("INCR").arg("n").query::<i64>(&client).await, Ok(7));

    client.close().await;
    assert_eq!(client.events().next().await, Some(Event::Closed), "a late listener hears it too");
    assert_eq!(events.next().await, Some(Event::Closed));
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn a_dial_that_fails_is_an_event_and_the_reason_of_a_timeout() {
    let client = Client::lazy(options(nowhere().await)).unwrap();
    let mut events = client.events();
    let failed = events.next().await.unwrap();
    let Event::DialFailed { error: std::io::ErrorKind::ConnectionRefused, .. } = failed else {
        panic!("{failed:?}")
    };
    let late = cmd("GET").arg("k").deadline(Duration::from_millis(30)).query::<Frame>(&client).await;
    let error = late.unwrap_err();
    assert_eq!((error.kind(), error.sent()), (&ErrorKind::Deadline, Sent::No));
    let diagnosis = error.diagnosis().unwrap();
    assert_eq!((&*diagnosis.command, diagnosis.blame), ("GET", Blame::NotConnected));
    let trouble = &diagnosis.down.as_ref().unwrap().trouble;
    assert_eq!(trouble, &Trouble::Dial(std::io::ErrorKind::ConnectionRefused));
}

#[tokio::test]
async fn a_short_deadline_is_kept_while_the_owner_sleeps() {
    let address = serve(|_, name| pong(name).unwrap_or(Act::Silence)).await;
    let client = Client::open(options(address)).await.unwrap();
    // Nothing is connected, and the next dial is far away.
    let backoff = BackoffConfig {
        base: Duration::from_secs(60),
        cap: Duration::from_secs(60),
        ..BackoffConfig::CLIENT
    };
    let away = Client::lazy(options(nowhere().await).backoff(backoff)).unwrap();
    let mut events = away.events();
    assert!(matches!(events.next().await, Some(Event::DialFailed { .. })));
    for (client, sent) in [(client, Sent::Maybe), (away, Sent::No)] {
        let start = Instant::now();
        let late = cmd("GET").arg("k").deadline(Duration::from_millis(50)).query::<Frame>(&client).await;
        let error = late.unwrap_err();
        assert_eq!((error.kind(), error.sent()), (&ErrorKind::Deadline, sent));
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
        assert_ne!(error.diagnosis().unwrap().blame, Blame::RuntimeStarved);
    }
}

#[tokio::test]
async fn a_silent_server_is_noticed_while_the_owner_sleeps() {
    let address = serve(|number, name| match (number, name) {
        (1, "INCR") => Act::Silence,
        (_, name) => pong(name).unwrap_or(Act::Reply(":1\r\n")),
    })
    .await;
    let liveness = LivenessConfig { silence_max: Duration::from_millis(100), ..unhurried() };
    let client = Client::open(options(address).liveness(liveness)).await.unwrap();
    let start = Instant::now();
    let error = cmd("INCR").arg("n").query::<i64>(&client).await.unwrap_err();
    assert_eq!((error.kind(), error.sent()), (&ErrorKind::Lost(LostCause::Silent), Sent::Maybe));
    assert_eq!(error.diagnosis().unwrap().blame, Blame::NetworkSilent);
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    assert_eq!(cmd("INCR").arg("n").query::<i64>(&client).await, Ok(1));
}

/// Gives a silent server up after `silence_max`, with a second opinion well before.
fn doubtful(silence_max: Duration) -> LivenessConfig {
    let second = SecondOpinion { ask_after: Duration::from_millis(20), ..SecondOpinion::default() };
    LivenessConfig { silence_max, second_opinion: Some(second), confirm: silence_max, ..unhurried() }
}

#[tokio::test]
async fn a_server_that_accepts_but_does_not_answer_is_busy_and_gets_more_time() {
    let notice = Arc::new(Notify::new());
    let busy = Arc::clone(&notice);
    let address = serve(move |number, name| match (number, name) {
        (1, "INCR") => Act::OnNotice(Arc::clone(&busy), ":1\r\n"),
        (1, name) => pong(name).unwrap(),
        _ => Act::Silence,
    })
    .await;
    let silence_max = Duration::from_millis(300);
    let client = Client::open(options(address).liveness(doubtful(silence_max))).await.unwrap();
    let incr = cmd("INCR").arg("n").query::<i64>(&client);
    let mut incr = std::pin::pin!(incr);
    // Without the opinion it would be over long before this.
    assert!(tokio::time::timeout(4 * silence_max, &mut incr).await.is_err());
    notice.notify_one();
    assert_eq!(incr.await, Ok(1));
    assert_eq!(client.metrics().second_opinions, 1);
}

#[tokio::test]
async fn a_server_that_is_gone_is_given_up_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        drop(listener);
        let act = |_, name: &str| pong(name).unwrap_or(Act::Silence);
        converse(socket, 1, Arc::new(act)).await;
    });
    let patient = doubtful(Duration::from_secs(60));
    let client = Client::open(options(address).liveness(patient)).await.unwrap();
    let start = Instant::now();
    let incr = cmd("INCR").arg("n").deadline(Duration::from_secs(30));
    let error = incr.query::<i64>(&client).await.unwrap_err();
    assert_eq!((error.kind(), error.sent()), (&ErrorKind::Lost(LostCause::Silent), Sent::Maybe));
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_command_that_nobody_watches_fails_where_it_can_be_seen() {
    let address = serve(|_, name| pong(name).unwrap_or(Act::Reply("-WRONGTYPE not a list\r\n"))).await;
    let seen = Arc::new(AtomicU64::new(0));
    let hooked = Arc::clone(&seen);
    let hook = move |count, error: &towline_client::Error| {
        assert_eq!(error.code(), Some("WRONGTYPE"));
        hooked.fetch_add(count, Ordering::Relaxed);
    };
    let client = Client::open(options(address).on_unwatched_failure(hook)).await.unwrap();
    let mut events = client.events();
    cmd("LPUSH").arg("k").arg("v").fire_and_forget().query::<()>(&client).await.unwrap();
    let event = events.next().await.unwrap();
    let Event::UnwatchedFailed { count: 1, last } = event else { panic!("{event:?}") };
    assert_eq!(last.code(), Some("WRONGTYPE"));
    assert_eq!(seen.load(Ordering::Relaxed), 1);
    assert_eq!(client.metrics().unwatched_failed, 1);
}

#[tokio::test]
async fn an_error_in_a_pipeline_is_reported_whether_its_reply_is_wanted_or_not() {
    let address = serve(|_, name| match name {
        "LPUSH" => Act::Reply("-WRONGTYPE not a list\r\n"),
        name => pong(name).unwrap_or(Act::Reply(":1\r\n")),
    })
    .await;
    let client = Client::open(options(address)).await.unwrap();
    let two = || pipe().cmd("LPUSH").arg("k").arg("v").cmd("INCR").arg("n");
    let results = two().results(&client).await.unwrap();
    assert_eq!(results[0].as_ref().unwrap_err().code(), Some("WRONGTYPE"));
    assert_eq!(results[1], Ok(Frame::Integer(1)));
    let ignored = pipe().cmd("LPUSH").arg("k").arg("v").ignore().cmd("INCR").arg("n");
    assert_eq!(ignored.query::<(i64,)>(&client).await.unwrap_err().code(), Some("WRONGTYPE"));
    let (failed, n): (Result<i64, ServerError>, i64) = two().query(&client).await.unwrap();
    assert_eq!((failed.unwrap_err().code(), n), ("WRONGTYPE", 1));
}

#[tokio::test]
async fn a_snapshot_and_counters_show_the_state() {
    let address = serve(|_, name| match name {
        "GET" => Act::Reply("$5\r\nvalue\r\n"),
        name => pong(name).unwrap_or(Act::Silence),
    })
    .await;
    let client = Client::open(options(address)).await.unwrap();
    let before = client.metrics();
    assert_eq!(client.get::<String>("key").await.unwrap(), "value");
    let after = client.metrics();
    assert_eq!(after.bytes_written - before.bytes_written, 22);
    assert_eq!(after.bytes_read - before.bytes_read, 11);
    assert_eq!((after.answered - before.answered, after.writes - before.writes), (1, 1));
    assert_eq!((after.writes_inline - before.writes_inline, after.reads - before.reads), (1, 1));

    let snapshot = client.snapshot();
    assert_eq!((snapshot.link, snapshot.in_flight_commands), (LinkState::Up, 0));
    let json: serde_json::Value = serde_json::from_str(&snapshot.to_json()).unwrap();
    assert_eq!((&json["link"], &json["counters"]["answered"]), (&"up".into(), &after.answered.into()));
}

#[tokio::test]
async fn a_client_that_never_connected_says_when_it_is_closed() {
    let refused = options(nowhere().await).backlog(Policy::FailFast);
    let client = Client::lazy(refused).unwrap();
    let mut events = client.events();
    drop(client);
    loop {
        match events.next().await {
            Some(Event::Closed) => break,
            Some(_) => {}
            None => panic!("it ends without a last word"),
        }
    }
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn a_closed_client_opens_no_connection_for_anybody() {
    let address = nowhere().await;
    let direct = ConnectOptions::new(Target::tcp(address.ip().to_string(), address.port()));
    let client = Client::lazy(direct.command_timeout(Duration::from_millis(300))).unwrap();
    client.close().await;
    let lease = client.lease().await.map(drop);
    let blocking = cmd("BLPOP").arg(("queue", 1)).query::<()>(&client).await;
    let subscription = client.subscribe(["channel"]).await.map(drop);
    for outcome in [client.get("key").await, lease, blocking, subscription] {
        let error = outcome.unwrap_err();
        assert_eq!((error.kind(), error.sent()), (&ErrorKind::Closed, Sent::No), "{error}");
    }
    assert_eq!(client.lease_report().opened, 0);
}

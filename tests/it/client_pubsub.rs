//! The client's subscriptions against real servers: what is published arrives, in order, or its loss is told.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use e2e::conn::Conn;
use e2e::process::{Server, ServerKind};
use e2e::value::Value;
use e2e::wait;
use rustix::process::Signal;
use towline_client::transport::Target;
use towline_client::{
    BackoffConfig, Client, ConnectOptions, Credentials, ErrorKind, LinkState, LivenessConfig, Overflow, Peer,
    Policy, ProtocolChoice, PubSubEvent, Sent, Subscription, cmd,
};

/// A real server and the protocol to speak with it.
type Setting = (ServerKind, ProtocolChoice);

const SETTINGS: [Setting; 4] = [
    (ServerKind::Redis70, ProtocolChoice::Resp2),
    (ServerKind::Redis70, ProtocolChoice::Resp3),
    (ServerKind::Valkey91, ProtocolChoice::Resp3),
    (ServerKind::Towline, ProtocolChoice::Resp3),
];

/// Waits that do not grow to seconds: these tests lose connections far more often than a client does.
const QUICK: BackoffConfig = BackoffConfig {
    base: Duration::from_millis(1),
    cap: Duration::from_millis(20),
    multiplier: 2.0,
    first_jitter: Duration::from_millis(1),
    stable_after: Duration::from_millis(10),
};

fn options(server: &Server, protocol: ProtocolChoice) -> ConnectOptions {
    ConnectOptions::new(Target::tcp("127.0.0.1", server.port()))
        .protocol(protocol)
        .backoff(QUICK)
        .command_timeout(wait::PATIENCE)
}

async fn start(setting: Setting) -> (Server, Client) {
    let (kind, protocol) = setting;
    let server = Server::start(kind, &[]).unwrap();
    let client = Client::open(options(&server, protocol)).await.unwrap();
    (server, client)
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(wait::PATIENCE, future).await.expect("it ends in time")
}

async fn next(subscription: &mut Subscription) -> PubSubEvent {
    within(subscription.next()).await.expect("the stream goes on")
}

fn message(channel: &'static str, pattern: Option<&'static str>, payload: &'static str) -> PubSubEvent {
    PubSubEvent::Message {
        channel: channel.into(),
        pattern: pattern.map(Into::into),
        payload: payload.into(),
    }
}

/// Looks without blocking the runtime's threads that the client needs.
async fn until(mut condition: impl FnMut() -> bool + Send + 'static) -> bool {
    tokio::task::spawn_blocking(move || wait::until(&mut condition)).await.unwrap()
}

/// How many connections of the server want a channel.
fn subscribers(conn: &mut Conn, channel: &str) -> i64 {
    match conn.call(&["PUBSUB", "NUMSUB", channel]).unwrap() {
        Value::Array(values) => match values[..] {
            [_, Value::Int(count)] => count,
            _ => panic!("{values:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn is_settled_at(server: &Server, channel: &'static str, count: i64) -> impl Future<Output = bool> {
    let mut conn = server.connect().unwrap();
    until(move || subscribers(&mut conn, channel) == count)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn channels_and_patterns_get_what_fits_them() {
    for setting in SETTINGS {
        let (_server, client) = start(setting).await;
        let mut channels = client.subscribe(["news", "weather"]).await.unwrap();
        let mut patterns = client.psubscribe(["new*", "*s"]).await.unwrap();
        assert_eq!(client.publish("news", "one").await, Ok(3), "{setting:?}");
        assert_eq!(client.publish("weather", "two").await, Ok(1));
        assert_eq!(client.publish("nothing", "three").await, Ok(0));
        assert_eq!(next(&mut channels).await, message("news", None, "one"));
        assert_eq!(next(&mut channels).await, message("weather", None, "two"));
        let mut both = [next(&mut patterns).await, next(&mut patterns).await];
        both.sort_by_key(|event| format!("{event:?}"));
        assert_eq!(both, [message("news", Some("*s"), "one"), message("news", Some("new*"), "one")]);
        assert_eq!((channels.try_next(), patterns.try_next()), (None, None));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shard_channels_are_subscribed_too() {
    for setting in SETTINGS {
        let (_server, client) = start(setting).await;
        let mut shards = client.ssubscribe(["a", "b"]).await.unwrap();
        assert_eq!(client.spublish("b", "x").await, Ok(1), "{setting:?}");
        assert_eq!(client.publish("b", "y").await, Ok(0));
        assert_eq!(next(&mut shards).await, message("b", None, "x"));
        assert_eq!(shards.try_next(), None);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscribing_never_shifts_a_reply() {
    for setting in SETTINGS {
        let (server, client) = start(setting).await;
        let is_over = Arc::new(AtomicBool::new(false));
        let echoes: Vec<_> = (0..16)
            .map(|task| {
                let (client, is_over) = (client.clone(), Arc::clone(&is_over));
                tokio::spawn(async move {
                    let mut number = 0;
                    while number == 0 || !is_over.load(Ordering::Relaxed) {
                        let sent = format!("{task}-{number}");
                        let reply: String = cmd("ECHO").arg(&sent).query(&client).await.unwrap();
                        assert_eq!(reply, sent);
                        number += 1;
                    }
                })
            })
            .collect();
        for round in 0..20 {
            let names: Vec<String> = (0..1000).map(|number| format!("{round}:{number}")).collect();
            let mut subscription = within(client.subscribe(&names)).await.unwrap();
            within(subscription.add(["more"])).await.unwrap();
            assert_eq!(client.publish(&names[999], "x").await, Ok(1), "{setting:?}");
            assert!(matches!(next(&mut subscription).await, PubSubEvent::Message { .. }));
            subscription.remove(&names[..500]);
        }
        is_over.store(true, Ordering::Relaxed);
        for echo in echoes {
            echo.await.unwrap();
        }
        assert!(is_settled_at(&server, "more", 0).await);
        let refused = cmd("SUBSCRIBE").arg("x").query::<()>(&client).await.unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::Misuse(_)), "{refused}");
    }
}

/// Reads numbers until `end`; every number that is missing must be behind a gap. Returns how many gaps there were.
async fn check_numbers(subscription: &mut Subscription) -> u64 {
    let (mut last, mut gaps, mut is_gap) = (0, 0, false);
    let mut generation = None;
    loop {
        match next(subscription).await {
            PubSubEvent::Message { payload, .. } if *payload == *b"end" => return gaps,
            PubSubEvent::Message { payload, .. } => {
                let number: u64 = std::str::from_utf8(&payload).unwrap().parse().unwrap();
                assert!(number > last, "{number} after {last}");
                assert!(number == last + 1 || is_gap, "{last} and then {number} without a gap");
                (last, is_gap) = (number, false);
            }
            PubSubEvent::Gap { from, to, .. } => {
                assert!(from < to && generation.is_none_or(|last| last == from), "{from} to {to}");
                generation = Some(to);
                (gaps, is_gap) = (gaps + 1, true);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_lost_connections_lose_nothing_in_silence() {
    const KILLS: usize = 100;
    for setting in SETTINGS {
        let (server, client) = start(setting).await;
        let mut subscription = client.subscribe(["numbers"]).await.unwrap();
        let (is_over, is_read) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let publisher = tokio::spawn({
            let (client, is_over, is_read) = (client.clone(), Arc::clone(&is_over), Arc::clone(&is_read));
            async move {
                let mut number = 1_u64;
                while !is_over.load(Ordering::Relaxed) {
                    client.publish("numbers", number.to_string()).await.unwrap();
                    number += 1;
                }
                // The last connection that was killed may take one of these with it.
                while !is_read.load(Ordering::Relaxed) {
                    client.publish("numbers", "end").await.unwrap();
                }
                number
            }
        });
        let mut conn = server.connect().unwrap();
        let killer = tokio::task::spawn_blocking(move || {
            for _ in 0..KILLS {
                let is_hit = || conn.call(&["CLIENT", "KILL", "TYPE", "pubsub"]).unwrap() == Value::Int(1);
                assert!(wait::until(is_hit), "the subscription comes back");
            }
            is_over.store(true, Ordering::Relaxed);
        });
        let gaps = check_numbers(&mut subscription).await;
        is_read.store(true, Ordering::Relaxed);
        killer.await.unwrap();
        let published = publisher.await.unwrap();
        // A connection may be killed before its confirmation was read: the next one's gap covers both.
        assert!((1..=KILLS as u64).contains(&gaps), "{setting:?}: {gaps} gaps, {published} published");
        assert_eq!(subscription.dropped(), Default::default());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_loses_a_counted_number_and_costs_its_bound() {
    const COUNT: u64 = 20_000;
    const BYTES_MAX: usize = 64 * 1024;
    for (setting, overflow) in
        SETTINGS.into_iter().zip([Overflow::DropOldest, Overflow::DropNewest].into_iter().cycle())
    {
        let (_server, client) = start(setting).await;
        let builder = client.subscription().buffer_bytes_max(BYTES_MAX).overflow(overflow);
        let mut slow = builder.subscribe(["flood"]).await.unwrap();
        let mut quick = client.subscription().buffer_bytes_max(64 << 20).subscribe(["flood"]).await.unwrap();
        let publisher = tokio::spawn({
            let client = client.clone();
            async move {
                for number in 0..COUNT {
                    cmd("PUBLISH")
                        .arg("flood")
                        .arg(format!("{number:01000}"))
                        .fire_and_forget()
                        .query::<()>(&client)
                        .await
                        .unwrap();
                }
            }
        });
        // What one of them has been given, the other was offered: they share the connection.
        for number in 0..COUNT {
            let PubSubEvent::Message { payload, .. } = next(&mut quick).await else { panic!("{number}") };
            assert_eq!(payload, format!("{number:01000}"));
            assert!(slow.buffered_bytes() <= BYTES_MAX, "{setting:?}");
        }
        publisher.await.unwrap();
        let (mut seen, mut missing, mut largest_run) = (0, 0, 0);
        let mut expected = 0;
        while let Some(event) = slow.try_next() {
            match event {
                PubSubEvent::Message { payload, .. } => {
                    let number: u64 = std::str::from_utf8(&payload).unwrap().parse().unwrap();
                    assert_eq!(number, expected, "{setting:?}: drops stand where they happened");
                    seen += 1;
                    expected += 1;
                }
                PubSubEvent::Dropped { messages, others: 0, .. } => {
                    missing += messages;
                    expected += messages;
                    largest_run = largest_run.max(messages);
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(seen + missing, COUNT, "{setting:?}");
        assert_eq!(slow.dropped().messages, missing);
        assert!(seen >= 40 && largest_run > 0, "{setting:?}: {seen} seen");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscriptions_of_one_channel_share_it_and_end_apart() {
    for setting in SETTINGS {
        let (server, client) = start(setting).await;
        let mut first = client.subscribe(["both"]).await.unwrap();
        let mut second = client.clone().subscribe(["both", "own"]).await.unwrap();
        assert_eq!(client.publish("both", "1").await, Ok(1), "{setting:?}: the server is asked once");
        assert_eq!(next(&mut first).await, message("both", None, "1"));
        assert_eq!(next(&mut second).await, message("both", None, "1"));
        drop(first);
        assert_eq!(client.publish("both", "2").await, Ok(1));
        assert_eq!(next(&mut second).await, message("both", None, "2"));
        second.remove(["both"]);
        assert!(is_settled_at(&server, "both", 0).await, "{setting:?}");
        assert_eq!(client.publish("own", "3").await, Ok(1));
        assert_eq!(next(&mut second).await, message("own", None, "3"));
        drop(second);
        assert!(is_settled_at(&server, "own", 0).await, "{setting:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_outlives_its_client_and_leaves_nothing_behind() {
    for setting in SETTINGS {
        let (server, client) = start(setting).await;
        let mut conn = server.connect().unwrap();
        let mut subscription = client.subscribe(["c"]).await.unwrap();
        drop(client);
        // A connection that is being killed may still count as a receiver, so the count says nothing.
        let publish = |conn: &mut Conn, text| drop(conn.call(&["PUBLISH", "c", text]).unwrap());
        publish(&mut conn, "1");
        assert_eq!(next(&mut subscription).await, message("c", None, "1"));
        assert_eq!(conn.call(&["CLIENT", "KILL", "TYPE", "pubsub"]).unwrap(), Value::Int(1));
        assert!(matches!(next(&mut subscription).await, PubSubEvent::Gap { .. }), "{setting:?}");
        publish(&mut conn, "2");
        assert_eq!(next(&mut subscription).await, message("c", None, "2"));

        let client = Client::open(options(&server, setting.1)).await.unwrap();
        assert!(client.pubsub_snapshot().is_none());
        drop(client.subscribe(["d"]).await.unwrap());
        assert_eq!(client.pubsub_snapshot().unwrap().counters.connections, 1);
        drop((client, subscription));
        let is_alone = move || match conn.call(&["CLIENT", "LIST"]).unwrap() {
            Value::Bulk(text) => text.iter().filter(|byte| **byte == b'\n').count() == 1,
            other => panic!("{other:?}"),
        };
        assert!(until(is_alone).await, "{setting:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_dropped_is_taken_back() {
    for setting in SETTINGS {
        let (server, client) = start(setting).await;
        let mut kept = client.subscribe(["kept"]).await.unwrap();
        // Nothing can be confirmed before it is dropped.
        server.signal(Signal::STOP).unwrap();
        {
            let mut request = pin!(client.subscribe(["gone"]));
            assert!(request.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            let mut more = pin!(kept.add(["kept", "more"]));
            assert!(more.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        server.signal(Signal::CONT).unwrap();
        kept.add(["last"]).await.unwrap();
        for channel in ["gone", "more"] {
            assert!(is_settled_at(&server, channel, 0).await, "{setting:?}");
        }
        assert_eq!(client.publish("kept", "x").await, Ok(1));
        assert_eq!(next(&mut kept).await, message("kept", None, "x"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_channel_is_an_error_and_a_permission_that_ends_is_told() {
    for setting in SETTINGS.into_iter().filter(|(kind, _)| *kind != ServerKind::Towline) {
        let server = Server::start(setting.0, &[]).unwrap();
        let mut conn = server.connect().unwrap();
        let mut acl = |rules: &[&str]| {
            let words: Vec<&str> = ["ACL", "SETUSER", "app"].iter().chain(rules).copied().collect();
            assert_eq!(conn.call(&words).unwrap(), Value::Simple("OK".into()));
        };
        acl(&["on", ">pw", "+@all", "~*", "resetchannels", "&open", "&later"]);
        let options = options(&server, setting.1).credentials(Credentials::user("app", "pw"));
        let client = Client::open(options).await.unwrap();

        let refused = client.subscribe(["open", "secret"]).await.unwrap_err();
        assert_eq!(refused.code(), Some("NOPERM"), "{setting:?}: {refused}");
        assert!(is_settled_at(&server, "open", 0).await);
        let mut subscription = client.subscribe(["open", "later"]).await.unwrap();
        assert_eq!(subscription.add(["secret"]).await.unwrap_err().code(), Some("NOPERM"));
        let refused = client.psubscribe(["*"]).await.unwrap_err();
        assert_eq!(refused.code(), Some("NOPERM"), "{setting:?}: {refused}");

        // The server closes connections that subscribe to what is no longer theirs.
        acl(&["resetchannels", "&open"]);
        let events = [next(&mut subscription).await, next(&mut subscription).await];
        let is_later = |event: &PubSubEvent| match event {
            PubSubEvent::Refused { name, error } => *name == "later" && error.code() == "NOPERM",
            _ => false,
        };
        let is_gap = |event: &PubSubEvent| matches!(event, PubSubEvent::Gap { name, .. } if *name == "open");
        assert!(events.iter().any(is_later) && events.iter().any(is_gap), "{setting:?}: {events:?}");

        acl(&["resetchannels", "&open", "&later"]);
        let mut killer = server.connect().unwrap();
        assert_eq!(killer.call(&["CLIENT", "KILL", "TYPE", "pubsub"]).unwrap(), Value::Int(1));
        let mut names = Vec::new();
        for _ in 0..2 {
            let PubSubEvent::Gap { name, .. } = next(&mut subscription).await else {
                panic!("a gap for each")
            };
            names.push(name);
        }
        names.sort();
        assert_eq!(names, ["later", "open"]);
        assert_eq!(killer.call(&["PUBLISH", "later", "x"]).unwrap(), Value::Int(1));
        assert_eq!(next(&mut subscription).await, message("later", None, "x"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_server_is_subscribed_again() {
    for setting in SETTINGS.into_iter().filter(|(kind, _)| *kind != ServerKind::Towline) {
        let (server, client) = start(setting).await;
        let names: Vec<String> = (0..2000).map(|number| number.to_string()).collect();
        let mut channels = client.subscribe(&names).await.unwrap();
        let mut patterns = client.psubscribe(["1*"]).await.unwrap();
        // The process replaces itself, on the same port; it says nothing more on the old connections.
        server.connect().unwrap().send(&["DEBUG", "RESTART"]).unwrap();
        for _ in &names {
            assert!(matches!(next(&mut channels).await, PubSubEvent::Gap { .. }), "{setting:?}");
        }
        assert!(matches!(next(&mut patterns).await, PubSubEvent::Gap { name, .. } if name == "1*"));
        assert_eq!(client.publish("1999", "back").await, Ok(2), "{setting:?}");
        assert_eq!(next(&mut channels).await, message("1999", None, "back"));
        assert_eq!(next(&mut patterns).await, message("1999", Some("1*"), "back"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keyspace_notifications_are_messages_like_others() {
    for setting in SETTINGS {
        let (_server, client) = start(setting).await;
        cmd("CONFIG SET notify-keyspace-events KEA").query::<()>(&client).await.unwrap();
        let mut keys = client.psubscribe(["__keyspace@0__:session:*"]).await.unwrap();
        client.set("session:1", "x").await.unwrap();
        let event = message("__keyspace@0__:session:1", Some("__keyspace@0__:session:*"), "set");
        assert_eq!(next(&mut keys).await, event, "{setting:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_goes_silent_is_noticed_and_costs_a_gap() {
    let liveness = LivenessConfig {
        silence_max: Duration::from_millis(200),
        idle_ping_after: Some(Duration::from_millis(50)),
        ..LivenessConfig::default()
    };
    for setting in SETTINGS {
        let server = Server::start(setting.0, &[]).unwrap();
        let client = Client::open(options(&server, setting.1).liveness(liveness)).await.unwrap();
        let mut subscription = client.subscribe(["c"]).await.unwrap();
        server.signal(Signal::STOP).unwrap();
        let observer = client.clone();
        assert!(
            until(move || observer.pubsub_snapshot().unwrap().link != LinkState::Up).await,
            "{setting:?}"
        );
        server.signal(Signal::CONT).unwrap();
        assert!(matches!(next(&mut subscription).await, PubSubEvent::Gap { name, .. } if name == "c"));
        assert!(is_settled_at(&server, "c", 1).await, "{setting:?}: the silent connection has gone");
    }
}

#[tokio::test]
async fn without_a_server_the_reason_is_told() {
    let target = Target::tcp("127.0.0.1", e2e::process::free_port().unwrap());
    let options = || ConnectOptions::new(target.clone()).backoff(QUICK);

    let client = Client::lazy(options().command_timeout(Duration::from_millis(100))).unwrap();
    let error = client.subscribe(["c"]).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Connect(_)), "{error}");
    assert!(error.to_string().contains("refused") && error.sent() == Sent::No, "{error}");

    let client = Client::lazy(options().backlog(Policy::FailFast)).unwrap();
    let error = within(client.subscribe(["c"])).await.unwrap_err();
    assert_eq!((error.kind(), error.sent()), (&ErrorKind::Unavailable, Sent::No));

    let proxied = options().peer(Peer::Proxy).protocol(ProtocolChoice::Resp2);
    let error = Client::lazy(proxied).unwrap().subscribe(["c"]).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Misuse(_)), "{error}");
}

#[tokio::test]
async fn a_refused_connection_ends_the_request_at_once() {
    let server = Server::start(ServerKind::Redis70, &["--requirepass", "secret"]).unwrap();
    let options = options(&server, ProtocolChoice::Resp3).credentials(Credentials::password("wrong"));
    let error = within(Client::lazy(options).unwrap().subscribe(["c"])).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Handshake(_)), "{error}");
    assert_eq!(error.sent(), Sent::No);
}

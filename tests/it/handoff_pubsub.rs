//! Subscriptions while their server moves, with a publisher at full speed: every message once, in order.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use e2e::clients::options;
use e2e::conn::{Conn, encode};
use e2e::process::{Server, ServerKind};
use e2e::value::Value;
use e2e::wait;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use towline_client::{Client, MaintenanceMode, PubSubEvent, Subscription};

/// Publishers, on connections that the server serves on whatever worker it likes.
const PUBLISHERS: u64 = 2;

/// Channels of each publisher, and one shard channel.
const CHANNELS: u64 = 3;

/// Commands of a publisher that are on their way at once.
const BATCH: u64 = 64;

/// Rounds by which publishers may be ahead of the slowest reader: less than any buffer between them holds.
const AHEAD_MAX: u64 = 4_000;

/// One server on three addresses: two that move, and one for publishers.
fn start() -> Server {
    Server::start(ServerKind::Towline, &["--bind", "127.0.0.1", "127.0.0.2", "127.0.0.3"]).unwrap()
}

fn address(server: &Server, last: u8) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, last], server.port()))
}

/// Publishes `rounds` numbered messages to each of its channels. Without a pause, but never more than [`AHEAD_MAX`]
/// ahead of the slowest reader, and the last of them when `gate` opens.
fn publish(to: SocketAddr, publisher: u64, rounds: u64, read: &[Arc<AtomicU64>], gate: &AtomicBool) {
    let mut conn = Conn::open(to).unwrap();
    let mut number = 0;
    while number < rounds {
        let batch = BATCH.min(rounds - number);
        let mut bytes = Vec::new();
        for number in number..number + batch {
            for channel in 0..CHANNELS {
                encode(&["PUBLISH", &format!("n:{publisher}:{channel}"), &number.to_string()], &mut bytes);
            }
            encode(&["SPUBLISH", &format!("s:{publisher}"), &number.to_string()], &mut bytes);
        }
        conn.write(&bytes).unwrap();
        for _ in 0..batch * (CHANNELS + 1) {
            assert!(matches!(conn.read().unwrap(), Value::Int(_)));
        }
        number += batch;
        // Every reader counts at least one message for each round of each publisher.
        let slowest = || read.iter().map(|read| read.load(Ordering::Relaxed)).min().unwrap_or(u64::MAX);
        assert!(
            wait::until(|| number < slowest() / PUBLISHERS + AHEAD_MAX / PUBLISHERS),
            "a reader is stuck"
        );
        // The end comes after the moves.
        let may_end = || number < rounds - rounds / 16 || gate.load(Ordering::Relaxed);
        assert!(wait::until(may_end), "the moves are made");
    }
}

/// The publishers' threads.
fn publishers(
    server: &Server,
    rounds: u64,
    read: &[Arc<AtomicU64>],
    gate: &Arc<AtomicBool>,
) -> Vec<JoinHandle<()>> {
    let start = |publisher| {
        let (to, read, gate) = (address(server, 3), read.to_vec(), Arc::clone(gate));
        std::thread::spawn(move || publish(to, publisher, rounds, &read, &gate))
    };
    (0..PUBLISHERS).map(start).collect()
}

/// What a reader has seen.
#[derive(Debug, Default)]
struct Seen {
    /// The number that each channel's next message has.
    next: BTreeMap<Vec<u8>, u64>,
    messages: u64,
    repeated: u64,
    overlaps: u64,
}

/// Reads until every channel has had its last message. Numbers must follow each other; only after an `Overlap` may they
/// begin again below.
async fn read(mut subscription: Subscription, channels: u64, rounds: u64, count: Arc<AtomicU64>) -> Seen {
    let mut seen = Seen::default();
    let mut may_repeat = BTreeSet::new();
    let mut done = 0;
    while done < channels {
        let event = tokio::time::timeout(wait::PATIENCE, subscription.next()).await;
        match event.expect("messages go on").expect("the stream goes on") {
            PubSubEvent::Message { channel, payload, .. } => {
                let number: u64 = std::str::from_utf8(&payload).unwrap().parse().unwrap();
                let next = seen.next.entry(channel.to_vec()).or_default();
                if number < *next && may_repeat.remove(&channel[..]) {
                    seen.repeated += *next - number;
                    done -= u64::from(*next == rounds);
                    *next = number;
                }
                assert_eq!(number, *next, "of {channel:?} after {} messages", seen.messages);
                *next += 1;
                done += u64::from(*next == rounds);
                seen.messages += 1;
                count.fetch_add(u64::from(channel.ends_with(b"0")), Ordering::Relaxed);
            }
            PubSubEvent::Overlap { .. } => {
                seen.overlaps += 1;
                may_repeat = seen.next.keys().cloned().collect();
            }
            other => panic!("{other:?} after {} messages", seen.messages),
        }
    }
    assert_eq!(subscription.dropped(), towline_client::DroppedTotals::default());
    seen
}

/// Readers of channels, patterns and shard channels.
async fn readers(client: &Client, rounds: u64) -> (JoinSet<Seen>, Vec<Arc<AtomicU64>>) {
    let channels: Vec<String> = (0..PUBLISHERS)
        .flat_map(|publisher| (0..CHANNELS).map(move |channel| format!("n:{publisher}:{channel}")))
        .collect();
    let shards: Vec<String> = (0..PUBLISHERS).map(|publisher| format!("s:{publisher}")).collect();
    let large = || client.subscription().buffer_bytes_max(1 << 30);
    let all = PUBLISHERS * CHANNELS;
    let subscriptions = [
        (large().subscribe(&channels).await.unwrap(), all),
        // A marker would be among the first one's messages.
        (large().psubscribe(["*"]).await.unwrap(), all),
        (large().psubscribe(["n:0:*"]).await.unwrap(), CHANNELS),
        (large().ssubscribe(&shards).await.unwrap(), PUBLISHERS),
    ];
    let (mut tasks, mut counts) = (JoinSet::new(), Vec::new());
    for (at, (subscription, channels)) in subscriptions.into_iter().enumerate() {
        let count = Arc::new(AtomicU64::new(0));
        // The pattern of one publisher sees one publisher's channels only, shard channels are those of both.
        if at < 2 {
            counts.push(Arc::clone(&count));
        }
        tasks.spawn(read(subscription, channels, rounds, count));
    }
    (tasks, counts)
}

/// Moves the subscriptions to `to`, and waits until they are there.
async fn move_to(server: &Server, client: &Client, from: u8, to: SocketAddr) {
    let handoffs = || client.pubsub_snapshot().map_or(0, |snapshot| snapshot.counters.handoffs);
    let before = handoffs();
    let mut admin = Conn::open(address(server, 3)).unwrap();
    let (to, on) = (to.to_string(), address(server, from).to_string());
    let reply = admin.call(&["TOWLINE", "DRAIN", "WINDOW", "5", "TO", &to, "ON", &on]).unwrap();
    assert!(!matches!(reply, Value::Error(_)), "{reply:?}");
    assert!(wait::eventually(|| handoffs() > before).await, "{:?}", client.pubsub_snapshot());
}

async fn until_read(counts: &[Arc<AtomicU64>], messages: u64) {
    let slowest = || counts.iter().map(|count| count.load(Ordering::Relaxed)).min();
    assert!(wait::eventually(|| slowest() >= Some(messages)).await, "{counts:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_thousand_messages_survive_three_moves() {
    const ROUNDS: u64 = 200_000 / (PUBLISHERS * (CHANNELS + 1));
    let server = start();
    let client = Client::open(options(address(&server, 1))).await.unwrap();
    let (tasks, counts) = readers(&client, ROUNDS).await;
    let gate = Arc::new(AtomicBool::new(false));
    let publishers = publishers(&server, ROUNDS, &counts, &gate);
    for (step, (from, to)) in (1..).zip([(1, 2), (2, 1), (1, 2)]) {
        until_read(&counts, step * ROUNDS * PUBLISHERS / 4).await;
        move_to(&server, &client, from, address(&server, to)).await;
    }
    gate.store(true, Ordering::Relaxed);
    let seen = tokio::time::timeout(wait::PATIENCE, tasks.join_all()).await.expect("all is read");
    publishers.into_iter().for_each(|publisher| publisher.join().unwrap());
    for seen in &seen {
        assert_eq!((seen.overlaps, seen.repeated), (0, 0), "{seen:?}");
    }
    let total: u64 = seen.iter().map(|seen| seen.messages).sum();
    assert_eq!(total, ROUNDS * PUBLISHERS * (2 * CHANNELS + 1) + ROUNDS * CHANNELS);
    // Nothing is left of the moves: no name but those of the readers.
    let mut admin = Conn::open(address(&server, 3)).unwrap();
    assert_eq!(
        admin.call(&["PUBSUB", "CHANNELS", "__towline:*"]).unwrap(),
        Value::Array(Vec::new()),
        "markers are unsubscribed"
    );
}

/// Passes everything on to the server, but for `PUBLISH`, which it makes a command that no server knows.
async fn without_publish(to: SocketAddr, tasks: &mut JoinSet<()>) -> SocketAddr {
    let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let own = listener.local_addr().unwrap();
    tasks.spawn(async move {
        let mut relays = JoinSet::new();
        while let Ok((client, _)) = listener.accept().await {
            relays.spawn(relay(client, to));
        }
    });
    own
}

async fn relay(client: TcpStream, to: SocketAddr) -> std::io::Result<()> {
    let server = TcpStream::connect(to).await?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let up = async move {
        let mut bytes = vec![0; 64 * 1024];
        loop {
            let count = from_client.read(&mut bytes).await?;
            if count == 0 {
                return to_server.shutdown().await;
            }
            let verb = b"$7\r\nPUBLISH\r\n";
            if let Some(at) = memchr::memmem::find(&bytes[..count], verb) {
                bytes[at + 4..at + 11].copy_from_slice(b"REFUSED");
            }
            to_server.write_all(&bytes[..count]).await?;
        }
    };
    let down = async move { tokio::io::copy(&mut from_server, &mut to_client).await };
    let (up, down) = tokio::join!(up, down);
    up?;
    down.map(|_| ())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_may_not_publish_loses_nothing_and_says_what_may_come_twice() {
    const ROUNDS: u64 = 80_000 / (PUBLISHERS * (CHANNELS + 1));
    let server = start();
    let mut relays = JoinSet::new();
    let first = without_publish(address(&server, 1), &mut relays).await;
    let second = without_publish(address(&server, 2), &mut relays).await;
    let client = Client::open(options(first)).await.unwrap();
    let (tasks, counts) = readers(&client, ROUNDS).await;
    let gate = Arc::new(AtomicBool::new(false));
    let publishers = publishers(&server, ROUNDS, &counts, &gate);
    for (step, (from, to)) in (1..).zip([(1, second), (2, first)]) {
        until_read(&counts, step * ROUNDS * PUBLISHERS / 4).await;
        move_to(&server, &client, from, to).await;
    }
    gate.store(true, Ordering::Relaxed);
    let seen = tokio::time::timeout(wait::PATIENCE, tasks.join_all()).await.expect("all is read");
    publishers.into_iter().for_each(|publisher| publisher.join().unwrap());
    for seen in &seen {
        assert_eq!(seen.overlaps, 2, "{seen:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_names_move_within_the_window() {
    let server = start();
    let client = Client::open(options(address(&server, 1)).command_timeout(wait::PATIENCE)).await.unwrap();
    let names: Vec<String> = (0..10_000).map(|number| format!("many:{number}")).collect();
    let mut many = client.subscribe(&names).await.unwrap();
    let quiet = options(address(&server, 3)).maintenance(MaintenanceMode::Disabled);
    let publisher = Client::open(quiet).await.unwrap();
    for (round, (from, to)) in (0_u32..).zip([(1, 2), (2, 1)]) {
        publisher.publish(&names[7], format!("before {round}")).await.unwrap();
        move_to(&server, &client, from, address(&server, to)).await;
        publisher.publish(&names[9_999], format!("after {round}")).await.unwrap();
        for (name, text) in [(&names[7], "before"), (&names[9_999], "after")] {
            let event = tokio::time::timeout(wait::PATIENCE, many.next()).await.unwrap().unwrap();
            let payload = format!("{text} {round}").into();
            let channel = name.clone().into();
            assert_eq!(event, PubSubEvent::Message { channel, pattern: None, payload });
        }
    }
    assert_eq!(many.try_next(), None);
}

//! Leased connections and blocking commands while their endpoint moves, on real sockets.
//!
//! The server listens on two addresses; a drain of one names the other as its successor. Windows are short: a move is over
//! when its window is.

use e2e::conn::Conn;
use e2e::odd_peer::{OddPeer, greeting};
use e2e::process::{Server, ServerKind};
use e2e::value::Value;
use e2e::wait;
use rustix::process::Signal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use towline_client::transport::Target;
use towline_client::{
    Client, ConnectOptions, Error, ErrorKind, Frame, LeaseReport, LivenessConfig, MaintenanceMode,
    SecondOpinion, Sent, Transacted, cmd, pipe,
};

type Popped = Option<(String, String)>;

/// The window of a move. The release of blocked commands is due in its first fifth.
const WINDOW_S: u64 = 3;

/// A server with two addresses, and a client of the first.
struct Rig {
    server: Server,
    client: Client,
    observer: Conn,
}

/// Runs a test with a server and a client of its own.
fn with_rig(options: impl FnOnce(ConnectOptions) -> ConnectOptions, test: impl AsyncFnOnce(&mut Rig)) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let server = Server::start(ServerKind::Towline, &["--bind", "127.0.0.1", "127.0.0.2"]).unwrap();
    let observer = server.connect().unwrap();
    runtime.block_on(async {
        let client = Client::open(options(options_of(&server))).await.unwrap();
        test(&mut Rig { server, client, observer }).await;
    });
}

fn same(options: ConnectOptions) -> ConnectOptions {
    options
}

fn options_of(server: &Server) -> ConnectOptions {
    ConnectOptions::new(Target::tcp("127.0.0.1", server.port())).maintenance(MaintenanceMode::Required)
}

fn text(value: Value) -> String {
    match value {
        Value::Bulk(text) | Value::Verbatim(text) | Value::Simple(text) => {
            String::from_utf8_lossy(&text).into_owned()
        }
        other => other.to_string(),
    }
}

/// A line of `CLIENT LIST` for each connection whose last command was `command`.
fn connections_in(conn: &mut Conn, command: &str) -> Vec<String> {
    let list = text(conn.words("CLIENT LIST").unwrap());
    let wanted = format!("cmd={command} ");
    list.lines().filter(|line| line.contains(&wanted)).map(str::to_owned).collect()
}

fn field<'l>(line: &'l str, name: &str) -> &'l str {
    let value = line.split(' ').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
    value.unwrap_or_else(|| panic!("no {name} in {line}"))
}

/// How often the server ran a command.
fn calls(conn: &mut Conn, command: &str) -> u64 {
    let info = text(conn.words("INFO commandstats").unwrap());
    let prefix = format!("cmdstat_{command}:calls=");
    let line = info.lines().find_map(|line| line.strip_prefix(&prefix));
    line.and_then(|rest| rest.split(',').next()).map_or(0, |count| count.parse().unwrap())
}

impl Rig {
    /// Announces that the address `from` moves to the address `to`: 1 or 2.
    fn announce(&mut self, from: u8, to: u8) {
        let port = self.server.port();
        let line = format!("TOWLINE DRAIN WINDOW {WINDOW_S} TO 127.0.0.{to}:{port} ON 127.0.0.{from}:{port}");
        // The observer is drained too.
        let mut conn = self.server.connect().unwrap();
        assert!(matches!(conn.words(&line).unwrap(), Value::Int(_)));
        drop(conn);
    }

    /// Waits until the move is over.
    async fn wait_for_end(&mut self) {
        assert!(
            wait::eventually(|| {
                let Ok(mut conn) = self.server.connect() else { return false };
                let status = conn.words("TOWLINE DRAIN STATUS").unwrap().to_string();
                !status.contains("announced") && !status.contains("closing")
            })
            .await
        );
        self.observer = self.server.connect().unwrap();
    }

    /// Moves from one address to the other.
    async fn make_move(&mut self, from: u8, to: u8) {
        self.announce(from, to);
        self.wait_for_end().await;
    }

    async fn wait_for_blocked(&mut self, count: usize) {
        let field = format!("blocked_clients:{count}\r\n");
        let server = &self.server;
        assert!(
            wait::eventually(|| {
                let mut conn = server.connect().unwrap();
                text(conn.words("INFO clients").unwrap()).contains(&field)
            })
            .await,
            "never saw {field:?}"
        );
    }

    /// Waits until all leased connections are at an address.
    async fn wait_for_all_at(&mut self, command: &str, address: u8) {
        let local = format!("127.0.0.{address}:{}", self.server.port());
        let server = &self.server;
        let is_there = || {
            let mut conn = server.connect().unwrap();
            let lines = connections_in(&mut conn, command);
            !lines.is_empty() && lines.iter().all(|line| field(line, "laddr") == local)
        };
        assert!(wait::eventually(is_there).await, "never all at {local}");
    }

    fn report(&self) -> LeaseReport {
        self.client.lease_report()
    }
}

fn blpop(client: &Client, key: &str, time: f64) -> JoinHandle<Result<Popped, Error>> {
    let (client, key) = (client.clone(), key.to_owned());
    tokio::spawn(async move { cmd("BLPOP").arg(key).arg(time).query::<Popped>(&client).await })
}

fn pair(key: &str, element: &str) -> Popped {
    Some((key.to_owned(), element.to_owned()))
}

/// How a consumer takes an element.
#[derive(Clone, Copy)]
enum Way {
    Left,
    Right,
    Move,
    Lowest,
}

/// One element; an error or an early null ends the test.
async fn take(client: &Client, way: Way) -> String {
    match way {
        Way::Left | Way::Right => {
            let name = if matches!(way, Way::Left) { "BLPOP" } else { "BRPOP" };
            let popped = cmd(name).arg(("queue", 0)).query::<Popped>(client).await;
            popped.unwrap_or_else(|error| panic!("{name}: {error}")).expect("no null without a time").1
        }
        Way::Move => {
            let moved =
                cmd("BLMOVE").arg(("queue", "done", "LEFT", "RIGHT", 60)).query::<Option<String>>(client);
            moved.await.unwrap_or_else(|error| panic!("BLMOVE: {error}")).expect("no null before its time")
        }
        Way::Lowest => {
            let popped =
                cmd("BZPOPMIN").arg(("scores", 0)).query::<Option<(String, String, f64)>>(client).await;
            popped.unwrap_or_else(|error| panic!("BZPOPMIN: {error}")).expect("no null without a time").1
        }
    }
}

/// Pushes numbers to the list and to the sorted set until it is told to stop; how many to each.
fn produce(client: &Client, number: usize, stop: &Arc<AtomicBool>) -> JoinHandle<usize> {
    let (client, stop) = (client.clone(), Arc::clone(stop));
    tokio::spawn(async move {
        let mut count = 0;
        while !stop.load(Ordering::Relaxed) {
            let element = format!("{number}.{count}");
            cmd("RPUSH").arg(("queue", &*element)).query::<u64>(&client).await.unwrap();
            cmd("ZADD").arg(("scores", count, &*element)).query::<u64>(&client).await.unwrap();
            count += 1;
            // Now at full speed, now with a pause in which everybody is blocked.
            if count % 200 == 0 {
                wait_for_none(&client, "LLEN", "queue").await;
            }
        }
        count
    })
}

/// Waits until a key holds nothing.
async fn wait_for_none(client: &Client, length: &str, key: &str) {
    let begun = Instant::now();
    while cmd(length).arg(key).query::<u64>(client).await.unwrap() > 0 {
        assert!(begun.elapsed() < wait::PATIENCE, "{key} is not emptied");
    }
}

/// What every consumer got, until it got `end`.
fn consume(client: &Client, way: Way) -> JoinHandle<Vec<String>> {
    let client = client.clone();
    tokio::spawn(async move {
        let mut taken = Vec::new();
        loop {
            let element = take(&client, way).await;
            if element == "end" {
                return taken;
            }
            taken.push(element);
        }
    })
}

#[test]
fn consumers_lose_and_double_nothing_over_three_moves() {
    with_rig(same, async |rig| {
        let ways = [Way::Left, Way::Right, Way::Move, Way::Left, Way::Right, Way::Move];
        let of_list: Vec<_> = ways.iter().map(|way| consume(&rig.client, *way)).collect();
        let of_set: Vec<_> = (0..4).map(|_| consume(&rig.client, Way::Lowest)).collect();
        let stop = Arc::new(AtomicBool::new(false));
        let producers: Vec<_> = (0..4).map(|number| produce(&rig.client, number, &stop)).collect();
        for (from, to) in [(1, 2), (2, 1), (1, 2)] {
            rig.make_move(from, to).await;
        }
        stop.store(true, Ordering::Relaxed);
        let mut expected = Vec::new();
        for (number, producer) in producers.into_iter().enumerate() {
            let count = producer.await.unwrap();
            expected.extend((0..count).map(|n| format!("{number}.{n}")));
        }
        expected.sort_unstable();
        for (length, key) in [("LLEN", "queue"), ("ZCARD", "scores")] {
            wait_for_none(&rig.client, length, key).await;
        }
        assert!(expected.len() > 1000, "{} elements", expected.len());
        for consumers in [of_list, of_set] {
            let mut taken = Vec::new();
            for consumer in consumers {
                // Each end stops one consumer; which one does not matter.
                while !consumer.is_finished() {
                    cmd("RPUSH").arg(("queue", "end")).query::<u64>(&rig.client).await.unwrap();
                    cmd("ZADD").arg(("scores", 0, "end")).query::<u64>(&rig.client).await.unwrap();
                }
                taken.extend(consumer.await.unwrap());
            }
            taken.sort_unstable();
            assert_eq!(taken.len(), expected.len());
            assert_eq!(taken, expected);
        }
        assert_eq!(rig.report().replies_lost, 0);
    });
}

#[test]
fn what_blocks_for_ever_crosses_a_move_and_is_served() {
    with_rig(same, async |rig| {
        let waiting: Vec<_> = (0..8).map(|n| blpop(&rig.client, &format!("queue{n}"), 0.0)).collect();
        rig.wait_for_blocked(8).await;
        rig.announce(1, 2);
        let announced = Instant::now();
        // They leave early, and not because their server closes them.
        rig.wait_for_all_at("blpop", 2).await;
        assert!(announced.elapsed() < Duration::from_secs(WINDOW_S), "{:?}", announced.elapsed());
        rig.wait_for_blocked(8).await;
        rig.wait_for_end().await;
        rig.wait_for_blocked(8).await;
        for (n, waiting) in waiting.into_iter().enumerate() {
            cmd("RPUSH").arg((format!("queue{n}"), "job")).query::<()>(&rig.client).await.unwrap();
            assert_eq!(waiting.await.unwrap().unwrap(), pair(&format!("queue{n}"), "job"));
        }
        let report = rig.report();
        assert_eq!((report.released, report.opened, report.replies_lost), (8, 16, 0));
    });
}

#[test]
fn a_wait_across_a_move_is_neither_shorter_nor_longer() {
    with_rig(same, async |rig| {
        let begun = Instant::now();
        let waiting = blpop(&rig.client, "queue", 4.0);
        rig.wait_for_blocked(1).await;
        rig.make_move(1, 2).await;
        assert_eq!(waiting.await.unwrap().unwrap(), None);
        assert!(begun.elapsed() >= Duration::from_secs(4), "{:?}", begun.elapsed());
        assert!(begun.elapsed() < Duration::from_secs(7), "{:?}", begun.elapsed());
        assert_eq!(rig.report().released, 1);
    });
}

#[test]
fn a_deadline_ends_a_command_that_moves() {
    with_rig(same, async |rig| {
        let limit = Duration::from_millis(1500);
        let command = cmd("BLPOP").arg(("queue", 0)).deadline(limit);
        let client = rig.client.clone();
        let begun = Instant::now();
        let waiting = tokio::spawn(async move { command.query::<Popped>(&client).await });
        rig.wait_for_blocked(1).await;
        rig.announce(1, 2);
        let error = waiting.await.unwrap().unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Deadline);
        assert!(begun.elapsed() >= limit, "{:?}", begun.elapsed());
        rig.wait_for_blocked(0).await;
    });
}

/// The first blocking command is answered with null, behind an announcement if there is one; the second with its keys. All
/// that comes is written down.
fn releasing_peer(announcement: &'static [u8], heard: &Arc<Mutex<Vec<String>>>) -> OddPeer {
    let heard = Arc::clone(heard);
    OddPeer::start(None, move |command, out| {
        if greeting(command, out) {
            return;
        }
        let words: Vec<_> = command.iter().map(|word| String::from_utf8_lossy(word)).collect();
        let mut heard = heard.lock().unwrap();
        let is_first = !heard.iter().any(|line| line.starts_with("BLPOP") || line.starts_with("XREAD"));
        heard.push(words.join(" "));
        match &*words[0] {
            "XREVRANGE" if words[1] == "empty" => out.extend_from_slice(b"*0\r\n"),
            "XREVRANGE" => out.extend_from_slice(b"*1\r\n*2\r\n$3\r\n5-1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n"),
            _ if is_first => {
                out.extend_from_slice(announcement);
                out.extend_from_slice(b"_\r\n");
            }
            _ => out.extend_from_slice(b"*2\r\n$5\r\nqueue\r\n$3\r\njob\r\n"),
        }
    })
    .unwrap()
}

/// A move in half a minute, to whatever the configured address leads to by then.
const MOVING: &[u8] = b">4\r\n$6\r\nMOVING\r\n:1\r\n:30\r\n_\r\n";

/// What a hand-made server heard of one command, and the command's reply.
async fn against_peer(announcement: &'static [u8], command: towline_client::Cmd) -> (Vec<String>, Frame) {
    let heard = Arc::default();
    let peer = releasing_peer(announcement, &heard);
    let target = Target::tcp(peer.address().ip().to_string(), peer.address().port());
    let client = Client::open(ConnectOptions::new(target)).await.unwrap();
    let reply = command.query::<Frame>(&client).await.unwrap();
    let heard = heard.lock().unwrap().clone();
    (heard, reply)
}

/// A server that releases whom it is about to close: its null is no answer to the caller. Without an announcement it is.
#[tokio::test]
async fn what_the_server_itself_releases_is_issued_again() {
    let (heard, reply) = against_peer(MOVING, cmd("BLPOP").arg(("queue", 0))).await;
    assert_eq!(heard, ["BLPOP queue 0", "BLPOP queue 0"]);
    assert!(!reply.is_null());
    let (heard, reply) = against_peer(b"", cmd("BLPOP").arg(("queue", 0))).await;
    assert_eq!((heard.len(), reply.is_null()), (1, true));
}

#[tokio::test]
async fn a_read_of_what_comes_after_now_goes_on_where_it_began() {
    let read = cmd("XREAD").arg(("BLOCK", 60_000, "STREAMS", "stream", "empty", "$", "$"));
    let (heard, reply) = against_peer(MOVING, read).await;
    assert!(!reply.is_null());
    assert_eq!(heard[..2], ["XREVRANGE stream + - COUNT 1", "XREVRANGE empty + - COUNT 1"]);
    assert_eq!(heard[2], "XREAD BLOCK 60000 STREAMS stream empty 5-1 0");
    assert_eq!(heard.len(), 4);
    let again: Vec<_> = heard[3].split(' ').collect();
    assert_eq!((again[0], &again[3..]), ("XREAD", &["STREAMS", "stream", "empty", "5-1", "0"][..]));
    let left = again[2].parse::<u64>().unwrap();
    assert!((30_000..60_000).contains(&left), "{left} ms are left");
}

#[test]
fn unused_connections_are_not_handed_out_once_their_end_is_known() {
    with_rig(same, async |rig| {
        let waiting: Vec<_> = (0..4).map(|_| blpop(&rig.client, "queue", 0.0)).collect();
        rig.wait_for_blocked(4).await;
        cmd("RPUSH").arg(("queue", ["job"; 4])).query::<()>(&rig.client).await.unwrap();
        for waiting in waiting {
            waiting.await.unwrap().unwrap();
        }
        assert_eq!((rig.report().opened, rig.report().idle), (4, 4));
        rig.announce(1, 2);
        // Announcements and replies come on different connections: the shared one has been told when it has moved.
        let moved = || rig.client.metrics().handoffs == 1;
        assert!(wait::eventually(moved).await);
        let begun = Instant::now();
        while rig.report().opened == 4 {
            assert!(begun.elapsed() < wait::PATIENCE, "they are still handed out");
            assert_eq!(blpop(&rig.client, "queue", 0.01).await.unwrap().unwrap(), None);
        }
        // The others were closed when they were met.
        rig.wait_for_all_at("blpop", 2).await;
        assert_eq!((rig.report().opened, rig.report().idle), (5, 1));
    });
}

#[test]
fn a_watch_goes_on_where_it_is_and_ends_with_its_connection() {
    with_rig(same, async |rig| {
        let quick = rig.client.lease().await.unwrap();
        let slow = rig.client.lease().await.unwrap();
        for lease in [&quick, &slow] {
            cmd("WATCH").arg("total").query::<()>(lease).await.unwrap();
            assert!(!lease.is_moving() && lease.moving_until().is_none());
        }
        rig.announce(1, 2);
        assert!(wait::eventually(|| quick.is_moving() && slow.is_moving()).await);
        assert!(slow.moving_until().unwrap() > Instant::now());
        // Within the window it is as good as ever: it sees a change, and commits without one.
        let change = || pipe().cmd("INCR").arg("total").atomic();
        let committed = change().transact::<(i64,)>(&quick).await.unwrap();
        assert_eq!(committed, Transacted::Committed((1,)));
        let conflict = change().transact::<(i64,)>(&slow).await.unwrap();
        assert_eq!(conflict, Transacted::Conflict);
        cmd("WATCH").arg("total").query::<()>(&slow).await.unwrap();
        rig.wait_for_end().await;
        let ended =
            wait::eventually(|| !slow.is_moving() || slow.snapshot().link != towline_client::LinkState::Up);
        assert!(ended.await);
        let error = change().transact::<(i64,)>(&slow).await.unwrap_err();
        assert_eq!(error.sent(), Sent::No, "{error}");
        assert!(error.is_connection_lost(), "{error}");
        assert_eq!(rig.client.get::<i64>("total").await.unwrap(), 1);
        drop((quick, slow));
        let fresh = rig.client.lease().await.unwrap();
        assert!(!fresh.is_moving());
        cmd("WATCH").arg("total").query::<()>(&fresh).await.unwrap();
        let committed = change().transact::<(i64,)>(&fresh).await.unwrap();
        assert_eq!(committed, Transacted::Committed((2,)));
    });
}

#[test]
fn a_command_that_blocks_on_a_lease_fails_rather_than_saying_that_nothing_came() {
    with_rig(same, async |rig| {
        let lease = rig.client.lease().await.unwrap();
        let waiting =
            tokio::spawn(async move { cmd("BLPOP").arg(("queue", 0)).query::<Popped>(&lease).await });
        rig.wait_for_blocked(1).await;
        rig.make_move(1, 2).await;
        let error = waiting.await.unwrap().unwrap_err();
        assert_eq!(error.sent(), Sent::No, "{error}");
        assert!(error.is_retryable(), "{error}");
    });
}

/// Two processes give the same numbers to different clients: the word that ends a wait must not reach a stranger.
#[test]
fn the_release_meets_nobody_else() {
    with_rig(same, async |rig| {
        let other = Server::start(ServerKind::Towline, &[]).unwrap();
        let waiting = blpop(&rig.client, "queue", 0.0);
        rig.wait_for_blocked(1).await;
        let id = field(&connections_in(&mut rig.observer, "blpop")[0], "id").parse::<i64>().unwrap();
        // Whoever has the same number there waits too.
        let mut others = Vec::new();
        let mut stranger = loop {
            let mut conn = other.connect().unwrap();
            match conn.words("CLIENT ID").unwrap() {
                Value::Int(number) if number == id => break conn,
                Value::Int(number) => assert!(number < id, "{number} is beyond {id}"),
                unexpected => panic!("{unexpected}"),
            }
            others.push(conn);
        };
        stranger.send(&["BLPOP", "stranger", "0"]).unwrap();
        let line = format!("TOWLINE DRAIN WINDOW {WINDOW_S} TO {}", other.address());
        rig.server.connect().unwrap().words(&line).unwrap();
        let mut observer = other.connect().unwrap();
        assert!(wait::eventually(|| connections_in(&mut observer, "blpop").len() == 2).await);
        assert_eq!(calls(&mut observer, "client|unblock"), 0);
        assert_eq!(calls(&mut rig.server.connect().unwrap(), "client|unblock"), 1);
        observer.words("RPUSH stranger theirs").unwrap();
        let reply = stranger.read().unwrap().to_string();
        assert!(reply.contains("theirs"), "{reply}");
        observer.words("RPUSH queue ours").unwrap();
        assert_eq!(waiting.await.unwrap().unwrap(), pair("queue", "ours"));
        assert_eq!(rig.report().released, 1);
    });
}

/// A fresh connection is asked about a silent one: where that one leads, and not where the client was configured to go.
#[test]
fn the_second_opinion_is_asked_where_the_connection_leads() {
    let asking =
        LivenessConfig { second_opinion: Some(SecondOpinion::default()), ..LivenessConfig::default() };
    with_rig(
        |options| options.liveness(asking),
        async |rig| {
            let other = Server::start(ServerKind::Towline, &[]).unwrap();
            let line = format!("TOWLINE DRAIN WINDOW {WINDOW_S} TO {}", other.address());
            rig.server.connect().unwrap().words(&line).unwrap();
            assert!(wait::eventually(|| rig.client.metrics().handoffs == 1).await);
            rig.client.set("key", "there").await.unwrap();
            assert_eq!(other.connect().unwrap().words("GET key").unwrap(), Value::Bulk(b"there".to_vec()));
            rig.wait_for_end().await;
            let connections = rig.client.metrics().connections;
            other.signal(Signal::STOP).unwrap();
            let client = rig.client.clone();
            let asked = cmd("INCR").arg("n").deadline(Duration::from_secs(8));
            let asked = tokio::spawn(async move { asked.query::<i64>(&client).await });
            let has_asked = wait::eventually(|| rig.client.metrics().second_opinions == 1).await;
            // Longer than a silent server is given if others say that it answers.
            let is_late = |age: Option<Duration>| age.is_some_and(|age| age > Duration::from_secs(3));
            let silent =
                wait::eventually(|| asked.is_finished() || is_late(rig.client.snapshot().read_age)).await;
            other.signal(Signal::CONT).unwrap();
            assert!(has_asked && silent, "{}", rig.client.snapshot().to_json());
            assert_eq!(asked.await.unwrap().unwrap(), 1, "a busy server is waited for");
            assert_eq!(rig.client.metrics().connections, connections);
        },
    );
}

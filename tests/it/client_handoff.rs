//! The client while its server moves: nothing fails, nothing runs twice, nothing is reordered.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use e2e::clients::{Lateness, options};
use e2e::fault_proxy::FaultProxy;
use e2e::odd_peer::OddPeer;
use e2e::process::{Server, ServerKind, free_port};
use e2e::wait;
use tokio::task::JoinSet;
use tokio::time::Instant;
use towline_client::transport::TlsOptions;
use towline_client::{Client, ConnectOptions, Event, HandoffEvent, HandoffOrder, cmd};

/// Workers that share one connection.
const WORKERS: usize = 16;

/// Dials to one target that may be in flight, and that may start in 10 ms, by the limiter's defaults: 8 and 20.
const DIALS_PER_10_MS: usize = 8 + 20 + 1;

/// A server with two endpoints over one data set, on one port of two addresses.
struct Endpoints {
    server: Server,
}

impl Endpoints {
    fn start() -> Self {
        let flags = ["--bind", "127.0.0.1", "127.0.0.2"];
        Self { server: Server::start(ServerKind::Towline, &flags).unwrap() }
    }

    fn address(&self, last: u8) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, last], self.server.address().port()))
    }

    /// Tells the connections of one endpoint that they will end.
    async fn drain(&self, from: u8, to: Option<u8>, window: &str) {
        self.drain_to(from, to.map(|to| self.address(to)), window).await;
    }

    async fn drain_to(&self, from: u8, to: Option<SocketAddr>, window: &str) {
        // A connection of its own, which does not listen to what it says itself.
        let quiet = options(self.address(3 - from)).maintenance(towline_client::MaintenanceMode::Disabled);
        let admin = Client::open(quiet).await.unwrap();
        let mut drain = cmd("TOWLINE").arg("DRAIN").arg("WINDOW").arg(window);
        if let Some(to) = to {
            drain = drain.arg("TO").arg(to.to_string());
        }
        drain
            .arg("ON")
            .arg(self.address(from).to_string())
            .query::<towline_client::Frame>(&admin)
            .await
            .unwrap();
    }
}

/// Workers that count, each on a key of its own, until they are told to stop. Every answer must be one more than the
/// one before: a command that failed, ran twice or overtook another would show.
struct Load {
    stop: Arc<AtomicBool>,
    workers: JoinSet<u64>,
}

impl Load {
    fn start(client: &Client) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut workers = JoinSet::new();
        for worker in 0..WORKERS {
            let (client, stop) = (client.clone(), Arc::clone(&stop));
            workers.spawn(async move {
                let mut count = 0;
                while !stop.load(Ordering::Relaxed) {
                    let key = format!("count:{worker}");
                    // Four on the way at once: their order shows too.
                    let incr = || cmd("INCR").arg(&key).no_retry().query::<u64>(&client);
                    let (a, b, c, d) = tokio::join!(incr(), incr(), incr(), incr());
                    for (step, answer) in (1..).zip([a, b, c, d]) {
                        assert_eq!(answer.unwrap(), count + step, "worker {worker}");
                    }
                    count += 4;
                }
                count
            });
        }
        Self { stop, workers }
    }

    /// Stops, and compares what was answered with what the server has.
    async fn finish(self, client: &Client) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        let total: u64 = self.workers.join_all().await.into_iter().sum();
        let mut stored = 0;
        for worker in 0..WORKERS {
            stored += cmd("GET").arg(format!("count:{worker}")).query::<u64>(client).await.unwrap();
        }
        assert_eq!(stored, total, "commands that were answered, and that were executed");
        total
    }
}

fn watch(client: &Client) -> Arc<std::sync::Mutex<Vec<Event>>> {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut events = client.events();
    let into = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Some(event) = events.next().await {
            into.lock().unwrap().push(event);
        }
    });
    seen
}

fn moves(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event, Event::Handoff(HandoffEvent::CutOver { .. }))).count()
}

async fn moves_under_load(options: ConnectOptions, endpoints: &Endpoints, to: &[Option<u8>], window: &str) {
    let client = Client::open(options).await.unwrap();
    let seen = watch(&client);
    let load = Load::start(&client);
    let mut at = 1;
    for (count, to) in (1..).zip(to) {
        endpoints.drain(at, *to, window).await;
        assert!(
            wait::eventually(|| moves(&seen.lock().unwrap()) == count).await,
            "{:?}",
            seen.lock().unwrap()
        );
        at = to.unwrap_or(at);
    }
    let total = load.finish(&client).await;
    assert!(total > 0);
    let events = seen.lock().unwrap().clone();
    let is_trouble = |event: &&Event| {
        matches!(event, Event::Lost { .. } | Event::DialFailed { .. } | Event::HandshakeFailed { .. })
    };
    assert_eq!(events.iter().find(is_trouble), None, "a planned move is no trouble: {events:?}");
    let counters = client.metrics();
    assert_eq!((counters.failed, counters.failed_unknown, counters.repeated), (0, 0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_under_full_load_fails_nothing_in_any_order() {
    for order in [HandoffOrder::Strict, HandoffOrder::PerKey, HandoffOrder::None] {
        let endpoints = Endpoints::start();
        let options = options(endpoints.address(1)).handoff_order(order);
        moves_under_load(options, &endpoints, &[Some(2), Some(1), Some(2)], "5").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_named_successor_the_configured_address_is_dialled_at_half_of_the_window() {
    let endpoints = Endpoints::start();
    moves_under_load(options(endpoints.address(1)), &endpoints, &[None], "2").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_the_window_closes_nothing_that_is_in_use() {
    let endpoints = Endpoints::start();
    let client = Client::open(options(endpoints.address(1))).await.unwrap();
    let seen = watch(&client);
    let load = Load::start(&client);
    endpoints.drain(1, Some(2), "1").await;
    assert!(wait::eventually(|| moves(&seen.lock().unwrap()) == 1).await);
    let ended =
        |events: &[Event]| events.iter().any(|event| matches!(event, Event::Handoff(HandoffEvent::Ended(_))));
    assert!(wait::eventually(|| ended(&seen.lock().unwrap())).await);
    load.finish(&client).await;
    assert_eq!(client.metrics().connections, 2);
}

/// With TLS the successor must be the configured server, whatever address the server gives it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_tls_the_successor_shows_the_configured_servers_certificate() {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (cert, key) = (directory.path().join("server.crt"), directory.path().join("server.key"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let port = free_port().unwrap();
    let tls_port = port.to_string();
    let flags = [
        &["--bind", "127.0.0.1", "127.0.0.2", "--tls-port", &tls_port],
        &["--tls-cert-file", cert.to_str().unwrap(), "--tls-key-file", key.to_str().unwrap()][..],
        &["--tls-auth-clients", "no"],
    ]
    .concat();
    let endpoints = Endpoints { server: Server::start(ServerKind::Towline, &flags).unwrap() };
    let address = |last| SocketAddr::from(([127, 0, 0, last], port));
    let options = options(address(1)).tls(TlsOptions::new().ca_pem(made.cert.pem()));
    let client = Client::open(options).await.unwrap();
    let seen = watch(&client);
    let load = Load::start(&client);
    let admin = Client::open(e2e::clients::options(endpoints.address(1))).await.unwrap();
    let mut drain = cmd("TOWLINE").arg("DRAIN").arg("WINDOW").arg("5").arg("TO").arg(address(2).to_string());
    drain = drain.arg("ON").arg(address(1).to_string());
    drain.query::<towline_client::Frame>(&admin).await.unwrap();
    assert!(wait::eventually(|| moves(&seen.lock().unwrap()) == 1).await, "{:?}", seen.lock().unwrap());
    load.finish(&client).await;
    assert_eq!((client.metrics().failed, client.metrics().successors_failed), (0, 0));
}

/// A successor that refuses, and one that accepts and says nothing: the old connection goes on serving, and what comes
/// of it fails nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_successor_that_cannot_be_had_fails_nothing() {
    let silent = OddPeer::start(None, |_, _| {}).unwrap();
    let refusing = SocketAddr::from(([127, 0, 0, 1], free_port().unwrap()));
    for successor in [refusing, silent.address()] {
        let endpoints = Endpoints::start();
        let client = Client::open(options(endpoints.address(1))).await.unwrap();
        let seen = watch(&client);
        let load = Load::start(&client);
        endpoints.drain_to(1, Some(successor), "2").await;
        // The server closes the old connection at the end of its window at the latest; the load goes on.
        let is_over = |events: &[Event]| {
            events.iter().any(|event| matches!(event, Event::Handoff(HandoffEvent::Ended(_))))
        };
        assert!(wait::eventually(|| is_over(&seen.lock().unwrap())).await, "{:?}", seen.lock().unwrap());
        assert!(wait::eventually(|| client.metrics().connections > 1).await);
        load.finish(&client).await;
        assert_eq!((client.metrics().failed, client.metrics().failed_unknown), (0, 0), "{successor}");
    }
}

/// Five hundred connections of one process are told at once: their successor sees them come as the limiter of dials
/// lets them, and all have moved within the window.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_connections_told_at_once_do_not_storm_the_successor() {
    const CLIENTS: usize = 500;
    let endpoints = Endpoints::start();
    let proxy = FaultProxy::start(endpoints.server.address(), 1, &[]).await.unwrap();
    let mut opening = JoinSet::new();
    for _ in 0..CLIENTS {
        let options = options(endpoints.address(1));
        opening.spawn(async move { Client::open(options).await.unwrap() });
    }
    let clients = opening.join_all().await;
    let lateness = Lateness::measure();
    endpoints.drain_to(1, Some(proxy.address()), "10").await;
    let told = Instant::now();
    let has_moved = |client: &Client| client.metrics().handoffs == 1;
    assert!(wait::eventually(|| clients.iter().all(has_moved)).await);
    assert!(told.elapsed() < lateness.stretch(Duration::from_secs(10)));
    let dials = proxy.dials();
    assert_eq!(dials.len(), CLIENTS);
    let most = dials
        .iter()
        .map(|start| {
            dials.iter().filter(|dial| (*start..*start + Duration::from_millis(10)).contains(dial)).count()
        })
        .max();
    let is_late = lateness.stretch(Duration::ZERO) > Duration::ZERO;
    assert!(is_late || most <= Some(DIALS_PER_10_MS), "{most:?} dials within 10 ms");
    for client in &clients {
        assert_eq!(client.metrics().failed, 0);
        cmd("PING").query::<String>(client).await.unwrap();
    }
}

/// A server that does not announce anything is asked once, and nobody hears of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_without_announcements_are_asked_once() {
    for kind in [ServerKind::Redis70, ServerKind::Redis82, ServerKind::Valkey91] {
        let server = Server::start(kind, &[]).unwrap();
        let client = Client::open(options(server.address())).await.unwrap();
        let seen = watch(&client);
        for round in 2..5 {
            cmd("CLIENT").arg("KILL").arg("SKIPME").arg("no").query::<i64>(&client).await.ok();
            assert!(wait::eventually(|| client.metrics().connections == round).await, "{kind:?}");
        }
        let errors: String = cmd("INFO").arg("errorstats").query(&client).await.unwrap();
        // Redis 7.0 refuses `CLIENT SETINFO` as well, twice on each of the four connections.
        let count = if kind == ServerKind::Redis70 { 1 + 2 * 4 } else { 1 };
        assert!(errors.contains(&format!("errorstat_ERR:count={count}\r\n")), "{kind:?}: {errors}");
        let events = seen.lock().unwrap().clone();
        let is_about_moves = |event: &&Event| matches!(event, Event::Handoff(_) | Event::Maintenance(_));
        assert_eq!(events.iter().find(is_about_moves), None, "{kind:?}");
    }
}

//! The client when servers go and come back: storms, backoff, loading, late starts.
//!
//! `SE` and `Rust` numbers are those of docs/client-pains.md.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use e2e::clients::{Lateness, open, options};
use e2e::fault_proxy::FaultProxy;
use e2e::odd_peer::{OddPeer, greeting};
use e2e::process::{Server, ServerKind, free_port};
use e2e::wait;
use tokio::task::JoinSet;
use tokio::time::Instant;
use towline_client::{BackoffConfig, Client, cmd};
use towline_faults::link::Close;

/// Applications behind one proxy.
const CLIENTS: usize = 200;

/// Dials to one target that may be in flight, and that may start in 10 ms, by the limiter's defaults: 8 and 20. Accepting
/// may be late for those in flight, so both may show at once.
const DIALS_PER_10_MS: usize = 8 + 20 + 1;

async fn two_hundred(proxy: &FaultProxy) -> Vec<Client> {
    let mut opening = JoinSet::new();
    for _ in 0..CLIENTS {
        let options = options(proxy.address());
        opening.spawn(async move { Client::open(options).await.unwrap() });
    }
    opening.join_all().await
}

/// Sends one command on each client; when each was answered, in ascending order.
async fn answered(clients: &[Client]) -> Vec<Instant> {
    let mut waiting = JoinSet::new();
    for client in clients {
        let client = client.clone();
        waiting.spawn(async move {
            cmd("INCR").arg("count").deadline(Duration::from_secs(20)).query::<i64>(&client).await.unwrap();
            Instant::now()
        });
    }
    let mut times = waiting.join_all().await;
    times.sort_unstable();
    times
}

/// The most dials that began within any 10 ms.
fn most_in_10_ms(dials: &[Instant]) -> usize {
    let within = |start: &Instant| {
        dials.iter().filter(|dial| (*start..*start + Duration::from_millis(10)).contains(dial)).count()
    };
    dials.iter().map(within).max().unwrap_or(0)
}

/// SE 8, Rust 10, Rust 7 E1: 200 clients lose their connections at once. None waits a second, and they do not all dial
/// together.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_clients_that_are_cut_come_back_at_once_but_not_all_together() {
    let server = Server::start(ServerKind::Redis70, &[]).unwrap();
    let proxy = FaultProxy::start(server.address(), 1, &[]).await.unwrap();
    let clients = two_hundred(&proxy).await;
    assert!(wait::eventually(|| proxy.open_count() == CLIENTS as u64).await);
    let lateness = Lateness::measure();
    let cut = Instant::now();
    proxy.cut_all(Close::Fin);
    // They dial by themselves: nobody has sent anything.
    assert!(wait::eventually(|| proxy.dial_count() == 2 * CLIENTS).await);
    let times = answered(&clients).await;
    let dials = &proxy.dials()[CLIENTS..];
    let (first, last) = (dials[0] - cut, times[CLIENTS - 1] - cut);
    assert!(first < lateness.stretch(Duration::from_millis(40)), "the first dial came after {first:?}");
    assert!(last < lateness.stretch(Duration::from_millis(1500)), "the last answer came after {last:?}");
    let most = most_in_10_ms(dials);
    // A process that was late accepts everything that waited at once.
    let is_late = lateness.stretch(Duration::ZERO) > Duration::ZERO;
    assert!(is_late || most <= DIALS_PER_10_MS, "{most} dials within 10 ms");
    assert_eq!(proxy.dial_count(), 2 * CLIENTS, "one dial each was enough");
}

/// Rust 7 E2, E3: the server refuses everybody for a while. One client of the process asks for all meanwhile, and nobody
/// waits long afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_clients_do_not_hammer_a_server_that_refuses_them() {
    let server = Server::start(ServerKind::Valkey91, &[]).unwrap();
    let proxy = FaultProxy::start(server.address(), 1, &[]).await.unwrap();
    let clients = two_hundred(&proxy).await;
    let before = proxy.dial_count();
    proxy.set_rules(&["close@dial"]).unwrap();
    proxy.cut_all(Close::Fin);
    // One dial of each at most, begun before anybody knows; then the breaker lets one at a time ask, two to four times a
    // second.
    const PROBES: usize = 4;
    let is_calm = || {
        let dials = proxy.dials();
        let last = &dials[dials.len().saturating_sub(PROBES + 1).max(before)..];
        last.len() > PROBES && last.windows(2).all(|pair| pair[1] - pair[0] > Duration::from_millis(200))
    };
    assert!(wait::eventually(is_calm).await, "{:?}", proxy.dials());
    let asked = proxy.dial_count() - before;
    assert!(asked <= CLIENTS + 2 * PROBES, "{asked} dials");
    proxy.set_rules(&[]).unwrap();
    let lateness = Lateness::measure();
    let up = Instant::now();
    let times = answered(&clients).await;
    let (most, last) = (times[CLIENTS * 95 / 100] - up, times[CLIENTS - 1] - up);
    assert!(most < lateness.stretch(Duration::from_millis(1200)), "95 % were back after {most:?}");
    assert!(last < lateness.stretch(Duration::from_millis(1600)), "all were back after {last:?}");
}

/// SE 7: a server that accepts and hangs holds a bounded number of sockets, however many clients want it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hanging_server_gets_a_bounded_number_of_sockets() {
    let peer = OddPeer::start(None, |_, _| {}).unwrap();
    let hurried = options(peer.address()).connect_timeout(Duration::from_millis(100));
    let clients: Vec<_> = (0..50).map(|_| Client::lazy(hurried.clone()).unwrap()).collect();
    assert!(wait::eventually(|| peer.accepted() >= 40).await);
    // Eight dials at a time; a socket that was closed may be seen as open for a moment.
    assert!(peer.most_open() <= 16, "{} sockets at once", peer.most_open());
    drop(clients);
}

/// SE 20, Rust 25: after an outage of many dials the first answer comes within the longest wait between two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_answer_comes_within_a_second_of_the_servers_return() {
    let server = Server::start(ServerKind::Redis70, &[]).unwrap();
    let proxy = FaultProxy::start(server.address(), 1, &[]).await.unwrap();
    let client = open(proxy.address()).await;
    proxy.set_rules(&["refuse@dial"]).unwrap();
    proxy.cut_all(Close::Reset);
    // Long enough for the backoff to have reached its cap.
    assert!(wait::eventually(|| proxy.dial_count() >= 8).await);
    let waiting = tokio::spawn({
        let client = client.clone();
        async move {
            cmd("INCR").arg("count").query::<i64>(&client).await.unwrap();
            Instant::now()
        }
    });
    proxy.set_rules(&[]).unwrap();
    let lateness = Lateness::measure();
    let up = Instant::now();
    let took = waiting.await.unwrap() - up;
    assert!(took < lateness.stretch(Duration::from_millis(1100)), "{took:?}");
}

/// SE (373): a server that is not there yet when the client starts is found when it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_starts_after_its_client_is_found() {
    let nobody = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port().unwrap()));
    let proxy = FaultProxy::start(nobody, 1, &[]).await.unwrap();
    let client = Client::lazy(options(proxy.address())).unwrap();
    let early = tokio::spawn({
        let client = client.clone();
        async move { cmd("INCR").arg("count").deadline(Duration::from_secs(20)).query::<i64>(&client).await }
    });
    assert!(wait::eventually(|| proxy.dial_count() >= 3).await);
    let server = Server::start(ServerKind::Redis70, &[]).unwrap();
    proxy.set_upstream(server.address());
    assert_eq!(early.await.unwrap().unwrap(), 1);
    client.ready().await.unwrap();
}

/// SE (2853): the waits between dials are those that were asked for, as long as the process does not know better.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_backoff_that_was_asked_for_is_kept() {
    let server = Server::start(ServerKind::Redis70, &[]).unwrap();
    for (wait, least) in [(1, 0), (300, 60)].map(|(wait, least)| (Duration::from_millis(wait), least)) {
        let proxy = FaultProxy::start(server.address(), 1, &["refuse@dial"]).await.unwrap();
        let backoff = BackoffConfig { base: wait, cap: wait, first_jitter: wait, ..BackoffConfig::CLIENT };
        let lateness = Lateness::measure();
        let client = Client::lazy(options(proxy.address()).backoff(backoff)).unwrap();
        // After five failures the breaker of the target has its say too.
        assert!(wait::eventually(|| proxy.dial_count() >= 5).await);
        let dials = proxy.dials();
        let gaps: Vec<_> = dials.windows(2).take(4).map(|pair| pair[1] - pair[0]).collect();
        let most = gaps.iter().max().unwrap();
        assert!(*most < lateness.stretch(wait + Duration::from_millis(25)), "{gaps:?}");
        // Uniform between nothing and the cap, so four of 300 ms are hardly ever this short.
        assert!(dials[4] - dials[0] >= Duration::from_millis(least), "{gaps:?}");
        drop(client);
    }
}

/// Rust 14: a server that loads its data is waited for, in the handshake and afterwards; nothing is lost, nothing runs
/// twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loading_server_is_waited_for() {
    let (refusals, count) = (Arc::new(AtomicU64::new(5)), Arc::new(AtomicU64::new(0)));
    let (left, counted) = (Arc::clone(&refusals), Arc::clone(&count));
    let peer = OddPeer::start(None, move |command, out| {
        let is_ping = command[0] == b"PING";
        let is_handshake = !is_ping && greeting(command, out);
        if is_handshake {
            return;
        }
        let one_less = |left: u64| left.checked_sub(1);
        if left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok() {
            out.extend_from_slice(b"-LOADING Redis is loading the dataset in memory\r\n");
        } else if is_ping {
            greeting(command, out);
        } else {
            let count = counted.fetch_add(1, Ordering::Relaxed) + 1;
            out.extend_from_slice(format!(":{count}\r\n").as_bytes());
        }
    })
    .unwrap();
    let client = Client::lazy(options(peer.address())).unwrap();
    let incr = || cmd("INCR").arg("count").query::<i64>(&client);
    assert_eq!(incr().await.unwrap(), 1);
    assert_eq!(refusals.load(Ordering::Relaxed), 0);
    // A restart in place: the connection stands, its commands are refused for a while.
    refusals.store(6, Ordering::Relaxed);
    let (second, third) = tokio::join!(incr(), incr());
    let mut values = [second.unwrap(), third.unwrap()];
    values.sort_unstable();
    assert_eq!((values, count.load(Ordering::Relaxed)), ([2, 3], 3));
}

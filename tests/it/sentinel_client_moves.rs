//! The client of a primary that real sentinels watch, while the primary changes or dies, under load.
//!
//! The promise: no command fails that was not possibly sent, none runs twice, and commands on one key keep their order. What a
//! primary acknowledged and did not pass on before it lost its place is lost with it, which no client can help; it is counted.

use e2e::ledger_of_keys::{Account, KeyLedger};
use e2e::process::ServerKind;
use e2e::sentinels::{NAME, RealSentinels, Setup};
use e2e::wait;
use std::time::{Duration, Instant};
use towline_client::transport::Target;
use towline_client::{CacheOptions, Client, ConnectOptions, PubSubEvent, SentinelOptions, cmd};

/// Longer than a failover takes on a busy machine.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(20);

fn options(deployment: &RealSentinels) -> ConnectOptions {
    let mut ports = deployment.sentinel_ports().into_iter().map(|port| Target::tcp("127.0.0.1", port));
    let options = ConnectOptions::new(ports.next().unwrap()).client_name("the-client");
    let options = options.command_timeout(COMMAND_TIMEOUT);
    options.sentinel(ports.fold(SentinelOptions::new(NAME), SentinelOptions::sentinel))
}

fn run<F: Future<Output = ()>>(test: impl FnOnce() -> F) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(test());
    runtime.shutdown_background();
}

/// Commands on one of the lists, before and after something happens.
const LOAD: u64 = 60;

/// Waits until the first list is as long, and says how long it is.
async fn grown_to(client: &Client, length: u64) -> u64 {
    let grown = async {
        loop {
            let present: u64 = cmd("LLEN").arg("list:0").query(client).await.unwrap();
            if present >= length {
                return present;
            }
        }
    };
    tokio::time::timeout(wait::PATIENCE, grown).await.unwrap()
}

/// Runs `act` on a deployment under load, and then looks at every command's fate.
fn under_load(kind: ServerKind, act: impl FnOnce(&mut RealSentinels) + Send + 'static) -> Account {
    let mut deployment = RealSentinels::start(kind, &Setup::default()).unwrap();
    let mut account = None;
    run(|| async {
        let client = Client::open(options(&deployment)).await.unwrap();
        let keys = (0..12).map(|number| format!("list:{number}")).collect();
        let ledger = KeyLedger::start(&client, keys);
        let before = grown_to(&client, LOAD).await;
        assert!(before >= LOAD);
        let acted = tokio::task::spawn_blocking(move || {
            act(&mut deployment);
            deployment
        });
        let deployment = acted.await.unwrap();
        // As much on whoever is the primary now. What it holds may be less than before.
        let present = grown_to(&client, 0).await;
        grown_to(&client, present + LOAD).await;
        account = Some(ledger.finish_with_loss(&client).await.unwrap());
        drop(deployment);
    });
    let account = account.unwrap();
    println!("{}: {account:?}", kind.name());
    assert!(account.acknowledged > 100, "{account:?}");
    assert!(account.longest < COMMAND_TIMEOUT, "{account:?}");
    account
}

fn change_places(kind: ServerKind) {
    under_load(kind, |deployment| {
        deployment.fail_over().unwrap();
        deployment.fail_over().unwrap();
    });
}

fn kill(kind: ServerKind) {
    under_load(kind, |deployment| {
        let primary = deployment.primary().unwrap();
        deployment.kill(primary).unwrap();
        deployment.wait_for_heir(primary).unwrap();
    });
}

#[test]
fn replicas_take_over_under_load_on_redis_70() {
    change_places(ServerKind::Redis70);
}

#[test]
fn replicas_take_over_under_load_on_redis_82() {
    change_places(ServerKind::Redis82);
}

#[test]
fn replicas_take_over_under_load_on_valkey_91() {
    change_places(ServerKind::Valkey91);
}

#[test]
fn a_primary_dies_under_load_on_redis_70() {
    kill(ServerKind::Redis70);
}

#[test]
fn a_primary_dies_under_load_on_redis_82() {
    kill(ServerKind::Redis82);
}

#[test]
fn a_primary_dies_under_load_on_valkey_91() {
    kill(ServerKind::Valkey91);
}

/// The sentinels that the client listens to die, all but one of three, and then the last of them has no say in a failover. The
/// client goes on with its primary.
#[test]
fn sentinels_die_and_nothing_happens() {
    let account = under_load(ServerKind::Redis82, |deployment| {
        deployment.leave_sentinels(2);
        let old = deployment.primary().unwrap();
        deployment.kill(old).unwrap();
        deployment.wait_for_heir(old).unwrap();
        deployment.leave_sentinels(1);
        deployment.leave_sentinels(0);
    });
    assert!(account.acknowledged > 100, "{account:?}");
}

/// A primary that died comes back, is made a replica, and gets no commands.
#[test]
fn a_primary_that_comes_back_is_left_alone() {
    let mut deployment = RealSentinels::start(ServerKind::Redis70, &Setup::default()).unwrap();
    run(|| async {
        let client = Client::open(options(&deployment)).await.unwrap();
        client.set("a", "1").await.unwrap();
        let deployment = tokio::task::spawn_blocking(move || {
            let old = deployment.primary().unwrap();
            deployment.kill(old).unwrap();
            deployment.wait_for_heir(old).unwrap();
            deployment.revive(old).unwrap();
            assert!(wait::until(|| deployment.role(old).is_ok_and(|role| role == "slave")));
            (deployment, old)
        });
        let (deployment, old) = deployment.await.unwrap();
        for number in 0..100 {
            client.set("a", number.to_string()).await.unwrap();
        }
        assert_eq!(deployment.clients_of(old, "the-client").unwrap(), 0);
        let heir = deployment.primary().unwrap();
        assert!(deployment.clients_of(heir, "the-client").unwrap() >= 1);
        let knows = |client: &Client| {
            let nodes = client.cluster_report().unwrap().nodes;
            let back = nodes.iter().find(|node| node.address.ends_with(&format!(":{old}")));
            back.is_some_and(|node| node.is_replica && node.link.is_none())
        };
        assert!(wait::eventually(|| knows(&client)).await, "{:?}", client.cluster_report());
    });
}

/// What was read from a primary that was left is not announced any more, so it goes.
#[test]
fn the_cache_keeps_nothing_of_a_primary_that_was_left() {
    let deployment = RealSentinels::start(ServerKind::Valkey91, &Setup::default()).unwrap();
    run(|| async {
        let client = Client::open(options(&deployment).client_cache(CacheOptions::new())).await.unwrap();
        let cache = client.cache().unwrap();
        let keys: Vec<String> = (0..50).map(|number| format!("key:{number}")).collect();
        for key in &keys {
            client.set(key, "old").await.unwrap();
            assert_eq!(cache.get::<String>(key).await.unwrap(), "old");
        }
        let deployment = tokio::task::spawn_blocking(move || {
            deployment.fail_over().unwrap();
            deployment
        });
        let deployment = deployment.await.unwrap();
        let heir = deployment.primary().unwrap();
        // Until the client writes to the heir.
        let mut observer = deployment.server(heir).connect().unwrap();
        for key in &keys {
            loop {
                client.set(key, "new").await.unwrap();
                if observer.words(&format!("GET {key}")).unwrap().bytes() == Some(b"new") {
                    break;
                }
            }
        }
        for key in &keys {
            let limit = Instant::now() + wait::PATIENCE;
            while cache.get::<String>(key).await.unwrap() != "new" {
                assert!(Instant::now() < limit, "{key} is stale for good");
            }
        }
    });
}

/// Subscriptions and leases go where the primary goes.
#[test]
fn subscriptions_and_leases_follow_the_primary() {
    let deployment = RealSentinels::start(ServerKind::Valkey91, &Setup::default()).unwrap();
    run(|| async {
        let client = Client::open(options(&deployment)).await.unwrap();
        let mut news = client.subscribe(["news"]).await.unwrap();
        let lease = client.lease().await.unwrap();
        cmd("WATCH").arg("a").query::<()>(&lease).await.unwrap();
        let old = deployment.primary().unwrap();
        let deployment = tokio::task::spawn_blocking(move || {
            deployment.fail_over().unwrap();
            deployment
        });
        let deployment = deployment.await.unwrap();
        let Some(PubSubEvent::Gap { name, .. }) = news.next().await else { panic!("a gap is told") };
        assert_eq!(name, "news");
        cmd("PUBLISH").arg("news").arg("again").query::<()>(&client).await.unwrap();
        let Some(PubSubEvent::Message { payload, .. }) = news.next().await else { panic!("a message") };
        assert_eq!(payload, "again");
        // What the lease watched ended with its connection; a new one leads to the new primary.
        assert!(wait::until(|| deployment.role(old).is_ok_and(|role| role == "slave")));
        drop(lease);
        let lease = client.lease().await.unwrap();
        let role: (String, i64, towline_client::Frame) = cmd("ROLE").query(&lease).await.unwrap();
        assert_eq!(role.0, "master");
        lease.set("a", "1").await.unwrap();
        assert_eq!(client.get::<String>("a").await.unwrap(), "1");
    });
}

/// A command that blocks is issued again at the new primary, with the time that is left.
#[test]
fn a_blocked_command_follows_the_primary() {
    let deployment = RealSentinels::start(ServerKind::Redis82, &Setup::default()).unwrap();
    run(|| async {
        let client = Client::open(options(&deployment)).await.unwrap();
        let blocked = {
            let client = client.clone();
            tokio::spawn(async move {
                cmd("BLPOP").arg("queue").arg(60).query::<Option<(String, String)>>(&client).await
            })
        };
        assert!(wait::eventually(|| client.lease_report().taken == 1).await);
        let deployment = tokio::task::spawn_blocking(move || {
            deployment.fail_over().unwrap();
            deployment
        });
        let deployment = deployment.await.unwrap();
        let heir = deployment.primary().unwrap();
        assert!(wait::until(|| {
            let reply = deployment.server(heir).connect().unwrap().words("INFO clients").unwrap();
            String::from_utf8_lossy(reply.bytes().unwrap()).contains("blocked_clients:1")
        }));
        cmd("RPUSH").arg("queue").arg("x").query::<()>(&client).await.unwrap();
        assert_eq!(blocked.await.unwrap().unwrap(), Some(("queue".into(), "x".into())));
        assert_eq!(client.lease_report().opened, 1, "at the new primary");
    });
}

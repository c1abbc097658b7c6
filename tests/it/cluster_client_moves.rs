//! The client of a real cluster whose slots move and whose nodes change places or die, under load.
//!
//! The promise: no command fails that was not possibly sent, none runs twice, and commands on one key keep their order.

use e2e::clusters::{RealCluster, key_in};
use e2e::ledger_of_keys::{Account, KeyLedger};
use e2e::process::ServerKind;
use std::time::{Duration, Instant};
use towline_client::transport::Target;
use towline_client::{Client, ClusterOptions, ConnectOptions, Credentials};

/// Longer than a failover takes on a busy machine.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(15);

const NODE_TIMEOUT: Duration = Duration::from_secs(1);

fn options(cluster: &RealCluster) -> ConnectOptions {
    let ports = cluster.ports();
    let seeds = ClusterOptions::new().seed(Target::tcp("127.0.0.1", ports[5]));
    ConnectOptions::new(Target::tcp("127.0.0.1", ports[0])).command_timeout(COMMAND_TIMEOUT).cluster(seeds)
}

/// Runs `act` on a cluster under load, through so many connections to each node; returns what the load came to, and the
/// client. Whatever happens, the client asks for the map about once a second at most.
pub(crate) fn under_load(
    kind: ServerKind,
    lanes: u8,
    act: impl FnOnce(&mut RealCluster) + Send + 'static,
) -> (Account, Client) {
    let mut cluster = RealCluster::start(kind, NODE_TIMEOUT).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let outcome = runtime.block_on(async {
        let client = Client::open(options(&cluster).lanes(lanes)).await.unwrap();
        // The first slots of each primary, which are the first to be moved, and some others.
        let mut keys = Vec::new();
        for primary in cluster.primaries().unwrap() {
            let first = primary.slots[0].0;
            keys.extend((0..6).map(|at| key_in(first + at, "moved")));
            keys.push(key_in(first + 3000, "stays"));
        }
        let begun = Instant::now();
        let ledger = KeyLedger::start(&client, keys);
        let cluster = tokio::task::spawn_blocking(move || {
            act(&mut cluster);
            cluster
        });
        let cluster = cluster.await.unwrap();
        let account = ledger.finish(&client).await.unwrap();
        let refreshes = client.cluster_report().unwrap().refreshes;
        let seconds = begun.elapsed().as_secs();
        assert!(refreshes <= seconds + 3, "{refreshes} refreshes in {seconds} s");
        assert!(account.acknowledged > 100, "{account:?}");
        drop(cluster);
        (account, client)
    });
    runtime.shutdown_background();
    outcome
}

fn reshard(kind: ServerKind) {
    let (account, client) = under_load(kind, 1, |cluster| {
        let primaries = cluster.primaries().unwrap();
        cluster.reshard(&primaries[0], &primaries[1], 20).unwrap();
        cluster.reshard(&primaries[1], &primaries[2], 20).unwrap();
    });
    assert_eq!(account.unknown, 0, "nothing was lost, so nothing is unknown: {account:?}");
    assert!(client.metrics().refused_retried > 10, "commands were sent on: {:?}", client.metrics());
}

fn change_places(kind: ServerKind) {
    let (account, _) = under_load(kind, 1, |cluster| {
        let primaries = cluster.primaries().unwrap();
        cluster.fail_over(&primaries[0]).unwrap();
        cluster.fail_over(&primaries[1]).unwrap();
    });
    assert_eq!(account.unknown, 0, "no connection was lost, so nothing is unknown: {account:?}");
}

/// Nobody is left where the client was told that the cluster is.
fn restart_all(kind: ServerKind) {
    let (account, client) = under_load(kind, 1, |cluster| cluster.restart_all_elsewhere().unwrap());
    let report = client.cluster_report().unwrap();
    assert!(account.longest < COMMAND_TIMEOUT, "{account:?}");
    // Nobody was stopped who had slots.
    assert_eq!(account.unknown, 0, "{account:?} {report:?}");
}

fn kill(kind: ServerKind) {
    let (account, _) = under_load(kind, 1, |cluster| {
        let primaries = cluster.primaries().unwrap();
        cluster.kill(primaries[0].port).unwrap();
        cluster.wait_for_heir(&primaries[0]).unwrap();
    });
    assert!(account.longest < COMMAND_TIMEOUT, "{account:?}");
}

/// The heir of a lost primary is found by asking the replicas, also where nobody may be asked for the map.
#[test]
fn an_heir_is_found_without_the_map() {
    let cluster = RealCluster::start(ServerKind::Valkey91, NODE_TIMEOUT).unwrap();
    let on_all = |words: &str| {
        for port in cluster.ports() {
            let reply = cluster.connect(port).unwrap().words(words).unwrap();
            assert!(reply.error().is_none(), "{words}: {reply}");
        }
    };
    on_all("ACL SETUSER app on >secret ~* &* +@all");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let credentials = Credentials::user("app", "secret");
        let client = Client::open(options(&cluster).credentials(credentials)).await.unwrap();
        let lost = cluster.primaries().unwrap()[0].clone();
        let key = key_in(lost.slots[0].0, "inherited");
        client.set(&key, "before").await.unwrap();
        on_all("ACL SETUSER app -cluster");
        cluster.kill(lost.port).unwrap();
        // A read is repeated if it was on the wire.
        client.get::<Option<String>>(&key).await.unwrap();
        client.set(&key, "after").await.unwrap();
        assert_eq!(client.get::<String>(&key).await.unwrap(), "after");
    });
    runtime.shutdown_background();
}

#[test]
fn slots_move_under_load_on_redis_70() {
    reshard(ServerKind::Redis70);
}

#[test]
fn slots_move_under_load_on_redis_82() {
    reshard(ServerKind::Redis82);
}

#[test]
fn slots_move_under_load_on_valkey_91() {
    reshard(ServerKind::Valkey91);
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

#[test]
fn every_node_is_restarted_on_another_port_under_load_on_redis_70() {
    restart_all(ServerKind::Redis70);
}

#[test]
fn every_node_is_restarted_on_another_port_under_load_on_redis_82() {
    restart_all(ServerKind::Redis82);
}

#[test]
fn every_node_is_restarted_on_another_port_under_load_on_valkey_91() {
    restart_all(ServerKind::Valkey91);
}

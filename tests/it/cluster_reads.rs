//! Reads from the replicas of a real cluster: who answers, and what happens when a replica cannot.

use e2e::clusters::{Member, RealCluster, key_in};
use e2e::process::ServerKind;
use e2e::value::Value;
use e2e::wait::eventually;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use towline_client::transport::Target;
use towline_client::{Client, ClusterOptions, ConnectOptions, ErrorKind, LinkState, ReadFrom, cmd, pipe};

/// Longer than a failover takes on a busy machine.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(20);

const NODE_TIMEOUT: Duration = Duration::from_secs(1);

fn run<F: Future<Output = ()>>(kind: ServerKind, test: impl FnOnce(RealCluster) -> F) {
    let cluster = RealCluster::start(kind, NODE_TIMEOUT).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(test(cluster));
    runtime.shutdown_background();
}

async fn open(cluster: &RealCluster, reads: ClusterOptions) -> Client {
    let ports = cluster.ports();
    // What nodes say of each other changes while the cluster is young.
    let seeds = reads.refresh_interval(Duration::from_secs(1)).seed(Target::tcp("127.0.0.1", ports[5]));
    let options = ConnectOptions::new(Target::tcp("127.0.0.1", ports[0]))
        .command_timeout(COMMAND_TIMEOUT)
        .cluster(seeds);
    Client::open(options).await.unwrap()
}

fn replicas_of(cluster: &RealCluster, primary: &Member) -> Vec<u16> {
    let members = cluster.members().unwrap();
    members.into_iter().filter(|it| it.primary == primary.id).map(|it| it.port).collect()
}

/// How often a node has run a command since it was told to forget.
fn calls(cluster: &RealCluster, port: u16, name: &str) -> u64 {
    let reply = cluster.connect(port).unwrap().words("INFO commandstats").unwrap();
    let text = String::from_utf8_lossy(reply.bytes().unwrap()).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{name}:calls=")));
    line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
}

fn forget_calls(cluster: &RealCluster) {
    for port in cluster.ports() {
        cluster.connect(port).unwrap().words("CONFIG RESETSTAT").unwrap();
    }
}

/// Reads until every replica of the map is connected for reads.
async fn warm_up(client: &Client, keys: &[String]) {
    let reading = tokio::spawn({
        let (client, keys) = (client.clone(), keys.to_vec());
        async move {
            for key in keys.iter().cycle() {
                let _: Option<String> = client.get(key).await.unwrap();
            }
        }
    });
    let are_up = || {
        let report = client.cluster_report().unwrap();
        let mut replicas = report.nodes.iter().filter(|node| node.is_replica);
        replicas.all(|node| node.reader == Some(LinkState::Up))
    };
    assert!(eventually(are_up).await, "{:?}", client.cluster_report());
    reading.abort();
    // Whatever it has begun is over.
    let _ = reading.await;
}

/// Writes keys of all nodes, and waits until the replicas have them.
async fn fill(cluster: &RealCluster, client: &Client) -> Vec<String> {
    let keys: Vec<String> = (0..40).map(|number| format!("key:{number}")).collect();
    for key in &keys {
        client.set(key, key).await.unwrap();
    }
    for primary in cluster.primaries().unwrap() {
        let mut conn = cluster.connect(primary.port).unwrap();
        let set = format!("SET {} x", key_in(primary.slots[0].0, "fence"));
        assert_eq!(conn.words(&set).unwrap().error(), None);
        // What was written before has gone the same way.
        assert_eq!(conn.words("WAIT 1 10000").unwrap(), Value::Int(1));
    }
    keys
}

async fn land_on_replicas(cluster: RealCluster) {
    let client = open(&cluster, ClusterOptions::new().read_from(ReadFrom::PreferReplica)).await;
    let keys = fill(&cluster, &client).await;
    warm_up(&client, &keys).await;
    let primaries: Vec<u16> = cluster.primaries().unwrap().iter().map(|it| it.port).collect();
    let replicas: Vec<u16> = cluster.ports().into_iter().filter(|port| !primaries.contains(port)).collect();
    let sum = |ports: &[u16], name: &str| ports.iter().map(|port| calls(&cluster, *port, name)).sum::<u64>();

    forget_calls(&cluster);
    for key in &keys {
        assert_eq!(client.get::<String>(key).await.unwrap(), *key);
        assert_eq!(cmd("GET").arg(key).query::<String>(&client).await.unwrap(), *key);
        assert_eq!(cmd("STRLEN").arg(key).query::<usize>(&client).await.unwrap(), key.len());
    }
    assert_eq!((sum(&primaries, "get"), sum(&replicas, "get")), (0, 80));
    assert_eq!((sum(&primaries, "strlen"), sum(&replicas, "strlen")), (0, 40));

    // The parts of a split command, and pipelines that only read.
    let values: Vec<String> = cmd("MGET").arg(&keys).query(&client).await.unwrap();
    assert_eq!(values, keys);
    assert_eq!((sum(&primaries, "mget"), sum(&replicas, "mget") > 0), (0, true));
    let mut reads = pipe();
    keys.iter().for_each(|key| _ = reads.push(cmd("GETRANGE").arg(key).arg(0).arg(-1)));
    assert_eq!(reads.query::<Vec<String>>(&client).await.unwrap(), keys);
    assert_eq!((sum(&primaries, "getrange"), sum(&replicas, "getrange")), (0, 40));

    // Writes, pipelines with a write, transactions, and whoever asks for it, are the primaries'.
    forget_calls(&cluster);
    client.set("key:0", "key:0").await.unwrap();
    let mixed = pipe().cmd("SET").arg("key:1").arg("key:1").ignore().cmd("GET").arg("key:1");
    assert_eq!(mixed.query::<(String,)>(&client).await.unwrap(), ("key:1".to_owned(),));
    let whole = pipe().cmd("GET").arg("key:2").atomic();
    assert_eq!(whole.query::<(String,)>(&client).await.unwrap(), ("key:2".to_owned(),));
    let own = cmd("GET").arg("key:3").read_from(ReadFrom::Primary);
    assert_eq!(own.query::<String>(&client).await.unwrap(), "key:3");
    let handle = client.reading_from(ReadFrom::Primary);
    assert_eq!(handle.get::<String>("key:4").await.unwrap(), "key:4");
    // A lease is a connection to the primary.
    let lease = client.lease_for("key:5").await.unwrap();
    assert_eq!(lease.get::<String>("key:5").await.unwrap(), "key:5");
    drop(lease);
    assert_eq!(sum(&replicas, "get"), 0);
    assert_eq!(sum(&primaries, "get"), 5);

    // All of a shard in turn.
    let handle = client.reading_from(ReadFrom::Any);
    for _ in 0..20 {
        handle.get::<()>("key:0").await.unwrap();
    }
    assert_eq!((sum(&primaries, "get"), sum(&replicas, "get")), (15, 10));
    client.close().await;
}

#[test]
fn reads_land_on_replicas_of_redis_70() {
    run(ServerKind::Redis70, land_on_replicas);
}

#[test]
fn reads_land_on_replicas_of_redis_82() {
    run(ServerKind::Redis82, land_on_replicas);
}

#[test]
fn reads_land_on_replicas_of_valkey_91() {
    run(ServerKind::Valkey91, land_on_replicas);
}

/// Readers of the first key of each primary.
struct Load {
    read: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    tasks: Vec<tokio::task::JoinHandle<Vec<String>>>,
}

impl Load {
    fn start(client: &Client, keys: &[String], policies: &[ReadFrom]) -> Self {
        let (read, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let mut tasks = Vec::new();
        for (key, policy) in keys.iter().flat_map(|key| policies.iter().map(move |policy| (key, *policy))) {
            for _ in 0..4 {
                let (client, key) = (client.reading_from(policy), key.clone());
                let (read, is_over) = (Arc::clone(&read), Arc::clone(&is_over));
                tasks.push(tokio::spawn(async move {
                    let mut failures = Vec::new();
                    while !is_over.load(Ordering::Relaxed) {
                        match client.get::<Option<String>>(&key).await {
                            Ok(Some(_)) => _ = read.fetch_add(1, Ordering::Relaxed),
                            Ok(None) => failures.push(format!("{policy:?} {key}: nothing")),
                            Err(error) => failures.push(format!("{policy:?} {key}: {error}")),
                        }
                    }
                    failures
                }));
            }
        }
        Self { read, is_over, tasks }
    }

    /// Waits until so many more reads have succeeded.
    async fn more(&self, count: u64) {
        let target = self.read.load(Ordering::Relaxed) + count;
        assert!(eventually(|| self.read.load(Ordering::Relaxed) >= target).await);
    }

    async fn finish(self) {
        self.is_over.store(true, Ordering::Relaxed);
        for task in self.tasks {
            let failures = task.await.unwrap();
            assert!(failures.is_empty(), "{} failures, {:?}", failures.len(), failures.first());
        }
    }
}

/// A replica takes over, a primary dies, a replica dies.
async fn go_on(cluster: RealCluster) {
    let client = open(&cluster, ClusterOptions::new().read_from(ReadFrom::PreferReplica)).await;
    fill(&cluster, &client).await;
    let primaries = cluster.primaries().unwrap();
    let keys: Vec<String> = primaries.iter().map(|it| key_in(it.slots[0].0, "read")).collect();
    for (key, primary) in keys.iter().zip(&primaries) {
        client.set(key, "x").await.unwrap();
        let replica = replicas_of(&cluster, primary)[0];
        let mut conn = cluster.connect(replica).unwrap();
        conn.words("READONLY").unwrap();
        let get = format!("GET {key}");
        assert!(eventually(|| conn.words(&get).unwrap().bytes() == Some(b"x")).await);
    }
    warm_up(&client, &keys).await;
    let policies = [ReadFrom::PreferReplica, ReadFrom::Any, ReadFrom::Nearest, ReadFrom::Primary];
    let load = Load::start(&client, &keys, &policies);
    load.more(500).await;
    tokio::task::block_in_place(|| cluster.fail_over(&primaries[0]).unwrap());
    load.more(500).await;
    cluster.kill(replicas_of(&cluster, &primaries[2])[0]).unwrap();
    load.more(2000).await;
    cluster.kill(primaries[1].port).unwrap();
    tokio::task::block_in_place(|| cluster.wait_for_heir(&primaries[1]).unwrap());
    load.more(500).await;
    load.finish().await;
    client.close().await;
}

#[test]
fn no_read_fails_when_nodes_of_redis_70_die_or_change_places() {
    run(ServerKind::Redis70, go_on);
}

#[test]
fn no_read_fails_when_nodes_of_redis_82_die_or_change_places() {
    run(ServerKind::Redis82, go_on);
}

#[test]
fn no_read_fails_when_nodes_of_valkey_91_die_or_change_places() {
    run(ServerKind::Valkey91, go_on);
}

#[test]
fn who_is_near_answers_on_valkey_91() {
    run(ServerKind::Valkey91, async |cluster| {
        let primaries = cluster.primaries().unwrap();
        let shards: Vec<(u16, u16)> =
            primaries.iter().map(|it| (it.port, replicas_of(&cluster, it)[0])).collect();
        // Of the first shard the replica is near, of the second the primary, of the third nobody.
        let zones = [("eu-1a", "eu-1b"), ("eu-1b", "eu-1a"), ("eu-1a", "eu-1a")];
        for ((primary, replica), zones) in shards.iter().zip(zones) {
            for (port, zone) in [(primary, zones.0), (replica, zones.1)] {
                let set = format!("CONFIG SET availability-zone {zone}");
                assert_eq!(cluster.connect(*port).unwrap().words(&set).unwrap().error(), None);
            }
        }
        let near = ClusterOptions::new().read_from(ReadFrom::Nearest).zone("eu-1b");
        let client = open(&cluster, near).await;
        // Nodes tell each other their zones with the next messages between them.
        let zones = || {
            let nodes = client.cluster_report().unwrap().nodes;
            nodes.into_iter().filter_map(|node| node.zone).count()
        };
        assert!(eventually(|| zones() == 6).await, "{:?}", client.cluster_report());
        let keys: Vec<String> = primaries.iter().map(|it| key_in(it.slots[0].0, "near")).collect();
        let expected = [shards[0].1, shards[1].0, shards[2].1];
        for (key, port) in keys.iter().zip(expected) {
            // The first reads may find the replica without a connection.
            let is_there = || calls(&cluster, port, "get") > 0;
            while !is_there() {
                client.get::<()>(key).await.unwrap();
            }
        }
        forget_calls(&cluster);
        for key in &keys {
            for _ in 0..10 {
                client.get::<()>(key).await.unwrap();
            }
        }
        for port in cluster.ports() {
            let count = if expected.contains(&port) { 10 } else { 0 };
            assert_eq!(calls(&cluster, port, "get"), count, "{port}: {shards:?}");
        }
        let strict = client.reading_from(ReadFrom::InZone);
        strict.get::<()>(&keys[0]).await.unwrap();
        strict.get::<()>(&keys[1]).await.unwrap();
        let error = strict.get::<()>(&keys[2]).await.unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::NoReplica { policy: ReadFrom::InZone });
        assert!(error.is_retryable(), "{error}");
        client.close().await;
    });
}

/// A replica that has stopped is behind, and then no reads are its.
#[test]
fn a_replica_that_is_too_far_behind_answers_no_reads() {
    run(ServerKind::Redis82, async |cluster| {
        let bounded = ClusterOptions::new().read_from(ReadFrom::PreferReplica).replica_lag_max(1 << 20);
        let client = open(&cluster, bounded).await;
        let keys = fill(&cluster, &client).await;
        warm_up(&client, &keys).await;
        let primary = &cluster.primaries().unwrap()[0];
        let replica = replicas_of(&cluster, primary)[0];
        let key = key_in(primary.slots[0].0, "lag");
        client.set(&key, "0").await.unwrap();
        let lag = || {
            let report = client.cluster_report().unwrap();
            report.nodes.iter().find(|it| it.address.ends_with(&replica.to_string())).unwrap().lag_bytes
        };
        assert!(eventually(|| lag().is_some()).await);
        forget_calls(&cluster);
        client.get::<()>(&key).await.unwrap();
        assert_eq!(calls(&cluster, replica, "get"), 1, "within the bound");
        let strict = client.reading_from(ReadFrom::Replica);
        strict.get::<()>(&key).await.unwrap();

        cluster.server(replica).signal(rustix::process::Signal::STOP).unwrap();
        // Reads that are at the stopped replica already come back when it is found out.
        for number in 1.. {
            client.set(&key, number.to_string()).await.unwrap();
            let read: u32 = client.get(&key).await.unwrap();
            if lag().is_none() {
                assert_eq!(read, number, "the primary has answered");
                break;
            }
        }
        let error = strict.get::<()>(&key).await.unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::NoReplica { policy: ReadFrom::Replica });
        cluster.server(replica).signal(rustix::process::Signal::CONT).unwrap();
        assert!(eventually(|| lag().is_some()).await);
        strict.get::<()>(&key).await.unwrap();
        client.close().await;
    });
}

//! The client of a real cluster: every kind of command goes where it belongs.

use e2e::clusters::{RealCluster, key_in};
use e2e::process::{ServerKind, example_binary, free_port};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use towline_client::transport::Target;
use towline_client::{
    Client, ClusterOptions, ConnectOptions, ErrorKind, PubSubEvent, Script, Transacted, cmd, pipe,
};

fn with_cluster<F: Future<Output = ()>>(kind: ServerKind, test: impl FnOnce(RealCluster, Client) -> F) {
    let cluster = RealCluster::start(kind, Duration::from_secs(2)).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let ports = cluster.ports();
        let url = format!("redis://127.0.0.1:{},127.0.0.1:{}/?cluster=true", ports[4], ports[0]);
        let client = Client::connect(&url).await.unwrap();
        test(cluster, client).await;
    });
    runtime.shutdown_background();
}

async fn every_command(cluster: RealCluster, client: Client) {
    // Keys of all nodes, one by one and together.
    for number in 0..60 {
        client.set(format!("key:{number}"), number.to_string()).await.unwrap();
    }
    let keys: Vec<String> = (0..60).map(|number| format!("key:{number}")).collect();
    let values: Vec<u32> = cmd("MGET").arg(&keys).query(&client).await.unwrap();
    assert_eq!(values, (0..60).collect::<Vec<_>>());
    let missing: Vec<Option<u32>> = cmd("MGET").arg(["none", "key:7"]).query(&client).await.unwrap();
    assert_eq!(missing, [None, Some(7)]);
    cmd("MSET").arg(["key:0", "zero", "key:1", "one", "more", "1"]).query::<()>(&client).await.unwrap();
    assert_eq!(client.get::<String>("key:1").await.unwrap(), "one");
    assert_eq!(cmd("EXISTS").arg(&keys).query::<u64>(&client).await.unwrap(), 60);
    assert_eq!(cmd("DBSIZE").query::<u64>(&client).await.unwrap(), 61);
    assert_eq!(cmd("DEL").arg(&keys[..10]).query::<u64>(&client).await.unwrap(), 10);
    assert_eq!(cmd("KEYS").arg("*").query::<Vec<String>>(&client).await.unwrap().len(), 51);
    assert_eq!(cmd("PING").query::<String>(&client).await.unwrap(), "PONG");
    let scanned = client.scan_all().pattern("key:*").count(7).start().collect().await.unwrap();
    assert_eq!(scanned.len(), 50);

    // What cannot be split is the server's to refuse; what makes no sense here is refused at once.
    let crossing = cmd("SINTER").arg(["a", "b"]).query::<Vec<String>>(&client).await.unwrap_err();
    assert_eq!(crossing.code(), Some("CROSSSLOT"));
    let scan = cmd("SCAN").arg(0).query::<()>(&client).await.unwrap_err();
    assert!(matches!(scan.kind(), ErrorKind::Misuse(_)), "{scan}");

    // Pipelines are split by node, and the replies come in the order of the request.
    let mut pipeline = pipe();
    for number in 10..60 {
        pipeline = pipeline.add_command(cmd("INCR").arg(format!("count:{}", number % 7)));
        pipeline = pipeline.add_command(cmd("GET").arg(format!("key:{number}")));
    }
    let replies: Vec<u64> = pipeline.query(&client).await.unwrap();
    let read: Vec<u64> = replies.iter().copied().skip(1).step_by(2).collect();
    assert_eq!(read, (10..60).collect::<Vec<_>>());
    assert_eq!(replies[0], 1);

    // A transaction has one slot.
    let transaction =
        pipe().cmd("SET").arg("{t}a").arg(1).cmd("INCR").arg("{t}a").ignore().cmd("GET").arg("{t}a");
    let Transacted::Committed((set, got)) = transaction.atomic().transact(&client).await.unwrap() else {
        panic!("it commits")
    };
    assert_eq!((set, got), (String::from("OK"), 2));
    let torn = pipe().cmd("SET").arg("a").arg(1).cmd("SET").arg("b").arg(1).atomic();
    let refused = torn.transact::<()>(&client).await.unwrap_err();
    assert!(refused.to_string().contains("one slot"), "{refused}");

    // Watched keys need a connection to their node.
    assert!(matches!(client.lease().await.unwrap_err().kind(), ErrorKind::Misuse(_)));
    let lease = client.lease_for("{t}a").await.unwrap();
    cmd("WATCH").arg("{t}a").query::<()>(&lease).await.unwrap();
    client.set("{t}a", "9").await.unwrap();
    let change = pipe().cmd("SET").arg("{t}a").arg("0").atomic();
    assert_eq!(change.transact::<()>(&lease).await.unwrap(), Transacted::Conflict);
    drop(lease);

    // Scripts are known node by node.
    let script = Script::new("return redis.call('INCRBY', KEYS[1], ARGV[1])");
    for round in 1..4 {
        for key in ["s1", "s2", "s3", "s4"] {
            assert_eq!(script.key(key).arg(5).query::<i64>(&client).await.unwrap(), 5 * round);
        }
    }
    cmd("SCRIPT FLUSH").query::<()>(&client).await.unwrap();
    assert_eq!(script.key("s1").arg(5).query::<i64>(&client).await.unwrap(), 20);

    let report = client.cluster_report().unwrap();
    assert_eq!((report.nodes.len(), report.slots_covered), (6, 16384));
    assert!(client.metrics().answered > 100);
    assert!(client.snapshot().to_json().contains("\"link\""));
    cmd("FLUSHALL").query::<()>(&client).await.unwrap();
    assert_eq!(cmd("DBSIZE").query::<u64>(&client).await.unwrap(), 0);
    client.close().await;
    assert_eq!(*client.get::<()>("k").await.unwrap_err().kind(), ErrorKind::Closed);
    drop(cluster);
}

/// Seeds that refuse, and one that accepts and says nothing, are asked beside the one that works and not before it.
#[test]
fn nodes_that_are_down_do_not_hold_up_who_connects() {
    with_cluster(ServerKind::Valkey91, |cluster, _| async move {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let silent_port = silent.local_addr().unwrap().port();
        let replica = cluster.members().unwrap().into_iter().find(|member| !member.is_serving()).unwrap();
        cluster.kill(replica.port).unwrap();
        let alive = cluster.primaries().unwrap()[0].port;
        let patience = Duration::from_secs(60);
        let seeds =
            [silent_port, replica.port, free_port().unwrap()].map(|port| Target::tcp("127.0.0.1", port));
        let cluster_options = ClusterOptions::new().seed(Target::tcp("127.0.0.1", alive));
        let cluster_options = seeds[1..].iter().cloned().fold(cluster_options, ClusterOptions::seed);
        let options =
            ConnectOptions::new(seeds[0].clone()).connect_timeout(patience).cluster(cluster_options);
        let begun = Instant::now();
        let client = Client::open(options).await.unwrap();
        client.set("key", "value").await.unwrap();
        // Whoever waits for the silent one waits for the whole time.
        assert!(begun.elapsed() < patience / 2, "{:?}", begun.elapsed());
    });
}

#[test]
fn every_command_goes_where_it_belongs_on_redis_70() {
    with_cluster(ServerKind::Redis70, every_command);
}

#[test]
fn every_command_goes_where_it_belongs_on_redis_82() {
    with_cluster(ServerKind::Redis82, every_command);
}

#[test]
fn every_command_goes_where_it_belongs_on_valkey_91() {
    with_cluster(ServerKind::Valkey91, every_command);
}

/// Valkey has had them since 9.0.
#[test]
fn a_database_above_0_is_selected_on_every_node_on_valkey_91() {
    let cluster =
        RealCluster::start_with(ServerKind::Valkey91, Duration::from_secs(2), &["--cluster-databases", "4"])
            .unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let open = async |database: u32| {
            let url = format!("redis://127.0.0.1:{}/{database}?cluster=true", cluster.ports()[0]);
            Client::connect(&url).await.unwrap()
        };
        let (zero, two) = (open(0).await, open(2).await);
        let keys: Vec<String> = (0..60).map(|number| format!("key:{number}")).collect();
        for key in &keys {
            two.set(key, "two").await.unwrap();
        }
        let count = cmd("EXISTS").arg(&keys);
        assert_eq!(count.clone().query::<u64>(&two).await.unwrap(), 60);
        assert_eq!(count.clone().query::<u64>(&zero).await.unwrap(), 0);
        // Nodes that were replicas until now.
        let primaries = cluster.primaries().unwrap();
        cluster.fail_over(&primaries[0]).unwrap();
        cluster.fail_over(&primaries[1]).unwrap();
        for key in &keys {
            let old = cmd("SET").arg((key, "again", "GET")).query::<String>(&two).await.unwrap();
            assert_eq!(old, "two");
        }
        assert_eq!(count.clone().query::<u64>(&two).await.unwrap(), 60);
        assert_eq!(count.query::<u64>(&zero).await.unwrap(), 0);
        two.close().await;
        zero.close().await;
    });
    runtime.shutdown_background();
}

#[test]
fn the_example_runs() {
    with_cluster(ServerKind::Valkey91, async |cluster, _client| {
        let url = format!("redis://127.0.0.1:{}/?cluster=true", cluster.ports()[3]);
        let example = example_binary("cluster").unwrap();
        let output = std::process::Command::new(example).arg(url).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        for line in [
            "of several nodes: [\"ada\", \"grace\", \"edsger\"]",
            "in one pipeline: 1 and barbara",
            "4 keys",
            "is a replica",
        ] {
            assert!(text.contains(line), "{text}");
        }
    });
}

#[test]
fn a_blocked_command_follows_its_slot() {
    with_cluster(ServerKind::Valkey91, async |cluster, client| {
        let primaries = cluster.primaries().unwrap();
        let key = key_in(primaries[0].slots[0].0, "queue");
        let popping = tokio::spawn({
            let (client, key) = (client.clone(), key.clone());
            async move { cmd("BLPOP").arg(&key).arg(20).query::<(String, String)>(&client).await }
        });
        let mut observer = cluster.connect(primaries[0].port).unwrap();
        let is_blocked = || {
            let info = observer.words("INFO clients").unwrap();
            info.bytes().is_some_and(|info| String::from_utf8_lossy(info).contains("blocked_clients:1\r"))
        };
        assert!(e2e::wait::until(is_blocked));
        tokio::task::block_in_place(|| cluster.reshard(&primaries[0], &primaries[1], 2).unwrap());
        cmd("RPUSH").arg(&key).arg("element").query::<()>(&client).await.unwrap();
        assert_eq!(popping.await.unwrap().unwrap(), (key, "element".to_owned()));
    });
}

#[test]
fn a_scan_misses_no_key_while_slots_move() {
    with_cluster(ServerKind::Redis82, async |cluster, client| {
        let mut pipeline = pipe();
        for number in 0..3000 {
            pipeline = pipeline.add_command(cmd("SET").arg(format!("key:{number}")).arg("x"));
        }
        pipeline.query::<Vec<String>>(&client).await.unwrap();
        let moving = tokio::task::spawn_blocking(move || {
            let primaries = cluster.primaries().unwrap();
            cluster.reshard(&primaries[0], &primaries[2], 60).unwrap();
            cluster.reshard(&primaries[2], &primaries[1], 60).unwrap();
            cluster
        });
        let mut rounds = 0;
        while !moving.is_finished() || rounds == 0 {
            let found = client.scan_all().count(50).start().collect().await.unwrap();
            let expected: BTreeSet<_> = (0..3000).map(|number| format!("key:{number}").into()).collect();
            assert!(found == expected, "missing: {:?}", expected.difference(&found).collect::<Vec<_>>());
            rounds += 1;
        }
        drop(moving.await.unwrap());
    });
}

/// The next message's payload, whatever else happens.
async fn message(subscription: &mut towline_client::Subscription) -> String {
    loop {
        if let PubSubEvent::Message { payload, .. } = subscription.next().await.unwrap() {
            return String::from_utf8(payload.to_vec()).unwrap();
        }
    }
}

#[test]
fn subscriptions_outlive_the_node_that_they_are_on() {
    with_cluster(ServerKind::Redis70, async |cluster, client| {
        let mut news = client.subscribe(["news"]).await.unwrap();
        client.publish("news", "one").await.unwrap();
        assert_eq!(message(&mut news).await, "one");
        // Whoever carries them is killed.
        let carrier = cluster.primaries().unwrap().into_iter().find(|primary| {
            let mut conn = cluster.connect(primary.port).unwrap();
            let channels = conn.words("PUBSUB CHANNELS").unwrap();
            channels.items().is_some_and(|names| !names.is_empty())
        });
        let carrier = carrier.expect("some primary carries the subscription");
        cluster.kill(carrier.port).unwrap();
        let publishing = async {
            loop {
                // Messages between the loss and the next subscription are missing, which an event says.
                let _ = client.publish("news", "two").await;
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            payload = message(&mut news) => assert_eq!(payload, "two"),
            () = publishing => {}
        }
        drop(cluster);
    });
}

#[test]
fn shard_channels_follow_their_slot() {
    with_cluster(ServerKind::Valkey91, async |cluster, client| {
        let primaries = cluster.primaries().unwrap();
        let channel = key_in(primaries[0].slots[0].0, "shard");
        let mut shard = client.ssubscribe([&channel]).await.unwrap();
        client.spublish(&channel, "one").await.unwrap();
        assert_eq!(message(&mut shard).await, "one");
        let across = client.ssubscribe(["a", "b"]).await.unwrap_err();
        assert!(matches!(across.kind(), ErrorKind::Misuse(_)), "{across}");
        tokio::task::block_in_place(|| cluster.reshard(&primaries[0], &primaries[1], 2).unwrap());
        let publishing = async {
            loop {
                let _ = client.spublish(&channel, "two").await;
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            payload = message(&mut shard) => assert_eq!(payload, "two"),
            () = publishing => {}
        }
    });
}

//! The client of a primary that real sentinels watch: it is used as one server.

use e2e::process::{ServerKind, example_binary};
use e2e::sentinels::{NAME, RealSentinels, Setup, quiet_port};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use towline_client::transport::Target;
use towline_client::{
    Client, ConnectOptions, Credentials, ErrorKind, PubSubEvent, ReadFrom, ReplicatedOptions, Script,
    SentinelOptions, Transacted, cmd, pipe,
};

fn options(sentinel_ports: &[u16]) -> ConnectOptions {
    let mut ports = sentinel_ports.iter().map(|port| Target::tcp("127.0.0.1", *port));
    let options = ConnectOptions::new(ports.next().unwrap()).client_name("the-client");
    options.sentinel(ports.fold(SentinelOptions::new(NAME), SentinelOptions::sentinel))
}

fn run<F: Future<Output = ()>>(test: impl FnOnce() -> F) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(test());
    runtime.shutdown_background();
}

async fn every_command(deployment: RealSentinels) {
    let ports = deployment.sentinel_ports();
    // One sentinel leads to the others.
    let url = format!("redis-sentinel://127.0.0.1:{}/{NAME}/3", ports[0]);
    let client = Client::connect(&url).await.unwrap();
    client.set("greeting", "hello").await.unwrap();
    assert_eq!(client.get::<String>("greeting").await.unwrap(), "hello");

    // Keys of what would be several slots are nothing special.
    cmd("MSET").arg(["a", "1", "b", "2", "c", "3"]).query::<()>(&client).await.unwrap();
    assert_eq!(cmd("MGET").arg(["a", "b", "c"]).query::<Vec<u32>>(&client).await.unwrap(), [1, 2, 3]);
    assert_eq!(cmd("SINTER").arg(["x", "y"]).query::<Vec<String>>(&client).await.unwrap(), [""; 0]);
    let transaction = pipe().cmd("INCR").arg("a").cmd("INCR").arg("b").atomic();
    let committed = transaction.transact::<(u32, u32)>(&client).await.unwrap();
    assert_eq!(committed, Transacted::Committed((2, 3)));
    let (a, size): (u32, u32) = pipe().cmd("GET").arg("a").cmd("DBSIZE").query(&client).await.unwrap();
    assert_eq!((a, size), (2, 4));
    let script = Script::new("return redis.call('GET', KEYS[1]) + redis.call('GET', KEYS[2])");
    for _ in 0..2 {
        assert_eq!(script.key("a").key("b").query::<u32>(&client).await.unwrap(), 5);
    }
    let (cursor, found): (u64, Vec<String>) = cmd("SCAN").arg(0).query(&client).await.unwrap();
    assert!(cursor != 0 || found.len() == 4);
    assert_eq!(client.scan_all().start().collect().await.unwrap().len(), 4);
    let mut keys = client.scan_keys::<String>();
    let mut count = 0;
    while let Some(key) = keys.next().await {
        key.unwrap();
        count += 1;
    }
    assert_eq!(count, 4);

    // A lease needs no key.
    let lease = client.lease().await.unwrap();
    cmd("WATCH").arg("a").query::<()>(&lease).await.unwrap();
    client.set("a", "9").await.unwrap();
    let change = pipe().cmd("SET").arg("b").arg("0").atomic();
    assert_eq!(change.transact::<()>(&lease).await.unwrap(), Transacted::Conflict);
    drop(lease);
    let popped = cmd("BLPOP").arg("queue").arg(5);
    let (popped, ()) = tokio::join!(popped.query::<(String, String)>(&client), async {
        cmd("RPUSH").arg("queue").arg("x").query::<()>(&client).await.unwrap();
    });
    assert_eq!(popped.unwrap().1, "x");
    let mut monitor = client.monitor().await.unwrap();
    client.get::<Option<String>>("seen").await.unwrap();
    assert!(monitor.next().await.unwrap().is_ok());

    let mut news = client.subscribe(["news"]).await.unwrap();
    let mut shards = client.ssubscribe(["one", "two"]).await.unwrap();
    cmd("PUBLISH").arg("news").arg("now").query::<()>(&client).await.unwrap();
    cmd("SPUBLISH").arg("two").arg("then").query::<()>(&client).await.unwrap();
    for (messages, text) in [(&mut news, "now"), (&mut shards, "then")] {
        let Some(PubSubEvent::Message { payload, .. }) = messages.next().await else { panic!("a message") };
        assert_eq!(payload, text);
    }

    let report = client.cluster_report().unwrap();
    assert_eq!(report.nodes.len(), 3, "{report:?}");
    assert_eq!(report.nodes.iter().filter(|node| node.is_replica).count(), 2, "{report:?}");
    client.close().await;
    assert!(matches!(client.get::<()>("a").await.unwrap_err().kind(), ErrorKind::Closed));
}

#[test]
fn it_is_used_as_one_server_on_redis_70() {
    let deployment = RealSentinels::start(ServerKind::Redis70, &Setup::default()).unwrap();
    run(|| every_command(deployment));
}

#[test]
fn it_is_used_as_one_server_on_redis_82() {
    let deployment = RealSentinels::start(ServerKind::Redis82, &Setup::default()).unwrap();
    run(|| every_command(deployment));
}

#[test]
fn it_is_used_as_one_server_on_valkey_91() {
    let deployment = RealSentinels::start(ServerKind::Valkey91, &Setup::default()).unwrap();
    run(|| every_command(deployment));
}

/// What only reads may go to replicas, which are connected when somebody asks for that.
#[test]
fn a_handle_may_read_from_replicas() {
    let deployment = RealSentinels::start(ServerKind::Valkey91, &Setup::default()).unwrap();
    run(|| async move {
        let client = Client::open(options(&deployment.sentinel_ports())).await.unwrap();
        client.set("a", "1").await.unwrap();
        let replicas = client.reading_from(ReadFrom::Replica);
        // They have it a moment later.
        while replicas.get::<Option<u32>>("a").await.unwrap().is_none() {}
        let either = client.reading_from(ReadFrom::PreferReplica);
        for _ in 0..20 {
            assert_eq!(replicas.get::<Option<u32>>("missing").await.unwrap(), None);
            assert_eq!(cmd("EXISTS").arg("missing").query::<u32>(&either).await.unwrap(), 0);
        }
        let primary = deployment.primary().unwrap();
        let stats = deployment.server(primary).connect().unwrap().words("INFO commandstats").unwrap();
        let stats = String::from_utf8_lossy(stats.bytes().unwrap()).into_owned();
        assert!(!stats.contains("cmdstat_get:"), "{stats}");
        // What has no key has one server: the primary.
        assert_eq!(cmd("DBSIZE").query::<u32>(&replicas).await.unwrap(), 1);
        assert_eq!(client.get::<u32>("a").await.unwrap(), 1);
        client.close().await;
    });
}

/// Passwords of their own for servers and sentinels, and names instead of addresses.
#[test]
fn servers_and_sentinels_have_their_own_passwords() {
    let setup = Setup {
        password: Some("servers"),
        sentinel_password: Some("sentinels"),
        has_names: true,
        ..Setup::default()
    };
    let deployment = RealSentinels::start(ServerKind::Redis70, &setup).unwrap();
    run(|| async move {
        let ports = deployment.sentinel_ports();
        let right = SentinelOptions::new(NAME).credentials(Credentials::password("sentinels"));
        let options = options(&ports).credentials(Credentials::password("servers"));
        let client = Client::open(options.clone().sentinel(right.clone())).await.unwrap();
        client.set("a", "1").await.unwrap();
        let report = client.cluster_report().unwrap();
        let primary = report.nodes.iter().find(|node| !node.is_replica).unwrap();
        assert!(primary.address.starts_with("localhost:"), "{report:?}");

        // As fred and as rustis write it.
        let at = format!("127.0.0.1:{}", ports[1]);
        for url in [
            format!("redis-sentinel://:servers@{at}?sentinelServiceName={NAME}&sentinelPassword=sentinels"),
            format!("redis+sentinel://:servers@{at}/{NAME}/0?sentinel_password=sentinels"),
        ] {
            let client = Client::connect(&url).await.unwrap();
            assert_eq!(client.get::<String>("a").await.unwrap(), "1", "{url}");
        }

        let wrong = SentinelOptions::new(NAME).credentials(Credentials::password("servers"));
        let refused = Client::open(options.clone().sentinel(wrong)).await.unwrap_err().to_string();
        assert!(refused.contains(&at.replace(&ports[1].to_string(), &ports[0].to_string())), "{refused}");
        assert!(refused.contains("refuses the credentials"), "{refused}");
        let wrong = options.credentials(Credentials::password("sentinels")).sentinel(right);
        let refused = Client::open(wrong).await.unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::Handshake(_)), "{refused}");
    });
}

#[test]
fn an_error_names_each_sentinel_and_what_it_said() {
    let deployment = RealSentinels::start(ServerKind::Redis82, &Setup::default()).unwrap();
    run(|| async move {
        let ports = deployment.sentinel_ports();
        let nobody = quiet_port().unwrap();
        let sentinels = SentinelOptions::new("another").sentinel(Target::tcp("127.0.0.1", nobody));
        let options = options(&ports).sentinel(sentinels).connect_timeout(Duration::from_secs(1));
        let error = Client::open(options).await.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error.kind(), ErrorKind::Connect(_)), "{text}");
        for part in ["`another`", "knows no primary of this name", "refused"] {
            assert!(text.contains(part), "{text}");
        }
        for port in [ports[0], nobody] {
            assert!(text.contains(&format!("127.0.0.1:{port}")), "{text}");
        }
    });
}

#[test]
fn a_client_may_be_there_before_everything_else() {
    run(|| async {
        let ports = [quiet_port().unwrap(), quiet_port().unwrap(), quiet_port().unwrap()];
        let patient = options(&ports).command_timeout(Duration::from_secs(60));
        let client = Client::lazy(patient.clone().connect_timeout(Duration::from_secs(60))).unwrap();
        let opening = tokio::spawn(Client::open(patient.connect_timeout(Duration::from_secs(60))));
        let waiting = {
            let client = client.clone();
            tokio::spawn(async move { client.set("a", "1").await })
        };
        let messages = {
            let client = client.clone();
            tokio::spawn(async move { client.subscribe(["news"]).await })
        };
        let started = tokio::task::spawn_blocking(move || {
            RealSentinels::start_on(ServerKind::Redis70, &Setup::default(), ports)
        });
        let deployment = started.await.unwrap().unwrap();
        waiting.await.unwrap().unwrap();
        let opened = opening.await.unwrap().unwrap();
        assert_eq!(opened.get::<String>("a").await.unwrap(), "1");
        messages.await.unwrap().unwrap();
        client.ready().await.unwrap();
        drop(deployment);
    });
}

/// Sentinels announce what leads nowhere from here.
#[test]
fn announced_addresses_are_mapped() {
    let deployment = RealSentinels::start(ServerKind::Valkey91, &Setup::default()).unwrap();
    run(|| async move {
        let ports = deployment.sentinel_ports();
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let options = options(&ports[..1]).map_addresses(move |host, port| {
            counted.fetch_add(1, Ordering::Relaxed);
            (host == "127.0.0.1").then(|| ("localhost".to_owned(), port))
        });
        let client = Client::open(options).await.unwrap();
        client.set("a", "1").await.unwrap();
        client.subscribe(["news"]).await.unwrap();
        assert!(asked.load(Ordering::Relaxed) >= 2, "for the primary and for the subscription");
    });
}

#[test]
fn without_sentinels_the_primary_is_found_by_its_role() {
    let deployment = RealSentinels::start(ServerKind::Redis82, &Setup::default()).unwrap();
    run(|| async move {
        let ports = deployment.ports();
        // A replica first.
        let mut servers =
            [ports[1], ports[0], ports[2]].into_iter().map(|port| Target::tcp("127.0.0.1", port));
        let options = ConnectOptions::new(servers.next().unwrap()).command_timeout(Duration::from_secs(20));
        let client = Client::open(
            options.replicated(servers.fold(ReplicatedOptions::new(), ReplicatedOptions::server)),
        )
        .await
        .unwrap();
        client.set("a", "1").await.unwrap();
        let report = client.cluster_report().unwrap();
        assert_eq!(report.nodes.iter().filter(|node| node.is_replica).count(), 2, "{report:?}");
        let deployment = tokio::task::spawn_blocking(move || {
            deployment.fail_over().unwrap();
            deployment
        });
        let deployment = deployment.await.unwrap();
        // The old one says no, or ends the connection, and the new one is found.
        for _ in 0..20 {
            client.set("a", "2").await.unwrap();
        }
        drop(deployment);
        let only =
            ConnectOptions::new(Target::tcp("127.0.0.1", ports[1])).replicated(ReplicatedOptions::new());
        let error = Client::open(only.connect_timeout(Duration::from_secs(1))).await.unwrap_err();
        assert!(error.to_string().contains("none of the servers is a primary"), "{error}");
    });
}

/// What is written for redis-rs's sentinel client.
#[test]
fn the_paths_of_redis_rs_lead_here() {
    use towline_client::redis::sentinel::{SentinelClient, SentinelNodeConnectionInfo, SentinelServerType};
    use towline_client::redis::{AsyncCommands, Commands, RedisConnectionInfo};

    let deployment = RealSentinels::start(ServerKind::Redis82, &Setup::default()).unwrap();
    let urls: Vec<String> =
        deployment.sentinel_ports().iter().map(|port| format!("redis://127.0.0.1:{port}")).collect();
    let info = SentinelNodeConnectionInfo::default()
        .set_redis_connection_info(RedisConnectionInfo::default().set_db(1));
    let mut client = SentinelClient::build(urls, NAME, Some(info), SentinelServerType::Master).unwrap();
    let () = client.get_connection().unwrap().set("a", 1).unwrap();
    run(|| async move {
        let mut connection = client.get_async_connection().await.unwrap();
        let value: u32 = connection.incr("a", 1).await.unwrap();
        assert_eq!(value, 2);
        drop(deployment);
    });
}

#[test]
fn the_example_runs() {
    let deployment = RealSentinels::start(ServerKind::Redis70, &Setup::default()).unwrap();
    let url = format!("redis-sentinel://127.0.0.1:{}/{NAME}", deployment.sentinel_ports()[0]);
    let output = std::process::Command::new(example_binary("sentinel").unwrap()).arg(url).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

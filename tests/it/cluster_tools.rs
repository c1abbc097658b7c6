//! Clusters of Towline's nodes under redis-cli's `--cluster` commands, and under cluster clients.

use e2e::clusters::{key_in, redis_cli, slot_of};
use e2e::conn::Conn;
use e2e::peers::{Peer, checkout};
use e2e::process::{CONFIG_FILE, Server, ServerKind};
use e2e::towline_cluster::TowlineCluster;
use e2e::value::Value;
use e2e::wait;
use std::process::Command;

fn ask(conn: &mut Conn, command: &str) -> String {
    match conn.words(command).unwrap() {
        Value::Error(text) => format!("-{}", String::from_utf8_lossy(&text)),
        Value::Int(number) => number.to_string(),
        other => other
            .bytes()
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
            .unwrap_or_else(|| format!("{other:?}")),
    }
}

#[test]
fn redis_cli_makes_a_cluster_and_finds_nothing_wrong_with_it() {
    let cluster = TowlineCluster::lonely(3, &[]).unwrap();
    let mut lonely = cluster.connect(0).unwrap();
    assert!(ask(&mut lonely, "CLUSTER INFO").contains("cluster_known_nodes:1"));
    assert_eq!(ask(&mut lonely, "SET k v"), "-CLUSTERDOWN Hash slot not served");
    let said = cluster.create().unwrap();
    assert!(said.contains("[OK] All 16384 slots covered."), "{said}");
    let checked = cluster.cluster_cli("check", &[]).unwrap();
    assert!(checked.contains("[OK] All nodes agree about slots configuration."), "{checked}");
    let epochs: Vec<String> =
        (0..3).map(|node| ask(&mut cluster.connect(node).unwrap(), "CLUSTER NODES")).collect();
    for nodes in &epochs {
        assert_eq!(nodes.lines().count(), 3, "{nodes}");
        assert_eq!(nodes.matches("myself").count(), 1, "{nodes}");
    }
    let (mut first, mut second) = (cluster.connect(0).unwrap(), cluster.connect(1).unwrap());
    let (here, there) = (key_in(0, "k"), key_in(6000, "k"));
    assert_eq!(ask(&mut first, &format!("SET {here} v")), "OK");
    assert_eq!(ask(&mut second, &format!("SET {there} v")), "OK");
    let moved = format!("-MOVED 6000 127.0.0.1:{}", cluster.servers()[1].port());
    assert_eq!(ask(&mut first, &format!("GET {there}")), moved);
    let info = cluster.cluster_cli("info", &[]).unwrap();
    assert!(info.contains("[OK] 2 keys in 3 masters."), "{info}");
    let called = cluster.cluster_cli("call", &["DBSIZE"]).unwrap();
    assert_eq!(called.matches(": 1").count() + called.matches(": (integer) 1").count(), 2, "{called}");
}

#[test]
fn redis_cli_adds_and_removes_nodes() {
    let mut cluster = TowlineCluster::start(3, &[]).unwrap();
    let port = cluster.start_node(&[]).unwrap();
    let first = cluster.servers()[0].address().to_string();
    let said = redis_cli(&["--cluster", "add-node", &format!("127.0.0.1:{port}"), &first]).unwrap();
    assert!(said.contains("[OK] New node added correctly."), "{said}");
    cluster.wait_until_whole(4).unwrap();
    let id = cluster.id(3).unwrap();
    let said = cluster.cluster_cli("del-node", &[&id]).unwrap();
    assert!(said.contains("CLUSTER RESET SOFT"), "{said}");
    assert!(wait::until(|| (0..3).all(|node| cluster.members(node).is_ok_and(|members| members.len() == 3))));
    assert!(wait::until(|| cluster.members(3).is_ok_and(|members| members.len() == 1)));
    assert_eq!(cluster.id(3).unwrap(), id, "a soft reset keeps the name");
}

#[test]
fn redis_cli_fixes_open_and_uncovered_slots() {
    let cluster = TowlineCluster::start(3, &[]).unwrap();
    let (mut first, mut second) = (cluster.connect(0).unwrap(), cluster.connect(1).unwrap());
    let (one, two) = (cluster.id(0).unwrap(), cluster.id(1).unwrap());
    assert_eq!(ask(&mut second, &format!("CLUSTER SETSLOT 0 IMPORTING {one}")), "OK");
    assert_eq!(ask(&mut first, &format!("CLUSTER SETSLOT 0 MIGRATING {two}")), "OK");
    assert!(ask(&mut first, "CLUSTER NODES").contains(&format!(" [0->-{two}]\n")));
    assert!(ask(&mut second, "CLUSTER NODES").contains(&format!(" [0-<-{one}]\n")));
    assert!(cluster.cluster_cli("check", &[]).is_err());
    cluster.cluster_cli("fix", &[]).unwrap();
    cluster.cluster_cli("check", &[]).unwrap();
    // Nobody's: the tool asks every node for keys, and gives it to one in a transaction.
    assert_eq!(ask(&mut first, "CLUSTER DELSLOTS 5"), "OK");
    assert!(wait::until(|| ask(&mut second, "CLUSTER INFO").contains("cluster_state:fail")));
    assert!(
        ask(&mut second, &format!("GET {}", key_in(5, "k"))).starts_with("-CLUSTERDOWN Hash slot not served")
    );
    assert!(
        ask(&mut second, &format!("GET {}", key_in(6000, "k")))
            .starts_with("-CLUSTERDOWN The cluster is down")
    );
    cluster
        .cluster_cli("fix", &["--cluster-fix-with-unreachable-masters", "--cluster-yes"])
        .unwrap_or_default();
    if ask(&mut first, "CLUSTER INFO").contains("cluster_slots_assigned:16383") {
        // redis-cli wants a terminal's word for it, whatever its flags say; this is what it does then.
        for (line, reply) in [
            ("MULTI", "OK"),
            ("CLUSTER DELSLOTS 5", "QUEUED"),
            ("CLUSTER ADDSLOTS 5", "QUEUED"),
            ("CLUSTER SETSLOT 5 STABLE", "QUEUED"),
            ("CLUSTER BUMPEPOCH", "QUEUED"),
        ] {
            assert_eq!(ask(&mut first, line), reply);
        }
        let Value::Array(replies) = first.words("EXEC").unwrap() else { panic!("EXEC") };
        assert_eq!(replies.len(), 4, "{replies:?}");
        assert_eq!(replies[0].error().as_deref(), Some("ERR Slot 5 is already unassigned"));
        assert_eq!(replies[1].error(), None, "{replies:?}");
    }
    cluster.wait_until_whole(3).unwrap();
    cluster.cluster_cli("check", &[]).unwrap();
}

#[test]
fn a_cluster_comes_back_with_its_slots_after_a_restart() {
    let mut cluster = TowlineCluster::start(3, &["--appendonly", "yes", "--appendfsync", "always"]).unwrap();
    let key = key_in(0, "k");
    assert_eq!(ask(&mut cluster.connect(0).unwrap(), &format!("SET {key} v")), "OK");
    let before = cluster.id(0).unwrap();
    let bus = e2e::process::free_port().unwrap().to_string();
    let flags = ["--cluster-enabled", "yes", "--cluster-port", &bus, "--appendonly", "yes"];
    cluster.servers_mut()[0].restart_elsewhere(&flags).unwrap();
    cluster.wait_until_whole(3).unwrap();
    assert_eq!(cluster.id(0).unwrap(), before);
    assert_eq!(ask(&mut cluster.connect(0).unwrap(), &format!("GET {key}")), "v");
    let port = cluster.servers()[0].port();
    let moved = format!("-MOVED {} 127.0.0.1:{port}", slot_of(&key));
    assert!(wait::until(|| ask(&mut cluster.connect(1).unwrap(), &format!("GET {key}")) == moved));
}

#[test]
fn redis_cli_imports_what_another_server_has() {
    let cluster = TowlineCluster::start(3, &[]).unwrap();
    let other = Server::start(ServerKind::Redis70, &[]).unwrap();
    let mut conn = other.connect().unwrap();
    for n in 0..50 {
        ask(&mut conn, &format!("SET k:{n} v{n}"));
        ask(&mut conn, &format!("RPUSH list:{n} a b {n}"));
    }
    ask(&mut conn, "SET due v PX 1000000");
    ask(&mut conn, "HSET hash f v");
    ask(&mut conn, "ZADD zset 1.5 m");
    ask(&mut conn, "SADD set 1 2 x");
    let from = other.address().to_string();
    cluster.cluster_cli("import", &["--cluster-from", &from]).unwrap();
    assert_eq!(ask(&mut conn, "DBSIZE"), "0", "they have moved");
    let mut nodes: Vec<Conn> = (0..3).map(|node| cluster.connect(node).unwrap()).collect();
    let mut owned = |command: &str| {
        let replies: Vec<String> = nodes.iter_mut().map(|node| ask(node, command)).collect();
        let served: Vec<String> =
            replies.iter().filter(|reply| !reply.starts_with("-MOVED")).cloned().collect();
        assert_eq!(served.len(), 1, "{command}: {replies:?}");
        served[0].clone()
    };
    for n in 0..50 {
        assert_eq!(owned(&format!("GET k:{n}")), format!("v{n}"));
        assert_eq!(owned(&format!("LINDEX list:{n} 2")), n.to_string());
    }
    let left: i64 = owned("PTTL due").parse().unwrap();
    assert!((900_000..=1_000_000).contains(&left), "{left}");
    assert_eq!(
        (owned("HGET hash f"), owned("ZSCORE zset m"), owned("SCARD set")),
        ("v".into(), "1.5".into(), "3".into())
    );
    // Again, with a copy that stays, over what is there.
    for command in ["SET k:0 new", "SET k:1000 v"] {
        ask(&mut conn, command);
    }
    cluster.cluster_cli("import", &["--cluster-from", &from, "--cluster-copy", "--cluster-replace"]).unwrap();
    assert_eq!((owned("GET k:0"), owned("GET k:1000")), ("new".into(), "v".into()));
    assert_eq!(ask(&mut conn, "DBSIZE"), "2", "copies");
}

#[test]
fn redis_cli_sets_the_node_timeout_everywhere() {
    // It rewrites the configuration as well.
    let cluster = TowlineCluster::start(3, &[CONFIG_FILE]).unwrap();
    let said = cluster.cluster_cli("set-timeout", &["7000"]).unwrap();
    assert!(said.contains("3 OK, 0 ERR"), "{said}");
    for node in 0..3 {
        let mut conn = cluster.connect(node).unwrap();
        let Value::Array(pair) = conn.words("CONFIG GET cluster-node-timeout").unwrap() else {
            panic!("no pair")
        };
        assert_eq!(pair[1].bytes(), Some(&b"7000"[..]));
    }
    cluster.wait_until_whole(3).unwrap();
}

#[test]
fn redis_pys_cluster_client_works_with_it() {
    let cluster = TowlineCluster::start(3, &[]).unwrap();
    let output = Command::new(Peer::Python.path().unwrap())
        .arg(checkout().join("tests/py/cluster_client.py"))
        .arg(cluster.servers()[0].port().to_string())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}

#[test]
fn our_own_client_works_with_it() {
    use towline_client::{Client, Transacted, cmd, pipe};
    let cluster = TowlineCluster::start(3, &[]).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let url = format!("redis://127.0.0.1:{}/?cluster=true", cluster.servers()[1].port());
        let client = Client::connect(&url).await.unwrap();
        for number in 0..60 {
            client.set(format!("key:{number}"), number.to_string()).await.unwrap();
        }
        let keys: Vec<String> = (0..60).map(|number| format!("key:{number}")).collect();
        let values: Vec<u32> = cmd("MGET").arg(&keys).query(&client).await.unwrap();
        assert_eq!(values, (0..60).collect::<Vec<_>>());
        assert_eq!(cmd("DBSIZE").query::<u64>(&client).await.unwrap(), 60);
        let crossing = cmd("SINTER").arg(["a", "b"]).query::<Vec<String>>(&client).await.unwrap_err();
        assert_eq!(crossing.code(), Some("CROSSSLOT"));
        let both = pipe().cmd("SET").arg("{t}a").arg(1).cmd("INCR").arg("{t}a");
        let Transacted::Committed((set, count)) = both.atomic().transact(&client).await.unwrap() else {
            panic!("it commits")
        };
        assert_eq!((set, count), (String::from("OK"), 2));
        // A slot that goes to another node takes the client along.
        let slot = slot_of("key:1");
        let owner = (0..3).find(|&node| {
            let members = cluster.members(node).unwrap();
            let me = cluster.id(node).unwrap();
            let mine = members.iter().find(|member| member.id == me).unwrap();
            mine.slots.iter().any(|(first, last)| (*first..=*last).contains(&slot))
        });
        let (from, to) = (owner.unwrap(), (owner.unwrap() + 1) % 3);
        cmd("DEL").arg("key:1").query::<u64>(&client).await.unwrap();
        let new = cluster.id(to).unwrap();
        let others =
            cluster.connect(from).unwrap().words(&format!("CLUSTER COUNTKEYSINSLOT {slot}")).unwrap();
        if others.int() == Some(0) {
            // Said to the old owner: once it answers, it takes no more writes, whoever has not heard of the change yet.
            let said =
                ask(&mut cluster.connect(from).unwrap(), &format!("CLUSTER SETSLOT {slot} NODE {new}"));
            assert_eq!(said, "OK");
            client.set("key:1", "moved").await.unwrap();
            assert_eq!(ask(&mut cluster.connect(to).unwrap(), "GET key:1"), "moved");
        }
        let report = client.cluster_report().unwrap();
        assert_eq!((report.nodes.len(), report.slots_covered), (3, 16384));
        client.close().await;
    });
    runtime.shutdown_background();
}

//! `towline faults serve` over HTTP: each action, seen from raw connections and from redis-py.

pub(crate) mod injector;

use std::path::Path;
use std::process::Command;

use e2e::conn::Conn;
use e2e::peers::{Peer, checkout};
use e2e::process::towline_binary;
use e2e::value::Value;
use e2e::wait;
use injector::{GOOD_END, Injector, frame, frames, number, shards_of};
use serde_json::{Value as Json, json};

#[test]
fn it_says_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("endpoints.json");
    let injector =
        Injector::start(&["--databases", "standalone,other", "--endpoints-file", file.to_str().unwrap()]);
    assert_eq!(injector.http("GET", "/health", "").0, 200);
    assert_eq!(injector.http("GET", "/action", ""), (200, json!({"actions": []})));
    let (one, two) = (injector.address(1, 1), injector.address(2, 1));
    assert_ne!(one.port(), two.port());
    let endpoints: Json = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(endpoints["standalone"]["endpoints"], json!([format!("redis://{one}")]));
    assert_eq!(endpoints["other"]["bdb_id"], 2);
    for (name, kind) in [("username", "default"), ("password", "")] {
        assert_eq!(endpoints["standalone"][name], kind);
    }
    let raw = &endpoints["other"]["raw_endpoints"][0];
    assert_eq!((&raw["addr"], &raw["port"]), (&json!(["127.0.0.1"]), &json!(two.port())));
    assert_eq!(
        (&raw["dns_name"], &raw["proxy_policy"], &raw["uid"]),
        (&"127.0.0.1".into(), &"single".into(), &"2:1".into())
    );
    // Every address of a database is the same data, and databases are apart.
    injector.conn(1, 1).words("SET k 1").unwrap();
    assert_eq!(injector.conn(1, 3).words("GET k").unwrap(), Value::Bulk(b"1".to_vec()));
    assert_eq!(injector.conn(2, 1).words("GET k").unwrap(), Value::Null);
}

#[test]
fn what_cannot_be_is_422_or_404_with_a_reason() {
    let injector = Injector::start(&[]);
    for (method, path, body, status, what) in [
        ("POST", "/action", "bind", 422, "the body is like"),
        ("POST", "/action", r#"{"parameters":{}}"#, 422, "type"),
        ("POST", "/action", r#"{"type":"bind","parameters":{"bdb_id":7}}"#, 422, "bdb_id 7"),
        ("POST", "/action", r#"{"type":"frobnicate"}"#, 422, "unknown action"),
        ("POST", "/action", r#"{"type":"reshard","parameters":{"bdb_id":1}}"#, 422, "means nothing here"),
        (
            "POST",
            "/action",
            r#"{"type":"shard_failure","parameters":{"bdb_id":1}}"#,
            422,
            "means nothing here",
        ),
        ("POST", "/action", r#"{"type":"node_remove"}"#, 422, "means nothing here"),
        ("POST", "/action", r#"{"type":"maintenance_mode"}"#, 422, "means nothing here"),
        ("POST", "/action", r#"{"type":"execute_rlutil_command"}"#, 422, "means nothing here"),
        ("GET", "/action/99", "", 404, "99"),
        ("GET", "/slot-migrate", "", 422, "effect is missing"),
        ("GET", "/slot-migrate?effect=all", "", 422, "unknown effect"),
        ("POST", "/slot-migrate?effect=add&bdb_id=1&trigger=luck", "", 422, "unknown trigger"),
        ("POST", "/topology-change-standalone?effect=dns_resolution_change&bdb_id=1", "", 422, "name server"),
        ("POST", "/rladmin", "rladmin cluster reset", 422, "not among"),
        ("GET", "/nothing", "", 404, "/slot-migrate"),
    ] {
        let (got, answer) = injector.http(method, path, body);
        let error = answer["error"].as_str().unwrap();
        assert_eq!(got, status, "{method} {path} {body}: {error}");
        assert!(error.contains(what) && !error.contains(GOOD_END), "{error}");
    }
    assert_eq!(injector.http("DELETE", "/action", "").0, 405);
    assert_eq!(injector.http("GET", "/action", "").1, json!({"actions": []}), "nothing was started");
}

#[test]
fn migrate_is_announced_to_all_before_and_after() {
    let injector = Injector::start(&[]);
    let mut told = [injector.notified(1, 1, None), injector.notified(1, 2, None)];
    let mut untold = injector.conn(1, 1);
    let two = vec!["1".to_owned(), "3".to_owned()];
    let output = injector.run("migrate", json!({"bdb_id": "1", "cluster_index": "0"}));
    assert!(output["output"].as_str().unwrap().contains("node:3"), "{output}");
    for conn in &mut told {
        let (opening, closing) = (frame(conn, "MIGRATING", 4), frame(conn, "MIGRATED", 3));
        assert!(number(&opening[1]) < number(&closing[1]));
        assert_eq!((shards_of(&opening[3]), shards_of(&closing[2])), (two.clone(), two.clone()));
    }
    assert_eq!(untold.words("PING").unwrap(), Value::Simple(b"PONG".to_vec()));
    // The shards are where they were said to go.
    let status = injector.status();
    assert!(status.contains("redis:1 node:3 master") && status.contains("redis:2 node:2 slave"), "{status}");
}

#[test]
fn failover_swaps_roles_and_is_replayed_to_whoever_comes_late() {
    let injector = Injector::start(&["--pace", "1s"]);
    let mut early = injector.notified(1, 1, None);
    let id = injector.submit("failover", json!({"bdb_id": 1, "cluster_index": 0}));
    let opening = frame(&mut early, "FAILING_OVER", 4);
    assert_eq!(number(&opening[2]), 1);
    let mut late = injector.notified(1, 1, None);
    assert_eq!(number(&frame(&mut late, "FAILING_OVER", 4)[1]), number(&opening[1]));
    for conn in [&mut early, &mut late] {
        assert_eq!(shards_of(&frame(conn, "FAILED_OVER", 3)[2]), ["1", "3"]);
    }
    injector.finish(&id);
    let status = injector.status();
    assert!(status.contains("redis:1 node:1 slave") && status.contains("redis:4 node:2 master"), "{status}");
}

#[test]
fn bind_moves_the_connections_of_the_endpoint_and_no_others() {
    let injector = Injector::start(&["--window", "1500ms"]);
    let (here, there) = (injector.address(1, 1), injector.address(1, 2));
    assert_eq!(here.port(), there.port());
    let mut moving = injector.notified(1, 1, Some("internal-ip"));
    let mut nameless = injector.notified(1, 1, Some("none"));
    let mut silent = injector.conn(1, 1);
    let mut target = injector.notified(1, 2, None);
    let id = injector.submit("bind", json!({"bdb_id": 1}));
    let announced = frame(&mut moving, "MOVING", 4);
    assert_eq!(number(&announced[2]), 2, "rounded up");
    assert_eq!(announced[3], Value::Bulk(there.to_string().into_bytes()));
    assert_eq!(frame(&mut nameless, "MOVING", 4)[3], Value::Null);
    // The old address takes new connections, tells them too, and keeps them.
    let mut late = injector.notified(1, 1, Some("internal-ip"));
    assert_eq!(frame(&mut late, "MOVING", 4)[1], announced[1]);
    let gone = |conn: &mut Conn| assert!(conn.read_to_close().unwrap().is_empty());
    gone(&mut moving);
    gone(&mut nameless);
    gone(&mut silent);
    let output = injector.finish(&id);
    assert!(
        output["output"].as_str().unwrap().contains("of 3 connections 2 were told, 0 left and 3 were closed"),
        "{output}"
    );
    for conn in [&mut late, &mut target, &mut injector.conn(1, 1)] {
        assert_eq!(conn.words("PING").unwrap(), Value::Simple(b"PONG".to_vec()), "no frame, and open");
    }
    assert!(injector.status().contains("endpoint:1:1 node:2 single"));
}

#[test]
fn an_endpoint_can_have_a_name() {
    let injector = Injector::start(&["--name", "127.0.0.2=node2.test", "--name", "127.0.0.1=localhost"]);
    let mut named = injector.notified(1, 1, Some("external-fqdn"));
    let mut numbered = injector.notified(1, 1, Some("external-ip"));
    let id = injector.submit("bind", json!({"bdb_id": 1}));
    let port = injector.address(1, 1).port();
    let text = |host: &str| Value::Bulk(format!("{host}:{port}").into_bytes());
    assert_eq!(frame(&mut named, "MOVING", 4)[3], text("node2.test"));
    assert_eq!(frame(&mut numbered, "MOVING", 4)[3], text("127.0.0.2"));
    injector.finish(&id);
    assert_eq!(injector.endpoints["m-standard"]["raw_endpoints"][0]["dns_name"], "localhost");
}

#[test]
fn a_sequence_does_one_after_the_other() {
    let injector = Injector::start(&[]);
    let mut conn = injector.notified(1, 1, None);
    let actions = json!([{"type": "migrate", "params": {"bdb_id": "1", "cluster_index": "0"}},
        {"type": "bind", "params": {"bdb_id": "1", "cluster_index": "0"}}]);
    let output = injector.run("sequence_of_actions", json!({"bdbId": "1", "actions": actions}));
    assert_eq!(output["output"].as_str().unwrap().lines().count(), 2);
    let numbers = frames(&mut conn, &[("MIGRATING", 4), ("MIGRATED", 3), ("MOVING", 4)]);
    assert!(numbers.is_sorted(), "{numbers:?}");
    // After its masters, which have moved to node 3.
    assert!(injector.status().contains("endpoint:1:1 node:3 single"));
}

#[test]
fn actions_on_one_database_take_turns() {
    let injector = Injector::start(&["--databases", "a,b"]);
    let mut conn = injector.notified(1, 3, None);
    let ids = ["failover", "migrate"].map(|kind| injector.submit(kind, json!({"bdb_id": 1})));
    let tokens = [("FAILING_OVER", 4), ("FAILED_OVER", 3), ("MIGRATING", 4), ("MIGRATED", 3)];
    frames(&mut conn, &tokens);
    ids.iter().for_each(|id| _ = injector.finish(id));
    let (_, list) = injector.http("GET", "/action", "");
    let listed: Vec<_> = list["actions"].as_array().unwrap().iter().map(|job| &job["job_id"]).collect();
    assert_eq!(listed, [&ids[0], &ids[1]]);
    assert_eq!(
        (&list["actions"][1]["action_type"], &list["actions"][1]["status"]),
        (&"migrate".into(), &GOOD_END.into())
    );
    assert!(list["actions"][0]["submitted_at"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn slots_migrate_in_the_eyes_of_every_connection() {
    let injector = Injector::start(&[]);
    let config = |effect: &str| {
        let (status, described) =
            injector.http("GET", &format!("/slot-migrate?effect={effect}&cluster_index=0"), "");
        assert_eq!((status, &described["effect"]), (200, &effect.into()));
        described["triggers"][0]["requirements"][0]["dbconfig"].clone()
    };
    for effect in ["remove-add", "remove", "add", "slot-shuffle"] {
        let created =
            injector.run("create_database", json!({"cluster_index": 0, "database_config": config(effect)}));
        let id = created["bdb_id"].as_u64().unwrap();
        let port = created["raw_endpoints"][0]["port"].as_u64().unwrap();
        assert_eq!(
            created["raw_endpoints"].as_array().unwrap().len(),
            2,
            "an endpoint on each node with masters"
        );
        let mut conns =
            [1, 2, 3].map(|node| Injector::notify(format!("127.0.0.{node}:{port}").parse().unwrap(), None));
        let path = format!("/slot-migrate?effect={effect}&bdb_id={id}&cluster_index=0&trigger=migrate");
        let (status, answer) = injector.http("POST", &path, "");
        assert_eq!(status, 200, "{answer}");
        for conn in &mut conns {
            let (opening, closing) = (frame(conn, "SMIGRATING", 3), frame(conn, "SMIGRATED", 3));
            let Value::Array(moves) = &closing[2] else { panic!("{closing:?}") };
            let [Value::Array(moved)] = moves.as_slice() else { panic!("one source and target: {moves:?}") };
            let [source, target, slots] = moved.as_slice() else { panic!("{moved:?}") };
            assert_eq!(slots, &opening[2]);
            assert_eq!(source, &Value::Bulk(format!("127.0.0.1:{port}").into_bytes()));
            let to = if matches!(effect, "remove-add" | "add") { 3 } else { 2 };
            assert_eq!(target, &Value::Bulk(format!("127.0.0.{to}:{port}").into_bytes()));
        }
        injector.finish(answer["action_id"].as_str().unwrap());
        injector.run("delete_database", json!({"bdb_id": id, "cluster_index": 0}));
    }
}

#[test]
fn topology_changes_are_made_of_the_other_actions() {
    let injector = Injector::start(&[]);
    let (_, described) =
        injector.http("GET", "/topology-change-standalone?effect=conn_drop&cluster_index=0", "");
    assert_eq!(described["triggers"][0]["name"], "bind");
    let mut conn = injector.notified(1, 3, None);
    let run = |effect: &str, trigger: &str| {
        let parameters = json!({"bdb_id": 1, "cluster_index": 0, "effect": effect, "trigger": trigger});
        injector.run("topology_change_standalone", parameters)
    };
    run("data_movement_no_conn_drop", "failover");
    frame(&mut conn, "FAILING_OVER", 4);
    frame(&mut conn, "FAILED_OVER", 3);
    run("conn_drop", "bind");
    frame(&mut conn, "MOVING", 4);
    conn.read_to_close().unwrap();
    let mut conn = injector.notified(1, 1, None);
    let path = "/topology-change-standalone?effect=data_movement_conn_drop&bdb_id=1&trigger=migrate";
    let (status, answer) = injector.http("POST", path, "");
    assert_eq!(status, 200, "{answer}");
    frames(&mut conn, &[("MIGRATING", 4), ("MIGRATED", 3), ("MOVING", 4)]);
    injector.finish(answer["action_id"].as_str().unwrap());
}

#[test]
fn databases_come_and_go() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("endpoints.json");
    let injector = Injector::start(&["--endpoints-file", file.to_str().unwrap()]);
    let config = json!({"name": "new", "port": 0, "memory_size": 1_000_000, "replication": false, "sharding": true,
        "shards_count": 3, "proxy_policy": "single", "authentication_redis_pass": "s3cret"});
    let create = |config: &Json| json!({"cluster_index": 0, "database_config": config});
    let created = injector.run("create_database", create(&config));
    assert_eq!((&created["bdb_id"], &created["tls"]), (&2.into(), &false.into()));
    assert_eq!((&created["username"], &created["password"]), (&"default".into(), &"s3cret".into()));
    let endpoints: Json = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(endpoints["new"], created);
    let address =
        created["endpoints"][0].as_str().unwrap().strip_prefix("redis://").unwrap().parse().unwrap();
    let mut conn = Conn::open(address).unwrap();
    assert!(conn.words("GET k").unwrap().error().unwrap().starts_with("NOAUTH"));
    assert_eq!(conn.words("AUTH default s3cret").unwrap(), Value::Simple(b"OK".to_vec()));
    assert!(injector.status().contains("db:2 new redis active 3 dense disabled"), "{}", injector.status());
    // Names and ports are taken; the first word is what harnesses look for.
    let refused = |config: Json| {
        let body = json!({"type": "create_database", "parameters": create(&config)});
        let (status, answer) = injector.http("POST", "/action", &body.to_string());
        assert_eq!(status, 422, "{answer}");
        answer["error"].as_str().unwrap().to_owned()
    };
    assert!(refused(config).contains("of this name"));
    assert!(refused(json!({"name": "third", "port": address.port()})).starts_with("port_unavailable"));
    assert!(refused(json!({"name": "third", "oss_cluster": true})).contains("CLUSTER"));
    injector.run("delete_database", json!({"bdb_id": 2, "cluster_index": 0}));
    assert!(conn.read_to_close().unwrap().is_empty());
    assert!(Conn::open(address).is_err());
    injector.run("delete_database", json!({"cluster_index": 0, "delete_all": true}));
    assert_eq!(std::fs::read_to_string(&file).unwrap().trim(), "{}");
    assert!(!injector.status().contains("db:1"));
}

#[test]
fn a_database_can_have_tls() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let injector = Injector::start(&["--tls-cert-file", &path(&cert), "--tls-key-file", &path(&key)]);
    let config = json!({"name": "secret", "tls_mode": "enabled"});
    let created = injector.run("create_database", json!({"database_config": config}));
    assert_eq!(created["tls"], true);
    assert!(created["endpoints"][0].as_str().unwrap().starts_with("rediss://"));
    let port = created["raw_endpoints"][0]["port"].to_string();
    let cli = Command::new(Peer::RedisCli.path().unwrap())
        .args(["--tls", "--insecure", "-h", "127.0.0.2", "-p", &port, "ping"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&cli.stdout).trim(), "PONG", "{cli:?}");
}

#[test]
fn rladmin_is_spoken_as_far_as_harnesses_need_it() {
    let injector = Injector::start(&[]);
    let mut conn = injector.notified(1, 1, None);
    let command =
        |text: &str| injector.run("execute_rladmin_command", json!({"bdb_id": "1", "rladmin_command": text}));
    let status = command("status")["output"].as_str().unwrap().to_owned();
    assert_eq!(status, injector.status());
    for section in ["CLUSTER NODES:", "DATABASES:", "ENDPOINTS:", "SHARDS:"] {
        assert!(status.lines().any(|line| line == section), "{status}");
    }
    command("migrate node 1 all_shards target_node 3");
    frames(&mut conn, &[("MIGRATING", 4), ("MIGRATED", 3)]);
    command("failover shard 1 3");
    frames(&mut conn, &[("FAILING_OVER", 4), ("FAILED_OVER", 3)]);
    command("bind endpoint 1:1 policy single");
    frame(&mut conn, "MOVING", 4);
    // Over its own path it is an action too.
    let (code, answer) =
        injector.http("POST", "/rladmin", "rladmin -b 1 migrate node 2 all_shards target_node 1");
    assert_eq!(code, 200, "{answer}");
    injector.finish(answer["action_id"].as_str().unwrap());
    // What fails, fails as an action.
    let id = injector.submit(
        "execute_rladmin_command",
        json!({"bdb_id": 1, "rladmin_command": "migrate node 2 all_shards target_node 1"}),
    );
    let failed = injector.end(&id);
    assert_eq!(failed["status"], "failed");
    assert!(failed["error"].as_str().unwrap().contains("nothing to do"), "{failed}");
}

#[test]
fn notifications_can_be_turned_off_and_on() {
    let injector = Injector::start(&[]);
    let set = |on: bool| {
        injector.run("update_cluster_config", json!({"config": {"client_maint_notifications": on}}))
    };
    set(false);
    let opt_in = |database| injector.conn(database, 1).words("CLIENT MAINT_NOTIFICATIONS ON").unwrap();
    assert!(opt_in(1).error().is_some());
    injector.run("create_database", json!({"database_config": {"name": "later"}}));
    let (_, port) = injector.created("later");
    let later = || Conn::open_resp3(format!("127.0.0.1:{port}").parse().unwrap()).unwrap();
    assert!(later().words("CLIENT MAINT_NOTIFICATIONS ON").unwrap().error().is_some());
    set(true);
    assert_eq!(later().words("CLIENT MAINT_NOTIFICATIONS ON").unwrap(), Value::Simple(b"OK".to_vec()));
    assert_eq!(
        injector.run("reset_cluster", json!({"clean_maintenance_mode": true}))["output"],
        "nothing to do"
    );
    injector.run("reset_cluster", json!({"clean_all_dbs": true, "clean_maintenance_mode": true}));
    assert!(!injector.status().contains("db:"));
}

#[test]
fn a_restart_closes_connections_without_warning() {
    let injector = Injector::start(&[]);
    let mut conns = [injector.notified(1, 1, None), injector.conn(1, 2)];
    assert_eq!(injector.run("dmc_restart", json!({"bdb_id": "1"}))["output"], "2 connections closed");
    conns.iter_mut().for_each(|conn| assert!(conn.read_to_close().unwrap().is_empty()));
    injector.conn(1, 1);
}

#[test]
fn outages_refuse_for_their_time_what_they_are_about() {
    let injector = Injector::start(&["--databases", "a,b"]);
    for (kind, parameters, down) in [
        ("network_failure", json!({"bdb_id": 1, "delay": 1}), [(1, 1), (1, 3)]),
        ("proxy_failure", json!({"bdb_id": 1, "node_id": 2, "delay": "1"}), [(1, 2), (1, 2)]),
        ("node_failure", json!({"node_id": 3, "delay": 1}), [(1, 3), (2, 3)]),
        ("cluster_failure", json!({"delay": 1}), [(1, 1), (2, 2)]),
    ] {
        let mut conns = down.map(|(database, node)| injector.conn(database, node));
        let mut spared = (kind != "cluster_failure").then(|| injector.conn(2, 1));
        let id = injector.submit(kind, parameters);
        for conn in &mut conns {
            assert!(conn.read_to_close().unwrap().is_empty(), "{kind}");
        }
        for (database, node) in down {
            let address = injector.address(database, node);
            assert!(std::net::TcpStream::connect(address).is_err(), "{kind}: {address} is refused");
        }
        injector.finish(&id);
        for (database, node) in down {
            injector.conn(database, node);
        }
        if let Some(conn) = &mut spared {
            assert_eq!(conn.words("PING").unwrap(), Value::Simple(b"PONG".to_vec()), "{kind}");
        }
    }
}

#[test]
fn bad_flags_and_taken_ports_are_one_line() {
    let run = |arguments: &[&str]| {
        let output = Command::new(towline_binary().unwrap())
            .args(["faults", "serve"])
            .args(arguments)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(text.lines().count(), 1, "{text}");
        (output.status.code().unwrap(), text)
    };
    for (arguments, what) in [
        (&["--listen", "0.0.0.0:1"][..], "loopback"),
        (&["--addresses", "127.0.0.1"], "nodes"),
        (&["--window", "5"], "bad time"),
        (&["--name", "127.0.0.9=x"], "no node"),
    ] {
        let (code, text) = run(arguments);
        assert!(code == 2 && text.contains(what), "{text}");
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let (code, text) = run(&["--listen", &address.to_string(), "--port", "0"]);
    assert!(code == 1 && text.contains(&address.to_string()), "{text}");
    let (code, text) = run(&["--listen", "127.0.0.1:0", "--port", &address.port().to_string()]);
    assert!(code == 1 && text.contains("port_unavailable"), "{text}");
}

#[test]
fn sigterm_ends_it_in_the_middle_of_an_action() {
    let mut injector = Injector::start(&["--window", "60s"]);
    let mut conn = injector.notified(1, 1, None);
    injector.submit("bind", json!({"bdb_id": 1}));
    frame(&mut conn, "MOVING", 4);
    assert!(injector.terminate().success());
    assert!(wait::until(|| Conn::open(injector.address(1, 1)).is_err()));
}

/// redis-py with notifications on, retries off, and ten threads under load, while the endpoint moves.
fn redis_py_moves(script: &str) {
    let injector = Injector::start(&["--window", "3s", "--pace", "500ms"]);
    let output = Command::new(Peer::Python.path().unwrap())
        .arg(checkout().join("tests/py").join(script))
        .arg(injector.url())
        .arg(injector.address(1, 1).to_string())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{script}:\n{out}{err}");
}

#[test]
fn redis_py_moves_under_load_without_an_error() {
    redis_py_moves("maintenance.py");
}

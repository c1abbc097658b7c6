//! `SYNC` and `PSYNC`: tools that fetch a snapshot, and real servers that follow as replicas.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use e2e::conn::Conn;
use e2e::process::{Server, ServerKind};
use e2e::wait;

const PEERS: [ServerKind; 3] = [ServerKind::Redis70, ServerKind::Redis82, ServerKind::Valkey91];

fn ok(conn: &mut Conn, command: &str) {
    let reply = conn.words(command).unwrap();
    assert_eq!(reply.error(), None, "{command}");
}

fn text(conn: &mut Conn, command: &str) -> String {
    let reply = conn.words(command).unwrap();
    String::from_utf8_lossy(reply.bytes().unwrap_or_default()).into_owned()
}

/// The value of an INFO field; empty if there is none.
fn info(conn: &mut Conn, field: &str) -> String {
    let all = text(conn, "INFO everything");
    let line = all.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.unwrap_or_default().to_owned()
}

/// Everything in a database, as text that is the same on every server: each key with its value and its expiry.
fn contents(conn: &mut Conn, db: u8) -> Vec<String> {
    ok(conn, &format!("SELECT {db}"));
    let mut keys: Vec<String> = match conn.words("KEYS *").unwrap() {
        e2e::value::Value::Array(keys) => {
            keys.iter().map(|key| String::from_utf8_lossy(key.bytes().unwrap()).into_owned()).collect()
        }
        other => panic!("{other:?}"),
    };
    keys.sort();
    let describe = |key: String| {
        let kind = match conn.words(&format!("TYPE {key}")).unwrap() {
            e2e::value::Value::Simple(kind) => String::from_utf8_lossy(&kind).into_owned(),
            other => panic!("{other:?}"),
        };
        let read = match kind.as_str() {
            "string" => format!("GET {key}"),
            "list" => format!("LRANGE {key} 0 -1"),
            "set" => format!("SMEMBERS {key}"),
            "zset" => format!("ZRANGE {key} 0 -1 WITHSCORES"),
            "hash" => format!("HGETALL {key}"),
            other => panic!("{key} is a {other}"),
        };
        let mut value = match conn.words(&read).unwrap() {
            e2e::value::Value::Array(parts) => parts.iter().map(|part| format!("{part:?}")).collect(),
            other => vec![format!("{other:?}")],
        };
        if kind == "set" {
            value.sort();
        }
        if kind == "hash" {
            let mut pairs: Vec<String> = value.chunks(2).map(|pair| pair.join("=")).collect();
            pairs.sort();
            value = pairs;
        }
        let expiry = conn.words(&format!("PEXPIRETIME {key}")).unwrap();
        format!("{key} {expiry:?} {kind} {}", value.join(","))
    };
    keys.into_iter().map(describe).collect()
}

/// Data of every type in two databases.
fn fill(conn: &mut Conn) {
    let many = |count: u32| (0..count).map(|i| format!(" m{i}")).collect::<String>();
    for command in [
        "SET string hello".to_owned(),
        "SET expiring v PXAT 4102444800000".to_owned(),
        format!("SET long {}", "towline".repeat(20_000)),
        format!("RPUSH list{}", many(5_000)),
        "SADD ints 1 2 300".to_owned(),
        format!("SADD set{}", many(3_000)),
        format!("ZADD scores{}", (0..3_000).map(|i| format!(" {i}.5 m{i}")).collect::<String>()),
        format!("HSET fields{}", many(4_000)),
        "SELECT 3".to_owned(),
        "SET other database".to_owned(),
        "SELECT 0".to_owned(),
    ] {
        ok(conn, &command);
    }
}

/// Commands of every kind, some of them with an outcome that only the primary knows.
fn change(conn: &mut Conn, round: u32) {
    for command in [
        format!("INCR counter{{{}}}", round % 7),
        format!("SET k{round} v{round} EX 1000"),
        "SPOP set 2".to_owned(),
        format!("RPUSH list n{round}"),
        "LPOP list".to_owned(),
        format!("ZINCRBY scores 1.25 m{}", round % 100),
        format!("HSET fields m{} {round}", round % 50),
        "HINCRBYFLOAT fields f 0.5".to_owned(),
        "MULTI".to_owned(),
        format!("SET a {round}"),
        format!("SET b {round}"),
        "EXEC".to_owned(),
        format!("RENAME k{round} r{}", round % 20),
        format!("SETRANGE long {} {round}", round % 1000),
        format!("SELECT {}", if round.is_multiple_of(3) { 3 } else { 0 }),
    ] {
        ok(conn, &command);
    }
    if round.is_multiple_of(40) {
        ok(conn, "SELECT 5");
        ok(conn, &format!("SET gone {round}"));
        ok(conn, "FLUSHDB");
        ok(conn, "SELECT 0");
    }
}

/// Says so when it is dropped, however that comes about.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `body` while another thread changes pairs of counters, always both.
fn under_load(server: &Server, body: impl FnOnce()) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut conn = server.connect().unwrap();
        let is_over = &is_over;
        scope.spawn(move || {
            for round in 0.. {
                let pair = round % 100;
                let commands =
                    ["MULTI".to_owned(), format!("INCR x{pair}"), format!("INCR y{pair}"), "EXEC".to_owned()];
                commands.iter().for_each(|command| ok(&mut conn, command));
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        let _over = Over(is_over);
        body();
    });
}

fn redis_cli() -> Command {
    Command::new(std::env::var("REDIS_CLI").unwrap_or_else(|_| "redis-cli".into()))
}

fn start_on(kind: ServerKind, directory: &Path) -> Server {
    let server = Server::start(kind, &["--dir", directory.to_str().expect("UTF-8")]).unwrap();
    let mut conn = server.connect().unwrap();
    assert!(wait::until(|| conn.words("DBSIZE").unwrap().error().is_none()), "{kind:?} loads on");
    server
}

#[test]
fn redis_cli_fetches_the_data_of_one_instant_under_load() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    fill(&mut conn);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("dump.rdb");
    under_load(&server, || {
        let port = server.port().to_string();
        let done = redis_cli().args(["-p", &port, "--rdb"]).arg(&file).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{said}");
        assert!(std::fs::metadata(&file).unwrap().len() > 100_000, "{said}");
    });
    assert!(wait::until(|| info(&mut conn, "connected_slaves") == "0"), "its feed ends with its connection");
    let redis = start_on(ServerKind::Redis70, directory.path());
    let mut loaded = redis.connect().unwrap();
    for pair in 0..100 {
        assert_eq!(text(&mut loaded, &format!("GET x{pair}")), text(&mut loaded, &format!("GET y{pair}")));
    }
    let is_constant = |line: &String| !line.starts_with('x') && !line.starts_with('y');
    for db in [0, 3] {
        let of = |conn: &mut Conn| contents(conn, db).into_iter().filter(is_constant).collect::<Vec<_>>();
        assert_eq!(of(&mut conn), of(&mut loaded), "database {db}");
    }
}

#[test]
fn a_client_that_knows_no_marks_is_told_the_length_and_then_the_commands() {
    let server = Server::under_test(&[]).unwrap();
    let mut writer = server.connect().unwrap();
    ok(&mut writer, "SET before 1");
    let mut replica = server.connect().unwrap();
    replica.send(&["SYNC"]).unwrap();
    // The snapshot has the form of a bulk string, but for the line end behind it.
    let snapshot = replica.read_snapshot().unwrap();
    assert!(snapshot.starts_with(b"REDIS0010"), "{}", snapshot.escape_ascii());
    assert!(snapshot.windows(6).any(|window| window == b"before"));
    ok(&mut writer, "SELECT 2");
    ok(&mut writer, "SET after 2 EX 100");
    for command in ["MULTI", "SET a 1", "DEL before", "SET b 2", "EXEC"] {
        ok(&mut writer, command);
    }
    let mut commands = Vec::new();
    while commands.last().is_none_or(|last| last != "EXEC") {
        let command = replica.read().unwrap();
        let e2e::value::Value::Array(words) = command else { panic!("{command:?}") };
        let words: Vec<_> =
            words.iter().map(|word| String::from_utf8_lossy(word.bytes().unwrap()).into_owned()).collect();
        commands.push(words.join(" "));
    }
    assert_eq!(commands[0], "SELECT 2");
    assert!(commands[1].starts_with("SET after 2 PXAT "), "{commands:?}");
    assert_eq!(commands[2..], ["MULTI", "SET a 1", "SET b 2", "EXEC"]);
    assert_eq!(
        std::fs::read_dir(server.directory())
            .unwrap()
            .flatten()
            .filter(|entry| { entry.file_name().to_string_lossy().starts_with("temp") })
            .count(),
        0,
        "the file is gone"
    );
}

#[test]
fn real_servers_follow_as_replicas() {
    for kind in PEERS {
        let server = Server::under_test(&[]).unwrap();
        let mut conn = server.connect().unwrap();
        fill(&mut conn);
        let replica = Server::start(kind, &[]).unwrap();
        let mut following = replica.connect().unwrap();
        under_load(&server, || {
            ok(&mut following, &format!("REPLICAOF 127.0.0.1 {}", server.port()));
            (0..200).for_each(|round| change(&mut conn, round));
            assert!(
                wait::until(|| info(&mut following, "master_link_status") == "up"),
                "{kind:?} does not follow:\n{}\n{}",
                replica.log(),
                server.log()
            );
            (200..400).for_each(|round| change(&mut conn, round));
        });
        ok(&mut conn, "SELECT 0");
        ok(&mut conn, "SET the-last 1");
        assert!(
            wait::until(|| text(&mut following, "GET the-last") == "1"),
            "{kind:?} is behind:\n{}",
            replica.log()
        );
        for db in [0, 3, 5] {
            assert_eq!(contents(&mut conn, db), contents(&mut following, db), "{kind:?}, database {db}");
        }
        let line = info(&mut conn, "slave0");
        assert!(line.contains(&format!("port={},state=online", replica.port())), "{line}");
        assert!(wait::until(|| !info(&mut conn, "slave0").contains("offset=0,")), "it acknowledges");
        let listed = text(&mut conn, "CLIENT LIST TYPE replica");
        assert!(listed.contains("flags=S") && listed.lines().count() == 1, "{listed}");
        drop(replica);
        assert!(wait::until(|| info(&mut conn, "connected_slaves") == "0"));
    }
}

#[test]
fn a_replica_that_reads_nothing_is_given_up_and_costs_a_bounded_amount() {
    let server = Server::under_test(&["--client-output-buffer-limit", "replica", "4mb", "0", "0"]).unwrap();
    let mut conn = server.connect().unwrap();
    let mut replica = server.connect().unwrap();
    replica.words("PSYNC ? -1").unwrap();
    assert!(wait::until(|| info(&mut conn, "slave0").contains("state=online")));
    let before = server.resident_bytes().unwrap();
    let value = "x".repeat(100_000);
    let mut written = 0;
    while info(&mut conn, "connected_slaves") != "0" {
        for _ in 0..10 {
            ok(&mut conn, &format!("SET k {value}"));
        }
        written += 1_000_000;
        assert!(written < 200_000_000, "the feed goes on");
    }
    // What the kernel's buffers took, and the limit, and not everything that was written.
    assert!(server.log().contains("client-output-buffer-limit replica"), "{}", server.log());
    let grown = server.resident_bytes().unwrap().saturating_sub(before);
    assert!(grown < 40_000_000, "grown by {grown} bytes");
    replica.set_read_timeout(Duration::from_secs(10)).unwrap();
    assert!(replica.read_to_close().is_ok());
}

#[test]
fn a_snapshot_without_keys_and_nothing_after_it() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    fill(&mut conn);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("dump.rdb");
    let port = server.port().to_string();
    let done = redis_cli().args(["-p", &port, "--functions-rdb"]).arg(&file).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(std::fs::metadata(&file).unwrap().len() < 1000);
    let redis = start_on(ServerKind::Redis70, directory.path());
    assert_eq!(redis.connect().unwrap().words("DBSIZE").unwrap().int(), Some(0));
}

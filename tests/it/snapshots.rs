//! Snapshots and logs that Towline writes under load, before real servers and their tools.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use e2e::conn::Conn;
use e2e::peers::Peer;
use e2e::process::{Server, ServerKind};
use e2e::wait;

/// Connections that count.
const WRITERS: usize = 4;
/// Pairs of counters that each of them counts.
const PAIRS: usize = 500;

/// Redis's own checking tool.
fn check(tool: &str, file: &Path) {
    let output = Command::new(Peer::Redis70.path().unwrap())
        .arg0(format!("redis-check-{tool}"))
        .arg(file)
        .output()
        .expect("the tool starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

fn start(kind: ServerKind, directory: &Path, flags: &[&str]) -> Server {
    let directory = directory.to_str().expect("UTF-8");
    let server = Server::start(kind, &[&["--dir", directory], flags].concat()).unwrap();
    let mut conn = server.connect().unwrap();
    assert!(wait::until(|| conn.words("DBSIZE").unwrap().error().is_none()), "{kind:?} loads on");
    server
}

/// Counts pairs of keys in different slots, each pair in a transaction, until it is told to stop; says how often.
fn count(server: &Server, writer: usize, stop: &AtomicBool) -> u64 {
    let mut conn = server.connect().unwrap();
    let mut transactions = 0;
    while !stop.load(Ordering::Relaxed) {
        let pair = transactions as usize % PAIRS;
        for line in ["MULTI", &format!("INCR a:{writer}:{pair}"), &format!("INCR b:{writer}:{pair}"), "EXEC"]
        {
            assert_eq!(conn.words(line).unwrap().error(), None, "{line}");
        }
        transactions += 1;
    }
    transactions
}

fn value(conn: &mut Conn, key: &str) -> u64 {
    let reply = conn.words(&format!("GET {key}")).unwrap();
    reply.bytes().map_or(0, |text| String::from_utf8_lossy(text).parse().unwrap())
}

/// The sum of all counters, each of which must equal its twin.
fn sum(conn: &mut Conn) -> u64 {
    let mut sum = 0;
    for writer in 0..WRITERS {
        for pair in 0..PAIRS {
            let (a, b) =
                (value(conn, &format!("a:{writer}:{pair}")), value(conn, &format!("b:{writer}:{pair}")));
            assert_eq!(a, b, "writer {writer}, pair {pair}");
            sum += a;
        }
    }
    sum
}

fn info(conn: &mut Conn, name: &str) -> String {
    let reply = conn.words("INFO persistence").unwrap();
    let text = String::from_utf8_lossy(reply.bytes().unwrap()).into_owned();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
}

fn until_info(conn: &mut Conn, name: &str, value: &str) {
    assert!(wait::until(|| info(conn, name) == value), "{name} is {}", info(conn, name));
}

/// Runs `during` while clients count, and returns how many transactions were answered.
fn under_load(server: &Server, during: impl FnOnce(&mut Conn)) -> u64 {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn({
                    let stop = &stop;
                    move || count(server, writer, stop)
                })
            })
            .collect();
        let mut conn = server.connect().unwrap();
        during(&mut conn);
        stop.store(true, Ordering::Relaxed);
        writers.into_iter().map(|writer| writer.join().unwrap()).sum()
    })
}

#[test]
fn a_snapshot_under_load_is_the_data_of_one_instant_and_real_redis_loads_it() {
    let directory = tempfile::tempdir().unwrap();
    let server = start(ServerKind::Towline, directory.path(), &[]);
    let mut conn = server.connect().unwrap();
    assert_eq!(conn.words("DEBUG POPULATE 100000 filler 100").unwrap().error(), None);
    under_load(&server, |conn| {
        for saves in 1..=3 {
            assert_eq!(conn.words("BGSAVE").unwrap().error(), None);
            until_info(conn, "rdb_bgsave_in_progress", "0");
            assert_eq!(info(conn, "rdb_saves"), saves.to_string());
            assert_eq!(info(conn, "rdb_last_bgsave_status"), "ok");
        }
    });
    let file = directory.path().join("dump.rdb");
    check("rdb", &file);
    let redis = tempfile::tempdir().unwrap();
    std::fs::copy(&file, redis.path().join("dump.rdb")).unwrap();
    let redis = start(ServerKind::Redis70, redis.path(), &[]);
    sum(&mut redis.connect().unwrap());
}

#[test]
fn rewrites_under_load_lose_nothing_and_real_redis_loads_the_log() {
    for (fsync, preamble) in [("always", "yes"), ("everysec", "no")] {
        let directory = tempfile::tempdir().unwrap();
        let flags = ["--appendonly", "yes", "--appendfsync", fsync, "--aof-use-rdb-preamble", preamble];
        let server = start(ServerKind::Towline, directory.path(), &flags);
        let mut conn = server.connect().unwrap();
        assert_eq!(conn.words("DEBUG POPULATE 20000 filler 100").unwrap().error(), None);
        let transactions = under_load(&server, |conn| {
            for _ in 0..3 {
                assert_eq!(conn.words("BGREWRITEAOF").unwrap().error(), None);
                until_info(conn, "aof_rewrite_in_progress", "0");
                assert_eq!(info(conn, "aof_last_bgrewrite_status"), "ok");
            }
        });
        assert_eq!(sum(&mut conn), transactions);
        // Stops as a server should: with everything on the device.
        let _ = conn.words("SHUTDOWN");
        drop(server);
        let log = directory.path().join("appendonlydir");
        check("aof", &log.join("appendonly.aof.manifest"));
        let redis = tempfile::tempdir().unwrap();
        std::fs::create_dir(redis.path().join("appendonlydir")).unwrap();
        for entry in std::fs::read_dir(&log).unwrap() {
            let path = entry.unwrap().path();
            std::fs::copy(&path, redis.path().join("appendonlydir").join(path.file_name().unwrap())).unwrap();
        }
        let redis = start(ServerKind::Redis70, redis.path(), &["--appendonly", "yes"]);
        assert_eq!(sum(&mut redis.connect().unwrap()), transactions, "{fsync}");
        let server = start(ServerKind::Towline, directory.path(), &flags);
        assert_eq!(sum(&mut server.connect().unwrap()), transactions, "{fsync}");
    }
}

//! Order and isolation: a connection's commands run in the order in which they were sent, a transaction runs as one.

use e2e::process::Server;
use e2e::value::Value;
use std::sync::atomic::{AtomicBool, Ordering};

fn commands(lines: &[&str]) -> Vec<Vec<String>> {
    lines.iter().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
}

fn bulk(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

fn ok() -> Value {
    Value::Simple(b"OK".to_vec())
}

#[test]
fn a_pipelined_del_is_seen_by_the_get_after_it() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    let mut lines = Vec::new();
    let mut expected = Vec::new();
    for _ in 0..500 {
        lines.extend(["SET k v", "DEL k", "GET k"]);
        expected.extend([ok(), Value::Int(1), Value::NullBulk]);
    }
    assert_eq!(conn.pipeline(&commands(&lines)).unwrap(), expected);
}

#[test]
fn commands_of_every_kind_keep_their_order_in_a_pipeline() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    let lines = [
        "SET a 1",
        "SET b 2",
        "MGET a b",
        "MSET a 3 b 4",
        "GET a",
        "EXISTS a b",
        "UNLINK a",
        "EXISTS a b",
        "GETSET b 5",
        "GETDEL b",
        "GET b",
        "SETEX c 100 x",
        "RENAME c d",
        "GET d",
        "RPUSH l 1 2 3",
        "LMOVE l m LEFT RIGHT",
        "LRANGE m 0 -1",
        "LRANGE l 0 -1",
        "COPY l n",
        "LLEN n",
        "SETBIT bits 7 1",
        "GET bits",
        "SADD s x",
        "SMOVE s t x",
        "SMEMBERS t",
        "FLUSHALL",
        "DBSIZE",
        "GET d",
    ];
    let int = Value::Int;
    let list = |items: &[&str]| Value::Array(items.iter().map(|item| bulk(item)).collect());
    let expected = vec![
        ok(),
        ok(),
        list(&["1", "2"]),
        ok(),
        bulk("3"),
        int(2),
        int(1),
        int(1),
        bulk("4"),
        bulk("5"),
        Value::NullBulk,
        ok(),
        ok(),
        bulk("x"),
        int(3),
        bulk("1"),
        list(&["1"]),
        list(&["2", "3"]),
        int(1),
        int(2),
        int(0),
        bulk("\u{1}"),
        int(1),
        int(1),
        list(&["x"]),
        ok(),
        int(0),
        Value::NullBulk,
    ];
    for _ in 0..20 {
        assert_eq!(conn.pipeline(&commands(&lines)).unwrap(), expected);
    }
}

#[test]
fn a_pipeline_written_byte_by_byte_answers_the_same() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    let mut bytes = Vec::new();
    for line in ["SET k v", "APPEND k w", "GET k"] {
        e2e::conn::encode(&line.split(' ').collect::<Vec<_>>(), &mut bytes);
    }
    for byte in bytes {
        conn.write(&[byte]).unwrap();
    }
    assert_eq!(conn.read().unwrap(), ok());
    assert_eq!(conn.read().unwrap(), Value::Int(2));
    assert_eq!(conn.read().unwrap(), bulk("vw"));
}

#[test]
fn exec_is_isolated_under_eight_hammering_connections() {
    const ROUNDS: usize = 300;
    let server = Server::under_test(&[]).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut conn = server.connect().unwrap();
                let transaction = commands(&[
                    "MULTI",
                    "INCR {a}n",
                    "INCR {b}n",
                    "RPUSH list x",
                    "LPOP list",
                    "INCR {c}n",
                    "EXEC",
                ]);
                for _ in 0..ROUNDS {
                    let replies = conn.pipeline(&transaction).unwrap();
                    let results = replies.last().and_then(Value::items).unwrap();
                    assert_eq!(
                        results[0], results[1],
                        "another client came between two commands of a transaction"
                    );
                    assert_eq!(results[0], results[4]);
                    assert_eq!(results[2], Value::Int(1));
                }
            });
        }
        scope.spawn(|| {
            let mut conn = server.connect().unwrap();
            for _ in 0..ROUNDS {
                let values = conn.words("MGET {a}n {b}n {c}n").unwrap();
                let values = values.items().unwrap();
                assert!(values[0] == values[1] && values[1] == values[2], "MGET saw half a transaction");
                assert_eq!(conn.words("LLEN list").unwrap(), Value::Int(0));
            }
        });
    });
    let mut conn = server.connect().unwrap();
    assert_eq!(conn.words("GET {a}n").unwrap(), bulk(&(8 * ROUNDS).to_string()));
}

#[test]
fn mset_is_seen_whole_or_not_at_all() {
    let server = Server::under_test(&[]).unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut conn = server.connect().unwrap();
            for round in 0..2000 {
                conn.words(&format!("MSET {{a}} {round} {{b}} {round} {{c}} {round}")).unwrap();
            }
            is_done.store(true, Ordering::Relaxed);
        });
        scope.spawn(|| {
            let mut conn = server.connect().unwrap();
            while !is_done.load(Ordering::Relaxed) {
                let reply = conn.words("MGET {c} {b} {a}").unwrap();
                let values = reply.items().unwrap();
                assert!(values.iter().all(|value| *value == values[0]), "half an MSET: {reply}");
            }
        });
    });
}

#[test]
fn opposite_renames_neither_deadlock_nor_lose_a_key() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    conn.words("MSET {a}k 1 {b}k 2").unwrap();
    std::thread::scope(|scope| {
        for line in [
            "COPY {a}k {b}k REPLACE",
            "COPY {b}k {a}k REPLACE",
            "SINTERSTORE {c} {b} {a}",
            "MSETNX {b}k 1 {a}k 2",
        ] {
            let server = &server;
            scope.spawn(move || {
                let mut conn = server.connect().unwrap();
                for _ in 0..1000 {
                    conn.words(line).unwrap();
                }
            });
        }
    });
    assert_eq!(conn.words("EXISTS {a}k {b}k").unwrap(), Value::Int(2));
}

#[test]
fn a_watch_fails_exec_after_any_change_even_delete_and_recreate() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    let mut other = server.connect().unwrap();
    for change in [
        &["SET k 2"][..],
        &["DEL k", "SET k 1"],
        &["EXPIRE k 100"],
        &["RENAME k x", "RENAME x k"],
        &["FLUSHALL"],
        &["SWAPDB 0 1"],
    ] {
        conn.words("FLUSHALL").unwrap();
        conn.words("SET k 1").unwrap();
        conn.words("WATCH k").unwrap();
        for line in change {
            other.words(line).unwrap();
        }
        let replies = conn.pipeline(&commands(&["MULTI", "SET k 3", "EXEC"])).unwrap();
        assert_eq!(replies[2], Value::NullArray, "EXEC went through after {change:?}");
    }
    conn.words("SET k 1").unwrap();
    conn.words("WATCH k").unwrap();
    other.words("GET k").unwrap();
    let replies = conn.pipeline(&commands(&["MULTI", "SET k 3", "EXEC"])).unwrap();
    assert_eq!(replies[2], Value::Array(vec![ok()]), "a read by another client is no change");
}

#[test]
fn concurrent_increments_lose_nothing() {
    let server = Server::under_test(&[]).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut conn = server.connect().unwrap();
                let lines = ["INCR n", "HINCRBY h f 1", "ZINCRBY z 1 m", "RPUSH l x"].repeat(250);
                conn.pipeline(&commands(&lines)).unwrap();
            });
        }
    });
    let mut conn = server.connect().unwrap();
    for (line, expected) in [
        ("GET n", bulk("2000")),
        ("HGET h f", bulk("2000")),
        ("ZSCORE z m", bulk("2000")),
        ("LLEN l", Value::Int(2000)),
    ] {
        assert_eq!(conn.words(line).unwrap(), expected, "{line}");
    }
}

//! Blocking commands: fair, woken by every command that can, and gone when their client is.

use e2e::conn::Conn;
use e2e::process::Server;
use e2e::value::Value;
use e2e::wait;

fn bulk(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

fn list(items: &[&str]) -> Value {
    Value::Array(items.iter().map(|item| bulk(item)).collect())
}

/// Sends a blocking command on a new connection and returns once the server counts it as blocked.
fn blocked(server: &Server, observer: &mut Conn, line: &str, already: usize) -> Conn {
    let mut conn = server.connect().unwrap();
    conn.send(&line.split(' ').collect::<Vec<_>>()).unwrap();
    wait_for_blocked(observer, already + 1);
    conn
}

fn wait_for_blocked(observer: &mut Conn, count: usize) {
    let field = format!("blocked_clients:{count}\r\n");
    let is_blocked = wait::until(|| {
        let info = observer.words("INFO clients").unwrap();
        let text = match &info {
            Value::Bulk(text) | Value::Verbatim(text) => String::from_utf8_lossy(text).into_owned(),
            other => panic!("INFO answered {other}"),
        };
        text.contains(&field)
    });
    assert!(is_blocked, "never saw {field:?}");
}

#[test]
fn every_writer_wakes_every_kind_of_waiter() {
    let server = Server::under_test(&[]).unwrap();
    let mut writer = server.connect().unwrap();
    let cases: &[(&str, &[&str], Value)] = &[
        ("BLPOP k 0", &["RPUSH k a"], list(&["k", "a"])),
        ("BRPOP k 0", &["RPUSH k a b"], list(&["k", "b"])),
        ("BLPOP other k 0", &["LPUSH k a"], list(&["k", "a"])),
        ("BLMOVE k dest LEFT RIGHT 0", &["RPUSH k a"], bulk("a")),
        ("BRPOPLPUSH k dest 0", &["RPUSH k a"], bulk("a")),
        (
            "BLMPOP 0 2 other k LEFT COUNT 2",
            &["RPUSH k a b c"],
            Value::Array(vec![bulk("k"), list(&["a", "b"])]),
        ),
        ("BLPOP k 0", &["RPUSH x a", "RENAME x k"], list(&["k", "a"])),
        ("BLPOP k 0", &["RPUSH x a", "LMOVE x k LEFT LEFT"], list(&["k", "a"])),
        ("BLPOP k 0", &["RPUSH x a", "COPY x k"], list(&["k", "a"])),
        ("BLPOP k 0", &["MULTI", "RPUSH k a", "RPUSH k b", "EXEC"], list(&["k", "a"])),
        ("BLPOP k 0", &["RPUSH x b a", "SORT x ALPHA STORE k"], list(&["k", "a"])),
        ("BZPOPMIN k 0", &["ZADD k 2 b 1 a"], list(&["k", "a", "1"])),
        ("BZPOPMAX k 0", &["ZADD k 2 b 1 a"], list(&["k", "b", "2"])),
        ("BZPOPMIN k 0", &["ZADD x 1 a", "ZUNIONSTORE k 1 x"], list(&["k", "a", "1"])),
        ("BZPOPMIN k 0", &["ZADD x 1 a", "ZRANGESTORE k x 0 -1"], list(&["k", "a", "1"])),
        ("BZPOPMIN k 0", &["ZINCRBY k 1 a"], list(&["k", "a", "1"])),
        (
            "BZMPOP 0 1 k MIN",
            &["ZADD k 1 a"],
            Value::Array(vec![bulk("k"), Value::Array(vec![list(&["a", "1"])])]),
        ),
    ];
    for (wait_line, wake_lines, expected) in cases {
        writer.words("FLUSHALL").unwrap();
        let mut waiter = blocked(&server, &mut writer, wait_line, 0);
        for line in *wake_lines {
            writer.words(line).unwrap();
        }
        assert_eq!(waiter.read().unwrap(), *expected, "{wait_line} after {wake_lines:?}");
        wait_for_blocked(&mut writer, 0);
    }
}

#[test]
fn waiters_are_served_in_the_order_of_their_arrival() {
    let server = Server::under_test(&[]).unwrap();
    let mut writer = server.connect().unwrap();
    let mut waiters: Vec<Conn> =
        (0..5).map(|already| blocked(&server, &mut writer, "BLPOP k 0", already)).collect();
    writer.words("RPUSH k 0 1 2 3 4 5").unwrap();
    for (index, waiter) in waiters.iter_mut().enumerate() {
        assert_eq!(waiter.read().unwrap(), list(&["k", &index.to_string()]));
    }
    assert_eq!(writer.words("LRANGE k 0 -1").unwrap(), list(&["5"]));
}

#[test]
fn a_pop_from_several_lists_takes_one_element_from_the_first_that_has_any() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    for line in ["RPUSH {a} 1 2", "RPUSH {b} 3 4", "RPUSH {c} 5"] {
        conn.words(line).unwrap();
    }
    assert_eq!(conn.words("BLPOP {missing} {a} {b} {c} 0").unwrap(), list(&["{a}", "1"]));
    assert_eq!(conn.words("LRANGE {a} 0 -1").unwrap(), list(&["2"]));
    assert_eq!(conn.words("LRANGE {b} 0 -1").unwrap(), list(&["3", "4"]));
    assert_eq!(conn.words("LLEN {c}").unwrap(), Value::Int(1));
}

#[test]
fn a_waiter_of_the_wrong_type_stays_and_the_next_push_reaches_it() {
    let server = Server::under_test(&[]).unwrap();
    let mut writer = server.connect().unwrap();
    let mut waiter = blocked(&server, &mut writer, "BLPOP k 0", 0);
    writer.words("SET k string").unwrap();
    writer.words("DEL k").unwrap();
    writer.words("ZADD k 1 a").unwrap();
    writer.words("DEL k").unwrap();
    writer.words("RPUSH k a").unwrap();
    assert_eq!(waiter.read().unwrap(), list(&["k", "a"]));
}

#[test]
fn a_waiter_that_left_takes_nothing_with_it() {
    let server = Server::under_test(&[]).unwrap();
    let mut writer = server.connect().unwrap();
    let waiter = blocked(&server, &mut writer, "BLPOP k 0", 0);
    drop(waiter);
    wait_for_blocked(&mut writer, 0);
    writer.words("RPUSH k a").unwrap();
    assert_eq!(writer.words("LRANGE k 0 -1").unwrap(), list(&["a"]));
}

#[test]
fn a_timeout_answers_null_and_unblock_answers_what_was_asked() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    assert_eq!(conn.words("BLPOP k 0.01").unwrap(), Value::NullArray);
    assert_eq!(conn.words("BLMOVE k d LEFT LEFT 0.01").unwrap(), Value::NullArray);
    assert_eq!(conn.words("BZMPOP 0.01 1 k MIN").unwrap(), Value::NullArray);
    let mut waiter = server.connect().unwrap();
    let id = waiter.words("CLIENT ID").unwrap().int().unwrap();
    for (how, expected) in [
        ("TIMEOUT", Value::NullArray),
        ("ERROR", Value::Error(b"UNBLOCKED client unblocked via CLIENT UNBLOCK".to_vec())),
    ] {
        waiter.send(&["BLPOP", "k", "0"]).unwrap();
        wait_for_blocked(&mut conn, 1);
        assert_eq!(conn.words(&format!("CLIENT UNBLOCK {id} {how}")).unwrap(), Value::Int(1));
        assert_eq!(waiter.read().unwrap(), expected);
    }
    assert_eq!(conn.words(&format!("CLIENT UNBLOCK {id}")).unwrap(), Value::Int(0));
}

#[test]
fn commands_sent_behind_a_blocked_one_run_after_it() {
    let server = Server::under_test(&[]).unwrap();
    let mut writer = server.connect().unwrap();
    let mut waiter = server.connect().unwrap();
    let lines = ["BLPOP k 0", "SET after 1", "GET after"];
    let mut bytes = Vec::new();
    for line in lines {
        e2e::conn::encode(&line.split(' ').collect::<Vec<_>>(), &mut bytes);
    }
    waiter.write(&bytes).unwrap();
    wait_for_blocked(&mut writer, 1);
    assert_eq!(writer.words("EXISTS after").unwrap(), Value::Int(0));
    writer.words("RPUSH k a").unwrap();
    assert_eq!(waiter.read().unwrap(), list(&["k", "a"]));
    assert_eq!(waiter.read().unwrap(), Value::Simple(b"OK".to_vec()));
    assert_eq!(waiter.read().unwrap(), bulk("1"));
}

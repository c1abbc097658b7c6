//! Planned moves as clients of all kinds meet them: told before, answered to the end, closed after.

use e2e::conn::{Conn, encode};
use e2e::peers::{Peer, checkout};
use e2e::process::{Server, ServerKind};
use e2e::value::Value;
use e2e::wait;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::time::{Duration, Instant};

/// The window of drains that a test waits for.
const WINDOW: &str = "0.5";

fn start(flags: &[&str]) -> Server {
    Server::start(ServerKind::Towline, flags).unwrap()
}

fn bulk(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

fn ok() -> Value {
    Value::Simple(b"OK".to_vec())
}

fn int(value: &Value) -> i64 {
    match value {
        Value::Int(number) => *number,
        other => panic!("no integer: {other}"),
    }
}

/// A connection that the server has accepted: one that only waits to be is none that a drain finds.
fn accepted(server: &Server) -> Conn {
    let mut conn = server.connect().unwrap();
    assert_eq!(conn.words("PING").unwrap(), Value::Simple(b"PONG".to_vec()));
    conn
}

/// A connection that speaks RESP3 and is told endpoints as `endpoint_type`.
fn told(address: SocketAddr, endpoint_type: &str) -> Conn {
    let mut conn = Conn::open_resp3(address).unwrap();
    let line = format!("CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type {endpoint_type}");
    assert_eq!(conn.words(&line).unwrap(), ok());
    conn
}

fn moving(seq: i64, seconds: i64, target: Option<&str>) -> Value {
    let target = target.map_or(Value::Null, bulk);
    Value::Push(vec![bulk("MOVING"), Value::Int(seq), Value::Int(seconds), target])
}

fn drain(conn: &mut Conn, options: &str) -> i64 {
    int(&conn.words(&format!("TOWLINE DRAIN {options}")).unwrap())
}

/// Waits until all drains are over: nothing of theirs is open any more.
fn wait_until_over(server: &Server) {
    let mut observer = server.connect().unwrap();
    let is_over = wait::until(|| match observer.words("INFO maintenance").unwrap() {
        Value::Bulk(text) => String::from_utf8_lossy(&text).contains("drains_active:0\r\n"),
        other => panic!("INFO answered {other}"),
    });
    assert!(is_over);
}

#[test]
fn a_pipelined_handshake_is_told_what_is_open_in_its_place() {
    let server = start(&[]);
    let seq = drain(&mut server.connect().unwrap(), "WINDOW 100 TO [::1]:7000");
    let mut conn = server.connect().unwrap();
    let mut bytes = Vec::new();
    encode(&["HELLO", "3"], &mut bytes);
    encode(&["client", "maint_notifications", "on", "moving-endpoint-type", "external-ip"], &mut bytes);
    encode(&["CLIENT", "SETINFO", "LIB-NAME", "test"], &mut bytes);
    encode(&["PING"], &mut bytes);
    conn.write(&bytes).unwrap();
    assert!(matches!(conn.read().unwrap(), Value::Map(_)));
    assert_eq!(conn.read().unwrap(), ok());
    assert_eq!(conn.read().unwrap(), moving(seq, 100, Some("[::1]:7000")));
    assert_eq!(conn.read().unwrap(), ok());
    assert_eq!(conn.read().unwrap(), Value::Simple(b"PONG".to_vec()));
}

#[test]
fn two_addresses_are_drained_each_for_itself() {
    let server = start(&["--bind", "127.0.0.1 127.0.0.2"]);
    let port = server.port();
    let second = SocketAddr::from((Ipv4Addr::new(127, 0, 0, 2), port));
    let (mut here, mut there) = (told(server.address(), "internal-ip"), told(second, "external-fqdn"));
    let mut operator = Conn::open(second).unwrap();
    let long = drain(&mut operator, &format!("WINDOW 100 TO db.test:1 ON 127.0.0.2:{port}"));
    let short = drain(&mut operator, &format!("WINDOW {WINDOW} TO 127.0.0.2:{port} ON 127.0.0.1:{port}"));
    assert_eq!(there.read().unwrap(), moving(long, 100, Some("db.test:1")));
    assert_eq!(here.read().unwrap(), moving(short, 1, Some(&format!("127.0.0.2:{port}"))));
    let mut later = accepted(&server);
    assert_eq!(here.read_to_close().unwrap(), b"");
    for conn in [&mut later, &mut there] {
        assert_eq!(conn.words("PING").unwrap(), Value::Simple(b"PONG".to_vec()));
    }
    assert_eq!(operator.words("TOWLINE DRAIN CANCEL").unwrap(), Value::Int(1));
}

#[test]
fn who_is_blocked_gets_nil_then_what_it_sent_behind_then_the_end() {
    let server = start(&[]);
    let mut blocked: Vec<Conn> = ["2", "3"]
        .map(|version| {
            let mut conn = accepted(&server);
            assert!(conn.words(&format!("HELLO {version}")).unwrap().error().is_none());
            let mut bytes = Vec::new();
            encode(&["BLPOP", "k", "0"], &mut bytes);
            encode(&["BLMOVE", "k", "l", "LEFT", "LEFT", "0"], &mut bytes);
            encode(&["INCR", "n"], &mut bytes);
            conn.write(&bytes).unwrap();
            conn
        })
        .into();
    let mut operator = server.connect().unwrap();
    drain(&mut operator, &format!("WINDOW {WINDOW}"));
    let nil = [Value::NullArray, Value::Null];
    for (conn, nil) in blocked.iter_mut().zip(nil) {
        assert_eq!(conn.read().unwrap(), nil);
        assert_eq!(conn.read().unwrap(), nil);
        assert!(int(&conn.read().unwrap()) > 0);
        assert_eq!(conn.read_to_close().unwrap(), b"");
    }
    let mut later = server.connect().unwrap();
    assert_eq!(later.words("RPUSH k v").unwrap(), Value::Int(1), "nobody took it");
    assert_eq!(later.words("GET n").unwrap(), bulk("2"));
}

#[test]
fn a_pipeline_that_comes_in_when_the_window_ends_is_answered_whole() {
    let server = start(&[]);
    let (mut conn, mut witness) = (accepted(&server), accepted(&server));
    let mut pipeline = Vec::new();
    (0..2000).for_each(|_| encode(&["INCR", "n"], &mut pipeline));
    let half = pipeline.len() / 2 + 5;
    drain(&mut server.connect().unwrap(), &format!("WINDOW {WINDOW}"));
    conn.write(&pipeline[..half]).unwrap();
    // This one has nothing unanswered, so it is closed at once when the window is over.
    assert_eq!(witness.read_to_close().unwrap(), b"");
    conn.write(&pipeline[half..]).unwrap();
    for expected in 1..=2000 {
        assert_eq!(conn.read().unwrap(), Value::Int(expected));
    }
    assert_eq!(conn.read_to_close().unwrap(), b"");
}

#[test]
fn what_is_executed_under_load_is_answered() {
    let server = start(&[]);
    let mut operator = server.connect().unwrap();
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let mut conn = accepted(&server);
            std::thread::spawn(move || {
                let mut answered = 0;
                let pipeline = [["INCR", "n"]; 50].map(|command| command.to_vec());
                loop {
                    let mut bytes = Vec::new();
                    pipeline.iter().for_each(|command| encode(command, &mut bytes));
                    if conn.write(&bytes).is_err() {
                        return answered;
                    }
                    for _ in &pipeline {
                        match conn.read() {
                            Ok(Value::Int(_)) => answered += 1,
                            Ok(other) => panic!("INCR answered {other}"),
                            Err(_) => return answered,
                        }
                    }
                }
            })
        })
        .collect();
    drain(&mut operator, &format!("WINDOW {WINDOW}"));
    let answered: i64 = clients.into_iter().map(|client| client.join().unwrap()).sum();
    let executed = server.connect().unwrap().words("GET n").unwrap();
    assert_eq!(executed, bulk(&answered.to_string()));
}

#[test]
fn a_slow_reader_gets_its_replies_or_is_cut_when_its_grace_is_over() {
    const COUNT: usize = 20;
    let server = start(&[]);
    let mut writer = server.connect().unwrap();
    let value = vec![b'x'; 1 << 20];
    assert_eq!(writer.call(&[b"SET".as_slice(), b"k", &value]).unwrap(), ok());
    let [mut slow, mut dead, mut witness] = [(); 3].map(|()| accepted(&server));
    for conn in [&mut slow, &mut dead] {
        (0..COUNT).for_each(|_| conn.send(&["GET", "k"]).unwrap());
    }
    drain(&mut writer, &format!("WINDOW {WINDOW}"));
    assert_eq!(witness.read_to_close().unwrap(), b"");
    for _ in 0..COUNT {
        assert_eq!(slow.read().unwrap(), Value::Bulk(value.clone()));
    }
    assert_eq!(slow.read_to_close().unwrap(), b"");
    wait_until_over(&server);
    assert!(dead.read_to_close().unwrap().len() < COUNT << 20);
}

#[test]
fn a_transaction_is_run_whole_or_not_at_all() {
    let server = start(&[]);
    let [mut ends, mut stays, mut witness] = [(); 3].map(|()| accepted(&server));
    for (conn, key) in [(&mut ends, "a"), (&mut stays, "b")] {
        conn.words("MULTI").unwrap();
        conn.words(&format!("INCR {key}")).unwrap();
    }
    drain(&mut server.connect().unwrap(), &format!("WINDOW {WINDOW}"));
    assert_eq!(witness.read_to_close().unwrap(), b"");
    assert_eq!(ends.words("INCR a").unwrap(), Value::Simple(b"QUEUED".to_vec()));
    assert_eq!(ends.words("EXEC").unwrap(), Value::Array(vec![Value::Int(1), Value::Int(2)]));
    assert_eq!(ends.read_to_close().unwrap(), b"");
    assert_eq!(stays.read_to_close().unwrap(), b"");
    let mut later = server.connect().unwrap();
    assert_eq!(later.words("MGET a b").unwrap(), Value::Array(vec![bulk("2"), Value::NullBulk]));
}

#[test]
fn a_subscriber_is_told_between_messages_and_gets_all_of_them() {
    let server = start(&[]);
    let mut subscriber = told(server.address(), "none");
    let mut old = server.connect().unwrap();
    old.words("SUBSCRIBE c").unwrap();
    subscriber.words("SUBSCRIBE c").unwrap();
    let mut publisher = server.connect().unwrap();
    let mut publish = |text: &str| {
        assert_eq!(publisher.words(&format!("PUBLISH c {text}")).unwrap(), Value::Int(2));
    };
    publish("1");
    publish("2");
    let seq = drain(&mut server.connect().unwrap(), &format!("WINDOW {WINDOW}"));
    publish("3");
    let message = |text: &str| Value::Push(vec![bulk("message"), bulk("c"), bulk(text)]);
    for expected in [message("1"), message("2"), moving(seq, 1, None), message("3")] {
        assert_eq!(subscriber.read().unwrap(), expected);
    }
    assert_eq!(subscriber.read_to_close().unwrap(), b"");
    for text in ["1", "2", "3"] {
        assert_eq!(old.read().unwrap(), Value::Array(vec![bulk("message"), bulk("c"), bulk(text)]));
    }
    assert_eq!(old.read_to_close().unwrap(), b"");
}

#[test]
fn the_window_is_kept_and_so_is_who_comes_during_it() {
    let server = start(&[]);
    let (mut conn, begun) = (told(server.address(), "none"), Instant::now());
    let seq = drain(&mut conn, "WINDOW 1.2");
    assert_eq!(conn.read().unwrap(), moving(seq, 2, None));
    let mut later = told(server.address(), "none");
    assert_eq!(later.read().unwrap(), moving(seq, 2, None));
    assert_eq!(conn.read_to_close().unwrap(), b"");
    assert!(begun.elapsed() >= Duration::from_millis(1200));
    wait_until_over(&server);
    assert_eq!(later.words("PING").unwrap(), Value::Simple(b"PONG".to_vec()));
}

#[test]
fn redis_py_moves_under_load_without_an_error() {
    let server = start(&["--bind", "127.0.0.1 127.0.0.2"]);
    let output = Command::new(Peer::Python.path().unwrap())
        .arg(checkout().join("tests/py/moving.py"))
        .arg(server.port().to_string())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}

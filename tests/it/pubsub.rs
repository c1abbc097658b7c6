//! Publish and subscribe, keyspace notifications, client tracking: what reaches a client unasked.

use e2e::conn::Conn;
use e2e::process::Server;
use e2e::value::Value;

fn bulk(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

fn message(parts: &[&str]) -> Value {
    Value::Array(parts.iter().map(|part| bulk(part)).collect())
}

fn subscription(kind: &str, channel: &str, count: i64) -> Value {
    Value::Array(vec![bulk(kind), bulk(channel), Value::Int(count)])
}

fn subscribe(conn: &mut Conn, line: &str, replies: usize) {
    conn.send(&line.split(' ').collect::<Vec<_>>()).unwrap();
    for _ in 0..replies {
        conn.read().unwrap();
    }
}

#[test]
fn a_subscriber_gets_every_message_in_order() {
    const COUNT: usize = 10_000;
    let server = Server::under_test(&[]).unwrap();
    let mut subscriber = server.connect().unwrap();
    subscribe(&mut subscriber, "SUBSCRIBE news", 1);
    let mut publisher = server.connect().unwrap();
    let lines: Vec<Vec<String>> =
        (0..COUNT).map(|number| vec!["PUBLISH".into(), "news".into(), number.to_string()]).collect();
    for batch in lines.chunks(500) {
        for reply in publisher.pipeline(batch).unwrap() {
            assert_eq!(reply, Value::Int(1));
        }
    }
    for number in 0..COUNT {
        assert_eq!(subscriber.read().unwrap(), message(&["message", "news", &number.to_string()]));
    }
}

#[test]
fn a_client_goes_on_after_its_last_unsubscribe() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    conn.send(&["SUBSCRIBE", "a", "b"]).unwrap();
    assert_eq!(conn.read().unwrap(), subscription("subscribe", "a", 1));
    assert_eq!(conn.read().unwrap(), subscription("subscribe", "b", 2));
    let refused = conn.words("GET k").unwrap();
    assert_eq!(
        refused.error().unwrap(),
        "ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
    );
    assert_eq!(conn.words("PING").unwrap(), message(&["pong", ""]));
    conn.send(&["UNSUBSCRIBE", "a", "b"]).unwrap();
    assert_eq!(conn.read().unwrap(), subscription("unsubscribe", "a", 1));
    assert_eq!(conn.read().unwrap(), subscription("unsubscribe", "b", 0));
    assert_eq!(conn.words("PING").unwrap(), Value::Simple(b"PONG".to_vec()));
    let none = Value::Array(vec![bulk("unsubscribe"), Value::NullBulk, Value::Int(0)]);
    assert_eq!(conn.words("UNSUBSCRIBE").unwrap(), none);
}

#[test]
fn patterns_and_channels_both_deliver() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    subscribe(&mut conn, "SUBSCRIBE news.art", 1);
    subscribe(&mut conn, "PSUBSCRIBE news.* n?ws.a[qr]t", 2);
    let mut publisher = server.connect().unwrap();
    assert_eq!(publisher.words("PUBLISH news.art x").unwrap(), Value::Int(3));
    let mut got: Vec<Value> = (0..3).map(|_| conn.read().unwrap()).collect();
    got.sort();
    let mut expected = vec![
        message(&["message", "news.art", "x"]),
        message(&["pmessage", "news.*", "news.art", "x"]),
        message(&["pmessage", "n?ws.a[qr]t", "news.art", "x"]),
    ];
    expected.sort();
    assert_eq!(got, expected);
    assert_eq!(publisher.words("PUBSUB NUMPAT").unwrap(), Value::Int(2));
    assert_eq!(publisher.words("PUBSUB CHANNELS").unwrap(), message(&["news.art"]));
    let numsub = Value::Array(vec![bulk("news.art"), Value::Int(1), bulk("none"), Value::Int(0)]);
    assert_eq!(publisher.words("PUBSUB NUMSUB news.art none").unwrap(), numsub);
}

#[test]
fn sharded_channels_are_a_space_of_their_own() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    subscribe(&mut conn, "SSUBSCRIBE c", 1);
    let mut publisher = server.connect().unwrap();
    assert_eq!(publisher.words("PUBLISH c x").unwrap(), Value::Int(0));
    assert_eq!(publisher.words("SPUBLISH c y").unwrap(), Value::Int(1));
    assert_eq!(conn.read().unwrap(), message(&["smessage", "c", "y"]));
}

#[test]
fn resp3_delivers_pushes_between_replies() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect_resp3().unwrap();
    let confirmed = conn.words("SUBSCRIBE c").unwrap();
    assert_eq!(confirmed, Value::Push(vec![bulk("subscribe"), bulk("c"), Value::Int(1)]));
    assert_eq!(conn.words("SET k v").unwrap(), Value::Simple(b"OK".to_vec()), "RESP3 allows all commands");
    let mut publisher = server.connect().unwrap();
    publisher.words("PUBLISH c hello").unwrap();
    assert_eq!(conn.read().unwrap(), Value::Push(vec![bulk("message"), bulk("c"), bulk("hello")]));
    conn.send(&["PUBLISH", "c", "self"]).unwrap();
    let pair = [conn.read().unwrap(), conn.read().unwrap()];
    assert!(pair.contains(&Value::Int(1)), "{} {}", pair[0], pair[1]);
    assert!(pair.contains(&Value::Push(vec![bulk("message"), bulk("c"), bulk("self")])));
}

#[test]
fn keyspace_notifications_come_from_plain_and_from_rare_commands() {
    let server = Server::under_test(&["--notify-keyspace-events", "KEA"]).unwrap();
    let mut conn = server.connect().unwrap();
    subscribe(&mut conn, "PSUBSCRIBE __key*__:*", 1);
    let mut writer = server.connect().unwrap();
    for (line, key, events) in [
        ("SET k v", "k", &["set"][..]),
        ("INCR n", "n", &["incrby"]),
        ("EXPIRE k 100", "k", &["expire"]),
        ("RPUSH l a", "l", &["rpush"]),
        ("LPOP l", "l", &["lpop", "del"]),
        ("HSET h f v", "h", &["hset"]),
        ("SADD s a", "s", &["sadd"]),
        ("ZADD z 1 a", "z", &["zadd"]),
        ("DEL k", "k", &["del"]),
    ] {
        writer.words(line).unwrap();
        for event in events {
            let by_key = message(&["pmessage", "__key*__:*", &format!("__keyspace@0__:{key}"), event]);
            assert_eq!(conn.read().unwrap(), by_key, "{line}");
            let by_event = message(&["pmessage", "__key*__:*", &format!("__keyevent@0__:{event}"), key]);
            assert_eq!(conn.read().unwrap(), by_event, "{line}");
        }
    }
    writer.words("SET short v PX 1").unwrap();
    let wanted = message(&["pmessage", "__key*__:*", "__keyevent@0__:expired", "short"]);
    let is_expired = e2e::wait::until(|| conn.read().unwrap() == wanted);
    assert!(is_expired, "no expired event for a key that nobody reads");
}

#[test]
fn tracking_invalidates_what_a_client_has_read() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect_resp3().unwrap();
    assert_eq!(conn.words("CLIENT TRACKING ON").unwrap(), Value::Simple(b"OK".to_vec()));
    let mut writer = server.connect().unwrap();
    writer.words("SET k 1").unwrap();
    writer.words("SET unread 1").unwrap();
    conn.words("GET k").unwrap();
    writer.words("SET unread 2").unwrap();
    writer.words("SET k 2").unwrap();
    let push = Value::Push(vec![bulk("invalidate"), Value::Array(vec![bulk("k")])]);
    assert_eq!(conn.read().unwrap(), push);
    writer.words("SET k 3").unwrap();
    conn.words("GET k").unwrap();
    writer.words("FLUSHALL").unwrap();
    assert_eq!(conn.read().unwrap(), Value::Push(vec![bulk("invalidate"), Value::Null]));
}

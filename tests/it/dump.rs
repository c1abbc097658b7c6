//! DUMP and RESTORE: within one server, and to and from real ones.

use e2e::process::{Server, ServerKind};
use e2e::value::Value;

fn ok() -> Value {
    Value::Simple(b"OK".to_vec())
}

#[test]
fn dump_and_restore_move_every_type_and_its_time_to_live() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    let values = "1 -5 300 70000 9000000000 x y z";
    let scored = "1 a -2.5 b inf c 3 d";
    for fill in [
        "SET k hello".to_owned(),
        "SET k 12345".into(),
        format!("RPUSH k {values}"),
        format!("SADD k {values}"),
        "SADD k 1 2 3".into(),
        format!("HSET k {values}"),
        format!("ZADD k {scored}"),
        format!("SET k {}", "abc".repeat(2000)),
        format!("RPUSH k {}", "element ".repeat(1000).trim_end()),
    ] {
        conn.words("FLUSHALL").unwrap();
        conn.words(&fill).unwrap();
        let payload = conn.words("DUMP k").unwrap().bytes().unwrap().to_vec();
        assert_eq!(conn.call(&[&b"RESTORE"[..], b"copy", b"100000", &payload]).unwrap(), ok(), "{fill}");
        let ttl = conn.words("PTTL copy").unwrap().int().unwrap();
        assert!((1..=100_000).contains(&ttl), "{ttl}");
        assert_eq!(conn.words("TYPE copy").unwrap(), conn.words("TYPE k").unwrap());
        for read in ["GET {}", "LRANGE {} 0 -1", "SORT {} ALPHA", "HGETALL {}", "ZRANGE {} 0 -1 WITHSCORES"] {
            assert_eq!(
                conn.words(&read.replace("{}", "copy")).unwrap(),
                conn.words(&read.replace("{}", "k")).unwrap(),
                "{fill}"
            );
        }
        let busy = conn.call(&[&b"RESTORE"[..], b"copy", b"0", &payload]).unwrap();
        assert_eq!(busy.error().unwrap(), "BUSYKEY Target key name already exists.");
        assert_eq!(
            conn.call(&[&b"RESTORE"[..], b"copy", b"1", &payload, b"REPLACE", b"ABSTTL"]).unwrap(),
            ok()
        );
        assert_eq!(conn.words("EXISTS copy").unwrap(), Value::Int(0), "an absolute time in the past");
        let mut broken = payload.clone();
        broken[0] ^= 0x40;
        let refused = conn.call(&[&b"RESTORE"[..], b"bad", b"0", &broken]).unwrap();
        assert_eq!(refused.error().unwrap(), "ERR DUMP payload version or checksum are wrong");
    }
}

/// A dump of the server under test is taken by each real server, and theirs by it, where the versions allow.
#[test]
fn dumps_travel_to_and_from_real_servers() {
    let own = Server::under_test(&[]).unwrap();
    let mut conn = own.connect().unwrap();
    let fills = [
        "SET {} hello",
        "SET {} 12345",
        "RPUSH {} a b 1 2 70000",
        "SADD {} 1 2 3",
        "SADD {} a b c",
        "HSET {} f v g 2",
        "ZADD {} 1 a 2.5 b",
    ];
    for kind in [ServerKind::Redis70, ServerKind::Redis82, ServerKind::Valkey91] {
        let peer = Server::start(kind, &[]).unwrap();
        let mut theirs = peer.connect().unwrap();
        for fill in fills {
            conn.words("FLUSHALL").unwrap();
            theirs.words("FLUSHALL").unwrap();
            conn.words(&fill.replace("{}", "k")).unwrap();
            let payload = conn.words("DUMP k").unwrap().bytes().unwrap().to_vec();
            let reply = theirs.call(&[&b"RESTORE"[..], b"k", b"0", &payload]).unwrap();
            // A real Redis 8 as the server under test dumps a version that Redis 7 does not know.
            let is_newer =
                ServerKind::under_test().unwrap() != ServerKind::Towline && reply.error().is_some();
            assert!(reply == ok() || is_newer, "{} refused a dump after {fill}: {reply}", kind.name());
            theirs.words("FLUSHALL").unwrap();
            theirs.words(&fill.replace("{}", "t")).unwrap();
            let payload = theirs.words("DUMP t").unwrap().bytes().unwrap().to_vec();
            let reply = conn.call(&[&b"RESTORE"[..], b"t", b"0", &payload]).unwrap();
            let is_older =
                ServerKind::under_test().unwrap() != ServerKind::Towline && reply.error().is_some();
            assert!(reply == ok() || is_older, "a dump of {} was refused after {fill}: {reply}", kind.name());
        }
    }
}

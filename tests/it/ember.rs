//! Faults that a store of this kind is known to have, each as a test.
//!
//! They come from reading another Redis-compatible store in Rust. Order in pipelines and isolation of transactions are
//! in `ordering`, blocking pops in `blocking`, delivery of messages in `pubsub`, payloads of DUMP in `dump`.

use e2e::conn::Conn;
use e2e::process::Server;
use e2e::value::Value;
use std::collections::BTreeSet;

fn ok() -> Value {
    Value::Simple(b"OK".to_vec())
}

fn bulk(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

fn list(items: &[&str]) -> Value {
    Value::Array(items.iter().map(|item| bulk(item)).collect())
}

/// Sends each line and compares its reply.
fn expect(conn: &mut Conn, steps: &[(&str, Value)]) {
    for (line, expected) in steps {
        assert_eq!(conn.words(line).unwrap(), *expected, "{line}");
    }
}

fn set_of(reply: &Value) -> BTreeSet<Value> {
    reply.items().unwrap_or_else(|| panic!("no aggregate: {reply}")).iter().cloned().collect()
}

#[test]
fn null_is_resp2_until_hello_3() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    expect(
        &mut conn,
        &[
            ("GET missing", Value::NullBulk),
            ("LPOP missing 2", Value::NullArray),
            ("HGET missing f", Value::NullBulk),
            ("ZRANK missing m", Value::NullBulk),
            ("LPOS missing m", Value::NullBulk),
            ("BLPOP missing 0.01", Value::NullArray),
        ],
    );
    let mut conn = server.connect_resp3().unwrap();
    expect(
        &mut conn,
        &[("GET missing", Value::Null), ("LPOP missing 2", Value::Null), ("ZSCORE missing m", Value::Null)],
    );
}

#[test]
fn resp3_uses_its_types() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect_resp3().unwrap();
    expect(
        &mut conn,
        &[
            ("HSET h f v", Value::Int(1)),
            ("HGETALL h", Value::Map(vec![bulk("f"), bulk("v")])),
            ("SADD s a", Value::Int(1)),
            ("SMEMBERS s", Value::Set(vec![bulk("a")])),
            ("ZADD z 1.5 a", Value::Int(1)),
            ("ZSCORE z a", Value::Double(b"1.5".to_vec())),
            (
                "ZRANGE z 0 -1 WITHSCORES",
                Value::Array(vec![Value::Array(vec![bulk("a"), Value::Double(b"1.5".to_vec())])]),
            ),
            ("ZADD z inf b", Value::Int(1)),
            ("ZSCORE z b", Value::Double(b"inf".to_vec())),
        ],
    );
}

#[test]
fn keys_members_and_fields_are_bytes() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    let all: Vec<u8> = (0..=255).collect();
    for (name, read) in [("SADD", "SISMEMBER"), ("HSET", "HEXISTS")] {
        let mut write = vec![name.as_bytes().to_vec(), [&all[..], name.as_bytes()].concat(), all.clone()];
        if name == "HSET" {
            write.push(all.clone());
        }
        assert_eq!(conn.call(&write).unwrap(), Value::Int(1));
        assert_eq!(conn.call(&[read.as_bytes(), &write[1], &all]).unwrap(), Value::Int(1));
    }
    conn.call(&[&b"ZADD"[..], b"z", b"1", &all]).unwrap();
    assert_eq!(conn.words("ZRANGE z 0 -1").unwrap(), Value::Array(vec![Value::Bulk(all.clone())]));
    conn.call(&[&b"SET"[..], &all, &all]).unwrap();
    assert_eq!(conn.call(&[&b"GET"[..], &all]).unwrap(), Value::Bulk(all.clone()));
    let keys = conn.words("KEYS *").unwrap();
    assert!(keys.items().unwrap().contains(&Value::Bulk(all)));
}

#[test]
fn set_algebra_sees_all_keys_whatever_their_slots() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    for (key, members) in [("{a}", "1 2 3"), ("{b}", "2 3 4"), ("{c}", "3 5")] {
        conn.words(&format!("SADD s{key} {members}")).unwrap();
        conn.words(&format!("ZADD z{key} {}", members.replace(' ', " m 1 ").replace("m 1 ", "x ") + " y"))
            .unwrap();
    }
    let members = |items: &[&str]| items.iter().map(|item| bulk(item)).collect::<BTreeSet<_>>();
    for (line, expected) in [
        ("SUNION s{a} s{b} s{c}", members(&["1", "2", "3", "4", "5"])),
        ("SINTER s{a} s{b} s{c}", members(&["3"])),
        ("SDIFF s{a} s{b} s{c}", members(&["1"])),
    ] {
        assert_eq!(set_of(&conn.words(line).unwrap()), expected, "{line}");
    }
    expect(
        &mut conn,
        &[
            ("SUNIONSTORE d{d} s{a} s{b} s{c}", Value::Int(5)),
            ("SCARD d{d}", Value::Int(5)),
            ("SINTERCARD 2 s{a} s{b}", Value::Int(2)),
            ("ZUNIONSTORE d{z} 2 s{a} s{b}", Value::Int(4)),
            ("ZRANGE d{z} 0 -1 WITHSCORES", list(&["1", "1", "4", "1", "2", "2", "3", "2"])),
            ("SMOVE s{a} s{c} 1", Value::Int(1)),
            ("SISMEMBER s{c} 1", Value::Int(1)),
            ("PFADD p{a} 1 2", Value::Int(1)),
            ("PFADD p{b} 2 3", Value::Int(1)),
            ("PFCOUNT p{a} p{b}", Value::Int(3)),
        ],
    );
}

#[test]
fn moves_between_slots_arrive() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    expect(
        &mut conn,
        &[
            ("RPUSH l{a} 1 2", Value::Int(2)),
            ("LMOVE l{a} l{b} LEFT RIGHT", bulk("1")),
            ("RPOPLPUSH l{a} l{b}", bulk("2")),
            ("LRANGE l{b} 0 -1", list(&["2", "1"])),
            ("EXISTS l{a}", Value::Int(0)),
            ("RENAME l{b} l{c}", ok()),
            ("LLEN l{c}", Value::Int(2)),
            ("COPY l{c} l{d}", Value::Int(1)),
            ("LRANGE l{d} 0 -1", list(&["2", "1"])),
            (
                "BITOP NOT x{e} l{c}",
                Value::Error(b"WRONGTYPE Operation against a key holding the wrong kind of value".to_vec()),
            ),
        ],
    );
}

#[test]
fn set_has_all_its_options() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    expect(
        &mut conn,
        &[
            ("SET k 1 EX 1000", ok()),
            ("SET k 2 KEEPTTL", ok()),
            ("TTL k", Value::Int(1000)),
            ("SET k 3 GET", bulk("2")),
            ("TTL k", Value::Int(-1)),
            ("SET k 4 NX GET", bulk("3")),
            ("SET k 4 PXAT 33177117420000", ok()),
            ("EXPIRETIME k", Value::Int(33_177_117_420)),
            ("SET k 5 EXAT 1", ok()),
            ("EXISTS k", Value::Int(0)),
            ("SETNX k 1", Value::Int(1)),
            ("SETNX k 1", Value::Int(0)),
            ("GETEX k EX 1000", bulk("1")),
            ("GETEX k PERSIST", bulk("1")),
            ("TTL k", Value::Int(-1)),
        ],
    );
}

#[test]
fn incrbyfloat_keeps_the_time_to_live() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    expect(
        &mut conn,
        &[
            ("SET k 10.5 EX 1000", ok()),
            ("INCRBYFLOAT k 0.1", bulk("10.6")),
            ("TTL k", Value::Int(1000)),
            ("APPEND k 0", Value::Int(5)),
            ("SETRANGE k 0 2", Value::Int(5)),
            ("TTL k", Value::Int(1000)),
        ],
    );
}

#[test]
fn expiry_in_the_past_deletes_and_conditions_hold() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    for line in ["EXPIRE k 0", "EXPIRE k -1", "PEXPIRE k -5", "EXPIREAT k 1", "PEXPIREAT k 1"] {
        expect(&mut conn, &[("SET k v", ok()), (line, Value::Int(1)), ("EXISTS k", Value::Int(0))]);
    }
    expect(
        &mut conn,
        &[
            ("SET k v", ok()),
            ("EXPIRE k 100 XX", Value::Int(0)),
            ("EXPIRE k 100 NX", Value::Int(1)),
            ("EXPIRE k 50 GT", Value::Int(0)),
            ("EXPIRE k 200 GT", Value::Int(1)),
            ("EXPIRE k 300 LT", Value::Int(0)),
            ("TTL k", Value::Int(200)),
        ],
    );
}

#[test]
fn expiry_is_exact_to_the_millisecond_for_readers() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    conn.words("SET k v PX 40").unwrap();
    let gone = e2e::wait::until_some(e2e::wait::PATIENCE, || {
        let replies = conn.pipeline(&[vec!["PTTL", "k"], vec!["GET", "k"]]).unwrap();
        let (ttl, value) = (replies[0].int().unwrap(), &replies[1]);
        assert!(ttl <= 40 && ttl != -1, "PTTL {ttl}");
        if ttl == -2 {
            assert!(value.is_null(), "a key without time to live left was read");
        }
        (ttl == -2).then_some(())
    });
    assert!(gone.is_some(), "the key never expired");
}

#[test]
fn hash_fields_may_be_longer_than_64_kib() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    let long = vec![b'f'; 70_000];
    conn.call(&[&b"HSET"[..], b"h", b"short", b"1", &long, &long]).unwrap();
    assert_eq!(conn.call(&[&b"HGET"[..], b"h", &long]).unwrap(), Value::Bulk(long.clone()));
    assert_eq!(conn.words("HGET h short").unwrap(), bulk("1"));
    assert_eq!(conn.words("HLEN h").unwrap(), Value::Int(2));
    conn.call(&[&b"SADD"[..], b"s", b"1", &long]).unwrap();
    assert_eq!(conn.call(&[&b"SISMEMBER"[..], b"s", &long]).unwrap(), Value::Int(1));
}

#[test]
fn a_value_above_64_mib_can_be_written_and_read() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    let big = vec![b'x'; (64 << 20) + 1];
    assert_eq!(conn.call(&[&b"SET"[..], b"big", &big]).unwrap(), ok());
    let Value::Bulk(read) = conn.words("GET big").unwrap() else { panic!("no bulk") };
    assert!(read == big, "{} bytes came back", read.len());
}

/// Scans with a small COUNT while another connection adds and removes keys; everything that was there throughout
/// comes back.
#[test]
fn scan_returns_every_key_that_stays_while_others_come_and_go() {
    const STAYING: usize = 5_000;
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    for part in 0..STAYING / 500 {
        let commands: Vec<Vec<String>> =
            (0..500).map(|n| vec!["SET".into(), format!("stay:{}", part * 500 + n), "v".into()]).collect();
        conn.pipeline(&commands).unwrap();
    }
    let mut other = server.connect().unwrap();
    let mut seen = BTreeSet::new();
    let mut cursor = b"0".to_vec();
    let mut round = 0;
    loop {
        let reply = conn.call(&[&b"SCAN"[..], &cursor, b"COUNT", b"50"]).unwrap();
        let parts = reply.items().unwrap();
        seen.extend(set_of(&parts[1]));
        cursor = parts[0].bytes().unwrap().to_vec();
        if cursor == b"0" {
            break;
        }
        let change: Vec<Vec<String>> = (0..200)
            .map(|n| {
                let key = format!("come:{}:{n}", round % 20);
                if round % 40 < 20 { vec!["SET".into(), key, "v".into()] } else { vec!["DEL".into(), key] }
            })
            .collect();
        other.pipeline(&change).unwrap();
        round += 1;
        assert!(round < 20_000, "the scan does not end");
    }
    let missed: Vec<usize> = (0..STAYING).filter(|n| !seen.contains(&bulk(&format!("stay:{n}")))).collect();
    assert!(missed.is_empty(), "{} keys missed, for example stay:{}", missed.len(), missed[0]);
}

#[test]
fn scans_of_collections_return_every_member_that_stays() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    for (fill, scan) in
        [("SADD c stay:{}", "SSCAN"), ("HSET c stay:{} v", "HSCAN"), ("ZADD c 1 stay:{}", "ZSCAN")]
    {
        conn.words("DEL c").unwrap();
        for number in 0..1000 {
            conn.words(&fill.replace("{}", &number.to_string())).unwrap();
        }
        let mut seen = BTreeSet::new();
        let mut cursor = b"0".to_vec();
        let mut round = 0;
        loop {
            let reply = conn.call(&[scan.as_bytes(), b"c", &cursor, b"COUNT", b"10"]).unwrap();
            let parts = reply.items().unwrap();
            seen.extend(set_of(&parts[1]));
            cursor = parts[0].bytes().unwrap().to_vec();
            if cursor == b"0" {
                break;
            }
            let change = fill.replace("stay:{}", &format!("come:{round}"));
            for _ in 0..20 {
                conn.words(&change).unwrap();
                round += 1;
            }
            assert!(round < 100_000, "{scan} does not end");
        }
        for number in 0..1000 {
            assert!(seen.contains(&bulk(&format!("stay:{number}"))), "{scan} missed stay:{number}");
        }
    }
}

#[test]
fn zadd_and_zrange_have_all_their_forms() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    expect(
        &mut conn,
        &[
            ("ZADD z -inf low 1 a 2 b 3 c +inf high", Value::Int(5)),
            ("ZADD z INCR 5 a", bulk("6")),
            ("ZADD z XX INCR 1 nobody", Value::NullBulk),
            ("ZADD z GT CH 1 a 9 b", Value::Int(1)),
            ("ZRANGE z (3 +inf BYSCORE LIMIT 0 2", list(&["a", "b"])),
            ("ZRANGE z +inf -inf BYSCORE REV LIMIT 1 2", list(&["b", "a"])),
            ("ZREMRANGEBYSCORE z -inf 3", Value::Int(2)),
            ("ZMSCORE z a nobody", Value::Array(vec![bulk("6"), Value::NullBulk])),
            ("ZUNIONSTORE u 1 z WEIGHTS 2 AGGREGATE MAX", Value::Int(3)),
            ("ZSCORE u a", bulk("12")),
            ("ZINTERCARD 2 z u LIMIT 2", Value::Int(2)),
            ("ZRANGESTORE d z 0 0", Value::Int(1)),
        ],
    );
}

#[test]
fn sort_follows_patterns() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    expect(
        &mut conn,
        &[
            ("RPUSH l 1 2 3", Value::Int(3)),
            ("MSET w_1 30 w_2 10 w_3 20 o_1 one o_2 two", ok()),
            (
                "SORT l BY w_* GET # GET o_*",
                Value::Array(vec![
                    bulk("2"),
                    bulk("two"),
                    bulk("3"),
                    Value::NullBulk,
                    bulk("1"),
                    bulk("one"),
                ]),
            ),
            ("SORT l DESC LIMIT 0 2 STORE d", Value::Int(2)),
            ("LRANGE d 0 -1", list(&["3", "2"])),
        ],
    );
}

#[test]
fn quit_answers_and_closes() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    conn.write(b"*1\r\n$4\r\nQUIT\r\n").unwrap();
    assert_eq!(conn.read_to_close().unwrap(), b"+OK\r\n");
}

#[test]
fn info_has_what_tools_look_for() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    conn.words("SET k v").unwrap();
    conn.words("SET t v EX 1000").unwrap();
    let info = conn.words("INFO").unwrap();
    let text = String::from_utf8_lossy(info.bytes().unwrap()).into_owned();
    for line in [
        "# Server",
        "# Clients",
        "# Memory",
        "# Persistence",
        "# Stats",
        "# Replication",
        "# CPU",
        "# Cluster",
        "# Keyspace",
        "cluster_enabled:0",
        "role:master",
        "connected_slaves:0",
        "redis_mode:standalone",
    ] {
        assert!(text.lines().any(|have| have == line), "INFO has no line {line:?}:\n{text}");
    }
    for field in [
        "redis_version:",
        "process_id:",
        "tcp_port:",
        "uptime_in_seconds:",
        "connected_clients:",
        "blocked_clients:",
        "used_memory:",
        "used_memory_human:",
        "used_memory_rss:",
        "used_memory_peak:",
        "maxmemory:",
        "maxmemory_policy:",
        "mem_fragmentation_ratio:",
        "total_connections_received:",
        "total_commands_processed:",
        "instantaneous_ops_per_sec:",
        "keyspace_hits:",
        "keyspace_misses:",
        "expired_keys:",
        "evicted_keys:",
        "used_cpu_sys:",
        "used_cpu_user:",
        "rdb_last_save_time:",
        "aof_enabled:",
        "db0:keys=2,expires=1,avg_ttl=",
    ] {
        assert!(text.lines().any(|have| have.starts_with(field)), "INFO has no field {field}:\n{text}");
    }
    let section = conn.words("INFO keyspace").unwrap();
    assert!(section.bytes().unwrap().starts_with(b"# Keyspace\r\n"), "{section}");
}

#[test]
fn databases_are_apart_and_can_be_swapped() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    expect(
        &mut conn,
        &[
            ("SET k 0", ok()),
            ("SELECT 1", ok()),
            ("GET k", Value::NullBulk),
            ("SET k 1", ok()),
            ("SELECT 0", ok()),
            ("MOVE k 1", Value::Int(0)),
            ("SWAPDB 0 1", ok()),
            ("GET k", bulk("1")),
            ("FLUSHDB", ok()),
            ("SELECT 1", ok()),
            ("GET k", bulk("0")),
            ("MOVE k 0", Value::Int(1)),
            ("SELECT 16", Value::Error(b"ERR DB index is out of range".to_vec())),
            ("DBSIZE", Value::Int(0)),
        ],
    );
}

#[test]
fn the_slow_log_keeps_arguments() {
    let server = Server::under_test(&["--slowlog-log-slower-than", "0"]).unwrap();
    let mut conn = server.connect().unwrap();
    conn.words("SLOWLOG RESET").unwrap();
    conn.words("SET key value").unwrap();
    let log = conn.words("SLOWLOG GET 10").unwrap();
    let found =
        log.items().unwrap().iter().any(|entry| {
            entry.items().and_then(|parts| parts.get(3)) == Some(&list(&["SET", "key", "value"]))
        });
    assert!(found, "{log}");
}

#[test]
fn client_commands_tell_and_kill() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    let mut other = server.connect().unwrap();
    other.words("CLIENT SETNAME worker").unwrap();
    let id = other.words("CLIENT ID").unwrap().int().unwrap();
    let list = conn.words("CLIENT LIST").unwrap();
    let text = String::from_utf8_lossy(list.bytes().unwrap()).into_owned();
    let line = text.lines().find(|line| line.contains("name=worker")).unwrap_or_else(|| panic!("{text}"));
    assert!(line.starts_with(&format!("id={id} addr={} ", other.local_address().unwrap())), "{line}");
    for field in [
        "laddr=",
        "fd=",
        "age=",
        "idle=",
        "flags=N",
        "db=0",
        "sub=0",
        "psub=0",
        "multi=-1",
        "qbuf=",
        "omem=",
        "cmd=client|id",
        "user=default",
        "resp=2",
    ] {
        assert!(line.contains(field), "no {field} in {line}");
    }
    assert_eq!(conn.words(&format!("CLIENT KILL ID {id}")).unwrap(), Value::Int(1));
    assert!(other.read_to_close().is_ok());
    assert_eq!(conn.words("CLIENT KILL 127.0.0.1:1").unwrap().error().unwrap(), "ERR No such client");
    let mut silent = server.connect().unwrap();
    silent
        .write(b"CLIENT REPLY OFF\r\nPING\r\nCLIENT REPLY ON\r\nCLIENT REPLY SKIP\r\nPING\r\nECHO end\r\n")
        .unwrap();
    assert_eq!(silent.read().unwrap(), ok());
    assert_eq!(silent.read().unwrap(), bulk("end"));
}

#[test]
fn client_pause_holds_writes_until_unpause() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    assert_eq!(conn.words("CLIENT PAUSE 100000 WRITE").unwrap(), ok());
    let mut reader = server.connect().unwrap();
    assert_eq!(reader.words("GET k").unwrap(), Value::NullBulk);
    let mut writer = server.connect().unwrap();
    writer.send(&["SET", "k", "v"]).unwrap();
    for _ in 0..50 {
        assert_eq!(reader.words("GET k").unwrap(), Value::NullBulk);
    }
    assert_eq!(conn.words("CLIENT UNPAUSE").unwrap(), ok());
    assert_eq!(writer.read().unwrap(), ok());
}

#[test]
fn monitor_shows_commands_as_they_run() {
    let server = Server::under_test(&[]).unwrap();
    let mut monitor = server.connect().unwrap();
    assert_eq!(monitor.words("MONITOR").unwrap(), ok());
    let mut conn = server.connect().unwrap();
    conn.call(&["SET", "k", "a\"b\r\n\u{1}"]).unwrap();
    let address = conn.local_address().unwrap();
    let line = monitor.read().unwrap();
    let text = String::from_utf8_lossy(line.bytes().unwrap()).into_owned();
    assert!(text.ends_with(&format!(" [0 {address}] \"SET\" \"k\" \"a\\\"b\\r\\n\\x01\"")), "{text}");
}

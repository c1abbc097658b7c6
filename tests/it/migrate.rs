//! `MIGRATE`: between Towline servers, and to and from real ones.

use e2e::conn::Conn;
use e2e::process::{Server, ServerKind, free_port};
use e2e::value::Value;
use e2e::wait;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const PEERS: [ServerKind; 4] =
    [ServerKind::Towline, ServerKind::Redis70, ServerKind::Redis82, ServerKind::Valkey91];
const DAYS_60_MS: i64 = 60 * 86_400_000;

fn ok() -> Value {
    Value::Simple(b"OK".to_vec())
}

/// `MIGRATE` to this server, with the words behind the port.
fn migrate(conn: &mut Conn, to: &Server, rest: &str) -> Value {
    let port = to.port().to_string();
    let words = ["MIGRATE", "127.0.0.1", &port].into_iter().chain(rest.split(' '));
    conn.call(&words.map(|word| if word == "\"\"" { "" } else { word }).collect::<Vec<_>>()).unwrap()
}

fn text(value: &Value) -> String {
    value.error().unwrap_or_else(|| value.to_string())
}

/// Waits until a kept connection was taken: then the first keys are on their way.
fn wait_until_under_way(server: &Server) {
    let mut conn = server.connect().unwrap();
    let mut is_taken = || conn.words("INFO stats").unwrap().to_string().contains("migrate_cached_sockets:0");
    assert!(wait::until(&mut is_taken), "no connection was taken");
}

/// Waits until the system has bytes for this server, which is stopped and does not read them.
fn wait_until_received(server: &Server) {
    let local = format!(":{:04X}", server.port());
    let has_unread = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (own, queues) = (fields[1], fields[4]);
        own.ends_with(&local) && queues.split_once(':').is_some_and(|(_, unread)| unread != "00000000")
    };
    let is_there = || std::fs::read_to_string("/proc/net/tcp").unwrap().lines().skip(1).any(has_unread);
    assert!(wait::until(is_there), "nothing was sent");
}

/// Commands that make `k`, small and large.
fn fills() -> Vec<Vec<String>> {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let many = |verb: &str, element: &dyn Fn(usize) -> Vec<String>| {
        let elements = (0..3000).flat_map(element);
        [verb.to_owned(), "k".to_owned()].into_iter().chain(elements).collect::<Vec<_>>()
    };
    vec![
        words("SET k hello"),
        words("SET k 12345"),
        words("RPUSH k a b 1 2 70000 -9000000000"),
        words("SADD k 1 2 3"),
        words("SADD k a b c"),
        words("HSET k f v g 2"),
        words("ZADD k 1 a 2.5 b inf c"),
        vec!["SET".into(), "k".into(), "0123456789abcdef".repeat(20_000)],
        many("RPUSH", &|i| vec![format!("element-{i}")]),
        many("SADD", &|i| vec![format!("member-{i}")]),
        many("SADD", &|i| vec![format!("{}", i * 7)]),
        many("HSET", &|i| vec![format!("field-{i}"), format!("value-{i}")]),
        many("ZADD", &|i| vec![format!("{}.5", i % 100), format!("member-{i}")]),
    ]
}

/// What `k` holds, in an order that does not depend on the server.
fn contents(conn: &mut Conn) -> (Value, Vec<String>) {
    let kind = conn.words("TYPE k").unwrap();
    let read = match kind.to_string().trim_matches(['+', '"']) {
        "string" => "GET k",
        "list" => "LRANGE k 0 -1",
        "set" => "SMEMBERS k",
        "hash" => "HGETALL k",
        "zset" => "ZRANGE k 0 -1 WITHSCORES",
        other => panic!("a key of type {other}"),
    };
    let value = conn.words(read).unwrap();
    let mut items: Vec<String> = match value.items() {
        None => vec![value.to_string()],
        Some(items) if read.starts_with("HGETALL") => {
            items.chunks(2).map(|pair| format!("{} {}", pair[0], pair[1])).collect()
        }
        Some(items) => items.iter().map(ToString::to_string).collect(),
    };
    if read.starts_with("SMEMBERS") || read.starts_with("HGETALL") {
        items.sort();
    }
    (kind, items)
}

#[test]
fn every_type_moves_to_and_from_each_server_with_its_time_to_live() {
    let own = Server::under_test(&[]).unwrap();
    for kind in PEERS {
        let peer = Server::start(kind, &[]).unwrap();
        for (from, to) in [(&own, &peer), (&peer, &own)] {
            // What newer servers write, Redis 7.0 and Towline read; the other way round there is one form for all.
            let (mut source, mut target) = (from.connect().unwrap(), to.connect().unwrap());
            for fill in fills() {
                let way = format!("{} to {}: {}", from.kind().name(), to.kind().name(), fill[0]);
                source.call(&fill).unwrap();
                source.words(&format!("PEXPIRE k {DAYS_60_MS}")).unwrap();
                source.words("SET stays forever").unwrap();
                let before = contents(&mut source);
                assert_eq!(migrate(&mut source, to, "\"\" 0 5000 KEYS k none stays"), ok(), "{way}");
                assert_eq!(source.words("EXISTS k stays").unwrap(), Value::Int(0), "{way}");
                assert_eq!(contents(&mut target), before, "{way}");
                let left = target.words("PTTL k").unwrap().int().unwrap();
                assert!((DAYS_60_MS - 60_000..=DAYS_60_MS).contains(&left), "{way}: {left}");
                assert_eq!(target.words("TTL stays").unwrap(), Value::Int(-1), "{way}");
                target.words("DEL k stays").unwrap();
            }
        }
    }
}

#[test]
fn answers_are_those_of_redis() {
    let own = Server::under_test(&[]).unwrap();
    let peer = Server::start(ServerKind::Towline, &["--requirepass", "secret"]).unwrap();
    let (mut source, mut target) = (own.connect().unwrap(), peer.connect().unwrap());
    assert_eq!(target.words("AUTH secret").unwrap(), ok());
    assert_eq!(text(&migrate(&mut source, &peer, "k 0 100")), "+NOKEY");
    source.words("MSET a 1 b 2 c 3").unwrap();
    let refused = text(&migrate(&mut source, &peer, "a 0 1000"));
    assert_eq!(refused, "ERR Target instance replied with error: NOAUTH Authentication required.");
    let refused = text(&migrate(&mut source, &peer, "a 0 1000 AUTH wrong"));
    assert!(refused.starts_with("ERR Target instance replied with error: WRONGPASS"), "{refused}");
    let refused = text(&migrate(&mut source, &peer, "a 99 1000 AUTH secret"));
    assert_eq!(refused, "ERR Target instance replied with error: ERR DB index is out of range");
    target.words("SET b other").unwrap();
    let busy = text(&migrate(&mut source, &peer, "\"\" 0 1000 AUTH2 default secret KEYS a b c"));
    assert_eq!(busy, "ERR Target instance replied with error: BUSYKEY Target key name already exists.");
    assert_eq!(source.words("EXISTS a b c").unwrap(), Value::Int(1), "what was taken is gone here");
    assert_eq!(target.words("EXISTS a b c").unwrap(), Value::Int(3));
    assert_eq!(migrate(&mut source, &peer, "b 0 1000 COPY REPLACE AUTH secret"), ok());
    assert_eq!(source.words("GET b").unwrap(), target.words("GET b").unwrap());
    assert_eq!(migrate(&mut source, &peer, "b 3 1000 AUTH secret"), ok());
    assert_eq!(source.words("EXISTS b").unwrap(), Value::Int(0));
    target.words("SELECT 3").unwrap();
    assert_eq!(target.words("EXISTS b").unwrap(), Value::Int(1));
    let info = source.words("INFO stats").unwrap().to_string();
    assert!(!info.contains("migrate_cached_sockets:0"), "{info}");
    source.words("SET d 1").unwrap();
    let started = Instant::now();
    let port = free_port().unwrap().to_string();
    let dead = source.call(&["MIGRATE", "127.0.0.1", &port, "d", "0", "1000"]).unwrap();
    assert_eq!(text(&dead), "IOERR error or timeout writing to target instance");
    assert_eq!(source.words("EXISTS d").unwrap(), Value::Int(1));
    assert!(started.elapsed() < Duration::from_secs(5));
    source.words("CONFIG SET slowlog-log-slower-than 0").unwrap();
    migrate(&mut source, &peer, "d 0 1000 AUTH secret");
    let slow = source.words("SLOWLOG GET").unwrap().to_string();
    assert!(slow.to_lowercase().contains("migrate") && !slow.contains("secret"), "{slow}");
}

#[test]
fn a_target_that_is_silent_leaves_a_key_on_one_side_or_says_so() {
    for kind in PEERS {
        let own = Server::under_test(&[]).unwrap();
        let peer = Server::start(kind, &[]).unwrap();
        let (mut source, mut target) = (own.connect().unwrap(), peer.connect().unwrap());
        source.words("SET warm up").unwrap();
        assert_eq!(migrate(&mut source, &peer, "warm 0 1000"), ok());
        source.words("SET k 1").unwrap();
        peer.signal(Signal::STOP).unwrap();
        let mut reader = own.connect().unwrap();
        let mut writer = own.connect().unwrap();
        source.send(&["MIGRATE", "127.0.0.1", &peer.port().to_string(), "k", "0", "700"]).unwrap();
        wait_until_under_way(&own);
        let started = Instant::now();
        writer.send(&["INCR", "k"]).unwrap();
        assert_eq!(reader.words("GET k").unwrap(), Value::Bulk(b"1".to_vec()));
        assert_eq!(reader.words("SET other 1").unwrap(), ok());
        assert!(started.elapsed() < Duration::from_millis(400), "{kind:?}: only who writes the key waits");
        let failed = text(&source.read().unwrap());
        assert!(failed.starts_with("IOERR error or timeout reading to target instance"), "{failed}");
        assert!(failed.contains("the first is 'k'"), "it is told: {failed}");
        assert_eq!(writer.read().unwrap(), Value::Int(2), "{kind:?}: the key stayed, and is written");
        peer.signal(Signal::CONT).unwrap();
        assert!(wait::until(|| target.words("EXISTS k").unwrap() == Value::Int(1)), "{kind:?}");
        // The target has what was sent to it before, which is not in the way.
        assert_eq!(migrate(&mut source, &peer, "k 0 1000"), ok(), "{kind:?}");
        assert_eq!(source.words("EXISTS k").unwrap(), Value::Int(0));
        assert_eq!(target.words("GET k").unwrap(), Value::Bulk(b"2".to_vec()), "{kind:?}");
    }
}

#[test]
fn a_target_that_is_killed_leaves_all_keys_here() {
    for kind in PEERS {
        let own = Server::under_test(&[]).unwrap();
        let mut peer = Server::start(kind, &[]).unwrap();
        let mut source = own.connect().unwrap();
        let large = "x".repeat(40 << 20);
        source.call(&["SET", "large", &large]).unwrap();
        source.words("SET small 1").unwrap();
        source.words("SET warm up").unwrap();
        assert_eq!(migrate(&mut source, &peer, "warm 0 1000"), ok());
        peer.signal(Signal::STOP).unwrap();
        let port = peer.port().to_string();
        source.send(&["MIGRATE", "127.0.0.1", &port, "", "0", "20000", "KEYS", "large", "small"]).unwrap();
        wait_until_under_way(&own);
        peer.signal(Signal::KILL).unwrap();
        peer.wait_for_exit().unwrap();
        let failed = text(&source.read().unwrap());
        assert!(failed.starts_with("IOERR"), "{kind:?}: {failed}");
        assert_eq!(source.words("EXISTS large small").unwrap(), Value::Int(2), "{kind:?}");
        assert_eq!(source.words("STRLEN large").unwrap(), Value::Int(large.len() as i64));
        assert_eq!(
            source.words("INCR small").unwrap(),
            Value::Int(2),
            "{kind:?}: nothing is held back any more"
        );
    }
}

/// A source that is killed while the target has a key, and the source does not know it, has the key again: clients go on writing it,
/// and the copy at the target is not in the way of the next move. What somebody else put there is.
#[test]
fn a_source_that_is_killed_on_the_way_knows_what_it_had_sent() {
    for kind in PEERS {
        let flags = ["--appendonly", "yes", "--appendfsync", "always"];
        let mut own = Server::under_test(&flags).unwrap();
        let peer = Server::start(kind, &[]).unwrap();
        let (mut source, mut target) = (own.connect().unwrap(), peer.connect().unwrap());
        for line in ["SET warm up", "SET k 1", "SET other 1", "RPUSH list a b", "SET gone 1"] {
            assert_eq!(source.words(line).unwrap().error(), None);
        }
        assert_eq!(migrate(&mut source, &peer, "\"\" 0 1000 KEYS warm gone"), ok());
        assert_eq!(target.words("SET other theirs").unwrap(), ok());
        peer.signal(Signal::STOP).unwrap();
        let port = peer.port().to_string();
        let keys = ["MIGRATE", "127.0.0.1", &port, "", "0", "20000", "KEYS", "k", "list", "other"];
        source.send(&keys).unwrap();
        wait_until_received(&peer);
        own.signal(Signal::KILL).unwrap();
        peer.signal(Signal::CONT).unwrap();
        assert!(wait::until(|| target.words("EXISTS k list").unwrap() == Value::Int(2)), "{kind:?}");

        own.start_elsewhere(&flags).unwrap();
        let mut source = own.connect().unwrap();
        assert_eq!(source.words("EXISTS k list other gone").unwrap(), Value::Int(3), "{kind:?}");
        assert_eq!(source.words("INCR k").unwrap(), Value::Int(2));
        assert_eq!(source.words("RPUSH list c").unwrap(), Value::Int(3));
        // Once more: what is known of the keys outlives the next crash, though their values have changed.
        own.signal(Signal::KILL).unwrap();
        own.start_elsewhere(&flags).unwrap();
        let mut source = own.connect().unwrap();
        assert_eq!(migrate(&mut source, &peer, "\"\" 0 1000 KEYS k list"), ok(), "{kind:?}");
        assert_eq!(source.words("EXISTS k list").unwrap(), Value::Int(0));
        assert_eq!(target.words("GET k").unwrap(), Value::Bulk(b"2".to_vec()), "{kind:?}");
        assert_eq!(target.words("LLEN list").unwrap(), Value::Int(3), "{kind:?}");
        let refused = text(&migrate(&mut source, &peer, "other 0 1000"));
        assert!(refused.contains("BUSYKEY"), "{kind:?}: {refused}");
        assert_eq!(target.words("GET other").unwrap(), Value::Bulk(b"theirs".to_vec()));
    }
}

/// Elements are pushed to lists that move to and fro, by clients that look for the list on both sides. `LPUSHX` says whether it
/// found it, so that each element is acknowledged by one side: at the end each is there once.
#[test]
fn what_is_written_to_keys_that_move_to_and_fro_is_there_once() {
    const KEYS: usize = 8;
    const WRITERS: usize = 4;
    const ELEMENTS: usize = 400;
    let sides = [Server::under_test(&[]).unwrap(), Server::start(ServerKind::Towline, &[]).unwrap()];
    let mut conns = [sides[0].connect().unwrap(), sides[1].connect().unwrap()];
    for key in 0..KEYS {
        conns[key % 2].words(&format!("RPUSH list:{key} first")).unwrap();
    }
    let is_over = AtomicBool::new(false);
    let mut moves = [0, 0];
    std::thread::scope(|scope| {
        let movers = [0, 1].map(|side| {
            let (sides, is_over) = (&sides, &is_over);
            scope.spawn(move || {
                let (mut conn, mut moved) = (sides[side].connect().unwrap(), 0);
                while !is_over.load(Ordering::Relaxed) {
                    for batch in [[0, 1, 2], [3, 4, 5], [5, 6, 7]] {
                        let keys = batch.map(|key| format!("list:{key}")).join(" ");
                        let reply = migrate(&mut conn, &sides[1 - side], &format!("\"\" 0 5000 KEYS {keys}"));
                        assert!(reply.error().is_none(), "{reply}");
                        moved += usize::from(reply == ok());
                    }
                }
                moved
            })
        });
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let sides = &sides;
                scope.spawn(move || {
                    let mut conns = [sides[0].connect().unwrap(), sides[1].connect().unwrap()];
                    for element in 0..ELEMENTS {
                        let (key, element) = (element % KEYS, format!("{writer}-{element}"));
                        let mut side = element.len() % 2;
                        let push = format!("LPUSHX list:{key} {element}");
                        while conns[side].words(&push).unwrap() == Value::Int(0) {
                            side = 1 - side;
                        }
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
        moves = movers.map(|mover| mover.join().unwrap());
    });
    let mut seen = BTreeMap::<String, usize>::new();
    for key in 0..KEYS {
        for conn in &mut conns {
            let list = conn.words(&format!("LRANGE list:{key} 0 -1")).unwrap();
            list.items().unwrap().iter().for_each(|item| *seen.entry(item.to_string()).or_default() += 1);
        }
    }
    let expected = WRITERS * ELEMENTS + 1;
    let odd: Vec<_> = seen.iter().filter(|(item, count)| **count != 1 && !item.contains("first")).collect();
    assert!(odd.is_empty() && seen.len() == expected, "{} of {expected}: {odd:?}", seen.len());
    assert_eq!(seen.values().sum::<usize>(), WRITERS * ELEMENTS + KEYS);
    assert!(moves.iter().all(|&moved| moved > 3), "{moves:?} batches were moved");
}

#[test]
fn who_watches_waits_tracks_or_listens_is_told() {
    let own = Server::under_test(&["--notify-keyspace-events", "KEA"]).unwrap();
    let peer = Server::start(ServerKind::Towline, &["--notify-keyspace-events", "KEA"]).unwrap();
    let (mut source, mut mover) = (own.connect().unwrap(), own.connect().unwrap());
    let (mut events, mut arrivals) = (own.connect().unwrap(), peer.connect().unwrap());
    events.words("PSUBSCRIBE __keyevent@0__:*").unwrap();
    arrivals.words("PSUBSCRIBE __keyevent@0__:*").unwrap();
    let mut tracker = own.connect_resp3().unwrap();
    tracker.words("CLIENT TRACKING ON").unwrap();
    let mut waiter = peer.connect().unwrap();
    waiter.send(&["BLPOP", "k", "10"]).unwrap();
    source.words("RPUSH k v").unwrap();
    tracker.words("LLEN k").unwrap();
    source.words("WATCH k").unwrap();
    assert_eq!(migrate(&mut mover, &peer, "k 0 1000"), ok());
    source.words("MULTI").unwrap();
    source.words("SET x 1").unwrap();
    assert!(source.words("EXEC").unwrap().is_null(), "a watched key has moved away");
    assert!(waiter.read().unwrap().to_string().contains('v'), "who waits there is served");
    assert!(tracker.read().unwrap().to_string().contains("invalidate"));
    let event = |conn: &mut Conn| conn.read().unwrap().to_string();
    assert!(event(&mut events).contains("rpush"));
    assert!(event(&mut events).contains("del"));
    assert!(event(&mut arrivals).contains("restore"));
}

#[test]
fn a_large_value_is_restored_in_its_place_among_other_commands() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    let fields = (0..20_000).flat_map(|i| [format!("field-{i}"), format!("value-{i}")]);
    let fill: Vec<String> = ["HSET".to_owned(), "k".to_owned()].into_iter().chain(fields).collect();
    conn.call(&fill).unwrap();
    let payload = conn.words("DUMP k").unwrap().bytes().unwrap().to_vec();
    let restore = |options: &[&[u8]]| {
        let args = [&[b"RESTORE".as_slice(), b"copy", b"0", &payload], options].concat();
        args.into_iter().map(<[u8]>::to_vec).collect::<Vec<_>>()
    };
    let words = |line: &str| line.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
    let replies = conn
        .pipeline(&[
            words("EXISTS copy"),
            restore(&[]),
            words("HLEN copy"),
            restore(&[]),
            words("MULTI"),
            restore(&[b"REPLACE"]),
            words("HLEN copy"),
            words("EXEC"),
            words("PING"),
        ])
        .unwrap();
    assert_eq!(replies[..3], [Value::Int(0), ok(), Value::Int(20_000)]);
    assert_eq!(replies[3].error().unwrap(), "BUSYKEY Target key name already exists.");
    assert_eq!(replies[7], Value::Array(vec![ok(), Value::Int(20_000)]));
    let mut broken = payload.clone();
    broken[100] ^= 1;
    let refused = conn.call(&[&b"RESTORE"[..], b"bad", b"0", &broken]).unwrap();
    assert_eq!(refused.error().unwrap(), "ERR DUMP payload version or checksum are wrong");
    assert_eq!(conn.call(&restore(&[b"REPLACE"])).unwrap(), ok());
}

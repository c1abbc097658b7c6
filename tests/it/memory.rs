//! `maxmemory`: the limit holds whatever is written.

use e2e::conn::Conn;
use e2e::process::Server;
use e2e::value::Value;
use e2e::wait;

const MIB: u64 = 1 << 20;

/// One number of `INFO memory`.
fn memory(conn: &mut Conn, field: &str) -> u64 {
    let text = conn.words("INFO memory").unwrap();
    let text = String::from_utf8_lossy(text.bytes().unwrap()).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).unwrap();
    line.parse().unwrap()
}

#[test]
fn large_values_over_many_small_keys_exceed_the_limit_by_one_value_at_most() {
    const LIMIT: u64 = 24 * MIB;
    const VALUE: u64 = 4 * MIB;
    let server =
        Server::under_test(&["--maxmemory", &LIMIT.to_string(), "--maxmemory-policy", "allkeys-random"])
            .unwrap();
    let mut conn = server.connect().unwrap();
    assert_eq!(conn.words("DEBUG POPULATE 100000 key 100").unwrap().error(), None);
    assert!(memory(&mut conn, "used_memory") > LIMIT / 2);
    let value = "x".repeat(VALUE as usize);
    for number in 0..8 {
        let reply = conn.call(&["SET", &format!("big{number}"), &value]).unwrap();
        assert_eq!(reply, Value::Simple(b"OK".to_vec()));
    }
    // A value grows in its buffer while it comes in, hence the second one.
    let peak = memory(&mut conn, "used_memory_peak");
    assert!(peak < LIMIT + 2 * VALUE, "the peak was {} MiB", peak / MIB);
}

#[test]
fn nothing_is_refused_after_a_flush() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    for _ in 0..3 {
        conn.words("DEBUG POPULATE 100000 key 100").unwrap();
        let limit = memory(&mut conn, "used_memory") - MIB;
        conn.call(&["CONFIG", "SET", "maxmemory", &limit.to_string()]).unwrap();
        assert!(conn.words("SET k v").unwrap().error().is_some_and(|error| error.starts_with("OOM")));
        let mut commands = vec![vec!["FLUSHALL".to_owned()]];
        commands.extend((0..1000).map(|number| vec!["SET".into(), format!("k{number}"), "v".into()]));
        let replies = conn.pipeline(&commands).unwrap();
        assert!(replies.iter().all(|reply| reply.error().is_none()), "{:?}", replies.last());
        conn.words("CONFIG SET maxmemory 0").unwrap();
    }
}

#[test]
fn the_largest_clients_are_closed_when_all_take_too_much() {
    let server = Server::under_test(&[]).unwrap();
    let mut admin = server.connect().unwrap();
    admin.words("CONFIG SET maxmemory-clients 8mb").unwrap();
    admin.words("CLIENT NO-EVICT ON").unwrap();
    let unfinished = |bytes: usize, first: &str| {
        let mut conn = server.connect().unwrap();
        conn.words(first).unwrap();
        conn.write(format!("*2\r\n$3\r\nGET\r\n${}\r\n", 32 << 20).as_bytes()).unwrap();
        // The server may close the connection before it has read all.
        let _ = conn.write(&vec![b'x'; bytes]);
        conn
    };
    let _exempt = unfinished(4 << 20, "CLIENT NO-EVICT ON");
    let _small = unfinished(1 << 20, "PING");
    let mut large = unfinished(6 << 20, "PING");
    assert!(large.read().is_err(), "4 + 1 + 6 MiB are too much");
    let info = admin.words("INFO stats").unwrap();
    assert!(String::from_utf8_lossy(info.bytes().unwrap()).contains("evicted_clients:1\r"), "{info}");
    // The server closes the socket before it forgets the client.
    let mut count =
        || admin.words("CLIENT LIST").unwrap().bytes().unwrap().split(|&byte| byte == b'\n').count() - 1;
    assert!(wait::until(|| count() == 3), "{} clients are left", count());
}

//! What a server must give back: descriptors, memory, the traces of clients that are gone.

use e2e::process::Server;
use e2e::value::Value;
use e2e::wait;

/// Descriptors that a server may open late and keep: timers, pipes, one of each for a worker.
const LATE_FILES: usize = 8;

#[test]
fn closed_connections_give_their_descriptors_back() {
    let server = Server::under_test(&[]).unwrap();
    let mut watcher = server.connect().unwrap();
    watcher.words("PING").unwrap();
    let before = server.open_files().unwrap();
    for _ in 0..5 {
        let mut open = Vec::new();
        for number in 0..100 {
            let mut conn = server.connect().unwrap();
            // Clients leave in every state: idle, subscribed, in a transaction, blocked, in the middle of a request.
            let states = ["PING", "SUBSCRIBE c", "MULTI", "BLPOP k 0", "WATCH k", "CLIENT TRACKING ON"];
            conn.send(&states[number % states.len()].split(' ').collect::<Vec<_>>()).unwrap();
            conn.write(b"*2\r\n$3\r\nGET\r\n$10\r\nab").unwrap();
            open.push(conn);
        }
    }
    // One state whose connections stay would leave eighty.
    let is_back = wait::until(|| server.open_files().unwrap() <= before + LATE_FILES);
    assert!(is_back, "{} descriptors, {before} at the start", server.open_files().unwrap());
    assert_eq!(watcher.words("PUBSUB NUMSUB c").unwrap().items().unwrap()[1], Value::Int(0));
}

#[test]
fn memory_does_not_grow_over_rounds_of_the_same_work() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    let mut sizes = Vec::new();
    for _ in 0..8 {
        for part in 0..20 {
            let mut commands = Vec::new();
            for number in 0..200 {
                let id = part * 200 + number;
                let value = "v".repeat(50 + number);
                commands.push(vec![
                    "SET".into(),
                    format!("s{id}"),
                    value.clone(),
                    "EX".into(),
                    "1000".into(),
                ]);
                commands.push(vec!["RPUSH".into(), format!("l{}", id % 50), value.clone()]);
                commands.push(vec!["HSET".into(), format!("h{}", id % 50), format!("f{id}"), value.clone()]);
                commands.push(vec!["SADD".into(), format!("e{}", id % 50), value.clone()]);
                commands.push(vec!["ZADD".into(), format!("z{}", id % 50), id.to_string(), value]);
            }
            conn.pipeline(&commands).unwrap();
        }
        conn.words("FLUSHALL SYNC").unwrap();
        assert_eq!(conn.words("DBSIZE").unwrap(), Value::Int(0));
        sizes.push(server.resident_bytes().unwrap());
    }
    let (early, late) = (sizes[2], sizes[7]);
    assert!(late < early + (8 << 20), "resident memory after each round: {sizes:?}");
}

#[test]
fn overwriting_one_key_does_not_accumulate() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    let mut run = || {
        for _ in 0..50 {
            conn.call(&[&b"SET"[..], b"k", &vec![b'x'; 1 << 20]]).unwrap();
            conn.words("GET k").unwrap();
            conn.words("SET k small").unwrap();
        }
        server.resident_bytes().unwrap()
    };
    let early = run();
    let late = run();
    assert!(late < early + (16 << 20), "{early} bytes, then {late}");
}

#[test]
fn expired_keys_that_nobody_reads_are_freed() {
    const KEYS: usize = 20_000;
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    for part in 0..KEYS / 1000 {
        let commands: Vec<Vec<String>> = (0..1000)
            .map(|number| {
                vec![
                    "SET".into(),
                    format!("{}", part * 1000 + number),
                    "v".repeat(100),
                    "PX".into(),
                    "50".into(),
                ]
            })
            .collect();
        conn.pipeline(&commands).unwrap();
    }
    let is_empty = wait::until(|| conn.words("DBSIZE").unwrap() == Value::Int(0));
    assert!(is_empty, "{} of {KEYS} expired keys are still counted", conn.words("DBSIZE").unwrap());
}

#[test]
fn maxmemory_holds_and_evicts_or_refuses() {
    let server = Server::under_test(&["--maxmemory", "20mb", "--maxmemory-policy", "allkeys-lru"]).unwrap();
    let mut conn = server.connect().unwrap();
    let fill = |conn: &mut e2e::conn::Conn| -> Vec<Value> {
        let mut replies = Vec::new();
        for part in 0..60 {
            let commands: Vec<Vec<String>> = (0..100)
                .map(|number| vec!["SET".into(), format!("k{}", part * 100 + number), "v".repeat(10_000)])
                .collect();
            replies.extend(conn.pipeline(&commands).unwrap());
        }
        replies
    };
    let replies = fill(&mut conn);
    assert!(replies.iter().all(|reply| *reply == Value::Simple(b"OK".to_vec())), "{:?}", replies.last());
    let kept = conn.words("DBSIZE").unwrap().int().unwrap();
    assert!((300..2000).contains(&kept), "{kept} of 6000 keys of 10 kB in 20 MB");
    conn.words("CONFIG SET maxmemory-policy noeviction").unwrap();
    let replies = fill(&mut conn);
    let refused = replies.iter().find_map(Value::error);
    assert_eq!(refused.as_deref(), Some("OOM command not allowed when used memory > 'maxmemory'."));
    assert_eq!(conn.words("GET missing").unwrap(), Value::NullBulk, "reads go on");
}

#[test]
fn a_pipeline_whose_replies_nobody_reads_is_cut_at_the_output_limit() {
    let server = Server::under_test(&["--client-output-buffer-limit", "normal 8mb 4mb 2"]).unwrap();
    let mut watcher = server.connect().unwrap();
    watcher.call(&[&b"SET"[..], b"k", &[b'x'; 100_000]]).unwrap();
    let mut silent = server.connect().unwrap();
    silent.words("PING").unwrap();
    // 300 MB of replies for 120 KB of requests: they arrive in very few reads.
    let request = b"*4\r\n$8\r\nGETRANGE\r\n$1\r\nk\r\n$1\r\n0\r\n$5\r\n99998\r\n";
    // The server may cut the connection before it has taken all of it.
    let _ = silent.write(&request.repeat(3000));
    let is_cut = wait::until(|| {
        let clients = watcher.words("CLIENT LIST").unwrap().to_string();
        clients.matches(" laddr=").count() == 1
    });
    assert!(is_cut, "the silent client is still there");
    let peak = server.peak_bytes().unwrap();
    assert!(peak < 100 << 20, "peak of {peak} bytes for a limit of 8 MB");
}

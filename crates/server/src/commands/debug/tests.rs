use crate::client::Addresses;
use crate::config::{Access, Config};
use crate::session::Session;
use crate::testing::Server;

#[test]
fn only_clients_that_may_debug() {
    let run_from = |access, peer: &str| {
        let mut server =
            Server::with(Config { workers: 1, enable_debug_command: access, ..Config::default() });
        let addresses = Addresses { peer: peer.into(), ..Addresses::default() };
        let client = server.local.shared.clients.add(addresses, server.now_ms);
        server.session = Session::new(client, true);
        server.line("DEBUG SLEEP 0")
    };
    for peer in ["127.0.0.1:5", "[::1]:5", "[::ffff:127.0.0.1]:5"] {
        assert_eq!(run_from(Access::Local, peer), "+OK", "{peer}");
    }
    assert!(
        run_from(Access::Local, "10.0.0.1:5")
            .starts_with("-ERR DEBUG command not allowed. If the enable-debug-command")
    );
    assert_eq!(run_from(Access::Yes, "10.0.0.1:5"), "+OK");
    assert!(run_from(Access::No, "127.0.0.1:5").starts_with("-ERR DEBUG command not allowed"));
}

#[test]
fn objects_are_described() {
    let mut server = Server::new();
    server.line("SET k abc");
    server.line("SET n 12");
    server.advance(3000);
    let text = server.line("DEBUG OBJECT k");
    assert!(text.starts_with("+Value at:0x0 refcount:1 encoding:embstr serializedlength:4 lru:"), "{text}");
    assert!(text.ends_with("lru_seconds_idle:3"), "{text}");
    assert!(server.line("DEBUG OBJECT n").contains("encoding:int serializedlength:2"));
    server.line("CONFIG SET list-max-listpack-size 2");
    server.line("RPUSH l a b c d e");
    let text = server.line("DEBUG OBJECT l");
    assert!(
        text.contains("encoding:quicklist")
            && text.contains(" ql_nodes:3 ql_avg_node:1.67 ql_listpack_max:2 "),
        "{text}"
    );
    assert_eq!(server.line("DEBUG OBJECT none"), "-ERR no such key");
}

const FILL: &[&str] = &[
    "SET s 1",
    "RPUSH l a b c",
    "SADD i 1 2 3",
    "SADD t x y z",
    "HSET h a 1 b 2",
    "ZADD z 1 a 2.5 b",
    "PEXPIRE s 100000",
];

#[test]
fn digests_depend_on_the_data_and_on_nothing_else() {
    let digest = |lines: &[&str]| {
        let mut server = Server::new();
        for line in lines {
            assert!(!server.line(line).starts_with('-'), "{line}");
        }
        server.line("DEBUG DIGEST")
    };
    let zeros = format!("+{}", "0".repeat(40));
    assert_eq!(digest(&[]), zeros);
    let whole = digest(FILL);
    let others = [
        "HSET h b 2 a 1",
        "ZADD z 2.5 b 1 a",
        "SADD t z y x",
        "SADD i 3 2 1",
        "RPUSH l a b c",
        "SET s 1",
        "PEXPIRE s 900000",
    ];
    assert_eq!(digest(&others), whole, "in another order");
    assert_eq!(digest(&[FILL, &["CONFIG SET set-max-intset-entries 0"]].concat()), whole);
    for change in [
        "SET s 2",
        "RPUSH l d",
        "LSET l 0 b",
        "SREM t x",
        "HSET h a 2",
        "ZADD z 3 a",
        "PERSIST s",
        "DEL s",
        "RENAME s r",
    ] {
        assert_ne!(digest(&[FILL, &[change]].concat()), whole, "{change}");
    }
    assert_ne!(digest(&["RPUSH l a b"]), digest(&["RPUSH l b a"]), "lists have an order");
    assert_ne!(digest(&["SADD x ab"]), digest(&["RPUSH x ab"]), "kinds differ");
    let mut server = Server::new();
    server.line("SET k v");
    let here = server.line("DEBUG DIGEST");
    server.line("MOVE k 1");
    assert_ne!(server.line("DEBUG DIGEST"), here, "databases differ");
    server.line("FLUSHALL");
    assert_eq!(server.line("DEBUG DIGEST"), zeros);
}

#[test]
fn digests_of_values_leave_the_key_out() {
    let mut server = Server::new();
    for line in ["SADD a x y", "SADD b y x", "SADD c x"] {
        server.line(line);
    }
    let reply = server.line("DEBUG DIGEST-VALUE a b c none");
    let parts: Vec<_> = reply.split(' ').collect();
    assert_eq!((parts[0], parts[1] == parts[2], parts[1] == parts[3]), ("*4", true, false));
    assert_eq!(parts[4], format!("+{}", "0".repeat(40)));
    assert_eq!(server.line("DEBUG DIGEST-VALUE"), "*0");
}

#[test]
fn protocol_samples_in_both_protocols() {
    let (mut old, mut new) = (Server::new(), Server::new().resp3());
    for (kind, resp2, resp3) in [
        ("string", "$11 Hello World", "$11 Hello World"),
        ("integer", ":12345", ":12345"),
        ("double", "$5 3.141", ",3.141"),
        ("null", "$-1", "_"),
        ("array", "*3 :0 :1 :2", "*3 :0 :1 :2"),
        ("set", "*3 :0 :1 :2", "~3 :0 :1 :2"),
        ("map", "*6 :0 :0 :1 :1 :2 :0", "%3 :0 #f :1 #t :2 #f"),
        (
            "attrib",
            "$39 Some real reply following the attribute",
            "|1 $14 key-popularity *2 $7 key:123 :90 $39 Some real reply following the attribute",
        ),
        (
            "push",
            "-ERR RESP2 is not supported by this command",
            "$40 Some real reply following the push reply >2 $16 server-cpu-usage :42",
        ),
        ("verbatim", "$25 This is a verbatim\nstring", "=29 txt:This is a verbatim\nstring"),
        ("true", ":1", "#t"),
        ("false", ":0", "#f"),
        ("bignum", "$37 1234567999999999999999999999999999999", "(1234567999999999999999999999999999999"),
    ] {
        assert_eq!(old.run(&["DEBUG", "PROTOCOL", kind]), resp2);
        assert_eq!(new.run(&["DEBUG", "PROTOCOL", kind]), resp3);
    }
    assert!(old.line("DEBUG PROTOCOL foo").starts_with("-ERR Wrong protocol type name."));
}

#[test]
fn populate_keeps_what_is_there() {
    let mut server = Server::new();
    server.line("SET k:1 mine");
    assert_eq!(server.line("DEBUG POPULATE 3 k 5"), "+OK");
    assert_eq!(server.line("MGET k:0 k:1 k:2"), "*3 $5 value $4 mine $5 value");
    server.line("DEBUG POPULATE 2");
    assert_eq!(server.line("GET key:1"), "$7 value:1");
    assert_eq!(server.line("DEBUG POPULATE -1"), "-ERR value is out of range, must be positive");
    assert_eq!(server.line("DEBUG POPULATE x"), "-ERR value is not an integer or out of range");
    assert!(server.line("DEBUG POPULATE 1 big 99999999999").starts_with("-ERR string exceeds"));
}

#[test]
fn small_ones() {
    let mut server = Server::new();
    server.line("SADD s a");
    server.line("DEBUG POPULATE 3");
    assert_eq!(server.line("DEBUG SLEEP x"), "+OK");
    assert_eq!(server.line("DEBUG SET-ACTIVE-EXPIRE 0"), "+OK");
    assert!(!server.local.shared.active_expire.load(std::sync::atomic::Ordering::Relaxed));
    assert_eq!(server.line("DEBUG QUICKLIST-PACKED-THRESHOLD 100b"), "+OK");
    assert_eq!(server.line("DEBUG ERROR foo"), "-foo");
    assert_eq!(server.line("DEBUG LOG hi"), "+OK");
    let before = server.local.shared.replication_id();
    assert_eq!(server.line("DEBUG CHANGE-REPL-ID"), "+OK");
    assert_ne!(server.local.shared.replication_id(), before);
    assert_eq!(server.line("DEBUG STRINGMATCH-LEN 1000 a*a*a*b"), ":0");
    assert_eq!(server.line("DEBUG STRINGMATCH-LEN 1000 a*a"), ":1");
    assert!(server.line("DEBUG LISTPACK s").starts_with("+listpack with 1 elements"));
    assert_eq!(server.line("DEBUG LISTPACK key:0"), "-ERR Not a listpack encoded object.");
    assert!(server.line("DEBUG HTSTATS 0").contains("number of elements: 4"));
    assert_eq!(server.line("DEBUG HTSTATS 16"), "-ERR Out of range database");
    assert!(server.line("DEBUG HTSTATS-KEY s").starts_with("-ERR The value stored at"));
    for refused in ["RELOAD x", "LOADAOF x", "SEGFAULT", "OOM", "JMAP", "RESTART"] {
        assert!(server.run(&["DEBUG", refused]).starts_with("-ERR "), "{refused}");
    }
    assert_eq!(
        server.line("DEBUG FOO"),
        "-ERR unknown subcommand or wrong number of arguments for 'FOO'. Try DEBUG HELP."
    );
    assert!(server.line("DEBUG HELP").contains("+DIGEST"));
    assert_eq!(server.line("DEBUG"), "-ERR wrong number of arguments for 'debug' command");
}

#[test]
fn sleep_reads_its_argument_as_c_does() {
    for (text, ms) in [
        ("0.25", 250),
        ("0.25s", 250),
        (" 1e-1x", 100),
        ("abc", 0),
        ("", 0),
        ("-1", 0),
        ("inf", 0),
        ("nan", 0),
        ("1e400", 0),
        ("1e13", 0),
        ("100000", 3_600_000),
    ] {
        assert_eq!(super::sleep_time(text.as_bytes()).as_millis(), ms, "{text}");
    }
}

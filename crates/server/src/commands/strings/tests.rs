use crate::testing::{START_MS, Server};

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";
const SYNTAX: &str = "-ERR syntax error";

fn with_list() -> Server {
    let mut server = Server::new();
    server.line("RPUSH l 1");
    server
}

#[test]
fn set_and_get() {
    let mut server = with_list();
    assert_eq!(server.line("SET k v"), "+OK");
    assert_eq!(server.line("GET k"), "$1 v");
    assert_eq!(server.line("SET k 42"), "+OK");
    assert_eq!(server.line("GET k"), "$2 42");
    assert_eq!(server.line("OBJECT ENCODING k"), "$3 int");
    assert_eq!(server.run(&["SET", "k", ""]), "+OK");
    assert_eq!(server.line("GET k"), "$0");
    assert_eq!(server.line("GET none"), "$-1");
    assert_eq!(server.line("GET l"), WRONG_TYPE);
    assert_eq!(server.line("SET l now-a-string"), "+OK");
    assert_eq!(server.line("GET l"), "$12 now-a-string");
}

#[test]
fn set_with_conditions() {
    let mut server = with_list();
    assert_eq!(server.line("SET k a XX"), "$-1");
    assert_eq!(server.line("SET k a NX"), "+OK");
    assert_eq!(server.line("SET k b nx"), "$-1");
    assert_eq!(server.line("SET k b XX"), "+OK");
    assert_eq!(server.line("SET k c IFEQ a"), "$-1");
    assert_eq!(server.line("SET k c IFEQ b"), "+OK");
    assert_eq!(server.line("SET none c IFEQ b"), "$-1");
    assert_eq!(server.line("SET l c IFEQ b"), WRONG_TYPE);
    assert_eq!(server.line("SET k d IFEQ x GET"), "$1 c");
    assert_eq!(server.line("SET k d IFEQ c GET"), "$1 c");
    assert_eq!(server.line("GET k"), "$1 d");
    assert_eq!(server.line("EXISTS none"), ":0");
}

#[test]
fn set_answers_the_old_value() {
    let mut server = with_list();
    assert_eq!(server.line("SET k a GET"), "$-1");
    assert_eq!(server.line("SET k b GET"), "$1 a");
    assert_eq!(server.line("SET k c NX GET"), "$1 b");
    assert_eq!(server.line("GET k"), "$1 b");
    assert_eq!(server.line("SET new c XX GET"), "$-1");
    assert_eq!(server.line("EXISTS new"), ":0");
    assert_eq!(server.line("SET l c GET"), WRONG_TYPE);
    assert_eq!(server.line("TYPE l"), "+list");
}

#[test]
fn set_with_an_expiry() {
    let mut server = Server::new();
    server.line("SET k v EX 10");
    assert_eq!(server.line("PTTL k"), ":10000");
    server.line("SET k v KEEPTTL");
    assert_eq!(server.line("PTTL k"), ":10000");
    server.line("SET k v");
    assert_eq!(server.line("PTTL k"), ":-1");
    server.line("SET k v px 15");
    assert_eq!(server.line("PTTL k"), ":15");
    server.line(&format!("SET k v EXAT {}", START_MS / 1000 + 3));
    assert_eq!(server.line("PTTL k"), ":3000");
    server.line(&format!("SET k v PXAT {}", START_MS + 4));
    assert_eq!(server.line("PTTL k"), ":4");
    server.advance(4);
    assert_eq!(server.line("GET k"), "$-1");
    assert_eq!(server.line("SET k v PXAT 1"), "+OK");
    assert_eq!(server.line("GET k"), "$-1");
}

#[test]
fn set_refuses_what_does_not_fit() {
    let mut server = Server::new();
    for options in [
        "NX XX",
        "EX 1 PX 1",
        "EX 1 KEEPTTL",
        "KEEPTTL PX 1",
        "EX",
        "PERSIST",
        "IFEQ",
        "IFEQ a NX",
        "XX IFEQ a",
        "FOO",
    ] {
        assert_eq!(server.line(&format!("SET k v {options}")), SYNTAX, "{options}");
    }
    for number in ["0", "-1", "9223372036854775807"] {
        let error = "-ERR invalid expire time in 'set' command";
        assert_eq!(server.line(&format!("SET k v EX {number}")), error, "{number}");
    }
    assert_eq!(server.line("SET k v EX x"), "-ERR value is not an integer or out of range");
    assert_eq!(server.line("EXISTS k"), ":0");
    assert_eq!(server.line("SET k v EX 1 EX 2"), "+OK");
    assert_eq!(server.line("TTL k"), ":2");
}

#[test]
fn older_forms_of_set() {
    let mut server = with_list();
    assert_eq!(server.line("SETNX k a"), ":1");
    assert_eq!(server.line("SETNX k b"), ":0");
    assert_eq!(server.line("SETNX l b"), ":0");
    assert_eq!(server.line("SETEX k 7 c"), "+OK");
    assert_eq!(server.line("PTTL k"), ":7000");
    assert_eq!(server.line("PSETEX k 7 d"), "+OK");
    assert_eq!(server.line("PTTL k"), ":7");
    assert_eq!(server.line("SETEX k 0 c"), "-ERR invalid expire time in 'setex' command");
    assert_eq!(server.line("PSETEX k x c"), "-ERR value is not an integer or out of range");
    assert_eq!(server.line("GETSET k e"), "$1 d");
    assert_eq!(server.line("PTTL k"), ":-1");
    assert_eq!(server.line("GETSET new e"), "$-1");
    assert_eq!(server.line("GETSET l e"), WRONG_TYPE);
}

#[test]
fn getdel_and_delifeq() {
    let mut server = with_list();
    server.line("SET k v");
    assert_eq!(server.line("GETDEL k"), "$1 v");
    assert_eq!(server.line("GETDEL k"), "$-1");
    assert_eq!(server.line("GETDEL l"), WRONG_TYPE);
    server.line("SET k 10");
    assert_eq!(server.line("DELIFEQ k v"), ":0");
    assert_eq!(server.line("DELIFEQ k 10"), ":1");
    assert_eq!(server.line("DELIFEQ k 10"), ":0");
    assert_eq!(server.line("DELIFEQ l 10"), WRONG_TYPE);
}

#[test]
fn getex_changes_the_expiry() {
    let mut server = with_list();
    server.line("SET k v");
    assert_eq!(server.line("GETEX k"), "$1 v");
    assert_eq!(server.line("GETEX k EX 5"), "$1 v");
    assert_eq!(server.line("PTTL k"), ":5000");
    assert_eq!(server.line("GETEX k"), "$1 v");
    assert_eq!(server.line("PTTL k"), ":5000");
    assert_eq!(server.line("GETEX k persist"), "$1 v");
    assert_eq!(server.line("PTTL k"), ":-1");
    assert_eq!(server.line("GETEX k PERSIST EX 1"), SYNTAX);
    assert_eq!(server.line("GETEX k NX"), SYNTAX);
    assert_eq!(server.line("GETEX k EX 0"), "-ERR invalid expire time in 'getex' command");
    assert_eq!(server.line("GETEX none EX 0"), "$-1");
    assert_eq!(server.line("GETEX l EX 1"), WRONG_TYPE);
    assert_eq!(server.line("GETEX k PXAT 1"), "$1 v");
    assert_eq!(server.line("EXISTS k"), ":0");
}

#[test]
fn several_keys_at_once() {
    let mut server = with_list();
    assert_eq!(server.line("MSET a 1 b 2 a 3"), "+OK");
    assert_eq!(server.line("MGET a b none l"), "*4 $1 3 $1 2 $-1 $-1");
    assert_eq!(server.line("MSET a 1 b"), "-ERR wrong number of arguments for 'mset' command");
    assert_eq!(server.line("MSETNX c 1 b 9"), ":0");
    assert_eq!(server.line("EXISTS c"), ":0");
    assert_eq!(server.line("MSETNX c 1 d 9"), ":1");
    assert_eq!(server.line("MSETNX c 1 d"), "-ERR wrong number of arguments for 'msetnx' command");
    let mut server = server.resp3();
    assert_eq!(server.line("MGET none"), "*1 _");
}

#[test]
fn msetex() {
    let mut server = Server::new();
    assert_eq!(server.line("MSETEX 2 a 1 b 2 EX 10"), ":1");
    assert_eq!(server.line("PTTL b"), ":10000");
    assert_eq!(server.line("MSETEX 2 a 3 b 4 KEEPTTL XX"), ":1");
    assert_eq!(server.line("PTTL b"), ":10000");
    assert_eq!(server.line("MSETEX 2 a 5 c 6 NX"), ":0");
    assert_eq!(server.line("MSETEX 2 a 5 c 6 XX"), ":0");
    assert_eq!(server.line("MGET a b c"), "*3 $1 3 $1 4 $-1");
    assert_eq!(server.line("MSETEX 1 a 5"), ":1");
    assert_eq!(server.line("PTTL a"), ":-1");
    for line in
        ["MSETEX 2 a 5", "MSETEX 2 a 5 b", "MSETEX 1 a 5 b 6", "MSETEX 1 a 5 GET", "MSETEX 1 a 5 IFEQ 5"]
    {
        assert_eq!(server.line(line), SYNTAX, "{line}");
    }
    for count in ["0", "-1", "x", "3000000000"] {
        let error = "-ERR invalid numkeys value or out of range";
        assert_eq!(server.line(&format!("MSETEX {count} a 5")), error, "{count}");
    }
    assert_eq!(server.line("MSETEX 1 a 5 EX 0"), "-ERR invalid expire time in 'msetex' command");
}

#[test]
fn a_large_value_is_answered_without_a_copy() {
    let mut server = Server::new();
    let value = "x".repeat(100_000);
    assert_eq!(server.run(&["SET", "k", &value]), "+OK");
    assert_eq!(server.line("STRLEN k"), ":100000");
    assert_eq!(server.line("GET k"), format!("$100000 {value}"));
    // A reply that is still on its way keeps the old text.
    assert_eq!(server.line("APPEND k y"), ":100001");
    assert_eq!(server.line("GETRANGE k 99999 -1"), "$2 xy");
}

#[test]
fn changes_are_counted() {
    let mut server = Server::new();
    let before = server.dirty();
    server.line("SET k v EX 10");
    server.line("SET k v NX");
    server.line("SET k v FOO");
    server.line("GET k");
    assert_eq!(server.dirty(), before + 1);
    server.line("MSET a 1 b 2");
    server.line("GETEX k PERSIST");
    server.line("GETEX k PERSIST");
    assert_eq!(server.dirty(), before + 4);
}

/// As seen on Redis 8.2.
#[test]
fn changes_are_published() {
    let mut server = Server::new();
    for (line, events) in [
        ("SET k v EX 10", ["set k", "expire k"].as_slice()),
        ("SET k v", &["set k"]),
        ("SET k v NX", &[]),
        ("PSETEX k 100 v", &["set k", "expire k"]),
        ("MSET k v a b", &["set k", "set a"]),
        ("MSETNX k v n b", &[]),
        ("GETEX k EX 5", &["expire k"]),
        ("GETEX k PERSIST", &["persist k"]),
        ("GETEX k PERSIST", &[]),
        ("GETEX k PXAT 1", &["del k"]),
        ("GETDEL a", &["del a"]),
        ("APPEND k 1", &["append k"]),
        ("INCR k", &["incrby k"]),
        ("INCRBYFLOAT k 1.5", &["incrbyfloat k"]),
        ("SETRANGE k 1 x", &["setrange k"]),
        ("EXPIRE k 100", &["expire k"]),
        ("PERSIST k", &["persist k"]),
        ("RENAME k r", &["rename_from k", "rename_to r"]),
        ("COPY r k", &["copy_to k"]),
        ("MOVE r 1", &["move_from r", "move_to r"]),
        ("BITOP NOT b k", &["set b"]),
        ("BITOP NOT b none", &["del b"]),
        ("PFADD p a", &["pfadd p"]),
        ("PFADD p a", &[]),
        ("PFMERGE q p", &["pfadd q"]),
        ("RPUSH l 2 1", &["rpush l"]),
        ("SORT l STORE d", &["sortstore d"]),
        ("SORT none STORE d", &["del d"]),
        ("EXPIRE k -1", &["del k"]),
        ("UNLINK p q", &["del p", "del q"]),
    ] {
        assert_eq!(server.events(line), events, "{line}");
    }
}

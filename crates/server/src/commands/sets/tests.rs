//! Tests of the commands on sets.

use crate::testing::Server;
use std::collections::BTreeMap;

#[test]
fn members_are_added_and_read() {
    let mut server = Server::new();
    assert_eq!(server.line("SADD s 3 1 2 1"), ":3");
    assert_eq!(server.line("SADD s 3"), ":0");
    assert_eq!(server.line("SMEMBERS s"), "*3 $1 1 $1 2 $1 3");
    assert_eq!(server.line("SMEMBERS nokey"), "*0");
}

#[test]
fn what_is_not_there_reads_as_empty() {
    let mut server = Server::new();
    for (line, reply) in [
        ("SCARD nokey", ":0"),
        ("SISMEMBER nokey a", ":0"),
        ("SMISMEMBER nokey a b", "*2 :0 :0"),
        ("SREM nokey a", ":0"),
        ("SPOP nokey", "$-1"),
        ("SPOP nokey 0", "*0"),
        ("SPOP nokey 1", "*0"),
        ("SRANDMEMBER nokey", "$-1"),
        ("SRANDMEMBER nokey 1", "*0"),
        ("SMOVE nokey x a", ":0"),
        ("SSCAN nokey 0 FOO", "*2 $1 0 *0"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn another_kind_is_refused() {
    let mut server = Server::new();
    server.line("RPUSH l x");
    server.line("SADD s x");
    for line in [
        "SADD l a",
        "SREM l a",
        "SMEMBERS l",
        "SISMEMBER l a",
        "SMISMEMBER l a",
        "SCARD l",
        "SPOP l",
        "SPOP l 0",
        "SRANDMEMBER l",
        "SRANDMEMBER l 0",
        "SMOVE l s x",
        "SMOVE s l x",
        "SMOVE s l zz",
        "SSCAN l 0 FOO",
    ] {
        assert_eq!(
            server.line(line),
            "-WRONGTYPE Operation against a key holding the wrong kind of value",
            "{line}"
        );
    }
    assert_eq!(server.line("SCARD s"), ":1");
}

#[test]
fn members_are_tested_removed_and_moved() {
    let mut server = Server::new();
    server.line("SADD s 1 2 x");
    assert_eq!(server.line("SMISMEMBER s 1 9 x"), "*3 :1 :0 :1");
    assert_eq!(server.line("SISMEMBER s 2"), ":1");
    assert_eq!(server.line("SREM s 1 9 1"), ":1");
    assert_eq!(server.line("SMOVE s t x"), ":1");
    assert_eq!(server.line("SMOVE s t x"), ":0");
    assert_eq!(server.line("SMOVE s s 2"), ":1");
    assert_eq!(server.line("SMOVE s s 9"), ":0");
    assert_eq!(server.line("SADD t 2"), ":1");
    assert_eq!(server.line("SMOVE s t 2"), ":1");
    assert_eq!(server.line("SCARD s"), ":0");
    assert_eq!(server.line("SCARD t"), ":2");
}

#[test]
fn pops_take_out_what_they_answer() {
    let mut server = Server::new();
    server.line("SADD s 1 2 3 4 5");
    assert_eq!(server.line("SPOP s 0"), "*0");
    let popped = server.line("SPOP s");
    assert_eq!(server.run(&["SISMEMBER", "s", &popped[3..]]), ":0");
    assert!(server.line("SPOP s 2").starts_with("*2 $1 "));
    assert!(server.line("SPOP s 9223372036854775807").starts_with("*2 $1 "));
    assert_eq!(server.line("OBJECT ENCODING s"), "$-1");
    for count in ["-1", "x"] {
        assert_eq!(server.run(&["SPOP", "s", count]), "-ERR value is out of range, must be positive");
    }
    assert_eq!(server.line("SPOP s 1 2"), "-ERR syntax error");
}

/// How often each member of `0..count` is in the reply of `line`, which is repeated `rounds` times.
fn tally(server: &mut Server, line: &str, rounds: usize) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for _ in 0..rounds {
        let reply = server.line(line);
        let words = reply.split(' ').filter(|word| !word.starts_with(['*', '$', '~']));
        words.for_each(|word| *counts.entry(word.to_owned()).or_default() += 1);
    }
    counts
}

#[test]
fn random_members_are_equally_likely() {
    for prefix in ["", "m"] {
        let mut server = Server::new();
        let members: Vec<String> = (0..10).map(|member| format!("{prefix}{member}")).collect();
        let words: Vec<&str> = ["SADD", "s"].into_iter().chain(members.iter().map(String::as_str)).collect();
        server.run(&words);
        for (line, rounds) in
            [("SRANDMEMBER s", 10_000), ("SRANDMEMBER s -100", 100), ("SRANDMEMBER s 4", 2_500)]
        {
            let counts = tally(&mut server, line, rounds);
            assert_eq!(counts.len(), 10, "{line}");
            assert!(counts.values().all(|count| (850..1150).contains(count)), "{line}: {counts:?}");
        }
        // Each round pops and adds again, so that every member is equally likely each time.
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for _ in 0..5_000 {
            let popped = server.line("SPOP s");
            let member = popped.split(' ').nth(1).unwrap().to_owned();
            server.run(&["SADD", "s", &member]);
            *counts.entry(member).or_default() += 1;
        }
        assert!(counts.values().all(|count| (400..600).contains(count)), "{counts:?}");
    }
}

#[test]
fn random_members_with_a_count_are_different_or_not() {
    let mut server = Server::new();
    server.line("SADD s 1 2 3");
    assert_eq!(server.line("SRANDMEMBER s 5"), "*3 $1 1 $1 2 $1 3");
    assert_eq!(server.line("SRANDMEMBER s 0"), "*0");
    assert!(server.line("SRANDMEMBER s -500").starts_with("*500 $1 "));
    assert_eq!(server.line("SRANDMEMBER s x"), "-ERR value is not an integer or out of range");
    assert!(
        server
            .line("SRANDMEMBER s -9223372036854775808")
            .starts_with("-ERR value is out of range, value must")
    );
    assert_eq!(server.line("SRANDMEMBER s 1 2"), "-ERR syntax error");
    assert_eq!(server.line("SCARD s"), ":3");
}

#[test]
fn scans_filter() {
    let mut server = Server::new();
    server.line("SADD s 1 20 21");
    assert_eq!(server.line("SSCAN s 0"), "*2 $1 0 *3 $1 1 $2 20 $2 21");
    assert_eq!(server.line("SSCAN s 0 MATCH 2* COUNT 1"), "*2 $1 0 *2 $2 20 $2 21");
    assert_eq!(server.line("SSCAN s 0 NOVALUES"), "-ERR syntax error");
    assert_eq!(server.line("SSCAN s x"), "-ERR invalid cursor");
}

#[test]
fn encodings_change_at_the_limits() {
    let mut server = Server::new();
    server.line("SADD s 1 2 3");
    assert_eq!(server.line("OBJECT ENCODING s"), "$6 intset");
    server.line("SADD s x");
    assert_eq!(server.line("OBJECT ENCODING s"), "$8 listpack");
    server.run(&["SADD", "s", &"x".repeat(65)]);
    assert_eq!(server.line("OBJECT ENCODING s"), "$9 hashtable");
    for member in 0..512 {
        server.run(&["SADD", "ints", &member.to_string()]);
    }
    assert_eq!(server.line("OBJECT ENCODING ints"), "$6 intset");
    server.line("SADD ints 512");
    assert_eq!(server.line("OBJECT ENCODING ints"), "$9 hashtable");
    for member in 0..128 {
        server.run(&["SADD", "texts", &format!("m{member}")]);
    }
    assert_eq!(server.line("OBJECT ENCODING texts"), "$8 listpack");
    server.line("SADD texts one-more");
    assert_eq!(server.line("OBJECT ENCODING texts"), "$9 hashtable");
    server.line("SINTERSTORE few ints s");
    assert_eq!(server.line("OBJECT ENCODING few"), "$6 intset");
}

#[test]
fn changes_notify() {
    let mut server = Server::new();
    assert_eq!(server.events("SADD s 1 2 3 4"), ["sadd s"]);
    assert!(server.events("SADD s 1").is_empty());
    assert_eq!(server.events("SREM s 1 9"), ["srem s"]);
    assert!(server.events("SREM s 9").is_empty());
    assert_eq!(server.events("SMOVE s t 2"), ["srem s", "sadd t"]);
    assert!(server.events("SMOVE s t 9").is_empty());
    assert_eq!(server.events("SPOP s"), ["spop s"]);
    assert_eq!(server.events("SPOP s"), ["spop s", "del s"]);
    server.line("SADD s 1 2");
    assert_eq!(server.events("SPOP s 5"), ["spop s", "del s"]);
    server.line("SADD s 2");
    assert_eq!(server.events("SMOVE s t 2"), ["srem s", "del s"]);
}

#[test]
fn resp3_replies_are_sets() {
    let mut server = Server::new().resp3();
    server.line("SADD s 1 2 3");
    assert_eq!(server.line("SMEMBERS s"), "~3 $1 1 $1 2 $1 3");
    assert_eq!(server.line("SMEMBERS nokey"), "~0");
    assert_eq!(server.line("SRANDMEMBER s 5"), "*3 $1 1 $1 2 $1 3");
    assert_eq!(server.line("SPOP s 0"), "~0");
    assert_eq!(server.line("SPOP s 5"), "~3 $1 1 $1 2 $1 3");
    assert_eq!(server.line("SPOP s 1"), "~0");
    assert_eq!(server.line("SPOP s"), "_");
}

//! Tests of set algebra.

use crate::testing::Server;

fn three_sets() -> Server {
    let mut server = Server::new();
    server.line("SADD a 1 2 3 4");
    server.line("SADD b 2 3 x");
    server.line("SADD c 3 x y");
    server
}

fn sorted(server: &mut Server, line: &str) -> Vec<String> {
    let reply = server.line(line);
    let mut members: Vec<String> = reply.split(' ').skip(2).step_by(2).map(str::to_owned).collect();
    members.sort();
    members
}

#[test]
fn results_are_replied() {
    let mut server = three_sets();
    assert_eq!(server.line("SINTER a b c"), "*1 $1 3");
    assert_eq!(server.line("SINTER a"), "*4 $1 1 $1 2 $1 3 $1 4");
    assert_eq!(server.line("SINTER a nokey"), "*0");
    assert_eq!(sorted(&mut server, "SUNION a b c nokey"), ["1", "2", "3", "4", "x", "y"]);
    assert_eq!(server.line("SUNION nokey"), "*0");
    assert_eq!(server.line("SDIFF a b"), "*2 $1 1 $1 4");
    assert_eq!(server.line("SDIFF nokey a"), "*0");
    assert_eq!(server.line("SDIFF a nokey a"), "*0");
    assert_eq!(sorted(&mut server, "SDIFF c a"), ["x", "y"]);
}

#[test]
fn a_difference_of_many_sets_takes_out() {
    let mut server = three_sets();
    // Many small sets: their members are taken out of a copy.
    for key in 0..20 {
        server.run(&["SADD", &format!("s{key}"), &key.to_string()]);
    }
    server.run(&["SADD", "many", "0", "1", "2", "19", "20", "x"]);
    let keys: Vec<String> = (0..20).map(|key| format!("s{key}")).collect();
    assert_eq!(sorted(&mut server, &format!("SDIFF many {}", keys.join(" "))), ["20", "x"]);
    server.line("SADD s5 20 x");
    assert_eq!(sorted(&mut server, &format!("SDIFF many {}", keys.join(" "))), Vec::<String>::new());
}

#[test]
fn results_are_stored_and_empty_ones_delete() {
    let mut server = three_sets();
    assert_eq!(server.line("SINTERSTORE d a b"), ":2");
    assert_eq!(server.line("SMEMBERS d"), "*2 $1 2 $1 3");
    assert_eq!(server.line("SUNIONSTORE d a b c"), ":6");
    assert_eq!(server.line("SDIFFSTORE d a b c"), ":2");
    assert_eq!(server.line("SMEMBERS d"), "*2 $1 1 $1 4");
    // A destination of any kind is replaced, also one that is a source.
    server.line("RPUSH l x");
    assert_eq!(server.line("SINTERSTORE l a b"), ":2");
    assert_eq!(server.line("SINTERSTORE a a b"), ":2");
    assert_eq!(server.line("SMEMBERS a"), "*2 $1 2 $1 3");
    assert_eq!(server.line("SINTERSTORE a a nokey"), ":0");
    assert_eq!(server.line("SCARD a"), ":0");
    server.line("RPUSH l2 x");
    assert_eq!(server.line("SDIFFSTORE l2 nokey"), ":0");
    assert_eq!(server.line("LLEN l2"), ":0");
}

#[test]
fn a_source_of_another_kind_is_an_error_wherever_it_stands() {
    let mut server = three_sets();
    server.line("RPUSH l x");
    let commands = [
        "SINTER nokey l",
        "SINTER l nokey",
        "SUNION a l",
        "SDIFF nokey l",
        "SINTERCARD 2 nokey l",
        "SINTERSTORE d nokey l",
    ];
    for command in commands {
        assert!(server.line(command).starts_with("-WRONGTYPE"), "{command}");
    }
    assert_eq!(
        server.line("SUNIONSTORE a l b"),
        "-WRONGTYPE Operation against a key holding the wrong kind of value"
    );
    assert_eq!(server.line("SCARD a"), ":4");
}

#[test]
fn sintercard_counts_up_to_a_limit() {
    let mut server = three_sets();
    assert_eq!(server.line("SINTERCARD 2 a b"), ":2");
    assert_eq!(server.line("SINTERCARD 2 a b LIMIT 1"), ":1");
    assert_eq!(server.line("SINTERCARD 2 a b limit 0"), ":2");
    assert_eq!(server.line("SINTERCARD 2 a b LIMIT 5"), ":2");
    assert_eq!(server.line("SINTERCARD 1 a LIMIT 2 LIMIT 1"), ":1");
    assert_eq!(server.line("SINTERCARD 1 nokey"), ":0");
    assert_eq!(server.line("SINTERCARD 0 a"), "-ERR numkeys should be greater than 0");
    assert_eq!(server.line("SINTERCARD x a"), "-ERR numkeys should be greater than 0");
    assert_eq!(server.line("SINTERCARD 2 a"), "-ERR Number of keys can't be greater than number of args");
    assert_eq!(server.line("SINTERCARD 1 a LIMIT -1"), "-ERR LIMIT can't be negative");
    assert_eq!(server.line("SINTERCARD 1 a LIMIT x"), "-ERR LIMIT can't be negative");
    assert_eq!(server.line("SINTERCARD 1 a LIMIT"), "-ERR syntax error");
    assert_eq!(server.line("SINTERCARD 1 a b"), "-ERR syntax error");
}

#[test]
fn stored_results_notify() {
    let mut server = three_sets();
    assert_eq!(server.events("SINTERSTORE d a b"), ["sinterstore d"]);
    assert_eq!(server.events("SUNIONSTORE d a b"), ["sunionstore d"]);
    assert_eq!(server.events("SDIFFSTORE d a b"), ["sdiffstore d"]);
    assert_eq!(server.events("SDIFFSTORE d a a"), ["del d"]);
    assert!(server.events("SDIFFSTORE d a a").is_empty());
}

#[test]
fn resp3_replies_are_sets() {
    let mut server = three_sets().resp3();
    assert_eq!(server.line("SINTER a b c"), "~1 $1 3");
    assert_eq!(server.line("SUNION nokey"), "~0");
    assert_eq!(server.line("SDIFF a b"), "~2 $1 1 $1 4");
}

//! Tests of the commands on hashes.

use crate::testing::Server;

#[test]
fn fields_are_set_and_read() {
    let mut server = Server::new();
    assert_eq!(server.line("HSET h a 1 b x"), ":2");
    assert_eq!(server.line("HSET h a 2 c 3"), ":1");
    assert_eq!(server.line("HGET h a"), "$1 2");
    assert_eq!(server.line("HGET h zz"), "$-1");
    assert_eq!(server.line("HGET nokey a"), "$-1");
    assert_eq!(server.line("HGETALL h"), "*6 $1 a $1 2 $1 b $1 x $1 c $1 3");
}

#[test]
fn pairs_must_be_complete() {
    let mut server = Server::new();
    assert_eq!(server.line("HSET h a 1 b"), "-ERR wrong number of arguments for 'hset' command");
    assert_eq!(server.line("HMSET h a 1 b"), "-ERR wrong number of arguments for 'hmset' command");
    assert_eq!(server.line("HMSET h a 1 b 2"), "+OK");
    assert_eq!(server.line("HSET h c 1 c 2"), ":1");
    assert_eq!(server.line("HGET h c"), "$1 2");
    assert_eq!(server.line("HSETNX h a 9"), ":0");
    assert_eq!(server.line("HSETNX h d 9"), ":1");
    assert_eq!(server.line("HSETNX h2 d 9"), ":1");
    assert_eq!(server.line("HMGET h a zz d"), "*3 $1 1 $-1 $1 9");
}

#[test]
fn what_is_not_there_reads_as_empty() {
    let mut server = Server::new();
    for (line, reply) in [
        ("HMGET nokey a b", "*2 $-1 $-1"),
        ("HGETALL nokey", "*0"),
        ("HKEYS nokey", "*0"),
        ("HVALS nokey", "*0"),
        ("HLEN nokey", ":0"),
        ("HEXISTS nokey a", ":0"),
        ("HSTRLEN nokey a", ":0"),
        ("HDEL nokey a", ":0"),
        ("HRANDFIELD nokey", "$-1"),
        ("HRANDFIELD nokey 1", "*0"),
        ("HSCAN nokey 0 FOO", "*2 $1 0 *0"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn fields_are_read_counted_and_deleted() {
    let mut server = Server::new();
    server.line("HSET h a 1 b -12345 c xyz");
    assert_eq!(server.line("HKEYS h"), "*3 $1 a $1 b $1 c");
    assert_eq!(server.line("HVALS h"), "*3 $1 1 $6 -12345 $3 xyz");
    assert_eq!(server.line("HSTRLEN h b"), ":6");
    assert_eq!(server.line("HSTRLEN h zz"), ":0");
    assert_eq!(server.line("HEXISTS h c"), ":1");
    assert_eq!(server.line("HDEL h a zz a b"), ":2");
    assert_eq!(server.line("HLEN h"), ":1");
    assert_eq!(server.line("HDEL h c"), ":1");
    assert_eq!(server.line("OBJECT ENCODING h"), "$-1");
}

#[test]
fn another_kind_is_refused() {
    let mut server = Server::new();
    server.line("SADD s x");
    for line in [
        "HSET s a 1",
        "HSETNX s a 1",
        "HMSET s a 1",
        "HGET s a",
        "HMGET s a",
        "HGETALL s",
        "HDEL s a",
        "HEXISTS s a",
        "HLEN s",
        "HSTRLEN s a",
        "HINCRBY s a 1",
        "HINCRBYFLOAT s a 1",
        "HKEYS s",
        "HVALS s",
        "HRANDFIELD s",
        "HRANDFIELD s 0",
        "HSCAN s 0 FOO",
    ] {
        assert_eq!(
            server.line(line),
            "-WRONGTYPE Operation against a key holding the wrong kind of value",
            "{line}"
        );
    }
}

#[test]
fn integers_are_incremented_within_their_range() {
    let mut server = Server::new();
    server.line("HSET h f 10 g abc");
    assert_eq!(server.line("HINCRBY h f 5"), ":15");
    assert_eq!(server.line("HINCRBY h n -5"), ":-5");
    assert_eq!(server.line("HINCRBY h2 n -9223372036854775808"), ":-9223372036854775808");
    assert_eq!(server.line("HINCRBY h2 n -1"), "-ERR increment or decrement would overflow");
    assert_eq!(server.line("HINCRBY h f 9223372036854775807"), "-ERR increment or decrement would overflow");
    assert_eq!(server.line("HINCRBY h g 1"), "-ERR hash value is not an integer");
    assert_eq!(server.line("HINCRBY h f x"), "-ERR value is not an integer or out of range");
    assert_eq!(server.line("HGET h f"), "$2 15");
}

#[test]
fn floats_are_incremented_as_long_doubles() {
    let mut server = Server::new();
    server.line("HSET h f 10 g abc big 12345678.9");
    assert_eq!(server.line("HINCRBYFLOAT h f 1.5"), "$4 11.5");
    assert_eq!(server.line("HINCRBYFLOAT h f -1.5"), "$2 10");
    assert_eq!(server.line("HINCRBYFLOAT h n 1e3"), "$4 1000");
    assert_eq!(server.line("HINCRBYFLOAT h big 0"), "$25 12345678.8999999999996362");
    assert_eq!(server.line("HINCRBYFLOAT h g 1"), "-ERR hash value is not a float");
    assert_eq!(server.line("HINCRBYFLOAT h f inf"), "-ERR value is NaN or Infinity");
    assert_eq!(server.line("HINCRBYFLOAT h f nan"), "-ERR value is not a valid float");
    assert_eq!(server.line("HINCRBYFLOAT h f x"), "-ERR value is not a valid float");
    server.line("HSET h m 1e4932");
    assert_eq!(server.line("HINCRBYFLOAT h m 1e4932"), "-ERR increment would produce NaN or Infinity");
    let mut server = server.resp3();
    assert_eq!(server.line("HINCRBYFLOAT h f 0.25"), "$5 10.25");
}

#[test]
fn random_fields_come_with_or_without_values() {
    let mut server = Server::new();
    server.line("HSET h a 1 b 2");
    assert_eq!(server.line("HRANDFIELD h 5"), "*2 $1 a $1 b");
    assert_eq!(server.line("HRANDFIELD h 5 WITHVALUES"), "*4 $1 a $1 1 $1 b $1 2");
    assert_eq!(server.line("HRANDFIELD h 0"), "*0");
    assert!(["$1 a", "$1 b"].contains(&server.line("HRANDFIELD h").as_str()));
    assert!(server.line("HRANDFIELD h -200").starts_with("*200 $1 "));
    assert!(server.line("HRANDFIELD h -3 withvalues").starts_with("*6 $1 "));
    assert_eq!(server.line("HRANDFIELD h x"), "-ERR value is not an integer or out of range");
    assert!(
        server
            .line("HRANDFIELD h -9223372036854775808")
            .starts_with("-ERR value is out of range, value must")
    );
    for count in ["-9223372036854775807", "4611686018427387904"] {
        assert_eq!(server.run(&["HRANDFIELD", "h", count, "WITHVALUES"]), "-ERR value is out of range");
    }
    assert_eq!(server.line("HRANDFIELD h 1 FOO"), "-ERR syntax error");
    assert_eq!(server.line("HRANDFIELD h 1 WITHVALUES x"), "-ERR syntax error");
    let mut server = server.resp3();
    assert_eq!(server.line("HRANDFIELD h 5 WITHVALUES"), "*2 *2 $1 a $1 1 *2 $1 b $1 2");
    assert!(server.line("HRANDFIELD h -2 WITHVALUES").starts_with("*2 *2 $1 "));
}

#[test]
fn scans_filter_and_leave_values_out() {
    let mut server = Server::new();
    server.line("HSET h f1 10 f2 x g 3");
    assert_eq!(server.line("HSCAN h 0"), "*2 $1 0 *6 $2 f1 $2 10 $2 f2 $1 x $1 g $1 3");
    assert_eq!(server.line("HSCAN h 0 MATCH f* COUNT 5"), "*2 $1 0 *4 $2 f1 $2 10 $2 f2 $1 x");
    assert_eq!(server.line("HSCAN h 0 novalues match *"), "*2 $1 0 *3 $2 f1 $2 f2 $1 g");
    assert_eq!(server.line("HSCAN h 0 FOO"), "-ERR syntax error");
    assert_eq!(server.line("HSCAN h 0 COUNT"), "-ERR syntax error");
    assert_eq!(server.line("HSCAN h 0 COUNT 0"), "-ERR syntax error");
    assert_eq!(server.line("HSCAN h 0 COUNT x"), "-ERR value is not an integer or out of range");
    for cursor in ["x", "-1", "", "99999999999999999999999"] {
        assert_eq!(server.run(&["HSCAN", "nokey", cursor]), "-ERR invalid cursor");
    }
}

#[test]
fn a_scan_of_a_table_sees_every_field() {
    let mut server = Server::new();
    for field in 0..1000 {
        server.run(&["HSET", "h", &format!("f{field}"), "v"]);
    }
    assert_eq!(server.line("OBJECT ENCODING h"), "$9 hashtable");
    let (mut cursor, mut seen) = ("0".to_owned(), std::collections::BTreeSet::new());
    loop {
        let reply = server.run(&["HSCAN", "h", &cursor, "NOVALUES", "COUNT", "50"]);
        let words: Vec<&str> = reply.split(' ').collect();
        cursor = words[2].to_owned();
        seen.extend(words[4..].iter().skip(1).step_by(2).map(|&word| word.to_owned()));
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(seen.len(), 1000);
}

#[test]
fn encodings_change_at_the_limits() {
    let mut server = Server::new();
    for field in 0..512 {
        server.run(&["HSET", "h", &format!("{field}"), "v"]);
    }
    assert_eq!(server.line("OBJECT ENCODING h"), "$8 listpack");
    server.line("HSET h one-more v");
    assert_eq!(server.line("OBJECT ENCODING h"), "$9 hashtable");
    server.run(&["HSET", "h2", "f", &"x".repeat(64)]);
    assert_eq!(server.line("OBJECT ENCODING h2"), "$8 listpack");
    server.run(&["HSETNX", "h2", &"x".repeat(65), "v"]);
    assert_eq!(server.line("OBJECT ENCODING h2"), "$9 hashtable");
}

#[test]
fn changes_notify() {
    let mut server = Server::new();
    assert_eq!(server.events("HSET h a 1 b 2"), ["hset h"]);
    assert_eq!(server.events("HMSET h a 1"), ["hset h"]);
    assert_eq!(server.events("HSETNX h c 1"), ["hset h"]);
    assert!(server.events("HSETNX h c 1").is_empty());
    assert_eq!(server.events("HINCRBY h a 1"), ["hincrby h"]);
    assert_eq!(server.events("HINCRBYFLOAT h a 1"), ["hincrbyfloat h"]);
    assert!(server.events("HDEL h zz").is_empty());
    assert_eq!(server.events("HDEL h a"), ["hdel h"]);
    assert_eq!(server.events("HDEL h b c"), ["hdel h", "del h"]);
}

#[test]
fn resp3_replies_are_maps() {
    let mut server = Server::new().resp3();
    server.line("HSET h a 1");
    assert_eq!(server.line("HGETALL h"), "%1 $1 a $1 1");
    assert_eq!(server.line("HGETALL nokey"), "%0");
    assert_eq!(server.line("HGET h zz"), "_");
    assert_eq!(server.line("HKEYS h"), "*1 $1 a");
}

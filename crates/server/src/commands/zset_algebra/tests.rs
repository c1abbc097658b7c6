//! Tests of union, intersection and difference of sorted sets.
//!
//! The replies are those of Redis 7.2.

use crate::config::Config;
use crate::testing::Server;
use towline_store::limits::EncodingLimits;

#[test]
fn unions_add_up_the_scores() {
    let mut server = Server::new();
    for (line, reply) in [
        ("ZADD a 1 x 2 y 3 z", ":3"),
        ("ZADD b 10 y 20 z 30 w", ":3"),
        ("SADD s x y 5", ":3"),
        ("ZUNION 2 a b", "*4 $1 x $1 y $1 z $1 w"),
        ("ZUNION 2 a b WITHSCORES", "*8 $1 x $1 1 $1 y $2 12 $1 z $2 23 $1 w $2 30"),
        ("ZUNION 3 a b s WITHSCORES", "*10 $1 5 $1 1 $1 x $1 2 $1 y $2 13 $1 z $2 23 $1 w $2 30"),
        ("ZUNION 2 a b WEIGHTS 2 0.5 WITHSCORES", "*8 $1 x $1 2 $1 y $1 9 $1 w $2 15 $1 z $2 16"),
        ("ZUNION 2 a b AGGREGATE MIN WITHSCORES", "*8 $1 x $1 1 $1 y $1 2 $1 z $1 3 $1 w $2 30"),
        (
            "ZUNION 2 a b AGGREGATE max WITHSCORES WEIGHTS 1 2",
            "*8 $1 x $1 1 $1 y $2 20 $1 z $2 40 $1 w $2 60",
        ),
        ("ZUNION 2 a a WITHSCORES", "*6 $1 x $1 2 $1 y $1 4 $1 z $1 6"),
        ("ZUNION 1 nokey", "*0"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn a_stored_result_has_one_zero() {
    let encoding = EncodingLimits { zset_max_listpack_entries: 2, ..EncodingLimits::default() };
    let mut server = Server::with(Config { workers: 1, encoding, ..Config::default() });
    server.line("ZADD a 0 x 0 y 0 z");
    for (line, reply) in [
        ("ZUNIONSTORE d 1 a WEIGHTS -1", ":3"),
        ("ZRANGE d 0 -1 WITHSCORES", "*6 $1 x $2 -0 $1 y $2 -0 $1 z $2 -0"),
        ("ZRANGESTORE e d 0 -1", ":3"),
        ("ZMSCORE e x y z", "*3 $2 -0 $2 -0 $2 -0"),
        // The compact encoding knows one zero only.
        ("ZRANGESTORE e d 0 1", ":2"),
        ("ZMSCORE e x y", "*2 $1 0 $1 0"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn intersections_keep_what_all_share() {
    let mut server = Server::new();
    for (line, reply) in [
        ("ZADD a 1 x 2 y 3 z", ":3"),
        ("ZADD b 10 y 20 z 30 w", ":3"),
        ("SADD s x y 5", ":3"),
        ("ZINTER 2 a b", "*2 $1 y $1 z"),
        ("ZINTER 2 a b WITHSCORES", "*4 $1 y $2 12 $1 z $2 23"),
        ("ZINTER 3 a b s WITHSCORES", "*2 $1 y $2 13"),
        ("ZINTER 2 a b WEIGHTS 2 3 AGGREGATE MAX WITHSCORES", "*4 $1 y $2 30 $1 z $2 60"),
        ("ZINTER 2 a s WEIGHTS 2 10 WITHSCORES", "*4 $1 x $2 12 $1 y $2 14"),
        ("ZINTER 2 a a WITHSCORES", "*6 $1 x $1 2 $1 y $1 4 $1 z $1 6"),
        ("ZINTER 2 a nokey", "*0"),
        ("ZINTERCARD 2 a b", ":2"),
        ("ZINTERCARD 2 a b LIMIT 1", ":1"),
        ("ZINTERCARD 2 a b LIMIT 0", ":2"),
        ("ZINTERCARD 2 a nokey", ":0"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn differences_keep_the_scores_of_the_first() {
    let mut server = Server::new();
    for (line, reply) in [
        ("ZADD a 1 x 2 y 3 z", ":3"),
        ("ZADD b 10 y", ":1"),
        ("SADD s x y 5", ":3"),
        ("ZDIFF 2 a b", "*2 $1 x $1 z"),
        ("ZDIFF 2 a b WITHSCORES", "*4 $1 x $1 1 $1 z $1 3"),
        ("ZDIFF 2 s a WITHSCORES", "*2 $1 5 $1 1"),
        ("ZDIFF 3 a b s", "*1 $1 z"),
        ("ZDIFF 2 a a", "*0"),
        ("ZDIFF 2 nokey a", "*0"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn pairs_in_resp3() {
    let mut server = Server::new().resp3();
    for (line, reply) in [
        ("ZADD a 1 x 2.5 y", ":2"),
        ("ZUNION 1 a WITHSCORES", "*2 *2 $1 x ,1 *2 $1 y ,2.5"),
        ("ZINTER 2 a a WITHSCORES", "*2 *2 $1 x ,2 *2 $1 y ,5"),
        ("ZDIFF 1 a WITHSCORES", "*2 *2 $1 x ,1 *2 $1 y ,2.5"),
        ("ZDIFF 1 a", "*2 $1 x $1 y"),
        ("ZINTER 1 nokey WITHSCORES", "*0"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn what_is_not_a_number_counts_as_zero() {
    let mut server = Server::new();
    for (line, reply) in [
        ("ZADD a inf m -inf n 1 o", ":3"),
        ("ZADD b -inf m -inf n inf o", ":3"),
        ("ZUNION 2 a b WITHSCORES", "*6 $1 n $4 -inf $1 m $1 0 $1 o $3 inf"),
        ("ZINTER 2 a b WITHSCORES", "*6 $1 n $4 -inf $1 m $1 0 $1 o $3 inf"),
        ("ZUNION 2 a b WEIGHTS 0 1 WITHSCORES", "*6 $1 m $4 -inf $1 n $4 -inf $1 o $3 inf"),
        ("ZINTER 2 a b WEIGHTS 1 0 AGGREGATE MIN WITHSCORES", "*6 $1 n $4 -inf $1 o $1 1 $1 m $3 inf"),
        ("ZINTER 2 a b WEIGHTS 1 0 AGGREGATE MAX WITHSCORES", "*6 $1 n $4 -inf $1 o $1 1 $1 m $3 inf"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn results_are_stored() {
    let mut server = Server::new();
    for (line, reply) in [
        ("ZADD a 1 x 2 y 3 z", ":3"),
        ("ZADD b 10 y 20 z 30 w", ":3"),
        ("ZUNIONSTORE d 2 a b", ":4"),
        ("ZRANGE d 0 -1 WITHSCORES", "*8 $1 x $1 1 $1 y $2 12 $1 z $2 23 $1 w $2 30"),
        ("ZINTERSTORE d 2 a b WEIGHTS 1 2 AGGREGATE MIN", ":2"),
        ("ZRANGE d 0 -1 WITHSCORES", "*4 $1 y $1 2 $1 z $1 3"),
        ("ZDIFFSTORE d 2 a b", ":1"),
        ("ZRANGE d 0 -1 WITHSCORES", "*2 $1 x $1 1"),
        ("ZINTERSTORE d 2 a nokey", ":0"),
        ("EXISTS d", ":0"),
        ("SET s x", "+OK"),
        ("ZUNIONSTORE s 1 a", ":3"),
        ("TYPE s", "+zset"),
        ("ZUNIONSTORE a 2 a b", ":4"),
        ("ZRANGE a 0 -1 WITHSCORES", "*8 $1 x $1 1 $1 y $2 12 $1 z $2 23 $1 w $2 30"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn wrong_arguments_of_algebra() {
    let mut server = Server::new();
    for (line, reply) in [
        ("ZADD a 1 x", ":1"),
        ("SET s x", "+OK"),
        ("ZUNION 0 a", "-ERR at least 1 input key is needed for 'zunion' command"),
        ("ZUNION x a", "-ERR value is not an integer or out of range"),
        ("ZUNION 3 a a", "-ERR syntax error"),
        ("ZUNION 2 a s foo", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("ZUNION 1 a foo", "-ERR syntax error"),
        ("ZUNION 1 a AGGREGATE foo", "-ERR syntax error"),
        ("ZUNION 1 a AGGREGATE", "-ERR syntax error"),
        ("ZUNION 1 a WEIGHTS", "-ERR syntax error"),
        ("ZUNION 1 a WEIGHTS x", "-ERR weight value is not a float"),
        ("ZUNION 1 a WEIGHTS 1 2", "-ERR syntax error"),
        ("ZDIFF 1 a WEIGHTS 1", "-ERR syntax error"),
        ("ZDIFF 0 a", "-ERR at least 1 input key is needed for 'zdiff' command"),
        ("ZINTERCARD 1 a LIMIT -1", "-ERR LIMIT can't be negative"),
        ("ZINTERCARD 1 a LIMIT x", "-ERR LIMIT can't be negative"),
        ("ZINTERCARD 1 a LIMIT", "-ERR syntax error"),
        ("ZINTERCARD 1 a WITHSCORES", "-ERR syntax error"),
        ("ZINTERCARD 0 a", "-ERR at least 1 input key is needed for 'zintercard' command"),
        ("ZUNIONSTORE d 1 a WITHSCORES", "-ERR syntax error"),
        ("ZUNIONSTORE d 0 a", "-ERR at least 1 input key is needed for 'zunionstore' command"),
        ("ZINTERSTORE d 2 a", "-ERR syntax error"),
        ("ZDIFFSTORE d 1 a WEIGHTS 1", "-ERR syntax error"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn storing_is_notified() {
    let mut server = Server::new();
    for (line, events) in [
        ("ZADD a 1 x", "zadd a"),
        ("ZUNIONSTORE d 1 a", "zunionstore d"),
        ("ZINTERSTORE d 2 a a", "zinterstore d"),
        ("ZDIFFSTORE d 1 a", "zdiffstore d"),
        ("ZDIFFSTORE d 2 a a", "del d"),
        ("ZDIFFSTORE d 2 a a", ""),
    ] {
        assert_eq!(server.events(line).join(", "), events, "{line}");
    }
}

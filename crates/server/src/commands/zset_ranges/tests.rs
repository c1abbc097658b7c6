//! Tests of ranges of sorted sets.
//!
//! The replies are those of Redis 7.2.

use crate::testing::Server;

#[test]
fn ranges_by_rank() {
    let mut server = Server::new();
    for (line, reply) in [
        ("ZADD z 1 a 2 b 3 c 4 d 5 e", ":5"),
        ("ZRANGE z 0 -1", "*5 $1 a $1 b $1 c $1 d $1 e"),
        ("ZRANGE z -3 -2", "*2 $1 c $1 d"),
        ("ZRANGE z 5 9", "*0"),
        ("ZRANGE z 3 1", "*0"),
        ("ZRANGE z 0 0 REV", "*1 $1 e"),
        ("ZRANGE z 1 2 rev WITHSCORES", "*4 $1 d $1 4 $1 c $1 3"),
        ("ZREVRANGE z 0 1", "*2 $1 e $1 d"),
        ("ZREVRANGE z 0 1 WITHSCORES", "*4 $1 e $1 5 $1 d $1 4"),
        ("ZRANGE nokey 0 -1", "*0"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn ranges_by_score() {
    let mut server = Server::new();
    for (line, reply) in [
        ("ZADD z 1 a 2 b 3 c 4 d 5 e", ":5"),
        ("ZRANGE z (1 3 BYSCORE", "*2 $1 b $1 c"),
        ("ZRANGE z (1 (3 BYSCORE", "*1 $1 b"),
        ("ZRANGE z 3 1 BYSCORE", "*0"),
        ("ZRANGE z 3 1 BYSCORE REV", "*3 $1 c $1 b $1 a"),
        ("ZRANGE z +inf (2 BYSCORE REV LIMIT 1 2 WITHSCORES", "*4 $1 d $1 4 $1 c $1 3"),
        ("ZRANGEBYSCORE z 2 4", "*3 $1 b $1 c $1 d"),
        ("ZRANGEBYSCORE z 2 4 WITHSCORES LIMIT 1 1", "*2 $1 c $1 3"),
        ("ZRANGEBYSCORE z (2 (2", "*0"),
        ("ZREVRANGEBYSCORE z 4 2", "*3 $1 d $1 c $1 b"),
        ("ZREVRANGEBYSCORE z 4 2 LIMIT 0 2", "*2 $1 d $1 c"),
        ("ZREVRANGEBYSCORE z 2 4", "*0"),
        ("ZREVRANGEBYSCORE z +inf 4 WITHSCORES", "*4 $1 e $1 5 $1 d $1 4"),
        ("ZRANGEBYSCORE nokey 1 4", "*0"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn ranges_by_member() {
    let mut server = Server::new();
    for (line, reply) in [
        ("ZADD z 0 a 0 b 0 c 0 d 0 e", ":5"),
        ("ZRANGE z - + BYLEX", "*5 $1 a $1 b $1 c $1 d $1 e"),
        ("ZRANGE z [b (d BYLEX", "*2 $1 b $1 c"),
        ("ZRANGE z [d [b BYLEX REV", "*3 $1 d $1 c $1 b"),
        ("ZRANGEBYLEX z - [c", "*3 $1 a $1 b $1 c"),
        ("ZRANGEBYLEX z - [c LIMIT 1 1", "*1 $1 b"),
        ("ZRANGEBYLEX z + -", "*0"),
        ("ZREVRANGEBYLEX z + -", "*5 $1 e $1 d $1 c $1 b $1 a"),
        ("ZREVRANGEBYLEX z [c (a", "*2 $1 c $1 b"),
        ("ZREVRANGEBYLEX z [c (a LIMIT 1 9", "*1 $1 b"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn limits_leave_out_and_cut_off() {
    let mut server = Server::new();
    for (line, reply) in [
        ("ZADD z 1 a 2 b 3 c 4 d 5 e", ":5"),
        ("ZRANGE z -inf +inf BYSCORE LIMIT 1 2", "*2 $1 b $1 c"),
        ("ZRANGE z -inf +inf BYSCORE LIMIT 1 -1", "*4 $1 b $1 c $1 d $1 e"),
        ("ZRANGE z -inf +inf BYSCORE LIMIT 1 -7", "*4 $1 b $1 c $1 d $1 e"),
        ("ZRANGE z -inf +inf BYSCORE LIMIT -1 2", "*0"),
        ("ZRANGE z -inf +inf BYSCORE LIMIT 9 2", "*0"),
        ("ZRANGE z -inf +inf BYSCORE LIMIT 1 0", "*0"),
        (
            "ZRANGE z 0 -1 LIMIT 1 2",
            "-ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
        ),
        ("ZRANGE z 0 1 LIMIT 1 -1", "*2 $1 a $1 b"),
        (
            "ZREVRANGE z 0 1 LIMIT 0 1",
            "-ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
        ),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn pairs_in_resp3() {
    let mut server = Server::new().resp3();
    for (line, reply) in [
        ("ZADD z 1 a 2.5 b", ":2"),
        ("ZRANGE z 0 -1 WITHSCORES", "*2 *2 $1 a ,1 *2 $1 b ,2.5"),
        ("ZRANGE z 0 -1", "*2 $1 a $1 b"),
        ("ZREVRANGEBYSCORE z +inf -inf WITHSCORES LIMIT 0 1", "*1 *2 $1 b ,2.5"),
        ("ZRANGE nokey 0 -1 WITHSCORES", "*0"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn wrong_arguments_of_ranges() {
    let mut server = Server::new();
    for (line, reply) in [
        ("ZADD z 1 a 2 b", ":2"),
        ("ZRANGE z x 1", "-ERR value is not an integer or out of range"),
        ("ZRANGE z 1 1.5", "-ERR value is not an integer or out of range"),
        ("ZRANGE z a b BYLEX", "-ERR min or max not valid string range item"),
        ("ZRANGE z a b BYSCORE", "-ERR min or max is not a float"),
        (
            "ZRANGE z - + BYLEX WITHSCORES",
            "-ERR syntax error, WITHSCORES not supported in combination with BYLEX",
        ),
        ("ZRANGE z 1 2 BYSCORE BYLEX", "-ERR syntax error"),
        ("ZRANGE z 1 2 BYSCORE BYSCORE", "-ERR syntax error"),
        ("ZRANGE z 1 2 REV REV", "-ERR syntax error"),
        ("ZRANGE z 1 2 foo", "-ERR syntax error"),
        ("ZRANGE z 1 2 BYSCORE LIMIT 1", "-ERR syntax error"),
        ("ZRANGE z 1 2 BYSCORE LIMIT x 1", "-ERR value is not an integer or out of range"),
        ("ZRANGE z 1 2 BYSCORE LIMIT 1 x", "-ERR value is not an integer or out of range"),
        ("ZRANGE nokey x -1", "-ERR value is not an integer or out of range"),
        ("ZREVRANGE z 0 1 REV", "-ERR syntax error"),
        ("ZREVRANGE z 0 1 BYSCORE", "-ERR syntax error"),
        ("ZRANGEBYSCORE z 2 4 REV", "-ERR syntax error"),
        ("ZRANGEBYSCORE z 2 4 BYLEX", "-ERR syntax error"),
        ("ZRANGEBYSCORE z foo 4", "-ERR min or max is not a float"),
        (
            "ZRANGEBYLEX z - [c WITHSCORES",
            "-ERR syntax error, WITHSCORES not supported in combination with BYLEX",
        ),
        ("ZRANGEBYLEX z -a +", "-ERR min or max not valid string range item"),
        ("ZRANGESTORE d z 1 2 WITHSCORES", "-ERR syntax error"),
        ("ZRANGESTORE d z x 2", "-ERR value is not an integer or out of range"),
        (
            "ZRANGESTORE d z 1 2 LIMIT 1 2",
            "-ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
        ),
        ("SET s x", "+OK"),
        ("ZRANGE s 0 -1", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("ZRANGESTORE d s 0 0", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn a_range_is_stored() {
    let mut server = Server::new();
    for (line, reply) in [
        ("ZADD z 1 a 2 b 3 c 4 d 5 e", ":5"),
        ("ZRANGESTORE d z 1 2", ":2"),
        ("ZRANGE d 0 -1 WITHSCORES", "*4 $1 b $1 2 $1 c $1 3"),
        ("ZRANGESTORE d z (1 +inf BYSCORE LIMIT 1 2", ":2"),
        ("ZRANGE d 0 -1", "*2 $1 c $1 d"),
        ("ZRANGESTORE d z 0 1 REV", ":2"),
        ("ZRANGE d 0 -1", "*2 $1 d $1 e"),
        ("ZRANGESTORE d nokey 0 0", ":0"),
        ("EXISTS d", ":0"),
        ("SET s x", "+OK"),
        ("ZRANGESTORE s z 0 0", ":1"),
        ("TYPE s", "+zset"),
        ("ZRANGESTORE z z 0 2", ":3"),
        ("ZRANGE z 0 -1", "*3 $1 a $1 b $1 c"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn storing_is_notified() {
    let mut server = Server::new();
    for (line, events) in [
        ("ZADD z 1 a 2 b", "zadd z"),
        ("ZRANGESTORE d z 0 1", "zrangestore d"),
        ("ZRANGESTORE d z 9 9", "del d"),
        ("ZRANGESTORE d z 9 9", ""),
    ] {
        assert_eq!(server.events(line).join(", "), events, "{line}");
    }
}

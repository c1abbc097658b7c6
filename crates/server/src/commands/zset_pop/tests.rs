//! Tests of popping from sorted sets.
//!
//! The replies are those of Redis 7.2.

use crate::testing::Server;

#[test]
fn the_lowest_and_the_highest_are_popped() {
    let mut server = Server::new();
    for (line, reply) in [
        ("ZADD z 1 a 2 b 3 c 4 d 5 e 6 f", ":6"),
        ("ZPOPMIN z", "*2 $1 a $1 1"),
        ("ZPOPMAX z", "*2 $1 f $1 6"),
        ("ZPOPMIN z 0", "*0"),
        ("ZPOPMAX z 2", "*4 $1 e $1 5 $1 d $1 4"),
        ("ZPOPMIN z 9", "*4 $1 b $1 2 $1 c $1 3"),
        ("EXISTS z", ":0"),
        ("ZPOPMIN z", "*0"),
        ("ZPOPMIN z 0", "*0"),
        ("ZPOPMIN z 5", "*0"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn a_count_makes_pairs_in_resp3() {
    let mut server = Server::new().resp3();
    for (line, reply) in [
        ("ZADD z 1 a 2 b 3 c 4 d 5 e 6 f", ":6"),
        ("ZPOPMIN z", "*2 $1 a ,1"),
        ("ZPOPMIN z 1", "*1 *2 $1 b ,2"),
        ("ZPOPMAX z 2", "*2 *2 $1 f ,6 *2 $1 e ,5"),
        ("ZPOPMIN nokey 1", "*0"),
        ("ZMPOP 1 z MIN", "*2 $1 z *1 *2 $1 c ,3"),
        ("ZMPOP 1 nokey MIN", "_"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn the_first_key_with_members_is_popped_from() {
    let mut server = Server::new();
    for (line, reply) in [
        ("ZADD z 1 a 2 b 3 c 4 d", ":4"),
        ("ZMPOP 2 nokey z MIN", "*2 $1 z *1 *2 $1 a $1 1"),
        ("ZMPOP 1 z MAX COUNT 2", "*2 $1 z *2 *2 $1 d $1 4 *2 $1 c $1 3"),
        ("ZMPOP 2 nokey z min count 99", "*2 $1 z *1 *2 $1 b $1 2"),
        ("ZMPOP 2 nokey z MIN COUNT 99", "*-1"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn wrong_arguments_of_pops() {
    let mut server = Server::new();
    for (line, reply) in [
        ("ZADD z 1 a", ":1"),
        ("SET s x", "+OK"),
        ("ZPOPMIN z -1", "-ERR value is out of range, must be positive"),
        ("ZPOPMIN z x", "-ERR value is out of range, must be positive"),
        ("ZPOPMIN z 1 2", "-ERR syntax error"),
        ("ZPOPMIN s", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("ZPOPMIN s 0", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("ZMPOP 0 z MIN", "-ERR numkeys should be greater than 0"),
        ("ZMPOP x z MIN", "-ERR numkeys should be greater than 0"),
        ("ZMPOP 1 z FOO", "-ERR syntax error"),
        ("ZMPOP 5 z MIN", "-ERR syntax error"),
        ("ZMPOP 2 z MIN", "-ERR syntax error"),
        ("ZMPOP 1 z MIN COUNT", "-ERR syntax error"),
        ("ZMPOP 1 z MIN COUNT 0", "-ERR count should be greater than 0"),
        ("ZMPOP 1 z MIN COUNT x", "-ERR count should be greater than 0"),
        ("ZMPOP 1 z MIN COUNT 1 COUNT 1", "-ERR syntax error"),
        ("ZMPOP 1 z MIN FOO 1", "-ERR syntax error"),
        ("ZMPOP 1 z MIN 1", "-ERR syntax error"),
        ("ZMPOP 2 s z MIN", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("ZMPOP 2 z s MIN", "*2 $1 z *1 *2 $1 a $1 1"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn pops_are_notified() {
    let mut server = Server::new();
    for (line, events) in [
        ("ZADD z 1 a 2 b 3 c 4 d", "zadd z"),
        ("ZPOPMIN z", "zpopmin z"),
        ("ZPOPMAX z 1", "zpopmax z"),
        ("ZPOPMAX z 0", ""),
        ("ZMPOP 1 z MIN", "zpopmin z"),
        ("ZMPOP 1 z MIN", "zpopmin z, del z"),
    ] {
        assert_eq!(server.events(line).join(", "), events, "{line}");
    }
}

//! Tests of waiting for a member of a sorted set.
//!
//! The replies are those of Redis 7.2.

use crate::command::Nothing;
use crate::testing::Server;
use std::time::Duration;

#[test]
fn a_set_that_is_there_answers_at_once() {
    let mut server = Server::new();
    for (line, reply) in [
        ("ZADD z 1 a 2 b 3 c 4 d 5 e", ":5"),
        ("BZPOPMIN nokey z 0", "*3 $1 z $1 a $1 1"),
        ("BZPOPMAX z 1.5", "*3 $1 z $1 e $1 5"),
        ("BZMPOP 0 1 z MAX", "*2 $1 z *1 *2 $1 d $1 4"),
        ("BZMPOP 1 2 nokey z MIN COUNT 2", "*2 $1 z *2 *2 $1 b $1 2 *2 $1 c $1 3"),
        ("EXISTS z", ":0"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn scores_are_doubles_and_pairs_in_resp3() {
    let mut server = Server::new().resp3();
    for (line, reply) in [
        ("ZADD z 1 a 2 b 3 c", ":3"),
        ("BZPOPMIN z 0", "*3 $1 z $1 a ,1"),
        ("BZMPOP 0 1 z MAX COUNT 2", "*2 $1 z *2 *2 $1 c ,3 *2 $1 b ,2"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn wrong_arguments_of_waiting_pops() {
    let mut server = Server::new();
    for (line, reply) in [
        ("ZADD z 1 a", ":1"),
        ("SET s x", "+OK"),
        ("BZPOPMIN z x", "-ERR timeout is not a float or out of range"),
        ("BZPOPMIN z -1", "-ERR timeout is negative"),
        ("BZPOPMIN s z 0", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("BZMPOP x 1 z MAX", "-ERR timeout is not a float or out of range"),
        ("BZMPOP x 0 z MAX", "-ERR numkeys should be greater than 0"),
        ("BZMPOP x 1 z FOO", "-ERR syntax error"),
        ("BZMPOP x 1 z MAX COUNT 0", "-ERR count should be greater than 0"),
        ("BZMPOP -1 1 z MAX", "-ERR timeout is negative"),
        ("BZMPOP 1 1 s MAX", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("BZMPOP 1 3 z MAX", "-ERR syntax error"),
        ("ZCARD z", ":1"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn waiting_pops_are_notified() {
    let mut server = Server::new();
    for (line, events) in [
        ("ZADD z 1 a 2 b", "zadd z"),
        ("BZPOPMIN z 0", "zpopmin z"),
        ("BZMPOP 0 1 z MAX", "zpopmax z, del z"),
    ] {
        assert_eq!(server.events(line).join(", "), events, "{line}");
    }
}

#[test]
fn a_new_member_serves_the_waiter() {
    let mut server = Server::new();
    let waiter = server.wait("BZPOPMIN other z 0");
    assert_eq!(Server::served(&waiter), "");
    assert_eq!(server.line("ZADD z 2 b 1 a"), ":2");
    assert_eq!(Server::served(&waiter), "*3 $1 z $1 a $1 1");
    assert_eq!(server.line("ZRANGE z 0 -1"), "*1 $1 b");
}

#[test]
fn stored_results_serve_waiters_in_their_order() {
    let mut server = Server::new();
    let first = server.wait("BZMPOP 0 2 other z MAX COUNT 2");
    let second = server.wait("BZPOPMAX z 0");
    server.line("ZADD a 1 x 2 y 3 z");
    assert_eq!(server.line("ZUNIONSTORE z 1 a"), ":3");
    assert_eq!(Server::served(&first), "*2 $1 z *2 *2 $1 z $1 3 *2 $1 y $1 2");
    assert_eq!(Server::served(&second), "*3 $1 z $1 x $1 1");
    assert_eq!(server.line("ZCARD z"), ":0");
}

#[test]
fn a_key_of_another_kind_does_not_end_the_waiting() {
    let mut server = Server::new();
    let waiter = server.wait("BZPOPMIN z 0");
    server.line("SADD z x");
    assert_eq!(Server::served(&waiter), "");
    server.line("SREM z x");
    server.line("ZADD z 1 a");
    assert_eq!(Server::served(&waiter), "*3 $1 z $1 a $1 1");
}

#[test]
fn a_waiter_without_members_answers_nothing() {
    let mut server = Server::new();
    let waiter = server.wait("BZMPOP 1.5 1 z MIN");
    assert_eq!(waiter.nothing(), Nothing::NullArray);
    assert_eq!(waiter.timeout(), Some(Duration::from_millis(1500)));
    assert_eq!(server.wait("BZPOPMAX z 0").timeout(), None);
}

//! Tests of waiting for an element of a list.

use crate::execute::Local;
use crate::followups;
use crate::testing::Server;
use std::sync::Arc;

#[test]
fn a_list_that_is_there_answers_at_once() {
    let mut server = Server::new();
    server.line("RPUSH b 1 2 3 4 5 6 7");
    assert_eq!(server.line("BLPOP a b 0"), "*2 $1 b $1 1");
    assert_eq!(server.line("BRPOP b 0"), "*2 $1 b $1 7");
    assert_eq!(server.line("BLMOVE b c LEFT RIGHT 0"), "$1 2");
    assert_eq!(server.line("BRPOPLPUSH b c 0"), "$1 6");
    assert_eq!(server.line("BLMPOP 0 2 a b LEFT COUNT 2"), "*2 $1 b *2 $1 3 $1 4");
    assert_eq!(server.line("LRANGE c 0 -1"), "*2 $1 6 $1 2");
    assert_eq!(server.line("BLPOP a 0"), "(blocked)");
}

#[test]
fn arguments_are_checked_in_the_order_of_redis() {
    let mut server = Server::new();
    server.line("SADD s x");
    server.line("RPUSH l a");
    assert_eq!(server.line("BLPOP l x"), "-ERR timeout is not a float or out of range");
    assert_eq!(server.line("BLPOP l 1e5000"), "-ERR timeout is not a float or out of range");
    assert_eq!(server.line("BLPOP l nan"), "-ERR timeout is not a float or out of range");
    assert_eq!(server.line("BLPOP l -1"), "-ERR timeout is negative");
    assert_eq!(server.line("BLPOP l -1e400"), "-ERR timeout is negative");
    for timeout in ["inf", "1e300", "1e400", "9223372036854776", "9223372036854775"] {
        assert_eq!(server.run(&["BRPOP", "l", timeout]), "-ERR timeout is out of range", "{timeout}");
    }
    assert!(server.line("BLPOP s 0").starts_with("-WRONGTYPE"));
    assert!(server.line("BLPOP s l 0").starts_with("-WRONGTYPE"));
    assert!(server.line("BLMOVE l s LEFT LEFT 0").starts_with("-WRONGTYPE"));
    assert_eq!(server.line("BLMOVE l l LEFT FOO x"), "-ERR syntax error");
    assert_eq!(server.line("BLMOVE l l LEFT LEFT x"), "-ERR timeout is not a float or out of range");
    assert_eq!(server.line("BRPOPLPUSH l l x"), "-ERR timeout is not a float or out of range");
    assert_eq!(server.line("BLMPOP x 0 l LEFT"), "-ERR numkeys should be greater than 0");
    assert_eq!(server.line("BLMPOP 1 5 l LEFT"), "-ERR syntax error");
    assert_eq!(server.line("BLMPOP 1 1 l LEFT COUNT 0"), "-ERR count should be greater than 0");
    assert_eq!(server.line("LLEN l"), ":1");
}

#[test]
fn a_timeout_is_rounded_up_to_milliseconds() {
    let mut server = Server::new();
    let ms = |server: &mut Server, timeout| {
        let waiter = server.wait(&format!("BLPOP k {timeout}"));
        waiter.timeout().map(|timeout| timeout.as_micros())
    };
    assert_eq!(ms(&mut server, "0"), None);
    assert_eq!(ms(&mut server, "0.0001"), Some(1_000));
    assert_eq!(ms(&mut server, "0.0015"), Some(2_000));
    assert_eq!(ms(&mut server, "1.5"), Some(1_500_000));
    // As in Redis: what rounds to nothing is no longer negative.
    assert_eq!(ms(&mut server, "-0.0001"), None);
}

#[test]
fn a_push_serves_the_waiter() {
    let mut server = Server::new();
    let waiter = server.wait("BLPOP k 0");
    assert_eq!(Server::served(&waiter), "");
    assert_eq!(server.line("RPUSH k a b"), ":2");
    assert_eq!(Server::served(&waiter), "*2 $1 k $1 a");
    assert_eq!(server.line("LRANGE k 0 -1"), "*1 $1 b");
    let waiter = server.wait("BRPOP j 0");
    server.line("LPUSH j a b");
    assert_eq!(Server::served(&waiter), "*2 $1 j $1 a");
    let waiter = server.wait("BLMPOP 0 2 x y RIGHT COUNT 2");
    server.line("RPUSH y a b c");
    assert_eq!(Server::served(&waiter), "*2 $1 y *2 $1 c $1 b");
}

#[test]
fn nobody_overtakes_a_waiter_that_is_about_to_be_served() {
    let mut server = Server::new();
    let mut other = Local::new(0, Arc::clone(&server.local.shared), 2);
    let first = server.wait("BLPOP k 0");
    // The other worker has pushed, and not yet served whoever waits.
    std::mem::swap(&mut server.local, &mut other);
    assert_eq!(server.events("RPUSH k a"), ["rpush k"]);
    std::mem::swap(&mut server.local, &mut other);
    for line in ["BLPOP k 0", "BRPOP x k 0", "BLMOVE k x LEFT LEFT 0", "BLMPOP 0 1 k LEFT"] {
        assert_eq!(server.line(line), "(crowded)", "{line}");
    }
    assert_eq!(server.line("LLEN k"), ":1");
    followups::work_off(&mut other, None, server.now_ms);
    assert_eq!(Server::served(&first), "*2 $1 k $1 a");
    let second = server.wait("BLPOP k 0");
    server.line("RPUSH k b");
    assert_eq!(Server::served(&second), "*2 $1 k $1 b");
    // A list that nobody wants stays available.
    let _zset_waiter = server.wait("BZPOPMIN k 0");
    server.line("RPUSH k c");
    assert_eq!(server.line("BLPOP k 0"), "*2 $1 k $1 c");
}

#[test]
fn a_silenced_client_gets_no_late_reply() {
    let mut server = Server::new();
    server.line("CLIENT REPLY OFF");
    let waiter = server.wait_here("BLPOP k 0");
    assert!(waiter.is_silent());
    server.line("CLIENT REPLY ON");
    server.line("CLIENT REPLY SKIP");
    assert!(server.wait_here("BLPOP k 0").is_silent());
    assert!(!server.wait_here("BLPOP k 0").is_silent());
}

#[test]
fn waiters_are_served_in_the_order_of_their_arrival() {
    let mut server = Server::new();
    let first = server.wait("BLPOP k 0");
    let second = server.wait("BLMPOP 0 1 k LEFT COUNT 2");
    let third = server.wait("BLPOP other k 0");
    let fourth = server.wait("BRPOP k 0");
    server.line("RPUSH k 1 2 3 4");
    assert_eq!(Server::served(&first), "*2 $1 k $1 1");
    assert_eq!(Server::served(&second), "*2 $1 k *2 $1 2 $1 3");
    assert_eq!(Server::served(&third), "*2 $1 k $1 4");
    assert_eq!(Server::served(&fourth), "");
    assert_eq!(server.line("LLEN k"), ":0");
    server.line("RPUSH k 5");
    assert_eq!(Server::served(&fourth), "*2 $1 k $1 5");
    // Those who were served no longer wait for their other keys.
    server.line("RPUSH other 6");
    assert_eq!(server.line("LLEN other"), ":1");
}

#[test]
fn the_first_key_that_has_a_list_is_preferred() {
    let mut server = Server::new();
    let waiter = server.wait("BLPOP a b c 0");
    server.line("RPUSH c 3");
    assert_eq!(Server::served(&waiter), "*2 $1 c $1 3");
    let waiter = server.wait("BLPOP a a 0");
    server.line("RPUSH a 1 2");
    assert_eq!(Server::served(&waiter), "*2 $1 a $1 1");
    assert_eq!(server.line("LRANGE a 0 -1"), "*1 $1 2");
}

#[test]
fn a_move_that_is_served_serves_others() {
    let mut server = Server::new();
    let last = server.wait("BLPOP c 0");
    let second = server.wait("BRPOPLPUSH b c 0");
    let first = server.wait("BLMOVE a b LEFT LEFT 0");
    assert_eq!(server.line("RPUSH a x"), ":1");
    for waiter in [&first, &second] {
        assert_eq!(Server::served(waiter), "$1 x");
    }
    assert_eq!(Server::served(&last), "*2 $1 c $1 x");
    for key in ["a", "b", "c"] {
        assert_eq!(server.run(&["LLEN", key]), ":0");
    }
}

#[test]
fn a_list_may_be_moved_onto_itself() {
    let mut server = Server::new();
    let turn = server.wait("BLMOVE a a LEFT RIGHT 0");
    let pop = server.wait("BLPOP a 0");
    server.line("RPUSH a 1 2");
    assert_eq!(Server::served(&turn), "$1 1");
    assert_eq!(Server::served(&pop), "*2 $1 a $1 2");
    assert_eq!(server.line("LRANGE a 0 -1"), "*1 $1 1");
}

#[test]
fn a_sorted_list_serves_those_who_wait_for_its_destination() {
    let mut server = Server::new();
    server.line("RPUSH source 2 1");
    let waiter = server.wait("BLPOP k 0");
    assert_eq!(server.line("SORT source STORE k"), ":2");
    assert_eq!(Server::served(&waiter), "*2 $1 k $1 1");
    assert_eq!(server.line("LRANGE k 0 -1"), "*1 $1 2");
}

#[test]
fn a_restored_list_serves_its_waiters() {
    let mut server = Server::new();
    server.line("RPUSH source a b");
    let dump = server.run_bytes(&[b"DUMP", b"source"]);
    let payload_start = dump.windows(2).position(|pair| pair == b"\r\n").map(|at| at + 2);
    let payload = &dump[payload_start.unwrap()..dump.len() - 2];
    let waiter = server.wait("BRPOP k 0");
    assert_eq!(server.run_bytes(&[b"RESTORE", b"k", b"0", payload]), b"+OK\r\n");
    assert_eq!(Server::served(&waiter), "*2 $1 k $1 b");
    // What has expired on its way is not there to be served.
    let waiter = server.wait("BRPOP other 0");
    let expired = [b"RESTORE", &b"other"[..], b"1", payload, b"ABSTTL"];
    assert_eq!(server.run_bytes(&expired), b"+OK\r\n");
    assert_eq!(Server::served(&waiter), "");
}

#[test]
fn a_key_moved_to_another_database_serves_its_waiters_there() {
    let mut server = Server::new();
    let here = server.wait("BLPOP k 0");
    server.line("SELECT 1");
    let there = server.wait("BLMOVE k l LEFT LEFT 0");
    server.line("RPUSH other a");
    server.line("RENAME other k");
    assert_eq!(Server::served(&there), "$1 a");
    server.line("RPUSH j b");
    server.line("COPY j k DB 0");
    assert_eq!(Server::served(&here), "*2 $1 k $1 b");
    server.line("SELECT 0");
    let here = server.wait("BLPOP j 0");
    server.line("SELECT 1");
    assert_eq!(server.line("MOVE j 0"), ":1");
    assert_eq!(Server::served(&here), "*2 $1 j $1 b");
    assert_eq!(server.line("EXISTS j k l"), ":1");
}

#[test]
fn a_key_of_another_kind_serves_nobody() {
    let mut server = Server::new();
    let waiter = server.wait("BLPOP k 0");
    server.line("HSET k f x");
    server.line("HDEL k f");
    server.line("SADD k x");
    assert_eq!(Server::served(&waiter), "");
    server.line("SREM k x");
    server.line("RPUSH k x");
    assert_eq!(Server::served(&waiter), "*2 $1 k $1 x");
}

#[test]
fn a_waiter_that_is_served_answers_as_if_it_had_come_now() {
    let mut server = Server::new();
    let pop = server.wait("BLPOP a b 0");
    server.line("SADD a x");
    server.line("RPUSH b 1");
    assert!(Server::served(&pop).starts_with("-WRONGTYPE"));
    let shift = server.wait("BLMOVE s d LEFT RIGHT 0");
    server.line("SADD d x");
    server.line("RPUSH s 1");
    assert!(Server::served(&shift).starts_with("-WRONGTYPE"));
    assert_eq!(server.line("LRANGE s 0 -1"), "*1 $1 1");
    assert_eq!(server.line("LRANGE b 0 -1"), "*1 $1 1");
}

#[test]
fn an_ended_waiter_is_passed_over() {
    let mut server = Server::new();
    let gone = server.wait("BLPOP k 0");
    let waiter = server.wait("BLPOP k 0");
    assert!(gone.end());
    server.line("RPUSH k 1");
    assert_eq!(Server::served(&gone), "");
    assert_eq!(Server::served(&waiter), "*2 $1 k $1 1");
}

#[test]
fn resp3_replies_are_in_the_waiters_protocol() {
    let mut server = Server::new().resp3();
    let waiter = server.wait("BLMPOP 0 1 k LEFT");
    server.line("RPUSH k 1");
    assert_eq!(Server::served(&waiter), "*2 $1 k *1 $1 1");
    let mut out = towline_resp::writer::Writer::new(waiter.proto());
    waiter.nothing().write(&mut out);
    assert_eq!(out.buf(), b"_\r\n");
}

#[test]
fn a_list_that_comes_to_be_in_another_way_serves() {
    let mut server = Server::new();
    let renamed = server.wait("BLPOP k1 0");
    let copied = server.wait("BLPOP k2 0");
    let moved = server.wait("BLMOVE k3 k4 LEFT LEFT 0");
    server.line("RPUSH source a b c");
    assert_eq!(server.line("COPY source k2"), ":1");
    assert_eq!(Server::served(&copied), "*2 $2 k2 $1 a");
    assert_eq!(server.line("RENAME source k1"), "+OK");
    assert_eq!(Server::served(&renamed), "*2 $2 k1 $1 a");
    assert_eq!(server.line("RENAMENX k1 k3"), ":1");
    assert_eq!(Server::served(&moved), "$1 b");
    let waiter = server.wait("BLPOP k5 0");
    server.line("SADD set x");
    server.line("RENAME set k5");
    assert_eq!(Server::served(&waiter), "");
    server.line("RPUSH l x");
    server.line("RENAME l k5");
    assert_eq!(Server::served(&waiter), "*2 $2 k5 $1 x");
}

#[test]
fn nobody_waits_inside_multi() {
    let mut server = Server::new();
    server.line("MULTI");
    for line in ["BLPOP a b 0", "BLMOVE a b LEFT LEFT 0", "BLMPOP 0 1 a LEFT", "BRPOPLPUSH a b 0"] {
        assert_eq!(server.line(line), "+QUEUED");
    }
    server.line("RPUSH a x");
    server.line("BLPOP b a 0");
    assert_eq!(server.line("EXEC"), "*6 *-1 $-1 *-1 $-1 :1 *2 $1 a $1 x");
}

#[test]
fn a_transaction_serves_when_all_of_it_is_done() {
    let mut server = Server::new();
    let first = server.wait("BLPOP a b 0");
    let second = server.wait("BLPOP c 0");
    for line in ["MULTI", "RPUSH b 1", "RPUSH a 2", "RPUSH c 3", "LPOP c"] {
        server.line(line);
    }
    assert_eq!(server.line("EXEC"), "*4 :1 :1 :1 $1 3");
    assert_eq!(Server::served(&first), "*2 $1 a $1 2");
    assert_eq!(Server::served(&second), "");
    assert_eq!(server.line("LLEN b"), ":1");
}

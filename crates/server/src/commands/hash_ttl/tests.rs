//! Tests of fields that expire.

use crate::testing::{START_MS, Server};
use towline_store::keyspace::Keyspace;

const MISMATCH: &str = "-ERR The `numfields` parameter must match the number of arguments";
const NO_FIELDS: &str = "-ERR Mandatory argument FIELDS is missing or not at the right position";

fn hash() -> Server {
    let mut server = Server::new();
    server.line("HSET h a 1 b 2 c 3");
    server
}

#[test]
fn conditions_decide_about_each_field() {
    let mut server = hash();
    assert_eq!(server.line("HEXPIRE h 10 NX FIELDS 2 a zz"), "*2 :1 :-2");
    assert_eq!(server.line("HEXPIRE h 10 NX FIELDS 1 a"), "*1 :0");
    assert_eq!(server.line("HEXPIRE h 10 XX FIELDS 2 a b"), "*2 :1 :0");
    assert_eq!(server.line("HEXPIRE h 5 GT FIELDS 2 a b"), "*2 :0 :0");
    assert_eq!(server.line("HEXPIRE h 5 lt FIELDS 2 a b"), "*2 :1 :1");
    assert_eq!(server.line("HEXPIRE h 10 GT FIELDS 2 a a"), "*2 :1 :0");
    assert_eq!(server.line("HTTL h FIELDS 4 a b c zz"), "*4 :10 :5 :-1 :-2");
    assert_eq!(server.line("HEXPIRE nokey 10 FIELDS 2 a b"), "*2 :-2 :-2");
    assert_eq!(server.line("HTTL nokey FIELDS 2 a b"), "*2 :-2 :-2");
}

#[test]
fn fields_go_when_their_time_has_come() {
    let mut server = hash();
    server.line("HPEXPIRE h 1000 FIELDS 1 a");
    server.line("HPEXPIRE h 2000 FIELDS 1 b");
    server.advance(999);
    assert_eq!(server.line("HGET h a"), "$1 1");
    server.advance(1);
    assert_eq!(server.line("HGET h a"), "$-1");
    assert_eq!(server.line("HLEN h"), ":2");
    server.line("HPEXPIRE h 1000 FIELDS 1 c");
    server.advance(1000);
    assert_eq!(server.line("HLEN h"), ":0");
    assert_eq!(server.line("HSETNX h a 1"), ":1");
    assert_eq!(server.line("HTTL h FIELDS 1 a"), "*1 :-1");
}

#[test]
fn times_are_shown_in_four_ways_and_rounded_up() {
    let mut server = hash();
    let at_ms = START_MS + 1_500;
    assert_eq!(server.line(&format!("HPEXPIREAT h {at_ms} FIELDS 1 a")), "*1 :1");
    assert_eq!(server.line("HTTL h FIELDS 1 a"), "*1 :2");
    assert_eq!(server.line("HPTTL h FIELDS 1 a"), "*1 :1500");
    assert_eq!(server.line("HEXPIRETIME h FIELDS 1 a"), format!("*1 :{}", START_MS / 1000 + 2));
    assert_eq!(server.line("HPEXPIRETIME h FIELDS 1 a"), format!("*1 :{at_ms}"));
    assert_eq!(server.line(&format!("HEXPIREAT h {} FIELDS 1 b", START_MS / 1000 + 7)), "*1 :1");
    assert_eq!(server.line("HTTL h FIELDS 1 b"), "*1 :7");
}

#[test]
fn a_time_that_has_passed_deletes() {
    let mut server = hash();
    assert_eq!(server.line("HEXPIRE h 0 FIELDS 2 a zz"), "*2 :2 :-2");
    assert_eq!(server.line("HEXPIRE h 9 FIELDS 1 c"), "*1 :1");
    assert_eq!(server.line("HEXPIREAT h 1 NX FIELDS 1 c"), "*1 :0");
    assert_eq!(server.line("HEXPIREAT h 1 LT FIELDS 3 b b c"), "*3 :2 :-2 :2");
    assert_eq!(server.line("HLEN h"), ":0");
}

#[test]
fn times_out_of_range_are_refused() {
    let mut server = hash();
    assert_eq!(server.line("HPEXPIREAT h 70368744177663 FIELDS 1 a"), "*1 :1");
    assert_eq!(server.line("HEXPIREAT h 70368744177 FIELDS 1 a"), "*1 :1");
    for (command, name) in [
        ("HPEXPIREAT h 70368744177664", "hpexpireat"),
        ("HEXPIREAT h 70368744178", "hexpireat"),
        ("HEXPIRE h 9223372036854775807", "hexpire"),
        ("HPEXPIRE h 70368744177663", "hpexpire"),
    ] {
        let reply = server.line(&format!("{command} FIELDS 1 a"));
        assert_eq!(reply, format!("-ERR invalid expire time in '{name}' command"));
    }
    assert_eq!(server.line("HEXPIRE h -1 FOO 1 a"), "-ERR invalid expire time, must be >= 0");
    assert_eq!(server.line("HEXPIRE h x FOO 1 a"), "-ERR value is not an integer or out of range");
    assert_eq!(
        server.line("HGETEX h PX 70368744177663 FIELDS 1 a"),
        "-ERR invalid expire time in 'hgetex' command"
    );
    assert_eq!(
        server.line("HSETEX h EX 9999999999999 FIELDS x a"),
        "-ERR invalid expire time in 'hsetex' command"
    );
}

#[test]
fn fields_are_counted_strictly() {
    let mut server = hash();
    assert_eq!(server.line("HEXPIRE h 10 FIELDS 0 a"), "-ERR Parameter `numFields` should be greater than 0");
    assert_eq!(
        server.line("HEXPIRE h 10 NX FIELDS x"),
        "-ERR Parameter `numFields` should be greater than 0"
    );
    assert_eq!(server.line("HEXPIRE h 10 FIELDS 2 a"), MISMATCH);
    assert_eq!(server.line("HEXPIRE h 10 FIELDS 1 a NX"), MISMATCH);
    assert_eq!(server.line("HEXPIRE h 10 NX FIELDS 1"), MISMATCH);
    assert_eq!(server.line("HEXPIRE h 10 NX XX FIELDS 1 a"), NO_FIELDS);
    for command in ["HTTL h", "HPERSIST h", "HGETDEL h", "HGETEX h", "HGETEX h EX 10", "HGETEX h PERSIST"] {
        assert_eq!(server.line(&format!("{command} FIELDS 2 a")), MISMATCH, "{command}");
        assert_eq!(server.line(&format!("{command} FIELDS 1 a b")), MISMATCH, "{command}");
        assert_eq!(server.line(&format!("{command} FOO 1 a")), NO_FIELDS, "{command}");
        for count in ["0", "-1", "x"] {
            let reply = server.line(&format!("{command} FIELDS {count} a"));
            assert_eq!(reply, "-ERR Number of fields must be a positive integer", "{command} {count}");
        }
    }
    assert_eq!(server.line("HGETEX h EX 10 FIELDS"), "-ERR wrong number of arguments for 'hgetex' command");
    assert_eq!(server.line("HGETEX h EX 10 PX 10 FIELDS 1 a"), NO_FIELDS);
}

#[test]
fn another_kind_is_refused_before_further_arguments() {
    let mut server = Server::new();
    server.line("SADD s x");
    for command in [
        "HEXPIRE s x FIELDS 5 a",
        "HTTL s FIELDS 5 a",
        "HPERSIST s FIELDS 5 a",
        "HGETDEL s FIELDS 5 a",
        "HGETEX s EX x FIELDS 5 a",
        "HSETEX s FIELDS 1 a 1",
    ] {
        assert!(server.line(command).starts_with("-WRONGTYPE"), "{command}");
    }
    assert_eq!(server.line("HSETEX s EX -1 FIELDS 1 a 1"), "-ERR invalid expire time, must be >= 0");
}

#[test]
fn persisting_ends_an_expiry() {
    let mut server = hash();
    server.line("HEXPIRE h 10 FIELDS 1 a");
    assert_eq!(server.line("HPERSIST h FIELDS 3 a c zz"), "*3 :1 :-1 :-2");
    assert_eq!(server.line("HPERSIST nokey FIELDS 1 a"), "*1 :-2");
    server.advance(60_000);
    assert_eq!(server.line("HGET h a"), "$1 1");
}

#[test]
fn hset_ends_an_expiry_and_hincrby_does_not() {
    let mut server = hash();
    server.line("HEXPIRE h 10 FIELDS 3 a b c");
    server.line("HSET h a 5");
    server.line("HINCRBY h b 5");
    server.line("HINCRBYFLOAT h c 5");
    assert_eq!(server.line("HTTL h FIELDS 3 a b c"), "*3 :-1 :10 :10");
}

#[test]
fn hgetdel_returns_and_deletes() {
    let mut server = hash();
    assert_eq!(server.line("HGETDEL h FIELDS 3 b zz b"), "*3 $1 2 $-1 $-1");
    assert_eq!(server.line("HGETDEL nokey FIELDS 2 a b"), "*2 $-1 $-1");
    assert_eq!(server.line("HKEYS h"), "*2 $1 a $1 c");
    assert_eq!(server.line("HGETDEL h FIELDS 2 a c"), "*2 $1 1 $1 3");
    assert_eq!(server.line("HLEN h"), ":0");
}

#[test]
fn hgetex_changes_the_expiry_of_what_it_reads() {
    let mut server = hash();
    assert_eq!(server.line("HGETEX h EX 10 FIELDS 2 a zz"), "*2 $1 1 $-1");
    assert_eq!(server.line("HGETEX h FIELDS 1 a"), "*1 $1 1");
    assert_eq!(server.line("HTTL h FIELDS 1 a"), "*1 :10");
    assert_eq!(server.line("HGETEX h PERSIST FIELDS 2 a b"), "*2 $1 1 $1 2");
    assert_eq!(server.line("HTTL h FIELDS 1 a"), "*1 :-1");
    assert_eq!(server.line("HGETEX h PXAT 1 FIELDS 2 a a"), "*2 $1 1 $-1");
    assert_eq!(server.line("HLEN h"), ":2");
    assert_eq!(server.line("HGETEX nokey EX 10 FIELDS 1 a"), "*1 $-1");
    let mut server = server.resp3();
    assert_eq!(server.line("HGETEX nokey FIELDS 1 a"), "*1 _");
}

#[test]
fn hsetex_sets_all_or_nothing() {
    let mut server = Server::new();
    assert_eq!(server.line("HSETEX n FXX FIELDS 1 a 1"), ":0");
    assert_eq!(server.line("HSETEX n FNX EX 100 FIELDS 2 a 5 b 6"), ":1");
    assert_eq!(server.line("HSETEX n FNX FIELDS 2 a 9 c 2"), ":0");
    assert_eq!(server.line("HSETEX n FXX FIELDS 2 a 9 c 2"), ":0");
    assert_eq!(server.line("HGETALL n"), "*4 $1 a $1 5 $1 b $1 6");
    assert_eq!(server.line("HSETEX n KEEPTTL FIELDS 2 a 7 c 8"), ":1");
    assert_eq!(server.line("HTTL n FIELDS 3 a b c"), "*3 :100 :100 :-1");
    assert_eq!(server.line("HSETEX n FIELDS 2 a 7 a 8"), ":1");
    assert_eq!(server.line("HTTL n FIELDS 1 a"), "*1 :-1");
    assert_eq!(server.line("HGET n a"), "$1 8");
    assert_eq!(server.line("HSETEX n PXAT 1 FIELDS 3 a 1 b 1 c 1"), ":1");
    assert_eq!(server.line("HSETEX n2 EX 0 FIELDS 1 a 1"), ":1");
    assert_eq!(server.line("HLEN n"), ":0");
    assert_eq!(server.line("HLEN n2"), ":0");
}

#[test]
fn hsetex_reads_its_options_in_any_order() {
    let mut server = Server::new();
    assert_eq!(server.line("HSETEX n px 1500 fnx fields 1 a 1"), ":1");
    assert_eq!(server.line("HPTTL n FIELDS 1 a"), "*1 :1500");
    let arity = "-ERR wrong number of arguments for 'hsetex' command";
    let one_expiry = "-ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified";
    let one_condition = "-ERR Only one of FXX or FNX arguments can be specified";
    for (line, reply) in [
        ("HSETEX n FNX FXX FIELDS 1 a 1", one_condition),
        ("HSETEX n FNX FNX FIELDS 1 a 1", one_condition),
        ("HSETEX n EX 1 KEEPTTL FIELDS 1 a 1", one_expiry),
        ("HSETEX n KEEPTTL EX 1 FIELDS 1 a 1", one_expiry),
        ("HSETEX n KEEPTTL KEEPTTL FIELDS 1 a 1", one_expiry),
        ("HSETEX n FOO FIELDS 1 a 1", "-ERR unknown argument: FOO"),
        ("HSETEX n FNX EX 10 PERSIST", "-ERR unknown argument: PERSIST"),
        ("HSETEX n FIELDS 0 a 1", "-ERR invalid number of fields"),
        ("HSETEX n FIELDS 2147483648 a 1", "-ERR invalid number of fields"),
        ("HSETEX n FIELDS 2147483647 a 1", arity),
        ("HSETEX n FIELDS 1 a 1 EX 10", arity),
        ("HSETEX n FNX EX 10 EX", one_expiry),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn changes_notify() {
    let mut server = hash();
    assert_eq!(server.events("HEXPIRE h 100 FIELDS 2 a zz"), ["hexpire h"]);
    assert!(server.events("HEXPIRE h 100 NX FIELDS 1 a").is_empty());
    assert_eq!(server.events("HPERSIST h FIELDS 1 a"), ["hpersist h"]);
    assert!(server.events("HPERSIST h FIELDS 1 a").is_empty());
    assert_eq!(server.events("HEXPIRE h 0 FIELDS 1 a"), ["hdel h"]);
    assert_eq!(server.events("HGETEX h EX 10 FIELDS 2 b zz"), ["hexpire h"]);
    assert!(server.events("HGETEX h EX 10 FIELDS 1 zz").is_empty());
    assert!(server.events("HGETEX h FIELDS 1 b").is_empty());
    assert_eq!(server.events("HGETEX h PERSIST FIELDS 2 b c"), ["hpersist h"]);
    assert!(server.events("HGETEX h PERSIST FIELDS 2 b c").is_empty());
    assert_eq!(server.events("HGETEX h EX 0 FIELDS 1 b"), ["hdel h"]);
    assert_eq!(server.events("HGETDEL h FIELDS 1 c"), ["hdel h", "del h"]);
    assert!(server.events("HGETDEL h FIELDS 1 c").is_empty());
    assert_eq!(server.events("HSETEX h EX 10 FIELDS 1 a 1"), ["hset h", "hexpire h"]);
    assert_eq!(server.events("HSETEX h KEEPTTL FIELDS 1 a 1"), ["hset h"]);
    assert_eq!(server.events("HSETEX h EX 0 FIELDS 1 a 1"), ["hset h", "hdel h", "del h"]);
}

#[test]
fn encodings_are_those_of_redis() {
    let mut server = hash();
    assert_eq!(server.line("OBJECT ENCODING h"), "$8 listpack");
    server.line("HEXPIRE h 10 FIELDS 1 a");
    assert_eq!(server.line("OBJECT ENCODING h"), "$10 listpackex");
    server.line("HPERSIST h FIELDS 1 a");
    assert_eq!(server.line("OBJECT ENCODING h"), "$10 listpackex");
    server.run(&["HSET", "h", "a", &"x".repeat(65)]);
    assert_eq!(server.line("OBJECT ENCODING h"), "$9 hashtable");
    assert_eq!(server.line("HEXPIRE h 10 FIELDS 1 a"), "*1 :1");
    assert_eq!(server.line("HTTL h FIELDS 1 a"), "*1 :10");
}

/// Expires what is due in the key's slot without a look at the key; says how much was.
fn expire_due(server: &mut Server, key: &[u8]) -> usize {
    let (local, slot) = (&mut server.local, towline_cluster::key_slot(key));
    let (store, settings) = (&local.shared.store, &local.settings);
    let mut ks = Keyspace::hold(store, [slot], settings, &mut local.changes, 0, server.now_ms);
    ks.expire_due(slot, 10)
}

#[test]
fn key_and_field_may_expire_at_one_instant() {
    let at_ms = START_MS + 1000;
    // The field no longer does.
    let mut server = hash();
    server.line(&format!("PEXPIREAT h {at_ms}"));
    server.line(&format!("HPEXPIREAT h {at_ms} FIELDS 1 a"));
    server.line("HPERSIST h FIELDS 1 a");
    server.advance(1000);
    assert_eq!(expire_due(&mut server, b"h"), 1);
    // The key no longer does.
    let mut server = hash();
    server.line(&format!("HPEXPIREAT h {at_ms} FIELDS 1 a"));
    server.line(&format!("PEXPIREAT h {at_ms}"));
    server.line("PERSIST h");
    server.advance(1000);
    assert_eq!(expire_due(&mut server, b"h"), 1);
    assert_eq!(server.line("HLEN h"), ":2");
}

//! Tests of the commands on single members.
//!
//! The replies are those of Redis 7.2.

use crate::testing::Server;

#[test]
fn members_are_added_and_read() {
    let mut server = Server::new();
    for (line, reply) in [
        ("ZADD z 1 a 2.5 b", ":2"),
        ("ZADD z 3 a 4 c 4 c", ":1"),
        ("ZSCORE z a", "$1 3"),
        ("ZSCORE z b", "$3 2.5"),
        ("ZSCORE z nope", "$-1"),
        ("ZSCORE nokey a", "$-1"),
        ("ZCARD z", ":3"),
        ("ZCARD nokey", ":0"),
        ("ZMSCORE z a nope c", "*3 $1 3 $-1 $1 4"),
        ("ZMSCORE nokey a b", "*2 $-1 $-1"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn scores_are_doubles_in_resp3() {
    let mut server = Server::new().resp3();
    for (line, reply) in [
        ("ZADD z 1 a -inf b 2.5 c", ":3"),
        ("ZADD z INCR 1 a", ",2"),
        ("ZINCRBY z 1 new", ",1"),
        ("ZADD z NX INCR 1 a", "_"),
        ("ZSCORE z b", ",-inf"),
        ("ZSCORE z nope", "_"),
        ("ZMSCORE z c nope", "*2 ,2.5 _"),
        ("ZRANK z c WITHSCORE", "*2 :3 ,2.5"),
        ("ZRANK z nope WITHSCORE", "_"),
        ("ZRANK z nope", "_"),
        ("ZRANDMEMBER nokey", "_"),
        ("ZADD one 7 m", ":1"),
        ("ZRANDMEMBER one -2 WITHSCORES", "*2 *2 $1 m ,7 *2 $1 m ,7"),
        ("ZRANDMEMBER one 2 WITHSCORES", "*1 *2 $1 m ,7"),
        ("ZSCAN one 0", "*2 $1 0 *2 $1 m $1 7"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn add_options_decide_which_members_change() {
    let mut server = Server::new();
    for (line, reply) in [
        ("ZADD z 3 a", ":1"),
        ("ZADD z NX 9 a 9 new", ":1"),
        ("ZADD z XX 1 nope", ":0"),
        ("ZADD z XX CH 10 new 3 a", ":1"),
        ("ZADD z GT CH 5 new", ":0"),
        ("ZADD z gt ch 15 new", ":1"),
        ("ZADD z LT CH 25 new", ":0"),
        ("ZADD z LT CH 2 new 7 other", ":2"),
        ("ZADD z GT CH 3 fresh", ":1"),
        ("ZADD nokey XX 1 a", ":0"),
        ("EXISTS nokey", ":0"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn incr_replies_with_the_sum_or_nothing() {
    let mut server = Server::new();
    for (line, reply) in [
        ("ZADD z 3 a", ":1"),
        ("ZADD z INCR 5 a", "$1 8"),
        ("ZADD z INCR NX 5 a", "$-1"),
        ("ZADD z INCR NX 5 b", "$1 5"),
        ("ZADD z INCR XX 5 nope", "$-1"),
        ("ZADD z INCR GT -5 a", "$-1"),
        ("ZADD z INCR LT -5 a", "$1 3"),
        ("ZADD z INCR GT 0 a", "$-1"),
        ("ZADD z INCR 0 a", "$1 3"),
        ("ZADD nokey XX INCR 1 a", "$-1"),
        ("ZINCRBY z 1.5 a", "$3 4.5"),
        ("ZINCRBY z 1.5 c", "$3 1.5"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn arguments_of_zadd_are_checked_before_anything_is_added() {
    let mut server = Server::new();
    for (line, reply) in [
        ("ZADD z 1 a 2", "-ERR syntax error"),
        ("ZADD z NX CH INCR", "-ERR syntax error"),
        ("ZADD z NX XX 1 a", "-ERR XX and NX options at the same time are not compatible"),
        ("ZADD z NX XX GT 1 a", "-ERR XX and NX options at the same time are not compatible"),
        ("ZADD z NX GT 1 a", "-ERR GT, LT, and/or NX options at the same time are not compatible"),
        ("ZADD z GT LT 1 a", "-ERR GT, LT, and/or NX options at the same time are not compatible"),
        ("ZADD z NX XX GT 1 a 2", "-ERR syntax error"),
        ("ZADD z INCR 1 a 2 b", "-ERR INCR option supports a single increment-element pair"),
        ("ZADD z nan a", "-ERR value is not a valid float"),
        ("ZADD z 1 a x b", "-ERR value is not a valid float"),
        ("ZINCRBY z x a", "-ERR value is not a valid float"),
        ("ZINCRBY z 1e400 a", "-ERR value is not a valid float"),
        ("ZINCRBY z NX a", "-ERR syntax error"),
        ("ZINCRBY z incr a", "-ERR syntax error"),
        ("EXISTS z", ":0"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn infinities_do_not_add_up_to_no_number() {
    let mut server = Server::new();
    for (line, reply) in [
        ("ZADD z inf a -inf b", ":2"),
        ("ZADD z INCR -inf a", "-ERR resulting score is not a number (NaN)"),
        ("ZINCRBY z inf b", "-ERR resulting score is not a number (NaN)"),
        ("ZINCRBY z -inf b", "$4 -inf"),
        ("ZRANGE z 0 -1 WITHSCORES", "*4 $1 b $4 -inf $1 a $3 inf"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn scores_have_the_shortest_text() {
    let mut server = Server::new();
    for (line, reply) in [
        ("ZADD z 1e20 a 1e-7 b 0.1 c -0.5 d 3.0 e 0x10 g", ":6"),
        ("ZINCRBY z 0.2 c", "$19 0.30000000000000004"),
        (
            "ZRANGE z 0 -1 WITHSCORES",
            "*12 $1 d $4 -0.5 $1 b $4 1e-7 $1 c $19 0.30000000000000004 $1 e $1 3 $1 g $2 16 $1 a $5 1e+20",
        ),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn ranks_count_from_either_end() {
    let mut server = Server::new();
    for (line, reply) in [
        ("ZADD z 1 a 2 b 3 c", ":3"),
        ("ZRANK z a", ":0"),
        ("ZREVRANK z a", ":2"),
        ("ZRANK z nope", "$-1"),
        ("ZRANK z b WITHSCORE", "*2 :1 $1 2"),
        ("ZREVRANK z c withscore", "*2 :0 $1 3"),
        ("ZRANK z nope WITHSCORE", "*-1"),
        ("ZRANK nokey a", "$-1"),
        ("ZRANK nokey a WITHSCORE", "*-1"),
        ("ZRANK z a foo", "-ERR syntax error"),
        ("ZRANK z a WITHSCORE foo", "-ERR wrong number of arguments for 'zrank' command"),
        ("ZREVRANK z a foo foo", "-ERR wrong number of arguments for 'zrevrank' command"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn members_are_counted_by_score_and_by_name() {
    let mut server = Server::new();
    for (line, reply) in [
        ("ZADD z 1 a 2 b 3 c", ":3"),
        ("ZCOUNT z -inf +inf", ":3"),
        ("ZCOUNT z (1 3", ":2"),
        ("ZCOUNT z 3 1", ":0"),
        ("ZCOUNT z x 3", "-ERR min or max is not a float"),
        ("ZCOUNT z 1 nan", "-ERR min or max is not a float"),
        ("ZCOUNT nokey x 3", "-ERR min or max is not a float"),
        ("ZCOUNT nokey 1 3", ":0"),
        ("ZADD l 0 a 0 b 0 c 0 d 0 e", ":5"),
        ("ZLEXCOUNT l - +", ":5"),
        ("ZLEXCOUNT l [b (d", ":2"),
        ("ZLEXCOUNT l + -", ":0"),
        ("ZLEXCOUNT l b (d", "-ERR min or max not valid string range item"),
        ("ZLEXCOUNT nokey b d", "-ERR min or max not valid string range item"),
        ("ZLEXCOUNT nokey - +", ":0"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn members_are_removed_one_by_one_and_in_ranges() {
    let mut server = Server::new();
    for (line, reply) in [
        ("ZADD z 1 a 2 b 3 c 4 d 5 e 6 f 7 g 8 h", ":8"),
        ("ZREM z nope", ":0"),
        ("ZREM z a a h", ":2"),
        ("ZREM nokey a", ":0"),
        ("ZREMRANGEBYRANK z x 1", "-ERR value is not an integer or out of range"),
        ("ZREMRANGEBYRANK z 0 1", ":2"),
        ("ZREMRANGEBYRANK z 9 12", ":0"),
        ("ZREMRANGEBYRANK nokey 0 1", ":0"),
        ("ZREMRANGEBYSCORE z (4 5", ":1"),
        ("ZREMRANGEBYSCORE z x 4", "-ERR min or max is not a float"),
        ("ZREMRANGEBYSCORE z 4 3", ":0"),
        ("ZREMRANGEBYLEX z - [d", ":1"),
        ("ZREMRANGEBYLEX z x [e", "-ERR min or max not valid string range item"),
        ("ZRANGE z 0 -1", "*2 $1 f $1 g"),
        ("ZREMRANGEBYRANK z 0 -1", ":2"),
        ("EXISTS z", ":0"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn random_members_follow_the_count() {
    let mut server = Server::new();
    for (line, reply) in [
        ("ZADD z 7 m", ":1"),
        ("ZRANDMEMBER z", "$1 m"),
        ("ZRANDMEMBER z 5", "*1 $1 m"),
        ("ZRANDMEMBER z 5 WITHSCORES", "*2 $1 m $1 7"),
        ("ZRANDMEMBER z -3", "*3 $1 m $1 m $1 m"),
        ("ZRANDMEMBER z -2 WITHSCORES", "*4 $1 m $1 7 $1 m $1 7"),
        ("ZRANDMEMBER z 0", "*0"),
        ("ZRANDMEMBER nokey", "$-1"),
        ("ZRANDMEMBER nokey 3", "*0"),
        ("ZRANDMEMBER nokey -3 WITHSCORES", "*0"),
        ("ZRANDMEMBER z x", "-ERR value is not an integer or out of range"),
        ("ZRANDMEMBER z 1 foo", "-ERR syntax error"),
        ("ZRANDMEMBER z x foo", "-ERR value is not an integer or out of range"),
        ("ZRANDMEMBER z 1 WITHSCORES foo", "-ERR syntax error"),
        (
            "ZRANDMEMBER z -9223372036854775808",
            "-ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
        ),
        ("ZRANDMEMBER z 9223372036854775807 WITHSCORES", "-ERR value is out of range"),
        ("ZRANDMEMBER z -9223372036854775807 WITHSCORES", "-ERR value is out of range"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn scans_show_members_and_scores() {
    let mut server = Server::new();
    for (line, reply) in [
        ("ZADD z 1 a 2.5 b 3 ab", ":3"),
        ("ZSCAN z 0", "*2 $1 0 *6 $1 a $1 1 $1 b $3 2.5 $2 ab $1 3"),
        ("ZSCAN z +2", "*2 $1 0 *6 $1 a $1 1 $1 b $3 2.5 $2 ab $1 3"),
        ("ZSCAN z ++2", "-ERR invalid cursor"),
        ("ZSCAN z 0 MATCH a* COUNT 5", "*2 $1 0 *4 $1 a $1 1 $2 ab $1 3"),
        ("ZSCAN z x", "-ERR invalid cursor"),
        ("ZSCAN nokey 0 foo", "*2 $1 0 *0"),
        ("ZSCAN z 0 foo", "-ERR syntax error"),
        ("ZSCAN z 0 COUNT 0", "-ERR syntax error"),
        ("ZSCAN z 0 COUNT x", "-ERR value is not an integer or out of range"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn other_kinds_are_refused() {
    let mut server = Server::new();
    for (line, reply) in [
        ("SET s x", "+OK"),
        ("ZADD s 1 a", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("ZADD s XX 1 a", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("ZINCRBY s 1 a", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("ZREM s a", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("ZCARD s", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("ZSCORE s a", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("ZMSCORE s a", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("ZRANK s a", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("ZCOUNT s 1 2", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("ZLEXCOUNT s - +", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("ZSCAN s 0", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("ZRANDMEMBER s 2", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("ZREMRANGEBYRANK s 0 1", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("ZREMRANGEBYSCORE s 0 1", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn changes_are_notified() {
    let mut server = Server::new();
    for (line, events) in [
        ("ZADD z 1 a 2 b 3 c", "zadd z"),
        ("ZADD z 1 a", ""),
        ("ZADD z 2 a", "zadd z"),
        ("ZADD z XX INCR 2 a", "zincr z"),
        ("ZADD z XX INCR 0 a", ""),
        ("ZINCRBY z 1 a", "zincr z"),
        ("ZREM z a nope", "zrem z"),
        ("ZREM z b c", "zrem z, del z"),
        ("ZADD z 1 a 2 b 3 c 4 d", "zadd z"),
        ("ZREMRANGEBYRANK z 0 0", "zremrangebyrank z"),
        ("ZREMRANGEBYSCORE z 2 2", "zremrangebyscore z"),
        ("ZREMRANGEBYSCORE z 9 9", ""),
        ("ZREMRANGEBYLEX z - [c", "zremrangebylex z"),
        ("ZREMRANGEBYLEX z - +", "zremrangebylex z, del z"),
    ] {
        assert_eq!(server.events(line).join(", "), events, "{line}");
    }
}

#[test]
fn scans_can_leave_out_the_scores() {
    let mut server = Server::new();
    server.line("ZADD z 1 a 2 b");
    assert_eq!(server.line("ZSCAN z 0 NOSCORES"), "*2 $1 0 *2 $1 a $1 b");
    assert_eq!(server.line("ZSCAN z 0 NOVALUES"), "-ERR syntax error");
}

/// A set of the members `m0`, `m1`, ..., each with its number as score.
fn numbered(server: &mut Server, key: &str, count: usize) {
    for number in 0..count {
        server.line(&format!("ZADD {key} {number} m{number}"));
    }
}

/// The words of a reply that are members of [`numbered`].
fn members(reply: &str) -> Vec<&str> {
    reply.split(' ').filter(|word| word.starts_with('m')).collect()
}

#[test]
fn samples_have_no_member_twice() {
    let mut server = Server::new();
    numbered(&mut server, "small", 20);
    numbered(&mut server, "large", 300);
    for (key, count) in [("small", 5), ("small", 19), ("large", 3), ("large", 99), ("large", 299)] {
        let reply = server.line(&format!("ZRANDMEMBER {key} {count}"));
        let mut found = members(&reply);
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), count, "{key} {count}");
    }
    for (key, count) in [("small", 20), ("large", 300)] {
        assert_eq!(members(&server.line(&format!("ZRANDMEMBER {key} 1000"))).len(), count);
        assert_eq!(members(&server.line(&format!("ZRANDMEMBER {key} -1000 WITHSCORES"))).len(), 1000);
    }
}

#[test]
fn samples_reach_every_member() {
    let mut server = Server::new();
    numbered(&mut server, "large", 200);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..200 {
        let reply = server.line("ZRANDMEMBER large 20");
        seen.extend(members(&reply).into_iter().map(str::to_owned));
    }
    assert_eq!(seen.len(), 200);
}

#[test]
fn a_scan_of_a_large_set_finds_every_member() {
    let mut server = Server::new();
    numbered(&mut server, "z", 300);
    let (mut cursor, mut found, mut steps) = ("0".to_owned(), Vec::new(), 0);
    loop {
        let reply = server.line(&format!("ZSCAN z {cursor} COUNT 50"));
        found.extend(members(&reply).into_iter().map(str::to_owned));
        cursor = reply.split(' ').nth(2).unwrap_or_default().to_owned();
        steps += 1;
        if cursor == "0" {
            break;
        }
    }
    found.sort_unstable();
    found.dedup();
    assert_eq!((found.len(), steps), (300, 6));
}

#[test]
fn the_encoding_follows_the_limits() {
    let mut server = Server::new();
    let encoding = |server: &mut Server, key: &[u8]| {
        let settings = std::sync::Arc::clone(&server.local.settings);
        let shared = std::sync::Arc::clone(&server.local.shared);
        let changes = &mut server.local.changes;
        let mut ks = towline_store::keyspace::Keyspace::hold_all(&shared.store, &settings, changes, 0, 1);
        ks.entry(key).map(|entry| entry.encoding())
    };
    numbered(&mut server, "z", 128);
    assert_eq!(encoding(&mut server, b"z"), Some("listpack"));
    server.line("ZUNIONSTORE u 1 z");
    assert_eq!(encoding(&mut server, b"u"), Some("listpack"));
    server.line("ZADD z 1 one-more");
    assert_eq!(encoding(&mut server, b"z"), Some("skiplist"));
    server.line("ZRANGESTORE r z 0 9");
    assert_eq!(encoding(&mut server, b"r"), Some("listpack"));
    server.line(&format!("ZADD long 1 {}", "x".repeat(65)));
    assert_eq!(encoding(&mut server, b"long"), Some("skiplist"));
}

#[test]
fn changes_keep_the_expiry_and_stores_clear_it() {
    let mut server = Server::new();
    server.line("ZADD z 1 a 2 b");
    server.line("ZADD d 1 a");
    let expiry = |server: &mut Server, key: &[u8], at: Option<u64>| {
        let settings = std::sync::Arc::clone(&server.local.settings);
        let shared = std::sync::Arc::clone(&server.local.shared);
        let changes = &mut server.local.changes;
        let mut ks = towline_store::keyspace::Keyspace::hold_all(&shared.store, &settings, changes, 0, 1);
        if at.is_some() {
            ks.set_expiry(key, at);
        }
        ks.expiry(key).flatten()
    };
    let at = Some(server.now_ms + 1000);
    expiry(&mut server, b"z", at);
    expiry(&mut server, b"d", at);
    server.line("ZADD z 3 c");
    server.line("ZINCRBY z 3 c");
    server.line("ZREM z a");
    assert_eq!(expiry(&mut server, b"z", None), at);
    server.line("ZUNIONSTORE d 1 z");
    assert_eq!(expiry(&mut server, b"d", None), None);
    server.advance(1001);
    assert_eq!(server.line("ZCARD z"), ":0");
    assert_eq!(server.line("ZCARD d"), ":2");
}

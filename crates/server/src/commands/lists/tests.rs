//! Tests of the commands on lists.

use crate::testing::Server;

#[test]
fn elements_are_pushed_popped_and_read_at_both_ends() {
    let mut server = Server::new();
    assert_eq!(server.line("RPUSH l a b c"), ":3");
    assert_eq!(server.line("LPUSH l z y"), ":5");
    assert_eq!(server.line("LRANGE l 0 -1"), "*5 $1 y $1 z $1 a $1 b $1 c");
    assert_eq!(server.line("LRANGE l -2 100"), "*2 $1 b $1 c");
    assert_eq!(server.line("LRANGE l 3 1"), "*0");
    assert_eq!(server.line("LPOP l"), "$1 y");
    assert_eq!(server.line("RPOP l 2"), "*2 $1 c $1 b");
    assert_eq!(server.line("LPOP l 100"), "*2 $1 z $1 a");
    assert_eq!(server.line("LLEN l"), ":0");
    assert_eq!(server.line("LPOP l"), "$-1");
    assert_eq!(server.line("LRANGE l 0 -1"), "*0");
}

#[test]
fn pushing_to_a_key_that_is_not_there_is_a_choice() {
    let mut server = Server::new();
    assert_eq!(server.line("LPUSHX l a"), ":0");
    assert_eq!(server.line("RPUSHX l a"), ":0");
    assert_eq!(server.line("LLEN l"), ":0");
    server.line("RPUSH l a");
    assert_eq!(server.line("LPUSHX l b c"), ":3");
    assert_eq!(server.line("RPUSHX l d"), ":4");
    assert_eq!(server.line("LRANGE l 0 -1"), "*4 $1 c $1 b $1 a $1 d");
}

#[test]
fn counts_of_pops_are_checked_before_the_key() {
    let mut server = Server::new();
    server.line("RPUSH l a b c");
    server.line("SADD s x");
    for count in ["-1", "x", "9223372036854775808"] {
        let error = "-ERR value is out of range, must be positive";
        assert_eq!(server.run(&["LPOP", "l", count]), error);
        assert_eq!(server.run(&["RPOP", "s", count]), error);
    }
    assert!(server.line("LPOP s 0").starts_with("-WRONGTYPE"));
    assert!(server.line("LPOP s").starts_with("-WRONGTYPE"));
    assert_eq!(server.line("LPOP nokey 0"), "*-1");
    assert_eq!(server.line("LPOP l 0"), "*0");
    assert_eq!(server.line("RPOP l 1 2"), "-ERR wrong number of arguments for 'rpop' command");
    assert_eq!(server.line("LPOP l 9223372036854775807"), "*3 $1 a $1 b $1 c");
}

#[test]
fn lmpop_takes_the_first_list() {
    let mut server = Server::new();
    server.line("RPUSH l a b c d");
    server.line("SADD s x");
    assert_eq!(server.line("LMPOP 2 nokey l RIGHT COUNT 2"), "*2 $1 l *2 $1 d $1 c");
    assert_eq!(server.line("LMPOP 1 l left"), "*2 $1 l *1 $1 a");
    assert_eq!(server.line("LMPOP 1 nokey LEFT"), "*-1");
    assert!(server.line("LMPOP 2 s l LEFT").starts_with("-WRONGTYPE"));
    assert_eq!(server.line("LMPOP 0 l LEFT"), "-ERR numkeys should be greater than 0");
    assert_eq!(server.line("LMPOP x l LEFT"), "-ERR numkeys should be greater than 0");
    assert_eq!(server.line("LMPOP 1 l LEFT COUNT 1.5 FOO"), "-ERR count should be greater than 0");
    assert_eq!(server.line("LMPOP 1 l LEFT COUNT 1 FOO"), "-ERR syntax error");
    for line in [
        "LMPOP 5 l LEFT",
        "LMPOP 9223372036854775807 l LEFT",
        "LMPOP 1 l FOO",
        "LMPOP 1 l LEFT COUNT",
        "LMPOP 1 l LEFT FOO 2",
        "LMPOP 1 l LEFT COUNT 1 COUNT 2",
    ] {
        assert_eq!(server.line(line), "-ERR syntax error", "{line}");
    }
    assert_eq!(server.line("LMPOP 1 l LEFT COUNT 0"), "-ERR count should be greater than 0");
    assert_eq!(server.line("LMPOP 1 l LEFT COUNT x"), "-ERR count should be greater than 0");
    assert_eq!(server.line("LLEN l"), ":1");
}

#[test]
fn elements_move_between_lists_and_within_one() {
    let mut server = Server::new();
    server.line("RPUSH l a b c");
    server.line("SADD s x");
    assert_eq!(server.line("LMOVE l m LEFT RIGHT"), "$1 a");
    assert_eq!(server.line("LMOVE l m RIGHT LEFT"), "$1 c");
    assert_eq!(server.line("LRANGE m 0 -1"), "*2 $1 c $1 a");
    assert_eq!(server.line("RPOPLPUSH m m"), "$1 a");
    assert_eq!(server.line("LRANGE m 0 -1"), "*2 $1 a $1 c");
    assert_eq!(server.line("RPOPLPUSH l m"), "$1 b");
    assert_eq!(server.line("LLEN l"), ":0");
    assert_eq!(server.line("LMOVE nokey s LEFT RIGHT"), "$-1");
    assert_eq!(server.line("RPOPLPUSH nokey m"), "$-1");
    assert!(server.line("LMOVE m s LEFT RIGHT").starts_with("-WRONGTYPE"));
    assert!(server.line("RPOPLPUSH s m").starts_with("-WRONGTYPE"));
    assert_eq!(server.line("LMOVE m m LEFT FOO"), "-ERR syntax error");
    assert_eq!(server.line("LLEN m"), ":3");
    server.line("RPUSH one x");
    assert_eq!(server.line("LMOVE one one LEFT LEFT"), "$1 x");
    assert_eq!(server.line("LLEN one"), ":1");
}

#[test]
fn indices_are_checked_after_the_key() {
    let mut server = Server::new();
    server.line("RPUSH l a b c");
    server.line("SADD s x");
    assert_eq!(server.line("LINDEX l -1"), "$1 c");
    assert_eq!(server.line("LINDEX l 3"), "$-1");
    assert_eq!(server.line("LINDEX nokey x"), "$-1");
    assert_eq!(server.line("LINDEX l x"), "-ERR value is not an integer or out of range");
    assert!(server.line("LINDEX s x").starts_with("-WRONGTYPE"));
    assert_eq!(server.line("LSET nokey x v"), "-ERR no such key");
    assert_eq!(server.line("LSET l x v"), "-ERR value is not an integer or out of range");
    assert_eq!(server.line("LSET l -4 v"), "-ERR index out of range");
    assert_eq!(server.line("LSET l -1 12"), "+OK");
    assert_eq!(server.line("LRANGE l 0 -1"), "*3 $1 a $1 b $2 12");
    assert_eq!(server.line("LRANGE nokey 0 x"), "-ERR value is not an integer or out of range");
    assert!(server.line("LRANGE s 0 1").starts_with("-WRONGTYPE"));
    assert_eq!(server.line("LRANGE l -9223372036854775808 9223372036854775807"), "*3 $1 a $1 b $2 12");
}

#[test]
fn lpos_finds_by_rank_count_and_length() {
    let mut server = Server::new();
    server.line("RPUSH l a b c 1 2 3 c c");
    assert_eq!(server.line("LPOS l c"), ":2");
    assert_eq!(server.line("LPOS l c RANK 2"), ":6");
    assert_eq!(server.line("LPOS l c RANK -1"), ":7");
    assert_eq!(server.line("LPOS l c COUNT 0"), "*3 :2 :6 :7");
    assert_eq!(server.line("LPOS l c COUNT 2 RANK -1"), "*2 :7 :6");
    assert_eq!(server.line("LPOS l c COUNT 0 MAXLEN 3"), "*1 :2");
    assert_eq!(server.line("LPOS l c COUNT 0 MAXLEN 7 RANK 2"), "*1 :6");
    assert_eq!(server.line("LPOS l c MAXLEN 2"), "$-1");
    assert_eq!(server.line("LPOS l 3"), ":5");
    assert_eq!(server.line("LPOS l zz COUNT 0"), "*0");
    assert_eq!(server.line("LPOS l zz"), "$-1");
    assert_eq!(server.line("LPOS nokey c COUNT 1"), "*0");
    assert_eq!(server.line("LPOS nokey c"), "$-1");
    assert_eq!(server.line("LPOS l c RANK 9223372036854775807"), "$-1");
}

#[test]
fn lpos_refuses_what_redis_refuses() {
    let mut server = Server::new();
    server.line("RPUSH l a");
    assert!(
        server
            .line("LPOS l a RANK 0")
            .starts_with("-ERR RANK can't be zero: use 1 to start from the first match")
    );
    assert!(
        server
            .line("LPOS l a RANK -9223372036854775808")
            .starts_with("-ERR value is out of range, value must")
    );
    assert_eq!(server.line("LPOS l a RANK x"), "-ERR value is not an integer or out of range");
    assert_eq!(server.line("LPOS l a COUNT -1"), "-ERR COUNT can't be negative");
    assert_eq!(server.line("LPOS l a MAXLEN x"), "-ERR MAXLEN can't be negative");
    assert_eq!(server.line("LPOS l a RANK"), "-ERR syntax error");
    assert_eq!(server.line("LPOS l a FOO 1"), "-ERR syntax error");
}

#[test]
fn lists_are_trimmed_inserted_into_and_cleaned() {
    let mut server = Server::new();
    server.line("RPUSH l a b a c a");
    assert_eq!(server.line("LINSERT l BEFORE b x"), ":6");
    assert_eq!(server.line("LINSERT l after c y"), ":7");
    assert_eq!(server.line("LINSERT l AFTER zz y"), ":-1");
    assert_eq!(server.line("LINSERT nokey BEFORE a b"), ":0");
    assert_eq!(server.line("LINSERT l FOO b x"), "-ERR syntax error");
    assert_eq!(server.line("LREM l -1 a"), ":1");
    assert_eq!(server.line("LREM l 1 a"), ":1");
    assert_eq!(server.line("LRANGE l 0 -1"), "*5 $1 x $1 b $1 a $1 c $1 y");
    assert_eq!(server.line("LREM l -9223372036854775808 a"), ":1");
    assert_eq!(server.line("LREM nokey x a"), "-ERR value is not an integer or out of range");
    assert_eq!(server.line("LREM nokey 0 a"), ":0");
    assert_eq!(server.line("LTRIM l 1 -2"), "+OK");
    assert_eq!(server.line("LRANGE l 0 -1"), "*2 $1 b $1 c");
    assert_eq!(server.line("LTRIM nokey x 1"), "-ERR value is not an integer or out of range");
    assert_eq!(server.line("LTRIM l 5 6"), "+OK");
    assert_eq!(server.line("LLEN l"), ":0");
}

#[test]
fn changes_notify() {
    let mut server = Server::new();
    assert_eq!(server.events("LPUSH l a"), ["lpush l"]);
    assert_eq!(server.events("RPUSH l b"), ["rpush l"]);
    assert!(server.events("LPUSHX nokey b").is_empty());
    assert_eq!(server.events("RPUSHX l c"), ["rpush l"]);
    assert_eq!(server.events("LMOVE l m LEFT RIGHT"), ["rpush m", "lpop l"]);
    assert_eq!(server.events("LMOVE m m LEFT RIGHT"), ["rpush m", "lpop m"]);
    assert_eq!(server.events("RPOPLPUSH m l"), ["lpush l", "rpop m", "del m"]);
    assert_eq!(server.events("LSET l 0 x"), ["lset l"]);
    assert_eq!(server.events("LINSERT l BEFORE x y"), ["linsert l"]);
    assert!(server.events("LINSERT l BEFORE zz y").is_empty());
    assert_eq!(server.events("LREM l 0 y"), ["lrem l"]);
    assert!(server.events("LREM l 0 zz").is_empty());
    assert_eq!(server.events("LTRIM l 0 -1"), ["ltrim l"]);
    assert_eq!(server.events("LPOP l 1"), ["lpop l"]);
    assert!(server.events("LPOP l 0").is_empty());
    assert_eq!(server.events("LMPOP 1 l LEFT COUNT 5"), ["lpop l", "del l"]);
    server.line("RPUSH l a");
    assert_eq!(server.events("LTRIM l 5 6"), ["ltrim l", "del l"]);
}

#[test]
fn long_lists_change_their_encoding_and_keep_their_order() {
    let mut server = Server::new();
    let long = "x".repeat(8 << 10);
    server.line("RPUSH l a");
    assert_eq!(server.line("OBJECT ENCODING l"), "$8 listpack");
    server.run(&["RPUSH", "l", &long, "c"]);
    assert_eq!(server.line("OBJECT ENCODING l"), "$9 quicklist");
    assert_eq!(server.line("LINDEX l -1"), "$1 c");
    assert_eq!(server.line("RPOP l 1"), "*1 $1 c");
    assert_eq!(server.run(&["LREM", "l", "0", &long]), ":1");
    assert_eq!(server.line("OBJECT ENCODING l"), "$8 listpack");
    assert_eq!(server.line("LRANGE l 0 -1"), "*1 $1 a");
}

#[test]
fn resp3_nulls_have_one_form() {
    let mut server = Server::new().resp3();
    for line in [
        "LPOP nokey",
        "LPOP nokey 1",
        "LMPOP 1 nokey LEFT",
        "LMOVE nokey x LEFT LEFT",
        "LINDEX nokey 0",
        "LPOS nokey a",
    ] {
        assert_eq!(server.line(line), "_", "{line}");
    }
}

#[test]
fn a_list_at_its_limit_is_converted_by_lset_even_out_of_range() {
    let mut server = Server::new();
    server.line("CONFIG SET list-max-listpack-size 4");
    server.line("RPUSH l a b c d");
    assert_eq!(server.line("OBJECT ENCODING l"), "$8 listpack");
    assert_eq!(server.line("LSET l x v"), "-ERR value is not an integer or out of range");
    assert_eq!(server.line("OBJECT ENCODING l"), "$8 listpack");
    assert_eq!(server.line("LSET l 4 v"), "-ERR index out of range");
    assert_eq!(server.line("OBJECT ENCODING l"), "$9 quicklist");
    assert_eq!(server.line("LSET l -5 v"), "-ERR index out of range");
    assert_eq!(server.line("LRANGE l 0 -1"), "*4 $1 a $1 b $1 c $1 d");
}

//! Tests of publish and subscribe.

use crate::testing::{Server, pushed};

#[test]
fn subscriptions_are_confirmed_and_counted() {
    let mut server = Server::new();
    assert_eq!(
        server.line("SUBSCRIBE a b a"),
        "*3 $9 subscribe $1 a :1 *3 $9 subscribe $1 b :2 *3 $9 subscribe $1 a :2"
    );
    assert_eq!(server.line("PSUBSCRIBE p*"), "*3 $10 psubscribe $2 p* :3");
    assert_eq!(server.line("SSUBSCRIBE s"), "*3 $10 ssubscribe $1 s :1");
    assert_eq!(server.line("UNSUBSCRIBE"), "*3 $11 unsubscribe $1 a :2 *3 $11 unsubscribe $1 b :1");
    assert_eq!(server.line("PUNSUBSCRIBE"), "*3 $12 punsubscribe $2 p* :0");
    assert_eq!(
        server.line("GET k"),
        "-ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
    );
    assert_eq!(server.line("PING"), "*2 $4 pong $0");
    assert_eq!(server.line("SUNSUBSCRIBE"), "*3 $12 sunsubscribe $1 s :0");
    assert!(server.session.is_plain());
    assert_eq!(server.line("PING"), "+PONG");
    assert_eq!(server.line("UNSUBSCRIBE"), "*3 $11 unsubscribe $-1 :0");
    assert_eq!(server.line("PUNSUBSCRIBE"), "*3 $12 punsubscribe $-1 :0");
    assert_eq!(server.line("SUNSUBSCRIBE x y"), "*3 $12 sunsubscribe $1 x :0 *3 $12 sunsubscribe $1 y :0");
}

#[test]
fn messages_reach_channels_patterns_and_shard_channels() {
    let mut server = Server::new();
    let mut other = server.second();
    server.line_as(&mut other, "HELLO 3");
    assert_eq!(server.line_as(&mut other, "SUBSCRIBE c"), ">3 $9 subscribe $1 c :1");
    server.line_as(&mut other, "PSUBSCRIBE *");
    server.line_as(&mut other, "SSUBSCRIBE c");
    assert_eq!(server.line("PUBLISH c m"), ":2");
    assert_eq!(server.line("SPUBLISH c m"), ":1");
    assert_eq!(server.run(&["PUBLISH", "", ""]), ":0");
    assert_eq!(
        pushed(&other),
        ">3 $7 message $1 c $1 m >4 $8 pmessage $1 * $1 c $1 m >3 $8 smessage $1 c $1 m"
    );
    server.line_as(&mut other, "HELLO 2");
    server.line("PUBLISH c m");
    assert!(pushed(&other).starts_with("*3 $7 message $1 c $1 m *4"));
}

#[test]
fn a_publisher_hears_itself_behind_the_reply() {
    let mut server = Server::new().resp3();
    server.line("SUBSCRIBE c");
    assert_eq!(server.line("PUBLISH c m"), ":1");
    assert_eq!(server.pushed(), ">3 $7 message $1 c $1 m");
}

#[test]
fn nothing_comes_behind_the_end_of_a_subscription() {
    let mut server = Server::new();
    let mut other = server.second();
    server.line_as(&mut other, "SUBSCRIBE c");
    server.line("PUBLISH c m");
    assert_eq!(
        server.line_as(&mut other, "UNSUBSCRIBE c"),
        "*3 $7 message $1 c $1 m *3 $11 unsubscribe $1 c :0"
    );
    assert_eq!(server.line("PUBLISH c m"), ":0");
    assert_eq!(pushed(&other), "");
}

#[test]
fn confirmations_come_even_without_replies() {
    let mut server = Server::new().resp3();
    server.line("CLIENT REPLY OFF");
    assert_eq!(server.line("SUBSCRIBE c"), "");
    assert_eq!(server.pushed(), ">3 $9 subscribe $1 c :1");
    server.line("PUBLISH c m");
    assert_eq!(server.line("UNSUBSCRIBE c"), "");
    assert_eq!(server.pushed(), ">3 $7 message $1 c $1 m >3 $11 unsubscribe $1 c :0");
}

#[test]
fn subscriptions_are_listed() {
    let mut server = Server::new();
    let (mut b, mut c) = (server.second(), server.second());
    for session in [&mut b, &mut c] {
        server.line_as(session, "SUBSCRIBE news");
        server.line_as(session, "SSUBSCRIBE shard");
        server.line_as(session, "PSUBSCRIBE n*");
    }
    server.line_as(&mut c, "PSUBSCRIBE m*");
    assert_eq!(server.line("PUBSUB CHANNELS"), "*1 $4 news");
    assert_eq!(server.line("PUBSUB CHANNELS n?ws"), "*1 $4 news");
    assert_eq!(server.line("PUBSUB CHANNELS x*"), "*0");
    assert_eq!(server.line("PUBSUB SHARDCHANNELS"), "*1 $5 shard");
    assert_eq!(server.line("PUBSUB NUMSUB"), "*0");
    assert_eq!(server.line("PUBSUB NUMSUB news x"), "*4 $4 news :2 $1 x :0");
    assert_eq!(server.line("PUBSUB SHARDNUMSUB shard"), "*2 $5 shard :2");
    assert_eq!(server.line("PUBSUB NUMPAT"), ":2");
    assert_eq!(
        server.line("PUBSUB channels a b"),
        "-ERR unknown subcommand or wrong number of arguments for 'channels'. Try PUBSUB HELP."
    );
    assert!(server.line("PUBSUB HELP").starts_with("*13 +PUBSUB <subcommand>"));
    crate::farewell::session_end(&mut server.local, &mut c, server.now_ms);
    assert_eq!(server.line("PUBSUB NUMSUB news"), "*2 $4 news :1");
    assert_eq!(server.line("PUBSUB NUMPAT"), ":1");
    assert_eq!(server.local.shared.clients.len(), 2);
}

#[test]
fn changes_of_keys_are_published() {
    let config = crate::Config {
        workers: 1,
        notify_keyspace_events: towline_store::notify::parse(b"AKE").unwrap(),
        ..crate::Config::default()
    };
    let mut server = Server::with(config);
    let mut other = server.second();
    server.line_as(&mut other, "PSUBSCRIBE __key*");
    server.line("SELECT 3");
    server.line("SET k 1");
    assert_eq!(
        pushed(&other),
        "*4 $8 pmessage $6 __key* $16 __keyspace@3__:k $3 set *4 $8 pmessage $6 __key* $18 __keyevent@3__:set $1 k"
    );
}

//! Tests of transactions.

use crate::testing::Server;

#[test]
fn queued_commands_run_together() {
    let mut server = Server::new();
    assert_eq!(server.line("MULTI"), "+OK");
    for line in ["SET k 1", "INCR k", "LPUSH k x", "GET k", "PING"] {
        assert_eq!(server.line(line), "+QUEUED");
    }
    assert_eq!(
        server.line("EXEC"),
        "*5 +OK :2 -WRONGTYPE Operation against a key holding the wrong kind of value $1 2 +PONG"
    );
    assert_eq!(server.line("MULTI"), "+OK");
    assert_eq!(server.line("EXEC"), "*0");
    assert!(server.session.is_plain());
}

#[test]
fn a_refused_command_spoils_the_transaction() {
    let mut server = Server::new();
    for bad in ["SET k", "nosuch", "CLIENT NOSUCH", "CLIENT"] {
        server.line("MULTI");
        assert!(server.line(bad).starts_with("-ERR "), "{bad}");
        assert_eq!(server.line("SET k 1"), "+QUEUED");
        assert_eq!(server.line("EXEC"), "-EXECABORT Transaction discarded because of previous errors.");
    }
    assert_eq!(server.line("GET k"), "$-1");
    server.line("MULTI");
    assert_eq!(
        server.line("EXEC x"),
        "-EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command"
    );
    assert_eq!(server.line("EXEC"), "-ERR EXEC without MULTI");
}

#[test]
fn misplaced_commands_do_not_spoil_the_transaction() {
    let mut server = Server::new();
    assert_eq!(server.line("EXEC"), "-ERR EXEC without MULTI");
    assert_eq!(server.line("DISCARD"), "-ERR DISCARD without MULTI");
    server.line("MULTI");
    assert_eq!(server.line("MULTI"), "-ERR MULTI calls can not be nested");
    assert_eq!(server.line("WATCH k"), "-ERR WATCH inside MULTI is not allowed");
    assert_eq!(server.line("PING"), "+QUEUED");
    assert_eq!(server.line("EXEC"), "*1 +PONG");
}

#[test]
fn discard_forgets_everything() {
    let mut server = Server::new();
    let mut other = server.second();
    server.line("WATCH k");
    server.line("MULTI");
    server.line("SET k 1");
    assert_eq!(server.line("DISCARD"), "+OK");
    server.line_as(&mut other, "SET k 2");
    server.line("MULTI");
    server.line("GET k");
    assert_eq!(server.line("EXEC"), "*1 $1 2");
}

#[test]
fn a_watched_key_that_changes_stops_the_transaction() {
    let mut server = Server::new();
    let mut other = server.second();
    for (change, is_stopped) in [
        ("SET k 1", true),
        ("DEL k", true),
        ("DEL k", false),
        ("SET j 1", false),
        ("GET k", false),
        ("FLUSHALL", false),
    ] {
        if change == "FLUSHALL" && crate::commands::row(towline_spec::lookup(b"flushall").unwrap()).is_none()
        {
            continue;
        }
        assert_eq!(server.line("WATCH k k x"), "+OK");
        server.line_as(&mut other, change);
        server.line("MULTI");
        server.line("PING");
        assert_eq!(server.line("EXEC"), if is_stopped { "*-1" } else { "*1 +PONG" }, "{change}");
    }
}

#[test]
fn an_own_change_counts_too_and_unwatch_forgets() {
    let mut server = Server::new().resp3();
    server.line("WATCH k");
    server.line("SET k 1");
    server.line("MULTI");
    assert_eq!(server.line("EXEC"), "_");
    server.line("WATCH k");
    server.line("SET k 1");
    assert_eq!(server.line("UNWATCH"), "+OK");
    server.line("MULTI");
    assert_eq!(server.line("EXEC"), "*0");
    assert!(server.session.watch.is_none());
}

#[test]
fn a_watched_key_that_expires_stops_the_transaction() {
    let mut server = Server::new();
    server.line("SET k 1 PX 50");
    server.line("WATCH k");
    server.advance(60);
    server.line("MULTI");
    assert_eq!(server.line("EXEC"), "*-1");
    // One that had expired before is simply not there.
    server.line("SET k 1 PX 50");
    server.advance(60);
    server.line("WATCH k");
    server.line("MULTI");
    assert_eq!(server.line("EXEC"), "*0");
}

#[test]
fn watches_of_other_databases_are_kept_apart() {
    let mut server = Server::new();
    let mut other = server.second();
    server.line("WATCH k");
    server.line("SELECT 1");
    server.line_as(&mut other, "SELECT 1");
    server.line_as(&mut other, "SET k 1");
    server.line("MULTI");
    assert_eq!(server.line("EXEC"), "*0");
    server.line("WATCH k");
    server.line("SELECT 0");
    server.line_as(&mut other, "SET k 2");
    server.line("MULTI");
    assert_eq!(server.line("EXEC"), "*-1");
}

#[test]
fn the_connection_may_change_within() {
    let mut server = Server::new();
    server.line("SET k 0");
    server.line("MULTI");
    for line in ["SELECT 1", "SET k 1", "GET k", "HELLO 3", "HGETALL h", "SELECT 0", "GET k"] {
        assert_eq!(server.line(line), "+QUEUED");
    }
    let reply = server.line("EXEC");
    assert!(reply.starts_with("*7 +OK +OK $1 1 %7 "), "{reply}");
    assert!(reply.ends_with(" %0 +OK $1 0"), "{reply}");
    assert_eq!(server.line("GET nokey"), "_");
}

#[test]
fn subscriptions_within_are_replies() {
    let mut server = Server::new();
    server.line("MULTI");
    for line in ["UNWATCH", "SUBSCRIBE x", "UNSUBSCRIBE", "MONITOR"] {
        server.line(line);
    }
    assert_eq!(
        server.line("EXEC"),
        "*4 +OK *3 $9 subscribe $1 x :1 *3 $11 unsubscribe $1 x :0 -ERR MONITOR isn't allowed for DENY BLOCKING client"
    );
}

#[test]
fn a_client_that_leaves_unwatches() {
    let mut server = Server::new();
    let mut other = server.second();
    server.line_as(&mut other, "WATCH k");
    let flag = std::sync::Arc::downgrade(&other.watch.as_ref().unwrap().flag);
    crate::farewell::session_end(&mut server.local, &mut other, server.now_ms);
    assert!(flag.upgrade().is_none());
}

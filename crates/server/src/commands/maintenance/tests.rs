//! Tests of the commands of planned moves.

use crate::Config;
use crate::client::{Addresses, Ending};
use crate::maintenance::{self, Notice, Registry, Scope};
use crate::testing::{START_MS, Server};
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

fn registry(server: &Server) -> &Registry {
    &server.local.shared.maintenance
}

/// Has the server listen on this address, as far as its list is concerned; nobody accepts.
fn listen(server: &Server, address: &str) -> SocketAddr {
    let listener = TcpListener::bind(address).expect("a port is free");
    server.local.shared.endpoints.add(listener).expect("it has an address")
}

fn announce(server: &Server, shard: &str) -> u64 {
    let notice = Notice::Migrating { starts_in: Duration::ZERO, shards: vec![shard.to_owned()] };
    registry(server).announce(Scope::All, notice, true, Instant::now())
}

fn frame(seq: u64, shard: &str) -> String {
    format!(">4 $9 MIGRATING :{seq} :0 $5 [\"{shard}\"]")
}

#[test]
fn opting_in_has_these_forms_and_no_other() {
    let mut server = Server::new().resp3();
    for line in [
        "CLIENT MAINT_NOTIFICATIONS ON",
        "client maint_notifications on moving-endpoint-type external-ip",
        "CLIENT MAINT_NOTIFICATIONS ON MOVING-ENDPOINT-TYPE NONE",
        "CLIENT MAINT_NOTIFICATIONS OFF",
        "CLIENT MAINT_NOTIFICATIONS off",
    ] {
        assert_eq!(server.line(line), "+OK", "{line}");
    }
    for line in [
        "CLIENT MAINT_NOTIFICATIONS YES",
        "CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type",
        "CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type auto",
        "CLIENT MAINT_NOTIFICATIONS ON endpoint none",
        "CLIENT MAINT_NOTIFICATIONS OFF moving-endpoint-type none",
        "CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type none x",
    ] {
        assert_eq!(server.line(line), "-ERR syntax error", "{line}");
    }
    assert_eq!(
        server.line("CLIENT MAINT_NOTIFICATIONS"),
        "-ERR wrong number of arguments for 'client|maint_notifications' command"
    );
    assert!(server.line("CLIENT HELP").contains("MAINT_NOTIFICATIONS (ON "));
}

#[test]
fn opting_in_needs_resp3_and_the_switch() {
    let mut server = Server::new();
    let needs_resp3 = "-ERR CLIENT MAINT_NOTIFICATIONS needs RESP3: send HELLO 3 first";
    assert_eq!(server.line("CLIENT MAINT_NOTIFICATIONS ON"), needs_resp3);
    assert_eq!(server.line("CLIENT MAINT_NOTIFICATIONS OFF"), "+OK");
    assert_eq!(server.line("CONFIG GET maint-notifications"), "*2 $19 maint-notifications $3 yes");
    server.line("CONFIG SET maint-notifications no");
    for switch in ["ON", "OFF"] {
        assert!(
            server
                .line(&format!("CLIENT MAINT_NOTIFICATIONS {switch}"))
                .starts_with("-ERR notifications about")
        );
    }
    let config = Config { maint_notifications: false, workers: 1, ..Config::default() };
    let mut server = Server::with(config).resp3();
    assert!(server.line("CLIENT MAINT_NOTIFICATIONS ON").starts_with("-ERR notifications about"));
    assert!(server.line("INFO maintenance").contains("maint_notifications_enabled:0 "));
}

#[test]
fn what_is_open_comes_right_behind_the_reply() {
    let mut server = Server::new().resp3();
    let seq = announce(&server, "1");
    assert!(seq > START_MS);
    assert_eq!(server.line("CLIENT MAINT_NOTIFICATIONS ON"), format!("+OK {}", frame(seq, "1")));
    assert_eq!(server.line("CLIENT MAINT_NOTIFICATIONS ON"), "+OK");
    let seq = announce(&server, "2");
    assert_eq!((server.line("PING"), server.pushed()), ("+PONG".into(), frame(seq, "2")));
    let info = server.line("INFO maintenance");
    for field in
        ["maint_notifications_enabled:1", "maint_notifications_clients:1", "maint_notifications_sent:1"]
    {
        assert!(info.contains(field), "{info}");
    }
    assert!(
        info.contains("maint_notifications_replayed:1") && info.contains("maint_notices_open:2"),
        "{info}"
    );
}

#[test]
fn where_a_reply_has_no_room_the_replay_comes_behind_it() {
    let mut server = Server::new().resp3();
    let seq = announce(&server, "1");
    server.line("MULTI");
    server.line("CLIENT MAINT_NOTIFICATIONS ON");
    server.line("PING");
    assert_eq!((server.line("EXEC"), server.pushed()), ("*2 +OK +PONG".into(), frame(seq, "1")));
    server.line("CLIENT MAINT_NOTIFICATIONS OFF");
    let seq = announce(&server, "2");
    server.line("CLIENT REPLY OFF");
    assert_eq!(
        (server.line("CLIENT MAINT_NOTIFICATIONS ON"), server.pushed()),
        (String::new(), frame(seq, "2"))
    );
}

#[test]
fn hello_2_and_reset_end_it_and_nothing_pushed_comes_behind_their_reply() {
    for (line, reply) in [("HELLO 2", "*14 "), ("RESET", "+RESET")] {
        let mut server = Server::new().resp3();
        server.line("CLIENT MAINT_NOTIFICATIONS ON");
        let seq = announce(&server, "1");
        let answer = server.line(line);
        assert!(answer.starts_with(&format!("{} {reply}", frame(seq, "1"))), "{answer}");
        announce(&server, "2");
        assert_eq!(server.pushed(), "");
        assert!(server.line("INFO maintenance").contains("maint_notifications_clients:0 "));
    }
    let mut server = Server::new().resp3();
    server.line("CLIENT MAINT_NOTIFICATIONS ON");
    server.line("HELLO 3");
    let seq = announce(&server, "1");
    assert_eq!(server.pushed(), frame(seq, "1"));
}

#[test]
fn a_drain_is_begun_shown_and_cancelled() {
    let mut server = Server::new().resp3();
    let on = listen(&server, "127.0.0.1:0").to_string();
    server.line("CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type internal-ip");
    let seq =
        |reply: &str| reply.strip_prefix(':').and_then(|seq| seq.parse::<u64>().ok()).expect("a number");
    let first = seq(&server.line("TOWLINE DRAIN"));
    assert_eq!(server.pushed(), format!(">4 $6 MOVING :{first} :15 _"));
    let second = seq(&server.line("towline drain to 10.0.0.2:6379 window 0.5"));
    assert_eq!(server.pushed(), format!(">4 $6 MOVING :{second} :1 $13 10.0.0.2:6379"));
    let third = seq(&server.line(&format!("TOWLINE DRAIN ON {on} WINDOW 3600 TO db.test:1")));
    let shown = server.line("TOWLINE DRAIN STATUS");
    assert!(shown.starts_with(&format!(
        "*2 %10 $3 seq :{second} $5 scope $3 all $5 state $9 announced $6 window ,0.5 "
    )));
    for part in [
        "$9 successor $13 10.0.0.2:6379 $11 connections :1 $4 told :1 $4 left :0 $6 closed :0",
        &format!("%10 $3 seq :{third} $5 scope ${} {on} ", on.len()),
        "$9 successor $9 db.test:1 $11 connections :0 ",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
    assert_eq!(server.line("TOWLINE DRAIN CANCEL 1"), ":0");
    assert_eq!(server.line(&format!("TOWLINE DRAIN CANCEL {third}")), ":1");
    assert_eq!(server.line("TOWLINE DRAIN CANCEL"), ":1");
    assert!(server.line("TOWLINE DRAIN STATUS").contains("$9 cancelled"));
    assert!(server.line("INFO maintenance").contains("drains_active:0 "));
}

#[test]
fn a_drain_refuses_what_it_cannot_do() {
    let mut server = Server::new();
    for (line, error) in [
        ("TOWLINE DRAIN WINDOW", "syntax error"),
        ("TOWLINE DRAIN STATUS x", "syntax error"),
        ("TOWLINE DRAIN CANCEL 1 2", "syntax error"),
        ("TOWLINE DRAIN CANCEL x", "value is not an integer or out of range"),
        ("TOWLINE DRAIN AFTER 5", "syntax error"),
        ("TOWLINE DRAIN WINDOW 5 WINDOW 6", "syntax error"),
        ("TOWLINE DRAIN WINDOW 5 TO a:1 window 5", "syntax error"),
        ("TOWLINE DRAIN TO a:1 TO b:1", "syntax error"),
        ("TOWLINE DRAIN ON 127.0.0.1:1 ON 127.0.0.1:1", "syntax error"),
        ("TOWLINE DRAIN WINDOW x", "the window is not a number of seconds"),
        ("TOWLINE DRAIN WINDOW 0", "the window must be 0.1 to 3600 seconds"),
        ("TOWLINE DRAIN WINDOW 3601", "the window must be 0.1 to 3600 seconds"),
        ("TOWLINE DRAIN WINDOW 1e300", "the window must be 0.1 to 3600 seconds"),
        ("TOWLINE DRAIN WINDOW -5", "the window must be 0.1 to 3600 seconds"),
        ("TOWLINE DRAIN WINDOW nan", "the window is not a number of seconds"),
    ] {
        assert_eq!(server.line(line), format!("-ERR {error}"), "{line}");
    }
    for to in ["db", "db:", "db:0", "db:65536", ":1", "::1:6379", "[10.0.0.1]:1", "a/b:1", "[db]:1"] {
        assert!(
            server.line(&format!("TOWLINE DRAIN TO {to}")).starts_with("-ERR TO takes host:port"),
            "{to}"
        );
    }
    for on in ["6379", "localhost:6379", "127.0.0.1", "127.0.0.1:0"] {
        assert!(
            server.line(&format!("TOWLINE DRAIN ON {on}")).starts_with("-ERR ON takes a local IP"),
            "{on}"
        );
    }
    for port in 1..=64 {
        let scope = Scope::Local(SocketAddr::from(([127, 0, 0, 1], port)));
        let begun =
            maintenance::drain(&server.local.shared, scope, Duration::from_secs(5), None, Instant::now());
        assert!(begun.is_ok());
    }
    assert_eq!(server.line("TOWLINE DRAIN"), "-ERR 64 drains are running; wait for one to end, or cancel it");
    assert!(server.line("TOWLINE HELP").contains("DRAIN STATUS"));
}

#[test]
fn a_drain_where_nobody_can_be_is_refused() {
    let mut server = Server::new();
    let drain = |server: &mut Server, on: &str| server.line(&format!("TOWLINE DRAIN ON {on}"));
    assert_eq!(
        drain(&mut server, "127.0.0.1:9"),
        "-ERR nothing listens on 127.0.0.1:9, nor on another TCP address"
    );
    let one = listen(&server, "127.0.0.1:0");
    let tls = "10.0.0.1:6380".parse().expect("an address");
    server.local.shared.endpoints.set_tls(vec![tls]);
    let elsewhere = SocketAddr::from(([127, 0, 0, 2], one.port())).to_string();
    assert_eq!(
        drain(&mut server, &elsewhere),
        format!("-ERR nothing listens on {elsewhere}; listened on: {one}, {tls}")
    );
    assert!(drain(&mut server, &format!("[::]:{}", one.port())).starts_with("-ERR nothing"), "other family");
    for on in [one.to_string(), format!("0.0.0.0:{}", one.port()), tls.to_string()] {
        assert!(drain(&mut server, &on).starts_with(':'), "{on}");
    }
    // One that listens everywhere accepts on each address.
    let all = listen(&server, "0.0.0.0:0");
    for ip in ["0.0.0.0", "127.0.0.7"] {
        assert!(drain(&mut server, &format!("{ip}:{}", all.port())).starts_with(':'), "{ip}");
    }
    // Connections outlive the address that they were accepted on, and can be drained.
    server.local.shared.endpoints.remove(one);
    assert!(drain(&mut server, &one.to_string()).starts_with("-ERR nothing"));
    let addresses =
        Addresses { tcp: Some((elsewhere.parse().expect("an address"), one)), ..Addresses::default() };
    server.local.shared.clients.add(addresses, START_MS);
    assert!(drain(&mut server, &one.to_string()).starts_with(':'));
    for _ in 0..16 {
        listen(&server, "127.0.0.1:0");
    }
    assert!(drain(&mut server, "127.0.0.1:9").ends_with(" and 2 more"));
}

#[test]
fn drains_are_for_administrators() {
    let mut server = Server::new();
    let dangerous = server.line("ACL CAT dangerous");
    assert!(dangerous.contains("towline|drain") && !dangerous.contains("maint_notifications"));
    assert!(server.line("ACL CAT admin").contains("towline|drain"));
    assert!(server.line("ACL CAT connection").contains("client|maint_notifications"));
}

#[test]
fn who_waits_when_the_window_ends_gets_the_reply_of_a_timeout() {
    let mut server = Server::new();
    let waiters = ["BLPOP k 0", "BLMOVE k l LEFT LEFT 0", "BZPOPMIN z 0"].map(|line| server.wait(line));
    let later = server.wait("BLPOP k 0");
    let shared = &server.local.shared;
    let ids: Vec<u64> = (2..=4).collect();
    ids.iter().filter_map(|&id| shared.clients.get(id)).for_each(|client| client.end(Ending::Finishing));
    shared.blocked.release(&ids);
    for waiter in &waiters {
        assert_eq!(Server::served(waiter), "*-1");
    }
    assert_eq!(Server::served(&later), "");
    server.line("RPUSH k v");
    assert_eq!(Server::served(&later), "*2 $1 k $1 v");
}

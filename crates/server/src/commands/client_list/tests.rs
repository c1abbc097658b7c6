//! Tests of `CLIENT LIST`, `INFO`, `KILL`, and of `MONITOR`.

use crate::client::Addresses;
use crate::session::Session;
use crate::testing::{Server, pushed};

/// A client from an address of its own.
fn client(server: &Server, peer: &str) -> Session {
    let addresses =
        Addresses { peer: peer.into(), local: "127.0.0.1:6379".into(), fd: 9, ..Addresses::default() };
    Session::new(server.local.shared.clients.add(addresses, server.now_ms), true)
}

/// The ids of the lines.
fn ids(list: &str) -> Vec<u64> {
    list.split(['\n', ' ']).filter_map(|field| field.strip_prefix("id=")?.parse().ok()).collect()
}

#[test]
fn a_line_has_the_fields_of_redis() {
    let mut server = Server::new();
    let mut other = client(&server, "1.2.3.4:5");
    server.advance(2500);
    server.line_as(&mut other, "CLIENT SETNAME bob");
    server.line_as(&mut other, "SELECT 3");
    server.line_as(&mut other, "WATCH a b");
    server.line_as(&mut other, "MULTI");
    server.line_as(&mut other, "GET k");
    let line = server.line("CLIENT LIST ID 2");
    let (_, line) = line.split_once(' ').unwrap();
    let keys: Vec<&str> = line.split(' ').map(|field| field.split_once('=').unwrap().0).collect();
    assert_eq!(
        keys.join(" "),
        "id addr laddr fd name age idle flags db sub psub ssub multi watch qbuf qbuf-free argv-mem multi-mem rbs rbp obl \
         oll omem tot-mem events cmd user redir resp lib-name lib-ver tot-net-in tot-net-out"
    );
    assert!(line.starts_with("id=2 addr=1.2.3.4:5 laddr=127.0.0.1:6379 fd=9 name=bob age=2 idle="), "{line}");
    assert!(line.contains(" flags=x db=3 sub=0 psub=0 ssub=0 multi=1 watch=2 qbuf=0 "), "{line}");
    assert!(line.contains(" events=r cmd=multi user=default redir=-1 resp=2 "), "{line}");
    assert!(server.line("CLIENT INFO").contains(" cmd=client|info "));
    server.line("HELLO 3");
    assert!(server.line("CLIENT INFO").starts_with('='));
}

#[test]
fn filters_choose() {
    let mut server = Server::new();
    let mut sub = client(&server, "1.1.1.1:1");
    let _third = client(&server, "2.2.2.2:2");
    server.line_as(&mut sub, "SUBSCRIBE c");
    server.advance(5000);
    let _young = client(&server, "3.3.3.3:3");
    for (line, expected) in [
        ("CLIENT LIST", vec![1, 2, 3, 4]),
        ("CLIENT LIST ID 3 1 99", vec![1, 3]),
        ("CLIENT LIST TYPE pubsub", vec![2]),
        ("CLIENT LIST TYPE normal", vec![1, 3, 4]),
        ("CLIENT LIST TYPE replica", vec![]),
        ("CLIENT LIST TYPE master", vec![]),
        ("CLIENT LIST ADDR 2.2.2.2:2", vec![3]),
        ("CLIENT LIST LADDR 127.0.0.1:6379 USER default", vec![2, 3, 4]),
        ("CLIENT LIST MAXAGE 5", vec![1, 2, 3]),
        ("CLIENT LIST ID 1 2 SKIPME yes", vec![2]),
    ] {
        assert_eq!(ids(&server.line(line)), expected, "{line}");
    }
    assert_eq!(server.line("CLIENT LIST ID 999"), "$0");
    for (line, error) in [
        ("CLIENT LIST TYPE foo", "-ERR Unknown client type 'foo'"),
        ("CLIENT LIST TYPE", "-ERR syntax error"),
        ("CLIENT LIST foo", "-ERR syntax error"),
        ("CLIENT LIST ID", "-ERR syntax error"),
        ("CLIENT LIST ID x", "-ERR Invalid client ID"),
        ("CLIENT KILL", "-ERR wrong number of arguments for 'client|kill' command"),
        ("CLIENT KILL 9.9.9.9:9", "-ERR No such client"),
        ("CLIENT KILL ID 0", "-ERR client-id should be greater than 0"),
        ("CLIENT KILL ID x", "-ERR client-id should be greater than 0"),
        ("CLIENT KILL TYPE foo", "-ERR Unknown client type 'foo'"),
        ("CLIENT KILL USER foo", "-ERR No such user 'foo'"),
        ("CLIENT KILL SKIPME foo", "-ERR syntax error"),
        ("CLIENT KILL foo bar", "-ERR syntax error"),
        ("CLIENT KILL ID 1 ADDR", "-ERR syntax error"),
        ("CLIENT KILL MAXAGE x", "-ERR maxage is not an integer or out of range"),
        ("CLIENT KILL MAXAGE 0", "-ERR maxage should be greater than 0"),
    ] {
        assert_eq!(server.line(line), error, "{line}");
    }
}

#[test]
fn clients_are_killed() {
    let mut server = Server::new();
    let (a, b, c) =
        (client(&server, "1.1.1.1:1"), client(&server, "2.2.2.2:2"), client(&server, "3.3.3.3:3"));
    assert_eq!(server.line("CLIENT KILL 1.1.1.1:1"), "+OK");
    assert!(a.client.is_killed());
    assert_eq!(server.line("CLIENT KILL ID 3"), ":1");
    assert!(b.client.is_killed() && !c.client.is_killed());
    assert_eq!(server.line("CLIENT KILL ID 999"), ":0");
    assert_eq!(server.line("CLIENT KILL TYPE normal ID 4 1"), ":1");
    assert!(c.client.is_killed() && !server.session.is_closing);
    // Killing itself, a client gets its reply first.
    assert_eq!(server.line("CLIENT KILL ID 1 SKIPME no"), ":1");
    assert!(server.session.is_closing && !server.session.client.is_killed());
}

#[test]
fn monitors_see_commands_but_no_secrets() {
    let mut server = Server::new();
    let mut other = client(&server, "1.2.3.4:5");
    assert_eq!(server.line("MONITOR"), "+OK");
    assert_eq!(server.line("MONITOR"), "+OK");
    let mut seen = |line: &str| {
        server.line_as(&mut other, line);
        let pushed = server.pushed();
        let shown = pushed.split_once(' ').map_or("", |(time, shown)| {
            let (seconds, micros) = time.strip_prefix('+').unwrap().split_once('.').unwrap();
            assert!(seconds.parse::<u64>().is_ok() && micros.len() == 6, "{time}");
            shown
        });
        shown.to_owned()
    };
    assert_eq!(seen("set k \"x\""), r#"[0 1.2.3.4:5] "set" "k" "\"x\"""#);
    assert_eq!(seen("AUTH p"), r#"[0 1.2.3.4:5] "AUTH" "(redacted)""#);
    assert_eq!(seen("auth u p"), r#"[0 1.2.3.4:5] "auth" "(redacted)" "(redacted)""#);
    assert_eq!(
        seen("hello 2 setname x auth default p"),
        r#"[0 1.2.3.4:5] "hello" "2" "setname" "x" "auth" "(redacted)" "(redacted)""#
    );
    assert_eq!(seen("client list"), "");
    assert_eq!(seen("nosuch"), "");
    assert_eq!(seen("select 3"), r#"[3 1.2.3.4:5] "select" "3""#);
    assert_eq!(seen("multi"), r#"[3 1.2.3.4:5] "multi""#);
    assert_eq!(seen("get k"), "");
    let exec = seen("exec");
    let order = ["\"get\" \"k\"", "\"exec\""].map(|part| exec.find(part).expect("it is shown"));
    assert!(order[0] < order[1], "{exec}");
    assert_eq!(server.line("GET k"), "-ERR Replica can't interact with the keyspace");
    assert_eq!(server.line("PING"), "+PONG");
    assert!(server.pushed().ends_with("\"PING\""));
    server.line("RESET");
    server.line_as(&mut other, "PING");
    assert_eq!(pushed(&server.session), "");
    assert!(!server.local.shared.monitors.any());
}

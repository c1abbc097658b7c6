//! Tests of `CLIENT`: names, replies, pausing, unblocking.

use crate::testing::Server;

#[test]
fn names_are_kept_and_checked() {
    let mut server = Server::new();
    assert_eq!(server.line("CLIENT ID"), ":1");
    assert_eq!(server.line("CLIENT GETNAME"), "$-1");
    assert_eq!(server.line("CLIENT SETNAME bob"), "+OK");
    assert_eq!(server.line("CLIENT GETNAME"), "$3 bob");
    let bad = "cannot contain spaces, newlines or special characters.";
    assert_eq!(server.run(&["CLIENT", "SETNAME", "a b"]), format!("-ERR Client names {bad}"));
    assert_eq!(server.run(&["CLIENT", "SETNAME", "a\n"]), format!("-ERR Client names {bad}"));
    assert_eq!(server.run(&["CLIENT", "SETNAME", ""]), "+OK");
    assert_eq!(server.line("CLIENT GETNAME"), "$-1");
    assert_eq!(server.line("CLIENT SETINFO lib-name x"), "+OK");
    assert_eq!(server.line("CLIENT SETINFO LIB-VER 1.2"), "+OK");
    assert_eq!(server.run(&["CLIENT", "SETINFO", "LIB-NAME", "a b"]), format!("-ERR LIB-NAME {bad}"));
    assert_eq!(server.line("CLIENT SETINFO foo x"), "-ERR Unrecognized option 'foo'");
    assert!(server.line("CLIENT INFO").contains(" lib-name=x lib-ver=1.2"));
}

#[test]
fn replies_can_be_left_out() {
    let mut server = Server::new();
    let mut run = |lines: &[&str]| -> Vec<String> { lines.iter().map(|line| server.line(line)).collect() };
    assert_eq!(run(&["CLIENT REPLY SKIP", "PING", "PING"]), ["", "", "+PONG"]);
    assert_eq!(run(&["CLIENT REPLY SKIP", "CLIENT REPLY SKIP", "PING", "PING"]), ["", "", "", "+PONG"]);
    assert_eq!(run(&["CLIENT REPLY OFF", "PING", "nosuch", "CLIENT REPLY SKIP", "PING"]), [""; 5]);
    assert_eq!(run(&["CLIENT REPLY ON", "PING"]), ["+OK", "+PONG"]);
    assert_eq!(
        run(&["CLIENT REPLY SKIP", "CLIENT REPLY OFF", "PING", "CLIENT REPLY ON"]),
        ["", "", "", "+OK"]
    );
    assert_eq!(run(&["CLIENT REPLY SKIP", "nosuch", "PING"]), ["", "", "+PONG"]);
    assert_eq!(run(&["CLIENT REPLY x"]), ["-ERR syntax error"]);
}

#[test]
fn a_pause_holds_back_and_ends() {
    let mut server = Server::new();
    for (line, error) in [
        ("CLIENT PAUSE x", "-ERR timeout is not an integer or out of range"),
        ("CLIENT PAUSE -1", "-ERR timeout is negative"),
        ("CLIENT PAUSE 1 foo", "-ERR CLIENT PAUSE mode must be WRITE or ALL"),
        ("CLIENT PAUSE 9223372036854775807", "-ERR timeout is out of range"),
        ("CLIENT PAUSE 1 ALL x", "-ERR syntax error"),
    ] {
        assert_eq!(server.line(line), error, "{line}");
    }
    assert_eq!(server.line("CLIENT PAUSE 100 WRITE"), "+OK");
    assert_eq!(server.line("SET k 1"), "(paused)");
    assert_eq!(server.line("GET k"), "$-1");
    assert_eq!(server.line("CLIENT PAUSE 100"), "+OK");
    assert_eq!(server.line("GET k"), "(paused)");
    assert_eq!(server.line("CLIENT UNPAUSE"), "+OK");
    assert_eq!(server.line("SET k 1"), "+OK");
    server.line("CLIENT PAUSE 100 ALL");
    server.advance(100);
    assert_eq!(server.line("GET k"), "$1 1");
}

#[test]
fn waiting_clients_are_unblocked() {
    let mut server = Server::new();
    assert_eq!(server.line("CLIENT UNBLOCK x"), "-ERR value is not an integer or out of range");
    assert_eq!(server.line("CLIENT UNBLOCK 1 x"), "-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
    assert_eq!(server.line("CLIENT UNBLOCK 99"), ":0");
    assert_eq!(server.line("CLIENT UNBLOCK -1 TIMEOUT"), ":0");
    let waiter = server.wait("BLPOP q 0");
    assert!(server.line("CLIENT LIST ID 2").contains(" flags=b "));
    assert_eq!(server.line("CLIENT UNBLOCK 2"), ":1");
    assert_eq!(Server::served(&waiter), "*-1");
    assert_eq!(server.line("CLIENT UNBLOCK 2"), ":0");
    crate::blocking::forget(&mut server.local, &waiter, server.now_ms);
    let waiter = server.wait("BLPOP q 0");
    assert_eq!(server.line("CLIENT UNBLOCK 3 ERROR"), ":1");
    assert_eq!(Server::served(&waiter), "-UNBLOCKED client unblocked via CLIENT UNBLOCK");
    crate::blocking::forget(&mut server.local, &waiter, server.now_ms);
    server.line("RPUSH q a");
    assert_eq!(server.line("LLEN q"), ":1");
}

#[test]
fn switches_are_on_or_off() {
    let mut server = Server::new();
    for name in ["NO-EVICT", "NO-TOUCH"] {
        assert_eq!(server.line(&format!("CLIENT {name} x")), "-ERR syntax error");
        assert_eq!(server.line(&format!("CLIENT {name} on")), "+OK");
    }
    assert!(server.line("CLIENT INFO").contains(" flags=eT "));
    server.line("CLIENT NO-EVICT OFF");
    server.line("CLIENT NO-TOUCH OFF");
    assert!(server.line("CLIENT INFO").contains(" flags=N "));
    assert!(server.line("CLIENT HELP").contains("+CLIENT <subcommand>"));
}

//! Tests of commands about the connection itself.

use crate::Config;
use crate::testing::{Server, pushed};

const HELLO_2: &str = "*14 $6 server $5 redis $7 version $5 7.2.4 $5 proto :2 $2 id :1 $4 mode $10 standalone $4 role \
                       $6 master $7 modules *0";

fn locked() -> Server {
    let mut server = Server::with(Config { workers: 1, requirepass: b"pw".to_vec(), ..Config::default() });
    server.session.is_authenticated = false;
    server
}

#[test]
fn ping_and_echo() {
    let mut server = Server::new();
    assert_eq!(server.line("PING"), "+PONG");
    assert_eq!(server.line("ping hello"), "$5 hello");
    assert_eq!(server.line("ping a b"), "-ERR wrong number of arguments for 'ping' command");
    assert_eq!(server.line("ECHO hi"), "$2 hi");
}

#[test]
fn hello_changes_the_protocol_at_once() {
    let mut server = Server::new();
    assert_eq!(server.line("HELLO"), HELLO_2);
    let hello_3 = HELLO_2.replace("*14", "%7").replace("proto :2", "proto :3");
    assert_eq!(server.line("HELLO 3"), hello_3);
    assert_eq!(server.line("HGETALL h"), "%0");
    assert_eq!(server.line("HELLO"), hello_3);
    assert_eq!(server.line("HELLO 2 AUTH default x SETNAME bob"), HELLO_2);
    assert_eq!(server.line("CLIENT GETNAME"), "$3 bob");
}

#[test]
fn hello_refuses_what_it_does_not_know() {
    let mut server = Server::new();
    for (line, error) in [
        ("HELLO x", "-ERR Protocol version is not an integer or out of range"),
        ("HELLO 4", "-NOPROTO unsupported protocol version"),
        ("HELLO 3 foo", "-ERR Syntax error in HELLO option 'foo'"),
        ("HELLO 3 auth x", "-ERR Syntax error in HELLO option 'auth'"),
        ("HELLO 3 setname", "-ERR Syntax error in HELLO option 'setname'"),
        ("HELLO 3 auth x y", "-WRONGPASS invalid username-password pair or user is disabled."),
    ] {
        assert_eq!(server.line(line), error, "{line}");
    }
    assert_eq!(
        server.run(&["HELLO", "3", "SETNAME", "a b"]),
        "-ERR Client names cannot contain spaces, newlines or special characters."
    );
    assert_eq!(server.line("HELLO"), HELLO_2);
}

#[test]
fn a_password_is_asked_for() {
    let mut server = locked();
    assert_eq!(server.line("GET k"), "-NOAUTH Authentication required.");
    assert!(
        server
            .line("HELLO 3")
            .starts_with("-NOAUTH HELLO must be called with the client already authenticated")
    );
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.";
    for line in ["AUTH p", "AUTH pwpw", "AUTH pww", "AUTH default x", "AUTH bob pw", "HELLO 3 AUTH default x"]
    {
        assert_eq!(server.line(line), wrong, "{line}");
    }
    assert_eq!(server.run(&["AUTH", ""]), wrong);
    assert_eq!(server.line("AUTH a b c"), "-ERR syntax error");
    assert_eq!(server.line("AUTH pw"), "+OK");
    assert_eq!(server.line("GET k"), "$-1");
    assert_eq!(server.line("RESET"), "+RESET");
    assert_eq!(server.line("GET k"), "-NOAUTH Authentication required.");
    assert_eq!(server.line("HELLO 2 AUTH default pw"), HELLO_2);
    assert_eq!(server.line("GET k"), "$-1");
}

#[test]
fn without_a_password_any_fits_the_default_user() {
    let mut server = Server::new();
    assert!(server.line("AUTH x").starts_with("-ERR AUTH <password> called without any password configured"));
    assert_eq!(server.line("AUTH default x"), "+OK");
    assert_eq!(server.line("AUTH bob x"), "-WRONGPASS invalid username-password pair or user is disabled.");
}

#[test]
fn select_changes_the_database() {
    let mut server = Server::new();
    server.line("SET k 0");
    assert_eq!(server.line("SELECT 15"), "+OK");
    assert_eq!(server.line("GET k"), "$-1");
    assert_eq!(server.line("SELECT 0"), "+OK");
    assert_eq!(server.line("GET k"), "$1 0");
    assert_eq!(server.line("SELECT x"), "-ERR value is not an integer or out of range");
    assert_eq!(server.line("SELECT 16"), "-ERR DB index is out of range");
    assert_eq!(server.line("SELECT -1"), "-ERR DB index is out of range");
    assert!(server.line("SELECT 99999999999").starts_with("-ERR value is out of range, value must between"));
}

#[test]
fn quit_answers_and_closes() {
    let mut server = Server::new();
    assert_eq!(server.line("QUIT"), "+OK");
    assert!(server.session.is_closing);
}

#[test]
fn reset_makes_the_connection_new() {
    let mut server = Server::new();
    let mut other = server.second();
    server.line("HELLO 3 SETNAME bob");
    server.line("SELECT 2");
    server.line("CLIENT NO-TOUCH ON");
    server.line("CLIENT TRACKING ON BCAST PREFIX a");
    server.line("SUBSCRIBE c");
    server.line("MONITOR");
    server.line("RESET");
    server.line("WATCH k");
    server.line("MULTI");
    assert_eq!(server.line("RESET"), "+RESET");
    assert!(server.session.is_plain());
    assert!(server.session.watch.is_none());
    assert_eq!((server.session.db, server.session.is_no_touch), (0, false));
    assert_eq!(server.line("CLIENT GETNAME"), "$-1");
    assert_eq!(server.line("EXEC"), "-ERR EXEC without MULTI");
    assert_eq!(server.line_as(&mut other, "PUBLISH c m"), ":0");
    assert!(server.line("CLIENT INFO").contains(" flags=N db=0 sub=0 psub=0 ssub=0 multi=-1 watch=0 "));
    server.line_as(&mut other, "SET a 1");
    assert_eq!(server.pushed(), "");
    assert_eq!(pushed(&other), "");
}

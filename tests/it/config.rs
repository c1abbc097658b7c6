//! Configuration: flags, the file, what is refused and how, and a graceful end.

use e2e::conn::Conn;
use e2e::process::{Server, ServerKind, free_port};
use e2e::value::Value;
use e2e::wait;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::Path;

fn ok() -> Value {
    Value::Simple(b"OK".to_vec())
}

fn bulk(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

/// Starts the server under test with exactly these arguments; it has to end by itself. Its exit code and its output.
fn refused(arguments: &[&str]) -> (i32, String) {
    let mut command = ServerKind::under_test().unwrap().command().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let output = command.args(arguments).current_dir(directory.path()).output().unwrap();
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.code().unwrap_or(-1), text)
}

#[test]
fn bad_flags_end_the_server_with_a_line_that_names_them() {
    for (arguments, named) in [
        (&["--nosuchflag", "1"][..], "nosuchflag"),
        (&["--port", "abc"], "port"),
        (&["--port", "70000"], "port"),
        (&["--maxmemory", "lots"], "maxmemory"),
        (&["--maxmemory-policy", "nosuch"], "maxmemory-policy"),
        (&["--appendonly", "maybe"], "appendonly"),
        (&["nosuch.conf"], "nosuch.conf"),
        (
            &[
                "--tls-port",
                "1",
                "--port",
                "0",
                "--tls-cert-file",
                "nosuch.pem",
                "--tls-key-file",
                "nosuch.key",
                "--tls-auth-clients",
                "no",
            ],
            "nosuch.pem",
        ),
    ] {
        let (code, text) = refused(arguments);
        assert!(code > 0, "{arguments:?} ended with {code}:\n{text}");
        assert!(text.contains(named), "{arguments:?} said nothing about {named}:\n{text}");
        assert!(!text.contains("panicked"), "{text}");
    }
}

#[test]
fn a_taken_port_ends_the_server_with_a_line_that_names_it() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let (code, text) = refused(&["--bind", "127.0.0.1", "--port", &port]);
    assert!(code > 0, "{text}");
    assert!(text.contains(&port), "{text}");
    assert!(text.to_lowercase().contains("in use"), "{text}");
}

#[test]
fn a_bad_line_in_the_file_is_named_with_its_number() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bad.conf");
    std::fs::write(&path, "# comment\nport 0\n\nnosuch-directive yes\n").unwrap();
    let (code, text) = refused(&[path.to_str().unwrap()]);
    assert!(code > 0, "{text}");
    assert!(text.contains("nosuch-directive"), "{text}");
    assert!(text.contains('4'), "the line's number is missing:\n{text}");
}

#[test]
fn the_file_and_the_flags_after_it_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("good.conf");
    let port = free_port().unwrap();
    let text = format!(
        "port 1\nbind 127.0.0.1\nsave \"\"\nrequirepass \"se cret\"\nmaxmemory 100mb\ntimeout 77\ndir {}\n",
        directory.path().display()
    );
    std::fs::write(&path, text).unwrap();
    let mut command = ServerKind::under_test().unwrap().command().unwrap();
    command.arg(&path).args(["--port", &port.to_string(), "--timeout", "88"]);
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    let address = (std::net::Ipv4Addr::LOCALHOST, port).into();
    let conn = wait::until_some(wait::PATIENCE, || Conn::open(address).ok());
    let check = std::panic::catch_unwind(|| {
        let mut conn = conn.expect("the server did not listen");
        assert_eq!(conn.words("PING").unwrap().error().unwrap(), "NOAUTH Authentication required.");
        assert_eq!(conn.call(&["AUTH", "se cret"]).unwrap(), ok());
        for (name, value) in [("timeout", "88"), ("maxmemory", "104857600"), ("requirepass", "se cret")] {
            let reply = conn.words(&format!("CONFIG GET {name}")).unwrap();
            assert_eq!(reply, Value::Array(vec![bulk(name), bulk(value)]));
        }
    });
    child.kill().unwrap();
    child.wait().unwrap();
    check.unwrap();
}

#[test]
fn config_rewrite_keeps_comments_and_what_was_set() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("server.conf");
    std::fs::write(&path, "# kept comment\ntimeout 5\n").unwrap();
    // The flags that Server adds come after a file, as on a command line.
    let kind = ServerKind::under_test().unwrap();
    let port = free_port().unwrap();
    let mut command = kind.command().unwrap();
    command.arg(&path).args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--dir"]);
    command.arg(directory.path()).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    let address = (std::net::Ipv4Addr::LOCALHOST, port).into();
    let conn = wait::until_some(wait::PATIENCE, || Conn::open(address).ok());
    let check = std::panic::catch_unwind(|| {
        let mut conn = conn.expect("the server did not listen");
        assert_eq!(conn.words("CONFIG SET timeout 99 maxmemory 50mb").unwrap(), ok());
        assert_eq!(conn.words("CONFIG REWRITE").unwrap(), ok());
    });
    child.kill().unwrap();
    child.wait().unwrap();
    check.unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("# kept comment"), "{text}");
    assert!(text.lines().any(|line| line == "timeout 99"), "{text}");
    assert!(text.contains("maxmemory 5"), "{text}");
}

#[test]
fn config_set_is_all_or_nothing() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    let reply = conn.words("CONFIG SET timeout 55 maxmemory-policy nosuch").unwrap();
    let error = reply.error().unwrap();
    assert!(
        error.starts_with("ERR CONFIG SET failed (possibly related to argument 'maxmemory-policy')"),
        "{error}"
    );
    assert_eq!(conn.words("CONFIG GET timeout").unwrap(), Value::Array(vec![bulk("timeout"), bulk("0")]));
    let unknown = conn.words("CONFIG SET nosuch 1").unwrap();
    assert_eq!(
        unknown.error().unwrap(),
        "ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'"
    );
    let fixed = conn.words("CONFIG SET databases 4").unwrap();
    assert!(fixed.error().unwrap().contains("can't set immutable config"), "{fixed}");
}

#[test]
fn passwords_are_asked_for_and_checked() {
    let server = Server::under_test(&["--requirepass", "secret"]).unwrap();
    let mut conn = server.connect().unwrap();
    assert_eq!(conn.words("GET k").unwrap().error().unwrap(), "NOAUTH Authentication required.");
    let wrong = "WRONGPASS invalid username-password pair or user is disabled.";
    assert_eq!(conn.words("AUTH wrong").unwrap().error().unwrap(), wrong);
    assert_eq!(conn.words("AUTH default wrong").unwrap().error().unwrap(), wrong);
    assert_eq!(conn.words("HELLO 3 AUTH default wrong").unwrap().error().unwrap(), wrong);
    let hello = conn.words("HELLO 3").unwrap().error().unwrap();
    assert!(
        hello.starts_with("NOAUTH HELLO must be called with the client already authenticated"),
        "{hello}"
    );
    assert_eq!(conn.words("AUTH default secret").unwrap(), ok());
    assert_eq!(conn.words("GET k").unwrap(), Value::NullBulk);
    let mut conn = server.connect().unwrap();
    assert!(matches!(conn.words("HELLO 3 AUTH default secret").unwrap(), Value::Map(_)));
    assert_eq!(conn.words("RESET").unwrap(), Value::Simple(b"RESET".to_vec()));
    assert!(
        conn.words("GET k").unwrap().error().unwrap().starts_with("NOAUTH"),
        "RESET forgets the password"
    );
}

#[test]
fn maxclients_refuses_one_too_many_and_takes_effect_at_once() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    // Whoever looked whether the server is up may not have been taken off its list yet.
    let is_alone = |info: Value| {
        info.bytes().is_some_and(|text| String::from_utf8_lossy(text).contains("connected_clients:1\r\n"))
    };
    assert!(wait::until(|| is_alone(conn.words("INFO clients").unwrap())));
    assert_eq!(conn.words("CONFIG SET maxclients 3").unwrap(), ok());
    let mut others = Vec::new();
    for _ in 0..2 {
        let mut other = server.connect().unwrap();
        assert_eq!(other.words("PING").unwrap(), Value::Simple(b"PONG".to_vec()));
        others.push(other);
    }
    let mut refused = server.connect().unwrap();
    assert_eq!(refused.read_to_close().unwrap(), b"-ERR max number of clients reached\r\n");
    others.pop();
    let is_accepted = wait::until(|| {
        server.connect().and_then(|mut conn| conn.words("PING")).is_ok_and(|reply| reply.error().is_none())
    });
    assert!(is_accepted, "a free place is not given to anybody");
}

#[test]
fn a_unix_socket_serves_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let mut server =
        Server::under_test(&["--unixsocket", path.to_str().unwrap(), "--unixsocketperm", "700"]).unwrap();
    assert_eq!(ping(&path), "+PONG\r\n");
    server.signal(rustix::process::Signal::TERM).unwrap();
    server.wait_for_exit().unwrap();
    assert!(!path.exists(), "the socket's file stays behind");
}

fn ping(path: &Path) -> String {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.write_all(b"PING\r\n").unwrap();
    let mut reply = [0; 7];
    stream.read_exact(&mut reply).unwrap();
    String::from_utf8_lossy(&reply).into_owned()
}

#[test]
fn sigterm_and_sigint_end_the_server_in_good_order() {
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        let mut server = Server::under_test(&[]).unwrap();
        let mut idle = server.connect().unwrap();
        idle.words("SET k v").unwrap();
        let mut blocked = server.connect().unwrap();
        blocked.send(&["BLPOP", "l", "0"]).unwrap();
        server.signal(signal).unwrap();
        let status = server.wait_for_exit().unwrap();
        assert!(status.success(), "{signal:?}: {status}\n{}", server.log());
        assert!(idle.read_to_close().is_ok());
    }
}

#[test]
fn shutdown_nosave_ends_the_server_and_bad_options_do_not() {
    let mut server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    assert_eq!(conn.words("SHUTDOWN NOSUCH").unwrap().error().unwrap(), "ERR syntax error");
    assert_eq!(conn.words("SHUTDOWN SAVE NOSAVE").unwrap().error().unwrap(), "ERR syntax error");
    assert_eq!(conn.words("SHUTDOWN ABORT").unwrap().error().unwrap(), "ERR No shutdown in progress.");
    conn.send(&["SHUTDOWN", "NOSAVE"]).unwrap();
    assert!(server.wait_for_exit().unwrap().success(), "{}", server.log());
}

#[test]
fn idle_clients_are_closed_after_the_timeout() {
    let server = Server::under_test(&["--timeout", "1"]).unwrap();
    let mut idle = server.connect().unwrap();
    let mut subscriber = server.connect().unwrap();
    subscriber.words("SUBSCRIBE c").unwrap();
    idle.words("PING").unwrap();
    assert!(idle.read_to_close().unwrap().is_empty());
    assert_eq!(
        subscriber.words("PING").unwrap(),
        Value::Array(vec![bulk("pong"), bulk("")]),
        "subscribers are exempt"
    );
}

//! The admin port as a scraper meets it.

use crate::running::Running;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

/// A server with a Unix socket and an admin port.
fn start() -> (Running, u16, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("socket");
    let flags = ["--port", "0", "--unixsocket", socket.to_str().unwrap(), "--admin-port", "{port}"];
    let (running, port) = Running::start(&flags);
    (running, port, dir)
}

/// Status line, head and body of the answer.
fn get(port: u16, path: &str) -> (String, String, String) {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let (status, head) = head.split_once("\r\n").unwrap();
    (status.to_owned(), head.to_ascii_lowercase(), body.to_owned())
}

#[test]
fn health_and_metrics_are_served_and_nothing_else() {
    let (_running, port, dir) = start();
    let (status, _, body) = get(port, "/health");
    assert_eq!((status.as_str(), body.as_str()), ("HTTP/1.1 200 OK", "ok\n"));

    let mut client = std::os::unix::net::UnixStream::connect(dir.path().join("socket")).unwrap();
    client.write_all(b"SET key value\r\nGET key\r\nLPUSH key x\r\n").unwrap();
    let mut replies = BufReader::new(client.try_clone().unwrap()).lines();
    assert!((0..4).all(|_| replies.next().unwrap().is_ok()));
    let (status, head, body) = get(port, "/metrics");
    assert_eq!(status, "HTTP/1.1 200 OK");
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    for line in [
        "towline_connected_clients 1",
        "towline_commands_total{command=\"get\"} 1",
        "towline_commands_failed_total{command=\"lpush\"} 1",
        "towline_db_keys{db=\"0\"} 1",
    ] {
        assert!(body.lines().any(|found| found == line), "{line} is not in\n{body}");
    }

    let (status, ..) = get(port, "/");
    assert_eq!(status, "HTTP/1.1 404 Not Found");
}

#[test]
fn silent_connections_are_bounded_and_do_not_outlive_the_server() {
    let (running, port, _dir) = start();
    let silent: Vec<_> = (0..31).map(|_| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap()).collect();
    assert_eq!(get(port, "/health").2, "ok\n");
    drop(running);
    for mut stream in silent {
        assert!(matches!(stream.read(&mut [0; 1]), Ok(0) | Err(_)));
    }
}

#[test]
fn a_taken_admin_port_is_said_with_its_flag() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let admin_port = taken.local_addr().unwrap().port();
    let flags = ["--port", "0", "--unixsocket", "/nonexistent/socket", "--admin-port", "{port}"];
    let error = towline_server::Server::start(crate::running::config(&flags[..], admin_port)).unwrap_err();
    assert!(error.to_string().contains("/nonexistent/socket"), "{error}");
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("socket");
    let flags = ["--port", "0", "--unixsocket", socket.to_str().unwrap(), "--admin-port", "{port}"];
    let error = towline_server::Server::start(crate::running::config(&flags, admin_port)).unwrap_err();
    assert!(error.to_string().contains("--admin-port"), "{error}");
}

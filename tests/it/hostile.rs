//! Hostile input: every malformed, oversized or truncated request gets Redis's error text or a closed connection, and
//! harms no other client.

use e2e::process::Server;
use e2e::value::Value;
use std::time::Duration;

/// What a request gets.
enum Outcome {
    /// This text, and the connection goes on.
    Answers(&'static str),
    /// This text, then the end of the connection.
    Closes(&'static str),
    /// Whatever text, then the end of the connection.
    Ends,
}
use Outcome::{Answers, Closes, Ends};

struct Case {
    name: &'static str,
    request: Vec<u8>,
    outcome: Outcome,
}

fn case(name: &'static str, request: impl Into<Vec<u8>>, outcome: Outcome) -> Case {
    Case { name, request: request.into(), outcome }
}

/// Above the 64 KiB that a line may have.
const LONG: usize = 70_000;

const BAD_BULK: &str = "-ERR Protocol error: invalid bulk length\r\n";
const BAD_MULTIBULK: &str = "-ERR Protocol error: invalid multibulk length\r\n";

fn lengths() -> Vec<Case> {
    vec![
        case("a bulk length that is no number", "*1\r\n$abc\r\n", Closes(BAD_BULK)),
        case("a negative bulk length", "*1\r\n$-5\r\n", Closes(BAD_BULK)),
        case("a null bulk as an argument", "*1\r\n$-1\r\n", Closes(BAD_BULK)),
        case("a bulk above proto-max-bulk-len", "*1\r\n$536870913\r\n", Closes(BAD_BULK)),
        case("a bulk length above 64 bits", "*1\r\n$99999999999999999999\r\n", Closes(BAD_BULK)),
        case("an empty bulk length", "*1\r\n$\r\n", Closes(BAD_BULK)),
        case("an argument count that is no number", "*abc\r\n", Closes(BAD_MULTIBULK)),
        case("an argument count above 31 bits", "*2147483648\r\n", Closes(BAD_MULTIBULK)),
        case("an argument count with a leading zero", "*01\r\n$4\r\nPING\r\n", Closes(BAD_MULTIBULK)),
        case("an argument count with a plus", "*+1\r\n$4\r\nPING\r\n", Closes(BAD_MULTIBULK)),
        case("a negative argument count is no command", "*-10\r\n", Answers("")),
        case("no arguments are no command", "*0\r\n*0\r\n", Answers("")),
        case(
            "an argument count of 70000 digits",
            format!("*{}", "1".repeat(LONG)),
            Closes("-ERR Protocol error: too big mbulk count string\r\n"),
        ),
        case(
            "a bulk length of 70000 digits",
            format!("*1\r\n${}", "1".repeat(LONG)),
            Closes("-ERR Protocol error: too big bulk count string\r\n"),
        ),
    ]
}

fn types() -> Vec<Case> {
    vec![
        case(
            "an argument that is no bulk",
            "*1\r\nxPING\r\n",
            Closes("-ERR Protocol error: expected '$', got 'x'\r\n"),
        ),
        case(
            "nested arrays",
            "*1\r\n*1\r\n*1\r\n*1\r\n",
            Closes("-ERR Protocol error: expected '$', got '*'\r\n"),
        ),
        case(
            "an integer as an argument",
            "*2\r\n$3\r\nGET\r\n:1\r\n",
            Closes("-ERR Protocol error: expected '$', got ':'\r\n"),
        ),
        case(
            "an empty command name",
            "*1\r\n$0\r\n\r\n",
            Answers("-ERR unknown command '', with args beginning with: \r\n"),
        ),
        case(
            "line ends in a command name do not reach the error line",
            "*1\r\n$5\r\nab\r\nc\r\n",
            Answers("-ERR unknown command 'ab  c', with args beginning with: \r\n"),
        ),
        case(
            "line ends in an argument do not reach the error line",
            "*2\r\n$3\r\nfoo\r\n$4\r\n\r\n+x\r\n",
            Answers("-ERR unknown command 'foo', with args beginning with: '  +x' \r\n"),
        ),
        case(
            "a push frame as a request",
            ">1\r\n",
            Answers("-ERR unknown command '>1', with args beginning with: \r\n"),
        ),
    ]
}

fn inline() -> Vec<Case> {
    vec![
        case("empty lines", "\r\n\r\n\n", Answers("")),
        case("a line of blanks", "   \t \r\n", Answers("")),
        case("a bare line feed ends a line", "ECHO hi\n", Answers("$2\r\nhi\r\n")),
        case("escapes inside quotes", "ECHO \"\\x41\\n\\\"\"\r\n", Answers("$3\r\nA\n\"\r\n")),
        case(
            "a quote that does not end",
            "SET a \"b\r\n",
            Closes("-ERR Protocol error: unbalanced quotes in request\r\n"),
        ),
        case(
            "text after a closing quote",
            "SET a \"b\"c\r\n",
            Closes("-ERR Protocol error: unbalanced quotes in request\r\n"),
        ),
        case(
            "a line of 70000 bytes",
            "a".repeat(LONG),
            Closes("-ERR Protocol error: too big inline request\r\n"),
        ),
        case("an HTTP POST", "POST / HTTP/1.1\r\nHost: a\r\n\r\n", Closes("")),
        case("an HTTP GET", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", Ends),
    ]
}

/// Sends one case on a connection of its own; what is wrong with the outcome.
fn problem(server: &Server, case: &Case) -> Option<String> {
    let mut conn = server.connect().unwrap();
    let got = match case.outcome {
        Answers(_) => {
            conn.write(&case.request).unwrap();
            conn.write(b"QUIT\r\n").unwrap();
            conn.read_to_close()
        }
        Closes(_) | Ends => {
            // The server may close before it has read everything.
            let _ = conn.write(&case.request);
            conn.set_read_timeout(Duration::from_secs(5)).unwrap();
            conn.read_to_close()
        }
    };
    let expected = match case.outcome {
        Answers(text) => format!("{text}+OK\r\n"),
        Closes(text) => text.to_owned(),
        Ends => return got.err().map(|error| format!("{}: {error:#}", case.name)),
    };
    match got {
        Ok(got) if got == expected.as_bytes() => None,
        Ok(got) => {
            Some(format!("{}: expected {expected:?}, got {:?}", case.name, String::from_utf8_lossy(&got)))
        }
        Err(error) => Some(format!("{}: expected {expected:?}, but {error:#}", case.name)),
    }
}

#[test]
fn hostile_requests_get_redis_errors_and_harm_nobody() {
    let mut server = Server::under_test(&[]).unwrap();
    let mut other = server.connect().unwrap();
    other.words("SET witness 1").unwrap();
    let before = server.resident_bytes().unwrap();
    let mut problems = Vec::new();
    for case in lengths().iter().chain(&types()).chain(&inline()) {
        problems.extend(problem(&server, case));
        assert!(server.is_running(), "{} ended the server:\n{}", case.name, server.log());
        assert_eq!(other.words("GET witness").unwrap(), Value::Bulk(b"1".to_vec()), "after {}", case.name);
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
    let grown = server.resident_bytes().unwrap().saturating_sub(before);
    assert!(grown < 64 << 20, "memory grew by {grown} bytes");
}

#[test]
fn every_cut_of_a_request_leaves_the_server_serving() {
    let server = Server::under_test(&[]).unwrap();
    let request = b"*3\r\n$3\r\nSET\r\n$3\r\ncut\r\n$5\r\nvalue\r\n";
    for cut in 0..request.len() {
        let mut conn = server.connect().unwrap();
        conn.write(&request[..cut]).unwrap();
    }
    let mut conn = server.connect().unwrap();
    assert_eq!(conn.words("EXISTS cut").unwrap(), Value::Int(0), "a truncated command was executed");
}

#[test]
fn announced_but_unsent_arguments_cost_no_memory() {
    let server = Server::under_test(&[]).unwrap();
    let before = server.resident_bytes().unwrap();
    let mut open = Vec::new();
    for _ in 0..20 {
        let mut conn = server.connect().unwrap();
        conn.write(b"*2\r\n$4\r\nECHO\r\n$500000000\r\nabc").unwrap();
        let mut many = server.connect().unwrap();
        many.write(b"*1000000\r\n$4\r\nECHO\r\n").unwrap();
        open.push((conn, many));
    }
    let mut conn = server.connect().unwrap();
    assert_eq!(conn.words("PING").unwrap(), Value::Simple(b"PONG".to_vec()));
    let grown = server.resident_bytes().unwrap().saturating_sub(before);
    assert!(grown < 512 << 20, "memory grew by {grown} bytes for forty clients that sent nothing");
}

#[test]
fn an_unauthenticated_client_may_announce_little() {
    let server = Server::under_test(&["--requirepass", "secret"]).unwrap();
    let cases = [
        case(
            "many arguments",
            "*11\r\n",
            Closes("-ERR Protocol error: unauthenticated multibulk length\r\n"),
        ),
        case(
            "a long argument",
            "*1\r\n$16385\r\n",
            Closes("-ERR Protocol error: unauthenticated bulk length\r\n"),
        ),
    ];
    let problems: Vec<String> = cases.iter().filter_map(|case| problem(&server, case)).collect();
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn a_request_above_the_query_buffer_limit_ends_its_connection_only() {
    let server = Server::under_test(&["--client-query-buffer-limit", "1mb"]).unwrap();
    let mut other = server.connect().unwrap();
    let mut conn = server.connect().unwrap();
    let mut request = b"*2\r\n$4\r\nECHO\r\n$20000000\r\n".to_vec();
    request.resize(20_000_000, b'x');
    // The server closes while this is written.
    let _ = conn.write(&request);
    let rest = conn.read_to_close().unwrap();
    assert!(rest.is_empty(), "{}", rest.escape_ascii());
    assert_eq!(other.words("PING").unwrap(), Value::Simple(b"PONG".to_vec()));
}

#[test]
fn a_client_that_does_not_read_is_cut_at_the_output_limit() {
    let server = Server::under_test(&["--client-output-buffer-limit", "normal 4mb 0 0"]).unwrap();
    let mut other = server.connect().unwrap();
    other.call(&[&b"SET"[..], b"big", &vec![b'x'; 1 << 20]]).unwrap();
    let mut slow = server.connect().unwrap();
    let before = server.resident_bytes().unwrap();
    for _ in 0..200 {
        // The write fails once the server has closed the connection.
        if slow.write(b"GET big\r\n").is_err() {
            break;
        }
    }
    let own = slow.local_address().unwrap().to_string();
    let is_cut = e2e::wait::until(|| {
        let list = other.words("CLIENT LIST").unwrap();
        !String::from_utf8_lossy(list.bytes().unwrap()).contains(&own)
    });
    assert!(is_cut, "a client with 200 MiB of unread replies is still connected");
    let grown = server.resident_bytes().unwrap().saturating_sub(before);
    assert!(grown < 100 << 20, "memory grew by {grown} bytes");
}

#[test]
fn unknown_commands_quote_at_most_128_bytes_of_what_was_sent() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    let reply = conn.call(&["x".repeat(1000)]).unwrap();
    let expected = format!("ERR unknown command '{}', with args beginning with: ", "x".repeat(128));
    assert_eq!(reply.error().unwrap(), expected);
    let reply = conn.call(&["nosuch".to_owned(), "y".repeat(1000), "z".to_owned()]).unwrap();
    let expected = format!("ERR unknown command 'nosuch', with args beginning with: '{}' ", "y".repeat(128));
    assert_eq!(reply.error().unwrap(), expected);
}

//! The client's examples as a newcomer would run them, each against Towline and a real Redis.

use std::process::{Command, Stdio};

use e2e::process::{Server, ServerKind, example_binary};

/// Runs an example against both servers; its output must be `expected`.
fn run(example: &str, expected: &[&str]) {
    for kind in [ServerKind::Towline, ServerKind::Redis70] {
        let server = Server::start(kind, &[]).unwrap();
        let output = Command::new(example_binary(example).unwrap())
            .env("REDIS_URL", format!("redis://{}", server.address()))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let (text, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{example} with {}:\n{text}{errors}", kind.name());
        assert_eq!(text.lines().collect::<Vec<_>>(), expected, "{example} with {}", kind.name());
    }
}

#[test]
fn get_set() {
    run(
        "get_set",
        &["greeting: hello", "missing: None", "length: 11", "error: Some(\"WRONGTYPE\"), sent: Answered"],
    );
}

#[test]
fn pipeline() {
    run(
        "pipeline",
        &[
            "visits: 42, name: ada",
            "0: ERR value is not an integer or out of range",
            "1: Integer(43)",
            "visits: 43, name: ada",
        ],
    );
}

#[test]
fn transaction() {
    run("transaction", &["committed: 70 and 30", "refused, nothing ran: ERR", "balance: 70"]);
}

#[test]
fn backlog_policy() {
    run(
        "backlog_policy",
        &[
            "Queue, no server: deadline passed; sent: No",
            "Queue, a server: PONG",
            "FailFast, no server: not connected, and the backlog policy does not wait; sent: No",
            "FailFast, a server: PONG",
            "Bounded, no server: waited in the backlog for too long; sent: No",
            "Bounded, a server: PONG",
        ],
    );
}

#[test]
fn caching() {
    run(
        "caching",
        &[
            "first: ada",
            "again: ada, hits: 1",
            "changed by another client: grace",
            "twenty readers, one read: true",
            "fields: 2",
            "not kept: INCR",
        ],
    );
}

#[test]
fn pubsub() {
    run(
        "pubsub",
        &[
            "published order 1 to 2 subscriptions",
            "published order 2 to 2 subscriptions",
            "published order 3 to 2 subscriptions",
            "channel: orders: order 1",
            "pattern: orders: order 1",
            "channel: orders: order 2",
            "pattern: orders: order 2",
            "channel: orders: order 3",
            "pattern: orders: order 3",
            "channel: returns: order 2",
        ],
    );
}

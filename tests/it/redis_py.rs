//! redis-py as a client. The scripts are in `tests/py`; each asserts by itself and ends with exit code 0.

use e2e::peers::{Peer, checkout};
use e2e::process::Server;
use std::process::Command;

fn run(script: &str, arguments: &[&str]) {
    let server = Server::under_test(&[]).unwrap();
    let output = Command::new(Peer::Python.path().unwrap())
        .arg(checkout().join("tests/py").join(script))
        .arg(server.port().to_string())
        .args(arguments)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{script} {arguments:?}:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn sync_client_with_resp2() {
    run("sync_client.py", &["2"]);
}

#[test]
fn sync_client_with_resp3() {
    run("sync_client.py", &["3"]);
}

#[test]
fn asyncio_client_with_resp2() {
    run("asyncio_client.py", &["2"]);
}

#[test]
fn asyncio_client_with_resp3() {
    run("asyncio_client.py", &["3"]);
}

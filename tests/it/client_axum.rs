//! The service of examples/axum-service, as it was written for redis-rs and on Towline's client.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use e2e::peers::checkout;
use e2e::process::{Server, ServerKind, program_binary};

const VARIANTS: [&str; 2] = ["axum-service-redis-rs", "axum-service-towline"];

fn source(variant: &str) -> PathBuf {
    let directory = variant.strip_prefix("axum-service-").unwrap();
    checkout().join("examples/axum-service").join(directory).join("src/main.rs")
}

#[test]
fn the_two_variants_differ_in_one_line() {
    let [theirs, ours] = VARIANTS.map(|variant| fs::read_to_string(source(variant)).unwrap());
    let added = "use towline_client::redis;\n";
    assert_eq!(ours.matches(added).count(), 1);
    assert_eq!(ours.replacen(added, "", 1), theirs);
}

/// A running service.
struct Service {
    child: Child,
    address: String,
}

impl Service {
    fn start(variant: &str, server: &Server) -> Self {
        let mut child = Command::new(program_binary(variant).unwrap())
            .env("REDIS_URL", format!("redis://{}", server.address()))
            .env("LISTEN", "127.0.0.1:0")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").unwrap().to_owned();
        Self { child, address }
    }

    /// The status and the body.
    fn request(&self, method: &str, path: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        format!("{} {body}", head.split(' ').nth(1).unwrap())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Everything that the service can do, as a client of it sees it.
fn transcript(service: &Service) -> Vec<String> {
    let mut lines = vec![service.request("GET", "/health", ""), service.request("GET", "/links/1", "")];
    for number in 0..6 {
        let body = format!(r#"{{"owner":"ada","url":"https://example.com/{number}"}}"#);
        lines.push(service.request("POST", "/links", &body));
    }
    lines.push(service.request("GET", "/links/2", ""));
    lines.push(service.request("GET", "/links/2", ""));
    lines.push(service.request("GET", "/links/5", ""));
    lines.push(service.request("GET", "/top", ""));
    lines
}

#[test]
fn both_variants_do_the_same_on_every_server() {
    let mut transcripts = Vec::new();
    for variant in VARIANTS {
        for kind in [ServerKind::Towline, ServerKind::Redis70, ServerKind::Valkey91] {
            let server = Server::start(kind, &[]).unwrap();
            let service = Service::start(variant, &server);
            transcripts.push((variant, kind.name(), transcript(&service)));
        }
    }
    let (_, _, first) = &transcripts[0];
    assert_eq!(first[0], "200 PONG");
    assert_eq!(first[1], "404 no such link");
    assert_eq!(first[2], r#"200 {"id":1,"url":"https://example.com/0","hits":0}"#);
    assert_eq!(first[7], "429 slow down");
    assert_eq!(first[9], r#"200 {"id":2,"url":"https://example.com/1","hits":2}"#);
    assert!(first[11].starts_with(r#"200 [{"id":2,"#), "{}", first[11]);
    for (variant, server, transcript) in &transcripts {
        assert_eq!(transcript, first, "{variant} on {server}");
    }
}

//! `towline bench` against a server that answers everything with one fixed reply.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output};
use std::thread;

/// What the stub server does with each connection.
#[derive(Clone, Copy)]
struct Stub {
    /// The reply to every command.
    reply: &'static [u8],
    /// The connection is closed after so many commands.
    commands_max: usize,
}

/// Starts a stub; returns its port. Its threads end with their connections or with the test process.
fn start(stub: Stub) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            stream.set_nodelay(true).unwrap();
            thread::spawn(move || serve(&stream, stub));
        }
    });
    port
}

/// Answers commands until the peer or the limit ends it.
fn serve(stream: &TcpStream, stub: Stub) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    for _ in 0..stub.commands_max {
        for _ in 0..header(&mut reader)? {
            let length = header(&mut reader)?;
            let mut body = vec![0; length + 2];
            reader.read_exact(&mut body).ok()?;
        }
        writer.write_all(stub.reply).ok()?;
    }
    Some(())
}

fn header(reader: &mut impl BufRead) -> Option<usize> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    line.get(1..)?.trim().parse().ok()
}

fn bench(port: u16, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_towline"))
        .args(["bench", "-p", &port.to_string(), "--timeout", "20"])
        .args(arguments)
        .env_remove("REDISCLI_AUTH")
        .output()
        .unwrap()
}

fn rows(output: &Output) -> Vec<serde_json::Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The one line on standard error.
fn complaint(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

const OK: Stub = Stub { reply: b"+OK\r\n", commands_max: usize::MAX };

#[test]
fn closed_loop_sends_exactly_what_was_asked() {
    let port = start(OK);
    let output =
        bench(port, &["-n", "1003", "-P", "10", "-c", "4", "-t", "2", "-w", "set,ping,mixed", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let rows = rows(&output);
    assert_eq!(rows.len(), 3);
    for row in rows {
        assert_eq!(row["ops"], 1003);
        assert_eq!(row["errors"], 0);
        assert!(row["max_us"].as_f64().unwrap() >= row["p50_us"].as_f64().unwrap());
    }
}

#[test]
fn open_loop_sends_exactly_what_was_asked_at_its_rate() {
    let port = start(OK);
    let output = bench(port, &["-n", "500", "--rate", "2000", "-c", "3", "-t", "2", "-w", "get", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let row = &rows(&output)[0];
    assert_eq!(row["ops"], 500);
    // The last command is meant to leave after 499 intervals of half a millisecond; never sooner.
    assert!(row["seconds"].as_f64().unwrap() >= 0.2495, "{row}");
}

#[test]
fn a_run_without_any_success_fails_and_shows_the_text() {
    let port = start(Stub { reply: b"+OK\r\n", commands_max: usize::MAX });
    let refusing = start(Stub { reply: b"-ERR out of order\r\n", commands_max: usize::MAX });
    assert!(bench(port, &["-n", "5", "NOSUCH", "__key__"]).status.success());
    let output = bench(refusing, &["-n", "5", "-w", "get"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(complaint(&output).contains("ERR out of order"));
}

#[test]
fn lost_connections_are_counted_and_end_the_run() {
    let port = start(Stub { reply: b"+OK\r\n", commands_max: 20 });
    let output = bench(port, &["-n", "1000", "-c", "2", "-w", "get,set", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(complaint(&output).contains("closed every connection"));
    let row = &rows(&output)[0];
    assert_eq!(row["ops"], 40);
    assert_eq!(row["errors"], 2);
}

#[test]
fn a_server_of_another_protocol_is_named_as_such() {
    let port = start(Stub { reply: b"HTTP/1.1 400 Bad Request\r\n", commands_max: 1 });
    let output = bench(port, &["-n", "1"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(complaint(&output).contains("RESP"));
}

#[test]
fn a_refused_connection_says_what_to_do() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let output = bench(port, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(complaint(&output).contains("towline server"));
}

#[test]
fn bad_flags_are_one_line_and_exit_code_two() {
    for arguments in [
        &["--sedd", "1"][..],
        &["-c", "0"],
        &["-w", "fly"],
        &["-n", "1", "--secs", "1"],
        &["--dist", "gauss"],
        &["memory", "--key-bytes", "1"],
    ] {
        let output = bench(1, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        complaint(&output);
    }
}

#[test]
fn a_storm_reports_every_connection() {
    let port = start(OK);
    let output = bench(port, &["conns", "--count", "50", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let row = &rows(&output)[0];
    assert_eq!(row["ready"], 50);
    assert_eq!(row["failures"], 0);
}

#[test]
fn plots_are_written() {
    let port = start(OK);
    let directory = std::env::temp_dir();
    for plot in ["percentiles", "throughput"] {
        let file = directory.join(format!("towline-bench-{}-{plot}.svg", std::process::id()));
        let path = file.to_str().unwrap();
        let output = bench(port, &["-n", "100", "-w", "ping", "--svg", path, "--plot", plot]);
        assert!(output.status.success(), "{output:?}");
        let svg = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("ping"));
    }
}

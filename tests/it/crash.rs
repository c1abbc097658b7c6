//! `towline drill crash`: that it passes a server that keeps its promise, and finds what one has lost.

use std::process::{Command, Output, Stdio};

use e2e::peers::Peer;
use e2e::process::towline_binary;
use serde_json::Value;

/// Runs the drill; its report and its exit code. What else it said is in the panic's text.
#[track_caller]
fn crash(arguments: &[&str]) -> (Value, Option<i32>) {
    let output = drill(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    let report = serde_json::from_slice(&output.stdout);
    (report.unwrap_or_else(|error| panic!("{error}: {output:?}\n{said}")), output.status.code())
}

fn drill(arguments: &[&str]) -> Output {
    let mut command = Command::new(towline_binary().unwrap());
    command.args(["drill", "crash", "--json"]).args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn program(peer: Peer) -> String {
    peer.path().unwrap().to_str().unwrap().to_owned()
}

#[track_caller]
fn assert_kept(report: &Value, code: Option<i32>, runs: u64) {
    assert_eq!((report["violations"].as_array().map(Vec::len), code), (Some(0), Some(0)), "{report:#}");
    assert_eq!(report["runs"], runs, "{report:#}");
    for count in ["lost", "partial", "wrong_ttl", "wrong_answers", "foreign_keys"] {
        assert_eq!(report[count], 0, "{count} in {report:#}");
    }
    assert!(report["acknowledged"].as_u64().unwrap() > 100 * runs, "{report:#}");
    assert!(report["keys"].as_u64().unwrap() > 10 * runs, "{report:#}");
}

#[test]
fn redis_keeps_what_it_answered() {
    let (report, code) = crash(&["--server", &program(Peer::Redis70), "--runs", "4"]);
    assert_kept(&report, code, 4);
    assert_eq!(report["missing"], 0, "{report:#}");
}

#[test]
fn our_server_keeps_what_it_answered() {
    let (report, code) = crash(&["--runs", "10", "--workers", "2"]);
    assert_kept(&report, code, 10);
    assert_eq!(report["missing"], 0, "{report:#}");
}

#[test]
fn our_server_loses_a_second_at_most() {
    let (report, code) = crash(&["--appendfsync", "everysec", "--runs", "3", "--workers", "2"]);
    assert_kept(&report, code, 3);
    assert!(report["oldest_missing_ms"].as_f64().unwrap_or(0.0) <= 1000.0, "{report:#}");
}

/// Redis 7.0 and 8.2 fail this: of a transaction that is torn in the middle of a command, they leave the first commands in the log
/// with an open MULTI, which swallows what is written afterwards.
#[test]
fn our_torn_log_is_no_mixture() {
    let (report, code) = crash(&["--runs", "4", "--tear", "20000", "--workers", "2"]);
    assert_kept(&report, code, 4);
    assert!(report["missing"].as_u64().unwrap() > 0, "nothing was torn: {report:#}");
}

#[test]
fn our_snapshots_are_one_moment() {
    let (report, code) = crash(&["--runs", "4", "--snapshots", "--workers", "2"]);
    assert_kept(&report, code, 4);
}

#[test]
fn a_server_without_a_log_is_found_out() {
    let redis = program(Peer::Redis70);
    for server in [&["--server", redis.as_str()][..], &[]] {
        let directory = tempfile::tempdir().unwrap();
        let files = directory.path().to_str().unwrap();
        let control = ["--runs", "2", "--keep", "--dir", files, "--", "--appendonly", "no"];
        let (report, code) = crash(&[server, &control[..]].concat());
        assert_eq!(code, Some(1));
        assert!(report["lost"].as_u64().unwrap() > 100, "{report:#}");
        assert_eq!(report["runs"], 1, "--keep ends the drill at the first violation: {report:#}");
        let line = report["violations"][0].as_str().unwrap();
        assert!(line.starts_with("run 1, seed 1: lost: client 0: ") && !line.contains('\n'), "{line}");
        assert!(directory.path().join("before-start").is_dir(), "{report:#}");
    }
}

#[test]
fn what_cannot_be_run_is_one_line() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), "").unwrap();
    let full = directory.path().to_str().unwrap();
    for (arguments, code, part) in [
        (&["--runs", "0"][..], 2, "--runs"),
        (&["--server", " "], 2, "--server"),
        (&["--server", "/nowhere/redis-server"], 1, "/nowhere/redis-server"),
        (&["--server", "false"], 1, "the first start: the server ended"),
        (&["--dir", full], 1, "is not empty"),
    ] {
        let output = drill(arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), text.lines().count()), (Some(code), 1), "{text}");
        assert!(text.contains(part) && output.stdout.is_empty(), "{text}");
    }
}

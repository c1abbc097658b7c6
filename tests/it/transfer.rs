//! `towline transfer` and the drills of the transfer engine: real processes, killed and cut off.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

use e2e::process::towline_binary;
use serde_json::Value;

fn towline(arguments: &[&str]) -> Output {
    Command::new(towline_binary().unwrap()).args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// The JSON of a run that has to be a success.
#[track_caller]
fn report(arguments: &[&str]) -> Value {
    let output = towline(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{output:?}\n{said}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}\n{said}"))
}

#[test]
fn nothing_is_torn_lost_or_doubled_while_the_other_process_is_killed_and_links_are_cut() {
    let report =
        report(&["drill", "transfer", "--json", "--transfers", "2000", "--kills", "3", "--cuts", "8"]);
    for count in ["wrong", "failed", "notified_twice", "notifications_missing"] {
        assert_eq!(report[count], 0, "{count} in {report:#}");
    }
    assert_eq!((&report["kills"], &report["cuts"]), (&3.into(), &8.into()), "{report:#}");
    assert!(report["completed"].as_u64().unwrap() > 1000, "{report:#}");
    assert!(report["bytes_compared"].as_u64().unwrap() > 4 << 20, "{report:#}");
}

#[test]
fn a_fleet_of_real_handshakes_comes_up_as_a_whole() {
    let arguments =
        ["drill", "storm", "--real", "--json", "--nodes", "8", "--endpoints", "32", "--service-us", "200"];
    let list = report(&arguments);
    let row = &list[0];
    assert_eq!((&row["endpoints"], &row["connected_pct"]), (&256.into(), &100.0.into()), "{row:#}");
    assert_eq!(row["queue_pair_errors"], 0, "{row:#}");
}

struct Serving {
    process: Child,
    address: String,
}

impl Serving {
    fn start(arguments: &[&str]) -> Self {
        let mut process = Command::new(towline_binary().unwrap())
            .args(["transfer", "serve", "--json", "--while-stdin", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let value: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let address = value["address"].as_str().unwrap().to_owned();
        Self { process, address }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_file_is_copied_there_and_back_by_who_has_the_key() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("key"), "a key for this test alone\n").unwrap();
    // Longer than all pieces that are under way together.
    let content: Vec<u8> =
        (0..20_000_003_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(path("there"), &content).unwrap();
    let serving = Serving::start(&["--key-file", &path("key"), "--region", "kv=32mb"]);
    let place = format!("{}/kv@4096", serving.address);
    let copy =
        |from: &str, to: &str, more: &[&str]| towline(&[&["transfer", "copy", from, to], more].concat());
    let sent = copy(&path("there"), &place, &["--key-file", &path("key")]);
    assert_eq!(sent.status.code(), Some(0), "{sent:?}");
    let length = content.len().to_string();
    let back = copy(&place, &path("back"), &["--key-file", &path("key"), "--length", &length]);
    assert_eq!(back.status.code(), Some(0), "{back:?}");
    assert!(std::fs::read(path("back")).unwrap() == content);
    // A file that does not fit is refused before a byte of it is sent.
    let full =
        copy(&path("there"), &format!("{}/kv@20000000", serving.address), &["--key-file", &path("key")]);
    assert_eq!(full.status.code(), Some(1), "{full:?}");
    let nobody = copy(&path("there"), &place, &[]);
    assert_eq!(nobody.status.code(), Some(2), "{nobody:?}");
}

//! `towline drill`: that it passes what is right, and finds what is wrong.

use std::net::SocketAddr;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::fault_injector::injector::Injector;
use e2e::peers::{Peer, checkout};
use e2e::process::{Server, ServerKind, towline_binary};
use e2e::{clients, wait};
use serde_json::Value;
use towline_client::{Client, cmd};

fn drill(arguments: &[&str]) -> Output {
    let mut command = Command::new(towline_binary().unwrap());
    command.arg("drill").args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn handoff(arguments: &[&str]) -> Output {
    drill(&[&["handoff", "--json", "--seconds", "3"], arguments].concat())
}

/// The JSON objects of a run, and its exit code. What else it said is in the panic's text.
#[track_caller]
fn objects(output: &Output) -> (Vec<Value>, Option<i32>) {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let objects: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
    let said = String::from_utf8_lossy(&output.stderr);
    (objects.unwrap_or_else(|error| panic!("{error}: {text}\n{said}")), output.status.code())
}

#[track_caller]
fn assert_clean(report: &Value) {
    for count in ["failed", "duplicated", "reordered", "lost"] {
        assert_eq!(report[count], 0, "{count} in {report:#}");
    }
    assert!(report["completed"].as_u64().unwrap() > 1000, "{report:#}");
}

#[test]
fn a_move_under_full_load_fails_nothing_and_is_told_in_figures() {
    let output = handoff(&[]);
    let (reports, code) = objects(&output);
    let [report] = reports.as_slice() else { panic!("{reports:?}") };
    assert_clean(report);
    assert_eq!(code, Some(0));
    for figure in ["recycle_ms", "max_ms", "p99_ms", "pause_ms"] {
        assert!(report[figure].is_number(), "{figure} in {report:#}");
    }
    assert_eq!((&report["connections_told"], &report["connections_replaced"]), (&1.into(), &1.into()));
    let events: Vec<&str> =
        report["events"].as_array().unwrap().iter().filter_map(|event| event["event"].as_str()).collect();
    let of_server: Vec<&str> = events.iter().copied().filter(|event| *event != "client").collect();
    assert_eq!(of_server, ["MOVING", "first left", "last left", "window end"]);
    assert!(events.contains(&"client"), "the client says nothing of its handoff: {events:?}");
    let progress = String::from_utf8_lossy(&output.stderr);
    assert!(progress.lines().any(|line| line.starts_with("plain: ")), "{progress}");
}

#[test]
fn moves_with_troubles_fail_nothing() {
    let (reports, code) = objects(&drill(&[
        "handoff",
        "--json",
        "--script",
        "refuse,slow,dns,null,ipv6,back-to-back,blocked,pubsub",
        "--rate",
        "4000",
    ]));
    assert_eq!(reports.len(), 8);
    reports.iter().for_each(assert_clean);
    assert_eq!(code, Some(0));
    let recycle = |script: &str| {
        reports.iter().find(|report| report["script"] == script).unwrap()["recycle_ms"].as_f64().unwrap()
    };
    assert!(recycle("null") >= 450.0, "back before the name can have changed: {}", recycle("null"));
}

#[test]
fn many_workers_and_connections_move_together() {
    let (reports, code) = objects(&handoff(&["--workers", "64", "--connections", "32", "--rate", "4000"]));
    assert_clean(&reports[0]);
    assert_eq!((code, &reports[0]["connections_replaced"]), (Some(0), &32.into()));
}

#[test]
fn connections_that_are_cut_fail_the_drill() {
    // One connection may have nothing on its way at the moment of the cut; not so all of sixteen.
    let load = ["--script", "cut", "--connections", "16", "--workers", "64"];
    for maintenance in ["auto", "disabled"] {
        let (reports, code) =
            objects(&handoff(&[&load[..], &["--client-maintenance", maintenance]].concat()));
        assert_eq!(code, Some(1));
        assert!(reports[0]["failed"].as_u64().unwrap() > 0, "{:#}", reports[0]);
        let errors = reports[0]["errors"].as_object().unwrap();
        assert!(errors.keys().any(|text| text.contains("(may have run)")), "{errors:?}");
    }
}

#[test]
fn a_client_that_is_not_told_stays_to_the_end() {
    let (reports, _) = objects(&handoff(&["--client-maintenance", "disabled", "--rate", "1000"]));
    assert_eq!(reports[0]["connections_told"], 0);
    assert!(reports[0]["recycle_ms"].is_null(), "{:#}", reports[0]);
}

#[test]
fn redis_py_is_drilled_alike() {
    let python = Peer::Python.path().unwrap();
    let (reports, code) =
        objects(&handoff(&["--client", "redis-py", "--python", python.to_str().unwrap(), "--rate", "500"]));
    let report = &reports[0];
    assert!(report["client"].as_str().unwrap().starts_with("redis-py "), "{report:#}");
    assert!(report["completed"].as_u64().unwrap() + report["failed"].as_u64().unwrap() > 1000, "{report:#}");
    assert_eq!(report["connections_told"], report["connections_replaced"], "{report:#}");
    let wrong = ["failed", "duplicated", "reordered", "lost"].iter().any(|count| report[count] != 0);
    assert_eq!(code, Some(i32::from(wrong)));
}

#[test]
fn bad_options_are_one_line_and_exit_code_2() {
    for (arguments, what) in [
        (&["handoff", "--seconds", "3", "--window", "9"][..], "--seconds"),
        (&["handoff", "--script", "fire"], "fire"),
        (&["handoff", "--mix", "del=1"], "del"),
        (&["handoff", "--client", "redis-py", "--pipeline", "9"], "--pipeline"),
        (&["conformance"], "--target"),
        (&["conformance", "--target", "127.0.0.1:1", "--only", "nothing"], "nothing"),
    ] {
        let output = drill(arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains(what), "{text}");
    }
}

#[test]
fn a_python_that_is_missing_is_one_line_and_exit_code_1() {
    let output = handoff(&["--client", "redis-py", "--python", "/nowhere/python"]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("/nowhere/python") && text.contains("--python"), "{text}");
}

/// The outcomes by the checks' names.
fn outcomes(output: &Output) -> Vec<(String, String)> {
    let (lines, _) = objects(output);
    let word = |line: &Value, field: &str| line[field].as_str().unwrap().to_owned();
    lines
        .iter()
        .map(|line| (word(line, "name"), format!("{} {}", word(line, "outcome"), line["why"])))
        .collect()
}

#[test]
fn our_own_server_keeps_the_contract_twice_in_a_row() {
    let server = Server::start(ServerKind::Towline, &[]).unwrap();
    for run in 1..=2 {
        let output = drill(&["conformance", "--json", "--target", &server.address().to_string()]);
        let outcomes = outcomes(&output);
        let not_passed: Vec<_> =
            outcomes.iter().filter(|(_, outcome)| !outcome.starts_with("pass")).collect();
        // What is left needs somebody who moves shards and slots.
        assert!(
            not_passed.iter().all(|(name, outcome)| name.ends_with("-shape") && outcome.contains("--inject")),
            "run {run}: {not_passed:?}"
        );
        assert_eq!((not_passed.len(), output.status.code()), (6, Some(0)), "run {run}");
        let mut wire = server.connect().unwrap();
        let drains = wire.words("TOWLINE DRAIN STATUS").unwrap().to_string();
        assert!(!drains.contains("announced") && drains.contains("cancelled"), "run {run}: {drains}");
    }
}

/// What a run says that ends before the checks.
#[track_caller]
fn refused(arguments: &[&str]) -> String {
    let output = drill(&[&["conformance"], arguments].concat());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), text.lines().count()), (Some(1), 1), "{text}");
    assert!(output.stdout.is_empty(), "{output:?}");
    text
}

#[test]
fn an_injector_or_a_database_that_is_missing_is_one_line_and_exit_code_1() {
    let server = Server::start(ServerKind::Towline, &[]).unwrap();
    let target = server.address().to_string();
    // Bound and closed again, so that nobody is there.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let text = refused(&["--target", &target, "--inject", &format!("http://{nobody}")]);
    assert!(text.contains(&format!("no fault injector answers at {nobody}")), "{text}");
    let text = refused(&["--target", &target, "--inject", &format!("http://{target}")]);
    assert!(text.contains(&format!("no fault injector answers at {target}")), "{text}");
    let injector = Injector::start(&[]);
    let text = refused(&["--target", &target, "--inject", &injector.url(), "--database", "99999"]);
    assert!(text.contains("--database 99999") && text.contains(" has "), "{text}");
}

#[test]
fn a_fault_injector_brings_every_frame_and_all_of_the_contract_holds() {
    let injector = Injector::start(&["--window", "2s", "--pace", "100ms"]);
    let database = &injector.endpoints["m-standard"];
    let target = database["endpoints"][0].as_str().unwrap().trim_start_matches("redis://");
    let number = database["bdb_id"].to_string();
    let output = drill(&[
        "conformance",
        "--json",
        "--target",
        target,
        "--inject",
        &injector.url(),
        "--database",
        &number,
    ]);
    let outcomes = outcomes(&output);
    let not_passed: Vec<_> = outcomes.iter().filter(|(_, outcome)| !outcome.starts_with("pass")).collect();
    assert!(not_passed.is_empty(), "{not_passed:?}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_server_without_notifications_is_not_supported() {
    for kind in [ServerKind::Redis70, ServerKind::Redis82, ServerKind::Valkey91] {
        let server = Server::start(kind, &[]).unwrap();
        let output = drill(&["conformance", "--target", &server.address().to_string()]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(3), "{text}");
        assert!(text.starts_with("not supported") && text.contains("ERR"), "{text}");
    }
}

/// `towline drill conformance --client-listen`, which ends by itself.
struct Judge {
    child: Child,
    address: SocketAddr,
}

impl Judge {
    fn start() -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let child = Command::new(towline_binary().unwrap())
            .args(["drill", "conformance", "--json", "--client-listen", &address.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self { child, address }
    }

    fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// The names of the checks that were not passed, and the exit code.
    fn end(mut self) -> (Vec<(String, String)>, Option<i32>) {
        let mut stdout = Vec::new();
        std::io::Read::read_to_end(self.child.stdout.as_mut().unwrap(), &mut stdout).unwrap();
        let status = self.child.wait().unwrap();
        let outcomes = outcomes(&Output { status, stdout, stderr: Vec::new() });
        (outcomes.into_iter().filter(|(_, outcome)| !outcome.starts_with("pass")).collect(), status.code())
    }
}

impl Drop for Judge {
    fn drop(&mut self) {
        // Already ended is as good.
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn our_own_client_keeps_the_contract() {
    let mut judge = Judge::start();
    let options = clients::options(judge.address).connect_timeout(Duration::from_secs(1));
    let client = Client::lazy(options).unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let calling = tokio::spawn({
        let is_over = Arc::clone(&is_over);
        async move {
            while !is_over.load(Ordering::Relaxed) {
                // Only the server's record counts here.
                let _ = cmd("INCR").arg("k").query::<i64>(&client).await;
                tokio::task::yield_now().await;
            }
        }
    });
    assert!(wait::eventually(|| judge.has_ended()).await, "the checks do not end");
    is_over.store(true, Ordering::Relaxed);
    calling.await.unwrap();
    assert_eq!(judge.end(), (Vec::new(), Some(0)));
}

/// redis-py 8 closes its connection before it makes the new one, and leaves it although the new address refuses. What it
/// is said to do must be what it does, or the checks see nothing.
#[test]
fn what_redis_py_does_otherwise_is_found() {
    let judge = Judge::start();
    let mut client = Command::new(Peer::Python.path().unwrap())
        .arg(checkout().join("tests/py/incr_loop.py"))
        .arg(judge.address.port().to_string())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (not_passed, code) = judge.end();
    client.kill().unwrap();
    client.wait().unwrap();
    let names: Vec<&str> = not_passed.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((names, code), (vec!["make-before-break", "stays-when-refused"], Some(1)), "{not_passed:?}");
}

//! `towline up` and `towline drill reshard`: a cluster in one process, and one whose slots move under load.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use e2e::conn::Conn;
use e2e::peers::Peer;
use e2e::process::{free_port, towline_binary};
use serde_json::Value as Json;

/// Ports that are free at one moment may not be at the next.
const START_TRIES: usize = 20;

/// Clusters begin at one of these many places, ten ports apart. They and their bus ports, 10,000 above, are below those that the system gives
/// to connections.
const PLACES: u16 = 250;
const FIRST_PORT: u16 = 20_000;

/// A cluster in a process. Dropping it kills it.
struct Up {
    child: Child,
    told: Json,
}

impl Up {
    fn start(dir: Option<&Path>, port: Option<u16>) -> Self {
        for _ in 0..START_TRIES {
            let drawn = || FIRST_PORT + free_port().unwrap() % PLACES * 10;
            let port = port.unwrap_or_else(drawn);
            let mut command = Command::new(towline_binary().unwrap());
            command.args(["up", "--json", "--port", &port.to_string()]);
            if let Some(dir) = dir {
                command.arg("--dir").arg(dir);
            }
            let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
            let mut line = String::new();
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
            match serde_json::from_str(&line) {
                Ok(told) => return Self { child, told },
                Err(_) => assert!(!child.wait().unwrap().success()),
            }
        }
        panic!("no cluster comes up");
    }

    fn endpoints(&self) -> Vec<String> {
        self.told["nodes"].as_array().unwrap().iter().map(|node| node.as_str().unwrap().to_owned()).collect()
    }

    fn redis_cli(&self, arguments: &[&str]) -> String {
        let first = self.endpoints()[0].clone();
        let port = first.rsplit_once(':').unwrap().1;
        let mut command = Command::new(Peer::RedisCli.path().unwrap());
        let output = command.args(["-c", "-p", port]).args(arguments).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn stop(mut self) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // Both fail only when the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_cluster_comes_up_and_keeps_its_data() {
    let dir = tempfile::tempdir().unwrap();
    let up = Up::start(Some(dir.path()), None);
    let endpoints = up.endpoints();
    assert_eq!(endpoints.len(), 3);
    // All nodes know all slots, and a client that follows redirects is served.
    for endpoint in &endpoints {
        let mut conn = Conn::open(endpoint.parse().unwrap()).unwrap();
        let info = conn.words("CLUSTER INFO").unwrap();
        let text = String::from_utf8_lossy(info.bytes().unwrap()).into_owned();
        assert!(text.contains("cluster_state:ok") && text.contains("cluster_slots_assigned:16384"), "{text}");
    }
    for n in 0..30 {
        assert_eq!(up.redis_cli(&["SET", &format!("key:{n}"), &format!("value {n}")]), "OK");
    }
    up.stop();
    let port = endpoints[0].rsplit_once(':').unwrap().1.parse().unwrap();
    let up = Up::start(Some(dir.path()), Some(port));
    for n in 0..30 {
        assert_eq!(up.redis_cli(&["GET", &format!("key:{n}")]), format!("value {n}"));
    }
    up.stop();
}

#[test]
fn ports_without_room_are_refused() {
    let output = Command::new(towline_binary().unwrap()).args(["up", "--port", "60000"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("60000"));
}

/// The drill's object, with nothing wrong in it. Deadlines do not count: `MIGRATE` of Redis and Valkey sends what is left of them, so
/// they drift with the time that the target takes.
#[track_caller]
fn drill(arguments: &[&str]) -> Json {
    let mut command = Command::new(towline_binary().unwrap());
    command.args(["drill", "reshard", "--json", "--keys", "2000"]).args(arguments);
    if !arguments.contains(&"--slots") {
        command.args(["--slots", "400"]);
    }
    let output = command.stdin(Stdio::null()).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let report: Json = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"));
    for wrong in ["lost", "duplicated", "orphaned", "errors"] {
        assert_eq!(report[wrong], 0, "{report:#}");
    }
    assert!(report["slots_moved"].as_u64().unwrap() > 0 && report["completed"].as_u64().unwrap() > 1000);
    report
}

#[test]
fn slots_move_and_nothing_is_lost_on_redis_70() {
    let server = Peer::Redis70.path().unwrap();
    drill(&["--seconds", "4", "--server", server.to_str().unwrap()]);
}

#[test]
fn slots_move_both_ways_and_nothing_is_lost_on_valkey_91() {
    let server = Peer::Valkey91.path().unwrap();
    let report = drill(&["--seconds", "4", "--server", server.to_str().unwrap()]);
    let events = report["events"].to_string();
    assert!(events.contains("classic") && events.contains("atomic"), "{events}");
}

/// Between our own nodes deadlines are points in time, so they do not drift.
#[test]
fn slots_move_both_ways_and_nothing_is_lost() {
    let report = drill(&["--seconds", "4"]);
    let events = report["events"].to_string();
    assert!(events.contains("classic") && events.contains("atomic"), "{events}");
    assert!(report["ttl_off_ms_max"].as_u64().unwrap() <= 5, "{report:#}");
}

/// Kills of the source, the target, the leader and the tool at random moments, with the log synced for each reply.
#[test]
fn nodes_and_tools_are_killed_while_slots_move_and_nothing_is_lost() {
    for (path, seed) in [("classic", "105"), ("atomic", "7")] {
        let chaos = ["--seconds", "8", "--chaos", "--path", path, "--seed", seed];
        let report = drill(&[&chaos[..], &["--slots", "60"]].concat());
        assert!(report["kills"].as_u64().unwrap() > 0, "{report:#}");
    }
}

//! `towline cluster` against real clusters: what it says, what it changes, and what it leaves alone.
//!
//! The promises: no slot changes hands while its source has a key of it, no value is overwritten unasked, and whatever interrupts a
//! run, the next one goes on.

use std::collections::BTreeMap;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use e2e::clusters::{key_in, lonely_node, slot_of};
use e2e::process::{Server, ServerKind, towline_binary};
use e2e::value::Value;
use e2e::wait;
use serde_json::Value as Json;

const NODE_TIMEOUT: Duration = Duration::from_secs(2);

fn cluster(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(towline_binary().unwrap());
    command.arg("cluster").args(arguments).stdin(Stdio::null());
    command
}

/// The object that a run prints, which must end with this code.
#[track_caller]
fn json(arguments: &[&str], code: i32) -> Json {
    // First: behind `call` everything belongs to the command.
    let output = cluster(&[&["--json", "--yes"], arguments].concat());
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {out}{err}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {out}{err}"))
}

/// A run that must fail with code 1 and say this.
#[track_caller]
fn refused(arguments: &[&str], text: &str) {
    let output = cluster(&[arguments, &["--yes"]].concat());
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {err}");
    assert!(err.contains(text), "{arguments:?}: {err}");
}

/// A reply as text, an error's included.
fn text(reply: &Value) -> String {
    match reply.bytes() {
        Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        None => reply.to_string().trim_start_matches('+').to_owned(),
    }
}

/// Servers that `create` made a cluster of.
struct Cluster {
    servers: Vec<Server>,
}

impl Cluster {
    fn create(kind: ServerKind, count: usize, more: &[&str]) -> Self {
        let servers: Vec<Server> = (0..count).map(|_| lonely_node(kind, NODE_TIMEOUT).unwrap()).collect();
        let made = Self { servers };
        let ports = made.ports();
        let mut arguments = vec!["create"];
        arguments.extend(ports.iter().map(String::as_str));
        arguments.extend(more);
        let report = json(&arguments, 0);
        assert_eq!((&report["slots_covered"], &report["is_ok"]), (&16384.into(), &true.into()), "{report:#}");
        // They agree before each has dialled each.
        assert!(wait::until(|| (0..count).all(|at| !made.say(at, "CLUSTER NODES").contains("disconnected"))));
        made
    }

    fn ports(&self) -> Vec<String> {
        self.servers.iter().map(|server| server.port().to_string()).collect()
    }

    fn port(&self, at: usize) -> String {
        self.servers[at].port().to_string()
    }

    fn address(&self, at: usize) -> String {
        self.servers[at].address().to_string()
    }

    /// What a node answers to words.
    fn say(&self, at: usize, words: &str) -> String {
        text(&self.servers[at].connect().unwrap().words(words).unwrap())
    }

    fn id(&self, at: usize) -> String {
        self.say(at, "CLUSTER MYID")
    }

    /// The node that owns a slot, by what it says itself.
    fn owner(&self, slot: u16) -> Option<usize> {
        let owns = |at: &usize| {
            let nodes = self.say(*at, "CLUSTER NODES");
            let own = nodes.lines().find(|line| line.contains("myself"));
            own.is_some_and(|line| {
                line.split(' ').skip(8).any(|word| {
                    let (first, last) = word.split_once('-').unwrap_or((word, word));
                    let bounds = first.parse::<u16>().ok().zip(last.parse::<u16>().ok());
                    bounds.is_some_and(|(first, last)| (first..=last).contains(&slot))
                })
            })
        };
        (0..self.servers.len()).find(owns)
    }

    /// Writes so many keys over all slots, and remembers them.
    fn fill(&self, count: usize) -> BTreeMap<String, String> {
        let keys: BTreeMap<String, String> =
            (0..count).map(|n| (format!("key:{n}"), format!("value {n}"))).collect();
        let mut connections: Vec<_> = self.servers.iter().map(|server| server.connect().unwrap()).collect();
        let owners: Vec<usize> = keys.keys().map(|key| self.owner_of_range(slot_of(key))).collect();
        for ((key, value), owner) in keys.iter().zip(owners) {
            let reply = connections[owner].call(&["SET", key, value]).unwrap();
            assert!(reply.error().is_none(), "{reply}");
        }
        keys
    }

    /// As `create` gave them out.
    fn owner_of_range(&self, slot: u16) -> usize {
        match slot {
            0..=5460 => 0,
            5461..=10922 => 1,
            _ => 2,
        }
    }

    /// That each key is there once, at its owner, with its value; and that nobody holds anything else.
    #[track_caller]
    fn assert_holds(&self, keys: &BTreeMap<String, String>) {
        // Code 0: there may be notes, as of primaries without replicas, but no problem.
        json(&["check", &self.port(0)], 0);
        let mut found = BTreeMap::new();
        for server in &self.servers {
            let mut connection = server.connect().unwrap();
            for key in keys.keys() {
                let reply = connection.call(&["GET", key]).unwrap();
                if let Some(value) = reply.bytes().filter(|_| reply.error().is_none()) {
                    let value = String::from_utf8_lossy(value).into_owned();
                    assert_eq!(found.insert(key.clone(), value), None, "{key} is at two nodes");
                }
            }
        }
        assert_eq!(&found, keys);
        let info = json(&["info", &self.port(0)], 0);
        assert_eq!(info["keys"], keys.len());
    }
}

fn life(kind: ServerKind) {
    let mut cluster = Cluster::create(kind, 3, &[]);
    let keys = cluster.fill(1000);
    cluster.assert_holds(&keys);

    cluster.servers.push(lonely_node(kind, NODE_TIMEOUT).unwrap());
    let (first, new) = (cluster.port(0), cluster.port(3));
    refused(&["add-node", &first, &cluster.port(1)], "knows");
    let joined = json(&["add-node", &new, &first], 0);
    assert_eq!(joined["id"], cluster.id(3));
    let plan = json(&["rebalance", &first, "--use-empty", "--dry-run"], 0);
    assert_eq!(plan["plan"].as_array().unwrap().len(), 3, "{plan:#}");
    let moved = json(&["rebalance", &first, "--use-empty", "--classic"], 0);
    assert_eq!((&moved["slots_moved"], &moved["stuck"]), (&4096.into(), &serde_json::json!([])));
    assert_eq!(json(&["rebalance", &first, "--classic"], 0)["slots_moved"], 0, "it is balanced");
    cluster.assert_holds(&keys);

    refused(&["del-node", &first, &cluster.address(3)], "owns slots");
    let weight = format!("{}=0", cluster.address(3));
    let moved = json(&["rebalance", &first, "--weight", &weight, "--classic"], 0);
    assert_eq!(moved["slots_moved"], 4096);
    cluster.assert_holds(&keys);
    json(&["del-node", &first, &cluster.id(3)[..12]], 0);
    cluster.servers.pop();
    cluster.assert_holds(&keys);
    let said = json(&["call", &first, "DBSIZE"], 0);
    assert_eq!(
        said.as_array().unwrap().iter().map(|node| node["reply"].as_u64().unwrap()).sum::<u64>(),
        1000
    );
}

/// A run that died in the middle leaves slots open, with keys on both sides.
fn resume(kind: ServerKind) {
    let cluster = Cluster::create(kind, 3, &[]);
    let mut keys = cluster.fill(2000);
    let (source, target) = (cluster.id(0), cluster.id(1));
    let slot = 1234;
    let (key, other) = (key_in(slot, "moved"), key_in(slot, "waits"));
    for key in [&key, &other] {
        assert_eq!(cluster.say(0, &format!("SET {key} v")), "OK");
        keys.insert(key.clone(), "v".to_owned());
    }
    for slot in [slot, 5460] {
        assert_eq!(cluster.say(1, &format!("CLUSTER SETSLOT {slot} IMPORTING {source}")), "OK");
        assert_eq!(cluster.say(0, &format!("CLUSTER SETSLOT {slot} MIGRATING {target}")), "OK");
    }
    let moved = cluster.say(0, &format!("MIGRATE 127.0.0.1 {} {key} 0 5000", cluster.port(1)));
    assert_eq!(moved, "OK");
    // And one that was opened only at the target.
    assert_eq!(cluster.say(1, &format!("CLUSTER SETSLOT 100 IMPORTING {source}")), "OK");

    let found = json(&["check", &cluster.port(0)], 1);
    let kinds: Vec<&str> =
        found["findings"].as_array().unwrap().iter().filter_map(|it| it["kind"].as_str()).collect();
    assert!(kinds.contains(&"migrating") && kinds.contains(&"importing"), "{found:#}");
    let to = cluster.address(1);
    let ranges = format!("{slot}-{}", slot + 9);
    let arguments = ["reshard", &cluster.port(2), "--to", &to, "--ranges", &ranges, "--classic"];
    let moved = json(&arguments, 0);
    assert_eq!(moved["slots_moved"], 9, "the open one came first: {moved:#}");
    assert_eq!((cluster.owner(slot), cluster.owner(5460), cluster.owner(100)), (Some(1), Some(1), Some(0)));
    assert_eq!(json(&arguments, 0)["slots_moved"], 0, "the same command again has nothing to do");
    cluster.assert_holds(&keys);
}

/// A key that both have with different values: it stays, its slot stays, and it is named.
fn conflict(kind: ServerKind) {
    let cluster = Cluster::create(kind, 3, &[]);
    let source = cluster.id(0);
    let (key, other) = (key_in(7, "contested"), key_in(7, "peaceful"));
    // What a former move left at the target.
    assert_eq!(cluster.say(1, &format!("CLUSTER SETSLOT 7 IMPORTING {source}")), "OK");
    let mut connection = cluster.servers[1].connect().unwrap();
    connection.words("ASKING").unwrap();
    assert_eq!(connection.words(&format!("SET {key} old")).unwrap().to_string(), "+OK");
    cluster.say(1, "CLUSTER SETSLOT 7 STABLE");
    for key in [&key, &other] {
        assert_eq!(cluster.say(0, &format!("SET {key} new")), "OK");
    }
    let found = json(&["check", &cluster.port(0)], 1);
    assert_eq!(found["findings"][0]["kind"], "orphans", "{found:#}");

    let to = cluster.address(1);
    let reshard = ["reshard", &cluster.port(0), "--to", &to, "--ranges", "7", "--classic"];
    let outcome = json(&reshard, 1);
    assert_eq!(
        (&outcome["slots_moved"], &outcome["stuck"][0]["key"]),
        (&0.into(), &key.clone().into()),
        "{outcome:#}"
    );
    assert_eq!(cluster.owner(7), Some(0), "a slot with a key stays");
    assert!(cluster.say(0, &format!("GET {key}")).contains("new"));

    // fix finishes the move only when it is told which value counts.
    let fixed = json(&["fix", &cluster.port(0)], 1);
    assert_eq!(fixed["stuck"][0]["key"], key, "{fixed:#}");
    assert_eq!(cluster.owner(7), Some(0));
    // The open slot is ours to finish, and --replace says that the source counts.
    let again = [&reshard[..], &["--replace"]].concat();
    json(&again, 0);
    assert_eq!(cluster.owner(7), Some(1));
    let keys = BTreeMap::from([(key, "new".to_owned()), (other, "new".to_owned())]);
    cluster.assert_holds(&keys);
}

fn mend(kind: ServerKind) {
    let cluster = Cluster::create(kind, 3, &[]);
    let mut keys = cluster.fill(500);
    assert_eq!(json(&["fix", &cluster.port(0)], 0)["findings"], serde_json::json!([]));
    // An orphan at the second node, whose key the owner does not have; and one that both have alike.
    let source = cluster.id(0);
    let (lost, twin) = (key_in(9, "lost"), key_in(9, "twin"));
    cluster.say(1, &format!("CLUSTER SETSLOT 9 IMPORTING {source}"));
    let mut connection = cluster.servers[1].connect().unwrap();
    for key in [&lost, &twin] {
        connection.words("ASKING").unwrap();
        assert_eq!(connection.words(&format!("SET {key} found")).unwrap().to_string(), "+OK");
        keys.insert(key.clone(), "found".to_owned());
    }
    cluster.say(0, &format!("SET {twin} found"));
    cluster.say(1, "CLUSTER SETSLOT 9 STABLE");
    // A slot of nobody, with keys at its former owner, and some without.
    let orphaned = keys.keys().map(|key| slot_of(key)).find(|slot| *slot > 11_000).unwrap();
    for at in 0..3 {
        cluster.say(at, &format!("CLUSTER DELSLOTS {orphaned}"));
        cluster.say(at, "CLUSTER DELSLOTS 16383");
    }
    let plan = cluster_dry(&cluster.port(0));
    assert!(plan.contains(&orphaned.to_string()) && plan.contains("slot 9"), "{plan}");
    let fixed = json(&["fix", &cluster.port(0)], 0);
    assert_eq!(fixed["stuck"], serde_json::json!([]), "{fixed:#}");
    assert_eq!(cluster.owner(orphaned), Some(2), "who has the keys gets the slot");
    assert!(cluster.owner(16383).is_some());
    cluster.assert_holds(&keys);
}

fn cluster_dry(port: &str) -> String {
    let output = cluster(&["fix", port, "--dry-run"]);
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Ctrl-C leaves nothing open; what is left is named, and moves later.
fn interrupt(kind: ServerKind) {
    let cluster = Cluster::create(kind, 3, &[]);
    let keys = cluster.fill(3000);
    let to = cluster.address(1);
    let arguments =
        ["reshard", &cluster.port(0), "--to", &to, "--from", &cluster.address(0), "--slots", "5461"];
    let mut slow = command(&[&arguments[..], &["--classic", "--rate", "150", "--json", "--yes"]].concat());
    let child = slow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    assert!(wait::until(|| cluster.owner(0) == Some(1)), "nothing moves");
    interrupt_child(&child);
    let output = child.wait_with_output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(130), "{out}{}", String::from_utf8_lossy(&output.stderr));
    let outcome: Json = serde_json::from_str(&out).unwrap();
    let moved = outcome["slots_moved"].as_u64().unwrap();
    assert!((1..5461).contains(&moved), "{outcome:#}");
    cluster.assert_holds(&keys);
    let left = outcome["left"][0]["slots"].as_str().unwrap();
    let rest = json(&["reshard", &cluster.port(0), "--to", &to, "--ranges", left, "--classic"], 0);
    assert_eq!(rest["slots_moved"].as_u64().unwrap() + moved, 5461);
    cluster.assert_holds(&keys);
}

fn interrupt_child(child: &Child) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
}

#[test]
fn servers_move_slots_by_themselves_on_valkey_91() {
    let cluster = Cluster::create(ServerKind::Valkey91, 3, &[]);
    let keys = cluster.fill(2000);
    let to = cluster.address(2);
    assert_eq!(json(&["migrate", "status", &cluster.port(0)], 0), serde_json::json!([]));
    let moved = json(&["reshard", &cluster.port(0), "--to", &to, "--slots", "2000", "--batch", "500"], 0);
    assert_eq!((&moved["how"], &moved["slots_moved"]), (&"atomic".into(), &2000.into()), "{moved:#}");
    cluster.assert_holds(&keys);
    let jobs = json(&["migrate", "status", &cluster.port(0)], 0);
    assert!(jobs.as_array().unwrap().iter().all(|job| job["migration"]["state"] == "success"), "{jobs:#}");
    assert_eq!(json(&["migrate", "cancel", &cluster.port(0)], 0)["cancelled"], serde_json::json!([]));
}

#[test]
fn replicas_are_placed_and_a_dead_node_is_let_go() {
    let mut cluster = Cluster::create(ServerKind::Redis70, 6, &["--replicas", "1"]);
    let nodes = json(&["nodes", &cluster.port(0)], 0);
    let replicas = nodes.as_array().unwrap().iter().filter(|node| !node["primary"].is_null()).count();
    assert_eq!(replicas, 3, "{nodes:#}");
    let id = cluster.id(5);
    cluster.servers.pop();
    assert!(wait::until(|| cluster.say(0, "CLUSTER NODES").contains("slave,fail ")));
    let found = json(&["check", &cluster.port(0)], 0);
    assert_eq!(found["unreachable"], 1, "{found:#}");
    json(&["del-node", &cluster.port(0), &id], 0);
    let found = json(&["check", &cluster.port(0)], 0);
    assert_eq!((&found["unreachable"], &found["nodes"]), (&0.into(), &5.into()), "{found:#}");
}

#[test]
fn what_cannot_be_is_refused_before_anything_changes() {
    let cluster_of = Cluster::create(ServerKind::Redis70, 3, &[]);
    let (first, address) = (cluster_of.port(0), cluster_of.address(1));
    refused(&["create", &first, &cluster_of.port(1), &cluster_of.port(2)], "knows");
    let usage = |arguments: &[&str]| {
        let output = cluster(arguments);
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {err}");
        err
    };
    assert!(usage(&["reshard", &first, "--to", &address]).contains("--slots"));
    assert!(
        usage(&["reshard", &first, "--to", "127.0.0.1:1", "--slots", "1", "-y"])
            .contains("no node is called")
    );
    let err = usage(&["reshard", &first, "--to", &address, "--slots", "1"]);
    assert!(err.contains("--yes"), "{err}");
    assert!(usage(&["reshard", &first, "--to", &address, "--ranges", "9-1", "-y"]).contains("9-1"));
    let err = usage(&["reshard", &first, "--to", &address, "--slots", "1", "--atomic", "-y"]);
    assert!(err.contains("MIGRATESLOTS"), "{err}");
    refused(
        &["rebalance", &first, "--weight", &format!("{address}=0,{first}=0,{}=0", cluster_of.address(2))],
        "weights",
    );
    let alone = Server::start(ServerKind::Redis70, &[]).unwrap();
    refused(&["check", &alone.port().to_string()], "cluster-enabled yes");
}

#[test]
fn a_cluster_lives_on_redis_70() {
    life(ServerKind::Redis70);
}

#[test]
fn a_cluster_lives_on_redis_82() {
    life(ServerKind::Redis82);
}

#[test]
fn a_cluster_lives_on_valkey_91() {
    life(ServerKind::Valkey91);
}

#[test]
fn an_interrupted_move_is_finished_on_redis_70() {
    resume(ServerKind::Redis70);
}

#[test]
fn an_interrupted_move_is_finished_on_valkey_91() {
    resume(ServerKind::Valkey91);
}

#[test]
fn nothing_is_overwritten_unasked_on_redis_70() {
    conflict(ServerKind::Redis70);
}

#[test]
fn nothing_is_overwritten_unasked_on_redis_82() {
    conflict(ServerKind::Redis82);
}

#[test]
fn what_is_broken_is_mended_on_redis_70() {
    mend(ServerKind::Redis70);
}

#[test]
fn what_is_broken_is_mended_on_valkey_91() {
    mend(ServerKind::Valkey91);
}

#[test]
fn ctrl_c_leaves_nothing_open_on_redis_70() {
    interrupt(ServerKind::Redis70);
}

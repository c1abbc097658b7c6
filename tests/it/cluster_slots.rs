//! Slots that move between Towline's own nodes: by redis-cli, and as a whole (`CLUSTER MIGRATESLOTS`), also when a node is killed meanwhile.

use e2e::conn::Conn;
use e2e::process::free_port;
use e2e::towline_cluster::TowlineCluster;
use e2e::value::Value;
use e2e::wait;
use rustix::process::Signal;

/// Each node writes its log before it answers.
const DURABLE: &[&str] = &["--appendonly", "yes", "--appendfsync", "always"];

fn ask(conn: &mut Conn, command: &str) -> String {
    match conn.words(command).unwrap() {
        Value::Error(text) => format!("-{}", String::from_utf8_lossy(&text)),
        Value::Int(number) => number.to_string(),
        other => other.bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default(),
    }
}

/// Keys `k:0` and so on, each written where it belongs; returns how many the node has.
fn fill(cluster: &TowlineCluster, keys: usize) -> Vec<i64> {
    let mut nodes: Vec<Conn> = (0..3).map(|node| cluster.connect(node).unwrap()).collect();
    for key in 0..keys {
        let command = format!("SET k:{key} v{key}");
        assert!(nodes.iter_mut().any(|node| ask(node, &command) == "OK"), "{command}");
    }
    nodes.iter_mut().map(|node| ask(node, "DBSIZE").parse().unwrap()).collect()
}

/// Whether every key has its value, at the one node that serves it.
#[track_caller]
fn check(cluster: &TowlineCluster, keys: usize) {
    let mut nodes: Vec<Conn> = (0..3).map(|node| cluster.connect(node).unwrap()).collect();
    for key in 0..keys {
        let found: Vec<String> = nodes.iter_mut().map(|node| ask(node, &format!("GET k:{key}"))).collect();
        let served: Vec<&String> = found.iter().filter(|reply| !reply.starts_with("-MOVED")).collect();
        assert_eq!(served, [&format!("v{key}")], "k:{key}: {found:?}");
    }
}

/// The states of the source's migrations, the newest first.
fn states(conn: &mut Conn) -> Vec<String> {
    let Value::Array(all) = conn.words("CLUSTER GETSLOTMIGRATIONS").unwrap() else { return Vec::new() };
    let text = |value: &Value| String::from_utf8_lossy(value.bytes().unwrap_or_default()).into_owned();
    let state = |one: &Value| {
        let Value::Array(fields) = one else { return String::new() };
        let at = fields.iter().position(|field| text(field) == "state").expect("a state");
        text(&fields[at + 1])
    };
    all.iter().map(state).collect()
}

fn is_over(conn: &mut Conn) -> bool {
    states(conn).first().is_some_and(|state| ["success", "failed", "cancelled"].contains(&state.as_str()))
}

#[test]
fn redis_cli_reshards_and_rebalances() {
    let cluster = TowlineCluster::start(3, &[]).unwrap();
    fill(&cluster, 2000);
    let (from, to) = (cluster.id(0).unwrap(), cluster.id(1).unwrap());
    let arguments = ["--cluster-from", &from, "--cluster-to", &to, "--cluster-slots", "100", "--cluster-yes"];
    cluster.cluster_cli("reshard", &arguments).unwrap();
    cluster.cluster_cli("check", &[]).unwrap();
    check(&cluster, 2000);
    cluster.cluster_cli("rebalance", &["--cluster-threshold", "1"]).unwrap();
    cluster.cluster_cli("check", &[]).unwrap();
    check(&cluster, 2000);
}

#[test]
fn slots_move_as_a_whole_and_back() {
    let cluster = TowlineCluster::start(3, &[]).unwrap();
    let before = fill(&cluster, 3000);
    let (mut first, mut second) = (cluster.connect(0).unwrap(), cluster.connect(1).unwrap());
    let (one, two) = (cluster.id(0).unwrap(), cluster.id(1).unwrap());
    assert_eq!(ask(&mut first, &format!("CLUSTER MIGRATESLOTS SLOTSRANGE 0 5460 NODE {two}")), "OK");
    assert!(wait::until(|| is_over(&mut first)), "{:?}", states(&mut first));
    assert_eq!(states(&mut first), ["success"]);
    assert!(wait::until(|| ask(&mut first, "DBSIZE") == "0"));
    assert!(wait::until(|| ask(&mut second, "DBSIZE") == (before[0] + before[1]).to_string()));
    check(&cluster, 3000);
    let moved = cluster.members(2).unwrap().into_iter().find(|member| member.id == two).expect("the target");
    assert_eq!(moved.slots, [(0, 10922)]);
    // Parts of it go back to their owner and to the third node, in one command.
    let three = cluster.id(2).unwrap();
    let command = format!(
        "CLUSTER MIGRATESLOTS SLOTSRANGE 0 1000 2000 3000 NODE {one} SLOTSRANGE 4000 5460 NODE {three}"
    );
    assert_eq!(ask(&mut second, &command), "OK");
    assert!(wait::until(|| states(&mut second).iter().filter(|state| *state == "success").count() == 3));
    check(&cluster, 3000);
    cluster.cluster_cli("check", &[]).unwrap();
}

#[test]
fn a_migration_can_be_cancelled_and_what_cannot_move_is_refused() {
    let cluster = TowlineCluster::start(3, &[]).unwrap();
    let two = cluster.id(1).unwrap();
    let mut first = cluster.connect(0).unwrap();
    assert_eq!(ask(&mut first, "CLUSTER CANCELSLOTMIGRATIONS"), "-ERR No migrations ongoing");
    let theirs = format!("CLUSTER MIGRATESLOTS SLOTSRANGE 6000 6000 NODE {two}");
    assert_eq!(ask(&mut first, &theirs), "-ERR Slots are not served by this node.");
    // A target that does not go on: the source holds the slots, and an operator takes it back.
    cluster.servers()[1].signal(Signal::STOP).unwrap();
    assert_eq!(ask(&mut first, &format!("CLUSTER MIGRATESLOTS SLOTSRANGE 0 9 NODE {two}")), "OK");
    assert_eq!(
        ask(&mut first, &format!("CLUSTER SETSLOT 5 MIGRATING {two}")),
        "-ERR Slot export in progress."
    );
    assert_eq!(ask(&mut first, "CLUSTER CANCELSLOTMIGRATIONS"), "OK");
    assert_eq!(states(&mut first), ["cancelled"]);
    cluster.servers()[1].signal(Signal::CONT).unwrap();
    let mut second = cluster.connect(1).unwrap();
    assert!(wait::until(|| states(&mut second) == ["cancelled"]));
    assert_eq!(ask(&mut first, &format!("CLUSTER MIGRATESLOTS SLOTSRANGE 0 9 NODE {two}")), "OK");
    assert!(wait::until(|| is_over(&mut first)));
    assert_eq!(states(&mut first), ["success", "cancelled"]);
}

/// Kills a node while slots move, starts it again, and looks for all keys.
fn killed(victim: usize) {
    let mut cluster = TowlineCluster::start(3, DURABLE).unwrap();
    fill(&cluster, 2000);
    let two = cluster.id(1).unwrap();
    let command = format!("CLUSTER MIGRATESLOTS SLOTSRANGE 0 5460 NODE {two}");
    assert_eq!(ask(&mut cluster.connect(0).unwrap(), &command), "OK");
    cluster.servers()[victim].signal(Signal::KILL).unwrap();
    let bus = free_port().unwrap().to_string();
    let flags = [&["--cluster-enabled", "yes", "--cluster-port", &bus], DURABLE].concat();
    cluster.servers_mut()[victim].start_elsewhere(&flags).unwrap();
    cluster.wait_until_whole(3).unwrap();
    let mut first = cluster.connect(0).unwrap();
    assert!(wait::until(|| is_over(&mut first)), "{:?}", states(&mut first));
    assert!(wait::until(|| {
        let sizes =
            (0..3).map(|node| ask(&mut cluster.connect(node).unwrap(), "DBSIZE").parse::<usize>().unwrap());
        sizes.sum::<usize>() == 2000
    }));
    check(&cluster, 2000);
}

#[test]
fn a_source_that_is_killed_has_all_keys_or_the_target_has() {
    killed(0);
}

#[test]
fn a_target_that_is_killed_has_all_keys_or_the_source_has() {
    killed(1);
}

//! Single keys stay linearizable while their slots move, by both ways; and the judge finds servers that are not one register.

use e2e::clusters::key_in;
use e2e::linearizable::Unexplained;
use e2e::process::{Server, ServerKind, towline_binary};
use e2e::registers::{Judgement, Registers};
use e2e::towline_cluster::TowlineCluster;
use e2e::value::Value;
use e2e::wait;
use std::process::{Command, Stdio};
use towline_client::Client;

/// The slots of the keys, one key in each.
const SLOTS: std::ops::Range<u16> = 0..8;
const TASKS: usize = 6;

/// Runs a load while `act` runs, on a thread of its own, and judges it. What it returns is kept until the load has ended: the servers.
fn judge<T: Send + 'static>(urls: &[String], act: impl FnOnce() -> T + Send + 'static) -> Judgement {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let judgement = runtime.block_on(async {
        let mut clients = Vec::new();
        for url in urls {
            clients.push(Client::connect(url).await.unwrap());
        }
        let keys = SLOTS.map(|slot| key_in(slot, "r")).collect();
        let registers = Registers::start(&clients, keys, TASKS, 1);
        let servers = tokio::task::spawn_blocking(act).await.unwrap();
        let judgement = registers.finish().await.unwrap();
        drop(servers);
        judgement
    });
    runtime.shutdown_background();
    judgement
}

/// Moves all the slots as a whole, and waits until they are there.
fn migrate(cluster: &TowlineCluster, from: usize, to: usize) {
    let (first, last) = (SLOTS.start, SLOTS.end - 1);
    let command = format!("CLUSTER MIGRATESLOTS SLOTSRANGE {first} {last} NODE {}", cluster.id(to).unwrap());
    let reply = cluster.connect(from).unwrap().words(&command).unwrap();
    assert_eq!(reply.error(), None);
    let target = cluster.id(to).unwrap();
    let owns = || {
        let members = cluster.members(2).unwrap();
        members.iter().any(|member| member.id == target && member.slots.iter().any(|slots| slots.0 == first))
    };
    assert!(wait::until(owns), "they do not move");
}

/// Moves all the slots key by key, with the tool.
fn reshard(cluster: &TowlineCluster, to: usize) {
    let ranges = format!("{}-{}", SLOTS.start, SLOTS.end - 1);
    let node = cluster.servers()[2].address().to_string();
    let output = Command::new(towline_binary().unwrap())
        .args(["cluster", "reshard", &node, "--to", &cluster.id(to).unwrap(), "--ranges", &ranges])
        .args(["--classic", "--yes"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn keys_are_linearizable_while_their_slots_move() {
    let cluster = TowlineCluster::start(3, &[]).unwrap();
    let url = format!("redis://127.0.0.1:{}/?cluster=true", cluster.servers()[2].port());
    let judgement = judge(&[url.clone(), url], move || {
        for _ in 0..3 {
            migrate(&cluster, 0, 1);
            reshard(&cluster, 0);
            reshard(&cluster, 1);
            migrate(&cluster, 1, 0);
        }
        cluster
    });
    assert_eq!(judgement.unexplained, []);
    assert!(judgement.answered > 1000, "{judgement:?}");
    assert_eq!(judgement.unknown, 0, "nothing was lost, so nothing is unknown");
}

#[test]
fn two_servers_that_both_serve_a_key_are_found_out() {
    let servers: Vec<Server> = (0..2).map(|_| Server::start(ServerKind::Towline, &[]).unwrap()).collect();
    let urls: Vec<String> =
        servers.iter().map(|server| format!("redis://127.0.0.1:{}", server.port())).collect();
    let judgement = judge(&urls, move || {
        let mut watcher = servers[0].connect().unwrap();
        let commands = |conn: &mut e2e::conn::Conn| {
            let Value::Bulk(info) = conn.words("INFO stats").unwrap() else { panic!("no stats") };
            let info = String::from_utf8_lossy(&info).into_owned();
            let line = info.lines().find_map(|line| line.strip_prefix("total_commands_processed:"));
            line.and_then(|count| count.trim().parse::<u64>().ok()).unwrap()
        };
        assert!(wait::until(|| commands(&mut watcher) > 300));
        servers
    });
    let is_found =
        |(_, unexplained): &(String, Unexplained)| matches!(unexplained, Unexplained::Impossible { .. });
    assert!(judgement.unexplained.iter().any(is_found), "{judgement:?}");
}

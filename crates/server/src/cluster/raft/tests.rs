//! Several nodes in one process, over real sockets and disks in memory.

use super::format::inconsistent;
use super::node::{RaftConfig, RaftLog, StartError};
use crate::cluster::links::MigrationStream;
use crate::cluster::links::messages::Response;
use crate::cluster::log::{MeetError, MetadataLog, Peer, ProposeError};
use crate::persistence::disk::Disk;
use crate::persistence::faulty_disk::{Fault, FaultyDisk};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;
use towline_cluster_proto::{Announced, Change, Health, Metadata, NodeId, Outcome, Refused};

mod crashes;

/// Long enough for a machine that does something else, too.
const DEADLINE: Duration = Duration::from_secs(120);
const HOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const NODE_TIMEOUT: Duration = Duration::from_secs(5);

/// A node, with what is left of it when it is stopped.
struct Node {
    log: Arc<RaftLog>,
    disk: FaultyDisk,
    migrations: mpsc::Receiver<MigrationStream>,
}

fn disk() -> FaultyDisk {
    let disk = FaultyDisk::default();
    disk.make_dir(Path::new("/node")).unwrap();
    disk
}

async fn start_with(disk: FaultyDisk, secret: &str) -> Node {
    let (sender, migrations) = mpsc::channel(4);
    let config = RaftConfig {
        dir: PathBuf::from("/node"),
        file: "nodes.conf".into(),
        disk: Arc::new(disk.clone()),
        bind: vec![SocketAddr::new(HOST, 0)],
        announced: Announced { port: 7000, ..Announced::default() },
        secret: secret.as_bytes().to_vec(),
        node_timeout: NODE_TIMEOUT,
        migrations: sender,
    };
    let log = timeout(DEADLINE, RaftLog::start(config)).await.expect("a start takes too long").unwrap();
    Node { log, disk, migrations }
}

async fn start() -> Node {
    start_with(disk(), "").await
}

impl Node {
    fn id(&self) -> NodeId {
        self.log.standing().borrow().node
    }

    fn peer(&self) -> Peer {
        Peer { ip: HOST, port: 7000, bus_port: self.log.announced().bus_port }
    }

    fn now(&self) -> Arc<Metadata> {
        Arc::clone(&self.log.metadata().borrow())
    }

    async fn propose(&self, change: Change) -> Outcome {
        timeout(DEADLINE, self.log.propose(change)).await.expect("a proposal takes too long").unwrap()
    }

    async fn meet(&self, other: &Self) {
        timeout(DEADLINE, self.log.meet(other.peer())).await.expect("a meeting takes too long").unwrap();
    }

    async fn sees(&self, what: &str, is: impl Fn(&Metadata) -> bool) {
        let mut metadata = self.log.metadata();
        let seen = timeout(DEADLINE, metadata.wait_for(|metadata| is(metadata))).await;
        seen.unwrap_or_else(|_| panic!("{} does not see: {what}; {:?}", self.id(), self.now())).unwrap();
    }

    async fn is_fresh(&self, wanted: bool) {
        let mut standing = self.log.standing();
        let seen = timeout(DEADLINE, standing.wait_for(|standing| standing.is_fresh == wanted)).await;
        seen.unwrap_or_else(|_| panic!("it does not become fresh: {wanted}")).unwrap();
    }

    async fn leader(&self) -> NodeId {
        let mut standing = self.log.standing();
        let seen = timeout(DEADLINE, standing.wait_for(|standing| standing.leader.is_some())).await;
        seen.expect("nobody leads").unwrap().leader.unwrap()
    }

    async fn stop(self) -> FaultyDisk {
        timeout(DEADLINE, self.log.shutdown()).await.expect("a stop takes too long");
        self.disk.copy()
    }

    /// Waits for links to all others, in both directions.
    async fn has_links_to(&self, ids: &[NodeId]) {
        let has = |id: NodeId, is_outgoing| {
            self.log.links().iter().any(|link| link.node == id && link.is_outgoing == is_outgoing)
        };
        let all = || ids.iter().filter(|id| **id != self.id()).all(|&id| has(id, true) && has(id, false));
        let waiting = async {
            while !all() {
                tokio::task::yield_now().await;
            }
        };
        timeout(DEADLINE, waiting).await.expect("a link is missing");
    }

    /// Waits until these are the voters, here, and no change of them is under way: until then the voters before have a say.
    async fn has_voters(&self, count: usize) {
        let mut metrics = self.log.metrics();
        let is = |configs: &[BTreeSet<u64>]| configs.len() == 1 && configs[0].len() == count;
        let wait = metrics.wait_for(|metrics| is(metrics.membership_config.membership().get_joint_config()));
        let seen = timeout(DEADLINE, wait).await;
        seen.unwrap_or_else(|_| panic!("there are never {count} voters")).unwrap();
    }
}

async fn all_have_voters(nodes: &[Node], count: usize) {
    for node in nodes {
        node.has_voters(count).await;
    }
}

/// Nodes that have met the first.
async fn cluster(count: usize) -> Vec<Node> {
    let mut nodes = Vec::new();
    for _ in 0..count {
        nodes.push(start().await);
    }
    for other in &nodes[1..] {
        other.meet(&nodes[0]).await;
    }
    all_know(&nodes, count).await;
    nodes
}

async fn all_know(nodes: &[Node], count: usize) {
    for node in nodes {
        node.sees(&format!("{count} nodes"), |metadata| metadata.nodes().len() == count).await;
        node.is_fresh(true).await;
    }
}

fn position(nodes: &[Node], id: NodeId) -> usize {
    nodes.iter().position(|node| node.id() == id).expect("the leader is one of them")
}

fn bump(node: NodeId) -> Change {
    Change::BumpEpoch { node }
}

#[tokio::test]
async fn a_node_that_is_alone_orders_changes_and_has_them_again_when_it_comes_back() {
    let node = start().await;
    let (id, before) = (node.id(), node.now());
    assert!(before.is_primary(id));
    assert_eq!(node.propose(Change::AddSlots { node: id, slots: vec![(0, 99)] }).await, Outcome::Done);
    assert_eq!(node.now().slots_of(id), [(0, 99)], "it is seen once it was proposed");
    let refused = node.propose(Change::AddSlots { node: id, slots: vec![(5, 5)] }).await;
    assert_eq!(refused, Outcome::Refused(Refused::SlotBusy(5)));
    let before = node.now();
    let node = start_with(node.stop().await, "").await;
    assert_eq!(node.id(), id);
    node.sees("its slots", |metadata| metadata.slots_of(id) == [(0, 99)]).await;
    // It is bound elsewhere now, and says so.
    let port = node.log.announced().bus_port;
    node.sees("its new port", |metadata| metadata.node(id).is_some_and(|me| me.at.bus_port == port)).await;
    assert_eq!(node.now().cluster(), before.cluster());
    let many: Vec<_> = (0..50).map(|_| node.log.propose(bump(id))).collect();
    for answer in many {
        assert!(matches!(answer.await, Ok(Outcome::Epoch { .. })));
    }
    node.stop().await;
}

#[tokio::test]
async fn nodes_that_meet_bring_their_slots_and_order_changes_at_any_of_them() {
    let nodes = [start().await, start().await, start().await];
    let ids: Vec<NodeId> = nodes.iter().map(Node::id).collect();
    for (number, node) in nodes.iter().enumerate() {
        let first = number as u16 * 5000;
        let slots = vec![(first, first + 4999)];
        assert_eq!(node.propose(Change::AddSlots { node: node.id(), slots }).await, Outcome::Done);
        let epoch = number as u64 + 1;
        assert_eq!(node.propose(Change::SetConfigEpoch { node: node.id(), epoch }).await, Outcome::Done);
    }
    // As tools do: all at once, to the first.
    let meetings = [nodes[1].log.meet(nodes[0].peer()), nodes[2].log.meet(nodes[0].peer())];
    for meeting in meetings {
        timeout(DEADLINE, meeting).await.unwrap().unwrap();
    }
    all_know(&nodes, 3).await;
    all_have_voters(&nodes, 3).await;
    for (number, node) in nodes.iter().enumerate() {
        let peer = ids[(number + 1) % 3];
        assert!(matches!(node.propose(bump(peer)).await, Outcome::Epoch { is_new: true, .. }));
    }
    let last = Change::SetMigrating { node: ids[0], slot: 7, to: ids[2] };
    assert_eq!(nodes[2].propose(last).await, Outcome::Done);
    for node in &nodes {
        node.sees("the last change", |metadata| metadata.marker(ids[0], 7).is_some()).await;
        assert_eq!(node.now(), nodes[0].now());
        assert_eq!(node.now().slots_of(ids[1]), [(5000, 9999)]);
        assert_eq!(node.now().node(ids[2]).unwrap().at.ip, HOST.to_string(), "the address was found out");
    }
    for node in &nodes {
        node.has_links_to(&ids).await;
    }
    nodes[1].meet(&nodes[0]).await;
    assert_eq!(nodes[0].now().nodes().len(), 3, "who has met before has nothing to do");
}

#[tokio::test]
async fn seven_of_eight_nodes_vote() {
    let nodes = cluster(8).await;
    all_have_voters(&nodes, 7).await;
    for node in &nodes {
        assert!(matches!(node.propose(bump(node.id())).await, Outcome::Epoch { .. }));
    }
}

#[tokio::test]
async fn a_leader_that_goes_is_replaced_and_found_to_have_failed_until_it_comes_back_elsewhere() {
    let mut nodes = cluster(3).await;
    let leader = nodes[0].leader().await;
    all_have_voters(&nodes, 3).await;
    let gone = nodes.swap_remove(position(&nodes, leader));
    let left = gone.stop().await;
    let failed = |metadata: &Metadata| {
        metadata.node(leader).is_some_and(|node| matches!(node.health, Health::Failed { .. }))
    };
    for node in &nodes {
        node.sees("that the leader failed", failed).await;
        node.is_fresh(true).await;
        assert!(matches!(node.propose(bump(node.id())).await, Outcome::Epoch { .. }));
    }
    let back = start_with(left, "").await;
    let port = back.log.announced().bus_port;
    for node in nodes.iter().chain([&back]) {
        node.sees("that it is back", |metadata| {
            metadata
                .node(leader)
                .is_some_and(|node| node.health == Health::Online && node.at.bus_port == port)
        })
        .await;
        node.is_fresh(true).await;
    }
}

#[tokio::test]
async fn without_a_quorum_nobody_is_fresh_and_nothing_changes() {
    let mut nodes = cluster(3).await;
    all_have_voters(&nodes, 3).await;
    let disks = [nodes.remove(2).stop().await, nodes.remove(1).stop().await];
    let node = &nodes[0];
    node.is_fresh(false).await;
    let before = node.now();
    let refused = timeout(DEADLINE, node.log.propose(bump(node.id()))).await.unwrap();
    assert!(matches!(refused, Err(ProposeError::NoQuorum(_))), "{refused:?}");
    assert_eq!(node.now(), before);
    for disk in disks {
        nodes.push(start_with(disk, "").await);
    }
    all_know(&nodes, 3).await;
}

#[tokio::test]
async fn all_nodes_come_back_at_other_ports() {
    let nodes = cluster(3).await;
    all_have_voters(&nodes, 3).await;
    let ports: Vec<u16> = nodes.iter().map(|node| node.log.announced().bus_port).collect();
    let mut back = Vec::new();
    for node in nodes {
        back.push(start_with(node.stop().await, "").await);
    }
    // None of them is where the others know it: as in Redis, an operator has to say where one is.
    let moved =
        back.iter().zip(&ports).filter(|(node, port)| node.log.announced().bus_port != **port).count();
    assert!(moved > 0);
    back[1].meet(&back[0]).await;
    back[2].meet(&back[0]).await;
    all_know(&back, 3).await;
    for node in &back {
        let (id, port) = (node.id(), node.log.announced().bus_port);
        for other in &back {
            other.sees("the new port", |metadata| metadata.node(id).unwrap().at.bus_port == port).await;
        }
    }
}

#[tokio::test]
async fn a_node_that_is_forgotten_is_out_and_one_that_is_reset_can_come_back() {
    let mut nodes = cluster(4).await;
    let leader = nodes[0].leader().await;
    let out = nodes.iter().position(|node| node.id() != leader).unwrap();
    let out = nodes.remove(out);
    let forget = Change::Forget { by: leader, node: out.id(), now_ms: 1 };
    assert_eq!(nodes[0].propose(forget).await, Outcome::Done);
    all_know(&nodes, 3).await;
    out.is_fresh(false).await;
    timeout(DEADLINE, out.log.reset(out.id())).await.unwrap().unwrap();
    out.sees("itself alone", |metadata| metadata.nodes().len() == 1).await;
    out.is_fresh(true).await;
    assert_eq!(out.propose(Change::AddSlots { node: out.id(), slots: vec![(1, 2)] }).await, Outcome::Done);
    out.meet(&nodes[1]).await;
    nodes.push(out);
    all_know(&nodes, 4).await;
    // This one leaves with the knowledge of the others, under another name, also if it leads.
    let leaving = nodes.remove(position(&nodes, leader));
    let name = NodeId::from_bytes([7; NodeId::BYTES]);
    timeout(DEADLINE, leaving.log.reset(name)).await.unwrap().unwrap();
    all_know(&nodes, 3).await;
    leaving.sees("itself alone", |metadata| metadata.nodes().keys().eq([&name])).await;
    leaving.meet(&nodes[2]).await;
    nodes.push(leaving);
    all_know(&nodes, 4).await;
    assert_eq!(nodes[3].id(), name);
}

#[tokio::test]
async fn a_node_that_was_reset_without_a_quorum_gets_another_seat() {
    let mut nodes = cluster(3).await;
    let leader = nodes[0].leader().await;
    all_have_voters(&nodes, 3).await;
    let lost = nodes.iter().position(|node| node.id() != leader).unwrap();
    let lost = nodes.remove(lost);
    let id = lost.id();
    // Its disk is gone, but its name was written down somewhere.
    lost.stop().await;
    let anew = start().await;
    timeout(DEADLINE, anew.log.reset(id)).await.unwrap().unwrap();
    anew.meet(&nodes[0]).await;
    nodes.push(anew);
    all_know(&nodes, 3).await;
    all_have_voters(&nodes, 3).await;
    assert_eq!(nodes[2].id(), id);
}

#[tokio::test]
async fn whoever_does_not_know_the_secret_is_not_let_in() {
    let (one, two) = (start_with(disk(), "s3cret").await, start_with(disk(), "s3cret").await);
    let (other, none) = (start_with(disk(), "another").await, start().await);
    for stranger in [&other, &none] {
        let met = timeout(DEADLINE, stranger.log.meet(one.peer())).await.unwrap();
        assert_eq!(met, Err(MeetError::Secret));
        let met = timeout(DEADLINE, one.log.meet(stranger.peer())).await.unwrap();
        assert_eq!(met, Err(MeetError::Secret));
    }
    one.meet(&two).await;
    all_know(&[one, two], 2).await;
    assert_eq!(other.now().nodes().len(), 1);
}

#[tokio::test]
async fn a_node_that_is_alone_is_invited_and_two_clusters_stay_two() {
    let (mut nodes, others) = (cluster(2).await, cluster(2).await);
    let lone = start().await;
    nodes[1].meet(&lone).await;
    nodes.push(lone);
    all_know(&nodes, 3).await;
    let met = timeout(DEADLINE, nodes[0].log.meet(others[1].peer())).await.unwrap();
    assert_eq!(met, Err(MeetError::TwoClusters));
    let nobody = Peer { ip: HOST, port: 1, bus_port: 1 };
    let met = timeout(DEADLINE, nodes[0].log.meet(nobody)).await.unwrap();
    assert!(matches!(met, Err(MeetError::Unreachable { .. })), "{met:?}");
}

#[tokio::test]
async fn two_nodes_that_meet_each_other_at_once_are_one_cluster() {
    let nodes = [start().await, start().await];
    let meetings = [nodes[0].log.meet(nodes[1].peer()), nodes[1].log.meet(nodes[0].peer())];
    for meeting in meetings {
        timeout(DEADLINE, meeting).await.unwrap().unwrap();
    }
    all_know(&nodes, 2).await;
    assert_eq!(nodes[0].now(), nodes[1].now());
}

#[tokio::test]
async fn a_connection_for_slots_is_handed_over_after_its_handshake() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut nodes = cluster(2).await;
    let (from, to) = (nodes[0].id(), nodes[1].id());
    let mut stream = timeout(DEADLINE, nodes[0].log.connect(to)).await.unwrap().unwrap();
    let mut taken = timeout(DEADLINE, nodes[1].migrations.recv()).await.unwrap().unwrap();
    assert_eq!(taken.node, from);
    stream.write_all(b"slots").await.unwrap();
    let mut bytes = [0; 5];
    timeout(DEADLINE, taken.stream.read_exact(&mut bytes)).await.unwrap().unwrap();
    assert_eq!(&bytes, b"slots");
    assert!(nodes[0].log.connect(NodeId::from_bytes([9; NodeId::BYTES])).await.is_err());
}

#[tokio::test]
async fn what_is_no_node_is_sent_away() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let node = start().await;
    let at = SocketAddr::new(HOST, node.log.announced().bus_port);
    for bytes in [&b"RCmb\0\0\0\x10 and more of that"[..], b"TOWLBUS\n\xff\xff", b"TOWLBUS\n\x03\0abc"] {
        let mut stream = tokio::net::TcpStream::connect(at).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut rest = Vec::new();
        // Closed, by an end or a reset.
        let _ = timeout(DEADLINE, stream.read_to_end(&mut rest)).await.expect("it is not sent away");
        assert!(rest.is_empty());
    }
    assert!(matches!(node.propose(bump(node.id())).await, Outcome::Epoch { .. }));
}

#[tokio::test]
async fn a_node_whose_disk_fails_serves_nothing_until_it_is_started_again() {
    let nodes = cluster(3).await;
    all_have_voters(&nodes, 3).await;
    let id = nodes[1].id();
    nodes[1].disk.set_fault(Fault::Syncs);
    // Whoever leads, this node has to write it down.
    assert!(matches!(nodes[0].propose(bump(id)).await, Outcome::Epoch { .. }));
    nodes[1].is_fresh(false).await;
    let answer = timeout(DEADLINE, nodes[1].log.propose(bump(id))).await.unwrap();
    assert!(answer.is_err(), "{answer:?}");
    let mut nodes = nodes;
    let back = start_with(nodes.remove(1).stop().await, "").await;
    back.is_fresh(true).await;
    assert!(matches!(back.propose(bump(id)).await, Outcome::Epoch { .. }));
}

#[tokio::test]
async fn two_processes_are_not_one_node() {
    let node = start().await;
    let (migrations, _) = mpsc::channel(1);
    let again = RaftLog::start(RaftConfig {
        dir: PathBuf::from("/node"),
        file: "nodes.conf".into(),
        disk: Arc::new(node.disk.clone()),
        bind: Vec::new(),
        announced: Announced::default(),
        secret: Vec::new(),
        node_timeout: NODE_TIMEOUT,
        migrations,
    });
    assert!(matches!(again.await, Err(StartError::Locked { .. })));
}

#[tokio::test]
async fn who_joins_late_gets_a_snapshot_and_a_log_that_is_cut_comes_back() {
    let node = start().await;
    let id = node.id();
    assert_eq!(node.propose(Change::AddSlots { node: id, slots: vec![(0, 16383)] }).await, Outcome::Done);
    for _ in 0..30 {
        let many: Vec<_> = (0..50).map(|_| node.log.propose(bump(id))).collect();
        for answer in many {
            assert!(matches!(answer.await, Ok(Outcome::Epoch { .. })));
        }
    }
    let mut metrics = node.log.metrics();
    let cut = timeout(DEADLINE, metrics.wait_for(|metrics| metrics.purged.is_some()));
    cut.await.expect("the log is never cut").unwrap();
    let late = start().await;
    late.meet(&node).await;
    let nodes = [node, late];
    all_know(&nodes, 2).await;
    assert_eq!(nodes[0].now(), nodes[1].now());
    for node in nodes {
        let before = node.now();
        let disk = node.stop().await;
        assert!(disk.paths().iter().any(|path| path.extension().is_some_and(|end| end == "snapshot")));
        let node = start_with(disk, "").await;
        node.sees("its slots", |metadata| metadata.slots_of(id) == before.slots_of(id)).await;
    }
}

#[tokio::test]
async fn a_snapshot_that_cannot_be_is_refused_whoever_sends_it() {
    let nodes = cluster(3).await;
    all_have_voters(&nodes, 3).await;
    let leader = nodes[0].leader().await;
    let follower = nodes.iter().find(|node| node.id() != leader).unwrap();
    let before = follower.now();
    let answer = follower.log.take_snapshot(inconsistent(&before)).await;
    assert!(matches!(answer, Response::NotHere), "{answer:?}");
    assert!(follower.now().check().is_ok());
    assert_eq!(
        follower.propose(Change::BumpEpoch { node: follower.id() }).await,
        Outcome::Epoch { epoch: 1, is_new: true }
    );
    let answer = follower.log.take_snapshot(Metadata::clone(&follower.now())).await;
    assert!(matches!(answer, Response::Snapshot(_)), "{answer:?}");
}

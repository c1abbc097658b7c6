//! What can be seen of a cluster's client.
//!
//! Owns the report and the sums. Does not own what is counted (the nodes' bridges).

use towline_client_proto::routing::Lag;
use towline_client_proto::{Counters, LinkState, Snapshot};
use towline_cluster::Role;

use super::Cluster;
use super::node::Node;
use crate::client::Client;
use crate::clock;
use crate::lease::LeaseReport;

/// The cluster as a client sees it; see [`Client::cluster_report`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ClusterReport {
    /// The nodes, in no particular order.
    pub nodes: Vec<NodeReport>,
    /// How often the map was asked for.
    pub refreshes: u64,
    /// Slots that have an owner: 16384 if all is well.
    pub slots_covered: usize,
}

/// One node of a [`ClusterReport`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct NodeReport {
    /// Where it is dialled.
    pub address: String,
    /// Its name in the cluster; empty if only a redirect has named it so far.
    pub id: String,
    /// Whether it is a replica.
    pub is_replica: bool,
    /// Its availability zone, where servers tell.
    pub zone: Option<String>,
    /// How many slots it has.
    pub slots: usize,
    /// What its connection is doing, or that of its lanes that does worst; `None` if nobody has used it yet.
    pub link: Option<LinkState>,
    /// What its connection for reads as a replica is doing; `None` if nobody has read from it yet.
    pub reader: Option<LinkState>,
    /// How many bytes of the replication stream it was behind its primary when that was last looked at; `None` for a primary,
    /// without a bound ([`ClusterOptions::replica_lag_max`](crate::ClusterOptions::replica_lag_max)), and for a replica that has
    /// not been read from, has lost its primary, or does not answer.
    pub lag_bytes: Option<u64>,
    /// How many of its lanes serve.
    pub lanes_up: usize,
}

impl Cluster {
    fn snapshots(&self) -> Vec<Snapshot> {
        let now = clock::now();
        let nodes: Vec<_> = self.lock().nodes.values().cloned().collect();
        let clients = nodes.iter().flat_map(|node| node.clients());
        clients.flat_map(|client| client.inner.engines()).map(|it| it.lock().bridge.snapshot(now)).collect()
    }

    /// The nodes' states in one: the least connected of them, and sums.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let past = self.lock().past;
        Snapshot::merged(self.snapshots(), &past)
    }

    pub(crate) fn counters(&self) -> Counters {
        let mut sum = self.lock().past;
        self.snapshots().iter().for_each(|snapshot| sum.add(&snapshot.counters));
        sum
    }

    pub(crate) fn lease_report(&self) -> LeaseReport {
        let nodes: Vec<_> = self.lock().nodes.values().cloned().collect();
        let mut sum = LeaseReport::default();
        nodes.iter().filter_map(|node| node.client()).for_each(|client| sum.add(&client.lease_report()));
        sum
    }

    fn report(&self) -> ClusterReport {
        let routes = self.routes.load();
        let link = |client: &Client| client.inner.endpoint().lock().bridge.link_state();
        let nodes: Vec<NodeReport> = routes
            .described()
            .map(|(node, info, slots)| NodeReport {
                address: node.address.to_string(),
                id: info.id.as_deref().unwrap_or_default().to_owned(),
                is_replica: info.role == Role::Replica,
                zone: info.zone.as_deref().map(str::to_owned),
                slots,
                link: links(node).find(|link| *link != LinkState::Up).or_else(|| links(node).next()),
                lanes_up: links(node).filter(|link| *link == LinkState::Up).count(),
                reader: node.reader().map(link),
                lag_bytes: match node.lag() {
                    Lag::Bytes(bytes) => Some(bytes),
                    _ => None,
                },
            })
            .collect();
        let slots_covered = nodes.iter().map(|node| node.slots).sum();
        ClusterReport { nodes, refreshes: self.lock().router.refreshes(), slots_covered }
    }
}

/// What the lanes of a node are doing.
fn links(node: &Node) -> impl Iterator<Item = LinkState> {
    let engines = node.client().into_iter().flat_map(|client| client.inner.engines());
    engines.map(|engine| engine.lock().bridge.link_state())
}

impl Client {
    /// The cluster as this client sees it; `None` if it is a client of one server.
    pub fn cluster_report(&self) -> Option<ClusterReport> {
        self.inner.cluster().map(|cluster| cluster.report())
    }
}

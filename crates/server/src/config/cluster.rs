//! What of the configuration concerns the cluster.
//!
//! Owns: the parameters, their defaults and the reasons. Does **not** own what is done with them (see [`crate::cluster`]).

use std::fmt;
use std::time::Duration;

/// `cluster-preferred-endpoint-type`: by what clients are told where a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PreferredEndpoint {
    /// Its address. The default, as in Redis.
    #[default]
    Ip,
    /// Its name; `?` if it has none.
    Hostname,
    /// Nothing: clients use the address by which they reached the node that they asked.
    Unknown,
}

/// `cluster-secret`: what nodes prove to each other that they know. It is never shown.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(pub Vec<u8>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "Secret(none)" } else { "Secret(redacted)" })
    }
}

/// The node as a part of a cluster. Parameters of Redis that have no effect here are only known by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterConfig {
    /// `cluster-enabled`. Default no.
    pub is_enabled: bool,
    /// `cluster-config-file`: the file in `dir` that keeps who this node is. Default `nodes.conf`, as in Redis; its form is our own.
    pub config_file: String,
    /// `cluster-port`: where other nodes reach this one; 0, the default, is the client port plus 10000.
    pub port: u16,
    /// `cluster-node-timeout`, milliseconds: how long a node may not answer before it counts as failed, and how long this node serves
    /// without hearing of a quorum. Default 15 s, as in Redis.
    pub node_timeout_ms: u64,
    /// `cluster-require-full-coverage`: whether nothing is served while a slot has no owner that answers. Default yes, as in Redis.
    pub require_full_coverage: bool,
    /// `cluster-allow-reads-when-down`. Default no.
    pub allow_reads_when_down: bool,
    /// `cluster-allow-pubsubshard-when-down`. Default yes.
    pub allow_pubsubshard_when_down: bool,
    /// `cluster-announce-ip`; empty: the first address of `bind` if that is one, else that by which others reach this node.
    pub announce_ip: String,
    /// `cluster-announce-port`; 0: `port`.
    pub announce_port: u16,
    /// `cluster-announce-tls-port`; 0: `tls-port`.
    pub announce_tls_port: u16,
    /// `cluster-announce-bus-port`; 0: the port that is listened on.
    pub announce_bus_port: u16,
    /// `cluster-announce-hostname`; empty: none.
    pub announce_hostname: String,
    /// `cluster-announce-human-nodename`; empty: none.
    pub announce_human_nodename: String,
    /// `cluster-preferred-endpoint-type`.
    pub preferred_endpoint: PreferredEndpoint,
    /// `cluster-slot-migration-log-max-len`: migrations of slots that are over and still listed. Default 1000, as in Valkey.
    pub slot_migration_log_max_len: usize,
    /// `cluster-secret`; empty, the default: links between nodes are open to everybody, as Redis's are.
    pub secret: Secret,
}

impl Default for ClusterConfig {
    fn default() -> Self {
        Self {
            is_enabled: false,
            config_file: "nodes.conf".into(),
            port: 0,
            node_timeout_ms: 15_000,
            require_full_coverage: true,
            allow_reads_when_down: false,
            allow_pubsubshard_when_down: true,
            announce_ip: String::new(),
            announce_port: 0,
            announce_tls_port: 0,
            announce_bus_port: 0,
            announce_hostname: String::new(),
            announce_human_nodename: String::new(),
            preferred_endpoint: PreferredEndpoint::default(),
            slot_migration_log_max_len: 1000,
            secret: Secret::default(),
        }
    }
}

/// How far the port for nodes is from the port for clients, as in Redis.
pub(crate) const BUS_PORT_OFFSET: u16 = 10_000;

impl ClusterConfig {
    /// `cluster-node-timeout`.
    pub fn node_timeout(&self) -> Duration {
        Duration::from_millis(self.node_timeout_ms)
    }

    /// The port for other nodes, given the one for clients; `None` if none is set and none follows from that one.
    pub fn bus_port(&self, client_port: u16) -> Option<u16> {
        match self.port {
            0 => client_port.checked_add(BUS_PORT_OFFSET),
            port => Some(port),
        }
    }
}

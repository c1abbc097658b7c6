//! A node as the cluster knows it.

use crate::id::NodeId;
use serde::{Deserialize, Serialize};

/// What a node says of itself: where clients and other nodes reach it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Announced {
    /// `cluster-announce-ip`, or the address by which others were seen to reach it. Empty if not known yet.
    pub ip: String,
    /// Port for clients without TLS; 0 if there is none.
    pub port: u16,
    /// Port for clients with TLS; 0 if there is none.
    pub tls_port: u16,
    /// Port of the links between nodes.
    pub bus_port: u16,
    /// `cluster-announce-hostname`; empty if there is none.
    pub hostname: String,
    /// `cluster-announce-human-nodename`; empty if there is none.
    pub name: String,
}

/// Longest host name, address or node name, in bytes: that of a host name in DNS.
pub const NAME_BYTES_MAX: usize = 255;

impl Announced {
    /// Whether the texts can stand in a line of `CLUSTER NODES` without being taken for something else: letters, digits and `.-_:%` in
    /// addresses, host names and node names, of at most [`NAME_BYTES_MAX`] bytes.
    pub fn is_valid(&self) -> bool {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:%".contains(&byte);
        let texts = [&self.ip, &self.hostname, &self.name];
        texts.iter().all(|text| text.len() <= NAME_BYTES_MAX && text.bytes().all(is_plain))
    }
}

/// What a node does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// It may own slots.
    Primary,
    /// It copies that node, a primary.
    Replica {
        /// The primary.
        of: NodeId,
    },
}

/// Whether a node answers, as the leader of the log sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Health {
    /// It does.
    Online,
    /// It has not for `cluster-node-timeout`.
    Failed {
        /// Since when, in unix milliseconds of the leader.
        since_ms: u64,
    },
}

/// A node of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// The name of its shard: a primary and its replicas share it.
    pub shard: NodeId,
    /// Where it is.
    pub at: Announced,
    /// What it does.
    pub role: Role,
    /// Version of its claim to its slots; 0 at first. Tools compare it, consensus does not need it.
    pub config_epoch: u64,
    /// Whether it answers.
    pub health: Health,
}

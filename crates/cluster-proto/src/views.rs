//! What a node says about its cluster: the replies that clients and tools read.
//!
//! Owns: their texts and shapes, in RESP2 and RESP3, and how a node is named to a client. Does **not** own which node may be asked, nor
//! what links, counters and progress are: the server gives them. Does not own how clients read these replies (`towline-cluster`
//! does, and the tests here read them with it).
//!
//! Ranges of slots are written in one form on all nodes: tools compare them as texts.
//!
//! Sources: Redis documentation of `CLUSTER NODES`, `SLOTS`, `SHARDS`, `INFO`, `LINKS`, `REPLICAS`; Valkey's of
//! `GETSLOTMIGRATIONS`. Shapes and orders of fields are those that Redis 7.0, Redis 8.2 and Valkey 9.1 were seen to give.

mod info;
mod links;
mod migrations;
mod nodes;
mod slots;
#[cfg(test)]
mod tests;

pub use info::Facts;
pub use links::{LinkFacts, links};
pub use migrations::Progress;

use crate::gate::{CROSS_SLOT, TRY_AGAIN, Verdict};
use crate::id::NodeId;
use crate::metadata::Metadata;
use crate::node::Node;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// `cluster-preferred-endpoint-type`: how nodes are named to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EndpointType {
    /// By address. The default, as in Redis: it needs no name service.
    #[default]
    Ip,
    /// By host name; a node without one is `?`.
    Hostname,
    /// Not at all: the client takes the host that it asked, with the node's port.
    Unknown,
}

/// The client that reads an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reader {
    /// How it gets nodes named.
    pub preferred: EndpointType,
    /// Whether it came by TLS: then it gets the ports for that.
    pub is_tls: bool,
}

impl Reader {
    /// The port of a node for this client: the one for its kind of connection, if there is one.
    pub fn port(self, node: &Node) -> u16 {
        match (self.is_tls, node.at.port, node.at.tls_port) {
            (true, plain, 0) => plain,
            (true, _, tls) => tls,
            (false, 0, tls) => tls,
            (false, plain, _) => plain,
        }
    }

    /// The host of a node for this client; `None` if it has to take the one that it asked.
    pub fn host(self, node: &Node) -> Option<&str> {
        let named = |text: &'_ str| !text.is_empty();
        match self.preferred {
            EndpointType::Ip => Some(node.at.ip.as_str()).filter(|ip| named(ip)),
            EndpointType::Hostname => {
                Some(node.at.hostname.as_str()).filter(|name| named(name)).or(Some("?"))
            }
            EndpointType::Unknown => None,
        }
    }

    /// The error reply to a verdict; `None` if it is none: the command runs or waits.
    pub fn refusal(self, metadata: &Metadata, verdict: Verdict) -> Option<Cow<'static, str>> {
        let elsewhere = |kind, slot, node: NodeId| {
            let place = metadata.node(node).map(|node| Place { reader: self, node });
            // A node that is named is one of the cluster's: this is for metadata that changed in between.
            Some(place.map_or(Cow::Borrowed(TRY_AGAIN), |place| format!("{kind} {slot} {place}").into()))
        };
        match verdict {
            Verdict::Serve | Verdict::Park => None,
            Verdict::Moved(slot, owner) => elsewhere("MOVED", slot, owner),
            Verdict::Ask(slot, to) => elsewhere("ASK", slot, to),
            Verdict::TryAgain => Some(TRY_AGAIN.into()),
            Verdict::CrossSlot => Some(CROSS_SLOT.into()),
            Verdict::Down(down) => Some(down.to_string().into()),
        }
    }
}

/// `host:port`, with nothing for a host that the client knows.
struct Place<'a> {
    reader: Reader,
    node: &'a Node,
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.reader.host(self.node).unwrap_or_default();
        write!(f, "{host}:{}", self.reader.port(self.node))
    }
}

/// What this node knows of its link to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Heard {
    /// Whether there is a link.
    pub is_connected: bool,
    /// When a question was sent that has no answer yet, in unix milliseconds; 0 if there is none.
    pub asked_ms: u64,
    /// When it was last heard of, in unix milliseconds; 0 if never.
    pub heard_ms: u64,
}

/// The cluster as one node shows it to one client.
#[derive(Debug, Clone, Copy)]
pub struct Viewer<'a> {
    /// The cluster.
    pub metadata: &'a Metadata,
    /// The node that is asked.
    pub me: NodeId,
    /// What it knows of its links; a node that is missing here is not connected.
    pub heard: &'a BTreeMap<NodeId, Heard>,
    /// Who asks.
    pub reader: Reader,
}

//! `CLUSTER SLOTS` and `CLUSTER SHARDS`.

use super::{EndpointType, Viewer};
use crate::id::NodeId;
use crate::node::{Health, Node, Role};
use std::collections::BTreeMap;
use towline_cluster::Slot;
use towline_resp::writer::Writer;

impl Viewer<'_> {
    /// `CLUSTER SLOTS`: `[first, last, [host, port, id, [more names]]]` for each range, ascending. Replicas are left out, as Redis leaves
    /// out those that have no data: clients would read from them.
    pub fn write_slots(&self, out: &mut Writer) {
        let runs: Vec<(Slot, Slot, NodeId, &Node)> = (self.metadata.runs())
            .filter_map(|(first, last, id)| Some((first, last, id, self.metadata.node(id)?)))
            .collect();
        out.array(runs.len());
        for (first, last, id, node) in runs {
            out.array(3);
            out.int(first.into());
            out.int(last.into());
            out.array(4);
            self.write_host(node, out);
            out.int(self.reader.port(node).into());
            out.bulk_display(id);
            let preferred = self.reader.preferred;
            let more = [
                ("ip", node.at.ip.as_str(), preferred != EndpointType::Ip),
                ("hostname", &node.at.hostname, preferred != EndpointType::Hostname),
            ];
            let more =
                more.iter().filter(|(name, text, is_more)| *is_more && (*name == "ip" || !text.is_empty()));
            out.map(more.clone().count());
            for (name, text, _) in more {
                out.bulk(name.as_bytes());
                out.bulk(text.as_bytes());
            }
        }
    }

    fn write_host(&self, node: &Node, out: &mut Writer) {
        match self.reader.host(node) {
            Some(host) => out.bulk(host.as_bytes()),
            None => out.null(),
        }
    }

    /// `CLUSTER SHARDS`: slots and nodes of each shard, by the names of the shards' primaries. A replica is `loading`: it has no data yet.
    pub fn write_shards(&self, out: &mut Writer) {
        let mut replicas: BTreeMap<NodeId, Vec<(NodeId, &Node)>> = BTreeMap::new();
        let mut primaries = Vec::new();
        for (&id, node) in self.metadata.nodes() {
            match node.role {
                Role::Primary => primaries.push((id, node)),
                Role::Replica { of } => replicas.entry(of).or_default().push((id, node)),
            }
        }
        out.array(primaries.len());
        for (id, node) in primaries {
            out.map(2);
            out.bulk(b"slots");
            let slots = self.metadata.slots_of(id);
            out.array(slots.len() * 2);
            for (first, last) in slots {
                out.int(first.into());
                out.int(last.into());
            }
            out.bulk(b"nodes");
            let replicas = replicas.get(&id).map(Vec::as_slice).unwrap_or_default();
            out.array(1 + replicas.len());
            self.write_node(id, node, out);
            replicas.iter().for_each(|&(id, node)| self.write_node(id, node, out));
        }
    }

    fn write_node(&self, id: NodeId, node: &Node, out: &mut Writer) {
        let ports = [("port", node.at.port), ("tls-port", node.at.tls_port)];
        let ports = ports.iter().filter(|(_, port)| *port != 0);
        let has_hostname = !node.at.hostname.is_empty();
        out.map(6 + ports.clone().count() + usize::from(has_hostname));
        let text = |name: &str, text: &str, out: &mut Writer| {
            out.bulk(name.as_bytes());
            out.bulk(text.as_bytes());
        };
        text("id", &id.to_string(), out);
        for (name, port) in ports {
            out.bulk(name.as_bytes());
            out.int((*port).into());
        }
        text("ip", &node.at.ip, out);
        // Here an unknown endpoint is an empty text, in `CLUSTER SLOTS` it is null.
        text("endpoint", self.reader.host(node).unwrap_or_default(), out);
        if has_hostname {
            text("hostname", &node.at.hostname, out);
        }
        text("role", if node.role == Role::Primary { "master" } else { "replica" }, out);
        out.bulk(b"replication-offset");
        out.int(0);
        let health = match (node.health, node.role) {
            (Health::Failed { .. }, _) => "fail",
            (Health::Online, Role::Primary) => "online",
            (Health::Online, Role::Replica { .. }) => "loading",
        };
        text("health", health, out);
    }
}

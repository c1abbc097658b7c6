//! `CLUSTER NODES` and `CLUSTER REPLICAS`.

use super::{Place, Reader, Viewer};
use crate::change::Refused;
use crate::id::NodeId;
use crate::metadata::Marker;
use crate::node::{Health, Node, Role};
use std::fmt::Write as _;
use towline_resp::writer::Writer;

impl Viewer<'_> {
    /// `CLUSTER NODES`: a line for each node, by name.
    ///
    /// ```text
    /// id ip:port@bus[,hostname] flags primary|- asked heard epoch link [slots] [markers of this node]
    /// ```
    ///
    /// The last line ends with a line break, too: redis-cli does not read one that has none.
    pub fn nodes(&self) -> String {
        let mut text = String::new();
        for (&id, node) in self.metadata.nodes() {
            self.line(&mut text, id, node);
            text.push('\n');
        }
        text
    }

    /// The reply to `CLUSTER NODES`: a text.
    pub fn write_nodes(&self, out: &mut Writer) {
        out.verbatim(b"txt", &self.nodes());
    }

    /// `CLUSTER REPLICAS primary`: the lines of its replicas.
    ///
    /// # Errors
    /// [`Refused`], with nothing written: there is no such node, or it is a replica itself. The client's fault.
    pub fn write_replicas(&self, primary: NodeId, out: &mut Writer) -> Result<(), Refused> {
        let node = self.metadata.node(primary).ok_or(Refused::UnknownNode(primary))?;
        if node.role != Role::Primary {
            return Err(Refused::Other("ERR The specified node is not a master".into()));
        }
        let replicas: Vec<NodeId> = self.metadata.replicas_of(primary).collect();
        out.array(replicas.len());
        for id in replicas {
            let mut line = String::new();
            if let Some(node) = self.metadata.node(id) {
                self.line(&mut line, id, node);
            }
            out.bulk(line.as_bytes());
        }
        Ok(())
    }

    fn line(&self, out: &mut String, id: NodeId, node: &Node) {
        let is_me = id == self.me;
        // This reply has the address in it whatever endpoint clients prefer.
        let reader = Reader { preferred: super::EndpointType::Ip, ..self.reader };
        let (flags, primary) = match node.role {
            Role::Primary => ("master", None),
            Role::Replica { of } => ("slave", Some(of)),
        };
        let heard = if is_me { None } else { self.heard.get(&id) }.copied().unwrap_or_default();
        let is_connected = is_me || heard.is_connected;
        // Writing into a String does not fail.
        let _ = write!(out, "{id} {}@{}", Place { reader, node }, node.at.bus_port);
        if !node.at.hostname.is_empty() {
            let _ = write!(out, ",{}", node.at.hostname);
        }
        let _ = write!(out, " {}{flags}", if is_me { "myself," } else { "" });
        if let Health::Failed { .. } = node.health {
            out.push_str(",fail");
        }
        let _ = match primary {
            Some(primary) => write!(out, " {primary}"),
            None => write!(out, " -"),
        };
        let link = if is_connected { "connected" } else { "disconnected" };
        let _ = write!(out, " {} {} {} {link}", heard.asked_ms, heard.heard_ms, self.epoch(node));
        for (first, last) in self.metadata.slots_of(id) {
            let _ = if first == last { write!(out, " {first}") } else { write!(out, " {first}-{last}") };
        }
        if !is_me {
            return;
        }
        for (slot, marker) in self.metadata.markers_of(id) {
            let _ = match marker {
                Marker::MigratingTo(to) => write!(out, " [{slot}->-{to}]"),
                Marker::ImportingFrom(from) => write!(out, " [{slot}-<-{from}]"),
            };
        }
    }

    /// A replica shows the epoch of its primary.
    pub(super) fn epoch(&self, node: &Node) -> u64 {
        let primary = match node.role {
            Role::Primary => None,
            Role::Replica { of } => self.metadata.node(of),
        };
        primary.unwrap_or(node).config_epoch
    }
}

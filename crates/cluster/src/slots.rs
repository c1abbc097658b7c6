//! `CLUSTER SLOTS`.
//!
//! Owns its shape. Does not own what several nodes' replies come to.

use towline_resp::frame::Frame;

use crate::reply::{Host, field, list, small, text};
use crate::slot::SlotRange;
use crate::topology::{Asked, NodeInfo, Role, View, ViewBuilder, ViewError};

impl View {
    /// Reads the reply to `CLUSTER SLOTS`. Nodes and ranges that cannot be read are left out.
    ///
    /// # Errors
    /// The server's fault: the reply is something else, or good for nothing; another node may be asked.
    pub fn from_slots(reply: &Frame, asked: &Asked) -> Result<Self, ViewError> {
        let ranges = list(reply).ok_or(ViewError::Shape)?;
        let mut builder = ViewBuilder::default();
        for range in ranges {
            let parts = list(range).ok_or(ViewError::Shape)?;
            let [first, last, primary, replicas @ ..] = parts else { continue };
            let bounds = small(first).zip(small(last));
            let Some(bounds) = bounds.and_then(|(first, last)| SlotRange::new(first, last)) else { continue };
            let Some(info) = read_node(primary, Role::Primary, asked) else { continue };
            let primary = builder.node(info)?;
            builder.owns(bounds, primary);
            for replica in replicas {
                let Some(info) = read_node(replica, Role::Replica, asked) else { continue };
                let replica = builder.node(info)?;
                builder.follows(replica, primary);
            }
        }
        builder.finish(asked)
    }
}

/// `[host, port, id, metadata]`; old servers stop after the port.
fn read_node(node: &Frame, role: Role, asked: &Asked) -> Option<NodeInfo> {
    let parts = list(node)?;
    let (host, port) = (Host::read(parts.first()), parts.get(1).and_then(small)?);
    let metadata = parts.get(3);
    let named = |name| metadata.and_then(|metadata| field(metadata, name));
    let others = [Host::read(named("ip")), Host::read(named("hostname"))];
    let aliases: Vec<_> = others.into_iter().filter_map(|host| host.alias(port)).collect();
    Some(NodeInfo {
        id: parts.get(2).and_then(text).filter(|id| !id.is_empty()).map(Into::into),
        address: host.address(port, asked).or_else(|| aliases.first().cloned()),
        aliases,
        role,
        zone: named("availability-zone").and_then(text).filter(|zone| !zone.is_empty()).map(Into::into),
        ..NodeInfo::default()
    })
}

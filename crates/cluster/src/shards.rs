//! `CLUSTER SHARDS` (Redis 7.0 and later, Valkey).
//!
//! Owns its shape. Does not own what several nodes' replies come to.

use towline_resp::frame::Frame;

use crate::reply::{Host, field, is_fields, list, number, small, text};
use crate::slot::SlotRange;
use crate::topology::{Asked, Health, NodeInfo, Role, View, ViewBuilder, ViewError};

impl View {
    /// Reads the reply to `CLUSTER SHARDS`. Nodes and ranges that cannot be read are left out.
    ///
    /// # Errors
    /// The server's fault: the reply is something else, or good for nothing; another node may be asked.
    pub fn from_shards(reply: &Frame, asked: &Asked) -> Result<Self, ViewError> {
        let shards = list(reply).ok_or(ViewError::Shape)?;
        let mut builder = ViewBuilder::default();
        for shard in shards {
            read_shard(shard, asked, &mut builder)?;
        }
        builder.finish(asked)
    }
}

fn read_shard(shard: &Frame, asked: &Asked, builder: &mut ViewBuilder) -> Result<(), ViewError> {
    if !is_fields(shard) {
        return Err(ViewError::Shape);
    }
    let nodes = field(shard, "nodes").and_then(list).ok_or(ViewError::Shape)?;
    let mut primary = None;
    let mut replicas = Vec::new();
    for node in nodes {
        let Some(info) = read_node(node, asked) else { continue };
        let (role, health) = (info.role, info.health);
        let at = builder.node(info)?;
        match role {
            // After a failover the old primary may be listed beside the new one.
            Role::Primary if primary.is_none_or(|(_, known)| known != Health::Online) => {
                primary = Some((at, health));
            }
            Role::Primary => {}
            Role::Replica => replicas.push(at),
        }
    }
    let Some((primary, _)) = primary else { return Ok(()) };
    replicas.into_iter().for_each(|replica| builder.follows(replica, primary));
    let bounds = field(shard, "slots").and_then(list).unwrap_or_default();
    for pair in bounds.chunks_exact(2) {
        let range = small(&pair[0]).zip(small(&pair[1]));
        if let Some(range) = range.and_then(|(first, last)| SlotRange::new(first, last)) {
            builder.owns(range, primary);
        }
    }
    Ok(())
}

fn read_node(node: &Frame, asked: &Asked) -> Option<NodeInfo> {
    let port_of = |name| field(node, name).and_then(number).and_then(|port| u16::try_from(port).ok());
    let (plain, tls) = (port_of("port"), port_of("tls-port"));
    let port = if asked.is_tls { tls.or(plain)? } else { plain.or(tls)? };
    let endpoint = Host::read(field(node, "endpoint"));
    let others = [Host::read(field(node, "ip")), Host::read(field(node, "hostname"))];
    let aliases: Vec<_> = others.into_iter().filter_map(|host| host.alias(port)).collect();
    Some(NodeInfo {
        id: field(node, "id").and_then(text).map(Into::into),
        // Without a usable endpoint (`?`) the address that the node has among its peers may do.
        address: endpoint.address(port, asked).or_else(|| aliases.first().cloned()),
        aliases,
        role: match field(node, "role").and_then(text) {
            Some("replica" | "slave") => Role::Replica,
            _ => Role::Primary,
        },
        primary: None,
        health: match field(node, "health").and_then(text) {
            Some("fail" | "failed") => Health::Failed,
            Some("loading") => Health::Loading,
            _ => Health::Online,
        },
        zone: field(node, "availability-zone").and_then(text).filter(|zone| !zone.is_empty()).map(Into::into),
        epoch: None,
    })
}

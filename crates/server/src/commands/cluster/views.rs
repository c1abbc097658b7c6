//! What a node says about its cluster: `CLUSTER INFO`, `NODES`, `SLOTS`, `SHARDS`, `REPLICAS`, `LINKS`.
//!
//! Owns: what the views need and no metadata say. Does **not** own their forms (see `towline_cluster_proto::views`).

use super::{cluster, known_node};
use crate::cluster::{Known, gate};
use crate::command::{Args, CommandError, CommandResult, Ctx};
use std::collections::BTreeMap;
use std::sync::Arc;
use towline_cluster_proto::views::{Facts, Heard, LinkFacts, Viewer, links as write_links};
use towline_cluster_proto::{Health, Node, NodeId};
use towline_resp::writer::Writer;

/// Writes a view of what is known.
pub(super) fn view<R>(
    ctx: &mut Ctx<'_>,
    write: impl FnOnce(&Viewer<'_>, &Known, &mut Writer) -> R,
) -> Result<R, CommandError> {
    let (server, now_ms) = (ctx.server, ctx.ks.now_ms());
    let cluster = cluster(ctx)?;
    let known = Arc::clone(&cluster.known());
    let links = cluster.log().map_or_else(Vec::new, |log| log.links());
    let connected = Heard { is_connected: true, asked_ms: 0, heard_ms: now_ms };
    // Nodes have links as they need them. That another one answers is the leader's finding, which this node hears of as long as it is
    // fresh; tools leave out nodes that are "disconnected".
    let answers = |node: &Node| known.standing.is_fresh && node.health == Health::Online;
    let online = known.metadata.nodes().iter().filter(|(_, node)| answers(node)).map(|(&id, _)| id);
    let heard: BTreeMap<NodeId, Heard> =
        online.chain(links.iter().map(|link| link.node)).map(|id| (id, connected)).collect();
    let reader = gate::reader(&server.config(), ctx.session().client.is_tls(server));
    let viewer = Viewer { metadata: &known.metadata, me: known.me, heard: &heard, reader };
    Ok(write(&viewer, &known, ctx.out))
}

/// `CLUSTER INFO`
pub(super) fn info(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    view(ctx, |viewer, known, out| {
        let facts = Facts {
            is_cluster_ok: known.is_ok,
            leader: known.standing.leader,
            term: known.standing.term,
            ..Facts::default()
        };
        viewer.write_info(&facts, out);
    })
}

/// `CLUSTER NODES`
pub(super) fn nodes(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    view(ctx, |viewer, _, out| viewer.write_nodes(out))
}

/// `CLUSTER SLOTS`
pub(super) fn slots(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    view(ctx, |viewer, _, out| viewer.write_slots(out))
}

/// `CLUSTER SHARDS`
pub(super) fn shards(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    view(ctx, |viewer, _, out| viewer.write_shards(out))
}

/// `CLUSTER REPLICAS node-id`, `CLUSTER SLAVES node-id`
pub(super) fn replicas(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let primary = known_node(ctx, args.get(2))?;
    view(ctx, |viewer, _, out| viewer.write_replicas(primary, out))?
        .map_err(|refused| CommandError::message(refused.to_string()))
}

/// `CLUSTER LINKS`
pub(super) fn links(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    let links = cluster(ctx)?.log().map_or_else(Vec::new, |log| log.links());
    let links = links.into_iter().map(|link| LinkFacts {
        node: link.node,
        is_outgoing: link.is_outgoing,
        since_ms: link.since_ms,
        send_buffer_allocated: link.send_buffer_allocated,
        send_buffer_used: link.send_buffer_used,
    });
    write_links(&links.collect::<Vec<_>>(), ctx.out);
    Ok(())
}

//! `CLUSTER`, `ASKING`, `READONLY`, `READWRITE`.
//!
//! Owns: their arguments and replies. Does **not** own what changes come to (see `towline_cluster_proto`) nor how the cluster is shown
//! (its `views`).

use crate::client::flag;
use crate::cluster::errands::Errand;
use crate::cluster::log::Peer;
use crate::cluster::{Cluster, node};
use crate::command::{Args, CommandError, CommandResult, Ctx, Row, no_keys, walk};
use crate::commands::config::help;
use std::net::IpAddr;
use towline_cluster::{SLOT_COUNT, Slot, key_slot};
use towline_cluster_proto::{Health, NodeId};
use towline_store::number::parse_i64;

pub(crate) mod changes;
mod migrations;
mod slots;
mod views;

/// The cluster; commands that need it are refused before they get here when there is none.
fn cluster<'a>(ctx: &Ctx<'a>) -> Result<&'a Cluster, CommandError> {
    let cluster = ctx.server.cluster.as_deref();
    cluster.ok_or(CommandError::Text("ERR This instance has cluster support disabled"))
}

/// A slot, as an argument.
fn slot(arg: &[u8], error: &'static str) -> Result<Slot, CommandError> {
    let slot = parse_i64(arg).and_then(|slot| Slot::try_from(slot).ok());
    slot.filter(|&slot| usize::from(slot) < SLOT_COUNT).ok_or(CommandError::Text(error))
}

/// The name of a node that is known.
fn known_node(ctx: &Ctx<'_>, arg: &[u8]) -> Result<NodeId, CommandError> {
    let known = cluster(ctx)?.known();
    let id = NodeId::parse(arg).ok().filter(|&id| known.metadata.node(id).is_some());
    id.ok_or_else(|| CommandError::quoting("ERR Unknown node ", arg, ""))
}

/// `ASKING`: inside of a transaction it comes too late, and does nothing.
fn asking(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    ctx.session().is_asking = true;
    ctx.out.ok();
    Ok(())
}

fn set_readonly(ctx: &mut Ctx<'_>, is_on: bool) -> CommandResult {
    let session = ctx.session();
    session.is_readonly = is_on;
    session.client.set_flag(flag::READONLY, is_on);
    ctx.out.ok();
    Ok(())
}

/// `READONLY`
fn readonly(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    set_readonly(ctx, true)
}

/// `READWRITE`
fn readwrite(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    set_readonly(ctx, false)
}

/// `CLUSTER MYID`
fn myid(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    let me = cluster(ctx)?.known().me;
    ctx.out.bulk(me.to_string().as_bytes());
    Ok(())
}

/// `CLUSTER MYSHARDID`
fn myshardid(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    let known = cluster(ctx)?.known();
    let shard = known.metadata.node(known.me).map_or(known.me, |node| node.shard);
    ctx.out.bulk(shard.to_string().as_bytes());
    Ok(())
}

/// `CLUSTER KEYSLOT key`
fn keyslot(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    ctx.out.int(i64::from(key_slot(args.get(2))));
    Ok(())
}

/// `CLUSTER COUNT-FAILURE-REPORTS node-id`: there is one finding about a node, the leader's.
fn count_failure_reports(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let id = known_node(ctx, args.get(2))?;
    let known = cluster(ctx)?.known();
    let has_failed = known.metadata.node(id).is_some_and(|node| node.health != Health::Online);
    ctx.out.int(i64::from(has_failed));
    Ok(())
}

/// `CLUSTER SAVECONFIG`: whatever was answered is on disk already.
fn saveconfig(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    ctx.out.ok();
    Ok(())
}

fn port(arg: &[u8], what: &str) -> Result<u16, CommandError> {
    let port = parse_i64(arg).and_then(|port| u16::try_from(port).ok());
    port.filter(|&port| port > 0)
        .ok_or_else(|| CommandError::quoting(&format!("ERR Invalid {what} port specified: "), arg, ""))
}

/// `CLUSTER MEET ip port [cluster-bus-port]`: what comes of it shows later, as in Redis.
fn meet(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if args.len() > 5 {
        return Err(CommandError::Arity("cluster|meet"));
    }
    let client_port = port(args.get(3), "base")?;
    let bus_port = match args.at(4) {
        Some(arg) => port(arg, "bus")?,
        None => {
            client_port.checked_add(crate::config::BUS_PORT_OFFSET).ok_or_else(|| invalid_address(args))?
        }
    };
    let ip = std::str::from_utf8(args.get(2)).ok().and_then(|text| text.parse::<IpAddr>().ok());
    let ip = ip.ok_or_else(|| invalid_address(args))?;
    cluster(ctx)?.ask(Errand::Meet(Peer { ip, port: client_port, bus_port }));
    ctx.out.ok();
    Ok(())
}

fn invalid_address(args: Args<'_>) -> CommandError {
    CommandError::joined(&[b"ERR Invalid node address specified: ", args.get(2), b":", args.get(3)])
}

/// `CLUSTER RESET [HARD | SOFT]`
fn reset(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let is_hard = match args.len() {
        2 => false,
        3 if args.is(2, "hard") => true,
        3 if args.is(2, "soft") => false,
        _ => return Err(CommandError::Syntax),
    };
    let known = cluster(ctx)?.known();
    if !ctx.server.store.is_empty(0) && known.my_primary().is_none() {
        return Err(CommandError::Text(
            "ERR CLUSTER RESET can't be called with master nodes containing keys",
        ));
    }
    let name = if is_hard { node::random_id().map_err(|_| NO_RANDOMNESS)? } else { known.me };
    ctx.wait_for(Errand::Reset(name));
    Ok(())
}

const NO_RANDOMNESS: CommandError = CommandError::Text("ERR The system gives no random bytes for a new name");

/// `CLUSTER FAILOVER [FORCE | TAKEOVER]`
fn failover(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if args.len() > 3 || (args.len() == 3 && !args.is(2, "force") && !args.is(2, "takeover")) {
        return Err(CommandError::Syntax);
    }
    Err(CommandError::Text(match cluster(ctx)?.known().my_primary() {
        None => "ERR You should send CLUSTER FAILOVER to a replica",
        Some(_) => "ERR This replica has no copy of its master's data, and cannot take its place",
    }))
}

const HELP: &[&str] = &[
    "ADDSLOTS <slot> [<slot> ...]",
    "    Give slots that have no owner to this node.",
    "ADDSLOTSRANGE <start slot> <end slot> [<start slot> <end slot> ...]",
    "    Give ranges of slots that have no owner to this node.",
    "BUMPEPOCH",
    "    Make this node's configuration epoch the highest.",
    "CANCELSLOTMIGRATIONS",
    "    Cancel the migrations that take slots from this node.",
    "COUNT-FAILURE-REPORTS <node-id>",
    "    Say whether the node was found to have failed.",
    "COUNTKEYSINSLOT <slot>",
    "    Count the keys of a slot.",
    "DELSLOTS <slot> [<slot> ...]",
    "    Take slots from their owner.",
    "DELSLOTSRANGE <start slot> <end slot> [<start slot> <end slot> ...]",
    "    Take ranges of slots from their owner.",
    "FAILOVER [FORCE|TAKEOVER]",
    "    Put a replica in the place of its master; not possible yet.",
    "FLUSHSLOT <slot> [ASYNC|SYNC]",
    "    Delete all keys of a slot on this node.",
    "FLUSHSLOTS",
    "    Take all slots from this node, which holds no keys.",
    "FORGET <node-id>",
    "    Remove a node that owns no slots from the cluster.",
    "GETKEYSINSLOT <slot> <count>",
    "    List some keys of a slot.",
    "GETSLOTMIGRATIONS",
    "    List migrations of slots from and to this node, the newest first.",
    "INFO",
    "    Show the state of the cluster as this node sees it.",
    "KEYSLOT <key>",
    "    Show the slot of a key.",
    "LINKS",
    "    List the links between this node and the others.",
    "MEET <ip> <port> [<bus-port>]",
    "    Join the cluster of another node.",
    "MIGRATESLOTS SLOTSRANGE <start slot> <end slot> [...] NODE <node-id> [SLOTSRANGE ... NODE <node-id> ...]",
    "    Move slots to other nodes; not possible yet.",
    "MYID",
    "    Show this node's name.",
    "MYSHARDID",
    "    Show the name of this node's shard.",
    "NODES",
    "    Describe all nodes, one on each line.",
    "REPLICAS <node-id>",
    "    Describe the replicas of a node.",
    "REPLICATE <node-id>",
    "    Make this node, which is empty, a replica of another. It serves no data yet.",
    "RESET [HARD|SOFT]",
    "    Leave the cluster; with HARD, under a new name.",
    "SAVECONFIG",
    "    Do nothing: whatever was answered is on disk.",
    "SET-CONFIG-EPOCH <epoch>",
    "    Set the configuration epoch of a node that is alone.",
    "SETSLOT <slot> (IMPORTING <node-id>|MIGRATING <node-id>|STABLE|NODE <node-id>)",
    "    Change the state or the owner of a slot.",
    "SHARDS",
    "    Describe the shards with their slots and nodes.",
    "SLOT-STATS (SLOTSRANGE <start slot> <end slot>|ORDERBY <metric> [LIMIT <limit>] [ASC|DESC])",
    "    Show figures of this node's slots.",
    "SLOTS",
    "    Map ranges of slots to nodes.",
];

fn help_lines(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    help(ctx, "CLUSTER", HELP)
}

pub(super) const ROWS: &[Row] = &[
    no_keys("asking", asking),
    no_keys("readonly", readonly),
    no_keys("readwrite", readwrite),
    no_keys("cluster|addslots", changes::run),
    no_keys("cluster|addslotsrange", changes::run),
    no_keys("cluster|bumpepoch", changes::run),
    no_keys("cluster|cancelslotmigrations", migrations::cancel),
    no_keys("cluster|count-failure-reports", count_failure_reports),
    walk("cluster|countkeysinslot", slots::count_keys),
    no_keys("cluster|delslots", changes::run),
    no_keys("cluster|delslotsrange", changes::run),
    no_keys("cluster|failover", failover),
    walk("cluster|flushslot", slots::flush),
    no_keys("cluster|flushslots", changes::run),
    no_keys("cluster|forget", changes::run),
    walk("cluster|getkeysinslot", slots::keys),
    no_keys("cluster|getslotmigrations", migrations::list),
    no_keys("cluster|help", help_lines),
    no_keys("cluster|info", views::info),
    no_keys("cluster|keyslot", keyslot),
    no_keys("cluster|links", views::links),
    no_keys("cluster|meet", meet),
    no_keys("cluster|migrateslots", migrations::migrate),
    no_keys("cluster|myid", myid),
    no_keys("cluster|myshardid", myshardid),
    no_keys("cluster|nodes", views::nodes),
    no_keys("cluster|replicas", views::replicas),
    no_keys("cluster|replicate", changes::run),
    no_keys("cluster|reset", reset),
    no_keys("cluster|saveconfig", saveconfig),
    no_keys("cluster|set-config-epoch", changes::run),
    no_keys("cluster|setslot", changes::run),
    no_keys("cluster|shards", views::shards),
    no_keys("cluster|slaves", views::replicas),
    walk("cluster|slot-stats", slots::stats),
    no_keys("cluster|slots", views::slots),
];

#[cfg(test)]
mod tests;

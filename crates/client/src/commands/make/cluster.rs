//! Commands of the group `cluster`.
//!
//! Written by `cargo xtask fix` from the command table; change crates/spec/src or xtask/src/commands.

use crate::args::ToArgs;
use crate::cmd::{Cmd, cmd};

/// Lets the next command use a slot that is being imported.
///
/// `ASKING`: O(1), since 3.0.0.
pub fn asking() -> Cmd {
    cmd("ASKING")
}

/// Iterates over the keys of the whole cluster.
///
/// `CLUSTERSCAN cursor [MATCH match-pattern] [COUNT count] [TYPE type] [SLOT slot]`: O(1) per call, O(N)
/// for all, N is the number of elements, since 9.1.0.
pub fn clusterscan(cursor: impl ToArgs) -> Cmd {
    cmd("CLUSTERSCAN").arg(cursor)
}

/// Iterates over the keys of the whole cluster. With options.
///
/// `CLUSTERSCAN cursor [MATCH match-pattern] [COUNT count] [TYPE type] [SLOT slot]`: O(1) per call, O(N)
/// for all, N is the number of elements, since 9.1.0.
pub fn clusterscan_with(cursor: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("CLUSTERSCAN").arg(cursor).arg(options)
}

/// Allows reads from this replica on this connection.
///
/// `READONLY`: O(1), since 3.0.0.
pub fn readonly() -> Cmd {
    cmd("READONLY")
}

/// Ends the effect of READONLY.
///
/// `READWRITE`: O(1), since 3.0.0.
pub fn readwrite() -> Cmd {
    cmd("READWRITE")
}

/// Gives unowned slots to this node.
///
/// `CLUSTER ADDSLOTS slot [slot ...]`: O(N), N is the number of slots, since 3.0.0.
pub fn cluster_addslots(slots: impl ToArgs) -> Cmd {
    cmd("CLUSTER").arg("ADDSLOTS").arg(slots)
}

/// Gives ranges of unowned slots to this node.
///
/// `CLUSTER ADDSLOTSRANGE start-slot end-slot [start-slot end-slot ...]`: O(N), N is the number of slots,
/// since 7.0.0.
pub fn cluster_addslotsrange(start_slot_end_slots: impl ToArgs) -> Cmd {
    cmd("CLUSTER").arg("ADDSLOTSRANGE").arg(start_slot_end_slots)
}

/// Raises the configuration epoch.
///
/// `CLUSTER BUMPEPOCH`: O(1), since 3.0.0.
pub fn cluster_bumpepoch() -> Cmd {
    cmd("CLUSTER").arg("BUMPEPOCH")
}

/// Cancels the slot migrations that this node runs.
///
/// `CLUSTER CANCELSLOTMIGRATIONS`: O(N), N is the number of migrations, since 9.0.0.
pub fn cluster_cancelslotmigrations() -> Cmd {
    cmd("CLUSTER").arg("CANCELSLOTMIGRATIONS")
}

/// Counts the nodes that report another as failing.
///
/// `CLUSTER COUNT-FAILURE-REPORTS node-id`: O(N), N is the number of reports, since 3.0.0.
pub fn cluster_count_failure_reports(node_id: impl ToArgs) -> Cmd {
    cmd("CLUSTER").arg("COUNT-FAILURE-REPORTS").arg(node_id)
}

/// Counts the keys of a slot.
///
/// `CLUSTER COUNTKEYSINSLOT slot`: O(1), since 3.0.0.
pub fn cluster_countkeysinslot(slot: impl ToArgs) -> Cmd {
    cmd("CLUSTER").arg("COUNTKEYSINSLOT").arg(slot)
}

/// Makes this node forget who owns some slots.
///
/// `CLUSTER DELSLOTS slot [slot ...]`: O(N), N is the number of slots, since 3.0.0.
pub fn cluster_delslots(slots: impl ToArgs) -> Cmd {
    cmd("CLUSTER").arg("DELSLOTS").arg(slots)
}

/// Makes this node forget who owns ranges of slots.
///
/// `CLUSTER DELSLOTSRANGE start-slot end-slot [start-slot end-slot ...]`: O(N), N is the number of slots,
/// since 7.0.0.
pub fn cluster_delslotsrange(start_slot_end_slots: impl ToArgs) -> Cmd {
    cmd("CLUSTER").arg("DELSLOTSRANGE").arg(start_slot_end_slots)
}

/// Makes this replica the primary of its shard.
///
/// `CLUSTER FAILOVER [FORCE | TAKEOVER]`: O(1), since 3.0.0.
pub fn cluster_failover() -> Cmd {
    cmd("CLUSTER").arg("FAILOVER")
}

/// Makes this replica the primary of its shard. With options.
///
/// `CLUSTER FAILOVER [FORCE | TAKEOVER]`: O(1), since 3.0.0.
pub fn cluster_failover_with(options: impl ToArgs) -> Cmd {
    cmd("CLUSTER").arg("FAILOVER").arg(options)
}

/// Deletes every key of a slot.
///
/// `CLUSTER FLUSHSLOT slot [ASYNC | SYNC]`: O(N), N is the number of keys in the slot, since 9.0.0.
pub fn cluster_flushslot(slot: impl ToArgs) -> Cmd {
    cmd("CLUSTER").arg("FLUSHSLOT").arg(slot)
}

/// Deletes every key of a slot. With options.
///
/// `CLUSTER FLUSHSLOT slot [ASYNC | SYNC]`: O(N), N is the number of keys in the slot, since 9.0.0.
pub fn cluster_flushslot_with(slot: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("CLUSTER").arg("FLUSHSLOT").arg(slot).arg(options)
}

/// Makes this node forget who owns any slot.
///
/// `CLUSTER FLUSHSLOTS`: O(1), since 3.0.0.
pub fn cluster_flushslots() -> Cmd {
    cmd("CLUSTER").arg("FLUSHSLOTS")
}

/// Removes a node from the list of known nodes.
///
/// `CLUSTER FORGET node-id`: O(1), since 3.0.0.
pub fn cluster_forget(node_id: impl ToArgs) -> Cmd {
    cmd("CLUSTER").arg("FORGET").arg(node_id)
}

/// Lists some keys of a slot.
///
/// `CLUSTER GETKEYSINSLOT slot count`: O(N), N is the number of keys returned, since 3.0.0.
pub fn cluster_getkeysinslot(slot: impl ToArgs, count: impl ToArgs) -> Cmd {
    cmd("CLUSTER").arg("GETKEYSINSLOT").arg(slot).arg(count)
}

/// Lists slot migrations and their state.
///
/// `CLUSTER GETSLOTMIGRATIONS`: O(N), N is the number of migrations, since 9.0.0.
pub fn cluster_getslotmigrations() -> Cmd {
    cmd("CLUSTER").arg("GETSLOTMIGRATIONS")
}

/// Shows what the subcommands do.
///
/// `CLUSTER HELP`: O(1), since 5.0.0.
pub fn cluster_help() -> Cmd {
    cmd("CLUSTER").arg("HELP")
}

/// Shows the state of the cluster as this node sees it.
///
/// `CLUSTER INFO`: O(1), since 3.0.0.
pub fn cluster_info() -> Cmd {
    cmd("CLUSTER").arg("INFO")
}

/// Returns the slot of a key.
///
/// `CLUSTER KEYSLOT key`: O(N), N is the length of the key, since 3.0.0.
pub fn cluster_keyslot(key: impl ToArgs) -> Cmd {
    cmd("CLUSTER").arg("KEYSLOT").arg(key)
}

/// Lists the links between this node and its peers.
///
/// `CLUSTER LINKS`: O(N), N is the number of nodes, since 7.0.0.
pub fn cluster_links() -> Cmd {
    cmd("CLUSTER").arg("LINKS")
}

/// Makes this node join another one's cluster.
///
/// `CLUSTER MEET ip port [cluster-bus-port]`: O(1), since 3.0.0.
pub fn cluster_meet(ip: impl ToArgs, port: impl ToArgs) -> Cmd {
    cmd("CLUSTER").arg("MEET").arg(ip).arg(port)
}

/// Makes this node join another one's cluster. With options.
///
/// `CLUSTER MEET ip port [cluster-bus-port]`: O(1), since 3.0.0.
pub fn cluster_meet_with(ip: impl ToArgs, port: impl ToArgs, cluster_bus_port: impl ToArgs) -> Cmd {
    cmd("CLUSTER").arg("MEET").arg(ip).arg(port).arg(cluster_bus_port)
}

/// Starts to move slots to other nodes.
///
/// `CLUSTER MIGRATESLOTS SLOTSRANGE start-slot end-slot [start-slot end-slot ...] NODE node-id [SLOTSRANGE
/// start-slot end-slot [start-slot end-slot ...] NODE node-id ...]`: O(N), N is the number of slots, since
/// 9.0.0.
pub fn cluster_migrateslots(start_slot_end_slot_node_ids: impl ToArgs) -> Cmd {
    cmd("CLUSTER").arg("MIGRATESLOTS").arg(start_slot_end_slot_node_ids)
}

/// Returns this node's id.
///
/// `CLUSTER MYID`: O(1), since 3.0.0.
pub fn cluster_myid() -> Cmd {
    cmd("CLUSTER").arg("MYID")
}

/// Returns the id of this node's shard.
///
/// `CLUSTER MYSHARDID`: O(1), since 7.2.0.
pub fn cluster_myshardid() -> Cmd {
    cmd("CLUSTER").arg("MYSHARDID")
}

/// Describes every node, one line each.
///
/// `CLUSTER NODES`: O(N), N is the number of nodes, since 3.0.0.
pub fn cluster_nodes() -> Cmd {
    cmd("CLUSTER").arg("NODES")
}

/// Lists the replicas of a primary.
///
/// `CLUSTER REPLICAS node-id`: O(N), N is the number of replicas, since 5.0.0.
pub fn cluster_replicas(node_id: impl ToArgs) -> Cmd {
    cmd("CLUSTER").arg("REPLICAS").arg(node_id)
}

/// Makes this node a replica of another.
///
/// `CLUSTER REPLICATE node-id`: O(1), since 3.0.0.
pub fn cluster_replicate(node_id: impl ToArgs) -> Cmd {
    cmd("CLUSTER").arg("REPLICATE").arg(node_id)
}

/// Makes this node leave its cluster.
///
/// `CLUSTER RESET [HARD | SOFT]`: O(N), N is the number of nodes, since 3.0.0.
pub fn cluster_reset() -> Cmd {
    cmd("CLUSTER").arg("RESET")
}

/// Makes this node leave its cluster. With options.
///
/// `CLUSTER RESET [HARD | SOFT]`: O(N), N is the number of nodes, since 3.0.0.
pub fn cluster_reset_with(options: impl ToArgs) -> Cmd {
    cmd("CLUSTER").arg("RESET").arg(options)
}

/// Writes the cluster's configuration to disk.
///
/// `CLUSTER SAVECONFIG`: O(1), since 3.0.0.
pub fn cluster_saveconfig() -> Cmd {
    cmd("CLUSTER").arg("SAVECONFIG")
}

/// Sets the configuration epoch of a new node.
///
/// `CLUSTER SET-CONFIG-EPOCH config-epoch`: O(1), since 3.0.0.
pub fn cluster_set_config_epoch(config_epoch: impl ToArgs) -> Cmd {
    cmd("CLUSTER").arg("SET-CONFIG-EPOCH").arg(config_epoch)
}

/// Changes the owner or the migration state of a slot.
///
/// `CLUSTER SETSLOT slot <IMPORTING node-id | MIGRATING node-id | NODE node-id | STABLE>`: O(1), since
/// 3.0.0.
pub fn cluster_setslot(slot: impl ToArgs, choice: impl ToArgs) -> Cmd {
    cmd("CLUSTER").arg("SETSLOT").arg(slot).arg(choice)
}

/// Describes the shards, their slots and nodes.
///
/// `CLUSTER SHARDS`: O(N), N is the number of nodes, since 7.0.0.
pub fn cluster_shards() -> Cmd {
    cmd("CLUSTER").arg("SHARDS")
}

/// Lists the replicas of a primary.
///
/// `CLUSTER SLAVES node-id`: O(N), N is the number of replicas, since 3.0.0.
///
/// Old since 5.0.0: better `CLUSTER REPLICAS`.
pub fn cluster_slaves(node_id: impl ToArgs) -> Cmd {
    cmd("CLUSTER").arg("SLAVES").arg(node_id)
}

/// Shows usage figures of slots.
///
/// `CLUSTER SLOT-STATS <SLOTSRANGE start-slot end-slot | ORDERBY metric [LIMIT limit] [ASC | DESC]>`: O(N),
/// N is the number of slots, since 8.2.0.
pub fn cluster_slot_stats(choice: impl ToArgs) -> Cmd {
    cmd("CLUSTER").arg("SLOT-STATS").arg(choice)
}

/// Maps ranges of slots to nodes.
///
/// `CLUSTER SLOTS`: O(N), N is the number of nodes, since 3.0.0.
///
/// Old since 7.0.0: better `CLUSTER SHARDS`.
pub fn cluster_slots() -> Cmd {
    cmd("CLUSTER").arg("SLOTS")
}

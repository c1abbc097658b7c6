//! The cluster.

use super::prelude::*;

pub(super) const ROWS: &[Row] = &[
    cmd("asking", 1, FAST)
        .doc("3.0.0", "Lets the next command use a slot that is being imported.")
        .effect(Connection)
        .acl(acl::CONNECTION),
    cmd("cluster", -2, NONE)
        .args("subcommand [arg [arg ...]]")
        .doc("3.0.0", "Container for cluster commands.")
        .subcommands(&[
            cmd("cluster|addslots", -3, ADMIN | STALE | NO_ASYNC_LOADING)
                .args("slot [slot ...]")
                .doc("3.0.0", "Gives unowned slots to this node.")
                .cost("O(N), N is the number of slots")
                .effect(Admin),
            cmd("cluster|addslotsrange", -4, ADMIN | STALE | NO_ASYNC_LOADING)
                .args("start-slot end-slot [start-slot end-slot ...]")
                .doc("7.0.0", "Gives ranges of unowned slots to this node.")
                .cost("O(N), N is the number of slots")
                .effect(Admin),
            cmd("cluster|bumpepoch", 2, ADMIN | STALE | NO_ASYNC_LOADING)
                .doc("3.0.0", "Raises the configuration epoch.")
                .effect(Admin)
                .tips(&["nondeterministic_output"]),
            cmd("cluster|cancelslotmigrations", 2, ADMIN | STALE | NO_ASYNC_LOADING)
                .doc("9.0.0", "Cancels the slot migrations that this node runs.")
                .cost("O(N), N is the number of migrations")
                .effect(Admin),
            cmd("cluster|count-failure-reports", 3, ADMIN | STALE)
                .args("node-id")
                .doc("3.0.0", "Counts the nodes that report another as failing.")
                .cost("O(N), N is the number of reports")
                .effect(ReadOnly)
                .tips(&["nondeterministic_output"]),
            cmd("cluster|countkeysinslot", 3, STALE)
                .args("slot")
                .doc("3.0.0", "Counts the keys of a slot.")
                .effect(ReadOnly),
            cmd("cluster|delslots", -3, ADMIN | STALE | NO_ASYNC_LOADING)
                .args("slot [slot ...]")
                .doc("3.0.0", "Makes this node forget who owns some slots.")
                .cost("O(N), N is the number of slots")
                .effect(Admin),
            cmd("cluster|delslotsrange", -4, ADMIN | STALE | NO_ASYNC_LOADING)
                .args("start-slot end-slot [start-slot end-slot ...]")
                .doc("7.0.0", "Makes this node forget who owns ranges of slots.")
                .cost("O(N), N is the number of slots")
                .effect(Admin),
            cmd("cluster|failover", -2, ADMIN | STALE | NO_ASYNC_LOADING)
                .args("[FORCE | TAKEOVER]")
                .doc("3.0.0", "Makes this replica the primary of its shard.")
                .effect(Admin),
            cmd("cluster|flushslot", -3, WRITE | ADMIN | NO_ASYNC_LOADING)
                .args("slot [ASYNC | SYNC]")
                .doc("9.0.0", "Deletes every key of a slot.")
                .cost("O(N), N is the number of keys in the slot")
                .effect(Admin)
                .acl(acl::KEYSPACE),
            cmd("cluster|flushslots", 2, ADMIN | STALE | NO_ASYNC_LOADING)
                .doc("3.0.0", "Makes this node forget who owns any slot.")
                .effect(Admin),
            cmd("cluster|forget", 3, ADMIN | STALE | NO_ASYNC_LOADING)
                .args("node-id")
                .doc("3.0.0", "Removes a node from the list of known nodes.")
                .effect(Admin),
            cmd("cluster|getkeysinslot", 4, STALE)
                .args("slot count")
                .doc("3.0.0", "Lists some keys of a slot.")
                .cost("O(N), N is the number of keys returned")
                .effect(ReadOnly)
                .tips(&["nondeterministic_output"]),
            cmd("cluster|getslotmigrations", 2, ADMIN | STALE | NO_ASYNC_LOADING)
                .doc("9.0.0", "Lists slot migrations and their state.")
                .cost("O(N), N is the number of migrations")
                .effect(ReadOnly),
            cmd("cluster|help", 2, LOADING | STALE)
                .doc("5.0.0", "Shows what the subcommands do.")
                .effect(ReadOnly),
            cmd("cluster|info", 2, STALE)
                .doc("3.0.0", "Shows the state of the cluster as this node sees it.")
                .effect(ReadOnly)
                .tips(&["nondeterministic_output"]),
            cmd("cluster|keyslot", 3, STALE)
                .args("key")
                .doc("3.0.0", "Returns the slot of a key.")
                .cost("O(N), N is the length of the key")
                .effect(ReadOnly),
            cmd("cluster|links", 2, STALE)
                .doc("7.0.0", "Lists the links between this node and its peers.")
                .cost("O(N), N is the number of nodes")
                .effect(ReadOnly)
                .tips(&["nondeterministic_output"]),
            cmd("cluster|meet", -4, ADMIN | STALE | NO_ASYNC_LOADING)
                .args("ip port [cluster-bus-port]")
                .doc("3.0.0", "Makes this node join another one's cluster.")
                .effect(Admin),
            cmd("cluster|migrateslots", -4, ADMIN | STALE | NO_ASYNC_LOADING)
                .args(
                    "SLOTSRANGE start-slot end-slot [start-slot end-slot ...] NODE node-id \
                     [SLOTSRANGE start-slot end-slot [start-slot end-slot ...] NODE node-id ...]",
                )
                .doc("9.0.0", "Starts to move slots to other nodes.")
                .cost("O(N), N is the number of slots")
                .effect(Admin),
            cmd("cluster|myid", 2, STALE).doc("3.0.0", "Returns this node's id.").effect(ReadOnly),
            cmd("cluster|myshardid", 2, STALE)
                .doc("7.2.0", "Returns the id of this node's shard.")
                .effect(ReadOnly)
                .tips(&["nondeterministic_output"]),
            cmd("cluster|nodes", 2, STALE)
                .doc("3.0.0", "Describes every node, one line each.")
                .cost("O(N), N is the number of nodes")
                .effect(ReadOnly)
                .tips(&["nondeterministic_output"]),
            cmd("cluster|replicas", 3, ADMIN | STALE)
                .args("node-id")
                .doc("5.0.0", "Lists the replicas of a primary.")
                .cost("O(N), N is the number of replicas")
                .effect(ReadOnly)
                .tips(&["nondeterministic_output"]),
            cmd("cluster|replicate", 3, ADMIN | STALE | NO_ASYNC_LOADING)
                .args("node-id")
                .doc("3.0.0", "Makes this node a replica of another.")
                .effect(Admin),
            cmd("cluster|reset", -2, ADMIN | NOSCRIPT | STALE)
                .args("[HARD | SOFT]")
                .doc("3.0.0", "Makes this node leave its cluster.")
                .cost("O(N), N is the number of nodes")
                .effect(Admin),
            cmd("cluster|saveconfig", 2, ADMIN | STALE | NO_ASYNC_LOADING)
                .doc("3.0.0", "Writes the cluster's configuration to disk.")
                .effect(Admin),
            cmd("cluster|set-config-epoch", 3, ADMIN | STALE | NO_ASYNC_LOADING)
                .args("config-epoch")
                .doc("3.0.0", "Sets the configuration epoch of a new node.")
                .effect(Admin),
            cmd("cluster|setslot", -4, ADMIN | STALE | NO_ASYNC_LOADING)
                .args("slot <IMPORTING node-id | MIGRATING node-id | NODE node-id | STABLE>")
                .doc("3.0.0", "Changes the owner or the migration state of a slot.")
                .effect(Admin),
            cmd("cluster|shards", 2, LOADING | STALE)
                .doc("7.0.0", "Describes the shards, their slots and nodes.")
                .cost("O(N), N is the number of nodes")
                .effect(ReadOnly)
                .tips(&["nondeterministic_output"]),
            cmd("cluster|slaves", 3, ADMIN | STALE)
                .args("node-id")
                .doc("3.0.0", "Lists the replicas of a primary.")
                .cost("O(N), N is the number of replicas")
                .effect(ReadOnly)
                .tips(&["nondeterministic_output"])
                .deprecated("5.0.0", "`CLUSTER REPLICAS`"),
            cmd("cluster|slot-stats", -4, LOADING | STALE)
                .args("<SLOTSRANGE start-slot end-slot | ORDERBY metric [LIMIT limit] [ASC | DESC]>")
                .doc("8.2.0", "Shows usage figures of slots.")
                .cost("O(N), N is the number of slots")
                .effect(ReadOnly)
                .tips(&["nondeterministic_output", "request_policy:all_shards"]),
            cmd("cluster|slots", 2, LOADING | STALE)
                .doc("3.0.0", "Maps ranges of slots to nodes.")
                .cost("O(N), N is the number of nodes")
                .effect(ReadOnly)
                .tips(&["nondeterministic_output"])
                .deprecated("7.0.0", "`CLUSTER SHARDS`"),
            cmd("cluster|syncslots", -3, ADMIN | STALE | NO_ASYNC_LOADING)
                .doc("9.0.0", "Carries a slot migration between two nodes.")
                .effect(Admin)
                .internal()
                .planned("cluster"),
        ]),
    cmd("clusterscan", -2, READONLY)
        .args("cursor [MATCH match-pattern] [COUNT count] [TYPE type] [SLOT slot]")
        .doc("9.1.0", "Iterates over the keys of the whole cluster.")
        .cost("O(1) per call, O(N) for all, N is the number of elements")
        .keys(&[key(1, NOT_KEY)])
        .acl(acl::KEYSPACE)
        .tips(&["nondeterministic_output", "request_policy:special", "response_policy:special"])
        .planned("cluster"),
    cmd("readonly", 1, LOADING | STALE | FAST)
        .doc("3.0.0", "Allows reads from this replica on this connection.")
        .effect(Connection)
        .acl(acl::CONNECTION),
    cmd("readwrite", 1, LOADING | STALE | FAST)
        .doc("3.0.0", "Ends the effect of READONLY.")
        .effect(Connection)
        .acl(acl::CONNECTION),
];

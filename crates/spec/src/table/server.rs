//! The server: configuration, introspection, persistence, replication.

use super::prelude::*;

pub(super) const ROWS: &[Row] = &[
    cmd("acl", -2, NONE)
        .args("subcommand [arg [arg ...]]")
        .doc("6.0.0", "Container for access control commands.")
        .subcommands(&[
            cmd("acl|cat", -2, NOSCRIPT | LOADING | STALE)
                .args("[category]")
                .doc("6.0.0", "Lists the ACL categories, or the commands of one.")
                .effect(ReadOnly),
            cmd("acl|deluser", -3, ADMIN | NOSCRIPT | LOADING | STALE)
                .args("username [username ...]")
                .doc("6.0.0", "Deletes ACL users and closes their connections.")
                .cost("O(N), N is the number of users deleted")
                .effect(Admin)
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
                .planned("ACL users"),
            cmd("acl|dryrun", -4, ADMIN | NOSCRIPT | LOADING | STALE)
                .args("username command [arg [arg ...]]")
                .doc("7.0.0", "Tells whether a user might run a command, without running it.")
                .effect(ReadOnly)
                .planned("ACL users"),
            cmd("acl|genpass", -2, NOSCRIPT | LOADING | STALE)
                .args("[bits]")
                .doc("6.0.0", "Makes a random password.")
                .effect(ReadOnly),
            cmd("acl|getuser", 3, ADMIN | NOSCRIPT | LOADING | STALE)
                .args("username")
                .doc("6.0.0", "Shows the rules of one ACL user.")
                .cost("O(N), N is the number of the user's rules")
                .effect(ReadOnly),
            cmd("acl|help", 2, LOADING | STALE)
                .doc("6.0.0", "Shows what the subcommands do.")
                .effect(ReadOnly),
            cmd("acl|list", 2, ADMIN | NOSCRIPT | LOADING | STALE)
                .doc("6.0.0", "Lists the ACL users, each as a line of rules.")
                .cost("O(N), N is the number of users")
                .effect(ReadOnly),
            cmd("acl|load", 2, ADMIN | NOSCRIPT | LOADING | STALE)
                .doc("6.0.0", "Reads the ACL users from the configured file again.")
                .cost("O(N), N is the number of users")
                .effect(Admin)
                .planned("ACL users"),
            cmd("acl|log", -2, ADMIN | NOSCRIPT | LOADING | STALE)
                .args("[count | RESET]")
                .doc("6.0.0", "Shows or clears the log of denied commands and logins.")
                .cost("O(N), N is the number of entries returned")
                .effect(Admin)
                .planned("ACL users"),
            cmd("acl|save", 2, ADMIN | NOSCRIPT | LOADING | STALE)
                .doc("6.0.0", "Writes the ACL users to the configured file.")
                .cost("O(N), N is the number of users")
                .effect(Admin)
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
                .planned("ACL users"),
            cmd("acl|setuser", -3, ADMIN | NOSCRIPT | LOADING | STALE)
                .args("username [rule [rule ...]]")
                .doc("6.0.0", "Creates an ACL user or changes its rules.")
                .cost("O(N), N is the number of rules")
                .effect(Admin)
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
                .planned("ACL users"),
            cmd("acl|users", 2, ADMIN | NOSCRIPT | LOADING | STALE)
                .doc("6.0.0", "Lists the names of the ACL users.")
                .cost("O(N), N is the number of users")
                .effect(ReadOnly),
            cmd("acl|whoami", 2, NOSCRIPT | LOADING | STALE)
                .doc("6.0.0", "Names the user of this connection.")
                .effect(Connection),
        ]),
    cmd("bgrewriteaof", 1, ADMIN | NOSCRIPT | NO_ASYNC_LOADING)
        .doc("1.0.0", "Rewrites the append-only log in the background.")
        .effect(Admin),
    cmd("bgsave", -1, ADMIN | NOSCRIPT | NO_ASYNC_LOADING)
        .args("[SCHEDULE]")
        .doc("1.0.0", "Saves a snapshot in the background.")
        .effect(Admin),
    cmd("command", -1, LOADING | STALE)
        .doc("2.8.13", "Describes every command.")
        .cost("O(N), N is the number of commands")
        .acl(acl::CONNECTION)
        .tips(&["nondeterministic_output_order"])
        .subcommands(&[
            cmd("command|count", 2, LOADING | STALE)
                .doc("2.8.13", "Counts the commands.")
                .effect(ReadOnly)
                .acl(acl::CONNECTION),
            cmd("command|docs", -2, LOADING | STALE)
                .args("[command-name [command-name ...]]")
                .doc("7.0.0", "Documents commands.")
                .cost("O(N), N is the number of commands")
                .effect(ReadOnly)
                .acl(acl::CONNECTION)
                .tips(&["nondeterministic_output_order"]),
            cmd("command|getkeys", -3, LOADING | STALE)
                .args("command [arg [arg ...]]")
                .doc("2.8.13", "Finds the keys in a command line.")
                .cost("O(N), N is the number of arguments")
                .effect(ReadOnly)
                .acl(acl::CONNECTION),
            cmd("command|getkeysandflags", -3, LOADING | STALE)
                .args("command [arg [arg ...]]")
                .doc("7.0.0", "Finds the keys in a command line, and how each is used.")
                .cost("O(N), N is the number of arguments")
                .effect(ReadOnly)
                .acl(acl::CONNECTION),
            cmd("command|help", 2, LOADING | STALE)
                .doc("5.0.0", "Shows what the subcommands do.")
                .effect(ReadOnly)
                .acl(acl::CONNECTION),
            cmd("command|info", -2, LOADING | STALE)
                .args("[command-name [command-name ...]]")
                .doc("2.8.13", "Describes some commands, or all.")
                .cost("O(N), N is the number of commands")
                .effect(ReadOnly)
                .acl(acl::CONNECTION)
                .tips(&["nondeterministic_output_order"]),
            cmd("command|list", -2, LOADING | STALE)
                .args("[FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]")
                .doc("7.0.0", "Lists command names.")
                .cost("O(N), N is the number of commands")
                .effect(ReadOnly)
                .acl(acl::CONNECTION)
                .tips(&["nondeterministic_output_order"]),
        ]),
    cmd("commandlog", -2, NONE)
        .args("subcommand [arg [arg ...]]")
        .doc("8.1.0", "Container for the command log.")
        .planned("command log")
        .subcommands(&[
            cmd("commandlog|get", 4, ADMIN | LOADING | STALE)
                .args("count <SLOW | LARGE-REQUEST | LARGE-REPLY>")
                .doc("8.1.0", "Returns entries of the command log.")
                .cost("O(N), N is the number of entries returned")
                .effect(ReadOnly)
                .tips(&["request_policy:all_nodes", "nondeterministic_output"])
                .planned("command log"),
            cmd("commandlog|help", 2, LOADING | STALE)
                .doc("8.1.0", "Shows what the subcommands do.")
                .effect(ReadOnly)
                .planned("command log"),
            cmd("commandlog|len", 3, ADMIN | LOADING | STALE)
                .args("<SLOW | LARGE-REQUEST | LARGE-REPLY>")
                .doc("8.1.0", "Counts the entries of the command log.")
                .effect(ReadOnly)
                .tips(&["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"])
                .planned("command log"),
            cmd("commandlog|reset", 3, ADMIN | LOADING | STALE)
                .args("<SLOW | LARGE-REQUEST | LARGE-REPLY>")
                .doc("8.1.0", "Empties the command log.")
                .cost("O(N), N is the number of entries")
                .effect(Admin)
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
                .planned("command log"),
        ]),
    cmd("config", -2, NONE)
        .args("subcommand [arg [arg ...]]")
        .doc("2.0.0", "Container for configuration commands.")
        .subcommands(&[
            cmd("config|get", -3, ADMIN | NOSCRIPT | LOADING | STALE)
                .args("parameter [parameter ...]")
                .doc("2.0.0", "Returns the settings that match patterns.")
                .cost("O(N), N is the number of settings")
                .effect(ReadOnly),
            cmd("config|help", 2, LOADING | STALE)
                .doc("5.0.0", "Shows what the subcommands do.")
                .effect(ReadOnly),
            cmd("config|resetstat", 2, ADMIN | NOSCRIPT | LOADING | STALE)
                .doc("2.0.0", "Sets the counters of INFO back to zero.")
                .effect(Admin)
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
            cmd("config|rewrite", 2, ADMIN | NOSCRIPT | LOADING | STALE)
                .doc("2.8.0", "Writes the current settings to the configuration file.")
                .effect(Admin)
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
            cmd("config|set", -4, ADMIN | NOSCRIPT | LOADING | STALE)
                .args("parameter value [parameter value ...]")
                .doc("2.0.0", "Changes settings, all or none of them.")
                .cost("O(N), N is the number of settings")
                .effect(Admin)
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
        ]),
    cmd("dbsize", 1, READONLY | FAST)
        .doc("1.0.0", "Counts the keys of the selected database.")
        .acl(acl::KEYSPACE)
        .tips(&["request_policy:all_shards", "response_policy:agg_sum"]),
    cmd("debug", -2, ADMIN | NOSCRIPT | LOADING | STALE)
        .args("subcommand [arg [arg ...]]")
        .doc("1.0.0", "Container for debugging aids.")
        .effect(Admin)
        .internal(),
    cmd("failover", -1, ADMIN | NOSCRIPT | STALE)
        .args("[TO host port [FORCE]] [ABORT] [TIMEOUT milliseconds]")
        .doc("6.2.0", "Hands the primary's role to one of its replicas.")
        .effect(Admin)
        .planned("replication"),
    cmd("flushall", -1, WRITE | TOUCHES_ARBITRARY_KEYS)
        .args("[ASYNC | SYNC]")
        .doc("1.0.0", "Deletes every key of every database.")
        .cost("O(N), N is the number of keys in all databases")
        .effect(Admin)
        .acl(acl::DANGEROUS | acl::KEYSPACE)
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]),
    cmd("flushdb", -1, WRITE | TOUCHES_ARBITRARY_KEYS)
        .args("[ASYNC | SYNC]")
        .doc("1.0.0", "Deletes every key of the selected database.")
        .cost("O(N), N is the number of keys in the database")
        .effect(Admin)
        .acl(acl::DANGEROUS | acl::KEYSPACE)
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]),
    cmd("info", -1, LOADING | STALE)
        .args("[section [section ...]]")
        .doc("1.0.0", "Returns facts and counters about the server.")
        .effect(ReadOnly)
        .acl(acl::DANGEROUS)
        .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"]),
    cmd("lastsave", 1, LOADING | STALE | FAST)
        .doc("1.0.0", "Returns the time of the last successful save.")
        .effect(ReadOnly)
        .acl(acl::ADMIN | acl::DANGEROUS)
        .tips(&["nondeterministic_output"]),
    cmd("latency", -2, NONE)
        .args("subcommand [arg [arg ...]]")
        .doc("2.8.13", "Container for latency commands.")
        .subcommands(&[
            cmd("latency|doctor", 2, ADMIN | NOSCRIPT | LOADING | STALE)
                .doc("2.8.13", "Explains what the latency monitor saw.")
                .effect(ReadOnly)
                .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"]),
            cmd("latency|graph", 3, ADMIN | NOSCRIPT | LOADING | STALE)
                .args("event")
                .doc("2.8.13", "Draws the latency of an event over time.")
                .effect(ReadOnly)
                .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"]),
            cmd("latency|help", 2, LOADING | STALE)
                .doc("2.8.13", "Shows what the subcommands do.")
                .effect(ReadOnly),
            cmd("latency|histogram", -2, ADMIN | NOSCRIPT | LOADING | STALE)
                .args("[command [command ...]]")
                .doc("7.0.0", "Returns the distribution of commands' latencies.")
                .cost("O(N), N is the number of commands")
                .effect(ReadOnly)
                .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"]),
            cmd("latency|history", 3, ADMIN | NOSCRIPT | LOADING | STALE)
                .args("event")
                .doc("2.8.13", "Returns the latency samples of an event.")
                .effect(ReadOnly)
                .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"]),
            cmd("latency|latest", 2, ADMIN | NOSCRIPT | LOADING | STALE)
                .doc("2.8.13", "Returns the newest sample of every event.")
                .effect(ReadOnly)
                .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"]),
            cmd("latency|reset", -2, ADMIN | NOSCRIPT | LOADING | STALE)
                .args("[event [event ...]]")
                .doc("2.8.13", "Drops the latency samples of some events, or of all.")
                .effect(Admin)
                .tips(&["request_policy:all_nodes", "response_policy:agg_sum"]),
        ]),
    cmd("lolwut", -1, READONLY | FAST)
        .args("[VERSION version]")
        .doc("5.0.0", "Draws a picture and tells the version."),
    cmd("memory", -2, NONE)
        .args("subcommand [arg [arg ...]]")
        .doc("4.0.0", "Container for memory commands.")
        .subcommands(&[
            cmd("memory|doctor", 2, NONE).doc("4.0.0", "Reports memory problems.").effect(ReadOnly).tips(&[
                "nondeterministic_output",
                "request_policy:all_shards",
                "response_policy:special",
            ]),
            cmd("memory|help", 2, LOADING | STALE)
                .doc("4.0.0", "Shows what the subcommands do.")
                .effect(ReadOnly),
            cmd("memory|malloc-stats", 2, NONE)
                .doc("4.0.0", "Shows the allocator's statistics.")
                .effect(ReadOnly)
                .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"]),
            cmd("memory|purge", 2, NONE)
                .doc("4.0.0", "Asks the allocator to return free memory.")
                .effect(Admin)
                .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]),
            cmd("memory|stats", 2, NONE).doc("4.0.0", "Shows where memory goes.").effect(ReadOnly).tips(&[
                "nondeterministic_output",
                "request_policy:all_shards",
                "response_policy:special",
            ]),
            cmd("memory|usage", -3, READONLY)
                .args("key [SAMPLES count]")
                .doc("4.0.0", "Estimates the bytes that a key takes.")
                .cost("O(N), N is the number of samples")
                .keys(META_2),
        ]),
    cmd("module", -2, NONE)
        .args("subcommand [arg [arg ...]]")
        .doc("4.0.0", "Container for module commands.")
        .planned("modules")
        .subcommands(&[
            cmd("module|help", 2, LOADING | STALE)
                .doc("5.0.0", "Shows what the subcommands do.")
                .effect(ReadOnly)
                .planned("modules"),
            cmd("module|list", 2, ADMIN | NOSCRIPT)
                .doc("4.0.0", "Lists loaded modules.")
                .cost("O(N), N is the number of modules")
                .effect(ReadOnly)
                .tips(&["nondeterministic_output_order"])
                .planned("modules"),
            cmd("module|load", -3, ADMIN | NOSCRIPT | NO_ASYNC_LOADING)
                .args("path [arg [arg ...]]")
                .doc("4.0.0", "Loads a module.")
                .effect(Admin)
                .planned("modules"),
            cmd("module|loadex", -3, ADMIN | NOSCRIPT | NO_ASYNC_LOADING)
                .args("path [CONFIG name value [CONFIG name value ...]] [ARGS args [args ...]]")
                .doc("7.0.0", "Loads a module with settings.")
                .effect(Admin)
                .planned("modules"),
            cmd("module|unload", 3, ADMIN | NOSCRIPT | NO_ASYNC_LOADING)
                .args("name")
                .doc("4.0.0", "Unloads a module.")
                .effect(Admin)
                .planned("modules"),
        ]),
    cmd("monitor", 1, ADMIN | NOSCRIPT | LOADING | STALE)
        .doc("1.0.0", "Streams every command that the server runs.")
        .effect(Connection),
    cmd("psync", -3, ADMIN | NOSCRIPT | NO_ASYNC_LOADING | NO_MULTI)
        .args("replicationid offset")
        .doc("2.8.0", "Starts or resumes replication.")
        .effect(Connection),
    cmd("replconf", -1, ADMIN | NOSCRIPT | LOADING | STALE | ALLOW_BUSY)
        .doc("3.0.0", "Configures a replication link.")
        .effect(Connection)
        .internal(),
    cmd("replicaof", 3, ADMIN | NOSCRIPT | STALE | NO_ASYNC_LOADING)
        .args("<host port | NO ONE>")
        .doc("5.0.0", "Makes this server a replica of another, or a primary.")
        .effect(Admin)
        .planned("replication"),
    cmd("restore-asking", -4, WRITE | DENYOOM | ASKING)
        .args("key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]")
        .doc("3.0.0", "Creates a key from a serialized value in a slot that is being imported.")
        .cost("O(N), N is the number of elements inside the value")
        .keys(REPLACE_1)
        .effect(Convergent)
        .acl(acl::DANGEROUS | acl::KEYSPACE)
        .internal(),
    cmd("role", 1, NOSCRIPT | LOADING | STALE | FAST)
        .doc("2.8.12", "Shows the replication role.")
        .effect(ReadOnly)
        .acl(acl::ADMIN | acl::DANGEROUS),
    cmd("save", 1, ADMIN | NOSCRIPT | NO_ASYNC_LOADING | NO_MULTI)
        .doc("1.0.0", "Saves a snapshot and blocks the server meanwhile.")
        .cost("O(N), N is the number of keys in all databases")
        .effect(Admin),
    cmd("shutdown", -1, ADMIN | NOSCRIPT | LOADING | STALE | NO_MULTI | ALLOW_BUSY)
        .args("[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]")
        .doc("1.0.0", "Saves if configured, then stops the server.")
        .cost("O(N), N is the number of keys if a save is due")
        .effect(Admin),
    cmd("slaveof", 3, ADMIN | NOSCRIPT | STALE | NO_ASYNC_LOADING)
        .args("<host port | NO ONE>")
        .doc("1.0.0", "Makes this server a replica of another, or a primary.")
        .effect(Admin)
        .deprecated("5.0.0", "`REPLICAOF`")
        .planned("replication"),
    cmd("slowlog", -2, NONE)
        .args("subcommand [arg [arg ...]]")
        .doc("2.2.12", "Container for the slow log.")
        .subcommands(&[
            cmd("slowlog|get", -2, ADMIN | LOADING | STALE)
                .args("[count]")
                .doc("2.2.12", "Returns entries of the slow log.")
                .cost("O(N), N is the number of entries returned")
                .effect(ReadOnly)
                .tips(&["request_policy:all_nodes", "nondeterministic_output"]),
            cmd("slowlog|help", 2, LOADING | STALE)
                .doc("6.2.0", "Shows what the subcommands do.")
                .effect(ReadOnly),
            cmd("slowlog|len", 2, ADMIN | LOADING | STALE)
                .doc("2.2.12", "Counts the entries of the slow log.")
                .effect(ReadOnly)
                .tips(&["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"]),
            cmd("slowlog|reset", 2, ADMIN | LOADING | STALE)
                .doc("2.2.12", "Empties the slow log.")
                .cost("O(N), N is the number of entries")
                .effect(Admin)
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
        ]),
    cmd("swapdb", 3, WRITE | FAST | TOUCHES_ARBITRARY_KEYS)
        .args("index1 index2")
        .doc("4.0.0", "Swaps the contents of two databases.")
        .cost("O(N), N is the number of waiting or watching clients")
        .effect(NonIdempotent)
        .acl(acl::DANGEROUS | acl::KEYSPACE),
    cmd("sync", 1, ADMIN | NOSCRIPT | NO_ASYNC_LOADING | NO_MULTI)
        .doc("1.0.0", "Starts replication the old way.")
        .effect(Connection),
    cmd("time", 1, LOADING | STALE | FAST)
        .doc("2.6.0", "Returns the server's time.")
        .effect(ReadOnly)
        .tips(&["nondeterministic_output"]),
    cmd("towline", -2, NONE)
        .args("subcommand [arg [arg ...]]")
        .doc("0.1.0", "Container for Towline's own commands.")
        .subcommands(&[
            cmd("towline|drain", -2, ADMIN | NOSCRIPT | LOADING | STALE)
                .args("<[WINDOW seconds] [TO host:port] [ON local-ip:port] | STATUS | CANCEL [seq]>")
                .doc(
                    "0.1.0",
                    "Tells the connections that exist to move, and closes them later; or shows or ends that.",
                )
                .cost("O(N), N is the number of connections")
                .effect(Admin),
            cmd("towline|help", 2, LOADING | STALE)
                .doc("0.1.0", "Shows what the subcommands do.")
                .effect(ReadOnly),
        ]),
];

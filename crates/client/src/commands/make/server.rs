//! Commands of the group `server`.
//!
//! Written by `cargo xtask fix` from the command table; change crates/spec/src or xtask/src/commands.

use crate::args::ToArgs;
use crate::cmd::{Cmd, cmd};

/// Rewrites the append-only log in the background.
///
/// `BGREWRITEAOF`: O(1), since 1.0.0.
pub fn bgrewriteaof() -> Cmd {
    cmd("BGREWRITEAOF")
}

/// Saves a snapshot in the background.
///
/// `BGSAVE [SCHEDULE]`: O(1), since 1.0.0.
pub fn bgsave() -> Cmd {
    cmd("BGSAVE")
}

/// Saves a snapshot in the background. With options.
///
/// `BGSAVE [SCHEDULE]`: O(1), since 1.0.0.
pub fn bgsave_with(options: impl ToArgs) -> Cmd {
    cmd("BGSAVE").arg(options)
}

/// Counts the keys of the selected database.
///
/// `DBSIZE`: O(1), since 1.0.0.
pub fn dbsize() -> Cmd {
    cmd("DBSIZE")
}

/// Hands the primary's role to one of its replicas.
///
/// `FAILOVER [TO host port [FORCE]] [ABORT] [TIMEOUT milliseconds]`: O(1), since 6.2.0.
pub fn failover() -> Cmd {
    cmd("FAILOVER")
}

/// Hands the primary's role to one of its replicas. With options.
///
/// `FAILOVER [TO host port [FORCE]] [ABORT] [TIMEOUT milliseconds]`: O(1), since 6.2.0.
pub fn failover_with(options: impl ToArgs) -> Cmd {
    cmd("FAILOVER").arg(options)
}

/// Deletes every key of every database.
///
/// `FLUSHALL [ASYNC | SYNC]`: O(N), N is the number of keys in all databases, since 1.0.0.
pub fn flushall() -> Cmd {
    cmd("FLUSHALL")
}

/// Deletes every key of every database. With options.
///
/// `FLUSHALL [ASYNC | SYNC]`: O(N), N is the number of keys in all databases, since 1.0.0.
pub fn flushall_with(options: impl ToArgs) -> Cmd {
    cmd("FLUSHALL").arg(options)
}

/// Deletes every key of the selected database.
///
/// `FLUSHDB [ASYNC | SYNC]`: O(N), N is the number of keys in the database, since 1.0.0.
pub fn flushdb() -> Cmd {
    cmd("FLUSHDB")
}

/// Deletes every key of the selected database. With options.
///
/// `FLUSHDB [ASYNC | SYNC]`: O(N), N is the number of keys in the database, since 1.0.0.
pub fn flushdb_with(options: impl ToArgs) -> Cmd {
    cmd("FLUSHDB").arg(options)
}

/// Returns facts and counters about the server.
///
/// `INFO [section [section ...]]`: O(1), since 1.0.0.
pub fn info(sections: impl ToArgs) -> Cmd {
    cmd("INFO").arg(sections)
}

/// Returns the time of the last successful save.
///
/// `LASTSAVE`: O(1), since 1.0.0.
pub fn lastsave() -> Cmd {
    cmd("LASTSAVE")
}

/// Draws a picture and tells the version.
///
/// `LOLWUT [VERSION version]`: O(1), since 5.0.0.
pub fn lolwut() -> Cmd {
    cmd("LOLWUT")
}

/// Draws a picture and tells the version. With options.
///
/// `LOLWUT [VERSION version]`: O(1), since 5.0.0.
pub fn lolwut_with(options: impl ToArgs) -> Cmd {
    cmd("LOLWUT").arg(options)
}

/// Makes this server a replica of another, or a primary.
///
/// `REPLICAOF <host port | NO ONE>`: O(1), since 5.0.0.
pub fn replicaof(choice: impl ToArgs) -> Cmd {
    cmd("REPLICAOF").arg(choice)
}

/// Shows the replication role.
///
/// `ROLE`: O(1), since 2.8.12.
pub fn role() -> Cmd {
    cmd("ROLE")
}

/// Saves a snapshot and blocks the server meanwhile.
///
/// `SAVE`: O(N), N is the number of keys in all databases, since 1.0.0.
pub fn save() -> Cmd {
    cmd("SAVE")
}

/// Saves if configured, then stops the server.
///
/// `SHUTDOWN [NOSAVE | SAVE] [NOW] [FORCE] [ABORT]`: O(N), N is the number of keys if a save is due, since
/// 1.0.0.
pub fn shutdown() -> Cmd {
    cmd("SHUTDOWN")
}

/// Saves if configured, then stops the server. With options.
///
/// `SHUTDOWN [NOSAVE | SAVE] [NOW] [FORCE] [ABORT]`: O(N), N is the number of keys if a save is due, since
/// 1.0.0.
pub fn shutdown_with(options: impl ToArgs) -> Cmd {
    cmd("SHUTDOWN").arg(options)
}

/// Makes this server a replica of another, or a primary.
///
/// `SLAVEOF <host port | NO ONE>`: O(1), since 1.0.0.
///
/// Old since 5.0.0: better `REPLICAOF`.
pub fn slaveof(choice: impl ToArgs) -> Cmd {
    cmd("SLAVEOF").arg(choice)
}

/// Swaps the contents of two databases.
///
/// `SWAPDB index1 index2`: O(N), N is the number of waiting or watching clients, since 4.0.0.
pub fn swapdb(index1: impl ToArgs, index2: impl ToArgs) -> Cmd {
    cmd("SWAPDB").arg(index1).arg(index2)
}

/// Returns the server's time.
///
/// `TIME`: O(1), since 2.6.0.
pub fn time() -> Cmd {
    cmd("TIME")
}

/// Lists the ACL categories, or the commands of one.
///
/// `ACL CAT [category]`: O(1), since 6.0.0.
pub fn acl_cat() -> Cmd {
    cmd("ACL").arg("CAT")
}

/// Lists the ACL categories, or the commands of one. With options.
///
/// `ACL CAT [category]`: O(1), since 6.0.0.
pub fn acl_cat_with(category: impl ToArgs) -> Cmd {
    cmd("ACL").arg("CAT").arg(category)
}

/// Deletes ACL users and closes their connections.
///
/// `ACL DELUSER username [username ...]`: O(N), N is the number of users deleted, since 6.0.0.
pub fn acl_deluser(usernames: impl ToArgs) -> Cmd {
    cmd("ACL").arg("DELUSER").arg(usernames)
}

/// Tells whether a user might run a command, without running it.
///
/// `ACL DRYRUN username command [arg [arg ...]]`: O(1), since 7.0.0.
pub fn acl_dryrun(username: impl ToArgs, command: impl ToArgs, args: impl ToArgs) -> Cmd {
    cmd("ACL").arg("DRYRUN").arg(username).arg(command).arg(args)
}

/// Makes a random password.
///
/// `ACL GENPASS [bits]`: O(1), since 6.0.0.
pub fn acl_genpass() -> Cmd {
    cmd("ACL").arg("GENPASS")
}

/// Makes a random password. With options.
///
/// `ACL GENPASS [bits]`: O(1), since 6.0.0.
pub fn acl_genpass_with(bits: impl ToArgs) -> Cmd {
    cmd("ACL").arg("GENPASS").arg(bits)
}

/// Shows the rules of one ACL user.
///
/// `ACL GETUSER username`: O(N), N is the number of the user's rules, since 6.0.0.
pub fn acl_getuser(username: impl ToArgs) -> Cmd {
    cmd("ACL").arg("GETUSER").arg(username)
}

/// Shows what the subcommands do.
///
/// `ACL HELP`: O(1), since 6.0.0.
pub fn acl_help() -> Cmd {
    cmd("ACL").arg("HELP")
}

/// Lists the ACL users, each as a line of rules.
///
/// `ACL LIST`: O(N), N is the number of users, since 6.0.0.
pub fn acl_list() -> Cmd {
    cmd("ACL").arg("LIST")
}

/// Reads the ACL users from the configured file again.
///
/// `ACL LOAD`: O(N), N is the number of users, since 6.0.0.
pub fn acl_load() -> Cmd {
    cmd("ACL").arg("LOAD")
}

/// Shows or clears the log of denied commands and logins.
///
/// `ACL LOG [count | RESET]`: O(N), N is the number of entries returned, since 6.0.0.
pub fn acl_log() -> Cmd {
    cmd("ACL").arg("LOG")
}

/// Shows or clears the log of denied commands and logins. With options.
///
/// `ACL LOG [count | RESET]`: O(N), N is the number of entries returned, since 6.0.0.
pub fn acl_log_with(options: impl ToArgs) -> Cmd {
    cmd("ACL").arg("LOG").arg(options)
}

/// Writes the ACL users to the configured file.
///
/// `ACL SAVE`: O(N), N is the number of users, since 6.0.0.
pub fn acl_save() -> Cmd {
    cmd("ACL").arg("SAVE")
}

/// Creates an ACL user or changes its rules.
///
/// `ACL SETUSER username [rule [rule ...]]`: O(N), N is the number of rules, since 6.0.0.
pub fn acl_setuser(username: impl ToArgs, rules: impl ToArgs) -> Cmd {
    cmd("ACL").arg("SETUSER").arg(username).arg(rules)
}

/// Lists the names of the ACL users.
///
/// `ACL USERS`: O(N), N is the number of users, since 6.0.0.
pub fn acl_users() -> Cmd {
    cmd("ACL").arg("USERS")
}

/// Names the user of this connection.
///
/// `ACL WHOAMI`: O(1), since 6.0.0.
pub fn acl_whoami() -> Cmd {
    cmd("ACL").arg("WHOAMI")
}

/// Counts the commands.
///
/// `COMMAND COUNT`: O(1), since 2.8.13.
pub fn command_count() -> Cmd {
    cmd("COMMAND").arg("COUNT")
}

/// Documents commands.
///
/// `COMMAND DOCS [command-name [command-name ...]]`: O(N), N is the number of commands, since 7.0.0.
pub fn command_docs(command_names: impl ToArgs) -> Cmd {
    cmd("COMMAND").arg("DOCS").arg(command_names)
}

/// Finds the keys in a command line.
///
/// `COMMAND GETKEYS command [arg [arg ...]]`: O(N), N is the number of arguments, since 2.8.13.
pub fn command_getkeys(command: impl ToArgs, args: impl ToArgs) -> Cmd {
    cmd("COMMAND").arg("GETKEYS").arg(command).arg(args)
}

/// Finds the keys in a command line, and how each is used.
///
/// `COMMAND GETKEYSANDFLAGS command [arg [arg ...]]`: O(N), N is the number of arguments, since 7.0.0.
pub fn command_getkeysandflags(command: impl ToArgs, args: impl ToArgs) -> Cmd {
    cmd("COMMAND").arg("GETKEYSANDFLAGS").arg(command).arg(args)
}

/// Shows what the subcommands do.
///
/// `COMMAND HELP`: O(1), since 5.0.0.
pub fn command_help() -> Cmd {
    cmd("COMMAND").arg("HELP")
}

/// Describes some commands, or all.
///
/// `COMMAND INFO [command-name [command-name ...]]`: O(N), N is the number of commands, since 2.8.13.
pub fn command_info(command_names: impl ToArgs) -> Cmd {
    cmd("COMMAND").arg("INFO").arg(command_names)
}

/// Lists command names.
///
/// `COMMAND LIST [FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]`: O(N), N is the
/// number of commands, since 7.0.0.
pub fn command_list() -> Cmd {
    cmd("COMMAND").arg("LIST")
}

/// Lists command names. With options.
///
/// `COMMAND LIST [FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]`: O(N), N is the
/// number of commands, since 7.0.0.
pub fn command_list_with(options: impl ToArgs) -> Cmd {
    cmd("COMMAND").arg("LIST").arg(options)
}

/// Returns entries of the command log.
///
/// `COMMANDLOG GET count <SLOW | LARGE-REQUEST | LARGE-REPLY>`: O(N), N is the number of entries returned,
/// since 8.1.0.
pub fn commandlog_get(count: impl ToArgs, choice: impl ToArgs) -> Cmd {
    cmd("COMMANDLOG").arg("GET").arg(count).arg(choice)
}

/// Shows what the subcommands do.
///
/// `COMMANDLOG HELP`: O(1), since 8.1.0.
pub fn commandlog_help() -> Cmd {
    cmd("COMMANDLOG").arg("HELP")
}

/// Counts the entries of the command log.
///
/// `COMMANDLOG LEN <SLOW | LARGE-REQUEST | LARGE-REPLY>`: O(1), since 8.1.0.
pub fn commandlog_len(choice: impl ToArgs) -> Cmd {
    cmd("COMMANDLOG").arg("LEN").arg(choice)
}

/// Empties the command log.
///
/// `COMMANDLOG RESET <SLOW | LARGE-REQUEST | LARGE-REPLY>`: O(N), N is the number of entries, since 8.1.0.
pub fn commandlog_reset(choice: impl ToArgs) -> Cmd {
    cmd("COMMANDLOG").arg("RESET").arg(choice)
}

/// Returns the settings that match patterns.
///
/// `CONFIG GET parameter [parameter ...]`: O(N), N is the number of settings, since 2.0.0.
pub fn config_get(parameters: impl ToArgs) -> Cmd {
    cmd("CONFIG").arg("GET").arg(parameters)
}

/// Shows what the subcommands do.
///
/// `CONFIG HELP`: O(1), since 5.0.0.
pub fn config_help() -> Cmd {
    cmd("CONFIG").arg("HELP")
}

/// Sets the counters of INFO back to zero.
///
/// `CONFIG RESETSTAT`: O(1), since 2.0.0.
pub fn config_resetstat() -> Cmd {
    cmd("CONFIG").arg("RESETSTAT")
}

/// Writes the current settings to the configuration file.
///
/// `CONFIG REWRITE`: O(1), since 2.8.0.
pub fn config_rewrite() -> Cmd {
    cmd("CONFIG").arg("REWRITE")
}

/// Changes settings, all or none of them.
///
/// `CONFIG SET parameter value [parameter value ...]`: O(N), N is the number of settings, since 2.0.0.
pub fn config_set(parameter_values: impl ToArgs) -> Cmd {
    cmd("CONFIG").arg("SET").arg(parameter_values)
}

/// Explains what the latency monitor saw.
///
/// `LATENCY DOCTOR`: O(1), since 2.8.13.
pub fn latency_doctor() -> Cmd {
    cmd("LATENCY").arg("DOCTOR")
}

/// Draws the latency of an event over time.
///
/// `LATENCY GRAPH event`: O(1), since 2.8.13.
pub fn latency_graph(event: impl ToArgs) -> Cmd {
    cmd("LATENCY").arg("GRAPH").arg(event)
}

/// Shows what the subcommands do.
///
/// `LATENCY HELP`: O(1), since 2.8.13.
pub fn latency_help() -> Cmd {
    cmd("LATENCY").arg("HELP")
}

/// Returns the distribution of commands' latencies.
///
/// `LATENCY HISTOGRAM [command [command ...]]`: O(N), N is the number of commands, since 7.0.0.
pub fn latency_histogram(commands: impl ToArgs) -> Cmd {
    cmd("LATENCY").arg("HISTOGRAM").arg(commands)
}

/// Returns the latency samples of an event.
///
/// `LATENCY HISTORY event`: O(1), since 2.8.13.
pub fn latency_history(event: impl ToArgs) -> Cmd {
    cmd("LATENCY").arg("HISTORY").arg(event)
}

/// Returns the newest sample of every event.
///
/// `LATENCY LATEST`: O(1), since 2.8.13.
pub fn latency_latest() -> Cmd {
    cmd("LATENCY").arg("LATEST")
}

/// Drops the latency samples of some events, or of all.
///
/// `LATENCY RESET [event [event ...]]`: O(1), since 2.8.13.
pub fn latency_reset(events: impl ToArgs) -> Cmd {
    cmd("LATENCY").arg("RESET").arg(events)
}

/// Reports memory problems.
///
/// `MEMORY DOCTOR`: O(1), since 4.0.0.
pub fn memory_doctor() -> Cmd {
    cmd("MEMORY").arg("DOCTOR")
}

/// Shows what the subcommands do.
///
/// `MEMORY HELP`: O(1), since 4.0.0.
pub fn memory_help() -> Cmd {
    cmd("MEMORY").arg("HELP")
}

/// Shows the allocator's statistics.
///
/// `MEMORY MALLOC-STATS`: O(1), since 4.0.0.
pub fn memory_malloc_stats() -> Cmd {
    cmd("MEMORY").arg("MALLOC-STATS")
}

/// Asks the allocator to return free memory.
///
/// `MEMORY PURGE`: O(1), since 4.0.0.
pub fn memory_purge() -> Cmd {
    cmd("MEMORY").arg("PURGE")
}

/// Shows where memory goes.
///
/// `MEMORY STATS`: O(1), since 4.0.0.
pub fn memory_stats() -> Cmd {
    cmd("MEMORY").arg("STATS")
}

/// Estimates the bytes that a key takes.
///
/// `MEMORY USAGE key [SAMPLES count]`: O(N), N is the number of samples, since 4.0.0.
pub fn memory_usage(key: impl ToArgs) -> Cmd {
    cmd("MEMORY").arg("USAGE").arg(key)
}

/// Estimates the bytes that a key takes. With options.
///
/// `MEMORY USAGE key [SAMPLES count]`: O(N), N is the number of samples, since 4.0.0.
pub fn memory_usage_with(key: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("MEMORY").arg("USAGE").arg(key).arg(options)
}

/// Shows what the subcommands do.
///
/// `MODULE HELP`: O(1), since 5.0.0.
pub fn module_help() -> Cmd {
    cmd("MODULE").arg("HELP")
}

/// Lists loaded modules.
///
/// `MODULE LIST`: O(N), N is the number of modules, since 4.0.0.
pub fn module_list() -> Cmd {
    cmd("MODULE").arg("LIST")
}

/// Loads a module.
///
/// `MODULE LOAD path [arg [arg ...]]`: O(1), since 4.0.0.
pub fn module_load(path: impl ToArgs, args: impl ToArgs) -> Cmd {
    cmd("MODULE").arg("LOAD").arg(path).arg(args)
}

/// Loads a module with settings.
///
/// `MODULE LOADEX path [CONFIG name value [CONFIG name value ...]] [ARGS args [args ...]]`: O(1), since
/// 7.0.0.
pub fn module_loadex(path: impl ToArgs) -> Cmd {
    cmd("MODULE").arg("LOADEX").arg(path)
}

/// Loads a module with settings. With options.
///
/// `MODULE LOADEX path [CONFIG name value [CONFIG name value ...]] [ARGS args [args ...]]`: O(1), since
/// 7.0.0.
pub fn module_loadex_with(path: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("MODULE").arg("LOADEX").arg(path).arg(options)
}

/// Unloads a module.
///
/// `MODULE UNLOAD name`: O(1), since 4.0.0.
pub fn module_unload(name: impl ToArgs) -> Cmd {
    cmd("MODULE").arg("UNLOAD").arg(name)
}

/// Returns entries of the slow log.
///
/// `SLOWLOG GET [count]`: O(N), N is the number of entries returned, since 2.2.12.
pub fn slowlog_get() -> Cmd {
    cmd("SLOWLOG").arg("GET")
}

/// Returns entries of the slow log. With options.
///
/// `SLOWLOG GET [count]`: O(N), N is the number of entries returned, since 2.2.12.
pub fn slowlog_get_with(count: impl ToArgs) -> Cmd {
    cmd("SLOWLOG").arg("GET").arg(count)
}

/// Shows what the subcommands do.
///
/// `SLOWLOG HELP`: O(1), since 6.2.0.
pub fn slowlog_help() -> Cmd {
    cmd("SLOWLOG").arg("HELP")
}

/// Counts the entries of the slow log.
///
/// `SLOWLOG LEN`: O(1), since 2.2.12.
pub fn slowlog_len() -> Cmd {
    cmd("SLOWLOG").arg("LEN")
}

/// Empties the slow log.
///
/// `SLOWLOG RESET`: O(N), N is the number of entries, since 2.2.12.
pub fn slowlog_reset() -> Cmd {
    cmd("SLOWLOG").arg("RESET")
}

/// Tells the connections that exist to move, and closes them later; or shows or ends that.
///
/// `TOWLINE DRAIN <[WINDOW seconds] [TO host:port] [ON local-ip:port] | STATUS | CANCEL [seq]>`: O(N), N is
/// the number of connections, since 0.1.0.
pub fn towline_drain(choice: impl ToArgs) -> Cmd {
    cmd("TOWLINE").arg("DRAIN").arg(choice)
}

/// Shows what the subcommands do.
///
/// `TOWLINE HELP`: O(1), since 0.1.0.
pub fn towline_help() -> Cmd {
    cmd("TOWLINE").arg("HELP")
}

//! Commands of the group `stream`.
//!
//! Written by `cargo xtask fix` from the command table; change crates/spec/src or xtask/src/commands.

use crate::args::ToArgs;
use crate::cmd::{Cmd, cmd};
use crate::commands::counted;

/// Acknowledges entries for a consumer group.
///
/// `XACK key group id [id ...]`: O(N), N is the number of ids, since 5.0.0.
pub fn xack(key: impl ToArgs, group: impl ToArgs, ids: impl ToArgs) -> Cmd {
    cmd("XACK").arg(key).arg(group).arg(ids)
}

/// Acknowledges entries for a consumer group and deletes them.
///
/// `XACKDEL key group [KEEPREF | DELREF | ACKED] IDS numids id [id ...]`: O(N), N is the number of ids,
/// since 8.2.0.
pub fn xackdel(key: impl ToArgs, group: impl ToArgs, ids: impl ToArgs) -> Cmd {
    counted(cmd("XACKDEL").arg(key).arg(group).arg("IDS"), 1, ids)
}

/// Acknowledges entries for a consumer group and deletes them. With options.
///
/// `XACKDEL key group [KEEPREF | DELREF | ACKED] IDS numids id [id ...]`: O(N), N is the number of ids,
/// since 8.2.0.
pub fn xackdel_with(key: impl ToArgs, group: impl ToArgs, options: impl ToArgs, ids: impl ToArgs) -> Cmd {
    counted(cmd("XACKDEL").arg(key).arg(group).arg(options).arg("IDS"), 1, ids)
}

/// Appends an entry, and creates the stream if absent.
///
/// `XADD key [NOMKSTREAM] [KEEPREF | DELREF | ACKED] [<MAXLEN | MINID> [= | ~] threshold [LIMIT count]] <*
/// | id> field value [field value ...]`: O(N), N is the number of entries trimmed, since 5.0.0.
pub fn xadd(key: impl ToArgs, id: impl ToArgs, field_values: impl ToArgs) -> Cmd {
    cmd("XADD").arg(key).arg(id).arg(field_values)
}

/// Appends an entry, and creates the stream if absent. With options.
///
/// `XADD key [NOMKSTREAM] [KEEPREF | DELREF | ACKED] [<MAXLEN | MINID> [= | ~] threshold [LIMIT count]] <*
/// | id> field value [field value ...]`: O(N), N is the number of entries trimmed, since 5.0.0.
pub fn xadd_with(key: impl ToArgs, options: impl ToArgs, id: impl ToArgs, field_values: impl ToArgs) -> Cmd {
    cmd("XADD").arg(key).arg(options).arg(id).arg(field_values)
}

/// Takes over entries that other consumers left pending.
///
/// `XAUTOCLAIM key group consumer min-idle-time start [COUNT count] [JUSTID]`: O(N), N is the number of
/// entries claimed, since 6.2.0.
pub fn xautoclaim(
    key: impl ToArgs,
    group: impl ToArgs,
    consumer: impl ToArgs,
    min_idle_time: impl ToArgs,
    start: impl ToArgs,
) -> Cmd {
    cmd("XAUTOCLAIM").arg(key).arg(group).arg(consumer).arg(min_idle_time).arg(start)
}

/// Takes over entries that other consumers left pending. With options.
///
/// `XAUTOCLAIM key group consumer min-idle-time start [COUNT count] [JUSTID]`: O(N), N is the number of
/// entries claimed, since 6.2.0.
pub fn xautoclaim_with(
    key: impl ToArgs,
    group: impl ToArgs,
    consumer: impl ToArgs,
    min_idle_time: impl ToArgs,
    start: impl ToArgs,
    options: impl ToArgs,
) -> Cmd {
    cmd("XAUTOCLAIM").arg(key).arg(group).arg(consumer).arg(min_idle_time).arg(start).arg(options)
}

/// Takes over given pending entries.
///
/// `XCLAIM key group consumer min-idle-time id [id ...] [IDLE ms] [TIME unix-time-milliseconds] [RETRYCOUNT
/// count] [FORCE] [JUSTID] [LASTID lastid]`: O(N), N is the number of entries claimed, since 5.0.0.
pub fn xclaim(
    key: impl ToArgs,
    group: impl ToArgs,
    consumer: impl ToArgs,
    min_idle_time: impl ToArgs,
    ids: impl ToArgs,
) -> Cmd {
    cmd("XCLAIM").arg(key).arg(group).arg(consumer).arg(min_idle_time).arg(ids)
}

/// Takes over given pending entries. With options.
///
/// `XCLAIM key group consumer min-idle-time id [id ...] [IDLE ms] [TIME unix-time-milliseconds] [RETRYCOUNT
/// count] [FORCE] [JUSTID] [LASTID lastid]`: O(N), N is the number of entries claimed, since 5.0.0.
pub fn xclaim_with(
    key: impl ToArgs,
    group: impl ToArgs,
    consumer: impl ToArgs,
    min_idle_time: impl ToArgs,
    ids: impl ToArgs,
    options: impl ToArgs,
) -> Cmd {
    cmd("XCLAIM").arg(key).arg(group).arg(consumer).arg(min_idle_time).arg(ids).arg(options)
}

/// Deletes entries.
///
/// `XDEL key id [id ...]`: O(N), N is the number of ids, since 5.0.0.
pub fn xdel(key: impl ToArgs, ids: impl ToArgs) -> Cmd {
    cmd("XDEL").arg(key).arg(ids)
}

/// Deletes entries, with a choice for the groups' references.
///
/// `XDELEX key [KEEPREF | DELREF | ACKED] IDS numids id [id ...]`: O(N), N is the number of ids, since
/// 8.2.0.
pub fn xdelex(key: impl ToArgs, ids: impl ToArgs) -> Cmd {
    counted(cmd("XDELEX").arg(key).arg("IDS"), 1, ids)
}

/// Deletes entries, with a choice for the groups' references. With options.
///
/// `XDELEX key [KEEPREF | DELREF | ACKED] IDS numids id [id ...]`: O(N), N is the number of ids, since
/// 8.2.0.
pub fn xdelex_with(key: impl ToArgs, options: impl ToArgs, ids: impl ToArgs) -> Cmd {
    counted(cmd("XDELEX").arg(key).arg(options).arg("IDS"), 1, ids)
}

/// Counts the entries.
///
/// `XLEN key`: O(1), since 5.0.0.
pub fn xlen(key: impl ToArgs) -> Cmd {
    cmd("XLEN").arg(key)
}

/// Shows the pending entries of a consumer group.
///
/// `XPENDING key group [[IDLE min-idle-time] start end count [consumer]]`: O(N), N is the number of pending
/// entries, since 5.0.0.
pub fn xpending(key: impl ToArgs, group: impl ToArgs) -> Cmd {
    cmd("XPENDING").arg(key).arg(group)
}

/// Shows the pending entries of a consumer group. With options.
///
/// `XPENDING key group [[IDLE min-idle-time] start end count [consumer]]`: O(N), N is the number of pending
/// entries, since 5.0.0.
pub fn xpending_with(key: impl ToArgs, group: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("XPENDING").arg(key).arg(group).arg(options)
}

/// Returns a range of entries, oldest first.
///
/// `XRANGE key start end [COUNT count]`: O(N), N is the number of entries returned, since 5.0.0.
pub fn xrange(key: impl ToArgs, start: impl ToArgs, end: impl ToArgs) -> Cmd {
    cmd("XRANGE").arg(key).arg(start).arg(end)
}

/// Returns a range of entries, oldest first. With options.
///
/// `XRANGE key start end [COUNT count]`: O(N), N is the number of entries returned, since 5.0.0.
pub fn xrange_with(key: impl ToArgs, start: impl ToArgs, end: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("XRANGE").arg(key).arg(start).arg(end).arg(options)
}

/// Returns entries after given ids; can wait for some.
///
/// `XREAD [COUNT count] [BLOCK milliseconds] STREAMS key [key ...] id [id ...]`: O(N), N is the number of
/// entries returned, since 5.0.0.
pub fn xread(keys: impl ToArgs, ids: impl ToArgs) -> Cmd {
    cmd("XREAD").arg("STREAMS").arg(keys).arg(ids)
}

/// Returns entries after given ids; can wait for some. With options.
///
/// `XREAD [COUNT count] [BLOCK milliseconds] STREAMS key [key ...] id [id ...]`: O(N), N is the number of
/// entries returned, since 5.0.0.
pub fn xread_with(options: impl ToArgs, keys: impl ToArgs, ids: impl ToArgs) -> Cmd {
    cmd("XREAD").arg(options).arg("STREAMS").arg(keys).arg(ids)
}

/// Returns entries to a consumer of a group; can wait for some.
///
/// `XREADGROUP GROUP group consumer [COUNT count] [BLOCK milliseconds] [NOACK] STREAMS key [key ...] id [id
/// ...]`: O(N), N is the number of entries returned, since 5.0.0.
pub fn xreadgroup(group: impl ToArgs, consumer: impl ToArgs, keys: impl ToArgs, ids: impl ToArgs) -> Cmd {
    cmd("XREADGROUP").arg("GROUP").arg(group).arg(consumer).arg("STREAMS").arg(keys).arg(ids)
}

/// Returns entries to a consumer of a group; can wait for some. With options.
///
/// `XREADGROUP GROUP group consumer [COUNT count] [BLOCK milliseconds] [NOACK] STREAMS key [key ...] id [id
/// ...]`: O(N), N is the number of entries returned, since 5.0.0.
pub fn xreadgroup_with(
    group: impl ToArgs,
    consumer: impl ToArgs,
    options: impl ToArgs,
    keys: impl ToArgs,
    ids: impl ToArgs,
) -> Cmd {
    cmd("XREADGROUP").arg("GROUP").arg(group).arg(consumer).arg(options).arg("STREAMS").arg(keys).arg(ids)
}

/// Returns a range of entries, newest first.
///
/// `XREVRANGE key end start [COUNT count]`: O(N), N is the number of entries returned, since 5.0.0.
pub fn xrevrange(key: impl ToArgs, end: impl ToArgs, start: impl ToArgs) -> Cmd {
    cmd("XREVRANGE").arg(key).arg(end).arg(start)
}

/// Returns a range of entries, newest first. With options.
///
/// `XREVRANGE key end start [COUNT count]`: O(N), N is the number of entries returned, since 5.0.0.
pub fn xrevrange_with(key: impl ToArgs, end: impl ToArgs, start: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("XREVRANGE").arg(key).arg(end).arg(start).arg(options)
}

/// Sets a stream's last id.
///
/// `XSETID key last-id [ENTRIESADDED entries-added] [MAXDELETEDID max-deleted-id]`: O(1), since 5.0.0.
pub fn xsetid(key: impl ToArgs, last_id: impl ToArgs) -> Cmd {
    cmd("XSETID").arg(key).arg(last_id)
}

/// Sets a stream's last id. With options.
///
/// `XSETID key last-id [ENTRIESADDED entries-added] [MAXDELETEDID max-deleted-id]`: O(1), since 5.0.0.
pub fn xsetid_with(key: impl ToArgs, last_id: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("XSETID").arg(key).arg(last_id).arg(options)
}

/// Removes the oldest entries.
///
/// `XTRIM key <MAXLEN | MINID> [= | ~] threshold [LIMIT count] [KEEPREF | DELREF | ACKED]`: O(N), N is the
/// number of entries trimmed, since 5.0.0.
pub fn xtrim(key: impl ToArgs, strategy: impl ToArgs, threshold: impl ToArgs) -> Cmd {
    cmd("XTRIM").arg(key).arg(strategy).arg(threshold)
}

/// Removes the oldest entries. With options.
///
/// `XTRIM key <MAXLEN | MINID> [= | ~] threshold [LIMIT count] [KEEPREF | DELREF | ACKED]`: O(N), N is the
/// number of entries trimmed, since 5.0.0.
pub fn xtrim_with(
    key: impl ToArgs,
    strategy: impl ToArgs,
    options: impl ToArgs,
    threshold: impl ToArgs,
    options_2: impl ToArgs,
) -> Cmd {
    cmd("XTRIM").arg(key).arg(strategy).arg(options).arg(threshold).arg(options_2)
}

/// Creates a consumer group.
///
/// `XGROUP CREATE key group <id | $> [MKSTREAM] [ENTRIESREAD entries-read]`: O(1), since 5.0.0.
pub fn xgroup_create(key: impl ToArgs, group: impl ToArgs, id: impl ToArgs) -> Cmd {
    cmd("XGROUP").arg("CREATE").arg(key).arg(group).arg(id)
}

/// Creates a consumer group. With options.
///
/// `XGROUP CREATE key group <id | $> [MKSTREAM] [ENTRIESREAD entries-read]`: O(1), since 5.0.0.
pub fn xgroup_create_with(
    key: impl ToArgs,
    group: impl ToArgs,
    id: impl ToArgs,
    options: impl ToArgs,
) -> Cmd {
    cmd("XGROUP").arg("CREATE").arg(key).arg(group).arg(id).arg(options)
}

/// Creates a consumer.
///
/// `XGROUP CREATECONSUMER key group consumer`: O(1), since 6.2.0.
pub fn xgroup_createconsumer(key: impl ToArgs, group: impl ToArgs, consumer: impl ToArgs) -> Cmd {
    cmd("XGROUP").arg("CREATECONSUMER").arg(key).arg(group).arg(consumer)
}

/// Deletes a consumer and its pending entries.
///
/// `XGROUP DELCONSUMER key group consumer`: O(1), since 5.0.0.
pub fn xgroup_delconsumer(key: impl ToArgs, group: impl ToArgs, consumer: impl ToArgs) -> Cmd {
    cmd("XGROUP").arg("DELCONSUMER").arg(key).arg(group).arg(consumer)
}

/// Deletes a consumer group.
///
/// `XGROUP DESTROY key group`: O(N), N is the number of pending entries, since 5.0.0.
pub fn xgroup_destroy(key: impl ToArgs, group: impl ToArgs) -> Cmd {
    cmd("XGROUP").arg("DESTROY").arg(key).arg(group)
}

/// Shows what the subcommands do.
///
/// `XGROUP HELP`: O(1), since 5.0.0.
pub fn xgroup_help() -> Cmd {
    cmd("XGROUP").arg("HELP")
}

/// Sets the last delivered entry of a consumer group.
///
/// `XGROUP SETID key group <id | $> [ENTRIESREAD entries-read]`: O(1), since 5.0.0.
pub fn xgroup_setid(key: impl ToArgs, group: impl ToArgs, id: impl ToArgs) -> Cmd {
    cmd("XGROUP").arg("SETID").arg(key).arg(group).arg(id)
}

/// Sets the last delivered entry of a consumer group. With options.
///
/// `XGROUP SETID key group <id | $> [ENTRIESREAD entries-read]`: O(1), since 5.0.0.
pub fn xgroup_setid_with(key: impl ToArgs, group: impl ToArgs, id: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("XGROUP").arg("SETID").arg(key).arg(group).arg(id).arg(options)
}

/// Lists the consumers of a group.
///
/// `XINFO CONSUMERS key group`: O(1), since 5.0.0.
pub fn xinfo_consumers(key: impl ToArgs, group: impl ToArgs) -> Cmd {
    cmd("XINFO").arg("CONSUMERS").arg(key).arg(group)
}

/// Lists the consumer groups of a stream.
///
/// `XINFO GROUPS key`: O(1), since 5.0.0.
pub fn xinfo_groups(key: impl ToArgs) -> Cmd {
    cmd("XINFO").arg("GROUPS").arg(key)
}

/// Shows what the subcommands do.
///
/// `XINFO HELP`: O(1), since 5.0.0.
pub fn xinfo_help() -> Cmd {
    cmd("XINFO").arg("HELP")
}

/// Describes a stream.
///
/// `XINFO STREAM key [FULL [COUNT count]]`: O(1), since 5.0.0.
pub fn xinfo_stream(key: impl ToArgs) -> Cmd {
    cmd("XINFO").arg("STREAM").arg(key)
}

/// Describes a stream. With options.
///
/// `XINFO STREAM key [FULL [COUNT count]]`: O(1), since 5.0.0.
pub fn xinfo_stream_with(key: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("XINFO").arg("STREAM").arg(key).arg(options)
}

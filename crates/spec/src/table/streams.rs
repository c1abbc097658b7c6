//! Streams.

use super::prelude::*;

pub(super) const ROWS: &[Row] = &[
    cmd("xack", -4, WRITE | FAST)
        .args("key group id [id ...]")
        .doc("5.0.0", "Acknowledges entries for a consumer group.")
        .cost("O(N), N is the number of ids")
        .keys(CHANGE_1)
        .effect(Convergent)
        .planned("streams"),
    cmd("xackdel", -6, WRITE | FAST)
        .args("key group [KEEPREF | DELREF | ACKED] IDS numids id [id ...]")
        .doc("8.2.0", "Acknowledges entries for a consumer group and deletes them.")
        .cost("O(N), N is the number of ids")
        .keys(&[key(1, RW | UPDATE | DELETE)])
        .effect(Convergent)
        .planned("streams"),
    cmd("xadd", -5, WRITE | DENYOOM | FAST)
        .args(
            "key [NOMKSTREAM] [KEEPREF | DELREF | ACKED] [<MAXLEN | MINID> [= | ~] threshold \
             [LIMIT count]] <* | id> field value [field value ...]",
        )
        .doc("5.0.0", "Appends an entry, and creates the stream if absent.")
        .cost("O(N), N is the number of entries trimmed")
        .keys(&[key(1, RW | UPDATE).note("Trimming may remove entries.")])
        .effect(NonIdempotent)
        .tips(&["nondeterministic_output"])
        .planned("streams"),
    cmd("xautoclaim", -6, WRITE | FAST)
        .args("key group consumer min-idle-time start [COUNT count] [JUSTID]")
        .doc("6.2.0", "Takes over entries that other consumers left pending.")
        .cost("O(N), N is the number of entries claimed")
        .keys(REMOVE_1)
        .effect(NonIdempotent)
        .tips(&["nondeterministic_output"])
        .planned("streams"),
    cmd("xclaim", -6, WRITE | FAST)
        .args(
            "key group consumer min-idle-time id [id ...] [IDLE ms] [TIME unix-time-milliseconds] \
             [RETRYCOUNT count] [FORCE] [JUSTID] [LASTID lastid]",
        )
        .doc("5.0.0", "Takes over given pending entries.")
        .cost("O(N), N is the number of entries claimed")
        .keys(CHANGE_1)
        .effect(NonIdempotent)
        .tips(&["nondeterministic_output"])
        .planned("streams"),
    cmd("xdel", -3, WRITE | FAST)
        .args("key id [id ...]")
        .doc("5.0.0", "Deletes entries.")
        .cost("O(N), N is the number of ids")
        .keys(REMOVE_1)
        .effect(Convergent)
        .planned("streams"),
    cmd("xdelex", -5, WRITE | FAST)
        .args("key [KEEPREF | DELREF | ACKED] IDS numids id [id ...]")
        .doc("8.2.0", "Deletes entries, with a choice for the groups' references.")
        .cost("O(N), N is the number of ids")
        .keys(REMOVE_1)
        .effect(Convergent)
        .planned("streams"),
    cmd("xgroup", -2, NONE)
        .args("subcommand [arg [arg ...]]")
        .doc("5.0.0", "Container for consumer group commands.")
        .planned("streams")
        .subcommands(&[
            cmd("xgroup|create", -5, WRITE | DENYOOM)
                .args("key group <id | $> [MKSTREAM] [ENTRIESREAD entries-read]")
                .doc("5.0.0", "Creates a consumer group.")
                .keys(&[key(2, RW | INSERT)])
                .effect(Convergent)
                .planned("streams"),
            cmd("xgroup|createconsumer", 5, WRITE | DENYOOM)
                .args("key group consumer")
                .doc("6.2.0", "Creates a consumer.")
                .keys(&[key(2, RW | INSERT)])
                .effect(Convergent)
                .planned("streams"),
            cmd("xgroup|delconsumer", 5, WRITE)
                .args("key group consumer")
                .doc("5.0.0", "Deletes a consumer and its pending entries.")
                .keys(&[key(2, RW | DELETE)])
                .effect(Convergent)
                .planned("streams"),
            cmd("xgroup|destroy", 4, WRITE)
                .args("key group")
                .doc("5.0.0", "Deletes a consumer group.")
                .cost("O(N), N is the number of pending entries")
                .keys(&[key(2, RW | DELETE)])
                .effect(Convergent)
                .planned("streams"),
            cmd("xgroup|help", 2, LOADING | STALE)
                .doc("5.0.0", "Shows what the subcommands do.")
                .effect(ReadOnly)
                .planned("streams"),
            cmd("xgroup|setid", -5, WRITE)
                .args("key group <id | $> [ENTRIESREAD entries-read]")
                .doc("5.0.0", "Sets the last delivered entry of a consumer group.")
                .keys(&[key(2, RW | UPDATE)])
                .effect(Idempotent)
                .planned("streams"),
        ]),
    cmd("xinfo", -2, NONE)
        .args("subcommand [arg [arg ...]]")
        .doc("5.0.0", "Container for commands that look inside a stream.")
        .planned("streams")
        .subcommands(&[
            cmd("xinfo|consumers", 4, READONLY)
                .args("key group")
                .doc("5.0.0", "Lists the consumers of a group.")
                .keys(READ_2)
                .tips(&["nondeterministic_output"])
                .planned("streams"),
            cmd("xinfo|groups", 3, READONLY)
                .args("key")
                .doc("5.0.0", "Lists the consumer groups of a stream.")
                .keys(READ_2)
                .planned("streams"),
            cmd("xinfo|help", 2, LOADING | STALE)
                .doc("5.0.0", "Shows what the subcommands do.")
                .effect(ReadOnly)
                .planned("streams"),
            cmd("xinfo|stream", -3, READONLY)
                .args("key [FULL [COUNT count]]")
                .doc("5.0.0", "Describes a stream.")
                .keys(READ_2)
                .planned("streams"),
        ]),
    cmd("xlen", 2, READONLY | FAST)
        .args("key")
        .doc("5.0.0", "Counts the entries.")
        .keys(META_1)
        .planned("streams"),
    cmd("xpending", -3, READONLY)
        .args("key group [[IDLE min-idle-time] start end count [consumer]]")
        .doc("5.0.0", "Shows the pending entries of a consumer group.")
        .cost("O(N), N is the number of pending entries")
        .keys(READ_1)
        .tips(&["nondeterministic_output"])
        .planned("streams"),
    cmd("xrange", -4, READONLY)
        .args("key start end [COUNT count]")
        .doc("5.0.0", "Returns a range of entries, oldest first.")
        .cost("O(N), N is the number of entries returned")
        .keys(READ_1)
        .planned("streams"),
    cmd("xread", -4, READONLY | BLOCKING)
        .args("[COUNT count] [BLOCK milliseconds] STREAMS key [key ...] id [id ...]")
        .doc("5.0.0", "Returns entries after given ids; can wait for some.")
        .cost("O(N), N is the number of entries returned")
        .keys(&[after("STREAMS", 1, -1, 2, RO | ACCESS)])
        .planned("streams"),
    cmd("xreadgroup", -7, WRITE | BLOCKING)
        .args(
            "GROUP group consumer [COUNT count] [BLOCK milliseconds] [NOACK] STREAMS key [key ...] id \
             [id ...]",
        )
        .doc("5.0.0", "Returns entries to a consumer of a group; can wait for some.")
        .cost("O(N), N is the number of entries returned")
        .keys(&[after("STREAMS", 4, -1, 2, RO | ACCESS)])
        .effect(NonIdempotent)
        .planned("streams"),
    cmd("xrevrange", -4, READONLY)
        .args("key end start [COUNT count]")
        .doc("5.0.0", "Returns a range of entries, newest first.")
        .cost("O(N), N is the number of entries returned")
        .keys(READ_1)
        .planned("streams"),
    cmd("xsetid", -3, WRITE | DENYOOM | FAST)
        .args("key last-id [ENTRIESADDED entries-added] [MAXDELETEDID max-deleted-id]")
        .doc("5.0.0", "Sets a stream's last id.")
        .keys(CHANGE_1)
        .effect(Idempotent)
        .planned("streams"),
    cmd("xtrim", -4, WRITE)
        .args("key <MAXLEN | MINID> [= | ~] threshold [LIMIT count] [KEEPREF | DELREF | ACKED]")
        .doc("5.0.0", "Removes the oldest entries.")
        .cost("O(N), N is the number of entries trimmed")
        .keys(REMOVE_1)
        .effect(Convergent)
        .tips(&["nondeterministic_output"])
        .planned("streams"),
];

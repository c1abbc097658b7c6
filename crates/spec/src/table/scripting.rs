//! Scripts and functions.

use super::prelude::*;

pub(super) const ROWS: &[Row] = &[
    cmd("eval", -3, NOSCRIPT | STALE | SKIP_MONITOR | MAY_REPLICATE | NO_MANDATORY_KEYS)
        .args("script numkeys [key [key ...]] [arg [arg ...]]")
        .doc("2.6.0", "Runs a Lua script.")
        .cost("Depends on the script")
        .keys(&[counted(2, 1, RW | ACCESS | UPDATE).note("A script may do anything with its keys.")])
        .effect(NonIdempotent)
        .planned("scripting"),
    cmd("eval_ro", -3, READONLY | NOSCRIPT | STALE | SKIP_MONITOR | NO_MANDATORY_KEYS)
        .args("script numkeys [key [key ...]] [arg [arg ...]]")
        .doc("7.0.0", "Runs a Lua script that may not write.")
        .cost("Depends on the script")
        .keys(&[counted(2, 1, RO | ACCESS)])
        .planned("scripting"),
    cmd("evalsha", -3, NOSCRIPT | STALE | SKIP_MONITOR | MAY_REPLICATE | NO_MANDATORY_KEYS)
        .args("sha1 numkeys [key [key ...]] [arg [arg ...]]")
        .doc("2.6.0", "Runs a cached Lua script by its digest.")
        .cost("Depends on the script")
        .keys(&[counted(2, 1, RW | ACCESS | UPDATE).note("A script may do anything with its keys.")])
        .effect(NonIdempotent)
        .planned("scripting"),
    cmd("evalsha_ro", -3, READONLY | NOSCRIPT | STALE | SKIP_MONITOR | NO_MANDATORY_KEYS)
        .args("sha1 numkeys [key [key ...]] [arg [arg ...]]")
        .doc("7.0.0", "Runs a cached Lua script that may not write, by its digest.")
        .cost("Depends on the script")
        .keys(&[counted(2, 1, RO | ACCESS)])
        .planned("scripting"),
    cmd("fcall", -3, NOSCRIPT | STALE | SKIP_MONITOR | MAY_REPLICATE | NO_MANDATORY_KEYS)
        .args("function numkeys [key [key ...]] [arg [arg ...]]")
        .doc("7.0.0", "Calls a function.")
        .cost("Depends on the function")
        .keys(&[counted(2, 1, RW | ACCESS | UPDATE).note("A function may do anything with its keys.")])
        .effect(NonIdempotent)
        .planned("scripting"),
    cmd("fcall_ro", -3, READONLY | NOSCRIPT | STALE | SKIP_MONITOR | NO_MANDATORY_KEYS)
        .args("function numkeys [key [key ...]] [arg [arg ...]]")
        .doc("7.0.0", "Calls a function that may not write.")
        .cost("Depends on the function")
        .keys(&[counted(2, 1, RO | ACCESS)])
        .planned("scripting"),
    cmd("function", -2, NONE)
        .args("subcommand [arg [arg ...]]")
        .doc("7.0.0", "Container for function commands.")
        .planned("scripting")
        .subcommands(&[
            cmd("function|delete", 3, WRITE | NOSCRIPT | MAY_REPLICATE)
                .args("library-name")
                .doc("7.0.0", "Deletes a library and its functions.")
                .effect(Admin)
                .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
                .planned("scripting"),
            cmd("function|dump", 2, NOSCRIPT)
                .doc("7.0.0", "Returns every library in serialized form.")
                .cost("O(N), N is the number of functions")
                .effect(ReadOnly)
                .planned("scripting"),
            cmd("function|flush", -2, WRITE | NOSCRIPT | MAY_REPLICATE)
                .args("[ASYNC | SYNC]")
                .doc("7.0.0", "Deletes every library.")
                .cost("O(N), N is the number of functions")
                .effect(Admin)
                .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
                .planned("scripting"),
            cmd("function|help", 2, LOADING | STALE)
                .doc("7.0.0", "Shows what the subcommands do.")
                .effect(ReadOnly)
                .planned("scripting"),
            cmd("function|kill", 2, NOSCRIPT | ALLOW_BUSY)
                .doc("7.0.0", "Stops a function that runs too long.")
                .effect(Admin)
                .tips(&["request_policy:all_shards", "response_policy:one_succeeded"])
                .planned("scripting"),
            cmd("function|list", -2, NOSCRIPT)
                .args("[LIBRARYNAME library-name-pattern] [WITHCODE]")
                .doc("7.0.0", "Lists libraries and their functions.")
                .cost("O(N), N is the number of functions")
                .effect(ReadOnly)
                .tips(&["nondeterministic_output_order"])
                .planned("scripting"),
            cmd("function|load", -3, WRITE | DENYOOM | NOSCRIPT | MAY_REPLICATE)
                .args("[REPLACE] function-code")
                .doc("7.0.0", "Creates a library, or replaces it.")
                .cost("O(N), N is the length of the script")
                .effect(Admin)
                .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
                .planned("scripting"),
            cmd("function|restore", -3, WRITE | DENYOOM | NOSCRIPT | MAY_REPLICATE)
                .args("serialized-value [FLUSH | APPEND | REPLACE]")
                .doc("7.0.0", "Restores libraries from their serialized form.")
                .cost("O(N), N is the number of functions")
                .effect(Admin)
                .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
                .planned("scripting"),
            cmd("function|stats", 2, NOSCRIPT | ALLOW_BUSY)
                .doc("7.0.0", "Shows the running function and the engines.")
                .effect(ReadOnly)
                .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
                .planned("scripting"),
        ]),
    cmd("script", -2, NONE)
        .args("subcommand [arg [arg ...]]")
        .doc("2.6.0", "Container for script commands.")
        .planned("scripting")
        .subcommands(&[
            cmd("script|debug", 3, NOSCRIPT)
                .args("<YES | SYNC | NO>")
                .doc("3.2.0", "Sets the debug mode of scripts.")
                .effect(Connection)
                .planned("scripting"),
            cmd("script|exists", -3, NOSCRIPT)
                .args("sha1 [sha1 ...]")
                .doc("2.6.0", "Tells which scripts are cached.")
                .cost("O(N), N is the number of scripts")
                .effect(ReadOnly)
                .tips(&["request_policy:all_shards", "response_policy:agg_logical_and"])
                .planned("scripting"),
            cmd("script|flush", -2, NOSCRIPT | MAY_REPLICATE)
                .args("[ASYNC | SYNC]")
                .doc("2.6.0", "Empties the script cache.")
                .cost("O(N), N is the number of scripts")
                .effect(Admin)
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
                .planned("scripting"),
            cmd("script|help", 2, LOADING | STALE)
                .doc("5.0.0", "Shows what the subcommands do.")
                .effect(ReadOnly)
                .planned("scripting"),
            cmd("script|kill", 2, NOSCRIPT | ALLOW_BUSY)
                .doc("2.6.0", "Stops a script that runs too long.")
                .effect(Admin)
                .tips(&["request_policy:all_shards", "response_policy:one_succeeded"])
                .planned("scripting"),
            cmd("script|load", 3, NOSCRIPT | STALE | MAY_REPLICATE)
                .args("script")
                .doc("2.6.0", "Puts a script into the cache.")
                .cost("O(N), N is the length of the script")
                .effect(Idempotent)
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
                .planned("scripting"),
            cmd("script|show", 3, NOSCRIPT | STALE)
                .args("sha1")
                .doc("8.0.0", "Returns the text of a cached script.")
                .effect(ReadOnly)
                .planned("scripting"),
        ]),
];

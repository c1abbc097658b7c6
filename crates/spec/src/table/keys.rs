//! Keys of any type.

use super::prelude::*;

pub(super) const ROWS: &[Row] = &[
    cmd("copy", -3, WRITE | DENYOOM)
        .args("source destination [DB destination-db] [REPLACE]")
        .doc("6.2.0", "Copies a value to another key.")
        .cost("O(N), N is the number of elements inside the value")
        .keys(&[key(1, RO | ACCESS), key(2, OW | UPDATE)])
        .effect(Convergent),
    cmd("del", -2, WRITE)
        .args("key [key ...]")
        .doc("1.0.0", "Deletes keys.")
        .cost("O(N), N is the number of elements inside the values")
        .keys(&[keys(1, -1, 1, RM | DELETE)])
        .effect(Convergent)
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"]),
    cmd("dump", 2, READONLY)
        .args("key")
        .doc("2.6.0", "Returns a value in serialized form.")
        .cost("O(N), N is the size of the value")
        .keys(READ_1)
        .tips(&["nondeterministic_output"]),
    cmd("exists", -2, READONLY | FAST)
        .args("key [key ...]")
        .doc("1.0.0", "Counts how many of the given keys exist.")
        .cost("O(N), N is the number of keys")
        .keys(META_ALL)
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"]),
    cmd("expire", -3, WRITE | FAST)
        .args("key seconds [NX | XX | GT | LT]")
        .doc("1.0.0", "Sets a key's time to live in seconds.")
        .keys(CHANGE_1)
        .effect(Convergent),
    cmd("expireat", -3, WRITE | FAST)
        .args("key unix-time-seconds [NX | XX | GT | LT]")
        .doc("1.2.0", "Sets the time at which a key expires, in Unix seconds.")
        .keys(CHANGE_1)
        .effect(Convergent),
    cmd("expiretime", 2, READONLY | FAST)
        .args("key")
        .doc("7.0.0", "Returns the time at which a key expires, in Unix seconds.")
        .keys(READ_1),
    cmd("keys", 2, READONLY | TOUCHES_ARBITRARY_KEYS)
        .args("pattern")
        .doc("1.0.0", "Lists the keys that match a pattern.")
        .cost("O(N), N is the number of keys in the database")
        .acl(acl::DANGEROUS)
        .tips(&["request_policy:all_shards", "nondeterministic_output_order"]),
    cmd("migrate", -6, WRITE)
        .args(
            "host port <key | \"\"> destination-db timeout [COPY] [REPLACE] [AUTH password \
             | AUTH2 username password] [KEYS key [key ...]]",
        )
        .doc("2.6.0", "Moves keys to another server.")
        .cost("O(N), N is the size of the values, plus their transfer")
        .keys(&[key(3, RW | ACCESS | DELETE), after("KEYS", -2, -1, 0, RW | ACCESS | DELETE | INCOMPLETE)])
        .shape(KeyShape::Migrate)
        .effect(NonIdempotent)
        .acl(acl::DANGEROUS)
        .tips(&["nondeterministic_output"]),
    cmd("move", 3, WRITE | FAST)
        .args("key db")
        .doc("1.0.0", "Moves a key to another database.")
        .keys(EXCHANGE_1)
        .effect(Convergent),
    cmd("object", -2, NONE)
        .args("subcommand [arg [arg ...]]")
        .doc("2.2.3", "Container for commands that look inside a value.")
        .subcommands(&[
            cmd("object|encoding", 3, READONLY)
                .args("key")
                .doc("2.2.3", "Names the encoding of a value.")
                .keys(META_2)
                .tips(&["nondeterministic_output"]),
            cmd("object|freq", 3, READONLY)
                .args("key")
                .doc("4.0.0", "Returns the access frequency counter of a key.")
                .keys(META_2)
                .tips(&["nondeterministic_output"]),
            cmd("object|help", 2, LOADING | STALE)
                .doc("6.2.0", "Shows what the subcommands do.")
                .effect(ReadOnly),
            cmd("object|idletime", 3, READONLY)
                .args("key")
                .doc("2.2.3", "Returns how long a key has not been used, in seconds.")
                .keys(META_2)
                .tips(&["nondeterministic_output"]),
            cmd("object|refcount", 3, READONLY)
                .args("key")
                .doc("2.2.3", "Returns the reference count of a value.")
                .keys(META_2)
                .tips(&["nondeterministic_output"]),
        ]),
    cmd("persist", 2, WRITE | FAST)
        .args("key")
        .doc("2.2.0", "Makes a key stay until it is deleted.")
        .keys(CHANGE_1)
        .effect(Convergent),
    cmd("pexpire", -3, WRITE | FAST)
        .args("key milliseconds [NX | XX | GT | LT]")
        .doc("2.6.0", "Sets a key's time to live in milliseconds.")
        .keys(CHANGE_1)
        .effect(Convergent),
    cmd("pexpireat", -3, WRITE | FAST)
        .args("key unix-time-milliseconds [NX | XX | GT | LT]")
        .doc("2.6.0", "Sets the time at which a key expires, in Unix milliseconds.")
        .keys(CHANGE_1)
        .effect(Convergent),
    cmd("pexpiretime", 2, READONLY | FAST)
        .args("key")
        .doc("7.0.0", "Returns the time at which a key expires, in Unix milliseconds.")
        .keys(READ_1),
    cmd("pttl", 2, READONLY | FAST)
        .args("key")
        .doc("2.6.0", "Returns a key's time to live in milliseconds.")
        .keys(READ_1)
        .tips(&["nondeterministic_output"]),
    cmd("randomkey", 1, READONLY | TOUCHES_ARBITRARY_KEYS).doc("1.0.0", "Returns a random key.").tips(&[
        "request_policy:all_shards",
        "response_policy:special",
        "nondeterministic_output",
    ]),
    cmd("rename", 3, WRITE)
        .args("key newkey")
        .doc("1.0.0", "Renames a key, and replaces the key that had the new name.")
        .keys(&[key(1, RW | ACCESS | DELETE), key(2, OW | UPDATE)])
        .effect(NonIdempotent),
    cmd("renamenx", 3, WRITE | FAST)
        .args("key newkey")
        .doc("1.0.0", "Renames a key unless the new name is taken.")
        .keys(&[key(1, RW | ACCESS | DELETE), key(2, OW | INSERT)])
        .effect(NonIdempotent),
    cmd("restore", -4, WRITE | DENYOOM)
        .args("key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]")
        .doc("2.6.0", "Creates a key from a serialized value.")
        .cost("O(N), N is the number of elements inside the value")
        .keys(REPLACE_1)
        .effect(Convergent)
        .acl(acl::DANGEROUS),
    cmd("scan", -2, READONLY | TOUCHES_ARBITRARY_KEYS)
        .args("cursor [MATCH pattern] [COUNT count] [TYPE type]")
        .doc("2.8.0", "Iterates over the keys of the selected database.")
        .cost("O(1) per call, O(N) for all, N is the number of elements")
        .tips(&["nondeterministic_output", "request_policy:special", "response_policy:special"]),
    cmd("sort", -2, WRITE | DENYOOM | TOUCHES_ARBITRARY_KEYS)
        .args(
            "key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] \
             [ALPHA] [STORE destination]",
        )
        .doc("1.0.0", "Sorts the elements of a list, set or sorted set, and can store the result.")
        .cost("O(N+M*log(M)), N is the number of elements, M of those returned")
        .keys(&[key(1, RO | ACCESS), unknown(RO | ACCESS), unknown(OW | UPDATE)])
        .shape(KeyShape::Sort)
        .effect(NonIdempotent)
        .acl_only(acl::DANGEROUS | acl::LIST | acl::SET | acl::SORTEDSET),
    cmd("sort_ro", -2, READONLY | TOUCHES_ARBITRARY_KEYS)
        .args("key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] [ALPHA]")
        .doc("7.0.0", "Sorts the elements of a list, set or sorted set.")
        .cost("O(N+M*log(M)), N is the number of elements, M of those returned")
        .keys(&[key(1, RO | ACCESS), unknown(RO | ACCESS)])
        .shape(KeyShape::Sort)
        .acl_only(acl::DANGEROUS | acl::LIST | acl::SET | acl::SORTEDSET),
    cmd("touch", -2, READONLY | FAST)
        .args("key [key ...]")
        .doc("3.2.1", "Marks keys as just used and counts those that exist.")
        .cost("O(N), N is the number of keys")
        .keys(META_ALL)
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"]),
    cmd("ttl", 2, READONLY | FAST)
        .args("key")
        .doc("1.0.0", "Returns a key's time to live in seconds.")
        .keys(READ_1)
        .tips(&["nondeterministic_output"]),
    cmd("type", 2, READONLY | FAST).args("key").doc("1.0.0", "Names the type of a value.").keys(META_1),
    cmd("unlink", -2, WRITE | FAST)
        .args("key [key ...]")
        .doc("4.0.0", "Deletes keys and frees large values in the background.")
        .cost("O(1) per key; large values are freed in the background")
        .keys(&[keys(1, -1, 1, RM | DELETE)])
        .effect(Convergent)
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"]),
    cmd("wait", 3, BLOCKING)
        .args("numreplicas timeout")
        .doc("3.0.0", "Waits until replicas have this connection's writes.")
        .effect(Connection)
        .acl_only(acl::CONNECTION)
        .tips(&["request_policy:all_shards", "response_policy:agg_min"]),
    cmd("waitaof", 4, BLOCKING)
        .args("numlocal numreplicas timeout")
        .doc("7.2.0", "Waits until this connection's writes are on disk, here and on replicas.")
        .effect(Connection)
        .acl_only(acl::CONNECTION)
        .tips(&["request_policy:all_shards", "response_policy:agg_min"])
        .planned("persistence"),
];

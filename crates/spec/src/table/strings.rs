//! Strings.

use super::prelude::*;

pub(super) const ROWS: &[Row] = &[
    cmd("append", 3, WRITE | DENYOOM | FAST)
        .args("key value")
        .doc("2.0.0", "Adds text to the end of a string, which is created if absent.")
        .cost("O(N), N is the length of the text appended")
        .keys(ADD_1)
        .effect(NonIdempotent),
    cmd("decr", 2, WRITE | DENYOOM | FAST)
        .args("key")
        .doc("1.0.0", "Subtracts one from an integer; an absent key counts as 0.")
        .keys(EXCHANGE_1)
        .effect(NonIdempotent),
    cmd("decrby", 3, WRITE | DENYOOM | FAST)
        .args("key decrement")
        .doc("1.0.0", "Subtracts a number from an integer; an absent key counts as 0.")
        .keys(EXCHANGE_1)
        .effect(NonIdempotent),
    cmd("delifeq", 3, WRITE | FAST)
        .args("key value")
        .doc("9.0.0", "Deletes a key if it holds the given string.")
        .keys(&[key(1, RM | DELETE)])
        .effect(Convergent),
    cmd("get", 2, READONLY | FAST).args("key").doc("1.0.0", "Returns a string.").keys(READ_1),
    cmd("getdel", 2, WRITE | FAST)
        .args("key")
        .doc("6.2.0", "Returns a string and deletes its key.")
        .keys(TAKE_1)
        .effect(NonIdempotent),
    cmd("getex", -2, WRITE | FAST)
        .args(
            "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds \
             | PERSIST]",
        )
        .doc("6.2.0", "Returns a string and changes its expiry.")
        .keys(&[key(1, RW | ACCESS | UPDATE).note("Reading may change the expiry.")])
        .effect(Idempotent),
    cmd("getrange", 4, READONLY)
        .args("key start end")
        .doc("2.4.0", "Returns a part of a string.")
        .cost("O(N), N is the length of the part")
        .keys(READ_1),
    cmd("getset", 3, WRITE | DENYOOM | FAST)
        .args("key value")
        .doc("1.0.0", "Sets a string and returns the old one.")
        .keys(EXCHANGE_1)
        .effect(NonIdempotent)
        .deprecated("6.2.0", "`SET` with the `GET` argument"),
    cmd("incr", 2, WRITE | DENYOOM | FAST)
        .args("key")
        .doc("1.0.0", "Adds one to an integer; an absent key counts as 0.")
        .keys(EXCHANGE_1)
        .effect(NonIdempotent),
    cmd("incrby", 3, WRITE | DENYOOM | FAST)
        .args("key increment")
        .doc("1.0.0", "Adds a number to an integer; an absent key counts as 0.")
        .keys(EXCHANGE_1)
        .effect(NonIdempotent),
    cmd("incrbyfloat", 3, WRITE | DENYOOM | FAST)
        .args("key increment")
        .doc("2.6.0", "Adds a decimal number; an absent key counts as 0.")
        .keys(EXCHANGE_1)
        .effect(NonIdempotent),
    cmd("lcs", -3, READONLY)
        .args("key1 key2 [LEN] [IDX] [MINMATCHLEN min-match-len] [WITHMATCHLEN]")
        .doc("7.0.0", "Finds the longest common subsequence of two strings.")
        .cost("O(N*M), N and M are the lengths of the strings")
        .keys(&[keys(1, 1, 1, RO | ACCESS)]),
    cmd("mget", -2, READONLY | FAST)
        .args("key [key ...]")
        .doc("1.0.0", "Returns several strings.")
        .cost("O(N), N is the number of keys")
        .keys(READ_ALL)
        .tips(&["request_policy:multi_shard"]),
    cmd("mset", -3, WRITE | DENYOOM)
        .args("key value [key value ...]")
        .doc("1.0.1", "Sets several strings.")
        .cost("O(N), N is the number of keys")
        .keys(&[keys(1, -1, 2, OW | UPDATE)])
        .effect(Idempotent)
        .tips(&["request_policy:multi_shard", "response_policy:all_succeeded"]),
    cmd("msetex", -4, WRITE | DENYOOM)
        .args(
            "numkeys key value [key value ...] [NX | XX] [EX seconds | PX milliseconds \
             | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
        )
        .doc("9.1.0", "Sets several strings together with one expiry.")
        .cost("O(N), N is the number of keys")
        .keys(&[counted(1, 2, OW | UPDATE)])
        .effect(Convergent)
        .tips(&["request_policy:multi_shard", "response_policy:all_succeeded"]),
    cmd("msetnx", -3, WRITE | DENYOOM)
        .args("key value [key value ...]")
        .doc("1.0.1", "Sets several strings unless any of the keys exists.")
        .cost("O(N), N is the number of keys")
        .keys(&[keys(1, -1, 2, OW | INSERT)])
        .effect(Convergent),
    cmd("psetex", 4, WRITE | DENYOOM)
        .args("key milliseconds value")
        .doc("2.6.0", "Sets a string with a time to live in milliseconds.")
        .keys(REPLACE_1)
        .effect(Idempotent)
        .deprecated("2.6.12", "`SET` with the `PX` argument"),
    cmd("set", -3, WRITE | DENYOOM)
        .args(
            "key value [NX | XX | IFEQ comparison-value] [GET] [EX seconds | PX milliseconds \
             | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
        )
        .doc("1.0.0", "Sets a string, whatever type the key had.")
        .keys(&[key(1, RW | ACCESS | UPDATE | VARIABLE_FLAGS).note("Read as well with GET.")])
        .shape(KeyShape::Set)
        .effect(NonIdempotent),
    cmd("setex", 4, WRITE | DENYOOM)
        .args("key seconds value")
        .doc("2.0.0", "Sets a string with a time to live in seconds.")
        .keys(REPLACE_1)
        .effect(Idempotent)
        .deprecated("2.6.12", "`SET` with the `EX` argument"),
    cmd("setnx", 3, WRITE | DENYOOM | FAST)
        .args("key value")
        .doc("1.0.0", "Sets a string unless the key exists.")
        .keys(&[key(1, OW | INSERT)])
        .effect(Convergent)
        .deprecated("2.6.12", "`SET` with the `NX` argument"),
    cmd("setrange", 4, WRITE | DENYOOM)
        .args("key offset value")
        .doc("2.2.0", "Overwrites a part of a string from an offset on.")
        .cost("O(N), N is the length of the part")
        .keys(CHANGE_1)
        .effect(Idempotent),
    cmd("strlen", 2, READONLY | FAST)
        .args("key")
        .doc("2.2.0", "Returns the length of a string.")
        .keys(META_1),
    cmd("substr", 4, READONLY)
        .args("key start end")
        .doc("1.0.0", "Returns a part of a string.")
        .cost("O(N), N is the length of the part")
        .keys(READ_1)
        .deprecated("2.0.0", "`GETRANGE`"),
];

//! Hashes, and the expiry of their fields.

use super::prelude::*;

pub(super) const ROWS: &[Row] = &[
    cmd("hdel", -3, WRITE | FAST)
        .args("key field [field ...]")
        .doc("2.0.0", "Deletes fields, and the hash when none is left.")
        .cost("O(N), N is the number of fields")
        .keys(REMOVE_1)
        .effect(Convergent),
    cmd("hexists", 3, READONLY | FAST)
        .args("key field")
        .doc("2.0.0", "Tells whether a field exists.")
        .keys(META_1),
    cmd("hexpire", -6, WRITE | FAST)
        .args("key seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]")
        .doc("7.4.0", "Sets fields' time to live in seconds.")
        .cost("O(N), N is the number of fields")
        .keys(CHANGE_1)
        .effect(Convergent),
    cmd("hexpireat", -6, WRITE | FAST)
        .args("key unix-time-seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]")
        .doc("7.4.0", "Sets the time at which fields expire, in Unix seconds.")
        .cost("O(N), N is the number of fields")
        .keys(CHANGE_1)
        .effect(Convergent),
    cmd("hexpiretime", -5, READONLY | FAST)
        .args("key FIELDS numfields field [field ...]")
        .doc("7.4.0", "Returns the time at which fields expire, in Unix seconds.")
        .cost("O(N), N is the number of fields")
        .keys(READ_1),
    cmd("hget", 3, READONLY | FAST)
        .args("key field")
        .doc("2.0.0", "Returns the value of a field.")
        .keys(READ_1),
    cmd("hgetall", 2, READONLY)
        .args("key")
        .doc("2.0.0", "Returns every field with its value.")
        .cost("O(N), N is the size of the hash")
        .keys(READ_1)
        .tips(&["nondeterministic_output_order"]),
    cmd("hgetdel", -5, WRITE | FAST)
        .args("key FIELDS numfields field [field ...]")
        .doc("8.0.0", "Returns the values of fields and deletes them.")
        .cost("O(N), N is the number of fields")
        .keys(TAKE_1)
        .effect(NonIdempotent),
    cmd("hgetex", -5, WRITE | FAST)
        .args(
            "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds \
             | PERSIST] FIELDS numfields field [field ...]",
        )
        .doc("8.0.0", "Returns the values of fields and changes their expiry.")
        .cost("O(N), N is the number of fields")
        .keys(&[key(1, RW | ACCESS | UPDATE).note("Reading may change the expiry.")])
        .effect(Idempotent),
    cmd("hincrby", 4, WRITE | DENYOOM | FAST)
        .args("key field increment")
        .doc("2.0.0", "Adds to the integer in a field; an absent one counts as 0.")
        .keys(EXCHANGE_1)
        .effect(NonIdempotent),
    cmd("hincrbyfloat", 4, WRITE | DENYOOM | FAST)
        .args("key field increment")
        .doc("2.6.0", "Adds to the decimal number in a field; an absent one counts as 0.")
        .keys(EXCHANGE_1)
        .effect(NonIdempotent),
    cmd("hkeys", 2, READONLY)
        .args("key")
        .doc("2.0.0", "Returns every field's name.")
        .cost("O(N), N is the size of the hash")
        .keys(READ_1)
        .tips(&["nondeterministic_output_order"]),
    cmd("hlen", 2, READONLY | FAST).args("key").doc("2.0.0", "Counts the fields.").keys(META_1),
    cmd("hmget", -3, READONLY | FAST)
        .args("key field [field ...]")
        .doc("2.0.0", "Returns the values of several fields.")
        .cost("O(N), N is the number of fields")
        .keys(READ_1),
    cmd("hmset", -4, WRITE | DENYOOM | FAST)
        .args("key field value [field value ...]")
        .doc("2.0.0", "Sets several fields.")
        .cost("O(N), N is the number of fields")
        .keys(CHANGE_1)
        .effect(Idempotent)
        .deprecated("4.0.0", "`HSET` with multiple field-value pairs"),
    cmd("hpersist", -5, WRITE | FAST)
        .args("key FIELDS numfields field [field ...]")
        .doc("7.4.0", "Makes fields stay until they are deleted.")
        .cost("O(N), N is the number of fields")
        .keys(CHANGE_1)
        .effect(Convergent),
    cmd("hpexpire", -6, WRITE | FAST)
        .args("key milliseconds [NX | XX | GT | LT] FIELDS numfields field [field ...]")
        .doc("7.4.0", "Sets fields' time to live in milliseconds.")
        .cost("O(N), N is the number of fields")
        .keys(CHANGE_1)
        .effect(Convergent),
    cmd("hpexpireat", -6, WRITE | FAST)
        .args("key unix-time-milliseconds [NX | XX | GT | LT] FIELDS numfields field [field ...]")
        .doc("7.4.0", "Sets the time at which fields expire, in Unix milliseconds.")
        .cost("O(N), N is the number of fields")
        .keys(CHANGE_1)
        .effect(Convergent),
    cmd("hpexpiretime", -5, READONLY | FAST)
        .args("key FIELDS numfields field [field ...]")
        .doc("7.4.0", "Returns the time at which fields expire, in Unix milliseconds.")
        .cost("O(N), N is the number of fields")
        .keys(READ_1),
    cmd("hpttl", -5, READONLY | FAST)
        .args("key FIELDS numfields field [field ...]")
        .doc("7.4.0", "Returns fields' time to live in milliseconds.")
        .cost("O(N), N is the number of fields")
        .keys(READ_1)
        .tips(&["nondeterministic_output"]),
    cmd("hrandfield", -2, READONLY)
        .args("key [count [WITHVALUES]]")
        .doc("6.2.0", "Returns random fields.")
        .cost("O(N), N is the number of fields returned")
        .keys(READ_1)
        .tips(&["nondeterministic_output"]),
    cmd("hscan", -3, READONLY)
        .args("key cursor [MATCH pattern] [COUNT count] [NOVALUES]")
        .doc("2.8.0", "Iterates over the fields.")
        .cost("O(1) per call, O(N) for all, N is the number of elements")
        .keys(READ_1)
        .tips(&["nondeterministic_output"]),
    cmd("hset", -4, WRITE | DENYOOM | FAST)
        .args("key field value [field value ...]")
        .doc("2.0.0", "Sets fields, and creates the hash if absent.")
        .cost("O(N), N is the number of fields")
        .keys(CHANGE_1)
        .effect(Convergent),
    cmd("hsetex", -6, WRITE | DENYOOM | FAST)
        .args(
            "key [FNX | FXX] [EX seconds | PX milliseconds | EXAT unix-time-seconds \
             | PXAT unix-time-milliseconds | KEEPTTL] FIELDS numfields field value [field value ...]",
        )
        .doc("8.0.0", "Sets fields together with their expiry.")
        .cost("O(N), N is the number of fields")
        .keys(CHANGE_1)
        .effect(Convergent),
    cmd("hsetnx", 4, WRITE | DENYOOM | FAST)
        .args("key field value")
        .doc("2.0.0", "Sets a field unless it exists.")
        .keys(ADD_1)
        .effect(Convergent),
    cmd("hstrlen", 3, READONLY | FAST)
        .args("key field")
        .doc("3.2.0", "Returns the length of a field's value.")
        .keys(META_1),
    cmd("httl", -5, READONLY | FAST)
        .args("key FIELDS numfields field [field ...]")
        .doc("7.4.0", "Returns fields' time to live in seconds.")
        .cost("O(N), N is the number of fields")
        .keys(READ_1)
        .tips(&["nondeterministic_output"]),
    cmd("hvals", 2, READONLY)
        .args("key")
        .doc("2.0.0", "Returns every field's value.")
        .cost("O(N), N is the size of the hash")
        .keys(READ_1)
        .tips(&["nondeterministic_output_order"]),
];

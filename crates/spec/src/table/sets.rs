//! Sets.

use super::prelude::*;

pub(super) const ROWS: &[Row] = &[
    cmd("sadd", -3, WRITE | DENYOOM | FAST)
        .args("key member [member ...]")
        .doc("1.0.0", "Adds members, and creates the set if absent.")
        .cost("O(N), N is the number of elements added")
        .keys(ADD_1)
        .effect(Convergent),
    cmd("scard", 2, READONLY | FAST).args("key").doc("1.0.0", "Counts the members.").keys(META_1),
    cmd("sdiff", -2, READONLY)
        .args("key [key ...]")
        .doc("1.0.0", "Returns the members of the first set that no other set has.")
        .cost("O(N), N is the number of members in all sets")
        .keys(READ_ALL)
        .tips(&["nondeterministic_output_order"]),
    cmd("sdiffstore", -3, WRITE | DENYOOM)
        .args("destination key [key ...]")
        .doc("1.0.0", "Stores the members of the first set that no other set has.")
        .cost("O(N), N is the number of members in all sets")
        .keys(&[key(1, OW | UPDATE), keys(2, -1, 1, RO | ACCESS)])
        .effect(NonIdempotent),
    cmd("sinter", -2, READONLY)
        .args("key [key ...]")
        .doc("1.0.0", "Returns the members that all sets share.")
        .cost("O(N*M), N is the size of the smallest set, M the number of sets")
        .keys(READ_ALL)
        .tips(&["nondeterministic_output_order"]),
    cmd("sintercard", -3, READONLY)
        .args("numkeys key [key ...] [LIMIT limit]")
        .doc("7.0.0", "Counts the members that all sets share.")
        .cost("O(N*M), N is the size of the smallest set, M the number of sets")
        .keys(READ_COUNTED_1),
    cmd("sinterstore", -3, WRITE | DENYOOM)
        .args("destination key [key ...]")
        .doc("1.0.0", "Stores the members that all sets share.")
        .cost("O(N*M), N is the size of the smallest set, M the number of sets")
        .keys(&[key(1, OW | UPDATE), keys(2, -1, 1, RO | ACCESS)])
        .effect(NonIdempotent),
    cmd("sismember", 3, READONLY | FAST)
        .args("key member")
        .doc("1.0.0", "Tells whether a member is in the set.")
        .keys(META_1),
    cmd("smembers", 2, READONLY)
        .args("key")
        .doc("1.0.0", "Returns every member.")
        .cost("O(N), N is the size of the set")
        .keys(READ_1)
        .tips(&["nondeterministic_output_order"]),
    cmd("smismember", -3, READONLY | FAST)
        .args("key member [member ...]")
        .doc("6.2.0", "Tells for each member whether it is in the set.")
        .cost("O(N), N is the number of members given")
        .keys(READ_1),
    cmd("smove", 4, WRITE | FAST)
        .args("source destination member")
        .doc("1.0.0", "Moves a member to another set.")
        .keys(&[key(1, RW | ACCESS | DELETE), key(2, RW | INSERT)])
        .effect(Convergent),
    cmd("spop", -2, WRITE | FAST)
        .args("key [count]")
        .doc("1.0.0", "Removes and returns random members.")
        .cost("O(N), N is the number of members returned")
        .keys(TAKE_1)
        .effect(NonIdempotent)
        .tips(&["nondeterministic_output"]),
    cmd("srandmember", -2, READONLY)
        .args("key [count]")
        .doc("1.0.0", "Returns random members.")
        .cost("O(N), N is the number of members returned")
        .keys(READ_1)
        .tips(&["nondeterministic_output"]),
    cmd("srem", -3, WRITE | FAST)
        .args("key member [member ...]")
        .doc("1.0.0", "Removes members, and the set when none is left.")
        .cost("O(N), N is the number of members given")
        .keys(REMOVE_1)
        .effect(Convergent),
    cmd("sscan", -3, READONLY)
        .args("key cursor [MATCH pattern] [COUNT count]")
        .doc("2.8.0", "Iterates over the members.")
        .cost("O(1) per call, O(N) for all, N is the number of elements")
        .keys(READ_1)
        .tips(&["nondeterministic_output"]),
    cmd("sunion", -2, READONLY)
        .args("key [key ...]")
        .doc("1.0.0", "Returns the members that any of the sets has.")
        .cost("O(N), N is the number of members in all sets")
        .keys(READ_ALL)
        .tips(&["nondeterministic_output_order"]),
    cmd("sunionstore", -3, WRITE | DENYOOM)
        .args("destination key [key ...]")
        .doc("1.0.0", "Stores the members that any of the sets has.")
        .cost("O(N), N is the number of members in all sets")
        .keys(&[key(1, OW | UPDATE), keys(2, -1, 1, RO | ACCESS)])
        .effect(NonIdempotent),
];

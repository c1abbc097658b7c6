//! Lists.

use super::prelude::*;

pub(super) const ROWS: &[Row] = &[
    cmd("blmove", 6, WRITE | DENYOOM | BLOCKING)
        .args("source destination <LEFT | RIGHT> <LEFT | RIGHT> timeout")
        .doc("6.2.0", "Moves an element from one list's end to another's; waits for one if need be.")
        .keys(&[key(1, RW | ACCESS | DELETE), key(2, RW | INSERT)])
        .effect(NonIdempotent),
    cmd("blmpop", -5, WRITE | BLOCKING)
        .args("timeout numkeys key [key ...] <LEFT | RIGHT> [COUNT count]")
        .doc("7.0.0", "Pops elements from the first list that has any; waits for some if need be.")
        .cost("O(N+M), N is the number of keys, M of elements returned")
        .keys(&[counted(2, 1, RW | ACCESS | DELETE)])
        .effect(NonIdempotent),
    cmd("blpop", -3, WRITE | BLOCKING)
        .args("key [key ...] timeout")
        .doc("2.0.0", "Pops the first element of the first list that has any; waits for one if need be.")
        .cost("O(N), N is the number of keys")
        .keys(&[keys(1, -2, 1, RW | ACCESS | DELETE)])
        .effect(NonIdempotent),
    cmd("brpop", -3, WRITE | BLOCKING)
        .args("key [key ...] timeout")
        .doc("2.0.0", "Pops the last element of the first list that has any; waits for one if need be.")
        .cost("O(N), N is the number of keys")
        .keys(&[keys(1, -2, 1, RW | ACCESS | DELETE)])
        .effect(NonIdempotent),
    cmd("brpoplpush", 4, WRITE | DENYOOM | BLOCKING)
        .args("source destination timeout")
        .doc("2.2.0", "Moves the last element of a list to the front of another; waits for one if need be.")
        .keys(&[key(1, RW | ACCESS | DELETE), key(2, RW | INSERT)])
        .effect(NonIdempotent)
        .deprecated("6.2.0", "`BLMOVE` with the `RIGHT` and `LEFT` arguments"),
    cmd("lindex", 3, READONLY)
        .args("key index")
        .doc("1.0.0", "Returns the element at an index.")
        .cost("O(N), N is the distance to the nearer end")
        .keys(READ_1),
    cmd("linsert", 5, WRITE | DENYOOM)
        .args("key <BEFORE | AFTER> pivot element")
        .doc("2.2.0", "Inserts an element before or after another.")
        .cost("O(N), N is the number of elements passed")
        .keys(ADD_1)
        .effect(NonIdempotent),
    cmd("llen", 2, READONLY | FAST).args("key").doc("1.0.0", "Counts the elements.").keys(META_1),
    cmd("lmove", 5, WRITE | DENYOOM)
        .args("source destination <LEFT | RIGHT> <LEFT | RIGHT>")
        .doc("6.2.0", "Moves an element from one list's end to another's.")
        .keys(&[key(1, RW | ACCESS | DELETE), key(2, RW | INSERT)])
        .effect(NonIdempotent),
    cmd("lmpop", -4, WRITE)
        .args("numkeys key [key ...] <LEFT | RIGHT> [COUNT count]")
        .doc("7.0.0", "Pops elements from the first list that has any.")
        .cost("O(N+M), N is the number of keys, M of elements returned")
        .keys(&[counted(1, 1, RW | ACCESS | DELETE)])
        .effect(NonIdempotent),
    cmd("lpop", -2, WRITE | FAST)
        .args("key [count]")
        .doc("1.0.0", "Pops elements from the front.")
        .cost("O(N), N is the number of elements returned")
        .keys(TAKE_1)
        .effect(NonIdempotent),
    cmd("lpos", -3, READONLY)
        .args("key element [RANK rank] [COUNT num-matches] [MAXLEN len]")
        .doc("6.0.6", "Finds the indexes of equal elements.")
        .cost("O(N), N is the number of elements passed")
        .keys(READ_1),
    cmd("lpush", -3, WRITE | DENYOOM | FAST)
        .args("key element [element ...]")
        .doc("1.0.0", "Adds elements to the front, and creates the list if absent.")
        .cost("O(N), N is the number of elements added")
        .keys(ADD_1)
        .effect(NonIdempotent),
    cmd("lpushx", -3, WRITE | DENYOOM | FAST)
        .args("key element [element ...]")
        .doc("2.2.0", "Adds elements to the front if the list exists.")
        .cost("O(N), N is the number of elements added")
        .keys(ADD_1)
        .effect(NonIdempotent),
    cmd("lrange", 4, READONLY)
        .args("key start stop")
        .doc("1.0.0", "Returns a range of elements.")
        .cost("O(S+N), S is the distance to the start, N the number of elements returned")
        .keys(READ_1),
    cmd("lrem", 4, WRITE)
        .args("key count element")
        .doc("1.0.0", "Removes elements that are equal to a value.")
        .cost("O(N+M), N is the length of the list, M the number of elements removed")
        .keys(REMOVE_1)
        .effect(NonIdempotent),
    cmd("lset", 4, WRITE | DENYOOM)
        .args("key index element")
        .doc("1.0.0", "Replaces the element at an index.")
        .cost("O(N), N is the distance to the nearer end")
        .keys(CHANGE_1)
        .effect(Idempotent),
    cmd("ltrim", 4, WRITE)
        .args("key start stop")
        .doc("1.0.0", "Keeps a range of elements and removes the others.")
        .cost("O(N), N is the number of elements removed")
        .keys(REMOVE_1)
        .effect(NonIdempotent),
    cmd("rpop", -2, WRITE | FAST)
        .args("key [count]")
        .doc("1.0.0", "Pops elements from the end.")
        .cost("O(N), N is the number of elements returned")
        .keys(TAKE_1)
        .effect(NonIdempotent),
    cmd("rpoplpush", 3, WRITE | DENYOOM)
        .args("source destination")
        .doc("1.2.0", "Moves the last element of a list to the front of another.")
        .keys(&[key(1, RW | ACCESS | DELETE), key(2, RW | INSERT)])
        .effect(NonIdempotent)
        .deprecated("6.2.0", "`LMOVE` with the `RIGHT` and `LEFT` arguments"),
    cmd("rpush", -3, WRITE | DENYOOM | FAST)
        .args("key element [element ...]")
        .doc("1.0.0", "Adds elements to the end, and creates the list if absent.")
        .cost("O(N), N is the number of elements added")
        .keys(ADD_1)
        .effect(NonIdempotent),
    cmd("rpushx", -3, WRITE | DENYOOM | FAST)
        .args("key element [element ...]")
        .doc("2.2.0", "Adds elements to the end if the list exists.")
        .cost("O(N), N is the number of elements added")
        .keys(ADD_1)
        .effect(NonIdempotent),
];

//! Documents: RedisJSON and ValkeyJSON.

use crate::table::prelude::*;

const FLAGS: u32 = WRITE | DENYOOM;
const SIZE: &str = "O(N), N is the size of what the path meets";

pub(super) const ROWS: &[Row] = &[
    cmd("json.arrappend", -4, FLAGS)
        .args("key path value [value ...]")
        .doc("1.0.0", "Appends values to arrays.")
        .cost(SIZE)
        .keys(CHANGE_1)
        .effect(NonIdempotent),
    cmd("json.arrindex", -4, READONLY)
        .args("key path value [start [stop]]")
        .doc("1.0.0", "Finds the first place of a value in arrays.")
        .cost(SIZE)
        .keys(READ_1),
    cmd("json.arrinsert", -5, FLAGS)
        .args("key path index value [value ...]")
        .doc("1.0.0", "Inserts values into arrays.")
        .cost(SIZE)
        .keys(CHANGE_1)
        .effect(NonIdempotent),
    cmd("json.arrlen", -2, READONLY)
        .args("key [path]")
        .doc("1.0.0", "Returns the lengths of arrays.")
        .cost(SIZE)
        .keys(READ_1),
    cmd("json.arrpop", -2, WRITE)
        .args("key [path [index]]")
        .doc("1.0.0", "Removes an element of arrays and returns it.")
        .cost(SIZE)
        .keys(TAKE_1)
        .effect(NonIdempotent),
    cmd("json.arrtrim", 5, WRITE)
        .args("key path start stop")
        .doc("1.0.0", "Cuts arrays to a range.")
        .cost(SIZE)
        .keys(CHANGE_1)
        .effect(NonIdempotent),
    cmd("json.clear", -2, WRITE)
        .args("key [path]")
        .doc("2.0.0", "Empties arrays and objects, and sets numbers to 0.")
        .cost(SIZE)
        .keys(CHANGE_1)
        .effect(Convergent),
    cmd("json.debug|memory", -3, READONLY)
        .args("key [path]")
        .doc("1.0.0", "Returns the memory that values take, in bytes.")
        .cost(SIZE)
        .keys(META_2),
    cmd("json.del", -2, WRITE)
        .args("key [path]")
        .doc("1.0.0", "Deletes values, or the whole document.")
        .cost(SIZE)
        .keys(REMOVE_1)
        .effect(Convergent),
    cmd("json.forget", -2, WRITE)
        .args("key [path]")
        .doc("1.0.0", "Deletes values, or the whole document.")
        .cost(SIZE)
        .keys(REMOVE_1)
        .effect(Convergent),
    cmd("json.get", -2, READONLY)
        .args("key [INDENT indent] [NEWLINE newline] [SPACE space] [path ...]")
        .doc("1.0.0", "Returns values as JSON text.")
        .cost(SIZE)
        .keys(READ_1),
    cmd("json.merge", 4, FLAGS)
        .args("key path value")
        .doc("2.6.0", "Merges a value into those at a path, as RFC 7396 has it.")
        .cost(SIZE)
        .keys(CHANGE_1)
        .effect(Idempotent),
    cmd("json.mget", -3, READONLY)
        .args("key [key ...] path")
        .doc("1.0.0", "Returns the values at one path of several documents.")
        .cost(SIZE)
        .keys(&[keys(1, -2, 1, RO | ACCESS)]),
    cmd("json.mset", -4, FLAGS)
        .args("key path value [key path value ...]")
        .doc("2.6.0", "Sets values in several documents, all or none.")
        .cost(SIZE)
        .keys(&[keys(1, -1, 3, OW | UPDATE)])
        .effect(Idempotent),
    cmd("json.numincrby", 4, WRITE)
        .args("key path value")
        .doc("1.0.0", "Adds to numbers.")
        .cost(SIZE)
        .keys(EXCHANGE_1)
        .effect(NonIdempotent),
    cmd("json.nummultby", 4, WRITE)
        .args("key path value")
        .doc("1.0.0", "Multiplies numbers.")
        .cost(SIZE)
        .keys(EXCHANGE_1)
        .effect(NonIdempotent),
    cmd("json.objkeys", -2, READONLY)
        .args("key [path]")
        .doc("1.0.0", "Returns the names in objects.")
        .cost(SIZE)
        .keys(READ_1),
    cmd("json.objlen", -2, READONLY)
        .args("key [path]")
        .doc("1.0.0", "Counts the names in objects.")
        .cost(SIZE)
        .keys(READ_1),
    cmd("json.resp", -2, READONLY)
        .args("key [path]")
        .doc("1.0.0", "Returns values in the protocol's own types.")
        .cost(SIZE)
        .keys(READ_1),
    cmd("json.set", -4, FLAGS)
        .args("key path value [NX | XX]")
        .doc("1.0.0", "Sets values.")
        .cost(SIZE)
        .keys(CHANGE_1)
        .effect(Convergent),
    cmd("json.strappend", 4, FLAGS)
        .args("key path value")
        .doc("1.0.0", "Appends to strings; the value is a JSON string.")
        .cost(SIZE)
        .keys(CHANGE_1)
        .effect(NonIdempotent),
    cmd("json.strlen", -2, READONLY)
        .args("key [path]")
        .doc("1.0.0", "Returns the lengths of strings.")
        .cost(SIZE)
        .keys(READ_1),
    cmd("json.toggle", 3, WRITE)
        .args("key path")
        .doc("2.0.0", "Turns true into false and back.")
        .cost(SIZE)
        .keys(EXCHANGE_1)
        .effect(NonIdempotent),
    cmd("json.type", -2, READONLY)
        .args("key [path]")
        .doc("1.0.0", "Returns the types of values.")
        .cost(SIZE)
        .keys(READ_1),
];

//! HyperLogLogs.

use super::prelude::*;

pub(super) const ROWS: &[Row] = &[
    cmd("pfadd", -2, WRITE | DENYOOM | FAST)
        .args("key [element [element ...]]")
        .doc("2.8.9", "Adds elements to a HyperLogLog.")
        .cost("O(N), N is the number of elements added")
        .keys(ADD_1)
        .effect(Convergent),
    cmd("pfcount", -2, READONLY | MAY_REPLICATE)
        .args("key [key ...]")
        .doc("2.8.9", "Estimates how many different elements were added.")
        .cost("O(N), N is the number of keys")
        .keys(&[keys(1, -1, 1, RW | ACCESS).note("Counting may store the new estimate in the value.")]),
    cmd("pfdebug", 3, WRITE | DENYOOM | ADMIN)
        .args("subcommand key")
        .doc("2.8.9", "Shows the inside of a HyperLogLog.")
        .keys(&[key(2, RW | ACCESS)])
        .effect(Admin)
        .internal(),
    cmd("pfmerge", -2, WRITE | DENYOOM)
        .args("destkey [sourcekey [sourcekey ...]]")
        .doc("2.8.9", "Merges HyperLogLogs into one.")
        .cost("O(N), N is the number of keys")
        .keys(&[key(1, RW | ACCESS | INSERT), keys(2, -1, 1, RO | ACCESS)])
        .effect(Idempotent),
    cmd("pfselftest", 1, ADMIN).doc("2.8.9", "Tests the HyperLogLog code.").effect(ReadOnly).internal(),
];

//! Bitmaps.

use super::prelude::*;

pub(super) const ROWS: &[Row] = &[
    cmd("bitcount", -2, READONLY)
        .args("key [start end [BYTE | BIT]]")
        .doc("2.6.0", "Counts the set bits of a string, or of a part of it.")
        .cost("O(N), N is the length of the string")
        .keys(READ_1),
    cmd("bitfield", -2, WRITE | DENYOOM)
        .args(
            "key [GET encoding offset | [OVERFLOW <WRAP | SAT | FAIL>] <SET encoding offset value \
             | INCRBY encoding offset increment> ...]",
        )
        .doc("3.2.0", "Reads, sets and increments integers of any width inside a string.")
        .cost("O(N), N is the number of operations")
        .keys(&[
            key(1, RW | ACCESS | UPDATE | VARIABLE_FLAGS).note("Only read when there is no SET or INCRBY.")
        ])
        .shape(KeyShape::Bitfield)
        .effect(NonIdempotent),
    cmd("bitfield_ro", -2, READONLY | FAST)
        .args("key [GET encoding offset [GET encoding offset ...]]")
        .doc("6.0.0", "Reads integers of any width inside a string.")
        .cost("O(N), N is the number of operations")
        .keys(READ_1),
    cmd("bitop", -4, WRITE | DENYOOM)
        .args("<AND | OR | XOR | NOT | DIFF | DIFF1 | ANDOR | ONE> destkey key [key ...]")
        .doc("2.6.0", "Combines strings bit by bit and stores the result.")
        .cost("O(N), N is the length of the string")
        .keys(&[key(2, OW | UPDATE), keys(3, -1, 1, RO | ACCESS)])
        .effect(NonIdempotent),
    cmd("bitpos", -3, READONLY)
        .args("key bit [start [end [BYTE | BIT]]]")
        .doc("2.8.7", "Finds the first bit that is set or clear.")
        .cost("O(N), N is the length of the string")
        .keys(READ_1),
    cmd("getbit", 3, READONLY | FAST)
        .args("key offset")
        .doc("2.2.0", "Returns one bit of a string.")
        .keys(READ_1),
    cmd("setbit", 4, WRITE | DENYOOM)
        .args("key offset value")
        .doc("2.2.0", "Sets or clears one bit of a string.")
        .keys(EXCHANGE_1)
        .effect(Convergent),
];

//! Commands of the group `bitmap`.
//!
//! Written by `cargo xtask fix` from the command table; change crates/spec/src or xtask/src/commands.

use crate::args::ToArgs;
use crate::cmd::{Cmd, cmd};

/// Counts the set bits of a string, or of a part of it.
///
/// `BITCOUNT key [start end [BYTE | BIT]]`: O(N), N is the length of the string, since 2.6.0.
pub fn bitcount(key: impl ToArgs) -> Cmd {
    cmd("BITCOUNT").arg(key)
}

/// Counts the set bits of a string, or of a part of it. With options.
///
/// `BITCOUNT key [start end [BYTE | BIT]]`: O(N), N is the length of the string, since 2.6.0.
pub fn bitcount_with(key: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("BITCOUNT").arg(key).arg(options)
}

/// Reads, sets and increments integers of any width inside a string.
///
/// `BITFIELD key [GET encoding offset | [OVERFLOW <WRAP | SAT | FAIL>] <SET encoding offset value | INCRBY
/// encoding offset increment> ...]`: O(N), N is the number of operations, since 3.2.0.
pub fn bitfield(key: impl ToArgs) -> Cmd {
    cmd("BITFIELD").arg(key)
}

/// Reads, sets and increments integers of any width inside a string. With options.
///
/// `BITFIELD key [GET encoding offset | [OVERFLOW <WRAP | SAT | FAIL>] <SET encoding offset value | INCRBY
/// encoding offset increment> ...]`: O(N), N is the number of operations, since 3.2.0.
pub fn bitfield_with(key: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("BITFIELD").arg(key).arg(options)
}

/// Reads integers of any width inside a string.
///
/// `BITFIELD_RO key [GET encoding offset [GET encoding offset ...]]`: O(N), N is the number of operations,
/// since 6.0.0.
pub fn bitfield_ro(key: impl ToArgs) -> Cmd {
    cmd("BITFIELD_RO").arg(key)
}

/// Reads integers of any width inside a string. With options.
///
/// `BITFIELD_RO key [GET encoding offset [GET encoding offset ...]]`: O(N), N is the number of operations,
/// since 6.0.0.
pub fn bitfield_ro_with(key: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("BITFIELD_RO").arg(key).arg(options)
}

/// Combines strings bit by bit and stores the result.
///
/// `BITOP <AND | OR | XOR | NOT | DIFF | DIFF1 | ANDOR | ONE> destkey key [key ...]`: O(N), N is the length
/// of the string, since 2.6.0.
pub fn bitop(choice: impl ToArgs, destkey: impl ToArgs, keys: impl ToArgs) -> Cmd {
    cmd("BITOP").arg(choice).arg(destkey).arg(keys)
}

/// Finds the first bit that is set or clear.
///
/// `BITPOS key bit [start [end [BYTE | BIT]]]`: O(N), N is the length of the string, since 2.8.7.
pub fn bitpos(key: impl ToArgs, bit: impl ToArgs) -> Cmd {
    cmd("BITPOS").arg(key).arg(bit)
}

/// Finds the first bit that is set or clear. With options.
///
/// `BITPOS key bit [start [end [BYTE | BIT]]]`: O(N), N is the length of the string, since 2.8.7.
pub fn bitpos_with(key: impl ToArgs, bit: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("BITPOS").arg(key).arg(bit).arg(options)
}

/// Returns one bit of a string.
///
/// `GETBIT key offset`: O(1), since 2.2.0.
pub fn getbit(key: impl ToArgs, offset: impl ToArgs) -> Cmd {
    cmd("GETBIT").arg(key).arg(offset)
}

/// Sets or clears one bit of a string.
///
/// `SETBIT key offset value`: O(1), since 2.2.0.
pub fn setbit(key: impl ToArgs, offset: impl ToArgs, value: impl ToArgs) -> Cmd {
    cmd("SETBIT").arg(key).arg(offset).arg(value)
}

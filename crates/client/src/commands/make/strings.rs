//! Commands of the group `string`.
//!
//! Written by `cargo xtask fix` from the command table; change crates/spec/src or xtask/src/commands.

use crate::args::ToArgs;
use crate::cmd::{Cmd, cmd};
use crate::commands::counted;

/// Adds text to the end of a string, which is created if absent.
///
/// `APPEND key value`: O(N), N is the length of the text appended, since 2.0.0.
pub fn append(key: impl ToArgs, value: impl ToArgs) -> Cmd {
    cmd("APPEND").arg(key).arg(value)
}

/// Subtracts one from an integer; an absent key counts as 0.
///
/// `DECR key`: O(1), since 1.0.0.
pub fn decr(key: impl ToArgs) -> Cmd {
    cmd("DECR").arg(key)
}

/// Subtracts a number from an integer; an absent key counts as 0.
///
/// `DECRBY key decrement`: O(1), since 1.0.0.
pub fn decrby(key: impl ToArgs, decrement: impl ToArgs) -> Cmd {
    cmd("DECRBY").arg(key).arg(decrement)
}

/// Deletes a key if it holds the given string.
///
/// `DELIFEQ key value`: O(1), since 9.0.0.
pub fn delifeq(key: impl ToArgs, value: impl ToArgs) -> Cmd {
    cmd("DELIFEQ").arg(key).arg(value)
}

/// Returns a string.
///
/// `GET key`: O(1), since 1.0.0.
pub fn get(key: impl ToArgs) -> Cmd {
    cmd("GET").arg(key)
}

/// Returns a string and deletes its key.
///
/// `GETDEL key`: O(1), since 6.2.0.
pub fn getdel(key: impl ToArgs) -> Cmd {
    cmd("GETDEL").arg(key)
}

/// Returns a string and changes its expiry.
///
/// `GETEX key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds |
/// PERSIST]`: O(1), since 6.2.0.
pub fn getex(key: impl ToArgs) -> Cmd {
    cmd("GETEX").arg(key)
}

/// Returns a string and changes its expiry. With options.
///
/// `GETEX key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds |
/// PERSIST]`: O(1), since 6.2.0.
pub fn getex_with(key: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("GETEX").arg(key).arg(options)
}

/// Returns a part of a string.
///
/// `GETRANGE key start end`: O(N), N is the length of the part, since 2.4.0.
pub fn getrange(key: impl ToArgs, start: impl ToArgs, end: impl ToArgs) -> Cmd {
    cmd("GETRANGE").arg(key).arg(start).arg(end)
}

/// Sets a string and returns the old one.
///
/// `GETSET key value`: O(1), since 1.0.0.
///
/// Old since 6.2.0: better `SET` with the `GET` argument.
pub fn getset(key: impl ToArgs, value: impl ToArgs) -> Cmd {
    cmd("GETSET").arg(key).arg(value)
}

/// Adds one to an integer; an absent key counts as 0.
///
/// `INCR key`: O(1), since 1.0.0.
pub fn incr(key: impl ToArgs) -> Cmd {
    cmd("INCR").arg(key)
}

/// Adds a number to an integer; an absent key counts as 0.
///
/// `INCRBY key increment`: O(1), since 1.0.0.
pub fn incrby(key: impl ToArgs, increment: impl ToArgs) -> Cmd {
    cmd("INCRBY").arg(key).arg(increment)
}

/// Adds a decimal number; an absent key counts as 0.
///
/// `INCRBYFLOAT key increment`: O(1), since 2.6.0.
pub fn incrbyfloat(key: impl ToArgs, increment: impl ToArgs) -> Cmd {
    cmd("INCRBYFLOAT").arg(key).arg(increment)
}

/// Finds the longest common subsequence of two strings.
///
/// `LCS key1 key2 [LEN] [IDX] [MINMATCHLEN min-match-len] [WITHMATCHLEN]`: O(N*M), N and M are the lengths
/// of the strings, since 7.0.0.
pub fn lcs(key1: impl ToArgs, key2: impl ToArgs) -> Cmd {
    cmd("LCS").arg(key1).arg(key2)
}

/// Finds the longest common subsequence of two strings. With options.
///
/// `LCS key1 key2 [LEN] [IDX] [MINMATCHLEN min-match-len] [WITHMATCHLEN]`: O(N*M), N and M are the lengths
/// of the strings, since 7.0.0.
pub fn lcs_with(key1: impl ToArgs, key2: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("LCS").arg(key1).arg(key2).arg(options)
}

/// Returns several strings.
///
/// `MGET key [key ...]`: O(N), N is the number of keys, since 1.0.0.
pub fn mget(keys: impl ToArgs) -> Cmd {
    cmd("MGET").arg(keys)
}

/// Sets several strings.
///
/// `MSET key value [key value ...]`: O(N), N is the number of keys, since 1.0.1.
pub fn mset(key_values: impl ToArgs) -> Cmd {
    cmd("MSET").arg(key_values)
}

/// Sets several strings together with one expiry.
///
/// `MSETEX numkeys key value [key value ...] [NX | XX] [EX seconds | PX milliseconds | EXAT
/// unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]`: O(N), N is the number of keys, since 9.1.0.
pub fn msetex(key_values: impl ToArgs) -> Cmd {
    counted(cmd("MSETEX"), 2, key_values)
}

/// Sets several strings together with one expiry. With options.
///
/// `MSETEX numkeys key value [key value ...] [NX | XX] [EX seconds | PX milliseconds | EXAT
/// unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]`: O(N), N is the number of keys, since 9.1.0.
pub fn msetex_with(key_values: impl ToArgs, options: impl ToArgs) -> Cmd {
    counted(cmd("MSETEX"), 2, key_values).arg(options)
}

/// Sets several strings unless any of the keys exists.
///
/// `MSETNX key value [key value ...]`: O(N), N is the number of keys, since 1.0.1.
pub fn msetnx(key_values: impl ToArgs) -> Cmd {
    cmd("MSETNX").arg(key_values)
}

/// Sets a string with a time to live in milliseconds.
///
/// `PSETEX key milliseconds value`: O(1), since 2.6.0.
///
/// Old since 2.6.12: better `SET` with the `PX` argument.
pub fn psetex(key: impl ToArgs, milliseconds: impl ToArgs, value: impl ToArgs) -> Cmd {
    cmd("PSETEX").arg(key).arg(milliseconds).arg(value)
}

/// Sets a string, whatever type the key had.
///
/// `SET key value [NX | XX | IFEQ comparison-value] [GET] [EX seconds | PX milliseconds | EXAT
/// unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]`: O(1), since 1.0.0.
pub fn set(key: impl ToArgs, value: impl ToArgs) -> Cmd {
    cmd("SET").arg(key).arg(value)
}

/// Sets a string, whatever type the key had. With options.
///
/// `SET key value [NX | XX | IFEQ comparison-value] [GET] [EX seconds | PX milliseconds | EXAT
/// unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]`: O(1), since 1.0.0.
pub fn set_with(key: impl ToArgs, value: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("SET").arg(key).arg(value).arg(options)
}

/// Sets a string with a time to live in seconds.
///
/// `SETEX key seconds value`: O(1), since 2.0.0.
///
/// Old since 2.6.12: better `SET` with the `EX` argument.
pub fn setex(key: impl ToArgs, seconds: impl ToArgs, value: impl ToArgs) -> Cmd {
    cmd("SETEX").arg(key).arg(seconds).arg(value)
}

/// Sets a string unless the key exists.
///
/// `SETNX key value`: O(1), since 1.0.0.
///
/// Old since 2.6.12: better `SET` with the `NX` argument.
pub fn setnx(key: impl ToArgs, value: impl ToArgs) -> Cmd {
    cmd("SETNX").arg(key).arg(value)
}

/// Overwrites a part of a string from an offset on.
///
/// `SETRANGE key offset value`: O(N), N is the length of the part, since 2.2.0.
pub fn setrange(key: impl ToArgs, offset: impl ToArgs, value: impl ToArgs) -> Cmd {
    cmd("SETRANGE").arg(key).arg(offset).arg(value)
}

/// Returns the length of a string.
///
/// `STRLEN key`: O(1), since 2.2.0.
pub fn strlen(key: impl ToArgs) -> Cmd {
    cmd("STRLEN").arg(key)
}

/// Returns a part of a string.
///
/// `SUBSTR key start end`: O(N), N is the length of the part, since 1.0.0.
///
/// Old since 2.0.0: better `GETRANGE`.
pub fn substr(key: impl ToArgs, start: impl ToArgs, end: impl ToArgs) -> Cmd {
    cmd("SUBSTR").arg(key).arg(start).arg(end)
}

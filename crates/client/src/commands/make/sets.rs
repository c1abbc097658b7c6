//! Commands of the group `set`.
//!
//! Written by `cargo xtask fix` from the command table; change crates/spec/src or xtask/src/commands.

use crate::args::ToArgs;
use crate::cmd::{Cmd, cmd};
use crate::commands::counted;

/// Adds members, and creates the set if absent.
///
/// `SADD key member [member ...]`: O(N), N is the number of elements added, since 1.0.0.
pub fn sadd(key: impl ToArgs, members: impl ToArgs) -> Cmd {
    cmd("SADD").arg(key).arg(members)
}

/// Counts the members.
///
/// `SCARD key`: O(1), since 1.0.0.
pub fn scard(key: impl ToArgs) -> Cmd {
    cmd("SCARD").arg(key)
}

/// Returns the members of the first set that no other set has.
///
/// `SDIFF key [key ...]`: O(N), N is the number of members in all sets, since 1.0.0.
pub fn sdiff(keys: impl ToArgs) -> Cmd {
    cmd("SDIFF").arg(keys)
}

/// Stores the members of the first set that no other set has.
///
/// `SDIFFSTORE destination key [key ...]`: O(N), N is the number of members in all sets, since 1.0.0.
pub fn sdiffstore(destination: impl ToArgs, keys: impl ToArgs) -> Cmd {
    cmd("SDIFFSTORE").arg(destination).arg(keys)
}

/// Returns the members that all sets share.
///
/// `SINTER key [key ...]`: O(N*M), N is the size of the smallest set, M the number of sets, since 1.0.0.
pub fn sinter(keys: impl ToArgs) -> Cmd {
    cmd("SINTER").arg(keys)
}

/// Counts the members that all sets share.
///
/// `SINTERCARD numkeys key [key ...] [LIMIT limit]`: O(N*M), N is the size of the smallest set, M the
/// number of sets, since 7.0.0.
pub fn sintercard(keys: impl ToArgs) -> Cmd {
    counted(cmd("SINTERCARD"), 1, keys)
}

/// Counts the members that all sets share. With options.
///
/// `SINTERCARD numkeys key [key ...] [LIMIT limit]`: O(N*M), N is the size of the smallest set, M the
/// number of sets, since 7.0.0.
pub fn sintercard_with(keys: impl ToArgs, options: impl ToArgs) -> Cmd {
    counted(cmd("SINTERCARD"), 1, keys).arg(options)
}

/// Stores the members that all sets share.
///
/// `SINTERSTORE destination key [key ...]`: O(N*M), N is the size of the smallest set, M the number of
/// sets, since 1.0.0.
pub fn sinterstore(destination: impl ToArgs, keys: impl ToArgs) -> Cmd {
    cmd("SINTERSTORE").arg(destination).arg(keys)
}

/// Tells whether a member is in the set.
///
/// `SISMEMBER key member`: O(1), since 1.0.0.
pub fn sismember(key: impl ToArgs, member: impl ToArgs) -> Cmd {
    cmd("SISMEMBER").arg(key).arg(member)
}

/// Returns every member.
///
/// `SMEMBERS key`: O(N), N is the size of the set, since 1.0.0.
pub fn smembers(key: impl ToArgs) -> Cmd {
    cmd("SMEMBERS").arg(key)
}

/// Tells for each member whether it is in the set.
///
/// `SMISMEMBER key member [member ...]`: O(N), N is the number of members given, since 6.2.0.
pub fn smismember(key: impl ToArgs, members: impl ToArgs) -> Cmd {
    cmd("SMISMEMBER").arg(key).arg(members)
}

/// Moves a member to another set.
///
/// `SMOVE source destination member`: O(1), since 1.0.0.
pub fn smove(source: impl ToArgs, destination: impl ToArgs, member: impl ToArgs) -> Cmd {
    cmd("SMOVE").arg(source).arg(destination).arg(member)
}

/// Removes and returns random members.
///
/// `SPOP key [count]`: O(N), N is the number of members returned, since 1.0.0.
pub fn spop(key: impl ToArgs) -> Cmd {
    cmd("SPOP").arg(key)
}

/// Removes and returns random members. With options.
///
/// `SPOP key [count]`: O(N), N is the number of members returned, since 1.0.0.
pub fn spop_with(key: impl ToArgs, count: impl ToArgs) -> Cmd {
    cmd("SPOP").arg(key).arg(count)
}

/// Returns random members.
///
/// `SRANDMEMBER key [count]`: O(N), N is the number of members returned, since 1.0.0.
pub fn srandmember(key: impl ToArgs) -> Cmd {
    cmd("SRANDMEMBER").arg(key)
}

/// Returns random members. With options.
///
/// `SRANDMEMBER key [count]`: O(N), N is the number of members returned, since 1.0.0.
pub fn srandmember_with(key: impl ToArgs, count: impl ToArgs) -> Cmd {
    cmd("SRANDMEMBER").arg(key).arg(count)
}

/// Removes members, and the set when none is left.
///
/// `SREM key member [member ...]`: O(N), N is the number of members given, since 1.0.0.
pub fn srem(key: impl ToArgs, members: impl ToArgs) -> Cmd {
    cmd("SREM").arg(key).arg(members)
}

/// Iterates over the members.
///
/// `SSCAN key cursor [MATCH pattern] [COUNT count]`: O(1) per call, O(N) for all, N is the number of
/// elements, since 2.8.0.
pub fn sscan(key: impl ToArgs, cursor: impl ToArgs) -> Cmd {
    cmd("SSCAN").arg(key).arg(cursor)
}

/// Iterates over the members. With options.
///
/// `SSCAN key cursor [MATCH pattern] [COUNT count]`: O(1) per call, O(N) for all, N is the number of
/// elements, since 2.8.0.
pub fn sscan_with(key: impl ToArgs, cursor: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("SSCAN").arg(key).arg(cursor).arg(options)
}

/// Returns the members that any of the sets has.
///
/// `SUNION key [key ...]`: O(N), N is the number of members in all sets, since 1.0.0.
pub fn sunion(keys: impl ToArgs) -> Cmd {
    cmd("SUNION").arg(keys)
}

/// Stores the members that any of the sets has.
///
/// `SUNIONSTORE destination key [key ...]`: O(N), N is the number of members in all sets, since 1.0.0.
pub fn sunionstore(destination: impl ToArgs, keys: impl ToArgs) -> Cmd {
    cmd("SUNIONSTORE").arg(destination).arg(keys)
}

//! Commands of the group `list`.
//!
//! Written by `cargo xtask fix` from the command table; change crates/spec/src or xtask/src/commands.

use crate::args::ToArgs;
use crate::cmd::{Cmd, cmd};
use crate::commands::counted;

/// Moves an element from one list's end to another's; waits for one if need be.
///
/// `BLMOVE source destination <LEFT | RIGHT> <LEFT | RIGHT> timeout`: O(1), since 6.2.0.
pub fn blmove(
    source: impl ToArgs,
    destination: impl ToArgs,
    where_: impl ToArgs,
    where_2: impl ToArgs,
    timeout: impl ToArgs,
) -> Cmd {
    cmd("BLMOVE").arg(source).arg(destination).arg(where_).arg(where_2).arg(timeout)
}

/// Pops elements from the first list that has any; waits for some if need be.
///
/// `BLMPOP timeout numkeys key [key ...] <LEFT | RIGHT> [COUNT count]`: O(N+M), N is the number of keys, M
/// of elements returned, since 7.0.0.
pub fn blmpop(timeout: impl ToArgs, keys: impl ToArgs, where_: impl ToArgs) -> Cmd {
    counted(cmd("BLMPOP").arg(timeout), 1, keys).arg(where_)
}

/// Pops elements from the first list that has any; waits for some if need be. With options.
///
/// `BLMPOP timeout numkeys key [key ...] <LEFT | RIGHT> [COUNT count]`: O(N+M), N is the number of keys, M
/// of elements returned, since 7.0.0.
pub fn blmpop_with(
    timeout: impl ToArgs,
    keys: impl ToArgs,
    where_: impl ToArgs,
    options: impl ToArgs,
) -> Cmd {
    counted(cmd("BLMPOP").arg(timeout), 1, keys).arg(where_).arg(options)
}

/// Pops the first element of the first list that has any; waits for one if need be.
///
/// `BLPOP key [key ...] timeout`: O(N), N is the number of keys, since 2.0.0.
pub fn blpop(keys: impl ToArgs, timeout: impl ToArgs) -> Cmd {
    cmd("BLPOP").arg(keys).arg(timeout)
}

/// Pops the last element of the first list that has any; waits for one if need be.
///
/// `BRPOP key [key ...] timeout`: O(N), N is the number of keys, since 2.0.0.
pub fn brpop(keys: impl ToArgs, timeout: impl ToArgs) -> Cmd {
    cmd("BRPOP").arg(keys).arg(timeout)
}

/// Moves the last element of a list to the front of another; waits for one if need be.
///
/// `BRPOPLPUSH source destination timeout`: O(1), since 2.2.0.
///
/// Old since 6.2.0: better `BLMOVE` with the `RIGHT` and `LEFT` arguments.
pub fn brpoplpush(source: impl ToArgs, destination: impl ToArgs, timeout: impl ToArgs) -> Cmd {
    cmd("BRPOPLPUSH").arg(source).arg(destination).arg(timeout)
}

/// Returns the element at an index.
///
/// `LINDEX key index`: O(N), N is the distance to the nearer end, since 1.0.0.
pub fn lindex(key: impl ToArgs, index: impl ToArgs) -> Cmd {
    cmd("LINDEX").arg(key).arg(index)
}

/// Inserts an element before or after another.
///
/// `LINSERT key <BEFORE | AFTER> pivot element`: O(N), N is the number of elements passed, since 2.2.0.
pub fn linsert(key: impl ToArgs, where_: impl ToArgs, pivot: impl ToArgs, element: impl ToArgs) -> Cmd {
    cmd("LINSERT").arg(key).arg(where_).arg(pivot).arg(element)
}

/// Counts the elements.
///
/// `LLEN key`: O(1), since 1.0.0.
pub fn llen(key: impl ToArgs) -> Cmd {
    cmd("LLEN").arg(key)
}

/// Moves an element from one list's end to another's.
///
/// `LMOVE source destination <LEFT | RIGHT> <LEFT | RIGHT>`: O(1), since 6.2.0.
pub fn lmove(
    source: impl ToArgs,
    destination: impl ToArgs,
    where_: impl ToArgs,
    where_2: impl ToArgs,
) -> Cmd {
    cmd("LMOVE").arg(source).arg(destination).arg(where_).arg(where_2)
}

/// Pops elements from the first list that has any.
///
/// `LMPOP numkeys key [key ...] <LEFT | RIGHT> [COUNT count]`: O(N+M), N is the number of keys, M of
/// elements returned, since 7.0.0.
pub fn lmpop(keys: impl ToArgs, where_: impl ToArgs) -> Cmd {
    counted(cmd("LMPOP"), 1, keys).arg(where_)
}

/// Pops elements from the first list that has any. With options.
///
/// `LMPOP numkeys key [key ...] <LEFT | RIGHT> [COUNT count]`: O(N+M), N is the number of keys, M of
/// elements returned, since 7.0.0.
pub fn lmpop_with(keys: impl ToArgs, where_: impl ToArgs, options: impl ToArgs) -> Cmd {
    counted(cmd("LMPOP"), 1, keys).arg(where_).arg(options)
}

/// Pops elements from the front.
///
/// `LPOP key [count]`: O(N), N is the number of elements returned, since 1.0.0.
pub fn lpop(key: impl ToArgs) -> Cmd {
    cmd("LPOP").arg(key)
}

/// Pops elements from the front. With options.
///
/// `LPOP key [count]`: O(N), N is the number of elements returned, since 1.0.0.
pub fn lpop_with(key: impl ToArgs, count: impl ToArgs) -> Cmd {
    cmd("LPOP").arg(key).arg(count)
}

/// Finds the indexes of equal elements.
///
/// `LPOS key element [RANK rank] [COUNT num-matches] [MAXLEN len]`: O(N), N is the number of elements
/// passed, since 6.0.6.
pub fn lpos(key: impl ToArgs, element: impl ToArgs) -> Cmd {
    cmd("LPOS").arg(key).arg(element)
}

/// Finds the indexes of equal elements. With options.
///
/// `LPOS key element [RANK rank] [COUNT num-matches] [MAXLEN len]`: O(N), N is the number of elements
/// passed, since 6.0.6.
pub fn lpos_with(key: impl ToArgs, element: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("LPOS").arg(key).arg(element).arg(options)
}

/// Adds elements to the front, and creates the list if absent.
///
/// `LPUSH key element [element ...]`: O(N), N is the number of elements added, since 1.0.0.
pub fn lpush(key: impl ToArgs, elements: impl ToArgs) -> Cmd {
    cmd("LPUSH").arg(key).arg(elements)
}

/// Adds elements to the front if the list exists.
///
/// `LPUSHX key element [element ...]`: O(N), N is the number of elements added, since 2.2.0.
pub fn lpushx(key: impl ToArgs, elements: impl ToArgs) -> Cmd {
    cmd("LPUSHX").arg(key).arg(elements)
}

/// Returns a range of elements.
///
/// `LRANGE key start stop`: O(S+N), S is the distance to the start, N the number of elements returned,
/// since 1.0.0.
pub fn lrange(key: impl ToArgs, start: impl ToArgs, stop: impl ToArgs) -> Cmd {
    cmd("LRANGE").arg(key).arg(start).arg(stop)
}

/// Removes elements that are equal to a value.
///
/// `LREM key count element`: O(N+M), N is the length of the list, M the number of elements removed, since
/// 1.0.0.
pub fn lrem(key: impl ToArgs, count: impl ToArgs, element: impl ToArgs) -> Cmd {
    cmd("LREM").arg(key).arg(count).arg(element)
}

/// Replaces the element at an index.
///
/// `LSET key index element`: O(N), N is the distance to the nearer end, since 1.0.0.
pub fn lset(key: impl ToArgs, index: impl ToArgs, element: impl ToArgs) -> Cmd {
    cmd("LSET").arg(key).arg(index).arg(element)
}

/// Keeps a range of elements and removes the others.
///
/// `LTRIM key start stop`: O(N), N is the number of elements removed, since 1.0.0.
pub fn ltrim(key: impl ToArgs, start: impl ToArgs, stop: impl ToArgs) -> Cmd {
    cmd("LTRIM").arg(key).arg(start).arg(stop)
}

/// Pops elements from the end.
///
/// `RPOP key [count]`: O(N), N is the number of elements returned, since 1.0.0.
pub fn rpop(key: impl ToArgs) -> Cmd {
    cmd("RPOP").arg(key)
}

/// Pops elements from the end. With options.
///
/// `RPOP key [count]`: O(N), N is the number of elements returned, since 1.0.0.
pub fn rpop_with(key: impl ToArgs, count: impl ToArgs) -> Cmd {
    cmd("RPOP").arg(key).arg(count)
}

/// Moves the last element of a list to the front of another.
///
/// `RPOPLPUSH source destination`: O(1), since 1.2.0.
///
/// Old since 6.2.0: better `LMOVE` with the `RIGHT` and `LEFT` arguments.
pub fn rpoplpush(source: impl ToArgs, destination: impl ToArgs) -> Cmd {
    cmd("RPOPLPUSH").arg(source).arg(destination)
}

/// Adds elements to the end, and creates the list if absent.
///
/// `RPUSH key element [element ...]`: O(N), N is the number of elements added, since 1.0.0.
pub fn rpush(key: impl ToArgs, elements: impl ToArgs) -> Cmd {
    cmd("RPUSH").arg(key).arg(elements)
}

/// Adds elements to the end if the list exists.
///
/// `RPUSHX key element [element ...]`: O(N), N is the number of elements added, since 2.2.0.
pub fn rpushx(key: impl ToArgs, elements: impl ToArgs) -> Cmd {
    cmd("RPUSHX").arg(key).arg(elements)
}

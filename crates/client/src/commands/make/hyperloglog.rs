//! Commands of the group `hyperloglog`.
//!
//! Written by `cargo xtask fix` from the command table; change crates/spec/src or xtask/src/commands.

use crate::args::ToArgs;
use crate::cmd::{Cmd, cmd};

/// Adds elements to a HyperLogLog.
///
/// `PFADD key [element [element ...]]`: O(N), N is the number of elements added, since 2.8.9.
pub fn pfadd(key: impl ToArgs, elements: impl ToArgs) -> Cmd {
    cmd("PFADD").arg(key).arg(elements)
}

/// Estimates how many different elements were added.
///
/// `PFCOUNT key [key ...]`: O(N), N is the number of keys, since 2.8.9.
pub fn pfcount(keys: impl ToArgs) -> Cmd {
    cmd("PFCOUNT").arg(keys)
}

/// Merges HyperLogLogs into one.
///
/// `PFMERGE destkey [sourcekey [sourcekey ...]]`: O(N), N is the number of keys, since 2.8.9.
pub fn pfmerge(destkey: impl ToArgs, sourcekeys: impl ToArgs) -> Cmd {
    cmd("PFMERGE").arg(destkey).arg(sourcekeys)
}

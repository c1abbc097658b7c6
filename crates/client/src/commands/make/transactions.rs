//! Commands of the group `transactions`.
//!
//! Written by `cargo xtask fix` from the command table; change crates/spec/src or xtask/src/commands.

use crate::args::ToArgs;
use crate::cmd::{Cmd, cmd};

/// Drops the queued commands of a transaction.
///
/// `DISCARD`: O(N), N is the number of queued commands, since 2.0.0.
pub fn discard() -> Cmd {
    cmd("DISCARD")
}

/// Runs the queued commands of a transaction.
///
/// `EXEC`: Sum of the queued commands, since 1.2.0.
pub fn exec() -> Cmd {
    cmd("EXEC")
}

/// Begins a transaction.
///
/// `MULTI`: O(1), since 1.2.0.
pub fn multi() -> Cmd {
    cmd("MULTI")
}

/// Forgets the watched keys.
///
/// `UNWATCH`: O(1), since 2.2.0.
pub fn unwatch() -> Cmd {
    cmd("UNWATCH")
}

/// Makes the next transaction fail if any of the keys changes first.
///
/// `WATCH key [key ...]`: O(N), N is the number of keys, since 2.2.0.
pub fn watch(keys: impl ToArgs) -> Cmd {
    cmd("WATCH").arg(keys)
}

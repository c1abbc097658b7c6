//! Transactions.

use super::prelude::*;

pub(super) const ROWS: &[Row] = &[
    cmd("discard", 1, NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY)
        .doc("2.0.0", "Drops the queued commands of a transaction.")
        .cost("O(N), N is the number of queued commands")
        .effect(Connection),
    cmd("exec", 1, NOSCRIPT | LOADING | STALE | SKIP_SLOWLOG)
        .doc("1.2.0", "Runs the queued commands of a transaction.")
        .cost("Sum of the queued commands")
        .effect(NonIdempotent),
    cmd("multi", 1, NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY)
        .doc("1.2.0", "Begins a transaction.")
        .effect(Connection),
    cmd("unwatch", 1, NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY)
        .doc("2.2.0", "Forgets the watched keys.")
        .effect(Connection),
    cmd("watch", -2, NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY)
        .args("key [key ...]")
        .doc("2.2.0", "Makes the next transaction fail if any of the keys changes first.")
        .cost("O(N), N is the number of keys")
        .keys(META_ALL)
        .effect(Connection),
];

//! A short run of the ledger: see `e2e::ledger`, and `client-ledger` for long ones.

use std::time::Duration;

use e2e::ledger::{self, Settings};
use e2e::process::ServerKind;

/// SE 5, Rust 4: whatever the network does, what was acknowledged ran once, and nothing ran twice.
async fn is_consistent(kind: ServerKind, seed: u64) {
    let summary = ledger::run(Settings { kind, duration: Duration::from_secs(5), seed }).await.unwrap();
    assert_eq!((summary.inconsistencies, summary.duplicates), (0, 0), "{summary:#?}");
    // A run without faults, or without commands, proves nothing.
    assert!(summary.dials >= 3 && !summary.faults.is_empty(), "{summary:#?}");
    assert!(summary.acked > 100 && summary.unknown > 0, "{summary:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_ran_once_on_redis() {
    is_consistent(ServerKind::Redis70, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_ran_once_on_valkey() {
    is_consistent(ServerKind::Valkey91, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_ran_once_on_towline() {
    is_consistent(ServerKind::Towline, 3).await;
}

//! Waiting for a condition of another process: the only place of this package that looks at the wall clock.
//!
//! There is no way to be told that a foreign process has reached a state, so this polls, with a bound. Tests never
//! wait for a time to pass; they wait for what should then be true.

use std::time::{Duration, Instant};

/// How long a condition may take on a busy machine with two cores before a test fails.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The pause between two looks: short against process start-up, long against a look's cost.
const PAUSE: Duration = Duration::from_millis(2);

/// Looks until `condition` gives a value, for at most `patience`; `None` when it never did.
pub fn until_some<T>(patience: Duration, mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(value) = condition() {
            return Some(value);
        }
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::park_timeout(PAUSE);
    }
}

/// Looks until `condition` holds, for at most [`PATIENCE`]; whether it did.
pub fn until(mut condition: impl FnMut() -> bool) -> bool {
    until_some(PATIENCE, || condition().then_some(())).is_some()
}

/// As [`until`], for a condition that other tasks of the same runtime bring about.
pub async fn eventually(mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

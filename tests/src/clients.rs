//! What the tests of the client have in common.
//!
//! Owns ready-made options, and a measure of how late this process is, by which bounds on time are stretched: a machine
//! that does not run the client cannot blame it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::{Instant, MissedTickBehavior, interval};
use towline_client::transport::Target;
use towline_client::{Client, ConnectOptions};

/// The defaults, for a server at this address.
pub fn options(address: SocketAddr) -> ConnectOptions {
    ConnectOptions::new(Target::tcp(address.ip().to_string(), address.port()))
}

/// A client with the defaults, connected.
///
/// # Panics
/// It does not connect.
pub async fn open(address: SocketAddr) -> Client {
    Client::open(options(address)).await.expect("the server is there")
}

/// How late the current runtime was at most, since the measure was begun.
#[derive(Debug)]
pub struct Lateness {
    most_us: Arc<AtomicU64>,
    measuring: AbortHandle,
}

impl Lateness {
    /// Looks every 5 ms how late it is.
    pub fn measure() -> Self {
        const PERIOD: Duration = Duration::from_millis(5);
        let most_us = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&most_us);
        let measuring = tokio::spawn(async move {
            let mut ticks = interval(PERIOD);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut last = ticks.tick().await;
            loop {
                ticks.tick().await;
                let now = Instant::now();
                let late = now.duration_since(last).saturating_sub(PERIOD).as_micros();
                seen.fetch_max(u64::try_from(late).unwrap_or(u64::MAX), Ordering::Relaxed);
                last = now;
            }
        });
        Self { most_us, measuring: measuring.abort_handle() }
    }

    /// `limit`, stretched by what this process was late: a few times, since several steps of one wait may be late.
    pub fn stretch(&self, limit: Duration) -> Duration {
        let late = Duration::from_micros(self.most_us.load(Ordering::Relaxed));
        // Below this the limits have room of their own.
        const NOTICED: Duration = Duration::from_millis(20);
        if late < NOTICED { limit } else { limit + 4 * late }
    }
}

impl Drop for Lateness {
    fn drop(&mut self) {
        self.measuring.abort();
    }
}

/// Whether this process runs nothing but `test`, so that its memory is the test's. If not, the test runs in a process of its
/// own before this returns: `cargo test` has all tests in one process, nextest one for each.
///
/// # Panics
/// The test failed there.
pub fn is_alone(test: &str) -> bool {
    const ALONE: &str = "E2E_ALONE";
    if std::env::var_os("NEXTEST").is_some() || std::env::var_os(ALONE).is_some() {
        return true;
    }
    let own = std::env::current_exe().expect("a running test has a file");
    let ended = std::process::Command::new(own).args(["--exact", test]).env(ALONE, "1").status();
    assert!(ended.is_ok_and(|status| status.success()), "{test} failed in a process of its own");
    false
}

/// Resident memory of this process in bytes.
///
/// # Errors
/// There is no `/proc`.
pub fn resident_bytes() -> anyhow::Result<u64> {
    crate::process::resident_bytes("self")
}

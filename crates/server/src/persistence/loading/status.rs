//! How far loading has come.
//!
//! Owns: the numbers that `INFO` shows, and waiting for the end. Does **not** own loading.

use super::LoadError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// See the module's description.
#[derive(Debug, Default)]
pub(crate) struct Status {
    /// When the loading at hand, or the last one, began: unix milliseconds.
    pub(crate) started_ms: AtomicU64,
    /// Bytes of all files to be loaded, and of those that are done.
    pub(crate) total_bytes: AtomicU64,
    pub(crate) loaded_bytes: AtomicU64,
    /// What the snapshot says that its server used.
    pub(crate) used_memory_bytes: AtomicU64,
    /// Keys that a snapshot brought.
    pub(crate) keys: AtomicU64,
    /// Keys of a snapshot that were left out because they had expired, or had no elements.
    pub(crate) keys_expired: AtomicU64,
    pub(crate) keys_empty: AtomicU64,
    /// Commands of a log.
    pub(crate) commands: AtomicU64,
    /// Whether the data set is being loaded again while the server runs.
    pub(crate) is_reloading: AtomicBool,
    /// How the loading at the start has ended, or that another one has failed since.
    outcome: Mutex<Option<Result<(), LoadError>>>,
    ended: Condvar,
}

impl Status {
    /// A loading of so many bytes begins.
    pub(crate) fn begin(&self, total_bytes: u64, now_ms: u64) {
        self.started_ms.store(now_ms, Ordering::Relaxed);
        self.total_bytes.store(total_bytes, Ordering::Relaxed);
        let counters = [
            &self.loaded_bytes,
            &self.used_memory_bytes,
            &self.keys,
            &self.keys_expired,
            &self.keys_empty,
            &self.commands,
        ];
        counters.iter().for_each(|counter| counter.store(0, Ordering::Relaxed));
    }

    /// Percent of the bytes that are done, and the seconds that the rest will take.
    pub(crate) fn progress(&self, now_ms: u64) -> (f64, u64) {
        let total = self.total_bytes.load(Ordering::Relaxed).max(1);
        let loaded = self.loaded_bytes.load(Ordering::Relaxed).min(total);
        let elapsed_s = now_ms.saturating_sub(self.started_ms.load(Ordering::Relaxed)) / 1000;
        // As in Redis, before anything is known the rest is said to take a second.
        let eta_s = if loaded == 0 {
            1
        } else {
            (u128::from(elapsed_s) * u128::from(total - loaded) / u128::from(loaded)) as u64
        };
        (loaded as f64 / total as f64 * 100.0, eta_s)
    }

    fn outcome(&self) -> MutexGuard<'_, Option<Result<(), LoadError>>> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The loading at the start has ended. Only the first word counts.
    pub(crate) fn end(&self, result: Result<(), LoadError>) {
        self.outcome().get_or_insert(result);
        self.ended.notify_all();
    }

    /// A loading later on has failed, and left part of the data.
    pub(crate) fn break_off(&self, error: LoadError) {
        *self.outcome() = Some(Err(error));
        self.ended.notify_all();
    }

    /// Waits until the loading at the start has ended.
    pub(crate) fn wait(&self) -> Result<(), LoadError> {
        let mut outcome = self.outcome();
        loop {
            if let Some(result) = &*outcome {
                return result.clone();
            }
            outcome = self.ended.wait(outcome).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Why the loading at the start has failed, if it has.
    pub(crate) fn failure(&self) -> Option<LoadError> {
        self.outcome().as_ref().and_then(|outcome| outcome.as_ref().err().cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_in_percent_of_bytes() {
        let status = Status::default();
        status.begin(1000, 5000);
        assert_eq!(status.progress(9000), (0.0, 1));
        status.loaded_bytes.store(250, Ordering::Relaxed);
        assert_eq!(status.progress(9000), (25.0, 12));
        status.loaded_bytes.store(2000, Ordering::Relaxed);
        assert_eq!(status.progress(9000), (100.0, 0));
        Status::default().progress(0);
    }

    #[test]
    fn the_first_outcome_counts() {
        let status = Status::default();
        assert!(status.failure().is_none());
        status.end(Err(LoadError::Stopped));
        status.end(Ok(()));
        assert!(matches!(status.wait(), Err(LoadError::Stopped)));
        assert!(status.failure().is_some());
    }
}

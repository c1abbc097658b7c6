//! How long an accepted connection may take to say what it wants.
//!
//! Owns: the connections whose first request has not arrived, their number and their age. Does **not** own sockets: it
//! says which to close. A peer that connects and stays silent costs one entry here for a bounded time, and never a
//! place in the [`crate::AdmissionQueue`].

use std::collections::BTreeMap;
use std::time::Duration;
use towline_sansio::Instant;

/// The bounds of [`Headers`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadersConfig {
    /// The first request must be complete so long after the accept. More than zero.
    pub timeout: Duration,
    /// Connections that may be silent at once. More than zero.
    pub count_max: u32,
}

impl HeadersConfig {
    /// The defaults of listeners: `timeout` 1 s, since an honest peer sends its first request with the connection and
    /// even a lost packet comes again within 0.2 to 0.6 s; `count_max` 4,096, some 100 KB and well below the usual
    /// number of file descriptors.
    pub const LISTENER: Self = Self { timeout: Duration::from_secs(1), count_max: 4096 };
}

impl Default for HeadersConfig {
    fn default() -> Self {
        Self::LISTENER
    }
}

/// Names one silent connection. Never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeaderId(u64);

/// So many connections are silent that a new one must be closed at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{silent} connections have not sent a request yet, which is the limit")]
pub struct HeadersFull {
    /// How many are silent.
    pub silent: u32,
}

/// Why a [`HeadersConfig`] was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the header {field} is zero; it must be positive")]
pub struct HeadersConfigError {
    /// The field's name.
    pub field: &'static str,
}

/// The connections that have not said what they want.
///
/// ```
/// use towline_admission::{Headers, HeadersConfig};
/// use towline_sansio::Instant;
///
/// let mut headers = Headers::new(HeadersConfig::LISTENER)?;
/// let silent = headers.accepted(Instant::ZERO)?;
/// let deadline = headers.next_timeout().expect("one is silent");
/// assert_eq!(headers.poll_expired(deadline), Some(silent)); // Close it.
/// assert_eq!(headers.next_timeout(), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Headers {
    config: HeadersConfig,
    next_id: u64,
    /// Deadlines grow with the ids, so the first is the next to expire.
    silent: BTreeMap<HeaderId, Instant>,
}

impl Headers {
    /// Nobody is silent yet.
    ///
    /// # Errors
    /// A bound is zero: every connection would be closed. The configuration's author's fault.
    pub fn new(config: HeadersConfig) -> Result<Self, HeadersConfigError> {
        if config.timeout.is_zero() {
            return Err(HeadersConfigError { field: "timeout" });
        }
        if config.count_max == 0 {
            return Err(HeadersConfigError { field: "count_max" });
        }
        Ok(Self { config, next_id: 0, silent: BTreeMap::new() })
    }

    /// A connection was accepted.
    ///
    /// # Errors
    /// Too many are silent; close the new one. The peer may retry after a backoff.
    pub fn accepted(&mut self, now: Instant) -> Result<HeaderId, HeadersFull> {
        let silent = self.silent();
        if silent >= self.config.count_max {
            return Err(HeadersFull { silent });
        }
        let id = HeaderId(self.next_id);
        self.next_id += 1;
        self.silent.insert(id, now + self.config.timeout);
        Ok(id)
    }

    /// The first request is complete, or the connection is gone. False if it had expired before.
    pub fn finished(&mut self, id: HeaderId) -> bool {
        self.silent.remove(&id).is_some()
    }

    /// The next connection to close because its time is over. Call until `None`.
    pub fn poll_expired(&mut self, now: Instant) -> Option<HeaderId> {
        let first = self.silent.first_entry().filter(|entry| *entry.get() <= now)?;
        Some(first.remove_entry().0)
    }

    /// When [`Headers::poll_expired`] has something next.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.silent.first_key_value().map(|(_, deadline)| *deadline)
    }

    /// How many connections are silent, at most [`HeadersConfig::count_max`].
    pub fn silent(&self) -> u32 {
        u32::try_from(self.silent.len()).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn silent_connections_are_bounded_in_number_and_age() {
        let mut headers = Headers::new(HeadersConfig { timeout: 100 * MS, count_max: 2 }).unwrap();
        let first = headers.accepted(Instant::ZERO).unwrap();
        let second = headers.accepted(Instant::ZERO + MS).unwrap();
        assert_eq!(headers.accepted(Instant::ZERO + MS), Err(HeadersFull { silent: 2 }));
        assert!(headers.finished(second));
        let third = headers.accepted(Instant::ZERO + 2 * MS).unwrap();
        assert_eq!(headers.next_timeout(), Some(Instant::ZERO + 100 * MS));
        assert_eq!(headers.poll_expired(Instant::ZERO + 99 * MS), None);
        assert_eq!(headers.poll_expired(Instant::ZERO + 100 * MS), Some(first));
        assert_eq!(headers.poll_expired(Instant::ZERO + 100 * MS), None);
        assert!(!headers.finished(first));
        assert_eq!(headers.poll_expired(Instant::FAR), Some(third));
        assert_eq!(headers.silent(), 0);
    }

    #[test]
    fn bounds_that_would_close_everybody_are_refused() {
        let error = |config| Headers::new(config).err().map(|error| error.field);
        let config = HeadersConfig::LISTENER;
        assert_eq!(error(HeadersConfig { timeout: Duration::ZERO, ..config }), Some("timeout"));
        assert_eq!(error(HeadersConfig { count_max: 0, ..config }), Some("count_max"));
    }
}

//! redis-rs's settings of connections. Owns which of them mean something here.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ::redis::aio::AsyncPushSender;

use crate::options::ConnectOptions;
use towline_admission::BackoffConfig;

/// In the place of `redis::AsyncConnectionConfig`.
///
/// What is not set is as [`ConnectOptions`] say: 5 s for a command, not 500 ms. Buffers and limits of redis-rs have no
/// counterpart: they are taken and mean nothing, because this client bounds bytes.
#[derive(Clone, Default)]
pub struct AsyncConnectionConfig {
    response_timeout: Option<Duration>,
    connection_timeout: Option<Duration>,
    pub(super) push_sender: Option<Arc<dyn AsyncPushSender>>,
}

impl AsyncConnectionConfig {
    /// Nothing set.
    pub fn new() -> Self {
        Self::default()
    }

    /// The time of a connection attempt, `None` for no limit.
    #[must_use]
    pub fn set_connection_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.connection_timeout = Some(timeout.unwrap_or(Duration::MAX));
        self
    }

    /// The time of a command, waiting for a connection included; `None` for no limit. A command that blocks has it on
    /// top of what it may block.
    #[must_use]
    pub fn set_response_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.response_timeout = Some(timeout.unwrap_or(Duration::MAX));
        self
    }

    /// Who gets what is published to the connection's subscriptions.
    #[must_use]
    pub fn set_push_sender(mut self, sender: impl AsyncPushSender) -> Self {
        self.push_sender = Some(Arc::new(sender));
        self
    }

    /// Means nothing here.
    #[must_use]
    pub const fn set_pipeline_buffer_size(self, _size: usize) -> Self {
        self
    }

    /// Means nothing here.
    #[must_use]
    pub const fn set_concurrency_limit(self, _limit: usize) -> Self {
        self
    }

    /// Means nothing here.
    #[must_use]
    pub const fn set_write_backpressure_boundary(self, _boundary: usize) -> Self {
        self
    }

    pub(super) fn apply(&self, mut options: ConnectOptions) -> ConnectOptions {
        if let Some(timeout) = self.response_timeout {
            options = options.command_timeout(timeout);
        }
        if let Some(timeout) = self.connection_timeout {
            options = options.connect_timeout(timeout);
        }
        options
    }
}

impl fmt::Debug for AsyncConnectionConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncConnectionConfig")
            .field("response_timeout", &self.response_timeout)
            .field("connection_timeout", &self.connection_timeout)
            .field("has_push_sender", &self.push_sender.is_some())
            .finish()
    }
}

/// In the place of `redis::aio::ConnectionManagerConfig`.
///
/// The delays bound this client's own backoff, which has jitter and never gives up. The number of retries is kept and
/// means nothing: a command fails by its own time, not by a count of attempts.
#[derive(Debug, Clone)]
pub struct ConnectionManagerConfig {
    connection: AsyncConnectionConfig,
    exponent_base: f32,
    min_delay: Duration,
    max_delay: Option<Duration>,
    number_of_retries: usize,
    has_delays: bool,
    automatic_resubscription: bool,
}

impl Default for ConnectionManagerConfig {
    /// What redis-rs says it is by default; none of it is applied unless it is set.
    fn default() -> Self {
        Self {
            connection: AsyncConnectionConfig::new(),
            exponent_base: 2.0,
            min_delay: Duration::from_millis(100),
            max_delay: None,
            number_of_retries: 6,
            has_delays: false,
            automatic_resubscription: false,
        }
    }
}

impl ConnectionManagerConfig {
    /// Nothing set.
    pub fn new() -> Self {
        Self::default()
    }

    /// See [`set_min_delay`](Self::set_min_delay).
    pub const fn min_delay(&self) -> Duration {
        self.min_delay
    }

    /// See [`set_max_delay`](Self::set_max_delay).
    pub const fn max_delay(&self) -> Option<Duration> {
        self.max_delay
    }

    /// See [`set_exponent_base`](Self::set_exponent_base).
    pub const fn exponent_base(&self) -> f32 {
        self.exponent_base
    }

    /// See [`set_number_of_retries`](Self::set_number_of_retries).
    pub const fn number_of_retries(&self) -> usize {
        self.number_of_retries
    }

    /// See [`set_response_timeout`](Self::set_response_timeout).
    pub const fn response_timeout(&self) -> Option<Duration> {
        self.connection.response_timeout
    }

    /// See [`set_connection_timeout`](Self::set_connection_timeout).
    pub const fn connection_timeout(&self) -> Option<Duration> {
        self.connection.connection_timeout
    }

    /// See [`set_automatic_resubscription`](Self::set_automatic_resubscription).
    pub const fn automatic_resubscription(&self) -> bool {
        self.automatic_resubscription
    }

    /// The bound of the wait after the first attempt that failed.
    #[must_use]
    pub const fn set_min_delay(mut self, delay: Duration) -> Self {
        self.min_delay = delay;
        self.has_delays = true;
        self
    }

    /// The bound of any wait between attempts.
    #[must_use]
    pub const fn set_max_delay(mut self, delay: Duration) -> Self {
        self.max_delay = Some(delay);
        self.has_delays = true;
        self
    }

    /// By how much each failure raises the bound; between 1.1 and 16.
    #[must_use]
    pub const fn set_exponent_base(mut self, base: f32) -> Self {
        self.exponent_base = base;
        self.has_delays = true;
        self
    }

    /// Means nothing here: it is tried for as long as somebody holds the connection.
    #[must_use]
    pub const fn set_number_of_retries(mut self, count: usize) -> Self {
        self.number_of_retries = count;
        self
    }

    /// As [`AsyncConnectionConfig::set_response_timeout`].
    #[must_use]
    pub fn set_response_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.connection = self.connection.set_response_timeout(timeout);
        self
    }

    /// As [`AsyncConnectionConfig::set_connection_timeout`].
    #[must_use]
    pub fn set_connection_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.connection = self.connection.set_connection_timeout(timeout);
        self
    }

    /// As [`AsyncConnectionConfig::set_push_sender`].
    #[must_use]
    pub fn set_push_sender(mut self, sender: impl AsyncPushSender) -> Self {
        self.connection = self.connection.set_push_sender(sender);
        self
    }

    /// Means nothing here: subscriptions always come back.
    #[must_use]
    pub const fn set_automatic_resubscription(mut self) -> Self {
        self.automatic_resubscription = true;
        self
    }

    /// Means nothing here.
    #[must_use]
    pub const fn set_pipeline_buffer_size(self, _size: usize) -> Self {
        self
    }

    /// Means nothing here.
    #[must_use]
    pub const fn set_concurrency_limit(self, _limit: usize) -> Self {
        self
    }

    /// Means nothing here.
    #[must_use]
    pub const fn set_write_backpressure_boundary(self, _size: usize) -> Self {
        self
    }

    pub(super) fn push_sender(&self) -> Option<Arc<dyn AsyncPushSender>> {
        self.connection.push_sender.clone()
    }

    pub(super) fn apply(&self, options: ConnectOptions) -> ConnectOptions {
        let options = self.connection.apply(options);
        if !self.has_delays {
            return options;
        }
        let usual = BackoffConfig::CLIENT;
        let base = self.min_delay.max(Duration::from_millis(1));
        let cap = self.max_delay.unwrap_or(usual.cap).max(base);
        let multiplier = f64::from(self.exponent_base);
        // A factor that is no number at all is as good as none.
        let multiplier = if multiplier.is_nan() { usual.multiplier } else { multiplier };
        options.backoff(BackoffConfig {
            base,
            cap,
            multiplier: multiplier.clamp(BackoffConfig::MULTIPLIER_MIN, BackoffConfig::MULTIPLIER_MAX),
            first_jitter: usual.first_jitter.min(cap),
            ..usual
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_set_goes_together() {
        let options = || "redis://localhost".parse::<ConnectOptions>().unwrap();
        for config in [
            ConnectionManagerConfig::new(),
            ConnectionManagerConfig::new().set_min_delay(Duration::ZERO).set_exponent_base(f32::NAN),
            ConnectionManagerConfig::new().set_min_delay(Duration::from_secs(9)).set_exponent_base(100.0),
            ConnectionManagerConfig::new().set_max_delay(Duration::from_millis(1)).set_exponent_base(-1.0),
            ConnectionManagerConfig::new().set_response_timeout(None).set_connection_timeout(None),
        ] {
            assert_eq!(config.apply(options()).validate(), Ok(()), "{config:?}");
        }
    }
}

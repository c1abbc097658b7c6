//! The numbers of [`crate::Connections`].

use std::time::Duration;

use towline_admission::{
    BackoffConfig, BackoffError, BreakerConfig, BreakerConfigError, HeadersConfig, HeadersConfigError,
    LimiterConfig, LimiterConfigError, QueueConfig, QueueConfigError,
};

/// Everything that bounds how a process connects and is connected to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConnectConfig {
    /// Handshakes that this process has in flight, in all and to each node.
    pub limiter: LimiterConfig,
    /// Delays between the attempts of one lane.
    pub backoff: BackoffConfig,
    /// When a node is not dialled at all; one breaker for each node, whatever its number of lanes and rails.
    pub breaker: BreakerConfig,
    /// The queue of those who ask this process.
    pub queue: QueueConfig,
    /// How long those may be silent.
    pub headers: HeadersConfig,
    /// A dial takes at most this. More than zero.
    pub dial_timeout: Duration,
    /// From HELLO to its answer at most this. More than zero; a target does not begin work that it cannot finish within
    /// it.
    pub reply_timeout: Duration,
    /// A target keeps queue pairs for an initiator that does not confirm for at most this. More than zero.
    pub confirm_timeout: Duration,
    /// Who was told to wait for the peer's own HELLO waits at most this before it insists. More than zero.
    pub yield_timeout: Duration,
    /// Who was told to come back without a ticket comes up to this later, so that many do not come at once.
    pub return_jitter: Duration,
    /// The latest appointment that is taken. A peer that names a later one is asked at this time. More than zero.
    pub appointment_max: Duration,
    /// Open connections, silent ones included. More than zero.
    pub connections_max: u32,
    /// Nodes that are remembered. More than zero. Beyond, the one that was met first of those without links is
    /// forgotten.
    pub peers_max: u32,
    /// Lanes to one node at most: the bound on what one peer can make this process remember. More than zero.
    pub lanes_max: u16,
}

impl ConnectConfig {
    /// The defaults of an engine.
    ///
    /// * `limiter` 16 in all, 8 to each node, no gap: a listener with 4 workers is kept busy by one node alone, and a lost
    ///   dial does not hold up the other lanes. That a thousand nodes do the same is what the target's queue is for.
    /// * `backoff` base 50 ms, cap 1 s: in a fleet everybody has asked again within a second of the target's return, and
    ///   from then on the target's own appointments decide.
    /// * `breaker` as every client's, 5 failures without an answer between: a network that loses every fifth dial does that
    ///   once in three thousand times, and a dead node at the first round of permits.
    /// * `queue` as every listener's (at most 200 ms of waiting, 4 workers), and 131,072 tickets: one each for the 80,000
    ///   endpoints of ten thousand nodes with eight cards. About 150 bytes each.
    /// * `dial_timeout` 1 s: one lost SYN is repeated by the kernel within it.
    /// * `reply_timeout` 2 s: the longest wait in the target's queue and ten times the usual work.
    /// * `confirm_timeout` 2 s: a round trip and the making of queue pairs at the initiator.
    /// * `yield_timeout` 2 s: the peer's handshake is on its way, and as long as ours may take.
    /// * `return_jitter` 20 ms: what the queue's grace for tickets allows for.
    /// * `appointment_max` 10 min: a target with one worker has served 80,000 endpoints after 6.
    /// * `connections_max` 131,072, two for each node that may be known: one each way.
    /// * `peers_max` 65,536, `lanes_max` 128.
    pub const ENGINE: Self = Self {
        limiter: LimiterConfig {
            per_process: 16,
            per_target: 8,
            waiters_max: 65_536,
            target_gap: Duration::ZERO,
        },
        backoff: BackoffConfig::CLIENT,
        breaker: BreakerConfig::CLIENT,
        queue: QueueConfig { tickets_max: 131_072, ..QueueConfig::LISTENER },
        headers: HeadersConfig::LISTENER,
        dial_timeout: Duration::from_secs(1),
        reply_timeout: Duration::from_secs(2),
        confirm_timeout: Duration::from_secs(2),
        yield_timeout: Duration::from_secs(2),
        return_jitter: Duration::from_millis(20),
        appointment_max: Duration::from_secs(600),
        connections_max: 131_072,
        peers_max: 65_536,
        lanes_max: 128,
    };

    /// Checks the numbers of this crate; the parts check theirs.
    pub(crate) fn validate(&self) -> Result<(), ConnectConfigError> {
        for (is_zero, field) in [
            (self.dial_timeout.is_zero(), "dial_timeout"),
            (self.reply_timeout.is_zero(), "reply_timeout"),
            (self.confirm_timeout.is_zero(), "confirm_timeout"),
            (self.yield_timeout.is_zero(), "yield_timeout"),
            (self.appointment_max.is_zero(), "appointment_max"),
            (self.connections_max == 0, "connections_max"),
            (self.peers_max == 0, "peers_max"),
            (self.lanes_max == 0, "lanes_max"),
        ] {
            if is_zero {
                return Err(ConnectConfigError::NotPositive { field });
            }
        }
        self.backoff.validate()?;
        self.breaker.validate()?;
        Ok(())
    }
}

impl Default for ConnectConfig {
    fn default() -> Self {
        Self::ENGINE
    }
}

/// Why a [`ConnectConfig`] was refused. Always its author's fault: zero where something would wait for ever.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectConfigError {
    /// A time or a bound of this crate is zero.
    #[error("the connect setting {field} is zero; it must be positive")]
    NotPositive {
        /// The field's name.
        field: &'static str,
    },
    /// The limits.
    #[error(transparent)]
    Limiter(#[from] LimiterConfigError),
    /// The backoff.
    #[error(transparent)]
    Backoff(#[from] BackoffError),
    /// The breaker.
    #[error(transparent)]
    Breaker(#[from] BreakerConfigError),
    /// The queue.
    #[error(transparent)]
    Queue(#[from] QueueConfigError),
    /// The silent connections.
    #[error(transparent)]
    Headers(#[from] HeadersConfigError),
}

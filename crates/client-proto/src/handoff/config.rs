//! The choices of a handoff.

use std::time::Duration;

/// When commands may go out on the successor while some are unanswered on the old connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum HandoffOrder {
    /// When all are answered. Costs a pause of one round trip; commands run in the order in which they were given,
    /// as on one connection. The default, since it is what callers have without a handoff.
    #[default]
    Strict,
    /// When those on the same keys are answered, and those whose keys are not known. Commands on one key run in
    /// order; no pause as long as the keys differ.
    PerKey,
    /// At once. No pause, and no order between commands before and after the move.
    None,
}

/// The numbers of a handoff. Values that make no sense are moved to the nearest that do; none is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandoffConfig {
    /// The relaxed timeout. Half of it bounds the hold of a recycle. Default 10 s, as the timeouts' own.
    pub relaxed: Duration,
    /// The window if the announcement names none. Default 10 s, the shortest that servers use.
    pub window_default: Duration,
    /// The shortest window; shorter ones count as this. Default 1 s: less leaves no time for a dial.
    pub window_min: Duration,
    /// The longest window; longer ones count as this. Default 120 s, eight times what servers use: a move that is
    /// announced for later than that is announced again, or is a mistake that must not pin an address for hours.
    pub window_max: Duration,
    /// How many moves are made within `chain_window`. More are not followed; the connection stays until it is
    /// closed. Default 8, at most [`HandoffConfig::CHAIN_MAX`].
    pub chain_max: u32,
    /// The time over which moves are counted. Default 60 s.
    pub chain_window: Duration,
    /// The ceiling of the delay after the first failed dial; it doubles with each failure. Default 25 ms. At least
    /// 1 ms.
    pub retry_min: Duration,
    /// The ceiling of any delay between dials. Default 100 ms: the window is short, and the limiter of dials spreads
    /// what a fleet asks for.
    pub retry_max: Duration,
    /// How long to wait when a dial has reached the node that is left, usually because names lag behind. Default
    /// 1 s; after the first time half to one and a half of it. At least 10 ms.
    pub same_node_retry: Duration,
    /// Connections without work dial within one such part of the window, at a drawn moment. Default 5, so a fifth;
    /// at least 3, since half of the window may have to pass before.
    pub idle_spread: u32,
    /// The shortest hold of a recycle. Default 1 s, also when less is left of the window.
    pub hold_min: Duration,
    /// How long after the window's end the old connection may still be open: servers close some seconds late. A drain
    /// ends then, and until then the loss of a connection that found no successor counts as planned. Default 10 s.
    pub grace: Duration,
}

impl HandoffConfig {
    /// The highest `chain_max`; each move in it takes eight bytes.
    pub const CHAIN_MAX: u32 = 64;

    /// No time in here counts as more, so that sums of them have no overflow.
    pub const TIME_MAX: Duration = Duration::from_secs(3600);

    /// The values that the machine goes by.
    pub(super) fn sane(mut self) -> Self {
        for time in [
            &mut self.relaxed,
            &mut self.window_default,
            &mut self.window_min,
            &mut self.window_max,
            &mut self.chain_window,
            &mut self.retry_min,
            &mut self.retry_max,
            &mut self.same_node_retry,
            &mut self.hold_min,
            &mut self.grace,
        ] {
            *time = Self::TIME_MAX.min(*time);
        }
        self.window_max = self.window_max.max(self.window_min);
        self.chain_max = self.chain_max.min(Self::CHAIN_MAX);
        self.retry_min = self.retry_min.max(Duration::from_millis(1));
        self.retry_max = self.retry_max.max(self.retry_min);
        self.same_node_retry = self.same_node_retry.max(Duration::from_millis(10));
        self.idle_spread = self.idle_spread.max(3);
        self
    }
}

impl Default for HandoffConfig {
    fn default() -> Self {
        Self {
            relaxed: Duration::from_secs(10),
            window_default: Duration::from_secs(10),
            window_min: Duration::from_secs(1),
            window_max: Duration::from_secs(120),
            chain_max: 8,
            chain_window: Duration::from_secs(60),
            retry_min: Duration::from_millis(25),
            retry_max: Duration::from_millis(100),
            same_node_retry: Duration::from_secs(1),
            idle_spread: 5,
            hold_min: Duration::from_secs(1),
            grace: Duration::from_secs(10),
        }
    }
}

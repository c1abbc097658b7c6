//! The numbers of a bridge, each with its reason.
//!
//! Owns the bounds. Does not own the policy on what waits ([`crate::policy`]) nor the handshake's content.

use std::time::Duration;

use towline_admission::BackoffConfig;

use crate::handoff::{HandoffConfig, HandoffOrder};
use crate::maintenance::WindowConfig;

/// Bounds and times of one [`crate::Bridge`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// Most bytes of commands that the kernel has not taken yet. Default 64 MiB: one second of 100-byte commands at
    /// more than half a million a second, so that an interruption of a second loses nothing at any load one
    /// connection carries, while a forgotten client cannot eat its process. A command that finds no room waits
    /// for it, or fails, as its caller says.
    pub backlog_bytes_max: usize,
    /// Most bytes of commands that wait for replies. Default 16 MiB: above the bandwidth-delay product of any
    /// network path in use, so it limits nothing but a server that has stopped answering.
    pub in_flight_bytes_max: usize,
    /// Most commands that wait for replies. Default 1,048,576.
    pub in_flight_max: usize,
    /// Bytes in flight right after a reconnect that finds a backlog; doubled with every window answered until the
    /// backlog is gone. Default 64 KiB: a restarted server with cold caches is not met by a wall of old work. With
    /// [`FlushOrder::FreshFirst`] the window stays as it is, because fresh commands wait behind it.
    pub pace_bytes_initial: usize,
    /// Whether commands that are submitted after a reconnect wait behind the backlog. Default
    /// [`FlushOrder::InOrder`].
    pub flush_order: FlushOrder,
    /// Deadlines are looked at this often at most. Default 10 ms.
    pub tick: Duration,
    /// Events kept for a reader that is behind. Default 1024; the oldest is dropped and counted.
    pub events_max: usize,
    /// Waits between dials.
    pub backoff: BackoffConfig,
    /// The first and the longest wait before a command is sent again that the server refused without running it
    /// (`LOADING`, `TRYAGAIN`, …). Doubled each time. Default 10 ms and 500 ms.
    pub refused_wait: (Duration, Duration),
    /// Whether the connection hands over to a successor when the server says that it moves. Default: yes. A connection
    /// that holds what cannot move (watched keys) does not; see [`crate::Bridge::moving_until`].
    pub hands_off: bool,
    /// Which commands wait for those that are still unanswered on the old connection. Default
    /// [`HandoffOrder::Strict`].
    pub handoff_order: HandoffOrder,
    /// Times of a handoff.
    pub handoff: HandoffConfig,
    /// How long deadlines are relaxed while the server is busy with itself.
    pub windows: WindowConfig,
    /// Whether the endpoint is configured by a name, which may lead somewhere else by and by. Default: no.
    pub endpoint_is_name: bool,
    /// Guards that the simulator turns off, one at a time, to see that it notices.
    #[doc(hidden)]
    pub guards: Guards,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            backlog_bytes_max: 64 * 1024 * 1024,
            in_flight_bytes_max: 16 * 1024 * 1024,
            in_flight_max: 1 << 20,
            pace_bytes_initial: 64 * 1024,
            flush_order: FlushOrder::default(),
            tick: Duration::from_millis(10),
            events_max: 1024,
            backoff: BackoffConfig::CLIENT,
            refused_wait: (Duration::from_millis(10), Duration::from_millis(500)),
            hands_off: true,
            handoff_order: HandoffOrder::default(),
            handoff: HandoffConfig::default(),
            windows: WindowConfig::default(),
            endpoint_is_name: false,
            guards: Guards::default(),
        }
    }
}

/// How a backlog is sent once the connection is back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum FlushOrder {
    /// Everything in the order of submission: what comes after the reconnect waits until the backlog is out, a
    /// few milliseconds for ten thousand commands. The default, because a caller may rely on the order of commands
    /// that it does not wait for.
    #[default]
    InOrder,
    /// Commands submitted after the reconnect go first and the backlog flows in between, in its own order: new work
    /// is as fast as ever while old work is caught up with. A command may overtake one that was submitted before it;
    /// only callers who wait for each reply before they go on do not notice.
    FreshFirst,
}

/// Each guard is one rule that the promises rest on. All are on; a simulator run with one off must fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub struct Guards {
    /// A ticket or event of an older generation is refused.
    pub generation: bool,
    /// Whether a command was possibly sent is decided by the bytes the kernel took.
    pub byte_accounting: bool,
    /// Expired and withdrawn commands are removed before the queue is sent.
    pub culling: bool,
    /// Nothing of a caller is sent before the handshake is through.
    pub tier_order: bool,
    /// Possibly sent commands that change data are not repeated.
    pub retry_class: bool,
    /// What goes back to the queue keeps its place before younger work.
    pub requeue_order: bool,
    /// A reply is given to the command whose turn it is, also when its caller has gone.
    pub orphans: bool,
    /// The fate of what a writer has is decided when it comes back, not when the loss is reported.
    pub writer_settles: bool,
    /// An attempt that may have run is not forgotten when the next one is not sent.
    pub sent_memory: bool,
    /// A unit that is sent again needs all of its replies again.
    pub whole_replies: bool,
    /// Room that was promised to one caller is not given to another.
    pub promised_room: bool,
    /// The reply of an expired command is waited for before the next one's.
    pub expired_place: bool,
    /// No more is in flight than the bounds allow.
    pub window: bool,
    /// A backlog begins to leave in a small window.
    pub pace: bool,
    /// A successor sends nothing before the connection that it replaces has answered.
    pub strict_hold: bool,
    /// A connection that ends during a planned move is no outage to the policy.
    pub planned_shield: bool,
    /// At a cut, what the kernel has wholly taken stays where it is, and nothing else.
    pub cut: bool,
    /// A unit of which a part was sent before a cut needs all of its replies from the successor.
    pub cut_units: bool,
    /// Replies of a connection that was left answer what was sent on it.
    pub retiring: bool,
    /// An announcement is followed once.
    pub dedupe: bool,
    /// Commands wait for older ones on their keys.
    pub parked: bool,
    /// What waited gets positions behind what was sent meanwhile.
    pub one_line: bool,
}

impl Default for Guards {
    fn default() -> Self {
        Self {
            generation: true,
            byte_accounting: true,
            culling: true,
            tier_order: true,
            retry_class: true,
            requeue_order: true,
            orphans: true,
            writer_settles: true,
            sent_memory: true,
            whole_replies: true,
            promised_room: true,
            expired_place: true,
            window: true,
            pace: true,
            strict_hold: true,
            planned_shield: true,
            cut: true,
            cut_units: true,
            retiring: true,
            dedupe: true,
            parked: true,
            one_line: true,
        }
    }
}

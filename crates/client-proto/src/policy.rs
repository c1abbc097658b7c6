//! What becomes of work while nothing is connected.
//!
//! Owns the decision, as a trait that sees the cause, and its presets. Does not own the bounds on bytes that protect
//! the process ([`crate::Config`]) nor deadlines, which end waiting under every policy.

use std::fmt;
use std::time::Duration;

/// Why nothing is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outage {
    /// The first connection is not there yet.
    NeverConnected,
    /// The last connection was lost without notice.
    Unplanned,
    /// The last connection was left on purpose (a maintenance handoff); its successor is on its way.
    Planned,
}

/// What a policy sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Situation {
    /// Why nothing is connected.
    pub outage: Outage,
    /// For how long.
    pub since: Duration,
    /// Bytes that wait, without those of the command in question.
    pub backlog_bytes: usize,
    /// Commands that wait, without the one in question.
    pub backlog_commands: usize,
    /// Bytes of the command in question.
    pub command_bytes: usize,
    /// Whether another endpoint may serve it (it is not pinned to this one).
    pub is_movable: bool,
}

/// What to do with one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verdict {
    /// Wait for the connection, until the command's deadline.
    Queue,
    /// Fail now with [`crate::ErrorKind::Unavailable`]; it was not sent.
    Fail,
    /// Let the router try another endpoint; without one this is [`Verdict::Queue`].
    Elsewhere,
}

/// Decides what waits. The presets are [`Policy`]; write your own for anything else.
///
/// The methods are called under the bridge's lock: they must be quick and must not call the client.
pub trait BacklogPolicy: Send + fmt::Debug {
    /// A command is submitted while nothing is connected.
    fn admit(&self, situation: &Situation) -> Verdict;

    /// The connection was just lost: what becomes of commands that wait and were not sent. The default keeps them.
    fn keep_on_loss(&self, outage: Outage) -> bool {
        let _ = outage;
        true
    }

    /// The longest a command may wait unsent, its own deadline apart. `None`, the default: as long as its deadline.
    fn age_max(&self) -> Option<Duration> {
        None
    }
}

/// The policies that most applications want.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Policy {
    /// Wait while disconnected, until the command's deadline. The default: most interruptions are shorter than
    /// a deadline, and a late answer is better than an error.
    #[default]
    Queue,
    /// Fail at once when nothing is connected, and fail what waits when the connection is lost: for callers near
    /// their limits, for whom queued work is worse than failed work. A planned handoff is not a loss: its work waits.
    FailFast,
    /// Wait, but never more than these many bytes and never longer than this.
    Bounded {
        /// Most bytes that wait while disconnected; the next command fails with [`crate::ErrorKind::Unavailable`].
        bytes: usize,
        /// The longest wait; then [`crate::ErrorKind::BacklogAge`].
        age: Duration,
    },
}

impl BacklogPolicy for Policy {
    fn admit(&self, situation: &Situation) -> Verdict {
        match *self {
            Self::Queue => Verdict::Queue,
            Self::FailFast => match situation.outage {
                Outage::Planned => Verdict::Queue,
                Outage::NeverConnected | Outage::Unplanned => Verdict::Fail,
            },
            Self::Bounded { bytes, .. } => {
                if situation.backlog_bytes.saturating_add(situation.command_bytes) > bytes {
                    Verdict::Fail
                } else {
                    Verdict::Queue
                }
            }
        }
    }

    fn keep_on_loss(&self, outage: Outage) -> bool {
        match self {
            Self::Queue | Self::Bounded { .. } => true,
            Self::FailFast => outage == Outage::Planned,
        }
    }

    fn age_max(&self) -> Option<Duration> {
        match self {
            Self::Queue | Self::FailFast => None,
            Self::Bounded { age, .. } => Some(*age),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn situation(outage: Outage, backlog_bytes: usize) -> Situation {
        Situation {
            outage,
            since: Duration::from_millis(10),
            backlog_bytes,
            backlog_commands: 1,
            command_bytes: 10,
            is_movable: false,
        }
    }

    #[test]
    fn the_presets_decide_by_cause_and_bytes() {
        use Outage::{NeverConnected, Planned, Unplanned};
        let bounded = Policy::Bounded { bytes: 100, age: Duration::from_secs(1) };
        let table = [
            (Policy::Queue, NeverConnected, 1 << 30, Verdict::Queue),
            (Policy::Queue, Unplanned, 1 << 30, Verdict::Queue),
            (Policy::FailFast, NeverConnected, 0, Verdict::Fail),
            (Policy::FailFast, Unplanned, 0, Verdict::Fail),
            (Policy::FailFast, Planned, 0, Verdict::Queue),
            (bounded, Unplanned, 90, Verdict::Queue),
            (bounded, Unplanned, 91, Verdict::Fail),
            (bounded, Unplanned, usize::MAX, Verdict::Fail),
        ];
        for (policy, outage, bytes, verdict) in table {
            assert_eq!(policy.admit(&situation(outage, bytes)), verdict, "{policy:?} {outage:?} {bytes}");
        }
    }

    #[test]
    fn only_fail_fast_drops_what_waits_and_never_for_a_planned_move() {
        assert!(Policy::Queue.keep_on_loss(Outage::Unplanned));
        assert!(!Policy::FailFast.keep_on_loss(Outage::Unplanned));
        assert!(Policy::FailFast.keep_on_loss(Outage::Planned));
    }
}

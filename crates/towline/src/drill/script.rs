//! The scripts of the drill: what the server announces, and what is there when the client follows.
//!
//! Owns names and descriptions. Does not own how a script is played ([`super::director`]).

use super::options::ScriptName;

/// What happens to the client's connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Script {
    Plain,
    Refuse,
    Slow,
    Dns,
    Null,
    Ipv6,
    BackToBack,
    Blocked,
    Pubsub,
    Cut,
}

impl Script {
    /// Every script that a client can come through without a loss.
    pub(super) const ALL: [Self; 9] = [
        Self::Plain,
        Self::Refuse,
        Self::Slow,
        Self::Dns,
        Self::Null,
        Self::Ipv6,
        Self::BackToBack,
        Self::Blocked,
        Self::Pubsub,
    ];

    /// Its name on the command line and in reports.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Refuse => "refuse",
            Self::Slow => "slow",
            Self::Dns => "dns",
            Self::Null => "null",
            Self::Ipv6 => "ipv6",
            Self::BackToBack => "back-to-back",
            Self::Blocked => "blocked",
            Self::Pubsub => "pubsub",
            Self::Cut => "cut",
        }
    }

    /// What it does, in a line.
    pub(super) fn about(self) -> &'static str {
        match self {
            Self::Plain => "one MOVING to another address",
            Self::Refuse => "the successor refuses connections; the configured address stays",
            Self::Slow => "the successor answers nothing for a while",
            Self::Dns => "the successor is a name that still means the old address for a while",
            Self::Null => "no successor is named: back to the configured address at half the window",
            Self::Ipv6 => "the successor is an IPv6 address",
            Self::BackToBack => "a second MOVING before the first is worked off",
            Self::Blocked => "one MOVING while callers wait in BLPOP",
            Self::Pubsub => "one MOVING while subscribers listen",
            Self::Cut => "the connections are closed without a word",
        }
    }

    /// The value of the option that names it.
    pub(super) fn option(self) -> ScriptName {
        match self {
            Self::Plain => ScriptName::Plain,
            Self::Refuse => ScriptName::Refuse,
            Self::Slow => ScriptName::Slow,
            Self::Dns => ScriptName::Dns,
            Self::Null => ScriptName::Null,
            Self::Ipv6 => ScriptName::Ipv6,
            Self::BackToBack => ScriptName::BackToBack,
            Self::Blocked => ScriptName::Blocked,
            Self::Pubsub => ScriptName::Pubsub,
            Self::Cut => ScriptName::Cut,
        }
    }
}

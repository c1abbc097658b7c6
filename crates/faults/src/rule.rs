//! Fault rules: what goes wrong, where, and for which connections.
//!
//! Owns the vocabulary and its text form. Does not own what a rule does to bytes (see [`crate::link`]) nor counting
//! connections (see [`crate::plan`]).
//!
//! # The text form
//!
//! ```text
//! rule   = stream | dial | dns
//! stream = FAULT "@" place [ "/" argument ] { "," option }
//! place  = [ ( "c2s" | "s2c" | "both" ) ":" ] ( N | "rand:" N ".." N | "mean:" N | "after:" TIME )
//! dial   = ( "refuse" | "close" | "hang" | "busy" ) "@dial" { "," option }
//! dns    = "dns@" NAME "/" answer { "+" answer }
//! answer = TIME "=" ( "none" | ADDRESS { "|" ADDRESS } )
//! TIME   = N ( "us" | "ms" | "s" | "m" )
//! ```
//!
//! A place is reached when exactly so many bytes of its direction have passed; `rand` draws the number for each connection
//! from the seed, both ends included; with `mean` every byte is as likely as any other, and it takes so many on average;
//! `after` counts time since the connection opened. `both` is two places, one in each direction; without a direction the
//! seed picks one for each connection.
//!
//! | fault | argument | what happens at the place |
//! |---|---|---|
//! | `cut` | | closes with a FIN |
//! | `reset` | | closes with a RST |
//! | `stall` | `TIME`, default for ever | nothing passes in this direction for so long |
//! | `split` | `N{+N}` | from here on, pieces of these sizes, in turn |
//! | `delay` | `TIME` | from here on, every byte arrives so much later |
//! | `rate` | `N`, `Nk`, `NM` | from here on, so many bytes a second pass, thousands or millions of them |
//! | `halfopen` | | nothing passes any more in either direction, both sockets stay open and are not read |
//! | `swallow` | | from here on, this direction's bytes are read and dropped |
//! | `garbage` | hexadecimal bytes, or `rand:N` | these bytes are inserted |
//! | `refuse@dial` | | the dial is refused |
//! | `close@dial` | | the connection is accepted and closed at once |
//! | `hang@dial` | | the connection is accepted, and nobody ever answers |
//! | `busy@dial` | | the connection gets Redis's "max number of clients" error, and is closed |
//!
//! | option | meaning | default |
//! |---|---|---|
//! | `nth=N`, `nth=N..M`, `nth=N..` | the connections it is for, counted from 1 | all |
//! | `count=N` | how often it happens in all | no bound |
//! | `chance=N%` | the share of connections it is for, drawn from the seed | 100% |
//! | `during=TIME..TIME`, `during=TIME..` | for connections opened in this time since the start | always |
//! | `side=client`, `side=server` | `cut`, `reset`: which socket is closed; the other stays open | both |
//! | `gap=TIME` | `split`: the pause between pieces | none |
//! | `jitter=TIME` | `delay`: up to so much more or less, drawn for each arrival; bytes stay in order | none |
//!
//! ```
//! use towline_faults::rule::Rule;
//!
//! for text in ["cut@c2s:123", "stall@s2c:rand:1..4096/2s,chance=50%", "reset@after:1s,nth=2..,side=server"] {
//!     let rule: Rule = text.parse().expect("it is well formed");
//!     assert_eq!(rule.to_string(), text);
//! }
//! let error = "cut@c2s".parse::<Rule>().expect_err("a number is missing");
//! assert!(error.to_string().contains("cut@c2s"));
//! ```

mod text;

#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use bytes::Bytes;

pub use text::{Problem, RuleError, Time};

/// The longest garbage of one rule, in bytes: 64 KiB, longer than anything that a parser takes for a header.
pub const GARBAGE_BYTES_MAX: usize = 64 * 1024;

/// The most sizes of one `split`: 64.
pub const SPLIT_SIZES_MAX: usize = 64;

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Requests: `c2s`.
    ClientToServer,
    /// Replies: `s2c`.
    ServerToClient,
}

impl Direction {
    /// Both, requests first.
    pub const BOTH: [Self; 2] = [Self::ClientToServer, Self::ServerToClient];

    /// The other way.
    #[must_use]
    pub const fn reversed(self) -> Self {
        match self {
            Self::ClientToServer => Self::ServerToClient,
            Self::ServerToClient => Self::ClientToServer,
        }
    }

    /// Its name in rules.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClientToServer => "c2s",
            Self::ServerToClient => "s2c",
        }
    }
}

/// In which direction a rule counts bytes and does harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// The seed picks one for each connection.
    Drawn,
    /// In this one.
    One(Direction),
    /// In each of them, independently: a rule that happens `count` times does so in both together.
    Both,
}

/// Which of a connection's two sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Side {
    /// Both.
    #[default]
    Both,
    /// The one towards the client.
    Client,
    /// The one towards the server.
    Server,
}

impl Side {
    /// Its name in rules.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Both => "both",
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// With the bytes of a connection.
    Stream(StreamRule),
    /// With the opening of a connection.
    Dial(DialRule),
    /// With the answer to a name.
    Dns(DnsRule),
}

/// A fault of a byte stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamRule {
    /// What happens.
    pub fault: StreamFault,
    /// The direction whose bytes count, and that is hit.
    pub way: Way,
    /// When it happens.
    pub trigger: Trigger,
    /// To which connections.
    pub scope: Scope,
}

/// What happens to a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamFault {
    /// The sockets of `side` are closed with a FIN. What has passed is delivered before it.
    Cut {
        /// Which sockets; the other one stays open, and what comes from it is dropped.
        side: Side,
    },
    /// The sockets of `side` are closed with a RST.
    Reset {
        /// As for a cut.
        side: Side,
    },
    /// Nothing passes for this long; `None` is for ever. What comes meanwhile waits, up to a bound.
    Stall(Option<Duration>),
    /// Bytes pass in pieces of these sizes, in turn, from here on.
    Split {
        /// At least one, at most [`SPLIT_SIZES_MAX`].
        sizes: Vec<NonZeroU32>,
        /// The pause between two pieces.
        gap: Duration,
    },
    /// Every byte arrives this much later from here on. Delays do not add up: the last one counts.
    Delay {
        /// By how much.
        time: Duration,
        /// Up to this much more or less, never less than nothing in all; drawn for each arrival. As over TCP, what is behind
        /// something late is late too.
        jitter: Duration,
    },
    /// So many bytes a second pass from here on, as through a narrow line: what has no room yet waits. Rates do not add
    /// up: the last one counts.
    Rate(NonZeroU64),
    /// As if the cable were cut: nothing passes any more in either direction, and nothing is read; the sockets stay open.
    HalfOpen,
    /// Bytes of this direction are taken and dropped from here on.
    Swallow,
    /// Bytes that nobody sent are inserted. They do not count as bytes of the stream.
    Garbage(Garbage),
}

impl StreamFault {
    /// Its name in rules.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Cut { .. } => "cut",
            Self::Reset { .. } => "reset",
            Self::Stall(_) => "stall",
            Self::Split { .. } => "split",
            Self::Delay { .. } => "delay",
            Self::Rate(_) => "rate",
            Self::HalfOpen => "halfopen",
            Self::Swallow => "swallow",
            Self::Garbage(_) => "garbage",
        }
    }
}

/// Bytes that nobody sent; at most [`GARBAGE_BYTES_MAX`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Garbage {
    /// These.
    Exact(Bytes),
    /// So many, drawn from the seed.
    Random(u32),
}

/// When a stream's fault happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// When exactly so many bytes of the direction have passed. 0 is when the connection opens.
    Offset(u64),
    /// As `Offset`, with a number that the seed picks for each connection, from `first` to `last`, both included.
    Random {
        /// The smallest.
        first: u64,
        /// The largest; at least `first`.
        last: u64,
    },
    /// As `Offset`, with a number that the seed picks for each connection so that every byte is equally likely to be the
    /// one: this many pass on average. It is how a network with losses breaks connections.
    Mean(u64),
    /// So long after the connection opened.
    After(Duration),
}

/// To which connections a rule applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The first connection, counted from 1. Default 1.
    pub nth_first: u64,
    /// The last connection; `None`, the default, is no bound. At least `nth_first`.
    pub nth_last: Option<u64>,
    /// How often it happens in all; `None`, the default, is no bound.
    pub count: Option<u64>,
    /// The share of connections, in percent, 1 to 100. Default 100.
    pub chance_percent: u8,
    /// Connections opened so long after the start, or later. Default zero.
    pub from: Duration,
    /// Connections opened before this time after the start; `None`, the default, is no bound.
    pub until: Option<Duration>,
}

impl Default for Scope {
    fn default() -> Self {
        Self {
            nth_first: 1,
            nth_last: None,
            count: None,
            chance_percent: 100,
            from: Duration::ZERO,
            until: None,
        }
    }
}

/// A fault of a dial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DialRule {
    /// What happens.
    pub fault: DialFault,
    /// To which connections.
    pub scope: Scope,
}

/// What happens to a dial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DialFault {
    /// The dial fails.
    Refuse,
    /// It succeeds, and the connection is closed at once.
    Close,
    /// It succeeds, and nothing is ever read or answered.
    Hang,
    /// It succeeds, says that there is no room ([`BUSY_REPLY`]), and closes.
    Busy,
}

/// What a busy server says before it closes, in Redis's words.
pub const BUSY_REPLY: &[u8] = b"-ERR max number of clients reached\r\n";

impl DialFault {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Refuse, Self::Close, Self::Hang, Self::Busy];

    /// Its name in rules.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Close => "close",
            Self::Hang => "hang",
            Self::Busy => "busy",
        }
    }
}

/// A name whose addresses change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsRule {
    /// The name, compared as it is.
    pub name: String,
    /// Since when (from the start) which addresses; none means that the name does not exist. In ascending order of time.
    pub answers: Vec<(Duration, Vec<IpAddr>)>,
}

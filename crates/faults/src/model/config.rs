//! What the model server is told beforehand, and what it is told to do wrong.
//!
//! Owns the values; the server acts on them.

use std::time::Duration;

use towline_resp::frame::Frame;
use towline_resp::request::RequestLimits;

use super::ConnectionId;

/// How the model server behaves while nothing goes wrong.
#[derive(Clone, Debug)]
pub struct ModelConfig {
    /// The password of the user `default`. Default `None`: nobody has to authenticate.
    pub password: Option<String>,
    /// What happens to a failing `AUTH` within a pipeline. Default [`AuthFailure::Answered`], as in Redis 7.0 and Valkey.
    pub auth_failure: AuthFailure,
    /// The version in `HELLO` and `INFO`. Default `7.2.4`, which is what Towline's server says.
    pub version: String,
    /// Whether it has `CLIENT MAINT_NOTIFICATIONS`. Default `true`, as Towline's server; without, the command is unknown, as
    /// to Redis and Valkey.
    pub has_maintenance: bool,
    /// How long after its execution a reply leaves. Default zero.
    pub latency: Duration,
    /// Bounds of what clients can make the server keep.
    pub limits: ModelLimits,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            password: None,
            auth_failure: AuthFailure::Answered,
            version: "7.2.4".to_owned(),
            has_maintenance: true,
            latency: Duration::ZERO,
            limits: ModelLimits::default(),
        }
    }
}

/// Bounds of the model server's memory.
#[derive(Clone, Copy, Debug)]
pub struct ModelLimits {
    /// Connections at a time. Default 10,000, as in Redis. One more is refused by
    /// [`Model::connect`](super::Model::connect).
    pub connections_max: usize,
    /// Bytes of one connection that are not executed yet. Default 64 MiB: above the largest value that tests send. More
    /// closes the connection.
    pub input_bytes_max: usize,
    /// Bytes of one connection's replies that are not taken yet. Default 256 MiB. More closes the connection.
    pub output_bytes_max: usize,
    /// Commands that a transaction may queue. Default 65,536. More are refused, and the transaction with them.
    pub queued_max: usize,
    /// Entries of the ledger. Default 16 Mi: some GiB. From then on commands are refused with `-OOM`, for a command that is
    /// executed without being recorded would make the ledger wrong.
    pub ledger_entries_max: usize,
    /// Bounds of one command.
    pub request: RequestLimits,
}

impl Default for ModelLimits {
    fn default() -> Self {
        Self {
            connections_max: 10_000,
            input_bytes_max: 64 << 20,
            output_bytes_max: 256 << 20,
            queued_max: 65_536,
            ledger_entries_max: 16 << 20,
            request: RequestLimits::default(),
        }
    }
}

/// What happens to an `AUTH` with a wrong password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthFailure {
    /// It is answered with `-WRONGPASS`, wherever it stands.
    Answered,
    /// If it is not the first command of the bytes that arrived together, it gets **no reply**, and all later replies are those
    /// of the commands after it. So do Redis 7.4 to 8.2 (observed on 8.2).
    SilentUnlessFirst,
}

/// Something that the server does wrong with some of the commands to come.
///
/// ```
/// use towline_faults::model::{Refusal, Trouble, Wrong};
///
/// // The third and fourth command from now on are refused.
/// let trouble = Trouble::new(Wrong::Refuse(Refusal::Loading)).after(2).times(2);
/// # let _ = trouble;
/// ```
#[derive(Clone, Debug)]
pub struct Trouble {
    pub(super) wrong: Wrong,
    pub(super) after: u64,
    pub(super) left: u64,
    pub(super) only: Option<ConnectionId>,
}

impl Trouble {
    /// Does `wrong` to the next command of any connection, once.
    pub const fn new(wrong: Wrong) -> Self {
        Self { wrong, after: 0, left: 1, only: None }
    }

    /// Leaves `count` commands alone first.
    #[must_use]
    pub const fn after(mut self, count: u64) -> Self {
        self.after = count;
        self
    }

    /// Does it to `count` commands in a row. `u64::MAX` is until [`Model::calm`](super::Model::calm).
    #[must_use]
    pub const fn times(mut self, count: u64) -> Self {
        self.left = count;
        self
    }

    /// Counts and hits the commands of one connection only.
    #[must_use]
    pub const fn on(mut self, connection: ConnectionId) -> Self {
        self.only = Some(connection);
        self
    }
}

/// What the server does to a command.
#[derive(Clone, Debug)]
pub enum Wrong {
    /// Does not execute it, and answers with an error. Commands to which the error cannot happen are executed and do not
    /// count: see [`Refusal`].
    Refuse(Refusal),
    /// Executes it and sends no reply.
    Swallow,
    /// Sends this frame right before its reply: a push that nobody asked for, or garbage.
    Precede(Frame),
    /// Closes the connection instead of executing it.
    CloseBefore,
    /// Executes it, and closes the connection without a reply.
    CloseAfter,
    /// Executes it, and is busy for so long afterwards; its reply comes at once, those of later commands wait.
    BusyAfter(Duration),
}

/// Errors with which a healthy server refuses a healthy command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// `-LOADING`: to every command that may not run while data is loaded. `HELLO`, `AUTH`, `CLIENT` may.
    Loading,
    /// `-BUSY`: a script runs; to every command that may not run meanwhile.
    Busy,
    /// `-READONLY`: to commands that write.
    ReadOnly,
    /// `-CLUSTERDOWN`: to commands with keys.
    ClusterDown,
    /// `-TRYAGAIN`: to commands with keys.
    TryAgain,
    /// `-MASTERDOWN`: to every command that may not run on stale data.
    MasterDown,
    /// `-OOM`: to commands that may need memory.
    OutOfMemory,
    /// Any error text, its code first, without the leading `-`: to every command.
    Text(String),
}

impl Refusal {
    /// The text on the wire, without the leading `-`.
    pub fn text(&self) -> &str {
        match self {
            Self::Loading => "LOADING Redis is loading the dataset in memory",
            Self::Busy => {
                "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
            }
            Self::ReadOnly => "READONLY You can't write against a read only replica.",
            Self::ClusterDown => "CLUSTERDOWN The cluster is down",
            Self::TryAgain => "TRYAGAIN Multiple keys request during rehashing of slot",
            Self::MasterDown => {
                "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."
            }
            Self::OutOfMemory => "OOM command not allowed when used memory > 'maxmemory'.",
            Self::Text(text) => text,
        }
    }
}

/// What a restart keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Keys and scripts, as a server does that was merely unreachable.
    Everything,
    /// Keys only: Redis keeps no script across a restart.
    Data,
    /// Nothing, as a server without persistence.
    Nothing,
}

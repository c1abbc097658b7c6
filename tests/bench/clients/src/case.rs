//! The words in which the parent asks a child for one measurement, and the child answers. Both are JSON.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A client under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ClientName {
    /// redis-rs, `MultiplexedConnection`
    RedisRs,
    /// redis-rs, `ConnectionManager`: the one that connects again
    RedisRsManager,
    /// fred
    Fred,
    /// rustis
    Rustis,
    /// Ours
    Towline,
    /// No client: what the tasks, the clock and the runtime cost by themselves
    Harness,
}

impl ClientName {
    /// The heading of its column.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::RedisRs => "redis-rs",
            Self::RedisRsManager => "redis-rs manager",
            Self::Fred => "fred",
            Self::Rustis => "rustis",
            Self::Towline => "Towline",
            Self::Harness => "(harness)",
        }
    }

    /// Whether Towline is compared with it.
    pub(crate) fn is_peer(self) -> bool {
        !matches!(self, Self::Towline | Self::Harness)
    }
}

/// What one command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Operation {
    /// `GET` of a random key that exists
    Get,
    /// `SET` of a random key to a value of the same size
    Set,
}

/// The runtime on which the client and its callers run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Runtime {
    /// tokio's current-thread runtime
    Ct,
    /// tokio's multi-thread runtime with two workers
    Mt2,
}

impl Runtime {
    /// Builds it.
    pub(crate) fn build(self) -> std::io::Result<tokio::runtime::Runtime> {
        let mut builder = match self {
            Self::Ct => tokio::runtime::Builder::new_current_thread(),
            Self::Mt2 => tokio::runtime::Builder::new_multi_thread(),
        };
        builder.worker_threads(2).enable_all().build()
    }
}

/// One measurement, asked of one process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) client: ClientName,
    pub(crate) runtime: Runtime,
    /// The server's port on 127.0.0.1.
    pub(crate) port: u16,
    /// The server's process, when this run started it: its CPU time is read too.
    pub(crate) server_pid: Option<u32>,
    pub(crate) case: Case,
}

/// What is measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum Case {
    /// Tasks that each send their next command when the last is answered.
    Closed { operation: Operation, tasks: usize, seconds: f64 },
    /// One task that reads one large value again and again.
    Large { value_bytes: usize, replies: usize },
    /// Commands at a fixed rate, each measured from the instant at which it was due.
    Open { commands_per_second: u32, seconds: f64 },
    /// Commands given while the server is away. The child starts its own server, and kills it.
    Queued { commands: usize, server: PathBuf },
}

/// One line of a result file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) round: usize,
    pub(crate) client: ClientName,
    pub(crate) runtime: Runtime,
    pub(crate) measured: Measured,
}

/// A child's answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum Measured {
    Closed(Closed),
    Allocations(Allocations),
    Large(Large),
    LargeAllocations(LargeAllocations),
    Open(Open),
    Queued(Queued),
    QueuedMemory(QueuedMemory),
}

/// Times of closed-loop tasks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Closed {
    pub(crate) operation: Operation,
    pub(crate) tasks: usize,
    pub(crate) commands: u64,
    pub(crate) failed: u64,
    /// The client process's user and system time for one command, microseconds.
    pub(crate) cpu_us: f64,
    pub(crate) user_us: f64,
    pub(crate) server_cpu_us: Option<f64>,
    pub(crate) per_second: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    /// Voluntary context switches of the client process for one command.
    pub(crate) switches: f64,
}

/// Allocations of closed-loop tasks, for one command.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Allocations {
    pub(crate) operation: Operation,
    pub(crate) tasks: usize,
    pub(crate) allocations: f64,
    pub(crate) reallocations: f64,
    pub(crate) bytes: f64,
}

/// Times of large replies.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Large {
    pub(crate) value_bytes: usize,
    /// 10^6 payload bytes for one second.
    pub(crate) mb_per_second: f64,
    pub(crate) cpu_ms: f64,
    /// p99 of 2,000 sequential small replies before the first large one.
    pub(crate) small_p99_before_us: f64,
    /// The same straight after one.
    pub(crate) small_p99_after_us: f64,
}

/// Memory of large replies, in bytes for one byte of payload.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LargeAllocations {
    pub(crate) value_bytes: usize,
    pub(crate) asked: f64,
    pub(crate) peak: f64,
    /// Live after the last reply was dropped and small ones followed, bytes above the start.
    pub(crate) kept_bytes: i64,
}

/// Times at a fixed rate.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Open {
    pub(crate) commands_per_second: u32,
    pub(crate) answered: u64,
    pub(crate) failed: u64,
    pub(crate) cpu_us: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p999_us: f64,
}

/// Times around an outage with queued commands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Queued {
    pub(crate) commands: usize,
    /// Commands that failed while the server was away or after it came back.
    pub(crate) failed: u64,
    /// From the server's first answer to another connection until the first queued command was answered.
    pub(crate) returned_ms: f64,
    /// From then until the last was.
    pub(crate) flushed_ms: f64,
    pub(crate) steady_p99_us: f64,
    /// Of new commands, one each millisecond, from the first queued command's answer until the queue was empty.
    pub(crate) during_p99_us: f64,
    pub(crate) during_max_us: f64,
    pub(crate) during_count: usize,
    pub(crate) after_p99_us: f64,
}

/// Memory of queued commands, bytes for one command.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct QueuedMemory {
    pub(crate) commands: usize,
    /// Commands that failed at once instead of being queued.
    pub(crate) failed: u64,
    /// The RESP bytes.
    pub(crate) command_bytes: f64,
    /// The caller's future, as the client's API gives it.
    pub(crate) future_bytes: f64,
    /// Everything else that is live: the command's bytes and what the client keeps beside them.
    pub(crate) engine_bytes: f64,
}

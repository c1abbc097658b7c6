//! The command line of `towline bench`.
//!
//! Owns flag names, defaults and their bounds. Does not decide anything: the modules that use a value say what it
//! means.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args, Subcommand, ValueEnum};

use super::keys::Distribution;
use super::workload::Ratio;
use crate::tls::TlsArgs;

/// Options of `towline bench`.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct BenchArgs {
    /// Print help (`-h` is the host, as in redis-benchmark).
    #[arg(long, global = true, action = ArgAction::Help)]
    help: Option<bool>,
    /// Which server, and as whom.
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// How much load of which kind.
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    /// What to print and draw.
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Another kind of run than commands per second.
    #[command(subcommand)]
    pub(crate) mode: Option<Mode>,
    /// A command of your own instead of -w: `__rand__` (or `__rand_int__`) becomes 12 digits of a key number,
    /// `__key__` becomes `key:` and 12 digits, `__data__` becomes the value.
    #[arg(trailing_var_arg = true, value_name = "WORD", conflicts_with = "workloads")]
    pub(crate) command: Vec<OsString>,
}

/// Runs that measure something else than commands per second.
#[derive(Debug, Subcommand)]
pub(crate) enum Mode {
    /// Open many connections at once, each with HELLO 3, and report how the server takes it.
    Conns(ConnsArgs),
    /// Fill the server and report the memory that one key costs.
    Memory(MemoryArgs),
}

/// Which server to load, and as whom.
#[derive(Debug, Clone, Args)]
pub(crate) struct TargetArgs {
    /// Host name or address.
    #[arg(short = 'h', long, global = true, default_value = "127.0.0.1")]
    pub(crate) host: String,
    /// TCP port.
    #[arg(short, long, global = true, default_value_t = 6379)]
    pub(crate) port: u16,
    /// Unix socket path, instead of host and port.
    #[arg(short, long, global = true, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Whether and how to speak TLS.
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    /// User name for AUTH; the `default` user without it.
    #[arg(long, global = true)]
    pub(crate) user: Option<String>,
    /// Password for AUTH.
    #[arg(
        short = 'a',
        long = "auth",
        global = true,
        env = "REDISCLI_AUTH",
        hide_env_values = true,
        value_name = "PASSWORD"
    )]
    pub(crate) password: Option<String>,
    /// Database number (SELECT).
    #[arg(long, global = true, default_value_t = 0)]
    pub(crate) db: u32,
    /// Speak RESP3 (HELLO 3).
    #[arg(short = '3', long = "resp3", global = true)]
    pub(crate) is_resp3: bool,
    /// Process whose CPU time and memory are reported; found through INFO when the server is local.
    #[arg(long, global = true, value_name = "PID")]
    pub(crate) server_pid: Option<u32>,
    /// Give up when a connect, or the whole run, sees no progress for so many seconds; 0 waits for ever.
    #[arg(long = "timeout", global = true, default_value_t = 30, value_name = "SECS")]
    pub(crate) timeout_secs: u64,
}

/// How much load of which kind.
#[derive(Debug, Clone, Args)]
pub(crate) struct LoadArgs {
    /// Workloads, run one after the other: ping, get, set, incr, mset, lpush, rpush, lpop, rpop, sadd, spop, hset,
    /// zadd, mixed, mixed:SET:GET.
    #[arg(short, long, value_delimiter = ',', default_value = "set,get", value_name = "LIST")]
    pub(crate) workloads: Vec<String>,
    /// Connections.
    #[arg(short, long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) connections: u32,
    /// Threads that share the connections.
    #[arg(short, long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: u32,
    /// Commands in flight per connection: a batch in a closed loop, the most that may be open with --rate.
    #[arg(short = 'P', long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) pipeline: u32,
    /// Commands per workload; 100000 unless --secs is given.
    #[arg(short = 'n', long, conflicts_with = "secs", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    pub(crate) requests: Option<u64>,
    /// Seconds per workload, instead of a number of commands.
    #[arg(long, value_parser = seconds)]
    pub(crate) secs: Option<f64>,
    /// Open loop: send so many commands per second in total, and measure from the intended send time.
    #[arg(long, value_name = "OPS_PER_S", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) rate: Option<u64>,
    /// Key numbers run from 0 to this minus one.
    #[arg(short = 'r', long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    pub(crate) key_range: u64,
    /// Bytes per value.
    #[arg(short = 'd', long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=512 << 20))]
    pub(crate) data_bytes: u64,
    /// SET:GET shares of the workload `mixed`.
    #[arg(long, default_value = "1:10", value_name = "SET:GET")]
    pub(crate) ratio: Ratio,
    /// How keys are drawn: uniform, zipf, zipf:EXPONENT, sequential.
    #[arg(long, default_value = "uniform", value_name = "KIND")]
    pub(crate) dist: Distribution,
    /// Seed of the key numbers and mixes that each connection draws.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Seconds of load before each workload that are not measured.
    #[arg(long, default_value_t = 0.0, value_parser = seconds)]
    pub(crate) warmup: f64,
    /// SET every key of the range once before the first workload.
    #[arg(long = "prefill")]
    pub(crate) is_prefilled: bool,
}

/// What to print and draw.
#[derive(Debug, Clone, Args)]
pub(crate) struct OutputArgs {
    /// One JSON object per line instead of the table.
    #[arg(long = "json", global = true)]
    pub(crate) is_json: bool,
    /// Comma-separated values with a header instead of the table.
    #[arg(long = "csv", conflicts_with = "is_json")]
    pub(crate) is_csv: bool,
    /// Draw a plot into this SVG file.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// What the plot shows.
    #[arg(long, value_enum, default_value_t = Plot::Percentiles)]
    pub(crate) plot: Plot,
}

/// What `--svg` draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Plot {
    /// Latency by percentile.
    Percentiles,
    /// Commands per second over time.
    Throughput,
}

/// Options of `towline bench conns`.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct ConnsArgs {
    /// Connections to open at once.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) count: u32,
}

/// Options of `towline bench memory`.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct MemoryArgs {
    /// Keys to write.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    pub(crate) keys: u64,
    /// Bytes per key; must have room for the digits of the largest key number.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) key_bytes: u32,
    /// Bytes per string value, or per member of a collection; 100 for strings and 8 for members unless given.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=512 << 20))]
    pub(crate) value_bytes: Option<u64>,
    /// What each key holds; the collections have ten members.
    #[arg(long = "type", value_enum, default_value_t = ValueType::String)]
    pub(crate) value_type: ValueType,
    /// Delete everything that the server holds first (FLUSHALL); without it the server must be empty. A fresh server gives
    /// truer figures: memory that a flush has freed but not returned is filled again without growing.
    #[arg(long = "flush")]
    pub(crate) is_flushed: bool,
}

/// What `towline bench memory` writes under each key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ValueType {
    /// One string.
    String,
    /// A hash of ten fields.
    Hash10,
    /// A set of ten members.
    Set10,
    /// A list of ten elements.
    List10,
    /// A sorted set of ten members.
    Zset10,
}

/// Parses a number of seconds; the bound (about 31 years) keeps it a valid `Duration` for any clock.
fn seconds(text: &str) -> Result<f64, String> {
    const SECONDS_MAX: f64 = 1e9;
    match text.parse::<f64>() {
        Ok(value) if (0.0..=SECONDS_MAX).contains(&value) => Ok(value),
        _ => Err("not a number of seconds".to_owned()),
    }
}

//! Compares what the client told of its commands with what the server did, under faults; see `e2e::ledger`.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use e2e::ledger::{self, Settings};
use e2e::process::ServerKind;

/// Sends commands through a network that breaks all the time, and audits the server afterwards.
#[derive(Debug, Parser)]
struct Options {
    /// towline, redis70, redis82 or valkey91.
    #[arg(long, default_value = "redis70")]
    server: String,
    /// For how long.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Of the faults and of the workload.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[expect(clippy::print_stdout, reason = "a tool that reports to a person")]
fn main() -> anyhow::Result<ExitCode> {
    let options = Options::parse();
    let settings = Settings {
        kind: ServerKind::from_name(&options.server)?,
        duration: Duration::from_secs(options.seconds),
        seed: options.seed,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let summary = runtime.block_on(ledger::run(settings))?;
    println!("{}", serde_json::to_string_pretty(&summary)?);
    Ok(if summary.inconsistencies == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

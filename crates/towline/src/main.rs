//! The `towline` binary: one entry point, one subcommand per job.
//!
//! This file owns the top of the command line and the exit code. It does not own what a subcommand does: each of
//! them is a module with its own options.

mod bench;
mod cli;
mod cluster;
mod drill;
mod faults;
mod log;
mod server_cmd;
mod tls;
mod transfer;
mod up;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

/// jemalloc, as in Redis: its counters are what `INFO memory` and `maxmemory` go by.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Exit code for a command line that cannot be understood.
const EXIT_USAGE: u8 = 2;

/// A Redis-compatible store and its tools.
#[derive(Debug, Parser)]
#[command(name = "towline", version, about, long_about = None, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    job: Job,
}

/// What the binary is asked to do.
#[derive(Debug, Subcommand)]
enum Job {
    /// Generate load against a Redis-compatible server and report latency, throughput and CPU time.
    Bench(Box<bench::BenchArgs>),
    /// Make, check and change clusters, of Towline, Redis or Valkey.
    Cluster(Box<cluster::ClusterArgs>),
    /// Practise what is rare, planned moves and kills, and account for every command.
    Drill(Box<drill::DrillArgs>),
    /// Put faults between a client and a server: cuts, stalls, resets, at exact places.
    Faults(Box<faults::FaultsArgs>),
    /// Run a server.
    Server(server_cmd::ServerArgs),
    /// Move bytes between the memories of two processes: serve, measure, copy.
    Transfer(Box<transfer::TransferArgs>),
    /// Run a cluster in this process, for development.
    Up(up::UpArgs),
    /// Send commands to a Redis-compatible server, one by one or interactively.
    Cli(Box<cli::CliArgs>),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return explain_usage(&error),
    };
    match cli.job {
        Job::Bench(arguments) => bench::run(*arguments),
        Job::Cluster(arguments) => cluster::run(*arguments),
        Job::Drill(arguments) => drill::run(*arguments),
        Job::Faults(arguments) => faults::run(*arguments),
        Job::Server(arguments) => server_cmd::run(&arguments),
        Job::Transfer(arguments) => transfer::run(&arguments),
        Job::Up(arguments) => up::run(&arguments),
        Job::Cli(arguments) => cli::run(*arguments),
    }
}

/// Prints help and version texts as they are, and everything else as one line with the way to the help.
fn explain_usage(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A reader that closed the pipe early has seen what it wanted.
            let _ = error.print();
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::from(EXIT_USAGE)
        }
        _ => {
            let text = error.render().to_string();
            bench::complain(&one_line(&text));
            ExitCode::from(EXIT_USAGE)
        }
    }
}

/// Folds clap's several lines into one: what is wrong, its tips, and where the help is.
fn one_line(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut folded = lines.next().unwrap_or("error: bad arguments").trim_start_matches("error: ").to_owned();
    for line in lines.take_while(|line| !line.starts_with("Usage:")) {
        if line.starts_with("For more information") {
            break;
        }
        if !folded.ends_with(':') {
            folded.push(';');
        }
        folded.push(' ');
        folded.push_str(line);
    }
    folded.push_str("; --help lists the options");
    folded
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_usage_error_is_one_line_with_its_tip() {
        let error = Cli::try_parse_from(["towline", "bench", "--sedd", "1"]).unwrap_err();
        let line = one_line(&error.render().to_string());
        assert!(!line.contains('\n'), "{line}");
        assert!(line.contains("--sedd") && line.contains("--seed") && line.contains("--help"), "{line}");
    }
}

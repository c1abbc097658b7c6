//! `towline bench`: a load generator that is cheap enough not to be what it measures.
//!
//! ```text
//! options -> load | storm | memory          what kind of run
//!              \-> fleet (threads) -> drive (one connection) -> workload + keys (bytes out)
//!                                        |-> schedule (open loop)      reply (bytes in)
//!                                        \-> tally -> report, plot;  cpu (readings of /proc)
//! ```
//!
//! Owns load, its measurement and its report. Does not own a client: it decodes no replies beyond their ends and errors.

mod connection;
mod cpu;
mod drive;
mod fleet;
mod keys;
mod load;
mod memory;
mod options;
mod plot;
mod reply;
mod report;
mod schedule;
mod storm;
mod tally;
mod workload;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;

pub(crate) use cpu::{own_ns as own_cpu_ns, process_ns as process_cpu_ns};
pub(crate) use fleet::{Timer, raise_file_limit};
pub(crate) use options::BenchArgs;
pub(crate) use schedule::{Lane, LaneWalk, Schedule};
pub(crate) use tally::ErrorTally;

use connection::{Target, info_number, request};
use options::{Mode, TargetArgs};

/// Exit code of a run that failed, or in which nothing succeeded.
const EXIT_FAILURE: u8 = 1;

/// Exit code for options that contradict each other or name unknown things.
const EXIT_USAGE: u8 = 2;

/// Runs the benchmark that `arguments` ask for; every failure is one line on standard error.
pub(crate) fn run(arguments: BenchArgs) -> ExitCode {
    let outcome = match &arguments.mode {
        Some(Mode::Conns(options)) => storm::execute(options, &arguments.target, arguments.output.is_json),
        Some(Mode::Memory(options)) => match memory::Plan::new(options) {
            Ok(plan) => plan.execute(&arguments.target, arguments.output.is_json),
            Err(error) => return fail(&error, EXIT_USAGE),
        },
        None => match load::Plan::new(&arguments) {
            Ok(plan) => plan.execute(&arguments.target),
            Err(error) => return fail(&error, EXIT_USAGE),
        },
    };
    match outcome {
        Ok(Verdict::Succeeded) => ExitCode::SUCCESS,
        Ok(Verdict::Failed) => ExitCode::from(EXIT_FAILURE),
        Err(error) => fail(&error, EXIT_FAILURE),
    }
}

/// Whether a run that came to its end did what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// At least part of each measurement succeeded.
    Succeeded,
    /// The report is complete, and says that nothing worked.
    Failed,
}

/// Writes one line about a problem to standard error.
pub(crate) fn complain(text: &str) {
    // Without a standard error there is nobody to tell; the exit code still says it.
    let _ = writeln!(std::io::stderr(), "towline: {text}");
}

fn fail(error: &anyhow::Error, code: u8) -> ExitCode {
    let text = format!("{error:#}");
    complain(&text.replace('\n', " "));
    ExitCode::from(code)
}

/// The server's process, as named by `options` or, on this machine, by the server itself. A PID whose `/proc` entries cannot
/// be read is none, except that one named by the caller is an error.
async fn find_server_pid(options: &TargetArgs, target: &Target) -> Result<Option<u32>> {
    if let Some(pid) = options.server_pid {
        anyhow::ensure!(cpu::process_ns(pid).is_some(), "--server-pid {pid}: no such process here");
        return Ok(Some(pid));
    }
    if !target.is_local() {
        return Ok(None);
    }
    let mut stream = target.connect().await?;
    // A server that does not know INFO, or a user who may not ask, costs only these figures.
    let Ok(reply) = target.within(request(&mut stream, &["INFO", "server"])).await else { return Ok(None) };
    let pid = info_number(&reply, "process_id").and_then(|pid| u32::try_from(pid).ok());
    Ok(pid.filter(|pid| cpu::process_ns(*pid).is_some()))
}

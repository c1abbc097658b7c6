//! `towline drill`: practise what is rare, and account for every command.
//!
//! ```text
//! options ─> handoff ─> stage (server, addresses, names)      audit (what the server holds, the order between keys)
//!               │──> load, lists, channels (Towline's client) ─> ledger, delivery (what became of each command)
//!               │──> peer (redis-py)                          ─> timeline (when)
//!               │──> director (script: what is announced, who has left)
//!               │──> steps (what the client says of it)
//!               └──> report, plot, progress
//! conformance ─> the statements of the wire contract, on any server or client
//! storm ─> fleets that connect all at once, in virtual time
//! crash ─> a server's process that is killed, and what it has kept
//! transfer ─> transfers between two processes, one of which is killed
//! reshard ─> a cluster whose slots move, and what becomes of its keys
//! ```
//!
//! Owns the drill and its account. Does not own the client or the server that are drilled: it sees of them what an
//! application and an operator see.

mod audit;
mod channels;
mod conformance;
mod crash;
mod delivery;
mod director;
mod handoff;
mod lateness;
mod ledger;
mod lists;
mod load;
mod options;
mod peer;
mod plot;
mod progress;
mod report;
mod reshard;
mod script;
mod stage;
mod steps;
mod storm;
mod timeline;
mod transfer;

use std::process::ExitCode;

pub(crate) use options::DrillArgs;

use options::DrillJob;

/// Exit code of a drill that was not passed, or could not be run.
const EXIT_FAILURE: u8 = 1;

/// Exit code for options that cannot be.
const EXIT_USAGE: u8 = 2;

/// Runs what `arguments` ask for; every failure to run is one line on standard error.
pub(crate) fn run(arguments: DrillArgs) -> ExitCode {
    match arguments.job {
        DrillJob::Handoff(args) => {
            let times = match args.check().and_then(|()| args.times()) {
                Ok(times) => times,
                Err(error) => return complain(&error, EXIT_USAGE),
            };
            match handoff::execute(&args, times) {
                Ok(true) => ExitCode::SUCCESS,
                Ok(false) => ExitCode::from(EXIT_FAILURE),
                Err(error) => complain(&format!("{error:#}"), EXIT_FAILURE),
            }
        }
        DrillJob::Storm(args) => match args.plan() {
            Err(error) => complain(&error, EXIT_USAGE),
            Ok(plan) => match storm::execute(&args, &plan) {
                Ok(true) => ExitCode::SUCCESS,
                Ok(false) => ExitCode::from(EXIT_FAILURE),
                Err(error) => complain(&format!("{error:#}"), EXIT_FAILURE),
            },
        },
        DrillJob::Conformance(args) => match args.check() {
            Err(error) => complain(&error, EXIT_USAGE),
            Ok(()) => match conformance::execute(&args) {
                Ok(code) => ExitCode::from(code),
                Err(error) => complain(&format!("{error:#}"), EXIT_FAILURE),
            },
        },
        DrillJob::Reshard(args) => match args.check() {
            Err(error) => complain(&error, EXIT_USAGE),
            Ok(()) => match reshard::execute(&args) {
                Ok(true) => ExitCode::SUCCESS,
                Ok(false) => ExitCode::from(EXIT_FAILURE),
                Err(error) => complain(&format!("{error:#}"), EXIT_FAILURE),
            },
        },
        DrillJob::Transfer(args) => match transfer::execute(&args) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::from(EXIT_FAILURE),
            Err(error) => complain(&format!("{error:#}"), EXIT_FAILURE),
        },
        DrillJob::Crash(args) => match args.check() {
            Err(error) => complain(&error, EXIT_USAGE),
            Ok(()) => match crash::execute(&args) {
                Ok(true) => ExitCode::SUCCESS,
                Ok(false) => ExitCode::from(EXIT_FAILURE),
                Err(error) => complain(&format!("{error:#}"), EXIT_FAILURE),
            },
        },
    }
}

fn complain(text: &str, code: u8) -> ExitCode {
    crate::bench::complain(&text.replace('\n', " "));
    ExitCode::from(code)
}

//! `towline transfer`: the transfer engine from the command line.
//!
//! ```text
//! options -> serve    an engine that offers memory
//!         -> bench    transfers to one, measured (child: one that is started for it)
//!         -> copy     a file into a region, or back
//! ```
//!
//! Owns the commands and their output. Does not own the engine: `towline-transfer` is it.

mod bench;
pub(crate) mod child;
mod copy;
mod options;
mod serve;

use std::process::ExitCode;

use anyhow::Result;

pub(crate) use options::TransferArgs;

use options::TransferJob;

/// Exit code of a command that failed.
const EXIT_FAILURE: u8 = 1;

/// Exit code for options that cannot be.
const EXIT_USAGE: u8 = 2;

/// Runs what `arguments` ask for; every failure is one line on standard error.
pub(crate) fn run(arguments: &TransferArgs) -> ExitCode {
    let engine = match &arguments.job {
        TransferJob::Serve(args) => &args.engine,
        TransferJob::Bench(args) => &args.engine,
        TransferJob::Copy(args) => &args.engine,
    };
    let config = match engine.config() {
        Ok(config) => config,
        Err(error) => return fail(&error, EXIT_USAGE),
    };
    let done: Result<bool> = match &arguments.job {
        TransferJob::Serve(args) => serve::execute(args, config).map(|()| true),
        TransferJob::Bench(args) => bench::execute(args, &config),
        TransferJob::Copy(args) => copy::execute(args, config).map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(EXIT_FAILURE),
        Err(error) => fail(&format!("{error:#}"), EXIT_FAILURE),
    }
}

fn fail(text: &str, code: u8) -> ExitCode {
    crate::bench::complain(&text.replace('\n', " "));
    ExitCode::from(code)
}

//! `towline faults`: real sockets with faults on purpose.
//!
//! ```text
//! proxy (accepts, dials) ──> connection (one client, one server, one Link) ──> stream (one socket and its writes)
//!        │ shared: plan of rules, registry, counters                    └──> report (JSON lines)
//! control (HTTP), script (a timeline) ──┘
//!
//! serve (databases that move on request) ── see its own picture
//! ```
//!
//! Owns sockets, the clock and the report. Does **not** decide which fault happens when: that is `towline_faults`, the same
//! code that the simulator runs.

mod connection;
mod control;
mod options;
mod proxy;
mod report;
mod script;
mod serve;
mod shared;
mod stream;

use std::process::ExitCode;

pub(crate) use options::FaultsArgs;

use options::FaultsJob;

/// Exit code when the job cannot run, for example because its port is taken.
const EXIT_FAILURE: u8 = 1;

/// Exit code for options that cannot be.
const EXIT_USAGE: u8 = 2;

/// Runs what `arguments` ask for; every failure is one line on standard error.
pub(crate) fn run(arguments: FaultsArgs) -> ExitCode {
    let result = match arguments.job {
        FaultsJob::Proxy(options) => match options.check().and_then(|()| proxy::script(&options)) {
            Ok(script) => proxy::run(options, script),
            Err(error) => return refuse(&error),
        },
        FaultsJob::Serve(options) => match options.check() {
            Ok(()) => serve::run(*options),
            Err(error) => return refuse(&error),
        },
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            crate::bench::complain(&format!("{error:#}"));
            ExitCode::from(EXIT_FAILURE)
        }
    }
}

/// The options cannot be.
fn refuse(error: &str) -> ExitCode {
    crate::bench::complain(error);
    ExitCode::from(EXIT_USAGE)
}

//! `towline faults`: real sockets with faults on purpose.
//!
//! ```text
//! proxy (accepts, dials) ──> connection (one client, one server, one Link) ──> stream (one socket and its writes)
//!        │ shared: plan of rules, registry, counters                    └──> report (JSON lines)
//! control (HTTP), script (a timeline) ──┘
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
mod shared;
mod stream;

use std::process::ExitCode;

pub(crate) use options::FaultsArgs;

use options::FaultsJob;

/// Exit code when the proxy cannot run, for example because its port is taken.
const EXIT_FAILURE: u8 = 1;

/// Exit code for options that cannot be.
const EXIT_USAGE: u8 = 2;

/// Runs what `arguments` ask for; every failure is one line on standard error.
pub(crate) fn run(arguments: FaultsArgs) -> ExitCode {
    let FaultsJob::Proxy(options) = arguments.job;
    if let Err(error) = options.check() {
        crate::bench::complain(&error);
        return ExitCode::from(EXIT_USAGE);
    }
    let script = match proxy::script(&options) {
        Ok(script) => script,
        Err(error) => {
            crate::bench::complain(&error);
            return ExitCode::from(EXIT_USAGE);
        }
    };
    match proxy::run(options, script) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            crate::bench::complain(&format!("{error:#}"));
            ExitCode::from(EXIT_FAILURE)
        }
    }
}

//! `towline drill crash`: kills a server at any moment, starts it again, and compares what it has with what it promised.
//!
//! ```text
//! options ─> run ─> process (start, kill)
//!             │──> client (connection) ─> mix (which commands: op) ─> ledger (what was answered)
//!             │──> reading (what is there)                            │──> state (what commands do: value)
//!             └──> ledger, common (the verdicts) ─> report            │
//! ```
//!
//! Owns the command and its exit code. Does not own the server: it is a process, ours or any that takes the flags of
//! redis-server.
//!
//! A kill takes away what the process holds, not what the operating system holds for it. So this finds what was answered before
//! it was written; whether it was also forced to the disk before is for tests with a file layer that forgets.

mod client;
mod common;
mod ledger;
mod mix;
mod op;
mod options;
mod process;
mod reading;
mod report;
mod run;
mod state;
mod value;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

pub(super) use options::CrashArgs;

use process::Launch;
use report::Report;
use run::Drill;

/// Runs the drill and prints its report. Returns whether it was passed.
///
/// # Errors
/// The server cannot be started at all, the directory cannot be used, or the report cannot be written.
pub(super) fn execute(args: &CrashArgs) -> Result<bool> {
    let is_interrupted = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&is_interrupted)).context("cannot watch signals")?;
    }
    let directory = directory(args)?;
    let launch = Launch {
        program: args.program()?,
        flags: args.flags(),
        data: directory.join("data"),
        log: directory.join("server.log"),
        is_interrupted,
    };
    std::fs::create_dir_all(&launch.data)
        .with_context(|| format!("cannot create {}", launch.data.display()))?;
    let begun = Instant::now();
    let mut drill = Drill::new(args, launch, directory.join("before-start"));
    let ended = drill.all();
    let mut report: Report = drill.report;
    if let Err(error) = ended {
        if report.runs == 0 && report.violations_all() == 0 {
            // Nothing to see in its files, but for the log, the end of which the error has.
            if args.dir.is_none() {
                let _ = std::fs::remove_dir_all(&directory);
            }
            return Err(error);
        }
        report.ended = Some(format!("{error:#}"));
    }
    report.finish(begun.elapsed().as_secs_f64());
    if report.is_passed() && args.dir.is_none() {
        std::fs::remove_dir_all(&directory)
            .with_context(|| format!("cannot remove {}", directory.display()))?;
    } else {
        report.files = Some(directory.display().to_string());
    }
    let mut out = std::io::stdout().lock();
    let written = if args.is_json { report.json(&mut out) } else { report.table(&mut out) };
    written.context("cannot write the report")?;
    Ok(report.is_passed())
}

/// The directory of the drill: a new one, or an empty one that was named.
fn directory(args: &CrashArgs) -> Result<PathBuf> {
    let Some(named) = &args.dir else {
        let name = format!("towline-crash-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
        return Ok(directory);
    };
    std::fs::create_dir_all(named).with_context(|| format!("cannot create {}", named.display()))?;
    if !is_empty(named)? {
        bail!("--dir {} is not empty", named.display());
    }
    // The server has another working directory, perhaps.
    named.canonicalize().with_context(|| format!("cannot find {}", named.display()))
}

fn is_empty(directory: &Path) -> Result<bool> {
    let mut entries =
        std::fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    Ok(entries.next().is_none())
}

//! The command line of `towline drill crash`.
//!
//! Owns flag names, defaults and their bounds, and the flags that the server is started with.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};

use super::ledger::Promise;

/// What `everysec` may lose.
const EVERYSEC: Duration = Duration::from_secs(1);

/// Options of `towline drill crash`.
#[derive(Debug, Clone, Args)]
pub(in crate::drill) struct CrashArgs {
    /// The server to kill; this program's own unless given. Flags as those of redis-server are put behind.
    #[arg(long, value_name = "COMMAND")]
    server: Option<String>,
    /// How often it is killed.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(super) runs: u64,
    /// Concurrent clients, each with a connection and keys of its own.
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=256))]
    pub(super) clients: u64,
    /// Commands that a client sends at once, at most.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub(super) pipeline: u64,
    /// What commands and moments follow from; how far a run comes is the machine's.
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// What the server promises, which is what is checked.
    #[arg(long, value_enum, default_value_t = Fsync::Always, value_name = "WHEN")]
    pub(super) appendfsync: Fsync,
    /// The server's data workers; as the server finds right unless given. Not for redis-server.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,
    /// Longest time under load before the kill, milliseconds.
    #[arg(long, default_value_t = 400, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub(super) load_ms: u64,
    /// Where the server keeps its files; must be empty or not exist. A new directory for temporary files unless given, which
    /// is removed if the drill was passed.
    #[arg(long, value_name = "PATH")]
    pub(super) dir: Option<PathBuf>,
    /// Cut up to so many bytes off the newest file of the log before each start, as if the last write had been torn; what is
    /// checked is then that what is left is no mixture.
    #[arg(long, default_value_t = 0, value_name = "BYTES")]
    pub(super) tear: u64,
    /// No log: the server saves snapshots when it is asked to. What is there is to be the last one, which is no mixture.
    #[arg(long = "snapshots", conflicts_with_all = ["appendfsync", "tear"])]
    pub(super) is_snapshots: bool,
    /// Copy the server's files before each start, and end at the first violation: the copy shows what the server started on.
    #[arg(long = "keep")]
    pub(super) is_kept: bool,
    /// One JSON object instead of the table.
    #[arg(long = "json")]
    pub(super) is_json: bool,
    /// Further flags for the server, which win over those of the drill.
    #[arg(last = true, value_name = "FLAGS")]
    flags: Vec<String>,
}

/// What the server promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Fsync {
    /// What was answered is there.
    Always,
    /// But for the last second.
    Everysec,
    /// Whatever is there is no mixture.
    No,
}

impl Fsync {
    /// As the server's parameter has it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Everysec => "everysec",
            Self::No => "no",
        }
    }
}

impl CrashArgs {
    /// What must be kept.
    pub(super) fn promise(&self) -> Promise {
        match self.appendfsync {
            _ if self.tear > 0 || self.is_snapshots => Promise::Some,
            Fsync::Always => Promise::All,
            Fsync::Everysec => Promise::Older(EVERYSEC),
            Fsync::No => Promise::Some,
        }
    }

    /// What is checked, in a few words.
    pub(super) fn keeping(&self) -> String {
        if self.is_snapshots {
            "snapshots".to_owned()
        } else {
            format!("appendfsync {}", self.appendfsync.name())
        }
    }

    /// The program and the arguments that stand before the flags.
    ///
    /// # Errors
    /// This program's own path cannot be had.
    pub(super) fn program(&self) -> Result<Vec<String>> {
        if let Some(command) = &self.server {
            return Ok(command.split_whitespace().map(str::to_owned).collect());
        }
        let own = std::env::current_exe().context("where this program is")?;
        Ok(vec![own.to_string_lossy().into_owned(), "server".to_owned()])
    }

    /// The server's flags, but for port and directory.
    pub(super) fn flags(&self) -> Vec<String> {
        let mut flags: Vec<String> = [
            ("--appendonly", if self.is_snapshots { "no" } else { "yes" }),
            ("--appendfsync", self.appendfsync.name()),
            ("--save", ""),
            // Small, so that the log is rewritten of itself now and then.
            ("--auto-aof-rewrite-min-size", "4mb"),
            ("--auto-aof-rewrite-percentage", "100"),
        ]
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value.to_owned()])
        .collect();
        if let Some(workers) = self.workers {
            flags.extend(["--workers".to_owned(), workers.to_string()]);
        }
        flags.extend(self.flags.iter().cloned());
        flags
    }

    /// What no single option can tell by itself.
    ///
    /// # Errors
    /// One line on what is wrong; the caller's mistake.
    pub(in crate::drill) fn check(&self) -> Result<(), String> {
        if self.server.as_ref().is_some_and(|command| command.trim().is_empty()) {
            return Err("--server names no program".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        crash: CrashArgs,
    }

    fn parse(line: &str) -> Result<CrashArgs, String> {
        let line = Line::try_parse_from(line.split_whitespace()).map_err(|error| error.to_string())?;
        line.crash.check()?;
        Ok(line.crash)
    }

    #[test]
    fn flags_of_the_caller_come_last() {
        let args = parse("crash --appendfsync everysec --workers 3 -- --appendonly no").unwrap();
        let flags = args.flags();
        assert_eq!(flags[..4], ["--appendonly", "yes", "--appendfsync", "everysec"]);
        assert_eq!(flags[flags.len() - 4..], ["--workers", "3", "--appendonly", "no"]);
        assert_eq!(args.promise(), Promise::Older(Duration::from_secs(1)));
        let args = parse("crash --snapshots").unwrap();
        assert_eq!((args.promise(), &args.flags()[1]), (Promise::Some, &"no".to_owned()));
        assert!(parse("crash --snapshots --tear 9").is_err());
        assert_eq!(parse("crash --tear 9").unwrap().promise(), Promise::Some);
    }

    #[test]
    fn the_server_is_our_own_or_any_command() {
        let own = parse("crash").unwrap().program().unwrap();
        assert_eq!(own.last().map(String::as_str), Some("server"));
        let line = ["crash", "--server", "nice redis-server x.conf"];
        let args = Line::try_parse_from(line).unwrap().crash;
        assert_eq!(args.program().unwrap(), ["nice", "redis-server", "x.conf"]);
        assert!(Line::try_parse_from(["crash", "--server", " "]).unwrap().crash.check().is_err());
        assert!(parse("crash --runs 0").is_err());
    }
}

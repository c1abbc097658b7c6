//! The command line of `towline drill reshard`.
//!
//! Owns flag names, defaults and their bounds.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};

/// Options of `towline drill reshard`.
#[derive(Debug, Clone, Args)]
pub(in crate::drill) struct ReshardArgs {
    /// Kill nodes and the tool at random moments (SIGKILL), with appendfsync always; commands on the way at a kill may be unknown, and
    /// still nothing acknowledged may be lost.
    #[arg(long)]
    pub(super) chaos: bool,
    /// Seconds under load.
    #[arg(long, default_value_t = 20.0, value_name = "SECONDS")]
    pub(super) seconds: f64,
    /// What keys and moments follow from; how far a run comes is the machine's.
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Nodes.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(2..=16))]
    pub(super) nodes: u16,
    /// How slots move: key by key, by the servers, or both in turn. The default is all that the servers know.
    #[arg(long, value_enum, default_value_t = PathName::All)]
    pub(super) path: PathName,
    /// Slots of each move.
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u16).range(1..=5000))]
    pub(super) slots: u16,
    /// Keys of 100 bytes that are there besides the ones that are worked on.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    pub(super) keys: u32,
    /// Fields of the big hash.
    #[arg(long, default_value_t = 20_000, value_name = "FIELDS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) big_hash: u32,
    /// Bytes of the big string.
    #[arg(long, default_value_t = 4 << 20, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=256 << 20))]
    pub(super) big_string: u32,
    /// Concurrent callers of each kind of command.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(super) workers: u16,
    /// Another server that takes the flags of redis-server; this program's own unless given.
    #[arg(long, value_name = "COMMAND")]
    server: Option<String>,
    /// Where the nodes keep their files; must be empty or not exist. A temporary directory unless given, removed if the drill was
    /// passed.
    #[arg(long, value_name = "PATH")]
    pub(super) dir: Option<PathBuf>,
    /// One JSON object instead of the table.
    #[arg(long = "json")]
    pub(super) is_json: bool,
}

/// How slots move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum PathName {
    /// By SETSLOT and MIGRATE.
    Classic,
    /// By CLUSTER MIGRATESLOTS.
    Atomic,
    /// In turn, as far as the servers know them.
    All,
}

impl ReshardArgs {
    /// Checks what no flag can tell by itself.
    ///
    /// # Errors
    /// A text for the user.
    pub(in crate::drill) fn check(&self) -> Result<(), String> {
        if self.seconds.is_finite() && (1.0..=86_400.0).contains(&self.seconds) {
            Ok(())
        } else {
            Err("--seconds is a number from 1 to 86400".to_owned())
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
}

//! `towline drill conformance`: the statements of `docs/maintenance-notifications.md`, checked on a server or a client.
//!
//! ```text
//! statements (numbers, names) ─> server ─> wire, moving, inject     a server at --target
//!                            └─> client ─> scripted                 a client that connects to --client-listen
//!                                             └──> verdict (lines, JSON, sums)
//! ```
//!
//! Owns the command and its exit code. Does not own the contract: that is the document.

mod client;
mod inject;
mod moving;
mod scripted;
mod server;
mod statements;
mod verdict;
mod wire;

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Args;

use inject::Inject;
use server::Support;
use statements::{STATEMENTS, Side};
use verdict::Verdicts;

/// Exit code for a server that has no notifications at all.
const EXIT_NOT_SUPPORTED: u8 = 3;

/// Options of `towline drill conformance`.
#[derive(Debug, Args)]
pub(super) struct ConformanceArgs {
    /// The server to check; its connections on this address are drained.
    #[arg(long, value_name = "HOST:PORT", required_unless_present = "client_listen")]
    target: Option<String>,
    /// Check a client instead: listen here, and judge who connects.
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with_all = ["target", "inject", "database"])]
    client_listen: Option<SocketAddr>,
    /// A fault injector that can cause events at the target, such as `towline faults serve`.
    #[arg(long, value_name = "URL")]
    inject: Option<String>,
    /// The injector's number of the database behind the target.
    #[arg(long, value_name = "N", default_value_t = 1)]
    database: u64,
    /// Only the check with this name or number, such as replay or MN-27.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// How long to wait for the client to connect.
    #[arg(long, value_name = "SECS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    wait: u64,
    /// One JSON object for each statement.
    #[arg(long = "json")]
    is_json: bool,
}

impl ConformanceArgs {
    /// What no single option can tell by itself.
    ///
    /// # Errors
    /// One line on what is wrong; the caller's mistake.
    pub(super) fn check(&self) -> Result<(), String> {
        let side = if self.client_listen.is_some() { Side::Client } else { Side::Server };
        let Some(only) = &self.only else { return Ok(()) };
        let is_known = STATEMENTS
            .iter()
            .any(|statement| statement.side == side && (statement.name == only || statement.id() == *only));
        match is_known {
            true => Ok(()),
            false => Err(format!(
                "there is no check {only} on this side; docs/maintenance-notifications.md has all"
            )),
        }
    }
}

/// Runs the checks and prints their outcomes; the exit code, if they came to an end.
///
/// # Errors
/// The peer or the fault injector cannot be reached, the injector does not have the database, or the report cannot be written.
pub(super) fn execute(args: &ConformanceArgs) -> Result<u8> {
    let mut verdicts = Verdicts::default();
    let side = match (&args.client_listen, &args.target) {
        (Some(listen), _) => {
            client::check(*listen, Duration::from_secs(args.wait), &mut verdicts)?;
            Side::Client
        }
        (None, Some(target)) => {
            let mut addresses =
                target.to_socket_addrs().with_context(|| format!("--target {target}: no such address"))?;
            let address = addresses.next().with_context(|| format!("--target {target} has no address"))?;
            let inject = Inject::new(address, args.inject.as_deref(), args.database)?;
            inject.verify()?;
            let checked = server::check(address, &inject, &mut verdicts);
            // Whatever came of the checks; if they failed, that is the error to tell.
            let ended = inject.end();
            let support = checked?;
            ended.context("cannot cancel the drains of this run")?;
            if let Support::None(error) = support {
                return not_supported(target, &error, args.is_json);
            }
            Side::Server
        }
        (None, None) => bail!("neither --target nor --client-listen is given"),
    };
    let mut out = std::io::stdout().lock();
    let sums = verdict::write(&mut out, verdicts.of(side, args.only.as_deref()), args.is_json)
        .context("cannot write the report")?;
    Ok(u8::from(sums.failed > 0))
}

#[expect(clippy::print_stdout, reason = "this is the whole report")]
fn not_supported(target: &str, error: &str, is_json: bool) -> Result<u8> {
    if is_json {
        println!("{}", serde_json::json!({ "target": target, "outcome": "not supported", "why": error }));
    } else {
        println!("not supported: {target} has no maintenance notifications; it answered: {error}");
    }
    Ok(EXIT_NOT_SUPPORTED)
}

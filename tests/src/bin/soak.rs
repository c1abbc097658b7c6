//! Loads a server with random commands for some seconds and looks at what is left; see `e2e::soak`.

use clap::Parser;
use e2e::process::Server;
use e2e::soak;
use std::time::Duration;

/// Sends random commands on many connections, then looks for leaks.
#[derive(Debug, Parser)]
struct Options {
    /// How long the load lasts.
    #[arg(default_value_t = 60)]
    seconds: u64,
    /// The first program's seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[expect(clippy::print_stdout, reason = "a tool that reports to a person")]
fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let mut server = Server::under_test(&[])?;
    let report = soak::run(&mut server, Duration::from_secs(options.seconds), options.seed)?;
    println!(
        "{} commands in {} programs; bytes in use {} before, {} after; descriptors {} before, {} after",
        report.commands,
        report.programs,
        report.used_bytes[0],
        report.used_bytes[1],
        report.files[0],
        report.files[1]
    );
    Ok(())
}

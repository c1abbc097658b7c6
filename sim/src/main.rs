//! Runs seeded histories from the command line.
#![allow(clippy::print_stdout, reason = "a command-line tool")]

use std::process::ExitCode;

use clap::Parser;
use sim::{Detail, LENGTH_MAX, Mutation, Scenario, Settings, hunt, run};

/// Runs seeded histories of the client against a model server, and checks every promise.
#[derive(Debug, Parser)]
#[command(name = "sim")]
struct Args {
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many histories, with one seed after the other.
    #[arg(long, default_value_t = 1)]
    histories: u64,
    /// Commands of a history at most.
    #[arg(long, default_value_t = LENGTH_MAX)]
    length: u64,
    /// Switches this guard of the client off: the run should fail.
    #[arg(long, value_parser = parse_mutation)]
    mutate: Option<Mutation>,
    /// What the histories are about, whatever their seeds say: ordinary, calm-moves or wild-moves.
    #[arg(long, value_parser = parse_scenario)]
    scenario: Option<Scenario>,
    /// Prints the whole trace of the first history.
    #[arg(long)]
    trace: bool,
}

fn parse_mutation(name: &str) -> Result<Mutation, String> {
    Mutation::named(name).ok_or_else(|| {
        let names: Vec<&str> = Mutation::ALL.iter().map(|mutation| mutation.name()).collect();
        format!("the guards are {}", names.join(", "))
    })
}

fn parse_scenario(name: &str) -> Result<Scenario, String> {
    Scenario::named(name).ok_or_else(|| "the scenarios are ordinary, calm-moves, wild-moves".to_owned())
}

fn main() -> ExitCode {
    let args = Args::parse();
    let settings =
        Settings { seed: args.seed, length: args.length, mutation: args.mutate, scenario: args.scenario };
    if args.trace {
        let report = run(&settings, Detail::All);
        report.lines.iter().for_each(|line| println!("{line}"));
        println!("hash {:016x}", report.hash);
        return match report.violation {
            None => ExitCode::SUCCESS,
            Some(_) => ExitCode::FAILURE,
        };
    }
    match hunt(&settings, args.histories) {
        Ok(tally) => {
            println!("{} histories are fine: {tally:?}", args.histories);
            ExitCode::SUCCESS
        }
        Err(failure) => {
            println!("{failure}");
            ExitCode::FAILURE
        }
    }
}

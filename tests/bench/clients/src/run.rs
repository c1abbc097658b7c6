//! The command line, the order of a run, and the child that takes one measurement.

use crate::allocations::Counters;
use crate::case::{Case, ClientName, Line, Measured, Operation, Request, Runtime};
use crate::clients::{BenchClient, Fred, Harness, Manager, Multiplexed, Rustis, Towline};
use crate::server::{Server, fill, free_port, ready};
use crate::{closed, cluster, large, open, queued, report};
use anyhow::{Context, bail};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const LARGE_VALUES: [(usize, usize); 2] = [(1 << 20, 300), (64 << 20, 6)];
const QUEUED_COMMANDS: usize = 100_000;
/// Task counts whose allocations are counted: alone, and among others.
const COUNTED_TASKS: [usize; 2] = [1, 64];

#[derive(Parser)]
#[command(about = "Towline's client beside redis-rs, fred and rustis")]
struct Arguments {
    #[command(subcommand)]
    command: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Measures: rounds over all cases, all clients in each, one process for each measurement
    Bench(Bench),
    /// Measures what a cluster costs Towline's client: one server, and clusters of several sizes, in turn
    Cluster(cluster::Bench),
    /// Takes one measurement of a cluster in this process (what `cluster` starts); prints one line of JSON
    ClusterOnce(cluster::Once),
    /// Takes one measurement in this process (what `bench` starts); prints one line of JSON
    Run {
        /// The request, as JSON
        request: String,
    },
    /// Prints the tables of result files
    Report {
        /// Files written by `bench`
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    Closed,
    Allocations,
    Large,
    Open,
    Queued,
}

#[derive(Args)]
struct Bench {
    /// Result file, one line of JSON for each measurement
    #[arg(long, default_value = "clients.jsonl")]
    output: PathBuf,
    /// The server's program: anything that takes Redis's options
    #[arg(long, env = "VALKEY91")]
    server: PathBuf,
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Length of each closed or open measurement
    #[arg(long, default_value_t = 0.6)]
    seconds: f64,
    #[arg(long, value_delimiter = ',', default_value = "closed,allocations,large,open,queued")]
    only: Vec<Part>,
    /// All of them unless said
    #[arg(long, value_delimiter = ',')]
    clients: Vec<ClientName>,
    #[arg(long, value_delimiter = ',', default_value = "ct,mt2")]
    runtimes: Vec<Runtime>,
    #[arg(long, value_delimiter = ',', default_value = "get,set")]
    operations: Vec<Operation>,
    #[arg(long, value_delimiter = ',', default_value = "1,16,64,256")]
    tasks: Vec<usize>,
    /// Commands a second of the open loop: a light load, and about half of what the slowest client reaches
    #[arg(long, value_delimiter = ',', default_value = "20000,60000")]
    rates: Vec<u32>,
}

/// A case, and whether allocations are counted instead of time.
struct Step {
    runtime: Runtime,
    is_counting: bool,
    case: Case,
}

/// The whole program.
///
/// # Errors
/// The command line, the server, a result file or, for `run`, the measurement itself.
pub fn main(counters: Option<Counters>) -> anyhow::Result<()> {
    match Arguments::parse().command {
        Chore::Bench(options) => bench(&options),
        Chore::Cluster(options) => cluster::bench(&options),
        Chore::ClusterOnce(options) => cluster::once(&options),
        Chore::Run { request } => {
            let request =
                serde_json::from_str(&request).context("the request is not one of this program's")?;
            println!("{}", serde_json::to_string(&take(request, counters)?)?);
            Ok(())
        }
        Chore::Report { files } => {
            print!("{}", report::tables(&read(&files)?));
            Ok(())
        }
    }
}

fn read(files: &[PathBuf]) -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    for file in files {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        for line in text.lines() {
            lines.push(serde_json::from_str(line).with_context(|| format!("in {}", file.display()))?);
        }
    }
    Ok(lines)
}

/// Takes one measurement in this process.
fn take(request: Request, counters: Option<Counters>) -> anyhow::Result<Measured> {
    let runtime = request.runtime.build()?;
    match request.client {
        ClientName::RedisRs => runtime.block_on(measure::<Multiplexed>(request, counters)),
        ClientName::RedisRsManager => runtime.block_on(measure::<Manager>(request, counters)),
        ClientName::Fred => runtime.block_on(measure::<Fred>(request, counters)),
        ClientName::Rustis => runtime.block_on(measure::<Rustis>(request, counters)),
        ClientName::Towline => runtime.block_on(measure::<Towline>(request, counters)),
        ClientName::Harness => runtime.block_on(measure::<Harness>(request, counters)),
    }
}

async fn measure<C: BenchClient>(request: Request, counters: Option<Counters>) -> anyhow::Result<Measured> {
    let Request { port, server_pid, .. } = request;
    match request.case {
        Case::Closed { operation, tasks, seconds } => {
            let workload = closed::Workload { operation, tasks, seconds, port, server_pid };
            closed::run::<C>(workload, counters).await
        }
        Case::Large { value_bytes, replies } => large::run::<C>(port, value_bytes, replies, counters).await,
        Case::Open { commands_per_second, seconds } => {
            open::run::<C>(port, commands_per_second, seconds).await
        }
        Case::Queued { commands, server } => queued::run::<C>(&server, commands, counters).await,
    }
}

fn bench(options: &Bench) -> anyhow::Result<()> {
    let port = free_port()?;
    let server = Server::start(&options.server, port)?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(ready(port))?;
    fill(port, &LARGE_VALUES.map(|(value_bytes, _)| value_bytes))?;
    let mut output = File::create(&options.output)
        .with_context(|| format!("cannot write {}", options.output.display()))?;
    let clients = match options.clients.as_slice() {
        [] => ClientName::value_variants(),
        some => some,
    };
    let timing = std::env::current_exe()?;
    let counting = timing.with_file_name("clients-counting");
    for round in 0..options.rounds {
        for (number, step) in steps(options).into_iter().enumerate() {
            // Counts do not vary: once is enough.
            if step.is_counting && round > 0 {
                continue;
            }
            let program = if step.is_counting { &counting } else { &timing };
            for turn in 0..clients.len() {
                let client = clients[(turn + round + number) % clients.len()];
                if client == ClientName::Harness && !matches!(step.case, Case::Closed { .. }) {
                    continue;
                }
                let request = Request {
                    client,
                    runtime: step.runtime,
                    port,
                    server_pid: Some(server.pid()),
                    case: step.case.clone(),
                };
                match child(program, &request) {
                    Ok(measured) => {
                        let line = Line { round, client, runtime: step.runtime, measured };
                        writeln!(output, "{}", serde_json::to_string(&line)?)?;
                    }
                    // One client's failure is a finding, not the end of the run.
                    Err(error) => eprintln!("{} {:?}: {error:#}", client.title(), step.case),
                }
            }
        }
        eprintln!("round {} of {} done", round + 1, options.rounds);
    }
    print!("{}", report::tables(&read(std::slice::from_ref(&options.output))?));
    Ok(())
}

/// The cases of one round.
fn steps(options: &Bench) -> Vec<Step> {
    let mut steps = Vec::new();
    let seconds = options.seconds;
    let has = |part| options.only.contains(&part);
    for &runtime in &options.runtimes {
        let mut step = |is_counting, case| steps.push(Step { runtime, is_counting, case });
        for &operation in &options.operations {
            for &tasks in options.tasks.iter().filter(|_| has(Part::Closed)) {
                step(false, Case::Closed { operation, tasks, seconds });
            }
            for tasks in COUNTED_TASKS.into_iter().filter(|_| has(Part::Allocations)) {
                step(true, Case::Closed { operation, tasks, seconds });
            }
        }
        for (value_bytes, replies) in LARGE_VALUES.into_iter().filter(|_| has(Part::Large)) {
            step(false, Case::Large { value_bytes, replies });
            step(true, Case::Large { value_bytes, replies });
        }
        for &commands_per_second in options.rates.iter().filter(|_| has(Part::Open)) {
            step(false, Case::Open { commands_per_second, seconds });
        }
        if has(Part::Queued) {
            let case = || Case::Queued { commands: QUEUED_COMMANDS, server: options.server.clone() };
            step(false, case());
            step(true, case());
        }
    }
    steps
}

/// Has one measurement taken by a process of its own.
fn child(program: &Path, request: &Request) -> anyhow::Result<Measured> {
    let output = Command::new(program).arg("run").arg(serde_json::to_string(request)?).output()?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim_end());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

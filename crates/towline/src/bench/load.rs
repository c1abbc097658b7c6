//! Runs workloads one after the other and reports each.
//!
//! Owns the order of things: prefill, warm-up, measured phase, readings around it. Does not own how load is made.

use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};

use super::connection::{Target, request};
use super::drive::{Pacing, Phase};
use super::fleet::{Fleet, runtime};
use super::keys::{Distribution, KeyPicker};
use super::options::{BenchArgs, LoadArgs, OutputArgs, Plot, TargetArgs};
use super::plot::{self, Line};
use super::report::{CpuSpent, Form, Reporter, Row, Setting};
use super::schedule::Schedule;
use super::tally::Tally;
use super::workload::Workload;
use super::{Verdict, cpu, find_server_pid};

/// Commands per workload when neither a number nor a time is asked for; as in redis-benchmark.
const REQUESTS_DEFAULT: u64 = 100_000;

/// Most memory that commands on their way out may take together, should the server take none of them.
const OUTGOING_BYTES_MAX: u64 = 4 << 30;

/// Commands in flight per connection while filling, and the bytes that bound them.
const FILL_PIPELINE_MAX: usize = 128;
const FILL_BATCH_BYTES: usize = 1 << 20;

/// Everything that a run needs, checked.
#[derive(Debug)]
pub(crate) struct Plan {
    load: LoadArgs,
    output: OutputArgs,
    workloads: Vec<Arc<Workload>>,
    keys: Arc<KeyPicker>,
    data: Vec<u8>,
}

impl Plan {
    /// Checks `arguments` and builds the workloads.
    ///
    /// # Errors
    /// When a workload is unknown, or the sizes together are out of bounds.
    pub(crate) fn new(arguments: &BenchArgs) -> Result<Self> {
        let load = arguments.load.clone();
        let data = data(load.data_bytes);
        let workloads = if arguments.command.is_empty() {
            let named = load.workloads.iter().map(|name| Workload::named(name.trim(), &data, load.ratio));
            named.map(|workload| workload.map(Arc::new)).collect::<Result<Vec<_>>>()?
        } else {
            let line: Vec<&[u8]> = arguments.command.iter().map(|argument| argument.as_bytes()).collect();
            vec![Arc::new(Workload::custom(&line, &data))]
        };
        for workload in &workloads {
            let bytes = workload.bytes_max() as u64 * u64::from(load.pipeline) * u64::from(load.connections);
            ensure!(
                bytes <= OUTGOING_BYTES_MAX,
                "{} connections x {} commands x {} bytes are more than 4 GiB on their way; lower -c, -P or -d",
                load.connections,
                load.pipeline,
                workload.bytes_max()
            );
        }
        let keys = Arc::new(KeyPicker::new(load.dist, load.key_range));
        Ok(Self { load, output: arguments.output.clone(), workloads, keys, data })
    }

    /// Connects and runs every workload.
    ///
    /// # Errors
    /// When the server cannot be reached or stops answering, or the report cannot be written.
    pub(crate) fn execute(self, options: &TargetArgs) -> Result<Verdict> {
        let (target, server_pid) = prepare(options)?;
        let connections = self.load.connections as usize;
        let mut fleet = Fleet::connect(&target, connections, self.load.threads as usize, self.load.seed)?;
        if self.load.is_prefilled {
            let workload = Arc::new(Workload::named("set", &self.data, self.load.ratio)?);
            fill(&mut fleet, &workload, self.load.key_range)?;
        }
        let form = match &self.output {
            output if output.is_json => Form::Json,
            output if output.is_csv => Form::Csv,
            _ => Form::Table,
        };
        let mut reporter = Reporter::new(std::io::stdout().lock(), form);
        let mut verdict = Verdict::Succeeded;
        let mut lines = Vec::new();
        for workload in &self.workloads {
            if self.load.warmup > 0.0 {
                let warm = self.phase(workload, Some(self.load.warmup));
                fleet.run(&warm, |_, _| ())?;
            }
            let measured = self.measure(&mut fleet, workload, server_pid)?;
            let setting = self.setting(options);
            let row = Row::new(workload.name(), &measured.tally, measured.cpu, server_pid, setting);
            reporter.row(&row).context("cannot write the report")?;
            if row.has_failed() {
                verdict = Verdict::Failed;
            }
            ensure!(
                fleet.connections() > 0,
                "the server closed every connection; {} has no full result",
                workload.name()
            );
            lines.push(match self.output.plot {
                Plot::Percentiles => Line::percentiles(workload.name(), &measured.tally.latency),
                Plot::Throughput => Line::throughput(workload.name(), &measured.progress),
            });
        }
        if let Some(path) = &self.output.svg {
            match self.output.plot {
                Plot::Percentiles => plot::draw_percentiles(path, &lines)?,
                Plot::Throughput => plot::draw_throughput(path, &lines)?,
            }
        }
        Ok(verdict)
    }

    /// A phase of `workload`, starting now: the asked amount, or `only_secs` seconds of it.
    fn phase(&self, workload: &Arc<Workload>, only_secs: Option<f64>) -> Arc<Phase> {
        let start = Instant::now();
        let secs = only_secs.or(self.load.secs);
        let (pacing, total) = match (self.load.rate, secs) {
            (Some(rate), secs) => {
                let asked = self.load.requests.unwrap_or(REQUESTS_DEFAULT);
                let total = secs.map_or(asked, |secs| (rate as f64 * secs).ceil() as u64);
                (Pacing::Open(Schedule::new(rate, total)), total)
            }
            (None, Some(secs)) => {
                (Pacing::Closed { deadline: Some(start + Duration::from_secs_f64(secs)) }, u64::MAX)
            }
            (None, None) => {
                (Pacing::Closed { deadline: None }, self.load.requests.unwrap_or(REQUESTS_DEFAULT))
            }
        };
        Arc::new(Phase {
            workload: Arc::clone(workload),
            keys: Arc::clone(&self.keys),
            pacing,
            pipeline: self.load.pipeline as usize,
            total,
            start,
            issued: AtomicU64::new(0),
            completed: AtomicU64::new(0),
        })
    }

    fn measure(
        &self,
        fleet: &mut Fleet,
        workload: &Arc<Workload>,
        server_pid: Option<u32>,
    ) -> Result<Measured> {
        let server_before = server_pid.and_then(cpu::process_ns);
        let client_before = cpu::own_ns();
        let phase = self.phase(workload, None);
        let bar = bar(workload.name(), &phase, self.load.secs);
        let mut progress = vec![(0.0, 0)];
        let tally = fleet.run(&phase, |elapsed, completed| {
            progress.push((elapsed.as_secs_f64(), completed));
            bar.show(elapsed, completed);
        })?;
        bar.bar.finish_and_clear();
        let spent = |before: Option<u64>, after: Option<u64>| Some(after?.saturating_sub(before?));
        let cpu = CpuSpent {
            server_ns: spent(server_before, server_pid.and_then(cpu::process_ns)),
            client_ns: spent(client_before, cpu::own_ns()),
        };
        Ok(Measured { tally, cpu, progress })
    }

    fn setting(&self, options: &TargetArgs) -> Setting {
        Setting {
            connections: self.load.connections,
            threads: self.load.threads,
            pipeline: self.load.pipeline,
            rate: self.load.rate,
            data_bytes: self.load.data_bytes,
            key_range: self.load.key_range,
            seed: self.load.seed,
            resp: if options.is_resp3 { 3 } else { 2 },
        }
    }
}

#[derive(Debug)]
struct Measured {
    tally: Tally,
    cpu: CpuSpent,
    /// Seconds since the start, replies so far.
    progress: Vec<(f64, u64)>,
}

/// Resolves the target, checks that it answers, and finds its process.
///
/// # Errors
/// When it cannot be reached, refuses the identity, or does not answer PING.
pub(crate) fn prepare(options: &TargetArgs) -> Result<(Target, Option<u32>)> {
    runtime()?.block_on(async {
        let target = Target::resolve(options).await?;
        let mut stream = target.connect().await?;
        target.within(request(&mut stream, &["PING"])).await?;
        let pid = find_server_pid(options, &target).await?;
        Ok((target, pid))
    })
}

/// Sends `workload` once for each of `keys` key numbers, in order.
///
/// # Errors
/// When the server stops answering or refuses a command.
pub(crate) fn fill(fleet: &mut Fleet, workload: &Arc<Workload>, keys: u64) -> Result<Duration> {
    let pipeline = (FILL_BATCH_BYTES / workload.bytes_max().max(1)).clamp(1, FILL_PIPELINE_MAX);
    let phase = Arc::new(Phase {
        workload: Arc::clone(workload),
        keys: Arc::new(KeyPicker::new(Distribution::Sequential, keys)),
        pacing: Pacing::Closed { deadline: None },
        pipeline,
        total: keys,
        start: Instant::now(),
        issued: AtomicU64::new(0),
        completed: AtomicU64::new(0),
    });
    let bar = bar("fill", &phase, None);
    let tally = fleet.run(&phase, |elapsed, completed| bar.show(elapsed, completed))?;
    bar.bar.finish_and_clear();
    if let Some((text, count)) = tally.errors.by_count().first() {
        anyhow::bail!("filling failed: {count} of {keys} writes: {text}");
    }
    Ok(tally.elapsed)
}

/// `bytes` bytes that do not compress to nothing and are the same in every run.
pub(crate) fn data(bytes: u64) -> Vec<u8> {
    (0..bytes).map(|index| b'a' + (index.wrapping_mul(7) % 26) as u8).collect()
}

/// Progress on standard error, when that is a terminal.
struct Bar {
    bar: ProgressBar,
    millis: Option<u64>,
}

fn bar(name: &str, phase: &Phase, secs: Option<f64>) -> Bar {
    let is_timed = phase.total == u64::MAX;
    let millis = secs.filter(|_| is_timed).map(|secs| (secs * 1000.0) as u64);
    // The target is standard error, and indicatif draws nothing there unless it is a terminal.
    let bar = ProgressBar::new(millis.unwrap_or(phase.total));
    let style = ProgressStyle::with_template("{prefix:16!} {wide_bar} {percent:>3}% {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_prefix(name.to_owned());
    Bar { bar, millis }
}

impl Bar {
    fn show(&self, elapsed: Duration, completed: u64) {
        if self.bar.is_hidden() {
            return;
        }
        let seconds = elapsed.as_secs_f64().max(1e-9);
        self.bar.set_message(format!("{:.0} ops/s", completed as f64 / seconds));
        self.bar.set_position(self.millis.map_or(completed, |_| elapsed.as_millis() as u64));
    }
}

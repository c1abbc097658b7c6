//! `towline drill handoff`: one run for each script, its account and its report.
//!
//! Owns the order of things: stage, clients, load, script, audit, report. Does not own any of them.

use std::future::Future;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use towline_client::transport::Target;
use towline_client::{Client, ConnectOptions};
use towline_client_proto::maintenance::MaintenanceMode;

use super::delivery::{Rule, Stream};
use super::director::{Director, Rename, Watched};
use super::lateness::{Lateness, Measuring};
use super::ledger::Findings;
use super::load::{self, COMMANDS_MAX, Counters, Loaded, Plan};
use super::options::{ClientKind, HandoffArgs, Order, Times};
use super::report::Report;
use super::script::Script;
use super::stage::{NAME, Names, Stage};
use super::steps::Steps;
use super::timeline::{Belonging, Phase, Timeline};
use super::{audit, channels, lists, peer, plot, progress};
use crate::bench::{ErrorTally, raise_file_limit};

/// Threads of the client and the load. With one more for the server this is a thread above the two cores that the smallest
/// machine has: the client's work and the server's take turns, as they would on two machines with one core each.
const THREADS: usize = 2;

/// What is not part of the figures before the move: the first commands pay for cold caches.
const WARM_UP: Duration = Duration::from_millis(300);

/// How long effects of a move are looked for after the last connection has left.
const SETTLE: Duration = Duration::from_millis(100);

/// Connections per client that a drill may need besides the shared one, for the limit of open files. Both ends are in this
/// process.
const DESCRIPTORS_PER_CLIENT: usize = 6;

/// What a run brings back, whichever client was loaded.
#[derive(Debug, Default)]
pub(super) struct Played {
    pub(super) loaded: Loaded,
    pub(super) streams: Vec<(String, Rule, Stream)>,
    /// Failures that are no command's of a ledger.
    pub(super) failed: u64,
    pub(super) errors: ErrorTally,
    pub(super) gaps: u64,
    pub(super) beside: Beside,
    /// The client's name and version.
    pub(super) client: String,
}

/// What was seen beside the load.
#[derive(Debug, Default)]
pub(super) struct Beside {
    pub(super) watched: Watched,
    pub(super) lateness: Lateness,
    pub(super) crossings: Vec<audit::Crossing>,
}

/// What every part of a run needs.
pub(super) struct Run<'a> {
    pub(super) args: &'a HandoffArgs,
    pub(super) script: Script,
    pub(super) times: Times,
    pub(super) stage: &'a mut Stage,
    /// A client on an address that nobody moves.
    pub(super) admin: Client,
}

/// Runs every script, and says whether all of them were passed.
///
/// # Errors
/// The environment does not allow the drill, or the report cannot be written.
pub(super) fn execute(args: &HandoffArgs, times: Times) -> Result<bool> {
    raise_file_limit(args.connections as usize * DESCRIPTORS_PER_CLIENT + args.workers as usize);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build()
        .context("cannot start the client's threads")?;
    let scripts = args.scripts();
    let mut is_passed = true;
    for script in &scripts {
        let mut stage = Stage::start()?;
        let (report, timeline) = runtime.block_on(play(args, *script, times, &mut stage))?;
        let mut out = std::io::stdout().lock();
        let written = if args.is_json { report.json(&mut out) } else { report.table(&mut out) };
        written.context("cannot write the report")?;
        if let Some(path) = &args.svg {
            let path = if scripts.len() == 1 { path.clone() } else { named(path, script.name()) };
            let title = format!("{}, {}: {}", report.client, script.name(), script.about());
            plot::draw(&path, &title, &timeline.buckets(Duration::ZERO, times.run), &report.events)?;
        }
        is_passed &= report.is_passed();
    }
    Ok(is_passed)
}

/// `drill.svg` with the script's name: `drill-null.svg`.
fn named(path: &Path, script: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}-{script}.{extension}"))
}

async fn play(
    args: &HandoffArgs,
    script: Script,
    times: Times,
    stage: &mut Stage,
) -> Result<(Report, Timeline)> {
    let unmoved = at(stage.admin).maintenance(MaintenanceMode::Disabled);
    let admin = Client::open(unmoved).await.context("the drill cannot reach its own server")?;
    let mut run = Run { args, script, times, stage, admin };
    let mut played = match args.client {
        ClientKind::Towline => run.towline().await?,
        ClientKind::RedisPy => peer::play(&mut run).await?,
    };
    let connections = args.connections as usize;
    let mut findings = audit::audit(&run.admin, &played.loaded.ledgers, connections).await?;
    audit::count_crossings(&played.beside.crossings, played.loaded.first_failure, &mut findings);
    for (name, rule, stream) in &played.streams {
        findings.merge(stream.audit(name, *rule));
    }
    findings.failed += played.failed;
    let timeline = Timeline::new(std::mem::take(&mut played.loaded.samples));
    Ok((run.report(played, findings, &timeline), timeline))
}

/// Options for the server at an address.
fn at(address: SocketAddr) -> ConnectOptions {
    ConnectOptions::new(Target::tcp(address.ip().to_string(), address.port()))
}

impl Run<'_> {
    /// The plan of the load, beginning now.
    pub(super) fn plan(&self, start: Instant) -> Arc<Plan> {
        Arc::new(Plan {
            start,
            end: self.times.run,
            mix: self.args.mix,
            seed: self.args.seed,
            depth: self.args.depth(),
            rate: (self.args.rate > 0).then_some(self.args.rate),
            counters: Counters::default(),
        })
    }

    /// What is done beside the load, whichever client it goes through: the script, the watch on the order, the progress.
    ///
    /// # Errors
    /// Those of the load and of the script.
    pub(super) async fn beside<T>(
        &mut self,
        plan: &Arc<Plan>,
        names: impl Rename,
        load: impl Future<Output = Result<T>>,
    ) -> Result<(T, Beside)> {
        let is_over = Arc::new(AtomicBool::new(false));
        let shown =
            progress::show(self.script.name().to_owned(), Arc::clone(plan), plan.end, Arc::clone(&is_over));
        let shown = tokio::spawn(shown);
        let observed = (self.args.handoff_order == Order::Strict).then(|| {
            let (admin, workers) = (self.admin.clone(), self.args.workers as usize);
            tokio::spawn(audit::observe(admin, workers, Arc::clone(plan), Arc::clone(&is_over)))
        });
        let director =
            Director { script: self.script, stage: self.stage, names, start: plan.start, times: self.times };
        let measuring = Measuring::start(plan.start).context("cannot start a thread")?;
        let outcome = tokio::try_join!(load, director.play());
        let lateness = measuring.finish();
        is_over.store(true, Ordering::Relaxed);
        let crossings = match observed {
            Some(observed) => observed.await.context("the watch on the order failed")?,
            None => Ok(Vec::new()),
        };
        shown.await.context("the progress failed")?;
        let (loaded, watched) = outcome?;
        Ok((loaded, Beside { watched, lateness, crossings: crossings? }))
    }

    async fn towline(&mut self) -> Result<Played> {
        let names = Names::new(self.stage.first().ip());
        let mut options = at(self.stage.first())
            .maintenance(self.args.client_maintenance.mode())
            .moving_endpoint_type(self.args.moving_endpoint_type.form())
            .handoff_order(self.args.handoff_order.order());
        if self.script == Script::Dns {
            let named = Target::tcp(NAME, self.stage.first().port());
            options = options.with_target(named).transport(names.clone());
        }
        let mut clients = Vec::with_capacity(self.args.connections as usize);
        for _ in 0..self.args.connections {
            clients.push(Client::open(options.clone()).await.context("the client does not connect")?);
        }
        let plan = self.plan(Instant::now());
        let (workers, script, admin) = (self.args.workers as usize, self.script, self.admin.clone());
        let load = async {
            let load = load::run(&clients, workers, &plan);
            let lists = async {
                match script {
                    Script::Blocked => lists::run(&clients, &admin, &plan).await.map(Some),
                    _ => Ok(None),
                }
            };
            let channels = async {
                match script {
                    Script::Pubsub => channels::run(&clients, &admin, &plan).await.map(Some),
                    _ => Ok(None),
                }
            };
            tokio::try_join!(load, lists, channels)
        };
        let steps = clients.first().map(|client| Steps::listen(client, plan.start));
        let ((loaded, listed, heard), mut beside) = self.beside(&plan, names, load).await?;
        let happenings = &mut beside.watched.happenings;
        happenings.extend(steps.into_iter().flat_map(Steps::finish));
        happenings.sort_by(|a, b| a.at_ms.total_cmp(&b.at_ms));
        let mut played = Played { loaded, beside, ..Played::default() };
        played.client = format!("towline {}", env!("CARGO_PKG_VERSION"));
        if let Some(listed) = listed {
            played.failed += listed.failed;
            played.errors.merge(&listed.errors);
            played.add(Rule::One, listed.streams);
        }
        if let Some(heard) = heard {
            played.failed += heard.failed;
            played.gaps += heard.gaps;
            played.errors.merge(&heard.errors);
            played.add(Rule::Each, heard.streams);
        }
        Ok(played)
    }

    fn report(&self, played: Played, findings: Findings, timeline: &Timeline) -> Report {
        let (args, watched, run) = (self.args, &played.beside.watched, self.times.run);
        let moved = (watched.over + SETTLE).min(run);
        let before = WARM_UP.min(watched.moving)..watched.moving;
        let mean = timeline.mean_per_bucket(before.clone());
        let phase = |time: Range<Duration>, belonging| Phase {
            late_ms: played.beside.lateness.most_ms(&time),
            ..timeline.phase(time, belonging, mean)
        };
        let during = phase(watched.moving..moved, Belonging::InFlight);
        let mut errors = played.loaded.errors;
        errors.merge(&played.errors);
        let mut report = Report {
            script: self.script.name(),
            about: self.script.about(),
            client: played.client,
            workers: args.workers,
            connections: args.connections,
            pipeline: if args.client == ClientKind::Towline { args.depth() } else { 1 },
            rate: (args.rate > 0).then_some(args.rate),
            mix: args.mix.to_string(),
            window_s: self.times.window.as_secs(),
            seconds: run.as_secs_f64(),
            seed: args.seed,
            completed: 0,
            failed: 0,
            duplicated: 0,
            reordered: 0,
            lost: 0,
            gaps: played.gaps,
            recycle_ms: watched
                .last_left
                .map(|left| ((left - watched.moving).as_micros() as f64 / 100.0).round() / 10.0),
            pause_ms: during.pause_ms,
            p99_ms: during.p99_ms,
            max_ms: during.max_ms,
            connections_told: watched.told,
            connections_replaced: watched.left,
            before: phase(before, Belonging::Answered),
            during,
            after: phase(moved..run, Belonging::Sent),
            events: watched.happenings.clone(),
            errors: errors.by_count().into_iter().map(|(text, count)| (text.to_owned(), count)).collect(),
            problems: Vec::new(),
            notes: notes(args, self.script, played.loaded.is_cut_short, played.loaded.unsent),
        };
        report.found(findings);
        report
    }
}

impl Played {
    /// Adds lists or channels.
    pub(super) fn add(&mut self, rule: Rule, streams: Vec<Stream>) {
        let kind = if rule == Rule::One { "list" } else { "channel" };
        let named = streams.into_iter().enumerate();
        self.streams.extend(named.map(|(number, stream)| (format!("{kind} {number}"), rule, stream)));
    }
}

/// What has to be known to read the figures.
fn notes(args: &HandoffArgs, script: Script, is_cut_short: bool, unsent: u64) -> Vec<String> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut notes = vec![match args.client {
        ClientKind::Towline => format!(
            "client and load ({THREADS} threads) and server (1 thread) share the {cores} cores of this machine in one process"
        ),
        ClientKind::RedisPy => format!(
            "the client is a process of its own; it shares the {cores} cores of this machine with the server (1 thread)"
        ),
    }];
    if script == Script::Slow {
        notes.push(
            "behind the move the traffic passes a relay in this process, which costs throughput".to_owned(),
        );
    }
    if is_cut_short {
        notes.push(format!("the run ended early, after {COMMANDS_MAX} commands; give it a --rate"));
    }
    if unsent > 0 {
        notes.push(format!("{unsent} commands were never sent: the rate is above what this machine can do"));
    }
    if cfg!(debug_assertions) {
        notes.push("this is a debug build; its times mean little".to_owned());
    }
    notes
}

impl Rename for Names {
    fn rename(&mut self, to: SocketAddr) {
        self.change(to.ip());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plots_of_several_scripts_have_names_of_their_own() {
        assert_eq!(named(Path::new("a/drill.svg"), "null"), Path::new("a/drill-null.svg"));
    }
}

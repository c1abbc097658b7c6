//! `towline drill reshard`: moves slots back and forth under load, and accounts for every command and key.
//!
//! ```text
//! options -> fleet (nodes as processes) -> data (what is there), load (what happens to it) -> account
//!              |-> movers: towline cluster reshard, again and again       |
//!              |-> chaos: SIGKILL of nodes and of the tool                v
//!              +-> check, audit -----------------------------------> report
//! ```
//!
//! Owns the order of these. Does not own the moves, which are those of `towline cluster` as an operator runs it, nor the client.

mod account;
mod data;
mod fleet;
mod load;
mod options;
mod report;

use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use towline_client::transport::Target;
use towline_client::{Client, ClusterOptions, ConnectOptions};
use towline_cluster::{SLOT_COUNT, key_slot};
use towline_sansio::Prng;

pub(super) use options::ReshardArgs;

use account::Account;
use data::Filled;
use fleet::{Fleet, HOST, tool};
use load::Caller;
use options::PathName;
use report::{Happening, Report};

/// Longer than a node takes from its kill to its next answer, on a busy machine: what fails later fails for good.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

/// Under load before the first move and after the last.
const MARGIN: Duration = Duration::from_secs(1);

/// How often the cluster is mended at the end before that is given up.
const MENDS_MAX: u32 = 20;

/// Between two tries to mend, and to move after a run that failed.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// How long nothing is killed, at least and at most, milliseconds.
const PEACE_MS: (u64, u64) = (200, 2000);

/// How much longer moves go on until each way was gone once, as on a busy machine with kills. Nothing is killed meanwhile.
const GRACE: Duration = Duration::from_secs(60);

/// How long a killed node stays away, at most, milliseconds.
const AWAY_MS_MAX: u64 = 500;

/// Runs the drill and prints its report. Returns whether it was passed.
///
/// # Errors
/// The environment does not allow it, the cluster cannot be mended, or the report cannot be written.
pub(super) fn execute(args: &ReshardArgs) -> Result<bool> {
    let is_interrupted = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&is_interrupted)).context("cannot watch signals")?;
    }
    let (dir, is_temporary) = directory(args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let program = args.program()?;
    let server = program.join(" ");
    let fleet = Fleet::start(program, args.nodes, &dir, args.chaos)?;
    let drill = Drill {
        args: args.clone(),
        ports: fleet.ports(),
        fleet: Mutex::new(fleet),
        account: Arc::new(Account::new(args.chaos)),
        running: Mutex::new(None),
        is_over: AtomicBool::new(false),
        is_interrupted,
        kills: AtomicU64::new(0),
        report: Mutex::new(Report { server, ..Report::default() }),
    };
    let report = runtime.block_on(drill.play());
    drop(drill);
    let report = report.with_context(|| format!("the nodes' files are in {}", dir.display()))?;
    if is_temporary && report.is_passed() {
        // What is left is the system's to clean up.
        let _ = std::fs::remove_dir_all(&dir);
    } else {
        crate::cli::warn(&format!("the nodes' files are in {}", dir.display()));
    }
    let mut out = std::io::stdout().lock();
    let written = if args.is_json { report.json(&mut out) } else { report.table(&mut out) };
    written.context("cannot write the report")?;
    Ok(report.is_passed())
}

fn directory(args: &ReshardArgs) -> Result<(PathBuf, bool)> {
    match &args.dir {
        None => {
            let dir = tempfile::Builder::new().prefix("towline-drill-").tempdir()?;
            Ok((dir.keep(), true))
        }
        Some(dir) => {
            std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
            if std::fs::read_dir(dir)?.next().is_some() {
                bail!("{} is not empty", dir.display());
            }
            Ok((Path::new(dir).canonicalize()?, false))
        }
    }
}

/// The slots of a move: of three, one has the big hash in it, one the big string, and one is anywhere.
fn window(turn: usize, slots: u16, random: &mut Prng) -> String {
    let last_first = SLOT_COUNT as u64 - u64::from(slots);
    let around = |key: &str, random: &mut Prng| {
        let before = random.below(u64::from(slots));
        u64::from(key_slot(key.as_bytes())).saturating_sub(before).min(last_first)
    };
    let first = match turn % 3 {
        0 => around(load::BIG_HASH, random),
        1 => around(load::BIG_STRING, random),
        _ => random.below(last_first + 1),
    };
    format!("{first}-{}", first + u64::from(slots) - 1)
}

/// A run.
struct Drill {
    args: ReshardArgs,
    ports: Vec<u16>,
    fleet: Mutex<Fleet>,
    account: Arc<Account>,
    /// The run of the tool that goes on, for who kills.
    running: Mutex<Option<Child>>,
    /// No further move is begun, and nothing is killed any more.
    is_over: AtomicBool,
    is_interrupted: Arc<AtomicBool>,
    kills: AtomicU64,
    report: Mutex<Report>,
}

impl Drill {
    async fn play(&self) -> Result<Report> {
        let client = Client::open(self.options()).await.context("the client does not connect")?;
        let filled = Filled::fill(&client, &self.args).await?;
        let is_over = Arc::new(AtomicBool::new(false));
        let caller = Caller {
            client: client.clone(),
            account: Arc::clone(&self.account),
            is_over: Arc::clone(&is_over),
        };
        let mut tasks = load::start(&caller, self.args.workers);
        tokio::time::sleep(MARGIN).await;
        // Both block: the tool is a process, and so are the nodes.
        let (moved, killed) = std::thread::scope(|scope| {
            let mover = scope.spawn(|| self.move_about());
            let killer = scope.spawn(|| if self.args.chaos { self.kill_about() } else { Ok(()) });
            tokio::task::block_in_place(|| (mover.join(), killer.join()))
        });
        moved.map_err(|_| anyhow::anyhow!("the thread that moves slots failed"))??;
        killed.map_err(|_| anyhow::anyhow!("the thread that kills failed"))??;
        tokio::task::block_in_place(|| self.mend())?;
        tokio::time::sleep(MARGIN).await;
        is_over.store(true, Ordering::Relaxed);
        let mut left = Vec::new();
        while let Some(task) = tasks.join_next().await {
            left.push(task.context("a task failed")?);
        }
        let mut found = load::audit(&client, &left).await?;
        found.add(filled.audit(&client).await?);
        let ttl_off_ms_max = filled.ttl_off_ms(&client).await?;
        let orphaned = tokio::task::block_in_place(|| self.orphans())?;
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let errors = self.account.errors();
        (report.completed, report.unknown) = self.account.counts();
        (report.lost, report.duplicated, report.orphaned) = (found.lost, found.duplicated, orphaned);
        (report.is_chaos, report.seed, report.nodes) = (self.args.chaos, self.args.seed, self.args.nodes);
        report.keys = filled.count();
        report.seconds = self.account.elapsed().as_secs_f64();
        report.kills = self.kills.load(Ordering::Relaxed);
        report.errors = errors.total();
        report.errors_by_text =
            errors.by_count().into_iter().map(|(text, count)| (text.to_owned(), count)).collect();
        report.ttl_off_ms_max = ttl_off_ms_max;
        report.timeline = self.account.timeline();
        report.events.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        Ok(report)
    }

    fn options(&self) -> ConnectOptions {
        let target = |port: &u16| Target::tcp(HOST, *port);
        let mut cluster = ClusterOptions::new();
        for port in &self.ports[1..] {
            cluster = cluster.seed(target(port));
        }
        ConnectOptions::new(target(&self.ports[0])).command_timeout(COMMAND_TIMEOUT).cluster(cluster)
    }

    fn tell(&self, what: String) {
        let at_s = self.account.elapsed().as_secs_f64();
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        report.events.push(Happening { at_s, what });
    }

    /// Whether the time is over.
    fn is_late(&self) -> bool {
        self.account.elapsed().as_secs_f64() >= self.args.seconds
            || self.is_interrupted.load(Ordering::Relaxed)
    }

    /// Whether the time is over for moves as well: a drill that has not moved slots in each of so many ways says too little.
    fn is_enough(&self, turns: usize, ways: usize) -> bool {
        let is_hopeless = self.account.elapsed().as_secs_f64() >= self.args.seconds + GRACE.as_secs_f64();
        self.is_late() && (turns >= ways || is_hopeless || self.is_interrupted.load(Ordering::Relaxed))
    }

    /// Moves slots round and round until the time is over.
    fn move_about(&self) -> Result<()> {
        let outcome = self.rounds();
        // Who kills stops with it, however it ends.
        self.is_over.store(true, Ordering::Relaxed);
        outcome
    }

    fn rounds(&self) -> Result<()> {
        let flags: &[&str] = match self.args.path {
            PathName::Classic => &["--classic"],
            PathName::Atomic => &["--atomic"],
            PathName::All if self.knows_atomic() => &["--classic", "--atomic"],
            PathName::All => &["--classic"],
        };
        let count = self.ports.len();
        let mut random = Prng::new(self.args.seed.wrapping_add(1));
        let mut turn = 0;
        let mut idle_from = Duration::ZERO;
        while !self.is_enough(turn, flags.len()) {
            let to = turn % count;
            let flag = flags[turn % flags.len()];
            let ranges = window(turn, self.args.slots, &mut random);
            let begun = self.account.elapsed();
            let mut arguments = ["reshard".to_owned(), self.ports[to].to_string(), flag.to_owned()].to_vec();
            for (name, value) in
                [("--to", format!("{HOST}:{}", self.ports[to])), ("--ranges", ranges.clone())]
            {
                arguments.extend([name.to_owned(), value]);
            }
            let (code, value, said) = self.run(&arguments)?;
            let ended = self.account.elapsed();
            let number = |name: &str| value[name].as_u64().unwrap_or_default();
            let (idle, stall) =
                (self.account.stall_ms(idle_from, begun), self.account.stall_ms(begun, ended));
            {
                let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
                report.slots_moved += number("slots_moved");
                report.keys_moved += number("keys_moved");
                report.moves += u64::from(code == Some(0));
                report.idle_ms_max = report.idle_ms_max.max(idle);
                report.stall_ms_max = report.stall_ms_max.max(stall);
            }
            let what = format!(
                "{} {} slots with {} keys of {ranges} to node {to}: {:.2} s, longest command {stall:.1} ms",
                value["how"].as_str().unwrap_or("nothing to do:"),
                number("slots_moved"),
                number("keys_moved"),
                (ended - begun).as_secs_f64(),
            );
            idle_from = ended;
            if code == Some(0) {
                self.tell(what);
                turn += 1;
            } else if self.args.chaos {
                self.tell(format!("interrupted: {}", if said.is_empty() { "killed" } else { &said }));
                std::thread::sleep(RETRY_AFTER);
                // What a killed run left is finished by the next one; whatever else it finds is mended.
                self.run(&["fix".to_owned(), self.ports[to].to_string()])?;
            } else {
                bail!("a move failed with {code:?}: {said} {value}");
            }
        }
        Ok(())
    }

    fn knows_atomic(&self) -> bool {
        let arguments = ["migrate".to_owned(), "status".to_owned(), self.ports[0].to_string()];
        self.run(&arguments).is_ok_and(|(code, ..)| code == Some(0))
    }

    /// Runs the tool where it can be killed, and returns its exit code, its object, and what it said on standard error.
    fn run(&self, arguments: &[String]) -> Result<(Option<i32>, Value, String)> {
        let mut child = tool(arguments)?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        *self.running() = Some(child);
        // Both end with the process. What is said on standard error is less than a pipe holds.
        let out = fleet::all_of(stdout)?;
        let said = fleet::all_of(stderr)?;
        let ended = self.running().take();
        let code = ended.map(|mut child| child.wait()).transpose()?.and_then(|status| status.code());
        let value = serde_json::from_str(&out).unwrap_or(Value::Null);
        Ok((code, value, said.trim().replace('\n', " | ")))
    }

    fn running(&self) -> MutexGuard<'_, Option<Child>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Kills nodes and the tool at random moments.
    fn kill_about(&self) -> Result<()> {
        let mut random = Prng::new(self.args.seed);
        let pause = |random: &mut Prng| PEACE_MS.0 + random.below(PEACE_MS.1 - PEACE_MS.0);
        loop {
            let until = Instant::now() + Duration::from_millis(pause(&mut random));
            while Instant::now() < until {
                if self.is_over.load(Ordering::Relaxed) || self.is_late() {
                    return Ok(());
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            // One of the nodes, or the tool.
            let victim = random.below(self.ports.len() as u64 + 1) as usize;
            let away = Duration::from_millis(random.below(AWAY_MS_MAX));
            if victim == self.ports.len() {
                if let Some(child) = self.running().as_mut() {
                    child.kill().context("cannot kill the tool")?;
                    self.kills.fetch_add(1, Ordering::Relaxed);
                    self.tell("the tool is killed".to_owned());
                }
                continue;
            }
            self.tell(format!("node {victim} is killed"));
            self.kills.fetch_add(1, Ordering::Relaxed);
            let mut fleet = self.fleet.lock().unwrap_or_else(PoisonError::into_inner);
            fleet.kill(victim)?;
            std::thread::sleep(away);
            fleet.restart(victim)?;
            drop(fleet);
            // Two at once would take the quorum away, which is another drill.
            crate::cluster::bring_up(HOST, &self.ports)?;
            self.tell(format!("node {victim} is back"));
        }
    }

    /// Finishes what is open, until a check finds nothing.
    fn mend(&self) -> Result<()> {
        let mut last = String::new();
        for _ in 0..MENDS_MAX {
            let port = self.ports[0].to_string();
            let (code, value, _) = self.run(&["check".to_owned(), port.clone()])?;
            if code == Some(0) {
                return Ok(());
            }
            last = value.to_string();
            if !self.args.chaos {
                break;
            }
            self.run(&["fix".to_owned(), port])?;
            std::thread::sleep(RETRY_AFTER);
        }
        bail!("the cluster is not whole at the end: {last}")
    }

    /// Keys that are where no client finds them.
    fn orphans(&self) -> Result<u64> {
        let mut orphaned = 0;
        let (_, value, said) = self.run(&["check".to_owned(), self.ports[0].to_string()])?;
        let findings = value["findings"].as_array().with_context(|| format!("check: {said}"))?;
        for finding in findings.iter().filter(|finding| finding["kind"] == "orphans") {
            orphaned += finding["keys"].as_u64().unwrap_or(1);
        }
        Ok(orphaned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn big_values_move_in_turn() {
        let mut random = Prng::new(1);
        for turn in 0..300 {
            let text = window(turn, 500, &mut random);
            let (first, last) = text.split_once('-').unwrap();
            let (first, last): (u16, u16) = (first.parse().unwrap(), last.parse().unwrap());
            assert_eq!(last - first, 499);
            assert!(usize::from(last) < SLOT_COUNT);
            let has = |key: &str| (first..=last).contains(&key_slot(key.as_bytes()));
            assert!(turn % 3 != 0 || has(load::BIG_HASH), "{text}");
            assert!(turn % 3 != 1 || has(load::BIG_STRING), "{text}");
        }
    }
}

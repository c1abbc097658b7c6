//! The runs: load, kill, start, compare, and on with what is there.
//!
//! Owns the order of things and the moments of kills. Does not own what is right.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use towline_resp::frame::Frame;
use towline_sansio::Prng;

use super::client::{Client, Clock, Wire};
use super::common::{Queue, judge_counter};
use super::ledger::{End, Kind, Ledger, Problem, Promise, Verdict};
use super::mix::{Fields, Mix, Queues};
use super::options::{CrashArgs, Fsync};
use super::process::{Launch, Process, Ready, SENTINEL, SENTINEL_VALUE, bytes_below, copy_below, tear};
use super::reading;
use super::report::Report;
use super::value::{Entry, Found, Place, Value};

/// The key that all clients increment.
const COUNTER: &str = "shared";

/// Values are told apart by numbers; each run has so many.
const SERIALS_PER_RUN: u64 = 1_000_000;

/// Milliseconds after a BGSAVE or a BGREWRITEAOF within which the kill comes, when it is to come in one.
const IN_SAVE_MS: u64 = 60;

/// One in so many runs ends with a stop instead of a kill.
const STOP_EVERY: u64 = 12;

/// Most kills of one server that starts.
const KILLS_IN_START_MAX: u64 = 3;

/// Longest time under load where what is older than a second must be there: long enough for something to be.
const LONG_MS: u64 = 2500;

/// How often progress is told, where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// When to do what in a run.
#[derive(Debug, Clone, Copy)]
struct Moments {
    /// The first, and perhaps a BGSAVE or BGREWRITEAOF then.
    first: Duration,
    save: Option<&'static str>,
    /// From there to the end.
    then: Duration,
    ending: Ending,
}

/// How a server ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Kill,
    /// It is asked to, and keeps everything whatever it promises otherwise.
    Stop,
}

/// The drill.
#[derive(Debug)]
pub(super) struct Drill<'a> {
    args: &'a CrashArgs,
    launch: Launch,
    /// Where files are copied to before a start.
    copy: PathBuf,
    ledgers: Vec<Ledger>,
    /// Those that the clients push to, in their order.
    queues: Vec<Queue>,
    counter: i64,
    /// Whether the sentinel was found after a start: from then on it must be there.
    has_sentinel: bool,
    fields: Fields,
    last_line: Instant,
    pub(super) report: Report,
}

/// The state of a client's choices from `seed`, for this run.
fn prng(seed: u64, run: u64, client: u64) -> Prng {
    let mut mixed = Prng::new(seed);
    let a = mixed.next_u64() ^ run;
    let b = Prng::new(a).next_u64() ^ client;
    Prng::new(b)
}

impl<'a> Drill<'a> {
    /// A drill that has not begun.
    pub(super) fn new(args: &'a CrashArgs, launch: Launch, copy: PathBuf) -> Self {
        let clients = usize::try_from(args.clients).unwrap_or(usize::MAX);
        let report = Report {
            server: launch.program.join(" "),
            keeping: args.keeping(),
            clients: args.clients,
            pipeline: args.pipeline,
            seed: args.seed,
            ..Report::default()
        };
        Self {
            args,
            launch,
            copy,
            ledgers: vec![Ledger::default(); clients],
            queues: vec![Queue::default(); clients],
            counter: 0,
            has_sentinel: false,
            fields: Fields::Stay,
            last_line: Instant::now(),
            report,
        }
    }

    /// All runs.
    ///
    /// # Errors
    /// The server does not start again, or does not let itself be read; the drill ends there.
    pub(super) fn all(&mut self) -> Result<()> {
        let (mut process, _) = self.launch.start().context("the first start")?;
        let asked = Wire::open(process.address())
            .and_then(|mut wire| wire.call(&["HPEXPIRETIME", SENTINEL, "FIELDS", "1", "f"]))
            .context("the server does not answer")?;
        self.fields = if asked.as_error().is_none() { Fields::Expire } else { Fields::Stay };
        for run in 1..=self.args.runs {
            process = self.run(run, process).with_context(|| format!("run {run}"))?;
            self.report.runs += 1;
            self.progress(run);
            let is_over = self.args.is_kept && self.report.violations_all() > 0;
            if is_over || self.launch.is_interrupted.load(Ordering::Relaxed) {
                break;
            }
        }
        process.kill()
    }

    /// One run. Returns the server that was started for the next.
    fn run(&mut self, run: u64, process: Process) -> Result<Process> {
        let mut rng = prng(self.args.seed, run, u64::MAX);
        let moments = self.moments(&mut rng);
        let (problems, end) = self.load(run, process, moments)?;
        for problem in problems {
            self.violation(run, &problem);
            self.report.count(problem.kind, 1);
        }
        let process = self.restart(run, &mut rng)?;
        let found = self.read(run, &process)?;
        let promise = match moments.ending {
            Ending::Stop if self.args.tear == 0 => Promise::All,
            _ => self.args.promise(),
        };
        self.judge(run, &found, promise, end);
        Ok(process)
    }

    fn moments(&self, rng: &mut Prng) -> Moments {
        if self.args.is_snapshots {
            // Long enough that most are finished.
            let [first, then] =
                [0, 0].map(|_: u8| Duration::from_micros(rng.below(self.args.load_ms * 1000)));
            return Moments { first, save: Some("BGSAVE"), then, ending: Ending::Kill };
        }
        let is_weaker = self.args.appendfsync != Fsync::Always;
        let longest = if is_weaker && rng.below(4) == 0 { LONG_MS } else { self.args.load_ms };
        let first = Duration::from_micros(rng.below(longest * 1000));
        let save = ["BGREWRITEAOF", "BGREWRITEAOF", "BGSAVE"][rng.below(3) as usize];
        // Half of the kills are in one.
        let (save, then_ms) = match rng.below(4) {
            0 => (None, 0),
            1 => (Some(save), longest / 2),
            _ => (Some(save), IN_SAVE_MS),
        };
        let ending = if rng.below(STOP_EVERY) == 0 { Ending::Stop } else { Ending::Kill };
        Moments { first, save, then: Duration::from_micros(rng.below(then_ms * 1000)), ending }
    }

    /// Loads the server and kills it. Returns what was wrong until then.
    fn load(&mut self, run: u64, mut process: Process, moments: Moments) -> Result<(Vec<Problem>, End)> {
        let mut admin = Wire::open(process.address()).context("cannot connect")?;
        admin.call(&["SET", SENTINEL, SENTINEL_VALUE]).context("the server does not answer")?;
        let (clock, is_killed) = (Clock::start(), AtomicBool::new(false));
        let (address, count) = (process.address(), self.ledgers.len());
        std::thread::scope(|scope| {
            let mut clients = Vec::new();
            for (number, ledger) in self.ledgers.iter_mut().enumerate() {
                // Each pops from the one before it.
                let other = (number + count - 1) % count;
                let queues = Queues {
                    own: queue(number),
                    next: self.queues[number].next_push,
                    other: queue(other),
                    counter: Place::new(0, COUNTER),
                };
                let rng = prng(self.args.seed, run, number as u64);
                let mut client = Client {
                    number,
                    ledger,
                    mix: Mix::new(number, rng, run * SERIALS_PER_RUN, queues, self.fields),
                    clock,
                    depth: self.args.pipeline,
                    next_pop: self.queues[other].next_pop,
                    is_killed: &is_killed,
                };
                clients.push(scope.spawn(move || client.drive(address)));
            }
            std::thread::sleep(moments.first);
            // Not waited for: a fork takes its time, and the kill may come in it.
            let saves = moments.save.is_some_and(|save| admin.send(format!("{save}\r\n").as_bytes()).is_ok());
            std::thread::sleep(moments.then);
            let ended = process.has_ended();
            is_killed.store(true, Ordering::Release);
            let at = clock.at();
            let stopped = match moments.ending {
                Ending::Kill => process.kill().map(|()| None)?,
                Ending::Stop => process.stop().err().map(|error| format!("{error:#}")),
            };
            // Until now, commands can have run.
            let end = End { ms: Clock::wall_ms(), at };
            self.report.stops += u64::from(moments.ending == Ending::Stop);
            let mut problems: Vec<Problem> = Vec::new();
            let texts = ended.into_iter().chain(stopped);
            problems.extend(texts.map(|text| Problem { kind: Kind::WrongAnswer, text }));
            for client in clients {
                problems.extend(client.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            if saves {
                self.report.note_save(moments.save, &admin.receive());
            }
            Ok((problems, end))
        })
    }

    /// Starts the server, and kills it some times before it is ready.
    fn restart(&mut self, run: u64, rng: &mut Prng) -> Result<Process> {
        let bytes = bytes_below(&self.launch.data);
        self.report.log_bytes_last = bytes;
        self.report.log_bytes_max = self.report.log_bytes_max.max(bytes);
        if self.args.is_kept {
            copy_below(&self.launch.data, &self.copy).context("cannot copy the server's files")?;
        }
        if self.args.tear > 0 {
            tear(&self.launch.data, rng.below(self.args.tear + 1)).context("cannot tear the log")?;
        }
        for _ in 0..KILLS_IN_START_MAX {
            if rng.below(4) > 0 {
                break;
            }
            let usual = self.report.starts.last().map_or(20_000, |took| took.as_micros() as u64);
            let process = self.launch.spawn()?;
            std::thread::sleep(Duration::from_micros(rng.below(usual * 5 / 4)));
            process.kill()?;
            self.report.kills_in_start += 1;
        }
        let (process, ready) = self.launch.start().context("the start after the kill")?;
        let Ready { took, was_loading, was_early } = ready;
        self.report.starts.push(took);
        self.report.starts_loading += u64::from(was_loading);
        if was_early && self.has_sentinel {
            let text =
                "the server answered a read before it had loaded its data, or has lost all of it".to_owned();
            self.wrong(run, Problem { kind: Kind::WrongAnswer, text });
        }
        Ok(process)
    }

    fn read(&mut self, run: u64, process: &Process) -> Result<Found> {
        let read = Wire::open(process.address()).and_then(|mut wire| reading::read(&mut wire, self.fields));
        read.with_context(|| format!("cannot read the data back (run {run})"))
    }

    /// Compares what was found with the ledgers, and goes on from there.
    fn judge(&mut self, run: u64, found: &Found, promise: Promise, end: End) {
        self.report.keys += found.keys.len() as u64;
        let (mut of_clients, mut others) = self.split(found);
        self.has_sentinel |= others.remove(&Place::new(0, SENTINEL)).is_some();
        let mut verdicts = Vec::new();
        for (number, of_client) in of_clients.iter().enumerate() {
            let verdict = self.ledgers[number].judge(of_client, promise, end);
            self.take(run, number, &verdict);
            verdicts.push(verdict);
        }
        self.judge_common(run, &mut others, &verdicts);
        for place in others.into_keys() {
            self.wrong(run, Problem { kind: Kind::Foreign, text: format!("{place} was written by nobody") });
        }
        for (ledger, found) in self.ledgers.iter_mut().zip(&mut of_clients) {
            ledger.adopt(found);
        }
    }

    fn take(&mut self, run: u64, number: usize, verdict: &Verdict) {
        let ledger = &self.ledgers[number];
        self.report.acknowledged += ledger.answered() as u64;
        self.report.unknown += ledger.unknown() as u64;
        self.report.unknown_applied += verdict.unknown_applied as u64;
        self.report.missing += verdict.missing as u64;
        verdict.oldest_missing.into_iter().for_each(|age| self.report.missed(age));
        self.report.count_all(&verdict.wrong);
        for problem in &verdict.problems {
            let text = format!("client {number}: {}", problem.text);
            self.violation(run, &Problem { kind: problem.kind, text });
        }
    }

    /// Compares queues and the counter. Where a client's own keys are wrong already, nobody knows how many of its pushes ran.
    fn judge_common(&mut self, run: u64, others: &mut BTreeMap<Place, Entry>, verdicts: &[Verdict]) {
        let count = self.queues.len();
        for number in 0..count {
            let place = queue(number);
            let found = others.remove(&place);
            let (pusher, popper) = (&verdicts[number], &verdicts[(number + 1) % count]);
            if pusher.problems.is_empty() && popper.problems.is_empty() {
                let problem = self.queues[number].judge(&place, found.as_ref(), pusher.pushed, popper.popped);
                problem.into_iter().for_each(|problem| self.wrong(run, problem));
            }
            let sent = self.ledgers[number].pushes_sent();
            self.queues[number].adopt(found.as_ref(), sent);
        }
        let found = others.remove(&Place::new(0, COUNTER));
        let sums = verdicts
            .iter()
            .fold((0, 0), |sums: (u64, u64), verdict| (sums.0 + verdict.shared.0, sums.1 + verdict.shared.1));
        match judge_counter(found.as_ref(), self.counter, sums) {
            Ok(value) => self.counter = value,
            Err(problem) => {
                if verdicts.iter().all(|verdict| verdict.problems.is_empty()) {
                    self.wrong(run, problem);
                }
                self.counter = found.as_ref().map_or(0, |entry| match &*entry.value {
                    Value::Text(text) => {
                        std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
                    }
                    _ => 0,
                });
            }
        }
    }

    /// What was found, by client, and the rest.
    fn split(&self, found: &Found) -> (Vec<Found>, BTreeMap<Place, Entry>) {
        let none = Found { keys: BTreeMap::new(), from_ms: found.from_ms, until_ms: found.until_ms };
        let (mut of_clients, mut others) = (vec![none; self.ledgers.len()], BTreeMap::new());
        for (place, entry) in &found.keys {
            let owner = place.key.strip_prefix('c').and_then(|name| name.split_once(':'));
            let owner = owner.and_then(|(number, _)| number.parse::<usize>().ok());
            match owner.and_then(|owner| of_clients.get_mut(owner)) {
                Some(of) => of.keys.insert(place.clone(), entry.clone()),
                None => others.insert(place.clone(), entry.clone()),
            };
        }
        (of_clients, others)
    }

    /// Counts a violation and notes it.
    fn wrong(&mut self, run: u64, problem: Problem) {
        self.report.count(problem.kind, 1);
        self.violation(run, &problem);
    }

    /// Notes a violation that was counted.
    fn violation(&mut self, run: u64, problem: &Problem) {
        let kind = match problem.kind {
            Kind::Lost => "lost",
            Kind::Partial => "partial",
            Kind::WrongTtl => "wrong TTL",
            Kind::WrongAnswer => "wrong answer",
            Kind::Foreign => "foreign key",
        };
        let line = format!("run {run}, seed {}: {kind}: {}", self.args.seed, problem.text);
        self.report.describe(line);
    }

    /// Tells how far it is.
    fn progress(&mut self, run: u64) {
        let mut out = std::io::stderr();
        let (is_terminal, is_last) = (out.is_terminal(), run == self.args.runs);
        if !is_terminal && !is_last && self.last_line.elapsed() < LINE_EVERY {
            return;
        }
        self.last_line = Instant::now();
        let text = format!(
            "crash: run {run} of {}, {} commands acknowledged, {} violations",
            self.args.runs,
            self.report.acknowledged,
            self.report.violations_all()
        );
        let (before, after) =
            if is_terminal { ("\r\x1b[2K", if is_last { "\n" } else { "" }) } else { ("", "\n") };
        // Nobody watches: the drill goes on all the same.
        let _ = write!(out, "{before}{text}{after}").and_then(|()| out.flush());
    }
}

/// The queue that a client pushes to.
fn queue(number: usize) -> Place {
    Place::new(0, &format!("q{number}"))
}

impl Report {
    /// Counts a BGSAVE or a BGREWRITEAOF by its answer, if it came before the kill.
    fn note_save(&mut self, save: Option<&'static str>, answer: &std::io::Result<Frame>) {
        let Ok(Frame::Simple(_)) = answer else { return };
        match save {
            Some("BGSAVE") => self.saves += 1,
            Some(_) => self.rewrites += 1,
            None => {}
        }
    }
}

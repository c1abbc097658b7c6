//! Commands of many callers through Towline's client.
//!
//! Owns the workers: when each submits, and that a worker's commands are submitted in order with several in flight, without
//! which no client could ever change their order. Does not own which command comes next nor what its outcome means
//! ([`super::ledger`]), nor the client.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use towline_client::{Client, Cmd, Error, ErrorKind, Frame, Sent, cmd};

use super::ledger::{Chooser, Ledger, Mix, Op, Outcome, Request};
use super::timeline::Sample;
use crate::bench::{ErrorTally, Lane, LaneWalk, Schedule, Timer};

/// Commands of one run that are kept account of; a run that reaches this ends early and says so. Half a gigabyte.
pub(super) const COMMANDS_MAX: u64 = 20_000_000;

/// How long an open loop may go on behind its end to send what it owes; what is left then is counted as never sent.
const OWED_MAX: Duration = Duration::from_secs(2);

/// Submissions before a worker lets others run.
const TURN_MAX: usize = 64;

/// Shortest sleep of the pacer; what falls due meanwhile leaves together.
const PACER_SLEEP_MIN: Duration = Duration::from_micros(50);

/// What all workers have in common.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) start: Instant,
    /// When submissions end.
    pub(super) end: Duration,
    pub(super) mix: Mix,
    pub(super) seed: u64,
    /// Commands in flight per worker.
    pub(super) depth: usize,
    /// Commands per second of all workers in an open loop.
    pub(super) rate: Option<u64>,
    pub(super) counters: Counters,
}

/// What is counted while a run goes on.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) completed: AtomicU64,
    pub(super) failed: AtomicU64,
}

/// What the workers bring back.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    pub(super) samples: Vec<Sample>,
    /// By the worker's number.
    pub(super) ledgers: Vec<Ledger>,
    pub(super) errors: ErrorTally,
    /// When the first command that failed was meant to leave.
    pub(super) first_failure: Option<Duration>,
    /// Commands of an open loop that were never sent, because the client could not keep up with the rate.
    pub(super) unsent: u64,
    /// Whether the run ended early, because it reached [`COMMANDS_MAX`].
    pub(super) is_cut_short: bool,
}

impl Loaded {
    /// Notes that a command failed which was meant to leave then.
    pub(super) fn failed_at(&mut self, at: Duration) {
        self.first_failure = Some(self.first_failure.map_or(at, |first| first.min(at)));
    }
}

/// The keys of one worker.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    pub(super) number: String,
    pub(super) left: String,
    pub(super) right: String,
    pub(super) log: String,
    pub(super) register: String,
    pub(super) shared: String,
}

impl Keys {
    /// Those of worker `worker`, whose commands go through connection `connection`.
    pub(super) fn new(worker: usize, connection: usize) -> Self {
        let key = |kind: &str| format!("drill:{worker}:{kind}");
        Self {
            number: key("number"),
            left: key("left"),
            right: key("right"),
            log: key("log"),
            register: key("register"),
            shared: format!("drill:shared:{connection}"),
        }
    }

    fn cmd(&self, request: Request) -> Cmd {
        let number = request.number;
        let command = match request.op {
            Op::Incr => cmd("INCR").arg(self.number.as_str()),
            Op::Shared => cmd("INCR").arg(self.shared.as_str()),
            Op::Left => cmd("INCR").arg(self.left.as_str()),
            Op::Right => cmd("INCR").arg(self.right.as_str()),
            Op::Append => cmd("APPEND").arg(self.log.as_str()).arg(format!("{number:08x}")),
            Op::Set => cmd("SET").arg(self.register.as_str()).arg(number),
            Op::Get => cmd("GET").arg(self.register.as_str()),
        };
        command.no_retry()
    }
}

/// Runs all workers to the end of the plan, and until the last command is settled.
///
/// # Errors
/// There is no timer, or a task panicked.
pub(super) async fn run(clients: &[Client], workers: usize, plan: &Arc<Plan>) -> Result<Loaded> {
    let schedule = plan.rate.map(|rate| {
        let total = (rate as f64 * plan.end.as_secs_f64()).ceil() as u64;
        Schedule::new(rate, total.min(COMMANDS_MAX))
    });
    let commands_max = COMMANDS_MAX / workers as u64;
    let mut tasks = JoinSet::new();
    let mut wakes = Vec::with_capacity(workers);
    for number in 0..workers {
        let wake = Arc::new(Notify::new());
        wakes.push(Arc::clone(&wake));
        let connection = number % clients.len();
        let worker = Worker {
            client: clients[connection].clone(),
            keys: Keys::new(number, connection),
            chooser: Chooser::new(plan.seed, number, plan.mix),
            ledger: Ledger::default(),
            pending: VecDeque::with_capacity(plan.depth),
            samples: Vec::new(),
            errors: ErrorTally::default(),
            first_failure: None,
            plan: Arc::clone(plan),
            pacing: schedule.map(|schedule| (schedule, Lane::new(number as u64, workers as u64))),
            issued: 0,
            commands_max,
        };
        tasks.spawn(async move { (number, worker.run(&wake).await) });
    }
    let pacer = match schedule {
        Some(schedule) => Some(tokio::spawn(pace(wakes, schedule, Arc::clone(plan), Timer::new()?))),
        None => None,
    };
    let mut ended: Vec<_> = (0..workers).map(|_| None).collect();
    while let Some(worker) = tasks.join_next().await {
        let (number, worker) = worker.context("a worker's task failed")?;
        ended[number] = Some(worker);
    }
    if let Some(pacer) = pacer {
        pacer.await.context("the pacer's task failed")??;
    }
    let mut loaded = Loaded::default();
    for worker in ended.into_iter().flatten() {
        loaded.unsent += worker.owed();
        loaded.samples.extend(worker.samples);
        loaded.ledgers.push(worker.ledger);
        loaded.errors.merge(&worker.errors);
        worker.first_failure.into_iter().for_each(|at| loaded.failed_at(at));
        loaded.is_cut_short |= worker.issued >= commands_max;
    }
    Ok(loaded)
}

/// Wakes each worker when a command of its lane falls due, and all of them at the end.
async fn pace(wakes: Vec<Arc<Notify>>, schedule: Schedule, plan: Arc<Plan>, timer: Timer) -> Result<()> {
    let lanes = wakes.len() as u64;
    let mut walk = LaneWalk::new(0, lanes, lanes);
    loop {
        let now_ns = plan.start.elapsed().as_nanos() as u64;
        let (mut command, mut lane) = walk.peek();
        while command < schedule.total() && schedule.intended_ns(command) <= now_ns {
            wakes[lane].notify_one();
            walk.advance();
            (command, lane) = walk.peek();
        }
        if command >= schedule.total() {
            break;
        }
        let wait = Duration::from_nanos(schedule.intended_ns(command) - now_ns);
        timer.sleep(wait.max(PACER_SLEEP_MIN)).await?;
    }
    if let Some(rest) = plan.end.checked_sub(plan.start.elapsed()) {
        timer.sleep(rest.max(PACER_SLEEP_MIN)).await?;
    }
    wakes.iter().for_each(|wake| wake.notify_one());
    Ok(())
}

/// A command in flight.
struct Pending {
    request: Request,
    intended: Duration,
    answer: Pin<Box<dyn Future<Output = Result<Frame, Error>> + Send>>,
}

struct Worker {
    client: Client,
    keys: Keys,
    chooser: Chooser,
    ledger: Ledger,
    /// In the order of submission.
    pending: VecDeque<Pending>,
    samples: Vec<Sample>,
    errors: ErrorTally,
    first_failure: Option<Duration>,
    plan: Arc<Plan>,
    pacing: Option<(Schedule, Lane)>,
    issued: u64,
    commands_max: u64,
}

impl Worker {
    async fn run(mut self, wake: &Notify) -> Self {
        loop {
            let woken = wake.notified();
            let turn = std::future::poll_fn(|cx| self.turn(cx));
            tokio::select! {
                biased;
                () = turn => return self,
                () = woken => {}
            }
        }
    }

    /// Settles what is answered and submits what is due. Ready once nothing is in flight and nothing more will be.
    fn turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.collect(cx);
        for _ in 0..TURN_MAX {
            let now = self.plan.start.elapsed();
            let is_over = self.is_over(now);
            if is_over && self.pending.is_empty() {
                return Poll::Ready(());
            }
            let Some(intended) = self.due(now).filter(|_| !is_over && self.pending.len() < self.plan.depth)
            else {
                return Poll::Pending;
            };
            self.submit(intended, cx);
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Whether nothing more is to be submitted. An open loop owes every command of its schedule: one that came to an end with
    /// the time would leave out those that a stall has held up, and with them their latencies.
    fn is_over(&self, now: Duration) -> bool {
        if self.issued >= self.commands_max {
            return true;
        }
        self.pacing.map_or(now >= self.plan.end, |_| self.owed() == 0 || now >= self.plan.end + OWED_MAX)
    }

    /// Commands of an open loop that are still to come.
    fn owed(&self) -> u64 {
        self.pacing.map_or(0, |(schedule, lane)| lane.share(schedule.total()).saturating_sub(self.issued))
    }

    /// When the next command was meant to leave, if that is not in the future.
    fn due(&self, now: Duration) -> Option<Duration> {
        let Some((schedule, lane)) = self.pacing else { return Some(now) };
        let command = lane.global(self.issued);
        let intended = Duration::from_nanos(schedule.intended_ns(command));
        (command < schedule.total() && intended <= now).then_some(intended)
    }

    fn submit(&mut self, intended: Duration, cx: &mut Context<'_>) {
        self.issued += 1;
        let request = self.ledger.submit(self.chooser.next());
        let (command, client) = (self.keys.cmd(request), self.client.clone());
        let mut answer: Pin<Box<dyn Future<Output = _> + Send>> =
            Box::pin(async move { command.query::<Frame>(&client).await });
        // The first poll is the submission: it must not wait for those of other commands.
        match answer.as_mut().poll(cx) {
            Poll::Ready(answer) => self.settle(request, intended, answer),
            Poll::Pending => self.pending.push_back(Pending { request, intended, answer }),
        }
    }

    fn collect(&mut self, cx: &mut Context<'_>) {
        let mut place = 0;
        while let Some(pending) = self.pending.get_mut(place) {
            let Poll::Ready(answer) = pending.answer.as_mut().poll(cx) else {
                place += 1;
                continue;
            };
            let (request, intended) = (pending.request, pending.intended);
            self.pending.remove(place);
            self.settle(request, intended, answer);
        }
    }

    fn settle(&mut self, request: Request, intended: Duration, answer: Result<Frame, Error>) {
        let outcome = outcome(request.op, answer, &mut self.errors);
        self.ledger.settle(request, outcome);
        match outcome {
            Outcome::Number(_) | Outcome::Nothing => {
                self.plan.counters.completed.fetch_add(1, Ordering::Relaxed);
                self.samples.push(Sample::new(intended, self.plan.start.elapsed()));
            }
            Outcome::Refused | Outcome::Unsent | Outcome::Unknown => {
                self.plan.counters.failed.fetch_add(1, Ordering::Relaxed);
                self.first_failure = Some(self.first_failure.map_or(intended, |first| first.min(intended)));
            }
        }
    }
}

/// What an answer or an error means for the account. An answer of another kind than the command's is one that is not
/// its own.
fn outcome(op: Op, answer: Result<Frame, Error>, errors: &mut ErrorTally) -> Outcome {
    let frame = match answer {
        Ok(frame) => frame,
        Err(error) => return failure(&error, errors),
    };
    match (op, &frame) {
        (_, Frame::Error(text) | Frame::BlobError(text)) => {
            errors.add(&String::from_utf8_lossy(text), 1);
            Outcome::Refused
        }
        (Op::Set, Frame::Simple(_)) => Outcome::Number(0),
        (Op::Get, Frame::Null | Frame::NullArray) => Outcome::Nothing,
        (Op::Get, Frame::Bulk(text)) => number(text).map_or(Outcome::Number(i64::MIN), Outcome::Number),
        (Op::Incr | Op::Shared | Op::Left | Op::Right | Op::Append, Frame::Integer(value)) => {
            Outcome::Number(*value)
        }
        // No command was ever answered so: the audit finds it in its place.
        _ => Outcome::Number(i64::MIN),
    }
}

/// What an error says about a command, counted under its text.
pub(super) fn failure(error: &Error, errors: &mut ErrorTally) -> Outcome {
    let (fate, outcome) = match (error.kind(), error.sent()) {
        (ErrorKind::Server(_), _) | (_, Sent::Answered) => ("refused", Outcome::Refused),
        (_, Sent::No) => ("not sent", Outcome::Unsent),
        (_, Sent::Maybe) => ("may have run", Outcome::Unknown),
    };
    errors.add(&format!("{} ({fate})", error.kind()), 1);
    outcome
}

fn number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_and_errors_become_outcomes() {
        let mut errors = ErrorTally::default();
        let mut of = |op, answer| outcome(op, answer, &mut errors);
        assert_eq!(of(Op::Incr, Ok(Frame::Integer(7))), Outcome::Number(7));
        assert_eq!(of(Op::Get, Ok(Frame::Bulk("12".into()))), Outcome::Number(12));
        assert_eq!(of(Op::Get, Ok(Frame::Null)), Outcome::Nothing);
        assert_eq!(of(Op::Set, Ok(Frame::Simple("OK".into()))), Outcome::Number(0));
        assert_eq!(of(Op::Set, Ok(Frame::Error("OOM".into()))), Outcome::Refused);
        // An answer that belongs to another command.
        assert_eq!(of(Op::Set, Ok(Frame::Integer(3))), Outcome::Number(i64::MIN));
        assert_eq!(of(Op::Append, Ok(Frame::Bulk("x".into()))), Outcome::Number(i64::MIN));
        let lost = |sent| Err(Error::new(ErrorKind::Deadline, sent));
        assert_eq!(of(Op::Incr, lost(Sent::No)), Outcome::Unsent);
        assert_eq!(of(Op::Incr, lost(Sent::Maybe)), Outcome::Unknown);
        assert_eq!(errors.total(), 3);
        assert!(errors.by_count().iter().any(|(text, _)| text.ends_with("(may have run)")), "{errors:?}");
    }
}

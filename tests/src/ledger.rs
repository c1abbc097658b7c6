//! A workload through a faulty network, of which the fate of every command is known, and the comparison of that with what
//! the server holds in the end.
//!
//! Owns: the tasks and their commands, the record of each outcome (acknowledged, unknown, not sent), and the audit. The
//! promise under test: what was acknowledged ran once, what is unknown ran once or never, what was not sent never ran,
//! and commands of one task run in their order. Does not own the faults (`towline_faults`) nor the sockets between
//! ([`crate::fault_proxy`]).
//!
//! What may run late is counted for: bytes that a stalled network delivers after their connection was given up execute
//! whenever they arrive, behind commands that were acknowledged on the next connection.

mod audit;
mod fate;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use towline_client::transport::Target;
use towline_client::{BackoffConfig, Client, Cmd, ConnectOptions, Error, Transacted, cmd, pipe};
use towline_faults::link::Close;
use towline_sansio::Prng;

use crate::fault_proxy::FaultProxy;
use crate::process::{Server, ServerKind};
use crate::wait;
use fate::{Counter, Entries, Register, Shared};

/// What happens to connections: most live for a few hundred milliseconds, some end inside their handshake.
///
/// Garbage comes only from the server's side: inside a request it could make another valid request of it.
pub const RULES: &[&str] = &[
    "cut@rand:1..1000000",
    "reset@rand:1..600000,chance=50%",
    "cut@rand:1..600000,side=client,chance=10%",
    "cut@rand:1..600000,side=server,chance=10%",
    "cut@rand:0..400,chance=10%",
    "stall@rand:1..600000/300ms,chance=20%",
    "stall@rand:1..600000/3s,chance=4%",
    "halfopen@rand:1..600000,chance=5%",
    "split@rand:1..600000/3+17+101+1009,chance=20%",
    "delay@rand:1..600000/2ms,chance=10%",
    "garbage@s2c:rand:1..600000/rand:8,chance=5%",
    "refuse@dial,chance=5%",
    "close@dial,chance=5%",
    "busy@dial,chance=3%",
    "hang@dial,chance=2%",
];

/// Tasks that share one client.
const TASKS: usize = 32;

/// Counters that all tasks increment.
const SHARED: usize = 4;

/// Problems that are kept as text; all are counted.
const PROBLEMS_MAX: usize = 20;

/// A dial that hangs ends after this, so that it costs little of the run.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// Short, so that a run has many connections: with the defaults, connections that break within a second of coming up are
/// made more and more slowly.
const BACKOFF: BackoffConfig = BackoffConfig {
    base: Duration::from_millis(5),
    cap: Duration::from_millis(100),
    ..BackoffConfig::CLIENT
};

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The server.
    pub kind: ServerKind,
    /// For how long tasks send.
    pub duration: Duration,
    /// Of faults and workload.
    pub seed: u64,
}

/// What came of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    /// The server's name.
    pub server: &'static str,
    /// As given.
    pub seed: u64,
    /// For how long tasks sent.
    pub seconds: u64,
    /// Commands whose fate was recorded; a transaction is one.
    pub ops: u64,
    /// Of these: answered.
    pub acked: u64,
    /// Of these: possibly run, without an answer.
    pub unknown: u64,
    /// Of these: certainly not run.
    pub not_sent: u64,
    /// Fire-and-forget commands, whose fate nobody is told; among the unknown ones.
    pub unwatched: u64,
    /// Connections that the proxy saw, refused ones included.
    pub dials: u64,
    /// How often each fault happened.
    pub faults: BTreeMap<&'static str, u64>,
    /// Commands that ran twice.
    pub duplicates: u64,
    /// Unknown commands that turned out to have run, where that can be told.
    pub unknown_ran: u64,
    /// Everything that contradicts the promise, duplicates included.
    pub inconsistencies: u64,
    /// The first of them, in words.
    pub problems: Vec<String>,
}

impl Summary {
    fn tally(&mut self, acked: u64, unknown: u64, not_sent: u64) {
        self.acked += acked;
        self.unknown += unknown;
        self.not_sent += not_sent;
        self.ops += acked + unknown + not_sent;
    }

    fn problem(&mut self, text: String) {
        self.inconsistencies += 1;
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(text);
        }
    }
}

/// What all tasks write to.
#[derive(Debug, Default)]
struct Board {
    summary: Mutex<Summary>,
    shared: Mutex<[Shared; SHARED]>,
}

impl Board {
    fn problem(&self, text: String) {
        self.summary.lock().unwrap_or_else(PoisonError::into_inner).problem(text);
    }
}

/// Runs the workload and the audit.
///
/// # Errors
/// The server or the proxy cannot be started, or the server cannot be asked in the end. An inconsistency is no error:
/// see [`Summary::inconsistencies`].
pub async fn run(settings: Settings) -> anyhow::Result<Summary> {
    let server = Server::start(settings.kind, &[])?;
    let proxy = FaultProxy::start(server.address(), settings.seed, RULES).await?;
    let target = Target::tcp(proxy.address().ip().to_string(), proxy.address().port());
    let client = Client::lazy(ConnectOptions::new(target).connect_timeout(CONNECT_TIMEOUT).backoff(BACKOFF))?;
    let board = Arc::new(Board::default());
    let end = Instant::now() + settings.duration;
    let mut tasks = JoinSet::new();
    for number in 0..TASKS {
        let prng = Prng::new(settings.seed ^ (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let task = Task::new(number, prng, client.clone(), Arc::clone(&board));
        tasks.spawn(task.run(end));
    }
    let mut records = Vec::with_capacity(TASKS);
    while let Some(record) = tasks.join_next().await {
        records.push(record.context("a task panicked")?);
    }
    let (dials, faults) = (proxy.dial_count() as u64, proxy.faults());
    drop(client);
    proxy.cut_all(Close::Reset);
    drop(proxy);
    let mut board = Arc::into_inner(board).context("a task is still there")?;
    let summary = board.summary.get_mut().unwrap_or_else(PoisonError::into_inner);
    *summary = Summary {
        server: settings.kind.name(),
        seed: settings.seed,
        seconds: settings.duration.as_secs(),
        dials,
        faults,
        ..std::mem::take(summary)
    };
    let shared = board.shared.get_mut().unwrap_or_else(PoisonError::into_inner);
    let mut conn = server.connect()?;
    // What is still in the server's sockets may run until they are closed.
    let is_alone = |conn: &mut crate::conn::Conn| {
        let clients = conn.words("INFO clients").ok()?;
        let text = String::from_utf8_lossy(clients.bytes()?).into_owned();
        text.lines().any(|line| line.trim_end() == "connected_clients:1").then_some(())
    };
    wait::until_some(wait::PATIENCE, || is_alone(&mut conn)).context("clients stay connected")?;
    audit::audit(&mut conn, &records, shared, summary)?;
    Ok(std::mem::take(summary))
}

/// What one task knows of its keys in the end.
#[derive(Debug)]
struct Record {
    task: usize,
    own: Counter,
    piped: Counter,
    dropped: Counter,
    unwatched: Counter,
    pair: Counter,
    register: Register,
    entries: Entries,
}

struct Task {
    prng: Prng,
    client: Client,
    board: Arc<Board>,
    record: Record,
    shared_last: [i64; SHARED],
}

impl Task {
    fn new(task: usize, prng: Prng, client: Client, board: Arc<Board>) -> Self {
        let record = Record {
            task,
            own: Counter::default(),
            piped: Counter::default(),
            dropped: Counter::default(),
            unwatched: Counter::default(),
            pair: Counter::default(),
            register: Register::default(),
            entries: Entries::default(),
        };
        Self { prng, client, board, record, shared_last: [0; SHARED] }
    }

    async fn run(mut self, end: Instant) -> Record {
        while Instant::now() < end {
            match self.prng.below(100) {
                0..40 => self.own().await,
                40..55 => self.shared().await,
                55..63 => self.piped().await,
                63..73 => self.entry().await,
                73..83 => self.transaction().await,
                83..90 => self.register().await,
                90..95 => self.dropped().await,
                _ => self.unwatched().await,
            }
        }
        self.record
    }

    fn key(&self, kind: &str) -> String {
        format!("{kind}:{}", self.record.task)
    }

    /// Some commands have little time: what is past its deadline before it leaves is certainly not sent.
    fn hurried(&mut self, cmd: Cmd) -> Cmd {
        match self.prng.below(10) {
            0 => cmd.deadline(Duration::from_millis(1 + self.prng.below(100))),
            _ => cmd,
        }
    }

    fn check(&self, result: Result<(), String>) {
        if let Err(problem) = result {
            self.board.problem(format!("task {}: {problem}", self.record.task));
        }
    }

    async fn own(&mut self) {
        let cmd = cmd("INCR").arg(self.key("own"));
        let outcome = self.hurried(cmd).query::<i64>(&self.client).await;
        let recorded = self.record.own.record_alone(&outcome);
        self.check(recorded);
        if self.prng.below(8) == 0 {
            let read = self.client.get::<Option<i64>>(self.key("own")).await;
            if let Ok(value) = read {
                self.check(self.record.own.allows(value.unwrap_or(0)));
            }
        }
    }

    async fn shared(&mut self) {
        let which = self.prng.below(SHARED as u64) as usize;
        let cmd = cmd("INCR").arg(format!("shared:{which}"));
        let outcome = self.hurried(cmd).query::<i64>(&self.client).await;
        if let Ok(value) = outcome {
            let last = std::mem::replace(&mut self.shared_last[which], value);
            if value <= last {
                self.board.problem(format!("shared:{which} went back from {last} to {value}"));
            }
        }
        let recorded =
            self.board.shared.lock().unwrap_or_else(PoisonError::into_inner)[which].record(&outcome);
        self.check(recorded);
    }

    /// Several at once: they run in the order of submission.
    async fn piped(&mut self) {
        let key = self.key("piped");
        let incr = || cmd("INCR").arg(key.as_str()).query::<i64>(&self.client);
        let (a, b, c, d) = tokio::join!(incr(), incr(), incr(), incr());
        for outcome in [a, b, c, d] {
            let recorded = self.record.piped.record(&outcome);
            self.check(recorded);
        }
    }

    async fn entry(&mut self) {
        let id = self.record.entries.next();
        let cmd = cmd("RPUSH").arg(self.key("entries")).arg(id);
        let outcome = self.hurried(cmd).query::<i64>(&self.client).await;
        self.record.entries.record(outcome.map(drop).as_ref());
    }

    async fn transaction(&mut self) {
        let (first, second) = (self.key("pair-a"), self.key("pair-b"));
        let pipeline = pipe().cmd("INCR").arg(first).cmd("INCR").arg(second).atomic();
        let outcome: Result<i64, Error> = match pipeline.transact::<(i64, i64)>(&self.client).await {
            Ok(Transacted::Committed((a, b))) => {
                if a != b {
                    self.board.problem(format!("a torn transaction: {a} and {b}"));
                }
                Ok(a)
            }
            Ok(Transacted::Refused(answer)) => {
                self.board.problem(format!("a refused transaction: {answer}"));
                return;
            }
            // Nothing is watched here.
            Ok(Transacted::Conflict) => Err(Error::misuse("a transaction without WATCH met a conflict")),
            Ok(Transacted::Unknown(error)) | Err(error) => Err(error),
        };
        let recorded = self.record.pair.record_alone(&outcome);
        self.check(recorded);
    }

    async fn register(&mut self) {
        let (key, value) = (self.key("register"), self.record.register.next());
        let cmd = cmd("SET").arg(key.as_str()).arg(value.as_str());
        let outcome = self.hurried(cmd).query::<()>(&self.client).await;
        self.record.register.record(value, outcome.as_ref());
        if let Ok(read) = self.client.get::<Option<Bytes>>(key).await {
            self.check(self.record.register.allows(read.as_deref()));
        }
    }

    /// A future that is dropped at any moment: the command ran, or not.
    async fn dropped(&mut self) {
        let patience = Duration::from_micros(self.prng.below(3000));
        let query = cmd("INCR").arg(self.key("dropped")).query::<i64>(&self.client);
        match timeout(patience, query).await {
            Ok(outcome) => self.record.dropped.count(&outcome),
            Err(_) => self.record.dropped.unknown += 1,
        }
    }

    async fn unwatched(&mut self) {
        let cmd = cmd("INCR").arg(self.key("unwatched")).fire_and_forget();
        match cmd.query::<Option<i64>>(&self.client).await {
            // Accepted: what becomes of it is not told.
            Ok(_) => self.record.unwatched.unknown += 1,
            Err(error) => self.record.unwatched.count(&Err(error)),
        }
    }
}

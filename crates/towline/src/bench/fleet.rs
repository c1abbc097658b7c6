//! The threads of the generator and their connections.
//!
//! Owns opening connections, giving each thread its share, running one phase after the other on the same sockets, and
//! noticing that a server no longer answers. Does not own what happens on a socket (`drive`).

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use tokio::io::unix::AsyncFd;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::task::spawn_local;

use super::connection::Target;
use super::drive::{Connection, Driver, Pacing, Phase, ThreadState};
use super::keys::random_stream;
use super::reply::ReplyCounter;
use super::schedule::{Lane, LaneWalk, Schedule};
use super::tally::Tally;

/// How often progress is looked at.
const TICK: Duration = Duration::from_millis(100);

/// Shortest sleep between two due commands; what falls due meanwhile leaves together.
const PACER_SLEEP_MIN: Duration = Duration::from_micros(20);

/// A runtime for the calling thread only.
///
/// # Errors
/// When the system refuses an epoll descriptor.
pub(crate) fn runtime() -> Result<LocalRuntime> {
    Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
        .context("cannot start the event loop")
}

/// Connected threads, ready for phases.
#[derive(Debug)]
pub(crate) struct Fleet {
    workers: Vec<Worker>,
    results: Receiver<Result<Outcome>>,
    timeout: Option<Duration>,
    is_stalled: bool,
}

#[derive(Debug)]
struct Worker {
    /// Connections that still live.
    connections: u64,
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Job {
    phase: Arc<Phase>,
    /// Number of this worker's first lane, and of all lanes.
    lane_first: u64,
    lanes: u64,
}

#[derive(Debug)]
struct Outcome {
    worker: usize,
    connections: u64,
    tally: Tally,
}

impl Fleet {
    /// Opens `connections` connections on `threads` threads (no more threads than connections).
    ///
    /// # Errors
    /// When a connection cannot be opened.
    pub(crate) fn connect(target: &Target, connections: usize, threads: usize, seed: u64) -> Result<Self> {
        raise_file_limit(connections);
        let threads = threads.clamp(1, connections.max(1));
        let (report, results) = channel();
        let mut workers = Vec::with_capacity(threads);
        let mut first = 0;
        for number in 0..threads {
            let count = connections / threads + usize::from(number < connections % threads);
            let streams = first..first + count as u64;
            first += count as u64;
            let (jobs, inbox) = channel();
            let (target, report) = (target.clone(), report.clone());
            let thread = std::thread::Builder::new()
                .name(format!("bench-{number}"))
                .spawn(move || work(number, &target, streams, seed, &inbox, &report))
                .context("cannot start a thread")?;
            workers.push(Worker { connections: count as u64, jobs: Some(jobs), thread: Some(thread) });
        }
        let fleet = Self { workers, results, timeout: target.timeout(), is_stalled: false };
        for _ in 0..threads {
            fleet.results.recv().context("a thread ended early")??;
        }
        Ok(fleet)
    }

    /// Connections that still live.
    pub(crate) fn connections(&self) -> u64 {
        self.workers.iter().map(|worker| worker.connections).sum()
    }

    /// Runs `phase` to its end; `on_tick` sees the time since its start and the replies so far, ten times a second.
    ///
    /// # Errors
    /// When no reply arrives for the timeout, or no connection is left.
    pub(crate) fn run(
        &mut self,
        phase: &Arc<Phase>,
        mut on_tick: impl FnMut(Duration, u64),
    ) -> Result<Tally> {
        let lanes = self.connections();
        ensure!(lanes > 0, "the server closed every connection");
        let mut lane_first = 0;
        let mut busy = 0;
        for worker in &self.workers {
            let job = Job { phase: Arc::clone(phase), lane_first, lanes };
            lane_first += worker.connections;
            let jobs = worker.jobs.as_ref().context("invariant: the fleet is not shut down")?;
            jobs.send(job).ok().context("a thread ended early")?;
            busy += 1;
        }
        let mut total = Tally::new();
        let mut progress = (Instant::now(), 0);
        while busy > 0 {
            match self.results.recv_timeout(TICK) {
                Ok(outcome) => {
                    let outcome = outcome?;
                    self.workers[outcome.worker].connections = outcome.connections;
                    total.merge(&outcome.tally);
                    busy -= 1;
                }
                Err(RecvTimeoutError::Disconnected) => bail!("a thread ended early"),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let completed = phase.completed.load(Ordering::Relaxed);
            if completed != progress.1 {
                progress = (Instant::now(), completed);
            }
            on_tick(phase.start.elapsed(), completed);
            if let Some(limit) = self.timeout
                && progress.0.elapsed() > limit
            {
                self.is_stalled = true;
                bail!(
                    "no reply for {} s; the server hangs, or the command blocks (--timeout sets the limit)",
                    limit.as_secs()
                );
            }
        }
        Ok(total)
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            worker.jobs = None;
        }
        if self.is_stalled {
            // A thread that waits for a silent server would never be joined; it ends with the process.
            return;
        }
        for worker in &mut self.workers {
            if let Some(thread) = worker.thread.take() {
                // A panic has been printed by its own thread.
                let _ = thread.join();
            }
        }
    }
}

/// The body of a thread: connects, reports that, then runs jobs until the sender is gone.
fn work(
    number: usize,
    target: &Target,
    streams: std::ops::Range<u64>,
    seed: u64,
    inbox: &Receiver<Job>,
    report: &Sender<Result<Outcome>>,
) {
    let opened = runtime().and_then(|runtime| {
        let connections = runtime.block_on(open(target, streams, seed))?;
        Ok((runtime, connections))
    });
    let (runtime, mut connections) = match opened {
        Ok(ready) => ready,
        Err(error) => {
            // Nobody listening means that the run was given up already.
            let _ = report.send(Err(error));
            return;
        }
    };
    let ready = Outcome { worker: number, connections: connections.len() as u64, tally: Tally::new() };
    if report.send(Ok(ready)).is_err() {
        return;
    }
    while let Ok(job) = inbox.recv() {
        let outcome = runtime.block_on(run_job(&job, &mut connections)).map(|tally| Outcome {
            worker: number,
            connections: connections.len() as u64,
            tally,
        });
        if report.send(outcome).is_err() {
            return;
        }
    }
}

async fn open(target: &Target, streams: std::ops::Range<u64>, seed: u64) -> Result<Vec<Connection>> {
    let mut connections = Vec::with_capacity((streams.end - streams.start) as usize);
    for stream in streams {
        connections.push(Connection {
            stream: target.connect().await?,
            counter: ReplyCounter::default(),
            random: random_stream(seed, stream),
        });
    }
    Ok(connections)
}

/// Drives all connections of this thread through one phase; those that were lost are missing afterwards.
async fn run_job(job: &Job, connections: &mut Vec<Connection>) -> Result<Tally> {
    let count = connections.len();
    if count == 0 {
        return Ok(Tally::new());
    }
    let state = Rc::new(ThreadState::new(Arc::clone(&job.phase), count));
    let mut drivers = Vec::with_capacity(count);
    for (lane_local, connection) in connections.drain(..).enumerate() {
        let lane = Lane::new(job.lane_first + lane_local as u64, job.lanes);
        drivers.push(spawn_local(Driver::new(connection, Rc::clone(&state), lane, lane_local).run()));
    }
    let pacer = match job.phase.pacing {
        Pacing::Closed { .. } => None,
        Pacing::Open(schedule) => {
            let walk = LaneWalk::new(job.lane_first, count as u64, job.lanes);
            Some(spawn_local(pace(Rc::clone(&state), schedule, walk, job.phase.start, Timer::new()?)))
        }
    };
    for driver in drivers {
        connections.extend(driver.await.context("a connection's task failed")?);
    }
    match pacer {
        // With every connection gone there is nobody left to wake.
        Some(pacer) if connections.is_empty() => pacer.abort(),
        Some(pacer) => pacer.await.context("the pacer's task failed")??,
        None => {}
    }
    Ok(state.tally.replace(Tally::new()))
}

/// Wakes each driver when a command of its lane falls due, to the end of the schedule.
async fn pace(
    state: Rc<ThreadState>,
    schedule: Schedule,
    mut walk: LaneWalk,
    start: Instant,
    timer: Timer,
) -> Result<()> {
    loop {
        let now_ns = start.elapsed().as_nanos() as u64;
        let (mut command, mut lane) = walk.peek();
        while command < schedule.total() && schedule.intended_ns(command) <= now_ns {
            state.wake(lane);
            walk.advance();
            (command, lane) = walk.peek();
        }
        if command >= schedule.total() {
            return Ok(());
        }
        let wait = Duration::from_nanos(schedule.intended_ns(command) - now_ns);
        timer.sleep(wait.max(PACER_SLEEP_MIN)).await?;
    }
}

/// A kernel timer: tokio's own ticks once a millisecond, which is longer than many servers take to answer.
#[derive(Debug)]
pub(crate) struct Timer(AsyncFd<std::os::fd::OwnedFd>);

impl Timer {
    /// A timer on the current runtime.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub(crate) fn new() -> Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags)
            .context("cannot create a timer")?;
        #[expect(
            deprecated,
            reason = "an owned descriptor stays open and the same, which the unsafe successor leaves to its caller"
        )]
        let watched = AsyncFd::new(timer);
        Ok(Self(watched.context("cannot watch a timer")?))
    }

    /// Sleeps; a sleep of zero never ends.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) async fn sleep(&self, wait: Duration) -> Result<()> {
        let it_value = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let setting = Itimerspec { it_interval, it_value };
        rustix::time::timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &setting)
            .context("cannot set a timer")?;
        loop {
            let mut guard = self.0.readable().await.context("cannot wait for a timer")?;
            let mut expirations = [0; 8];
            match rustix::io::read(self.0.get_ref(), &mut expirations) {
                Ok(_) => {
                    guard.clear_ready();
                    return Ok(());
                }
                Err(rustix::io::Errno::AGAIN) => guard.clear_ready(),
                Err(error) => return Err(error).context("cannot read a timer"),
            }
        }
    }
}

/// Raises the limit of open files towards `connections` as far as the system allows; a limit that stays too low shows
/// as an error of the connect.
pub(crate) fn raise_file_limit(connections: usize) {
    /// Descriptors for everything that is no connection.
    const SPARE: u64 = 64;
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let wanted = connections as u64 + SPARE;
    if limit.current.is_some_and(|current| current < wanted) {
        limit.current = Some(limit.maximum.map_or(wanted, |maximum| wanted.min(maximum)));
        // The connect that goes over the limit names it, with what to do.
        let _ = rustix::process::setrlimit(rustix::process::Resource::Nofile, limit);
    }
}

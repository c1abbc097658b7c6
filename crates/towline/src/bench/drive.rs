//! One connection under load.
//!
//! Owns the measured path: claim commands, write them, count replies, record latencies. A driver is one poll function,
//! so that reading goes on while a write waits. Does not own threads (`fleet`) or send times (`schedule`).
//!
//! ```text
//!            claim + encode            all bytes taken            replies
//!   idle ------------------> writing ------------------> waiting ---------> idle
//!                               ^  (open loop: more may be due meanwhile)      |
//!                               +----------------------------------------------+
//! ```

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker, ready};
use std::time::Instant;

use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};

use towline_sansio::Prng;

use super::connection::Stream;
use super::keys::KeyPicker;
use super::reply::ReplyCounter;
use super::schedule::{Lane, Schedule};
use super::tally::Tally;
use super::workload::{Batch, CommandNumbers, Workload};

/// Bytes that one read may take. One buffer serves a whole thread, so that it stays in the cache.
const READ_BYTES: usize = 64 * 1024;

/// Idle batches that a thread keeps for reuse.
const POOL_BATCHES_MAX: usize = 64;

/// When commands leave.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pacing {
    /// A connection sends its next batch when the last one is answered.
    Closed {
        /// No batch starts after this instant.
        deadline: Option<Instant>,
    },
    /// Commands leave at their times, whatever is still open.
    Open(Schedule),
}

/// One stretch of load, shared by all threads.
#[derive(Debug)]
pub(crate) struct Phase {
    /// What is sent.
    pub(crate) workload: Arc<Workload>,
    /// To which keys.
    pub(crate) keys: Arc<KeyPicker>,
    /// When.
    pub(crate) pacing: Pacing,
    /// Commands in flight per connection.
    pub(crate) pipeline: usize,
    /// Commands in all; `u64::MAX` when only the deadline ends the phase.
    pub(crate) total: u64,
    /// The origin of every time in this phase.
    pub(crate) start: Instant,
    /// Commands handed to connections so far (closed loop).
    pub(crate) issued: AtomicU64,
    /// Replies so far, for progress.
    pub(crate) completed: AtomicU64,
}

/// A ready connection with what must survive from phase to phase.
#[derive(Debug)]
pub(crate) struct Connection {
    /// The socket.
    pub(crate) stream: Stream,
    /// The place in the reply stream.
    pub(crate) counter: ReplyCounter,
    /// The connection's own random choices.
    pub(crate) random: Prng,
}

/// What the drivers of one thread share during a phase.
#[derive(Debug)]
pub(crate) struct ThreadState {
    phase: Arc<Phase>,
    buffer: RefCell<Box<[u8]>>,
    pool: RefCell<Vec<Batch>>,
    /// Counts so far.
    pub(crate) tally: RefCell<Tally>,
    /// Who to wake when a lane's next command is due (open loop).
    wakers: RefCell<Vec<Option<Waker>>>,
}

impl ThreadState {
    /// State for `connections` drivers.
    pub(crate) fn new(phase: Arc<Phase>, connections: usize) -> Self {
        Self {
            phase,
            buffer: RefCell::new(vec![0; READ_BYTES].into_boxed_slice()),
            pool: RefCell::new(Vec::new()),
            tally: RefCell::new(Tally::new()),
            wakers: RefCell::new(vec![None; connections]),
        }
    }

    /// Wakes the driver of local lane `lane`.
    pub(crate) fn wake(&self, lane: usize) {
        if let Some(waker) = &self.wakers.borrow()[lane] {
            waker.wake_by_ref();
        }
    }
}

/// Encoded commands on their way out.
#[derive(Debug)]
struct Outgoing {
    batch: Batch,
    written: usize,
    length: usize,
}

/// Drives one connection through one phase.
#[derive(Debug)]
pub(crate) struct Driver {
    connection: Connection,
    state: Rc<ThreadState>,
    lane: Lane,
    lane_local: usize,
    outgoing: Option<Outgoing>,
    sent: u64,
    answered: u64,
    now: Instant,
    batch_start: Instant,
}

impl Driver {
    /// A driver for `connection` on `lane` of the run, which is number `lane_local` of its thread.
    pub(crate) fn new(connection: Connection, state: Rc<ThreadState>, lane: Lane, lane_local: usize) -> Self {
        let now = Instant::now();
        Self {
            connection,
            state,
            lane,
            lane_local,
            outgoing: None,
            sent: 0,
            answered: 0,
            now,
            batch_start: now,
        }
    }

    /// Runs until the phase has no more commands for this connection and everything is answered. Gives the
    /// connection back, or counts its open commands as errors when it was lost.
    pub(crate) async fn run(mut self) -> Option<Connection> {
        let outcome = poll_fn(|context| self.poll(context)).await;
        let mut tally = self.state.tally.borrow_mut();
        tally.elapsed = tally.elapsed.max(self.now.saturating_duration_since(self.state.phase.start));
        match outcome {
            Ok(()) => {
                drop(tally);
                Some(self.connection)
            }
            Err(error) => {
                tally.errors.add(&format!("connection lost: {error}"), self.in_flight().max(1));
                None
            }
        }
    }

    fn in_flight(&self) -> u64 {
        self.sent - self.answered
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if self.outgoing.is_none() {
                self.refill(context);
            }
            if self.outgoing.is_some() {
                // A blocked write must not stop the reading: the peer may be waiting for room for its replies.
                if let Poll::Ready(Err(error)) = self.poll_write(context) {
                    return Poll::Ready(Err(error));
                }
            }
            if self.in_flight() == 0 {
                return if self.is_exhausted() { Poll::Ready(Ok(())) } else { Poll::Pending };
            }
            ready!(self.poll_read(context))?;
        }
    }

    /// Whether nothing is left for this connection to send.
    fn is_exhausted(&self) -> bool {
        match self.state.phase.pacing {
            Pacing::Closed { .. } => true,
            Pacing::Open(schedule) => self.sent == self.lane.share(schedule.total()),
        }
    }

    /// Takes the next commands that may leave now, if any.
    fn refill(&mut self, context: &mut Context<'_>) {
        let state = Rc::clone(&self.state);
        let phase = &*state.phase;
        let numbers = match phase.pacing {
            Pacing::Closed { deadline } => self.claim(phase, deadline),
            Pacing::Open(schedule) => {
                self.register(context);
                self.due(phase, schedule)
            }
        };
        let Some(numbers) = numbers else { return };
        let mut batch = state.pool.borrow_mut().pop().unwrap_or_default();
        let length = phase.workload.fill(&mut batch, numbers, &phase.keys, &mut self.connection.random);
        self.sent += numbers.count as u64;
        self.outgoing = Some(Outgoing { batch, written: 0, length });
        self.batch_start = Instant::now();
    }

    /// Closed loop: a batch of the shared total, when the last one is done.
    fn claim(&self, phase: &Phase, deadline: Option<Instant>) -> Option<CommandNumbers> {
        if self.in_flight() > 0 || deadline.is_some_and(|deadline| self.now >= deadline) {
            return None;
        }
        let batch = phase.pipeline as u64;
        let first = phase.issued.fetch_add(batch, Ordering::Relaxed);
        let count = batch.min(phase.total.saturating_sub(first)) as usize;
        (count > 0).then_some(CommandNumbers { first, step: 1, count })
    }

    /// Open loop: the commands whose time has come, as far as the window allows.
    fn due(&self, phase: &Phase, schedule: Schedule) -> Option<CommandNumbers> {
        let room = phase.pipeline as u64 - self.in_flight();
        if room == 0 {
            return None;
        }
        let now_ns = phase.start.elapsed().as_nanos() as u64;
        let waiting = self.lane.share(schedule.due(now_ns)) - self.sent;
        let count = waiting.min(room) as usize;
        let first = self.lane.global(self.sent);
        (count > 0).then_some(CommandNumbers { first, step: self.lane.stride(), count })
    }

    fn register(&self, context: &Context<'_>) {
        let place = &mut self.state.wakers.borrow_mut()[self.lane_local];
        if !place.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            *place = Some(context.waker().clone());
        }
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(outgoing) = &mut self.outgoing else { return Poll::Ready(Ok(())) };
        while outgoing.written < outgoing.length {
            let rest = &outgoing.batch.bytes()[outgoing.written..outgoing.length];
            match ready!(Pin::new(&mut self.connection.stream).poll_write(context, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => outgoing.written += written,
            }
        }
        if self.connection.stream.buffers() {
            ready!(Pin::new(&mut self.connection.stream).poll_flush(context))?;
        }
        if let Some(done) = self.outgoing.take() {
            let mut pool = self.state.pool.borrow_mut();
            if pool.len() < POOL_BATCHES_MAX {
                pool.push(done.batch);
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let state = Rc::clone(&self.state);
        let mut buffer = state.buffer.borrow_mut();
        let mut into = ReadBuf::new(&mut buffer);
        ready!(Pin::new(&mut self.connection.stream).poll_read(context, &mut into))?;
        let bytes = into.filled();
        if bytes.is_empty() {
            return Poll::Ready(Err(io::Error::other("closed by the server")));
        }
        let mut tally = state.tally.borrow_mut();
        let errors = &mut tally.errors;
        let replies = self
            .connection
            .counter
            .feed(bytes, |text| errors.add(&String::from_utf8_lossy(text), 1))
            .map_err(io::Error::other)?;
        if replies > self.in_flight() {
            return Poll::Ready(Err(io::Error::other("the server sent more replies than it got commands")));
        }
        if replies > 0 {
            self.now = Instant::now();
            self.record(&mut tally, replies);
        }
        Poll::Ready(Ok(()))
    }

    /// Counts `replies` that arrived at `self.now`.
    fn record(&mut self, tally: &mut Tally, replies: u64) {
        let phase = &*self.state.phase;
        match phase.pacing {
            Pacing::Closed { .. } => {
                let latency = self.now.saturating_duration_since(self.batch_start).as_nanos() as u64;
                tally.latency.saturating_record_n(latency, replies);
            }
            Pacing::Open(schedule) => {
                let now_ns = self.now.saturating_duration_since(phase.start).as_nanos() as u64;
                for index in self.answered..self.answered + replies {
                    let intended = schedule.intended_ns(self.lane.global(index));
                    tally.latency.saturating_record(now_ns.saturating_sub(intended));
                }
            }
        }
        self.answered += replies;
        tally.replies += replies;
        phase.completed.fetch_add(replies, Ordering::Relaxed);
    }
}

//! The faults of one connection: bytes in on both sides, actions out.
//!
//! ```text
//! push(client's bytes) ──> c2s lane: queue ─ triggers ─ stall, delay, rate, split, swallow ──> Forward, Finish
//! push(server's bytes) ──> s2c lane: queue ─ triggers ─ stall, delay, rate, split, swallow ──> Forward, Finish
//!                                        └── cut, reset ──> Close
//! ```
//!
//! Owns: what has passed in each direction, what waits, and when which fault happens. Does **not** own sockets: the
//! driver reads, pushes, and does what the actions say. Does not own which rules apply: [`crate::plan`] arms them.
//!
//! # How to drive it
//!
//! Push what was read, at most [`Link::room`] bytes, and [`Link::finish`] when a side has ended. After each input,
//! and when [`Link::poll_timeout`] has come, take actions until [`Link::poll`] gives none. Without room, do not read: that
//! is how a stall reaches the sender. Drop the connection when [`Link::is_over`].

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use towline_sansio::{Instant, Prng};

use crate::rule::{Direction, Side, StreamFault};

/// Default bound of the bytes that wait in one direction: 256 KiB, about what the kernel's buffers of a connection take, so
/// that a stalled link feels like a stalled network.
pub const BUFFER_BYTES_MAX: usize = 256 * 1024;

/// How a socket is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Close {
    /// With a FIN.
    Fin,
    /// With a RST.
    Reset,
}

/// What the driver has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Deliver these bytes, in one write: of a split, each piece is one action.
    Forward {
        /// Where they go.
        direction: Direction,
        /// Never empty.
        bytes: Bytes,
    },
    /// Everything of this direction is delivered and its sender has ended: end the receiver's half too.
    Finish {
        /// The direction that has ended.
        direction: Direction,
    },
    /// Close these sockets.
    Close {
        /// Which.
        side: Side,
        /// How.
        how: Close,
    },
    /// A rule's fault happens here; the actions that make it follow. For the record only.
    Fault(Fired),
}

/// A fault that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fired {
    /// The rule's place in its plan, from 0.
    pub rule: usize,
    /// The connection's number, from 1.
    pub connection: u64,
    /// What happens.
    pub fault: StreamFault,
    /// In which direction.
    pub direction: Direction,
    /// How many bytes of that direction had passed.
    pub offset: u64,
    /// When.
    pub at: Instant,
}

/// When an armed fault happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Offset(u64),
    At(Instant),
}

/// A rule's fault for this connection, with its random choices made.
#[derive(Clone, Debug)]
pub(crate) struct Armed {
    pub(crate) rule: usize,
    pub(crate) direction: Direction,
    pub(crate) when: When,
    pub(crate) fault: StreamFault,
    /// The bytes of garbage.
    pub(crate) garbage: Bytes,
    /// What choices during the connection's life follow from.
    pub(crate) seed: u64,
    /// How often it may still happen, over all connections of the plan.
    pub(crate) left: Option<Arc<AtomicU64>>,
}

/// Takes one of the times that something may still happen; false if none is left.
pub(crate) fn take_one(left: Option<&Arc<AtomicU64>>) -> bool {
    let one_less = |left: u64| left.checked_sub(1);
    left.is_none_or(|left| left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok())
}

/// Until when nothing passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stalled {
    No,
    Until(Instant),
    ForEver,
}

impl Stalled {
    /// When it ends; `None` is never.
    const fn end(self) -> Option<Instant> {
        match self {
            Self::No => Some(Instant::ZERO),
            Self::Until(end) => Some(end),
            Self::ForEver => None,
        }
    }
}

/// Pieces of a split.
#[derive(Debug)]
struct Pieces {
    sizes: Vec<NonZeroU32>,
    gap: Duration,
    /// Which size is next.
    at: usize,
    /// Not before this.
    next: Instant,
}

/// How much later bytes arrive.
#[derive(Debug)]
struct Delay {
    time: Duration,
    jitter: Duration,
    prng: Prng,
    /// The delay of what is first in line.
    drawn: Duration,
}

impl Delay {
    fn new(time: Duration, jitter: Duration, seed: u64) -> Self {
        let mut delay = Self { time, jitter, prng: Prng::new(seed), drawn: Duration::ZERO };
        delay.draw();
        delay
    }

    /// Somebody else is first in line.
    fn draw(&mut self) {
        let jitter_us = u64::try_from(self.jitter.as_micros()).unwrap_or(u64::MAX / 2);
        let more = self.prng.below(jitter_us.saturating_mul(2).saturating_add(1));
        self.drawn = (self.time + Duration::from_micros(more)).saturating_sub(self.jitter);
    }
}

/// How long a line that is slower than its rate may catch up. 10 ms: timers of drivers are a few milliseconds late.
const RATE_SLACK: Duration = Duration::from_millis(10);

/// A narrow line.
#[derive(Debug)]
struct Rate {
    bytes_per_second: NonZeroU64,
    /// When it has room again.
    next: Instant,
}

impl Rate {
    /// The largest piece: a hundredth of a second, so that a slow line trickles.
    fn piece_bytes_max(&self) -> u64 {
        (self.bytes_per_second.get() / 100).max(1)
    }

    /// Bytes have passed.
    fn take(&mut self, now: Instant, bytes: usize) {
        let ns = u128::from(bytes as u64) * 1_000_000_000 / u128::from(self.bytes_per_second.get());
        let busy = Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX));
        let earliest = Instant::ZERO + now.since(Instant::ZERO).saturating_sub(RATE_SLACK);
        self.next = self.next.max(earliest) + busy;
    }
}

/// One direction.
#[derive(Debug)]
struct Lane {
    /// With the time of arrival.
    queue: VecDeque<(Instant, Bytes)>,
    queued_bytes: usize,
    /// Bytes that have passed, those swallowed included.
    passed: u64,
    /// In the order of the rules.
    armed: Vec<Armed>,
    stalled: Stalled,
    delay: Option<Delay>,
    rate: Option<Rate>,
    pieces: Option<Pieces>,
    is_swallowed: bool,
    /// The sender has ended, when and how.
    end: Option<(Instant, Close)>,
    /// The end has been passed on, or dropped.
    is_done: bool,
}

impl Lane {
    fn new(armed: Vec<Armed>) -> Self {
        Self {
            queue: VecDeque::new(),
            queued_bytes: 0,
            passed: 0,
            armed,
            stalled: Stalled::No,
            delay: None,
            rate: None,
            pieces: None,
            is_swallowed: false,
            end: None,
            is_done: false,
        }
    }

    /// When the next thing may pass; `None` if there is none, or never.
    fn next_pass(&self) -> Option<Instant> {
        let (arrived, is_bytes) = match (self.queue.front(), self.end) {
            (Some((arrived, _)), _) => (*arrived, true),
            (None, Some((ended, _))) if !self.is_done => (ended, false),
            (None, _) => return None,
        };
        let mut due = arrived + self.delay.as_ref().map_or(Duration::ZERO, |delay| delay.drawn);
        if is_bytes {
            let gap = self.pieces.as_ref().map(|pieces| pieces.next);
            let room = self.rate.as_ref().map(|rate| rate.next);
            due = gap.into_iter().chain(room).fold(due, Instant::max);
        }
        self.stalled.end().map(|end| due.max(end))
    }

    /// When the first fault that waits for a time happens, or one that waits for the end of a stall.
    fn next_fault(&self, is_silent: bool) -> Option<Instant> {
        let times = self.armed.iter().filter_map(|armed| match armed.when {
            When::At(at) => Some(at),
            When::Offset(offset) if offset <= self.passed && !is_silent => self.stalled.end(),
            When::Offset(_) => None,
        });
        times.min()
    }

    /// How many bytes may pass at once: up to the next trigger, and one piece.
    fn pass_bytes_max(&self) -> usize {
        let triggers = self.armed.iter().filter_map(|armed| match armed.when {
            When::Offset(offset) => offset.checked_sub(self.passed),
            When::At(_) => None,
        });
        let piece = self.pieces.as_ref().map(|pieces| u64::from(pieces.sizes[pieces.at].get()));
        let narrow = self.rate.as_ref().map(Rate::piece_bytes_max);
        let most = triggers.chain(piece).chain(narrow).min().unwrap_or(u64::MAX);
        usize::try_from(most).unwrap_or(usize::MAX)
    }

    /// The next bytes that pass at `now`.
    fn pass(&mut self, now: Instant) -> Option<Bytes> {
        let most = self.pass_bytes_max();
        let (_, front) = self.queue.front_mut()?;
        let bytes = if front.len() > most {
            front.split_to(most)
        } else {
            if let Some(delay) = &mut self.delay {
                delay.draw();
            }
            self.queue.pop_front().map(|(_, bytes)| bytes)?
        };
        if let Some(rate) = &mut self.rate {
            rate.take(now, bytes.len());
        }
        self.queued_bytes -= bytes.len();
        self.passed += bytes.len() as u64;
        if let Some(pieces) = &mut self.pieces {
            pieces.at = (pieces.at + 1) % pieces.sizes.len();
            pieces.next = now + pieces.gap;
        }
        Some(bytes)
    }

    /// Ends what this direction suffers, and puts other faults in place of those that wait.
    fn rearm(&mut self, armed: Vec<Armed>) {
        self.armed = armed;
        for armed in &mut self.armed {
            if let When::Offset(offset) = &mut armed.when {
                *offset = offset.saturating_add(self.passed);
            }
        }
        self.stalled = Stalled::No;
        (self.delay, self.rate, self.pieces) = (None, None, None);
        self.is_swallowed = false;
    }
}

/// One connection through faults.
#[derive(Debug)]
pub struct Link {
    connection: u64,
    opened: Instant,
    lanes: [Lane; 2],
    buffer_bytes_max: usize,
    /// Actions that are decided and not taken yet.
    ready: VecDeque<Action>,
    /// The sockets that a fault has closed: the client's, the server's.
    is_closed: [bool; 2],
    is_silent: bool,
}

/// The place of a direction's lane.
const fn index(direction: Direction) -> usize {
    match direction {
        Direction::ClientToServer => 0,
        Direction::ServerToClient => 1,
    }
}

/// The place, in [`Link::is_closed`], of the socket whose bytes go this way: the client's stands first, as its lane does.
const fn sender(direction: Direction) -> usize {
    index(direction)
}

/// The place of the socket that gets them.
const fn receiver(direction: Direction) -> usize {
    1 - index(direction)
}

/// Faults of requests, and of replies.
fn by_direction(armed: Vec<Armed>) -> [Vec<Armed>; 2] {
    let (requests, replies) =
        armed.into_iter().partition(|armed| armed.direction == Direction::ClientToServer);
    [requests, replies]
}

impl Link {
    /// A connection without faults.
    pub fn clear(connection: u64) -> Self {
        Self::new(connection, Instant::ZERO, Vec::new(), BUFFER_BYTES_MAX)
    }

    pub(crate) fn new(connection: u64, opened: Instant, armed: Vec<Armed>, buffer_bytes_max: usize) -> Self {
        Self {
            connection,
            opened,
            lanes: by_direction(armed).map(Lane::new),
            buffer_bytes_max,
            ready: VecDeque::new(),
            is_closed: [false; 2],
            is_silent: false,
        }
    }

    /// The connection's number, from 1.
    pub fn connection(&self) -> u64 {
        self.connection
    }

    /// When it was opened.
    pub fn opened(&self) -> Instant {
        self.opened
    }

    /// Other faults, whose offsets count from here on; see [`crate::plan::Plan::rearm`].
    pub(crate) fn rearm(&mut self, armed: Vec<Armed>) {
        self.is_silent = false;
        for ((lane, armed), is_closed) in self.lanes.iter_mut().zip(by_direction(armed)).zip(self.is_closed) {
            lane.rearm(if is_closed { Vec::new() } else { armed });
        }
    }

    /// How many bytes of a direction have passed.
    pub fn passed(&self, direction: Direction) -> u64 {
        self.lanes[index(direction)].passed
    }

    /// How many bytes [`Self::push`] takes now. 0: do not read from that side.
    pub fn room(&self, direction: Direction) -> usize {
        if self.is_silent || self.is_closed[sender(direction)] {
            return 0;
        }
        self.buffer_bytes_max.saturating_sub(self.lanes[index(direction)].queued_bytes)
    }

    /// Whether nothing passes any more while the sockets stay open (`halfopen`).
    pub fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// Whether nothing is left to do: the driver drops both sockets.
    pub fn is_over(&self) -> bool {
        self.ready.is_empty()
            && Direction::BOTH.into_iter().all(|direction| {
                let lane = &self.lanes[index(direction)];
                lane.is_done || self.is_closed[sender(direction)] || (self.is_silent && lane.end.is_some())
            })
    }

    /// Takes what arrived from a direction's sender, as far as there is room; how many bytes it took.
    pub fn push(&mut self, now: Instant, direction: Direction, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(self.room(direction));
        let lane = &mut self.lanes[index(direction)];
        if taken > 0 && lane.end.is_none() {
            lane.queue.push_back((now, Bytes::copy_from_slice(&bytes[..taken])));
            lane.queued_bytes += taken;
        }
        taken
    }

    /// The sender of a direction has ended. It is passed on behind the bytes that wait, a reset as a reset.
    pub fn finish(&mut self, now: Instant, direction: Direction, how: Close) {
        let lane = &mut self.lanes[index(direction)];
        if lane.end.is_none() {
            lane.end = Some((now, how));
        }
    }

    /// Closes both sockets from outside the rules. What waits is dropped.
    pub fn close(&mut self, how: Close) {
        if !self.is_over() {
            self.close_side(Side::Both, how);
        }
    }

    /// The next thing to do.
    pub fn poll(&mut self, now: Instant) -> Option<Action> {
        loop {
            if let Some(action) = self.ready.pop_front() {
                return Some(action);
            }
            if self.is_closed == [true; 2] {
                return None;
            }
            if self.fire(now) {
                continue;
            }
            if self.is_silent {
                return None;
            }
            let due = Direction::BOTH
                .into_iter()
                .find(|direction| self.lanes[index(*direction)].next_pass().is_some_and(|at| at <= now))?;
            self.step(now, due);
        }
    }

    /// When to call [`Self::poll`] next, if nothing is pushed before.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.is_closed == [true; 2] {
            return None;
        }
        let faults = self.lanes.iter().filter_map(|lane| lane.next_fault(self.is_silent));
        let passes = self.lanes.iter().filter(|_| !self.is_silent).filter_map(Lane::next_pass);
        faults.chain(passes).min()
    }

    /// Lets the next bytes of a direction pass, or its end.
    fn step(&mut self, now: Instant, direction: Direction) {
        let is_receiver_closed = self.is_closed[receiver(direction)];
        let lane = &mut self.lanes[index(direction)];
        if let Stalled::Until(_) = lane.stalled {
            // It was due, so the stall is over.
            lane.stalled = Stalled::No;
        }
        if let Some(bytes) = lane.pass(now) {
            if !lane.is_swallowed && !is_receiver_closed {
                self.ready.push_back(Action::Forward { direction, bytes });
            }
            return;
        }
        lane.is_done = true;
        match lane.end {
            Some((_, Close::Reset)) if !is_receiver_closed => {
                let side = if direction == Direction::ClientToServer { Side::Server } else { Side::Client };
                self.is_closed = [true; 2];
                self.ready.push_back(Action::Close { side, how: Close::Reset });
            }
            Some((_, Close::Fin)) if !is_receiver_closed => {
                self.ready.push_back(Action::Finish { direction })
            }
            _ => {}
        }
    }

    /// Makes the first fault happen whose place or time has come; false if there is none.
    fn fire(&mut self, now: Instant) -> bool {
        for direction in Direction::BOTH {
            let lane = &mut self.lanes[index(direction)];
            let passed = lane.passed;
            // A direction that does not move reaches no place: of two faults at one place, the second waits for the stall.
            let is_moving = !self.is_silent && lane.stalled.end().is_some_and(|end| end <= now);
            let due = lane.armed.iter().position(|armed| match armed.when {
                When::Offset(offset) => is_moving && offset <= passed,
                When::At(at) => at <= now,
            });
            let Some(due) = due else { continue };
            let armed = lane.armed.remove(due);
            if take_one(armed.left.as_ref()) {
                self.apply(now, armed);
            }
            return true;
        }
        false
    }

    fn apply(&mut self, now: Instant, armed: Armed) {
        let direction = armed.direction;
        let lane = &mut self.lanes[index(direction)];
        self.ready.push_back(Action::Fault(Fired {
            rule: armed.rule,
            connection: self.connection,
            fault: armed.fault.clone(),
            direction,
            offset: lane.passed,
            at: now,
        }));
        match armed.fault {
            StreamFault::Cut { side } => self.close_side(side, Close::Fin),
            StreamFault::Reset { side } => self.close_side(side, Close::Reset),
            StreamFault::Stall(duration) => {
                lane.stalled = duration.map_or(Stalled::ForEver, |duration| Stalled::Until(now + duration));
            }
            StreamFault::Split { sizes, gap } => {
                lane.pieces = Some(Pieces { sizes, gap, at: 0, next: now });
            }
            StreamFault::Delay { time, jitter } => lane.delay = Some(Delay::new(time, jitter, armed.seed)),
            StreamFault::Rate(bytes_per_second) => lane.rate = Some(Rate { bytes_per_second, next: now }),
            StreamFault::HalfOpen => self.is_silent = true,
            StreamFault::Swallow => lane.is_swallowed = true,
            StreamFault::Garbage(_) => {
                if !self.is_closed[receiver(direction)] && !armed.garbage.is_empty() {
                    self.ready.push_back(Action::Forward { direction, bytes: armed.garbage });
                }
            }
        }
    }

    fn close_side(&mut self, side: Side, how: Close) {
        let [client, server] = self.is_closed;
        let (client, server) = match side {
            Side::Both => (!client, !server),
            Side::Client => (!client, false),
            Side::Server => (false, !server),
        };
        let side = match (client, server) {
            (true, true) => Side::Both,
            (true, false) => Side::Client,
            (false, true) => Side::Server,
            (false, false) => return,
        };
        self.ready.push_back(Action::Close { side, how });
        for (closed, sender) in [(client, Direction::ClientToServer), (server, Direction::ServerToClient)] {
            if closed {
                self.is_closed[index(sender)] = true;
                let lane = &mut self.lanes[index(sender)];
                lane.queue.clear();
                lane.queued_bytes = 0;
                lane.armed.clear();
            }
        }
    }
}

//! The node that gives the slots away.
//!
//! Owns: when to dial, what to send, when to park and to let go again, and what to propose. Does **not** own the stream, the link, the log or
//! the slots.
//!
//! ```text
//! Connecting -> Greeting -> Streaming -> Parking -> Draining -> HandingOver -> Committing -> Over
//!      ^            |           |           |          |             |              |
//!      +-- link lost, attempts left --------+----------+-------------+              |
//!                   +-- no attempt left, the target gives up, too long --> Ending --+--> Over
//! ```
//!
//! The slots are parked from `Parking` on. Every way back to `Connecting` or to `Ending` lets them go on: the commit was not proposed.
//! `Committing` has no way back: only the log leads out of it.

use super::wire::{CHUNK_BYTES_MAX, Frame};
use super::{Config, Decision, Liveness, Proposal, Status, StreamBatch, VERSION};
use crate::id::NodeId;
use bytes::Bytes;
use std::collections::VecDeque;
use std::time::Duration;
use towline_sansio::Instant;

/// What happened. Events of links, streams and parking carry the attempt that they belong to; those of an earlier one are ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceEvent {
    /// The link to the target is there.
    Connected(u32),
    /// It could not be made, or is gone, for this reason.
    Lost(u32, String),
    /// The target said this.
    Frame(u32, Frame),
    /// The stream gave this, and so many bytes wait in it.
    Fetched(u32, StreamBatch, u64),
    /// The stream, which was empty, has something again.
    StreamReady(u32),
    /// The stream was closed, because too much waited in it.
    Overrun(u32),
    /// No command is running on any of the slots, and none will be: all that were are in the stream.
    Parked(u32),
    /// A proposal has no outcome, or it is not known. One with an outcome is reported by [`SourceEvent::Decided`].
    ProposalFailed,
    /// The log has decided, and this node has applied it: the owner that its slot gate goes by is the new one.
    Decided(Decision),
}

/// What is to be done, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceAction {
    /// Connect to the target. Report [`SourceEvent::Connected`] or [`SourceEvent::Lost`].
    Dial(u32),
    /// Send this on the attempt's link.
    Send(u32, Frame),
    /// Close the attempt's link, once what was sent before is written.
    Close(u32),
    /// Open the stream of the slots: snapshot and tail, positions from 0.
    OpenStream(u32),
    /// Take the stream's next batch, even if it is empty. Report [`SourceEvent::Fetched`] or [`SourceEvent::Overrun`].
    Fetch(u32),
    /// Close the stream.
    CloseStream(u32),
    /// Park the slots: nothing that reads or changes them begins to run, commands on whole databases included (`FLUSHALL` would be undone by
    /// the target's copy). Report [`SourceEvent::Parked`].
    Park(u32),
    /// Let the commands that wait go on: where, the slot gate says.
    Unpark,
    /// Put this into the log. Report [`SourceEvent::ProposalFailed`] if it has no outcome.
    Propose(Proposal),
    /// The slots are the target's: free their keys.
    DropSlots,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Dialled.
    Connecting,
    /// `Hello` is sent.
    Greeting,
    /// Snapshot and tail are sent.
    Streaming,
    /// The slots are being parked; what is in the stream is sent meanwhile.
    Parking,
    /// They are parked, and the rest is sent.
    Draining,
    /// `Final` is sent.
    HandingOver,
    /// The commit is proposed, or may have been: the log decides.
    Committing,
    /// The end is proposed, and the commit never was.
    Ending,
    /// The log has decided.
    Over(Decision),
}

/// What is sent and acknowledged in one attempt.
#[derive(Debug, Clone, Default)]
struct Sending {
    window: u64,
    is_fetching: bool,
    is_stream_empty: bool,
    is_snapshot_done: bool,
    waiting_bytes: u64,
    sent_bytes: u64,
    acked_bytes: u64,
    sent_position: u64,
    acked_position: u64,
    /// Batches are not fetched before, because of [`Config::bytes_per_second`].
    paced_until: Instant,
    /// When the snapshot was complete.
    following_since: Instant,
    /// Where a measurement of the rate began, and how much was acknowledged then.
    measured_from: (Instant, u64),
    bytes_per_second: u64,
}

/// One migration, at its source.
#[derive(Debug)]
pub struct Source {
    id: NodeId,
    me: NodeId,
    config: Config,
    state: State,
    attempt: u32,
    is_connected: bool,
    has_stream: bool,
    is_parked: bool,
    liveness: Liveness,
    /// When the present state has lasted too long.
    deadline: Instant,
    wanted: Option<Proposal>,
    propose_at: Option<Instant>,
    sending: Sending,
    message: String,
    actions: VecDeque<SourceAction>,
}

/// The shortest time over which a rate is measured: over less, a single acknowledgement would say nothing.
const RATE_MEASURED_OVER: Duration = Duration::from_millis(20);

impl Source {
    /// A migration that the log has begun because this process asked for it: of any other it cannot know what an earlier process has
    /// proposed, see [`Self::after_restart`]. `me`: this node.
    pub fn new(id: NodeId, me: NodeId, config: Config, now: Instant) -> Self {
        let mut source = Self {
            id,
            me,
            config,
            state: State::Connecting,
            attempt: 0,
            is_connected: false,
            has_stream: false,
            is_parked: false,
            liveness: Liveness::new(now),
            deadline: Instant::FAR,
            wanted: None,
            propose_at: None,
            sending: Sending::default(),
            message: String::new(),
            actions: VecDeque::new(),
        };
        source.begin(now);
        source
    }

    /// A migration that an earlier process of this node may have worked on, and about which the log said nothing final when this one had
    /// caught up with it. The caller has parked the slots before any command ran on them: the commit may have been proposed.
    pub fn after_restart(id: NodeId, me: NodeId, config: Config, now: Instant) -> Self {
        let mut source = Self::new(id, me, config, now);
        source.actions.clear();
        source.is_parked = true;
        source.state = State::Committing;
        source.deadline = Instant::FAR;
        source.message = "The source was restarted".into();
        source.propose(Proposal::End(source.message.clone()));
        source
    }

    /// What is to be done next; `None` if nothing is.
    pub fn poll_action(&mut self) -> Option<SourceAction> {
        self.actions.pop_front()
    }

    /// When [`Self::handle_timeout`] is to be called; `None` if nothing is awaited by time.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if let State::Over(_) = self.state {
            return None;
        }
        let mut at = self.deadline.min(self.propose_at.unwrap_or(Instant::FAR));
        if self.is_connected {
            at = at.min(self.liveness.keepalive_at(&self.config)).min(self.liveness.silent_at(&self.config));
        }
        if self.may_fetch() {
            at = at.min(self.sending.paced_until);
        }
        if self.state == State::Streaming && self.sending.is_snapshot_done {
            at = at.min(self.sending.following_since + self.config.follow_max);
        }
        (at != Instant::FAR).then_some(at)
    }

    /// How far it has come.
    pub fn status(&self) -> Status<'_> {
        let state = match self.state {
            State::Connecting => "connecting",
            State::Greeting => "reading-establish-response",
            State::Streaming if !self.sending.is_snapshot_done => "snapshotting",
            State::Streaming => "replicating",
            State::Parking => "waiting-to-pause",
            State::Draining | State::HandingOver => "failover-paused",
            State::Committing => "failover-granted",
            State::Ending | State::Over(Decision::Ended) => "failed",
            State::Over(Decision::Committed) => "success",
        };
        Status {
            state,
            message: &self.message,
            heard: (self.sending.window > 0).then_some(self.liveness.heard),
            bytes_done: self.sending.acked_bytes,
            bytes_remaining: self.tail_bytes(),
        }
    }

    /// What the log said; `None` until it has.
    pub fn decision(&self) -> Option<Decision> {
        match self.state {
            State::Over(decision) => Some(decision),
            State::Connecting
            | State::Greeting
            | State::Streaming
            | State::Parking
            | State::Draining
            | State::HandingOver
            | State::Committing
            | State::Ending => None,
        }
    }

    /// Something happened.
    pub fn handle(&mut self, now: Instant, event: SourceEvent) {
        if let State::Over(_) = self.state {
            return;
        }
        match event {
            SourceEvent::Decided(decision) => self.decided(decision),
            SourceEvent::ProposalFailed => self.propose_at = Some(now + self.config.retry_after),
            SourceEvent::Connected(attempt) if self.is_now(attempt) => self.connected(now),
            SourceEvent::Lost(attempt, reason) if self.is_now(attempt) => self.lost(now, reason),
            SourceEvent::Frame(attempt, frame) if self.is_now(attempt) => {
                self.liveness.heard = now;
                self.frame(now, frame);
            }
            SourceEvent::Fetched(attempt, batch, waiting) if self.is_now(attempt) && self.has_stream => {
                self.fetched(now, batch, waiting);
            }
            SourceEvent::StreamReady(attempt) if self.is_now(attempt) => {
                self.sending.is_stream_empty = false;
                self.pump(now);
            }
            SourceEvent::Overrun(attempt) if self.is_now(attempt) && self.has_stream => {
                self.has_stream = false;
                self.lost(now, "Too many writes waited to be sent".into());
            }
            SourceEvent::Parked(attempt) if self.is_now(attempt) && self.state == State::Parking => {
                self.state = State::Draining;
                // Whatever ran until now is in the stream, though nobody said so yet.
                self.sending.is_stream_empty = false;
                self.pump(now);
            }
            SourceEvent::Connected(_)
            | SourceEvent::Lost(..)
            | SourceEvent::Frame(..)
            | SourceEvent::Fetched(..)
            | SourceEvent::StreamReady(_)
            | SourceEvent::Overrun(_)
            | SourceEvent::Parked(_) => {}
        }
    }

    /// Time has passed; harmless if called too early.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let State::Over(_) = self.state {
            return;
        }
        if self.propose_at.is_some_and(|at| at <= now) {
            self.propose_at = None;
            if let Some(wanted) = self.wanted.clone() {
                self.actions.push_back(SourceAction::Propose(wanted));
            }
        }
        if self.is_connected && self.liveness.silent_at(&self.config) <= now {
            let reason = format!("The target was silent for {:?}", self.config.silence_max);
            self.lost(now, reason);
        }
        if self.deadline <= now {
            self.late(now);
        }
        if self.is_connected && self.liveness.keepalive_at(&self.config) <= now {
            self.send(now, Frame::Keepalive);
        }
        self.maybe_park(now);
        self.pump(now);
    }

    fn is_now(&self, attempt: u32) -> bool {
        attempt == self.attempt && !matches!(self.state, State::Ending | State::Over(_))
    }

    // ---- attempts -------------------------------------------------------------------------------------------------

    fn begin(&mut self, now: Instant) {
        self.attempt += 1;
        self.sending = Sending::default();
        self.state = State::Connecting;
        self.deadline = now + self.config.connect_max;
        self.actions.push_back(SourceAction::Dial(self.attempt));
    }

    /// Nothing of this attempt is left, and the slots go on: only called when the commit was not proposed.
    fn give_up_attempt(&mut self) {
        self.close();
        if self.is_parked {
            self.is_parked = false;
            self.actions.push_back(SourceAction::Unpark);
        }
    }

    fn close(&mut self) {
        if self.has_stream {
            self.has_stream = false;
            self.actions.push_back(SourceAction::CloseStream(self.attempt));
        }
        // Also while it is being dialled.
        self.is_connected = false;
        self.actions.push_back(SourceAction::Close(self.attempt));
    }

    fn lost(&mut self, now: Instant, reason: String) {
        self.is_connected = false;
        if self.state == State::Committing {
            return;
        }
        if self.attempt >= self.config.attempts_max {
            return self.fail(now, format!("Connection lost to target: {reason}"));
        }
        self.give_up_attempt();
        self.message = reason;
        self.begin(now);
    }

    fn fail(&mut self, now: Instant, reason: String) {
        if self.state == State::Committing {
            return;
        }
        if self.is_connected {
            self.send(now, Frame::Abort { reason: reason.clone() });
        }
        self.give_up_attempt();
        self.state = State::Ending;
        self.deadline = Instant::FAR;
        self.message = reason;
        self.propose(Proposal::End(self.message.clone()));
    }

    fn late(&mut self, now: Instant) {
        self.deadline = Instant::FAR;
        match self.state {
            State::Connecting | State::Greeting => {
                self.lost(now, format!("No answer for {:?}", self.config.connect_max));
            }
            State::Parking | State::Draining | State::HandingOver => {
                let reason = format!("The target did not take over within {:?}", self.config.handover_max);
                self.fail(now, reason);
            }
            State::Committing => {
                // The slots stay parked: of this and the commit the log has one first, and says which.
                self.message = format!("The commit was not decided within {:?}", self.config.handover_max);
                self.propose(Proposal::End(self.message.clone()));
            }
            State::Streaming | State::Ending | State::Over(_) => {}
        }
    }

    fn propose(&mut self, proposal: Proposal) {
        self.wanted = Some(proposal.clone());
        self.propose_at = None;
        self.actions.push_back(SourceAction::Propose(proposal));
    }

    fn decided(&mut self, decision: Decision) {
        self.close();
        self.state = State::Over(decision);
        if decision == Decision::Committed {
            self.message.clear();
        }
        if self.is_parked {
            self.is_parked = false;
            self.actions.push_back(SourceAction::Unpark);
        }
        if decision == Decision::Committed {
            self.actions.push_back(SourceAction::DropSlots);
        }
    }

    // ---- the link -------------------------------------------------------------------------------------------------

    fn send(&mut self, now: Instant, frame: Frame) {
        self.liveness.sent = now;
        self.actions.push_back(SourceAction::Send(self.attempt, frame));
    }

    fn connected(&mut self, now: Instant) {
        if self.state != State::Connecting {
            return;
        }
        self.is_connected = true;
        self.liveness = Liveness::new(now);
        self.state = State::Greeting;
        let (migration, source, attempt) = (self.id, self.me, self.attempt);
        self.send(now, Frame::Hello { version: VERSION, migration, source, attempt });
    }

    fn frame(&mut self, now: Instant, frame: Frame) {
        if self.state == State::Committing {
            // What the target says changes nothing any more.
            return;
        }
        match (self.state, frame) {
            (_, Frame::Keepalive) => {}
            (_, Frame::Abort { reason }) => self.fail(now, format!("The target gave up: {reason}")),
            (State::Greeting, Frame::Welcome { version: VERSION, window }) => {
                self.sending.window = window.min(self.config.window_bytes).max(1);
                self.sending.measured_from = (now, 0);
                self.state = State::Streaming;
                self.deadline = Instant::FAR;
                self.has_stream = true;
                self.actions.push_back(SourceAction::OpenStream(self.attempt));
                self.pump(now);
            }
            (
                State::Streaming | State::Parking | State::Draining | State::HandingOver,
                Frame::Ack { position, bytes },
            ) if self.is_progress(position, bytes) => {
                self.sending.acked_bytes = bytes;
                self.sending.acked_position = position;
                self.measure(now);
                self.maybe_park(now);
                self.pump(now);
            }
            (State::HandingOver, Frame::Ready { position })
                if position == self.sending.sent_position
                    && self.sending.acked_bytes == self.sending.sent_bytes =>
            {
                self.state = State::Committing;
                self.propose(Proposal::Commit);
            }
            (_, other) => self.fail(now, format!("The target sent what no target sends: {other:?}")),
        }
    }

    fn is_progress(&self, position: u64, bytes: u64) -> bool {
        let sending = &self.sending;
        (sending.acked_bytes..=sending.sent_bytes).contains(&bytes)
            && (sending.acked_position..=sending.sent_position).contains(&position)
    }

    // ---- the stream -----------------------------------------------------------------------------------------------

    fn may_fetch(&self) -> bool {
        let sending = &self.sending;
        matches!(self.state, State::Streaming | State::Parking | State::Draining)
            && !sending.is_fetching
            && !sending.is_stream_empty
            && sending.sent_bytes - sending.acked_bytes < sending.window
    }

    fn pump(&mut self, now: Instant) {
        if self.may_fetch() && self.sending.paced_until <= now {
            self.sending.is_fetching = true;
            self.actions.push_back(SourceAction::Fetch(self.attempt));
        }
    }

    fn fetched(&mut self, now: Instant, batch: StreamBatch, waiting_bytes: u64) {
        let sending = &mut self.sending;
        sending.is_fetching = false;
        sending.waiting_bytes = waiting_bytes;
        let is_news = batch.is_snapshot_done && !sending.is_snapshot_done;
        if is_news {
            sending.is_snapshot_done = true;
            sending.following_since = now;
        }
        // Slots without keys give empty batches before the snapshot's end.
        let is_empty = batch.is_empty();
        sending.is_stream_empty = is_empty && batch.is_snapshot_done;
        sending.sent_position = batch.position;
        if !is_empty || is_news {
            self.send_batch(now, batch);
        }
        if self.state == State::Draining && self.sending.is_stream_empty {
            self.state = State::HandingOver;
            self.send(now, Frame::Final { position: self.sending.sent_position });
            return;
        }
        self.maybe_park(now);
        self.pump(now);
    }

    fn send_batch(&mut self, now: Instant, batch: StreamBatch) {
        let bytes = batch.len_bytes();
        let head = Frame::Batch {
            position_before: batch.position_before,
            position: batch.position,
            is_snapshot_done: batch.is_snapshot_done,
            image_bytes: batch.images.len() as u64,
            unit_bytes: batch.units.len() as u64,
        };
        self.send(now, head);
        let chunk_bytes = self.config.chunk_bytes.clamp(1, CHUNK_BYTES_MAX);
        for mut lane in [batch.images, batch.units] {
            while !lane.is_empty() {
                let chunk: Bytes = lane.split_to(chunk_bytes.min(lane.len()));
                self.send(now, Frame::Chunk(chunk));
            }
        }
        let sending = &mut self.sending;
        sending.sent_bytes += bytes;
        if let Some(rate) = self.config.bytes_per_second.filter(|_| !sending.is_snapshot_done) {
            let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(rate.get());
            let pause = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
            sending.paced_until = sending.paced_until.max(now) + pause;
        } else {
            sending.paced_until = Instant::ZERO;
        }
    }

    fn tail_bytes(&self) -> u64 {
        let sending = &self.sending;
        (sending.sent_bytes - sending.acked_bytes).saturating_add(sending.waiting_bytes)
    }

    fn measure(&mut self, now: Instant) {
        let sending = &mut self.sending;
        let (from, acked_bytes) = sending.measured_from;
        let elapsed = now.since(from);
        if elapsed >= RATE_MEASURED_OVER {
            let bytes = u128::from(sending.acked_bytes - acked_bytes);
            let rate = bytes * 1_000_000_000 / elapsed.as_nanos();
            sending.bytes_per_second = u64::try_from(rate).unwrap_or(u64::MAX);
            sending.measured_from = (now, sending.acked_bytes);
        }
    }

    /// Parks the slots once little is left to send.
    fn maybe_park(&mut self, now: Instant) {
        if self.state != State::Streaming || !self.sending.is_snapshot_done {
            return;
        }
        let tail = self.tail_bytes();
        let carried = u128::from(self.sending.bytes_per_second) * self.config.park_tail_max.as_nanos();
        let is_short = tail <= self.config.park_bytes_max || u128::from(tail) * 1_000_000_000 <= carried;
        if is_short || now.since(self.sending.following_since) >= self.config.follow_max {
            self.state = State::Parking;
            self.is_parked = true;
            self.deadline = now + self.config.handover_max;
            self.actions.push_back(SourceAction::Park(self.attempt));
        }
    }
}

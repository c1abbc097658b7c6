//! The node that gets the slots.
//!
//! Owns: which link it listens to, what it takes, when it says that it has everything, and when what it has is shown or dropped. Does
//! **not** own the slots, nor how a batch gets into them.
//!
//! ```text
//!            Hello            Final, applied, durable         log: committed
//! Waiting ----------> Receiving --------> Syncing --------> Ready -----------------> Over, slots shown
//!    ^                    |                  |                | (a newer Hello: Receiving, from nothing)
//!    +-- link lost, slots emptied -----------+                |
//!    +-- nobody for long --> Ending <-------------------------+ nobody for long
//!                              +-- log: ended --> Over, slots emptied
//! ```

use super::wire::Frame;
use super::{Config, Decision, Liveness, Proposal, Status, StreamBatch, VERSION};
use bytes::BytesMut;
use std::collections::VecDeque;
use towline_sansio::Instant;

/// What happened. Events of links and of the import carry the attempt that they belong to; those of an earlier one are ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetEvent {
    /// A link came, and this was the first thing said on it. The caller has seen that the log knows the migration as active and its source
    /// is the node at the other end.
    Hello {
        /// The source's attempt.
        attempt: u32,
        /// The version that the source speaks.
        version: u16,
    },
    /// The source said this.
    Frame(u32, Frame),
    /// The link is gone.
    Lost(u32),
    /// The oldest batch that was to be applied is.
    Applied(u32),
    /// It could not be, for this reason.
    ApplyFailed(u32, String),
    /// All that was applied is as durable as this node makes things.
    Synced(u32),
    /// A proposal has no outcome, or it is not known.
    ProposalFailed,
    /// The log has decided, and this node has applied it.
    Decided(Decision),
}

/// What is to be done, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetAction {
    /// Hide the slots and empty them, whatever an earlier attempt put there; mark them as parked, so that none is served before
    /// [`TargetAction::Finish`] even if the log says that they are this node's.
    Begin(u32),
    /// Put the batch into the hidden slots. Report [`TargetEvent::Applied`] or [`TargetEvent::ApplyFailed`].
    Apply(u32, StreamBatch),
    /// Make what was applied durable. Report [`TargetEvent::Synced`].
    Sync(u32),
    /// Send this on the attempt's link.
    Send(u32, Frame),
    /// Close the attempt's link, once what was sent before is written.
    Close(u32),
    /// Empty the slots, show them and end that they are parked: they are the source's.
    Abandon,
    /// Show the slots and end that they are parked: they are this node's.
    Finish,
    /// Put this into the log. Report [`TargetEvent::ProposalFailed`] if it has no outcome.
    Propose(Proposal),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No link, and nothing in the slots.
    Waiting,
    /// Batches come.
    Receiving,
    /// `Final` has come; what is left is applied and made durable.
    Syncing,
    /// `Ready` was said.
    Ready,
    /// The end is proposed; what is in the slots stays until the log has decided.
    Ending,
    /// The log has decided.
    Over(Decision),
}

/// A batch whose chunks are coming.
#[derive(Debug, Clone)]
struct Partial {
    batch: StreamBatch,
    image_bytes: u64,
    total_bytes: u64,
    bytes: BytesMut,
}

/// What came in one attempt.
#[derive(Debug, Clone, Default)]
struct Receiving {
    partial: Option<Partial>,
    is_snapshot_done: bool,
    position: u64,
    /// `(position, bytes)` of each batch that is to be applied.
    applying: VecDeque<(u64, u64)>,
    queued_bytes: u64,
    applied_bytes: u64,
    applied_position: u64,
    is_syncing: bool,
}

/// One migration, at its target.
#[derive(Debug)]
pub struct Target {
    config: Config,
    state: State,
    attempt: u32,
    is_connected: bool,
    has_import: bool,
    liveness: Liveness,
    /// Since when there has been no link.
    alone_since: Instant,
    wanted: Option<Proposal>,
    propose_at: Option<Instant>,
    receiving: Receiving,
    message: String,
    actions: VecDeque<TargetAction>,
}

impl Target {
    /// A migration that the log has begun after this process had caught up with it: no earlier process has worked on it.
    pub fn new(config: Config, now: Instant) -> Self {
        Self {
            config,
            state: State::Waiting,
            attempt: 0,
            is_connected: false,
            has_import: false,
            liveness: Liveness::new(now),
            alone_since: now,
            wanted: None,
            propose_at: None,
            receiving: Receiving::default(),
            message: String::new(),
            actions: VecDeque::new(),
        }
    }

    /// A migration that an earlier process of this node may have worked on, and about which the log said nothing final when this one had
    /// caught up with it. The caller has hidden and parked the slots, and has kept what was in them: the commit may have been proposed.
    pub fn after_restart(config: Config, now: Instant) -> Self {
        let mut target = Self::new(config, now);
        target.has_import = true;
        target.end("The target was restarted".into());
        target
    }

    /// What is to be done next; `None` if nothing is.
    pub fn poll_action(&mut self) -> Option<TargetAction> {
        self.actions.pop_front()
    }

    /// When [`Self::handle_timeout`] is to be called; `None` if nothing is awaited by time.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let by_link = if self.is_connected {
            self.liveness.keepalive_at(&self.config).min(self.liveness.silent_at(&self.config))
        } else {
            self.alone_since + self.config.orphan_after
        };
        match self.state {
            State::Over(_) => None,
            State::Ending => self.propose_at,
            State::Waiting | State::Receiving | State::Syncing | State::Ready => Some(by_link),
        }
    }

    /// How far it has come.
    pub fn status(&self) -> Status<'_> {
        let state = match self.state {
            State::Waiting => "waiting-for-ack",
            State::Receiving if !self.receiving.is_snapshot_done => "receiving-snapshot",
            State::Receiving => "waiting-for-paused",
            State::Syncing => "failover-requested",
            State::Ready => "failover-granted",
            State::Ending | State::Over(Decision::Ended) => "failed",
            State::Over(Decision::Committed) => "success",
        };
        Status {
            state,
            message: &self.message,
            heard: (self.attempt > 0).then_some(self.liveness.heard),
            bytes_done: self.receiving.applied_bytes,
            bytes_remaining: self.receiving.queued_bytes,
        }
    }

    /// What the log said; `None` until it has.
    pub fn decision(&self) -> Option<Decision> {
        match self.state {
            State::Over(decision) => Some(decision),
            State::Waiting | State::Receiving | State::Syncing | State::Ready | State::Ending => None,
        }
    }

    /// Something happened.
    pub fn handle(&mut self, now: Instant, event: TargetEvent) {
        match event {
            TargetEvent::Hello { attempt, version } => self.hello(now, attempt, version),
            TargetEvent::Decided(decision) if self.decision().is_none() => self.decided(decision),
            TargetEvent::ProposalFailed => self.propose_at = Some(now + self.config.retry_after),
            TargetEvent::Frame(attempt, frame) if self.is_linked(attempt) => {
                self.liveness.heard = now;
                if let Err(reason) = self.frame(now, frame) {
                    self.refuse(now, reason);
                }
            }
            TargetEvent::Lost(attempt) if self.is_linked(attempt) => self.lost(now),
            TargetEvent::Applied(attempt) if self.is_importing(attempt) => self.applied(now),
            TargetEvent::ApplyFailed(attempt, reason) if self.is_importing(attempt) => {
                self.refuse(now, reason);
            }
            TargetEvent::Synced(attempt) if self.is_importing(attempt) && self.state == State::Syncing => {
                self.state = State::Ready;
                self.send(now, Frame::Ready { position: self.receiving.position });
            }
            TargetEvent::Decided(_)
            | TargetEvent::Frame(..)
            | TargetEvent::Lost(_)
            | TargetEvent::Applied(_)
            | TargetEvent::ApplyFailed(..)
            | TargetEvent::Synced(_) => {}
        }
    }

    /// Time has passed; harmless if called too early.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let State::Over(_) = self.state {
            return;
        }
        if self.propose_at.is_some_and(|at| at <= now) {
            self.propose_at = None;
            self.actions.extend(self.wanted.clone().map(TargetAction::Propose));
        }
        if self.is_connected && self.liveness.silent_at(&self.config) <= now {
            self.message = format!("The source was silent for {:?}", self.config.silence_max);
            self.lost(now);
        }
        if self.is_connected && self.liveness.keepalive_at(&self.config) <= now {
            self.send(now, Frame::Keepalive);
        }
        let is_orphan = !self.is_connected && self.alone_since + self.config.orphan_after <= now;
        if is_orphan && self.state != State::Ending {
            self.end(format!("No link from the source for {:?}", self.config.orphan_after));
        }
    }

    fn is_linked(&self, attempt: u32) -> bool {
        self.is_connected && attempt == self.attempt
    }

    fn is_importing(&self, attempt: u32) -> bool {
        attempt == self.attempt && matches!(self.state, State::Receiving | State::Syncing)
    }

    // ---- the log --------------------------------------------------------------------------------------------------

    fn end(&mut self, reason: String) {
        self.state = State::Ending;
        self.message = reason;
        let proposal = Proposal::End(self.message.clone());
        self.wanted = Some(proposal.clone());
        self.actions.push_back(TargetAction::Propose(proposal));
    }

    fn decided(&mut self, decision: Decision) {
        self.close();
        self.state = State::Over(decision);
        self.receiving = Receiving::default();
        match decision {
            Decision::Committed => {
                self.message.clear();
                self.has_import = false;
                self.actions.push_back(TargetAction::Finish);
            }
            Decision::Ended => self.abandon(),
        }
    }

    fn abandon(&mut self) {
        self.receiving = Receiving::default();
        if self.has_import {
            self.has_import = false;
            self.actions.push_back(TargetAction::Abandon);
        }
    }

    // ---- the link -------------------------------------------------------------------------------------------------

    fn send(&mut self, now: Instant, frame: Frame) {
        if self.is_connected {
            self.liveness.sent = now;
            self.actions.push_back(TargetAction::Send(self.attempt, frame));
        }
    }

    fn close(&mut self) {
        if self.is_connected {
            self.is_connected = false;
            self.actions.push_back(TargetAction::Close(self.attempt));
        }
    }

    fn hello(&mut self, now: Instant, attempt: u32, version: u16) {
        let refusal = match self.state {
            State::Over(_) | State::Ending => Some("the migration is over"),
            _ if attempt <= self.attempt => Some("this attempt is over"),
            _ if version < VERSION => Some("it speaks another version"),
            State::Waiting | State::Receiving | State::Syncing | State::Ready => None,
        };
        if let Some(reason) = refusal {
            self.actions.push_back(TargetAction::Send(attempt, Frame::Abort { reason: reason.into() }));
            self.actions.push_back(TargetAction::Close(attempt));
            return;
        }
        self.close();
        self.attempt = attempt;
        self.is_connected = true;
        self.liveness = Liveness::new(now);
        self.receiving = Receiving::default();
        self.state = State::Receiving;
        self.has_import = true;
        self.actions.push_back(TargetAction::Begin(attempt));
        self.send(now, Frame::Welcome { version: VERSION, window: self.config.window_bytes });
    }

    /// The link is of no use, and what came is not whole.
    fn lost(&mut self, now: Instant) {
        self.close();
        self.alone_since = now;
        match self.state {
            State::Receiving | State::Syncing => {
                self.abandon();
                self.state = State::Waiting;
            }
            // What is here is whole, and the commit may be on its way.
            State::Ready | State::Waiting | State::Ending | State::Over(_) => {}
        }
    }

    fn refuse(&mut self, now: Instant, reason: String) {
        self.message = reason;
        self.send(now, Frame::Abort { reason: self.message.clone() });
        self.lost(now);
    }

    /// `Err`: what no source sends, or that it gave up.
    fn frame(&mut self, now: Instant, frame: Frame) -> Result<(), String> {
        match (self.state, frame) {
            (_, Frame::Keepalive) => Ok(()),
            (_, Frame::Abort { reason }) => {
                self.message = format!("The source gave up: {reason}");
                self.lost(now);
                Ok(())
            }
            (
                State::Receiving,
                Frame::Batch { position_before, position, is_snapshot_done, image_bytes, unit_bytes },
            ) => {
                let batch =
                    StreamBatch { position_before, position, is_snapshot_done, ..StreamBatch::default() };
                self.batch(batch, image_bytes, unit_bytes)
            }
            (State::Receiving, Frame::Chunk(bytes)) => {
                let partial = self.receiving.partial.as_mut().ok_or("a chunk of nothing")?;
                if partial.bytes.len() as u64 + bytes.len() as u64 > partial.total_bytes {
                    return Err("more of a batch than it has".into());
                }
                partial.bytes.extend_from_slice(&bytes);
                self.complete();
                Ok(())
            }
            (State::Receiving, Frame::Final { position }) => {
                let receiving = &self.receiving;
                let is_whole = receiving.partial.is_none()
                    && receiving.is_snapshot_done
                    && receiving.position == position;
                if !is_whole {
                    return Err("an end before the end".into());
                }
                self.state = State::Syncing;
                self.maybe_sync();
                Ok(())
            }
            (_, other) => Err(format!("a frame that does not belong here: {other:?}")),
        }
    }

    fn batch(&mut self, batch: StreamBatch, image_bytes: u64, unit_bytes: u64) -> Result<(), String> {
        let receiving = &mut self.receiving;
        let total_bytes = image_bytes.saturating_add(unit_bytes);
        if receiving.partial.is_some() {
            return Err("a batch within another".into());
        }
        let is_next = batch.position_before == receiving.position && batch.position >= batch.position_before;
        let has_units = unit_bytes > 0;
        if !is_next || has_units != (batch.position > batch.position_before) {
            return Err("effects out of order".into());
        }
        if receiving.is_snapshot_done && (image_bytes > 0 || !batch.is_snapshot_done) {
            return Err("images after the snapshot".into());
        }
        if total_bytes > self.config.batch_bytes_max {
            return Err(format!("a batch of {total_bytes} bytes, more than this node takes"));
        }
        if receiving.queued_bytes >= self.config.window_bytes.max(1) {
            return Err("more than the window".into());
        }
        receiving.position = batch.position;
        receiving.is_snapshot_done = batch.is_snapshot_done;
        receiving.partial = Some(Partial { batch, image_bytes, total_bytes, bytes: BytesMut::new() });
        self.complete();
        Ok(())
    }

    /// Hands the batch on if all of it is here.
    fn complete(&mut self) {
        let receiving = &mut self.receiving;
        let is_whole = |partial: &Partial| partial.bytes.len() as u64 == partial.total_bytes;
        if !receiving.partial.as_ref().is_some_and(is_whole) {
            return;
        }
        let Some(Partial { mut batch, image_bytes, total_bytes, bytes }) = receiving.partial.take() else {
            return;
        };
        let mut bytes = bytes.freeze();
        batch.images = bytes.split_to(usize::try_from(image_bytes).unwrap_or(bytes.len()).min(bytes.len()));
        batch.units = bytes;
        receiving.queued_bytes += total_bytes;
        receiving.applying.push_back((batch.position, total_bytes));
        self.actions.push_back(TargetAction::Apply(self.attempt, batch));
    }

    fn applied(&mut self, now: Instant) {
        let receiving = &mut self.receiving;
        let Some((position, bytes)) = receiving.applying.pop_front() else { return };
        receiving.queued_bytes -= bytes;
        receiving.applied_bytes += bytes;
        receiving.applied_position = position;
        let bytes = receiving.applied_bytes;
        self.send(now, Frame::Ack { position, bytes });
        self.maybe_sync();
    }

    fn maybe_sync(&mut self) {
        let receiving = &mut self.receiving;
        if self.state == State::Syncing && receiving.applying.is_empty() && !receiving.is_syncing {
            receiving.is_syncing = true;
            self.actions.push_back(TargetAction::Sync(self.attempt));
        }
    }
}

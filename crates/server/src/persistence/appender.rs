//! The log's writer: from effects to bytes in a file, and on to the device.
//!
//! Owns: the tail of the store's effects, the file that is appended to, syncing, and what happens when any of that fails. Does
//! **not** own which files there are, nor when the log is rewritten: the keeper says that, by [`LogHandle`].
//!
//! [`Appender`] is a machine without threads or clock; [`start`] puts it on a thread, with another one beside it for the syncs
//! of `everysec`, which must not delay the writes.
//!
//! ```text
//!          begin                      sync error, overrun
//!  Off ------------------> On -----------------------------> Failed <---------------+
//!   |                      ^                                   | switch (Enable)     | given up,
//!   | switch (Enable)      | committed                         v                     | sync error
//!   +--------------------> Pending <---------------------------+---------------------+
//!      (given up: Off)
//! ```
//!
//! A *write* that fails changes nothing of that: the file is cut back to whole units, writes of clients are refused, and the
//! same bytes are tried again. A *sync* that fails says that nothing is known of what was written since the last one that
//! worked: the file is cut to that and given up, and the data set is written anew, from memory.

mod file;
mod handle;
mod orders;
mod thread;

#[cfg(test)]
mod tests;

pub(crate) use file::write_unit;
pub(crate) use handle::{AppendError, LogHandle, LogStatus};
pub(crate) use thread::start;

use super::disk::DiskFile;
use super::gate::Gate;
use crate::config::AppendFsync;
use file::{LogFile, Mark, WRITE_BYTES};
use std::fmt;
use std::io;
use std::time::Duration;
use towline_sansio::Instant;
use towline_store::store::Store;
use towline_store::stream::{self, BYTES_MAX_DEFAULT, Batch, SlotStream, Wake};

/// What the tail may hold; beyond that the log has failed, as after a sync that failed.
const TAIL_BYTES_MAX: usize = BYTES_MAX_DEFAULT;
/// From here on writes wait. What is on its way past the look is far less than the rest.
pub(super) const CROWDED_BYTES: usize = TAIL_BYTES_MAX / 4 * 3;
/// So many bytes wake the appender from its rest, and are few beside what may wait.
pub(super) const WAKE_BYTES: usize = 1 << 20;
/// The time between two syncs under `everysec`.
const SYNC_EVERY: Duration = Duration::from_secs(1);
/// How long a write that failed waits to be tried again, at first and at most.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(1);
/// How long it waits after an attempt to write the data set anew has failed.
const RECOVER_REST: Duration = Duration::from_secs(1);

/// An instant on both clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    /// For waiting.
    pub(crate) instant: Instant,
    /// What is written.
    pub(crate) unix_ms: u64,
}

/// What can be changed while the server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Policy {
    pub(crate) fsync: AppendFsync,
    pub(crate) timestamps: bool,
    /// `no-appendfsync-on-rewrite` holds at this moment: nothing is synced, unless under `always`.
    pub(crate) pause_sync: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// There is no log.
    Off,
    /// The log keeps its promises, or will when a write succeeds that is tried again and again.
    On,
    /// What was promised is in no file. Writes are refused.
    Failed,
    /// Appends go to a file whose base, with everything up to this position, is not in force yet.
    Pending {
        base: u64,
        /// There is no file: syncing it failed.
        is_broken: bool,
        /// The log has failed before; else it was off.
        is_recovery: bool,
    },
}

/// A write that is tried again.
#[derive(Debug, Clone, Copy)]
struct Retry {
    at: Instant,
    wait: Duration,
}

/// A sync that is to be carried out elsewhere.
#[derive(Debug)]
pub(crate) struct SyncJob {
    file: Box<dyn DiskFile>,
    generation: u64,
    mark: Mark,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct SyncDone {
    generation: u64,
    mark: Mark,
    result: io::Result<()>,
}

impl SyncJob {
    /// Returns when the device has the file.
    pub(crate) fn run(mut self) -> SyncDone {
        SyncDone { result: self.file.sync(), generation: self.generation, mark: self.mark }
    }
}

/// What is to be done after a turn.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// There was something to write, and probably is again soon.
    pub(crate) is_busy: bool,
    /// When the next turn is due at the latest.
    pub(crate) at: Option<Instant>,
    /// To be carried out beside the next turns, its outcome told by [`Appender::synced`].
    pub(crate) sync: Option<SyncJob>,
    /// The keeper is to write the data set anew. Whatever comes of that is told by [`Appender::committed`] or
    /// [`Appender::given_up`].
    pub(crate) wants_recovery: bool,
}

/// The log's writer; see the module's description.
pub(crate) struct Appender {
    phase: Phase,
    policy: Policy,
    tail: Option<SlotStream>,
    /// [`TAIL_BYTES_MAX`], but in tests.
    tail_bytes_max: usize,
    wake: Wake,
    batch: Batch,
    /// The last unit that was taken from a tail.
    position: u64,
    file: Option<LogFile>,
    /// Which file of all that is.
    generation: u64,
    retry: Option<Retry>,
    last_write: Result<(), String>,
    is_sync_running: bool,
    synced_at: Option<Instant>,
    /// When the keeper is asked to write the data set anew.
    recover_at: Option<Instant>,
    delayed_fsyncs: u64,
}

impl fmt::Debug for Appender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Appender")
            .field("phase", &self.phase)
            .field("position", &self.position)
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

impl Appender {
    /// There is no log yet. `wake` is what calls for a turn when something has come.
    pub(crate) fn new(policy: Policy, wake: Wake) -> Self {
        Self {
            phase: Phase::Off,
            policy,
            tail: None,
            tail_bytes_max: TAIL_BYTES_MAX,
            wake,
            batch: Batch::default(),
            position: 0,
            file: None,
            generation: 0,
            retry: None,
            last_write: Ok(()),
            is_sync_running: false,
            synced_at: None,
            recover_at: None,
            delayed_fsyncs: 0,
        }
    }

    /// Whether every turn ends with a sync, so that the next one cannot come too early.
    pub(crate) fn is_always(&self) -> bool {
        self.policy.fsync == AppendFsync::Always
    }

    /// Whether a [`SyncJob`] is on its way. While one is, only turns are taken.
    pub(crate) fn is_sync_running(&self) -> bool {
        self.is_sync_running
    }

    /// Whether something waits to be written.
    pub(crate) fn has_effects(&self) -> bool {
        // While a write is tried again, nothing is taken.
        self.retry.is_none() && self.tail.as_ref().is_some_and(SlotStream::has_effects)
    }

    /// How things are.
    pub(crate) fn status(&self) -> LogStatus {
        let file = self.file.as_ref();
        let waiting = self.tail.as_ref().map_or(0, SlotStream::held_bytes);
        LogStatus {
            is_on: self.phase != Phase::Off,
            bytes: file.map_or(0, |file| file.written.bytes),
            pending_bytes: (waiting + file.map_or(0, LogFile::buffered_bytes)) as u64,
            last_write: self.last_write.clone(),
            is_sync_running: self.is_sync_running,
            delayed_fsyncs: self.delayed_fsyncs,
            ..LogStatus::default()
        }
    }

    // ---- turns ----------------------------------------------------------------------------------------------------

    /// Writes what has come and syncs what is due.
    pub(crate) fn turn(&mut self, store: &Store, gate: &Gate, now: Now) -> Turn {
        let mut turn = Turn { is_busy: self.append(store, gate, now), ..Turn::default() };
        self.sync_when_due(gate, now, &mut turn);
        if self.phase == Phase::Failed
            && let Some(at) = self.recover_at
        {
            if at <= now.instant {
                (self.recover_at, turn.wants_recovery) = (None, true);
            } else {
                turn.due(at);
            }
        }
        if let Some(retry) = &self.retry {
            turn.due(retry.at);
        }
        turn
    }

    /// Takes what has come from the tail and writes it; `false` if nothing has.
    fn append(&mut self, store: &Store, gate: &Gate, now: Now) -> bool {
        if let Some(retry) = &self.retry
            && (now.instant < retry.at || self.flush(gate, now).is_err())
        {
            return false;
        }
        let Some(tail) = &mut self.tail else { return false };
        let mut batch = std::mem::take(&mut self.batch);
        let fetched = tail.next(store, &mut batch);
        gate.set_crowded(false);
        match fetched {
            Err(stream::Overrun) => self.overrun(store, gate, now),
            Ok(progress) => {
                self.position = progress.position;
                self.write(&batch, 0, gate, now);
            }
        }
        let is_any = !batch.is_empty();
        self.batch = batch;
        is_any
    }

    /// Writes the units behind `after`. While a write is tried again, they are encoded and wait.
    fn write(&mut self, batch: &Batch, after: u64, gate: &Gate, now: Now) {
        let unix_s = self.policy.timestamps.then_some(now.unix_ms / 1000);
        for unit in batch.units().filter(|unit| unit.position.get() > after) {
            let Some(file) = &mut self.file else { return };
            file.push(&unit, unix_s);
            if file.buffered_bytes() >= WRITE_BYTES && self.retry.is_none() {
                // The failure is noted, and the rest waits with what failed.
                let _ = self.flush(gate, now);
            }
        }
        if self.retry.is_none() {
            let _ = self.flush(gate, now);
        }
    }

    /// Writes what is encoded, and takes note of whether that works.
    fn flush(&mut self, gate: &Gate, now: Now) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let result = file.flush();
        match &result {
            Ok(()) => {
                self.last_write = Ok(());
                if self.retry.take().is_some() {
                    tracing::info!(file = file.name, "the log can be written again");
                    self.tell_gate(gate);
                }
            }
            Err(error) => {
                if self.retry.is_none() {
                    tracing::error!(%error, file = file.name, "the log cannot be written; writes are refused until it can be");
                }
                let wait = self.retry.map_or(RETRY_FIRST, |retry| (retry.wait * 2).min(RETRY_MAX));
                self.retry = Some(Retry { at: now.instant + wait, wait });
                self.last_write = Err(error.to_string());
                self.tell_gate(gate);
            }
        }
        result
    }

    fn sync_when_due(&mut self, gate: &Gate, now: Now, turn: &mut Turn) {
        let Some(file) = &mut self.file else { return };
        if !file.is_ahead() || self.retry.is_some() {
            return;
        }
        match self.policy.fsync {
            // The failure is noted.
            AppendFsync::Always => _ = self.sync(gate, now),
            AppendFsync::EverySec if !self.policy.pause_sync => {
                let due = self.synced_at.map_or(now.instant, |at| at + SYNC_EVERY);
                if now.instant < due {
                    turn.due(due);
                } else if self.is_sync_running {
                    self.delayed_fsyncs += 1;
                    self.synced_at = Some(now.instant);
                } else {
                    self.synced_at = Some(now.instant);
                    match file.duplicate() {
                        Ok(handle) => {
                            self.is_sync_running = true;
                            let (generation, mark) = (self.generation, file.written);
                            turn.sync = Some(SyncJob { file: handle, generation, mark });
                        }
                        Err(_) => _ = self.sync(gate, now),
                    }
                }
            }
            AppendFsync::EverySec | AppendFsync::No => {}
        }
    }

    /// What came of a [`SyncJob`].
    pub(crate) fn synced(&mut self, done: SyncDone, gate: &Gate, now: Now) {
        self.is_sync_running = false;
        let Some(file) = self.file.as_mut().filter(|_| done.generation == self.generation) else { return };
        match done.result {
            Ok(()) => {
                if file.synced.bytes < done.mark.bytes {
                    file.synced = done.mark;
                }
                self.tell_durable(gate);
            }
            Err(error) => self.fail(&format!("fsync: {error}"), gate, now),
        }
    }

    /// Syncs at once, and takes note of whether that works.
    fn sync(&mut self, gate: &Gate, now: Now) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let result = file.sync();
        match &result {
            Ok(()) => self.tell_durable(gate),
            Err(error) => self.fail(&format!("fsync: {error}"), gate, now),
        }
        result
    }

    fn tell_durable(&self, gate: &Gate) {
        if let (Phase::On, Some(file)) = (self.phase, &self.file) {
            gate.set_durable(file.synced.position);
        }
    }

    /// Whether writes are refused, and why.
    fn tell_gate(&self, gate: &Gate) {
        let is_failed = match self.phase {
            Phase::Off => false,
            Phase::On => self.retry.is_some(),
            Phase::Failed => true,
            Phase::Pending { is_recovery, .. } => is_recovery,
        };
        gate.set_log_failed(is_failed.then(|| self.last_write.clone().err().unwrap_or_default()));
    }

    // ---- failures -------------------------------------------------------------------------------------------------

    /// Nothing is known of what was written since the last sync that worked, or effects are lost.
    fn fail(&mut self, reason: &str, gate: &Gate, now: Now) {
        tracing::error!(reason, "the log has failed; the data set is written anew from memory");
        if let Some(file) = self.file.take() {
            file.give_up();
        }
        self.retry = None;
        self.last_write = Err(reason.to_owned());
        match &mut self.phase {
            // The keeper is at it already; it is asked again when that turns out to be in vain.
            Phase::Pending { is_broken, .. } => *is_broken = true,
            phase => {
                *phase = Phase::Failed;
                self.recover_at = Some(now.instant);
            }
        }
        self.tell_gate(gate);
    }

    fn overrun(&mut self, store: &Store, gate: &Gate, now: Now) {
        let config = self.tail_config();
        self.tail = self.tail.take().map(|tail| tail.reopen(store, now.unix_ms, &config));
        self.fail("the disk does not keep up with the writes", gate, now);
    }
}

impl Turn {
    fn due(&mut self, at: Instant) {
        self.at = Some(self.at.map_or(at, |before| before.min(at)));
    }
}

//! What the rest of the server says to the appender, and sees of it.
//!
//! Owns: the messages and the status that was published last. Does **not** own what is done with them.

use super::{Policy, SyncDone};
use crate::config::AppendFsync;
use crate::persistence::disk::DiskFile;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;
use towline_persist::directory::RewriteKind;
use towline_store::stream::{self, SlotStream};

/// Why the appender did not do what it was told.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum AppendError {
    /// The log is in a state in which that makes no sense; the caller's fault, or that of a failure in between.
    #[error("the log {0}")]
    State(&'static str),
    /// The environment's fault. The log goes on trying.
    #[error("the log cannot be written: {0}")]
    Write(io::Error),
    /// The environment's fault. The log has failed, and a recovery is asked for.
    #[error("the log cannot be synced: {0}")]
    Sync(io::Error),
    /// The disk is too slow. The log has failed, and a recovery is asked for.
    #[error("the disk does not keep up with the writes")]
    Overrun,
    /// The server has ended.
    #[error("the server has ended")]
    Ended,
}

/// How the log is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogStatus {
    /// Whether there is one, be it one that is just being begun or has failed.
    pub(crate) is_on: bool,
    /// Bytes of the current increment that were written, and of the parts before it as [`LogHandle::told`].
    pub(crate) bytes: u64,
    /// Bytes of the base, as [`LogHandle::told`].
    pub(crate) base_bytes: u64,
    /// Bytes that wait to be written.
    pub(crate) pending_bytes: u64,
    /// What came of the last write or sync.
    pub(crate) last_write: Result<(), String>,
    /// Whether a sync of `everysec` is under way.
    pub(crate) is_sync_running: bool,
    /// Syncs of `everysec` that were due while the one before was under way.
    pub(crate) delayed_fsyncs: u64,
}

impl Default for LogStatus {
    fn default() -> Self {
        Self {
            is_on: false,
            bytes: 0,
            base_bytes: 0,
            pending_bytes: 0,
            last_write: Ok(()),
            is_sync_running: false,
            delayed_fsyncs: 0,
        }
    }
}

/// What the appender is told. Each has a way back.
pub(super) enum Message {
    Begin {
        file: Box<dyn DiskFile>,
        name: String,
        bytes: u64,
        done: Sender<Result<(), AppendError>>,
    },
    Switch {
        kind: RewriteKind,
        file: Box<dyn DiskFile>,
        name: String,
        base: stream::Config,
        done: Sender<Result<SlotStream, AppendError>>,
    },
    Committed {
        done: Sender<()>,
    },
    GivenUp {
        done: Sender<()>,
    },
    Stop {
        done: Sender<Result<(), AppendError>>,
    },
    Finish {
        done: Sender<Result<(), AppendError>>,
    },
    Policy {
        policy: Policy,
        done: Sender<()>,
    },
    /// The thread is to end.
    End {
        done: Sender<()>,
    },
}

/// The appender writes, and looks what has come before it rests.
pub(super) const AWAKE: u8 = 0;
/// It has just written, and takes what comes next together, unless that gets much.
pub(super) const RESTING: u8 = 1;
/// It has nothing to do.
pub(super) const IDLE: u8 = 2;

/// Wakes the appender.
#[derive(Debug, Default)]
pub(super) struct Bell {
    pub(super) mode: AtomicU8,
    pub(super) thread: OnceLock<Thread>,
}

impl Bell {
    /// Whatever it does, it looks again.
    pub(super) fn ring(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}

pub(super) struct Line {
    pub(super) messages: Receiver<Message>,
    pub(super) syncs: Receiver<SyncDone>,
    pub(super) synced: Sender<SyncDone>,
}

/// The way to the appender. All calls but [`LogHandle::status`] and [`LogHandle::told`] wait for it, and with it for the disk:
/// they are for the keeper.
pub(crate) struct LogHandle {
    messages: Sender<Message>,
    line: Mutex<Option<Line>>,
    pub(super) bell: Arc<Bell>,
    status: Mutex<LogStatus>,
    base_bytes: AtomicU64,
    other_bytes: AtomicU64,
    /// Asks the keeper to write the data set anew.
    recover: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl fmt::Debug for LogHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogHandle").field("status", &self.status).finish_non_exhaustive()
    }
}

impl Default for LogHandle {
    fn default() -> Self {
        let (messages, receiver) = channel();
        let (synced, syncs) = channel();
        Self {
            messages,
            line: Mutex::new(Some(Line { messages: receiver, syncs, synced })),
            bell: Arc::default(),
            status: Mutex::default(),
            base_bytes: AtomicU64::new(0),
            other_bytes: AtomicU64::new(0),
            recover: OnceLock::new(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LogHandle {
    fn ask<T>(&self, message: impl FnOnce(Sender<T>) -> Message) -> Result<T, AppendError> {
        let (done, answer) = channel();
        self.messages.send(message(done)).map_err(|_| AppendError::Ended)?;
        self.bell.ring();
        answer.recv().map_err(|_| AppendError::Ended)
    }

    /// At a start: appends go to this increment, which is whole up to `bytes`. Called after loading, before commands are
    /// accepted.
    ///
    /// # Errors
    /// [`AppendError::State`] if there is a log already.
    pub(crate) fn begin(&self, file: Box<dyn DiskFile>, name: String, bytes: u64) -> Result<(), AppendError> {
        self.ask(|done| Message::Begin { file, name, bytes, done })?
    }

    /// From one instant on, appends go to `file`, which is empty. Returns the snapshot of that instant, opened as `base`
    /// says, which should not follow.
    ///
    /// With [`RewriteKind::Replace`], what came before the instant is written and synced into the file before; without one,
    /// as after the adoption of a single log, this is as well the log's beginning, and as with [`LogHandle::begin`], nothing may
    /// have come. With
    /// [`RewriteKind::Enable`], for a log that is off or has failed, it is not written at all, and nothing counts as durable
    /// until [`LogHandle::committed`].
    ///
    /// # Errors
    /// Nothing has changed but what the error says: [`AppendError::State`] if the kind does not fit, e.g. because the log has
    /// failed in between; [`AppendError::Write`], [`AppendError::Sync`], [`AppendError::Overrun`].
    pub(crate) fn switch(
        &self,
        kind: RewriteKind,
        file: Box<dyn DiskFile>,
        name: String,
        base: stream::Config,
    ) -> Result<SlotStream, AppendError> {
        self.ask(|done| Message::Switch { kind, file, name, base, done })?
    }

    /// The base of the last switch is in force: everything up to its instant is durable, and the log keeps its promises from
    /// now on, or again.
    pub(crate) fn committed(&self) {
        // A server that has ended promises nothing.
        let _ = self.ask(|done| Message::Committed { done });
    }

    /// The base of the last switch was given up, or the rewrite did not get as far as that. With a log that is on nothing
    /// changes; one that was off is off again; after a failure, the recovery is asked for again in a while.
    pub(crate) fn given_up(&self) {
        let _ = self.ask(|done| Message::GivenUp { done });
    }

    /// Writes and syncs all; then there is no log any more, and no reply waits.
    ///
    /// # Errors
    /// Not all could be written; there is no log any more nevertheless.
    pub(crate) fn stop(&self) -> Result<(), AppendError> {
        self.ask(|done| Message::Stop { done })?
    }

    /// For a server that is about to end: writes and syncs all that was executed so far, so that its replies leave; what is
    /// executed from now on is answered only if it gets to the device as well.
    ///
    /// # Errors
    /// Not all could be written or synced.
    pub(crate) fn finish(&self) -> Result<(), AppendError> {
        self.ask(|done| Message::Finish { done })?
    }

    /// Changes `appendfsync`, `aof-timestamp-enabled` and whether syncing pauses (`no-appendfsync-on-rewrite`, while something
    /// is rewritten). Under `always` everything that was executed before is durable when this returns.
    pub(crate) fn policy(&self, fsync: AppendFsync, timestamps: bool, pause_sync: bool) {
        let policy = Policy { fsync, timestamps, pause_sync };
        let _ = self.ask(|done| Message::Policy { policy, done });
    }

    /// The sizes of the base, and of the increments before the current one.
    pub(crate) fn told(&self, base_bytes: u64, other_bytes: u64) {
        self.base_bytes.store(base_bytes, Ordering::Relaxed);
        self.other_bytes.store(other_bytes, Ordering::Relaxed);
    }

    /// How the log was after the appender's last turn.
    pub(crate) fn status(&self) -> LogStatus {
        let base_bytes = self.base_bytes.load(Ordering::Relaxed);
        let status = lock(&self.status).clone();
        let bytes = status.bytes + base_bytes + self.other_bytes.load(Ordering::Relaxed);
        LogStatus { bytes, base_bytes, ..status }
    }

    /// What is called, on the appender's thread, when the data set is to be written anew because the log has failed. To be
    /// answered by [`LogHandle::committed`] or [`LogHandle::given_up`]. Only the first call has an effect.
    pub(crate) fn on_failure(&self, recover: Box<dyn Fn() + Send + Sync>) {
        let _ = self.recover.set(recover);
    }

    /// Ends the thread, after all that has come is written and synced.
    pub(crate) fn end(&self) {
        let _ = self.ask(|done| Message::End { done });
    }

    pub(super) fn take_line(&self) -> Option<Line> {
        lock(&self.line).take()
    }

    pub(super) fn publish(&self, status: LogStatus) {
        *lock(&self.status) = status;
    }

    pub(super) fn ask_for_recovery(&self) {
        if let Some(recover) = self.recover.get() {
            recover();
        }
    }
}

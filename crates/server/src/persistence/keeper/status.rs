//! What the keeper does and what came of what it did, as commands and `INFO` see it.
//!
//! Owns: what may begin beside what else, in the words that clients are answered with. Does **not** own doing it.

use crate::command::CommandError;
use crate::persistence::snapshot::Progress;
use std::sync::Arc;
use std::time::Duration;

/// Something that goes on.
#[derive(Debug, Clone)]
pub(crate) struct Running {
    /// Since when, in unix milliseconds.
    pub(crate) since_ms: u64,
    /// Whether no client waits for it.
    pub(crate) is_background: bool,
    /// Keys at the start.
    pub(crate) keys: u64,
    pub(crate) progress: Arc<Progress>,
}

impl Running {
    /// What was asked for at this time and begins soon.
    pub(super) fn asked(since_ms: u64, is_background: bool) -> Self {
        Self { since_ms, is_background, keys: 0, progress: Arc::default() }
    }
}

/// See the module's description.
#[derive(Debug, Clone)]
pub(crate) struct Status {
    /// The snapshot that is made, or was asked for and begins at once.
    pub(crate) saving: Option<Running>,
    /// Whether one was asked for as soon as nothing else goes on.
    pub(crate) is_save_scheduled: bool,
    /// The rewrite of the log that goes on, or was asked for and begins at once.
    pub(crate) rewriting: Option<Running>,
    /// Whether one was asked for as soon as nothing else goes on.
    pub(crate) is_rewrite_scheduled: bool,
    /// Whether the last one succeeded, how long the last one took that did, how many were begun and how many have failed since
    /// one succeeded.
    pub(crate) is_rewrite_ok: bool,
    pub(crate) rewrite_took: Option<Duration>,
    pub(crate) rewrites: u64,
    pub(crate) rewrite_failures: u64,
    /// Bytes of the log after the last one, or at the start.
    pub(crate) rewrite_base_bytes: u64,
    /// When the last snapshot was finished, or the server started, in unix milliseconds.
    pub(crate) saved_ms: u64,
    /// Changes to the data that the last snapshot has, of all since the start.
    pub(crate) saved_changes: u64,
    /// Whether the last snapshot in the background was made, or one by `SAVE` since.
    pub(crate) is_save_ok: bool,
    /// How long the last one in the background took.
    pub(crate) save_took: Option<Duration>,
    /// Snapshots that were begun.
    pub(crate) saves: u64,
    /// Whether the server is about to stop, and whether that was called off.
    pub(crate) is_stopping: bool,
    pub(crate) is_stop_aborted: bool,
}

impl Status {
    pub(super) fn new(now_ms: u64) -> Self {
        Self {
            saving: None,
            is_save_scheduled: false,
            rewriting: None,
            is_rewrite_scheduled: false,
            is_rewrite_ok: true,
            rewrite_took: None,
            rewrites: 0,
            rewrite_failures: 0,
            rewrite_base_bytes: 0,
            saved_ms: now_ms,
            saved_changes: 0,
            is_save_ok: true,
            save_took: None,
            saves: 0,
            is_stopping: false,
            is_stop_aborted: false,
        }
    }

    /// Whether `SAVE` may begin.
    pub(crate) fn check_save(&self) -> Result<(), CommandError> {
        match &self.saving {
            Some(running) if running.is_background => Err(ALREADY_SAVING),
            _ => Ok(()),
        }
    }

    /// `BGSAVE`.
    pub(super) fn ask_save(
        &mut self,
        is_schedule: bool,
        in_exec: bool,
        now_ms: u64,
    ) -> Result<&'static str, CommandError> {
        if self.saving.is_some() {
            Err(ALREADY_SAVING)
        } else if self.rewriting.is_none() && !in_exec {
            self.saving = Some(Running::asked(now_ms, true));
            Ok("Background saving started")
        } else if is_schedule || in_exec {
            self.is_save_scheduled = true;
            Ok("Background saving scheduled")
        } else {
            Err(REWRITE_GOES_ON)
        }
    }

    /// `BGREWRITEAOF`.
    pub(super) fn ask_rewrite(
        &mut self,
        has_log: bool,
        in_exec: bool,
        now_ms: u64,
    ) -> Result<&'static str, CommandError> {
        if !has_log {
            // Redis writes a base that nothing is appended to: a later start with a log would load stale data.
            Err(NO_LOG)
        } else if self.rewriting.is_some() {
            Err(ALREADY_REWRITING)
        } else if in_exec || self.saving.as_ref().is_some_and(|saving| saving.is_background) {
            self.is_rewrite_scheduled = true;
            self.rewrite_failures = 0;
            Ok("Background append only file rewriting scheduled")
        } else {
            self.rewriting = Some(Running::asked(now_ms, true));
            Ok("Background append only file rewriting started")
        }
    }

    /// `SHUTDOWN ABORT`: whether there was something to abort.
    pub(crate) fn abort_stop(&mut self) -> bool {
        let is_new = self.is_stopping && !self.is_stop_aborted;
        self.is_stop_aborted |= is_new;
        is_new
    }
}

const ALREADY_SAVING: CommandError = CommandError::Text("ERR Background save already in progress");
const ALREADY_REWRITING: CommandError =
    CommandError::Text("ERR Background append only file rewriting already in progress");
const NO_LOG: CommandError = CommandError::Text(
    "ERR There is no log to rewrite: CONFIG SET appendonly yes begins one with the data as it is",
);
const REWRITE_GOES_ON: CommandError = CommandError::Text(
    "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in order to schedule a BGSAVE \
     whenever possible.",
);

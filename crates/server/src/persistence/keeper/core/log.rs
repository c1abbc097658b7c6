//! The keeper's side of the log: turning it on and off, and rewriting it.
//!
//! Owns: when the log is rewritten, and what an end of that means. Does **not** own the steps (see [`super::super::rewrite`]).

use super::Core;
use crate::config::{AppendFsync, Config};
use crate::persistence::appender::AppendError;
use crate::persistence::directory::Places;
use crate::persistence::keeper::rewrite::{RewriteError, RewriteJob, Step};
use crate::persistence::keeper::{Now, Running};
use crate::persistence::loading::{LoadError, Loaded};
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use towline_persist::aof::Manifest;
use towline_persist::directory::RewriteKind;
use towline_sansio::Instant;
use towline_store::store::DB_COUNT;

/// How long a step that must succeed waits to be tried again, and a log that is to be turned on, at first and at most.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);
/// How often such a step is tried while the server starts, which it then does not.
const TRIES_AT_START: u32 = 3;
/// Directories of logs that were turned off within one second.
const ASIDE_MAX: u32 = 1000;
/// From so many failures one after the other on, rewrites that nobody asks for wait: a minute, two, four, up to an hour. As in
/// Redis, whose users found a disk full of failed attempts.
const FAILURES_BEFORE_WAITING: u64 = 3;
const MINUTE: Duration = Duration::from_secs(60);
const MINUTES_MAX: u32 = 60;

/// What the keeper knows of the log.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// Whether there is one: it is appended to, or has failed, or is being begun.
    pub(super) is_on: bool,
    manifest: Manifest,
    pub(super) rewrite: Option<Rewriting>,
    /// The appender has failed and wants the data written anew.
    wants_recovery: bool,
    /// When turning it on is tried again, and how long the wait after that is.
    enable_at: Option<Instant>,
    enable_rest: Duration,
    /// When a rewrite failed last.
    failed_at: Option<Instant>,
    /// When it is tried again to write the log anew, of data that was loaded again.
    anew_at: Option<Instant>,
    /// What the appender was told last.
    policy: Option<(AppendFsync, bool, bool)>,
}

/// A rewrite that goes on.
#[derive(Debug)]
pub(super) struct Rewriting {
    job: RewriteJob,
    why: Why,
    began: Instant,
    /// When the step that failed is tried again, and how long the wait after that is.
    retry_at: Option<Instant>,
    rest: Duration,
}

impl Rewriting {
    /// When it goes on, if it waits.
    pub(super) fn waits_until(&self) -> Option<Instant> {
        self.retry_at
    }
}

/// Why the log is rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    /// It was asked for, or has grown.
    Growth,
    /// It is turned on.
    Enable,
    /// The appender has failed.
    Recover,
    /// The data was loaded again, and is not what the log holds.
    Anew,
}

impl Core {
    /// Begins the log after loading, before clients are served: what they are told from the first command on holds.
    pub(crate) fn begin_log(&mut self, loaded: Loaded, now: Now) -> Result<(), LoadError> {
        let config = self.shared.config();
        let places = Places::of(&config);
        self.log.manifest = loaded.manifest;
        // Growth counts from the base, not from this start: a server that is killed often would never rewrite.
        self.keeper().status().rewrite_base_bytes = loaded.base_bytes;
        if let Some((name, bytes)) = loaded.append_to {
            let path = places.log.join(&name);
            let failed = |source| LoadError::io("append to", &path, source);
            let file = self.shared.persistence.disk.append(&path).map_err(failed)?;
            let log = &self.shared.persistence.log;
            log.begin(file, name, bytes).map_err(|error| failed(io::Error::other(error)))?;
            log.told(loaded.base_bytes, loaded.log_bytes.saturating_sub(loaded.base_bytes + bytes));
            self.log.is_on = true;
        } else if let Some(kind) = loaded.rewrite {
            self.begin_rewrite(Why::Enable, kind, now);
            self.finish_first_rewrite(now)
                .map_err(|error| LoadError::io("begin the log in", &places.log, io::Error::other(error)))?;
        }
        self.apply_policy(&config);
        Ok(())
    }

    /// Takes all steps of the rewrite that a start begins with.
    fn finish_first_rewrite(&mut self, now: Now) -> Result<(), RewriteError> {
        let mut tries = 0;
        while let Some(rewriting) = &mut self.log.rewrite {
            match rewriting.job.step(&self.shared, now.unix_ms) {
                Step::More => {}
                Step::Committed => self.rewrite_committed(now),
                Step::Finished => self.end_rewrite(),
                Step::TryAgain(_) if tries < TRIES_AT_START => tries += 1,
                Step::TryAgain(error) | Step::GivenUp(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Brings what the configuration says of the log about.
    pub(super) fn follow_config(&mut self, now: Now) {
        let config = self.shared.config();
        let is_wanted = config.persistence.appendonly;
        if is_wanted && !self.log.is_on {
            self.log.enable_at.get_or_insert(now.at);
        } else if !is_wanted {
            if self.log.enable_at.take().is_some() {
                self.keeper().status().is_rewrite_scheduled = false;
            }
            if self.log.is_on {
                self.turn_off(&config, now);
            }
        }
        self.apply_policy(&config);
    }

    /// Tells the appender what has changed of what it has to know.
    fn apply_policy(&mut self, config: &Config) {
        if !self.log.is_on {
            // It is told when there is one.
            return;
        }
        let settings = &config.persistence;
        let is_busy = self.log.rewrite.is_some() || self.saving.is_some();
        let pauses = settings.no_appendfsync_on_rewrite && is_busy;
        let policy = (settings.appendfsync, settings.aof_timestamp_enabled, pauses);
        if self.log.policy.replace(policy) != Some(policy) {
            self.shared.persistence.log.policy(policy.0, policy.1, policy.2);
        }
    }

    /// `appendonly no`. What is in the log's directory goes stale from here on, so nobody must take it for the data.
    fn turn_off(&mut self, config: &Config, now: Now) {
        self.abandon_rewrite();
        if let Err(error) = self.shared.persistence.log.stop() {
            tracing::error!("the log is turned off, and its end is not on the device: {error}");
        }
        self.log.is_on = false;
        self.log.manifest = Manifest::default();
        self.keeper().status().is_rewrite_scheduled = false;
        tracing::info!("the log is turned off");
        self.set_aside(config, now);
    }

    /// Renames the log's directory, which is not that of the data, if it is there.
    fn set_aside(&self, config: &Config, now: Now) {
        let (places, disk) = (Places::of(config), &self.shared.persistence.disk);
        if !disk.list(&places.log).is_ok_and(|files| !files.is_empty()) {
            return;
        }
        let name = |number: u32| match number {
            0 => format!("{}.off-{}", config.persistence.appenddirname, now.unix_ms / 1000),
            _ => format!("{}.off-{}-{number}", config.persistence.appenddirname, now.unix_ms / 1000),
        };
        // It may be turned on and off more than once a second.
        let is_free = |aside: &PathBuf| disk.list(aside).is_ok_and(|files| files.is_empty());
        let mut names = (0..ASIDE_MAX).map(|number| places.dir.join(name(number)));
        let aside = names.find(is_free).unwrap_or_else(|| places.dir.join(name(ASIDE_MAX)));
        let renamed = disk.rename(&places.log, &aside).and_then(|()| disk.sync_dir(&places.dir));
        match renamed {
            Ok(()) => tracing::warn!(
                "the log's directory is now '{}': what is in it is no longer the data",
                aside.display()
            ),
            Err(error) => tracing::error!(
                "'{}' cannot be renamed: {error}. Move it away: a start with 'appendonly yes' would load what is in it",
                places.log.display()
            ),
        }
    }

    // ---- rewriting ------------------------------------------------------------------------------------------------

    /// The appender has failed.
    pub(super) fn recover(&mut self) {
        self.log.wants_recovery = self.log.is_on;
    }

    /// Begins the rewrite that is due, if one is.
    pub(super) fn begin_rewrite_due(&mut self, now: Now) {
        if self.log.wants_recovery {
            self.log.wants_recovery = false;
            return self.begin_rewrite(Why::Recover, RewriteKind::Enable, now);
        }
        if self.log.anew_at.is_some_and(|at| at <= now.at) {
            self.log.anew_at = None;
            return self.begin_rewrite(Why::Anew, RewriteKind::Enable, now);
        }
        if self.log.enable_at.is_some_and(|at| at <= now.at) {
            self.log.enable_at = None;
            let config = self.shared.config();
            if let Err(error) = self.shared.persistence.lock_directory(&Places::of(&config).dir) {
                tracing::error!("the log cannot be turned on: {error}");
                return self.enable_failed(now);
            }
            self.set_aside(&config, now);
            self.log.manifest = Manifest::default();
            return self.begin_rewrite(Why::Enable, RewriteKind::Enable, now);
        }
        let (is_asked, is_scheduled, is_saving) = {
            let status = self.keeper().status();
            let is_saving = status.saving.as_ref().is_some_and(|saving| saving.is_background);
            (status.rewriting.is_some(), status.is_rewrite_scheduled, is_saving)
        };
        if is_asked && !self.log.is_on {
            // It was turned off meanwhile, or could not be turned on yet, which is the same rewrite.
            self.keeper().status().rewriting = None;
            self.log.enable_at = self.log.enable_at.map(|_| now.at);
            return;
        }
        let is_due =
            || !is_saving && (is_scheduled || self.has_grown()) && !self.is_waiting_after_failures(now);
        if is_asked || (self.log.is_on && is_due()) {
            self.begin_rewrite(Why::Growth, RewriteKind::Replace, now);
        }
    }

    /// Whether the log is larger than `auto-aof-rewrite-…` allows.
    fn has_grown(&self) -> bool {
        let config = self.shared.config();
        let (percentage, bytes_min) =
            (config.persistence.auto_aof_rewrite_percentage, config.persistence.auto_aof_rewrite_min_size);
        if percentage == 0 {
            return false;
        }
        let bytes = self.shared.persistence.log.status().bytes;
        let base = self.keeper().status().rewrite_base_bytes.max(1);
        let limit = u128::from(base) * u128::from(percentage.saturating_add(100)) / 100;
        bytes > bytes_min && u128::from(bytes) >= limit
    }

    fn is_waiting_after_failures(&self, now: Now) -> bool {
        let failures = self.keeper().status().rewrite_failures;
        if failures < FAILURES_BEFORE_WAITING {
            return false;
        }
        let doublings = u32::try_from(failures - FAILURES_BEFORE_WAITING).unwrap_or(u32::MAX);
        let minutes = 1u32.checked_shl(doublings).unwrap_or(MINUTES_MAX).min(MINUTES_MAX);
        self.log.failed_at.is_some_and(|at| now.at.since(at) < MINUTE * minutes)
    }

    fn begin_rewrite(&mut self, why: Why, kind: RewriteKind, now: Now) {
        let mut running = Running::asked(now.unix_ms, true);
        running.keys = (0..DB_COUNT).map(|db| self.shared.store.len(db) as u64).sum();
        {
            let mut status = self.keeper().status();
            status.rewrites += 1;
            status.is_rewrite_scheduled = false;
            status.rewriting = Some(running.clone());
        }
        let job = RewriteJob::new(&self.shared, &self.log.manifest, kind, self.log.is_on, running.progress);
        self.log.is_on = true;
        self.log.rewrite = Some(Rewriting { job, why, began: now.at, retry_at: None, rest: RETRY_FIRST });
        self.apply_policy(&self.shared.config());
    }

    /// Takes a step of the rewrite that goes on.
    pub(super) fn step_rewrite(&mut self, now: Now) {
        let Some(rewriting) = &mut self.log.rewrite else { return };
        if rewriting.retry_at.is_some_and(|at| at > now.at) {
            return;
        }
        rewriting.retry_at = None;
        match rewriting.job.step(&self.shared, now.unix_ms) {
            Step::More => {}
            Step::Committed => self.rewrite_committed(now),
            Step::Finished => self.end_rewrite(),
            Step::TryAgain(error) => {
                tracing::error!("rewriting the log: {error}; it is tried again");
                rewriting.retry_at = Some(now.at + rewriting.rest);
                rewriting.rest = (rewriting.rest * 2).min(RETRY_MAX);
            }
            Step::GivenUp(error) => {
                tracing::error!("the log was not rewritten: {error}");
                let why = rewriting.why;
                self.end_rewrite();
                self.rewrite_failed(why, now);
            }
        }
    }

    fn rewrite_committed(&mut self, now: Now) {
        let Some(rewriting) = &self.log.rewrite else { return };
        let (written, took) = (rewriting.job.written(), now.at.since(rewriting.began));
        tracing::info!(
            "the log was written anew: {} keys, {} bytes in {} ms",
            written.keys,
            written.bytes,
            took.as_millis()
        );
        self.log.enable_rest = Duration::ZERO;
        if rewriting.why == Why::Anew {
            self.shared.persistence.gate.set_log_failed(None);
        }
        let bytes = self.shared.persistence.log.status().bytes;
        let mut status = self.keeper().status();
        status.is_rewrite_ok = true;
        status.rewrite_failures = 0;
        status.rewrite_took = Some(took);
        status.rewrite_base_bytes = bytes.max(written.bytes);
    }

    /// What is over, well or not, is no longer there.
    fn end_rewrite(&mut self) {
        if let Some(manifest) = self.log.rewrite.take().and_then(|rewriting| rewriting.job.manifest) {
            self.log.manifest = manifest;
        }
        self.keeper().status().rewriting = None;
        self.apply_policy(&self.shared.config());
    }

    fn rewrite_failed(&mut self, why: Why, now: Now) {
        self.log.failed_at = Some(now.at);
        {
            let mut status = self.keeper().status();
            status.is_rewrite_ok = false;
            status.rewrite_failures += 1;
        }
        // A recovery is asked for again by the appender.
        match why {
            Why::Enable => self.enable_failed(now),
            Why::Anew => self.log.anew_at = Some(now.at + RETRY_MAX),
            Why::Growth | Why::Recover => {}
        }
    }

    fn enable_failed(&mut self, now: Now) {
        self.log.is_on = false;
        let rest = self.log.enable_rest.max(RETRY_FIRST);
        self.log.enable_at = Some(now.at + rest);
        // Whoever waits for the log to keep its promises sees that it does not yet.
        self.keeper().status().is_rewrite_scheduled = true;
        self.log.enable_rest = (rest * 2).min(RETRY_MAX);
    }

    /// Ends the rewrite that goes on before its time.
    pub(super) fn abandon_rewrite(&mut self) {
        if let Some(rewriting) = &mut self.log.rewrite {
            rewriting.job.end(&self.shared);
            self.end_rewrite();
        }
    }

    /// Ends the log before other data takes the place of what it holds. Its files stay as they are until [`Core::log_anew`] has
    /// replaced them.
    pub(super) fn leave_log(&mut self) -> Result<(), AppendError> {
        self.abandon_rewrite();
        if self.log.is_on { self.shared.persistence.log.stop() } else { Ok(()) }
    }

    /// Begins the log anew with the data at hand. Until that has succeeded, which is tried again and again, writes are refused.
    pub(super) fn log_anew(&mut self, now: Now) {
        if !self.log.is_on {
            return;
        }
        self.begin_rewrite(Why::Anew, RewriteKind::Enable, now);
        if let Err(error) = self.finish_first_rewrite(now) {
            tracing::error!("the log cannot be written anew: {error}; writes are refused until it can");
            self.shared.persistence.gate.set_log_failed(Some(error.to_string()));
            if self.log.rewrite.is_some() {
                self.end_rewrite();
            }
            self.rewrite_failed(Why::Anew, now);
        }
    }

    /// Whether the log does not hold the data before the rewrite that goes on is done.
    pub(super) fn is_first_rewrite_on(&self) -> bool {
        self.log.rewrite.as_ref().is_some_and(|rewriting| {
            rewriting.why == Why::Enable && rewriting.job.is_first() && !rewriting.job.is_committed()
        })
    }

    /// When there is something to be done for the log though nobody asks.
    pub(super) fn log_timer(&self) -> Option<Instant> {
        let waits = self.log.rewrite.as_ref().and_then(Rewriting::waits_until);
        waits.into_iter().chain(self.log.enable_at).chain(self.log.anew_at).min()
    }
}

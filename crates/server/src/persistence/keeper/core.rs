//! What the keeper does next: a machine that is told what is asked of it and what time it is, and takes one step at a time.
//!
//! Owns: when a snapshot is made, what its end means, and stopping. Does **not** own the thread, the clock, nor a snapshot's
//! steps (see [`super::save`]).

mod log;
mod reload;

use super::save::{SaveError, SaveJob};
use super::status::Running;
use super::{Errand, Keeper, Now, Request, StopOptions};
use crate::blocking::Waiter;
use crate::command::CommandError;
use crate::shared::{Shared, Stop};
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use towline_resp::writer::Writer;
use towline_sansio::Instant;

/// Time between two looks at whether something is due. Save points are counted in seconds.
const TICK: Duration = Duration::from_millis(100);
/// Time after a snapshot in the background failed until the next one is made by itself; that of Redis.
const RETRY: Duration = Duration::from_secs(5);
/// How often the last snapshot of all is made anew because commands that were under way when writing was stopped came after
/// its instant. Each time is longer than any of them takes.
const LAST_SAVES_MAX: u32 = 3;

/// When a core wants its next turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// At once: it has work.
    AtOnce,
    /// At this time, or when something is asked.
    At(Instant),
    /// When something is asked.
    Asked,
    /// Never: the server has stopped.
    Over,
}

/// Why a snapshot is made.
#[derive(Debug)]
enum Cause {
    Client(Arc<Waiter>),
    Background,
    Stop,
    /// `DEBUG RELOAD`.
    Reload,
}

#[derive(Debug)]
struct Saving {
    job: SaveJob,
    cause: Cause,
    began: Instant,
}

/// The server is to be stopped.
#[derive(Debug)]
struct Stopping {
    options: StopOptions,
    waiters: Vec<Arc<Waiter>>,
    saves_left: u32,
}

/// See the module's description.
#[derive(Debug)]
pub(crate) struct Core {
    shared: Arc<Shared>,
    saving: Option<Saving>,
    /// `SAVE`s, in the order in which they came.
    asked: VecDeque<Arc<Waiter>>,
    stopping: Option<Stopping>,
    log: log::Log,
    reloads: reload::Reloads,
    /// When the data was saved last, or the start.
    saved_at: Instant,
    /// When a snapshot in the background was begun last.
    tried_at: Option<Instant>,
    is_over: bool,
}

impl Core {
    /// Of a server that has its data.
    pub(crate) fn new(shared: Arc<Shared>, now: Now) -> Self {
        // What was loaded is in the files.
        shared.persistence.keeper.status().saved_changes = shared.stats.dirty();
        Self {
            shared,
            saving: None,
            asked: VecDeque::new(),
            stopping: None,
            log: log::Log::default(),
            reloads: reload::Reloads::default(),
            saved_at: now.at,
            tried_at: None,
            is_over: false,
        }
    }

    /// Takes a request.
    pub(crate) fn handle(&mut self, request: Request, now: Now) {
        match request {
            Request::Errand(Errand::Save, waiter) => self.asked.push_back(waiter),
            Request::Errand(Errand::Reload(options), waiter) => self.ask_reload(options, waiter),
            Request::Errand(Errand::Stop(options), waiter) => self.stop(options, Some(waiter)),
            Request::Stop(options) => self.stop(options, None),
            Request::ConfigChanged => {
                self.show_failure();
                self.follow_config(now);
            }
            Request::Recover => self.recover(),
            Request::Look => {}
            Request::Quit => {
                self.end_save();
                self.end_reload(Err("ERR The server stops".into()));
                self.abandon_rewrite();
                self.is_over = true;
            }
        }
    }

    /// Takes a step.
    pub(crate) fn turn(&mut self, now: Now) -> When {
        if self.is_over {
            return When::Over;
        }
        self.abort_stop();
        if self.saving.is_none() {
            self.begin_due(now);
        }
        if self.log.rewrite.is_none() && self.stopping.is_none() && !self.is_reload_due() && !self.is_over {
            self.begin_rewrite_due(now);
        }
        let goes_on = |core: &Self| (core.saving.is_some(), core.log.rewrite.is_some());
        let before = goes_on(self);
        self.step_save(now);
        self.step_rewrite(now);
        let is_rewriting = || self.log.rewrite.as_ref().is_some_and(|job| job.waits_until().is_none());
        match () {
            () if self.is_over => When::Over,
            // What waited for the end of the other may begin.
            () if before != goes_on(self) => When::AtOnce,
            () if self.saving.is_some() || self.stopping.is_some() || !self.asked.is_empty() => When::AtOnce,
            () if is_rewriting() || self.is_reload_due() => When::AtOnce,
            () if self.has_timers() => When::At(now.at + TICK),
            () => self.log_timer().map_or(When::Asked, When::At),
        }
    }

    /// Whether something may become due that nobody asks for.
    fn has_timers(&self) -> bool {
        let status = self.keeper().status();
        let is_scheduled = status.is_save_scheduled || status.is_rewrite_scheduled;
        is_scheduled || self.log.is_on || !self.shared.config().persistence.save.is_empty()
    }

    fn keeper(&self) -> &Keeper {
        &self.shared.persistence.keeper
    }

    // ---- snapshots ------------------------------------------------------------------------------------------------

    /// Begins the snapshot that is due, if one is.
    fn begin_due(&mut self, now: Now) {
        if self.is_reload_due() && self.stopping.is_none() {
            // A rewrite comes to its end first.
            return if self.log.rewrite.is_none() {
                self.go_on_reloading(now)
            };
        }
        if let Some(waiter) = self.asked.pop_front() {
            return self.begin(Cause::Client(waiter), now);
        }
        if self.stopping.is_some() {
            return self.go_on_stopping(now);
        }
        let (is_asked, is_scheduled, is_ok, is_rewriting) = {
            let status = self.keeper().status();
            let is_asked = status.saving.is_some();
            (is_asked, status.is_save_scheduled, status.is_save_ok, status.rewriting.is_some())
        };
        let may_try = is_ok || self.tried_at.is_none_or(|at| now.at.since(at) >= RETRY);
        let is_due = || (is_scheduled || self.is_save_point_reached(now)) && may_try && !is_rewriting;
        if is_asked || is_due() {
            self.begin(Cause::Background, now);
        }
    }

    fn is_save_point_reached(&self, now: Now) -> bool {
        let changes = self.shared.stats.dirty().wrapping_sub(self.keeper().status().saved_changes);
        let elapsed = now.at.since(self.saved_at);
        let config = self.shared.config();
        let mut points = config.persistence.save.iter();
        points.any(|point| changes >= point.changes && elapsed >= Duration::from_secs(point.seconds))
    }

    fn begin(&mut self, cause: Cause, now: Now) {
        let is_background = matches!(cause, Cause::Background);
        if is_background {
            self.tried_at = Some(now.at);
        }
        let mut running = Running::asked(now.unix_ms, is_background);
        running.keys = (0..towline_store::store::DB_COUNT).map(|db| self.shared.store.len(db) as u64).sum();
        {
            let mut status = self.keeper().status();
            status.saves += 1;
            status.is_save_scheduled &= !is_background;
            status.saving = Some(running.clone());
        }
        let follows = matches!(cause, Cause::Stop | Cause::Reload);
        match SaveJob::begin(&self.shared, running.progress, now.unix_ms, follows) {
            Ok(job) => self.saving = Some(Saving { job, cause, began: now.at }),
            Err(error) => self.failed(cause, &error),
        }
    }

    fn step_save(&mut self, now: Now) {
        let Some(saving) = &mut self.saving else { return };
        let stepped = saving.job.step(&self.shared);
        if let Ok(false) = stepped {
            return;
        }
        let Some(Saving { job, cause, began }) = self.saving.take() else { return };
        match stepped {
            Ok(_) => self.saved(job, cause, now.at.since(began), now),
            Err(error) => {
                job.end(&self.shared);
                self.failed(cause, &error);
            }
        }
    }

    fn saved(&mut self, job: SaveJob, cause: Cause, took: Duration, now: Now) {
        let (written, changes, has_tail) = (job.written(), job.changes, job.has_tail());
        tracing::info!(
            "saved {} keys, {} bytes, to {} in {} ms",
            written.keys,
            written.bytes,
            job.path().display(),
            took.as_millis()
        );
        job.end(&self.shared);
        self.saved_at = now.at;
        {
            let mut status = self.keeper().status();
            status.saving = None;
            status.saved_ms = now.unix_ms;
            status.saved_changes = changes;
            status.is_save_ok = true;
            if let Cause::Background = cause {
                status.save_took = Some(took);
            }
        }
        self.show_failure();
        match cause {
            Cause::Client(waiter) => _ = waiter.end_with(Bytes::from_static(b"+OK\r\n")),
            Cause::Background => {}
            Cause::Reload => self.reload_saved(has_tail),
            Cause::Stop => {
                if let Some(stopping) = &mut self.stopping {
                    stopping.saves_left = if has_tail { stopping.saves_left - 1 } else { 0 };
                }
            }
        }
    }

    fn failed(&mut self, cause: Cause, error: &SaveError) {
        tracing::error!("saving failed: {error}");
        {
            let mut status = self.keeper().status();
            status.saving = None;
            if let Cause::Background = cause {
                status.is_save_ok = false;
            }
        }
        self.show_failure();
        match cause {
            Cause::Client(waiter) => {
                answer(&waiter, &CommandError::message(format!("ERR Saving failed: {error}")))
            }
            Cause::Background => {}
            Cause::Reload => self.end_reload(Err(format!("ERR Saving failed: {error}"))),
            Cause::Stop => self.stop_failed(),
        }
    }

    /// Ends the snapshot that is made, as if it had never been begun. A client that waits for it does so no longer.
    fn end_save(&mut self) {
        let Some(Saving { job, cause, .. }) = self.saving.take() else { return };
        job.end(&self.shared);
        self.keeper().status().saving = None;
        if let Cause::Client(waiter) = cause {
            answer(&waiter, &CommandError::Text("ERR Saving was ended because the server stops"));
        }
    }

    /// Lets writes be refused because a snapshot failed, or no longer.
    fn show_failure(&self) {
        let config = &self.shared.config().persistence;
        let is_ok = self.keeper().status().is_save_ok;
        let refuses = config.stop_writes_on_bgsave_error && !config.save.is_empty() && !is_ok;
        self.shared.persistence.gate.set_snapshot_failed(refuses);
    }

    // ---- stopping -------------------------------------------------------------------------------------------------

    fn stop(&mut self, options: StopOptions, waiter: Option<Arc<Waiter>>) {
        if let Some(stopping) = &mut self.stopping {
            // The first decides how, except that it may be made more certain.
            stopping.options.is_forced |= options.is_forced;
            stopping.waiters.extend(waiter);
            return;
        }
        // From here on nothing is written that the files would not have.
        self.shared.pause.begin(u64::MAX, false);
        let saves_left = match options.save {
            Some(is_wanted) => is_wanted,
            None => !self.shared.config().persistence.save.is_empty(),
        };
        let saves_left = if saves_left { LAST_SAVES_MAX } else { 0 };
        self.stopping = Some(Stopping { options, waiters: waiter.into_iter().collect(), saves_left });
        {
            let mut status = self.keeper().status();
            status.is_stopping = true;
            status.is_stop_aborted = false;
        }
        // A client's is let come to its end: the client waits.
        if let Some(saving) = self.saving.take_if(|saving| matches!(saving.cause, Cause::Background)) {
            tracing::warn!("the snapshot that is being made is given up: the server stops");
            saving.job.end(&self.shared);
            self.keeper().status().saving = None;
        }
    }

    /// Nothing is being saved: makes the last snapshot, or ends.
    fn go_on_stopping(&mut self, now: Now) {
        let Some(stopping) = &self.stopping else { return };
        if stopping.saves_left > 0 {
            self.begin(Cause::Stop, now);
        } else if self.end_log() {
            // Who waits is answered by the end of its connection.
            self.is_over = true;
            self.shared.stop(Stop::Gracefully);
        }
    }

    /// Everything that was executed is in the log, or was not to be; `false` if that failed and the server goes on.
    fn end_log(&mut self) -> bool {
        if !self.log.is_on {
            return true;
        }
        let is_forced = self.stopping.as_ref().is_some_and(|stopping| stopping.options.is_forced);
        if self.is_first_rewrite_on() {
            tracing::error!("the log is just being written for the first time");
            self.stop_failed();
            if !is_forced {
                return false;
            }
        }
        self.abandon_rewrite();
        if let Err(error) = self.shared.persistence.log.finish() {
            tracing::error!("the end of the log is not on the device: {error}");
            self.stop_failed();
            return is_forced;
        }
        true
    }

    fn stop_failed(&mut self) {
        let Some(stopping) = &mut self.stopping else { return };
        if stopping.options.is_forced {
            tracing::warn!("the server stops all the same, as it was told to");
            stopping.saves_left = 0;
            return;
        }
        tracing::error!("the server goes on, as it could not keep the data");
        self.call_stop_off();
    }

    fn abort_stop(&mut self) {
        if self.stopping.is_some() && self.keeper().status().is_stop_aborted {
            self.end_save();
            self.call_stop_off();
        }
    }

    fn call_stop_off(&mut self) {
        let Some(stopping) = self.stopping.take() else { return };
        {
            let mut status = self.keeper().status();
            status.is_stopping = false;
            status.is_stop_aborted = false;
        }
        self.shared.unpause();
        for waiter in stopping.waiters {
            answer(&waiter, &CommandError::Text("ERR Errors trying to SHUTDOWN. Check logs."));
        }
    }
}

/// Answers a client that waits with an error. One that waits no longer needs none.
fn answer(waiter: &Waiter, error: &CommandError) {
    let mut out = Writer::new(waiter.proto());
    error.reply(&mut out);
    let _ = waiter.end_with(Bytes::from(out.take().0));
}

//! `DEBUG RELOAD` and `DEBUG LOADAOF`.
//!
//! Owns: their steps, and keeping commands back meanwhile. Does **not** own loading (see [`crate::persistence::loading`]).
//!
//! ```text
//! hold commands | save, again if a command came after it | end the log | load | log anew | let commands go on
//! ```
//!
//! The log is not told of what is loaded: it holds the data as it was until a rewrite has replaced it, so that a crash in
//! between finds the one or the other, and never a part.

use super::{Cause, Core, LAST_SAVES_MAX, answer};
use crate::blocking::Waiter;
use crate::command::CommandError;
use crate::persistence::keeper::Now;
use crate::persistence::loading::{ReloadError, ReloadFrom, ReloadOptions, reload};
use crate::shared::Stop;
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Reloads that were asked for.
#[derive(Debug, Default)]
pub(super) struct Reloads {
    asked: VecDeque<(ReloadOptions, Arc<Waiter>)>,
    current: Option<Reloading>,
}

/// Commands are held back, and nothing was loaded yet.
#[derive(Debug)]
struct Reloading {
    options: ReloadOptions,
    waiter: Arc<Waiter>,
    /// The pause that was in force.
    pause_before: (u64, bool),
    saves_left: u32,
}

impl Core {
    /// A client asks for one and waits.
    pub(super) fn ask_reload(&mut self, options: ReloadOptions, waiter: Arc<Waiter>) {
        self.reloads.asked.push_back((options, waiter));
    }

    /// Whether one goes on or is asked for.
    pub(super) fn is_reload_due(&self) -> bool {
        self.reloads.current.is_some() || !self.reloads.asked.is_empty()
    }

    /// Takes the next step of the reload that is due. Nothing is being saved or rewritten.
    pub(super) fn go_on_reloading(&mut self, now: Now) {
        if self.reloads.current.is_none() {
            let Some((options, waiter)) = self.reloads.asked.pop_front() else { return };
            let pause_before = self.shared.pause.state();
            self.shared.pause.begin(u64::MAX, true);
            let saves_left = if options.saves { LAST_SAVES_MAX } else { 0 };
            self.reloads.current = Some(Reloading { options, waiter, pause_before, saves_left });
        }
        match &self.reloads.current {
            Some(current) if current.saves_left > 0 => self.begin(Cause::Reload, now),
            _ => self.reload_now(now),
        }
    }

    /// The snapshot is in its file.
    pub(super) fn reload_saved(&mut self, has_tail: bool) {
        if let Some(current) = &mut self.reloads.current {
            current.saves_left = if has_tail { current.saves_left - 1 } else { 0 };
        }
    }

    fn reload_now(&mut self, now: Now) {
        let Some(Reloading { options, .. }) = self.reloads.current else { return };
        if let Err(error) = self.leave_log() {
            // Its end is not on the device, and what is loaded from it would not be the data.
            self.log_anew(now);
            return self.end_reload(Err(format!("ERR The log could not be ended: {error}")));
        }
        let is_reloading = &self.shared.persistence.loading.is_reloading;
        is_reloading.store(true, Ordering::Release);
        let result = reload(&self.shared, options, now.unix_ms);
        self.shared.persistence.loading.is_reloading.store(false, Ordering::Release);
        if !matches!(result, Err(ReloadError::Broken(_))) {
            self.log_anew(now);
        }
        match result {
            Ok(()) => {
                let what = if options.from == ReloadFrom::Log { "the log" } else { "the snapshot" };
                tracing::warn!("the data set was loaded again from {what}, as DEBUG asked for");
                self.end_reload(Ok(()));
            }
            Err(ReloadError::Refused(error)) => {
                tracing::error!("{error}");
                self.end_reload(Err(format!(
                    "ERR Error trying to load the data set, nothing was changed: {error}"
                )));
            }
            Err(ReloadError::Broken(error)) => {
                tracing::error!("{error}; part of the data set is gone from memory, and the server ends");
                self.shared.persistence.gate.set_loading(true);
                self.shared.persistence.loading.break_off(error);
                self.shared.stop(Stop::Gracefully);
                self.is_over = true;
            }
        }
    }

    /// Answers, and lets commands go on.
    pub(super) fn end_reload(&mut self, result: Result<(), String>) {
        let Some(Reloading { waiter, pause_before: (until_ms, all), .. }) = self.reloads.current.take()
        else {
            return;
        };
        self.shared.unpause();
        if until_ms > 0 {
            self.shared.pause.begin(until_ms, all);
        }
        match result {
            Ok(()) => _ = waiter.end_with(Bytes::from_static(b"+OK\r\n")),
            Err(reason) => answer(&waiter, &CommandError::message(reason)),
        }
    }
}

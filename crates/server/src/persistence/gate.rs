//! What files mean for the command at hand.
//!
//! Owns: the few words that every worker looks at with every command: whether the data set is being loaded, whether writes
//! are refused because they could not be kept, and up to which position of the log all is durable. Does **not** own
//! finding any of that out.

use crate::command::CommandError;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use towline_spec::{Command, Flags};

/// The data set is being loaded.
const LOADING: u8 = 1 << 0;
/// The last snapshot that a save point asked for has failed.
const NO_SNAPSHOT: u8 = 1 << 1;
/// The log cannot be written.
const NO_LOG: u8 = 1 << 2;
/// The log is far behind the writes.
const CROWDED: u8 = 1 << 3;

const LOADING_ERROR: CommandError = CommandError::Text("LOADING Redis is loading the dataset in memory");
/// In the words of Redis, which clients and operators know.
const NO_SNAPSHOT_ERROR: CommandError = CommandError::Text(
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that may \
     modify the data set are disabled, because this instance is configured to report errors during writes if RDB \
     snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB error.",
);

/// See the module's description.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: AtomicU8,
    /// Why the log cannot be written.
    reason: Mutex<String>,
    /// Whether there is a log that holds everything: without one, no reply waits.
    is_promising: AtomicBool,
    /// Whether the configuration says `always`. It is told by whoever changes that, so that the policy holds from the reply
    /// to `CONFIG SET` on, however long it takes until the appender hears of it.
    is_always: AtomicBool,
    /// Whether the server is about to end, and replies wait whatever the policy.
    is_last: AtomicBool,
    durable: AtomicU64,
}

impl Gate {
    /// Whether no command is refused at present.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.state.load(Ordering::Acquire) == 0
    }

    /// Whether a command may run. `writes` says whether it may change the data set; for `EXEC`, whether anything queued
    /// may.
    pub(crate) fn check(&self, command: &Command, writes: bool) -> Result<(), CommandError> {
        let state = self.state.load(Ordering::Acquire);
        if state == 0 {
            return Ok(());
        }
        if writes && state & NO_LOG != 0 {
            let reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner).clone();
            return Err(CommandError::message(format!("MISCONF Errors writing to the AOF file: {reason}")));
        }
        if writes && state & NO_SNAPSHOT != 0 {
            return Err(NO_SNAPSHOT_ERROR);
        }
        if state & LOADING != 0 && !command.flags.contains(Flags::LOADING) {
            return Err(LOADING_ERROR);
        }
        Ok(())
    }

    /// Whether the data set is there.
    ///
    /// # Errors
    /// `LOADING`.
    pub(crate) fn check_loaded(&self) -> Result<(), CommandError> {
        if self.is_loading() { Err(LOADING_ERROR) } else { Ok(()) }
    }

    /// Whether the data set is being loaded.
    pub(crate) fn is_loading(&self) -> bool {
        self.state.load(Ordering::Acquire) & LOADING != 0
    }

    /// The data set is being loaded, or is there.
    pub(crate) fn set_loading(&self, is_on: bool) {
        self.set(LOADING, is_on);
    }

    /// The last snapshot that a save point asked for has failed, or one was made since.
    pub(crate) fn set_snapshot_failed(&self, is_on: bool) {
        self.set(NO_SNAPSHOT, is_on);
    }

    /// The log cannot be written, for this reason, or can be again. Replies to writes that were executed before go on waiting
    /// until what they did is durable after all.
    pub(crate) fn set_log_failed(&self, reason: Option<String>) {
        let is_on = reason.is_some();
        if let Some(reason) = reason {
            *self.reason.lock().unwrap_or_else(PoisonError::into_inner) = reason;
        }
        self.set(NO_LOG, is_on);
    }

    /// Whether the log cannot be written.
    pub(crate) fn is_log_failed(&self) -> bool {
        self.state.load(Ordering::Acquire) & NO_LOG != 0
    }

    /// Whether writes are to wait because the log is far behind.
    pub(crate) fn is_crowded(&self) -> bool {
        self.state.load(Ordering::Acquire) & CROWDED != 0
    }

    /// Writes are to wait until the log has caught up, or no longer are.
    pub(crate) fn set_crowded(&self, is_on: bool) {
        if is_on || self.is_crowded() {
            self.set(CROWDED, is_on);
        }
    }

    fn set(&self, bit: u8, is_on: bool) {
        if is_on {
            self.state.fetch_or(bit, Ordering::AcqRel);
        } else {
            self.state.fetch_and(!bit, Ordering::AcqRel);
        }
    }

    /// The configuration in force says `appendfsync always`, or something else.
    pub(crate) fn set_always(&self, is_always: bool) {
        self.is_always.store(is_always, Ordering::Release);
    }

    /// There is a log that holds everything, or there is none.
    pub(crate) fn set_promising(&self, is_on: bool) {
        self.is_promising.store(is_on, Ordering::Release);
    }

    /// Replies wait until what they tell is durable, whatever the configuration says, or no longer do.
    pub(crate) fn set_last(&self, is_on: bool) {
        self.is_last.store(is_on, Ordering::Release);
    }

    /// Whether a reply that tells of the log up to `position` has to wait. Without a log every position is 0.
    #[inline]
    pub(crate) fn holds(&self, position: u64) -> bool {
        self.durable.load(Ordering::Acquire) < position && self.is_strict()
    }

    /// Whether replies wait for what they tell to be durable.
    #[inline]
    pub(crate) fn is_strict(&self) -> bool {
        let is_on = |flag: &AtomicBool| flag.load(Ordering::Acquire);
        self.is_promising() && (is_on(&self.is_always) || is_on(&self.is_last))
    }

    /// Whether there is a log that holds everything.
    #[inline]
    pub(crate) fn is_promising(&self) -> bool {
        self.is_promising.load(Ordering::Acquire)
    }

    /// Up to which position everything is durable.
    pub(crate) fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// Everything up to this position is durable.
    pub(crate) fn set_durable(&self, position: u64) {
        self.durable.fetch_max(position, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_states_and_commands() {
        let command = |name: &str| towline_spec::lookup(name.as_bytes()).expect("a command");
        let (ping, get, set, info) = (command("ping"), command("get"), command("set"), command("info"));
        let of = |gate: &Gate| {
            [(ping, false), (get, false), (set, true), (info, false)].map(|(command, writes)| {
                let text = gate.check(command, writes).err().map(|error| error.to_string());
                text.map_or(String::new(), |text| text.split(' ').next().unwrap_or("").to_owned())
            })
        };
        let gate = Gate::default();
        assert!(gate.is_open());
        assert_eq!(of(&gate), ["", "", "", ""]);
        gate.set_loading(true);
        assert_eq!(of(&gate), ["LOADING", "LOADING", "LOADING", ""]);
        gate.set_loading(false);
        gate.set_snapshot_failed(true);
        assert_eq!(of(&gate), ["", "", "MISCONF", ""]);
        gate.set_log_failed(Some("No space left on device".into()));
        gate.set_snapshot_failed(false);
        assert_eq!(of(&gate), ["", "", "MISCONF", ""]);
        let error = gate.check(set, true).unwrap_err().to_string();
        assert_eq!(error, "MISCONF Errors writing to the AOF file: No space left on device");
        gate.set_log_failed(None);
        assert!(gate.is_open());
        gate.set_crowded(true);
        assert!(gate.is_crowded() && !gate.is_open());
        assert_eq!(of(&gate), ["", "", "", ""], "who is to wait is not refused");
        gate.set_crowded(false);
        assert!(gate.is_open());
    }

    #[test]
    fn replies_wait_only_under_always() {
        let gate = Gate::default();
        assert!(!gate.holds(0) && !gate.holds(1));
        gate.set_always(true);
        assert!(!gate.holds(1), "there is no log");
        gate.set_promising(true);
        assert!(!gate.holds(0) && gate.holds(1));
        gate.set_durable(7);
        gate.set_durable(3);
        assert!(!gate.holds(7) && gate.holds(8));
        gate.set_always(false);
        assert!(!gate.holds(8));
        gate.set_last(true);
        assert!(gate.holds(8));
        gate.set_promising(false);
        assert!(!gate.holds(8));
    }
}

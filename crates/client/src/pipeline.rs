//! Several commands that are sent together.
//!
//! Owns [`Pipeline`]: the commands in order, which replies the caller wants, and whether they form a transaction.
//! Does **not** own sending, nor the wrapping in `MULTI` and `EXEC`.

mod run;

pub use run::Transacted;

use towline_client_proto::routing::ReadFrom;

use crate::args::ToArgs;
use crate::cmd::{Cmd, CmdOptions, RetryChoice};
use std::time::Duration;

/// Begins a pipeline.
///
/// ```
/// use towline_client::pipe;
///
/// let pipeline = pipe().cmd("SET").arg("key").arg(1).ignore().cmd("INCR").arg("key").atomic();
/// assert_eq!(pipeline.len(), 2);
/// assert_eq!(pipeline.reply_count(), 1);
/// ```
#[must_use = "a pipeline does nothing until it is sent"]
pub const fn pipe() -> Pipeline {
    Pipeline::new()
}

/// Commands that go out back to back and whose replies come back as one.
///
/// The commands are independent unless [`atomic`](Self::atomic) makes them a transaction. Options that were given
/// for one of its commands hold for that command; the pipeline's own hold for the rest.
#[derive(Debug, Clone, Default)]
#[must_use = "a pipeline does nothing until it is sent"]
pub struct Pipeline {
    entries: Vec<Entry>,
    options: CmdOptions,
    is_atomic: bool,
    misuse: Option<PipelineMisuse>,
}

/// A command of a pipeline.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The command.
    pub cmd: Cmd,
    /// Whether the caller does not want its reply. An error is reported all the same.
    pub is_ignored: bool,
}

/// What is wrong with how a pipeline was built; the caller's mistake, found when it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PipelineMisuse {
    /// An argument came before any command.
    #[error("a pipeline got an argument before its first command")]
    ArgFirst,
    /// `ignore` came before any command.
    #[error("a pipeline was told to ignore a reply before its first command")]
    IgnoreFirst,
}

impl Pipeline {
    /// An empty pipeline.
    pub const fn new() -> Self {
        Self {
            entries: Vec::new(),
            options: CmdOptions {
                deadline: None,
                retry: RetryChoice::ByEffect,
                is_fire_and_forget: false,
                read_from: None,
                is_asking: false,
            },
            is_atomic: false,
            misuse: None,
        }
    }

    /// Begins the next command; arguments that follow are its. See [`cmd`](crate::cmd()) for names of several words.
    pub fn cmd(self, name: &str) -> Self {
        self.add_command(Cmd::new(name))
    }

    /// Appends a whole command.
    pub fn add_command(mut self, cmd: Cmd) -> Self {
        self.push(cmd);
        self
    }

    /// Appends a whole command, in place: for loops.
    pub fn push(&mut self, cmd: Cmd) -> &mut Self {
        self.entries.push(Entry { cmd, is_ignored: false });
        self
    }

    /// Appends arguments to the last command. Before the first command it is a mistake, which sending reports.
    pub fn arg(mut self, value: impl ToArgs) -> Self {
        match self.entries.last_mut() {
            Some(entry) => _ = entry.cmd.push(value),
            None => self.misuse = Some(PipelineMisuse::ArgFirst),
        }
        self
    }

    /// Leaves the last command's reply out of the result. An error is reported all the same.
    pub fn ignore(mut self) -> Self {
        match self.entries.last_mut() {
            Some(entry) => entry.is_ignored = true,
            None => self.misuse = Some(PipelineMisuse::IgnoreFirst),
        }
        self
    }

    /// Makes it a transaction: the server executes all commands without others in between, or none. It is one unit to
    /// the client too, which never repeats a part of it.
    pub const fn atomic(mut self) -> Self {
        self.is_atomic = true;
        self
    }

    /// The time that the whole has, as [`Cmd::deadline`].
    pub const fn deadline(mut self, after: Duration) -> Self {
        self.options.deadline = Some(after);
        self
    }

    /// As [`Cmd::no_retry`], for each command.
    pub const fn no_retry(mut self) -> Self {
        self.options.retry = RetryChoice::Never;
        self
    }

    /// As [`Cmd::allow_retry`], for each command; it has no effect on a transaction, which is never repeated.
    pub const fn allow_retry(mut self) -> Self {
        self.options.retry = RetryChoice::Allowed;
        self
    }

    /// As [`Cmd::read_from`], for each command. It has no effect unless all commands read: a read must not overtake a write of
    /// its own pipeline.
    pub const fn read_from(mut self, policy: ReadFrom) -> Self {
        self.options.read_from = Some(policy);
        self
    }

    /// What was asked for the whole.
    pub const fn options(&self) -> &CmdOptions {
        &self.options
    }

    /// Whether it is a transaction.
    pub const fn is_atomic(&self) -> bool {
        self.is_atomic
    }

    /// The commands in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// How many commands there are.
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no command.
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many replies the caller wants: the commands without those that are ignored.
    pub fn reply_count(&self) -> usize {
        self.entries.iter().filter(|entry| !entry.is_ignored).count()
    }

    /// Length of all encoded arguments in bytes, without the headers.
    pub fn encoded_len(&self) -> usize {
        self.entries.iter().map(|entry| entry.cmd.encoded_len()).sum()
    }

    /// Gives up the commands, with options of the pipeline where a command has none of its own.
    ///
    /// # Errors
    /// [`PipelineMisuse`]: the pipeline was built wrongly and must not be sent.
    pub fn into_entries(mut self) -> Result<Vec<Entry>, PipelineMisuse> {
        if let Some(misuse) = self.misuse {
            return Err(misuse);
        }
        for entry in &mut self.entries {
            let own = entry.cmd.options_mut();
            own.deadline = own.deadline.or(self.options.deadline);
            own.read_from = own.read_from.or(self.options.read_from);
            if own.retry == RetryChoice::ByEffect {
                own.retry = self.options.retry;
            }
        }
        Ok(self.entries)
    }
}

impl Extend<Cmd> for Pipeline {
    fn extend<T: IntoIterator<Item = Cmd>>(&mut self, cmds: T) {
        self.entries.extend(cmds.into_iter().map(|cmd| Entry { cmd, is_ignored: false }));
    }
}

impl FromIterator<Cmd> for Pipeline {
    fn from_iter<T: IntoIterator<Item = Cmd>>(cmds: T) -> Self {
        let mut pipeline = Self::new();
        pipeline.extend(cmds);
        pipeline
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::cmd;

    #[test]
    fn arguments_and_ignore_belong_to_the_last_command() {
        let pipeline =
            pipe().cmd("SET").arg("a").arg(1).ignore().cmd("GET").arg("a").add_command(cmd("PING"));
        let entries = pipeline.clone().into_entries().unwrap();
        let counts: Vec<_> = entries.iter().map(|entry| entry.cmd.args().count()).collect();
        assert_eq!(counts, [3, 2, 1]);
        assert_eq!(entries.iter().map(|entry| entry.is_ignored).collect::<Vec<_>>(), [true, false, false]);
        assert_eq!((pipeline.len(), pipeline.reply_count()), (3, 2));
        assert!(!pipeline.is_atomic() && pipeline.atomic().is_atomic());
    }

    #[test]
    fn building_in_the_wrong_order_is_reported_and_does_not_panic() {
        assert_eq!(pipe().arg(1).cmd("PING").into_entries().unwrap_err(), PipelineMisuse::ArgFirst);
        assert_eq!(pipe().ignore().into_entries().unwrap_err(), PipelineMisuse::IgnoreFirst);
        assert!(pipe().into_entries().unwrap().is_empty());
    }

    #[test]
    fn a_command_keeps_its_own_options() {
        let second = Duration::from_secs(1);
        let pipeline = pipe().add_command(cmd("GET").arg("a").allow_retry().deadline(second)).cmd("PING");
        let entries = pipeline.no_retry().deadline(Duration::MAX).into_entries().unwrap();
        let seen: Vec<_> =
            entries.iter().map(|entry| (entry.cmd.options().retry, entry.cmd.options().deadline)).collect();
        assert_eq!(seen, [(RetryChoice::Allowed, Some(second)), (RetryChoice::Never, Some(Duration::MAX))]);
    }

    #[test]
    fn commands_are_collected() {
        let pipeline: Pipeline = ["a", "b"].into_iter().map(|key| cmd("GET").arg(key)).collect();
        assert_eq!(pipeline.len(), 2);
        assert!(pipeline.encoded_len() > 0 && !pipeline.is_empty());
    }
}

//! The commands of a log.
//!
//! Owns: which commands a log may have, at what instant they run, which of them must wait for others, and running them. Does
//! **not** own reading the log, nor what a command does.

use super::LoadError;
use super::hands::Hands;
use crate::command::{Args, CommandError, Locks, Row};
use crate::execute::{hold, resolve, slots_of};
use crate::replay::{ReplayError, replay};
use std::path::Path;
use towline_persist::aof::LogCommand;
use towline_resp::request::ArgRange;
use towline_spec::{Command, Flags};

/// Lanes of a log: commands of slots in different lanes may run at the same time. More than there are threads, so that none
/// waits while others have two.
pub(super) const LANES: u64 = 16;
/// Of a command that fails, so many bytes are shown.
const SHOWN_BYTES_MAX: usize = 128;

#[derive(Debug, Clone, Copy)]
struct Item {
    offset: u64,
    db: u8,
    /// The instant that it runs at, in unix milliseconds.
    now_ms: u64,
    command: &'static Command,
    row: &'static Row,
    /// How many of the batch's bytes and ranges are its.
    bytes: usize,
    args: usize,
}

/// Commands in their order.
#[derive(Debug, Default)]
pub(super) struct CommandBatch {
    bytes: Vec<u8>,
    ranges: Vec<ArgRange>,
    items: Vec<Item>,
}

impl CommandBatch {
    /// Bytes of the commands, and what is noted of each.
    pub(super) fn mem_bytes(&self) -> usize {
        self.bytes.len() + self.ranges.len() * size_of::<ArgRange>() + self.items.len() * size_of::<Item>()
    }

    /// How many commands there are.
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }
}

/// A command of a log that can be run.
pub(super) struct Runnable<'a> {
    offset: u64,
    db: u8,
    now_ms: u64,
    command: &'static Command,
    row: &'static Row,
    args: Args<'a>,
}

/// What a log's command is.
pub(super) enum Kind<'a> {
    /// One that changes data.
    Write(Runnable<'a>),
    /// One that changes nothing.
    Idle,
    /// One that this server does not have.
    Unsupported {
        /// Whether it concerns only what this server does not have either.
        may_skip: bool,
    },
}

/// The arguments of a log's command as the server's commands take them: `ranges` lie in the bytes from the first argument on.
pub(super) fn ranges_of(command: &LogCommand<'_>, bytes: &mut Vec<u8>, ranges: &mut Vec<ArgRange>) {
    bytes.clear();
    ranges.clear();
    for arg in command.args.iter() {
        // A unit has less than 4 GiB, see `Reading`.
        ranges.push(ArgRange { start: bytes.len() as u32, len: arg.len() as u32 });
        bytes.extend_from_slice(arg);
    }
}

/// Finds out what to do with a command.
///
/// # Errors
/// A command that no server has written so.
pub(super) fn classify<'a>(
    path: &Path,
    offset: u64,
    db: u8,
    args: Args<'a>,
    written_ms: u64,
) -> Result<Kind<'a>, LoadError> {
    let (command, row) = match resolve(args) {
        Ok(found) => found,
        Err(CommandError::Arity(_)) => {
            return Err(failed(path, offset, args, "wrong number of arguments"));
        }
        Err(_) => {
            // What scripts do may concern anything.
            let may_skip = !["eval", "evalsha", "fcall", "script"].iter().any(|name| args.is(0, name));
            return Ok(Kind::Unsupported { may_skip });
        }
    };
    if !command.flags.contains(Flags::WRITE) {
        return Ok(Kind::Idle);
    }
    let now_ms = if is_relative(command, args) { written_ms } else { 0 };
    Ok(Kind::Write(Runnable { offset, db, now_ms, command, row, args }))
}

/// Whether what the command does depends on when it runs.
fn is_relative(command: &Command, args: Args<'_>) -> bool {
    let has = |words: &[&str]| (2..args.len()).any(|index| words.iter().any(|word| args.is(index, word)));
    match command.name {
        "expire" | "pexpire" | "setex" | "psetex" | "hexpire" | "hpexpire" => true,
        "set" | "getex" | "msetex" | "hsetex" | "hgetex" => has(&["EX", "PX"]),
        "restore" => !args.is(2, "0") && !has(&["ABSTTL"]),
        _ => false,
    }
}

impl Runnable<'_> {
    /// The lane that all its keys are in; `None` if they are in several, or it concerns more than keys.
    pub(super) fn lane(&self) -> Option<u64> {
        match self.row.locks {
            Locks::Keys => {}
            Locks::AllIf(condition) if !condition(self.args) => {}
            Locks::AllIf(_) | Locks::All | Locks::Walk | Locks::None => return None,
        }
        let mut lanes = slots_of(self.command, self.args).map(|slot| u64::from(slot) % LANES);
        let first = lanes.next()?;
        lanes.all(|lane| lane == first).then_some(first)
    }

    /// Copies it to the end of a batch.
    pub(super) fn push_to(&self, batch: &mut CommandBatch) {
        let before = batch.bytes.len();
        for arg in self.args.iter() {
            let start = (batch.bytes.len() - before) as u32;
            batch.ranges.push(ArgRange { start, len: arg.len() as u32 });
            batch.bytes.extend_from_slice(arg);
        }
        let Self { offset, db, now_ms, command, row, args } = *self;
        let bytes = batch.bytes.len() - before;
        batch.items.push(Item { offset, db, now_ms, command, row, bytes, args: args.len() });
    }
}

impl Hands<'_> {
    /// Runs the commands of a batch.
    pub(super) fn commands(&mut self, batch: &CommandBatch) -> Result<(), LoadError> {
        let (mut bytes, mut ranges) = (batch.bytes.as_slice(), batch.ranges.as_slice());
        for item in &batch.items {
            let (command_bytes, rest) = bytes.split_at(item.bytes);
            let (command_ranges, other_ranges) = ranges.split_at(item.args);
            (bytes, ranges) = (rest, other_ranges);
            let Item { offset, db, now_ms, command, row, .. } = *item;
            let args = Args::new(command_bytes, command_ranges, &[]);
            self.command(&Runnable { offset, db, now_ms, command, row, args })?;
        }
        let count = batch.items.len() as u64;
        self.shared.persistence.loading.commands.fetch_add(count, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }

    /// Runs a command.
    pub(super) fn command(&mut self, runnable: &Runnable<'_>) -> Result<(), LoadError> {
        let Runnable { offset, db, now_ms, command, row, args } = *runnable;
        let ks = hold(row, command, args, self.shared, self.settings, &mut self.changes, db, now_ms);
        let result = replay(self.shared, row, args, ks, &mut self.out);
        self.out.clear();
        match result {
            Ok(()) => Ok(()),
            Err(ReplayError::Waits) => Err(failed(self.path, offset, args, "it would wait for a key")),
            Err(ReplayError::Fails(CommandError::NoSuchKey)) if self.is_incomplete => {
                let shown = show(args);
                tracing::warn!(
                    "the command at byte {offset}, {shown}, finds no key: it may be one that was left out"
                );
                Ok(())
            }
            Err(ReplayError::Fails(error)) => Err(failed(self.path, offset, args, &error.to_string())),
        }
    }
}

/// A command fails.
pub(super) fn failed(path: &Path, offset: u64, args: Args<'_>, reason: &str) -> LoadError {
    LoadError::Command { path: path.to_owned(), offset, command: show(args), reason: reason.to_owned() }
}

/// A command's first words.
fn show(args: Args<'_>) -> String {
    let mut shown = String::from("\"");
    for (index, arg) in args.iter().enumerate() {
        if shown.len() > SHOWN_BYTES_MAX {
            shown.push_str(" ...");
            break;
        }
        if index > 0 {
            shown.push(' ');
        }
        let start = &arg[..arg.len().min(SHOWN_BYTES_MAX)];
        shown.push_str(&start.escape_ascii().to_string());
    }
    shown.push('"');
    shown
}

//! What a handler is, what it is given and how it fails.
//!
//! Owns: arguments, the context of a command, its errors, the rows that tie a name to a handler. Does **not** own what
//! a command means (see [`crate::commands`]) nor in what order commands run (see [`crate::execute`]).

use crate::cluster::errands;
use crate::moving::Order;
use crate::parking::Parking;
use crate::persistence::keeper;
use crate::session::Session;
use crate::shared::Shared;
use std::sync::Arc;
use std::time::Duration;
use towline_resp::request::ArgRange;
use towline_resp::writer::Writer;
use towline_spec::ArgList;
use towline_store::keyspace::{Keyspace, WrongType};
use towline_store::number::{parse_f64, parse_i64};

/// The arguments of one command, its name first: slices of the read buffer, and the few that own themselves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Args<'a> {
    command: &'a [u8],
    ranges: &'a [ArgRange],
    owned: &'a [Arc<Vec<u8>>],
}

impl<'a> Args<'a> {
    /// Arguments that lie in `command`, except those in `owned`.
    #[inline]
    pub(crate) fn new(command: &'a [u8], ranges: &'a [ArgRange], owned: &'a [Arc<Vec<u8>>]) -> Self {
        Self { command, ranges, owned }
    }

    /// Number of arguments, the command's name included.
    #[inline]
    pub(crate) fn len(self) -> usize {
        self.ranges.len()
    }

    /// Argument `index`; 0 is the name.
    ///
    /// # Panics
    /// Beyond the last one: arity was checked before the handler ran, anything further is for [`Args::at`].
    #[inline]
    pub(crate) fn get(self, index: usize) -> &'a [u8] {
        let range = self.ranges[index];
        match range.owned_index() {
            None => &self.command[range.start as usize..(range.start + range.len) as usize],
            Some(index) => &self.owned[index],
        }
    }

    /// Argument `index`, if there is one.
    #[inline]
    pub(crate) fn at(self, index: usize) -> Option<&'a [u8]> {
        (index < self.len()).then(|| self.get(index))
    }

    /// Argument `index` as a block that can be kept without a copy, if it came as one.
    pub(crate) fn shared(self, index: usize) -> Option<&'a Arc<Vec<u8>>> {
        self.owned.get(self.ranges.get(index)?.owned_index()?)
    }

    /// The arguments from `from` on.
    #[inline]
    pub(crate) fn from(self, from: usize) -> Self {
        Self { ranges: self.ranges.get(from..).unwrap_or(&[]), ..self }
    }

    /// The first `count` arguments, or all if there are fewer.
    pub(crate) fn first(self, count: usize) -> Self {
        Self { ranges: self.ranges.get(..count).unwrap_or(self.ranges), ..self }
    }

    /// All arguments in order.
    pub(crate) fn iter(self) -> impl DoubleEndedIterator<Item = &'a [u8]> + ExactSizeIterator + Clone {
        (0..self.len()).map(move |index| self.get(index))
    }

    /// Whether argument `index` is this word, in any case.
    #[inline]
    pub(crate) fn is(self, index: usize, word: &str) -> bool {
        self.at(index).is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
    }

    /// Argument `index` as an integer.
    #[inline]
    pub(crate) fn int(self, index: usize) -> Result<i64, CommandError> {
        parse_i64(self.get(index)).ok_or(CommandError::NotInteger)
    }

    /// Argument `index` as a float.
    pub(crate) fn float(self, index: usize) -> Result<f64, CommandError> {
        parse_f64(self.get(index)).ok_or(CommandError::NotFloat)
    }

    /// Copies that own themselves.
    pub(crate) fn to_vecs(self) -> Vec<Vec<u8>> {
        self.iter().map(<[u8]>::to_vec).collect()
    }
}

impl ArgList for Args<'_> {
    #[inline]
    fn len(&self) -> usize {
        self.ranges.len()
    }
    #[inline]
    fn arg(&self, index: usize) -> &[u8] {
        self.get(index)
    }
}

/// Arguments that outlive their read buffer: queued by `MULTI`, kept by a blocked client.
#[derive(Debug, Clone)]
pub(crate) struct OwnedArgs {
    bytes: Vec<u8>,
    ranges: Box<[ArgRange]>,
    shared: Vec<Arc<Vec<u8>>>,
}

impl OwnedArgs {
    /// Copies the arguments; those that own themselves are shared.
    pub(crate) fn copy(args: Args<'_>) -> Self {
        let mut bytes = Vec::with_capacity(
            args.ranges.iter().filter(|r| r.owned_index().is_none()).map(|r| r.len as usize).sum(),
        );
        let copy = |range: &ArgRange| {
            if range.owned_index().is_some() {
                return *range;
            }
            let start = bytes.len() as u32;
            bytes.extend_from_slice(&args.command[range.start as usize..(range.start + range.len) as usize]);
            ArgRange { start, len: range.len }
        };
        let ranges = args.ranges.iter().map(copy).collect();
        Self { bytes, ranges, shared: args.owned.to_vec() }
    }

    /// Arguments from slices.
    #[cfg(test)]
    pub(crate) fn from_slices(slices: &[&[u8]]) -> Self {
        let mut bytes = Vec::new();
        let place = |slice: &&[u8]| {
            let start = bytes.len() as u32;
            bytes.extend_from_slice(slice);
            ArgRange { start, len: slice.len() as u32 }
        };
        let ranges = slices.iter().map(place).collect();
        Self { bytes, ranges, shared: Vec::new() }
    }

    /// The arguments.
    pub(crate) fn args(&self) -> Args<'_> {
        Args::new(&self.bytes, &self.ranges, &self.shared)
    }

    /// Bytes that are kept.
    pub(crate) fn mem_bytes(&self) -> usize {
        self.bytes.len() + self.ranges.len() * 8 + self.shared.iter().map(|arg| arg.len()).sum::<usize>()
    }
}

/// Why a command failed; `Display` is the error reply. All are the client's to mend unless they say otherwise.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CommandError {
    /// The key holds a value of another kind.
    #[error(transparent)]
    WrongType(#[from] WrongType),
    /// The arguments do not fit the command's syntax.
    #[error("ERR syntax error")]
    Syntax,
    /// An argument, or the stored value, is no 64-bit integer.
    #[error("ERR value is not an integer or out of range")]
    NotInteger,
    /// An argument is no float.
    #[error("ERR value is not a valid float")]
    NotFloat,
    /// A number of arguments that the command does not take.
    #[error("ERR wrong number of arguments for '{0}' command")]
    Arity(&'static str),
    /// There is no such key.
    #[error("ERR no such key")]
    NoSuchKey,
    /// `DB index is out of range` and other texts that are fixed.
    #[error("{0}")]
    Text(&'static str),
    /// A text made for the occasion, its code word first. It is shown with replacement characters where it is not
    /// UTF-8; [`CommandError::reply`] has all bytes.
    #[error("{}", String::from_utf8_lossy(.0))]
    Message(Box<[u8]>),
}

impl CommandError {
    /// An error with a text made for the occasion; `text` begins with its code word, e.g. `ERR`.
    pub(crate) fn message(text: String) -> Self {
        Self::Message(text.into_bytes().into())
    }

    /// An error that repeats an argument, byte for byte, between two pieces of text.
    pub(crate) fn quoting(before: &str, argument: &[u8], after: &str) -> Self {
        Self::joined(&[before.as_bytes(), argument, after.as_bytes()])
    }

    /// As [`Self::quoting`], of any number of pieces.
    pub(crate) fn joined(pieces: &[&[u8]]) -> Self {
        Self::Message(pieces.concat().into())
    }

    /// Writes the error reply.
    pub(crate) fn reply(&self, out: &mut Writer) {
        match self {
            Self::Message(text) => out.error_bytes(text),
            other => out.error(other),
        }
    }
}

/// What a handler returns: its reply is written, or nothing is and this error is the reply.
pub(crate) type CommandResult = Result<(), CommandError>;

/// What to answer when a blocking command's time is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nothing {
    /// `*-1`, or `_` in RESP3.
    NullArray,
    /// `*-1` when the time is up and `$-1` inside `MULTI`, or `_` in RESP3: `BLMOVE`, as Redis has it.
    NullMove,
    /// An integer: `WAIT`.
    Int(i64),
    /// An error: what was asked for goes on, and the client no longer hears of it.
    Error(&'static str),
}

impl Nothing {
    /// Writes the reply.
    pub(crate) fn write(self, out: &mut Writer) {
        match self {
            Self::NullArray | Self::NullMove => out.null_array(),
            Self::Int(number) => out.int(number),
            Self::Error(text) => out.error(text),
        }
    }

    /// Writes the reply where nobody may wait.
    pub(crate) fn write_at_once(self, out: &mut Writer) {
        if self == Self::NullMove { out.null() } else { self.write(out) }
    }
}

/// A command that found nothing and would wait for one of its keys.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    /// The keys to wait for.
    pub(crate) keys: Vec<Vec<u8>>,
    /// How long; `None` is for ever.
    pub(crate) timeout: Option<Duration>,
    /// The reply when the time is up.
    pub(crate) nothing: Nothing,
    /// What somebody else is to do, whose answer ends the waiting.
    pub(crate) errand: Option<Errand>,
}

/// What a client asks another thread for, and waits for.
#[derive(Debug, Clone)]
pub(crate) enum Errand {
    /// The keeper of files.
    Keeper(keeper::Errand),
    /// The cluster's thread.
    Cluster(errands::Errand),
    /// The thread that moves keys.
    Move(Box<Order>),
}

impl From<keeper::Errand> for Errand {
    fn from(errand: keeper::Errand) -> Self {
        Self::Keeper(errand)
    }
}

impl From<errands::Errand> for Errand {
    fn from(errand: errands::Errand) -> Self {
        Self::Cluster(errand)
    }
}

/// What a handler works with.
pub(crate) struct Ctx<'a> {
    /// The keyspace, through the slots of the command's keys.
    pub(crate) ks: Keyspace<'a>,
    /// The reply. A handler that fails must not have written to it.
    pub(crate) out: &'a mut Writer,
    /// What all workers share.
    pub(crate) server: &'a Shared,
    /// The client's own state; none while a blocked client's command runs on the worker that woke it.
    pub(crate) session: Option<&'a mut Session>,
    /// Set by [`Ctx::block`].
    pub(crate) blocked: Option<Block>,
    /// Nothing was done, because a slot is changing hands: the command is to run again later.
    pub(crate) is_held_back: bool,
    /// Nothing was done: the command is to run again when the waiting there is over. See [`Ctx::park`].
    pub(crate) parked: Option<Arc<Parking>>,
    /// Index of the worker that runs the command.
    pub(crate) worker: usize,
}

impl std::fmt::Debug for Ctx<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ctx").field("ks", &self.ks).finish_non_exhaustive()
    }
}

impl Ctx<'_> {
    /// The client's own state, for commands that are never run on behalf of a blocked client.
    pub(crate) fn session(&mut self) -> &mut Session {
        self.session.as_deref_mut().expect("invariant: only blocking commands run without a session")
    }

    /// The command found nothing to answer: the client waits for one of the keys, and the command runs again when one
    /// of them changes. Inside `MULTI` the reply is `nothing` at once. The handler returns `Ok(())` right after.
    pub(crate) fn block(
        &mut self,
        keys: impl Iterator<Item = impl AsRef<[u8]>>,
        timeout: Option<Duration>,
        nothing: Nothing,
    ) {
        let keys = keys.map(|key| key.as_ref().to_vec()).collect();
        self.blocked = Some(Block { keys, timeout, nothing, errand: None });
    }

    /// The command cannot run yet: it runs again, from its beginning, when the waiting there is over. The handler has done
    /// nothing and returns `Ok(())` right after. Not inside of `EXEC`.
    pub(crate) fn park(&mut self, parking: Arc<Parking>) {
        self.parked = Some(parking);
    }

    /// The client waits until another thread has done this. The handler returns `Ok(())` right after.
    pub(crate) fn wait_for(&mut self, errand: impl Into<Errand>) {
        let nothing = Nothing::Error("ERR The client stopped waiting for what it asked for, which goes on");
        self.blocked = Some(Block { keys: Vec::new(), timeout: None, nothing, errand: Some(errand.into()) });
    }
}

/// A command's code.
pub(crate) type Handler = fn(&mut Ctx<'_>, Args<'_>) -> CommandResult;

/// Which slots the handler needs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Locks {
    /// Those of the keys that the command table finds in the arguments.
    Keys,
    /// None at first; the handler holds one after the other with `hold_only`. All of them inside `MULTI`.
    Walk,
    /// All of them.
    All,
    /// All of them if this holds for the arguments, else those of the keys.
    AllIf(fn(Args<'_>) -> bool),
    /// None: the command does not touch the keyspace.
    None,
}

/// A command's code and what it needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    /// The full name in the command table: `get`, `client|id`.
    pub(crate) name: &'static str,
    /// The code.
    pub(crate) run: Handler,
    /// The slots.
    pub(crate) locks: Locks,
}

/// A row for a command that works on its keys.
pub(crate) const fn keys(name: &'static str, run: Handler) -> Row {
    Row { name, run, locks: Locks::Keys }
}

/// A row for a command that does not touch the keyspace.
pub(crate) const fn no_keys(name: &'static str, run: Handler) -> Row {
    Row { name, run, locks: Locks::None }
}

/// A row for a command that walks over the keyspace slot by slot.
pub(crate) const fn walk(name: &'static str, run: Handler) -> Row {
    Row { name, run, locks: Locks::Walk }
}

/// A row for a command that must see the whole keyspace at one instant.
pub(crate) const fn all(name: &'static str, run: Handler) -> Row {
    Row { name, run, locks: Locks::All }
}

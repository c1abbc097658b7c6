//! One command, and how it is to be treated.
//!
//! Owns [`Cmd`]: its encoded arguments, its options, and what the command table knows about it. Does **not** own
//! several commands ([`Pipeline`](crate::Pipeline)), sending, nor the decision to retry.

use crate::args::{Args, ArgsIter, Part, ToArgs, View};
use bytes::Bytes;
use std::time::Duration;
use towline_client_proto::routing::{Plan, ReadFrom, plan};
use towline_spec::{Command, CommandId, Flags, SideEffect, effect_of, first_key, id, lookup, resolve_any};

/// Begins a command.
///
/// A name of several words gives an argument for each: `cmd("CLIENT ID")` is `cmd("CLIENT").arg("ID")`. An unknown
/// name is sent as it is; the server answers it.
///
/// ```
/// use towline_client::{SideEffect, cmd};
///
/// let get = cmd("GET").arg("key");
/// assert_eq!(get.name(), b"GET");
/// assert_eq!(get.effect(), SideEffect::ReadOnly);
/// assert_eq!(cmd("CLIENT ID").args().count(), 2);
/// ```
#[must_use = "a command does nothing until it is sent"]
pub fn cmd(name: &str) -> Cmd {
    Cmd::new(name)
}

/// A command: a name, arguments, options.
///
/// Arguments are encoded as they are given, so that nothing of the caller's runs when the command is sent; a command
/// of up to about a hundred bytes allocates nothing. `Debug` shows the name and counts, never an argument: it may be
/// a secret.
#[derive(Clone)]
#[must_use = "a command does nothing until it is sent"]
pub struct Cmd {
    args: Args,
    options: CmdOptions,
}

/// What a caller may ask for one command; all else is the client's configuration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CmdOptions {
    /// Time from submission to reply, queueing included, after which the caller has no more use for it. `None`: the
    /// client's command timeout; for a blocking command what it may block in addition. `Duration::MAX`: none at all.
    pub deadline: Option<Duration>,
    /// What may be done with a command that was possibly executed and has no reply.
    pub retry: RetryChoice,
    /// Nobody waits for the reply; a failure is counted, not reported.
    pub is_fire_and_forget: bool,
    /// Which nodes of a cluster may answer it, if it only reads. `None`: as the handle says.
    pub read_from: Option<ReadFrom>,
    /// `ASKING` goes before it.
    pub(crate) is_asking: bool,
}

/// What a caller says about repeating a command whose first run may have happened.
///
/// Commands that were certainly not sent are sent again whatever this says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RetryChoice {
    /// What only reads is repeated, nothing else.
    #[default]
    ByEffect,
    /// Nothing is repeated.
    Never,
    /// What is idempotent by its side effects is repeated too. Increments and their like are not, whatever is said
    /// here.
    Allowed,
}

/// How long a command may wait at the server, by its own arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockTime {
    /// At most so long.
    AtMost(Duration),
    /// Until something comes.
    Forever,
}

/// What the command table says about one command with its arguments.
#[derive(Debug, Clone, Copy)]
pub struct Profile {
    /// The row that executes it, be it a module's; `None` if no table knows the command and its subcommand.
    pub command: Option<&'static Command>,
    /// What a second run may do. A command that is not in the table counts as [`SideEffect::NonIdempotent`].
    pub effect: SideEffect,
    /// Set when it may wait at the server, so that it must not be sent where others wait behind it.
    pub block_time: Option<BlockTime>,
}

impl Cmd {
    /// See [`cmd`].
    pub fn new(name: &str) -> Self {
        let mut args = Args::default();
        if name.bytes().any(|byte| byte.is_ascii_whitespace()) {
            name.split_ascii_whitespace().for_each(|word| args.push(word.as_bytes()));
        }
        if args.is_empty() {
            args.push(name.as_bytes());
        }
        Self { args, options: CmdOptions::default() }
    }

    /// Without a name: the first argument that follows is it.
    #[cfg(feature = "redis-compat")]
    pub(crate) fn bare() -> Self {
        Self { args: Args::default(), options: CmdOptions::default() }
    }

    /// Appends the arguments that `value` stands for.
    #[inline]
    pub fn arg(mut self, value: impl ToArgs) -> Self {
        value.write_args(&mut self.args);
        self
    }

    /// Appends the arguments that `value` stands for, in place: for loops.
    #[inline]
    pub fn push(&mut self, value: impl ToArgs) -> &mut Self {
        value.write_args(&mut self.args);
        self
    }

    /// The time that the command has from submission to reply, in place of the client's command timeout. It is a hard
    /// limit: no hold during a planned handoff extends it. `Duration::MAX` is no limit, zero fails unless the reply is
    /// already there, which it never is.
    pub const fn deadline(mut self, after: Duration) -> Self {
        self.options.deadline = Some(after);
        self
    }

    /// Never run it a second time when the first run may have happened.
    pub const fn no_retry(mut self) -> Self {
        self.options.retry = RetryChoice::Never;
        self
    }

    /// It may run a second time if it is idempotent, such as `SET`, when the first run may have happened.
    pub const fn allow_retry(mut self) -> Self {
        self.options.retry = RetryChoice::Allowed;
        self
    }

    /// Do not wait for the reply. Failures are counted by the client, not reported.
    pub const fn fire_and_forget(mut self) -> Self {
        self.options.is_fire_and_forget = true;
        self
    }

    /// Which nodes of a cluster may answer it, in place of what the client's options and the handle say. Of no account for
    /// commands that write, have no keys or block; and within transactions and leases, which have one node. In a pipeline it
    /// counts if all commands of the pipeline read and agree.
    pub const fn read_from(mut self, policy: ReadFrom) -> Self {
        self.options.read_from = Some(policy);
        self
    }

    /// What was asked for this command.
    #[inline]
    pub const fn options(&self) -> &CmdOptions {
        &self.options
    }

    pub(crate) const fn options_mut(&mut self) -> &mut CmdOptions {
        &mut self.options
    }

    /// The first argument: the name as it was given.
    pub fn name(&self) -> &[u8] {
        self.args.iter().next().expect("invariant: a command begins with its name")
    }

    /// The arguments, the name first.
    pub fn args(&self) -> ArgsIter<'_> {
        self.args.iter()
    }

    /// How many arguments there are, the name included, and their encoding. The bytes to send are the header
    /// `*count\r\n` and the parts in order; their length is that of the header and
    /// [`encoded_len`](Self::encoded_len).
    #[inline]
    pub fn encoded(&self) -> (usize, impl Iterator<Item = Part<'_>>) {
        (self.args.len(), self.args.parts())
    }

    /// Length of the encoded arguments in bytes, without the header.
    #[inline]
    pub fn encoded_len(&self) -> usize {
        self.args.encoded_len()
    }

    /// Length in bytes of all that is sent: the header and the encoded arguments.
    #[inline]
    pub fn wire_len(&self) -> usize {
        let digits = self.args.len().checked_ilog10().map_or(1, |log| log as usize + 1);
        "*\r\n".len() + digits + self.args.encoded_len()
    }

    /// Calls `write` with each piece of what is sent, in order: the header first.
    #[inline]
    pub fn write_to(&self, mut write: impl FnMut(Part<'_>)) {
        // Up to 20 digits between `*` and the line end.
        let mut header = [0; 24];
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(self.args.len()).as_bytes();
        let end = 1 + digits.len();
        header[0] = b'*';
        header[1..end].copy_from_slice(digits);
        header[end..end + 2].copy_from_slice(b"\r\n");
        write(Part::Encoded(&header[..end + 2]));
        self.args.parts().for_each(write);
    }

    /// What the command table says: one look-up for all of it.
    pub fn profile(&self) -> Profile {
        let plain = lookup(self.name()).filter(|command| {
            // Arguments only ever make the class milder, and this is the mildest.
            command.effect == SideEffect::ReadOnly
                && !command.is_container()
                && !command.flags.contains(Flags::BLOCKING)
        });
        if let Some(command) = plain {
            return Profile { command: Some(command), effect: command.effect, block_time: None };
        }
        self.args.view(|view| {
            let command = resolve_any(view);
            Profile {
                command,
                effect: command.map_or(SideEffect::NonIdempotent, |command| effect_of(command, view)),
                block_time: command.and_then(|command| block_time(command, view)),
            }
        })
    }

    /// What a second run may do; see [`Profile::effect`].
    pub fn effect(&self) -> SideEffect {
        self.profile().effect
    }

    /// Whether servers let a replica answer it: it is flagged as reading, and does not block.
    pub(crate) fn only_reads(&self) -> bool {
        let profile = self.profile();
        let is_flagged = profile.command.is_some_and(|command| command.flags.contains(Flags::READONLY));
        is_flagged && profile.effect == SideEffect::ReadOnly && profile.block_time.is_none()
    }

    /// Whether it may wait at the server: `BLPOP` always, `XREAD` with `BLOCK` only.
    pub fn is_blocking(&self) -> bool {
        self.profile().block_time.is_some()
    }

    /// The same blocking command with another time: at least 1 ms, because 0 is for ever. Unchanged if it does not
    /// block.
    pub(crate) fn with_block_time(&self, time: Duration) -> Self {
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1);
        let place = self.args.view(|view| time_place(resolve_any(view)?, view));
        let Some((place, unit)) = place else { return self.clone() };
        let mut args = Args::default();
        for (at, arg) in self.args.iter().enumerate() {
            match unit {
                _ if at != place => args.push(arg),
                TimeUnit::Millisecond => millis.write_args(&mut args),
                TimeUnit::Second => {
                    args.push(format!("{}.{:03}", millis / 1000, millis % 1000).as_bytes());
                }
            }
        }
        Self { args, options: self.options }
    }

    /// The same command with other arguments where `change` has one.
    pub(crate) fn with_args(&self, change: impl Fn(usize, &[u8]) -> Option<Bytes>) -> Self {
        let mut args = Args::default();
        for (at, arg) in self.args.iter().enumerate() {
            match change(at, arg) {
                Some(other) => args.push(&other),
                None => args.push(arg),
            }
        }
        Self { args, options: self.options }
    }

    /// The same command with other words: all of them, the name first.
    pub(crate) fn with_words<'w>(&self, words: impl Iterator<Item = &'w [u8]>) -> Self {
        let mut args = Args::default();
        words.for_each(|word| args.push(word));
        Self { args, options: self.options }
    }

    /// The same command for a node that imports its slot.
    pub(crate) const fn asking(mut self) -> Self {
        self.options.is_asking = true;
        self
    }

    /// Whether `ASKING` goes before it.
    pub(crate) const fn is_asking(&self) -> bool {
        self.options.is_asking
    }

    /// Where it goes in a cluster.
    pub(crate) fn plan(&self, may_split: bool) -> Plan {
        self.args.view(|view| plan(view, may_split))
    }

    /// The key that decides where it is routed; `None` without keys.
    pub fn first_key(&self) -> Option<&[u8]> {
        self.args.view(|view| {
            let command = resolve_any(view)?;
            view.at(first_key(command, view)?)
        })
    }
}

impl std::fmt::Debug for Cmd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cmd")
            .field("name", &self.name().escape_ascii().to_string())
            .field("arg_count", &(self.args.len() - 1))
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// The unit of a blocking command's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TimeUnit {
    Second,
    Millisecond,
}

impl TimeUnit {
    const fn nanos(self) -> f64 {
        match self {
            Self::Second => 1e9,
            Self::Millisecond => 1e6,
        }
    }
}

/// Where a blocking command has its time, and in which unit; `None` if it does not block. The place may be behind
/// the last argument of a command that is too short.
///
/// Source: the arguments of the blocking commands at <https://redis.io/docs/latest/commands/>.
fn time_place(command: &Command, view: &View<'_>) -> Option<(usize, TimeUnit)> {
    const BLMPOP: CommandId = id("blmpop");
    const BZMPOP: CommandId = id("bzmpop");
    const XREAD: CommandId = id("xread");
    const XREADGROUP: CommandId = id("xreadgroup");
    const WAIT: CommandId = id("wait");
    const WAITAOF: CommandId = id("waitaof");

    if !command.flags.contains(Flags::BLOCKING) {
        return None;
    }
    let args = view.as_slice();
    Some(match command.id {
        BLMPOP | BZMPOP => (1, TimeUnit::Second),
        WAIT => (2, TimeUnit::Millisecond),
        WAITAOF => (3, TimeUnit::Millisecond),
        XREAD | XREADGROUP => {
            // Behind STREAMS there are keys and ids only.
            let mut options = args.iter().take_while(|arg| !arg.eq_ignore_ascii_case(b"streams"));
            let at = options.position(|arg| arg.eq_ignore_ascii_case(b"block"))?;
            (at + 1, TimeUnit::Millisecond)
        }
        _ => (args.len().saturating_sub(1), TimeUnit::Second),
    })
}

fn block_time(command: &Command, view: &View<'_>) -> Option<BlockTime> {
    let (place, unit) = time_place(command, view)?;
    let text = view.at(place);
    let number = text.and_then(|text| std::str::from_utf8(text).ok()?.parse::<f64>().ok());
    Some(match number {
        Some(0.0) => BlockTime::Forever,
        Some(number) if number > 0.0 => {
            // `as` saturates, which is right: 2^64 ns are 584 years.
            BlockTime::AtMost(Duration::from_nanos((number * unit.nanos()) as u64))
        }
        // The server refuses it at once.
        _ => BlockTime::AtMost(Duration::ZERO),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_several_words_is_several_arguments() {
        for named in [cmd("CLIENT ID"), cmd("CLIENT").arg("ID"), cmd(" CLIENT  ID ")] {
            assert_eq!(named.args().collect::<Vec<_>>(), [b"CLIENT" as &[u8], b"ID"]);
            assert_eq!(named.profile().command.unwrap().name, "client|id");
        }
        assert_eq!(cmd("").name(), b"");
        assert_eq!(cmd("").effect(), SideEffect::NonIdempotent);
    }

    #[test]
    fn effects_follow_the_arguments() {
        assert_eq!(cmd("get").arg("k").effect(), SideEffect::ReadOnly);
        assert_eq!(cmd("SET").arg("k").arg("v").effect(), SideEffect::Idempotent);
        assert_eq!(cmd("SET").arg("k").arg("v").arg("NX").effect(), SideEffect::Convergent);
        assert_eq!(cmd("INCR").arg("k").effect(), SideEffect::NonIdempotent);
        assert_eq!(cmd("FT.SEARCH").arg("idx").arg("*").effect(), SideEffect::ReadOnly);
        assert_eq!(cmd("MODULE.UNKNOWN").arg("k").effect(), SideEffect::NonIdempotent);
    }

    #[test]
    fn blocking_commands_are_known_with_their_time() {
        let times = |cmd: Cmd| cmd.profile().block_time;
        let at_most = |millis| Some(BlockTime::AtMost(Duration::from_millis(millis)));
        assert_eq!(times(cmd("BLPOP").arg(["a", "b"]).arg(0)), Some(BlockTime::Forever));
        assert_eq!(times(cmd("BLPOP").arg(["a", "b"]).arg(1.5)), at_most(1500));
        assert_eq!(times(cmd("BLMPOP").arg(2).arg(1).arg("k").arg("LEFT")), at_most(2000));
        assert_eq!(times(cmd("BLMOVE").arg(("a", "b", "LEFT", "RIGHT", 3))), at_most(3000));
        assert_eq!(times(cmd("XREAD").arg(("BLOCK", 10, "STREAMS", "s", "$"))), at_most(10));
        assert_eq!(times(cmd("XREAD").arg(("COUNT", 1, "streams", "block", "0"))), None);
        let group = cmd("XREADGROUP").arg(("GROUP", "g", "c", "BLOCK", 0, "STREAMS", "s", ">"));
        assert_eq!(times(group), Some(BlockTime::Forever));
        assert_eq!(times(cmd("WAIT").arg((1, 100))), at_most(100));
        assert_eq!(times(cmd("WAITAOF").arg((1, 1, 100))), at_most(100));
        assert_eq!(times(cmd("BLPOP").arg("k").arg("soon")), at_most(0));
        assert_eq!(
            times(cmd("BLPOP").arg("k").arg(f64::INFINITY)),
            Some(BlockTime::AtMost(Duration::from_nanos(u64::MAX)))
        );
        assert!(!cmd("LPOP").arg("k").is_blocking());
    }

    #[test]
    fn a_block_time_is_replaced_where_it_stands() {
        let with = |cmd: Cmd, millis| {
            let changed = cmd.with_block_time(Duration::from_millis(millis));
            changed.args().map(|arg| String::from_utf8_lossy(arg).into_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(with(cmd("BLPOP").arg(("0", "0")), 1500), "BLPOP 0 1.500");
        assert_eq!(with(cmd("BLMPOP").arg((9, 1, "k", "LEFT")), 20), "BLMPOP 0.020 1 k LEFT");
        let read = cmd("XREAD").arg(("COUNT", 1, "BLOCK", 90, "STREAMS", "block", 0));
        assert_eq!(with(read, 0), "XREAD COUNT 1 BLOCK 1 STREAMS block 0");
        assert_eq!(with(cmd("WAIT").arg((1, 100)), 7), "WAIT 1 7");
        assert_eq!(with(cmd("GET").arg("k"), 7), "GET k");
    }

    #[test]
    fn every_blocking_command_of_the_table_blocks() {
        let blocking = towline_spec::rows().iter().filter(|row| row.flags.contains(Flags::BLOCKING));
        for row in blocking.filter(|row| !row.name.starts_with("xread")) {
            assert!(cmd(&row.name.replace('|', " ")).arg(["1"; 5]).is_blocking(), "{}", row.name);
        }
    }

    #[test]
    fn the_first_key_routes() {
        assert_eq!(cmd("GET").arg("k").first_key(), Some(&b"k"[..]));
        assert_eq!(cmd("EVAL").arg(("return 1", 1, "k", "a")).first_key(), Some(&b"k"[..]));
        assert_eq!(cmd("PING").first_key(), None);
    }

    #[test]
    fn what_is_written_is_the_command() {
        for count in [0, 1, 9, 10, 99, 100] {
            let cmd = cmd("MGET").arg(vec!["key"; count]);
            let mut found = Vec::new();
            cmd.write_to(|part| found.extend_from_slice(part.as_slice()));
            let mut expected = Vec::new();
            towline_resp::frame::encode_command(&cmd.args().collect::<Vec<_>>(), &mut expected);
            assert_eq!(found, expected);
            assert_eq!(cmd.wire_len(), expected.len());
        }
    }

    #[test]
    fn debug_shows_no_argument() {
        let text = format!("{:?}", cmd("AUTH").arg("hunter2").no_retry());
        assert!(text.contains("AUTH") && !text.contains("hunter2"), "{text}");
    }

    #[test]
    fn options_are_as_they_were_set() {
        let cmd = cmd("GET").arg("k").deadline(Duration::MAX).allow_retry().fire_and_forget();
        assert_eq!(cmd.options().deadline, Some(Duration::MAX));
        assert_eq!(cmd.options().retry, RetryChoice::Allowed);
        assert!(cmd.options().is_fire_and_forget);
    }
}

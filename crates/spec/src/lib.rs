//! The one command table: name, arity, flags, key positions, side-effect class, ACL categories and docs of every
//! command and subcommand.
//!
//! The server dispatches and answers `COMMAND` from it, the client routes and decides retries from it, the CLI
//! completes from it. It is constant data: a lookup allocates nothing and locks nothing. It does not execute,
//! parse the wire format, or know slots. What modules add has a table apart: [`modules`].
//!
//! ```
//! use towline_spec::{CommandId, SideEffect, for_each_key, id, lookup};
//!
//! let command = lookup(b"MSET").expect("MSET is in the table");
//! assert_eq!(command.arity, -3);
//! assert_eq!(command.effect, SideEffect::Idempotent);
//!
//! let mut keys = Vec::new();
//! for_each_key(command, &["MSET", "a", "1", "b", "2"], |index, _| keys.push(index)).expect("well formed");
//! assert_eq!(keys, [1, 3]);
//!
//! const GET: CommandId = id("get");
//! assert_eq!(lookup(b"get").map(|command| command.id), Some(GET));
//! ```

#![warn(missing_docs)]

mod bits;
mod command;
mod effect;
mod keys;
pub mod modules;
mod row;
pub mod syntax;

mod table;

#[cfg(test)]
mod tests;

pub use bits::{AclCategories, Flags, KeyFlags};
pub use command::{Command, CommandId, Deprecation, Group, SideEffect, State};
pub use effect::effect_of;
pub use keys::{ArgList, BeginSearch, FindKeys, KeyError, KeySpec, first_key, for_each_key};

/// How many rows there are, subcommands included: the length of an array that is indexed by [`CommandId`].
pub const COUNT: usize = table::COUNT;

/// The command with this name, in any case; never a subcommand.
#[inline]
pub fn lookup(name: &[u8]) -> Option<&'static Command> {
    table::lookup(name)
}

/// The subcommand of a container, by its short name in any case.
#[inline]
pub fn lookup_sub(parent: &Command, sub: &[u8]) -> Option<&'static Command> {
    parent.subcommands().iter().find(|row| row.short_name().as_bytes().eq_ignore_ascii_case(sub))
}

/// The row that a full name stands for: `get`, `client|id`, in any case.
pub fn lookup_full(name: &[u8]) -> Option<&'static Command> {
    match name.iter().position(|byte| *byte == b'|') {
        None => lookup(name),
        Some(at) => lookup_sub(lookup(&name[..at])?, &name[at + 1..]),
    }
}

/// The row that executes these arguments: a command, or a container's subcommand.
///
/// A container without further arguments is returned itself; its arity then says whether that is an error.
///
/// # Errors
/// [`ResolveError`] when the name or the subcommand is unknown; the caller's mistake.
#[inline]
pub fn resolve<A: ArgList + ?Sized>(args: &A) -> Result<&'static Command, ResolveError> {
    if args.is_empty() {
        return Err(ResolveError::UnknownCommand);
    }
    let command = lookup(args.arg(0)).ok_or(ResolveError::UnknownCommand)?;
    if !command.is_container() || args.len() < 2 {
        return Ok(command);
    }
    lookup_sub(command, args.arg(1)).ok_or(ResolveError::UnknownSubcommand(command))
}

/// The row that these arguments are for, be it the server's own or a module's: for clients, whose servers may have both.
#[inline]
pub fn resolve_any<A: ArgList + ?Sized>(args: &A) -> Option<&'static Command> {
    resolve(args).ok().or_else(|| modules::resolve(args))
}

/// Why no row executes some arguments.
#[derive(Debug, Clone, Copy)]
pub enum ResolveError {
    /// No command has the name.
    UnknownCommand,
    /// This container has no such subcommand.
    UnknownSubcommand(&'static Command),
}

impl std::fmt::Display for ResolveError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnknownCommand => f.write_str("unknown command"),
            Self::UnknownSubcommand(parent) => write!(f, "unknown subcommand of {}", parent.name),
        }
    }
}

impl std::error::Error for ResolveError {}

/// Every command, without subcommands, group by group.
pub fn all() -> &'static [Command] {
    &table::ROWS[..table::TOP_LEVEL_COUNT]
}

/// Every row, subcommands included, in the order of their ids.
pub fn rows() -> &'static [Command] {
    &table::ROWS
}

/// The row with this id.
#[inline]
pub fn by_id(id: CommandId) -> &'static Command {
    &table::ROWS[id.index()]
}

/// The id of a full lower-case name (`get`, `client|id`), for use in constants.
///
/// # Panics
/// When no row has the name; in a `const` that is a compile error.
pub const fn id(name: &str) -> CommandId {
    table::id(name)
}

/// Says whether `argc` arguments, the name included, are acceptable to the command.
#[inline]
pub const fn check_arity(command: &Command, argc: usize) -> bool {
    command.accepts_arity(argc)
}

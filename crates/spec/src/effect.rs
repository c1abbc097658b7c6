//! What a repeated execution may do, given the arguments.
//!
//! Owns the options that make a command milder than its row's class, which is the worst case. Does not own the
//! decision to retry: that also needs the delivery state and the error (the client).

use crate::command::{Command, SideEffect};
use crate::keys::{ArgList, for_each_key, sort_destination};
use crate::{KeyFlags, id, modules};

/// The class of this command with these arguments: never worse than [`Command::effect`], often milder.
///
/// `SET key value` is idempotent, `SET key value NX` convergent, `SET key value GET` hands out the old value and
/// is neither. A `STORE` command is idempotent unless it reads its own destination.
pub fn effect_of<A: ArgList + ?Sized>(command: &Command, args: &A) -> SideEffect {
    const SET: usize = id("set").index();
    const GETEX: usize = id("getex").index();
    const ZADD: usize = id("zadd").index();
    const BITFIELD: usize = id("bitfield").index();
    const SORT: usize = id("sort").index();
    const GEORADIUS: usize = id("georadius").index();
    const GEORADIUSBYMEMBER: usize = id("georadiusbymember").index();
    const COPY: usize = id("copy").index();
    const RESTORE: usize = id("restore").index();
    const MSETEX: usize = id("msetex").index();

    const JSON_SET: usize = modules::id("json.set").index();

    match command.id.index() {
        SET if has_word(args, 3, &[b"get"]) => SideEffect::NonIdempotent,
        SET if has_word(args, 3, &[b"nx", b"xx", b"ifeq"]) => SideEffect::Convergent,
        SET => SideEffect::Idempotent,
        GETEX if args.len() <= 2 => SideEffect::ReadOnly,
        ZADD if !has_word(args, 2, &[b"incr"]) => SideEffect::Convergent,
        BITFIELD if has_word(args, 2, &[b"incrby"]) => SideEffect::NonIdempotent,
        BITFIELD if has_word(args, 2, &[b"set"]) => SideEffect::Convergent,
        BITFIELD => SideEffect::ReadOnly,
        SORT if sort_destination(args).is_none() => SideEffect::ReadOnly,
        GEORADIUS | GEORADIUSBYMEMBER if !has_word(args, 5, &[b"store", b"storedist"]) => {
            SideEffect::ReadOnly
        }
        COPY if has_word(args, 3, &[b"replace"]) => SideEffect::Idempotent,
        RESTORE if has_word(args, 4, &[b"replace"]) => SideEffect::Idempotent,
        MSETEX if !has_word(args, 2, &[b"nx", b"xx"]) => SideEffect::Idempotent,
        JSON_SET if args.len() <= 4 => SideEffect::Idempotent,
        _ if command.effect == SideEffect::NonIdempotent && is_store(command) => store_effect(command, args),
        _ => command.effect,
    }
}

/// Says whether one of the words (lower case) stands at `from` or later. A value that looks like an option counts
/// as one, which errs towards the worse class everywhere but for `REPLACE`, whose place is after the keys.
fn has_word<A: ArgList + ?Sized>(args: &A, from: usize, words: &[&[u8]]) -> bool {
    (from..args.len()).any(|index| words.iter().any(|word| args.arg(index).eq_ignore_ascii_case(word)))
}

/// Says whether the command computes a destination from other keys.
fn is_store(command: &Command) -> bool {
    command.keys.iter().any(|spec| spec.flags.contains(KeyFlags::OW))
        && command.keys.iter().any(|spec| spec.flags == KeyFlags::RO | KeyFlags::ACCESS)
}

/// A destination that is none of the sources gets the same value each time.
fn store_effect<A: ArgList + ?Sized>(command: &Command, args: &A) -> SideEffect {
    let (mut destinations, mut reads_destination) = (Vec::new(), false);
    let collected = for_each_key(command, args, |index, flags| {
        if flags.contains(KeyFlags::OW) {
            destinations.push(index);
        }
    });
    let checked = for_each_key(command, args, |index, flags| {
        if !flags.contains(KeyFlags::OW) {
            reads_destination |= destinations.iter().any(|at| args.arg(*at) == args.arg(index));
        }
    });
    if collected.is_err() || checked.is_err() || reads_destination {
        SideEffect::NonIdempotent
    } else {
        SideEffect::Idempotent
    }
}

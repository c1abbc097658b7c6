//! The commands on lists that wait for an element.
//!
//! Owns: their arguments and what they answer when nothing comes. Does **not** own popping and moving ([`super::lists`])
//! nor waiting itself: a command that finds nothing says so, and is run again from its start when one of its keys
//! changes ([`crate::blocking`]).

use super::lists::{MultiPop, end_arg, move_one, pop_one};
use crate::command::{Args, CommandError, CommandResult, Ctx, Nothing, Row, keys};
use std::time::Duration;
use towline_resp::long_double::LongDouble;
use towline_store::list::End;
use towline_store::number::parse_f64;

const NEGATIVE: CommandError = CommandError::Text("ERR timeout is negative");
const OUT_OF_RANGE: CommandError = CommandError::Text("ERR timeout is out of range");

/// Argument `index` as seconds to wait, rounded up to milliseconds; `None` is for ever, written as 0.
///
/// # Errors
/// When it is no number, negative, or ends beyond the last instant that 64 bits of milliseconds can name.
pub(super) fn timeout_arg(
    ctx: &Ctx<'_>,
    args: Args<'_>,
    index: usize,
) -> Result<Option<Duration>, CommandError> {
    let text = args.get(index);
    // Redis reads more digits and larger exponents than a double has; what only those can tell is refused too.
    let seconds = parse_f64(text).ok_or_else(|| match LongDouble::parse(text) {
        Some(number) if number.is_negative() => NEGATIVE,
        Some(_) => OUT_OF_RANGE,
        None => CommandError::Text("ERR timeout is not a float or out of range"),
    })?;
    let ms = (seconds * 1000.0).ceil();
    if ms < 0.0 {
        return Err(NEGATIVE);
    }
    // The nearest double to the largest integer is beyond it, hence "not below".
    if ms >= i64::MAX as f64 {
        return Err(OUT_OF_RANGE);
    }
    let ms = ms as u64;
    if ms > (i64::MAX as u64).saturating_sub(ctx.ks.now_ms()) {
        return Err(OUT_OF_RANGE);
    }
    Ok((ms > 0).then(|| Duration::from_millis(ms)))
}

/// `BLPOP key [key ...] timeout` and `BRPOP`: from the first key that has a list.
fn pop(ctx: &mut Ctx<'_>, args: Args<'_>, end: End) -> CommandResult {
    let timeout = timeout_arg(ctx, args, args.len() - 1)?;
    let keys = args.iter().take(args.len() - 1).skip(1);
    for key in keys.clone() {
        let is_popped = pop_one(ctx, key, end, |out| {
            out.array(2);
            out.bulk(key);
        })?;
        if is_popped {
            return Ok(());
        }
    }
    ctx.block(keys, timeout, Nothing::NullArray);
    Ok(())
}

fn blpop(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    pop(ctx, args, End::Front)
}

fn brpop(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    pop(ctx, args, End::Back)
}

fn blmpop(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    // Redis looks at the timeout last.
    let pops = MultiPop::parse(args, 2)?;
    let timeout = timeout_arg(ctx, args, 1)?;
    if !pops.run(ctx)? {
        ctx.block(pops.keys(), timeout, Nothing::NullArray);
    }
    Ok(())
}

/// Moves from `source`, the only key that is waited for: a destination needs no element.
fn move_or_wait(
    ctx: &mut Ctx<'_>,
    args: Args<'_>,
    from: End,
    to: End,
    timeout: Option<Duration>,
) -> CommandResult {
    let (source, destination) = (args.get(1), args.get(2));
    if !move_one(ctx, source, destination, from, to)? {
        ctx.block(std::iter::once(source), timeout, Nothing::NullMove);
    }
    Ok(())
}

fn blmove(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (from, to) = (end_arg(args, 3)?, end_arg(args, 4)?);
    let timeout = timeout_arg(ctx, args, 5)?;
    move_or_wait(ctx, args, from, to, timeout)
}

fn brpoplpush(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let timeout = timeout_arg(ctx, args, 3)?;
    move_or_wait(ctx, args, End::Back, End::Front, timeout)
}

pub(super) const ROWS: &[Row] = &[
    keys("blmove", blmove),
    keys("blmpop", blmpop),
    keys("blpop", blpop),
    keys("brpop", brpop),
    keys("brpoplpush", brpoplpush),
];

#[cfg(test)]
mod tests;

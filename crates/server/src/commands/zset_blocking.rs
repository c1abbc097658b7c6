//! The commands on sorted sets that wait for a member.
//!
//! Owns: their arguments and what they answer when nothing comes. Does **not** own popping ([`super::zset_pop`]) nor
//! waiting itself: a command that finds nothing says so, and is run again from its start when one of its keys changes
//! ([`crate::blocking`]).

use super::blocking::timeout_arg;
use super::zset_pop::{MultiPop, Side, flat, pop};
use crate::command::{Args, CommandResult, Ctx, Nothing, Row, keys};

/// `BZPOPMIN key [key ...] timeout` and `BZPOPMAX`: from the first key that has members.
fn pop_one(ctx: &mut Ctx<'_>, args: Args<'_>, side: Side) -> CommandResult {
    let last = args.len() - 1;
    let timeout = timeout_arg(ctx, args, last)?;
    let keys = args.iter().take(last).skip(1);
    for key in keys.clone() {
        let is_popped = pop(
            ctx,
            key,
            side,
            1,
            |out, _| {
                out.array(3);
                out.bulk(key);
            },
            flat,
        )?;
        if is_popped {
            return Ok(());
        }
    }
    ctx.block(keys, timeout, Nothing::NullArray);
    Ok(())
}

fn bzpopmin(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    pop_one(ctx, args, Side::Min)
}

fn bzpopmax(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    pop_one(ctx, args, Side::Max)
}

fn bzmpop(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let pops = MultiPop::parse(args, 2)?;
    let timeout = timeout_arg(ctx, args, 1)?;
    if !pops.run(ctx)? {
        ctx.block(pops.keys(), timeout, Nothing::NullArray);
    }
    Ok(())
}

pub(super) const ROWS: &[Row] =
    &[keys("bzmpop", bzmpop), keys("bzpopmax", bzpopmax), keys("bzpopmin", bzpopmin)];

#[cfg(test)]
mod tests;

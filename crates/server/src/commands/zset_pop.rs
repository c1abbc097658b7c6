//! Popping from sorted sets: the lowest or highest members of one key or of the first of several.
//!
//! Owns: `ZPOPMIN`, `ZPOPMAX`, `ZMPOP` and what they share with the commands that wait ([`super::zset_blocking`]).

use super::collections::{count_arg, numkeys_arg, pop_count_option};
use super::zset_common::pair;
use crate::command::{Args, CommandError, CommandResult, Ctx, Row, keys};
use towline_resp::writer::Writer;
use towline_store::notify::Class;

/// The end of the order that is popped from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The lowest members, the lowest first.
    Min,
    /// The highest members, the highest first.
    Max,
}

impl Side {
    fn event(self) -> &'static str {
        match self {
            Self::Min => "zpopmin",
            Self::Max => "zpopmax",
        }
    }
}

/// How a popped member is replied.
pub(super) type EntryReply = fn(&mut Writer, &[u8], f64);

/// A member and its score as two elements of the array around them.
pub(super) fn flat(out: &mut Writer, member: &[u8], score: f64) {
    out.bulk(member);
    out.double(score);
}

/// Pops up to `count` members and replies: `head` begins the reply, given how many there are, `entry` writes each.
/// `false`, without a reply, when there is no such key.
pub(super) fn pop(
    ctx: &mut Ctx<'_>,
    key: &[u8],
    side: Side,
    count: usize,
    head: impl FnOnce(&mut Writer, usize),
    entry: EntryReply,
) -> Result<bool, CommandError> {
    let Some(mut zset) = ctx.ks.zset_mut(key)? else { return Ok(false) };
    let len = zset.len();
    let count = count.min(len);
    head(ctx.out, count);
    let ranks = match side {
        Side::Min => 0..count,
        Side::Max => len - count..len,
    };
    let entries = zset.range(ranks.clone());
    match side {
        Side::Min => entries.for_each(|(member, score)| entry(ctx.out, member, score)),
        Side::Max => entries.rev().for_each(|(member, score)| entry(ctx.out, member, score)),
    }
    if count == len {
        // A large set is freed off the path when it is deleted as a whole.
        ctx.ks.delete(key);
        ctx.ks.changed(key, Class::Zset, side.event());
        ctx.ks.notify(Class::Generic, "del", key);
    } else if count > 0 {
        zset.remove_range(ranks);
        ctx.ks.changed(key, Class::Zset, side.event());
    }
    Ok(true)
}

/// `ZPOPMIN key [count]`: a flat array; pairs in RESP3 when a count is given.
fn pop_from_one(ctx: &mut Ctx<'_>, args: Args<'_>, side: Side) -> CommandResult {
    let count = match args.len() {
        2 => None,
        3 => Some(count_arg(args, 2)?),
        _ => return Err(CommandError::Syntax),
    };
    let is_popped = if count.is_some() && ctx.out.is_resp3() {
        pop(ctx, args.get(1), side, count.unwrap_or(1), |out, count| out.array(count), pair)?
    } else {
        pop(ctx, args.get(1), side, count.unwrap_or(1), |out, count| out.array(count * 2), flat)?
    };
    if !is_popped {
        ctx.out.array(0);
    }
    Ok(())
}

fn zpopmin(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    pop_from_one(ctx, args, Side::Min)
}

fn zpopmax(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    pop_from_one(ctx, args, Side::Max)
}

/// `numkeys key [key ...] MIN | MAX [COUNT count]`
#[derive(Debug, Clone, Copy)]
pub(super) struct MultiPop<'a> {
    keys: Args<'a>,
    key_count: usize,
    side: Side,
    count: usize,
}

impl<'a> MultiPop<'a> {
    /// Reads the arguments from `numkeys` on, which is argument `first`.
    pub(super) fn parse(args: Args<'a>, first: usize) -> Result<Self, CommandError> {
        let key_count = numkeys_arg(args, first)?;
        let rest = args.from(first + 1);
        let side = match rest.at(key_count) {
            Some(word) if word.eq_ignore_ascii_case(b"min") => Side::Min,
            Some(word) if word.eq_ignore_ascii_case(b"max") => Side::Max,
            _ => return Err(CommandError::Syntax),
        };
        let count = pop_count_option(rest.from(key_count + 1))?;
        Ok(Self { keys: rest, key_count, side, count })
    }

    /// The keys in order.
    pub(super) fn keys(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.keys.iter().take(self.key_count)
    }

    /// Pops from the first key that has members. `false`, without a reply, when none has.
    pub(super) fn run(&self, ctx: &mut Ctx<'_>) -> Result<bool, CommandError> {
        for key in self.keys() {
            let head = |out: &mut Writer, count| {
                out.array(2);
                out.bulk(key);
                out.array(count);
            };
            if pop(ctx, key, self.side, self.count, head, pair)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn zmpop(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if !MultiPop::parse(args, 1)?.run(ctx)? {
        ctx.out.null_array();
    }
    Ok(())
}

pub(super) const ROWS: &[Row] = &[keys("zmpop", zmpop), keys("zpopmax", zpopmax), keys("zpopmin", zpopmin)];

#[cfg(test)]
mod tests;

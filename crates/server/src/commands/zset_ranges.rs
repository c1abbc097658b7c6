//! Ranges of sorted sets: by rank, by score, by member, forwards and backwards, replied or stored.
//!
//! Owns: the arguments of `ZRANGE` and its older relatives, and what they answer. Does **not** own the search for a range's
//! ends, which is the set's.

use super::zset_common::{Scores, lex_range, positions, score_range};
use crate::command::{Args, CommandError, CommandResult, Ctx, Row, keys};
use std::ops::Range;
use towline_store::keyspace::Expiry;
use towline_store::notify::Class;
use towline_store::value::Value;
use towline_store::zset::{LexRange, ScoreRange, Zset};

/// What the ends of a range are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Rank,
    Score,
    Lex,
}

/// The order in which a range is walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// What a command's name says about the range; `None` leaves it to the options.
#[derive(Debug, Clone, Copy)]
struct Form {
    by: Option<By>,
    direction: Option<Direction>,
    /// Index of the key that is read; the ends follow it.
    key: usize,
}

#[derive(Debug, Clone, Copy)]
enum Ends<'a> {
    Positions(i64, i64),
    Scores(ScoreRange),
    Members(LexRange<'a>),
}

/// A range of a sorted set, as the arguments ask for it.
#[derive(Debug, Clone, Copy)]
struct Query<'a> {
    key: &'a [u8],
    ends: Ends<'a>,
    direction: Direction,
    /// Members to leave out first; none is found behind a negative number.
    offset: i64,
    /// Members to give at most; all if negative.
    limit: i64,
    scores: Scores,
}

impl<'a> Query<'a> {
    fn parse(args: Args<'a>, form: Form) -> Result<Self, CommandError> {
        let is_stored = form.key > 1;
        let (mut by, mut direction) = (form.by, form.direction);
        let (mut offset, mut limit, mut scores) = (0, -1, Scores::Hidden);
        let mut index = form.key + 3;
        while index < args.len() {
            if !is_stored && args.is(index, "withscores") {
                scores = Scores::Shown;
            } else if args.is(index, "limit") && index + 2 < args.len() {
                (offset, limit) = (args.int(index + 1)?, args.int(index + 2)?);
                index += 2;
            } else if direction.is_none() && args.is(index, "rev") {
                direction = Some(Direction::Backward);
            } else if by.is_none() && args.is(index, "bylex") {
                by = Some(By::Lex);
            } else if by.is_none() && args.is(index, "byscore") {
                by = Some(By::Score);
            } else {
                return Err(CommandError::Syntax);
            }
            index += 1;
        }
        let (by, direction) = (by.unwrap_or(By::Rank), direction.unwrap_or(Direction::Forward));
        if by == By::Rank && limit != -1 {
            return Err(CommandError::Text(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
            ));
        }
        if by == By::Lex && scores == Scores::Shown {
            return Err(CommandError::Text(
                "ERR syntax error, WITHSCORES not supported in combination with BYLEX",
            ));
        }
        let (low, high) = match direction {
            Direction::Forward => (form.key + 1, form.key + 2),
            Direction::Backward => (form.key + 2, form.key + 1),
        };
        let ends = match by {
            By::Rank => Ends::Positions(args.int(form.key + 1)?, args.int(form.key + 2)?),
            By::Score => Ends::Scores(score_range(args, low, high)?),
            By::Lex => Ends::Members(lex_range(args, low, high)?),
        };
        Ok(Self { key: args.get(form.key), ends, direction, offset, limit, scores })
    }

    /// The ranks, counted from the lowest, of what is asked for.
    fn ranks(&self, zset: &Zset) -> Range<usize> {
        // What the ends admit, and of that the part that is given, in the order of the walk.
        let (whole, part) = match self.ends {
            Ends::Positions(start, stop) => (0..zset.len(), positions(start, stop, zset.len())),
            Ends::Scores(range) => self.limited(zset.ranks_by_score(&range)),
            Ends::Members(range) => self.limited(zset.ranks_by_lex(&range)),
        };
        match self.direction {
            Direction::Forward => whole.start + part.start..whole.start + part.end,
            Direction::Backward => whole.end - part.end..whole.end - part.start,
        }
    }

    fn limited(&self, whole: Range<usize>) -> (Range<usize>, Range<usize>) {
        let len = whole.len();
        let start = usize::try_from(self.offset).map_or(len, |offset| offset.min(len));
        let count = usize::try_from(self.limit).map_or(len, |limit| limit.min(len));
        (whole, start..len.min(start + count))
    }
}

/// Replies with the range.
fn reply(ctx: &mut Ctx<'_>, args: Args<'_>, by: Option<By>, direction: Option<Direction>) -> CommandResult {
    let query = Query::parse(args, Form { by, direction, key: 1 })?;
    let Some(zset) = ctx.ks.zset(query.key)? else {
        ctx.out.array(0);
        return Ok(());
    };
    let entries = zset.range(query.ranks(zset));
    match query.direction {
        Direction::Forward => query.scores.reply(ctx.out, entries),
        Direction::Backward => query.scores.reply(ctx.out, entries.rev()),
    }
    Ok(())
}

fn zrange(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    reply(ctx, args, None, None)
}

fn zrevrange(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    reply(ctx, args, Some(By::Rank), Some(Direction::Backward))
}

fn zrangebyscore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    reply(ctx, args, Some(By::Score), Some(Direction::Forward))
}

fn zrevrangebyscore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    reply(ctx, args, Some(By::Score), Some(Direction::Backward))
}

fn zrangebylex(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    reply(ctx, args, Some(By::Lex), Some(Direction::Forward))
}

fn zrevrangebylex(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    reply(ctx, args, Some(By::Lex), Some(Direction::Backward))
}

fn zrangestore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let query = Query::parse(args, Form { by: None, direction: None, key: 2 })?;
    let limits = &ctx.ks.settings().limits;
    let mut result = Zset::new();
    if let Some(zset) = ctx.ks.zset(query.key)? {
        let ranks = query.ranks(zset);
        result = Zset::for_members(ranks.len(), 0, limits);
        for (member, score) in zset.range(ranks) {
            result.insert(member, score, limits);
        }
    }
    store(ctx, args.get(1), result, "zrangestore");
    Ok(())
}

/// Makes `destination` hold the set, or nothing when the set is empty, and replies with the set's size.
pub(super) fn store(ctx: &mut Ctx<'_>, destination: &[u8], result: Zset, event: &'static str) {
    let len = result.len();
    if len > 0 {
        ctx.ks.set_value(destination, Value::Zset(result), Expiry::Clear);
        ctx.ks.changed(destination, Class::Zset, event);
    } else if ctx.ks.delete(destination) {
        ctx.ks.changed(destination, Class::Generic, "del");
    }
    ctx.out.int(len as i64);
}

pub(super) const ROWS: &[Row] = &[
    keys("zrange", zrange),
    keys("zrangebylex", zrangebylex),
    keys("zrangebyscore", zrangebyscore),
    keys("zrangestore", zrangestore),
    keys("zrevrange", zrevrange),
    keys("zrevrangebylex", zrevrangebylex),
    keys("zrevrangebyscore", zrevrangebyscore),
];

#[cfg(test)]
mod tests;

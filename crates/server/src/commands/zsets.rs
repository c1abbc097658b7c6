//! Sorted sets: members, scores, ranks, counts, random choice, scanning.
//!
//! Owns: the commands that read or change single members, count and remove ranges. Does **not** own replies of ranges
//! ([`super::zset_ranges`]), combinations of sets ([`super::zset_algebra`]), popping ([`super::zset_pop`]).

use super::collections::{ScanOptions, cursor_arg, draw_bounded, empty_scan, fork_rng, signed_count_arg};
use super::zset_common::{NOT_A_NUMBER, Scores, lex_range, positions, score_range};
use crate::command::{Args, CommandError, CommandResult, Ctx, Row, keys};
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::ops::Range;
use towline_resp::writer::Writer;
use towline_sansio::Prng;
use towline_store::keyspace::editing::ZsetMut;
use towline_store::limits::EncodingLimits;
use towline_store::notify::Class;
use towline_store::packed::Elem;
use towline_store::zset::{Inserted, Zset, ZsetEncoding};

/// Scores of one command that are kept without a heap allocation.
const SCORES_INLINE: usize = 8;
/// A sample of at most one in this many members is drawn by number; a larger one walks over all.
const SPARSE_SHARE: usize = 3;

// ---- adding -------------------------------------------------------------------------------------------------------

/// The options of `ZADD`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AddOptions {
    /// `NX`
    pub(super) is_new_only: bool,
    /// `XX`
    pub(super) is_known_only: bool,
    /// `GT`
    pub(super) is_greater_only: bool,
    /// `LT`
    pub(super) is_less_only: bool,
    /// `CH`: the reply counts changed scores too.
    pub(super) counts_changed: bool,
    /// `INCR`: scores are added, and the reply is the sum.
    pub(super) is_increment: bool,
}

/// What became of one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Added,
    Changed,
    Same,
    /// An option kept it as it was.
    Skipped,
}

impl AddOptions {
    /// Takes an option; `false` when it is none.
    fn take(&mut self, word: &[u8]) -> bool {
        let options = [
            ("nx", &mut self.is_new_only),
            ("xx", &mut self.is_known_only),
            ("gt", &mut self.is_greater_only),
            ("lt", &mut self.is_less_only),
            ("ch", &mut self.counts_changed),
            ("incr", &mut self.is_increment),
        ];
        for (name, option) in options {
            if word.eq_ignore_ascii_case(name.as_bytes()) {
                *option = true;
                return true;
            }
        }
        false
    }

    /// Whether a member's new score depends on the old one.
    fn looks_at_old(&self) -> bool {
        self.is_new_only
            || self.is_known_only
            || self.is_greater_only
            || self.is_less_only
            || self.is_increment
    }

    fn check(&self, pairs: usize) -> Result<(), CommandError> {
        if self.is_new_only && self.is_known_only {
            return Err(CommandError::Text("ERR XX and NX options at the same time are not compatible"));
        }
        let exclusive = [self.is_new_only, self.is_greater_only, self.is_less_only];
        if exclusive.into_iter().filter(|&is_set| is_set).count() > 1 {
            return Err(CommandError::Text(
                "ERR GT, LT, and/or NX options at the same time are not compatible",
            ));
        }
        if self.is_increment && pairs > 1 {
            return Err(CommandError::Text("ERR INCR option supports a single increment-element pair"));
        }
        Ok(())
    }

    /// Adds one member, and says what its score is then.
    fn add(
        &self,
        zset: &mut ZsetMut<'_>,
        member: &[u8],
        mut score: f64,
        limits: &EncodingLimits,
    ) -> Result<(Outcome, f64), CommandError> {
        if self.looks_at_old() {
            let Some(old) = zset.score(member) else {
                if self.is_known_only {
                    return Ok((Outcome::Skipped, score));
                }
                zset.insert(member, score, limits);
                return Ok((Outcome::Added, score));
            };
            if self.is_new_only {
                return Ok((Outcome::Skipped, old));
            }
            if self.is_increment {
                score += old;
                if score.is_nan() {
                    return Err(NOT_A_NUMBER);
                }
            }
            if (self.is_less_only && score >= old) || (self.is_greater_only && score <= old) {
                return Ok((Outcome::Skipped, old));
            }
        }
        match zset.insert(member, score, limits) {
            Inserted::Added => Ok((Outcome::Added, score)),
            Inserted::Updated => Ok((Outcome::Changed, score)),
            Inserted::Unchanged => Ok((Outcome::Same, score)),
            Inserted::NotANumber => Err(NOT_A_NUMBER),
        }
    }
}

/// Adds members and replies; the scores are numbers.
pub(super) fn add_all<'m>(
    ctx: &mut Ctx<'_>,
    key: &[u8],
    options: &AddOptions,
    entries: impl Iterator<Item = (f64, &'m [u8])>,
) -> CommandResult {
    let limits = &ctx.ks.settings().limits;
    // Without XX the first member makes its way into a new set, so none is left empty.
    let zset = if options.is_known_only { ctx.ks.zset_mut(key)? } else { Some(ctx.ks.zset_or_new(key)?) };
    let (mut added, mut changed, mut sum) = (0, 0, None);
    if let Some(mut zset) = zset {
        for (score, member) in entries {
            let (outcome, score) = options.add(&mut zset, member, score, limits)?;
            added += i64::from(outcome == Outcome::Added);
            changed += i64::from(outcome == Outcome::Changed);
            sum = (outcome != Outcome::Skipped).then_some(score);
        }
    }
    if added + changed > 0 {
        ctx.ks.changed(key, Class::Zset, if options.is_increment { "zincr" } else { "zadd" });
    }
    match sum {
        Some(sum) if options.is_increment => ctx.out.double(sum),
        None if options.is_increment => ctx.out.null(),
        _ => ctx.out.int(if options.counts_changed { added + changed } else { added }),
    }
    Ok(())
}

fn zadd(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (key, mut options, mut first) = (args.get(1), AddOptions::default(), 2);
    while args.at(first).is_some_and(|word| options.take(word)) {
        first += 1;
    }
    let pairs = args.from(first);
    if pairs.len() == 0 || !pairs.len().is_multiple_of(2) {
        return Err(CommandError::Syntax);
    }
    let count = pairs.len() / 2;
    options.check(count)?;
    let scores = (0..count)
        .map(|pair| pairs.float(pair * 2))
        .collect::<Result<SmallVec<[f64; SCORES_INLINE]>, _>>()?;
    let members = (0..count).map(|pair| pairs.get(pair * 2 + 1));
    add_all(ctx, key, &options, scores.into_iter().zip(members))
}

fn zincrby(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    // An option of ZADD in the increment's place is taken as one and leaves a member without a score.
    if AddOptions::default().take(args.get(2)) {
        return Err(CommandError::Syntax);
    }
    let options = AddOptions { is_increment: true, ..AddOptions::default() };
    let increment = args.float(2)?;
    add_all(ctx, args.get(1), &options, std::iter::once((increment, args.get(3))))
}

// ---- reading ------------------------------------------------------------------------------------------------------

fn zcard(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let len = ctx.ks.zset(args.get(1))?.map_or(0, Zset::len);
    ctx.out.int(len as i64);
    Ok(())
}

fn reply_score(out: &mut Writer, score: Option<f64>) {
    match score {
        Some(score) => out.double(score),
        None => out.null(),
    }
}

fn zscore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let score = ctx.ks.zset(args.get(1))?.and_then(|zset| zset.score(args.get(2)));
    reply_score(ctx.out, score);
    Ok(())
}

fn zmscore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let zset = ctx.ks.zset(args.get(1))?;
    let members = args.from(2);
    ctx.out.array(members.len());
    for member in members.iter() {
        reply_score(ctx.out, zset.and_then(|zset| zset.score(member)));
    }
    Ok(())
}

/// `ZRANK key member [WITHSCORE]`; `place` makes the rank from the one counted from the lowest, and the set's size.
fn rank(
    ctx: &mut Ctx<'_>,
    args: Args<'_>,
    name: &'static str,
    place: impl Fn(usize, usize) -> usize,
) -> CommandResult {
    let with_score = match args.len() {
        3 => false,
        4 if args.is(3, "withscore") => true,
        4 => return Err(CommandError::Syntax),
        _ => return Err(CommandError::Arity(name)),
    };
    let found = ctx.ks.zset(args.get(1))?.and_then(|zset| {
        let (rank, score) = zset.rank(args.get(2))?;
        Some((place(rank, zset.len()) as i64, score))
    });
    match found {
        Some((rank, score)) if with_score => {
            ctx.out.array(2);
            ctx.out.int(rank);
            ctx.out.double(score);
        }
        Some((rank, _)) => ctx.out.int(rank),
        None if with_score => ctx.out.null_array(),
        None => ctx.out.null(),
    }
    Ok(())
}

fn zrank(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    rank(ctx, args, "zrank", |rank, _| rank)
}

fn zrevrank(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    rank(ctx, args, "zrevrank", |rank, len| len - 1 - rank)
}

fn zcount(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let range = score_range(args, 2, 3)?;
    let count = ctx.ks.zset(args.get(1))?.map_or(0, |zset| zset.ranks_by_score(&range).len());
    ctx.out.int(count as i64);
    Ok(())
}

fn zlexcount(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let range = lex_range(args, 2, 3)?;
    let count = ctx.ks.zset(args.get(1))?.map_or(0, |zset| zset.ranks_by_lex(&range).len());
    ctx.out.int(count as i64);
    Ok(())
}

// ---- removing -----------------------------------------------------------------------------------------------------

fn zrem(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = args.get(1);
    let removed = match ctx.ks.zset_mut(key)? {
        Some(mut zset) => args.from(2).iter().filter(|member| zset.remove(member).is_some()).count(),
        None => 0,
    };
    if removed > 0 {
        ctx.ks.changed_or_emptied(key, Class::Zset, "zrem");
    }
    ctx.out.int(removed as i64);
    Ok(())
}

/// Removes a range of ranks and replies with its length.
fn remove_range(
    ctx: &mut Ctx<'_>,
    key: &[u8],
    event: &'static str,
    ranks: impl FnOnce(&Zset) -> Range<usize>,
) -> CommandResult {
    let Some(mut zset) = ctx.ks.zset_mut(key)? else {
        ctx.out.int(0);
        return Ok(());
    };
    let ranks = ranks(&zset);
    let removed = ranks.len();
    if removed == zset.len() {
        // A large set is freed off the path when it is deleted as a whole.
        ctx.ks.delete(key);
        ctx.ks.changed(key, Class::Zset, event);
        ctx.ks.notify(Class::Generic, "del", key);
    } else if removed > 0 {
        zset.remove_range(ranks);
        ctx.ks.changed(key, Class::Zset, event);
    }
    ctx.out.int(removed as i64);
    Ok(())
}

fn zremrangebyrank(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (start, stop) = (args.int(2)?, args.int(3)?);
    remove_range(ctx, args.get(1), "zremrangebyrank", |zset| positions(start, stop, zset.len()))
}

fn zremrangebyscore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let range = score_range(args, 2, 3)?;
    remove_range(ctx, args.get(1), "zremrangebyscore", |zset| zset.ranks_by_score(&range))
}

fn zremrangebylex(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let range = lex_range(args, 2, 3)?;
    remove_range(ctx, args.get(1), "zremrangebylex", |zset| zset.ranks_by_lex(&range))
}

// ---- random choice and scanning -----------------------------------------------------------------------------------

fn zrandmember(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let mut rng = fork_rng(ctx);
    if args.len() == 2 {
        match ctx.ks.zset(args.get(1))?.and_then(|zset| zset.random(rng.next_u64())) {
            Some((member, _)) => ctx.out.bulk(member),
            None => ctx.out.null(),
        }
        return Ok(());
    }
    let count = signed_count_arg(args, 2)?;
    let scores = match args.len() {
        3 => Scores::Hidden,
        4 if args.is(3, "withscores") => Scores::Shown,
        _ => return Err(CommandError::Syntax),
    };
    if scores == Scores::Shown && count.unsigned_abs() > i64::MAX as u64 / 2 {
        return Err(CommandError::Text("ERR value is out of range"));
    }
    let Some(zset) = ctx.ks.zset(args.get(1))? else {
        ctx.out.array(0);
        return Ok(());
    };
    if count < 0 {
        return draw(ctx.out, zset, count.unsigned_abs(), scores, &mut rng);
    }
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(zset.len());
    scores.head(ctx.out, count);
    sample(zset, count, &mut rng, |member, score| scores.entry(ctx.out, member, score));
    Ok(())
}

/// Replies with `count` members chosen independently, so with repetitions.
fn draw(out: &mut Writer, zset: &Zset, count: u64, scores: Scores, rng: &mut Prng) -> CommandResult {
    // A listpack is walked once instead of once per draw.
    let listed: Vec<_> = match zset.encoding() {
        ZsetEncoding::Listpack => zset.iter().collect(),
        ZsetEncoding::Skiplist => Vec::new(),
    };
    scores.head(out, usize::try_from(count).unwrap_or(usize::MAX));
    draw_bounded(out, count, |out, count| {
        for _ in 0..count {
            let drawn = match listed.len() {
                0 => zset.random(rng.next_u64()),
                len => listed.get(rng.below(len as u64) as usize).copied(),
            };
            let (member, score) = drawn.expect("invariant: a stored set has members");
            scores.entry(out, member, score);
        }
    })
}

/// Visits `count` different members, at most all; each subset is as likely as any other.
fn sample(zset: &Zset, count: usize, rng: &mut Prng, mut visit: impl FnMut(&[u8], f64)) {
    let len = zset.len();
    if count > len / SPARSE_SHARE || zset.encoding() == ZsetEncoding::Listpack {
        // Knuth's algorithm S.
        let mut wanted = count;
        for (seen, (member, score)) in zset.iter().enumerate() {
            if wanted > 0 && rng.below((len - seen) as u64) < wanted as u64 {
                visit(member, score);
                wanted -= 1;
            }
        }
        return;
    }
    // Floyd's algorithm: one draw per member, whatever was drawn before.
    let mut chosen = BTreeSet::new();
    for last in (len - count)..len {
        let number = rng.below(last as u64 + 1);
        if !chosen.insert(number) {
            chosen.insert(last as u64);
        }
    }
    for (member, score) in chosen.into_iter().filter_map(|number| zset.random(number)) {
        visit(member, score);
    }
}

fn zscan(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let cursor = cursor_arg(args, 2)?;
    let Some(zset) = ctx.ks.zset(args.get(1))? else {
        empty_scan(ctx.out);
        return Ok(());
    };
    let options = ScanOptions::parse(args, Some("noscores"))?;
    let mut entries = Writer::new(ctx.out.proto);
    let mut count = 0;
    let next = zset.scan(cursor, options.count, &mut |member, score| {
        if options.accepts(Elem::Bytes(member)) {
            entries.bulk(member);
            count += 1;
            if !options.is_names_only {
                entries.bulk_double(score);
                count += 1;
            }
        }
    });
    ctx.out.array(2);
    ctx.out.bulk_display(next);
    ctx.out.array(count);
    entries.segments().for_each(|segment| ctx.out.raw(segment));
    Ok(())
}

pub(super) const ROWS: &[Row] = &[
    keys("zadd", zadd),
    keys("zcard", zcard),
    keys("zcount", zcount),
    keys("zincrby", zincrby),
    keys("zlexcount", zlexcount),
    keys("zmscore", zmscore),
    keys("zrandmember", zrandmember),
    keys("zrank", zrank),
    keys("zrem", zrem),
    keys("zremrangebylex", zremrangebylex),
    keys("zremrangebyrank", zremrangebyrank),
    keys("zremrangebyscore", zremrangebyscore),
    keys("zrevrank", zrevrank),
    keys("zscan", zscan),
    keys("zscore", zscore),
];

#[cfg(test)]
mod tests;

//! Lists: pushing, popping, moving, and what works on an index, a range or equal elements.
//!
//! Owns: the commands that answer at once, and the popping and moving that their blocking kin in [`super::blocking`]
//! share. Does **not** own waiting.

use super::collections::{bulk_elem, count_arg, numkeys_arg, pop_count_option, signed_count_arg};
use crate::command::{Args, CommandError, CommandResult, Ctx, Row, keys};
use towline_resp::writer::Writer;
use towline_store::keyspace::WrongType;
use towline_store::keyspace::editing::ListMut;
use towline_store::limits::EncodingLimits;
use towline_store::list::{End, List, Side};
use towline_store::notify::Class;
use towline_store::number::parse_i64;

fn limits<'a>(ctx: &Ctx<'a>) -> &'a EncodingLimits {
    &ctx.ks.settings().limits
}

fn push_event(end: End) -> &'static str {
    match end {
        End::Front => "lpush",
        End::Back => "rpush",
    }
}

fn pop_event(end: End) -> &'static str {
    match end {
        End::Front => "lpop",
        End::Back => "rpop",
    }
}

/// Argument `index` as `LEFT` or `RIGHT`.
pub(super) fn end_arg(args: Args<'_>, index: usize) -> Result<End, CommandError> {
    if args.is(index, "left") {
        Ok(End::Front)
    } else if args.is(index, "right") {
        Ok(End::Back)
    } else {
        Err(CommandError::Syntax)
    }
}

// ---- pushing ------------------------------------------------------------------------------------------------------

fn push(ctx: &mut Ctx<'_>, args: Args<'_>, end: End) -> CommandResult {
    let (key, limits) = (args.get(1), limits(ctx));
    let mut list = ctx.ks.list_or_new(key)?;
    list.push_all(end, args.from(2).iter(), limits);
    ctx.out.int(list.len() as i64);
    ctx.ks.changed(key, Class::List, push_event(end));
    Ok(())
}

fn push_existing(ctx: &mut Ctx<'_>, args: Args<'_>, end: End) -> CommandResult {
    let (key, limits) = (args.get(1), limits(ctx));
    let Some(mut list) = ctx.ks.list_mut(key)? else {
        ctx.out.int(0);
        return Ok(());
    };
    list.push_all(end, args.from(2).iter(), limits);
    ctx.out.int(list.len() as i64);
    ctx.ks.changed(key, Class::List, push_event(end));
    Ok(())
}

fn lpush(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    push(ctx, args, End::Front)
}

fn rpush(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    push(ctx, args, End::Back)
}

fn lpushx(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    push_existing(ctx, args, End::Front)
}

fn rpushx(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    push_existing(ctx, args, End::Back)
}

// ---- popping ------------------------------------------------------------------------------------------------------

/// Writes an array of up to `count` elements from one end, in the order of popping, and removes them.
fn pop_many(out: &mut Writer, mut list: ListMut<'_>, end: End, count: usize, limits: &EncodingLimits) {
    let count = count.min(list.len());
    out.array(count);
    match end {
        End::Front => list.iter().take(count).for_each(|elem| bulk_elem(out, elem)),
        End::Back => list.iter_back_from(list.len() - 1).take(count).for_each(|elem| bulk_elem(out, elem)),
    }
    list.drop_from(end, count, limits);
}

/// Pops one element from `key` into the reply, after `head` was written. `false` without a list.
pub(super) fn pop_one(
    ctx: &mut Ctx<'_>,
    key: &[u8],
    end: End,
    head: impl FnOnce(&mut Writer),
) -> Result<bool, WrongType> {
    let limits = limits(ctx);
    let Some(mut list) = ctx.ks.list_mut(key)? else { return Ok(false) };
    let Some(elem) = list.peek(end) else { return Ok(false) };
    head(ctx.out);
    bulk_elem(ctx.out, elem);
    list.drop_from(end, 1, limits);
    ctx.ks.changed_or_emptied(key, Class::List, pop_event(end));
    Ok(true)
}

fn pop(ctx: &mut Ctx<'_>, args: Args<'_>, end: End, name: &'static str) -> CommandResult {
    let (key, limits) = (args.get(1), limits(ctx));
    match args.len() {
        2 => {
            if !pop_one(ctx, key, end, |_| {})? {
                ctx.out.null();
            }
        }
        3 => {
            let count = count_arg(args, 2)?;
            match ctx.ks.list_mut(key)? {
                None => ctx.out.null_array(),
                Some(_) if count == 0 => ctx.out.array(0),
                Some(list) => {
                    pop_many(ctx.out, list, end, count, limits);
                    ctx.ks.changed_or_emptied(key, Class::List, pop_event(end));
                }
            }
        }
        _ => return Err(CommandError::Arity(name)),
    }
    Ok(())
}

fn lpop(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    pop(ctx, args, End::Front, "lpop")
}

fn rpop(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    pop(ctx, args, End::Back, "rpop")
}

/// The arguments of `LMPOP` and `BLMPOP` from `numkeys` on.
#[derive(Debug, Clone, Copy)]
pub(super) struct MultiPop<'a> {
    args: Args<'a>,
    key_count: usize,
    end: End,
    count: usize,
}

impl<'a> MultiPop<'a> {
    /// Reads `numkeys key [key ...] <LEFT | RIGHT> [COUNT count]`, with `numkeys` at `index`.
    pub(super) fn parse(args: Args<'a>, index: usize) -> Result<Self, CommandError> {
        let key_count = numkeys_arg(args, index)?;
        let at_end = index.saturating_add(1).saturating_add(key_count);
        let end = end_arg(args, at_end)?;
        let count = pop_count_option(args.from(at_end + 1))?;
        Ok(Self { args: args.from(index + 1), key_count, end, count })
    }

    /// The keys in order of preference.
    pub(super) fn keys(self) -> impl Iterator<Item = &'a [u8]> {
        self.args.iter().take(self.key_count)
    }

    /// Pops from the first key that has a list into the reply; `false` if none has.
    pub(super) fn run(self, ctx: &mut Ctx<'_>) -> Result<bool, WrongType> {
        let limits = limits(ctx);
        for key in self.keys() {
            let Some(list) = ctx.ks.list_mut(key)? else { continue };
            ctx.out.array(2);
            ctx.out.bulk(key);
            pop_many(ctx.out, list, self.end, self.count, limits);
            ctx.ks.changed_or_emptied(key, Class::List, pop_event(self.end));
            return Ok(true);
        }
        Ok(false)
    }
}

fn lmpop(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if !MultiPop::parse(args, 1)?.run(ctx)? {
        ctx.out.null_array();
    }
    Ok(())
}

// ---- moving -------------------------------------------------------------------------------------------------------

/// Moves an element from one end of `source` to one of `destination` and into the reply; `false` without a source.
pub(super) fn move_one(
    ctx: &mut Ctx<'_>,
    source: &[u8],
    destination: &[u8],
    from: End,
    to: End,
) -> Result<bool, WrongType> {
    let limits = limits(ctx);
    if ctx.ks.list(source)?.is_none() {
        return Ok(false);
    }
    // The destination's kind is looked at before anything is popped; the list is created once there is an element.
    ctx.ks.list_mut(destination)?;
    let is_rotation = source == destination;
    let take = |mut list: ListMut<'_>| {
        if is_rotation { list.rotate(from, to, limits) } else { list.pop(from, limits) }
    };
    let Some(element) = ctx.ks.list_mut(source)?.and_then(take) else {
        return Ok(false);
    };
    if !is_rotation {
        ctx.ks.list_or_new(destination)?.push(to, &element, limits);
    }
    ctx.ks.changed(destination, Class::List, push_event(to));
    if is_rotation {
        ctx.ks.notify(Class::List, pop_event(from), source);
    } else {
        ctx.ks.changed_or_emptied(source, Class::List, pop_event(from));
    }
    ctx.out.bulk(&element);
    Ok(true)
}

fn lmove(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (from, to) = (end_arg(args, 3)?, end_arg(args, 4)?);
    if !move_one(ctx, args.get(1), args.get(2), from, to)? {
        ctx.out.null();
    }
    Ok(())
}

fn rpoplpush(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if !move_one(ctx, args.get(1), args.get(2), End::Back, End::Front)? {
        ctx.out.null();
    }
    Ok(())
}

// ---- reading ------------------------------------------------------------------------------------------------------

fn llen(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let len = ctx.ks.list(args.get(1))?.map_or(0, List::len);
    ctx.out.int(len as i64);
    Ok(())
}

fn lindex(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let Some(list) = ctx.ks.list(args.get(1))? else {
        ctx.out.null();
        return Ok(());
    };
    match list.index(args.int(2)?).and_then(|index| list.get(index)) {
        Some(elem) => bulk_elem(ctx.out, elem),
        None => ctx.out.null(),
    }
    Ok(())
}

fn lrange(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (start, stop) = (args.int(2)?, args.int(3)?);
    let Some(list) = ctx.ks.list(args.get(1))? else {
        ctx.out.array(0);
        return Ok(());
    };
    let range = list.range(start, stop);
    ctx.out.array(range.len());
    list.iter_from(range.start).take(range.len()).for_each(|elem| bulk_elem(ctx.out, elem));
    Ok(())
}

/// The options of `LPOS`.
#[derive(Debug, Clone, Copy)]
struct Search {
    rank: i64,
    count: Option<usize>,
    elems_max: usize,
}

fn search_options(args: Args<'_>) -> Result<Search, CommandError> {
    let mut search = Search { rank: 1, count: None, elems_max: 0 };
    let natural = |index: usize, error| {
        parse_i64(args.get(index))
            .and_then(|number| usize::try_from(number).ok())
            .ok_or(CommandError::Text(error))
    };
    for index in (3..args.len()).step_by(2) {
        if index + 1 == args.len() {
            return Err(CommandError::Syntax);
        }
        if args.is(index, "rank") {
            search.rank = signed_count_arg(args, index + 1)?;
            if search.rank == 0 {
                return Err(CommandError::Text(
                    "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use \
                     negative to start from the end of the list",
                ));
            }
        } else if args.is(index, "count") {
            search.count = Some(natural(index + 1, "ERR COUNT can't be negative")?);
        } else if args.is(index, "maxlen") {
            search.elems_max = natural(index + 1, "ERR MAXLEN can't be negative")?;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    Ok(search)
}

fn lpos(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let search = search_options(args)?;
    let list = ctx.ks.list(args.get(1))?;
    let find =
        |list: &List| list.positions(args.get(2), search.rank, search.count.unwrap_or(1), search.elems_max);
    let found = list.map(find).unwrap_or_default();
    match (search.count, found.first()) {
        (Some(_), _) => {
            ctx.out.array(found.len());
            found.iter().for_each(|&index| ctx.out.int(index as i64));
        }
        (None, Some(&index)) => ctx.out.int(index as i64),
        (None, None) => ctx.out.null(),
    }
    Ok(())
}

// ---- changing -----------------------------------------------------------------------------------------------------

fn lset(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (key, limits) = (args.get(1), limits(ctx));
    let mut list = ctx.ks.list_mut(key)?.ok_or(CommandError::NoSuchKey)?;
    // An index that is out of range adapts the encoding all the same, as in Redis.
    let index = list.index(args.int(2)?).unwrap_or(usize::MAX);
    if !list.set(index, args.get(3), limits) {
        return Err(CommandError::Text("ERR index out of range"));
    }
    ctx.ks.changed(key, Class::List, "lset");
    ctx.out.ok();
    Ok(())
}

fn ltrim(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (start, stop, limits) = (args.int(2)?, args.int(3)?, limits(ctx));
    let key = args.get(1);
    if let Some(mut list) = ctx.ks.list_mut(key)? {
        list.keep(list.range(start, stop), limits);
        ctx.ks.changed_or_emptied(key, Class::List, "ltrim");
    }
    ctx.out.ok();
    Ok(())
}

fn linsert(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let side = if args.is(2, "before") {
        Side::Before
    } else if args.is(2, "after") {
        Side::After
    } else {
        return Err(CommandError::Syntax);
    };
    let (key, limits) = (args.get(1), limits(ctx));
    let Some(mut list) = ctx.ks.list_mut(key)? else {
        ctx.out.int(0);
        return Ok(());
    };
    if list.insert_beside(side, args.get(3), args.get(4), limits) {
        ctx.out.int(list.len() as i64);
        ctx.ks.changed(key, Class::List, "linsert");
    } else {
        ctx.out.int(-1);
    }
    Ok(())
}

fn lrem(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (key, count, limits) = (args.get(1), args.int(2)?, limits(ctx));
    let end = if count < 0 { End::Back } else { End::Front };
    let max = match count {
        0 => usize::MAX,
        count => usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX),
    };
    let removed = match ctx.ks.list_mut(key)? {
        Some(mut list) => list.remove_equal(end, max, args.get(3), limits),
        None => 0,
    };
    if removed > 0 {
        ctx.ks.changed_or_emptied(key, Class::List, "lrem");
    }
    ctx.out.int(removed as i64);
    Ok(())
}

pub(super) const ROWS: &[Row] = &[
    keys("lindex", lindex),
    keys("linsert", linsert),
    keys("llen", llen),
    keys("lmove", lmove),
    keys("lmpop", lmpop),
    keys("lpop", lpop),
    keys("lpos", lpos),
    keys("lpush", lpush),
    keys("lpushx", lpushx),
    keys("lrange", lrange),
    keys("lrem", lrem),
    keys("lset", lset),
    keys("ltrim", ltrim),
    keys("rpop", rpop),
    keys("rpoplpush", rpoplpush),
    keys("rpush", rpush),
    keys("rpushx", rpushx),
];

#[cfg(test)]
mod tests;

//! Sets: members, moves, random choice, scanning.
//!
//! Owns: the commands that work on one set or move a member between two. Does **not** own set algebra
//! ([`super::set_algebra`]).

use super::collections::{
    ScanOptions, bulk_elem, count_arg, cursor_arg, draw_bounded, empty_scan, fork_rng, signed_count_arg,
};
use crate::command::{Args, CommandError, CommandResult, Ctx, Row, keys};
use towline_resp::writer::Writer;
use towline_store::notify::Class;
use towline_store::set::Set;

fn sadd(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (key, limits) = (args.get(1), &ctx.ks.settings().limits);
    let added = ctx.ks.set_or_new(key)?.add_all(args.from(2).iter(), limits);
    if added > 0 {
        ctx.ks.changed(key, Class::Set, "sadd");
    }
    ctx.out.int(added as i64);
    Ok(())
}

fn srem(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = args.get(1);
    let removed = match ctx.ks.set_mut(key)? {
        Some(mut set) => args.from(2).iter().filter(|member| set.remove(member)).count(),
        None => 0,
    };
    if removed > 0 {
        ctx.ks.changed_or_emptied(key, Class::Set, "srem");
    }
    ctx.out.int(removed as i64);
    Ok(())
}

fn smove(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (source, destination, member) = (args.get(1), args.get(2), args.get(3));
    let limits = &ctx.ks.settings().limits;
    if ctx.ks.set_mut(source)?.is_none() {
        ctx.out.int(0);
        return Ok(());
    }
    ctx.ks.set_mut(destination)?;
    let Some(mut set) = ctx.ks.set_mut(source)? else { return Ok(()) };
    if source == destination || !set.contains(member) {
        let is_there = set.contains(member);
        ctx.out.int(i64::from(is_there));
        return Ok(());
    }
    set.remove(member);
    ctx.ks.changed_or_emptied(source, Class::Set, "srem");
    if ctx.ks.set_or_new(destination)?.add_all(std::iter::once(member), limits) > 0 {
        ctx.ks.changed(destination, Class::Set, "sadd");
    }
    ctx.out.int(1);
    Ok(())
}

// ---- reading ------------------------------------------------------------------------------------------------------

fn smembers(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let Some(set) = ctx.ks.set(args.get(1))? else {
        ctx.out.set(0);
        return Ok(());
    };
    ctx.out.set(set.len());
    set.iter().for_each(|member| bulk_elem(ctx.out, member));
    Ok(())
}

fn sismember(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let is_there = ctx.ks.set(args.get(1))?.is_some_and(|set| set.contains(args.get(2)));
    ctx.out.int(i64::from(is_there));
    Ok(())
}

fn smismember(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let set = ctx.ks.set(args.get(1))?;
    let members = args.from(2);
    ctx.out.array(members.len());
    for member in members.iter() {
        ctx.out.int(i64::from(set.is_some_and(|set| set.contains(member))));
    }
    Ok(())
}

fn scard(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let len = ctx.ks.set(args.get(1))?.map_or(0, Set::len);
    ctx.out.int(len as i64);
    Ok(())
}

// ---- random choice and scanning -----------------------------------------------------------------------------------

fn spop(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = args.get(1);
    let count = match args.len() {
        2 => None,
        3 => Some(count_arg(args, 2)?),
        _ => return Err(CommandError::Syntax),
    };
    let mut rng = fork_rng(ctx);
    match (ctx.ks.set_mut(key)?, count) {
        (None, None) => ctx.out.null(),
        (None, Some(_)) | (Some(_), Some(0)) => ctx.out.set(0),
        (Some(mut set), None) => {
            let member = set.pop_random(&mut rng);
            ctx.out.bulk(&member.unwrap_or_default());
            ctx.ks.changed_or_emptied(key, Class::Set, "spop");
        }
        (Some(set), Some(count)) if count >= set.len() => {
            ctx.out.set(set.len());
            set.iter().for_each(|member| bulk_elem(ctx.out, member));
            // A large set is freed off the path when it is deleted as a whole.
            ctx.ks.delete(key);
            ctx.ks.changed(key, Class::Set, "spop");
            ctx.ks.notify(Class::Generic, "del", key);
        }
        (Some(mut set), Some(count)) => {
            let members = set.pop_sample(count, &mut rng);
            ctx.out.set(members.len());
            members.iter().for_each(|member| ctx.out.bulk(member));
            ctx.ks.changed_or_emptied(key, Class::Set, "spop");
        }
    }
    Ok(())
}

fn srandmember(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = args.get(1);
    let count = match args.len() {
        2 => None,
        3 => Some(signed_count_arg(args, 2)?),
        _ => return Err(CommandError::Syntax),
    };
    let mut rng = fork_rng(ctx);
    let (set, count) = match (ctx.ks.set(key)?, count) {
        (set, None) => {
            match set.and_then(|set| set.random(&mut rng)) {
                Some(member) => bulk_elem(ctx.out, member),
                None => ctx.out.null(),
            }
            return Ok(());
        }
        (None, Some(_)) => {
            ctx.out.array(0);
            return Ok(());
        }
        (Some(set), Some(count)) => (set, count),
    };
    if count < 0 {
        let count = count.unsigned_abs();
        ctx.out.array(count as usize);
        return draw_bounded(ctx.out, count, |out, count| {
            set.draw(count, &mut rng, &mut |member| bulk_elem(out, member));
        });
    }
    let drawn = set.sample(count as usize, &mut rng);
    ctx.out.array(drawn.len());
    drawn.into_iter().for_each(|member| bulk_elem(ctx.out, member));
    Ok(())
}

fn sscan(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let cursor = cursor_arg(args, 2)?;
    let Some(set) = ctx.ks.set(args.get(1))? else {
        empty_scan(ctx.out);
        return Ok(());
    };
    let options = ScanOptions::parse(args, None)?;
    let mut members = Writer::new(ctx.out.proto);
    let mut count = 0;
    let next = set.scan(cursor, options.count, &mut |member| {
        if options.accepts(member) {
            bulk_elem(&mut members, member);
            count += 1;
        }
    });
    ctx.out.array(2);
    ctx.out.bulk_display(next);
    ctx.out.array(count);
    members.segments().for_each(|segment| ctx.out.raw(segment));
    Ok(())
}

pub(super) const ROWS: &[Row] = &[
    keys("sadd", sadd),
    keys("scard", scard),
    keys("sismember", sismember),
    keys("smembers", smembers),
    keys("smismember", smismember),
    keys("smove", smove),
    keys("spop", spop),
    keys("srandmember", srandmember),
    keys("srem", srem),
    keys("sscan", sscan),
];

#[cfg(test)]
mod tests;

//! Hashes: fields and their values.
//!
//! Owns: setting, reading, counting, incrementing, random choice, scanning. Does **not** own the expiry of fields
//! ([`super::hash_ttl`]).

use super::collections::{
    ScanOptions, bulk_elem, cursor_arg, draw_bounded, empty_scan, fork_rng, signed_count_arg,
};
use crate::command::{Args, CommandError, CommandResult, Ctx, Row, keys};
use towline_resp::long_double::LongDouble;
use towline_resp::writer::Writer;
use towline_store::hash::{Field, Hash, OldExpiry};
use towline_store::notify::Class;
use towline_store::number::IntText;
use towline_store::packed::{Elem, ElemBuf};

/// Writes a value, or null for a field that is not there.
pub(super) fn bulk_or_null(out: &mut Writer, value: Option<Elem<'_>>) {
    match value {
        Some(value) => bulk_elem(out, value),
        None => out.null(),
    }
}

// ---- setting ------------------------------------------------------------------------------------------------------

/// Sets the pairs that begin at argument 2; answers how many fields are new.
fn set_pairs(ctx: &mut Ctx<'_>, args: Args<'_>, name: &'static str) -> Result<usize, CommandError> {
    if !args.len().is_multiple_of(2) {
        return Err(CommandError::Arity(name));
    }
    let (key, limits) = (args.get(1), &ctx.ks.settings().limits);
    let pairs = (1..args.len() / 2).map(|pair| (args.get(2 * pair), args.get(2 * pair + 1)));
    let added = ctx.ks.hash_or_new(key)?.set_all(pairs, limits);
    ctx.ks.changed(key, Class::Hash, "hset");
    Ok(added)
}

fn hset(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let added = set_pairs(ctx, args, "hset")?;
    ctx.out.int(added as i64);
    Ok(())
}

fn hmset(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    set_pairs(ctx, args, "hmset")?;
    ctx.out.ok();
    Ok(())
}

fn hsetnx(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (key, name) = (args.get(1), args.get(2));
    let limits = &ctx.ks.settings().limits;
    let mut hash = ctx.ks.hash_or_new(key)?;
    if hash.contains(name) {
        ctx.out.int(0);
    } else {
        hash.set(name, args.get(3), OldExpiry::Clear, limits);
        ctx.ks.changed(key, Class::Hash, "hset");
        ctx.out.int(1);
    }
    Ok(())
}

fn hincrby(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (key, name, increment) = (args.get(1), args.get(2), args.int(3)?);
    let limits = &ctx.ks.settings().limits;
    let current = match ctx.ks.hash_mut(key)?.and_then(|hash| hash.into_ref().get(name)) {
        Some(value) => value.as_int().ok_or(CommandError::Text("ERR hash value is not an integer"))?,
        None => 0,
    };
    let sum = current
        .checked_add(increment)
        .ok_or(CommandError::Text("ERR increment or decrement would overflow"))?;
    ctx.ks.hash_or_new(key)?.set(name, IntText::new().render(sum), OldExpiry::Keep, limits);
    ctx.ks.changed(key, Class::Hash, "hincrby");
    ctx.out.int(sum);
    Ok(())
}

fn hincrbyfloat(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (key, name) = (args.get(1), args.get(2));
    let increment = LongDouble::parse(args.get(3)).ok_or(CommandError::NotFloat)?;
    if !increment.is_finite() {
        return Err(CommandError::Text("ERR value is NaN or Infinity"));
    }
    let limits = &ctx.ks.settings().limits;
    let sum = match ctx.ks.hash_mut(key)?.and_then(|hash| hash.into_ref().get(name)) {
        Some(value) => {
            let current = LongDouble::parse(value.render(&mut ElemBuf::new()));
            current.ok_or(CommandError::Text("ERR hash value is not a float"))? + increment
        }
        None => increment,
    };
    if !sum.is_finite() {
        return Err(CommandError::Text("ERR increment would produce NaN or Infinity"));
    }
    let text = sum.to_string();
    ctx.ks.hash_or_new(key)?.set(name, text.as_bytes(), OldExpiry::Keep, limits);
    ctx.ks.changed(key, Class::Hash, "hincrbyfloat");
    ctx.out.bulk(text.as_bytes());
    Ok(())
}

fn hdel(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = args.get(1);
    let removed = match ctx.ks.hash_mut(key)? {
        Some(mut hash) => args.from(2).iter().filter(|name| hash.remove(name)).count(),
        None => 0,
    };
    if removed > 0 {
        ctx.ks.changed_or_emptied(key, Class::Hash, "hdel");
    }
    ctx.out.int(removed as i64);
    Ok(())
}

// ---- reading ------------------------------------------------------------------------------------------------------

fn hget(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let hash = ctx.ks.hash(args.get(1))?;
    bulk_or_null(ctx.out, hash.and_then(|hash| hash.get(args.get(2))));
    Ok(())
}

fn hmget(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let hash = ctx.ks.hash(args.get(1))?;
    let names = args.from(2);
    ctx.out.array(names.len());
    for name in names.iter() {
        bulk_or_null(ctx.out, hash.and_then(|hash| hash.get(name)));
    }
    Ok(())
}

fn hgetall(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let Some(hash) = ctx.ks.hash(args.get(1))? else {
        ctx.out.map(0);
        return Ok(());
    };
    ctx.out.map(hash.len());
    for field in hash.iter() {
        bulk_elem(ctx.out, field.name);
        bulk_elem(ctx.out, field.value);
    }
    Ok(())
}

/// Writes one part of every field.
fn reply_parts(ctx: &mut Ctx<'_>, key: &[u8], part: for<'f> fn(Field<'f>) -> Elem<'f>) -> CommandResult {
    let Some(hash) = ctx.ks.hash(key)? else {
        ctx.out.array(0);
        return Ok(());
    };
    ctx.out.array(hash.len());
    hash.iter().for_each(|field| bulk_elem(ctx.out, part(field)));
    Ok(())
}

fn hkeys(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    reply_parts(ctx, args.get(1), |field| field.name)
}

fn hvals(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    reply_parts(ctx, args.get(1), |field| field.value)
}

fn hlen(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let len = ctx.ks.hash(args.get(1))?.map_or(0, Hash::len);
    ctx.out.int(len as i64);
    Ok(())
}

fn hexists(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let is_there = ctx.ks.hash(args.get(1))?.is_some_and(|hash| hash.contains(args.get(2)));
    ctx.out.int(i64::from(is_there));
    Ok(())
}

fn hstrlen(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let value = ctx.ks.hash(args.get(1))?.and_then(|hash| hash.get(args.get(2)));
    ctx.out.int(value.map_or(0, Elem::len) as i64);
    Ok(())
}

// ---- random choice and scanning -----------------------------------------------------------------------------------

/// Writes a field of `HRANDFIELD`: its name, and its value when it was asked for, in RESP3 as a pair.
fn reply_drawn(out: &mut Writer, field: Field<'_>, with_values: bool) {
    if with_values && out.is_resp3() {
        out.array(2);
    }
    bulk_elem(out, field.name);
    if with_values {
        bulk_elem(out, field.value);
    }
}

fn hrandfield(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = args.get(1);
    if args.len() == 2 {
        let mut rng = fork_rng(ctx);
        let field = ctx.ks.hash(key)?.and_then(|hash| hash.random(&mut rng));
        bulk_or_null(ctx.out, field.map(|field| field.name));
        return Ok(());
    }
    let count = signed_count_arg(args, 2)?;
    let with_values = args.is(3, "withvalues");
    if args.len() > 4 || (args.len() == 4 && !with_values) {
        return Err(CommandError::Syntax);
    }
    if with_values && count.unsigned_abs() > i64::MAX as u64 / 2 {
        return Err(CommandError::Text("ERR value is out of range"));
    }
    let mut rng = fork_rng(ctx);
    let Some(hash) = ctx.ks.hash(key)? else {
        ctx.out.array(0);
        return Ok(());
    };
    let per_field = if with_values && !ctx.out.is_resp3() { 2 } else { 1 };
    if count < 0 {
        let count = count.unsigned_abs();
        ctx.out.array((count as usize).saturating_mul(per_field));
        return draw_bounded(ctx.out, count, |out, count| {
            hash.draw(count, &mut rng, &mut |field| reply_drawn(out, field, with_values));
        });
    }
    let drawn = hash.sample(count as usize, &mut rng);
    ctx.out.array(drawn.len() * per_field);
    drawn.into_iter().for_each(|field| reply_drawn(ctx.out, field, with_values));
    Ok(())
}

fn hscan(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let cursor = cursor_arg(args, 2)?;
    let Some(hash) = ctx.ks.hash(args.get(1))? else {
        empty_scan(ctx.out);
        return Ok(());
    };
    let options = ScanOptions::parse(args, Some("novalues"))?;
    let mut elements = Writer::new(ctx.out.proto);
    let mut count = 0;
    let next = hash.scan(cursor, options.count, &mut |field| {
        if options.accepts(field.name) {
            bulk_elem(&mut elements, field.name);
            count += 1;
            if !options.is_names_only {
                bulk_elem(&mut elements, field.value);
                count += 1;
            }
        }
    });
    ctx.out.array(2);
    ctx.out.bulk_display(next);
    ctx.out.array(count);
    elements.segments().for_each(|segment| ctx.out.raw(segment));
    Ok(())
}

pub(super) const ROWS: &[Row] = &[
    keys("hdel", hdel),
    keys("hexists", hexists),
    keys("hget", hget),
    keys("hgetall", hgetall),
    keys("hincrby", hincrby),
    keys("hincrbyfloat", hincrbyfloat),
    keys("hkeys", hkeys),
    keys("hlen", hlen),
    keys("hmget", hmget),
    keys("hmset", hmset),
    keys("hrandfield", hrandfield),
    keys("hscan", hscan),
    keys("hset", hset),
    keys("hsetnx", hsetnx),
    keys("hstrlen", hstrlen),
    keys("hvals", hvals),
];

#[cfg(test)]
mod tests;

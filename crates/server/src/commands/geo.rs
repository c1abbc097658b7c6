//! Geo commands: positions kept as scores of a sorted set.
//!
//! Owns: adding, reading and measuring positions. Does **not** own searching ([`super::geo_search`]) nor the geometry,
//! which is the store's.

use super::zsets::{AddOptions, add_all};
use crate::command::{Args, CommandError, CommandResult, Ctx, Row, keys};
use smallvec::SmallVec;
use towline_resp::writer::Writer;
use towline_store::geo::{Position, Unit, distance_text, geohash};

/// Positions of one `GEOADD` that are kept without a heap allocation.
const POSITIONS_INLINE: usize = 8;
/// Decimals of a coordinate in a reply, as Redis prints them.
const COORDINATE_DECIMALS: usize = 17;

/// Arguments `index` and the next one as longitude and latitude.
pub(super) fn position_arg(args: Args<'_>, index: usize) -> Result<Position, CommandError> {
    let (longitude, latitude) = (args.float(index)?, args.float(index + 1)?);
    Position::new(longitude, latitude).ok_or_else(|| {
        CommandError::message(format!("ERR invalid longitude,latitude pair {longitude:.6},{latitude:.6}"))
    })
}

/// Argument `index` as a unit of distance.
pub(super) fn unit_arg(args: Args<'_>, index: usize) -> Result<Unit, CommandError> {
    Unit::parse(args.get(index))
        .ok_or(CommandError::Text("ERR unsupported unit provided. please use M, KM, FT, MI"))
}

/// A position as an array of longitude and latitude.
pub(super) fn reply_position(out: &mut Writer, position: Position) {
    out.array(2);
    for coordinate in [position.longitude(), position.latitude()] {
        let mut text = format!("{coordinate:.COORDINATE_DECIMALS$}");
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
        if out.is_resp3() {
            out.raw(b",");
            out.raw(text.as_bytes());
            out.raw(b"\r\n");
        } else {
            out.bulk(text.as_bytes());
        }
    }
}

/// `GEOADD key [NX | XX] [CH] longitude latitude member [...]`
fn geoadd(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut options, mut first) = (AddOptions::default(), 2);
    loop {
        match () {
            () if args.is(first, "nx") => options.is_new_only = true,
            () if args.is(first, "xx") => options.is_known_only = true,
            () if args.is(first, "ch") => options.counts_changed = true,
            () => break,
        }
        first += 1;
    }
    let triples = args.from(first);
    let is_complete = triples.len() > 0 && triples.len().is_multiple_of(3);
    if !is_complete || (options.is_new_only && options.is_known_only) {
        return Err(CommandError::Syntax);
    }
    let scores = (0..triples.len())
        .step_by(3)
        .map(|index| position_arg(triples, index).map(Position::score))
        .collect::<Result<SmallVec<[f64; POSITIONS_INLINE]>, _>>()?;
    let members = triples.iter().skip(2).step_by(3);
    add_all(ctx, args.get(1), &options, scores.into_iter().zip(members))
}

/// `GEODIST key member member [unit]`
fn geodist(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let unit = match args.len() {
        4 => Unit::Metre,
        5 => unit_arg(args, 4)?,
        _ => return Err(CommandError::Syntax),
    };
    let distance_m = ctx.ks.zset(args.get(1))?.and_then(|zset| {
        let [from, to] = [2, 3].map(|index| zset.score(args.get(index)).map(Position::of_score));
        Some(from?.distance_m(to?))
    });
    match distance_m {
        Some(distance_m) => ctx.out.bulk(distance_text(distance_m / unit.metres()).as_bytes()),
        None => ctx.out.null(),
    }
    Ok(())
}

fn geohash_command(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (zset, members) = (ctx.ks.zset(args.get(1))?, args.from(2));
    ctx.out.array(members.len());
    for member in members.iter() {
        match zset.and_then(|zset| zset.score(member)) {
            Some(score) => ctx.out.bulk(&geohash(score)),
            None => ctx.out.null(),
        }
    }
    Ok(())
}

fn geopos(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (zset, members) = (ctx.ks.zset(args.get(1))?, args.from(2));
    ctx.out.array(members.len());
    for member in members.iter() {
        match zset.and_then(|zset| zset.score(member)) {
            Some(score) => reply_position(ctx.out, Position::of_score(score)),
            None => ctx.out.null_array(),
        }
    }
    Ok(())
}

pub(super) const ROWS: &[Row] = &[
    keys("geoadd", geoadd),
    keys("geodist", geodist),
    keys("geohash", geohash_command),
    keys("geopos", geopos),
];

#[cfg(test)]
mod tests;

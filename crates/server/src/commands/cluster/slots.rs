//! Commands on the keys of a slot: `CLUSTER COUNTKEYSINSLOT`, `GETKEYSINSLOT`, `FLUSHSLOT`, `SLOT-STATS`.
//!
//! Owns: their arguments and replies. Does **not** own a slot's keys.

use super::{cluster, slot};
use crate::command::{Args, CommandError, CommandResult, Ctx};
use towline_cluster::{SLOT_COUNT, Slot};
use towline_store::number::parse_i64;

/// `CLUSTER COUNTKEYSINSLOT slot`: expired keys that nobody met yet included, whoever owns the slot.
pub(super) fn count_keys(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let slot = slot(args.get(2), "ERR Invalid slot")?;
    ctx.ks.hold_only(slot);
    let count = ctx.ks.slot_len(slot);
    ctx.out.int(count as i64);
    Ok(())
}

/// `CLUSTER GETKEYSINSLOT slot count`
pub(super) fn keys(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    const BAD: &str = "ERR Invalid slot or number of keys";
    let slot = slot(args.get(2), BAD)?;
    let count = parse_i64(args.get(3)).ok_or(CommandError::NotInteger)?;
    let count = usize::try_from(count).map_err(|_| CommandError::Text(BAD))?;
    ctx.ks.hold_only(slot);
    let keys = ctx.ks.keys_in_slot(slot, count);
    ctx.out.array(keys.len());
    keys.iter().for_each(|key| ctx.out.bulk(key));
    Ok(())
}

/// `CLUSTER FLUSHSLOT slot [ASYNC | SYNC]`: in constant time; what it held is freed off the path either way.
pub(super) fn flush(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let slot = slot(args.get(2), "ERR Invalid or out of range slot")?;
    if args.len() > 4 || (args.len() == 4 && !args.is(3, "async") && !args.is(3, "sync")) {
        return Err(CommandError::Syntax);
    }
    ctx.ks.hold_only(slot);
    ctx.ks.flush_slot(slot);
    ctx.out.ok();
    Ok(())
}

/// The only figure that is kept of a slot.
const KEY_COUNT: &str = "key-count";

/// `CLUSTER SLOT-STATS <SLOTSRANGE start-slot end-slot | ORDERBY metric [LIMIT limit] [ASC | DESC]>`, of the slots that this node owns.
pub(super) fn stats(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if args.is(2, "slotsrange") && args.len() == 5 {
        const BAD: &str = "ERR Invalid or out of range slot";
        let (first, last) = (slot(args.get(3), BAD)?, slot(args.get(4), BAD)?);
        if first > last {
            return Err(CommandError::message(format!(
                "ERR Start slot number {first} is greater than end slot number {last}"
            )));
        }
        let stats = key_counts(ctx, first, last)?;
        write_stats(ctx, &stats);
        return Ok(());
    }
    if !args.is(2, "orderby") || args.len() < 4 {
        return Err(CommandError::Syntax);
    }
    if !args.is(3, KEY_COUNT) {
        return Err(CommandError::Text("ERR Unrecognized sort metric for ORDERBY."));
    }
    let (limit, is_ascending) = order(args.from(4))?;
    let mut stats = key_counts(ctx, 0, (SLOT_COUNT - 1) as Slot)?;
    stats.sort_by(|(slot_a, count_a), (slot_b, count_b)| {
        let by_count = if is_ascending { count_a.cmp(count_b) } else { count_b.cmp(count_a) };
        by_count.then(slot_a.cmp(slot_b))
    });
    stats.truncate(limit);
    write_stats(ctx, &stats);
    Ok(())
}

/// `[LIMIT limit] [ASC | DESC]`, each at most once.
fn order(args: Args<'_>) -> Result<(usize, bool), CommandError> {
    let (mut limit, mut is_ascending, mut at) = (None, None, 0);
    while at < args.len() {
        if args.is(at, "limit") && at + 1 < args.len() && limit.is_none() {
            let given = args.int(at + 1)?;
            let given = usize::try_from(given).ok().filter(|given| (1..=SLOT_COUNT).contains(given));
            limit = Some(given.ok_or(CommandError::Text(
                "ERR Limit has to lie in between 1 and 16384 (maximum number of slots).",
            ))?);
            at += 2;
        } else if (args.is(at, "asc") || args.is(at, "desc")) && is_ascending.is_none() {
            is_ascending = Some(args.is(at, "asc"));
            at += 1;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    Ok((limit.unwrap_or(SLOT_COUNT), is_ascending.unwrap_or(false)))
}

fn key_counts(ctx: &mut Ctx<'_>, first: Slot, last: Slot) -> Result<Vec<(Slot, usize)>, CommandError> {
    let known = std::sync::Arc::clone(&cluster(ctx)?.known());
    let mut counts = Vec::new();
    for slot in first..=last {
        if known.metadata.owner(slot) == Some(known.me) {
            ctx.ks.hold_only(slot);
            counts.push((slot, ctx.ks.slot_len(slot)));
        }
    }
    Ok(counts)
}

fn write_stats(ctx: &mut Ctx<'_>, stats: &[(Slot, usize)]) {
    ctx.out.array(stats.len());
    for &(slot, count) in stats {
        ctx.out.array(2);
        ctx.out.int(i64::from(slot));
        ctx.out.map(1);
        ctx.out.bulk(KEY_COUNT.as_bytes());
        ctx.out.int(count as i64);
    }
}

//! Slots that servers move by themselves: `CLUSTER MIGRATESLOTS`, `GETSLOTMIGRATIONS`, `CANCELSLOTMIGRATIONS`, as in Valkey 9.
//!
//! Owns: their arguments and replies. Does **not** own moving anything.

use super::{cluster, slot, views};
use crate::cluster::errands::Errand;
use crate::cluster::node;
use crate::command::{Args, CommandError, CommandResult, Ctx};
use std::sync::Arc;
use towline_cluster::Slot;
use towline_cluster_proto::views::Progress;
use towline_cluster_proto::{Change, Metadata, MigrationEnd, NodeId, Outcome, Ranges};

/// `CLUSTER MIGRATESLOTS SLOTSRANGE start-slot end-slot [...] NODE node-id [SLOTSRANGE ... NODE node-id ...]`
pub(super) fn migrate(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let known = Arc::clone(&cluster(ctx)?.known());
    if known.my_primary().is_some() {
        return Err(CommandError::Text("ERR Slot migration can only be used on primary nodes."));
    }
    let parts = read(args)?;
    let changes = begin(&parts, known.me, ctx.ks.now_ms())?;
    check(&known.metadata, &changes)?;
    for change in &changes {
        if let Change::BeginMigration { id, .. } = change {
            cluster(ctx)?.migrations.note_begun(*id);
        }
    }
    ctx.wait_for(Errand::All(changes));
    Ok(())
}

/// What is to go where.
fn read(args: Args<'_>) -> Result<Vec<(Ranges, NodeId)>, CommandError> {
    const BAD_SLOT: &str = "ERR Invalid or out of range slot";
    let mut parts: Vec<(Ranges, NodeId)> = Vec::new();
    let mut at = 2;
    while at < args.len() {
        if !args.is(at, "slotsrange") {
            return Err(CommandError::Syntax);
        }
        at += 1;
        let mut ranges = Ranges::new();
        while at < args.len() && !args.is(at, "node") {
            let end = args.at(at + 1).ok_or(CommandError::Syntax)?;
            let (first, last) = (slot(args.get(at), BAD_SLOT)?, slot(end, BAD_SLOT)?);
            check_range(first, last, parts.iter().flat_map(|(ranges, _)| ranges).chain(&ranges))?;
            ranges.push((first, last));
            at += 2;
        }
        let name = args.at(at + 1).filter(|_| !ranges.is_empty()).ok_or(CommandError::Syntax)?;
        let node =
            NodeId::parse(name).map_err(|_| CommandError::quoting("ERR Unknown node name: ", name, ""))?;
        ranges.sort_unstable();
        parts.push((ranges, node));
        at += 2;
    }
    Ok(parts)
}

fn check_range<'a>(
    first: Slot,
    last: Slot,
    mut before: impl Iterator<Item = &'a (Slot, Slot)>,
) -> CommandResult {
    if first > last {
        return Err(CommandError::message(format!(
            "ERR Start slot number {first} is greater than end slot number {last}."
        )));
    }
    match before.find(|(other_first, other_last)| first <= *other_last && *other_first <= last) {
        None => Ok(()),
        Some((other_first, other_last)) => Err(CommandError::message(format!(
            "ERR Slot range {first}-{last} overlaps with previous range {other_first}-{other_last}."
        ))),
    }
}

/// A migration for each part, under a name of its own.
fn begin(parts: &[(Ranges, NodeId)], source: NodeId, now_ms: u64) -> Result<Vec<Change>, CommandError> {
    let begin = |(slots, target): &(Ranges, NodeId)| {
        let id = node::random_id().map_err(|_| super::NO_RANDOMNESS)?;
        Ok(Change::BeginMigration { id, source, target: *target, slots: slots.clone(), now_ms })
    };
    parts.iter().map(begin).collect()
}

/// Whether all of them would be made: one that is not keeps the others from being proposed.
fn check(metadata: &Metadata, changes: &[Change]) -> CommandResult {
    let mut metadata = metadata.clone();
    for change in changes {
        if let Outcome::Refused(refused) = metadata.apply(change) {
            return Err(CommandError::message(refused.to_string()));
        }
    }
    Ok(())
}

/// `CLUSTER CANCELSLOTMIGRATIONS`: those that take slots away from this node.
pub(super) fn cancel(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    let known = Arc::clone(&cluster(ctx)?.known());
    let now_ms = ctx.ks.now_ms();
    let mine =
        known.metadata.migrations().iter().filter(|(_, one)| one.is_active() && one.source == known.me);
    let ends: Vec<Change> = mine
        .map(|(&id, _)| Change::EndMigration {
            id,
            end: MigrationEnd::Cancelled,
            message: "Cancelled".into(),
            now_ms,
        })
        .collect();
    if ends.is_empty() {
        return Err(CommandError::Text("ERR No migrations ongoing"));
    }
    ctx.wait_for(Errand::All(ends));
    Ok(())
}

/// `CLUSTER GETSLOTMIGRATIONS`
pub(super) fn list(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    let kept = ctx.server.config().cluster.slot_migration_log_max_len;
    let live = cluster(ctx)?.migrations.all();
    let progress = |id| {
        live.get(&id).map(|live| Progress {
            state: live.state,
            heard_ms: live.heard_ms,
            message: &live.message,
            remaining_bytes: live.bytes_remaining,
        })
    };
    views::view(ctx, |viewer, _, out| viewer.write_migrations(kept, progress, out))
}

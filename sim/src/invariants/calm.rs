//! **A planned move is no event for callers.** With a server that announces its moves and keeps to them, and with nothing
//! else going wrong, no command fails, none has an unknown fate, and each is executed exactly once, under every policy and
//! with nothing to spend on repetitions. Exempt are commands whose own time was shorter than a window (they may have had
//! to wait for a successor), those that were submitted before there ever was a connection, and those given up by their
//! callers. A server that closes before it said so takes what was sent with it, and nothing else.
//!
//! **The pause is one round trip.** An old connection goes on answering for no longer than what was sent on it needs. And
//! an announcement is followed once, however often it is read.
//!
//! **In order.** Under [`HandoffOrder::Strict`] the server executed the commands in the order of submission, across both
//! connections; under [`HandoffOrder::PerKey`] it did so for each key.

use std::time::Duration;

use towline_client_proto::handoff::HandoffOrder;
use towline_client_proto::{ErrorKind, FlushOrder, Sent};
use towline_faults::model::Entry;

use super::{Violation, promise};
use crate::command::{Ending, Record};
use crate::plan::script::Scenario;
use crate::world::World;

/// A name that lags behind may lead to the old node again, which then has to be left a second time.
const FOLLOWED_MAX: u64 = 2;

/// What rounding may add to a round trip.
const DRAIN_SLACK: Duration = Duration::from_micros(100);

/// A command that may wait for so long does not fail of a move.
fn patience(world: &World) -> Duration {
    world.plan.script.takes() + Duration::from_secs(2)
}

pub(crate) fn check(world: &World) -> Result<(), Violation> {
    if world.plan.scenario != Scenario::CalmMoves {
        return Ok(());
    }
    let (patience, is_rude) = (patience(world), world.plan.script.is_rude());
    for (id, record) in &world.records {
        let is_hasty = record.deadline.since(record.submitted_at) < patience;
        let is_exempt = match &record.ending {
            Some(Ending::Acknowledged(_)) => false,
            Some(Ending::Rejected(ErrorKind::Unavailable)) => !record.was_ever_up,
            Some(Ending::Rejected(ErrorKind::Deadline) | Ending::Failed(ErrorKind::Deadline, _)) => is_hasty,
            Some(Ending::Failed(ErrorKind::Lost(_), Sent::Maybe)) => is_rude,
            Some(Ending::Abandoned) => true,
            // Nobody waits for it: it has no ending.
            None => is_hasty || is_rude,
            Some(_) => false,
        };
        let is_well = matches!(record.ending, Some(Ending::Acknowledged(_)) | None);
        promise!(is_well || is_exempt, "calm", "{id} ended with {:?} in a planned move", record.ending);
        let count = world.executions(*id);
        promise!(
            count == 1 || is_exempt && count == 0 || is_rude && record.command.is_repeatable(),
            "calm",
            "{id} ended with {:?} and was executed {count} times",
            record.ending
        );
    }
    let counters = world.bridge.counters();
    let (moves, announced) = (counters.handoffs + counters.recycled, world.moves.windows.len() as u64);
    promise!(moves <= announced * FOLLOWED_MAX, "calm", "{moves} moves followed {announced} announcements");
    let round_trip = world.plan.latency * 2 + world.plan.model.latency + DRAIN_SLACK;
    let longest = world.events.longest_drain;
    promise!(
        longest <= round_trip,
        "calm",
        "an old connection took {longest:?} to answer, {round_trip:?} is enough"
    );
    in_order(world)
}

fn in_order(world: &World) -> Result<(), Violation> {
    if world.plan.config.flush_order != FlushOrder::InOrder {
        return Ok(());
    }
    let ledger = world.model.ledger();
    match world.plan.config.handoff_order {
        HandoffOrder::Strict => ascending(world, "all", ledger.entries().iter()),
        HandoffOrder::PerKey => {
            for key in ledger.keys() {
                ascending(world, &String::from_utf8_lossy(key), ledger.order_of(key))?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn ascending<'a>(
    world: &World,
    what: &str,
    entries: impl Iterator<Item = &'a Entry>,
) -> Result<(), Violation> {
    let mut latest: Option<&Record> = None;
    for entry in entries {
        let Some(record) = entry.id.and_then(|id| world.records.get(&id)) else { continue };
        if let Some(latest) = latest {
            promise!(
                latest.turn <= record.turn,
                "calm",
                "{} was submitted before {} and executed after it ({what})",
                record.command.id,
                latest.command.id
            );
        }
        latest = Some(record);
    }
    Ok(())
}

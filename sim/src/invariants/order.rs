//! **Order as promised.** Commands of one caller that were answered were executed in the order in which they were
//! submitted, across losses and repetitions: for two of them, the executions that the replies belong to stand in that
//! order in the ledger. Exempt are a bridge that was told to let fresh commands overtake its backlog, and a command
//! that the server refused at first without running it (`LOADING`): it waits and gives its place up, so that nobody
//! else has to wait. With planned moves, [`HandoffOrder::PerKey`] promises this for each key only, and
//! [`HandoffOrder::None`] not at all.

use std::collections::BTreeMap;

use towline_client_proto::FlushOrder;
use towline_client_proto::handoff::HandoffOrder;

use super::{Violation, promise};
use crate::command::{Ending, Record};
use crate::plan::script::Scenario;
use crate::world::World;

pub(crate) fn check(world: &World) -> Result<(), Violation> {
    if world.plan.config.flush_order != FlushOrder::InOrder {
        return Ok(());
    }
    let order = if world.plan.scenario == Scenario::Ordinary {
        HandoffOrder::Strict
    } else {
        world.plan.config.handoff_order
    };
    let mut latest: BTreeMap<(usize, Option<String>), (u64, u64)> = BTreeMap::new();
    // Ids are given in the order of submission.
    for (id, record) in &world.records {
        let Some(sequence) = answered_execution(world, *id, record) else { continue };
        let line = match order {
            HandoffOrder::Strict => None,
            HandoffOrder::PerKey => match record.command.shared_key() {
                Some(key) => Some(key),
                None => continue,
            },
            _ => continue,
        };
        if let Some((before, earlier)) = latest.insert((record.caller, line), (sequence, *id)) {
            promise!(
                before < sequence,
                "order",
                "caller {} submitted {earlier} before {id}, executed as {before} and {sequence}",
                record.caller
            );
        }
    }
    Ok(())
}

/// The place in the ledger of the execution whose reply the caller got, if the command kept its place.
fn answered_execution(world: &World, id: u64, record: &Record) -> Option<u64> {
    if !matches!(record.ending, Some(Ending::Acknowledged(_))) {
        return None;
    }
    let executions: Vec<(u64, u64)> = world.executions_of(id).collect();
    let was_refused =
        record.taken_by.iter().any(|taken| !executions.iter().any(|(connection, _)| connection == taken))
            || record.taken_by.len() != executions.len();
    if was_refused {
        return None;
    }
    let on = match (record.answered_on, executions.as_slice()) {
        (Some(on), _) => on,
        (None, [(only, _)]) => *only,
        (None, _) => return None,
    };
    executions.iter().find(|(connection, _)| *connection == on).map(|(_, sequence)| *sequence)
}

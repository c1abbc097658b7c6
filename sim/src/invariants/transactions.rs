//! **A transaction is one unit.** All its commands were executed inside one `EXEC`, or none was. A server that refuses
//! `MULTI` itself and accepts what follows is the one exception; nothing is promised then but at most once.

use super::{Violation, promise};
use crate::command::{Ending, Kind};
use crate::world::World;

pub(crate) fn check(world: &World) -> Result<(), Violation> {
    for (id, record) in &world.records {
        if record.command.kind != Kind::Transaction
            || !matches!(record.ending, Some(Ending::Acknowledged(_) | Ending::Refused(_)))
        {
            continue;
        }
        let parts: Vec<_> = world.model.ledger().executions(*id).collect();
        let is_whole = parts.len() == 2
            && parts[0].transaction.is_some()
            && parts[0].transaction == parts[1].transaction
            && parts[0].connection == parts[1].connection;
        promise!(parts.is_empty() || is_whole, "transactions", "{id} was executed in parts: {parts:?}");
    }
    Ok(())
}

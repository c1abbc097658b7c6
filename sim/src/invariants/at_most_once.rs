//! **At most once.** Whatever became of it, known or unknown, watched or not: a command that changes data was executed
//! once at most, unless its caller allowed repetitions; and no connection executed any command twice.

use std::collections::BTreeSet;

use super::{Violation, promise};
use crate::world::World;

pub(crate) fn check(world: &World) -> Result<(), Violation> {
    for (id, record) in &world.records {
        let count = world.executions(*id);
        promise!(
            count <= 1 || record.command.is_repeatable(),
            "at_most_once",
            "{id} ended with {:?} and was executed {count} times",
            record.ending
        );
        let mut seen = BTreeSet::new();
        for (connection, _) in world.executions_of(*id) {
            promise!(
                seen.insert(connection),
                "at_most_once",
                "{id} was executed twice by connection {connection}"
            );
        }
    }
    Ok(())
}

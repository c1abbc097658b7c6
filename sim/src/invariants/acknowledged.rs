//! **Acknowledged means executed.** A command that got the server's reply was executed: exactly once, or at least
//! once if its caller allowed repetitions. A command that the server refused was not executed, unless a repetition
//! was allowed: then an earlier attempt may have been.

use super::{Violation, promise};
use crate::command::Ending;
use crate::world::World;

pub(crate) fn check(world: &World) -> Result<(), Violation> {
    for (id, record) in &world.records {
        let count = world.executions(*id);
        let is_repeatable = record.command.is_repeatable();
        match &record.ending {
            Some(Ending::Acknowledged(reply)) => {
                promise!(count > 0, "acknowledged", "{id} was answered {reply:?} and never executed");
                promise!(count == 1 || is_repeatable, "acknowledged", "{id} was executed {count} times");
            }
            Some(Ending::Refused(error)) => {
                promise!(
                    count == 0 || is_repeatable,
                    "acknowledged",
                    "{id} was refused with {error} and executed {count} times"
                );
            }
            _ => {}
        }
    }
    Ok(())
}

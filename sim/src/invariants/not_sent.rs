//! **Not sent means never executed**, neither before nor afterwards: commands that failed with `Sent::No`, that were
//! not accepted, or that were given up before a writer had their bytes. **Maybe means what it says**: a connection
//! that was lost makes a command unknown only if its last byte had been given to the kernel.

use towline_client_proto::{ErrorKind, Sent};

use super::{Violation, promise};
use crate::command::Ending;
use crate::world::World;

pub(crate) fn check(world: &World) -> Result<(), Violation> {
    for (id, record) in &world.records {
        if record.is_not_sent() {
            let count = world.executions(*id);
            promise!(count == 0, "not_sent", "{id} ended with {:?}, executed {count} times", record.ending);
        }
        if let Some(Ending::Failed(ErrorKind::Lost(cause), Sent::Maybe)) = &record.ending {
            promise!(
                record.kernel_took > 0,
                "not_sent",
                "{id} was lost ({cause}) as possibly sent, but no kernel took its last byte"
            );
        }
        if let Some(Ending::Failed(kind, Sent::Maybe)) = &record.ending {
            promise!(record.was_handed_out, "not_sent", "{id} is unknown ({kind}), but nobody had its bytes");
        }
    }
    Ok(())
}

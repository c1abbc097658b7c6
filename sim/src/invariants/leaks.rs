//! **Nothing leaks.** Once every command has ended and its outcome was taken, no slot, no byte of the log, no place in
//! any queue and no place in the line for room is left.

use super::{Violation, promise};
use crate::world::World;

pub(crate) fn check(world: &World) -> Result<(), Violation> {
    let left = world.bridge.snapshot(world.now);
    promise!(left.slots == 0, "leaks", "{} slots are left", left.slots);
    promise!(left.log_bytes == 0, "leaks", "{} bytes of the log are left", left.log_bytes);
    promise!(
        (left.backlog_commands, left.backlog_bytes, left.delayed_commands, left.room_waiters) == (0, 0, 0, 0),
        "leaks",
        "commands, bytes, refused commands, waiters for room are left: {} {} {} {}",
        left.backlog_commands,
        left.backlog_bytes,
        left.delayed_commands,
        left.room_waiters
    );
    promise!(
        left.in_flight_commands == 0 && left.in_flight_bytes == 0,
        "leaks",
        "{} commands and {} bytes are left in flight",
        left.in_flight_commands,
        left.in_flight_bytes
    );
    Ok(())
}

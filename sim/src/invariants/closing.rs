//! **A closed client keeps nobody waiting.** When it says that it has finished, every command has its outcome and
//! everybody in the line for room was called: nobody will drive it any more.

use super::{Violation, promise};
use crate::world::World;

pub(crate) fn everybody_knows(world: &mut World) -> Result<(), Violation> {
    let waiting: Vec<u64> = world.live.keys().copied().collect();
    for id in waiting {
        world.poll(id);
        promise!(
            !world.live.contains_key(&id),
            "closing",
            "the client has finished, but {id} has no outcome"
        );
    }
    let left = world.bridge.snapshot(world.now).room_waiters;
    promise!(left == 0, "closing", "the client has finished, but {left} callers wait for room");
    Ok(())
}

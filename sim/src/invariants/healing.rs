//! **Once nothing goes wrong any more, everything heals**, within a time that follows from the configuration: a command
//! submitted afterwards is answered, every older one has its outcome, nobody waits in a line. A client that was closed
//! has finished instead.

use super::Violation;
use crate::world::World;

/// What did not happen in time.
pub(crate) fn missing(world: &World, is_spinning: bool) -> Violation {
    if is_spinning {
        return Violation::new("healing", "the history does not end: something spins".to_owned());
    }
    let snapshot = world.bridge.snapshot(world.now);
    let waiting: Vec<u64> = world.live.keys().copied().collect();
    Violation::new(
        "healing",
        format!(
            "after {:?} of calm: healed {}, finished {}, without outcome {waiting:?}, waiting for room {}, {:?}",
            world.plan.heals_within(),
            world.has_healed,
            world.bridge.is_finished(),
            snapshot.room_waiters,
            snapshot
        ),
    )
}

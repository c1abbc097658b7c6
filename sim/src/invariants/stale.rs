//! **What is over is over.** A late event of a connection that has ended changes nothing for its successor, and a
//! ticket whose outcome was taken is no claim on the command that has its slot now.

use towline_client_proto::{Error, LinkState, Reply};

use super::{Violation, promise};
use crate::callers::is_misuse;
use crate::world::World;

/// The state that must not change.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Digest {
    link: LinkState,
    generation: u64,
    commands: [usize; 4],
    bytes: [usize; 2],
}

impl Digest {
    pub(crate) fn of(world: &World) -> Self {
        let snapshot = world.bridge.snapshot(world.now);
        Self {
            link: snapshot.link,
            generation: snapshot.generation.0,
            commands: [
                snapshot.backlog_commands,
                snapshot.in_flight_commands,
                snapshot.delayed_commands,
                snapshot.slots,
            ],
            bytes: [snapshot.backlog_bytes, snapshot.in_flight_bytes],
        }
    }

    pub(crate) fn is_unchanged(&self, world: &World, generation: u64) -> Result<(), Violation> {
        let after = Self::of(world);
        promise!(
            *self == after || world.is_closed,
            "stale",
            "what is over (connection {generation}) changed the present: {self:?} to {after:?}"
        );
        Ok(())
    }
}

/// What a spent ticket yields.
pub(crate) fn ticket_is_void(outcome: Option<&Result<Reply, Error>>) -> Result<(), Violation> {
    let is_void = matches!(outcome, Some(Err(error)) if is_misuse(error));
    promise!(is_void, "stale", "a spent ticket yields {outcome:?}");
    Ok(())
}

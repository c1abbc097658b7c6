//! **No false alarms.** A server that keeps to the protocol is never accused of breaking it, and a connection that was
//! set up after the end of all trouble lives until the client is closed. And no silence about
//! true ones: a reply while no command has left ends the connection.

use towline_client_proto::{Event, Generation, LostCause};

use super::{Violation, promise};
use crate::world::World;

/// The client ends a connection, or reports its end.
pub(crate) fn may_end(world: &World, generation: u64) -> Result<(), Violation> {
    let is_of_calm = world.conns.get(&generation).is_some_and(|conn| conn.is_of_calm);
    promise!(
        !is_of_calm || world.is_closed,
        "peace",
        "connection {generation} ended although nothing was wrong: {:?}",
        world.bridge.snapshot(world.now)
    );
    Ok(())
}

/// The reason that an event gives is a possible one.
pub(crate) fn event_is_true(world: &World, event: &Event) -> Result<(), Violation> {
    let Event::Lost { generation, cause: LostCause::Protocol, .. } = event else { return Ok(()) };
    let has_lied = world.conns.get(&generation.0).is_some_and(|conn| conn.has_lied);
    promise!(has_lied, "peace", "{generation} was ended for breaking the protocol, which it did not");
    Ok(())
}

/// A reply came that answers nothing.
pub(crate) fn lie_is_noticed(world: &World, generation: u64) -> Result<(), Violation> {
    promise!(
        !world.bridge.is_wanted(Generation(generation)),
        "peace",
        "connection {generation} goes on after a reply to nothing"
    );
    Ok(())
}

//! **A move ends.** The client has at most three connections (one that serves, one that is made ready, one that was left),
//! and each that was opened is closed in the end. When a window is over and the successor is there, nothing waits on the old
//! connection any more.

use super::{Violation, promise};
use crate::plan::script::Scenario;
use crate::world::World;

/// One serves, one is made ready, one was left.
const CONNECTIONS_MAX: usize = 3;

/// After every step.
pub(crate) fn bounded(world: &World) -> Result<(), Violation> {
    let wanted = world.wanted();
    promise!(wanted <= CONNECTIONS_MAX, "handoff", "{wanted} connections are held at once");
    Ok(())
}

/// At the end: the one that serves is the only one.
pub(crate) fn all_closed(world: &World) -> Result<(), Violation> {
    let open: Vec<u64> =
        world.conns.iter().filter(|(_, conn)| conn.is_open).map(|(generation, _)| *generation).collect();
    promise!(open.len() <= 1, "handoff", "connections {open:?} are open at the end");
    Ok(())
}

/// A window is over: the server closes what was there. With a polite server and a successor, nothing is there.
pub(crate) fn window_ends(world: &World, connections: &[u64]) -> Result<(), Violation> {
    if world.plan.scenario != Scenario::CalmMoves || world.plan.script.is_rude() {
        return Ok(());
    }
    for generation in connections {
        let in_flight = world.on_wire(*generation);
        promise!(
            in_flight.is_empty(),
            "handoff",
            "the window of connection {generation} is over, and {in_flight:?} are not answered"
        );
    }
    Ok(())
}

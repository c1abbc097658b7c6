//! **The policy is kept.** Losing a connection fails nothing that was not sent, unless the policy says so: under
//! [`Policy::Queue`] a command that was not sent ends only by its deadline, by closing the client, or because the
//! handshake failed for a reason that waiting does not cure. [`Policy::FailFast`] accepts nothing while nothing is
//! connected, except in a planned move. Only [`Policy::Bounded`] knows an age.

use towline_client_proto::{ErrorKind, Outage, Policy, Sent};

use super::{Violation, promise};
use crate::command::Ending;
use crate::world::World;

/// A command was accepted.
pub(crate) fn may_accept(world: &World, id: u64) -> Result<(), Violation> {
    let outage = world.bridge.outage();
    promise!(
        world.plan.policy != Policy::FailFast || matches!(outage, None | Some(Outage::Planned)),
        "policy",
        "{id} was accepted during an outage ({outage:?}) under a policy that does not wait"
    );
    Ok(())
}

/// Every ending is one that the policy knows.
pub(crate) fn check(world: &World) -> Result<(), Violation> {
    let policy = world.plan.policy;
    for (id, record) in &world.records {
        let Some(Ending::Failed(kind, sent)) = &record.ending else { continue };
        let is_known = match kind {
            ErrorKind::Unavailable => policy == Policy::FailFast,
            ErrorKind::BacklogAge => matches!(policy, Policy::Bounded { .. }),
            ErrorKind::Lost(_) => *sent == Sent::Maybe,
            ErrorKind::Closed => world.is_closed,
            ErrorKind::Deadline | ErrorKind::Handshake(_) | ErrorKind::Server(_) => true,
            _ => false,
        };
        promise!(is_known, "policy", "{id} ended with {kind:?}, {sent:?} under {policy:?}");
    }
    Ok(())
}

//! The promises, one per file. Each file says in its first lines what is promised.

pub(crate) mod acknowledged;
pub(crate) mod at_most_once;
pub(crate) mod bounds;
pub(crate) mod calm;
pub(crate) mod closing;
pub(crate) mod deadline;
pub(crate) mod events;
pub(crate) mod handoff;
pub(crate) mod handshake_first;
pub(crate) mod healing;
pub(crate) mod identity;
pub(crate) mod leaks;
pub(crate) mod line;
pub(crate) mod not_sent;
pub(crate) mod order;
pub(crate) mod peace;
pub(crate) mod policy;
pub(crate) mod spin;
pub(crate) mod stale;
pub(crate) mod transactions;
pub(crate) mod wakes;

use std::fmt;

use crate::world::World;

/// A broken promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which promise: the name of its file.
    pub promise: &'static str,
    /// What happened instead.
    pub what: String,
}

impl Violation {
    pub(crate) const fn new(promise: &'static str, what: String) -> Self {
        Self { promise, what }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.promise, self.what)
    }
}

/// Fails with a message unless the condition holds.
macro_rules! promise {
    ($holds:expr, $name:literal, $($message:tt)*) => {
        if !$holds {
            return Err($crate::invariants::Violation::new($name, format!($($message)*)));
        }
    };
}
pub(crate) use promise;

/// Judges a whole history.
pub(crate) fn at_the_end(world: &mut World) -> Result<(), Violation> {
    world.drain_events();
    acknowledged::check(world)?;
    not_sent::check(world)?;
    at_most_once::check(world)?;
    transactions::check(world)?;
    identity::check(world)?;
    order::check(world)?;
    policy::check(world)?;
    calm::check(world)?;
    handoff::all_closed(world)?;
    world.wakes.check_all_called()?;
    if !world.is_closed {
        world.events.check_all_ended()?;
    }
    leaks::check(world)
}

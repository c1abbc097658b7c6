//! Which endpoint a command goes to, and what follows when that was the wrong one.
//!
//! Owns the decision about a refused command ([`cure`]), what the command table says about the way of a command ([`plan`]),
//! which node answers a read ([`choose`]), which connection of an endpoint a command takes ([`Lanes`]), when the slot map is
//! asked for ([`Refresh`]), and the map with its changes ([`Router`]). Does not own the bridges, between
//! which commands move ([`crate::Bridge::close_slots`], [`crate::Bridge::adopt`]), nor sockets.
//!
//! ```text
//!                 +-- MOVED, SMIGRATED --> one slot of the map --+
//!  bridge --news--|                                              +--> changes --> bridges close and open slots
//!                 +-- trouble --> Refresh --> views --> agree ---+
//! ```

mod carry;
mod cure;
mod lanes;
mod plan;
mod read;
mod refresh;
mod router;

pub use carry::{Bridges, apply, on_news, on_told, on_views};
pub use cure::{Cure, REDIRECTS_AT_ONCE, REDIRECTS_MAX, Refusal, cure};
pub use lanes::{BridgeId, LANES_MAX, Lane, Lanes};
pub use plan::{Join, Plan, Spread, plan};
pub use read::{Candidate, Choice, Chosen, Lag, Reach, ReadFrom, choose, choose_again};
pub use refresh::{Refresh, RefreshCause, RefreshConfig};
pub use router::{Change, Endpoint, EndpointId, PATCH_TRUST, Router, RouterConfig, UNFIT_TIME};

#[cfg(test)]
mod tests;

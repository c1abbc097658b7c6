//! Slots, and who serves them, as client and server both need them.
//!
//! Owns the number of slots, hash tags, key to slot, addresses of nodes, the slot map, the reading of what nodes say about
//! their cluster (`CLUSTER SHARDS`, `CLUSTER SLOTS`, `CLUSTER NODES`), the comparison of several such views, the reading of
//! redirects, and the same for a primary with replicas that sentinels watch ([`sentinel`]). Does **not** own when to ask whom,
//! nor what becomes of commands when the map changes: that is the client's (`towline-client-proto`, `routing`).
//!
//! Everything that a node says is untrusted: what cannot be read is left out, and nothing panics.
//!
//! ```text
//! replies of several nodes --View::from_shards, from_slots, from_nodes--> View, View, ... --agree--> Topology
//!                                         MOVED, ASK --Redirect::parse--> one slot of it
//! ```
#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod address;
mod agree;
mod nodes;
mod redirect;
mod reply;
pub mod sentinel;
mod shards;
mod slot;
mod slot_map;
mod slots;
#[cfg(test)]
mod tests;
mod topology;

pub use address::Address;
pub use agree::agree;
pub use redirect::{Redirect, RedirectKind, RedirectTarget};
pub use slot::{SLOT_COUNT, Slot, SlotRange, crc16, hash_tag, key_slot};
pub use slot_map::SlotMap;
pub use topology::{
    Asked, Health, NODES_MAX, NodeInfo, OpenSlot, OpenState, Role, Topology, View, ViewError,
};

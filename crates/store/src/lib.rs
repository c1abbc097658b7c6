//! The keyspace: slots, compact values, expiry, eviction.
//!
//! Owns: everything that is stored, and the rules of what a stored thing is. Does **not** own commands, connections,
//! time or randomness: those are arguments.
#![warn(missing_docs)]

mod block;
mod effects;
mod elem;
mod intset;
mod sample;
mod slot;

pub mod bits;
pub mod changes;
pub mod entry;
pub mod evict;
pub mod geo;
pub mod glob;
pub mod hash;
pub mod hasher;
pub mod hll;
pub mod keyspace;
pub mod limits;
pub mod list;
pub mod notify;
pub mod number;
pub mod packed;
pub mod set;
pub mod store;
pub mod stream;
pub mod table;
pub mod thin;
pub mod value;
pub mod zset;

pub use effects::Scope;
pub use slot::WatchFlag;

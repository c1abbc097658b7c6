//! Hash slots, as client and server both need them.
//!
//! Owns: the number of slots, hash tags, key to slot. Does **not** own who serves a slot: slot maps and topology come
//! with the cluster.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod slot;

pub use slot::{SLOT_COUNT, Slot, crc16, hash_tag, key_slot};

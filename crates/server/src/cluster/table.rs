//! One word for each slot, which every command on the slot looks at.
//!
//! Owns: the words. Does **not** own what they follow from (see [`super::follower`]).
//!
//! A word is 0 while every command on the slot runs here without another question. It is read under the slot's lock and changed under
//! that lock, so a command sees one side of a change; the lock orders it, and the load costs nothing.

use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use towline_cluster::{SLOT_COUNT, Slot};

/// The slot is not this node's, or it is open, or the cluster is down: [`super::Known`] says which.
pub(crate) const LOOK: u16 = 1 << 0;
/// The slot changes hands as a whole: nothing on it runs until it is known whose it is.
pub(crate) const PARKED: u16 = 1 << 1;

/// See the module's description.
#[derive(Debug)]
pub(crate) struct Table {
    words: Box<[AtomicU16]>,
    parked: AtomicUsize,
}

impl Default for Table {
    /// Nothing is served before the node knows of its cluster.
    fn default() -> Self {
        Self { words: (0..SLOT_COUNT).map(|_| AtomicU16::new(LOOK)).collect(), parked: AtomicUsize::new(0) }
    }
}

impl Table {
    /// The slot's word; the caller holds the slot, or only wants to know what is likely.
    #[inline]
    pub(crate) fn word(&self, slot: Slot) -> u16 {
        self.words[usize::from(slot)].load(Ordering::Relaxed)
    }

    /// Whether the slot is parked.
    pub(crate) fn is_parked(&self, slot: Slot) -> bool {
        self.word(slot) & PARKED != 0
    }

    /// Whether any slot is parked.
    pub(crate) fn has_parked(&self) -> bool {
        self.parked.load(Ordering::Relaxed) > 0
    }

    /// Changes one bit of the slot's word; the caller is in [`towline_store::store::Store::with_locked`] of the slot.
    pub(crate) fn set(&self, slot: Slot, bit: u16, is_on: bool) {
        let word = &self.words[usize::from(slot)];
        let before = if is_on {
            word.fetch_or(bit, Ordering::Relaxed)
        } else {
            word.fetch_and(!bit, Ordering::Relaxed)
        };
        if bit == PARKED && (before & PARKED != 0) != is_on {
            let added = if is_on { 1 } else { usize::MAX };
            self.parked.fetch_add(added, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_apart_and_parked_slots_are_counted() {
        let table = Table::default();
        assert_eq!(table.word(5), LOOK);
        table.set(5, LOOK, false);
        assert_eq!((table.word(5), table.word(6)), (0, LOOK));
        table.set(5, PARKED, true);
        table.set(5, PARKED, true);
        table.set(7, PARKED, true);
        assert!(table.is_parked(5) && table.has_parked() && !table.is_parked(6));
        table.set(5, PARKED, false);
        assert!(table.has_parked());
        table.set(7, PARKED, false);
        assert!(!table.has_parked());
        assert_eq!(table.word(7), LOOK);
    }
}

//! The slots that a command holds.
//!
//! Owns: locking them in order, and finding one among them. Does **not** own what is done under the locks.

use super::HELD_INLINE;
use crate::store::{Guard, Store};
use smallvec::SmallVec;
use towline_cluster::{SLOT_COUNT, Slot};

#[expect(clippy::large_enum_variant, reason = "the large one is the usual one, and lives on the stack")]
pub(super) enum Held<'s> {
    /// Sorted by slot.
    Few(Few<'s>),
    All(Vec<Guard<'s>>),
}

impl<'s> Held<'s> {
    #[inline]
    pub(super) fn index_of(&self, slot: Slot) -> usize {
        match self {
            Self::All(_) => usize::from(slot),
            Self::Few(few) => match few.as_slice() {
                [(only, _)] if *only == slot => 0,
                few => few
                    .binary_search_by_key(&slot, |(slot, _)| *slot)
                    .expect("invariant: the slots of a command's keys are held"),
            },
        }
    }

    #[inline]
    pub(super) fn guard(&self, index: usize) -> &Guard<'s> {
        match self {
            Self::Few(few) => &few[index].1,
            Self::All(all) => &all[index],
        }
    }

    #[inline]
    pub(super) fn guard_mut(&mut self, index: usize) -> &mut Guard<'s> {
        match self {
            Self::Few(few) => &mut few[index].1,
            Self::All(all) => &mut all[index],
        }
    }
}

pub(super) type Few<'s> = SmallVec<[(Slot, Guard<'s>); HELD_INLINE]>;

#[inline]
pub(super) fn lock_sorted<'s>(store: &'s Store, slots: impl IntoIterator<Item = Slot>) -> Few<'s> {
    let mut sorted: SmallVec<[Slot; HELD_INLINE]> = slots.into_iter().collect();
    if sorted.len() > 1 {
        sorted.sort_unstable();
        sorted.dedup();
    }
    sorted.into_iter().map(|slot| (slot, store.lock(slot))).collect()
}

pub(super) fn lock_all(store: &Store) -> Held<'_> {
    Held::All((0..SLOT_COUNT as Slot).map(|slot| store.lock(slot)).collect())
}

//! Who owns which slot, as runs of neighbours with one owner.
//!
//! Owns: the map, and that neighbouring runs of one owner are one run, so that equal maps are equal values. Does **not** own whether a
//! change of owner is right.
//!
//! Runs, for a cluster has thousands of slots and a handful of runs: a copy of the map for every reader of a new version costs little,
//! and ranges for clients are there already.

use crate::id::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use towline_cluster::{SLOT_COUNT, Slot};

/// The map. Slots without an owner are in no run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Owners {
    /// By their first slots.
    runs: BTreeMap<Slot, Run>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Run {
    last: Slot,
    owner: NodeId,
}

impl Owners {
    pub(super) fn owner(&self, slot: Slot) -> Option<NodeId> {
        let (_, run) = self.runs.range(..=slot).next_back()?;
        (run.last >= slot).then_some(run.owner)
    }

    /// `(first, last, owner)`, ascending.
    pub(super) fn runs(&self) -> impl Iterator<Item = (Slot, Slot, NodeId)> {
        self.runs.iter().map(|(&first, run)| (first, run.last, run.owner))
    }

    /// Gives the slots from `first` to `last` to `owner`. They must be slots in this order.
    pub(super) fn set(&mut self, first: Slot, last: Slot, owner: Option<NodeId>) {
        self.split_before(first);
        self.split_before(last + 1);
        let inside: Vec<Slot> = self.runs.range(first..=last).map(|(&first, _)| first).collect();
        for run in inside {
            self.runs.remove(&run);
        }
        if let Some(owner) = owner {
            self.runs.insert(first, Run { last, owner });
        }
        self.join_before(last + 1);
        self.join_before(first);
    }

    /// Makes `slot` the first of its run, if it is in one.
    fn split_before(&mut self, slot: Slot) {
        let Some((_, run)) = self.runs.range_mut(..slot).next_back() else { return };
        if run.last >= slot {
            let rest = *run;
            run.last = slot - 1;
            self.runs.insert(slot, rest);
        }
    }

    /// Makes the run that begins with `slot` a part of the one before it, if they touch and have one owner.
    fn join_before(&mut self, slot: Slot) {
        let Some(run) = self.runs.get(&slot).copied() else { return };
        let Some((_, before)) = self.runs.range_mut(..slot).next_back() else { return };
        if before.last + 1 == slot && before.owner == run.owner {
            before.last = run.last;
            self.runs.remove(&slot);
        }
    }

    /// Whether the runs are what [`Self::set`] leaves: what was read from elsewhere may be anything.
    pub(super) fn is_canonical(&self) -> bool {
        let mut before: Option<Run> = None;
        self.runs.iter().all(|(&first, &run)| {
            let is_apart = before.is_none_or(|before| {
                before.last < first && (before.owner != run.owner || before.last + 1 < first)
            });
            before = Some(run);
            is_apart && first <= run.last && usize::from(run.last) < SLOT_COUNT
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_say_what_an_array_says(
            changes in prop::collection::vec((0..40u16, 0..40u16, prop::option::of(0..3u8)), 1..60),
        ) {
            // The last slots, for there the end of a run has no successor.
            let base = SLOT_COUNT as Slot - 40;
            let mut array = [None; 40];
            let mut owners = Owners::default();
            for (a, b, owner) in changes {
                let (first, last) = (a.min(b), a.max(b));
                let owner = owner.map(|n| NodeId::from_bytes([n; NodeId::BYTES]));
                owners.set(base + first, base + last, owner);
                array[usize::from(first)..=usize::from(last)].fill(owner);
                for (at, owner) in (0..).zip(array) {
                    prop_assert_eq!(owners.owner(base + at), owner);
                }
                prop_assert!(owners.is_canonical(), "{:?}", owners);
            }
            prop_assert_eq!(owners.owner(0), None);
        }
    }
}

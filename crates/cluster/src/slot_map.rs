//! Which node has which slot: 32 KiB, one load for each look-up.
//!
//! Owns the table. Does not own the nodes, which it knows by their numbers in a list that somebody else keeps.

use std::fmt;

use crate::slot::{SLOT_COUNT, Slot, SlotRange};

/// The number of nobody.
const NOBODY: u16 = u16::MAX;

/// The owner of each slot, as an index into a list of nodes.
#[derive(Clone, PartialEq, Eq)]
pub struct SlotMap(Box<[u16; SLOT_COUNT]>);

impl SlotMap {
    /// A map in which no slot has an owner.
    pub fn new() -> Self {
        Self(Box::new([NOBODY; SLOT_COUNT]))
    }

    /// The owner of `slot`. `None` if it has none, or if there is no such slot.
    #[inline]
    pub fn owner(&self, slot: Slot) -> Option<usize> {
        match self.0.get(usize::from(slot)) {
            None | Some(&NOBODY) => None,
            Some(&node) => Some(usize::from(node)),
        }
    }

    /// Gives `slot` to a node, or to nobody. Slots and nodes that there cannot be (more than 65,534 nodes) change nothing.
    pub fn set(&mut self, slot: Slot, node: Option<usize>) {
        let node = match node.map(u16::try_from) {
            None => NOBODY,
            Some(Ok(node)) if node != NOBODY => node,
            Some(_) => return,
        };
        if let Some(place) = self.0.get_mut(usize::from(slot)) {
            *place = node;
        }
    }

    /// Gives all slots of `range` to a node.
    pub fn set_range(&mut self, range: SlotRange, node: usize) {
        range.slots().for_each(|slot| self.set(slot, Some(node)));
    }

    /// How many slots have an owner.
    pub fn covered(&self) -> usize {
        self.0.iter().filter(|node| **node != NOBODY).count()
    }

    /// Runs of slots that have the same owner, ascending; slots without one are left out.
    pub fn ranges(&self) -> impl Iterator<Item = (SlotRange, usize)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            while at < SLOT_COUNT && self.0[at] == NOBODY {
                at += 1;
            }
            let node = *self.0.get(at)?;
            let first = at;
            while at < SLOT_COUNT && self.0[at] == node {
                at += 1;
            }
            let range = SlotRange { first: first as Slot, last: (at - 1) as Slot };
            Some((range, usize::from(node)))
        })
    }
}

impl Default for SlotMap {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SlotMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.ranges().map(|(range, node)| (range.to_string(), node))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_map_gives_back_what_it_was_given() {
        let mut map = SlotMap::new();
        assert_eq!((map.covered(), map.owner(0), map.owner(16384)), (0, None, None));
        map.set_range(SlotRange { first: 0, last: 5460 }, 0);
        map.set_range(SlotRange { first: 5461, last: 16383 }, 2);
        map.set(9, None);
        map.set(10, Some(7));
        map.set(11, Some(usize::from(u16::MAX)));
        map.set(u16::MAX, Some(1));
        let ranges: Vec<_> = map.ranges().map(|(range, node)| format!("{range}={node}")).collect();
        assert_eq!(ranges, ["0-8=0", "10=7", "11-5460=0", "5461-16383=2"]);
        assert_eq!(map.covered(), SLOT_COUNT - 1);
        assert!(format!("{map:?}").contains("\"10\": 7"));
    }

    proptest! {
        #[test]
        fn ranges_are_the_map(changes in prop::collection::vec((0_u16..16384, 0_u16..200, 0_usize..5), 0..20)) {
            let mut map = SlotMap::new();
            for (first, len, node) in changes {
                map.set_range(SlotRange { first, last: (first + len).min(16383) }, node);
            }
            let mut again = SlotMap::new();
            let mut covered = 0;
            for (range, node) in map.ranges() {
                again.set_range(range, node);
                covered += usize::from(range.last - range.first) + 1;
            }
            prop_assert_eq!(&again, &map);
            prop_assert_eq!(covered, map.covered());
        }
    }
}

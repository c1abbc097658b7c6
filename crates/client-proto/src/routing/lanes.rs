//! Several connections to one endpoint, and which of them a command takes.
//!
//! Owns the numbers of lanes and the one rule. Does not own the connections: each lane of an endpoint is a [`crate::Bridge`]
//! like any other, with a backlog, a retry budget and a handoff of its own, found by its [`BridgeId`].
//!
//! # The rule
//!
//! A slot has the same lane at every endpoint, for as long as the client lives: it is a function of the slot and of how many
//! lanes there are, and of nothing else. So all commands on one slot share a connection, wherever the slot goes; whoever
//! carries them from endpoint to endpoint goes from lane n to lane n; and everything that one bridge knows about the order of a
//! slot (its gate, its fences, what waits) is as true with many lanes as with one. Nothing is ever to be ordered between two
//! lanes. Commands without keys take the first lane.
//!
//! An endpoint without a cluster uses the same rule, so that keys with the same part in braces share a lane there, too.

use towline_cluster::Slot;

use super::EndpointId;

/// Most lanes of one endpoint. More do not carry more (a server reads one connection as fast as thirty-two), and 300 processes
/// with so many each reach the 10,000 connections that servers accept by default.
pub const LANES_MAX: u8 = 32;

/// One connection of an endpoint, by its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane(u8);

impl Lane {
    /// The one that always is there, and that commands without keys take.
    pub const FIRST: Self = Self(0);

    /// Its number, from 0.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// How many connections each endpoint has: from 1 to [`LANES_MAX`]. Default 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lanes(u8);

impl Default for Lanes {
    fn default() -> Self {
        Self::ONE
    }
}

impl Lanes {
    /// One, which every command takes.
    pub const ONE: Self = Self(1);

    /// So many; `None` if that is none, or more than [`LANES_MAX`].
    pub const fn new(count: u8) -> Option<Self> {
        if count == 0 || count > LANES_MAX { None } else { Some(Self(count)) }
    }

    /// How many there are.
    pub const fn count(self) -> usize {
        self.0 as usize
    }

    /// All of them, the first one first.
    pub fn all(self) -> impl Iterator<Item = Lane> {
        (0..self.0).map(Lane)
    }

    /// The lane of commands on `slot`, or of those without keys.
    #[inline]
    pub const fn of(self, slot: Option<Slot>) -> Lane {
        match slot {
            // A remainder below a `u8` is one; a division is spared where there is nothing to choose.
            Some(slot) if self.0 > 1 => Lane((slot % self.0 as u16) as u8),
            _ => Lane::FIRST,
        }
    }
}

/// One bridge of a client: a lane of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BridgeId {
    /// The endpoint.
    pub endpoint: EndpointId,
    /// Which of its connections.
    pub lane: Lane,
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_cluster::{SLOT_COUNT, key_slot};

    #[test]
    fn every_lane_gets_its_share_of_every_range_of_slots() {
        for count in 1..=LANES_MAX {
            let lanes = Lanes::new(count).unwrap();
            assert_eq!(lanes.all().count(), lanes.count());
            for range in [0..5461_u16, 5461..10_923, 10_923..SLOT_COUNT as u16] {
                let mut shares = vec![0_usize; lanes.count()];
                range.for_each(|slot| shares[lanes.of(Some(slot)).index()] += 1);
                let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
                assert!(most - least <= 1, "{count}: {shares:?}");
            }
        }
    }

    #[test]
    fn keys_with_one_tag_share_a_lane_and_what_has_no_key_takes_the_first() {
        let lanes = Lanes::new(7).unwrap();
        assert_eq!(lanes.of(Some(key_slot(b"{user}:a"))), lanes.of(Some(key_slot(b"{user}:b"))));
        assert_eq!(lanes.of(None), Lane::FIRST);
        assert_eq!((Lanes::new(0), Lanes::new(LANES_MAX + 1)), (None, None));
        assert!((0..SLOT_COUNT as u16).all(|slot| Lanes::ONE.of(Some(slot)) == Lane::FIRST));
    }
}

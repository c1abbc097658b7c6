//! Who talks to whom, and in which of its lives.
//!
//! Owns the names of processes, of their lives, of handshakes and of links. Does **not** own addresses: a driver knows
//! where a node listens.
//!
//! A node keeps its name when it restarts, an [`Incarnation`] does not. A link belongs to two incarnations and to one
//! [`Attempt`], so nothing that was said by or to an earlier life can be taken for something of this one.

use std::fmt;

/// A node: the name that a process keeps across restarts. Chosen by the operator or derived from where it listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u128);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

/// One life of a node. A later life has a larger number: a driver takes the unix time in nanoseconds at its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub u64);

/// A node in one of its lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Process {
    /// Which node.
    pub node: NodeId,
    /// Which life of it.
    pub incarnation: Incarnation,
}

/// The number of one handshake of one process with one lane of one peer. Grows with each HELLO that is sent; 64 bits
/// do not wrap. Zero is before the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Attempt(pub u64);

/// Which of several links between two processes. Lane 0 comes up first and is what work waits for; a driver may add
/// rails in the background as further lanes. Most pairs have one lane with all rails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lane(pub u16);

/// A lane to a node: what a connect job is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkKey {
    /// The peer.
    pub node: NodeId,
    /// The lane to it.
    pub lane: Lane,
}

/// One generation of a link: the queue pairs of one attempt. Local to its process, never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub(crate) u64);

impl fmt::Display for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "link {}", self.0)
    }
}

/// A connection that carries handshakes. Local to its process, never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub(crate) u64);

impl fmt::Display for ConnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "connection {}", self.0)
    }
}

/// A packet sequence number: 24 bits. Each queue pair starts at a random one, so that packets of an earlier generation
/// are not accepted by a later one that happens to have the same queue pair number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Psn(u32);

impl Psn {
    /// One more than the largest number.
    pub const MODULUS: u32 = 1 << 24;

    /// The number, modulo 2^24.
    pub const fn new(number: u32) -> Self {
        Self(number % Self::MODULUS)
    }

    /// The number, below 2^24.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The number `packets` later.
    #[must_use]
    pub const fn after(self, packets: u32) -> Self {
        Self::new(self.0.wrapping_add(packets % Self::MODULUS))
    }
}

/// A queue pair number: 24 bits, given out by the network card. Unlike everything else here it may come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Qpn(pub u32);

/// What a peer must know of a queue pair to reach it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QueuePair {
    /// The rail (network card) on its own side.
    pub rail: u16,
    /// Its number on that card.
    pub qpn: Qpn,
    /// The number of its first packet.
    pub psn: Psn,
    /// The local identifier of its port; zero on Ethernet.
    pub lid: u16,
    /// The global identifier of its port.
    pub gid: [u8; 16],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packet_numbers_wrap_at_24_bits() {
        assert_eq!(Psn::new(u32::MAX).get(), Psn::MODULUS - 1);
        assert_eq!(Psn::new(Psn::MODULUS - 1).after(2), Psn::new(1));
        assert_eq!(Psn::new(5).after(Psn::MODULUS), Psn::new(5));
    }
}

//! The number that tells one connection of a bridge from the next.

use std::fmt;

/// Which connection of a bridge an event, a reply or a subscription belongs to. Starts at 1 and only grows, so that
/// a late event of generation g never touches generation g + 1; 0 stands for "never connected".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Generation(pub u64);

impl Generation {
    /// The generation of the next connection.
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "g{}", self.0)
    }
}

//! Which servers know a command or an option.
//!
//! Owns: the set of dialects and its notation. Towline speaks the union of all, so it constrains nothing.

use crate::process::ServerKind;

/// A set of dialects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialects(u8);

const REDIS70: u8 = 1;
const REDIS82: u8 = 2;
const VALKEY91: u8 = 4;

impl Dialects {
    /// Every dialect.
    pub fn all() -> Self {
        Self(REDIS70 | REDIS82 | VALKEY91)
    }

    /// What a pair of servers speaks.
    pub fn of(sides: [ServerKind; 2]) -> Self {
        Self(sides.into_iter().fold(0, |bits, side| {
            bits | match side {
                ServerKind::Towline => 0,
                ServerKind::Redis70 => REDIS70,
                ServerKind::Redis82 => REDIS82,
                ServerKind::Valkey91 => VALKEY91,
            }
        }))
    }

    /// Reads `R7`, `R8`, `V9` in any combination, for example `R8V9`. The notation is used in this package's tables
    /// only, so a mistake in it is a bug and panics.
    pub fn parse(text: &str) -> Self {
        let mut bits = 0;
        for (name, bit) in [("R7", REDIS70), ("R8", REDIS82), ("V9", VALKEY91)] {
            if text.contains(name) {
                bits |= bit;
            }
        }
        assert!(bits != 0 && text.len() == 2 * bits.count_ones() as usize, "no set of dialects: {text}");
        Self(bits)
    }

    /// Whether every dialect of `self` is in `other`.
    pub fn is_within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }
}

//! Which slots went from where to where.
//!
//! Owns the shapes of the list of moves. Does not own the slot map.
//!
//! Each of these says the same: `[[source, destination, slots]]`, `[source, destination, slots]`,
//! `source destination slots`, and without the source `[[destination, slots]]`. So the reader goes by what a value looks
//! like: an address begins a move or completes its pair, a list of slots belongs to the move before it.

use towline_cluster::{Address, SlotRange};
use towline_resp::frame::Frame;

use super::slots::append;
use super::value::{list, text};

/// How deep lists may be nested: the list of triplets, and each triplet.
const NESTING_MAX: u32 = 2;

/// Slots that have another owner now.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SlotMove {
    /// Who had them; `None` if an older server did not say.
    pub source: Option<Address>,
    /// Who has them now.
    pub destination: Address,
    /// The slots, in the order announced; never empty.
    pub slots: Vec<SlotRange>,
}

impl SlotMove {
    /// Most moves that are kept of one announcement: every slot on its own. More would repeat some.
    pub const MOVES_MAX: usize = 16384;
}

/// The moves, and whether everything could be read.
pub(super) fn read(values: &[Frame]) -> (Vec<SlotMove>, bool) {
    let mut reader = Reader { moves: Vec::new(), ranges: 0, is_complete: true };
    reader.read(values, 0);
    let is_complete = reader.is_complete && !reader.moves.is_empty();
    (reader.moves, is_complete)
}

struct Reader {
    moves: Vec<SlotMove>,
    /// Ranges in `moves`.
    ranges: usize,
    is_complete: bool,
}

/// A move that is not complete yet.
#[derive(Default)]
struct Partial {
    /// One, or a source and a destination.
    addresses: Vec<Address>,
    slots: Vec<SlotRange>,
}

impl Reader {
    fn read(&mut self, values: &[Frame], depth: u32) {
        let mut partial = Partial::default();
        for value in values {
            match list(value) {
                None => self.value(value, &mut partial),
                // The slots of a triplet as a list of their own.
                Some(slots) if !partial.addresses.is_empty() && partial.slots.is_empty() => {
                    slots.iter().for_each(|slot| self.value(slot, &mut partial));
                }
                Some(inner) => {
                    self.finish(&mut partial);
                    if depth < NESTING_MAX {
                        self.read(inner, depth + 1);
                    } else {
                        self.is_complete = false;
                    }
                }
            }
        }
        self.finish(&mut partial);
    }

    fn value(&mut self, value: &Frame, partial: &mut Partial) {
        if let Some(address) = text(value).and_then(|text| Address::parse(text)) {
            if !partial.slots.is_empty() || partial.addresses.len() == 2 {
                self.finish(partial);
            }
            partial.addresses.push(address);
            return;
        }
        let before = partial.slots.len();
        self.is_complete &= append(value, &mut partial.slots);
        if partial.slots.len() == before {
            // No slot in it: an unknown address, or nothing that is known. What came before it is over; what comes
            // after it is read anew, so that one bad triplet costs itself only.
            self.finish(partial);
        }
    }

    /// Keeps what is a move, forgets what is not.
    fn finish(&mut self, partial: &mut Partial) {
        let Partial { addresses, slots } = std::mem::take(partial);
        if addresses.is_empty() && slots.is_empty() {
            return;
        }
        let mut addresses = addresses.into_iter();
        let pair = match (addresses.next(), addresses.next()) {
            (source, Some(destination)) => Some((source, destination)),
            (Some(destination), None) => Some((None, destination)),
            (None, None) => None,
        };
        let fits =
            self.moves.len() < SlotMove::MOVES_MAX && self.ranges + slots.len() <= SlotRange::RANGES_MAX;
        match pair {
            Some((source, destination)) if !slots.is_empty() && fits => {
                self.ranges += slots.len();
                self.moves.push(SlotMove { source, destination, slots });
            }
            _ => self.is_complete = false,
        }
    }
}

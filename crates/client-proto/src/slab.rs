//! Completion slots: one per command, found by index, guarded by a generation.
//!
//! Owns the slots' memory and the tickets. Does not own the order of commands (the queue and the in-flight FIFO of
//! [`crate::Bridge`] do) nor their bytes ([`crate::buffer`]).
//!
//! Slots live in chunks that never move, so that growing costs one chunk and not a doubling: what a queued command
//! costs is one slot and one index.

/// Slots per chunk. One chunk of 56-byte slots is 14 KiB.
const CHUNK: usize = 256;

/// Chunks kept when the slab falls empty: 1024 slots serve the usual concurrency without growing again.
const SPARE_CHUNKS: usize = 4;

/// End of the free list.
const NONE: u32 = u32::MAX;

/// A caller's claim on one slot. It outlives neither its slot's reuse (the generation differs then) nor is it a
/// permission to read anybody else's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket {
    index: u32,
    generation: u32,
}

impl Ticket {
    /// The slot's number; reused over time.
    pub const fn index(self) -> u32 {
        self.index
    }
}

/// What a slab keeps. The value holds its slot's generation itself, because there is room for it between its fields.
pub(crate) trait Slotted {
    fn generation(&self) -> u32;
    fn set_generation(&mut self, generation: u32);
}

#[derive(Debug)]
enum Entry<T> {
    Used(T),
    Free { next: u32, generation: u32 },
}

impl<T: Slotted> Entry<T> {
    fn generation(&self) -> u32 {
        match self {
            Self::Used(value) => value.generation(),
            Self::Free { generation, .. } => *generation,
        }
    }
}

/// A chunked slab with generations.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    chunks: Vec<Vec<Entry<T>>>,
    free: u32,
    len: usize,
    /// The generation that fresh slots begin with.
    first_generation: u32,
    /// The mutation switch of the simulator: without the check a stale ticket reads its successor's reply.
    check_generation: bool,
}

impl<T: Slotted> Slab<T> {
    pub(crate) const fn new(check_generation: bool) -> Self {
        Self { chunks: Vec::new(), free: NONE, len: 0, first_generation: 0, check_generation }
    }

    /// Slots in use.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn entry(&self, index: u32) -> Option<&Entry<T>> {
        self.chunks.get(index as usize / CHUNK)?.get(index as usize % CHUNK)
    }

    #[inline]
    fn entry_mut(&mut self, index: u32) -> Option<&mut Entry<T>> {
        self.chunks.get_mut(index as usize / CHUNK)?.get_mut(index as usize % CHUNK)
    }

    /// Takes a slot for `value`.
    #[inline]
    pub(crate) fn insert(&mut self, mut value: T) -> Ticket {
        self.len += 1;
        let index = self.free;
        if index != NONE
            && let Some(entry) = self.entry_mut(index)
            && let Entry::Free { next, generation } = *entry
        {
            value.set_generation(generation);
            *entry = Entry::Used(value);
            self.free = next;
            return Ticket { index, generation };
        }
        self.insert_fresh(value)
    }

    #[cold]
    fn insert_fresh(&mut self, mut value: T) -> Ticket {
        if self.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        let chunk_at = self.chunks.len() - 1;
        let chunk = &mut self.chunks[chunk_at];
        let index = u32::try_from(chunk_at * CHUNK + chunk.len())
            .expect("invariant: the byte bounds end long before 2^32 commands");
        let generation = self.first_generation;
        value.set_generation(generation);
        chunk.push(Entry::Used(value));
        Ticket { index, generation }
    }

    /// The value behind a number that the core itself keeps.
    #[inline]
    pub(crate) fn at(&self, index: u32) -> Option<&T> {
        match self.entry(index)? {
            Entry::Used(value) => Some(value),
            Entry::Free { .. } => None,
        }
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, index: u32) -> Option<&mut T> {
        match self.entry_mut(index)? {
            Entry::Used(value) => Some(value),
            Entry::Free { .. } => None,
        }
    }

    /// Every value.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.chunks.iter_mut().flatten().filter_map(|entry| match entry {
            Entry::Used(value) => Some(value),
            Entry::Free { .. } => None,
        })
    }

    /// The value behind a number, with its ticket.
    #[inline]
    pub(crate) fn entry_at_mut(&mut self, index: u32) -> Option<(Ticket, &mut T)> {
        self.at_mut(index).map(|value| (Ticket { index, generation: value.generation() }, value))
    }

    /// The value behind a caller's ticket; `None` if the slot has been given to another command since.
    #[inline]
    pub(crate) fn get_mut(&mut self, ticket: Ticket) -> Option<&mut T> {
        let check = self.check_generation;
        self.at_mut(ticket.index).filter(|value| !check || value.generation() == ticket.generation)
    }

    /// The ticket of a slot in use.
    #[inline]
    pub(crate) fn ticket(&self, index: u32) -> Option<Ticket> {
        self.at(index).map(|value| Ticket { index, generation: value.generation() })
    }

    /// Frees a slot; its tickets become void.
    #[inline]
    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        let next = self.free;
        let entry = self.entry_mut(index)?;
        let Entry::Used(value) = entry else { return None };
        let generation = value.generation().wrapping_add(1);
        let entry = std::mem::replace(entry, Entry::Free { next, generation });
        self.free = index;
        self.len -= 1;
        match entry {
            Entry::Used(value) => Some(value),
            Entry::Free { .. } => None,
        }
    }

    /// Gives memory back when nothing is in use.
    pub(crate) fn shrink_if_empty(&mut self) {
        if self.len > 0 || self.chunks.len() <= SPARE_CHUNKS {
            return;
        }
        // New slots start above every generation that a ticket of a dropped one may still carry.
        let dropped = self.chunks.drain(SPARE_CHUNKS..).flatten();
        self.first_generation = dropped.map(|entry| entry.generation()).max().unwrap_or(0).wrapping_add(1);
        self.relink();
    }

    fn relink(&mut self) {
        let mut next = NONE;
        for (chunk_at, chunk) in self.chunks.iter_mut().enumerate().rev() {
            for (at, entry) in chunk.iter_mut().enumerate().rev() {
                *entry = Entry::Free { next, generation: entry.generation() };
                next = u32::try_from(chunk_at * CHUNK + at).unwrap_or(NONE);
            }
        }
        self.free = next;
    }
}

/// What one slot for a `T` takes.
#[cfg(test)]
pub(crate) const fn bytes_per_slot<T>() -> usize {
    size_of::<Entry<T>>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Item(usize, u32);

    impl Slotted for Item {
        fn generation(&self) -> u32 {
            self.1
        }

        fn set_generation(&mut self, generation: u32) {
            self.1 = generation;
        }
    }

    #[test]
    fn a_ticket_ends_with_its_slot() {
        let mut slab = Slab::new(true);
        let first = slab.insert(Item(1, 9));
        assert_eq!(slab.remove(first.index()), Some(Item(1, 0)));
        assert_eq!(slab.remove(first.index()), None, "freed once");
        let second = slab.insert(Item(2, 9));
        assert_eq!(second.index(), first.index(), "the slot is used again");
        assert_eq!(slab.get_mut(first), None);
        assert_eq!(slab.get_mut(second), Some(&mut Item(2, 1)));
    }

    #[test]
    fn shrinking_never_revives_an_old_ticket() {
        let mut slab = Slab::new(true);
        let tickets: Vec<_> = (0..CHUNK * (SPARE_CHUNKS + 3)).map(|n| slab.insert(Item(n, 0))).collect();
        for ticket in &tickets {
            slab.remove(ticket.index());
        }
        slab.shrink_if_empty();
        assert_eq!(slab.chunks.len(), SPARE_CHUNKS);
        let again: Vec<_> = (0..tickets.len()).map(|n| slab.insert(Item(n, 0))).collect();
        assert!(tickets.iter().all(|old| slab.get_mut(*old).is_none()));
        assert!(again.iter().all(|new| slab.get_mut(*new).is_some()));
    }

    #[test]
    fn growing_costs_one_chunk() {
        let mut slab = Slab::new(true);
        for n in 0..=CHUNK {
            slab.insert(Item(n, 0));
        }
        assert_eq!((slab.len(), slab.chunks.len()), (CHUNK + 1, 2));
    }
}

//! The members of a large set, each once, numbered densely.
//!
//! Owns members and scores. Does not own order ([`super::tree`]) nor lookup ([`super::index`]): both refer to a member by
//! its number. Numbers have no gaps: when one is removed, the last member takes it. So nothing fragments, a random
//! member is one array access, and a walk from the highest number down sees every member that stays, because members
//! move only downwards.

/// Longest member that lies in its slot; 22 makes a slot with its score half a cache line.
const INLINE_BYTES_MAX: usize = 22;
/// Slots of a chunk: 4 KiB. Growth touches one chunk, so it never copies more than that.
const CHUNK_SLOTS: usize = 128;

/// The bytes of a member.
#[derive(Debug, Clone)]
enum Bytes {
    Inline { len: u8, bytes: [u8; INLINE_BYTES_MAX] },
    Heap(Box<[u8]>),
}

impl Bytes {
    fn new(member: &[u8]) -> Self {
        if member.len() > INLINE_BYTES_MAX {
            return Self::Heap(member.into());
        }
        let mut bytes = [0; INLINE_BYTES_MAX];
        bytes[..member.len()].copy_from_slice(member);
        Self::Inline { len: member.len() as u8, bytes }
    }

    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Self::Heap(bytes) => bytes,
        }
    }

    fn heap_bytes(&self) -> usize {
        match self {
            Self::Inline { .. } => 0,
            Self::Heap(bytes) => bytes.len(),
        }
    }
}

#[derive(Debug, Clone)]
struct Slot {
    score: f64,
    member: Bytes,
}

const _: () = assert!(size_of::<Slot>() == 32, "four slots fill two cache lines");

/// All members of a large set.
#[derive(Debug, Clone, Default)]
pub(super) struct Members {
    /// All but the last are full; none is empty.
    chunks: Vec<Vec<Slot>>,
    /// Bytes of the members that do not lie in their slot.
    heap_bytes: usize,
}

impl Members {
    pub(super) fn len(&self) -> usize {
        self.chunks.last().map_or(0, |last| (self.chunks.len() - 1) * CHUNK_SLOTS + last.len())
    }

    pub(super) fn mem_bytes(&self) -> usize {
        let last = self.chunks.last().map_or(0, Vec::capacity);
        let slots = self.chunks.len().saturating_sub(1) * CHUNK_SLOTS + last;
        slots * size_of::<Slot>() + self.chunks.capacity() * size_of::<Vec<Slot>>() + self.heap_bytes
    }

    fn slot(&self, id: u32) -> &Slot {
        &self.chunks[id as usize / CHUNK_SLOTS][id as usize % CHUNK_SLOTS]
    }

    pub(super) fn member(&self, id: u32) -> &[u8] {
        self.slot(id).member.as_slice()
    }

    pub(super) fn score(&self, id: u32) -> f64 {
        self.slot(id).score
    }

    pub(super) fn set_score(&mut self, id: u32, score: f64) {
        self.chunks[id as usize / CHUNK_SLOTS][id as usize % CHUNK_SLOTS].score = score;
    }

    /// Appends a member and returns its number.
    ///
    /// # Panics
    /// Above `u32::MAX` members, which take more than 128 GiB.
    pub(super) fn push(&mut self, member: &[u8], score: f64) -> u32 {
        let id = u32::try_from(self.len()).expect("invariant: a set has fewer than 2^32 members");
        let member = Bytes::new(member);
        self.heap_bytes += member.heap_bytes();
        let slot = Slot { score, member };
        match self.chunks.last_mut() {
            Some(last) if last.len() < CHUNK_SLOTS => last.push(slot),
            _ => self.chunks.push(vec![slot]),
        }
        id
    }

    /// The highest number, if there is a member.
    pub(super) fn last_id(&self) -> Option<u32> {
        self.len().checked_sub(1).map(|last| last as u32)
    }

    /// Removes a member; the last one takes its number.
    pub(super) fn swap_remove(&mut self, id: u32) {
        let Some(slot) = self.chunks.last_mut().and_then(Vec::pop) else {
            return;
        };
        if self.chunks.last().is_some_and(Vec::is_empty) {
            self.chunks.pop();
        }
        let removed = match self.chunks.get_mut(id as usize / CHUNK_SLOTS) {
            Some(chunk) if id as usize % CHUNK_SLOTS < chunk.len() => {
                std::mem::replace(&mut chunk[id as usize % CHUNK_SLOTS], slot)
            }
            _ => slot,
        };
        self.heap_bytes -= removed.member.heap_bytes();
    }
}

//! What of this process's memory is registered, under which addresses, and for whom.
//!
//! Owns: the table of registered regions, their addresses and permissions. Does **not** own memory
//! ([`crate::MemoryRegion`]) or how a peer learns of it ([`crate::Segment`]).
//!
//! Addresses are numbers of the engine's own, no pointers: they begin at a random place in each life of a process and are never
//! used twice in it. So an address that was learned before a restart, or before its region was taken back, is refused and
//! cannot hit something else.
//!
//! Readers take no lock: they look at a published table.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwap;

use crate::memory::MemoryRegion;

/// Who may do what with a registered region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// Only this process. Peers do not hear of the region.
    Local,
    /// Peers may read.
    Read,
    /// Peers may read and write.
    ReadWrite,
}

impl Access {
    /// Whether a peer may do this.
    pub fn allows(self, wanted: RemoteAccess) -> bool {
        match wanted {
            RemoteAccess::Read => self != Self::Local,
            RemoteAccess::Write => self == Self::ReadWrite,
        }
    }
}

/// What a peer wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RemoteAccess {
    /// Read a range.
    Read,
    /// Write a range.
    Write,
}

/// A registered region: what [`crate::Engine::register`] gives. It stays registered until [`crate::Engine::deregister`].
#[derive(Debug, Clone)]
pub struct Registered {
    pub(crate) entry: Arc<Entry>,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) base: u64,
    pub(crate) access: Access,
    pub(crate) memory: MemoryRegion,
    /// By transport, once they know it.
    pub(crate) keys: OnceLock<Vec<(u16, u32)>>,
}

impl Registered {
    pub(crate) fn set_keys(&self, keys: Vec<(u16, u32)>) {
        let is_first = self.entry.keys.set(keys).is_ok();
        debug_assert!(is_first, "invariant: a region is registered once");
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.entry.name
    }

    /// The address of its first byte.
    pub fn base(&self) -> u64 {
        self.entry.base
    }

    /// Who may use it.
    pub fn access(&self) -> Access {
        self.entry.access
    }

    /// Its memory.
    pub fn memory(&self) -> &MemoryRegion {
        &self.entry.memory
    }
}

/// A range of registered memory. It keeps the memory alive.
#[derive(Debug, Clone)]
pub struct Range {
    memory: MemoryRegion,
    offset: usize,
    len: usize,
}

impl Range {
    /// The region that it lies in.
    pub fn memory(&self) -> &MemoryRegion {
        &self.memory
    }

    /// Where in it.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// How many bytes.
    #[expect(clippy::len_without_is_empty, reason = "transfers of no bytes do not exist")]
    pub fn len(&self) -> usize {
        self.len
    }
}

/// Names of regions at most: bytes.
pub(crate) const NAME_BYTES_MAX: usize = 255;

/// Between regions, so that a range that leaves one does not enter the next. Also their alignment.
const GAP: u64 = 1 << 20;

/// Addresses stay below this, so that sums do not overflow.
const ADDRESS_MAX: u64 = 1 << 62;

/// The registered regions of one engine.
#[derive(Debug)]
pub struct Regions {
    table: ArcSwap<Vec<Arc<Entry>>>,
    next: Mutex<u64>,
    regions_max: usize,
}

impl Regions {
    /// None yet. `seed` decides where addresses begin.
    pub(crate) fn new(seed: u64, regions_max: usize) -> Self {
        // Some 2^40 beginnings, and room for 2^60 bytes after each.
        let first = (seed % (1 << 40)) * GAP + GAP;
        Self { table: ArcSwap::default(), next: Mutex::new(first), regions_max }
    }

    pub(crate) fn register(
        &self,
        name: &str,
        memory: MemoryRegion,
        access: Access,
    ) -> Result<Registered, RegisterError> {
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(RegisterError::Name { bytes: name.len() });
        }
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let table = self.table.load_full();
        if table.len() >= self.regions_max {
            return Err(RegisterError::Full { regions: table.len() });
        }
        if table.iter().any(|entry| entry.name == name) {
            return Err(RegisterError::Taken { name: name.to_owned() });
        }
        let base = *next;
        let room = (memory.len() as u64).div_ceil(GAP).saturating_add(1).saturating_mul(GAP);
        let after = base.checked_add(room).filter(|after| *after < ADDRESS_MAX);
        *next = after.ok_or(RegisterError::Full { regions: table.len() })?;
        let entry = Arc::new(Entry { name: name.to_owned(), base, access, memory, keys: OnceLock::new() });
        // Bases grow, so the table stays sorted.
        let longer = table.iter().cloned().chain([entry.clone()]).collect();
        self.table.store(Arc::new(longer));
        Ok(Registered { entry })
    }

    /// False if it was not registered.
    pub(crate) fn deregister(&self, base: u64) -> bool {
        let _changes = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let table = self.table.load_full();
        let shorter: Vec<_> = table.iter().filter(|entry| entry.base != base).cloned().collect();
        let was_there = shorter.len() < table.len();
        self.table.store(Arc::new(shorter));
        was_there
    }

    /// Every registered region, by address.
    pub(crate) fn entries(&self) -> Arc<Vec<Arc<Entry>>> {
        self.table.load_full()
    }

    /// A range of this process's own, for its own use.
    pub fn local(&self, address: u64, len: u64) -> Option<Range> {
        self.find(address, len, |_| true)
    }

    /// A range that a peer wants to use. `None` if it is not registered, not that long, or not for this: the peer's mistake
    /// (or its knowledge is old), and it must be told so.
    pub fn remote(&self, address: u64, len: u64, wanted: RemoteAccess) -> Option<Range> {
        self.find(address, len, |access| access.allows(wanted))
    }

    fn find(&self, address: u64, len: u64, is_allowed: impl Fn(Access) -> bool) -> Option<Range> {
        let table = self.table.load();
        let after = table.partition_point(|entry| entry.base <= address);
        let entry = table.get(after.checked_sub(1)?)?;
        let offset = usize::try_from(address - entry.base).ok()?;
        let len = usize::try_from(len).ok()?;
        let is_sound = entry.memory.has(offset, len) && is_allowed(entry.access);
        is_sound.then(|| Range { memory: entry.memory.clone(), offset, len })
    }
}

/// Why a region was not registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// The name is empty or longer than 255 bytes. The caller's mistake.
    #[error("the name of a region has 1 to {NAME_BYTES_MAX} bytes, this one has {bytes}")]
    Name {
        /// How many it has.
        bytes: usize,
    },
    /// A region of this name is registered. The caller's mistake.
    #[error("a region named {name} is registered already")]
    Taken {
        /// The name.
        name: String,
    },
    /// As many regions as are allowed. Retryable when some are deregistered.
    #[error("{regions} regions are registered, which is the limit")]
    Full {
        /// How many.
        regions: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(len: usize) -> MemoryRegion {
        MemoryRegion::allocate(len).unwrap()
    }

    #[test]
    fn only_ranges_within_one_region_are_found_and_only_by_those_who_may() {
        let regions = Regions::new(7, 8);
        let (a, b) = (memory(100), memory(1 << 20));
        let a = regions.register("a", a, Access::Read).unwrap();
        let b = regions.register("b", b, Access::Local).unwrap();
        assert_eq!(regions.remote(a.base() + 40, 60, RemoteAccess::Read).unwrap().offset(), 40);
        assert!(regions.remote(a.base() + 40, 61, RemoteAccess::Read).is_none());
        assert!(regions.remote(a.base(), 1, RemoteAccess::Write).is_none());
        assert!(regions.remote(b.base(), 1, RemoteAccess::Read).is_none());
        assert!(regions.local(b.base(), 1 << 20).is_some());
        assert!(regions.local(a.base() - 1, 1).is_none());
        for address in [0, a.base() + 100, b.base() + (1 << 20), u64::MAX] {
            assert!(regions.local(address, 1).is_none());
        }
        assert!(regions.remote(a.base(), u64::MAX, RemoteAccess::Read).is_none());
    }

    #[test]
    fn addresses_are_not_used_twice_and_names_are() {
        let regions = Regions::new(u64::MAX, 2);
        let first = regions.register("a", memory(1), Access::ReadWrite).unwrap();
        assert_eq!(
            regions.register("a", memory(1), Access::Read).unwrap_err(),
            RegisterError::Taken { name: "a".to_owned() }
        );
        assert!(regions.deregister(first.base()) && !regions.deregister(first.base()));
        assert!(regions.local(first.base(), 1).is_none());
        let second = regions.register("a", memory(1), Access::ReadWrite).unwrap();
        assert!(second.base() > first.base());
    }

    #[test]
    fn the_number_of_regions_and_their_names_are_bounded() {
        let regions = Regions::new(1, 1);
        regions.register("a", memory(1), Access::Local).unwrap();
        let full = regions.register("b", memory(1), Access::Local).unwrap_err();
        assert_eq!(full, RegisterError::Full { regions: 1 });
        assert_eq!(
            regions.register("", memory(1), Access::Local).unwrap_err(),
            RegisterError::Name { bytes: 0 }
        );
    }
}

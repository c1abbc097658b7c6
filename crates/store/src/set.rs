//! `Set`: the set type, as sorted integers, as packed members, or as a hash table.
//!
//! Owns: the three encodings ("intset", "listpack", "hashtable"), the moments of conversion (those of Redis 7.2's
//! `t_set.c`; none leads back to a smaller one), and random choice. Does **not** own set algebra, which needs several sets and is the
//! commands', nor the key: an empty set is the keyspace's to delete.

#[cfg(test)]
mod tests;

use towline_sansio::Prng;

use crate::block::Kind;
use crate::hasher::hash64;
use crate::intset;
use crate::limits::EncodingLimits;
use crate::packed::{Elem, ElemBuf, Encoded, PACKED_BYTES_MAX, PACKED_COUNT_MAX, Packed};
use crate::sample;
use crate::table::{Position, Table};
use crate::thin::ThinKey;

#[derive(Debug)]
enum Repr {
    /// Packed members or, when its kind says so, the integers of an intset. One variant, since two would widen the enum.
    Small(Packed),
    Table(Box<Members>),
}

/// A table of members with the sum of their heap bytes.
#[derive(Debug, Default)]
struct Members {
    table: Table<ThinKey>,
    item_bytes: usize,
}

impl Members {
    fn insert(&mut self, hash: u64, member: &[u8]) {
        let item = ThinKey::new(member);
        self.item_bytes += item.mem_bytes();
        self.table.insert(hash, item);
    }

    fn add(&mut self, member: &[u8]) -> bool {
        let hash = hash64(member);
        let is_new = self.table.get(hash, member).is_none();
        if is_new {
            self.insert(hash, member);
        }
        is_new
    }

    fn remove(&mut self, member: &[u8]) -> bool {
        let removed = self.table.remove(hash64(member), member);
        self.item_bytes -= removed.as_ref().map_or(0, ThinKey::mem_bytes);
        removed.is_some()
    }
}

/// A set of byte strings. Tests of membership and changes are O(1) in the table, O(log n) among integers and O(n) in a
/// listpack, which the limits keep small.
#[derive(Debug)]
pub struct Set {
    repr: Repr,
}

const _: () = assert!(size_of::<Set>() == 16, "sets lie inline in the keyspace's entries");

impl Default for Set {
    fn default() -> Self {
        Self::new()
    }
}

impl Set {
    /// An empty set that starts as sorted integers, and stays so as long as its members allow.
    pub fn new() -> Self {
        Self { repr: Repr::Small(Packed::with_kind(Kind::Int16)) }
    }

    /// An empty set in the encoding that Redis chooses for a first member and a number of members to come.
    pub fn for_first(first: &[u8], count: usize, limits: &EncodingLimits) -> Self {
        if count <= limits.set_max_intset_entries && Elem::Bytes(first).as_int().is_some() {
            Self::new()
        } else if count <= limits.set_max_listpack_entries {
            Self { repr: Repr::Small(Packed::new()) }
        } else {
            Self { repr: Repr::Table(Box::default()) }
        }
    }

    /// The set of these members, as the commands with a destination build it (`SUNIONSTORE` and its like).
    pub fn from_members<'m, E: Into<Elem<'m>>>(
        members: impl IntoIterator<Item = E>,
        limits: &EncodingLimits,
    ) -> Self {
        let mut set = Self::new();
        for member in members {
            set.add(member, limits);
        }
        set
    }

    /// The answer of `OBJECT ENCODING`: "intset", "listpack" or "hashtable".
    pub fn encoding(&self) -> &'static str {
        match &self.repr {
            Repr::Small(small) if is_intset(small) => "intset",
            Repr::Small(_) => "listpack",
            Repr::Table(_) => "hashtable",
        }
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        match &self.repr {
            Repr::Small(small) => small.len(),
            Repr::Table(members) => members.table.len(),
        }
    }

    /// Whether there is no member: then the key has to go.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes on the heap. O(1).
    pub fn mem_bytes(&self) -> usize {
        match &self.repr {
            Repr::Small(small) => small.mem_bytes(),
            Repr::Table(members) => size_of::<Members>() + members.table.mem_bytes() + members.item_bytes,
        }
    }

    /// Work that freeing the set costs, in allocations: large ones are better freed off the path.
    pub fn free_effort(&self) -> usize {
        match &self.repr {
            Repr::Small(_) => 1,
            Repr::Table(members) => members.table.len(),
        }
    }

    /// The packed entries of a "listpack": for DUMP, which copies them.
    pub fn packed(&self) -> Option<&Packed> {
        match &self.repr {
            Repr::Small(small) if !is_intset(small) => Some(small),
            Repr::Small(_) | Repr::Table(_) => None,
        }
    }

    /// Whether `member` is in the set.
    pub fn contains<'m>(&self, member: impl Into<Elem<'m>>) -> bool {
        let member = member.into();
        match &self.repr {
            Repr::Small(small) if is_intset(small) => {
                member.as_int().is_some_and(|int| intset::contains(small.block(), int))
            }
            Repr::Small(small) => {
                small.first().is_some_and(|first| small.find(&Encoded::new(member), first, 1).is_some())
            }
            Repr::Table(members) => {
                let mut buf = ElemBuf::new();
                let member = member.render(&mut buf);
                members.table.get(hash64(member), member).is_some()
            }
        }
    }

    /// Adds a member; answers whether it is new.
    pub fn add<'m>(&mut self, member: impl Into<Elem<'m>>, limits: &EncodingLimits) -> bool {
        let member = member.into();
        match &mut self.repr {
            Repr::Small(small) if is_intset(small) => {
                if let Some(int) = member.as_int() {
                    let is_new = intset::add(small.block_mut(), int);
                    if small.len() > limits.set_max_intset_entries.min(PACKED_COUNT_MAX - 1) {
                        self.become_table();
                    }
                    return is_new;
                }
                self.leave_intset(member.len(), limits);
                self.add(member, limits)
            }
            Repr::Small(small) => {
                let encoded = Encoded::new(member);
                if small.first().is_some_and(|first| small.find(&encoded, first, 1).is_some()) {
                    return false;
                }
                if fits_listpack(small.len(), small.byte_len(), member.len(), limits) {
                    small.insert(small.end(), &encoded);
                } else {
                    self.become_table().add(member.render(&mut ElemBuf::new()));
                }
                true
            }
            Repr::Table(members) => members.add(member.render(&mut ElemBuf::new())),
        }
    }

    /// Adds members as one `SADD` does, which judges the encoding by their number first; returns how many are new.
    pub fn add_all<'m>(
        &mut self,
        members: impl ExactSizeIterator<Item = &'m [u8]> + Clone,
        limits: &EncodingLimits,
    ) -> usize {
        let count = members.len();
        if self.is_empty() {
            let Some(first) = members.clone().next() else { return 0 };
            *self = Self::for_first(first, count, limits);
        } else if let Repr::Small(small) = &self.repr {
            let most = if is_intset(small) {
                limits.set_max_intset_entries
            } else {
                limits.set_max_listpack_entries
            };
            if count > most {
                self.become_table();
            }
        }
        members.filter(|member| self.add(*member, limits)).count()
    }

    /// Removes a member; answers whether it was there.
    pub fn remove<'m>(&mut self, member: impl Into<Elem<'m>>) -> bool {
        let member = member.into();
        match &mut self.repr {
            Repr::Small(small) if is_intset(small) => {
                member.as_int().is_some_and(|int| intset::remove(small.block_mut(), int))
            }
            Repr::Small(small) => {
                let found = small.first().and_then(|first| small.find(&Encoded::new(member), first, 1));
                if let Some(pos) = found {
                    small.remove(pos, 1);
                }
                found.is_some()
            }
            Repr::Table(members) => members.remove(member.render(&mut ElemBuf::new())),
        }
    }

    /// All members: ascending among integers, in order of addition in a listpack, in no particular order in a table.
    pub fn iter(&self) -> impl Iterator<Item = Elem<'_>> + '_ {
        let (small, table) = match &self.repr {
            Repr::Small(small) => (Some(small), None),
            Repr::Table(members) => (None, Some(members)),
        };
        let ints = small.filter(|small| is_intset(small));
        let packed = small.filter(|small| !is_intset(small));
        let ints = ints.into_iter().flat_map(|small| intset::iter(small.block())).map(Elem::Int);
        let packed = packed.into_iter().flatten();
        let table = table.into_iter().flat_map(|members| members.table.iter());
        ints.chain(packed).chain(table.map(|item| Elem::Bytes(item.key_bytes())))
    }

    /// Visits members from `cursor` on and returns the cursor for the next call (`SSCAN`): 0 starts and ends. Small
    /// encodings visit everything at once; a table visits about `count`.
    pub fn scan(&self, cursor: u64, count: usize, visit: &mut dyn FnMut(Elem<'_>)) -> u64 {
        match &self.repr {
            Repr::Small(_) => {
                self.iter().for_each(visit);
                0
            }
            Repr::Table(members) => {
                members.table.scan(cursor, count, &mut |item| visit(Elem::Bytes(item.key())))
            }
        }
    }

    /// Visits the members that the walk has not passed, until `visit` answers `false`; small encodings are visited to their
    /// end.
    pub(crate) fn walk(&self, position: &mut Position, visit: &mut dyn FnMut(&[u8]) -> bool) {
        match &self.repr {
            Repr::Table(members) => members.table.walk(position, &mut |_, item| visit(item.key())),
            Repr::Small(_) => {
                let mut buf = ElemBuf::new();
                for member in self.iter() {
                    let member = member.render(&mut buf);
                    if !position.has_passed(hash64(member)) {
                        visit(member);
                    }
                }
                *position = Position::done();
            }
        }
    }

    /// Whether the members are in a table.
    pub(crate) fn is_table(&self) -> bool {
        matches!(self.repr, Repr::Table(_))
    }

    /// A member, each as likely as any other.
    pub fn random(&self, rng: &mut Prng) -> Option<Elem<'_>> {
        match &self.repr {
            Repr::Small(small) => {
                let index = rng.below(small.len() as u64) as usize;
                if is_intset(small) {
                    intset::get(small.block(), index).map(Elem::Int)
                } else {
                    small.get(index)
                }
            }
            Repr::Table(members) => {
                members.table.random(rng.next_u64()).map(|item| Elem::Bytes(item.key_bytes()))
            }
        }
    }

    /// `count` members chosen independently, so with repetitions (`SRANDMEMBER` with a negative count). Nothing when the set is
    /// empty.
    pub fn draw(&self, count: usize, rng: &mut Prng, visit: &mut dyn FnMut(Elem<'_>)) {
        // A listpack is walked once instead of once per draw.
        let listed: Vec<Elem<'_>> = match &self.repr {
            Repr::Small(small) if !is_intset(small) => small.iter().collect(),
            _ => Vec::new(),
        };
        for _ in 0..count {
            let chosen = match listed.get(rng.below(listed.len() as u64) as usize) {
                Some(&member) => Some(member),
                None => self.random(rng),
            };
            match chosen {
                Some(member) => visit(member),
                None => return,
            }
        }
    }

    /// `count` different members, or all if there are fewer; each subset is as likely as any other.
    pub fn sample(&self, count: usize, rng: &mut Prng) -> Vec<Elem<'_>> {
        if let Repr::Table(members) = &self.repr {
            let drawn = sample::draw_distinct(self.len(), count, || {
                let member = members.table.random(rng.next_u64())?.key_bytes();
                Some((member.as_ptr() as usize, Elem::Bytes(member)))
            });
            if let Some(drawn) = drawn {
                return drawn;
            }
        }
        sample::select(self.iter(), self.len(), count, rng)
    }

    /// Takes a random member out (`SPOP`).
    pub fn pop_random(&mut self, rng: &mut Prng) -> Option<Vec<u8>> {
        let member = self.random(rng)?.to_vec();
        self.remove(&member[..]);
        Some(member)
    }

    /// Takes `count` random members out, or all if there are fewer (`SPOP` with a count).
    pub fn pop_sample(&mut self, count: usize, rng: &mut Prng) -> Vec<Vec<u8>> {
        let members: Vec<_> = self.sample(count, rng).into_iter().map(Elem::to_vec).collect();
        if members.len() == self.len() {
            *self = Self::new();
        } else {
            members.iter().for_each(|member| {
                self.remove(&member[..]);
            });
        }
        members
    }

    /// Turns the intset into a listpack, or into a table if with one more member of this length it would be too large.
    fn leave_intset(&mut self, member_len: usize, limits: &EncodingLimits) {
        let Repr::Small(small) = &self.repr else { return };
        let count = small.len();
        let extremes = [intset::get(small.block(), 0), intset::get(small.block(), count.saturating_sub(1))];
        let widest = extremes.into_iter().flatten().map(|int| Elem::Int(int).len()).max().unwrap_or(0);
        let longest = widest.max(member_len);
        if fits_listpack(count, count.saturating_mul(widest), longest, limits) {
            self.repr = Repr::Small(self.iter().collect());
        } else {
            self.become_table();
        }
    }

    /// Moves all members into a table, unless they are in one.
    fn become_table(&mut self) -> &mut Members {
        if let Repr::Small(_) = &self.repr {
            let mut members = Box::<Members>::default();
            let mut buf = ElemBuf::new();
            for member in self.iter() {
                let member = member.render(&mut buf);
                members.insert(hash64(member), member);
            }
            self.repr = Repr::Table(members);
        }
        match &mut self.repr {
            Repr::Table(members) => members,
            Repr::Small(_) => unreachable!("invariant: the representation was just replaced"),
        }
    }
}

impl Clone for Set {
    fn clone(&self) -> Self {
        match &self.repr {
            Repr::Small(small) => Self { repr: Repr::Small(small.clone()) },
            Repr::Table(members) => {
                let mut copy = Box::<Members>::default();
                for item in members.table.iter() {
                    copy.insert(hash64(item.key()), item.key());
                }
                Self { repr: Repr::Table(copy) }
            }
        }
    }
}

fn is_intset(small: &Packed) -> bool {
    matches!(small.kind(), Kind::Int16 | Kind::Int32 | Kind::Int64)
}

/// Whether a listpack of `count` members in `bytes` bytes takes one more of length `len`.
fn fits_listpack(count: usize, bytes: usize, len: usize, limits: &EncodingLimits) -> bool {
    count < limits.set_max_listpack_entries.min(PACKED_COUNT_MAX)
        && len <= limits.set_max_listpack_value
        && bytes.saturating_add(len) < PACKED_BYTES_MAX
}

//! `Hash`: the hash type, as packed pairs, as packed triples with expiries, or as a hash table.
//!
//! Owns: the three encodings ("listpack", "listpackex", "hashtable"), the moments of conversion (those of Redis 7.2's `t_hash.c`, and
//! 7.4's for expiring fields; none leads back to a smaller one), the fields' expiries and random choice. Does **not** own time, nor
//! the key: a hash without fields is the keyspace's to delete.
//!
//! **Expiry contract.** No function here compares an expiry with the present. Before any access to a hash the keyspace calls
//! [`Hash::expire_due`], after which no field that is left has expired. Its cost is that of removing the due fields: nothing
//! (one comparison) in almost all calls, and O(k log n) when k fields fell due since the last access. With a million of
//! them that is a noticeable pause, which the periodic expiry, bounded by its `max`, makes unlikely.

mod fields;

#[cfg(test)]
mod tests;

use towline_sansio::Prng;

use self::fields::Fields;
use crate::block::Kind;
pub use crate::hasher::hash64;
use crate::limits::EncodingLimits;
use crate::packed::{Elem, ElemBuf, Encoded, PACKED_BYTES_MAX, PACKED_COUNT_MAX, Packed, Pos};
use crate::sample;
use crate::table::Position;

/// Entries of one field in a listpack without expiries: name, value.
const PLAIN_STEP: usize = 2;
/// Entries of one field in a listpack with expiries: name, value, expiry or 0.
const EXPIRING_STEP: usize = 3;

/// One field of a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// Its name.
    pub name: Elem<'a>,
    /// Its value.
    pub value: Elem<'a>,
    /// When it expires, in unix milliseconds, if it does.
    pub expires_at_ms: Option<u64>,
}

/// What becomes of a field's expiry when its value is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldExpiry {
    /// The field no longer expires (`HSET`).
    Clear,
    /// It expires as before (`HINCRBY`, `HSETEX … KEEPTTL`).
    Keep,
}

#[derive(Debug, Clone)]
enum Repr {
    /// Pairs or, when its kind says so, triples sorted by expiry with those that do not expire last. One variant, since two would widen
    /// the enum.
    Packed(Packed),
    Table(Box<Fields>),
}

/// A map from field to value, both byte strings. Access is O(1) in the table and O(n) in a listpack, which the limits
/// keep small. See the module's description for expiry.
#[derive(Debug, Clone)]
pub struct Hash {
    repr: Repr,
}

const _: () = assert!(size_of::<Hash>() == 16, "hashes lie inline in the keyspace's entries");

impl Default for Hash {
    fn default() -> Self {
        Self::new()
    }
}

impl Hash {
    /// An empty hash; allocates nothing.
    pub fn new() -> Self {
        Self { repr: Repr::Packed(Packed::new()) }
    }

    /// The answer of `OBJECT ENCODING`: "listpack", "listpackex" or "hashtable".
    pub fn encoding(&self) -> &'static str {
        match &self.repr {
            Repr::Packed(packed) if is_expiring(packed) => "listpackex",
            Repr::Packed(_) => "listpack",
            Repr::Table(_) => "hashtable",
        }
    }

    /// Number of fields.
    pub fn len(&self) -> usize {
        match &self.repr {
            Repr::Packed(packed) => packed.len() / step(packed),
            Repr::Table(fields) => fields.len(),
        }
    }

    /// Whether there is no field: then the key has to go.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes on the heap. O(1).
    pub fn mem_bytes(&self) -> usize {
        match &self.repr {
            Repr::Packed(packed) => packed.mem_bytes(),
            Repr::Table(fields) => fields.mem_bytes(),
        }
    }

    /// Work that freeing the hash costs, in allocations: large ones are better freed off the path.
    pub fn free_effort(&self) -> usize {
        match &self.repr {
            Repr::Packed(_) => 1,
            Repr::Table(fields) => fields.len(),
        }
    }

    /// The packed entries of a "listpack" (name, value) or a "listpackex" (name, value, expiry or 0): for DUMP, which copies
    /// them.
    pub fn packed(&self) -> Option<&Packed> {
        match &self.repr {
            Repr::Packed(packed) => Some(packed),
            Repr::Table(_) => None,
        }
    }

    /// The value of a field.
    pub fn get(&self, name: &[u8]) -> Option<Elem<'_>> {
        match &self.repr {
            Repr::Packed(packed) => packed.next(find(packed, name)?).map(|pos| packed.at(pos)),
            Repr::Table(fields) => fields.get(name).map(|field| field.value),
        }
    }

    /// A field with value and expiry.
    pub fn field(&self, name: &[u8]) -> Option<Field<'_>> {
        match &self.repr {
            Repr::Packed(packed) => Some(field_at(packed, find(packed, name)?)),
            Repr::Table(fields) => fields.get(name),
        }
    }

    /// Whether there is such a field.
    pub fn contains(&self, name: &[u8]) -> bool {
        match &self.repr {
            Repr::Packed(packed) => find(packed, name).is_some(),
            Repr::Table(fields) => fields.get(name).is_some(),
        }
    }

    /// Sets a field; answers whether it is new.
    pub fn set(&mut self, name: &[u8], value: &[u8], old_expiry: OldExpiry, limits: &EncodingLimits) -> bool {
        self.before_growth(std::iter::once((name, value)), limits);
        let is_new = self.put(name, value, old_expiry);
        self.after_growth(limits);
        is_new
    }

    /// Sets fields as one `HSET` does, which judges the encoding by their number and lengths first; their expiries are
    /// cleared. Returns how many are new.
    pub fn set_all<'v>(
        &mut self,
        pairs: impl ExactSizeIterator<Item = (&'v [u8], &'v [u8])> + Clone,
        limits: &EncodingLimits,
    ) -> usize {
        self.before_growth(pairs.clone(), limits);
        let mut added = 0;
        for (name, value) in pairs {
            added += usize::from(self.put(name, value, OldExpiry::Clear));
            self.after_growth(limits);
        }
        added
    }

    /// Removes a field; answers whether it was there.
    pub fn remove(&mut self, name: &[u8]) -> bool {
        match &mut self.repr {
            Repr::Packed(packed) => {
                let found = find(packed, name);
                if let Some(pos) = found {
                    packed.remove(pos, step(packed));
                }
                found.is_some()
            }
            Repr::Table(fields) => fields.remove(name),
        }
    }

    /// All fields: in order of addition in a listpack, by expiry in a "listpackex", in no particular order in a table.
    pub fn iter(&self) -> impl Iterator<Item = Field<'_>> + '_ {
        let (packed, table) = match &self.repr {
            Repr::Packed(packed) => (Some(packed), None),
            Repr::Table(fields) => (None, Some(fields)),
        };
        let packed = packed.into_iter().flat_map(|packed| {
            let (mut entries, expires) = (packed.iter(), is_expiring(packed));
            std::iter::from_fn(move || {
                let (name, value) = (entries.next()?, entries.next()?);
                let expires_at_ms = if expires { expiry_of(entries.next()?) } else { None };
                Some(Field { name, value, expires_at_ms })
            })
        });
        packed.chain(table.into_iter().flat_map(|fields| fields.iter()))
    }

    /// Visits fields from `cursor` on and returns the cursor for the next call (`HSCAN`): 0 starts and ends. Packed
    /// encodings visit everything at once; a table visits about `count`.
    pub fn scan(&self, cursor: u64, count: usize, visit: &mut dyn FnMut(Field<'_>)) -> u64 {
        match &self.repr {
            Repr::Packed(_) => {
                self.iter().for_each(visit);
                0
            }
            Repr::Table(fields) => fields.scan(cursor, count, visit),
        }
    }

    /// Visits the fields that the walk has not passed, until `visit` answers `false`; a listpack is visited to its end.
    pub(crate) fn walk(&self, position: &mut Position, visit: &mut dyn FnMut(Field<'_>) -> bool) {
        match &self.repr {
            Repr::Table(fields) => fields.walk(position, visit),
            Repr::Packed(_) => {
                let mut buf = ElemBuf::new();
                for field in self.iter() {
                    if !position.has_passed(hash64(field.name.render(&mut buf))) {
                        visit(field);
                    }
                }
                *position = Position::done();
            }
        }
    }

    /// Calls `visit` with the name of each field whose expiry is `now_ms` or earlier.
    pub(crate) fn for_each_due(&self, now_ms: u64, visit: &mut dyn FnMut(&[u8])) {
        match &self.repr {
            Repr::Table(fields) => fields.for_each_due(now_ms, visit),
            Repr::Packed(_) => {
                let mut buf = ElemBuf::new();
                let due = |field: &Field<'_>| field.expires_at_ms.is_some_and(|at_ms| at_ms <= now_ms);
                self.iter().filter(due).for_each(|field| visit(field.name.render(&mut buf)));
            }
        }
    }

    /// A field, each as likely as any other.
    pub fn random(&self, rng: &mut Prng) -> Option<Field<'_>> {
        match &self.repr {
            Repr::Packed(packed) => {
                let index = rng.below(self.len() as u64) as usize * step(packed);
                packed.seek(index).map(|pos| field_at(packed, pos))
            }
            Repr::Table(fields) => fields.random(rng),
        }
    }

    /// `count` fields chosen independently, so with repetitions (`HRANDFIELD` with a negative count). Nothing when the hash is
    /// empty.
    pub fn draw(&self, count: usize, rng: &mut Prng, visit: &mut dyn FnMut(Field<'_>)) {
        // A listpack is walked once instead of once per draw.
        let listed: Vec<Field<'_>> = match &self.repr {
            Repr::Packed(_) => self.iter().collect(),
            Repr::Table(_) => Vec::new(),
        };
        for _ in 0..count {
            let chosen = match listed.get(rng.below(listed.len() as u64) as usize) {
                Some(&field) => Some(field),
                None => self.random(rng),
            };
            match chosen {
                Some(field) => visit(field),
                None => return,
            }
        }
    }

    /// `count` different fields, or all if there are fewer; each subset is as likely as any other.
    pub fn sample(&self, count: usize, rng: &mut Prng) -> Vec<Field<'_>> {
        if let Repr::Table(fields) = &self.repr
            && let Some(drawn) = fields.draw_distinct(count, rng)
        {
            return drawn;
        }
        sample::select(self.iter(), self.len(), count, rng)
    }

    /// When a field expires: `None` without such a field, `Some(None)` for one that does not expire.
    pub fn expires_at_ms(&self, name: &[u8]) -> Option<Option<u64>> {
        self.field(name).map(|field| field.expires_at_ms)
    }

    /// Lets a field expire at `at_ms` (unix milliseconds, at least 1); answers whether there is such a field. A time that
    /// has passed is legal: the next [`Hash::expire_due`] removes the field.
    pub fn set_expires_at_ms(&mut self, name: &[u8], at_ms: u64) -> bool {
        if !self.contains(name) {
            return false;
        }
        if let Repr::Packed(packed) = &self.repr
            && !is_expiring(packed)
        {
            self.become_expiring();
        }
        self.change_expiry(name, Some(at_ms.clamp(1, i64::MAX as u64)))
    }

    /// Lets a field no longer expire (`HPERSIST`); answers whether it would have.
    pub fn persist(&mut self, name: &[u8]) -> bool {
        self.expires_at_ms(name).flatten().is_some() && self.change_expiry(name, None)
    }

    /// When the next field expires, in unix milliseconds. O(1) packed, O(log n) in a table.
    pub fn next_expiry_ms(&self) -> Option<u64> {
        match &self.repr {
            Repr::Packed(packed) if is_expiring(packed) => field_at(packed, packed.first()?).expires_at_ms,
            Repr::Packed(_) => None,
            Repr::Table(fields) => fields.next_expiry_ms(),
        }
    }

    /// Number of fields that expire some time.
    pub fn expiring_len(&self) -> usize {
        match &self.repr {
            Repr::Packed(packed) if is_expiring(packed) => {
                self.iter().take_while(|field| field.expires_at_ms.is_some()).count()
            }
            Repr::Packed(_) => 0,
            Repr::Table(fields) => fields.expiring_len(),
        }
    }

    /// Removes at most `max` fields whose expiry is `now_ms` or earlier, the earliest first, and calls `removed` with each
    /// name; returns how many went.
    pub fn expire_due(&mut self, now_ms: u64, max: usize, removed: &mut dyn FnMut(&[u8])) -> usize {
        if self.next_expiry_ms().is_none_or(|at_ms| at_ms > now_ms) {
            return 0;
        }
        match &mut self.repr {
            Repr::Packed(packed) => {
                let mut buf = ElemBuf::new();
                let (mut due, mut pos) = (0, packed.first());
                while let Some(at) = pos.filter(|_| due < max) {
                    let field = field_at(packed, at);
                    if field.expires_at_ms.is_none_or(|at_ms| at_ms > now_ms) {
                        break;
                    }
                    removed(field.name.render(&mut buf));
                    due += 1;
                    pos = skip(packed, at, EXPIRING_STEP);
                }
                if let Some(first) = packed.first() {
                    packed.remove(first, due * EXPIRING_STEP);
                }
                due
            }
            Repr::Table(fields) => fields.expire_due(now_ms, max, removed),
        }
    }

    /// Becomes a table when these fields are too many or too long for a listpack.
    fn before_growth<'v>(
        &mut self,
        pairs: impl ExactSizeIterator<Item = (&'v [u8], &'v [u8])>,
        limits: &EncodingLimits,
    ) {
        let Repr::Packed(packed) = &self.repr else { return };
        let (count, mut bytes, mut longest) = (pairs.len(), packed.byte_len(), 0);
        for (name, value) in pairs {
            bytes = bytes.saturating_add(name.len() + value.len());
            longest = longest.max(name.len()).max(value.len());
        }
        if count > fields_max(limits) || longest > limits.hash_max_listpack_value || bytes >= PACKED_BYTES_MAX
        {
            self.become_table();
        }
    }

    /// Becomes a table when a listpack has too many fields.
    fn after_growth(&mut self, limits: &EncodingLimits) {
        if let Repr::Packed(packed) = &self.repr
            && packed.len() / step(packed) > fields_max(limits)
        {
            self.become_table();
        }
    }

    fn put(&mut self, name: &[u8], value: &[u8], old_expiry: OldExpiry) -> bool {
        let packed = match &mut self.repr {
            Repr::Table(fields) => return fields.set(name, value, old_expiry),
            Repr::Packed(packed) => packed,
        };
        match find(packed, name) {
            None => {
                packed.push_back(name);
                packed.push_back(value);
                if is_expiring(packed) {
                    packed.push_back(0);
                }
                true
            }
            Some(pos) => {
                if let Some(value_pos) = packed.next(pos) {
                    packed.replace(value_pos, &Encoded::new(value));
                }
                if old_expiry == OldExpiry::Clear && field_at(packed, pos).expires_at_ms.is_some() {
                    self.change_expiry(name, None);
                }
                false
            }
        }
    }

    /// Sets or clears the expiry of a field that exists, in an encoding that has expiries.
    fn change_expiry(&mut self, name: &[u8], at_ms: Option<u64>) -> bool {
        let packed = match &mut self.repr {
            Repr::Table(fields) => return fields.set_expires_at_ms(name, at_ms),
            Repr::Packed(packed) => packed,
        };
        let Some(pos) = find(packed, name) else { return false };
        let value = packed.next(pos).map(|pos| packed.at(pos).to_vec()).unwrap_or_default();
        packed.remove(pos, EXPIRING_STEP);
        // Behind those that expire no later, and those that never do come last.
        let mut to = packed.first();
        while let Some(at) = to {
            let there = field_at(packed, at).expires_at_ms.unwrap_or(u64::MAX);
            if there > at_ms.unwrap_or(u64::MAX) {
                break;
            }
            to = skip(packed, at, EXPIRING_STEP);
        }
        let to = to.unwrap_or_else(|| packed.end());
        // Each insertion pushes the one before it back, so the last entry goes first.
        packed.insert(to, &Encoded::new(at_ms.map_or(0, |at_ms| at_ms as i64)));
        packed.insert(to, &Encoded::new(&value[..]));
        packed.insert(to, &Encoded::new(name));
        true
    }

    /// Turns pairs into triples.
    fn become_expiring(&mut self) {
        let mut triples = Packed::with_kind(Kind::Expiring);
        for field in self.iter() {
            triples.push_back(field.name);
            triples.push_back(field.value);
            triples.push_back(0);
        }
        self.repr = Repr::Packed(triples);
    }

    fn become_table(&mut self) {
        let mut fields = Box::<Fields>::default();
        let (mut name_buf, mut value_buf) = (ElemBuf::new(), ElemBuf::new());
        for field in self.iter() {
            fields.insert(
                field.name.render(&mut name_buf),
                field.value.render(&mut value_buf),
                field.expires_at_ms,
            );
        }
        self.repr = Repr::Table(fields);
    }
}

/// Most fields of a listpack, also of one whose fields all expire.
fn fields_max(limits: &EncodingLimits) -> usize {
    limits.hash_max_listpack_entries.min(PACKED_COUNT_MAX / EXPIRING_STEP - 1)
}

fn is_expiring(packed: &Packed) -> bool {
    packed.kind() == Kind::Expiring
}

/// Entries per field.
fn step(packed: &Packed) -> usize {
    if is_expiring(packed) { EXPIRING_STEP } else { PLAIN_STEP }
}

/// Where a field's name is.
fn find(packed: &Packed, name: &[u8]) -> Option<Pos> {
    packed.find(&Encoded::new(name), packed.first()?, step(packed))
}

/// The entry `count` entries after `pos`.
fn skip(packed: &Packed, pos: Pos, count: usize) -> Option<Pos> {
    (0..count).try_fold(pos, |pos, _| packed.next(pos))
}

/// The field whose name is at `pos`.
fn field_at(packed: &Packed, pos: Pos) -> Field<'_> {
    let value = packed.next(pos).expect("invariant: a value follows every name");
    let expiry = if is_expiring(packed) { packed.next(value) } else { None };
    Field {
        name: packed.at(pos),
        value: packed.at(value),
        expires_at_ms: expiry.and_then(|pos| expiry_of(packed.at(pos))),
    }
}

/// The expiry that a triple's last entry means.
fn expiry_of(elem: Elem<'_>) -> Option<u64> {
    elem.as_int().and_then(|at_ms| u64::try_from(at_ms).ok()).filter(|&at_ms| at_ms > 0)
}

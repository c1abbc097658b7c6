//! `Fields`: a table of fields with an index of their expiries, the "hashtable" encoding of a hash.
//!
//! Owns: table, index and the sum of heap bytes, and that the index has exactly the fields that expire. Does **not** own the
//! decision to be a table: [`super::Hash`] does.

use std::collections::BTreeMap;

use towline_sansio::Prng;

use super::{Field, OldExpiry};
use crate::hasher::hash64;
use crate::packed::Elem;
use crate::sample;
use crate::table::{Position, Ref, Table};
use crate::thin::ThinPair;

/// Heap bytes that one entry of the expiry index is accounted with: 20 bytes in a B-tree node that is two thirds full.
const EXPIRY_BYTES: usize = 32;

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Fields {
    table: Table<ThinPair>,
    /// Heap bytes of all items.
    item_bytes: usize,
    /// How many fields there are for each expiry and hash of the name: one, but for a collision of all 64 bits.
    expiries: BTreeMap<(u64, u64), u32>,
}

impl Fields {
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    pub(super) fn mem_bytes(&self) -> usize {
        size_of::<Self>() + self.table.mem_bytes() + self.item_bytes + self.expiries.len() * EXPIRY_BYTES
    }

    pub(super) fn expiring_len(&self) -> usize {
        // Exact but for names that collide in all 64 bits of their hash and expire at the same time.
        self.expiries.len()
    }

    pub(super) fn get(&self, name: &[u8]) -> Option<Field<'_>> {
        self.table.get(hash64(name), name).map(|item| field(&item))
    }

    /// Adds a field that is absent.
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8], expires_at_ms: Option<u64>) {
        let hash = hash64(name);
        let item = ThinPair::new(name, value, expires_at_ms);
        self.item_bytes += item.mem_bytes();
        self.table.insert(hash, item);
        self.index(hash, expires_at_ms);
    }

    /// Sets a field; answers whether it is new.
    pub(super) fn set(&mut self, name: &[u8], value: &[u8], old_expiry: OldExpiry) -> bool {
        let hash = hash64(name);
        let Some(mut item) = self.table.get_mut(hash, name) else {
            self.insert(name, value, None);
            return true;
        };
        let bytes_before = item.mem_bytes();
        item.set_value(value);
        let cleared = if old_expiry == OldExpiry::Clear { item.expires_at_ms() } else { None };
        if cleared.is_some() {
            item.set_expires_at_ms(None);
        }
        self.item_bytes = self.item_bytes + item.mem_bytes() - bytes_before;
        drop(item);
        self.unindex(hash, cleared);
        false
    }

    pub(super) fn remove(&mut self, name: &[u8]) -> bool {
        let hash = hash64(name);
        let Some(item) = self.table.remove(hash, name) else { return false };
        self.item_bytes -= item.mem_bytes();
        self.unindex(hash, item.expires_at_ms());
        true
    }

    pub(super) fn set_expires_at_ms(&mut self, name: &[u8], at_ms: Option<u64>) -> bool {
        let hash = hash64(name);
        let Some(mut item) = self.table.get_mut(hash, name) else { return false };
        let (bytes_before, old) = (item.mem_bytes(), item.expires_at_ms());
        item.set_expires_at_ms(at_ms);
        self.item_bytes = self.item_bytes + item.mem_bytes() - bytes_before;
        drop(item);
        self.unindex(hash, old);
        self.index(hash, at_ms);
        true
    }

    pub(super) fn next_expiry_ms(&self) -> Option<u64> {
        self.expiries.first_key_value().map(|(&(at_ms, _), _)| at_ms)
    }

    pub(super) fn expire_due(&mut self, now_ms: u64, max: usize, removed: &mut dyn FnMut(&[u8])) -> usize {
        let mut count = 0;
        while count < max
            && let Some((&(at_ms, hash), _)) = self.expiries.first_key_value()
            && at_ms <= now_ms
        {
            let item = self.table.remove_hash_if(hash, |item| {
                item.expires_at_ms() == Some(at_ms) && hash64(item.key()) == hash
            });
            let item = item.expect("invariant: the index has only fields of the table");
            self.item_bytes -= item.mem_bytes();
            self.unindex(hash, Some(at_ms));
            removed(item.key());
            count += 1;
        }
        count
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Field<'_>> + '_ {
        self.table.iter().map(|item| field(&item))
    }

    pub(super) fn scan(&self, cursor: u64, count: usize, visit: &mut dyn FnMut(Field<'_>)) -> u64 {
        self.table.scan(cursor, count, &mut |item| {
            visit(Field {
                name: Elem::Bytes(item.key()),
                value: Elem::Bytes(item.value()),
                expires_at_ms: item.expires_at_ms(),
            });
        })
    }

    pub(super) fn walk(&self, position: &mut Position, visit: &mut dyn FnMut(Field<'_>) -> bool) {
        self.table.walk(position, &mut |_, item| {
            visit(Field {
                name: Elem::Bytes(item.key()),
                value: Elem::Bytes(item.value()),
                expires_at_ms: item.expires_at_ms(),
            })
        });
    }

    pub(super) fn for_each_due(&self, now_ms: u64, visit: &mut dyn FnMut(&[u8])) {
        for &(at_ms, hash) in self.expiries.keys().take_while(|&&(at_ms, _)| at_ms <= now_ms) {
            self.table.for_each_of_hash(hash, &mut |item| {
                if item.expires_at_ms() == Some(at_ms) {
                    visit(item.key());
                }
            });
        }
    }

    pub(super) fn random(&self, rng: &mut Prng) -> Option<Field<'_>> {
        self.table.random(rng.next_u64()).map(|item| field(&item))
    }

    /// `count` different fields, where drawing them by chance pays.
    pub(super) fn draw_distinct(&self, count: usize, rng: &mut Prng) -> Option<Vec<Field<'_>>> {
        sample::draw_distinct(self.len(), count, || {
            let item = self.table.random(rng.next_u64())?;
            Some((item.key_bytes().as_ptr() as usize, field(&item)))
        })
    }

    fn index(&mut self, hash: u64, expires_at_ms: Option<u64>) {
        if let Some(at_ms) = expires_at_ms {
            *self.expiries.entry((at_ms, hash)).or_default() += 1;
        }
    }

    fn unindex(&mut self, hash: u64, expires_at_ms: Option<u64>) {
        if let Some(at_ms) = expires_at_ms
            && let Some(count) = self.expiries.get_mut(&(at_ms, hash))
        {
            *count -= 1;
            if *count == 0 {
                self.expiries.remove(&(at_ms, hash));
            }
        }
    }
}

impl Clone for Fields {
    fn clone(&self) -> Self {
        let mut copy = Self::default();
        for item in self.table.iter() {
            copy.insert(item.key(), item.value(), item.expires_at_ms());
        }
        copy
    }
}

fn field<'a>(item: &Ref<'a, ThinPair>) -> Field<'a> {
    Field {
        name: Elem::Bytes(item.key_bytes()),
        value: Elem::Bytes(item.value_bytes()),
        expires_at_ms: item.expires_at_ms(),
    }
}

#[cfg(test)]
impl Fields {
    /// Compares the running sums and the index with the items.
    pub(super) fn assert_sums(&self) {
        let bytes: usize = self.table.iter().map(|item| item.mem_bytes()).sum();
        assert_eq!(self.item_bytes, bytes);
        let mut expiries = BTreeMap::new();
        for (at_ms, hash) in
            self.table.iter().filter_map(|item| Some((item.expires_at_ms()?, hash64(item.key()))))
        {
            *expiries.entry((at_ms, hash)).or_default() += 1;
        }
        assert_eq!(self.expiries, expiries);
    }
}

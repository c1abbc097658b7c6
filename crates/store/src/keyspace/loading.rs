//! Keys as they are read from a snapshot.
//!
//! Owns: putting a key with its value, expiry and access bits into a database that does not have it. Does **not** own reading
//! files, nor which keys are left out.
//!
//! Nothing is notified and nothing counts as changed; whoever listens to the slot is told.

use super::Keyspace;
use super::listening::Listening;
use crate::entry::Entry;
use crate::value::{Value, ValueRef};

impl Keyspace<'_> {
    /// Adds a string; `access` are its access bits (see [`Entry::access`]). `false` if the key is there, whether or not its
    /// time has come: then nothing happens.
    pub fn load_string(&mut self, key: &[u8], text: &[u8], expires_at_ms: Option<u64>, access: u32) -> bool {
        self.load_with(key, expires_at_ms, access, || Entry::string(key, text, expires_at_ms))
    }

    /// As [`Keyspace::load_string`], for any value.
    pub fn load_value(&mut self, key: &[u8], value: Value, expires_at_ms: Option<u64>, access: u32) -> bool {
        self.load_with(key, expires_at_ms, access, || Entry::value(key, value, expires_at_ms))
    }

    fn load_with(
        &mut self,
        key: &[u8],
        expires_at_ms: Option<u64>,
        access: u32,
        entry: impl FnOnce() -> Entry,
    ) -> bool {
        let (index, hash) = self.locate(key);
        if self.found(index, hash, key).is_some() {
            return false;
        }
        let (db, slot) = (self.db, self.slot_at(index));
        let listening = self.before_change(index, hash, key);
        let mut entry = entry();
        entry.set_access(access);
        let fields = match entry.value_ref() {
            ValueRef::Hash(hash) => hash.next_expiry_ms(),
            _ => None,
        };
        let part = self.guard_mut(index).db_mut(db);
        let len = part.table.len();
        part.table.insert(hash, entry);
        if let Some(at) = fields {
            part.index(at, hash);
            self.store.note_due(slot, at);
            self.store.count_field_expiry(db, slot, None, fields);
        }
        self.store.count_keys(db, slot, len, len + 1);
        self.reindex(index, slot, hash, None, expires_at_ms);
        if listening == Listening::Follows {
            self.record_state(index, hash, key);
        }
        self.wake(index, key);
        true
    }
}

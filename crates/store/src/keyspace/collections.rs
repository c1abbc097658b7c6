//! Typed access to collections.
//!
//! Owns: the three ways to a list, hash, set or sorted set. Does **not** own their operations.

use super::editing::{Editing, Log};
use super::listening::Listening;
use super::{Expiry, Keyspace, WrongType};
use crate::hash::Hash;
use crate::list::List;
use crate::set::Set;
use crate::slot::SlotData;
use crate::table::{Ref, RefMut};
use crate::value::{Value, ValueRef};
use crate::zset::Zset;

/// Access to a kind of collection: for reading, for writing, and for writing with creation.
macro_rules! collection {
    ($read:ident, $write:ident, $create:ident, $kind:ident, $type:ty, $into:ident) => {
        impl Keyspace<'_> {
            #[doc = concat!("The ", stringify!($read), " at `key`, for reading.")]
            pub fn $read(&mut self, key: &[u8]) -> Result<Option<&$type>, WrongType> {
                match self.read(key) {
                    None => Ok(None),
                    Some(ValueRef::$kind(value)) => Ok(Some(value)),
                    Some(_) => Err(WrongType),
                }
            }

            #[doc = concat!("The ", stringify!($read), " at `key`, for writing. Tell [`Keyspace::changed_or_emptied`].")]
            pub fn $write(&mut self, key: &[u8]) -> Result<Option<Editing<'_, $type>>, WrongType> {
                self.remember_fields(key);
                let Some((index, hash, listening)) = self.write(key) else { return Ok(None) };
                let Self { held, changes, db, .. } = self;
                let SlotData { tables, taps, .. } = &mut **held.guard_mut(index);
                let entry = tables.db_mut(*db).table.get_mut(hash, key);
                let Some(value) = entry.map(RefMut::$into) else { return Ok(None) };
                let value = value.ok_or(WrongType)?;
                let log = (listening != Listening::Nobody).then(|| Log {
                    effects: (listening == Listening::Follows).then_some(&mut changes.effects),
                    partials: Self::link(taps.as_deref_mut(), *db, hash, key),
                });
                Ok(Some(Editing { value, log }))
            }

            #[doc = concat!("The ", stringify!($read), " at `key`, for writing; created when the key is not there. Put \
                something in, and tell [`Keyspace::changed`].")]
            pub fn $create(&mut self, key: &[u8]) -> Result<Editing<'_, $type>, WrongType> {
                if !self.exists(key) {
                    self.set_value(key, Value::$kind(<$type>::new()), Expiry::Clear);
                }
                self.$write(key)?.ok_or(WrongType)
            }
        }
    };
}

collection!(list, list_mut, list_or_new, List, List, into_list);
collection!(hash, hash_mut, hash_or_new, Hash, Hash, into_hash);
collection!(set, set_mut, set_or_new, Set, Set, into_set);
collection!(zset, zset_mut, zset_or_new, Zset, Zset, into_zset);

impl Keyspace<'_> {
    /// Remembers when the hash's first field expires, before the hash is handed out for writing.
    pub(super) fn remember_fields(&mut self, key: &[u8]) {
        self.fields_before = match self.entry(key).map(Ref::value) {
            Some(ValueRef::Hash(fields)) => Some(fields.next_expiry_ms()),
            _ => None,
        };
    }
}

//! One key with its value: one heap block, owned by a pointer.
//!
//! Owns: the block's layout, and the encodings of strings. Does **not** own tables, expiry indices or what the access
//! bits mean (that is the eviction policy's). One of the files that may be unsafe: header, key, value or the value's
//! owner share one allocation, which is what the memory target of 140 B for 116 B of payload needs.
//!
//! ```text
//! offset 0   u32  bytes of an embedded string value, else 0
//!        4   u32  access bits (24), kind (4), flags (4)
//!        8   u32  bytes of the key
//! strings:   12   [u64 expiry] key, value
//! others:    16   16 bytes that own the value, [u64 expiry] key
//! ```

use crate::hash::Hash;
use crate::list::List;
use crate::number::parse_i64;
use crate::set::Set;
use crate::table::{Item, Ref, RefMut};
use crate::thin::{allocate, bytes, class_size, free, put, read, write};
use crate::value::{Kind, Str, Value, ValueRef, render_i64};
use crate::zset::Zset;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;

/// Strings up to this length live in the entry's block, so that a read is one copy out of one place; longer ones have a
/// block of their own that replies can share.
pub const EMBEDDED_BYTES_MAX: usize = 16 * 1024;
/// Bits of the access field: an LRU clock or an LFU counter.
pub const ACCESS_BITS: u32 = 24;
const ACCESS_MASK: u32 = (1 << ACCESS_BITS) - 1;
const KIND_SHIFT: u32 = ACCESS_BITS;
const EXPIRES: u32 = 1 << 31;
/// The string was changed in place, and Redis would call it "raw" whatever its length.
const MODIFIED: u32 = 1 << 30;
const STRING_HEADER: usize = 12;
const OWNER_AT: usize = 16;
const OWNER_HEADER: usize = 32;

/// How a block holds its value.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Form {
    Embedded,
    Int,
    Shared,
    List,
    Hash,
    Set,
    Zset,
}

impl Form {
    const ALL: [Self; 7] =
        [Self::Embedded, Self::Int, Self::Shared, Self::List, Self::Hash, Self::Set, Self::Zset];

    const fn header(self) -> usize {
        match self {
            Self::Embedded | Self::Int => STRING_HEADER,
            _ => OWNER_HEADER,
        }
    }
}

/// A key, its value and its expiry in one block.
#[repr(transparent)]
pub struct Entry {
    ptr: NonNull<u8>,
}

// SAFETY: the entry owns its block and the value in it alone; all values are `Send`.
unsafe impl Send for Entry {}
// SAFETY: a shared reference only reads, and all values are `Sync`.
unsafe impl Sync for Entry {}

// SAFETY: the owning pointer is handed over and back, and the key lies in the block.
unsafe impl Item for Entry {
    #[inline]
    fn into_raw(self) -> NonNull<u8> {
        ManuallyDrop::new(self).ptr
    }
    #[inline]
    unsafe fn from_raw(ptr: NonNull<u8>) -> Self {
        Self { ptr }
    }
    #[inline]
    fn key(&self) -> &[u8] {
        Self::key(self)
    }
}

const _: () = assert!(
    size_of::<List>() == 16 && size_of::<Hash>() == 16 && size_of::<Set>() == 16 && size_of::<Zset>() == 16
);

impl Entry {
    /// An entry for the string `value`, encoded as an integer when it is the canonical form of one.
    pub fn string(key: &[u8], value: &[u8], expires_at_ms: Option<u64>) -> Self {
        if value.len() > EMBEDDED_BYTES_MAX {
            return Self::shared(key, Arc::new(value.to_vec()), expires_at_ms);
        }
        match parse_i64(value) {
            Some(number) => Self::int(key, number, expires_at_ms),
            None => Self::embedded(key, value, expires_at_ms, 0),
        }
    }

    /// An entry for the integer `number`.
    pub fn int(key: &[u8], number: i64, expires_at_ms: Option<u64>) -> Self {
        let entry = Self::block(Form::Int, 0, key, expires_at_ms, 8);
        // SAFETY: the block has 8 bytes behind the key.
        unsafe { write(entry.ptr, entry.value_at(), number) };
        entry
    }

    /// An entry for `value`.
    pub fn value(key: &[u8], value: Value, expires_at_ms: Option<u64>) -> Self {
        match value {
            Value::Int(number) => Self::int(key, number, expires_at_ms),
            Value::Bytes(value) if value.len() <= EMBEDDED_BYTES_MAX => {
                Self::string(key, &value, expires_at_ms)
            }
            Value::Bytes(value) => Self::shared(key, Arc::new(value), expires_at_ms),
            Value::Shared(value) if value.len() <= EMBEDDED_BYTES_MAX => {
                Self::embedded(key, &value, expires_at_ms, MODIFIED)
            }
            Value::Shared(value) => Self::shared(key, value, expires_at_ms),
            Value::List(list) => Self::owner(Form::List, key, list, expires_at_ms),
            Value::Hash(hash) => Self::owner(Form::Hash, key, hash, expires_at_ms),
            Value::Set(set) => Self::owner(Form::Set, key, set, expires_at_ms),
            Value::Zset(zset) => Self::owner(Form::Zset, key, zset, expires_at_ms),
        }
    }

    fn embedded(key: &[u8], value: &[u8], expires_at_ms: Option<u64>, flags: u32) -> Self {
        let entry = Self::block(Form::Embedded, flags, key, expires_at_ms, value.len());
        // SAFETY: the block has `value.len()` bytes behind the key.
        unsafe { put(entry.ptr, entry.value_at(), value) };
        entry
    }

    fn shared(key: &[u8], value: Arc<Vec<u8>>, expires_at_ms: Option<u64>) -> Self {
        Self::owner(Form::Shared, key, value, expires_at_ms)
    }

    fn owner<T>(form: Form, key: &[u8], owner: T, expires_at_ms: Option<u64>) -> Self {
        const { assert!(size_of::<T>() <= 16 && align_of::<T>() <= 8) };
        let entry = Self::block(form, 0, key, expires_at_ms, 0);
        // SAFETY: the block has 16 bytes for the owner, aligned to 8; `drop` and `take_owner` match on the form.
        unsafe { entry.ptr.as_ptr().add(OWNER_AT).cast::<T>().write(owner) };
        entry
    }

    /// A block with header, expiry and key; the value is still to be written.
    fn block(form: Form, flags: u32, key: &[u8], expires_at_ms: Option<u64>, value_bytes: usize) -> Self {
        let key_len =
            u32::try_from(key.len()).expect("invariant: arguments are bounded by proto-max-bulk-len");
        let header = form.header();
        let key_at = header + if expires_at_ms.is_some() { 8 } else { 0 };
        let ptr = allocate(key_at + key.len() + value_bytes);
        let expires = if expires_at_ms.is_some() { EXPIRES } else { 0 };
        // SAFETY: the block is as long as header, expiry, key and value.
        unsafe {
            write(ptr, 0, value_bytes as u32);
            write(ptr, 4, ((form as u32) << KIND_SHIFT) | flags | expires);
            write(ptr, 8, key_len);
            if let Some(at) = expires_at_ms {
                write(ptr, header, at);
            }
            put(ptr, key_at, key);
        }
        Self { ptr }
    }

    #[inline]
    fn bits(&self) -> u32 {
        // SAFETY: written by `block`.
        unsafe { read(self.ptr, 4) }
    }

    #[inline]
    fn set_bits(&mut self, bits: u32) {
        // SAFETY: the header has the place.
        unsafe { write(self.ptr, 4, bits) }
    }

    #[inline]
    fn form(&self) -> Form {
        Form::ALL[((self.bits() >> KIND_SHIFT) & 7) as usize]
    }

    #[inline]
    fn is_string(&self) -> bool {
        (self.bits() >> KIND_SHIFT) & 7 <= Form::Shared as u32
    }

    #[inline]
    fn key_at(&self) -> usize {
        self.form().header() + if self.bits() & EXPIRES != 0 { 8 } else { 0 }
    }

    #[inline]
    fn key_len(&self) -> usize {
        // SAFETY: written by `block`.
        unsafe { read::<u32>(self.ptr, 8) as usize }
    }

    #[inline]
    fn value_len(&self) -> usize {
        // SAFETY: written by `block` or `set_string`.
        unsafe { read::<u32>(self.ptr, 0) as usize }
    }

    #[inline]
    fn value_at(&self) -> usize {
        self.key_at() + self.key_len()
    }

    fn block_bytes(&self) -> usize {
        self.value_at() + self.value_len()
    }

    /// The owner of the value.
    ///
    /// # Safety
    /// The form is that of a `T`.
    #[inline]
    unsafe fn owner_ref<T>(&self) -> &T {
        // SAFETY: `owner` wrote a `T` there, promised by the caller.
        unsafe { &*self.ptr.as_ptr().add(OWNER_AT).cast::<T>() }
    }

    /// # Safety
    /// As for `owner_ref`.
    #[inline]
    unsafe fn owner_mut<T>(&mut self) -> &mut T {
        // SAFETY: as above, and `self` is borrowed mutably.
        unsafe { &mut *self.ptr.as_ptr().add(OWNER_AT).cast::<T>() }
    }

    /// The key.
    #[inline]
    pub fn key(&self) -> &[u8] {
        // SAFETY: written by `block`, and the block lives as long as `self`.
        unsafe { bytes(self.ptr, self.key_at(), self.key_len()) }
    }

    /// What kind of value this is, in the words of `TYPE`.
    #[inline]
    pub fn kind(&self) -> Kind {
        match self.form() {
            Form::Embedded | Form::Int | Form::Shared => Kind::String,
            Form::List => Kind::List,
            Form::Hash => Kind::Hash,
            Form::Set => Kind::Set,
            Form::Zset => Kind::Zset,
        }
    }

    /// When the key expires, in unix milliseconds.
    #[inline]
    pub fn expires_at_ms(&self) -> Option<u64> {
        if self.bits() & EXPIRES == 0 {
            return None;
        }
        // SAFETY: the flag says that `block` wrote the expiry.
        Some(unsafe { read(self.ptr, self.form().header()) })
    }

    /// Sets or removes the expiry.
    pub fn set_expires_at_ms(&mut self, at_ms: Option<u64>) {
        match (self.bits() & EXPIRES != 0, at_ms) {
            // SAFETY: the flag says that the header has the place.
            (true, Some(at)) => unsafe { write(self.ptr, self.form().header(), at) },
            (false, None) => {}
            (true, None) | (false, Some(_)) => self.rebuild(at_ms),
        }
    }

    /// Moves everything into a block with, or without, room for an expiry.
    fn rebuild(&mut self, expires_at_ms: Option<u64>) {
        let form = self.form();
        let value_len = self.value_len();
        let mut new =
            Self::block(form, self.bits() & (ACCESS_MASK | MODIFIED), self.key(), expires_at_ms, value_len);
        // SAFETY: both blocks have `value_len` bytes behind the key, and 16 for an owner when the form has one. The
        // owner moves: the old block is freed without dropping it.
        unsafe {
            put(new.ptr, new.value_at(), bytes(self.ptr, self.value_at(), value_len));
            if form.header() == OWNER_HEADER {
                put(new.ptr, OWNER_AT, bytes(self.ptr, OWNER_AT, 16));
            }
            std::mem::swap(&mut self.ptr, &mut new.ptr);
            let old = ManuallyDrop::new(new);
            free(old.ptr, old.block_bytes());
        }
    }

    /// The 24 access bits.
    #[inline]
    pub fn access(&self) -> u32 {
        self.bits() & ACCESS_MASK
    }

    /// Sets the access bits; `access` is cut to 24 bits.
    #[inline]
    pub fn set_access(&mut self, access: u32) {
        self.set_bits((self.bits() & !ACCESS_MASK) | (access & ACCESS_MASK));
    }

    /// The string value, or `None` for other kinds.
    #[inline]
    pub fn as_str(&self) -> Option<Str<'_>> {
        match self.form() {
            // SAFETY: the value was written behind the key.
            Form::Embedded => Some(Str::Bytes(unsafe { bytes(self.ptr, self.value_at(), self.value_len()) })),
            // SAFETY: as above: 8 bytes.
            Form::Int => Some(Str::Int(unsafe { read(self.ptr, self.value_at()) })),
            // SAFETY: the form says what the owner is.
            Form::Shared => Some(Str::Shared(unsafe { self.owner_ref::<Arc<Vec<u8>>>() })),
            _ => None,
        }
    }

    /// The value, borrowed.
    pub fn value_ref(&self) -> ValueRef<'_> {
        // SAFETY: each form says what the owner is.
        unsafe {
            match self.form() {
                Form::Embedded | Form::Int | Form::Shared => {
                    ValueRef::String(self.as_str().expect("invariant: these forms are strings"))
                }
                Form::List => ValueRef::List(self.owner_ref()),
                Form::Hash => ValueRef::Hash(self.owner_ref()),
                Form::Set => ValueRef::Set(self.owner_ref()),
                Form::Zset => ValueRef::Zset(self.owner_ref()),
            }
        }
    }

    /// The list, if it is one.
    #[inline]
    pub fn as_list_mut(&mut self) -> Option<&mut List> {
        // SAFETY: the form says what the owner is.
        (self.form() == Form::List).then(|| unsafe { self.owner_mut() })
    }

    /// The hash, if it is one.
    #[inline]
    pub fn as_hash_mut(&mut self) -> Option<&mut Hash> {
        // SAFETY: the form says what the owner is.
        (self.form() == Form::Hash).then(|| unsafe { self.owner_mut() })
    }

    /// The set, if it is one.
    #[inline]
    pub fn as_set_mut(&mut self) -> Option<&mut Set> {
        // SAFETY: the form says what the owner is.
        (self.form() == Form::Set).then(|| unsafe { self.owner_mut() })
    }

    /// The sorted set, if it is one.
    #[inline]
    pub fn as_zset_mut(&mut self) -> Option<&mut Zset> {
        // SAFETY: the form says what the owner is.
        (self.form() == Form::Zset).then(|| unsafe { self.owner_mut() })
    }

    /// Replaces a string by `value`, keeping key, access bits and expiry: in place when the block's class allows it.
    /// Returns `false`, and changes nothing, for values of other kinds.
    #[inline]
    pub fn set_string(&mut self, value: &[u8]) -> bool {
        if !self.is_string() {
            return false;
        }
        let first = value.first().copied().unwrap_or(0);
        let maybe_int = value.len() <= 20 && (first == b'-' || first.is_ascii_digit());
        if self.form() == Form::Embedded && !maybe_int && value.len() <= EMBEDDED_BYTES_MAX {
            let value_at = self.value_at();
            if class_size(value_at + self.value_len()) == class_size(value_at + value.len()) {
                // SAFETY: the block's class has room for the new value.
                unsafe {
                    write(self.ptr, 0, value.len() as u32);
                    put(self.ptr, value_at, value);
                }
                self.set_bits(self.bits() & !MODIFIED);
                return true;
            }
        }
        let mut new = Self::string(self.key(), value, self.expires_at_ms());
        new.set_access(self.access());
        *self = new;
        true
    }

    /// Replaces a string by an integer, keeping key, access bits and expiry. `false` for values of other kinds.
    pub fn set_int(&mut self, number: i64) -> bool {
        match self.form() {
            Form::Int => {
                // SAFETY: an integer has 8 bytes behind the key.
                unsafe { write(self.ptr, self.value_at(), number) };
                true
            }
            _ => self.set_string(render_i64(number, &mut [0; 20])),
        }
    }

    /// The bytes of a string, to be changed in place but not in length. `None` for other kinds. An integer becomes bytes.
    pub fn string_bytes_mut(&mut self) -> Option<&mut [u8]> {
        if let Some(Str::Int(number)) = self.as_str() {
            self.set_modified_string(render_i64(number, &mut [0; 20]));
        }
        self.set_bits(self.bits() | if self.is_string() { MODIFIED } else { 0 });
        match self.form() {
            Form::Embedded => {
                let (at, len) = (self.value_at(), self.value_len());
                // SAFETY: the value was written there, and `self` is borrowed mutably.
                Some(unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr().add(at), len) })
            }
            // SAFETY: the form says what the owner is.
            Form::Shared => {
                // SAFETY: the form says what the owner is.
                let value: &mut Arc<Vec<u8>> = unsafe { self.owner_mut() };
                Some(Arc::make_mut(value).as_mut_slice())
            }
            _ => None,
        }
    }

    /// Puts a string's bytes, as a vector that may grow, through `change`; the result is never encoded as an integer,
    /// as after `APPEND` or `SETRANGE`. `None` for other kinds.
    pub fn change_string<R>(&mut self, change: impl FnOnce(&mut Vec<u8>) -> R) -> Option<R> {
        if self.form() == Form::Shared {
            // SAFETY: the form says what the owner is.
            let value = Arc::make_mut(unsafe { self.owner_mut::<Arc<Vec<u8>>>() });
            return Some(change(value));
        }
        let mut value = self.as_str()?.to_vec();
        let result = change(&mut value);
        if value.len() > EMBEDDED_BYTES_MAX {
            let mut new = Self::shared(self.key(), Arc::new(value), self.expires_at_ms());
            new.set_access(self.access());
            *self = new;
        } else {
            self.set_modified_string(&value);
        }
        Some(result)
    }

    fn set_modified_string(&mut self, value: &[u8]) {
        let mut new = Self::embedded(self.key(), value, self.expires_at_ms(), MODIFIED);
        new.set_access(self.access());
        *self = new;
    }

    /// A copy of the value. A string's large block is shared until one of the two changes.
    pub fn to_value(&self) -> Value {
        match self.as_str() {
            Some(Str::Shared(block)) => Value::Shared(Arc::clone(block)),
            Some(Str::Bytes(text)) if self.bits() & MODIFIED != 0 => Value::Shared(Arc::new(text.to_vec())),
            _ => self.value_ref().to_value(),
        }
    }

    /// Takes the value out.
    pub fn into_value(self) -> Value {
        let this = ManuallyDrop::new(self);
        let form = this.form();
        // SAFETY: each form says what the owner is; it is moved out once, and the block is freed without dropping it.
        unsafe {
            let value = match form {
                Form::Embedded | Form::Int => match this.as_str() {
                    Some(Str::Int(number)) => Value::Int(number),
                    Some(text) if this.bits() & MODIFIED != 0 => Value::Shared(Arc::new(text.to_vec())),
                    text => Value::Bytes(text.map(|text| text.to_vec()).unwrap_or_default()),
                },
                Form::Shared => Value::Shared(this.take_owner()),
                Form::List => Value::List(this.take_owner()),
                Form::Hash => Value::Hash(this.take_owner()),
                Form::Set => Value::Set(this.take_owner()),
                Form::Zset => Value::Zset(this.take_owner()),
            };
            free(this.ptr, this.block_bytes());
            value
        }
    }

    /// # Safety
    /// The form is that of a `T`, and the owner is neither used nor dropped again.
    unsafe fn take_owner<T>(&self) -> T {
        // SAFETY: promised by the caller.
        unsafe { self.ptr.as_ptr().add(OWNER_AT).cast::<T>().read() }
    }

    /// The name that `OBJECT ENCODING` answers.
    pub fn encoding(&self) -> &'static str {
        /// Strings up to this length are "embstr" in Redis.
        const EMBSTR_BYTES_MAX: usize = 44;
        match self.value_ref() {
            ValueRef::String(Str::Int(_)) => "int",
            ValueRef::String(text) if text.len() <= EMBSTR_BYTES_MAX && self.bits() & MODIFIED == 0 => {
                "embstr"
            }
            ValueRef::String(_) => "raw",
            ValueRef::List(list) => list.encoding(),
            ValueRef::Hash(hash) => hash.encoding(),
            ValueRef::Set(set) => set.encoding(),
            ValueRef::Zset(zset) => zset.encoding().name(),
        }
    }

    /// Heap bytes of this entry with its value.
    pub fn mem_bytes(&self) -> usize {
        let value = match self.value_ref() {
            ValueRef::String(Str::Shared(value)) => value.capacity() + size_of::<Vec<u8>>() + 16,
            ValueRef::String(_) => 0,
            ValueRef::List(list) => list.mem_bytes(),
            ValueRef::Hash(hash) => hash.mem_bytes(),
            ValueRef::Set(set) => set.mem_bytes(),
            ValueRef::Zset(zset) => zset.mem_bytes(),
        };
        class_size(self.block_bytes()) + value
    }
}

impl<'a> Ref<'a, Entry> {
    /// The value, for as long as the table is borrowed.
    #[inline]
    pub fn value(self) -> ValueRef<'a> {
        let value = self.value_ref();
        // SAFETY: the value lies in the entry's block, not in `self`; the block is owned by the table, which stays
        // borrowed, and so neither changed nor freed, for `'a`.
        unsafe { std::mem::transmute::<ValueRef<'_>, ValueRef<'a>>(value) }
    }
}

impl<'a> RefMut<'a, Entry> {
    /// The list, for as long as the table is borrowed, if it is one.
    #[inline]
    pub fn into_list(mut self) -> Option<&'a mut List> {
        let list = std::ptr::from_mut(self.as_list_mut()?);
        // SAFETY: the list lies in the entry's block, which is owned by the table and reachable through this borrow alone.
        Some(unsafe { &mut *list })
    }

    /// The hash, for as long as the table is borrowed, if it is one.
    #[inline]
    pub fn into_hash(mut self) -> Option<&'a mut Hash> {
        let hash = std::ptr::from_mut(self.as_hash_mut()?);
        // SAFETY: as for `into_list`.
        Some(unsafe { &mut *hash })
    }

    /// The set, for as long as the table is borrowed, if it is one.
    #[inline]
    pub fn into_set(mut self) -> Option<&'a mut Set> {
        let set = std::ptr::from_mut(self.as_set_mut()?);
        // SAFETY: as for `into_list`.
        Some(unsafe { &mut *set })
    }

    /// The sorted set, for as long as the table is borrowed, if it is one.
    #[inline]
    pub fn into_zset(mut self) -> Option<&'a mut Zset> {
        let zset = std::ptr::from_mut(self.as_zset_mut()?);
        // SAFETY: as for `into_list`.
        Some(unsafe { &mut *zset })
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let size = self.block_bytes();
        // SAFETY: each form says what the owner is, and the entry is not used again.
        unsafe {
            match self.form() {
                Form::Embedded | Form::Int => {}
                Form::Shared => drop(self.take_owner::<Arc<Vec<u8>>>()),
                Form::List => drop(self.take_owner::<List>()),
                Form::Hash => drop(self.take_owner::<Hash>()),
                Form::Set => drop(self.take_owner::<Set>()),
                Form::Zset => drop(self.take_owner::<Zset>()),
            }
            free(self.ptr, size);
        }
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("key", &self.key()).field("kind", &self.kind()).finish()
    }
}

#[cfg(test)]
mod tests;
